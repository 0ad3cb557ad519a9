#ifndef RMQ_SCRIPT_BUILTIN_H
#define RMQ_SCRIPT_BUILTIN_H

#include <stddef.h>

/* Lua that is compiled in: bytecode made by embed.c while building. */
typedef struct rmq_builtin {
  const char *module; /* "rocketmq.mock" */
  const char *chunk;  /* "@rocketmq/mock/init.lua" */
  const unsigned char *code;
  size_t len;
} rmq_builtin;

/* Ended by a row whose module is NULL. */
extern const rmq_builtin rmq_builtin_table[];

#endif

#ifndef RMQ_BINDING_LUA_ARGUMENTS_H
#define RMQ_BINDING_LUA_ARGUMENTS_H

#include <lua.h>

#include "binding/lua_reply.h"
#include "producer/producer.h"
#include "producer/settings.h"

/* Reads what a script wants to send from the positions of the Lua stack where
 * lua/rocketmq/producer.lua puts it. */
enum {
  RMQ_ARG_BODY = 1,
  RMQ_ARG_TOPIC,
  RMQ_ARG_MESSAGE,  /* the table itself, for looking at its other names */
  RMQ_ARG_SELECTOR, /* absent with all that follow when it is just topic and body */
  RMQ_ARG_SELECTOR_ARG,
  RMQ_ARG_OPTIONS, /* like the message */
  RMQ_ARG_TIMEOUT,
  RMQ_ARG_ATTEMPT_TIMEOUT,
  RMQ_ARG_RETRIES,
  RMQ_ARG_QUEUE,
  RMQ_ARG_TAGS, /* absent with all that follow when the message has nothing of it */
  RMQ_ARG_KEYS,
  RMQ_ARG_PROPERTIES,
  RMQ_ARG_FLAG,
  RMQ_ARG_WAIT,
  RMQ_ARG_MORE /* true when the message has fields that few have: they are read from the table */
};

/* Lists that are read into, kept from one message to the next. */
typedef struct rmq_arguments {
  rmq_slice *keys;
  size_t keys_cap;
  rmq_field *properties;
  size_t properties_cap;
  rmq_slice *lmq;
  size_t lmq_cap;
  rmq_field reply_to[RMQ_REPLY_FIELDS];
  int member;                 /* the number of the batch's message that is read; 0: a lone one */
  uint64_t sends;             /* how many messages were read */
  bool always_look;           /* look for unknown names in every message, not in samples */
  const rmq_setting *time;    /* the setting whose upper bound holds for times in options */
  const rmq_setting *retries; /* likewise for retries */
  rmq_failure refusal;        /* why the last one was refused */
} rmq_arguments;

void rmq_arguments_init(rmq_arguments *arguments);
void rmq_arguments_free(rmq_arguments *arguments);

/* Fills `message` and `options` with slices of the Lua values, valid while those stay where they
 * are. 0, or RMQ_EINVAL when a value is wrong (`refusal` says which). A wrong type or an unknown
 * name raises. Looks for unknown names in the first 256 messages and in one of 64 after them,
 * which costs nothing to speak of. `last` is the index of the last argument: what lies above is not
 * looked at. May leave values on top of the stack, to which slices point. */
int rmq_arguments_read(lua_State *L, int last, rmq_arguments *arguments, rmq_message *message,
                       rmq_send_options *options);

/* The same for a message of a batch, which has no options; errors name it as messages[number]. */
int rmq_arguments_read_member(lua_State *L, int number, rmq_arguments *arguments,
                              rmq_message *message);

/* The same for the options of a batch, whose other positions mean something else. `topic` is that of
 * its messages. */
int rmq_arguments_read_batch(lua_State *L, int last, rmq_arguments *arguments, rmq_slice topic,
                             rmq_send_options *options);

/* Lets the producer's selector, a registry reference, stand in where the arguments name neither queue
 * nor selector, and returns the index of what is the last argument then. What lies above the last
 * one, at most one value, stays there. Before they are read. */
int rmq_arguments_stand_in(lua_State *L, int last, int selector);

/* True when the options that were read have a selector. */
bool rmq_arguments_have_selector(lua_State *L, int last);

/* Reads an optional time in milliseconds, rounded up to a whole one. 0 with `*out` unchanged when
 * it is nil. */
int rmq_arguments_time(lua_State *L, rmq_arguments *arguments, int index, const char *name,
                       int64_t *out);

#endif

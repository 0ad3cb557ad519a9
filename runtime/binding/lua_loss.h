#ifndef RMQ_BINDING_LUA_LOSS_H
#define RMQ_BINDING_LUA_LOSS_H

#include "producer/producer.h"
#include "script/vm.h"

/* Failures that no code of the script hears of, because it sent oneway or without a callback. They
 * are logged, at most one line a second, and let the process end with the status for undelivered
 * messages. */
typedef struct rmq_lua_losses {
  rmq_vm *vm;
  uv_timer_t timer; /* the next line; stopped while no line was written for a second */
  bool timer_made;
  bool ending;             /* the end of the producer tells of what it cuts short by itself */
  uint64_t untold;         /* since the last line */
  char last[1024];         /* what was wrong with the last of them */
  void (*gone)(void *arg); /* of rmq_lua_losses_close */
  void *gone_arg;
} rmq_lua_losses;

void rmq_lua_losses_open(rmq_lua_losses *losses, rmq_vm *vm);

void rmq_lua_lost(rmq_lua_losses *losses, const rmq_completion *completion, bool oneway);

/* Writes what is untold, and lets go of the timer; `gone(arg)` comes once, later or at once. */
void rmq_lua_losses_close(rmq_lua_losses *losses, void (*gone)(void *arg), void *arg);

/* Writes what is untold at once: nothing more will come. */
void rmq_lua_losses_end(rmq_lua_losses *losses);

#endif

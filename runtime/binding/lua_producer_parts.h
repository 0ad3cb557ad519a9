#ifndef RMQ_BINDING_LUA_PRODUCER_PARTS_H
#define RMQ_BINDING_LUA_PRODUCER_PARTS_H

#include <lauxlib.h>

#include "binding/lua_arguments.h"
#include "binding/lua_hook.h"
#include "binding/lua_pending.h"
#include "binding/lua_send.h"
#include "script/vm.h"

/* What the files share that the module rocketmq.native.producer is made of. */

/* The userdata in a script's hands is one pointer to this. It outlives the userdata when the
 * collector finds that first: what is under way is still delivered. */
typedef struct rmq_lua_producer {
  rmq_ending ending;
  rmq_vm *vm;
  rmq_io *io;
  rmq_producer *producer;
  rmq_pendings pendings;
  rmq_arguments arguments;
  rmq_lua_sends sends;
  rmq_lua_hooks hooks;
  bool over;          /* shut down, or the parent process's: nothing comes any more */
  bool forked;        /* the parent process's */
  uv_idle_t farewell; /* only ever closed, to be called back when the stack is empty */
  /* Of the end of the process, while it waits for us. */
  void (*finished)(void *arg, size_t undelivered);
  void *finished_arg;
  char name[300];
  int self; /* registry reference: a table that knows the userdata weakly; LUA_NOREF: none needed */
} rmq_lua_producer;

/* The producer that is argument 1; raises when that is none. The metatable of producers is upvalue 1 of
 * every function of the module. */
rmq_lua_producer *rmq_lua_producer_check(lua_State *L);

/* The producer in upvalue 1 of a function that belongs to it: nothing else can be given for it, and
 * it stays while the function waits. */
rmq_lua_producer *rmq_lua_producer_own(lua_State *L);

/* The body of a producer's own function (body, topic, ...), see lua_arguments.h, that sends and waits.
 * `name` is what the function is called where it cannot wait. */
int rmq_lua_producer_send(lua_State *L, const char *name, rmq_lua_start *start);

/* Ends a function at once with a failure, see rmq_lua_fail_at_once. */
int rmq_lua_producer_fail(lua_State *L, rmq_lua_producer *p, const rmq_failure *failure,
                          rmq_slice topic);

/* The script may have computed for long since the event began in which it runs, and what it starts
 * now has its whole time from now on. */
void rmq_lua_producer_refresh_time(rmq_lua_producer *p);

#endif

#ifndef RMQ_BINDING_LUA_SELECTOR_H
#define RMQ_BINDING_LUA_SELECTOR_H

#include <lua.h>

#include "producer/producer.h"
#include "script/vm.h"

/* Calls selectors: functions (queues, message, arg, ctx) of a script that give a queue or the number
 * of one. They run on Lua threads of their own that are used again and again, protected, and
 * cannot wait. */
/* Selectors that send and so call selectors, and so on. Each has a thread, so Lua's own limit on
 * nested calls does not see them. */
enum { RMQ_SELECTOR_DEPTH_MAX = 16 };

typedef struct rmq_lua_selectors {
  rmq_vm *vm;
  int kept;                         /* registry reference: a table with what is below */
  struct rmq_lua_selector_now *now; /* a userdata: what their ctx knows */
  int depth; /* selectors that are running, each called by a send of the one before */
  lua_State *threads[RMQ_SELECTOR_DEPTH_MAX]; /* that of each depth, once it was reached */
} rmq_lua_selectors;

/* May raise. */
void rmq_lua_selectors_open(lua_State *L, rmq_lua_selectors *all, rmq_producer *producer);
/* The producer ends; what a script has kept of it knows nothing any more. */
void rmq_lua_selectors_close(rmq_lua_selectors *all);

/* Where the values of one call are: indexes in the stack of `from`; or, when that is NULL, numbers of
 * fields in a table that is the registry's `table`; 0: there is none. */
typedef struct rmq_lua_selector_call {
  lua_State *from;
  int table;
  int selector, message, arg;
} rmq_lua_selector_call;

/* Asks: an rmq_choose, with the values besides. */
int rmq_lua_select(rmq_lua_selectors *all, const rmq_lua_selector_call *values,
                   const rmq_choice *choice, const rmq_publish_queue **queue, rmq_failure *why);

#endif

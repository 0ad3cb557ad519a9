#ifndef RMQ_SCRIPT_LUA_SELECTOR_H
#define RMQ_SCRIPT_LUA_SELECTOR_H

#include <lua.h>

#include "producer/producer.h"
#include "script/vm.h"

/* Calls selectors: functions (queues, message, arg, ctx) of a script that give a queue or the number
 * of one. They run on Lua threads of their own that are used again and again, protected, and
 * cannot wait. */
typedef struct rmq_lua_selectors {
  rmq_vm *vm;
  int kept;               /* registry reference: a table with what is below */
  rmq_producer **current; /* a userdata: the producer, NULL once it is gone */
  int depth;              /* selectors that are running, each called by a send of the one before */
} rmq_lua_selectors;

/* May raise. */
void rmq_lua_selectors_open(lua_State *L, rmq_lua_selectors *all, rmq_producer *producer);
/* The producer ends; what a script has kept of it knows nothing any more. */
void rmq_lua_selectors_close(rmq_lua_selectors *all);

/* Where the values of one call are: numbers of fields in a table that is the registry's `table`;
 * 0: there is none. */
typedef struct rmq_lua_selector_call {
  int table;
  int selector, message, arg;
} rmq_lua_selector_call;

/* Asks: an rmq_choose, with the values besides. */
int rmq_lua_select(rmq_lua_selectors *all, const rmq_lua_selector_call *values,
                   const rmq_choice *choice, rmq_queue_ref *queue, rmq_failure *why);

#endif

#ifndef RMQ_BINDING_LUA_CHOOSERS_H
#define RMQ_BINDING_LUA_CHOOSERS_H

#include <lua.h>

#include "producer/producer.h"

/* The selectors that C has itself: hash, hash_fnv1a, random and best. A script sees functions like
 * any other selector, and may call them. Given with a send they are recognized: the core then
 * chooses by itself, without entering Lua and whatever the number of queues. */

/* What a send's selector is. */
typedef enum rmq_chooser_kind {
  RMQ_CHOOSER_LUA,    /* to be called */
  RMQ_CHOOSER_NATIVE, /* the options are set */
  RMQ_CHOOSER_REFUSED /* the failure is set: the argument cannot be hashed */
} rmq_chooser_kind;

/* Sets `options` for the selector at index `selector` when it is one of these; `arg` is the index
 * of its argument. `why` names the script's line. */
rmq_chooser_kind rmq_lua_choose_natively(lua_State *L, int selector, int arg, rmq_slice topic,
                                         rmq_send_options *options, rmq_failure *why);

/* Puts them among the selectors that have names (script/plugins.h). Called once, before any script;
 * may raise. */
void rmq_lua_choosers_init(lua_State *L);

/* From now on what selectors draw follows from this number: `random` called by another one, and where the
 * turns of those that have to be made begin. They share it, whichever producer they are used with. What the
 * core chooses by itself draws from its producer's rmq_io. */
void rmq_lua_choosers_seed(lua_State *L, uint64_t seed);

/* True when the value at `index` is a selector: a function, a table that can be called, or the name of
 * one. Otherwise a sentence is pushed, in which `what` is what the value is given for. */
bool rmq_lua_check_selector(lua_State *L, int index, const char *what);

/* The module rocketmq.native.selector: the functions by their names; `draw(n)`, a random whole
 * number from 1 to n; `spread(text)`, a hash with 32 bits for the points of a ring; `named(name)`, the
 * selector with the name or nothing. */
int luaopen_rocketmq_native_selector(lua_State *L);

#endif

#ifndef RMQ_BINDING_LUA_RESULT_H
#define RMQ_BINDING_LUA_RESULT_H

#include <lua.h>

#include "base/buf.h"
#include "producer/transaction.h"

/* Results and queues as scripts see them: userdata of just the size that their texts need, whose
 * fields become Lua values when they are read. Neither needs a finalizer, so the collector frees
 * them in one step. */

/* Makes the metatables of results, queues and errors; to be called before anything else here. */
void rmq_lua_results_open(lua_State *L);

/* Keeps the function on top of the stack (and pops it): (high, low) to an int64_t cdata, for
 * offsets that a Lua number cannot hold. */
void rmq_lua_results_set_int64(lua_State *L);

/* The bytes that a completion's userdata has: how many, and what they are. */
size_t rmq_result_size(const rmq_completion *completion);
void rmq_result_write(void *at, const rmq_completion *completion);

/* Pushes a result whose `size` bytes are still to be written, and returns where they go. `metatable`
 * is its stack index, from rmq_lua_push_result_metatable. */
void *rmq_lua_push_result(lua_State *L, size_t size, int metatable);
void rmq_lua_push_result_metatable(lua_State *L);

/* Pushes a number as long as it holds the value exactly (below 2^53), else an int64_t. */
void rmq_lua_push_int64(lua_State *L, int64_t value);
/* The result at `index`, which must be one, gets a transaction_state. */
void rmq_lua_result_set_transaction(lua_State *L, int index, rmq_transaction_state state);

/* Pushes a queue, and returns its memory. */
void *rmq_lua_push_queue(lua_State *L, rmq_slice topic, rmq_slice broker, int32_t id);
void rmq_lua_push_queue_metatable(lua_State *L);

/* What a list of queues notes in those of its own: where they stand in it. Any number in others. */
void rmq_lua_queue_set_place(void *queue, uint32_t place);
uint32_t rmq_lua_queue_place(const void *queue);

/* True when the value at `index` is a queue; its parts are valid as long as the value is. */
bool rmq_lua_to_queue(lua_State *L, int index, rmq_slice *topic, rmq_slice *broker, int32_t *id);

#endif

#ifndef RMQ_BINDING_LUA_FAILURE_H
#define RMQ_BINDING_LUA_FAILURE_H

#include <lua.h>

#include "producer/failure.h"

/* The registry keeps the metatable of error values under this name; rocketmq.error fills it. */
#define RMQ_LUA_ERROR "rocketmq.error"

/* A copy that lives as long as one likes; released with rmq_failure_clear and free. */
rmq_failure *rmq_lua_copy_failure(const rmq_failure *failure);

/* Pushes the table that scripts see. `msg_id` may be empty. */
void rmq_lua_push_failure(lua_State *L, const rmq_failure *failure, rmq_slice msg_id);

#endif

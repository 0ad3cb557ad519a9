#ifndef RMQ_BINDING_LUA_ADMIN_H
#define RMQ_BINDING_LUA_ADMIN_H

#include <lauxlib.h>

/* The administrative calls of rocketmq.native.producer. They wait, and give what `take` makes values of:
 *   ask_offset(handle, what, queue, time, options): what is "max", "min", "search" or "earliest"
 *   create_topic(handle, description)
 *   view_message(handle, topic, id, options)
 *   query_message(handle, topic, key, options)
 * Ended by a row of NULLs. */
extern const luaL_Reg rmq_lua_admin_functions[];

#endif

#ifndef RMQ_BINDING_LUA_RECALL_H
#define RMQ_BINDING_LUA_RECALL_H

#include <lauxlib.h>

/* Of rocketmq.native.producer: recall(handle, topic, recall handle, timeout or nil). It waits, and gives
 * what `take` makes the message's id of. Ended by a row of NULLs. */
extern const luaL_Reg rmq_lua_recall_functions[];

#endif

#ifndef RMQ_BINDING_LUA_TRANSACTION_H
#define RMQ_BINDING_LUA_TRANSACTION_H

#include <lauxlib.h>

/* The functions of rocketmq.native.producer that transactions need: half messages, their end, and the
 * checks of brokers. Each check is decided by a task of its own. */
extern const luaL_Reg rmq_lua_transaction_functions[];

#endif

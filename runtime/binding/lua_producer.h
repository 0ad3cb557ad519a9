#ifndef RMQ_BINDING_LUA_PRODUCER_H
#define RMQ_BINDING_LUA_PRODUCER_H

#include <lua.h>

/* The module rocketmq.native.producer: what lua/rocketmq/producer.lua is built on. Described in
 * lua/meta/native_producer.lua. */
int luaopen_rocketmq_native_producer(lua_State *L);

#endif

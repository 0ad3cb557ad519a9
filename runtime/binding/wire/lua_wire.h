#ifndef RMQ_BINDING_LUA_WIRE_H
#define RMQ_BINDING_LUA_WIRE_H

#include <lua.h>

/* The module `rocketmq.wire`: bytes to tables and back, without any I/O. lua/meta/rocketmq/wire.lua says
 * what each function takes and gives. */
int luaopen_rocketmq_wire(lua_State *L);

#endif

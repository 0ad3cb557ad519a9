#ifndef RMQ_BINDING_BINDING_H
#define RMQ_BINDING_BINDING_H

#include <lua.h>

/* Lets scripts find the modules of this room, and the selectors that are there from the beginning. Called once for
 * a Lua state. May raise. */
void rmq_binding_open(lua_State *L);

#endif

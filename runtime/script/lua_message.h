#ifndef RMQ_SCRIPT_LUA_MESSAGE_H
#define RMQ_SCRIPT_LUA_MESSAGE_H

#include <lua.h>

#include "wire/stored.h"

/* Pushes a message that a broker has stored as a plain table, rocketmq.StoredMessage. `broker` is the name
 * of the one that has it; when that is empty, the table has no queue. */
void rmq_lua_push_message(lua_State *L, rmq_slice broker, const rmq_stored_message *message);

#endif

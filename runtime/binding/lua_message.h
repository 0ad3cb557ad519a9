#ifndef RMQ_BINDING_LUA_MESSAGE_H
#define RMQ_BINDING_LUA_MESSAGE_H

#include <lua.h>

#include "base/buf.h"
#include "wire/stored.h"

/* Pushes a message that a broker has stored as a plain table, rocketmq.StoredMessage. `broker` is the name
 * of the one that has it; when that is empty, the table has no queue. A compressed body is unpacked into
 * `scratch`, which is emptied first; one that cannot be, or becomes longer than `limit` bytes, stays as it
 * is, with its mark in sys_flag. */
void rmq_lua_push_message(lua_State *L, rmq_slice broker, const rmq_stored_message *message,
                          rmq_buf *scratch, size_t limit);

/* A limit for one message: much more than any broker stores. */
#define RMQ_LUA_MESSAGE_MAX ((size_t)64 * 1024 * 1024)

#endif

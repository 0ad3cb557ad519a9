#ifndef RMQ_BINDING_LUA_REPLY_H
#define RMQ_BINDING_LUA_REPLY_H

#include <lauxlib.h>

#include "producer/producer.h"

/* Requests and replies of scripts. */

/* How many properties rmq_lua_read_reply_to fills, at most; and how many values it leaves. */
enum { RMQ_REPLY_FIELDS = 4, RMQ_REPLY_VALUES = 3 };

/* Reads the table on top of the stack, a message's reply_to, into properties that RocketMQ reads. Their
 * texts stand on the stack above it. 0, or RMQ_EINVAL with `why`; a wrong type or name raises. */
int rmq_lua_read_reply_to(lua_State *L, rmq_field system[RMQ_REPLY_FIELDS], rmq_message *message,
                          rmq_failure *why);

/* What rocketmq.native.producer has of it. */
extern const luaL_Reg rmq_lua_request_functions[];

#endif

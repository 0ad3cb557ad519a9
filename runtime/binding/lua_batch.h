#ifndef RMQ_BINDING_LUA_BATCH_H
#define RMQ_BINDING_LUA_BATCH_H

#include "binding/lua_send.h"

/* Batches of a script. lua/rocketmq/producer.lua makes a draft, adds message after message to it, and
 * sends it; a draft that it does not send, because a message is wrong, goes with the collector. */

/* Makes the metatable of drafts. */
void rmq_lua_batch_open(lua_State *L);

/* Pushes an empty draft. */
int rmq_lua_batch_new(lua_State *L, rmq_producer *producer);

/* The message as rmq_arguments_read takes it, without options; the draft stands in their place. Returns
 * true, or what take makes an error of. */
int rmq_lua_batch_add(lua_State *L, rmq_lua_sends *all);

/* Where a batch has other arguments than a message; the topic and the options are at the same places,
 * and the message that a selector is shown is RMQ_ARG_MESSAGE. */
enum {
  RMQ_BATCH_ARG_BODIES = RMQ_ARG_BODY, /* a table that keeps them */
  RMQ_BATCH_ARG_DRAFT = RMQ_ARG_TAGS,
  RMQ_BATCH_ARG_SPLIT = RMQ_ARG_KEYS,         /* a boolean */
  RMQ_BATCH_ARG_CALLBACK = RMQ_ARG_PROPERTIES /* a function or nil */
};

/* Sends a draft. Sync: returns as rmq_task_wait does. Others: returns true once all of it has room
 * or has ended, or what take makes an error of. */
int rmq_lua_batch_send(lua_State *L, rmq_lua_sends *all, rmq_mode mode);

#endif

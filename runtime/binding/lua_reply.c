#include "binding/lua_reply.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "binding/lua_message.h"
#include "binding/lua_names.h"
#include "binding/lua_producer_parts.h"
#include "producer/message.h"
#include "producer/request.h"
#include "wire/properties.h"

/* ---- What makes a message a reply ---- */

static const char *const reply_fields[] = {"correlation_id", "client", "ttl", NULL};
static const rmq_names reply_names = {"field", "reply_to of the message", reply_fields};

/* Leaves the field's value on the stack. */
static int read_text(lua_State *L, int table, const char *field, rmq_slice *out, rmq_failure *why) {
  char name[48];
  lua_getfield(L, table, field);
  *out = (rmq_slice){NULL, 0};
  if (lua_isnil(L, -1)) return 0;
  snprintf(name, sizeof name, "reply_to.%s", field);
  if (lua_type(L, -1) != LUA_TSTRING) {
    return rmq_lua_raise(L, "%s of the message must be a string, not %s", name,
                         luaL_typename(L, -1));
  }
  out->ptr = lua_tolstring(L, -1, &out->len);
  return rmq_message_check_text(name, *out, why);
}

int rmq_lua_read_reply_to(lua_State *L, rmq_field system[RMQ_REPLY_FIELDS], rmq_message *message,
                          rmq_failure *why) {
  int table = lua_gettop(L);
  rmq_slice id, client, ttl;
  if (lua_type(L, table) != LUA_TTABLE) {
    return rmq_lua_raise(L, "reply_to of the message must be a table, not %s; use rocketmq.reply",
                         luaL_typename(L, table));
  }
  rmq_names_check(L, &reply_names, table);
  if (read_text(L, table, "correlation_id", &id, why) < 0 ||
      read_text(L, table, "client", &client, why) < 0 ||
      read_text(L, table, "ttl", &ttl, why) < 0) {
    return RMQ_EINVAL;
  }
  if (id.len == 0 || client.len == 0) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                    "reply_to needs a correlation_id and a client; let rocketmq.reply make the "
                    "message");
    return RMQ_EINVAL;
  }
  system[0] = (rmq_field){rmq_slice_text("MSG_TYPE"), rmq_slice_text("reply")};
  system[1] = (rmq_field){rmq_slice_text("CORRELATION_ID"), id};
  system[2] = (rmq_field){rmq_slice_text("REPLY_TO_CLIENT"), client};
  system[3] = (rmq_field){rmq_slice_text("TTL"), ttl};
  message->system = system;
  message->n_system = ttl.len > 0 ? 4 : 3;
  message->reply = true;
  return 0;
}

/* ---- Replies that come ---- */

/* In a pending's bytes: the message, then the texts that it points to, one after the other. */
static void keep(rmq_pending *pending, const rmq_pushed_reply *reply) {
  const rmq_stored_message *message = &reply->message;
  rmq_buf *bytes = &pending->bytes;
  rmq_buf_clear(bytes);
  rmq_buf_bytes(bytes, reply, sizeof *reply);
  rmq_buf_bytes(bytes, message->topic.ptr, message->topic.len);
  rmq_buf_bytes(bytes, message->properties.ptr, message->properties.len);
  rmq_buf_bytes(bytes, reply->born_host.ptr, reply->born_host.len);
  rmq_buf_bytes(bytes, reply->store_host.ptr, reply->store_host.len);
  rmq_buf_bytes(bytes, message->body.ptr, message->body.len);
}

static const char *point(rmq_slice *text, const char *at) {
  text->ptr = at;
  return at + text->len;
}

static void set_text(lua_State *L, const char *name, rmq_slice text) {
  if (text.len > 0) {
    lua_pushlstring(L, text.ptr, text.len);
  } else {
    lua_pushnil(L);
  }
  lua_setfield(L, -2, name);
}

static int push_reply(lua_State *L, rmq_pending *pending) {
  /* What a stored message has and a pushed one has not. */
  static const char *const unknown[] = {"offset_msg_id", "queue_offset", "commit_log_offset",
                                        "prepared_transaction_offset"};
  rmq_pushed_reply reply;
  const char *bytes = (const char *)rmq_buf_head(&pending->bytes);
  memcpy(&reply, bytes, sizeof reply);
  const char *at = point(&reply.message.topic, bytes + sizeof reply);
  at = point(&reply.message.properties, at);
  at = point(&reply.born_host, at);
  at = point(&reply.store_host, at);
  point(&reply.message.body, at);
  reply.message.born_host.ip_len = reply.message.store_host.ip_len = 4;
  rmq_lua_push_message(L, rmq_slice_make(NULL, 0), &reply.message, &pending->all->scratch,
                       RMQ_LUA_MESSAGE_MAX);
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    lua_pushnil(L);
    lua_setfield(L, -2, unknown[i]);
  }
  set_text(L, "msg_id", rmq_properties_find(reply.message.properties, "UNIQ_KEY"));
  set_text(L, "born_host", reply.born_host);
  set_text(L, "store_host", reply.store_host);
  return 1;
}

static void note(rmq_pending *pending, const rmq_failure *failure, const rmq_pushed_reply *reply) {
  if (failure) {
    rmq_pending_fail(pending, failure);
    return;
  }
  keep(pending, reply);
  pending->state = RMQ_PENDING_VALUES;
  pending->push = push_reply;
}

static void replied(void *arg, const rmq_failure *failure, const rmq_pushed_reply *reply) {
  rmq_lua_send *send = arg;
  rmq_pending *pending = send->pending;
  if (send->entering) { /* the call that waited for room tells that there was none */
    pending = rmq_pending_take(send->all->pendings, send->entering);
    pending->wait = send->wait;
  } else if (!pending) {
    pending = rmq_pending_take(send->all->pendings, NULL);
    note(pending, failure, reply);
    rmq_lua_send_call_back(send, !failure, pending);
    return;
  }
  note(pending, failure, reply);
  rmq_lua_send_release(send);
  rmq_pending_wake(pending, !failure);
}

/* ---- Requests ---- */

static int begin(lua_State *L, rmq_lua_producer *p, rmq_lua_send *send, const rmq_message *message,
                 const rmq_send_options *options) {
  if (rmq_producer_request(p->producer, message, options, replied, send) == 0) return 0;
  if (send->pending) rmq_pending_put_back(send->pending);
  rmq_lua_send_release(send);
  return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), message->topic);
}

/* A producer's own function (body, topic, ...): waits for the reply. */
static int request(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_own(L);
  rmq_message message;
  rmq_send_options options;
  int last = lua_gettop(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "request");
  rmq_lua_producer_refresh_time(p);
  if (p->sends.selector != LUA_NOREF) last = rmq_arguments_stand_in(L, last, p->sends.selector);
  if (rmq_arguments_read(L, last, &p->arguments, &message, &options) < 0) {
    return rmq_lua_producer_fail(L, p, &p->arguments.refusal, message.topic);
  }
  rmq_lua_send *send = rmq_lua_send_take(L, &p->sends);
  if (rmq_arguments_have_selector(L, last)) rmq_lua_send_keep_selector(L, send, &options);
  send->pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  int values = begin(L, p, send, &message, &options);
  if (values > 0) return values;
  lua_settop(L, 0);
  return rmq_task_wait(L, 0);
}

/* The same with a callback behind: returns true, or what take makes an error of. */
static int request_async(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_own(L);
  rmq_message message;
  rmq_send_options options;
  int last = lua_gettop(L) - 1;
  rmq_lua_producer_refresh_time(p);
  if (p->sends.selector != LUA_NOREF) last = rmq_arguments_stand_in(L, last, p->sends.selector);
  if (rmq_arguments_read(L, last, &p->arguments, &message, &options) < 0) {
    return rmq_lua_producer_fail(L, p, &p->arguments.refusal, message.topic);
  }
  options.mode = RMQ_MODE_ASYNC;
  options.may_wait = rmq_task_may_wait(L);
  options.admitted = rmq_lua_send_admitted;
  bool waits = options.may_wait && !rmq_producer_has_room(p->producer, message.body.len);
  rmq_lua_send *send = rmq_lua_send_take(L, &p->sends);
  if (waits) rmq_lua_send_enter(L, send);
  rmq_lua_send_keep_callback(L, send, last + 1);
  if (rmq_arguments_have_selector(L, last)) rmq_lua_send_keep_selector(L, send, &options);
  int values = begin(L, p, send, &message, &options);
  if (values > 0) return values;
  if (waits) return rmq_task_wait(L, 0);
  lua_pushboolean(L, true);
  return 1;
}

/* requesters(producer): the functions for request and request_async. */
static int requesters(lua_State *L) {
  rmq_lua_producer_check(L);
  lua_settop(L, 1);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, request, 1);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, request_async, 1);
  return 2;
}

const luaL_Reg rmq_lua_request_functions[] = {{"requesters", requesters}, {NULL, NULL}};

#include "script/lua_failure.h"

#include <lauxlib.h>
#include <string.h>

#include "base/memory.h"

static char *copy_text(const char *text) { return text ? rmq_copy_text(text, strlen(text)) : NULL; }

rmq_failure *rmq_lua_copy_failure(const rmq_failure *failure) {
  rmq_failure *copy = rmq_alloc(sizeof *copy);
  rmq_failure_init(copy);
  copy->kind = failure->kind;
  copy->code = failure->code;
  rmq_slice message = rmq_buf_slice(&failure->message);
  rmq_buf_bytes(&copy->message, message.ptr, message.len);
  copy->topic = copy_text(failure->topic);
  copy->broker = copy_text(failure->broker);
  copy->addr = copy_text(failure->addr);
  copy->maybe_stored = failure->maybe_stored;
  copy->elapsed_us = failure->elapsed_us;
  if (failure->n_tries == 0) return copy;
  copy->tries = rmq_alloc_zero((size_t)failure->n_tries, sizeof *copy->tries);
  copy->n_tries = failure->n_tries;
  for (int i = 0; i < failure->n_tries; i++) {
    const rmq_try *from = &failure->tries[i];
    copy->tries[i] = *from;
    copy->tries[i].broker = copy_text(from->broker);
    copy->tries[i].addr = copy_text(from->addr);
    copy->tries[i].message = copy_text(from->message);
  }
  return copy;
}

static void set_text(lua_State *L, const char *name, const char *text) {
  if (!text) return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

static void push_tries(lua_State *L, const rmq_failure *failure) {
  lua_createtable(L, failure->n_tries, 0);
  for (int i = 0; i < failure->n_tries; i++) {
    const rmq_try *attempt = &failure->tries[i];
    lua_createtable(L, 0, 7);
    set_text(L, "broker", attempt->broker);
    set_text(L, "addr", attempt->addr);
    set_text(L, "kind", rmq_kind_name(attempt->kind));
    set_number(L, "code", attempt->code);
    set_text(L, "message", attempt->message);
    set_boolean(L, "written", attempt->written);
    set_number(L, "elapsed_ms", (double)attempt->elapsed_us / 1000);
    lua_rawseti(L, -2, i + 1);
  }
}

void rmq_lua_push_failure(lua_State *L, const rmq_failure *failure, rmq_slice msg_id) {
  lua_createtable(L, 0, 12);
  set_text(L, "kind", rmq_kind_name(failure->kind));
  set_number(L, "code", failure->code);
  rmq_slice message = rmq_buf_slice(&failure->message);
  lua_pushlstring(L, message.len ? message.ptr : "", message.len);
  lua_setfield(L, -2, "message");
  set_text(L, "topic", failure->topic);
  set_text(L, "broker", failure->broker);
  set_text(L, "addr", failure->addr);
  set_number(L, "attempts", failure->n_tries);
  push_tries(L, failure);
  lua_setfield(L, -2, "tries");
  set_number(L, "elapsed_ms", (double)failure->elapsed_us / 1000);
  set_boolean(L, "maybe_stored", failure->maybe_stored);
  if (msg_id.len > 0) {
    lua_pushlstring(L, msg_id.ptr, msg_id.len);
    lua_setfield(L, -2, "msg_id");
  }
  luaL_getmetatable(L, RMQ_LUA_ERROR);
  lua_setmetatable(L, -2);
}

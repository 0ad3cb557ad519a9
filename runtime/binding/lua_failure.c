#include "binding/lua_failure.h"

#include <lauxlib.h>

#include "base/memory.h"

rmq_failure *rmq_lua_copy_failure(const rmq_failure *failure) {
  rmq_failure *copy = rmq_alloc(sizeof *copy);
  rmq_failure_copy(copy, failure);
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

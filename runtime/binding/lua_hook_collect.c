#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "binding/lua_hook_ctx.h"
#include "producer/message.h"
#include "wire/properties.h"

/* Reads what a hook has left in ctx.message. What it was is checked here; what it says is checked by
 * the core, as it checks any message. */

typedef struct reading {
  lua_State *L;
  int message; /* where it is on the stack; its texts stay in it */
  rmq_lua_hooks *all;
  rmq_hook_attempt *attempt;
  unsigned filled;   /* of the state */
  rmq_message users; /* what is read */
  rmq_failure *why;
} reading;

static int refuse(const reading *r, const char *text) {
  rmq_failure_set(r->why, RMQ_KIND_HOOK, 0, "%s", text);
  return RMQ_EINVAL;
}

/* About the value on top of the stack. */
static int wrong_type(const reading *r, const char *name, const char *wanted) {
  rmq_failure_set(r->why, RMQ_KIND_HOOK, 0, "%s must be %s, not %s", name, wanted,
                  luaL_typename(r->L, -1));
  return RMQ_EINVAL;
}

/* Pushes a field as it is now, and returns its type. */
static int push(const reading *r, const char *name) {
  lua_pushstring(r->L, name);
  lua_rawget(r->L, r->message);
  return lua_type(r->L, -1);
}

static rmq_slice text_at(lua_State *L, int index) {
  rmq_slice text;
  text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

/* --- What must not be changed --- */

static int check_fixed(const reading *r) {
  unsigned fixed = RMQ_HOOKED_TOPIC | RMQ_HOOKED_FLAG | RMQ_HOOKED_WAIT;
  if (!(r->filled & fixed)) return 0;
  for (int n = 0; rmq_hooked_names.names[n]; n++) {
    if (!(r->filled & fixed & (1u << n))) continue;
    push(r, rmq_hooked_names.names[n]);
    rmq_lua_hook_push_message_field(r->L, r->attempt, n);
    bool same = lua_rawequal(r->L, -1, -2);
    lua_pop(r->L, 2);
    if (same) continue;
    rmq_failure_set(r->why, RMQ_KIND_HOOK, 0,
                    "%s cannot be changed by a hook, which may change body, tags, keys and "
                    "properties",
                    rmq_hooked_names.names[n]);
    return RMQ_EINVAL;
  }
  return 0;
}

/* Only looked for when something was assigned that is no field. */
static int check_names(const reading *r) {
  lua_State *L = r->L;
  lua_pushnil(L);
  while (lua_next(L, r->message)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(r, "a field's name", "a string");
    rmq_slice name = text_at(L, -1);
    if (rmq_names_has(&rmq_hooked_names, name)) continue;
    const char *nearest = rmq_names_nearest(&rmq_hooked_names, name);
    rmq_failure_set(r->why, RMQ_KIND_HOOK, 0, "it has the unknown field '%.*s'%s%s%s",
                    (int)(name.len < 64 ? name.len : 64), name.ptr,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return RMQ_EINVAL;
  }
  return 0;
}

/* --- The body --- */

static int read_body(const reading *r) {
  rmq_hook_attempt *attempt = r->attempt;
  int type = push(r, "body");
  if (type == LUA_TNIL) return refuse(r, "body is nil; a message must have one");
  if (type != LUA_TSTRING) return wrong_type(r, "body", "a string");
  rmq_slice body = text_at(r->L, -1), now = attempt->body;
  if (attempt->change->body) now = rmq_buf_slice(&attempt->change->new_body);
  bool same = body.ptr == now.ptr ? body.len == now.len : rmq_slice_equal(body, now);
  return same ? 0 : rmq_hook_set_body(attempt, body, r->why);
}

/* --- Tags, keys and properties --- */

static void add_key(reading *r, rmq_slice key) {
  rmq_lua_hooks *all = r->all;
  all->keys = rmq_list_room(all->keys, &all->keys_cap, r->users.n_keys, sizeof *all->keys);
  all->keys[r->users.n_keys++] = key;
}

static void add_property(reading *r, rmq_field property) {
  rmq_lua_hooks *all = r->all;
  all->properties = rmq_list_room(all->properties, &all->properties_cap, r->users.n_properties,
                                  sizeof *all->properties);
  all->properties[r->users.n_properties++] = property;
}

static int read_tags(reading *r) {
  int type = push(r, "tags");
  if (type == LUA_TNIL) return 0;
  if (type != LUA_TSTRING) return wrong_type(r, "tags", "a string");
  r->users.tags = text_at(r->L, -1);
  return 0;
}

static int read_key_list(reading *r) {
  lua_State *L = r->L;
  int list = lua_gettop(L);
  size_t n = lua_objlen(L, list), counted = 0;
  for (lua_pushnil(L); lua_next(L, list); lua_pop(L, 1)) counted++;
  if (counted != n) return refuse(r, "keys must be a string or a list of strings without gaps");
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, list, (int)i);
    if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(r, "each of keys", "a string");
    rmq_slice key = text_at(L, -1);
    if (key.len == 0 || memchr(key.ptr, ' ', key.len)) {
      return refuse(r, "one of keys is empty or has a space; RocketMQ separates keys with spaces");
    }
    add_key(r, key);
    lua_pop(L, 1);
  }
  return 0;
}

/* Puts what is on top of the stack into a field: later hooks see a table there, however this one has
 * written it. */
static void put(const reading *r, const char *name) {
  lua_pushstring(r->L, name);
  lua_insert(r->L, -2);
  lua_rawset(r->L, r->message);
}

static int read_keys(reading *r) {
  switch (push(r, "keys")) {
    case LUA_TNIL:
      lua_newtable(r->L);
      put(r, "keys");
      return 0;
    case LUA_TSTRING:
      add_key(r, text_at(r->L, -1)); /* it stays on the stack */
      rmq_lua_hook_push_keys(r->L, text_at(r->L, -1));
      put(r, "keys");
      return 0;
    case LUA_TTABLE:
      return read_key_list(r);
    default:
      return wrong_type(r, "keys", "a string or a list of strings");
  }
}

static int read_properties(reading *r) {
  lua_State *L = r->L;
  int type = push(r, "properties");
  if (type == LUA_TNIL) {
    lua_newtable(r->L);
    put(r, "properties");
    return 0;
  }
  if (type != LUA_TTABLE) return wrong_type(r, "properties", "a table of strings");
  int table = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      lua_pop(L, 1);
      return wrong_type(r, "each name in properties", "a string");
    }
    rmq_field field = {.name = text_at(L, -2)};
    if (lua_type(L, -1) != LUA_TSTRING) {
      char name[96];
      snprintf(name, sizeof name, "properties.%.64s", field.name.ptr);
      return wrong_type(r, name, "a string");
    }
    field.value = text_at(L, -1);
    add_property(r, field);
    lua_pop(L, 1);
  }
  return 0;
}

/* One string is made of all three, so what was not touched is read from the one that there is. */
static void keep_untouched(reading *r) {
  rmq_slice own = r->attempt->properties;
  rmq_field field;
  while (rmq_properties_next(&own, &field)) {
    if (rmq_slice_is(field.name, "TAGS")) {
      if (!(r->filled & RMQ_HOOKED_TAGS)) r->users.tags = field.value;
    } else if (rmq_slice_is(field.name, "KEYS")) {
      if (!(r->filled & RMQ_HOOKED_KEYS)) add_key(r, field.value);
    } else if (!(r->filled & RMQ_HOOKED_PROPERTIES) && rmq_message_is_users(field.name)) {
      add_property(r, field);
    }
  }
}

static int read_rest(reading *r) {
  keep_untouched(r);
  if ((r->filled & RMQ_HOOKED_TAGS) && read_tags(r) < 0) return RMQ_EINVAL;
  if ((r->filled & RMQ_HOOKED_KEYS) && read_keys(r) < 0) return RMQ_EINVAL;
  if ((r->filled & RMQ_HOOKED_PROPERTIES) && read_properties(r) < 0) return RMQ_EINVAL;
  r->users.keys = r->all->keys;
  r->users.properties = r->all->properties;
  return rmq_hook_set_properties(r->attempt, &r->users, r->why);
}

/* --- All of it --- */

static int read_all(reading *r) {
  unsigned rest = RMQ_HOOKED_TAGS | RMQ_HOOKED_KEYS | RMQ_HOOKED_PROPERTIES;
  if ((r->filled & RMQ_HOOKED_UNKNOWN) && check_names(r) < 0) return RMQ_EINVAL;
  if (check_fixed(r) < 0) return RMQ_EINVAL;
  if ((r->filled & RMQ_HOOKED_BODY) && read_body(r) < 0) return RMQ_EINVAL;
  return r->filled & rest ? read_rest(r) : 0;
}

int rmq_lua_hook_collect(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event,
                         rmq_failure *why) {
  int base = lua_gettop(L);
  reading r = {.L = L,
               .message = base + 2,
               .all = all,
               .attempt = event->changing,
               .filled = event->state->filled,
               .why = why};
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, base + 1, event->state->slot + 1);
  lua_rawgeti(L, base + 1, event->state->slot);
  lua_pushliteral(L, "message");
  lua_rawget(L, -2);
  bool replaced = !lua_rawequal(L, -1, r.message);
  lua_settop(L, r.message);
  int status = replaced ? refuse(&r,
                                 "ctx.message was replaced by another value; change its fields "
                                 "instead")
                        : read_all(&r);
  lua_settop(L, base);
  return status;
}

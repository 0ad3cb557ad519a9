#include "script/lua_hook_ctx.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/message.h"
#include "script/lua_failure.h"
#include "script/lua_names.h"
#include "script/lua_result.h"
#include "wire/properties.h"

enum { KEPT_ITEMS = 1024 };

/* The upvalues of the functions in the metatables. */
enum { BOX = 1, NUMBERS };

enum {
  CTX_MESSAGE,
  CTX_PRODUCER,
  CTX_GROUP,
  CTX_MODE,
  CTX_MESSAGE_TYPE,
  CTX_QUEUE,
  CTX_BROKER,
  CTX_ADDR,
  CTX_BORN_HOST,
  CTX_MSG_ID,
  CTX_TOPIC,
  CTX_ATTEMPT,
  CTX_ELAPSED_MS,
  CTX_WILL_RETRY,
  CTX_RESULT,
  CTX_ERR
};
static const char *const ctx_fields[] = {
    "message", "producer",  "group",  "mode",  "message_type", "queue",      "broker",
    "addr",    "born_host", "msg_id", "topic", "attempt",      "elapsed_ms", "will_retry",
    "result",  "err",       NULL};

/* In the order of their bits. */
static const char *const message_fields[] = {"topic",      "body", "tags", "keys",
                                             "properties", "flag", "wait", NULL};
static const rmq_names message_names = {"field", "ctx.message", message_fields};

/* --- Which event --- */

rmq_lua_hook_event *rmq_lua_hook_event_of(lua_State *L, const rmq_lua_hooks *all, int index) {
  const void *table = lua_topointer(L, index);
  for (rmq_lua_hook_event *event = all ? all->event : NULL; event; event = event->outer) {
    const rmq_lua_hook_state *state = event->state;
    if (state && (state->ctx == table || state->message == table)) return event;
  }
  return NULL;
}

static rmq_lua_hooks *all_of(lua_State *L) {
  rmq_lua_hooks *const *box = lua_touserdata(L, lua_upvalueindex(BOX));
  return *box;
}

/* The number of the field that is asked for (the string at 2), or -1. */
static int number_of(lua_State *L) {
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(NUMBERS));
  int number = lua_isnumber(L, -1) ? (int)lua_tointeger(L, -1) : -1;
  lua_pop(L, 1);
  return number;
}

static int refuse_over(lua_State *L) {
  return luaL_error(L,
                    "'%s' cannot be read any more: it is made when it is first read, and the hook "
                    "that this table was given to has returned; read it there",
                    lua_tostring(L, 2));
}

void rmq_lua_hook_push_new(lua_State *L, const rmq_lua_hooks *all, int metatable) {
  lua_createtable(L, 0, 4);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_rawgeti(L, -1, metatable);
  lua_setmetatable(L, -3);
  lua_pop(L, 1);
}

/* --- The fields of ctx --- */

static void push_slice(lua_State *L, rmq_slice text) {
  if (text.len == 0) {
    lua_pushnil(L);
  } else {
    lua_pushlstring(L, text.ptr, text.len);
  }
}

static bool has(rmq_slice properties, const char *name) {
  return rmq_properties_find(properties, name).ptr != NULL;
}

/* As Java names them, but that its newer ways to delay count, too. */
static const char *type_of(rmq_slice properties) {
  static const char *const delays[] = {"DELAY", "TIMER_DELAY_MS", "TIMER_DELAY_SEC",
                                       "TIMER_DELIVER_MS", "__STARTDELIVERTIME"};
  for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
    if (has(properties, delays[i])) return "delay";
  }
  return rmq_slice_is(rmq_properties_find(properties, "TRAN_MSG"), "true") ? "half" : "normal";
}

static const char *mode_name(rmq_mode mode) {
  static const char *const names[] = {"sync", "async", "oneway"};
  return names[mode];
}

/* The host of the client id, which ends at its first '@'. */
static void push_born_host(lua_State *L, const rmq_producer *producer) {
  const char *id = rmq_producer_client_id(producer);
  lua_pushlstring(L, id, strcspn(id, "@"));
}

static void push_self(lua_State *L, const rmq_lua_hooks *all) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_getfield(L, -1, "self");
  lua_rawgeti(L, -1, 1);
}

static void push_result(lua_State *L, const rmq_hook_attempt *attempt) {
  const rmq_completion *completion = attempt->completion;
  if (!completion || completion->failure || attempt->mode == RMQ_MODE_ONEWAY) {
    lua_pushnil(L);
    return;
  }
  rmq_lua_push_result_metatable(L);
  void *at = rmq_lua_push_result(L, rmq_result_size(completion), lua_gettop(L));
  rmq_result_write(at, completion);
}

static void push_err(lua_State *L, const rmq_hook_attempt *attempt) {
  const rmq_completion *completion = attempt->completion;
  if (completion && completion->failure) {
    rmq_lua_push_failure(L, completion->failure, attempt->msg_id);
  } else {
    lua_pushnil(L);
  }
}

static void push_queue(lua_State *L, const rmq_hook_attempt *attempt) {
  if (attempt->queue_id < 0) {
    lua_pushnil(L);
  } else {
    rmq_lua_push_queue(L, attempt->topic, attempt->broker, attempt->queue_id);
  }
}

static void push_message(lua_State *L, rmq_lua_hooks *all, rmq_lua_hook_state *state) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  if (!state->message) {
    rmq_lua_hook_push_new(L, all, RMQ_HOOK_KEPT_MESSAGE);
    state->message = lua_topointer(L, -1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, state->slot + 1);
    return;
  }
  lua_rawgeti(L, -1, state->slot + 1);
}

static void push_number_or_nil(lua_State *L, bool there, double value) {
  if (there) {
    lua_pushnumber(L, value);
  } else {
    lua_pushnil(L);
  }
}

static void push_field(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event, int n) {
  const rmq_hook_attempt *attempt = event->attempt;
  bool over = attempt->completion != NULL;
  switch (n) {
    case CTX_MESSAGE:
      push_message(L, all, event->state);
      break;
    case CTX_PRODUCER:
      push_self(L, all);
      break;
    case CTX_GROUP:
      lua_pushstring(L, rmq_producer_settings(attempt->producer)->group);
      break;
    case CTX_MODE:
      lua_pushstring(L, mode_name(attempt->mode));
      break;
    case CTX_MESSAGE_TYPE:
      lua_pushstring(L, type_of(attempt->properties));
      break;
    case CTX_QUEUE:
      push_queue(L, attempt);
      break;
    case CTX_BROKER:
      push_slice(L, attempt->broker);
      break;
    case CTX_ADDR:
      push_slice(L, attempt->addr);
      break;
    case CTX_BORN_HOST:
      push_born_host(L, attempt->producer);
      break;
    case CTX_MSG_ID:
      push_slice(L, attempt->msg_id);
      break;
    case CTX_TOPIC:
      push_slice(L, attempt->topic);
      break;
    case CTX_ATTEMPT:
      lua_pushinteger(L, attempt->attempt);
      break;
    case CTX_ELAPSED_MS:
      push_number_or_nil(L, over, (double)attempt->elapsed_us / 1000);
      break;
    case CTX_WILL_RETRY:
      lua_pushnil(L);
      if (over) lua_pushboolean(L, attempt->will_retry);
      break;
    case CTX_RESULT:
      push_result(L, attempt);
      break;
    default:
      push_err(L, attempt);
      break;
  }
}

/* Keeps what is on top of the stack in the table at 1, so that this function is not asked again. */
static int keep_field(lua_State *L) {
  if (lua_isnil(L, -1)) return 1;
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, 1);
  return 1;
}

static int ctx_index(lua_State *L) {
  int number = number_of(L);
  if (number < 0) return 0;
  rmq_lua_hooks *all = all_of(L);
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all, 1);
  if (!event) return refuse_over(L);
  push_field(L, all, event, number);
  return keep_field(L);
}

/* A hook may keep what it likes in its ctx; but what would be lost without a word is refused. */
static int ctx_newindex(lua_State *L) {
  size_t len;
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &len) : NULL;
  if (name) {
    if (number_of(L) >= 0) {
      return luaL_error(L, "ctx.%s cannot be set; a before hook changes the fields of ctx.message",
                        name);
    }
    if (rmq_names_has(&message_names, rmq_slice_make(name, len))) {
      return luaL_error(L, "ctx.%s is not what is sent; set ctx.message.%s", name, name);
    }
  }
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/* --- The fields of ctx.message --- */

static void push_keys(lua_State *L, rmq_slice properties) {
  rmq_slice keys = rmq_properties_find(properties, "KEYS");
  lua_newtable(L);
  for (int i = 1; keys.len > 0;) {
    const char *space = memchr(keys.ptr, ' ', keys.len);
    size_t len = space ? (size_t)(space - keys.ptr) : keys.len;
    if (len > 0) {
      lua_pushlstring(L, keys.ptr, len);
      lua_rawseti(L, -2, i++);
    }
    if (space) len++;
    keys.ptr += len;
    keys.len -= len;
  }
}

static void push_properties(lua_State *L, rmq_slice properties) {
  rmq_field field;
  lua_createtable(L, 0, 2);
  while (rmq_properties_next(&properties, &field)) {
    if (!rmq_message_is_users(field.name)) continue;
    lua_pushlstring(L, field.name.ptr, field.name.len);
    lua_pushlstring(L, field.value.ptr, field.value.len);
    lua_rawset(L, -3);
  }
}

static bool waits(rmq_slice properties) {
  return !rmq_slice_is(rmq_properties_find(properties, "WAIT"), "false");
}

static void push_message_field(lua_State *L, const rmq_hook_attempt *attempt, int n) {
  rmq_slice properties = attempt->properties;
  switch (1 << n) {
    case RMQ_HOOKED_TOPIC:
      push_slice(L, attempt->topic);
      break;
    case RMQ_HOOKED_BODY:
      push_slice(L, attempt->body);
      break;
    case RMQ_HOOKED_TAGS:
      push_slice(L, rmq_properties_find(properties, "TAGS"));
      break;
    case RMQ_HOOKED_KEYS:
      push_keys(L, properties);
      break;
    case RMQ_HOOKED_PROPERTIES:
      push_properties(L, properties);
      break;
    case RMQ_HOOKED_FLAG:
      lua_pushinteger(L, attempt->flag);
      break;
    default:
      lua_pushboolean(L, waits(properties));
      break;
  }
}

static int message_index(lua_State *L) {
  int number = number_of(L);
  if (number < 0) return 0;
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all_of(L), 1);
  if (!event) return refuse_over(L);
  if (event->state->filled & (1u << number)) return 0; /* it was set to nil */
  event->state->filled |= 1u << number;
  push_message_field(L, event->attempt, number);
  return keep_field(L);
}

static int message_newindex(lua_State *L) {
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all_of(L), 1);
  if (!event || !event->changing) {
    return luaL_error(L, "ctx.message can be changed by a before hook only, while it runs");
  }
  int number = number_of(L);
  event->state->filled |= number < 0 ? RMQ_HOOKED_UNKNOWN : 1u << number;
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/* --- What a hook has left in ctx.message, at MESSAGE --- */

enum { MESSAGE = 1, FIRST_FREE };

static int refuse(rmq_failure *why, const char *text) {
  rmq_failure_set(why, RMQ_KIND_HOOK, 0, "%s", text);
  return RMQ_EINVAL;
}

static int wrong_type(lua_State *L, rmq_failure *why, const char *name, const char *wanted) {
  rmq_failure_set(why, RMQ_KIND_HOOK, 0, "%s must be %s, not %s", name, wanted,
                  luaL_typename(L, -1));
  return RMQ_EINVAL;
}

/* Pushes a field as it is now. */
static void push_left(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  lua_rawget(L, MESSAGE);
}

static int check_fixed(lua_State *L, const rmq_lua_hook_event *event, rmq_failure *why) {
  unsigned fixed = RMQ_HOOKED_TOPIC | RMQ_HOOKED_FLAG | RMQ_HOOKED_WAIT;
  for (int n = 0; message_fields[n]; n++) {
    if (!(event->state->filled & fixed & (1u << n))) continue;
    push_left(L, message_fields[n]);
    push_message_field(L, event->attempt, n);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    if (same) continue;
    rmq_failure_set(why, RMQ_KIND_HOOK, 0,
                    "%s cannot be changed by a hook, which may change body, tags, keys and "
                    "properties",
                    message_fields[n]);
    return RMQ_EINVAL;
  }
  return 0;
}

/* Only looked for when something was assigned that is no field. */
static int check_names(lua_State *L, rmq_failure *why) {
  lua_pushnil(L);
  while (lua_next(L, MESSAGE)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(L, why, "a field's name", "a string");
    rmq_slice name;
    name.ptr = lua_tolstring(L, -1, &name.len);
    if (rmq_names_has(&message_names, name)) continue;
    const char *nearest = rmq_names_nearest(&message_names, name);
    rmq_failure_set(why, RMQ_KIND_HOOK, 0, "it has the unknown field '%.*s'%s%s%s",
                    (int)(name.len < 64 ? name.len : 64), name.ptr,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return RMQ_EINVAL;
  }
  return 0;
}

static int collect_body(lua_State *L, const rmq_lua_hook_event *event, rmq_failure *why) {
  rmq_hook_attempt *attempt = event->changing;
  push_left(L, "body");
  if (lua_isnil(L, -1)) return refuse(why, "body is nil; a message must have one");
  if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(L, why, "body", "a string");
  rmq_slice body, now = attempt->body;
  if (attempt->change->body) now = rmq_buf_slice(&attempt->change->new_body);
  body.ptr = lua_tolstring(L, -1, &body.len);
  bool same = body.len == now.len && (body.ptr == now.ptr || rmq_slice_equal(body, now));
  lua_pop(L, 1);
  return same ? 0 : rmq_hook_set_body(attempt, body, why);
}

/* Room for one more in a list of `count`. What one huge message needed is not kept. */
static void *room(void *list, size_t *cap, size_t count, size_t size) {
  if (count == 0 && *cap > KEPT_ITEMS) {
    free(list);
    list = NULL;
    *cap = 0;
  }
  if (count < *cap) return list;
  *cap = *cap ? *cap * 2 : 16;
  return rmq_realloc(list, *cap * size);
}

static void add_key(rmq_lua_hooks *all, rmq_message *users, rmq_slice key) {
  all->keys = room(all->keys, &all->keys_cap, users->n_keys, sizeof *all->keys);
  all->keys[users->n_keys++] = key;
}

static void add_property(rmq_lua_hooks *all, rmq_message *users, rmq_field property) {
  all->properties =
      room(all->properties, &all->properties_cap, users->n_properties, sizeof *all->properties);
  all->properties[users->n_properties++] = property;
}

/* The lists that are read stay on the stack, where they keep their texts. */
static int collect_keys(lua_State *L, rmq_lua_hooks *all, rmq_message *users, rmq_failure *why) {
  push_left(L, "keys");
  rmq_slice key;
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) == LUA_TSTRING) {
    key.ptr = lua_tolstring(L, -1, &key.len);
    add_key(all, users, key);
    return 0;
  }
  if (lua_type(L, -1) != LUA_TTABLE) {
    return wrong_type(L, why, "keys", "a string or a list of strings");
  }
  int list = lua_gettop(L);
  size_t n = lua_objlen(L, list), counted = 0;
  for (lua_pushnil(L); lua_next(L, list); lua_pop(L, 1)) counted++;
  if (counted != n) return refuse(why, "keys must be a string or a list of strings without gaps");
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, list, (int)i);
    if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(L, why, "each of keys", "a string");
    key.ptr = lua_tolstring(L, -1, &key.len);
    if (key.len == 0 || memchr(key.ptr, ' ', key.len)) {
      return refuse(why,
                    "one of keys is empty or has a space; RocketMQ separates keys with spaces");
    }
    add_key(all, users, key);
    lua_pop(L, 1);
  }
  return 0;
}

static int collect_properties(lua_State *L, rmq_lua_hooks *all, rmq_message *users,
                              rmq_failure *why) {
  push_left(L, "properties");
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) != LUA_TTABLE) return wrong_type(L, why, "properties", "a table of strings");
  int table = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      lua_pop(L, 1);
      return wrong_type(L, why, "each name in properties", "a string");
    }
    rmq_field field;
    field.name.ptr = lua_tolstring(L, -2, &field.name.len);
    if (lua_type(L, -1) != LUA_TSTRING) {
      char name[96];
      snprintf(name, sizeof name, "properties.%.64s", field.name.ptr);
      return wrong_type(L, why, name, "a string");
    }
    field.value.ptr = lua_tolstring(L, -1, &field.value.len);
    add_property(all, users, field);
    lua_pop(L, 1);
  }
  return 0;
}

static void keep_properties(rmq_lua_hooks *all, rmq_message *users, rmq_slice properties) {
  rmq_field field;
  while (rmq_properties_next(&properties, &field)) {
    if (rmq_message_is_users(field.name)) add_property(all, users, field);
  }
}

static int collect_tags(lua_State *L, rmq_message *users, rmq_failure *why) {
  push_left(L, "tags");
  if (lua_isnil(L, -1)) return 0;
  if (lua_type(L, -1) != LUA_TSTRING) return wrong_type(L, why, "tags", "a string");
  users->tags.ptr = lua_tolstring(L, -1, &users->tags.len);
  return 0;
}

/* Tags, keys and properties: one string is made of all, so what was not touched is read from the one
 * that there is. */
static int collect_rest(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event,
                        rmq_failure *why) {
  rmq_hook_attempt *attempt = event->changing;
  unsigned filled = event->state->filled;
  rmq_slice own = attempt->properties;
  rmq_message users = {.n_keys = 0};
  int status = 0;
  if (filled & RMQ_HOOKED_TAGS) {
    status = collect_tags(L, &users, why);
  } else {
    users.tags = rmq_properties_find(own, "TAGS");
  }
  if (status == 0 && (filled & RMQ_HOOKED_KEYS)) {
    status = collect_keys(L, all, &users, why);
  } else {
    rmq_slice keys = rmq_properties_find(own, "KEYS");
    if (keys.len > 0) add_key(all, &users, keys);
  }
  if (status == 0 && (filled & RMQ_HOOKED_PROPERTIES)) {
    status = collect_properties(L, all, &users, why);
  } else {
    keep_properties(all, &users, own);
  }
  users.keys = all->keys;
  users.properties = all->properties;
  return status < 0 ? status : rmq_hook_set_properties(attempt, &users, why);
}

static int collect(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event,
                   rmq_failure *why) {
  unsigned filled = event->state->filled;
  unsigned rest = RMQ_HOOKED_TAGS | RMQ_HOOKED_KEYS | RMQ_HOOKED_PROPERTIES;
  if ((filled & RMQ_HOOKED_UNKNOWN) && check_names(L, why) < 0) return RMQ_EINVAL;
  if (check_fixed(L, event, why) < 0) return RMQ_EINVAL;
  if ((filled & RMQ_HOOKED_BODY) && collect_body(L, event, why) < 0) return RMQ_EINVAL;
  return filled & rest ? collect_rest(L, all, event, why) : 0;
}

/* A C function of its own, whose stack has just what is looked at. */
typedef struct collecting {
  rmq_lua_hooks *all;
  const rmq_lua_hook_event *event;
  rmq_failure *why;
  int status;
} collecting;

static int run_collect(lua_State *L) {
  collecting *c = lua_touserdata(L, 2);
  lua_settop(L, MESSAGE);
  c->status = collect(L, c->all, c->event, c->why);
  return 0;
}

int rmq_lua_hook_collect(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event,
                         rmq_failure *why) {
  collecting c = {all, event, why, 0};
  int base = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, base + 1, event->state->slot);
  lua_pushliteral(L, "message");
  lua_rawget(L, base + 2);
  lua_rawgeti(L, base + 1, event->state->slot + 1);
  if (!lua_rawequal(L, -1, -2)) {
    c.status = refuse(why, "ctx.message was replaced by another value; change its fields instead");
  } else {
    lua_pushcfunction(L, run_collect);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, &c);
    lua_call(L, 2, 0);
  }
  lua_settop(L, base);
  return c.status;
}

/* --- The end of a transaction --- */

static void set_slice(lua_State *L, const char *name, rmq_slice text) {
  push_slice(L, text);
  lua_setfield(L, -2, name);
}

void rmq_lua_hook_push_transaction(lua_State *L, const rmq_hook_transaction *transaction) {
  lua_createtable(L, 0, 10);
  lua_pushstring(L, rmq_producer_settings(transaction->producer)->group);
  lua_setfield(L, -2, "group");
  set_slice(L, "topic", transaction->topic);
  set_slice(L, "broker", transaction->broker);
  set_slice(L, "addr", transaction->addr);
  set_slice(L, "msg_id", transaction->msg_id);
  set_slice(L, "transaction_id", transaction->transaction_id);
  lua_pushstring(L, transaction->state);
  lua_setfield(L, -2, "state");
  lua_pushboolean(L, transaction->from_check);
  lua_setfield(L, -2, "from_check");
  lua_createtable(L, 0, 5);
  set_slice(L, "topic", transaction->topic);
  set_slice(L, "body", transaction->body);
  set_slice(L, "tags", rmq_properties_find(transaction->properties, "TAGS"));
  push_keys(L, transaction->properties);
  lua_setfield(L, -2, "keys");
  push_properties(L, transaction->properties);
  lua_setfield(L, -2, "properties");
  lua_setfield(L, -2, "message");
}

/* --- Metatables --- */

/* Pushes a metatable whose functions know the box and the numbers of these fields. */
static void push_metatable(lua_State *L, int kept, const char *const *fields, lua_CFunction index,
                           lua_CFunction newindex) {
  lua_createtable(L, 0, 3);
  lua_getfield(L, kept, "box");
  lua_newtable(L);
  for (int i = 0; fields[i]; i++) {
    lua_pushinteger(L, i);
    lua_setfield(L, -2, fields[i]);
  }
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, index, 2);
  lua_setfield(L, -4, "__index");
  lua_pushcclosure(L, newindex, 2);
  lua_setfield(L, -2, "__newindex");
  lua_pushliteral(L, "hook");
  lua_setfield(L, -2, "__metatable");
}

void rmq_lua_hook_ctx_open(lua_State *L, int kept) {
  push_metatable(L, kept, ctx_fields, ctx_index, ctx_newindex);
  lua_rawseti(L, kept, RMQ_HOOK_KEPT_CTX);
  push_metatable(L, kept, message_fields, message_index, message_newindex);
  lua_rawseti(L, kept, RMQ_HOOK_KEPT_MESSAGE);
}

#include "binding/lua_hook_ctx.h"

#include <lauxlib.h>
#include <string.h>

#include "binding/lua_failure.h"
#include "binding/lua_names.h"
#include "binding/lua_result.h"
#include "producer/message.h"
#include "wire/properties.h"

/* The upvalues of the functions in the metatables. */
enum { BOX = 1, SLOTS, MESSAGE_METATABLE };

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

static const char *const message_fields[] = {"topic",      "body", "tags", "keys",
                                             "properties", "flag", "wait", NULL};
const rmq_names rmq_hooked_names = {"field", "ctx.message", message_fields};

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

/* The number of the field that is asked for (at 2), or -1. */
static int number_of(lua_State *L, const char *const *names, int n) {
  const char *name = lua_tostring(L, 2); /* of a copy, should it be a number */
  for (int i = 0; i < n; i++) {
    if (names[i] == name) return i;
  }
  return -1;
}

static int ctx_number(lua_State *L, const rmq_lua_hooks *all) {
  return number_of(L, all->ctx_names, RMQ_HOOK_CTX_FIELDS);
}

static int message_number(lua_State *L, const rmq_lua_hooks *all) {
  return number_of(L, all->message_names, RMQ_HOOK_MESSAGE_FIELDS);
}

/* A field is asked for of which there is nothing to make it. Other names are nil as ever. */
static int refuse_over(lua_State *L, const char *const *fields) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  while (*fields && strcmp(*fields, name) != 0) fields++;
  if (!*fields) return 0;
  return luaL_error(L,
                    "'%s' cannot be read any more: it is made when it is first read, and the hook "
                    "that this table was given to has returned; read it there",
                    name);
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
    rmq_lua_push_queue(L, attempt->topic, rmq_slice_text(attempt->broker), attempt->queue_id);
  }
}

static void push_message(lua_State *L, rmq_lua_hook_state *state) {
  if (state->message) {
    lua_rawgeti(L, lua_upvalueindex(SLOTS), state->slot + 1);
    return;
  }
  lua_createtable(L, 0, 4);
  lua_pushvalue(L, lua_upvalueindex(MESSAGE_METATABLE));
  lua_setmetatable(L, -2);
  state->message = lua_topointer(L, -1);
  lua_pushvalue(L, -1);
  lua_rawseti(L, lua_upvalueindex(SLOTS), state->slot + 1);
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
      push_message(L, event->state);
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
      lua_pushstring(L, attempt->broker);
      break;
    case CTX_ADDR:
      lua_pushstring(L, attempt->addr);
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
  rmq_lua_hooks *all = all_of(L);
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all, 1);
  if (!event) return refuse_over(L, ctx_fields);
  int number = ctx_number(L, all);
  if (number < 0) return 0;
  push_field(L, all, event, number);
  return keep_field(L);
}

/* A hook may keep what it likes in its ctx; but what would be lost without a word is refused. */
static int ctx_newindex(lua_State *L) {
  size_t len;
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &len) : NULL;
  const rmq_lua_hooks *all = all_of(L);
  if (name && all) {
    if (ctx_number(L, all) >= 0) {
      return luaL_error(L, "ctx.%s cannot be set; a before hook changes the fields of ctx.message",
                        name);
    }
    if (rmq_names_has(&rmq_hooked_names, rmq_slice_make(name, len))) {
      return luaL_error(L, "ctx.%s is not what is sent; set ctx.message.%s", name, name);
    }
  }
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/* --- The fields of ctx.message --- */

void rmq_lua_hook_forget_message(lua_State *L, const rmq_lua_hooks *all,
                                 rmq_lua_hook_state *state) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_pushboolean(L, false);
  lua_rawseti(L, -2, state->slot + 1);
  lua_rawgeti(L, -1, state->slot);
  lua_pushliteral(L, "message");
  lua_pushnil(L);
  lua_rawset(L, -3);
  lua_pop(L, 2);
  state->message = NULL;
  state->filled = 0;
}

void rmq_lua_hook_push_keys(lua_State *L, rmq_slice keys) {
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

static void push_keys(lua_State *L, rmq_slice properties) {
  rmq_lua_hook_push_keys(L, rmq_properties_find(properties, "KEYS"));
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

void rmq_lua_hook_push_message_field(lua_State *L, const rmq_hook_attempt *attempt, int n) {
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
  const rmq_lua_hooks *all = all_of(L);
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all, 1);
  if (!event) return refuse_over(L, message_fields);
  int number = message_number(L, all);
  if (number < 0) return 0;
  if (event->state->filled & (1u << number)) return 0; /* it was set to nil */
  event->state->filled |= 1u << number;
  rmq_lua_hook_push_message_field(L, event->attempt, number);
  return keep_field(L);
}

static int message_newindex(lua_State *L) {
  const rmq_lua_hooks *all = all_of(L);
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all, 1);
  if (!event || !event->changing) {
    return luaL_error(L, "ctx.message can be changed by a before hook only, while it runs");
  }
  int number = message_number(L, all);
  event->state->filled |= number < 0 ? RMQ_HOOKED_UNKNOWN : 1u << number;
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
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

/* Sets a function of the metatable below the `n` values on top, which it takes. */
static void set_function(lua_State *L, const char *name, lua_CFunction function, int n) {
  lua_pushcclosure(L, function, n);
  lua_setfield(L, -2, name);
}

/* Pushes what the functions know: the box, the slots, and the metatable of ctx.message. */
static int push_upvalues(lua_State *L, const rmq_lua_hooks *all, int kept) {
  lua_getfield(L, kept, "box");
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, kept, RMQ_HOOK_KEPT_MESSAGE);
  return 3;
}

static void push_metatable(lua_State *L, const rmq_lua_hooks *all, int kept, lua_CFunction index,
                           lua_CFunction newindex) {
  lua_createtable(L, 0, 3);
  set_function(L, "__index", index, push_upvalues(L, all, kept));
  set_function(L, "__newindex", newindex, push_upvalues(L, all, kept));
  lua_pushliteral(L, "hook");
  lua_setfield(L, -2, "__metatable");
}

/* Notes the names' addresses; the table `kept` keeps the names. */
static void note_names(lua_State *L, int kept, const char *const *fields, const char **names) {
  for (int i = 0; fields[i]; i++) {
    lua_pushstring(L, fields[i]);
    names[i] = lua_tostring(L, -1);
    lua_pushvalue(L, -1);
    lua_rawset(L, kept);
  }
}

void rmq_lua_hook_ctx_open(lua_State *L, rmq_lua_hooks *all, int kept) {
  lua_newtable(L);
  note_names(L, lua_gettop(L), ctx_fields, all->ctx_names);
  note_names(L, lua_gettop(L), message_fields, all->message_names);
  lua_setfield(L, kept, "names");
  push_metatable(L, all, kept, message_index, message_newindex);
  lua_rawseti(L, kept, RMQ_HOOK_KEPT_MESSAGE);
  push_metatable(L, all, kept, ctx_index, ctx_newindex);
  lua_rawseti(L, kept, RMQ_HOOK_KEPT_CTX);
}

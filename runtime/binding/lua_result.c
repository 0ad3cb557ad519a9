#include "binding/lua_result.h"

#include <lauxlib.h>
#include <string.h>

#include "binding/lua_failure.h"

#define RESULT "rocketmq.result"
#define QUEUE "rocketmq.queue"
#define INT64 "rocketmq.int64"

/* The texts of a result, in the order in which they follow its head. */
enum { MSG_ID, OFFSET_MSG_ID, TOPIC, BROKER, TRANSACTION_ID, REGION_ID, RECALL_HANDLE, TEXTS };

typedef struct result_head {
  int64_t queue_offset;
  int64_t elapsed_us;
  int32_t queue_id;
  int32_t attempts;
  uint8_t status;
  bool has_reply;
  bool trace_on;
  uint8_t transaction;  /* 0, or one more than the state of the transaction */
  uint8_t present;      /* one bit a text: it is there, and not nil */
  uint32_t ends[TEXTS]; /* where each text ends, counted from the end of the head */
} result_head;

typedef struct queue_head {
  int32_t id;
  uint32_t topic_len;
  uint32_t broker_len;
  uint32_t place;
} queue_head;

size_t rmq_result_size(const rmq_completion *completion) {
  const rmq_send_reply *reply = completion->reply;
  size_t size =
      sizeof(result_head) + completion->msg_id.len + completion->topic.len + completion->broker.len;
  if (!reply) return size;
  return size + reply->msg_id.len + reply->transaction_id.len + reply->region_id.len +
         reply->recall_handle.len;
}

/* Adds a text behind those before it. They are written in the order of their numbers. */
static void write_text(result_head *head, int i, rmq_slice text) {
  uint32_t start = i == 0 ? 0 : head->ends[i - 1];
  head->ends[i] = start + (uint32_t)text.len;
  if (!text.ptr) return;
  head->present = (uint8_t)(head->present | (1u << i));
  memcpy((char *)(head + 1) + start, text.ptr, text.len);
}

void rmq_result_write(void *at, const rmq_completion *completion) {
  static const rmq_send_reply no_reply;
  const rmq_send_reply *reply = completion->reply ? completion->reply : &no_reply;
  result_head *head = at;
  head->queue_offset = reply->queue_offset;
  head->elapsed_us = completion->elapsed_us;
  head->queue_id = reply->queue_id;
  head->attempts = completion->attempts;
  head->status = (uint8_t)completion->status;
  head->has_reply = completion->reply != NULL;
  head->trace_on = reply->trace_on;
  head->transaction = 0;
  head->present = 0;
  write_text(head, MSG_ID, completion->msg_id);
  write_text(head, OFFSET_MSG_ID, reply->msg_id);
  write_text(head, TOPIC, completion->topic);
  write_text(head, BROKER, completion->broker);
  write_text(head, TRANSACTION_ID, reply->transaction_id);
  write_text(head, REGION_ID, reply->region_id);
  write_text(head, RECALL_HANDLE, reply->recall_handle);
}

void rmq_lua_push_result_metatable(lua_State *L) { luaL_getmetatable(L, RESULT); }

void *rmq_lua_push_result(lua_State *L, size_t size, int metatable) {
  void *at = lua_newuserdata(L, size);
  lua_pushvalue(L, metatable);
  lua_setmetatable(L, -2);
  return at;
}

static rmq_slice result_text(const result_head *head, int i) {
  if (!(head->present & (1u << i))) return (rmq_slice){NULL, 0};
  uint32_t start = i == 0 ? 0 : head->ends[i - 1];
  return rmq_slice_make((const char *)(head + 1) + start, head->ends[i] - start);
}

static void push_slice(lua_State *L, rmq_slice text) {
  if (text.ptr) {
    lua_pushlstring(L, text.ptr, text.len);
  } else {
    lua_pushnil(L);
  }
}

void rmq_lua_push_int64(lua_State *L, int64_t value) {
  const int64_t exact = INT64_C(1) << 53;
  if (value > -exact && value < exact) {
    lua_pushnumber(L, (double)value);
    return;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, INT64);
  lua_pushnumber(L, (double)(value >> 32));
  lua_pushnumber(L, (double)(value & INT64_C(0xffffffff)));
  lua_call(L, 2, 1);
}

static void push_result_queue(lua_State *L, const result_head *head) {
  rmq_lua_push_queue(L, result_text(head, TOPIC), result_text(head, BROKER), head->queue_id);
}

/* What a script can read, in the order of `result_names`. */
enum {
  FIELD_STATUS = 1,
  FIELD_MSG_ID,
  FIELD_OFFSET_MSG_ID,
  FIELD_QUEUE,
  FIELD_QUEUE_OFFSET,
  FIELD_TRANSACTION_ID,
  FIELD_REGION_ID,
  FIELD_TRACE_ON,
  FIELD_RECALL_HANDLE,
  FIELD_ATTEMPTS,
  FIELD_ELAPSED_MS,
  FIELD_TRANSACTION_STATE
};

static const char *const result_names[] = {
    "status",    "msg_id",   "offset_msg_id", "queue",    "queue_offset", "transaction_id",
    "region_id", "trace_on", "recall_handle", "attempts", "elapsed_ms",   "transaction_state",
    NULL};

static void push_result_field(lua_State *L, const result_head *head, int field) {
  switch (field) {
    case FIELD_STATUS:
      lua_pushstring(L, rmq_send_status_name((rmq_send_status)head->status));
      return;
    case FIELD_MSG_ID:
      push_slice(L, result_text(head, MSG_ID));
      return;
    case FIELD_TRANSACTION_ID:
      push_slice(L, result_text(head, TRANSACTION_ID));
      return;
    case FIELD_RECALL_HANDLE:
      push_slice(L, result_text(head, RECALL_HANDLE));
      return;
    case FIELD_OFFSET_MSG_ID:
      push_slice(L, result_text(head, OFFSET_MSG_ID));
      return;
    case FIELD_REGION_ID:
      push_slice(L, result_text(head, REGION_ID));
      return;
    case FIELD_ATTEMPTS:
      lua_pushinteger(L, head->attempts);
      return;
    case FIELD_ELAPSED_MS:
      lua_pushnumber(L, (double)head->elapsed_us / 1000);
      return;
    case FIELD_TRANSACTION_STATE:
      if (head->transaction == 0) {
        lua_pushnil(L);
      } else {
        lua_pushstring(L,
                       rmq_transaction_state_name((rmq_transaction_state)(head->transaction - 1)));
      }
      return;
    default:
      break;
  }
  /* The others are known only from a reply. */
  if (!head->has_reply) {
    lua_pushnil(L);
  } else if (field == FIELD_QUEUE) {
    push_result_queue(L, head);
  } else if (field == FIELD_QUEUE_OFFSET) {
    rmq_lua_push_int64(L, head->queue_offset);
  } else {
    lua_pushboolean(L, head->trace_on);
  }
}

/* Upvalue 1 of an __index: name to field number, or to a method. Leaves the number, or 0 with the
 * value to return on top. */
static int look_up(lua_State *L) {
  lua_settop(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  return lua_type(L, -1) == LUA_TNUMBER ? (int)lua_tointeger(L, -1) : 0;
}

static int result_index(lua_State *L) {
  const result_head *head = luaL_checkudata(L, 1, RESULT);
  int field = look_up(L);
  if (field != 0) push_result_field(L, head, field);
  return 1;
}

void rmq_lua_result_set_transaction(lua_State *L, int index, rmq_transaction_state state) {
  result_head *head = luaL_checkudata(L, index, RESULT);
  head->transaction = (uint8_t)(state + 1);
}

static int result_tostring(lua_State *L) {
  const result_head *head = luaL_checkudata(L, 1, RESULT);
  lua_pushstring(L, rmq_send_status_name((rmq_send_status)head->status));
  if (head->has_reply) {
    lua_pushliteral(L, " in ");
    push_result_queue(L, head);
    luaL_callmeta(L, -1, "__tostring");
    lua_remove(L, -2);
    lua_pushliteral(L, " at offset ");
    rmq_buf digits = {0};
    rmq_buf_decimal(&digits, head->queue_offset);
    lua_pushlstring(L, (const char *)rmq_buf_head(&digits), rmq_buf_len(&digits));
    rmq_buf_free(&digits);
  }
  lua_pushliteral(L, ", msg_id ");
  push_slice(L, result_text(head, MSG_ID));
  if (lua_isnil(L, -1)) lua_pop(L, 2);
  lua_concat(L, lua_gettop(L) - 1);
  return 1;
}

/* The queue's parts as a table, in place of the userdata on top. */
static void flatten_queue(lua_State *L) {
  lua_createtable(L, 0, 3);
  const char *const names[] = {"topic", "broker", "id"};
  for (int i = 0; i < 3; i++) {
    lua_getfield(L, -2, names[i]);
    lua_setfield(L, -2, names[i]);
  }
  lua_remove(L, -2);
}

static int result_fields(lua_State *L) {
  const result_head *head = luaL_checkudata(L, 1, RESULT);
  lua_createtable(L, 0, 11);
  for (int field = FIELD_STATUS; result_names[field - 1]; field++) {
    push_result_field(L, head, field);
    if (field == FIELD_QUEUE && !lua_isnil(L, -1)) flatten_queue(L);
    lua_setfield(L, -2, result_names[field - 1]);
  }
  return 1;
}

/* --- Queues --- */

void *rmq_lua_push_queue(lua_State *L, rmq_slice topic, rmq_slice broker, int32_t id) {
  queue_head *head = lua_newuserdata(L, sizeof *head + topic.len + broker.len);
  head->id = id;
  head->topic_len = (uint32_t)topic.len;
  head->broker_len = (uint32_t)broker.len;
  head->place = UINT32_MAX;
  char *text = (char *)(head + 1);
  if (topic.len) memcpy(text, topic.ptr, topic.len);
  if (broker.len) memcpy(text + topic.len, broker.ptr, broker.len);
  luaL_getmetatable(L, QUEUE);
  lua_setmetatable(L, -2);
  return head;
}

void rmq_lua_push_queue_metatable(lua_State *L) { luaL_getmetatable(L, QUEUE); }

void rmq_lua_queue_set_place(void *queue, uint32_t place) { ((queue_head *)queue)->place = place; }
uint32_t rmq_lua_queue_place(const void *queue) { return ((const queue_head *)queue)->place; }

static rmq_slice queue_topic(const queue_head *head) {
  return rmq_slice_make(head + 1, head->topic_len);
}

static rmq_slice queue_broker(const queue_head *head) {
  return rmq_slice_make((const char *)(head + 1) + head->topic_len, head->broker_len);
}

static const queue_head *to_queue(lua_State *L, int index) {
  const queue_head *head = lua_touserdata(L, index);
  if (!head || !lua_getmetatable(L, index)) return NULL;
  luaL_getmetatable(L, QUEUE);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? head : NULL;
}

bool rmq_lua_to_queue(lua_State *L, int index, rmq_slice *topic, rmq_slice *broker, int32_t *id) {
  const queue_head *head = to_queue(L, index);
  if (!head) return false;
  *topic = queue_topic(head);
  *broker = queue_broker(head);
  *id = head->id;
  return true;
}

enum { QUEUE_TOPIC = 1, QUEUE_BROKER, QUEUE_ID };
static const char *const queue_names[] = {"topic", "broker", "id", NULL};

static int queue_index(lua_State *L) {
  const queue_head *head = luaL_checkudata(L, 1, QUEUE);
  switch (look_up(L)) {
    case QUEUE_TOPIC:
      push_slice(L, queue_topic(head));
      break;
    case QUEUE_BROKER:
      push_slice(L, queue_broker(head));
      break;
    case QUEUE_ID:
      lua_pushinteger(L, head->id);
      break;
    default:
      break;
  }
  return 1;
}

static int queue_equal(lua_State *L) {
  const queue_head *a = to_queue(L, 1), *b = to_queue(L, 2);
  lua_pushboolean(L, a && b && a->id == b->id && rmq_slice_equal(queue_topic(a), queue_topic(b)) &&
                         rmq_slice_equal(queue_broker(a), queue_broker(b)));
  return 1;
}

static int queue_tostring(lua_State *L) {
  const queue_head *head = luaL_checkudata(L, 1, QUEUE);
  push_slice(L, queue_topic(head));
  lua_pushliteral(L, "@");
  push_slice(L, queue_broker(head));
  lua_pushfstring(L, "#%d", (int)head->id);
  lua_concat(L, 4);
  return 1;
}

/* --- Metatables --- */

/* A value that has a tostring can stand in a concatenation too. */
static int concat(lua_State *L) {
  for (int i = 1; i <= 2; i++) {
    if (!luaL_callmeta(L, i, "__tostring")) lua_pushvalue(L, i);
  }
  lua_concat(L, 2);
  return 1;
}

/* The metatable on top gets an __index that knows these names; `method`, when not NULL, is the one
 * method "fields". */
static void set_index(lua_State *L, lua_CFunction index, const char *const *names,
                      lua_CFunction method) {
  lua_newtable(L);
  for (int i = 0; names[i]; i++) {
    lua_pushinteger(L, i + 1);
    lua_setfield(L, -2, names[i]);
  }
  if (method) {
    lua_pushcfunction(L, method);
    lua_setfield(L, -2, "fields");
  }
  lua_pushcclosure(L, index, 1);
  lua_setfield(L, -2, "__index");
}

static void set_function(lua_State *L, const char *name, lua_CFunction function) {
  lua_pushcfunction(L, function);
  lua_setfield(L, -2, name);
}

void rmq_lua_results_open(lua_State *L) {
  if (luaL_newmetatable(L, RESULT)) {
    set_index(L, result_index, result_names, result_fields);
    set_function(L, "__tostring", result_tostring);
    set_function(L, "__concat", concat);
    lua_pushliteral(L, "result");
    lua_setfield(L, -2, "__metatable");
  }
  if (luaL_newmetatable(L, QUEUE)) {
    set_index(L, queue_index, queue_names, NULL);
    set_function(L, "__tostring", queue_tostring);
    set_function(L, "__concat", concat);
    set_function(L, "__eq", queue_equal);
    lua_pushliteral(L, "queue");
    lua_setfield(L, -2, "__metatable");
  }
  luaL_newmetatable(L, RMQ_LUA_ERROR);
  lua_pop(L, 3);
}

void rmq_lua_results_set_int64(lua_State *L) { lua_setfield(L, LUA_REGISTRYINDEX, INT64); }

/* Properties, batches and routes of `rocketmq.wire`. */
#include <stdlib.h>

#include "base/error.h"
#include "binding/wire/lua_wire_parts.h"
#include "wire/batch.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/properties.h"

/* --- Properties --------------------------------------------------------------------------------- */

/* The pairs of the table in argument 1, sorted by name, in a block that is pushed. */
static rmq_field *pairs_argument(lua_State *L, size_t *count) {
  size_t n = 0;
  luaL_checktype(L, 1, LUA_TTABLE);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) n++;
  rmq_field *pairs = lua_newuserdata(L, (n + 1) * sizeof *pairs);
  *count = n;
  n = 0;
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
      luaL_error(L, "wire.encode_properties: names and values must be strings");
    }
    pairs[n].name = rmq_wire_check_text(L, -2);
    pairs[n++].value = rmq_wire_check_text(L, -1);
  }
  qsort(pairs, n, sizeof *pairs, rmq_wire_compare_fields);
  return pairs;
}

/* Where byte 1 or 2 stands in a text, counted from 1; 0 when it has none. */
static int separator_at(rmq_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] == 1 || text.ptr[i] == 2) return (int)i + 1;
  }
  return 0;
}

static int fail_pair(lua_State *L, const rmq_field *pair) {
  int at = separator_at(pair->name);
  if (pair->name.len == 0) return rmq_wire_fail(L, "the name of a property is empty");
  if (at) {
    return rmq_wire_fail(L, "the name of property '%s' has a separator (byte %d at position %d)",
                         pair->name.ptr, pair->name.ptr[at - 1], at);
  }
  if (pair->value.len == 0) {
    return rmq_wire_fail(L, "the value of property '%s' is empty; consumers would not see it",
                         pair->name.ptr);
  }
  at = separator_at(pair->value);
  return rmq_wire_fail(L, "the value of property '%s' has a separator (byte %d at position %d)",
                       pair->name.ptr, pair->value.ptr[at - 1], at);
}

static int encode_properties(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  size_t count;
  rmq_field *pairs = pairs_argument(L, &count);
  for (size_t i = 0; i < count; i++) {
    if (rmq_properties_put(&room->out, pairs[i].name, pairs[i].value) != 0) {
      return fail_pair(L, &pairs[i]);
    }
  }
  if (rmq_buf_len(&room->out) > RMQ_PROPERTIES_MAX) {
    return rmq_wire_fail(L, "the properties take %d bytes together, %d are allowed",
                         (int)rmq_buf_len(&room->out), RMQ_PROPERTIES_MAX);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

static int decode_properties(lua_State *L) {
  rmq_slice rest = rmq_wire_check_text(L, 1);
  rmq_field pair;
  lua_newtable(L);
  while (rmq_properties_next(&rest, &pair)) {
    rmq_wire_push_slice(L, pair.name);
    rmq_wire_push_slice(L, pair.value);
    lua_rawset(L, -3);
  }
  return 1;
}

/* --- Batches ------------------------------------------------------------------------------------ */

static int encode_batch(lua_State *L) {
  static const char *const names[] = {"flag", "body", "properties", NULL};
  static const char function[] = "wire.encode_batch";
  rmq_wire_room *room = rmq_wire_room_of(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  size_t count = lua_objlen(L, 1);
  for (size_t i = 1; i <= count; i++) {
    lua_rawgeti(L, 1, (int)i);
    rmq_wire_args args = rmq_wire_args_open(L, lua_gettop(L), function, names);
    rmq_batch_member member = {.flag = rmq_wire_args_i32(&args, "flag", 0),
                               .body = rmq_wire_args_text(&args, "body", ""),
                               .properties = rmq_wire_args_text(&args, "properties", "")};
    if (rmq_batch_put(&room->out, &member) != 0) {
      return luaL_error(L, "%s: the properties of member %d are longer than %d bytes", function,
                        (int)i, RMQ_PROPERTIES_MAX);
    }
    lua_pop(L, 1);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

static int decode_batch(lua_State *L) {
  rmq_slice rest = rmq_wire_check_text(L, 1);
  rmq_batch_member member;
  lua_newtable(L);
  for (int i = 1;; i++) {
    int got = rmq_batch_next(&rest, &member);
    if (got == 0) return 1;
    if (got < 0) return rmq_wire_fail(L, "member %d of the batch is damaged", i);
    lua_createtable(L, 0, 3);
    rmq_wire_set_i64(L, "flag", member.flag);
    rmq_wire_push_slice(L, member.body);
    lua_setfield(L, -2, "body");
    rmq_wire_push_slice(L, member.properties);
    lua_setfield(L, -2, "properties");
    lua_rawseti(L, -2, i);
  }
}

/* --- Routes ------------------------------------------------------------------------------------- */

static void push_queues(lua_State *L, const rmq_route_data *route) {
  lua_createtable(L, (int)route->n_queues, 0);
  for (size_t i = 0; i < route->n_queues; i++) {
    const rmq_queue_data *queue = &route->queues[i];
    lua_createtable(L, 0, 5);
    rmq_wire_set_text(L, "broker_name", queue->broker_name);
    rmq_wire_set_i64(L, "read_queue_nums", queue->read_queue_nums);
    rmq_wire_set_i64(L, "write_queue_nums", queue->write_queue_nums);
    rmq_wire_set_i64(L, "perm", queue->perm);
    rmq_wire_set_i64(L, "topic_sys_flag", queue->topic_sys_flag);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void push_brokers(lua_State *L, const rmq_route_data *route) {
  lua_createtable(L, (int)route->n_brokers, 0);
  for (size_t i = 0; i < route->n_brokers; i++) {
    const rmq_broker_data *broker = &route->brokers[i];
    lua_createtable(L, 0, 3);
    rmq_wire_set_text(L, "cluster", broker->cluster);
    rmq_wire_set_text(L, "broker_name", broker->broker_name);
    lua_newtable(L);
    for (size_t j = 0; j < broker->n_addrs; j++) {
      rmq_wire_push_i64(L, broker->addrs[j].id);
      rmq_wire_push_slice(L, broker->addrs[j].addr);
      lua_rawset(L, -3);
    }
    lua_setfield(L, -2, "addrs");
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static int decode_route(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  char why[120];
  if (rmq_route_data_decode(rmq_wire_check_text(L, 1), &room->route, why, sizeof why) != 0) {
    return rmq_wire_fail(L, "%s", why);
  }
  lua_createtable(L, 0, 3);
  rmq_wire_set_text(L, "order_topic_conf", room->route.order_topic_conf);
  push_queues(L, &room->route);
  lua_setfield(L, -2, "queues");
  push_brokers(L, &room->route);
  lua_setfield(L, -2, "brokers");
  rmq_route_data_free(&room->route);
  return 1;
}

static const char encode_route_name[] = "wire.encode_route";

static void put_text(rmq_buf *out, const char *key, rmq_slice value) {
  rmq_buf_text(out, key);
  rmq_json_quote(out, value);
}

static void put_int(rmq_buf *out, const char *key, int64_t value) {
  rmq_buf_text(out, key);
  rmq_buf_decimal(out, value);
}

static void put_queue(lua_State *L, rmq_buf *out) {
  static const char *const names[] = {"broker_name", "read_queue_nums", "write_queue_nums",
                                      "perm",        "topic_sys_flag",  NULL};
  rmq_wire_args args = rmq_wire_args_open(L, lua_gettop(L), encode_route_name, names);
  put_text(out, "{\"brokerName\":", rmq_wire_args_text(&args, "broker_name", NULL));
  put_int(out, ",\"perm\":", rmq_wire_args_i32(&args, "perm", 6));
  put_int(out, ",\"readQueueNums\":", rmq_wire_args_i32(&args, "read_queue_nums", 4));
  put_int(out, ",\"topicSysFlag\":", rmq_wire_args_i32(&args, "topic_sys_flag", 0));
  put_int(out, ",\"writeQueueNums\":", rmq_wire_args_i32(&args, "write_queue_nums", 4));
  rmq_buf_u8(out, '}');
}

static int compare_ids(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left;
  int64_t b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* The ids of the address table on top of the stack, ascending, in a block that is pushed. */
static int64_t *address_ids(lua_State *L, size_t *count) {
  int table = lua_gettop(L);
  size_t n = 0;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) n++;
  int64_t *ids = lua_newuserdata(L, (n + 1) * sizeof *ids);
  *count = n;
  n = 0;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TNUMBER || lua_type(L, -1) != LUA_TSTRING) {
      luaL_error(L, "%s: 'addrs' must have numbers as keys and addresses as values",
                 encode_route_name);
    }
    ids[n++] = (int64_t)lua_tonumber(L, -2);
  }
  qsort(ids, n, sizeof *ids, compare_ids);
  return ids;
}

static void put_addrs(lua_State *L, rmq_buf *out, bool bare) {
  int table = lua_gettop(L);
  size_t count;
  int64_t *ids = address_ids(L, &count);
  for (size_t i = 0; i < count; i++) {
    if (i) rmq_buf_u8(out, ',');
    if (!bare) rmq_buf_u8(out, '"');
    rmq_buf_decimal(out, ids[i]);
    rmq_buf_text(out, bare ? ":" : "\":");
    lua_pushnumber(L, (lua_Number)ids[i]);
    lua_rawget(L, table);
    rmq_json_quote(out, rmq_wire_check_text(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void put_broker(lua_State *L, rmq_buf *out, bool bare) {
  static const char *const names[] = {"cluster", "broker_name", "addrs", NULL};
  rmq_wire_args args = rmq_wire_args_open(L, lua_gettop(L), encode_route_name, names);
  rmq_buf_text(out, "{\"brokerAddrs\":{");
  if (rmq_wire_args_table(&args, "addrs")) {
    put_addrs(L, out, bare);
    lua_pop(L, 1);
  }
  put_text(out, "},\"brokerName\":", rmq_wire_args_text(&args, "broker_name", NULL));
  put_text(out, ",\"cluster\":", rmq_wire_args_text(&args, "cluster", "DefaultCluster"));
  rmq_buf_u8(out, '}');
}

static void put_list(lua_State *L, const rmq_wire_args *args, const char *name, rmq_buf *out,
                     bool bare) {
  if (!rmq_wire_args_table(args, name)) return;
  size_t count = lua_objlen(L, -1);
  for (size_t i = 1; i <= count; i++) {
    if (i > 1) rmq_buf_u8(out, ',');
    lua_rawgeti(L, -1, (int)i);
    if (name[0] == 'b') {
      put_broker(L, out, bare);
    } else {
      put_queue(L, out);
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static int encode_route(lua_State *L) {
  static const char *const names[] = {"order_topic_conf", "queues", "brokers", NULL};
  static const char *const spellings[] = {"standard", "bare", NULL};
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_buf *out = &room->out;
  rmq_wire_args args = rmq_wire_args_open(L, 1, encode_route_name, names);
  bool bare = luaL_checkoption(L, 2, "standard", spellings) == 1;
  rmq_buf_text(out, "{\"brokerDatas\":[");
  put_list(L, &args, "brokers", out, bare);
  rmq_buf_text(out, "],\"filterServerTable\":{}");
  rmq_slice conf = rmq_wire_args_text(&args, "order_topic_conf", "");
  if (conf.len) put_text(out, ",\"orderTopicConf\":", conf);
  rmq_buf_text(out, ",\"queueDatas\":[");
  put_list(L, &args, "queues", out, bare);
  rmq_buf_text(out, "]}");
  rmq_wire_push_slice(L, rmq_buf_slice(out));
  return 1;
}

const luaL_Reg rmq_wire_data_functions[] = {
    {"encode_properties", encode_properties},
    {"decode_properties", decode_properties},
    {"encode_batch", encode_batch},
    {"decode_batch", decode_batch},
    {"encode_route", encode_route},
    {"decode_route", decode_route},
    {NULL, NULL},
};

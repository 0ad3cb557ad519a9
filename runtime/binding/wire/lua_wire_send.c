/* Requests of a producer and their replies, of `rocketmq.wire`. */
#include "binding/wire/lua_wire_parts.h"
#include "wire/client.h"
#include "wire/codes.h"
#include "wire/send.h"

static int give_frame(lua_State *L, rmq_wire_room *room, const char *function) {
  if (rmq_buf_len(&room->out) > RMQ_FRAME_MAX) {
    return luaL_error(L, "%s: the frame is longer than %d bytes", function, RMQ_FRAME_MAX);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

static rmq_send_header send_header_argument(const rmq_wire_args *args) {
  rmq_send_header header = {
      .producer_group = rmq_wire_args_text(args, "group", NULL),
      .topic = rmq_wire_args_text(args, "topic", NULL),
      .default_topic = rmq_wire_args_text(args, "default_topic", "TBW102"),
      .default_topic_queue_nums = rmq_wire_args_i32(args, "default_topic_queue_nums", 4),
      .queue_id = rmq_wire_args_i32(args, "queue_id", 0),
      .sys_flag = rmq_wire_args_i32(args, "sys_flag", 0),
      .born_timestamp = rmq_wire_args_i64(args, "born_timestamp", 0),
      .flag = rmq_wire_args_i32(args, "message_flag", 0),
      .properties = rmq_wire_args_text(args, "properties", ""),
      .reconsume_times = rmq_wire_args_i32(args, "reconsume_times", 0),
      .unit_mode = rmq_wire_args_bool(args, "unit_mode", false),
      .max_reconsume_times = rmq_wire_args_i32(args, "max_reconsume_times", -1),
      .batch = rmq_wire_args_bool(args, "batch", false),
      .broker_name = rmq_wire_args_text(args, "broker_name", ""),
  };
  return header;
}

static int encode_send_request(lua_State *L) {
  static const char *const names[] = {
      "code",       "opaque",          "flag",           "serialize",
      "group",      "topic",           "default_topic",  "default_topic_queue_nums",
      "queue_id",   "sys_flag",        "born_timestamp", "message_flag",
      "properties", "reconsume_times", "unit_mode",      "max_reconsume_times",
      "batch",      "broker_name",     "body",           NULL};
  static const char function[] = "wire.encode_send_request";
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, function, names);
  int32_t code =
      (int32_t)rmq_wire_args_int(&args, "code", INT16_MIN, INT16_MAX, RMQ_SEND_MESSAGE_V2);
  rmq_send_header header = send_header_argument(&args);
  rmq_serialize serialize = rmq_wire_args_serialize(&args, RMQ_SERIALIZE_ROCKETMQ);
  rmq_send_request_encode(&room->out, serialize, code, rmq_wire_args_i32(&args, "opaque", 0),
                          rmq_wire_args_i32(&args, "flag", 0), &header,
                          rmq_wire_args_text(&args, "body", ""));
  return give_frame(L, room, function);
}

/* Fills a header from the `code` and `ext` of a decoded command, argument 1. The slices point into the
 * strings of that table. */
static void header_argument(lua_State *L, const char *function, rmq_header *header) {
  if (!lua_istable(L, 1)) {
    luaL_error(L, "%s: argument 1 must be a command as wire.decode gives it, not %s", function,
               luaL_typename(L, 1));
  }
  rmq_wire_args args = {L, 1, function};
  header->code = rmq_wire_args_i32(&args, "code", 0);
  header->n_ext = 0;
  if (!rmq_wire_args_table(&args, "ext")) return;
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
      luaL_error(L, "%s: the names and values of 'ext' must be strings", function);
    }
    if (header->n_ext == RMQ_EXT_MAX) luaL_error(L, "%s: 'ext' has too many fields", function);
    rmq_field *field = &header->ext[header->n_ext++];
    field->name = rmq_wire_check_text(L, -2);
    field->value = rmq_wire_check_text(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static int decode_send_header(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_send_header header;
  const char *missing;
  header_argument(L, "wire.decode_send_header", &room->header);
  if (rmq_send_header_decode(&room->header, &header, &missing) != 0) {
    return rmq_wire_fail(L, "the send request's field %s is missing or wrong", missing);
  }
  lua_createtable(L, 0, 14);
  rmq_wire_set_text(L, "group", header.producer_group);
  rmq_wire_set_text(L, "topic", header.topic);
  rmq_wire_set_text(L, "default_topic", header.default_topic);
  rmq_wire_set_i64(L, "default_topic_queue_nums", header.default_topic_queue_nums);
  rmq_wire_set_i64(L, "queue_id", header.queue_id);
  rmq_wire_set_i64(L, "sys_flag", header.sys_flag);
  rmq_wire_set_i64(L, "born_timestamp", header.born_timestamp);
  rmq_wire_set_i64(L, "message_flag", header.flag);
  rmq_wire_set_text(L, "properties",
                    header.properties.ptr ? header.properties : rmq_slice_text(""));
  rmq_wire_set_i64(L, "reconsume_times", header.reconsume_times);
  rmq_wire_set_bool(L, "unit_mode", header.unit_mode);
  rmq_wire_set_i64(L, "max_reconsume_times", header.max_reconsume_times);
  rmq_wire_set_bool(L, "batch", header.batch);
  rmq_wire_set_text(L, "broker_name", header.broker_name);
  return 1;
}

static int decode_send_reply(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_send_reply reply;
  const char *missing;
  header_argument(L, "wire.decode_send_reply", &room->header);
  if (rmq_send_reply_decode(&room->header, &reply, &missing) != 0) {
    return rmq_wire_fail(L, "the reply's field %s is missing or wrong", missing);
  }
  lua_createtable(L, 0, 8);
  rmq_wire_set_text(L, "msg_id", reply.msg_id);
  rmq_wire_set_i64(L, "queue_id", reply.queue_id);
  rmq_wire_set_i64(L, "queue_offset", reply.queue_offset);
  rmq_wire_set_text(L, "transaction_id", reply.transaction_id);
  rmq_wire_set_text(L, "batch_uniq_id", reply.batch_uniq_id);
  rmq_wire_set_text(L, "recall_handle", reply.recall_handle);
  rmq_wire_set_text(L, "region_id", reply.region_id);
  rmq_wire_set_bool(L, "trace_on", reply.trace_on);
  return 1;
}

/* The strings of the list field "groups", in a block that stays on the stack with the list. */
static rmq_slice *groups_argument(lua_State *L, const rmq_wire_args *args, size_t *count) {
  if (!rmq_wire_args_table(args, "groups")) {
    luaL_error(L, "%s: field 'groups' must be a list of strings", args->function);
  }
  size_t n = lua_objlen(L, -1);
  rmq_slice *groups = lua_newuserdata(L, (n + 1) * sizeof *groups);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, -2, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING) {
      luaL_error(L, "%s: field 'groups' must be a list of strings", args->function);
    }
    groups[i] = rmq_wire_check_text(L, -1);
    lua_pop(L, 1);
  }
  *count = n;
  return groups;
}

static int heartbeat_request(lua_State *L) {
  static const char *const names[] = {"opaque", "serialize", "client_id", "groups", NULL};
  static const char function[] = "wire.heartbeat_request";
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, function, names);
  size_t count;
  int32_t opaque = rmq_wire_args_i32(&args, "opaque", 0);
  rmq_slice client_id = rmq_wire_args_text(&args, "client_id", NULL);
  rmq_serialize serialize = rmq_wire_args_serialize(&args, RMQ_SERIALIZE_ROCKETMQ);
  rmq_slice *groups = groups_argument(L, &args, &count);
  rmq_heartbeat_encode(&room->out, serialize, opaque, client_id, groups, count);
  return give_frame(L, room, function);
}

static int unregister_request(lua_State *L) {
  static const char *const names[] = {"opaque", "serialize", "client_id", "group", NULL};
  static const char function[] = "wire.unregister_request";
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, function, names);
  rmq_unregister_encode(&room->out, rmq_wire_args_serialize(&args, RMQ_SERIALIZE_ROCKETMQ),
                        rmq_wire_args_i32(&args, "opaque", 0),
                        rmq_wire_args_text(&args, "client_id", NULL),
                        rmq_wire_args_text(&args, "group", NULL));
  return give_frame(L, room, function);
}

static int route_request(lua_State *L) {
  static const char *const names[] = {"opaque", "serialize", "topic", NULL};
  static const char function[] = "wire.route_request";
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, function, names);
  rmq_route_request_encode(&room->out, rmq_wire_args_serialize(&args, RMQ_SERIALIZE_ROCKETMQ),
                           rmq_wire_args_i32(&args, "opaque", 0),
                           rmq_wire_args_text(&args, "topic", NULL));
  return give_frame(L, room, function);
}

const luaL_Reg rmq_wire_send_functions[] = {
    {"encode_send_request", encode_send_request},
    {"decode_send_header", decode_send_header},
    {"decode_send_reply", decode_send_reply},
    {"heartbeat_request", heartbeat_request},
    {"unregister_request", unregister_request},
    {"route_request", route_request},
    {NULL, NULL},
};

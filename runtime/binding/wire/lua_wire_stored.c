/* Stored messages of `rocketmq.wire`. */
#include <arpa/inet.h>

#include "binding/wire/lua_wire_parts.h"
#include "wire/stored.h"

static const char encode_name[] = "wire.encode_stored";

/* The fields of a host: its address, and its port beside it. */
static rmq_stored_host host_argument(const rmq_wire_args *args, const char *name,
                                     const char *port) {
  rmq_stored_host host = {.ip_len = 4};
  rmq_slice text = rmq_wire_args_text(args, name, "0.0.0.0");
  if (inet_pton(AF_INET, text.ptr, host.ip) != 1) {
    host.ip_len = 16;
    if (inet_pton(AF_INET6, text.ptr, host.ip) != 1) {
      luaL_error(args->L, "%s: field '%s' must be an IP address, not '%s'", encode_name, name,
                 text.ptr);
    }
  }
  host.port = (int32_t)rmq_wire_args_int(args, port, 0, 65535, 0);
  return host;
}

static int encode_stored(lua_State *L) {
  static const char *const names[] = {
      "topic",        "body",      "properties",      "queue_id",  "queue_offset",    "log_offset",
      "message_flag", "sys_flag",  "born_host",       "born_port", "born_ms",         "store_host",
      "store_port",   "stored_ms", "reconsume_times", "body_crc",  "prepared_offset", NULL};
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, encode_name, names);
  rmq_stored_message message = {
      .body_crc = rmq_wire_args_i32(&args, "body_crc", 0),
      .queue_id = rmq_wire_args_i32(&args, "queue_id", 0),
      .flag = rmq_wire_args_i32(&args, "message_flag", 0),
      .queue_offset = rmq_wire_args_i64(&args, "queue_offset", 0),
      .log_offset = rmq_wire_args_i64(&args, "log_offset", 0),
      .sys_flag = rmq_wire_args_i32(&args, "sys_flag", 0),
      .born_ms = rmq_wire_args_i64(&args, "born_ms", 0),
      .born_host = host_argument(&args, "born_host", "born_port"),
      .stored_ms = rmq_wire_args_i64(&args, "stored_ms", 0),
      .store_host = host_argument(&args, "store_host", "store_port"),
      .reconsume_times = rmq_wire_args_i32(&args, "reconsume_times", 0),
      .prepared_offset = rmq_wire_args_i64(&args, "prepared_offset", 0),
      .body = rmq_wire_args_text(&args, "body", ""),
      .topic = rmq_wire_args_text(&args, "topic", NULL),
      .properties = rmq_wire_args_text(&args, "properties", ""),
  };
  if (rmq_stored_put(&room->out, &message) < 0) {
    return luaL_error(L, "%s: the topic or the properties are too long for a stored message",
                      encode_name);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

static void set_host(lua_State *L, const char *name, const char *port,
                     const rmq_stored_host *host) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(host->ip_len == 4 ? AF_INET : AF_INET6, host->ip, text, sizeof text);
  rmq_wire_set_text(L, name, rmq_slice_text(text));
  rmq_wire_set_i64(L, port, host->port);
}

static void push_message(lua_State *L, const rmq_stored_message *message) {
  char id[RMQ_UNIQUE_ID_MAX];
  lua_createtable(L, 0, 18);
  rmq_wire_set_text(L, "topic", message->topic);
  rmq_wire_set_text(L, "body", message->body);
  rmq_wire_set_text(L, "properties", message->properties);
  rmq_wire_set_i64(L, "queue_id", message->queue_id);
  rmq_wire_set_i64(L, "queue_offset", message->queue_offset);
  rmq_wire_set_i64(L, "log_offset", message->log_offset);
  rmq_wire_set_i64(L, "message_flag", message->flag);
  rmq_wire_set_i64(L, "sys_flag", message->sys_flag);
  set_host(L, "born_host", "born_port", &message->born_host);
  rmq_wire_set_i64(L, "born_ms", message->born_ms);
  set_host(L, "store_host", "store_port", &message->store_host);
  rmq_wire_set_i64(L, "stored_ms", message->stored_ms);
  rmq_wire_set_i64(L, "reconsume_times", message->reconsume_times);
  rmq_wire_set_i64(L, "body_crc", message->body_crc);
  rmq_wire_set_i64(L, "prepared_offset", message->prepared_offset);
  int len = rmq_stored_offset_id(message, id);
  rmq_wire_set_text(L, "offset_msg_id", rmq_slice_make(id, (size_t)len));
}

static int decode_stored(lua_State *L) {
  rmq_slice rest = rmq_wire_check_text(L, 1);
  rmq_stored_message message;
  lua_newtable(L);
  for (int i = 1;; i++) {
    int got = rmq_stored_next(&rest, &message);
    if (got == 0) return 1;
    if (got < 0) return rmq_wire_fail(L, "stored message %d is damaged", i);
    push_message(L, &message);
    lua_rawseti(L, -2, i);
  }
}

const luaL_Reg rmq_wire_stored_functions[] = {
    {"encode_stored", encode_stored},
    {"decode_stored", decode_stored},
    {NULL, NULL},
};

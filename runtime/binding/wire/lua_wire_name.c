/* Names, addresses and ids of `rocketmq.wire`. */
#include <arpa/inet.h>

#include "base/utf8.h"
#include "binding/wire/lua_wire_parts.h"
#include "wire/codes.h"
#include "wire/ids.h"
#include "wire/namesrv.h"
#include "wire/properties.h"
#include "wire/recall.h"

static int response_name(lua_State *L) {
  lua_pushstring(L, rmq_response_code_name((int32_t)luaL_checkinteger(L, 1)));
  return 1;
}

static int request_name(lua_State *L) {
  lua_pushstring(L, rmq_request_code_name((int32_t)luaL_checkinteger(L, 1)));
  return 1;
}

static int valid_utf8(lua_State *L) {
  rmq_slice text = rmq_wire_check_text(L, 1);
  size_t at = rmq_utf8_invalid_at(text);
  lua_pushboolean(L, at == text.len);
  if (at == text.len) return 1;
  lua_pushinteger(L, (lua_Integer)at + 1);
  return 2;
}

static int is_reserved_property(lua_State *L) {
  lua_pushboolean(L, rmq_property_is_reserved(rmq_wire_check_text(L, 1)));
  return 1;
}

static int host_port(lua_State *L) {
  rmq_host_port parsed;
  const char *why;
  rmq_slice text = rmq_wire_check_text(L, 1);
  if (rmq_host_port_parse(text, &parsed, &why) != 0) {
    return rmq_wire_fail(L, "address '%s': %s", text.ptr, why);
  }
  rmq_wire_push_slice(L, parsed.host);
  lua_pushinteger(L, parsed.port);
  return 2;
}

static int namesrv_list(lua_State *L) {
  rmq_slice rest = rmq_wire_check_text(L, 1);
  rmq_slice part;
  const char *why;
  lua_newtable(L);
  for (int i = 1;; i++) {
    int got = rmq_namesrv_next(&rest, &part, &why);
    if (got == 0) return 1;
    rmq_wire_push_slice(L, part);
    if (got < 0) return rmq_wire_fail(L, "name server address '%s': %s", lua_tostring(L, -1), why);
    lua_rawseti(L, -2, i);
  }
}

static const char id_maker_type[] = "rocketmq.wire.id_maker";

static int id_maker_next(lua_State *L) {
  char id[RMQ_UNIQUE_ID_MAX];
  rmq_id_maker *maker = luaL_checkudata(L, 1, id_maker_type);
  lua_Number wall_ms = luaL_checknumber(L, 2);
  luaL_argcheck(L, wall_ms >= 0 && wall_ms <= 9007199254740992.0, 2,
                "milliseconds since 1970 expected");
  int len = rmq_id_next(maker, (rmq_wall){(int64_t)wall_ms}, id);
  lua_pushlstring(L, id, (size_t)len);
  return 1;
}

static int id_maker(lua_State *L) {
  static const char *const names[] = {"ip", "pid", "tag", NULL};
  rmq_wire_args args = rmq_wire_args_open(L, 1, "wire.id_maker", names);
  rmq_identity identity = {.ip_len = 4};
  rmq_slice ip = rmq_wire_args_text(&args, "ip", NULL);
  if (ip.len != 4 && ip.len != 16) {
    return luaL_error(L, "wire.id_maker: field 'ip' must be 4 or 16 bytes, not %d", (int)ip.len);
  }
  memcpy(identity.ip, ip.ptr, ip.len);
  identity.ip_len = (int)ip.len;
  identity.pid = (uint32_t)rmq_wire_args_int(&args, "pid", 0, UINT32_MAX, 0);
  identity.tag = (uint32_t)rmq_wire_args_int(&args, "tag", 0, UINT32_MAX, 0);
  rmq_id_init(lua_newuserdata(L, sizeof(rmq_id_maker)), &identity);
  luaL_getmetatable(L, id_maker_type);
  lua_setmetatable(L, -2);
  return 1;
}

void rmq_wire_register_id_maker(lua_State *L) {
  if (luaL_newmetatable(L, id_maker_type)) {
    lua_newtable(L);
    lua_pushcfunction(L, id_maker_next);
    lua_setfield(L, -2, "next");
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
}

static int encode_offset_id(lua_State *L) {
  static const char *const names[] = {"host", "port", "offset", NULL};
  rmq_wire_args args = rmq_wire_args_open(L, 1, "wire.encode_offset_id", names);
  rmq_offset_id id = {.ip_len = 4};
  char text[RMQ_UNIQUE_ID_MAX];
  rmq_slice host = rmq_wire_args_text(&args, "host", NULL);
  if (inet_pton(AF_INET, host.ptr, id.ip) != 1) {
    id.ip_len = 16;
    if (inet_pton(AF_INET6, host.ptr, id.ip) != 1) {
      return luaL_error(L, "wire.encode_offset_id: field 'host' must be an IP address, not '%s'",
                        host.ptr);
    }
  }
  id.port = (int32_t)rmq_wire_args_int(&args, "port", 0, 65535, 0);
  id.offset = rmq_wire_args_i64(&args, "offset", 0);
  lua_pushlstring(L, text, (size_t)rmq_offset_id_encode(&id, text));
  return 1;
}

static int decode_offset_id(lua_State *L) {
  rmq_offset_id id;
  char host[INET6_ADDRSTRLEN];
  if (rmq_offset_id_decode(rmq_wire_check_text(L, 1), &id) != 0) {
    return rmq_wire_fail(L,
                         "an offset id has 32 or 56 hex digits with a port in them, this is '%s'",
                         lua_tostring(L, 1));
  }
  inet_ntop(id.ip_len == 4 ? AF_INET : AF_INET6, id.ip, host, sizeof host);
  lua_createtable(L, 0, 3);
  rmq_wire_set_text(L, "host", rmq_slice_text(host));
  rmq_wire_set_i64(L, "port", id.port);
  rmq_wire_set_i64(L, "offset", id.offset);
  return 1;
}

static int encode_recall_handle(lua_State *L) {
  static const char *const names[] = {"topic", "broker", "deliver_at", "msg_id", NULL};
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, "wire.encode_recall_handle", names);
  rmq_recall_handle handle = {.topic = rmq_wire_args_text(&args, "topic", NULL),
                              .broker = rmq_wire_args_text(&args, "broker", NULL),
                              .deliver_at = rmq_wire_args_i64(&args, "deliver_at", 0),
                              .msg_id = rmq_wire_args_text(&args, "msg_id", NULL)};
  rmq_recall_handle_encode(&room->out, &handle);
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

static int decode_recall_handle(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_recall_handle handle;
  if (rmq_recall_handle_decode(rmq_wire_check_text(L, 1), &room->scratch, &handle) < 0) {
    return rmq_wire_fail(L, "this is no recall handle");
  }
  lua_createtable(L, 0, 4);
  rmq_wire_set_text(L, "topic", handle.topic);
  rmq_wire_set_text(L, "broker", handle.broker);
  rmq_wire_set_i64(L, "deliver_at", handle.deliver_at);
  rmq_wire_set_text(L, "msg_id", handle.msg_id);
  return 1;
}

const luaL_Reg rmq_wire_name_functions[] = {
    {"response_name", response_name},
    {"request_name", request_name},
    {"valid_utf8", valid_utf8},
    {"is_reserved_property", is_reserved_property},
    {"host_port", host_port},
    {"namesrv_list", namesrv_list},
    {"id_maker", id_maker},
    {"encode_offset_id", encode_offset_id},
    {"decode_offset_id", decode_offset_id},
    {"encode_recall_handle", encode_recall_handle},
    {"decode_recall_handle", decode_recall_handle},
    {NULL, NULL},
};

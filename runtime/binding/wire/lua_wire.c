#include "binding/wire/lua_wire.h"

#include "binding/wire/lua_wire_parts.h"
#include "wire/codes.h"

enum { KEPT_BYTES = 1 << 20 };

static const char room_type[] = "rocketmq.wire.room";

rmq_wire_room *rmq_wire_room_of(lua_State *L) {
  rmq_wire_room *room = lua_touserdata(L, lua_upvalueindex(1));
  /* What one huge frame needed is not kept for good. */
  rmq_buf_clear(&room->out);
  rmq_buf_trim(&room->out, KEPT_BYTES);
  rmq_buf_clear(&room->scratch);
  rmq_buf_trim(&room->scratch, KEPT_BYTES);
  rmq_route_data_free(&room->route);
  return room;
}

static int room_gc(lua_State *L) {
  rmq_wire_room *room = lua_touserdata(L, 1);
  rmq_buf_free(&room->out);
  rmq_buf_free(&room->scratch);
  rmq_route_data_free(&room->route);
  return 0;
}

static void push_room(lua_State *L) {
  rmq_wire_room *room = lua_newuserdata(L, sizeof *room);
  memset(room, 0, sizeof *room);
  if (luaL_newmetatable(L, room_type)) {
    lua_pushcfunction(L, room_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
}

/* Pushes {NAME = code} of all entries that `entry` gives. */
static void push_codes(lua_State *L, const char *(*entry)(size_t, int32_t *)) {
  int32_t code;
  lua_newtable(L);
  for (size_t i = 0;; i++) {
    const char *name = entry(i, &code);
    if (!name) return;
    lua_pushinteger(L, code);
    lua_setfield(L, -2, name);
  }
}

int luaopen_rocketmq_wire(lua_State *L) {
  static const luaL_Reg *const parts[] = {rmq_wire_frame_functions,  rmq_wire_send_functions,
                                          rmq_wire_data_functions,   rmq_wire_name_functions,
                                          rmq_wire_stored_functions, rmq_wire_body_functions};
  rmq_wire_register_id_maker(L);
  lua_newtable(L);
  push_room(L);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    for (const luaL_Reg *function = parts[i]; function->name; function++) {
      lua_pushvalue(L, -1);
      lua_pushcclosure(L, function->func, 1);
      lua_setfield(L, -3, function->name);
    }
  }
  lua_pop(L, 1);
  push_codes(L, rmq_request_code_at);
  lua_setfield(L, -2, "request");
  push_codes(L, rmq_response_code_at);
  lua_setfield(L, -2, "response");
  return 1;
}

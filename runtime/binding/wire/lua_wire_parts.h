#ifndef RMQ_BINDING_LUA_WIRE_PARTS_H
#define RMQ_BINDING_LUA_WIRE_PARTS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "wire/header.h"
#include "wire/route.h"

/* What the files of the module `rocketmq.wire` share. */

/* The memory that the functions work in, upvalue 1 of each. It belongs to the Lua state, so an error that
 * leaves a function half-way loses nothing. Nothing in it outlives a call. */
typedef struct rmq_wire_room {
  rmq_buf out;     /* what is being encoded; empty when a function begins */
  rmq_buf scratch; /* unescaped texts */
  rmq_header header;
  rmq_route_data route;
} rmq_wire_room;

/* The room, with `out` emptied. */
rmq_wire_room *rmq_wire_room_of(lua_State *L);

/* The functions of each file, ended by {NULL, NULL}. */
extern const luaL_Reg rmq_wire_frame_functions[];
extern const luaL_Reg rmq_wire_send_functions[];
extern const luaL_Reg rmq_wire_data_functions[];
extern const luaL_Reg rmq_wire_name_functions[];
extern const luaL_Reg rmq_wire_stored_functions[];
extern const luaL_Reg rmq_wire_body_functions[];

/* The metatable of id makers; call once when the module opens. */
void rmq_wire_register_id_maker(lua_State *L);

/* --- Reading an argument table ------------------------------------------------------------------
 * Every function raises an error that names the function and the field. Fields are read raw, so the table
 * anchors the bytes of a text for as long as the call lasts. */
typedef struct rmq_wire_args {
  lua_State *L;
  int index;            /* of the table, absolute */
  const char *function; /* "wire.encode", for errors */
} rmq_wire_args;

/* Checks that argument `index` is a table and has no field besides `names` (ended by NULL); the error
 * for another one says which name is nearest. */
rmq_wire_args rmq_wire_args_open(lua_State *L, int index, const char *function,
                                 const char *const *names);

/* A string. Required when `otherwise` is NULL. */
rmq_slice rmq_wire_args_text(const rmq_wire_args *args, const char *name, const char *otherwise);

/* A whole number within [min, max], `otherwise` when it is absent. */
int64_t rmq_wire_args_int(const rmq_wire_args *args, const char *name, int64_t min, int64_t max,
                          int64_t otherwise);
int32_t rmq_wire_args_i32(const rmq_wire_args *args, const char *name, int32_t otherwise);

/* A 64-bit number: a Lua number, or its decimal text (the only way beyond 2^53). */
int64_t rmq_wire_args_i64(const rmq_wire_args *args, const char *name, int64_t otherwise);

bool rmq_wire_args_bool(const rmq_wire_args *args, const char *name, bool otherwise);

/* "json" or "rocketmq". */
rmq_serialize rmq_wire_args_serialize(const rmq_wire_args *args, rmq_serialize otherwise);

/* Pushes a table field; nothing and false when it is absent. */
bool rmq_wire_args_table(const rmq_wire_args *args, const char *name);

/* Orders rmq_fields by name, for qsort: tables have no order of their own, and bytes shall be the same each
 * time. */
int rmq_wire_compare_fields(const void *left, const void *right);

/* The string argument `index`. */
rmq_slice rmq_wire_check_text(lua_State *L, int index);

/* --- Giving values ------------------------------------------------------------------------------ */

void rmq_wire_push_slice(lua_State *L, rmq_slice text);
/* A number up to 2^53 either way, its decimal text beyond. */
void rmq_wire_push_i64(lua_State *L, int64_t value);
/* Set a field of the table on top of the stack; a text whose `ptr` is NULL is left out. */
void rmq_wire_set_text(lua_State *L, const char *name, rmq_slice value);
void rmq_wire_set_i64(lua_State *L, const char *name, int64_t value);
void rmq_wire_set_bool(lua_State *L, const char *name, bool value);

/* Pushes nil and a formatted message (lua_pushfstring), and returns 2. */
int rmq_wire_fail(lua_State *L, const char *format, ...);

#endif

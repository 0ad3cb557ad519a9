#include <stdarg.h>

#include "binding/lua_names.h"
#include "binding/wire/lua_wire_parts.h"
#include "wire/number.h"

/* Whole numbers up to here are exact in a Lua number. */
static const int64_t exact_max = (int64_t)1 << 53;

static void refuse_name(lua_State *L, const char *function, const rmq_names *names) {
  rmq_slice name = rmq_wire_check_text(L, -2);
  const char *nearest = rmq_names_nearest(names, name);
  if (nearest) {
    luaL_error(L, "%s: unknown field '%s'; did you mean '%s'?", function, name.ptr, nearest);
  }
  luaL_error(L, "%s: unknown field '%s'", function, name.ptr);
}

rmq_wire_args rmq_wire_args_open(lua_State *L, int index, const char *function,
                                 const char *const *names) {
  if (lua_type(L, index) != LUA_TTABLE) {
    luaL_error(L, "%s: argument %d must be a table, not %s", function, index,
               luaL_typename(L, index));
  }
  rmq_names known = {"field", function, names};
  lua_pushnil(L);
  while (lua_next(L, index)) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      luaL_error(L, "%s: the fields of the table have names, but one is a %s", function,
                 luaL_typename(L, -2));
    }
    if (!rmq_names_has(&known, rmq_wire_check_text(L, -2))) refuse_name(L, function, &known);
    lua_pop(L, 1);
  }
  return (rmq_wire_args){L, index, function};
}

/* Pushes a field and returns its type. */
static int push_field(const rmq_wire_args *args, const char *name) {
  lua_pushstring(args->L, name);
  lua_rawget(args->L, args->index);
  return lua_type(args->L, -1);
}

static void refuse_type(const rmq_wire_args *args, const char *name, const char *wanted) {
  luaL_error(args->L, "%s: field '%s' must be %s, not %s", args->function, name, wanted,
             luaL_typename(args->L, -1));
}

rmq_slice rmq_wire_args_text(const rmq_wire_args *args, const char *name, const char *otherwise) {
  rmq_slice text = rmq_slice_text(otherwise);
  int type = push_field(args, name);
  if (type == LUA_TSTRING) {
    text.ptr = lua_tolstring(args->L, -1, &text.len);
  } else if (type != LUA_TNIL || !otherwise) {
    refuse_type(args, name, "a string");
  }
  lua_pop(args->L, 1);
  return text;
}

int64_t rmq_wire_args_int(const rmq_wire_args *args, const char *name, int64_t min, int64_t max,
                          int64_t otherwise) {
  int64_t value = otherwise;
  int type = push_field(args, name);
  if (type == LUA_TNUMBER) {
    lua_Number number = lua_tonumber(args->L, -1);
    bool fits = number >= (lua_Number)min && number <= (lua_Number)max;
    if (!fits || (lua_Number)(int64_t)number != number) {
      luaL_error(args->L, "%s: field '%s' must be a whole number from %f to %f, not %f",
                 args->function, name, (lua_Number)min, (lua_Number)max, number);
    }
    value = (int64_t)number;
  } else if (type != LUA_TNIL) {
    refuse_type(args, name, "a number");
  }
  lua_pop(args->L, 1);
  return value;
}

int32_t rmq_wire_args_i32(const rmq_wire_args *args, const char *name, int32_t otherwise) {
  return (int32_t)rmq_wire_args_int(args, name, INT32_MIN, INT32_MAX, otherwise);
}

int64_t rmq_wire_args_i64(const rmq_wire_args *args, const char *name, int64_t otherwise) {
  int64_t value;
  if (push_field(args, name) != LUA_TSTRING) {
    lua_pop(args->L, 1);
    return rmq_wire_args_int(args, name, -exact_max, exact_max, otherwise);
  }
  rmq_slice text;
  text.ptr = lua_tolstring(args->L, -1, &text.len);
  if (rmq_number_i64(text, &value) != 0) {
    luaL_error(args->L, "%s: field '%s' is no 64-bit number: '%s'", args->function, name, text.ptr);
  }
  lua_pop(args->L, 1);
  return value;
}

bool rmq_wire_args_bool(const rmq_wire_args *args, const char *name, bool otherwise) {
  int type = push_field(args, name);
  bool value = type == LUA_TNIL ? otherwise : lua_toboolean(args->L, -1);
  if (type != LUA_TNIL && type != LUA_TBOOLEAN) refuse_type(args, name, "a boolean");
  lua_pop(args->L, 1);
  return value;
}

rmq_serialize rmq_wire_args_serialize(const rmq_wire_args *args, rmq_serialize otherwise) {
  rmq_slice text = rmq_wire_args_text(args, "serialize", "");
  if (text.len == 0) return otherwise;
  if (rmq_slice_is(text, "json")) return RMQ_SERIALIZE_JSON;
  if (rmq_slice_is(text, "rocketmq")) return RMQ_SERIALIZE_ROCKETMQ;
  luaL_error(args->L, "%s: field 'serialize' must be 'json' or 'rocketmq', not '%s'",
             args->function, text.ptr);
  return otherwise;
}

bool rmq_wire_args_table(const rmq_wire_args *args, const char *name) {
  int type = push_field(args, name);
  if (type == LUA_TTABLE) return true;
  if (type != LUA_TNIL) refuse_type(args, name, "a table");
  lua_pop(args->L, 1);
  return false;
}

rmq_slice rmq_wire_check_text(lua_State *L, int index) {
  rmq_slice text;
  luaL_checktype(L, index, LUA_TSTRING);
  text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

int rmq_wire_compare_fields(const void *left, const void *right) {
  const rmq_field *a = left;
  const rmq_field *b = right;
  size_t len = a->name.len < b->name.len ? a->name.len : b->name.len;
  int order = len ? memcmp(a->name.ptr, b->name.ptr, len) : 0;
  return order ? order : (a->name.len > b->name.len) - (a->name.len < b->name.len);
}

void rmq_wire_push_slice(lua_State *L, rmq_slice text) {
  lua_pushlstring(L, text.len ? text.ptr : "", text.len);
}

void rmq_wire_push_i64(lua_State *L, int64_t value) {
  char digits[RMQ_NUMBER_MAX];
  if (value >= -exact_max && value <= exact_max) {
    lua_pushnumber(L, (lua_Number)value);
  } else {
    lua_pushlstring(L, digits, rmq_number_write(digits, value));
  }
}

void rmq_wire_set_text(lua_State *L, const char *name, rmq_slice value) {
  if (!value.ptr) return;
  rmq_wire_push_slice(L, value);
  lua_setfield(L, -2, name);
}

void rmq_wire_set_i64(lua_State *L, const char *name, int64_t value) {
  rmq_wire_push_i64(L, value);
  lua_setfield(L, -2, name);
}

void rmq_wire_set_bool(lua_State *L, const char *name, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

int rmq_wire_fail(lua_State *L, const char *format, ...) {
  va_list list;
  lua_pushnil(L);
  va_start(list, format);
  lua_pushvfstring(L, format, list);
  va_end(list);
  return 2;
}

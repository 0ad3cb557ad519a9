/* Frames and headers of `rocketmq.wire`. */
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "binding/wire/lua_wire_parts.h"
#include "wire/codes.h"
#include "wire/frame.h"
#include "wire/number.h"

static void push_serialize(lua_State *L, rmq_serialize serialize) {
  lua_pushstring(L, serialize == RMQ_SERIALIZE_JSON ? "json" : "rocketmq");
}

static int fail_header(lua_State *L, rmq_serialize serialize, int err) {
  const char *kind = serialize == RMQ_SERIALIZE_JSON ? "JSON" : "ROCKETMQ";
  if (err == RMQ_ELIMIT) {
    return rmq_wire_fail(L, "the %s header has more than %d fields", kind, RMQ_EXT_MAX);
  }
  return rmq_wire_fail(L, "the %s header is damaged", kind);
}

/* Sets what a header says in the table on top of the stack. */
static void set_header(lua_State *L, const rmq_header *header) {
  const char *language = rmq_language_name(header->language);
  rmq_wire_set_i64(L, "code", header->code);
  rmq_wire_set_text(L, "language", rmq_slice_text(language ? language : "OTHER"));
  rmq_wire_set_i64(L, "version", header->version);
  rmq_wire_set_i64(L, "opaque", header->opaque);
  rmq_wire_set_i64(L, "flag", header->flag);
  rmq_wire_set_text(L, "remark", header->remark);
  lua_createtable(L, 0, (int)header->n_ext);
  for (size_t i = 0; i < header->n_ext; i++) {
    rmq_wire_push_slice(L, header->ext[i].name);
    rmq_wire_push_slice(L, header->ext[i].value);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "ext");
}

/* The frame in argument 1 from position argument 2 on. 1 when there is one; otherwise the values to
 * return are on the stack and their number is in `given`. */
static int split_argument(lua_State *L, rmq_frame *frame, int *given) {
  rmq_slice bytes = rmq_wire_check_text(L, 1);
  lua_Integer at = luaL_optinteger(L, 2, 1);
  const char *why;
  luaL_argcheck(L, at >= 1, 2, "positions begin at 1");
  size_t skipped = (size_t)at - 1 < bytes.len ? (size_t)at - 1 : bytes.len;
  int got = rmq_frame_split(rmq_slice_make(bytes.ptr + skipped, bytes.len - skipped), frame, &why);
  if (got == 1) return 1;
  *given = 1;
  if (got == 0) {
    lua_pushboolean(L, 0);
  } else {
    *given = rmq_wire_fail(L, "%s", why);
  }
  return 0;
}

static int split(lua_State *L) {
  rmq_frame frame;
  int given;
  if (!split_argument(L, &frame, &given)) return given;
  lua_createtable(L, 0, 4);
  push_serialize(L, frame.serialize);
  lua_setfield(L, -2, "serialize");
  rmq_wire_set_text(L, "header", frame.header);
  rmq_wire_push_slice(L, frame.body);
  lua_setfield(L, -2, "body");
  rmq_wire_set_i64(L, "size", (int64_t)frame.size);
  return 1;
}

static int decode_header(lua_State *L) {
  static const char *const names[] = {"json", "rocketmq", NULL};
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_serialize serialize =
      luaL_checkoption(L, 1, NULL, names) == 0 ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ;
  rmq_slice bytes = rmq_wire_check_text(L, 2);
  int err = rmq_header_decode(serialize, bytes, &room->scratch, &room->header);
  if (err) return fail_header(L, serialize, err);
  lua_createtable(L, 0, 7);
  set_header(L, &room->header);
  return 1;
}

static int decode(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_frame frame;
  int given;
  if (!split_argument(L, &frame, &given)) return given;
  int err = rmq_header_decode(frame.serialize, frame.header, &room->scratch, &room->header);
  if (err) return fail_header(L, frame.serialize, err);
  lua_createtable(L, 0, 10);
  push_serialize(L, frame.serialize);
  lua_setfield(L, -2, "serialize");
  set_header(L, &room->header);
  rmq_wire_push_slice(L, frame.body);
  lua_setfield(L, -2, "body");
  rmq_wire_set_i64(L, "size", (int64_t)frame.size);
  return 1;
}

/* --- Encoding ----------------------------------------------------------------------------------- */

static const char encode_name[] = "wire.encode";

/* Turns the value on top of the stack into the text that goes on the wire, in its place. */
static void value_to_text(lua_State *L, const char *name) {
  char digits[RMQ_NUMBER_MAX];
  switch (lua_type(L, -1)) {
    case LUA_TSTRING:
      return;
    case LUA_TBOOLEAN:
      lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
      lua_remove(L, -2);
      return;
    case LUA_TNUMBER: {
      lua_Number number = lua_tonumber(L, -1);
      if (number > -9e15 && number < 9e15 && (lua_Number)(int64_t)number == number) {
        lua_pushlstring(L, digits, rmq_number_write(digits, (int64_t)number));
        lua_remove(L, -2);
      } else {
        lua_tostring(L, -1);
      }
      return;
    }
    default:
      luaL_error(L, "%s: ext field '%s' must be a string, number or boolean, not %s", encode_name,
                 name, luaL_typename(L, -1));
  }
}

static void check_utf8(lua_State *L, const char *what, rmq_slice text) {
  size_t at = rmq_utf8_invalid_at(text);
  if (at == text.len) return;
  luaL_error(L, "%s: %s is not valid UTF-8 (byte %d), which JSON cannot carry", encode_name, what,
             (int)at + 1);
}

static void check_value_utf8(lua_State *L, const rmq_field *field) {
  size_t at = rmq_utf8_invalid_at(field->value);
  if (at == field->value.len) return;
  luaL_error(L, "%s: ext field '%s' is not valid UTF-8 (byte %d), which JSON cannot carry",
             encode_name, field->name.ptr, (int)at + 1);
}

/* The ext fields of the table on top of the stack, sorted by name. Pushes two values: what anchors the
 * texts, and the array that is returned. */
static rmq_field *collect_fields(lua_State *L, size_t *count) {
  int table = lua_gettop(L);
  int anchor = table + 1;
  size_t n = 0;
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "%s: ext fields have names", encode_name);
    value_to_text(L, lua_tostring(L, -2));
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, anchor);
    lua_pop(L, 1);
    n++;
  }
  rmq_field *fields = lua_newuserdata(L, (n + 1) * sizeof *fields);
  *count = n;
  n = 0;
  lua_pushnil(L);
  while (lua_next(L, anchor)) {
    fields[n].name = rmq_wire_check_text(L, -2);
    fields[n++].value = rmq_wire_check_text(L, -1);
    lua_pop(L, 1);
  }
  qsort(fields, n, sizeof *fields, rmq_wire_compare_fields);
  return fields;
}

static void write_fields(lua_State *L, rmq_frame_writer *writer, const rmq_wire_args *args) {
  size_t count;
  if (!rmq_wire_args_table(args, "ext")) return;
  rmq_field *fields = collect_fields(L, &count);
  for (size_t i = 0; i < count; i++) {
    if (writer->serialize == RMQ_SERIALIZE_JSON) {
      check_utf8(L, "the name of an ext field", fields[i].name);
      check_value_utf8(L, &fields[i]);
    } else if (fields[i].name.len > INT16_MAX) {
      luaL_error(L, "%s: the name of an ext field is longer than %d bytes", encode_name, INT16_MAX);
    }
    rmq_frame_text(writer, fields[i].name, fields[i].value);
  }
  lua_pop(L, 3);
}

static int32_t language_argument(lua_State *L, const rmq_wire_args *args) {
  rmq_slice name = rmq_wire_args_text(args, "language", "OTHER");
  int code = rmq_language_code(name.ptr, name.len);
  if (code < 0) luaL_error(L, "%s: no such language: '%s'", encode_name, name.ptr);
  return code;
}

/* The fixed part of the command; a ROCKETMQ header has 16 bits for code and version. */
static rmq_command command_argument(lua_State *L, const rmq_wire_args *args,
                                    rmq_serialize serialize) {
  bool json = serialize == RMQ_SERIALIZE_JSON;
  int64_t min = json ? INT32_MIN : INT16_MIN;
  int64_t max = json ? INT32_MAX : INT16_MAX;
  rmq_command command = {.opaque = rmq_wire_args_i32(args, "opaque", 0),
                         .flag = rmq_wire_args_i32(args, "flag", 0),
                         .language = language_argument(L, args)};
  command.code = (int32_t)rmq_wire_args_int(args, "code", min, max, 0);
  command.version = (int32_t)rmq_wire_args_int(args, "version", min, max, RMQ_VERSION);
  command.remark = rmq_wire_args_text(args, "remark", "");
  if (json) check_utf8(L, "the remark", command.remark);
  return command;
}

static int encode(lua_State *L) {
  static const char *const names[] = {"serialize", "code",   "opaque", "flag", "language",
                                      "version",   "remark", "ext",    "body", NULL};
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_wire_args args = rmq_wire_args_open(L, 1, encode_name, names);
  rmq_serialize serialize = rmq_wire_args_serialize(&args, RMQ_SERIALIZE_JSON);
  rmq_command command = command_argument(L, &args, serialize);
  rmq_slice body = rmq_wire_args_text(&args, "body", "");
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, &room->out, serialize, &command);
  write_fields(L, &writer, &args);
  rmq_frame_end(&writer, body);
  if (rmq_buf_len(&room->out) > RMQ_FRAME_MAX) {
    return luaL_error(L, "%s: the frame is longer than %d bytes", encode_name, RMQ_FRAME_MAX);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  return 1;
}

const luaL_Reg rmq_wire_frame_functions[] = {
    {"split", split}, {"decode_header", decode_header}, {"decode", decode}, {"encode", encode},
    {NULL, NULL},
};

/* Compressed bodies, of `rocketmq.wire`. */
#include "base/error.h"
#include "binding/wire/lua_wire_parts.h"
#include "wire/compress.h"

/* What a body may become when nothing is said: four times the longest frame. */
enum { LIMIT = 64 * 1024 * 1024 };

/* compress(body, kind, level) */
static int compress(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_slice body = rmq_wire_check_text(L, 1);
  rmq_slice kind = rmq_wire_check_text(L, 2);
  rmq_compression compression;
  if (rmq_compression_of_name(kind, &compression) < 0) {
    return luaL_error(L, "wire.compress: the kind must be zlib, lz4 or zstd, not '%s'", kind.ptr);
  }
  int most = rmq_compression_level_max(compression);
  lua_Integer level = luaL_optinteger(L, 3, 5);
  luaL_argcheck(L, level >= 1 && level <= most, 3, "there is no such level");
  rmq_compressor *compressor = rmq_compressor_new(compression, (int)level);
  bool shorter = rmq_compress(compressor, body, &room->out);
  rmq_compressor_free(compressor);
  if (!shorter) return rmq_wire_fail(L, "compressing does not make it shorter");
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  lua_pushinteger(L, rmq_compression_flags(compression));
  return 2;
}

/* decompress(body, sys_flag, limit) */
static int decompress(lua_State *L) {
  rmq_wire_room *room = rmq_wire_room_of(L);
  rmq_slice body = rmq_wire_check_text(L, 1);
  lua_Integer sys_flag = luaL_checkinteger(L, 2);
  lua_Integer limit = luaL_optinteger(L, 3, LIMIT);
  luaL_argcheck(L, sys_flag >= INT32_MIN && sys_flag <= INT32_MAX, 2, "32 bits expected");
  luaL_argcheck(L, limit >= 0, 3, "a number of bytes expected");
  int status = rmq_decompress((int32_t)sys_flag, body, (size_t)limit, &room->out);
  if (status == RMQ_ELIMIT) {
    return rmq_wire_fail(L, "the body becomes longer than %d bytes", (int)limit);
  }
  if (status < 0) {
    return rmq_wire_fail(L, "the body is damaged, or not compressed as sysFlag %d says",
                         (int)sys_flag);
  }
  rmq_wire_push_slice(L, rmq_buf_slice(&room->out));
  const char *kind = rmq_compression_name((int32_t)sys_flag);
  if (!kind) return 1;
  lua_pushstring(L, kind);
  return 2;
}

const luaL_Reg rmq_wire_body_functions[] = {
    {"compress", compress}, {"decompress", decompress}, {NULL, NULL}};

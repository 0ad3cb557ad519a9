#include "wire/compress.h"

#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/codes.h"

enum { TYPE_MASK = 0x700, TYPE_SHIFT = 8 };

/* ---- Names and flags ---- */

int rmq_compression_level_max(rmq_compression compression) {
  return compression == RMQ_COMPRESSION_ZSTD ? 22 : 12;
}

static const char *const names[] = {[RMQ_COMPRESSION_LZ4] = "lz4",
                                    [RMQ_COMPRESSION_ZSTD] = "zstd",
                                    [RMQ_COMPRESSION_ZLIB] = "zlib"};

int rmq_compression_of_name(rmq_slice name, rmq_compression *out) {
  for (int i = RMQ_COMPRESSION_LZ4; i <= RMQ_COMPRESSION_ZLIB; i++) {
    if (!rmq_slice_is(name, names[i])) continue;
    *out = (rmq_compression)i;
    return 0;
  }
  return RMQ_EINVAL;
}

/* What the bits say; 0 for what is unknown. Senders before 4.9.4 set none of them, and know zlib only. */
static int kind_of(int32_t sys_flag) {
  int kind = (sys_flag & TYPE_MASK) >> TYPE_SHIFT;
  if (kind == 0) return RMQ_COMPRESSION_ZLIB;
  return kind <= RMQ_COMPRESSION_ZLIB ? kind : 0;
}

const char *rmq_compression_name(int32_t sys_flag) {
  return sys_flag & RMQ_SYS_COMPRESSED ? names[kind_of(sys_flag)] : NULL;
}

int32_t rmq_compression_flags(rmq_compression compression) {
  return RMQ_SYS_COMPRESSED | (int32_t)compression << TYPE_SHIFT;
}

/* ---- Compressing ---- */

struct rmq_compressor {
  rmq_compression compression;
  int level;
  struct libdeflate_compressor *deflate; /* for zlib */
  ZSTD_CCtx *zstd;
};

rmq_compressor *rmq_compressor_new(rmq_compression compression, int level) {
  rmq_compressor *compressor = rmq_alloc_zero(1, sizeof *compressor);
  compressor->compression = compression;
  compressor->level = level;
  if (compression == RMQ_COMPRESSION_ZLIB) {
    compressor->deflate = rmq_must(libdeflate_alloc_compressor(level));
  } else if (compression == RMQ_COMPRESSION_ZSTD) {
    compressor->zstd = rmq_must(ZSTD_createCCtx());
  }
  return compressor;
}

void rmq_compressor_free(rmq_compressor *compressor) {
  if (!compressor) return;
  libdeflate_free_compressor(compressor->deflate);
  ZSTD_freeCCtx(compressor->zstd);
  free(compressor);
}

/* ---- What is not worth trying ---- */

/* True when some bytes, taken evenly from the body, are as varied as random ones: compressed,
 * encrypted, or an image. Their counts' squares add up to n + n * n / 256 then, with a deviation of a
 * thirtieth of that; of base64 they add up to three times as much, of text to far more. */
static bool bytes_look_random(rmq_slice body) {
  enum { SAMPLES = 512, LIMIT = (SAMPLES + SAMPLES * SAMPLES / 256) * 5 / 4 };
  uint16_t counts[256] = {0};
  if (body.len < SAMPLES) return false;
  size_t step = body.len / SAMPLES;
  for (size_t i = 0; i < SAMPLES; i++) counts[(uint8_t)body.ptr[i * step]]++;
  uint32_t squares = 0;
  for (size_t i = 0; i < 256; i++) squares += (uint32_t)counts[i] * counts[i];
  return squares < LIMIT;
}

/* True when zlib would work hard for nothing. What looks random may still repeat itself, which LZ4
 * finds out: it is done with random bytes fifty times as fast. */
static bool is_hopeless(rmq_slice body, uint8_t *room, size_t len) {
  if (!bytes_look_random(body) || body.len > LZ4_MAX_INPUT_SIZE) return false;
  return LZ4_compress_default(body.ptr, (char *)room, (int)body.len, (int)(len - len / 64)) == 0;
}

/* Each writes at most `room` bytes at `at`, and returns how many, or 0 when they do not suffice. */

static size_t write_zlib(rmq_compressor *compressor, rmq_slice body, uint8_t *at, size_t room) {
  if (is_hopeless(body, at, room)) return 0;
  return libdeflate_zlib_compress(compressor->deflate, body.ptr, body.len, at, room);
}

static size_t write_zstd(rmq_compressor *compressor, rmq_slice body, uint8_t *at, size_t room) {
  size_t len = ZSTD_compressCCtx(compressor->zstd, at, room, body.ptr, body.len, compressor->level);
  return ZSTD_isError(len) ? 0 : len;
}

/* Java reads only frames whose blocks do not depend on each other. */
static LZ4F_preferences_t lz4_preferences(void) {
  return (LZ4F_preferences_t){
      .frameInfo = {.blockMode = LZ4F_blockIndependent, .blockSizeID = LZ4F_max4MB}};
}

static size_t write_lz4(rmq_slice body, uint8_t *at, size_t room) {
  LZ4F_preferences_t preferences = lz4_preferences();
  size_t len = LZ4F_compressFrame(at, room, body.ptr, body.len, &preferences);
  return LZ4F_isError(len) ? 0 : len;
}

/* LZ4 wants room for the worst case from the start; the others stop when what there is does not
 * suffice. */
static size_t room_for(const rmq_compressor *compressor, rmq_slice body) {
  if (compressor->compression != RMQ_COMPRESSION_LZ4) return body.len - 1;
  LZ4F_preferences_t preferences = lz4_preferences();
  return LZ4F_compressFrameBound(body.len, &preferences);
}

bool rmq_compress(rmq_compressor *compressor, rmq_slice body, rmq_buf *out) {
  if (body.len == 0) return false;
  size_t len = 0, room = room_for(compressor, body);
  uint8_t *at = rmq_buf_reserve(out, room);
  switch (compressor->compression) {
    case RMQ_COMPRESSION_ZLIB:
      len = write_zlib(compressor, body, at, room);
      break;
    case RMQ_COMPRESSION_ZSTD:
      len = write_zstd(compressor, body, at, room);
      break;
    case RMQ_COMPRESSION_LZ4:
      len = write_lz4(body, at, room);
      break;
  }
  if (len == 0 || len >= body.len) return false;
  rmq_buf_commit(out, len);
  return true;
}

/* ---- Decompressing ---- */

/* Each decompresses the whole body into `room` bytes at `at`, and returns 0 with `*len`, RMQ_ELIMIT when
 * they do not suffice, or RMQ_EPROTO. `state` is what it needs to have ready. */
typedef int read_all(void *state, rmq_slice body, uint8_t *at, size_t room, size_t *len);

static int read_zlib(void *state, rmq_slice body, uint8_t *at, size_t room, size_t *len) {
  switch (libdeflate_zlib_decompress(state, body.ptr, body.len, at, room, len)) {
    case LIBDEFLATE_SUCCESS:
      return 0;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return RMQ_ELIMIT;
    default:
      return RMQ_EPROTO;
  }
}

static int read_zstd(void *state, rmq_slice body, uint8_t *at, size_t room, size_t *len) {
  *len = ZSTD_decompressDCtx(state, at, room, body.ptr, body.len);
  if (!ZSTD_isError(*len)) return 0;
  return ZSTD_getErrorCode(*len) == ZSTD_error_dstSize_tooSmall ? RMQ_ELIMIT : RMQ_EPROTO;
}

/* Neither format says reliably how much will come out, so the room is doubled until it suffices: the
 * whole work is at most doubled too, and nothing but the output takes memory. */
static int read_growing(read_all *read, void *state, rmq_slice body, size_t limit, rmq_buf *out) {
  size_t room = body.len * 4 + 64;
  for (;;) {
    if (room > limit) room = limit;
    size_t len = 0;
    int status = read(state, body, rmq_buf_reserve(out, room + 1), room, &len);
    if (status == 0) rmq_buf_commit(out, len);
    if (status != RMQ_ELIMIT || room == limit) return status;
    room *= 2;
  }
}

static int unpack_zlib(rmq_slice body, size_t limit, rmq_buf *out) {
  struct libdeflate_decompressor *state = rmq_must(libdeflate_alloc_decompressor());
  int status = read_growing(read_zlib, state, body, limit, out);
  libdeflate_free_decompressor(state);
  return status;
}

static int unpack_zstd(rmq_slice body, size_t limit, rmq_buf *out) {
  ZSTD_DCtx *state = rmq_must(ZSTD_createDCtx());
  int status = read_growing(read_zstd, state, body, limit, out);
  ZSTD_freeDCtx(state);
  return status;
}

/* One frame after another, until the body has ended with the end of a frame. */
static int read_lz4(LZ4F_dctx *state, rmq_slice body, size_t limit, rmq_buf *out) {
  enum { STEP = 64 * 1024 };
  size_t start = rmq_buf_len(out), hint = 1;
  while (body.len > 0 || hint != 0) {
    size_t taken = body.len, given = STEP;
    hint = LZ4F_decompress(state, rmq_buf_reserve(out, STEP), &given, body.ptr, &taken, NULL);
    if (LZ4F_isError(hint)) return RMQ_EPROTO;
    if (taken == 0 && given == 0 && hint != 0) return RMQ_EPROTO; /* cut short */
    rmq_buf_commit(out, given);
    body = rmq_slice_make(body.ptr + taken, body.len - taken);
    if (rmq_buf_len(out) - start > limit) return RMQ_ELIMIT;
  }
  return 0;
}

static int unpack_lz4(rmq_slice body, size_t limit, rmq_buf *out) {
  LZ4F_dctx *state = NULL;
  rmq_must(LZ4F_isError(LZ4F_createDecompressionContext(&state, LZ4F_VERSION)) ? NULL : state);
  size_t before = rmq_buf_len(out);
  int status = read_lz4(state, body, limit, out);
  if (status < 0) out->end = out->start + before;
  LZ4F_freeDecompressionContext(state);
  return status;
}

int rmq_decompress(int32_t sys_flag, rmq_slice body, size_t limit, rmq_buf *out) {
  if (!(sys_flag & RMQ_SYS_COMPRESSED)) {
    if (body.len > limit) return RMQ_ELIMIT;
    rmq_buf_bytes(out, body.ptr, body.len);
    return 0;
  }
  if (body.len == 0) return RMQ_EPROTO;
  switch (kind_of(sys_flag)) {
    case RMQ_COMPRESSION_ZLIB:
      return unpack_zlib(body, limit, out);
    case RMQ_COMPRESSION_LZ4:
      return unpack_lz4(body, limit, out);
    case RMQ_COMPRESSION_ZSTD:
      return unpack_zstd(body, limit, out);
    default:
      return RMQ_EPROTO;
  }
}

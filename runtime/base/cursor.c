#include "base/cursor.h"

rmq_cursor rmq_cursor_make(rmq_slice bytes) {
  /* An address that is never read: NULL plus an offset would be undefined. */
  static const uint8_t nothing = 0;
  const uint8_t *at = bytes.len ? (const uint8_t *)bytes.ptr : &nothing;
  return (rmq_cursor){at, at + bytes.len, false};
}

size_t rmq_cursor_left(const rmq_cursor *cursor) {
  return cursor->failed ? 0 : (size_t)(cursor->end - cursor->at);
}

/* Steps over `len` bytes and returns where they start, or NULL when they are not there. */
static const uint8_t *take(rmq_cursor *cursor, size_t len) {
  if (rmq_cursor_left(cursor) < len) cursor->failed = true;
  if (cursor->failed) return NULL;
  const uint8_t *at = cursor->at;
  cursor->at += len;
  return at;
}

/* Byte by byte in the source; compilers make one swapped load of it. */
static uint32_t four(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint8_t rmq_cursor_u8(rmq_cursor *cursor) {
  const uint8_t *at = take(cursor, 1);
  return at ? *at : 0;
}

uint16_t rmq_cursor_u16(rmq_cursor *cursor) {
  const uint8_t *at = take(cursor, 2);
  return at ? (uint16_t)(at[0] << 8 | at[1]) : 0;
}

uint32_t rmq_cursor_u32(rmq_cursor *cursor) {
  const uint8_t *at = take(cursor, 4);
  return at ? four(at) : 0;
}

uint64_t rmq_cursor_u64(rmq_cursor *cursor) {
  const uint8_t *at = take(cursor, 8);
  return at ? (uint64_t)four(at) << 32 | four(at + 4) : 0;
}

int16_t rmq_cursor_i16(rmq_cursor *cursor) { return (int16_t)rmq_cursor_u16(cursor); }
int32_t rmq_cursor_i32(rmq_cursor *cursor) { return (int32_t)rmq_cursor_u32(cursor); }
int64_t rmq_cursor_i64(rmq_cursor *cursor) { return (int64_t)rmq_cursor_u64(cursor); }

rmq_slice rmq_cursor_bytes(rmq_cursor *cursor, int64_t len) {
  if (len < 0 || (uint64_t)len > rmq_cursor_left(cursor)) cursor->failed = true;
  if (cursor->failed) return rmq_slice_make(NULL, 0);
  return rmq_slice_make(take(cursor, (size_t)len), (size_t)len);
}

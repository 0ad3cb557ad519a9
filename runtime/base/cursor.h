#ifndef RMQ_BASE_CURSOR_H
#define RMQ_BASE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Reads numbers and bytes out of a slice and never past its end. The first read that does not
 * fit sets `failed`; it and all later reads give zeros and empty slices, so a decoder checks
 * once at its end. Integers are big endian. This is the only way that integers come off the
 * wire. */
typedef struct rmq_cursor {
  const uint8_t *at;
  const uint8_t *end;
  bool failed;
} rmq_cursor;

rmq_cursor rmq_cursor_make(rmq_slice bytes);
size_t rmq_cursor_left(const rmq_cursor *cursor);
uint8_t rmq_cursor_u8(rmq_cursor *cursor);
uint16_t rmq_cursor_u16(rmq_cursor *cursor);
uint32_t rmq_cursor_u32(rmq_cursor *cursor);
uint64_t rmq_cursor_u64(rmq_cursor *cursor);
int16_t rmq_cursor_i16(rmq_cursor *cursor);
int32_t rmq_cursor_i32(rmq_cursor *cursor);
int64_t rmq_cursor_i64(rmq_cursor *cursor);

/* `len` bytes, not copied. A negative or too large length fails. */
rmq_slice rmq_cursor_bytes(rmq_cursor *cursor, int64_t len);

#endif

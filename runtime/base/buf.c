#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

enum { SMALLEST = 256 };

/* Twice the content at least, so that appending costs the same on average however long it gets. */
static size_t grown_cap(const rmq_buf *buf, size_t need) {
  size_t cap = buf->cap < SMALLEST ? SMALLEST : buf->cap;
  while (cap < need) cap = cap > SIZE_MAX / 2 ? need : cap * 2;
  return cap;
}

uint8_t *rmq_buf_grow(rmq_buf *buf, size_t more) {
  size_t len = rmq_buf_len(buf);
  /* No such block exists; asking for it ends the process with the usual line. */
  size_t need = more > SIZE_MAX - len ? SIZE_MAX : len + more;
  /* Moving pays only when at least as much was consumed as must be copied: otherwise a long content
   * that loses one byte and gains one, again and again, would be copied each time. */
  if (buf->data && need <= buf->cap && buf->start >= len) {
    memmove(buf->data, buf->data + buf->start, len);
  } else if (!buf->data || buf->start == 0) {
    buf->cap = grown_cap(buf, need);
    buf->data = rmq_realloc(buf->data, buf->cap);
  } else {
    /* A fresh block: realloc would copy the consumed bytes too. */
    size_t cap = grown_cap(buf, need);
    uint8_t *data = rmq_alloc(cap);
    memcpy(data, buf->data + buf->start, len);
    free(buf->data);
    buf->data = data;
    buf->cap = cap;
  }
  buf->start = 0;
  buf->end = len;
  return buf->data + len;
}

void rmq_buf_consume(rmq_buf *buf, size_t len) {
  buf->start += len;
  if (buf->start == buf->end) buf->start = buf->end = 0;
}

void rmq_buf_clear(rmq_buf *buf) { buf->start = buf->end = 0; }

void rmq_buf_trim(rmq_buf *buf, size_t keep) {
  if (buf->start == buf->end && buf->cap > keep) rmq_buf_free(buf);
}

void rmq_buf_free(rmq_buf *buf) {
  free(buf->data);
  *buf = (rmq_buf){0};
}

/* Byte by byte in the source; compilers make one swapped store of it. */
static void put_u32(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 24);
  at[1] = (uint8_t)(value >> 16);
  at[2] = (uint8_t)(value >> 8);
  at[3] = (uint8_t)value;
}

void rmq_buf_u8(rmq_buf *buf, uint8_t value) {
  *rmq_buf_reserve(buf, 1) = value;
  rmq_buf_commit(buf, 1);
}

void rmq_buf_u16(rmq_buf *buf, uint16_t value) {
  uint8_t *at = rmq_buf_reserve(buf, 2);
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
  rmq_buf_commit(buf, 2);
}

void rmq_buf_u32(rmq_buf *buf, uint32_t value) {
  put_u32(rmq_buf_reserve(buf, 4), value);
  rmq_buf_commit(buf, 4);
}

void rmq_buf_u64(rmq_buf *buf, uint64_t value) {
  uint8_t *at = rmq_buf_reserve(buf, 8);
  put_u32(at, (uint32_t)(value >> 32));
  put_u32(at + 4, (uint32_t)value);
  rmq_buf_commit(buf, 8);
}

void rmq_buf_bytes(rmq_buf *buf, const void *ptr, size_t len) {
  if (len == 0) return;
  memcpy(rmq_buf_reserve(buf, len), ptr, len);
  rmq_buf_commit(buf, len);
}

void rmq_buf_text(rmq_buf *buf, const char *text) { rmq_buf_bytes(buf, text, strlen(text)); }

void rmq_buf_decimal(rmq_buf *buf, int64_t value) {
  char digits[20]; /* -9223372036854775808 */
  size_t at = sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) digits[--at] = '-';
  rmq_buf_bytes(buf, digits + at, sizeof digits - at);
}

void rmq_buf_printf(rmq_buf *buf, const char *format, ...) {
  enum { GUESS = 128 };
  va_list args;
  va_start(args, format);
  int len = vsnprintf((char *)rmq_buf_reserve(buf, GUESS), GUESS, format, args);
  va_end(args);
  if (len < 0) return; /* only for a format that cannot be printed: nothing is appended */
  if (len >= GUESS) {
    size_t room = (size_t)len + 1;
    va_start(args, format);
    vsnprintf((char *)rmq_buf_reserve(buf, room), room, format, args);
    va_end(args);
  }
  rmq_buf_commit(buf, (size_t)len);
}

void rmq_buf_plain(rmq_buf *buf, size_t offset) {
  for (size_t i = buf->start + offset; i < buf->end; i++) {
    if (buf->data[i] < 0x20 || buf->data[i] == 0x7f) buf->data[i] = ' ';
  }
}

void rmq_buf_put_u32(rmq_buf *buf, size_t offset, uint32_t value) {
  put_u32(buf->data + buf->start + offset, value);
}

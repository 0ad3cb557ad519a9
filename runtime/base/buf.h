#ifndef RMQ_BASE_BUF_H
#define RMQ_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* A byte buffer that grows at its end and is consumed from its start. A buffer of zeros is empty
 * and ready to use. Pointers into it are valid until the next call that can grow or move it. */
typedef struct rmq_buf {
  uint8_t *data;
  size_t start; /* the first byte that has not been consumed */
  size_t end;   /* one after the last byte */
  size_t cap;
} rmq_buf;

static inline size_t rmq_buf_len(const rmq_buf *buf) { return buf->end - buf->start; }
static inline uint8_t *rmq_buf_head(const rmq_buf *buf) { return buf->data + buf->start; }
static inline rmq_slice rmq_buf_slice(const rmq_buf *buf) {
  size_t len = rmq_buf_len(buf);
  return rmq_slice_make(len ? buf->data + buf->start : NULL, len);
}

/* Makes room for `more` bytes after the end and returns where they go. Moves the content to the
 * front when that is enough and cheap, so consuming and appending in turn keeps the memory flat. */
uint8_t *rmq_buf_grow(rmq_buf *buf, size_t more); /* when there is not enough room at the end */
static inline uint8_t *rmq_buf_reserve(rmq_buf *buf, size_t more) {
  if (buf->data && buf->cap - buf->end >= more) return buf->data + buf->end;
  return rmq_buf_grow(buf, more);
}

/* Counts `len` bytes written at the place that rmq_buf_reserve gave. */
static inline void rmq_buf_commit(rmq_buf *buf, size_t len) { buf->end += len; }

/* Drops `len` bytes at the start; an empty buffer starts again at its front. */
void rmq_buf_consume(rmq_buf *buf, size_t len);

/* Empties the buffer and keeps its memory. */
void rmq_buf_clear(rmq_buf *buf);

/* Gives memory back when the buffer is empty and holds more than `keep` bytes. */
void rmq_buf_trim(rmq_buf *buf, size_t keep);

/* Releases the memory; the buffer is empty and usable afterwards. */
void rmq_buf_free(rmq_buf *buf);

/* Integers are appended in network order (big endian). */
void rmq_buf_u8(rmq_buf *buf, uint8_t value);
void rmq_buf_u16(rmq_buf *buf, uint16_t value);
void rmq_buf_u32(rmq_buf *buf, uint32_t value);
void rmq_buf_u64(rmq_buf *buf, uint64_t value);
void rmq_buf_bytes(rmq_buf *buf, const void *ptr, size_t len);
void rmq_buf_text(rmq_buf *buf, const char *text);
void rmq_buf_decimal(rmq_buf *buf, int64_t value);

/* printf at the end of the buffer, without a terminating NUL. */
void rmq_buf_printf(rmq_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes what a peer has written fit to be shown: control characters from `offset` of the content on
 * become blanks, so that they neither steer a terminal nor look like lines of ours. */
void rmq_buf_plain(rmq_buf *buf, size_t offset);

/* Overwrites a 32-bit number at `offset` counted from the start of the content. */
void rmq_buf_put_u32(rmq_buf *buf, size_t offset, uint32_t value);

#endif

#ifndef RMQ_BASE_SLICE_H
#define RMQ_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes that somebody else owns. A slice is passed by value, is never NUL terminated, and is valid
 * only as long as its owner says. `ptr` may be NULL when `len` is 0. */
typedef struct rmq_slice {
  const char *ptr;
  size_t len;
} rmq_slice;

static inline rmq_slice rmq_slice_make(const void *ptr, size_t len) {
  return (rmq_slice){(const char *)ptr, len};
}

/* The bytes of a C string, without its terminator. NULL gives the empty slice. */
static inline rmq_slice rmq_slice_text(const char *text) {
  return (rmq_slice){text, text ? strlen(text) : 0};
}

static inline bool rmq_slice_equal(rmq_slice a, rmq_slice b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool rmq_slice_is(rmq_slice a, const char *text) {
  return rmq_slice_equal(a, rmq_slice_text(text));
}

#endif

#include "select/hash.h"

#include "base/utf8.h"

/* What is 31 times as much and `unit` more, in wrapping arithmetic. */
static uint32_t add(uint32_t hash, uint32_t unit) { return hash * 31 + unit; }

static uint32_t add_point(uint32_t hash, uint32_t point) {
  if (point < 0x10000) return add(hash, point);
  point -= 0x10000;
  return add(add(hash, 0xD800 + (point >> 10)), 0xDC00 + (point & 0x3FF));
}

int32_t rmq_hash_java_text(rmq_slice text) {
  uint32_t hash = 0;
  if (text.len == 0) return 0;
  const char *at = text.ptr, *end = text.ptr + text.len;
  while (at < end) {
    /* Mostly ASCII: no decoding. */
    uint8_t byte = (uint8_t)*at;
    if (byte < 0x80) {
      hash = add(hash, byte);
      at++;
    } else {
      hash = add_point(hash, rmq_utf8_next(&at, end));
    }
  }
  return (int32_t)hash;
}

int32_t rmq_hash_java_long(int64_t value) {
  uint64_t bits = (uint64_t)value;
  return (int32_t)(uint32_t)(bits ^ bits >> 32);
}

int32_t rmq_hash_java_boolean(bool value) { return value ? 1231 : 1237; }

uint32_t rmq_hash_fnv1a(rmq_slice bytes) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < bytes.len; i++) hash = (hash ^ (uint8_t)bytes.ptr[i]) * 16777619u;
  return hash;
}

uint32_t rmq_hash_spread(rmq_slice bytes) {
  uint32_t hash = rmq_hash_fnv1a(bytes);
  /* The finalizer of MurmurHash3. */
  hash ^= hash >> 16;
  hash *= 0x85EBCA6Bu;
  hash ^= hash >> 13;
  hash *= 0xC2B2AE35u;
  return hash ^ hash >> 16;
}

#include "base/utf8.h"

#include <stdint.h>

/* The length of the valid sequence at `at`, or 0. The second byte's range is what keeps out
 * overlong forms (E0, F0), surrogates (ED) and what is over U+10FFFF (F4); the others are 80 to
 * BF. */
static size_t sequence(const uint8_t *at, size_t left) {
  uint8_t first = at[0];
  uint8_t low = 0x80, high = 0xBF;
  size_t len;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) {
    len = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    len = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    len = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (left < len || at[1] < low || at[1] > high) return 0;
  for (size_t i = 2; i < len; i++) {
    if (at[i] < 0x80 || at[i] > 0xBF) return 0;
  }
  return len;
}

size_t rmq_utf8_invalid_at(rmq_slice text) {
  const uint8_t *bytes = (const uint8_t *)text.ptr;
  size_t at = 0;
  while (at < text.len) {
    uint64_t eight;
    /* Most text is ASCII: eight bytes at a time while none has its top bit set. */
    while (text.len - at >= sizeof eight) {
      memcpy(&eight, bytes + at, sizeof eight);
      if (eight & 0x8080808080808080u) break;
      at += sizeof eight;
    }
    if (at == text.len) break;
    size_t len = sequence(bytes + at, text.len - at);
    if (len == 0) return at;
    at += len;
  }
  return text.len;
}

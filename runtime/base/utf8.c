#include "base/utf8.h"

/* The sequence that a first byte begins. The second byte's range is what keeps out overlong forms
 * (E0, F0), surrogates (ED) and what is over U+10FFFF (F4); the others are 80 to BF. */
typedef struct sequence {
  size_t len; /* 0: no sequence begins so */
  uint8_t low, high;
} sequence;

static sequence begun_by(uint8_t first) {
  sequence s = {0, 0x80, 0xBF};
  if (first < 0x80) {
    s.len = 1;
  } else if (first >= 0xC2 && first <= 0xDF) {
    s.len = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    s.len = 3;
    if (first == 0xE0) s.low = 0xA0;
    if (first == 0xED) s.high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    s.len = 4;
    if (first == 0xF0) s.low = 0x90;
    if (first == 0xF4) s.high = 0x8F;
  }
  return s;
}

/* How many of the sequence's bytes, up to all, stand at `at`. */
static size_t matching(const sequence *s, const uint8_t *at, size_t left) {
  if (s->len < 2 || left < 2 || at[1] < s->low || at[1] > s->high) return 1;
  size_t n = 2;
  while (n < s->len && n < left && at[n] >= 0x80 && at[n] <= 0xBF) n++;
  return n;
}

/* The length of the valid sequence at `at`, or 0. */
static size_t valid_sequence(const uint8_t *at, size_t left) {
  sequence s = begun_by(at[0]);
  return s.len > 0 && matching(&s, at, left) == s.len ? s.len : 0;
}

uint32_t rmq_utf8_next(const char **at, const char *end) {
  const uint8_t *bytes = (const uint8_t *)*at;
  sequence s = begun_by(bytes[0]);
  size_t n = matching(&s, bytes, (size_t)(end - *at));
  *at += n;
  if (s.len == 0 || n < s.len) return 0xFFFD;
  if (n == 1) return bytes[0];
  uint32_t point = bytes[0] & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) point = point << 6 | (bytes[i] & 0x3Fu);
  return point;
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
    size_t len = valid_sequence(bytes + at, text.len - at);
    if (len == 0) return at;
    at += len;
  }
  return text.len;
}

#include "wire/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const char *rmq_scan_string_portable(const char *at, const char *end, bool *high) {
  unsigned char seen = 0;
  while (at < end && *at != '"' && *at != '\\') seen |= (unsigned char)*at++;
  if (seen & 0x80) *high = true;
  return at;
}

/* Adds the quotes of `text` from `from` on. False when there is a backslash or no room. */
static bool quotes_from(rmq_slice text, size_t from, rmq_quotes *out) {
  unsigned char seen = 0;
  for (size_t i = from; i < text.len; i++) {
    char c = text.ptr[i];
    seen |= (unsigned char)c;
    if (c == '\\') return false;
    if (c != '"') continue;
    if (out->count >= RMQ_QUOTES_MAX) return false;
    out->at[out->count++] = (uint16_t)i;
  }
  if (seen & 0x80) out->high = true;
  return true;
}

bool rmq_quotes_find_portable(rmq_slice text, rmq_quotes *out) {
  out->count = 0;
  out->high = false;
  return text.len <= UINT16_MAX && quotes_from(text, 0, out);
}

#ifdef __SSE2__

const char *rmq_scan_string(const char *at, const char *end, bool *high) {
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  while (end - at >= 16) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
    unsigned stop = (unsigned)_mm_movemask_epi8(stops);
    unsigned not_ascii = (unsigned)_mm_movemask_epi8(bytes);
    if (stop) {
      unsigned before = (stop & (0u - stop)) - 1;
      if (not_ascii & before) *high = true;
      return at + __builtin_ctz(stop);
    }
    if (not_ascii) *high = true;
    at += 16;
  }
  return rmq_scan_string_portable(at, end, high);
}

bool rmq_quotes_find(rmq_slice text, rmq_quotes *out) {
  out->count = 0;
  out->high = false;
  if (text.len > UINT16_MAX) return false;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  __m128i seen = _mm_setzero_si128();
  __m128i escapes = _mm_setzero_si128();
  size_t count = 0;
  size_t i = 0;
  for (; i + 16 <= text.len; i += 16) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text.ptr + i));
    unsigned quotes = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quote));
    seen = _mm_or_si128(seen, bytes);
    escapes = _mm_or_si128(escapes, _mm_cmpeq_epi8(bytes, backslash));
    /* One chunk holds 16 quotes at most, for which the array has room after its limit. */
    while (quotes) {
      out->at[count++] = (uint16_t)(i + (size_t)__builtin_ctz(quotes));
      quotes &= quotes - 1;
    }
    if (count > RMQ_QUOTES_MAX) return false;
  }
  out->count = count;
  out->high = _mm_movemask_epi8(seen) != 0;
  return _mm_movemask_epi8(escapes) == 0 && quotes_from(text, i, out);
}

#else

const char *rmq_scan_string(const char *at, const char *end, bool *high) {
  return rmq_scan_string_portable(at, end, high);
}

bool rmq_quotes_find(rmq_slice text, rmq_quotes *out) {
  return rmq_quotes_find_portable(text, out);
}

#endif

#include "wire/number.h"

#include "base/error.h"

static const char digit_pairs[] =
    "00010203040506070809"
    "10111213141516171819"
    "20212223242526272829"
    "30313233343536373839"
    "40414243444546474849"
    "50515253545556575859"
    "60616263646566676869"
    "70717273747576777879"
    "80818283848586878889"
    "90919293949596979899";

int rmq_number_i64(rmq_slice text, int64_t *out) {
  if (text.len == 0) return RMQ_EPROTO;
  const char *at = text.ptr;
  const char *end = at + text.len;
  bool negative = *at == '-';
  if (negative) at++;
  if (at == end) return RMQ_EPROTO;
  /* A negative number may be one larger than a positive one. */
  uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
  /* Below this any digit fits; the exact bound, with its division, is for the last one only. */
  const uint64_t safe = INT64_MAX / 10;
  uint64_t sum = 0;
  for (; at < end; at++) {
    unsigned digit = (unsigned)(unsigned char)*at - '0';
    if (digit > 9) return RMQ_EPROTO;
    if (sum >= safe && sum > (limit - digit) / 10) return RMQ_EPROTO;
    sum = sum * 10 + digit;
  }
  *out = negative ? (int64_t)(0 - sum) : (int64_t)sum;
  return 0;
}

int rmq_number_i32(rmq_slice text, int32_t *out) {
  int64_t value;
  int err = rmq_number_i64(text, &value);
  if (err) return err;
  if (value < INT32_MIN || value > INT32_MAX) return RMQ_EPROTO;
  *out = (int32_t)value;
  return 0;
}

static size_t count_digits(uint64_t value) {
  for (size_t n = 0;; n += 4) {
    if (value < 10) return n + 1;
    if (value < 100) return n + 2;
    if (value < 1000) return n + 3;
    if (value < 10000) return n + 4;
    value /= 10000;
  }
}

size_t rmq_number_write(char *at, int64_t value) {
  uint64_t rest = (uint64_t)value;
  size_t sign = value < 0;
  if (sign) {
    *at = '-';
    rest = 0 - rest;
  }
  size_t len = sign + count_digits(rest);
  char *first = at + len;
  while (rest >= 10) {
    first -= 2;
    memcpy(first, digit_pairs + rest % 100 * 2, 2);
    rest /= 100;
  }
  /* With an even number of digits the pairs have left nothing. */
  if (first > at + sign) at[sign] = (char)('0' + rest);
  return len;
}

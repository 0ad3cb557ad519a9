#include "producer/policy.h"

#include "base/error.h"
#include "wire/codes.h"

static bool is_between(char c) { return c == ' ' || c == ','; }

/* Takes one number from the front of `text`. */
static int read_code(rmq_slice *text, int32_t *code) {
  size_t at = 0;
  bool negative = text->ptr[0] == '-';
  int64_t value = 0;
  if (negative) at++;
  size_t first = at;
  for (; at < text->len && !is_between(text->ptr[at]); at++) {
    char c = text->ptr[at];
    if (c < '0' || c > '9' || at - first >= 10) return RMQ_EINVAL;
    value = value * 10 + (c - '0');
  }
  if (negative) value = -value;
  if (at == first || value < INT32_MIN || value > INT32_MAX) return RMQ_EINVAL;
  *code = (int32_t)value;
  *text = rmq_slice_make(text->ptr + at, text->len - at);
  return 0;
}

int rmq_policy_codes_read(rmq_slice text, rmq_policy_codes *codes) {
  codes->n = 0;
  while (text.len > 0) {
    if (is_between(text.ptr[0])) {
      text = rmq_slice_make(text.ptr + 1, text.len - 1);
      continue;
    }
    if (codes->n == RMQ_POLICY_CODES_MAX) return RMQ_EINVAL;
    if (read_code(&text, &codes->list[codes->n]) < 0) return RMQ_EINVAL;
    codes->n++;
  }
  return 0;
}

bool rmq_policy_retries_code(const rmq_policy_codes *codes, int32_t code) {
  for (size_t i = 0; i < codes->n; i++) {
    if (codes->list[i] == code) return true;
  }
  return false;
}

bool rmq_policy_code_is_stale_route(int32_t code) {
  return code == RMQ_SERVICE_NOT_AVAILABLE || code == RMQ_NO_PERMISSION ||
         code == RMQ_TOPIC_NOT_EXIST;
}

int64_t rmq_policy_attempt_us(int64_t left_us, const rmq_attempt_limits *limits) {
  int64_t share = left_us;
  if (limits->attempt_timeout_ms > 0) {
    share = limits->attempt_timeout_ms * 1000;
  } else if (limits->attempts_left > 0 && limits->another_broker) {
    int64_t floor_us = limits->attempt_floor_ms * 1000;
    share = left_us / 2 > floor_us ? left_us / 2 : floor_us;
  }
  return share < left_us ? share : left_us;
}

int64_t rmq_policy_pause_us(int n, uint64_t random) {
  enum { FIRST_US = 10000, MOST_DOUBLINGS = 6 };
  int doublings = n < MOST_DOUBLINGS ? n : MOST_DOUBLINGS;
  int64_t middle = (int64_t)FIRST_US << doublings;
  return middle / 2 + (int64_t)(random % (uint64_t)(middle + 1));
}

bool rmq_policy_may_retry(const rmq_policy_codes *codes, const rmq_attempt_end *end) {
  if (end->given_queue) {
    /* "Go away" says that the broker did not look at the request. */
    if (end->refused && end->code != RMQ_GO_AWAY) return false;
    if (!end->refused) return !end->written;
  }
  return !end->refused || rmq_policy_retries_code(codes, end->code);
}

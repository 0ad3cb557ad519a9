#include "producer/policy.h"

#include "wire/codes.h"

bool rmq_policy_retries_code(int32_t code) {
  switch (code) {
    case RMQ_SYSTEM_ERROR:
    case RMQ_SYSTEM_BUSY:
    case RMQ_SERVICE_NOT_AVAILABLE:
    case RMQ_NO_PERMISSION:
    case RMQ_TOPIC_NOT_EXIST:
    case RMQ_NO_BUYER_ID:
    case RMQ_NOT_IN_CURRENT_UNIT:
    case RMQ_GO_AWAY:
      return true;
    default:
      return false;
  }
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

bool rmq_policy_may_retry(const rmq_attempt_end *end) {
  if (end->given_queue) {
    /* "Go away" says that the broker did not look at the request. */
    return end->refused ? end->code == RMQ_GO_AWAY : !end->written;
  }
  return !end->refused || rmq_policy_retries_code(end->code);
}

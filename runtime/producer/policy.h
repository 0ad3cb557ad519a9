#ifndef RMQ_PRODUCER_POLICY_H
#define RMQ_PRODUCER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* When a send tries again, and how long an attempt may take. One policy for all modes. Pure. */

/* The answers that another attempt may not get (the setting retry_response_codes). */
enum { RMQ_POLICY_CODES_MAX = 64 };
typedef struct rmq_policy_codes {
  int32_t list[RMQ_POLICY_CODES_MAX];
  size_t n;
} rmq_policy_codes;

/* Reads "1 2 14" or "1,2,14". 0, or RMQ_EINVAL when something is no number within int32, or there
 * are too many. */
int rmq_policy_codes_read(rmq_slice text, rmq_policy_codes *codes);

bool rmq_policy_retries_code(const rmq_policy_codes *codes, int32_t code);

/* The answers that mean that our route is out of date: 14, 16, 17. */
bool rmq_policy_code_is_stale_route(int32_t code);

typedef struct rmq_attempt_limits {
  int attempts_left;          /* after this one */
  bool another_broker;        /* another broker could be tried afterwards */
  int64_t attempt_timeout_ms; /* 0: not set */
  int64_t attempt_floor_ms;
} rmq_attempt_limits;

/* How long an attempt may take, in microseconds (`left_us` of the budget are left). While attempts
 * are left and another broker could take the next one, half of what is left but at least the floor,
 * so that a broker that hangs leaves time for it; else all that is left. attempt_timeout_ms decides
 * instead when it is set. Never more than is left. */
int64_t rmq_policy_attempt_us(int64_t left_us, const rmq_attempt_limits *limits);

/* How long to wait, in microseconds, before a broker that has failed this send is asked again:
 * about 10 ms the first time (`n` 0), twice as long each time up to about 640 ms, spread by half of
 * it to either side. */
int64_t rmq_policy_pause_us(int n, uint64_t random);

/* How an attempt that did not store the message ended, as far as trying again is concerned. */
typedef struct rmq_attempt_end {
  bool refused; /* the broker answered with `code`; else the attempt broke off */
  int32_t code;
  bool written;     /* the broker may have got the message */
  bool given_queue; /* the message may go to one queue only */
} rmq_attempt_end;

/* True when the message may be sent again: with a free choice after anything but a refusal that all
 * brokers would repeat; to a given queue only where the broker certainly did not take the
 * message. */
bool rmq_policy_may_retry(const rmq_policy_codes *codes, const rmq_attempt_end *end);

#endif

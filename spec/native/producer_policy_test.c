/* When a send tries again, and how long an attempt may take. */
#include "check.h"
#include "producer/policy.h"

static void codes(void) {
  static const int32_t yes[] = {1, 2, 14, 16, 17, 204, 205, 1500};
  int count = 0;
  for (int32_t code = -10; code < 2000; code++) count += rmq_policy_retries_code(code);
  CHECK_INT(count, 8);
  for (int i = 0; i < 8; i++) CHECK(rmq_policy_retries_code(yes[i]));
  CHECK(rmq_policy_code_is_stale_route(17) && rmq_policy_code_is_stale_route(14));
  CHECK(rmq_policy_code_is_stale_route(16) && !rmq_policy_code_is_stale_route(2));
}

static int64_t attempt(int64_t left_ms, int attempts_left, bool another, int64_t timeout_ms) {
  rmq_attempt_limits limits = {attempts_left, another, timeout_ms, 500};
  return rmq_policy_attempt_us(left_ms * 1000, &limits) / 1000;
}

static void shares(void) {
  CHECK_INT(attempt(3000, 2, true, 0), 1500);
  CHECK_INT(attempt(1500, 1, true, 0), 750);
  CHECK_INT(attempt(750, 0, true, 0), 750);    /* the last gets all */
  CHECK_INT(attempt(3000, 2, false, 0), 3000); /* nobody else could use the rest */
  CHECK_INT(attempt(900, 2, true, 0), 500);    /* the floor */
  CHECK_INT(attempt(300, 2, true, 0), 300);    /* never more than is left */
  CHECK_INT(attempt(3000, 2, true, 100), 100);
  CHECK_INT(attempt(3000, 0, false, 100), 100);
  CHECK_INT(attempt(50, 2, true, 100), 50);
}

static void pauses(void) {
  for (int n = 0; n < 12; n++) {
    int64_t middle = 10000LL << (n < 6 ? n : 6);
    CHECK_INT(rmq_policy_pause_us(n, 0), middle / 2);
    CHECK_INT(rmq_policy_pause_us(n, (uint64_t)middle), middle / 2 + middle);
    for (uint64_t r = 1; r < 1000; r++) {
      int64_t pause = rmq_policy_pause_us(n, r * 0x9e3779b97f4a7c15u);
      CHECK(pause >= middle / 2 && pause <= middle / 2 + middle);
    }
  }
}

static bool may(bool refused, int32_t code, bool written, bool given) {
  return rmq_policy_may_retry(&(rmq_attempt_end){refused, code, written, given});
}

static void who_may_try_again(void) {
  CHECK(may(false, 0, false, false));
  CHECK(may(false, 0, true, false));
  CHECK(may(true, 2, true, false));
  CHECK(!may(true, 13, true, false));
  CHECK(!may(true, 3, true, false));
  CHECK(may(false, 0, false, true)); /* nothing was written */
  CHECK(!may(false, 0, true, true)); /* may have been stored */
  CHECK(!may(true, 2, true, true));
  CHECK(may(true, 1500, true, true)); /* the broker did not look at it */
}

int main(void) {
  check_run("codes", codes);
  check_run("shares of the budget", shares);
  check_run("pauses", pauses);
  check_run("who may try again", who_may_try_again);
  return check_end();
}

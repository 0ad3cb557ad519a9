/* When a send tries again, and how long an attempt may take. */
#include "check.h"
#include "producer/policy.h"
#include "producer/settings.h"

static void the_codes(void) {
  static const int32_t yes[] = {1, 2, 14, 16, 17, 204, 205, 1500};
  int count = 0;
  rmq_policy_codes codes;
  rmq_settings settings;
  rmq_settings_init(&settings);
  CHECK_INT(rmq_policy_codes_read(rmq_slice_text(settings.retry_response_codes), &codes), 0);
  rmq_settings_free(&settings);
  for (int32_t code = -10; code < 2000; code++) count += rmq_policy_retries_code(&codes, code);
  CHECK_INT(count, 8);
  for (int i = 0; i < 8; i++) CHECK(rmq_policy_retries_code(&codes, yes[i]));
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

static size_t read_codes(const char *text, rmq_policy_codes *codes) {
  return rmq_policy_codes_read(rmq_slice_text(text), codes) == 0 ? codes->n : 999;
}

static void codes_of_ones_own(void) {
  rmq_policy_codes codes;
  CHECK_INT(read_codes("", &codes), 0);
  CHECK(!rmq_policy_retries_code(&codes, 2) && !rmq_policy_retries_code(&codes, 0));
  CHECK_INT(read_codes(" 7,-8  2147483647, ", &codes), 3);
  CHECK(rmq_policy_retries_code(&codes, 7) && rmq_policy_retries_code(&codes, -8));
  CHECK(rmq_policy_retries_code(&codes, INT32_MAX) && !rmq_policy_retries_code(&codes, 8));
  static const char *const wrong[] = {"x", "1x", "-", "1 -", "2147483648", "99999999999", "1.5"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    CHECK_INT(read_codes(wrong[i], &codes), 999);
  }
  char many[3 * (RMQ_POLICY_CODES_MAX + 1) + 1] = "";
  for (int i = 0; i < RMQ_POLICY_CODES_MAX; i++) memcpy(many + 2 * i, "1 ", 3);
  CHECK_INT(read_codes(many, &codes), RMQ_POLICY_CODES_MAX);
  memcpy(many + 2 * RMQ_POLICY_CODES_MAX, "1", 2);
  CHECK_INT(read_codes(many, &codes), 999);
}

static bool may(bool refused, int32_t code, bool written, bool given) {
  rmq_policy_codes codes;
  rmq_policy_codes_read(rmq_slice_text("1 2 1500"), &codes);
  return rmq_policy_may_retry(&codes, &(rmq_attempt_end){refused, code, written, given});
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
  check_run("codes", the_codes);
  check_run("codes of one's own", codes_of_ones_own);
  check_run("shares of the budget", shares);
  check_run("pauses", pauses);
  check_run("who may try again", who_may_try_again);
  return check_end();
}

/* Brokers that are avoided because they are slow or have failed: a producer with latency_fault, in
 * virtual time. The tables' every boundary is in select_rules_test.c, every rule of the choice in
 * select_fault_test.c. */
#include "base/error.h"
#include "producer_world.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"
#define C "10.0.0.2:3"

enum { OK = 0, BUSY = 2, ILLEGAL = 13, GO_AWAY = 1500 };

static world_end end;

static void set(const char *name, const char *value) {
  char why[256] = "";
  int status = rmq_settings_set_text(&world_settings, rmq_setting_find(rmq_slice_text(name)),
                                     rmq_slice_text(value), why, sizeof why);
  if (status < 0) printf("%s\n", why);
  CHECK_INT(status, 0);
}

/* A producer of a strategy, with a topic T of one queue on each of the brokers. */
static void begin(const char *strategy, const char *brokers) {
  world_begin();
  memset(&end, 0, sizeof end);
  set("latency_fault", strategy);
  world_topic_set("T", brokers, 1, 6);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  world_end_all();
}

/* Sends and lets time pass until it is answered. */
static void send_one(const rmq_send_options *options) {
  int before = end.dones;
  CHECK_INT(world_send_with("T", options, &end), 0);
  world_settle();
  for (int ms = 0; end.dones == before && ms < 10000; ms++) world_run(1);
  CHECK_INT(end.dones, before + 1);
}

/* How many of the next `n` sends go to a broker. */
static int share_of(const char *addr, int n) {
  int before = world_at(addr)->sends;
  for (int i = 0; i < n; i++) send_one(&world_options);
  return world_at(addr)->sends - before;
}

/* Sends one message that broker a gets first, whatever the round robin says, and what it does to
 * it. The others answer. */
static void let_a_do(world_act act) {
  int before = world_at(A)->sends;
  world_at(A)->always = act;
  while (world_at(A)->sends == before) send_one(&world_options);
  world_at(A)->always = (world_act){0};
}

/* The same, with an answer that takes its time. */
static void let_a_be_slow(int64_t ms) {
  world_at(A)->delay_ms = ms;
  let_a_do((world_act){.mood = WORLD_ANSWERS});
  world_at(A)->delay_ms = 0;
}

static const rmq_fault_view *fault_of(const char *broker) {
  static rmq_fault_view view;
  for (size_t at = 0; rmq_producer_next_fault(producer, &at, &view);) {
    if (rmq_slice_is(view.broker, broker)) return &view;
  }
  return NULL;
}

static bool available(const char *broker) {
  return rmq_producer_available(producer, rmq_slice_text(broker));
}

/* Lets `ms` pass in one jump, and what is due in it happen at its end. */
static void jump(int64_t ms) {
  fake_advance(world_fake, ms);
  world_settle();
}

/* Broker a is avoided for exactly `ms` from now on, and then gets its half again. */
static void check_avoided_for(int64_t ms) {
  const rmq_fault_view *view = fault_of("a");
  CHECK(view != NULL);
  if (!view) return;
  CHECK_INT(view->avoided_us, ms * 1000);
  CHECK(!available("a") && available("b"));
  CHECK_INT(share_of(A, 8), 0);
  jump(ms - 1);
  CHECK_INT(fault_of("a")->avoided_us, 1000);
  CHECK(!available("a"));
  CHECK_INT(share_of(A, 8), 0);
  jump(1);
  CHECK_INT(fault_of("a")->avoided_us, 0);
  CHECK(available("a"));
  CHECK_INT(share_of(A, 8), 4);
}

static void a_failure_isolates(const char *strategy, int64_t ms) {
  begin(strategy, "ab");
  world_start();
  let_a_do((world_act){.mood = WORLD_CODE, .code = BUSY});
  CHECK(!end.failed && strcmp(end.broker, "b") == 0);
  CHECK_INT(end.attempts, 2);
  CHECK(!fault_of("a")->reachable);
  check_avoided_for(ms);
  CHECK(fault_of("a")->reachable);
  finish();
  begin(strategy, "ab");
  world_start();
  let_a_do((world_act){.mood = WORLD_CLOSES});
  CHECK(!end.failed && fault_of("a")->reachable); /* there is no detector to find out more */
  check_avoided_for(ms);
  finish();
}

static void failures_isolate(void) {
  a_failure_isolates("true", 600000);
  a_failure_isolates("5.x", 10000);
}

static void slowness(const char *strategy, int64_t delay_ms, int64_t avoided_ms) {
  begin(strategy, "ab");
  world_start();
  let_a_be_slow(delay_ms);
  CHECK(!end.failed);
  const rmq_fault_view *view = fault_of("a");
  CHECK(view && view->reachable);
  if (view) CHECK_INT(view->latency_us, delay_ms * 1000);
  if (avoided_ms > 0) {
    check_avoided_for(avoided_ms);
  } else {
    CHECK_INT(share_of(A, 8), 4);
  }
  finish();
}

static void slow_brokers_are_avoided(void) {
  slowness("true", 549, 0);
  slowness("true", 550, 30000);
  slowness("true", 1000, 60000);
  slowness("5.x", 549, 0);
  slowness("5.x", 550, 2000);
  slowness("5.x", 1000, 2000);
}

static void tables_of_ones_own(void) {
  begin("5.x", "ab");
  set("latency_max", "20,200");
  set("not_available_duration", "70,900");
  world_start();
  let_a_be_slow(20);
  check_avoided_for(70);
  let_a_do((world_act){.mood = WORLD_CODE, .code = BUSY});
  check_avoided_for(900);
  finish();
}

/* A failure is known before its retry is chosen: with broker b avoided only c is left. */
static void a_retry_knows_all_failures(void) {
  begin("5.x", "abc");
  world_start();
  world_at(B)->always = world_at(A)->always = (world_act){.mood = WORLD_CODE, .code = BUSY};
  while (!fault_of("a") || !fault_of("b")) send_one(&world_options);
  int before = world_at(A)->sends + world_at(B)->sends;
  CHECK_INT(share_of(C, 12), 12);
  CHECK_INT(world_at(A)->sends + world_at(B)->sends, before);
  world_at(B)->always = (world_act){0};
  world_script(C, (world_act){.mood = WORLD_CODE, .code = BUSY});
  send_one(&world_options); /* c fails; all are isolated now, and c is the last to be asked */
  CHECK(!end.failed && strcmp(end.broker, "b") == 0);
  finish();
}

/* What says nothing about the broker. */
static void what_is_not_noted(void) {
  begin("true", "a");
  world_start();
  world_script(A, (world_act){.mood = WORLD_CODE, .code = ILLEGAL});
  send_one(&world_options);
  CHECK(end.failed && end.code == ILLEGAL && !fault_of("a"));
  rmq_send_options oneway = {.retries = -1, .mode = RMQ_MODE_ONEWAY};
  send_one(&oneway);
  CHECK(!end.failed && !fault_of("a"));
  world_script(A, (world_act){.mood = WORLD_CODE, .code = GO_AWAY});
  world_script(A, (world_act){.mood = WORLD_CODE, .code = GO_AWAY});
  rmq_send_options once = {.retries = 0};
  send_one(&once);
  CHECK(end.failed);
  CHECK_INT(fault_of("a")->avoided_us, 600000000);
  finish();
  begin("5.x", "a");
  world_start();
  world_script(A, (world_act){.mood = WORLD_CODE, .code = GO_AWAY});
  send_one(&world_options);
  CHECK(!end.failed);
  CHECK_INT(end.attempts, 2);
  CHECK_INT(fault_of("a")->avoided_us, 0); /* a good answer would not have ended it */
  finish();
  begin("false", "a");
  world_start();
  world_script(A, (world_act){.mood = WORLD_CODE, .code = BUSY});
  send_one(&world_options);
  CHECK(!end.failed && !fault_of("a") && available("a"));
  finish();
}

/* The retry codes of the settings decide what speaks against a broker. */
static void retry_codes_of_ones_own(void) {
  begin("true", "a");
  set("retry_response_codes", "13");
  world_start();
  rmq_send_options once = {.retries = 0};
  world_script(A, (world_act){.mood = WORLD_CODE, .code = BUSY});
  send_one(&once);
  CHECK(end.failed && !fault_of("a"));
  world_script(A, (world_act){.mood = WORLD_CODE, .code = ILLEGAL});
  send_one(&once);
  CHECK(end.failed && fault_of("a") && !available("a"));
  finish();
}

/* Messages for a given queue tell how its broker does, and are not kept from it. */
static void given_queues(void) {
  begin("5.x", "ab");
  world_start();
  rmq_send_options to_a = {.retries = 0, .broker = rmq_slice_text("a")};
  world_script(A, (world_act){.mood = WORLD_CODE, .code = BUSY});
  send_one(&to_a);
  CHECK(end.failed && !available("a"));
  CHECK_INT(share_of(A, 6), 0);
  send_one(&to_a);
  CHECK(!end.failed);
  CHECK(!available("a")); /* since 5.1.4 a good answer does not end an isolation */
  finish();
}

static void a_good_answer_ends_an_isolation_before_5_1_4(void) {
  begin("true", "ab");
  world_start();
  rmq_send_options to_a = {.retries = 0, .broker = rmq_slice_text("a")};
  world_script(A, (world_act){.mood = WORLD_CODE, .code = BUSY});
  send_one(&to_a);
  CHECK(end.failed && !available("a"));
  send_one(&to_a);
  CHECK(!end.failed && available("a"));
  finish();
}

/* ---- The detector ---- */

static void begin_with_detector(void) {
  begin("5.x", "ab");
  world_settings.start_detector_enable = true;
  world_start();
}

/* Broker a cannot be reached, b is slow: both are avoided, and only b counts as reachable. */
static void make_a_unreachable(void) {
  rmq_send_options to_b = {.retries = 0, .broker = rmq_slice_text("b")};
  let_a_do((world_act){.mood = WORLD_CLOSES});
  world_at(B)->delay_ms = 1800;
  send_one(&to_b);
  world_at(B)->delay_ms = 0;
  CHECK(!available("a") && !available("b"));
  CHECK(!fault_of("a")->reachable && fault_of("b")->reachable);
  CHECK_INT(share_of(A, 6), 0);
}

static void a_probe_finds_a_broker_again(void) {
  begin_with_detector();
  make_a_unreachable();
  CHECK_INT(world_at(A)->probes, 0);
  world_run(2999 - world_now_us() / 1000);
  CHECK_INT(world_at(A)->probes, 0);
  world_run(1);
  CHECK_INT(world_at(A)->probes, 1);
  CHECK(fault_of("a")->reachable && !available("a"));
  CHECK_INT(share_of(A, 6), 3);
  world_run(3500);
  CHECK_INT(world_at(A)->probes, 1); /* it is known to be there */
  CHECK_INT(world_at(B)->probes, 0);
  finish();
}

static void a_probe_that_fails(world_act act) {
  begin_with_detector();
  world_at(A)->to_probes = act;
  make_a_unreachable();
  world_run(3300 - world_now_us() / 1000);
  CHECK_INT(world_at(A)->probes, 1);
  CHECK(!fault_of("a")->reachable);
  CHECK_INT(share_of(A, 6), 0);
  world_at(A)->to_probes = (world_act){0};
  world_run(3000);
  CHECK_INT(world_at(A)->probes, 2);
  CHECK(fault_of("a")->reachable);
  finish();
}

static void probes_that_fail(void) {
  a_probe_that_fails((world_act){.mood = WORLD_MUTE});
  a_probe_that_fails((world_act){.mood = WORLD_CLOSES});
  a_probe_that_fails((world_act){.mood = WORLD_CODE, .code = 1});
}

static void brokers_without_an_address_are_forgotten(void) {
  begin("5.x", "ab");
  world_settings.start_detector_enable = true;
  world_settings.poll_name_server_interval = 1000;
  world_start();
  let_a_do((world_act){.mood = WORLD_CLOSES});
  world_topic_set("T", "b", 1, 6);
  world_run(2900);
  CHECK(fault_of("a") != NULL);
  send_one(&world_options);
  world_run(200);
  CHECK(fault_of("a") == NULL && fault_of("b") != NULL);
  CHECK_INT(world_at(A)->probes, 0);
  finish();
}

/* Nothing is asked after the shutdown, and a question under way does not outlive it. */
static void the_end(void) {
  begin_with_detector();
  world_at(A)->to_probes = (world_act){.mood = WORLD_MUTE};
  make_a_unreachable();
  world_run(3000 - world_now_us() / 1000);
  CHECK_INT(world_at(A)->probes, 1);
  world_count over = {0};
  rmq_producer_shutdown(producer, 0, world_count_done, &over);
  world_run(10000);
  CHECK_INT(over.dones, 1);
  CHECK_INT(world_at(A)->probes, 1);
  CHECK(fault_of("a") != NULL);
  finish();
  begin_with_detector();
  world_at(A)->to_probes = (world_act){.mood = WORLD_MUTE};
  make_a_unreachable();
  world_run(3000 - world_now_us() / 1000);
  rmq_producer_forked(producer);
  CHECK(!fault_of("a") && !available("a"));
  world_end_all();
}

static void without_the_detector_nobody_asks(void) {
  begin("5.x", "ab");
  world_start();
  let_a_do((world_act){.mood = WORLD_CLOSES});
  CHECK(fault_of("a")->reachable);
  world_run(7000);
  CHECK_INT(world_at(A)->probes + world_at(B)->probes, 0);
  finish();
}

int main(void) {
  check_run("failures isolate for exactly the table's time", failures_isolate);
  check_run("slow brokers are avoided for exactly the table's time", slow_brokers_are_avoided);
  check_run("tables of one's own", tables_of_ones_own);
  check_run("a retry knows all failures", a_retry_knows_all_failures);
  check_run("what is not noted", what_is_not_noted);
  check_run("retry codes of one's own", retry_codes_of_ones_own);
  check_run("given queues", given_queues);
  check_run("a good answer ends an isolation before 5.1.4",
            a_good_answer_ends_an_isolation_before_5_1_4);
  check_run("a probe finds a broker again", a_probe_finds_a_broker_again);
  check_run("probes that fail", probes_that_fail);
  check_run("brokers without an address are forgotten", brokers_without_an_address_are_forgotten);
  check_run("the end of a producer with a detector", the_end);
  check_run("without the detector nobody asks", without_the_detector_nobody_asks);
  return check_end();
}

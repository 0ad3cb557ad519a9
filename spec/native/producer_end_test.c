/* Room, flush, shutdown, fork, and completions that do what they like, in virtual time. */
#include <stdlib.h>

#include "base/error.h"
#include "producer_world.h"

#define N1 "10.0.0.1:9876"
#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

static world_end end;
static world_count counted, counted_too;

static void begin(void) {
  world_begin();
  memset(&end, 0, sizeof end);
  memset(&counted, 0, sizeof counted);
  memset(&counted_too, 0, sizeof counted_too);
  world_topic_set("T", "a", 1, 6);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  world_end_all();
}

static void mute(const char *addr) { world_at(addr)->always = (world_act){.mood = WORLD_MUTE}; }
static void heal(const char *addr) { world_at(addr)->always = (world_act){.mood = WORLD_ANSWERS}; }

static bool says(const char *part) {
  bool found = strstr(end.message, part) != NULL;
  if (!found) printf("no \"%s\" in: %s\n", part, end.message);
  return found;
}

/* ---- Room ---- */

static void over_the_limit_is_overload(void) {
  begin();
  world_settings.max_inflight = 3;
  world_start();
  for (int i = 0; i < 3; i++) CHECK_INT(world_send("T", &end), 0);
  CHECK_INT(world_send("T", &end), RMQ_EOVERLOAD);
  CHECK(end.kind == RMQ_KIND_OVERLOAD && says("max_inflight 3"));
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 3);
  CHECK_INT(rmq_producer_stats_of(producer).inflight_bytes, 12);
  world_settle();
  CHECK_INT(end.dones, 3);
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  finish();
}

static void bytes_count_too(void) {
  begin();
  world_settings.max_inflight_bytes = 9; /* two bodies of four bytes */
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  CHECK_INT(world_send("T", &end), 0);
  CHECK_INT(world_send("T", &end), RMQ_EOVERLOAD);
  world_settle();
  CHECK_INT(end.dones, 2);
  rmq_message message = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("0123456789")};
  rmq_send_options options = {.retries = -1, .may_wait = true};
  CHECK_INT(rmq_producer_send(producer, &message, &options, NULL, NULL), RMQ_EOVERLOAD);
  finish();
}

static int order[16], n_order;
static world_end waiters[16];
static void note_order(world_end *which) { order[n_order++] = (int)(which - waiters); }

static void waiting_for_room_is_fair(void) {
  begin();
  memset(waiters, 0, sizeof waiters);
  n_order = 0;
  world_settings.max_inflight = 2;
  world_start();
  rmq_send_options options = {.retries = -1, .may_wait = true};
  for (int i = 0; i < 10; i++) {
    waiters[i].then = note_order;
    CHECK_INT(world_send_with("T", &options, &waiters[i]), 0);
  }
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 2);
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 8);
  CHECK_INT(world_send("T", &end), RMQ_EOVERLOAD); /* who may not wait does not overtake */
  world_settle();
  CHECK_INT(n_order, 10);
  for (int i = 0; i < 10; i++) CHECK_INT(order[i], i);
  finish();
}

static void ignore_done(void *arg, const rmq_completion *completion) {
  (void)arg;
  (void)completion;
}

static void the_budget_runs_while_waiting(void) {
  begin();
  memset(waiters, 0, sizeof waiters);
  world_settings.max_inflight = 1;
  mute(A);
  world_start();
  rmq_send_options options = {.retries = 0, .may_wait = true, .timeout_ms = 1000};
  CHECK_INT(world_send_with("T", &options, &waiters[0]), 0);
  options.timeout_ms = 300;
  for (int i = 1; i < 6; i++) CHECK_INT(world_send_with("T", &options, &waiters[i]), 0);
  world_run(300);
  for (int i = 1; i < 6; i++) {
    CHECK(waiters[i].dones == 1 && waiters[i].at_us == 300000);
    CHECK(waiters[i].kind == RMQ_KIND_TIMEOUT && strstr(waiters[i].message, "max_inflight 1"));
  }
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 0);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 1);
  world_run(700);
  CHECK_INT(waiters[0].dones, 1);
  CHECK_INT(world_n_log, 1);
  finish();
}

static void a_small_one_does_not_overtake_a_large_one(void) {
  begin();
  memset(waiters, 0, sizeof waiters);
  world_settings.max_inflight_bytes = 9;
  mute(A);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  rmq_message large = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("12345678")};
  rmq_send_options options = {.retries = 0, .may_wait = true, .timeout_ms = 100};
  CHECK_INT(rmq_producer_send(producer, &large, &options, ignore_done, NULL), 0);
  CHECK_INT(world_send("T", &end), RMQ_EOVERLOAD);
  CHECK_INT(world_send_with("T", &options, &waiters[0]), 0);
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 2);
  world_run(3000);
  finish();
}

/* ---- Flush ---- */

static void flush_waits_for_what_was_sent_before(void) {
  begin();
  world_start();
  rmq_producer_flush(producer, 1000, world_count_done, &counted);
  CHECK_INT(counted.dones, 0);
  world_settle();
  CHECK(counted.dones == 1 && counted.left == 0 && counted.at_us == 0);
  mute(A);
  rmq_send_options options = {.retries = 0, .timeout_ms = 400};
  world_send_with("T", &options, &end);
  rmq_producer_flush(producer, 1000, world_count_done, &counted);
  rmq_producer_flush(producer, 100, world_count_done, &counted_too);
  options.timeout_ms = 900;
  world_send_with("T", &options, &end); /* after the flush: not waited for */
  world_run(100);
  CHECK(counted_too.dones == 1 && counted_too.left == 1 && counted_too.at_us == 100000);
  CHECK_INT(counted.dones, 1);
  world_run(300);
  CHECK(counted.dones == 2 && counted.left == 0 && counted.at_us == 400000);
  world_run(1000);
  CHECK(counted.dones == 2 && counted_too.dones == 1);
  finish();
}

/* ---- Shutdown ---- */

static void shutdown_of_an_idle_producer(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_start();
  rmq_send_options to_a = {.retries = 0, .broker = rmq_slice_text("a")};
  world_send_with("T", &to_a, &end);
  world_settle();
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted);
  CHECK_INT(counted.dones, 0);
  CHECK_INT(world_send("T", &end), RMQ_ESTATE);
  CHECK(end.kind == RMQ_KIND_STATE && says("\"orders\"") && says("shutting down"));
  world_settle();
  CHECK(counted.dones == 1 && counted.left == 0 && counted.at_us == 0);
  CHECK_INT(world_at(A)->unregisters, 1);
  CHECK_INT(world_at(B)->connections, 0); /* known, but there was no connection to end */
  CHECK_INT(fake_alive(world_fake), 0);
  CHECK_INT(world_send("T", &end), RMQ_ESTATE);
  CHECK(says("is shut down"));
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted_too);
  CHECK_INT(counted_too.dones, 0);
  world_settle();
  CHECK_INT(counted_too.dones, 1);
  world_run(100000);
  CHECK(counted.dones == 1 && counted_too.dones == 1 && end.dones == 1);
  CHECK_INT(fake_alive(world_fake), 0);
  finish();
}

static void shutdown_before_anything(void) {
  begin();
  world_start();
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted);
  rmq_producer_shutdown(producer, 1, world_count_done, &counted_too);
  world_settle();
  CHECK(counted.dones == 1 && counted_too.dones == 1);
  CHECK_INT(fake_opened(world_fake), 0);
  finish();
}

static void shutdown_waits_for_what_is_under_way(void) {
  begin();
  mute(A);
  world_start();
  rmq_send_options options = {.retries = 0, .timeout_ms = 700};
  world_send_with("T", &options, &end);
  world_run(10);
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted);
  world_run(689);
  CHECK_INT(counted.dones, 0);
  world_at(A)->heartbeat_mute = false;
  world_run(2);
  CHECK(end.dones == 1 && end.kind == RMQ_KIND_TIMEOUT && end.at_us == 700000);
  CHECK(counted.dones == 1 && counted.left == 0);
  finish();
}

static void shutdown_takes_the_shorter_time(void) {
  begin();
  mute(A);
  world_start();
  rmq_send_options options = {.retries = 0, .timeout_ms = 60000};
  world_send_with("T", &options, &end);
  world_run(10);
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted);
  world_run(100);
  rmq_producer_shutdown(producer, 300, world_count_done, &counted_too);
  rmq_producer_shutdown(producer, 40000, world_count_done, &counted_too);
  world_run(299);
  CHECK_INT(end.dones, 0);
  world_run(1);
  CHECK(end.dones == 1 && end.kind == RMQ_KIND_STATE);
  world_at(A)->heartbeat_mute = false;
  world_run(1500);
  CHECK(counted.dones == 1 && counted.left == 1 && counted_too.dones == 2);
  finish();
}

static void shutdown_cuts_short_what_takes_longer(void) {
  static world_end route, room;
  begin();
  memset(&route, 0, sizeof route);
  memset(&room, 0, sizeof room);
  world_settings.max_inflight = 2;
  mute(A);
  world_start();
  rmq_send_options options = {.retries = -1, .timeout_ms = 60000, .may_wait = true};
  world_send_with("T", &options, &end);
  world_settle();
  mute(N1);
  world_send_with("U", &options, &route);
  world_send_with("T", &options, &room);
  world_run(10);
  rmq_producer_shutdown(producer, 500, world_count_done, &counted);
  world_run(499);
  CHECK_INT(end.dones + route.dones + room.dones, 0);
  world_run(1);
  CHECK(end.dones == 1 && route.dones == 1 && room.dones == 1);
  CHECK(end.kind == RMQ_KIND_STATE && route.kind == RMQ_KIND_STATE && room.kind == RMQ_KIND_STATE);
  CHECK(end.maybe_stored && !route.maybe_stored && !room.maybe_stored);
  CHECK(says("cut short") && says("may have been stored"));
  world_run(100);
  CHECK(counted.dones == 1 && counted.left == 3);
  CHECK_INT(world_at(A)->unregisters, 1);
  finish();
}

/* The simulator's seed 104138: a message that is stored, though not as well as was wanted, is no
 * loss. */
static void shutdown_keeps_what_is_stored(void) {
  begin();
  world_settings.retry_another_broker_when_not_store_ok = true;
  world_topic_set("T", "ab", 1, 6);
  world_at(A)->always = (world_act){WORLD_CODE, 11};
  mute(B);
  world_start();
  /* Two sends, so that one of them begins at a. */
  world_end ends[2] = {{0}};
  rmq_send_options options = {.retries = 1, .timeout_ms = 60000};
  for (int i = 0; i < 2; i++) world_send_with("T", &options, &ends[i]);
  world_run(10);
  rmq_producer_shutdown(producer, 500, world_count_done, &counted);
  world_run(700);
  bool a_first = ends[0].attempts == 2;
  const world_end *kept = &ends[a_first ? 0 : 1], *lost = &ends[a_first ? 1 : 0];
  CHECK(kept->dones == 1 && !kept->failed && kept->status == RMQ_SEND_SLAVE_NOT_AVAILABLE);
  CHECK(strcmp(kept->broker, "a") == 0 && kept->attempts == 2);
  CHECK(lost->dones == 1 && lost->failed && lost->maybe_stored);
  CHECK(counted.dones == 1 && counted.left == 1);
  finish();
}

static void brokers_that_do_not_answer_the_farewell(void) {
  begin();
  world_start();
  world_send("T", &end);
  world_settle();
  world_at(A)->heartbeat_mute = true;
  rmq_producer_shutdown(producer, 5000, world_count_done, &counted);
  world_run(999);
  CHECK_INT(counted.dones, 0);
  world_run(1);
  CHECK_INT(counted.dones, 1);
  world_run(5000);
  CHECK_INT(counted.dones, 1);
  CHECK_INT(fake_alive(world_fake), 0);
  finish();
}

static void on_queues(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                      size_t n) {
  (void)queues;
  world_count *count = arg;
  count->dones++;
  count->left = failure && failure->kind == RMQ_KIND_STATE ? 1000 : n;
}

static void shutdown_ends_questions(void) {
  begin();
  mute(N1);
  world_start();
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("T"), 60000, on_queues, &counted_too), 0);
  rmq_producer_shutdown(producer, 100, world_count_done, &counted);
  world_settle();
  CHECK(counted.dones == 1 && counted_too.dones == 1 && counted_too.left == 1000);
  finish();
}

/* ---- Completions that do what they like ---- */

static int again;
static void send_again(world_end *which) {
  if (again-- > 0) CHECK_INT(world_send("T", which), 0);
}

static void sending_from_a_completion(void) {
  begin();
  world_settings.max_inflight = 1; /* there must be room by then */
  again = 1000;
  world_start();
  end.then = send_again;
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK_INT(end.dones, 1001);
  finish();
}

static void shut_down_from_done(world_end *which) {
  (void)which;
  rmq_producer_shutdown(producer, 0, world_count_done, &counted);
}

static void shutting_down_from_a_completion(void) {
  static world_end ends[10];
  begin();
  memset(ends, 0, sizeof ends);
  world_start();
  ends[0].then = shut_down_from_done;
  for (int i = 0; i < 10; i++) world_send("T", &ends[i]);
  world_run(10);
  for (int i = 0; i < 10; i++) CHECK_INT(ends[i].dones, 1);
  CHECK_INT(counted.dones, 1);
  finish();
}

static void free_now(void) {
  rmq_producer_free(producer);
  producer = NULL;
}
static void free_from_done(world_end *which) {
  (void)which;
  free_now();
}
static void fork_from_done(world_end *which) {
  (void)which;
  rmq_producer_forked(producer);
}

/* Freed in the middle of everything: with sends under way, waiting for room, for the route, and
 * pausing. */
static void free_in(const char *topic, int among, world_act act) {
  static world_end ends[10];
  begin();
  memset(ends, 0, sizeof ends);
  world_settings.max_inflight = 6;
  world_at(A)->always = act;
  world_start();
  rmq_send_options options = {.retries = 0, .may_wait = true};
  ends[among].then = free_from_done;
  for (int i = 0; i < 10; i++) {
    options.timeout_ms = i == among ? 1000 : 3000;
    CHECK_INT(world_send_with(topic, &options, &ends[i]), 0);
  }
  rmq_producer_flush(producer, 60000, world_count_done, &counted);
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("W"), 60000, on_queues, &counted_too), 0);
  world_run(4000);
  CHECK(producer == NULL);
  CHECK_INT(ends[among].dones, 1);
  CHECK_INT(ends[9].dones, 0);
  CHECK_INT(counted.dones, 0);
  CHECK_INT(fake_alive(world_fake), 0);
  world_end_all();
}

static void freeing_from_a_completion(void) {
  free_in("T", 0, (world_act){.mood = WORLD_ANSWERS});
  free_in("T", 5, (world_act){.mood = WORLD_ANSWERS});
  free_in("T", 0, (world_act){.mood = WORLD_CLOSES});
  free_in("T", 0, (world_act){.mood = WORLD_MUTE});
  free_in("T", 0, (world_act){WORLD_CODE, 17});
  free_in("None", 0, (world_act){.mood = WORLD_ANSWERS}); /* from the route's answer */
  free_in("None", 3, (world_act){.mood = WORLD_ANSWERS});
}

static void free_from_count(void *arg, size_t left) {
  world_count_done(arg, left);
  free_now();
}

static void freeing_at_the_end(void) {
  begin();
  world_start();
  world_send("T", &end);
  rmq_producer_shutdown(producer, 5000, free_from_count, &counted);
  world_run(10);
  CHECK(counted.dones == 1 && producer == NULL && end.dones == 1);
  world_end_all();
  begin();
  world_start();
  world_send("T", &end);
  rmq_producer_flush(producer, 5000, free_from_count, &counted);
  world_run(10);
  CHECK(counted.dones == 1 && producer == NULL);
  world_end_all();
}

/* ---- Fork ---- */

static void a_forked_child(void) {
  begin();
  mute(A);
  world_start();
  world_send("T", &end);
  world_settle();
  rmq_producer_forked(producer);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 0);
  CHECK_INT(world_send("T", &end), RMQ_ESTATE);
  CHECK(end.kind == RMQ_KIND_STATE && says("parent process"));
  rmq_producer_flush(producer, 0, world_count_done, &counted);
  rmq_producer_shutdown(producer, 0, world_count_done, &counted);
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("T"), 0, on_queues, &counted), RMQ_ESTATE);
  rmq_producer_forked(producer);
  world_run(10000);
  CHECK_INT(end.dones, 0);
  CHECK_INT(counted.dones, 0);
  CHECK_INT(world_at(A)->unregisters, 0);
  CHECK_INT(fake_alive(world_fake), 0);
  finish();
}

static void forked_from_a_completion(void) {
  static world_end ends[4];
  begin();
  memset(ends, 0, sizeof ends);
  world_start();
  ends[1].then = fork_from_done;
  for (int i = 0; i < 4; i++) world_send("T", &ends[i]);
  world_run(5000);
  CHECK(ends[0].dones == 1 && ends[1].dones == 1 && ends[2].dones == 0 && ends[3].dones == 0);
  CHECK_INT(world_send("T", &end), RMQ_ESTATE);
  finish();
}

static void two_producers_are_strangers(void) {
  begin();
  world_start();
  char id[128];
  snprintf(id, sizeof id, "%s", rmq_producer_client_id(producer));
  CHECK(strncmp(id, "10.0.0.9@4711#", 14) == 0);
  rmq_producer_free(producer);
  fake_settle(world_fake);
  world_settings.instance_name = strdup("one");
  world_settings.client_ip = strdup("192.168.0.1");
  world_start();
  CHECK(strcmp(rmq_producer_client_id(producer), "192.168.0.1@one") == 0);
  heal(A);
  world_send("T", &end);
  world_settle();
  CHECK(!end.failed);
  finish();
}

int main(void) {
  check_run("over the limit is overload", over_the_limit_is_overload);
  check_run("bytes count too", bytes_count_too);
  check_run("waiting for room is fair", waiting_for_room_is_fair);
  check_run("the budget runs while waiting", the_budget_runs_while_waiting);
  check_run("a small one does not overtake", a_small_one_does_not_overtake_a_large_one);
  check_run("flush", flush_waits_for_what_was_sent_before);
  check_run("shutdown of an idle producer", shutdown_of_an_idle_producer);
  check_run("shutdown before anything", shutdown_before_anything);
  check_run("shutdown waits", shutdown_waits_for_what_is_under_way);
  check_run("shutdown takes the shorter time", shutdown_takes_the_shorter_time);
  check_run("shutdown cuts short", shutdown_cuts_short_what_takes_longer);
  check_run("shutdown keeps what is stored", shutdown_keeps_what_is_stored);
  check_run("the farewell is bounded", brokers_that_do_not_answer_the_farewell);
  check_run("shutdown ends questions", shutdown_ends_questions);
  check_run("sending from a completion", sending_from_a_completion);
  check_run("shutting down from a completion", shutting_down_from_a_completion);
  check_run("freeing from a completion", freeing_from_a_completion);
  check_run("freeing at the end", freeing_at_the_end);
  check_run("a forked child", a_forked_child);
  check_run("forked from a completion", forked_from_a_completion);
  check_run("client ids", two_producers_are_strangers);
  return check_end();
}

/* auto_batch: sends that are gathered and leave as batches, in virtual time. */
#include <stdlib.h>

#include "base/error.h"
#include "producer/hook.h"
#include "producer_world.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

enum { MANY = 2000 };
static world_end ends[MANY];
static int sent;

static void set_integer(const char *name, int64_t value) {
  char why[256];
  CHECK_INT(rmq_settings_set_integer(&world_settings, rmq_setting_find(rmq_slice_text(name)),
                                     (double)value, why, sizeof why),
            0);
}

static void begin(const char *brokers) {
  char why[256];
  world_begin();
  memset(ends, 0, sizeof ends);
  sent = 0;
  world_topic_set("T", brokers, 4, 6);
  CHECK_INT(rmq_settings_set_boolean(&world_settings, rmq_setting_find(rmq_slice_text("autoBatch")),
                                     true, why, sizeof why),
            0);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  CHECK_INT(stats.gathered, 0);
  world_end_all();
}

/* Sends with tags and options; `body` names the message in the log. */
static int send_as(const char *body, const char *tags, const rmq_send_options *options) {
  rmq_message message = {.topic = rmq_slice_text("T"),
                         .body = rmq_slice_text(body),
                         .tags = rmq_slice_text(tags),
                         .wait = true};
  int before = ends[sent].dones;
  int status = rmq_producer_send(producer, &message, options, world_done, &ends[sent]);
  CHECK_INT(ends[sent].dones, before);
  sent++;
  return status;
}

static void send_one(const char *body) { CHECK_INT(send_as(body, NULL, &world_options), 0); }

static rmq_send_options to_queue(const char *broker, int32_t id) {
  rmq_send_options options = world_options;
  options.broker = rmq_slice_text(broker);
  options.queue_id = id;
  return options;
}

static size_t gathered(void) { return rmq_producer_stats_of(producer).gathered; }
static uint64_t batches(void) { return rmq_producer_stats_of(producer).batches; }

/* The first route is known, and nothing is under way. */
static void warm_up(void) {
  world_start();
  send_one("warm");
  world_settle();
  CHECK_INT(ends[0].dones, 1);
}

/* ---- What is gathered ---- */

static void a_lone_message_goes_as_it_would(void) {
  begin("a");
  warm_up();
  int64_t before = world_now_us();
  send_one("x");
  world_settle();
  CHECK_INT(ends[1].dones, 1);
  CHECK_INT(ends[1].at_us, before); /* without a timer */
  CHECK_INT(world_log[1].code, 310);
  CHECK_INT(batches(), 0);
  CHECK_INT(world_at(A)->batches, 0);
  finish();
}

static void what_one_turn_sends_goes_together(void) {
  begin("a");
  warm_up();
  for (int i = 0; i < 5; i++) send_one("x");
  CHECK_INT(gathered(), 5);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 5);
  world_settle();
  CHECK_INT(world_at(A)->batches, 1);
  for (int i = 1; i <= 5; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK(!ends[i].failed);
    CHECK_INT(ends[i].queue_offset, i + 1);
    CHECK_INT(atoi(ends[i].offset_msg_id), i + 1);
    CHECK_INT(ends[i].attempts, 1);
    char own[80];
    snprintf(own, sizeof own, "UNIQ_KEY\001%s\002", ends[i].msg_id);
    CHECK(strstr(world_log[i].properties, own) != NULL);
  }
  CHECK_INT(batches(), 1);
  finish();
}

static void while_one_is_under_way_the_next_fills(void) {
  begin("a");
  set_integer("batch_max_delay", 1000);
  warm_up();
  world_at(A)->delay_ms = 20;
  send_one("first");
  world_run(5);
  CHECK_INT(world_n_log, 2);
  for (int i = 0; i < 3; i++) {
    send_one("next");
    world_run(2);
  }
  CHECK_INT(world_n_log, 2);
  CHECK_INT(gathered(), 3);
  world_run(10);
  CHECK_INT(ends[2].dones, 0);
  CHECK_INT(world_n_log, 5); /* they left when the first one came back */
  CHECK_INT(gathered(), 0);
  world_run(30);
  CHECK_INT(world_at(A)->batches, 1);
  for (int i = 2; i < 5; i++) CHECK_INT(ends[i].dones, 1);
  finish();
}

static void nothing_waits_longer_than_batch_max_delay(void) {
  begin("a");
  set_integer("batch_max_delay", 7);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  send_one("first");
  world_settle();
  send_one("second");
  send_one("third");
  world_run(6);
  CHECK_INT(world_n_log, 1);
  world_run(2);
  CHECK_INT(world_n_log, 3);
  world_run(6000);
  finish();
}

static void nor_than_half_of_its_time(void) {
  begin("a");
  set_integer("batch_max_delay", 10000);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  rmq_send_options options = world_options;
  options.timeout_ms = 100;
  options.retries = 0;
  CHECK_INT(send_as("first", NULL, &options), 0);
  world_settle();
  CHECK_INT(send_as("second", NULL, &options), 0);
  world_run(49);
  CHECK_INT(world_n_log, 1);
  world_run(2);
  CHECK_INT(world_n_log, 2);
  world_run(200);
  finish();
}

static void a_full_batch_leaves_at_once(void) {
  begin("a");
  set_integer("batch_max_bytes", 10 * (22 + 52 + 1));
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  send_one("x");
  world_settle();
  for (int i = 0; i < 25; i++) send_one("y");
  CHECK_INT(gathered(), 5);
  world_settle();
  CHECK_INT(world_n_log, 21);
  CHECK_INT(world_at(A)->batches, 2);
  world_run(11);
  CHECK_INT(world_n_log, 26);
  world_run(6000);
  finish();
}

static void what_is_too_long_goes_alone(void) {
  begin("a");
  set_integer("batch_max_bytes", 80);
  warm_up();
  send_one("this body is too long");
  send_one("short");
  send_one("this body is too long");
  world_settle();
  CHECK_INT(world_n_log, 4);
  CHECK_INT(world_at(A)->batches, 0);
  finish();
}

static void over_batch_total_bytes_they_go_alone(void) {
  begin("a");
  set_integer("batch_total_bytes", 3 * (22 + 52 + 1));
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  send_one("x");
  world_settle();
  for (int i = 0; i < 5; i++) send_one("y");
  CHECK_INT(gathered(), 3);
  world_settle();
  CHECK_INT(world_n_log, 3);
  world_run(6000);
  finish();
}

static void what_a_batch_cannot_take_goes_alone(void) {
  begin("a");
  set_integer("compress_over", 40);
  warm_up();
  rmq_message message = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("x"), .wait = true};
  for (int i = 0; i < 2; i++) {
    message.delay_kind = RMQ_DELAY_LEVEL;
    message.delay = 3;
    CHECK_INT(rmq_producer_send(producer, &message, &world_options, world_done, &ends[sent++]), 0);
    message.delay_kind = RMQ_DELAY_NONE;
    rmq_field half = {rmq_slice_text("TRAN_MSG"), rmq_slice_text("true")};
    message.system = &half;
    message.n_system = 1;
    message.sys_flag = 4;
    CHECK_INT(rmq_producer_send(producer, &message, &world_options, world_done, &ends[sent++]), 0);
    message.n_system = 0;
    message.sys_flag = 0;
    send_one("a body that is to be compressed because it is long");
  }
  CHECK_INT(gathered(), 0);
  world_settle();
  CHECK_INT(world_at(A)->batches, 0);
  CHECK_INT(world_n_log, 7);
  finish();
}

/* ---- Groups ---- */

static bool is_in_batch(const char *body, int batch) {
  for (int i = 0; i < world_n_log; i++) {
    if (strcmp(world_log[i].body, body) == 0) return world_log[i].batch == batch;
  }
  return false;
}

static void what_differs_goes_apart(void) {
  begin("a");
  warm_up();
  rmq_send_options oneway = world_options, hasty = world_options;
  oneway.mode = RMQ_MODE_ONEWAY;
  hasty.timeout_ms = 500;
  for (int i = 0; i < 2; i++) {
    CHECK_INT(send_as("tag x", "x", &world_options), 0);
    CHECK_INT(send_as("tag y", "y", &world_options), 0);
    CHECK_INT(send_as("oneway", NULL, &oneway), 0);
    CHECK_INT(send_as("hasty", NULL, &hasty), 0);
    CHECK_INT(send_as("plain", NULL, &world_options), 0);
  }
  world_settle();
  CHECK_INT(world_at(A)->batches, 5);
  CHECK(is_in_batch("tag x", 1) && is_in_batch("tag y", 2) && is_in_batch("oneway", 3));
  CHECK(is_in_batch("hasty", 4) && is_in_batch("plain", 5));
  for (int i = 1; i < sent; i++) CHECK_INT(ends[i].dones, 1);
  finish();
}

static void to_one_queue_the_order_holds(void) {
  begin("ab");
  warm_up();
  rmq_send_options queue = to_queue("b", 2), oneway = queue, other = to_queue("b", 3);
  oneway.mode = RMQ_MODE_ONEWAY;
  CHECK_INT(send_as("1", "x", &queue), 0);
  CHECK_INT(send_as("2", "x", &queue), 0);
  CHECK_INT(send_as("elsewhere", "x", &other), 0);
  CHECK_INT(send_as("3", "y", &queue), 0);
  CHECK_INT(send_as("4", "x", &queue), 0);
  rmq_message late = {.topic = rmq_slice_text("T"),
                      .body = rmq_slice_text("5"),
                      .delay_kind = RMQ_DELAY_LEVEL,
                      .delay = 1,
                      .wait = true};
  CHECK_INT(rmq_producer_send(producer, &late, &queue, world_done, &ends[sent++]), 0);
  CHECK_INT(send_as("6", NULL, &oneway), 0);
  CHECK_INT(send_as("7", NULL, &queue), 0);
  rmq_draft *draft = rmq_draft_new(producer);
  rmq_message member = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("8"), .wait = true};
  CHECK_INT(rmq_draft_add(draft, &member), 0);
  rmq_draft_options options = {.send = queue, .split = true};
  CHECK_INT(rmq_draft_send(draft, &options, world_done, &ends[sent++]), 0);
  CHECK_INT(send_as("9", NULL, &queue), 0);
  world_settle();
  int next = 1;
  for (int i = 0; i < world_n_log; i++) {
    if (world_log[i].broker != world_at(B) || world_log[i].queue_id != 2) continue;
    CHECK_INT(atoi(world_log[i].body), next);
    next++;
  }
  CHECK_INT(next, 10);
  for (int i = 1; i < sent; i++) CHECK_INT(ends[i].dones, 1);
  finish();
}

static int asked;
static int choose_by_arg(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                         rmq_failure *why) {
  (void)why;
  asked++;
  const rmq_publish *publish = choice->publish;
  int32_t b = rmq_publish_broker_find(publish, rmq_slice_text("b"));
  int64_t place = rmq_publish_place(publish, b, (int32_t)(((world_end *)arg - ends) % 2));
  CHECK(place >= 0);
  *queue = rmq_publish_sorted(publish, (size_t)place);
  return 0;
}

static void selectors_are_asked_first(void) {
  begin("ab");
  world_start();
  asked = 0;
  rmq_send_options options = world_options;
  options.choose = choose_by_arg;
  for (int i = 0; i < 10; i++) CHECK_INT(send_as("x", NULL, &options), 0);
  world_settle();
  CHECK_INT(asked, 10);
  CHECK_INT(world_at(B)->batches, 2);
  for (int i = 0; i < 10; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].queue_id, i % 2);
  }
  finish();
}

/* Nothing was written, so each may choose again. */
static void selectors_are_asked_again_each_by_itself(void) {
  begin("ab");
  static const fake_rule refused[] = {{.name = B, .status = -111}, {.name = NULL}};
  world_start();
  asked = 0;
  rmq_send_options options = world_options;
  options.choose = choose_by_arg;
  options.retries = 2;
  options.timeout_ms = 400;
  fake_set_rules(world_fake, refused);
  for (int i = 0; i < 6; i++) CHECK_INT(send_as("x", NULL, &options), 0);
  world_run(1000);
  CHECK(asked > 6);
  for (int i = 0; i < 6; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK(ends[i].failed);
    CHECK_INT(ends[i].kind, RMQ_KIND_CONNECT);
    CHECK(ends[i].n_tries > 1);
    CHECK_INT(ends[i].n_tries, ends[i].attempts);
  }
  finish();
}

/* ---- What goes wrong ---- */

static void a_failure_is_told_to_each(void) {
  begin("a");
  warm_up();
  world_at(A)->always = (world_act){WORLD_CODE, 13};
  for (int i = 0; i < 3; i++) send_one("x");
  world_settle();
  for (int i = 1; i <= 3; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].code, 13);
    CHECK_INT(ends[i].n_tries, 1);
  }
  CHECK_INT(rmq_producer_stats_of(producer).failed, 3);
  finish();
}

static void a_batch_is_tried_again_as_one(void) {
  begin("ab");
  warm_up();
  world_script(A, (world_act){WORLD_CODE, 2});
  world_script(B, (world_act){WORLD_CODE, 2});
  int before = world_n_log;
  for (int i = 0; i < 3; i++) send_one("x");
  world_run(100);
  CHECK_INT(world_n_log - before, 9);
  for (int i = 1; i <= 3; i++) CHECK_INT(ends[i].attempts, 3);
  finish();
}

/* Sent one after the other, gathered together: each has the time that it was given, and no more. */
static void each_has_its_own_budget(void) {
  begin("a");
  set_integer("batch_max_delay", 1000);
  set_integer("retries", 0);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  rmq_send_options options = world_options;
  options.timeout_ms = 200;
  CHECK_INT(send_as("first", NULL, &options), 0);
  world_settle();
  int64_t began[5];
  for (int i = 1; i < 5; i++) {
    began[i] = world_now_us();
    CHECK_INT(send_as("x", NULL, &options), 0);
    world_run(15);
  }
  world_run(400);
  CHECK_INT(world_at(A)->batches, 1);
  for (int i = 1; i < 5; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].kind, RMQ_KIND_TIMEOUT);
    CHECK(ends[i].maybe_stored);
    CHECK(ends[i].at_us - began[i] >= 200000 && ends[i].at_us - began[i] <= 202000);
    CHECK_INT(ends[i].n_tries, 1);
    CHECK_INT(ends[i].attempts, 1);
  }
  finish();
}

/* Whose time is over is in no attempt that follows. */
static void what_has_ended_is_not_sent_again(void) {
  begin("ab");
  set_integer("batch_max_delay", 1000);
  set_integer("attempt_floor", 1);
  world_at(A)->always.mood = world_at(B)->always.mood = WORLD_MUTE;
  world_start();
  rmq_send_options options = world_options;
  options.timeout_ms = 400;
  options.attempt_timeout_ms = 170;
  options.retries = 3;
  CHECK_INT(send_as("first", NULL, &options), 0);
  world_settle();
  CHECK_INT(send_as("early", NULL, &options), 0);
  world_run(190);
  CHECK_INT(send_as("late", NULL, &options), 0);
  world_run(1000);
  int early = 0, late = 0;
  for (int i = 0; i < world_n_log; i++) {
    early += strcmp(world_log[i].body, "early") == 0;
    late += strcmp(world_log[i].body, "late") == 0;
    if (strcmp(world_log[i].body, "early") == 0) CHECK(world_log[i].at_ms <= 400);
  }
  CHECK_INT(early, 2);
  CHECK_INT(late, 3);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].kind, RMQ_KIND_TIMEOUT);
  }
  finish();
}

static void refused_messages_charge_nothing(void) {
  begin("a");
  set_integer("batch_total_bytes", 2 * (22 + 52 + 1));
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  send_one("x");
  world_settle();
  for (int i = 0; i < 10; i++) CHECK_INT(send_as("", NULL, &world_options), RMQ_EINVAL);
  CHECK_INT(gathered(), 0);
  send_one("y");
  send_one("z");
  CHECK_INT(gathered(), 2);
  world_run(6000);
  finish();
}

/* The simulator's seed 909: while the route is asked for, sends wait for it one behind the
 * other, whatever they are. */
static void before_the_route_is_known_the_order_holds(void) {
  begin("b");
  world_start();
  rmq_send_options queue = to_queue("b", 2);
  CHECK_INT(send_as("1", NULL, &queue), 0);
  rmq_message late = {.topic = rmq_slice_text("T"),
                      .body = rmq_slice_text("2"),
                      .delay_kind = RMQ_DELAY_LEVEL,
                      .delay = 1,
                      .wait = true};
  CHECK_INT(rmq_producer_send(producer, &late, &queue, world_done, &ends[sent++]), 0);
  CHECK_INT(send_as("3", NULL, &queue), 0);
  CHECK_INT(send_as("4", NULL, &queue), 0);
  world_settle();
  CHECK_INT(world_n_log, 4);
  for (int i = 0; i < world_n_log; i++) CHECK_INT(atoi(world_log[i].body), i + 1);
  finish();
}

/* The simulator's seed 500042149: what was gathered for a given queue left at the end of its turn, and
 * stood in line behind one that had come later and waited for the topic's route, to choose the same
 * queue then. */
static int choose_third(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                        rmq_failure *why) {
  (void)arg, (void)why;
  *queue = &choice->publish->queues[2];
  return 0;
}

static void who_is_gathered_is_not_behind_those_who_wait(void) {
  for (int n = 1; n <= 2; n++) { /* one leaves as it is, two as a batch */
    begin("a");
    world_topic_set("U", "a", 4, 6);
    warm_up();
    rmq_send_options queue = to_queue("a", 2), chosen = world_options;
    chosen.choose = choose_third;
    rmq_message early = {.topic = rmq_slice_text("U"), .body = rmq_slice_text("1"), .wait = true};
    rmq_message late = early;
    late.body = rmq_slice_text("2");
    late.delay_kind = RMQ_DELAY_LEVEL;
    late.delay = 1;
    for (int i = 0; i < n; i++) {
      CHECK_INT(rmq_producer_send(producer, &early, &queue, world_done, &ends[sent++]), 0);
    }
    CHECK_INT(rmq_producer_send(producer, &late, &chosen, world_done, &ends[sent++]), 0);
    world_settle();
    CHECK_INT(world_n_log, n + 2);
    for (int i = 1; i <= n; i++) CHECK_INT(atoi(world_log[i].body), 1);
    CHECK_INT(atoi(world_log[n + 1].body), 2);
    CHECK_INT(world_log[n + 1].queue_id, 2);
    finish();
  }
}

/* ---- Room, and the end ---- */

static void those_that_wait_for_room_are_gathered_then(void) {
  begin("a");
  set_integer("max_inflight", 4);
  warm_up();
  world_at(A)->delay_ms = 10;
  rmq_send_options options = world_options;
  options.may_wait = true;
  for (int i = 0; i < 40; i++) CHECK_INT(send_as("x", NULL, &options), 0);
  CHECK_INT(gathered(), 4);
  world_run(300);
  for (int i = 0; i <= 40; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK(!ends[i].failed);
  }
  CHECK(world_at(A)->batches <= 20);
  finish();
}

static void a_flush_lets_all_leave(void) {
  begin("a");
  set_integer("batch_max_delay", 30000);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  send_one("first");
  world_settle();
  send_one("second");
  send_one("third");
  world_run(5);
  CHECK_INT(gathered(), 2);
  world_count count = {0};
  rmq_producer_flush(producer, 1000, world_count_done, &count);
  CHECK_INT(gathered(), 0);
  world_settle();
  CHECK_INT(world_n_log, 3);
  send_one("fourth"); /* while somebody waits for a flush nothing else waits */
  world_settle();
  CHECK_INT(world_n_log, 4);
  world_run(6000);
  CHECK_INT(count.dones, 1);
  finish();
}

static void a_shutdown_lets_all_leave(void) {
  begin("a");
  set_integer("batch_max_delay", 30000);
  world_at(A)->delay_ms = 50;
  world_start();
  send_one("first");
  world_settle();
  send_one("second");
  send_one("third");
  world_settle();
  CHECK_INT(gathered(), 2);
  world_count count = {0};
  rmq_producer_shutdown(producer, 1000, world_count_done, &count);
  world_run(200);
  CHECK_INT(count.dones, 1);
  CHECK_INT(count.left, 0);
  CHECK(!ends[2].failed && ends[2].dones == 1);
  finish();
}

static void cut_short_by_a_shutdown(void) {
  begin("a");
  set_integer("batch_max_delay", 30000);
  warm_up();
  world_at(A)->always.mood = WORLD_MUTE;
  send_one("first");
  world_settle();
  send_one("second");
  send_one("third");
  world_settle();
  CHECK_INT(gathered(), 2);
  world_count count = {0};
  rmq_producer_shutdown(producer, 0, world_count_done, &count);
  world_run(2000);
  CHECK_INT(count.left, 3);
  for (int i = 1; i <= 3; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].kind, RMQ_KIND_STATE);
    CHECK(ends[i].maybe_stored);
  }
  finish();
}

static void forked_with_gathered_ones(void) {
  begin("a");
  world_start();
  for (int i = 0; i < 3; i++) send_one("x");
  world_settle();
  for (int i = 0; i < 3; i++) send_one("x");
  CHECK_INT(gathered(), 3);
  rmq_producer_forked(producer);
  CHECK_INT(gathered(), 0);
  world_end_all();
}

static void fork_it(world_end *end) {
  (void)end;
  rmq_producer_forked(producer);
}

static void forked_while_a_batch_completes(void) {
  begin("a");
  warm_up();
  for (int i = 0; i < 3; i++) {
    ends[sent].then = fork_it;
    send_one("x");
  }
  world_settle();
  CHECK_INT(ends[1].dones, 1);
  CHECK_INT(ends[2].dones, 0);
  world_end_all();
}

/* More groups than are kept. */
static void groups_come_and_go(void) {
  begin("a");
  warm_up();
  char tag[16];
  for (int i = 0; i < 400; i++) {
    snprintf(tag, sizeof tag, "t%d", i);
    CHECK_INT(send_as("x", tag, &world_options), 0);
    if (i % 3 == 0) CHECK_INT(send_as("x", tag, &world_options), 0);
    if (i % 7 == 0) world_settle();
  }
  world_settle();
  for (int i = 0; i < sent; i++) CHECK_INT(ends[i].dones, 1);
  finish();
}

/* ---- Hooks ---- */

static int forbid(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  (void)arg, (void)attempt;
  rmq_failure_set(why, RMQ_KIND_HOOK, 0, "nothing goes");
  return RMQ_EINVAL;
}

/* A full batch leaves from inside the send of the next message, and is over before that one is taken in:
 * its group has come to rest meanwhile. */
static void a_batch_that_hooks_stop_at_once(void) {
  static const rmq_hooks hooks = {.check_forbidden = forbid};
  begin("a");
  set_integer("batch_max_bytes", 10 * (22 + 52 + 1));
  warm_up();
  rmq_producer_set_hooks(producer, &hooks, NULL);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 35; i++) CHECK_INT(send_as("y", "long", &world_options), 0);
    for (int i = 0; i < 3; i++) CHECK_INT(send_as("y", "short", &world_options), 0);
    world_count count = {0};
    rmq_producer_flush(producer, 1000, world_count_done, &count);
    world_settle();
    CHECK_INT(count.dones, 1);
  }
  for (int i = 1; i < sent; i++) CHECK(ends[i].dones == 1 && ends[i].kind == RMQ_KIND_HOOK);
  CHECK_INT(world_n_log, 1);
  rmq_producer_set_hooks(producer, NULL, NULL);
  send_one("y");
  world_settle();
  CHECK(!ends[sent - 1].failed && ends[sent - 1].dones == 1);
  finish();
}

int main(void) {
  check_run("a lone message goes as it would", a_lone_message_goes_as_it_would);
  check_run("what one turn sends goes together", what_one_turn_sends_goes_together);
  check_run("while one is under way the next fills", while_one_is_under_way_the_next_fills);
  check_run("nothing waits longer than batch_max_delay", nothing_waits_longer_than_batch_max_delay);
  check_run("nor than half of its time", nor_than_half_of_its_time);
  check_run("a full batch leaves at once", a_full_batch_leaves_at_once);
  check_run("what is too long goes alone", what_is_too_long_goes_alone);
  check_run("over batch_total_bytes they go alone", over_batch_total_bytes_they_go_alone);
  check_run("what a batch cannot take goes alone", what_a_batch_cannot_take_goes_alone);
  check_run("what differs goes apart", what_differs_goes_apart);
  check_run("to one queue the order holds", to_one_queue_the_order_holds);
  check_run("selectors are asked first", selectors_are_asked_first);
  check_run("selectors are asked again, each by itself", selectors_are_asked_again_each_by_itself);
  check_run("a failure is told to each", a_failure_is_told_to_each);
  check_run("a batch is tried again as one", a_batch_is_tried_again_as_one);
  check_run("each has its own budget", each_has_its_own_budget);
  check_run("what has ended is not sent again", what_has_ended_is_not_sent_again);
  check_run("refused messages charge nothing", refused_messages_charge_nothing);
  check_run("before the route is known the order holds", before_the_route_is_known_the_order_holds);
  check_run("who is gathered is not behind those who wait",
            who_is_gathered_is_not_behind_those_who_wait);
  check_run("those that wait for room are gathered then",
            those_that_wait_for_room_are_gathered_then);
  check_run("a flush lets all leave", a_flush_lets_all_leave);
  check_run("a shutdown lets all leave", a_shutdown_lets_all_leave);
  check_run("cut short by a shutdown", cut_short_by_a_shutdown);
  check_run("forked with gathered ones", forked_with_gathered_ones);
  check_run("forked while a batch completes", forked_while_a_batch_completes);
  check_run("groups come and go", groups_come_and_go);
  check_run("a batch that hooks stop at once", a_batch_that_hooks_stop_at_once);
  return check_end();
}

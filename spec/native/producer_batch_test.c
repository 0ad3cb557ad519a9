/* Batches that a user makes, in virtual time. */
#include <stdlib.h>

#include "base/error.h"
#include "producer_world.h"
#include "wire/batch.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

enum { MANY = 600 };
static world_end ends[MANY];
static int order[MANY]; /* which messages completed, in their order */
static int completed;

static void begin(void) {
  world_begin();
  memset(ends, 0, sizeof ends);
  completed = 0;
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  world_end_all();
}

static void set_integer(const char *name, int64_t value) {
  char why[256];
  CHECK_INT(rmq_settings_set_integer(&world_settings, rmq_setting_find(rmq_slice_text(name)),
                                     (double)value, why, sizeof why),
            0);
}

static void note_done(void *arg, const rmq_completion *completion) {
  (void)arg;
  if (completed < MANY) order[completed++] = (int)completion->index;
  world_done(&ends[completion->index], completion);
}

static rmq_message message_of(const char *body) {
  return (rmq_message){.topic = rmq_slice_text("T"), .body = rmq_slice_text(body), .wait = true};
}

static int add(rmq_draft *draft, const char *body) {
  rmq_message message = message_of(body);
  return rmq_draft_add(draft, &message);
}

static rmq_draft *draft_of(int n) {
  static const char *const bodies[] = {"a", "bb", "ccc", "dddd", "eeeee"};
  rmq_draft *draft = rmq_draft_new(producer);
  for (int i = 0; i < n; i++) CHECK_INT(add(draft, bodies[i % 5]), 0);
  return draft;
}

static rmq_draft_options options_of(void) {
  return (rmq_draft_options){.send = world_options, .split = true};
}

static int send_draft(rmq_draft *draft, const rmq_draft_options *options) {
  int before = completed;
  int status = rmq_draft_send(draft, options, note_done, NULL);
  CHECK_INT(completed, before); /* never from inside */
  return status;
}

static const char *refusal(void) {
  static char text[1024];
  rmq_slice message = rmq_buf_slice(&rmq_producer_failure(producer)->message);
  snprintf(text, sizeof text, "%.*s", (int)message.len, message.ptr);
  return text;
}

static bool refusal_has(const char *part) {
  if (strstr(refusal(), part)) return true;
  printf("the refusal is: %s\n", refusal());
  return false;
}

/* ---- What goes well ---- */

static void each_message_has_its_own_result(void) {
  begin();
  world_topic_set("T", "a", 4, 6);
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(3), &options), 0);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 3);
  CHECK_INT(rmq_producer_stats_of(producer).inflight_bytes, 6);
  world_settle();
  CHECK_INT(world_at(A)->batches, 1);
  CHECK_INT(world_n_log, 3);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(order[i], i);
    CHECK_INT(ends[i].dones, 1);
    CHECK(!ends[i].failed);
    CHECK_INT(ends[i].queue_offset, i + 1);
    CHECK_INT(ends[i].attempts, 1);
    CHECK_INT(ends[i].queue_id, world_log[i].queue_id);
    CHECK_INT(atoi(ends[i].offset_msg_id), i + 1);
    CHECK_INT(strlen(ends[i].offset_msg_id), 32);
    char own_id[80];
    snprintf(own_id, sizeof own_id, "UNIQ_KEY\001%s\002", ends[i].msg_id);
    CHECK(strstr(world_log[i].properties, own_id) != NULL);
    CHECK_INT(world_log[i].code, 320);
    CHECK_INT(world_log[i].queue_id, world_log[0].queue_id);
  }
  CHECK(strcmp(ends[0].msg_id, ends[1].msg_id) != 0);
  CHECK(strcmp(world_log[1].body, "bb") == 0);
  CHECK_INT(rmq_producer_stats_of(producer).sent, 3);
  CHECK_INT(rmq_producer_stats_of(producer).acknowledged, 3);
  finish();
}

static void a_given_queue_and_oneway(void) {
  begin();
  world_topic_set("T", "ab", 4, 6);
  world_start();
  rmq_draft_options options = options_of();
  options.send.mode = RMQ_MODE_ONEWAY;
  options.send.broker = rmq_slice_text("b");
  options.send.queue_id = 3;
  CHECK_INT(send_draft(draft_of(2), &options), 0);
  world_settle();
  CHECK_INT(world_n_log, 2);
  CHECK(world_log[1].oneway);
  CHECK(world_log[1].broker == world_at(B));
  CHECK_INT(world_log[1].queue_id, 3);
  CHECK_INT(ends[1].dones, 1);
  CHECK(!ends[1].failed && !ends[1].has_reply);
  finish();
}

static int asked;

static int choose_last(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                       rmq_failure *why) {
  (void)arg;
  (void)why;
  asked++;
  *queue = &choice->publish->queues[choice->publish->n_queues - 1];
  return 0;
}

static void a_selector_is_asked_once_for_each_request(void) {
  begin();
  world_topic_set("T", "ab", 2, 6);
  set_integer("max_message_size", 1000);
  world_start();
  asked = 0;
  rmq_draft_options options = options_of();
  options.send.choose = choose_last;
  CHECK_INT(send_draft(draft_of(5), &options), 0);
  world_settle();
  CHECK(world_at(B)->batches > 1);
  CHECK_INT(asked, world_at(B)->batches);
  CHECK_INT(world_n_log, 5);
  for (int i = 0; i < 5; i++) CHECK_INT(world_log[i].queue_id, 1);
  finish();
}

static void one_id_for_all_is_everybodys(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_at(A)->batch_ids = 1;
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(3), &options), 0);
  world_settle();
  for (int i = 0; i < 3; i++) {
    CHECK(!ends[i].failed);
    CHECK(strcmp(ends[i].offset_msg_id, ends[0].offset_msg_id) == 0);
    CHECK_INT(ends[i].queue_offset, i + 1);
  }
  finish();
}

/* ---- What does not ---- */

static void a_wrong_number_of_ids_is_no_answer(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_at(A)->batch_ids = 2;
  set_integer("retries", 0);
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(3), &options), 0);
  world_settle();
  for (int i = 0; i < 3; i++) {
    CHECK(ends[i].failed && ends[i].maybe_stored);
    CHECK(strstr(ends[i].message, "no proper msgId for each message") != NULL);
  }
  finish();
}

static void the_carrier_tries_again_for_all(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_script(A, (world_act){WORLD_CODE, 2});
  world_script(B, (world_act){WORLD_CODE, 2});
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(2), &options), 0);
  world_run(100);
  CHECK_INT(world_n_log, 6);
  CHECK_INT(ends[0].attempts, 3);
  CHECK_INT(ends[1].attempts, 3);
  CHECK(!ends[1].failed);
  CHECK_INT(rmq_producer_stats_of(producer).retried, 2);
  finish();
}

static void a_refusal_is_told_to_each(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_script(A, (world_act){WORLD_CODE, 13});
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(2), &options), 0);
  world_settle();
  for (int i = 0; i < 2; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK_INT(ends[i].kind, RMQ_KIND_BROKER);
    CHECK_INT(ends[i].code, 13);
    CHECK_INT(ends[i].n_tries, 1);
    CHECK(strstr(ends[i].message, "the remark") != NULL);
    CHECK(strstr(ends[i].message, "maxMessageSize") != NULL);
    CHECK(strlen(ends[i].msg_id) == 32);
  }
  CHECK_INT(rmq_producer_stats_of(producer).failed, 2);
  finish();
}

static void a_better_result_is_sought_for_all(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_at(A)->always = (world_act){WORLD_CODE, 10};
  world_at(B)->always = (world_act){WORLD_CODE, 2};
  char why[64];
  rmq_settings_set_boolean(
      &world_settings, rmq_setting_find(rmq_slice_text("retry_another_broker_when_not_store_ok")),
      true, why, sizeof why);
  set_integer("retries", 4);
  world_start();
  rmq_draft_options options = options_of();
  for (int i = 0; i < 2; i++) {
    CHECK_INT(send_draft(draft_of(3), &options), 0);
    world_run(200);
    for (int k = 0; k < 3; k++) {
      CHECK_INT(ends[k].dones, i + 1);
      CHECK_INT(ends[k].status, RMQ_SEND_FLUSH_DISK_TIMEOUT);
      CHECK_INT(ends[k].queue_offset, ends[0].queue_offset + k);
      CHECK_INT(atoi(ends[k].offset_msg_id), ends[k].queue_offset);
      CHECK(strcmp(ends[k].broker, "a") == 0);
    }
  }
  finish();
}

static void what_is_refused(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  rmq_draft *draft = rmq_draft_new(producer);
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft, &options), RMQ_EINVAL);
  CHECK(refusal_has("no messages in this batch"));
  CHECK_INT(add(draft, "x"), 0);
  CHECK_INT(add(draft, ""), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: body is empty"));
  rmq_message message = message_of("x");
  message.topic = rmq_slice_text("U");
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: topic is \"U\" and that of messages[1] is \"T\""));
  message = message_of("x");
  message.wait = false;
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: wait differs"));
  message = message_of("x");
  message.tags = rmq_slice_text("a\001b");
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: tags has byte 1"));
  message = message_of("x");
  message.delay_kind = RMQ_DELAY_LEVEL;
  message.delay = 3;
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: it has a delay, and cannot be in a batch"));
  rmq_field half = {rmq_slice_text("TRAN_MSG"), rmq_slice_text("true")};
  message = message_of("x");
  message.system = &half;
  message.n_system = 1;
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[2]: it is part of a transaction"));
  CHECK_INT(rmq_draft_count(draft), 1);
  options.send.broker = rmq_slice_text("a");
  options.send.queue_id = -1;
  CHECK_INT(send_draft(draft, &options), RMQ_EINVAL);
  options = options_of();
  CHECK_INT(send_draft(draft, &options), 0); /* nothing of that has harmed it */
  draft = rmq_draft_new(producer);
  message = message_of("x");
  message.topic = rmq_slice_text("%RETRY%g");
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[1]: it goes to a %RETRY% topic"));
  rmq_draft_drop(draft);
  world_settle();
  CHECK_INT(ends[0].dones, 1);
  CHECK_INT(world_n_log, 1);
  finish();
}

/* ---- Length ---- */

/* What a message counts without its body: WAIT and UNIQ_KEY take 52 bytes, its topic 1. */
enum { EACH = 52 + 1 + RMQ_BATCH_STORED_OVERHEAD };

static void a_long_batch_is_split_in_order(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_message_size", 3 * EACH + 6);
  world_start();
  rmq_draft_options options = options_of();
  options.split = false;
  rmq_draft *draft = draft_of(5);
  CHECK_INT(send_draft(draft, &options), RMQ_EINVAL);
  CHECK_INT(rmq_producer_failure(producer)->code, 13);
  CHECK(refusal_has("5 messages take 1560 bytes as one batch (257 each"));
  options.split = true;
  CHECK_INT(send_draft(draft, &options), 0);
  world_settle();
  CHECK_INT(world_at(A)->batches, 2);
  for (int i = 0; i < 5; i++) {
    CHECK_INT(world_log[i].batch, i < 3 ? 1 : 2);
    CHECK_INT(world_log[i].body_len, i + 1);
    CHECK_INT(ends[i].queue_offset, i + 1);
    CHECK_INT(order[i], i);
  }
  /* What fits exactly goes as one, also when it must. */
  options.split = false;
  CHECK_INT(send_draft(draft_of(3), &options), 0);
  world_settle();
  CHECK_INT(world_at(A)->batches, 3);
  finish();
}

static void what_cannot_fit_fails_alone(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_message_size", 1000);
  world_start();
  static char too_long[1002], too_long_in_a_batch[800];
  memset(too_long, 'x', sizeof too_long - 1);
  memset(too_long_in_a_batch, 'y', sizeof too_long_in_a_batch - 1);
  rmq_draft *draft = rmq_draft_new(producer);
  CHECK_INT(add(draft, "a"), 0);
  CHECK_INT(add(draft, too_long), 0);
  CHECK_INT(add(draft, "b"), 0);
  CHECK_INT(add(draft, too_long_in_a_batch), 0);
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft, &options), 0);
  world_settle();
  CHECK(!ends[0].failed && !ends[2].failed);
  CHECK_INT(ends[2].queue_offset, 2);
  CHECK(ends[1].failed && ends[3].failed);
  CHECK_INT(ends[1].kind, RMQ_KIND_MESSAGE);
  CHECK_INT(ends[1].code, 13);
  CHECK_INT(ends[1].index, 1);
  CHECK(strstr(ends[1].message, "messages[2]: body is 1001 bytes long") != NULL);
  CHECK(strstr(ends[3].message, "messages[4]: the message takes 1108 bytes in a batch") != NULL);
  CHECK_INT(world_n_log, 2);
  finish();
}

static void properties_leave_room_for_the_brokers(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  static char value[RMQ_BATCH_PROPERTIES_MAX];
  size_t most = RMQ_BATCH_PROPERTIES_MAX - 52 - 3; /* and p, 1, 2 */
  memset(value, 'v', sizeof value);
  rmq_field property = {rmq_slice_text("p"), rmq_slice_make(value, most + 1)};
  rmq_message message = message_of("x");
  message.properties = &property;
  message.n_properties = 1;
  rmq_draft *draft = rmq_draft_new(producer);
  CHECK_INT(rmq_draft_add(draft, &message), RMQ_EINVAL);
  CHECK(refusal_has("messages[1]: properties, keys and tags take 32001 bytes"));
  property.value.len = most;
  CHECK_INT(rmq_draft_add(draft, &message), 0);
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft, &options), 0);
  world_settle();
  CHECK(!ends[0].failed);
  finish();
}

/* Brokers before 5.0 say so with a code that asks for another try, and 5.4 does. */
static void a_remark_says_that_it_is_too_long(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_at(A)->always = world_at(B)->always = (world_act){WORLD_CODE, 1};
  world_remark = "java.lang.RuntimeException: message size exceeded, CommitLog.java:1637";
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(2), &options), 0);
  world_run(100);
  CHECK_INT(world_n_log, 2);
  CHECK_INT(ends[1].code, 1);
  CHECK_INT(ends[1].attempts, 1);
  CHECK(strstr(ends[1].message, "maxMessageSize") != NULL);
  finish();
}

/* ---- Room ---- */

static int admissions;
static void note_admitted(void *arg) {
  (void)arg;
  admissions++;
}

static void a_batch_waits_for_room_as_a_whole(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 4);
  world_at(A)->delay_ms = 10;
  world_start();
  world_end single;
  memset(&single, 0, sizeof single);
  admissions = 0;
  CHECK_INT(world_send("T", &single), 0);
  rmq_draft_options options = options_of();
  options.send.admitted = note_admitted;
  rmq_draft *draft = draft_of(4);
  CHECK_INT(send_draft(draft, &options), RMQ_EOVERLOAD);
  options.send.may_wait = true;
  CHECK_INT(send_draft(draft, &options), 1);
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 4);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 1);
  CHECK(!rmq_producer_has_room(producer, 1)); /* nobody overtakes it */
  world_run(5);
  CHECK_INT(world_n_log, 1);
  CHECK_INT(admissions, 0);
  world_run(6);
  CHECK_INT(admissions, 1);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 4);
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 0);
  world_run(20);
  CHECK_INT(ends[3].dones, 1);
  CHECK(!ends[3].failed);
  finish();
}

static void more_than_there_is_room_for_goes_in_turns(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 100);
  set_integer("max_inflight_bytes", 250);
  world_start();
  rmq_draft_options options = options_of();
  options.send.may_wait = true;
  options.send.admitted = note_admitted;
  admissions = 0;
  CHECK_INT(send_draft(draft_of(500), &options), 1);
  CHECK(rmq_producer_stats_of(producer).inflight_bytes <= 250);
  world_settle();
  CHECK_INT(admissions, 1);
  CHECK_INT(completed, 500);
  for (int i = 0; i < 500; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK(!ends[i].failed);
    CHECK_INT(ends[i].queue_offset, i + 1);
  }
  options.split = false;
  rmq_draft *draft = draft_of(101);
  CHECK_INT(send_draft(draft, &options), RMQ_EINVAL);
  rmq_draft_drop(draft);
  finish();
}

static void waiting_ends_with_the_budget(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 3);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  world_end single;
  memset(&single, 0, sizeof single);
  CHECK_INT(world_send("T", &single), 0);
  rmq_draft_options options = options_of();
  options.send.may_wait = true;
  options.send.timeout_ms = 50;
  CHECK_INT(send_draft(draft_of(3), &options), 1);
  world_run(49);
  CHECK_INT(completed, 0);
  world_run(2);
  CHECK_INT(completed, 3);
  CHECK_INT(ends[2].kind, RMQ_KIND_TIMEOUT);
  CHECK(strstr(ends[2].message, "waited 50 ms for room") != NULL);
  CHECK(!ends[2].maybe_stored);
  world_run(4000);
  finish();
}

/* ---- The end ---- */

static void a_shutdown_fails_each(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 2);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  rmq_draft_options options = options_of();
  options.send.may_wait = true;
  CHECK_INT(send_draft(draft_of(2), &options), 0);
  world_settle();
  CHECK_INT(world_n_log, 2);
  rmq_draft *draft = draft_of(3);
  rmq_draft *late = draft_of(1);
  CHECK_INT(send_draft(draft, &options), 1);
  world_count count = {0};
  rmq_producer_shutdown(producer, 100, world_count_done, &count);
  CHECK_INT(send_draft(late, &options), RMQ_ESTATE);
  rmq_draft_drop(late);
  world_run(1500);
  CHECK_INT(count.dones, 1);
  CHECK_INT(count.left, 5);
  CHECK_INT(completed, 5);
  CHECK_INT(ends[2].kind, RMQ_KIND_STATE);
  finish();
}

static void a_flush_waits_for_each(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_at(A)->delay_ms = 20;
  world_start();
  rmq_draft_options options = options_of();
  CHECK_INT(send_draft(draft_of(3), &options), 0);
  world_settle();
  world_count early = {0}, count = {0};
  rmq_producer_flush(producer, 5, world_count_done, &early);
  rmq_producer_flush(producer, 1000, world_count_done, &count);
  world_run(10);
  CHECK_INT(early.left, 3);
  CHECK_INT(count.dones, 0);
  world_run(20);
  CHECK_INT(count.dones, 1);
  CHECK_INT(count.left, 0);
  finish();
}

static void forked_or_freed_nothing_is_left(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 3);
  world_start();
  rmq_draft_options options = options_of();
  options.send.may_wait = true;
  CHECK_INT(send_draft(draft_of(5), &options), 1);
  rmq_draft *draft = draft_of(2);
  rmq_producer_forked(producer);
  CHECK_INT(completed, 0);
  CHECK_INT(rmq_producer_stats_of(producer).waiting, 0);
  rmq_draft *of_the_child = rmq_draft_new(producer);
  rmq_producer_free(producer);
  rmq_draft_drop(draft); /* they may outlive it */
  rmq_draft_drop(of_the_child);
  producer = NULL;
  world_end_all();
}

static void shut_down_from_inside(world_end *end) {
  (void)end;
  if (completed == 2) rmq_producer_forked(producer);
}

static void a_fork_from_inside_a_completion(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  rmq_draft_options options = options_of();
  for (int i = 0; i < 5; i++) ends[i].then = shut_down_from_inside;
  CHECK_INT(send_draft(draft_of(5), &options), 0);
  world_settle();
  CHECK_INT(completed, 2);
  world_end_all();
}

int main(void) {
  check_run("each message has its own result", each_message_has_its_own_result);
  check_run("a given queue, and oneway", a_given_queue_and_oneway);
  check_run("a selector is asked once for each request", a_selector_is_asked_once_for_each_request);
  check_run("one id for all is everybody's", one_id_for_all_is_everybodys);
  check_run("a wrong number of ids is no answer", a_wrong_number_of_ids_is_no_answer);
  check_run("the carrier tries again for all", the_carrier_tries_again_for_all);
  check_run("a refusal is told to each", a_refusal_is_told_to_each);
  check_run("a better result is sought for all", a_better_result_is_sought_for_all);
  check_run("what is refused", what_is_refused);
  check_run("a long batch is split in order", a_long_batch_is_split_in_order);
  check_run("what cannot fit fails alone", what_cannot_fit_fails_alone);
  check_run("properties leave room for the brokers'", properties_leave_room_for_the_brokers);
  check_run("a remark says that it is too long", a_remark_says_that_it_is_too_long);
  check_run("a batch waits for room as a whole", a_batch_waits_for_room_as_a_whole);
  check_run("more than there is room for goes in turns", more_than_there_is_room_for_goes_in_turns);
  check_run("waiting ends with the budget", waiting_ends_with_the_budget);
  check_run("a shutdown fails each", a_shutdown_fails_each);
  check_run("a flush waits for each", a_flush_waits_for_each);
  check_run("forked or freed, nothing is left", forked_or_freed_nothing_is_left);
  check_run("a fork from inside a completion", a_fork_from_inside_a_completion);
  return check_end();
}

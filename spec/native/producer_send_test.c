/* Sends, attempts and retries, against scripted brokers in virtual time. */
#include "base/error.h"
#include "producer_world.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"
#define C "10.0.0.2:3"

static world_end end;

static void begin(void) {
  world_begin();
  memset(&end, 0, sizeof end);
}

/* Every counter must be back at zero whatever happened. */
static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  CHECK_INT(stats.sent, stats.acknowledged + stats.failed);
  world_end_all();
}

/* 'a', 'b' or 'c'. */
static char name_of(const world_server *server) { return (char)(server->addr[9] - '1' + 'a'); }

/* Which brokers got something, in order: "abc". */
static void check_brokers(const char *expected) {
  char got[256] = "";
  for (int i = 0; i < world_n_log && i < 255; i++) got[i] = name_of(world_log[i].broker);
  if (strcmp(got, expected) != 0) printf("brokers were %s, not %s\n", got, expected);
  CHECK(strcmp(got, expected) == 0);
}

static bool says(const char *part) {
  bool found = strstr(end.message, part) != NULL;
  if (!found) printf("no \"%s\" in: %s\n", part, end.message);
  return found;
}

static void a_send_is_stored(void) {
  begin();
  world_topic_set("T", "a", 4, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed && end.status == RMQ_SEND_OK && end.has_reply);
  CHECK_INT(end.attempts, 1);
  CHECK_INT(world_n_log, 1);
  const world_message *got = &world_log[0];
  CHECK(strcmp(got->topic, "T") == 0 && strcmp(got->body, "body") == 0);
  CHECK(strcmp(got->group, "orders") == 0 && strcmp(got->default_topic, "TBW102") == 0);
  CHECK(strcmp(got->broker_name, "a") == 0 && strcmp(end.broker, "a") == 0);
  CHECK_INT(got->queue_id, end.queue_id);
  CHECK_INT(strlen(end.msg_id), 32);
  char properties[128];
  snprintf(properties, sizeof properties, "WAIT\001true\002UNIQ_KEY\001%s\002", end.msg_id);
  CHECK(strcmp(got->properties, properties) == 0);
  CHECK_INT(world_asked("T"), 1);
  finish();
}

static void the_route_is_asked_for_once(void) {
  static world_end ends[100];
  begin();
  memset(ends, 0, sizeof ends);
  world_topic_set("T", "ab", 2, 6);
  world_start();
  for (int i = 0; i < 100; i++) CHECK_INT(world_send("T", &ends[i]), 0);
  world_settle();
  CHECK_INT(world_asked("T"), 1);
  int per_queue[2][2] = {{0}};
  for (int i = 0; i < 100; i++) {
    CHECK_INT(ends[i].dones, 1);
    per_queue[ends[i].broker[0] - 'a'][ends[i].queue_id]++;
    for (int j = 0; j < i; j++) CHECK(strcmp(ends[i].msg_id, ends[j].msg_id) != 0);
  }
  for (int i = 0; i < 4; i++) CHECK_INT(per_queue[i / 2][i % 2], 25);
  CHECK_INT(world_at(A)->connections, 1);
  finish();
}

/* Both serializations, flag, properties as sent. */
static void json_headers(void) {
  begin();
  char why[128];
  rmq_settings_set_text(&world_settings, rmq_setting_find(rmq_slice_text("serialize")),
                        rmq_slice_text("json"), why, sizeof why);
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.dones == 1 && !end.failed);
  finish();
}

static void a_mute_broker_leaves_time_for_another(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_at(A)->always = world_at(B)->always = (world_act){.mood = WORLD_ANSWERS};
  world_script(A, (world_act){.mood = WORLD_MUTE});
  world_script(B, (world_act){.mood = WORLD_MUTE});
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1499);
  CHECK_INT(world_n_log, 1);
  world_run(1); /* half of 3000 ms */
  CHECK_INT(world_n_log, 2);
  CHECK(world_log[0].broker != world_log[1].broker);
  CHECK_INT(world_log[1].at_ms, 1500);
  world_run(749);
  CHECK_INT(world_n_log, 2);
  world_run(100); /* half of what was left, and a pause for the first broker has failed already */
  CHECK_INT(world_n_log, 3);
  CHECK(world_log[2].at_ms >= 2255 && world_log[2].at_ms <= 2266);
  CHECK(!end.failed && end.dones == 1 && end.attempts == 3);
  CHECK_INT(rmq_producer_stats_of(producer).retried, 2);
  finish();
}

static void the_budget_is_kept_to_the_microsecond(void) {
  begin();
  world_topic_set("T", "abc", 1, 6);
  world_at(A)->always = world_at(B)->always = world_at(C)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(2999);
  CHECK_INT(end.dones, 0);
  world_run(1);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.at_us, 3000000);
  CHECK_INT(end.elapsed_us, 3000000);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  CHECK_INT(end.code, 10002);
  CHECK_INT(end.n_tries, 3);
  CHECK(end.maybe_stored);
  CHECK(says("after 3 attempts") && says("a (10.0.0.2:1)") && says("b (10.0.0.2:2)"));
  CHECK(says("c (10.0.0.2:3)") && says("may have been stored"));
  CHECK_INT(world_n_log, 3); /* three different ones */
  CHECK(world_log[0].broker != world_log[1].broker && world_log[1].broker != world_log[2].broker);
  CHECK(world_log[0].broker != world_log[2].broker);
  world_run(5000);
  CHECK_INT(end.dones, 1);
  CHECK_INT(world_n_log, 3);
  finish();
}

static void one_broker_gets_all_the_time(void) {
  begin();
  world_topic_set("T", "a", 4, 6);
  world_at(A)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(3000);
  CHECK_INT(end.at_us, 3000000);
  CHECK_INT(world_n_log, 1); /* asking it twice would store it twice */
  finish();
}

static void no_attempt_starts_after_the_budget(void) {
  begin();
  world_topic_set("T", "abc", 1, 6);
  world_at(A)->always = world_at(B)->always = world_at(C)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  rmq_send_options options = {.retries = 5, .timeout_ms = 1000};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(1000);
  CHECK(end.dones == 1 && end.at_us == 1000000);
  CHECK_INT(end.n_tries, 2); /* 500 ms, the floor, for each; nothing is left for the third broker */
  finish();
  begin();
  world_topic_set("T", "a", 1, 6);
  world_at(A)->always = (world_act){WORLD_CODE, 2};
  world_start();
  options = (rmq_send_options){.retries = 90, .timeout_ms = 1000};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(1000);
  CHECK(end.dones == 1 && end.code == 2 &&
        end.at_us < 1000000); /* a pause that would take too long */
  finish();
}

static void timeouts_of_one_send(void) {
  begin();
  world_topic_set("T", "a", 4, 6);
  world_at(A)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  rmq_send_options options = {.retries = 0, .timeout_ms = 50};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(50);
  CHECK_INT(end.at_us, 50000);
  CHECK_INT(end.dones, 1);
  options = (rmq_send_options){.retries = 1, .timeout_ms = 1000, .attempt_timeout_ms = 100};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(400);
  CHECK_INT(end.dones, 2);
  CHECK_INT(end.n_tries, 2); /* the attempts' own timeout, with a pause between */
  CHECK(end.elapsed_us >= 205000 && end.elapsed_us <= 215001);
  finish();
}

static void each_retry_code_goes_to_another_broker(void) {
  static const int32_t codes[] = {1, 2, 14, 16, 17, 204, 205, 1500};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    begin();
    world_topic_set("T", "ab", 1, 6);
    world_start();
    world_script(A, (world_act){WORLD_CODE, codes[i]});
    world_script(B, (world_act){WORLD_CODE, codes[i]});
    if (codes[i] == 1500) { /* the last one is asked once more */
      world_script(A, (world_act){WORLD_CODE, codes[i]});
      world_script(B, (world_act){WORLD_CODE, codes[i]});
    }
    rmq_send_options options = {.retries = 1};
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_settle(); /* no pause before another one */
    CHECK_INT(end.dones, 1);
    CHECK(end.failed && end.kind == RMQ_KIND_BROKER && end.code == codes[i]);
    CHECK(!end.maybe_stored); /* both said no */
    CHECK_INT(world_n_log, codes[i] == 1500 ? 3 : 2);
    CHECK(world_log[0].broker != world_log[1].broker);
    CHECK(says("the remark"));
    bool stale = codes[i] == 14 || codes[i] == 16 || codes[i] == 17;
    CHECK_INT(world_asked("T"), stale ? 2 : 1);
    finish();
  }
}

/* Queues in an order in which plain round robin would come back to a broker that failed. */
static void a_broker_that_has_not_failed_comes_first(void) {
  begin();
  world_topic_json("T",
                   "{\"orderTopicConf\":\"a:1;b:1;a:1;b:1;c:1\",\"queueDatas\":[],\"brokerDatas\":["
                   "{\"brokerName\":\"a\",\"brokerAddrs\":{\"0\":\"10.0.0.2:1\"}},"
                   "{\"brokerName\":\"b\",\"brokerAddrs\":{\"0\":\"10.0.0.2:2\"}},"
                   "{\"brokerName\":\"c\",\"brokerAddrs\":{\"0\":\"10.0.0.2:3\"}}]}");
  world_at(A)->always = world_at(B)->always = (world_act){WORLD_CODE, 2};
  world_start();
  for (int i = 1; i <= 20; i++) {
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(end.dones == i && !end.failed && strcmp(end.broker, "c") == 0);
  }
  finish();
}

static void other_codes_fail_at_once(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_start();
  world_script(A, (world_act){WORLD_CODE, 13});
  world_script(B, (world_act){WORLD_CODE, 13});
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_BROKER && end.code == 13 && end.attempts == 1);
  CHECK(says("MESSAGE_ILLEGAL") && says("maxMessageSize") && says("the remark"));
  finish();
}

static void the_same_broker_is_asked_after_a_pause(void) {
  begin();
  world_topic_set("T", "a", 2, 6);
  for (int i = 0; i < 2; i++) world_script(A, (world_act){WORLD_CODE, 2});
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK_INT(world_n_log, 1);
  world_run(4);
  CHECK_INT(world_n_log, 1);
  world_run(100);
  CHECK_INT(world_n_log, 3);
  int64_t first = world_log[1].at_ms - world_log[0].at_ms;
  int64_t second = world_log[2].at_ms - world_log[1].at_ms;
  CHECK(first >= 5 && first <= 16);
  CHECK(second >= 10 && second <= 31);
  CHECK(!end.failed && end.attempts == 3);
  finish();
}

static void a_refused_connection_goes_elsewhere(void) {
  static const fake_rule rules[] = {{A, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
  static world_end ends[8];
  begin();
  memset(ends, 0, sizeof ends);
  fake_set_rules(world_fake, rules);
  world_topic_set("T", "ab", 1, 6);
  world_start();
  for (int i = 0; i < 8; i++) CHECK_INT(world_send("T", &ends[i]), 0);
  world_settle();
  for (int i = 0; i < 8; i++) {
    CHECK(ends[i].dones == 1 && !ends[i].failed && strcmp(ends[i].broker, "b") == 0);
  }
  CHECK_INT(world_asked("T"), 2); /* the route was asked for again, once */
  finish();
}

static void all_refused(void) {
  static const fake_rule rules[] = {{A, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
  begin();
  fake_set_rules(world_fake, rules);
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(3000);
  CHECK(end.failed && end.kind == RMQ_KIND_CONNECT && end.code == 10001);
  CHECK(!end.maybe_stored);
  CHECK(says("connection refused") && says("10.0.0.2:1") && says("listenPort"));
  finish();
}

static void a_closed_connection_fails_all_at_once(void) {
  static world_end ends[100];
  begin();
  memset(ends, 0, sizeof ends);
  world_topic_set("T", "a", 1, 6);
  world_start();
  world_send("T", &end);
  world_settle();
  world_at(A)->always = (world_act){.mood = WORLD_MUTE};
  rmq_send_options options = {.retries = 0};
  for (int i = 0; i < 99; i++) world_send_with("T", &options, &ends[i]);
  world_settle();
  world_script(A, (world_act){WORLD_CLOSES, 0});
  world_send_with("T", &options, &ends[99]);
  world_settle();
  for (int i = 0; i < 100; i++) {
    CHECK(ends[i].dones == 1 && ends[i].kind == RMQ_KIND_CLOSED && ends[i].maybe_stored);
  }
  CHECK_INT(ends[0].at_us, 0);
  world_at(A)->always = (world_act){.mood = WORLD_ANSWERS};
  world_send("T", &end); /* a new connection */
  world_run(1000);
  CHECK(end.dones == 2 && !end.failed);
  finish();
}

static void broken_answers(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_start();
  world_script(A, (world_act){WORLD_BROKEN, 0});
  world_script(B, (world_act){WORLD_BROKEN, 0});
  rmq_send_options options = {.retries = 0};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_settle();
  CHECK(end.failed && end.maybe_stored);
  CHECK(says("msgId"));
  world_at(A)->scripted = world_at(A)->done;
  world_at(B)->scripted = world_at(B)->done;
  world_script(A, (world_act){WORLD_GARBAGE, 0});
  world_script(B, (world_act){WORLD_GARBAGE, 0});
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_settle();
  CHECK(end.dones == 2 && end.failed && end.maybe_stored);
  CHECK(says("HTTP"));
  finish();
}

static void statuses_are_results(void) {
  static const struct {
    int32_t code;
    rmq_send_status status;
  } cases[] = {{10, RMQ_SEND_FLUSH_DISK_TIMEOUT},
               {11, RMQ_SEND_SLAVE_NOT_AVAILABLE},
               {12, RMQ_SEND_FLUSH_SLAVE_TIMEOUT}};
  for (int i = 0; i < 3; i++) {
    begin();
    world_topic_set("T", "ab", 1, 6);
    world_at(A)->always = world_at(B)->always = (world_act){WORLD_CODE, cases[i].code};
    world_start();
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(!end.failed && end.status == cases[i].status && end.attempts == 1 && end.has_reply);
    finish();
  }
}

static void a_better_status_is_sought_on_another_broker(void) {
  begin();
  world_settings.retry_another_broker_when_not_store_ok = true;
  world_topic_set("T", "ab", 1, 6);
  world_start();
  world_at(A)->always = (world_act){WORLD_CODE, 11};
  for (int i = 0; i < 4; i++) {
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(!end.failed && end.status == RMQ_SEND_OK && strcmp(end.broker, "b") == 0);
  }
  world_at(B)->always = (world_act){WORLD_CODE, 10};
  world_n_log = 0;
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  /* Both are not OK: the last result counts, and neither is asked twice. */
  CHECK(!end.failed && end.attempts == 2 && end.has_reply);
  CHECK_INT(end.status,
            end.broker[0] == 'a' ? RMQ_SEND_SLAVE_NOT_AVAILABLE : RMQ_SEND_FLUSH_DISK_TIMEOUT);
  CHECK(end.broker[0] == name_of(world_log[1].broker));
  CHECK_INT(strlen(end.offset_msg_id), 32);
  /* A failure after it is worse: what is stored is stored. */
  world_at(A)->always = (world_act){WORLD_CODE, 11};
  world_at(B)->always = (world_act){.mood = WORLD_MUTE};
  for (int i = 0; i < 2; i++) {
    CHECK_INT(world_send("T", &end), 0);
    world_run(3000);
    CHECK(!end.failed && end.status == RMQ_SEND_SLAVE_NOT_AVAILABLE);
    CHECK(strcmp(end.broker, "a") == 0);
  }
  CHECK_INT(end.dones, 7);
  world_at(B)->always = (world_act){WORLD_CODE, 13};
  rmq_send_options options = {.retries = 1};
  for (int i = 0; i < 2; i++) {
    bool a_first = false;
    world_n_log = 0;
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_settle();
    a_first = world_log[0].broker == world_at(A);
    CHECK(end.failed == !a_first); /* b's refusal ends the send, unless a has stored it before */
    if (a_first) CHECK(strcmp(end.broker, "a") == 0 && end.attempts == 2);
  }
  finish();
}

static const rmq_send_options *given(const char *broker, int32_t id) {
  static rmq_send_options options;
  options = (rmq_send_options){.retries = -1, .broker = rmq_slice_text(broker), .queue_id = id};
  return &options;
}

static void a_given_queue_is_kept(void) {
  begin();
  world_topic_set("T", "abc", 4, 6);
  world_start();
  for (int i = 0; i < 5; i++) CHECK_INT(world_send_with("T", given("b", 3), &end), 0);
  world_settle();
  CHECK_INT(end.dones, 5);
  check_brokers("bbbbb");
  for (int i = 0; i < 5; i++) CHECK_INT(world_log[i].queue_id, 3);
  CHECK_INT(world_send_with("T", given("b", -1), &end), RMQ_EINVAL);
  CHECK(says("-1"));
  finish();
}

static void a_given_queue_is_not_sent_to_twice(void) {
  begin();
  world_topic_set("T", "ab", 4, 6);
  world_at(B)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  CHECK_INT(world_send_with("T", given("b", 1), &end), 0);
  world_run(2999);
  CHECK_INT(end.dones, 0); /* no share: nobody else can take it */
  world_run(1);
  CHECK(end.failed && end.maybe_stored && end.n_tries == 1);
  CHECK(says("may have been stored"));
  world_at(B)->always = (world_act){WORLD_CODE, 2};
  CHECK_INT(world_send_with("T", given("b", 1), &end), 0);
  world_run(1000);
  CHECK(end.failed && end.code == 2 && end.n_tries == 1 && !end.maybe_stored);
  finish();
}

static void a_given_queue_is_retried_when_nothing_was_written(void) {
  static const fake_rule refuse[] = {{B, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
  begin();
  world_topic_set("T", "ab", 4, 6);
  world_start();
  fake_set_rules(world_fake, refuse);
  CHECK_INT(world_send_with("T", given("b", 1), &end), 0);
  world_run(4);
  fake_set_rules(world_fake, NULL);
  world_run(1000);
  CHECK(!end.failed && end.attempts == 2 && strcmp(end.broker, "b") == 0);
  finish();
}

/* The simulator's seed 138: the broker becomes known through another topic while earlier sends
 * still wait for this one's route. */
static void sends_to_a_given_queue_keep_their_order(void) {
  begin();
  world_topic_set("T", "a", 2, 6);
  world_topic_set("Other", "a", 1, 6);
  world_script("10.0.0.1:9876", (world_act){.mood = WORLD_MUTE});
  world_start();
  rmq_message message = {.topic = rmq_slice_text("T"), .wait = true};
  message.body = rmq_slice_text("first");
  CHECK_INT(rmq_producer_send(producer, &message, given("a", 1), world_done, &end), 0);
  world_run(1);
  CHECK_INT(world_send("Other", &end), 0);
  world_settle();
  CHECK_INT(end.dones, 1);
  message.body = rmq_slice_text("second");
  CHECK_INT(rmq_producer_send(producer, &message, given("a", 1), world_done, &end), 0);
  world_run(100);
  for (int i = 1; i < world_n_log; i++) CHECK(strcmp(world_log[i].body, "second") != 0);
  world_run(4000);
  CHECK_INT(end.dones, 3);
  finish();
}

static void a_given_broker_that_no_route_has(void) {
  begin();
  world_topic_set("T", "ab", 4, 6);
  world_start();
  CHECK_INT(world_send_with("T", given("x", 1), &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && end.code == 10003);
  CHECK(says("\"x\"") && says("\"T\""));
  CHECK_INT(world_asked("T"), 1);
  world_at("10.0.0.1:9876")->always = (world_act){WORLD_CODE, 1};
  CHECK_INT(world_send_with("T", given("x", 1), &end), 0);
  world_settle();
  CHECK(end.dones == 2 && end.code == 10003); /* the route that is known stays */
  world_at("10.0.0.1:9876")->always = (world_act){.mood = WORLD_ANSWERS};
  world_topic_set("T", "abc", 4, 6); /* found by asking anew */
  CHECK_INT(world_send_with("T", given("c", 0), &end), 0);
  world_settle();
  CHECK(!end.failed && strcmp(end.broker, "c") == 0);
  finish();
}

static void oneway(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  world_start();
  rmq_send_options options = {.mode = RMQ_MODE_ONEWAY, .retries = -1};
  for (int i = 0; i < 10; i++) CHECK_INT(world_send_with("T", &options, &end), 0);
  world_settle();
  CHECK(end.dones == 10 && !end.failed && !end.has_reply);
  CHECK_INT(world_n_log, 10);
  for (int i = 0; i < 10; i++) CHECK(world_log[i].oneway);
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.acknowledged, 0);
  CHECK_INT(stats.inflight, 0);
  world_end_all();
}

static void bad_messages_are_refused_before_any_io(void) {
  begin();
  world_start();
  CHECK_INT(world_send("a b", &end), RMQ_EINVAL);
  CHECK(says("topic has a space") && end.kind == RMQ_KIND_MESSAGE);
  rmq_message message = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("")};
  CHECK_INT(rmq_producer_send(producer, &message, &world_options, NULL, NULL), RMQ_EINVAL);
  CHECK_INT(rmq_producer_failure(producer)->code, 13);
  message.topic = rmq_slice_text(""); /* the topic comes first */
  CHECK_INT(rmq_producer_send(producer, &message, &world_options, NULL, NULL), RMQ_EINVAL);
  CHECK_INT(rmq_producer_failure(producer)->code, 0);
  world_run(10);
  CHECK_INT(fake_opened(world_fake), 0);
  CHECK_INT(end.dones, 0);
  finish();
}

int main(void) {
  check_run("a send is stored", a_send_is_stored);
  check_run("the route is asked for once", the_route_is_asked_for_once);
  check_run("JSON headers", json_headers);
  check_run("a mute broker leaves time for another", a_mute_broker_leaves_time_for_another);
  check_run("the budget is kept to the microsecond", the_budget_is_kept_to_the_microsecond);
  check_run("one broker gets all the time", one_broker_gets_all_the_time);
  check_run("no attempt starts after the budget", no_attempt_starts_after_the_budget);
  check_run("timeouts of one send", timeouts_of_one_send);
  check_run("each retry code goes to another broker", each_retry_code_goes_to_another_broker);
  check_run("a broker that has not failed comes first", a_broker_that_has_not_failed_comes_first);
  check_run("other codes fail at once", other_codes_fail_at_once);
  check_run("the same broker is asked after a pause", the_same_broker_is_asked_after_a_pause);
  check_run("a refused connection goes elsewhere", a_refused_connection_goes_elsewhere);
  check_run("all refused", all_refused);
  check_run("a closed connection fails all at once", a_closed_connection_fails_all_at_once);
  check_run("broken answers", broken_answers);
  check_run("statuses are results", statuses_are_results);
  check_run("a better status is sought", a_better_status_is_sought_on_another_broker);
  check_run("a given queue is kept", a_given_queue_is_kept);
  check_run("a given queue is not sent to twice", a_given_queue_is_not_sent_to_twice);
  check_run("a given queue where nothing was written",
            a_given_queue_is_retried_when_nothing_was_written);
  check_run("a given queue's order", sends_to_a_given_queue_keep_their_order);
  check_run("a given broker that no route has", a_given_broker_that_no_route_has);
  check_run("oneway", oneway);
  check_run("bad messages", bad_messages_are_refused_before_any_io);
  return check_end();
}

/* Name servers, routes, refreshes and heartbeats, in virtual time. */
#include <stdlib.h>

#include "base/error.h"
#include "producer/core.h"
#include "producer_world.h"

#define N1 "10.0.0.1:9876"
#define N2 "10.0.0.1:9877"
#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

static world_end end;

static void begin(void) {
  world_begin();
  memset(&end, 0, sizeof end);
}

static void finish(void) {
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 0);
  world_end_all();
}

static void use_both_name_servers(void) {
  free(world_settings.namesrv);
  world_settings.namesrv = NULL;
  char why[128];
  CHECK_INT(rmq_settings_set_text(&world_settings, rmq_setting_find(rmq_slice_text("namesrv")),
                                  rmq_slice_text(N1 "; " N2), why, sizeof why),
            0);
}

static bool says(const char *part) {
  bool found = strstr(end.message, part) != NULL;
  if (!found) printf("no \"%s\" in: %s\n", part, end.message);
  return found;
}

static bool logged(const char *part) { return strstr(world_lines, part) != NULL; }

/* ---- Which answer means what ---- */

static void an_unknown_topic_uses_the_default_topic(void) {
  begin();
  world_settings.default_topic_queue_nums = 3;
  world_topic_set("TBW102", "ab", 8, 7);
  world_start();
  for (int i = 0; i < 24; i++) CHECK_INT(world_send("New", &end), 0);
  world_settle();
  CHECK_INT(end.dones, 24);
  CHECK(!end.failed);
  CHECK_INT(world_asked("New"), 1);
  CHECK_INT(world_asked("TBW102"), 1);
  for (int i = 0; i < world_n_log; i++) CHECK(world_log[i].queue_id < 3);
  CHECK(strcmp(world_log[0].topic, "New") == 0);
  CHECK(logged("warn: topic \"New\" does not exist yet"));
  /* Once. */
  CHECK(strstr(strstr(world_lines, "does not exist yet") + 1, "does not exist yet") == NULL);
  finish();
}

static void an_old_server_s_key(void) {
  begin();
  free(world_settings.create_topic_key);
  world_settings.create_topic_key = strdup("AUTO_CREATE_TOPIC_KEY");
  world_topic_set("AUTO_CREATE_TOPIC_KEY", "a", 8, 7);
  world_start();
  CHECK_INT(world_send("New", &end), 0);
  world_settle();
  CHECK(!end.failed);
  CHECK(strcmp(world_log[0].default_topic, "AUTO_CREATE_TOPIC_KEY") == 0);
  finish();
}

static void no_topic_and_no_default_topic(void) {
  begin();
  world_start();
  CHECK_INT(world_send("New", &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && end.code == 10005);
  CHECK(says("\"New\"") && says("TBW102") && says(N1) && says("TOPIC_NOT_EXIST"));
  CHECK(says(N1 ": code 17") && says(N1 " on TBW102: code 17"));
  CHECK(says("mqadmin updateTopic") && says("autoCreateTopicEnable"));
  CHECK_INT(world_asked("TBW102"), 1);
  finish();
}

static void auto_create_off(void) {
  begin();
  world_settings.auto_create_topic = false;
  world_topic_set("TBW102", "a", 8, 7);
  world_start();
  CHECK_INT(world_send("New", &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && end.code == 10005);
  CHECK(says("auto_create_topic is off") && says("mqadmin updateTopic"));
  CHECK_INT(world_asked("TBW102"), 0);
  /* The next send asks again, and finds what was created meanwhile. */
  world_topic_set("New", "a", 1, 6);
  CHECK_INT(world_send("New", &end), 0);
  world_settle();
  CHECK(!end.failed);
  finish();
}

static void no_writable_queue(void) {
  begin();
  world_topic_json(
      "T",
      "{\"queueDatas\":[{\"brokerName\":\"a\",\"readQueueNums\":4,\"writeQueueNums\":4,\"perm\":4},"
      "{\"brokerName\":\"b\",\"readQueueNums\":4,\"writeQueueNums\":4,\"perm\":6}],"
      "\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{\"0\":\"10.0.0.2:1\"}},"
      "{\"brokerName\":\"b\",\"brokerAddrs\":{\"1\":\"10.0.0.2:2\"}}]}");
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && end.code == 10005);
  CHECK(says("no writable queue (1 read-only, 1 without a master)"));
  CHECK(says("updateTopicPerm"));
  CHECK_INT(world_n_log, 0);
  finish();
}

/* ---- Name servers that fail ---- */

static void a_refusing_name_server(void) {
  static const fake_rule rules[] = {{N1, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
  begin();
  fake_set_rules(world_fake, rules);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && end.code == 10004);
  CHECK(says(N1) && says("connection refused") && says("namesrv"));
  CHECK_INT(end.at_us, 0);
  finish();
}

static void a_mute_name_server(void) {
  begin();
  world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(2999);
  CHECK_INT(end.dones, 0);
  world_run(1);
  CHECK(end.failed && end.kind == RMQ_KIND_TIMEOUT && end.at_us == 3000000);
  CHECK(says(N1));
  rmq_send_options options = {.retries = -1, .timeout_ms = 100};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(100);
  CHECK_INT(end.dones, 2);
  CHECK_INT(end.elapsed_us, 100000);
  world_run(5000);
  CHECK_INT(end.dones, 2);
  finish();
}

static void the_next_name_server_is_asked(world_act act) {
  /* Which is first is left to chance: both orders come up. */
  int first[2] = {0};
  for (int seed = 0; seed < 8; seed++) {
    begin();
    use_both_name_servers();
    for (int i = 0; i < seed; i++) fake_io_of(world_fake)->calls->random(fake_io_of(world_fake));
    world_topic_set("T", "a", 1, 6);
    world_at(N1)->always = act;
    world_start();
    CHECK_INT(world_send("T", &end), 0);
    world_run(1500);
    CHECK(end.dones == 1 && !end.failed);
    CHECK_INT(world_at(N2)->questions, 1);
    first[world_at(N1)->questions > 0 ? 0 : 1]++;
    if (world_at(N1)->questions && act.mood == WORLD_MUTE) CHECK_INT(end.at_us, 1500000);
    if (act.mood != WORLD_MUTE) CHECK_INT(end.at_us, 0);
    /* The good one is remembered. */
    world_topic_set("U", "a", 1, 6);
    int asked = world_at(N1)->questions;
    CHECK_INT(world_send("U", &end), 0);
    world_settle();
    CHECK(end.dones == 2 && !end.failed);
    CHECK_INT(world_at(N1)->questions, asked);
    finish();
  }
  CHECK(first[0] > 0 && first[1] > 0);
}

static void next_after_silence(void) {
  the_next_name_server_is_asked((world_act){.mood = WORLD_MUTE});
}
static void next_after_close(void) {
  the_next_name_server_is_asked((world_act){.mood = WORLD_CLOSES});
}
static void next_after_garbage(void) {
  the_next_name_server_is_asked((world_act){.mood = WORLD_GARBAGE});
}
static void next_after_broken_route(void) {
  the_next_name_server_is_asked((world_act){.mood = WORLD_BROKEN});
}
static void next_after_system_error(void) {
  the_next_name_server_is_asked((world_act){WORLD_CODE, 1});
}

static void a_server_gets_half_a_second_at_least(void) {
  for (int seed = 0; seed < 8 && end.at_us != 500000; seed++) {
    begin();
    use_both_name_servers();
    for (int i = 0; i < seed; i++) fake_io_of(world_fake)->calls->random(fake_io_of(world_fake));
    world_topic_set("T", "a", 1, 6);
    world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
    world_start();
    rmq_send_options options = {.retries = 0, .timeout_ms = 800};
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(800);
    CHECK(end.dones == 1 && !end.failed);
    CHECK(world_at(N1)->questions == 0 || end.at_us == 500000);
    finish();
  }
  CHECK_INT(end.at_us, 500000); /* the mute one was the first once */
}

/* A send with little time never lives to see the second server; the one after it must. */
static void a_black_hole_is_not_asked_first_again(void) {
  begin();
  use_both_name_servers();
  world_topic_set("T", "a", 1, 6);
  world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  rmq_send_options options = {.retries = -1, .timeout_ms = 200};
  for (int i = 0; i < 2 && (end.dones == 0 || end.failed); i++) {
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(200);
  }
  CHECK(!end.failed);
  finish();
}

static void all_that_was_said_is_told(void) {
  begin();
  use_both_name_servers();
  world_at(N1)->always = (world_act){WORLD_CODE, 1};
  world_at(N2)->always = (world_act){.mood = WORLD_BROKEN};
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.failed && end.code == 10004);
  CHECK(says(N1 ": code 1 SYSTEM_ERROR (the remark)") && says(N2 ": its route cannot be read"));
  finish();
}

/* The simulator's seed 318: the server was started again while its connection was idle. */
static void a_dead_connection_is_not_a_dead_server(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_topic_set("U", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  world_at(N1)->scripted = world_at(N1)->done;
  world_script(N1, (world_act){.mood = WORLD_CLOSES});
  CHECK_INT(world_send("U", &end), 0);
  world_run(100);
  CHECK(end.dones == 2 && !end.failed);
  CHECK_INT(world_at(N1)->connections, 2);
  world_at(N1)->always = (world_act){.mood = WORLD_CLOSES};
  CHECK_INT(world_send("V", &end), 0);
  world_run(1000);
  CHECK(end.dones == 3 && end.failed && end.code == 10004);
  CHECK_INT(world_at(N1)->questions, 5); /* twice and no more */
  finish();
}

/* The simulator's seed 700028206: two questions to a server that says nothing: the first one's
 * time is over, and with it goes the connection. The second one must not begin there anew, or it
 * has none left for the other server. */
static void silence_holds_for_all_questions(void) {
  static world_end one, other, patient;
  memset(&one, 0, sizeof one);
  memset(&other, 0, sizeof other);
  memset(&patient, 0, sizeof patient);
  begin();
  use_both_name_servers();
  world_settings.mq_client_api_timeout = 1000;
  world_topic_set("T", "a", 1, 6);
  world_topic_set("U", "a", 1, 6);
  world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
  world_at(N2)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  rmq_send_options options = {.retries = -1, .timeout_ms = 2000};
  CHECK_INT(world_send_with("T", &options, &one), 0);
  CHECK_INT(world_send_with("U", &options, &other), 0);
  CHECK_INT(world_send("U", &patient), 0);
  world_run(900); /* which one is asked first is chance; the other one is well */
  world_at(world_at(N1)->questions > 0 ? N2 : N1)->always = (world_act){.mood = WORLD_ANSWERS};
  world_run(1100);
  CHECK(one.dones == 1 && !one.failed);
  CHECK(other.dones == 1 && !other.failed);
  CHECK(patient.dones == 1 && !patient.failed);
  finish();
}

/* A waiter that came late is not cut off with the one that asked first. */
static void each_waiter_has_its_own_time(void) {
  static world_end brief, patient;
  begin();
  memset(&brief, 0, sizeof brief);
  memset(&patient, 0, sizeof patient);
  world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
  world_start();
  rmq_send_options options = {.retries = -1, .timeout_ms = 50};
  CHECK_INT(world_send_with("T", &options, &brief), 0);
  world_run(10);
  CHECK_INT(world_send("T", &patient), 0);
  world_run(40);
  CHECK(brief.dones == 1 && brief.at_us == 50000 && brief.kind == RMQ_KIND_TIMEOUT);
  CHECK_INT(patient.dones, 0);
  CHECK_INT(world_at(N1)->questions, 1);
  world_run(2950);
  CHECK_INT(patient.dones, 1);
  CHECK(patient.at_us >= 3000000 && patient.at_us <= 3010000);
  finish();
}

/* ---- Refreshes ---- */

static void routes_are_refreshed(void) {
  begin();
  world_settings.poll_name_server_interval = 100;
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(99);
  CHECK_INT(world_asked("T"), 1);
  world_run(1);
  CHECK_INT(world_asked("T"), 2);
  /* What has not changed is left alone. */
  CHECK(strstr(strstr(world_lines, "route of topic") + 1, "route of topic") == NULL);
  world_topic_set("T", "ab", 1, 6);
  world_run(100);
  CHECK(logged("2 queues on 2 brokers"));
  for (int i = 0; i < 2; i++) world_send("T", &end);
  world_settle();
  CHECK(world_at(A)->sends >= 1 && world_at(B)->sends == 1);
  /* A refresh that brings nothing keeps what there is. */
  world_topic_remove("T");
  world_topic_set("TBW102", "b", 1, 6);
  world_run(100);
  CHECK_INT(world_asked("TBW102"), 0);
  world_at(N1)->always = (world_act){WORLD_CODE, 1};
  world_run(100);
  CHECK(logged("could not be refreshed"));
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(!end.failed);
  finish();
}

static void idle_topics_are_forgotten(void) {
  begin();
  world_settings.poll_name_server_interval = 100;
  world_settings.heartbeat_broker_interval = 60000;
  world_topic_set("T", "a", 1, 6);
  world_topic_set("U", "b", 1, 6);
  world_start();
  world_send("T", &end);
  world_send("U", &end);
  world_settle();
  CHECK_INT(fake_alive(world_fake), 3);
  for (int i = 0; i < 15; i++) {
    world_run(100);
    world_send("U", &end);
  }
  int asked = world_asked("T");
  CHECK(asked >= 9 && asked <= 11);
  world_run(300);
  CHECK_INT(world_asked("T"), asked);
  CHECK(world_asked("U") > asked);
  CHECK_INT(fake_alive(world_fake),
            2); /* the connection to a, which no route names any more, is closed */
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(!end.failed);
  finish();
}

static void unknown_topics_are_not_refreshed(void) {
  begin();
  world_settings.auto_create_topic = false;
  world_start();
  for (int i = 0; i < 40; i++) {
    char name[32];
    snprintf(name, sizeof name, "T%d", i);
    CHECK_INT(world_send(name, &end), 0);
  }
  world_settle();
  CHECK_INT(end.dones, 40);
  CHECK(rmq_routes_find(producer->routes, rmq_slice_text("T7")) == NULL);
  int asked = world_at(N1)->questions;
  world_run(31000);
  CHECK_INT(world_at(N1)->questions, asked); /* none of them is refreshed */
  finish();
}

static void a_stale_route_is_refreshed_at_once(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  world_send("T", &end);
  world_settle();
  world_topic_set("T", "b", 1, 6);
  world_script(A, (world_act){WORLD_CODE, 17});
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK_INT(world_asked("T"), 2);
  CHECK(!end.failed || end.dones == 1);
  world_run(100);
  CHECK(end.dones == 2 && !end.failed && strcmp(end.broker, "b") == 0);
  finish();
}

static void refreshes_on_demand_keep_a_distance(void) {
  static const fake_rule rules[] = {{A, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
  begin();
  fake_set_rules(world_fake, rules);
  world_topic_set("T", "a", 1, 6);
  world_start();
  rmq_send_options options = {.retries = 0};
  for (int i = 0; i < 1000; i++) {
    world_send_with("T", &options, &end);
    world_run(1);
  }
  CHECK(world_asked("T") >= 4 && world_asked("T") <= 12);
  world_run(5000);
  CHECK_INT(end.dones, 1000);
  finish();
}

static void a_broker_that_moved(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_topic_set("U", "a", 1, 6);
  world_start();
  world_send("T", &end);
  world_send("U", &end);
  world_settle();
  static const char *moved =
      "{\"queueDatas\":[{\"brokerName\":\"a\",\"readQueueNums\":1,\"writeQueueNums\":1,\"perm\":6}]"
      ","
      "\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{\"0\":\"10.0.0.2:2\"}}]}";
  world_topic_json("T", moved);
  world_topic_json("U", moved);
  world_script(A, (world_act){WORLD_CODE, 14});
  CHECK_INT(world_send("T", &end), 0);
  world_run(100);
  CHECK(!end.failed);
  /* The other topic's route was out of date too, and was asked for without a failure of its own. */
  CHECK_INT(world_asked("U"), 2);
  CHECK_INT(world_send("U", &end), 0);
  world_settle();
  CHECK(!end.failed);
  CHECK_INT(world_at(B)->sends, 2);
  CHECK_INT(world_at(A)->sends, 3);
  finish();
}

/* ---- Heartbeats ---- */

static void heartbeats(void) {
  begin();
  world_settings.heartbeat_broker_interval = 1000;
  world_settings.poll_name_server_interval = 60000;
  world_topic_set("T", "ab", 1, 6);
  world_start();
  world_run(500);
  CHECK_INT(world_at(A)->heartbeats + world_at(B)->heartbeats, 0);
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  bool a = end.broker[0] == 'a';
  CHECK_INT(world_at(a ? A : B)->heartbeats, 1); /* on the new connection */
  CHECK_INT(world_at(a ? B : A)->heartbeats, 0);
  CHECK_INT(world_at(N1)->heartbeats, 0);
  world_run(500);
  CHECK_INT(world_at(a ? A : B)->heartbeats,
            2); /* to all masters; the new connection's is the same one */
  CHECK_INT(world_at(a ? B : A)->heartbeats, 1);
  world_run(1000);
  CHECK_INT(world_at(a ? A : B)->heartbeats, 3);
  CHECK_INT(world_at(a ? B : A)->heartbeats, 2);
  world_at(A)->heartbeat_mute = true; /* fails, and harms nobody */
  world_run(6000);
  CHECK(logged("heartbeat to a (10.0.0.2:1) failed"));
  CHECK(world_at(B)->heartbeats >= 7);
  finish();
}

/* ---- Queues ---- */

typedef struct asked {
  int dones;
  size_t n;
  rmq_kind kind;
  int32_t code;
  char text[512];
} asked;

static void on_queues(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                      size_t n) {
  asked *a = arg;
  a->dones++;
  a->n = n;
  a->text[0] = '\0';
  if (failure) {
    a->kind = failure->kind;
    a->code = failure->code;
  }
  for (size_t i = 0; i < n; i++) {
    size_t len = strlen(a->text);
    snprintf(a->text + len, sizeof a->text - len, "%s%.*s:%d", i ? " " : "",
             (int)queues[i].broker.len, queues[i].broker.ptr, queues[i].id);
  }
}

static void queues_of_a_topic(void) {
  begin();
  world_topic_json("T",
                   "{\"orderTopicConf\":\"b:2;a:1\",\"queueDatas\":[],\"brokerDatas\":["
                   "{\"brokerName\":\"b\",\"brokerAddrs\":{\"0\":\"10.0.0.2:2\"}},"
                   "{\"brokerName\":\"a\",\"brokerAddrs\":{\"0\":\"10.0.0.2:1\"}}]}");
  world_start();
  asked a = {0};
  for (int i = 1; i <= 2; i++) {
    CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("T"), 0, on_queues, &a), 0);
    CHECK_INT(a.dones, i - 1); /* later, also when it is known already */
    world_settle();
    CHECK_INT(a.dones, i);
    CHECK(strcmp(a.text, "a:0 b:0 b:1") == 0);
  }
  CHECK_INT(world_asked("T"), 1);
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("U"), 0, on_queues, &a), 0);
  world_settle();
  CHECK(a.dones == 3 && a.n == 0 && a.kind == RMQ_KIND_ROUTE && a.code == 10005);
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("a b"), 0, on_queues, &a), RMQ_EINVAL);
  world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("V"), 70, on_queues, &a), 0);
  world_run(70);
  CHECK(a.dones == 4 && a.kind == RMQ_KIND_TIMEOUT);
  finish();
}

/* The simulator's seed 1711: what was known when the question came is lost by a refresh before
 * the answer. */
static void queues_that_vanish(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  asked a = {0};
  rmq_topic *topic = rmq_routes_find(producer->routes, rmq_slice_text("T"));
  CHECK_INT(rmq_producer_queues(producer, rmq_slice_text("T"), 50, on_queues, &a), 0);
  topic->publish->n_queues = 0; /* as a refresh at this very moment would leave it */
  world_topic_set("T", "a", 1, 4);
  world_run(50);
  CHECK(a.dones == 1 && a.n == 0 && a.kind == RMQ_KIND_ROUTE);
  finish();
}

/* The simulator's seed 205: the heartbeat of a round that waits for a connection gives way to
 * the one that goes first on it. */
static void the_heartbeat_goes_first(void) {
  static const fake_rule slow[] = {{A, 0, 0, 100, NULL}, {NULL, 0, 0, 0, NULL}};
  begin();
  world_settings.heartbeat_broker_interval = 50;
  world_topic_set("T", "a", 1, 6);
  fake_set_rules(world_fake, slow);
  world_start();
  world_run(10);
  for (int i = 0; i < 3; i++) CHECK_INT(world_send("T", &end), 0);
  world_run(80); /* the round's heartbeat waits behind the sends */
  CHECK_INT(world_at(A)->heartbeats, 0);
  world_run(30);
  CHECK(end.dones == 3 && !end.failed);
  CHECK_INT(world_log[0].heartbeats_before, 1);
  finish();
}

int main(void) {
  check_run("an unknown topic uses the default topic", an_unknown_topic_uses_the_default_topic);
  check_run("an old server's key", an_old_server_s_key);
  check_run("no topic and no default topic", no_topic_and_no_default_topic);
  check_run("auto create off", auto_create_off);
  check_run("no writable queue", no_writable_queue);
  check_run("a refusing name server", a_refusing_name_server);
  check_run("a mute name server", a_mute_name_server);
  check_run("next after silence", next_after_silence);
  check_run("next after close", next_after_close);
  check_run("next after garbage", next_after_garbage);
  check_run("next after a broken route", next_after_broken_route);
  check_run("next after a system error", next_after_system_error);
  check_run("a server gets half a second at least", a_server_gets_half_a_second_at_least);
  check_run("a black hole is not asked first again", a_black_hole_is_not_asked_first_again);
  check_run("all that was said is told", all_that_was_said_is_told);
  check_run("a dead connection is not a dead server", a_dead_connection_is_not_a_dead_server);
  check_run("silence holds for all questions", silence_holds_for_all_questions);
  check_run("each waiter has its own time", each_waiter_has_its_own_time);
  check_run("routes are refreshed", routes_are_refreshed);
  check_run("idle topics are forgotten", idle_topics_are_forgotten);
  check_run("unknown topics are not refreshed", unknown_topics_are_not_refreshed);
  check_run("a stale route is refreshed at once", a_stale_route_is_refreshed_at_once);
  check_run("refreshes on demand keep a distance", refreshes_on_demand_keep_a_distance);
  check_run("a broker that moved", a_broker_that_moved);
  check_run("heartbeats", heartbeats);
  check_run("queues of a topic", queues_of_a_topic);
  check_run("queues that vanish", queues_that_vanish);
  check_run("the heartbeat goes first", the_heartbeat_goes_first);
  return check_end();
}

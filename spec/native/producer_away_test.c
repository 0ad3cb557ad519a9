/* Brokers that go away, come back, move and ask; name servers that change. In virtual time. */
#include <stdlib.h>

#include "base/error.h"
#include "producer_world.h"
#include "wire/codes.h"
#include "wire/frame.h"
#include "wire/header.h"

#define N1 "10.0.0.1:9876"
#define N2 "10.0.0.1:9877"
#define A "10.0.0.2:1"
#define B "10.0.0.2:2"
#define C "10.0.0.2:3"

static const world_act go_away = {WORLD_CODE, RMQ_GO_AWAY};
static world_end end;

static void begin(const char *brokers) {
  world_begin();
  memset(&end, 0, sizeof end);
  if (brokers) world_topic_set("T", brokers, 1, 6);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.sent, stats.acknowledged + stats.failed);
  world_end_all();
}

static bool says(const char *part) {
  bool found = strstr(end.message, part) != NULL;
  if (!found) printf("no \"%s\" in: %s\n", part, end.message);
  return found;
}

static bool logged(const char *part) { return strstr(world_lines, part) != NULL; }

static const rmq_send_options *to_a(int retries) {
  static rmq_send_options options;
  options = (rmq_send_options){.retries = retries, .broker = rmq_slice_text("a")};
  return &options;
}

/* ---- Go away ---- */

static void go_away_sends_once_more_on_a_new_connection(void) {
  for (int how = 0; how < 2; how++) { /* to a given queue; to the only broker */
    begin(how == 0 ? "ab" : "a");
    world_start();
    world_script(A, go_away);
    rmq_send_options options = {.retries = 0};
    CHECK_INT(world_send_with("T", how == 0 ? to_a(0) : &options, &end), 0);
    world_settle(); /* at once, though no retry is allowed */
    CHECK(end.dones == 1 && !end.failed && end.attempts == 2);
    CHECK_INT(world_at(A)->connections, 2);
    CHECK_INT(world_at(A)->sends, 2);
    CHECK_INT(world_at(A)->heartbeats, 2); /* the new connection is announced */
    CHECK_INT(world_log[1].heartbeats_before, 2);
    CHECK_INT(fake_alive(world_fake), 2); /* the name server and the new one */
    finish();
  }
}

static void go_away_twice_is_a_failure(void) {
  begin("ab");
  world_start();
  world_at(A)->always = go_away;
  CHECK_INT(world_send_with("T", to_a(5), &end), 0);
  world_run(3000);
  CHECK(end.dones == 1 && end.failed && end.n_tries == 2);
  CHECK(end.kind == RMQ_KIND_BROKER && end.code == RMQ_GO_AWAY && !end.maybe_stored);
  CHECK(says("GO_AWAY"));
  CHECK_INT(world_at(A)->sends, 2);
  finish();
}

static void go_away_takes_another_broker_first(void) {
  begin("abc");
  world_start();
  world_at(A)->always = world_at(B)->always = go_away;
  for (int i = 0; i < 9; i++) {
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(end.dones == i + 1 && !end.failed && strcmp(end.broker, "c") == 0);
  }
  for (int i = 1; i < world_n_log; i++)
    CHECK(world_log[i].broker != world_log[i - 1].broker || world_log[i].broker == world_at(C));
  finish();
}

/* With its retries used up it comes back to the last one, once. */
static void go_away_everywhere(void) {
  begin("ab");
  world_start();
  world_at(A)->always = world_at(B)->always = go_away;
  rmq_send_options options = {.retries = 1};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(3000);
  CHECK(end.dones == 1 && end.failed && end.n_tries == 3 && end.attempts == 3);
  CHECK(world_log[0].broker != world_log[1].broker && world_log[1].broker == world_log[2].broker);
  finish();
}

static void a_late_go_away_keeps_the_budget(void) {
  begin("a");
  world_start();
  world_at(A)->always = (world_act){.mood = WORLD_MUTE};
  world_script(A, go_away);
  rmq_send_options options = {.retries = 0, .timeout_ms = 700};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(699);
  CHECK_INT(end.dones, 0);
  world_run(1);
  CHECK(end.dones == 1 && end.failed && end.kind == RMQ_KIND_TIMEOUT && end.maybe_stored);
  CHECK_INT(world_at(A)->sends, 2);
  finish();
}

static void oneway_does_not_come_back(void) {
  begin("a");
  world_start();
  world_at(A)->always = go_away; /* which answers, though nobody asked for it */
  rmq_send_options options = {.retries = -1, .mode = RMQ_MODE_ONEWAY};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(3000);
  CHECK(end.dones == 1 && !end.failed);
  CHECK_INT(world_at(A)->sends, 1);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 0);
  world_end_all();
}

static void a_name_server_that_goes_away(void) {
  begin("a");
  world_start();
  world_script(N1, go_away);
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK(end.dones == 1 && !end.failed);
  CHECK_INT(world_at(N1)->connections, 2);
  CHECK_INT(world_at(N1)->questions, 2);
  world_end_all();
  begin("a");
  world_start();
  world_at(N1)->always = go_away;
  CHECK_INT(world_send("T", &end), 0);
  world_run(3000);
  CHECK(end.failed && end.kind == RMQ_KIND_ROUTE && says(N1 ": code 1500 GO_AWAY"));
  CHECK_INT(world_at(N1)->questions, 2);
  finish();
}

/* ---- Brokers that fail, move and leave ---- */

static const fake_rule a_refuses[] = {{A, FAKE_REFUSED, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
static const fake_rule a_swallows[] = {{A, 0, 0, -1, NULL}, {NULL, 0, 0, 0, NULL}};

/* While a broker is down sends do not wait for it; once it is back it is soon used again. */
static void a_broker_that_is_down_costs_nothing_and_comes_back(void) {
  for (int how = 0; how < 2; how++) {
    begin("ab");
    fake_set_rules(world_fake, how == 0 ? a_refuses : a_swallows);
    world_start();
    int64_t slowest_us = 0;
    for (int i = 0; i < 400; i++) {
      CHECK_INT(world_send("T", &end), 0);
      world_run(50);
      /* In a black hole the first ones find out what it is. */
      if (how == 1 && i < 100) continue;
      if (end.elapsed_us > slowest_us) slowest_us = end.elapsed_us;
    }
    CHECK(end.dones == 400 && !end.failed);
    CHECK(slowest_us <= 1000);
    fake_set_rules(world_fake, NULL);
    int64_t back_us = world_now_us();
    /* What is still connecting into the black hole ends first. */
    int64_t soon_us = how == 0 ? 1300000 : 4300000;
    while (world_at(A)->sends == 0 && world_now_us() < back_us + 10000000) {
      CHECK_INT(world_send("T", &end), 0);
      world_run(50);
    }
    CHECK(world_now_us() - back_us <= soon_us);
    int before = world_at(A)->sends;
    for (int i = 0; i < 10; i++) world_send("T", &end);
    world_settle();
    CHECK_INT(world_at(A)->sends, before + 5);
    finish();
  }
}

/* A broker of which there is one only: whoever has time waits for it. */
static void a_send_survives_a_restart_of_the_only_broker(void) {
  begin("a");
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  fake_end(fake_last(world_fake), RMQ_ECLOSED);
  fake_set_rules(world_fake, a_refuses);
  world_settle();
  rmq_send_options options = {.retries = 10};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(600);
  CHECK_INT(end.dones, 1);
  fake_set_rules(world_fake, NULL);
  world_run(1300);
  CHECK(end.dones == 2 && !end.failed);
  finish();
}

/* Ten thousand refusals in a second ask for the route ten times, and never twice at a time. */
static void a_storm_of_stale_codes_asks_seldom(void) {
  begin("a");
  world_settings.poll_name_server_interval = 60000;
  world_start();
  world_at(A)->always = (world_act){WORLD_CODE, 17};
  rmq_send_options options = {.retries = 0};
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_settle();
  int asked = world_asked("T");
  for (int ms = 0; ms < 1000; ms++) {
    for (int i = 0; i < 10; i++) CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(1);
  }
  CHECK_INT(end.dones, 10001);
  CHECK(world_asked("T") - asked >= 9 && world_asked("T") - asked <= 10);
  finish();
}

static void each_sign_of_a_stale_route_asks_at_once(void) {
  static const world_act acts[] = {
      {WORLD_CODE, 14}, {WORLD_CODE, 16}, {WORLD_CODE, 17}, {WORLD_CLOSES, 0}, {WORLD_ANSWERS, 0}};
  for (int i = 0; i < 5; i++) {
    begin("a");
    world_start();
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    if (i == 4) { /* a connection that cannot be made again */
      fake_end(fake_last(world_fake), RMQ_ECLOSED);
      fake_set_rules(world_fake, a_refuses);
      world_settle();
    } else {
      world_script(A, acts[i]);
    }
    world_topic_set("T", "b", 1, 6); /* it has moved */
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK_INT(world_asked("T"), 2);
    world_run(20); /* the pause before the one broker that was known */
    CHECK(end.dones == 2 && !end.failed && strcmp(end.broker, "b") == 0);
    finish();
  }
}

/* The next request on a socket, with its header. */
static rmq_header *take_request(rmq_socket *s, rmq_slice *body) {
  static rmq_header header;
  static rmq_buf scratch;
  static char kept[4096];
  rmq_frame frame;
  if (rmq_frame_split(rmq_buf_slice(&s->sent), &frame, NULL) != 1) return NULL;
  rmq_buf_free(&scratch);
  memcpy(kept, rmq_buf_head(&s->sent), frame.size);
  rmq_buf_consume(&s->sent, frame.size);
  CHECK_INT(rmq_frame_split(rmq_slice_make(kept, frame.size), &frame, NULL), 1);
  CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
  if (body) *body = frame.body;
  return &header;
}

static void put(rmq_socket *s, int32_t code, int32_t opaque, int32_t flag, const char *group) {
  rmq_buf out = {0};
  rmq_frame_writer writer;
  rmq_command command = rmq_command_request(code, opaque, flag);
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
  if (group) rmq_frame_text(&writer, rmq_slice_text("consumerGroup"), rmq_slice_text(group));
  if (code == RMQ_SUCCESS) {
    rmq_send_reply reply = {.msg_id = rmq_slice_text("0A0000020000000100000000000000FF")};
    rmq_send_reply_write(&writer, &reply);
  }
  rmq_frame_end(&writer, rmq_slice_text("{}"));
  fake_send(s, rmq_buf_head(&out), rmq_buf_len(&out));
  rmq_buf_free(&out);
}

static void a_broker_that_left_still_answers(void) {
  begin("a");
  world_settings.heartbeat_broker_interval = 600000;
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  rmq_socket *a = fake_last(world_fake);
  CHECK_INT(world_send("T", &end), 0);
  fake_settle(world_fake);
  rmq_header *request = take_request(a, NULL);
  CHECK(request && request->code == RMQ_SEND_MESSAGE_V2);
  int32_t opaque = request->opaque;
  world_topic_set("T", "b", 1, 6);
  world_script(A, (world_act){WORLD_CODE, 17});
  static world_end other;
  memset(&other, 0, sizeof other);
  CHECK_INT(world_send("T", &other), 0);
  world_run(50); /* the route has b only */
  CHECK(other.dones == 1 && !other.failed && strcmp(other.broker, "b") == 0);
  CHECK_INT(end.dones, 1);
  CHECK_INT(fake_alive(world_fake), 3);
  put(a, RMQ_SUCCESS, opaque, RMQ_FLAG_RESPONSE, NULL);
  world_settle();
  CHECK(end.dones == 2 && !end.failed && strcmp(end.broker, "a") == 0 && end.attempts == 1);
  CHECK_INT(fake_alive(world_fake), 2); /* and a's connection is closed */
  finish();
}

static void brokers_at_names_and_ipv6_addresses(void) {
  static const fake_rule names[] = {{"broker-a", 0, 0, 0, "10.0.0.2"}, {NULL, 0, 0, 0, NULL}};
  static const char *const route =
      "{\"queueDatas\":[{\"brokerName\":\"a\",\"readQueueNums\":1,\"writeQueueNums\":1,\"perm\":6}]"
      ",\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{\"0\":\"%s\"}}]}";
  static const char *const addrs[] = {"broker-a:1", "[fd00::2]:1", "fd00::2:1"};
  for (int i = 0; i < 3; i++) {
    char json[512];
    begin(NULL);
    fake_set_rules(world_fake, names);
    if (i > 0) world_at(A)->addr = "[fd00::2]:1";
    snprintf(json, sizeof json, route, addrs[i]);
    world_topic_json("T", json);
    world_start();
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(end.dones == 1 && !end.failed);
    CHECK_INT(fake_lookups(world_fake), i == 0);
    fake_end(fake_last(world_fake), RMQ_ECLOSED);
    world_settle();
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(end.dones == 2 && !end.failed);
    CHECK_INT(fake_lookups(world_fake), i == 0 ? 2 : 0); /* the name may mean another host now */
    finish();
  }
}

/* ---- What brokers ask ---- */

static void check_answer(rmq_socket *s, int32_t code, const char *remark, const char *body) {
  rmq_slice got;
  rmq_header *header = take_request(s, &got);
  CHECK(header != NULL);
  if (!header) return;
  CHECK_INT(header->code, code);
  CHECK_INT(header->opaque, 77);
  CHECK(header->flag & RMQ_FLAG_RESPONSE);
  CHECK(rmq_slice_is(header->remark, remark));
  CHECK(rmq_slice_is(got, body));
}

static void requests_of_brokers_are_answered(void) {
  static const char *const no_group = "The Consumer Group <c-1> not exist in this consumer";
  begin("a");
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  rmq_socket *a = fake_last(world_fake);
  static const int32_t silent[] = {39, 40, 220};
  for (int i = 0; i < 3; i++) {
    put(a, silent[i], 77, 0, "c-1");
    fake_settle(world_fake);
    CHECK(take_request(a, NULL) == NULL);
  }
  CHECK(logged("warn: 1 transaction check was ignored, the last one from " A));
  put(a, 221, 77, 0, "c-1");
  fake_settle(world_fake);
  check_answer(a, RMQ_SUCCESS, "", "{\"consumerTable\":{},\"messageQueueTable\":{}}");
  put(a, 307, 77, 0, "c-1");
  fake_settle(world_fake);
  check_answer(a, RMQ_SYSTEM_ERROR, no_group, "");
  put(a, 309, 77, 0, "c-1");
  fake_settle(world_fake);
  check_answer(a, RMQ_SYSTEM_ERROR, no_group, "");
  put(a, 307, 77, 0, NULL);
  fake_settle(world_fake);
  check_answer(a, RMQ_SYSTEM_ERROR, "The Consumer Group <> not exist in this consumer", "");
  put(a, 326, 77, 0, NULL);
  fake_settle(world_fake);
  check_answer(a, RMQ_SUCCESS, "", "");
  put(a, 999, 77, 0, NULL);
  fake_settle(world_fake);
  check_answer(a, RMQ_REQUEST_CODE_NOT_SUPPORTED, " request type 999 not supported", "");
  put(a, 999, 77, RMQ_FLAG_ONEWAY, NULL);
  fake_settle(world_fake);
  CHECK(take_request(a, NULL) == NULL);
  char group[2000];
  memset(group, 'g', sizeof group);
  group[sizeof group - 1] = '\0';
  put(a, 309, 77, 0, group);
  fake_settle(world_fake);
  rmq_header *header = take_request(a, NULL);
  CHECK(header && header->remark.len < 400);
  finish();
}

/* ---- Name servers ---- */

static int set_namesrv(const char *list) {
  static char why[256];
  int status = rmq_producer_set_namesrv(producer, rmq_slice_text(list), why, sizeof why);
  if (status == RMQ_EINVAL) snprintf(end.message, sizeof end.message, "%s", why);
  return status;
}

static void name_servers_change(void) {
  begin("a");
  world_settings.poll_name_server_interval = 1000;
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_settle();
  CHECK_INT(set_namesrv(" " N1 " ; " N1), 0); /* the same, differently */
  CHECK(strcmp(rmq_producer_settings(producer)->namesrv, N1) == 0);
  world_run(1000);
  CHECK_INT(world_at(N1)->connections, 1);
  CHECK_INT(fake_alive(world_fake), 2);
  CHECK_INT(set_namesrv(N1 ";" N2), 0);
  world_run(1000);
  CHECK_INT(world_at(N1)->questions, 3); /* it works, so it stays in use */
  CHECK_INT(set_namesrv(N2), 0);
  CHECK(strcmp(rmq_producer_settings(producer)->namesrv, N2) == 0);
  world_settle();
  CHECK_INT(fake_alive(world_fake), 1); /* N1's connection is closed */
  int questions = world_at(N1)->questions;
  world_run(1000);
  CHECK_INT(world_at(N1)->questions, questions);
  CHECK_INT(world_at(N2)->questions, 1);
  CHECK_INT(set_namesrv("nonsense:x"), RMQ_EINVAL);
  CHECK(says("nonsense:x"));
  CHECK_INT(set_namesrv(""), RMQ_EINVAL);
  CHECK(strcmp(rmq_producer_settings(producer)->namesrv, N2) == 0);
  finish();
}

/* Whoever waits for an answer that the old servers do not give gets it from the new ones. */
static void name_servers_change_while_they_are_asked(void) {
  static const fake_rule down[] = {{N1, FAKE_REFUSED, 0, 50, NULL}, {NULL, 0, 0, 0, NULL}};
  for (int how = 0; how < 3; how++) { /* it is silent; it is not connected yet; it answers late */
    begin("a");
    if (how == 1) fake_set_rules(world_fake, down);
    if (how == 0) world_at(N1)->always = (world_act){.mood = WORLD_MUTE};
    world_start();
    CHECK_INT(world_send("T", &end), 0);
    if (how == 2) {
      fake_settle(world_fake);
    } else {
      world_run(10);
    }
    CHECK_INT(set_namesrv(N2), 0);
    world_settle();
    if (how == 2) CHECK(world_at(N1)->questions == 1 && world_at(N2)->questions == 0);
    if (how == 0) world_run(3000);
    CHECK_INT(end.dones, 1);
    if (how > 0) CHECK(!end.failed);
    CHECK_INT(set_namesrv(N1 ";" N2), 0);
    CHECK_INT(world_send("T", &end), 0);
    world_settle();
    CHECK(end.dones == 2 && !end.failed);
    finish();
  }
}

static void name_servers_do_not_change_after_the_end(void) {
  begin("a");
  world_start();
  world_count count = {0};
  rmq_producer_shutdown(producer, 100, world_count_done, &count);
  CHECK_INT(set_namesrv(N2), RMQ_ESTATE);
  world_run(200);
  CHECK_INT(set_namesrv(N2), RMQ_ESTATE);
  finish();
}

static void set_first_namesrv(const char *list) {
  char why[128];
  CHECK_INT(rmq_settings_set_text(&world_settings, rmq_setting_find(rmq_slice_text("namesrv")),
                                  rmq_slice_text(list), why, sizeof why),
            0);
}

/* A name server whose name, or whose host, gives no answer ends the send when its time is over. */
static void lookups_end_with_the_send(void) {
  static const fake_rule silent[] = {
      {"silent", 0, 0, -1, NULL}, {N1, 0, 0, -1, NULL}, {NULL, 0, 0, 0, NULL}};
  for (int how = 0; how < 2; how++) {
    begin("a");
    set_first_namesrv(how == 0 ? "silent:9876" : N1);
    fake_set_rules(world_fake, silent);
    world_start();
    rmq_send_options options = {.retries = -1, .timeout_ms = 321};
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(320);
    CHECK_INT(end.dones, 0);
    world_run(1);
    CHECK(end.dones == 1 && end.failed && end.elapsed_us == 321000);
    CHECK(end.kind == RMQ_KIND_TIMEOUT);
    finish();
  }
}

int main(void) {
  check_run("go away sends once more on a new connection",
            go_away_sends_once_more_on_a_new_connection);
  check_run("go away twice is a failure", go_away_twice_is_a_failure);
  check_run("go away takes another broker first", go_away_takes_another_broker_first);
  check_run("go away everywhere", go_away_everywhere);
  check_run("a late go away keeps the budget", a_late_go_away_keeps_the_budget);
  check_run("oneway does not come back", oneway_does_not_come_back);
  check_run("a name server that goes away", a_name_server_that_goes_away);
  check_run("a broker that is down costs nothing and comes back",
            a_broker_that_is_down_costs_nothing_and_comes_back);
  check_run("a send survives a restart of the only broker",
            a_send_survives_a_restart_of_the_only_broker);
  check_run("a storm of stale codes asks seldom", a_storm_of_stale_codes_asks_seldom);
  check_run("each sign of a stale route asks at once", each_sign_of_a_stale_route_asks_at_once);
  check_run("a broker that left still answers", a_broker_that_left_still_answers);
  check_run("brokers at names and IPv6 addresses", brokers_at_names_and_ipv6_addresses);
  check_run("requests of brokers are answered", requests_of_brokers_are_answered);
  check_run("name servers change", name_servers_change);
  check_run("name servers change while they are asked", name_servers_change_while_they_are_asked);
  check_run("name servers do not change after the end", name_servers_do_not_change_after_the_end);
  check_run("lookups end with the send", lookups_end_with_the_send);
  return check_end();
}

/* Connections that are left: go away, addresses that nobody needs, servers that do not come back. */
#include "net_calls.h"

#include "base/error.h"

static bool has(const call *c, const char *part) {
  bool found = strstr(c->detail, part) != NULL;
  if (!found) printf("no \"%s\" in: %s\n", part, c->detail);
  return found;
}

/* Takes the next request that the transport sent, and returns its number. */
static int32_t take(rmq_socket *s) {
  static rmq_header header;
  CHECK(take_frame(s, &header));
  return header.opaque;
}

static void say_go_away(rmq_socket *s, int32_t opaque) {
  send_frame(s, RMQ_GO_AWAY, opaque, RMQ_FLAG_RESPONSE, "go away");
}

/* --- go away --- */

static void go_away_moves_what_comes_after(void) {
  start();
  call first = {0}, second = {0}, third = {0};
  invoke(&first);
  invoke(&second);
  fake_settle(fake);
  rmq_socket *old = fake_last(fake);
  int32_t first_number = take(old), second_number = take(old);
  say_go_away(old, first_number);
  fake_settle(fake);
  CHECK_INT(first.dones, 1);
  CHECK_INT(first.status, RMQ_OK); /* the answer is the caller's to judge */
  CHECK(strcmp(first.body, "go away") == 0);
  CHECK_INT(fake_opened(fake), 1); /* nothing has asked for a new one yet */
  CHECK(!rmq_transport_is_connected(transport, BROKER));
  invoke(&third);
  fake_settle(fake);
  CHECK_INT(fake_opened(fake), 2);
  CHECK_INT(fake_alive(fake), 2);
  CHECK_INT(rmq_transport_stats_of(transport)->connections, 2);
  CHECK(!take_frame(old, &(rmq_header){0}));
  reply(old, second_number, "old"); /* what was sent before is still answered there */
  fake_settle(fake);
  CHECK(second.dones == 1 && strcmp(second.body, "old") == 0);
  CHECK_INT(fake_alive(fake), 1); /* and then it has nothing to stay for */
  CHECK_INT(rmq_transport_stats_of(transport)->connections, 1);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(third.status, RMQ_OK);
  CHECK_INT(rmq_transport_stats_of(transport)->late_replies, 0);
  finish();
}

static void go_away_takes_along_what_waits(void) {
  start();
  static call calls[40];
  memset(calls, 0, sizeof calls);
  invoke(&calls[0]);
  fake_settle(fake);
  rmq_socket *old = fake_last(fake);
  int32_t number = take(old);
  old->write_room = 0;
  for (int i = 1; i < 40; i++) {
    calls[i].size = 30000; /* more than one connection holds unsent */
    invoke(&calls[i]);
  }
  fake_settle(fake);
  size_t encoded = 0;
  for (int i = 0; i < 40; i++) encoded += calls[i].request.end_at > 0;
  CHECK(encoded > 1 && encoded < 40);
  say_go_away(old, number);
  fake_settle(fake);
  CHECK_INT(fake_opened(fake), 2);
  CHECK_INT(reply_all(fake_last(fake)) + (int)encoded, 40);
  old->write_room = SIZE_MAX;
  fake_settle(fake);
  CHECK_INT(reply_all(old) + 1, (int)encoded);
  fake_settle(fake);
  CHECK_INT(n_ended, 40);
  for (int i = 0; i < 40; i++) CHECK(calls[i].dones == 1 && calls[i].status == RMQ_OK);
  CHECK_INT(fake_alive(fake), 1);
  finish();
}

static void a_connection_sent_away_may_also_end_otherwise(void) {
  for (int how = 0; how < 4; how++) {
    start();
    call first = {0}, second = {0};
    invoke(&first);
    invoke_to(BROKER, &second, 500);
    fake_settle(fake);
    rmq_socket *old = fake_last(fake);
    say_go_away(old, take(old));
    fake_settle(fake);
    CHECK_INT(fake_alive(fake), 1);
    if (how == 0) fake_end(old, FAKE_RESET);
    if (how == 1) rmq_transport_cancel(transport, &second.request);
    if (how == 2) fake_advance(fake, 500);
    if (how == 3) rmq_transport_free(transport), transport = NULL;
    fake_settle(fake);
    CHECK_INT(fake_alive(fake), 0);
    CHECK_INT(second.dones, how == 0 || how == 2);
    if (how == 0) CHECK(second.status == RMQ_ECLOSED && second.written);
    if (how == 2) CHECK(second.status == RMQ_ETIMEOUT && second.written);
    if (transport) {
      CHECK_INT(rmq_transport_stats_of(transport)->connections, 0);
      invoke(&first); /* the address is as good as new */
      fake_settle(fake);
      CHECK_INT(reply_all(fake_last(fake)), 1);
      fake_settle(fake);
      CHECK_INT(first.status, RMQ_OK);
    }
    finish();
  }
}

static void send_back(call *c) {
  c->then = NULL;
  invoke(c);
}
static void free_transport(call *c) {
  (void)c;
  rmq_transport_free(transport);
  transport = NULL;
}

static void go_away_may_be_answered_at_once(void) {
  start();
  call c = {.then = send_back};
  invoke(&c);
  fake_settle(fake);
  say_go_away(fake_last(fake), take(fake_last(fake)));
  fake_settle(fake);
  CHECK_INT(fake_opened(fake), 2);
  CHECK_INT(fake_alive(fake), 1); /* the old one had nothing else */
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK(c.dones == 2 && c.status == RMQ_OK);
  finish();
  start();
  c = (call){.then = free_transport};
  invoke(&c);
  fake_settle(fake);
  say_go_away(fake_last(fake), take(fake_last(fake)));
  fake_settle(fake);
  CHECK_INT(c.dones, 1);
  finish();
}

/* A server that sends everybody away must not be connected to as fast as it answers. */
static void who_sends_everybody_away_is_paused(void) {
  static const int64_t pauses[] = {0, 100, 200, 400, 800, 1000, 1000};
  start();
  call c = {0};
  invoke(&c);
  fake_settle(fake);
  for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
    say_go_away(fake_last(fake), take(fake_last(fake)));
    fake_settle(fake);
    rmq_mono began = rmq_transport_now(transport);
    size_t opened = fake_opened(fake);
    invoke_to(BROKER, &c, 20000);
    fake_settle(fake);
    if (i > 0) {
      call hurried = {.request.hurried = true};
      invoke_to(BROKER, &hurried, 20000);
      fake_settle(fake);
      CHECK_INT(hurried.status, RMQ_ECONNECT);
      CHECK(has(&hurried, "not connected again yet; before: sent away (GO_AWAY)"));
    }
    for (int ms = 0; ms < 2000 && fake_opened(fake) == opened; ms++) fake_advance(fake, 1);
    CHECK_INT(fake_opened(fake), opened + 1);
    fake_settle(fake);
    int64_t took = rmq_mono_diff_ms(rmq_transport_now(transport), began);
    if (took < pauses[i] * 8 / 10 || took > pauses[i] * 12 / 10 + 2) CHECK_INT(took, pauses[i]);
  }
  fake_advance(fake, 10000); /* this one was good for long enough */
  say_go_away(fake_last(fake), take(fake_last(fake)));
  fake_settle(fake);
  size_t opened = fake_opened(fake);
  invoke(&c);
  fake_settle(fake);
  CHECK_INT(fake_opened(fake), opened + 1);
  rmq_transport_cancel(transport, &c.request);
  finish();
}

/* --- addresses that nobody needs --- */

static void a_connection_left_closes_after_its_last_answer(void) {
  start();
  call sent = {0}, waits = {.size = 300000}, never = {.size = 300000};
  invoke(&sent);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  int32_t number = take(s);
  s->write_room = 0;
  invoke(&waits);
  invoke(&never); /* finds no room, so it is not encoded */
  fake_settle(fake);
  rmq_transport_retire(transport, "10.0.0.9:1"); /* nobody there */
  rmq_transport_retire(transport, BROKER);
  CHECK_INT(n_ended, 0); /* never from inside */
  fake_settle(fake);
  CHECK(never.dones == 1 && never.status == RMQ_ECLOSED && !never.written);
  CHECK(has(&never, "closed by this side"));
  CHECK_INT(n_ended, 1);
  reply(s, number, "late but well");
  s->write_room = SIZE_MAX;
  fake_settle(fake);
  CHECK(sent.dones == 1 && sent.status == RMQ_OK);
  CHECK_INT(fake_alive(fake), 1);
  CHECK_INT(reply_all(s), 1);
  fake_settle(fake);
  CHECK(waits.dones == 1 && waits.status == RMQ_OK);
  CHECK_INT(fake_alive(fake), 0);
  finish();
}

static void a_connection_left_alone_closes_at_once(void) {
  start();
  call c = {0};
  invoke(&c);
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  rmq_transport_retire(transport, BROKER);
  fake_settle(fake);
  CHECK_INT(fake_alive(fake), 0);
  finish();
}

static void a_connection_left_is_kept_when_it_is_needed_again(void) {
  start();
  call first = {0}, second = {0};
  invoke(&first);
  fake_settle(fake);
  rmq_transport_retire(transport, BROKER);
  fake_settle(fake);
  invoke(&second);
  fake_settle(fake);
  CHECK_INT(fake_opened(fake), 1);
  CHECK_INT(reply_all(fake_last(fake)), 2);
  fake_settle(fake);
  CHECK(first.status == RMQ_OK && second.status == RMQ_OK);
  CHECK_INT(fake_alive(fake), 1);
  finish();
}

static void what_is_not_connected_yet_is_left_too(void) {
  static const fake_rule rules[] = {{.name = BROKER, .delay_ms = -1}, {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {0};
  invoke(&c);
  fake_settle(fake);
  rmq_transport_retire(transport, BROKER);
  fake_settle(fake);
  CHECK(c.dones == 1 && c.status == RMQ_ECLOSED && !c.written);
  CHECK_INT(fake_alive(fake), 0);
  finish();
}

/* --- who can go elsewhere does not wait --- */

static void a_hurried_request_does_not_wait_after_a_failure(void) {
  static const fake_rule rules[] = {{.name = BROKER, .status = FAKE_REFUSED}, {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {.request.hurried = true};
  for (int i = 1; i <= 3; i++) { /* the first one tries; the next ones let it be tried */
    invoke(&c);
    CHECK_INT(c.dones, i - 1); /* never from inside */
    fake_settle(fake);
    CHECK_INT(c.dones, i);
    CHECK_INT(c.status, RMQ_ECONNECT);
    CHECK(!c.written);
    CHECK(has(&c, "connection refused (" BROKER ")"));
  }
  CHECK(has(&c, "not connected again yet; before: "));
  CHECK_INT(fake_opened(fake), 2); /* after that one it pauses */
  fake_advance(fake, 60000);
  CHECK_INT(fake_opened(fake), 2); /* nobody asked, so it does not try */
  fake_set_rules(fake, NULL);
  invoke(&c);
  fake_settle(fake);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(rmq_transport_is_connected(transport, BROKER)); /* for the next one */
  invoke(&c);
  fake_settle(fake);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(c.status, RMQ_OK);
  finish();
}

static void a_hurried_request_does_not_wait_in_a_black_hole(void) {
  static const fake_rule rules[] = {{.name = BROKER, .delay_ms = -1}, {0}};
  start();
  fake_set_rules(fake, rules);
  call patient = {0}, hurried = {.request.hurried = true};
  invoke_to(BROKER, &patient, 20000);
  invoke_to(BROKER, &hurried, 20000);
  fake_advance(fake, 2999);
  CHECK_INT(n_ended, 0); /* nothing bad is known before */
  fake_advance(fake, 1);
  CHECK_INT(n_ended, 2);
  invoke_to(BROKER, &patient, 20000);
  invoke_to(BROKER, &hurried, 20000);
  fake_settle(fake);
  CHECK_INT(hurried.dones, 2);
  CHECK_INT(patient.dones, 1);
  CHECK(has(&hurried, "before: no answer in time (" BROKER ")"));
  rmq_transport_cancel(transport, &patient.request);
  finish();
}

static void a_hurried_request_may_be_given_up(void) {
  static const fake_rule rules[] = {{.name = BROKER, .status = FAKE_REFUSED}, {0}};
  for (int how = 0; how < 2; how++) {
    start();
    fake_set_rules(fake, rules);
    call c = {.request.hurried = true};
    invoke(&c);
    fake_settle(fake);
    invoke(&c);
    if (how == 0) rmq_transport_cancel(transport, &c.request);
    if (how == 1) rmq_transport_free(transport), transport = NULL;
    fake_settle(fake);
    CHECK_INT(c.dones, 1);
    finish();
  }
}

int main(void) {
  check_run("go away moves what comes after", go_away_moves_what_comes_after);
  check_run("go away takes along what waits", go_away_takes_along_what_waits);
  check_run("a connection sent away may also end otherwise",
            a_connection_sent_away_may_also_end_otherwise);
  check_run("go away may be answered at once", go_away_may_be_answered_at_once);
  check_run("who sends everybody away is paused", who_sends_everybody_away_is_paused);
  check_run("a connection left closes after its last answer",
            a_connection_left_closes_after_its_last_answer);
  check_run("a connection left alone closes at once", a_connection_left_alone_closes_at_once);
  check_run("a connection left is kept when it is needed again",
            a_connection_left_is_kept_when_it_is_needed_again);
  check_run("what is not connected yet is left too", what_is_not_connected_yet_is_left_too);
  check_run("a hurried request does not wait after a failure",
            a_hurried_request_does_not_wait_after_a_failure);
  check_run("a hurried request does not wait in a black hole",
            a_hurried_request_does_not_wait_in_a_black_hole);
  check_run("a hurried request may be given up", a_hurried_request_may_be_given_up);
  return check_end();
}

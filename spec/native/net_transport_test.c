#include "base/error.h"
#include "net/connection.h"
#include "net_calls.h"

/* How the transport works when nothing is wrong. */

static void replies_come_in_any_order(void) {
  start();
  static call calls[5];
  memset(calls, 0, sizeof calls);
  for (int i = 0; i < 5; i++) invoke(&calls[i]);
  CHECK_INT(fake_opened(fake), 0); /* nothing happens before the turn ends */
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  CHECK_INT(rmq_transport_stats_of(transport)->writes, 1);
  CHECK_INT(rmq_transport_stats_of(transport)->pending, 5);
  rmq_header header;
  for (int i = 0; i < 5; i++) {
    CHECK(take_frame(s, &header));
    CHECK_INT(header.opaque, calls[i].request.opaque);
  }
  const int order[] = {3, 0, 4, 2, 1};
  char body[8];
  for (int i = 0; i < 5; i++) {
    snprintf(body, sizeof body, "r%d", order[i]);
    reply(s, calls[order[i]].request.opaque, body);
  }
  fake_settle(fake);
  CHECK_INT(n_ended, 5);
  CHECK_INT(rmq_transport_stats_of(transport)->reads, 1);
  for (int i = 0; i < 5; i++) {
    snprintf(body, sizeof body, "r%d", order[i]);
    CHECK(ended[i] == &calls[order[i]]);
    CHECK_INT(ended[i]->status, RMQ_OK);
    CHECK(strcmp(ended[i]->body, body) == 0);
    CHECK(strcmp(ended[i]->remote, BROKER) == 0);
  }
  finish();
}

static void replies_may_come_in_any_pieces(void) {
  rmq_buf bytes = {0};
  for (int32_t i = 0; i < 3; i++) build(&bytes, RMQ_SUCCESS, i, RMQ_FLAG_RESPONSE, "the body");
  for (size_t cut = 0; cut <= rmq_buf_len(&bytes); cut++) {
    start();
    static call calls[3];
    memset(calls, 0, sizeof calls);
    for (int i = 0; i < 3; i++) invoke(&calls[i]);
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    s->read_most = cut % 3 == 0 ? 1 : SIZE_MAX;
    fake_send(s, rmq_buf_head(&bytes), cut);
    fake_settle(fake);
    CHECK_INT(n_ended, cut / (rmq_buf_len(&bytes) / 3));
    fake_send(s, rmq_buf_head(&bytes) + cut, rmq_buf_len(&bytes) - cut);
    fake_settle(fake);
    CHECK_INT(n_ended, 3);
    for (int i = 0; i < 3; i++) CHECK(strcmp(calls[i].body, "the body") == 0);
    finish();
  }
  rmq_buf_free(&bytes);
}

static void unknown_and_second_replies_are_counted(void) {
  start();
  call c = {0};
  invoke(&c);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  const int32_t unknown[] = {1, 32, -1, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < 5; i++) reply(s, unknown[i], "?");
  reply(s, 0, "first");
  reply(s, 0, "second");
  fake_settle(fake);
  CHECK_INT(c.dones, 1);
  CHECK(strcmp(c.body, "first") == 0);
  CHECK_INT(rmq_transport_stats_of(transport)->late_replies, 6);
  CHECK(rmq_transport_is_connected(transport, BROKER));
  finish();
}

static void a_cancelled_request_never_ends(void) {
  start();
  static call calls[3];
  memset(calls, 0, sizeof calls);
  rmq_transport_cancel(transport, &calls[0].request); /* never invoked */
  invoke(&calls[0]);
  rmq_transport_cancel(transport, &calls[0].request); /* waiting */
  invoke(&calls[1]);
  fake_settle(fake);
  rmq_transport_cancel(transport, &calls[1].request); /* sent */
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(n_ended, 0);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 1);
  CHECK_INT(rmq_transport_stats_of(transport)->late_replies, 1);
  invoke(&calls[1]);
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(calls[1].dones, 1);
  fake_advance(fake, 10000); /* no timer of theirs is left */
  CHECK_INT(rmq_transport_stats_of(transport)->timeouts, 0);
  finish();
}

static void oneway_ends_when_the_kernel_has_it(void) {
  start();
  static call calls[3];
  memset(calls, 0, sizeof calls);
  for (int i = 0; i < 3; i++) {
    calls[i].size = 1000;
    calls[i].request.oneway = true;
  }
  invoke(&calls[0]);
  CHECK_INT(n_ended, 0);
  fake_settle(fake);
  CHECK_INT(n_ended, 1);
  CHECK_INT(calls[0].status, RMQ_OK);
  CHECK(calls[0].written);
  rmq_socket *s = fake_last(fake);
  s->write_room = calls[0].request.end_at + 1; /* all of the next, one byte of the last */
  invoke(&calls[1]);
  invoke(&calls[2]);
  fake_settle(fake);
  CHECK_INT(n_ended, 2);
  s->write_room = SIZE_MAX;
  fake_settle(fake);
  CHECK_INT(n_ended, 3);
  CHECK_INT(calls[2].status, RMQ_OK);
  rmq_header header;
  for (int i = 0; i < 3; i++) CHECK(take_frame(s, &header) && header.flag == RMQ_FLAG_ONEWAY);
  CHECK_INT(rmq_buf_len(&s->sent), 0);
  CHECK(!s->wants_write);
  finish();
}

static void numbers_wrap_on_a_connection(void) {
  start();
  static call calls[4];
  memset(calls, 0, sizeof calls);
  invoke(&calls[0]);
  fake_settle(fake);
  calls[0].request.connection->pending.next = INT32_MAX - 1;
  for (int i = 1; i < 4; i++) invoke(&calls[i]);
  CHECK_INT(calls[1].request.opaque, INT32_MAX - 1);
  CHECK_INT(calls[2].request.opaque, INT32_MAX);
  CHECK_INT(calls[3].request.opaque, 1); /* 0 waits still */
  fake_settle(fake);
  CHECK_INT(reply_all(fake_last(fake)), 4);
  fake_settle(fake);
  CHECK_INT(n_ended, 4);
  finish();
}

/* 64 KiB go at once; from 256 KiB unsent on, requests wait unencoded and go when there is room. */
static void what_cannot_be_sent_waits_unencoded(void) {
  start();
  enum { N = 1000 };
  static call calls[N];
  memset(calls, 0, sizeof calls);
  call first = {0};
  invoke(&first);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  reply_all(s);
  s->write_room = 100000;
  for (int i = 0; i < N; i++) {
    calls[i].size = 1000;
    invoke(&calls[i]);
  }
  CHECK_INT(s->write_room, 0); /* before the turn ended */
  fake_settle(fake);
  uint64_t encoded = rmq_transport_stats_of(transport)->requests;
  CHECK(encoded > 300 && encoded < 400);
  CHECK_INT(rmq_transport_stats_of(transport)->pending, N);
  int answered = 0;
  while (answered < N) {
    s->write_room = 7777;
    fake_settle(fake);
    answered += reply_all(s);
  }
  fake_settle(fake);
  CHECK_INT(n_ended, N + 1);
  for (int i = 0; i < N; i++) CHECK(ended[i + 1] == &calls[i] && calls[i].status == RMQ_OK);
  finish();
}

/* The simulator's seed 91: its bytes cannot be taken out of the stream any more: whoever asked
 * must not think that the other side will never see them. */
static void what_is_encoded_and_late_goes_out_all_the_same(void) {
  for (int oneway = 0; oneway < 2; oneway++) {
    start();
    call first = {0}, late = {0};
    invoke(&first);
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    CHECK_INT(reply_all(s), 1);
    s->write_room = 0;
    late.request.oneway = oneway;
    invoke_to(BROKER, &late, 100);
    fake_settle(fake);
    fake_advance(fake, 10);
    send_frame(s, 999, 1, RMQ_FLAG_ONEWAY, ""); /* a sign of life: the connection stays */
    fake_advance(fake, 90);
    CHECK_INT(late.status, RMQ_ETIMEOUT);
    CHECK(late.written);
    s->write_room = SIZE_MAX;
    fake_settle(fake);
    CHECK_INT(reply_all(s), 1);
    fake_settle(fake);
    CHECK_INT(late.dones, 1);
    finish();
  }
}

static void a_big_frame_goes_through(void) {
  start();
  call big = {.size = 4 * 1024 * 1024}, small = {0};
  invoke(&big);
  invoke(&small);
  fake_settle(fake);
  CHECK_INT(reply_all(fake_last(fake)), 2);
  fake_settle(fake);
  CHECK_INT(n_ended, 2);
  fake_advance(fake, 2500); /* a quiet connection gives its memory back */
  invoke(&small);
  rmq_connection *c = small.request.connection;
  CHECK(c->out.cap < 4096 && c->in.cap == 0);
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(small.dones, 2);
  finish();
}

static int announced;
static call heartbeat;

static void announce(void *owner, const char *addr) {
  CHECK(owner == &announced);
  CHECK(strcmp(addr, BROKER) == 0);
  announced++;
  invoke(&heartbeat);
}

static void a_new_connection_is_announced_first(void) {
  config.connected = announce;
  config.owner = &announced;
  announced = 0;
  memset(&heartbeat, 0, sizeof heartbeat);
  start();
  call c = {.size = 10};
  invoke(&c);
  CHECK(!rmq_transport_is_connected(transport, BROKER));
  fake_settle(fake);
  CHECK(rmq_transport_is_connected(transport, BROKER));
  CHECK_INT(announced, 1);
  CHECK_INT(heartbeat.request.start_at, 0);
  CHECK(c.request.start_at > 0);
  CHECK_INT(reply_all(fake_last(fake)), 2);
  fake_settle(fake);
  CHECK(ended[0] == &heartbeat && ended[1] == &c);
  finish();
}

static int received_code;

static bool receive(void *owner, const char *addr, const rmq_header *header, rmq_slice body) {
  (void)owner;
  CHECK(strcmp(addr, BROKER) == 0);
  CHECK(rmq_slice_is(body, "question"));
  received_code = header->code;
  if (header->code != RMQ_GET_CONSUMER_RUNNING_INFO) return false;
  rmq_transport_answer(transport, header, RMQ_SYSTEM_ERROR, rmq_slice_text("no"),
                       rmq_slice_make(NULL, 0));
  return true;
}

static void check_answer(rmq_socket *s, int32_t code, int32_t opaque, const char *remark) {
  rmq_frame frame;
  static rmq_header header;
  rmq_buf scratch = {0};
  CHECK_INT(rmq_frame_split(rmq_buf_slice(&s->sent), &frame, NULL), 1);
  CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
  CHECK_INT(header.code, code);
  CHECK_INT(header.opaque, opaque);
  CHECK_INT(header.flag, RMQ_FLAG_RESPONSE);
  CHECK(rmq_slice_is(header.remark, remark));
  rmq_buf_consume(&s->sent, frame.size);
  rmq_buf_free(&scratch);
}

static void requests_of_the_peer_are_answered(void) {
  for (int with = 0; with < 2; with++) {
    config.received = with ? receive : NULL;
    start();
    call c = {0};
    invoke(&c);
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    rmq_header header;
    CHECK(take_frame(s, &header));
    send_frame(s, 999, 77, 0, "question");
    fake_settle(fake);
    check_answer(s, RMQ_REQUEST_CODE_NOT_SUPPORTED, 77, " request type 999 not supported");
    send_frame(s, RMQ_CHECK_TRANSACTION_STATE, 78, RMQ_FLAG_ONEWAY, "question");
    fake_settle(fake);
    CHECK_INT(rmq_buf_len(&s->sent), 0);
    send_frame(s, RMQ_GET_CONSUMER_RUNNING_INFO, 79, 0, "question");
    fake_settle(fake);
    if (with) {
      CHECK_INT(received_code, RMQ_GET_CONSUMER_RUNNING_INFO);
      check_answer(s, RMQ_SYSTEM_ERROR, 79, "no");
    } else {
      check_answer(s, RMQ_REQUEST_CODE_NOT_SUPPORTED, 79, " request type 307 not supported");
    }
    reply(s, 0, "");
    fake_settle(fake);
    CHECK_INT(c.dones, 1);
    finish();
  }
}

static uint64_t origin;

static bool note_origin(void *owner, const char *addr, const rmq_header *header, rmq_slice body) {
  (void)owner, (void)addr, (void)header, (void)body;
  origin = rmq_transport_origin(transport);
  return true;
}

static bool invoke_back(call *c) {
  c->request.encode = encode_call;
  c->request.done = end_call;
  c->request.oneway = true;
  c->request.deadline = rmq_mono_add_ms(rmq_transport_now(transport), 3000);
  return rmq_transport_invoke_on(transport, origin, &c->request);
}

/* A request may go back on the connection on which one came, and on no other one. */
static void a_request_goes_back_where_one_came_from(void) {
  config.received = note_origin;
  start();
  call first = {0}, back = {0}, waits = {0};
  invoke(&first);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  CHECK_INT(reply_all(s), 1);
  send_frame(s, RMQ_CHECK_TRANSACTION_STATE, 1, RMQ_FLAG_ONEWAY, "");
  fake_settle(fake);
  CHECK(origin != 0);
  CHECK_INT(rmq_transport_origin(transport), 0);
  /* Even where others wait because too much is unsent. */
  s->write_room = 0;
  call big = {.size = 300 * 1024};
  invoke(&big);
  invoke(&waits);
  CHECK(invoke_back(&back));
  CHECK_INT(back.dones, 0);
  s->write_room = SIZE_MAX;
  fake_settle(fake);
  CHECK_INT(back.dones, 1);
  CHECK_INT(back.status, RMQ_OK);
  CHECK_INT(reply_all(s), 3);
  fake_settle(fake);
  /* The connection ends; another one to the same address is another one. */
  fake_end(s, RMQ_ECLOSED);
  fake_settle(fake);
  CHECK(!invoke_back(&back));
  invoke(&first);
  fake_settle(fake);
  CHECK(!invoke_back(&back));
  CHECK_INT(back.dones, 1);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  finish();
}

static void an_idle_connection_is_closed_and_made_again(void) {
  start();
  call c = {0};
  invoke(&c);
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_advance(fake, 119000);
  CHECK_INT(fake_alive(fake), 1);
  CHECK(fake_wakes(fake) < 20); /* and is not looked at all the time */
  fake_advance(fake, 2000);
  CHECK_INT(fake_alive(fake), 0);
  CHECK_INT(rmq_transport_stats_of(transport)->connections, 0);
  CHECK_INT(rmq_transport_stats_of(transport)->closed_by_peer, 0);
  invoke(&c);
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(c.dones, 2);
  CHECK_INT(fake_opened(fake), 2);
  fake_advance(fake, 300000); /* forgotten altogether: the memory check of the end sees it */
  CHECK_INT(fake_alive(fake), 0);
  int64_t wakes = fake_wakes(fake);
  fake_advance(fake, 3000000);
  CHECK_INT(fake_wakes(fake), wakes);
  invoke(&c); /* not on what was forgotten, though the address is the same text */
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(c.dones, 3);
  CHECK_INT(fake_opened(fake), 3);
  finish();
}

/* A connection that is used stays, and one with something pending too. */
static void traffic_keeps_a_connection(void) {
  start();
  call c = {0};
  for (int i = 0; i < 10; i++) {
    invoke(&c);
    fake_settle(fake);
    reply_all(fake_last(fake));
    fake_advance(fake, 100000);
  }
  CHECK_INT(fake_opened(fake), 1);
  invoke_to(BROKER, &c, 500000);
  fake_advance(fake, 400000);
  CHECK_INT(fake_alive(fake), 1);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(c.dones, 11);
  finish();
}

static void several_addresses_have_their_own_connections(void) {
  start();
  static call calls[20];
  memset(calls, 0, sizeof calls);
  char addr[32];
  for (int i = 0; i < 20; i++) {
    snprintf(addr, sizeof addr, "10.0.1.%d:10911", i % 10);
    invoke_to(addr, &calls[i], 3000);
  }
  fake_settle(fake);
  CHECK_INT(fake_alive(fake), 10);
  CHECK_INT(rmq_transport_stats_of(transport)->connections, 10);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 20);
  for (int i = 0; i < 20; i++) rmq_transport_cancel(transport, &calls[i].request);
  finish();
}

static void names_are_resolved_for_each_connection(void) {
  static const fake_rule rules[] = {
      {.name = "broker-a", .found = "10.0.0.7"}, {.name = "v6", .found = "::1"}, {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {0};
  for (int i = 1; i <= 2; i++) {
    invoke_to("broker-a:10911", &c, 3000);
    fake_settle(fake);
    CHECK(strcmp(fake_last(fake)->address, "10.0.0.7:10911") == 0);
    reply_all(fake_last(fake));
    fake_settle(fake);
    CHECK_INT(c.dones, i);
    CHECK(strcmp(c.remote, "10.0.0.7:10911") == 0);
    rmq_transport_close(transport, "broker-a:10911");
    fake_settle(fake);
  }
  CHECK_INT(fake_lookups(fake), 2);
  invoke_to("[::1]:1", &c, 3000);
  fake_settle(fake);
  CHECK_INT(fake_lookups(fake), 2);
  CHECK(strcmp(fake_last(fake)->address, "[::1]:1") == 0);
  rmq_transport_cancel(transport, &c.request);
  finish();
}

/* The simulator's seed 1000000: one stands, one is being made (its host has a second address to
 * be tried), one waits for its name. */
static void closing_all_leaves_nothing_that_goes_on(void) {
  static const fake_rule rules[] = {
      {.name = "two.example", .found = "10.0.0.8 10.0.0.9"},
      {.name = "10.0.0.8:1", .delay_ms = -1},
      {.name = "mute.example", .delay_ms = -1},
      {.name = NULL},
  };
  start();
  fake_set_rules(fake, rules);
  static call calls[3];
  memset(calls, 0, sizeof calls);
  invoke_to("10.0.0.7:1", &calls[0], 60000);
  invoke_to("two.example:1", &calls[1], 60000);
  invoke_to("mute.example:1", &calls[2], 60000);
  fake_advance(fake, 1000);
  CHECK_INT(fake_opened(fake), 2);
  CHECK_INT(fake_alive(fake), 2);
  rmq_transport_close_all(transport);
  fake_settle(fake);
  CHECK_INT(n_ended, 3);
  for (int i = 0; i < 3; i++) CHECK_INT(calls[i].status, RMQ_ECLOSED);
  fake_advance(fake, 100000);
  CHECK_INT(fake_opened(fake), 2);
  CHECK_INT(fake_alive(fake), 0);
  CHECK_INT(fake_lookups(fake), 2);
  finish();
}

int main(void) {
  check_run("replies come in any order", replies_come_in_any_order);
  check_run("replies may come in any pieces", replies_may_come_in_any_pieces);
  check_run("unknown and second replies are counted", unknown_and_second_replies_are_counted);
  check_run("a cancelled request never ends", a_cancelled_request_never_ends);
  check_run("oneway ends when the kernel has it", oneway_ends_when_the_kernel_has_it);
  check_run("numbers wrap on a connection", numbers_wrap_on_a_connection);
  check_run("what cannot be sent waits unencoded", what_cannot_be_sent_waits_unencoded);
  check_run("what is encoded and late goes out", what_is_encoded_and_late_goes_out_all_the_same);
  check_run("a big frame goes through", a_big_frame_goes_through);
  check_run("a new connection is announced first", a_new_connection_is_announced_first);
  check_run("requests of the peer are answered", requests_of_the_peer_are_answered);
  check_run("a request goes back where one came from", a_request_goes_back_where_one_came_from);
  check_run("an idle connection is closed and made again",
            an_idle_connection_is_closed_and_made_again);
  check_run("traffic keeps a connection", traffic_keeps_a_connection);
  check_run("several addresses have their own connections",
            several_addresses_have_their_own_connections);
  check_run("names are resolved for each connection", names_are_resolved_for_each_connection);
  check_run("closing all", closing_all_leaves_nothing_that_goes_on);
  return check_end();
}

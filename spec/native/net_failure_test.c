#include "net/connection.h"
#include "net_calls.h"

/* How requests end when something goes wrong, and what callbacks may do meanwhile. */

enum { MANY = 100 };
static call calls[MANY];

static void start_many(int count) {
  start();
  memset(calls, 0, sizeof calls);
  for (int i = 0; i < count; i++) invoke(&calls[i]);
}

static bool has(const call *c, const char *part) {
  if (strstr(c->detail, part)) return true;
  printf("\"%s\" is not in \"%s\"\n", part, c->detail);
  return false;
}

/* --- no connection --- */

static void time_runs_out_while_connecting(void) {
  static const fake_rule rules[] = {{.name = BROKER, .delay_ms = -1}, {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {0};
  invoke_to(BROKER, &c, 500);
  fake_advance(fake, 499);
  CHECK_INT(n_ended, 0);
  fake_advance(fake, 1);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(!c.written);
  CHECK(has(&c, "no connection within 500 ms (still connecting)"));
  invoke_to(BROKER, &c, 10000); /* ends when connecting is given up */
  fake_advance(fake, 2500);
  CHECK_INT(c.dones, 2);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(has(&c, "no answer in time (" BROKER ")"));
  CHECK_INT(rmq_transport_stats_of(transport)->connect_failures, 1);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 0);
  finish();
}

static void refused_connections_pause_longer_and_longer(void) {
  static const fake_rule rules[] = {{.name = BROKER, .status = FAKE_REFUSED}, {0}};
  start();
  fake_set_rules(fake, rules);
  const int64_t pauses[] = {0, 0, 100, 200, 400, 800, 1000, 1000, 1000};
  for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
    call c = {0};
    rmq_mono begin = rmq_transport_now(transport);
    invoke_to(BROKER, &c, 20000);
    while (c.dones == 0) fake_advance(fake, 1);
    int64_t took = rmq_mono_diff_ms(rmq_transport_now(transport), begin);
    CHECK_INT(c.status, RMQ_ECONNECT);
    CHECK(strcmp(c.detail, "connection refused (" BROKER ")") == 0);
    if (took < pauses[i] * 8 / 10 || took > pauses[i] * 12 / 10 + 2) CHECK_INT(took, pauses[i]);
    CHECK_INT(fake_opened(fake), i + 1);
  }
  call c = {0};
  invoke_to(BROKER, &c, 50);
  fake_advance(fake, 50);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(has(&c, "(pausing before the next try); before: connection refused (" BROKER ")"));
  invoke_to(BROKER, &c, 20000);
  fake_set_rules(fake, NULL);
  fake_advance(fake, 6000);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(c.status, RMQ_OK);
  fake_end(fake_last(fake), RMQ_ECLOSED); /* a reply came: no pause after this */
  fake_settle(fake);
  invoke(&c);
  fake_settle(fake);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(c.dones, 3);
  fake_set_rules(fake, rules); /* and the count begins anew: two tries without a pause */
  fake_end(fake_last(fake), RMQ_ECLOSED);
  for (int i = 4; i <= 5; i++) {
    fake_settle(fake);
    invoke(&c);
    fake_settle(fake);
    CHECK_INT(c.dones, i);
  }
  finish();
}

static void a_server_that_only_hangs_up_is_a_failure(void) {
  start();
  for (int i = 0; i < 6; i++) {
    call c = {0};
    size_t before = fake_opened(fake);
    invoke_to(BROKER, &c, 20000);
    while (fake_opened(fake) == before) fake_advance(fake, 1);
    fake_settle(fake);
    fake_end(fake_last(fake), RMQ_ECLOSED);
    fake_settle(fake);
    CHECK_INT(c.status, RMQ_ECLOSED);
    CHECK(has(&c, "closed by the other side"));
  }
  call c = {0};
  invoke_to(BROKER, &c, 400);
  fake_advance(fake, 400);
  CHECK_INT(c.status, RMQ_ECONNECT);
  finish();
}

static void open_may_fail_at_once(void) {
  static const fake_rule rules[] = {{.name = BROKER, .status = FAKE_REFUSED, .at_once = 1}, {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {0};
  invoke(&c);
  CHECK_INT(n_ended, 0);
  fake_settle(fake);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(has(&c, "connection refused (" BROKER ")"));
  finish();
}

static void what_is_no_address_says_so(void) {
  const char *const bad[] = {
      "",        "broker",    ":10911",   "broker:", "broker:0",
      "b:65536", "b:1091 ",   "b:-1",     "[::1]",   "b:99999999999999999999",
      "::1",     "broker:1x", "http://b:"};
  start();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    call c = {0};
    if (strcmp(bad[i], "::1") == 0) continue; /* read as host ":" and port 1 */
    invoke_to(bad[i], &c, 3000);
    CHECK_INT(c.dones, 0);
    fake_settle(fake);
    CHECK_INT(c.status, RMQ_ECONNECT);
    CHECK(has(&c, "is no address"));
  }
  CHECK_INT(fake_opened(fake) + fake_lookups(fake), 0);
  finish();
}

static void names_may_be_unknown_or_never_answered(void) {
  static const fake_rule rules[] = {{.name = "silent", .delay_ms = -1}, {0}};
  start();
  fake_set_rules(fake, rules);
  static call c[4];
  memset(c, 0, sizeof c);
  invoke_to("nobody:1", &c[0], 10000);
  invoke_to("silent:1", &c[1], 10000);
  invoke_to("silent:1", &c[2], 1000);
  fake_settle(fake);
  CHECK_INT(c[0].status, RMQ_ELOOKUP);
  CHECK(has(&c[0], "no such host name (nobody)"));
  fake_advance(fake, 1000);
  CHECK_INT(c[2].status, RMQ_ECONNECT);
  CHECK(has(&c[2], "the host name is still being resolved"));
  fake_advance(fake, 2000);
  CHECK_INT(c[1].status, RMQ_ELOOKUP);
  CHECK(has(&c[1], "no answer about the host name within 3000 ms (silent)"));
  invoke_to("silent:1", &c[3], 10000);
  fake_settle(fake);
  rmq_transport_cancel(transport, &c[3].request);
  finish(); /* with a lookup under way */
}

static void all_addresses_share_the_time(void) {
  static const fake_rule rules[] = {{.name = "three", .found = "10.0.0.1 10.0.0.2 ::1"},
                                    {.name = "10.0.0.1:1", .status = FAKE_REFUSED, .at_once = 1},
                                    {.name = "10.0.0.2:1", .delay_ms = -1},
                                    {.name = "[::1]:1", .delay_ms = 100},
                                    {.name = "bad", .found = "10.0.0.1 10.0.0.2"},
                                    {0}};
  start();
  fake_set_rules(fake, rules);
  call c = {0}, d = {0};
  invoke_to("three:1", &c, 10000);
  fake_settle(fake);
  CHECK(strcmp(fake_last(fake)->address, "10.0.0.2:1") == 0);
  fake_advance(fake, 1499);
  CHECK(strcmp(fake_last(fake)->address, "10.0.0.2:1") == 0);
  fake_advance(fake, 1);
  CHECK(strcmp(fake_last(fake)->address, "[::1]:1") == 0);
  fake_advance(fake, 100);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(c.status, RMQ_OK);
  CHECK(strcmp(c.remote, "[::1]:1") == 0);
  invoke_to("bad:1", &d, 10000);
  fake_advance(fake, 3001);
  CHECK_INT(d.status, RMQ_ECONNECT);
  CHECK(has(&d, "connection refused (10.0.0.1:1); no answer in time (10.0.0.2:1)"));
  finish();
}

/* --- time --- */

static void a_silent_connection_is_closed_at_the_deadline(void) {
  start_many(0);
  invoke_to(BROKER, &calls[0], 1000);
  invoke_to(BROKER, &calls[1], 5000);
  calls[2].request.oneway = true;
  fake_settle(fake);
  fake_last(fake)->write_room = 0;
  invoke_to(BROKER, &calls[2], 5000);
  fake_advance(fake, 999);
  CHECK_INT(n_ended, 0);
  fake_advance(fake, 1);
  CHECK_INT(n_ended, 3);
  CHECK(ended[0] == &calls[0]);
  CHECK_INT(calls[0].status, RMQ_ETIMEOUT);
  CHECK(calls[0].written);
  CHECK(has(&calls[0], "no reply within 1000 ms, and nothing else came"));
  CHECK_INT(calls[1].status, RMQ_ECLOSED);
  CHECK(calls[1].written);
  CHECK_INT(calls[2].status, RMQ_ECLOSED);
  CHECK(!calls[2].written); /* not a byte of it was taken */
  fake_settle(fake);
  CHECK_INT(fake_alive(fake), 0);
  finish();
}

/* A server that takes connections and says nothing is asked less and less often too. */
static void a_silent_server_is_paused(void) {
  start_many(0);
  for (int i = 0; i < 3; i++) {
    invoke_to(BROKER, &calls[i], 1000);
    fake_settle(fake);
    CHECK_INT(fake_opened(fake), i < 2 ? i + 1 : 2); /* the third waits about 100 ms */
    fake_advance(fake, 1000);
    CHECK_INT(calls[i].status, RMQ_ETIMEOUT);
    CHECK_INT(fake_opened(fake), i + 1);
  }
  finish();
}

static void a_slow_request_does_not_close_a_living_connection(void) {
  start_many(0);
  invoke_to(BROKER, &calls[0], 1000);
  invoke_to(BROKER, &calls[1], 5000);
  fake_advance(fake, 10);
  rmq_socket *s = fake_last(fake);
  send_frame(s, 999, 1, RMQ_FLAG_ONEWAY, ""); /* any byte will do */
  fake_advance(fake, 990);
  CHECK_INT(calls[0].status, RMQ_ETIMEOUT);
  CHECK(has(&calls[0], "no reply within 1000 ms"));
  CHECK_INT(n_ended, 1);
  CHECK(fake_last(fake) == s);
  CHECK_INT(reply_all(s), 2);
  fake_settle(fake);
  CHECK_INT(calls[1].status, RMQ_OK);
  CHECK_INT(rmq_transport_stats_of(transport)->late_replies, 1);
  finish();
}

/* The simulator's seed 113000207: who is in a hurry must not cost the others their
 * connection. */
static void a_short_silence_closes_nothing(void) {
  start_many(0);
  invoke_to(BROKER, &calls[0], 3000);
  fake_advance(fake, 300);
  invoke_to(BROKER, &calls[1], 100);
  fake_advance(fake, 100);
  CHECK_INT(calls[1].status, RMQ_ETIMEOUT);
  CHECK_INT(n_ended, 1);
  /* 500 ms after the first question the silence is long enough. */
  invoke_to(BROKER, &calls[2], 99);
  fake_advance(fake, 99);
  CHECK_INT(n_ended, 2);
  CHECK_INT(fake_alive(fake), 1);
  invoke_to(BROKER, &calls[3], 1);
  fake_advance(fake, 1);
  CHECK_INT(n_ended, 4);
  CHECK_INT(calls[3].status, RMQ_ETIMEOUT);
  CHECK_INT(calls[0].status, RMQ_ECLOSED);
  fake_settle(fake);
  CHECK_INT(fake_alive(fake), 0);
  finish();
}

/* The simulator's seed 111001627: it has answered since what was sent was written, and takes no
 * more: only those that wait unencoded can notice that nobody is there any more. */
static void a_full_connection_that_is_dead_is_closed(void) {
  start_many(2);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  s->write_room = 10;
  calls[2].size = 300000;
  invoke_to(BROKER, &calls[2], 1000);
  fake_advance(fake, 1);
  CHECK_INT(reply_all(s), 2);
  fake_advance(fake, 999);
  CHECK_INT(n_ended, 3);
  CHECK_INT(calls[2].status, RMQ_ETIMEOUT);
  CHECK_INT(fake_alive(fake), 1);
  calls[3].size = 10;
  invoke_to(BROKER, &calls[3], 100);
  fake_advance(fake, 100);
  CHECK_INT(calls[3].status, RMQ_ETIMEOUT);
  CHECK(!calls[3].written);
  CHECK(has(&calls[3], "the connection took no more data for 100 ms, and nothing else came"));
  fake_settle(fake);
  CHECK_INT(fake_alive(fake), 0);
  invoke_to(BROKER, &calls[4], 1000);
  fake_settle(fake);
  CHECK(fake_last(fake) != NULL);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(calls[4].status, RMQ_OK);
  finish();
}

static void a_reply_that_is_there_wins_against_the_deadline(void) {
  const int64_t late_ms[] = {0, 1, 600, 100000};
  for (size_t i = 0; i < sizeof late_ms / sizeof late_ms[0]; i++) {
    start();
    call c = {0}, other = {0};
    invoke_to(BROKER, &c, 1000);
    invoke_to(BROKER, &other, 1000);
    fake_settle(fake);
    fake_advance(fake, 999);
    fake_last(fake)->read_most = 3;
    reply(fake_last(fake), c.request.opaque, "just so");
    fake_jump(fake, 1 + late_ms[i]);
    fake_settle(fake);
    CHECK_INT(c.status, RMQ_OK);
    CHECK_INT(c.dones, 1);
    CHECK_INT(other.status, RMQ_ETIMEOUT);
    CHECK(fake_last(fake) != NULL); /* it gave bytes */
    finish();
  }
}

static void what_is_late_before_it_is_sent_is_not_sent(void) {
  start_many(0);
  invoke_to(BROKER, &calls[0], 0);
  invoke_to(BROKER, &calls[1], 3000);
  fake_settle(fake);
  CHECK_INT(calls[0].status, RMQ_ECONNECT);
  reply_all(fake_last(fake));
  fake_settle(fake);
  invoke_to(BROKER, &calls[2], -5);
  invoke_to(BROKER, &calls[3], 3000); /* must not wait behind it for ever */
  fake_settle(fake);
  CHECK_INT(calls[2].status, RMQ_ETIMEOUT);
  CHECK(!calls[2].written);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 2);
  CHECK_INT(reply_all(fake_last(fake)), 1);
  fake_settle(fake);
  CHECK_INT(calls[3].status, RMQ_OK);
  invoke_to(BROKER, &calls[4], -5);
  rmq_io *io = fake_io_of(fake); /* the end of the turn may come before the timer */
  io->host->flush(io->owner);
  fake_settle(fake);
  CHECK_INT(calls[4].status, RMQ_ETIMEOUT);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 2);
  finish();
}

static void a_full_connection_times_out_unwritten(void) {
  start_many(1);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  reply_all(s);
  fake_settle(fake);
  s->write_room = 10;
  for (int i = 1; i < 10; i++) {
    calls[i].size = 100000;
    invoke_to(BROKER, &calls[i], i < 5 ? 20000 : 1000);
  }
  fake_advance(fake, 600);
  send_frame(s, 999, 1, RMQ_FLAG_ONEWAY, ""); /* it takes nothing, but it lives */
  fake_advance(fake, 400);
  for (int i = 5; i < 10; i++) {
    CHECK_INT(calls[i].status, RMQ_ETIMEOUT);
    CHECK(!calls[i].written);
    CHECK(has(&calls[i], "took no more data for 1000 ms"));
  }
  s->write_room = SIZE_MAX;
  fake_settle(fake);
  CHECK_INT(reply_all(s), 4);
  fake_settle(fake);
  CHECK_INT(rmq_transport_stats_of(transport)->requests, 5); /* what gave up was never encoded */
  for (int i = 1; i < 5; i++) CHECK_INT(calls[i].status, RMQ_OK);
  finish();
}

/* --- the connection ends --- */

static void a_closed_connection_fails_all_at_once(void) {
  const int codes[] = {RMQ_ECLOSED, FAKE_RESET};
  for (int i = 0; i < 2; i++) {
    start_many(MANY);
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    reply(s, calls[7].request.opaque, "the last");
    fake_end(s, codes[i]);
    fake_settle(fake);
    CHECK_INT(n_ended, MANY);
    CHECK(ended[0] == &calls[7] && ended[0]->status == RMQ_OK);
    for (int k = 1; k < MANY; k++) {
      CHECK(ended[k] == &calls[k <= 7 ? k - 1 : k]);
      CHECK_INT(ended[k]->status, RMQ_ECLOSED);
      CHECK(ended[k]->written);
      CHECK(has(ended[k], i ? "connection reset by the other side" : "closed by the other side"));
    }
    CHECK_INT(rmq_transport_stats_of(transport)->closed_by_peer, 1);
    CHECK_INT(rmq_transport_stats_of(transport)->connections, 0);
    finish();
  }
}

static void a_write_may_find_the_connection_broken(void) {
  start_many(1);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  s->end = FAKE_RESET;
  calls[1].size = 300000; /* is written at once, from inside invoke */
  invoke(&calls[1]);
  calls[2].request.oneway = true;
  invoke(&calls[2]);
  CHECK_INT(n_ended, 0);
  CHECK(!rmq_transport_is_connected(transport, BROKER));
  fake_settle(fake);
  CHECK_INT(n_ended, 3);
  CHECK(calls[0].written && !calls[1].written && !calls[2].written);
  for (int i = 0; i < 3; i++) CHECK_INT(calls[i].status, RMQ_ECLOSED);
  finish();
}

static void bytes_that_are_no_frames_end_it(void) {
  static const struct {
    const char *bytes;
    size_t len;
    const char *why;
  } cases[] = {
      {"HTTP/1.1 400 Bad Request\r\n", 26, "HTTP"},
      {"\x15\x03\x03\x00\x02\x02\x28", 7, "TLS"},
      {"\xff\xff\xff\xff\x00\x00\x00\x00", 8, ""},
      {"\x00\x00\x00\x04\x00\x00\x00\x00", 8, ""},
      {"\x00\x00\x00\x06\x00\x00\x00\x02{]", 10, "header"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    start_many(10);
    fake_settle(fake);
    fake_send(fake_last(fake), cases[i].bytes, cases[i].len);
    fake_settle(fake);
    CHECK_INT(n_ended, 10);
    for (int k = 0; k < 10; k++) {
      CHECK_INT(calls[k].status, RMQ_EPROTO);
      CHECK(calls[k].written);
      CHECK(has(&calls[k], cases[i].why));
    }
    invoke(&calls[0]);
    fake_settle(fake);
    CHECK_INT(fake_opened(fake), 2);
    reply_all(fake_last(fake));
    fake_settle(fake);
    CHECK_INT(calls[0].status, RMQ_OK);
    finish();
  }
}

static void a_peer_that_takes_no_answers_is_left(void) {
  start_many(1);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  s->write_room = 0;
  rmq_buf flood = {0};
  for (int i = 0; i < 1000; i++) build(&flood, 999, i, 0, "");
  for (int i = 0; i < 1000 && n_ended == 0; i++) {
    fake_send(s, rmq_buf_head(&flood), rmq_buf_len(&flood));
    fake_settle(fake);
  }
  CHECK_INT(calls[0].status, RMQ_EPROTO);
  CHECK(has(&calls[0], "takes no answers"));
  rmq_buf_free(&flood);
  finish();
}

static void close_ends_what_is_pending(void) {
  static const fake_rule rules[] = {
      {.name = "10.0.0.2:1", .delay_ms = -1}, {.name = "silent", .delay_ms = -1}, {0}};
  start_many(2);
  fake_set_rules(fake, rules);
  fake_settle(fake);
  invoke_to("10.0.0.2:1", &calls[2], 3000);
  invoke_to("silent:1", &calls[3], 3000);
  fake_settle(fake);
  rmq_transport_close(transport, "10.0.0.3:1"); /* nobody there */
  rmq_transport_close(transport, BROKER);
  rmq_transport_close(transport, BROKER);
  rmq_transport_close(transport, "10.0.0.2:1");
  rmq_transport_close(transport, "silent:1");
  CHECK_INT(n_ended, 0);
  invoke(&calls[4]); /* goes by a new connection */
  fake_settle(fake);
  CHECK_INT(n_ended, 4);
  for (int i = 0; i < 4; i++) {
    CHECK_INT(calls[i].status, RMQ_ECLOSED);
    CHECK_INT(calls[i].written, i < 2);
    CHECK(has(&calls[i], "closed by this side"));
  }
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(calls[4].status, RMQ_OK);
  finish();
}

/* --- callbacks --- */

static void again(call *c) {
  if (c->dones < 3) invoke(c);
}

static void done_may_invoke_anew(void) {
  start_many(MANY);
  for (int i = 0; i < MANY; i++) calls[i].then = again;
  fake_settle(fake);
  fake_end(fake_last(fake), FAKE_RESET);
  fake_settle(fake);
  CHECK_INT(n_ended, MANY);
  CHECK_INT(rmq_transport_stats_of(transport)->pending, MANY);
  CHECK_INT(reply_all(fake_last(fake)), MANY);
  fake_settle(fake);
  CHECK_INT(n_ended, 2 * MANY);
  CHECK_INT(reply_all(fake_last(fake)), MANY);
  fake_settle(fake);
  CHECK_INT(n_ended, 3 * MANY);
  CHECK_INT(fake_opened(fake), 2);
  finish();
}

static void cancel_the_others(call *c) {
  for (int i = 0; i < MANY; i++) {
    if (&calls[i] != c) rmq_transport_cancel(transport, &calls[i].request);
  }
}

static void done_may_cancel_the_others(void) {
  for (int how = 0; how < 4; how++) {
    start_many(MANY);
    for (int i = 0; i < MANY; i++) calls[i].then = cancel_the_others;
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    if (how == 0) fake_end(s, RMQ_ECLOSED);
    if (how == 1) reply_all(s);
    if (how == 2) fake_advance(fake, 3000);
    if (how == 3) rmq_transport_close(transport, BROKER);
    fake_settle(fake);
    CHECK_INT(n_ended, 1);
    CHECK_INT(rmq_transport_stats_of(transport)->pending, 0);
    finish();
  }
}

static void free_all(call *c) {
  (void)c;
  rmq_transport_free(transport);
  transport = NULL;
  memset(calls, 0xee, sizeof calls); /* the transport must not look at them any more */
}

static void done_may_free_the_transport(void) {
  static const fake_rule rules[] = {{.name = "10.0.0.9:1", .status = FAKE_REFUSED, .delay_ms = 10},
                                    {0}};
  for (int how = 0; how < 7; how++) {
    start_many(MANY);
    fake_set_rules(fake, rules);
    for (int i = 0; i < MANY; i++) calls[i].then = free_all;
    fake_settle(fake);
    rmq_socket *s = fake_last(fake);
    if (how == 0) fake_end(s, RMQ_ECLOSED);
    if (how == 1) reply_all(s);
    if (how == 2) fake_advance(fake, 3000);
    if (how == 3) rmq_transport_close(transport, BROKER);
    if (how == 4) fake_send(s, "HTTP/1.1 ", 9);
    call other = {.then = free_all};
    if (how == 5) {
      invoke_to("10.0.0.9:1", &other, 3000);
      fake_advance(fake, 10);
    }
    if (how == 6) {
      other.request.oneway = true;
      invoke(&other);
    }
    fake_settle(fake);
    CHECK_INT(n_ended, 1);
    CHECK(transport == NULL);
    finish();
  }
}

static void close_it(call *c) {
  (void)c;
  rmq_transport_close(transport, BROKER);
}

static void done_may_close_the_connection(void) {
  start_many(MANY);
  for (int i = 0; i < MANY; i++) calls[i].then = close_it;
  fake_settle(fake);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK_INT(n_ended, MANY);
  CHECK_INT(calls[0].status, RMQ_OK);
  for (int i = 1; i < MANY; i++) CHECK_INT(calls[i].status, RMQ_ECLOSED);
  finish();
  start_many(MANY); /* what is doomed already keeps its end */
  for (int i = 0; i < MANY; i++) calls[i].then = close_it;
  fake_settle(fake);
  fake_send(fake_last(fake), "HTTP/1.1 ", 9);
  fake_settle(fake);
  CHECK_INT(n_ended, MANY);
  for (int i = 0; i < MANY; i++) CHECK_INT(calls[i].status, RMQ_EPROTO);
  finish();
}

/* Neither half a frame of ours nor half a frame of theirs reaches the next connection. */
static void halves_of_frames_are_dropped(void) {
  start_many(2);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  rmq_buf half = {0};
  build(&half, RMQ_SUCCESS, 0, RMQ_FLAG_RESPONSE, "half");
  fake_send(s, rmq_buf_head(&half), rmq_buf_len(&half) - 1);
  rmq_buf_free(&half);
  s->write_room = 5;
  invoke(&calls[2]);
  fake_settle(fake);
  fake_end(s, RMQ_ECLOSED);
  fake_settle(fake);
  CHECK_INT(n_ended, 3);
  CHECK(calls[2].written);
  for (int i = 0; i < 3; i++) invoke(&calls[i]);
  fake_settle(fake);
  CHECK_INT(reply_all(fake_last(fake)), 3);
  fake_settle(fake);
  for (int i = 0; i < 3; i++) CHECK_INT(calls[i].status, RMQ_OK);
  finish();
}

static rmq_timer outer;
static void free_from_timer(rmq_timer *timer) {
  (void)timer;
  free_all(NULL);
}

static void a_timer_may_free_the_transport(void) {
  for (int connected = 0; connected < 2; connected++) {
    start_many(connected ? 3 : 0);
    rmq_timer_init(&outer, free_from_timer);
    rmq_timer second;
    rmq_timer_init(&second, free_from_timer);
    rmq_transport_timer(transport, &outer, rmq_mono_add_ms(rmq_transport_now(transport), 10));
    rmq_transport_timer(transport, &second, rmq_mono_add_ms(rmq_transport_now(transport), 10));
    fake_advance(fake, 10);
    CHECK(transport == NULL);
    CHECK(!rmq_timer_is_set(&second));
    finish();
  }
}

static void free_when_connected(void *owner, const char *addr) {
  (void)owner;
  (void)addr;
  free_all(NULL);
}

static void connected_may_free_the_transport(void) {
  config.connected = free_when_connected;
  start_many(3);
  fake_settle(fake);
  CHECK(transport == NULL);
  CHECK_INT(n_ended, 0);
  finish();
}

static void everything_may_be_under_way_at_the_end(void) {
  static const fake_rule rules[] = {{.name = "10.0.0.1:1", .delay_ms = -1},
                                    {.name = "10.0.0.2:1", .status = FAKE_REFUSED},
                                    {.name = "silent", .delay_ms = -1},
                                    {0}};
  start();
  fake_set_rules(fake, rules);
  memset(calls, 0, sizeof calls);
  invoke_to("10.0.0.1:1", &calls[0], 3000);
  invoke_to("silent:1", &calls[1], 3000);
  invoke_to(BROKER, &calls[2], 3000);
  for (int i = 3; i < 6; i++) {
    invoke_to("10.0.0.2:1", &calls[i], 3000);
    fake_settle(fake);
  }
  invoke_to("10.0.0.4:1", &calls[6], 3000);
  CHECK_INT(calls[5].dones, 0); /* it pauses */
  rmq_transport_free(transport);
  transport = NULL;
  CHECK_INT(n_ended, 2);
  fake_advance(fake, 10000);
  CHECK_INT(n_ended, 2);
  finish();
}

/* --- chance --- */

static uint64_t chance;
static uint32_t pick(uint32_t below) {
  chance = chance * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(chance >> 33) % below;
}

static int expected_dones[MANY];
static bool in_flight[MANY];

static void random_step(void);

static void note_end(call *c) {
  int i = (int)(c - calls);
  CHECK(in_flight[i]);
  in_flight[i] = false;
  if (pick(3) == 0) random_step();
}

static void random_invoke(void) {
  static const char *const addrs[] = {BROKER, "10.0.0.1:1", "10.0.0.2:1", "two:1", "nobody:1"};
  int i = (int)pick(MANY);
  if (in_flight[i]) return;
  in_flight[i] = true;
  expected_dones[i]++;
  calls[i].then = note_end;
  calls[i].size = pick(8) ? pick(100) : pick(90000);
  calls[i].request.oneway = pick(5) == 0;
  calls[i].request.hurried = pick(3) == 0;
  invoke_to(addrs[pick(5)], &calls[i], (int64_t)pick(4000));
}

static void random_step(void) {
  int i = (int)pick(MANY);
  switch (pick(12)) {
    case 0:
      rmq_transport_cancel(transport, &calls[i].request);
      if (in_flight[i]) expected_dones[i]--;
      in_flight[i] = false;
      break;
    case 1:
      if (pick(5) == 0) rmq_transport_close(transport, pick(2) ? BROKER : "two:1");
      if (pick(5) == 0) rmq_transport_retire(transport, pick(2) ? BROKER : "two:1");
      break;
    default:
      random_invoke();
  }
}

static void play_peer(void) {
  rmq_socket *s = fake_last(fake);
  if (!s) return;
  switch (pick(16)) {
    case 0:
      fake_end(s, pick(2) ? RMQ_ECLOSED : FAKE_RESET);
      break;
    case 1:
      if (pick(4) == 0) fake_send(s, "\xff\xff\xff\xff garbage", 12);
      break;
    case 2:
      s->write_room = pick(100000);
      break;
    case 3:
      s->read_most = 1 + pick(50);
      break;
    case 4:
      send_frame(s, 999, (int32_t)pick(100), pick(2) ? RMQ_FLAG_ONEWAY : 0, "?");
      break;
    case 5:
      send_frame(s, RMQ_GO_AWAY, (int32_t)pick(30), RMQ_FLAG_RESPONSE, "go away");
      break;
    default:
      reply_all(s);
  }
}

static void every_request_ends_once_whatever_happens(void) {
  static const fake_rule rules[] = {{.name = "10.0.0.2:1", .status = FAKE_REFUSED, .delay_ms = 3},
                                    {.name = "10.0.0.3:1", .delay_ms = -1},
                                    {.name = "10.0.0.1:1", .delay_ms = 20},
                                    {.name = "two", .found = "10.0.0.3 10.0.0.4", .delay_ms = 5},
                                    {0}};
  for (uint64_t seed = 1; seed <= 150; seed++) {
    chance = seed;
    start();
    fake_set_rules(fake, rules);
    memset(calls, 0, sizeof calls);
    memset(in_flight, 0, sizeof in_flight);
    memset(expected_dones, 0, sizeof expected_dones);
    for (int step = 0; step < 500; step++) {
      for (uint32_t k = pick(6); k > 0; k--) random_step();
      if (pick(2)) play_peer();
      if (pick(40) == 0) fake_jump(fake, pick(5000));
      if (pick(3)) fake_settle(fake);
      if (pick(3) == 0) fake_advance(fake, pick(60));
    }
    while (rmq_transport_stats_of(transport)->pending > 0) fake_advance(fake, 1000);
    for (int i = 0; i < MANY; i++) {
      if (calls[i].dones != expected_dones[i]) {
        printf("seed %llu: ", (unsigned long long)seed);
        CHECK_INT(calls[i].dones, expected_dones[i]);
      }
    }
    finish();
  }
}

int main(void) {
  check_run("time runs out while connecting", time_runs_out_while_connecting);
  check_run("refused connections pause longer and longer",
            refused_connections_pause_longer_and_longer);
  check_run("a server that only hangs up is a failure", a_server_that_only_hangs_up_is_a_failure);
  check_run("open may fail at once", open_may_fail_at_once);
  check_run("what is no address says so", what_is_no_address_says_so);
  check_run("names may be unknown or never answered", names_may_be_unknown_or_never_answered);
  check_run("all addresses share the time", all_addresses_share_the_time);
  check_run("a silent connection is closed at the deadline",
            a_silent_connection_is_closed_at_the_deadline);
  check_run("a silent server is paused", a_silent_server_is_paused);
  check_run("a short silence", a_short_silence_closes_nothing);
  check_run("a full and dead connection", a_full_connection_that_is_dead_is_closed);
  check_run("a slow request does not close a living connection",
            a_slow_request_does_not_close_a_living_connection);
  check_run("a reply that is there wins against the deadline",
            a_reply_that_is_there_wins_against_the_deadline);
  check_run("what is late before it is sent is not sent",
            what_is_late_before_it_is_sent_is_not_sent);
  check_run("a full connection times out unwritten", a_full_connection_times_out_unwritten);
  check_run("a closed connection fails all at once", a_closed_connection_fails_all_at_once);
  check_run("a write may find the connection broken", a_write_may_find_the_connection_broken);
  check_run("bytes that are no frames end it", bytes_that_are_no_frames_end_it);
  check_run("a peer that takes no answers is left", a_peer_that_takes_no_answers_is_left);
  check_run("close ends what is pending", close_ends_what_is_pending);
  check_run("done may invoke anew", done_may_invoke_anew);
  check_run("done may cancel the others", done_may_cancel_the_others);
  check_run("done may free the transport", done_may_free_the_transport);
  check_run("done may close the connection", done_may_close_the_connection);
  check_run("halves of frames are dropped", halves_of_frames_are_dropped);
  check_run("a timer may free the transport", a_timer_may_free_the_transport);
  check_run("connected may free the transport", connected_may_free_the_transport);
  check_run("everything may be under way at the end", everything_may_be_under_way_at_the_end);
  check_run("every request ends once, whatever happens", every_request_ends_once_whatever_happens);
  return check_end();
}

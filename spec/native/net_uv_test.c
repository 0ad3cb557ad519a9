#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "net/transport.h"
#include "net/uv/uv_io.h"
#include "wire/codes.h"
#include "wire/frame.h"

/* rmq_io on libuv against a server in the same loop, over loopback. */

static uv_loop_t loop;
static uv_timer_t watchdog; /* also keeps the loop alive while a test waits for something */
static bool too_long;

static void on_watchdog(uv_timer_t *timer) {
  (void)timer;
  too_long = true;
}

/* Who makes `holds` true stops the loop, which would wait for something else otherwise. */
static void run_until(bool (*holds)(void)) {
  uv_timer_start(&watchdog, on_watchdog, 20000, 0);
  too_long = false;
  while (!holds() && !too_long) uv_run(&loop, UV_RUN_ONCE);
  uv_timer_stop(&watchdog);
  CHECK(!too_long);
}

/* --- the server --- */

typedef struct peer {
  uv_tcp_t tcp;
  rmq_buf in;
} peer;

static uv_tcp_t server;
static int server_port;
static peer *last_peer;
static size_t served;
static bool hang_up; /* on the next request, with a reset */

static void on_peer_closed(uv_handle_t *handle) {
  peer *p = handle->data;
  if (last_peer == p) last_peer = NULL;
  rmq_buf_free(&p->in);
  free(p);
}

static void close_peer(peer *p) {
  if (!uv_is_closing((uv_handle_t *)&p->tcp)) uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  peer *p = handle->data;
  *buf = uv_buf_init((char *)rmq_buf_reserve(&p->in, size), (unsigned)size);
}

static void on_written(uv_write_t *request, int status) {
  (void)status;
  free(request->data);
  free(request);
}

static void answer(peer *p, int32_t opaque) {
  rmq_buf out = {0};
  rmq_command command = rmq_command_request(RMQ_SUCCESS, opaque, RMQ_FLAG_RESPONSE);
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
  rmq_frame_end(&writer, rmq_slice_text("pong"));
  uv_write_t *request = calloc(1, sizeof *request);
  request->data = out.data;
  uv_buf_t buf = uv_buf_init((char *)out.data, (unsigned)rmq_buf_len(&out));
  uv_write(request, (uv_stream_t *)&p->tcp, &buf, 1, on_written);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
  (void)buf;
  peer *p = stream->data;
  static rmq_header header;
  rmq_buf scratch = {0};
  rmq_frame frame;
  if (got < 0) {
    close_peer(p);
    return;
  }
  rmq_buf_commit(&p->in, (size_t)got);
  while (rmq_frame_split(rmq_buf_slice(&p->in), &frame, NULL) == 1) {
    rmq_header_decode(frame.serialize, frame.header, &scratch, &header);
    if (hang_up) {
      uv_tcp_close_reset(&p->tcp, on_peer_closed);
      break;
    }
    if (!(header.flag & RMQ_FLAG_ONEWAY)) answer(p, header.opaque);
    served++;
    rmq_buf_consume(&p->in, frame.size);
  }
  rmq_buf_free(&scratch);
}

static void on_connection(uv_stream_t *stream, int status) {
  CHECK_INT(status, 0);
  peer *p = calloc(1, sizeof *p);
  uv_tcp_init(&loop, &p->tcp);
  p->tcp.data = p;
  CHECK_INT(uv_accept(stream, (uv_stream_t *)&p->tcp), 0);
  uv_read_start((uv_stream_t *)&p->tcp, on_alloc, on_read);
  last_peer = p;
}

static void start_server(void) {
  struct sockaddr_in addr;
  int len = sizeof addr;
  uv_tcp_init(&loop, &server);
  uv_ip4_addr("127.0.0.1", 0, &addr);
  CHECK_INT(uv_tcp_bind(&server, (const struct sockaddr *)&addr, 0), 0);
  CHECK_INT(uv_listen((uv_stream_t *)&server, 16, on_connection), 0);
  uv_tcp_getsockname(&server, (struct sockaddr *)&addr, &len);
  server_port = ntohs(addr.sin_port);
}

/* --- the client --- */

typedef struct call {
  rmq_request request; /* first: the callbacks cast back */
  size_t size;
  int dones;
  int status;
  char detail[512];
} call;

static rmq_io *io;
static rmq_transport *transport;
static char addr[64];
static size_t n_ended, n_expected;
static uv_prepare_t others_prepare; /* started before the io's, so it runs after it */

static bool all_ended(void) { return n_ended >= n_expected; }

static void encode_call(rmq_request *request, rmq_buf *out, int32_t opaque) {
  call *c = (call *)request;
  char *body = calloc(1, c->size + 1);
  rmq_command command =
      rmq_command_request(RMQ_SEND_MESSAGE, opaque, request->oneway ? RMQ_FLAG_ONEWAY : 0);
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, RMQ_SERIALIZE_ROCKETMQ, &command);
  rmq_frame_end(&writer, rmq_slice_make(body, c->size));
  free(body);
}

static void end_call(rmq_request *request, const rmq_outcome *outcome) {
  call *c = (call *)request;
  c->dones++;
  c->status = outcome->status;
  if (outcome->status == RMQ_OK && !request->oneway) CHECK(rmq_slice_is(outcome->body, "pong"));
  snprintf(c->detail, sizeof c->detail, "%s", outcome->detail);
  if (++n_ended == n_expected) uv_stop(&loop);
}

static void invoke(const char *to, call *c) {
  c->request.encode = encode_call;
  c->request.done = end_call;
  c->request.deadline = rmq_mono_add_ms(rmq_transport_now(transport), 15000);
  rmq_transport_invoke(transport, to, &c->request);
  n_expected++;
}

static void start_with(uv_prepare_cb others) {
  uv_loop_init(&loop);
  uv_timer_init(&loop, &watchdog);
  n_ended = n_expected = served = 0;
  hang_up = false;
  uv_prepare_init(&loop, &others_prepare);
  if (others) uv_prepare_start(&others_prepare, others);
  start_server();
  snprintf(addr, sizeof addr, "127.0.0.1:%d", server_port);
  io = rmq_uv_io_new(&loop);
  CHECK(io != NULL);
  rmq_transport_config config = {.io = io, .connect_timeout_ms = 10000, .idle_timeout_ms = 120000};
  transport = rmq_transport_new(&config);
}

static void start(void) { start_with(NULL); }

static void finish(void) {
  CHECK_INT(rmq_transport_stats_of(transport)->pending, 0);
  rmq_transport_free(transport);
  rmq_uv_io_free(io);
  if (last_peer) close_peer(last_peer);
  uv_close((uv_handle_t *)&server, NULL);
  uv_close((uv_handle_t *)&others_prepare, NULL);
  uv_close((uv_handle_t *)&watchdog, NULL);
  CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
  CHECK_INT(uv_loop_close(&loop), 0); /* no handle is left */
}

static bool has_ipv6(void) {
  struct sockaddr_in6 here;
  uv_ip6_addr("::1", 0, &here);
  int fd = socket(AF_INET6, SOCK_STREAM, 0);
  bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&here, sizeof here) == 0;
  if (fd >= 0) close(fd);
  return has;
}

/* The same server at an IPv6 address; a machine without any has nothing to try here. */
static void requests_go_to_ipv6_addresses(void) {
  if (!has_ipv6()) return;
  start();
  struct sockaddr_in6 here;
  int len = sizeof here;
  uv_tcp_t server6;
  uv_tcp_init(&loop, &server6);
  uv_ip6_addr("::1", 0, &here);
  CHECK_INT(uv_tcp_bind(&server6, (const struct sockaddr *)&here, 0), 0);
  CHECK_INT(uv_listen((uv_stream_t *)&server6, 16, on_connection), 0);
  uv_tcp_getsockname(&server6, (struct sockaddr *)&here, &len);
  snprintf(addr, sizeof addr, "[::1]:%d", ntohs(here.sin6_port));
  call c = {.size = 10};
  invoke(addr, &c);
  run_until(all_ended);
  CHECK_INT(c.status, RMQ_OK);
  CHECK_INT(served, 1);
  uv_close((uv_handle_t *)&server6, NULL);
  finish();
}

static void requests_are_answered(void) {
  enum { N = 2000 };
  static call calls[N];
  memset(calls, 0, sizeof calls);
  start();
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N; i++) {
      calls[i].size = (size_t)i % 200;
      calls[i].request.oneway = i % 10 == 9;
      invoke(addr, &calls[i]);
    }
    run_until(all_ended);
  }
  for (int i = 0; i < N; i++) {
    CHECK_INT(calls[i].status, RMQ_OK);
    CHECK_INT(calls[i].dones, 3);
  }
  const rmq_transport_stats *stats = rmq_transport_stats_of(transport);
  CHECK_INT(stats->connects, 1);
  CHECK(stats->writes < 60); /* gathered */
  finish();
}

static void more_than_the_kernel_holds_goes_through(void) {
  static call calls[5];
  memset(calls, 0, sizeof calls);
  start();
  for (int i = 0; i < 5; i++) {
    calls[i].size = 4 * 1024 * 1024;
    invoke(addr, &calls[i]);
  }
  run_until(all_ended);
  for (int i = 0; i < 5; i++) CHECK_INT(calls[i].status, RMQ_OK);
  CHECK(rmq_transport_stats_of(transport)->writes > 5);
  finish();
}

static void names_are_looked_up(void) {
  call c = {0}, d = {0};
  char to[400], longest[300];
  start();
  snprintf(to, sizeof to, "localhost:%d", server_port); /* perhaps ::1 first, where nobody is */
  invoke(to, &c);
  run_until(all_ended);
  CHECK_INT(c.status, RMQ_OK);
  memset(longest, 'x', sizeof longest);
  snprintf(to, sizeof to, "%.*s:1", (int)sizeof longest, longest); /* cannot even be started */
  invoke(to, &d);
  CHECK_INT(d.dones, 0);
  run_until(all_ended);
  CHECK_INT(d.status, RMQ_ELOOKUP);
  finish();
}

static void failures_have_words(void) {
  call c = {0}, d = {0};
  start();
  int fd =
      socket(AF_INET, SOCK_STREAM, 0); /* bound and not listening: refused, and nobody else's */
  struct sockaddr_in bound = {.sin_family = AF_INET};
  socklen_t len = sizeof bound;
  bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_INT(bind(fd, (const struct sockaddr *)&bound, sizeof bound), 0);
  getsockname(fd, (struct sockaddr *)&bound, &len);
  char to[64], expected[128];
  snprintf(to, sizeof to, "127.0.0.1:%d", ntohs(bound.sin_port));
  snprintf(expected, sizeof expected, "connection refused (%s)", to);
  invoke(to, &c);
  run_until(all_ended);
  CHECK_INT(c.status, RMQ_ECONNECT);
  CHECK(strcmp(c.detail, expected) == 0);
  close(fd);
  hang_up = true;
  invoke(addr, &d);
  run_until(all_ended);
  CHECK_INT(d.status, RMQ_ECLOSED);
  CHECK(strcmp(d.detail, "connection reset by the other side") == 0);
  CHECK(strcmp(io->calls->text(io, -99999), "") != 0);
  finish();
}

static void nothing_keeps_the_loop(void) {
  call c = {0};
  start();
  uv_unref((uv_handle_t *)&server);
  invoke(addr, &c); /* its timer, its socket and its flush do not count */
  CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
  CHECK_INT(c.dones, 0);
  rmq_transport_cancel(transport, &c.request);
  uv_ref((uv_handle_t *)&server);
  finish();
}

/* --- the table itself --- */

static rmq_mono asked, woken;
static int flushes;

static void on_wake(void *owner) {
  (void)owner;
  woken = io->calls->now(io);
  uint64_t start = uv_hrtime();
  while (uv_hrtime() - start < 20000000) continue; /* a script that computes */
  CHECK_INT(io->calls->now(io).us, woken.us);
  rmq_uv_io_refresh(io);
  CHECK(io->calls->now(io).us > woken.us);
  uv_stop(&loop);
}

static void on_flush(void *owner) {
  (void)owner;
  flushes++;
  if (flushes < 5) {
    io->calls->end_of_turn(io);
  } else {
    uv_stop(&loop);
  }
}

static const rmq_io_host test_host = {on_wake, on_flush};
static const rmq_io_host *saved_host;
static void *saved_owner;

static void take_over(uv_prepare_cb others) {
  start_with(others);
  saved_host = io->host;
  saved_owner = io->owner;
  io->host = &test_host;
}

static void give_back(void) {
  io->host = saved_host;
  io->owner = saved_owner;
  finish();
}

static bool was_woken(void) { return woken.us != 0; }

static void wake_is_never_early(void) {
  take_over(NULL);
  const int64_t distances[] = {1, 999, 1000, 1001, 5500, -1000};
  for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
    woken.us = 0;
    asked.us = io->calls->now(io).us + distances[i];
    io->calls->wake_at(io, rmq_mono_add_ms(asked, 60000));
    io->calls->wake_at(io, asked);
    run_until(was_woken);
    CHECK(woken.us >= asked.us);
  }
  woken.us = 0;
  io->calls->wake_at(io, io->calls->now(io));
  io->calls->wake_at(io, RMQ_NEVER);
  for (int i = 0; i < 3; i++) uv_run(&loop, UV_RUN_NOWAIT);
  CHECK_INT(woken.us, 0);
  give_back();
}

static bool flushed(void) { return flushes >= 5; }

static void flush_comes_before_the_loop_waits(void) {
  take_over(NULL);
  flushes = 0;
  io->calls->end_of_turn(io);
  CHECK_INT(flushes, 0);
  run_until(flushed); /* each asks for the next; the watchdog would end a wait */
  give_back();
}

static void ask_late(uv_prepare_t *prepare) {
  io->calls->end_of_turn(io);
  uv_prepare_stop(prepare);
}

/* A prepare callback of somebody else may run after ours has. */
static void flush_comes_also_when_asked_for_late(void) {
  flushes = 4;
  take_over(ask_late);
  run_until(flushed);
  CHECK_INT(flushes, 5);
  give_back();
}

static void the_clock_moves_outside_of_events(void) {
  take_over(NULL);
  rmq_mono before = io->calls->now(io);
  while (io->calls->now(io).us == before.us) continue;
  CHECK(io->calls->now(io).us > before.us);
  CHECK(io->calls->wall(io).ms > 1600000000000);
  give_back();
}

static void a_fork_is_somebody_else(void) {
  take_over(NULL);
  rmq_identity before = *io->calls->identity(io);
  CHECK_INT(before.pid, getpid());
  CHECK(before.ip_len == 4 || before.ip_len == 16);
  uint64_t number = io->calls->random(io);
  rmq_uv_io_forked(io);
  CHECK(io->calls->identity(io)->tag != before.tag);
  CHECK(io->calls->random(io) != number);
  give_back();
}

int main(void) {
  check_run("requests are answered", requests_are_answered);
  check_run("requests go to IPv6 addresses", requests_go_to_ipv6_addresses);
  check_run("more than the kernel holds goes through", more_than_the_kernel_holds_goes_through);
  check_run("names are looked up", names_are_looked_up);
  check_run("failures have words", failures_have_words);
  check_run("nothing keeps the loop", nothing_keeps_the_loop);
  check_run("wake is never early", wake_is_never_early);
  check_run("flush comes before the loop waits", flush_comes_before_the_loop_waits);
  check_run("flush comes also when asked for late", flush_comes_also_when_asked_for_late);
  check_run("the clock moves outside of events", the_clock_moves_outside_of_events);
  check_run("a fork is somebody else", a_fork_is_somebody_else);
  return check_end();
}

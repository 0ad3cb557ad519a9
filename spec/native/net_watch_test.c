/* Who watches a transport: what is shown, what is added, and what may happen meanwhile. */
#include "base/error.h"
#include "net_calls.h"

static int shown, answered;
static rmq_header seen; /* of the request that was shown last; its slices are gone */
static size_t seen_ext, seen_body;
static void (*meanwhile)(const rmq_watched_request *request);

static void before_request(void *owner, const rmq_watched_request *request) {
  CHECK(owner == &shown && strcmp(request->addr, BROKER) == 0);
  shown++;
  seen = *request->header;
  seen_ext = request->header->n_ext;
  seen_body = request->body.len;
  if (meanwhile) meanwhile(request);
}

static void after_response(void *owner, const rmq_watched_response *response) {
  CHECK(owner == &shown && strcmp(response->addr, BROKER) == 0);
  CHECK_INT(response->request_code, RMQ_SEND_MESSAGE);
  CHECK_INT(response->header->code, RMQ_SUCCESS);
  CHECK_INT(response->elapsed_us, 7000);
  CHECK(rmq_slice_is(response->body, "ok"));
  answered++;
}

static void begin(void (*what)(const rmq_watched_request *request)) {
  start();
  shown = answered = 0;
  meanwhile = what;
  rmq_transport_set_watch(transport,
                          &(rmq_transport_watch){before_request, after_response, &shown});
}

/* The bytes of the first frame that was sent. */
static rmq_frame first_frame(void) {
  rmq_frame frame = {0};
  CHECK_INT(rmq_frame_split(rmq_buf_slice(&fake_last(fake)->sent), &frame, NULL), 1);
  return frame;
}

static rmq_slice text(const char *what) { return rmq_slice_text(what); }

static void both_are_told(void) {
  begin(NULL);
  call c = {.size = 5};
  invoke(&c);
  fake_settle(fake);
  CHECK(shown == 1 && seen.code == RMQ_SEND_MESSAGE && seen.opaque == c.request.opaque);
  CHECK_INT(seen_body, 5);
  fake_advance(fake, 7);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK(answered == 1 && c.dones == 1);
  finish();
}

static void add_two(const rmq_watched_request *request) {
  CHECK_INT(rmq_watched_add(request, text("one"), text("1")), 0);
  CHECK_INT(rmq_watched_add(request, text("two"), text("")), 0);
  CHECK_INT(rmq_watched_add(request, text("one"), text("1")), 0);
  CHECK_INT(rmq_watched_add(request, text("one"), text("2")), RMQ_EINVAL);
  CHECK_INT(rmq_watched_add(request, text(""), text("2")), RMQ_EINVAL);
}

static void what_is_added_is_sent(void) {
  begin(add_two);
  static call calls[3];
  memset(calls, 0, sizeof calls);
  for (int i = 0; i < 3; i++) {
    calls[i].size = (size_t)i;
    invoke(&calls[i]);
  }
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  for (int i = 0; i < 3; i++) {
    rmq_frame frame = first_frame();
    rmq_buf scratch = {0};
    rmq_header header;
    CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
    CHECK_INT(header.n_ext, 2);
    CHECK(rmq_slice_is(rmq_header_field(&header, "one"), "1"));
    CHECK(rmq_header_field(&header, "two").ptr != NULL);
    CHECK_INT(header.opaque, calls[i].request.opaque);
    CHECK_INT(frame.body.len, i);
    rmq_buf_consume(&s->sent, frame.size);
    rmq_buf_free(&scratch);
    reply(s, calls[i].request.opaque, "ok");
  }
  CHECK_INT(rmq_buf_len(&s->sent), 0);
  meanwhile = NULL;
  rmq_transport_set_watch(transport, &(rmq_transport_watch){.owner = NULL});
  fake_settle(fake);
  for (int i = 0; i < 3; i++) CHECK_INT(calls[i].dones, 1);
  CHECK_INT(answered, 0);
  finish();
}

/* More than a header or a frame holds. */
static void add_too_much(const rmq_watched_request *request) {
  static char big[65530];
  char name[16];
  memset(big, 'v', sizeof big);
  CHECK_INT(rmq_watched_add(request, text("n"), rmq_slice_make(big, sizeof big)), 0);
  CHECK_INT(rmq_watched_add(request, text("m"), rmq_slice_make(big, 100)), RMQ_ELIMIT);
  request->added->end = request->added->start;
  for (int i = 0; i < RMQ_EXT_MAX; i++) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_INT(rmq_watched_add(request, text(name), text("v")), 0);
  }
  CHECK_INT(rmq_watched_add(request, text("one more"), text("v")), RMQ_ELIMIT);
}

static void additions_are_bounded(void) {
  begin(add_too_much);
  call c = {.size = 1};
  invoke(&c);
  fake_settle(fake);
  CHECK_INT(shown, 1);
  rmq_buf scratch = {0};
  rmq_header header;
  rmq_frame frame = first_frame();
  CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
  CHECK_INT(header.n_ext, RMQ_EXT_MAX);
  rmq_buf_free(&scratch);
  rmq_transport_cancel(transport, &c.request);
  finish();
}

static call nested[4];
static int n_nested;

static void invoke_more(const rmq_watched_request *request) {
  (void)rmq_watched_add(request, text("x"), text("y"));
  if (n_nested == 4) return;
  call *c = &nested[n_nested++];
  c->size = 3;
  invoke(c);
}

/* A request that is made while one is shown must not get into its bytes. */
static void requests_from_inside_come_afterwards(void) {
  memset(nested, 0, sizeof nested);
  n_nested = 0;
  begin(invoke_more);
  call c = {.size = 5};
  invoke(&c);
  fake_settle(fake);
  rmq_socket *s = fake_last(fake);
  int frames = 0;
  for (rmq_header header; take_frame(s, &header); frames++) {
    int32_t expected = frames == 0 ? c.request.opaque : nested[frames - 1].request.opaque;
    CHECK_INT(header.opaque, expected);
    meanwhile = NULL;
    reply(s, header.opaque, "ok");
  }
  CHECK(frames == 5 && shown == 5);
  CHECK_INT(rmq_buf_len(&s->sent), 0);
  rmq_transport_set_watch(transport, &(rmq_transport_watch){.owner = NULL});
  fake_settle(fake);
  CHECK_INT(n_ended, 5);
  finish();
}

static call late;
static void invoke_late(call *c) {
  (void)c;
  invoke(&late);
}

/* With the connection open a request is encoded at once, from inside of done as well. */
static void requests_at_once_are_shown(void) {
  memset(&late, 0, sizeof late);
  begin(add_two);
  call c = {.size = 5, .then = invoke_late};
  invoke(&c);
  fake_settle(fake);
  fake_advance(fake, 7);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK(shown == 2 && answered == 1 && c.dones == 1);
  fake_advance(fake, 7);
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK(answered == 2 && late.dones == 1);
  finish();
}

/* Nobody has seen that request, so nobody could make anything of its answer. */
static void what_was_sent_before_is_not_told(void) {
  start();
  shown = answered = 0;
  meanwhile = NULL;
  call c = {.size = 5};
  invoke(&c);
  fake_settle(fake);
  rmq_transport_set_watch(transport,
                          &(rmq_transport_watch){before_request, after_response, &shown});
  reply_all(fake_last(fake));
  fake_settle(fake);
  CHECK(c.dones == 1 && shown == 0 && answered == 0);
  finish();
}

static void what_is_not_watched_is_not_touched(void) {
  rmq_buf plain = {0};
  for (int watched = 0; watched < 2; watched++) {
    start();
    meanwhile = NULL;
    if (watched) {
      rmq_transport_set_watch(transport, &(rmq_transport_watch){before_request, NULL, &shown});
    }
    call c = {.size = 50};
    invoke(&c);
    fake_settle(fake);
    rmq_slice sent = rmq_buf_slice(&fake_last(fake)->sent);
    if (watched) {
      CHECK(rmq_slice_equal(sent, rmq_buf_slice(&plain)));
    } else {
      rmq_buf_bytes(&plain, sent.ptr, sent.len);
    }
    rmq_transport_cancel(transport, &c.request);
    finish();
  }
  rmq_buf_free(&plain);
}

int main(void) {
  check_run("both are told", both_are_told);
  check_run("what is added is sent", what_is_added_is_sent);
  check_run("additions are bounded", additions_are_bounded);
  check_run("requests from inside", requests_from_inside_come_afterwards);
  check_run("requests at once", requests_at_once_are_shown);
  check_run("sent before", what_was_sent_before_is_not_told);
  check_run("what is not touched", what_is_not_watched_is_not_touched);
  return check_end();
}

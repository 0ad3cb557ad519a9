#ifndef SPEC_NATIVE_NET_CALLS_H
#define SPEC_NATIVE_NET_CALLS_H

#include <stdlib.h>

#include "check.h"
#include "fake_io.h"
#include "net/transport.h"
#include "wire/codes.h"
#include "wire/frame.h"

/* What the transport's tests share: requests that remember how they ended, and the other side. */

#define BROKER "10.0.0.1:10911"

typedef struct call {
  rmq_request request; /* first: the callbacks cast back */
  size_t size;         /* of its body */
  int dones;
  int status;
  bool written;
  char body[64];
  char detail[512];
  char remote[RMQ_ADDRESS_TEXT];
  void (*then)(struct call *); /* called by done */
} call;

static fake_io *fake;
static rmq_transport *transport;
static rmq_transport_config config;
static call *ended[70000];
static size_t n_ended;

static inline void encode_call(rmq_request *request, rmq_buf *out, int32_t opaque) {
  call *c = (call *)request;
  char *body = malloc(c->size + 1);
  memset(body, 'b', c->size);
  rmq_command command =
      rmq_command_request(RMQ_SEND_MESSAGE, opaque, request->oneway ? RMQ_FLAG_ONEWAY : 0);
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, RMQ_SERIALIZE_ROCKETMQ, &command);
  rmq_frame_end(&writer, rmq_slice_make(body, c->size));
  free(body);
}

static inline void end_call(rmq_request *request, const rmq_outcome *outcome) {
  call *c = (call *)request;
  c->dones++;
  c->status = outcome->status;
  c->written = outcome->written;
  CHECK((outcome->header != NULL) == (outcome->status == RMQ_OK && !request->oneway));
  CHECK((outcome->status == RMQ_OK) == (outcome->detail[0] == '\0'));
  snprintf(c->body, sizeof c->body, "%.*s", (int)outcome->body.len,
           outcome->body.ptr ? outcome->body.ptr : "");
  snprintf(c->detail, sizeof c->detail, "%s", outcome->detail);
  snprintf(c->remote, sizeof c->remote, "%s", outcome->remote);
  ended[n_ended++] = c;
  if (c->then) c->then(c);
}

static inline void invoke_to(const char *addr, call *c, int64_t timeout_ms) {
  c->request.encode = encode_call;
  c->request.done = end_call;
  c->request.deadline = rmq_mono_add_ms(rmq_transport_now(transport), timeout_ms);
  rmq_transport_invoke(transport, addr, &c->request);
}

static inline void invoke(call *c) { invoke_to(BROKER, c, 3000); }

static inline void start(void) {
  fake = fake_new();
  config.io = fake_io_of(fake);
  config.serialize = RMQ_SERIALIZE_JSON;
  config.connect_timeout_ms = 3000;
  config.idle_timeout_ms = 120000;
  transport = rmq_transport_new(&config);
  n_ended = 0;
}

/* Frees the transport; nothing may be left, of it or of its sockets. */
static inline void finish(void) {
  if (transport) {
    CHECK_INT(rmq_transport_stats_of(transport)->pending, 0);
    rmq_transport_free(transport);
  }
  transport = NULL;
  fake_settle(fake);
  fake_free(fake);
  memset(&config, 0, sizeof config);
}

/* Takes the next frame that the transport sent on the socket. False when there is no whole one. */
static inline bool take_frame(rmq_socket *socket, rmq_header *header) {
  static rmq_buf scratch;
  rmq_frame frame;
  if (rmq_frame_split(rmq_buf_slice(&socket->sent), &frame, NULL) != 1) return false;
  CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, header), 0);
  header->remark = rmq_slice_make(NULL, 0);
  header->n_ext = 0;
  rmq_buf_consume(&socket->sent, frame.size);
  rmq_buf_free(&scratch);
  return true;
}

static inline void build(rmq_buf *out, int32_t code, int32_t opaque, int32_t flag,
                         const char *body) {
  rmq_command command = rmq_command_request(code, opaque, flag);
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, RMQ_SERIALIZE_JSON, &command);
  rmq_frame_end(&writer, rmq_slice_text(body));
}

static inline void send_frame(rmq_socket *socket, int32_t code, int32_t opaque, int32_t flag,
                              const char *body) {
  rmq_buf out = {0};
  build(&out, code, opaque, flag, body);
  fake_send(socket, rmq_buf_head(&out), rmq_buf_len(&out));
  rmq_buf_free(&out);
}

static inline void reply(rmq_socket *socket, int32_t opaque, const char *body) {
  send_frame(socket, RMQ_SUCCESS, opaque, RMQ_FLAG_RESPONSE, body);
}

/* Answers everything that has come whole; returns how many. */
static inline int reply_all(rmq_socket *socket) {
  int count = 0;
  for (rmq_header header; take_frame(socket, &header); count++) {
    if (!(header.flag & RMQ_FLAG_ONEWAY)) reply(socket, header.opaque, "ok");
  }
  return count;
}

#endif

#include "producer/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "wire/codes.h"

/* One call. Its texts stand behind it in the same block of memory. */
typedef struct call {
  rmq_request request;
  rmq_route_waiter waiter; /* while the broker's address is asked for */
  rmq_link link;           /* in the producer's `calls` */
  rmq_producer *producer;
  rmq_topic *topic; /* held while its route is waited for, else NULL */
  rmq_call_options options;
  rmq_buf texts; /* what `options` points into */
  char *addr;
  rmq_mono started, deadline;
  bool repeated; /* it is under way for the second time */
  rmq_call_done *done;
  void *arg;
} call;

static call *call_of(rmq_request *request) { return rmq_link_owner(request, call, request); }

/* ---- Copying what is asked ---- */

static size_t size_of(const rmq_call_options *options) {
  size_t size = options->broker.len + options->topic.len + options->body.len + options->remark.len +
                options->n_ext * sizeof *options->ext;
  for (size_t i = 0; i < options->n_ext; i++) {
    size += options->ext[i].name.len + options->ext[i].value.len;
  }
  return size;
}

static rmq_slice keep(rmq_buf *texts, rmq_slice text) {
  if (text.len == 0) return rmq_slice_make(NULL, 0);
  char *at = (char *)rmq_buf_head(texts) + rmq_buf_len(texts);
  rmq_buf_bytes(texts, text.ptr, text.len);
  return rmq_slice_make(at, text.len);
}

static void keep_options(call *c, const rmq_call_options *options) {
  rmq_buf *texts = &c->texts;
  size_t fields = options->n_ext * sizeof *options->ext;
  rmq_buf_reserve(texts, size_of(options) + 1); /* all at once: what is kept must not move */
  rmq_field *ext = (rmq_field *)(void *)rmq_buf_head(texts);
  if (fields > 0) {
    memcpy(ext, options->ext, fields);
    rmq_buf_commit(texts, fields);
  }
  for (size_t i = 0; i < options->n_ext; i++) {
    ext[i].name = keep(texts, options->ext[i].name);
    ext[i].value = keep(texts, options->ext[i].value);
  }
  c->options = *options;
  c->options.ext = ext;
  c->options.broker = keep(texts, options->broker);
  c->options.topic = keep(texts, options->topic);
  c->options.body = keep(texts, options->body);
  c->options.remark = keep(texts, options->remark);
  if (options->addr.len > 0) c->addr = rmq_copy_text(options->addr.ptr, options->addr.len);
}

/* ---- The end ---- */

static void withdraw(call *c) {
  rmq_producer *producer = c->producer;
  rmq_topic_leave(&c->waiter);
  rmq_transport_cancel(producer->transport, &c->request);
  if (c->topic) rmq_topic_release(c->topic);
  c->topic = NULL;
  rmq_link_remove(&c->link);
}

static void release(call *c) {
  rmq_buf_free(&c->texts);
  free(c->addr);
  free(c);
}

static void end(call *c, rmq_call_end *result) {
  rmq_producer *producer = c->producer;
  result->broker = c->options.broker;
  result->addr = rmq_slice_text(c->addr);
  withdraw(c);
  rmq_producer_enter(producer);
  c->done(c->arg, result);
  release(c);
  rmq_producer_check_end(producer);
  rmq_producer_leave(producer);
}

/* Ends it with a failure whose kind, code and message are set. */
static void fail(call *c, rmq_failure *failure, rmq_call_end *result) {
  rmq_slice topic = c->options.topic, broker = c->options.broker;
  if (topic.len > 0) failure->topic = rmq_copy_text(topic.ptr, topic.len);
  if (broker.len > 0) failure->broker = rmq_copy_text(broker.ptr, broker.len);
  if (c->addr) failure->addr = rmq_copy_text(c->addr, strlen(c->addr));
  rmq_mono now = rmq_transport_now(c->producer->transport);
  failure->elapsed_us = rmq_mono_diff_us(now, c->started);
  result->failure = failure;
  end(c, result);
  rmq_failure_clear(failure);
}

/* ---- The request ---- */

static void invoke(call *c);

static void encode(rmq_request *request, rmq_buf *out, int32_t opaque) {
  const call *c = call_of(request);
  rmq_command command =
      rmq_command_request(c->options.code, opaque, c->options.oneway ? RMQ_FLAG_ONEWAY : 0);
  command.remark = c->options.remark;
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, c->producer->serialize, &command);
  for (size_t i = 0; i < c->options.n_ext; i++) {
    rmq_frame_text(&writer, c->options.ext[i].name, c->options.ext[i].value);
  }
  rmq_frame_end(&writer, c->options.body);
}

static void broke_off(call *c, const rmq_outcome *outcome) {
  rmq_kind kind = rmq_kind_of_status(outcome->status);
  const char *code = rmq_request_code_name(c->options.code);
  bool has_detail = outcome->detail && outcome->detail[0] != '\0';
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(&failure, kind, rmq_java_code_of(kind), "%s to %s failed: %s", code, c->addr,
                  has_detail ? outcome->detail : rmq_error_text(outcome->status));
  failure.maybe_stored = outcome->written;
  fail(c, &failure, &(rmq_call_end){.header = NULL});
}

static bool may_repeat(const call *c, const rmq_outcome *outcome) {
  if (outcome->status != RMQ_ECLOSED || !c->options.repeatable || c->repeated) return false;
  return rmq_mono_before(rmq_transport_now(c->producer->transport), c->deadline);
}

static void answered(rmq_request *request, const rmq_outcome *outcome) {
  call *c = call_of(request);
  if (may_repeat(c, outcome)) {
    c->repeated = true;
    invoke(c);
    return;
  }
  if (outcome->status != RMQ_OK) {
    broke_off(c, outcome);
    return;
  }
  rmq_call_end result = {.header = outcome->header, .body = outcome->body};
  if (!outcome->header || outcome->header->code == RMQ_SUCCESS) {
    end(c, &result);
    return;
  }
  const rmq_header *header = outcome->header;
  int len = (int)(header->remark.len < 400 ? header->remark.len : 400);
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(
      &failure, RMQ_KIND_BROKER, header->code, "%s was refused by %s with code %d %s%s%.*s",
      rmq_request_code_name(c->options.code), c->addr, header->code,
      rmq_response_code_name(header->code), len ? ": " : "", len, len ? header->remark.ptr : "");
  rmq_buf_plain(&failure.message, 0);
  if (c->options.advice) rmq_buf_printf(&failure.message, ". %s", c->options.advice);
  fail(c, &failure, &result);
}

static void invoke(call *c) {
  c->request.encode = encode;
  c->request.done = answered;
  c->request.oneway = c->options.oneway;
  c->request.deadline = c->deadline;
  rmq_transport *transport = c->producer->transport;
  uint64_t connection = c->options.connection;
  if (connection && rmq_transport_invoke_on(transport, connection, &c->request)) return;
  rmq_transport_invoke(transport, c->addr, &c->request);
}

/* ---- Where to ---- */

static bool find_master(call *c) {
  if (c->addr) return true;
  const char *master = rmq_routes_master(c->producer->routes, c->options.broker);
  if (master) c->addr = rmq_copy_text(master, strlen(master));
  return master != NULL;
}

/* Of a name that may come out of somebody else's recall handle, and be of any length. */
static int shown(rmq_slice name) {
  enum { SHOWN = 255 };
  return (int)(name.len < SHOWN ? name.len : SHOWN);
}

static void route_came(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation) {
  call *c = rmq_link_owner(waiter, call, waiter);
  rmq_topic_release(c->topic);
  c->topic = NULL;
  /* A broker that cannot be written to can be asked all the same. */
  if (find_master(c)) {
    invoke(c);
    return;
  }
  bool found = result == RMQ_ROUTE_READY || result == RMQ_ROUTE_UNUSABLE;
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(&failure, result == RMQ_ROUTE_TIMEOUT ? RMQ_KIND_TIMEOUT : RMQ_KIND_ROUTE, 10003,
                  "No broker \"%.*s\" with a master is in the route of topic \"%.*s\"",
                  shown(c->options.broker), c->options.broker.ptr, shown(c->options.topic),
                  c->options.topic.ptr);
  rmq_buf_plain(&failure.message, 0);
  if (found) {
    rmq_buf_text(&failure.message, "; look at the name of the broker");
  } else {
    rmq_buf_text(&failure.message, ". ");
    rmq_buf_bytes(&failure.message, explanation.ptr, explanation.len);
  }
  fail(c, &failure, &(rmq_call_end){.header = NULL});
}

static void ask_for_route(call *c) {
  c->topic = rmq_routes_topic(c->producer->routes, c->options.topic);
  rmq_topic_hold(c->topic, c->started);
  c->waiter.done = route_came;
  rmq_topic_wait(c->topic, &c->waiter, c->deadline);
}

static int check(rmq_producer *producer, const rmq_call_options *options) {
  bool ending = options->to_the_end && producer->state == RMQ_STATE_DRAINING;
  int status = ending ? 0 : rmq_producer_check_state(producer);
  if (status < 0 || options->addr.len > 0 || options->topic.len > 0) return status;
  if (rmq_routes_master(producer->routes, options->broker)) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_ROUTE, 10003,
                  "no broker \"%.*s\" with a master is in any route that this producer knows",
                  (int)options->broker.len, options->broker.len ? options->broker.ptr : "");
  return RMQ_EINVAL;
}

int rmq_producer_call(rmq_producer *producer, const rmq_call_options *options, rmq_call_done *done,
                      void *arg) {
  int status = check(producer, options);
  if (status < 0) return status;
  int64_t timeout_ms =
      options->timeout_ms > 0 ? options->timeout_ms : producer->settings.mq_client_api_timeout;
  call *c = rmq_alloc_zero(1, sizeof *c);
  c->producer = producer;
  c->started = rmq_transport_now(producer->transport);
  c->deadline = rmq_mono_add_ms(c->started, timeout_ms);
  c->done = done;
  c->arg = arg;
  keep_options(c, options);
  rmq_link_append(&producer->calls, &c->link);
  if (find_master(c)) {
    invoke(c);
  } else {
    ask_for_route(c);
  }
  return 0;
}

/* ---- The end of the producer ---- */

void rmq_producer_fail_calls(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->calls)) {
    call *c = rmq_link_owner(producer->calls.next, call, link);
    rmq_failure failure;
    rmq_failure_init(&failure);
    rmq_failure_set(&failure, RMQ_KIND_STATE, 0,
                    "%s was cut short because producer \"%s\" shut down",
                    rmq_request_code_name(c->options.code), producer->settings.group);
    fail(c, &failure, &(rmq_call_end){.header = NULL});
  }
}

void rmq_producer_drop_calls(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->calls)) {
    call *c = rmq_link_owner(producer->calls.next, call, link);
    withdraw(c);
    if (c->options.drop) c->options.drop(c->arg);
    release(c);
  }
}

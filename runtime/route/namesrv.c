#include "route/namesrv.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/client.h"
#include "wire/codes.h"
#include "wire/namesrv.h"

enum { SHARE_FLOOR_MS = 500, SHOWN = 200, SAID_MAX = 4096 };

void rmq_namesrv_init(rmq_namesrv *servers, rmq_transport *transport, rmq_serialize serialize,
                      int64_t api_timeout_ms, const char *list) {
  *servers = (rmq_namesrv){
      .transport = transport, .serialize = serialize, .api_timeout_ms = api_timeout_ms};
  rmq_slice rest = rmq_slice_text(list), addr;
  const char *why;
  while (rmq_namesrv_next(&rest, &addr, &why) == 1) {
    servers->addrs = rmq_realloc(servers->addrs, (servers->n_addrs + 1) * sizeof *servers->addrs);
    servers->addrs[servers->n_addrs++] = rmq_copy_text(addr.ptr, addr.len);
  }
  rmq_io *io = rmq_transport_io(transport);
  if (servers->n_addrs > 0) servers->current = io->calls->random(io) % servers->n_addrs;
}

void rmq_namesrv_close(rmq_namesrv *servers) {
  for (size_t i = 0; i < servers->n_addrs; i++) free(servers->addrs[i]);
  free(servers->addrs);
  *servers = (rmq_namesrv){0};
}

static rmq_inquiry *inquiry_of(rmq_request *request) {
  return rmq_link_owner(request, rmq_inquiry, request);
}

static void encode(rmq_request *request, rmq_buf *out, int32_t opaque) {
  rmq_inquiry *inquiry = inquiry_of(request);
  rmq_route_request_encode(out, inquiry->servers->serialize, opaque, inquiry->topic);
}

/* How long the server may take that is asked now. The last one is not cut to the time of those who
 * wait: they leave when theirs is over, and others may have come meanwhile. */
static rmq_mono question_deadline(rmq_inquiry *inquiry) {
  rmq_mono now = rmq_transport_now(inquiry->servers->transport);
  int64_t limit_ms = inquiry->servers->api_timeout_ms;
  if (inquiry->tried < inquiry->servers->n_addrs) {
    int64_t share_ms = rmq_mono_diff_ms(inquiry->until(inquiry), now) / 2;
    if (share_ms < SHARE_FLOOR_MS) share_ms = SHARE_FLOOR_MS;
    if (share_ms < limit_ms) limit_ms = share_ms;
  }
  return rmq_mono_add_ms(now, limit_ms);
}

static void answered(rmq_request *request, const rmq_outcome *outcome);

static void ask(rmq_inquiry *inquiry) {
  inquiry->asked_at = rmq_transport_now(inquiry->servers->transport);
  inquiry->request.encode = encode;
  inquiry->request.done = answered;
  inquiry->request.oneway = false;
  inquiry->request.deadline = question_deadline(inquiry);
  rmq_transport_invoke(inquiry->servers->transport, inquiry->servers->addrs[inquiry->at],
                       &inquiry->request);
}

static void ask_server(rmq_inquiry *inquiry) {
  inquiry->tried++;
  inquiry->repeated = false;
  ask(inquiry);
}

/* Begins a note on the server that was just asked. Peers write into it too, so it is not let grow
 * for ever. */
static bool note_server(rmq_inquiry *inquiry) {
  if (rmq_buf_len(&inquiry->said) > SAID_MAX) return false;
  if (rmq_buf_len(&inquiry->said) > 0) rmq_buf_text(&inquiry->said, "; ");
  rmq_buf_text(&inquiry->said, inquiry->servers->addrs[inquiry->at]);
  if (inquiry->is_second) {
    rmq_buf_printf(&inquiry->said, " on %.*s", (int)inquiry->topic.len, inquiry->topic.ptr);
  }
  rmq_buf_text(&inquiry->said, ": ");
  return true;
}

static void note_failure(rmq_inquiry *inquiry, const rmq_outcome *outcome) {
  if (!note_server(inquiry)) return;
  bool has_detail = outcome->detail && outcome->detail[0] != '\0';
  rmq_buf_text(&inquiry->said, has_detail ? outcome->detail : rmq_error_text(outcome->status));
}

static void note_answer(rmq_inquiry *inquiry, const rmq_header *header) {
  if (!note_server(inquiry)) return;
  int len = (int)(header->remark.len < SHOWN ? header->remark.len : SHOWN);
  const char *end = len ? memchr(header->remark.ptr, '\n', (size_t)len) : NULL;
  if (end) len = (int)(end - header->remark.ptr);
  rmq_buf_printf(&inquiry->said, "code %d %s", header->code, rmq_response_code_name(header->code));
  if (len > 0) rmq_buf_printf(&inquiry->said, " (%.*s)", len, header->remark.ptr);
}

static void finish(rmq_inquiry *inquiry, rmq_inquiry_status status, rmq_route_data *route) {
  inquiry->running = false;
  inquiry->done(inquiry, status, route);
}

static void ask_next(rmq_inquiry *inquiry) {
  inquiry->at = (inquiry->at + 1) % inquiry->servers->n_addrs;
  inquiry->servers->current = inquiry->at;
  if (inquiry->tried < inquiry->servers->n_addrs) {
    ask_server(inquiry);
  } else {
    finish(inquiry, RMQ_INQUIRY_FAILED, NULL);
  }
}

static void take_route(rmq_inquiry *inquiry, rmq_slice body) {
  char why[128] = "";
  rmq_route_data route;
  int status = rmq_route_data_decode(body, &route, why, sizeof why);
  if (status == 0) {
    finish(inquiry, RMQ_INQUIRY_FOUND, &route);
    return;
  }
  if (note_server(inquiry)) rmq_buf_printf(&inquiry->said, "its route cannot be read: %s", why);
  ask_next(inquiry);
}

static void answered(rmq_request *request, const rmq_outcome *outcome) {
  rmq_inquiry *inquiry = inquiry_of(request);
  if (outcome->status == RMQ_ECLOSED && !inquiry->repeated) {
    /* Perhaps only the connection was dead, from before the server was started again. */
    inquiry->repeated = true;
    ask(inquiry);
  } else if (outcome->status != RMQ_OK) {
    note_failure(inquiry, outcome);
    ask_next(inquiry);
  } else if (outcome->header->code == RMQ_SUCCESS) {
    take_route(inquiry, outcome->body);
  } else {
    note_answer(inquiry, outcome->header);
    if (outcome->header->code == RMQ_TOPIC_NOT_EXIST) {
      finish(inquiry, RMQ_INQUIRY_UNKNOWN, NULL);
    } else {
      ask_next(inquiry);
    }
  }
}

void rmq_inquiry_start(rmq_inquiry *inquiry, rmq_namesrv *servers, rmq_slice topic,
                       rmq_mono (*until)(rmq_inquiry *inquiry),
                       void (*done)(rmq_inquiry *inquiry, rmq_inquiry_status status,
                                    rmq_route_data *route)) {
  inquiry->servers = servers;
  inquiry->topic = topic;
  inquiry->is_second = rmq_buf_len(&inquiry->said) > 0;
  inquiry->until = until;
  inquiry->done = done;
  inquiry->at = servers->current;
  inquiry->tried = 0;
  inquiry->running = true;
  ask_server(inquiry);
}

void rmq_inquiry_cancel(rmq_inquiry *inquiry) {
  if (!inquiry->running) return;
  inquiry->running = false;
  rmq_transport_cancel(inquiry->servers->transport, &inquiry->request);
  inquiry->servers->current = (inquiry->at + 1) % inquiry->servers->n_addrs;
}

void rmq_inquiry_forget(rmq_inquiry *inquiry) { rmq_buf_clear(&inquiry->said); }

void rmq_inquiry_close(rmq_inquiry *inquiry) {
  rmq_inquiry_cancel(inquiry);
  rmq_buf_free(&inquiry->said);
}

void rmq_inquiry_report(const rmq_inquiry *inquiry, rmq_buf *out) {
  rmq_slice said = rmq_buf_slice(&inquiry->said);
  rmq_buf_bytes(out, said.ptr, said.len);
  if (!inquiry->running) return;
  int64_t ms = rmq_mono_diff_ms(rmq_transport_now(inquiry->servers->transport), inquiry->asked_at);
  rmq_buf_printf(out, "%s%s: no answer within %lld ms", said.len ? "; " : "",
                 inquiry->servers->addrs[inquiry->at], (long long)ms);
}

#include "route/namesrv.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/address_map.h"
#include "wire/client.h"
#include "wire/codes.h"
#include "wire/namesrv.h"

enum { SHARE_FLOOR_MS = 500, SHOWN = 200, SAID_MAX = 4096 };

/* The servers that a list names. */
static char **read_list(const char *list, size_t *n) {
  rmq_slice rest = rmq_slice_text(list), addr;
  const char *why;
  char **addrs = NULL;
  for (*n = 0; rmq_namesrv_next(&rest, &addr, &why) == 1; ++*n) {
    addrs = rmq_realloc(addrs, (*n + 1) * sizeof *addrs);
    addrs[*n] = rmq_copy_text(addr.ptr, addr.len);
  }
  return addrs;
}

static void free_list(char **addrs, size_t n) {
  for (size_t i = 0; i < n; i++) free(addrs[i]);
  free(addrs);
}

/* Where an address stands in a list, or `n`. */
static size_t find(char *const *addrs, size_t n, const char *addr) {
  size_t at = 0;
  while (at < n && strcmp(addrs[at], addr) != 0) at++;
  return at;
}

/* True when every address of the first list is in the second one. */
static bool is_within(char *const *addrs, size_t n, char *const *others, size_t n_others) {
  for (size_t i = 0; i < n; i++) {
    if (find(others, n_others, addrs[i]) == n_others) return false;
  }
  return true;
}

static void choose_by_chance(rmq_namesrv *servers) {
  rmq_io *io = rmq_transport_io(servers->transport);
  if (servers->n_addrs > 0) servers->current = io->calls->random(io) % servers->n_addrs;
}

void rmq_namesrv_init(rmq_namesrv *servers, rmq_transport *transport, rmq_serialize serialize,
                      int64_t api_timeout_ms, const char *list) {
  *servers = (rmq_namesrv){
      .transport = transport, .serialize = serialize, .api_timeout_ms = api_timeout_ms};
  servers->addrs = read_list(list, &servers->n_addrs);
  choose_by_chance(servers);
}

bool rmq_namesrv_set(rmq_namesrv *servers, const char *list) {
  rmq_namesrv old = *servers;
  size_t n;
  char **addrs = read_list(list, &n);
  if (is_within(addrs, n, old.addrs, old.n_addrs) && is_within(old.addrs, old.n_addrs, addrs, n)) {
    free_list(addrs, n);
    return false;
  }
  servers->addrs = addrs;
  servers->n_addrs = n;
  servers->version++;
  servers->current = find(addrs, n, old.addrs[old.current]);
  if (servers->current == n) choose_by_chance(servers);
  for (size_t i = 0; i < old.n_addrs; i++) {
    if (find(addrs, n, old.addrs[i]) == n) rmq_transport_retire(servers->transport, old.addrs[i]);
  }
  free_list(old.addrs, old.n_addrs);
  return true;
}

void rmq_namesrv_close(rmq_namesrv *servers) {
  free_list(servers->addrs, servers->n_addrs);
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

static void ask(rmq_inquiry *inquiry, rmq_mono deadline) {
  inquiry->asked_at = rmq_transport_now(inquiry->servers->transport);
  inquiry->request.encode = encode;
  inquiry->request.done = answered;
  inquiry->request.oneway = false;
  inquiry->request.deadline = deadline;
  rmq_transport_invoke(inquiry->servers->transport, inquiry->asked, &inquiry->request);
}

static void ask_server(rmq_inquiry *inquiry) {
  const char *addr = inquiry->servers->addrs[inquiry->at];
  free(inquiry->asked);
  inquiry->asked = rmq_copy_text(addr, strlen(addr));
  inquiry->tried++;
  inquiry->repeated = false;
  ask(inquiry, question_deadline(inquiry));
}

/* Perhaps only the connection was dead, from before the server was started again. While there are other
 * servers both tries have the time of one: it may have been the server's silence that ended the
 * connection, when a question that others had asked there was too old. */
static void ask_once_more(rmq_inquiry *inquiry) {
  bool is_last = inquiry->tried == inquiry->servers->n_addrs;
  inquiry->repeated = true;
  ask(inquiry, is_last ? question_deadline(inquiry) : inquiry->request.deadline);
}

/* Begins a note on the server that was just asked. Peers write into it too, so it is not let grow
 * for ever. */
static bool note_server(rmq_inquiry *inquiry) {
  if (rmq_buf_len(&inquiry->said) > SAID_MAX) return false;
  if (rmq_buf_len(&inquiry->said) > 0) rmq_buf_text(&inquiry->said, "; ");
  rmq_buf_text(&inquiry->said, inquiry->asked);
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
  size_t start = rmq_buf_len(&inquiry->said);
  rmq_buf_printf(&inquiry->said, "code %d %s", header->code, rmq_response_code_name(header->code));
  if (len > 0) rmq_buf_printf(&inquiry->said, " (%.*s)", len, header->remark.ptr);
  rmq_buf_plain(&inquiry->said, start);
}

static void finish(rmq_inquiry *inquiry, rmq_inquiry_status status, rmq_route_data *route) {
  inquiry->running = false;
  inquiry->done(inquiry, status, route);
}

static bool list_is_new(const rmq_inquiry *inquiry) {
  return inquiry->version != inquiry->servers->version;
}

static void ask_first(rmq_inquiry *inquiry) {
  inquiry->version = inquiry->servers->version;
  inquiry->at = inquiry->servers->current;
  inquiry->tried = 0;
  ask_server(inquiry);
}

static void ask_next(rmq_inquiry *inquiry) {
  if (list_is_new(inquiry)) {
    ask_first(inquiry);
    return;
  }
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
    rmq_address_map_apply(inquiry->servers->address_map, &route);
    finish(inquiry, RMQ_INQUIRY_FOUND, &route);
    return;
  }
  if (note_server(inquiry)) rmq_buf_printf(&inquiry->said, "its route cannot be read: %s", why);
  ask_next(inquiry);
}

static void answered(rmq_request *request, const rmq_outcome *outcome) {
  rmq_inquiry *inquiry = inquiry_of(request);
  bool go_away = outcome->status == RMQ_OK && outcome->header->code == RMQ_GO_AWAY;
  bool again = !inquiry->repeated && !list_is_new(inquiry);
  if (again && (go_away || outcome->status == RMQ_ECLOSED)) {
    ask_once_more(inquiry);
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
  inquiry->running = true;
  ask_first(inquiry);
}

void rmq_inquiry_cancel(rmq_inquiry *inquiry) {
  if (!inquiry->running) return;
  inquiry->running = false;
  rmq_transport_cancel(inquiry->servers->transport, &inquiry->request);
  if (list_is_new(inquiry)) return;
  inquiry->servers->current = (inquiry->at + 1) % inquiry->servers->n_addrs;
}

void rmq_inquiry_forget(rmq_inquiry *inquiry) { rmq_buf_clear(&inquiry->said); }

void rmq_inquiry_close(rmq_inquiry *inquiry) {
  rmq_inquiry_cancel(inquiry);
  rmq_buf_free(&inquiry->said);
  free(inquiry->asked);
  inquiry->asked = NULL;
}

void rmq_inquiry_report(const rmq_inquiry *inquiry, rmq_buf *out) {
  rmq_slice said = rmq_buf_slice(&inquiry->said);
  rmq_buf_bytes(out, said.ptr, said.len);
  if (!inquiry->running) return;
  int64_t ms = rmq_mono_diff_ms(rmq_transport_now(inquiry->servers->transport), inquiry->asked_at);
  rmq_buf_printf(out, "%s%s: no answer within %lld ms", said.len ? "; " : "", inquiry->asked,
                 (long long)ms);
}

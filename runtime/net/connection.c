/* An open connection: requests out, frames in, and how it ends. */

#include "net/connection.h"

#include <stdio.h>

#include "wire/codes.h"
#include "wire/frame.h"

enum {
  WRITE_AT_ONCE = 160 * 1024, /* unsent bytes that do not wait for the end of the turn */
  MOST_UNSENT = 256 * 1024,   /* unsent bytes from which requests wait unencoded */
  READ_FIRST = 4 * 1024,      /* the first read; doubles as long as reads come back full */
  READ_MOST = 256 * 1024,
  READ_A_TURN = 1024 * 1024, /* bytes after which other connections have their turn */
  READ_LATE =
      16 * 1024 * 1024, /* the same before deadlines fire: more than a kernel holds for us */
  QUIET_MS = 1000,      /* without traffic for so long, buffers are given back */
  LOOK_MS = 30000       /* how often a quiet connection is looked at, at least */
};

/* A peer that sends requests and takes no answers would let us hold them for ever. What is ours,
 * a frame of the greatest length and MOST_UNSENT, stays below this. */
static const size_t most_answers = 2 * (size_t)RMQ_FRAME_MAX;

static rmq_request *first_of(const rmq_link *list) {
  return rmq_link_owner(list->next, rmq_request, link);
}

void rmq_connection_opened(rmq_connection *c) {
  rmq_transport *t = c->transport;
  t->stats.connects++;
  t->stats.connections++;
  c->state = RMQ_CONNECTION_OPEN;
  c->number = ++t->opened;
  c->opened_at = rmq_transport_now(t);
  c->read_size = READ_FIRST;
  c->wants_write = c->got_reply = c->asked = false;
  c->write_error = 0;
  c->traffic_at = c->opened_at;
  rmq_transport_timer(t, &c->timer, rmq_mono_add_ms(c->traffic_at, QUIET_MS));
  if (t->config.connected) {
    c->announcing = true;
    t->config.connected(t->config.owner, c->addr);
    c->announcing = false;
  }
  if (c->state == RMQ_CONNECTION_OPEN) rmq_connection_touch(c);
}

/* --- out --- */

bool rmq_connection_has_room(const rmq_connection *c) {
  return c->state == RMQ_CONNECTION_OPEN && rmq_buf_len(&c->out) <= MOST_UNSENT && !c->shown &&
         (c->announcing || rmq_link_alone(&c->waiting));
}

static void encode(rmq_connection *c, rmq_request *request) {
  const rmq_transport_watch *watch = &c->transport->watch;
  size_t offset = rmq_buf_len(&c->out);
  request->start_at = c->written + offset;
  request->written_at = rmq_transport_now(c->transport);
  request->code = 0;
  if (request->oneway) {
    request->opaque = c->pending.next;
    c->pending.next = c->pending.next == INT32_MAX ? 0 : c->pending.next + 1;
    request->state = RMQ_REQUEST_LEAVING;
    rmq_link_append(&c->leaving, &request->link);
  } else {
    rmq_pending_add(&c->pending, request);
    request->state = RMQ_REQUEST_SENT;
    rmq_link_append(&c->sent, &request->link);
    if (!c->asked) {
      c->asked = true;
      c->asked_at = request->written_at;
    }
  }
  request->encode(request, &c->out, request->opaque);
  if (watch->before_request || watch->after_response) {
    rmq_connection_show_request(c, request, offset);
  }
  request->end_at = c->written + rmq_buf_len(&c->out);
  c->transport->stats.requests++;
}

static void encode_waiting(rmq_connection *c) {
  rmq_mono now = rmq_transport_now(c->transport);
  rmq_link *link = c->waiting.next;
  while (link != &c->waiting && rmq_buf_len(&c->out) <= MOST_UNSENT) {
    rmq_request *request = rmq_link_owner(link, rmq_request, link);
    link = link->next;
    /* Its time is over and its timer about to fire: it must not be sent any more. */
    if (!rmq_mono_before(now, request->deadline)) continue;
    rmq_link_remove(&request->link);
    encode(c, request);
  }
}

/* Writes once. Returns false when the socket broke; want_write is on when it took less than all. */
static bool write_out(rmq_connection *c) {
  rmq_transport *t = c->transport;
  rmq_slice part = rmq_buf_slice(&c->out);
  long taken = t->calls->write(c->socket, &part, 1);
  t->stats.writes++;
  if (taken < 0) {
    c->write_error = (int)taken;
    return false;
  }
  if (taken > 0) c->traffic_at = rmq_transport_now(t);
  c->written += (uint64_t)taken;
  t->stats.bytes_written += (uint64_t)taken;
  rmq_buf_consume(&c->out, (size_t)taken);
  if ((size_t)taken < part.len) {
    c->wants_write = true;
    t->calls->want_write(c->socket, true);
  }
  return true;
}

void rmq_connection_send(rmq_connection *c, rmq_request *request) {
  encode(c, request);
  if (rmq_buf_len(&c->out) >= WRITE_AT_ONCE && !c->wants_write && !c->write_error) write_out(c);
  rmq_connection_touch(c);
}

/* Oneway requests whose last byte the kernel has taken are done. */
static void end_left(rmq_connection *c) {
  while (!rmq_link_alone(&c->leaving) && first_of(&c->leaving)->end_at <= c->written) {
    rmq_request *request = first_of(&c->leaving);
    rmq_request_detach(request);
    rmq_request_end(request, RMQ_OK, NULL, rmq_slice_make(NULL, 0), "");
  }
}

/* RocketMQ's servers hang up without a word on who speaks plainly where TLS is required. */
static const char *why_closed(const rmq_connection *c) {
  if (c->got_reply) return "closed by the other side";
  return "closed by the other side before its first answer (a server that requires TLS does so)";
}

static void break_by_code(rmq_connection *c, int code) {
  rmq_transport *t = c->transport;
  t->stats.closed_by_peer++;
  rmq_connection_break(c, RMQ_ECLOSED,
                       code == RMQ_ECLOSED ? why_closed(c) : t->calls->text(t->io, code));
}

static bool is_done(const rmq_connection *c) {
  return c->state == RMQ_CONNECTION_OPEN && rmq_link_alone(&c->sent) &&
         rmq_link_alone(&c->leaving) && rmq_link_alone(&c->waiting) && rmq_buf_len(&c->out) == 0;
}

void rmq_connection_pump(rmq_connection *c) {
  if (c->write_error) {
    break_by_code(c, c->write_error);
    return;
  }
  bool more = true;
  while (more && !c->wants_write) {
    encode_waiting(c);
    if (rmq_buf_len(&c->out) == 0) break;
    more = rmq_buf_len(&c->out) > MOST_UNSENT; /* then something may wait behind it */
    if (!write_out(c)) {
      break_by_code(c, c->write_error);
      return;
    }
  }
  end_left(c);
  if (c->unwanted && is_done(c)) rmq_connection_stop(c);
}

/* --- in --- */

static void handle_reply(rmq_connection *c, rmq_slice body) {
  rmq_transport *t = c->transport;
  c->got_reply = true;
  c->failures = 0;
  rmq_request *request = rmq_pending_get(&c->pending, t->header.opaque);
  if (!request) {
    t->stats.late_replies++;
    return;
  }
  if (t->watch.after_response && request->code != 0) {
    rmq_connection_show_response(c, request, body);
    request = rmq_pending_get(&c->pending, t->header.opaque);
    if (!request) return;
  }
  t->stats.replies++;
  if (t->header.code == RMQ_GO_AWAY) rmq_connection_replace(c);
  rmq_request_detach(request);
  rmq_request_end(request, RMQ_OK, &t->header, body, "");
}

static void handle_request(rmq_connection *c, rmq_slice body) {
  rmq_transport *t = c->transport;
  bool handled = false;
  t->from = c;
  if (t->config.received) {
    handled = t->config.received(t->config.owner, c->addr, &t->header, body);
  }
  if (!handled && !(t->header.flag & RMQ_FLAG_ONEWAY)) {
    char remark[64];
    snprintf(remark, sizeof remark, " request type %d not supported", (int)t->header.code);
    rmq_transport_answer(t, &t->header, RMQ_REQUEST_CODE_NOT_SUPPORTED, rmq_slice_text(remark),
                         rmq_slice_make(NULL, 0));
  }
  t->from = NULL;
}

/* Handles one whole frame. False when the connection is not open any more. */
static bool handle_frame(rmq_connection *c, const rmq_frame *frame) {
  rmq_transport *t = c->transport;
  if (rmq_header_decode(frame->serialize, frame->header, &t->scratch, &t->header) != 0) {
    rmq_connection_break(c, RMQ_EPROTO, "the other side sent a header that cannot be read");
    return false;
  }
  if (t->header.flag & RMQ_FLAG_RESPONSE) {
    handle_reply(c, frame->body);
  } else {
    handle_request(c, frame->body);
  }
  if (c->state == RMQ_CONNECTION_OPEN && rmq_buf_len(&c->out) > most_answers) {
    rmq_connection_break(c, RMQ_EPROTO, "the other side sends requests and takes no answers");
  }
  return c->state == RMQ_CONNECTION_OPEN;
}

static bool handle_frames(rmq_connection *c) {
  for (;;) {
    rmq_frame frame;
    const char *why = "the other side sent bytes that are no frame";
    int found = rmq_frame_split(rmq_buf_slice(&c->in), &frame, &why);
    if (found == 0) return true;
    if (found < 0) {
      rmq_connection_break(c, RMQ_EPROTO, why);
      return false;
    }
    if (!handle_frame(c, &frame)) return false;
    rmq_buf_consume(&c->in, frame.size);
  }
}

/* Reads once. Returns the bytes, 0 when there are none now or the connection is not open any
 * more. */
static size_t read_once(rmq_connection *c) {
  rmq_transport *t = c->transport;
  long got = t->calls->read(c->socket, rmq_buf_reserve(&c->in, c->read_size), c->read_size);
  t->stats.reads++;
  if (got < 0) break_by_code(c, (int)got);
  if (got <= 0) return 0;
  rmq_buf_commit(&c->in, (size_t)got);
  t->stats.bytes_read += (uint64_t)got;
  c->read_at = c->traffic_at = rmq_transport_now(t);
  c->asked = false;
  return handle_frames(c) ? (size_t)got : 0;
}

void rmq_connection_read(rmq_connection *c, bool all) {
  size_t total = 0;
  while (total < (all ? READ_LATE : READ_A_TURN)) {
    size_t asked = c->read_size;
    size_t got = read_once(c);
    total += got;
    if (got == 0) return;
    if (got == asked) {
      if (c->read_size < READ_MOST) c->read_size *= 2;
    } else if (!all) {
      return; /* the socket gave all it had */
    }
  }
}

/* --- the end --- */

static void doom_list(rmq_connection *c, rmq_link *list) {
  rmq_transport *t = c->transport;
  for (rmq_link *link = list->next; link != list; link = link->next) {
    rmq_request *request = rmq_link_owner(link, rmq_request, link);
    rmq_transport_timer_stop(t, &request->timer);
    request->state = RMQ_REQUEST_DOOMED;
  }
  rmq_link_splice(&c->doomed, list);
}

/* What is doomed already keeps its end: this may come from the done of one of them. */
static void set_doom(rmq_connection *c, int status, const char *why) {
  if (!rmq_link_alone(&c->doomed)) return;
  c->doom = status;
  if (why != c->reason) snprintf(c->reason, sizeof c->reason, "%s", why);
}

void rmq_connection_doom_waiting(rmq_connection *c, int status, const char *why) {
  set_doom(c, status, why);
  doom_list(c, &c->waiting);
}

void rmq_connection_doom(rmq_connection *c, int status, const char *why) {
  set_doom(c, status, why);
  doom_list(c, &c->sent);
  doom_list(c, &c->leaving);
  doom_list(c, &c->waiting);
  rmq_pending_clear(&c->pending);
}

static void end_turned_away(rmq_connection *c) {
  char why[RMQ_REASON_TEXT + 64];
  while (!rmq_link_alone(&c->turned_away)) {
    rmq_request *request = first_of(&c->turned_away);
    snprintf(why, sizeof why, "not connected again yet; before: %s", c->last_failure);
    rmq_request_detach(request);
    rmq_request_end(request, RMQ_ECONNECT, NULL, rmq_slice_make(NULL, 0), why);
  }
}

void rmq_connection_settle(rmq_connection *c) {
  end_turned_away(c);
  while (!rmq_link_alone(&c->doomed)) {
    rmq_request *request = first_of(&c->doomed);
    /* `reason` belongs to the connection, which a done may let connect anew. */
    char why[RMQ_REASON_TEXT];
    memcpy(why, c->reason, sizeof why);
    rmq_request_detach(request);
    rmq_request_end(request, c->doom, NULL, rmq_slice_make(NULL, 0), why);
  }
}

void rmq_connection_break(rmq_connection *c, int status, const char *why) {
  rmq_log_line(c->transport->config.log, RMQ_LOG_DEBUG, "connection to %s (%s) ended: %s", c->addr,
               c->remote, why);
  /* A server that takes connections and ends them without a reply is as good as none. */
  if (!c->got_reply || status == RMQ_EPROTO) rmq_connection_count_failure(c, why);
  rmq_connection_stop(c);
  rmq_connection_doom(c, status, why);
  rmq_connection_settle(c);
}

void rmq_connection_quiet(rmq_connection *c) {
  rmq_transport *t = c->transport;
  rmq_mono now = rmq_transport_now(t);
  int64_t quiet_ms = rmq_mono_diff_ms(now, c->traffic_at);
  int64_t idle_ms = t->config.idle_timeout_ms;
  if (quiet_ms < QUIET_MS || !is_done(c)) {
    rmq_transport_timer(t, &c->timer, rmq_mono_add_ms(now, QUIET_MS));
    return;
  }
  if (idle_ms > 0 && quiet_ms >= idle_ms) {
    rmq_connection_stop(c);
    return;
  }
  rmq_buf_trim(&c->out, 0);
  rmq_buf_trim(&c->in, 0);
  rmq_pending_clear(&c->pending);
  c->read_size = READ_FIRST;
  int64_t left_ms = idle_ms > 0 ? idle_ms - quiet_ms : LOOK_MS;
  rmq_transport_timer(t, &c->timer, rmq_mono_add_ms(now, left_ms < LOOK_MS ? left_ms : LOOK_MS));
}

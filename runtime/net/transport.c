/* What the core sees of the net: requests by address, one wheel, the events of rmq_io. */

#include "net/transport.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/connection.h"
#include "wire/codes.h"
#include "wire/frame.h"

/* --- events --- */

static void ignore(void *owner) { (void)owner; }
static const rmq_io_host nobody = {ignore, ignore};

static void destroy(rmq_transport *t) {
  while (!rmq_link_alone(&t->every)) {
    rmq_connection_delete(rmq_link_owner(t->every.next, rmq_connection, every));
  }
  rmq_map_free(t->connections);
  rmq_buf_free(&t->scratch);
  t->io->host = &nobody;
  t->io->owner = NULL;
  free(t);
}

void rmq_transport_enter(rmq_transport *t) { t->depth++; }

void rmq_transport_leave(rmq_transport *t) {
  t->depth--;
  if (t->freed && t->depth == 0 && t->sockets == 0) destroy(t);
}

static void ask_for_flush(rmq_transport *t) {
  if (t->flush_asked) return;
  t->flush_asked = true;
  t->calls->end_of_turn(t->io);
}

void rmq_connection_touch(rmq_connection *c) {
  rmq_transport *t = c->transport;
  if (t->freed) return;
  if (rmq_link_alone(&c->dirty)) rmq_link_append(&t->dirty, &c->dirty);
  ask_for_flush(t);
}

void rmq_transport_ask_for_turn(rmq_transport *t) {
  if (t->freed) return;
  t->turn_asked = true;
  ask_for_flush(t);
}

static void look_at(rmq_connection *c) {
  bool wanted = c->wanted;
  c->wanted = false;
  rmq_connection_settle(c);
  if (c->transport->freed) return;
  if (c->state == RMQ_CONNECTION_OPEN) {
    rmq_connection_pump(c);
  } else if (c->state == RMQ_CONNECTION_IDLE && (wanted || !rmq_link_alone(&c->waiting))) {
    rmq_connection_begin(c);
  }
}

/* What callbacks touch meanwhile has its turn in the next flush, after sockets were looked at: a
 * done that sends again, and again, must not keep the loop here. */
static void on_flush(void *owner) {
  rmq_transport *t = owner;
  rmq_transport_enter(t);
  if (t->turn_asked && !t->freed) {
    t->turn_asked = false;
    t->config.turn_ends(t->config.owner);
  }
  t->flush_asked = false;
  if (t->turn_asked) rmq_transport_ask_for_turn(t);
  rmq_link_splice(&t->flushing, &t->dirty);
  while (!t->freed && !rmq_link_alone(&t->flushing)) {
    rmq_connection *c = rmq_link_owner(t->flushing.next, rmq_connection, dirty);
    rmq_link_remove(&c->dirty);
    look_at(c);
  }
  rmq_transport_leave(t);
}

/* The loop may come late: the machine slept, the process was stopped, a script computed. A reply
 * that has arrived meanwhile must win against its deadline, so sockets are read first. */
static void read_before_deadlines(rmq_transport *t) {
  for (rmq_link *link = t->every.next; link != &t->every; link = link->next) {
    rmq_connection *c = rmq_link_owner(link, rmq_connection, every);
    if (t->expected > 0 || !rmq_link_alone(&c->sent)) rmq_link_append(&t->late, &c->late);
  }
  while (!rmq_link_alone(&t->late)) {
    rmq_connection *c = rmq_link_owner(t->late.next, rmq_connection, late);
    rmq_link_remove(&c->late);
    if (c->state == RMQ_CONNECTION_OPEN) rmq_connection_read(c, true);
  }
}

static void on_wake(void *owner) {
  rmq_transport *t = owner;
  if (t->freed) return;
  rmq_transport_enter(t);
  t->wake_time.us = INT64_MIN; /* nothing set meanwhile needs a wake of its own */
  rmq_mono now = rmq_transport_now(t);
  if (rmq_wheel_next(t->wheel).us <= now.us) read_before_deadlines(t);
  if (!t->freed) rmq_wheel_advance(t->wheel, now);
  if (!t->freed) {
    t->wake_time = rmq_wheel_next(t->wheel);
    t->calls->wake_at(t->io, t->wake_time);
  }
  rmq_transport_leave(t);
}

static const rmq_io_host host = {on_wake, on_flush};

/* --- the transport --- */

rmq_transport *rmq_transport_new(const rmq_transport_config *config) {
  rmq_transport *t = rmq_alloc_zero(1, sizeof *t);
  t->config = *config;
  t->io = config->io;
  t->calls = t->io->calls;
  t->io->host = &host;
  t->io->owner = t;
  t->wheel = rmq_wheel_new(rmq_transport_now(t));
  t->connections = rmq_map_new(t->calls->random(t->io));
  t->wake_time = RMQ_NEVER;
  rmq_link_init(&t->every);
  rmq_link_init(&t->dirty);
  rmq_link_init(&t->flushing);
  rmq_link_init(&t->late);
  return t;
}

static void drop_all(rmq_link *list) {
  while (!rmq_link_alone(list)) {
    rmq_request_detach(rmq_link_owner(list->next, rmq_request, link));
  }
}

void rmq_transport_free(rmq_transport *t) {
  if (!t || t->freed) return;
  rmq_transport_enter(t);
  t->freed = true;
  for (rmq_link *link = t->every.next; link != &t->every; link = link->next) {
    rmq_connection *c = rmq_link_owner(link, rmq_connection, every);
    rmq_connection_stop(c);
    drop_all(&c->waiting);
    drop_all(&c->sent);
    drop_all(&c->leaving);
    drop_all(&c->doomed);
    drop_all(&c->turned_away);
    rmq_transport_timer_stop(t, &c->timer);
  }
  t->calls->wake_at(t->io, RMQ_NEVER);
  rmq_wheel_free(t->wheel);
  t->wheel = NULL;
  rmq_transport_leave(t);
}

static rmq_connection *connection_of(rmq_transport *t, const char *addr) {
  rmq_connection **recent = &t->recent[((uintptr_t)addr >> 4) % RMQ_RECENT];
  if (*recent && strcmp((*recent)->addr, addr) == 0) return *recent;
  rmq_slice key = rmq_slice_text(addr);
  rmq_connection *c = rmq_map_get(t->connections, key);
  if (!c) {
    c = rmq_connection_new(t, key);
    rmq_map_set(t->connections, key, c);
  }
  *recent = c;
  return c;
}

/* --- requests --- */

void rmq_request_end(rmq_request *request, int status, const rmq_header *header, rmq_slice body,
                     const char *why) {
  rmq_connection *c = request->connection;
  bool encoded = request->end_at > 0;
  /* What an open connection has not written yet it still writes; what one that ended has not
   * written is thrown away. */
  bool goes_out = c->state == RMQ_CONNECTION_OPEN;
  rmq_outcome outcome = {.status = status,
                         .header = header,
                         .body = body,
                         .written = encoded && (goes_out || c->written > request->start_at),
                         .detail = why,
                         .remote = c->remote};
  request->connection = NULL;
  request->done(request, &outcome);
}

void rmq_request_detach(rmq_request *request) {
  rmq_connection *c = request->connection;
  if (request->state == RMQ_REQUEST_SENT) rmq_pending_remove(&c->pending, request->opaque);
  rmq_link_remove(&request->link);
  rmq_transport_timer_stop(c->transport, &request->timer);
  request->state = RMQ_REQUEST_FREE;
  c->transport->stats.pending--;
  if (c->unwanted) rmq_connection_touch(c); /* it may have been the last */
}

static const char *what_it_waits_for(const rmq_connection *c) {
  switch (c->state) {
    case RMQ_CONNECTION_RESOLVING:
      return "the host name is still being resolved";
    case RMQ_CONNECTION_CONNECTING:
      return "still connecting";
    case RMQ_CONNECTION_PAUSING:
      return "pausing before the next try";
    case RMQ_CONNECTION_CLOSING:
      return "the last connection is still being closed";
    default:
      return "not yet connecting";
  }
}

/* A peer that is silent for less than this may just be slow: what others have under way on the
 * connection is not given up because somebody is in a hurry. */
enum { SILENT_MS = 500 };

/* True when it looks as if nobody were on the other side: it has answered nothing since this request
 * was written, nor, while this one waits for room, taken a byte. */
static bool is_dead(const rmq_request *request, rmq_mono now) {
  const rmq_connection *c = request->connection;
  if (c->state != RMQ_CONNECTION_OPEN) return false;
  if (request->state == RMQ_REQUEST_SENT) {
    return c->read_at.us <= request->written_at.us &&
           rmq_mono_diff_ms(now, c->asked_at) >= SILENT_MS;
  }
  return rmq_mono_diff_ms(now, c->traffic_at) >= SILENT_MS;
}

/* Writes why a request's time was over, and returns the status that this is. */
static int explain_late(const rmq_request *request, bool dead, rmq_mono now, char *why,
                        size_t size) {
  const rmq_connection *c = request->connection;
  long long ms = (long long)rmq_mono_diff_ms(now, request->written_at);
  const char *closed = dead ? ", and nothing else came on the connection: it is closed" : "";
  if (request->state != RMQ_REQUEST_WAITING) {
    snprintf(why, size, "no %s within %lld ms%s", request->oneway ? "room to send" : "reply", ms,
             closed);
    return RMQ_ETIMEOUT;
  }
  if (c->state == RMQ_CONNECTION_OPEN) {
    snprintf(why, size, "the connection took no more data for %lld ms%s", ms, closed);
    return RMQ_ETIMEOUT;
  }
  snprintf(why, size, "no connection within %lld ms (%s)%s%s", ms, what_it_waits_for(c),
           c->reason[0] ? "; before: " : "", c->reason);
  return RMQ_ECONNECT;
}

static void on_deadline(rmq_timer *timer) {
  rmq_request *request = rmq_link_owner(timer, rmq_request, timer);
  rmq_connection *c = request->connection;
  rmq_mono now = rmq_transport_now(c->transport);
  c->transport->stats.timeouts++;
  char why[RMQ_REASON_TEXT + 128];
  bool dead = is_dead(request, now);
  int status = explain_late(request, dead, now, why, sizeof why);
  rmq_request_detach(request);
  if (dead) {
    rmq_connection_count_failure(c, why);
    rmq_connection_stop(c);
    rmq_connection_doom(c, RMQ_ECLOSED, "closed because the other side does not answer");
  }
  rmq_request_end(request, status, NULL, rmq_slice_make(NULL, 0), why);
  if (dead) rmq_connection_settle(c);
}

/* Ends a hurried request with what the last try said, and lets the next try come when it is time. */
static void turn_away(rmq_connection *c, rmq_request *request) {
  request->state = RMQ_REQUEST_WAITING;
  rmq_link_append(&c->turned_away, &request->link);
  bool pauses = rmq_mono_before(request->written_at, c->pause_until);
  if (c->state == RMQ_CONNECTION_IDLE && !pauses) c->wanted = true;
  rmq_connection_touch(c);
}

static void take_request(rmq_connection *c, rmq_request *request) {
  rmq_transport *t = c->transport;
  rmq_link_init(&request->link);
  rmq_timer_init(&request->timer, on_deadline);
  request->connection = c;
  request->end_at = request->start_at = 0;
  t->stats.pending++;
  rmq_transport_timer(t, &request->timer, request->deadline);
}

void rmq_transport_expect(rmq_transport *t, bool on) {
  if (on) {
    t->expected++;
  } else {
    t->expected--;
  }
}

void rmq_transport_invoke(rmq_transport *t, const char *addr, rmq_request *request) {
  rmq_connection *c = connection_of(t, addr);
  c->unwanted = false;
  take_request(c, request);
  rmq_mono now = rmq_transport_now(t);
  if (rmq_connection_has_room(c) && rmq_mono_before(now, request->deadline)) {
    rmq_connection_send(c, request);
    return;
  }
  request->written_at = now; /* until it is encoded: since when it waits */
  if (request->hurried && rmq_connection_is_doubtful(c)) {
    turn_away(c, request);
    return;
  }
  request->state = RMQ_REQUEST_WAITING;
  rmq_link_append(&c->waiting, &request->link);
  /* Without room the socket's next event goes on. With room, this one waits behind one whose
   * time is over and which is about to go. */
  if (c->state == RMQ_CONNECTION_IDLE || (c->state == RMQ_CONNECTION_OPEN && !c->wants_write)) {
    rmq_connection_touch(c);
  }
}

uint64_t rmq_transport_origin(const rmq_transport *t) { return t->from ? t->from->number : 0; }

bool rmq_transport_invoke_on(rmq_transport *t, uint64_t origin, rmq_request *request) {
  for (rmq_link *link = t->every.next; link != &t->every; link = link->next) {
    rmq_connection *c = rmq_link_owner(link, rmq_connection, every);
    if (c->number != origin || c->state != RMQ_CONNECTION_OPEN || c->write_error) continue;
    take_request(c, request);
    rmq_connection_send(c, request);
    return true;
  }
  return false;
}

void rmq_transport_cancel(rmq_transport *t, rmq_request *request) {
  (void)t;
  if (request->state == RMQ_REQUEST_FREE) return;
  rmq_request_detach(request);
  request->connection = NULL;
}

void rmq_transport_answer(rmq_transport *t, const rmq_header *request, int32_t code,
                          rmq_slice remark, rmq_slice body) {
  rmq_connection *c = t->from;
  if (!c || c->state != RMQ_CONNECTION_OPEN) return;
  rmq_command command = rmq_command_request(code, request->opaque, RMQ_FLAG_RESPONSE);
  command.remark = remark;
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, &c->out, t->config.serialize, &command);
  rmq_frame_end(&writer, body);
  rmq_connection_touch(c);
}

static void close_connection(rmq_connection *c) {
  c->wanted = false;
  if (c->state != RMQ_CONNECTION_IDLE && c->state != RMQ_CONNECTION_CLOSING) {
    rmq_connection_stop(c);
  }
  rmq_connection_doom(c, RMQ_ECLOSED, "closed by this side");
  rmq_connection_touch(c); /* done comes at the end of the turn, not from in here */
}

void rmq_transport_close(rmq_transport *t, const char *addr) {
  rmq_connection *c = rmq_map_get(t->connections, rmq_slice_text(addr));
  if (c) close_connection(c);
}

void rmq_transport_close_all(rmq_transport *t) {
  for (rmq_link *link = t->every.next; link != &t->every; link = link->next) {
    close_connection(rmq_link_owner(link, rmq_connection, every));
  }
}

void rmq_transport_retire(rmq_transport *t, const char *addr) {
  rmq_connection *c = rmq_map_get(t->connections, rmq_slice_text(addr));
  if (!c) return;
  if (c->state != RMQ_CONNECTION_OPEN) {
    rmq_transport_close(t, addr);
    return;
  }
  c->unwanted = true;
  rmq_connection_touch(c); /* perhaps nothing is pending on it */
  rmq_connection_doom_waiting(c, RMQ_ECLOSED, "closed by this side");
}

bool rmq_transport_is_connected(const rmq_transport *t, const char *addr) {
  rmq_connection *c = rmq_map_get(t->connections, rmq_slice_text(addr));
  return c && c->state == RMQ_CONNECTION_OPEN && !c->write_error;
}

/* --- time and the rest --- */

void rmq_transport_timer(rmq_transport *t, rmq_timer *timer, rmq_mono at) {
  rmq_timer_set(t->wheel, timer, at);
  if (at.us >= t->wake_time.us) return;
  t->wake_time = at;
  t->calls->wake_at(t->io, at);
}

void rmq_transport_timer_stop(rmq_transport *t, rmq_timer *timer) {
  rmq_timer_stop(t->wheel, timer);
}

rmq_mono rmq_transport_now(const rmq_transport *t) { return t->calls->now(t->io); }
rmq_io *rmq_transport_io(const rmq_transport *t) { return t->io; }
const rmq_transport_stats *rmq_transport_stats_of(const rmq_transport *t) { return &t->stats; }

/* How a connection is made: names, addresses one after the other, pauses after failures. */

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/connection.h"

/* The longest pause is well below the time that a send has: one that waits through it still finds a
 * server that has come back. */
enum { PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 1000 };

/* A connection that is told to go away after less than this was made to a server that sends everybody
 * away, perhaps for good. */
enum { SOON_MS = 10 * PAUSE_MAX_MS };

/* Splits "host:port" and "[v6]:port". Leaves `host` NULL when it is neither. */
static void parse_addr(rmq_connection *c, rmq_slice addr) {
  size_t colon = addr.len;
  while (colon > 0 && addr.ptr[colon - 1] != ':') colon--;
  uint32_t port = 0;
  for (size_t i = colon; i < addr.len; i++) {
    if (addr.ptr[i] < '0' || addr.ptr[i] > '9' || port > UINT16_MAX) return;
    port = port * 10 + (uint32_t)(addr.ptr[i] - '0');
  }
  if (colon < 2 || port == 0 || port > UINT16_MAX) return;
  rmq_slice host = rmq_slice_make(addr.ptr, colon - 1);
  if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
    host = rmq_slice_make(host.ptr + 1, host.len - 2);
  }
  c->host = rmq_copy_text(host.ptr, host.len);
  c->port = (uint16_t)port;
}

static void on_timer(rmq_timer *timer);

rmq_connection *rmq_connection_new(rmq_transport *transport, rmq_slice addr) {
  rmq_connection *c = rmq_alloc_zero(1, sizeof *c);
  c->transport = transport;
  c->addr = rmq_copy_text(addr.ptr, addr.len);
  parse_addr(c, addr);
  rmq_timer_init(&c->timer, on_timer);
  rmq_link_init(&c->every);
  rmq_link_append(&transport->every, &c->every);
  rmq_link_init(&c->dirty);
  rmq_link_init(&c->late);
  rmq_link_init(&c->waiting);
  rmq_link_init(&c->sent);
  rmq_link_init(&c->leaving);
  rmq_link_init(&c->doomed);
  rmq_link_init(&c->turned_away);
  return c;
}

void rmq_connection_delete(rmq_connection *c) {
  rmq_link_remove(&c->every);
  rmq_link_remove(&c->dirty);
  rmq_link_remove(&c->late);
  rmq_pending_clear(&c->pending);
  free(c->found);
  free(c->host);
  free(c->addr);
  free(c);
}

static void set_timer(rmq_connection *c, rmq_mono at) {
  rmq_transport_timer(c->transport, &c->timer, at);
}

static void stop_timer(rmq_connection *c) { rmq_transport_timer_stop(c->transport, &c->timer); }

/* An idle connection whose address nobody asks for any more is forgotten after a while, so
 * addresses that come and go do not pile up. */
static void rest(rmq_connection *c) {
  c->state = RMQ_CONNECTION_IDLE;
  int64_t keep_ms = c->transport->config.idle_timeout_ms;
  if (keep_ms > 0) {
    set_timer(c, rmq_mono_add_ms(rmq_transport_now(c->transport), keep_ms));
  } else {
    stop_timer(c);
  }
  if (!rmq_link_alone(&c->waiting)) rmq_connection_touch(c);
}

static void take_out(rmq_connection *c) {
  rmq_transport *t = c->transport;
  rmq_map_remove(t->connections, rmq_slice_text(c->addr));
  for (int i = 0; i < RMQ_RECENT; i++) {
    if (t->recent[i] == c) t->recent[i] = NULL;
  }
}

static void forget(rmq_connection *c) {
  if (!rmq_link_alone(&c->waiting) || !rmq_link_alone(&c->doomed) ||
      !rmq_link_alone(&c->turned_away)) {
    rest(c);
    return;
  }
  take_out(c);
  rmq_connection_delete(c);
}

/* Before the next try after so many failures: 0, then 100 ms doubling to 1 s, each 20% more or less,
 * so that many clients of a server that comes back do not come back all at once. */
static rmq_mono pause_after(rmq_connection *c, int failures) {
  rmq_mono now = rmq_transport_now(c->transport);
  if (failures < 2) return now;
  int doublings = failures - 2;
  int64_t ms = doublings > 3 ? PAUSE_MAX_MS : (int64_t)PAUSE_FIRST_MS << doublings;
  int64_t permille = 800 + (int64_t)(c->transport->calls->random(c->transport->io) % 401);
  return (rmq_mono){now.us + ms * permille};
}

void rmq_connection_count_failure(rmq_connection *c, const char *why) {
  snprintf(c->last_failure, sizeof c->last_failure, "%s", why);
  if (c->failures < INT32_MAX) c->failures++;
  c->pause_until = pause_after(c, c->failures);
}

bool rmq_connection_is_doubtful(const rmq_connection *c) {
  if (c->state == RMQ_CONNECTION_OPEN) return false;
  return c->failures > 0 || rmq_mono_before(rmq_transport_now(c->transport), c->pause_until);
}

void rmq_connection_replace(rmq_connection *c) {
  rmq_transport *t = c->transport;
  if (c->retired) return;
  take_out(c);
  c->retired = c->unwanted = true;
  rmq_connection_touch(c); /* perhaps nothing else is pending on it */
  rmq_slice addr = rmq_slice_text(c->addr);
  rmq_connection *next = rmq_connection_new(t, addr);
  rmq_map_set(t->connections, addr, next);
  bool soon = rmq_mono_diff_ms(rmq_transport_now(t), c->opened_at) < SOON_MS;
  next->go_aways = soon && c->go_aways < INT32_MAX ? c->go_aways + 1 : 1;
  next->pause_until = pause_after(next, next->go_aways);
  snprintf(next->last_failure, sizeof next->last_failure, "sent away (GO_AWAY)");
  for (rmq_link *link = c->waiting.next; link != &c->waiting; link = link->next) {
    rmq_link_owner(link, rmq_request, link)->connection = next;
  }
  rmq_link_splice(&next->waiting, &c->waiting);
  rest(next);
}

/* Ends an attempt that gave no connection. The reason stands in c->reason. */
static void give_up(rmq_connection *c, int status) {
  rmq_transport_stats *stats = &c->transport->stats;
  stats->connect_failures++;
  rmq_log_line(c->transport->config.log, RMQ_LOG_DEBUG, "no connection to %s: %s", c->addr,
               c->reason);
  rmq_connection_count_failure(c, c->reason);
  free(c->found);
  c->found = NULL;
  rmq_connection_doom(c, status, c->reason);
  rest(c);
  rmq_connection_settle(c);
}

static void add_reason(rmq_connection *c, const char *why) {
  size_t len = strlen(c->reason);
  snprintf(c->reason + len, sizeof c->reason - len, "%s%s (%s)", len ? "; " : "", why, c->remote);
}

/* The next address gets an equal share of what is left, the last one all of it. */
static void set_share(rmq_connection *c) {
  rmq_mono now = rmq_transport_now(c->transport);
  int64_t left = rmq_mono_diff_us(c->give_up_at, now);
  int64_t share = left / (int64_t)(c->n_found - c->tried + 1);
  set_timer(c, (rmq_mono){now.us + (share > 0 ? share : 0)});
}

static void try_next(rmq_connection *c) {
  rmq_transport *t = c->transport;
  c->state = RMQ_CONNECTION_CONNECTING;
  while (c->tried < c->n_found) {
    rmq_address *address = &c->found[c->tried++];
    address->port = c->port;
    rmq_address_format(address, c->remote);
    c->timed_out = c->socket_closing = false;
    int status = t->calls->open(t->io, address, &rmq_connection_events, c, &c->socket);
    if (status == 0) {
      t->sockets++;
      set_share(c);
      return;
    }
    c->socket = NULL;
    add_reason(c, t->calls->text(t->io, status));
  }
  give_up(c, RMQ_ECONNECT);
}

static void use_addresses(rmq_connection *c, const rmq_address *found, size_t n) {
  c->found = rmq_alloc(n * sizeof *found);
  memcpy(c->found, found, n * sizeof *found);
  c->n_found = n;
  c->tried = 0;
  try_next(c);
}

static void on_lookup(void *arg, int status, const rmq_address *found, size_t n) {
  rmq_connection *c = arg;
  rmq_transport *t = c->transport;
  rmq_transport_enter(t);
  c->lookup = NULL;
  if (status == 0 && n > 0) {
    use_addresses(c, found, n);
  } else {
    snprintf(c->reason, sizeof c->reason, "%s (%s)", t->calls->text(t->io, status), c->host);
    give_up(c, RMQ_ELOOKUP);
  }
  rmq_transport_leave(t);
}

static void connect_now(rmq_connection *c) {
  rmq_transport *t = c->transport;
  rmq_address address;
  c->reason[0] = c->remote[0] = '\0';
  if (!c->host) {
    snprintf(c->reason, sizeof c->reason,
             "\"%.200s\" is no address: host:port is needed, with a port from 1 to 65535", c->addr);
    give_up(c, RMQ_ECONNECT);
    return;
  }
  c->give_up_at = rmq_mono_add_ms(rmq_transport_now(t), t->config.connect_timeout_ms);
  if (rmq_address_parse(rmq_slice_text(c->host), c->port, &address)) {
    use_addresses(c, &address, 1);
    return;
  }
  c->state = RMQ_CONNECTION_RESOLVING;
  set_timer(c, c->give_up_at);
  c->lookup = t->calls->lookup(t->io, c->host, on_lookup, c);
}

void rmq_connection_begin(rmq_connection *c) {
  if (rmq_mono_before(rmq_transport_now(c->transport), c->pause_until)) {
    c->state = RMQ_CONNECTION_PAUSING;
    set_timer(c, c->pause_until);
  } else {
    connect_now(c);
  }
}

static void close_socket(rmq_connection *c) {
  if (c->socket_closing) return;
  c->socket_closing = true;
  c->transport->calls->close(c->socket);
}

void rmq_connection_stop(rmq_connection *c) {
  rmq_transport *t = c->transport;
  if (c->lookup) {
    t->calls->lookup_cancel(t->io, c->lookup);
    c->lookup = NULL;
  }
  free(c->found);
  c->found = NULL;
  if (c->state == RMQ_CONNECTION_OPEN) t->stats.connections--;
  if (c->socket) {
    close_socket(c);
    c->state = RMQ_CONNECTION_CLOSING;
    stop_timer(c);
  } else {
    rest(c);
  }
}

static void on_connect_timer(rmq_connection *c) {
  rmq_transport *t = c->transport;
  if (c->state == RMQ_CONNECTION_RESOLVING) {
    t->calls->lookup_cancel(t->io, c->lookup);
    c->lookup = NULL;
    snprintf(c->reason, sizeof c->reason, "no answer about the host name within %lld ms (%s)",
             (long long)t->config.connect_timeout_ms, c->host);
    give_up(c, RMQ_ELOOKUP);
  } else {
    c->timed_out = true;
    close_socket(c); /* its `closed` goes on with the next address */
  }
}

static void on_timer(rmq_timer *timer) {
  rmq_connection *c = rmq_link_owner(timer, rmq_connection, timer);
  switch (c->state) {
    case RMQ_CONNECTION_RESOLVING:
    case RMQ_CONNECTION_CONNECTING:
      on_connect_timer(c);
      break;
    case RMQ_CONNECTION_PAUSING:
      c->state = RMQ_CONNECTION_IDLE;
      if (rmq_link_alone(&c->waiting)) {
        rest(c);
      } else {
        connect_now(c);
      }
      break;
    case RMQ_CONNECTION_OPEN:
      rmq_connection_quiet(c);
      break;
    case RMQ_CONNECTION_IDLE:
      forget(c);
      break;
    case RMQ_CONNECTION_CLOSING:
      break;
  }
}

static void on_connected(void *owner) {
  rmq_connection *c = owner;
  rmq_transport *t = c->transport;
  rmq_transport_enter(t);
  if (c->state == RMQ_CONNECTION_CONNECTING && !c->socket_closing) {
    free(c->found);
    c->found = NULL;
    c->reason[0] = '\0';
    rmq_connection_opened(c);
  }
  rmq_transport_leave(t);
}

static void on_closed(void *owner, int reason) {
  rmq_connection *c = owner;
  rmq_transport *t = c->transport;
  rmq_transport_enter(t);
  t->sockets--;
  c->socket = NULL;
  c->socket_closing = false;
  rmq_buf_free(&c->in);
  rmq_buf_free(&c->out);
  if (!t->freed) {
    if (c->state == RMQ_CONNECTION_CONNECTING) {
      add_reason(c, c->timed_out ? "no answer in time" : t->calls->text(t->io, reason));
      try_next(c);
    } else if (c->retired) {
      rmq_connection_settle(c);
      rmq_connection_delete(c);
    } else {
      rest(c);
    }
  }
  rmq_transport_leave(t);
}

static void on_readable(void *owner) {
  rmq_connection *c = owner;
  rmq_transport *t = c->transport;
  rmq_transport_enter(t);
  if (c->state == RMQ_CONNECTION_OPEN) rmq_connection_read(c, false);
  rmq_transport_leave(t);
}

static void on_writable(void *owner) {
  rmq_connection *c = owner;
  rmq_transport *t = c->transport;
  rmq_transport_enter(t);
  if (c->state == RMQ_CONNECTION_OPEN) {
    t->calls->want_write(c->socket, false);
    c->wants_write = false;
    rmq_connection_pump(c);
  }
  rmq_transport_leave(t);
}

const rmq_io_events rmq_connection_events = {on_connected, on_readable, on_writable, on_closed};

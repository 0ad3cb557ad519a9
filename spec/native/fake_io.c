#include "fake_io.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

enum { MOST = 256, MOST_EVENTS = 2000000 };

struct rmq_lookup {
  void (*done)(void *arg, int status, const rmq_address *found, size_t n);
  void *arg;
  const fake_rule *rule;
  int64_t at;
};

struct fake_io {
  rmq_io io; /* first */
  int64_t now, wake;
  bool flush_asked;
  uint64_t random;
  rmq_identity identity;
  const fake_rule *rules;
  rmq_socket *sockets[MOST];
  rmq_lookup *lookups[MOST];
  size_t opened, looked_up;
  int64_t wakes;
};

static fake_io *of(rmq_io *io) { return (fake_io *)(void *)io; }

static void broken_rule(const char *what) {
  fprintf(stderr, "fake_io: %s\n", what);
  abort();
}

static const fake_rule *rule_for(const fake_io *fake, const char *name) {
  for (const fake_rule *rule = fake->rules; rule && rule->name; rule++) {
    if (strcmp(rule->name, name) == 0) return rule;
  }
  return NULL;
}

static int64_t time_of(const fake_io *fake, const fake_rule *rule) {
  if (!rule) return fake->now;
  return rule->delay_ms < 0 ? INT64_MAX : fake->now + rule->delay_ms * 1000;
}

/* --- the table --- */

static rmq_mono now(rmq_io *io) { return (rmq_mono){of(io)->now}; }
static rmq_wall wall(rmq_io *io) { return (rmq_wall){1700000000000 + of(io)->now / 1000}; }

static uint64_t random_number(rmq_io *io) {
  uint64_t x = of(io)->random += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  return x ^ x >> 27;
}

static const rmq_identity *identity(rmq_io *io) { return &of(io)->identity; }
static void wake_at(rmq_io *io, rmq_mono at) { of(io)->wake = at.us; }
static void end_of_turn(rmq_io *io) { of(io)->flush_asked = true; }

static rmq_lookup *lookup(rmq_io *io, const char *host,
                          void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                          void *arg) {
  fake_io *fake = of(io);
  rmq_lookup *l = rmq_alloc_zero(1, sizeof *l);
  *l = (rmq_lookup){done, arg, rule_for(fake, host), 0};
  l->at = time_of(fake, l->rule);
  fake->lookups[fake->looked_up++ % MOST] = l;
  return l;
}

static void lookup_cancel(rmq_io *io, rmq_lookup *l) {
  for (size_t i = 0; i < MOST; i++) {
    if (of(io)->lookups[i] != l) continue;
    of(io)->lookups[i] = NULL;
    free(l);
    return;
  }
  broken_rule("a lookup was cancelled that is not under way");
}

static int open_socket(rmq_io *io, const rmq_address *address, const rmq_io_events *events,
                       void *owner, rmq_socket **out) {
  fake_io *fake = of(io);
  rmq_socket *s = rmq_alloc_zero(1, sizeof *s);
  rmq_address_format(address, s->address);
  const fake_rule *rule = rule_for(fake, s->address);
  fake->opened++;
  if (rule && rule->at_once) {
    free(s);
    fake->sockets[(fake->opened - 1) % MOST] = NULL;
    return rule->status;
  }
  s->fake = fake;
  s->read_most = s->write_room = SIZE_MAX;
  s->status = rule ? rule->status : 0;
  s->decided_at = time_of(fake, rule);
  s->events = events;
  s->owner = owner;
  if (fake->sockets[(fake->opened - 1) % MOST]) broken_rule("too many sockets");
  fake->sockets[(fake->opened - 1) % MOST] = s;
  *out = s;
  return 0;
}

static long read_socket(rmq_socket *s, void *into, size_t size) {
  if (!s->connected || s->closing) broken_rule("read from a socket that is not open");
  size_t len = rmq_buf_len(&s->coming);
  if (len == 0) return s->end;
  if (len > size) len = size;
  if (len > s->read_most) len = s->read_most;
  memcpy(into, rmq_buf_head(&s->coming), len);
  rmq_buf_consume(&s->coming, len);
  return (long)len;
}

static long write_socket(rmq_socket *s, const rmq_slice *parts, size_t n) {
  if (!s->connected || s->closing) broken_rule("write to a socket that is not open");
  if (s->end && s->end != RMQ_ECLOSED) return s->end;
  long taken = 0;
  for (size_t i = 0; i < n; i++) {
    size_t len = parts[i].len < s->write_room ? parts[i].len : s->write_room;
    rmq_buf_bytes(&s->sent, parts[i].ptr, len);
    s->write_room -= len;
    taken += (long)len;
  }
  return taken;
}

static void want_write(rmq_socket *s, bool on) { s->wants_write = on; }

static void close_socket(rmq_socket *s) {
  if (s->closing) broken_rule("a socket was closed twice");
  s->closing = true;
}

static const char *text(rmq_io *io, int code) {
  (void)io;
  switch (code) {
    case FAKE_REFUSED:
      return "connection refused";
    case FAKE_RESET:
      return "connection reset by the other side";
    case FAKE_NO_NAME:
      return "no such host name";
    default:
      return "some error";
  }
}

static const rmq_io_calls calls = {
    now,           wall,        random_number, identity,     wake_at,    end_of_turn,  lookup,
    lookup_cancel, open_socket, read_socket,   write_socket, want_write, close_socket, text};

/* --- events --- */

static void forget_socket(rmq_socket *s, int reason) {
  fake_io *fake = s->fake;
  for (size_t i = 0; i < MOST; i++) {
    if (fake->sockets[i] == s) fake->sockets[i] = NULL;
  }
  const rmq_io_events *events = s->events;
  void *owner = s->owner;
  rmq_buf_free(&s->coming);
  rmq_buf_free(&s->sent);
  free(s);
  events->closed(owner, reason);
}

/* At most one event of a socket; false when it has none. */
static bool deliver_socket(rmq_socket *s) {
  if (s->closing) {
    forget_socket(s, 0);
  } else if (!s->connected) {
    if (s->decided_at > s->fake->now) return false;
    if (s->status != 0) {
      forget_socket(s, s->status);
    } else {
      s->connected = true;
      s->events->connected(s->owner);
    }
  } else if (rmq_buf_len(&s->coming) > 0 || s->end) {
    s->events->readable(s->owner);
  } else if (s->wants_write && s->write_room > 0) {
    s->events->writable(s->owner);
  } else {
    return false;
  }
  return true;
}

static void deliver_lookup(fake_io *fake, size_t which) {
  rmq_lookup *l = fake->lookups[which];
  rmq_address found[8];
  size_t n = 0;
  fake->lookups[which] = NULL;
  int status = l->rule ? l->rule->status : FAKE_NO_NAME;
  for (const char *at = l->rule ? l->rule->found : NULL; at && *at && n < 8;) {
    size_t len = strcspn(at, " ");
    if (rmq_address_parse(rmq_slice_make(at, len), 0, &found[n])) n++;
    at += len + (at[len] == ' ');
  }
  l->done(l->arg, status, found, n);
  free(l);
}

static bool deliver_one_turn(fake_io *fake) {
  bool any = false;
  if (fake->wake <= fake->now) {
    any = true;
    fake->wake = INT64_MAX;
    fake->wakes++;
    fake->io.host->wake(fake->io.owner);
  }
  if (fake->flush_asked) {
    any = true;
    fake->flush_asked = false;
    fake->io.host->flush(fake->io.owner);
  }
  for (size_t i = 0; i < MOST; i++) {
    if (fake->sockets[i] && deliver_socket(fake->sockets[i])) any = true;
  }
  for (size_t i = 0; i < MOST; i++) {
    if (!fake->lookups[i] || fake->lookups[i]->at > fake->now) continue;
    any = true;
    deliver_lookup(fake, i);
  }
  return any;
}

void fake_settle(fake_io *fake) {
  for (int events = 0; deliver_one_turn(fake); events++) {
    if (events > MOST_EVENTS) broken_rule("events do not end");
  }
}

static int64_t next_time(const fake_io *fake) {
  int64_t next = fake->wake;
  for (size_t i = 0; i < MOST; i++) {
    const rmq_socket *s = fake->sockets[i];
    if (s && !s->connected && s->decided_at < next) next = s->decided_at;
    const rmq_lookup *l = fake->lookups[i];
    if (l && l->at < next) next = l->at;
  }
  return next;
}

void fake_advance(fake_io *fake, int64_t ms) {
  int64_t target = fake->now + ms * 1000;
  fake_settle(fake);
  for (int64_t next; (next = next_time(fake)) <= target;) {
    if (next > fake->now) fake->now = next;
    fake_settle(fake);
  }
  fake->now = target;
}

void fake_jump(fake_io *fake, int64_t ms) { fake->now += ms * 1000; }

/* --- the test's side --- */

static void nothing(void *owner) { (void)owner; }
static const rmq_io_host nobody = {nothing, nothing};

fake_io *fake_new(void) {
  fake_io *fake = rmq_alloc_zero(1, sizeof *fake);
  fake->io = (rmq_io){&calls, &nobody, NULL};
  fake->now = 1000000123;
  fake->wake = INT64_MAX;
  fake->identity = (rmq_identity){{10, 0, 0, 9}, 4, 4711, 0xabcdef01};
  return fake;
}

void fake_free(fake_io *fake) {
  if (fake_alive(fake) > 0) broken_rule("sockets are left");
  for (size_t i = 0; i < MOST; i++) {
    if (fake->lookups[i]) broken_rule("a lookup is left");
  }
  free(fake);
}

rmq_io *fake_io_of(fake_io *fake) { return &fake->io; }
void fake_set_rules(fake_io *fake, const fake_rule *rules) { fake->rules = rules; }
size_t fake_opened(const fake_io *fake) { return fake->opened; }
size_t fake_lookups(const fake_io *fake) { return fake->looked_up; }
int64_t fake_wakes(const fake_io *fake) { return fake->wakes; }

size_t fake_alive(const fake_io *fake) {
  size_t alive = 0;
  for (size_t i = 0; i < MOST; i++) alive += fake->sockets[i] != NULL;
  return alive;
}

rmq_socket *fake_last(fake_io *fake) {
  return fake->opened ? fake->sockets[(fake->opened - 1) % MOST] : NULL;
}

void fake_send(rmq_socket *s, const void *bytes, size_t len) {
  rmq_buf_bytes(&s->coming, bytes, len);
}

void fake_end(rmq_socket *s, int code) { s->end = code; }

/* clock_gettime */
#define _GNU_SOURCE

#include "net/uv/uv_io.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/splitmix.h"
#include "net/uv/uv_state.h"

/* --- time --- */

static rmq_mono read_clock(void) { return (rmq_mono){(int64_t)(uv_hrtime() / 1000)}; }

/* A clock that moves every few milliseconds and costs a tenth of the exact one; where there is none, one
 * that has always moved. */
static int64_t read_coarse_clock(const rmq_uv_io *uv) {
#ifdef CLOCK_MONOTONIC_COARSE
  struct timespec time;
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &time) == 0) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  }
#endif
  return uv->coarse_ns + 1;
}

static void set_clocks(rmq_uv_io *uv) {
  uv->coarse_ns = read_coarse_clock(uv);
  uv->now = read_clock();
  uv->wall_known = false;
}

void rmq_uv_event_begin(rmq_uv_io *uv) {
  if (uv->inside++ == 0) set_clocks(uv);
}

void rmq_uv_event_end(rmq_uv_io *uv) { uv->inside--; }

void rmq_uv_io_refresh(rmq_io *io) {
  rmq_uv_io *uv = rmq_uv_of(io);
  if (uv->inside && read_coarse_clock(uv) != uv->coarse_ns) set_clocks(uv);
}

/* Outside of events a script may have computed for a while: the clock is read each time. */
static rmq_mono now(rmq_io *io) {
  rmq_uv_io *uv = rmq_uv_of(io);
  return uv->inside ? uv->now : read_clock();
}

/* One event may send hundreds of messages, and each wants to know. */
static rmq_wall wall(rmq_io *io) {
  rmq_uv_io *uv = rmq_uv_of(io);
  if (uv->inside && uv->wall_known) return uv->wall;
  uv_timeval64_t time;
  uv_gettimeofday(&time);
  uv->wall = (rmq_wall){time.tv_sec * 1000 + time.tv_usec / 1000};
  uv->wall_known = true;
  return uv->wall;
}

static void on_timer(uv_timer_t *timer);

/* uv_timer counts from the loop's own time, which stands still while callbacks run. Rounding up
 * to its milliseconds keeps the wake from coming early. */
static void start_timer(rmq_uv_io *uv) {
  int64_t at_ms = uv->wake_time.us / 1000 + (uv->wake_time.us % 1000 > 0);
  int64_t delay = at_ms - (int64_t)uv_now(uv->loop);
  uv_timer_start(&uv->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
}

static void on_timer(uv_timer_t *timer) {
  rmq_uv_io *uv = timer->data;
  if (rmq_mono_before(read_clock(), uv->wake_time)) {
    start_timer(uv);
    return;
  }
  uv->wake_time = RMQ_NEVER;
  rmq_uv_event_begin(uv);
  uv->io.host->wake(uv->io.owner);
  rmq_uv_event_end(uv);
}

static void wake_at(rmq_io *io, rmq_mono at) {
  rmq_uv_io *uv = rmq_uv_of(io);
  uv->wake_time = at;
  if (at.us == RMQ_NEVER.us) {
    uv_timer_stop(&uv->timer);
  } else {
    start_timer(uv);
  }
}

/* --- the end of a turn --- */

static void on_idle(uv_idle_t *idle) { (void)idle; }

static void on_prepare(uv_prepare_t *prepare) {
  rmq_uv_io *uv = prepare->data;
  uv_idle_stop(&uv->idle);
  uv->between = true;
  if (!uv->flush_asked) return;
  uv->flush_asked = false;
  rmq_uv_event_begin(uv);
  uv->io.host->flush(uv->io.owner);
  rmq_uv_event_end(uv);
}

static void on_check(uv_check_t *check) {
  rmq_uv_io *uv = check->data;
  uv->between = false;
}

/* The flush comes from the prepare phase, which is the last before the loop waits. When this
 * turn's is over (a flush that asks for another one, another user's prepare callback), the loop
 * must not wait. */
static void end_of_turn(rmq_io *io) {
  rmq_uv_io *uv = rmq_uv_of(io);
  uv->flush_asked = true;
  if (uv->between) uv_idle_start(&uv->idle, on_idle);
}

/* --- chance and identity --- */

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* xoshiro256** */
static uint64_t random_number(rmq_io *io) {
  uint64_t *s = rmq_uv_of(io)->random;
  uint64_t result = rotate(s[1] * 5, 7) * 9;
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

void rmq_uv_io_seed(rmq_io *io, uint64_t seed) {
  uint64_t *s = rmq_uv_of(io)->random;
  for (int i = 0; i < 4; i++) s[i] = rmq_splitmix(&seed); /* different words, and not all zeros */
}

static int become_somebody(rmq_uv_io *uv) {
  int status = uv_random(NULL, NULL, uv->random, sizeof uv->random, 0, NULL);
  if (status != 0) return status;
  uv->random[0] |= 1; /* all zeros would stay zeros */
  uv->identity.pid = (uint32_t)getpid();
  uv->identity.tag = (uint32_t)(random_number(&uv->io) >> 32);
  return 0;
}

static const rmq_identity *identity(rmq_io *io) { return &rmq_uv_of(io)->identity; }

static const char *text(rmq_io *io, int code) {
  rmq_uv_io *uv = rmq_uv_of(io);
  switch (code) {
    case RMQ_ECLOSED:
      return "closed by the other side";
    case UV_ECONNREFUSED:
      return "connection refused";
    case UV_ECONNRESET:
      return "connection reset by the other side";
    case UV_EPIPE:
      return "closed by the other side";
    case UV_ECONNABORTED:
      return "connection aborted";
    case UV_ETIMEDOUT:
      return "no answer from the host";
    case UV_EHOSTUNREACH:
      return "host unreachable";
    case UV_ENETUNREACH:
      return "network unreachable";
    case UV_ENETDOWN:
      return "network down";
    case UV_EADDRNOTAVAIL:
      return "no local port or address left";
    case UV_EMFILE:
      return "too many open files in this process";
    case UV_ENFILE:
      return "too many open files on this machine";
    case UV_EACCES:
      return "not permitted (a firewall?)";
    case UV_EPERM:
      return "not permitted (a firewall?)";
    case UV_EAI_NONAME:
      return "no such host name";
    case UV_EAI_NODATA:
      return "the host name has no address";
    case UV_EAI_AGAIN:
      return "the name resolver does not answer";
    default:
      /* Not uv_strerror: it leaks memory for a code that it does not know. */
      return uv_strerror_r(code, uv->text, sizeof uv->text);
  }
}

static const rmq_io_calls calls = {
    .now = now,
    .wall = wall,
    .random = random_number,
    .identity = identity,
    .wake_at = wake_at,
    .end_of_turn = end_of_turn,
    .lookup = rmq_uv_lookup,
    .lookup_cancel = rmq_uv_lookup_cancel,
    .open = rmq_uv_open,
    .read = rmq_uv_read,
    .write = rmq_uv_write,
    .want_write = rmq_uv_want_write,
    .close = rmq_uv_close,
    .text = text,
};

/* --- life --- */

static void nothing(void *owner) { (void)owner; }
static const rmq_io_host nobody = {nothing, nothing};

rmq_io *rmq_uv_io_new(uv_loop_t *loop) {
  rmq_uv_io *uv = rmq_alloc_zero(1, sizeof *uv);
  uv->io = (rmq_io){.calls = &calls, .host = &nobody, .owner = NULL};
  uv->loop = loop;
  uv->wake_time = RMQ_NEVER;
  if (become_somebody(uv) != 0) {
    free(uv);
    return NULL;
  }
  rmq_uv_local_ip(&uv->identity);
  /* These four cannot fail: they take nothing from the system. */
  uv_timer_init(loop, &uv->timer);
  uv_prepare_init(loop, &uv->prepare);
  uv_check_init(loop, &uv->check);
  uv_idle_init(loop, &uv->idle);
  uv_prepare_start(&uv->prepare, on_prepare);
  uv_check_start(&uv->check, on_check);
  uv->timer.data = uv->prepare.data = uv->check.data = uv->idle.data = uv;
  uv_unref((uv_handle_t *)&uv->timer);
  uv_unref((uv_handle_t *)&uv->prepare);
  uv_unref((uv_handle_t *)&uv->check);
  uv_unref((uv_handle_t *)&uv->idle);
  uv->users = 4;
  return &uv->io;
}

void rmq_uv_release(rmq_uv_io *uv) {
  if (--uv->users == 0) free(uv);
}

static void on_handle_closed(uv_handle_t *handle) { rmq_uv_release(handle->data); }

void rmq_uv_io_free(rmq_io *io) {
  if (!io) return;
  rmq_uv_io *uv = rmq_uv_of(io);
  uv_close((uv_handle_t *)&uv->timer, on_handle_closed);
  uv_close((uv_handle_t *)&uv->prepare, on_handle_closed);
  uv_close((uv_handle_t *)&uv->check, on_handle_closed);
  uv_close((uv_handle_t *)&uv->idle, on_handle_closed);
}

void rmq_uv_io_forked(rmq_io *io) { become_somebody(rmq_uv_of(io)); }

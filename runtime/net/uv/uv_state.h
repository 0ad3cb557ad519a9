#ifndef RMQ_NET_UV_STATE_H
#define RMQ_NET_UV_STATE_H

#include <uv.h>

#include "net/io.h"

/* Inside of rmq_io on libuv. */
typedef struct rmq_uv_io {
  rmq_io io; /* first: the core sees only this */
  uv_loop_t *loop;
  uv_timer_t timer;     /* of wake_at */
  uv_prepare_t prepare; /* runs before the loop waits: the end of the turn */
  uv_check_t check;     /* runs after it has waited */
  uv_idle_t idle;       /* active: the loop does not wait */
  rmq_mono wake_time;   /* what wake_at was told */
  rmq_mono now;         /* inside an event: what `now` says */
  int64_t coarse_ns;    /* what the coarse clock said when `now` was read */
  rmq_wall wall;        /* inside an event: what `wall` says, once it was asked */
  bool wall_known;
  int inside; /* events being delivered */
  bool flush_asked;
  bool between;       /* this turn's prepare is over, so the end of the turn would come too late */
  size_t users;       /* handles that are not closed yet; the memory goes with the last */
  uint64_t random[4]; /* state of xoshiro256** */
  rmq_identity identity;
  char text[128]; /* what `text` gave last, where libuv made it */
} rmq_uv_io;

static inline rmq_uv_io *rmq_uv_of(rmq_io *io) { return (rmq_uv_io *)(void *)io; }

/* Around whatever is delivered to the core: the time stands still meanwhile. */
void rmq_uv_event_begin(rmq_uv_io *uv);
void rmq_uv_event_end(rmq_uv_io *uv);
/* A handle of the io was closed. */
void rmq_uv_release(rmq_uv_io *uv);

/* uv_socket.c */
int rmq_uv_open(rmq_io *io, const rmq_address *address, const rmq_io_events *events, void *owner,
                rmq_socket **out);
long rmq_uv_read(rmq_socket *socket, void *into, size_t size);
long rmq_uv_write(rmq_socket *socket, const rmq_slice *parts, size_t n);
void rmq_uv_want_write(rmq_socket *socket, bool on);
void rmq_uv_close(rmq_socket *socket);

/* uv_lookup.c */
rmq_lookup *rmq_uv_lookup(rmq_io *io, const char *host,
                          void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                          void *arg);
void rmq_uv_lookup_cancel(rmq_io *io, rmq_lookup *lookup);

#endif

#ifndef RMQ_NET_UV_IO_H
#define RMQ_NET_UV_IO_H

#include <uv.h>

#include "net/io.h"

/* rmq_io on libuv: sockets on uv_poll, names by uv_getaddrinfo, the timer on uv_timer. None of its
 * handles keeps the loop alive (all are unreferenced): whoever waits for something does that. */

/* Makes one. The loop must outlive it. NULL when libuv has no resources left. */
rmq_io *rmq_uv_io_new(uv_loop_t *loop);

/* Starts the end: closes its handles; memory goes when libuv has closed them. All its sockets
 * must be closed or closing. */
void rmq_uv_io_free(rmq_io *io);

/* Reads the clock anew when some milliseconds have gone by. `now` stands still while an event is
 * delivered, however long a script computes inside of one; whoever a script calls asks for this before it
 * computes a deadline. Costs about 5 ns when nothing is to be done. */
void rmq_uv_io_refresh(rmq_io *io);

/* From now on its random numbers follow from this one. */
void rmq_uv_io_seed(rmq_io *io, uint64_t seed);

/* To be called in a forked child (after uv_loop_fork): a new pid and a new tag for ids. */
void rmq_uv_io_forked(rmq_io *io);

/* The address that names this machine in ids and client ids: the first IPv4 of an interface that
 * is up and no loopback and that is not of a private range, else a private IPv4, else a global
 * IPv6, else 127.0.0.1. */
void rmq_uv_local_ip(rmq_identity *identity);

#endif

#ifndef RMQ_NET_TRANSPORT_H
#define RMQ_NET_TRANSPORT_H

#include "base/list.h"
#include "base/log.h"
#include "base/wheel.h"
#include "net/io.h"
#include "wire/header.h"

/* The remoting client of one producer: one connection per address, opened when first needed;
 * requests pipelined on it and answered in any order; one timer wheel for everything that the
 * producer times.
 *
 * A request that finds its connection not yet made, or with too much unsent, waits there
 * unencoded, so one that is given up in time has certainly not been sent.
 *
 * A peer that answers GO_AWAY is taken at its word: `done` gets that answer, what was sent before
 * may still be answered on the old connection, and everything after goes over a new one. */
typedef struct rmq_transport rmq_transport;
typedef struct rmq_connection rmq_connection;

/* How a request ended. Valid during `done` only. */
typedef struct rmq_outcome {
  /* RMQ_OK: a reply came (or, oneway, its bytes are with the kernel); else RMQ_ETIMEOUT,
   * RMQ_ECONNECT, RMQ_ECLOSED, RMQ_ELOOKUP or RMQ_EPROTO. */
  int status;
  const rmq_header *header; /* of the reply, or NULL */
  rmq_slice body;           /* of the reply */
  bool written;             /* some of the request may have reached the peer, or still may */
  const char *detail;       /* why, for a person: "connection refused"; "" when OK */
  const char *remote;       /* the address in numbers when it is known, else "" */
} rmq_outcome;

typedef struct rmq_request rmq_request;

/* All zero before it is invoked for the first time. */
struct rmq_request {
  /* Set by the caller, and unchanged until done. */
  /* Appends the frame. Called at most once, when the connection is ready for it; must not call the
   * transport. */
  void (*encode)(rmq_request *request, rmq_buf *out, int32_t opaque);
  /* Called exactly once, never from inside rmq_transport_invoke, unless the request is
   * cancelled. The request is the caller's again: it may be freed or invoked anew from inside. */
  void (*done)(rmq_request *request, const rmq_outcome *outcome);
  rmq_mono deadline;
  bool oneway;
  /* Rather fails (RMQ_ECONNECT, at the end of the turn) than waits for a connection whose last try
   * failed; the next try is begun all the same when its pause is over. */
  bool hurried;

  /* The transport's. */
  uint8_t state; /* where it is: waiting, sent, ... */
  int32_t opaque;
  int32_t code;  /* of its command, when it was encoded while the transport was watched; else 0 */
  rmq_link link; /* in one of the connection's lists */
  rmq_timer timer;
  rmq_connection *connection;
  uint64_t start_at;   /* the position of its first byte in the connection's stream */
  uint64_t end_at;     /* the position after its last byte; 0: not encoded */
  rmq_mono written_at; /* when it was encoded; before that, since when it waits */
};

/* A request that is about to be sent. */
typedef struct rmq_watched_request {
  const char *addr;
  const rmq_header *header;
  rmq_slice body;
  rmq_buf *added; /* see rmq_watched_add */
} rmq_watched_request;

/* An answer that has come, before `done` of its request. */
typedef struct rmq_watched_response {
  const char *addr;
  int32_t request_code;
  const rmq_header *header;
  rmq_slice body;
  int64_t elapsed_us; /* since the request was encoded */
} rmq_watched_response;

/* What watchers are told. They may start requests, and must not free the transport. */
typedef void rmq_before_request(void *owner, const rmq_watched_request *request);
typedef void rmq_after_response(void *owner, const rmq_watched_response *response);

/* Who watches all requests and answers. Without one nothing is looked at. */
typedef struct rmq_transport_watch {
  rmq_before_request *before_request; /* or NULL */
  rmq_after_response *after_response; /* or NULL */
  void *owner;
} rmq_transport_watch;

/* From inside `before_request`: adds an ext field; adding it once more with the same value does
 * nothing. RMQ_EINVAL when there is one of this name, or the name is empty; RMQ_ELIMIT when it is too much for a header. */
int rmq_watched_add(const rmq_watched_request *request, rmq_slice name, rmq_slice value);

typedef struct rmq_transport_config {
  rmq_io *io; /* must outlive the transport; its host and owner are set by it */
  const rmq_log *log;
  rmq_serialize serialize;    /* of what the transport itself answers */
  int64_t connect_timeout_ms; /* 3000 */
  int64_t idle_timeout_ms;    /* 120000: a connection without traffic is closed; 0: never */
  /* A connection to this address stands. Comes before anything that waits is encoded, so requests
   * invoked on it from inside (a heartbeat) go first. NULL: nobody asks. */
  void (*connected)(void *owner, const char *addr);
  /* A request from the peer. True when it was taken care of (see rmq_transport_answer); false
   * lets the transport answer REQUEST_CODE_NOT_SUPPORTED, unless it is oneway. NULL: always
   * false. */
  bool (*received)(void *owner, const char *addr, const rmq_header *header, rmq_slice body);
  /* The turn ends, as rmq_transport_ask_for_turn asked: what is invoked from inside goes out with the rest.
   * NULL: nobody asks. */
  void (*turn_ends)(void *owner);
  void *owner;
} rmq_transport_config;

typedef struct rmq_transport_stats {
  uint64_t requests, replies, late_replies, timeouts, bytes_written, bytes_read, writes, reads;
  uint64_t connects, connect_failures, closed_by_peer;
  size_t connections, pending; /* now */
} rmq_transport_stats;

rmq_transport *rmq_transport_new(const rmq_transport_config *config);

/* Closes all connections; pending requests are dropped without `done`. The memory goes when the
 * last `closed` event has come. */
void rmq_transport_free(rmq_transport *transport);

/* From now on. All zero: nobody watches. */
void rmq_transport_set_watch(rmq_transport *transport, const rmq_transport_watch *watch);

/* Sends a request to "host:port" (a DNS name is resolved each time a connection is made). */
void rmq_transport_invoke(rmq_transport *transport, const char *addr, rmq_request *request);

/* Gives a request up: `done` will not come, a late reply is counted and dropped. */
void rmq_transport_cancel(rmq_transport *transport, rmq_request *request);

/* Answers a request of the peer from inside `received`, on the connection that it came on. */
void rmq_transport_answer(rmq_transport *transport, const rmq_header *request, int32_t code,
                          rmq_slice remark, rmq_slice body);

/* Which connection the request came on that `received` looks at: a number that no other connection of
 * this transport has, had or will have. 0 outside of `received`. */
uint64_t rmq_transport_origin(const rmq_transport *transport);

/* Sends a request on that very connection, whatever waits for it or is unsent on it. False when it
 * does not stand any more: nothing has happened then, and `done` will not come. */
bool rmq_transport_invoke_on(rmq_transport *transport, uint64_t origin, rmq_request *request);

/* Closes the connection to an address; what is pending on it fails with RMQ_ECLOSED. */
void rmq_transport_close(rmq_transport *transport, const char *addr);

/* Closes all connections like that, also those that a peer sent away. */
void rmq_transport_close_all(rmq_transport *transport);

/* Closes the connection to an address when nothing is pending on it any more. What has not been sent
 * fails with RMQ_ECLOSED. A later request to the address keeps it. */
void rmq_transport_retire(rmq_transport *transport, const char *addr);

/* True when there is a connection to the address that works. */
bool rmq_transport_is_connected(const rmq_transport *transport, const char *addr);

/* From now on somebody waits, up to some time, for a request of the peers (each true wants its false):
 * what has come on any connection is then read before a timer fires, as what has come on those where
 * answers are awaited always is. */
void rmq_transport_expect(rmq_transport *transport, bool on);

/* Lets `turn_ends` come once before the loop waits again. */
void rmq_transport_ask_for_turn(rmq_transport *transport);

/* The wheel and the clock, for whoever times something in the same producer. */
void rmq_transport_timer(rmq_transport *transport, rmq_timer *timer, rmq_mono at);
void rmq_transport_timer_stop(rmq_transport *transport, rmq_timer *timer);
rmq_mono rmq_transport_now(const rmq_transport *transport);
rmq_io *rmq_transport_io(const rmq_transport *transport);
const rmq_transport_stats *rmq_transport_stats_of(const rmq_transport *transport);

#endif

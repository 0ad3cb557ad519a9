#ifndef RMQ_PRODUCER_CALL_H
#define RMQ_PRODUCER_CALL_H

#include "producer/producer.h"
#include "wire/header.h"

/* One request to one broker that is no send: an offset that is asked for, a recall, the end of a
 * transaction. It goes to the master of a named broker, or to an address; it is made once, or once more
 * when it is `repeatable`. */
typedef struct rmq_call_options {
  int32_t code;         /* RMQ_..., of the request */
  rmq_slice broker;     /* its name; empty: `addr` says whom */
  rmq_slice topic;      /* whose route is asked for when none names the broker yet; empty: none */
  rmq_slice addr;       /* "host:port", when there is no broker */
  uint64_t connection;  /* rmq_transport_origin: the one to use as long as it stands; 0: any */
  const rmq_field *ext; /* the header's own fields, as texts */
  size_t n_ext;
  rmq_slice body;
  rmq_slice remark;
  const char *advice; /* what to do when the broker refuses, a literal; NULL: nothing is said */
  bool oneway;        /* done when the bytes are with the kernel */
  /* Doing it twice does no harm: when the connection ends before the answer, as one does that stood
   * idle while its broker was restarted, it is made once more on a new one. */
  bool repeatable;
  bool to_the_end;         /* may start while the producer is shutting down, too */
  void (*drop)(void *arg); /* releases `arg` when `done` never comes: after a fork; or NULL */
  int64_t timeout_ms;      /* with the route question; 0: mq_client_api_timeout */
} rmq_call_options;

/* How a call ended. Valid during `done` only. */
typedef struct rmq_call_end {
  const rmq_failure *failure; /* NULL: the answer is SUCCESS, or, oneway, all was written */
  const rmq_header *header;   /* the answer's, also when its code is another one; NULL: none came */
  rmq_slice body;             /* of the answer */
  rmq_slice broker;           /* its name; empty when it was called by its address */
  rmq_slice addr;
} rmq_call_end;

typedef void rmq_call_done(void *arg, const rmq_call_end *end);

/* Starts a call; everything in `options` is copied. 0: `done` comes exactly once, later, never from
 * inside this call. Negative: nothing was started, and rmq_producer_failure tells why. A shutdown waits
 * for calls as it does for sends, and fails those that are left with kind "state". */
int rmq_producer_call(rmq_producer *producer, const rmq_call_options *options, rmq_call_done *done,
                      void *arg);

#endif

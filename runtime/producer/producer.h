#ifndef RMQ_PRODUCER_PRODUCER_H
#define RMQ_PRODUCER_PRODUCER_H

#include "base/log.h"
#include "net/io.h"
#include "producer/failure.h"
#include "producer/settings.h"
#include "wire/send.h"

/* A producer: its own connections, routes, heartbeats and ids; nothing is shared with another one.
 * It sends messages and completes each exactly once. */
typedef struct rmq_producer rmq_producer;

/* SendStatus. All four mean that the broker has the message. */
typedef enum rmq_send_status {
  RMQ_SEND_OK,
  RMQ_SEND_FLUSH_DISK_TIMEOUT,
  RMQ_SEND_FLUSH_SLAVE_TIMEOUT,
  RMQ_SEND_SLAVE_NOT_AVAILABLE
} rmq_send_status;

const char *rmq_send_status_name(rmq_send_status status); /* "SEND_OK", ... */

typedef enum rmq_mode { RMQ_MODE_SYNC, RMQ_MODE_ASYNC, RMQ_MODE_ONEWAY } rmq_mode;

/* What is to be sent. Everything but the body is copied by rmq_producer_send; the body is borrowed
 * until the send completes. */
typedef struct rmq_message {
  rmq_slice topic;
  rmq_slice body;
  rmq_slice tags;        /* empty: none */
  const rmq_slice *keys; /* each without a blank when there are several */
  size_t n_keys;
  const rmq_field *properties; /* the user's own */
  size_t n_properties;
  int32_t flag;
  bool wait; /* WAIT: the broker answers when the message is stored as its flush settings say */
} rmq_message;

typedef struct rmq_send_options {
  rmq_mode mode;
  int64_t timeout_ms;         /* 0: the producer's send_msg_timeout */
  int64_t attempt_timeout_ms; /* 0: the producer's attempt_timeout */
  int retries;                /* -1: the producer's */
  rmq_slice broker;           /* a given queue: its broker's name; empty: the producer chooses */
  int32_t queue_id;           /* of the given queue */
  bool
      may_wait; /* over max_inflight the send waits for room (its budget runs); else RMQ_EOVERLOAD */
} rmq_send_options;

/* How a send ended. Everything is valid during `done` only. */
typedef struct rmq_completion {
  const rmq_failure *failure; /* NULL when the message is stored */
  rmq_send_status status;
  rmq_slice msg_id; /* UNIQ_KEY, also after a failure */
  rmq_slice topic;
  rmq_slice broker;            /* name */
  const rmq_send_reply *reply; /* NULL for oneway and failures */
  int attempts;
  int64_t elapsed_us;
} rmq_completion;

typedef void rmq_send_done(void *arg, const rmq_completion *completion);

/* Makes and starts a producer: its first heartbeat follows its first route. `settings` must have
 * passed rmq_settings_check; they are copied. `io` must outlive the producer, and is used by no
 * other. */
rmq_producer *rmq_producer_new(const rmq_settings *settings, rmq_io *io, const rmq_log *log);

/* Frees a producer that has been shut down (or forked). */
void rmq_producer_free(rmq_producer *producer);

const rmq_settings *rmq_producer_settings(const rmq_producer *producer);
const char *rmq_producer_client_id(const rmq_producer *producer);

/* Starts a send. 0: `done` comes exactly once, later, never from inside this call. Negative:
 * nothing was started, `done` never comes, and rmq_producer_failure tells why (validation before
 * any I/O, state, overload). */
int rmq_producer_send(rmq_producer *producer, const rmq_message *message,
                      const rmq_send_options *options, rmq_send_done *done, void *arg);

/* Why the last rmq_producer_send failed at once; valid until the next call on this producer. */
const rmq_failure *rmq_producer_failure(const rmq_producer *producer);

/* The publish queues of a topic. `done` comes once, later: with `n` queues sorted by broker name
 * and id, or with a failure and n 0. */
typedef struct rmq_queue_ref {
  rmq_slice broker;
  int32_t id;
} rmq_queue_ref;
typedef void rmq_queues_done(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                             size_t n);
int rmq_producer_queues(rmq_producer *producer, rmq_slice topic, int64_t timeout_ms,
                        rmq_queues_done *done, void *arg);

/* Calls `done` once, later, when all that was sent before has completed, or when the time is over,
 * with the number of sends that have not completed. */
typedef void rmq_flush_done(void *arg, size_t unfinished);
void rmq_producer_flush(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                        void *arg);

/* Accepts nothing new, gives what is in flight up to `timeout_ms`, fails the rest with kind
 * "state", unregisters from the brokers, closes. `done` comes once, later, with the number of sends
 * that failed because of it. Shutting down twice is allowed: the second `done` comes with the
 * first. */
void rmq_producer_shutdown(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                           void *arg);

/* In a forked child: the producer is in state failed, and its sockets are closed without a word to
 * the brokers. Nothing completes. */
void rmq_producer_forked(rmq_producer *producer);

typedef struct rmq_producer_stats {
  uint64_t sent, acknowledged, failed, retried, oneway_failed;
  size_t inflight, waiting; /* now: sends under way, sends waiting for room */
  size_t inflight_bytes;
} rmq_producer_stats;
rmq_producer_stats rmq_producer_stats_of(const rmq_producer *producer);

#endif

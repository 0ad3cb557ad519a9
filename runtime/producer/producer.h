#ifndef RMQ_PRODUCER_PRODUCER_H
#define RMQ_PRODUCER_PRODUCER_H

#include "base/log.h"
#include "net/io.h"
#include "producer/failure.h"
#include "producer/settings.h"
#include "route/publish.h"
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

/* When a message is to be delivered. Levels are those that every broker has had; the other three need
 * a broker of 5.0 or later, and older ones deliver at once. */
typedef enum rmq_delay_kind {
  RMQ_DELAY_NONE,  /* at once */
  RMQ_DELAY_LEVEL, /* `delay` is 1 to 18, a line of the broker's table of times */
  /* Those that follow are timers. */
  RMQ_DELAY_MS,      /* so many milliseconds after the broker got it */
  RMQ_DELAY_SECONDS, /* so many seconds after */
  RMQ_DELAY_UNTIL    /* at this time, milliseconds since 1970 */
} rmq_delay_kind;

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
  rmq_delay_kind delay_kind;
  int64_t delay;          /* in the unit that delay_kind says */
  rmq_slice sharding_key; /* empty: none, like the next */
  rmq_slice buyer_id;
  const rmq_slice *lmq; /* light queues that it is put into besides, each with %LMQ% or without */
  size_t n_lmq;
  int32_t flag;
  bool wait; /* WAIT: the broker answers when the message is stored as its flush settings say */
  /* Properties that RocketMQ itself reads (TRAN_MSG, DELAY, ...), written as they are: who fills
   * these knows what they mean. The user's own must not have such names. */
  const rmq_field *system;
  size_t n_system;
  int32_t sys_flag; /* MessageSysFlag, as far as the sender sets it */
  bool reply;       /* to a request: it goes to the broker's reply service */
} rmq_message;

/* A queue by its broker's name and its id. */
typedef struct rmq_queue_ref {
  rmq_slice broker;
  int32_t id;
} rmq_queue_ref;

/* What is asked of who chooses a send's queue. */
typedef struct rmq_choice {
  rmq_producer *producer;
  rmq_slice topic;
  const rmq_publish *publish; /* the queues that there are, at least one */
  int64_t key;                /* of the options */
  int attempt;                /* the one that is to be made, from 1 */
  rmq_slice last_broker;      /* the one that failed the attempt before; empty: none */
  struct rmq_send *send;      /* the core's */
} rmq_choice;

/* Chooses a queue: 0 with `queue` set to one of choice->publish->queues, or negative with `why` set.
 * It may start other sends of the same producer, and must not free it. */
typedef int rmq_choose(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                       rmq_failure *why);

/* Choosers that are ready. By key: the queue at the place that is the remainder of options.key by
 * the number of queues, without its sign, as Java's SelectMessageQueueByHash counts; costs the same
 * whatever their number. Random: each queue as likely as any other, drawn anew for each attempt. */
rmq_choose rmq_choose_by_key;
rmq_choose rmq_choose_random;

/* The queue that the producer would take for this send if nobody chose; it takes its turn by that.
 * Only while a chooser runs. */
const rmq_publish_queue *rmq_choice_best(const rmq_choice *choice);

/* A send that had to wait has room now; comes at most once, before `done`, and not at all when the
 * send ends without room. */
typedef void rmq_admitted(void *arg);

typedef struct rmq_send_options {
  rmq_mode mode;
  int64_t timeout_ms;         /* 0: the producer's send_msg_timeout */
  int64_t attempt_timeout_ms; /* 0: the producer's attempt_timeout */
  int retries;                /* -1: the producer's for this mode */
  rmq_slice broker;           /* a given queue: its broker's name; empty: the producer chooses */
  int32_t queue_id;           /* of the given queue */
  bool
      may_wait; /* over max_inflight the send waits for room (its budget runs); else RMQ_EOVERLOAD */
  /* Asked for the queue once the route is known, with the arg of `done`, also from inside
   * rmq_producer_send; the queue is then a given one. Asked again only after an attempt of which
   * nothing was written. NULL, or when `broker` is given: nobody is asked. */
  rmq_choose *choose;
  int64_t key;            /* handed to `choose` */
  rmq_admitted *admitted; /* called with the arg of `done`; NULL: nobody wants to know */
  struct rmq_hold *hold;  /* for this room's own sends; NULL */
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
  size_t index; /* which message of a batch it is, from 0; 0 for others */
  /* What was stored: a property string, and the body before it was compressed. NULL for failures and
   * messages of batches. */
  rmq_slice properties, body;
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

/* A batch that is being put together: messages of one topic that go to one queue in one request, or
 * in several when they are too long for one. Each is a send of its own in all that concerns its
 * id, its result, its counters and max_inflight. */
typedef struct rmq_draft rmq_draft;

/* Makes an empty one. It is to be sent or dropped, but may outlive the producer. */
rmq_draft *rmq_draft_new(rmq_producer *producer);
void rmq_draft_drop(rmq_draft *draft);
size_t rmq_draft_count(const rmq_draft *draft);

/* Adds a message; everything but the body is copied. Negative: the message cannot be in this batch,
 * which is as it was before; rmq_producer_failure tells why, and names messages[i], counted from 1. A body
 * that is too long is found by rmq_draft_send. */
int rmq_draft_add(rmq_draft *draft, const rmq_message *message);

typedef struct rmq_draft_options {
  /* For every message. `choose` and `admitted` are called with the arg of `done`: the first for each
   * request, the second when all requests have room. */
  rmq_send_options send;
  /* Too much for one request (max_message_size, max_inflight, max_inflight_bytes): send several, in
   * order, and fail each message that fits into none; else nothing is sent. */
  bool split;
} rmq_draft_options;

/* Sends it. 0, or 1 when some of it waits for room: `done` comes exactly once for each message,
 * later, never from inside this call, and the draft is gone. Negative: nothing was started, the
 * draft is as it was, and rmq_producer_failure tells why. */
int rmq_draft_send(rmq_draft *draft, const rmq_draft_options *options, rmq_send_done *done,
                   void *arg);

/* True when a send with a body this long would not have to wait for room. */
bool rmq_producer_has_room(const rmq_producer *producer, size_t body_len);

/* False when there is reason not to send to this broker now: no route names it, or latency_fault
 * avoids it. */
bool rmq_producer_available(const rmq_producer *producer, rmq_slice broker);

/* How many attempts to send to this broker have failed since a route first named it: those without
 * an answer, and answers after which another broker is tried. 0 when no route names it. */
uint64_t rmq_producer_failures(const rmq_producer *producer, rmq_slice broker);

/* How a broker has done lately, as far as latency_fault notes it. */
typedef struct rmq_fault_view {
  rmq_slice broker;   /* valid until the next event */
  int64_t latency_us; /* of the last attempt */
  int64_t avoided_us; /* it is avoided for so much longer; 0: it is available */
  bool reachable;     /* the last attempt, or a question of the detector since, went well */
} rmq_fault_view;

/* Walks the brokers of which something is noted: start with `*at` = 0, stop at false. */
bool rmq_producer_next_fault(const rmq_producer *producer, size_t *at, rmq_fault_view *view);

/* Why the last rmq_producer_send failed at once; valid until the next call on this producer. */
const rmq_failure *rmq_producer_failure(const rmq_producer *producer);

/* The publish queues of a topic. `done` comes once, later: with `n` queues sorted by broker name
 * and id, or with a failure and n 0. */
typedef void rmq_queues_done(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                             size_t n);
int rmq_producer_queues(rmq_producer *producer, rmq_slice topic, int64_t timeout_ms,
                        rmq_queues_done *done, void *arg);

/* Replaces the list of name servers, "host:port;host:port". 0 also when it names the same servers,
 * for which nothing is done; RMQ_EINVAL, with a sentence in `why`, when it names none or something
 * that is no address; RMQ_ESTATE when the producer is not running (see rmq_producer_failure). Routes
 * that are known stay until their next refresh. */
int rmq_producer_set_namesrv(rmq_producer *producer, rmq_slice list, char *why, size_t why_size);

/* Calls `done` once, later, when all that was sent before has completed, and its trace records are
 * stored or lost; or when the time is over, with the number of sends that have not completed. */
typedef void rmq_flush_done(void *arg, size_t unfinished);
void rmq_producer_flush(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                        void *arg);

/* Accepts nothing new, gives what is in flight (trace records, too) up to `timeout_ms`, fails the rest
 * with kind "state", unregisters from the brokers, closes. `done` comes once, later, with the number of sends
 * that failed because of it. Shutting down twice is allowed: the shorter time counts, and
 * the second `done` comes with the first. */
void rmq_producer_shutdown(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                           void *arg);

/* In a forked child: the producer is in state failed, and its sockets are closed without a word to
 * the brokers. Nothing completes. */
void rmq_producer_forked(rmq_producer *producer);

typedef struct rmq_producer_stats {
  uint64_t sent, acknowledged, failed, retried, oneway_failed;
  uint64_t batches;         /* attempts that were batches */
  size_t gathered;          /* now: sends under way that wait to leave in a batch */
  size_t inflight, waiting; /* now: sends under way, sends waiting for room */
  size_t inflight_bytes;
  /* Records of message trace: stored, lost, and neither yet. */
  uint64_t trace_sent, trace_dropped;
  size_t trace_pending;
  size_t requests;                /* now: that wait for a reply */
  uint64_t replies, late_replies; /* that came in time; that nobody waited for */
  size_t transactions; /* now: whose half message is stored, and whose broker is not told yet */
  uint64_t checks;     /* of transactions, by brokers: all that came; those answered; those */
  uint64_t checks_answered, checks_dropped, checks_ignored; /* over the limit; not for us */
} rmq_producer_stats;
rmq_producer_stats rmq_producer_stats_of(const rmq_producer *producer);

#endif

#ifndef RMQ_PRODUCER_ADMIN_H
#define RMQ_PRODUCER_ADMIN_H

#include "producer/producer.h"
#include "wire/stored.h"

/* What Java's producer can do besides sending (MQAdmin): make topics, ask for the offsets of queues,
 * look for messages that are stored.
 *
 * All of these return 0, and `done` comes exactly once, later, never from inside the call; or they
 * return negative, nothing was started, and rmq_producer_failure tells why. Texts are copied. A
 * `timeout_ms` of 0 is RMQ_ADMIN_TIMEOUT_MS, for all that the call does. What only asks is asked once
 * more when its connection turns out to be dead. A shutdown waits for them as it does for sends. */

enum { RMQ_ADMIN_TIMEOUT_MS = 6000 }; /* as in Java */

/* ---- Offsets of a queue ---- */

typedef enum rmq_offset_kind {
  RMQ_OFFSET_MAX,     /* that the next message will get */
  RMQ_OFFSET_MIN,     /* of the first message that is still there */
  RMQ_OFFSET_AT_TIME, /* of the first message stored at `time_ms` or later */
  RMQ_OFFSET_EARLIEST /* the time when the first message that is still there was stored */
} rmq_offset_kind;

typedef struct rmq_offset_question {
  rmq_offset_kind kind;
  rmq_slice topic;
  rmq_queue_ref queue;
  int64_t time_ms; /* wall clock, milliseconds since 1970 */
  int64_t timeout_ms;
} rmq_offset_question;

/* `value` is the offset, or the time in milliseconds since 1970, as the broker says it: for a queue that
 * it does not have that may be 0 or -1. */
typedef void rmq_offset_done(void *arg, const rmq_failure *failure, int64_t value);
int rmq_producer_ask_offset(rmq_producer *producer, const rmq_offset_question *question,
                            rmq_offset_done *done, void *arg);

/* ---- Making a topic ---- */

typedef struct rmq_new_topic {
  rmq_slice topic;
  int32_t read_queues, write_queues; /* on each broker, 0 to RMQ_ROUTE_QUEUES_MAX */
  int32_t perm;                      /* RMQ_PERM_READ and RMQ_PERM_WRITE */
  bool order;
  int32_t sys_flag;            /* of units: 1 the topic is a unit's, 2 groups of units read it */
  const rmq_field *attributes; /* "message.type" = "FIFO"; names without Java's leading '+' */
  size_t n_attributes;
  /* Where: on all brokers of a cluster, on these brokers, or (neither) on those that have the topic
   * create_topic_key, as Java's createTopic does with its key. Each broker has a topic of its
   * cluster's name and one of its own name, out of whose routes the masters come. */
  rmq_slice cluster;
  const rmq_slice *brokers;
  size_t n_brokers;
  bool wait; /* until the name server lists the topic so on all of them */
  int64_t timeout_ms;
} rmq_new_topic;

/* With a failure, `failure` has one try for each broker that did not do it; the others did. */
typedef void rmq_created_done(void *arg, const rmq_failure *failure);
int rmq_producer_create_topic(rmq_producer *producer, const rmq_new_topic *topic,
                              rmq_created_done *done, void *arg);

/* ---- Messages that are stored ---- */

/* `found` holds `n` messages for rmq_found_next, oldest first. Where some brokers answered and some
 * did not, there are messages and a failure with one try for each that did not. */
typedef void rmq_found_done(void *arg, const rmq_failure *failure, rmq_slice found, size_t n);

/* Takes the next message off the front of `*rest`; false at the end. `broker` is the name of the one that
 * has it, empty when it is not known. */
bool rmq_found_next(rmq_slice *rest, rmq_slice *broker, rmq_stored_message *message);

typedef struct rmq_view {
  rmq_slice topic; /* empty: `id` must be an offset id */
  /* An offset id, whose broker is asked. With a topic it may be a unique key too, which all brokers of the
   * topic are asked for when there is no such offset. */
  rmq_slice id;
  int64_t timeout_ms;
} rmq_view;

/* One message, or a failure: code NO_MESSAGE when all were asked and none has it. */
int rmq_producer_view_message(rmq_producer *producer, const rmq_view *view, rmq_found_done *done,
                              void *arg);

enum { RMQ_QUERY_MAX = 32, RMQ_QUERY_LARGEST = 10000 };

typedef struct rmq_query {
  rmq_slice topic;
  rmq_slice key;            /* one of the message's keys */
  int64_t begin_ms, end_ms; /* stored within these times, wall clock; both included */
  int32_t max;              /* the newest so many; at most RMQ_QUERY_LARGEST */
  int64_t timeout_ms;
} rmq_query;

/* The messages of a topic with a key. Brokers keep hashes of keys: what they find for another topic or
 * key is left out, as in Java. A message is found when its broker has indexed it, a moment after it was
 * stored. No message is no failure. */
int rmq_producer_query_messages(rmq_producer *producer, const rmq_query *query,
                                rmq_found_done *done, void *arg);

#endif

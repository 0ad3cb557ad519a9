#ifndef RMQ_PRODUCER_GATHER_H
#define RMQ_PRODUCER_GATHER_H

#include "base/list.h"
#include "base/map.h"
#include "base/wheel.h"
#include "producer/producer.h"

/* Automatic batches (auto_batch): sends that go the same way are gathered and leave together.
 *
 * A send is gathered when it would make its first attempt: its route is known, and its queue is chosen
 * if a selector chooses. At the end of the turn what was gathered
 * leaves, so that a lone message waits for nothing: its bytes would not have been written earlier.
 * While something of the same group is under way the next ones wait for its end; at most
 * batch_max_delay, and at most for half of their own time; and a batch that is as long as batch_max_bytes
 * leaves at once. One that is alone in the end leaves as an ordinary send.
 *
 * Sends with a free choice are grouped by all that a batch has in common: topic, WAIT, tags, oneway,
 * and how they are timed and retried. Those to one queue are one group, and what differs in anything
 * of that lets leave what came before; so they are sent in their order. */

struct rmq_send;

/* What the sends of a batch have in common besides where they go. */
typedef struct rmq_profile {
  rmq_slice tags; /* of a group: its own copy */
  int64_t budget_us;
  int64_t attempt_timeout_ms;
  int retries;
  bool wait, oneway;
} rmq_profile;

typedef struct rmq_group {
  rmq_link link;  /* in `open`, `idle`, or alone */
  rmq_link fresh; /* in `fresh`: to be looked at when the turn ends */
  rmq_producer *producer;
  rmq_buf key; /* in `map` */
  rmq_profile profile;
  rmq_buf tags;     /* of the profile */
  rmq_link members; /* gathered, by their `member`, in order */
  size_t n;
  size_t size;      /* as they are encoded */
  size_t stored;    /* as a broker may count them */
  size_t in_flight; /* batches and lone sends of it under way */
  rmq_timer timer;  /* when they leave at the latest */
} rmq_group;

/* All of one producer. Groups of which nothing is gathered or under way are kept for the next time, as
 * many as are mostly used. */
typedef struct rmq_gathers {
  rmq_map *map; /* NULL: auto_batch is off */
  rmq_link open;
  rmq_link fresh;
  rmq_link idle; /* the one that was used last is the last */
  size_t n_idle;
  size_t n;     /* gathered in all */
  size_t bytes; /* of them, as they are encoded: at most batch_total_bytes */
  rmq_buf key;  /* the one that is looked for */
} rmq_gathers;

void rmq_gather_init(rmq_producer *producer);
void rmq_gather_free(rmq_producer *producer);

/* True when the message may be gathered: it is none of a kind of its own, and not to be compressed. */
bool rmq_gather_wants(const rmq_producer *producer, const rmq_message *message);

/* Takes a send that would make its first attempt, if there is room: false when it must go alone. What leaves
 * because of it may call hooks; when one forks, the send is gone. */
bool rmq_gather_take(struct rmq_send *send);

/* A send that was not gathered goes to its given queue: lets those leave that came before it. False when a
 * hook has forked meanwhile, and the send is gone. */
bool rmq_gather_pass(struct rmq_send *send);

/* A send leaves the gathered ones because it ends by itself. */
void rmq_gather_lose(struct rmq_send *send);

/* The end of a carrier or a lone send that was one of a group. */
void rmq_gather_landed(struct rmq_send *send);

/* Lets leave what is due at the end of a turn; all there is. */
void rmq_gather_turn(rmq_producer *producer);
void rmq_gather_release_all(rmq_producer *producer);

#endif

#ifndef RMQ_SELECT_CHOOSER_H
#define RMQ_SELECT_CHOOSER_H

#include "route/publish.h"
#include "select/fault.h"

/* Chooses among the queues of one topic (MQFaultStrategy in Java).
 *
 * Every choice walks the list of queues from where the last one ended, and takes the first queue
 * whose broker will do, so that among those that will do the choice goes round. Which brokers will
 * do, by the strategy of the fault table:
 *
 *   off   all;
 *   4.x   those that are available, also the one that has just failed; when none is, the better
 *         half of the avoided ones in turn (by the latency of the last attempt, then by the end of
 *         the avoidance), and the brokers without a queue to write to are forgotten;
 *   5.x   those that are available, but for the one that has just failed; when none is, those that
 *         are reachable, but for that one; when none is, all.
 *
 * At each of these steps a retry takes a broker that this send has not tried rather than one that
 * it has, and any other rather than the one that failed last. Java's client takes the first one
 * that is available; the two differ only where a failure did not begin an avoidance.
 *
 * Java before 5.1.4 begins the next walk one further than this one began, which gives the queue
 * behind a gap the share of the whole gap; and since then it begins a retry's walk at a random
 * place. Neither is done here. */
typedef struct rmq_chooser rmq_chooser;

/* What a choice depends on, besides the table and the queues. */
typedef struct rmq_circumstances {
  rmq_mono now;
  const int32_t *tried; /* brokers that have failed this send, the last one last: indexes into
                           publish->brokers, or -1 for one that is not there any more */
  size_t n_tried;
} rmq_circumstances;

/* `random` says where the first walk begins. A reference to the table is kept. */
rmq_chooser *rmq_chooser_new(rmq_faults *faults, uint64_t random);
void rmq_chooser_free(rmq_chooser *chooser); /* NULL is let alone */

/* The next queue: an index into publish->queues, or -1 when there are none. A first attempt costs
 * the same whatever the number of queues and of avoided brokers; a walk over the brokers is added
 * after a change of what is available, on a retry, and when no broker is available. A publish
 * other than the last time's costs a lookup for each broker; a reference to it is kept. */
int32_t rmq_chooser_pick(rmq_chooser *chooser, rmq_publish *publish,
                         const rmq_circumstances *choice);

/* The fault table's entry for a broker of the publish that was chosen from last. It is the
 * chooser's: hold it to keep it. */
rmq_fault *rmq_chooser_fault(const rmq_chooser *chooser, int32_t broker);

#endif

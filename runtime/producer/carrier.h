#ifndef RMQ_PRODUCER_CARRIER_H
#define RMQ_PRODUCER_CARRIER_H

#include "producer/core.h"

/* A batch under way. The carrier is a send without a message: it waits for room, chooses, tries
 * and tries again for all its members at once. A member is an ordinary send in phase CARRIED: it has
 * its id, its properties, its budget and its `done`, and is one of those that the producer counts;
 * the carrier is not. When the carrier ends, each member ends with its part of the result, or with
 * a copy of the failure. Members may end before that, and are not in the attempts that follow. */

/* Makes a carrier without members out of the pool, for messages that wait as `wait` says. */
rmq_send *rmq_carrier_make(rmq_producer *producer, bool wait);

/* Puts a send at the end of the members; none is added after the first attempt. */
void rmq_carrier_add(rmq_send *carrier, rmq_send *member);

/* Takes a member out that ends by itself. It gets a copy of what became of the attempts so far. The
 * last one takes the carrier with it. */
void rmq_carrier_lose(rmq_send *member);

/* Asks the hooks for each member before an attempt; those that may not go end, and are not in it.
 * False when none is left, and the carrier with them; or when the process has forked and all are
 * gone. */
bool rmq_carrier_ask_hooks(rmq_send *carrier);

/* How a send, alone or a member, would end with the result that was put aside. `reply` is written, and
 * part of it. */
rmq_completion rmq_carrier_kept_completion(const rmq_send *send, rmq_send_reply *reply);

/* Appends the request of an attempt. `header` is the carrier's. */
void rmq_carrier_encode(rmq_send *carrier, rmq_buf *out, int32_t opaque, int32_t flag,
                        const rmq_send_header *header);

/* True when a reply tells each member of the last attempt where it is stored: by as many offset ids
 * as there are members, or by one for all (a topic whose queues store whole batches). */
bool rmq_carrier_fits(const rmq_send *carrier, const rmq_send_reply *reply);

/* The carrier's result is put aside: the members' places in it, too. */
void rmq_carrier_keep_places(rmq_send *carrier);

/* Completes all members; the carrier goes back to the pool. */
void rmq_carrier_complete(rmq_send *carrier, const rmq_completion *completion);

#endif

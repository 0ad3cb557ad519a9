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

/* The members have budgets of their own: lets each end when its is over, in whatever phase. */
void rmq_carrier_watch_budgets(rmq_send *carrier);
void rmq_carrier_expired(rmq_timer *timer); /* of `expiry` */

/* True when the members chose their queue by selectors, which are to be asked again; lets them go
 * on by themselves then, from where the carrier is. */
bool rmq_carrier_dissolves(const rmq_send *carrier);
void rmq_carrier_dissolve(rmq_send *carrier);

/* Takes a member out that ends by itself. It gets a copy of what became of the attempts so far. The
 * last one takes the carrier with it. */
void rmq_carrier_lose(rmq_send *member);

/* Appends the request of an attempt. `header` is the carrier's. */
void rmq_carrier_encode(rmq_send *carrier, rmq_buf *out, int32_t opaque, int32_t flag,
                        const rmq_send_header *header);

/* What a reply lacks to tell each member of the last attempt where it is stored; NULL for nothing. It has
 * as many offset ids as there are members, or one for all (a topic whose queues store whole batches),
 * and the offset of the first member, which the others follow. */
const char *rmq_carrier_misses(const rmq_send *carrier, const rmq_send_reply *reply);

/* Puts a result aside for each member, as rmq_send_keep does. */
void rmq_carrier_keep(rmq_send *carrier, rmq_send_status status, const rmq_send_reply *reply);

/* Asks the hooks about the attempt that is to be made, for each member, and counts it. A member that is
 * refused leaves. False when the attempt is not made. */
bool rmq_carrier_ask_hooks(rmq_send *carrier);

/* Completes all members; the carrier goes back to the pool. */
void rmq_carrier_complete(rmq_send *carrier, const rmq_completion *completion);

#endif

#ifndef RMQ_SELECT_SELECT_H
#define RMQ_SELECT_SELECT_H

#include <stdint.h>

#include "route/publish.h"

/* Round robin over a topic's queues (ThreadLocalIndex and TopicPublishInfo in Java): starts at a
 * random place, goes on by one a pick, never negative. */
typedef struct rmq_round_robin {
  uint32_t index;
} rmq_round_robin;

void rmq_round_robin_init(rmq_round_robin *robin, uint64_t random);

/* The next queue. With a broker to avoid (an index into publish->brokers, or -1) the queues of that
 * broker are passed over, unless there are no others. Returns an index into publish->queues; -1
 * when there are none. Costs one step, and with a broker to avoid at most one turn. */
int32_t rmq_round_robin_pick(rmq_round_robin *robin, const rmq_publish *publish, int32_t avoid);

#endif

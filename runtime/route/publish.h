#ifndef RMQ_ROUTE_PUBLISH_H
#define RMQ_ROUTE_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "wire/route.h"

/* Where messages of a topic can go (TopicPublishInfo in Java): made from a route, never changed,
 * shared by reference count. */
typedef struct rmq_publish_broker {
  char *name;
  char *master; /* "host:port" */
} rmq_publish_broker;

typedef struct rmq_publish_queue {
  int32_t broker; /* index into brokers */
  int32_t id;
} rmq_publish_queue;

typedef struct rmq_publish {
  unsigned refs;
  uint64_t version;            /* of this topic's route: another number after each change */
  bool ordered;                /* made from orderTopicConf */
  bool from_default_topic;     /* the topic has no route of its own yet */
  rmq_publish_broker *brokers; /* sorted by name; only those that have queues here */
  size_t n_brokers;
  rmq_publish_queue *queues; /* sorted by broker name, then id; with orderTopicConf in its order */
  size_t n_queues;
  int32_t *sorted;    /* indexes into queues by broker name, then id; NULL: they stand so already */
  size_t n_read_only; /* queueDatas left out for want of write permission */
  size_t n_no_master; /* queueDatas left out because their broker has no master */
} rmq_publish;

/* Makes one from a route by Java's rules (topicRouteData2TopicPublishInfo). With `default_queue_nums` > 0 the route
 * is the default topic's: counts are cut to min(default_queue_nums, readQueueNums). */
rmq_publish *rmq_publish_new(const rmq_route_data *route, uint64_t version,
                             int64_t default_queue_nums);
rmq_publish *rmq_publish_ref(rmq_publish *publish);
void rmq_publish_unref(rmq_publish *publish); /* NULL is let alone */

/* The queue at a place, from 0, in the order of brokers' names and ids: what a selector counts in. */
static inline const rmq_publish_queue *rmq_publish_sorted(const rmq_publish *publish,
                                                          size_t place) {
  return &publish->queues[publish->sorted ? (size_t)publish->sorted[place] : place];
}

/* The place of a broker's queue in that order, or -1. Costs a binary search. */
int64_t rmq_publish_place(const rmq_publish *publish, int32_t broker, int32_t id);

/* The index of the broker with this name in publish->brokers, or -1. */
int32_t rmq_publish_broker_find(const rmq_publish *publish, rmq_slice name);

#endif

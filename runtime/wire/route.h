#ifndef RMQ_WIRE_ROUTE_H
#define RMQ_WIRE_ROUTE_H

#include <stdint.h>

#include "base/slice.h"

/* TopicRouteData: what a name server answers to GET_ROUTEINFO_BY_TOPIC. */

/* A route with more queues or brokers or addresses than this is refused. */
#define RMQ_ROUTE_ITEMS_MAX 65536
/* A queue count over this in one queueData is refused (a route must not make us allocate gigabytes). */
#define RMQ_ROUTE_QUEUES_MAX 65536

typedef struct rmq_queue_data {
  rmq_slice broker_name;
  int32_t read_queue_nums;
  int32_t write_queue_nums;
  int32_t perm; /* RMQ_PERM_* */
  int32_t topic_sys_flag;
} rmq_queue_data;

typedef struct rmq_broker_addr {
  int64_t id; /* 0: the master */
  rmq_slice addr;
  rmq_slice
      advertised; /* what the route has instead, where an address map gave `addr`; else empty */
} rmq_broker_addr;

typedef struct rmq_broker_data {
  rmq_slice cluster;
  rmq_slice broker_name;
  rmq_broker_addr *addrs; /* in ascending order of id */
  size_t n_addrs;
} rmq_broker_data;

typedef struct rmq_route_data {
  rmq_slice order_topic_conf; /* NULL `ptr`: none */
  rmq_queue_data *queues;     /* sorted by broker name */
  size_t n_queues;
  rmq_broker_data *brokers; /* sorted by broker name */
  size_t n_brokers;
  void *memory; /* what all the slices point into */
  char *mapped; /* what those point into that an address map gave, or NULL */
} rmq_route_data;

/* Decodes a route in either spelling into one allocation that `out` owns. Returns 0, RMQ_EPROTO or
 * RMQ_ELIMIT; `why` (at least 1 byte) then has a short text. */
int rmq_route_data_decode(rmq_slice json, rmq_route_data *out, char *why, size_t why_size);
void rmq_route_data_free(rmq_route_data *route);

/* The change test of Java: sorted queueDatas (all five fields), brokerDatas (name and addresses) and
 * orderTopicConf. */
bool rmq_route_data_equal(const rmq_route_data *a, const rmq_route_data *b);

/* The broker with this name, or NULL; and its address with this id, or an empty slice. Both search a
 * decoded route by halves, as a hostile one may have 65536 of each. */
const rmq_broker_data *rmq_route_data_broker(const rmq_route_data *route, rmq_slice broker_name);
rmq_slice rmq_broker_data_addr(const rmq_broker_data *broker, int64_t id);
/* What the route has instead of that address, when an address map gave it; otherwise empty. */
rmq_slice rmq_broker_data_advertised(const rmq_broker_data *broker, int64_t id);

#endif

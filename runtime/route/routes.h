#ifndef RMQ_ROUTE_ROUTES_H
#define RMQ_ROUTE_ROUTES_H

#include "base/log.h"
#include "route/brokers.h"
#include "route/heartbeat.h"
#include "route/namesrv.h"
#include "route/publish.h"

/* The routes of one producer: what is known of each topic, asking for it, and keeping it fresh. */
typedef struct rmq_routes rmq_routes;

typedef enum rmq_route_result {
  RMQ_ROUTE_READY,     /* topic->publish has queues */
  RMQ_ROUTE_TIMEOUT,   /* the waiter's time was over */
  RMQ_ROUTE_UNREACHED, /* no name server could say */
  RMQ_ROUTE_UNKNOWN,   /* the topic has no route, and no default topic stands in */
  RMQ_ROUTE_UNUSABLE   /* the topic has a route without a queue to write to */
} rmq_route_result;

/* One topic. It stays while somebody holds it, while it is asked for, and, once its route is known,
 * until it has not been used for ten refreshes. */
typedef struct rmq_topic {
  rmq_routes *routes;
  char *name;
  size_t name_len;
  rmq_publish
      *publish; /* NULL: not known yet. Replaced, never changed; hold a reference to keep one */
  void *kept;   /* what its sends share; released by the config's drop_kept */
  size_t users; /* who hold it */

  /* Private from here on. */
  rmq_route_data route; /* what publish was made from; of zeros while publish is NULL */
  rmq_inquiry inquiry;
  bool ask_default;     /* the question under way is for the default topic */
  bool default_unknown; /* the last round found that the default topic has no route either */
  bool keep_asking;     /* a refresh: goes on though nobody waits */
  bool in_round;        /* a refresh that counts in rmq_routes' limit of those at a time */
  rmq_link waiters;
  rmq_link due; /* in the list of topics to refresh, or alone */
  rmq_mono used_at;
  rmq_mono refreshed_at; /* when the last demanded refresh began */
} rmq_topic;

/* Somebody who waits for a route; the caller's struct. */
typedef struct rmq_route_waiter rmq_route_waiter;
struct rmq_route_waiter {
  /* Comes once, never from inside rmq_topic_wait, unless the waiter leaves. `explanation` says why
   * there is no route, and what to do; it is empty when READY and valid during the call. */
  void (*done)(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation);

  bool own_only; /* set before: the default topic's route is of no use to it */

  rmq_topic *topic;
  rmq_link link;
  rmq_timer timer;
  rmq_mono deadline;
};

typedef struct rmq_routes_config {
  rmq_transport *transport;
  const rmq_log *log;
  rmq_serialize serialize;
  const char *namesrv; /* the list; these texts must stay */
  const char *create_topic_key;
  const char *client_id;
  const char *group;
  const char *address_map; /* see wire/address_map.h, or NULL */
  int64_t default_topic_queue_nums;
  bool auto_create_topic;
  int64_t api_timeout_ms;
  int64_t poll_interval_ms;
  int64_t heartbeat_interval_ms;
  void (*drop_kept)(void *kept); /* releases a topic's `kept`; never called with NULL */
} rmq_routes_config;

rmq_routes *rmq_routes_new(const rmq_routes_config *config);

/* Releases all. Nobody may wait any more, nor use a topic afterwards. May be called from inside a
 * waiter's `done`: the memory then goes when that has returned. */
void rmq_routes_free(rmq_routes *routes);

/* Replaces the list of name servers by one that has passed rmq_settings_check's rules; the text must
 * stay. False when it names the same servers: then nothing is done, and the text is not used. */
bool rmq_routes_set_namesrv(rmq_routes *routes, const char *list);

/* The topic with this name, or NULL. The last one asked for costs a comparison. */
rmq_topic *rmq_routes_find(rmq_routes *routes, rmq_slice name);
/* The same, and makes one that is not there yet; asks nobody. */
rmq_topic *rmq_routes_topic(rmq_routes *routes, rmq_slice name);

/* A topic whose route is known, the last one asked for if it can be; NULL when there is none. */
const rmq_topic *rmq_routes_any_topic(const rmq_routes *routes);

static inline bool rmq_topic_is_ready(const rmq_topic *topic) {
  return topic->publish && topic->publish->n_queues > 0;
}
static inline rmq_slice rmq_topic_name(const rmq_topic *topic) {
  return rmq_slice_make(topic->name, topic->name_len);
}

/* The route of a topic that has one of its own, read-only or without a master as it may be; valid
 * until the next event. NULL: none is known. */
static inline const rmq_route_data *rmq_topic_route(const rmq_topic *topic) {
  return topic->publish && !topic->publish->from_default_topic ? &topic->route : NULL;
}

/* Marks the topic as used at `now`, and keeps it until rmq_topic_release. */
static inline void rmq_topic_hold(rmq_topic *topic, rmq_mono now) {
  topic->users++;
  topic->used_at = now;
}
void rmq_topic_release(rmq_topic *topic);

/* Asks for the topic's route, or joins who asks already. The topic must be held while waiting. */
void rmq_topic_wait(rmq_topic *topic, rmq_route_waiter *waiter, rmq_mono deadline);
/* Stops waiting; `done` will not come. Who does not wait is let alone. */
void rmq_topic_leave(rmq_route_waiter *waiter);

/* Asks for the route anew because something shows that it is out of date. Does nothing while it is
 * asked for, or within 100 ms of the last time. */
void rmq_topic_refresh(rmq_topic *topic);

/* The master's address of a broker that any route names, or NULL. */
const char *rmq_routes_master(const rmq_routes *routes, rmq_slice broker_name);

/* What the routes have instead, where an address map gave it; otherwise NULL. */
const char *rmq_routes_advertised(const rmq_routes *routes, rmq_slice broker_name);

/* The name of the broker whose master has this address, or NULL; looks at all of them. */
const char *rmq_routes_broker_at(const rmq_routes *routes, rmq_slice addr);

/* How many attempts to send to a broker were counted as failed since a route first named it, and one
 * more. A broker that no route names has none. */
uint64_t rmq_routes_failures(const rmq_routes *routes, rmq_slice broker_name);
void rmq_routes_count_failure(rmq_routes *routes, rmq_slice broker_name);

/* See rmq_heartbeat_greet. */
bool rmq_routes_greet(rmq_routes *routes, rmq_greeter *greeter, int64_t limit_ms);

/* The clusters of the brokers in a topic's route, each once: start with `*at` = 0, stop at an empty
 * one. Valid until the route changes. */
rmq_slice rmq_topic_next_cluster(const rmq_topic *topic, size_t *at);

/* To be told by the transport that a connection stands. */
void rmq_routes_connected(rmq_routes *routes, const char *addr);

/* Ends heartbeats, refreshes and all questions, unregisters from the brokers; then `gone` comes
 * once, later. */
void rmq_routes_farewell(rmq_routes *routes, int64_t timeout_ms, void (*gone)(void *arg),
                         void *arg);

#endif

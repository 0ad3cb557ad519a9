#ifndef RMQ_ROUTE_ROUTES_PRIVATE_H
#define RMQ_ROUTE_ROUTES_PRIVATE_H

#include "route/routes.h"

/* What the files of this room that deal with topics share. */

struct rmq_routes {
  rmq_routes_config config;
  rmq_namesrv servers;
  rmq_brokers brokers;
  rmq_heartbeat heartbeat;
  rmq_map *topics;   /* rmq_topic */
  rmq_topic *last;   /* the topic asked for last, or NULL */
  uint64_t versions; /* given to routes so far */
  rmq_timer poll;
  rmq_link due;      /* topics to refresh in this round, not yet asked for */
  size_t refreshing; /* refreshes of this round under way */
  rmq_mono round_at; /* when the last round began */
  unsigned busy;     /* how many calls of waiters are on the stack */
  bool dead;         /* rmq_routes_free was called meanwhile */
  bool stopped;      /* farewell: nothing is asked any more */
};

/* Between enter and leave the routes are not released, whatever is called. */
void rmq_routes_enter(rmq_routes *routes);
void rmq_routes_leave(rmq_routes *routes);

/* Takes a topic out and releases it. Nobody may hold it. */
void rmq_topic_drop(rmq_topic *topic);

/* Starts a refresh unless the topic is asked for already. */
void rmq_topic_ask_again(rmq_topic *topic);

/* Marks every topic but one (or NULL) as due for a refresh, and begins with the first ones. */
void rmq_routes_refresh_all(rmq_routes *routes, const rmq_topic *except);
/* A broker has moved, says the topic's new route: the others are out of date. */
void rmq_routes_moved(rmq_routes *routes, const rmq_topic *topic);
/* Begins refreshes up to the number at a time; none once the routes were stopped. */
void rmq_routes_pump(rmq_routes *routes);

/* Appends why a topic has no usable route, with what the name servers said, and what to do. */
void rmq_topic_explain(const rmq_topic *topic, rmq_route_result result, rmq_buf *out);

#endif

#ifndef RMQ_ROUTE_BROKERS_H
#define RMQ_ROUTE_BROKERS_H

#include "base/map.h"
#include "net/transport.h"
#include "wire/route.h"

typedef struct rmq_brokers rmq_brokers;

/* A broker that some topic's route names, with a master. */
typedef struct rmq_broker {
  rmq_brokers *brokers;
  char *name;
  char *master;        /* "host:port" */
  char *advertised;    /* what routes have instead, where an address map gave it; or NULL */
  size_t routes;       /* how many routes name it; it goes with the last */
  uint64_t failures;   /* attempts to send to it that failed, as the producer counts */
  rmq_request request; /* the heartbeat, or the farewell, that is under way */
  bool busy;           /* request is under way */
  bool known;          /* its last heartbeat was answered well, on this connection */
  bool asked;          /* a heartbeat was begun, the last one at: */
  rmq_mono asked_at;
  struct rmq_heartbeat *talker; /* whose request it is */
} rmq_broker;

/* All brokers of one producer: name to master address, out of all its topics' routes. */
struct rmq_brokers {
  rmq_transport *transport;
  rmq_map *by_name;   /* rmq_broker */
  rmq_map *by_master; /* how many brokers have this address, as a uintptr_t */
};

void rmq_brokers_init(rmq_brokers *brokers, rmq_transport *transport);
/* Gives up what is under way to them. */
void rmq_brokers_quiet(rmq_brokers *brokers);
/* Releases all. Nothing may be under way. */
void rmq_brokers_close(rmq_brokers *brokers);

/* The master's address of a broker, or NULL when no route names the broker. */
const char *rmq_brokers_master(const rmq_brokers *brokers, rmq_slice name);
/* What the routes have instead, where an address map gave it; otherwise NULL. */
const char *rmq_brokers_advertised(const rmq_brokers *brokers, rmq_slice name);
/* The broker, or NULL; valid until the next route comes. */
rmq_broker *rmq_brokers_find(const rmq_brokers *brokers, rmq_slice name);

/* Counts in what a new route names. True when a broker that was known has another address now:
 * other routes are out of date then. */
bool rmq_brokers_add(rmq_brokers *brokers, const rmq_route_data *route);

/* Counts out what a route named. A broker that no route names any more is dropped, and its
 * connection closed when nothing is pending on it. */
void rmq_brokers_remove(rmq_brokers *brokers, const rmq_route_data *route);

#endif

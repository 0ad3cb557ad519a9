#ifndef RMQ_ROUTE_HEARTBEAT_H
#define RMQ_ROUTE_HEARTBEAT_H

#include "base/log.h"
#include "route/brokers.h"

/* Tells the brokers that this producer lives, and when it goes. A broker that hears nothing for 120
 * s forgets it; that matters when a broker wants to ask the producer something (transactions). */
typedef struct rmq_heartbeat rmq_heartbeat;
struct rmq_heartbeat {
  rmq_brokers *brokers;
  const rmq_log *log;
  rmq_serialize serialize;
  rmq_slice client_id;
  rmq_slice group;
  int64_t interval_ms;
  int64_t api_timeout_ms;
  uint64_t failures; /* heartbeats that were not answered well */

  rmq_link greeters; /* who waits until the brokers know us */
  rmq_timer timer;   /* the next round; when saying farewell, its end */
  size_t farewells;  /* not yet answered */
  void (*gone)(void *arg);
  void *gone_arg;
};

/* Starts the rounds. All fields up to api_timeout_ms must be set; the texts must stay. */
void rmq_heartbeat_start(rmq_heartbeat *heartbeat);

/* A connection stands: a broker there gets a heartbeat at once, for it has forgotten the last
 * connection, or never knew us. Other addresses are let alone. */
void rmq_heartbeat_connected(rmq_heartbeat *heartbeat, const char *addr);

/* Somebody who waits until all brokers know us, because they shall be able to reach us: the
 * caller's struct. */
typedef struct rmq_greeter {
  void (*done)(struct rmq_greeter *greeter); /* comes once, later, unless the greeter leaves */

  rmq_link link;
  rmq_timer timer;
  rmq_heartbeat *heartbeat;
} rmq_greeter;

/* Sends a heartbeat to each broker that may not know us. False when all do, or when those that do not
 * were asked lately in vain; else `done` comes when all have answered, at the latest after `limit_ms`. */
bool rmq_heartbeat_greet(rmq_heartbeat *heartbeat, rmq_greeter *greeter, int64_t limit_ms);
/* Stops waiting; who does not wait is let alone. */
void rmq_greeter_leave(rmq_greeter *greeter);

/* Ends the rounds. */
void rmq_heartbeat_stop(rmq_heartbeat *heartbeat);

/* Ends the rounds and unregisters from every broker there is a connection to. `gone` comes once,
 * never from inside, when all have answered or the time is over. */
void rmq_heartbeat_farewell(rmq_heartbeat *heartbeat, int64_t timeout_ms, void (*gone)(void *arg),
                            void *arg);

#endif

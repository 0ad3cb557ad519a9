#ifndef RMQ_PRODUCER_ADMIN_CORE_H
#define RMQ_PRODUCER_ADMIN_CORE_H

#include "producer/admin.h"
#include "producer/call.h"
#include "producer/core.h"

/* What the administrative calls share: one of them from its start to its end. It is the first member
 * of each one's own struct. */
typedef struct rmq_admin {
  rmq_link link; /* in the producer's `admins` */
  rmq_producer *producer;
  rmq_mono started, deadline;
  rmq_failure failure;     /* with a try for each broker that did not do its part */
  size_t calls;            /* under way */
  rmq_route_waiter waiter; /* for the route of `topic` */
  rmq_topic *topic;        /* held while its route is waited for, else NULL */
  rmq_timer timer;         /* for whoever has something to do later; it is stopped at the end */
  /* The route of the topic asked for: NULL when there is none, and then why. */
  void (*route_came)(struct rmq_admin *admin, const rmq_route_data *route, rmq_route_result result,
                     rmq_slice explanation);
  /* Tells the caller how it ended; `failure` as for `done`. Called once, when nothing is under way
   * any more. */
  void (*tell)(struct rmq_admin *admin, const rmq_failure *failure);
  void (*release)(struct rmq_admin *admin); /* gives back all memory, that of the struct as well */
} rmq_admin;

/* A broker that has a part in it. */
typedef struct rmq_admin_target {
  rmq_admin *admin;
  char *broker; /* its name; NULL when only its address is known */
  char *addr;
} rmq_admin_target;

typedef struct rmq_admin_targets {
  rmq_admin_target *list;
  size_t n;
} rmq_admin_targets;

/* The struct of a new call, of zeros but for what is known; `size` is that of the caller's own. */
void *rmq_admin_new(rmq_producer *producer, size_t size, int64_t timeout_ms);

/* Milliseconds until the deadline, at least 1. */
int64_t rmq_admin_left_ms(const rmq_admin *admin);
bool rmq_admin_is_late(const rmq_admin *admin);

/* Asks the name servers for a topic's route, whether or not it is known. route_came comes later. */
void rmq_admin_ask_route(rmq_admin *admin, rmq_slice topic);

/* Makes a call whose end is told to `done` with `target`; it has all of the time that is left unless
 * `options` say something else. When it cannot even start, that is noted as
 * the target's try, and false returned. */
bool rmq_admin_call(rmq_admin_target *target, rmq_call_options *options, rmq_call_done *done);

/* Counts the end of a call. Notes a failure as the target's try. */
void rmq_admin_call_ended(rmq_admin_target *target, const rmq_call_end *end);
/* Notes an answer that says yes and cannot be read. */
void rmq_admin_note_unreadable(rmq_admin_target *target, const char *what);

/* Adds a broker that is not there yet. */
void rmq_admin_add_target(rmq_admin *admin, rmq_admin_targets *targets, rmq_slice broker,
                          rmq_slice addr);
void rmq_admin_free_targets(rmq_admin_targets *targets);

/* Makes kind, code, broker and message of the failure out of its tries; the message begins with `what`
 * ("topic \"T\" is not on all brokers"). */
void rmq_admin_sum_up(rmq_admin *admin, const char *what);

/* Ends it, with a failure or (NULL) without; nothing may be under way. `admin` is gone afterwards. */
void rmq_admin_end(rmq_admin *admin, const rmq_failure *failure);

/* The same for one that has not begun: its caller is told nothing. */
void rmq_admin_drop(rmq_admin *admin);

#endif

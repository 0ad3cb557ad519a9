#ifndef RMQ_SELECT_FAULT_H
#define RMQ_SELECT_FAULT_H

#include "base/clock.h"
#include "base/map.h"
#include "select/rules.h"

/* How the brokers of one producer have done lately (LatencyFaultToleranceImpl in Java). Who uses a
 * broker often holds its entry, so that a send looks no name up. Nothing here asks for the time:
 * each call is told. */
typedef struct rmq_faults rmq_faults;

/* One broker. It stays as long as somebody holds it or something is noted in it. */
typedef struct rmq_fault {
  rmq_faults *faults;
  char *name;
  bool noted;              /* an attempt has been noted; else what follows says "all is well" */
  int64_t latency_us;      /* of the last attempt */
  int64_t counted_us;      /* the same; a failure counts as rules.isolation_ms */
  rmq_mono available_from; /* avoided before */
  rmq_mono check_at;       /* not to be probed before */
  bool reachable;          /* a failure made it false, an attempt or a probe makes it true */
  size_t choosers;         /* those that have queues of it to write to */
  size_t holds;
} rmq_fault;

/* Shared by reference count: choosers may outlive whoever made it. */
struct rmq_faults {
  unsigned refs;
  rmq_fault_rules rules;
  rmq_map *by_name; /* rmq_fault */
  uint64_t changes; /* counts what may change who is available now, or make one available sooner */
  size_t sweep_at;  /* entries at which those that serve nobody are looked for */
};

/* An empty table; the rules are copied. */
rmq_faults *rmq_faults_new(const rmq_fault_rules *rules, uint64_t random);
rmq_faults *rmq_faults_ref(rmq_faults *faults);
/* NULL is let alone. The last one releases all entries; nobody may hold one then. */
void rmq_faults_unref(rmq_faults *faults);

/* The entry of a broker, made when there is none, for as long as it is held. Looks the name up. */
rmq_fault *rmq_faults_hold(rmq_faults *faults, rmq_slice name, rmq_mono now);
/* An entry that is held or in the table already, once more. */
static inline rmq_fault *rmq_fault_hold(rmq_fault *fault) {
  fault->holds++;
  return fault;
}
/* NULL is let alone. */
void rmq_fault_release(rmq_fault *fault);

/* Notes an attempt that ended now. `isolate`: it failed in a way that speaks against the broker;
 * `reachable`: whether it may be asked when no broker is available (5.x). Before 5.1.4 the last
 * attempt alone decides how long the broker is avoided; since then an avoidance can only be
 * prolonged. Does nothing when the strategy is off. Costs no lookup. */
void rmq_fault_note(rmq_fault *fault, rmq_mono now, int64_t latency_us, bool isolate,
                    bool reachable);

/* A probe was answered. One that failed changes nothing. */
void rmq_fault_note_probe(rmq_fault *fault);

/* Takes back all that was noted. The entry is released unless it is held. */
void rmq_fault_forget(rmq_fault *fault);
/* The same for all brokers that no chooser has queues of. */
void rmq_faults_forget_unused(rmq_faults *faults);

/* True from the very microsecond on at which the avoidance ends. */
static inline bool rmq_fault_available(const rmq_fault *fault, rmq_mono now) {
  return !rmq_mono_before(now, fault->available_from);
}
/* For how many microseconds it will still be avoided; 0 when it is available. */
int64_t rmq_fault_avoided_us(const rmq_fault *fault, rmq_mono now);

/* Whether a broker is available, by name; one of which nothing is noted is. Looks the name up. */
bool rmq_faults_available(const rmq_faults *faults, rmq_slice name, rmq_mono now);

/* Walks the brokers of which something is noted, in the order in which they were met: start with
 * `*at` = 0, stop at NULL. The one just returned may be forgotten during the walk. */
rmq_fault *rmq_faults_next(const rmq_faults *faults, size_t *at);

/* The same walk over those to be probed in this round: each that it gives is not due again for
 * rules.detect_interval_ms. */
rmq_fault *rmq_faults_next_due(rmq_faults *faults, rmq_mono now, size_t *at);

#endif

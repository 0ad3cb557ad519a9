#ifndef RMQ_SELECT_RULES_H
#define RMQ_SELECT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Which brokers a producer avoids, and for how long: the numbers behind a fault table. Pure. */

typedef enum rmq_strategy {
  RMQ_STRATEGY_OFF, /* latency_fault = false: round robin, nothing is noted */
  RMQ_STRATEGY_4X,  /* true: the rules of Java's client before 5.1.4 */
  RMQ_STRATEGY_5X   /* "5.x": the rules of Java's client since then */
} rmq_strategy;

enum {
  RMQ_FAULT_STEPS_MAX = 32,
  RMQ_FAULT_MS_MAX = 24 * 3600 * 1000 /* the greatest value of a step */
};

/* Two tables side by side: a broker whose attempt took at least latency_max_ms[i] is avoided for
 * not_available_ms[i]; the greatest such i counts, and below the first step the broker is not
 * avoided at all. */
typedef struct rmq_fault_rules {
  rmq_strategy strategy;
  size_t n;                                      /* steps, at least one */
  int64_t latency_max_ms[RMQ_FAULT_STEPS_MAX];   /* ascending */
  int64_t not_available_ms[RMQ_FAULT_STEPS_MAX]; /* never descending */
  int64_t isolation_ms;       /* the latency that a failure counts as: 30000, since 5.1.4 10000 */
  bool only_forward;          /* a good attempt does not end an avoidance that has begun */
  int64_t detect_interval_ms; /* a broker is probed at most this often */
} rmq_fault_rules;

/* The strategy that the setting latency_fault names: "false", "true" or "5.x". 0, or RMQ_EINVAL. */
int rmq_strategy_find(rmq_slice name, rmq_strategy *strategy);

/* A strategy's own numbers:
 * 4.x: 50, 100, 550, 1000, 2000, 3000, 15000 -> 0, 0, 30000, 60000, 120000, 180000, 600000
 * 5.x: 50, 100, 550, 1800, 3000, 5000, 15000 -> 0, 0, 2000, 5000, 6000, 10000, 30000 */
void rmq_fault_rules_init(rmq_fault_rules *rules, rmq_strategy strategy);

/* Replaces the tables by the settings latency_max and not_available_duration, each milliseconds
 * with commas between ("50,100,550"; blanks are let alone). An empty one leaves what is there. 0;
 * or RMQ_EINVAL, nothing changed, and a sentence in `why` that names the setting and what would be
 * right: both must be equally long, latency_max must ascend, the other must not descend. */
int rmq_fault_rules_set(rmq_fault_rules *rules, rmq_slice latency_max, rmq_slice not_available,
                        char *why, size_t why_size);

/* For how many milliseconds a broker is avoided after an attempt of `latency_us` microseconds, or
 * after one that failed. */
int64_t rmq_fault_rules_duration(const rmq_fault_rules *rules, int64_t latency_us);
int64_t rmq_fault_rules_isolation(const rmq_fault_rules *rules);

#endif

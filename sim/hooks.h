#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include "sim/workload.h"

/* Hooks that watch over their own calls, change what is sent, refuse, send, flush and shut down. A
 * third of the lives has them, with a chance of their own, so that the others are what they would be
 * without. */

/* What the hooks of one attempt make of a message follows from the two numbers, so that a broker can
 * tell what it has to look like. */
typedef struct sim_change {
  bool mark; /* the property "h" has the attempt's number */
  uint8_t
      flip; /* each byte of the body is changed by this; 0: it is as it was. Only with `mark`. */
} sim_change;
sim_change sim_change_of(uint32_t number, int attempt);

/* Gives the producer hooks, or none. */
void sim_hooks_start(sim_workload *workload, uint64_t seed);

/* A send has completed: its hooks have been called as often as they must be. */
void sim_check_hooks(sim_workload *workload, const sim_send *send,
                     const rmq_completion *completion);

#endif

#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "sim/world.h"

/* One seed: a world, a cluster, a producer from its making to its end, and what came of it. */

typedef struct sim_result {
  char broken[SIM_BROKEN_TEXT]; /* "" when every invariant held */
  uint64_t hash;                /* of the trace */
  uint64_t events;
  uint64_t virtual_ms;
  uint64_t sends, acknowledged, failed, refused, faults;
} sim_result;

/* Lives a seed. `verbose` prints the trace and the core's log as they grow; otherwise the end of
 * the trace is printed when an invariant breaks. */
sim_result sim_live(uint64_t seed, bool verbose);

#endif

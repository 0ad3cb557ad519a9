#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/splitmix.h"

/* Chance from a seed. Every part of a life that must not disturb another one has a
 * state of its own. */
typedef struct sim_random {
  uint64_t state;
} sim_random;

static inline uint64_t sim_random_next(sim_random *random) { return rmq_splitmix(&random->state); }

/* A number from `least` to `most`, both included. */
static inline int64_t sim_random_between(sim_random *random, int64_t least, int64_t most) {
  return least + (int64_t)(sim_random_next(random) % (uint64_t)(most - least + 1));
}

/* True `ppm` times in a million. */
static inline bool sim_random_chance(sim_random *random, uint32_t ppm) {
  return ppm > 0 && sim_random_next(random) % 1000000 < ppm;
}

/* A number from `least` to `most` whose size, not its value, is even: as often between 1 and 10 as
 * between 1000 and 10000. `least` is at least 1. */
static inline int64_t sim_random_spread(sim_random *random, int64_t least, int64_t most) {
  int64_t high = most;
  while (high / 4 >= least && sim_random_chance(random, 500000)) high /= 4;
  return sim_random_between(random, least, high);
}

#endif

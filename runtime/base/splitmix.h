#ifndef RMQ_BASE_SPLITMIX_H
#define RMQ_BASE_SPLITMIX_H

#include <stdint.h>

/* The next number of a random sequence (splitmix64), of which `*state` is all there is: the same state, the
 * same sequence. For spreading and for tests, not for secrets. */
static inline uint64_t rmq_splitmix(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

#endif

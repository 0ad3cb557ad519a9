#ifndef RMQ_BASE_CLOCK_H
#define RMQ_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Two clocks that cannot be mixed up: deadlines and durations use the monotonic one, what a peer
 * or a person reads uses the wall clock, which may step. */
typedef struct rmq_mono {
  int64_t us; /* microseconds since a start that means nothing */
} rmq_mono;

typedef struct rmq_wall {
  int64_t ms; /* milliseconds since 1970-01-01 UTC */
} rmq_wall;

#define RMQ_NEVER ((rmq_mono){INT64_MAX})

static inline rmq_mono rmq_mono_add_ms(rmq_mono t, int64_t ms) {
  return (rmq_mono){t.us + ms * 1000};
}
static inline int64_t rmq_mono_diff_us(rmq_mono later, rmq_mono earlier) {
  return later.us - earlier.us;
}
/* Whole milliseconds from `earlier` to `later`, rounded towards zero. */
static inline int64_t rmq_mono_diff_ms(rmq_mono later, rmq_mono earlier) {
  return (later.us - earlier.us) / 1000;
}
static inline bool rmq_mono_before(rmq_mono a, rmq_mono b) { return a.us < b.us; }
static inline rmq_mono rmq_mono_min(rmq_mono a, rmq_mono b) { return a.us < b.us ? a : b; }

#endif

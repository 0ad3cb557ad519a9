#ifndef RMQ_BASE_TICKS_H
#define RMQ_BASE_TICKS_H

#include <stdint.h>

#if !defined __x86_64__ && !defined __aarch64__
#include <time.h>
#endif

/* The processor's own counter of time, for what is too short to be worth a look at a clock: it costs less
 * than half of one. How long a tick is differs between machines, so it has to be compared with a clock, and
 * a task that moves to another processor may find another count there: what depends on it must do no harm
 * when it is wrong. */
static inline uint64_t rmq_ticks(void) {
#if defined __x86_64__
  return __builtin_ia32_rdtsc();
#elif defined __aarch64__
  uint64_t count;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
#endif
}

#endif

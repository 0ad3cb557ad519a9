#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "net/io.h"
#include "sim/random.h"

/* A world on virtual time behind rmq_io. Everything that happens is an event in one queue; between
 * two events nothing moves, the clock included. The world is a pure function of its seed. */

/* Something that will happen. */
typedef struct sim_event {
  int64_t at_us;
  uint64_t order; /* of being planned: events of one moment keep it */
  void (*fire)(void *arg, uint64_t data);
  void *arg;
  uint64_t data;
} sim_event;

/* One line of the trace. `what` is static text; the numbers mean what it says. */
typedef struct sim_note_line {
  uint64_t event;
  int64_t at_us;
  const char *what;
  int64_t a;
  int64_t b;
} sim_note_line;

enum { SIM_TRACE_LINES = 64, SIM_BROKEN_TEXT = 512 };

typedef struct sim_network sim_network;

typedef struct sim_world {
  rmq_io io; /* first: the core's view of this world */
  uint64_t seed;
  sim_random random;      /* the world's chance */
  sim_random core_random; /* what io->random gives, apart so that the core's questions do not change
                             the world */
  rmq_identity identity;

  int64_t now_us;
  int64_t wall_base_ms; /* the wall clock is wall_base_ms + now + wall_step_ms */
  int64_t wall_step_ms;

  sim_event *heap; /* ordered by at_us, then order */
  size_t n_heap, heap_cap;
  uint64_t planned;

  bool wake_set;
  int64_t wake_us;         /* when the one timer fires; at or after what was asked */
  int64_t wake_late_us;    /* at most so much later than asked */
  int64_t frozen_until_us; /* nothing is delivered to the process before this time */
  int64_t frozen_us;       /* how long it stood still, in all */
  bool flush_asked;

  bool sealed; /* the producer is gone: it must not touch the network */
  bool exact;  /* reads and writes are not cut into pieces for their own sake */
  uint32_t open_fail_ppm;

  uint64_t events; /* fired so far */
  uint64_t hash;   /* of the whole trace */
  bool verbose;
  sim_note_line trace[SIM_TRACE_LINES]; /* the last lines, a ring */
  uint64_t notes;
  char broken[SIM_BROKEN_TEXT]; /* the first invariant that did not hold, or "" */

  sim_network *network;
} sim_world;

/* A world at its first moment. `verbose` prints the trace as it grows. */
void sim_world_init(sim_world *world, uint64_t seed, bool verbose);
void sim_world_free(sim_world *world);

/* Plans an event `after_us` microseconds from now (0: after those already planned for now). */
void sim_plan(sim_world *world, int64_t after_us, void (*fire)(void *arg, uint64_t data), void *arg,
              uint64_t data);

/* Lets the next thing happen. False when nothing is left to happen, or an invariant is broken. */
bool sim_world_step(sim_world *world);

/* The process stands still for a while (SIGSTOP, a slow collector): the network and its hosts go
 * on. One that stands still already goes on as it would have. */
void sim_world_freeze(sim_world *world, int64_t us);
/* For what is delivered to the process: true when it stands still, and then the event is planned
 * again for its return. */
bool sim_is_frozen(sim_world *world, void (*fire)(void *arg, uint64_t data), void *arg,
                   uint64_t data);

/* Adds a line to the trace. */
void sim_note(sim_world *world, const char *what, int64_t a, int64_t b);

/* An invariant does not hold. The first one stays; the run ends. */
void sim_break(sim_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool sim_is_broken(const sim_world *world) { return world->broken[0] != '\0'; }

/* Prints the end of the trace on stdout. */
void sim_trace_print(const sim_world *world);

#endif

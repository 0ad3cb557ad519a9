#include "sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/network.h"

/* ---- Clocks, chance and the timer, as the core sees them ---- */

static sim_world *world_of(rmq_io *io) { return (sim_world *)(void *)io; }

static rmq_mono io_now(rmq_io *io) { return (rmq_mono){world_of(io)->now_us}; }

static rmq_wall io_wall(rmq_io *io) {
  const sim_world *world = world_of(io);
  return (rmq_wall){world->wall_base_ms + world->now_us / 1000 + world->wall_step_ms};
}

static uint64_t io_random(rmq_io *io) { return sim_random_next(&world_of(io)->core_random); }

static const rmq_identity *io_identity(rmq_io *io) { return &world_of(io)->identity; }

static void io_wake_at(rmq_io *io, rmq_mono at) {
  sim_world *world = world_of(io);
  world->wake_set = at.us != INT64_MAX;
  if (!world->wake_set) return;
  world->wake_us = at.us > world->now_us ? at.us : world->now_us;
  world->wake_us += sim_random_between(&world->random, 0, world->wake_late_us);
  sim_note(world, "wake asked for", world->wake_us - world->now_us, 0);
}

static void io_end_of_turn(rmq_io *io) { world_of(io)->flush_asked = true; }

static const rmq_io_calls calls = {
    .now = io_now,
    .wall = io_wall,
    .random = io_random,
    .identity = io_identity,
    .wake_at = io_wake_at,
    .end_of_turn = io_end_of_turn,
    .lookup = sim_lookup,
    .lookup_cancel = sim_lookup_cancel,
    .open = sim_open,
    .read = sim_read,
    .write = sim_write,
    .want_write = sim_want_write,
    .close = sim_close,
    .text = sim_text,
};

void sim_world_init(sim_world *world, uint64_t seed, bool verbose) {
  *world = (sim_world){.seed = seed, .verbose = verbose, .hash = UINT64_C(0xCBF29CE484222325)};
  world->io.calls = &calls;
  world->random.state = seed * UINT64_C(0xD1342543DE82EF95) + 1;
  world->core_random.state = sim_random_next(&world->random);
  world->now_us = sim_random_between(&world->random, 0, 1000000000);
  /* Some time between 2020 and 2030, one time in eight within half a minute of a month's end. */
  int64_t day_ms = INT64_C(86400000);
  world->wall_base_ms =
      INT64_C(1577836800000) + sim_random_between(&world->random, 0, 3652) * day_ms;
  if (sim_random_chance(&world->random, 125000)) {
    world->wall_base_ms = INT64_C(1772323200000) - world->now_us / 1000 -
                          sim_random_between(&world->random, 0, 30000);
  }
  world->wake_late_us = sim_random_chance(&world->random, 500000) ? 0 : 300;
  world->identity.ip_len = sim_random_chance(&world->random, 200000) ? 16 : 4;
  for (int i = 0; i < world->identity.ip_len; i++) {
    world->identity.ip[i] = (uint8_t)sim_random_next(&world->random);
  }
  world->identity.pid = (uint32_t)sim_random_between(&world->random, 1, 4194304);
  world->identity.tag = (uint32_t)sim_random_next(&world->random);
  world->network = sim_network_new(world);
}

void sim_world_free(sim_world *world) {
  sim_network_free(world->network);
  free(world->heap);
}

/* ---- The queue of events ---- */

static bool before(const sim_event *a, const sim_event *b) {
  return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

static void sift_up(sim_world *world, size_t at) {
  sim_event moved = world->heap[at];
  while (at > 0 && before(&moved, &world->heap[(at - 1) / 2])) {
    world->heap[at] = world->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  world->heap[at] = moved;
}

static void sift_down(sim_world *world) {
  sim_event moved = world->heap[0];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= world->n_heap) break;
    if (child + 1 < world->n_heap && before(&world->heap[child + 1], &world->heap[child])) child++;
    if (!before(&world->heap[child], &moved)) break;
    world->heap[at] = world->heap[child];
    at = child;
  }
  world->heap[at] = moved;
}

void sim_plan(sim_world *world, int64_t after_us, void (*fire)(void *arg, uint64_t data), void *arg,
              uint64_t data) {
  if (world->n_heap == world->heap_cap) {
    world->heap_cap = world->heap_cap ? 2 * world->heap_cap : 256;
    world->heap = rmq_realloc(world->heap, world->heap_cap * sizeof *world->heap);
  }
  world->heap[world->n_heap] =
      (sim_event){world->now_us + (after_us > 0 ? after_us : 0), world->planned++, fire, arg, data};
  sift_up(world, world->n_heap++);
}

static sim_event take_first(sim_world *world) {
  sim_event first = world->heap[0];
  world->heap[0] = world->heap[--world->n_heap];
  if (world->n_heap > 0) sift_down(world);
  return first;
}

/* ---- One step ---- */

static void flush(sim_world *world) {
  world->flush_asked = false;
  sim_note(world, "flush", 0, 0);
  world->io.host->flush(world->io.owner);
}

static void wake(sim_world *world) {
  world->wake_set = false;
  sim_note(world, "wake", 0, 0);
  world->io.host->wake(world->io.owner);
}

/* The timer comes before an event of the same moment half of the time, as on a real loop. */
static bool wake_is_next(sim_world *world) {
  if (!world->wake_set) return false;
  if (world->wake_us < world->frozen_until_us) world->wake_us = world->frozen_until_us;
  if (world->n_heap == 0) return true;
  int64_t event_us = world->heap[0].at_us;
  if (event_us != world->wake_us) return world->wake_us < event_us;
  return sim_random_chance(&world->random, 500000);
}

bool sim_world_step(sim_world *world) {
  if (sim_is_broken(world)) return false;
  bool is_wake = wake_is_next(world);
  bool nothing = !is_wake && world->n_heap == 0;
  int64_t next_us = nothing ? INT64_MAX : is_wake ? world->wake_us : world->heap[0].at_us;
  /* The turn ends at the latest when time would move on, and sooner when it likes. */
  if (world->flush_asked && world->now_us >= world->frozen_until_us &&
      (next_us > world->now_us || sim_random_chance(&world->random, 100000))) {
    world->events++;
    flush(world);
    return !sim_is_broken(world);
  }
  if (nothing) return false;
  world->events++;
  if (next_us > world->now_us) world->now_us = next_us;
  if (is_wake) {
    wake(world);
  } else {
    sim_event event = take_first(world);
    event.fire(event.arg, event.data);
  }
  return !sim_is_broken(world);
}

void sim_world_freeze(sim_world *world, int64_t us) {
  sim_note(world, "process stands still", us, 0);
  if (world->now_us < world->frozen_until_us) return;
  world->frozen_until_us = world->now_us + us;
  world->frozen_us += us;
}

bool sim_is_frozen(sim_world *world, void (*fire)(void *arg, uint64_t data), void *arg,
                   uint64_t data) {
  if (world->now_us >= world->frozen_until_us) return false;
  sim_plan(world, world->frozen_until_us - world->now_us, fire, arg, data);
  return true;
}

/* ---- The trace ---- */

static void hash_number(uint64_t *hash, uint64_t number) {
  *hash = (*hash ^ number) * UINT64_C(0x9E3779B97F4A7C15);
  *hash ^= *hash >> 29;
}

static void print_line(const sim_note_line *line) {
  printf("%9" PRIu64 " %13.3f ms  %-22s %" PRId64 " %" PRId64 "\n", line->event,
         (double)line->at_us / 1000.0, line->what, line->a, line->b);
}

void sim_note(sim_world *world, const char *what, int64_t a, int64_t b) {
  sim_note_line *line = &world->trace[world->notes++ % SIM_TRACE_LINES];
  *line = (sim_note_line){world->events, world->now_us, what, a, b};
  hash_number(&world->hash, (uint64_t)world->now_us);
  for (const char *at = what; *at; at++) hash_number(&world->hash, (uint8_t)*at);
  hash_number(&world->hash, (uint64_t)a);
  hash_number(&world->hash, (uint64_t)b);
  if (world->verbose) print_line(line);
}

void sim_break(sim_world *world, const char *format, ...) {
  if (sim_is_broken(world)) return;
  va_list args;
  va_start(args, format);
  vsnprintf(world->broken, sizeof world->broken, format, args);
  va_end(args);
}

void sim_trace_print(const sim_world *world) {
  uint64_t first = world->notes > SIM_TRACE_LINES ? world->notes - SIM_TRACE_LINES : 0;
  for (uint64_t i = first; i < world->notes; i++) print_line(&world->trace[i % SIM_TRACE_LINES]);
}

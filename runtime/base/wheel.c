#include "base/wheel.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

/* A time in whole milliseconds (a tick) is a number of nine digits of six bits, and there is a ring
 * of 64 slots for each digit. A timer stands in the ring of the highest digit in which its tick
 * differs from the present tick, in the slot of that digit's value: what is due within the present
 * 64 ms is in ring 0, what comes later in a coarser one. When the time reaches the start of a
 * coarser slot, its timers move to finer rings. So
 * - all timers of one tick are always in one slot, in the order of their setting;
 * - everything in a finer ring is due before everything in a coarser one;
 * - a word with a bit per slot finds the next occupied one without walking over empty ones. */
enum { BITS = 6, SLOTS = 1 << BITS, RINGS = 9 };

typedef struct ring {
  uint64_t occupied; /* bit i: slots[i] is not empty */
  rmq_link slots[SLOTS];
} ring;

struct rmq_wheel {
  int64_t tick; /* the present, as of the last advance */
  ring rings[RINGS];
  rmq_link due;   /* what the advance under way has yet to fire */
  bool advancing; /* fire callbacks are running */
  bool freed;     /* rmq_wheel_free was called from one of them */
};

static int64_t tick_of(rmq_mono at) { return at.us < 0 ? 0 : at.us / 1000; }

rmq_wheel *rmq_wheel_new(rmq_mono now) {
  rmq_wheel *wheel = rmq_alloc_zero(1, sizeof *wheel);
  wheel->tick = tick_of(now);
  for (int r = 0; r < RINGS; r++) {
    for (int s = 0; s < SLOTS; s++) rmq_link_init(&wheel->rings[r].slots[s]);
  }
  rmq_link_init(&wheel->due);
  return wheel;
}

static void unset_all(rmq_link *list) {
  while (!rmq_link_alone(list)) rmq_link_remove(list->next);
}

void rmq_wheel_free(rmq_wheel *wheel) {
  if (!wheel) return;
  for (int r = 0; r < RINGS; r++) {
    for (int s = 0; s < SLOTS; s++) unset_all(&wheel->rings[r].slots[s]);
  }
  unset_all(&wheel->due);
  wheel->freed = true;
  if (!wheel->advancing) free(wheel);
}

void rmq_timer_init(rmq_timer *timer, void (*fire)(rmq_timer *)) {
  rmq_link_init(&timer->link);
  timer->at = RMQ_NEVER;
  timer->fire = fire;
}

bool rmq_timer_is_set(const rmq_timer *timer) { return !rmq_link_alone(&timer->link); }

/* Where a timer for `at` belongs at the present tick; times gone by belong to the present slot. */
static void locate(const rmq_wheel *wheel, rmq_mono at, int *which_ring, int *which_slot) {
  int64_t tick = tick_of(at);
  if (tick < wheel->tick) tick = wheel->tick;
  uint64_t differs = (uint64_t)(tick ^ wheel->tick);
  *which_ring = differs ? (63 - __builtin_clzll(differs)) / BITS : 0;
  *which_slot = (int)(tick >> (*which_ring * BITS) & (SLOTS - 1));
}

static void place(rmq_wheel *wheel, rmq_timer *timer) {
  int r, s;
  locate(wheel, timer->at, &r, &s);
  rmq_link_append(&wheel->rings[r].slots[s], &timer->link);
  wheel->rings[r].occupied |= (uint64_t)1 << s;
}

void rmq_timer_stop(rmq_wheel *wheel, rmq_timer *timer) {
  if (!rmq_timer_is_set(timer)) return;
  rmq_link_remove(&timer->link);
  /* A timer of the due list was in no slot; then this looks at the present slot, which does no
   * harm. */
  int r, s;
  locate(wheel, timer->at, &r, &s);
  if (rmq_link_alone(&wheel->rings[r].slots[s])) {
    wheel->rings[r].occupied &= ~((uint64_t)1 << s);
  }
}

void rmq_timer_set(rmq_wheel *wheel, rmq_timer *timer, rmq_mono at) {
  rmq_timer_stop(wheel, timer);
  timer->at = at;
  place(wheel, timer);
}

/* Finds the first occupied slot and the tick at which it starts. The slots of a ring before the
 * present digit are empty, so the lowest bit is the next in time. */
static bool first_slot(const rmq_wheel *wheel, int *which_ring, int *which_slot, int64_t *start) {
  for (int r = 0; r < RINGS; r++) {
    uint64_t occupied = wheel->rings[r].occupied;
    if (!occupied) continue;
    *which_ring = r;
    *which_slot = __builtin_ctzll(occupied);
    int64_t above = wheel->tick >> ((r + 1) * BITS) << BITS;
    *start = (above | *which_slot) << (r * BITS);
    return true;
  }
  return false;
}

/* Puts a timer into the due list: by time, and after those of the same time. They come nearly in
 * order, so the search from the end is short. */
static void add_due(rmq_wheel *wheel, rmq_timer *timer) {
  rmq_link *after = wheel->due.prev;
  while (after != &wheel->due && rmq_link_owner(after, rmq_timer, link)->at.us > timer->at.us) {
    after = after->prev;
  }
  rmq_link_append(after->next, &timer->link);
}

/* Takes a slot's timers out in order: those due at `now` into the due list, the others to where
 * they belong at the present tick. */
static void empty_slot(rmq_wheel *wheel, int r, int s, rmq_mono now) {
  rmq_link all;
  rmq_link_init(&all);
  rmq_link_splice(&all, &wheel->rings[r].slots[s]);
  wheel->rings[r].occupied &= ~((uint64_t)1 << s);
  while (!rmq_link_alone(&all)) {
    rmq_timer *timer = rmq_link_owner(all.next, rmq_timer, link);
    rmq_link_remove(&timer->link);
    if (timer->at.us <= now.us) {
      add_due(wheel, timer);
    } else {
      place(wheel, timer);
    }
  }
}

static void collect_due(rmq_wheel *wheel, rmq_mono now) {
  int64_t tick = tick_of(now);
  int r, s;
  int64_t start;
  while (first_slot(wheel, &r, &s, &start) && start <= tick) {
    wheel->tick = start;
    empty_slot(wheel, r, s, now);
    /* What is left of the present millisecond is due later within it. */
    if (r == 0 && start == tick) return;
  }
  if (wheel->tick < tick) wheel->tick = tick;
}

void rmq_wheel_advance(rmq_wheel *wheel, rmq_mono now) {
  if (wheel->advancing) return;
  collect_due(wheel, now);
  wheel->advancing = true;
  while (!rmq_link_alone(&wheel->due)) {
    rmq_timer *timer = rmq_link_owner(wheel->due.next, rmq_timer, link);
    rmq_link_remove(&timer->link);
    timer->fire(timer);
  }
  wheel->advancing = false;
  if (wheel->freed) free(wheel);
}

rmq_mono rmq_wheel_next(const rmq_wheel *wheel) {
  int r, s;
  int64_t start;
  if (!first_slot(wheel, &r, &s, &start)) return RMQ_NEVER;
  if (r > 0) return (rmq_mono){start * 1000};
  /* Exact in the finest ring: the start of a slot may have gone by already, and whoever waits
   * for it would wake again and again until the timer is due. */
  rmq_mono next = RMQ_NEVER;
  const rmq_link *slot = &wheel->rings[r].slots[s];
  for (const rmq_link *link = slot->next; link != slot; link = link->next) {
    next = rmq_mono_min(next, rmq_link_owner(link, rmq_timer, link)->at);
  }
  return next;
}

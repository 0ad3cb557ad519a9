#include <stdlib.h>

#include "base/wheel.h"
#include "check.h"

enum { TIMERS = 200 };

typedef struct probe {
  rmq_timer timer; /* first: the callbacks cast back */
  int fired;
  long order; /* of its setting */
} probe;

static rmq_wheel *wheel;
static rmq_mono present;
static probe probes[TIMERS];
static probe *fired[100000];
static size_t n_fired;

static void note(rmq_timer *timer) {
  probe *p = (probe *)timer;
  p->fired++;
  CHECK(timer->at.us <= present.us);
  CHECK(!rmq_timer_is_set(timer));
  fired[n_fired++] = p;
}

static void start(int64_t us, void (*fire)(rmq_timer *)) {
  present.us = us;
  wheel = rmq_wheel_new(present);
  n_fired = 0;
  memset(probes, 0, sizeof probes);
  for (int i = 0; i < TIMERS; i++) rmq_timer_init(&probes[i].timer, fire);
}

static void advance(int64_t us) {
  present.us = us;
  rmq_wheel_advance(wheel, present);
}

static void set(int which, int64_t us) {
  rmq_timer_set(wheel, &probes[which].timer, (rmq_mono){us});
}

static void never_early_and_at_once_when_reached(void) {
  const int64_t distances[] = {0,
                               1,
                               999,
                               1000,
                               1001,
                               63999,
                               64000,
                               64001,
                               4095999,
                               4096000,
                               262144000,
                               INT64_C(1) << 40,
                               123456,
                               9999999,
                               3000000000,
                               86400000000,
                               INT64_C(1) << 55};
  const int64_t starts[] = {0, 1, 999, 63999, 64000, 4095123, INT64_C(1) << 50};
  for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
    for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++) {
      start(starts[s], note);
      int64_t at = starts[s] + distances[d];
      set(0, at);
      CHECK(rmq_wheel_next(wheel).us <= at);
      if (distances[d]) advance(at - 1);
      CHECK_INT(n_fired, 0);
      CHECK(rmq_timer_is_set(&probes[0].timer));
      advance(at);
      CHECK_INT(n_fired, 1);
      CHECK_INT(rmq_wheel_next(wheel).us, RMQ_NEVER.us);
      rmq_wheel_free(wheel);
    }
  }
}

static void the_end_of_time_and_the_past_are_times_too(void) {
  start(5000, note);
  set(0, INT64_MAX);
  set(1, -7);
  set(2, 0);
  advance(5000);
  CHECK_INT(n_fired, 2);
  CHECK(fired[0] == &probes[1]);
  advance(INT64_MAX - 1);
  CHECK_INT(n_fired, 2);
  advance(INT64_MAX);
  CHECK_INT(n_fired, 3);
  rmq_wheel_free(wheel);
}

static void those_due_together_fire_in_order(void) {
  start(0, note);
  set(0, 7001);
  set(1, 100000); /* in a coarse slot first, as probe 3 is set when the time is near */
  set(2, 7000);
  advance(70000);
  set(3, 100000);
  set(4, 99999);
  advance(200000);
  const int expected[] = {2, 0, 4, 1, 3};
  CHECK_INT(n_fired, 5);
  for (size_t i = 0; i < 5; i++) CHECK_INT(fired[i] - probes, expected[i]);
  rmq_wheel_free(wheel);
}

static void set_again_and_stop(void) {
  start(0, note);
  set(0, 1000);
  set(0, 5000);
  set(1, 5000);
  rmq_timer_stop(wheel, &probes[1].timer);
  rmq_timer_stop(wheel, &probes[1].timer);
  CHECK(!rmq_timer_is_set(&probes[1].timer));
  advance(4999);
  CHECK_INT(n_fired, 0);
  advance(5000);
  CHECK_INT(n_fired, 1);
  rmq_wheel_free(wheel);
}

static void change_others(rmq_timer *timer) {
  note(timer);
  if (timer == &probes[0].timer) {
    rmq_timer_stop(wheel, &probes[1].timer); /* due in this very advance */
    set(2, 900000);
    set(0, present.us); /* itself, in the past: only in the next advance */
    set(5, present.us - 100);
  }
}

static void callbacks_may_set_and_stop(void) {
  start(0, change_others);
  for (int i = 0; i < 4; i++) set(i, 1000);
  advance(1000);
  CHECK_INT(n_fired, 2);
  CHECK(fired[1] == &probes[3]);
  CHECK_INT(rmq_wheel_next(wheel).us, 900);
  probes[0].timer.fire = note;
  advance(1000);
  CHECK_INT(n_fired, 4);
  CHECK(fired[2] == &probes[5] && fired[3] == &probes[0]);
  advance(900000);
  CHECK(fired[4] == &probes[2]);
  rmq_wheel_free(wheel);
}

static void free_the_wheel(rmq_timer *timer) {
  note(timer);
  rmq_wheel_free(wheel);
}

static void may_be_freed_from_inside(void) {
  start(0, free_the_wheel);
  for (int i = 0; i < 3; i++) set(i, 1000 * (i + 1));
  advance(2000);
  CHECK_INT(n_fired, 1);
  CHECK(!rmq_timer_is_set(&probes[1].timer) && !rmq_timer_is_set(&probes[2].timer));
}

/* A jump over centuries must not walk over their milliseconds; it would never end here. */
static void jumps_cost_nothing(void) {
  start(0, note);
  for (int64_t round = 1; round <= 1000; round++) {
    set(0, present.us + (INT64_C(1) << 52));
    advance(present.us + (INT64_C(1) << 52));
  }
  CHECK_INT(n_fired, 1000);
  rmq_wheel_free(wheel);
}

static int64_t random_distance(uint32_t *state) {
  *state = *state * 1664525 + 1013904223;
  int bits = (int)(*state >> 27);
  *state = *state * 1664525 + 1013904223;
  return ((int64_t)*state & ((INT64_C(1) << bits) - 1)) - 3;
}

/* Fires the model's earliest due probe, the first set among equals; NULL when none is due. */
static probe *earliest_due(void) {
  probe *best = NULL;
  for (int i = 0; i < TIMERS; i++) {
    probe *p = &probes[i];
    if (p->order == 0 || p->timer.at.us > present.us) continue;
    if (!best || p->timer.at.us < best->timer.at.us ||
        (p->timer.at.us == best->timer.at.us && p->order < best->order)) {
      best = p;
    }
  }
  return best;
}

static void does_what_a_sorted_list_does(void) {
  start(123456, note);
  uint32_t random = 42;
  long order = 0;
  for (int step = 0; step < 30000; step++) {
    int64_t distance = random_distance(&random);
    probe *p = &probes[(random >> 20) % TIMERS];
    switch (random >> 12 & 3) {
      case 0:
        rmq_timer_stop(wheel, &p->timer);
        p->order = 0;
        break;
      case 1:
        n_fired = 0;
        advance(present.us + (distance < 0 ? 0 : distance / 4));
        for (size_t i = 0; i < n_fired; i++) {
          probe *expected = earliest_due();
          if (fired[i] != expected) CHECK_INT(step, -1);
          fired[i]->order = 0;
        }
        if (earliest_due()) CHECK_INT(step, -2);
        break;
      default:
        rmq_timer_set(wheel, &p->timer, (rmq_mono){present.us + distance});
        p->order = ++order;
    }
    int64_t next = INT64_MAX;
    for (int i = 0; i < TIMERS; i++) {
      if (probes[i].order && probes[i].timer.at.us < next) next = probes[i].timer.at.us;
      if ((probes[i].order != 0) != rmq_timer_is_set(&probes[i].timer)) CHECK_INT(step, -3);
    }
    if (rmq_wheel_next(wheel).us > next) CHECK_INT(step, -4);
  }
  rmq_wheel_free(wheel);
}

int main(void) {
  check_run("never early, and at once when reached", never_early_and_at_once_when_reached);
  check_run("the end of time and the past are times too",
            the_end_of_time_and_the_past_are_times_too);
  check_run("those due together fire in order", those_due_together_fire_in_order);
  check_run("set again and stop", set_again_and_stop);
  check_run("callbacks may set and stop", callbacks_may_set_and_stop);
  check_run("may be freed from inside", may_be_freed_from_inside);
  check_run("jumps cost nothing", jumps_cost_nothing);
  check_run("does what a sorted list does", does_what_a_sorted_list_does);
  return check_end();
}

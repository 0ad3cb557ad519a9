#ifndef RMQ_BASE_WHEEL_H
#define RMQ_BASE_WHEEL_H

#include "base/clock.h"
#include "base/list.h"

/* A timer wheel with slots of one millisecond: setting and stopping cost the same however many
 * timers there are. A timer never fires early, and fires at the first rmq_wheel_advance whose
 * time has reached it; those due together fire in the order of their times, then of their
 * setting. */
typedef struct rmq_timer {
  rmq_link link;
  rmq_mono at;
  void (*fire)(struct rmq_timer *timer); /* may set and stop any timer, itself included */
} rmq_timer;

typedef struct rmq_wheel rmq_wheel;

rmq_wheel *rmq_wheel_new(rmq_mono now);
void rmq_wheel_free(rmq_wheel *wheel);

void rmq_timer_init(rmq_timer *timer, void (*fire)(rmq_timer *));
/* Sets a timer, also one that is set already. A time in the past fires at the next advance. */
void rmq_timer_set(rmq_wheel *wheel, rmq_timer *timer, rmq_mono at);
/* Stops a timer; one that is not set is left alone. */
void rmq_timer_stop(rmq_wheel *wheel, rmq_timer *timer);
bool rmq_timer_is_set(const rmq_timer *timer);

/* Fires all that is due at `now`. A timer set for the past from inside waits for the next
 * advance. */
void rmq_wheel_advance(rmq_wheel *wheel, rmq_mono now);
/* No timer fires before this time (it may be earlier than the next one by less than the span of the
 * slot that holds it); RMQ_NEVER when none is set. */
rmq_mono rmq_wheel_next(const rmq_wheel *wheel);

#endif

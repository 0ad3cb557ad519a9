#include <stdlib.h>

#include "base/memory.h"
#include "producer/core.h"
#include "producer/request.h"

/* The end of a producer: what is under way gets its time, the rest fails, the brokers are told.
 * Each step comes from a timer or from the routes, never from inside the call that makes it
 * possible. */

/* What unregistering may take: brokers that do not answer forget us by themselves after 120 s. */
enum { PARTING_MS = 1000 };

/* Somebody who waits for the end. */
typedef struct ender {
  rmq_link link;
  rmq_flush_done *done;
  void *arg;
} ender;

static void step(rmq_producer *producer, int64_t in_ms) {
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_transport_timer(producer->transport, &producer->end_timer, rmq_mono_add_ms(now, in_ms));
}

/* Who comes later may have less time: the end of the process, for example. */
static void hurry(rmq_producer *producer, int64_t timeout_ms) {
  rmq_mono end = rmq_mono_add_ms(rmq_transport_now(producer->transport), timeout_ms);
  if (rmq_mono_before(end, producer->end_timer.at)) step(producer, timeout_ms);
}

/* Tells all who wait. The producer may be freed by any of them: nothing of it is used between. */
static void tell_enders(rmq_producer *producer) {
  size_t undelivered = producer->undelivered;
  rmq_link told;
  rmq_link_init(&told);
  rmq_link_splice(&told, &producer->enders);
  while (!rmq_link_alone(&told)) {
    ender *waiter = rmq_link_owner(told.next, ender, link);
    rmq_link_remove(&waiter->link);
    waiter->done(waiter->arg, undelivered);
    free(waiter);
  }
}

static void parted(void *arg) {
  rmq_producer *producer = arg;
  rmq_transport_close_all(producer->transport);
  producer->state = RMQ_STATE_SHUT;
  tell_enders(producer);
}

/* Trace messages that were not stored in time, and records that did not even get that far. */
static void fail_own(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->own)) {
    rmq_send_fail_shutdown(rmq_link_owner(producer->own.next, rmq_send, link));
  }
  if (producer->transport && producer->trace) rmq_trace_drop_gathered(producer->trace);
}

static void fail_the_rest(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->active)) {
    rmq_send *send = rmq_link_owner(producer->active.next, rmq_send, link);
    if (send->has_kept) {
      rmq_send_withdraw(send);
      rmq_send_end_with_kept(send);
      continue;
    }
    producer->undelivered++;
    rmq_send_fail_shutdown(send);
  }
  rmq_producer_fail_requests(producer);
  rmq_producer_leave_transactions(producer);
  rmq_producer_leave_checks(producer);
  rmq_producer_check_flushes(producer); /* some waited for what was left */
  rmq_producer_fail_queries(producer);
  rmq_producer_fail_calls(producer);
  rmq_producer_fail_admins(producer);
  fail_own(producer);
}

static bool users_are_through(const rmq_producer *producer) {
  return rmq_link_alone(&producer->active) && rmq_link_alone(&producer->calls) &&
         rmq_link_alone(&producer->admins) && rmq_link_alone(&producer->questions) &&
         rmq_link_alone(&producer->transactions) && !rmq_producer_has_checks(producer);
}

/* Trace records come last: they are about all that went before. */
static bool is_idle(rmq_producer *producer) {
  if (!users_are_through(producer)) return false;
  if (!producer->trace) return true;
  rmq_trace_flush(producer->trace);
  return rmq_trace_is_idle(producer->trace);
}

static void drained(rmq_producer *producer) {
  rmq_producer_enter(producer);
  producer->state = RMQ_STATE_PARTING;
  fail_the_rest(producer);
  if (producer->transport) rmq_producer_stop_detector(producer);
  if (producer->transport) rmq_routes_farewell(producer->routes, PARTING_MS, parted, producer);
  rmq_producer_leave(producer);
}

static void step_due(rmq_timer *timer) {
  rmq_producer *producer = rmq_link_owner(timer, rmq_producer, end_timer);
  if (producer->state == RMQ_STATE_DRAINING) {
    drained(producer);
  } else if (producer->state == RMQ_STATE_SHUT) {
    tell_enders(producer);
  }
}

void rmq_producer_init_end(rmq_producer *producer) {
  rmq_timer_init(&producer->end_timer, step_due);
}

void rmq_producer_shutdown(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                           void *arg) {
  if (!producer->transport) return; /* in a forked child nothing completes */
  ender *waiter = rmq_alloc_zero(1, sizeof *waiter);
  waiter->done = done;
  waiter->arg = arg;
  rmq_link_append(&producer->enders, &waiter->link);
  if (producer->state == RMQ_STATE_RUNNING) {
    producer->state = RMQ_STATE_DRAINING;
    rmq_gather_release_all(producer);
    if (!producer->transport) return; /* a hook has forked meanwhile */
    rmq_producer_drop_waiting_checks(producer);
    step(producer, is_idle(producer) ? 0 : timeout_ms);
  } else if (producer->state == RMQ_STATE_DRAINING) {
    hurry(producer, timeout_ms);
  } else if (producer->state == RMQ_STATE_SHUT) {
    step(producer, 0);
  }
}

void rmq_producer_check_end(rmq_producer *producer) {
  if (producer->state != RMQ_STATE_DRAINING || !is_idle(producer)) return;
  if (producer->transport) step(producer, 0);
}

void rmq_producer_drop_enders(rmq_producer *producer) {
  rmq_transport_timer_stop(producer->transport, &producer->end_timer);
  while (!rmq_link_alone(&producer->enders)) {
    ender *waiter = rmq_link_owner(producer->enders.next, ender, link);
    rmq_link_remove(&waiter->link);
    free(waiter);
  }
}

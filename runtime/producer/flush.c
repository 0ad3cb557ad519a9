#include <stdlib.h>

#include "base/memory.h"
#include "producer/core.h"

/* Somebody who waits until all sends up to a number have completed. */
typedef struct flush {
  rmq_link link; /* in the producer's `flushes`, in the order of their calls, so of their numbers */
  rmq_timer timer;
  rmq_producer *producer;
  uint64_t up_to;
  bool tracing;    /* the sends have completed, and their trace records are under way: */
  uint64_t traces; /* up to this trace message */
  rmq_flush_done *done;
  void *arg;
} flush;

static size_t unfinished(const flush *waiter) {
  const rmq_producer *producer = waiter->producer;
  size_t n = 0;
  for (rmq_link *link = producer->active.next; link != &producer->active; link = link->next) {
    if (rmq_link_owner(link, rmq_send, link)->number > waiter->up_to) break;
    n++;
  }
  return n + rmq_transactions_unfinished(producer, waiter->up_to);
}

static bool sends_are_over(const flush *waiter) {
  const rmq_link *active = &waiter->producer->active;
  return rmq_link_alone(active) ||
         rmq_link_owner(active->next, rmq_send, link)->number > waiter->up_to;
}

/* True when there is nothing left to wait for. Trace records do not wait for more of them then. */
static bool is_over(flush *waiter) {
  rmq_trace *trace = waiter->producer->trace;
  if (!sends_are_over(waiter)) return false;
  if (!rmq_transactions_finished(waiter->producer, waiter->up_to)) return false;
  if (!trace) return true;
  if (!waiter->tracing) waiter->traces = rmq_trace_flush(trace);
  waiter->tracing = true;
  return rmq_trace_is_through(trace, waiter->traces);
}

static void end(flush *waiter) {
  rmq_producer *producer = waiter->producer;
  size_t left = unfinished(waiter);
  rmq_link_remove(&waiter->link);
  rmq_transport_timer_stop(producer->transport, &waiter->timer);
  rmq_producer_enter(producer);
  waiter->done(waiter->arg, left);
  free(waiter);
  rmq_producer_leave(producer);
}

static void time_over(rmq_timer *timer) { end(rmq_link_owner(timer, flush, timer)); }

void rmq_producer_flush(rmq_producer *producer, int64_t timeout_ms, rmq_flush_done *done,
                        void *arg) {
  if (!producer->transport) return; /* in a forked child nothing completes */
  flush *waiter = rmq_alloc_zero(1, sizeof *waiter);
  waiter->producer = producer;
  waiter->up_to = producer->numbers;
  waiter->done = done;
  waiter->arg = arg;
  rmq_timer_init(&waiter->timer, time_over);
  rmq_link_append(&producer->flushes, &waiter->link);
  rmq_gather_release_all(producer);
  if (!producer->transport) return; /* a hook has forked meanwhile */
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_transport_timer(producer->transport, &waiter->timer,
                      rmq_mono_add_ms(now, is_over(waiter) ? 0 : timeout_ms));
}

void rmq_producer_check_flushes(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->flushes)) {
    flush *oldest = rmq_link_owner(producer->flushes.next, flush, link);
    if (!is_over(oldest)) return;
    end(oldest);
  }
}

void rmq_producer_drop_flushes(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->flushes)) {
    flush *waiter = rmq_link_owner(producer->flushes.next, flush, link);
    rmq_link_remove(&waiter->link);
    rmq_transport_timer_stop(producer->transport, &waiter->timer);
    free(waiter);
  }
}

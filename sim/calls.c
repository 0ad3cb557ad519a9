/* What a user asks of a producer besides sending. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/invariants.h"
#include "sim/transactions.h"
#include "sim/workload_private.h"

sim_call *sim_call_begin(sim_workload *workload, int64_t timeout_ms) {
  sim_call *of = rmq_alloc_zero(1, sizeof *of);
  of->workload = workload;
  of->started_us = workload->world->now_us;
  of->timeout_us = timeout_ms * 1000;
  of->frozen_us = workload->world->frozen_us;
  of->sends_before = workload->ledger->n_sends;
  rmq_link_append(&workload->calls, &of->link);
  return of;
}

void sim_call_forget(sim_call *of) {
  rmq_link_remove(&of->link);
  free(of);
}

void sim_workload_forget_calls(sim_workload *workload) {
  while (!rmq_link_alone(&workload->calls))
    sim_call_forget(rmq_link_owner(workload->calls.next, sim_call, link));
}

/* Ends a call; the time that it had must not be over by more than a tick. */
void sim_call_end(sim_call *of, const char *what) {
  sim_workload *workload = of->workload;
  int64_t took_us = workload->world->now_us - of->started_us;
  int64_t allowed_us = of->timeout_us + sim_tick_us(workload->world, of->frozen_us);
  if (took_us > allowed_us) {
    sim_break(workload->world, "%s took %" PRId64 " us of %" PRId64, what, took_us, of->timeout_us);
  }
  sim_call_forget(of);
}

/* ---- flush ---- */

static void on_flushed(void *arg, size_t unfinished) {
  sim_call *of = arg;
  sim_ledger *ledger = of->workload->ledger;
  size_t expected = 0;
  for (size_t i = 0; i < of->sends_before; i++) {
    expected += ledger->sends[i]->state == SIM_SEND_UNDER_WAY && !ledger->sends[i]->asks;
  }
  sim_note(of->workload->world, "flushed", (int64_t)unfinished, (int64_t)expected);
  bool early = of->workload->world->now_us < of->started_us + of->timeout_us;
  size_t most = expected + sim_transactions_open(ledger, of->sends_before);
  if (!sim_transactions_are_over(of->workload)) expected = most;
  if (unfinished < expected || unfinished > most + of->workload->sending) {
    sim_break(of->workload->world, "a flush says that %zu sends are unfinished, and %zu are",
              unfinished, expected);
  } else if (unfinished > 0 && early && !of->workload->stopping) {
    sim_break(of->workload->world, "a flush ends before its time with %zu sends unfinished",
              unfinished);
  }
  sim_call_end(of, "a flush");
}

void sim_workload_flush(sim_workload *workload) {
  if (!workload->producer || workload->forked) return;
  int64_t timeout_ms = sim_random_between(&workload->world->random, 0, 3000);
  workload->flushes++;
  sim_note(workload->world, "flush call", timeout_ms, 0);
  rmq_producer_flush(workload->producer, timeout_ms, on_flushed,
                     sim_call_begin(workload, timeout_ms));
}

/* ---- queues ---- */

static void on_queues(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                      size_t n) {
  sim_call *of = arg;
  sim_world *world = of->workload->world;
  sim_note(world, "queues", (int64_t)n, failure ? (int64_t)failure->kind : -1);
  if ((failure == NULL) != (n > 0))
    sim_break(world, "%zu queues, %s a failure", n, failure ? "and" : "without");
  for (size_t i = 1; i < n; i++) {
    if (rmq_slice_equal(queues[i - 1].broker, queues[i].broker) &&
        queues[i - 1].id >= queues[i].id) {
      sim_break(world, "queues are not sorted");
    }
  }
  sim_call_end(of, "the question for queues");
}

void sim_workload_query(sim_workload *workload) {
  if (!workload->producer || workload->forked) return;
  sim_random *random = &workload->world->random;
  const sim_view *truth = &workload->cluster->truth;
  int topic = (int)sim_random_between(random, 0, (int64_t)truth->n_topics - 1);
  int64_t timeout_ms = sim_random_spread(random, 1, 5000);
  sim_call *of = sim_call_begin(workload, timeout_ms);
  int status = rmq_producer_queues(workload->producer, rmq_slice_text(truth->topics[topic].name),
                                   timeout_ms, on_queues, of);
  workload->queries++;
  if (status == 0) return;
  sim_call_forget(of);
  if (!workload->stopping)
    sim_break(workload->world, "the question for queues is refused: %d", status);
}

/* ---- The end ---- */

/* How long after its end a producer is freed, and how often that is put off while something that was
 * asked of it has no answer yet. */
enum { FREE_US = 10000, MOST_DELAYS = 100 };

static void free_producer(void *arg, uint64_t delays) {
  sim_workload *workload = arg;
  sim_world *world = workload->world;
  int64_t frozen_us = world->frozen_until_us - world->now_us;
  bool asked = !rmq_link_alone(&workload->calls);
  if (asked && delays < MOST_DELAYS) {
    sim_plan(world, (frozen_us > 0 ? frozen_us : 0) + FREE_US, free_producer, arg, delays + 1);
    return;
  }
  sim_note(world, "free", 0, 0);
  rmq_producer *producer = workload->producer;
  workload->producer = NULL;
  world->sealed = true;
  rmq_producer_free(producer);
}

static void on_stopped_again(void *arg, size_t undelivered) {
  (void)undelivered;
  sim_call_end(arg, "a second shutdown");
}

/* A shutdown of a producer that is shut down: it is told so, later. */
static void stop_again(sim_workload *workload) {
  rmq_producer_shutdown(workload->producer, 0, on_stopped_again, sim_call_begin(workload, 0));
}

static void on_stopped(void *arg, size_t undelivered) {
  sim_call *of = arg;
  sim_workload *workload = of->workload;
  sim_note(workload->world, "stopped", (int64_t)undelivered, 0);
  bool first = !workload->stopped;
  workload->stopped = true;
  sim_call_end(of, "a shutdown");
  size_t expected = workload->failed_by_stop + sim_transactions_left(workload->ledger);
  if (undelivered < expected || undelivered > expected + workload->sending) {
    sim_break(workload->world, "a shutdown says that %zu sends failed because of it, and %zu did",
              undelivered, expected);
  }
  sim_check_counters_zero(workload);
  if (!first || sim_is_broken(workload->world)) return;
  workload->world->sealed = true;
  /* The others who wait for the shutdown are told in this same event, so freeing at once is for a
   * single one. */
  if (workload->free_at_once && rmq_link_alone(&workload->calls)) {
    free_producer(workload, 0);
  } else {
    if (sim_random_chance(&workload->world->random, 300000)) stop_again(workload);
    sim_plan(workload->world, FREE_US, free_producer, workload, 0);
  }
}

/* Unregistering from brokers that do not answer takes its time; more than this it must not. */
enum { PARTING_MS = 10000 };

void sim_workload_stop(sim_workload *workload, int64_t timeout_ms) {
  if (!workload->producer || workload->forked || workload->stopping) return;
  sim_note(workload->world, "stop", timeout_ms, 0);
  workload->stopping = true;
  workload->stop_deadline_us = workload->world->now_us + timeout_ms * 1000;
  sim_transactions_stop(workload);
  bool twice = sim_random_chance(&workload->world->random, 200000);
  workload->free_at_once = sim_random_chance(&workload->world->random, 500000);
  for (int i = 0; i < 1 + (int)twice; i++) {
    sim_call *of = sim_call_begin(workload, timeout_ms + PARTING_MS);
    rmq_producer_shutdown(workload->producer, timeout_ms, on_stopped, of);
  }
}

void sim_workload_fork(sim_workload *workload) {
  if (!workload->producer || workload->forked || workload->stopping) return;
  sim_note(workload->world, "fork", 0, 0);
  workload->forked = true;
  workload->world->sealed = true;
  workload->world->identity.pid++;
  workload->world->identity.tag ^= 0x5A5A5A5A;
  rmq_producer_forked(workload->producer);
  sim_plan(workload->world, 5000000, free_producer, workload, 0);
}

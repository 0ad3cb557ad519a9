#include "sim/transactions.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/check.h"
#include "sim/halves.h"
#include "sim/invariants.h"

static sim_random *chance_of(sim_workload *workload) { return &workload->transaction_random; }

/* A broker that has to be told again at the end of that time gets a millisecond more. */
static int64_t timeout_us(const sim_workload *workload) {
  return rmq_producer_settings(workload->producer)->send_msg_timeout * 1000 + 1000;
}

/* ---- The end of one ---- */

static void on_ended(void *arg, const rmq_failure *failure) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  sim_world *world = workload->world;
  sim_transaction *of = &send->transaction;
  sim_note(world, failure ? "not told" : "has told", send->number, 0);
  if (of->phase != SIM_TRANSACTION_ENDING || workload->inside_end || workload->stopped ||
      workload->forked) {
    sim_break(world, "the transaction of send %" PRIu32 " ends when it must not", send->number);
    return;
  }
  of->phase = SIM_TRANSACTION_ENDED;
  of->told = failure == NULL;
  workload->transactions--;
  int64_t took_us = world->now_us - of->ended_us;
  if (took_us > timeout_us(workload) + sim_tick_us(world, of->frozen_us)) {
    sim_break(world, "the transaction of send %" PRIu32 " takes %" PRId64 " us to end",
              send->number, took_us);
  }
  bool well = workload->cluster->trouble == SIM_NO_TROUBLE && !workload->stopping;
  if (failure && well) {
    sim_break(world, "the end of send %" PRIu32 " fails though nothing is wrong: %.*s",
              send->number, (int)rmq_buf_len(&failure->message),
              (const char *)rmq_buf_head(&failure->message));
  }
}

bool sim_transactions_are_over(const sim_workload *workload) {
  if (workload->stopped || workload->forked || workload->undecided) return true;
  return workload->stopping && workload->world->now_us >= workload->stop_deadline_us;
}

static void end_now(sim_workload *workload, sim_send *send) {
  sim_transaction *of = &send->transaction;
  sim_world *world = workload->world;
  if (!workload->producer || of->phase != SIM_TRANSACTION_OPEN) return;
  of->phase = SIM_TRANSACTION_ENDING;
  of->ended_us = world->now_us;
  of->frozen_us = world->frozen_us;
  workload->inside_end = true;
  int status = rmq_producer_end_transaction(workload->producer, rmq_slice_text(send->key), of->said,
                                            rmq_slice_text("says the simulator"), on_ended, send);
  workload->inside_end = false;
  sim_note(world, status ? "end refused" : "end", send->number, status ? status : (int)of->said);
  if (status == 0) return;
  of->phase = SIM_TRANSACTION_LEFT;
  workload->transactions--;
  const rmq_failure *why = rmq_producer_failure(workload->producer);
  if (!sim_transactions_are_over(workload) || rmq_buf_len(&why->message) == 0) {
    sim_break(world, "the end of send %" PRIu32 " is refused with %s: %.*s", send->number,
              rmq_error_name(status), (int)rmq_buf_len(&why->message),
              (const char *)rmq_buf_head(&why->message));
  }
}

static void end_later(void *arg, uint64_t data) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  if (sim_is_broken(workload->world)) return;
  if (sim_is_frozen(workload->world, end_later, arg, data)) return;
  end_now(workload, send);
}

/* ---- The beginning ---- */

void sim_transaction_choose(sim_workload *workload, sim_send *send) {
  if (!sim_random_chance(chance_of(workload), workload->transaction_ppm)) return;
  send->half = true;
  if (send->options.mode == RMQ_MODE_ONEWAY) send->options.mode = RMQ_MODE_ASYNC;
}

/* What the user says: that it does not know yet, sometimes; and about what is stored, but not as safely as
 * it should be, that it is to be rolled back. */
void sim_transaction_begins(sim_workload *workload, sim_send *send,
                            const rmq_completion *completion) {
  sim_random *random = chance_of(workload);
  sim_transaction *of = &send->transaction;
  if (completion->failure) return;
  of->succeeds = completion->status == RMQ_SEND_OK && sim_random_chance(random, 700000);
  of->said = of->succeeds ? RMQ_TRANSACTION_COMMIT : RMQ_TRANSACTION_ROLLBACK;
  if (sim_random_chance(random, 150000)) of->said = RMQ_TRANSACTION_UNKNOWN;
  of->phase = workload->undecided ? SIM_TRANSACTION_LEFT : SIM_TRANSACTION_OPEN;
  workload->transactions += of->phase == SIM_TRANSACTION_OPEN;
  int64_t die = sim_random_between(random, 0, 99);
  if (die < 40) {
    end_now(workload, send);
  } else if (die < 95) {
    sim_plan(workload->world, sim_random_spread(random, 1, 20000000), end_later, send, 0);
  } /* else never */
}

/* ---- Answers to brokers ---- */

/* An answer that comes later. */
typedef struct answer {
  sim_workload *workload;
  uint64_t id;
  rmq_transaction_state state;
} answer;

static void answer_later(void *arg, uint64_t data) {
  answer *of = arg;
  if (sim_is_frozen(of->workload->world, answer_later, arg, data)) return;
  if (of->workload->producer && !sim_is_broken(of->workload->world)) {
    rmq_producer_end_check(of->workload->producer, of->id, of->state, rmq_slice_text(""));
  }
  free(of);
}

static void answer_check(sim_workload *workload, uint64_t id, rmq_transaction_state state) {
  sim_random *random = chance_of(workload);
  int64_t die = sim_random_between(random, 0, 9);
  if (die == 0) return; /* nobody will */
  if (die > 3) {
    rmq_producer_end_check(workload->producer, id, state, rmq_slice_text(""));
    return;
  }
  answer *later = rmq_alloc_zero(1, sizeof *later);
  *later = (answer){workload, id, state};
  sim_plan(workload->world, sim_random_spread(random, 1, 5000000), answer_later, later, 0);
}

/* The question must be about a half message whose fate nobody decides at the moment, and bring it as it
 * was sent. */
static bool is_check_right(const sim_workload *workload, const sim_send *send,
                           const rmq_checked *about) {
  const sim_cluster *cluster = workload->cluster;
  bool over = send->state == SIM_SEND_STORED || send->state == SIM_SEND_FAILED;
  return over && send->transaction.phase != SIM_TRANSACTION_OPEN &&
         rmq_slice_is(about->msg_id, send->key) &&
         rmq_slice_is(about->message.topic, cluster->truth.topics[send->topic].name) &&
         (workload->hooked || sim_body_is(send, about->message.body, 0));
}

/* What is asked about a message that is no user's is answered in turn with each of what there is to
 * say, and sometimes not. */
static void decide(void *arg, uint64_t id) {
  sim_workload *workload = arg;
  const rmq_checked *about = rmq_producer_checked(workload->producer, id);
  if (!about || workload->stopped || workload->forked) {
    sim_break(workload->world, "check %" PRIu64 " is about nothing", id);
    return;
  }
  const sim_send *send = sim_ledger_find(workload->ledger, about->message.properties);
  if (!send) {
    if (id % 5 == 0) return;
    rmq_producer_end_check(workload->producer, id, (rmq_transaction_state)(id % 3),
                           rmq_slice_text(""));
    return;
  }
  sim_note(workload->world, "check", send->number, (int64_t)id);
  if (!send->half || !is_check_right(workload, send, about)) {
    sim_break(workload->world, "the check of send %" PRIu32 " must not come, or is not about it",
              send->number);
    return;
  }
  bool unknown = sim_random_chance(chance_of(workload), 200000);
  answer_check(workload, id,
               unknown                      ? RMQ_TRANSACTION_UNKNOWN
               : send->transaction.succeeds ? RMQ_TRANSACTION_COMMIT
                                            : RMQ_TRANSACTION_ROLLBACK);
}

/* ---- All of them ---- */

void sim_transactions_start(sim_workload *workload, uint64_t seed) {
  sim_random *random = chance_of(workload);
  *random = (sim_random){seed ^ UINT64_C(0x68616C666D736773)};
  /* Ends are traced, too, and nobody counts those here. */
  if (workload->cluster->traces) return;
  bool has = sim_random_chance(random, 200000);
  if (has) workload->transaction_ppm = (uint32_t)sim_random_spread(random, 10000, 1000000);
  if (seed % 2 == 0 || (has && sim_random_chance(random, 600000))) {
    rmq_producer_set_check(workload->producer, decide, workload);
  }
}

void sim_transactions_stop(sim_workload *workload) {
  if (workload->transaction_ppm == 0 || !sim_random_chance(chance_of(workload), 200000)) return;
  sim_note(workload->world, "stop deciding", 0, 0);
  workload->undecided = true;
  const sim_ledger *ledger = workload->ledger;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    sim_transaction *of = &ledger->sends[i]->transaction;
    if (of->phase != SIM_TRANSACTION_OPEN) continue;
    of->phase = SIM_TRANSACTION_LEFT;
    workload->transactions--;
  }
  rmq_producer_stop_deciding(workload->producer);
}

size_t sim_transactions_open(const sim_ledger *ledger, size_t n_sends) {
  size_t n = 0;
  for (size_t i = 0; i < n_sends; i++) {
    sim_transaction_phase phase = ledger->sends[i]->transaction.phase;
    n += phase == SIM_TRANSACTION_OPEN || phase == SIM_TRANSACTION_ENDING;
  }
  return n;
}

size_t sim_transactions_left(const sim_ledger *ledger) {
  size_t n = 0;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    sim_transaction_phase phase = ledger->sends[i]->transaction.phase;
    n += phase == SIM_TRANSACTION_OPEN || phase == SIM_TRANSACTION_LEFT;
  }
  return n;
}

void sim_check_transactions(sim_workload *workload, const rmq_producer_stats *stats) {
  bool right = stats->transactions == workload->transactions;
  if (sim_transactions_are_over(workload)) right = stats->transactions <= workload->transactions;
  if (workload->stopped) right = stats->transactions == 0;
  if (!right) {
    sim_break(workload->world, "%zu transactions are said to be open, and %zu are",
              stats->transactions, workload->transactions);
  }
}

void sim_check_transactions_end(sim_workload *workload) {
  if (workload->cluster->trouble > SIM_FREEZES) return;
  const sim_ledger *ledger = workload->ledger;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    if (ledger->sends[i]->half) sim_check_halves(workload->cluster, ledger->sends[i]);
  }
}

/* Batches of a user: several messages in one call. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sim/invariants.h"
#include "sim/workload_private.h"

/* The messages of one call. */
typedef struct batch {
  rmq_link link; /* in workload->batches */
  sim_workload *workload;
  int n, left;
  sim_send *sends[SIM_BATCH_MAX];
} batch;

static void drop_batch(batch *of) {
  rmq_link_remove(&of->link);
  free(of);
}

void sim_workload_forget_batches(sim_workload *workload) {
  while (!rmq_link_alone(&workload->batches)) {
    drop_batch(rmq_link_owner(workload->batches.next, batch, link));
  }
}

static void on_member_done(void *arg, const rmq_completion *completion) {
  batch *of = arg;
  if (completion->index >= (size_t)of->n) {
    sim_break(of->workload->world, "message %zu of a batch of %d completes", completion->index,
              of->n);
    return;
  }
  sim_send *send = of->sends[completion->index];
  if (--of->left == 0) drop_batch(of);
  sim_send_done(send, completion);
}

/* The selector of a batch is asked for each request, and not told which messages are in it. */
static int choose_for_batch(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                            rmq_failure *why) {
  batch *of = arg;
  sim_workload *workload = of->workload;
  sim_random *random = chance_of(workload);
  const rmq_publish *publish = choice->publish;
  if (sim_random_chance(random, 50000)) {
    for (int i = 0; i < of->n; i++) of->sends[i]->no_choice = true;
    rmq_failure_set(why, RMQ_KIND_SELECTOR, 0, "no queue of topic %s is good enough",
                    workload->cluster->truth.topics[of->sends[0]->topic].name);
    return RMQ_EINVAL;
  }
  *queue = &publish->queues[sim_random_between(random, 0, (int64_t)publish->n_queues - 1)];
  return 0;
}

/* What the messages of a batch have in common is the first one's. */
static void agree(sim_send *send, const sim_send *first) {
  send->topic = first->topic;
  send->wait = first->wait;
  send->options = first->options;
  send->given_broker = first->given_broker;
  send->batch_chose = first->batch_chose;
}

/* Adds a message, and before it one that is wrong and must leave the draft as it was. */
static void add_to_draft(sim_workload *workload, rmq_draft *to, const sim_send *send) {
  sim_draft message;
  sim_draft_write(&message, workload, send);
  if (sim_random_chance(chance_of(workload), workload->plan.odd_ppm)) {
    sim_draft wrong = message;
    wrong.message.properties = wrong.properties;
    wrong.message.keys = wrong.key_slices;
    sim_draft_spoil(workload, &wrong);
    if (rmq_draft_add(to, &wrong.message) != RMQ_EINVAL) {
      sim_break(workload->world, "a wrong message came into a batch before send %" PRIu32,
                send->number);
    }
  }
  if (rmq_draft_add(to, &message.message) != 0) {
    sim_break(workload->world, "send %" PRIu32 " cannot be in a batch", send->number);
  }
  free(message.topic);
}

static void refused_batch(sim_workload *workload, batch *of, int status, size_t bytes,
                          const rmq_producer_stats *before) {
  for (int i = 0; i < of->n; i++) {
    of->sends[i]->state = SIM_SEND_REFUSED;
    free(of->sends[i]->body);
    of->sends[i]->body = NULL;
  }
  workload->refused += (uint64_t)of->n;
  sim_check_refusal(workload, of->sends[0], status, false, (size_t)of->n, bytes, before);
  drop_batch(of);
}

/* Sends `of`, whose messages are made. */
static void submit_batch(sim_workload *workload, batch *of) {
  rmq_producer *producer = workload->producer;
  rmq_draft *to = rmq_draft_new(producer);
  rmq_draft_options options = {.send = of->sends[0]->options, .split = true};
  if (of->sends[0]->batch_chose) options.send.choose = choose_for_batch;
  size_t bytes = 0;
  for (int i = 0; i < of->n; i++) {
    sim_send *send = of->sends[i];
    sim_send_start(workload, send);
    add_to_draft(workload, to, send);
    bytes += send->body_len;
  }
  rmq_producer_stats before = rmq_producer_stats_of(producer);
  workload->ledger->under_way += (size_t)of->n;
  of->left = of->n;
  workload->inside_send = true;
  int status = rmq_draft_send(to, &options, on_member_done, of);
  workload->inside_send = false;
  sim_note(workload->world, status < 0 ? "batch refused" : "batch", of->n, status);
  if (status >= 0) {
    workload->accepted += (uint64_t)of->n;
    return;
  }
  rmq_draft_drop(to);
  workload->ledger->under_way -= (size_t)of->n;
  refused_batch(workload, of, status, bytes, &before);
}

void sim_workload_batch(sim_workload *workload) {
  sim_random *random = chance_of(workload);
  int n = (int)sim_random_spread(random, 1, SIM_BATCH_MAX);
  if (n > workload->sends_left) n = workload->sends_left;
  /* In a sealed producer adding is refused already, which is looked at elsewhere. */
  if (workload->stopping || workload->forked) return;
  batch *of = rmq_alloc_zero(1, sizeof *of);
  of->workload = workload;
  of->n = n;
  rmq_link_append(&workload->batches, &of->link);
  workload->sends_left -= n;
  for (int i = 0; i < n; i++) {
    of->sends[i] = sim_send_make(workload, false);
    of->sends[i]->half = of->sends[i]->asks = false;
    if (i > 0) agree(of->sends[i], of->sends[0]);
    if (i > 0) continue;
    of->sends[0]->batch_chose = of->sends[0]->options.choose != NULL;
    of->sends[0]->options.choose = NULL;
  }
  submit_batch(workload, of);
}

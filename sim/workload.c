#include "sim/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sim/invariants.h"
#include "wire/codes.h"

static void task_step(void *arg, uint64_t data);

static sim_random *chance_of(sim_workload *workload) { return &workload->world->random; }

/* ---- Completion ---- */

/* Sometimes a completion does more than note its result. */
static void act_from_completion(sim_workload *workload) {
  if (workload->acknowledged + workload->failed == workload->end_at) {
    if (workload->end_by_fork) {
      sim_workload_fork(workload);
    } else {
      sim_workload_stop(workload, sim_random_between(chance_of(workload), 0, 1000));
    }
  }
  if (sim_random_chance(chance_of(workload), 2000)) sim_workload_flush(workload);
  if (sim_random_chance(chance_of(workload), 1000)) sim_workload_query(workload);
}

static void go_on_with_task(sim_workload *workload) {
  int64_t think_us = workload->plan.think_us;
  if (think_us == 0) {
    task_step(workload, 0);
  } else {
    sim_plan(workload->world, sim_random_between(chance_of(workload), 0, think_us), task_step,
             workload, 0);
  }
}

static void on_done(void *arg, const rmq_completion *completion) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  if (workload->inside_send) {
    sim_break(workload->world, "send %" PRIu32 " completes from inside rmq_producer_send",
              send->number);
    return;
  }
  sim_check_completion(workload, send, completion);
  workload->acknowledged += !completion->failure;
  workload->failed += completion->failure != NULL;
  if (completion->failure && completion->failure->kind == RMQ_KIND_STATE)
    workload->failed_by_stop++;
  /* Only now may the core not look at the body any more. */
  free(send->body);
  send->body = NULL;
  if (sim_is_broken(workload->world)) return;
  act_from_completion(workload);
  if (send->from_task) go_on_with_task(workload);
}

/* ---- Making a message ---- */

/* Texts in memory that is gone after the call: the core has to copy what it keeps. */
typedef struct draft {
  rmq_message message;
  char *topic;
  char tag[SIM_TEXT];
  char keys[SIM_KEYS_MAX][SIM_TEXT];
  char number[SIM_TEXT];
  char value[SIM_TEXT];
  char broker[16];
  rmq_slice key_slices[SIM_KEYS_MAX];
  rmq_field properties[2];
} draft;

static void write_draft(draft *out, const sim_workload *workload, const sim_send *send) {
  memset(out, 0, sizeof *out);
  const char *topic = workload->cluster->truth.topics[send->topic].name;
  out->topic = rmq_copy_text(topic, strlen(topic));
  out->message.topic = rmq_slice_text(out->topic);
  out->message.body = rmq_slice_make(send->body, send->body_len);
  if (send->tagged) {
    sim_tag_text(send->number, out->tag);
    out->message.tags = rmq_slice_text(out->tag);
  }
  for (int i = 0; i < send->n_keys; i++) {
    sim_key_text(send->number, i, out->keys[i]);
    out->key_slices[i] = rmq_slice_text(out->keys[i]);
  }
  out->message.keys = out->key_slices;
  out->message.n_keys = (size_t)send->n_keys;
  snprintf(out->number, SIM_TEXT, "%" PRIu32, send->number);
  sim_value_text(send->number, out->value);
  out->properties[0] = (rmq_field){rmq_slice_text("n"), rmq_slice_text(out->number)};
  out->properties[1] = (rmq_field){rmq_slice_text("p"), rmq_slice_text(out->value)};
  out->message.properties = out->properties;
  out->message.n_properties = 2;
  out->message.flag = send->flag;
  out->message.wait = send->wait;
}

static void choose_content(sim_workload *workload, sim_send *send) {
  sim_random *random = chance_of(workload);
  send->body_len = (size_t)sim_random_spread(random, 1, (int64_t)workload->plan.body_max);
  send->body = rmq_alloc(send->body_len);
  sim_body_fill(send->number, send->body, send->body_len);
  send->tagged = sim_random_chance(random, 500000);
  send->n_keys = (int)sim_random_between(random, 0, SIM_KEYS_MAX);
  send->wait = sim_random_chance(random, 800000);
  send->flag = (int32_t)sim_random_next(random);
}

static int choose_topic(sim_workload *workload) {
  sim_random *random = chance_of(workload);
  const sim_view *truth = &workload->cluster->truth;
  if (workload->plan.plain_only || sim_random_chance(random, 600000)) return 0;
  int topic = (int)sim_random_between(random, 0, (int64_t)truth->n_topics - 2);
  return topic;
}

/* A queue that exists, as far as the truth is known now; one time in ten at a broker that does not
 * exist. */
static void choose_queue(sim_workload *workload, sim_send *send) {
  sim_random *random = chance_of(workload);
  sim_cluster *cluster = workload->cluster;
  int broker = (int)sim_random_between(random, 0, cluster->n_brokers - 1);
  int32_t queues = cluster->truth.topics[send->topic].parts[broker].queues;
  if (queues == 0) return;
  send->given_broker = broker;
  send->options.queue_id = (int32_t)sim_random_between(random, 0, queues - 1);
  send->options.broker = rmq_slice_text(cluster->brokers[broker].name);
}

/* A selector: some queue of the route, or, now and then, none. Asking again is right only while no
 * broker has got the message. */
static int choose_for(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                      rmq_failure *why) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  sim_cluster *cluster = workload->cluster;
  sim_random *random = chance_of(workload);
  const rmq_publish *publish = choice->publish;
  if (send->arrivals > 0) {
    sim_break(workload->world, "a queue for send %" PRIu32 " is chosen again after it arrived",
              send->number);
  }
  send->no_choice = sim_random_chance(random, 50000);
  if (send->no_choice) {
    rmq_failure_set(why, RMQ_KIND_SELECTOR, 0, "no queue of topic %s is good enough",
                    cluster->truth.topics[send->topic].name);
    return RMQ_EINVAL;
  }
  const rmq_publish_queue *place =
      &publish->queues[sim_random_between(random, 0, (int64_t)publish->n_queues - 1)];
  const char *broker = publish->brokers[place->broker].name;
  *queue = place;
  send->options.queue_id = place->id;
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (strcmp(cluster->brokers[i].name, broker) == 0) send->given_broker = i;
  }
  return 0;
}

static void choose_options(sim_workload *workload, sim_send *send) {
  sim_random *random = chance_of(workload);
  rmq_send_options *options = &send->options;
  options->mode = send->from_task ? RMQ_MODE_SYNC : (rmq_mode)sim_random_between(random, 1, 2);
  options->retries = sim_random_chance(random, 700000) ? -1 : (int)sim_random_between(random, 0, 5);
  options->may_wait = send->from_task || sim_random_chance(random, 300000);
  if (sim_random_chance(random, workload->plan.own_timeout_ppm)) {
    options->timeout_ms = sim_random_spread(random, workload->plan.least_timeout_ms, 8000);
  }
  if (sim_random_chance(random, 100000)) {
    options->attempt_timeout_ms = sim_random_spread(random, workload->plan.least_timeout_ms, 2000);
  }
  if (sim_random_chance(random, 150000)) {
    choose_queue(workload, send);
  } else if (sim_random_chance(random, 150000)) {
    options->choose = choose_for;
  }
}

/* ---- Sending ---- */

/* The messages that are refused before anything happens. */
static void spoil(sim_workload *workload, draft *wrong) {
  switch (sim_random_between(chance_of(workload), 0, 5)) {
    case 0:
      wrong->message.topic = rmq_slice_text("");
      break;
    case 1:
      wrong->message.topic = rmq_slice_text("no such/topic");
      break;
    case 2:
      wrong->message.body.len = 0;
      break;
    case 3:
      wrong->properties[1].value = rmq_slice_text("a\1b");
      break;
    case 4:
      wrong->properties[1].name = rmq_slice_text("UNIQ_KEY");
      break;
    default:
      wrong->properties[1].value = rmq_slice_text("\xC3");
      break;
  }
}

static void submit(sim_workload *workload, sim_send *send, bool spoiled) {
  draft message;
  write_draft(&message, workload, send);
  if (spoiled) spoil(workload, &message);
  send->owner = workload;
  int64_t timeout_ms = send->options.timeout_ms;
  if (timeout_ms == 0) timeout_ms = rmq_producer_settings(workload->producer)->send_msg_timeout;
  send->budget_us = timeout_ms * 1000;
  send->started_us = workload->world->now_us;
  send->frozen_us = workload->world->frozen_us;
  send->state = SIM_SEND_UNDER_WAY;
  rmq_producer_stats before = rmq_producer_stats_of(workload->producer);
  sim_note_avoided(workload, send->avoided_us);
  bool inside = workload->inside_send; /* a hook sends */
  workload->inside_send = true;
  int status =
      rmq_producer_send(workload->producer, &message.message, &send->options, on_done, send);
  workload->inside_send = inside;
  sim_note(workload->world, status ? "send refused" : "send", send->number, status);
  free(message.topic);
  if (status == 0) {
    workload->accepted++;
    workload->ledger->under_way++;
    if (spoiled) sim_break(workload->world, "wrong send %" PRIu32 " was accepted", send->number);
    return;
  }
  workload->refused++;
  send->state = SIM_SEND_REFUSED;
  free(send->body);
  send->body = NULL;
  sim_check_refusal(workload, send, status, spoiled, 1, send->body_len, &before);
}

/* ---- Batches ---- */

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
  on_done(send, completion);
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
  draft message;
  write_draft(&message, workload, send);
  if (sim_random_chance(chance_of(workload), workload->plan.odd_ppm)) {
    draft wrong = message;
    wrong.message.properties = wrong.properties;
    wrong.message.keys = wrong.key_slices;
    spoil(workload, &wrong);
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

static void start_send(sim_workload *workload, sim_send *send) {
  int64_t timeout_ms = send->options.timeout_ms;
  if (timeout_ms == 0) timeout_ms = rmq_producer_settings(workload->producer)->send_msg_timeout;
  send->owner = workload;
  send->budget_us = timeout_ms * 1000;
  send->started_us = workload->world->now_us;
  send->frozen_us = workload->world->frozen_us;
  send->state = SIM_SEND_UNDER_WAY;
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
    start_send(workload, send);
    sim_note_avoided(workload, send->avoided_us);
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

static sim_send *make_send(sim_workload *workload, bool from_task) {
  sim_send *send = sim_ledger_add(workload->ledger);
  send->from_task = from_task;
  send->topic = choose_topic(workload);
  choose_content(workload, send);
  choose_options(workload, send);
  return send;
}

static bool may_send(sim_workload *workload) {
  return workload->producer && workload->sends_left > 0 && !sim_is_broken(workload->world);
}

static void send_one(sim_workload *workload, bool from_task) {
  workload->sends_left--;
  bool spoiled = sim_random_chance(chance_of(workload), workload->plan.odd_ppm);
  sim_send *send = make_send(workload, from_task);
  submit(workload, send, spoiled);
  /* A task goes on after an error, too; not at once, or it would never end. */
  if (from_task && send->state == SIM_SEND_REFUSED && may_send(workload)) {
    sim_plan(workload->world, 1000, task_step, workload, 0);
  }
}

void sim_workload_send_from_hook(sim_workload *workload, const sim_send *cause) {
  if (!may_send(workload) || workload->forked) return;
  workload->sends_left--;
  sim_send *send = make_send(workload, false);
  send->generation = cause->generation + 1;
  submit(workload, send, false);
}

static void send_batch(sim_workload *workload) {
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
    of->sends[i] = make_send(workload, false);
    if (i > 0) agree(of->sends[i], of->sends[0]);
    if (i > 0) continue;
    of->sends[0]->batch_chose = of->sends[0]->options.choose != NULL;
    of->sends[0]->options.choose = NULL;
  }
  submit_batch(workload, of);
}

static void task_step(void *arg, uint64_t data) {
  sim_workload *workload = arg;
  if (!may_send(workload) || sim_is_frozen(workload->world, task_step, workload, data)) return;
  send_one(workload, true);
}

static void burst(void *arg, uint64_t data) {
  sim_workload *workload = arg;
  if (!may_send(workload) || sim_is_frozen(workload->world, burst, workload, data)) return;
  int n = (int)sim_random_spread(chance_of(workload), 1, workload->plan.burst);
  while (n-- > 0 && may_send(workload)) {
    if (sim_random_chance(chance_of(workload), workload->plan.batch_ppm)) {
      send_batch(workload);
    } else {
      send_one(workload, false);
    }
  }
  if (!workload->producer) return;
  if (sim_random_chance(chance_of(workload), 50000)) sim_workload_flush(workload);
  if (sim_random_chance(chance_of(workload), 50000)) sim_workload_query(workload);
  sim_plan(workload->world, sim_random_between(chance_of(workload), 0, workload->plan.burst_us),
           burst, workload, 0);
}

void sim_workload_start(sim_workload *workload, rmq_producer *producer) {
  workload->producer = producer;
  workload->sends_left = workload->plan.sends;
  rmq_link_init(&workload->calls);
  rmq_link_init(&workload->batches);
  const rmq_settings *settings = rmq_producer_settings(producer);
  workload->even = strcmp(settings->latency_fault, "false") == 0 && !settings->auto_batch &&
                   workload->plan.batch_ppm == 0;
  workload->topics_kept = rmq_producer_settings(producer)->poll_name_server_interval >= 20000;
  for (int i = 0; i < workload->plan.tasks; i++) {
    sim_plan(workload->world, sim_random_between(chance_of(workload), 0, 1000), task_step, workload,
             0);
  }
  if (workload->plan.burst_us > 0) sim_plan(workload->world, 0, burst, workload, 0);
}

/* After some connections in a row that brought nothing the core pauses for up to a second before the
 * next one, and nothing can be demanded of it. */
static bool is_core_pausing(const sim_cluster *cluster) {
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (cluster->brokers[i].host.fruitless > 1) return true;
  }
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    if (cluster->namesrvs[i].host.fruitless > 1) return true;
  }
  return false;
}

/* The first pause takes a tenth of a second. Where the only name server's last connection stands though
 * its machine has died meanwhile, the next question finds that out, and what is left of a short
 * mq_client_api_timeout may not outlast the pause. */
static bool may_pause_too_long(const sim_workload *workload) {
  enum { FIRST_PAUSE_MS = 200 }; /* with the way there and back */
  const sim_cluster *cluster = workload->cluster;
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    if (cluster->namesrvs[i].host.fruitless == 0) return false;
  }
  return rmq_producer_settings(workload->producer)->mq_client_api_timeout < FIRST_PAUSE_MS;
}

void sim_workload_probe(sim_workload *workload) {
  if (!workload->producer) return;
  sim_send *send = sim_ledger_add(workload->ledger);
  send->probes = !is_core_pausing(workload->cluster) && !may_pause_too_long(workload);
  choose_content(workload, send);
  send->options = (rmq_send_options){.timeout_ms = 5000, .retries = 5, .may_wait = true};
  submit(workload, send, false);
}

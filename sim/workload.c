#include "sim/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sim/invariants.h"
#include "sim/requests.h"
#include "sim/transactions.h"
#include "sim/workload_private.h"

static void task_step(void *arg, uint64_t data);

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

void sim_send_over(sim_workload *workload, sim_send *send, bool failed) {
  workload->acknowledged += !failed;
  workload->failed += failed;
  if (sim_is_broken(workload->world)) return;
  act_from_completion(workload);
  if (send->from_task) go_on_with_task(workload);
}

void sim_send_done(void *arg, const rmq_completion *completion) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  if (workload->inside_send) {
    sim_break(workload->world, "send %" PRIu32 " completes from inside rmq_producer_send",
              send->number);
    return;
  }
  sim_check_completion(workload, send, completion);
  if (completion->failure && completion->failure->kind == RMQ_KIND_STATE)
    workload->failed_by_stop++;
  /* Only now may the core not look at the body any more. */
  free(send->body);
  send->body = NULL;
  if (sim_is_broken(workload->world)) return;
  if (send->half) sim_transaction_begins(workload, send, completion);
  sim_send_over(workload, send, completion->failure != NULL);
}

/* ---- Making a message ---- */

void sim_draft_write(sim_draft *out, const sim_workload *workload, const sim_send *send) {
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
void sim_draft_spoil(sim_workload *workload, sim_draft *wrong) {
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

void sim_send_start(sim_workload *workload, sim_send *send) {
  int64_t timeout_ms = send->options.timeout_ms;
  if (timeout_ms == 0) timeout_ms = rmq_producer_settings(workload->producer)->send_msg_timeout;
  send->owner = workload;
  send->budget_us = timeout_ms * 1000;
  send->started_us = workload->world->now_us;
  send->frozen_us = workload->world->frozen_us;
  send->state = SIM_SEND_UNDER_WAY;
  sim_note_avoided(workload, send->avoided_us);
}

static int hand_over(sim_workload *workload, const rmq_message *message, sim_send *send) {
  rmq_producer *producer = workload->producer;
  if (send->asks) return sim_request_start(workload, message, send);
  if (send->half) {
    return rmq_producer_send_half(producer, message, &send->options, sim_send_done, send);
  }
  return rmq_producer_send(producer, message, &send->options, sim_send_done, send);
}

static void submit(sim_workload *workload, sim_send *send, bool spoiled) {
  sim_draft message;
  sim_draft_write(&message, workload, send);
  if (spoiled) sim_draft_spoil(workload, &message);
  sim_send_start(workload, send);
  rmq_producer_stats before = rmq_producer_stats_of(workload->producer);
  bool inside = workload->inside_send; /* a hook sends */
  workload->inside_send = true;
  int status = hand_over(workload, &message.message, send);
  workload->inside_send = inside;
  sim_note(workload->world, status ? "send refused" : "send", send->number, status);
  free(message.topic);
  if (status == 0) {
    workload->accepted++;
    workload->ledger->under_way += !send->asks;
    if (spoiled) sim_break(workload->world, "wrong send %" PRIu32 " was accepted", send->number);
    return;
  }
  workload->refused++;
  send->state = SIM_SEND_REFUSED;
  free(send->body);
  send->body = NULL;
  sim_check_refusal(workload, send, status, spoiled, 1, send->body_len, &before);
}

sim_send *sim_send_make(sim_workload *workload, bool from_task) {
  sim_send *send = sim_ledger_add(workload->ledger);
  send->from_task = from_task;
  send->topic = choose_topic(workload);
  choose_content(workload, send);
  choose_options(workload, send);
  if (workload->transaction_ppm > 0) sim_transaction_choose(workload, send);
  if (workload->request_ppm > 0) sim_request_choose(workload, send);
  return send;
}

static bool may_send(sim_workload *workload) {
  return workload->producer && workload->sends_left > 0 && !sim_is_broken(workload->world);
}

static void send_one(sim_workload *workload, bool from_task) {
  workload->sends_left--;
  bool spoiled = sim_random_chance(chance_of(workload), workload->plan.odd_ppm);
  sim_send *send = sim_send_make(workload, from_task);
  submit(workload, send, spoiled);
  /* A task goes on after an error, too; not at once, or it would never end. */
  if (from_task && send->state == SIM_SEND_REFUSED && may_send(workload)) {
    sim_plan(workload->world, 1000, task_step, workload, 0);
  }
}

void sim_workload_send_from_hook(sim_workload *workload, const sim_send *cause) {
  if (!may_send(workload) || workload->forked) return;
  workload->sends_left--;
  sim_send *send = sim_send_make(workload, false);
  send->generation = cause->generation + 1;
  submit(workload, send, false);
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
      sim_workload_batch(workload);
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

/* A question to a name server whose machine has died without a word takes all of its time, and when that was
 * the only one it is not asked again. Likewise a message, when all brokers are such. */
static bool may_ask_the_dead(const sim_cluster *cluster) {
  bool some_namesrv = false, some_broker = false;
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    some_namesrv = some_namesrv || !sim_host_is_lost(&cluster->namesrvs[i].host);
  }
  for (int i = 0; i < cluster->n_brokers; i++) {
    some_broker = some_broker || !sim_host_is_lost(&cluster->brokers[i].host);
  }
  return !some_namesrv || !some_broker;
}

void sim_workload_probe(sim_workload *workload) {
  if (!workload->producer) return;
  sim_send *send = sim_ledger_add(workload->ledger);
  send->probes = !is_core_pausing(workload->cluster) && !may_pause_too_long(workload) &&
                 !may_ask_the_dead(workload->cluster);
  choose_content(workload, send);
  send->options = (rmq_send_options){.timeout_ms = 5000, .retries = 5, .may_wait = true};
  submit(workload, send, false);
}

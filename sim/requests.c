/* memmem */
#define _GNU_SOURCE

#include "sim/requests.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "producer/request.h"
#include "sim/invariants.h"
#include "sim/replies.h"
#include "sim/workload_private.h"
#include "wire/properties.h"

/* RequestTimeoutException of Java's: stored, but nobody replied. */
enum { NO_REPLY = 10006 };

/* ---- The end of one ---- */

static bool says(const rmq_failure *failure, const char *text) {
  rmq_slice all = rmq_buf_slice(&failure->message);
  return all.len > 0 && memmem(all.ptr, all.len, text, strlen(text)) != NULL;
}

/* Its message was stored, and what failed was the wait for the reply. */
static bool is_about_reply(const rmq_failure *failure) {
  return (failure->kind == RMQ_KIND_TIMEOUT && failure->code == NO_REPLY) ||
         (failure->kind == RMQ_KIND_STATE && says(failure, "The request was stored"));
}

static void check_reply(sim_workload *workload, const sim_send *send,
                        const rmq_pushed_reply *reply) {
  char text[SIM_TEXT];
  sim_reply_text(send->number, text);
  rmq_slice id = rmq_properties_find(reply->message.properties, "CORRELATION_ID");
  if (send->request.pushes > 0 && rmq_slice_is(reply->message.body, text) &&
      rmq_slice_is(id, send->request.id)) {
    return;
  }
  sim_break(workload->world, "the reply that send %" PRIu32 " gets is not its own: %.*s",
            send->number, (int)reply->message.body.len, reply->message.body.ptr);
}

/* A reply that was pushed before the time was over has come; also when the process stood still, as what has
 * come is read before it is late. */
static bool had_reply(const sim_workload *workload, const sim_send *send) {
  enum { WAY_US = 5000 };
  return workload->cluster->trouble <= SIM_FREEZES && !workload->stopping &&
         send->request.pushes > 0 &&
         send->request.pushed_us + WAY_US < send->started_us + send->budget_us;
}

static void check_failure(sim_workload *workload, const sim_send *send,
                          const rmq_failure *failure) {
  const char *topic = workload->cluster->truth.topics[send->topic].name;
  bool about_reply = is_about_reply(failure);
  if (about_reply ? send->n_copies == 0 || !failure->maybe_stored
                  : send->n_copies > 0 && !failure->maybe_stored) {
    sim_break(workload->world, "request %" PRIu32 " fails as %s, and is stored %d times",
              send->number, about_reply ? "stored" : "certainly not stored", send->n_copies);
  } else if (failure->kind != RMQ_KIND_STATE && !says(failure, topic)) {
    sim_break(workload->world, "the failure of request %" PRIu32 " does not name its topic: %.*s",
              send->number, (int)rmq_buf_len(&failure->message),
              (const char *)rmq_buf_head(&failure->message));
  } else if (about_reply && had_reply(workload, send)) {
    sim_break(workload->world, "request %" PRIu32 " fails for want of the reply that came in time",
              send->number);
  }
  if (!about_reply) sim_check_failure(workload, send, failure, failure->n_tries);
}

/* Its send may be under way for as long as it has time; and a shutdown may have cut it short, of which
 * nobody hears but by the number at the end. */
static void time_is_over(void *arg, uint64_t data);

static void send_is_over(void *arg, uint64_t data) {
  sim_workload *workload = arg;
  if (workload->stopping) return;
  if (sim_is_frozen(workload->world, time_is_over, arg, data)) return;
  workload->sending--;
}

/* Its own timers come a little later, also when the process has stood still. */
static void time_is_over(void *arg, uint64_t data) {
  enum { MARGIN_US = 10000 };
  sim_workload *workload = arg;
  if (sim_is_frozen(workload->world, time_is_over, arg, data)) return;
  sim_plan(workload->world, MARGIN_US, send_is_over, workload, data);
}

static void expect_end_of_send(sim_workload *workload, const sim_send *send) {
  int64_t left_us = send->started_us + send->budget_us - workload->world->now_us;
  sim_plan(workload->world, left_us > 0 ? left_us : 0, time_is_over, workload, 0);
}

static void on_replied(void *arg, const rmq_failure *failure, const rmq_pushed_reply *reply) {
  sim_send *send = arg;
  sim_workload *workload = send->owner;
  sim_world *world = workload->world;
  sim_note(world, failure ? "no reply" : "replied", send->number,
           failure ? (int64_t)failure->kind : 0);
  if (workload->inside_send || workload->stopped || workload->forked ||
      send->state != SIM_SEND_UNDER_WAY || (failure == NULL) == (reply == NULL)) {
    sim_break(world, "request %" PRIu32 " ends when it must not", send->number);
    return;
  }
  workload->requests--;
  send->state = failure ? SIM_SEND_FAILED : SIM_SEND_STORED;
  send->maybe_stored = failure && failure->maybe_stored;
  sim_check_time(workload, send);
  if (failure) {
    workload->sending--;
    workload->failed_by_stop += failure->kind == RMQ_KIND_STATE && !is_about_reply(failure);
    check_failure(workload, send, failure);
  } else {
    expect_end_of_send(workload, send);
    check_reply(workload, send, reply);
  }
  sim_send_over(workload, send, failure != NULL);
}

/* ---- The beginning ---- */

void sim_request_choose(sim_workload *workload, sim_send *send) {
  if (send->half || !sim_random_chance(&workload->request_random, workload->request_ppm)) return;
  send->asks = true;
  if (send->options.mode == RMQ_MODE_ONEWAY) send->options.mode = RMQ_MODE_ASYNC;
}

int sim_request_start(sim_workload *workload, const rmq_message *message, sim_send *send) {
  rmq_message own = *message;
  /* Gone when the call is over: unlike a send's, this body is copied. */
  char *body = rmq_alloc(message->body.len + 1);
  memcpy(body, message->body.ptr, message->body.len);
  own.body.ptr = body;
  int status = rmq_producer_request(workload->producer, &own, &send->options, on_replied, send);
  free(body);
  if (status == 0) {
    workload->requests++;
    workload->sending++;
  }
  return status;
}

void sim_requests_start(sim_workload *workload, uint64_t seed) {
  sim_random *random = &workload->request_random;
  *random = (sim_random){seed ^ UINT64_C(0x7265717565737473)};
  sim_cluster *cluster = workload->cluster;
  /* Sends that nobody hears of are traced, too, and nobody counts those here. */
  if (cluster->traces || !sim_random_chance(random, 166666)) return;
  workload->request_ppm = (uint32_t)sim_random_spread(random, 10000, 1000000);
  const rmq_settings *settings = rmq_producer_settings(workload->producer);
  /* Connections stay, and the topic for replies with them, for as long as a request may wait. */
  cluster->greets_all = cluster->trouble == SIM_NO_TROUBLE &&
                        settings->channel_max_idle_time == 0 &&
                        settings->poll_name_server_interval >= 2000;
  sim_cluster_add_reply_topic(cluster);
}

/* ---- Invariants ---- */

void sim_check_requests(sim_workload *workload, const rmq_producer_stats *stats) {
  if (stats->requests == workload->requests) return;
  sim_break(workload->world, "%zu requests are said to wait for a reply, and %zu do",
            stats->requests, workload->requests);
}

void sim_check_requests_end(sim_workload *workload) {
  if (workload->forked) return;
  const sim_ledger *ledger = workload->ledger;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    const sim_send *send = ledger->sends[i];
    if (!send->asks || send->state == SIM_SEND_REFUSED) continue;
    if (send->state == SIM_SEND_UNDER_WAY || (workload->hooked && send->finals != 1)) {
      sim_break(workload->world, "request %" PRIu32 " has not ended, or its hooks do not know",
                send->number);
    }
  }
}

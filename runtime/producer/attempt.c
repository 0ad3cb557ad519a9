#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/carrier.h"
#include "producer/core.h"
#include "producer/policy.h"
#include "select/chooser.h"
#include "wire/codes.h"

/* The attempts of a send: which broker, and how long. What comes of them: outcome.c. */

static rmq_send *send_of(rmq_request *request) {
  return rmq_link_owner(request, rmq_send, request);
}

/* Its time is over before this attempt. */
static void set_late(rmq_send *send) {
  if (send->failure.n_tries > 0) {
    rmq_failure_conclude(&send->failure, rmq_topic_name(send->topic), rmq_send_elapsed_us(send));
    return;
  }
  rmq_failure_set(&send->failure, RMQ_KIND_TIMEOUT, 10002,
                  "Sending to topic \"%s\": the time of %lld ms was over before the first attempt.",
                  send->topic->name, (long long)rmq_mono_diff_ms(send->deadline, send->started));
  send->failure.topic = rmq_copy_text(send->topic->name, send->topic->name_len);
}

void rmq_send_doom_late(rmq_send *send) {
  set_late(send);
  rmq_send_doom(send);
}

void rmq_send_end_late(rmq_send *send) {
  if (send->has_kept) {
    rmq_send_end_with_kept(send);
    return;
  }
  set_late(send);
  rmq_send_fail(send);
}

/* ---- The route ---- */

/* Java's numbers: no name server, or no route; the end of the budget is a timeout whatever it was
 * waited for. */
static void end_without_route(rmq_send *send, rmq_route_result result, rmq_slice explanation) {
  if (send->failure.n_tries > 0) {
    rmq_send_end_failed(send);
    return;
  }
  bool late = !rmq_mono_before(rmq_send_now(send), send->deadline);
  bool unreached = result == RMQ_ROUTE_UNREACHED || result == RMQ_ROUTE_TIMEOUT;
  rmq_failure *failure = &send->failure;
  rmq_failure_set(failure, late ? RMQ_KIND_TIMEOUT : RMQ_KIND_ROUTE, unreached ? 10004 : 10005,
                  "%s", "");
  rmq_buf_bytes(&failure->message, explanation.ptr, explanation.len);
  failure->topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  rmq_send_fail(send);
}

static void end_without_broker(rmq_send *send) {
  rmq_failure *failure = &send->failure;
  const char *broker = (const char *)rmq_buf_head(&send->given);
  rmq_failure_set(
      failure, RMQ_KIND_ROUTE, 10003,
      "No broker \"%s\" with a master is in the route of topic \"%s\"; look at the queues "
      "that the topic has.",
      broker, send->topic->name);
  failure->topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  failure->broker = rmq_copy_text(broker, strlen(broker));
  rmq_send_fail(send);
}

static void route_came(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation) {
  rmq_send *send = rmq_link_owner(waiter, rmq_send, waiter);
  rmq_producer *producer = send->producer;
  rmq_producer_enter(producer);
  /* A given queue's broker may be known though the topic has nothing to choose from. */
  bool usable =
      result == RMQ_ROUTE_READY || (rmq_send_has_given_queue(send) && result == RMQ_ROUTE_UNUSABLE);
  if (usable) {
    /* With a given queue there is no need of a topic that can be written to. */
    if (result == RMQ_ROUTE_UNUSABLE) send->hold = NULL;
    rmq_send_go_on(send, true);
  } else {
    end_without_route(send, result, explanation);
  }
  rmq_producer_leave(producer);
}

static void wait_for_route(rmq_send *send) {
  send->phase = RMQ_PHASE_ROUTE;
  rmq_topic_wait(send->topic, &send->waiter, send->deadline);
}

/* ---- What the sends to one topic share ---- */

typedef struct topic_share {
  rmq_chooser *chooser;
  rmq_buf fixed, fixed_of_batch; /* of rmq_send_fixed_encode */
} topic_share;

/* The part of the header that is the same for the whole topic. */
static rmq_send_header fixed_header(const rmq_send *send) {
  const rmq_producer *producer = send->producer;
  return (rmq_send_header){
      .producer_group = producer->group,
      .topic = rmq_topic_name(send->topic),
      .default_topic = producer->create_topic_key,
      .default_topic_queue_nums = (int32_t)producer->settings.default_topic_queue_nums,
      .unit_mode = producer->settings.unit_mode,
      .max_reconsume_times = -1,
      .batch = send->carries,
  };
}

static topic_share *make_share(const rmq_send *send) {
  rmq_io *io = send->producer->io;
  topic_share *share = rmq_alloc_zero(1, sizeof *share);
  share->chooser = rmq_chooser_new(send->producer->faults, io->calls->random(io));
  rmq_send_header header = fixed_header(send);
  header.batch = false;
  rmq_send_fixed_encode(&share->fixed, &header);
  header.batch = true;
  rmq_send_fixed_encode(&share->fixed_of_batch, &header);
  return share;
}

void rmq_send_drop_kept(void *kept) {
  topic_share *share = kept;
  rmq_chooser_free(share->chooser);
  rmq_buf_free(&share->fixed);
  rmq_buf_free(&share->fixed_of_batch);
  free(share);
}

static topic_share *share_of(rmq_send *send) {
  if (!send->topic->kept) send->topic->kept = make_share(send);
  return send->topic->kept;
}

/* ---- Which broker ---- */

bool rmq_send_has_tried(const rmq_send *send, const char *broker) {
  for (int i = 0; i < send->failure.n_tries; i++) {
    const char *tried = send->failure.tries[i].broker;
    if (tried && strcmp(tried, broker) == 0) return true;
  }
  return false;
}

/* Chooses again after failures. */
static int32_t choose_another(const rmq_send *send, rmq_chooser *chooser, rmq_publish *publish,
                              rmq_mono now) {
  enum { MANY = 16 };
  int32_t few[MANY];
  size_t n = (size_t)send->failure.n_tries;
  int32_t *tried = n <= MANY ? few : rmq_alloc(n * sizeof *tried);
  for (size_t i = 0; i < n; i++) {
    tried[i] = rmq_publish_broker_find(publish, rmq_slice_text(send->failure.tries[i].broker));
  }
  rmq_circumstances known = {.now = now, .tried = tried, .n_tried = n};
  int32_t queue = rmq_chooser_pick(chooser, publish, &known);
  if (tried != few) free(tried);
  return queue;
}

/* After failures it is one of a broker that has not failed this send, if there is one, else of
 * another than the last. */
int32_t rmq_send_pick(rmq_send *send, rmq_publish *publish, rmq_mono now) {
  rmq_chooser *chooser = share_of(send)->chooser;
  if (send->failure.n_tries > 0) return choose_another(send, chooser, publish, now);
  return rmq_chooser_pick(chooser, publish, &(rmq_circumstances){.now = now});
}

/* ---- One attempt ---- */

/* What the topic's sends share of their headers is written already, for all but those with counts of
 * their own. */
static rmq_send_header begin_header(rmq_send *send) {
  bool counts = send->reconsume_times != 0 || send->max_reconsume_times != -1;
  if (counts || send->producer->serialize == RMQ_SERIALIZE_JSON) {
    rmq_send_header header = fixed_header(send);
    header.reconsume_times = send->reconsume_times;
    header.max_reconsume_times = send->max_reconsume_times;
    return header;
  }
  const topic_share *share = share_of(send);
  return (rmq_send_header){
      .fixed = rmq_buf_slice(send->carries ? &share->fixed_of_batch : &share->fixed)};
}

static void encode(rmq_request *request, rmq_buf *out, int32_t opaque) {
  rmq_send *send = send_of(request);
  const rmq_producer *producer = send->producer;
  rmq_send_header header = begin_header(send);
  header.queue_id = send->queue_id;
  header.born_timestamp = send->born_ms;
  header.flag = send->flag;
  header.sys_flag = send->sys_flag;
  header.properties = rmq_send_properties(send);
  header.broker_name = rmq_slice_text(send->broker);
  send->encoded = true;
  int32_t flag = send->oneway ? RMQ_FLAG_ONEWAY : 0;
  if (send->carries) {
    rmq_carrier_encode(send, out, opaque, flag, &header);
    return;
  }
  rmq_slice body =
      rmq_pack_body(&send->pack, &send->producer->packer, rmq_send_body(send), &header.sys_flag);
  int32_t code = send->reply ? RMQ_SEND_REPLY_MESSAGE_V2 : RMQ_SEND_MESSAGE_V2;
  rmq_send_request_encode(out, producer->serialize, code, opaque, flag, &header, body);
}

/* False when the attempt is not made. */
static bool ask_hooks(rmq_send *send) {
  int status = rmq_hooks_attempt(send);
  if (status == RMQ_ESTATE) return false;
  if (status == 0) {
    if (rmq_mono_before(rmq_send_now(send), send->deadline)) return true;
    rmq_send_doom_late(send);
    return false;
  }
  rmq_send_doom(send);
  return false;
}

void rmq_send_attempt(rmq_send *send, rmq_mono now, bool another_broker) {
  rmq_producer *producer = send->producer;
  if (producer->hooks && !send->own) {
    if (!(send->carries ? rmq_carrier_ask_hooks(send) : ask_hooks(send))) return;
    now = rmq_send_now(send);
  } else {
    send->attempts++;
  }
  if (send->attempts > 1 && !send->own) producer->stats.retried++;
  if (send->carries) producer->stats.batches++;
  rmq_attempt_limits limits = {
      .attempts_left = send->retries - send->attempts + 1,
      .another_broker = another_broker,
      .attempt_timeout_ms = send->attempt_timeout_ms,
      .attempt_floor_ms = producer->settings.attempt_floor,
  };
  int64_t left_us = rmq_mono_diff_us(send->deadline, now);
  send->phase = RMQ_PHASE_ATTEMPT;
  send->encoded = false;
  send->attempt_started = now;
  send->request.oneway = send->oneway;
  send->request.hurried = another_broker && limits.attempts_left > 0;
  send->request.deadline.us = now.us + rmq_policy_attempt_us(left_us, &limits);
  rmq_transport_invoke(producer->transport, send->addr, &send->request);
}

static void pause_first(rmq_send *send, rmq_mono now) {
  rmq_producer *producer = send->producer;
  uint64_t random = producer->io->calls->random(producer->io);
  rmq_mono until = {now.us + rmq_policy_pause_us(send->pauses++, random)};
  if (!rmq_mono_before(until, send->deadline)) {
    rmq_send_end_failed(send);
    return;
  }
  send->phase = RMQ_PHASE_PAUSE;
  rmq_transport_timer(producer->transport, &send->timer, until);
}

void rmq_send_take_queue(rmq_send *send, rmq_publish *publish, const rmq_publish_queue *queue) {
  const rmq_publish_broker *broker = &publish->brokers[queue->broker];
  rmq_publish_ref(publish);
  rmq_publish_unref(send->publish);
  send->publish = publish;
  send->broker = broker->name;
  send->addr = broker->master;
  send->queue_id = queue->id;
}

/* Copies the address behind the broker's name: the table of brokers may lose it during the
 * attempt. */
static void keep_given_address(rmq_send *send, const char *master) {
  size_t broker_len = strlen((const char *)rmq_buf_head(&send->given));
  send->given.end = send->given.start + broker_len + 1;
  rmq_buf_bytes(&send->given, master, strlen(master) + 1);
  send->broker = (const char *)rmq_buf_head(&send->given);
  send->addr = send->broker + broker_len + 1;
}

static void hold_given_fault(rmq_send *send, rmq_mono now) {
  rmq_faults *faults = send->producer->faults;
  if (!rmq_producer_avoids(send->producer)) return;
  rmq_fault *fault = rmq_faults_hold(faults, rmq_slice_text(send->broker), now);
  rmq_send_hold_fault(send, fault);
  rmq_fault_release(fault); /* the send's is enough */
}

/* Who waits for the topic's route may want the same queue, and came before; but not before what was
 * gathered, for that has been asked this already. */
static bool is_behind_others(const rmq_send *send) {
  if (send->attempts > 0 || send->asked_anew || send->group) return false;
  return !rmq_link_alone(&send->topic->waiters);
}

/* To a given queue: its broker's address comes out of any route, and is asked for once when none
 * has it. */
static void go_on_given(rmq_send *send, rmq_mono now, bool rested) {
  const char *broker = (const char *)rmq_buf_head(&send->given);
  const char *master = rmq_routes_master(send->producer->routes, rmq_slice_text(broker));
  if (!master || is_behind_others(send)) {
    if (send->asked_anew) {
      if (send->failure.n_tries > 0) {
        rmq_send_end_failed(send);
      } else {
        end_without_broker(send);
      }
      return;
    }
    send->asked_anew = true;
    wait_for_route(send);
    return;
  }
  if (rmq_send_has_tried(send, broker) && !rested) {
    pause_first(send, now);
    return;
  }
  if (send->gathers && rmq_gather_take(send)) return;
  if (send->attempts == 0 && !rmq_gather_pass(send)) return;
  keep_given_address(send, master);
  hold_given_fault(send, now);
  rmq_send_attempt(send, now, false);
}

/* The route may have changed during the pause, and with it the broker's address. */
static void renew_address(rmq_send *send) {
  rmq_publish *publish = send->topic->publish;
  if (!publish || publish == send->publish) return;
  int32_t broker = rmq_publish_broker_find(publish, rmq_slice_text(send->broker));
  if (broker < 0) return;
  rmq_publish_queue queue = {broker, send->queue_id};
  rmq_send_take_queue(send, publish, &queue);
}

/* To the queue that was chosen. */
static void go_on_chosen(rmq_send *send, rmq_mono now, bool rested) {
  if (is_behind_others(send)) {
    send->asked_anew = true;
    wait_for_route(send);
    return;
  }
  if (rested) {
    renew_address(send);
  } else if (rmq_send_has_tried(send, send->broker)) {
    pause_first(send, now);
    return;
  }
  if (send->gathers && rmq_gather_take(send)) return;
  if (send->attempts == 0 && !rmq_gather_pass(send)) return;
  hold_given_fault(send, now);
  rmq_send_attempt(send, now, false);
}

/* True when the send waits, for what it has to wait for before its first attempt. */
static bool hold_back(rmq_send *send) {
  rmq_hold *hold = send->hold;
  if (send->phase == RMQ_PHASE_HOLD) {
    send->hold = NULL;
    return false;
  }
  if (!rmq_topic_is_ready(send->topic)) {
    wait_for_route(send);
    return true;
  }
  send->phase = RMQ_PHASE_HOLD;
  if (hold->begin(hold, send)) return true;
  send->hold = NULL;
  return false;
}

void rmq_send_go_on(rmq_send *send, bool rested) {
  rmq_mono now = rmq_send_now(send);
  if (!rmq_mono_before(now, send->deadline)) {
    rmq_send_end_late(send);
    return;
  }
  if (send->hold && hold_back(send)) return;
  bool asks = send->choose && !send->chosen;
  if (rmq_send_has_given_queue(send)) {
    if (send->chosen) {
      go_on_chosen(send, now, rested);
    } else {
      go_on_given(send, now, rested);
    }
    return;
  }
  if (!rmq_topic_is_ready(send->topic)) {
    wait_for_route(send);
    return;
  }
  if (asks) {
    if (rmq_send_choose(send)) go_on_chosen(send, now, rested);
    return;
  }
  if (send->gathers && rmq_gather_take(send)) return;
  rmq_publish *publish = send->topic->publish;
  int32_t queue = rmq_send_pick(send, publish, now);
  const rmq_publish_broker *broker = &publish->brokers[publish->queues[queue].broker];
  if (rmq_send_has_tried(send, broker->name)) {
    if (send->has_kept) { /* only another broker may do better */
      rmq_send_end_with_kept(send);
      return;
    }
    if (!rested) {
      pause_first(send, now);
      return;
    }
  }
  if (rmq_producer_avoids(send->producer)) {
    rmq_send_hold_fault(send,
                        rmq_chooser_fault(share_of(send)->chooser, publish->queues[queue].broker));
  }
  rmq_send_take_queue(send, publish, &publish->queues[queue]);
  rmq_send_attempt(send, now, publish->n_brokers > 1);
}

void rmq_send_init_attempt(rmq_send *send) {
  send->request.encode = encode;
  send->request.done = rmq_send_attempt_done;
  send->waiter.done = route_came;
}

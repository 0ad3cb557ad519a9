#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "producer/policy.h"
#include "select/chooser.h"
#include "wire/codes.h"

/* The attempts of a send: which broker, how long, and what comes of it. */

static rmq_send *send_of(rmq_request *request) {
  return rmq_link_owner(request, rmq_send, request);
}

static rmq_mono now_of(const rmq_send *send) {
  return rmq_transport_now(send->producer->transport);
}

static bool has_given_queue(const rmq_send *send) { return rmq_buf_len(&send->given) > 0; }

/* ---- Ends ---- */

void rmq_send_end_with_kept(rmq_send *send) {
  rmq_slice texts = rmq_buf_slice(&send->kept_texts);
  rmq_completion completion = {
      .status = send->kept_status,
      .msg_id = rmq_slice_make(send->msg_id, send->msg_id_len),
      .topic = rmq_topic_name(send->topic),
      .broker = rmq_slice_make(texts.ptr, send->kept_broker_len),
      .reply = &send->kept,
      .attempts = send->attempts,
      .elapsed_us = rmq_mono_diff_us(now_of(send), send->started),
  };
  rmq_send_complete(send, &completion);
}

/* Ends the send after attempts that failed. */
static void end_failed(rmq_send *send) {
  if (send->has_kept) {
    rmq_send_end_with_kept(send);
    return;
  }
  rmq_failure_conclude(&send->failure, rmq_topic_name(send->topic),
                       rmq_mono_diff_us(now_of(send), send->started));
  rmq_send_fail(send);
}

/* Ends the send because its time is over before this attempt. */
static void end_late(rmq_send *send) {
  if (send->failure.n_tries > 0) {
    end_failed(send);
    return;
  }
  rmq_failure_set(&send->failure, RMQ_KIND_TIMEOUT, 10002,
                  "Sending to topic \"%s\": the time of %lld ms was over before the first attempt.",
                  send->topic->name, (long long)rmq_mono_diff_ms(send->deadline, send->started));
  send->failure.topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  rmq_send_fail(send);
}

static void end_with_success(rmq_send *send, rmq_send_status status, const rmq_send_reply *reply) {
  rmq_completion completion = {
      .status = status,
      .msg_id = rmq_slice_make(send->msg_id, send->msg_id_len),
      .topic = rmq_topic_name(send->topic),
      .broker = rmq_slice_text(send->broker),
      .reply = reply,
      .attempts = send->attempts,
      .elapsed_us = rmq_mono_diff_us(now_of(send), send->started),
  };
  rmq_send_complete(send, &completion);
}

/* ---- The route ---- */

/* Java's numbers: no name server, or no route; the end of the budget is a timeout whatever it was
 * waited for. */
static void end_without_route(rmq_send *send, rmq_route_result result, rmq_slice explanation) {
  if (send->failure.n_tries > 0) {
    end_failed(send);
    return;
  }
  bool late = !rmq_mono_before(now_of(send), send->deadline);
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
      result == RMQ_ROUTE_READY || (has_given_queue(send) && result == RMQ_ROUTE_UNUSABLE);
  if (usable) {
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
  size_t fixed_len;
  char fixed[]; /* of rmq_send_fixed_encode */
} topic_share;

/* The header of a send as far as it is the same for the whole topic. */
static rmq_send_header fixed_header(const rmq_send *send) {
  const rmq_producer *producer = send->producer;
  return (rmq_send_header){
      .producer_group = producer->group,
      .topic = rmq_topic_name(send->topic),
      .default_topic = producer->create_topic_key,
      .default_topic_queue_nums = (int32_t)producer->settings.default_topic_queue_nums,
      .unit_mode = producer->settings.unit_mode,
      .max_reconsume_times = -1,
  };
}

static topic_share *make_share(const rmq_send *send) {
  rmq_io *io = send->producer->io;
  rmq_send_header header = fixed_header(send);
  rmq_buf fixed = {0};
  rmq_send_fixed_encode(&fixed, &header);
  rmq_slice bytes = rmq_buf_slice(&fixed);
  topic_share *share = rmq_alloc(sizeof *share + bytes.len);
  share->chooser = rmq_chooser_new(send->producer->faults, io->calls->random(io));
  share->fixed_len = bytes.len;
  if (bytes.ptr) memcpy(share->fixed, bytes.ptr, bytes.len);
  rmq_buf_free(&fixed);
  return share;
}

void rmq_send_drop_kept(void *kept) {
  topic_share *share = kept;
  rmq_chooser_free(share->chooser);
  free(share);
}

static topic_share *share_of(rmq_send *send) {
  if (!send->topic->kept) send->topic->kept = make_share(send);
  return send->topic->kept;
}

/* ---- Which broker ---- */

static bool was_tried(const rmq_send *send, const char *broker) {
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

/* The next queue; after failures one of a broker that has not failed this send, if there is one,
 * else of another than the last. */
static int32_t choose(rmq_send *send, rmq_publish *publish, rmq_mono now) {
  rmq_chooser *chooser = share_of(send)->chooser;
  if (send->failure.n_tries > 0) return choose_another(send, chooser, publish, now);
  return rmq_chooser_pick(chooser, publish, &(rmq_circumstances){.now = now});
}

/* ---- One attempt ---- */

static void encode(rmq_request *request, rmq_buf *out, int32_t opaque) {
  rmq_send *send = send_of(request);
  const rmq_producer *producer = send->producer;
  const topic_share *share = share_of(send);
  rmq_send_header header = fixed_header(send);
  header.fixed = rmq_slice_make(share->fixed, share->fixed_len);
  header.queue_id = send->queue_id;
  header.born_timestamp = send->born_ms;
  header.flag = send->flag;
  header.properties = rmq_buf_slice(&send->properties);
  header.broker_name = rmq_slice_text(send->broker);
  send->encoded = true;
  rmq_send_request_encode(out, producer->serialize, RMQ_SEND_MESSAGE_V2, opaque,
                          send->oneway ? RMQ_FLAG_ONEWAY : 0, &header, send->body);
}

static void start_attempt(rmq_send *send, rmq_mono now, bool another_broker) {
  rmq_producer *producer = send->producer;
  rmq_attempt_limits limits = {
      .attempts_left = send->retries - send->attempts,
      .another_broker = another_broker,
      .attempt_timeout_ms = send->attempt_timeout_ms,
      .attempt_floor_ms = producer->settings.attempt_floor,
  };
  int64_t left_us = rmq_mono_diff_us(send->deadline, now);
  send->phase = RMQ_PHASE_ATTEMPT;
  send->encoded = false;
  send->attempt_started = now;
  if (send->attempts++ > 0) producer->stats.retried++;
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
    end_failed(send);
    return;
  }
  send->phase = RMQ_PHASE_PAUSE;
  rmq_transport_timer(producer->transport, &send->timer, until);
}

/* Copies the address behind the broker's name: the table of brokers may lose it during the attempt.
 * */
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

/* To a given queue: its broker's address comes out of any route, and is asked for once when none
 * has it. */
static void go_on_given(rmq_send *send, rmq_mono now, bool rested) {
  const char *broker = (const char *)rmq_buf_head(&send->given);
  const char *master = rmq_routes_master(send->producer->routes, rmq_slice_text(broker));
  /* Who waits for the topic's route may want the same queue, and came before. */
  bool behind = send->attempts == 0 && !send->asked_anew && !rmq_link_alone(&send->topic->waiters);
  if (!master || behind) {
    if (send->asked_anew) {
      if (send->failure.n_tries > 0) {
        end_failed(send);
      } else {
        end_without_broker(send);
      }
      return;
    }
    send->asked_anew = true;
    wait_for_route(send);
    return;
  }
  if (was_tried(send, broker) && !rested) {
    pause_first(send, now);
    return;
  }
  keep_given_address(send, master);
  hold_given_fault(send, now);
  start_attempt(send, now, false);
}

void rmq_send_go_on(rmq_send *send, bool rested) {
  rmq_mono now = now_of(send);
  if (!rmq_mono_before(now, send->deadline)) {
    end_late(send);
    return;
  }
  bool asks = send->choose && !send->chosen;
  if (!asks && has_given_queue(send)) {
    go_on_given(send, now, rested);
    return;
  }
  if (!rmq_topic_is_ready(send->topic)) {
    wait_for_route(send);
    return;
  }
  if (asks) {
    if (rmq_send_choose(send)) go_on_given(send, now, rested);
    return;
  }
  rmq_publish *publish = send->topic->publish;
  int32_t queue = choose(send, publish, now);
  const rmq_publish_broker *broker = &publish->brokers[publish->queues[queue].broker];
  if (was_tried(send, broker->name)) {
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
  rmq_publish_unref(send->publish);
  send->publish = rmq_publish_ref(publish);
  send->broker = broker->name;
  send->addr = broker->master;
  send->queue_id = publish->queues[queue].id;
  start_attempt(send, now, publish->n_brokers > 1);
}

/* ---- What came of it ---- */

/* Notes an attempt that did not bring what was wanted. */
static void note_try(rmq_send *send, rmq_kind kind, int32_t code, bool written, const char *text) {
  rmq_failure_try(&send->failure, kind, code, written, rmq_slice_text(send->broker),
                  rmq_slice_text(send->addr), rmq_slice_text(text),
                  rmq_mono_diff_us(now_of(send), send->attempt_started));
}

/* While no attempt has written anything, another queue may be chosen. */
static void forget_chosen(rmq_send *send) {
  if (!send->chosen) return;
  for (int i = 0; i < send->failure.n_tries; i++) {
    if (send->failure.tries[i].written) return;
  }
  send->chosen = false;
  rmq_buf_clear(&send->given);
}

static void try_again_or_end(rmq_send *send, const rmq_attempt_end *end) {
  bool again =
      send->attempts <= send->retries && rmq_policy_may_retry(&send->producer->retry_codes, end);
  rmq_log_line(
      &send->producer->log, RMQ_LOG_DEBUG, "attempt %d to send to topic \"%s\" on %s: %s; %s",
      send->attempts, send->topic->name, send->broker,
      send->failure.tries[send->failure.n_tries - 1].message, again ? "trying again" : "giving up");
  if (again) {
    forget_chosen(send);
    rmq_send_go_on(send, false);
  } else {
    end_failed(send);
  }
}

static rmq_kind kind_of_status(int status) {
  switch (status) {
    case RMQ_ETIMEOUT:
      return RMQ_KIND_TIMEOUT;
    case RMQ_ECONNECT:
    case RMQ_ELOOKUP:
      return RMQ_KIND_CONNECT;
    default:
      return RMQ_KIND_CLOSED;
  }
}

static int32_t java_code_of(rmq_kind kind) {
  if (kind == RMQ_KIND_CONNECT) return 10001;
  return kind == RMQ_KIND_TIMEOUT ? 10002 : 0;
}

static void broke_off(rmq_send *send, const rmq_outcome *outcome) {
  rmq_kind kind = kind_of_status(outcome->status);
  bool has_detail = outcome->detail && outcome->detail[0] != '\0';
  note_try(send, kind, java_code_of(kind), outcome->written,
           has_detail ? outcome->detail : rmq_error_text(outcome->status));
  if (kind != RMQ_KIND_TIMEOUT) rmq_topic_refresh(send->topic);
  rmq_attempt_end end = {.written = outcome->written, .given_queue = has_given_queue(send)};
  try_again_or_end(send, &end);
}

static bool has_untried_broker(const rmq_send *send) {
  const rmq_publish *publish = has_given_queue(send) ? NULL : send->publish;
  for (size_t i = 0; publish && i < publish->n_brokers; i++) {
    if (!was_tried(send, publish->brokers[i].name)) return true;
  }
  return false;
}

/* "Go away" says that the broker has not looked at the message and wants it on another connection,
 * which the transport makes. As in Java it is sent there once more, whatever the number of retries,
 * unless a broker that has not failed this send can have it. True when it took care of the send. */
static bool come_back_after_go_away(rmq_send *send) {
  if (send->attempts <= send->retries && has_untried_broker(send)) return false;
  rmq_mono now = now_of(send);
  if (!send->came_back && rmq_mono_before(now, send->deadline)) {
    send->came_back = true;
    send->retries++;
    start_attempt(send, now, false);
    return true;
  }
  if (!has_given_queue(send)) return false;
  end_failed(send);
  return true;
}

static void refused(rmq_send *send, const rmq_header *header) {
  char text[512];
  int len = (int)(header->remark.len < 400 ? header->remark.len : 400);
  snprintf(text, sizeof text, "refused with code %d %s%s%.*s", header->code,
           rmq_response_code_name(header->code), len ? ": " : "", len,
           len ? header->remark.ptr : "");
  note_try(send, RMQ_KIND_BROKER, header->code, true, text);
  if (rmq_policy_code_is_stale_route(header->code)) rmq_topic_refresh(send->topic);
  if (header->code == RMQ_GO_AWAY && come_back_after_go_away(send)) return;
  rmq_attempt_end end = {
      .refused = true, .code = header->code, .written = true, .given_queue = has_given_queue(send)};
  try_again_or_end(send, &end);
}

/* A reply that says yes and cannot be read: the message is probably stored. */
static void unreadable(rmq_send *send, const char *missing) {
  char text[160];
  snprintf(text, sizeof text, "its answer says that the message is stored, but has no proper %s",
           missing ? missing : "fields");
  note_try(send, RMQ_KIND_CLOSED, 0, true, text);
  rmq_attempt_end end = {.written = true, .given_queue = has_given_queue(send)};
  try_again_or_end(send, &end);
}

static rmq_slice keep_text(rmq_buf *out, rmq_slice text) {
  if (!text.ptr) return text;
  char *at = (char *)rmq_buf_head(out) + rmq_buf_len(out);
  rmq_buf_bytes(out, text.ptr, text.len);
  return rmq_slice_make(at, text.len);
}

/* Puts a result aside whose texts are in the transport's buffers. */
static void keep_result(rmq_send *send, rmq_send_status status, const rmq_send_reply *reply) {
  rmq_slice broker = rmq_slice_text(send->broker);
  rmq_buf *texts = &send->kept_texts;
  rmq_buf_clear(texts);
  /* All of it at once: what is kept must not move. */
  rmq_buf_reserve(texts, 1 + broker.len + reply->msg_id.len + reply->transaction_id.len +
                             reply->batch_uniq_id.len + reply->recall_handle.len +
                             reply->region_id.len);
  keep_text(texts, broker);
  send->kept_broker_len = broker.len;
  send->kept = *reply;
  send->kept.msg_id = keep_text(texts, reply->msg_id);
  send->kept.transaction_id = keep_text(texts, reply->transaction_id);
  send->kept.batch_uniq_id = keep_text(texts, reply->batch_uniq_id);
  send->kept.recall_handle = keep_text(texts, reply->recall_handle);
  send->kept.region_id = keep_text(texts, reply->region_id);
  send->kept_status = status;
  send->has_kept = true;
}

/* True when another broker shall be asked to do better than "stored, but". */
static bool wants_better(const rmq_send *send, rmq_send_status status) {
  const rmq_settings *settings = &send->producer->settings;
  if (status == RMQ_SEND_OK || !settings->retry_another_broker_when_not_store_ok) return false;
  return send->attempts <= send->retries && !has_given_queue(send);
}

static void stored(rmq_send *send, rmq_send_status status, const rmq_header *header) {
  rmq_send_reply reply;
  const char *missing = NULL;
  if (rmq_send_reply_decode(header, &reply, &missing) < 0) {
    unreadable(send, missing);
    return;
  }
  if (!wants_better(send, status)) {
    end_with_success(send, status, &reply);
    return;
  }
  keep_result(send, status, &reply);
  note_try(send, RMQ_KIND_BROKER, header->code, true, rmq_send_status_name(status));
  rmq_send_go_on(send, false);
}

static void attempt_done(rmq_request *request, const rmq_outcome *outcome) {
  rmq_send *send = send_of(request);
  rmq_producer *producer = send->producer;
  rmq_producer_enter(producer);
  if (send->fault) rmq_send_note_fault(send, outcome);
  if (outcome->status != RMQ_OK) {
    broke_off(send, outcome);
  } else if (send->oneway) {
    end_with_success(send, RMQ_SEND_OK, NULL);
  } else {
    switch (outcome->header->code) {
      case RMQ_SUCCESS:
        stored(send, RMQ_SEND_OK, outcome->header);
        break;
      case RMQ_FLUSH_DISK_TIMEOUT:
        stored(send, RMQ_SEND_FLUSH_DISK_TIMEOUT, outcome->header);
        break;
      case RMQ_FLUSH_SLAVE_TIMEOUT:
        stored(send, RMQ_SEND_FLUSH_SLAVE_TIMEOUT, outcome->header);
        break;
      case RMQ_SLAVE_NOT_AVAILABLE:
        stored(send, RMQ_SEND_SLAVE_NOT_AVAILABLE, outcome->header);
        break;
      default:
        refused(send, outcome->header);
        break;
    }
  }
  rmq_producer_leave(producer);
}

void rmq_send_init_attempt(rmq_send *send) {
  send->request.encode = encode;
  send->request.done = attempt_done;
  send->waiter.done = route_came;
}

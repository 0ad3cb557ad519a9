#include <stdio.h>

#include "base/error.h"
#include "producer/carrier.h"
#include "producer/core.h"
#include "producer/policy.h"
#include "wire/codes.h"

/* What comes of an attempt: the send's end, or another attempt. */

/* Notes an attempt that did not bring what was wanted. */
static void note_try(rmq_send *send, rmq_kind kind, int32_t code, bool written, const char *text) {
  rmq_failure_try(&send->failure, kind, code, written, rmq_slice_text(send->broker),
                  rmq_slice_text(send->addr), rmq_slice_text(text),
                  rmq_mono_diff_us(rmq_send_now(send), send->attempt_started));
  send->tried_queue_id = send->queue_id;
  bool speaks_against =
      kind != RMQ_KIND_BROKER || rmq_policy_retries_code(&send->producer->retry_codes, code);
  if (speaks_against) {
    rmq_routes_count_failure(send->producer->routes, rmq_slice_text(send->broker));
  }
}

bool rmq_send_was_written(const rmq_send *send) {
  for (int i = 0; i < send->failure.n_tries; i++) {
    if (send->failure.tries[i].written) return true;
  }
  return false;
}

void rmq_send_forget_chosen(rmq_send *send) {
  if (!send->chosen || rmq_send_was_written(send)) return;
  send->chosen = false;
  rmq_buf_clear(&send->given); /* what a batch gave it to show */
}

static void try_again_or_end(rmq_send *send, const rmq_attempt_end *end) {
  bool again =
      send->attempts <= send->retries && rmq_policy_may_retry(&send->producer->retry_codes, end);
  rmq_log_line(
      &send->producer->log, RMQ_LOG_DEBUG, "attempt %d to send to topic \"%s\" on %s: %s; %s",
      send->attempts, send->topic->name, send->broker,
      send->failure.tries[send->failure.n_tries - 1].message, again ? "trying again" : "giving up");
  if (again && send->carries && rmq_carrier_dissolves(send)) {
    rmq_carrier_dissolve(send);
  } else if (again) {
    rmq_send_forget_chosen(send);
    rmq_send_go_on(send, false);
  } else {
    rmq_send_end_failed(send);
  }
}

rmq_kind rmq_kind_of_status(int status) {
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

int32_t rmq_java_code_of(rmq_kind kind) {
  if (kind == RMQ_KIND_CONNECT) return 10001;
  return kind == RMQ_KIND_TIMEOUT ? 10002 : 0;
}

/* What ended an attempt. Who cannot connect to a mapped address has to know both. */
static void describe(const rmq_send *send, const rmq_outcome *outcome, rmq_kind kind, char *text,
                     size_t size) {
  bool has_detail = outcome->detail && outcome->detail[0] != '\0';
  const char *what = has_detail ? outcome->detail : rmq_error_text(outcome->status);
  const char *advertised = NULL;
  if (kind == RMQ_KIND_CONNECT) {
    advertised = rmq_routes_advertised(send->producer->routes, rmq_slice_text(send->broker));
  }
  if (!advertised) {
    snprintf(text, size, "%s", what);
  } else {
    snprintf(text, size, "%s; the broker advertises %.256s, which address_map changes", what,
             advertised);
  }
}

static void broke_off(rmq_send *send, const rmq_outcome *outcome) {
  rmq_kind kind = rmq_kind_of_status(outcome->status);
  char text[1024];
  describe(send, outcome, kind, text, sizeof text);
  note_try(send, kind, rmq_java_code_of(kind), outcome->written, text);
  send->failure.tries[send->failure.n_tries - 1].foreign = outcome->status == RMQ_EPROTO;
  if (kind != RMQ_KIND_TIMEOUT) rmq_topic_refresh(send->topic);
  rmq_attempt_end end = {.written = outcome->written,
                         .given_queue = rmq_send_has_given_queue(send)};
  try_again_or_end(send, &end);
}

static bool has_untried_broker(const rmq_send *send) {
  const rmq_publish *publish = rmq_send_has_given_queue(send) ? NULL : send->publish;
  for (size_t i = 0; publish && i < publish->n_brokers; i++) {
    if (!rmq_send_has_tried(send, publish->brokers[i].name)) return true;
  }
  return false;
}

/* "Go away" says that the broker has not looked at the message and wants it on another connection,
 * which the transport makes. As in Java it is sent there once more, whatever the number of retries,
 * unless a broker that has not failed this send can have it. True when it took care of the send. */
static bool come_back_after_go_away(rmq_send *send) {
  if (send->attempts <= send->retries && has_untried_broker(send)) return false;
  rmq_mono now = rmq_send_now(send);
  if (!send->came_back && rmq_mono_before(now, send->deadline)) {
    send->came_back = true;
    send->retries++;
    rmq_send_attempt(send, now, false);
    return true;
  }
  if (!rmq_send_has_given_queue(send)) return false;
  rmq_send_end_failed(send);
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
  bool too_long = header->code == RMQ_SYSTEM_ERROR && rmq_remark_says_too_long(header->remark);
  rmq_attempt_end end = {.refused = true,
                         .code = too_long ? RMQ_MESSAGE_ILLEGAL : header->code,
                         .written = true,
                         .given_queue = rmq_send_has_given_queue(send)};
  try_again_or_end(send, &end);
}

/* A reply that says yes and cannot be read: the message is probably stored. */
static void unreadable(rmq_send *send, const char *missing) {
  char text[160];
  snprintf(text, sizeof text, "its answer says that the message is stored, but has no proper %s",
           missing ? missing : "fields");
  note_try(send, RMQ_KIND_CLOSED, 0, true, text);
  rmq_attempt_end end = {.written = true, .given_queue = rmq_send_has_given_queue(send)};
  try_again_or_end(send, &end);
}

static rmq_slice keep_text(rmq_buf *out, rmq_slice text) {
  if (!text.ptr) return text;
  char *at = (char *)rmq_buf_head(out) + rmq_buf_len(out);
  rmq_buf_bytes(out, text.ptr, text.len);
  return rmq_slice_make(at, text.len);
}

void rmq_send_keep(rmq_send *send, rmq_slice broker, rmq_send_status status,
                   const rmq_send_reply *reply) {
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
  send->kept_attempt = send->attempts;
  send->has_kept = true;
}

/* True when another broker shall be asked to do better than "stored, but". */
static bool wants_better(const rmq_send *send, rmq_send_status status) {
  const rmq_settings *settings = &send->producer->settings;
  if (status == RMQ_SEND_OK || !settings->retry_another_broker_when_not_store_ok) return false;
  return send->attempts <= send->retries && !rmq_send_has_given_queue(send);
}

/* A broker before 5.0 delivers at once what was to wait, and does not say so. */
static void warn_of_old_broker(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (producer->warned_of_timers) return;
  producer->warned_of_timers = true;
  rmq_log_line(
      &producer->log, RMQ_LOG_WARN,
      "broker %s (%s) is older than RocketMQ 5.0 and has delivered a message to topic %s at "
      "once, for it knows no delay_ms, delay_seconds and deliver_at; use delay_level there",
      send->broker, send->addr, send->topic->name);
}

static void stored(rmq_send *send, rmq_send_status status, const rmq_header *header) {
  if (send->timer_message && header->version < RMQ_VERSION_5_0_0) warn_of_old_broker(send);
  rmq_send_reply reply;
  const char *missing = NULL;
  bool readable = rmq_send_reply_decode(header, &reply, &missing) == 0;
  if (readable && send->carries) missing = rmq_carrier_misses(send, &reply);
  if (!readable || missing) {
    unreadable(send, missing);
    return;
  }
  if (!wants_better(send, status)) {
    rmq_send_end_with_success(send, status, &reply);
    return;
  }
  rmq_send_keep(send, rmq_slice_text(send->broker), status, &reply);
  if (send->carries) rmq_carrier_keep(send, status, &reply);
  note_try(send, RMQ_KIND_BROKER, header->code, true, rmq_send_status_name(status));
  rmq_send_go_on(send, false);
}

void rmq_send_attempt_done(rmq_request *request, const rmq_outcome *outcome) {
  rmq_send *send = rmq_link_owner(request, rmq_send, request);
  rmq_producer *producer = send->producer;
  rmq_producer_enter(producer);
  if (send->fault) rmq_send_note_fault(send, outcome);
  if (outcome->status != RMQ_OK) {
    broke_off(send, outcome);
  } else if (send->oneway) {
    rmq_send_end_with_success(send, RMQ_SEND_OK, NULL);
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

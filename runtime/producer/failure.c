#include "producer/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/codes.h"

const char *rmq_kind_name(rmq_kind kind) {
  switch (kind) {
    case RMQ_KIND_MESSAGE:
      return "message";
    case RMQ_KIND_TIMEOUT:
      return "timeout";
    case RMQ_KIND_ROUTE:
      return "route";
    case RMQ_KIND_CONNECT:
      return "connect";
    case RMQ_KIND_CLOSED:
      return "closed";
    case RMQ_KIND_BROKER:
      return "broker";
    case RMQ_KIND_SELECTOR:
      return "selector";
    case RMQ_KIND_HOOK:
      return "hook";
    case RMQ_KIND_STATE:
      return "state";
    case RMQ_KIND_OVERLOAD:
      break;
  }
  return "overload";
}

void rmq_failure_init(rmq_failure *failure) { memset(failure, 0, sizeof *failure); }

static void forget_place(rmq_failure *failure) {
  free(failure->topic);
  free(failure->broker);
  free(failure->addr);
  failure->topic = failure->broker = failure->addr = NULL;
}

void rmq_failure_clear(rmq_failure *failure) {
  for (int i = 0; i < failure->n_tries; i++) {
    free(failure->tries[i].broker);
    free(failure->tries[i].addr);
    free(failure->tries[i].message);
  }
  free(failure->tries);
  forget_place(failure);
  rmq_buf_free(&failure->message);
  rmq_failure_init(failure);
}

static char *copy(rmq_slice text) { return text.len ? rmq_copy_text(text.ptr, text.len) : NULL; }

void rmq_failure_copy(rmq_failure *to, const rmq_failure *from) {
  *to = *from;
  to->message = (rmq_buf){0};
  rmq_slice message = rmq_buf_slice(&from->message);
  rmq_buf_bytes(&to->message, message.ptr, message.len);
  to->topic = copy(rmq_slice_text(from->topic));
  to->broker = copy(rmq_slice_text(from->broker));
  to->addr = copy(rmq_slice_text(from->addr));
  to->tries = NULL;
  if (from->n_tries == 0) return;
  to->tries = rmq_alloc_zero((size_t)from->n_tries, sizeof *to->tries);
  for (int i = 0; i < from->n_tries; i++) {
    const rmq_try *attempt = &from->tries[i];
    to->tries[i] = *attempt;
    to->tries[i].broker = copy(rmq_slice_text(attempt->broker));
    to->tries[i].addr = copy(rmq_slice_text(attempt->addr));
    to->tries[i].message = copy(rmq_slice_text(attempt->message));
  }
}

void rmq_failure_try(rmq_failure *failure, rmq_kind kind, int32_t code, bool written,
                     rmq_slice broker, rmq_slice addr, rmq_slice message, int64_t elapsed_us) {
  size_t n = (size_t)failure->n_tries + 1;
  failure->tries = rmq_realloc(failure->tries, n * sizeof *failure->tries);
  failure->tries[failure->n_tries++] = (rmq_try){.broker = copy(broker),
                                                 .addr = copy(addr),
                                                 .message = copy(message),
                                                 .kind = kind,
                                                 .code = code,
                                                 .written = written,
                                                 .elapsed_us = elapsed_us};
}

void rmq_failure_set(rmq_failure *failure, rmq_kind kind, int32_t code, const char *format, ...) {
  forget_place(failure);
  rmq_buf_clear(&failure->message);
  failure->kind = kind;
  failure->code = code;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rmq_buf_text(&failure->message, text);
}

void rmq_failure_prefix(rmq_failure *failure, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rmq_buf message = {0};
  rmq_slice rest = rmq_buf_slice(&failure->message);
  rmq_buf_text(&message, text);
  rmq_buf_bytes(&message, rest.ptr, rest.len);
  rmq_buf_free(&failure->message);
  failure->message = message;
}

/* What a person can do about a code that a broker refused with. */
static const char *hint_for_code(int32_t code) {
  switch (code) {
    case RMQ_SYSTEM_BUSY:
    case RMQ_FLOW_CONTROL:
      return "The broker is overloaded: send slower, or give it more memory or faster disks.";
    case RMQ_MESSAGE_ILLEGAL:
      return "The broker's own limits are smaller: look at maxMessageSize and timerMaxDelaySec in "
             "its "
             "configuration, and at the lengths of body, properties and topic, and the delay.";
    case RMQ_SERVICE_NOT_AVAILABLE:
      return "The broker's disk is full, or it is a slave or shutting down.";
    case RMQ_NO_PERMISSION:
      return "The topic or broker is not writable, or access control forbids it: look at the "
             "topic's perm "
             "and at the broker's ACL.";
    case RMQ_TOPIC_NOT_EXIST:
      return "Create the topic, for example: mqadmin updateTopic -n NAMESRV -t TOPIC -c CLUSTER.";
    case RMQ_INVALID_PARAMETER:
      return "Look at the topic's name and at the queues that it has: producer:queues(topic).";
    default:
      return "Look for the code and the remark in the broker's log.";
  }
}

static bool has_words(rmq_slice remark, const char *words) {
  size_t len = strlen(words);
  for (size_t at = 0; at + len <= remark.len; at++) {
    if (memcmp(remark.ptr + at, words, len) == 0) return true;
  }
  return false;
}

/* The whole batch, or a message of it, is longer than the broker stores: what brokers before 5.0 say
 * with code 1. */
bool rmq_remark_says_too_long(rmq_slice remark) { return has_words(remark, "size exceeded"); }

/* Brokers before 5.0 say much with code 1 that has a code of its own since. */
static int32_t meant_by(int32_t code, rmq_slice remark) {
  if (code != RMQ_SYSTEM_ERROR) return code;
  if (rmq_remark_says_too_long(remark)) return RMQ_MESSAGE_ILLEGAL;
  return has_words(remark, "request queueId[") ? RMQ_INVALID_PARAMETER : code;
}

static const char *hint_for_refusal(const rmq_failure *failure) {
  const rmq_try *last = &failure->tries[failure->n_tries - 1];
  return hint_for_code(meant_by(failure->code, rmq_slice_text(last->message)));
}

static const char *hint_for(const rmq_failure *failure) {
  if (failure->kind == RMQ_KIND_BROKER) return hint_for_refusal(failure);
  if (failure->tries[failure->n_tries - 1].foreign) {
    return "Check that this is the address of a broker, and the port its listenPort.";
  }
  switch (failure->kind) {
    case RMQ_KIND_CONNECT:
      return "Check that the broker runs and that the address it registered (brokerIP1, "
             "listenPort) can be reached "
             "from here; if it cannot, set address_map.";
    case RMQ_KIND_TIMEOUT:
      return "Raise send_msg_timeout, or find out why the broker is slow.";
    case RMQ_KIND_CLOSED:
      return "Look into the broker's log; sending again is safe where a second copy does no harm.";
    default:
      return NULL;
  }
}

static void write_try(rmq_buf *out, const rmq_try *attempt) {
  /* Names and addresses come out of a route, where they may have any length. */
  rmq_buf_printf(out, "%.256s", attempt->broker ? attempt->broker : "?");
  if (attempt->addr) rmq_buf_printf(out, " (%.256s)", attempt->addr);
  rmq_buf_printf(out, ": %s", attempt->message ? attempt->message : rmq_kind_name(attempt->kind));
}

static void write_milliseconds(rmq_buf *out, int64_t us) {
  rmq_buf_printf(out, "%lld.%lld ms", (long long)(us / 1000), (long long)(us % 1000 / 100));
}

static void write_message(rmq_failure *failure, rmq_slice topic) {
  rmq_buf *out = &failure->message;
  rmq_buf_clear(out);
  rmq_buf_text(out, "Sending to topic \"");
  rmq_buf_bytes(out, topic.ptr, topic.len);
  rmq_buf_printf(out, "\" failed after %d attempt%s in ", failure->n_tries,
                 failure->n_tries == 1 ? "" : "s");
  write_milliseconds(out, failure->elapsed_us);
  for (int i = 0; i < failure->n_tries; i++) {
    rmq_buf_text(out, i == 0 ? ": " : "; ");
    write_try(out, &failure->tries[i]);
  }
  rmq_buf_plain(out, 0);
  rmq_buf_text(out, ".");
  if (failure->maybe_stored) {
    rmq_buf_text(out, " The message may have been stored: a broker got it and did not answer.");
  }
  const char *hint = hint_for(failure);
  if (hint) rmq_buf_printf(out, " %s", hint);
}

bool rmq_failure_may_be_stored(const rmq_failure *failure) {
  for (int i = 0; i < failure->n_tries; i++) {
    const rmq_try *attempt = &failure->tries[i];
    if (attempt->written && attempt->kind != RMQ_KIND_BROKER) return true;
  }
  return false;
}

void rmq_failure_conclude(rmq_failure *failure, rmq_slice topic, int64_t elapsed_us) {
  const rmq_try *last = &failure->tries[failure->n_tries - 1];
  failure->kind = last->kind;
  failure->code = last->code;
  failure->elapsed_us = elapsed_us;
  forget_place(failure);
  failure->topic = copy(topic);
  failure->broker = copy(rmq_slice_text(last->broker));
  failure->addr = copy(rmq_slice_text(last->addr));
  failure->maybe_stored = rmq_failure_may_be_stored(failure);
  write_message(failure, topic);
}

#include "producer/settle.h"

#include "base/error.h"
#include "base/utf8.h"
#include "producer/call.h"
#include "producer/core.h"
#include "wire/codes.h"
#include "wire/number.h"
#include "wire/properties.h"
#include "wire/transaction.h"

/* ---- Half messages ---- */

static rmq_slice keep(rmq_buf *texts, rmq_slice text) {
  if (text.len == 0) return rmq_slice_make(NULL, 0);
  char *at = (char *)rmq_buf_head(texts) + rmq_buf_len(texts);
  rmq_buf_bytes(texts, text.ptr, text.len);
  return rmq_slice_make(at, text.len);
}

void rmq_half_remember(rmq_half *half, const rmq_producer *producer, rmq_slice topic,
                       rmq_slice properties, rmq_slice body) {
  bool hooked = producer->hooks && producer->hooks->end_transaction;
  if (!hooked && !producer->trace) return;
  half->sent_to = topic;
  half->properties = properties;
  if (hooked) half->body = body;
}

void rmq_half_copy(rmq_half *to, const rmq_half *from) {
  rmq_buf texts = {0};
  /* All at once: what is kept must not move. */
  rmq_buf_reserve(&texts, 1 + from->topic.len + from->broker.len + from->addr.len +
                              from->msg_id.len + from->transaction_id.len + from->sent_to.len +
                              from->properties.len + from->body.len);
  rmq_half copy = *from;
  copy.topic = keep(&texts, from->topic);
  copy.broker = keep(&texts, from->broker);
  copy.addr = keep(&texts, from->addr);
  copy.msg_id = keep(&texts, from->msg_id);
  copy.transaction_id = keep(&texts, from->transaction_id);
  copy.sent_to = keep(&texts, from->sent_to);
  copy.properties = keep(&texts, from->properties);
  copy.body = keep(&texts, from->body);
  copy.texts = texts;
  rmq_buf_free(&to->texts);
  *to = copy;
}

void rmq_half_free(rmq_half *half) {
  rmq_buf_free(&half->texts);
  *half = (rmq_half){.log_offset = 0};
}

/* ---- END_TRANSACTION ---- */

/* commitOrRollback. Brokers do nothing when they are told "unknown"; Java tells them all the same,
 * and so it can be seen there. */
static int64_t verdict(rmq_transaction_state state) {
  switch (state) {
    case RMQ_TRANSACTION_COMMIT:
      return RMQ_END_COMMIT;
    case RMQ_TRANSACTION_ROLLBACK:
      return RMQ_END_ROLLBACK;
    case RMQ_TRANSACTION_UNKNOWN:
      break;
  }
  return RMQ_END_UNKNOWN;
}

static void call_done(void *arg, const rmq_call_end *end);

/* The fields of the header, and the digits of those that are numbers. */
typedef struct fields {
  rmq_field list[9];
  size_t n;
  char digits[3][RMQ_NUMBER_MAX];
  size_t n_digits;
} fields;

static void add(fields *to, const char *name, rmq_slice value) {
  if (value.len > 0) to->list[to->n++] = (rmq_field){rmq_slice_text(name), value};
}

static void add_number(fields *to, const char *name, int64_t value) {
  char *digits = to->digits[to->n_digits++];
  add(to, name, rmq_slice_make(digits, rmq_number_write(digits, value)));
}

static int tell(rmq_settlement *s) {
  rmq_producer *producer = s->producer;
  const rmq_half *half = &s->half;
  fields ext = {.n = 0};
  add(&ext, "topic", half->topic);
  add(&ext, "producerGroup", producer->group);
  add_number(&ext, "tranStateTableOffset", half->queue_offset);
  add_number(&ext, "commitLogOffset", half->log_offset);
  add_number(&ext, "commitOrRollback", verdict(s->state));
  add(&ext, "fromTransactionCheck", rmq_slice_text(half->checked ? "true" : "false"));
  add(&ext, "msgId", half->msg_id);
  add(&ext, "transactionId", half->transaction_id);
  add(&ext, "bname", half->broker);
  int64_t left_ms = rmq_mono_diff_ms(s->deadline, rmq_transport_now(producer->transport));
  rmq_call_options options = {
      .code = RMQ_END_TRANSACTION,
      .broker = half->addr.len > 0 ? rmq_slice_make(NULL, 0) : half->broker,
      .topic = half->addr.len > 0 ? rmq_slice_make(NULL, 0) : half->topic,
      .addr = half->addr,
      .connection = half->connection,
      .ext = ext.list,
      .n_ext = ext.n,
      .remark = rmq_buf_slice(&s->remark),
      .oneway = true,
      .to_the_end = true,
      .timeout_ms = left_ms > 0 ? left_ms : 1,
  };
  return rmq_producer_call(producer, &options, call_done, s);
}

static void report(rmq_settlement *s, const rmq_failure *cause) {
  rmq_producer *producer = s->producer;
  rmq_slice id = s->half.msg_id;
  rmq_slice text = rmq_buf_slice(&cause->message);
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(
      &failure, cause->kind, cause->code,
      "The broker could not be told to %s the transaction of message %.*s: %.*s. It will ask for "
      "the transaction's state, and the check function of a producer of group \"%s\" decides then.",
      rmq_transaction_state_name(s->state), (int)id.len, id.len ? id.ptr : "", (int)text.len,
      text.len ? text.ptr : "", producer->settings.group);
  failure.maybe_stored = cause->maybe_stored;
  failure.elapsed_us = cause->elapsed_us;
  rmq_log_line(&producer->log, RMQ_LOG_WARN, "%.*s", (int)rmq_buf_len(&failure.message),
               (const char *)rmq_buf_head(&failure.message));
  s->done(s, &failure);
  rmq_failure_clear(&failure);
}

/* A second END_TRANSACTION makes a broker deliver the message a second time: it is sent again only
 * when the first one certainly went nowhere. The transport lets some time pass between tries. */
static bool may_tell_again(const rmq_settlement *s, const rmq_failure *failure) {
  const rmq_producer *producer = s->producer;
  if (failure->maybe_stored) return false;
  if (failure->kind == RMQ_KIND_STATE || failure->kind == RMQ_KIND_ROUTE) return false;
  return rmq_mono_before(rmq_transport_now(producer->transport), s->deadline);
}

static void call_done(void *arg, const rmq_call_end *end) {
  rmq_settlement *s = arg;
  /* A broker that does not hear "unknown" knows as much as before. */
  if (!end->failure || s->state == RMQ_TRANSACTION_UNKNOWN) {
    s->done(s, NULL);
    return;
  }
  if (may_tell_again(s, end->failure) && tell(s) == 0) return;
  report(s, end->failure);
}

/* The address that is told, as far as it is known before the broker's route is asked for. */
static rmq_slice address_of(const rmq_settlement *s) {
  if (s->half.addr.len > 0) return s->half.addr;
  return rmq_slice_text(rmq_routes_master(s->producer->routes, s->half.broker));
}

/* Who is set when the half message is under way already has only what the broker calls it. */
static rmq_slice topic_of(const rmq_half *half) {
  return half->sent_to.len > 0 ? half->sent_to : half->topic;
}

/* Old brokers give a half message none; for Java's client it is the message's id in any case. */
static rmq_slice transaction_id_of(const rmq_half *half) {
  return half->transaction_id.len > 0 ? half->transaction_id : half->msg_id;
}

static void tell_hooks(const rmq_settlement *s) {
  const rmq_half *half = &s->half;
  rmq_hook_transaction about = {.producer = s->producer,
                                .topic = topic_of(half),
                                .broker = half->broker,
                                .addr = address_of(s),
                                .msg_id = half->msg_id,
                                .transaction_id = transaction_id_of(half),
                                .state = rmq_transaction_state_name(s->state),
                                .from_check = half->checked,
                                .properties = half->properties,
                                .body = half->body};
  rmq_hooks_end_transaction(s->producer, &about);
}

static void trace(const rmq_settlement *s) {
  static const char *const names[] = {[RMQ_TRANSACTION_UNKNOWN] = "UNKNOW",
                                      [RMQ_TRANSACTION_COMMIT] = "COMMIT_MESSAGE",
                                      [RMQ_TRANSACTION_ROLLBACK] = "ROLLBACK_MESSAGE"};
  const rmq_half *half = &s->half;
  rmq_trace_record record = {.region = rmq_properties_find(half->properties, "MSG_REGION"),
                             .topic = topic_of(half),
                             .msg_id = half->msg_id,
                             .tags = rmq_properties_find(half->properties, "TAGS"),
                             .keys = rmq_properties_find(half->properties, "KEYS"),
                             .store_host = address_of(s),
                             .transaction_id = transaction_id_of(half),
                             .state = rmq_slice_text(names[s->state]),
                             .from_check = half->checked};
  rmq_trace_end_transaction(s->producer, &record);
}

int rmq_settle(rmq_settlement *s, rmq_producer *producer, rmq_transaction_state state,
               rmq_slice remark) {
  enum { LONGEST_REMARK = 512 }; /* brokers only write it to their logs, as UTF-8 */
  int64_t timeout_ms = producer->settings.send_msg_timeout;
  s->producer = producer;
  s->state = state;
  s->deadline = rmq_mono_add_ms(rmq_transport_now(producer->transport), timeout_ms);
  rmq_buf_clear(&s->remark);
  if (remark.len > LONGEST_REMARK) remark.len = LONGEST_REMARK;
  rmq_buf_bytes(&s->remark, remark.ptr, rmq_utf8_invalid_at(remark));
  if (producer->hooks) {
    tell_hooks(s);
    if (!producer->transport) return RMQ_ESTATE;
  }
  if (producer->trace) trace(s);
  return tell(s);
}

void rmq_settlement_free(rmq_settlement *s) {
  rmq_half_free(&s->half);
  rmq_buf_free(&s->remark);
}

#include "producer/transaction.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/check.h"
#include "producer/core.h"
#include "producer/message_fields.h"
#include "producer/settle.h"
#include "wire/codes.h"

typedef enum phase {
  PHASE_HALF,  /* the half message is being sent */
  PHASE_OPEN,  /* the caller does its part; it is in the producer's `open` */
  PHASE_ENDING /* the broker is being told */
} phase;

typedef struct transaction {
  rmq_link link;   /* in the producer's `transactions`, in the order of their numbers */
  uint64_t number; /* its half message's */
  phase phase;
  rmq_settlement settlement; /* its half message is known from PHASE_OPEN on */
  rmq_send_done *done;       /* with its arg, which `choose` and `admitted` get too */
  rmq_choose *choose;
  rmq_admitted *admitted;
  void *arg;
  rmq_transaction_ended *ended;
  void *ended_arg;
} transaction;

const char *rmq_transaction_state_name(rmq_transaction_state state) {
  switch (state) {
    case RMQ_TRANSACTION_COMMIT:
      return "commit";
    case RMQ_TRANSACTION_ROLLBACK:
      return "rollback";
    case RMQ_TRANSACTION_UNKNOWN:
      break;
  }
  return "unknown";
}

/* ---- Life ---- */

static void release(transaction *t) {
  rmq_producer *producer = t->settlement.producer;
  if (t->phase == PHASE_OPEN) rmq_map_remove(producer->open, t->settlement.half.msg_id);
  rmq_link_remove(&t->link);
  rmq_settlement_free(&t->settlement);
  free(t);
}

static transaction *first_of(const rmq_producer *producer) {
  return rmq_link_owner(producer->transactions.next, transaction, link);
}

/* Somebody may have waited for the transaction that was just released. */
static void look_who_waited(rmq_producer *producer) {
  if (!producer->transport) return;
  rmq_producer_check_flushes(producer);
  rmq_producer_check_end(producer);
}

/* ---- The half message ---- */

static int refuse(rmq_producer *producer, const char *why) {
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0, "%s", why);
  return RMQ_EINVAL;
}

/* Java takes the delay level out without a word, and leaves a timer in, which the broker then
 * forgets. */
static int check_kind(rmq_producer *producer, const rmq_message *message,
                      const rmq_send_options *options) {
  if (options->mode == RMQ_MODE_ONEWAY) {
    return refuse(producer, "a half message cannot be sent oneway: it must be known where it is");
  }
  if (message->delay_kind != RMQ_DELAY_NONE) {
    return refuse(producer,
                  "the message of a transaction cannot be delayed: brokers deliver it when it is "
                  "committed; leave out delay_level, delay_ms, delay_seconds and deliver_at");
  }
  if (rmq_message_is_for_light_queues(message)) {
    return refuse(producer,
                  "the message of a transaction cannot have light queues: brokers show it in them "
                  "before it is committed; leave out lmq");
  }
  return 0;
}

/* Notes where the half message is. False when the broker's answer does not say it. */
static bool locate(transaction *t, const rmq_completion *completion) {
  const rmq_send_reply *reply = completion->reply;
  rmq_offset_id id;
  if (!reply || rmq_offset_id_decode(reply->msg_id, &id) < 0) return false;
  rmq_half half = {.topic = completion->topic,
                   .broker = completion->broker,
                   .msg_id = completion->msg_id,
                   .transaction_id = reply->transaction_id,
                   .queue_offset = reply->queue_offset,
                   .log_offset = id.offset};
  rmq_half_remember(&half, t->settlement.producer, completion->topic, completion->properties,
                    completion->body);
  rmq_half_copy(&t->settlement.half, &half);
  return true;
}

/* A half message that is stored nobody knows where: the broker will ask, and is told then. */
static void end_lost(transaction *t, const rmq_completion *completion) {
  rmq_completion failed = *completion;
  rmq_slice id = completion->reply ? completion->reply->msg_id : rmq_slice_make(NULL, 0);
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(&failure, RMQ_KIND_BROKER, 0,
                  "Broker %.*s stored the half message, but its answer does not say where "
                  "(\"%.*s\"). The local transaction was not begun; let the check function say "
                  "\"rollback\" when the broker asks.",
                  (int)completion->broker.len, completion->broker.ptr,
                  (int)(id.len < 80 ? id.len : 80), id.len ? id.ptr : "");
  rmq_buf_plain(&failure.message, 0);
  failure.topic = rmq_copy_text(completion->topic.ptr, completion->topic.len);
  failure.broker = rmq_copy_text(completion->broker.ptr, completion->broker.len);
  failure.maybe_stored = true;
  failed.failure = &failure;
  failed.reply = NULL;
  rmq_send_done *done = t->done;
  void *arg = t->arg;
  release(t);
  done(arg, &failed);
  rmq_failure_clear(&failure);
}

static void half_sent(void *arg, const rmq_completion *completion) {
  transaction *t = arg;
  rmq_producer *producer = t->settlement.producer;
  rmq_send_done *done = t->done;
  void *done_arg = t->arg;
  if (completion->failure) {
    release(t);
  } else if (!locate(t, completion)) {
    end_lost(t, completion);
    return;
  } else if (producer->undecided) {
    producer->undelivered++;
    release(t);
  } else {
    t->phase = PHASE_OPEN;
    rmq_map_set(producer->open, t->settlement.half.msg_id, t);
  }
  done(done_arg, completion);
}

static int choose_for(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                      rmq_failure *why) {
  const transaction *t = arg;
  return t->choose(t->arg, choice, queue, why);
}

static void tell_admitted(void *arg) {
  const transaction *t = arg;
  t->admitted(t->arg);
}

/* A message of its own with what makes it a half one; release its `system`. */
static rmq_message half_of(const rmq_producer *producer, const rmq_message *message) {
  rmq_message half = *message;
  rmq_field *system = rmq_alloc((message->n_system + 2) * sizeof *system);
  system[0] = (rmq_field){rmq_slice_text("TRAN_MSG"), rmq_slice_text("true")};
  system[1] = (rmq_field){rmq_slice_text("PGROUP"), producer->group};
  for (size_t i = 0; i < message->n_system; i++) system[i + 2] = message->system[i];
  half.system = system;
  half.n_system = message->n_system + 2;
  half.sys_flag |= RMQ_SYS_PREPARED;
  return half;
}

int rmq_producer_send_half(rmq_producer *producer, const rmq_message *message,
                           const rmq_send_options *options, rmq_send_done *done, void *arg) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = check_kind(producer, message, options);
  if (status < 0) return status;
  if (!producer->open) producer->open = rmq_map_new(producer->io->calls->random(producer->io));
  transaction *t = rmq_alloc_zero(1, sizeof *t);
  t->settlement.producer = producer;
  t->number = producer->numbers + 1; /* the send's, if it begins */
  t->done = done;
  t->choose = options->choose;
  t->admitted = options->admitted;
  t->arg = arg;
  rmq_send_options own = *options;
  if (own.choose) own.choose = choose_for;
  if (own.admitted) own.admitted = tell_admitted;
  rmq_link_append(&producer->transactions, &t->link);
  rmq_message half = half_of(producer, message);
  status = rmq_producer_send(producer, &half, &own, half_sent, t);
  free((void *)half.system);
  if (status < 0) release(t);
  return status;
}

/* ---- The end ---- */

static void told(rmq_settlement *settlement, const rmq_failure *failure) {
  transaction *t = rmq_link_owner(settlement, transaction, settlement);
  rmq_producer *producer = settlement->producer;
  rmq_transaction_ended *ended = t->ended;
  void *arg = t->ended_arg;
  release(t);
  rmq_producer_enter(producer);
  ended(arg, failure);
  look_who_waited(producer);
  rmq_producer_leave(producer);
}

static int refuse_unknown(rmq_producer *producer, rmq_slice msg_id) {
  int status = rmq_producer_check_state(producer);
  if (status < 0 && producer->state != RMQ_STATE_DRAINING) return status;
  rmq_failure_set(&producer->refusal, RMQ_KIND_STATE, 0,
                  "no transaction of message %.*s is open; each can be ended once", (int)msg_id.len,
                  msg_id.len ? msg_id.ptr : "");
  return RMQ_EINVAL;
}

int rmq_producer_end_transaction(rmq_producer *producer, rmq_slice msg_id,
                                 rmq_transaction_state state, rmq_slice remark,
                                 rmq_transaction_ended *done, void *arg) {
  transaction *t = producer->open ? rmq_map_remove(producer->open, msg_id) : NULL;
  if (!t) return refuse_unknown(producer, msg_id);
  t->phase = PHASE_ENDING;
  t->ended = done;
  t->ended_arg = arg;
  t->settlement.done = told;
  int status = rmq_settle(&t->settlement, producer, state, remark);
  if (status < 0 && producer->transport) {
    release(t);
    rmq_producer_enter(producer);
    look_who_waited(producer);
    rmq_producer_leave(producer);
  }
  return status;
}

/* ---- What others want to know ---- */

/* True while the half message with this id is being sent. A copy of it, which an attempt left that
 * was not answered, may be asked about meanwhile. */
static bool is_being_sent(const rmq_producer *producer, rmq_slice msg_id) {
  const rmq_link *all = &producer->active;
  for (const rmq_link *link = all->next; link != all; link = link->next) {
    const rmq_send *send = rmq_link_owner(link, rmq_send, link);
    if (send->done != half_sent) continue;
    if (rmq_slice_equal(rmq_slice_make(send->msg_id, send->msg_id_len), msg_id)) return true;
  }
  return false;
}

/* True when the question is about this half message, and not about a copy that another broker keeps
 * since an attempt without an answer. Brokers before 5.0 do not give their name. */
static bool is_about(const rmq_half *half, const rmq_half *asked, const rmq_producer *producer) {
  if (asked->broker.len > 0) return rmq_slice_equal(asked->broker, half->broker);
  const char *master = rmq_routes_master(producer->routes, half->broker);
  return master && rmq_slice_is(asked->addr, master);
}

bool rmq_transaction_takes_check(rmq_producer *producer, const rmq_half *asked) {
  if (!producer->open) return false;
  transaction *t = rmq_map_get(producer->open, asked->msg_id);
  if (!t) return is_being_sent(producer, asked->msg_id);
  const rmq_half *half = &t->settlement.half;
  if (!is_about(half, asked, producer)) return true;
  /* The key in the map stays as it is: both have the same id. */
  rmq_half latest = *asked;
  latest.broker = half->broker;
  latest.sent_to = half->sent_to;
  latest.properties = half->properties;
  latest.body = half->body;
  rmq_half_copy(&t->settlement.half, &latest);
  return true;
}

size_t rmq_transactions_unfinished(const rmq_producer *producer, uint64_t up_to) {
  size_t n = 0;
  const rmq_link *all = &producer->transactions;
  for (const rmq_link *link = all->next; link != all; link = link->next) {
    const transaction *t = rmq_link_owner(link, transaction, link);
    if (t->number > up_to) break;
    if (t->phase != PHASE_HALF) n++; /* else its send counts */
  }
  return n;
}

bool rmq_transactions_finished(const rmq_producer *producer, uint64_t up_to) {
  return rmq_link_alone(&producer->transactions) || first_of(producer)->number > up_to;
}

/* ---- The end of the producer ---- */

void rmq_producer_leave_transactions(rmq_producer *producer) {
  size_t n = 0;
  for (rmq_link *link = producer->transactions.next; link != &producer->transactions;) {
    transaction *t = rmq_link_owner(link, transaction, link);
    link = link->next;
    if (t->phase != PHASE_OPEN) continue;
    release(t);
    n++;
  }
  if (n == 0) return;
  producer->undelivered += n;
  rmq_log_line(&producer->log, RMQ_LOG_WARN,
               "%zu transaction%s of producer \"%s\" undecided: the broker will ask another "
               "producer of the group",
               n, n == 1 ? " was left" : "s were left", producer->settings.group);
}

void rmq_producer_stop_deciding(rmq_producer *producer) {
  producer->undecided = true;
  if (!producer->transport) return;
  rmq_producer_enter(producer);
  rmq_producer_leave_transactions(producer);
  rmq_producer_leave_checks(producer);
  look_who_waited(producer);
  rmq_producer_leave(producer);
}

void rmq_producer_drop_transactions(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->transactions)) release(first_of(producer));
  rmq_map_free(producer->open);
  producer->open = NULL;
}

#include "producer/hook.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "producer/message.h"

/* When hooks are called, and what they see. */

enum { KEPT_CHANGE = 4096 }; /* longer buffers are not kept for the next send */

void rmq_producer_set_hooks(rmq_producer *producer, const rmq_hooks *hooks, void *arg) {
  producer->hooks = hooks;
  producer->hooks_arg = arg;
  if (!producer->transport) return;
  rmq_transport_watch watch = {.owner = arg};
  if (hooks) {
    watch.before_request = hooks->before_request;
    watch.after_response = hooks->after_response;
  }
  rmq_transport_set_watch(producer->transport, &watch);
}

int rmq_hooks_check_generation(rmq_producer *producer, rmq_slice topic) {
  if (producer->generation <= RMQ_HOOK_DEPTH) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_HOOK, 0,
                  "a hook sent this message to topic \"%.*s\" because of one that a hook had sent, "
                  "and so on %d times; a hook that sends must leave its own messages alone",
                  (int)(topic.len < 128 ? topic.len : 128), topic.len ? topic.ptr : "",
                  RMQ_HOOK_DEPTH);
  return RMQ_ELIMIT;
}

/* ---- What is changed ---- */

void rmq_send_forget_change(rmq_send *send) {
  rmq_hook_change *change = &send->change;
  if (change->body) {
    send->producer->stats.inflight_bytes -= rmq_buf_len(&change->new_body);
    rmq_pack_set(&send->pack, &send->producer->packer, send->body.len);
  }
  change->properties = change->body = false;
  rmq_buf_clear(&change->new_properties);
  rmq_buf_trim(&change->new_properties, KEPT_CHANGE);
  rmq_buf_clear(&change->new_body);
  rmq_buf_trim(&change->new_body, KEPT_CHANGE);
}

int rmq_hook_set_properties(rmq_hook_attempt *attempt, const rmq_message *users, rmq_failure *why) {
  rmq_hook_change *change = attempt->change;
  int status =
      rmq_message_properties_again(users, attempt->properties, &change->new_properties, why);
  change->properties = status == 0;
  return status;
}

int rmq_hook_set_body(rmq_hook_attempt *attempt, rmq_slice body, rmq_failure *why) {
  rmq_producer *producer = attempt->producer;
  rmq_hook_change *change = attempt->change;
  int status = rmq_body_check(&producer->settings, body, why);
  if (status < 0) return status;
  producer->stats.inflight_bytes -= rmq_buf_len(&change->new_body);
  rmq_buf_clear(&change->new_body);
  rmq_buf_bytes(&change->new_body, body.ptr, body.len);
  producer->stats.inflight_bytes += body.len;
  change->body = true;
  return 0;
}

/* ---- What a hook sees ---- */

/* Each field by itself: zeros that are overwritten cost as much as the rest of it. */
static void describe(rmq_hook_attempt *out, rmq_send *send) {
  out->producer = send->producer;
  out->mode = send->mode;
  out->topic = rmq_topic_name(send->topic);
  out->broker = out->addr = NULL;
  out->queue_id = -1;
  out->msg_id = rmq_slice_make(send->msg_id, send->msg_id_len);
  out->flag = send->flag;
  out->attempt = send->attempts;
  out->properties = rmq_send_properties(send);
  out->body = rmq_send_body(send);
  out->state = &send->hook_state;
  out->elapsed_us = 0;
  out->will_retry = false;
  out->completion = NULL;
  out->change = NULL;
}

/* The broker and queue that are chosen now. */
static void place(rmq_hook_attempt *attempt, const rmq_send *send) {
  attempt->broker = send->broker;
  attempt->addr = send->addr;
  attempt->queue_id = send->queue_id;
}

static int64_t attempt_us(const rmq_send *send) {
  const rmq_failure *failure = &send->failure;
  if (send->attempts == 0) return 0;
  if (failure->n_tries == send->attempts) return failure->tries[failure->n_tries - 1].elapsed_us;
  return rmq_mono_diff_us(rmq_send_now(send), send->attempt_started);
}

/* ---- The calls ---- */

/* What a hook sends meanwhile is of the next generation. */
static unsigned enter(rmq_send *send) {
  unsigned before = send->producer->generation;
  send->producer->generation = send->generation + 1u;
  return before;
}

/* The failure of a hook becomes the send's, whose tries stay. */
static void take_over(rmq_send *send, rmq_failure *why) {
  rmq_failure *failure = &send->failure;
  rmq_failure_set(failure, why->kind, why->code, "%s", "");
  rmq_slice text = rmq_buf_slice(&why->message);
  rmq_buf_bytes(&failure->message, text.ptr, text.len);
  failure->topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  failure->maybe_stored = rmq_failure_may_be_stored(failure);
}

/* Ends a call: what the hook refuses with becomes the failure of a send that goes on without it. */
static int settle(rmq_send *send, int status, rmq_failure *why, unsigned generation) {
  rmq_producer *producer = send->producer;
  producer->generation = generation;
  if (status == 0) return 0;
  if (producer->transport) take_over(send, why);
  rmq_failure_clear(why);
  return status;
}

static int check_forbidden(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (!producer->hooks->check_forbidden) return 0;
  rmq_hook_attempt attempt;
  describe(&attempt, send);
  attempt.attempt++;
  attempt.properties = rmq_buf_slice(&send->properties);
  attempt.body = send->body;
  place(&attempt, send);
  rmq_failure why;
  rmq_failure_init(&why);
  unsigned before = enter(send);
  int status = producer->hooks->check_forbidden(producer->hooks_arg, &attempt, &why);
  return settle(send, status, &why, before);
}

/* The attempt before this one: only now it is certain that another one follows. Its broker is known
 * by the name that was noted, because the next one is chosen already. */
static int tell_retry(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (send->attempts == 0 || !producer->hooks || !producer->hooks->after) return 0;
  rmq_failure *failure = &send->failure;
  const rmq_try *last = &failure->tries[failure->n_tries - 1];
  rmq_hook_attempt attempt;
  describe(&attempt, send);
  attempt.broker = last->broker;
  attempt.addr = last->addr;
  attempt.queue_id = send->tried_queue_id;
  attempt.elapsed_us = last->elapsed_us;
  attempt.will_retry = true;
  rmq_completion completion;
  if (send->has_kept && send->kept_attempt == send->attempts) {
    completion = rmq_send_kept_completion(send);
  } else {
    rmq_failure_conclude(failure, attempt.topic, rmq_send_elapsed_us(send));
    completion = rmq_send_failed_completion(send);
  }
  attempt.completion = &completion;
  rmq_failure why;
  rmq_failure_init(&why);
  unsigned before = enter(send);
  int status = producer->hooks->after(producer->hooks_arg, &attempt, &why);
  return settle(send, status, &why, before);
}

static int call_before(rmq_send *send) {
  rmq_producer *producer = send->producer;
  rmq_send_forget_change(send);
  if (!producer->hooks || !producer->hooks->before) return 0;
  rmq_hook_attempt attempt;
  describe(&attempt, send);
  place(&attempt, send);
  attempt.change = &send->change;
  rmq_failure why;
  rmq_failure_init(&why);
  unsigned before = enter(send);
  int status = producer->hooks->before(producer->hooks_arg, &attempt, &why);
  if (send->change.body) {
    rmq_pack_set(&send->pack, &producer->packer, rmq_buf_len(&send->change.new_body));
  }
  return settle(send, status, &why, before);
}

int rmq_hooks_attempt(rmq_send *send) {
  rmq_producer *producer = send->producer;
  /* Nothing is to be withdrawn while somebody else decides. A member stays with its carrier. */
  if (!send->carrier) send->phase = RMQ_PHASE_PAUSE;
  int status = check_forbidden(send);
  if (!producer->transport) return RMQ_ESTATE;
  if (status < 0) return status;
  status = tell_retry(send);
  if (!producer->transport) return RMQ_ESTATE;
  send->attempts++;
  send->attempt_started = rmq_send_now(send);
  if (status == 0) status = call_before(send);
  return producer->transport ? status : RMQ_ESTATE;
}

bool rmq_hooks_completed(rmq_send *send, const rmq_completion *completion) {
  rmq_producer *producer = send->producer;
  if (!producer->hooks->after) return true;
  rmq_hook_attempt attempt;
  describe(&attempt, send);
  if (send->attempts > 0) place(&attempt, send);
  attempt.elapsed_us = attempt_us(send);
  attempt.completion = completion;
  rmq_failure why;
  rmq_failure_init(&why);
  unsigned before = enter(send);
  int status = producer->hooks->after(producer->hooks_arg, &attempt, &why);
  producer->generation = before;
  if (status == 0) return true;
  bool replaced = !completion->failure && producer->transport;
  if (replaced) {
    take_over(send, &why);
    send->failure.maybe_stored = true;
  }
  rmq_failure_clear(&why);
  return !replaced;
}

void rmq_hooks_end_transaction(rmq_producer *producer, const rmq_hook_transaction *transaction) {
  if (!producer->hooks || !producer->hooks->end_transaction) return;
  unsigned before = producer->generation++;
  producer->hooks->end_transaction(producer->hooks_arg, transaction);
  producer->generation = before;
}

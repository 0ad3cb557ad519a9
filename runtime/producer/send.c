#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/carrier.h"
#include "producer/core.h"
#include "producer/message.h"
#include "producer/message_fields.h"

/* The start of a send: checks, and the pool that sends come from. */

enum { KEPT_PROPERTIES = 4096 }; /* a longer property buffer is not kept for the next send */

static void timer_due(rmq_timer *timer);

/* ---- The pool ---- */

rmq_send *rmq_send_take(rmq_producer *producer) {
  if (!rmq_link_alone(&producer->pool)) {
    rmq_send *send = rmq_link_owner(producer->pool.next, rmq_send, link);
    rmq_link_remove(&send->link);
    producer->pooled--;
    return send;
  }
  rmq_send *send = rmq_alloc_zero(1, sizeof *send);
  send->producer = producer;
  send->phase = RMQ_PHASE_ENDED;
  rmq_link_init(&send->link);
  rmq_link_init(&send->room);
  rmq_link_init(&send->member);
  rmq_link_init(&send->members);
  rmq_timer_init(&send->expiry, rmq_carrier_expired);
  rmq_timer_init(&send->timer, timer_due);
  rmq_failure_init(&send->failure);
  rmq_send_init_attempt(send);
  return send;
}

void rmq_send_free(rmq_send *send) {
  rmq_link_remove(&send->link);
  rmq_buf_free(&send->properties);
  rmq_buf_free(&send->given);
  rmq_pack_free(&send->pack);
  rmq_buf_free(&send->kept_texts);
  rmq_buf_free(&send->change.new_properties);
  rmq_buf_free(&send->change.new_body);
  rmq_failure_clear(&send->failure);
  free(send);
}

static bool failure_is_used(const rmq_failure *failure) {
  return failure->n_tries > 0 || failure->message.data || failure->topic;
}

void rmq_send_give_back(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (producer->entering == send) producer->entering = NULL;
  if (send->fault) rmq_send_hold_fault(send, NULL);
  if (send->group) rmq_gather_landed(send);
  rmq_publish_unref(send->publish);
  send->publish = NULL;
  /* Without routes (freed, or forked) the topic is gone. */
  if (send->topic && producer->routes) rmq_topic_release(send->topic);
  send->topic = NULL;
  send->hold = NULL;
  send->phase = RMQ_PHASE_ENDED;
  rmq_buf_clear(&send->properties);
  rmq_buf_trim(&send->properties, KEPT_PROPERTIES);
  rmq_buf_clear(&send->given);
  if (send->change.properties || send->change.body) rmq_send_forget_change(send);
  if (send->pack.bytes.data) rmq_pack_clear(&send->pack);
  if (send->has_kept) rmq_buf_free(&send->kept_texts);
  send->has_kept = send->carries = send->gathers = send->own = false;
  send->hook_state = NULL;
  if (failure_is_used(&send->failure)) rmq_failure_clear(&send->failure);
  if (producer->pooled >= (size_t)producer->settings.max_inflight) {
    rmq_send_free(send);
    return;
  }
  /* The one used last is the next to be used: it is in the processor's cache. */
  rmq_link_append(producer->pool.next, &send->link);
  producer->pooled++;
}

static void timer_due(rmq_timer *timer) {
  rmq_send *send = rmq_link_owner(timer, rmq_send, timer);
  rmq_producer *producer = send->producer;
  rmq_producer_enter(producer);
  if (send->phase == RMQ_PHASE_ROOM) {
    rmq_send_end_without_room(send);
  } else if (send->phase == RMQ_PHASE_PAUSE) {
    rmq_send_go_on(send, true);
  } else if (send->phase == RMQ_PHASE_DOOMED) {
    if (send->has_kept) {
      rmq_send_end_with_kept(send);
    } else {
      rmq_send_fail(send);
    }
  }
  rmq_producer_leave(producer);
}

void rmq_send_withdraw(rmq_send *send) {
  rmq_producer *producer = send->producer;
  switch (send->phase) {
    case RMQ_PHASE_ROOM:
      rmq_send_stop_waiting(send);
      rmq_send_enter_room(send); /* what completes leaves the room */
      break;
    case RMQ_PHASE_GATHERED:
      rmq_gather_lose(send);
      break;
    case RMQ_PHASE_CARRIED:
      rmq_carrier_lose(send);
      break;
    case RMQ_PHASE_ROUTE:
      rmq_topic_leave(&send->waiter);
      break;
    case RMQ_PHASE_HOLD:
      send->hold->cancel(send->hold);
      break;
    case RMQ_PHASE_ATTEMPT:
      rmq_transport_cancel(producer->transport, &send->request);
      break;
    case RMQ_PHASE_PAUSE:
    case RMQ_PHASE_DOOMED:
      rmq_transport_timer_stop(producer->transport, &send->timer);
      break;
    case RMQ_PHASE_ENDED:
      break;
  }
}

/* ---- The start ---- */

int rmq_send_check_queue(rmq_producer *producer, const rmq_send_options *options) {
  if (options->broker.len == 0 || options->queue_id >= 0) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                  "queue id %d is negative; ids start at 0", options->queue_id);
  return RMQ_EINVAL;
}

/* A topic that is known was checked when it came. */
int rmq_send_check_topic(rmq_producer *producer, rmq_slice name) {
  return rmq_routes_find(producer->routes, name) ? 0 : rmq_topic_check(name, &producer->refusal);
}

static int check_all(rmq_producer *producer, const rmq_message *message,
                     const rmq_send_options *options) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_hooks_check_generation(producer, message->topic);
  if (status == 0) status = rmq_send_check_topic(producer, message->topic);
  if (status == 0) status = rmq_body_check(&producer->settings, message->body, &producer->refusal);
  if (status == 0) status = rmq_send_check_queue(producer, options);
  return status;
}

int rmq_send_write_properties(rmq_send *send, const rmq_message *message) {
  rmq_producer *producer = send->producer;
  rmq_wall wall = producer->io->calls->wall(producer->io);
  send->born_ms = wall.ms;
  send->msg_id_len = (uint8_t)rmq_id_next(&producer->ids, wall, send->msg_id);
  int status = rmq_message_retry_counts(message, &send->reconsume_times, &send->max_reconsume_times,
                                        &producer->refusal);
  if (status < 0) return status;
  return rmq_message_properties(message, rmq_slice_make(send->msg_id, send->msg_id_len),
                                &send->properties, &producer->refusal);
}

static int retries_of(const rmq_settings *settings, rmq_mode mode) {
  return (int)(mode == RMQ_MODE_ASYNC ? settings->retry_times_when_send_async_failed
                                      : settings->retry_times_when_send_failed);
}

void rmq_send_reset_attempts(rmq_send *send) {
  send->attempts = send->pauses = 0;
  send->asked_anew = send->encoded = send->chosen = send->came_back = false;
  send->broker = send->addr = NULL;
}

void rmq_send_set_up(rmq_send *send, const rmq_message *message, const rmq_send_options *options,
                     rmq_send_done *done, void *arg) {
  rmq_producer *producer = send->producer;
  const rmq_settings *settings = &producer->settings;
  send->started = rmq_transport_now(producer->transport);
  send->topic = rmq_routes_topic(producer->routes, message->topic);
  rmq_topic_hold(send->topic, send->started);
  send->done = done;
  send->arg = arg;
  int64_t timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : settings->send_msg_timeout;
  send->body = message->body;
  rmq_pack_set(&send->pack, &send->producer->packer, message->body.len);
  send->flag = message->flag;
  send->sys_flag = message->sys_flag;
  send->mode = (uint8_t)options->mode;
  send->oneway = options->mode == RMQ_MODE_ONEWAY;
  send->generation = (uint8_t)send->producer->generation;
  send->timer_message = message->delay_kind > RMQ_DELAY_LEVEL;
  send->retries = options->retries >= 0 ? options->retries : retries_of(settings, options->mode);
  send->choose = options->broker.len > 0 ? NULL : options->choose;
  send->key = options->key;
  send->admitted = options->admitted;
  send->hold = options->hold;
  send->reply = message->reply;
  send->attempt_timeout_ms =
      options->attempt_timeout_ms > 0 ? options->attempt_timeout_ms : settings->attempt_timeout;
  send->deadline = rmq_mono_add_ms(send->started, timeout_ms);
  send->queue_id = options->queue_id;
  if (options->broker.len > 0) {
    rmq_buf_bytes(&send->given, options->broker.ptr, options->broker.len);
    rmq_buf_u8(&send->given, 0);
  }
  send->index = 0;
  send->wait = message->wait;
  rmq_send_reset_attempts(send);
}

void rmq_send_enlist(rmq_send *send) {
  rmq_producer *producer = send->producer;
  send->number = ++producer->numbers;
  producer->stats.sent++;
  rmq_link_append(&producer->active, &send->link);
}

int rmq_producer_send_own(rmq_producer *producer, const rmq_message *message,
                          const rmq_send_options *options, rmq_send_done *done, void *arg) {
  rmq_send *send = rmq_send_take(producer);
  int status = rmq_send_write_properties(send, message);
  if (status < 0) {
    rmq_send_give_back(send);
    return status;
  }
  rmq_send_set_up(send, message, options, done, arg);
  send->own = true;
  rmq_link_append(&producer->own, &send->link);
  rmq_send_go_on(send, false);
  return 0;
}

int rmq_producer_send(rmq_producer *producer, const rmq_message *message,
                      const rmq_send_options *options, rmq_send_done *done, void *arg) {
  int status = check_all(producer, message, options);
  if (status < 0) return status;
  bool room = rmq_producer_has_room(producer, message->body.len);
  rmq_send *send = rmq_send_take(producer);
  status = rmq_send_write_properties(send, message);
  if (status == 0 && !room && !options->may_wait) status = rmq_producer_refuse_overload(producer);
  if (status < 0) {
    rmq_send_give_back(send);
    return status;
  }
  rmq_send_set_up(send, message, options, done, arg);
  send->gathers = rmq_gather_wants(producer, message);
  rmq_send_enlist(send);
  rmq_send_begin(send, room);
  return 0;
}

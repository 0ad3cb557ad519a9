#include <stdlib.h>

#include "base/memory.h"
#include "producer/admin_core.h"

/* What all administrative calls have in common. */

void *rmq_admin_new(rmq_producer *producer, size_t size, int64_t timeout_ms) {
  rmq_admin *admin = rmq_alloc_zero(1, size);
  admin->producer = producer;
  admin->started = rmq_transport_now(producer->transport);
  admin->deadline =
      rmq_mono_add_ms(admin->started, timeout_ms > 0 ? timeout_ms : RMQ_ADMIN_TIMEOUT_MS);
  rmq_failure_init(&admin->failure);
  rmq_timer_init(&admin->timer, NULL);
  rmq_link_append(&producer->admins, &admin->link);
  return admin;
}

bool rmq_admin_is_late(const rmq_admin *admin) {
  return !rmq_mono_before(rmq_transport_now(admin->producer->transport), admin->deadline);
}

int64_t rmq_admin_left_ms(const rmq_admin *admin) {
  rmq_mono now = rmq_transport_now(admin->producer->transport);
  int64_t left = rmq_mono_diff_ms(admin->deadline, now);
  return left < 1 ? 1 : left;
}

/* ---- Routes ---- */

static void leave_topic(rmq_admin *admin) {
  if (!admin->topic) return;
  rmq_topic_leave(&admin->waiter);
  rmq_topic_release(admin->topic);
  admin->topic = NULL;
}

static void route_came(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation) {
  rmq_admin *admin = rmq_link_owner(waiter, rmq_admin, waiter);
  rmq_producer *producer = admin->producer;
  rmq_topic *topic = admin->topic;
  rmq_producer_enter(producer);
  admin->topic = NULL; /* it may ask for another one; this one stays until it is released below */
  admin->route_came(admin, rmq_topic_route(topic), result, explanation);
  if (producer->routes) rmq_topic_release(topic);
  rmq_producer_leave(producer);
}

void rmq_admin_ask_route(rmq_admin *admin, rmq_slice topic) {
  rmq_producer *producer = admin->producer;
  admin->topic = rmq_routes_topic(producer->routes, topic);
  rmq_topic_hold(admin->topic, rmq_transport_now(producer->transport));
  admin->waiter.done = route_came;
  admin->waiter.own_only = true;
  rmq_topic_wait(admin->topic, &admin->waiter, admin->deadline);
}

/* ---- Calls ---- */

void rmq_admin_add_target(rmq_admin *admin, rmq_admin_targets *targets, rmq_slice broker,
                          rmq_slice addr) {
  for (size_t i = 0; i < targets->n; i++) {
    if (rmq_slice_is(addr, targets->list[i].addr)) return;
  }
  targets->list = rmq_realloc(targets->list, (targets->n + 1) * sizeof *targets->list);
  targets->list[targets->n++] =
      (rmq_admin_target){.admin = admin,
                         .broker = broker.len ? rmq_copy_text(broker.ptr, broker.len) : NULL,
                         .addr = rmq_copy_text(addr.ptr, addr.len)};
}

void rmq_admin_free_targets(rmq_admin_targets *targets) {
  for (size_t i = 0; i < targets->n; i++) {
    free(targets->list[i].broker);
    free(targets->list[i].addr);
  }
  free(targets->list);
  *targets = (rmq_admin_targets){0};
}

static void note_try(rmq_admin_target *target, const rmq_failure *failure, bool written) {
  rmq_failure_try(&target->admin->failure, failure->kind, failure->code, written,
                  rmq_slice_text(target->broker), rmq_slice_text(target->addr),
                  rmq_buf_slice(&failure->message), failure->elapsed_us);
}

bool rmq_admin_call(rmq_admin_target *target, rmq_call_options *options, rmq_call_done *done) {
  rmq_admin *admin = target->admin;
  rmq_producer *producer = admin->producer;
  options->addr = rmq_slice_text(target->addr);
  if (options->timeout_ms == 0) options->timeout_ms = rmq_admin_left_ms(admin);
  options->repeatable = true;
  admin->calls++;
  if (rmq_producer_call(producer, options, done, target) == 0) return true;
  admin->calls--;
  note_try(target, &producer->refusal, false);
  return false;
}

void rmq_admin_call_ended(rmq_admin_target *target, const rmq_call_end *end) {
  target->admin->calls--;
  if (end->failure) note_try(target, end->failure, end->failure->maybe_stored);
}

void rmq_admin_note_unreadable(rmq_admin_target *target, const char *what) {
  rmq_admin *admin = target->admin;
  rmq_mono now = rmq_transport_now(admin->producer->transport);
  rmq_failure_try(&admin->failure, RMQ_KIND_CLOSED, 0, true, rmq_slice_text(target->broker),
                  rmq_slice_text(target->addr), rmq_slice_text(what),
                  rmq_mono_diff_us(now, admin->started));
}

/* ---- The end ---- */

void rmq_admin_sum_up(rmq_admin *admin, const char *what) {
  rmq_failure *failure = &admin->failure;
  const rmq_try *last = &failure->tries[failure->n_tries - 1];
  rmq_failure_set(failure, last->kind, last->code, "%s: ", what);
  for (int i = 0; i < failure->n_tries; i++) {
    const rmq_try *at = &failure->tries[i];
    /* Names come out of a route, where they may have any length. */
    rmq_buf_printf(&failure->message, "%s%.256s: %.512s", i ? "; " : "",
                   at->broker ? at->broker : at->addr, at->message ? at->message : "");
  }
  rmq_buf_plain(&failure->message, 0);
  if (last->broker) failure->broker = rmq_copy_text(last->broker, strlen(last->broker));
  failure->addr = rmq_copy_text(last->addr, strlen(last->addr));
}

static void withdraw(rmq_admin *admin) {
  leave_topic(admin);
  rmq_transport_timer_stop(admin->producer->transport, &admin->timer);
  rmq_link_remove(&admin->link);
}

static void release(rmq_admin *admin) {
  rmq_failure_clear(&admin->failure);
  admin->release(admin);
}

void rmq_admin_end(rmq_admin *admin, const rmq_failure *failure) {
  rmq_producer *producer = admin->producer;
  rmq_mono now = rmq_transport_now(producer->transport);
  withdraw(admin);
  admin->failure.elapsed_us = rmq_mono_diff_us(now, admin->started);
  rmq_producer_enter(producer);
  admin->tell(admin, failure);
  release(admin);
  if (producer->transport) rmq_producer_check_end(producer);
  rmq_producer_leave(producer);
}

void rmq_admin_drop(rmq_admin *admin) {
  withdraw(admin);
  release(admin);
}

/* What waits for a route or a time: calls have been failed before, and with them what waited for
 * those. */
void rmq_producer_fail_admins(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->admins)) {
    rmq_admin *admin = rmq_link_owner(producer->admins.next, rmq_admin, link);
    rmq_failure_set(&admin->failure, RMQ_KIND_STATE, 0, "producer \"%s\" is shutting down",
                    producer->settings.group);
    rmq_admin_end(admin, &admin->failure);
  }
}

void rmq_producer_drop_admins(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->admins)) {
    rmq_admin_drop(rmq_link_owner(producer->admins.next, rmq_admin, link));
  }
}

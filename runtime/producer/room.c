#include "base/error.h"
#include "producer/core.h"

/* Room: how much may be under way at a time, and who waits for it. */

/* What a send takes: a carrier as much as its members. */
static size_t places_of(const rmq_send *send) { return send->carries ? send->n_members : 1; }
static size_t bytes_of(const rmq_send *send) {
  return send->carries ? send->member_bytes : send->body.len;
}

static bool has_room(const rmq_producer *producer, size_t n, size_t bytes) {
  const rmq_producer_stats *stats = &producer->stats;
  return stats->inflight + n <= (size_t)producer->settings.max_inflight &&
         stats->inflight_bytes + bytes <= (size_t)producer->settings.max_inflight_bytes;
}

/* Who comes later must not overtake those who wait. */
bool rmq_producer_has_room_for(const rmq_producer *producer, size_t n, size_t bytes) {
  return rmq_link_alone(&producer->waiting) && has_room(producer, n, bytes);
}

bool rmq_producer_has_room(const rmq_producer *producer, size_t body_len) {
  return rmq_producer_has_room_for(producer, 1, body_len);
}

int rmq_producer_refuse_overload(rmq_producer *producer) {
  rmq_failure_set(
      &producer->refusal, RMQ_KIND_OVERLOAD, 0,
      "%zu sends with %zu bytes are under way (max_inflight %lld, max_inflight_bytes %lld); "
      "wait until some have completed",
      producer->stats.inflight, producer->stats.inflight_bytes,
      (long long)producer->settings.max_inflight, (long long)producer->settings.max_inflight_bytes);
  return RMQ_EOVERLOAD;
}

void rmq_send_enter_room(rmq_send *send) {
  send->producer->stats.inflight += places_of(send);
  send->producer->stats.inflight_bytes += bytes_of(send);
}

static void wait_for_room(rmq_send *send) {
  rmq_producer *producer = send->producer;
  send->phase = RMQ_PHASE_ROOM;
  producer->stats.waiting += places_of(send);
  rmq_link_append(&producer->waiting, &send->room);
  rmq_transport_timer(producer->transport, &send->timer, send->deadline);
}

void rmq_send_stop_waiting(rmq_send *send) {
  rmq_link_remove(&send->room);
  send->producer->stats.waiting -= places_of(send);
  rmq_transport_timer_stop(send->producer->transport, &send->timer);
}

/* The send begins before anybody hears of its room: what that one sends comes later. */
static void let_in(rmq_send *send) {
  rmq_producer *producer = send->producer;
  producer->entering = send;
  rmq_send_go_on(send, false);
  bool goes_on = producer->entering == send;
  producer->entering = NULL;
  if (!goes_on || !send->admitted) return;
  rmq_admitted *admitted = send->admitted;
  send->admitted = NULL;
  admitted(send->arg);
}

void rmq_producer_admit(rmq_producer *producer) {
  if (producer->admitting) return; /* the loop below goes on when this call returns */
  if (producer->state == RMQ_STATE_PARTING) return; /* all that is left fails */
  producer->admitting = true;
  while (producer->transport && !rmq_link_alone(&producer->waiting)) {
    rmq_send *send = rmq_link_owner(producer->waiting.next, rmq_send, room);
    if (!has_room(producer, places_of(send), bytes_of(send))) break;
    rmq_send_stop_waiting(send);
    rmq_send_enter_room(send);
    let_in(send);
  }
  producer->admitting = false;
}

void rmq_send_end_without_room(rmq_send *send) {
  rmq_producer *producer = send->producer;
  int64_t ms = rmq_mono_diff_ms(send->deadline, send->started);
  rmq_send_stop_waiting(send);
  rmq_failure_set(
      &send->failure, RMQ_KIND_TIMEOUT, 0,
      "Sending to topic \"%s\" waited %lld ms for room: %zu sends with %zu bytes are under way "
      "(max_inflight %lld, max_inflight_bytes %lld). Send slower, or raise the limits.",
      send->topic->name, (long long)ms, producer->stats.inflight, producer->stats.inflight_bytes,
      (long long)producer->settings.max_inflight, (long long)producer->settings.max_inflight_bytes);
  rmq_send_enter_room(send); /* what completes leaves the room */
  rmq_send_fail(send);
}

void rmq_send_begin(rmq_send *send, bool room) {
  if (room) {
    rmq_send_enter_room(send);
    rmq_send_go_on(send, false);
  } else {
    wait_for_room(send);
  }
}

#include "producer/gather.h"

#include <stdlib.h>

#include "base/memory.h"
#include "producer/carrier.h"
#include "producer/core.h"
#include "producer/message_fields.h"
#include "wire/batch.h"
#include "wire/properties.h"

enum {
  KEPT_GROUPS = 64, /* idle ones */
  /* What may be under way of a group while the next batch waits for it. */
  UNDER_WAY = 1
};

static rmq_send *member_of(rmq_link *link) { return rmq_link_owner(link, rmq_send, member); }

static bool is_open(const rmq_group *group) { return group->n > 0; }

/* ---- What goes together ---- */

bool rmq_gather_wants(const rmq_producer *producer, const rmq_message *message) {
  if (!producer->gathers.map || rmq_message_own_kind(message)) return false;
  return message->body.len < producer->packer.over; /* in a batch nothing is compressed */
}

static size_t size_of(const rmq_send *send) {
  return RMQ_BATCH_OVERHEAD + send->body.len + rmq_buf_len(&send->properties);
}

static size_t stored_size_of(const rmq_send *send) {
  return RMQ_BATCH_STORED_OVERHEAD + send->topic->name_len + send->body.len +
         rmq_buf_len(&send->properties);
}

static rmq_profile profile_of(const rmq_send *send) {
  return (rmq_profile){.tags = rmq_properties_find(rmq_buf_slice(&send->properties), "TAGS"),
                       .budget_us = rmq_mono_diff_us(send->deadline, send->started),
                       .attempt_timeout_ms = send->attempt_timeout_ms,
                       .retries = send->retries,
                       .wait = send->wait,
                       .oneway = send->oneway};
}

static bool is_same(const rmq_profile *a, const rmq_profile *b) {
  return a->budget_us == b->budget_us && a->attempt_timeout_ms == b->attempt_timeout_ms &&
         a->retries == b->retries && a->wait == b->wait && a->oneway == b->oneway &&
         rmq_slice_equal(a->tags, b->tags);
}

static void put_text(rmq_buf *key, rmq_slice text) {
  rmq_buf_u32(key, (uint32_t)text.len);
  rmq_buf_bytes(key, text.ptr, text.len);
}

/* The key of a send's group: the topic, then its queue (without a profile it has one), or all of its
 * profile. */
static void write_key(const rmq_send *send, const rmq_profile *profile, rmq_buf *key) {
  rmq_buf_clear(key);
  put_text(key, rmq_topic_name(send->topic));
  if (!profile || rmq_send_has_given_queue(send)) {
    rmq_buf_u32(key, (uint32_t)send->queue_id);
    rmq_buf_text(key, rmq_send_given_broker(send));
    return;
  }
  rmq_buf_u32(key, UINT32_MAX); /* no queue has this id */
  rmq_buf_u64(key, (uint64_t)profile->budget_us);
  rmq_buf_u64(key, (uint64_t)profile->attempt_timeout_ms);
  rmq_buf_u32(key, (uint32_t)profile->retries);
  rmq_buf_u8(key, profile->wait);
  rmq_buf_u8(key, profile->oneway);
  put_text(key, profile->tags);
}

static void set_profile(rmq_group *group, const rmq_profile *profile) {
  rmq_buf_clear(&group->tags);
  rmq_buf_bytes(&group->tags, profile->tags.ptr, profile->tags.len);
  group->profile = *profile;
  group->profile.tags = rmq_buf_slice(&group->tags);
}

/* ---- Groups ---- */

static void timer_due(rmq_timer *timer);

static void free_group(rmq_group *group) {
  rmq_map_remove(group->producer->gathers.map, rmq_buf_slice(&group->key));
  rmq_link_remove(&group->link);
  rmq_link_remove(&group->fresh);
  rmq_buf_free(&group->key);
  rmq_buf_free(&group->tags);
  free(group);
}

static rmq_group *make_group(rmq_producer *producer, rmq_slice key) {
  rmq_group *group = rmq_alloc_zero(1, sizeof *group);
  group->producer = producer;
  rmq_buf_bytes(&group->key, key.ptr, key.len);
  rmq_link_init(&group->link);
  rmq_link_init(&group->fresh);
  rmq_link_init(&group->members);
  rmq_timer_init(&group->timer, timer_due);
  rmq_map_set(producer->gathers.map, key, group);
  return group;
}

/* A group that nothing belongs to any more is kept among the idle ones. */
static void rest(rmq_group *group) {
  rmq_gathers *all = &group->producer->gathers;
  rmq_link_remove(&group->link);
  if (is_open(group) || group->in_flight > 0) return;
  rmq_link_append(&all->idle, &group->link);
  if (all->n_idle < KEPT_GROUPS) {
    all->n_idle++;
  } else {
    free_group(rmq_link_owner(all->idle.next, rmq_group, link));
  }
}

/* Takes a group that is used from among the idle ones. */
static void rouse(rmq_group *group) {
  if (is_open(group) || group->in_flight > 0 || rmq_link_alone(&group->link)) return;
  rmq_link_remove(&group->link);
  group->producer->gathers.n_idle--;
}

static rmq_group *group_for(rmq_send *send, const rmq_profile *profile) {
  rmq_producer *producer = send->producer;
  rmq_buf *key = &producer->gathers.key;
  write_key(send, profile, key);
  rmq_group *group = rmq_map_get(producer->gathers.map, rmq_buf_slice(key));
  if (!group) group = make_group(producer, rmq_buf_slice(key));
  rouse(group);
  return group;
}

void rmq_gather_init(rmq_producer *producer) {
  rmq_gathers *all = &producer->gathers;
  rmq_link_init(&all->open);
  rmq_link_init(&all->fresh);
  rmq_link_init(&all->idle);
  if (!producer->settings.auto_batch) return;
  all->map = rmq_map_new(producer->io->calls->random(producer->io));
}

void rmq_gather_free(rmq_producer *producer) {
  rmq_gathers *all = &producer->gathers;
  if (!all->map) return;
  size_t at = 0;
  rmq_group *group;
  while ((group = rmq_map_next(all->map, &at, NULL))) free_group(group);
  rmq_map_free(all->map);
  rmq_buf_free(&all->key);
  all->map = NULL;
}

/* ---- Gathering ---- */

static void look_at_the_end_of_the_turn(rmq_group *group) {
  rmq_producer *producer = group->producer;
  if (!rmq_link_alone(&group->fresh)) return;
  rmq_link_append(&producer->gathers.fresh, &group->fresh);
  rmq_transport_ask_for_turn(producer->transport);
}

static void take_in(rmq_group *group, rmq_send *send) {
  rmq_gathers *all = &group->producer->gathers;
  size_t size = size_of(send);
  if (!is_open(group)) rmq_link_append(&all->open, &group->link);
  send->phase = RMQ_PHASE_GATHERED;
  send->group = group;
  rmq_link_append(&group->members, &send->member);
  group->n++;
  group->size += size;
  group->stored += stored_size_of(send);
  all->bytes += size;
  all->n++;
}

static void take_out(rmq_group *group, rmq_send *send) {
  rmq_gathers *all = &group->producer->gathers;
  size_t size = size_of(send);
  rmq_link_remove(&send->member);
  group->n--;
  group->size -= size;
  group->stored -= stored_size_of(send);
  all->bytes -= size;
  all->n--;
}

static void release(rmq_group *group);

/* True when the group's batch can take one more. */
static bool fits(const rmq_group *group, const rmq_send *send) {
  const rmq_settings *settings = &group->producer->settings;
  return group->size + size_of(send) <= (size_t)settings->batch_max_bytes &&
         group->stored + stored_size_of(send) <= (size_t)settings->max_message_size;
}

bool rmq_gather_take(rmq_send *send) {
  rmq_producer *producer = send->producer;
  rmq_gathers *all = &producer->gathers;
  send->gathers = false; /* once */
  size_t size = size_of(send);
  if (rmq_buf_len(&send->properties) > RMQ_BATCH_PROPERTIES_MAX ||
      size > (size_t)producer->settings.batch_max_bytes ||
      all->bytes + size > (size_t)producer->settings.batch_total_bytes) {
    return false;
  }
  rmq_profile profile = profile_of(send);
  rmq_group *group;
  /* Hooks hear of what leaves, and may do anything: what was the group may have come to rest, or be
   * gone. */
  send->phase = RMQ_PHASE_PAUSE;
  while (is_open(group = group_for(send, &profile)) &&
         (!fits(group, send) || !is_same(&group->profile, &profile))) {
    release(group);
    if (!producer->transport) return true;
  }
  if (!is_open(group)) set_profile(group, &profile);
  take_in(group, send);
  look_at_the_end_of_the_turn(group);
  return true;
}

void rmq_gather_lose(rmq_send *send) {
  rmq_group *group = send->group;
  take_out(group, send);
  send->group = NULL;
  if (is_open(group)) return;
  rmq_transport_timer_stop(group->producer->transport, &group->timer);
  rest(group);
}

bool rmq_gather_pass(rmq_send *send) {
  rmq_producer *producer = send->producer;
  rmq_gathers *all = &producer->gathers;
  if (send->group) return true;
  while (producer->transport && !rmq_link_alone(&all->open)) {
    write_key(send, NULL, &all->key);
    rmq_group *group = rmq_map_get(all->map, rmq_buf_slice(&all->key));
    if (!group || !is_open(group)) break;
    send->phase = RMQ_PHASE_PAUSE; /* as above */
    release(group);
  }
  return producer->transport != NULL;
}

/* ---- Leaving ---- */

/* Begins what leaves; a later event ends it when it is too late already, because none ends from
 * inside the call that sends another one. */
static void depart(rmq_group *group, rmq_send *send) {
  send->group = group;
  group->in_flight++;
  if (rmq_mono_before(rmq_send_now(send), send->deadline)) {
    rmq_send_go_on(send, false);
    return;
  }
  send->phase = RMQ_PHASE_PAUSE;
  rmq_transport_timer(send->producer->transport, &send->timer, rmq_send_now(send));
}

/* What all of a batch have in common, and the time of the last of them. */
static void set_up_carrier(rmq_send *carrier, const rmq_send *first, const rmq_send *last) {
  carrier->topic = first->topic;
  rmq_topic_hold(carrier->topic, last->started);
  carrier->started = last->started;
  carrier->deadline = last->deadline;
  carrier->attempt_timeout_ms = first->attempt_timeout_ms;
  carrier->retries = first->retries;
  carrier->oneway = first->oneway;
  carrier->body = rmq_slice_make(NULL, 0);
  carrier->flag = carrier->sys_flag = 0;
  carrier->choose = NULL;
  carrier->admitted = NULL;
  carrier->queue_id = first->queue_id;
  if (rmq_send_has_given_queue(first)) {
    rmq_buf_text(&carrier->given, rmq_send_given_broker(first));
    rmq_buf_u8(&carrier->given, 0);
  }
  rmq_send_reset_attempts(carrier);
}

static void release(rmq_group *group) {
  rmq_producer *producer = group->producer;
  rmq_transport_timer_stop(producer->transport, &group->timer);
  rmq_send *first = member_of(group->members.next);
  if (group->n == 1) {
    take_out(group, first);
    rmq_link_remove(&group->link);
    depart(group, first);
    return;
  }
  rmq_send *carrier = rmq_carrier_make(producer, first->wait);
  set_up_carrier(carrier, first, member_of(group->members.prev));
  while (is_open(group)) {
    rmq_send *member = member_of(group->members.next);
    take_out(group, member);
    member->group = NULL;
    rmq_carrier_add(carrier, member);
  }
  rmq_link_remove(&group->link);
  rmq_carrier_watch_budgets(carrier);
  depart(group, carrier);
}

static void timer_due(rmq_timer *timer) {
  rmq_group *group = rmq_link_owner(timer, rmq_group, timer);
  rmq_producer *producer = group->producer;
  rmq_producer_enter(producer);
  release(group);
  rmq_producer_leave(producer);
}

void rmq_gather_landed(rmq_send *send) {
  rmq_group *group = send->group;
  send->group = NULL;
  if (!send->producer->gathers.map) return; /* all groups are gone */
  group->in_flight--;
  if (is_open(group)) {
    if (group->producer->transport) look_at_the_end_of_the_turn(group);
  } else {
    rest(group);
  }
}

/* A batch that waits for one under way waits so long at the most. */
static void set_timer(rmq_group *group) {
  if (rmq_timer_is_set(&group->timer)) return;
  rmq_producer *producer = group->producer;
  rmq_mono now = rmq_transport_now(producer->transport);
  const rmq_send *first = member_of(group->members.next);
  rmq_mono at = rmq_mono_add_ms(now, producer->settings.batch_max_delay);
  rmq_mono half = {now.us + rmq_mono_diff_us(first->deadline, now) / 2};
  rmq_transport_timer(producer->transport, &group->timer, rmq_mono_before(half, at) ? half : at);
}

void rmq_gather_turn(rmq_producer *producer) {
  rmq_gathers *all = &producer->gathers;
  bool hurry = producer->state != RMQ_STATE_RUNNING || !rmq_link_alone(&producer->flushes);
  rmq_link looked_at;
  rmq_link_init(&looked_at);
  rmq_link_splice(&looked_at, &all->fresh);
  rmq_producer_enter(producer);
  while (producer->transport && !rmq_link_alone(&looked_at)) {
    rmq_group *group = rmq_link_owner(looked_at.next, rmq_group, fresh);
    rmq_link_remove(&group->fresh);
    if (!is_open(group)) continue;
    if (hurry || group->in_flight < UNDER_WAY) {
      release(group);
    } else {
      set_timer(group);
    }
  }
  rmq_producer_leave(producer);
}

void rmq_gather_release_all(rmq_producer *producer) {
  rmq_gathers *all = &producer->gathers;
  while (!rmq_link_alone(&all->open)) {
    release(rmq_link_owner(all->open.next, rmq_group, link));
  }
}

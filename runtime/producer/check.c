#include "producer/check.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "producer/settle.h"
#include "wire/codes.h"
#include "wire/compress.h"
#include "wire/properties.h"
#include "wire/transaction.h"

/* How often a complaint is logged at most. */
enum { COMPLAIN_MS = 1000 };

typedef struct check {
  rmq_link link; /* in one of the producer's lists */
  uint64_t id;   /* 0 while it waits */
  rmq_settlement settlement;
  rmq_buf body; /* what `about` points into, besides the half message's texts */
  rmq_buf unpacked;
  rmq_checked about;
} check;

static check *check_of(rmq_link *link) { return rmq_link_owner(link, check, link); }

static void release(check *c) {
  rmq_link_remove(&c->link);
  rmq_settlement_free(&c->settlement);
  rmq_buf_free(&c->body);
  rmq_buf_free(&c->unpacked);
  free(c);
}

static void release_all(rmq_link *list) {
  while (!rmq_link_alone(list)) release(check_of(list->next));
}

/* ---- Reading ---- */

bool rmq_may_complain(rmq_producer *producer, rmq_complaint *complaint, size_t *n) {
  rmq_mono now = rmq_transport_now(producer->transport);
  complaint->silent++;
  if (complaint->made && rmq_mono_before(now, complaint->again)) return false;
  *n = complaint->silent;
  *complaint = (rmq_complaint){.made = true, .again = rmq_mono_add_ms(now, COMPLAIN_MS)};
  return true;
}

/* A check that cannot be read, or that is not ours. */
static void ignore(rmq_producer *producer, rmq_slice addr, const char *why) {
  size_t n;
  producer->stats.checks_ignored++;
  if (!rmq_may_complain(producer, &producer->checks.ignored, &n)) return;
  rmq_log_line(&producer->log, RMQ_LOG_WARN,
               "%zu transaction check%s ignored, the last one from %.*s: %s", n,
               n == 1 ? " was" : "s were", (int)addr.len, addr.ptr, why);
}

/* Java's order: the message's own id, the header's, where it is stored. */
static rmq_slice id_of(const rmq_stored_message *message, const rmq_check_header *header,
                       char offset_id[RMQ_UNIQUE_ID_MAX]) {
  rmq_slice id = rmq_properties_find(message->properties, "UNIQ_KEY");
  if (id.len == 0) id = header->msg_id;
  if (id.len > 0) return id;
  return rmq_slice_make(offset_id, (size_t)rmq_stored_offset_id(message, offset_id));
}

/* Reads header and body into `half` and `message`, whose slices point into them and into
 * `offset_id`. */
static bool read(rmq_producer *producer, rmq_slice addr, const rmq_header *request, rmq_slice body,
                 rmq_half *half, rmq_stored_message *message, char offset_id[RMQ_UNIQUE_ID_MAX]) {
  rmq_check_header header;
  const char *missing;
  if (rmq_check_header_decode(request, &header, &missing) < 0) {
    ignore(producer, addr, "the request does not say where the message is");
    return false;
  }
  if (rmq_stored_next(&body, message) != 1 || body.len > 0) {
    ignore(producer, addr, "its body is not one stored message");
    return false;
  }
  rmq_slice group = rmq_properties_find(message->properties, "PGROUP");
  if (!rmq_slice_equal(group, producer->group)) {
    ignore(producer, addr, "the message is of another producer group");
    return false;
  }
  *half = (rmq_half){.topic = header.topic,
                     .broker = header.broker,
                     .addr = addr,
                     .msg_id = id_of(message, &header, offset_id),
                     .transaction_id = header.transaction_id,
                     .queue_offset = header.queue_offset,
                     .log_offset = header.log_offset,
                     .connection = rmq_transport_origin(producer->transport),
                     .checked = true};
  return true;
}

/* ---- Deciding ---- */

/* Undoes the compression of the body; as late as possible, for many checks may wait. */
static bool unpack(check *c, const rmq_producer *producer) {
  rmq_stored_message *message = &c->about.message;
  size_t limit = (size_t)producer->settings.max_message_size;
  if (limit < RMQ_FRAME_MAX) limit = RMQ_FRAME_MAX; /* the sender may have had a higher one */
  if (!(message->sys_flag & RMQ_SYS_COMPRESSED)) return true;
  if (rmq_decompress(message->sys_flag, message->body, limit, &c->unpacked) < 0) return false;
  message->body = rmq_buf_slice(&c->unpacked);
  message->sys_flag &= ~RMQ_SYS_COMPRESSED;
  return true;
}

/* Lets the next ones be decided. A decision may come from inside `decide`, and may free the
 * producer. */
static void start_waiting(rmq_producer *producer) {
  rmq_checks *checks = &producer->checks;
  rmq_producer_enter(producer);
  while (!rmq_link_alone(&checks->waiting) &&
         checks->n_deciding < (size_t)producer->settings.check_concurrency) {
    check *c = check_of(checks->waiting.next);
    rmq_link_remove(&c->link);
    checks->n_waiting--;
    if (!unpack(c, producer)) {
      ignore(producer, c->settlement.half.addr, "the message's body cannot be decompressed");
      release(c);
      continue;
    }
    rmq_link_append(&checks->deciding, &c->link);
    checks->n_deciding++;
    c->id = ++checks->ids;
    checks->decide(checks->arg, c->id);
  }
  rmq_producer_leave(producer);
}

static void next_due(rmq_timer *timer) {
  start_waiting(rmq_link_owner(timer, rmq_producer, checks.next));
}

void rmq_producer_init_checks(rmq_producer *producer) {
  rmq_link_init(&producer->checks.waiting);
  rmq_link_init(&producer->checks.deciding);
  rmq_link_init(&producer->checks.answering);
  rmq_timer_init(&producer->checks.next, next_due);
}

void rmq_producer_set_check(rmq_producer *producer, rmq_check *decide, void *arg) {
  producer->checks.decide = decide;
  producer->checks.arg = arg;
}

static check *find_by_id(const rmq_producer *producer, uint64_t id) {
  const rmq_link *all = &producer->checks.deciding;
  for (rmq_link *link = all->next; link != all; link = link->next) {
    if (check_of(link)->id == id) return check_of(link);
  }
  return NULL;
}

const rmq_checked *rmq_producer_checked(const rmq_producer *producer, uint64_t id) {
  const check *c = find_by_id(producer, id);
  return c ? &c->about : NULL;
}

/* ---- Answering ---- */

static void told(rmq_settlement *settlement, const rmq_failure *failure) {
  check *c = rmq_link_owner(settlement, check, settlement);
  rmq_producer *producer = settlement->producer;
  if (!failure) producer->stats.checks_answered++;
  release(c);
  rmq_producer_check_end(producer);
}

void rmq_producer_end_check(rmq_producer *producer, uint64_t id, rmq_transaction_state state,
                            rmq_slice remark) {
  check *c = find_by_id(producer, id);
  if (!c) return;
  rmq_link_remove(&c->link);
  producer->checks.n_deciding--;
  rmq_link_append(&producer->checks.answering, &c->link);
  c->settlement.done = told;
  const rmq_stored_message *message = &c->about.message;
  rmq_half_remember(&c->settlement.half, producer, message->topic, message->properties,
                    message->body);
  /* Not when a hook has forked: nothing is left in the child. */
  if (rmq_settle(&c->settlement, producer, state, remark) < 0 && producer->transport) release(c);
  if (!producer->transport) return;
  rmq_producer_check_end(producer);
  if (rmq_link_alone(&producer->checks.waiting)) return;
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_transport_timer(producer->transport, &producer->checks.next, now);
}

/* ---- One that comes ---- */

/* The one that asks the same on the same connection, or after another way to the same broker. */
static check *find_same(rmq_link *list, const rmq_half *half) {
  for (rmq_link *link = list->next; link != list; link = link->next) {
    const rmq_half *other = &check_of(link)->settlement.half;
    if (rmq_slice_equal(other->msg_id, half->msg_id) && rmq_slice_equal(other->addr, half->addr)) {
      return check_of(link);
    }
  }
  return NULL;
}

/* True when the same is asked already: that one is answered for the newest place then. */
static bool joins(rmq_producer *producer, const rmq_half *half) {
  rmq_checks *checks = &producer->checks;
  check *c = find_same(&checks->deciding, half);
  if (!c) c = find_same(&checks->waiting, half);
  if (!c) return false;
  rmq_half_copy(&c->settlement.half, half);
  c->about.msg_id = c->settlement.half.msg_id;
  c->about.transaction_id = c->settlement.half.transaction_id;
  c->about.broker = c->settlement.half.broker;
  return true;
}

static void drop(rmq_producer *producer) {
  const rmq_checks *checks = &producer->checks;
  size_t n;
  producer->stats.checks_dropped++;
  if (!rmq_may_complain(producer, &producer->checks.dropped, &n)) return;
  rmq_log_line(&producer->log, RMQ_LOG_WARN,
               "%zu transaction check%s dropped, brokers will ask again: %zu are being decided and "
               "%zu wait (check_concurrency %lld, check_request_hold_max %lld); the check function "
               "is slow",
               n, n == 1 ? " was" : "s were", checks->n_deciding, checks->n_waiting,
               (long long)producer->settings.check_concurrency,
               (long long)producer->settings.check_request_hold_max);
}

static bool has_room(const rmq_producer *producer) {
  const rmq_checks *checks = &producer->checks;
  return checks->n_deciding < (size_t)producer->settings.check_concurrency ||
         checks->n_waiting < (size_t)producer->settings.check_request_hold_max;
}

static void keep(rmq_producer *producer, const rmq_half *half, rmq_slice body) {
  check *c = rmq_alloc_zero(1, sizeof *c);
  rmq_half_copy(&c->settlement.half, half);
  rmq_buf_bytes(&c->body, body.ptr, body.len);
  rmq_slice copy = rmq_buf_slice(&c->body);
  rmq_stored_next(&copy, &c->about.message); /* it has been read already */
  c->about.msg_id = c->settlement.half.msg_id;
  c->about.transaction_id = c->settlement.half.transaction_id;
  c->about.broker = c->settlement.half.broker;
  rmq_link_append(&producer->checks.waiting, &c->link);
  producer->checks.n_waiting++;
}

void rmq_producer_check(rmq_producer *producer, const char *from, const rmq_header *header,
                        rmq_slice body) {
  rmq_slice addr = rmq_slice_text(from);
  rmq_half half;
  rmq_stored_message message;
  char offset_id[RMQ_UNIQUE_ID_MAX];
  if (!producer->checks.decide) {
    ignore(producer, addr, "this producer has no check function");
    return;
  }
  if (!read(producer, addr, header, body, &half, &message, offset_id)) return;
  producer->stats.checks++;
  if (rmq_transaction_takes_check(producer, &half) || joins(producer, &half)) return;
  if (producer->state != RMQ_STATE_RUNNING) return; /* another producer of the group is asked */
  if (!has_room(producer)) {
    drop(producer);
    return;
  }
  keep(producer, &half, body);
  start_waiting(producer);
}

/* ---- The end of the producer ---- */

void rmq_producer_drop_waiting_checks(rmq_producer *producer) {
  release_all(&producer->checks.waiting);
  producer->checks.n_waiting = 0;
}

void rmq_producer_leave_checks(rmq_producer *producer) {
  rmq_producer_drop_waiting_checks(producer);
  release_all(&producer->checks.deciding);
  producer->checks.n_deciding = 0;
}

bool rmq_producer_has_checks(const rmq_producer *producer) {
  const rmq_checks *checks = &producer->checks;
  return !rmq_link_alone(&checks->deciding) || !rmq_link_alone(&checks->answering);
}

void rmq_producer_drop_checks(rmq_producer *producer) {
  rmq_transport_timer_stop(producer->transport, &producer->checks.next);
  rmq_producer_leave_checks(producer);
  release_all(&producer->checks.answering);
}

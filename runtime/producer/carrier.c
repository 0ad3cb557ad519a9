#include "producer/carrier.h"

#include "base/error.h"
#include "wire/batch.h"
#include "wire/codes.h"
#include "wire/properties.h"

static rmq_send *member_of(rmq_link *link) { return rmq_link_owner(link, rmq_send, member); }

rmq_send *rmq_carrier_make(rmq_producer *producer, bool wait) {
  rmq_send *carrier = rmq_send_take(producer);
  carrier->carries = true;
  carrier->n_members = carrier->member_bytes = carrier->n_encoded = 0;
  carrier->born_ms = producer->io->calls->wall(producer->io).ms;
  carrier->msg_id_len = 0;
  carrier->reconsume_times = 0;
  carrier->max_reconsume_times = -1;
  /* Brokers before 5.0 append a batch's own properties to those of each message. An id, which Java's
   * batches have, would come in the place of theirs. */
  rmq_properties_put(&carrier->properties, rmq_slice_text("WAIT"),
                     rmq_slice_text(wait ? "true" : "false"));
  carrier->phase = RMQ_PHASE_PAUSE; /* nothing is to be withdrawn before it begins */
  return carrier;
}

void rmq_carrier_add(rmq_send *carrier, rmq_send *member) {
  member->carrier = carrier;
  member->phase = RMQ_PHASE_CARRIED;
  rmq_link_append(&carrier->members, &member->member);
  carrier->n_members++;
  carrier->member_bytes += member->body.len;
}

static void remove_member(rmq_send *member) {
  rmq_send *carrier = member->carrier;
  rmq_link_remove(&member->member);
  member->carrier = NULL;
  member->attempts = carrier->attempts;
  carrier->n_members--;
  carrier->member_bytes -= member->body.len;
}

static void give_carrier_back(rmq_send *carrier) {
  rmq_link_remove(&carrier->link);
  rmq_send_give_back(carrier);
}

void rmq_carrier_lose(rmq_send *member) {
  rmq_send *carrier = member->carrier;
  bool waits = carrier->phase == RMQ_PHASE_ROOM;
  rmq_failure_clear(&member->failure);
  rmq_failure_copy(&member->failure, &carrier->failure);
  remove_member(member);
  if (waits) {
    member->producer->stats.waiting--;
    rmq_send_enter_room(member); /* what completes leaves the room */
  }
  /* While it completes, its members may go in any way, and the carrier goes afterwards. */
  if (carrier->n_members > 0 || carrier->phase == RMQ_PHASE_ENDED) return;
  rmq_send_withdraw(carrier);
  give_carrier_back(carrier);
}

/* ---- Hooks ---- */

/* The member's own copy of where it goes: it may be told of after the carrier has gone. */
static void place_member(rmq_send *member, const rmq_send *carrier) {
  size_t broker_len = strlen(carrier->broker) + 1;
  rmq_buf *texts = &member->given;
  rmq_buf_clear(texts);
  rmq_buf_bytes(texts, carrier->broker, broker_len);
  rmq_buf_bytes(texts, carrier->addr, strlen(carrier->addr) + 1);
  member->broker = (const char *)rmq_buf_head(texts);
  member->addr = member->broker + broker_len;
  member->queue_id = carrier->queue_id;
}

/* Ends a member with its failure, which is a hook's. */
static void drop_member(rmq_send *member) {
  int attempts = member->attempts; /* it may have begun one that the others are still to begin */
  remove_member(member);
  member->attempts = attempts;
  rmq_send_doom(member);
}

/* What a member counts in a request: what any broker stores of it. */
static size_t size_of(const rmq_send *member) {
  return RMQ_BATCH_STORED_OVERHEAD + member->topic->name_len + rmq_send_body(member).len +
         rmq_send_properties(member).len;
}

static int refuse_size(rmq_send *member, size_t size) {
  rmq_failure_set(&member->failure, RMQ_KIND_HOOK, RMQ_MESSAGE_ILLEGAL,
                  "Sending to topic \"%s\" failed: hooks have made the messages of its batch "
                  "longer, and with this one they take %zu bytes; max_message_size allows %lld. "
                  "Send fewer at a time.",
                  member->topic->name, size,
                  (long long)member->producer->settings.max_message_size);
  return RMQ_ELIMIT;
}

bool rmq_carrier_ask_hooks(rmq_send *carrier) {
  rmq_producer *producer = carrier->producer;
  size_t size = 0;
  rmq_link *next;
  for (rmq_link *link = carrier->members.next; link != &carrier->members; link = next) {
    rmq_send *member = member_of(link);
    next = link->next;
    place_member(member, carrier);
    int status = rmq_hooks_attempt(member);
    if (status == RMQ_ESTATE) return false;
    size_t with = size + size_of(member);
    bool changed = member->change.body || member->change.properties;
    if (status == 0 && changed && with > (size_t)producer->settings.max_message_size) {
      status = refuse_size(member, with);
    }
    if (status == 0) {
      size = with;
    } else {
      drop_member(member);
    }
  }
  if (carrier->n_members > 0) return true;
  rmq_send_withdraw(carrier);
  give_carrier_back(carrier);
  return false;
}

/* ---- The request ---- */

void rmq_carrier_encode(rmq_send *carrier, rmq_buf *out, int32_t opaque, int32_t flag,
                        const rmq_send_header *header) {
  size_t start = rmq_buf_len(out);
  rmq_send_request_encode(out, carrier->producer->serialize, RMQ_SEND_BATCH_MESSAGE, opaque, flag,
                          header, rmq_slice_make(NULL, 0));
  carrier->n_encoded = 0;
  for (rmq_link *link = carrier->members.next; link != &carrier->members; link = link->next) {
    rmq_send *member = member_of(link);
    rmq_batch_member part = {.flag = member->flag,
                             .body = rmq_send_body(member),
                             .properties = rmq_send_properties(member)};
    rmq_batch_put(out, &part);
    member->place = carrier->n_encoded++;
  }
  /* A frame begins with its length, which does not count itself. */
  rmq_buf_put_u32(out, start, (uint32_t)(rmq_buf_len(out) - start - 4));
}

/* ---- The end ---- */

static size_t count_commas(rmq_slice text) {
  size_t n = 0;
  for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == ',';
  return n;
}

bool rmq_carrier_fits(const rmq_send *carrier, const rmq_send_reply *reply) {
  size_t n = count_commas(reply->msg_id) + 1;
  return n == 1 || n == carrier->n_encoded;
}

void rmq_carrier_keep_places(rmq_send *carrier) {
  for (rmq_link *link = carrier->members.next; link != &carrier->members; link = link->next) {
    member_of(link)->kept_place = member_of(link)->place;
  }
}

/* Walks the offset ids of a reply: the one at a place not before the last one asked for. */
typedef struct ids {
  rmq_slice rest;
  size_t place; /* of the first one in `rest` */
  bool single;  /* there is one for all */
} ids;

static rmq_slice first_id(const ids *walk) {
  const char *comma = walk->rest.len ? memchr(walk->rest.ptr, ',', walk->rest.len) : NULL;
  return comma ? rmq_slice_make(walk->rest.ptr, (size_t)(comma - walk->rest.ptr)) : walk->rest;
}

static rmq_slice id_at(ids *walk, size_t place) {
  if (walk->single) return walk->rest;
  for (; walk->place < place; walk->place++) {
    size_t skipped = first_id(walk).len + 1;
    walk->rest = rmq_slice_make(walk->rest.ptr + skipped, walk->rest.len - skipped);
  }
  return first_id(walk);
}

static ids walk_ids(const rmq_completion *all) {
  ids walk = {.rest = {NULL, 0}};
  if (all->reply) {
    walk.rest = all->reply->msg_id;
    walk.single = count_commas(walk.rest) == 0;
  }
  return walk;
}

/* A member's part of a result. */
static rmq_completion part_of(const rmq_send *member, const rmq_completion *all, size_t place,
                              ids *walk, rmq_send_reply *reply) {
  rmq_completion own = *all;
  own.msg_id = rmq_slice_make(member->msg_id, member->msg_id_len);
  own.elapsed_us = rmq_send_elapsed_us(member);
  own.index = member->index;
  if (all->reply) {
    *reply = *all->reply;
    reply->msg_id = id_at(walk, place);
    reply->transaction_id = rmq_slice_make(NULL, 0); /* the batch's, if any: no message has it */
    reply->queue_offset += (int64_t)place;
    own.reply = reply;
  }
  return own;
}

rmq_completion rmq_carrier_kept_completion(const rmq_send *send, rmq_send_reply *reply) {
  if (!send->carrier) return rmq_send_kept_completion(send);
  rmq_completion all = rmq_send_kept_completion(send->carrier);
  ids walk = walk_ids(&all);
  return part_of(send, &all, send->kept_place, &walk, reply);
}

static void complete_stored(rmq_send *member, const rmq_completion *all, size_t place, ids *walk) {
  rmq_send_reply reply;
  rmq_completion own = part_of(member, all, place, walk, &reply);
  rmq_send_complete(member, &own);
}

static void complete_failed(rmq_send *member, const rmq_failure *failure) {
  rmq_failure_clear(&member->failure);
  rmq_failure_copy(&member->failure, failure);
  rmq_send_fail(member);
}

void rmq_carrier_complete(rmq_send *carrier, const rmq_completion *completion) {
  rmq_producer *producer = carrier->producer;
  bool kept = completion->reply == &carrier->kept;
  ids walk = walk_ids(completion);
  carrier->phase = RMQ_PHASE_ENDED;
  rmq_producer_enter(producer);
  while (!rmq_link_alone(&carrier->members)) {
    rmq_send *member = member_of(carrier->members.next);
    remove_member(member);
    if (completion->failure) {
      complete_failed(member, completion->failure);
    } else {
      complete_stored(member, completion, kept ? member->kept_place : member->place, &walk);
    }
  }
  give_carrier_back(carrier);
  rmq_producer_leave(producer);
}

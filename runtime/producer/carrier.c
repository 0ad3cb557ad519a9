#include "producer/carrier.h"

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
                             .body = member->body,
                             .properties = rmq_buf_slice(&member->properties)};
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

static void complete_stored(rmq_send *member, const rmq_completion *all, size_t place, ids *walk) {
  rmq_completion own = *all;
  rmq_send_reply reply;
  own.msg_id = rmq_slice_make(member->msg_id, member->msg_id_len);
  own.elapsed_us = rmq_mono_diff_us(rmq_send_now(member), member->started);
  own.index = member->index;
  if (all->reply) {
    reply = *all->reply;
    reply.msg_id = id_at(walk, place);
    reply.transaction_id = rmq_slice_make(NULL, 0); /* the batch's, if any: no message has it */
    reply.queue_offset += (int64_t)place;
    own.reply = &reply;
  }
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
  ids walk = {.rest = {NULL, 0}};
  if (completion->reply) {
    walk.rest = completion->reply->msg_id;
    walk.single = count_commas(walk.rest) == 0;
  }
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

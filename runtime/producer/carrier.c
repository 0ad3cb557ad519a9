#include "producer/carrier.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "wire/batch.h"
#include "wire/codes.h"
#include "wire/properties.h"

static rmq_send *member_of(rmq_link *link) { return rmq_link_owner(link, rmq_send, member); }
static rmq_send *first_member(const rmq_send *carrier) { return member_of(carrier->members.next); }

/* ---- Members ---- */

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
  carrier->n_members--;
  carrier->member_bytes -= member->body.len;
}

/* Broker and address of a given queue stand in the carrier's memory. */
static void inherit_given(rmq_send *member, const rmq_send *carrier) {
  rmq_slice given = rmq_buf_slice(&carrier->given);
  rmq_buf_clear(&member->given);
  rmq_buf_bytes(&member->given, given.ptr, given.len);
  const char *start = (const char *)rmq_buf_head(&member->given);
  member->broker = carrier->broker ? start : NULL;
  member->addr = carrier->addr ? start + strlen(start) + 1 : NULL;
}

/* The carrier's attempt is the member's, too. Who looks at where it went are hooks only. */
static void inherit_attempt(rmq_send *member) {
  const rmq_send *carrier = member->carrier;
  member->attempts = carrier->attempts;
  member->attempt_started = carrier->attempt_started;
  if (!member->producer->hooks) return;
  member->queue_id = carrier->queue_id;
  member->tried_queue_id = carrier->tried_queue_id;
  if (rmq_buf_len(&carrier->given) > 0) {
    inherit_given(member, carrier);
    return;
  }
  rmq_publish_unref(member->publish);
  member->publish = carrier->publish ? rmq_publish_ref(carrier->publish) : NULL;
  member->broker = carrier->broker;
  member->addr = carrier->addr;
}

/* So are those that failed. */
static void inherit_failure(rmq_send *member) {
  rmq_failure_clear(&member->failure);
  rmq_failure_copy(&member->failure, &member->carrier->failure);
}

static void stop_watching(rmq_send *carrier) {
  rmq_producer *producer = carrier->producer;
  if (producer->transport) rmq_transport_timer_stop(producer->transport, &carrier->expiry);
}

static void give_carrier_back(rmq_send *carrier) {
  stop_watching(carrier);
  rmq_link_remove(&carrier->link);
  rmq_send_give_back(carrier);
}

/* While it completes, its members may go in any way, and the carrier goes afterwards. */
static void go_with_the_last(rmq_send *carrier) {
  if (carrier->n_members > 0 || carrier->phase == RMQ_PHASE_ENDED) return;
  rmq_send_withdraw(carrier);
  give_carrier_back(carrier);
}

void rmq_carrier_lose(rmq_send *member) {
  rmq_send *carrier = member->carrier;
  bool waits = carrier->phase == RMQ_PHASE_ROOM;
  inherit_failure(member);
  inherit_attempt(member);
  remove_member(member);
  if (waits) {
    member->producer->stats.waiting--;
    rmq_send_enter_room(member); /* what completes leaves the room */
  }
  go_with_the_last(carrier);
}

/* ---- Hooks ---- */

static size_t stored_size_of(const rmq_send *send) {
  return RMQ_BATCH_STORED_OVERHEAD + send->topic->name_len + rmq_send_body(send).len +
         rmq_send_properties(send).len;
}

/* What a hook has made of a message may not fit any more. */
static int check_change(rmq_send *member, size_t size) {
  const rmq_settings *settings = &member->producer->settings;
  size_t properties = rmq_send_properties(member).len;
  bool changed = member->change.body || member->change.properties;
  if (!changed ||
      (size <= (size_t)settings->max_message_size && properties <= RMQ_BATCH_PROPERTIES_MAX)) {
    return 0;
  }
  rmq_failure_set(
      &member->failure, RMQ_KIND_HOOK, RMQ_MESSAGE_ILLEGAL,
      "Sending to topic \"%s\" failed: hooks have made the messages of its batch "
      "longer, and with this one they take %zu bytes, and its properties %zu; "
      "max_message_size allows %lld, and a batch properties of %d. Send fewer at a time, with "
      "auto_batch by a lower batch_max_bytes.",
      member->topic->name, size, properties, (long long)settings->max_message_size,
      RMQ_BATCH_PROPERTIES_MAX);
  return RMQ_ELIMIT;
}

/* Asks about one member; what is refused fails by itself. False when the process has forked. */
static bool ask_for(rmq_send *member, size_t *size) {
  const rmq_send *carrier = member->carrier;
  if (carrier->attempts > 0) inherit_failure(member);
  inherit_attempt(member);
  int status = rmq_hooks_attempt(member);
  if (status == RMQ_ESTATE) return false;
  if (status == 0) status = check_change(member, *size + stored_size_of(member));
  if (status < 0) {
    remove_member(member);
    rmq_send_doom(member);
    return true;
  }
  *size += stored_size_of(member);
  return true;
}

bool rmq_carrier_ask_hooks(rmq_send *carrier) {
  rmq_link *link = carrier->members.next;
  size_t size = 0;
  carrier->phase = RMQ_PHASE_PAUSE; /* nothing is to be withdrawn while somebody else decides */
  while (link != &carrier->members) {
    rmq_send *member = member_of(link);
    link = link->next;
    if (!ask_for(member, &size)) return false;
  }
  carrier->attempts++;
  if (carrier->n_members == 0) {
    go_with_the_last(carrier);
    return false;
  }
  if (rmq_mono_before(rmq_send_now(carrier), carrier->deadline)) return true;
  rmq_send_doom_late(carrier);
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

/* ---- Results ---- */

static size_t count_commas(rmq_slice text) {
  size_t n = 0;
  for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == ',';
  return n;
}

const char *rmq_carrier_misses(const rmq_send *carrier, const rmq_send_reply *reply) {
  size_t n = count_commas(reply->msg_id) + 1;
  if (n != 1 && n != carrier->n_encoded) return "msgId for each message";
  int64_t others = (int64_t)carrier->n_encoded - 1;
  return reply->queue_offset <= INT64_MAX - others ? NULL : "queueOffset";
}

/* Walks the replies of a batch's messages, from one place to a later one. */
typedef struct replies {
  const rmq_send_reply *all;
  rmq_slice ids;
  size_t place; /* of the first one in `ids` */
  bool single;  /* there is one id for all */
} replies;

static replies replies_of(const rmq_send_reply *all) {
  return (replies){.all = all, .ids = all->msg_id, .single = count_commas(all->msg_id) == 0};
}

static size_t first_len(const replies *walk) {
  const char *comma = walk->ids.len ? memchr(walk->ids.ptr, ',', walk->ids.len) : NULL;
  return comma ? (size_t)(comma - walk->ids.ptr) : walk->ids.len;
}

static rmq_send_reply reply_at(replies *walk, size_t place) {
  for (; !walk->single && walk->place < place; walk->place++) {
    size_t skipped = first_len(walk) + 1;
    walk->ids = rmq_slice_make(walk->ids.ptr + skipped, walk->ids.len - skipped);
  }
  rmq_send_reply reply = *walk->all;
  reply.msg_id = rmq_slice_make(walk->ids.ptr, first_len(walk));
  reply.queue_offset += (int64_t)place;
  reply.transaction_id = rmq_slice_make(NULL, 0); /* the batch's, if any: no message has it */
  return reply;
}

void rmq_carrier_keep(rmq_send *carrier, rmq_send_status status, const rmq_send_reply *reply) {
  replies walk = replies_of(reply);
  for (rmq_link *link = carrier->members.next; link != &carrier->members; link = link->next) {
    rmq_send *member = member_of(link);
    rmq_send_reply own = reply_at(&walk, member->place);
    member->attempts = carrier->attempts;
    rmq_send_keep(member, rmq_slice_text(carrier->broker), status, &own);
  }
}

/* ---- Budgets ---- */

void rmq_carrier_watch_budgets(rmq_send *carrier) {
  if (rmq_link_alone(&carrier->members)) return;
  rmq_mono first = first_member(carrier)->deadline;
  if (!rmq_mono_before(first, carrier->deadline)) return; /* the carrier's own end is in time */
  rmq_transport_timer(carrier->producer->transport, &carrier->expiry, first);
}

/* What a member with no time left says of the attempt that its carrier goes on with. */
static void note_attempt_under_way(rmq_send *member) {
  const rmq_send *carrier = member->carrier;
  int64_t us = rmq_mono_diff_us(rmq_send_now(carrier), carrier->attempt_started);
  char text[64];
  snprintf(text, sizeof text, "no reply within %lld ms", (long long)(us / 1000));
  rmq_failure_try(&member->failure, RMQ_KIND_TIMEOUT, rmq_java_code_of(RMQ_KIND_TIMEOUT),
                  carrier->encoded, rmq_slice_text(carrier->broker), rmq_slice_text(carrier->addr),
                  rmq_slice_text(text), us);
}

/* The last one takes the carrier with it: false when it has gone. */
static bool expire(rmq_send *member) {
  rmq_send *carrier = member->carrier;
  bool goes_on = carrier->n_members > 1;
  inherit_failure(member);
  inherit_attempt(member);
  if (carrier->phase == RMQ_PHASE_ATTEMPT) note_attempt_under_way(member);
  remove_member(member);
  go_with_the_last(carrier);
  rmq_send_end_late(member);
  return goes_on;
}

/* The carrier has the budget of the member that was the last when it left; that one ends with it. */
static bool is_over(const rmq_send *member, rmq_mono now) {
  return !rmq_mono_before(now, member->deadline) &&
         rmq_mono_before(member->deadline, member->carrier->deadline);
}

void rmq_carrier_expired(rmq_timer *timer) {
  rmq_send *carrier = rmq_link_owner(timer, rmq_send, expiry);
  rmq_producer *producer = carrier->producer;
  rmq_mono now = rmq_send_now(carrier);
  bool goes_on = true;
  rmq_producer_enter(producer);
  while (goes_on && is_over(first_member(carrier), now)) {
    goes_on = expire(first_member(carrier)) && producer->transport;
  }
  if (goes_on) rmq_carrier_watch_budgets(carrier);
  rmq_producer_leave(producer);
}

/* ---- The end ---- */

bool rmq_carrier_dissolves(const rmq_send *carrier) {
  return first_member(carrier)->chosen && !rmq_send_was_written(carrier);
}

void rmq_carrier_dissolve(rmq_send *carrier) {
  rmq_producer *producer = carrier->producer;
  carrier->phase = RMQ_PHASE_ENDED;
  stop_watching(carrier);
  rmq_producer_enter(producer);
  while (!rmq_link_alone(&carrier->members)) {
    rmq_send *member = first_member(carrier);
    inherit_failure(member);
    inherit_attempt(member);
    remove_member(member);
    member->pauses = carrier->pauses;
    rmq_send_forget_chosen(member);
    rmq_send_go_on(member, false);
  }
  give_carrier_back(carrier);
  rmq_producer_leave(producer);
}

static void complete_stored(rmq_send *member, const rmq_completion *all, replies *walk) {
  rmq_completion own = *all;
  rmq_send_reply reply;
  own.msg_id = rmq_slice_make(member->msg_id, member->msg_id_len);
  own.elapsed_us = rmq_send_elapsed_us(member);
  own.index = member->index;
  if (all->reply) {
    reply = reply_at(walk, member->place);
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
  replies walk = {.all = NULL};
  if (completion->reply) walk = replies_of(completion->reply);
  carrier->phase = RMQ_PHASE_ENDED;
  stop_watching(carrier);
  rmq_producer_enter(producer);
  while (!rmq_link_alone(&carrier->members)) {
    rmq_send *member = first_member(carrier);
    inherit_attempt(member);
    remove_member(member);
    if (completion->failure) {
      complete_failed(member, completion->failure);
    } else if (completion->reply == &carrier->kept) {
      rmq_send_end_with_kept(member);
    } else {
      complete_stored(member, completion, &walk);
    }
  }
  give_carrier_back(carrier);
  rmq_producer_leave(producer);
}

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/carrier.h"
#include "producer/core.h"
#include "producer/message.h"
#include "producer/message_fields.h"
#include "wire/batch.h"
#include "wire/codes.h"

/* Batches that a user makes: checked message by message, divided into requests, and sent. */

struct rmq_draft {
  rmq_producer *producer; /* NULL: it is gone, and the messages with it */
  rmq_link link;          /* in the producer's `drafts` */
  rmq_link members;       /* sends that are not under way, by their `member` */
  size_t n;
  size_t bytes; /* the lengths of their bodies */
  char *topic;
  bool wait;
};

static rmq_send *member_of(rmq_link *link) { return rmq_link_owner(link, rmq_send, member); }

rmq_draft *rmq_draft_new(rmq_producer *producer) {
  rmq_draft *draft = rmq_alloc_zero(1, sizeof *draft);
  draft->producer = producer;
  rmq_link_init(&draft->members);
  rmq_link_append(&producer->drafts, &draft->link);
  return draft;
}

static void detach(rmq_draft *draft) {
  while (!rmq_link_alone(&draft->members)) {
    rmq_send *member = member_of(draft->members.next);
    rmq_link_remove(&member->member);
    rmq_send_give_back(member);
  }
  rmq_link_remove(&draft->link);
  draft->producer = NULL;
  draft->n = 0;
}

void rmq_producer_drop_drafts(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->drafts)) {
    detach(rmq_link_owner(producer->drafts.next, rmq_draft, link));
  }
}

void rmq_draft_drop(rmq_draft *draft) {
  if (!draft) return;
  if (draft->producer) detach(draft);
  free(draft->topic);
  free(draft);
}

size_t rmq_draft_count(const rmq_draft *draft) { return draft->n; }

/* ---- One message ---- */

static int refuse(rmq_producer *producer, const char *sentence) {
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL, "%s", sentence);
  return RMQ_EINVAL;
}

static int check_first(rmq_draft *draft, const rmq_message *message) {
  rmq_producer *producer = draft->producer;
  int status = rmq_send_check_topic(producer, message->topic);
  if (status < 0) return status;
  free(draft->topic);
  draft->topic = rmq_copy_text(message->topic.ptr, message->topic.len);
  draft->wait = message->wait;
  return 0;
}

static int check_next(const rmq_draft *draft, const rmq_message *message) {
  rmq_producer *producer = draft->producer;
  if (!message->topic.ptr) {
    rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "topic is missing; each message of a batch has it, and it is \"%s\" here",
                    draft->topic);
    return RMQ_EINVAL;
  }
  if (!rmq_slice_is(message->topic, draft->topic)) {
    rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "topic is \"%.*s\" and that of messages[1] is \"%s\"; a batch has one topic",
                    (int)(message->topic.len < 128 ? message->topic.len : 128),
                    message->topic.len ? message->topic.ptr : "", draft->topic);
    return RMQ_EINVAL;
  }
  if (message->wait != draft->wait) {
    return refuse(producer, "wait differs from that of messages[1]; a batch has one");
  }
  return 0;
}

static int check_message(rmq_draft *draft, const rmq_message *message) {
  rmq_producer *producer = draft->producer;
  int status = draft->n == 0 ? check_first(draft, message) : check_next(draft, message);
  if (status < 0) return status;
  const char *kind = rmq_message_own_kind(message);
  if (kind) {
    rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "%s, and cannot be in a batch; send it alone", kind);
    return RMQ_EINVAL;
  }
  /* One that is too long fails alone in the end, but none can be empty. */
  return message->body.len > 0
             ? 0
             : rmq_body_check(&producer->settings, message->body, &producer->refusal);
}

static int check_properties(rmq_producer *producer, const rmq_send *member) {
  size_t len = rmq_buf_len(&member->properties);
  if (len <= RMQ_BATCH_PROPERTIES_MAX) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                  "properties, keys and tags take %zu bytes together; in a batch a message has at "
                  "most %d. Send it alone.",
                  len, RMQ_BATCH_PROPERTIES_MAX);
  return RMQ_EINVAL;
}

static int add(rmq_draft *draft, const rmq_message *message) {
  int status = check_message(draft, message);
  if (status < 0) return status;
  rmq_send *member = rmq_send_take(draft->producer);
  status = rmq_send_write_properties(member, message);
  if (status == 0) status = check_properties(draft->producer, member);
  if (status < 0) {
    rmq_send_give_back(member);
    return status;
  }
  member->body = message->body;
  member->flag = message->flag;
  member->index = draft->n++;
  draft->bytes += message->body.len;
  rmq_link_append(&draft->members, &member->member);
  return 0;
}

int rmq_draft_add(rmq_draft *draft, const rmq_message *message) {
  rmq_producer *producer = draft->producer;
  int status = rmq_producer_check_state(producer);
  if (status < 0) return status;
  status = add(draft, message);
  if (status < 0) rmq_failure_prefix(&producer->refusal, "messages[%zu]: ", draft->n + 1);
  return status;
}

/* ---- All of them ---- */

/* What a message counts in a request: what any broker stores of it. */
static size_t size_of(const rmq_draft *draft, const rmq_send *member) {
  return RMQ_BATCH_STORED_OVERHEAD + strlen(draft->topic) + member->body.len +
         rmq_buf_len(&member->properties);
}

/* True when one request can take so much. */
static bool fits_request(const rmq_settings *settings, size_t size, size_t n, size_t bytes) {
  return size <= (size_t)settings->max_message_size && n <= (size_t)settings->max_inflight &&
         bytes <= (size_t)settings->max_inflight_bytes;
}

static int check_whole(const rmq_draft *draft) {
  const rmq_settings *settings = &draft->producer->settings;
  size_t size = 0;
  for (rmq_link *link = draft->members.next; link != &draft->members; link = link->next) {
    size += size_of(draft, member_of(link));
  }
  if (fits_request(settings, size, draft->n, draft->bytes)) return 0;
  rmq_failure_set(
      &draft->producer->refusal, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
      "%zu messages take %zu bytes as one batch (%zu each besides body and properties); "
      "max_message_size allows %lld, max_inflight %lld messages, max_inflight_bytes "
      "%lld bytes of bodies. Send fewer at a time, or let them be split.",
      draft->n, size, RMQ_BATCH_STORED_OVERHEAD + strlen(draft->topic),
      (long long)settings->max_message_size, (long long)settings->max_inflight,
      (long long)settings->max_inflight_bytes);
  return RMQ_EINVAL;
}

static int check_draft(rmq_draft *draft, const rmq_draft_options *options) {
  rmq_producer *producer = draft->producer;
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_hooks_check_generation(producer, rmq_slice_text(draft->topic));
  if (status < 0) return status;
  if (draft->n == 0) return refuse(producer, "there are no messages in this batch");
  status = rmq_send_check_queue(producer, &options->send);
  if (status == 0 && !options->split) status = check_whole(draft);
  if (status < 0 || options->send.may_wait) return status;
  bool room = rmq_producer_has_room_for(producer, draft->n, draft->bytes);
  return room ? 0 : rmq_producer_refuse_overload(producer);
}

/* A draft on its way into requests. */
typedef struct division {
  rmq_producer *producer;
  const rmq_draft *draft;
  const rmq_draft_options *options;
  rmq_send_done *done;
  void *arg;
  rmq_link carriers; /* those that are to begin, in order, by their `link` */
  size_t size;       /* of what the last one has */
  bool waits;
} division;

static void set_up(const division *of, rmq_send *send, const rmq_send_options *options) {
  rmq_message message = {
      .topic = rmq_slice_text(of->draft->topic), .body = send->body, .flag = send->flag};
  size_t index = send->index;
  rmq_send_set_up(send, &message, options, of->done, of->arg);
  send->index = index;
}

static rmq_send *add_carrier(division *of) {
  rmq_send *carrier = rmq_carrier_make(of->producer, of->draft->wait);
  carrier->body = rmq_slice_make(NULL, 0);
  carrier->flag = 0;
  rmq_send_options options = of->options->send;
  options.admitted = NULL; /* the last one's is set when it is known which that is */
  set_up(of, carrier, &options);
  rmq_link_append(&of->carriers, &carrier->link);
  of->size = 0;
  return carrier;
}

/* The last carrier if it can take one more, else a new one. */
static rmq_send *carrier_for(division *of, const rmq_send *member) {
  if (!rmq_link_alone(&of->carriers)) {
    rmq_send *last = rmq_link_owner(of->carriers.prev, rmq_send, link);
    if (fits_request(&of->producer->settings, of->size + size_of(of->draft, member),
                     last->n_members + 1, last->member_bytes + member->body.len)) {
      return last;
    }
  }
  return add_carrier(of);
}

/* Fails a message that is too long for any batch. */
static void fail_alone(const division *of, rmq_send *member) {
  const rmq_settings *settings = &of->producer->settings;
  rmq_failure *failure = &member->failure;
  if (rmq_body_check(settings, member->body, failure) == 0) {
    rmq_failure_set(failure, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "the message takes %zu bytes in a batch (body %zu, properties %zu, and %zu); "
                    "max_message_size allows %lld. Send it alone, or raise the limit.",
                    size_of(of->draft, member), member->body.len, rmq_buf_len(&member->properties),
                    RMQ_BATCH_STORED_OVERHEAD + strlen(of->draft->topic),
                    (long long)settings->max_message_size);
  }
  rmq_failure_prefix(failure, "Sending to topic \"%s\" failed: messages[%zu]: ", of->draft->topic,
                     member->index + 1);
  rmq_send_enter_room(member);
  rmq_send_doom(member);
}

static void place(division *of, rmq_send *member) {
  rmq_send_options options = of->options->send;
  options.choose = NULL; /* all these are the carrier's */
  options.admitted = NULL;
  options.broker = rmq_slice_make(NULL, 0);
  set_up(of, member, &options);
  rmq_send_enlist(member);
  if (!fits_request(&of->producer->settings, size_of(of->draft, member), 1, member->body.len)) {
    fail_alone(of, member);
    return;
  }
  rmq_carrier_add(carrier_for(of, member), member);
  of->size += size_of(of->draft, member);
}

/* A selector that is asked now may do anything, and even fork, which ends all that is in the list. */
static void begin_all(division *of) {
  if (!rmq_link_alone(&of->carriers)) {
    rmq_send *last = rmq_link_owner(of->carriers.prev, rmq_send, link);
    last->admitted = of->options->send.admitted;
  }
  while (!rmq_link_alone(&of->carriers)) {
    rmq_send *carrier = rmq_link_owner(of->carriers.next, rmq_send, link);
    rmq_link_remove(&carrier->link);
    bool room = rmq_producer_has_room_for(of->producer, carrier->n_members, carrier->member_bytes);
    of->waits = of->waits || !room;
    rmq_send_begin(carrier, room);
  }
}

int rmq_draft_send(rmq_draft *draft, const rmq_draft_options *options, rmq_send_done *done,
                   void *arg) {
  int status = check_draft(draft, options);
  if (status < 0) return status;
  division of = {
      .producer = draft->producer, .draft = draft, .options = options, .done = done, .arg = arg};
  rmq_link_init(&of.carriers);
  while (!rmq_link_alone(&draft->members)) {
    rmq_send *member = member_of(draft->members.next);
    rmq_link_remove(&member->member);
    place(&of, member);
  }
  rmq_producer_enter(of.producer);
  begin_all(&of);
  rmq_draft_drop(draft);
  rmq_producer_leave(of.producer);
  return of.waits ? 1 : 0;
}

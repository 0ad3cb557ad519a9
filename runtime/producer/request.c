#include "producer/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "wire/codes.h"
#include "wire/compress.h"
#include "wire/number.h"
#include "wire/properties.h"

enum { UUID_LEN = 36, WAITS_FOR_BROKERS_MS = 500 };

/* One request, from its call until both its send and its reply are over. */
typedef struct question {
  rmq_link link; /* in the producer's `questions` */
  rmq_producer *producer;
  char id[UUID_LEN + 1]; /* while it waits, its key in the producer's `asked` */
  bool waits;            /* `done` is still to come */
  bool sending;          /* its message is under way */
  rmq_replied *done;
  rmq_choose *choose;
  rmq_admitted *admitted;
  void *arg;
  rmq_buf body;
  char *stored_in; /* the topic, once the message is stored */
  rmq_mono started, deadline;
  rmq_timer timer; /* the reply's, from when the message is stored */

  /* Before the first attempt. */
  rmq_hold hold;
  rmq_send *send;          /* the one that is held back */
  size_t cluster;          /* the next one of the topic to look at */
  rmq_topic *topic;        /* held while its route is waited for: the cluster's for replies */
  rmq_route_waiter waiter; /* for it */
  rmq_greeter greeter;
} question;

/* ---- Life ---- */

static void release(question *q) {
  if (q->waits || q->sending) return; /* the other one of the two is still to come */
  rmq_link_remove(&q->link);
  rmq_buf_free(&q->body);
  free(q->stored_in);
  free(q);
}

/* Nobody waits for the reply any more. */
static void forget(question *q) {
  rmq_map_remove(q->producer->asked, rmq_slice_make(q->id, UUID_LEN));
  rmq_transport_timer_stop(q->producer->transport, &q->timer);
  rmq_transport_expect(q->producer->transport, false);
  q->waits = false;
}

/* Ends the waiting, with a reply or a failure. The send may still go on. */
static void end(question *q, const rmq_failure *failure, const rmq_pushed_reply *reply) {
  rmq_producer *producer = q->producer;
  forget(q);
  rmq_producer_enter(producer);
  q->done(q->arg, failure, reply);
  if (producer->transport) {
    release(q);
    rmq_producer_check_end(producer);
  }
  rmq_producer_leave(producer);
}

/* Ends a request whose message is stored. */
static void fail(question *q, rmq_failure *failure) {
  rmq_mono now = rmq_transport_now(q->producer->transport);
  failure->maybe_stored = true;
  failure->topic = rmq_copy_text(q->stored_in, strlen(q->stored_in));
  failure->elapsed_us = rmq_mono_diff_us(now, q->started);
  end(q, failure, NULL);
  rmq_failure_clear(failure);
}

/* ---- The reply that does not come ---- */

static void no_reply(rmq_timer *timer) {
  question *q = rmq_link_owner(timer, question, timer);
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(&failure, RMQ_KIND_TIMEOUT, 10006,
                  "The request to topic \"%s\" is stored, but no reply to it came within %lld ms. "
                  "Does somebody consume the topic and reply? Give the request more time "
                  "(option timeout) if it takes longer.",
                  q->stored_in, (long long)rmq_mono_diff_ms(q->deadline, q->started));
  fail(q, &failure);
}

static void sent(void *arg, const rmq_completion *completion) {
  question *q = arg;
  q->sending = false;
  if (!q->waits) { /* the reply was faster */
    release(q);
  } else if (completion->failure) {
    end(q, completion->failure, NULL);
  } else {
    rmq_buf_free(&q->body);
    q->stored_in = rmq_copy_text(completion->topic.ptr, completion->topic.len);
    rmq_transport_timer(q->producer->transport, &q->timer, q->deadline);
  }
}

/* ---- Before the first attempt ---- */

static void go_on(question *q) { rmq_send_go_on(q->send, false); }

static void greeted(rmq_greeter *greeter) {
  question *q = rmq_link_owner(greeter, question, greeter);
  rmq_producer *producer = q->producer;
  rmq_producer_enter(producer);
  go_on(q);
  rmq_producer_leave(producer);
}

static int64_t least_ms(int64_t a, int64_t b) { return a < b ? a : b; }

static bool greet(question *q) {
  rmq_mono now = rmq_transport_now(q->producer->transport);
  int64_t left_ms = rmq_mono_diff_ms(q->deadline, now) / 2;
  q->greeter.done = greeted;
  return rmq_routes_greet(q->producer->routes, &q->greeter,
                          least_ms(left_ms, WAITS_FOR_BROKERS_MS));
}

static bool look_at_clusters(question *q);

static void let_go(question *q) {
  if (q->topic) rmq_topic_release(q->topic);
  q->topic = NULL;
}

/* Whatever comes: without that topic's route the brokers that are known must do. */
static void route_came(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation) {
  question *q = rmq_link_owner(waiter, question, waiter);
  rmq_producer *producer = q->producer;
  (void)result, (void)explanation;
  let_go(q);
  rmq_producer_enter(producer);
  if (!look_at_clusters(q)) go_on(q);
  rmq_producer_leave(producer);
}

/* Asks where the topic is that the cluster's replies go through: every broker has it, so its route
 * names them all. False when that is known. */
static bool ask_for_brokers(question *q, rmq_slice cluster) {
  rmq_producer *producer = q->producer;
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_buf name = {0};
  rmq_buf_bytes(&name, cluster.ptr, cluster.len);
  rmq_buf_text(&name, "_REPLY_TOPIC");
  rmq_topic *topic = rmq_routes_topic(producer->routes, rmq_buf_slice(&name));
  rmq_buf_free(&name);
  rmq_topic_hold(topic, now);
  if (rmq_topic_is_ready(topic)) {
    rmq_topic_release(topic);
    return false;
  }
  q->topic = topic;
  q->waiter.done = route_came;
  int64_t left_ms = rmq_mono_diff_ms(q->deadline, now) / 4;
  rmq_topic_wait(topic, &q->waiter, rmq_mono_add_ms(now, least_ms(left_ms, WAITS_FOR_BROKERS_MS)));
  return true;
}

/* True while there is something to wait for: the brokers of a cluster, then their heartbeats. */
static bool look_at_clusters(question *q) {
  rmq_slice cluster;
  while ((cluster = rmq_topic_next_cluster(q->send->topic, &q->cluster)).len > 0) {
    if (ask_for_brokers(q, cluster)) return true;
  }
  return greet(q);
}

static bool begin_hold(rmq_hold *hold, rmq_send *send) {
  question *q = rmq_link_owner(hold, question, hold);
  q->send = send;
  q->cluster = 0;
  return look_at_clusters(q);
}

static void cancel_hold(rmq_hold *hold) {
  question *q = rmq_link_owner(hold, question, hold);
  rmq_topic_leave(&q->waiter);
  rmq_greeter_leave(&q->greeter);
  let_go(q);
}

/* ---- The start ---- */

/* A random UUID (version 4), as Java's. */
static void make_uuid(rmq_io *io, char out[UUID_LEN + 1]) {
  uint64_t high = io->calls->random(io), low = io->calls->random(io);
  high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
  low = (low & ~(UINT64_C(3) << 62)) | UINT64_C(2) << 62;
  snprintf(out, UUID_LEN + 1, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
           (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff), (unsigned)(low >> 48),
           (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

static int refuse(rmq_producer *producer, const char *why) {
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0, "%s", why);
  return RMQ_EINVAL;
}

static int check(rmq_producer *producer, const rmq_message *message,
                 const rmq_send_options *options) {
  if (options->mode == RMQ_MODE_ONEWAY) {
    return refuse(producer, "a request cannot be sent oneway: it waits for a reply");
  }
  if (message->reply) return refuse(producer, "a reply cannot be a request; use send");
  if (message->delay_kind != RMQ_DELAY_NONE) {
    return refuse(producer,
                  "a request cannot be delayed, as its reply is waited for; leave out delay_level, "
                  "delay_ms, delay_seconds and deliver_at");
  }
  const char *id = producer->client_id;
  if (strchr(id, 1) || strchr(id, 2)) {
    return refuse(producer,
                  "the client id has a byte 1 or 2, and so no reply could be addressed to it; "
                  "change client_ip or instance_name");
  }
  return rmq_producer_check_state(producer);
}

static int choose_for(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                      rmq_failure *why) {
  const question *q = arg;
  return q->choose(q->arg, choice, queue, why);
}

static void tell_admitted(void *arg) {
  const question *q = arg;
  q->admitted(q->arg);
}

static question *make(rmq_producer *producer, const rmq_send_options *options, int64_t timeout_ms,
                      rmq_replied *done, void *arg) {
  question *q = rmq_alloc_zero(1, sizeof *q);
  q->producer = producer;
  make_uuid(producer->io, q->id);
  q->waits = q->sending = true;
  q->done = done;
  q->choose = options->choose;
  q->admitted = options->admitted;
  q->arg = arg;
  q->started = rmq_transport_now(producer->transport);
  q->deadline = rmq_mono_add_ms(q->started, timeout_ms);
  rmq_timer_init(&q->timer, no_reply);
  q->hold = (rmq_hold){.begin = begin_hold, .cancel = cancel_hold};
  if (!producer->asked) producer->asked = rmq_map_new(producer->io->calls->random(producer->io));
  rmq_map_set(producer->asked, rmq_slice_make(q->id, UUID_LEN), q);
  rmq_transport_expect(producer->transport, true);
  rmq_link_append(&producer->questions, &q->link);
  return q;
}

/* Sends the message with what makes it a request. */
static int send(question *q, const rmq_message *message, const rmq_send_options *options,
                int64_t timeout_ms) {
  rmq_producer *producer = q->producer;
  char ttl[RMQ_NUMBER_MAX];
  rmq_message own = *message;
  rmq_send_options with = *options;
  size_t n = message->n_system + 3;
  rmq_field *system = rmq_alloc(n * sizeof *system);
  system[0] = (rmq_field){rmq_slice_text("CORRELATION_ID"), rmq_slice_make(q->id, UUID_LEN)};
  system[1] = (rmq_field){rmq_slice_text("REPLY_TO_CLIENT"), rmq_slice_text(producer->client_id)};
  system[2] =
      (rmq_field){rmq_slice_text("TTL"), rmq_slice_make(ttl, rmq_number_write(ttl, timeout_ms))};
  for (size_t i = 3; i < n; i++) system[i] = message->system[i - 3];
  own.system = system;
  own.n_system = n;
  own.body = rmq_buf_slice(&q->body);
  with.timeout_ms = timeout_ms;
  with.hold = &q->hold;
  if (with.choose) with.choose = choose_for;
  if (with.admitted) with.admitted = tell_admitted;
  int status = rmq_producer_send(producer, &own, &with, sent, q);
  free(system);
  return status;
}

int rmq_producer_request(rmq_producer *producer, const rmq_message *message,
                         const rmq_send_options *options, rmq_replied *done, void *arg) {
  int status = check(producer, message, options);
  if (status < 0) return status;
  int64_t timeout_ms =
      options->timeout_ms > 0 ? options->timeout_ms : producer->settings.send_msg_timeout;
  question *q = make(producer, options, timeout_ms, done, arg);
  rmq_buf_bytes(&q->body, message->body.ptr, message->body.len);
  status = send(q, message, options, timeout_ms);
  if (status < 0) {
    forget(q);
    q->sending = false;
    release(q);
  }
  return status;
}

/* ---- The reply that comes ---- */

static void answer(rmq_producer *producer, const rmq_header *request, int32_t code,
                   const char *remark) {
  rmq_transport_answer(producer->transport, request, code, rmq_slice_text(remark),
                       rmq_slice_make(NULL, 0));
}

static void complain(rmq_producer *producer, rmq_complaint *complaint, const char *from,
                     const char *what) {
  size_t n;
  if (!rmq_may_complain(producer, complaint, &n)) return;
  rmq_log_line(&producer->log, RMQ_LOG_WARN, "%zu %s %s, the last one from %s", n,
               n == 1 ? "reply" : "replies", what, from);
}

/* Undoes the compression, if there is any. */
static bool unpack(const rmq_producer *producer, rmq_stored_message *message, rmq_buf *room) {
  size_t limit = (size_t)producer->settings.max_message_size;
  if (limit < RMQ_FRAME_MAX) limit = RMQ_FRAME_MAX; /* who replies may have a higher one */
  if (!(message->sys_flag & RMQ_SYS_COMPRESSED)) return true;
  if (rmq_decompress(message->sys_flag, message->body, limit, room) < 0) return false;
  message->body = rmq_buf_slice(room);
  message->sys_flag &= ~RMQ_SYS_COMPRESSED;
  return true;
}

void rmq_producer_reply_came(rmq_producer *producer, const char *from, const rmq_header *header,
                             rmq_slice body) {
  rmq_pushed_reply reply;
  const char *wrong;
  if (rmq_pushed_reply_decode(header, body, &reply, &wrong) < 0) {
    complain(producer, &producer->unreadable, from, "could not be read");
    answer(producer, header, RMQ_SYSTEM_ERROR, "the reply cannot be read");
    return;
  }
  rmq_slice id = rmq_properties_find(reply.message.properties, "CORRELATION_ID");
  question *q = producer->asked && id.ptr ? rmq_map_get(producer->asked, id) : NULL;
  if (!q) {
    producer->stats.late_replies++;
    complain(producer, &producer->late, from, "came that no request waits for (any more)");
    answer(producer, header, RMQ_SUCCESS, NULL); /* who sent it has done its part */
    return;
  }
  rmq_buf unpacked = {0};
  if (unpack(producer, &reply.message, &unpacked)) {
    answer(producer, header, RMQ_SUCCESS, NULL);
    producer->stats.replies++;
    end(q, NULL, &reply);
  } else {
    complain(producer, &producer->unreadable, from, "could not be decompressed");
    answer(producer, header, RMQ_SYSTEM_ERROR, "the body of the reply cannot be decompressed");
  }
  rmq_buf_free(&unpacked);
}

/* ---- The end of the producer ---- */

static question *first_that_waits(const rmq_producer *producer) {
  const rmq_link *all = &producer->questions;
  for (rmq_link *link = all->next; link != all; link = link->next) {
    question *q = rmq_link_owner(link, question, link);
    if (q->waits) return q;
  }
  return NULL;
}

void rmq_producer_fail_requests(rmq_producer *producer) {
  question *q;
  while (producer->transport && (q = first_that_waits(producer)) != NULL) {
    rmq_failure failure;
    rmq_failure_init(&failure);
    rmq_failure_set(&failure, RMQ_KIND_STATE, 0,
                    "The request was stored, but producer \"%s\" shut down before the reply came.",
                    producer->settings.group);
    fail(q, &failure);
  }
}

/* Their sends have been withdrawn already. */
void rmq_producer_drop_requests(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->questions)) {
    question *q = rmq_link_owner(producer->questions.next, question, link);
    if (q->waits) forget(q);
    q->sending = false;
    release(q);
  }
  rmq_map_free(producer->asked);
  producer->asked = NULL;
}

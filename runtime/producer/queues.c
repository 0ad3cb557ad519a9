#include <stdlib.h>

#include "base/memory.h"
#include "producer/core.h"
#include "producer/message.h"

/* Somebody who wants to know the queues of a topic. */
typedef struct query {
  rmq_route_waiter waiter;
  rmq_timer timer; /* answers later what is known already */
  rmq_link link;   /* in the producer's `queries` */
  rmq_producer *producer;
  rmq_topic *topic; /* held */
  rmq_mono deadline;
  rmq_queues_done *done;
  void *arg;
} query;

/* The queues in the order of brokers and ids. */
static rmq_queue_ref *sorted(const rmq_publish *publish) {
  size_t n = publish->n_queues;
  rmq_queue_ref *queues = rmq_alloc((n ? n : 1) * sizeof *queues);
  for (size_t i = 0; i < n; i++) {
    const rmq_publish_queue *queue = rmq_publish_sorted(publish, i);
    queues[i].broker = rmq_slice_text(publish->brokers[queue->broker].name);
    queues[i].id = queue->id;
  }
  return queues;
}

static void withdraw(query *asked) {
  rmq_topic_leave(&asked->waiter);
  rmq_transport_timer_stop(asked->producer->transport, &asked->timer);
  rmq_link_remove(&asked->link);
}

static void end(query *asked, const rmq_failure *failure) {
  rmq_producer *producer = asked->producer;
  withdraw(asked);
  rmq_producer_enter(producer);
  if (failure) {
    asked->done(asked->arg, failure, NULL, 0);
  } else {
    rmq_publish *publish = rmq_publish_ref(asked->topic->publish);
    rmq_queue_ref *queues = sorted(publish);
    asked->done(asked->arg, NULL, queues, publish->n_queues);
    free(queues);
    rmq_publish_unref(publish);
  }
  if (producer->routes) rmq_topic_release(asked->topic);
  free(asked);
  rmq_producer_leave(producer);
}

/* What was known when the question came may have been lost by a refresh since. */
static void known_already(rmq_timer *timer) {
  query *asked = rmq_link_owner(timer, query, timer);
  if (rmq_topic_is_ready(asked->topic)) {
    end(asked, NULL);
  } else {
    rmq_topic_wait(asked->topic, &asked->waiter, asked->deadline);
  }
}

static void route_came(rmq_route_waiter *waiter, rmq_route_result result, rmq_slice explanation) {
  query *asked = rmq_link_owner(waiter, query, waiter);
  if (result == RMQ_ROUTE_READY) {
    end(asked, NULL);
    return;
  }
  rmq_failure failure;
  rmq_failure_init(&failure);
  bool unreached = result == RMQ_ROUTE_UNREACHED || result == RMQ_ROUTE_TIMEOUT;
  rmq_failure_set(&failure, result == RMQ_ROUTE_TIMEOUT ? RMQ_KIND_TIMEOUT : RMQ_KIND_ROUTE,
                  unreached ? 10004 : 10005, "%s", "");
  rmq_buf_bytes(&failure.message, explanation.ptr, explanation.len);
  failure.topic = rmq_copy_text(asked->topic->name, asked->topic->name_len);
  end(asked, &failure);
  rmq_failure_clear(&failure);
}

static rmq_mono deadline_of(rmq_producer *producer, int64_t timeout_ms) {
  if (timeout_ms <= 0) timeout_ms = producer->settings.send_msg_timeout;
  return rmq_mono_add_ms(rmq_transport_now(producer->transport), timeout_ms);
}

int rmq_producer_queues(rmq_producer *producer, rmq_slice topic, int64_t timeout_ms,
                        rmq_queues_done *done, void *arg) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_topic_check(topic, &producer->refusal);
  if (status < 0) return status;
  query *asked = rmq_alloc_zero(1, sizeof *asked);
  asked->producer = producer;
  asked->topic = rmq_routes_topic(producer->routes, topic);
  asked->deadline = deadline_of(producer, timeout_ms);
  asked->done = done;
  asked->arg = arg;
  asked->waiter.done = route_came;
  rmq_timer_init(&asked->timer, known_already);
  rmq_link_append(&producer->queries, &asked->link);
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_topic_hold(asked->topic, now);
  if (rmq_topic_is_ready(asked->topic)) {
    rmq_transport_timer(producer->transport, &asked->timer, now);
  } else {
    rmq_topic_wait(asked->topic, &asked->waiter, asked->deadline);
  }
  return 0;
}

void rmq_producer_fail_queries(rmq_producer *producer) {
  while (producer->transport && !rmq_link_alone(&producer->queries)) {
    rmq_failure failure;
    rmq_failure_init(&failure);
    rmq_failure_set(&failure, RMQ_KIND_STATE, 0, "producer \"%s\" is shutting down",
                    producer->settings.group);
    end(rmq_link_owner(producer->queries.next, query, link), &failure);
    rmq_failure_clear(&failure);
  }
}

void rmq_producer_drop_queries(rmq_producer *producer) {
  while (!rmq_link_alone(&producer->queries)) {
    query *asked = rmq_link_owner(producer->queries.next, query, link);
    withdraw(asked);
    rmq_topic_release(asked->topic);
    free(asked);
  }
}

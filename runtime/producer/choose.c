#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"

/* Queues that the caller chooses, a selector in the end. */

/* ---- Choosers ---- */

int rmq_choose_by_key(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                      rmq_failure *why) {
  (void)arg, (void)why;
  int64_t place = choice->key % (int64_t)choice->publish->n_queues;
  if (place < 0) place = -place;
  *queue = rmq_publish_sorted(choice->publish, (size_t)place);
  return 0;
}

int rmq_choose_random(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                      rmq_failure *why) {
  (void)arg, (void)why;
  rmq_io *io = choice->producer->io;
  uint64_t at = io->calls->random(io) % choice->publish->n_queues;
  *queue = &choice->publish->queues[at];
  return 0;
}

const rmq_publish_queue *rmq_choice_best(const rmq_choice *choice) {
  rmq_send *send = choice->send;
  rmq_publish *publish = (rmq_publish *)choice->publish; /* counted, not changed */
  return &publish->queues[rmq_send_pick(send, publish, rmq_send_now(send))];
}

/* ---- Asking one ---- */

void rmq_send_doom(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (!send->failure.topic) {
    send->failure.topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  }
  send->phase = RMQ_PHASE_DOOMED;
  rmq_transport_timer(producer->transport, &send->timer, rmq_transport_now(producer->transport));
}

bool rmq_send_choose(rmq_send *send) {
  rmq_producer *producer = send->producer;
  rmq_publish *publish = rmq_publish_ref(send->topic->publish);
  int tried = send->failure.n_tries;
  rmq_choice choice = {
      .producer = producer,
      .topic = rmq_topic_name(send->topic),
      .publish = publish,
      .key = send->key,
      .attempt = send->attempts + 1,
      .last_broker = rmq_slice_text(tried > 0 ? send->failure.tries[tried - 1].broker : NULL),
      .send = send,
  };
  const rmq_publish_queue *queue = NULL;
  send->phase = RMQ_PHASE_PAUSE; /* nothing is to be withdrawn while somebody else decides */
  int status = send->choose(send->arg, &choice, &queue, &send->failure);
  /* The process may have forked meanwhile: the send is gone then. */
  bool goes_on = producer->transport != NULL;
  bool chosen = goes_on && status == 0;
  if (chosen) {
    rmq_send_take_queue(send, publish, queue);
    send->chosen = true;
  } else if (goes_on) {
    rmq_send_doom(send);
  }
  rmq_publish_unref(publish);
  return chosen;
}

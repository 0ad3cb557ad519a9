#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"

/* Queues that the caller chooses, a selector in the end. */

void rmq_send_doom(rmq_send *send) {
  rmq_producer *producer = send->producer;
  if (!send->failure.topic) {
    send->failure.topic = rmq_copy_text(send->topic->name, send->topic->name_len);
  }
  send->phase = RMQ_PHASE_DOOMED;
  rmq_transport_timer(producer->transport, &send->timer, rmq_transport_now(producer->transport));
}

static void keep_queue(rmq_send *send, const rmq_queue_ref *queue) {
  rmq_buf_clear(&send->given);
  rmq_buf_bytes(&send->given, queue->broker.ptr, queue->broker.len);
  rmq_buf_u8(&send->given, 0);
  send->queue_id = queue->id;
  send->chosen = true;
}

bool rmq_send_choose(rmq_send *send) {
  rmq_producer *producer = send->producer;
  rmq_publish *publish = rmq_publish_ref(send->topic->publish);
  int tried = send->failure.n_tries;
  rmq_choice choice = {
      .producer = producer,
      .topic = rmq_topic_name(send->topic),
      .publish = publish,
      .attempt = send->attempts + 1,
      .last_broker = rmq_slice_text(tried > 0 ? send->failure.tries[tried - 1].broker : NULL),
  };
  rmq_queue_ref queue = {{NULL, 0}, 0};
  send->phase = RMQ_PHASE_PAUSE; /* nothing is to be withdrawn while somebody else decides */
  int status = send->choose(send->arg, &choice, &queue, &send->failure);
  /* The process may have forked meanwhile: the send is gone then. */
  bool goes_on = producer->transport != NULL;
  if (goes_on && status == 0) keep_queue(send, &queue);
  if (goes_on && status < 0) rmq_send_doom(send);
  rmq_publish_unref(publish);
  return goes_on && status == 0;
}

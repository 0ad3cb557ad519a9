#include "producer/carrier.h"
#include "producer/core.h"

/* The end of a send: exactly one for each. */

static void count(rmq_send *send, const rmq_completion *completion) {
  rmq_producer_stats *stats = &send->producer->stats;
  stats->inflight--;
  stats->inflight_bytes -= send->body.len;
  if (!completion->failure) {
    if (!send->oneway) stats->acknowledged++;
    return;
  }
  stats->failed++;
  if (send->oneway) stats->oneway_failed++;
}

static void tell(rmq_send *send, const rmq_completion *completion) {
  rmq_producer *producer = send->producer;
  rmq_completion failed;
  if (send->own) {
    send->done(send->arg, completion);
    return;
  }
  if (producer->hooks && !rmq_hooks_completed(send, completion)) {
    failed = rmq_send_failed_completion(send);
    completion = &failed;
  }
  if (!producer->transport) return; /* a hook has forked: nothing completes in the child */
  if (producer->trace) rmq_trace_send(send, completion);
  count(send, completion); /* before done, so that it finds room to send again */
  send->done(send->arg, completion);
}

void rmq_send_complete(rmq_send *send, const rmq_completion *completion) {
  if (send->carries) {
    rmq_carrier_complete(send, completion);
    return;
  }
  rmq_producer *producer = send->producer;
  send->phase = RMQ_PHASE_ENDED;
  rmq_link_remove(&send->link);
  rmq_producer_enter(producer);
  tell(send, completion);
  rmq_send_give_back(send);
  if (producer->transport) {
    if (!rmq_link_alone(&producer->waiting)) rmq_producer_admit(producer);
    rmq_producer_check_flushes(producer);
    rmq_producer_check_end(producer);
  }
  rmq_producer_leave(producer);
}

int64_t rmq_send_elapsed_us(const rmq_send *send) {
  return rmq_mono_diff_us(rmq_send_now(send), send->started);
}

rmq_completion rmq_send_failed_completion(rmq_send *send) {
  send->failure.elapsed_us = rmq_send_elapsed_us(send);
  return (rmq_completion){
      .failure = &send->failure,
      .status = RMQ_SEND_OK,
      .msg_id = rmq_slice_make(send->msg_id, send->msg_id_len),
      .topic = rmq_topic_name(send->topic),
      .broker = rmq_slice_text(send->failure.broker),
      .attempts = send->attempts,
      .elapsed_us = send->failure.elapsed_us,
      .index = send->index,
  };
}

void rmq_send_fail(rmq_send *send) {
  rmq_completion completion = rmq_send_failed_completion(send);
  rmq_send_complete(send, &completion);
}

void rmq_send_fail_shutdown(rmq_send *send) {
  const rmq_send *maker = rmq_send_maker(send);
  rmq_failure *failure = &send->failure;
  bool written = maker->phase == RMQ_PHASE_ATTEMPT && maker->encoded;
  rmq_send_withdraw(send);
  bool maybe_stored = written || rmq_failure_may_be_stored(failure);
  rmq_failure_set(
      failure, RMQ_KIND_STATE, 0,
      "Sending to topic \"%s\" was cut short because producer \"%s\" shut down.%s",
      send->topic->name, send->producer->settings.group,
      maybe_stored ? " The message may have been stored: a broker got it and did not answer." : "");
  failure->maybe_stored = maybe_stored;
  rmq_send_fail(send);
}

rmq_completion rmq_send_kept_completion(const rmq_send *send) {
  rmq_slice texts = rmq_buf_slice(&send->kept_texts);
  return (rmq_completion){
      .status = send->kept_status,
      .msg_id = rmq_slice_make(send->msg_id, send->msg_id_len),
      .topic = rmq_topic_name(send->topic),
      .broker = rmq_slice_make(texts.ptr, send->kept_broker_len),
      .reply = &send->kept,
      .attempts = send->attempts,
      .elapsed_us = rmq_send_elapsed_us(send),
      .index = send->index,
      .properties = rmq_send_properties(send),
      .body = rmq_send_body(send),
  };
}

void rmq_send_end_with_kept(rmq_send *send) {
  rmq_completion completion = rmq_send_kept_completion(send);
  rmq_send_complete(send, &completion);
}

void rmq_send_end_failed(rmq_send *send) {
  if (send->has_kept) {
    rmq_send_end_with_kept(send);
    return;
  }
  rmq_failure_conclude(&send->failure, rmq_topic_name(send->topic), rmq_send_elapsed_us(send));
  rmq_send_fail(send);
}

void rmq_send_end_with_success(rmq_send *send, rmq_send_status status,
                               const rmq_send_reply *reply) {
  rmq_completion completion = {
      .status = status,
      .msg_id = rmq_slice_make(send->msg_id, send->msg_id_len),
      .topic = rmq_topic_name(send->topic),
      .broker = rmq_slice_text(send->broker),
      .reply = reply,
      .attempts = send->attempts,
      .elapsed_us = rmq_send_elapsed_us(send),
      .properties = rmq_send_properties(send),
      .body = rmq_send_body(send),
  };
  rmq_send_complete(send, &completion);
}

#include "producer/recall.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/call.h"
#include "producer/core.h"
#include "producer/message.h"
#include "producer/trace.h"
#include "wire/codes.h"
#include "wire/recall.h"

typedef struct recall {
  rmq_producer *producer;
  rmq_recall_done *done;
  void *arg;
  char *topic;
  char *msg_id; /* as the handle says it */
  rmq_mono started;
} recall;

static recall *make(rmq_producer *producer, const rmq_recall_handle *handle, rmq_recall_done *done,
                    void *arg) {
  recall *asked = rmq_alloc(sizeof *asked);
  *asked = (recall){.producer = producer,
                    .done = done,
                    .arg = arg,
                    .topic = rmq_copy_text(handle->topic.ptr, handle->topic.len),
                    .msg_id = rmq_copy_text(handle->msg_id.ptr, handle->msg_id.len),
                    .started = rmq_transport_now(producer->transport)};
  return asked;
}

static void release(void *arg) {
  recall *asked = arg;
  free(asked->topic);
  free(asked->msg_id);
  free(asked);
}

enum { LONGEST_ID = 255 }; /* known ones have 32 characters */

/* Scripts log ids and compare them, so what a broker says is one only when it can be one. */
static bool is_id(rmq_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    unsigned char byte = (unsigned char)text.ptr[i];
    if (byte <= 0x20 || byte >= 0x7f) return false;
  }
  return text.len > 0 && text.len <= LONGEST_ID;
}

static void tell(recall *asked, const rmq_failure *failure, rmq_slice msg_id) {
  rmq_trace_recall(asked->producer, rmq_slice_text(asked->topic), rmq_slice_text(asked->msg_id),
                   !failure);
  asked->done(asked->arg, failure, msg_id);
  release(asked);
}

static void tell_that_it_is_no_id(recall *asked, const rmq_call_end *end) {
  rmq_failure failure;
  rmq_failure_init(&failure);
  rmq_failure_set(&failure, RMQ_KIND_CLOSED, 0,
                  "the answer of %.256s to RECALL_MESSAGE has no proper id; the message may be "
                  "recalled all the same: recall it again to be sure",
                  end->addr.ptr);
  failure.topic = rmq_copy_text(asked->topic, strlen(asked->topic));
  failure.broker = rmq_copy_text(end->broker.ptr, end->broker.len);
  failure.addr = rmq_copy_text(end->addr.ptr, end->addr.len);
  rmq_mono now = rmq_transport_now(asked->producer->transport);
  failure.elapsed_us = rmq_mono_diff_us(now, asked->started);
  tell(asked, &failure, (rmq_slice){NULL, 0});
  rmq_failure_clear(&failure);
}

static void called(void *arg, const rmq_call_end *end) {
  recall *asked = arg;
  rmq_slice msg_id = {NULL, 0};
  if (!end->failure) msg_id = rmq_header_field(end->header, "msgId");
  if (!end->failure && msg_id.len == 0) msg_id = rmq_slice_text(asked->msg_id);
  if (end->failure || is_id(msg_id)) {
    tell(asked, end->failure, msg_id);
  } else {
    tell_that_it_is_no_id(asked, end);
  }
}

static bool begins_with(rmq_slice text, const char *start) {
  size_t len = strlen(start);
  return text.len >= len && memcmp(text.ptr, start, len) == 0;
}

enum { SHOWN = 128 }; /* of a name that somebody else chose */

static int shown(rmq_slice text) { return (int)(text.len < SHOWN ? text.len : SHOWN); }

static int check_topic(rmq_slice topic, rmq_failure *why) {
  if (rmq_topic_check(topic, why) < 0) return RMQ_EINVAL;
  if (!begins_with(topic, "%RETRY%") && !begins_with(topic, "%DLQ%")) return 0;
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                  "topic \"%.*s\" is a consumer group's; its messages cannot be recalled",
                  shown(topic), topic.ptr);
  return RMQ_EINVAL;
}

static int check_handle(rmq_slice topic, rmq_slice text, rmq_buf *scratch,
                        rmq_recall_handle *handle, rmq_failure *why) {
  if (rmq_recall_handle_decode(text, scratch, handle) < 0) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                    "the recall handle \"%.*s\" is none; give the recall_handle of the result that "
                    "the message's send returned",
                    shown(text), text.len ? text.ptr : "");
    rmq_buf_plain(&why->message, 0);
    return RMQ_EINVAL;
  }
  if (rmq_slice_equal(handle->topic, topic)) return 0;
  rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_ILLEGAL_OPERATION,
                  "the recall handle is of a message to topic \"%.*s\", not to topic \"%.*s\"",
                  shown(handle->topic), handle->topic.ptr, shown(topic), topic.ptr);
  rmq_buf_plain(&why->message, 0);
  return RMQ_EINVAL;
}

static int call(rmq_producer *producer, rmq_slice topic, rmq_slice text, rmq_slice broker,
                int64_t timeout_ms, recall *asked) {
  rmq_field ext[] = {
      {rmq_slice_text("producerGroup"), producer->group},
      {rmq_slice_text("topic"), topic},
      {rmq_slice_text("recallHandle"), text},
      {rmq_slice_text("bname"), broker},
  };
  rmq_call_options options = {
      .code = RMQ_RECALL_MESSAGE,
      .broker = broker,
      .topic = topic,
      .ext = ext,
      .n_ext = sizeof ext / sizeof ext[0],
      .repeatable = true,
      .drop = release,
      .timeout_ms = timeout_ms > 0 ? timeout_ms : producer->settings.send_msg_timeout,
      .advice =
          "A broker recalls messages from 5.3.3 on when its recallMessageEnable is true, and "
          "only until their time has come.",
  };
  return rmq_producer_call(producer, &options, called, asked);
}

int rmq_producer_recall(rmq_producer *producer, rmq_slice topic, rmq_slice handle,
                        int64_t timeout_ms, rmq_recall_done *done, void *arg) {
  rmq_buf scratch = {0};
  rmq_recall_handle parts;
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = check_topic(topic, &producer->refusal);
  if (status == 0) status = check_handle(topic, handle, &scratch, &parts, &producer->refusal);
  if (status == 0) {
    recall *asked = make(producer, &parts, done, arg);
    status = call(producer, topic, handle, parts.broker, timeout_ms, asked);
    if (status < 0) release(asked);
  }
  rmq_buf_free(&scratch);
  return status;
}

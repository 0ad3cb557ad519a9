#include <stdlib.h>

#include "base/error.h"
#include "producer/admin_core.h"
#include "producer/message.h"
#include "wire/codes.h"
#include "wire/number.h"

/* Questions about one queue, to its broker. */

typedef struct asking {
  rmq_admin admin;
  rmq_offset_kind kind;
  int64_t value;
  rmq_offset_done *done;
  void *arg;
} asking;

static asking *asking_of(rmq_admin *admin) { return (asking *)(void *)admin; }

static void tell(rmq_admin *admin, const rmq_failure *failure) {
  const asking *a = asking_of(admin);
  a->done(a->arg, failure, a->value);
}

static void release(rmq_admin *admin) { free(admin); }

static int32_t code_of(rmq_offset_kind kind) {
  switch (kind) {
    case RMQ_OFFSET_MAX:
      return RMQ_GET_MAX_OFFSET;
    case RMQ_OFFSET_MIN:
      return RMQ_GET_MIN_OFFSET;
    case RMQ_OFFSET_AT_TIME:
      return RMQ_SEARCH_OFFSET_BY_TIMESTAMP;
    case RMQ_OFFSET_EARLIEST:
      break;
  }
  return RMQ_GET_EARLIEST_MSG_STORETIME;
}

static void answered(void *arg, const rmq_call_end *end) {
  asking *a = arg;
  rmq_failure *failure = &a->admin.failure;
  if (end->failure) {
    rmq_admin_end(&a->admin, end->failure);
    return;
  }
  const char *field = a->kind == RMQ_OFFSET_EARLIEST ? "timestamp" : "offset";
  if (rmq_header_i64(end->header, field, &a->value) == 1) {
    rmq_admin_end(&a->admin, NULL);
    return;
  }
  rmq_failure_set(failure, RMQ_KIND_CLOSED, 0, "the answer of %.256s to %s has no proper %s",
                  end->addr.ptr, rmq_request_code_name(code_of(a->kind)), field);
  rmq_admin_end(&a->admin, failure);
}

static int check(rmq_producer *producer, const rmq_offset_question *question) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_topic_check(question->topic, &producer->refusal);
  if (status < 0 || question->queue.id >= 0) return status;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                  "queue id %d is negative; ids start at 0", question->queue.id);
  return RMQ_EINVAL;
}

int rmq_producer_ask_offset(rmq_producer *producer, const rmq_offset_question *question,
                            rmq_offset_done *done, void *arg) {
  int status = check(producer, question);
  if (status < 0) return status;
  char id[RMQ_NUMBER_MAX], time[RMQ_NUMBER_MAX];
  const rmq_field ext[] = {
      {rmq_slice_text("topic"), question->topic},
      {rmq_slice_text("queueId"), {id, rmq_number_write(id, question->queue.id)}},
      {rmq_slice_text("bname"), question->queue.broker},
      {rmq_slice_text("timestamp"), {time, rmq_number_write(time, question->time_ms)}}};
  asking *a = rmq_admin_new(producer, sizeof *a, question->timeout_ms);
  a->admin.tell = tell;
  a->admin.release = release;
  a->kind = question->kind;
  a->done = done;
  a->arg = arg;
  rmq_call_options options = {.code = code_of(question->kind),
                              .broker = question->queue.broker,
                              .topic = question->topic,
                              .ext = ext,
                              .n_ext = question->kind == RMQ_OFFSET_AT_TIME ? 4 : 3,
                              .repeatable = true,
                              .timeout_ms = rmq_admin_left_ms(&a->admin)};
  status = rmq_producer_call(producer, &options, answered, a);
  if (status < 0) rmq_admin_drop(&a->admin);
  return status;
}

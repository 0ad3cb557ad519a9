#include "wire/reply.h"

#include "base/error.h"

/* Numbers that may be absent, as in Java; what stands there must be one. */
static int read_i32(const rmq_header *header, const char *name, int32_t *out, const char **wrong) {
  if (rmq_header_i32(header, name, out) >= 0) return 0;
  *wrong = name;
  return RMQ_EPROTO;
}

static int read_i64(const rmq_header *header, const char *name, int64_t *out, const char **wrong) {
  if (rmq_header_i64(header, name, out) >= 0) return 0;
  *wrong = name;
  return RMQ_EPROTO;
}

int rmq_pushed_reply_decode(const rmq_header *header, rmq_slice body, rmq_pushed_reply *out,
                            const char **wrong) {
  *out = (rmq_pushed_reply){.born_host = rmq_header_field(header, "bornHost"),
                            .store_host = rmq_header_field(header, "storeHost")};
  rmq_stored_message *message = &out->message;
  message->topic = rmq_header_field(header, "topic");
  message->properties = rmq_header_field(header, "properties");
  message->body = body;
  if (read_i32(header, "queueId", &message->queue_id, wrong) < 0 ||
      read_i32(header, "sysFlag", &message->sys_flag, wrong) < 0 ||
      read_i32(header, "flag", &message->flag, wrong) < 0 ||
      read_i32(header, "reconsumeTimes", &message->reconsume_times, wrong) < 0 ||
      read_i64(header, "bornTimestamp", &message->born_ms, wrong) < 0 ||
      read_i64(header, "storeTimestamp", &message->stored_ms, wrong) < 0) {
    return RMQ_EPROTO;
  }
  *wrong = NULL;
  return 0;
}

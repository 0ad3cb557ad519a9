#include "header_check.h"
#include "wire/codes.h"
#include "wire/send.h"

static void require_same(const rmq_send_header *a, const rmq_send_header *b) {
  fuzz_require(rmq_slice_equal(a->producer_group, b->producer_group) &&
                   rmq_slice_equal(a->topic, b->topic) &&
                   rmq_slice_equal(a->default_topic, b->default_topic) &&
                   rmq_slice_equal(a->properties, b->properties) &&
                   rmq_slice_equal(a->broker_name, b->broker_name),
               "the texts are the same");
  fuzz_require(a->default_topic_queue_nums == b->default_topic_queue_nums &&
                   a->queue_id == b->queue_id && a->sys_flag == b->sys_flag &&
                   a->born_timestamp == b->born_timestamp && a->flag == b->flag &&
                   a->reconsume_times == b->reconsume_times &&
                   a->max_reconsume_times == b->max_reconsume_times,
               "the numbers are the same");
  fuzz_require(a->unit_mode == b->unit_mode && a->batch == b->batch, "the booleans are the same");
}

/* The first byte chooses the serialization and whether it is V1 or V2, the rest is a header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch, other_scratch, out;
  static rmq_header header, other;
  rmq_send_header send, again;
  rmq_frame frame;
  const char *missing = NULL;
  if (size == 0) return 0;
  rmq_serialize serialize = data[0] & 1 ? RMQ_SERIALIZE_ROCKETMQ : RMQ_SERIALIZE_JSON;
  rmq_slice bytes = rmq_slice_make(data + 1, size - 1);
  if (rmq_header_decode(serialize, bytes, &scratch, &header) != 0) return 0;
  header.code = data[0] & 2 ? RMQ_SEND_MESSAGE : RMQ_SEND_MESSAGE_V2;
  if (rmq_send_header_decode(&header, &send, &missing) != 0) {
    fuzz_require(missing != NULL, "an error names the field");
    return 0;
  }
  rmq_buf_clear(&out);
  rmq_send_request_encode(&out, serialize, RMQ_SEND_MESSAGE_V2, 7, 0, &send,
                          rmq_slice_make("body", 4));
  fuzz_require(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL) == 1, "it is a frame again");
  fuzz_require(rmq_slice_is(frame.body, "body"), "the body is where it was put");
  fuzz_require(rmq_header_decode(serialize, frame.header, &other_scratch, &other) == 0,
               "its header decodes");
  fuzz_require(other.opaque == 7 && other.code == RMQ_SEND_MESSAGE_V2, "code and opaque stay");
  fuzz_require(rmq_send_header_decode(&other, &again, &missing) == 0, "it is a send again");
  require_same(&send, &again);
  return 0;
}

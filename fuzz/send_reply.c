#include "header_check.h"
#include "wire/send.h"

/* The first byte chooses the serialization, the rest is a header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch, out;
  static rmq_header header;
  rmq_send_reply reply, again;
  rmq_frame_writer writer;
  rmq_frame frame;
  const char *missing = NULL;
  if (size == 0) return 0;
  rmq_serialize serialize = data[0] & 1 ? RMQ_SERIALIZE_ROCKETMQ : RMQ_SERIALIZE_JSON;
  rmq_slice bytes = rmq_slice_make(data + 1, size - 1);
  if (rmq_header_decode(serialize, bytes, &scratch, &header) != 0) return 0;
  if (rmq_send_reply_decode(&header, &reply, &missing) != 0) {
    fuzz_require(missing != NULL, "an error names the field");
    return 0;
  }
  fuzz_require_within(reply.msg_id, bytes, &scratch);
  rmq_command command = rmq_command_request(0, 1, 1);
  rmq_buf_clear(&out);
  rmq_frame_begin(&writer, &out, serialize, &command);
  rmq_send_reply_write(&writer, &reply);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
  static rmq_buf other_scratch;
  fuzz_require(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL) == 1, "it is a frame again");
  fuzz_require(rmq_header_decode(serialize, frame.header, &other_scratch, &header) == 0,
               "its header decodes");
  fuzz_require(rmq_send_reply_decode(&header, &again, &missing) == 0, "it is a reply again");
  fuzz_require(rmq_slice_equal(reply.msg_id, again.msg_id) && reply.queue_id == again.queue_id &&
                   reply.queue_offset == again.queue_offset && reply.trace_on == again.trace_on,
               "id, queue, offset and trace are the same");
  fuzz_require(rmq_slice_equal(reply.transaction_id, again.transaction_id) &&
                   rmq_slice_equal(reply.batch_uniq_id, again.batch_uniq_id) &&
                   rmq_slice_equal(reply.recall_handle, again.recall_handle) &&
                   rmq_slice_equal(reply.region_id, again.region_id),
               "the texts are the same");
  return 0;
}

#include "fuzz.h"
#include "wire/recall.h"

/* What was read is written again, and read as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch, again_scratch, text;
  rmq_recall_handle handle, again;
  if (rmq_recall_handle_decode(rmq_slice_make(data, size), &scratch, &handle) < 0) return 0;
  fuzz_require_inside(handle.topic, rmq_buf_slice(&scratch));
  fuzz_require_inside(handle.broker, rmq_buf_slice(&scratch));
  fuzz_require_inside(handle.msg_id, rmq_buf_slice(&scratch));
  rmq_buf_clear(&text);
  rmq_recall_handle_encode(&text, &handle);
  fuzz_require(rmq_recall_handle_decode(rmq_buf_slice(&text), &again_scratch, &again) == 0,
               "it is read again");
  fuzz_require(
      rmq_slice_equal(handle.topic, again.topic) && rmq_slice_equal(handle.broker, again.broker) &&
          rmq_slice_equal(handle.msg_id, again.msg_id) && handle.deliver_at == again.deliver_at,
      "it is the same");
  return 0;
}

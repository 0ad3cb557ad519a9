#include "header_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch;
  static rmq_header header;
  rmq_slice bytes = rmq_slice_make(data, size);
  if (rmq_header_decode(RMQ_SERIALIZE_ROCKETMQ, bytes, &scratch, &header) != 0) return 0;
  require_fields_within(&header, bytes, &scratch);
  require_round_trip(RMQ_SERIALIZE_ROCKETMQ, &header);
  return 0;
}

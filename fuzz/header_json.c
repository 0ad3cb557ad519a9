#include "header_check.h"

/* The fast way and the general reader agree about every input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch, other_scratch;
  static rmq_header header, other;
  rmq_slice bytes = rmq_slice_make(data, size);
  int err = rmq_header_decode(RMQ_SERIALIZE_JSON, bytes, &scratch, &header);
  int other_err = rmq_header_decode_json(bytes, &other_scratch, &other);
  fuzz_require(err == other_err, "both ways agree whether it is a header");
  if (err) return 0;
  require_same_header(&header, &other);
  require_fields_within(&header, bytes, &scratch);
  require_round_trip(RMQ_SERIALIZE_JSON, &header);
  return 0;
}

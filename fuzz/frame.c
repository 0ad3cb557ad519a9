#include "wire/frame.h"
#include "base/error.h"
#include "fuzz.h"

/* What is decided about some bytes stays when more of them come. */
static void check_prefixes(rmq_slice bytes, int result) {
  for (size_t len = 0; len < bytes.len && len < 64; len++) {
    rmq_frame frame;
    int early = rmq_frame_split(rmq_slice_make(bytes.ptr, len), &frame, NULL);
    fuzz_require(early == 0 || early == result || (early < 0 && result < 0),
                 "a longer input changes no decision");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rmq_slice bytes = rmq_slice_make(data, size);
  rmq_frame frame;
  const char *why = NULL;
  int result = rmq_frame_split(bytes, &frame, &why);
  check_prefixes(bytes, result);
  if (result < 0) {
    fuzz_require(result == RMQ_EPROTO || result == RMQ_ELIMIT, "the error is one of two");
    fuzz_require(why != NULL, "an error has a reason");
  }
  if (result != 1) return 0;
  fuzz_require_inside(frame.header, bytes);
  fuzz_require_inside(frame.body, bytes);
  fuzz_require(frame.size <= size && frame.size == 8 + frame.header.len + frame.body.len,
               "the parts make up the frame");
  return 0;
}

#include "wire/batch.h"
#include "fuzz.h"
#include "wire/properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf out;
  rmq_slice input = rmq_slice_make(data, size);
  rmq_slice rest = input;
  rmq_batch_member member;
  int got;
  rmq_buf_clear(&out);
  while ((got = rmq_batch_next(&rest, &member)) == 1) {
    fuzz_require_inside(member.body, input);
    fuzz_require_inside(member.properties, input);
    fuzz_require(rmq_batch_put(&out, &member) == 0, "what was read can be written");
  }
  fuzz_require((got == 0) == (rest.len == 0), "the end is where nothing is left");
  rmq_slice written = rmq_buf_slice(&out);
  fuzz_require(written.len + rest.len == size, "it takes as many bytes as before");
  for (rmq_slice a = input, b = written; b.len > 0;) {
    rmq_batch_member again;
    fuzz_require(rmq_batch_next(&a, &member) == 1 && rmq_batch_next(&b, &again) == 1,
                 "it is read again");
    fuzz_require(member.flag == again.flag && rmq_slice_equal(member.body, again.body) &&
                     rmq_slice_equal(member.properties, again.properties),
                 "a member is the same");
  }
  return 0;
}

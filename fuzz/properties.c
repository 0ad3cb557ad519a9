#include "wire/properties.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf out;
  rmq_slice input = rmq_slice_make(data, size);
  rmq_slice rest = input;
  rmq_field pair, again;
  size_t count = 0;
  rmq_buf_clear(&out);
  while (rmq_properties_next(&rest, &pair)) {
    fuzz_require_inside(pair.name, input);
    fuzz_require_inside(pair.value, input);
    bool plain = !memchr(pair.value.ptr, 1, pair.value.len);
    /* A value may have a second 0x01 in it, as Java only looks for the first; it cannot be written again. */
    fuzz_require((rmq_properties_put(&out, pair.name, pair.value) == 0) == plain,
                 "what was read can be written");
    if (plain) count++;
  }
  fuzz_require(rest.len == 0, "everything was read");
  rest = rmq_buf_slice(&out);
  while (rmq_properties_next(&rest, &again)) count--;
  fuzz_require(count == 0, "as many pairs are read again as were written");
  return 0;
}

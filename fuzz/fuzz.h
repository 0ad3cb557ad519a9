#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, which the fuzzer reports with the input, when something does not hold. */
static inline void fuzz_require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "does not hold: %s\n", what);
  abort();
}

/* A slice that a decoder gave lies inside `whole`, or is empty. */
static inline void fuzz_require_inside(rmq_slice part, rmq_slice whole) {
  if (part.len == 0) return;
  uintptr_t begin = (uintptr_t)whole.ptr;
  uintptr_t at = (uintptr_t)part.ptr;
  fuzz_require(at >= begin && at - begin <= whole.len && part.len <= whole.len - (at - begin),
               "a slice lies inside its input");
}

/* The same for text that may also lie in the scratch buffer. */
static inline void fuzz_require_within(rmq_slice part, rmq_slice whole, const rmq_buf *scratch) {
  rmq_slice used = rmq_buf_slice(scratch);
  uintptr_t at = (uintptr_t)part.ptr;
  bool in_scratch =
      used.len > 0 && at >= (uintptr_t)used.ptr && at <= (uintptr_t)used.ptr + used.len;
  fuzz_require_inside(part, in_scratch ? used : whole);
}

#endif

#include "wire/json.h"
#include "base/utf8.h"
#include "fuzz.h"

static void check_text(const rmq_json *json, rmq_slice input, rmq_json_type type) {
  static rmq_buf quoted, scratch;
  rmq_json again;
  fuzz_require_within(json->text, input, json->scratch);
  if (type != RMQ_JSON_STRING) return;
  fuzz_require(rmq_utf8_invalid_at(json->text) == json->text.len, "a string is valid UTF-8");
  rmq_buf_clear(&quoted);
  rmq_buf_clear(&scratch);
  rmq_json_quote(&quoted, json->text);
  rmq_json_init(&again, rmq_buf_slice(&quoted), &scratch);
  fuzz_require(rmq_json_next(&again) == RMQ_JSON_STRING, "a quoted text is a string again");
  fuzz_require(rmq_slice_equal(again.text, json->text), "and the same one");
  fuzz_require(rmq_json_next(&again) == RMQ_JSON_END, "with nothing after it");
}

/* Skipping the value at once ends as going through it does. */
static void check_skip(rmq_slice input, rmq_json_type end) {
  static rmq_buf scratch;
  rmq_json json;
  rmq_buf_clear(&scratch);
  rmq_json_init(&json, input, &scratch);
  bool skipped = rmq_json_skip(&json, rmq_json_next(&json)) == 0;
  bool whole = skipped && rmq_json_next(&json) == RMQ_JSON_END;
  fuzz_require(whole == (end == RMQ_JSON_END), "skipping agrees with reading");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf scratch;
  rmq_slice input = rmq_slice_make(data, size);
  rmq_json json;
  rmq_json_type type;
  size_t tokens = 0;
  rmq_buf_clear(&scratch);
  rmq_json_init(&json, input, &scratch);
  do {
    type = rmq_json_next(&json);
    fuzz_require(json.depth <= RMQ_JSON_DEPTH, "the depth is bounded");
    fuzz_require(tokens++ <= size, "every token but the end takes a byte");
    check_text(&json, input, type);
  } while (type != RMQ_JSON_ERROR && type != RMQ_JSON_END);
  fuzz_require(type == RMQ_JSON_END || json.problem != NULL, "an error has a reason");
  fuzz_require(rmq_json_next(&json) == type, "the end stays the end");
  check_skip(input, type);
  return 0;
}

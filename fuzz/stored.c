#include "wire/stored.h"
#include "fuzz.h"
#include "wire/properties.h"

static void require_same(const rmq_stored_message *a, const rmq_stored_message *b) {
  fuzz_require(a->sys_flag == b->sys_flag && a->queue_offset == b->queue_offset &&
                   a->log_offset == b->log_offset && a->born_ms == b->born_ms &&
                   a->stored_ms == b->stored_ms && a->prepared_offset == b->prepared_offset &&
                   a->flag == b->flag && a->queue_id == b->queue_id && a->body_crc == b->body_crc &&
                   a->reconsume_times == b->reconsume_times,
               "numbers are the same");
  fuzz_require(rmq_slice_equal(a->body, b->body) && rmq_slice_equal(a->topic, b->topic) &&
                   rmq_slice_equal(a->properties, b->properties),
               "texts are the same");
  fuzz_require(a->born_host.port == b->born_host.port && a->store_host.port == b->store_host.port &&
                   memcmp(a->born_host.ip, b->born_host.ip, 16) == 0 &&
                   memcmp(a->store_host.ip, b->store_host.ip, 16) == 0,
               "hosts are the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf out;
  rmq_slice input = rmq_slice_make(data, size);
  rmq_slice rest = input;
  rmq_stored_message message, again;
  char id[RMQ_UNIQUE_ID_MAX];
  int got;
  while ((got = rmq_stored_next(&rest, &message)) == 1) {
    fuzz_require_inside(message.body, input);
    fuzz_require_inside(message.topic, input);
    fuzz_require_inside(message.properties, input);
    int len = rmq_stored_offset_id(&message, id);
    fuzz_require(len == 32 || len == 56, "it has an offset id");
    rmq_buf_clear(&out);
    bool fits = message.topic.len <= 127;
    fuzz_require((rmq_stored_put(&out, &message) == 0) == fits, "what was read can be written");
    rmq_slice written = rmq_buf_slice(&out);
    if (!fits) continue;
    fuzz_require(rmq_stored_next(&written, &again) == 1 && written.len == 0, "it is read again");
    require_same(&message, &again);
  }
  fuzz_require((got == 0) == (rest.len == 0), "the end is where nothing is left");
  return 0;
}

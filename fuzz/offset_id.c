#include "fuzz.h"
#include "wire/ids.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rmq_slice text = rmq_slice_make(data, size);
  rmq_offset_id id, again;
  char out[RMQ_UNIQUE_ID_MAX];
  if (rmq_offset_id_decode(text, &id) != 0) return 0;
  fuzz_require(id.port >= 0 && id.port <= 65535, "the port is one");
  int len = rmq_offset_id_encode(&id, out);
  fuzz_require((size_t)len == size, "it is as long as before");
  fuzz_require(rmq_offset_id_decode(rmq_slice_make(out, (size_t)len), &again) == 0,
               "it decodes again");
  fuzz_require(again.port == id.port && again.offset == id.offset && again.ip_len == id.ip_len &&
                   memcmp(again.ip, id.ip, sizeof id.ip) == 0,
               "it is the same");
  return 0;
}

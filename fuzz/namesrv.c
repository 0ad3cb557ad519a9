#include "wire/namesrv.h"
#include "base/error.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rmq_slice list = rmq_slice_make(data, size);
  rmq_slice rest = list;
  rmq_slice part;
  rmq_host_port parsed;
  const char *why = NULL;
  int got;
  while ((got = rmq_namesrv_next(&rest, &part, &why)) != 0) {
    fuzz_require_inside(part, list);
    if (got < 0) {
      fuzz_require(got == RMQ_EINVAL && why != NULL, "an error has a reason");
      continue;
    }
    fuzz_require(rmq_host_port_parse(part, &parsed, &why) == 0, "an address can be split");
    fuzz_require_inside(parsed.host, part);
    fuzz_require(parsed.host.len > 0 && parsed.port >= 1 && parsed.port <= 65535,
                 "host and port are there");
    fuzz_require(!memchr(part.ptr, ';', part.len) && !memchr(part.ptr, ' ', part.len),
                 "nothing of the list is left in an address");
  }
  fuzz_require(rest.len == 0, "the whole list was read");
  return 0;
}

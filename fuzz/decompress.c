#include "fuzz.h"
#include "wire/compress.h"

enum { LIMIT = 1 << 20 };

/* The first byte chooses the kind, as the three bits of sysFlag say it. What comes out of a body is
 * compressed again and must come out the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf out, packed, again;
  if (size == 0) return 0;
  int kind = data[0] & 7;
  rmq_buf_clear(&out);
  rmq_buf_text(&out, "before");
  int status = rmq_decompress(1 | kind << 8, rmq_slice_make(data + 1, size - 1), LIMIT, &out);
  size_t len = rmq_buf_len(&out) - 6;
  fuzz_require(memcmp(rmq_buf_head(&out), "before", 6) == 0, "what was there stays");
  fuzz_require(status == 0 || len == 0, "a failure gives nothing");
  fuzz_require(len <= LIMIT, "the limit holds");
  if (len == 0 || len > 4096) return 0;
  rmq_slice body = rmq_slice_make(rmq_buf_head(&out) + 6, len);
  rmq_compression compression = kind == 0 ? RMQ_COMPRESSION_ZLIB : (rmq_compression)kind;
  rmq_compressor *compressor = rmq_compressor_new(compression, 1 + data[0] % 9);
  rmq_buf_clear(&packed);
  rmq_buf_clear(&again);
  if (rmq_compress(compressor, body, &packed)) {
    fuzz_require(rmq_buf_len(&packed) < len, "it is shorter");
    int32_t flags = rmq_compression_flags(compression);
    fuzz_require(rmq_decompress(flags, rmq_buf_slice(&packed), len, &again) == 0, "it is read");
    fuzz_require(rmq_slice_equal(body, rmq_buf_slice(&again)), "it is the same");
  }
  rmq_compressor_free(compressor);
  return 0;
}

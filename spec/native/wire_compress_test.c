/* Compressed bodies: what is written can be read, and what cannot be read is refused in bounds. */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "wire/compress.h"

static rmq_buf packed, out;

static const rmq_compression all[] = {RMQ_COMPRESSION_LZ4, RMQ_COMPRESSION_ZSTD,
                                      RMQ_COMPRESSION_ZLIB};
enum { ALL = sizeof all / sizeof all[0], LONG = 5 * 1024 * 1024 };

/* Words in a row that no generator repeats too soon: text-like, and the same in each run. */
static uint8_t *text_of(size_t len) {
  uint8_t *text = malloc(len);
  uint32_t state = 1;
  for (size_t i = 0; i < len; i++) {
    state = state * 1664525 + 1013904223;
    text[i] = (uint8_t)("abcdefgh \n\":,{}1"[state >> 28]);
    if (i > 64 && i % 7 != 0) text[i] = text[i - 32];
  }
  return text;
}

static uint8_t *noise_of(size_t len) {
  uint8_t *noise = malloc(len);
  uint32_t state = 7;
  for (size_t i = 0; i < len; i++) {
    state = state * 1664525 + 1013904223;
    noise[i] = (uint8_t)(state >> 24);
  }
  return noise;
}

static bool pack(rmq_compression compression, int level, const void *body, size_t len) {
  rmq_compressor *compressor = rmq_compressor_new(compression, level);
  rmq_buf_clear(&packed);
  bool shorter = rmq_compress(compressor, rmq_slice_make(body, len), &packed);
  rmq_compressor_free(compressor);
  return shorter;
}

static int unpack(int32_t sys_flag, size_t limit) {
  rmq_buf_clear(&out);
  return rmq_decompress(sys_flag, rmq_buf_slice(&packed), limit, &out);
}

static void names_and_flags(void) {
  rmq_compression compression;
  CHECK_INT(rmq_compression_of_name(rmq_slice_text("zlib"), &compression), 0);
  CHECK_INT(rmq_compression_flags(compression), 0x301);
  CHECK_INT(rmq_compression_of_name(rmq_slice_text("lz4"), &compression), 0);
  CHECK_INT(rmq_compression_flags(compression), 0x101);
  CHECK_INT(rmq_compression_of_name(rmq_slice_text("zstd"), &compression), 0);
  CHECK_INT(rmq_compression_flags(compression), 0x201);
  CHECK_INT(rmq_compression_of_name(rmq_slice_text("gzip"), &compression), RMQ_EINVAL);
}

static void every_length_comes_back(void) {
  static const size_t lengths[] = {40, 100, 4096, 65535, 65536, 65537, 262145, LONG};
  uint8_t *body = text_of(LONG);
  for (size_t i = 0; i < ALL; i++) {
    for (size_t j = 0; j < sizeof lengths / sizeof lengths[0]; j++) {
      bool shorter = pack(all[i], 5, body, lengths[j]);
      if (!shorter) {
        CHECK(lengths[j] <= 100);
        continue;
      }
      CHECK(rmq_buf_len(&packed) < lengths[j]);
      CHECK_INT(unpack(rmq_compression_flags(all[i]), lengths[j]), 0);
      CHECK(rmq_slice_equal(rmq_buf_slice(&out), rmq_slice_make(body, lengths[j])));
      CHECK_INT(unpack(rmq_compression_flags(all[i]), lengths[j] - 1), RMQ_ELIMIT);
      CHECK_INT(rmq_buf_len(&out), 0);
    }
  }
  free(body);
}

static void every_level_comes_back(void) {
  uint8_t *body = text_of(20000);
  for (size_t i = 0; i < ALL; i++) {
    for (int level = 1; level <= rmq_compression_level_max(all[i]); level++) {
      CHECK(pack(all[i], level, body, 20000));
      CHECK_INT(unpack(rmq_compression_flags(all[i]), 20000), 0);
      CHECK(rmq_slice_equal(rmq_buf_slice(&out), rmq_slice_make(body, 20000)));
    }
  }
  free(body);
}

static void what_gets_no_shorter_is_left(void) {
  uint8_t *noise = noise_of(100000);
  for (size_t i = 0; i < ALL; i++) {
    CHECK(!pack(all[i], 5, noise, 100000));
    CHECK(!pack(all[i], 5, noise, 1));
    CHECK(!pack(all[i], 5, noise, 0));
    CHECK_INT(rmq_buf_len(&packed), 0);
  }
  free(noise);
}

/* What looks random at every place, and is not. */
static void repeated_noise_is_found(void) {
  enum { PART = 3000, WHOLE = 4 * PART };
  uint8_t *noise = noise_of(WHOLE);
  for (size_t i = PART; i < WHOLE; i++) noise[i] = noise[i - PART];
  for (size_t i = 0; i < ALL; i++) {
    CHECK(pack(all[i], 5, noise, WHOLE));
    CHECK(rmq_buf_len(&packed) < PART + 200);
    CHECK_INT(unpack(rmq_compression_flags(all[i]), WHOLE), 0);
    CHECK(rmq_slice_equal(rmq_buf_slice(&out), rmq_slice_make(noise, WHOLE)));
  }
  /* Random letters: no word of it comes again, and a quarter can be saved all the same. */
  for (size_t i = 0; i < WHOLE; i++) noise[i] = (uint8_t)('0' + (noise[i] & 63));
  CHECK(pack(RMQ_COMPRESSION_ZLIB, 5, noise, PART));
  CHECK(rmq_buf_len(&packed) < PART * 8 / 10);
  free(noise);
}

static void one_compressor_for_many(void) {
  uint8_t *body = text_of(30000);
  for (size_t i = 0; i < ALL; i++) {
    rmq_compressor *compressor = rmq_compressor_new(all[i], 5);
    for (size_t len = 30000; len > 1000; len -= 997) {
      rmq_buf_clear(&packed);
      CHECK(rmq_compress(compressor, rmq_slice_make(body, len), &packed));
      CHECK_INT(unpack(rmq_compression_flags(all[i]), len), 0);
      CHECK(rmq_slice_equal(rmq_buf_slice(&out), rmq_slice_make(body, len)));
    }
    rmq_compressor_free(compressor);
  }
  free(body);
}

/* Java reads no other: it knows blocks by themselves only. The bits of an LZ4 frame's first byte after
 * its magic number: version 01, independent blocks. */
static void lz4_blocks_are_independent(void) {
  uint8_t *body = text_of(LONG);
  CHECK(pack(RMQ_COMPRESSION_LZ4, 5, body, LONG));
  const uint8_t *frame = rmq_buf_head(&packed);
  CHECK(memcmp(frame, "\x04\x22\x4d\x18", 4) == 0);
  CHECK_INT(frame[4] & 0xe0, 0x60);
  free(body);
}

static void old_senders_say_only_that_it_is_compressed(void) {
  uint8_t *body = text_of(5000);
  CHECK(pack(RMQ_COMPRESSION_ZLIB, 5, body, 5000));
  CHECK_INT(unpack(0x1, 5000), 0);
  CHECK(rmq_slice_equal(rmq_buf_slice(&out), rmq_slice_make(body, 5000)));
  /* The other bits of sysFlag say nothing about the body. */
  CHECK_INT(unpack(0x301 | 0x2 | 0x8 | 0x30 | 0x80, 5000), 0);
  CHECK_INT(rmq_buf_len(&out), 5000);
  free(body);
}

static void not_compressed_is_copied(void) {
  rmq_buf_clear(&packed);
  rmq_buf_text(&packed, "plain");
  CHECK_INT(unpack(0x300, 5), 0);
  CHECK(rmq_slice_is(rmq_buf_slice(&out), "plain"));
  CHECK_INT(unpack(0, 4), RMQ_ELIMIT);
}

static void every_prefix_is_refused(void) {
  uint8_t *body = text_of(3000);
  for (size_t i = 0; i < ALL; i++) {
    CHECK(pack(all[i], 5, body, 3000));
    size_t whole = rmq_buf_len(&packed);
    for (size_t len = 0; len < whole; len++) {
      packed.end = packed.start + len;
      CHECK_INT(unpack(rmq_compression_flags(all[i]), 1 << 20), RMQ_EPROTO);
      CHECK_INT(rmq_buf_len(&out), 0);
    }
  }
  free(body);
}

static void unknown_kinds_are_refused(void) {
  rmq_buf_clear(&packed);
  rmq_buf_text(&packed, "no compressed bytes at all");
  for (int32_t kind = 0; kind <= 7; kind++) CHECK_INT(unpack(1 | kind << 8, 1000), RMQ_EPROTO);
}

/* A few KiB that become far more than any message may have. */
static void bombs_are_stopped_at_the_limit(void) {
  size_t len = (size_t)64 * 1024 * 1024;
  uint8_t *zeros = calloc(1, len);
  for (size_t i = 0; i < ALL; i++) {
    CHECK(pack(all[i], 9, zeros, len));
    rmq_buf_free(&out);
    CHECK_INT(unpack(rmq_compression_flags(all[i]), 1 << 20), RMQ_ELIMIT);
    CHECK_INT(rmq_buf_len(&out), 0);
    CHECK(out.cap <= 2 << 20);
  }
  free(zeros);
}

int main(void) {
  check_run("names and flags", names_and_flags);
  check_run("every length comes back", every_length_comes_back);
  check_run("every level comes back", every_level_comes_back);
  check_run("what gets no shorter is left", what_gets_no_shorter_is_left);
  check_run("repeated noise is found", repeated_noise_is_found);
  check_run("one compressor for many", one_compressor_for_many);
  check_run("LZ4 blocks are independent", lz4_blocks_are_independent);
  check_run("old senders say only that it is compressed",
            old_senders_say_only_that_it_is_compressed);
  check_run("not compressed is copied", not_compressed_is_copied);
  check_run("every prefix is refused", every_prefix_is_refused);
  check_run("unknown kinds are refused", unknown_kinds_are_refused);
  check_run("bombs are stopped at the limit", bombs_are_stopped_at_the_limit);
  rmq_buf_free(&packed);
  rmq_buf_free(&out);
  return check_end();
}

/* The compressed bytes of a body: made once, kept for every attempt, forgotten with the body. */
#include <stdlib.h>

#include "base/memory.h"
#include "check.h"
#include "producer/pack.h"

enum { LONG = 10000 };

static rmq_packer packer;
static rmq_pack pack;
static char body[LONG + 1];

static void begin(const char *kind) {
  char why[128];
  rmq_settings settings;
  rmq_settings_init(&settings);
  rmq_settings_set_text(&settings, rmq_setting_find(rmq_slice_text("compress_type")),
                        rmq_slice_text(kind), why, sizeof why);
  rmq_packer_init(&packer, &settings);
  rmq_settings_free(&settings);
  for (int i = 0; i < LONG; i++) body[i] = (char)('a' + i % 17);
}

static void end(void) {
  rmq_pack_free(&pack);
  rmq_packer_free(&packer);
}

static rmq_slice packed(size_t len, int32_t *flags) {
  *flags = 4;
  return rmq_pack_body(&pack, &packer, rmq_slice_make(body, len), flags);
}

static void once_for_every_attempt(void) {
  begin("zlib");
  int32_t flags;
  rmq_pack_set(&pack, &packer, LONG);
  rmq_slice first = packed(LONG, &flags);
  CHECK(first.len < LONG / 10);
  CHECK_INT(flags, 0x305); /* what was there stays */
  body[LONG / 2] = '!';    /* it is not looked at again */
  rmq_slice again = packed(LONG, &flags);
  CHECK(again.ptr == first.ptr && again.len == first.len);
  CHECK_INT(flags, 0x305);
  end();
}

static void anew_when_the_body_is_another_one(void) {
  begin("lz4");
  int32_t flags;
  rmq_pack_set(&pack, &packer, LONG);
  rmq_slice first = packed(LONG, &flags);
  char *copy = rmq_copy_text(first.ptr, first.len);
  body[LONG / 2] = '!';
  rmq_pack_set(&pack, &packer, LONG);
  rmq_slice again = packed(LONG, &flags);
  CHECK(!rmq_slice_equal(again, rmq_slice_make(copy, first.len)));
  rmq_pack_set(&pack, &packer, 10);
  CHECK(packed(10, &flags).ptr == body);
  CHECK_INT(flags, 4);
  free(copy);
  end();
}

static void short_ones_stay(void) {
  begin("zstd");
  int32_t flags;
  rmq_pack_set(&pack, &packer, 4095);
  CHECK(packed(4095, &flags).ptr == body);
  CHECK_INT(flags, 4);
  CHECK(packer.compressor == NULL); /* nothing is made ready for them */
  rmq_pack_set(&pack, &packer, 4096);
  CHECK(packed(4096, &flags).ptr != body);
  CHECK_INT(flags, 0x205);
  end();
}

static void what_gets_no_shorter_is_tried_once(void) {
  begin("zlib");
  int32_t flags;
  uint32_t state = 1;
  for (int i = 0; i < LONG; i++) {
    state = state * 1664525 + 1013904223;
    body[i] = (char)(state >> 24);
  }
  rmq_pack_set(&pack, &packer, LONG);
  CHECK(packed(LONG, &flags).ptr == body);
  CHECK_INT(flags, 4);
  memset(body, 'x', LONG);
  CHECK(packed(LONG, &flags).ptr == body);
  end();
}

/* The pool of sends may be large: what one long body needed must not stay in each. */
static void no_long_memory_stays(void) {
  begin("zlib");
  int32_t flags;
  size_t len = 8 * 1024 * 1024;
  char *huge = malloc(len);
  uint32_t state = 1;
  for (size_t i = 0; i < len; i++) {
    state = state * 1664525 + 1013904223;
    huge[i] = "0123456789abcdef"[state >> 28];
  }
  rmq_pack_set(&pack, &packer, len);
  flags = 0;
  rmq_slice bytes = rmq_pack_body(&pack, &packer, rmq_slice_make(huge, len), &flags);
  CHECK(bytes.len < len);
  CHECK(packer.scratch.cap <= 1024 * 1024);
  rmq_pack_clear(&pack);
  CHECK_INT(pack.bytes.cap, 0);
  rmq_pack_set(&pack, &packer, LONG);
  packed(LONG, &flags);
  uint8_t *kept = pack.bytes.data;
  rmq_pack_clear(&pack);
  CHECK(pack.bytes.data == kept && kept != NULL); /* a short one is */
  free(huge);
  end();
}

int main(void) {
  check_run("once for every attempt", once_for_every_attempt);
  check_run("anew when the body is another one", anew_when_the_body_is_another_one);
  check_run("short ones stay", short_ones_stay);
  check_run("what gets no shorter is tried once", what_gets_no_shorter_is_tried_once);
  check_run("no long memory stays", no_long_memory_stays);
  return check_end();
}

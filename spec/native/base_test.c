#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "check.h"

static void buf_appends_big_endian_and_consumes(void) {
  rmq_buf buf = {0}, empty = {0};
  CHECK(rmq_buf_slice(&empty).ptr == NULL);
  rmq_buf_u8(&buf, 0x01);
  rmq_buf_u16(&buf, 0x0203);
  rmq_buf_u32(&buf, 0x04050607);
  rmq_buf_u64(&buf, 0x08090a0b0c0d0e0f);
  rmq_buf_text(&buf, "xyz");
  const char *expected =
      "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
      "xyz";
  CHECK_INT(rmq_buf_len(&buf), 18);
  CHECK(memcmp(rmq_buf_head(&buf), expected, 18) == 0);
  rmq_buf_consume(&buf, 3);
  rmq_buf_put_u32(&buf, 0, 0xfffefdfc);
  CHECK(memcmp(rmq_buf_head(&buf), "\xff\xfe\xfd\xfc\x08", 5) == 0);
  rmq_buf_consume(&buf, rmq_buf_len(&buf));
  CHECK_INT(buf.start, 0);
  CHECK(buf.cap > 0);
  rmq_buf_trim(&buf, buf.cap);
  CHECK(buf.data != NULL);
  rmq_buf_trim(&buf, 0);
  CHECK(buf.data == NULL);
  rmq_buf_free(&buf);
}

static void buf_decimal_is_exact_at_the_limits(void) {
  const int64_t values[] = {0, 9, 10, -1, INT64_MAX, INT64_MIN};
  rmq_buf buf = {0};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)values[i]);
    rmq_buf_clear(&buf);
    rmq_buf_decimal(&buf, values[i]);
    CHECK(rmq_slice_is(rmq_buf_slice(&buf), text));
  }
  rmq_buf_free(&buf);
}

static void buf_printf_takes_any_length(void) {
  for (size_t len = 120; len < 140; len++) {
    char text[200];
    memset(text, 'a', len);
    text[len] = '\0';
    rmq_buf buf = {0};
    rmq_buf_text(&buf, "<");
    rmq_buf_printf(&buf, "%s>", text);
    CHECK_INT(rmq_buf_len(&buf), len + 2);
    CHECK(rmq_buf_head(&buf)[len + 1] == '>');
    rmq_buf_free(&buf);
  }
}

static void buf_plain_blanks_control_characters(void) {
  rmq_buf buf = {0};
  rmq_buf_text(&buf, "-\na\nb\x1b[2J\x7f\t\xc3\xa9");
  rmq_buf_u8(&buf, 0);
  rmq_buf_consume(&buf, 1);
  rmq_buf_plain(&buf, 1);
  rmq_slice text = rmq_buf_slice(&buf);
  CHECK(rmq_slice_is(text, "\na b [2J  \xc3\xa9 "));
  rmq_buf_free(&buf);
}

static void buf_keeps_its_memory_flat(void) {
  rmq_buf buf = {0};
  uint8_t next = 0, expected = 0;
  for (int round = 0; round < 10000; round++) {
    for (int i = 0; i < 100; i++) rmq_buf_u8(&buf, next++);
    for (int i = 0; i < (round < 10 ? 50 : 100); i++) {
      if (*rmq_buf_head(&buf) != expected++) CHECK(false);
      rmq_buf_consume(&buf, 1);
    }
  }
  CHECK_INT(rmq_buf_len(&buf), 500);
  CHECK(buf.cap <= 4096);
  rmq_buf_free(&buf);
}

static void buf_does_what_a_plain_array_does(void) {
  enum { MOST = 20000 };
  static uint8_t model[MOST];
  size_t len = 0;
  uint32_t state = 7;
  rmq_buf buf = {0};
  for (int step = 0; step < 20000; step++) {
    state = state * 1664525 + 1013904223;
    size_t amount = state >> 16 & 511;
    if (state >> 31 && len + amount <= MOST) {
      uint8_t *at = rmq_buf_reserve(&buf, amount);
      for (size_t i = 0; i < amount; i++) model[len + i] = at[i] = (uint8_t)(step + (int)i);
      rmq_buf_commit(&buf, amount);
      len += amount;
    } else {
      if (amount > len) amount = len;
      rmq_buf_consume(&buf, amount);
      memmove(model, model + amount, len - amount);
      len -= amount;
    }
    if (!rmq_slice_equal(rmq_buf_slice(&buf), rmq_slice_make(model, len))) {
      CHECK(false);
      break;
    }
  }
  rmq_buf_free(&buf);
}

static void cursor_reads_and_never_past_the_end(void) {
  const char bytes[] = "\xff\x80\x01\xff\xff\xff\xfe\x80\x00\x00\x00\x00\x00\x00\x01";
  for (size_t len = 0; len < sizeof bytes; len++) {
    char *exact = rmq_copy_text(bytes, len); /* a sanitizer sees what is read beyond it */
    rmq_cursor c = rmq_cursor_make(rmq_slice_make(exact, len));
    uint8_t a = rmq_cursor_u8(&c);
    int16_t b = rmq_cursor_i16(&c);
    int32_t d = rmq_cursor_i32(&c);
    int64_t e = rmq_cursor_i64(&c);
    CHECK_INT(a, len >= 1 ? 255 : 0);
    CHECK_INT(b, len >= 3 ? -32767 : 0);
    CHECK_INT(d, len >= 7 ? -2 : 0);
    CHECK_INT(e, len >= 15 ? INT64_MIN + 1 : 0);
    CHECK_INT(c.failed, len < 15);
    CHECK_INT(rmq_cursor_left(&c), 0);
    free(exact);
  }
}

static void cursor_stays_failed(void) {
  rmq_cursor c = rmq_cursor_make(rmq_slice_make("abcd", 4));
  CHECK_INT(rmq_cursor_u64(&c), 0);
  CHECK(c.failed);
  CHECK_INT(rmq_cursor_u8(&c), 0);
  CHECK_INT(rmq_cursor_bytes(&c, 1).len, 0);
}

static void cursor_refuses_bad_lengths(void) {
  const int64_t bad[] = {-1, INT64_MIN, 5, INT64_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    rmq_cursor c = rmq_cursor_make(rmq_slice_make("abcd", 4));
    CHECK(rmq_cursor_bytes(&c, bad[i]).ptr == NULL);
    CHECK(c.failed);
  }
  rmq_cursor c = rmq_cursor_make(rmq_slice_make("abcd", 4));
  CHECK(rmq_slice_is(rmq_cursor_bytes(&c, 3), "abc"));
  CHECK_INT(rmq_cursor_left(&c), 1);
  CHECK(rmq_slice_is(rmq_cursor_bytes(&c, 0), ""));
  CHECK(!c.failed);
  rmq_cursor empty = rmq_cursor_make(rmq_slice_make(NULL, 0));
  CHECK_INT(rmq_cursor_bytes(&empty, 0).len, 0);
  CHECK(!empty.failed);
}

static void utf8_knows_every_boundary(void) {
  static const struct {
    const char *text;
    int invalid_at; /* -1: all of it is valid */
  } cases[] = {
      {"", -1},
      {"plain ascii, longer than eight bytes", -1},
      {"\xc2\x80", -1},
      {"\xdf\xbf", -1},
      {"\xe0\xa0\x80", -1},
      {"\xed\x9f\xbf", -1},
      {"\xee\x80\x80", -1},
      {"\xef\xbf\xbf", -1},
      {"\xf0\x90\x80\x80", -1},
      {"\xf4\x8f\xbf\xbf", -1},
      {"\x80", 0},
      {"\xc0\x80", 0},
      {"\xc1\xbf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xed\xa0\x80", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xff", 0},
      {"12345678\xc3", 8},
      {"1234567\xc3\xa9\xc3(", 9},
      {"abc\xe2\x82", 3},
      {"abc\xf0\x9f\x98", 3},
      {"\xe4\xb8\xad\xe6\x96\x87\xf0\x9f\x98\x80\xe4\xb8(", 10},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rmq_slice text = rmq_slice_text(cases[i].text);
    size_t expected = cases[i].invalid_at < 0 ? text.len : (size_t)cases[i].invalid_at;
    CHECK_INT(rmq_utf8_invalid_at(text), expected);
  }
}

/* The definition of RFC 3629, the other way round: decode, and ask what the code point is. */
static bool decodes(const uint8_t *b, size_t n) {
  uint32_t point;
  if (n == 2 && b[0] >> 5 == 6) {
    point = (b[0] & 31u) << 6 | (b[1] & 63u);
    return b[1] >> 6 == 2 && point >= 0x80;
  }
  if (n == 3 && b[0] >> 4 == 14) {
    point = (b[0] & 15u) << 12 | (b[1] & 63u) << 6 | (b[2] & 63u);
    return b[1] >> 6 == 2 && b[2] >> 6 == 2 && point >= 0x800 && (point < 0xd800 || point > 0xdfff);
  }
  return false;
}

static void utf8_agrees_with_decoding(void) {
  for (unsigned a = 0x80; a < 0x100; a++) {
    for (unsigned b = 0x80; b < 0x100; b++) {
      uint8_t two[2] = {(uint8_t)a, (uint8_t)b};
      bool valid = rmq_utf8_invalid_at(rmq_slice_make(two, 2)) == 2;
      if (valid != decodes(two, 2)) CHECK_INT(a << 8 | b, -1);
      for (unsigned c = 0; c < 0x100; c += 13) {
        uint8_t three[3] = {(uint8_t)a, (uint8_t)b, (uint8_t)c};
        bool expected = decodes(three, 3) || (decodes(two, 2) && c < 0x80);
        if ((rmq_utf8_invalid_at(rmq_slice_make(three, 3)) == 3) != expected) {
          CHECK_INT(a << 16 | b << 8 | c, -1);
        }
      }
    }
  }
}

static void errors_have_names_and_texts(void) {
  CHECK(strcmp(rmq_error_name(RMQ_OK), "RMQ_OK") == 0);
  CHECK(strcmp(rmq_error_name(RMQ_EOVERLOAD), "RMQ_EOVERLOAD") == 0);
  CHECK(strcmp(rmq_error_text(RMQ_ETIMEOUT), "timed out") == 0);
  const int unknown[] = {1, -11, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    CHECK(strcmp(rmq_error_name(unknown[i]), "RMQ_UNKNOWN") == 0);
    CHECK(rmq_error_text(unknown[i]) != NULL);
  }
}

static char logged[2048];
static rmq_log_level logged_level;

static void remember(void *arg, rmq_log_level level, const char *line) {
  (void)arg;
  logged_level = level;
  snprintf(logged, sizeof logged, "%s", line);
}

static void log_makes_one_harmless_line(void) {
  rmq_log log = {RMQ_LOG_INFO, remember, NULL};
  rmq_log_line(&log, RMQ_LOG_DEBUG, "not this");
  CHECK(logged[0] == '\0');
  rmq_log_line(&log, RMQ_LOG_WARN, "remark: %s", "a\nb\x1b[2J\tc\x7f");
  CHECK(strcmp(logged, "remark: a b [2J c ") == 0);
  CHECK_INT(logged_level, RMQ_LOG_WARN);
  rmq_log_line(&log, RMQ_LOG_INFO, "%01000d", 7);
  CHECK_INT(strlen(logged), 1000);
  rmq_log nowhere = {RMQ_LOG_DEBUG, NULL, NULL};
  rmq_log_line(&nowhere, RMQ_LOG_ERROR, "dropped");
  rmq_log_line(NULL, RMQ_LOG_ERROR, "dropped");
}

static void list_splices_in_order(void) {
  struct {
    rmq_link link;
    int n;
  } items[4];
  rmq_link a, b;
  rmq_link_init(&a);
  rmq_link_init(&b);
  for (int i = 0; i < 4; i++) {
    items[i].n = i;
    rmq_link_append(i < 2 ? &a : &b, &items[i].link);
  }
  rmq_link_splice(&a, &b);
  CHECK(rmq_link_alone(&b));
  rmq_link_remove(&items[1].link);
  rmq_link_remove(&items[1].link);
  CHECK(a.next == &items[0].link && a.next->next == &items[2].link && a.prev == &items[3].link);
}

int main(void) {
  check_run("buf appends big endian and consumes", buf_appends_big_endian_and_consumes);
  check_run("buf decimal is exact at the limits", buf_decimal_is_exact_at_the_limits);
  check_run("buf printf takes any length", buf_printf_takes_any_length);
  check_run("plain blanks control characters", buf_plain_blanks_control_characters);
  check_run("buf keeps its memory flat", buf_keeps_its_memory_flat);
  check_run("buf does what a plain array does", buf_does_what_a_plain_array_does);
  check_run("cursor reads and never past the end", cursor_reads_and_never_past_the_end);
  check_run("cursor stays failed", cursor_stays_failed);
  check_run("cursor refuses bad lengths", cursor_refuses_bad_lengths);
  check_run("utf8 knows every boundary", utf8_knows_every_boundary);
  check_run("utf8 agrees with decoding", utf8_agrees_with_decoding);
  check_run("errors have names and texts", errors_have_names_and_texts);
  check_run("log makes one harmless line", log_makes_one_harmless_line);
  check_run("list splices in order", list_splices_in_order);
  return check_end();
}

/* Hashes that agree with those of other clients. */
#include "base/utf8.h"
#include "check.h"
#include "select/hash.h"

typedef struct vector {
  const char *text;
  int32_t java;
} vector;

static void java_texts(void) {
  static const vector vectors[] = {
      {"", 0},
      {"a", 97},
      {"order-1", -1207111310},
      {"order-2", -1207111309},
      {"user-10086", 440322093},
      {"Aa", 2112},
      {"BB", 2112},
      {"polygenelubricants", INT32_MIN},
      {"GydZG_", INT32_MIN},
      {"DESIGNING WORKHOUSES", INT32_MIN},
      {"\u8ba2\u5355", 1129459},
      {"\U0001F600", 1772899}, /* two units */
      {"\u00e9", 233},
      {"\uffff", 65535},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    CHECK_INT(rmq_hash_java_text(rmq_slice_text(vectors[i].text)), vectors[i].java);
  }
  CHECK_INT(rmq_hash_java_text(rmq_slice_make("a\0b", 3)), 97 * 31 * 31 + 98);
}

static void java_numbers(void) {
  CHECK_INT(rmq_hash_java_long(0), 0);
  CHECK_INT(rmq_hash_java_long(5), 5);
  CHECK_INT(rmq_hash_java_long(-1), 0);
  CHECK_INT(rmq_hash_java_long(-2), 1);
  CHECK_INT(rmq_hash_java_long(INT64_C(1) << 32), 1);
  CHECK_INT(rmq_hash_java_long(INT64_MAX), INT32_MIN);
  CHECK_INT(rmq_hash_java_long(INT64_MIN), INT32_MIN);
  CHECK_INT(rmq_hash_java_long(INT64_C(2147483648)), INT32_MIN);
  CHECK_INT(rmq_hash_java_boolean(true), 1231);
  CHECK_INT(rmq_hash_java_boolean(false), 1237);
}

static void go_keys(void) {
  CHECK_INT(rmq_hash_fnv1a(rmq_slice_make(NULL, 0)), 2166136261u);
  CHECK_INT(rmq_hash_fnv1a(rmq_slice_text("order-1")), 729795949);
  CHECK_INT(rmq_hash_fnv1a(rmq_slice_text("order-2")), 679463092);
  CHECK_INT(rmq_hash_fnv1a(rmq_slice_text("user-10086")), 3052481238u);
}

/* The code points that the bytes are read as, "61 FFFD ". */
static void check_points(const char *bytes, size_t len, const char *expected) {
  char text[128] = "";
  size_t at_text = 0;
  const char *at = bytes, *end = bytes + len;
  while (at < end) {
    uint32_t point = rmq_utf8_next(&at, end);
    at_text += (size_t)snprintf(text + at_text, sizeof text - at_text, "%X ", point);
  }
  if (strcmp(text, expected) != 0) printf("read \"%s\", not \"%s\"\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
  CHECK(at == end);
}

#define POINTS(bytes, expected) check_points(bytes, sizeof(bytes) - 1, expected)

/* As the Unicode standard's table "U+FFFD for maximal subparts" has it, and Java. */
static void what_is_no_utf8(void) {
  POINTS("az", "61 7A ");
  POINTS("\xc3\xa9\xe8\xae\xa2\xf0\x9f\x98\x80", "E9 8BA2 1F600 ");
  POINTS("\xff", "FFFD ");
  POINTS(
      "\x80"
      "a",
      "FFFD 61 ");
  POINTS("\xc0\xaf", "FFFD FFFD ");
  POINTS("\xe0\x80\xbf", "FFFD FFFD FFFD ");
  POINTS("\xed\xa0\x80", "FFFD FFFD FFFD ");
  POINTS(
      "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
      "A",
      "FFFD FFFD FFFD FFFD 41 ");
  POINTS("\xf4\x91\x92\x93", "FFFD FFFD FFFD FFFD ");
  POINTS("\xf0\x9f\x98", "FFFD ");
  POINTS("\xe8", "FFFD ");
  POINTS("\xf4\x8f\xbf\xbf", "10FFFF ");
  CHECK_INT(rmq_hash_java_text(rmq_slice_text("\xff")), 0xFFFD);
}

/* Texts that differ in one byte are far apart. */
static void spread(void) {
  uint32_t last = 0;
  unsigned near = 0;
  for (int i = 0; i < 1000; i++) {
    char text[32];
    snprintf(text, sizeof text, "broker-a#0:%d", i);
    uint32_t hash = rmq_hash_spread(rmq_slice_text(text));
    near += hash - last < 1u << 22 || last - hash < 1u << 22;
    last = hash;
  }
  CHECK(near < 10); /* two in 1024 by chance */
}

int main(void) {
  check_run("java texts", java_texts);
  check_run("java numbers", java_numbers);
  check_run("go keys", go_keys);
  check_run("what is no utf8", what_is_no_utf8);
  check_run("spread", spread);
  return check_end();
}

#include "producer/names.h"

#include <stdio.h>

#include "base/error.h"

static bool is_legal(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '%' || c == '|';
}

static bool is_blank(rmq_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    char c = text.ptr[i];
    if (c != ' ' && !(c >= '\t' && c <= '\r')) return false;
  }
  return true;
}

/* Quotes one byte of a wrong name: as it is when it can be shown, else in hexadecimal. */
static void describe_byte(char c, char out[16]) {
  unsigned byte = (unsigned char)c;
  snprintf(out, 16, byte > 0x20 && byte < 0x7f ? "'%c'" : "byte 0x%02X", byte);
  if (byte == ' ') snprintf(out, 16, "a space");
}

int rmq_name_check(const char *what, rmq_slice name, size_t longest, char *why, size_t why_size) {
  if (is_blank(name)) {
    snprintf(why, why_size, "%s is %s", what, name.len ? "blank" : name.ptr ? "empty" : "missing");
    return RMQ_EINVAL;
  }
  size_t bad = 0;
  while (bad < name.len && is_legal(name.ptr[bad])) bad++;
  /* As Java has it, the length comes first. All legal names are ASCII, so bytes are characters. */
  if (name.len > longest) {
    snprintf(why, why_size, "%s is %zu bytes long; at most %zu are allowed", what, name.len,
             longest);
    return RMQ_EINVAL;
  }
  if (bad < name.len) {
    char byte[16];
    describe_byte(name.ptr[bad], byte);
    snprintf(why, why_size,
             "%s has %s at position %zu; letters, digits and the characters _ - %% | are allowed",
             what, byte, bad + 1);
    return RMQ_EINVAL;
  }
  return 0;
}

bool rmq_topic_is_forbidden(rmq_slice topic) {
  static const char *const forbidden[] = {
      "SCHEDULE_TOPIC_XXXX",        "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
      "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC",          "OFFSET_MOVED_EVENT"};
  for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
    if (rmq_slice_is(topic, forbidden[i])) return true;
  }
  return false;
}

bool rmq_topic_is_system(rmq_slice topic) {
  static const char *const system[] = {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"};
  static const char prefix[] = "rmq_sys_";
  size_t prefix_len = sizeof prefix - 1;
  for (size_t i = 0; i < sizeof system / sizeof system[0]; i++) {
    if (rmq_slice_is(topic, system[i])) return true;
  }
  if (topic.len >= prefix_len && memcmp(topic.ptr, prefix, prefix_len) == 0) return true;
  return rmq_topic_is_forbidden(topic);
}

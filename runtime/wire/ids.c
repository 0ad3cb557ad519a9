/* localtime_r */
#define _POSIX_C_SOURCE 200809L

#include "wire/ids.h"

#include <time.h>

#include "base/cursor.h"
#include "base/error.h"

/* The counter has 16 bits, so this many ids can share a millisecond. */
enum { IDS_IN_ONE_MS = 65536 };

/* Added to the tag when a month begins. Odd, so every month for 2^32 months has a tag of its own. */
static const uint32_t tag_step = 0x9E3779B9;

static char *write_hex(char *out, const uint8_t *bytes, size_t len) {
  static const char digits[] = "0123456789ABCDEF";
  for (size_t i = 0; i < len; i++) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  return out;
}

static char *write_hex_number(char *out, uint64_t value, size_t bytes) {
  uint8_t octets[8];
  for (size_t i = 0; i < bytes; i++) octets[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
  return write_hex(out, octets, bytes);
}

static void write_prefix(rmq_id_maker *maker) {
  const rmq_identity *who = &maker->identity;
  char *at = write_hex(maker->prefix, who->ip, (size_t)who->ip_len);
  at = write_hex_number(at, who->pid & 0xFFFF, 2);
  at = write_hex_number(at, who->tag, 4);
  maker->prefix_len = (int)(at - maker->prefix);
}

void rmq_id_init(rmq_id_maker *maker, const rmq_identity *identity) {
  memset(maker, 0, sizeof *maker);
  maker->identity = *identity;
  write_prefix(maker);
}

/* The first moment of a local month in milliseconds. mktime moves a midnight that daylight saving time
 * left out to before or after the gap; before is still the month before. */
static int64_t month_start(struct tm month) {
  struct tm first = {.tm_year = month.tm_year, .tm_mon = month.tm_mon, .tm_mday = 1};
  first.tm_isdst = -1;
  time_t start = mktime(&first);
  struct tm check;
  while (localtime_r(&start, &check) && check.tm_mday != 1) start += 1800;
  return (int64_t)start * 1000;
}

static void enter_month(rmq_id_maker *maker, int64_t now_ms) {
  time_t seconds = (time_t)(now_ms / 1000);
  struct tm now = {0};
  bool first = maker->month_end_ms == 0;
  maker->month_start_ms = maker->month_end_ms = 0;
  if (localtime_r(&seconds, &now)) {
    struct tm next = now;
    next.tm_mon++;
    maker->month_start_ms = month_start(now);
    maker->month_end_ms = month_start(next);
  }
  /* A calendar that says nothing useful must neither run the time out of its 32 bits nor stop it. */
  if (maker->month_start_ms > now_ms || maker->month_end_ms <= now_ms) {
    maker->month_start_ms = now_ms;
    maker->month_end_ms = now_ms + (int64_t)28 * 24 * 3600 * 1000;
  }
  if (first) return;
  maker->identity.tag += tag_step;
  write_prefix(maker);
}

/* The time for the next id: never before the last one, and a new one when the last is used up. */
static int64_t time_of_next(const rmq_id_maker *maker, int64_t now_ms) {
  if (maker->month_end_ms == 0) return now_ms;
  int64_t last = maker->month_start_ms + maker->used_ms;
  if (now_ms > last) return now_ms;
  return maker->used_in_ms < IDS_IN_ONE_MS ? last : last + 1;
}

/* Goes on to another millisecond. */
static void use_time(rmq_id_maker *maker, int64_t ms) {
  if (ms >= maker->month_end_ms) enter_month(maker, ms);
  maker->used_ms = ms - maker->month_start_ms;
  maker->used_in_ms = 0;
  write_hex_number(maker->prefix + maker->prefix_len, (uint64_t)maker->used_ms, 4);
}

int rmq_id_next(rmq_id_maker *maker, rmq_wall now, char out[RMQ_UNIQUE_ID_MAX]) {
  int64_t ms = time_of_next(maker, now.ms < 0 ? 0 : now.ms);
  /* A maker that has made none is in no month yet. */
  if (ms >= maker->month_end_ms || ms != maker->month_start_ms + maker->used_ms) {
    use_time(maker, ms);
  }
  maker->used_in_ms++;
  size_t len = (size_t)maker->prefix_len + 8;
  memcpy(out, maker->prefix, len);
  return (int)(write_hex_number(out + len, maker->counter++, 2) - out);
}

int rmq_offset_id_encode(const rmq_offset_id *id, char out[RMQ_UNIQUE_ID_MAX]) {
  char *at = write_hex(out, id->ip, (size_t)id->ip_len);
  at = write_hex_number(at, (uint32_t)id->port, 4);
  at = write_hex_number(at, (uint64_t)id->offset, 8);
  return (int)(at - out);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char lower = (char)(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int rmq_offset_id_decode(rmq_slice text, rmq_offset_id *out) {
  uint8_t bytes[RMQ_UNIQUE_ID_MAX / 2];
  if (text.len != 32 && text.len != 56) return RMQ_EPROTO;
  for (size_t i = 0; i < text.len / 2; i++) {
    int high = hex_digit(text.ptr[2 * i]);
    int low = hex_digit(text.ptr[2 * i + 1]);
    if (high < 0 || low < 0) return RMQ_EPROTO;
    bytes[i] = (uint8_t)(high << 4 | low);
  }
  rmq_cursor cursor = rmq_cursor_make(rmq_slice_make(bytes, text.len / 2));
  out->ip_len = text.len == 32 ? 4 : 16;
  memset(out->ip, 0, sizeof out->ip);
  memcpy(out->ip, rmq_cursor_bytes(&cursor, out->ip_len).ptr, (size_t)out->ip_len);
  out->port = rmq_cursor_i32(&cursor);
  out->offset = rmq_cursor_i64(&cursor);
  return out->port < 0 || out->port > 65535 ? RMQ_EPROTO : 0;
}

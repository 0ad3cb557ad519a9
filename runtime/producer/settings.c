#include "producer/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shown.h"
#include "base/utf8.h"
#include "producer/faults.h"
#include "producer/names.h"
#include "producer/policy.h"
#include "wire/address_map.h"
#include "wire/compress.h"
#include "wire/namesrv.h"

enum {
  LONGEST_TIME = 24 * 3600 * 1000,
  /* A frame takes 16 MiB; this leaves room for a header whose properties are all escapes in
   * JSON. */
  LARGEST_BODY = 16 * 1024 * 1024 - 256 * 1024
};

#define TEXT(field, alias, java, initial, choices, help)                     \
  {                                                                          \
#field, alias, java, RMQ_SETTING_TEXT, "", 0, 0, initial, choices, help, \
        offsetof(rmq_settings, field)                                        \
  }
#define INTEGER(field, alias, java, unit, min, max, initial, help)                 \
  {                                                                                \
#field, alias, java, RMQ_SETTING_INTEGER, unit, min, max, initial, NULL, help, \
        offsetof(rmq_settings, field)                                              \
  }
#define NUMBERS(field, alias, java, min, max, initial, help)                     \
  {                                                                              \
#field, alias, java, RMQ_SETTING_NUMBERS, "", min, max, initial, NULL, help, \
        offsetof(rmq_settings, field)                                            \
  }
#define BOOLEAN(field, alias, java, initial, help)                           \
  {                                                                          \
#field, alias, java, RMQ_SETTING_BOOLEAN, "", 0, 0, initial, NULL, help, \
        offsetof(rmq_settings, field)                                        \
  }

/* clang-format off */
const rmq_setting rmq_setting_table[] = {
  TEXT(group, "producer_group", "producerGroup", NULL, NULL,
       "The producer group's name."),
  TEXT(namesrv, "namesrv_addr", "namesrvAddr", NULL, NULL,
       "The name servers, as \"host:port;host:port\"."),
  TEXT(address_map, NULL, NULL, NULL, NULL,
       "Where brokers are reached whose advertised addresses lead nowhere from here: \"advertised=reachable;...\", or a table; a host alone keeps the port."),
  TEXT(instance_name, NULL, "instanceName", NULL, NULL,
       "Tells producers of one machine apart in the client id; one is made up when it is not given."),
  TEXT(client_ip, NULL, "clientIP", NULL, NULL,
       "This machine's address in the client id; found out when it is not given."),
  TEXT(create_topic_key, NULL, "createTopicKey", "TBW102", NULL,
       "The topic whose route stands in for a topic that does not exist (AUTO_CREATE_TOPIC_KEY on old servers)."),
  INTEGER(default_topic_queue_nums, NULL, "defaultTopicQueueNums", "", 1, 65536, "4",
          "How many queues a topic gets on each broker when sending creates it."),
  BOOLEAN(auto_create_topic, NULL, NULL, "true",
          "Ask for the route of create_topic_key when a topic has none."),
  INTEGER(send_msg_timeout, "timeout", "sendMsgTimeout", "ms", 1, LONGEST_TIME, "3000",
          "What a send may take in all, the route's lookup and every attempt included."),
  INTEGER(attempt_timeout, NULL, "sendMsgMaxTimeoutPerRequest", "ms", 0, LONGEST_TIME, "0",
          "What one attempt may take; 0 decides it from what is left and from the brokers there are."),
  INTEGER(attempt_floor, NULL, NULL, "ms", 1, LONGEST_TIME, "500",
          "The least that an attempt gets when attempt_timeout is 0."),
  INTEGER(retry_times_when_send_failed, "retries", "retryTimesWhenSendFailed", "", 0, 100, "2",
          "How many attempts may follow the first one."),
  INTEGER(retry_times_when_send_async_failed, "async_retries", "retryTimesWhenSendAsyncFailed", "", 0, 100, "2",
          "The same for send_async."),
  NUMBERS(retry_response_codes, NULL, "retryResponseCodes", INT32_MIN, INT32_MAX, "1 2 14 16 17 204 205 1500",
          "The brokers' answers after which another attempt is made: all of them, not those to add."),
  BOOLEAN(retry_another_broker_when_not_store_ok, NULL, "retryAnotherBrokerWhenNotStoreOK", "false",
          "Try another broker when a message is stored but not flushed or copied as the broker should."),
  TEXT(selector, NULL, NULL, NULL, NULL,
       "Chooses the queue of each message that names neither a queue nor a selector: a selector's name, in a script also a function."),
  INTEGER(compress_msg_body_over_howmuch, "compress_over", "compressMsgBodyOverHowmuch", "bytes", 0, INT32_MAX, "4096",
          "Bodies at least this long are compressed, when that makes them shorter."),
  TEXT(compress_type, NULL, "compressType", "zlib", "zlib lz4 zstd",
       "How: consumers before 4.9.4 read zlib only."),
  INTEGER(compress_level, NULL, "compressLevel", "", 1, 22, "5",
          "How hard it is tried: 1 to 12 with zlib, 1 to 22 with zstd; lz4 has no levels."),
  INTEGER(max_message_size, NULL, "maxMessageSize", "bytes", 1, LARGEST_BODY, "4194304",
          "The longest body."),
  INTEGER(max_inflight, NULL, "backPressureForAsyncSendNum", "", 1, 1048576, "16384",
          "How many sends may be under way at a time."),
  INTEGER(max_inflight_bytes, NULL, "backPressureForAsyncSendSize", "bytes", 1, 1LL << 40, "67108864",
          "How many bytes of bodies may be under way at a time."),
  BOOLEAN(auto_batch, NULL, "autoBatch", "false",
          "Gather messages that go the same way, and send them as batches."),
  INTEGER(batch_max_delay, NULL, "batchMaxDelayMs", "ms", 1, 30000, "10",
          "The longest that auto_batch lets a message wait for one under way that goes the same way."),
  INTEGER(batch_max_bytes, NULL, "batchMaxBytes", "bytes", 1, 2097152, "32768",
          "A batch of auto_batch leaves when it is so long; what is longer alone is sent alone."),
  INTEGER(batch_total_bytes, NULL, "totalBatchMaxBytes", "bytes", 1, 1LL << 40, "33554432",
          "The most that auto_batch lets wait at a time; beyond it messages are sent alone."),
  INTEGER(flush_timeout, NULL, NULL, "ms", 0, LONGEST_TIME, "5000",
          "What is under way gets this long when the producer shuts down."),
  INTEGER(connect_timeout, NULL, "connectTimeoutMillis", "ms", 1, LONGEST_TIME, "3000",
          "What making a connection may take."),
  INTEGER(poll_name_server_interval, NULL, "pollNameServerInterval", "ms", 10, LONGEST_TIME, "30000",
          "How often the routes of the topics in use are asked for again."),
  INTEGER(heartbeat_broker_interval, NULL, "heartbeatBrokerInterval", "ms", 10, LONGEST_TIME, "30000",
          "How often the brokers get a heartbeat; they forget a producer after 120 s without one."),
  INTEGER(mq_client_api_timeout, NULL, "mqClientApiTimeout", "ms", 1, LONGEST_TIME, "3000",
          "What one question to one name server may take."),
  INTEGER(channel_max_idle_time, NULL, NULL, "ms", 0, LONGEST_TIME, "120000",
          "A connection without traffic is closed after this long; 0: never."),
  BOOLEAN(unit_mode, NULL, "unitMode", "false",
          "Marks every message as sent in unit mode."),
  TEXT(serialize, NULL, NULL, "rocketmq", "rocketmq json",
       "How request headers are written."),
  TEXT(latency_fault, "send_latency_fault_enable", "sendLatencyFaultEnable", "false", "false true 5.x",
       "Avoid brokers that are slow or have failed: true by the rules and tables of Java clients before 5.1.4, \"5.x\" by those since."),
  NUMBERS(latency_max, NULL, "latencyMax", 0, RMQ_FAULT_MS_MAX, NULL,
          "From how many milliseconds on an attempt makes its broker avoided, in ascending steps; the rules' own when it is not given."),
  NUMBERS(not_available_duration, NULL, "notAvailableDuration", 0, RMQ_FAULT_MS_MAX, NULL,
          "For how many milliseconds it is avoided then, for each step of latency_max."),
  BOOLEAN(start_detector_enable, NULL, "startDetectorEnable", "false",
          "With latency_fault \"5.x\": ask brokers that failed every 3 s whether they are there again."),
  INTEGER(detect_interval, NULL, "detectInterval", "ms", 1, LONGEST_TIME, "2000",
          "A broker that failed is asked at most this often."),
  INTEGER(detect_timeout, NULL, "detectTimeout", "ms", 1, LONGEST_TIME, "200",
          "What its answer may take."),
  BOOLEAN(enable_trace, "trace", "enableTrace", "false",
          "Message trace: records of sends, ends of transactions and recalls go to trace_topic. A text turns it on and is the topic."),
  TEXT(trace_topic, NULL, "traceTopic", "RMQ_SYS_TRACE_TOPIC", NULL,
       "The topic of message trace."),
  INTEGER(trace_msg_batch_num, NULL, "traceMsgBatchNum", "", 1, 100, "10",
          "So many trace records about one topic go into one message."),
  INTEGER(trace_flush_interval, NULL, NULL, "ms", 1, LONGEST_TIME, "5000",
          "Trace records wait at most this long for others."),
  INTEGER(check_concurrency, NULL, "checkThreadPoolMaxSize", "", 1, 65536, "16",
          "How many checks of transactions may be decided at a time."),
  INTEGER(check_request_hold_max, NULL, "checkRequestHoldMax", "", 0, 1048576, "2000",
          "How many checks may wait for that; more are dropped, and brokers ask again."),
  INTEGER(seed, NULL, NULL, "", 0, INT32_MAX, "0",
          "For tests: what happens by chance (where turns start, which name server is asked first, what selectors draw) follows from this number; 0: from nothing."),
  {NULL, NULL, NULL, RMQ_SETTING_TEXT, NULL, 0, 0, NULL, NULL, NULL, 0},
};
/* clang-format on */

static char **text_at(rmq_settings *settings, const rmq_setting *row) {
  return (char **)(void *)((char *)settings + row->offset);
}

static int64_t *integer_at(rmq_settings *settings, const rmq_setting *row) {
  return (int64_t *)(void *)((char *)settings + row->offset);
}

static bool *boolean_at(rmq_settings *settings, const rmq_setting *row) {
  return (bool *)(void *)((char *)settings + row->offset);
}

/* True when its value is a text of its own in the settings. */
static bool is_text(const rmq_setting *row) {
  return row->type == RMQ_SETTING_TEXT || row->type == RMQ_SETTING_NUMBERS;
}

void rmq_settings_init(rmq_settings *settings) {
  memset(settings, 0, sizeof *settings);
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    if (!row->initial) continue;
    switch (row->type) {
      case RMQ_SETTING_TEXT:
      case RMQ_SETTING_NUMBERS:
        *text_at(settings, row) = rmq_copy_text(row->initial, strlen(row->initial));
        break;
      case RMQ_SETTING_INTEGER:
        *integer_at(settings, row) = strtoll(row->initial, NULL, 10);
        break;
      case RMQ_SETTING_BOOLEAN:
        *boolean_at(settings, row) = strcmp(row->initial, "true") == 0;
        break;
    }
  }
}

void rmq_settings_free(rmq_settings *settings) {
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    if (is_text(row)) free(*text_at(settings, row));
  }
  memset(settings, 0, sizeof *settings);
}

void rmq_settings_copy(rmq_settings *to, const rmq_settings *from) {
  *to = *from;
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    if (!is_text(row)) continue;
    char **text = text_at(to, row);
    if (*text) *text = rmq_copy_text(*text, strlen(*text));
  }
}

/* ---- Names ---- */

const rmq_setting *rmq_setting_find(rmq_slice name) {
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    if (rmq_slice_is(name, row->name)) return row;
    if (row->alias && rmq_slice_is(name, row->alias)) return row;
    if (row->java && rmq_slice_is(name, row->java)) return row;
  }
  return NULL;
}

enum { LONGEST_NAME = 64 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* How many letters must be added, left out, changed or swapped with their neighbour to make `a`
 * into `b`, letter case apart. Both are at most LONGEST_NAME long. */
static size_t distance(rmq_slice a, rmq_slice b) {
  size_t rows[3][LONGEST_NAME + 1] = {{0}};
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= b.len; j++) last[j] = j;
  for (size_t i = 1; i <= a.len; i++) {
    now[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
      bool same = lower(a.ptr[i - 1]) == lower(b.ptr[j - 1]);
      now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && lower(a.ptr[i - 1]) == lower(b.ptr[j - 2]) &&
          lower(a.ptr[i - 2]) == lower(b.ptr[j - 1])) {
        now[j] = least(now[j], before[j - 2] + 1);
      }
    }
    size_t *spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[b.len];
}

/* Keeps `candidate` when it is nearer to `name` than the nearest so far. */
static void consider(rmq_slice name, const char *candidate, size_t *best, const char **nearest) {
  if (!candidate) return;
  size_t d = distance(name, rmq_slice_text(candidate));
  if (d < *best) {
    *best = d;
    *nearest = candidate;
  }
}

const char *rmq_setting_nearest(rmq_slice name) {
  if (name.len == 0 || name.len > LONGEST_NAME) return NULL;
  const char *nearest = NULL;
  size_t best = name.len / 3 + 2; /* a third of the letters wrong is not a slip any more */
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    consider(name, row->name, &best, &nearest);
    consider(name, row->alias, &best, &nearest);
    consider(name, row->java, &best, &nearest);
  }
  return nearest;
}

/* ---- Values ---- */

static const char *type_name(rmq_setting_type type) {
  switch (type) {
    case RMQ_SETTING_TEXT:
      return "a string";
    case RMQ_SETTING_NUMBERS:
      return "a list of whole numbers";
    case RMQ_SETTING_INTEGER:
      return "a whole number";
    case RMQ_SETTING_BOOLEAN:
      break;
  }
  return "true or false";
}

static int wrong_type(const rmq_setting *row, const char *given, char *why, size_t why_size) {
  snprintf(why, why_size, "%s must be %s, not %s", row->name, type_name(row->type), given);
  return RMQ_EINVAL;
}

/* True when the words of `choices` (with one blank between) hold `value`. */
static bool is_choice(const char *choices, rmq_slice value) {
  for (const char *at = choices; *at != '\0';) {
    size_t len = strcspn(at, " ");
    if (rmq_slice_equal(rmq_slice_make(at, len), value)) return true;
    at += len;
    at += strspn(at, " ");
  }
  return false;
}

bool rmq_setting_takes_boolean(const rmq_setting *row) {
  if (row->type == RMQ_SETTING_BOOLEAN) return true;
  return row->choices && is_choice(row->choices, rmq_slice_text("true"));
}

static int wrong_numbers(const rmq_setting *row, rmq_slice value, char *why, size_t why_size) {
  snprintf(why, why_size, "%s must be at most %d whole numbers from %lld to %lld, not \"%.*s\"",
           row->name, RMQ_POLICY_CODES_MAX, (long long)row->min, (long long)row->max,
           (int)least(value.len, 100), value.len ? value.ptr : "");
  return RMQ_EINVAL;
}

static int set_numbers(rmq_settings *settings, const rmq_setting *row, rmq_slice value, char *why,
                       size_t why_size) {
  rmq_policy_codes codes;
  if (rmq_policy_codes_read(value, &codes) < 0) return wrong_numbers(row, value, why, why_size);
  rmq_buf text = {0};
  for (size_t i = 0; i < codes.n; i++) {
    if (codes.list[i] < row->min || codes.list[i] > row->max) {
      rmq_buf_free(&text);
      return wrong_numbers(row, value, why, why_size);
    }
    rmq_buf_printf(&text, "%s%d", i ? " " : "", (int)codes.list[i]);
  }
  rmq_slice written = rmq_buf_slice(&text);
  char **at = text_at(settings, row);
  free(*at);
  *at = rmq_copy_text(written.len ? written.ptr : "", written.len);
  rmq_buf_free(&text);
  return 0;
}

int rmq_settings_set_text(rmq_settings *settings, const rmq_setting *row, rmq_slice value,
                          char *why, size_t why_size) {
  if (row->type == RMQ_SETTING_NUMBERS) return set_numbers(settings, row, value, why, why_size);
  if (row->offset == offsetof(rmq_settings, enable_trace)) {
    settings->enable_trace = true;
    row = rmq_setting_find(rmq_slice_text("trace_topic"));
  }
  if (row->type != RMQ_SETTING_TEXT) return wrong_type(row, "a string", why, why_size);
  if (value.len > 0 && memchr(value.ptr, '\0', value.len)) {
    snprintf(why, why_size, "%s holds a zero byte", row->name);
    return RMQ_EINVAL;
  }
  size_t invalid = rmq_utf8_invalid_at(value);
  if (invalid < value.len) {
    snprintf(why, why_size, "%s is not valid UTF-8 at byte %zu", row->name, invalid + 1);
    return RMQ_EINVAL;
  }
  if (row->choices && !is_choice(row->choices, value)) {
    snprintf(why, why_size, "%s must be one of: %s; not \"%.*s\"", row->name, row->choices,
             (int)least(value.len, 100), value.len ? value.ptr : "");
    return RMQ_EINVAL;
  }
  char **text = text_at(settings, row);
  free(*text);
  *text = rmq_copy_text(value.len ? value.ptr : "", value.len);
  return 0;
}

int rmq_settings_set_integer(rmq_settings *settings, const rmq_setting *row, double value,
                             char *why, size_t why_size) {
  if (row->type != RMQ_SETTING_INTEGER) return wrong_type(row, "a number", why, why_size);
  bool whole = isfinite(value) && value == floor(value);
  if (whole && value >= (double)row->min && value <= (double)row->max) {
    *integer_at(settings, row) = (int64_t)value;
    return 0;
  }
  const char *gap = row->unit[0] ? " " : "";
  snprintf(why, why_size, "%s must be a whole number from %lld to %lld%s%s, not %.17g", row->name,
           (long long)row->min, (long long)row->max, gap, row->unit, rmq_shown(value));
  return RMQ_EINVAL;
}

int rmq_settings_set_boolean(rmq_settings *settings, const rmq_setting *row, bool value, char *why,
                             size_t why_size) {
  const char *word = value ? "true" : "false";
  if (row->type == RMQ_SETTING_TEXT && rmq_setting_takes_boolean(row)) {
    return rmq_settings_set_text(settings, row, rmq_slice_text(word), why, why_size);
  }
  if (row->type != RMQ_SETTING_BOOLEAN) {
    return wrong_type(row, word, why, why_size);
  }
  *boolean_at(settings, row) = value;
  return 0;
}

/* ---- What must fit together ---- */

static int check_group(const char *group, char *why, size_t why_size) {
  if (!group) {
    snprintf(why, why_size,
             "group is missing: name the producer group, for example group = \"orders\"");
    return RMQ_EINVAL;
  }
  return rmq_name_check("group", rmq_slice_text(group), RMQ_GROUP_LENGTH_MAX, why, why_size);
}

static int check_namesrv(const char *namesrv, char *why, size_t why_size) {
  if (!namesrv) {
    snprintf(why, why_size,
             "namesrv is missing: give the name servers, for example namesrv = \"127.0.0.1:9876\"");
    return RMQ_EINVAL;
  }
  rmq_slice rest = rmq_slice_text(namesrv), address;
  const char *problem = "";
  size_t n = 0;
  int found;
  while ((found = rmq_namesrv_next(&rest, &address, &problem)) == 1) n++;
  if (found < 0) {
    snprintf(why, why_size, "namesrv: \"%.*s\" is no address: %s; write host:port;host:port",
             (int)least(address.len, 200), address.len ? address.ptr : "", problem);
    return RMQ_EINVAL;
  }
  if (n == 0) {
    snprintf(why, why_size, "namesrv names no server: write host:port;host:port");
    return RMQ_EINVAL;
  }
  return 0;
}

static int check_compression(const rmq_settings *settings, char *why, size_t why_size) {
  rmq_compression compression;
  if (rmq_compression_of_name(rmq_slice_text(settings->compress_type), &compression) < 0) {
    snprintf(why, why_size, "compress_type \"%s\" is unknown", settings->compress_type);
    return RMQ_EINVAL;
  }
  int max = rmq_compression_level_max(compression);
  if (settings->compress_level <= max) return 0;
  snprintf(why, why_size, "compress_level is %lld; with compress_type %s it must be from 1 to %d",
           (long long)settings->compress_level, settings->compress_type, max);
  return RMQ_EINVAL;
}

static int check_address_map(const char *map, char *why, size_t why_size) {
  char reason[256];
  if (!map || rmq_address_map_check(rmq_slice_text(map), reason, sizeof reason) == 0) return 0;
  snprintf(why, why_size, "address_map: %s", reason);
  return RMQ_EINVAL;
}

int rmq_settings_check(const rmq_settings *settings, char *why, size_t why_size) {
  int status = check_group(settings->group, why, why_size);
  if (status == 0 && strcmp(settings->group, "DEFAULT_PRODUCER") == 0) {
    snprintf(why, why_size, "group must not be DEFAULT_PRODUCER: name one of your own");
    status = RMQ_EINVAL;
  }
  if (status == 0) status = check_namesrv(settings->namesrv, why, why_size);
  if (status == 0) status = check_address_map(settings->address_map, why, why_size);
  if (status == 0) {
    status = rmq_name_check("create_topic_key", rmq_slice_text(settings->create_topic_key),
                            RMQ_TOPIC_LENGTH_MAX, why, why_size);
  }
  if (status == 0) status = check_compression(settings, why, why_size);
  if (status == 0) {
    status = rmq_name_check("trace_topic", rmq_slice_text(settings->trace_topic),
                            RMQ_TOPIC_LENGTH_MAX, why, why_size);
  }
  rmq_fault_rules rules;
  if (status == 0) status = rmq_fault_rules_read(settings, &rules, why, why_size);
  return status;
}

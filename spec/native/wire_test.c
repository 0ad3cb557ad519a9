/* What the specs in Lua cannot reach: the twins of the fast paths, the frame writer's fields, and months. */
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "check.h"
#include "wire/client.h"
#include "wire/codes.h"
#include "wire/ids.h"
#include "wire/number.h"
#include "wire/route.h"
#include "wire/scan.h"
#include "wire/send.h"

static rmq_slice text(const char *bytes) { return rmq_slice_text(bytes); }

/* A small generator with the same numbers everywhere. */
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state % bound;
}

static size_t random_text(char *out, size_t max, const char *alphabet) {
  size_t len = random_below((uint32_t)max + 1);
  size_t letters = strlen(alphabet);
  for (size_t i = 0; i < len; i++) out[i] = alphabet[random_below((uint32_t)letters)];
  return len;
}

static void test_scan_twins(void) {
  static rmq_quotes fast, portable;
  char bytes[200];
  for (int round = 0; round < 20000; round++) {
    const char *alphabet = round & 1 ? "abcdefgh\xc3\"" : "abcdefghijklmnopq\xa9\"\\rstuvw";
    rmq_slice input = rmq_slice_make(bytes, random_text(bytes, sizeof bytes, alphabet));
    const char *end = bytes + input.len;
    bool high = false, portable_high = false;
    CHECK(rmq_scan_string(bytes, end, &high) ==
          rmq_scan_string_portable(bytes, end, &portable_high));
    CHECK_INT(high, portable_high);
    bool found = rmq_quotes_find(input, &fast);
    CHECK_INT(found, rmq_quotes_find_portable(input, &portable));
    if (!found) continue;
    CHECK_INT(fast.count, portable.count);
    CHECK_INT(fast.high, portable.high);
    CHECK(memcmp(fast.at, portable.at, fast.count * sizeof fast.at[0]) == 0);
  }
}

static void test_quotes_limit(void) {
  static rmq_quotes quotes;
  static char many[70000];
  memset(many, '"', sizeof many);
  CHECK(rmq_quotes_find(rmq_slice_make(many, RMQ_QUOTES_MAX), &quotes));
  CHECK_INT(quotes.count, RMQ_QUOTES_MAX);
  CHECK(!rmq_quotes_find(rmq_slice_make(many, RMQ_QUOTES_MAX + 1), &quotes));
  CHECK(!rmq_quotes_find_portable(rmq_slice_make(many, RMQ_QUOTES_MAX + 1), &quotes));
  memset(many + RMQ_QUOTES_MAX + 1, ' ', sizeof many - RMQ_QUOTES_MAX - 1);
  CHECK(!rmq_quotes_find(rmq_slice_make(many, 1000), &quotes));
  memset(many, ' ', sizeof many);
  CHECK(rmq_quotes_find(rmq_slice_make(many, 65535), &quotes));
  CHECK(!rmq_quotes_find(rmq_slice_make(many, 65536), &quotes));
}

static bool same_field(const rmq_field *a, const rmq_field *b) {
  return rmq_slice_equal(a->name, b->name) && rmq_slice_equal(a->value, b->value);
}

static bool same_header(const rmq_header *a, const rmq_header *b) {
  bool same = a->code == b->code && a->language == b->language && a->version == b->version &&
              a->opaque == b->opaque && a->flag == b->flag && a->n_ext == b->n_ext &&
              rmq_slice_equal(a->remark, b->remark) && !a->remark.ptr == !b->remark.ptr;
  for (size_t i = 0; same && i < a->n_ext; i++) same = same_field(&a->ext[i], &b->ext[i]);
  return same;
}

static const char *const header_texts[] = {
    ("{\"code\":0,\"extFields\":{\"queueId\":\"3\",\"msgId\":\"7F00\",\"queueOffset\":\"10\"},"
     "\"flag\":1,\"language\":\"JAVA\",\"opaque\":12,\"serializeTypeCurrentRPC\":\"JSON\"}"),
    "{\"code\":-17,\"remark\":\"no\xc3\xa9\",\"extFields\":{},\"version\":493,\"language\":\"GO\"}",
    "{\"opaque\":2147483647,\"code\":0,\"extFields\":{\"a\":1,\"b\":null,\"c\":true},\"x\":[{}]}",
};

/* Changes a few bytes of a good header, with what JSON is made of. */
static size_t damage(char *bytes, size_t len) {
  static const char pieces[] = "\"\"\"{}[]:,0123456789-.eE \\untrfl\xc3\xa9x\t";
  for (uint32_t n = random_below(4); n > 0; n--) {
    size_t at = random_below((uint32_t)len);
    char piece = pieces[random_below(sizeof pieces - 1)];
    if (random_below(3) == 0 && len > 2) {
      memmove(bytes + at, bytes + at + 1, len - at - 1);
      len--;
    } else {
      bytes[at] = piece;
    }
  }
  return len;
}

static void test_fast_header_agrees(void) {
  static rmq_header fast, general;
  rmq_buf scratch = {0}, other = {0};
  int good = 0;
  for (int round = 0; round < 200000; round++) {
    char bytes[400];
    const char *chosen = header_texts[random_below(3)];
    size_t len = strlen(chosen);
    memcpy(bytes, chosen, len + 1);
    len = damage(bytes, len);
    rmq_slice input = rmq_slice_make(bytes, len);
    int err = rmq_header_decode(RMQ_SERIALIZE_JSON, input, &scratch, &fast);
    bool agree = err == rmq_header_decode_json(input, &other, &general) &&
                 (err || same_header(&fast, &general));
    if (!agree) printf("differ: %.*s\n", (int)len, bytes);
    CHECK(agree);
    good += err == 0;
  }
  CHECK(good > 20000 && good < 190000);
  rmq_buf_free(&scratch);
  rmq_buf_free(&other);
}

static void test_header_fields(void) {
  static rmq_header header;
  rmq_buf scratch = {0};
  int32_t number = 7;
  int64_t large = 7;
  bool truth = false;
  rmq_slice json = text(
      "{\"extFields\":{\"n\":\"-2147483648\",\"big\":\"9223372036854775807\",\"t\":"
      "\"TRUE\",\"f\":\"yes\",\"over\":\"2147483648\",\"e\":\"\",\"n\":\"5\"}}");
  CHECK_INT(rmq_header_decode(RMQ_SERIALIZE_JSON, json, &scratch, &header), 0);
  CHECK_INT(header.language, 0);
  CHECK_INT(rmq_header_i32(&header, "none", &number), 0);
  CHECK_INT(number, 7);
  CHECK_INT(rmq_header_i32(&header, "n", &number), 1);
  CHECK_INT(number, 5);
  CHECK_INT(rmq_header_i32(&header, "over", &number), RMQ_EPROTO);
  CHECK_INT(rmq_header_i32(&header, "e", &number), RMQ_EPROTO);
  CHECK_INT(rmq_header_i32(&header, "t", &number), RMQ_EPROTO);
  CHECK_INT(rmq_header_i64(&header, "big", &large), 1);
  CHECK_INT(large, INT64_MAX);
  CHECK_INT(rmq_header_bool(&header, "t", &truth), 1);
  CHECK(truth);
  CHECK_INT(rmq_header_bool(&header, "f", &truth), 1);
  CHECK(!truth);
  CHECK_INT(rmq_header_bool(&header, "none", &truth), 0);
  json = text("{\"language\":\"COBOL\"}");
  CHECK_INT(rmq_header_decode(RMQ_SERIALIZE_JSON, json, &scratch, &header), 0);
  CHECK_INT(header.language, RMQ_LANGUAGE_OTHER);
  rmq_buf_free(&scratch);
}

static void check_number(const char *spelling, int expected, int64_t value) {
  int64_t out = 1;
  CHECK_INT(rmq_number_i64(text(spelling), &out), expected);
  CHECK_INT(out, expected ? 1 : value);
}

static void test_numbers(void) {
  check_number("0", 0, 0);
  check_number("-0", 0, 0);
  check_number("0017", 0, 17);
  check_number("9223372036854775807", 0, INT64_MAX);
  check_number("-9223372036854775808", 0, INT64_MIN);
  check_number("9223372036854775808", RMQ_EPROTO, 0);
  check_number("-9223372036854775809", RMQ_EPROTO, 0);
  check_number("99999999999999999999", RMQ_EPROTO, 0);
  check_number("", RMQ_EPROTO, 0);
  check_number("-", RMQ_EPROTO, 0);
  check_number("+1", RMQ_EPROTO, 0);
  check_number("1 ", RMQ_EPROTO, 0);
  check_number("0x10", RMQ_EPROTO, 0);
  int64_t value = INT64_MIN;
  for (int i = 0; i < 2000; i++) {
    char written[RMQ_NUMBER_MAX], expected[32];
    size_t len = rmq_number_write(written, value);
    snprintf(expected, sizeof expected, "%lld", (long long)value);
    CHECK(rmq_slice_is(rmq_slice_make(written, len), expected));
    value = (int64_t)((uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX));
    value >>= random_below(64);
  }
}

/* The quick encoder for sends writes what the field writer would, with or without the fixed fields made
 * beforehand. */
static void test_send_request_bytes(void) {
  rmq_buf quick = {0}, again = {0}, fixed = {0}, fields = {0};
  rmq_frame_writer writer;
  rmq_send_header send = {.producer_group = text("g"),
                          .topic = text("T"),
                          .default_topic = text("TBW102"),
                          .default_topic_queue_nums = 4,
                          .queue_id = -1,
                          .born_timestamp = INT64_MIN,
                          .flag = INT32_MIN,
                          .properties = text("a\001b\002"),
                          .reconsume_times = 10,
                          .max_reconsume_times = 16,
                          .batch = true,
                          .broker_name = text("broker-a")};
  rmq_buf_text(&quick, "before");
  rmq_buf_text(&again, "before");
  rmq_buf_text(&fields, "before");
  rmq_send_fixed_encode(&fixed, &send);
  send.sys_flag = RMQ_SYS_PREPARED; /* differs from one message of a topic to the next */
  rmq_send_request_encode(&quick, RMQ_SERIALIZE_ROCKETMQ, 320, 77, 2, &send, text("body"));
  send.fixed = rmq_buf_slice(&fixed);
  rmq_send_request_encode(&again, RMQ_SERIALIZE_ROCKETMQ, 320, 77, 2, &send, text("body"));
  rmq_command command = rmq_command_request(320, 77, 2);
  rmq_frame_begin(&writer, &fields, RMQ_SERIALIZE_ROCKETMQ, &command);
  rmq_frame_text(&writer, text("a"), send.producer_group);
  rmq_frame_text(&writer, text("b"), send.topic);
  rmq_frame_text(&writer, text("c"), send.default_topic);
  rmq_frame_int(&writer, text("d"), 4);
  rmq_frame_int(&writer, text("j"), 10);
  rmq_frame_bool(&writer, text("k"), false);
  rmq_frame_int(&writer, text("l"), 16);
  rmq_frame_bool(&writer, text("m"), true);
  rmq_frame_int(&writer, text("e"), -1);
  rmq_frame_int(&writer, text("f"), 4);
  rmq_frame_int(&writer, text("g"), INT64_MIN);
  rmq_frame_int(&writer, text("h"), INT32_MIN);
  rmq_frame_text(&writer, text("i"), send.properties);
  rmq_frame_text(&writer, text("n"), send.broker_name);
  rmq_frame_end(&writer, text("body"));
  CHECK(rmq_slice_equal(rmq_buf_slice(&quick), rmq_buf_slice(&fields)));
  CHECK(rmq_slice_equal(rmq_buf_slice(&again), rmq_buf_slice(&fields)));
  rmq_buf_free(&quick);
  rmq_buf_free(&again);
  rmq_buf_free(&fixed);
  rmq_buf_free(&fields);
}

static void check_reply(rmq_serialize serialize) {
  static rmq_header header;
  rmq_buf out = {0}, scratch = {0};
  rmq_frame_writer writer;
  rmq_frame frame;
  rmq_send_reply again;
  const char *missing;
  rmq_send_reply reply = {.msg_id = text("7F00"),
                          .queue_id = 3,
                          .queue_offset = INT64_MAX,
                          .recall_handle = text("h"),
                          .region_id = text("HZ")};
  rmq_command command = rmq_command_request(0, 1, RMQ_FLAG_RESPONSE);
  rmq_frame_begin(&writer, &out, serialize, &command);
  rmq_send_reply_write(&writer, &reply);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
  CHECK_INT(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL), 1);
  CHECK_INT(rmq_header_decode(serialize, frame.header, &scratch, &header), 0);
  CHECK_INT(header.flag, RMQ_FLAG_RESPONSE);
  CHECK_INT(rmq_send_reply_decode(&header, &again, &missing), 0);
  CHECK(rmq_slice_is(again.msg_id, "7F00") && again.queue_id == 3);
  CHECK_INT(again.queue_offset, INT64_MAX);
  CHECK(rmq_slice_is(again.recall_handle, "h") && rmq_slice_is(again.region_id, "HZ"));
  CHECK(again.transaction_id.ptr == NULL && !again.trace_on);
  rmq_buf_free(&out);
  rmq_buf_free(&scratch);
}

/* What a real broker needs of GET_MAX_OFFSET, in either serialization. */
static void test_max_offset_request(void) {
  static rmq_header header;
  rmq_buf out = {0}, scratch = {0};
  for (int i = 0; i < 2; i++) {
    rmq_frame frame;
    rmq_buf_clear(&out);
    rmq_max_offset_request_encode(&out, i ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ, 77,
                                  text("Orders"), 3);
    CHECK_INT(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL), 1);
    CHECK_INT(frame.size, rmq_buf_len(&out));
    CHECK_INT(frame.body.len, 0);
    CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
    int32_t queue = -1;
    CHECK_INT(header.code, 30);
    CHECK_INT(header.opaque, 77);
    CHECK_INT(header.flag, 0);
    CHECK(rmq_slice_is(rmq_header_field(&header, "topic"), "Orders"));
    CHECK(rmq_header_i32(&header, "queueId", &queue) == 1 && queue == 3);
  }
  rmq_buf_free(&out);
  rmq_buf_free(&scratch);
}

static void test_send_reply_write(void) {
  check_reply(RMQ_SERIALIZE_JSON);
  check_reply(RMQ_SERIALIZE_ROCKETMQ);
}

static bool routes_equal(const char *left, const char *right) {
  rmq_route_data a, b;
  char why[64];
  CHECK_INT(rmq_route_data_decode(text(left), &a, why, sizeof why), 0);
  CHECK_INT(rmq_route_data_decode(text(right), &b, why, sizeof why), 0);
  bool equal = rmq_route_data_equal(&a, &b);
  CHECK_INT(equal, rmq_route_data_equal(&b, &a));
  rmq_route_data_free(&a);
  rmq_route_data_free(&b);
  return equal;
}

static void test_route_equal(void) {
  CHECK(routes_equal("{}", "{\"queueDatas\":[],\"orderTopicConf\":null}"));
  CHECK(!routes_equal("{}", "{\"orderTopicConf\":\"\"}"));
  CHECK(routes_equal("{\"queueDatas\":[{\"brokerName\":\"b\"},{\"brokerName\":\"a\"}]}",
                     "{\"queueDatas\":[{\"brokerName\":\"a\"},{\"brokerName\":\"b\"}]}"));
  CHECK(!routes_equal("{\"queueDatas\":[{\"brokerName\":\"a\",\"perm\":6}]}",
                      "{\"queueDatas\":[{\"brokerName\":\"a\",\"perm\":4}]}"));
  CHECK(!routes_equal("{\"queueDatas\":[{\"brokerName\":\"a\",\"topicSysFlag\":1}]}",
                      "{\"queueDatas\":[{\"brokerName\":\"a\",\"topicSysFlag\":2}]}"));
  CHECK(routes_equal("{\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{1:\"y\",0:\"x\"}}]}",
                     "{\"brokerDatas\":[{\"brokerName\":\"a\",\"cluster\":\"c\",\"brokerAddrs\":"
                     "{\"0\":\"x\",\"1\":\"y\"}}]}"));
  CHECK(!routes_equal("{\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{0:\"x\"}}]}",
                      "{\"brokerDatas\":[{\"brokerName\":\"a\",\"brokerAddrs\":{0:\"y\"}}]}"));
}

/* The time field of an id: the digits 20 to 27 of one with an IPv4 address. */
static long id_time(const char *id) {
  char digits[9] = {0};
  memcpy(digits, id + 20, 8);
  return strtol(digits, NULL, 16);
}

static long time_in_zone(const char *zone, int64_t ms) {
  char id[RMQ_UNIQUE_ID_MAX];
  rmq_id_maker maker;
  rmq_identity identity = {.ip = {10, 0, 0, 1}, .ip_len = 4};
  setenv("TZ", zone, 1);
  tzset();
  rmq_id_init(&maker, &identity);
  CHECK_INT(rmq_id_next(&maker, (rmq_wall){ms}, id), 32);
  return id_time(id);
}

/* 2020-11-01 00:00 UTC was 1604188800 s. */
static void test_month_start(void) {
  const int64_t november = 1604188800000;
  CHECK_INT(time_in_zone("UTC0", november), 0);
  CHECK_INT(time_in_zone("UTC0", november + 5), 5);
  CHECK_INT(time_in_zone("UTC0", november - 1), 31L * 86400000 - 1);
  CHECK_INT(time_in_zone("EAST-8", november), 8L * 3600000);
  CHECK_INT(time_in_zone("WEST8", november), 31L * 86400000 - 8L * 3600000);
  /* Here midnight of 1 November does not exist: the clocks go from 0:00 to 1:00. */
  CHECK_INT(time_in_zone("GAP3SUM,M11.1.0/0,M2.3.0/0", november + 3L * 3600000), 0);
  CHECK_INT(time_in_zone("GAP3SUM,M11.1.0/0,M2.3.0/0", november + 3L * 3600000 + 9), 9);
  CHECK_INT(time_in_zone("GAP3SUM,M11.1.0/0,M2.3.0/0", november + 3L * 3600000 - 1),
            31L * 86400000 - 1);
  setenv("TZ", "UTC0", 1);
  tzset();
}

int main(void) {
  check_run("scan twins", test_scan_twins);
  check_run("quotes limit", test_quotes_limit);
  check_run("fast header agrees", test_fast_header_agrees);
  check_run("header fields", test_header_fields);
  check_run("numbers", test_numbers);
  check_run("send request bytes", test_send_request_bytes);
  check_run("max offset request", test_max_offset_request);
  check_run("send reply write", test_send_reply_write);
  check_run("route equal", test_route_equal);
  check_run("month start", test_month_start);
  return check_end();
}

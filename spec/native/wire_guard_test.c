/* Every prefix of every kind of input, placed so that the byte after it cannot be read: a decoder that
 * looks past its end dies here. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "wire/batch.h"
#include "wire/client.h"
#include "wire/codes.h"
#include "wire/ids.h"
#include "wire/json.h"
#include "wire/namesrv.h"
#include "wire/properties.h"
#include "wire/route.h"
#include "wire/scan.h"
#include "wire/send.h"
#include "wire/stored.h"

static char *guard; /* the first byte that cannot be read */
static char *room;
static rmq_buf scratch;
static rmq_header header;
static volatile unsigned touched;

static int make_guard(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = 4 * page;
  room = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return -1;
  guard = room + size;
  return mprotect(guard, page, PROT_NONE);
}

/* The first `len` bytes of a text, right before the guard. */
static rmq_slice place(rmq_slice text, size_t len) {
  if (len) memcpy(guard - len, text.ptr, len);
  return rmq_slice_make(guard - len, len);
}

static void touch(rmq_slice text) {
  for (size_t i = 0; i < text.len; i++) touched += (unsigned char)text.ptr[i];
}

static void touch_header(void) {
  touch(header.remark);
  for (size_t i = 0; i < header.n_ext; i++) {
    touch(header.ext[i].name);
    touch(header.ext[i].value);
  }
}

/* Calls a decoder with every prefix, the whole text included; it says whether it took it. */
static int taken(rmq_slice text, int (*decode)(rmq_slice)) {
  int count = 0;
  for (size_t len = 0; len <= text.len; len++) count += decode(place(text, len)) ? 1 : 0;
  return count;
}

static int decode_frame(rmq_slice bytes) {
  rmq_frame frame;
  const char *why;
  if (rmq_frame_split(bytes, &frame, &why) != 1) return 0;
  touch(frame.header);
  touch(frame.body);
  return 1;
}

static int decode_json_header(rmq_slice bytes) {
  if (rmq_header_decode(RMQ_SERIALIZE_JSON, bytes, &scratch, &header) != 0) return 0;
  touch_header();
  return 1;
}

static int decode_json_header_slowly(rmq_slice bytes) {
  if (rmq_header_decode_json(bytes, &scratch, &header) != 0) return 0;
  touch_header();
  return 1;
}

static int decode_binary_header(rmq_slice bytes) {
  if (rmq_header_decode(RMQ_SERIALIZE_ROCKETMQ, bytes, &scratch, &header) != 0) return 0;
  touch_header();
  return 1;
}

static int decode_route(rmq_slice bytes) {
  rmq_route_data route;
  char why[64];
  if (rmq_route_data_decode(bytes, &route, why, sizeof why) != 0) return 0;
  rmq_route_data_free(&route);
  return 1;
}

static int decode_properties(rmq_slice bytes) {
  rmq_field pair;
  while (rmq_properties_next(&bytes, &pair)) {
    touch(pair.name);
    touch(pair.value);
  }
  return 1;
}

static int decode_batch(rmq_slice bytes) {
  rmq_batch_member member;
  int got;
  while ((got = rmq_batch_next(&bytes, &member)) == 1) {
    touch(member.body);
    touch(member.properties);
  }
  return got == 0;
}

static int decode_stored(rmq_slice bytes) {
  rmq_stored_message message;
  int got;
  while ((got = rmq_stored_next(&bytes, &message)) == 1) {
    touch(message.body);
    touch(message.topic);
    touch(message.properties);
  }
  return got == 0;
}

static int decode_offset_id(rmq_slice bytes) {
  rmq_offset_id id;
  return rmq_offset_id_decode(bytes, &id) == 0;
}

static int decode_namesrv(rmq_slice bytes) {
  rmq_slice part;
  const char *why;
  int got;
  while ((got = rmq_namesrv_next(&bytes, &part, &why)) == 1) touch(part);
  return got == 0;
}

static int scan(rmq_slice bytes) {
  static rmq_quotes quotes;
  bool high = false;
  touched += (unsigned)(rmq_scan_string(bytes.ptr, bytes.ptr + bytes.len, &high) - bytes.ptr);
  return rmq_quotes_find(bytes, &quotes);
}

static const char reply[] =
    "{\"code\":0,\"extFields\":{\"queueId\":\"3\",\"TRACE_ON\":\"true\",\"msgId\":"
    "\"7F0000010000238F00000000075BCD15\",\"queueOffset\":\"1000000000\"},\"flag\":1,"
    "\"language\":\"JAVA\",\"opaque\":12,\"remark\":\"\xc3\xa9\xf0\x9f\x98\x80\",\"version\":493}";

static const char odd_header[] =
    "{ \"code\" : 17, \"remark\":\"\\u00e9\\ud83d\\ude00 \\\"x\\\"\\n\xc3\xa9\", \"extFields\" :"
    " {\"a\":-1.5e+10,\"b\":true,\"c\":null},\"x\":[1,{\"y\":[]}],\"language\":\"GO\"}";

static const char route_text[] =
    "{\"brokerDatas\":[{\"brokerAddrs\":{0:\"a:1\",-1:\"b:2\"},\"brokerName\":\"b\\u0061\"}],"
    "\"queueDatas\":[{\"brokerName\":\"ba\",\"writeQueueNums\":4}],\"orderTopicConf\":\"ba:4\"}";

/* Of a text that is whole only at its end, nothing but the whole is taken. */
static void test_whole_texts(void) {
  CHECK_INT(taken(rmq_slice_text(reply), decode_json_header), 1);
  CHECK_INT(taken(rmq_slice_text(reply), decode_json_header_slowly), 1);
  CHECK_INT(taken(rmq_slice_text(odd_header), decode_json_header), 1);
  CHECK_INT(taken(rmq_slice_text(route_text), decode_route), 1);
  CHECK_INT(taken(rmq_slice_text("7F0000010000238F000000000001E240"), decode_offset_id), 1);
  CHECK_INT(taken(rmq_slice_text("0000000000000000000000000000000100000000000000000001E240"),
                  decode_offset_id),
            2); /* the first 32 digits are an id too */
}

static rmq_send_header send_header(void) {
  return (rmq_send_header){.producer_group = rmq_slice_text("g"),
                           .topic = rmq_slice_text("T"),
                           .default_topic = rmq_slice_text("TBW102"),
                           .born_timestamp = 1700000000000,
                           .properties = rmq_slice_text("KEYS\001k\002"),
                           .max_reconsume_times = 3,
                           .broker_name = rmq_slice_text("broker-a")};
}

static void check_frames(rmq_serialize serialize, int (*decode)(rmq_slice)) {
  rmq_buf out = {0};
  rmq_send_header send = send_header();
  rmq_slice groups[] = {rmq_slice_text("g"), rmq_slice_text("h")};
  for (int kind = 0; kind < 4; kind++) {
    rmq_frame frame;
    rmq_buf_clear(&out);
    if (kind == 0) {
      rmq_send_request_encode(&out, serialize, RMQ_SEND_MESSAGE_V2, 1, 0, &send,
                              rmq_slice_text("body"));
    } else if (kind == 1) {
      rmq_heartbeat_encode(&out, serialize, 2, rmq_slice_text("c@1"), groups, 2);
    } else if (kind == 2) {
      rmq_unregister_encode(&out, serialize, 3, rmq_slice_text("c@1"), groups[0]);
    } else {
      rmq_route_request_encode(&out, serialize, 4, rmq_slice_text("T"));
    }
    CHECK_INT(taken(rmq_buf_slice(&out), decode_frame), 1);
    CHECK_INT(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL), 1);
    CHECK_INT(taken(frame.header, decode), 1);
  }
  rmq_buf_free(&out);
}

static void test_frames(void) {
  check_frames(RMQ_SERIALIZE_JSON, decode_json_header);
  check_frames(RMQ_SERIALIZE_ROCKETMQ, decode_binary_header);
}

static void test_lists(void) {
  rmq_buf out = {0};
  rmq_slice pairs = rmq_slice_text("a\001b\002\001c\002d\001\002KEYS\001k1 k2");
  rmq_batch_member member = {12, rmq_slice_text("body"), pairs};
  CHECK_INT(taken(pairs, decode_properties), (int)pairs.len + 1);
  CHECK_INT(rmq_batch_put(&out, &member), 0);
  CHECK_INT(rmq_batch_put(&out, &member), 0);
  CHECK_INT(taken(rmq_buf_slice(&out), decode_batch), 3); /* none, one, both */
  CHECK(taken(rmq_slice_text(" http://a:9876/x ; [::1]:9876,b:1"), decode_namesrv) > 0);
  CHECK(
      taken(rmq_slice_text("plain text without anything in it: \xc3\xa9 \"quoted\" and \\"), scan));
  rmq_buf_free(&out);
}

static void test_stored(void) {
  rmq_buf out = {0};
  rmq_stored_message message = {.born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 16},
                                .body = rmq_slice_text("body"),
                                .topic = rmq_slice_text("T"),
                                .properties = rmq_slice_text("KEYS\001k\002")};
  CHECK_INT(rmq_stored_put(&out, &message), 0);
  CHECK_INT(rmq_stored_put(&out, &message), 0);
  CHECK_INT(taken(rmq_buf_slice(&out), decode_stored), 3); /* none, one, both */
  rmq_buf_free(&out);
}

int main(void) {
  if (make_guard() != 0) {
    perror("guard page");
    return 1;
  }
  check_run("whole texts", test_whole_texts);
  check_run("frames", test_frames);
  check_run("lists", test_lists);
  check_run("stored messages", test_stored);
  rmq_buf_free(&scratch);
  return check_end();
}

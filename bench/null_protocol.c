#define _GNU_SOURCE /* memmem */
#include "null_protocol.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bytes.h"

enum {
  FRAME_PREFIX = 8,       /* the length of the frame, then serialisation and header length */
  BINARY_HEADER_MIN = 21, /* code, language, version, opaque, flag, and two empty lengths */
  DECIMAL_MAX = 11,       /* "-2147483648" */
  SERIALIZE_JSON = 0,
  SERIALIZE_ROCKETMQ = 1,
  FLAG_RESPONSE = 1,
  FLAG_ONEWAY = 2
};

enum {
  CODE_SEND_MESSAGE = 10,
  CODE_HEART_BEAT = 34,
  CODE_UNREGISTER_CLIENT = 35,
  CODE_GET_ROUTEINFO_BY_TOPIC = 105,
  CODE_SEND_MESSAGE_V2 = 310,
  CODE_SEND_BATCH_MESSAGE = 320
};

/* The ordinal of 5.4.0, which its servers put into "version". */
#define SERVER_VERSION "493"

/* The queue offset keeps its width, so that it can be counted up where it stands in the text. */
#define FIRST_QUEUE_OFFSET "1000000000"

/* A 5.4.0 broker's extFields for a stored message. The ids have a real one's length. */
#define SENT_FIELDS                                 \
  "\"queueId\":\"0\",\"TRACE_ON\":\"true\","        \
  "\"MSG_REGION\":\"DefaultRegion\","               \
  "\"msgId\":\"7F0000010000238F00000000075BCD15\"," \
  "\"queueOffset\":\"" FIRST_QUEUE_OFFSET           \
  "\",\"transactionId\":\"7F00000104D218B4AAC20B51C6F00000\""

/* Makes a reply. `fields` is the inside of extFields and `remark` a JSON text, both NULL for none.
 * The keys stand in the order in which a Java server writes them. */
static void reply_init(struct rmq_null_reply *reply, int code, const char *fields,
                       const char *remark) {
  int head = snprintf(reply->head, sizeof reply->head,
                      "{\"code\":%d,%s%s%s\"flag\":1,\"language\":\"JAVA\",\"opaque\":", code,
                      fields ? "\"extFields\":{" : "", fields ? fields : "", fields ? "}," : "");
  int tail = snprintf(reply->tail, sizeof reply->tail,
                      ",%s%s%s\"serializeTypeCurrentRPC\":\"JSON\",\"version\":" SERVER_VERSION "}",
                      remark ? "\"remark\":\"" : "", remark ? remark : "", remark ? "\"," : "");
  assert(head > 0 && (size_t)head < sizeof reply->head);
  assert(tail > 0 && (size_t)tail < sizeof reply->tail);
  reply->head_size = (size_t)head;
  reply->tail_size = (size_t)tail;
  reply->body_size = 0;
}

/* The route of every topic, in the spelling with quoted ids. */
static void route_init(struct rmq_null_reply *reply, const char *broker, unsigned queues) {
  reply_init(reply, 0, NULL, NULL);
  int size = snprintf(
      reply->body, sizeof reply->body,
      "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"%s\"},\"brokerName\":\"null-broker\","
      "\"cluster\":\"NullCluster\",\"enableActingMaster\":false}],\"filterServerTable\":{},"
      "\"queueDatas\":[{\"brokerName\":\"null-broker\",\"perm\":6,\"readQueueNums\":%u,"
      "\"topicSysFlag\":0,\"writeQueueNums\":%u}]}",
      broker, queues, queues);
  assert(size > 0 && (size_t)size < sizeof reply->body);
  reply->body_size = (size_t)size;
}

void rmq_null_replies_init(struct rmq_null_replies *replies, const char *broker, unsigned queues) {
  route_init(&replies->route, broker, queues);
  reply_init(&replies->done, 0, NULL, NULL);
  reply_init(&replies->sent, 0, SENT_FIELDS, NULL);
  reply_init(&replies->unknown, 3, NULL, "request type not supported");
  char *offset = strstr(replies->sent.head, FIRST_QUEUE_OFFSET);
  assert(offset != NULL);
  replies->queue_offset = offset + strlen(FIRST_QUEUE_OFFSET) - 1;
  replies->sends = 0;
}

size_t rmq_null_answer_max(void) {
  const struct rmq_null_reply *reply = NULL;
  return FRAME_PREFIX + sizeof reply->head + DECIMAL_MAX + sizeof reply->tail + sizeof reply->body;
}

/* Reads the digits behind `key`. Values inside extFields are always texts, so a key followed by a
 * bare number can only be the header's own. Digits beyond an int32 wrap: such a request gets an
 * answer that nobody asked for. */
static bool json_number(const uint8_t *header, size_t size, const char *key, int32_t *value) {
  const uint8_t *end = header + size;
  size_t key_size = strlen(key);
  const uint8_t *at = header;
  while ((at = memmem(at, (size_t)(end - at), key, key_size)) != NULL) {
    at += key_size;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    if (at < end && *at >= '0' && *at <= '9') {
      uint32_t number = 0;
      for (; at < end && *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint32_t)(*at - '0');
      *value = (int32_t)(negative ? 0 - number : number);
      return true;
    }
  }
  return false;
}

static bool parse_json(const uint8_t *header, size_t size, struct rmq_null_request *request) {
  request->flag = 0;
  json_number(header, size, "\"flag\":", &request->flag);
  return json_number(header, size, "\"code\":", &request->code) &&
         json_number(header, size, "\"opaque\":", &request->opaque);
}

static bool parse_binary(const uint8_t *header, size_t size, struct rmq_null_request *request) {
  if (size < BINARY_HEADER_MIN) return false;
  request->code = (int16_t)rmq_bench_get16(header);
  request->opaque = (int32_t)rmq_bench_get32(header + 5);
  request->flag = (int32_t)rmq_bench_get32(header + 9);
  return true;
}

int64_t rmq_null_parse(const uint8_t *bytes, size_t size, struct rmq_null_request *request) {
  if (size < 4) return 0;
  size_t frame = 4 + (size_t)rmq_bench_get32(bytes);
  if (frame < FRAME_PREFIX || frame > RMQ_NULL_MAX_FRAME) return -1;
  if (size < frame) return 0;

  size_t header = rmq_bench_get32(bytes + 4) & 0xFFFFFF;
  if (header > frame - FRAME_PREFIX) return -1;
  bool good = false;
  if (bytes[4] == SERIALIZE_ROCKETMQ) good = parse_binary(bytes + FRAME_PREFIX, header, request);
  if (bytes[4] == SERIALIZE_JSON) good = parse_json(bytes + FRAME_PREFIX, header, request);
  return good ? (int64_t)frame : -1;
}

/* Writes `value` in decimal, at most DECIMAL_MAX bytes, and gives the first byte behind it. */
static uint8_t *put_decimal(uint8_t *out, int32_t value) {
  uint32_t rest = value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
  char digits[DECIMAL_MAX];
  size_t first = sizeof digits;
  do {
    digits[--first] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (value < 0) digits[--first] = '-';
  memcpy(out, digits + first, sizeof digits - first);
  return out + (sizeof digits - first);
}

static size_t put_reply(uint8_t *out, const struct rmq_null_reply *reply, int32_t opaque) {
  uint8_t *at = out + FRAME_PREFIX;
  memcpy(at, reply->head, reply->head_size);
  at = put_decimal(at + reply->head_size, opaque);
  memcpy(at, reply->tail, reply->tail_size);
  at += reply->tail_size;
  size_t header = (size_t)(at - out) - FRAME_PREFIX;
  memcpy(at, reply->body, reply->body_size);
  at += reply->body_size;
  rmq_bench_put32(out, (uint32_t)(at - out) - 4);
  rmq_bench_put32(out + 4, (uint32_t)header); /* the top byte stays 0: JSON */
  return (size_t)(at - out);
}

/* Adds one to the decimal number whose last digit is at `last`. A number of nines becomes zeros. */
static void count_up(char *last, size_t digits) {
  for (; digits > 0; digits--, last--) {
    if (*last != '9') {
      (*last)++;
      return;
    }
    *last = '0';
  }
}

static const struct rmq_null_reply *reply_for(struct rmq_null_replies *replies, int32_t code) {
  switch (code) {
    case CODE_SEND_MESSAGE:
    case CODE_SEND_MESSAGE_V2:
    case CODE_SEND_BATCH_MESSAGE:
      replies->sends++;
      count_up(replies->queue_offset, strlen(FIRST_QUEUE_OFFSET));
      return &replies->sent;
    case CODE_GET_ROUTEINFO_BY_TOPIC:
      return &replies->route;
    case CODE_HEART_BEAT:
    case CODE_UNREGISTER_CLIENT:
      return &replies->done;
    default:
      return &replies->unknown;
  }
}

size_t rmq_null_answer(struct rmq_null_replies *replies, const struct rmq_null_request *request,
                       uint8_t *out) {
  if (request->flag & FLAG_RESPONSE) return 0;
  const struct rmq_null_reply *reply = reply_for(replies, request->code);
  if (request->flag & FLAG_ONEWAY) return 0;
  return put_reply(out, reply, request->opaque);
}

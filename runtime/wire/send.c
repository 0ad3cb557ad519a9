#include "wire/send.h"

#include "base/error.h"
#include "wire/codes.h"
#include "wire/number.h"

/* --- The request -------------------------------------------------------------------------------- */

/* What a binary frame takes besides the texts: 8 bytes of lengths, 21 of the header's fixed part, and 14
 * fields with 7 bytes around each value, of which ten are numbers or booleans. */
enum { BINARY_FIXED = 21, BINARY_MOST = 8 + BINARY_FIXED + 14 * 7 + 10 * RMQ_NUMBER_MAX };

static uint8_t *write_u32(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 24);
  at[1] = (uint8_t)(value >> 16);
  at[2] = (uint8_t)(value >> 8);
  at[3] = (uint8_t)value;
  return at + 4;
}

static uint8_t *write_u16(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
  return at + 2;
}

/* The name of every V2 field is one letter. */
static uint8_t *write_name(uint8_t *at, char name) {
  at[0] = 0;
  at[1] = 1;
  at[2] = (uint8_t)name;
  return at + 3;
}

static uint8_t *copy(uint8_t *at, rmq_slice bytes) {
  if (bytes.len) memcpy(at, bytes.ptr, bytes.len);
  return at + bytes.len;
}

static uint8_t *write_text(uint8_t *at, char name, rmq_slice value) {
  return copy(write_u32(write_name(at, name), (uint32_t)value.len), value);
}

static uint8_t *write_int(uint8_t *at, char name, int64_t value) {
  at = write_name(at, name);
  size_t len = rmq_number_write((char *)at + 4, value);
  return write_u32(at, (uint32_t)len) + len;
}

static uint8_t *write_bool(uint8_t *at, char name, bool value) {
  return write_text(at, name, value ? rmq_slice_make("true", 4) : rmq_slice_make("false", 5));
}

/* The fields that are the same in all messages of a topic. The order of fields means nothing, so
 * they may stand in one piece before the others. */
static uint8_t *write_fixed(uint8_t *at, const rmq_send_header *header) {
  at = write_text(at, 'a', header->producer_group);
  at = write_text(at, 'b', header->topic);
  at = write_text(at, 'c', header->default_topic);
  at = write_int(at, 'd', header->default_topic_queue_nums);
  at = write_int(at, 'j', header->reconsume_times);
  at = write_bool(at, 'k', header->unit_mode);
  if (header->max_reconsume_times != -1) at = write_int(at, 'l', header->max_reconsume_times);
  return write_bool(at, 'm', header->batch);
}

static uint8_t *write_fields(uint8_t *at, const rmq_send_header *header) {
  at = header->fixed.len ? copy(at, header->fixed) : write_fixed(at, header);
  at = write_int(at, 'e', header->queue_id);
  at = write_int(at, 'f', header->sys_flag);
  at = write_int(at, 'g', header->born_timestamp);
  at = write_int(at, 'h', header->flag);
  if (header->properties.len) at = write_text(at, 'i', header->properties);
  if (header->broker_name.len) at = write_text(at, 'n', header->broker_name);
  return at;
}

/* The room for a header's fields, whichever way they are written. */
static size_t most_of(const rmq_send_header *header) {
  return BINARY_MOST + header->fixed.len + header->producer_group.len + header->topic.len +
         header->default_topic.len + header->properties.len + header->broker_name.len;
}

void rmq_send_fixed_encode(rmq_buf *out, const rmq_send_header *header) {
  uint8_t *at = rmq_buf_reserve(out, most_of(header));
  rmq_buf_commit(out, (size_t)(write_fixed(at, header) - at));
}

/* The hot path: one reservation, then everything is written where it stays. */
static void encode_binary(rmq_buf *out, int32_t code, int32_t opaque, int32_t flag,
                          const rmq_send_header *header, rmq_slice body) {
  uint8_t *start = rmq_buf_reserve(out, most_of(header) + body.len);
  uint8_t *at = start + 8;
  at = write_u16(at, (uint32_t)code);
  *at++ = RMQ_LANGUAGE_OTHER;
  at = write_u16(at, RMQ_VERSION);
  at = write_u32(at, (uint32_t)opaque);
  at = write_u32(at, (uint32_t)flag);
  at = write_u32(at, 0); /* no remark */
  uint8_t *ext = at;
  at = write_fields(at + 4, header);
  write_u32(ext, (uint32_t)(at - ext - 4));
  uint32_t header_len = (uint32_t)(at - start - 8);
  at = copy(at, body);
  write_u32(start, (uint32_t)(at - start - 4));
  write_u32(start + 4, (uint32_t)RMQ_SERIALIZE_ROCKETMQ << 24 | header_len);
  rmq_buf_commit(out, (size_t)(at - start));
}

/* The name of a field as a slice; a literal's length is known when this is compiled. */
static inline rmq_slice name(const char *text) { return rmq_slice_text(text); }

static void encode_json(rmq_buf *out, int32_t code, int32_t opaque, int32_t flag,
                        const rmq_send_header *header, rmq_slice body) {
  rmq_frame_writer writer;
  rmq_command command = rmq_command_request(code, opaque, flag);
  rmq_frame_begin(&writer, out, RMQ_SERIALIZE_JSON, &command);
  rmq_frame_text(&writer, name("a"), header->producer_group);
  rmq_frame_text(&writer, name("b"), header->topic);
  rmq_frame_text(&writer, name("c"), header->default_topic);
  rmq_frame_int(&writer, name("d"), header->default_topic_queue_nums);
  rmq_frame_int(&writer, name("e"), header->queue_id);
  rmq_frame_int(&writer, name("f"), header->sys_flag);
  rmq_frame_int(&writer, name("g"), header->born_timestamp);
  rmq_frame_int(&writer, name("h"), header->flag);
  if (header->properties.len) rmq_frame_text(&writer, name("i"), header->properties);
  rmq_frame_int(&writer, name("j"), header->reconsume_times);
  rmq_frame_bool(&writer, name("k"), header->unit_mode);
  if (header->max_reconsume_times != -1) {
    rmq_frame_int(&writer, name("l"), header->max_reconsume_times);
  }
  rmq_frame_bool(&writer, name("m"), header->batch);
  if (header->broker_name.len) rmq_frame_text(&writer, name("n"), header->broker_name);
  rmq_frame_end(&writer, body);
}

void rmq_send_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t code, int32_t opaque,
                             int32_t flag, const rmq_send_header *header, rmq_slice body) {
  if (serialize == RMQ_SERIALIZE_ROCKETMQ) {
    encode_binary(out, code, opaque, flag, header, body);
  } else {
    encode_json(out, code, opaque, flag, header, body);
  }
}

/* The fields of a send header in both spellings, and how an error names them. */
typedef struct send_field {
  const char *v1;
  const char *v2;
  const char *label;
} send_field;

static const send_field field_group = {"producerGroup", "a", "a (producerGroup)"};
static const send_field field_topic = {"topic", "b", "b (topic)"};
static const send_field field_default_topic = {"defaultTopic", "c", "c (defaultTopic)"};
static const send_field field_queue_nums = {"defaultTopicQueueNums", "d",
                                            "d (defaultTopicQueueNums)"};
static const send_field field_queue_id = {"queueId", "e", "e (queueId)"};
static const send_field field_sys_flag = {"sysFlag", "f", "f (sysFlag)"};
static const send_field field_born = {"bornTimestamp", "g", "g (bornTimestamp)"};
static const send_field field_flag = {"flag", "h", "h (flag)"};
static const send_field field_properties = {"properties", "i", "i (properties)"};
static const send_field field_reconsume = {"reconsumeTimes", "j", "j (reconsumeTimes)"};
static const send_field field_unit_mode = {"unitMode", "k", "k (unitMode)"};
static const send_field field_max_reconsume = {"maxReconsumeTimes", "l", "l (maxReconsumeTimes)"};
static const send_field field_batch = {"batch", "m", "m (batch)"};
static const send_field field_broker = {"bname", "n", "n (bname)"};

/* Reads field after field; the first that is wrong stays in `missing`. */
typedef struct send_reader {
  const rmq_header *header;
  bool v2;
  const char *missing;
} send_reader;

static const char *key_of(const send_reader *reader, const send_field *field) {
  return reader->v2 ? field->v2 : field->v1;
}

static void note(send_reader *reader, const send_field *field) {
  if (!reader->missing) reader->missing = reader->v2 ? field->label : field->v1;
}

static rmq_slice optional_text(send_reader *reader, const send_field *field) {
  return rmq_header_field(reader->header, key_of(reader, field));
}

static rmq_slice required_text(send_reader *reader, const send_field *field) {
  rmq_slice text = optional_text(reader, field);
  if (!text.ptr) note(reader, field);
  return text;
}

static int32_t required_i32(send_reader *reader, const send_field *field) {
  int32_t value = 0;
  if (rmq_header_i32(reader->header, key_of(reader, field), &value) != 1) note(reader, field);
  return value;
}

static int64_t required_i64(send_reader *reader, const send_field *field) {
  int64_t value = 0;
  if (rmq_header_i64(reader->header, key_of(reader, field), &value) != 1) note(reader, field);
  return value;
}

static int32_t optional_i32(send_reader *reader, const send_field *field, int32_t otherwise) {
  int32_t value = otherwise;
  if (rmq_header_i32(reader->header, key_of(reader, field), &value) < 0) note(reader, field);
  return value;
}

static bool optional_bool(send_reader *reader, const send_field *field) {
  bool value = false;
  rmq_header_bool(reader->header, key_of(reader, field), &value);
  return value;
}

/* 1 for V1, 2 for V2, 0 when the code is no send. */
static int version_of(int32_t code) {
  switch (code) {
    case RMQ_SEND_MESSAGE:
    case RMQ_SEND_REPLY_MESSAGE:
      return 1;
    case RMQ_SEND_MESSAGE_V2:
    case RMQ_SEND_BATCH_MESSAGE:
    case RMQ_SEND_REPLY_MESSAGE_V2:
      return 2;
    default:
      return 0;
  }
}

int rmq_send_header_decode(const rmq_header *header, rmq_send_header *out, const char **missing) {
  int version = version_of(header->code);
  if (version == 0) {
    *missing = "code (of a send request)";
    return RMQ_EPROTO;
  }
  send_reader reader = {header, version == 2, NULL};
  out->producer_group = required_text(&reader, &field_group);
  out->topic = required_text(&reader, &field_topic);
  out->default_topic = required_text(&reader, &field_default_topic);
  out->default_topic_queue_nums = required_i32(&reader, &field_queue_nums);
  out->queue_id = required_i32(&reader, &field_queue_id);
  out->sys_flag = required_i32(&reader, &field_sys_flag);
  out->born_timestamp = required_i64(&reader, &field_born);
  out->flag = required_i32(&reader, &field_flag);
  out->properties = optional_text(&reader, &field_properties);
  out->reconsume_times = optional_i32(&reader, &field_reconsume, 0);
  out->unit_mode = optional_bool(&reader, &field_unit_mode);
  out->max_reconsume_times = optional_i32(&reader, &field_max_reconsume, -1);
  out->batch = optional_bool(&reader, &field_batch);
  out->broker_name = optional_text(&reader, &field_broker);
  out->fixed = rmq_slice_make(NULL, 0);
  if (!reader.missing) return 0;
  *missing = reader.missing;
  return RMQ_EPROTO;
}

/* --- The reply ---------------------------------------------------------------------------------- */

/* The texts of a reply's fields as they came; one pass over the header fills them. */
typedef struct reply_texts {
  rmq_slice msg_id;
  rmq_slice queue_id;
  rmq_slice queue_offset;
  rmq_slice trace_on;
} reply_texts;

static bool named(const rmq_field *field, const char *text, size_t len) {
  return memcmp(field->name.ptr, text, len) == 0;
}

/* Where the value of a field goes; NULL for fields that mean nothing here. */
static rmq_slice *place_of(const rmq_field *field, reply_texts *texts, rmq_send_reply *out) {
  switch (field->name.len) {
    case 5:
      return named(field, "msgId", 5) ? &texts->msg_id : NULL;
    case 7:
      return named(field, "queueId", 7) ? &texts->queue_id : NULL;
    case 8:
      return named(field, "TRACE_ON", 8) ? &texts->trace_on : NULL;
    case 10:
      return named(field, "MSG_REGION", 10) ? &out->region_id : NULL;
    case 11:
      if (named(field, "queueOffset", 11)) return &texts->queue_offset;
      return named(field, "batchUniqId", 11) ? &out->batch_uniq_id : NULL;
    case 12:
      return named(field, "recallHandle", 12) ? &out->recall_handle : NULL;
    case 13:
      return named(field, "transactionId", 13) ? &out->transaction_id : NULL;
    default:
      return NULL;
  }
}

int rmq_send_reply_decode(const rmq_header *header, rmq_send_reply *out, const char **missing) {
  reply_texts texts = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < header->n_ext; i++) {
    rmq_slice *place = place_of(&header->ext[i], &texts, out);
    if (place) *place = header->ext[i].value;
  }
  *missing = "msgId";
  if (!texts.msg_id.ptr) return RMQ_EPROTO;
  *missing = "queueId";
  if (rmq_number_i32(texts.queue_id, &out->queue_id) != 0) return RMQ_EPROTO;
  *missing = "queueOffset";
  if (rmq_number_i64(texts.queue_offset, &out->queue_offset) != 0) return RMQ_EPROTO;
  *missing = NULL;
  out->msg_id = texts.msg_id;
  out->trace_on = !rmq_slice_is(texts.trace_on, "false");
  if (out->region_id.len == 0) out->region_id = rmq_slice_text("DefaultRegion");
  return 0;
}

static void write_present(rmq_frame_writer *writer, rmq_slice key, rmq_slice value) {
  if (value.ptr) rmq_frame_text(writer, key, value);
}

void rmq_send_reply_write(rmq_frame_writer *writer, const rmq_send_reply *reply) {
  rmq_frame_text(writer, name("msgId"), reply->msg_id);
  rmq_frame_int(writer, name("queueId"), reply->queue_id);
  rmq_frame_int(writer, name("queueOffset"), reply->queue_offset);
  write_present(writer, name("transactionId"), reply->transaction_id);
  write_present(writer, name("batchUniqId"), reply->batch_uniq_id);
  write_present(writer, name("recallHandle"), reply->recall_handle);
  write_present(writer, name("MSG_REGION"), reply->region_id);
  rmq_frame_bool(writer, name("TRACE_ON"), reply->trace_on);
}

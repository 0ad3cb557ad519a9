#include "wire/header.h"

#include "base/cursor.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/codes.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/scan.h"

/* The members of a JSON header that mean something to us. */
typedef enum header_key {
  KEY_UNKNOWN,
  KEY_CODE,
  KEY_FLAG,
  KEY_LANGUAGE,
  KEY_OPAQUE,
  KEY_REMARK,
  KEY_VERSION,
  KEY_EXT_FIELDS
} header_key;

static header_key key_of(rmq_slice name) {
  const char *text = name.ptr;
  switch (name.len) {
    case 4:
      if (memcmp(text, "code", 4) == 0) return KEY_CODE;
      return memcmp(text, "flag", 4) == 0 ? KEY_FLAG : KEY_UNKNOWN;
    case 6:
      if (memcmp(text, "opaque", 6) == 0) return KEY_OPAQUE;
      return memcmp(text, "remark", 6) == 0 ? KEY_REMARK : KEY_UNKNOWN;
    case 7:
      return memcmp(text, "version", 7) == 0 ? KEY_VERSION : KEY_UNKNOWN;
    case 8:
      return memcmp(text, "language", 8) == 0 ? KEY_LANGUAGE : KEY_UNKNOWN;
    case 9:
      return memcmp(text, "extFields", 9) == 0 ? KEY_EXT_FIELDS : KEY_UNKNOWN;
    default:
      return KEY_UNKNOWN;
  }
}

/* Where the number of a key goes, or NULL when its value is no number. */
static int32_t *number_place(rmq_header *header, header_key key) {
  switch (key) {
    case KEY_CODE:
      return &header->code;
    case KEY_FLAG:
      return &header->flag;
    case KEY_OPAQUE:
      return &header->opaque;
    case KEY_VERSION:
      return &header->version;
    default:
      return NULL;
  }
}

/* A language that we have never heard of is no reason to refuse an answer. */
static int32_t language_of(rmq_slice name) {
  if (name.len == 4 && memcmp(name.ptr, "JAVA", 4) == 0) return 0;
  int code = rmq_language_code(name.ptr, name.len);
  return code < 0 ? RMQ_LANGUAGE_OTHER : code;
}

static void set_defaults(rmq_header *header) {
  header->code = header->language = header->version = header->opaque = header->flag = 0;
  header->remark = rmq_slice_make(NULL, 0);
  header->n_ext = 0;
}

/* The fast way through JSON as servers write it: no white space, no escapes, nothing nested but
 * extFields with strings in it. It walks from quote to quote without looking at what is between them,
 * and gives up (then the general reader decides) at whatever it does not know. The text ends with '}',
 * which is no quote, digit, ':' or ',': whoever stands on one of these may look at the next byte. */
typedef struct fast_reader {
  const char *text;
  const uint16_t *quote; /* the next quote; past the last one stands 0, where no string can begin */
  size_t at;
} fast_reader;

static bool fast_string(fast_reader *reader, rmq_slice *out) {
  size_t open = reader->quote[0];
  size_t close = reader->quote[1];
  if (open != reader->at || close < open) return false;
  *out = rmq_slice_make(reader->text + open + 1, close - open - 1);
  reader->quote += 2;
  reader->at = close + 1;
  return true;
}

static bool fast_key(fast_reader *reader, rmq_slice *out) {
  if (!fast_string(reader, out) || reader->text[reader->at] != ':') return false;
  reader->at++;
  return true;
}

/* An integer of at most nine digits; longer ones are for the general reader, which checks their range. */
static bool fast_number(fast_reader *reader, int32_t *out) {
  const char *at = reader->text + reader->at;
  bool negative = *at == '-';
  if (negative) at++;
  const char *first = at;
  int32_t sum = 0;
  while (*at >= '0' && *at <= '9') {
    if (at - first == 9) return false;
    sum = sum * 10 + (*at++ - '0');
  }
  if (at == first || (*first == '0' && at - first > 1)) return false;
  *out = negative ? -sum : sum;
  reader->at = (size_t)(at - reader->text);
  return true;
}

/* The fields of extFields, from after its '{' to after its '}'. */
static bool fast_fields(fast_reader *reader, rmq_header *out) {
  out->n_ext = 0;
  if (reader->text[reader->at] == '}') {
    reader->at++;
    return true;
  }
  for (;;) {
    if (out->n_ext == RMQ_EXT_MAX) return false;
    rmq_field *field = &out->ext[out->n_ext++];
    if (!fast_key(reader, &field->name) || !fast_string(reader, &field->value)) return false;
    char c = reader->text[reader->at++];
    if (c == '}') return true;
    if (c != ',') return false;
  }
}

static bool fast_text(fast_reader *reader, header_key key, rmq_header *out) {
  rmq_slice text;
  if (!fast_string(reader, &text) || number_place(out, key) || key == KEY_EXT_FIELDS) return false;
  if (key == KEY_LANGUAGE) out->language = language_of(text);
  if (key == KEY_REMARK) out->remark = text;
  return true;
}

static bool fast_member(fast_reader *reader, rmq_header *out) {
  rmq_slice name;
  if (!fast_key(reader, &name)) return false;
  header_key key = key_of(name);
  char c = reader->text[reader->at];
  if (c == '"') return fast_text(reader, key, out);
  if (c == '{') {
    reader->at++;
    return key == KEY_EXT_FIELDS && fast_fields(reader, out);
  }
  int32_t *place = number_place(out, key);
  return place && fast_number(reader, place);
}

static bool fast_decode(rmq_slice bytes, rmq_header *out) {
  rmq_quotes quotes;
  if (bytes.len < 2 || bytes.ptr[0] != '{' || bytes.ptr[bytes.len - 1] != '}') return false;
  if (!rmq_quotes_find(bytes, &quotes)) return false;
  if (quotes.high && rmq_utf8_invalid_at(bytes) < bytes.len) return false;
  quotes.at[quotes.count] = quotes.at[quotes.count + 1] = 0;
  fast_reader reader = {bytes.ptr, quotes.at, 1};
  set_defaults(out);
  for (;;) {
    if (!fast_member(&reader, out)) return false;
    if (reader.at >= bytes.len) return false;
    char c = bytes.ptr[reader.at++];
    if (c == '}') return reader.at == bytes.len;
    if (c != ',') return false;
  }
}

static int add_field(rmq_header *out, rmq_slice name, rmq_slice value) {
  if (out->n_ext == RMQ_EXT_MAX) return RMQ_ELIMIT;
  out->ext[out->n_ext++] = (rmq_field){name, value};
  return 0;
}

/* A null takes back what the same name said before, as the last value counts. */
static void drop_field(rmq_header *out, rmq_slice name) {
  size_t kept = 0;
  for (size_t i = 0; i < out->n_ext; i++) {
    if (!rmq_slice_equal(out->ext[i].name, name)) out->ext[kept++] = out->ext[i];
  }
  out->n_ext = kept;
}

static int json_field(rmq_json *json, rmq_slice name, rmq_header *out) {
  switch (rmq_json_next(json)) {
    case RMQ_JSON_STRING:
    case RMQ_JSON_NUMBER:
    case RMQ_JSON_TRUE:
    case RMQ_JSON_FALSE:
      return add_field(out, name, json->text);
    case RMQ_JSON_NULL:
      drop_field(out, name);
      return 0;
    default:
      return RMQ_EPROTO;
  }
}

static int json_fields(rmq_json *json, rmq_json_type type, rmq_header *out) {
  out->n_ext = 0;
  if (type == RMQ_JSON_NULL) return 0;
  if (type != RMQ_JSON_OBJECT) return RMQ_EPROTO;
  for (;;) {
    type = rmq_json_next(json);
    if (type == RMQ_JSON_OBJECT_END) return 0;
    if (type != RMQ_JSON_KEY) return RMQ_EPROTO;
    int err = json_field(json, json->text, out);
    if (err) return err;
  }
}

static int json_number(rmq_json *json, rmq_json_type type, int32_t *out) {
  *out = 0;
  if (type == RMQ_JSON_NULL) return 0;
  return type == RMQ_JSON_NUMBER ? rmq_number_i32(json->text, out) : RMQ_EPROTO;
}

static int json_language(rmq_json *json, rmq_json_type type, int32_t *out) {
  int32_t code;
  if (type == RMQ_JSON_STRING) {
    *out = language_of(json->text);
    return 0;
  }
  int err = json_number(json, type, &code);
  if (err) return err;
  *out = rmq_language_name(code) ? code : RMQ_LANGUAGE_OTHER;
  return 0;
}

static int json_remark(rmq_json *json, rmq_json_type type, rmq_slice *out) {
  *out = type == RMQ_JSON_STRING ? json->text : rmq_slice_make(NULL, 0);
  return type == RMQ_JSON_STRING || type == RMQ_JSON_NULL ? 0 : RMQ_EPROTO;
}

static int json_member(rmq_json *json, rmq_header *out) {
  header_key key = key_of(json->text);
  rmq_json_type type = rmq_json_next(json);
  int32_t *place = number_place(out, key);
  if (place) return json_number(json, type, place);
  if (key == KEY_LANGUAGE) return json_language(json, type, &out->language);
  if (key == KEY_REMARK) return json_remark(json, type, &out->remark);
  if (key == KEY_EXT_FIELDS) return json_fields(json, type, out);
  return rmq_json_skip(json, type);
}

int rmq_header_decode_json(rmq_slice bytes, rmq_buf *scratch, rmq_header *out) {
  rmq_json json;
  rmq_buf_clear(scratch);
  rmq_json_init(&json, bytes, scratch);
  set_defaults(out);
  if (rmq_json_next(&json) != RMQ_JSON_OBJECT) return RMQ_EPROTO;
  for (;;) {
    rmq_json_type type = rmq_json_next(&json);
    if (type == RMQ_JSON_OBJECT_END) break;
    if (type != RMQ_JSON_KEY) return RMQ_EPROTO;
    int err = json_member(&json, out);
    if (err) return err;
  }
  return rmq_json_next(&json) == RMQ_JSON_END ? 0 : RMQ_EPROTO;
}

static rmq_slice binary_text(rmq_cursor *cursor) {
  rmq_slice text = rmq_cursor_bytes(cursor, rmq_cursor_i32(cursor));
  return text.len ? text : rmq_slice_make(NULL, 0);
}

static int binary_fields(rmq_slice bytes, rmq_header *out) {
  rmq_cursor cursor = rmq_cursor_make(bytes);
  while (rmq_cursor_left(&cursor) > 0) {
    rmq_slice name = rmq_cursor_bytes(&cursor, rmq_cursor_i16(&cursor));
    rmq_slice value = rmq_cursor_bytes(&cursor, rmq_cursor_i32(&cursor));
    if (cursor.failed) return RMQ_EPROTO;
    int err = add_field(out, name, value);
    if (err) return err;
  }
  return 0;
}

static int decode_binary(rmq_slice bytes, rmq_header *out) {
  rmq_cursor cursor = rmq_cursor_make(bytes);
  set_defaults(out);
  out->code = rmq_cursor_i16(&cursor);
  out->language = rmq_cursor_u8(&cursor);
  out->version = rmq_cursor_i16(&cursor);
  out->opaque = rmq_cursor_i32(&cursor);
  out->flag = rmq_cursor_i32(&cursor);
  out->remark = binary_text(&cursor);
  rmq_slice fields = binary_text(&cursor);
  if (cursor.failed || rmq_cursor_left(&cursor) > 0) return RMQ_EPROTO;
  if (!rmq_language_name(out->language)) out->language = RMQ_LANGUAGE_OTHER;
  return binary_fields(fields, out);
}

int rmq_header_decode(rmq_serialize serialize, rmq_slice bytes, rmq_buf *scratch, rmq_header *out) {
  rmq_buf_clear(scratch);
  if (serialize == RMQ_SERIALIZE_ROCKETMQ) return decode_binary(bytes, out);
  if (fast_decode(bytes, out)) return 0;
  return rmq_header_decode_json(bytes, scratch, out);
}

rmq_slice rmq_header_field(const rmq_header *header, const char *name) {
  size_t len = strlen(name);
  for (size_t i = header->n_ext; i-- > 0;) {
    const rmq_field *field = &header->ext[i];
    if (field->name.len == len && memcmp(field->name.ptr, name, len) == 0) return field->value;
  }
  return rmq_slice_make(NULL, 0);
}

int rmq_header_i32(const rmq_header *header, const char *name, int32_t *out) {
  rmq_slice text = rmq_header_field(header, name);
  if (!text.ptr) return 0;
  int err = rmq_number_i32(text, out);
  return err ? err : 1;
}

int rmq_header_i64(const rmq_header *header, const char *name, int64_t *out) {
  rmq_slice text = rmq_header_field(header, name);
  if (!text.ptr) return 0;
  int err = rmq_number_i64(text, out);
  return err ? err : 1;
}

static bool is_true(rmq_slice text) {
  static const char word[] = "true";
  if (text.len != 4) return false;
  for (size_t i = 0; i < 4; i++) {
    if ((text.ptr[i] | 0x20) != word[i]) return false;
  }
  return true;
}

int rmq_header_bool(const rmq_header *header, const char *name, bool *out) {
  rmq_slice text = rmq_header_field(header, name);
  if (!text.ptr) return 0;
  *out = is_true(text);
  return 1;
}

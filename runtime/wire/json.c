#include "wire/json.h"

#include "base/error.h"
#include "base/utf8.h"
#include "wire/number.h"
#include "wire/scan.h"

/* What the grammar allows next. */
enum {
  EXPECT_VALUE,
  EXPECT_VALUE_OR_END,
  EXPECT_KEY_OR_END,
  EXPECT_COMMA_OR_END,
  EXPECT_NOTHING,
  EXPECT_FAILED /* an error has been reported, and stays */
};

void rmq_json_init(rmq_json *json, rmq_slice input, rmq_buf *scratch) {
  *json = (rmq_json){.at = input.len ? input.ptr : "",
                     .scratch = scratch,
                     .expect = EXPECT_VALUE,
                     .text = {NULL, 0}};
  json->begin = json->at;
  json->end = json->at + input.len;
}

static rmq_json_type fail(rmq_json *json, const char *problem) {
  if (json->expect != EXPECT_FAILED) json->problem = problem;
  json->expect = EXPECT_FAILED;
  return RMQ_JSON_ERROR;
}

static void skip_blanks(rmq_json *json) {
  while (json->at < json->end &&
         (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t')) {
    json->at++;
  }
}

static bool in_object(const rmq_json *json) {
  return json->depth > 0 && (json->in_object >> (json->depth - 1) & 1);
}

/* A value is complete: what may follow it depends on where it stands. */
static void after_value(rmq_json *json) {
  json->expect = json->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static rmq_json_type open_level(rmq_json *json, bool object) {
  if (json->depth == RMQ_JSON_DEPTH) return fail(json, "nested too deep");
  uint64_t bit = (uint64_t)1 << json->depth++;
  json->in_object = object ? json->in_object | bit : json->in_object & ~bit;
  json->expect = object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
  json->at++;
  return object ? RMQ_JSON_OBJECT : RMQ_JSON_ARRAY;
}

static rmq_json_type close_level(rmq_json *json) {
  bool object = in_object(json);
  if (*json->at != (object ? '}' : ']')) return fail(json, "a bracket does not match");
  json->at++;
  json->depth--;
  after_value(json);
  return object ? RMQ_JSON_OBJECT_END : RMQ_JSON_ARRAY_END;
}

/* Four hex digits at `at`, or -1. */
static int32_t read_hex4(const char *at, const char *end) {
  if (end - at < 4) return -1;
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    int c = (unsigned char)at[i];
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = (c | 0x20) - 'a' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

static char *write_utf8(char *out, int32_t point) {
  if (point < 0x80) {
    *out++ = (char)point;
  } else if (point < 0x800) {
    *out++ = (char)(0xC0 | point >> 6);
    *out++ = (char)(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    *out++ = (char)(0xE0 | point >> 12);
    *out++ = (char)(0x80 | (point >> 6 & 0x3F));
    *out++ = (char)(0x80 | (point & 0x3F));
  } else {
    *out++ = (char)(0xF0 | point >> 18);
    *out++ = (char)(0x80 | (point >> 12 & 0x3F));
    *out++ = (char)(0x80 | (point >> 6 & 0x3F));
    *out++ = (char)(0x80 | (point & 0x3F));
  }
  return out;
}

/* Undoes \uXXXX, whose digits begin at `*at`; two halves of a surrogate pair make one character, and half
 * of one alone becomes U+FFFD. Returns the end of what was written, or NULL. */
static char *unescape_unicode(const char **at, const char *end, char *out) {
  int32_t point = read_hex4(*at, end);
  if (point < 0) return NULL;
  *at += 4;
  if (point >= 0xD800 && point <= 0xDBFF && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
    int32_t low = read_hex4(*at + 2, end);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      *at += 6;
      return write_utf8(out, 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00));
    }
  }
  if (point >= 0xD800 && point <= 0xDFFF) point = 0xFFFD;
  return write_utf8(out, point);
}

/* Undoes the escape after a backslash. Returns the end of what was written, or NULL. */
static char *unescape_one(const char **at, const char *end, char *out) {
  static const char escaped[] = "\"\\/bfnrt";
  static const char plain[] = "\"\\/\b\f\n\r\t";
  if (*at == end) return NULL;
  char c = *(*at)++;
  if (c == 'u') return unescape_unicode(at, end, out);
  const char *found = c ? strchr(escaped, c) : NULL;
  if (!found) return NULL;
  *out++ = plain[found - escaped];
  return out;
}

/* The rest of a string from its first backslash at `json->at`; what came before it begins at `begin`. An
 * escape is never longer undone than written, so the room that is left of the input is enough. */
static bool read_escaped(rmq_json *json, const char *begin, bool *high) {
  size_t start = rmq_buf_len(json->scratch);
  char *text = (char *)rmq_buf_reserve(json->scratch, (size_t)(json->end - begin));
  char *out = text;
  const char *run = begin;
  for (;;) {
    size_t len = (size_t)(json->at - run);
    memcpy(out, run, len);
    out += len;
    if (json->at == json->end) return false;
    if (*json->at++ == '"') break;
    out = unescape_one(&json->at, json->end, out);
    if (!out) return false;
    run = json->at;
    json->at = rmq_scan_string(json->at, json->end, high);
  }
  rmq_buf_commit(json->scratch, (size_t)(out - text));
  json->text = rmq_slice_make(rmq_buf_head(json->scratch) + start, (size_t)(out - text));
  return true;
}

/* A string whose opening quote is at `json->at`. */
static bool read_string(rmq_json *json) {
  bool high = false;
  const char *begin = ++json->at;
  json->at = rmq_scan_string(begin, json->end, &high);
  if (json->at < json->end && *json->at == '"') {
    json->text = rmq_slice_make(begin, (size_t)(json->at++ - begin));
  } else if (json->at == json->end) {
    return fail(json, "a string does not end") != RMQ_JSON_ERROR;
  } else if (!read_escaped(json, begin, &high)) {
    return fail(json, "a string does not end, or an escape in it is wrong") != RMQ_JSON_ERROR;
  }
  if (high && rmq_utf8_invalid_at(json->text) < json->text.len) {
    return fail(json, "a string is not valid UTF-8") != RMQ_JSON_ERROR;
  }
  return true;
}

static size_t count_digits(const char *at, const char *end) {
  const char *start = at;
  while (at < end && *at >= '0' && *at <= '9') at++;
  return (size_t)(at - start);
}

/* The end of the number at `at`, or NULL. */
static const char *number_end(const char *at, const char *end, bool integer_only) {
  if (at < end && *at == '-') at++;
  size_t digits = count_digits(at, end);
  if (digits == 0 || (digits > 1 && *at == '0')) return NULL;
  at += digits;
  if (integer_only) return at;
  if (at < end && *at == '.') {
    digits = count_digits(++at, end);
    if (digits == 0) return NULL;
    at += digits;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    digits = count_digits(at, end);
    if (digits == 0) return NULL;
    at += digits;
  }
  return at;
}

static bool read_number(rmq_json *json, bool integer_only) {
  const char *end = number_end(json->at, json->end, integer_only);
  if (!end) return fail(json, "a number is wrong") != RMQ_JSON_ERROR;
  json->text = rmq_slice_make(json->at, (size_t)(end - json->at));
  json->at = end;
  return true;
}

static rmq_json_type read_word(rmq_json *json) {
  static const struct {
    rmq_json_type type;
    const char *text;
  } words[] = {{RMQ_JSON_NULL, "null"}, {RMQ_JSON_TRUE, "true"}, {RMQ_JSON_FALSE, "false"}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t len = strlen(words[i].text);
    if ((size_t)(json->end - json->at) < len) continue;
    if (memcmp(json->at, words[i].text, len) != 0) continue;
    json->text = rmq_slice_make(json->at, len);
    json->at += len;
    after_value(json);
    return words[i].type;
  }
  return fail(json, "a value is missing");
}

static rmq_json_type read_value(rmq_json *json) {
  char c = *json->at;
  if (c == '{' || c == '[') return open_level(json, c == '{');
  if (c == '"') {
    if (!read_string(json)) return RMQ_JSON_ERROR;
    after_value(json);
    return RMQ_JSON_STRING;
  }
  if (c == '-' || (c >= '0' && c <= '9')) {
    if (!read_number(json, false)) return RMQ_JSON_ERROR;
    after_value(json);
    return RMQ_JSON_NUMBER;
  }
  return read_word(json);
}

static rmq_json_type read_key(rmq_json *json) {
  bool quoted = *json->at == '"';
  if (!quoted && *json->at != '-' && (*json->at < '0' || *json->at > '9')) {
    return fail(json, "the name of a member is missing");
  }
  if (!(quoted ? read_string(json) : read_number(json, true))) return RMQ_JSON_ERROR;
  skip_blanks(json);
  if (json->at == json->end || *json->at != ':') {
    return fail(json, "a ':' is missing after the name of a member");
  }
  json->at++;
  json->expect = EXPECT_VALUE;
  return RMQ_JSON_KEY;
}

/* Inside an object or array, after a member: its end, or what follows the comma. */
static rmq_json_type read_more(rmq_json *json) {
  if (*json->at != ',') return close_level(json);
  json->at++;
  skip_blanks(json);
  if (json->at == json->end) return fail(json, "ends too early");
  return in_object(json) ? read_key(json) : read_value(json);
}

rmq_json_type rmq_json_next(rmq_json *json) {
  if (json->expect == EXPECT_FAILED) return RMQ_JSON_ERROR;
  skip_blanks(json);
  if (json->at == json->end) {
    return json->expect == EXPECT_NOTHING ? RMQ_JSON_END : fail(json, "ends too early");
  }
  switch (json->expect) {
    case EXPECT_KEY_OR_END:
      return *json->at == '}' ? close_level(json) : read_key(json);
    case EXPECT_VALUE_OR_END:
      return *json->at == ']' ? close_level(json) : read_value(json);
    case EXPECT_COMMA_OR_END:
      return read_more(json);
    case EXPECT_VALUE:
      return read_value(json);
    default:
      return fail(json, "something follows after the end");
  }
}

int rmq_json_skip(rmq_json *json, rmq_json_type type) {
  if (type == RMQ_JSON_ERROR) return RMQ_EPROTO;
  if (type != RMQ_JSON_OBJECT && type != RMQ_JSON_ARRAY) return 0;
  unsigned outside = json->depth - 1;
  while (json->depth > outside) {
    if (rmq_json_next(json) == RMQ_JSON_ERROR) return RMQ_EPROTO;
  }
  return 0;
}

int rmq_json_int(const rmq_json *json, int64_t *out) { return rmq_number_i64(json->text, out); }

static void quote_one(rmq_buf *out, unsigned char c) {
  static const char hex[] = "0123456789abcdef";
  char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
  switch (c) {
    case '"':
    case '\\':
      text[1] = (char)c;
      break;
    case '\n':
      text[1] = 'n';
      break;
    case '\r':
      text[1] = 'r';
      break;
    case '\t':
      text[1] = 't';
      break;
    default:
      rmq_buf_bytes(out, text, sizeof text);
      return;
  }
  rmq_buf_bytes(out, text, 2);
}

void rmq_json_quote(rmq_buf *out, rmq_slice text) {
  rmq_buf_u8(out, '"');
  size_t run = 0;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    if (i > run) rmq_buf_bytes(out, text.ptr + run, i - run);
    quote_one(out, c);
    run = i + 1;
  }
  if (text.len > run) rmq_buf_bytes(out, text.ptr + run, text.len - run);
  rmq_buf_u8(out, '"');
}

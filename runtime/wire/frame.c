#include "wire/frame.h"

#include "base/cursor.h"
#include "base/error.h"
#include "wire/codes.h"
#include "wire/json.h"
#include "wire/number.h"

/* What stands before the header: the frame's length, and type with header length. */
enum { FRAME_PREFIX = 8 };

static const char http2[] =
    "the other side speaks HTTP/2 (is this the proxy's gRPC port? the one for this protocol is "
    "8080, unless it is set otherwise)";

static bool begins_with(rmq_slice bytes, const char *text) {
  size_t len = strlen(text);
  if (bytes.len < len) len = bytes.len;
  return len > 0 && memcmp(bytes.ptr, text, len) == 0;
}

static bool is_http_request(rmq_slice bytes) {
  static const char *const methods[] = {"GET ",     "HEAD ",   "POST ",   "PUT ",
                                        "OPTIONS ", "DELETE ", "CONNECT "};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (begins_with(bytes, methods[i])) return true;
  }
  return false;
}

/* Why a frame cannot begin with a length over the limit: most often something else is spoken there.
 * All that is compared here has a first byte which no frame has. */
static int refuse_length(rmq_slice bytes, const char **why) {
  if (begins_with(bytes, "HTTP/")) {
    *why =
        "the other side speaks HTTP (is this a dashboard's port? name servers listen on 9876, "
        "brokers on 10911)";
    return RMQ_EPROTO;
  }
  if (begins_with(bytes, "PRI * HTTP/2")) {
    *why = http2;
    return RMQ_EPROTO;
  }
  if (is_http_request(bytes)) {
    *why = "the other side asks in HTTP (is it meant for a dashboard, or for another port?)";
    return RMQ_EPROTO;
  }
  if (begins_with(bytes, "\x15\x03") || begins_with(bytes, "\x16\x03")) {
    *why =
        "the other side speaks TLS, and this connection is not encrypted (a server with "
        "tls.server.mode=permissive takes both)";
    return RMQ_EPROTO;
  }
  *why = "the frame is longer than 16 MiB (is this a port of RocketMQ?)";
  return RMQ_ELIMIT;
}

/* A server of HTTP/2 opens with a SETTINGS frame, or with GOAWAY when it did not like what it got: three
 * bytes length, the type, flags 0 and stream 0. Seen as ours, that is an empty JSON header. */
static bool looks_like_http2(const char *prefix) { return prefix[3] == 4 || prefix[3] == 7; }

static int refuse_header(rmq_slice bytes, uint32_t header_len, const char **why) {
  if (header_len == 0 && looks_like_http2(bytes.ptr)) {
    *why = http2;
  } else if (header_len == 0) {
    *why = "the frame has no header";
  } else {
    *why = "the header is longer than its frame";
  }
  return RMQ_EPROTO;
}

int rmq_frame_split(rmq_slice bytes, rmq_frame *out, const char **why) {
  const char *unused;
  if (!why) why = &unused;
  if (bytes.len == 0) return 0;
  if (bytes.ptr[0] != 0) return refuse_length(bytes, why);
  if (bytes.len < 4) return 0;
  rmq_cursor cursor = rmq_cursor_make(bytes);
  uint32_t length = rmq_cursor_u32(&cursor);
  if (length > RMQ_FRAME_MAX - 4) return refuse_length(bytes, why);
  if (length < 4) {
    *why = "the frame is too short to hold a header";
    return RMQ_EPROTO;
  }
  if (bytes.len < 5) return 0;
  if ((unsigned char)bytes.ptr[4] > RMQ_SERIALIZE_ROCKETMQ) {
    *why = "the header's serialize type is neither JSON nor ROCKETMQ";
    return RMQ_EPROTO;
  }
  if (bytes.len < FRAME_PREFIX) return 0;
  uint32_t mark = rmq_cursor_u32(&cursor);
  uint32_t header_len = mark & 0xFFFFFF;
  if (header_len == 0 || header_len > length - 4) return refuse_header(bytes, header_len, why);
  if (bytes.len - 4 < length) return 0;
  out->serialize = (rmq_serialize)(mark >> 24);
  out->header = rmq_cursor_bytes(&cursor, header_len);
  out->body = rmq_cursor_bytes(&cursor, (int64_t)length - 4 - header_len);
  out->size = (size_t)length + 4;
  return 1;
}

rmq_command rmq_command_request(int32_t code, int32_t opaque, int32_t flag) {
  return (rmq_command){.code = code,
                       .opaque = opaque,
                       .flag = flag,
                       .language = RMQ_LANGUAGE_OTHER,
                       .version = RMQ_VERSION};
}

static void begin_json(rmq_buf *out, const rmq_command *command) {
  const char *language = rmq_language_name(command->language);
  rmq_buf_text(out, "{\"code\":");
  rmq_buf_decimal(out, command->code);
  rmq_buf_text(out, ",\"flag\":");
  rmq_buf_decimal(out, command->flag);
  rmq_buf_text(out, ",\"language\":\"");
  rmq_buf_text(out, language ? language : "OTHER");
  rmq_buf_text(out, "\",\"opaque\":");
  rmq_buf_decimal(out, command->opaque);
  if (command->remark.len) {
    rmq_buf_text(out, ",\"remark\":");
    rmq_json_quote(out, command->remark);
  }
  rmq_buf_text(out, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
  rmq_buf_decimal(out, command->version);
}

static void begin_rocketmq(rmq_buf *out, const rmq_command *command) {
  rmq_buf_u16(out, (uint16_t)command->code);
  rmq_buf_u8(out, (uint8_t)command->language);
  rmq_buf_u16(out, (uint16_t)command->version);
  rmq_buf_u32(out, (uint32_t)command->opaque);
  rmq_buf_u32(out, (uint32_t)command->flag);
  rmq_buf_u32(out, (uint32_t)command->remark.len);
  rmq_buf_bytes(out, command->remark.ptr, command->remark.len);
}

void rmq_frame_begin(rmq_frame_writer *writer, rmq_buf *out, rmq_serialize serialize,
                     const rmq_command *command) {
  writer->out = out;
  writer->start = rmq_buf_len(out);
  writer->serialize = serialize;
  writer->has_fields = false;
  rmq_buf_u64(out, 0); /* both lengths, patched at the end */
  if (serialize == RMQ_SERIALIZE_JSON) {
    begin_json(out, command);
    writer->ext_at = 0;
  } else {
    begin_rocketmq(out, command);
    writer->ext_at = rmq_buf_len(out);
    rmq_buf_u32(out, 0);
  }
}

static void json_name(rmq_frame_writer *writer, rmq_slice name) {
  rmq_buf_text(writer->out, writer->has_fields ? "," : ",\"extFields\":{");
  writer->has_fields = true;
  rmq_json_quote(writer->out, name);
  rmq_buf_u8(writer->out, ':');
}

void rmq_frame_text(rmq_frame_writer *writer, rmq_slice name, rmq_slice value) {
  if (writer->serialize == RMQ_SERIALIZE_JSON) {
    json_name(writer, name);
    rmq_json_quote(writer->out, value);
    return;
  }
  rmq_buf_u16(writer->out, (uint16_t)name.len);
  rmq_buf_bytes(writer->out, name.ptr, name.len);
  rmq_buf_u32(writer->out, (uint32_t)value.len);
  rmq_buf_bytes(writer->out, value.ptr, value.len);
}

void rmq_frame_int(rmq_frame_writer *writer, rmq_slice name, int64_t value) {
  char digits[RMQ_NUMBER_MAX];
  rmq_frame_text(writer, name, rmq_slice_make(digits, rmq_number_write(digits, value)));
}

void rmq_frame_bool(rmq_frame_writer *writer, rmq_slice name, bool value) {
  rmq_frame_text(writer, name, value ? rmq_slice_make("true", 4) : rmq_slice_make("false", 5));
}

void rmq_frame_end(rmq_frame_writer *writer, rmq_slice body) {
  rmq_buf *out = writer->out;
  if (writer->serialize == RMQ_SERIALIZE_JSON) {
    rmq_buf_text(out, writer->has_fields ? "}}" : "}");
  } else {
    size_t ext_len = rmq_buf_len(out) - writer->ext_at - 4;
    rmq_buf_put_u32(out, writer->ext_at, (uint32_t)ext_len);
  }
  size_t header_len = rmq_buf_len(out) - writer->start - FRAME_PREFIX;
  rmq_buf_bytes(out, body.ptr, body.len);
  rmq_buf_put_u32(out, writer->start, (uint32_t)(4 + header_len + body.len));
  rmq_buf_put_u32(out, writer->start + 4, (uint32_t)writer->serialize << 24 | (uint32_t)header_len);
}

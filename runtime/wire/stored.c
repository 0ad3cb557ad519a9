#include "wire/stored.h"

#include "base/cursor.h"
#include "base/error.h"
#include "wire/codes.h"
#include "wire/properties.h"

/* The second one is for topics of more than 127 bytes: their length takes two bytes there. */
static const uint32_t magic_v1 = 0xDAA320A7;
static const uint32_t magic_v2 = 0xDAA320AB;

/* What a message takes besides hosts' addresses, body, topic and properties, with a topic's length
 * of one byte. */
enum { FIXED = 83 };

static rmq_stored_host read_host(rmq_cursor *cursor, bool v6) {
  rmq_stored_host host = {.ip_len = v6 ? 16 : 4};
  rmq_slice ip = rmq_cursor_bytes(cursor, host.ip_len);
  if (ip.len > 0) memcpy(host.ip, ip.ptr, ip.len);
  host.port = rmq_cursor_i32(cursor);
  return host;
}

static rmq_slice read_topic(rmq_cursor *cursor, uint32_t magic) {
  if (magic == magic_v2) return rmq_cursor_bytes(cursor, rmq_cursor_i16(cursor));
  uint8_t len = rmq_cursor_u8(cursor);
  if (len > INT8_MAX) cursor->failed = true; /* a signed byte in Java */
  return rmq_cursor_bytes(cursor, len);
}

int rmq_stored_next(rmq_slice *rest, rmq_stored_message *out) {
  if (rest->len == 0) return 0;
  rmq_cursor cursor = rmq_cursor_make(*rest);
  int32_t size = rmq_cursor_i32(&cursor);
  uint32_t magic = rmq_cursor_u32(&cursor);
  if (magic != magic_v1 && magic != magic_v2) return RMQ_EPROTO;
  out->body_crc = rmq_cursor_i32(&cursor);
  out->queue_id = rmq_cursor_i32(&cursor);
  out->flag = rmq_cursor_i32(&cursor);
  out->queue_offset = rmq_cursor_i64(&cursor);
  out->log_offset = rmq_cursor_i64(&cursor);
  out->sys_flag = rmq_cursor_i32(&cursor);
  out->born_ms = rmq_cursor_i64(&cursor);
  out->born_host = read_host(&cursor, out->sys_flag & RMQ_SYS_BORN_HOST_V6);
  out->stored_ms = rmq_cursor_i64(&cursor);
  out->store_host = read_host(&cursor, out->sys_flag & RMQ_SYS_STORE_HOST_V6);
  out->reconsume_times = rmq_cursor_i32(&cursor);
  out->prepared_offset = rmq_cursor_i64(&cursor);
  out->body = rmq_cursor_bytes(&cursor, rmq_cursor_i32(&cursor));
  out->topic = read_topic(&cursor, magic);
  out->properties = rmq_cursor_bytes(&cursor, rmq_cursor_i16(&cursor));
  if (cursor.failed) return RMQ_EPROTO;
  size_t taken = rest->len - rmq_cursor_left(&cursor);
  if (size < 0 || (size_t)size != taken) return RMQ_EPROTO;
  *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
  return 1;
}

static void put_host(rmq_buf *out, const rmq_stored_host *host) {
  rmq_buf_bytes(out, host->ip, (size_t)host->ip_len);
  rmq_buf_u32(out, (uint32_t)host->port);
}

static int32_t flags_of(const rmq_stored_message *message) {
  int32_t flags = message->sys_flag & ~(RMQ_SYS_BORN_HOST_V6 | RMQ_SYS_STORE_HOST_V6);
  if (message->born_host.ip_len == 16) flags |= RMQ_SYS_BORN_HOST_V6;
  if (message->store_host.ip_len == 16) flags |= RMQ_SYS_STORE_HOST_V6;
  return flags;
}

int rmq_stored_put(rmq_buf *out, const rmq_stored_message *message) {
  if (message->topic.len > INT8_MAX || message->properties.len > RMQ_PROPERTIES_MAX) {
    return RMQ_ELIMIT;
  }
  size_t size = FIXED + (size_t)message->born_host.ip_len + (size_t)message->store_host.ip_len +
                message->topic.len + message->properties.len;
  if (message->body.len > INT32_MAX - size) return RMQ_ELIMIT;
  size += message->body.len;
  rmq_buf_reserve(out, size);
  rmq_buf_u32(out, (uint32_t)size);
  rmq_buf_u32(out, magic_v1);
  rmq_buf_u32(out, (uint32_t)message->body_crc);
  rmq_buf_u32(out, (uint32_t)message->queue_id);
  rmq_buf_u32(out, (uint32_t)message->flag);
  rmq_buf_u64(out, (uint64_t)message->queue_offset);
  rmq_buf_u64(out, (uint64_t)message->log_offset);
  rmq_buf_u32(out, (uint32_t)flags_of(message));
  rmq_buf_u64(out, (uint64_t)message->born_ms);
  put_host(out, &message->born_host);
  rmq_buf_u64(out, (uint64_t)message->stored_ms);
  put_host(out, &message->store_host);
  rmq_buf_u32(out, (uint32_t)message->reconsume_times);
  rmq_buf_u64(out, (uint64_t)message->prepared_offset);
  rmq_buf_u32(out, (uint32_t)message->body.len);
  rmq_buf_bytes(out, message->body.ptr, message->body.len);
  rmq_buf_u8(out, (uint8_t)message->topic.len);
  rmq_buf_bytes(out, message->topic.ptr, message->topic.len);
  rmq_buf_u16(out, (uint16_t)message->properties.len);
  rmq_buf_bytes(out, message->properties.ptr, message->properties.len);
  return 0;
}

int rmq_stored_offset_id(const rmq_stored_message *message, char out[RMQ_UNIQUE_ID_MAX]) {
  rmq_offset_id id = {.ip_len = message->store_host.ip_len,
                      .port = message->store_host.port,
                      .offset = message->log_offset};
  memcpy(id.ip, message->store_host.ip, sizeof id.ip);
  return rmq_offset_id_encode(&id, out);
}

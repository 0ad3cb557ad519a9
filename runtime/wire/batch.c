#include "wire/batch.h"

#include "base/cursor.h"
#include "base/error.h"
#include "wire/properties.h"

int rmq_batch_put(rmq_buf *out, const rmq_batch_member *member) {
  if (member->properties.len > RMQ_PROPERTIES_MAX) return RMQ_ELIMIT;
  size_t most = INT32_MAX - RMQ_BATCH_OVERHEAD - member->properties.len;
  if (member->body.len > most) return RMQ_ELIMIT;
  size_t size = RMQ_BATCH_OVERHEAD + member->body.len + member->properties.len;
  rmq_buf_reserve(out, size);
  rmq_buf_u32(out, (uint32_t)size);
  rmq_buf_u32(out, 0); /* magic: none inside a batch */
  rmq_buf_u32(out, 0); /* body CRC: the broker makes its own */
  rmq_buf_u32(out, (uint32_t)member->flag);
  rmq_buf_u32(out, (uint32_t)member->body.len);
  rmq_buf_bytes(out, member->body.ptr, member->body.len);
  rmq_buf_u16(out, (uint16_t)member->properties.len);
  rmq_buf_bytes(out, member->properties.ptr, member->properties.len);
  return 0;
}

int rmq_batch_next(rmq_slice *rest, rmq_batch_member *out) {
  if (rest->len == 0) return 0;
  rmq_cursor cursor = rmq_cursor_make(*rest);
  int32_t size = rmq_cursor_i32(&cursor);
  rmq_cursor_u32(&cursor); /* magic and body CRC say nothing here */
  rmq_cursor_u32(&cursor);
  out->flag = rmq_cursor_i32(&cursor);
  out->body = rmq_cursor_bytes(&cursor, rmq_cursor_i32(&cursor));
  out->properties = rmq_cursor_bytes(&cursor, rmq_cursor_i16(&cursor));
  if (cursor.failed) return RMQ_EPROTO;
  size_t taken = rest->len - rmq_cursor_left(&cursor);
  if (size < 0 || (size_t)size != taken) return RMQ_EPROTO;
  *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
  return 1;
}

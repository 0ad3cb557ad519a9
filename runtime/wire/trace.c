#include "wire/trace.h"

enum { FIELD_END = 1, RECORD_END = 2, FOREIGN_MAX = 512 };

static void put_text(rmq_buf *out, rmq_slice text) {
  rmq_buf_u8(out, FIELD_END);
  if (text.len == 0) {
    rmq_buf_text(out, "null");
    return;
  }
  uint8_t *at = rmq_buf_reserve(out, text.len);
  for (size_t i = 0; i < text.len; i++) {
    uint8_t byte = (uint8_t)text.ptr[i];
    at[i] = byte == FIELD_END || byte == RECORD_END ? '?' : byte;
  }
  rmq_buf_commit(out, text.len);
}

/* What a broker or a name server has said. */
static void put_foreign(rmq_buf *out, rmq_slice text) {
  if (text.len > FOREIGN_MAX) text.len = FOREIGN_MAX;
  put_text(out, text);
}

static void put_number(rmq_buf *out, int64_t value) {
  rmq_buf_u8(out, FIELD_END);
  rmq_buf_decimal(out, value);
}

static void put_boolean(rmq_buf *out, bool value) {
  put_text(out, rmq_slice_text(value ? "true" : "false"));
}

static void put_message(rmq_buf *out, const rmq_trace_record *record) {
  put_text(out, record->topic);
  put_text(out, record->msg_id);
  if (record->kind == RMQ_TRACE_RECALL) return;
  put_text(out, record->tags);
  put_text(out, record->keys);
  put_foreign(out, record->store_host);
}

void rmq_trace_put(rmq_buf *out, const rmq_trace_record *record) {
  static const char *const names[] = {"Pub", "EndTransaction", "Recall"};
  rmq_buf_text(out, names[record->kind]);
  put_number(out, record->time_ms);
  put_foreign(out, record->region);
  put_text(out, record->group);
  put_message(out, record);
  switch (record->kind) {
    case RMQ_TRACE_PUB:
      put_number(out, record->body_length);
      put_number(out, record->cost_ms);
      put_number(out, record->type);
      put_foreign(out, record->offset_msg_id);
      put_boolean(out, record->success);
      break;
    case RMQ_TRACE_END_TRANSACTION:
      put_number(out, record->type);
      put_foreign(out, record->transaction_id);
      put_text(out, record->state);
      put_boolean(out, record->from_check);
      break;
    case RMQ_TRACE_RECALL:
      put_boolean(out, record->success);
      break;
  }
  rmq_buf_u8(out, RECORD_END);
}

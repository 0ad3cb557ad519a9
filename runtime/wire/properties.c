#include "wire/properties.h"

#include "base/error.h"

enum { PROPERTY_NAME_END = 0x01, PROPERTY_END = 0x02 };

static bool has_separator(rmq_slice text) {
  return memchr(text.ptr, PROPERTY_NAME_END, text.len) || memchr(text.ptr, PROPERTY_END, text.len);
}

int rmq_properties_put(rmq_buf *out, rmq_slice name, rmq_slice value) {
  if (name.len == 0 || value.len == 0) return RMQ_EINVAL;
  if (has_separator(name) || has_separator(value)) return RMQ_EINVAL;
  uint8_t *at = rmq_buf_reserve(out, name.len + value.len + 2);
  memcpy(at, name.ptr, name.len);
  at += name.len;
  *at++ = PROPERTY_NAME_END;
  memcpy(at, value.ptr, value.len);
  at[value.len] = PROPERTY_END;
  rmq_buf_commit(out, name.len + value.len + 2);
  return 0;
}

/* A pair in one piece between two ends; false when Java would drop it. */
static bool split_pair(rmq_slice piece, rmq_field *out) {
  const char *sep = piece.len ? memchr(piece.ptr, PROPERTY_NAME_END, piece.len) : NULL;
  if (!sep) return false;
  out->name = rmq_slice_make(piece.ptr, (size_t)(sep - piece.ptr));
  out->value = rmq_slice_make(sep + 1, piece.len - out->name.len - 1);
  return out->name.len > 0 && out->value.len > 0;
}

bool rmq_properties_next(rmq_slice *rest, rmq_field *out) {
  while (rest->len > 0) {
    const char *end = memchr(rest->ptr, PROPERTY_END, rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    rmq_slice piece = rmq_slice_make(rest->ptr, len);
    size_t taken = end ? len + 1 : len;
    *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
    if (split_pair(piece, out)) return true;
  }
  return false;
}

rmq_slice rmq_properties_find(rmq_slice properties, const char *name) {
  rmq_slice wanted = rmq_slice_text(name);
  rmq_slice found = rmq_slice_make(NULL, 0);
  rmq_field pair;
  /* Java reads them into a map, so the last of two pairs with one name counts. */
  while (rmq_properties_next(&properties, &pair)) {
    if (rmq_slice_equal(pair.name, wanted)) found = pair.value;
  }
  return found;
}

static const char *const reserved_names[] = {
    "TRACE_ON",
    "MSG_REGION",
    "KEYS",
    "TAGS",
    "WAIT",
    "DELAY",
    "RETRY_TOPIC",
    "REAL_TOPIC",
    "REAL_QID",
    "TRAN_MSG",
    "PGROUP",
    "MIN_OFFSET",
    "MAX_OFFSET",
    "BUYER_ID",
    "ORIGIN_MESSAGE_ID",
    "TRANSFER_FLAG",
    "CORRECTION_FLAG",
    "MQ2_FLAG",
    "RECONSUME_TIME",
    "UNIQ_KEY",
    "MAX_RECONSUME_TIMES",
    "CONSUME_START_TIME",
    "POP_CK",
    "POP_CK_OFFSET",
    "1ST_POP_TIME",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INSTANCE_ID",
    "CORRELATION_ID",
    "REPLY_TO_CLIENT",
    "TTL",
    "ARRIVE_TIME",
    "PUSH_REPLY_TIME",
    "CLUSTER",
    "MSG_TYPE",
    "INNER_MULTI_QUEUE_OFFSET",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVER_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_DEQUEUE_MS",
    "TIMER_ROLL_TIMES",
    "TIMER_OUT_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DELAY_LEVEL",
    "__BORNHOST",
    "BORN_TIMESTAMP",
    "DLQ_ORIGIN_TOPIC",
    "DLQ_ORIGIN_MESSAGE_ID",
    "__CRC32#",
};

/* Every property that a user sets is looked up here, so most names must fall out at the first compare. */
static bool may_be_reserved(rmq_slice name) {
  if (name.len < 3) return false;
  char c = name.ptr[0];
  return (c >= 'A' && c <= 'X') || c == '_' || c == '1';
}

bool rmq_property_is_reserved(rmq_slice name) {
  if (!may_be_reserved(name)) return false;
  for (size_t i = 0; i < sizeof reserved_names / sizeof reserved_names[0]; i++) {
    if (reserved_names[i][0] == name.ptr[0] && rmq_slice_is(name, reserved_names[i])) return true;
  }
  return false;
}

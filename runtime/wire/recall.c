#include "wire/recall.h"

#include "base/error.h"
#include "wire/number.h"

/* ---- Base64 with - and _ (RFC 4648, section 5) ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int value_of(char letter) {
  const char *at = letter ? strchr(letters, letter) : NULL;
  return at ? (int)(at - letters) : -1;
}

/* Java takes the padding at the end or leaves it out, and so does this. */
static rmq_slice without_padding(rmq_slice text) {
  if (text.len % 4 != 0) return text;
  for (int i = 0; i < 2 && text.len > 0 && text.ptr[text.len - 1] == '='; i++) text.len--;
  return text;
}

static int decode_base64(rmq_slice text, rmq_buf *out) {
  text = without_padding(text);
  if (text.len % 4 == 1) return RMQ_EPROTO; /* six bits are no byte */
  uint32_t bits = 0;
  for (size_t i = 0; i < text.len; i++) {
    int value = value_of(text.ptr[i]);
    if (value < 0) return RMQ_EPROTO;
    bits = bits << 6 | (uint32_t)value;
    /* Of four letters the second, third and fourth complete a byte each. */
    if (i % 4 > 0) rmq_buf_u8(out, (uint8_t)(bits >> (6 - 2 * (i % 4))));
  }
  return 0;
}

static void encode_base64(rmq_buf *out, rmq_slice bytes) {
  for (size_t i = 0; i < bytes.len; i += 3) {
    size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; j++) {
      bits = bits << 8 | (j < n ? (uint8_t)bytes.ptr[i + j] : 0);
    }
    for (size_t j = 0; j < 4; j++) {
      char letter = letters[bits >> (18 - 6 * j) & 63];
      rmq_buf_u8(out, (uint8_t)(j <= n ? letter : '='));
    }
  }
}

/* ---- The handle ---- */

/* The text up to the next blank, and off the front of `rest`. */
static rmq_slice next_item(rmq_slice *rest) {
  const char *blank = rest->len ? memchr(rest->ptr, ' ', rest->len) : NULL;
  size_t len = blank ? (size_t)(blank - rest->ptr) : rest->len;
  rmq_slice item = rmq_slice_make(rest->ptr, len);
  size_t taken = blank ? len + 1 : len;
  *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
  return item;
}

int rmq_recall_handle_decode(rmq_slice text, rmq_buf *scratch, rmq_recall_handle *out) {
  rmq_buf_clear(scratch);
  if (text.len == 0 || decode_base64(text, scratch) < 0) return RMQ_EPROTO;
  rmq_slice rest = rmq_buf_slice(scratch);
  if (!rmq_slice_is(next_item(&rest), "v1")) return RMQ_EPROTO;
  out->topic = next_item(&rest);
  out->broker = next_item(&rest);
  rmq_slice time = next_item(&rest);
  out->msg_id = next_item(&rest);
  if (out->topic.len == 0 || out->broker.len == 0 || out->msg_id.len == 0) return RMQ_EPROTO;
  return rmq_number_i64(time, &out->deliver_at);
}

void rmq_recall_handle_encode(rmq_buf *out, const rmq_recall_handle *handle) {
  rmq_buf plain = {0};
  rmq_buf_text(&plain, "v1 ");
  rmq_buf_bytes(&plain, handle->topic.ptr, handle->topic.len);
  rmq_buf_u8(&plain, ' ');
  rmq_buf_bytes(&plain, handle->broker.ptr, handle->broker.len);
  rmq_buf_u8(&plain, ' ');
  rmq_buf_decimal(&plain, handle->deliver_at);
  rmq_buf_u8(&plain, ' ');
  rmq_buf_bytes(&plain, handle->msg_id.ptr, handle->msg_id.len);
  encode_base64(out, rmq_buf_slice(&plain));
  rmq_buf_free(&plain);
}

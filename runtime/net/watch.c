/* Who watches the requests of a transport, and adds to them. */

#include "base/cursor.h"
#include "net/connection.h"
#include "wire/frame.h"

/* All additions to one request together; a header's lengths would hold more. */
enum { ADDED_MAX = 65535, NAME_MAX_LEN = 32767 };

void rmq_transport_set_watch(rmq_transport *t, const rmq_transport_watch *watch) {
  t->watch = *watch;
}

/* ---- Additions: length and bytes of each name and value, one after the other ---- */

static bool next_added(rmq_cursor *at, rmq_field *field) {
  if (rmq_cursor_left(at) == 0) return false;
  field->name = rmq_cursor_bytes(at, rmq_cursor_u32(at));
  field->value = rmq_cursor_bytes(at, rmq_cursor_u32(at));
  return true;
}

static void put_text(rmq_buf *out, rmq_slice text) {
  rmq_buf_u32(out, (uint32_t)text.len);
  rmq_buf_bytes(out, text.ptr, text.len);
}

int rmq_watched_add(const rmq_watched_request *request, rmq_slice name, rmq_slice value) {
  const rmq_header *header = request->header;
  size_t n = header->n_ext;
  if (name.len == 0) return RMQ_EINVAL;
  for (size_t i = 0; i < n; i++) {
    if (rmq_slice_equal(header->ext[i].name, name)) return RMQ_EINVAL;
  }
  rmq_field added;
  rmq_cursor at = rmq_cursor_make(rmq_buf_slice(request->added));
  for (; next_added(&at, &added); n++) {
    if (!rmq_slice_equal(added.name, name)) continue;
    return rmq_slice_equal(added.value, value) ? 0 : RMQ_EINVAL;
  }
  size_t size = rmq_buf_len(request->added) + name.len + value.len;
  if (n == RMQ_EXT_MAX || name.len > NAME_MAX_LEN || size > ADDED_MAX) return RMQ_ELIMIT;
  put_text(request->added, name);
  put_text(request->added, value);
  return 0;
}

/* ---- The frame ---- */

/* Writes the frame anew, with what was added. */
static void write_again(rmq_buf *out, const rmq_frame *frame, const rmq_header *header,
                        const rmq_buf *added) {
  rmq_command command = {.code = header->code,
                         .opaque = header->opaque,
                         .flag = header->flag,
                         .language = header->language,
                         .version = header->version,
                         .remark = header->remark};
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, frame->serialize, &command);
  for (size_t i = 0; i < header->n_ext; i++) {
    rmq_frame_text(&writer, header->ext[i].name, header->ext[i].value);
  }
  rmq_field field;
  rmq_cursor at = rmq_cursor_make(rmq_buf_slice(added));
  while (next_added(&at, &field)) rmq_frame_text(&writer, field.name, field.value);
  rmq_frame_end(&writer, frame->body);
}

static void replace(rmq_connection *c, size_t offset, const rmq_buf *frame) {
  rmq_slice bytes = rmq_buf_slice(frame);
  if (bytes.len > RMQ_FRAME_MAX) return; /* then rather without the additions */
  c->out.end = c->out.start + offset;
  rmq_buf_bytes(&c->out, bytes.ptr, bytes.len);
}

void rmq_connection_show_request(rmq_connection *c, rmq_request *request, size_t offset) {
  rmq_transport *t = c->transport;
  rmq_slice bytes = rmq_buf_slice(&c->out);
  bytes = rmq_slice_make(bytes.ptr + offset, bytes.len - offset);
  rmq_frame frame;
  rmq_header header;
  rmq_buf scratch = {0}, added = {0}, again = {0};
  if (rmq_frame_split(bytes, &frame, NULL) == 1 &&
      rmq_header_decode(frame.serialize, frame.header, &scratch, &header) == 0) {
    request->code = header.code;
    if (t->watch.before_request) {
      c->shown = true;
      t->watch.before_request(t->watch.owner,
                              &(rmq_watched_request){c->addr, &header, frame.body, &added});
      c->shown = false;
    }
    if (rmq_buf_len(&added) > 0) {
      write_again(&again, &frame, &header, &added);
      replace(c, offset, &again);
    }
  }
  rmq_buf_free(&scratch);
  rmq_buf_free(&added);
  rmq_buf_free(&again);
}

void rmq_connection_show_response(rmq_connection *c, const rmq_request *request, rmq_slice body) {
  rmq_transport *t = c->transport;
  rmq_mono now = rmq_transport_now(t);
  t->watch.after_response(t->watch.owner, &(rmq_watched_response){.addr = c->addr,
                                                                  .request_code = request->code,
                                                                  .header = &t->header,
                                                                  .body = body,
                                                                  .elapsed_us = rmq_mono_diff_us(
                                                                      now, request->written_at)});
}

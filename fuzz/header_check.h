#ifndef FUZZ_HEADER_CHECK_H
#define FUZZ_HEADER_CHECK_H

#include "fuzz.h"
#include "wire/header.h"

static inline void require_same_header(const rmq_header *a, const rmq_header *b) {
  fuzz_require(a->code == b->code && a->language == b->language && a->version == b->version,
               "code, language and version are the same");
  fuzz_require(a->opaque == b->opaque && a->flag == b->flag, "opaque and flag are the same");
  fuzz_require(rmq_slice_equal(a->remark, b->remark), "the remark is the same");
  fuzz_require(a->n_ext == b->n_ext, "there are as many fields");
  for (size_t i = 0; i < a->n_ext; i++) {
    fuzz_require(rmq_slice_equal(a->ext[i].name, b->ext[i].name), "a name is the same");
    fuzz_require(rmq_slice_equal(a->ext[i].value, b->ext[i].value), "a value is the same");
  }
}

/* What was decoded is written again and decodes to the same. */
static inline void require_round_trip(rmq_serialize serialize, const rmq_header *header) {
  static rmq_buf out, scratch;
  static rmq_header again;
  rmq_frame_writer writer;
  rmq_frame frame;
  rmq_command command = {.code = header->code,
                         .opaque = header->opaque,
                         .flag = header->flag,
                         .language = header->language,
                         .version = header->version,
                         .remark = header->remark};
  rmq_buf_clear(&out);
  rmq_frame_begin(&writer, &out, serialize, &command);
  for (size_t i = 0; i < header->n_ext; i++) {
    rmq_frame_text(&writer, header->ext[i].name, header->ext[i].value);
  }
  rmq_frame_end(&writer, rmq_slice_make("body", 4));
  fuzz_require(rmq_frame_split(rmq_buf_slice(&out), &frame, NULL) == 1, "it is a frame again");
  fuzz_require(rmq_slice_is(frame.body, "body"), "the body is where it was put");
  fuzz_require(rmq_header_decode(serialize, frame.header, &scratch, &again) == 0,
               "it decodes again");
  require_same_header(header, &again);
}

static inline void require_fields_within(const rmq_header *header, rmq_slice bytes,
                                         const rmq_buf *scratch) {
  fuzz_require_within(header->remark, bytes, scratch);
  for (size_t i = 0; i < header->n_ext; i++) {
    fuzz_require_within(header->ext[i].name, bytes, scratch);
    fuzz_require_within(header->ext[i].value, bytes, scratch);
  }
}

#endif

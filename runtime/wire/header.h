#ifndef RMQ_WIRE_HEADER_H
#define RMQ_WIRE_HEADER_H

#include <stdint.h>

#include "wire/frame.h"

/* More ext fields than any RocketMQ command has; a header with more is refused (RMQ_ELIMIT). */
#define RMQ_EXT_MAX 128

typedef struct rmq_field {
  rmq_slice name;
  rmq_slice value;
} rmq_field;

/* A decoded header, either serialization. Slices point into the frame, or into the scratch buffer
 * where JSON escapes had to be undone. Missing keys have Java's defaults: language JAVA, numbers 0. A duplicate
 * field counts with its last value. */
typedef struct rmq_header {
  int32_t code;
  int32_t language;
  int32_t version;
  int32_t opaque;
  int32_t flag;
  rmq_slice remark;
  size_t n_ext;
  rmq_field ext[RMQ_EXT_MAX];
} rmq_header;

/* Decodes a header. `scratch` is cleared first and holds unescaped text; the result is valid until it
 * or the frame's bytes change. Returns 0, RMQ_EPROTO or RMQ_ELIMIT. Costs no allocation once `scratch`
 * has grown. */
int rmq_header_decode(rmq_serialize serialize, rmq_slice bytes, rmq_buf *scratch, rmq_header *out);

/* The same for a JSON header, always by the general reader and never by the fast way that
 * rmq_header_decode tries first: for tests, which hold one against the other. */
int rmq_header_decode_json(rmq_slice bytes, rmq_buf *scratch, rmq_header *out);

/* The value of an ext field, or a slice whose `ptr` is NULL when there is none. */
rmq_slice rmq_header_field(const rmq_header *header, const char *name);

/* Numbers and booleans in ext fields are texts. These return 1 and set `out`, 0 when the field is
 * absent (`out` untouched), RMQ_EPROTO when it is no such number (out of range included). Only a
 * case-insensitive "true" is true, as in Java. */
int rmq_header_i32(const rmq_header *header, const char *name, int32_t *out);
int rmq_header_i64(const rmq_header *header, const char *name, int64_t *out);
int rmq_header_bool(const rmq_header *header, const char *name, bool *out);

#endif

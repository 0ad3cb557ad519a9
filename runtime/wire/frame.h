#ifndef RMQ_WIRE_FRAME_H
#define RMQ_WIRE_FRAME_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* One frame: 4 bytes length L of what follows, 4 bytes of which the top one is the serialize type and
 * the rest the header's length, the header, the body. All numbers big endian. */

/* The longest frame, with its length field (frameMaxLength in Java). */
#define RMQ_FRAME_MAX 16777216u

typedef enum rmq_serialize { RMQ_SERIALIZE_JSON = 0, RMQ_SERIALIZE_ROCKETMQ = 1 } rmq_serialize;

/* A frame found in received bytes. The slices point into them. */
typedef struct rmq_frame {
  rmq_serialize serialize;
  rmq_slice header;
  rmq_slice body;
  size_t size; /* the bytes that the whole frame takes */
} rmq_frame;

/* Looks for a whole frame at the start of `bytes`. Returns 1 and fills `out`; 0 when more bytes are
 * needed; RMQ_EPROTO or RMQ_ELIMIT when these bytes can be no frame, as soon as they show it (`why`,
 * when not NULL, then points to a sentence in static memory that names the likely cause: "the other side speaks HTTP",
 * "the other side speaks TLS"). */
int rmq_frame_split(rmq_slice bytes, rmq_frame *out, const char **why);

/* Writes one frame at the end of a buffer: begin, any number of fields, body or end. Fields go straight
 * into the buffer in the chosen serialization; nothing else is allocated. */
typedef struct rmq_frame_writer {
  rmq_buf *out;
  size_t start;  /* offset of the frame in the buffer's content */
  size_t ext_at; /* offset of the ext fields' length (ROCKETMQ) */
  rmq_serialize serialize;
  bool has_fields; /* JSON: extFields has been opened */
} rmq_frame_writer;

/* The fixed part of a command. `flag` is a set of RMQ_FLAG_*. */
typedef struct rmq_command {
  int32_t code;
  int32_t opaque;
  int32_t flag;
  int32_t language; /* LanguageCode, RMQ_LANGUAGE_OTHER for us */
  int32_t version;
  rmq_slice remark; /* empty: none */
} rmq_command;

/* A request of ours: code and opaque, flag 0 or RMQ_FLAG_ONEWAY, our language and version. */
rmq_command rmq_command_request(int32_t code, int32_t opaque, int32_t flag);

void rmq_frame_begin(rmq_frame_writer *writer, rmq_buf *out, rmq_serialize serialize,
                     const rmq_command *command);
void rmq_frame_text(rmq_frame_writer *writer, rmq_slice name, rmq_slice value);
void rmq_frame_int(rmq_frame_writer *writer, rmq_slice name, int64_t value);
void rmq_frame_bool(rmq_frame_writer *writer, rmq_slice name, bool value);
/* Ends the header, appends the body (may be empty) and patches the lengths. */
void rmq_frame_end(rmq_frame_writer *writer, rmq_slice body);

#endif

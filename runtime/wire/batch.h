#ifndef RMQ_WIRE_BATCH_H
#define RMQ_WIRE_BATCH_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* The body of SEND_BATCH_MESSAGE: members one after the other, each with its own length. */
typedef struct rmq_batch_member {
  int32_t flag;
  rmq_slice body;
  rmq_slice properties; /* a property string of at most RMQ_PROPERTIES_MAX bytes */
} rmq_batch_member;

/* What a member takes besides its body and properties. */
#define RMQ_BATCH_OVERHEAD 22

/* Appends a member. RMQ_ELIMIT when its properties or its size do not fit their fields. */
int rmq_batch_put(rmq_buf *out, const rmq_batch_member *member);

/* Takes the next member off the front of `*rest`: 1, 0 at the end, or RMQ_EPROTO. */
int rmq_batch_next(rmq_slice *rest, rmq_batch_member *out);

#endif

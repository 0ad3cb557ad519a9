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

/* Brokers before 5.0 count what they store of a batch against their maxMessageSize, where a member takes
 * its topic's name and at most this besides its body and properties: the fields of a stored message with
 * two IPv6 addresses, and what the broker appends to the properties (those of the batch, and the
 * name of its cluster). */
#define RMQ_BATCH_STORED_OVERHEAD 256

/* The longest property string of a member. To leave room for what such a broker appends: it
 * overruns the 16 bits of their length without a word, and loses the message. */
#define RMQ_BATCH_PROPERTIES_MAX 32000

/* Appends a member. RMQ_ELIMIT when its properties or its size do not fit their fields. */
int rmq_batch_put(rmq_buf *out, const rmq_batch_member *member);

/* Takes the next member off the front of `*rest`: 1, 0 at the end, or RMQ_EPROTO. */
int rmq_batch_next(rmq_slice *rest, rmq_batch_member *out);

#endif

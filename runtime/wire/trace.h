#ifndef RMQ_WIRE_TRACE_H
#define RMQ_WIRE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Records of message trace as Java's TraceDataEncoder writes them: fields with byte 1 between them, byte 2
 * behind each record, any number of records in one body. */

typedef enum rmq_trace_kind {
  RMQ_TRACE_PUB,             /* a message was sent */
  RMQ_TRACE_END_TRANSACTION, /* a transaction's end was told to the broker */
  RMQ_TRACE_RECALL           /* a delayed message was called back */
} rmq_trace_kind;

/* MessageType, by its ordinal. */
typedef enum rmq_trace_message {
  RMQ_TRACE_NORMAL = 0,
  RMQ_TRACE_HALF = 1,
  RMQ_TRACE_COMMIT = 2, /* of every end of a transaction */
  RMQ_TRACE_DELAY = 3
} rmq_trace_message;

typedef struct rmq_trace_record {
  rmq_trace_kind kind;
  int64_t time_ms; /* wall clock; of a send when it began */
  rmq_slice region;
  rmq_slice group;
  rmq_slice topic;
  rmq_slice msg_id;
  bool success; /* of a Pub and a Recall */
  /* Of a Pub and an EndTransaction. What is empty is written as "null", as Java does. */
  rmq_slice tags;
  rmq_slice keys;       /* with spaces between several */
  rmq_slice store_host; /* the broker's address, "host:port" */
  rmq_trace_message type;
  /* Of a Pub. */
  int64_t body_length; /* as it was sent: compressed, when it was */
  int64_t cost_ms;
  rmq_slice offset_msg_id;
  /* Of an EndTransaction. */
  rmq_slice transaction_id;
  rmq_slice state; /* COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW */
  bool from_check; /* the broker had asked for it */
} rmq_trace_record;

/* Appends a record. Bytes 1 and 2 in a field, which only a hostile broker can have put there, become
 * '?', and its texts (region, address, offset id, transaction id) are cut at 512 bytes. */
void rmq_trace_put(rmq_buf *out, const rmq_trace_record *record);

#endif

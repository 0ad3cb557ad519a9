#ifndef RMQ_WIRE_RECALL_H
#define RMQ_WIRE_RECALL_H

#include <stdint.h>

#include "base/buf.h"

/* The handle that a broker gives for a timer message, with which it can be recalled: URL-safe base64 of
 * "v1 TOPIC BROKER MILLISECONDS UNIQ_KEY". */
typedef struct rmq_recall_handle {
  rmq_slice topic;
  rmq_slice broker;   /* the name of the broker that has the message */
  int64_t deliver_at; /* ms since 1970 */
  rmq_slice msg_id;   /* the message's UNIQ_KEY */
} rmq_recall_handle;

/* Reads a handle; its texts point into `scratch`, which is emptied first. RMQ_EPROTO when it is none. */
int rmq_recall_handle_decode(rmq_slice text, rmq_buf *scratch, rmq_recall_handle *out);

/* Appends one, for whoever answers sends. */
void rmq_recall_handle_encode(rmq_buf *out, const rmq_recall_handle *handle);

#endif

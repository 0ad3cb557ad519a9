#ifndef RMQ_WIRE_STORED_H
#define RMQ_WIRE_STORED_H

#include "base/buf.h"
#include "wire/ids.h"

/* A message as a broker keeps it in its commit log and hands it out: what a client gets that reads
 * messages, or is asked for the state of a transaction. */

typedef struct rmq_stored_host {
  uint8_t ip[16];
  int ip_len; /* 4 or 16 */
  int32_t port;
} rmq_stored_host;

/* The slices point into the bytes that were decoded. */
typedef struct rmq_stored_message {
  int32_t body_crc; /* of the body as it is stored; some writers leave it 0 */
  int32_t queue_id;
  int32_t flag;         /* the user's */
  int64_t queue_offset; /* in its queue */
  int64_t log_offset;   /* in the commit log, bytes */
  int32_t sys_flag;     /* RMQ_SYS_... */
  int64_t born_ms;      /* wall clock of who sent it */
  rmq_stored_host born_host;
  int64_t stored_ms; /* wall clock of the broker */
  rmq_stored_host store_host;
  int32_t reconsume_times;
  int64_t prepared_offset; /* of the half message that this one was, else 0 */
  rmq_slice body;          /* still compressed when sys_flag says so */
  rmq_slice topic;
  rmq_slice properties; /* a property string */
} rmq_stored_message;

/* Takes the next message off the front of `*rest`: 1, 0 at the end, or RMQ_EPROTO when what is there is
 * none (`*rest` is unchanged then). Both layouts are read, the one with a long topic (of 5.x) too. */
int rmq_stored_next(rmq_slice *rest, rmq_stored_message *out);

/* Appends a message in the layout that all readers know. RMQ_ELIMIT when topic, properties or the
 * whole do not fit their fields. The flags of the hosts follow from their lengths. */
int rmq_stored_put(rmq_buf *out, const rmq_stored_message *message);

/* The offset id that RocketMQ names it by; returns the length. */
int rmq_stored_offset_id(const rmq_stored_message *message, char out[RMQ_UNIQUE_ID_MAX]);

#endif

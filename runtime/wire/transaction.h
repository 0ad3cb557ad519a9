#ifndef RMQ_WIRE_TRANSACTION_H
#define RMQ_WIRE_TRANSACTION_H

#include "wire/header.h"

/* commitOrRollback: what is to become of a half message, in END_TRANSACTION. */
enum { RMQ_END_UNKNOWN = 0, RMQ_END_COMMIT = 8, RMQ_END_ROLLBACK = 12 };

/* The header of CHECK_TRANSACTION_STATE, by which a broker asks what is to become of the half message
 * in its body. The answer echoes it. Absent texts have a NULL `ptr`. */
typedef struct rmq_check_header {
  rmq_slice topic;      /* brokers name the topic that keeps half messages, not the message's own */
  int64_t queue_offset; /* tranStateTableOffset */
  int64_t log_offset;   /* commitLogOffset */
  rmq_slice msg_id;     /* UNIQ_KEY */
  rmq_slice transaction_id;
  rmq_slice offset_msg_id;
  rmq_slice broker; /* bname; old brokers do not give it */
} rmq_check_header;

/* 0, or RMQ_EPROTO with `*missing` naming the field that is absent or no number. */
int rmq_check_header_decode(const rmq_header *header, rmq_check_header *out, const char **missing);

#endif

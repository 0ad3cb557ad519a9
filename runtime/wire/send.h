#ifndef RMQ_WIRE_SEND_H
#define RMQ_WIRE_SEND_H

#include "wire/header.h"

/* SendMessageRequestHeader: what V1 spells out and V2 (code 310, 320, 325) calls a..n. */
typedef struct rmq_send_header {
  rmq_slice producer_group;
  rmq_slice topic;
  rmq_slice default_topic;
  int32_t default_topic_queue_nums;
  int32_t queue_id;
  int32_t sys_flag;
  int64_t born_timestamp; /* ms since 1970 */
  int32_t flag;
  rmq_slice properties; /* a property string, wire/properties.h */
  int32_t reconsume_times;
  bool unit_mode;
  int32_t max_reconsume_times; /* -1: not sent */
  bool batch;
  rmq_slice broker_name; /* empty: not sent */
  rmq_slice
      fixed; /* what rmq_send_fixed_encode made of it, or empty: they stand above; not for JSON */
} rmq_send_header;

/* Appends the fields that do not change from one message of a topic to the next, in the ROCKETMQ
 * serialization: all but queue_id, sys_flag, born_timestamp, flag, properties and broker_name.
 * Whoever sends many keeps this and puts it into `fixed`, instead of the values it was made of. */
void rmq_send_fixed_encode(rmq_buf *out, const rmq_send_header *header);

/* Appends a whole send request with a V2 header. `code` is RMQ_SEND_MESSAGE_V2, RMQ_SEND_BATCH_MESSAGE
 * or RMQ_SEND_REPLY_MESSAGE_V2; `flag` 0 or RMQ_FLAG_ONEWAY. */
void rmq_send_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t code, int32_t opaque,
                             int32_t flag, const rmq_send_header *header, rmq_slice body);

/* Reads the header of a send request of any of the send codes (V1 or V2). Returns 0, or RMQ_EPROTO
 * with `*missing` naming the field that is absent or not a number. */
int rmq_send_header_decode(const rmq_header *header, rmq_send_header *out, const char **missing);

/* SendMessageResponseHeader. Absent texts have a NULL `ptr`. */
typedef struct rmq_send_reply {
  rmq_slice msg_id; /* the offset id: where the broker stored the message */
  int32_t queue_id;
  int64_t queue_offset;
  rmq_slice transaction_id;
  rmq_slice batch_uniq_id;
  rmq_slice recall_handle;
  rmq_slice region_id; /* "DefaultRegion" when the broker names none */
  bool trace_on;       /* true unless the broker says exactly "false" */
} rmq_send_reply;

/* Reads the reply to a send whose code is a success or one of the three "stored, but" codes. RMQ_EPROTO
 * when msgId, queueId or queueOffset is absent or not a number; `*missing` then names it. */
int rmq_send_reply_decode(const rmq_header *header, rmq_send_reply *out, const char **missing);

/* Appends the ext fields of such a reply, for whoever answers sends. */
void rmq_send_reply_write(rmq_frame_writer *writer, const rmq_send_reply *reply);

#endif

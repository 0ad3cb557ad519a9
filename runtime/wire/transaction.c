#include "wire/transaction.h"

#include "base/error.h"

int rmq_check_header_decode(const rmq_header *header, rmq_check_header *out, const char **missing) {
  *missing = "tranStateTableOffset";
  if (rmq_header_i64(header, *missing, &out->queue_offset) != 1) return RMQ_EPROTO;
  *missing = "commitLogOffset";
  if (rmq_header_i64(header, *missing, &out->log_offset) != 1) return RMQ_EPROTO;
  *missing = NULL;
  out->topic = rmq_header_field(header, "topic");
  out->msg_id = rmq_header_field(header, "msgId");
  out->transaction_id = rmq_header_field(header, "transactionId");
  out->offset_msg_id = rmq_header_field(header, "offsetMsgId");
  out->broker = rmq_header_field(header, "bname");
  return 0;
}

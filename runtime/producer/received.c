#include <stdio.h>

#include "producer/core.h"
#include "producer/request.h"
#include "wire/codes.h"

/* What brokers ask of a client. Most of it is for consumers, which are not here. */

/* A consumer's offsets, when there are none: Java's GetConsumerStatusBody. */
static const char no_offsets[] = "{\"consumerTable\":{},\"messageQueueTable\":{}}";

static void answer(rmq_producer *producer, const rmq_header *request, int32_t code,
                   const char *remark, const char *body) {
  rmq_transport_answer(producer->transport, request, code, rmq_slice_text(remark),
                       rmq_slice_text(body));
}

static void answer_no_consumer(rmq_producer *producer, const rmq_header *request) {
  rmq_slice group = rmq_header_field(request, "consumerGroup");
  char remark[400];
  int len = (int)(group.len < 255 ? group.len : 255); /* no name is longer */
  snprintf(remark, sizeof remark, "The Consumer Group <%.*s> not exist in this consumer", len,
           len ? group.ptr : "");
  answer(producer, request, RMQ_SYSTEM_ERROR, remark, NULL);
}

bool rmq_producer_received(void *owner, const char *addr, const rmq_header *header,
                           rmq_slice body) {
  rmq_producer *producer = owner;
  switch (header->code) {
    case RMQ_CHECK_TRANSACTION_STATE:
      rmq_producer_check(producer, addr, header, body);
      return true;
    case RMQ_NOTIFY_CONSUMER_IDS_CHANGED:
    case RMQ_RESET_CONSUMER_CLIENT_OFFSET:
      return true; /* Java answers neither */
    case RMQ_GET_CONSUMER_STATUS_FROM_CLIENT:
      answer(producer, header, RMQ_SUCCESS, NULL, no_offsets);
      return true;
    case RMQ_GET_CONSUMER_RUNNING_INFO:
    case RMQ_CONSUME_MESSAGE_DIRECTLY:
      answer_no_consumer(producer, header);
      return true;
    case RMQ_PUSH_REPLY_MESSAGE_TO_CLIENT:
      rmq_producer_reply_came(producer, addr, header, body);
      return true;
    default:
      return false;
  }
}

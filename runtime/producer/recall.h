#ifndef RMQ_PRODUCER_RECALL_H
#define RMQ_PRODUCER_RECALL_H

#include "producer/producer.h"

/* Takes back a message that a broker holds until its time comes. */

/* How it ended; valid during the call only. NULL as `failure`: the message with this UNIQ_KEY will not be
 * delivered, unless its time came in the same moment. The id is printable ASCII without blanks, at most
 * 255 bytes; a broker that says another one has failed. */
typedef void rmq_recall_done(void *arg, const rmq_failure *failure, rmq_slice msg_id);

/* Asks the broker that `handle` names (a result's recall_handle) to forget the message. `timeout_ms` 0:
 * send_msg_timeout. 0: `done` comes exactly once, later. Negative: nothing was started and
 * rmq_producer_failure tells why: the topic or the handle is none, they do not belong together, or the
 * topic is a %RETRY% or %DLQ% one; or the producer is not running. The strings are copied. */
int rmq_producer_recall(rmq_producer *producer, rmq_slice topic, rmq_slice handle,
                        int64_t timeout_ms, rmq_recall_done *done, void *arg);

#endif

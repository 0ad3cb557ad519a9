#ifndef RMQ_PRODUCER_TRANSACTION_H
#define RMQ_PRODUCER_TRANSACTION_H

#include "producer/producer.h"

/* Transactions. A half message is stored where no consumer sees it; then the caller does its own part,
 * the local transaction; then the broker is told what is to become of the message. A broker that hears
 * nothing for a while asks a producer of the group: see check.h. */

/* What has become of a local transaction, LocalTransactionState in Java. */
typedef enum rmq_transaction_state {
  RMQ_TRANSACTION_COMMIT,
  RMQ_TRANSACTION_ROLLBACK,
  RMQ_TRANSACTION_UNKNOWN /* the broker shall ask later */
} rmq_transaction_state;

const char *rmq_transaction_state_name(rmq_transaction_state state); /* "commit", ... */

/* Sends a half message; everything is as with rmq_producer_send. After a completion without failure
 * the transaction is open, by the completion's msg_id, until rmq_producer_end_transaction: a flush and a
 * shutdown wait for it. With another status than SEND_OK it should be rolled back. A message that
 * is delayed, or a reply, is refused. */
int rmq_producer_send_half(rmq_producer *producer, const rmq_message *message,
                           const rmq_send_options *options, rmq_send_done *done, void *arg);

/* Comes once, later: `failure` is NULL when the broker was told, as far as a connection that stands can
 * be believed (it does not answer), or when there was nothing to tell. */
typedef void rmq_transaction_ended(void *arg, const rmq_failure *failure);

/* Ends an open transaction, whether or not the broker can be told within send_msg_timeout: it asks
 * when it does not hear. `remark` is for the broker's log. 0: `done` comes. Negative, with the reason in
 * rmq_producer_failure: there is no such transaction (RMQ_EINVAL; a shutdown may have ended it), or
 * the broker cannot be told. */
int rmq_producer_end_transaction(rmq_producer *producer, rmq_slice msg_id,
                                 rmq_transaction_state state, rmq_slice remark,
                                 rmq_transaction_ended *done, void *arg);

/* Nobody will decide anything any more: the process ends. Open transactions, and those whose half
 * message is still under way, are left to the check of another producer of the group, and counted
 * as undelivered. */
void rmq_producer_stop_deciding(rmq_producer *producer);

#endif

#ifndef RMQ_PRODUCER_SETTLE_H
#define RMQ_PRODUCER_SETTLE_H

#include "base/clock.h"
#include "producer/producer.h"
#include "producer/transaction.h"

/* Telling the broker that keeps a half message what is to become of it: END_TRANSACTION. */

/* A half message, as far as its broker wants to be told which one is meant. */
typedef struct rmq_half {
  rmq_slice topic;  /* as the broker spelled it, if it did */
  rmq_slice broker; /* its name; empty: `addr` says whom to tell */
  rmq_slice addr;   /* where a check came from; empty: the broker's master is told */
  rmq_slice msg_id; /* UNIQ_KEY */
  rmq_slice transaction_id;
  int64_t queue_offset; /* in the queue of half messages */
  int64_t log_offset;   /* in the commit log */
  uint64_t connection;  /* on which a check came, see rmq_transport_origin; 0: none */
  bool checked;         /* this answers a check */
  /* For hooks and message trace, as far as there are such: the topic that it was sent to, its
   * properties, and for hooks that want to know of ends its body as well. */
  rmq_slice sent_to, properties, body;
  rmq_buf texts; /* what the slices of a copy point into */
} rmq_half;

/* Sets what of the message hooks and trace want to know, if there are such. Nothing is copied. */
void rmq_half_remember(rmq_half *half, const rmq_producer *producer, rmq_slice topic,
                       rmq_slice properties, rmq_slice body);

/* Makes `to`, which must be of zeros or a copy made before, a copy of its own. */
void rmq_half_copy(rmq_half *to, const rmq_half *from);
void rmq_half_free(rmq_half *half);

/* One that is being told. Part of whatever it is told for. */
typedef struct rmq_settlement {
  rmq_producer *producer;
  rmq_half half; /* set by the caller */
  rmq_transaction_state state;
  rmq_buf remark;
  rmq_mono deadline;
  /* `failure` is NULL when the bytes are with the kernel. Never comes from inside rmq_settle; not at
   * all when the producer is freed. */
  void (*done)(struct rmq_settlement *settlement, const rmq_failure *failure);
} rmq_settlement;

/* Tells hooks and message trace, then the broker within send_msg_timeout. What was certainly not written
 * is tried again. 0, or negative when nothing was begun and rmq_producer_failure says why. When a hook has
 * forked, the settlement is gone (the producer has no transport then). */
int rmq_settle(rmq_settlement *settlement, rmq_producer *producer, rmq_transaction_state state,
               rmq_slice remark);
void rmq_settlement_free(rmq_settlement *settlement);

#endif

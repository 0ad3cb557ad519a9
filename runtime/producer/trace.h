#ifndef RMQ_PRODUCER_TRACE_H
#define RMQ_PRODUCER_TRACE_H

#include "producer/producer.h"
#include "wire/trace.h"

/* Message trace of one producer: what it does is recorded, and the records are sent in the background as
 * messages of the trace topic, by the same producer. These messages are its own business: they are not
 * traced, no hook sees them, they take no room from the user's sends and are in none of their counters.
 *
 * Records about messages of one topic go together, as Java's do: when there are trace_msg_batch_num of them,
 * when they are long, when the first has waited for trace_flush_interval, and when somebody flushes or
 * shuts down. What brokers do not take in time is dropped and counted: records that are not yet acknowledged
 * take at most RMQ_TRACE_BYTES_MAX. */
typedef struct rmq_trace rmq_trace;

#define RMQ_TRACE_BYTES_MAX 4194304

/* Makes what a producer needs for it, and releases it; without a word to anybody. */
rmq_trace *rmq_trace_new(rmq_producer *producer);
void rmq_trace_free(rmq_trace *trace); /* takes NULL */

/* Notes the end of a transaction or a recall when trace is on; costs a look otherwise. Everything is
 * copied. The record's kind, group and time are filled in here; an empty region becomes Java's
 * "DefaultRegion". */
void rmq_trace_end_transaction(rmq_producer *producer, const rmq_trace_record *record);
void rmq_trace_recall(rmq_producer *producer, rmq_slice topic, rmq_slice msg_id, bool success);

#endif

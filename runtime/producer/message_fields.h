#ifndef RMQ_PRODUCER_MESSAGE_FIELDS_H
#define RMQ_PRODUCER_MESSAGE_FIELDS_H

#include "producer/producer.h"

/* What few messages have: a delay, a sharding key, a buyer id, light queues, and the counts of a
 * message that goes to a %RETRY% topic. Checked before anything is sent; RMQ_EINVAL comes with `why`
 * of kind "message". */

/* The levels that brokers know when nobody has configured others (messageDelayLevel). */
#define RMQ_DELAY_LEVEL_MAX 18

/* The longest delay in seconds: a broker's own maximum (timerMaxDelaySec, 3 days when nobody has
 * changed it) is an int32 of seconds, so none can hold a message for longer. What is over the
 * broker's maximum and not over this, the broker refuses with code 13. */
#define RMQ_DELAY_SECONDS_MAX INT32_MAX

/* The earliest and the latest moment that a message can be delivered at, milliseconds since 1970: the
 * years 1973 and 9999. What lies outside is no such moment: it is a number of seconds, or of
 * microseconds. */
#define RMQ_DELIVER_AT_MIN 100000000000
#define RMQ_DELIVER_AT_MAX 253402300799999

/* Appends the properties of these fields to the property string: DELAY, TIMER_DELAY_MS, TIMER_DELAY_SEC
 * or TIMER_DELIVER_MS; __SHARDINGKEY; BUYER_ID; INNER_MULTI_DISPATCH. Nothing for those that the
 * message does not have. */
int rmq_message_put_fields(const rmq_message *message, rmq_buf *out, rmq_failure *why);

/* True for RECONSUME_TIME and MAX_RECONSUME_TIMES of a message to a %RETRY% topic. They travel in the
 * request's header, not among the properties. */
bool rmq_message_is_retry_count(const rmq_message *message, rmq_slice name);

/* Reads both: how often a consumer has already failed with the message (0 when the message does not
 * say), and after how many times it goes to the group's dead letters (-1: as the group says). */
int rmq_message_retry_counts(const rmq_message *message, int32_t *reconsumed, int32_t *max,
                             rmq_failure *why);

/* True for a message with light queues, in `lmq` or in the property that a user may set instead. */
bool rmq_message_is_for_light_queues(const rmq_message *message);

/* What makes a message one of a kind of its own, as a sentence about "it"; NULL for all others. Brokers
 * do not look for such things in a batch: the message would be delivered at once, or not belong to its
 * transaction, without a word. */
const char *rmq_message_own_kind(const rmq_message *message);

#endif

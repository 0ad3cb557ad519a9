#ifndef RMQ_PRODUCER_MESSAGE_H
#define RMQ_PRODUCER_MESSAGE_H

#include "producer/producer.h"

/* What a message must be like, checked before anything is sent: Java's rules (Validators), and what
 * Java would carry wrongly without a word. All return 0, or RMQ_EINVAL with `why` saying what is
 * wrong with which field (kind "message", code 13 where Java gives it). */

/* The topic: 1 to 127 characters out of % | a-z A-Z 0-9 _ -, and none that the broker keeps for
 * itself. */
int rmq_topic_check(rmq_slice topic, rmq_failure *why);

/* The body: not empty, at most max_message_size, and at most max_inflight_bytes (a longer one could
 * never be under way; RMQ_EOVERLOAD). */
int rmq_body_check(const rmq_settings *settings, rmq_slice body, rmq_failure *why);

/* Writes the property string into `out`, which is emptied first: the user's properties, KEYS, TAGS,
 * what message_fields.h writes, WAIT, UNIQ_KEY. Checks tags, keys and properties on the way: valid
 * UTF-8, no bytes 1 or 2, no empty values, no names that the system uses, no key with a space when
 * there are several, at most RMQ_PROPERTIES_MAX bytes in all. What rmq_message_retry_counts reads is
 * left out. */
int rmq_message_properties(const rmq_message *message, rmq_slice msg_id, rmq_buf *out,
                           rmq_failure *why);

/* 0 when a text can be a property's value: valid UTF-8, without bytes 1 and 2. `field` names it in
 * `why`. */
int rmq_message_check_text(const char *field, rmq_slice text, rmq_failure *why);

/* True for a property that comes from a message's `properties`; false for those that RocketMQ itself
 * reads, whatever they come from. */
bool rmq_message_is_users(rmq_slice name);

/* Writes `original`, a property string, with the properties, keys and tags of `users` instead of its
 * own. What RocketMQ itself reads stays, and light queues cannot come in. The same checks. */
int rmq_message_properties_again(const rmq_message *users, rmq_slice original, rmq_buf *out,
                                 rmq_failure *why);

#endif

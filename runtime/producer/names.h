#ifndef RMQ_PRODUCER_NAMES_H
#define RMQ_PRODUCER_NAMES_H

#include "base/slice.h"

/* Names of topics and groups: Java's Validators and TopicValidator. */

#define RMQ_TOPIC_LENGTH_MAX 127

/* Java 4.9 to 5.3.3 and their brokers take 255; the newest client's 120 is its own narrower rule,
 * and a group that works with the other clients of a cluster must work here. */
#define RMQ_GROUP_LENGTH_MAX 255

/* 0, or RMQ_EINVAL and a sentence when the name is blank, longer than `longest` characters, or
 * holds another character than % | a-z A-Z 0-9 _ and -. `what` ("topic") names it in the
 * sentence. */
int rmq_name_check(const char *what, rmq_slice name, size_t longest, char *why, size_t why_size);

/* True for the topics that the broker keeps for itself: nobody may send to them. */
bool rmq_topic_is_forbidden(rmq_slice topic);

/* True for the topics that brokers make themselves: nobody else may make one with such a name. */
bool rmq_topic_is_system(rmq_slice topic);

#endif

#ifndef RMQ_SELECT_HASH_H
#define RMQ_SELECT_HASH_H

#include <stdint.h>

#include "base/slice.h"

/* Hashes by which clients in other languages choose queues. Pure; none is for keeping enemies out. */

/* String.hashCode() of the text that Java's UTF-8 decoder makes of the bytes: over its UTF-16
 * units; what is no UTF-8 counts as U+FFFD (see rmq_utf8_next). */
int32_t rmq_hash_java_text(rmq_slice text);

/* Long.hashCode(), and Boolean.hashCode(). Integer's is the number itself. */
int32_t rmq_hash_java_long(int64_t value);
int32_t rmq_hash_java_boolean(bool value);

/* FNV-1a in 32 bits, over bytes: what client-go hashes sharding keys with. */
uint32_t rmq_hash_fnv1a(rmq_slice bytes);

/* Like fnv1a, with its bits mixed, so that texts that differ little are far apart: for the points
 * of a ring. Of our own; no other client has it. */
uint32_t rmq_hash_spread(rmq_slice bytes);

#endif

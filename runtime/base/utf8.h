#ifndef RMQ_BASE_UTF8_H
#define RMQ_BASE_UTF8_H

#include <stdint.h>

#include "base/slice.h"

/* The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, no overlong forms,
 * nothing over U+10FFFF), or `text.len` when all of it is valid. */
size_t rmq_utf8_invalid_at(rmq_slice text);

/* The code point at `*at`, which is advanced behind it. What is not valid there is U+FFFD, one for
 * each longest beginning of a sequence (the Unicode standard's "maximal subpart"), as Java's decoder
 * gives it. `*at` is before `end`. */
uint32_t rmq_utf8_next(const char **at, const char *end);

#endif

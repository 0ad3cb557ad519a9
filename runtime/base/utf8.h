#ifndef RMQ_BASE_UTF8_H
#define RMQ_BASE_UTF8_H

#include "base/slice.h"

/* The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, no overlong forms,
 * nothing over U+10FFFF), or `text.len` when all of it is valid. */
size_t rmq_utf8_invalid_at(rmq_slice text);

#endif

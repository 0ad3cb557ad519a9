#ifndef RMQ_WIRE_NUMBER_H
#define RMQ_WIRE_NUMBER_H

#include <stdint.h>

#include "base/slice.h"

/* Decimal numbers as the protocol spells them, in ext fields and in JSON. */

/* The most bytes that rmq_number_write gives: "-9223372036854775808". */
#define RMQ_NUMBER_MAX 20

/* Reads `-?[0-9]+`, the whole text. Returns 0, or RMQ_EPROTO for any other text and for a number that
 * does not fit; `out` is untouched then. */
int rmq_number_i64(rmq_slice text, int64_t *out);
int rmq_number_i32(rmq_slice text, int32_t *out);

/* Writes `value` at `at`, which has RMQ_NUMBER_MAX bytes, and returns how many it took. */
size_t rmq_number_write(char *at, int64_t value);

#endif

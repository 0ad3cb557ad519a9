#ifndef RMQ_WIRE_SCAN_H
#define RMQ_WIRE_SCAN_H

#include <stdint.h>

#include "base/slice.h"

/* Looking for quotes in JSON, 16 bytes at a time where the processor can. Each function has a portable
 * twin that gives the same, which is what other processors run. */

/* The first '"' or '\\' from `at` on, or `end`. Sets `*high` when a byte before it is not ASCII and
 * leaves it alone otherwise. */
const char *rmq_scan_string(const char *at, const char *end, bool *high);
const char *rmq_scan_string_portable(const char *at, const char *end, bool *high);

/* More quotes than a header with RMQ_EXT_MAX fields needs. */
#define RMQ_QUOTES_MAX 600

/* Where the quotes of a JSON text are. */
typedef struct rmq_quotes {
  size_t count;
  bool high; /* a byte is not ASCII */
  uint16_t at[RMQ_QUOTES_MAX + 16];
} rmq_quotes;

/* Notes every quote of a text. False, with nothing of use in `out`, when the text has a backslash (then a
 * quote need not begin or end a string), more than RMQ_QUOTES_MAX quotes, or 65536 or more bytes. */
bool rmq_quotes_find(rmq_slice text, rmq_quotes *out);
bool rmq_quotes_find_portable(rmq_slice text, rmq_quotes *out);

#endif

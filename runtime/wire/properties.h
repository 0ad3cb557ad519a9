#ifndef RMQ_WIRE_PROPERTIES_H
#define RMQ_WIRE_PROPERTIES_H

#include "wire/header.h"

/* The property string: name 0x01 value 0x02, repeated; every pair ends with 0x02, the last one too
 * (brokers and agents append to it). There is no escaping. */

/* The longest property string that a broker stores (its length is an int16). */
#define RMQ_PROPERTIES_MAX 32767

/* Appends one pair. RMQ_EINVAL when the name or the value is empty or holds 0x01 or 0x02 (they would
 * change other properties); nothing is appended then. */
int rmq_properties_put(rmq_buf *out, rmq_slice name, rmq_slice value);

/* Takes the next pair off the front of `*rest`; false at the end. Accepts a last pair without its 0x02.
 * Pieces that Java ignores (shorter than 3 bytes, empty name or value) are skipped. */
bool rmq_properties_next(rmq_slice *rest, rmq_field *out);

/* The value of a property, or a slice with a NULL `ptr`. */
rmq_slice rmq_properties_find(rmq_slice properties, const char *name);

/* True when the name is one of the 51 that Java reserves for the system (MessageConst). */
bool rmq_property_is_reserved(rmq_slice name);

#endif

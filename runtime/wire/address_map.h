#ifndef RMQ_WIRE_ADDRESS_MAP_H
#define RMQ_WIRE_ADDRESS_MAP_H

#include "base/buf.h"
#include "base/slice.h"
#include "wire/route.h"

/* Where brokers are reached whose advertised addresses lead nowhere from here, as those inside of containers: a
 * text of entries "advertised=reachable" with ';' between them, blanks around, empty entries skipped.
 * What is advertised stands there as a whole ("172.17.0.2:10911") or as its host alone, whatever the text is: brokers
 * advertise all kinds of things. What is reachable is host:port, or a host: then the advertised port stays. */

/* 0, or RMQ_EINVAL with the first wrong entry and a reason in `why`. */
int rmq_address_map_check(rmq_slice map, char *why, size_t why_size);

/* The address for an advertised one: that of the first entry that names it as a whole, else of the
 * first that names its host, else itself. The result points into the map, into `room`, which is
 * overwritten, or is `advertised`. Costs a walk over the map, which must have been checked. */
rmq_slice rmq_address_map_find(rmq_slice map, rmq_slice advertised, rmq_buf *room);

/* Puts the reachable address in place of each one in a decoded route that the map names. */
void rmq_address_map_apply(rmq_slice map, rmq_route_data *route);

#endif

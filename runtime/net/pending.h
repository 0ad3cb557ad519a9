#ifndef RMQ_NET_PENDING_H
#define RMQ_NET_PENDING_H

#include "net/transport.h"

/* The requests of one connection that wait for a reply, by their number (opaque). Numbers count
 * up through 31 bits; a request stands in the cell that the low bits of its number name, and a
 * number whose cell is taken is skipped. So finding one is a single look, and nothing is
 * allocated for a request once the table has grown to what is in flight. A table of zeros is
 * empty and ready to use. */
typedef struct rmq_pending_cell {
  int32_t opaque;
  rmq_request *request; /* NULL: free */
} rmq_pending_cell;

typedef struct rmq_pending {
  rmq_pending_cell *cells;
  size_t cap;   /* a power of two, or 0 */
  size_t count; /* never more than half of cap */
  int32_t next; /* the number to try next */
} rmq_pending;

/* Puts a request in and gives it its number (request->opaque). */
void rmq_pending_add(rmq_pending *pending, rmq_request *request);

/* The request with this number, or NULL. Any number may be asked for. */
rmq_request *rmq_pending_get(const rmq_pending *pending, int32_t opaque);

/* Takes out the request with this number, which must be in. */
void rmq_pending_remove(rmq_pending *pending, int32_t opaque);

/* Forgets all requests and gives the memory back; numbers go on where they were. */
void rmq_pending_clear(rmq_pending *pending);

#endif

#ifndef RMQ_WIRE_IDS_H
#define RMQ_WIRE_IDS_H

#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"

/* Who we are, as far as ids say it. */
typedef struct rmq_identity {
  uint8_t ip[16];
  int ip_len; /* 4 or 16 */
  uint32_t pid;
  uint32_t
      tag; /* random for each worker and anew after a fork: what keeps ids apart when ip and pid are equal */
} rmq_identity;

#define RMQ_UNIQUE_ID_MAX 56 /* hex digits with an IPv6 address; 32 with IPv4 */

/* Makes UNIQ_KEYs in Java's layout: ip, 2 bytes pid, 4 bytes tag (Java: class loader), 4 bytes milliseconds
 * since the month began in local time, 2 bytes counter. No id is given twice by one maker: when the
 * counter has gone round within one millisecond the next millisecond is used, when the clock steps back the last
 * time is kept, and when the month changes the tag does too. */
typedef struct rmq_id_maker {
  char prefix[RMQ_UNIQUE_ID_MAX]; /* hex of ip, pid, tag, and the last id's time */
  int prefix_len;                 /* without the time */
  rmq_identity identity;
  int64_t month_start_ms; /* of the current month, wall clock */
  int64_t month_end_ms;
  int64_t used_ms;     /* the time in the last id, since month_start_ms */
  uint32_t used_in_ms; /* ids made with used_ms */
  uint16_t counter;
} rmq_id_maker;

void rmq_id_init(rmq_id_maker *maker, const rmq_identity *identity);
/* Writes one id (upper-case hex, not NUL terminated) and returns its length, 32 or 56. */
int rmq_id_next(rmq_id_maker *maker, rmq_wall now, char out[RMQ_UNIQUE_ID_MAX]);

/* The offset id that a broker gives: where it stored the message. */
typedef struct rmq_offset_id {
  uint8_t ip[16];
  int ip_len; /* 4 or 16 */
  int32_t port;
  int64_t offset; /* in the commit log, bytes */
} rmq_offset_id;

int rmq_offset_id_encode(const rmq_offset_id *id,
                         char out[RMQ_UNIQUE_ID_MAX]); /* returns the length */
/* 0, or RMQ_EPROTO when the text is not 32 or 56 hex digits, or the port is out of range. */
int rmq_offset_id_decode(rmq_slice text, rmq_offset_id *out);

#endif

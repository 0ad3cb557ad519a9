#ifndef RMQ_WIRE_REPLY_H
#define RMQ_WIRE_REPLY_H

#include "wire/header.h"
#include "wire/stored.h"

/* The reply to a request, as a broker pushes it to who asked: PUSH_REPLY_MESSAGE_TO_CLIENT. */
typedef struct rmq_pushed_reply {
  rmq_stored_message message; /* without hosts, offsets and CRC, which do not come with it */
  rmq_slice born_host;        /* "ip:port" of who replied */
  rmq_slice store_host;       /* of the broker */
} rmq_pushed_reply;

/* 0, or RMQ_EPROTO with `*wrong` naming what should be a number and is none; what is absent is 0. The slices point into header and
 * body. */
int rmq_pushed_reply_decode(const rmq_header *header, rmq_slice body, rmq_pushed_reply *out,
                            const char **wrong);

#endif

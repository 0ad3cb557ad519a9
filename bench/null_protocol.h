/* What the null server says: requests in, replies out, no I/O.
 *
 * A request is understood only as far as an answer needs: its code, its opaque and whether it
 * wants an answer. A reply is a text made at start-up, in which only the opaque (and, for a send,
 * the queue offset) changes, so that answering costs two copies of a cache-warm text. */
#ifndef RMQ_BENCH_NULL_PROTOCOL_H
#define RMQ_BENCH_NULL_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes a frame may have, its length field included. RocketMQ's own limit. */
enum { RMQ_NULL_MAX_FRAME = 16 * 1024 * 1024 };

/* The part of a request that an answer depends on. */
struct rmq_null_request {
  int32_t code;   /* what is asked */
  int32_t opaque; /* the asker's number, given back with the answer */
  int32_t flag;   /* bit 0: it is a response, bit 1: no answer is wanted */
};

/* One answer: a frame whose header is head, the opaque in decimal, tail. */
struct rmq_null_reply {
  char head[384];   /* header text up to the opaque */
  size_t head_size; /* bytes used of head */
  char tail[96];    /* header text behind the opaque */
  size_t tail_size; /* bytes used of tail */
  char body[512];   /* frame body */
  size_t body_size; /* bytes used of body, 0 for none */
};

/* Every answer the server knows. */
struct rmq_null_replies {
  struct rmq_null_reply route;   /* to 105: one broker with some queues */
  struct rmq_null_reply done;    /* to heartbeat and unregister: success, nothing else */
  struct rmq_null_reply sent;    /* to a send: what a 5.4.0 broker says, about 300 bytes */
  struct rmq_null_reply unknown; /* to anything else: code 3 */
  char *queue_offset;            /* the last digit of the queue offset in sent.head */
  uint64_t sends;                /* sends answered or, when oneway, taken */
};

/* Makes the answers. The route names the broker at `broker` ("ip:port", at most 21 characters)
 * with `queues` queues. `replies` belongs to the caller and must not be moved afterwards:
 * queue_offset points into it. */
void rmq_null_replies_init(struct rmq_null_replies *replies, const char *broker, unsigned queues);

/* The most bytes that one call of rmq_null_answer can write. */
size_t rmq_null_answer_max(void);

/* Reads the frame at the start of `bytes`. Gives the frame's size and fills `request`, or 0 when
 * the frame is not complete yet, or -1 when it is no frame of RocketMQ. Reads nothing beyond
 * `size`. */
int64_t rmq_null_parse(const uint8_t *bytes, size_t size, struct rmq_null_request *request);

/* Writes the answer to `request` to `out`, which has room for rmq_null_answer_max() bytes. Gives
 * the bytes written, 0 when the request wants no answer. Allocates nothing. */
size_t rmq_null_answer(struct rmq_null_replies *replies, const struct rmq_null_request *request,
                       uint8_t *out);

#endif

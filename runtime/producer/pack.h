#ifndef RMQ_PRODUCER_PACK_H
#define RMQ_PRODUCER_PACK_H

#include "producer/settings.h"
#include "wire/compress.h"

/* Compresses the bodies of one producer's messages: those of at least compress_msg_body_over_howmuch
 * bytes, each once, whatever number of attempts it takes. */
typedef struct rmq_packer {
  rmq_compression compression;
  int level;
  size_t over;                /* the shortest body that is compressed, bytes */
  rmq_compressor *compressor; /* made for the first such body */
  rmq_buf scratch;            /* what it writes into: much longer than what stays of it */
} rmq_packer;

/* What is to be done with one body. */
typedef enum rmq_pack_state {
  RMQ_PACK_NOT,   /* it goes as it is: short, a batch, or longer when compressed */
  RMQ_PACK_AHEAD, /* it is compressed when its first attempt is written */
  RMQ_PACK_DONE
} rmq_pack_state;

/* One body's, with what compressing made of it: no longer than the body. Of zeros: goes as it is. */
typedef struct rmq_pack {
  rmq_pack_state state;
  rmq_buf bytes;
} rmq_pack;

void rmq_packer_init(rmq_packer *packer, const rmq_settings *settings);
void rmq_packer_free(rmq_packer *packer);

/* A body is there for the first time, or has been changed: it is compressed later if it is long
 * enough. */
void rmq_pack_set(rmq_pack *pack, const rmq_packer *packer, size_t body_len);

/* What is sent of the body: itself, or its compressed bytes, which stay until the next rmq_pack_set or
 * rmq_pack_clear; `*sys_flag` then gets the bits that say so. `body` is not changed. */
rmq_slice rmq_pack_body(rmq_pack *pack, rmq_packer *packer, rmq_slice body, int32_t *sys_flag);

/* Forgets the body; keeps no memory that only a long one needs. */
void rmq_pack_clear(rmq_pack *pack);
void rmq_pack_free(rmq_pack *pack);

#endif

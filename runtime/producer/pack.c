#include "producer/pack.h"

/* What is kept for the next body: of the compressed bytes for each send in the pool, and of the scratch
 * once for the producer. */
enum { KEPT_BYTES = 2048, KEPT_SCRATCH = 1024 * 1024 };

void rmq_packer_init(rmq_packer *packer, const rmq_settings *settings) {
  *packer = (rmq_packer){
      .level = (int)settings->compress_level,
      .over = (size_t)settings->compress_msg_body_over_howmuch,
  };
  /* The setting has passed its check. */
  rmq_compression_of_name(rmq_slice_text(settings->compress_type), &packer->compression);
}

void rmq_packer_free(rmq_packer *packer) {
  rmq_compressor_free(packer->compressor);
  packer->compressor = NULL;
  rmq_buf_free(&packer->scratch);
}

void rmq_pack_set(rmq_pack *pack, const rmq_packer *packer, size_t body_len) {
  rmq_buf_clear(&pack->bytes);
  pack->state = body_len >= packer->over ? RMQ_PACK_AHEAD : RMQ_PACK_NOT;
}

static void compress(rmq_pack *pack, rmq_packer *packer, rmq_slice body) {
  rmq_buf *scratch = &packer->scratch;
  if (!packer->compressor) {
    packer->compressor = rmq_compressor_new(packer->compression, packer->level);
  }
  pack->state = RMQ_PACK_NOT;
  if (rmq_compress(packer->compressor, body, scratch)) {
    pack->state = RMQ_PACK_DONE;
    rmq_buf_bytes(&pack->bytes, rmq_buf_head(scratch), rmq_buf_len(scratch));
  }
  rmq_buf_clear(scratch);
  rmq_buf_trim(scratch, KEPT_SCRATCH);
}

rmq_slice rmq_pack_body(rmq_pack *pack, rmq_packer *packer, rmq_slice body, int32_t *sys_flag) {
  if (pack->state == RMQ_PACK_AHEAD) compress(pack, packer, body);
  if (pack->state != RMQ_PACK_DONE) return body;
  *sys_flag |= rmq_compression_flags(packer->compression);
  return rmq_buf_slice(&pack->bytes);
}

void rmq_pack_clear(rmq_pack *pack) {
  pack->state = RMQ_PACK_NOT;
  rmq_buf_clear(&pack->bytes);
  rmq_buf_trim(&pack->bytes, KEPT_BYTES);
}

void rmq_pack_free(rmq_pack *pack) { rmq_buf_free(&pack->bytes); }

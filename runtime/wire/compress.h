#ifndef RMQ_WIRE_COMPRESS_H
#define RMQ_WIRE_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Compressed bodies: a zlib stream (RFC 1950), an LZ4 frame, or Zstandard frames. The message's sysFlag
 * says which. Every consumer reads zlib; those before 4.9.4 read nothing else. */
typedef enum rmq_compression {
  RMQ_COMPRESSION_LZ4 = 1, /* the numbers of CompressionType, as sysFlag has them */
  RMQ_COMPRESSION_ZSTD = 2,
  RMQ_COMPRESSION_ZLIB = 3
} rmq_compression;

/* The strongest level; the weakest is 1. LZ4 has no levels. */
int rmq_compression_level_max(rmq_compression compression);

/* "zlib", "lz4" or "zstd"; 0, or RMQ_EINVAL for any other name. */
int rmq_compression_of_name(rmq_slice name, rmq_compression *out);

/* The name of what a message with this sysFlag is compressed with; NULL when it is not, or with
 * something unknown. */
const char *rmq_compression_name(int32_t sys_flag);

/* What a compressed message has in its sysFlag: 0x1 and the kind. */
int32_t rmq_compression_flags(rmq_compression compression);

/* What compressing needs to have ready: up to a few hundred KiB, made once, used for any number of
 * bodies. */
typedef struct rmq_compressor rmq_compressor;

rmq_compressor *rmq_compressor_new(rmq_compression compression, int level);
void rmq_compressor_free(rmq_compressor *compressor); /* takes NULL */

/* Appends the compressed body to `out`. False, and nothing is appended, when it would not be
 * shorter than the body. Reserves at most the body's length and a little more. */
bool rmq_compress(rmq_compressor *compressor, rmq_slice body, rmq_buf *out);

/* Appends what a body with this sysFlag was before it was compressed; one that was not is copied.
 * RMQ_EPROTO when the bytes or the kind in sysFlag are none that is known, RMQ_ELIMIT when more than
 * `limit` bytes would come out; nothing is appended then. Never takes more memory than twice
 * `limit` and 8 MiB. */
int rmq_decompress(int32_t sys_flag, rmq_slice body, size_t limit, rmq_buf *out);

#endif

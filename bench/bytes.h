/* Big-endian integers for the benchmark programs.
 *
 * The programs in this folder share nothing with the runtime, so that what they measure it against
 * cannot get slower or faster with it. The caller has checked that the bytes are there. */
#ifndef RMQ_BENCH_BYTES_H
#define RMQ_BENCH_BYTES_H

#include <stdint.h>

static inline uint16_t rmq_bench_get16(const uint8_t *bytes) {
  return (uint16_t)((uint32_t)bytes[0] << 8 | bytes[1]);
}

static inline uint32_t rmq_bench_get32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Both writers return the first byte after what they wrote. */
static inline uint8_t *rmq_bench_put16(uint8_t *bytes, uint16_t value) {
  bytes[0] = (uint8_t)(value >> 8);
  bytes[1] = (uint8_t)value;
  return bytes + 2;
}

static inline uint8_t *rmq_bench_put32(uint8_t *bytes, uint32_t value) {
  bytes[0] = (uint8_t)(value >> 24);
  bytes[1] = (uint8_t)(value >> 16);
  bytes[2] = (uint8_t)(value >> 8);
  bytes[3] = (uint8_t)value;
  return bytes + 4;
}

#endif

/* What compressing bodies costs. bench/compress runs this and its Java counterpart in turn.
 *
 *   bench_compress bodies FOLDER                    writes the bodies that are measured
 *   bench_compress measure KIND SECONDS FILE...     prints "FILE BYTES_PER_SECOND PACKED_BYTES" for each
 *
 * A file "json-4096" is bodies of 4096 bytes one after the other, all different: with one and the
 * same body again and again a processor learns its branches by heart, and everybody looks good.
 * Bytes are those of the bodies, seconds those of the processor
 * that the whole process took: the collector of a Java process is part of what it costs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "wire/compress.h"

enum { LEVEL = 5, FILE_SIZE = 2 * 1024 * 1024 };

/* ---- Bodies ---- */

static uint32_t state = 20;

static unsigned below(unsigned limit) {
  state = state * 1664525 + 1013904223;
  return (unsigned)(((uint64_t)state * limit) >> 32);
}

static void put_json(rmq_buf *out, size_t len) {
  static const char *const states[] = {"created", "paid", "packed", "shipped", "delivered", "lost"};
  static const char *const cities[] = {"Hangzhou", "Berlin", "Nairobi", "Lima", "Osaka", "Quito"};
  while (rmq_buf_len(out) < len) {
    rmq_buf_printf(out,
                   "{\"order\":\"%08u\",\"user\":\"user-%05u\",\"state\":\"%s\",\"city\":\"%s\","
                   "\"amount\":%u.%02u,\"time\":17%08u%03u,\"items\":[",
                   below(100000000), below(100000), states[below(6)], cities[below(6)], below(500),
                   below(100), below(100000000), below(1000));
    for (unsigned i = below(4) + 1; i > 0; i--) {
      rmq_buf_printf(out, "{\"sku\":\"%c%c-%04u\",\"count\":%u}%s", 'A' + (int)below(26),
                     'A' + (int)below(26), below(10000), below(9) + 1, i > 1 ? "," : "");
    }
    rmq_buf_text(out, "]}\n");
  }
}

/* Words of which some are far more frequent than others, as in a language. */
static void put_text(rmq_buf *out, size_t len) {
  char words[512][12];
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t letters = 2 + below(9);
    for (size_t j = 0; j < letters; j++) words[i][j] = "etaoinshrdlucmfwypvbgk"[below(22)];
    words[i][letters] = '\0';
  }
  while (rmq_buf_len(out) < len) {
    rmq_buf_text(out, words[below(below(below(512) + 1) + 1)]);
    rmq_buf_text(out, below(12) == 0 ? ". " : " ");
  }
}

static void put_random(rmq_buf *out, size_t len) {
  while (rmq_buf_len(out) < len) rmq_buf_u8(out, (uint8_t)below(256));
}

static void write_bodies(const char *folder, const char *kind, size_t body_len,
                         void (*put)(rmq_buf *, size_t)) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s-%zu", folder, kind, body_len);
  FILE *file = fopen(path, "wb");
  bool written = file != NULL;
  for (size_t at = 0; written && at < FILE_SIZE; at += body_len) {
    rmq_buf body = {0};
    put(&body, body_len);
    written = fwrite(rmq_buf_head(&body), 1, body_len, file) == body_len;
    rmq_buf_free(&body);
  }
  if (!written || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void write_all(const char *folder) {
  write_bodies(folder, "json", 1024, put_json);
  write_bodies(folder, "json", 4096, put_json);
  write_bodies(folder, "json", 16384, put_json);
  write_bodies(folder, "json", 65536, put_json);
  write_bodies(folder, "text", 4096, put_text);
  write_bodies(folder, "text", 65536, put_text);
  write_bodies(folder, "random", 16384, put_random);
}

/* ---- Measuring ---- */

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static char *read_file(const char *path) {
  char *bytes = rmq_alloc(FILE_SIZE);
  FILE *file = fopen(path, "rb");
  if (!file || fread(bytes, 1, FILE_SIZE, file) != FILE_SIZE) {
    perror(path);
    exit(1);
  }
  fclose(file);
  return bytes;
}

/* Compresses every body of the file once, and returns how many bytes would be sent. */
static size_t compress_all(rmq_compressor *compressor, const char *bytes, size_t body_len,
                           rmq_buf *out) {
  size_t sent = 0;
  for (size_t at = 0; at < FILE_SIZE; at += body_len) {
    rmq_buf_clear(out);
    bool shorter = rmq_compress(compressor, rmq_slice_make(bytes + at, body_len), out);
    sent += shorter ? rmq_buf_len(out) : body_len;
  }
  return sent;
}

static void measure(rmq_compressor *compressor, const char *path, double seconds) {
  const char *dash = strrchr(path, '-');
  size_t body_len = dash ? strtoul(dash + 1, NULL, 10) : 0;
  if (body_len == 0 || FILE_SIZE % body_len != 0) {
    fprintf(stderr, "%s: the name must end with the length of its bodies\n", path);
    exit(2);
  }
  char *bytes = read_file(path);
  rmq_buf out = {0};
  size_t sent = compress_all(compressor, bytes, body_len, &out);
  double done = 0, started = processor_seconds(), spent = 0;
  while (spent < seconds) {
    compress_all(compressor, bytes, body_len, &out);
    done += FILE_SIZE;
    spent = processor_seconds() - started;
  }
  printf("%s %.0f %zu\n", path, done / spent, sent);
  rmq_buf_free(&out);
  free(bytes);
}

int main(int argc, char **argv) {
  rmq_compression compression;
  if (argc == 3 && strcmp(argv[1], "bodies") == 0) {
    write_all(argv[2]);
    return 0;
  }
  if (argc < 5 || strcmp(argv[1], "measure") != 0 ||
      rmq_compression_of_name(rmq_slice_text(argv[2]), &compression) < 0) {
    fputs("usage: bench_compress bodies FOLDER | measure zlib|lz4|zstd SECONDS FILE...\n", stderr);
    return 2;
  }
  rmq_compressor *compressor = rmq_compressor_new(compression, LEVEL);
  for (int i = 4; i < argc; i++) measure(compressor, argv[i], atof(argv[3]));
  rmq_compressor_free(compressor);
  return 0;
}

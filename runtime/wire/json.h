#ifndef RMQ_WIRE_JSON_H
#define RMQ_WIRE_JSON_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* A pull reader for the JSON that RocketMQ servers send: standard JSON, and the bare integer keys
 * ({0:"host:port"}, {-1:...}) of fastjson. It allocates nothing but what unescaping puts into `scratch`, and knows
 * how deep it is: more than RMQ_JSON_DEPTH levels are refused. */
#define RMQ_JSON_DEPTH 64

typedef enum rmq_json_type {
  RMQ_JSON_ERROR,
  RMQ_JSON_END, /* nothing but white space is left */
  RMQ_JSON_NULL,
  RMQ_JSON_TRUE,
  RMQ_JSON_FALSE,
  RMQ_JSON_NUMBER, /* `text` is its spelling, checked against the grammar */
  RMQ_JSON_STRING, /* `text` is its content, unescaped, valid UTF-8 */
  RMQ_JSON_KEY,    /* a member's name, quoted or a bare integer; the ':' has been read */
  RMQ_JSON_OBJECT,
  RMQ_JSON_OBJECT_END,
  RMQ_JSON_ARRAY,
  RMQ_JSON_ARRAY_END
} rmq_json_type;

typedef struct rmq_json {
  const char *at;
  const char *end;
  const char *begin;
  rmq_buf *scratch;
  unsigned depth;
  uint64_t in_object;  /* one bit a level: set when that level is an object */
  uint8_t expect;      /* what the grammar allows next */
  rmq_slice text;      /* of the last string, key or number; valid while input and scratch stay */
  const char *problem; /* after RMQ_JSON_ERROR: what is wrong, static text */
} rmq_json;

/* `scratch` is not cleared: texts unescaped earlier stay valid as long as the caller reserves nothing
 * else there; the reader reserves the whole input's length at the first escape, so it never moves. */
void rmq_json_init(rmq_json *json, rmq_slice input, rmq_buf *scratch);
rmq_json_type rmq_json_next(rmq_json *json);
/* Skips the value that starts with the token just read (a scalar, or an object or array with all it holds). 0 or RMQ_EPROTO. */
int rmq_json_skip(rmq_json *json, rmq_json_type type);
/* The last NUMBER, or a KEY or STRING that spells one, as an integer. 0 or RMQ_EPROTO. */
int rmq_json_int(const rmq_json *json, int64_t *out);

/* Writes `text` (UTF-8) as a JSON string with its quotes. */
void rmq_json_quote(rmq_buf *out, rmq_slice text);

#endif

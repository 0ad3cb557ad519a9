/* Message trace as brokers see it: every record is about a send that has completed as it says. */
#include "sim/trace.h"

#include <inttypes.h>

#include "wire/codes.h"
#include "wire/compress.h"
#include "wire/number.h"

enum { FIELDS = 14, BODY_MAX = 1 << 20 };

enum {
  KIND,
  TIME,
  REGION,
  GROUP,
  TOPIC,
  ID,
  TAGS,
  KEYS,
  HOST,
  LENGTH,
  COST,
  TYPE,
  OFFSET_ID,
  SUCCESS
};

/* Splits off what stands before the first `separator`; false when there is none. */
static bool split(rmq_slice *rest, char separator, rmq_slice *part) {
  const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
  if (!end) return false;
  *part = rmq_slice_make(rest->ptr, (size_t)(end - rest->ptr));
  *rest = rmq_slice_make(end + 1, rest->len - part->len - 1);
  return true;
}

static bool read_fields(rmq_slice record, rmq_slice fields[FIELDS]) {
  for (int i = 0; i < FIELDS - 1; i++) {
    if (!split(&record, 1, &fields[i])) return false;
  }
  fields[SUCCESS] = record;
  return memchr(record.ptr, 1, record.len) == NULL;
}

static bool is_about(const sim_cluster *cluster, const sim_send *send,
                     const rmq_slice fields[FIELDS]) {
  char tag[SIM_TEXT];
  sim_tag_text(send->number, tag);
  int64_t time, length, cost;
  bool success = rmq_slice_is(fields[SUCCESS], "true");
  return rmq_slice_is(fields[KIND], "Pub") && rmq_slice_is(fields[REGION], "DefaultRegion") &&
         rmq_slice_is(fields[GROUP], "sim_group") &&
         rmq_slice_is(fields[TOPIC], cluster->truth.topics[send->topic].name) &&
         rmq_slice_is(fields[TAGS], send->tagged ? tag : "null") &&
         rmq_number_i64(fields[TIME], &time) == 0 && rmq_number_i64(fields[COST], &cost) == 0 &&
         rmq_number_i64(fields[LENGTH], &length) == 0 && length == (int64_t)send->body_len &&
         cost >= 0 && (success || rmq_slice_is(fields[SUCCESS], "false")) &&
         (!success || send->state == SIM_SEND_STORED);
}

/* True when the record is right; the send is noted as traced. */
static bool take_record(sim_cluster *cluster, rmq_slice record) {
  rmq_slice fields[FIELDS];
  sim_send *send = NULL;
  if (record.len > 0 && read_fields(record, fields)) {
    send = rmq_map_get(cluster->ledger->by_key, fields[ID]);
  }
  bool over = send && (send->state == SIM_SEND_STORED || send->state == SIM_SEND_FAILED);
  if (!over || !is_about(cluster, send, fields)) {
    sim_break(cluster->world, "the trace says wrong things: %.*s", (int)record.len,
              record.len ? record.ptr : "");
    return false;
  }
  if (++send->traced > 1 && cluster->trouble == SIM_NO_TROUBLE) {
    sim_break(cluster->world, "send %" PRIu32 " is traced twice", send->number);
  }
  return !sim_is_broken(cluster->world);
}

bool sim_trace_stored(sim_cluster *cluster, const rmq_send_header *request, rmq_slice body) {
  rmq_buf unpacked = {0};
  if (rmq_decompress(request->sys_flag, body, BODY_MAX, &unpacked) < 0) {
    sim_break(cluster->world, "a trace message with a body of %zu bytes cannot be read", body.len);
    return false;
  }
  rmq_slice rest = rmq_buf_slice(&unpacked), record;
  bool right = rest.len > 0;
  while (right && rest.len > 0) {
    right = split(&rest, 2, &record) && take_record(cluster, record);
  }
  rmq_buf_free(&unpacked);
  if (!right) sim_break(cluster->world, "a trace message ends in the middle of a record");
  return right;
}

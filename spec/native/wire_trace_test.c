/* Records of message trace, byte for byte as Java's encoder writes them. */
#include "wire/trace.h"

#include "check.h"

static rmq_buf out;

static rmq_slice text(const char *s) { return rmq_slice_text(s); }

static void check_written(const char *expected) {
  if (!rmq_slice_is(rmq_buf_slice(&out), expected)) {
    printf("\"%.*s\" is not \"%s\"\n", (int)rmq_buf_len(&out), (const char *)rmq_buf_head(&out),
           expected);
    check_that(0, "the record", __FILE__, __LINE__);
  }
  rmq_buf_clear(&out);
}

static const rmq_trace_record full = {.kind = RMQ_TRACE_PUB,
                                      .time_ms = 1700000000123,
                                      .region = {"r", 1},
                                      .group = {"g", 1},
                                      .topic = {"T", 1},
                                      .msg_id = {"ID", 2},
                                      .success = true,
                                      .tags = {"t", 1},
                                      .keys = {"k1 k2", 5},
                                      .store_host = {"1.2.3.4:5", 9},
                                      .type = RMQ_TRACE_DELAY,
                                      .body_length = 42,
                                      .cost_ms = 7,
                                      .offset_msg_id = {"OID", 3},
                                      .transaction_id = {"X", 1},
                                      .state = {"UNKNOW", 6},
                                      .from_check = true};

static void every_kind(void) {
  rmq_trace_record record = full;
  rmq_trace_put(&out, &record);
  check_written(
      "Pub\0011700000000123\001r\001g\001T\001ID\001t\001k1 k2\0011.2.3.4:5\00142\0017\0013\001OID"
      "\001true\002");
  record.kind = RMQ_TRACE_END_TRANSACTION;
  record.type = RMQ_TRACE_COMMIT;
  rmq_trace_put(&out, &record);
  check_written(
      "EndTransaction\0011700000000123\001r\001g\001T\001ID\001t\001k1 k2\0011.2.3.4:5\0012\001X"
      "\001UNKNOW\001true\002");
  record.kind = RMQ_TRACE_RECALL;
  record.success = false;
  rmq_trace_put(&out, &record);
  check_written("Recall\0011700000000123\001r\001g\001T\001ID\001false\002");
}

static void what_is_not_known(void) {
  rmq_trace_record record = {.kind = RMQ_TRACE_PUB, .region = text("r"), .group = text("g")};
  record.topic = text("T");
  rmq_trace_put(&out, &record);
  check_written(
      "Pub\0010\001r\001g\001T\001null\001null\001null\001null\0010\0010\0010\001null\001false"
      "\002");
}

static void what_would_break_the_format(void) {
  char region[2000];
  memset(region, 'r', sizeof region);
  region[0] = 1;
  region[1] = 2;
  rmq_trace_record record = full;
  record.kind = RMQ_TRACE_RECALL;
  record.region = rmq_slice_make(region, 3);
  record.msg_id = text("a\001b\002c");
  rmq_trace_put(&out, &record);
  check_written(
      "Recall\0011700000000123\001?"
      "?r\001g\001T\001a?b?c\001true\002");
  record.region.len = sizeof region;
  rmq_trace_put(&out, &record);
  CHECK_INT(rmq_buf_len(&out),
            strlen("Recall\0011700000000123\001\001g\001T\001a?b?c\001true\002") + 512);
  rmq_buf_free(&out);
}

int main(void) {
  check_run("every kind", every_kind);
  check_run("what is not known", what_is_not_known);
  check_run("what would break the format", what_would_break_the_format);
  return check_end();
}

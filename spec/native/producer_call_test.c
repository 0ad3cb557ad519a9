/* Requests to brokers that are no sends, in virtual time. */
#include "base/error.h"
#include "producer/call.h"
#include "producer_world.h"
#include "wire/codes.h"

#define A "10.0.0.2:1"

typedef struct call_end {
  int dones;
  bool failed, has_header;
  rmq_kind kind;
  int32_t code;
  int64_t at_us;
  char broker[32], addr[32], message[512], offset[32];
} call_end;

static call_end end;

static void copy(char *to, size_t size, rmq_slice text) {
  snprintf(to, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

static void done(void *arg, const rmq_call_end *result) {
  call_end *into = arg;
  into->dones++;
  into->failed = result->failure != NULL;
  into->has_header = result->header != NULL;
  into->at_us = world_now_us();
  copy(into->broker, sizeof into->broker, result->broker);
  copy(into->addr, sizeof into->addr, result->addr);
  if (result->header) {
    copy(into->offset, sizeof into->offset, rmq_header_field(result->header, "offset"));
  }
  if (!result->failure) return;
  into->kind = result->failure->kind;
  into->code = result->failure->code;
  copy(into->message, sizeof into->message, rmq_buf_slice(&result->failure->message));
}

static void begin(void) {
  world_begin();
  world_topic_set("T", "a", 1, 6);
  memset(&end, 0, sizeof end);
}

static int ask(const char *broker, const char *topic, const char *addr) {
  const rmq_field ext[] = {{rmq_slice_text("topic"), rmq_slice_text("T")},
                           {rmq_slice_text("queueId"), rmq_slice_text("0")}};
  rmq_call_options options = {.code = RMQ_GET_MAX_OFFSET,
                              .broker = rmq_slice_text(broker),
                              .topic = rmq_slice_text(topic),
                              .addr = rmq_slice_text(addr),
                              .ext = ext,
                              .n_ext = 2,
                              .timeout_ms = 700};
  return rmq_producer_call(producer, &options, done, &end);
}

static void a_broker_out_of_a_topics_route(void) {
  begin();
  world_start();
  CHECK_INT(ask("a", "T", NULL), 0);
  CHECK_INT(end.dones, 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed && end.has_header);
  CHECK(strcmp(end.broker, "a") == 0);
  CHECK(strcmp(end.addr, A) == 0);
  CHECK_INT(world_at(A)->probes, 1);
  /* Now it is known: no topic is needed. */
  CHECK_INT(ask("a", NULL, NULL), 0);
  world_run(50);
  CHECK_INT(end.dones, 2);
  CHECK_INT(world_at(A)->probes, 2);
  world_end_all();
}

static void an_address(void) {
  begin();
  world_start();
  CHECK_INT(ask(NULL, NULL, A), 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed);
  CHECK(strcmp(end.addr, A) == 0);
  world_end_all();
}

static void who_is_not_known(void) {
  begin();
  world_start();
  CHECK_INT(ask("b", NULL, NULL), RMQ_EINVAL);
  copy(end.message, sizeof end.message, rmq_buf_slice(&rmq_producer_failure(producer)->message));
  CHECK(strstr(end.message, "no broker \"b\"") != NULL);
  CHECK_INT(ask("b", "T", NULL), 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  CHECK(strstr(end.message, "No broker \"b\" with a master is in the route of topic \"T\"") !=
        NULL);
  world_end_all();
}

static void what_goes_wrong(void) {
  begin();
  world_at(A)->to_probes = (world_act){.mood = WORLD_CODE, .code = RMQ_NO_PERMISSION};
  world_start();
  CHECK_INT(ask("a", "T", NULL), 0);
  world_run(50);
  CHECK_INT(end.kind, RMQ_KIND_BROKER);
  CHECK_INT(end.code, RMQ_NO_PERMISSION);
  CHECK(end.has_header);
  CHECK(strstr(end.message, "GET_MAX_OFFSET was refused by " A) != NULL);

  world_at(A)->to_probes = (world_act){.mood = WORLD_MUTE};
  int64_t start = world_now_us();
  CHECK_INT(ask("a", "T", NULL), 0);
  world_run(2000);
  CHECK_INT(end.dones, 2);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  CHECK_INT((end.at_us - start) / 1000, 700);

  world_at(A)->to_probes = (world_act){.mood = WORLD_CLOSES};
  CHECK_INT(ask("a", "T", NULL), 0);
  world_run(2000);
  CHECK_INT(end.dones, 3);
  CHECK_INT(end.kind, RMQ_KIND_CLOSED);
  world_end_all();
}

static void a_shutdown_waits_for_it_and_no_longer(void) {
  begin();
  world_at(A)->to_probes = (world_act){.mood = WORLD_MUTE};
  world_start();
  CHECK_INT(ask("a", "T", NULL), 0);
  world_run(10);
  world_count over = {0};
  rmq_producer_shutdown(producer, 300, world_count_done, &over);
  world_run(200);
  CHECK_INT(end.dones, 0);
  CHECK_INT(over.dones, 0);
  CHECK_INT(ask("a", "T", NULL), RMQ_ESTATE);
  world_run(2000);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_STATE);
  CHECK_INT(over.dones, 1);
  world_end_all();
}

int main(void) {
  check_run("a broker out of a topic's route", a_broker_out_of_a_topics_route);
  check_run("an address", an_address);
  check_run("who is not known", who_is_not_known);
  check_run("what goes wrong", what_goes_wrong);
  check_run("a shutdown", a_shutdown_waits_for_it_and_no_longer);
  return check_end();
}

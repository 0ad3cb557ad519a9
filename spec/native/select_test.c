/* Round robin over a topic's queues. */
#include "select/select.h"
#include "check.h"

/* Three brokers: 0 and 1 with two queues each, 2 with one. */
static rmq_publish_queue queues[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}};
static const rmq_publish publish = {.n_brokers = 3, .queues = queues, .n_queues = 5};

static void goes_on_by_one(void) {
  rmq_round_robin robin;
  rmq_round_robin_init(&robin, 0x123456789abcdef0);
  int32_t first = rmq_round_robin_pick(&robin, &publish, -1);
  for (int32_t i = 1; i < 12; i++) {
    CHECK_INT(rmq_round_robin_pick(&robin, &publish, -1), (first + i) % 5);
  }
}

static void starts_by_chance(void) {
  int seen[5] = {0};
  for (uint64_t i = 0; i < 64; i++) {
    rmq_round_robin robin;
    rmq_round_robin_init(&robin, i * 0x9e3779b97f4a7c15u);
    seen[rmq_round_robin_pick(&robin, &publish, -1)]++;
  }
  for (int i = 0; i < 5; i++) CHECK(seen[i] > 0);
}

static void never_negative_when_the_index_wraps(void) {
  rmq_round_robin robin = {.index = 0x7ffffffe};
  for (int i = 0; i < 5; i++) {
    int32_t at = rmq_round_robin_pick(&robin, &publish, -1);
    CHECK(at >= 0 && at < 5);
  }
  robin.index = UINT32_MAX;
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, -1), UINT32_MAX % 5);
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, -1), 0);
}

static void passes_over_a_broker(void) {
  rmq_round_robin robin = {.index = 2};
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, 1), 4);
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, 1), 0);
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, 1), 1);
  CHECK_INT(rmq_round_robin_pick(&robin, &publish, 1), 4);
}

static void takes_the_only_broker_in_spite(void) {
  rmq_publish one = {.n_brokers = 1, .queues = queues, .n_queues = 2};
  rmq_round_robin robin = {.index = 1};
  int32_t first = rmq_round_robin_pick(&robin, &one, 0);
  int32_t second = rmq_round_robin_pick(&robin, &one, 0);
  CHECK(first >= 0 && second >= 0);
  CHECK(first != second);
}

static void nothing_to_pick(void) {
  rmq_publish none = {.n_queues = 0};
  rmq_round_robin robin = {.index = 1};
  CHECK_INT(rmq_round_robin_pick(&robin, &none, -1), -1);
  CHECK_INT(rmq_round_robin_pick(&robin, &none, 0), -1);
}

int main(void) {
  check_run("goes on by one", goes_on_by_one);
  check_run("starts by chance", starts_by_chance);
  check_run("never negative when the index wraps", never_negative_when_the_index_wraps);
  check_run("passes over a broker", passes_over_a_broker);
  check_run("takes the only broker in spite", takes_the_only_broker_in_spite);
  check_run("nothing to pick", nothing_to_pick);
  return check_end();
}

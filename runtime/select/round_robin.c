#include "select/select.h"

void rmq_round_robin_init(rmq_round_robin *robin, uint64_t random) {
  robin->index = (uint32_t)(random >> 32);
}

static int32_t step(rmq_round_robin *robin, const rmq_publish *publish) {
  return (int32_t)(robin->index++ % publish->n_queues);
}

int32_t rmq_round_robin_pick(rmq_round_robin *robin, const rmq_publish *publish, int32_t avoid) {
  if (publish->n_queues == 0) return -1;
  if (avoid >= 0) {
    for (size_t i = 0; i < publish->n_queues; i++) {
      int32_t at = step(robin, publish);
      if (publish->queues[at].broker != avoid) return at;
    }
  }
  return step(robin, publish);
}

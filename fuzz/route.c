#include "wire/route.h"

#include "fuzz.h"
#include "wire/json.h"

static void put_text(rmq_buf *out, const char *key, rmq_slice text) {
  if (!text.ptr) return;
  rmq_buf_printf(out, ",\"%s\":", key);
  rmq_json_quote(out, text);
}

static void put_broker(rmq_buf *out, const rmq_broker_data *broker) {
  rmq_buf_text(out, "{\"brokerAddrs\":{");
  for (size_t i = 0; i < broker->n_addrs; i++) {
    rmq_buf_printf(out, "%s%lld:", i ? "," : "", (long long)broker->addrs[i].id);
    rmq_json_quote(out, broker->addrs[i].addr);
  }
  rmq_buf_text(out, "}");
  put_text(out, "brokerName", broker->broker_name);
  put_text(out, "cluster", broker->cluster);
  rmq_buf_text(out, "}");
}

static void put_queue(rmq_buf *out, const rmq_queue_data *queue) {
  rmq_buf_printf(out, "{\"readQueueNums\":%d,\"writeQueueNums\":%d,\"perm\":%d,\"topicSysFlag\":%d",
                 queue->read_queue_nums, queue->write_queue_nums, queue->perm,
                 queue->topic_sys_flag);
  put_text(out, "brokerName", queue->broker_name);
  rmq_buf_text(out, "}");
}

static void put_route(rmq_buf *out, const rmq_route_data *route) {
  rmq_buf_text(out, "{\"brokerDatas\":[");
  for (size_t i = 0; i < route->n_brokers; i++) {
    if (i) rmq_buf_u8(out, ',');
    put_broker(out, &route->brokers[i]);
  }
  rmq_buf_text(out, "],\"queueDatas\":[");
  for (size_t i = 0; i < route->n_queues; i++) {
    if (i) rmq_buf_u8(out, ',');
    put_queue(out, &route->queues[i]);
  }
  rmq_buf_text(out, "]");
  put_text(out, "orderTopicConf", route->order_topic_conf);
  rmq_buf_text(out, "}");
}

static void check_order(const rmq_route_data *route) {
  for (size_t i = 0; i < route->n_queues; i++) {
    fuzz_require(route->queues[i].write_queue_nums >= 0 &&
                     route->queues[i].write_queue_nums <= RMQ_ROUTE_QUEUES_MAX,
                 "the number of queues is bounded");
  }
  for (size_t i = 0; i < route->n_brokers; i++) {
    const rmq_broker_data *broker = &route->brokers[i];
    for (size_t j = 0; j < broker->n_addrs; j++) {
      fuzz_require(j == 0 || broker->addrs[j - 1].id < broker->addrs[j].id,
                   "the ids ascend and none comes twice");
      rmq_slice found = rmq_broker_data_addr(broker, broker->addrs[j].id);
      fuzz_require(rmq_slice_equal(found, broker->addrs[j].addr), "an address is found by its id");
    }
    const rmq_broker_data *found = rmq_route_data_broker(route, broker->broker_name);
    fuzz_require(found && rmq_slice_equal(found->broker_name, broker->broker_name),
                 "a broker is found by its name");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rmq_buf out;
  rmq_route_data route, again;
  char why[100] = "";
  if (rmq_route_data_decode(rmq_slice_make(data, size), &route, why, sizeof why) != 0) {
    fuzz_require(why[0] != '\0', "an error has a reason");
    fuzz_require(route.memory == NULL, "an error leaves nothing behind");
    return 0;
  }
  check_order(&route);
  rmq_buf_clear(&out);
  put_route(&out, &route);
  fuzz_require(rmq_route_data_decode(rmq_buf_slice(&out), &again, why, sizeof why) == 0,
               "what was written is a route again");
  fuzz_require(rmq_route_data_equal(&route, &again), "and the same one");
  rmq_route_data_free(&route);
  rmq_route_data_free(&again);
  return 0;
}

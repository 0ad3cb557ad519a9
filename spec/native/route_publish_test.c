/* From a route to the queues to write to (TopicPublishInfo). */
#include <stdlib.h>

#include "check.h"
#include "route/publish.h"
#include "wire/route.h"

static rmq_publish *make(const char *json, int64_t default_queue_nums) {
  rmq_route_data route;
  char why[128];
  CHECK_INT(rmq_route_data_decode(rmq_slice_text(json), &route, why, sizeof why), 0);
  rmq_publish *publish = rmq_publish_new(&route, 7, default_queue_nums);
  rmq_route_data_free(&route); /* what is made has its own texts */
  return publish;
}

/* "a:0 a:1 b:0" */
static void check_queues(const rmq_publish *publish, const char *expected) {
  char text[1024] = "";
  size_t len = 0;
  for (size_t i = 0; i < publish->n_queues; i++) {
    const rmq_publish_queue *queue = &publish->queues[i];
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s:%d", i ? " " : "",
                            publish->brokers[queue->broker].name, queue->id);
  }
  if (strcmp(text, expected) != 0) printf("queues are \"%s\", not \"%s\"\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
}

#define BROKER(name, addrs) \
  "{\"cluster\":\"c\",\"brokerName\":\"" name "\",\"brokerAddrs\":" addrs "}"
#define QUEUE(name, read, write, perm)                                                  \
  "{\"brokerName\":\"" name "\",\"readQueueNums\":" #read ",\"writeQueueNums\":" #write \
  ",\"perm\":" #perm ",\"topicSysFlag\":0}"

static void sorts_by_broker_then_id(void) {
  rmq_publish *publish = make(
      "{\"queueDatas\":[" QUEUE("b", 2, 2, 6) "," QUEUE("a", 3, 2, 6) "],\"brokerDatas\":[" BROKER(
          "b", "{\"0\":\"10.0.0.2:10911\"}") "," BROKER("a", "{0:\"10.0.0.1:10911\"}") "]}",
      0);
  check_queues(publish, "a:0 a:1 b:0 b:1");
  CHECK_INT(publish->version, 7);
  CHECK(!publish->ordered && !publish->from_default_topic);
  CHECK(strcmp(publish->brokers[1].master, "10.0.0.2:10911") == 0);
  CHECK(!publish->sorted);
  CHECK_INT(rmq_publish_place(publish, 1, 0), 2);
  CHECK_INT(rmq_publish_place(publish, 1, 2), -1);
  CHECK_INT(rmq_publish_place(publish, 2, 0), -1);
  rmq_publish_unref(publish);
}

static void leaves_out_what_cannot_be_written(void) {
  rmq_publish *publish = make(
      "{\"queueDatas\":[" QUEUE("a", 4, 4, 4) "," QUEUE("b", 1, 1, 6) "," QUEUE("c", 1, 1, 6) ","
      QUEUE("d", 1, 1, 2) "," QUEUE("e", 1, 0, 6) "],\"brokerDatas\":["
      BROKER("a", "{\"0\":\"h:1\"}") "," BROKER("b", "{\"1\":\"h:2\"}") ","
      BROKER("d", "{\"0\":\"h:4\",\"1\":\"h:5\"}") "," BROKER("e", "{\"0\":\"h:6\"}") "]}",
      0);
  check_queues(publish,
               "d:0"); /* a is read-only, b has a slave only, c is unknown, e has no queues */
  CHECK_INT(publish->n_read_only, 1);
  CHECK_INT(publish->n_no_master, 2);
  CHECK_INT(publish->n_brokers, 1);
  rmq_publish_unref(publish);
}

static void order_conf_rules(void) {
  rmq_publish *publish = make(
      "{\"orderTopicConf\":\"b:2;a:1;;x:3;a;b:zz;c:1\",\"queueDatas\":[" QUEUE("a", 8, 8, 4)
      "],\"brokerDatas\":[" BROKER("a", "{\"0\":\"h:1\"}") "," BROKER("b", "{\"0\":\"h:2\"}") ","
      BROKER("c", "{\"1\":\"h:3\"}") "]}",
      0);
  CHECK(publish->ordered);
  check_queues(publish, "b:0 b:1 a:0"); /* perm does not count; its own order does */
  CHECK_INT(publish->n_no_master, 2);   /* x is unknown, c has no master */
  CHECK(strcmp(publish->brokers[0].name, "a") == 0);
  /* Selectors count in the order of brokers and ids all the same. */
  CHECK_INT(rmq_publish_sorted(publish, 0)->broker, 0);
  CHECK_INT(rmq_publish_sorted(publish, 2)->id, 1);
  CHECK_INT(rmq_publish_place(publish, 1, 1), 2);
  rmq_publish_unref(publish);
}

static void a_broker_named_twice_is_in_order(void) {
  rmq_publish *publish =
      make("{\"orderTopicConf\":\"a:2;b:1;a:3\",\"queueDatas\":[],\"brokerDatas\":[" BROKER(
               "a", "{\"0\":\"h:1\"}") "," BROKER("b", "{\"0\":\"h:2\"}") "]}",
           0);
  check_queues(publish, "a:0 a:1 b:0 a:0 a:1 a:2");
  static const int32_t ids[] = {0, 0, 1, 1, 2, 0};
  for (size_t i = 0; i < 6; i++) CHECK_INT(rmq_publish_sorted(publish, i)->id, ids[i]);
  CHECK_INT(rmq_publish_place(publish, 0, 2), 4);
  rmq_publish_unref(publish);
}

static void default_topic_cuts_counts(void) {
  const char *json = "{\"queueDatas\":[" QUEUE("a", 8, 16, 7) "," QUEUE(
      "b", 2, 16,
      7) "],\"brokerDatas\":[" BROKER("a", "{\"0\":\"h:1\"}") "," BROKER("b",
                                                                         "{\"0\":\"h:2\"}") "]}";
  rmq_publish *publish = make(json, 4);
  check_queues(publish, "a:0 a:1 a:2 a:3 b:0 b:1");
  CHECK(publish->from_default_topic);
  rmq_publish_unref(publish);
}

static void hostile_counts_are_bounded(void) {
  rmq_publish *publish =
      make("{\"queueDatas\":[" QUEUE("a", 1, 65536, 6) "," QUEUE("b", 1, 65536, 6) "," QUEUE("c", 1, 5, 6)
           "],\"brokerDatas\":[" BROKER("a", "{\"0\":\"h:1\"}") "," BROKER("b", "{\"0\":\"h:2\"}")
           "," BROKER("c", "{\"0\":\"h:3\"}") "]}",
           0);
  CHECK_INT(publish->n_queues, RMQ_ROUTE_QUEUES_MAX);
  CHECK_INT(publish->n_brokers, 1);
  rmq_publish_unref(publish);
  publish = make(
      "{\"orderTopicConf\":\"a:999999999;a:99999999999999999999;a:-1\",\"queueDatas\":[],"
      "\"brokerDatas\":[" BROKER("a", "{\"0\":\"h:1\"}") "]}",
      0);
  CHECK_INT(publish->n_queues, RMQ_ROUTE_QUEUES_MAX);
  rmq_publish_unref(publish);
}

static void empty_route(void) {
  rmq_publish *publish = make("{\"queueDatas\":[],\"brokerDatas\":[]}", 0);
  CHECK_INT(publish->n_queues, 0);
  CHECK_INT(rmq_publish_broker_find(publish, rmq_slice_text("a")), -1);
  rmq_publish_unref(rmq_publish_ref(publish));
  rmq_publish_unref(publish);
}

static void finds_brokers_by_name(void) {
  rmq_publish *publish =
      make("{\"queueDatas\":[" QUEUE("broker", 1, 1, 6) "," QUEUE("broker-a", 1, 1, 6) ","
           QUEUE("c", 1, 1, 6) "],\"brokerDatas\":[" BROKER("broker-a", "{\"0\":\"h:1\"}") ","
           BROKER("broker", "{\"0\":\"h:2\"}") "," BROKER("c", "{\"0\":\"h:3\"}") "]}",
           0);
  for (int32_t i = 0; i < 3; i++) {
    CHECK_INT(rmq_publish_broker_find(publish, rmq_slice_text(publish->brokers[i].name)), i);
  }
  CHECK_INT(rmq_publish_broker_find(publish, rmq_slice_text("broke")), -1);
  CHECK_INT(rmq_publish_broker_find(publish, rmq_slice_text("d")), -1);
  CHECK_INT(rmq_publish_broker_find(publish, rmq_slice_text("")), -1);
  rmq_publish_unref(publish);
}

int main(void) {
  check_run("sorts by broker, then id", sorts_by_broker_then_id);
  check_run("leaves out what cannot be written", leaves_out_what_cannot_be_written);
  check_run("order conf", order_conf_rules);
  check_run("a broker named twice", a_broker_named_twice_is_in_order);
  check_run("the default topic's counts are cut", default_topic_cuts_counts);
  check_run("hostile counts are bounded", hostile_counts_are_bounded);
  check_run("an empty route", empty_route);
  check_run("brokers by name", finds_brokers_by_name);
  return check_end();
}

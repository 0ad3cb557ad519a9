#include "select_world.h"

#include <stdio.h>
#include <stdlib.h>

rmq_publish *world_publish(const char *text, const char *order) {
  char queues[4096] = "", brokers[4096] = "", json[9000];
  size_t n_queues = 0, n_brokers = 0;
  for (const char *at = text; *at != '\0';) {
    char name = *at++;
    char *end;
    long write = strtol(at, &end, 10);
    int perm = *end == '-' ? 4 : 6;
    at = end + (*end == '-');
    while (*at == ' ') at++;
    const char *comma = n_queues ? "," : "";
    n_queues += (size_t)snprintf(
        queues + n_queues, sizeof queues - n_queues,
        "%s{\"brokerName\":\"%c\",\"readQueueNums\":%ld,\"writeQueueNums\":%ld,\"perm\":%d,"
        "\"topicSysFlag\":0}",
        comma, name, write, write, perm);
    n_brokers += (size_t)snprintf(
        brokers + n_brokers, sizeof brokers - n_brokers,
        "%s{\"cluster\":\"x\",\"brokerName\":\"%c\",\"brokerAddrs\":{\"0\":\"%c:1\"}}", comma, name,
        name);
  }
  const char *quote = order ? "\"" : "";
  snprintf(json, sizeof json,
           "{\"orderTopicConf\":%s%s%s,\"queueDatas\":[%s],\"brokerDatas\":[%s]}", quote,
           order ? order : "null", quote, queues, brokers);
  rmq_route_data route;
  char why[128];
  if (rmq_route_data_decode(rmq_slice_text(json), &route, why, sizeof why) < 0) {
    printf("%s: %s\n", json, why);
    abort();
  }
  rmq_publish *publish = rmq_publish_new(&route, 1, 0);
  rmq_route_data_free(&route);
  return publish;
}

rmq_faults *world_faults(rmq_strategy strategy) {
  rmq_fault_rules rules;
  rmq_fault_rules_init(&rules, strategy);
  return rmq_faults_new(&rules, 1);
}

rmq_mono world_at(int64_t ms, int64_t us) { return (rmq_mono){1000000000 + ms * 1000 + us}; }

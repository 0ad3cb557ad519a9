/* A name server: answers the route of a topic as far as it knows it. */
#include "base/memory.h"
#include "sim/cluster.h"
#include "wire/codes.h"

static void write_order_conf(rmq_buf *out, const sim_cluster *cluster, const sim_topic *topic) {
  rmq_buf_text(out, "\"orderTopicConf\":\"");
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (topic->parts[i].queues == 0) continue;
    rmq_buf_printf(out, "%s:%d;", cluster->brokers[i].name, (int)topic->parts[i].queues);
  }
  rmq_buf_text(out, "\",");
}

static void write_brokers(rmq_buf *out, const sim_namesrv *namesrv, const sim_topic *topic) {
  const sim_cluster *cluster = namesrv->cluster;
  const char *quote = namesrv->bare_keys ? "" : "\"";
  const char *between = "";
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (topic->parts[i].queues == 0) continue;
    rmq_buf_printf(out, "%s{\"brokerAddrs\":{", between);
    const char *master = namesrv->view.masters[i];
    if (master[0]) rmq_buf_printf(out, "%s0%s:\"%s\",", quote, quote, master);
    rmq_buf_printf(out, "%s1%s:\"10.0.0.%d:10915\"},\"brokerName\":\"%s\",\"cluster\":\"sim\"}",
                   quote, quote, 100 + i, cluster->brokers[i].name);
    between = ",";
  }
}

static void write_queues(rmq_buf *out, const sim_cluster *cluster, const sim_topic *topic) {
  const char *between = "";
  for (int i = 0; i < cluster->n_brokers; i++) {
    const sim_part *part = &topic->parts[i];
    if (part->queues == 0) continue;
    rmq_buf_printf(out,
                   "%s{\"brokerName\":\"%s\",\"perm\":%d,\"readQueueNums\":%d,\"topicSysFlag\":0,"
                   "\"writeQueueNums\":%d}",
                   between, cluster->brokers[i].name, (int)part->perm, (int)part->queues,
                   (int)part->queues);
    between = ",";
  }
}

static void write_route(rmq_buf *out, const sim_namesrv *namesrv, const sim_topic *topic) {
  rmq_buf_text(out, "{");
  if (topic->ordered) write_order_conf(out, namesrv->cluster, topic);
  rmq_buf_text(out, "\"brokerDatas\":[");
  write_brokers(out, namesrv, topic);
  rmq_buf_text(out, "],\"filterServerTable\":{},\"queueDatas\":[");
  write_queues(out, namesrv->cluster, topic);
  rmq_buf_text(out, "]}");
}

static void answer(sim_namesrv *namesrv, sim_connection *connection, int32_t opaque, int32_t code,
                   rmq_slice remark, rmq_slice body) {
  rmq_buf out = {0};
  rmq_frame_writer writer;
  rmq_command command = {
      .code = code, .opaque = opaque, .flag = RMQ_FLAG_RESPONSE, .version = RMQ_VERSION};
  command.remark = remark;
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
  rmq_frame_end(&writer, body);
  int64_t after_us = sim_random_between(&namesrv->cluster->world->random, 0, namesrv->service_us);
  sim_answer_later(namesrv->cluster->world, connection, &out, after_us, false);
}

static void answer_route(sim_namesrv *namesrv, sim_connection *connection,
                         const rmq_header *header) {
  sim_world *world = namesrv->cluster->world;
  int topic = sim_topic_find(&namesrv->view, rmq_header_field(header, "topic"));
  bool exists = topic >= 0 && namesrv->view.topics[topic].exists;
  sim_note(world, exists ? "route" : "no route", namesrv->index, topic);
  if (sim_random_chance(&world->random, namesrv->refuses_ppm)) {
    answer(namesrv, connection, header->opaque, RMQ_SYSTEM_ERROR, rmq_slice_text("not ready"),
           rmq_slice_text(""));
  } else if (sim_random_chance(&world->random, namesrv->garbage_ppm)) {
    answer(namesrv, connection, header->opaque, RMQ_SUCCESS, rmq_slice_text(""),
           rmq_slice_text("{\"brokerDatas\":[{\"brokerAddrs\":{0:"));
  } else if (!exists) {
    answer(namesrv, connection, header->opaque, RMQ_TOPIC_NOT_EXIST,
           rmq_slice_text("No topic route info"), rmq_slice_text(""));
  } else {
    rmq_buf body = {0};
    write_route(&body, namesrv, &namesrv->view.topics[topic]);
    answer(namesrv, connection, header->opaque, RMQ_SUCCESS, rmq_slice_text(""),
           rmq_buf_slice(&body));
    rmq_buf_free(&body);
  }
}

static bool on_frame(void *owner, sim_connection *connection, const rmq_header *header,
                     rmq_slice body) {
  sim_namesrv *namesrv = owner;
  (void)body;
  if (header->code != RMQ_GET_ROUTEINFO_BY_TOPIC) {
    sim_break(namesrv->cluster->world, "a name server was sent request code %d", (int)header->code);
    return false;
  }
  if (!namesrv->hangs) answer_route(namesrv, connection, header);
  return true;
}

void sim_namesrv_received(void *owner, sim_connection *connection) {
  sim_namesrv *namesrv = owner;
  sim_take_frames(namesrv->cluster, connection, on_frame, namesrv);
}

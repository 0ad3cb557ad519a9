#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/codes.h"

enum { FIRST_BROKER_IP = 11, BROKER_PORT = 10911, FIRST_NAMESRV_IP = 1, NAMESRV_PORT = 9876 };

/* ---- Making it ---- */

static sim_topic *add_topic(sim_cluster *cluster, const char *name, bool exists) {
  sim_topic *topic = &cluster->truth.topics[cluster->truth.n_topics++];
  snprintf(topic->name, sizeof topic->name, "%s", name);
  topic->exists = exists;
  for (int i = 0; i < cluster->n_brokers; i++) {
    topic->parts[i].queues =
        exists ? (int32_t)sim_random_between(&cluster->world->random, 1, 8) : 0;
    topic->parts[i].perm = RMQ_PERM_READ | RMQ_PERM_WRITE;
  }
  return topic;
}

/* One topic of each kind that a producer meets. Topic 0 is the plain one: on every broker,
 * writable. */
static void make_topics(sim_cluster *cluster) {
  sim_random *random = &cluster->world->random;
  int chosen = (int)sim_random_between(random, 0, cluster->n_brokers - 1);
  add_topic(cluster, "Plain", true);
  sim_topic *single = add_topic(cluster, "OneBroker", true);
  sim_topic *partly = add_topic(cluster, "PartlyReadOnly", true);
  sim_topic *read_only = add_topic(cluster, "ReadOnly", true);
  add_topic(cluster, "Ordered", true)->ordered = true;
  add_topic(cluster, "Unknown", false);
  add_topic(cluster, "TBW102", sim_random_chance(random, 700000));
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (i != chosen) single->parts[i].queues = 0;
    if (i == chosen) partly->parts[i].perm = RMQ_PERM_READ;
    read_only->parts[i].perm = RMQ_PERM_READ;
  }
}

/* On every broker; nothing of it is left to chance, so that lives without it are what they would be
 * without the topic. */
static void make_system_topic(sim_view *view, int n_brokers, int index, const char *name) {
  sim_topic *topic = &view->topics[index];
  snprintf(topic->name, sizeof topic->name, "%s", name);
  topic->exists = true;
  for (int i = 0; i < n_brokers; i++) {
    topic->parts[i] = (sim_part){.queues = 1, .perm = RMQ_PERM_READ | RMQ_PERM_WRITE};
  }
}

void sim_cluster_add_reply_topic(sim_cluster *cluster) {
  static const char name[] = "sim_REPLY_TOPIC";
  make_system_topic(&cluster->truth, cluster->n_brokers, SIM_REPLY_TOPIC, name);
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    make_system_topic(&cluster->namesrvs[i].view, cluster->n_brokers, SIM_REPLY_TOPIC, name);
  }
}

static void place(sim_cluster *cluster, sim_host *host, int last_byte, uint16_t port) {
  bool ipv6 = cluster->addressing == SIM_BY_IPV6;
  sim_host_add(cluster->world->network, host, ipv6, (uint8_t)last_byte, port);
  host->path = (sim_path){.latency_us = 50, .jitter_us = 200, .window = 256 * 1024};
  sim_host_name(cluster->world->network, host, false);
}

/* Writes how a host is called. Returns the length. */
static size_t write_addr(const sim_cluster *cluster, const sim_host *host, char *out, size_t size) {
  int port = host->address.port, last = sim_host_number(&host->address);
  switch (cluster->addressing) {
    case SIM_BY_IPV6:
      return (size_t)snprintf(out, size, "[fd00::%x]:%d", (unsigned)last, port);
    case SIM_BY_NAME:
      return (size_t)snprintf(out, size, "%s:%d", host->name, port);
    default:
      return (size_t)snprintf(out, size, "10.0.0.%d:%d", last, port);
  }
}

void sim_cluster_place_master(sim_cluster *cluster, int broker) {
  char addr[SIM_ADDR_TEXT];
  write_addr(cluster, &cluster->brokers[broker].host, addr, sizeof addr);
  memcpy(cluster->truth.masters[broker], addr, sizeof addr);
}

static void make_broker(sim_cluster *cluster, int index) {
  sim_broker *broker = &cluster->brokers[index];
  broker->cluster = cluster;
  broker->index = index;
  broker->json = sim_random_chance(&cluster->world->random, 800000);
  broker->service_us = 500;
  broker->host.received = sim_broker_received;
  broker->host.owner = broker;
  snprintf(broker->name, sizeof broker->name, "broker-%c", 'a' + index);
  snprintf(broker->host.name, sizeof broker->host.name, "broker-%c.sim", 'a' + index);
  place(cluster, &broker->host, FIRST_BROKER_IP + index, BROKER_PORT);
  sim_cluster_place_master(cluster, index);
}

static void make_namesrv(sim_cluster *cluster, int index) {
  sim_namesrv *namesrv = &cluster->namesrvs[index];
  namesrv->cluster = cluster;
  namesrv->index = index;
  namesrv->bare_keys = sim_random_chance(&cluster->world->random, 300000);
  namesrv->service_us = 500;
  namesrv->host.received = sim_namesrv_received;
  namesrv->host.owner = namesrv;
  snprintf(namesrv->host.name, sizeof namesrv->host.name, "namesrv-%d.sim", index);
  place(cluster, &namesrv->host, FIRST_NAMESRV_IP + index, NAMESRV_PORT);
}

static void count_least(sim_cluster *cluster, const sim_view *view) {
  for (int i = 0; i < SIM_TOPICS_MAX; i++) {
    int n = sim_view_brokers(view, cluster->n_brokers, i);
    if (n < cluster->least_brokers[i]) cluster->least_brokers[i] = n;
  }
}

sim_cluster *sim_cluster_new(sim_world *world, sim_ledger *ledger) {
  sim_cluster *cluster = rmq_alloc_zero(1, sizeof *cluster);
  sim_random *random = &world->random;
  cluster->world = world;
  cluster->ledger = ledger;
  int64_t style = sim_random_between(random, 0, 5);
  cluster->addressing = style == 0 ? SIM_BY_IPV6 : style == 1 ? SIM_BY_NAME : SIM_BY_IPV4;
  cluster->lag_us = 1000;
  cluster->n_brokers = (int)sim_random_between(random, 1, SIM_BROKERS_MAX);
  cluster->n_namesrvs = (int)sim_random_between(random, 1, SIM_NAMESRVS_MAX);
  for (int i = 0; i < cluster->n_brokers; i++) make_broker(cluster, i);
  make_topics(cluster);
  make_system_topic(&cluster->truth, cluster->n_brokers, SIM_TRACE_TOPIC, "RMQ_SYS_TRACE_TOPIC");
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    make_namesrv(cluster, i);
    cluster->namesrvs[i].view = cluster->truth;
  }
  for (int i = 0; i < SIM_TOPICS_MAX; i++) cluster->least_brokers[i] = SIM_BROKERS_MAX;
  count_least(cluster, &cluster->truth);
  return cluster;
}

void sim_cluster_free(sim_cluster *cluster) {
  rmq_buf_free(&cluster->scratch);
  free(cluster);
}

void sim_cluster_namesrv_list(const sim_cluster *cluster, char *out, size_t size) {
  size_t len = 0;
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    if (i > 0) out[len++] = ';';
    len += write_addr(cluster, &cluster->namesrvs[i].host, out + len, size - len);
  }
}

/* ---- What is known ---- */

int sim_topic_find(const sim_view *view, rmq_slice name) {
  for (int i = 0; i < SIM_TOPICS_MAX; i++) {
    if (rmq_slice_is(name, view->topics[i].name)) return i;
  }
  return -1;
}

int sim_view_brokers(const sim_view *view, int n_brokers, int topic) {
  int n = 0;
  for (int i = 0; i < n_brokers; i++) {
    const sim_part *part = &view->topics[topic].parts[i];
    n += part->queues > 0 && (part->perm & RMQ_PERM_WRITE) && view->masters[i][0] != '\0';
  }
  return n;
}

static void learn(void *arg, uint64_t data) {
  (void)data;
  sim_namesrv *namesrv = arg;
  sim_cluster *cluster = namesrv->cluster;
  namesrv->view = cluster->truth;
  count_least(cluster, &namesrv->view);
  /* The core closes connections to brokers that left the route, and those are no failures. */
  for (int i = 0; i < cluster->n_brokers; i++) cluster->brokers[i].host.fruitless = 0;
  sim_note(cluster->world, "namesrv learns", namesrv->index, 0);
}

void sim_cluster_changed(sim_cluster *cluster) {
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    int64_t lag_us = sim_random_between(&cluster->world->random, 1, cluster->lag_us);
    sim_plan(cluster->world, lag_us, learn, &cluster->namesrvs[i], 0);
  }
}

/* ---- Frames in and out ---- */

void sim_take_frames(sim_cluster *cluster, sim_connection *connection, sim_frame_handler *handle,
                     void *owner) {
  rmq_frame frame;
  rmq_header header;
  while (connection->host_open && rmq_buf_len(&connection->got) > 0) {
    const char *why = "";
    int status = rmq_frame_split(rmq_buf_slice(&connection->got), &frame, &why);
    if (status == 0) return;
    if (status > 0)
      status = rmq_header_decode(frame.serialize, frame.header, &cluster->scratch, &header);
    if (status < 0) {
      sim_break(cluster->world, "the core sent bytes that are no frame on socket %u: %s (%s)",
                connection->id, rmq_error_name(status), why);
      return;
    }
    connection->frames++;
    bool goes_on = handle(owner, connection, &header, frame.body);
    rmq_buf_consume(&connection->got, frame.size);
    if (!goes_on) return;
  }
}

typedef struct answer {
  sim_connection *connection;
  rmq_buf bytes;
  bool then_close;
} answer;

static void fire_answer(void *arg, uint64_t data) {
  (void)data;
  answer *later = arg;
  sim_host_write(later->connection, rmq_buf_slice(&later->bytes));
  if (later->then_close) sim_host_close(later->connection, false);
  rmq_buf_free(&later->bytes);
  free(later);
}

void sim_answer_later(sim_world *world, sim_connection *connection, rmq_buf *bytes,
                      int64_t after_us, bool then_close) {
  answer *later = rmq_alloc_zero(1, sizeof *later);
  later->connection = connection;
  later->bytes = *bytes;
  later->then_close = then_close;
  memset(bytes, 0, sizeof *bytes);
  sim_plan(world, after_us, fire_answer, later, 0);
}

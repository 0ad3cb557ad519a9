#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/admin_core.h"
#include "producer/message.h"
#include "producer/names.h"
#include "wire/codes.h"
#include "wire/number.h"

/* Making a topic: the masters out of the routes of some topics that all of them have, a request to
 * each, and then a look at the new topic's route until it is as it should be. */

/* Between two looks at the route; doubled each time up to the longest. */
enum { LOOK_FIRST_MS = 10, LOOK_LONGEST_MS = 320 };

enum { PLACE_MAX = 255 }; /* the longest name of a broker or a cluster */

typedef struct creation {
  rmq_admin admin;
  char *topic;
  int32_t read_queues, write_queues, perm, sys_flag;
  bool order, wait;
  rmq_buf attributes; /* as RocketMQ spells them: +name=value,+name=value */
  char **keys;        /* topics whose routes name the brokers */
  size_t n_keys, next_key;
  bool by_cluster; /* the key is a cluster's name */
  bool by_broker;  /* the keys are brokers' names, and each one's route is for that broker only */
  rmq_admin_targets targets;
  int64_t look_ms;
  rmq_created_done *done;
  void *arg;
} creation;

static creation *creation_of(rmq_admin *admin) { return (creation *)(void *)admin; }

static void tell(rmq_admin *admin, const rmq_failure *failure) {
  const creation *c = creation_of(admin);
  c->done(c->arg, failure);
}

static void release(rmq_admin *admin) {
  creation *c = creation_of(admin);
  for (size_t i = 0; i < c->n_keys; i++) free(c->keys[i]);
  free(c->keys);
  rmq_admin_free_targets(&c->targets);
  rmq_buf_free(&c->attributes);
  free(c->topic);
  free(c);
}

static void fail(creation *c) {
  rmq_failure *failure = &c->admin.failure;
  free(failure->topic);
  failure->topic = rmq_copy_text(c->topic, strlen(c->topic));
  rmq_admin_end(&c->admin, failure);
}

/* ---- Until it shows in the route ---- */

static void look(creation *c);

static const rmq_queue_data *queues_on(const rmq_route_data *route, const char *broker) {
  for (size_t i = 0; i < route->n_queues; i++) {
    if (rmq_slice_is(route->queues[i].broker_name, broker)) return &route->queues[i];
  }
  return NULL;
}

/* The first broker on which the route does not show the topic as it was made, or NULL. A broker may take
 * permissions away, so these are not compared. */
static const char *missing_on(const creation *c, const rmq_route_data *route) {
  for (size_t i = 0; i < c->targets.n; i++) {
    const rmq_queue_data *queues = route ? queues_on(route, c->targets.list[i].broker) : NULL;
    if (!queues || queues->read_queue_nums != c->read_queues ||
        queues->write_queue_nums != c->write_queues) {
      return c->targets.list[i].broker;
    }
  }
  return NULL;
}

static void look_again(rmq_timer *timer) {
  look(creation_of(rmq_link_owner(timer, rmq_admin, timer)));
}

static void route_of_topic_came(rmq_admin *admin, const rmq_route_data *route,
                                rmq_route_result result, rmq_slice explanation) {
  creation *c = creation_of(admin);
  (void)result;
  (void)explanation;
  const char *missing = missing_on(c, route);
  if (!missing) {
    rmq_admin_end(admin, NULL);
    return;
  }
  rmq_transport *transport = admin->producer->transport;
  rmq_mono next = rmq_mono_add_ms(rmq_transport_now(transport), c->look_ms);
  if (!rmq_mono_before(next, admin->deadline)) {
    rmq_failure_set(
        &admin->failure, RMQ_KIND_TIMEOUT, 0,
        "topic \"%s\" was made on %zu broker%s, but the name server does not show it so on broker "
        "%.256s yet; give create_topic more time, or look whether that broker registers",
        c->topic, c->targets.n, c->targets.n == 1 ? "" : "s", missing);
    fail(c);
    return;
  }
  admin->timer.fire = look_again;
  rmq_transport_timer(transport, &admin->timer, next);
  c->look_ms = c->look_ms * 2 < LOOK_LONGEST_MS ? c->look_ms * 2 : LOOK_LONGEST_MS;
}

static void look(creation *c) {
  c->admin.route_came = route_of_topic_came;
  rmq_admin_ask_route(&c->admin, rmq_slice_text(c->topic));
}

/* ---- On the brokers ---- */

static void all_answered(creation *c) {
  if (c->admin.failure.n_tries > 0) {
    char what[256];
    size_t failed = (size_t)c->admin.failure.n_tries;
    snprintf(what, sizeof what, "topic \"%s\" was made on %zu of %zu brokers", c->topic,
             c->targets.n - failed, c->targets.n);
    rmq_admin_sum_up(&c->admin, what);
    fail(c);
  } else if (c->wait) {
    look(c);
  } else {
    rmq_admin_end(&c->admin, NULL);
  }
}

static void answered(void *arg, const rmq_call_end *end) {
  rmq_admin_target *target = arg;
  creation *c = creation_of(target->admin);
  rmq_admin_call_ended(target, end);
  if (c->admin.calls == 0) all_answered(c);
}

static void ask_brokers(creation *c) {
  rmq_producer *producer = c->admin.producer;
  char reads[RMQ_NUMBER_MAX], writes[RMQ_NUMBER_MAX], perm[RMQ_NUMBER_MAX], flag[RMQ_NUMBER_MAX];
  const rmq_field ext[] = {
      {rmq_slice_text("topic"), rmq_slice_text(c->topic)},
      {rmq_slice_text("defaultTopic"), producer->create_topic_key},
      {rmq_slice_text("readQueueNums"), {reads, rmq_number_write(reads, c->read_queues)}},
      {rmq_slice_text("writeQueueNums"), {writes, rmq_number_write(writes, c->write_queues)}},
      {rmq_slice_text("perm"), {perm, rmq_number_write(perm, c->perm)}},
      {rmq_slice_text("topicFilterType"), rmq_slice_text("SINGLE_TAG")},
      {rmq_slice_text("topicSysFlag"), {flag, rmq_number_write(flag, c->sys_flag)}},
      {rmq_slice_text("order"), rmq_slice_text(c->order ? "true" : "false")},
      {rmq_slice_text("attributes"), rmq_buf_slice(&c->attributes)}};
  size_t n_ext = sizeof ext / sizeof ext[0];
  if (rmq_buf_len(&c->attributes) == 0) n_ext--;
  for (size_t i = 0; i < c->targets.n; i++) {
    rmq_call_options options = {.code = RMQ_UPDATE_AND_CREATE_TOPIC, .ext = ext, .n_ext = n_ext};
    rmq_admin_call(&c->targets.list[i], &options, answered);
  }
  if (c->admin.calls == 0) all_answered(c);
}

/* ---- Which brokers ---- */

static void ask_key(creation *c) {
  rmq_admin_ask_route(&c->admin, rmq_slice_text(c->keys[c->next_key]));
}

/* True when there was one. */
static bool add_masters(creation *c, const rmq_route_data *route, const char *key) {
  bool any = false;
  for (size_t i = 0; i < route->n_brokers; i++) {
    const rmq_broker_data *broker = &route->brokers[i];
    if (c->by_broker && !rmq_slice_is(broker->broker_name, key)) continue;
    rmq_slice master = rmq_broker_data_addr(broker, RMQ_MASTER_ID);
    if (master.len == 0) continue;
    rmq_admin_add_target(&c->admin, &c->targets, broker->broker_name, master);
    any = true;
  }
  return any;
}

static void no_route(creation *c, const char *key, rmq_route_result result, rmq_slice explanation) {
  rmq_failure *failure = &c->admin.failure;
  bool unreached = result == RMQ_ROUTE_UNREACHED || result == RMQ_ROUTE_TIMEOUT;
  rmq_failure_set(failure, result == RMQ_ROUTE_TIMEOUT ? RMQ_KIND_TIMEOUT : RMQ_KIND_ROUTE,
                  unreached ? 10004 : 10005, "topic \"%s\" was not made: ", c->topic);
  if (unreached) {
    rmq_buf_bytes(&failure->message, explanation.ptr, explanation.len);
  } else if (c->by_broker) {
    rmq_buf_printf(&failure->message,
                   "no name server knows a broker \"%s\" with a master; look at its brokerName",
                   key);
  } else if (c->by_cluster) {
    rmq_buf_printf(
        &failure->message,
        "no name server knows a cluster \"%s\" with a master; look at its brokerClusterName", key);
  } else {
    rmq_buf_printf(&failure->message,
                   "no broker with a master has the topic \"%s\"; name the brokers, with cluster = "
                   "\"...\" or brokers = {...}",
                   key);
  }
  fail(c);
}

static void route_of_key_came(rmq_admin *admin, const rmq_route_data *route,
                              rmq_route_result result, rmq_slice explanation) {
  creation *c = creation_of(admin);
  const char *key = c->keys[c->next_key++];
  if (!route || !add_masters(c, route, key)) {
    no_route(c, key, result, explanation);
  } else if (c->next_key < c->n_keys) {
    ask_key(c);
  } else {
    ask_brokers(c);
  }
}

static void add_key(creation *c, rmq_slice key) {
  c->keys = rmq_realloc(c->keys, (c->n_keys + 1) * sizeof *c->keys);
  c->keys[c->n_keys++] = rmq_copy_text(key.ptr, key.len);
}

static void choose_keys(creation *c, const rmq_new_topic *topic) {
  c->by_cluster = topic->cluster.len > 0;
  if (c->by_cluster) {
    add_key(c, topic->cluster);
  } else if (topic->n_brokers == 0) {
    add_key(c, c->admin.producer->create_topic_key);
  }
  c->by_broker = c->n_keys == 0;
  for (size_t i = 0; c->by_broker && i < topic->n_brokers; i++) add_key(c, topic->brokers[i]);
}

/* ---- The start ---- */

static int refuse(rmq_producer *producer, const char *sentence) {
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0, "%s", sentence);
  return RMQ_EINVAL;
}

/* The names of brokers and clusters are whatever their configuration says: host names, mostly. */
static int check_place(rmq_producer *producer, const char *what, rmq_slice name) {
  bool legal = name.len > 0 && name.len <= PLACE_MAX;
  for (size_t i = 0; i < name.len && legal; i++) legal = (unsigned char)name.ptr[i] > ' ';
  if (legal) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                  "%s must be 1 to %d characters long, without blanks", what, PLACE_MAX);
  return RMQ_EINVAL;
}

static int check_counts(rmq_producer *producer, const rmq_new_topic *topic) {
  const int32_t counts[] = {topic->read_queues, topic->write_queues};
  for (size_t i = 0; i < 2; i++) {
    if (counts[i] >= 0 && counts[i] <= RMQ_ROUTE_QUEUES_MAX) continue;
    rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                    "%s is %d; it must be a whole number from 0 to %d",
                    i ? "write_queues" : "read_queues", counts[i], RMQ_ROUTE_QUEUES_MAX);
    return RMQ_EINVAL;
  }
  if (topic->perm >= 0 && (topic->perm & ~(RMQ_PERM_READ | RMQ_PERM_WRITE)) == 0) return 0;
  return refuse(producer, "perm must be 2 (write), 4 (read), 6 (both) or 0 (neither)");
}

/* Attributes travel as one text, +name=value,+name=value, without any escaping. */
static int check_attribute(rmq_producer *producer, const rmq_field *attribute) {
  const rmq_slice parts[] = {attribute->name, attribute->value};
  for (size_t i = 0; i < 2; i++) {
    for (size_t j = 0; j < parts[i].len; j++) {
      char c = parts[i].ptr[j];
      if (c > ' ' && c < 0x7f && c != ',' && c != '=' && c != '+') continue;
      return refuse(
          producer,
          "attributes must be of visible ASCII characters without \",\", \"=\" and \"+\"");
    }
    if (parts[i].len == 0) return refuse(producer, "attributes has an empty name or value");
  }
  return 0;
}

static int check(rmq_producer *producer, const rmq_new_topic *topic) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_topic_check(topic->topic, &producer->refusal);
  if (status == 0 && rmq_topic_is_system(topic->topic)) {
    rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                    "topic \"%.*s\" is one of RocketMQ's own, which brokers make themselves",
                    (int)topic->topic.len, topic->topic.ptr);
    status = RMQ_EINVAL;
  }
  if (status == 0 && topic->cluster.len > 0) {
    status = check_place(producer, "cluster", topic->cluster);
  }
  for (size_t i = 0; status == 0 && i < topic->n_brokers; i++) {
    status = check_place(producer, "a name in brokers", topic->brokers[i]);
  }
  if (status == 0) status = check_counts(producer, topic);
  for (size_t i = 0; status == 0 && i < topic->n_attributes; i++) {
    status = check_attribute(producer, &topic->attributes[i]);
  }
  return status;
}

static void write_attributes(rmq_buf *out, const rmq_new_topic *topic) {
  for (size_t i = 0; i < topic->n_attributes; i++) {
    const rmq_field *attribute = &topic->attributes[i];
    rmq_buf_text(out, i ? ",+" : "+");
    rmq_buf_bytes(out, attribute->name.ptr, attribute->name.len);
    rmq_buf_u8(out, '=');
    rmq_buf_bytes(out, attribute->value.ptr, attribute->value.len);
  }
}

int rmq_producer_create_topic(rmq_producer *producer, const rmq_new_topic *topic,
                              rmq_created_done *done, void *arg) {
  int status = check(producer, topic);
  if (status < 0) return status;
  creation *c = rmq_admin_new(producer, sizeof *c, topic->timeout_ms);
  c->admin.tell = tell;
  c->admin.release = release;
  c->admin.route_came = route_of_key_came;
  c->topic = rmq_copy_text(topic->topic.ptr, topic->topic.len);
  c->read_queues = topic->read_queues;
  c->write_queues = topic->write_queues;
  c->perm = topic->perm;
  c->order = topic->order;
  c->sys_flag = topic->sys_flag;
  c->wait = topic->wait;
  c->look_ms = LOOK_FIRST_MS;
  c->done = done;
  c->arg = arg;
  write_attributes(&c->attributes, topic);
  choose_keys(c, topic);
  ask_key(c);
  return 0;
}

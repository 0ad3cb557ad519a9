#include "wire/route.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/json.h"

/* Reads a route twice with the same code: the first time `fill` is false and only counts what memory it
 * takes, the second time everything goes into one block. */
typedef struct route_reader {
  rmq_json json;
  bool fill;
  rmq_route_data *out; /* the arrays have room for all that was counted */
  size_t n_queues;
  size_t n_brokers;
  size_t n_addrs;
  rmq_broker_addr *addrs;
  char *text; /* where the next text goes */
  size_t text_len;
  const char *where; /* the part of the route that is being read, for the error */
  const char *problem;
  int err;
} route_reader;

static int refuse(route_reader *reader, int err, const char *problem) {
  if (!reader->problem) reader->problem = problem;
  return reader->err = err;
}

/* A value is of a type that it must not be; when the JSON itself is broken, that is the reason. */
static int refuse_type(route_reader *reader, rmq_json_type type, const char *problem) {
  return refuse(reader, RMQ_EPROTO, type == RMQ_JSON_ERROR ? reader->json.problem : problem);
}

/* Copies the last text into the block, when there is one already. A NUL after it gives the empty text a
 * place of its own too. */
static rmq_slice keep_text(route_reader *reader) {
  rmq_slice text = reader->json.text;
  reader->text_len += text.len + 1;
  if (!reader->fill) return rmq_slice_make("", 0);
  if (text.len) memcpy(reader->text, text.ptr, text.len);
  text.ptr = reader->text;
  reader->text[text.len] = '\0';
  reader->text += text.len + 1;
  return text;
}

/* A string, or null for none. */
static int read_text(route_reader *reader, rmq_slice *out) {
  rmq_json_type type = rmq_json_next(&reader->json);
  if (type == RMQ_JSON_NULL) {
    *out = rmq_slice_make(NULL, 0);
    return 0;
  }
  if (type != RMQ_JSON_STRING) return refuse_type(reader, type, "a text is not a string");
  *out = keep_text(reader);
  return 0;
}

static int read_i32(route_reader *reader, int32_t *out) {
  int64_t value;
  rmq_json_type type = rmq_json_next(&reader->json);
  if (type != RMQ_JSON_NUMBER) return refuse_type(reader, type, "a number is missing");
  if (rmq_json_int(&reader->json, &value) != 0 || value < INT32_MIN || value > INT32_MAX) {
    return refuse(reader, RMQ_EPROTO, "a number is no 32-bit integer");
  }
  *out = (int32_t)value;
  return 0;
}

static int read_queue_count(route_reader *reader, int32_t *out) {
  int err = read_i32(reader, out);
  if (err) return err;
  if (*out < 0) return refuse(reader, RMQ_EPROTO, "a number of queues is negative");
  if (*out > RMQ_ROUTE_QUEUES_MAX) {
    return refuse(reader, RMQ_ELIMIT, "a broker has more queues than 65536");
  }
  return 0;
}

static int skip_value(route_reader *reader) {
  rmq_json_type type = rmq_json_next(&reader->json);
  if (rmq_json_skip(&reader->json, type) == 0) return 0;
  return refuse(reader, RMQ_EPROTO, reader->json.problem);
}

/* Calls `member` for each member of an object whose '{' has been read; json.text is the name then. */
static int read_members(route_reader *reader, int (*member)(route_reader *, void *), void *arg) {
  for (;;) {
    rmq_json_type type = rmq_json_next(&reader->json);
    if (type == RMQ_JSON_OBJECT_END) return 0;
    if (type != RMQ_JSON_KEY) return refuse_type(reader, type, "the name of a member is missing");
    int err = member(reader, arg);
    if (err) return err;
  }
}

/* Calls `object` for each object of an array; null counts as an empty array. */
static int read_objects(route_reader *reader, int (*object)(route_reader *)) {
  rmq_json_type type = rmq_json_next(&reader->json);
  if (type == RMQ_JSON_NULL) return 0;
  if (type != RMQ_JSON_ARRAY) return refuse_type(reader, type, "an array is missing");
  for (;;) {
    type = rmq_json_next(&reader->json);
    if (type == RMQ_JSON_ARRAY_END) return 0;
    if (type != RMQ_JSON_OBJECT) return refuse_type(reader, type, "an element is not an object");
    int err = object(reader);
    if (err) return err;
  }
}

static int queue_member(route_reader *reader, void *arg) {
  rmq_queue_data *queue = arg;
  rmq_slice key = reader->json.text;
  if (rmq_slice_is(key, "brokerName")) return read_text(reader, &queue->broker_name);
  if (rmq_slice_is(key, "readQueueNums")) return read_queue_count(reader, &queue->read_queue_nums);
  if (rmq_slice_is(key, "writeQueueNums")) {
    return read_queue_count(reader, &queue->write_queue_nums);
  }
  if (rmq_slice_is(key, "perm")) return read_i32(reader, &queue->perm);
  if (rmq_slice_is(key, "topicSysFlag")) return read_i32(reader, &queue->topic_sys_flag);
  return skip_value(reader);
}

static int read_queue(route_reader *reader) {
  rmq_queue_data queue = {{NULL, 0}, 0, 0, 0, 0};
  int err = read_members(reader, queue_member, &queue);
  if (err) return err;
  if (!queue.broker_name.ptr) return refuse(reader, RMQ_EPROTO, "brokerName is missing");
  if (reader->n_queues == RMQ_ROUTE_ITEMS_MAX) return refuse(reader, RMQ_ELIMIT, "too many queues");
  if (reader->fill) reader->out->queues[reader->n_queues] = queue;
  reader->n_queues++;
  return 0;
}

static int addr_member(route_reader *reader, void *arg) {
  rmq_broker_data *broker = arg;
  rmq_broker_addr addr = {0};
  if (rmq_json_int(&reader->json, &addr.id) != 0) {
    return refuse(reader, RMQ_EPROTO, "the id of an address is no integer");
  }
  int err = read_text(reader, &addr.addr);
  if (err || !addr.addr.ptr) return err;
  if (reader->n_addrs == RMQ_ROUTE_ITEMS_MAX) {
    return refuse(reader, RMQ_ELIMIT, "too many addresses");
  }
  if (reader->fill) broker->addrs[broker->n_addrs] = addr;
  broker->n_addrs++;
  reader->n_addrs++;
  return 0;
}

static int read_addrs(route_reader *reader, rmq_broker_data *broker) {
  rmq_json_type type = rmq_json_next(&reader->json);
  broker->addrs = reader->fill ? reader->addrs + reader->n_addrs : NULL;
  broker->n_addrs = 0;
  if (type == RMQ_JSON_NULL) return 0;
  if (type != RMQ_JSON_OBJECT) return refuse_type(reader, type, "brokerAddrs is not an object");
  return read_members(reader, addr_member, broker);
}

static int broker_member(route_reader *reader, void *arg) {
  rmq_broker_data *broker = arg;
  rmq_slice key = reader->json.text;
  if (rmq_slice_is(key, "cluster")) return read_text(reader, &broker->cluster);
  if (rmq_slice_is(key, "brokerName")) return read_text(reader, &broker->broker_name);
  if (rmq_slice_is(key, "brokerAddrs")) return read_addrs(reader, broker);
  return skip_value(reader);
}

static int read_broker(route_reader *reader) {
  rmq_broker_data broker = {{NULL, 0}, {NULL, 0}, NULL, 0};
  int err = read_members(reader, broker_member, &broker);
  if (err) return err;
  if (!broker.broker_name.ptr) return refuse(reader, RMQ_EPROTO, "brokerName is missing");
  if (reader->n_brokers == RMQ_ROUTE_ITEMS_MAX) {
    return refuse(reader, RMQ_ELIMIT, "too many brokers");
  }
  if (reader->fill) reader->out->brokers[reader->n_brokers] = broker;
  reader->n_brokers++;
  return 0;
}

/* The counts of the second reading are what the arrays hold, so a member that comes twice starts its
 * array again; the first reading keeps adding up, which gives room enough for both. */
static int route_member(route_reader *reader, void *arg) {
  rmq_route_data *route = arg;
  rmq_slice key = reader->json.text;
  reader->where = "the route";
  if (rmq_slice_is(key, "orderTopicConf")) {
    reader->where = "orderTopicConf";
    return read_text(reader, &route->order_topic_conf);
  }
  if (rmq_slice_is(key, "queueDatas")) {
    reader->where = "queueDatas";
    if (reader->fill) reader->n_queues = 0;
    return read_objects(reader, read_queue);
  }
  if (rmq_slice_is(key, "brokerDatas")) {
    reader->where = "brokerDatas";
    if (reader->fill) reader->n_brokers = 0;
    return read_objects(reader, read_broker);
  }
  return skip_value(reader);
}

static int read_route(route_reader *reader, rmq_slice input, rmq_buf *scratch) {
  rmq_buf_clear(scratch);
  rmq_json_init(&reader->json, input, scratch);
  reader->where = "the route";
  reader->n_queues = reader->n_brokers = reader->n_addrs = reader->text_len = 0;
  rmq_json_type type = rmq_json_next(&reader->json);
  if (type != RMQ_JSON_OBJECT) return refuse_type(reader, type, "it is not an object");
  int err = read_members(reader, route_member, reader->out);
  if (err) return err;
  reader->where = "the route";
  type = rmq_json_next(&reader->json);
  return type == RMQ_JSON_END ? 0 : refuse_type(reader, type, "something follows after the end");
}

static int compare_slices(rmq_slice a, rmq_slice b) {
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
  return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_ints(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Whole orders, so equal names do not leave the result to the sort. */
static int compare_queues(const void *left, const void *right) {
  const rmq_queue_data *a = left;
  const rmq_queue_data *b = right;
  int order = compare_slices(a->broker_name, b->broker_name);
  if (!order) order = compare_ints(a->write_queue_nums, b->write_queue_nums);
  if (!order) order = compare_ints(a->read_queue_nums, b->read_queue_nums);
  if (!order) order = compare_ints(a->perm, b->perm);
  return order ? order : compare_ints(a->topic_sys_flag, b->topic_sys_flag);
}

static int compare_addrs(const void *left, const void *right) {
  const rmq_broker_addr *a = left;
  const rmq_broker_addr *b = right;
  int order = compare_ints(a->id, b->id);
  return order ? order : compare_slices(a->addr, b->addr);
}

static int compare_brokers(const void *left, const void *right) {
  const rmq_broker_data *a = left;
  const rmq_broker_data *b = right;
  int order = compare_slices(a->broker_name, b->broker_name);
  if (!order) order = compare_slices(a->cluster, b->cluster);
  if (!order) order = compare_ints((int64_t)a->n_addrs, (int64_t)b->n_addrs);
  for (size_t i = 0; !order && i < a->n_addrs; i++) {
    order = compare_addrs(&a->addrs[i], &b->addrs[i]);
  }
  return order;
}

/* Of two addresses with one id the later counts, as for any duplicate member. Texts lie in the block in the
 * order of the input, so the later one is known by its place. */
static int compare_addrs_as_read(const void *left, const void *right) {
  const rmq_broker_addr *a = left;
  const rmq_broker_addr *b = right;
  int order = compare_ints(a->id, b->id);
  return order ? order : (a->addr.ptr > b->addr.ptr) - (a->addr.ptr < b->addr.ptr);
}

static void sort_addrs(rmq_broker_data *broker) {
  if (broker->n_addrs < 2) return;
  qsort(broker->addrs, broker->n_addrs, sizeof broker->addrs[0], compare_addrs_as_read);
  size_t kept = 0;
  for (size_t i = 0; i < broker->n_addrs; i++) {
    bool last = i + 1 == broker->n_addrs || broker->addrs[i].id != broker->addrs[i + 1].id;
    if (last) broker->addrs[kept++] = broker->addrs[i];
  }
  broker->n_addrs = kept;
}

static void sort_route(rmq_route_data *route) {
  for (size_t i = 0; i < route->n_brokers; i++) sort_addrs(&route->brokers[i]);
  if (route->n_queues > 1) {
    qsort(route->queues, route->n_queues, sizeof route->queues[0], compare_queues);
  }
  if (route->n_brokers > 1) {
    qsort(route->brokers, route->n_brokers, sizeof route->brokers[0], compare_brokers);
  }
}

/* One block: the arrays first, as they need alignment, then the texts. */
static void make_room(route_reader *reader) {
  rmq_route_data *out = reader->out;
  size_t queues = reader->n_queues * sizeof out->queues[0];
  size_t brokers = reader->n_brokers * sizeof out->brokers[0];
  size_t addrs = reader->n_addrs * sizeof reader->addrs[0];
  char *memory = rmq_alloc(queues + brokers + addrs + reader->text_len + 1); /* never 0 bytes */
  *out = (rmq_route_data){.memory = memory};
  out->queues = (rmq_queue_data *)(void *)memory;
  out->brokers = (rmq_broker_data *)(void *)(memory + queues);
  reader->addrs = (rmq_broker_addr *)(void *)(memory + queues + brokers);
  reader->text = memory + queues + brokers + addrs;
  reader->fill = true;
}

int rmq_route_data_decode(rmq_slice json, rmq_route_data *out, char *why, size_t why_size) {
  rmq_buf scratch = {0};
  route_reader reader = {.out = out};
  *out = (rmq_route_data){0};
  int err = read_route(&reader, json, &scratch);
  if (err) {
    snprintf(why, why_size, "%s: %s", reader.where, reader.problem);
    *out = (rmq_route_data){0};
  } else {
    make_room(&reader);
    /* The same bytes by the same code: what went well once goes well again. */
    read_route(&reader, json, &scratch);
    out->n_queues = reader.n_queues;
    out->n_brokers = reader.n_brokers;
    sort_route(out);
    why[0] = '\0';
  }
  rmq_buf_free(&scratch);
  return err;
}

void rmq_route_data_free(rmq_route_data *route) {
  free(route->memory);
  free(route->mapped);
  *route = (rmq_route_data){0};
}

static bool same_queues(const rmq_route_data *a, const rmq_route_data *b) {
  if (a->n_queues != b->n_queues) return false;
  for (size_t i = 0; i < a->n_queues; i++) {
    if (compare_queues(&a->queues[i], &b->queues[i]) != 0) return false;
  }
  return true;
}

static bool same_broker(const rmq_broker_data *a, const rmq_broker_data *b) {
  if (a->n_addrs != b->n_addrs || !rmq_slice_equal(a->broker_name, b->broker_name)) return false;
  for (size_t i = 0; i < a->n_addrs; i++) {
    if (compare_addrs(&a->addrs[i], &b->addrs[i]) != 0) return false;
  }
  return true;
}

bool rmq_route_data_equal(const rmq_route_data *a, const rmq_route_data *b) {
  if (a->n_brokers != b->n_brokers || !same_queues(a, b)) return false;
  for (size_t i = 0; i < a->n_brokers; i++) {
    if (!same_broker(&a->brokers[i], &b->brokers[i])) return false;
  }
  bool a_has_conf = a->order_topic_conf.ptr;
  bool b_has_conf = b->order_topic_conf.ptr;
  return a_has_conf == b_has_conf && rmq_slice_equal(a->order_topic_conf, b->order_topic_conf);
}

/* Of several with one name the first counts. */
const rmq_broker_data *rmq_route_data_broker(const rmq_route_data *route, rmq_slice broker_name) {
  size_t low = 0, high = route->n_brokers;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_slices(route->brokers[middle].broker_name, broker_name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == route->n_brokers) return NULL;
  const rmq_broker_data *broker = &route->brokers[low];
  return rmq_slice_equal(broker->broker_name, broker_name) ? broker : NULL;
}

static const rmq_broker_addr *find_addr(const rmq_broker_data *broker, int64_t id) {
  size_t low = 0, high = broker->n_addrs;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (broker->addrs[middle].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool found = low < broker->n_addrs && broker->addrs[low].id == id;
  return found ? &broker->addrs[low] : NULL;
}

rmq_slice rmq_broker_data_addr(const rmq_broker_data *broker, int64_t id) {
  const rmq_broker_addr *found = find_addr(broker, id);
  return found ? found->addr : rmq_slice_make(NULL, 0);
}

rmq_slice rmq_broker_data_advertised(const rmq_broker_data *broker, int64_t id) {
  const rmq_broker_addr *found = find_addr(broker, id);
  return found ? found->advertised : rmq_slice_make(NULL, 0);
}

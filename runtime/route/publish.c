#include "route/publish.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/codes.h"

/* Some queues of one broker, as the route gives them: ids 0 to count - 1. */
typedef struct run {
  size_t broker; /* index into the route's brokers */
  int32_t count;
} run;

/* What a route is worth, before the brokers that are used have got their numbers. */
typedef struct plan {
  run *runs;
  size_t n_runs;
  size_t n_queues;
} plan;

/* Adds a run. What would go over the limit for all queues together is left out: no real topic is
 * near it, and a route must not make us allocate without end. */
static void plan_add(plan *p, size_t broker, int64_t count) {
  int64_t left = (int64_t)(RMQ_ROUTE_QUEUES_MAX - p->n_queues);
  if (count > left) count = left;
  if (count <= 0) return;
  if ((p->n_runs & (p->n_runs + 1)) == 0) {
    p->runs = rmq_realloc(p->runs, (2 * p->n_runs + 1) * sizeof *p->runs);
  }
  p->runs[p->n_runs++] = (run){broker, (int32_t)count};
  p->n_queues += (size_t)count;
}

static bool has_master(const rmq_broker_data *broker) {
  return broker && rmq_broker_data_addr(broker, RMQ_MASTER_ID).len > 0;
}

/* The digits of `text` as a number, or -1 when it is none. */
static int64_t parse_count(rmq_slice text) {
  if (text.len == 0 || text.len > 9) return -1;
  int64_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] < '0' || text.ptr[i] > '9') return -1;
    value = value * 10 + (text.ptr[i] - '0');
  }
  return value;
}

/* One "broker:n" of orderTopicConf. Java does not look at the permission here, nor do we; it would
 * fail later for want of an address, we leave such a broker out. */
static void plan_order_part(plan *p, const rmq_route_data *route, rmq_slice part,
                            size_t *n_no_master) {
  const char *colon = memchr(part.ptr, ':', part.len);
  if (!colon) return;
  size_t name_len = (size_t)(colon - part.ptr);
  int64_t count = parse_count(rmq_slice_make(colon + 1, part.len - name_len - 1));
  if (count < 0) return;
  const rmq_broker_data *broker = rmq_route_data_broker(route, rmq_slice_make(part.ptr, name_len));
  if (has_master(broker)) {
    plan_add(p, (size_t)(broker - route->brokers), count);
  } else {
    (*n_no_master)++;
  }
}

static void plan_order(plan *p, const rmq_route_data *route, size_t *n_no_master) {
  rmq_slice rest = route->order_topic_conf;
  while (rest.len > 0) {
    const char *semicolon = memchr(rest.ptr, ';', rest.len);
    size_t len = semicolon ? (size_t)(semicolon - rest.ptr) : rest.len;
    if (len > 0) plan_order_part(p, route, rmq_slice_make(rest.ptr, len), n_no_master);
    size_t used = semicolon ? len + 1 : len;
    rest = rmq_slice_make(rest.ptr + used, rest.len - used);
  }
}

static int64_t write_queues(const rmq_queue_data *data, int64_t default_queue_nums) {
  if (default_queue_nums <= 0) return data->write_queue_nums;
  return default_queue_nums < data->read_queue_nums ? default_queue_nums : data->read_queue_nums;
}

static void plan_queue_datas(plan *p, const rmq_route_data *route, int64_t default_queue_nums,
                             rmq_publish *out) {
  for (size_t i = 0; i < route->n_queues; i++) {
    const rmq_queue_data *data = &route->queues[i];
    if (!(data->perm & RMQ_PERM_WRITE)) {
      out->n_read_only++;
      continue;
    }
    const rmq_broker_data *broker = rmq_route_data_broker(route, data->broker_name);
    if (!has_master(broker)) {
      out->n_no_master++;
      continue;
    }
    plan_add(p, (size_t)(broker - route->brokers), write_queues(data, default_queue_nums));
  }
}

/* Copies the brokers that have queues, in the route's order, which is that of their names.
 * number[i] becomes the place of the route's broker i in the copy. */
static void fill_brokers(rmq_publish *out, const rmq_route_data *route, const plan *p,
                         int32_t *number) {
  for (size_t i = 0; i < p->n_runs; i++) number[p->runs[i].broker] = 1;
  for (size_t i = 0; i < route->n_brokers; i++) out->n_brokers += number[i] != 0;
  out->brokers = rmq_alloc_zero(out->n_brokers ? out->n_brokers : 1, sizeof *out->brokers);
  int32_t next = 0;
  for (size_t i = 0; i < route->n_brokers; i++) {
    if (!number[i]) continue;
    const rmq_broker_data *broker = &route->brokers[i];
    rmq_slice master = rmq_broker_data_addr(broker, RMQ_MASTER_ID);
    out->brokers[next].name = rmq_copy_text(broker->broker_name.ptr, broker->broker_name.len);
    out->brokers[next].master = rmq_copy_text(master.ptr, master.len);
    number[i] = next++;
  }
}

static void fill_queues(rmq_publish *out, const plan *p, const int32_t *number) {
  out->queues = rmq_alloc_zero(p->n_queues ? p->n_queues : 1, sizeof *out->queues);
  for (size_t i = 0; i < p->n_runs; i++) {
    for (int32_t id = 0; id < p->runs[i].count; id++) {
      out->queues[out->n_queues++] = (rmq_publish_queue){number[p->runs[i].broker], id};
    }
  }
}

static int compare(const rmq_publish_queue *a, const rmq_publish_queue *b) {
  if (a->broker != b->broker) return a->broker < b->broker ? -1 : 1;
  return (a->id > b->id) - (a->id < b->id);
}

/* A queue with its index, to be sorted. */
typedef struct numbered {
  rmq_publish_queue queue;
  int32_t index;
} numbered;

static int compare_numbered(const void *a, const void *b) {
  const numbered *x = a, *y = b;
  int order = compare(&x->queue, &y->queue);
  return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* An order conf may have its own order, and a route may name a broker twice. */
static void sort_queues(rmq_publish *out) {
  size_t n = out->n_queues, at = 1;
  while (at < n && compare(&out->queues[at - 1], &out->queues[at]) <= 0) at++;
  if (at >= n) return;
  numbered *order = rmq_alloc(n * sizeof *order);
  for (size_t i = 0; i < n; i++) order[i] = (numbered){out->queues[i], (int32_t)i};
  qsort(order, n, sizeof *order, compare_numbered);
  out->sorted = rmq_alloc(n * sizeof *out->sorted);
  for (size_t i = 0; i < n; i++) out->sorted[i] = order[i].index;
  free(order);
}

rmq_publish *rmq_publish_new(const rmq_route_data *route, uint64_t version,
                             int64_t default_queue_nums) {
  rmq_publish *out = rmq_alloc_zero(1, sizeof *out);
  out->refs = 1;
  out->version = version;
  out->from_default_topic = default_queue_nums > 0;
  out->ordered = route->order_topic_conf.len > 0;
  plan p = {0};
  if (out->ordered) {
    plan_order(&p, route, &out->n_no_master);
  } else {
    plan_queue_datas(&p, route, default_queue_nums, out);
  }
  int32_t *number = rmq_alloc_zero(route->n_brokers ? route->n_brokers : 1, sizeof *number);
  fill_brokers(out, route, &p, number);
  fill_queues(out, &p, number);
  sort_queues(out);
  free(number);
  free(p.runs);
  return out;
}

rmq_publish *rmq_publish_ref(rmq_publish *publish) {
  publish->refs++;
  return publish;
}

void rmq_publish_unref(rmq_publish *publish) {
  if (!publish || --publish->refs > 0) return;
  for (size_t i = 0; i < publish->n_brokers; i++) {
    free(publish->brokers[i].name);
    free(publish->brokers[i].master);
  }
  free(publish->brokers);
  free(publish->queues);
  free(publish->sorted);
  free(publish);
}

int64_t rmq_publish_place(const rmq_publish *publish, int32_t broker, int32_t id) {
  rmq_publish_queue wanted = {broker, id};
  size_t low = 0, high = publish->n_queues;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare(rmq_publish_sorted(publish, middle), &wanted);
    if (order == 0) return (int64_t)middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

int32_t rmq_publish_broker_find(const rmq_publish *publish, rmq_slice name) {
  size_t low = 0, high = publish->n_brokers;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    rmq_slice at = rmq_slice_text(publish->brokers[middle].name);
    size_t shorter = at.len < name.len ? at.len : name.len;
    int order = shorter ? memcmp(at.ptr, name.ptr, shorter) : 0;
    if (order == 0 && at.len == name.len) return (int32_t)middle;
    if (order < 0 || (order == 0 && at.len < name.len)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

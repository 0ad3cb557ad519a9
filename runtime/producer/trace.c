#include "producer/trace.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "producer/core.h"
#include "wire/codes.h"
#include "wire/properties.h"

enum {
  BODY_MAX = 128000, /* a longer one is sent at once, as in Java */
  KEYS_MAX = 16384,  /* the keys of one trace message: a property string holds 32767 bytes */
  TIMEOUT_MS = 5000, /* of a trace message, as in Java */
  REST_MS = 3000,    /* a trace topic that is not there is asked for again after so long */
  WARN_MS = 60000,   /* losses are told at most so often */
  KEPT_GROUPS = 16,  /* so many stay for use again */
  KEPT_BYTES = BODY_MAX * 2
};

/* Records that go together: first gathered, then the message that carries them. */
typedef struct group {
  rmq_link link; /* in `gathered`, in `sending` or in `pool` */
  rmq_trace *trace;
  rmq_buf topic; /* that the records are about */
  rmq_buf body;
  rmq_buf keys; /* each once, with spaces between */
  size_t records;
  uint64_t number; /* counts the trace messages */
} group;

struct rmq_trace {
  rmq_producer *producer;
  rmq_slice topic;   /* points into the producer's settings */
  rmq_map *by_topic; /* the groups that are gathered */
  rmq_link gathered; /* the same, in the order of their first records */
  rmq_link sending;  /* trace messages under way, in the order of their starts */
  rmq_link pool;
  size_t pooled;
  size_t bytes; /* of all that is gathered and under way */
  uint64_t sends;
  rmq_timer timer;      /* sends what is gathered */
  rmq_mono rests_until; /* there was no trace topic: records are dropped until then */
  rmq_mono warn_next;   /* losses are not told before */
};

static group *group_of(rmq_link *link) { return rmq_link_owner(link, group, link); }

/* ---- Groups ---- */

static size_t size_of(const group *g) { return rmq_buf_len(&g->body) + rmq_buf_len(&g->keys); }

static void free_group(group *g) {
  rmq_link_remove(&g->link);
  rmq_buf_free(&g->topic);
  rmq_buf_free(&g->body);
  rmq_buf_free(&g->keys);
  free(g);
}

static group *take_group(rmq_trace *trace, rmq_slice topic) {
  group *g;
  if (rmq_link_alone(&trace->pool)) {
    g = rmq_alloc_zero(1, sizeof *g);
    g->trace = trace;
    rmq_link_init(&g->link);
  } else {
    g = group_of(trace->pool.next);
    rmq_link_remove(&g->link);
    trace->pooled--;
  }
  rmq_buf_bytes(&g->topic, topic.ptr, topic.len);
  rmq_map_set(trace->by_topic, topic, g);
  rmq_link_append(&trace->gathered, &g->link);
  return g;
}

static void give_back(group *g) {
  rmq_trace *trace = g->trace;
  trace->bytes -= size_of(g);
  rmq_link_remove(&g->link);
  rmq_buf_clear(&g->topic);
  rmq_buf_clear(&g->body);
  rmq_buf_clear(&g->keys);
  rmq_buf_trim(&g->body, KEPT_BYTES);
  g->records = 0;
  if (trace->pooled == KEPT_GROUPS) {
    free_group(g);
    return;
  }
  rmq_link_append(&trace->pool, &g->link);
  trace->pooled++;
}

/* ---- Sending ---- */

static void drop(group *g) {
  rmq_producer_stats *stats = &g->trace->producer->stats;
  stats->trace_pending -= g->records;
  stats->trace_dropped += g->records;
  give_back(g);
}

static void warn(rmq_trace *trace, const rmq_failure *failure) {
  rmq_producer *producer = trace->producer;
  rmq_mono now = rmq_transport_now(producer->transport);
  if (failure->kind == RMQ_KIND_ROUTE) trace->rests_until = rmq_mono_add_ms(now, REST_MS);
  if (failure->kind == RMQ_KIND_STATE || rmq_mono_before(now, trace->warn_next)) return;
  trace->warn_next = rmq_mono_add_ms(now, WARN_MS);
  rmq_slice why = rmq_buf_slice(&failure->message);
  rmq_log_line(&producer->log, RMQ_LOG_WARN,
               "message trace loses records (stats().trace_dropped counts them): %.*s",
               (int)why.len, why.len ? why.ptr : "");
}

static void sent(void *arg, const rmq_completion *completion) {
  group *g = arg;
  rmq_producer_stats *stats = &g->trace->producer->stats;
  if (completion->failure) {
    warn(g->trace, completion->failure);
    drop(g);
    return;
  }
  stats->trace_pending -= g->records;
  stats->trace_sent += g->records;
  give_back(g);
}

static void send_group(group *g) {
  rmq_trace *trace = g->trace;
  rmq_slice keys = rmq_buf_slice(&g->keys);
  rmq_message message = {.topic = trace->topic,
                         .body = rmq_buf_slice(&g->body),
                         .keys = &keys,
                         .n_keys = 1,
                         .wait = true};
  rmq_send_options options = {.mode = RMQ_MODE_ASYNC, .timeout_ms = TIMEOUT_MS, .retries = -1};
  rmq_map_remove(trace->by_topic, rmq_buf_slice(&g->topic));
  rmq_link_remove(&g->link);
  rmq_link_append(&trace->sending, &g->link);
  g->number = ++trace->sends;
  if (rmq_producer_send_own(trace->producer, &message, &options, sent, g) < 0) drop(g);
}

uint64_t rmq_trace_flush(rmq_trace *trace) {
  rmq_transport_timer_stop(trace->producer->transport, &trace->timer);
  /* In the last phase of a shutdown nothing is begun any more. */
  if (trace->producer->state > RMQ_STATE_DRAINING) rmq_trace_drop_gathered(trace);
  while (!rmq_link_alone(&trace->gathered)) send_group(group_of(trace->gathered.next));
  return trace->sends;
}

bool rmq_trace_is_through(const rmq_trace *trace, uint64_t number) {
  return rmq_link_alone(&trace->sending) || group_of(trace->sending.next)->number > number;
}

bool rmq_trace_is_idle(const rmq_trace *trace) {
  return rmq_link_alone(&trace->sending) && rmq_link_alone(&trace->gathered);
}

static void timer_due(rmq_timer *timer) {
  rmq_trace *trace = rmq_link_owner(timer, rmq_trace, timer);
  rmq_producer *producer = trace->producer;
  rmq_producer_enter(producer);
  rmq_trace_flush(trace);
  rmq_producer_leave(producer);
}

/* ---- Records ---- */

static bool has_word(rmq_slice words, rmq_slice word) {
  for (size_t from = 0; from + word.len <= words.len;) {
    const char *space = memchr(words.ptr + from, ' ', words.len - from);
    size_t end = space ? (size_t)(space - words.ptr) : words.len;
    if (rmq_slice_equal(rmq_slice_make(words.ptr + from, end - from), word)) return true;
    from = end + 1;
  }
  return false;
}

/* What does not fit is left out: the message is found by its id all the same. So is what cannot be a
 * key, as a broker may send it with the check of a transaction. */
static void add_key(group *g, rmq_slice key) {
  if (key.len == 0 || rmq_buf_len(&g->keys) + key.len + 1 > KEYS_MAX) return;
  if (rmq_utf8_invalid_at(key) < key.len) return;
  if (has_word(rmq_buf_slice(&g->keys), key)) return;
  if (rmq_buf_len(&g->keys) > 0) rmq_buf_u8(&g->keys, ' ');
  rmq_buf_bytes(&g->keys, key.ptr, key.len);
}

static void add_keys(group *g, rmq_slice keys) {
  while (keys.len > 0) {
    const char *space = memchr(keys.ptr, ' ', keys.len);
    size_t len = space ? (size_t)(space - keys.ptr) : keys.len;
    add_key(g, rmq_slice_make(keys.ptr, len));
    len += space ? 1 : 0;
    keys = rmq_slice_make(keys.ptr + len, keys.len - len);
  }
}

static bool is_full(const group *g) {
  const rmq_settings *settings = &g->trace->producer->settings;
  return g->records >= (size_t)settings->trace_msg_batch_num || rmq_buf_len(&g->body) >= BODY_MAX ||
         rmq_buf_len(&g->keys) >= KEYS_MAX / 2;
}

static void wait_for_more(rmq_trace *trace) {
  rmq_producer *producer = trace->producer;
  if (rmq_timer_is_set(&trace->timer)) return;
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_transport_timer(producer->transport, &trace->timer,
                      rmq_mono_add_ms(now, producer->settings.trace_flush_interval));
}

/* What goes to the trace topic is not traced. Java leaves out all topics whose names begin with that of
 * the trace topic, which would be many when somebody calls that one "T". */
static bool is_traced(const rmq_trace *trace, rmq_slice topic) {
  return !rmq_slice_equal(topic, trace->topic);
}

/* True when a record has no chance: there are too many, there is no such topic, or, in the last phase of
 * a shutdown, nothing is sent any more. */
static bool is_stuck(const rmq_trace *trace) {
  const rmq_producer *producer = trace->producer;
  if (trace->bytes >= RMQ_TRACE_BYTES_MAX || producer->state > RMQ_STATE_DRAINING) return true;
  return rmq_mono_before(rmq_transport_now(producer->transport), trace->rests_until);
}

static void add(rmq_trace *trace, rmq_trace_record *record) {
  rmq_producer *producer = trace->producer;
  if (!is_traced(trace, record->topic)) return;
  if (record->region.len == 0) record->region = rmq_slice_text("DefaultRegion");
  record->group = producer->group;
  if (is_stuck(trace)) {
    producer->stats.trace_dropped++;
    return;
  }
  group *g = rmq_map_get(trace->by_topic, record->topic);
  if (!g) g = take_group(trace, record->topic);
  size_t before = size_of(g);
  rmq_trace_put(&g->body, record);
  add_key(g, record->msg_id);
  add_keys(g, record->keys);
  g->records++;
  producer->stats.trace_pending++;
  trace->bytes += size_of(g) - before;
  if (is_full(g)) {
    send_group(g);
  } else {
    wait_for_more(trace);
  }
}

static int64_t wall_ms(const rmq_trace *trace) {
  rmq_io *io = trace->producer->io;
  return io->calls->wall(io).ms;
}

/* What of a message stands in its properties. */
static void read_properties(rmq_slice properties, rmq_trace_record *record) {
  static const char *const delays[] = {"DELAY", "TIMER_DELAY_MS", "TIMER_DELAY_SEC",
                                       "TIMER_DELIVER_MS", "__STARTDELIVERTIME"};
  rmq_field property;
  while (rmq_properties_next(&properties, &property)) {
    if (rmq_slice_is(property.name, "KEYS")) record->keys = property.value;
    if (rmq_slice_is(property.name, "TAGS")) record->tags = property.value;
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
      if (rmq_slice_is(property.name, delays[i])) record->type = RMQ_TRACE_DELAY;
    }
  }
}

static rmq_slice address_of(const rmq_send *send, const rmq_completion *completion) {
  if (completion->failure) return rmq_slice_text(completion->failure->addr);
  return rmq_slice_text(rmq_routes_master(send->producer->routes, completion->broker));
}

/* True for what Java would trace, and for failures. A oneway send that was written has no result that
 * could be told. */
static bool is_told(const rmq_send *send, const rmq_completion *completion) {
  if (completion->failure) return true;
  return !send->oneway && completion->reply && completion->reply->trace_on;
}

/* Of the body as it went. */
static size_t length_of(const rmq_send *send) {
  const rmq_pack *pack = &send->pack;
  return pack->state == RMQ_PACK_DONE ? rmq_buf_len(&pack->bytes) : rmq_send_body(send).len;
}

void rmq_trace_send(const rmq_send *send, const rmq_completion *completion) {
  rmq_trace *trace = send->producer->trace;
  if (!is_told(send, completion)) return;
  rmq_trace_record record = {
      .kind = RMQ_TRACE_PUB,
      .time_ms = wall_ms(trace) - completion->elapsed_us / 1000,
      .topic = completion->topic,
      .msg_id = completion->msg_id,
      .store_host = address_of(send, completion),
      .type = send->sys_flag & RMQ_SYS_PREPARED ? RMQ_TRACE_HALF : RMQ_TRACE_NORMAL,
      .body_length = (int64_t)length_of(send),
      .cost_ms = completion->elapsed_us / 1000,
      .success = !completion->failure && completion->status == RMQ_SEND_OK};
  if (completion->reply) {
    record.region = completion->reply->region_id;
    record.offset_msg_id = completion->reply->msg_id;
  }
  read_properties(rmq_send_properties(send), &record);
  add(trace, &record);
}

void rmq_trace_end_transaction(rmq_producer *producer, const rmq_trace_record *record) {
  if (!producer->trace) return;
  rmq_trace_record own = *record;
  own.kind = RMQ_TRACE_END_TRANSACTION;
  own.type = RMQ_TRACE_COMMIT;
  own.time_ms = wall_ms(producer->trace);
  add(producer->trace, &own);
}

void rmq_trace_recall(rmq_producer *producer, rmq_slice topic, rmq_slice msg_id, bool success) {
  if (!producer->trace) return;
  rmq_trace_record record = {.kind = RMQ_TRACE_RECALL,
                             .time_ms = wall_ms(producer->trace),
                             .topic = topic,
                             .msg_id = msg_id,
                             .success = success};
  add(producer->trace, &record);
}

/* ---- Life ---- */

rmq_trace *rmq_trace_new(rmq_producer *producer) {
  rmq_trace *trace = rmq_alloc_zero(1, sizeof *trace);
  trace->producer = producer;
  trace->topic = rmq_slice_text(producer->settings.trace_topic);
  trace->by_topic = rmq_map_new(producer->io->calls->random(producer->io));
  rmq_link_init(&trace->gathered);
  rmq_link_init(&trace->sending);
  rmq_link_init(&trace->pool);
  rmq_timer_init(&trace->timer, timer_due);
  return trace;
}

static void free_groups(rmq_link *groups) {
  while (!rmq_link_alone(groups)) free_group(group_of(groups->next));
}

void rmq_trace_drop_gathered(rmq_trace *trace) {
  rmq_producer *producer = trace->producer;
  rmq_transport_timer_stop(producer->transport, &trace->timer);
  while (!rmq_link_alone(&trace->gathered)) {
    group *g = group_of(trace->gathered.next);
    rmq_map_remove(trace->by_topic, rmq_buf_slice(&g->topic));
    drop(g);
  }
}

void rmq_trace_free(rmq_trace *trace) {
  if (!trace) return;
  rmq_transport_timer_stop(trace->producer->transport, &trace->timer);
  free_groups(&trace->gathered);
  free_groups(&trace->sending);
  free_groups(&trace->pool);
  rmq_map_free(trace->by_topic);
  free(trace);
}

#include <stdio.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/memory.h"
#include "producer/admin_core.h"
#include "producer/message.h"
#include "wire/codes.h"
#include "wire/number.h"
#include "wire/properties.h"

/* Looking for messages: by the place that an offset id names, or by key on all brokers of a topic. */

/* What is found may take so much memory; a broker can answer with 16 MiB, and there may be many. */
enum { FOUND_BYTES_MAX = 64 * 1024 * 1024 };

enum { SHOWN = 128 }; /* how much of an id goes into a sentence */

/* A message in `heap`. */
typedef struct finding {
  int64_t stored_ms;
  int64_t log_offset;
  size_t at, len;
} finding;

typedef struct search {
  rmq_admin admin;
  rmq_buf topic, key; /* the key, the unique key or the offset id */
  int64_t begin_ms, end_ms;
  int32_t max;
  bool unique;         /* the key is a unique key */
  bool viewing;        /* asking at the place that an offset id names: */
  rmq_address address; /* the broker's */
  int64_t place;       /* in its commit log */
  int before;          /* tries of the failure that belong to that, when the search goes on */
  bool is_full;        /* something was left out for want of room */
  rmq_admin_targets targets;
  rmq_buf heap; /* broker and message of each finding, as rmq_found_next takes them */
  finding *findings;
  size_t n, cap;
  rmq_buf found; /* what the caller gets */
  size_t n_found;
  rmq_found_done *done;
  void *arg;
} search;

static search *search_of(rmq_admin *admin) { return (search *)(void *)admin; }

static void tell(rmq_admin *admin, const rmq_failure *failure) {
  const search *s = search_of(admin);
  s->done(s->arg, failure, rmq_buf_slice(&s->found), s->n_found);
}

static void release(rmq_admin *admin) {
  search *s = search_of(admin);
  rmq_admin_free_targets(&s->targets);
  rmq_buf_free(&s->topic);
  rmq_buf_free(&s->key);
  rmq_buf_free(&s->heap);
  rmq_buf_free(&s->found);
  free(s->findings);
  free(s);
}

/* ---- What was found ---- */

bool rmq_found_next(rmq_slice *rest, rmq_slice *broker, rmq_stored_message *message) {
  if (rest->len == 0) return false;
  rmq_cursor cursor = rmq_cursor_make(*rest);
  *broker = rmq_cursor_bytes(&cursor, rmq_cursor_u32(&cursor));
  rmq_slice stored = rmq_cursor_bytes(&cursor, rmq_cursor_u32(&cursor));
  size_t taken = rest->len - rmq_cursor_left(&cursor);
  *rest = rmq_slice_make(rest->ptr + taken, rest->len - taken);
  return rmq_stored_next(&stored, message) == 1;
}

static void keep(search *s, rmq_slice broker, rmq_slice stored, const rmq_stored_message *message) {
  size_t len = 8 + broker.len + stored.len;
  if (rmq_buf_len(&s->heap) + len > FOUND_BYTES_MAX) {
    s->is_full = true;
    return;
  }
  if (s->n == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 8;
    s->findings = rmq_realloc(s->findings, s->cap * sizeof *s->findings);
  }
  s->findings[s->n++] = (finding){.stored_ms = message->stored_ms,
                                  .log_offset = message->log_offset,
                                  .at = rmq_buf_len(&s->heap),
                                  .len = len};
  rmq_buf_u32(&s->heap, (uint32_t)broker.len);
  rmq_buf_bytes(&s->heap, broker.ptr, broker.len);
  rmq_buf_u32(&s->heap, (uint32_t)stored.len);
  rmq_buf_bytes(&s->heap, stored.ptr, stored.len);
}

/* True when one of the message's keys, which blanks separate, is this one. */
static bool has_key(rmq_slice keys, rmq_slice key) {
  size_t from = 0;
  if (!keys.ptr) return false;
  for (size_t i = 0; i <= keys.len; i++) {
    if (i < keys.len && keys.ptr[i] != ' ') continue;
    if (rmq_slice_equal(rmq_slice_make(keys.ptr + from, i - from), key)) return true;
    from = i + 1;
  }
  return false;
}

static bool is_wanted(const search *s, const rmq_stored_message *message) {
  rmq_slice key = rmq_buf_slice(&s->key);
  if (s->viewing) return message->log_offset == s->place;
  if (!rmq_slice_equal(message->topic, rmq_buf_slice(&s->topic))) return false;
  if (s->unique) return rmq_slice_equal(rmq_properties_find(message->properties, "UNIQ_KEY"), key);
  return has_key(rmq_properties_find(message->properties, "KEYS"), key);
}

static void read_answer(search *s, rmq_admin_target *target, rmq_slice body) {
  rmq_slice rest = body;
  rmq_stored_message message;
  int status;
  for (rmq_slice before = rest; (status = rmq_stored_next(&rest, &message)) == 1; before = rest) {
    rmq_slice stored = rmq_slice_make(before.ptr, before.len - rest.len);
    if (is_wanted(s, &message)) keep(s, rmq_slice_text(target->broker), stored, &message);
  }
  if (status < 0) rmq_admin_note_unreadable(target, "its answer is not a list of messages");
}

static int by_time(const void *a, const void *b) {
  const finding *x = a, *y = b;
  if (x->stored_ms != y->stored_ms) return x->stored_ms < y->stored_ms ? -1 : 1;
  if (x->log_offset != y->log_offset) return x->log_offset < y->log_offset ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

/* The newest of all, in the order in which they were stored; of those with one unique key, which a
 * retry may have stored twice, the first. */
static void gather(search *s) {
  if (s->n == 0) return;
  qsort(s->findings, s->n, sizeof *s->findings, by_time);
  size_t wanted = s->unique ? 1 : (size_t)s->max;
  size_t first = s->n > wanted && !s->unique ? s->n - wanted : 0;
  const char *heap = (const char *)rmq_buf_head(&s->heap);
  s->n_found = s->n < wanted ? s->n : wanted;
  for (size_t i = 0; i < s->n_found; i++) {
    const finding *at = &s->findings[first + i];
    rmq_buf_bytes(&s->found, heap + at->at, at->len);
  }
}

/* ---- By key ---- */

static void fail(search *s) {
  rmq_failure *failure = &s->admin.failure;
  free(failure->topic);
  failure->topic = NULL;
  rmq_slice topic = rmq_buf_slice(&s->topic);
  if (topic.len > 0) failure->topic = rmq_copy_text(topic.ptr, topic.len);
  rmq_admin_end(&s->admin, failure);
}

static void no_message(search *s) {
  rmq_slice topic = rmq_buf_slice(&s->topic), key = rmq_buf_slice(&s->key);
  rmq_failure *failure = &s->admin.failure;
  rmq_failure_set(failure, RMQ_KIND_BROKER, RMQ_NO_MESSAGE,
                  "no broker of topic \"%.*s\" has a message with the id %.*s (any more)",
                  (int)topic.len, topic.ptr, (int)(key.len < SHOWN ? key.len : SHOWN), key.ptr);
  if (s->before > 0) rmq_buf_printf(&failure->message, "; %.512s", failure->tries[0].message);
  fail(s);
}

static void all_answered(search *s) {
  gather(s);
  rmq_failure *failure = &s->admin.failure;
  if (s->unique && s->n_found > 0) {
    rmq_admin_end(&s->admin, NULL);
  } else if (failure->n_tries > s->before) {
    char what[160];
    snprintf(what, sizeof what, "%d of the topic's %zu brokers did not answer as they should",
             failure->n_tries - s->before, s->targets.n);
    rmq_admin_sum_up(&s->admin, what);
    fail(s);
  } else if (s->unique) {
    no_message(s);
  } else if (s->is_full) {
    rmq_failure_set(failure, RMQ_KIND_OVERLOAD, 0,
                    "the messages with this key take more than %d bytes, and some were left out; "
                    "ask for fewer with max, or for a shorter time",
                    FOUND_BYTES_MAX);
    fail(s);
  } else {
    rmq_admin_end(&s->admin, NULL);
  }
}

static void answered(void *arg, const rmq_call_end *end) {
  rmq_admin_target *target = arg;
  search *s = search_of(target->admin);
  bool nothing = end->failure && end->header && end->header->code == RMQ_QUERY_NOT_FOUND;
  if (nothing) {
    s->admin.calls--;
  } else {
    rmq_admin_call_ended(target, end);
    if (!end->failure) read_answer(s, target, end->body);
  }
  if (s->admin.calls == 0) all_answered(s);
}

static void ask_brokers(search *s) {
  char max[RMQ_NUMBER_MAX], begin[RMQ_NUMBER_MAX], end[RMQ_NUMBER_MAX];
  const rmq_field ext[] = {
      {rmq_slice_text("topic"), rmq_buf_slice(&s->topic)},
      {rmq_slice_text("key"), rmq_buf_slice(&s->key)},
      {rmq_slice_text("maxNum"), {max, rmq_number_write(max, s->max)}},
      {rmq_slice_text("beginTimestamp"), {begin, rmq_number_write(begin, s->begin_ms)}},
      {rmq_slice_text("endTimestamp"), {end, rmq_number_write(end, s->end_ms)}},
      {rmq_slice_text("_UNIQUE_KEY_QUERY"), rmq_slice_text(s->unique ? "true" : "false")}};
  for (size_t i = 0; i < s->targets.n; i++) {
    rmq_call_options options = {
        .code = RMQ_QUERY_MESSAGE, .ext = ext, .n_ext = sizeof ext / sizeof ext[0]};
    rmq_admin_call(&s->targets.list[i], &options, answered);
  }
  if (s->admin.calls == 0) all_answered(s);
}

/* The master of each broker, or where there is none the first of its slaves. */
static void choose_targets(search *s, const rmq_route_data *route) {
  for (size_t i = 0; i < route->n_brokers; i++) {
    const rmq_broker_data *broker = &route->brokers[i];
    rmq_slice addr = rmq_broker_data_addr(broker, RMQ_MASTER_ID);
    for (size_t j = 0; addr.len == 0 && j < broker->n_addrs; j++) addr = broker->addrs[j].addr;
    if (addr.len > 0) rmq_admin_add_target(&s->admin, &s->targets, broker->broker_name, addr);
  }
}

static void route_came(rmq_admin *admin, const rmq_route_data *route, rmq_route_result result,
                       rmq_slice explanation) {
  search *s = search_of(admin);
  if (route) choose_targets(s, route);
  if (s->targets.n > 0) {
    ask_brokers(s);
    return;
  }
  rmq_failure *failure = &admin->failure;
  bool unreached = result == RMQ_ROUTE_UNREACHED || result == RMQ_ROUTE_TIMEOUT;
  rmq_slice topic = rmq_buf_slice(&s->topic);
  rmq_failure_set(failure, result == RMQ_ROUTE_TIMEOUT ? RMQ_KIND_TIMEOUT : RMQ_KIND_ROUTE,
                  unreached ? 10004 : 10005,
                  "nobody can be asked for messages of topic \"%.*s\": ", (int)topic.len,
                  topic.ptr);
  if (unreached) {
    rmq_buf_bytes(&failure->message, explanation.ptr, explanation.len);
  } else {
    rmq_buf_text(&failure->message, "no broker has it");
  }
  fail(s);
}

static search *new_search(rmq_producer *producer, rmq_slice topic, rmq_slice key,
                          int64_t timeout_ms) {
  search *s = rmq_admin_new(producer, sizeof *s, timeout_ms);
  s->admin.tell = tell;
  s->admin.release = release;
  s->admin.route_came = route_came;
  rmq_buf_bytes(&s->topic, topic.ptr, topic.len);
  rmq_buf_bytes(&s->key, key.ptr, key.len);
  return s;
}

static int refuse(rmq_producer *producer, const char *sentence) {
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0, "%s", sentence);
  return RMQ_EINVAL;
}

static int check_key(rmq_producer *producer, const char *what, rmq_slice key) {
  if (key.len > 0 && key.len <= RMQ_PROPERTIES_MAX && !memchr(key.ptr, ' ', key.len)) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0,
                  "%s must have 1 to %d bytes and no space, which separates keys", what,
                  RMQ_PROPERTIES_MAX);
  return RMQ_EINVAL;
}

static int check_query(rmq_producer *producer, const rmq_query *query) {
  int status = rmq_producer_check_state(producer);
  if (status == 0) status = rmq_topic_check(query->topic, &producer->refusal);
  if (status < 0) return status;
  if (check_key(producer, "key", query->key) < 0) return RMQ_EINVAL;
  if (query->begin_ms > query->end_ms) {
    return refuse(producer, "begin_timestamp is later than end_timestamp");
  }
  if (query->max >= 1 && query->max <= RMQ_QUERY_LARGEST) return 0;
  rmq_failure_set(&producer->refusal, RMQ_KIND_MESSAGE, 0, "max is %d; it must be from 1 to %d",
                  query->max, RMQ_QUERY_LARGEST);
  return RMQ_EINVAL;
}

int rmq_producer_query_messages(rmq_producer *producer, const rmq_query *query,
                                rmq_found_done *done, void *arg) {
  int status = check_query(producer, query);
  if (status < 0) return status;
  search *s = new_search(producer, query->topic, query->key, query->timeout_ms);
  s->begin_ms = query->begin_ms;
  s->end_ms = query->end_ms;
  s->max = query->max;
  s->done = done;
  s->arg = arg;
  rmq_admin_ask_route(&s->admin, query->topic);
  return 0;
}

/* ---- By id ---- */

/* As a unique key, on all brokers of the topic. What came of asking at the place stays noted. */
static void search_by_unique_key(search *s) {
  rmq_admin_free_targets(&s->targets);
  s->before = s->admin.failure.n_tries;
  s->viewing = false;
  s->unique = true;
  s->max = RMQ_QUERY_MAX;
  s->end_ms = INT64_MAX;
  s->admin.route_came = route_came;
  rmq_admin_ask_route(&s->admin, rmq_buf_slice(&s->topic));
}

/* Java, too, takes an id for a unique key when there is no message at its place, whatever the reason. */
static void not_at_its_place(search *s) {
  bool stopped = s->admin.failure.tries[0].kind == RMQ_KIND_STATE;
  if (rmq_buf_len(&s->topic) > 0 && !stopped && !rmq_admin_is_late(&s->admin)) {
    search_by_unique_key(s);
    return;
  }
  rmq_admin_sum_up(&s->admin, "the message cannot be read");
  fail(s);
}

static void viewed(void *arg, const rmq_call_end *end) {
  rmq_admin_target *target = arg;
  search *s = search_of(target->admin);
  rmq_admin_call_ended(target, end);
  if (!end->failure) {
    read_answer(s, target, end->body);
    if (s->n == 0 && s->admin.failure.n_tries == 0) {
      rmq_admin_note_unreadable(target, "its answer is not the message that was asked for");
    }
  }
  if (s->n == 0) {
    not_at_its_place(s);
    return;
  }
  gather(s);
  rmq_admin_end(&s->admin, NULL);
}

static void ask_place(search *s, const char *addr) {
  char place[RMQ_NUMBER_MAX];
  const rmq_field ext[] = {{rmq_slice_text("offset"), {place, rmq_number_write(place, s->place)}},
                           {rmq_slice_text("topic"), rmq_buf_slice(&s->topic)}};
  bool has_topic = rmq_buf_len(&s->topic) > 0;
  rmq_call_options options = {
      .code = RMQ_VIEW_MESSAGE_BY_ID, .ext = ext, .n_ext = has_topic ? 2 : 1};
  /* Who may be a unique key must not spend all its time on a host that is none. */
  options.timeout_ms = rmq_admin_left_ms(&s->admin) / (has_topic ? 2 : 1);
  const char *broker = rmq_routes_broker_at(s->admin.producer->routes, rmq_slice_text(addr));
  rmq_admin_add_target(&s->admin, &s->targets, rmq_slice_text(broker), rmq_slice_text(addr));
  if (!rmq_admin_call(&s->targets.list[0], &options, viewed)) not_at_its_place(s);
}

/* The route says only what the broker is called; without it the message is read all the same. */
static void route_for_view_came(rmq_admin *admin, const rmq_route_data *route,
                                rmq_route_result result, rmq_slice explanation) {
  search *s = search_of(admin);
  (void)route;
  (void)result;
  (void)explanation;
  char addr[RMQ_ADDRESS_TEXT];
  rmq_address_format(&s->address, addr);
  ask_place(s, addr);
}

static void start_view(search *s, const rmq_offset_id *id) {
  rmq_routes *routes = s->admin.producer->routes;
  char addr[RMQ_ADDRESS_TEXT];
  s->viewing = true;
  s->max = 1;
  s->place = id->offset;
  s->address = (rmq_address){.ip_len = id->ip_len, .port = (uint16_t)id->port};
  memcpy(s->address.ip, id->ip, sizeof s->address.ip);
  rmq_address_format(&s->address, addr);
  if (rmq_buf_len(&s->topic) == 0 || rmq_routes_broker_at(routes, rmq_slice_text(addr))) {
    ask_place(s, addr);
    return;
  }
  s->admin.route_came = route_for_view_came;
  rmq_admin_ask_route(&s->admin, rmq_buf_slice(&s->topic));
}

/* True for a text that names a place: a unique key has part of a process number where the port is, which
 * is out of a port's range in all but very few processes. */
static bool is_offset_id(rmq_slice text, rmq_offset_id *id) {
  return rmq_offset_id_decode(text, id) == 0 && id->port > 0 && id->offset >= 0;
}

int rmq_producer_view_message(rmq_producer *producer, const rmq_view *view, rmq_found_done *done,
                              void *arg) {
  rmq_offset_id id;
  bool has_place = is_offset_id(view->id, &id);
  int status = rmq_producer_check_state(producer);
  if (status == 0 && view->topic.len > 0) {
    status = rmq_topic_check(view->topic, &producer->refusal);
  }
  if (status == 0 && !has_place && view->topic.len == 0) {
    status =
        refuse(producer,
               "the id is no offset id (result.offset_msg_id); to find a message by its unique "
               "key (result.msg_id) name its topic too");
  }
  if (status == 0) status = check_key(producer, "the id", view->id);
  if (status < 0) return status;
  search *s = new_search(producer, view->topic, view->id, view->timeout_ms);
  s->done = done;
  s->arg = arg;
  if (has_place) {
    start_view(s, &id);
  } else {
    search_by_unique_key(s);
  }
  return 0;
}

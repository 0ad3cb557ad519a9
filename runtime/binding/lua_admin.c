#include "binding/lua_admin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/shown.h"
#include "binding/lua_failure.h"
#include "binding/lua_message.h"
#include "binding/lua_names.h"
#include "binding/lua_producer_parts.h"
#include "binding/lua_result.h"
#include "producer/admin.h"

/* The integers that a Lua number holds exactly lie below it. */
static const double exact = 9007199254740992.0;

/* ---- Reading what is given ---- */

static int wrong_type(lua_State *L, const char *name, const char *wanted, int index) {
  return rmq_lua_raise(L, "%s must be %s, not %s", name, wanted, luaL_typename(L, index));
}

static rmq_slice read_text(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TSTRING) wrong_type(L, name, "a string", index);
  rmq_slice text;
  text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

/* A field of the table at `index` that is a text or absent; it stays anchored there. */
static rmq_slice text_field(lua_State *L, int index, const char *field, const char *name) {
  rmq_slice text = {NULL, 0};
  lua_getfield(L, index, field);
  if (!lua_isnil(L, -1)) text = read_text(L, lua_gettop(L), name);
  lua_pop(L, 1);
  return text;
}

static bool boolean_field(lua_State *L, int index, const char *field, const char *name,
                          bool otherwise) {
  lua_getfield(L, index, field);
  if (!lua_isnil(L, -1)) {
    if (lua_type(L, -1) != LUA_TBOOLEAN) wrong_type(L, name, "true or false", -1);
    otherwise = lua_toboolean(L, -1);
  }
  lua_pop(L, 1);
  return otherwise;
}

/* What a wrong value is refused with: the calls give an error and do not raise. */
typedef struct problem {
  char text[192];
} problem;

static void refuse_number(problem *why, const char *name, double value, double min, double max) {
  snprintf(why->text, sizeof why->text,
           "%s is %.17g; it must be a whole number from %.17g to %.17g", name, rmq_shown(value),
           min, max);
}

static int64_t read_whole(lua_State *L, int index, const char *name, double min, double max,
                          problem *why) {
  if (lua_type(L, index) != LUA_TNUMBER) wrong_type(L, name, "a number", index);
  double value = lua_tonumber(L, index);
  if (value >= min && value <= max && floor(value) == value) return (int64_t)value;
  refuse_number(why, name, value, min, max);
  return 0;
}

static int64_t whole_field(lua_State *L, int index, const char *field, const char *name, double min,
                           double max, int64_t otherwise, problem *why) {
  lua_getfield(L, index, field);
  if (!lua_isnil(L, -1)) otherwise = read_whole(L, -1, name, min, max, why);
  lua_pop(L, 1);
  return otherwise;
}

static int64_t timeout_field(lua_State *L, int index, const rmq_lua_producer *p, problem *why) {
  double max = (double)p->arguments.time->max;
  lua_getfield(L, index, "timeout");
  int64_t timeout_ms = 0;
  if (!lua_isnil(L, -1)) {
    if (lua_type(L, -1) != LUA_TNUMBER) wrong_type(L, "timeout", "a number of milliseconds", -1);
    double value = lua_tonumber(L, -1);
    if (value > 0 && value <= max) {
      timeout_ms = (int64_t)ceil(value);
    } else {
      snprintf(why->text, sizeof why->text,
               "timeout is %.17g; it must be over 0 and at most %.17g milliseconds",
               rmq_shown(value), max);
    }
  }
  lua_pop(L, 1);
  return timeout_ms;
}

/* Options that may be left out. False when they are. */
static bool has_options(lua_State *L, int index, const rmq_names *names) {
  if (lua_isnoneornil(L, index)) return false;
  if (lua_type(L, index) != LUA_TTABLE) wrong_type(L, names->where, "a table", index);
  rmq_names_check(L, names, index);
  return true;
}

/* ---- Waiting ---- */

static int fail_with(lua_State *L, rmq_lua_producer *p, const char *sentence, rmq_slice topic) {
  rmq_failure failure;
  rmq_failure_init(&failure);
  failure.kind = RMQ_KIND_MESSAGE;
  rmq_buf_text(&failure.message, sentence);
  int values = rmq_lua_producer_fail(L, p, &failure, topic);
  rmq_failure_clear(&failure);
  return values;
}

static rmq_pending *begin(lua_State *L, rmq_lua_producer *p) {
  rmq_lua_producer_refresh_time(p);
  return rmq_pending_take(&p->pendings, rmq_task_running(L));
}

/* Waits for what was started; or tells why it was not. */
static int wait(lua_State *L, rmq_lua_producer *p, rmq_pending *pending, int status,
                rmq_slice topic) {
  if (status < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), topic);
  }
  lua_settop(L, 1);
  return rmq_task_wait(L, 1);
}

static void wake(rmq_pending *pending, const rmq_failure *failure,
                 int (*push)(lua_State *L, rmq_pending *pending)) {
  if (failure) {
    rmq_pending_fail(pending, failure);
  } else {
    pending->state = RMQ_PENDING_VALUES;
    pending->push = push;
  }
  rmq_pending_wake(pending, !failure);
}

/* ---- Offsets ---- */

static const char *const offset_option_fields[] = {"timeout", NULL};
static const rmq_names offset_option_names = {"option", "the options", offset_option_fields};
static const char *const queue_fields[] = {"topic", "broker", "id", NULL};
static const rmq_names queue_names = {"field", "the queue", queue_fields};

static int push_number(lua_State *L, rmq_pending *pending) {
  rmq_lua_push_int64(L, pending->number);
  return 1;
}

static void on_offset(void *arg, const rmq_failure *failure, int64_t value) {
  rmq_pending *pending = arg;
  pending->number = value;
  wake(pending, failure, push_number);
}

static void read_queue(lua_State *L, int index, rmq_offset_question *question, problem *why) {
  rmq_queue_ref *queue = &question->queue;
  if (rmq_lua_to_queue(L, index, &question->topic, &queue->broker, &queue->id)) return;
  if (lua_type(L, index) != LUA_TTABLE) {
    wrong_type(L, "the queue", "a queue or a table {topic=, broker=, id=}", index);
  }
  rmq_names_check(L, &queue_names, index);
  question->topic = text_field(L, index, "topic", "topic of the queue");
  queue->broker = text_field(L, index, "broker", "broker of the queue");
  queue->id = (int32_t)whole_field(L, index, "id", "id of the queue", 0, INT32_MAX, -1, why);
  if (!question->topic.ptr || !queue->broker.ptr || (queue->id < 0 && !why->text[0])) {
    rmq_lua_raise(L, "the queue must have a topic, a broker and an id");
  }
}

static int ask_offset(lua_State *L) {
  static const char *const whats[] = {"max", "min", "search", "earliest", NULL};
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "this call");
  problem why = {""};
  rmq_offset_question question = {0};
  lua_settop(L, 5);
  question.kind = (rmq_offset_kind)luaL_checkoption(L, 2, NULL, whats);
  read_queue(L, 3, &question, &why);
  if (question.kind == RMQ_OFFSET_AT_TIME) {
    question.time_ms = read_whole(L, 4, "the time", -exact, exact, &why);
  }
  if (has_options(L, 5, &offset_option_names)) question.timeout_ms = timeout_field(L, 5, p, &why);
  if (why.text[0]) return fail_with(L, p, why.text, question.topic);
  rmq_pending *pending = begin(L, p);
  int status = rmq_producer_ask_offset(p->producer, &question, on_offset, pending);
  return wait(L, p, pending, status, question.topic);
}

/* ---- Topics ---- */

static const char *const topic_fields[] = {
    "topic",   "queues",  "read_queues", "write_queues", "perm",       "order", "sys_flag",
    "cluster", "brokers", "wait",        "timeout",      "attributes", NULL};
static const rmq_names topic_names = {"field", "the new topic", topic_fields};

/* Lists out of the description, whose texts stay anchored there. */
typedef struct lists {
  rmq_slice *brokers;
  rmq_field *attributes;
} lists;

static void free_lists(lists *all) {
  free(all->brokers);
  free(all->attributes);
}

static int push_true(lua_State *L, rmq_pending *pending) {
  (void)pending;
  lua_pushboolean(L, true);
  return 1;
}

static void on_created(void *arg, const rmq_failure *failure) { wake(arg, failure, push_true); }

/* Everything is checked before memory is taken: an error would lose that. */
static size_t check_brokers(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE) wrong_type(L, "brokers", "a list of strings", index);
  size_t n = lua_objlen(L, index);
  if (n == 0) rmq_lua_raise(L, "brokers is empty; leave it out, or name the brokers");
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, index, (int)i);
    if (lua_type(L, -1) != LUA_TSTRING) wrong_type(L, "each of brokers", "a string", -1);
    lua_pop(L, 1);
  }
  return n;
}

static size_t check_attributes(lua_State *L, int index) {
  size_t n = 0;
  if (lua_type(L, index) != LUA_TTABLE) wrong_type(L, "attributes", "a table of strings", index);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
      rmq_lua_raise(L, "attributes must have strings as names and values");
    }
    lua_pop(L, 1);
    n++;
  }
  return n;
}

static void read_brokers(lua_State *L, int index, rmq_new_topic *topic, lists *all) {
  all->brokers = rmq_alloc(topic->n_brokers * sizeof *all->brokers);
  for (size_t i = 0; i < topic->n_brokers; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    all->brokers[i].ptr = lua_tolstring(L, -1, &all->brokers[i].len);
    lua_pop(L, 1);
  }
  topic->brokers = all->brokers;
}

static void read_attributes(lua_State *L, int index, rmq_new_topic *topic, lists *all) {
  size_t n = 0;
  all->attributes = rmq_alloc(topic->n_attributes * sizeof *all->attributes);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    rmq_field *field = &all->attributes[n++];
    field->name.ptr = lua_tolstring(L, -2, &field->name.len);
    field->value.ptr = lua_tolstring(L, -1, &field->value.len);
    lua_pop(L, 1);
  }
  topic->attributes = all->attributes;
}

static void read_plain_fields(lua_State *L, const rmq_lua_producer *p, rmq_new_topic *topic,
                              problem *why) {
  int64_t initial = rmq_producer_settings(p->producer)->default_topic_queue_nums;
  topic->topic = text_field(L, 2, "topic", "topic");
  if (!topic->topic.ptr) rmq_lua_raise(L, "the new topic must have a name: topic = \"...\"");
  int64_t queues = whole_field(L, 2, "queues", "queues", 1, RMQ_ROUTE_QUEUES_MAX, initial, why);
  topic->read_queues = (int32_t)whole_field(L, 2, "read_queues", "read_queues", 0,
                                            RMQ_ROUTE_QUEUES_MAX, queues, why);
  topic->write_queues = (int32_t)whole_field(L, 2, "write_queues", "write_queues", 0,
                                             RMQ_ROUTE_QUEUES_MAX, queues, why);
  topic->perm = (int32_t)whole_field(L, 2, "perm", "perm", 0, 7, 6, why);
  topic->order = boolean_field(L, 2, "order", "order", false);
  topic->sys_flag = (int32_t)whole_field(L, 2, "sys_flag", "sys_flag", 0, 3, 0, why);
  topic->wait = boolean_field(L, 2, "wait", "wait", true);
  topic->cluster = text_field(L, 2, "cluster", "cluster");
  if (topic->cluster.ptr && topic->cluster.len == 0) {
    snprintf(why->text, sizeof why->text, "cluster is empty; leave it out, or name the cluster");
  }
  topic->timeout_ms = timeout_field(L, 2, p, why);
}

/* create_topic(handle, description) */
static int create_topic(lua_State *L) {
  enum { BROKERS = 3, ATTRIBUTES };
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "create_topic");
  problem why = {""};
  rmq_new_topic topic = {0};
  lists all = {NULL, NULL};
  lua_settop(L, 2);
  if (lua_type(L, 2) != LUA_TTABLE) wrong_type(L, "the new topic", "a table", 2);
  rmq_names_check(L, &topic_names, 2);
  read_plain_fields(L, p, &topic, &why);
  lua_getfield(L, 2, "brokers");
  lua_getfield(L, 2, "attributes");
  if (!lua_isnil(L, BROKERS)) topic.n_brokers = check_brokers(L, BROKERS);
  if (!lua_isnil(L, ATTRIBUTES)) topic.n_attributes = check_attributes(L, ATTRIBUTES);
  if (topic.cluster.ptr && topic.n_brokers > 0) {
    rmq_lua_raise(L, "cluster and brokers exclude each other; give one of them");
  }
  if (why.text[0]) return fail_with(L, p, why.text, topic.topic);
  if (topic.n_brokers > 0) read_brokers(L, BROKERS, &topic, &all);
  if (topic.n_attributes > 0) read_attributes(L, ATTRIBUTES, &topic, &all);
  rmq_pending *pending = begin(L, p);
  int status = rmq_producer_create_topic(p->producer, &topic, on_created, pending);
  free_lists(&all);
  return wait(L, p, pending, status, topic.topic);
}

/* ---- Messages ---- */

static const char *const view_option_fields[] = {"timeout", NULL};
static const rmq_names view_option_names = {"option", "the options", view_option_fields};
static const char *const query_option_fields[] = {"max", "begin_timestamp", "end_timestamp",
                                                  "timeout", NULL};
static const rmq_names query_option_names = {"option", "the options", query_option_fields};

/* All that one answer may become when it is unpacked, and what is kept of the memory for that. */
enum { LIST_MAX = 256 * 1024 * 1024, KEPT_BYTES = 1024 * 1024 };

static int push_one(lua_State *L, rmq_pending *pending) {
  rmq_slice rest = rmq_buf_slice(&pending->bytes), broker;
  rmq_stored_message message;
  if (!rmq_found_next(&rest, &broker, &message)) return 0;
  rmq_lua_push_message(L, broker, &message, &pending->all->scratch, RMQ_LUA_MESSAGE_MAX);
  return 1;
}

static void on_viewed(void *arg, const rmq_failure *failure, rmq_slice found, size_t n) {
  rmq_pending *pending = arg;
  (void)n;
  rmq_buf_bytes(&pending->bytes, found.ptr, found.len);
  wake(pending, failure, push_one);
}

/* The list, and behind it the error when not every broker has answered. */
static int push_list(lua_State *L, rmq_pending *pending) {
  rmq_slice rest = rmq_buf_slice(&pending->bytes), broker;
  rmq_stored_message message;
  rmq_buf *scratch = &pending->all->scratch;
  size_t left = LIST_MAX;
  lua_createtable(L, (int)pending->count, 0);
  for (int i = 1; rmq_found_next(&rest, &broker, &message); i++) {
    size_t limit = left < RMQ_LUA_MESSAGE_MAX ? left : RMQ_LUA_MESSAGE_MAX;
    rmq_lua_push_message(L, broker, &message, scratch, limit);
    left -= rmq_buf_len(scratch);
    lua_rawseti(L, -2, i);
  }
  rmq_buf_clear(scratch);
  rmq_buf_trim(scratch, KEPT_BYTES);
  if (!pending->failure) return 1;
  rmq_lua_push_failure(L, pending->failure, (rmq_slice){NULL, 0});
  return 2;
}

static void on_found(void *arg, const rmq_failure *failure, rmq_slice found, size_t n) {
  rmq_pending *pending = arg;
  pending->count = n;
  if (failure && n > 0) {
    pending->failure = rmq_lua_copy_failure(failure);
    failure = NULL;
  }
  rmq_buf_bytes(&pending->bytes, found.ptr, found.len);
  wake(pending, failure, push_list);
}

/* view_message(handle, topic or nil, id, options) */
static int view_message(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "view_message");
  problem why = {""};
  rmq_view view = {0};
  lua_settop(L, 4);
  if (!lua_isnil(L, 2)) view.topic = read_text(L, 2, "topic");
  view.id = read_text(L, 3, "the message's id");
  if (has_options(L, 4, &view_option_names)) view.timeout_ms = timeout_field(L, 4, p, &why);
  if (why.text[0]) return fail_with(L, p, why.text, view.topic);
  rmq_pending *pending = begin(L, p);
  int status = rmq_producer_view_message(p->producer, &view, on_viewed, pending);
  return wait(L, p, pending, status, view.topic);
}

static void read_query_options(lua_State *L, const rmq_lua_producer *p, rmq_query *query,
                               problem *why) {
  query->max = (int32_t)whole_field(L, 4, "max", "max", 1, RMQ_QUERY_LARGEST, RMQ_QUERY_MAX, why);
  query->begin_ms =
      whole_field(L, 4, "begin_timestamp", "begin_timestamp", 0, exact, query->begin_ms, why);
  query->end_ms = whole_field(L, 4, "end_timestamp", "end_timestamp", 0, exact, query->end_ms, why);
  query->timeout_ms = timeout_field(L, 4, p, why);
}

/* query_message(handle, topic, key, options) */
static int query_message(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "query_message");
  problem why = {""};
  lua_settop(L, 4);
  rmq_query query = {.topic = read_text(L, 2, "topic"),
                     .key = read_text(L, 3, "key"),
                     .end_ms = INT64_MAX,
                     .max = RMQ_QUERY_MAX};
  if (has_options(L, 4, &query_option_names)) read_query_options(L, p, &query, &why);
  if (why.text[0]) return fail_with(L, p, why.text, query.topic);
  rmq_pending *pending = begin(L, p);
  int status = rmq_producer_query_messages(p->producer, &query, on_found, pending);
  return wait(L, p, pending, status, query.topic);
}

const luaL_Reg rmq_lua_admin_functions[] = {{"ask_offset", ask_offset},
                                            {"create_topic", create_topic},
                                            {"view_message", view_message},
                                            {"query_message", query_message},
                                            {NULL, NULL}};

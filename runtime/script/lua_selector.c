#include "script/lua_selector.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "script/guard.h"
#include "script/lua_result.h"

/* Selectors that send and so call selectors, and so on. Each has a thread, so Lua's own limit on
 * nested calls does not see them. */
enum { DEPTH_MAX = 16 };

/* The stack of a thread while it rests. */
enum { HANDLER = 1, CALLER, RESTS = CALLER };

/* The upvalues of the function that calls a selector. */
enum { CTX = 1, AVAILABLE, LISTS, UPVALUES = LISTS };

/* What a list of queues was like when it was made. A userdata whose environment has the list that
 * selectors see as field 1 and its queues, to keep them, as field 2. */
typedef struct queue_list {
  uint64_t version; /* of the route that it was made from */
  size_t n;
  struct {
    const void *queue; /* the userdata's memory */
    rmq_publish_queue place;
  } at[];
} queue_list;

typedef struct call {
  const rmq_lua_selector_call *values;
  const rmq_choice *choice;
  rmq_queue_ref *queue;
  rmq_failure *why;
  const queue_list *list;
  int status;
} call;

/* --- Lists of queues --- */

static int compare(const void *a, const void *b) {
  const rmq_publish_queue *x = a, *y = b;
  if (x->broker != y->broker) return x->broker < y->broker ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

/* The places in the order of brokers and ids, which an order conf may have changed. */
static void sort_places(queue_list *list, const rmq_publish *publish) {
  for (size_t i = 0; i < list->n; i++) list->at[i].place = publish->queues[i];
  if (!publish->ordered) return;
  /* An insertion sort: such lists are short, and nearly in order. */
  for (size_t i = 1; i < list->n; i++) {
    rmq_publish_queue place = list->at[i].place;
    size_t to = i;
    for (; to > 0 && compare(&list->at[to - 1].place, &place) > 0; to--) {
      list->at[to].place = list->at[to - 1].place;
    }
    list->at[to].place = place;
  }
}

/* Makes a list, notes it under the topic (a string at `topic`), and pushes it. */
static queue_list *make_list(lua_State *L, int topic, const rmq_choice *choice) {
  const rmq_publish *publish = choice->publish;
  queue_list *list = lua_newuserdata(L, sizeof *list + publish->n_queues * sizeof list->at[0]);
  int at = lua_gettop(L);
  list->version = publish->version;
  list->n = publish->n_queues;
  sort_places(list, publish);
  lua_createtable(L, 2, 0);
  lua_createtable(L, (int)list->n, 0);
  lua_createtable(L, (int)list->n, 0);
  for (size_t i = 0; i < list->n; i++) {
    const rmq_publish_queue *place = &list->at[i].place;
    rmq_lua_push_queue(L, choice->topic, rmq_slice_text(publish->brokers[place->broker].name),
                       place->id);
    list->at[i].queue = lua_touserdata(L, -1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -4, (int)i + 1);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_rawseti(L, at + 1, 2);
  lua_rawseti(L, at + 1, 1);
  lua_setfenv(L, at);
  lua_pushvalue(L, topic);
  lua_pushvalue(L, at);
  lua_rawset(L, lua_upvalueindex(LISTS));
  return list;
}

/* A selector may have changed the list in its hands; the next one must not get that. */
static bool is_unharmed(lua_State *L, int index, const queue_list *list) {
  if (lua_objlen(L, index) != list->n) return false;
  for (size_t i = 0; i < list->n; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    bool same = lua_touserdata(L, -1) == list->at[i].queue;
    lua_pop(L, 1);
    if (!same) return false;
  }
  return true;
}

/* Pushes the memory of the topic's list, which keeps it, and the list. */
static void push_list(lua_State *L, call *c) {
  const rmq_choice *choice = c->choice;
  lua_pushlstring(L, choice->topic.ptr, choice->topic.len);
  int topic = lua_gettop(L);
  lua_pushvalue(L, topic);
  lua_rawget(L, lua_upvalueindex(LISTS));
  queue_list *list = lua_touserdata(L, -1);
  if (list && list->version == choice->publish->version) {
    lua_getfenv(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
    if (!is_unharmed(L, lua_gettop(L), list)) list = NULL;
  } else {
    list = NULL;
  }
  if (!list) {
    lua_settop(L, topic);
    list = make_list(L, topic, choice);
    lua_getfenv(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  lua_remove(L, topic);
  c->list = list;
}

/* --- Answers --- */

static void push_place_of(lua_State *L, int function) {
  lua_Debug info;
  lua_pushvalue(L, function);
  lua_getinfo(L, ">S", &info);
  lua_pushfstring(L, "%s:%d", info.short_src, info.linedefined);
}

/* The selector has given something (the text on top of the stack) that is no choice. */
static void refuse(lua_State *L, call *c, int selector) {
  const char *what = lua_tostring(L, -1);
  push_place_of(L, selector);
  rmq_failure_set(
      c->why, RMQ_KIND_SELECTOR, 0,
      "Sending to topic \"%.*s\" failed: the selector at %s returned %s. It must return "
      "one of the %zu queues that it is given, or the number of one, from 1 to %zu.",
      (int)c->choice->topic.len, c->choice->topic.ptr, lua_tostring(L, -1), what, c->list->n,
      c->list->n);
  c->status = RMQ_EINVAL;
}

static void take(call *c, const rmq_publish_queue *place) {
  c->queue->broker = rmq_slice_text(c->choice->publish->brokers[place->broker].name);
  c->queue->id = place->id;
}

static bool take_number(lua_State *L, call *c) {
  double number = lua_tonumber(L, -1);
  if (number >= 1 && number <= (double)c->list->n && floor(number) == number) {
    take(c, &c->list->at[(size_t)number - 1].place);
    return true;
  }
  char text[40];
  snprintf(text, sizeof text, "%.17g", number);
  lua_pushstring(L, text);
  return false;
}

/* A plain {broker=, id=}. Its texts stay in it. */
static bool read_table(lua_State *L, rmq_slice *broker, double *id) {
  int index = lua_gettop(L);
  lua_getfield(L, index, "broker");
  lua_getfield(L, index, "id");
  bool good = lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TNUMBER;
  if (good) {
    broker->ptr = lua_tolstring(L, -2, &broker->len);
    *id = lua_tonumber(L, -1);
  }
  lua_settop(L, index);
  return good;
}

static bool take_queue(lua_State *L, call *c) {
  rmq_slice topic = c->choice->topic, broker;
  int32_t number = 0;
  double id = 0;
  if (rmq_lua_to_queue(L, -1, &topic, &broker, &number)) {
    id = number;
  } else if (lua_type(L, -1) != LUA_TTABLE || !read_table(L, &broker, &id)) {
    lua_pushfstring(L, lua_isnil(L, -1) ? "%s" : "a %s", luaL_typename(L, -1));
    return false;
  }
  int32_t at = -1;
  if (rmq_slice_equal(topic, c->choice->topic)) {
    at = rmq_publish_broker_find(c->choice->publish, broker);
  }
  for (size_t i = 0; at >= 0 && i < c->list->n; i++) {
    const rmq_publish_queue *place = &c->list->at[i].place;
    if (place->broker != at || place->id != id) continue;
    take(c, place);
    return true;
  }
  char text[400];
  snprintf(text, sizeof text, "%.*s@%.*s#%.17g, which is none of them", (int)topic.len, topic.ptr,
           (int)broker.len, broker.ptr, id);
  lua_pushstring(L, text);
  return false;
}

/* --- The call --- */

static void push_value(lua_State *L, int table, int field) {
  if (field == 0) {
    lua_pushnil(L);
  } else {
    lua_rawgeti(L, table, field);
  }
}

/* A selector may have changed its ctx, too. */
static void push_ctx(lua_State *L, const rmq_choice *choice) {
  lua_pushvalue(L, lua_upvalueindex(CTX));
  lua_pushinteger(L, choice->attempt);
  lua_setfield(L, -2, "attempt");
  if (choice->last_broker.len > 0) {
    lua_pushlstring(L, choice->last_broker.ptr, choice->last_broker.len);
  } else {
    lua_pushnil(L);
  }
  lua_setfield(L, -2, "last_broker");
  lua_pushvalue(L, lua_upvalueindex(AVAILABLE));
  lua_setfield(L, -2, "available");
}

/* Runs protected, on a thread of its own, with a call as its argument. */
static int call_selector(lua_State *L) {
  call *c = lua_touserdata(L, 1);
  const rmq_lua_selector_call *values = c->values;
  lua_rawgeti(L, LUA_REGISTRYINDEX, values->table);
  push_value(L, 2, values->selector);
  push_list(L, c); /* leaves what keeps the list at 4 */
  lua_pushvalue(L, 3);
  lua_insert(L, 5);
  push_value(L, 2, values->message);
  push_value(L, 2, values->arg);
  push_ctx(L, c->choice);
  lua_call(L, 4, 1);
  bool good = lua_type(L, -1) == LUA_TNUMBER ? take_number(L, c) : take_queue(L, c);
  if (!good) refuse(L, c, 3);
  return 0;
}

static int handle(lua_State *L) {
  if (!lua_isstring(L, 1) && !luaL_callmeta(L, 1, "__tostring")) {
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  }
  const char *text = lua_tostring(L, -1);
  if (strstr(text, "attempt to yield across C-call boundary")) {
    lua_pushfstring(L, "%s: a selector has to answer at once, it cannot yield or wait", text);
    text = lua_tostring(L, -1);
  }
  luaL_traceback(L, L, text, 1);
  return 1;
}

static void fail(const call *c, const char *text) {
  rmq_failure_set(c->why, RMQ_KIND_SELECTOR, 0,
                  "Sending to topic \"%.*s\" failed: its selector: ", (int)c->choice->topic.len,
                  c->choice->topic.ptr);
  rmq_buf_text(&c->why->message, text ? text : "an error without a text");
}

/* available(queue): false when there is reason not to choose it now. */
static int available(lua_State *L) {
  rmq_producer *const *current = lua_touserdata(L, lua_upvalueindex(1));
  rmq_slice topic, broker;
  int32_t number;
  double id;
  lua_settop(L, 1);
  if (!rmq_lua_to_queue(L, 1, &topic, &broker, &number) &&
      (lua_type(L, 1) != LUA_TTABLE || !read_table(L, &broker, &id))) {
    return luaL_error(L, "available must be given a queue, not %s", luaL_typename(L, 1));
  }
  lua_pushboolean(L, *current && rmq_producer_available(*current, broker));
  return 1;
}

/* --- Threads --- */

static void push_available(lua_State *L, int kept) {
  lua_getfield(L, kept, "current");
  lua_pushcclosure(L, available, 1);
}

/* Runs protected: makes the thread for the depth that is reached. */
static int make_thread(lua_State *L) {
  const rmq_lua_selectors *all = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_State *thread = lua_newthread(L);
  lua_pushcfunction(L, handle);
  lua_createtable(L, 0, 4);
  push_available(L, 2);
  lua_getfield(L, 2, "lists");
  lua_pushcclosure(L, call_selector, UPVALUES);
  lua_xmove(L, thread, RESTS);
  lua_rawseti(L, 2, all->depth);
  return 0;
}

/* The thread for the depth that is reached. NULL when there is no memory for it. */
static lua_State *thread_for_depth(rmq_lua_selectors *all) {
  lua_State *L = rmq_vm_state(all->vm);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_rawgeti(L, -1, all->depth);
  lua_State *thread = lua_tothread(L, -1);
  lua_pop(L, 2);
  if (thread) return thread;
  if (lua_cpcall(L, make_thread, all) != 0) {
    lua_pop(L, 1);
    return NULL;
  }
  return thread_for_depth(all);
}

int rmq_lua_select(rmq_lua_selectors *all, const rmq_lua_selector_call *values,
                   const rmq_choice *choice, rmq_queue_ref *queue, rmq_failure *why) {
  call c = {values, choice, queue, why, NULL, 0};
  if (all->depth == DEPTH_MAX) {
    fail(&c, "selectors that send with selectors are nested too deep");
    return RMQ_ELIMIT;
  }
  all->depth++;
  lua_State *thread = thread_for_depth(all);
  if (!thread) {
    fail(&c, "no memory for its thread");
    c.status = RMQ_ELIMIT;
  } else {
    lua_pushvalue(thread, CALLER);
    lua_pushlightuserdata(thread, &c);
    rmq_guard_call guarded;
    rmq_guard_enter(all->vm, &guarded, thread, "selector");
    int status = lua_pcall(thread, 1, 0, HANDLER);
    rmq_guard_leave(all->vm, &guarded);
    if (status != 0) {
      fail(&c, lua_tostring(thread, -1));
      c.status = RMQ_EINVAL;
    }
    lua_settop(thread, RESTS);
  }
  all->depth--;
  return c.status;
}

void rmq_lua_selectors_open(lua_State *L, rmq_lua_selectors *all, rmq_producer *producer) {
  lua_createtable(L, 1, 2);
  lua_newtable(L);
  lua_setfield(L, -2, "lists");
  rmq_producer **current = lua_newuserdata(L, sizeof *current);
  *current = producer;
  lua_setfield(L, -2, "current");
  *all = (rmq_lua_selectors){.vm = rmq_vm_of(L), .current = current};
  all->kept = luaL_ref(L, LUA_REGISTRYINDEX);
}

void rmq_lua_selectors_close(rmq_lua_selectors *all) {
  *all->current = NULL;
  luaL_unref(rmq_vm_state(all->vm), LUA_REGISTRYINDEX, all->kept);
}

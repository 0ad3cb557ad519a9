#include "binding/lua_queues.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <uv.h>

#include "base/shown.h"
#include "base/ticks.h"
#include "binding/lua_result.h"

/* --- Making --- */

/* How long a selector may take, in nanoseconds, before it counts as one that went through the list: what a
 * look at all of a short one takes, or what a compiled loop over a long one takes. */
static uint64_t limit_of(const rmq_lua_queues *list) {
  enum { LOOK_NS = 4, LOOP_NS = 1, QUICK_NS = 1000 };
  uint64_t look = list->n * LOOK_NS, loop = list->n * LOOP_NS;
  if (look <= QUICK_NS) return look;
  return loop > QUICK_NS ? loop : QUICK_NS;
}

/* So many nanoseconds in ticks. Making the list took `ticks` and `ns`, which is long enough to find out how
 * long a tick is. A counter that seems faster than any processor's has leapt, perhaps back: then no time at
 * all is enough, and the list is looked at whole each time. */
static uint64_t limit_in_ticks(uint64_t limit_ns, uint64_t ticks, uint64_t ns) {
  enum { TICKS_A_NS_MAX = 16 };
  double ticks_a_ns = (double)ticks / (double)(ns + 1);
  return ticks_a_ns < TICKS_A_NS_MAX ? (uint64_t)((double)limit_ns * ticks_a_ns) : 0;
}

static void push_queues(lua_State *L, rmq_lua_queues *list, const rmq_choice *choice) {
  const rmq_publish *publish = choice->publish;
  lua_createtable(L, (int)list->n, 0);
  for (size_t i = 0; i < list->n; i++) {
    const rmq_publish_queue *queue = rmq_publish_sorted(publish, i);
    list->at[i] = rmq_lua_push_queue(
        L, choice->topic, rmq_slice_text(publish->brokers[queue->broker].name), queue->id);
    rmq_lua_queue_set_place(list->at[i], (uint32_t)i);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

rmq_lua_queues *rmq_lua_queues_make(lua_State *L, const rmq_choice *choice) {
  size_t n = choice->publish->n_queues;
  rmq_lua_queues *list = lua_newuserdata(L, sizeof *list + n * sizeof list->at[0]);
  int memory = lua_gettop(L);
  *list = (rmq_lua_queues){.version = choice->publish->version, .n = n};
  uint64_t ticks = rmq_ticks(), ns = uv_hrtime();
  push_queues(L, list, choice);
  list->limit = limit_in_ticks(limit_of(list), rmq_ticks() - ticks, uv_hrtime() - ns);
  lua_setfenv(L, memory);
  rmq_lua_push_queue_metatable(L);
  list->metatable = lua_topointer(L, -1);
  lua_pop(L, 1);
  rmq_lua_queues_refill(L, memory);
  lua_pop(L, 1);
  return list;
}

void rmq_lua_queues_refill(lua_State *L, int index) {
  const rmq_lua_queues *list = lua_touserdata(L, index);
  lua_getfenv(L, index);
  lua_createtable(L, (int)list->n, 0);
  for (size_t i = 1; i <= list->n; i++) {
    lua_rawgeti(L, -2, (int)i);
    lua_rawseti(L, -2, (int)i);
  }
  lua_pushvalue(L, -1);
  lua_rawseti(L, -3, 0);
  lua_remove(L, -2);
}

void rmq_lua_queues_push(lua_State *L, int index) {
  lua_getfenv(L, index);
  lua_rawgeti(L, -1, 0);
  lua_remove(L, -2);
}

/* --- Looking --- */

/* True when `count` places from `first` on hold their queues. At most RMQ_QUEUES_FEW. */
static bool are_in_place(lua_State *L, int index, const rmq_lua_queues *list, size_t first,
                         size_t count) {
  int top = lua_gettop(L);
  for (size_t i = 0; i < count; i++) lua_rawgeti(L, index, (int)(first + i) + 1);
  bool same = true;
  for (size_t i = 0; same && i < count; i++) {
    same = lua_touserdata(L, top + 1 + (int)i) == list->at[first + i];
  }
  lua_settop(L, top);
  return same;
}

static bool all_are_in_place(lua_State *L, int index, const rmq_lua_queues *list) {
  for (size_t at = 0; at < list->n; at += RMQ_QUEUES_FEW) {
    size_t left = list->n - at, count = left < RMQ_QUEUES_FEW ? left : RMQ_QUEUES_FEW;
    if (!are_in_place(L, index, list, at, count)) return false;
  }
  return true;
}

bool rmq_lua_queues_unharmed(lua_State *L, int index, const rmq_lua_queues *list) {
  return lua_objlen(L, index) == list->n && all_are_in_place(L, index, list);
}

void rmq_lua_queues_begin(rmq_lua_queues *list) {
  if (list->n > RMQ_QUEUES_FEW) list->began = rmq_ticks();
}

void rmq_lua_queues_end(rmq_lua_queues *list) {
  if (list->n <= RMQ_QUEUES_FEW) return;
  if (rmq_ticks() - list->began >= list->limit) list->suspect = true;
}

/* --- Finding --- */

int64_t rmq_lua_queues_own_place(lua_State *L, int index, const rmq_lua_queues *list) {
  const void *queue = lua_touserdata(L, index);
  if (!queue || !lua_getmetatable(L, index)) return -1;
  bool is_queue = lua_topointer(L, -1) == list->metatable;
  lua_pop(L, 1);
  if (!is_queue) return -1;
  uint32_t place = rmq_lua_queue_place(queue);
  return place < list->n && list->at[place] == queue ? (int64_t)place : -1;
}

bool rmq_lua_read_queue_table(lua_State *L, int index, rmq_slice *topic, rmq_slice *broker,
                              double *id) {
  int top = lua_gettop(L);
  lua_pushvalue(L, index);
  lua_getfield(L, -1, "topic");
  lua_getfield(L, -2, "broker");
  lua_getfield(L, -3, "id");
  bool has_topic = lua_type(L, -3) == LUA_TSTRING;
  bool good = (has_topic || lua_isnil(L, -3)) && lua_type(L, -2) == LUA_TSTRING &&
              lua_type(L, -1) == LUA_TNUMBER;
  if (good) {
    if (has_topic) topic->ptr = lua_tolstring(L, -3, &topic->len);
    broker->ptr = lua_tolstring(L, -2, &broker->len);
    *id = lua_tonumber(L, -1);
  }
  lua_settop(L, top);
  return good;
}

static int64_t place_by_value(const rmq_choice *choice, rmq_slice topic, rmq_slice broker,
                              double id) {
  if (!rmq_slice_equal(topic, choice->topic)) return -1;
  int32_t at = rmq_publish_broker_find(choice->publish, broker);
  if (at < 0 || !(id >= 0 && id <= INT32_MAX && floor(id) == id)) return -1;
  return rmq_publish_place(choice->publish, at, (int32_t)id);
}

int64_t rmq_lua_queues_place(lua_State *L, int index, const rmq_lua_queues *list,
                             const rmq_choice *choice) {
  int64_t place = rmq_lua_queues_own_place(L, index, list);
  if (place >= 0) return place;
  rmq_slice topic = choice->topic, broker;
  int32_t number = 0;
  double id = 0;
  if (rmq_lua_to_queue(L, index, &topic, &broker, &number)) {
    id = number;
  } else if (lua_type(L, index) != LUA_TTABLE ||
             !rmq_lua_read_queue_table(L, index, &topic, &broker, &id)) {
    lua_pushfstring(L, lua_isnil(L, index) ? "%s" : "a %s", luaL_typename(L, index));
    return -1;
  }
  place = place_by_value(choice, topic, broker, id);
  if (place >= 0) return place;
  char text[400];
  snprintf(text, sizeof text, "%.*s@%.*s#%.17g, which is none of them", (int)topic.len, topic.ptr,
           (int)broker.len, broker.ptr, rmq_shown(id));
  lua_pushstring(L, text);
  return -1;
}

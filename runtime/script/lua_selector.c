#include "script/lua_selector.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/error.h"
#include "base/memory.h"
#include "script/guard.h"
#include "script/lua_queues.h"
#include "script/lua_result.h"

/* The stack of a thread while it rests. */
enum { HANDLER = 1, CALLER, RESTS = CALLER };

/* The upvalues of the function that calls a selector: the metatable of ctx tables and the one that was
 * handed out last, the memories of lists by topic, and the list that was handed out last. */
enum { CTX_METATABLE = 1, CTX, LISTS, MEMORY, QUEUES, UPVALUES = QUEUES };

/* One call of a selector. */
typedef struct call {
  const rmq_lua_selector_call *values;
  const rmq_choice *choice;
  const rmq_publish_queue **queue;
  rmq_failure *why;
  rmq_lua_queues *list; /* NULL until it is there */
  bool nested;          /* another selector has not ended */
  int status;
} call;

/* What the functions in a ctx know: a userdata that outlives the producer when a script keeps them. */
struct rmq_lua_selector_now {
  rmq_producer *producer; /* NULL once it is gone */
  const call *running;    /* NULL: no selector runs */
};

/* --- The list --- */

/* Finds or makes the list of the choice's topic, for the upvalues. */
static rmq_lua_queues *change_list(lua_State *L, const rmq_choice *choice) {
  lua_pushlstring(L, choice->topic.ptr, choice->topic.len);
  lua_pushvalue(L, -1);
  lua_rawget(L, lua_upvalueindex(LISTS));
  rmq_lua_queues *list = lua_touserdata(L, -1);
  if (list && list->version == choice->publish->version) {
    rmq_lua_queues_push(L, lua_gettop(L));
  } else {
    lua_pop(L, 1);
    list = rmq_lua_queues_make(L, choice);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_rawset(L, lua_upvalueindex(LISTS));
  }
  lua_replace(L, lua_upvalueindex(QUEUES));
  lua_replace(L, lua_upvalueindex(MEMORY));
  lua_pop(L, 1);
  return list;
}

/* Pushes the list as a selector is to see it. */
static void push_list(lua_State *L, call *c) {
  rmq_lua_queues *list = lua_touserdata(L, lua_upvalueindex(MEMORY));
  if (!list || list->version != c->choice->publish->version) list = change_list(L, c->choice);
  if (c->nested) list->suspect = true;
  lua_pushvalue(L, lua_upvalueindex(QUEUES));
  if (!rmq_lua_queues_unharmed(L, lua_gettop(L), list)) {
    lua_pop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(MEMORY));
    rmq_lua_queues_refill(L, lua_gettop(L));
    lua_pushvalue(L, -1);
    lua_replace(L, lua_upvalueindex(QUEUES));
    lua_remove(L, -2);
  }
  c->list = list;
}

/* True when the list that the thread's selector has failed with is not whole. */
static bool was_harmed(lua_State *thread, rmq_lua_queues *list) {
  lua_getupvalue(thread, CALLER, QUEUES);
  list->suspect = true;
  bool harmed = !rmq_lua_queues_unharmed(thread, lua_gettop(thread), list);
  list->suspect = harmed;
  lua_pop(thread, 1);
  return harmed;
}

/* --- Answers --- */

static void push_selector(lua_State *L, const rmq_lua_selector_call *values);

/* Pushes where the selector is written: " at script.lua:7", or nothing for one of C. */
static void push_place_of(lua_State *L, const rmq_lua_selector_call *values) {
  lua_Debug info = {.what = "C"};
  push_selector(L, values);
  if (lua_isfunction(L, -1)) {
    lua_getinfo(L, ">S", &info);
  } else {
    lua_pop(L, 1);
  }
  if (strcmp(info.what, "C") == 0) {
    lua_pushliteral(L, "");
  } else {
    lua_pushfstring(L, " at %s:%d", info.short_src, info.linedefined);
  }
}

/* The selector has given something (the text on top of the stack) that is no choice. */
static void refuse(lua_State *L, call *c) {
  const char *what = lua_tostring(L, -1);
  push_place_of(L, c->values);
  rmq_failure_set(c->why, RMQ_KIND_SELECTOR, 0,
                  "Sending to topic \"%.*s\" failed: the selector%s returned %s. It must return "
                  "one of the %zu queues that it is given, or the number of one, from 1 to %zu.",
                  (int)c->choice->topic.len, c->choice->topic.ptr, lua_tostring(L, -1), what,
                  c->list->n, c->list->n);
  c->status = RMQ_EINVAL;
}

static void take(call *c, int64_t place) {
  *c->queue = rmq_publish_sorted(c->choice->publish, (size_t)place);
}

static bool take_number(lua_State *L, call *c) {
  double number = lua_tonumber(L, -1);
  if (number >= 1 && number <= (double)c->list->n && floor(number) == number) {
    take(c, (int64_t)number - 1);
    return true;
  }
  char text[40];
  snprintf(text, sizeof text, "%.17g", number);
  lua_pushstring(L, text);
  return false;
}

static bool take_queue(lua_State *L, call *c) {
  int64_t place = rmq_lua_queues_place(L, lua_gettop(L), c->list, c->choice);
  if (place < 0) return false;
  take(c, place);
  return true;
}

/* --- The call --- */

static void push_field(lua_State *L, const rmq_lua_selector_call *values, int field) {
  if (field == 0) {
    lua_pushnil(L);
    return;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, values->table);
  lua_rawgeti(L, -1, field);
  lua_remove(L, -2);
}

static void push_selector(lua_State *L, const rmq_lua_selector_call *values) {
  if (values->from) {
    lua_pushvalue(values->from, values->selector);
    lua_xmove(values->from, L, 1);
  } else {
    push_field(L, values, values->selector);
  }
}

static void push_message_and_arg(lua_State *L, const rmq_lua_selector_call *values) {
  if (values->from) {
    lua_pushvalue(values->from, values->message);
    lua_pushvalue(values->from, values->arg);
    lua_xmove(values->from, L, 2);
  } else {
    push_field(L, values, values->message);
    push_field(L, values, values->arg);
  }
}

static void push_new_ctx(lua_State *L) {
  lua_createtable(L, 0, 2);
  lua_pushvalue(L, lua_upvalueindex(CTX_METATABLE));
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_replace(L, lua_upvalueindex(CTX));
}

/* Pushes the ctx. What is the same for all calls it gets from its metatable, so the table is empty at first
 * attempts; where it is not, because it was told of a retry or a selector wrote into it, there will be
 * another one. */
static void push_ctx(lua_State *L, const rmq_choice *choice) {
  lua_pushvalue(L, lua_upvalueindex(CTX));
  lua_pushnil(L);
  if (lua_next(L, -2)) {
    lua_pop(L, 3);
    push_new_ctx(L);
  }
  if (choice->attempt > 1) {
    lua_pushinteger(L, choice->attempt);
    lua_setfield(L, -2, "attempt");
  }
  if (choice->last_broker.len > 0) {
    lua_pushlstring(L, choice->last_broker.ptr, choice->last_broker.len);
    lua_setfield(L, -2, "last_broker");
  }
}

/* Runs protected, on a thread of its own, with a call as its argument. */
static int call_selector(lua_State *L) {
  call *c = lua_touserdata(L, 1);
  push_selector(L, c->values);
  push_list(L, c);
  push_message_and_arg(L, c->values);
  push_ctx(L, c->choice);
  uint64_t began = rmq_lua_queues_begin(c->list);
  lua_call(L, 4, 1);
  rmq_lua_queues_end(c->list, began);
  bool good = lua_type(L, -1) == LUA_TNUMBER ? take_number(L, c) : take_queue(L, c);
  if (!good) refuse(L, c);
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

static void fail(const call *c, const char *place, const char *text) {
  rmq_failure_set(c->why, RMQ_KIND_SELECTOR, 0,
                  "Sending to topic \"%.*s\" failed: its selector%s: ", (int)c->choice->topic.len,
                  c->choice->topic.ptr, place);
  rmq_buf_text(&c->why->message, text ? text : "an error without a text");
}

/* True when the first line of an error's text has ":7:" in it, as an error has that says where. */
static bool says_where(const char *text) {
  for (; *text && *text != '\n'; text++) {
    if (*text != ':') continue;
    size_t digits = strspn(text + 1, "0123456789");
    if (digits > 0 && text[digits + 1] == ':') return true;
  }
  return false;
}

/* Runs protected, with a call and an error's text as its arguments. */
static int tell_error(lua_State *L) {
  const call *c = lua_touserdata(L, 1);
  const char *text = lua_tostring(L, 2);
  if (text && says_where(text)) {
    fail(c, "", text);
  } else {
    push_place_of(L, c->values);
    fail(c, lua_tostring(L, -1), text);
  }
  return 0;
}

/* --- What a ctx has --- */

static struct rmq_lua_selector_now *now_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

/* The broker of the queue that a function of the ctx is given. */
static rmq_slice broker_given(lua_State *L, const char *function) {
  rmq_slice topic, broker = {NULL, 0};
  int32_t number;
  double id;
  lua_settop(L, 1);
  if (!rmq_lua_to_queue(L, 1, &topic, &broker, &number) &&
      (lua_type(L, 1) != LUA_TTABLE || !rmq_lua_read_queue_table(L, 1, &broker, &id))) {
    luaL_error(L, "%s must be given a queue, not %s", function, luaL_typename(L, 1));
  }
  return broker;
}

/* available(queue): false when there is reason not to choose it now. */
static int available(lua_State *L) {
  rmq_slice broker = broker_given(L, "available");
  const struct rmq_lua_selector_now *now = now_of(L);
  lua_pushboolean(L, now->producer && rmq_producer_available(now->producer, broker));
  return 1;
}

/* failures(queue): how many attempts at its broker have failed so far. */
static int failures(lua_State *L) {
  rmq_slice broker = broker_given(L, "failures");
  const struct rmq_lua_selector_now *now = now_of(L);
  lua_pushnumber(L, now->producer ? (lua_Number)rmq_producer_failures(now->producer, broker) : 0);
  return 1;
}

static int64_t best_place(const rmq_choice *choice) {
  const rmq_publish_queue *queue = rmq_choice_best(choice);
  return rmq_publish_place(choice->publish, queue->broker, queue->id);
}

/* Notes in a new userdata, left on the stack, at which number of the list at 1 each place's queue
 * stands; 0: nowhere. */
static const uint32_t *number_places(lua_State *L, const call *c, size_t n) {
  uint32_t *numbers = lua_newuserdata(L, (c->list->n + 1) * sizeof *numbers);
  memset(numbers, 0, (c->list->n + 1) * sizeof *numbers);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, (int)i);
    int64_t place = rmq_lua_queues_place(L, lua_gettop(L), c->list, c->choice);
    if (place < 0)
      luaL_error(L, "best: number %d of the queues is %s", (int)i, lua_tostring(L, -1));
    numbers[place] = (uint32_t)i;
    lua_pop(L, 1);
  }
  return numbers;
}

/* best(queues): the number of the queue that the producer would choose by itself; of a part of the
 * queues, the first one of its choices that is in it. */
static int best(lua_State *L) {
  const struct rmq_lua_selector_now *now = now_of(L);
  const call *c = now->running;
  if (!c || !c->list) {
    return luaL_error(L, "ctx.best answers only while the selector runs that the ctx was given to");
  }
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  size_t n = lua_objlen(L, 1);
  if (n == 0) return luaL_error(L, "best: the list of queues is empty");
  int64_t place = best_place(c->choice);
  lua_rawgeti(L, 1, (int)place + 1);
  if (n != c->list->n || lua_touserdata(L, -1) != c->list->at[place]) {
    const uint32_t *numbers = number_places(L, c, n);
    /* Its choices go round, so all queues come up that it would take at all. */
    for (size_t i = 1; i < c->list->n && !numbers[place]; i++) place = best_place(c->choice);
    lua_pushinteger(L, (lua_Integer)(numbers[place] ? numbers[place] : (size_t)place % n + 1));
  } else {
    lua_pushinteger(L, (lua_Integer)place + 1);
  }
  return 1;
}

/* --- Threads --- */

/* Sets a function of the ctx in the table on top. */
static void set_function(lua_State *L, int kept, const char *name, lua_CFunction function) {
  lua_getfield(L, kept, "now");
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

static void push_ctx_metatable(lua_State *L, int kept) {
  lua_createtable(L, 0, 2);
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, 1);
  lua_setfield(L, -2, "attempt");
  set_function(L, kept, "available", available);
  set_function(L, kept, "failures", failures);
  set_function(L, kept, "best", best);
  lua_setfield(L, -2, "__index");
  lua_pushliteral(L, "selector's ctx"); /* out of reach, because all calls share it */
  lua_setfield(L, -2, "__metatable");
}

/* Runs protected: makes the thread for the depth that is reached. */
static int make_thread(lua_State *L) {
  rmq_lua_selectors *all = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_State *thread = lua_newthread(L);
  lua_pushcfunction(L, handle);
  push_ctx_metatable(L, 2);
  lua_createtable(L, 0, 2);
  lua_pushvalue(L, -2);
  lua_setmetatable(L, -2);
  lua_getfield(L, 2, "lists");
  lua_pushnil(L);
  lua_pushnil(L);
  lua_pushcclosure(L, call_selector, UPVALUES);
  lua_xmove(L, thread, RESTS);
  lua_rawseti(L, 2, all->depth);
  all->threads[all->depth - 1] = thread;
  return 0;
}

/* The thread for the depth that is reached. NULL when there is no memory for it. */
static lua_State *thread_for_depth(rmq_lua_selectors *all) {
  lua_State **thread = &all->threads[all->depth - 1];
  if (!*thread) {
    lua_State *L = rmq_vm_state(all->vm);
    if (lua_cpcall(L, make_thread, all) != 0) lua_pop(L, 1);
  }
  return *thread;
}

static void ask(rmq_vm *vm, lua_State *thread, call *c) {
  c->status = 0;
  lua_pushvalue(thread, CALLER);
  lua_pushlightuserdata(thread, c);
  rmq_guard_call guarded;
  rmq_guard_enter(vm, &guarded, thread, "selector");
  int status = lua_pcall(thread, 1, 0, HANDLER);
  rmq_guard_leave(vm, &guarded);
  if (status != 0) {
    c->status = RMQ_EINVAL;
    lua_pushcfunction(thread, tell_error);
    lua_pushlightuserdata(thread, c);
    lua_pushvalue(thread, -3);
    if (lua_pcall(thread, 2, 0, 0) != 0) fail(c, "", lua_tostring(thread, -1));
  }
  lua_settop(thread, RESTS);
}

int rmq_lua_select(rmq_lua_selectors *all, const rmq_lua_selector_call *values,
                   const rmq_choice *choice, const rmq_publish_queue **queue, rmq_failure *why) {
  call c = {values, choice, queue, why, NULL, all->depth > 0, 0};
  if (all->depth == RMQ_SELECTOR_DEPTH_MAX) {
    fail(&c, "", "selectors that send with selectors are nested too deep");
    return RMQ_ELIMIT;
  }
  all->depth++;
  const call *outer = all->now->running;
  all->now->running = &c;
  lua_State *thread = thread_for_depth(all);
  if (!thread) {
    fail(&c, "", "no memory for its thread");
    c.status = RMQ_ELIMIT;
  } else {
    ask(all->vm, thread, &c);
    /* It may have failed for what the selector before has left of the list. */
    if (c.status < 0 && c.list && was_harmed(thread, c.list)) {
      ask(all->vm, thread, &c);
      c.list->suspect = true;
    }
  }
  all->now->running = outer;
  all->depth--;
  return c.status;
}

void rmq_lua_selectors_open(lua_State *L, rmq_lua_selectors *all, rmq_producer *producer) {
  lua_createtable(L, 1, 2);
  lua_newtable(L);
  lua_setfield(L, -2, "lists");
  struct rmq_lua_selector_now *now = lua_newuserdata(L, sizeof *now);
  *now = (struct rmq_lua_selector_now){producer, NULL};
  lua_setfield(L, -2, "now");
  *all = (rmq_lua_selectors){.vm = rmq_vm_of(L), .now = now};
  all->kept = luaL_ref(L, LUA_REGISTRYINDEX);
}

void rmq_lua_selectors_close(rmq_lua_selectors *all) {
  all->now->producer = NULL;
  luaL_unref(rmq_vm_state(all->vm), LUA_REGISTRYINDEX, all->kept);
}

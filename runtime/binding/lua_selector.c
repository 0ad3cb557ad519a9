#include "binding/lua_selector.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/shown.h"
#include "binding/lua_queues.h"
#include "binding/lua_result.h"
#include "script/guard.h"
#include "script/loader.h"

/* The stack of a thread while it rests: C functions, because even these take memory to push; then the
 * asker of the list that was asked about last (see lua/rocketmq/selector/asker.lua), and that list's
 * memory. */
enum { HANDLE = 1, PREPARE, JUDGE, TELL_ERROR, WAS_HARMED, ASKER, MEMORY, RESTS = MEMORY };

/* The upvalues of what makes askers: the metatable of ctx tables, the function for last_broker, the
 * lists' memories by topic, and the thread's depth. */
enum { CTX_METATABLE = 1, LAST_BROKER, LISTS, DEPTH, UPVALUES = DEPTH };

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

/* look(): the list whose memory is upvalue 1, or another table when that one is not as it was. */
static int look(lua_State *L) {
  int memory = lua_upvalueindex(1);
  rmq_lua_queues *list = lua_touserdata(L, memory);
  rmq_lua_queues_push(L, memory);
  if (!rmq_lua_queues_unharmed(L, lua_gettop(L), list)) rmq_lua_queues_refill(L, memory);
  list->suspect = false;
  rmq_lua_queues_begin(list); /* only now: the look's own time does not count */
  return 1;
}

/* Pushes the memory of the list for the choice's topic. */
static void push_memory(lua_State *L, const rmq_choice *choice) {
  lua_pushlstring(L, choice->topic.ptr, choice->topic.len);
  lua_pushvalue(L, -1);
  lua_rawget(L, lua_upvalueindex(LISTS));
  const rmq_lua_queues *list = lua_touserdata(L, -1);
  if (!list || list->version != choice->publish->version) {
    lua_pop(L, 1);
    rmq_lua_queues_make(L, choice);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, lua_upvalueindex(LISTS));
  }
  lua_remove(L, -2);
}

/* Runs protected with a call as its argument: gives the asker for the choice's list, and the list's
 * memory. The list keeps the askers, one for each depth. */
static int prepare(lua_State *L) {
  const call *c = lua_touserdata(L, 1);
  int depth = (int)lua_tointeger(L, lua_upvalueindex(DEPTH));
  push_memory(L, c->choice);
  int memory = lua_gettop(L);
  lua_getfenv(L, memory);
  lua_rawgeti(L, -1, -depth);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    rmq_loader_run(L, "rocketmq.selector.asker", 0);
    lua_pushvalue(L, memory);
    lua_pushcclosure(L, look, 1);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, lua_upvalueindex(CTX_METATABLE));
    lua_pushvalue(L, lua_upvalueindex(LAST_BROKER));
    lua_call(L, 4, 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, -depth);
  }
  lua_pushvalue(L, memory);
  return 2;
}

/* Runs protected with a list's memory as its argument: whether the list is not whole. */
static int was_harmed(lua_State *L) {
  rmq_lua_queues *list = lua_touserdata(L, 1);
  rmq_lua_queues_push(L, 1);
  bool harmed = !rmq_lua_queues_unharmed(L, lua_gettop(L), list);
  list->suspect = harmed;
  lua_pushboolean(L, harmed);
  return 1;
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

static bool take_number(call *c, double number) {
  if (!(number >= 1 && number <= (double)c->list->n && floor(number) == number)) return false;
  take(c, (int64_t)number - 1);
  return true;
}

/* Takes the answer on top of the stack when that needs no protection. */
static bool take_at_once(lua_State *L, call *c) {
  if (lua_type(L, -1) == LUA_TNUMBER) return take_number(c, lua_tonumber(L, -1));
  int64_t place = rmq_lua_queues_own_place(L, lua_gettop(L), c->list);
  if (place >= 0) take(c, place);
  return place >= 0;
}

/* Runs protected with a call and an answer as its arguments: takes it, or refuses it. */
static int judge(lua_State *L) {
  call *c = lua_touserdata(L, 1);
  if (lua_type(L, 2) == LUA_TNUMBER) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", rmq_shown(lua_tonumber(L, 2)));
    lua_pushstring(L, text);
    refuse(L, c);
    return 0;
  }
  int64_t place = rmq_lua_queues_place(L, 2, c->list, c->choice);
  if (place >= 0) {
    take(c, place);
  } else {
    refuse(L, c);
  }
  return 0;
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

/* Selector, message and argument. */
static void push_all(lua_State *L, const rmq_lua_selector_call *values) {
  if (values->from) {
    lua_pushvalue(values->from, values->selector);
    lua_pushvalue(values->from, values->message);
    lua_pushvalue(values->from, values->arg);
    lua_xmove(values->from, L, 3);
  } else {
    push_field(L, values, values->selector);
    push_field(L, values, values->message);
    push_field(L, values, values->arg);
  }
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
  rmq_slice topic = {NULL, 0}, broker = {NULL, 0};
  int32_t number;
  double id;
  lua_settop(L, 1);
  if (!rmq_lua_to_queue(L, 1, &topic, &broker, &number) &&
      (lua_type(L, 1) != LUA_TTABLE || !rmq_lua_read_queue_table(L, 1, &topic, &broker, &id))) {
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

/* last_broker(): of the attempt that is to be made. */
static int last_broker(lua_State *L) {
  const struct rmq_lua_selector_now *now = now_of(L);
  rmq_slice broker = now->running ? now->running->choice->last_broker : (rmq_slice){NULL, 0};
  if (broker.len == 0) return 0;
  lua_pushlstring(L, broker.ptr, broker.len);
  return 1;
}

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
  lua_getfield(L, 2, "now");
  lua_pushcclosure(L, last_broker, 1);
  lua_getfield(L, 2, "lists");
  lua_pushinteger(L, all->depth);
  lua_pushcclosure(L, prepare, UPVALUES);
  lua_pushcfunction(L, judge);
  lua_pushcfunction(L, tell_error);
  lua_pushcfunction(L, was_harmed);
  lua_pushnil(L);
  lua_pushnil(L);
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

/* The error on top of the stack ends the call. */
static void end_with_error(lua_State *thread, call *c) {
  c->status = RMQ_EINVAL;
  lua_pushvalue(thread, TELL_ERROR);
  lua_pushlightuserdata(thread, c);
  lua_pushvalue(thread, -3);
  if (lua_pcall(thread, 2, 0, 0) != 0) fail(c, "", lua_tostring(thread, -1));
}

/* Lets the thread's asker and list be those of the choice. */
static bool get_ready(lua_State *thread, call *c) {
  c->list = lua_touserdata(thread, MEMORY);
  if (c->list && c->list->version == c->choice->publish->version) return true;
  c->list = NULL;
  lua_pushvalue(thread, PREPARE);
  lua_pushlightuserdata(thread, c);
  if (lua_pcall(thread, 1, 2, HANDLE) != 0) {
    end_with_error(thread, c);
    return false;
  }
  c->list = lua_touserdata(thread, -1);
  lua_replace(thread, MEMORY);
  lua_replace(thread, ASKER);
  return true;
}

/* Pushes the asker and its arguments, and returns how many those are. */
static int push_question(lua_State *thread, const call *c) {
  const rmq_choice *choice = c->choice;
  lua_pushvalue(thread, ASKER);
  push_all(thread, c->values);
  if (choice->attempt == 1 && !c->list->suspect) return 3;
  lua_pushboolean(thread, c->list->suspect);
  if (choice->attempt == 1) return 4;
  lua_pushinteger(thread, choice->attempt);
  return 5;
}

static void take_answer(lua_State *thread, call *c) {
  if (take_at_once(thread, c)) return;
  lua_pushvalue(thread, JUDGE);
  lua_pushlightuserdata(thread, c);
  lua_pushvalue(thread, -3);
  if (lua_pcall(thread, 2, 0, HANDLE) != 0) end_with_error(thread, c);
}

static void ask(rmq_vm *vm, lua_State *thread, call *c) {
  c->status = 0;
  if (get_ready(thread, c)) {
    if (c->nested) c->list->suspect = true;
    rmq_guard_call guarded;
    int n_args = push_question(thread, c);
    rmq_lua_queues_begin(c->list);
    rmq_guard_enter(vm, &guarded, thread, "selector");
    int status = lua_pcall(thread, n_args, 1, HANDLE);
    rmq_guard_leave(vm, &guarded);
    rmq_lua_queues_end(c->list);
    if (status == 0) {
      take_answer(thread, c);
    } else {
      end_with_error(thread, c);
    }
  }
  lua_settop(thread, RESTS);
}

/* A selector may have failed for what the one before has left of the list: then it is asked again. */
static void ask_again_if_harmed(rmq_vm *vm, lua_State *thread, call *c) {
  lua_pushvalue(thread, WAS_HARMED);
  lua_pushvalue(thread, MEMORY);
  bool harmed = lua_pcall(thread, 1, 1, 0) == 0 && lua_toboolean(thread, -1);
  lua_settop(thread, RESTS);
  if (!harmed) return;
  ask(vm, thread, c);
  if (c->list) c->list->suspect = true;
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
    if (c.status < 0 && c.list) ask_again_if_harmed(all->vm, thread, &c);
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

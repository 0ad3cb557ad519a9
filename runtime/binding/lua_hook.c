#include "binding/lua_hook.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "binding/lua_hook_ctx.h"
#include "binding/lua_hook_set.h"
#include "net/uv/uv_io.h"
#include "script/guard.h"

/* The stack of a thread while it rests: the handler of errors, and the functions that are called on it. */
enum { HANDLER = 1, CALLER, COLLECTOR, RESTS = COLLECTOR };

/* The upvalues of the function that calls hooks. */
enum { SLOTS = 1, CTX_METATABLE, REQUEST_METATABLE, BOX, UPVALUES = BOX };

/* States are made in blocks that are never moved, because the core holds pointers into them. */
enum { BLOCK = 32 };

/* One call of the core's, while it is handled. */
typedef struct rmq_lua_hook_handling {
  rmq_lua_hooks *all;
  rmq_lua_hook_event *event;
  rmq_lua_hook_set *set;
  rmq_failure *why; /* where a refusal goes; NULL: nothing can be refused */
  size_t at;        /* the hook whose turn it is */
  int status;
} handling;

/* --- States --- */

/* Fields that are there already can be set later without memory. */
static void make_slots(lua_State *L, rmq_lua_hooks *all) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  for (int i = 1; i <= 2 * BLOCK; i++) {
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, all->n_slots + i);
  }
  lua_pop(L, 1);
}

static void add_block(lua_State *L, rmq_lua_hooks *all) {
  make_slots(L, all);
  all->blocks = rmq_realloc(all->blocks, (all->n_blocks + 1) * sizeof *all->blocks);
  rmq_lua_hook_state *block = rmq_alloc_zero(BLOCK, sizeof *block);
  all->blocks[all->n_blocks++] = block;
  for (int i = BLOCK - 1; i >= 0; i--) {
    block[i].slot = all->n_slots + 2 * i + 1;
    block[i].next = all->free;
    all->free = &block[i];
  }
  all->n_slots += 2 * BLOCK;
}

/* May raise, for want of memory. */
static rmq_lua_hook_state *take_state(lua_State *L, rmq_lua_hooks *all, rmq_lua_hook_set *set) {
  if (!all->free) add_block(L, all);
  rmq_lua_hook_state *state = all->free;
  all->free = state->next;
  state->set = rmq_lua_hook_set_hold(set);
  state->ctx = state->message = NULL;
  state->filled = 0;
  return state;
}

static void give_back(rmq_lua_hooks *all, rmq_lua_hook_state *state) {
  lua_State *L = rmq_vm_state(all->vm);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  for (int i = 0; i < (state->message ? 2 : 1); i++) {
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, state->slot + i);
  }
  lua_pop(L, 1);
  rmq_lua_hook_set_let_go(all, state->set);
  state->set = NULL;
  state->next = all->free;
  all->free = state;
}

/* --- Errors --- */

static int handle_error(lua_State *L) {
  if (!lua_isstring(L, 1) && !luaL_callmeta(L, 1, "__tostring")) {
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  }
  const char *text = lua_tostring(L, -1);
  if (text && (strstr(text, "attempt to yield across C-call boundary") ||
               strstr(text, "attempt to yield from outside a coroutine"))) {
    lua_pushfstring(L, "%s: a hook has to answer at once, it cannot yield or wait", text);
    text = lua_tostring(L, -1);
  }
  luaL_traceback(L, L, text, 1);
  return 1;
}

/* Counts an error, whose text has a traceback behind it. */
static void note_error(const handling *h, const char *text) {
  h->all->errors++;
  rmq_lua_hook_tell(h->set->hooks[h->at].hook, rmq_vm_log(h->all->vm), h->event->function, text);
}

static rmq_slice topic_of(const handling *h) {
  const rmq_hook_attempt *attempt = h->event->attempt;
  return attempt ? attempt->topic : rmq_slice_make("", 0);
}

/* Refuses the send with a sentence about the hook whose turn it is. */
static void refuse(handling *h, const char *verb, const char *text) {
  rmq_slice topic = topic_of(h);
  rmq_failure_set(h->why, RMQ_KIND_HOOK, 0, "Sending to topic \"%.*s\" %s %s: ", (int)topic.len,
                  topic.ptr, verb, h->set->hooks[h->at].hook->name);
  rmq_buf_text(&h->why->message, text);
  h->status = RMQ_EINVAL;
}

/* The function of the hook has raised the text. */
static void failed(handling *h, const char *text) {
  if (!text) text = "an error without a text";
  note_error(h, text);
  if (!h->why || h->status < 0) return;
  if (h->event->function == RMQ_HOOK_CHECK_FORBIDDEN) {
    refuse(h, "was blocked by hook", text);
  } else if (h->set->hooks[h->at].hook->strict) {
    refuse(h, "failed because of its strict hook", text);
  }
}

/* --- One event --- */

/* Pushes the ctx, which is made when the first function wants it. */
static void push_ctx(lua_State *L, const handling *h) {
  rmq_lua_hook_state *state = h->event->state;
  if (state->ctx) {
    lua_rawgeti(L, lua_upvalueindex(SLOTS), state->slot);
    return;
  }
  if (h->event->transaction) {
    rmq_lua_hook_push_transaction(L, h->event->transaction);
  } else {
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, lua_upvalueindex(h->event->attempt ? CTX_METATABLE : REQUEST_METATABLE));
    lua_setmetatable(L, -2);
  }
  state->ctx = lua_topointer(L, -1);
  lua_pushvalue(L, -1);
  lua_rawseti(L, lua_upvalueindex(SLOTS), state->slot);
}

static void push_function(lua_State *L, const handling *h) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->set->functions);
  lua_rawgeti(L, -1, (int)h->at * RMQ_HOOK_FUNCTIONS + (int)h->event->function + 1);
}

static void push_place(lua_State *L, const handling *h) {
  lua_Debug info;
  push_function(L, h);
  lua_getinfo(L, ">S", &info);
  lua_pushfstring(L, "%s:%d", info.short_src, info.linedefined);
}

/* What check_forbidden has returned, on top of the stack. Whatever is no answer forbids. */
static void take_answer(lua_State *L, handling *h) {
  if (!lua_toboolean(L, -1)) return;
  if (lua_type(L, -1) == LUA_TSTRING) {
    refuse(h, "was blocked by hook", lua_tostring(L, -1));
    return;
  }
  const char *type = luaL_typename(L, -1);
  push_place(L, h);
  lua_pushfstring(L,
                  "its check_forbidden (%s) returned a %s; it must return the reason, a string, or "
                  "nothing to let the message pass",
                  lua_tostring(L, -1), type);
  refuse(h, "was blocked by hook", lua_tostring(L, -1));
}

/* What is wrong with what `before` has left fails the message, whether the hook is strict or not. */
static void take_message(lua_State *L, handling *h) {
  rmq_failure why;
  rmq_failure_init(&why);
  if (rmq_lua_hook_collect(L, h->all, h->event, &why) < 0) {
    rmq_buf_u8(&why.message, 0);
    push_place(L, h);
    lua_pushfstring(L, "its before (%s) has left a message that cannot be sent: %s",
                    lua_tostring(L, -1), (const char *)rmq_buf_head(&why.message));
    h->all->errors++;
    refuse(h, "failed because of hook", lua_tostring(L, -1));
    rmq_failure_clear(&why);
  }
}

static void take_ext(lua_State *L, handling *h) {
  if (rmq_lua_hook_collect_ext(L, h->all, h->event)) return;
  push_place(L, h);
  lua_pushfstring(L, "%s: %s", lua_tostring(L, -1), lua_tostring(L, -3));
  note_error(h, lua_tostring(L, -1));
}

/* What the function whose turn it was has left in its ctx. What is not sent is not shown to `after`. */
static void take_what_is_left(lua_State *L, handling *h) {
  if (h->event->function == RMQ_HOOK_BEFORE) {
    if (!h->event->state->message) return;
    if (h->status == 0) take_message(L, h);
    if (h->status < 0) rmq_lua_hook_forget_message(L, h->all, h->event->state);
  } else if (h->event->function == RMQ_HOOK_BEFORE_REQUEST) {
    take_ext(L, h);
  }
}

/* What is handled now. */
static handling *handled(lua_State *L, int box) {
  rmq_lua_hooks *const *all = lua_touserdata(L, box);
  return (*all)->handling;
}

/* Runs protected: calls the function whose turn it is. */
static int call_hook(lua_State *L) {
  handling *h = handled(L, lua_upvalueindex(BOX));
  if (!h->event->state) h->event->state = take_state(L, h->all, h->set);
  push_function(L, h);
  push_ctx(L, h);
  bool answers = h->event->function == RMQ_HOOK_CHECK_FORBIDDEN;
  lua_call(L, 1, answers ? 1 : 0);
  if (answers) {
    take_answer(L, h);
  } else {
    take_what_is_left(L, h);
  }
  return 0;
}

/* The same for what one has left that has failed. */
static int collect(lua_State *L) {
  take_what_is_left(L, handled(L, lua_upvalueindex(1)));
  return 0;
}

static bool call(lua_State *thread, handling *h, int function) {
  rmq_vm *vm = h->all->vm;
  rmq_guard_call guarded;
  lua_pushvalue(thread, function);
  rmq_guard_enter(vm, &guarded, thread, "hook");
  bool well = lua_pcall(thread, 0, 0, HANDLER) == 0;
  rmq_guard_leave(vm, &guarded);
  if (well) return true;
  failed(h, lua_tostring(thread, -1));
  lua_settop(thread, RESTS);
  return false;
}

static void call_all(lua_State *thread, handling *h) {
  unsigned wanted = 1u << h->event->function;
  bool to_all = h->event->function == RMQ_HOOK_AFTER || !h->why;
  for (; h->at < h->set->n && (h->status == 0 || to_all); h->at++) {
    if (!(h->set->hooks[h->at].has & wanted)) continue;
    if (!call(thread, h, CALLER) && h->event->state) call(thread, h, COLLECTOR);
  }
}

/* --- Threads --- */

/* Runs protected: makes the thread for the depth that is reached. */
static int make_thread(lua_State *L) {
  rmq_lua_hooks *all = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_getfield(L, 2, "threads");
  lua_State *thread = lua_newthread(L);
  lua_pushcfunction(L, handle_error);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, 2, RMQ_HOOK_KEPT_CTX);
  lua_rawgeti(L, 2, RMQ_HOOK_KEPT_REQUEST);
  lua_getfield(L, 2, "box");
  lua_pushcclosure(L, call_hook, UPVALUES);
  lua_getfield(L, 2, "box");
  lua_pushcclosure(L, collect, 1);
  lua_xmove(L, thread, RESTS);
  lua_rawseti(L, 3, all->depth);
  all->threads[all->depth - 1] = thread;
  return 0;
}

/* The thread for the depth that is reached. NULL when there is no memory for it. */
static lua_State *thread_for_depth(rmq_lua_hooks *all) {
  lua_State **thread = &all->threads[all->depth - 1];
  if (!*thread && lua_cpcall(rmq_vm_state(all->vm), make_thread, all) != 0) {
    lua_pop(rmq_vm_state(all->vm), 1);
  }
  return *thread;
}

/* The event could not be handled at all. What cannot be asked does not pass. */
static void could_not(handling *h, const char *text) {
  h->all->errors++;
  if (h->why) {
    rmq_failure_set(h->why, RMQ_KIND_HOOK, 0, "The hooks could not be called: %s", text);
    h->status = RMQ_ELIMIT;
  }
}

static void run(handling *h) {
  rmq_lua_hooks *all = h->all;
  if (all->depth == RMQ_LUA_HOOK_DEPTH) {
    could_not(h, "hooks that send are nested too deep");
    return;
  }
  all->depth++;
  handling *outer = all->handling;
  h->event->outer = all->event;
  all->event = h->event;
  all->handling = h;
  lua_State *thread = thread_for_depth(all);
  if (thread) {
    call_all(thread, h);
  } else {
    could_not(h, "no memory for a thread");
  }
  all->event = h->event->outer;
  all->handling = outer;
  all->depth--;
  rmq_uv_io_refresh(all->io); /* they may have computed for long */
}

/* --- What the core calls --- */

static void update_table(rmq_lua_hooks *all);

static int run_once(rmq_lua_hooks *all, rmq_lua_hook_event *event, rmq_failure *why) {
  if (!all->set) return 0;
  rmq_lua_hook_set *set = rmq_lua_hook_set_hold(all->set); /* a hook may change the hooks */
  handling h = {.all = all, .event = event, .set = set, .why = why};
  run(&h);
  if (event->state) give_back(all, event->state);
  rmq_lua_hook_set_let_go(all, set);
  return h.status;
}

static int check_forbidden(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  rmq_lua_hook_event event = {.function = RMQ_HOOK_CHECK_FORBIDDEN, .attempt = attempt};
  return run_once(arg, &event, why);
}

static int before(void *arg, rmq_hook_attempt *attempt, rmq_failure *why) {
  rmq_lua_hooks *all = arg;
  if (!all->set) return 0;
  rmq_lua_hook_event event = {.function = RMQ_HOOK_BEFORE, .attempt = attempt, .changing = attempt};
  handling h = {.all = all, .event = &event, .set = rmq_lua_hook_set_hold(all->set), .why = why};
  run(&h);
  *attempt->state = event.state;
  if (event.state) all->held++;
  if (all->set != h.set) update_table(all); /* the attempt's `after` comes whatever was removed */
  rmq_lua_hook_set_let_go(all, h.set);
  return h.status;
}

/* The attempt has the hooks that its `before` had. */
static int after(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  rmq_lua_hooks *all = arg;
  rmq_lua_hook_event event = {.function = RMQ_HOOK_AFTER, .attempt = attempt};
  event.state = *attempt->state;
  if (!event.state) return run_once(all, &event, why);
  *attempt->state = NULL;
  all->held--;
  handling h = {.all = all, .event = &event, .set = event.state->set, .why = why};
  run(&h);
  give_back(all, event.state);
  if (!all->set && all->held == 0) update_table(all);
  return h.status;
}

static void end_transaction(void *arg, const rmq_hook_transaction *transaction) {
  rmq_lua_hook_event event = {.function = RMQ_HOOK_END_TRANSACTION, .transaction = transaction};
  run_once(arg, &event, NULL);
}

static void before_request(void *arg, const rmq_watched_request *request) {
  rmq_lua_hook_event event = {.function = RMQ_HOOK_BEFORE_REQUEST, .request = request};
  run_once(arg, &event, NULL);
}

static void after_response(void *arg, const rmq_watched_response *response) {
  rmq_lua_hook_event event = {.function = RMQ_HOOK_AFTER_RESPONSE, .response = response};
  run_once(arg, &event, NULL);
}

/* Lets the core call what there is, and nothing else. */
static void update_table(rmq_lua_hooks *all) {
  unsigned has = all->set ? all->set->has : 0;
  bool some = has & (1u << RMQ_HOOK_BEFORE), ends = has & (1u << RMQ_HOOK_AFTER);
  all->table = (rmq_hooks){
      .check_forbidden = has & (1u << RMQ_HOOK_CHECK_FORBIDDEN) ? check_forbidden : NULL,
      .before = some ? before : NULL,
      .after = some || ends || all->held > 0 ? after : NULL,
      .end_transaction = has & (1u << RMQ_HOOK_END_TRANSACTION) ? end_transaction : NULL,
      .before_request = has & (1u << RMQ_HOOK_BEFORE_REQUEST) ? before_request : NULL,
      .after_response = has & (1u << RMQ_HOOK_AFTER_RESPONSE) ? after_response : NULL,
  };
  bool any = has != 0 || all->held > 0;
  rmq_producer_set_hooks(all->producer, any ? &all->table : NULL, all);
}

/* --- Life --- */

void rmq_lua_hooks_set(lua_State *L, rmq_lua_hooks *all, int list, int self) {
  size_t n = lua_objlen(L, list);
  rmq_lua_hook_set *set = n > 0 ? rmq_lua_hook_set_make(L, all, list) : NULL;
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_getfield(L, -1, "self");
  lua_pushvalue(L, self);
  lua_rawseti(L, -2, 1);
  lua_pop(L, 2);
  rmq_lua_hook_set_let_go(all, all->set);
  all->set = set;
  update_table(all);
}

static void push_weak(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

void rmq_lua_hooks_open(lua_State *L, rmq_lua_hooks *all, rmq_producer *producer, rmq_io *io) {
  lua_newtable(L);
  int kept = lua_gettop(L);
  rmq_lua_hooks **box = lua_newuserdata(L, sizeof *box);
  *box = all;
  lua_setfield(L, kept, "box");
  lua_newtable(L);
  lua_setfield(L, kept, "threads");
  push_weak(L, "k");
  lua_setfield(L, kept, "known");
  push_weak(L, "v");
  lua_setfield(L, kept, "self");
  *all = (rmq_lua_hooks){.vm = rmq_vm_of(L), .producer = producer, .io = io, .box = box};
  lua_newtable(L);
  all->slots = luaL_ref(L, LUA_REGISTRYINDEX);
  rmq_lua_hook_ctx_open(L, all, kept);
  rmq_lua_hook_request_open(L, kept);
  all->kept = luaL_ref(L, LUA_REGISTRYINDEX);
}

void rmq_lua_hooks_drop(rmq_lua_hooks *all) {
  rmq_lua_hook_set_let_go(all, all->set);
  all->set = NULL;
  update_table(all);
}

void rmq_lua_hooks_close(rmq_lua_hooks *all) {
  lua_State *L = rmq_vm_state(all->vm);
  *all->box = NULL;
  for (size_t i = 0; i < all->n_blocks; i++) {
    for (int j = 0; j < BLOCK; j++) rmq_lua_hook_set_let_go(all, all->blocks[i][j].set);
    free(all->blocks[i]);
  }
  free(all->blocks);
  rmq_lua_hook_set_let_go(all, all->set);
  luaL_unref(L, LUA_REGISTRYINDEX, all->slots);
  luaL_unref(L, LUA_REGISTRYINDEX, all->kept);
  free(all->keys);
  free(all->properties);
}

#include "binding/lua_send.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

/* Blocks are never moved, because the core holds pointers into them. */
enum { BLOCK = 32, COPIED_BODY = 4096 };

/* --- Slots --- */

/* Fields that are there already can be set later without memory. */
static void make_slots(lua_State *L, rmq_lua_sends *all) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  for (int i = BLOCK * RMQ_KEPT_FIELDS; i > 0; i--) {
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, all->n_slots * RMQ_KEPT_FIELDS + BLOCK * RMQ_KEPT_FIELDS - i + 1);
  }
  lua_pop(L, 1);
}

static void add_block(lua_State *L, rmq_lua_sends *all) {
  make_slots(L, all);
  all->blocks = rmq_realloc(all->blocks, (all->n_blocks + 1) * sizeof *all->blocks);
  rmq_lua_send *block = rmq_alloc_zero(BLOCK, sizeof *block);
  all->blocks[all->n_blocks++] = block;
  for (int i = BLOCK - 1; i >= 0; i--) {
    block[i].all = all;
    block[i].slot = (all->n_slots + i) * RMQ_KEPT_FIELDS + 1;
    block[i].next = all->free;
    all->free = &block[i];
  }
  all->n_slots += BLOCK;
}

rmq_lua_send *rmq_lua_send_take(lua_State *L, rmq_lua_sends *all) {
  if (!all->free) add_block(L, all);
  rmq_lua_send *send = all->free;
  all->free = send->next;
  send->kept = 0;
  send->oneway = false;
  send->entering = NULL;
  send->pending = NULL;
  send->batch = NULL;
  return send;
}

/* Keeps the value on top of the stack, which is popped, in the table of slots below it. */
static void keep_top(lua_State *L, rmq_lua_send *send, rmq_lua_kept field) {
  lua_rawseti(L, -2, send->slot + (int)field);
  send->kept |= 1u << field;
}

void rmq_lua_send_keep(lua_State *L, rmq_lua_send *send, rmq_lua_kept field, int index) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, send->all->slots);
  lua_pushvalue(L, index);
  keep_top(L, send, field);
  lua_pop(L, 1);
}

void rmq_lua_send_release(rmq_lua_send *send) {
  rmq_lua_sends *all = send->all;
  if (send->kept) {
    lua_State *L = rmq_vm_state(all->vm);
    lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
    for (int field = 0; field < RMQ_KEPT_FIELDS; field++) {
      if (!(send->kept & (1u << field))) continue;
      lua_pushboolean(L, false);
      lua_rawseti(L, -2, send->slot + (int)field);
    }
    lua_pop(L, 1);
  }
  if (send->holds) rmq_vm_release(all->vm);
  send->holds = false;
  rmq_buf_clear(&send->body);
  send->next = all->free;
  all->free = send;
}

void rmq_lua_sends_open(lua_State *L, rmq_lua_sends *all, rmq_producer *producer,
                        rmq_arguments *arguments, rmq_pendings *pendings) {
  *all = (rmq_lua_sends){.vm = rmq_vm_of(L),
                         .producer = producer,
                         .arguments = arguments,
                         .pendings = pendings,
                         .selector = LUA_NOREF};
  lua_newtable(L);
  lua_pushboolean(L, false);
  lua_rawseti(L, -2, 0);
  all->slots = luaL_ref(L, LUA_REGISTRYINDEX);
  rmq_lua_selectors_open(L, &all->selectors, producer);
  rmq_lua_losses_open(&all->losses, all->vm);
}

void rmq_lua_sends_close(rmq_lua_sends *all) {
  rmq_lua_selectors_close(&all->selectors);
  luaL_unref(rmq_vm_state(all->vm), LUA_REGISTRYINDEX, all->slots);
  luaL_unref(rmq_vm_state(all->vm), LUA_REGISTRYINDEX, all->selector);
  for (size_t i = 0; i < all->n_blocks; i++) {
    for (int j = 0; j < BLOCK; j++) rmq_buf_free(&all->blocks[i][j].body);
    free(all->blocks[i]);
  }
  free(all->blocks);
}

void rmq_lua_sends_forked(rmq_lua_sends *all) {
  for (size_t i = 0; i < all->n_blocks; i++) {
    for (int j = 0; j < BLOCK; j++) {
      rmq_lua_send *send = &all->blocks[i][j];
      if (send->holds) rmq_vm_release(all->vm);
      send->holds = false;
    }
  }
}

void rmq_lua_sends_set_runner(lua_State *L, rmq_lua_sends *all) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 0);
  lua_pop(L, 1);
}

void rmq_lua_sends_set_selector(lua_State *L, rmq_lua_sends *all) {
  luaL_unref(L, LUA_REGISTRYINDEX, all->selector);
  all->selector = LUA_NOREF;
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
  } else {
    all->selector = luaL_ref(L, LUA_REGISTRYINDEX);
  }
}

/* --- What comes of it --- */

/* Nothing here needs memory: no protected call is around it. */
void rmq_lua_send_call_back(rmq_lua_send *send, bool ok, rmq_pending *pending) {
  rmq_lua_sends *all = send->all;
  lua_State *L = rmq_vm_state(all->vm);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, -1, 0);
  lua_rawgeti(L, -2, send->slot + RMQ_KEPT_CALLBACK);
  lua_remove(L, -3);
  lua_pushboolean(L, ok);
  lua_pushlightuserdata(L, pending);
  rmq_lua_send_release(send);
  rmq_task_start(L, 3);
}

static void call_back(rmq_lua_send *send, const rmq_completion *completion) {
  rmq_pending *pending = rmq_pending_take(send->all->pendings, NULL);
  rmq_pending_note(pending, completion);
  rmq_lua_send_call_back(send, !completion->failure, pending);
}

/* The call that wanted to send tells why there was no room. */
static void end_entering(rmq_lua_send *send, const rmq_completion *completion) {
  rmq_task *task = send->entering;
  rmq_pending *pending = rmq_pending_take(send->all->pendings, task);
  pending->wait = send->wait;
  rmq_lua_send_release(send);
  rmq_pending_sent(pending, completion);
}

static void sent(void *arg, const rmq_completion *completion) {
  rmq_lua_send *send = arg;
  if (send->entering) {
    end_entering(send, completion);
  } else if (send->kept & (1u << RMQ_KEPT_CALLBACK)) {
    call_back(send, completion);
  } else {
    if (completion->failure) rmq_lua_lost(&send->all->losses, completion, send->oneway);
    rmq_lua_send_release(send);
  }
}

void rmq_lua_send_enter(lua_State *L, rmq_lua_send *send) {
  send->entering = rmq_task_running(L);
  send->wait = rmq_task_wait_number(send->entering);
}

void rmq_lua_send_admitted(void *arg) {
  rmq_lua_send *send = arg;
  rmq_task *task = send->entering;
  send->entering = NULL;
  if (task) rmq_task_wake(task, send->wait, true, NULL);
}

static int field_of(const rmq_lua_send *send, int field) {
  return send->kept & (1u << field) ? send->slot + field : 0;
}

static int choose(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                  rmq_failure *why) {
  const rmq_lua_send *send = arg;
  rmq_lua_selector_call values = {.table = send->all->slots,
                                  .selector = field_of(send, RMQ_KEPT_SELECTOR),
                                  .message = field_of(send, RMQ_KEPT_MESSAGE),
                                  .arg = field_of(send, RMQ_KEPT_ARG)};
  return rmq_lua_select(&send->all->selectors, &values, choice, queue, why);
}

/* --- Starting --- */

/* A script that ends before its callback is called has not ended: like a timer that is set, the
 * callback can still do anything. */
void rmq_lua_send_keep_callback(lua_State *L, rmq_lua_send *send, int index) {
  rmq_lua_send_keep(L, send, RMQ_KEPT_CALLBACK, index);
  send->holds = true;
  rmq_vm_hold(send->all->vm);
}

/* Pushes a copy of the table at `index`, one level deep. */
static void push_copy(lua_State *L, int index) {
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

/* Pushes a copy of the message, whose fields may come from its metatable, and of its lists. */
static void push_message_copy(lua_State *L) {
  push_copy(L, RMQ_ARG_MESSAGE);
  int copy = lua_gettop(L);
  if (lua_getmetatable(L, RMQ_ARG_MESSAGE)) lua_setmetatable(L, copy);
  lua_pushnil(L);
  while (lua_next(L, RMQ_ARG_MESSAGE)) {
    if (lua_istable(L, -1)) {
      lua_pushvalue(L, -2);
      push_copy(L, lua_gettop(L) - 1);
      lua_rawset(L, copy);
    }
    lua_pop(L, 1);
  }
}

void rmq_lua_send_keep_selector(lua_State *L, rmq_lua_send *send, rmq_send_options *options) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, send->all->slots);
  lua_pushvalue(L, RMQ_ARG_SELECTOR);
  keep_top(L, send, RMQ_KEPT_SELECTOR);
  push_message_copy(L);
  keep_top(L, send, RMQ_KEPT_MESSAGE);
  if (!lua_isnil(L, RMQ_ARG_SELECTOR_ARG)) {
    lua_pushvalue(L, RMQ_ARG_SELECTOR_ARG);
    keep_top(L, send, RMQ_KEPT_ARG);
  }
  lua_pop(L, 1);
  options->choose = choose;
}

rmq_chooser_kind rmq_lua_send_chooser(lua_State *L, int last, rmq_lua_sends *all, rmq_slice topic,
                                      rmq_send_options *options) {
  if (!rmq_arguments_have_selector(L, last)) return RMQ_CHOOSER_NATIVE;
  return rmq_lua_choose_natively(L, RMQ_ARG_SELECTOR, RMQ_ARG_SELECTOR_ARG, topic, options,
                                 &all->arguments->refusal);
}

static void keep_body(lua_State *L, rmq_lua_send *send, rmq_message *message) {
  if (message->body.len > COPIED_BODY) {
    rmq_lua_send_keep(L, send, RMQ_KEPT_BODY, RMQ_ARG_BODY);
    return;
  }
  rmq_buf_bytes(&send->body, message->body.ptr, message->body.len);
  message->body = rmq_buf_slice(&send->body);
}

static int begin(lua_State *L, rmq_lua_send *send, rmq_lua_start *start, const rmq_message *message,
                 const rmq_send_options *options) {
  rmq_lua_sends *all = send->all;
  if (start(all->producer, message, options, sent, send) == 0) return 0;
  rmq_lua_send_release(send);
  return rmq_lua_fail_at_once(L, all->pendings, rmq_producer_failure(all->producer),
                              message->topic);
}

int rmq_lua_send_later(lua_State *L, rmq_lua_sends *all, rmq_mode mode) {
  int last = lua_gettop(L) - 1;
  if (all->selector != LUA_NOREF) last = rmq_arguments_stand_in(L, last, all->selector);
  int callback = last + 1;
  rmq_message message;
  rmq_send_options options;
  rmq_chooser_kind chooser = RMQ_CHOOSER_REFUSED;
  if (rmq_arguments_read(L, last, all->arguments, &message, &options) == 0) {
    chooser = rmq_lua_send_chooser(L, last, all, message.topic, &options);
  }
  if (chooser == RMQ_CHOOSER_REFUSED) {
    return rmq_lua_fail_at_once(L, all->pendings, &all->arguments->refusal, message.topic);
  }
  options.mode = mode;
  options.may_wait = rmq_task_may_wait(L);
  options.admitted = rmq_lua_send_admitted;
  bool waits = options.may_wait && !rmq_producer_has_room(all->producer, message.body.len);
  rmq_lua_send *send = rmq_lua_send_take(L, all);
  send->oneway = mode == RMQ_MODE_ONEWAY;
  if (waits) rmq_lua_send_enter(L, send);
  if (!lua_isnil(L, callback)) rmq_lua_send_keep_callback(L, send, callback);
  if (chooser == RMQ_CHOOSER_LUA) rmq_lua_send_keep_selector(L, send, &options);
  keep_body(L, send, &message);
  int values = begin(L, send, rmq_producer_send, &message, &options);
  if (values > 0) return values;
  if (waits) return rmq_task_wait(L, 0);
  lua_pushboolean(L, true);
  return 1;
}

/* Chooses for a task. Its arguments lie on its stack: those of the call that starts the send, or what
 * its wait has anchored, above the token of the yield, which passes through all coroutines. */
static int choose_for_task(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                           rmq_failure *why) {
  rmq_pending *pending = arg;
  rmq_lua_sends *all = pending->owner;
  bool starting = all->starting == pending;
  lua_State *from = all->starter;
  if (!starting) from = rmq_task_anchored(pending->task, pending->wait, RMQ_ARG_SELECTOR_ARG);
  if (!from) {
    rmq_failure_set(why, RMQ_KIND_SELECTOR, 0,
                    "Sending to topic \"%.*s\" failed: who sent it waits for it no more, and its "
                    "selector is gone.",
                    (int)choice->topic.len, choice->topic.ptr);
    return RMQ_EINVAL;
  }
  int below = starting ? 0 : lua_gettop(from) - RMQ_ARG_SELECTOR_ARG;
  rmq_lua_selector_call values = {.from = from,
                                  .selector = below + RMQ_ARG_SELECTOR,
                                  .message = below + RMQ_ARG_MESSAGE,
                                  .arg = below + RMQ_ARG_SELECTOR_ARG};
  return rmq_lua_select(&all->selectors, &values, choice, queue, why);
}

int rmq_lua_send_chosen(lua_State *L, rmq_lua_sends *all, rmq_lua_start *start,
                        const rmq_message *message, rmq_send_options *options) {
  rmq_pending *pending = rmq_pending_take(all->pendings, rmq_task_running(L));
  pending->owner = all;
  all->starting = pending;
  all->starter = L;
  options->choose = choose_for_task;
  int status = start(all->producer, message, options, rmq_pending_sent, pending);
  all->starting = NULL;
  if (status < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_fail_at_once(L, all->pendings, rmq_producer_failure(all->producer),
                                message->topic);
  }
  /* All of it stays until the answer is there. */
  lua_settop(L, RMQ_ARG_SELECTOR_ARG);
  return rmq_task_wait(L, RMQ_ARG_SELECTOR_ARG);
}

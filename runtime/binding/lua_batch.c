#include "binding/lua_batch.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "base/memory.h"

#define DRAFT "rocketmq.draft"

/* A batch under way. */
struct rmq_lua_batch {
  size_t n;
  size_t left;         /* of them, without a completion */
  rmq_pending **parts; /* what became of each; NULL: nobody wants to know */
};

/* --- Drafts --- */

static int draft_gc(lua_State *L) {
  rmq_draft **box = lua_touserdata(L, 1);
  rmq_draft_drop(*box);
  *box = NULL;
  return 0;
}

void rmq_lua_batch_open(lua_State *L) {
  if (luaL_newmetatable(L, DRAFT)) {
    lua_pushcfunction(L, draft_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_pop(L, 1);
}

int rmq_lua_batch_new(lua_State *L, rmq_producer *producer) {
  rmq_draft **box = lua_newuserdata(L, sizeof *box);
  *box = NULL;
  luaL_getmetatable(L, DRAFT);
  lua_setmetatable(L, -2);
  *box = rmq_draft_new(producer);
  return 1;
}

static rmq_draft **check_draft(lua_State *L, int index) {
  rmq_draft **box = luaL_checkudata(L, index, DRAFT);
  if (!*box) luaL_error(L, "this draft has been sent");
  return box;
}

int rmq_lua_batch_add(lua_State *L, rmq_lua_sends *all) {
  rmq_draft *draft = *check_draft(L, RMQ_ARG_OPTIONS);
  int number = (int)rmq_draft_count(draft) + 1;
  rmq_message message;
  if (rmq_arguments_read_member(L, number, all->arguments, &message) < 0) {
    return rmq_lua_fail_at_once(L, all->pendings, &all->arguments->refusal, message.topic);
  }
  if (rmq_draft_add(draft, &message) < 0) {
    return rmq_lua_fail_at_once(L, all->pendings, rmq_producer_failure(all->producer),
                                message.topic);
  }
  lua_pushboolean(L, true);
  return 1;
}

/* --- The end --- */

/* Gives what became of all messages to who waits for it. */
static void finish(rmq_lua_send *send) {
  rmq_lua_batch *batch = send->batch;
  rmq_lua_sends *all = send->all;
  rmq_task *entering = send->entering;
  rmq_pending *pending = send->pending;
  send->entering = NULL;
  bool calls_back = batch->parts && !pending;
  if (calls_back) pending = rmq_pending_take(all->pendings, NULL);
  if (pending) rmq_pending_gathered(pending, batch->parts, batch->n);
  free(batch);
  /* The call that started it comes first: it returns before its callback runs. */
  if (entering) rmq_task_wake(entering, send->wait, true, NULL);
  if (calls_back) {
    rmq_lua_send_call_back(send, true, pending);
    return;
  }
  rmq_lua_send_release(send);
  if (pending) rmq_pending_wake(pending, true);
}

static void sent(void *arg, const rmq_completion *completion) {
  rmq_lua_send *send = arg;
  rmq_lua_batch *batch = send->batch;
  if (batch->parts) {
    rmq_pending *part = rmq_pending_take(send->all->pendings, NULL);
    rmq_pending_note(part, completion);
    batch->parts[completion->index] = part;
  } else if (completion->failure) {
    rmq_lua_lost(&send->all->losses, completion, send->oneway);
  }
  if (--batch->left == 0) finish(send);
}

/* --- The start --- */

static rmq_lua_batch *make_batch(size_t n, bool wants_parts) {
  rmq_lua_batch *batch = rmq_alloc(sizeof *batch);
  batch->n = batch->left = n;
  batch->parts = wants_parts ? rmq_alloc_zero(n + 1, sizeof *batch->parts) : NULL;
  return batch;
}

static void drop_batch(rmq_lua_send *send) {
  free(send->batch->parts);
  free(send->batch);
  if (send->pending) rmq_pending_put_back(send->pending);
  rmq_lua_send_release(send);
}

/* Keeps all that the batch needs beyond this call. */
static rmq_lua_send *keep_all(lua_State *L, rmq_lua_sends *all, rmq_mode mode, bool calls_selector,
                              rmq_send_options *options) {
  rmq_lua_send *send = rmq_lua_send_take(L, all);
  bool has_callback = !lua_isnil(L, RMQ_BATCH_ARG_CALLBACK);
  size_t n = rmq_draft_count(*check_draft(L, RMQ_BATCH_ARG_DRAFT));
  send->oneway = mode == RMQ_MODE_ONEWAY;
  send->batch = make_batch(n, has_callback || mode == RMQ_MODE_SYNC);
  rmq_lua_send_keep(L, send, RMQ_KEPT_BODY, RMQ_BATCH_ARG_BODIES);
  if (has_callback) rmq_lua_send_keep_callback(L, send, RMQ_BATCH_ARG_CALLBACK);
  if (calls_selector) rmq_lua_send_keep_selector(L, send, options);
  if (mode == RMQ_MODE_SYNC) send->pending = rmq_pending_take(all->pendings, rmq_task_running(L));
  return send;
}

int rmq_lua_batch_send(lua_State *L, rmq_lua_sends *all, rmq_mode mode) {
  int last = lua_gettop(L);
  rmq_draft **draft = check_draft(L, RMQ_BATCH_ARG_DRAFT);
  rmq_draft_options options = {.split = lua_toboolean(L, RMQ_BATCH_ARG_SPLIT)};
  rmq_slice topic = {NULL, 0};
  topic.ptr = lua_tolstring(L, RMQ_ARG_TOPIC, &topic.len);
  if (all->selector != LUA_NOREF) last = rmq_arguments_stand_in(L, last, all->selector);
  rmq_chooser_kind chooser = RMQ_CHOOSER_REFUSED;
  if (rmq_draft_count(*draft) == 0) {
    chooser = RMQ_CHOOSER_NATIVE; /* there is nothing to choose for: it is refused below */
  } else if (rmq_arguments_read_batch(L, last, all->arguments, topic, &options.send) == 0) {
    chooser = rmq_lua_send_chooser(L, last, all, topic, &options.send);
  }
  if (chooser == RMQ_CHOOSER_REFUSED) {
    return rmq_lua_fail_at_once(L, all->pendings, &all->arguments->refusal, topic);
  }
  options.send.mode = mode;
  options.send.may_wait = rmq_task_may_wait(L);
  options.send.admitted = mode == RMQ_MODE_SYNC ? NULL : rmq_lua_send_admitted;
  rmq_lua_send *send = keep_all(L, all, mode, chooser == RMQ_CHOOSER_LUA, &options.send);
  int status = rmq_draft_send(*draft, &options, sent, send);
  if (status < 0) {
    drop_batch(send);
    return rmq_lua_fail_at_once(L, all->pendings, rmq_producer_failure(all->producer), topic);
  }
  *draft = NULL;
  if (mode == RMQ_MODE_SYNC) return rmq_task_wait(L, 0);
  if (status == 1) {
    rmq_lua_send_enter(L, send);
    return rmq_task_wait(L, 0);
  }
  lua_pushboolean(L, true);
  return 1;
}

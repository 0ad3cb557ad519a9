#include "binding/lua_pending.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/memory.h"
#include "binding/lua_failure.h"
#include "binding/lua_result.h"

/* Blocks are never moved, because the core holds pointers into them. */
enum { BLOCK = 32, KEPT_BYTES = 1024 };

static void add_block(rmq_pendings *all) {
  all->blocks = rmq_realloc(all->blocks, (all->n_blocks + 1) * sizeof *all->blocks);
  rmq_pending *block = rmq_alloc_zero(BLOCK, sizeof *block);
  all->blocks[all->n_blocks++] = block;
  for (int i = BLOCK - 1; i >= 0; i--) {
    block[i].all = all;
    block[i].next = all->free;
    all->free = &block[i];
  }
}

static void drop_failure(rmq_pending *pending) {
  if (!pending->failure) return;
  rmq_failure_clear(pending->failure);
  free(pending->failure);
  pending->failure = NULL;
}

void rmq_pendings_free(rmq_pendings *all) {
  for (size_t i = 0; i < all->n_blocks; i++) {
    for (int j = 0; j < BLOCK; j++) {
      drop_failure(&all->blocks[i][j]);
      free(all->blocks[i][j].parts);
      rmq_buf_free(&all->blocks[i][j].bytes);
    }
    free(all->blocks[i]);
  }
  free(all->blocks);
  rmq_buf_free(&all->scratch);
  *all = (rmq_pendings){0};
}

rmq_pending *rmq_pending_take(rmq_pendings *all, rmq_task *task) {
  if (!all->free) add_block(all);
  rmq_pending *pending = all->free;
  all->free = pending->next;
  pending->task = task;
  pending->wait = task ? rmq_task_wait_number(task) : 0;
  pending->state = RMQ_PENDING_WAITS;
  rmq_buf_clear(&pending->bytes);
  return pending;
}

void rmq_pending_put_back(rmq_pending *pending) {
  drop_failure(pending);
  free(pending->parts);
  pending->parts = NULL;
  rmq_buf_clear(&pending->bytes);
  rmq_buf_trim(&pending->bytes, KEPT_BYTES);
  pending->state = RMQ_PENDING_FREE;
  pending->next = pending->all->free;
  pending->all->free = pending;
}

void rmq_pending_fail(rmq_pending *pending, const rmq_failure *failure) {
  pending->failure = rmq_lua_copy_failure(failure);
  rmq_buf_clear(&pending->bytes);
  pending->state = RMQ_PENDING_FAILURE;
}

void rmq_pending_wake(rmq_pending *pending, bool ok) {
  if (rmq_task_wake(pending->task, pending->wait, ok, pending)) return;
  pending->completion = NULL;
  rmq_pending_put_back(pending);
}

void rmq_pending_sent(void *arg, const rmq_completion *completion) {
  rmq_pending *pending = arg;
  if (completion->failure) {
    rmq_pending_note(pending, completion);
    rmq_pending_wake(pending, false);
    return;
  }
  pending->state = RMQ_PENDING_RESULT;
  pending->completion = completion;
  rmq_pending_wake(pending, true);
  /* Unless the task has run and taken it (and perhaps waits with the same pending again), it runs
   * when the completion is gone. */
  if (pending->completion != completion) return;
  pending->completion = NULL;
  rmq_pending_note(pending, completion);
}

void rmq_pending_note(rmq_pending *pending, const rmq_completion *completion) {
  if (completion->failure) {
    rmq_pending_fail(pending, completion->failure);
    rmq_buf_bytes(&pending->bytes, completion->msg_id.ptr, completion->msg_id.len);
    return;
  }
  size_t size = rmq_result_size(completion);
  rmq_result_write(rmq_buf_reserve(&pending->bytes, size), completion);
  rmq_buf_commit(&pending->bytes, size);
  pending->state = RMQ_PENDING_RESULT;
}

int rmq_lua_fail_at_once(lua_State *L, rmq_pendings *all, const rmq_failure *failure,
                         rmq_slice topic) {
  rmq_pending *pending = rmq_pending_take(all, NULL);
  rmq_pending_fail(pending, failure);
  if (!pending->failure->topic && topic.len > 0) {
    pending->failure->topic = rmq_copy_text(topic.ptr, topic.len);
  }
  lua_pushboolean(L, false);
  lua_pushlightuserdata(L, pending);
  return 2;
}

static void put_text(rmq_buf *out, rmq_slice text) {
  rmq_buf_u32(out, (uint32_t)text.len);
  rmq_buf_bytes(out, text.ptr, text.len);
}

void rmq_pending_set_topic(rmq_pending *pending, rmq_slice topic) {
  put_text(&pending->bytes, topic);
}

void rmq_pending_listed(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                        size_t n) {
  rmq_pending *pending = arg;
  if (failure) {
    rmq_pending_fail(pending, failure);
  } else {
    pending->state = RMQ_PENDING_QUEUES;
    pending->count = n;
    for (size_t i = 0; i < n; i++) {
      put_text(&pending->bytes, queues[i].broker);
      rmq_buf_u32(&pending->bytes, (uint32_t)queues[i].id);
    }
  }
  rmq_pending_wake(pending, !failure);
}

void rmq_pending_counted(void *arg, size_t count) {
  rmq_pending *pending = arg;
  pending->state = RMQ_PENDING_COUNT;
  pending->count = count;
  rmq_pending_wake(pending, true);
}

void rmq_pending_gathered(rmq_pending *pending, rmq_pending **parts, size_t n) {
  pending->state = RMQ_PENDING_PARTS;
  pending->parts = parts;
  pending->count = n;
}

static rmq_slice next_text(rmq_cursor *cursor) {
  uint32_t len = rmq_cursor_u32(cursor);
  return rmq_cursor_bytes(cursor, len);
}

static void push_queues(lua_State *L, const rmq_pending *pending) {
  rmq_cursor cursor = rmq_cursor_make(rmq_buf_slice(&pending->bytes));
  rmq_slice topic = next_text(&cursor);
  lua_createtable(L, (int)pending->count, 0);
  for (size_t i = 0; i < pending->count; i++) {
    rmq_slice broker = next_text(&cursor);
    rmq_lua_push_queue(L, topic, broker, rmq_cursor_i32(&cursor));
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void push_result(lua_State *L, rmq_pending *pending) {
  const rmq_completion *completion = pending->completion;
  rmq_slice bytes = rmq_buf_slice(&pending->bytes);
  size_t size = completion ? rmq_result_size(completion) : bytes.len;
  void *at = rmq_lua_push_result(L, size, lua_upvalueindex(1));
  if (completion) {
    rmq_result_write(at, completion);
    pending->completion = NULL;
  } else if (bytes.ptr) {
    memcpy(at, bytes.ptr, size);
  }
}

/* The error of a batch of which some failed: the first failure's, with all of them in the table on
 * top of the stack as `failed`. */
static void push_summary(lua_State *L, const rmq_failure *first, size_t n_failed, size_t n) {
  rmq_failure summary;
  rmq_failure_copy(&summary, first);
  rmq_failure_prefix(&summary, "%zu of %zu messages failed; the first: ", n_failed, n);
  rmq_lua_push_failure(L, &summary, (rmq_slice){NULL, 0});
  rmq_failure_clear(&summary);
  lua_insert(L, -2);
  lua_setfield(L, -2, "failed");
}

/* Pushes the list of results, with false for what failed, and the error or nil. */
static void push_parts(lua_State *L, const rmq_pending *pending) {
  const rmq_failure *first = NULL;
  size_t n_failed = 0;
  lua_createtable(L, (int)pending->count, 0);
  lua_newtable(L);
  for (size_t i = 0; i < pending->count; i++) {
    rmq_pending *part = pending->parts[i];
    if (part->state == RMQ_PENDING_FAILURE) {
      rmq_lua_push_failure(L, part->failure, rmq_buf_slice(&part->bytes));
      lua_rawseti(L, -2, (int)i + 1);
      lua_pushboolean(L, false);
      if (n_failed++ == 0) first = part->failure;
    } else {
      push_result(L, part);
    }
    lua_rawseti(L, -3, (int)i + 1);
  }
  if (first) {
    push_summary(L, first, n_failed, pending->count);
  } else {
    lua_pop(L, 1);
    lua_pushnil(L);
  }
  for (size_t i = 0; i < pending->count; i++) rmq_pending_put_back(pending->parts[i]);
}

static int take(lua_State *L) {
  rmq_pending *pending = lua_touserdata(L, 2);
  if (!pending) return luaL_error(L, "what is to be taken has not come");
  int values = 1;
  switch (pending->state) {
    case RMQ_PENDING_RESULT:
      push_result(L, pending);
      break;
    case RMQ_PENDING_QUEUES:
      push_queues(L, pending);
      break;
    case RMQ_PENDING_PARTS:
      push_parts(L, pending);
      values = 2;
      break;
    case RMQ_PENDING_COUNT:
      lua_pushnumber(L, (double)pending->count);
      break;
    case RMQ_PENDING_VALUES:
      values = pending->push(L, pending);
      break;
    case RMQ_PENDING_FAILURE:
      lua_pushnil(L);
      rmq_lua_push_failure(L, pending->failure, rmq_buf_slice(&pending->bytes));
      values = 2;
      break;
    default:
      return luaL_error(L, "what is to be taken has not come");
  }
  rmq_pending_put_back(pending);
  return values;
}

int rmq_lua_pending_open(lua_State *L) {
  rmq_lua_push_result_metatable(L);
  lua_pushcclosure(L, take, 1);
  return 1;
}

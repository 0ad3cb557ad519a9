#ifndef RMQ_BINDING_LUA_PENDING_H
#define RMQ_BINDING_LUA_PENDING_H

#include "base/buf.h"
#include "producer/producer.h"
#include "script/vm.h"

/* What a task waits for. It is C's own memory: the completion is written here when it comes, and
 * becomes Lua values only when the task runs again, where running out of memory or a collection is
 * harmless. Mostly the task runs while the completion is still there, and nothing is written. */

typedef struct rmq_pendings rmq_pendings;

typedef enum rmq_pending_state {
  RMQ_PENDING_FREE,
  RMQ_PENDING_WAITS,
  RMQ_PENDING_RESULT, /* `completion` is the result, or `bytes` is it, see lua_result.h */
  RMQ_PENDING_QUEUES, /* `bytes` is the topic's length, the topic, then broker and id of each */
  RMQ_PENDING_COUNT,  /* `count` is the answer */
  RMQ_PENDING_PARTS,  /* `parts` are the results and failures of `count` messages */
  RMQ_PENDING_VALUES, /* `push` makes the answer of whatever was put here for it */
  RMQ_PENDING_FAILURE /* `failure`; `bytes` is the message id, or nothing */
} rmq_pending_state;

typedef struct rmq_pending {
  rmq_pendings *all;
  struct rmq_pending *next; /* while it is free */
  rmq_task *task;
  unsigned wait; /* of the task's, see rmq_task_wait_number */
  void *owner;   /* the caller's, for a completion of its own that ends in rmq_pending_counted */
  rmq_pending_state state;
  const rmq_completion *completion; /* while rmq_pending_sent is called with it, else NULL */
  rmq_buf bytes;
  rmq_failure *failure;
  struct rmq_pending **parts; /* each noted, none waited for; owned */
  size_t count;
  int64_t number;
  /* Pushes the answer and returns how many values that is. */
  int (*push)(lua_State *L, struct rmq_pending *pending);
} rmq_pending;

/* All that one producer has: as many as were ever waited for at the same time, used again and
 * again. */
struct rmq_pendings {
  rmq_pending **blocks;
  size_t n_blocks;
  rmq_pending *free;
  rmq_buf scratch; /* for whoever makes values; of no meaning between two of them */
};

void rmq_pendings_free(rmq_pendings *all);

/* Takes one, with which `task` is to begin its next wait, or NULL. */
rmq_pending *rmq_pending_take(rmq_pendings *all, rmq_task *task);
void rmq_pending_put_back(rmq_pending *pending);

/* What rmq_producer_send, _queues, _flush and _shutdown call; `arg` is the pending. They wake its
 * task. */
void rmq_pending_sent(void *arg, const rmq_completion *completion);
void rmq_pending_listed(void *arg, const rmq_failure *failure, const rmq_queue_ref *queues,
                        size_t n);
void rmq_pending_counted(void *arg, size_t count);

/* The answer is there: wakes the task, for which take makes values of it. One that has left this wait
 * behind is not woken, and the pending is free then. */
void rmq_pending_wake(rmq_pending *pending, bool ok);

/* Writes a completion into one that no task waits with; take makes values of it later. */
void rmq_pending_note(rmq_pending *pending, const rmq_completion *completion);

/* Makes it the end of a batch: `parts` (from malloc) is its own from here on. */
void rmq_pending_gathered(rmq_pending *pending, rmq_pending **parts, size_t n);

/* Ends a function at once with a failure: pushes what take makes of it what it would have made
 * later, and returns how many values that are. Whatever is wrong, the error names the topic that
 * the call was about; it may be empty. */
int rmq_lua_fail_at_once(lua_State *L, rmq_pendings *all, const rmq_failure *failure,
                         rmq_slice topic);

/* Ends one that never waited. */
void rmq_pending_fail(rmq_pending *pending, const rmq_failure *failure);

/* For rmq_pending_listed: the topic that was asked for. */
void rmq_pending_set_topic(rmq_pending *pending, rmq_slice topic);

/* The Lua function take(ok, pending): (result), (list of queues), (count), (list of results and falses,
 * error or nil), (whatever `push` makes) or (nil, error). Upvalue
 * 1 is the metatable of results. The pending is free afterwards. */
int rmq_lua_pending_open(lua_State *L); /* pushes it */

#endif

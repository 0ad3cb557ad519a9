#ifndef RMQ_SCRIPT_VM_H
#define RMQ_SCRIPT_VM_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "base/log.h"

/* One worker: a loop, a Lua state, and the tasks that run in it. */
typedef struct rmq_vm rmq_vm;

/* A coroutine on the loop: the main chunk, what spawn made, a callback. Coroutines that a script
 * makes itself run inside a task. */
typedef struct rmq_task rmq_task;

/* The worker that a Lua state (any coroutine of it) belongs to. */
rmq_vm *rmq_vm_of(lua_State *L);
uv_loop_t *rmq_vm_loop(const rmq_vm *vm);
const rmq_log *rmq_vm_log(const rmq_vm *vm);

/* The name servers that the command line or the environment gives: `forced` when they replace what a script says
 * (--mock). NULL when there are none. */
const char *rmq_vm_namesrv(const rmq_vm *vm, bool *forced);

/* While holds are more than releases the loop goes on. */
void rmq_vm_hold(rmq_vm *vm);
void rmq_vm_release(rmq_vm *vm);

/* The state's main thread: nothing runs on its stack while the loop does, so that a completion can
 * push a function and arguments there for rmq_task_start. */
lua_State *rmq_vm_state(const rmq_vm *vm);

/* Runs the function below the `n_args` values on top of L's stack as a task of its own, at once,
 * on a coroutine that is used again and again; pops all of them. What it returns is dropped, an
 * error in it is an uncaught one. Costs 20 to 30 ns when a coroutine is at hand. Must not be
 * called while an error could jump over the caller. */
void rmq_task_start(lua_State *L, int n_args);

/* --- Waiting ------------------------------------------------------------------------------------
 * A C function that starts something and waits for it:
 *
 *   if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "send");
 *   rmq_task *task = rmq_task_running(L);
 *   ... start, keeping `task` and rmq_task_wait_number(task) ...
 *   return rmq_task_wait(L, n);
 *
 * The n values on top of the stack stay anchored until it is woken. Whoever ends it calls
 * rmq_task_wake(task, wait, ok, pointer) from the loop: the C function then returns (ok, light
 * userdata `pointer`) to its Lua caller. What those mean, and everything that allocates, is done there in
 * Lua, so protected. Waking counts as a release of the hold that waiting takes. */

/* True when the running code can be suspended: no C call (table.sort, gsub, require, a selector,
 * __gc ...) lies between it and its task, also not further out around the script's own
 * coroutines. */
bool rmq_task_may_wait(lua_State *L);

/* Raises "send cannot wait here ...", saying why and what to do instead. */
int rmq_task_refuse_wait(lua_State *L, const char *what);

/* The task whose code runs now, also inside the script's own coroutines; NULL outside of any. */
rmq_task *rmq_task_running(lua_State *L);

/* The waits of a task are numbered: the one that it is in, or that comes next when it runs. An error
 * may leave a wait behind that has begun (a debug hook of the script's raises on the way from a
 * coroutine to its task), and what ends that one later must not end another. */
unsigned rmq_task_wait_number(const rmq_task *task);

int rmq_task_wait(lua_State *L, int anchored);

/* The stack on top of which are the values that the wait of this number has anchored, in the order
 * of the call; NULL when the task has left that wait. */
lua_State *rmq_task_anchored(const rmq_task *task, unsigned wait, int anchored);

/* Resumes a task that is in the wait of this number, at once (or in the next turn, when too many
 * tasks lie below each other on the C stack). False, and nothing is done, when it has left that wait
 * behind: `pointer` is not handed on then. Once the process is ending because of a signal or an
 * error, no task is resumed any more; callbacks (rmq_task_start) still run until they wait. */
bool rmq_task_wake(rmq_task *task, unsigned wait, bool ok, void *pointer);

/* --- Ending ------------------------------------------------------------------------------------
 * Things that want to be asked before the process ends (producers) are on this list. */
typedef struct rmq_ending {
  rmq_link link;
  /* Starts the end within `timeout_ms` (negative: the thing's own setting) and calls `done(arg,
   * undelivered)` once, later. */
  void (*finish)(struct rmq_ending *ending, int64_t timeout_ms,
                 void (*done)(void *arg, size_t undelivered), void *arg);
  /* How many are undelivered now; for os.exit, which does not wait. Only reads: it is called from
   * a signal handler too. */
  size_t (*undelivered)(struct rmq_ending *ending);
  /* In a forked child, whose loop is a fresh one already. */
  void (*forked)(struct rmq_ending *ending);
  const char *name; /* for the line that is printed: "producer 'orders'" */
} rmq_ending;
void rmq_vm_add_ending(rmq_vm *vm, rmq_ending *ending);
/* Takes it off the list. When it was asked to finish already, `done` must still be called. */
void rmq_vm_remove_ending(rmq_vm *vm, rmq_ending *ending);
/* Something was not delivered and nobody was told in the script (a oneway, an async send without
 * callback). */
void rmq_vm_count_undelivered(rmq_vm *vm, size_t n);

/* --- The whole life of a worker -------------------------------------------------------------- */

/* What a command line asks for before the script, in its order. */
typedef struct rmq_step {
  bool is_module; /* -l: a module to require; otherwise -e: a chunk */
  const char *text;
} rmq_step;

typedef enum rmq_plugin_kind {
  RMQ_PLUGIN_SELECTOR,
  RMQ_PLUGIN_HOOK,
  RMQ_PLUGIN_FOLDER /* of both */
} rmq_plugin_kind;

/* Where selectors and hooks are to be loaded from before anything runs, in its order. */
typedef struct rmq_plugin_source {
  rmq_plugin_kind kind;
  const char *path;
} rmq_plugin_source;

/* How long a selector, a hook, or the file of a plugin may take, in milliseconds; 0: for ever. */
typedef struct rmq_guard_limits {
  int64_t warn_ms;    /* then a line in the log says so */
  int64_t stop_ms;    /* then an error is raised in it */
  int64_t deadman_ms; /* then the process ends */
} rmq_guard_limits;

typedef struct rmq_vm_config {
  rmq_log log;
  /* Adds what scripts find besides this room's own, once, before anything else runs. May raise. */
  void (*open)(lua_State *L);
  const char *namesrv;   /* --namesrv, or NULL */
  bool mock;             /* start a mock before anything else */
  bool mock_forced;      /* its address replaces what scripts say */
  const char *mock_spec; /* the inside of a Lua table, or NULL */
  const rmq_plugin_source *plugins;
  size_t n_plugins;
  rmq_guard_limits guard;
  bool check; /* load everything, list it, and run nothing */
  const rmq_step *steps;
  size_t n_steps;
  int argc;
  char **argv;
  int script; /* index in argv of the script ("-": stdin) or of the command's name, 0: none */
  const char *command; /* the module of a command that runs instead of a script, or NULL */
} rmq_vm_config;

/* Runs what the configuration asks for until nothing is left to do. Returns the exit status.
 * Called once in a process. */
int rmq_vm_main(const rmq_vm_config *config);

#endif

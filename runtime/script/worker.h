#ifndef RMQ_SCRIPT_WORKER_H
#define RMQ_SCRIPT_WORKER_H

#include <signal.h>

#include "script/guard.h"
#include "script/loader.h"
#include "script/vm.h"

/* What the files that make up the worker share. The room `binding` sees vm.h, guard.h, plugins.h and
 * loader.h. */

typedef enum rmq_task_state {
  RMQ_TASK_FREE,    /* in the pool */
  RMQ_TASK_READY,   /* in the ready list: runs in the next turn */
  RMQ_TASK_RUNNING, /* on the C stack, or about to be suspended */
  RMQ_TASK_WAITING, /* suspended by rmq_task_wait or rmq_task_park */
  RMQ_TASK_YIELDED  /* suspended by an ordinary yield: whoever has its coroutine may resume it */
} rmq_task_state;

struct rmq_task {
  rmq_link link; /* in the pool, the ready list, or `home` */
  rmq_vm *vm;
  lua_State *co; /* NULL in the pool, when the last one could not be used again */
  int slot;      /* where the table of coroutines anchors `co` */
  rmq_task_state state;
  bool suspended;   /* its coroutine has come back to C */
  bool holds;       /* its waiting keeps the loop going */
  bool exposed;     /* the script has its coroutine, which is therefore not used again */
  unsigned wait;    /* the number of the wait that was begun last */
  unsigned woken;   /* ready, having waited: the number of that wait */
  bool fresh;       /* ready, and has not run yet: its function and arguments lie on its stack */
  bool ok;          /* ready, having waited: what the wait returns */
  void *pointer;    /* ready, having waited: what the wait returns too */
  rmq_link *home;   /* the list that it is in while it waits */
  const char *what; /* what it waits for, for the list of tasks that nobody can wake */
  bool timer_made;
  uv_timer_t timer; /* of a sleep, or of a wait that has a limit; last, for few need it */
};

/* Which plugin a file is, for when Lua cannot be asked. */
typedef struct rmq_plugin_name {
  char *path;
  char *name;
  bool is_selector;
} rmq_plugin_name;

struct rmq_vm {
  uv_loop_t loop;
  lua_State *L; /* the main thread, on which nothing runs */
  rmq_log log;
  char *namesrv;
  bool namesrv_forced;

  /* What keeps the loop going: one handle that is referenced while there are holds. */
  uv_async_t keep;
  size_t holds;

  rmq_task *running;
  int depth;   /* tasks on the C stack */
  int blocked; /* the running task's own resumes from where it cannot be suspended */
  rmq_link ready;
  uv_idle_t turn; /* active while `ready` holds something, so that the loop does not block */
  rmq_link waiting;
  rmq_link in_run;  /* tasks inside uv.run("default") */
  rmq_link in_once; /* tasks inside uv.run("once") */
  uv_check_t polled;
  rmq_link pool;
  size_t spare;      /* coroutines in the pool */
  int coroutines;    /* registry reference: slot -> coroutine */
  int slots;         /* how many slots that table has */
  int guarded;       /* registry reference: see runtime/coroutine.lua */
  int failures;      /* registry reference: wrapped coroutines that the last error has passed */
  int native_resume; /* registry reference: LuaJIT's coroutine.resume */
  int on_error;      /* registry reference of the handler, or LUA_NOREF */
  int plugins;       /* registry reference: what rocketmq.plugins keeps */
  int selectors;     /* registry reference: name -> function */
  int reload;        /* registry reference: what SIGHUP does, or LUA_NOREF */
  rmq_plugin_name *plugin_names;
  size_t n_plugin_names;
  rmq_guard guard; /* of calls that must answer at once */
  rmq_task *first; /* the main chunk's task, NULL once it has ended */

  /* The end. */
  bool stopping; /* after a signal or an uncaught error: the script's tasks stand still */
  bool failed;   /* exit 1 */
  bool refused;  /* exit 2: the command line asked for what cannot be */
  rmq_link endings;
  rmq_link finishing; /* endings that were asked to finish */
  size_t unfinished;  /* of those, how many have not called `done` */
  size_t undelivered; /* what they said */
  size_t untold;      /* rmq_vm_count_undelivered */

  /* Signals. Written by the handler. */
  volatile sig_atomic_t signal;
  volatile sig_atomic_t hooked;      /* the time for Lua to come back by itself is over */
  volatile sig_atomic_t interrupted; /* the hook has raised */
  uv_async_t signalled;
  uv_signal_t hangup; /* once a plugin is loaded */
};

/* A plain light userdata, the first value of every yield that is the runtime's own. */
void *rmq_task_token(void);

/* --- vm.c --- */
/* The name servers that producers are to use, from now on. */
void rmq_vm_serve(rmq_vm *vm, const char *namesrv, bool forced);

/* --- task.c --- */
void rmq_tasks_init(rmq_vm *vm);
/* Waits without a hold: for something in the script's own hands. `home` NULL: the list of waiting
 * tasks. After `limit_ms`, unless that is negative, it ends with ok false. */
int rmq_task_park(lua_State *L, const char *what, rmq_link *home, double limit_ms);
/* Takes a function and its arguments (the values on top of L) as a task that starts in the next
 * turn. */
rmq_task *rmq_task_spawn(lua_State *L, int n_args);
/* Runs the tasks that are ready now. False when there was none. */
bool rmq_tasks_turn(rmq_vm *vm);
/* Wakes all tasks of a list in the next turn. False when there was none. */
bool rmq_tasks_wake_all(rmq_link *home, bool ok);
/* Resumes a task that has yielded itself; the values on top of L are what its yield returns. */
void rmq_task_resume_yielded(lua_State *L, rmq_task *task, int n_args);
/* Makes a task run in the next turn that waits (or is just about to wait). */
void rmq_task_make_ready(rmq_task *task, bool ok, void *pointer);

/* Pushes "file:line: " of the innermost code that is the script's own, for errors of arguments. */
void rmq_push_place(lua_State *L);
/* The same from `level` on: inside a hook of Lua's the running function is level 0. */
void rmq_push_place_from(lua_State *L, int level);

/* --- failure.c --- */
/* Deals with the error value on top of a coroutine that has died of it. */
void rmq_vm_uncaught(rmq_vm *vm, lua_State *co);
/* The same with a traceback that was taken earlier: L has the error and the traceback on top. Pops
 * both. */
void rmq_vm_uncaught_with(lua_State *L);
/* Prints the traceback, unless the error is nil, and ends the process: the handler of errors has
 * failed itself, or there is none. L has the error and the traceback on top. Pops both. */
void rmq_vm_give_up(lua_State *L);
/* Pushes the text of the value at `index` as an error is shown. May raise. */
void rmq_push_error_text(lua_State *L, int index);
/* Pushes a traceback of `co` with the coroutines that it has resumed. May raise. */
void rmq_push_traceback(lua_State *L, lua_State *co, const char *text, int level);
/* Pushes the text of the error at `err` of L with the traceback of `co` from `level` on, and those
 * of the coroutines that it came out of. May raise. */
void rmq_push_failure(lua_State *L, lua_State *co, int err, int level);
/* Lists the tasks that nobody can wake on stderr. */
void rmq_vm_list_stuck(rmq_vm *vm);

/* --- ending.c --- */
/* Finishes all endings, while the loop runs. */
void rmq_vm_finish(rmq_vm *vm);
/* Says on stderr what is undelivered, after the end. */
void rmq_vm_tell_undelivered(rmq_vm *vm);
/* What is undelivered now, when nothing can be waited for. Only reads. */
size_t rmq_vm_undelivered_now(const rmq_vm *vm);
/* The exit status as things stand. */
int rmq_vm_status(const rmq_vm *vm);
/* Lets the loop come back to rmq_vm_run, which ends the process. */
void rmq_vm_stop(rmq_vm *vm);
int rmq_lua_exit(lua_State *L); /* os.exit */

/* --- signal.c --- */
void rmq_signals_init(rmq_vm *vm);
/* The loop has control: what runs too long in Lua is not what the signal has met. */
void rmq_signals_calm(rmq_vm *vm);
/* To stderr, also from inside a handler. */
void rmq_say(const char *text);
void rmq_say_number(size_t number);

/* --- fork.c --- */
void rmq_fork_init(rmq_vm *vm);

/* --- luv.c --- */
void rmq_luv_init(rmq_vm *vm);

/* C modules of this room's own; those with a header have it there. */
int luaopen_rocketmq_native_plugins(lua_State *L);
int luaopen_rocketmq_native_task(lua_State *L);

#endif

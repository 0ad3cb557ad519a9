#ifndef RMQ_SCRIPT_GUARD_H
#define RMQ_SCRIPT_GUARD_H

#include <lua.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "script/vm.h"

/* Watches over calls that must answer at once (selectors, hooks, the files of plugins), because the
 * loop stands still until they do.
 *
 * A thread of its own looks a few times a second whether the call is still the same one. A call that
 * stays is met in three steps: a warning that says where it is; an error raised in it, again and
 * again until C has control, so that no pcall keeps it; and the end of the process, for what no
 * error can reach (a C function, or a loop that is compiled). Nothing is set up for a call itself,
 * so that it costs two stores. */

/* One call, on the C stack of its caller. */
typedef struct rmq_guard_call {
  const char *what;             /* "selector", "hook": a constant */
  lua_State *L;                 /* the Lua thread whose outermost Lua function is the one called */
  struct rmq_guard_call *outer; /* which called this one, or NULL */
} rmq_guard_call;

/* The function that a call is of. */
typedef struct rmq_guard_subject {
  const rmq_guard_call *call; /* NULL: it has not been looked for */
  const char *name;           /* of its plugin, or NULL: it is the script's */
  lua_Debug info;             /* where it is defined */
} rmq_guard_subject;

/* What is to be done about a call that stays. */
typedef enum rmq_guard_step {
  RMQ_GUARD_NONE,
  RMQ_GUARD_WARN,
  RMQ_GUARD_STOP,
  RMQ_GUARD_END,    /* as soon as Lua runs its next instruction */
  RMQ_GUARD_END_NOW /* it runs none */
} rmq_guard_step;

typedef struct rmq_guard {
  rmq_guard_limits limits;
  rmq_guard_call *calls; /* the innermost that is running */
  bool watched;          /* the thread runs */
  pthread_t thread;      /* the worker's, which the watching one sends signals to */
  clockid_t cpu;         /* the processor time that it has had */
  char status[64];       /* the file that tells whether it sleeps */

  /* Shared with the watching thread, and with the signal's handler. */
  atomic_uint serial; /* odd while a call runs: grows as the outermost begins and as it ends */
  atomic_uint stays;  /* the serial of the call that `step` is about */
  atomic_int step;
  atomic_uint met; /* the serial of the call in which our hook has come last */

  /* Shared with the handler. */
  volatile sig_atomic_t armed; /* our hook is set, and in its place before was: */
  lua_Hook hook;
  int mask, count;
  rmq_guard_subject subject;
} rmq_guard;

/* Around a protected call of a function on the thread L. A call may lie inside another; the time is
 * that of the outermost. Neither raises. */
void rmq_guard_enter(rmq_vm *vm, rmq_guard_call *call, lua_State *L, const char *what);
void rmq_guard_leave(rmq_vm *vm, const rmq_guard_call *call);

/* True inside of any such call. */
bool rmq_guard_inside(const rmq_vm *vm);

/* In a forked child, where no thread watches yet. */
void rmq_guard_forked(rmq_vm *vm);

#endif

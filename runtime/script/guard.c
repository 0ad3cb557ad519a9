#include "script/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "script/plugins.h"
#include "script/worker.h"

/* How often the thread looks, at most and at least; otherwise a quarter of the shortest limit. */
enum { LOOKS_MIN_MS = 2, LOOKS_MAX_MS = 50 };
/* After how many looks the next stronger step is taken when the one before had no effect. */
enum { PATIENCE = 10 };
enum { STACK = 256 * 1024 };

/* Ignored unless somebody handles it, so that one too many does no harm; Go's runtime chose it for the
 * same purpose. */
enum { SIGNAL = SIGURG };

/* --- What is running ------------------------------------------------------------------------- */

/* How many functions lie on the stack. A stack that has overflown is deep, and each question for a
 * level takes time in proportion to it. */
static int depth_of(lua_State *L) {
  lua_Debug info;
  int least = 0, most = 1;
  while (lua_getstack(L, most, &info)) {
    least = most;
    most *= 2;
  }
  while (least < most) {
    int middle = (least + most) / 2;
    if (lua_getstack(L, middle, &info)) {
      least = middle + 1;
    } else {
      most = middle;
    }
  }
  return most;
}

/* Also inside the signal's handler: nothing here allocates. */
static const rmq_guard_subject *find_subject(rmq_vm *vm) {
  rmq_guard_subject *subject = &vm->guard.subject;
  const rmq_guard_call *call = vm->guard.calls;
  if (subject->call == call) return subject;
  *subject = (rmq_guard_subject){.call = call, .info = {.short_src = "?", .source = "?"}};
  for (int level = depth_of(call->L) - 1; level >= 0; level--) {
    lua_Debug info;
    if (!lua_getstack(call->L, level, &info) || !lua_getinfo(call->L, "S", &info)) continue;
    if (info.what[0] == 'C') continue;
    subject->info = info;
    subject->name = rmq_plugins_name(vm, info.source);
    break;
  }
  return subject;
}

/* Pushes "the selector 'by_region' (by_region.lua:3)". */
static void push_subject(lua_State *L, rmq_vm *vm) {
  const rmq_guard_subject *it = find_subject(vm);
  const char *what = it->call->what, *file = it->info.short_src;
  if (it->info.linedefined <= 0) {
    lua_pushfstring(L, "the %s %s", what, file);
  } else if (it->name) {
    lua_pushfstring(L, "the %s '%s' (%s:%d)", what, it->name, file, it->info.linedefined);
  } else {
    lua_pushfstring(L, "the %s at %s:%d", what, file, it->info.linedefined);
  }
}

/* --- The hook -------------------------------------------------------------------------------- */

static void on_instruction(lua_State *L, lua_Debug *info);

/* The state of hooks belongs to all Lua threads together. Safe inside a signal's handler, as in
 * LuaJIT's own program, except that one that comes while hooks are being changed may be lost: then the
 * next signal does it. */
static void arm(rmq_vm *vm) {
  rmq_guard *guard = &vm->guard;
  if (!guard->armed) {
    guard->hook = lua_gethook(vm->L);
    guard->mask = lua_gethookmask(vm->L);
    guard->count = lua_gethookcount(vm->L);
  }
  guard->armed = 1;
  lua_sethook(vm->L, NULL, 0, 0);
  /* Calls are left out, or the handler that makes the error's traceback would meet it, too. */
  lua_sethook(vm->L, on_instruction, LUA_MASKCOUNT, 1);
}

static void disarm(rmq_vm *vm) {
  rmq_guard *guard = &vm->guard;
  guard->armed = 0;
  if (lua_gethook(vm->L) != on_instruction) return; /* an interrupt's has come over it */
  lua_sethook(vm->L, guard->hook, guard->mask, guard->count);
}

static void warn(lua_State *L, rmq_vm *vm) {
  disarm(vm);
  push_subject(L, vm);
  rmq_push_place_from(L, 0);
  rmq_log_line(&vm->log, RMQ_LOG_WARN,
               "%s%s has not returned for %lld ms; until it does nothing is sent or received",
               lua_tostring(L, -1), lua_tostring(L, -2), (long long)vm->guard.limits.warn_ms);
  lua_pop(L, 2);
}

static int stop(lua_State *L, rmq_vm *vm) {
  rmq_push_place_from(L, 0);
  push_subject(L, vm);
  lua_pushfstring(L, " has not returned for %d ms and was stopped; it has to answer at once",
                  (int)vm->guard.limits.stop_ms);
  lua_concat(L, 3);
  return lua_error(L);
}

static void end(lua_State *L, rmq_vm *vm);

static void on_instruction(lua_State *L, lua_Debug *info) {
  (void)info;
  rmq_vm *vm = rmq_vm_of(L);
  int step = atomic_load_explicit(&vm->guard.step, memory_order_relaxed);
  atomic_store_explicit(&vm->guard.met,
                        atomic_load_explicit(&vm->guard.serial, memory_order_relaxed),
                        memory_order_relaxed);
  if (!vm->guard.calls) {
    disarm(vm);
  } else if (step == RMQ_GUARD_WARN) {
    warn(L, vm);
  } else if (step == RMQ_GUARD_STOP) {
    stop(L, vm);
  } else {
    end(L, vm);
  }
}

/* --- The end of the process ------------------------------------------------------------------ */

static void say_end(const rmq_vm *vm, const char *why) {
  rmq_say(" has not returned for ");
  rmq_say_number((size_t)vm->guard.limits.deadman_ms);
  rmq_say(" ms");
  rmq_say(why);
  rmq_say("; ending without flushing");
  size_t undelivered = rmq_vm_undelivered_now(vm);
  if (undelivered > 0) {
    rmq_say("; messages undelivered: ");
    rmq_say_number(undelivered);
  }
  rmq_say("\n");
  _exit(1);
}

/* Lua runs, so that everything may be asked. */
static void end(lua_State *L, rmq_vm *vm) {
  push_subject(L, vm);
  rmq_push_place_from(L, 0);
  fflush(NULL);
  rmq_say("rmqlua: ");
  rmq_say(lua_tostring(L, -1));
  rmq_say(lua_tostring(L, -2));
  say_end(vm, "");
}

/* The line in which Lua has called the C function that runs. What a compiled loop is at cannot be
 * known. */
static void say_line(lua_State *L) {
  lua_Debug info;
  if (!lua_getstack(L, 0, &info) || !lua_getinfo(L, "S", &info) || info.what[0] != 'C') return;
  for (int level = 1; lua_getstack(L, level, &info); level++) {
    lua_getinfo(L, "Sl", &info);
    if (info.currentline <= 0) continue;
    rmq_say(", now in ");
    rmq_say(info.short_src);
    rmq_say(":");
    rmq_say_number((size_t)info.currentline);
    rmq_say(",");
    return;
  }
}

static void say_subject(rmq_vm *vm) {
  const rmq_guard_subject *it = find_subject(vm);
  if (it->name) {
    rmq_say(" '");
    rmq_say(it->name);
    rmq_say("'");
  }
  rmq_say(" at ");
  rmq_say(it->info.short_src);
  rmq_say(":");
  rmq_say_number((size_t)it->info.linedefined);
}

static void say_cannot(const rmq_vm *vm) {
  say_end(vm, ", and a C function or a compiled loop cannot be stopped");
}

static void on_unreadable(int number) {
  (void)number;
  say_cannot(rmq_vm_of(NULL));
}

/* Inside the handler. Lua has come to no instruction at which a hook is called. So it waits for a C
 * function or runs a compiled loop, and the frames below that are whole; or it is in something that
 * knows no hooks (a finalizer, an error handler), where they may not be: then what is said stays
 * short. */
static void end_now(rmq_vm *vm) {
  const rmq_guard_call *call = vm->guard.calls;
  struct sigaction action = {.sa_handler = on_unreadable};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  rmq_say("rmqlua: the ");
  rmq_say(call->what);
  say_subject(vm);
  say_line(call->L);
  say_cannot(vm);
}

static void on_signal(int number) {
  (void)number;
  rmq_vm *vm = rmq_vm_of(NULL);
  if (!vm) return; /* not sent by us: it has met another thread */
  rmq_guard *guard = &vm->guard;
  int kept = errno;
  unsigned serial = atomic_load_explicit(&guard->serial, memory_order_relaxed);
  if (serial == atomic_load_explicit(&guard->stays, memory_order_relaxed) && !vm->hooked) {
    int step = atomic_load_explicit(&guard->step, memory_order_relaxed);
    if (step == RMQ_GUARD_END_NOW) end_now(vm);
    arm(vm);
  }
  errno = kept;
}

/* --- The thread that watches ----------------------------------------------------------------- */

/* A call as the thread sees it. What counts is the time for which the worker's thread has run or
 * slept, and of each look no more than its share: so neither a process that was stopped for an hour
 * nor a machine that has no processor free is taken for a call that does not return. */
typedef struct watch {
  unsigned serial;
  int64_t elapsed_us;
  int64_t warned_us; /* what had elapsed when the first step was taken */
  bool told;         /* that the steps have no effect */
  int64_t cpu_us;    /* that the thread has had at the last look */
  rmq_guard_step step;
  int looks; /* since `step` was taken */
} watch;

static int64_t cpu_us(const rmq_guard *guard) {
  struct timespec had;
  if (clock_gettime(guard->cpu, &had) != 0) return 0;
  return (int64_t)had.tv_sec * 1000000 + had.tv_nsec / 1000;
}

/* True when the thread waits for something, false when it runs or waits for a processor. */
static bool sleeps(const rmq_guard *guard) {
  char text[512];
  int fd = open(guard->status, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  ssize_t len = read(fd, text, sizeof text - 1);
  close(fd);
  if (len <= 0) return true;
  text[len] = '\0';
  /* "12 (name) R ...", where the name may be anything. */
  const char *name_ends = strrchr(text, ')');
  return !name_ends || name_ends[1] == '\0' || name_ends[2] != 'R';
}

/* What of the last `every_us` counts. */
static int64_t counted_us(const rmq_guard *guard, watch *now, int64_t every_us) {
  int64_t had = cpu_us(guard), used = had - now->cpu_us;
  now->cpu_us = had;
  if (used >= every_us || sleeps(guard)) return every_us;
  return used;
}

static rmq_guard_step step_for(const rmq_guard_limits *limits, int64_t elapsed_ms) {
  if (limits->deadman_ms > 0 && elapsed_ms >= limits->deadman_ms) return RMQ_GUARD_END;
  if (limits->stop_ms > 0 && elapsed_ms >= limits->stop_ms) return RMQ_GUARD_STOP;
  if (limits->warn_ms > 0 && elapsed_ms >= limits->warn_ms) return RMQ_GUARD_WARN;
  return RMQ_GUARD_NONE;
}

static void give_up_on(const rmq_vm *vm) {
  rmq_say("rmqlua: a selector, a hook or a plugin's file");
  say_end(vm, ", and blocks signals");
}

static void take_step(rmq_guard *guard, const watch *now) {
  atomic_store_explicit(&guard->step, now->step, memory_order_relaxed);
  atomic_store_explicit(&guard->stays, now->serial, memory_order_release);
  pthread_kill(guard->thread, SIGNAL);
}

/* Says once that the hook does not come, for then it has warned of nothing. */
static void tell_unmet(const rmq_vm *vm, watch *now, int64_t every_us) {
  unsigned met = atomic_load_explicit(&vm->guard.met, memory_order_relaxed);
  if (now->told || met == now->serial) return;
  if (now->elapsed_us - now->warned_us < PATIENCE * every_us) return;
  now->told = true;
  if (!vm->log.write || vm->log.level > RMQ_LOG_WARN) return;
  rmq_say("rmqlua: a selector, a hook or a plugin's file has not returned for ");
  rmq_say_number((size_t)(now->elapsed_us / 1000));
  rmq_say(
      " ms, and is in a C function or a compiled loop, which no error stops; until it returns "
      "nothing is sent or received\n");
}

/* The call is the one that it was at the last look. */
static void consider(rmq_vm *vm, watch *now) {
  rmq_guard_step step = step_for(&vm->guard.limits, now->elapsed_us / 1000);
  if (now->step == RMQ_GUARD_END && now->looks >= PATIENCE) step = RMQ_GUARD_END_NOW;
  if (now->step == RMQ_GUARD_END_NOW) {
    step = RMQ_GUARD_END_NOW;
    if (now->looks >= PATIENCE) give_up_on(vm);
  }
  now->looks = step == now->step ? now->looks + 1 : 0;
  now->step = step;
  /* A warning is given once. An error that was caught is raised again by the hook itself; the signal
   * is repeated because one may be lost. */
  if (step == RMQ_GUARD_NONE || (step == RMQ_GUARD_WARN && now->looks > 0)) return;
  take_step(&vm->guard, now);
}

static int64_t shorter(int64_t a, int64_t b) { return b > 0 && b < a ? b : a; }

static int64_t looks_every_ms(const rmq_guard_limits *limits) {
  int64_t least = shorter(shorter(shorter(LOOKS_MAX_MS * 4, limits->warn_ms), limits->stop_ms),
                          limits->deadman_ms);
  return least / 4 > LOOKS_MIN_MS ? least / 4 : LOOKS_MIN_MS;
}

static void *watch_calls(void *arg) {
  rmq_vm *vm = arg;
  const rmq_guard *guard = &vm->guard;
  int64_t every_ms = looks_every_ms(&guard->limits);
  struct timespec pause = {.tv_nsec = (long)every_ms * 1000000};
  watch now = {0};
  for (;;) {
    nanosleep(&pause, NULL);
    unsigned serial = atomic_load_explicit(&guard->serial, memory_order_relaxed);
    if (serial % 2 == 0) {
      now.serial = serial;
    } else if (serial != now.serial) {
      now = (watch){.serial = serial, .cpu_us = cpu_us(guard)};
    } else {
      now.elapsed_us += counted_us(guard, &now, every_ms * 1000);
      consider(vm, &now);
      if (now.step == RMQ_GUARD_NONE) {
        now.warned_us = now.elapsed_us;
      } else if (now.step < RMQ_GUARD_END) {
        tell_unmet(vm, &now, every_ms * 1000);
      }
    }
  }
  return NULL;
}

/* All signals stay with the worker's thread. */
static void start_watching(rmq_vm *vm) {
  rmq_guard *guard = &vm->guard;
  guard->watched = true;
  if (step_for(&guard->limits, INT64_MAX) == RMQ_GUARD_NONE) return;
  guard->thread = pthread_self();
  pthread_getcpuclockid(guard->thread, &guard->cpu);
  snprintf(guard->status, sizeof guard->status, "/proc/self/task/%ld/stat", syscall(SYS_gettid));
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGNAL, &action, NULL);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
  int code = pthread_create(&thread, &attributes, watch_calls, vm);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code == 0) return;
  rmq_log_line(&vm->log, RMQ_LOG_WARN,
               "no thread can be started to watch over selectors and hooks (%s): one that does "
               "not return is not stopped",
               strerror(code));
}

/* --- Calls ----------------------------------------------------------------------------------- */

/* The handler runs on this thread, so that order is a matter of the compiler only. */
static void next_serial(rmq_guard *guard) {
  unsigned serial = atomic_load_explicit(&guard->serial, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&guard->serial, serial + 1, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
}

void rmq_guard_enter(rmq_vm *vm, rmq_guard_call *call, lua_State *L, const char *what) {
  rmq_guard *guard = &vm->guard;
  call->what = what;
  call->L = L;
  call->outer = guard->calls;
  guard->calls = call;
  if (call->outer) return;
  if (!guard->watched) start_watching(vm);
  next_serial(guard);
}

void rmq_guard_leave(rmq_vm *vm, const rmq_guard_call *call) {
  rmq_guard *guard = &vm->guard;
  guard->calls = call->outer;
  if (!call->outer) next_serial(guard);
  if (!guard->armed && !guard->subject.call) return;
  guard->subject.call = NULL;
  if (guard->armed && !call->outer) disarm(vm);
}

bool rmq_guard_inside(const rmq_vm *vm) { return vm->guard.calls; }

void rmq_guard_forked(rmq_vm *vm) { vm->guard.watched = false; }

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "script/worker.h"

/* Coroutines kept for tasks to come. A burst of more is given back to the collector. */
enum { SPARE_MAX = 1024 };
/* Tasks that may lie below each other on the C stack, each woken by what the one below it did. */
enum { DEPTH_MAX = 16 };

void *rmq_task_token(void) {
  static char token;
  return &token;
}

/* --- Coroutines ------------------------------------------------------------------------------- */

/* Runs protected: gives the task (a light userdata argument) a coroutine. */
static int make_coroutine(lua_State *L) {
  rmq_task *task = lua_touserdata(L, 1);
  rmq_vm *vm = task->vm;
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->coroutines);
  if (task->slot == 0) task->slot = ++vm->slots;
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, -1);
  lua_rawseti(L, -3, task->slot);
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->guarded);
  lua_insert(L, -2);
  lua_pushlightuserdata(L, task);
  lua_rawset(L, -3);
  task->co = co;
  return 0;
}

static rmq_task *make_task(rmq_vm *vm) {
  rmq_task *task = rmq_alloc_zero(1, sizeof *task);
  rmq_link_init(&task->link);
  task->vm = vm;
  return task;
}

static rmq_task *take_task(rmq_vm *vm) {
  rmq_task *task;
  if (rmq_link_alone(&vm->pool)) {
    task = make_task(vm);
  } else {
    task = rmq_link_owner(vm->pool.next, rmq_task, link);
    rmq_link_remove(&task->link);
  }
  if (task->co) {
    vm->spare--;
  } else if (lua_cpcall(vm->L, make_coroutine, task) != 0) {
    fprintf(stderr, "rmqlua: no memory for another task\n");
    abort();
  }
  return task;
}

/* The task waits no more for what it has begun to wait for, also when it has never arrived at that
 * wait: an error can take it elsewhere on the way. */
static void leave_wait(rmq_task *task) {
  task->wait++;
  if (task->timer_made) uv_timer_stop(&task->timer);
  if (!task->holds) return;
  task->holds = false;
  rmq_vm_release(task->vm);
}

/* A coroutine is used again, unless an error has killed it or the script might resume it. */
static void give_back(rmq_task *task, bool alive) {
  rmq_vm *vm = task->vm;
  leave_wait(task);
  rmq_link_remove(&task->link);
  task->state = RMQ_TASK_FREE;
  if (vm->first == task) vm->first = NULL;
  if (alive && !task->exposed && vm->spare < SPARE_MAX) {
    lua_settop(task->co, 0);
    vm->spare++;
    rmq_link_append(vm->pool.next, &task->link);
    return;
  }
  lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->guarded);
  lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->coroutines);
  /* Its coroutine stands for no task any more; this changes a value and so needs no memory. */
  lua_rawgeti(vm->L, -1, task->slot);
  lua_pushboolean(vm->L, false);
  lua_rawset(vm->L, -4);
  lua_pushnil(vm->L);
  lua_rawseti(vm->L, -2, task->slot);
  lua_pop(vm->L, 2);
  task->co = NULL;
  task->exposed = false;
  rmq_link_append(&vm->pool, &task->link);
}

/* --- Running ---------------------------------------------------------------------------------- */

static bool is_wait(lua_State *co) {
  return lua_gettop(co) > 0 && lua_islightuserdata(co, 1) &&
         lua_touserdata(co, 1) == rmq_task_token();
}

/* The coroutine has come back with a yield. */
static void suspended(rmq_task *task) {
  task->suspended = true;
  bool begun = task->state == RMQ_TASK_WAITING || task->state == RMQ_TASK_READY;
  if (!begun || !is_wait(task->co)) {
    /* A script that got hold of the token and yields it waits for nothing of ours, either. */
    lua_settop(task->co, 0);
    leave_wait(task);
    rmq_link_remove(&task->link);
    task->state = RMQ_TASK_YIELDED;
    task->what = "coroutine.yield";
    task->home = &task->vm->waiting;
  } else if (task->state == RMQ_TASK_READY) {
    return; /* woken before it had come here */
  }
  rmq_link_append(task->home, &task->link);
}

/* Runs a task whose function or answers lie on its stack, until it waits or ends. */
static void run(rmq_task *task, int n_args) {
  rmq_vm *vm = task->vm;
  rmq_task *outer = vm->running;
  int blocked = vm->blocked;
  vm->running = task;
  vm->blocked = 0;
  vm->depth++;
  task->state = RMQ_TASK_RUNNING;
  task->suspended = false;
  int status = lua_resume(task->co, n_args);
  vm->depth--;
  vm->running = outer;
  vm->blocked = blocked;
  if (vm->interrupted && vm->depth == 0) rmq_signals_calm(vm);
  if (status == LUA_YIELD) {
    suspended(task);
    return;
  }
  if (status != 0) rmq_vm_uncaught(vm, task->co);
  give_back(task, status == 0);
}

void rmq_task_start(lua_State *L, int n_args) {
  rmq_task *task = take_task(rmq_vm_of(L));
  luaL_checkstack(task->co, n_args + 1, "too many arguments");
  lua_xmove(L, task->co, n_args + 1);
  run(task, n_args);
}

static void run_ready(rmq_task *task) {
  /* While the process ends because of a signal or an error the script stands still, so that a loop
   * that sends for ever ends. Callbacks still come: they are how a mock in this process answers. */
  if (task->vm->stopping) {
    task->home = &task->vm->waiting;
    rmq_link_append(task->home, &task->link);
    task->state = RMQ_TASK_WAITING;
    return;
  }
  if (task->fresh) {
    task->fresh = false;
    run(task, lua_gettop(task->co) - 1);
    return;
  }
  lua_settop(task->co, 0); /* what was anchored */
  lua_pushboolean(task->co, task->ok);
  lua_pushlightuserdata(task->co, task->pointer);
  run(task, 2);
}

/* Those that become ready meanwhile run in the next turn, after the loop has looked at its
 * sockets. */
bool rmq_tasks_turn(rmq_vm *vm) {
  if (rmq_link_alone(&vm->ready)) return false;
  rmq_link now;
  rmq_link_init(&now);
  rmq_link_splice(&now, &vm->ready);
  while (!rmq_link_alone(&now)) {
    rmq_task *task = rmq_link_owner(now.next, rmq_task, link);
    rmq_link_remove(&task->link);
    run_ready(task);
  }
  if (rmq_link_alone(&vm->ready)) uv_idle_stop(&vm->turn);
  return true;
}

static void on_turn(uv_idle_t *handle) { rmq_tasks_turn(handle->data); }

void rmq_task_make_ready(rmq_task *task, bool ok, void *pointer) {
  task->ok = ok;
  task->pointer = pointer;
  task->state = RMQ_TASK_READY;
  task->woken = rmq_task_wait_number(task);
  rmq_link_append(&task->vm->ready, &task->link);
  uv_idle_start(&task->vm->turn, on_turn);
}

rmq_task *rmq_task_spawn(lua_State *L, int n_args) {
  rmq_task *task = take_task(rmq_vm_of(L));
  if (!lua_checkstack(task->co, n_args + 1)) luaL_error(L, "too many arguments");
  lua_xmove(L, task->co, n_args + 1);
  task->fresh = true;
  rmq_task_make_ready(task, true, NULL);
  return task;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

bool rmq_task_may_wait(lua_State *L) {
  const rmq_vm *vm = rmq_vm_of(L);
  return vm->running && vm->blocked == 0 && lua_isyieldable(L);
}

void rmq_push_place_from(lua_State *L, int level) {
  lua_Debug info;
  for (; lua_getstack(L, level, &info) && lua_getinfo(L, "Sl", &info); level++) {
    if (info.currentline > 0 && strncmp(info.source, "@rocketmq/", 10) != 0) {
      lua_pushfstring(L, "%s:%d: ", info.short_src, info.currentline);
      return;
    }
  }
  lua_pushliteral(L, "");
}

void rmq_push_place(lua_State *L) { rmq_push_place_from(L, 1); }

int rmq_task_refuse_wait(lua_State *L, const char *what) {
  rmq_push_place(L);
  if (!rmq_vm_of(L)->running) {
    lua_pushfstring(L,
                    "%s cannot wait here: no task is running (this is a selector or a hook that "
                    "is called later, or the process is ending)",
                    what);
  } else {
    lua_pushfstring(L,
                    "%s cannot wait here: a C function stands between this code and its task "
                    "(table.sort, string.gsub, require, a selector, a hook, __gc); call it "
                    "outside of that, or inside rocketmq.spawn",
                    what);
  }
  lua_concat(L, 2);
  return lua_error(L);
}

rmq_task *rmq_task_running(lua_State *L) { return rmq_vm_of(L)->running; }

/* The yield moves what it is given to the bottom of the C function's frame, so the token goes below
 * what is to be anchored. */
static int yield_token(lua_State *L, int anchored) {
  lua_pushlightuserdata(L, rmq_task_token());
  lua_insert(L, -1 - anchored);
  return lua_yield(L, anchored + 1);
}

unsigned rmq_task_wait_number(const rmq_task *task) {
  return task->suspended ? task->wait : task->wait + 1;
}

/* True when the task has to be suspended until it is woken; false when it has been woken already
 * and runs on in the next turn. */
static bool begin_wait(rmq_task *task, const char *what, rmq_link *home) {
  leave_wait(task);
  task->what = what;
  task->home = home;
  if (task->state == RMQ_TASK_READY && task->woken == task->wait) return false;
  rmq_link_remove(&task->link);
  task->state = RMQ_TASK_WAITING;
  return true;
}

int rmq_task_wait(lua_State *L, int anchored) {
  rmq_vm *vm = rmq_vm_of(L);
  rmq_task *task = vm->running;
  if (begin_wait(task, "the runtime", &vm->waiting)) {
    task->holds = true;
    rmq_vm_hold(vm);
  }
  return yield_token(L, anchored);
}

lua_State *rmq_task_anchored(const rmq_task *task, unsigned wait, int anchored) {
  bool waits = task->suspended && task->state == RMQ_TASK_WAITING && task->wait == wait;
  return waits && lua_gettop(task->co) >= anchored ? task->co : NULL;
}

static void wake(rmq_task *task, bool ok, void *pointer) {
  rmq_vm *vm = task->vm;
  if (task->holds) {
    task->holds = false;
    rmq_vm_release(vm);
  }
  if (task->timer_made) uv_timer_stop(&task->timer);
  if (!task->suspended || vm->depth >= DEPTH_MAX) {
    rmq_link_remove(&task->link);
    rmq_task_make_ready(task, ok, pointer);
    return;
  }
  rmq_link_remove(&task->link);
  task->ok = ok;
  task->pointer = pointer;
  run_ready(task);
}

static void on_limit(uv_timer_t *timer) { wake(timer->data, false, NULL); }

static void set_limit(rmq_task *task, double ms) {
  uv_loop_t *loop = &task->vm->loop;
  if (!task->timer_made) {
    uv_timer_init(loop, &task->timer);
    task->timer.data = task;
    task->timer_made = true;
  }
  /* The loop's clock stands still while Lua runs, and counts whole milliseconds only: the time is
   * worked out on the fine clock, so that no sleep ends early. */
  uv_update_time(loop);
  double most = 9e15;
  double ends = ceil((double)uv_hrtime() / 1e6 + (ms < most ? ms : most));
  uv_timer_start(&task->timer, on_limit, (uint64_t)ends - uv_now(loop), 0);
}

int rmq_task_park(lua_State *L, const char *what, rmq_link *home, double limit_ms) {
  rmq_vm *vm = rmq_vm_of(L);
  rmq_task *task = vm->running;
  bool waits = begin_wait(task, what, home ? home : &vm->waiting);
  if (waits && limit_ms >= 0) set_limit(task, limit_ms);
  return yield_token(L, 0);
}

bool rmq_task_wake(rmq_task *task, unsigned wait, bool ok, void *pointer) {
  bool on_its_way = !task->suspended && wait == task->wait; /* or elsewhere: its next wait tells */
  if (!on_its_way && wait != rmq_task_wait_number(task)) return false;
  if (task->state == RMQ_TASK_FREE || task->state == RMQ_TASK_YIELDED) return false;
  wake(task, ok, pointer);
  if (on_its_way) task->woken = wait;
  return true;
}

bool rmq_tasks_wake_all(rmq_link *home, bool ok) {
  if (rmq_link_alone(home)) return false;
  while (!rmq_link_alone(home)) {
    rmq_task *task = rmq_link_owner(home->next, rmq_task, link);
    rmq_link_remove(&task->link);
    rmq_task_make_ready(task, ok, NULL);
  }
  return true;
}

void rmq_task_resume_yielded(lua_State *L, rmq_task *task, int n_args) {
  rmq_link_remove(&task->link);
  lua_xmove(L, task->co, n_args);
  run(task, n_args);
}

void rmq_tasks_init(rmq_vm *vm) {
  rmq_link_init(&vm->ready);
  rmq_link_init(&vm->waiting);
  rmq_link_init(&vm->in_run);
  rmq_link_init(&vm->in_once);
  rmq_link_init(&vm->pool);
  uv_idle_init(&vm->loop, &vm->turn);
  vm->turn.data = vm;
  /* Not counted, so that uv.loop_alive tells a script about its own handles; run_loop looks at the
   * list. */
  uv_unref((uv_handle_t *)&vm->turn);
  lua_newtable(vm->L);
  vm->coroutines = luaL_ref(vm->L, LUA_REGISTRYINDEX);
  lua_newtable(vm->L);
  lua_newtable(vm->L);
  lua_pushliteral(vm->L, "k");
  lua_setfield(vm->L, -2, "__mode");
  lua_setmetatable(vm->L, -2);
  vm->guarded = luaL_ref(vm->L, LUA_REGISTRYINDEX);
}

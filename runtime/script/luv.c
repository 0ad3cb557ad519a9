#include <lauxlib.h>

#include "script/worker.h"

/* luv on our loop. Its header would bring the folder of another Lua's headers with it, so the three
 * functions that we need are declared here; they are luv's documented way of embedding. */
typedef int luv_callback(lua_State *L, int n_args, int n_results, int flags);
void luv_set_loop(lua_State *L, uv_loop_t *loop);
void luv_set_callback(lua_State *L, luv_callback *callback);
int luaopen_luv(lua_State *L);

/* luv calls back: the function and its arguments are on top of L. No callback of luv's has results
 * that it uses. */
static int on_callback(lua_State *L, int n_args, int n_results, int flags) {
  (void)n_results;
  (void)flags;
  rmq_task_start(L, n_args);
  return 0;
}

static void on_polled(uv_check_t *handle) {
  rmq_vm *vm = handle->data;
  rmq_tasks_wake_all(&vm->in_once, true);
  uv_check_stop(handle);
}

/* run(mode): uv.run for a task. True when uv.stop was called. */
static int run(lua_State *L) {
  static const char *const modes[] = {"default", "once", "nowait", NULL};
  rmq_vm *vm = rmq_vm_of(L);
  int mode = luaL_checkoption(L, 1, "default", modes);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "uv.run");
  if (mode == 0) return rmq_task_park(L, "uv.run", &vm->in_run, -1);
  if (!uv_loop_alive(&vm->loop)) {
    lua_pushboolean(L, false);
    return 1;
  }
  if (mode == 2) {
    rmq_task_make_ready(rmq_task_running(L), true, NULL);
    return rmq_task_park(L, "uv.run", NULL, -1);
  }
  uv_check_start(&vm->polled, on_polled);
  return rmq_task_park(L, "uv.run", &vm->in_once, -1);
}

static int stop(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  rmq_tasks_wake_all(&vm->in_run, true);
  rmq_tasks_wake_all(&vm->in_once, true);
  return 0;
}

/* The loader of "luv". The module is made once for a state, also when a test runner has cleared
 * package.loaded. */
static int open_luv(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "rmqlua.luv");
  if (!lua_isnil(L, -1)) return 1;
  lua_pop(L, 1);
  lua_pushcfunction(L, luaopen_luv);
  lua_call(L, 0, 1);
  luaL_Reg functions[] = {{"run", run}, {"stop", stop}, {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  rmq_loader_run(L, "rocketmq.runtime.luv", 1);
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, "rmqlua.luv");
  return 1;
}

void rmq_luv_init(rmq_vm *vm) {
  lua_State *L = vm->L;
  uv_check_init(&vm->loop, &vm->polled);
  vm->polled.data = vm;
  uv_unref((uv_handle_t *)&vm->polled);
  luv_set_loop(L, &vm->loop);
  luv_set_callback(L, on_callback);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, open_luv);
  lua_setfield(L, -2, "luv");
  lua_pop(L, 2);
}

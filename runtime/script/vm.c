#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "script/plugins.h"
#include "script/worker.h"

/* A thread runs one worker, and a lookup in the registry for each call from Lua would cost more
 * than the call. */
static _Thread_local rmq_vm *current;

rmq_vm *rmq_vm_of(lua_State *L) {
  (void)L;
  return current;
}

uv_loop_t *rmq_vm_loop(const rmq_vm *vm) { return (uv_loop_t *)&vm->loop; }
lua_State *rmq_vm_state(const rmq_vm *vm) { return vm->L; }
const rmq_log *rmq_vm_log(const rmq_vm *vm) { return &vm->log; }

const char *rmq_vm_namesrv(const rmq_vm *vm, bool *forced) {
  *forced = vm->namesrv_forced;
  return vm->namesrv;
}

void rmq_vm_serve(rmq_vm *vm, const char *namesrv, bool forced) {
  free(vm->namesrv);
  vm->namesrv = rmq_copy_text(namesrv, strlen(namesrv));
  vm->namesrv_forced = forced;
}

void rmq_vm_hold(rmq_vm *vm) {
  if (vm->holds++ == 0) uv_ref((uv_handle_t *)&vm->keep);
}

void rmq_vm_release(rmq_vm *vm) {
  if (--vm->holds == 0) uv_unref((uv_handle_t *)&vm->keep);
}

/* --- Making one ------------------------------------------------------------------------------ */

typedef struct preparation {
  rmq_vm *vm;
  const rmq_vm_config *config;
  int status; /* to exit with, when something does not load */
} preparation;

static int panic(lua_State *L) {
  fprintf(stderr, "rmqlua: %s, outside of any protected call\n", lua_tostring(L, -1));
  return 0; /* Lua aborts */
}

static int new_reference(lua_State *L) {
  lua_newtable(L);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Runs protected, because all of it allocates. */
static int open_state(lua_State *L) {
  preparation *work = lua_touserdata(L, 1);
  rmq_vm *vm = work->vm;
  luaL_openlibs(L);
  rmq_loader_run(L, "rocketmq.runtime.traversal", 0); /* before any loop over a table */
  lua_getglobal(L, "coroutine");
  lua_getfield(L, -1, "resume");
  vm->native_resume = luaL_ref(L, LUA_REGISTRYINDEX);
  vm->failures = new_reference(L);
  rmq_tasks_init(vm);
  rmq_plugins_init(vm);
  rmq_loader_init(L);
  work->config->open(L);
  rmq_luv_init(vm);
  lua_getglobal(L, "os");
  lua_pushcfunction(L, rmq_lua_exit);
  lua_setfield(L, -2, "exit");
  rmq_loader_run(L, "rocketmq.runtime.coroutine", 0);
  return 0;
}

static rmq_vm *new_vm(const rmq_vm_config *config) {
  rmq_vm *vm = rmq_alloc_zero(1, sizeof *vm);
  current = vm;
  vm->log = config->log;
  vm->on_error = LUA_NOREF;
  vm->guard.limits = config->guard;
  rmq_link_init(&vm->endings);
  rmq_link_init(&vm->finishing);
  uv_loop_init(&vm->loop);
  uv_async_init(&vm->loop, &vm->keep, NULL);
  uv_unref((uv_handle_t *)&vm->keep);
  if (config->namesrv) rmq_vm_serve(vm, config->namesrv, false);
  vm->L = luaL_newstate();
  preparation work = {.vm = vm, .config = config};
  if (!vm->L || lua_cpcall(vm->L, open_state, &work) != 0) {
    fprintf(stderr, "rmqlua: cannot start Lua: %s\n",
            vm->L ? lua_tostring(vm->L, -1) : "no memory");
    exit(1);
  }
  lua_atpanic(vm->L, panic);
  rmq_signals_init(vm);
  rmq_fork_init(vm);
  return vm;
}

/* --- The main task --------------------------------------------------------------------------- */

/* Ends the preparation with the message on top of the stack. */
static int refuse(lua_State *L, preparation *work, int status) {
  work->status = status;
  return lua_error(L);
}

static void push_mock(lua_State *L, const rmq_vm_config *config) {
  if (!config->mock) {
    lua_pushnil(L);
    return;
  }
  lua_newtable(L);
  lua_pushstring(L, config->mock_spec);
  lua_setfield(L, -2, "spec");
  lua_pushboolean(L, config->mock_forced);
  lua_setfield(L, -2, "forced");
}

static void push_steps(lua_State *L, preparation *work) {
  const rmq_vm_config *config = work->config;
  lua_newtable(L);
  for (size_t i = 0; i < config->n_steps; i++) {
    const rmq_step *step = &config->steps[i];
    if (step->is_module) {
      lua_pushstring(L, step->text);
    } else if (luaL_loadbuffer(L, step->text, strlen(step->text), "=(command line)") != 0) {
      refuse(L, work, 1);
    }
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static const char *const source_names[] = {[RMQ_PLUGIN_SELECTOR] = "selector",
                                           [RMQ_PLUGIN_HOOK] = "hook",
                                           [RMQ_PLUGIN_FOLDER] = "plugins"};

static void push_plugins(lua_State *L, const rmq_vm_config *config) {
  lua_newtable(L);
  for (size_t i = 0; i < config->n_plugins; i++) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, source_names[config->plugins[i].kind]);
    lua_setfield(L, -2, "is");
    lua_pushstring(L, config->plugins[i].path);
    lua_setfield(L, -2, "path");
    lua_rawseti(L, -2, (int)i + 1);
  }
}

/* What the main task is asked to do before the script. */
static void push_orders(lua_State *L, preparation *work) {
  lua_createtable(L, 0, 4);
  push_mock(L, work->config);
  lua_setfield(L, -2, "mock");
  push_plugins(L, work->config);
  lua_setfield(L, -2, "plugins");
  push_steps(L, work);
  lua_setfield(L, -2, "steps");
  lua_pushboolean(L, work->config->check);
  lua_setfield(L, -2, "check");
}

/* Runs protected: makes the main task. Everything is loaded before anything runs. */
static int prepare(lua_State *L) {
  preparation *work = lua_touserdata(L, 1);
  const rmq_vm_config *config = work->config;
  rmq_loader_set_arg(L, config->argc, config->argv, config->script);
  int n_args = config->script ? config->argc - config->script - 1 : 0;
  luaL_checkstack(L, n_args + 8, "too many arguments");
  rmq_loader_run(L, "rocketmq.runtime.main", 0);
  push_orders(L, work);
  if (config->command) {
    rmq_loader_run(L, config->command, 0);
  } else if (config->script) {
    const char *path = config->argv[config->script];
    int status = rmq_loader_script(L, path);
    if (status != 0) return refuse(L, work, status);
    if (strcmp(path, "-") != 0) rmq_loader_add_folder(L, path);
  } else {
    lua_pushnil(L);
  }
  for (int i = 0; i < n_args; i++) lua_pushstring(L, config->argv[config->script + 1 + i]);
  work->vm->first = rmq_task_spawn(L, 2 + n_args);
  return 0;
}

/* --- Running --------------------------------------------------------------------------------- */

/* Runs the loop until the script has nothing left to do, or is stopped. */
static void run_loop(rmq_vm *vm) {
  for (;;) {
    uv_run(&vm->loop, UV_RUN_DEFAULT);
    if (vm->stopping) return;
    if (uv_loop_alive(&vm->loop) || rmq_tasks_turn(vm)) continue;
    bool more = rmq_tasks_wake_all(&vm->in_once, false);
    if (!more && !rmq_tasks_wake_all(&vm->in_run, false)) break;
  }
  if (!rmq_link_alone(&vm->waiting)) {
    rmq_vm_list_stuck(vm);
    vm->failed = true;
    vm->stopping = true;
  }
}

int rmq_vm_main(const rmq_vm_config *config) {
  rmq_vm *vm = new_vm(config);
  preparation work = {vm, config, 1};
  if (lua_cpcall(vm->L, prepare, &work) != 0) {
    fprintf(stderr, "rmqlua: %s\n", lua_tostring(vm->L, -1));
    return work.status;
  }
  run_loop(vm);
  rmq_vm_finish(vm);
  rmq_vm_tell_undelivered(vm);
  int status = rmq_vm_status(vm);
  /* As lua(1) does: finalizers run. The loop does not any more, so that no callback finds a closed
   * state. */
  lua_close(vm->L);
  return status;
}

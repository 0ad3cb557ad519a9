#include "script/plugins.h"

#include <lauxlib.h>
#include <luajit.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "script/guard.h"
#include "script/worker.h"

/* rocketmq.native.plugins: what rocketmq.plugins is made of. Not for scripts. */

/* A table that keeps none of its keys. */
static void push_weak(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

void rmq_plugins_init(rmq_vm *vm) {
  static const char *const lists[] = {"sources", "loaded", "hooks", NULL};
  lua_State *L = vm->L;
  lua_createtable(L, 0, 5);
  for (const char *const *list = lists; *list; list++) {
    lua_newtable(L);
    lua_setfield(L, -2, *list);
  }
  push_weak(L);
  lua_setfield(L, -2, "producers");
  lua_newtable(L);
  lua_pushvalue(L, -1);
  vm->selectors = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_setfield(L, -2, "selectors");
  vm->plugins = luaL_ref(L, LUA_REGISTRYINDEX);
  vm->reload = LUA_NOREF;
}

void rmq_plugins_push_selectors(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, rmq_vm_of(L)->selectors);
}

bool rmq_plugins_push_selector(lua_State *L, int index) {
  rmq_plugins_push_selectors(L);
  lua_pushvalue(L, index);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

/* --- Files ----------------------------------------------------------------------------------- */

/* load(what, path, environment): the file's function; or nil, why, and the status to exit with. */
static int load(lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  const char *path = luaL_checkstring(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  int status = rmq_loader_file(L, what, path);
  if (status != 0) {
    lua_pushnil(L);
    lua_insert(L, -2);
    lua_pushinteger(L, status);
    return 3;
  }
  /* Nothing can stop a loop that is compiled. This covers what is defined inside the file, too. */
  luaJIT_setmode(L, -1, LUAJIT_MODE_ALLFUNC | LUAJIT_MODE_OFF);
  lua_pushvalue(L, 3);
  lua_setfenv(L, -2);
  return 1;
}

static int handle(lua_State *L) {
  rmq_push_failure(L, L, 1, 1);
  return 1;
}

/* run(function): true and what it returns; or false and the error with its traceback. It cannot
 * wait, for this is a C call around it. */
static int run(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  rmq_guard_call call;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_State *thread = lua_newthread(L);
  lua_insert(L, 1);
  lua_pushcfunction(thread, handle);
  lua_xmove(L, thread, 1);
  rmq_guard_enter(vm, &call, thread, "plugin");
  int status = lua_pcall(thread, 0, 1, 1);
  rmq_guard_leave(vm, &call);
  lua_pushboolean(L, status == 0);
  lua_xmove(thread, L, 1);
  return 2;
}

/* inside(): true inside of a selector, a hook, or the file of a plugin. */
static int inside(lua_State *L) {
  lua_pushboolean(L, rmq_guard_inside(rmq_vm_of(L)));
  return 1;
}

/* --- Names ----------------------------------------------------------------------------------- */

const char *rmq_plugins_name(const rmq_vm *vm, const char *source) {
  for (size_t i = 0; source[0] == '@' && i < vm->n_plugin_names; i++) {
    if (strcmp(vm->plugin_names[i].path, source + 1) == 0) return vm->plugin_names[i].name;
  }
  return NULL;
}

void rmq_plugins_selector_names(const rmq_vm *vm, const char **names, size_t room) {
  for (size_t i = 0; i < vm->n_plugin_names && room > 0; i++) {
    if (!vm->plugin_names[i].is_selector) continue;
    *names++ = vm->plugin_names[i].name;
    room--;
  }
}

static char *copy_field(lua_State *L, int table, const char *field) {
  size_t len;
  lua_getfield(L, table, field);
  const char *text = lua_tolstring(L, -1, &len);
  char *copy = rmq_copy_text(text, len);
  lua_pop(L, 1);
  return copy;
}

static void forget_names(rmq_vm *vm) {
  for (size_t i = 0; i < vm->n_plugin_names; i++) {
    free(vm->plugin_names[i].path);
    free(vm->plugin_names[i].name);
  }
  free(vm->plugin_names);
  vm->n_plugin_names = 0;
}

/* name(plugins): which files are which plugins. */
static int name(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  size_t n = lua_objlen(L, 1);
  forget_names(vm);
  vm->plugin_names = rmq_alloc_zero(n + 1, sizeof *vm->plugin_names);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (int)i + 1);
    vm->plugin_names[i].path = copy_field(L, 2, "path");
    vm->plugin_names[i].name = copy_field(L, 2, "name");
    lua_getfield(L, 2, "is");
    vm->plugin_names[i].is_selector = strcmp(lua_tostring(L, -1), "selector") == 0;
    lua_settop(L, 1);
  }
  vm->n_plugin_names = n;
  return 0;
}

/* log(level, text) */
static int write_log(lua_State *L) {
  static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
  rmq_log_level level = RMQ_LOG_DEBUG + (unsigned)luaL_checkoption(L, 1, NULL, levels);
  rmq_log_line(rmq_vm_log(rmq_vm_of(L)), level, "%s", luaL_checkstring(L, 2));
  return 0;
}

/* --- SIGHUP ---------------------------------------------------------------------------------- */

static void on_hangup(uv_signal_t *handle, int number) {
  (void)number;
  rmq_vm *vm = handle->data;
  if (vm->stopping) return;
  lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->reload);
  rmq_task_start(vm->L, 0);
}

/* on_hangup(function): what SIGHUP does from now on. */
static int set_on_hangup(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  bool first = vm->reload == LUA_NOREF;
  luaL_unref(L, LUA_REGISTRYINDEX, vm->reload);
  lua_settop(L, 1);
  vm->reload = luaL_ref(L, LUA_REGISTRYINDEX);
  if (!first) return 0;
  uv_signal_init(&vm->loop, &vm->hangup);
  vm->hangup.data = vm;
  uv_unref((uv_handle_t *)&vm->hangup);
  uv_signal_start(&vm->hangup, on_hangup, SIGHUP);
  return 0;
}

int luaopen_rocketmq_native_plugins(lua_State *L) {
  static const luaL_Reg functions[] = {{"load", load},     {"run", run},
                                       {"inside", inside}, {"name", name},
                                       {"log", write_log}, {"on_hangup", set_on_hangup},
                                       {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_rawgeti(L, LUA_REGISTRYINDEX, rmq_vm_of(L)->plugins);
  lua_setfield(L, -2, "state");
  return 1;
}

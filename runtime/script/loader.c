#include "script/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/builtin.h"
#include "script/worker.h"

static void load(lua_State *L, const rmq_builtin *builtin) {
  int status = luaL_loadbuffer(L, (const char *)builtin->code, builtin->len, builtin->chunk);
  if (status != 0) lua_error(L); /* the bytecode of another LuaJIT */
}

/* A loader in package.preload; its upvalue is the row of the table. Modules get their name, as
 * from require. */
static int load_builtin(lua_State *L) {
  const rmq_builtin *builtin = lua_touserdata(L, lua_upvalueindex(1));
  lua_settop(L, 1);
  load(L, builtin);
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

void rmq_loader_run(lua_State *L, const char *module, int n_args) {
  const rmq_builtin *builtin = rmq_builtin_table;
  while (builtin->module && strcmp(builtin->module, module) != 0) builtin++;
  if (!builtin->module) luaL_error(L, "no built-in module '%s'", module);
  load(L, builtin);
  lua_insert(L, -1 - n_args);
  lua_call(L, n_args, 1);
}

static void push_preload(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_remove(L, -2);
}

void rmq_loader_preload(lua_State *L, const luaL_Reg *modules) {
  push_preload(L);
  luaL_register(L, NULL, modules);
  lua_pop(L, 1);
}

void rmq_loader_init(lua_State *L) {
  static const luaL_Reg modules[] = {{"rocketmq.native.plugins", luaopen_rocketmq_native_plugins},
                                     {"rocketmq.native.task", luaopen_rocketmq_native_task},
                                     {NULL, NULL}};
  rmq_loader_preload(L, modules);
  push_preload(L);
  for (const rmq_builtin *builtin = rmq_builtin_table; builtin->module; builtin++) {
    lua_pushlightuserdata(L, (void *)builtin);
    lua_pushcclosure(L, load_builtin, 1);
    lua_setfield(L, -2, builtin->module);
  }
  lua_pop(L, 1);
}

void rmq_loader_add_folder(lua_State *L, const char *script) {
  const char *slash = strrchr(script, '/');
  lua_getglobal(L, "package");
  if (slash) {
    lua_pushlstring(L, script, (size_t)(slash - script));
  } else {
    lua_pushliteral(L, ".");
  }
  lua_getfield(L, -2, "path");
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", lua_tostring(L, -2), lua_tostring(L, -2),
                  lua_tostring(L, -1));
  lua_setfield(L, -4, "path");
  lua_pop(L, 3);
}

void rmq_loader_set_arg(lua_State *L, int argc, char **argv, int script) {
  lua_createtable(L, argc - script, script + 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

/* Reading a folder or a file that may not be read fails late and with little to say, so it is
 * asked first. */
static int why_unreadable(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  struct stat info;
  int code = fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  close(fd);
  return code;
}

static int status_of(int code) {
  if (code == LUA_ERRFILE) return 2;
  return code == 0 ? 0 : 1;
}

int rmq_loader_file(lua_State *L, const char *what, const char *path) {
  int code = why_unreadable(path);
  if (code != 0) {
    lua_pushfstring(L, "cannot read the %s '%s': %s", what, path, strerror(code));
    return 2;
  }
  return status_of(luaL_loadfile(L, path));
}

int rmq_loader_script(lua_State *L, const char *path) {
  if (strcmp(path, "-") != 0) return rmq_loader_file(L, "script", path);
  return status_of(luaL_loadfile(L, NULL));
}

#ifndef RMQ_SCRIPT_LOADER_H
#define RMQ_SCRIPT_LOADER_H

#include <lauxlib.h>
#include <lua.h>

/* Preloads the built-in modules: all of Lua's, and C's of this room. */
void rmq_loader_init(lua_State *L);

/* Preloads modules of C, ended by {NULL, NULL}. May raise. */
void rmq_loader_preload(lua_State *L, const luaL_Reg *modules);

/* Runs a built-in Lua module's chunk with the `n_args` values on top of the stack and leaves its
 * result. For modules that are the runtime's own and that require must not give. Raises what the
 * chunk raises. */
void rmq_loader_run(lua_State *L, const char *module, int n_args);

/* Puts the folder of a script first on package.path. */
void rmq_loader_add_folder(lua_State *L, const char *script);

/* Makes the global `arg` as lua(1) does: arg[0] is argv[script], what stands before it has negative
 * numbers. */
void rmq_loader_set_arg(lua_State *L, int argc, char **argv, int script);

/* Loads a file, of which errors say what it is. Pushes the function and returns 0, or pushes a
 * message and returns the status to exit with: 2 when it cannot be read, 1 when it is not Lua. */
int rmq_loader_file(lua_State *L, const char *what, const char *path);

/* The same for a script, which may be "-" for stdin. */
int rmq_loader_script(lua_State *L, const char *path);

#endif

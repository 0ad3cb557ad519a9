#ifndef RMQ_SCRIPT_PLUGINS_H
#define RMQ_SCRIPT_PLUGINS_H

#include <lua.h>
#include <stdbool.h>

#include "script/vm.h"

/* Selectors and hooks that were loaded from files. What is loaded belongs to the worker and not to a
 * Lua module: a module may be loaded anew at any time. How files are read and checked is said in
 * lua/rocketmq/plugins.lua. */

/* May raise; called once, before any script. */
void rmq_plugins_init(rmq_vm *vm);

/* Pushes the function of the selector with the name, a string at `index` (counted from the bottom):
 * of one that was loaded, or that is there from the beginning. Pushes nothing and returns false when
 * there is none. Never raises; about 10 ns. A reload puts another function in its place, so it is
 * asked for at each call and not kept. */
bool rmq_plugins_push_selector(lua_State *L, int index);

/* Pushes the table of all of them, by their names. */
void rmq_plugins_push_selectors(lua_State *L);

/* Writes the names of the loaded selectors, no more than `room`, which live until plugins are loaded
 * again. */
void rmq_plugins_selector_names(const rmq_vm *vm, const char **names, size_t room);

/* The name of the plugin that a function belongs to, by the `source` of its lua_Debug; NULL when it
 * is no plugin's. Also for a signal's handler. */
const char *rmq_plugins_name(const rmq_vm *vm, const char *source);

#endif

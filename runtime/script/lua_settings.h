#ifndef RMQ_SCRIPT_LUA_SETTINGS_H
#define RMQ_SCRIPT_LUA_SETTINGS_H

#include <lua.h>

#include "producer/settings.h"
#include "script/vm.h"

/* Fills `settings` (initialised here) from the table at `index`, checked row by row against the
 * table of settings. Name servers come from --mock, else the script, else --namesrv, else
 * NAMESRV_ADDR. 0 and the caller frees `settings`; or RMQ_EINVAL, nothing to free, and a sentence
 * in `why`. */
int rmq_lua_read_settings(lua_State *L, int index, const rmq_vm *vm, rmq_settings *settings,
                          char *why, size_t why_size);

/* Pushes a table: name to value. */
void rmq_lua_push_settings(lua_State *L, const rmq_settings *settings);

#endif

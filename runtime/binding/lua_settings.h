#ifndef RMQ_BINDING_LUA_SETTINGS_H
#define RMQ_BINDING_LUA_SETTINGS_H

#include <lua.h>

#include "base/buf.h"
#include "producer/settings.h"
#include "script/vm.h"

/* Fills `settings` (initialised here) from the table at `index`, checked row by row against the
 * table of settings. Name servers come from --mock, else the script, else --namesrv, else
 * NAMESRV_ADDR. 0 and the caller frees `settings`; or RMQ_EINVAL, nothing to free, and a sentence
 * in `why`. */
int rmq_lua_read_settings(lua_State *L, int index, const rmq_vm *vm, rmq_settings *settings,
                          char *why, size_t why_size);

/* Appends the name servers that the string or list at `index` names, as the setting namesrv is
 * written; with --mock the mock's, whatever is given. 0, or RMQ_EINVAL and a sentence in `why`. The
 * addresses are not checked. */
int rmq_lua_read_namesrv(lua_State *L, int index, const rmq_vm *vm, rmq_buf *text, char *why,
                         size_t why_size);

/* Pushes a table: name to value. */
void rmq_lua_push_settings(lua_State *L, const rmq_settings *settings);

#endif

#ifndef RMQ_BINDING_LUA_NAMES_H
#define RMQ_BINDING_LUA_NAMES_H

#include <lua.h>
#include <stdbool.h>

#include "base/slice.h"

/* The names that a table given by a script may have, so that a typing error is told at once and
 * not lost. */
typedef struct rmq_names {
  const char *kind;         /* what one is called: "field", "option" */
  const char *where;        /* where it stands: "the message" */
  const char *const *names; /* ended by NULL */
} rmq_names;

bool rmq_names_has(const rmq_names *names, rmq_slice name);

/* The known name that looks most like a wrong one, or NULL when none is near. */
const char *rmq_names_nearest(const rmq_names *names, rmq_slice name);

/* Pushes all of them, "a, b, c". */
void rmq_names_push(lua_State *L, const rmq_names *names);

/* Raises, at the caller of the Lua function that called us, when the table at `index` has a key
 * that is not one of the names. */
void rmq_names_check(lua_State *L, const rmq_names *names, int index);

/* luaL_error with the position of the caller of the Lua function that called us: a script's own
 * line, not that of the module between. */
int rmq_lua_raise(lua_State *L, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

#endif

#ifndef RMQ_BINDING_LUA_HOOK_SET_H
#define RMQ_BINDING_LUA_HOOK_SET_H

#include "binding/lua_hook.h"

/* The hooks of a producer, as C has them: what each can do, and which of its errors have been told. */

/* Errors that are told with their traceback: the first at each of so many places in a hook. */
enum { RMQ_LUA_HOOK_PLACES = 32 };

/* A hook. The memory of a userdata, which the script's table keeps as long as it lives. */
struct rmq_lua_hook {
  bool strict;
  size_t n_places;
  uint32_t places[RMQ_LUA_HOOK_PLACES]; /* hashes of where errors were that have been told */
  char name[];
};

/* The hooks of a time. */
struct rmq_lua_hook_set {
  unsigned holders; /* the producer, and attempts that began with it */
  int functions;    /* registry reference: the list of all functions, false where there is none, and
                     * behind them the hooks' userdata */
  unsigned has;     /* one bit for each kind of function that one of them has */
  size_t n;
  struct {
    rmq_lua_hook *hook;
    unsigned has; /* likewise */
  } hooks[];
};

/* Makes one, held once, of a list of tables at `list` (see rmq_lua_hooks_set). May raise. */
rmq_lua_hook_set *rmq_lua_hook_set_make(lua_State *L, const rmq_lua_hooks *all, int list);
rmq_lua_hook_set *rmq_lua_hook_set_hold(rmq_lua_hook_set *set);
/* NULL is let go, too. */
void rmq_lua_hook_set_let_go(const rmq_lua_hooks *all, rmq_lua_hook_set *set);

/* Logs an error that a function of a hook has raised, whose text has a traceback behind it; only once for each
 * place in it. */
void rmq_lua_hook_tell(rmq_lua_hook *hook, const rmq_log *log, rmq_lua_hook_function function,
                       const char *text);

#endif

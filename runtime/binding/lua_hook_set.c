#include "binding/lua_hook_set.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const function_names[RMQ_HOOK_FUNCTIONS] = {
    "check_forbidden", "before", "after", "end_transaction", "before_request", "after_response"};

void rmq_lua_hook_set_let_go(const rmq_lua_hooks *all, rmq_lua_hook_set *set) {
  if (!set || --set->holders > 0) return;
  luaL_unref(rmq_vm_state(all->vm), LUA_REGISTRYINDEX, set->functions);
  free(set);
}

rmq_lua_hook_set *rmq_lua_hook_set_hold(rmq_lua_hook_set *set) {
  set->holders++;
  return set;
}

/* Pushes the userdata of the hook whose table is at `table`. It is made once, because it knows what
 * has been told already. */
static rmq_lua_hook *push_hook(lua_State *L, int known, int table) {
  lua_pushvalue(L, table);
  lua_rawget(L, known);
  if (lua_isuserdata(L, -1)) return lua_touserdata(L, -1);
  lua_pop(L, 1);
  lua_getfield(L, table, "name");
  size_t len;
  const char *name = luaL_checklstring(L, -1, &len);
  rmq_lua_hook *hook = lua_newuserdata(L, sizeof *hook + len + 1);
  memset(hook, 0, sizeof *hook);
  memcpy(hook->name, name, len + 1);
  lua_getfield(L, table, "strict");
  hook->strict = lua_toboolean(L, -1);
  lua_pop(L, 1);
  lua_remove(L, -2);
  lua_pushvalue(L, table);
  lua_pushvalue(L, -2);
  lua_rawset(L, known);
  return hook;
}

/* Puts the functions of one hook into the list at `functions`. */
static unsigned put_functions(lua_State *L, int functions, int table, size_t i) {
  unsigned has = 0;
  for (int f = 0; f < RMQ_HOOK_FUNCTIONS; f++) {
    lua_getfield(L, table, function_names[f]);
    if (lua_isfunction(L, -1)) {
      has |= 1u << f;
    } else {
      lua_pop(L, 1);
      lua_pushboolean(L, false);
    }
    lua_rawseti(L, functions, (int)i * RMQ_HOOK_FUNCTIONS + f + 1);
  }
  return has;
}

rmq_lua_hook_set *rmq_lua_hook_set_make(lua_State *L, const rmq_lua_hooks *all, int list) {
  size_t n = lua_objlen(L, list);
  int base = lua_gettop(L);
  int functions = base + 1, known = base + 3, table = base + 4;
  lua_createtable(L, (int)n * (RMQ_HOOK_FUNCTIONS + 1), 0);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->kept);
  lua_getfield(L, -1, "known");
  rmq_lua_hook_set *set = lua_newuserdata(L, sizeof *set + n * sizeof set->hooks[0]);
  lua_insert(L, base + 1); /* what may raise is done with memory that the collector frees */
  functions++, known++, table++;
  set->has = 0;
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, list, (int)i + 1);
    luaL_checktype(L, table, LUA_TTABLE);
    set->hooks[i].has = put_functions(L, functions, table, i);
    set->has |= set->hooks[i].has;
    set->hooks[i].hook = push_hook(L, known, table);
    lua_rawseti(L, functions, (int)(n * RMQ_HOOK_FUNCTIONS + i) + 1);
    lua_settop(L, known);
  }
  lua_pushvalue(L, functions);
  set->functions = luaL_ref(L, LUA_REGISTRYINDEX);
  set->n = n;
  set->holders = 1;
  rmq_lua_hook_set *made = rmq_alloc(sizeof *made + n * sizeof made->hooks[0]);
  memcpy(made, set, sizeof *made + n * sizeof made->hooks[0]);
  lua_settop(L, base);
  return made;
}

/* --- Errors --- */

/* How much of a text is the place that it begins with, "file:line:"; all of its first line when it
 * has none. */
static size_t place_len(const char *text) {
  size_t len = strcspn(text, "\n");
  for (size_t i = 0; i < len; i++) {
    if (text[i] != ':') continue;
    size_t digits = strspn(text + i + 1, "0123456789");
    if (digits > 0 && text[i + 1 + digits] == ':') return i + 1 + digits;
  }
  return len;
}

static uint32_t hash_place(rmq_lua_hook_function function, const char *text) {
  size_t len = place_len(text);
  uint32_t hash = 2166136261u ^ (uint32_t)function;
  for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return hash;
}

/* True for the first error at a place, which is then told. */
static bool is_new(rmq_lua_hook *hook, rmq_lua_hook_function function, const char *text) {
  uint32_t hash = hash_place(function, text);
  for (size_t i = 0; i < hook->n_places; i++) {
    if (hook->places[i] == hash) return false;
  }
  if (hook->n_places == RMQ_LUA_HOOK_PLACES) return false;
  hook->places[hook->n_places++] = hash;
  return true;
}

/* A line of the log for each line of the text. */
static void write_lines(const rmq_log *log, const char *text) {
  while (*text) {
    size_t len = strcspn(text, "\n");
    rmq_log_line(log, RMQ_LOG_ERROR, "%.*s", (int)len, text);
    text += len + (text[len] == '\n');
  }
}

void rmq_lua_hook_tell(rmq_lua_hook *hook, const rmq_log *log, rmq_lua_hook_function function,
                       const char *text) {
  if (!is_new(hook, function, text)) return;
  rmq_log_line(log, RMQ_LOG_ERROR, "hook %s: its function %s failed; this is told once", hook->name,
               function_names[function]);
  write_lines(log, text);
}

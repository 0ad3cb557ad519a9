#include "binding/lua_names.h"

#include <lauxlib.h>
#include <stdarg.h>

enum { LONGEST = 48 };

bool rmq_names_has(const rmq_names *names, rmq_slice name) {
  for (const char *const *at = names->names; *at; at++) {
    if (rmq_slice_is(name, *at)) return true;
  }
  return false;
}

static unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }

/* The number of letters to insert, delete, replace or swap with a neighbour that makes one text of
 * the other. Both are at most LONGEST long. */
static unsigned distance(rmq_slice a, rmq_slice b) {
  unsigned rows[3][LONGEST + 1];
  unsigned *before = rows[0], *last = rows[1], *row = rows[2];
  for (unsigned j = 0; j <= b.len; j++) last[j] = j;
  for (unsigned i = 1; i <= a.len; i++) {
    row[0] = i;
    for (unsigned j = 1; j <= b.len; j++) {
      unsigned replaced = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
      row[j] = smaller(replaced, smaller(last[j], row[j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
      if (swapped) row[j] = smaller(row[j], before[j - 2] + 1);
    }
    unsigned *free_row = before;
    before = last;
    last = row;
    row = free_row;
  }
  return last[b.len];
}

const char *rmq_names_nearest(const rmq_names *names, rmq_slice name) {
  if (name.len > LONGEST) return NULL;
  const char *nearest = NULL;
  unsigned best = (unsigned)name.len / 3 + 1;
  for (const char *const *at = names->names; *at; at++) {
    unsigned d = distance(name, rmq_slice_text(*at));
    if (d <= best && (!nearest || d < best)) {
      nearest = *at;
      best = d;
    }
  }
  return nearest;
}

int rmq_lua_raise(lua_State *L, const char *format, ...) {
  luaL_where(L, 2);
  va_list args;
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  lua_concat(L, 2);
  return lua_error(L);
}

void rmq_names_push(lua_State *L, const rmq_names *names) {
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (const char *const *at = names->names; *at; at++) {
    if (at != names->names) luaL_addstring(&text, ", ");
    luaL_addstring(&text, *at);
  }
  luaL_pushresult(&text);
}

static int unknown(lua_State *L, const rmq_names *names, rmq_slice name) {
  const char *nearest = rmq_names_nearest(names, name);
  if (nearest) {
    return rmq_lua_raise(L, "unknown %s '%s' in %s: did you mean '%s'?", names->kind, name.ptr,
                         names->where, nearest);
  }
  rmq_names_push(L, names);
  return rmq_lua_raise(L, "unknown %s '%s' in %s: there are %s", names->kind, name.ptr,
                       names->where, lua_tostring(L, -1));
}

void rmq_names_check(lua_State *L, const rmq_names *names, int index) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) {
      rmq_names_push(L, names);
      rmq_lua_raise(L, "%s has a key that is a %s; its keys are names: %s", names->where,
                    luaL_typename(L, -2), lua_tostring(L, -1));
    }
    rmq_slice name;
    name.ptr = lua_tolstring(L, -1, &name.len);
    if (!rmq_names_has(names, name)) unknown(L, names, name);
  }
}

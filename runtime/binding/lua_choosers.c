#include "binding/lua_choosers.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/shown.h"
#include "base/splitmix.h"
#include "binding/lua_names.h"
#include "script/loader.h"
#include "script/plugins.h"
#include "select/hash.h"

/* Where the registry keeps the function that hashes 64-bit integers. */
#define LONG_HASH "rocketmq.long_hash"
/* And the state of the chance that all selectors share. */
#define CHANCE "rocketmq.selector_chance"

static const double exact = 9007199254740992.0; /* 2^53: from here on doubles skip integers */

/* --- Keys: what is divided by the number of queues --- */

/* What cannot be hashed, as a sentence on top of the stack. */
static bool refuse_number(lua_State *L, double number) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.17g", rmq_shown(number));
  if (floor(number) == number && isfinite(number)) {
    lua_pushfstring(L,
                    "hash: its argument is %s; from 2^53 on a Lua number does not hold every whole "
                    "number: give an int64_t, like 9007199254740993LL, or a string",
                    digits);
  } else {
    lua_pushfstring(L,
                    "hash: its argument is %s; a number must be whole: give a whole one, or make a "
                    "string of it as every other sender does",
                    digits);
  }
  return false;
}

static bool number_key(lua_State *L, int arg, int64_t *key) {
  double number = lua_tonumber(L, arg);
  if (floor(number) != number || fabs(number) >= exact) return refuse_number(L, number);
  bool is_integer = number >= INT32_MIN && number <= INT32_MAX;
  *key = is_integer ? (int64_t)number : rmq_hash_java_long((int64_t)number);
  return true;
}

/* C cannot look into cdata, so Lua does. */
static bool cdata_key(lua_State *L, int arg, int64_t *key) {
  lua_pushvalue(L, arg);
  lua_getfield(L, LUA_REGISTRYINDEX, LONG_HASH);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    rmq_loader_run(L, "rocketmq.selector.long", 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, LONG_HASH);
  }
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) {
    lua_pushliteral(L,
                    "hash: its argument is a cdata that is neither int64_t nor uint64_t; "
                    "make a number of it with tonumber");
    return false;
  }
  *key = (int64_t)lua_tonumber(L, -1);
  lua_pop(L, 1);
  return true;
}

static rmq_slice text_at(lua_State *L, int index) {
  rmq_slice text;
  text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

/* Java's hashCode of the argument. False with a sentence on top of the stack. */
static bool java_key(lua_State *L, int arg, int64_t *key) {
  switch (lua_type(L, arg)) {
    case LUA_TSTRING:
      *key = rmq_hash_java_text(text_at(L, arg));
      return true;
    case LUA_TNUMBER:
      return number_key(L, arg, key);
    case LUA_TBOOLEAN:
      *key = rmq_hash_java_boolean(lua_toboolean(L, arg));
      return true;
    default:
      break;
  }
  const char *type = luaL_typename(L, arg);
  if (strcmp(type, "cdata") == 0) return cdata_key(L, arg, key);
  bool none = lua_isnoneornil(L, arg);
  lua_pushfstring(L, "hash: its argument %s %s; give %s a string, a whole number or a boolean",
                  none ? "is" : "is a", none ? "nil" : type, none ? "option arg," : "it");
  return false;
}

/* client-go's key; `*any`: it is empty, and client-go takes any queue then. */
static bool fnv1a_key(lua_State *L, int arg, int64_t *key, bool *any) {
  if (lua_type(L, arg) != LUA_TSTRING) {
    bool none = lua_isnoneornil(L, arg);
    lua_pushfstring(L, "hash_fnv1a: its argument %s %s; give %s a string, as client-go does",
                    none ? "is" : "is a", none ? "nil" : luaL_typename(L, arg),
                    none ? "option arg," : "it");
    return false;
  }
  rmq_slice text = text_at(L, arg);
  *any = text.len == 0;
  *key = rmq_hash_fnv1a(text);
  return true;
}

/* --- As functions: (queues, message, arg, ctx) --- */

static int64_t count_of(lua_State *L, const char *name) {
  luaL_checktype(L, 1, LUA_TTABLE);
  int64_t n = (int64_t)lua_objlen(L, 1);
  if (n == 0) luaL_error(L, "%s: the list of queues is empty", name);
  return n > 0 ? n : 1; /* never less: who divides by it need not know that errors do not return */
}

static int push_place(lua_State *L, int64_t key, int64_t n) {
  int64_t place = key % n;
  lua_pushinteger(L, (lua_Integer)(place < 0 ? -place : place) + 1);
  return 1;
}

/* Raises the sentence on top of the stack with the caller's line. */
static int raise_sentence(lua_State *L) {
  luaL_where(L, 1);
  lua_insert(L, -2);
  lua_concat(L, 2);
  return lua_error(L);
}

/* The state is upvalue 1 of who draws. */
static int push_drawn(lua_State *L, int64_t n) {
  uint64_t drawn = rmq_splitmix(lua_touserdata(L, lua_upvalueindex(1)));
  lua_pushinteger(L, (lua_Integer)(drawn % (uint64_t)n) + 1);
  return 1;
}

static int select_hash(lua_State *L) {
  int64_t n = count_of(L, "hash"), key;
  return java_key(L, 3, &key) ? push_place(L, key, n) : raise_sentence(L);
}

static int select_hash_fnv1a(lua_State *L) {
  int64_t n = count_of(L, "hash_fnv1a"), key;
  bool any = false;
  if (!fnv1a_key(L, 3, &key, &any)) return raise_sentence(L);
  return any ? push_drawn(L, n) : push_place(L, key, n);
}

static int select_random(lua_State *L) { return push_drawn(L, count_of(L, "random")); }

static int select_best(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_type(L, 4) != LUA_TTABLE) {
    return luaL_error(
        L, "best: call it with all that a selector is given: best(queues, message, arg, ctx)");
  }
  lua_getfield(L, 4, "best");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

static const luaL_Reg selectors[] = {{"best", select_best},
                                     {"hash", select_hash},
                                     {"hash_fnv1a", select_hash_fnv1a},
                                     {"random", select_random},
                                     {NULL, NULL}};

/* --- Recognized --- */

/* The sentence on top of the stack becomes a failure like those of other selectors. The script's
 * line is that of the function two calls up: below are the producer's method and this C call. */
static rmq_chooser_kind refuse(lua_State *L, rmq_slice topic, rmq_failure *why) {
  luaL_where(L, 2);
  rmq_failure_clear(why);
  rmq_failure_set(why, RMQ_KIND_SELECTOR, 0, "Sending to topic \"%.*s\" failed: its selector: %s%s",
                  (int)(topic.len < 128 ? topic.len : 128), topic.ptr ? topic.ptr : "",
                  lua_tostring(L, -1), lua_tostring(L, -2));
  lua_pop(L, 2);
  return RMQ_CHOOSER_REFUSED;
}

rmq_chooser_kind rmq_lua_choose_natively(lua_State *L, int selector, int arg, rmq_slice topic,
                                         rmq_send_options *options, rmq_failure *why) {
  lua_CFunction function = lua_tocfunction(L, selector);
  bool any = false;
  if (function == select_hash) {
    if (!java_key(L, arg, &options->key)) return refuse(L, topic, why);
    options->choose = rmq_choose_by_key;
  } else if (function == select_hash_fnv1a) {
    if (!fnv1a_key(L, arg, &options->key, &any)) return refuse(L, topic, why);
    options->choose = any ? rmq_choose_random : rmq_choose_by_key;
  } else if (function == select_random) {
    options->choose = rmq_choose_random;
  } else if (function != select_best) {
    return RMQ_CHOOSER_LUA;
  }
  return RMQ_CHOOSER_NATIVE;
}

/* --- Names --- */

void rmq_lua_choosers_init(lua_State *L) {
  rmq_plugins_push_selectors(L);
  uint64_t *state = lua_newuserdata(L, sizeof *state);
  if (uv_random(NULL, NULL, state, sizeof *state, 0, NULL) != 0) *state = uv_hrtime();
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, CHANCE);
  for (const luaL_Reg *one = selectors; one->name; one++) {
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, one->func, 1);
    lua_setfield(L, -3, one->name);
  }
  lua_pop(L, 2);
}

void rmq_lua_choosers_seed(lua_State *L, uint64_t seed) {
  lua_getfield(L, LUA_REGISTRYINDEX, CHANCE);
  *(uint64_t *)lua_touserdata(L, -1) = seed;
  lua_pop(L, 1);
}

/* Selectors that have to be made, so that their names are no selectors. */
static const char *const makers[] = {"round_robin",     "machine_room", "sticky",
                                     "consistent_hash", "weighted",     NULL};

enum { NAMED_HERE = 4, NAMED_MAX = 100 };

static void push_no_selector(lua_State *L, int index, const char *what) {
  const char *known[NAMED_MAX + 1] = {"best", "hash", "hash_fnv1a", "random"};
  rmq_plugins_selector_names(rmq_vm_of(L), known + NAMED_HERE, NAMED_MAX - NAMED_HERE);
  const rmq_names names = {"selector", "selectors", known};
  rmq_slice name = text_at(L, index);
  for (const char *const *maker = makers; *maker; maker++) {
    if (!rmq_slice_is(name, *maker)) continue;
    lua_pushfstring(L, "%s: there is no selector '%s', but rocketmq.selector.%s { ... } makes one",
                    what, name.ptr, name.ptr);
    return;
  }
  const char *nearest = rmq_names_nearest(&names, name);
  if (nearest) {
    lua_pushfstring(L, "%s: no selector is called '%s': did you mean '%s'?", what, name.ptr,
                    nearest);
  } else {
    rmq_names_push(L, &names);
    lua_pushfstring(L, "%s: no selector is called '%s': there are %s", what, name.ptr,
                    lua_tostring(L, -1));
    lua_remove(L, -2);
  }
}

/* A function, or a table with a __call, which is one for Lua. */
static bool is_callable(lua_State *L, int index) {
  if (lua_type(L, index) == LUA_TFUNCTION) return true;
  if (!luaL_getmetafield(L, index, "__call")) return false;
  lua_pop(L, 1);
  return true;
}

bool rmq_lua_check_selector(lua_State *L, int index, const char *what) {
  if (lua_type(L, index) == LUA_TSTRING) {
    if (!rmq_plugins_push_selector(L, index)) {
      push_no_selector(L, index, what);
      return false;
    }
    lua_pop(L, 1);
  } else if (!is_callable(L, index)) {
    lua_pushfstring(L, "%s must be a function, or a selector's name, not %s", what,
                    luaL_typename(L, index));
    return false;
  }
  return true;
}

/* --- The module --- */

static int draw(lua_State *L) {
  double n = luaL_checknumber(L, 1);
  luaL_argcheck(L, n >= 1 && n <= INT32_MAX, 1, "must be from 1 to 2147483647");
  return push_drawn(L, (int64_t)n);
}

static int spread(lua_State *L) {
  luaL_checktype(L, 1, LUA_TSTRING);
  lua_pushnumber(L, rmq_hash_spread(text_at(L, 1)));
  return 1;
}

static int named(lua_State *L) {
  luaL_checktype(L, 1, LUA_TSTRING);
  return rmq_plugins_push_selector(L, 1);
}

int luaopen_rocketmq_native_selector(lua_State *L) {
  lua_newtable(L);
  rmq_plugins_push_selectors(L);
  for (const luaL_Reg *one = selectors; one->name; one++) {
    lua_getfield(L, -1, one->name);
    lua_setfield(L, -3, one->name);
  }
  lua_pop(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, CHANCE);
  lua_pushcclosure(L, draw, 1);
  lua_setfield(L, -2, "draw");
  lua_pushcfunction(L, spread);
  lua_setfield(L, -2, "spread");
  lua_pushcfunction(L, named);
  lua_setfield(L, -2, "named");
  return 1;
}

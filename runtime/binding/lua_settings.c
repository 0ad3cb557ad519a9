#include "binding/lua_settings.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/shown.h"

static int wrong_type(lua_State *L, const char *name, const char *wanted, char *why, size_t size) {
  snprintf(why, size, "setting %s must be %s, not %s", name, wanted, luaL_typename(L, -1));
  return RMQ_EINVAL;
}

/* A list of name servers in the form that a text has. */
static int join_namesrv(lua_State *L, rmq_buf *joined, char *why, size_t size) {
  size_t n = lua_objlen(L, -1);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    if (lua_type(L, -1) != LUA_TSTRING) {
      snprintf(why, size,
               "setting namesrv must be a string or a list of strings; its element %zu is a %s", i,
               luaL_typename(L, -1));
      lua_pop(L, 1);
      return RMQ_EINVAL;
    }
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    if (i > 1) rmq_buf_u8(joined, ';');
    rmq_buf_bytes(joined, text, len);
    lua_pop(L, 1);
  }
  if (n > 0) return 0;
  snprintf(why, size, "setting namesrv is a table without elements; give a list of \"host:port\"");
  return RMQ_EINVAL;
}

static int set_namesrv_list(lua_State *L, rmq_settings *settings, const rmq_setting *row, char *why,
                            size_t size) {
  rmq_buf joined = {0};
  int status = join_namesrv(L, &joined, why, size);
  if (status == 0) {
    status = rmq_settings_set_text(settings, row, rmq_buf_slice(&joined), why, size);
  }
  rmq_buf_free(&joined);
  return status;
}

static bool has_mark(rmq_slice text) {
  return text.len > 0 && (memchr(text.ptr, ';', text.len) || memchr(text.ptr, '=', text.len));
}

/* Appends the pair on top of the stack, an entry of address_map. */
static int join_address(lua_State *L, rmq_buf *joined, char *why, size_t size) {
  if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
    snprintf(
        why, size,
        "setting address_map must be a table of strings, { [\"advertised\"] = \"reachable\" }");
    return RMQ_EINVAL;
  }
  rmq_slice from, to;
  from.ptr = lua_tolstring(L, -2, &from.len);
  to.ptr = lua_tolstring(L, -1, &to.len);
  if (has_mark(from) || has_mark(to)) {
    snprintf(why, size, "setting address_map: the entry '%s' has a ';' or '='", from.ptr);
    return RMQ_EINVAL;
  }
  rmq_buf_bytes(joined, from.ptr, from.len);
  rmq_buf_u8(joined, '=');
  rmq_buf_bytes(joined, to.ptr, to.len);
  rmq_buf_u8(joined, ';');
  return 0;
}

static int set_address_table(lua_State *L, rmq_settings *settings, const rmq_setting *row,
                             char *why, size_t size) {
  rmq_buf joined = {0};
  int status = 0;
  lua_pushnil(L);
  while (status == 0 && lua_next(L, -2)) {
    status = join_address(L, &joined, why, size);
    lua_pop(L, status == 0 ? 1 : 2);
  }
  if (status == 0) {
    status = rmq_settings_set_text(settings, row, rmq_buf_slice(&joined), why, size);
  }
  rmq_buf_free(&joined);
  return status;
}

/* Appends the number on top of the stack, element `i` of a list. */
static int join_number(lua_State *L, const char *name, size_t i, rmq_buf *joined, char *why,
                       size_t size) {
  double value = lua_tonumber(L, -1);
  if (lua_type(L, -1) != LUA_TNUMBER) {
    snprintf(why, size, "setting %s must be a list of whole numbers; its element %zu is a %s", name,
             i, luaL_typename(L, -1));
  } else if (!(value >= INT32_MIN && value <= INT32_MAX && value == (double)(int32_t)value)) {
    snprintf(why, size, "setting %s must be a list of whole numbers; its element %zu is %.17g",
             name, i, rmq_shown(value));
  } else {
    rmq_buf_printf(joined, "%d ", (int)value);
    return 0;
  }
  return RMQ_EINVAL;
}

static int set_numbers(lua_State *L, rmq_settings *settings, const rmq_setting *row,
                       const char *name, char *why, size_t size) {
  rmq_buf joined = {0};
  int status = 0;
  size_t n = lua_objlen(L, -1);
  for (size_t i = 1; status == 0 && i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    status = join_number(L, name, i, &joined, why, size);
    lua_pop(L, 1);
  }
  if (status == 0) {
    status = rmq_settings_set_text(settings, row, rmq_buf_slice(&joined), why, size);
  }
  rmq_buf_free(&joined);
  return status;
}

static void push_text(lua_State *L, const rmq_setting *row, const char *text) {
  bool is_true = text && strcmp(text, "true") == 0;
  bool is_boolean = is_true || (text && strcmp(text, "false") == 0);
  if (is_boolean && rmq_setting_takes_boolean(row)) {
    lua_pushboolean(L, is_true);
  } else {
    lua_pushstring(L, text);
  }
}

static void push_numbers(lua_State *L, const char *text) {
  if (!text) {
    lua_pushnil(L);
    return;
  }
  lua_newtable(L);
  char *end = NULL;
  int i = 0;
  for (long value = strtol(text, &end, 10); end != text; value = strtol(text, &end, 10)) {
    lua_pushnumber(L, (double)value);
    lua_rawseti(L, -2, ++i);
    text = end;
  }
}

/* Sets one from the value on top of the stack. */
static int set_value(lua_State *L, rmq_settings *settings, const rmq_setting *row, const char *name,
                     char *why, size_t size) {
  int type = lua_type(L, -1);
  bool is_trace = row->offset == offsetof(rmq_settings, enable_trace);
  switch (row->type) {
    case RMQ_SETTING_INTEGER:
      if (type != LUA_TNUMBER) return wrong_type(L, name, "a number", why, size);
      return rmq_settings_set_integer(settings, row, lua_tonumber(L, -1), why, size);
    case RMQ_SETTING_BOOLEAN:
      if (type == LUA_TSTRING && is_trace) break;
      if (type != LUA_TBOOLEAN) {
        const char *wanted = is_trace ? "a boolean or the name of a topic" : "a boolean";
        return wrong_type(L, name, wanted, why, size);
      }
      return rmq_settings_set_boolean(settings, row, lua_toboolean(L, -1), why, size);
    case RMQ_SETTING_NUMBERS:
      if (type != LUA_TTABLE) return wrong_type(L, name, "a list of whole numbers", why, size);
      return set_numbers(L, settings, row, name, why, size);
    default:
      break;
  }
  if (type == LUA_TBOOLEAN && rmq_setting_takes_boolean(row)) {
    return rmq_settings_set_boolean(settings, row, lua_toboolean(L, -1), why, size);
  }
  bool is_namesrv = row->offset == offsetof(rmq_settings, namesrv);
  bool is_map = row->offset == offsetof(rmq_settings, address_map);
  if (is_namesrv && type == LUA_TTABLE) return set_namesrv_list(L, settings, row, why, size);
  if (is_map && type == LUA_TTABLE) return set_address_table(L, settings, row, why, size);
  if (type != LUA_TSTRING) {
    const char *wanted = is_namesrv                       ? "a string or a list of strings"
                         : is_map                         ? "a string or a table of strings"
                         : rmq_setting_takes_boolean(row) ? "a boolean or a string"
                                                          : "a string";
    return wrong_type(L, name, wanted, why, size);
  }
  rmq_slice text;
  text.ptr = lua_tolstring(L, -1, &text.len);
  return rmq_settings_set_text(settings, row, text, why, size);
}

static int unknown_setting(const char *name, rmq_slice text, char *why, size_t size) {
  const char *nearest = rmq_setting_nearest(text);
  if (nearest) {
    snprintf(why, size, "unknown setting '%s': did you mean '%s'?", name, nearest);
  } else {
    snprintf(why, size, "unknown setting '%s'; rmqlua --help lists them", name);
  }
  return RMQ_EINVAL;
}

/* The setting whose name is below the top of the stack and whose value is on top. `seen` has the
 * name by which each row was set before. */
static int read_pair(lua_State *L, rmq_settings *settings, const char **seen, char *why,
                     size_t size) {
  if (lua_type(L, -2) != LUA_TSTRING) {
    snprintf(why, size, "the names of settings must be strings, not %s", luaL_typename(L, -2));
    return RMQ_EINVAL;
  }
  rmq_slice text;
  text.ptr = lua_tolstring(L, -2, &text.len);
  const rmq_setting *row = rmq_setting_find(text);
  if (!row) return unknown_setting(text.ptr, text, why, size);
  const char **before = &seen[row - rmq_setting_table];
  if (*before) {
    snprintf(why, size, "the settings '%s' and '%s' are the same one; give one of them", *before,
             text.ptr);
    return RMQ_EINVAL;
  }
  *before = text.ptr;
  return set_value(L, settings, row, text.ptr, why, size);
}

static int read_table(lua_State *L, int index, rmq_settings *settings, char *why, size_t size) {
  const char *seen[64] = {NULL}; /* more than the table has rows */
  lua_pushnil(L);
  while (lua_next(L, index)) {
    int status = read_pair(L, settings, seen, why, size);
    lua_pop(L, 1);
    if (status == 0) continue;
    lua_pop(L, 1);
    return status;
  }
  return 0;
}

/* The name servers from elsewhere than the script. */
static int complete_namesrv(const rmq_vm *vm, rmq_settings *settings, char *why, size_t size) {
  bool forced = false;
  const char *given = rmq_vm_namesrv(vm, &forced);
  if (settings->namesrv && !(given && forced)) return 0;
  if (!given) {
    snprintf(why, size,
             "no name server is known: give namesrv = \"host:9876\" here, start with --namesrv "
             "host:9876 or "
             "--mock, or set NAMESRV_ADDR");
    return RMQ_EINVAL;
  }
  const rmq_setting *row = rmq_setting_find(rmq_slice_text("namesrv"));
  return rmq_settings_set_text(settings, row, rmq_slice_text(given), why, size);
}

int rmq_lua_read_settings(lua_State *L, int index, const rmq_vm *vm, rmq_settings *settings,
                          char *why, size_t why_size) {
  rmq_settings_init(settings);
  int status = read_table(L, index, settings, why, why_size);
  if (status == 0) status = complete_namesrv(vm, settings, why, why_size);
  if (status == 0) status = rmq_settings_check(settings, why, why_size);
  if (status < 0) rmq_settings_free(settings);
  return status;
}

int rmq_lua_read_namesrv(lua_State *L, int index, const rmq_vm *vm, rmq_buf *text, char *why,
                         size_t why_size) {
  bool forced = false;
  const char *given = rmq_vm_namesrv(vm, &forced);
  int status = 0;
  lua_pushvalue(L, index);
  if (lua_type(L, -1) == LUA_TTABLE) {
    status = join_namesrv(L, text, why, why_size);
  } else if (lua_type(L, -1) == LUA_TSTRING) {
    size_t len;
    const char *bytes = lua_tolstring(L, -1, &len);
    rmq_buf_bytes(text, bytes, len);
  } else {
    status = wrong_type(L, "namesrv", "a string or a list of strings", why, why_size);
  }
  lua_pop(L, 1);
  if (status == 0 && given && forced) {
    rmq_buf_clear(text);
    rmq_buf_text(text, given);
  }
  return status;
}

void rmq_lua_push_settings(lua_State *L, const rmq_settings *settings) {
  lua_newtable(L);
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) {
    const void *at = (const char *)settings + row->offset;
    switch (row->type) {
      case RMQ_SETTING_TEXT:
        push_text(L, row, *(char *const *)at);
        break;
      case RMQ_SETTING_NUMBERS:
        push_numbers(L, *(char *const *)at);
        break;
      case RMQ_SETTING_INTEGER:
        lua_pushnumber(L, (double)*(const int64_t *)at);
        break;
      case RMQ_SETTING_BOOLEAN:
        lua_pushboolean(L, *(const bool *)at);
        break;
    }
    lua_setfield(L, -2, row->name);
  }
}

#include <lauxlib.h>
#include <string.h>

#include "base/error.h"
#include "binding/lua_hook_ctx.h"
#include "wire/codes.h"

/* What before_request and after_response see: ctx with the fields below, each made when it is first
 * read. `ext` of before_request takes additions. */

enum { BOX = 1 };

static rmq_lua_hooks *all_of(lua_State *L) {
  rmq_lua_hooks *const *box = lua_touserdata(L, lua_upvalueindex(BOX));
  return *box;
}

static void push_slice(lua_State *L, rmq_slice text) {
  lua_pushlstring(L, text.len ? text.ptr : "", text.len);
}

static void push_ext(lua_State *L, const rmq_header *header) {
  lua_createtable(L, 0, (int)header->n_ext);
  for (size_t i = 0; i < header->n_ext; i++) {
    push_slice(L, header->ext[i].name);
    push_slice(L, header->ext[i].value);
    lua_rawset(L, -3);
  }
}

/* Pushes the field of this name, or nothing. */
static bool push_request_field(lua_State *L, const rmq_watched_request *request, const char *name) {
  const rmq_header *header = request->header;
  if (strcmp(name, "addr") == 0) {
    lua_pushstring(L, request->addr);
  } else if (strcmp(name, "code") == 0) {
    lua_pushinteger(L, header->code);
  } else if (strcmp(name, "code_name") == 0) {
    lua_pushstring(L, rmq_request_code_name(header->code));
  } else if (strcmp(name, "oneway") == 0) {
    lua_pushboolean(L, (header->flag & RMQ_FLAG_ONEWAY) != 0);
  } else if (strcmp(name, "ext") == 0) {
    push_ext(L, header);
  } else if (strcmp(name, "body") == 0) {
    push_slice(L, request->body);
  } else {
    return false;
  }
  return true;
}

static bool push_response_field(lua_State *L, const rmq_watched_response *response,
                                const char *name) {
  const rmq_header *header = response->header;
  if (strcmp(name, "addr") == 0) {
    lua_pushstring(L, response->addr);
  } else if (strcmp(name, "code") == 0) {
    lua_pushinteger(L, response->request_code);
  } else if (strcmp(name, "code_name") == 0) {
    lua_pushstring(L, rmq_request_code_name(response->request_code));
  } else if (strcmp(name, "response_code") == 0) {
    lua_pushinteger(L, header->code);
  } else if (strcmp(name, "response_code_name") == 0) {
    lua_pushstring(L, rmq_response_code_name(header->code));
  } else if (strcmp(name, "remark") == 0) {
    push_slice(L, header->remark);
  } else if (strcmp(name, "ext") == 0) {
    push_ext(L, header);
  } else if (strcmp(name, "body") == 0) {
    push_slice(L, response->body);
  } else if (strcmp(name, "elapsed_ms") == 0) {
    lua_pushnumber(L, (double)response->elapsed_us / 1000);
  } else {
    return false;
  }
  return true;
}

static int request_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  const char *name = lua_tostring(L, 2);
  const rmq_lua_hook_event *event = rmq_lua_hook_event_of(L, all_of(L), 1);
  if (!event) {
    return luaL_error(L,
                      "'%s' cannot be read any more: it is made when it is first read, and the "
                      "hook that this table was given to has returned; read it there",
                      name);
  }
  bool known = event->request ? push_request_field(L, event->request, name)
                              : push_response_field(L, event->response, name);
  if (!known) return 0;
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, 1);
  return 1;
}

/* What would be lost without a word is refused. Other names are the hook's own. */
static int request_newindex(lua_State *L) {
  static const char *const fields[] = {
      "addr", "code", "code_name", "response_code", "remark", "response_code_name",
      "ext",  "body", "oneway",    "elapsed_ms",    NULL};
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  for (int i = 0; fields[i]; i++) {
    if (strcmp(fields[i], name) != 0) continue;
    return luaL_error(L, "ctx.%s cannot be set; a before_request hook adds fields to ctx.ext",
                      name);
  }
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/* --- Additions --- */

static bool wrong(lua_State *L, const char *name, const char *what) {
  lua_pushfstring(L, "ctx.ext.%s %s", name, what);
  return false;
}

static bool add(lua_State *L, const rmq_watched_request *request, rmq_slice name, rmq_slice value) {
  rmq_slice there = rmq_header_field(request->header, name.ptr);
  if (there.ptr) {
    if (rmq_slice_equal(there, value)) return true;
    return wrong(L, name.ptr,
                 "was changed; a hook may add fields, and not change those of the "
                 "request");
  }
  switch (rmq_watched_add(request, name, value)) {
    case 0:
      return true;
    case RMQ_ELIMIT:
      return wrong(L, name.ptr,
                   "is too much: a header takes at most 128 fields, and hooks may add "
                   "64 KiB");
    default:
      return wrong(L, name.ptr, "cannot be added: its name is empty, or another hook has added it");
  }
}

/* The next pair of ctx.ext, at `ext`. */
static bool add_pair(lua_State *L, const rmq_watched_request *request) {
  rmq_slice name, value;
  if (lua_type(L, -2) != LUA_TSTRING) {
    lua_pushliteral(L, "ctx.ext has a name that is no string");
    return false;
  }
  name.ptr = lua_tolstring(L, -2, &name.len);
  if (lua_type(L, -1) != LUA_TSTRING) return wrong(L, name.ptr, "must be a string; use tostring");
  value.ptr = lua_tolstring(L, -1, &value.len);
  return add(L, request, name, value);
}

bool rmq_lua_hook_collect_ext(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event) {
  int base = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, all->slots);
  lua_rawgeti(L, -1, event->state->slot);
  lua_pushliteral(L, "ext");
  lua_rawget(L, -2);
  int ext = lua_gettop(L);
  bool well = true;
  if (lua_type(L, ext) == LUA_TTABLE) {
    lua_pushnil(L);
    while (well && lua_next(L, ext)) {
      well = add_pair(L, event->request);
      if (well) lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, ext)) {
    lua_pushliteral(L, "ctx.ext was replaced by another value; add fields to it instead");
    well = false;
  }
  if (well) {
    lua_settop(L, base);
    return true;
  }
  lua_replace(L, base + 1);
  lua_settop(L, base + 1);
  return false;
}

void rmq_lua_hook_request_open(lua_State *L, int kept) {
  lua_createtable(L, 0, 3);
  lua_getfield(L, kept, "box");
  lua_pushcclosure(L, request_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, request_newindex);
  lua_setfield(L, -2, "__newindex");
  lua_pushliteral(L, "hook");
  lua_setfield(L, -2, "__metatable");
  lua_rawseti(L, kept, RMQ_HOOK_KEPT_REQUEST);
}

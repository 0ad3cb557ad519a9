#include <lauxlib.h>
#include <stdio.h>

#include "script/worker.h"

/* What happens to an error that the script does not catch. */

/* The text that a __tostring gives, or why it gives none: an error must not be lost because it
 * cannot be told. */
static void push_told(lua_State *L, int index) {
  lua_pushvalue(L, index);
  bool failed = lua_pcall(L, 1, 1, 0) != 0;
  if (lua_isstring(L, -1) && !failed) return;
  const char *why = lua_isstring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1);
  lua_pushfstring(L, "(error object is a %s value whose __tostring %s %s)", luaL_typename(L, index),
                  failed ? "fails:" : "gives a", why);
  lua_remove(L, -2);
}

void rmq_push_error_text(lua_State *L, int index) {
  if (lua_isstring(L, index)) {
    lua_pushvalue(L, index);
    lua_tostring(L, -1);
  } else if (luaL_getmetafield(L, index, "__tostring")) {
    push_told(L, index);
  } else {
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, index));
  }
}

/* --- Tracebacks ------------------------------------------------------------------------------ */

/* Pushes the coroutine inside which `co`, the coroutine on top of the stack, waits; false when
 * there is none. */
static bool push_resumed(rmq_vm *vm, lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->guarded);
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    if (lua_rawequal(L, -1, -4)) {
      lua_pop(L, 1);
      lua_remove(L, -2);
      return true;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return false;
}

/* Appends to the text at `text` the tracebacks of the coroutines that `co` waits for. */
static void add_resumed(lua_State *L, int text, lua_State *co) {
  rmq_vm *vm = rmq_vm_of(L);
  int base = lua_gettop(L);
  lua_pushthread(co);
  if (co != L) lua_xmove(co, L, 1);
  while (push_resumed(vm, L)) {
    lua_pushvalue(L, text);
    lua_pushliteral(L, "\ninside it, a coroutine:\n");
    luaL_traceback(L, lua_tothread(L, -3), NULL, 0);
    lua_concat(L, 3);
    lua_replace(L, text);
  }
  lua_settop(L, base);
}

/* Appends the tracebacks of wrapped coroutines that the error at `err` has passed on its way. */
static void add_passed(lua_State *L, int text, int err) {
  int base = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, rmq_vm_of(L)->failures);
  lua_getfield(L, -1, "error");
  if (!lua_isnil(L, err) && lua_rawequal(L, -1, err)) {
    for (int i = 1; i <= (int)lua_objlen(L, base + 1); i++) {
      lua_pushvalue(L, text);
      lua_pushliteral(L, "\nit came out of a coroutine:\n");
      lua_rawgeti(L, base + 1, i);
      lua_State *co = lua_tothread(L, -1);
      luaL_traceback(L, co, NULL, 0);
      lua_remove(L, -2);
      lua_concat(L, 3);
      lua_replace(L, text);
    }
  }
  lua_settop(L, base);
}

void rmq_push_traceback(lua_State *L, lua_State *co, const char *text, int level) {
  luaL_traceback(L, co, text, level);
  add_resumed(L, lua_gettop(L), co);
}

void rmq_push_failure(lua_State *L, lua_State *co, int err, int level) {
  rmq_push_error_text(L, err);
  luaL_traceback(L, co, lua_tostring(L, -1), level);
  lua_remove(L, -2);
  add_passed(L, lua_gettop(L), err);
}

/* --- Uncaught -------------------------------------------------------------------------------- */

/* The stack of L: error, traceback. Prints, and ends the process. */
static void end_with(rmq_vm *vm, lua_State *L, int err, int traceback) {
  fflush(stdout);
  if (!lua_isnil(L, err)) fprintf(stderr, "rmqlua: %s\n", lua_tostring(L, traceback));
  vm->failed = true;
  rmq_vm_stop(vm);
}

void rmq_vm_give_up(lua_State *L) {
  end_with(rmq_vm_of(L), L, lua_gettop(L) - 1, lua_gettop(L));
  lua_pop(L, 2);
}

void rmq_vm_uncaught_with(lua_State *L) {
  const rmq_vm *vm = rmq_vm_of(L);
  if (vm->on_error == LUA_NOREF) {
    rmq_vm_give_up(L);
    return;
  }
  /* It catches its own errors, also those after it has waited, and gives up then. */
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->on_error);
  lua_insert(L, -3);
  rmq_task_start(L, 2);
}

/* Runs protected: the error value lies on top of the coroutine. */
static int uncaught(lua_State *L) {
  lua_State *co = lua_touserdata(L, 1);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_xmove(co, L, 1);
  rmq_push_failure(L, co, 2, 0);
  rmq_vm_uncaught_with(L);
  return 0;
}

void rmq_vm_uncaught(rmq_vm *vm, lua_State *co) {
  if (vm->interrupted) { /* has been shown, and is no error of the script's */
    rmq_vm_stop(vm);
    return;
  }
  if (lua_cpcall(vm->L, uncaught, co) == 0) return;
  /* No memory, or an on_error handler that cannot be started: what there is must be enough. */
  fprintf(stderr, "rmqlua: an error whose text cannot be shown: %s\n",
          lua_isstring(vm->L, -1) ? lua_tostring(vm->L, -1) : luaL_typename(vm->L, -1));
  lua_pop(vm->L, 1);
  vm->failed = true;
  rmq_vm_stop(vm);
}

/* --- Tasks that nobody can wake -------------------------------------------------------------- */

static int list_stuck(lua_State *L) {
  rmq_vm *vm = lua_touserdata(L, 1);
  size_t count = 0;
  for (rmq_link *at = vm->waiting.next; at != &vm->waiting; at = at->next) count++;
  fprintf(stderr, "rmqlua: nothing is pending, but %zu task%s still wait%s for what cannot come:\n",
          count, count == 1 ? "" : "s", count == 1 ? "s" : "");
  size_t number = 0;
  for (rmq_link *at = vm->waiting.next; at != &vm->waiting; at = at->next) {
    rmq_task *task = rmq_link_owner(at, rmq_task, link);
    rmq_push_traceback(L, task->co, NULL, 0);
    fprintf(stderr, "task %zu%s, in %s:\n%s\n", ++number,
            task == vm->first ? " (the main chunk)" : "", task->what, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  return 0;
}

void rmq_vm_list_stuck(rmq_vm *vm) {
  fflush(stdout);
  if (lua_cpcall(vm->L, list_stuck, vm) != 0) lua_pop(vm->L, 1);
}

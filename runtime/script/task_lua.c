#include <lauxlib.h>
#include <math.h>

#include "script/worker.h"

/* rocketmq.native.task: what rocketmq.task and rocketmq.runtime.* are made of. Not for scripts: a
 * task is a light userdata here, which is valid only as long as they know it to be. */

static rmq_task *check_task(lua_State *L, int index) {
  luaL_argcheck(L, lua_islightuserdata(L, index), index, "a task expected");
  return lua_touserdata(L, index);
}

/* A number of milliseconds; raises naming the argument as the user knows it. */
static double check_ms(lua_State *L, int index, const char *name) {
  bool number = lua_type(L, index) == LUA_TNUMBER;
  double ms = lua_tonumber(L, index);
  if (number && ms >= 0 && !isinf(ms)) return ms;
  rmq_push_place(L);
  if (number) {
    lua_pushfstring(L, "%s must be a finite number of milliseconds, 0 or more", name);
  } else {
    lua_pushfstring(L, "%s must be a number of milliseconds, not %s", name,
                    luaL_typename(L, index));
  }
  lua_concat(L, 2);
  return lua_error(L);
}

/* spawn(function, ...) -> task; it starts in the next turn. */
static int lua_spawn(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushlightuserdata(L, rmq_task_spawn(L, lua_gettop(L) - 1));
  return 1;
}

/* self() -> the running task, and the number of its next wait. */
static int lua_self(lua_State *L) {
  rmq_task *task = rmq_task_running(L);
  lua_pushlightuserdata(L, task);
  if (!task) return 1;
  lua_pushnumber(L, rmq_task_wait_number(task));
  return 2;
}

/* park(what, timeout_ms or nil) -> true when it was woken, false when the time was over. */
static int lua_park(lua_State *L) {
  const char *what =
      luaL_checkstring(L, 1); /* a constant of the caller's, which outlives the wait */
  bool limited = !lua_isnoneornil(L, 2);
  double ms = limited ? check_ms(L, 2, "timeout") : 0;
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, what);
  return rmq_task_park(L, what, NULL, limited ? ms : -1);
}

/* check_wait(what, timeout_ms or nil): raises what park would raise. */
static int check_wait(lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  if (!lua_isnoneornil(L, 2)) check_ms(L, 2, "timeout");
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, what);
  return 0;
}

/* wake(task, wait): a parked task goes on in the next turn, if it is still in that wait. */
static int lua_wake(lua_State *L) {
  rmq_task *task = check_task(L, 1);
  if (!task->suspended || task->state != RMQ_TASK_WAITING) return 0;
  if (task->wait != (unsigned)luaL_checknumber(L, 2)) return 0;
  if (task->timer_made) uv_timer_stop(&task->timer);
  rmq_link_remove(&task->link);
  rmq_task_make_ready(task, true, NULL);
  return 0;
}

/* sleep(ms); 0 lets the loop take one turn. */
static int lua_sleep(lua_State *L) {
  double ms = check_ms(L, 1, "sleep: its argument");
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "sleep");
  if (ms == 0) rmq_task_make_ready(rmq_task_running(L), true, NULL);
  return rmq_task_park(L, "sleep", NULL, ms);
}

/* resume_blocked(coroutine, ...): coroutine.resume from where the running coroutine cannot be
 * suspended. Until it returns nothing below may wait, however many coroutines deep. */
static int resume_blocked(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  int n_args = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  vm->blocked++;
  int status = lua_pcall(L, n_args, LUA_MULTRET, 0);
  vm->blocked--;
  if (status != 0) return lua_error(L);
  return lua_gettop(L);
}

/* resume_task(task, ...): true once a task that has yielded by itself has run on, else false and
 * why. */
static int resume_task(lua_State *L) {
  rmq_task *task = check_task(L, 1);
  if (task->state != RMQ_TASK_YIELDED) {
    lua_pushboolean(L, false);
    lua_pushstring(L, task->state == RMQ_TASK_RUNNING
                          ? "cannot resume non-suspended coroutine"
                          : "cannot resume a task that waits for the runtime; it goes on by "
                            "itself");
    return 2;
  }
  int n_args = lua_gettop(L) - 1;
  if (!lua_checkstack(task->co, n_args)) return luaL_error(L, "too many arguments");
  rmq_task_resume_yielded(L, task, n_args);
  lua_pushboolean(L, true);
  return 1;
}

static int has_yielded(lua_State *L) {
  lua_pushboolean(L, check_task(L, 1)->state == RMQ_TASK_YIELDED);
  return 1;
}

static int expose(lua_State *L) {
  if (lua_islightuserdata(L, 1)) check_task(L, 1)->exposed = true;
  return 0;
}

/* place(level): "file:line: " of the caller's level, as error adds it. */
static int place(lua_State *L) {
  luaL_where(L, luaL_checkint(L, 1));
  return 1;
}

/* note_failure(coroutine, error, passed_on): a wrapped coroutine has died of an error that goes on
 * outwards; its own traceback will be wanted if nobody catches that. Kept in the table `failures`:
 * the coroutines, innermost first, and the error as it is now. */
static int note_failure(lua_State *L) {
  lua_settop(L, 3);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getfield(L, 4, "error");
  if (!lua_rawequal(L, 5, 2)) {
    for (int i = (int)lua_objlen(L, 4); i > 0; i--) {
      lua_pushnil(L);
      lua_rawseti(L, 4, i);
    }
  }
  lua_pushvalue(L, 1);
  lua_rawseti(L, 4, (int)lua_objlen(L, 4) + 1);
  lua_pushvalue(L, 3);
  lua_setfield(L, 4, "error");
  return 0;
}

/* traceback(error) -> the error's text with the traceback from the caller's caller on. */
static int traceback(lua_State *L) {
  lua_settop(L, 1);
  rmq_push_failure(L, L, 1, 2);
  return 1;
}

static int error_text(lua_State *L) {
  luaL_checkany(L, 1);
  rmq_push_error_text(L, 1);
  return 1;
}

/* uncaught(error, traceback). */
static int uncaught(lua_State *L) {
  lua_settop(L, 2);
  rmq_vm_uncaught_with(L);
  return 0;
}

/* give_up(error, traceback). */
static int give_up(lua_State *L) {
  lua_settop(L, 2);
  rmq_vm_give_up(L);
  return 0;
}

/* on_error(function or nil); the function must not raise. */
static int on_error(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  luaL_unref(L, LUA_REGISTRYINDEX, vm->on_error);
  vm->on_error = LUA_NOREF;
  lua_settop(L, 1);
  if (!lua_isnil(L, 1)) vm->on_error = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

/* serve(address, forced): the name servers that --mock has made. */
static int serve(lua_State *L) {
  rmq_vm_serve(rmq_vm_of(L), luaL_checkstring(L, 1), lua_toboolean(L, 2));
  return 0;
}

/* refuse(text, status or 2): the command line asked for what cannot be; the process ends with
 * status 2, or with 1 when a file of Lua is at fault. */
static int refuse(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  bool of_lua = luaL_optinteger(L, 2, 2) == 1;
  fprintf(stderr, "rmqlua: %s\n", luaL_checkstring(L, 1));
  if (of_lua) vm->failed = true;
  if (!of_lua) vm->refused = true;
  rmq_vm_stop(vm);
  return 0;
}

static const luaL_Reg functions[] = {{"spawn", lua_spawn},         {"self", lua_self},
                                     {"park", lua_park},           {"check_wait", check_wait},
                                     {"wake", lua_wake},           {"sleep", lua_sleep},
                                     {"resume_task", resume_task}, {"has_yielded", has_yielded},
                                     {"expose", expose},           {"place", place},
                                     {"traceback", traceback},     {"error_text", error_text},
                                     {"uncaught", uncaught},       {"give_up", give_up},
                                     {"on_error", on_error},       {"serve", serve},
                                     {"refuse", refuse},           {NULL, NULL}};

int luaopen_rocketmq_native_task(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->failures);
  lua_pushcclosure(L, note_failure, 1);
  lua_setfield(L, -2, "note_failure");
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->native_resume);
  lua_pushcclosure(L, resume_blocked, 1);
  lua_setfield(L, -2, "resume_blocked");
  lua_rawgeti(L, LUA_REGISTRYINDEX, vm->guarded);
  lua_setfield(L, -2, "guarded");
  lua_pushlightuserdata(L, rmq_task_token());
  lua_setfield(L, -2, "token");
  return 1;
}

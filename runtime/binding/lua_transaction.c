#include "binding/lua_transaction.h"

#include "binding/lua_message.h"
#include "binding/lua_producer_parts.h"
#include "binding/lua_result.h"
#include "producer/check.h"

static rmq_slice text_argument(lua_State *L, int index) {
  rmq_slice text = {NULL, 0};
  if (lua_type(L, index) == LUA_TSTRING) text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

static rmq_transaction_state state_argument(lua_State *L, int index) {
  static const char *const names[] = {"commit", "rollback", "unknown", NULL};
  return (rmq_transaction_state)luaL_checkoption(L, index, NULL, names);
}

static uint64_t id_argument(lua_State *L, int index) {
  return (uint64_t)luaL_checknumber(L, index);
}

/* ---- Half messages ---- */

static int send_half(lua_State *L) {
  return rmq_lua_producer_send(L, "send_in_transaction", rmq_producer_send_half);
}

/* half_sender(producer) */
static int half_sender(lua_State *L) {
  rmq_lua_producer_check(L);
  lua_settop(L, 1);
  lua_pushcclosure(L, send_half, 1);
  return 1;
}

static void ended(void *arg, const rmq_failure *failure) {
  rmq_pending *pending = arg;
  if (!failure) {
    rmq_pending_counted(pending, 0);
    return;
  }
  rmq_pending_fail(pending, failure);
  rmq_pending_wake(pending, false);
}

/* end_transaction(producer, result, state, remark): waits until the broker has been told. take makes
 * 0 of it, or an error. */
static int end_transaction(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  rmq_transaction_state state = state_argument(L, 3);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "send_in_transaction");
  rmq_lua_result_set_transaction(L, 2, state);
  lua_settop(L, 4);
  lua_getfield(L, 2, "msg_id");
  rmq_lua_producer_refresh_time(p);
  rmq_pending *pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  if (rmq_producer_end_transaction(p->producer, text_argument(L, 5), state, text_argument(L, 4),
                                   ended, pending) < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), (rmq_slice){NULL, 0});
  }
  lua_settop(L, 1);
  return rmq_task_wait(L, 1);
}

/* ---- Checks ---- */

/* The function that decides stands in the userdata's environment, and C knows the userdata weakly: a
 * script's check mostly knows its producer, which must be collected all the same when nobody else
 * does. One that is being collected decides nothing any more.
 *
 * Nothing here needs memory: no protected call is around it. */
static void decide(void *arg, uint64_t id) {
  rmq_lua_producer *p = arg;
  lua_State *L = rmq_vm_state(p->vm);
  lua_rawgeti(L, LUA_REGISTRYINDEX, p->self);
  lua_rawgeti(L, -1, 1);
  lua_remove(L, -2);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return;
  }
  lua_getfenv(L, -1);
  lua_rawgeti(L, -1, 1);
  lua_replace(L, -3);
  lua_pop(L, 1);
  lua_pushnumber(L, (double)id);
  rmq_task_start(L, 1);
}

/* Pushes a table that knows the value at `index` weakly. */
static void push_weak(lua_State *L, int index) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, index);
  lua_rawseti(L, -2, 1);
}

/* set_check(producer, decider): decider(id) is run as a task for each check. */
static int set_check(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_createtable(L, 1, 0);
  lua_insert(L, 2);
  lua_rawseti(L, 2, 1);
  lua_setfenv(L, 1);
  push_weak(L, 1);
  luaL_unref(L, LUA_REGISTRYINDEX, p->self);
  p->self = luaL_ref(L, LUA_REGISTRYINDEX);
  rmq_producer_set_check(p->producer, decide, p);
  return 0;
}

/* checked(producer, id): the message that a check is about; nil when the check is over. */
static int checked(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  const rmq_checked *about = rmq_producer_checked(p->producer, id_argument(L, 2));
  if (!about) return 0;
  rmq_lua_push_message(L, about->broker, &about->message, &p->pendings.scratch,
                       RMQ_LUA_MESSAGE_MAX);
  lua_pushlstring(L, about->msg_id.ptr, about->msg_id.len);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "msg_id");
  lua_setfield(L, -2, "transaction_id");
  return 1;
}

/* end_check(producer, id, state, remark, complaint): the complaint, if there is one, is logged. */
static int end_check(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  rmq_slice complaint = text_argument(L, 5);
  if (complaint.len > 0) {
    rmq_log_line(rmq_vm_log(p->vm), RMQ_LOG_ERROR, "%s: %.*s", p->name, (int)complaint.len,
                 complaint.ptr);
  }
  rmq_lua_producer_refresh_time(p);
  rmq_producer_end_check(p->producer, id_argument(L, 2), state_argument(L, 3), text_argument(L, 4));
  return 0;
}

const luaL_Reg rmq_lua_transaction_functions[] = {
    {"half_sender", half_sender}, {"end_transaction", end_transaction},
    {"set_check", set_check},     {"checked", checked},
    {"end_check", end_check},     {NULL, NULL}};

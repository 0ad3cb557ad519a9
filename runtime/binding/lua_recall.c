#include "binding/lua_recall.h"

#include "binding/lua_names.h"
#include "binding/lua_producer_parts.h"
#include "producer/recall.h"

static int push_id(lua_State *L, rmq_pending *pending) {
  rmq_slice id = rmq_buf_slice(&pending->bytes);
  lua_pushlstring(L, id.len ? id.ptr : "", id.len);
  return 1;
}

static void recalled(void *arg, const rmq_failure *failure, rmq_slice msg_id) {
  rmq_pending *pending = arg;
  if (failure) {
    rmq_pending_fail(pending, failure);
  } else {
    rmq_buf_bytes(&pending->bytes, msg_id.ptr, msg_id.len);
    pending->state = RMQ_PENDING_VALUES;
    pending->push = push_id;
  }
  rmq_pending_wake(pending, !failure);
}

static rmq_slice text_argument(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TSTRING) {
    rmq_lua_raise(L, "recall: %s must be a string, not %s", name, luaL_typename(L, index));
  }
  rmq_slice text;
  text.ptr = lua_tolstring(L, index, &text.len);
  return text;
}

static int producer_recall(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "recall");
  rmq_lua_producer_refresh_time(p);
  rmq_slice topic = text_argument(L, 2, "the topic");
  rmq_slice handle = text_argument(L, 3, "the recall handle");
  int64_t timeout_ms = 0;
  if (rmq_arguments_time(L, &p->arguments, 4, "option timeout", &timeout_ms) < 0) {
    return rmq_lua_producer_fail(L, p, &p->arguments.refusal, topic);
  }
  rmq_pending *pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  if (rmq_producer_recall(p->producer, topic, handle, timeout_ms, recalled, pending) < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), topic);
  }
  lua_settop(L, 1);
  return rmq_task_wait(L, 1);
}

const luaL_Reg rmq_lua_recall_functions[] = {{"recall", producer_recall}, {NULL, NULL}};

#include "binding/lua_producer.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "binding/lua_admin.h"
#include "binding/lua_arguments.h"
#include "binding/lua_batch.h"
#include "binding/lua_choosers.h"
#include "binding/lua_failure.h"
#include "binding/lua_hook.h"
#include "binding/lua_names.h"
#include "binding/lua_producer_parts.h"
#include "binding/lua_recall.h"
#include "binding/lua_result.h"
#include "binding/lua_settings.h"
#include "binding/lua_transaction.h"
#include "net/uv/uv_io.h"
#include "producer/transaction.h"
#include "script/vm.h"

/* The metatable of the userdata is upvalue 1 of every function here. */
static rmq_lua_producer **check_box(lua_State *L) {
  rmq_lua_producer **box = lua_touserdata(L, 1);
  bool is_ours = box && lua_getmetatable(L, 1);
  if (is_ours) {
    is_ours = lua_rawequal(L, -1, lua_upvalueindex(1));
    lua_pop(L, 1);
  }
  if (!is_ours) {
    rmq_lua_raise(
        L, "this is a method of a producer: call it as producer:method(), not producer.method()");
  }
  return box;
}

static int refuse_collected(lua_State *L) {
  return rmq_lua_raise(
      L,
      "this producer has been collected already: a __gc got hold of it again; keep a "
      "reference to it as long as it is needed");
}

rmq_lua_producer *rmq_lua_producer_check(lua_State *L) {
  rmq_lua_producer *p = *check_box(L);
  if (!p) refuse_collected(L);
  return p;
}

/* --- Life --- */

static void release(void *arg) {
  rmq_lua_producer *p = arg;
  luaL_unref(rmq_vm_state(p->vm), LUA_REGISTRYINDEX, p->self);
  rmq_lua_sends_close(&p->sends);
  rmq_lua_hooks_close(&p->hooks);
  rmq_producer_free(p->producer);
  rmq_uv_io_free(p->io);
  rmq_pendings_free(&p->pendings);
  rmq_arguments_free(&p->arguments);
  free(p);
}

static void on_farewell(uv_handle_t *handle) {
  rmq_lua_producer *p = handle->data;
  rmq_lua_losses_close(&p->sends.losses, release, p);
}

/* Frees it in a later turn: the collector may run inside one of its own completions. */
static void retire(rmq_lua_producer *p) {
  rmq_vm_remove_ending(p->vm, &p->ending);
  uv_idle_init(rmq_vm_loop(p->vm), &p->farewell);
  p->farewell.data = p;
  uv_close((uv_handle_t *)&p->farewell, on_farewell);
}

static void on_shut_down_by_collector(void *arg, size_t undelivered) {
  rmq_lua_producer *p = arg;
  p->over = true;
  /* When the process ends in the meantime, it is told the same number by on_finished. */
  if (!p->finished) rmq_vm_count_undelivered(p->vm, undelivered);
  retire(p);
}

static int producer_gc(lua_State *L) {
  rmq_lua_producer **box = lua_touserdata(L, 1);
  rmq_lua_producer *p = *box;
  if (!p) return 0;
  /* Another object's __gc may still hold the userdata, and give it to the script again. */
  *box = NULL;
  if (p->over) {
    retire(p);
  } else {
    rmq_producer_shutdown(p->producer, rmq_producer_settings(p->producer)->flush_timeout,
                          on_shut_down_by_collector, p);
  }
  return 0;
}

static void on_finished(void *arg, size_t undelivered) {
  rmq_lua_producer *p = arg;
  rmq_lua_losses_end(&p->sends.losses);
  p->over = true;
  p->finished(p->finished_arg, undelivered);
}

static rmq_lua_producer *of_ending(rmq_ending *ending) {
  return (rmq_lua_producer *)(void *)ending;
}

static void finish(rmq_ending *ending, int64_t timeout_ms,
                   void (*done)(void *arg, size_t undelivered), void *arg) {
  rmq_lua_producer *p = of_ending(ending);
  p->sends.losses.ending = true;
  rmq_producer_stop_deciding(p->producer);
  p->finished = done;
  p->finished_arg = arg;
  if (timeout_ms < 0) timeout_ms = rmq_producer_settings(p->producer)->flush_timeout;
  rmq_producer_shutdown(p->producer, timeout_ms, on_finished, p);
}

static size_t undelivered_now(rmq_ending *ending) {
  rmq_producer_stats stats = rmq_producer_stats_of(of_ending(ending)->producer);
  return stats.inflight + stats.waiting + stats.transactions;
}

static void forked(rmq_ending *ending) {
  rmq_lua_producer *p = of_ending(ending);
  rmq_producer_forked(p->producer);
  rmq_uv_io_forked(p->io);
  rmq_lua_sends_forked(&p->sends);
  p->over = p->forked = true;
  /* It has nothing to finish here, and its `done` would never come. */
  rmq_vm_remove_ending(p->vm, ending);
}

/* Makes what happens by chance, in selectors too, follow from the setting. Only the client id goes on being another one for
 * each producer: brokers and replies know a producer by it. */
static void make_repeatable(lua_State *L, rmq_settings *settings, rmq_io *io) {
  if (settings->seed == 0) return;
  if (!settings->instance_name || !settings->instance_name[0]) {
    char name[64];
    uint64_t chance = io->calls->random(io) >> 1;
    int length = snprintf(name, sizeof name, "%u#%llu", (unsigned)io->calls->identity(io)->pid,
                          (unsigned long long)chance);
    free(settings->instance_name);
    settings->instance_name = rmq_copy_text(name, (size_t)length);
  }
  rmq_uv_io_seed(io, (uint64_t)settings->seed);
  rmq_lua_choosers_seed(L, (uint64_t)settings->seed);
}

/* What a producer that has sent takes. */
enum { PRODUCER_KIB = 32 };

/* The collector sees a few bytes of a producer only. A script that makes one after the other would wait
 * long for their memory, were it not for the step that each pays for. A step would start a collector that
 * a script has stopped. */
static void pay_collector(lua_State *L) {
  if (lua_gc(L, LUA_GCISRUNNING, 0)) lua_gc(L, LUA_GCSTEP, PRODUCER_KIB);
}

/* new(settings): the producer, or nil and what is wrong with the settings. */
static int producer_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  pay_collector(L);
  rmq_vm *vm = rmq_vm_of(L);
  rmq_settings settings;
  char why[512];
  if (rmq_lua_read_settings(L, 1, vm, &settings, why, sizeof why) < 0) {
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
  }
  rmq_io *io = rmq_uv_io_new(rmq_vm_loop(vm));
  if (!io) {
    rmq_settings_free(&settings);
    lua_pushnil(L);
    lua_pushliteral(L, "the event loop has no room for a producer: too many open files?");
    return 2;
  }
  rmq_lua_producer **box = lua_newuserdata(L, sizeof *box);
  rmq_lua_producer *p = rmq_alloc_zero(1, sizeof *p);
  p->vm = vm;
  p->self = LUA_NOREF;
  p->io = io;
  make_repeatable(L, &settings, io);
  p->producer = rmq_producer_new(&settings, io, rmq_vm_log(vm));
  rmq_arguments_init(&p->arguments);
  rmq_lua_sends_open(L, &p->sends, p->producer, &p->arguments, &p->pendings);
  rmq_lua_hooks_open(L, &p->hooks, p->producer, io);
  snprintf(p->name, sizeof p->name, "producer '%s'", settings.group);
  rmq_settings_free(&settings);
  p->ending = (rmq_ending){
      .finish = finish, .undelivered = undelivered_now, .forked = forked, .name = p->name};
  rmq_vm_add_ending(vm, &p->ending);
  *box = p;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_setmetatable(L, -2);
  return 1;
}

/* --- What waits --- */

int rmq_lua_producer_fail(lua_State *L, rmq_lua_producer *p, const rmq_failure *failure,
                          rmq_slice topic) {
  return rmq_lua_fail_at_once(L, &p->pendings, failure, topic);
}

void rmq_lua_producer_refresh_time(rmq_lua_producer *p) { rmq_uv_io_refresh(p->io); }

rmq_lua_producer *rmq_lua_producer_own(lua_State *L) {
  rmq_lua_producer *p = *(rmq_lua_producer **)lua_touserdata(L, lua_upvalueindex(1));
  if (!p) refuse_collected(L);
  return p;
}

int rmq_lua_producer_send(lua_State *L, const char *name, rmq_lua_start *start) {
  rmq_lua_producer *p = rmq_lua_producer_own(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, name);
  rmq_lua_producer_refresh_time(p);
  rmq_message message;
  rmq_send_options options;
  int last = lua_gettop(L);
  if (p->sends.selector != LUA_NOREF) last = rmq_arguments_stand_in(L, last, p->sends.selector);
  rmq_chooser_kind chooser = RMQ_CHOOSER_REFUSED;
  if (rmq_arguments_read(L, last, &p->arguments, &message, &options) == 0) {
    chooser = rmq_lua_send_chooser(L, last, &p->sends, message.topic, &options);
  }
  if (chooser == RMQ_CHOOSER_REFUSED) {
    return rmq_lua_producer_fail(L, p, &p->arguments.refusal, message.topic);
  }
  if (chooser == RMQ_CHOOSER_LUA) {
    return rmq_lua_send_chosen(L, &p->sends, start, &message, &options);
  }
  rmq_pending *pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  if (start(p->producer, &message, &options, rmq_pending_sent, pending) < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), message.topic);
  }
  /* The body stays until the answer is there. */
  lua_settop(L, RMQ_ARG_BODY);
  return rmq_task_wait(L, RMQ_ARG_BODY);
}

static int producer_send(lua_State *L) {
  return rmq_lua_producer_send(L, "send", rmq_producer_send);
}

/* sender(producer) */
static int producer_sender(lua_State *L) {
  check_box(L);
  lua_settop(L, 1);
  lua_pushcclosure(L, producer_send, 1);
  return 1;
}

static int producer_send_async(lua_State *L) {
  rmq_lua_producer *p = *(rmq_lua_producer **)lua_touserdata(L, lua_upvalueindex(1));
  if (!p) return refuse_collected(L);
  rmq_lua_producer_refresh_time(p);
  return rmq_lua_send_later(L, &p->sends, RMQ_MODE_ASYNC);
}

static int producer_send_oneway(lua_State *L) {
  rmq_lua_producer *p = *(rmq_lua_producer **)lua_touserdata(L, lua_upvalueindex(1));
  if (!p) return refuse_collected(L);
  rmq_lua_producer_refresh_time(p);
  return rmq_lua_send_later(L, &p->sends, RMQ_MODE_ONEWAY);
}

/* later_senders(producer, runner): the functions for send_async and send_oneway. */
static int producer_later_senders(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  rmq_lua_sends_set_runner(L, &p->sends);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, producer_send_async, 1);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, producer_send_oneway, 1);
  return 2;
}

/* --- Batches --- */

static rmq_lua_producer *of_upvalue(lua_State *L) {
  rmq_lua_producer *p = *(rmq_lua_producer **)lua_touserdata(L, lua_upvalueindex(1));
  if (!p) refuse_collected(L);
  return p;
}

static int producer_new_draft(lua_State *L) {
  return rmq_lua_batch_new(L, of_upvalue(L)->producer);
}

static int producer_add_to_draft(lua_State *L) {
  return rmq_lua_batch_add(L, &of_upvalue(L)->sends);
}

static int producer_send_batch(lua_State *L) {
  rmq_lua_producer *p = of_upvalue(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "send_batch");
  rmq_lua_producer_refresh_time(p);
  return rmq_lua_batch_send(L, &p->sends, RMQ_MODE_SYNC);
}

static int producer_send_batch_async(lua_State *L) {
  rmq_lua_producer *p = of_upvalue(L);
  rmq_lua_producer_refresh_time(p);
  return rmq_lua_batch_send(L, &p->sends, RMQ_MODE_ASYNC);
}

static int producer_send_batch_oneway(lua_State *L) {
  rmq_lua_producer *p = of_upvalue(L);
  rmq_lua_producer_refresh_time(p);
  return rmq_lua_batch_send(L, &p->sends, RMQ_MODE_ONEWAY);
}

/* batch_functions(producer): a table of the functions that make, fill and send a draft. */
static int producer_batch_functions(lua_State *L) {
  static const luaL_Reg functions[] = {{"new", producer_new_draft},
                                       {"add", producer_add_to_draft},
                                       {"send", producer_send_batch},
                                       {"send_async", producer_send_batch_async},
                                       {"send_oneway", producer_send_batch_oneway},
                                       {NULL, NULL}};
  check_box(L);
  lua_settop(L, 1);
  lua_newtable(L);
  for (const luaL_Reg *at = functions; at->name; at++) {
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, at->func, 1);
    lua_setfield(L, -2, at->name);
  }
  return 1;
}

/* queues(producer, topic) */
static int producer_queues(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, "queues");
  rmq_lua_producer_refresh_time(p);
  if (lua_type(L, 2) != LUA_TSTRING) {
    return rmq_lua_raise(L, "topic must be a string, not %s", luaL_typename(L, 2));
  }
  rmq_slice topic;
  topic.ptr = lua_tolstring(L, 2, &topic.len);
  rmq_pending *pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  rmq_pending_set_topic(pending, topic);
  int64_t timeout_ms = rmq_producer_settings(p->producer)->send_msg_timeout;
  if (rmq_producer_queues(p->producer, topic, timeout_ms, rmq_pending_listed, pending) < 0) {
    rmq_pending_put_back(pending);
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), topic);
  }
  lua_settop(L, 2);
  return rmq_task_wait(L, 2);
}

static int refuse_forked(lua_State *L, rmq_lua_producer *p) {
  rmq_failure failure;
  rmq_failure_init(&failure);
  failure.kind = RMQ_KIND_STATE;
  rmq_buf_printf(&failure.message, "%s belongs to the parent process", p->name);
  int values = rmq_lua_producer_fail(L, p, &failure, (rmq_slice){NULL, 0});
  rmq_failure_clear(&failure);
  return values;
}

static int wait_for_end(lua_State *L, const char *what,
                        void (*start)(rmq_producer *, int64_t, rmq_flush_done *, void *),
                        rmq_flush_done *done) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  if (!rmq_task_may_wait(L)) return rmq_task_refuse_wait(L, what);
  if (p->forked) return refuse_forked(L, p);
  int64_t timeout_ms = rmq_producer_settings(p->producer)->flush_timeout;
  bool at_once =
      lua_type(L, 2) == LUA_TNUMBER && lua_tonumber(L, 2) == 0; /* as flush_timeout may be */
  if (at_once) {
    timeout_ms = 0;
  } else if (rmq_arguments_time(L, &p->arguments, 2, "timeout", &timeout_ms) < 0) {
    return rmq_lua_producer_fail(L, p, &p->arguments.refusal, (rmq_slice){NULL, 0});
  }
  rmq_pending *pending = rmq_pending_take(&p->pendings, rmq_task_running(L));
  pending->owner = p;
  rmq_lua_producer_refresh_time(p);
  start(p->producer, timeout_ms, done, pending);
  lua_settop(L, 1);
  return rmq_task_wait(L, 1);
}

static int producer_flush(lua_State *L) {
  return wait_for_end(L, "flush", rmq_producer_flush, rmq_pending_counted);
}

static void on_shut_down(void *arg, size_t undelivered) {
  rmq_pending *pending = arg;
  rmq_lua_producer *p = pending->owner;
  p->over = true;
  /* The script is told what was left over; the end of the process need not say it again. */
  rmq_vm_remove_ending(p->vm, &p->ending);
  rmq_lua_hooks_drop(&p->hooks);
  rmq_pending_counted(pending, undelivered);
}

static int producer_shutdown(lua_State *L) {
  return wait_for_end(L, "shutdown", rmq_producer_shutdown, on_shut_down);
}

/* --- What does not wait --- */

/* set_namesrv(producer, list): true; nil and what is wrong with the list; or what take makes an error
 * of. */
static int producer_set_namesrv(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  rmq_buf list = {0};
  char why[512];
  lua_settop(L, 2);
  int status = rmq_lua_read_namesrv(L, 2, p->vm, &list, why, sizeof why);
  if (status == 0) {
    status = rmq_producer_set_namesrv(p->producer, rmq_buf_slice(&list), why, sizeof why);
  }
  rmq_buf_free(&list);
  if (status == RMQ_ESTATE) {
    return rmq_lua_producer_fail(L, p, rmq_producer_failure(p->producer), (rmq_slice){NULL, 0});
  }
  if (status < 0) {
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
  }
  lua_pushboolean(L, true);
  return 1;
}

static int producer_settings(lua_State *L) {
  rmq_lua_push_settings(L, rmq_producer_settings(rmq_lua_producer_check(L)->producer));
  return 1;
}

static int producer_client_id(lua_State *L) {
  lua_pushstring(L, rmq_producer_client_id(rmq_lua_producer_check(L)->producer));
  return 1;
}

static void set_count(lua_State *L, const char *name, uint64_t value) {
  lua_pushnumber(L, (double)value);
  lua_setfield(L, -2, name);
}

static int producer_stats(lua_State *L) {
  const rmq_lua_producer *p = rmq_lua_producer_check(L);
  rmq_producer_stats stats = rmq_producer_stats_of(p->producer);
  lua_createtable(L, 0, 20);
  set_count(L, "sent", stats.sent);
  set_count(L, "acknowledged", stats.acknowledged);
  set_count(L, "failed", stats.failed);
  set_count(L, "retried", stats.retried);
  set_count(L, "oneway_failed", stats.oneway_failed);
  set_count(L, "batches", stats.batches);
  set_count(L, "gathered", stats.gathered);
  set_count(L, "inflight", stats.inflight);
  set_count(L, "waiting", stats.waiting);
  set_count(L, "inflight_bytes", stats.inflight_bytes);
  set_count(L, "hook_errors", p->hooks.errors);
  set_count(L, "trace_sent", stats.trace_sent);
  set_count(L, "trace_dropped", stats.trace_dropped);
  set_count(L, "trace_pending", stats.trace_pending);
  set_count(L, "requests", stats.requests);
  set_count(L, "replies", stats.replies);
  set_count(L, "late_replies", stats.late_replies);
  set_count(L, "transactions", stats.transactions);
  set_count(L, "checks", stats.checks);
  set_count(L, "checks_answered", stats.checks_answered);
  set_count(L, "checks_dropped", stats.checks_dropped);
  set_count(L, "checks_ignored", stats.checks_ignored);
  return 1;
}

/* faults(producer): what is noted of the brokers. */
static int producer_faults(lua_State *L) {
  const rmq_producer *producer = rmq_lua_producer_check(L)->producer;
  rmq_fault_view view;
  int i = 0;
  lua_newtable(L);
  for (size_t at = 0; rmq_producer_next_fault(producer, &at, &view);) {
    lua_createtable(L, 0, 5);
    lua_pushlstring(L, view.broker.ptr, view.broker.len);
    lua_setfield(L, -2, "broker");
    lua_pushnumber(L, (double)view.latency_us / 1000);
    lua_setfield(L, -2, "latency_ms");
    lua_pushboolean(L, view.avoided_us == 0);
    lua_setfield(L, -2, "available");
    lua_pushnumber(L, (double)view.avoided_us / 1000);
    lua_setfield(L, -2, "available_in_ms");
    lua_pushboolean(L, view.reachable);
    lua_setfield(L, -2, "reachable");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

/* look_at_every_message(producer): unknown names are looked for in each, not in samples. */
static int producer_look_at_every_message(lua_State *L) {
  rmq_lua_producer_check(L)->arguments.always_look = true;
  return 0;
}

/* set_hooks(producer, list, self): see lua_hook.h. */
static int producer_set_hooks(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 3);
  rmq_lua_hooks_set(L, &p->hooks, 2, 3);
  return 0;
}

/* set_selector(producer, selector): the one for sends that name neither queue nor selector. Returns
 * true, or nil and what is wrong with it. */
static int producer_set_selector(lua_State *L) {
  rmq_lua_producer *p = rmq_lua_producer_check(L);
  lua_settop(L, 2);
  if (!lua_isnil(L, 2) && !rmq_lua_check_selector(L, 2, "setting selector")) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  rmq_lua_sends_set_selector(L, &p->sends);
  lua_pushboolean(L, true);
  return 1;
}

static int set_int64(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  rmq_lua_results_set_int64(L);
  return 0;
}

static int error_metatable(lua_State *L) {
  luaL_getmetatable(L, RMQ_LUA_ERROR);
  return 1;
}

static void set_functions(lua_State *L, const luaL_Reg *functions) {
  for (; functions->name; functions++) {
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, functions->func, 1);
    lua_setfield(L, -2, functions->name);
  }
}

int luaopen_rocketmq_native_producer(lua_State *L) {
  static const luaL_Reg functions[] = {{"new", producer_new},
                                       {"sender", producer_sender},
                                       {"later_senders", producer_later_senders},
                                       {"batch_functions", producer_batch_functions},
                                       {"queues", producer_queues},
                                       {"flush", producer_flush},
                                       {"shutdown", producer_shutdown},
                                       {"set_namesrv", producer_set_namesrv},
                                       {"settings", producer_settings},
                                       {"client_id", producer_client_id},
                                       {"stats", producer_stats},
                                       {"faults", producer_faults},
                                       {"set_hooks", producer_set_hooks},
                                       {"look_at_every_message", producer_look_at_every_message},
                                       {"set_selector", producer_set_selector},
                                       {"set_int64", set_int64},
                                       {"error_metatable", error_metatable},
                                       {NULL, NULL}};
  rmq_lua_results_open(L);
  rmq_lua_batch_open(L);
  if (luaL_newmetatable(L, "rocketmq.producer")) {
    lua_pushcfunction(L, producer_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_newtable(L);
  set_functions(L, functions);
  set_functions(L, rmq_lua_admin_functions);
  set_functions(L, rmq_lua_transaction_functions);
  set_functions(L, rmq_lua_recall_functions);
  set_functions(L, rmq_lua_request_functions);
  rmq_lua_pending_open(L);
  lua_setfield(L, -2, "take");
  lua_pushliteral(L, RMQLUA_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}

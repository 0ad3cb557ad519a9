#ifndef RMQ_SCRIPT_LUA_SEND_H
#define RMQ_SCRIPT_LUA_SEND_H

#include "script/lua_arguments.h"
#include "script/lua_loss.h"
#include "script/lua_pending.h"
#include "script/lua_selector.h"

/* Sends that keep something of a script beyond the call that starts them: a callback, a long body,
 * a selector with its argument. Such values stand in a table of slots, one slot for each send that
 * is under way; short bodies are copied. */

typedef struct rmq_lua_send rmq_lua_send;

/* All that one producer has. */
typedef struct rmq_lua_sends {
  rmq_vm *vm;
  rmq_producer *producer;
  rmq_arguments *arguments;
  rmq_pendings *pendings;
  rmq_lua_selectors selectors;
  rmq_lua_losses losses;
  int slots;   /* registry reference: the table; field 0 is the function that runs callbacks */
  int n_slots; /* made so far */
  rmq_lua_send **blocks;
  size_t n_blocks;
  rmq_lua_send *free;
} rmq_lua_sends;

/* `producer`, `arguments` and `pendings` are the caller's. May raise. */
void rmq_lua_sends_open(lua_State *L, rmq_lua_sends *all, rmq_producer *producer,
                        rmq_arguments *arguments, rmq_pendings *pendings);
/* Nothing is under way any more. */
void rmq_lua_sends_close(rmq_lua_sends *all);

/* In a forked child: their callbacks come to the parent and keep the child from ending no more. */
void rmq_lua_sends_forked(rmq_lua_sends *all);

/* Sets the function on top of the stack, which is popped: (callback, ok, pending), run as a task. */
void rmq_lua_sends_set_runner(lua_State *L, rmq_lua_sends *all);

/* Body, topic, ... as rmq_arguments_read takes them, and above them a callback or nil. Returns true,
 * or what take makes an error of. Waits for room where that is possible. */
int rmq_lua_send_later(lua_State *L, rmq_lua_sends *all, rmq_mode mode);

/* A send that is waited for, whose options (read already) have a selector. Returns as
 * rmq_task_wait does. */
int rmq_lua_send_chosen(lua_State *L, rmq_lua_sends *all, const rmq_message *message,
                        rmq_send_options *options);

#endif

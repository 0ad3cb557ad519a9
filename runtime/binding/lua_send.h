#ifndef RMQ_BINDING_LUA_SEND_H
#define RMQ_BINDING_LUA_SEND_H

#include "binding/lua_arguments.h"
#include "binding/lua_choosers.h"
#include "binding/lua_loss.h"
#include "binding/lua_pending.h"
#include "binding/lua_selector.h"

/* Sends that need something of a script beyond the call that starts them: a callback, a long body,
 * a selector with its argument. For a task that waits for one message it stays on the task's stack.
 * For others such values stand in a table of slots, one slot for each send that is under way; short
 * bodies are copied. */

typedef struct rmq_lua_send rmq_lua_send;
typedef struct rmq_lua_batch rmq_lua_batch; /* lua_batch.h */

/* What a slot has room for, one field each. */
typedef enum rmq_lua_kept {
  RMQ_KEPT_CALLBACK,
  RMQ_KEPT_BODY,
  RMQ_KEPT_SELECTOR,
  RMQ_KEPT_MESSAGE,
  RMQ_KEPT_ARG,
  RMQ_KEPT_FIELDS
} rmq_lua_kept;

/* What starts a send: rmq_producer_send, or another function like it. */
typedef int rmq_lua_start(rmq_producer *producer, const rmq_message *message,
                          const rmq_send_options *options, rmq_send_done *done, void *arg);

/* All that one producer has. */
typedef struct rmq_lua_sends {
  rmq_vm *vm;
  rmq_producer *producer;
  rmq_arguments *arguments;
  rmq_pendings *pendings;
  rmq_lua_selectors selectors;
  int selector; /* registry reference: the producer's own, a function or a name; LUA_NOREF: none */
  rmq_pending
      *starting;      /* the send of a task that is being started with a selector, and on which */
  lua_State *starter; /* stack its arguments are */
  rmq_lua_losses losses;
  int slots;   /* registry reference: the table; field 0 is the function that runs callbacks */
  int n_slots; /* made so far */
  rmq_lua_send **blocks;
  size_t n_blocks;
  rmq_lua_send *free;
} rmq_lua_sends;

struct rmq_lua_send {
  rmq_lua_sends *all;
  rmq_lua_send *next; /* while it is free */
  int slot;           /* the number of its first field */
  unsigned kept;      /* one bit for each field that holds something */
  bool oneway;
  bool holds;           /* keeps the process going until its callback has been called */
  rmq_task *entering;   /* waits for room */
  unsigned wait;        /* the number of that wait */
  rmq_pending *pending; /* of a batch that is waited for, else NULL */
  rmq_lua_batch *batch; /* NULL: it is one message */
  rmq_buf body;         /* a copy */
};

/* `producer`, `arguments` and `pendings` are the caller's. May raise. */
void rmq_lua_sends_open(lua_State *L, rmq_lua_sends *all, rmq_producer *producer,
                        rmq_arguments *arguments, rmq_pendings *pendings);
/* Nothing is under way any more. */
void rmq_lua_sends_close(rmq_lua_sends *all);

/* In a forked child: their callbacks come to the parent and keep the child from ending no more. */
void rmq_lua_sends_forked(rmq_lua_sends *all);

/* Sets the function on top of the stack, which is popped: (callback, ok, pending), run as a task. */
void rmq_lua_sends_set_runner(lua_State *L, rmq_lua_sends *all);

/* The selector, on top of the stack and popped, stands in for sends that name neither queue nor
 * selector. Nil: none does. */
void rmq_lua_sends_set_selector(lua_State *L, rmq_lua_sends *all);

/* What chooses the queue, by the options that were read: RMQ_CHOOSER_NATIVE when C does, also when
 * there is no selector. RMQ_CHOOSER_REFUSED: all->arguments->refusal says why. */
rmq_chooser_kind rmq_lua_send_chooser(lua_State *L, int last, rmq_lua_sends *all, rmq_slice topic,
                                      rmq_send_options *options);

/* Body, topic, ... as rmq_arguments_read takes them, and above them a callback or nil. Returns true,
 * or what take makes an error of. Waits for room where that is possible. */
int rmq_lua_send_later(lua_State *L, rmq_lua_sends *all, rmq_mode mode);

/* The parts of these. A send that was taken is released, or called back, which releases it. */
rmq_lua_send *rmq_lua_send_take(lua_State *L, rmq_lua_sends *all);
void rmq_lua_send_keep(lua_State *L, rmq_lua_send *send, rmq_lua_kept field, int index);
void rmq_lua_send_keep_callback(lua_State *L, rmq_lua_send *send, int index);
/* The selector with its argument, and a copy of the message: it may be asked when the script has
 * changed the table for its next message. */
void rmq_lua_send_keep_selector(lua_State *L, rmq_lua_send *send, rmq_send_options *options);
void rmq_lua_send_release(rmq_lua_send *send);
/* Runs the callback with what take makes of `pending`. */
void rmq_lua_send_call_back(rmq_lua_send *send, bool ok, rmq_pending *pending);
/* The running task is about to wait for room for it. */
void rmq_lua_send_enter(lua_State *L, rmq_lua_send *send);
void rmq_lua_send_admitted(void *arg); /* an rmq_admitted: lets the call that waits return true */

/* A send that is waited for, whose options (read already) have a selector of Lua's. Returns as
 * rmq_task_wait does. */
int rmq_lua_send_chosen(lua_State *L, rmq_lua_sends *all, rmq_lua_start *start,
                        const rmq_message *message, rmq_send_options *options);

#endif

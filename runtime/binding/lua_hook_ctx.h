#ifndef RMQ_BINDING_LUA_HOOK_CTX_H
#define RMQ_BINDING_LUA_HOOK_CTX_H

#include "binding/lua_hook.h"
#include "binding/lua_names.h"

/* What the functions of hooks see: a table `ctx` whose fields are made when they are first read, so that a
 * hook pays for what it looks at. `ctx.message` is such a table, too.
 *
 * The ctx of `before` is that of the `after` of the same attempt, so that a hook can keep something in it.
 * Between the two, and when all is over, fields that were not read cannot be: nothing is there to make them
 * of. */

/* The fields of ctx.message, as bits in the order of their names. */
extern const rmq_names rmq_hooked_names;
enum {
  RMQ_HOOKED_TOPIC = 1,
  RMQ_HOOKED_BODY = 2,
  RMQ_HOOKED_TAGS = 4,
  RMQ_HOOKED_KEYS = 8,
  RMQ_HOOKED_PROPERTIES = 16,
  RMQ_HOOKED_FLAG = 32,
  RMQ_HOOKED_WAIT = 64,
  RMQ_HOOKED_UNKNOWN = 128
};

/* Of one attempt, from `before` to `after`; or of one call only. */
struct rmq_lua_hook_state {
  rmq_lua_hook_state *next; /* while it is free */
  rmq_lua_hook_set *set;    /* held */
  int slot;                 /* the number of the first of its two fields: ctx, ctx.message */
  const void *ctx;          /* as lua_topointer gives it; NULL: not made */
  const void *message;
  unsigned filled; /* the fields of ctx.message that were made or assigned */
};

/* One call of the core's, on the C stack. */
struct rmq_lua_hook_event {
  rmq_lua_hook_event *outer; /* inside which this one is */
  rmq_lua_hook_function function;
  rmq_lua_hook_state *state;
  const rmq_hook_attempt *attempt;         /* of sends */
  rmq_hook_attempt *changing;              /* in `before`: the same */
  const rmq_hook_transaction *transaction; /* of end_transaction */
  const rmq_watched_request *request;      /* of before_request */
  const rmq_watched_response *response;    /* of after_response */
};

/* What the threads of hooks have in common, as fields of the table `kept`. */
enum { RMQ_HOOK_KEPT_CTX = 1, RMQ_HOOK_KEPT_MESSAGE, RMQ_HOOK_KEPT_REQUEST, RMQ_HOOK_KEPT_END };

/* Makes the metatables; `kept` is the index of that table, whose "box" is there, and the slots. May
 * raise. */
void rmq_lua_hook_ctx_open(lua_State *L, rmq_lua_hooks *all, int kept);
void rmq_lua_hook_request_open(lua_State *L, int kept);

/* The event whose ctx, or ctx.message, is the table at `index`; NULL: it is over. */
rmq_lua_hook_event *rmq_lua_hook_event_of(lua_State *L, const rmq_lua_hooks *all, int index);

/* Lets the next one who reads ctx.message get one that is made anew. */
void rmq_lua_hook_forget_message(lua_State *L, const rmq_lua_hooks *all, rmq_lua_hook_state *state);

/* Pushes the list of the keys in a text, which spaces separate. */
void rmq_lua_hook_push_keys(lua_State *L, rmq_slice keys);

/* Pushes field `n` of ctx.message as the attempt has it. */
void rmq_lua_hook_push_message_field(lua_State *L, const rmq_hook_attempt *attempt, int n);

/* Reads what a `before` function has left in ctx.message, and gives it to the core. 0, or RMQ_EINVAL
 * with the reason in `why`. */
int rmq_lua_hook_collect(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event,
                         rmq_failure *why);

/* The same for ctx.ext of before_request: pushes what is wrong with it, or nothing (true). */
bool rmq_lua_hook_collect_ext(lua_State *L, rmq_lua_hooks *all, const rmq_lua_hook_event *event);

/* Pushes what end_transaction sees. */
void rmq_lua_hook_push_transaction(lua_State *L, const rmq_hook_transaction *transaction);

#endif

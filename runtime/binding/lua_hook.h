#ifndef RMQ_BINDING_LUA_HOOK_H
#define RMQ_BINDING_LUA_HOOK_H

#include <lua.h>

#include "net/io.h"
#include "producer/hook.h"
#include "script/vm.h"

/* Hooks that are Lua: calls the functions of a producer's hooks, on Lua threads of their own that are
 * used again and again, protected, where nothing can wait. What is called when: producer/hook.h; what
 * a function sees: lua_hook_ctx.h, lua_hook_request.c. */

/* The functions of a hook. */
typedef enum rmq_lua_hook_function {
  RMQ_HOOK_CHECK_FORBIDDEN,
  RMQ_HOOK_BEFORE,
  RMQ_HOOK_AFTER,
  RMQ_HOOK_END_TRANSACTION,
  RMQ_HOOK_BEFORE_REQUEST,
  RMQ_HOOK_AFTER_RESPONSE,
  RMQ_HOOK_FUNCTIONS
} rmq_lua_hook_function;

/* Calls inside calls: a hook that sends lets the hooks of that send be called. */
enum { RMQ_LUA_HOOK_DEPTH = 24 };

/* How many fields ctx and ctx.message have. */
enum { RMQ_HOOK_CTX_FIELDS = 16, RMQ_HOOK_MESSAGE_FIELDS = 7 };

typedef struct rmq_lua_hook rmq_lua_hook;
typedef struct rmq_lua_hook_set rmq_lua_hook_set;
typedef struct rmq_lua_hook_state rmq_lua_hook_state;
typedef struct rmq_lua_hook_event rmq_lua_hook_event;

/* All that one producer has. */
typedef struct rmq_lua_hooks {
  rmq_vm *vm;
  rmq_producer *producer;
  rmq_io *io;
  struct rmq_lua_hooks **box; /* a userdata: this, NULL once the producer is gone */
  int kept;                   /* registry reference: a table that keeps threads and texts */
  lua_State *threads[RMQ_LUA_HOOK_DEPTH]; /* one for each depth, made when it is first reached */
  /* The fields' names as Lua has them: equal texts are one, so that addresses can be compared. */
  const char *ctx_names[RMQ_HOOK_CTX_FIELDS];
  const char *message_names[RMQ_HOOK_MESSAGE_FIELDS];
  int slots;             /* registry reference: the tables of attempts under way */
  int n_slots;           /* made so far */
  rmq_lua_hook_set *set; /* the hooks that attempts which begin now get; NULL: none */
  rmq_lua_hook_state **blocks;
  size_t n_blocks;
  rmq_lua_hook_state *free;
  size_t held;                            /* states of attempts whose `after` is still to come */
  rmq_lua_hook_event *event;              /* the innermost one that is handled now */
  struct rmq_lua_hook_handling *handling; /* and how far that is */
  int depth;                              /* how many are */
  uint64_t errors;                        /* raised in hooks */
  rmq_hooks table;                        /* what the core calls */
  rmq_slice *keys; /* lists that are read into, kept from one message to the next */
  size_t keys_cap;
  rmq_field *properties;
  size_t properties_cap;
} rmq_lua_hooks;

/* May raise. */
void rmq_lua_hooks_open(lua_State *L, rmq_lua_hooks *all, rmq_producer *producer, rmq_io *io);
/* The producer ends; what a script has kept of it knows nothing any more. */
void rmq_lua_hooks_close(rmq_lua_hooks *all);

/* The producer is shut down: lets go of the hooks, which may have a hold on the producer itself. */
void rmq_lua_hooks_drop(rmq_lua_hooks *all);

/* Sets the hooks: a list, at `list`, of tables {name=, strict=, before=, ...} whose shape has been
 * checked (lua/rocketmq/hook/init.lua), in the order of their calls; `self` is the index of what is their
 * ctx.producer. An attempt whose `before` has been called gets its `after` from the hooks that it had
 * then. May raise. */
void rmq_lua_hooks_set(lua_State *L, rmq_lua_hooks *all, int list, int self);

#endif

#ifndef RMQ_BINDING_LUA_QUEUES_H
#define RMQ_BINDING_LUA_QUEUES_H

#include <lua.h>

#include "producer/producer.h"

/* The lists of queues that selectors are given: plain Lua tables, made once for each version of a
 * topic's route and handed out again and again, whatever the number of queues.
 *
 * A selector may sort or cut its list, and the next one must not see that. Looking at every place
 * before each call would make all of them pay for the number of queues, and Lua does not tell when
 * a table is written to. So the look depends on what can have happened:
 *
 *   - A list of up to RMQ_QUEUES_FEW is looked at whole each time.
 *   - In a longer one its length, its ends and a few places that move on are looked at each time. Whole
 *     it is looked at when the selector before took about as long as going through the list takes (who
 *     sorts it, or cuts out of it, does), failed, or has not ended yet. So the look costs about what the
 *     selector itself did.
 *
 * What passes by that is one write to a place inside a long list by a selector that does next to
 * nothing else; it is found within n / RMQ_QUEUES_LOOK calls, and at once when it makes one fail. A
 * list that was found changed is left to who has it, and another one is made.
 *
 * The looks at a few are in lua/rocketmq/selector/asker.lua, those at all here. */
enum { RMQ_QUEUES_FEW = 8, RMQ_QUEUES_LOOK = 4 };

/* The memory of a list: a userdata, whose environment keeps the queues, as
 * field 0 the table, and as negative fields what others keep with it. */
typedef struct rmq_lua_queues {
  uint64_t version;      /* of the route that it was made from: places are those of its publish */
  const void *metatable; /* the queues' */
  size_t n;
  uint64_t began; /* when it was handed out, a long one, in the processor's ticks */
  uint64_t limit; /* so many ticks are enough to go through it */
  bool suspect;   /* the next look is to be at all of it */
  void *at[];     /* each queue's memory */
} rmq_lua_queues;

/* Makes the list for the publish of a choice, and pushes its memory. May raise. */
rmq_lua_queues *rmq_lua_queues_make(lua_State *L, const rmq_choice *choice);
/* Pushes a table with the queues of the list whose memory is at `index`, as it was made. */
void rmq_lua_queues_refill(lua_State *L, int index);

/* Pushes the table that was made or refilled last. */
void rmq_lua_queues_push(lua_State *L, int index);

/* To be called when a long list is handed out, and when the selector that got it has returned: how
 * long it took decides about the next look. */
void rmq_lua_queues_begin(rmq_lua_queues *list);
void rmq_lua_queues_end(rmq_lua_queues *list);

/* True when the table at `index` is as it was made; looks at every place. */
bool rmq_lua_queues_unharmed(lua_State *L, int index, const rmq_lua_queues *list);

/* The place, from 0, of a queue of the list: the value at `index` is one of the list's own, another
 * one that is equal, or a plain {broker=, id=}. -1 when it is none of them, with a text that says what
 * it is pushed on the stack. Constant for the list's own, else a binary search. */
int64_t rmq_lua_queues_place(lua_State *L, int index, const rmq_lua_queues *list,
                             const rmq_choice *choice);

/* The same for the list's own only; never raises, pushes nothing. */
int64_t rmq_lua_queues_own_place(lua_State *L, int index, const rmq_lua_queues *list);

/* Reads a plain {broker=, id=, topic=}. Its texts stay in it. `topic` is left alone when there is none. */
bool rmq_lua_read_queue_table(lua_State *L, int index, rmq_slice *topic, rmq_slice *broker,
                              double *id);

#endif

#ifndef RMQ_PRODUCER_HOOK_H
#define RMQ_PRODUCER_HOOK_H

#include "net/transport.h"
#include "producer/producer.h"

/* Hooks: functions that see every attempt of every send, and may stop it or change what it sends.
 *
 * For one send, in this order: `check_forbidden` before each attempt; when it allows the attempt,
 * `before`; and `after` once for each attempt. `after` comes when it is known what follows: directly
 * before the next attempt (after check_forbidden has allowed that one), or at the end of the send.
 * Exactly one `after` of a send has `will_retry` false, and it has what the caller gets. A send that
 * ended without an attempt (no route, no time, a shutdown, forbidden) has that one with attempt 0. A
 * send that rmq_producer_send refuses is none, and no hook hears of it.
 *
 * A hook may start other sends of the same producer, which have hooks, too: at most RMQ_HOOK_DEPTH
 * generations; what a hook sends beyond is refused. It must neither free nor shut down the producer. */

enum { RMQ_HOOK_DEPTH = 8 };

/* What rmq_hook_set_properties and rmq_hook_set_body make: what an attempt sends instead of the
 * message's own. */
typedef struct rmq_hook_change {
  bool properties, body; /* which of the two is changed */
  rmq_buf new_properties;
  rmq_buf new_body;
} rmq_hook_change;

/* One attempt of one send, as a hook sees it. Valid during the call only, but for `*state`. */
typedef struct rmq_hook_attempt {
  rmq_producer *producer;
  rmq_mode mode;
  rmq_slice topic;
  const char *broker; /* the attempt's; NULL with attempt 0 */
  const char *addr;
  int32_t queue_id; /* -1 with attempt 0 */
  rmq_slice msg_id;
  int32_t flag;
  int attempt;          /* counts from 1 */
  rmq_slice properties; /* the property string: in check_forbidden and before the message's own, in
                          * after what was sent */
  rmq_slice body;       /* likewise */
  void *
      *state; /* the hooks' own, from `before` to the `after` of the same attempt; NULL at first */
  int64_t elapsed_us;               /* after: how long the attempt took */
  bool will_retry;                  /* after: another attempt follows */
  const rmq_completion *completion; /* after: what came of it; otherwise NULL */
  rmq_hook_change *change;          /* before: see rmq_hook_set_properties; otherwise NULL */
} rmq_hook_attempt;

/* The end of a transaction that is about to be sent. */
typedef struct rmq_hook_transaction {
  rmq_producer *producer;
  rmq_slice topic;
  rmq_slice broker; /* its name; may be empty */
  rmq_slice addr;   /* may be empty */
  rmq_slice msg_id;
  rmq_slice transaction_id;
  const char *state;    /* "commit", "rollback" or "unknown" */
  bool from_check;      /* the broker asked; else it follows the half message */
  rmq_slice properties; /* the half message's */
  rmq_slice body;
} rmq_hook_transaction;

/* Each may be NULL. Those that return an int return 0 with `why` untouched, or a negative code with `why` set: the send
 * ends with that failure and makes no further attempt. Where a send has several hooks, who makes
 * this table calls them one after the other. */
typedef struct rmq_hooks {
  int (*check_forbidden)(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why);
  int (*before)(void *arg, rmq_hook_attempt *attempt, rmq_failure *why);
  /* A failure of the last one replaces the result, though the message may be stored. */
  int (*after)(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why);
  void (*end_transaction)(void *arg, const rmq_hook_transaction *transaction);
  rmq_before_request *before_request;
  rmq_after_response *after_response;
} rmq_hooks;

/* Sets the hooks; `hooks` is the caller's and stays. NULL: none, and sends do not even look for them.
 * An attempt that is under way gets its `after` from the hooks that are set when it comes. */
void rmq_producer_set_hooks(rmq_producer *producer, const rmq_hooks *hooks, void *arg);

/* From `before`: lets this attempt send other properties, keys and tags than the message's. What
 * RocketMQ itself reads (reserved names) stays. `users` has the new ones; its other fields are not
 * looked at. RMQ_EINVAL with `why` when they are not acceptable; nothing is changed then. */
int rmq_hook_set_properties(rmq_hook_attempt *attempt, const rmq_message *users, rmq_failure *why);

/* The same for the body, which is copied. */
int rmq_hook_set_body(rmq_hook_attempt *attempt, rmq_slice body, rmq_failure *why);

#endif

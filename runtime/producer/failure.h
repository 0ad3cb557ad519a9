#ifndef RMQ_PRODUCER_FAILURE_H
#define RMQ_PRODUCER_FAILURE_H

#include "base/buf.h"

/* Why a send came to nothing, for a person and for a program. What writes the sentences is marked as
 * cold, so that the code around its calls stands apart from what every message goes through. */

typedef enum rmq_kind {
  RMQ_KIND_MESSAGE,  /* the message itself is not acceptable */
  RMQ_KIND_TIMEOUT,  /* the budget is over */
  RMQ_KIND_ROUTE,    /* no usable queue was found */
  RMQ_KIND_CONNECT,  /* no connection could be made */
  RMQ_KIND_CLOSED,   /* a connection ended before the answer */
  RMQ_KIND_BROKER,   /* the broker refused; `code` is its code */
  RMQ_KIND_SELECTOR, /* the selector failed */
  RMQ_KIND_HOOK,     /* a hook refused */
  RMQ_KIND_STATE,    /* the producer is shut down, or belongs to a parent process */
  RMQ_KIND_OVERLOAD  /* too much in flight */
} rmq_kind;

const char *rmq_kind_name(rmq_kind kind); /* "message", "timeout", ... as scripts see them */

/* One attempt. */
typedef struct rmq_try {
  char *broker;  /* its name */
  char *addr;    /* "host:port" */
  char *message; /* what happened, one line */
  rmq_kind kind;
  int32_t code; /* the broker's, or 0 */
  bool written; /* the broker may have stored the message */
  bool foreign; /* what came back is not of this protocol */
  int64_t elapsed_us;
} rmq_try;

typedef struct rmq_failure {
  rmq_kind kind;
  int32_t code; /* Java's number where it has one (10001 to 10007, 13, a broker's), else 0 */
  int n_tries;
  bool maybe_stored; /* an attempt was written and not answered */
  rmq_buf message;   /* one or a few sentences: what happened, to what, and what to do */
  char *topic;       /* or NULL */
  char *broker;      /* of the last attempt, or NULL */
  char *addr;        /* of the last attempt, or NULL */
  rmq_try *tries;
  int64_t elapsed_us;
} rmq_failure;

void rmq_failure_init(rmq_failure *failure);
void rmq_failure_clear(rmq_failure *failure); /* releases what it holds; usable again */
/* Makes `to`, which holds nothing, a copy with texts of its own. */
void rmq_failure_copy(rmq_failure *to, const rmq_failure *from);

/* Notes one attempt. Everything is copied; what is empty becomes NULL. */
void rmq_failure_try(rmq_failure *failure, rmq_kind kind, int32_t code, bool written,
                     rmq_slice broker, rmq_slice addr, rmq_slice message, int64_t elapsed_us);

/* Sets kind, code and message (cut at 1023 bytes), and forgets topic, broker and address; the
 * attempts stay. */
void rmq_failure_set(rmq_failure *failure, rmq_kind kind, int32_t code, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));

/* True when a broker's refusal with SYSTEM_ERROR means that a batch is longer than it stores: another
 * attempt would get the same. */
bool rmq_remark_says_too_long(rmq_slice remark);

/* Puts words before the message: what it is about. */
void rmq_failure_prefix(rmq_failure *failure, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* True when a broker that got the message in one of the attempts did not answer. */
bool rmq_failure_may_be_stored(const rmq_failure *failure);

/* Gathers the attempts into kind, code, broker, addr, maybe_stored (all those of the last attempt,
 * but maybe_stored of any) and a message that lists them and says what to do. */
void rmq_failure_conclude(rmq_failure *failure, rmq_slice topic, int64_t elapsed_us);

#endif

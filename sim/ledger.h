#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "base/map.h"
#include "producer/transaction.h"
#include "sim/world.h"
#include "wire/send.h"

/* The books: every send of a life with what it carries, each arrival at a broker, each stored copy,
 * and how it ended. What brokers and workload enter is checked against what the other has entered.
 */

enum { SIM_COPIES_MAX = 16, SIM_KEYS_MAX = 3 };

typedef enum sim_send_state {
  SIM_SEND_REFUSED,
  SIM_SEND_UNDER_WAY,
  SIM_SEND_STORED,
  SIM_SEND_FAILED
} sim_send_state;

/* One copy of a message in a broker's store. */
typedef struct sim_copy {
  int broker;
  int32_t queue;
  int64_t offset;
  bool batch; /* it came in one */
} sim_copy;

enum { SIM_AVOIDED_MAX = 8 }; /* at least as many brokers as a cluster has */

/* What a user knows of a transaction whose half message a send is. */
typedef enum sim_transaction_phase {
  SIM_TRANSACTION_NONE,   /* its half message is not stored, as far as is known */
  SIM_TRANSACTION_OPEN,   /* the user does its part */
  SIM_TRANSACTION_ENDING, /* the core was told what came of it */
  SIM_TRANSACTION_ENDED,  /* and says that the broker knows, or why it does not */
  SIM_TRANSACTION_LEFT    /* nobody can say it any more */
} sim_transaction_phase;

typedef struct sim_transaction {
  sim_transaction_phase phase;
  bool succeeds;              /* what comes of the user's part */
  rmq_transaction_state said; /* when it was ended */
  bool told;                  /* it ended without a failure */
  int ends;                   /* END_TRANSACTIONs of that which have come to a broker */
  int64_t ended_us;           /* when the core was told */
  int64_t frozen_us;          /* the world's then */
} sim_transaction;

/* What is known of a request that a send is. */
typedef struct sim_request {
  struct sim_cluster *cluster; /* once it is stored */
  char id[40];                 /* CORRELATION_ID, "" before it arrived */
  int pushes;                  /* of replies, by brokers, on a connection */
  int64_t pushed_us;           /* when the first one was */
} sim_request;

typedef struct sim_send {
  uint32_t number; /* its place in the books; travels as the property "n" */

  /* What it carries. The body's bytes follow from the number. */
  int topic;
  size_t body_len;
  bool tagged;
  int n_keys;
  bool wait;
  bool half; /* a transaction's */
  bool asks; /* a request: what is known of its send is what its end says */
  int32_t flag;
  rmq_send_options options;
  int given_broker; /* of a given queue, also one that was chosen; or -1 */
  bool no_choice;   /* who was to choose its queue has refused */
  bool batch_chose; /* its queue was chosen for a batch, perhaps not for this one of several */
  char *body;       /* lent to the core while the send is under way */
  void *owner;      /* the workload */

  /* How it went. */
  sim_send_state state;
  int64_t started_us;
  int64_t budget_us;
  int64_t frozen_us;                   /* the world's, when it started */
  bool maybe_stored;                   /* its failure says so */
  bool from_task;                      /* a task waits for it */
  int64_t avoided_us[SIM_AVOIDED_MAX]; /* for how long it avoided each broker when it started */
  bool probes;                         /* sent to see whether the producer has found back */
  char key[RMQ_UNIQUE_ID_MAX + 1];     /* UNIQ_KEY, "" before it is known */
  int befores, afters, finals;         /* calls of hooks; `finals`: the last one of a send */
  uint32_t generation;                 /* how many hooks stand between it and the workload */
  bool refused_by_hook;
  int go_aways;                    /* that brokers answered with GO_AWAY */
  int traced;                      /* records about it that were stored */
  int arrivals;                    /* at brokers */
  int first_arrival, last_arrival; /* broker */
  bool same_broker;                /* all arrivals were at one broker */
  int64_t stored_us;               /* when the first copy was */
  int n_copies;
  sim_copy copies[SIM_COPIES_MAX];
  sim_transaction transaction;
  sim_request request;
  struct sim_half *halves; /* what brokers keep of it, see halves.h */
} sim_send;

typedef struct sim_ledger {
  sim_world *world;
  sim_send **sends;
  size_t n_sends, cap;
  rmq_map *by_key; /* UNIQ_KEY to the send */
  size_t under_way;
  bool hooked; /* hooks change what is sent */
} sim_ledger;

sim_ledger *sim_ledger_new(sim_world *world);
void sim_ledger_free(sim_ledger *ledger);

/* A new send in the books, without content. The books own it. */
sim_send *sim_ledger_add(sim_ledger *ledger);

/* The send whose message has these properties, by its number; or NULL. */
sim_send *sim_ledger_find(const sim_ledger *ledger, rmq_slice properties);

/* The bytes of a send's body. */
void sim_body_fill(uint32_t number, char *out, size_t len);

/* True when they are these, each changed by `flip`. */
bool sim_body_is(const sim_send *send, rmq_slice body, uint8_t flip);

/* The texts of a message: "tag-<n>", "key-<n>-<i>" and the property "p" = "value <n>". */
enum { SIM_TEXT = 32 };
void sim_tag_text(uint32_t number, char out[SIM_TEXT]);
void sim_key_text(uint32_t number, int i, char out[SIM_TEXT]);
void sim_value_text(uint32_t number, char out[SIM_TEXT]);

/* The offset id of a copy, as its broker gives it. Returns the length. */
size_t sim_offset_id(sim_copy copy, char out[RMQ_UNIQUE_ID_MAX]);

/* A send request has come to a broker: checks that it carries exactly what was given to the core.
 * NULL when it does not (the run is broken then). */
sim_send *sim_ledger_arrived(sim_ledger *ledger, int broker, const rmq_send_header *header,
                             rmq_slice body);
/* A broker has stored it. */
void sim_ledger_stored(sim_ledger *ledger, sim_send *send, sim_copy copy);

/* A send has completed; checks what the core says against the books. `broker` is the index of the
 * completion's broker, or -1. */
void sim_ledger_completed(sim_ledger *ledger, sim_send *send, const rmq_completion *completion,
                          int broker);

#endif

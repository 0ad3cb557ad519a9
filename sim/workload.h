#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/cluster.h"
#include "sim/ledger.h"

/* What a user does with a producer: tasks that send one message after the other, bursts, all modes
 * and options, messages that are refused, flushes, questions for queues, a shutdown at some time.
 */

enum { SIM_BATCH_MAX = 60 }; /* messages in one call */

/* How much of what. */
typedef struct sim_workload_plan {
  int sends;        /* in all */
  int tasks;        /* each waits for one send before it makes the next */
  int64_t think_us; /* the longest that a task waits between two sends */
  int64_t burst_us; /* the longest between two bursts; 0: none */
  int burst;        /* the largest burst */
  size_t body_max;
  int64_t least_timeout_ms; /* of those sends that have a timeout of their own */
  uint32_t own_timeout_ppm;
  uint32_t odd_ppm;   /* sends that are wrong, or to topics that do not work */
  uint32_t batch_ppm; /* of the sends of a burst: batches */
  bool plain_only;    /* nothing but the plain topic */
} sim_workload_plan;

typedef struct sim_workload {
  sim_world *world;
  sim_cluster *cluster;
  sim_ledger *ledger;
  rmq_producer *producer; /* NULL once freed */
  sim_workload_plan plan;
  int sends_left;
  bool inside_send; /* rmq_producer_send is on the stack: no completion may come */
  uint64_t end_at;  /* the completion from inside which the end comes, 0: it comes from outside */
  bool end_by_fork;
  bool topics_kept; /* no topic, with its place in the round robin, is forgotten for want of use */
  bool even;        /* no broker is avoided: all queues get the same */
  bool stopping;    /* shutdown has been called */
  bool stopped;     /* its done has come */
  bool forked;
  bool free_at_once; /* from inside the shutdown's done */
  int64_t stop_deadline_us;
  size_t failed_by_stop;  /* sends that failed with kind "state" */
  uint64_t traceable;     /* completions that message trace records */
  bool hooked;            /* the producer has hooks */
  sim_random hook_random; /* their own */
  uint64_t hook_calls;
  uint64_t hook_end_at; /* the call from inside which the end comes, 0: it does not */
  uint64_t refused_by_hooks;
  int64_t avoided_until_us[SIM_AVOIDED_MAX]; /* each broker, with latency_fault = "5.x" */
  int64_t forgotten_us[SIM_AVOIDED_MAX];     /* when an avoidance last ended before its time */
  bool named[SIM_AVOIDED_MAX];   /* each broker, by some route, as of when it was looked at last */
  sim_random transaction_random; /* their own */
  uint32_t transaction_ppm;      /* of the sends: half messages */
  size_t transactions;           /* open, or of which the broker is being told */
  bool inside_end;               /* rmq_producer_end_transaction is on the stack */
  bool undecided;                /* nobody decides about transactions any more */
  sim_random request_random;     /* their own */
  uint32_t request_ppm;          /* of the sends: requests */
  size_t requests;               /* that wait */
  size_t sending; /* requests whose messages may be under way, whether or not they wait */
  sim_random question_random; /* their own */
  bool inside_question;       /* one is being asked: no answer may come */
  rmq_link batches;           /* those whose messages have not all completed */
  rmq_link calls; /* flushes, questions for queues and shutdowns whose done has not come */
  uint64_t accepted, refused, acknowledged, failed, flushes, queries; /* for the summary */
} sim_workload;

/* Starts tasks and bursts. The producer is the workload's from here on. */
void sim_workload_start(sim_workload *workload, rmq_producer *producer);

/* A hook sends: a message of the next generation. */
void sim_workload_send_from_hook(sim_workload *workload, const sim_send *cause);

/* Releases what waits for calls that will never be done: after a fork. */
void sim_workload_forget_calls(sim_workload *workload);

/* Releases batches that will never be done: after a fork. */
void sim_workload_forget_batches(sim_workload *workload);

/* One send to the plain topic that has to succeed. */
void sim_workload_probe(sim_workload *workload);

/* calls.c: a flush, a question for the queues of some topic, a shutdown (sometimes twice), a fork.
 */
void sim_workload_flush(sim_workload *workload);
void sim_workload_query(sim_workload *workload);
void sim_workload_stop(sim_workload *workload, int64_t timeout_ms);
void sim_workload_fork(sim_workload *workload);

#endif

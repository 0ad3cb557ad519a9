#ifndef SIM_WORKLOAD_PRIVATE_H
#define SIM_WORKLOAD_PRIVATE_H

#include "sim/workload.h"

/* What the files share that make a user's messages. */

static inline sim_random *chance_of(sim_workload *workload) { return &workload->world->random; }

/* Texts in memory that is gone after the call: the core has to copy what it keeps. */
typedef struct sim_draft {
  rmq_message message;
  char *topic;
  char tag[SIM_TEXT];
  char keys[SIM_KEYS_MAX][SIM_TEXT];
  char number[SIM_TEXT];
  char value[SIM_TEXT];
  char broker[16];
  rmq_slice key_slices[SIM_KEYS_MAX];
  rmq_field properties[2];
} sim_draft;

void sim_draft_write(sim_draft *out, const sim_workload *workload, const sim_send *send);
/* Makes it one that is refused before anything happens. */
void sim_draft_spoil(sim_workload *workload, sim_draft *wrong);

/* A new message in the books: what it carries, and how it is sent. */
sim_send *sim_send_make(sim_workload *workload, bool from_task);
/* It is handed to the core now. */
void sim_send_start(sim_workload *workload, sim_send *send);
/* Its completion; `arg` is the send. */
void sim_send_done(void *arg, const rmq_completion *completion);

/* It has ended, and the books know: what a user does then. */
void sim_send_over(sim_workload *workload, sim_send *send, bool failed);

/* calls.c: a call whose `done` is to come. */
typedef struct sim_call {
  rmq_link link; /* in workload->calls */
  sim_workload *workload;
  int64_t started_us;
  int64_t timeout_us;
  int64_t frozen_us;
  size_t sends_before; /* a flush answers for these */
  int broker;          /* that is asked about a queue */
  int32_t queue;
  bool doubtful; /* it may fail though nothing is wrong */
} sim_call;
sim_call *sim_call_begin(sim_workload *workload, int64_t timeout_ms);
void sim_call_forget(sim_call *of);
/* The time that it had must not be over by more than a tick. */
void sim_call_end(sim_call *of, const char *what);

/* batches.c: several messages in one call. */
void sim_workload_batch(sim_workload *workload);

#endif

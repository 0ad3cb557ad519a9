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

/* batches.c: several messages in one call. */
void sim_workload_batch(sim_workload *workload);

#endif

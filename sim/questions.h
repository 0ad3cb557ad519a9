#ifndef SIM_QUESTIONS_H
#define SIM_QUESTIONS_H

#include "sim/workload.h"
#include "wire/stored.h"

/* What a user asks of brokers besides sending: offsets, recalls, new topics, messages with a key. A sixth
 * of the lives does, with a chance of its own. */

void sim_questions_start(sim_workload *workload, uint64_t seed);

/* ---- The brokers' side ---- */

/* True when the request is such a question; `fields` and `body` become what answers it then. */
typedef struct sim_answer {
  int32_t code;
  const char *name; /* of the only field; NULL: none */
  char value[64];
  rmq_buf body;
} sim_answer;
bool sim_question_answer(const sim_broker *broker, const rmq_header *request, sim_answer *answer);

#endif

#ifndef SIM_REQUESTS_H
#define SIM_REQUESTS_H

#include "sim/workload.h"

/* A user's requests: messages among its sends that wait for a reply. A sixth of the lives has them, with
 * a chance of its own. */

void sim_requests_start(sim_workload *workload, uint64_t seed);

/* Makes a new send a request, sometimes. */
void sim_request_choose(sim_workload *workload, sim_send *send);

/* Calls rmq_producer_request. */
int sim_request_start(sim_workload *workload, const rmq_message *message, sim_send *send);

/* After every event: as many wait as are said to wait. */
void sim_check_requests(sim_workload *workload, const rmq_producer_stats *stats);
/* At the end of a life: none was forgotten. */
void sim_check_requests_end(sim_workload *workload);

#endif

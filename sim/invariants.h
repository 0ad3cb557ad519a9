#ifndef SIM_INVARIANTS_H
#define SIM_INVARIANTS_H

#include "sim/workload.h"

/* What must be true whatever happens. Each check breaks the run with a sentence when it does not
 * hold. */

/* How much later than its time something may come: one tick of the wheel, the lateness of this
 * world's timer, and what the process stood still since `frozen_us` was the world's count. */
int64_t sim_tick_us(const sim_world *world, int64_t frozen_us);

/* A send ends: once, in time, with a result that the books confirm, its retries elsewhere. */
void sim_check_completion(sim_workload *workload, sim_send *send, const rmq_completion *completion);

/* What of that is true of a failure, after so many attempts; and that it is in time. */
void sim_check_failure(sim_workload *workload, const sim_send *send, const rmq_failure *failure,
                       int attempts);
void sim_check_time(sim_workload *workload, const sim_send *send);

/* A send, or the first of a batch of `n` with so many bytes, was refused at once: for a reason that
 * there is. */
void sim_check_refusal(sim_workload *workload, const sim_send *send, int status, bool spoiled,
                       size_t n, size_t bytes, const rmq_producer_stats *before);

/* After every event: the producer's counters agree with the books and keep their limits. */
void sim_check_counters(sim_workload *workload);

/* No send is under way whose time is over. Looks at all of them. */
void sim_check_deadlines(sim_workload *workload);

/* After the shutdown: nothing is left. */
void sim_check_counters_zero(sim_workload *workload);

/* At the end of a life: no socket, no lookup, no call, no send is left. */
void sim_check_end(sim_workload *workload);

/* For how long the producer avoids each broker from now on; SIM_AVOIDED_MAX numbers. */
void sim_note_avoided(const sim_workload *workload, int64_t *avoided_us);

#endif

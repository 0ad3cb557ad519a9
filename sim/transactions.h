#ifndef SIM_TRANSACTIONS_H
#define SIM_TRANSACTIONS_H

#include "sim/workload.h"

/* A user's transactions: half messages among its sends, what comes of its own part, when it says so, and
 * what it answers when a broker asks. A fifth of the lives has them, with a chance of its own. */

void sim_transactions_start(sim_workload *workload, uint64_t seed);

/* Makes a new send a half message, sometimes. */
void sim_transaction_choose(sim_workload *workload, sim_send *send);
/* A half message has completed; after the books know. */
void sim_transaction_begins(sim_workload *workload, sim_send *send,
                            const rmq_completion *completion);

/* Sometimes nobody decides anything any more before a shutdown. */
void sim_transactions_stop(sim_workload *workload);

/* How many of the first `n_sends` sends are transactions that have not ended; and how many were left
 * when the producer ended. */
size_t sim_transactions_open(const sim_ledger *ledger, size_t n_sends);
size_t sim_transactions_left(const sim_ledger *ledger);
/* True when the shutdown may have let go of those that are open. */
bool sim_transactions_are_over(const sim_workload *workload);

/* After every event: the producer counts as many as there are. */
void sim_check_transactions(sim_workload *workload, const rmq_producer_stats *stats);
/* At the end of a life. */
void sim_check_transactions_end(sim_workload *workload);

#endif

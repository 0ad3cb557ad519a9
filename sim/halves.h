#ifndef SIM_HALVES_H
#define SIM_HALVES_H

#include "sim/cluster.h"

/* The half messages that brokers keep, apart from what consumers see; and their questions about those
 * of which nobody says what is to become of them. */

/* True when a message that came says that it is a half one exactly if it is. */
bool sim_half_is_right(const sim_send *send, const rmq_send_header *header);

/* A broker keeps one, and will ask about it after a while. */
void sim_half_stored(sim_broker *broker, sim_send *send, const rmq_send_header *header,
                     rmq_slice body, sim_copy copy);

/* END_TRANSACTION has come: it must be about a half message that is here, and say what the user said.
 * False when it is not so (the run is broken then). */
bool sim_half_ends(sim_broker *broker, const rmq_header *header);

/* At the end of a life in which nothing went wrong: all brokers know what the user said. */
void sim_check_halves(const sim_cluster *cluster, const sim_send *send);

/* Releases what brokers keep of one message. */
void sim_halves_free(sim_send *send);

#endif

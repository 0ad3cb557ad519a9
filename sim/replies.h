#ifndef SIM_REPLIES_H
#define SIM_REPLIES_H

#include "sim/cluster.h"

/* Who consumes requests, and replies to most: over any broker of the cluster, as consumers do. */

/* True when a message that came says that it is a request exactly if it is, and of whom. */
bool sim_request_is_right(sim_send *send, const rmq_send_header *header);

/* A broker has stored one: somebody replies after a while. */
void sim_request_stored(sim_broker *broker, sim_send *send);

/* The text of a reply. */
void sim_reply_text(uint32_t number, char out[SIM_TEXT]);

#endif

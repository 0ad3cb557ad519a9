#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim/cluster.h"

/* A broker has stored a message of the trace topic: checks that its records are right, and notes the
 * sends that they are about. False when they are not (the run is broken then). */
bool sim_trace_stored(sim_cluster *cluster, const rmq_send_header *request, rmq_slice body);

#endif

#ifndef RMQ_WIRE_CLIENT_H
#define RMQ_WIRE_CLIENT_H

#include "wire/frame.h"

/* Requests that a client makes about itself, and the route request. All append one whole frame. */

/* HEART_BEAT with a body that names the client id and producer groups (JSON, HeartbeatData). */
void rmq_heartbeat_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                          rmq_slice client_id, const rmq_slice *groups, size_t n_groups);

/* UNREGISTER_CLIENT for a producer group. */
void rmq_unregister_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                           rmq_slice client_id, rmq_slice producer_group);

/* GET_ROUTEINFO_BY_TOPIC, asking for standard JSON. */
void rmq_route_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                              rmq_slice topic);

/* GET_MAX_OFFSET: the next offset of a queue. */
void rmq_max_offset_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                                   rmq_slice topic, int32_t queue_id);

#endif

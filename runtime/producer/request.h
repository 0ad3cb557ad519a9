#ifndef RMQ_PRODUCER_REQUEST_H
#define RMQ_PRODUCER_REQUEST_H

#include "producer/producer.h"
#include "wire/header.h"
#include "wire/reply.h"

/* Request and reply: a message that somebody answers with a message. The reply comes over a connection
 * to one of the cluster's brokers, which knows us by a heartbeat; so before the first attempt every
 * broker of the cluster gets one, those too that have nothing to do with the topic. Java greets only
 * those of the topics in use, and a reply over another one is lost. */

/* Comes once: with the reply, valid during the call, or with a failure. */
typedef void rmq_replied(void *arg, const rmq_failure *failure, const rmq_pushed_reply *reply);

/* Sends a request. As rmq_producer_send, but the body is copied, and timeout_ms is the time until the
 * reply is there. A send that fails ends it at once. `choose` and `admitted` of the options get
 * `arg`. */
int rmq_producer_request(rmq_producer *producer, const rmq_message *message,
                         const rmq_send_options *options, rmq_replied *done, void *arg);

/* ---- For the files of this room ---- */

/* A reply has come; inside of the transport's `received`. */
void rmq_producer_reply_came(rmq_producer *producer, const char *from, const rmq_header *header,
                             rmq_slice body);
void rmq_producer_fail_requests(rmq_producer *producer);
void rmq_producer_drop_requests(rmq_producer *producer);

#endif

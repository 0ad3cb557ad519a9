#ifndef RMQ_BASE_ERROR_H
#define RMQ_BASE_ERROR_H

/* What a function of the core can fail with. Functions return 0 (or a count) when all is well
 * and one of these otherwise; nothing else is negative. */
typedef enum rmq_error {
  RMQ_OK = 0,
  RMQ_EINVAL = -1,    /* an argument is wrong; nothing was done */
  RMQ_EPROTO = -2,    /* a peer sent bytes that are not what the protocol allows */
  RMQ_ELIMIT = -3,    /* a length, count or depth is over its limit */
  RMQ_ETIMEOUT = -4,  /* the time that was given is over */
  RMQ_ECONNECT = -5,  /* no connection could be made */
  RMQ_ECLOSED = -6,   /* the connection ended before the answer came */
  RMQ_ELOOKUP = -7,   /* a host name could not be resolved */
  RMQ_EROUTE = -8,    /* no name server gave a usable route */
  RMQ_ESTATE = -9,    /* not possible in the present state (not started, shut down, forked) */
  RMQ_EOVERLOAD = -10 /* too much is in flight already */
} rmq_error;

/* The name of an error, for example "RMQ_ETIMEOUT". Never NULL. */
const char *rmq_error_name(int error);

/* What an error means, in a few words, for example "timed out". Never NULL. */
const char *rmq_error_text(int error);

#endif

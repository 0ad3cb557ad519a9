#ifndef RMQ_WIRE_NAMESRV_H
#define RMQ_WIRE_NAMESRV_H

#include "base/buf.h"
#include "base/slice.h"

/* An address split in two. IPv6 addresses come in brackets; the brackets are not part of `host`. */
typedef struct rmq_host_port {
  rmq_slice host;
  int port; /* 1..65535 */
} rmq_host_port;

/* Splits "host:port" or "[v6]:port". 0, or RMQ_EINVAL with `*why` set to a static text. */
int rmq_host_port_parse(rmq_slice text, rmq_host_port *out, const char **why);

/* Takes the next address of a name server list ("a:9876;b:9876", ';' or ',', blanks around, "http://" and
 * "https://" before and a path after it stripped, empty parts skipped) off the front of `*rest`.
 * Returns 1 with `*out` pointing into the list, 0 at the end, RMQ_EINVAL with `*out` the part that is wrong
 * and `*why` the reason. */
int rmq_namesrv_next(rmq_slice *rest, rmq_slice *out, const char **why);

#endif

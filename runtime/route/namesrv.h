#ifndef RMQ_ROUTE_NAMESRV_H
#define RMQ_ROUTE_NAMESRV_H

#include "net/transport.h"
#include "wire/route.h"

/* The name servers of one producer, and questions to them. A question goes to the server that
 * answered last; when that one cannot answer, to the next, until each was asked once. */
typedef struct rmq_namesrv {
  rmq_transport *transport;
  rmq_serialize serialize;
  int64_t api_timeout_ms; /* one question to one server takes no longer */
  rmq_slice address_map;  /* of the brokers in routes, see wire/address_map.h; empty: none */
  char **addrs;           /* "host:port" */
  size_t n_addrs;
  uint64_t version; /* of the list: another number after each change */
  size_t
      current; /* the one to ask first: at the start by chance; the next one after each failure */
} rmq_namesrv;

/* `list` has passed rmq_settings_check's rules: it names at least one server. */
void rmq_namesrv_init(rmq_namesrv *servers, rmq_transport *transport, rmq_serialize serialize,
                      int64_t api_timeout_ms, const char *list);
void rmq_namesrv_close(rmq_namesrv *servers);

/* Replaces the list by one that has passed the same rules. False, and nothing is done, when it names
 * the same servers. The server in use stays the one to ask first when it is in the new list. The
 * connections to those that are not close when nothing is pending on them; a question that one of
 * them does not answer goes to the new servers. */
bool rmq_namesrv_set(rmq_namesrv *servers, const char *list);

typedef enum rmq_inquiry_status {
  RMQ_INQUIRY_FOUND,   /* here is the route */
  RMQ_INQUIRY_UNKNOWN, /* a server says that the topic has no route (TOPIC_NOT_EXIST) */
  RMQ_INQUIRY_FAILED   /* no server could say */
} rmq_inquiry_status;

/* One question, to as many servers as it takes. The caller's struct, of zeros before the first
 * use. */
typedef struct rmq_inquiry rmq_inquiry;
struct rmq_inquiry {
  rmq_request request; /* to one server */
  rmq_namesrv *servers;
  rmq_slice topic;
  rmq_mono (*until)(rmq_inquiry *inquiry);
  void (*done)(rmq_inquiry *inquiry, rmq_inquiry_status status, rmq_route_data *route);
  size_t at; /* the server that is asked now, in the list of this version */
  uint64_t version;
  char *asked;   /* its address */
  size_t tried;  /* how many have been asked, this one included */
  bool repeated; /* this one has been asked twice: a connection may have been dead, or at its end */
  bool is_second; /* another topic was asked for before in this round: notes name the topic */
  bool running;
  rmq_mono asked_at; /* this server */
  rmq_buf said;      /* "10.0.0.1:9876: connection refused; 10.0.0.2:9876: ..." */
};

/* Asks for a topic's route. `topic` must stay until done. `until` gives the time up to which
 * somebody wants the answer, whenever it matters: while other servers remain, one gets half of the
 * time left, at least 500 ms. `done` comes once, never from inside this call, the inquiry is free
 * again in it; `route` is then the receiver's to release, and NULL unless FOUND. What the servers
 * said before stays in `said` until rmq_inquiry_forget. */
void rmq_inquiry_start(rmq_inquiry *inquiry, rmq_namesrv *servers, rmq_slice topic,
                       rmq_mono (*until)(rmq_inquiry *inquiry),
                       void (*done)(rmq_inquiry *inquiry, rmq_inquiry_status status,
                                    rmq_route_data *route));

/* Gives a running question up; the server that did not answer is not asked first next time. */
void rmq_inquiry_cancel(rmq_inquiry *inquiry);

/* Empties `said`, before a new round of questions. */
void rmq_inquiry_forget(rmq_inquiry *inquiry);

/* Releases what an inquiry holds; one that runs is given up. */
void rmq_inquiry_close(rmq_inquiry *inquiry);

/* Appends what the servers said so far, the one that has not answered included. */
void rmq_inquiry_report(const rmq_inquiry *inquiry, rmq_buf *out);

#endif

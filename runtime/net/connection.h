#ifndef RMQ_NET_CONNECTION_H
#define RMQ_NET_CONNECTION_H

#include "base/buf.h"
#include "base/map.h"
#include "net/pending.h"
#include "net/transport.h"

/* Inside of the transport: one connection per address string, and what all of them share. Beside
 * it there may be older ones to the same address that are retired: no request is given to them any
 * more, and they close when the last one that they have is over.
 *
 * `done` and the other callbacks are called only while an event of rmq_io is handled (between enter
 * and leave), and may do anything to the transport, freeing it included. What makes that safe:
 * - the memory of transport and connections stays until the event has been handled;
 * - no list is walked while callbacks run: requests that have to end are moved to `doomed` and
 *   taken from its front, one after the other, so cancelling one of them or freeing the transport
 *   empties it;
 * - after a callback the state is looked at anew. */

/* Where a request is. */
enum {
  RMQ_REQUEST_FREE,    /* the caller's */
  RMQ_REQUEST_WAITING, /* in `waiting`, not encoded */
  RMQ_REQUEST_SENT,    /* in `sent` and in the table */
  RMQ_REQUEST_LEAVING, /* oneway: in `leaving` until the kernel has its last byte */
  RMQ_REQUEST_DOOMED   /* in `doomed`: its end is decided, its done comes next */
};

typedef enum rmq_connection_state {
  RMQ_CONNECTION_IDLE,       /* no socket, nothing under way */
  RMQ_CONNECTION_RESOLVING,  /* `lookup` is under way */
  RMQ_CONNECTION_CONNECTING, /* `socket` connects, or one that failed to is being closed */
  RMQ_CONNECTION_OPEN,
  RMQ_CONNECTION_CLOSING, /* close was called, its event is still to come */
  RMQ_CONNECTION_PAUSING  /* requests wait for `pause_until` before the next try */
} rmq_connection_state;

/* Room for why a connection could not be made, each address with its reason. */
#define RMQ_REASON_TEXT 320

struct rmq_connection {
  rmq_transport *transport;
  char *addr; /* as the caller names it, the key in the transport's map */
  char *host; /* without port and brackets; NULL when `addr` is no address */
  uint16_t port;
  rmq_connection_state state;
  bool retired;   /* in no map any more, and gone when it has closed */
  bool unwanted;  /* closes when nothing is pending; a new request makes it wanted again */
  rmq_link every; /* in the transport's list of all connections */
  rmq_timer
      timer;      /* of the state: give up connecting, end of the pause, quiet checks, forgetting */
  rmq_link dirty; /* in the transport's list of those that the end of the turn has to look at */
  rmq_link late;  /* in the transport's list of those to read before deadlines fire */

  /* Making the connection. */
  rmq_lookup *lookup;
  rmq_address *found; /* addresses of the host */
  size_t n_found;
  size_t tried; /* how many of them were tried */
  rmq_mono give_up_at;
  rmq_socket *socket;
  bool socket_closing; /* close was called on it */
  bool timed_out;      /* this address had its share of the time */
  int failures;        /* in a row, since the last reply */
  int go_aways;        /* how many before this one were soon told to go away, in a row */
  bool wanted;         /* the end of the turn begins it though nothing waits for it */
  rmq_mono pause_until;

  /* Requests, in the order in which they came. */
  rmq_link waiting;
  rmq_link sent;
  rmq_link leaving;
  rmq_link doomed;      /* all end with `doom` */
  rmq_link turned_away; /* hurried ones that end because of `last_failure` */
  rmq_pending pending;

  /* The open connection. */
  rmq_buf out;
  rmq_buf in;
  size_t read_size; /* how much the next read asks for */
  uint64_t written; /* bytes that kernels took since the beginning: the position in the stream */
  bool wants_write; /* want_write is on */
  bool shown;       /* a watcher looks at the last bytes of `out`: nothing may follow them yet */
  bool announcing;  /* the `connected` callback runs: its requests go before those that wait */
  bool got_reply;   /* on this socket */
  int write_error;  /* a write outside of an event failed; handled at the end of the turn */
  uint64_t number;  /* counts the sockets of the transport that stood */
  rmq_mono opened_at;
  rmq_mono read_at;    /* when the last byte came */
  bool asked;          /* something that wants an answer was encoded since */
  rmq_mono asked_at;   /* when the first of that was */
  rmq_mono traffic_at; /* when the last byte came or went */
  char remote[RMQ_ADDRESS_TEXT];

  int doom;                           /* status */
  char reason[RMQ_REASON_TEXT];       /* why the last try or connection ended, "" before */
  char last_failure[RMQ_REASON_TEXT]; /* what was counted last in `failures` or `go_aways` */
};

enum { RMQ_RECENT = 8 };

struct rmq_transport {
  rmq_transport_config config;
  rmq_transport_watch watch;
  rmq_io *io;
  const rmq_io_calls *calls;
  rmq_wheel *wheel;
  rmq_map *connections; /* those that are not retired, by address */
  rmq_link every;       /* all of them, in the order of their making */
  /* The connections used last, each in the place that the pointer to its address picks: whoever
   * sends a lot passes the same text again and again, and comparing is cheaper than hashing. */
  rmq_connection *recent[RMQ_RECENT];
  rmq_mono wake_time;   /* what wake_at was told */
  rmq_link dirty;       /* connections to look at when the turn ends */
  rmq_link flushing;    /* those that are being looked at */
  rmq_link late;        /* connections to read before deadlines fire */
  size_t expected;      /* how many wait for what peers send on their own account */
  bool turn_asked;      /* turn_ends is to be called */
  bool flush_asked;     /* end_of_turn was called */
  int depth;            /* of enter */
  bool freed;           /* rmq_transport_free was called */
  uint64_t opened;      /* sockets that stood so far */
  size_t sockets;       /* whose `closed` has not come */
  rmq_header header;    /* of the frame being handled */
  rmq_buf scratch;      /* its unescaped text */
  rmq_connection *from; /* on which the request came that `received` looks at, else NULL */
  rmq_transport_stats stats;
};

/* transport.c */

/* Around each event: memory that a callback gave up goes at the last leave. */
void rmq_transport_enter(rmq_transport *transport);
void rmq_transport_leave(rmq_transport *transport);
/* Lets the end of the turn look at a connection. */
void rmq_connection_touch(rmq_connection *connection);
/* Ends a request that is in no list any more: its done is called. `why` is never NULL. */
void rmq_request_end(rmq_request *request, int status, const rmq_header *header, rmq_slice body,
                     const char *why);
/* Takes a request out of all lists, the table and the wheel. It belongs to the caller again. */
void rmq_request_detach(rmq_request *request);

/* connect.c */

extern const rmq_io_events rmq_connection_events;

rmq_connection *rmq_connection_new(rmq_transport *transport, rmq_slice addr);
void rmq_connection_delete(rmq_connection *connection); /* without socket, lookup and requests */
/* Starts a connection, or a pause, for an idle one that has requests waiting. */
void rmq_connection_begin(rmq_connection *connection);
/* Stops whatever is under way, quietly. The state is CLOSING or IDLE afterwards. */
void rmq_connection_stop(rmq_connection *connection);
/* Counts a failure: from the second in a row on, the next try has to pause. */
void rmq_connection_count_failure(rmq_connection *connection, const char *why);
/* True when the last connection was none, or was sent away again and again, and there is no next one
 * yet: who can go elsewhere should. */
bool rmq_connection_is_doubtful(const rmq_connection *connection);
/* The peer wants no more requests on this connection (GO_AWAY): another one takes over those that
 * wait, and all that come. One that was told so soon after it was made lets its follower pause. */
void rmq_connection_replace(rmq_connection *connection);

/* connection.c */

/* The socket stands: requests may go. */
void rmq_connection_opened(rmq_connection *connection);
/* Encodes what waits and writes, as far as the socket takes it. */
void rmq_connection_pump(rmq_connection *connection);
/* Encodes a request, and writes when enough has come together. Never calls back. */
void rmq_connection_send(rmq_connection *connection, rmq_request *request);
/* True when a request may be encoded now. */
bool rmq_connection_has_room(const rmq_connection *connection);
/* Reads what is there: at most once around the buffer for `readable`, or `all` of it. */
void rmq_connection_read(rmq_connection *connection, bool all);
/* Moves all requests to `doomed`, to end with this status and reason. */
void rmq_connection_doom(rmq_connection *connection, int status, const char *why);
/* The same for those only that wait unencoded. */
void rmq_connection_doom_waiting(rmq_connection *connection, int status, const char *why);
/* Calls the done of everything that is doomed or turned away. */
void rmq_connection_settle(rmq_connection *connection);
/* Closes a connection that broke and ends all its requests. */
void rmq_connection_break(rmq_connection *connection, int status, const char *why);
/* An open one was left alone for a while: gives memory back, or closes it. */
void rmq_connection_quiet(rmq_connection *connection);

/* watch.c */

/* Shows a request, which is the bytes of `out` from `offset` on, to who watches; what they add is in
 * it afterwards. */
void rmq_connection_show_request(rmq_connection *connection, rmq_request *request, size_t offset);
/* Shows the answer that is in the transport's `header`. */
void rmq_connection_show_response(rmq_connection *connection, const rmq_request *request,
                                  rmq_slice body);

#endif

#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "base/buf.h"
#include "base/list.h"
#include "sim/world.h"

/* The network between one producer and the hosts of a simulated cluster: the socket and name
 * functions of rmq_io, and the hosts' side of the same connections. All that is made lives as long
 * as the network. */

/* What the core sees as negative codes, besides RMQ_ECLOSED. */
enum {
  SIM_EREFUSED = -101,
  SIM_ERESET = -102,
  SIM_EPIPE = -103,
  SIM_ENOFILE = -104,
  SIM_ENONAME = -105,
  SIM_EUNREACHABLE = -106
};

/* How well the way to a host works, in both directions. */
typedef struct sim_path {
  int64_t latency_us;   /* the least, one way */
  int64_t jitter_us;    /* comes on top, evenly spread */
  uint32_t slow_ppm;    /* a segment takes 20 times as long */
  uint32_t loss_ppm;    /* a segment is lost: TCP sends it again after 200 ms, 400 ms, ... */
  uint32_t reset_ppm;   /* a segment brings a reset of the connection instead */
  int64_t cut_until_us; /* a partition: nothing passes before this time */
  size_t window;        /* bytes that may be under way to the host, its unread ones included */
} sim_path;

/* What a host does with somebody who wants to connect. */
typedef enum sim_door { SIM_DOOR_OPEN, SIM_DOOR_REFUSES, SIM_DOOR_SILENT } sim_door;

typedef struct sim_host sim_host;
typedef struct rmq_socket sim_connection; /* both ends of one connection */

struct sim_host {
  sim_network *network;
  rmq_address address;
  char name[32]; /* of the machine, "broker-a.sim"; known to the resolver once sim_host_name was
                    called */
  sim_path path;
  sim_door door;
  bool reads; /* false: what arrives stays unread, and fills the window */
  /* Bytes have come: they are in connection->got, and the host takes what it can use. */
  void (*received)(void *owner, sim_connection *connection);
  void *owner;
  int fruitless;        /* connections in a row on which the core read nothing */
  int64_t opened_us;    /* when the last one began */
  rmq_link connections; /* of those that the host holds open */
};

typedef enum sim_socket_state {
  SIM_CONNECTING,
  SIM_OPEN,
  SIM_CLOSING, /* the core has called close */
  SIM_GONE     /* `closed` has been delivered */
} sim_socket_state;

struct rmq_socket {
  sim_network *network;
  sim_host *host; /* NULL: nobody has this address */
  uint16_t port;  /* that the core asked for */
  rmq_link link;  /* in host->connections */
  uint32_t id;    /* counts from 1, for the trace */

  /* The core's end. */
  const rmq_io_events *events;
  void *owner;
  sim_socket_state state;
  bool want_write;
  bool refused; /* nobody has this address, but a machine is there that says so */
  bool readable_planned, writable_planned;
  uint32_t idle_readables; /* readable events since the last read */
  int end;    /* 0; RMQ_ECLOSED: the host has ended the stream; another code: it broke */
  rmq_buf in; /* arrived, not read */

  /* The way. */
  rmq_buf up;            /* written by the core, not taken by the host */
  size_t arrived;        /* how much of `up` has arrived and is unread */
  rmq_buf down;          /* written by the host, not arrived */
  bool fin_up, fin_down; /* the end of a stream is under way */

  /* The host's end. */
  bool host_open;
  bool host_lost;  /* the host died without a word: it will reset whatever comes once it is back */
  rmq_buf got;     /* arrived and read; what one frame leaves is the next one's start */
  uint32_t frames; /* that have come whole */
  bool sent_away;  /* its host said GO_AWAY on it: a second one may take its place */
  bool registered; /* a heartbeat came, and no farewell after it */
};

sim_network *sim_network_new(sim_world *world);
void sim_network_free(sim_network *network);

/* Puts a host on an address. The host is the caller's and must live as long as the network. */
void sim_host_add(sim_network *network, sim_host *host, bool ipv6, uint8_t last_byte,
                  uint16_t port);

/* The last byte of an address, which names a host in the trace. */
int sim_host_number(const rmq_address *address);

/* Gives a host's name its address. `stale` puts one before it at which nobody is. */
void sim_host_name(sim_network *network, const sim_host *host, bool stale);
/* From now on a core that tries to connect without a pause, again and again, breaks the run. */
void sim_forbid_storms(sim_network *network);

/* How all lookups go from now on. */
typedef enum sim_name_mode { SIM_NAME_WORKS, SIM_NAME_FAILS, SIM_NAME_HANGS } sim_name_mode;
void sim_names_mode(sim_network *network, sim_name_mode mode, int64_t latency_us);

/* ---- The host's end ---- */

/* Sends bytes to the producer. */
void sim_host_write(sim_connection *connection, rmq_slice bytes);
/* Ends the connection: after what was written (a FIN), or at once with a reset. */
void sim_host_close(sim_connection *connection, bool reset);
/* All connections at once: the process is gone (the kernel sends resets), or the machine is
 * (silence). */
void sim_host_drop_all(sim_host *host, bool silently);
/* Reads on, or no more. */
void sim_host_read(sim_host *host, bool reads);

/* ---- For the invariants ---- */

size_t sim_sockets_alive(const sim_network *network); /* whose `closed` has not been delivered */
size_t sim_lookups_alive(const sim_network *network); /* neither done nor cancelled */
/* A connection to this host stands at the core's end only, and what is under way on it keeps the core from
 * writing more, so that no reset tells it. */
bool sim_host_is_lost(const sim_host *host);
uint64_t sim_sockets_opened(const sim_network *network);

/* ---- rmq_io's part ---- */

rmq_lookup *sim_lookup(rmq_io *io, const char *host,
                       void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                       void *arg);
void sim_lookup_cancel(rmq_io *io, rmq_lookup *lookup);
int sim_open(rmq_io *io, const rmq_address *address, const rmq_io_events *events, void *owner,
             rmq_socket **out);
long sim_read(rmq_socket *socket, void *into, size_t size);
long sim_write(rmq_socket *socket, const rmq_slice *parts, size_t n);
void sim_want_write(rmq_socket *socket, bool on);
void sim_close(rmq_socket *socket);
const char *sim_text(rmq_io *io, int code);

#endif

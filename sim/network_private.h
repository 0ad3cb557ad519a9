#ifndef SIM_NETWORK_PRIVATE_H
#define SIM_NETWORK_PRIVATE_H

#include "sim/network.h"

/* Shared by the files of the network: network.c (hosts and the way), socket.c (the core's end),
 * names.c. */

enum { SIM_NAMES_MAX = 16, SIM_HOSTS_MAX = 16 };

typedef struct sim_name {
  const char *name;
  rmq_address found[2];
  size_t n;
} sim_name;

struct sim_network {
  sim_world *world;
  sim_host *hosts[SIM_HOSTS_MAX];
  size_t n_hosts;
  sim_name names[SIM_NAMES_MAX];
  size_t n_names;
  sim_name_mode name_mode;
  int64_t name_latency_us;
  bool no_storms;       /* see sim_forbid_storms */
  rmq_socket **sockets; /* all there ever were, in the order of their making */
  size_t n_sockets, sockets_cap;
  rmq_lookup **lookups;
  size_t n_lookups, lookups_cap;
};

sim_host *sim_host_find(sim_network *network, const rmq_address *address);
/* True when a host that is up has this IP, whatever its port. */
bool sim_machine_is_up(const sim_network *network, const rmq_address *address);

/* How long a segment takes over the way to a host (or to nowhere). Never negative. */
int64_t sim_way_us(sim_network *network, const sim_host *host);

/* Sends what sim_write has put at the end of `up`, or the end of the stream, on its way. */
void sim_way_up(rmq_socket *socket, size_t len);
void sim_way_fin_up(rmq_socket *socket);

/* The connection breaks for the core's end: a reset has come. */
void sim_socket_broken(rmq_socket *socket, int code);
/* Something to read has come. */
void sim_socket_readable(rmq_socket *socket);
/* There is room in the window again. */
void sim_socket_writable(rmq_socket *socket);

#endif

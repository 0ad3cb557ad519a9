#include "sim/network.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sim/network_private.h"

enum {
  RETRANSMIT_US = 200000,
  PIECES_MAX = 3 /* segments that one write is cut into */
};

sim_network *sim_network_new(sim_world *world) {
  sim_network *network = rmq_alloc_zero(1, sizeof *network);
  network->world = world;
  network->name_latency_us = 1000;
  return network;
}

static void free_buffers(rmq_socket *socket) {
  rmq_buf_free(&socket->in);
  rmq_buf_free(&socket->up);
  rmq_buf_free(&socket->down);
  rmq_buf_free(&socket->got);
}

void sim_network_free(sim_network *network) {
  for (size_t i = 0; i < network->n_sockets; i++) {
    free_buffers(network->sockets[i]);
    free(network->sockets[i]);
  }
  for (size_t i = 0; i < network->n_lookups; i++) free(network->lookups[i]);
  free(network->sockets);
  free(network->lookups);
  free(network);
}

void sim_host_add(sim_network *network, sim_host *host, bool ipv6, uint8_t last_byte,
                  uint16_t port) {
  host->network = network;
  host->address = (rmq_address){.ip = {10, 0, 0, last_byte}, .ip_len = 4, .port = port};
  if (ipv6)
    host->address = (rmq_address){.ip = {0xfd, [15] = last_byte}, .ip_len = 16, .port = port};
  host->reads = true;
  rmq_link_init(&host->connections);
  network->hosts[network->n_hosts++] = host;
}

sim_host *sim_host_find(sim_network *network, const rmq_address *address) {
  for (size_t i = 0; i < network->n_hosts; i++) {
    const rmq_address *at = &network->hosts[i]->address;
    if (at->port == address->port && at->ip_len == address->ip_len &&
        memcmp(at->ip, address->ip, (size_t)at->ip_len) == 0) {
      return network->hosts[i];
    }
  }
  return NULL;
}

bool sim_machine_is_up(const sim_network *network, const rmq_address *address) {
  for (size_t i = 0; i < network->n_hosts; i++) {
    const sim_host *host = network->hosts[i];
    if (host->door == SIM_DOOR_SILENT || host->path.cut_until_us > network->world->now_us) continue;
    if (host->address.ip_len == address->ip_len &&
        memcmp(host->address.ip, address->ip, (size_t)address->ip_len) == 0) {
      return true;
    }
  }
  return false;
}

int sim_host_number(const rmq_address *address) { return address->ip[address->ip_len - 1]; }

/* ---- The way ---- */

static bool is_cut(const sim_network *network, const sim_host *host) {
  return host->path.cut_until_us > network->world->now_us;
}

int64_t sim_way_us(sim_network *network, const sim_host *host) {
  sim_random *random = &network->world->random;
  const sim_path *path = &host->path;
  int64_t us = path->latency_us;
  if (path->jitter_us > 0) us += sim_random_between(random, 0, path->jitter_us);
  if (sim_random_chance(random, path->slow_ppm)) us *= 20;
  for (int64_t again = RETRANSMIT_US; sim_random_chance(random, path->loss_ppm); again *= 2) {
    us += again;
    if (again > 8 * RETRANSMIT_US) break;
  }
  if (is_cut(network, host)) us += path->cut_until_us - network->world->now_us;
  return us;
}

/* Cuts `len` bytes into segments and plans their arrivals. Which event comes first does not matter:
 * each one moves the bytes that are next in the stream. */
static void plan_segments(rmq_socket *socket, size_t len, void (*arrive)(void *, uint64_t)) {
  sim_world *world = socket->network->world;
  for (int piece = 1; len > 0; piece++) {
    size_t part = len;
    if (!world->exact && piece < PIECES_MAX && sim_random_chance(&world->random, 300000)) {
      part = (size_t)sim_random_between(&world->random, 1, (int64_t)len);
    }
    sim_plan(world, sim_way_us(socket->network, socket->host), arrive, socket, part);
    len -= part;
  }
}

/* A reset passes: both ends learn of it. True when it happened. */
static bool is_reset_on_the_way(rmq_socket *socket) {
  sim_world *world = socket->network->world;
  if (!sim_random_chance(&world->random, socket->host->path.reset_ppm)) return false;
  sim_host_close(socket, true);
  return true;
}

/* ---- To the host ---- */

static void take_arrived(rmq_socket *socket) {
  rmq_buf_bytes(&socket->got, rmq_buf_head(&socket->up), socket->arrived);
  rmq_buf_consume(&socket->up, socket->arrived);
  socket->arrived = 0;
  sim_socket_writable(socket);
  socket->host->received(socket->host->owner, socket);
}

static void send_reset(void *arg, uint64_t data) {
  (void)data;
  sim_socket_broken(arg, SIM_ERESET);
}

static void arrive_up(void *arg, uint64_t len) {
  rmq_socket *socket = arg;
  sim_host *host = socket->host;
  if (rmq_buf_len(&socket->up) == socket->arrived) return;
  if (is_cut(socket->network, host)) {
    sim_plan(socket->network->world, sim_way_us(socket->network, host), arrive_up, socket, len);
    return;
  }
  if (!socket->host_open) {
    /* Nobody holds this connection any more; a machine that is up says so. */
    rmq_buf_clear(&socket->up);
    bool answers = !socket->host_lost || host->door != SIM_DOOR_SILENT;
    if (answers)
      sim_plan(socket->network->world, sim_way_us(socket->network, host), send_reset, socket, 0);
    return;
  }
  if (is_reset_on_the_way(socket)) return;
  size_t left = rmq_buf_len(&socket->up) - socket->arrived;
  socket->arrived += (size_t)len < left ? (size_t)len : left;
  if (host->reads) take_arrived(socket);
}

void sim_way_up(rmq_socket *socket, size_t len) { plan_segments(socket, len, arrive_up); }

static void arrive_fin_up(void *arg, uint64_t data) {
  rmq_socket *socket = arg;
  if (!socket->host_open) return;
  if (rmq_buf_len(&socket->up) > 0 || is_cut(socket->network, socket->host)) {
    /* The end comes after all bytes; a host that does not read sees it later, or never. */
    int64_t again_us = sim_way_us(socket->network, socket->host) + 100;
    if (data < 10000) sim_plan(socket->network->world, again_us, arrive_fin_up, socket, data + 1);
    return;
  }
  sim_note(socket->network->world, "host sees end", socket->id, 0);
  socket->host_open = false;
  rmq_link_remove(&socket->link);
}

void sim_way_fin_up(rmq_socket *socket) {
  if (!socket->host || !socket->host_open || socket->fin_up) return;
  socket->fin_up = true;
  sim_plan(socket->network->world, sim_way_us(socket->network, socket->host), arrive_fin_up, socket,
           0);
}

void sim_host_read(sim_host *host, bool reads) {
  host->reads = reads;
  if (!reads) return;
  rmq_link *next;
  for (rmq_link *at = host->connections.next; at != &host->connections; at = next) {
    rmq_socket *socket = rmq_link_owner(at, rmq_socket, link);
    next = at->next;
    if (socket->arrived > 0) take_arrived(socket);
    /* What the host does with the bytes may end connections: start again when this one's place is
     * lost. */
    if (rmq_link_alone(at)) next = host->connections.next;
  }
}

/* ---- To the producer ---- */

static void arrive_down(void *arg, uint64_t len) {
  rmq_socket *socket = arg;
  size_t left = rmq_buf_len(&socket->down);
  if (left == 0 || socket->end != 0) return;
  if (is_cut(socket->network, socket->host)) {
    sim_plan(socket->network->world, sim_way_us(socket->network, socket->host), arrive_down, socket,
             len);
    return;
  }
  if (socket->host_open && is_reset_on_the_way(socket)) return;
  size_t part = (size_t)len < left ? (size_t)len : left;
  if (socket->state == SIM_OPEN) rmq_buf_bytes(&socket->in, rmq_buf_head(&socket->down), part);
  rmq_buf_consume(&socket->down, part);
  sim_socket_readable(socket);
}

void sim_host_write(sim_connection *connection, rmq_slice bytes) {
  if (!connection->host_open || connection->fin_down || bytes.len == 0) return;
  rmq_buf_bytes(&connection->down, bytes.ptr, bytes.len);
  plan_segments(connection, bytes.len, arrive_down);
}

static void arrive_fin_down(void *arg, uint64_t data) {
  rmq_socket *socket = arg;
  if (socket->end != 0) return;
  if (rmq_buf_len(&socket->down) > 0 || is_cut(socket->network, socket->host)) {
    sim_plan(socket->network->world, sim_way_us(socket->network, socket->host) + 100,
             arrive_fin_down, socket, data);
    return;
  }
  socket->end = RMQ_ECLOSED;
  sim_socket_readable(socket);
}

void sim_host_close(sim_connection *connection, bool reset) {
  if (!connection->host_open) return;
  sim_world *world = connection->network->world;
  sim_note(world, reset ? "host resets" : "host closes", connection->id, 0);
  int64_t way_us = sim_way_us(connection->network, connection->host);
  connection->host_open = false;
  rmq_link_remove(&connection->link);
  rmq_buf_clear(&connection->up);
  connection->arrived = 0;
  if (reset) {
    rmq_buf_clear(&connection->down);
    sim_plan(world, way_us, send_reset, connection, 0);
  } else {
    connection->fin_down = true;
    sim_plan(world, way_us, arrive_fin_down, connection, 0);
  }
}

void sim_host_drop_all(sim_host *host, bool silently) {
  while (!rmq_link_alone(&host->connections)) {
    rmq_socket *socket = rmq_link_owner(host->connections.next, rmq_socket, link);
    if (!silently) {
      sim_host_close(socket, sim_random_chance(&host->network->world->random, 500000));
      continue;
    }
    socket->host_open = false;
    socket->host_lost = true;
    rmq_link_remove(&socket->link);
    rmq_buf_clear(&socket->got);
  }
}

/* ---- For the invariants ---- */

size_t sim_sockets_alive(const sim_network *network) {
  size_t n = 0;
  for (size_t i = 0; i < network->n_sockets; i++) n += network->sockets[i]->state != SIM_GONE;
  return n;
}

bool sim_host_is_lost(const sim_host *host) {
  const sim_network *network = host->network;
  for (size_t i = 0; i < network->n_sockets; i++) {
    const rmq_socket *socket = network->sockets[i];
    bool stands = socket->host == host && socket->state == SIM_OPEN && socket->end == 0;
    if (stands && !socket->host_open && rmq_buf_len(&socket->up) > 0) return true;
  }
  return false;
}

uint64_t sim_sockets_opened(const sim_network *network) { return network->n_sockets; }

/* The core's end of a connection: the socket functions of rmq_io. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sim/network_private.h"

enum {
  /* What Linux does when nobody answers: again after 1 s, 2 s, 4 s ..., and up after 127 s. */
  SYN_AGAIN_US = 1000000,
  SYN_TRIES = 7,
  IDLE_READABLES_MAX = 1000
};

static sim_world *world_of(const rmq_socket *socket) { return socket->network->world; }

/* ---- Events ---- */

static void fire_closed(void *arg, uint64_t reason) {
  rmq_socket *socket = arg;
  if (socket->state == SIM_GONE) return;
  if (sim_is_frozen(world_of(socket), fire_closed, socket, reason)) return;
  if (socket->state == SIM_CLOSING) reason = 0; /* close was called in the meantime */
  sim_note(world_of(socket), "closed", socket->id, -(int64_t)reason);
  socket->state = SIM_GONE;
  socket->events->closed(socket->owner, -(int)reason);
}

static void fail(rmq_socket *socket, int code) {
  sim_note(world_of(socket), "connect fails", socket->id, code);
  fire_closed(socket, (uint64_t)-code);
}

static void stand(rmq_socket *socket, sim_host *host) {
  sim_note(world_of(socket), "connected", socket->id, 0);
  socket->state = SIM_OPEN;
  socket->host_open = true;
  rmq_link_append(&host->connections, &socket->link);
  socket->events->connected(socket->owner);
}

/* The SYN of a connection attempt has come, or has come to nothing. */
static void fire_answer(void *arg, uint64_t tries) {
  rmq_socket *socket = arg;
  sim_host *host = socket->host;
  sim_world *world = world_of(socket);
  if (socket->state != SIM_CONNECTING) return;
  if (sim_is_frozen(world, fire_answer, socket, tries)) return;
  bool reached = host && host->path.cut_until_us <= world->now_us;
  if (socket->refused || (reached && host->door == SIM_DOOR_REFUSES)) {
    fail(socket, SIM_EREFUSED);
  } else if (reached && host->door == SIM_DOOR_OPEN) {
    stand(socket, host);
  } else if (tries < SYN_TRIES) {
    sim_plan(world, SYN_AGAIN_US << tries, fire_answer, socket, tries + 1);
  } else {
    fail(socket, SIM_EUNREACHABLE);
  }
}

static void fire_readable(void *arg, uint64_t data) {
  rmq_socket *socket = arg;
  if (sim_is_frozen(world_of(socket), fire_readable, socket, data)) return;
  socket->readable_planned = false;
  if (socket->state != SIM_OPEN || (rmq_buf_len(&socket->in) == 0 && !socket->end)) return;
  sim_note(world_of(socket), "readable", socket->id, (int64_t)rmq_buf_len(&socket->in));
  if (++socket->idle_readables > IDLE_READABLES_MAX) {
    sim_break(world_of(socket), "socket %u is readable and the core does not read it", socket->id);
    return;
  }
  socket->events->readable(socket->owner);
  sim_socket_readable(socket);
}

void sim_socket_readable(rmq_socket *socket) {
  if (socket->readable_planned || socket->state != SIM_OPEN) return;
  if (rmq_buf_len(&socket->in) == 0 && !socket->end) return;
  socket->readable_planned = true;
  int64_t after_us = socket->idle_readables || !world_of(socket)->exact
                         ? sim_random_between(&world_of(socket)->random, 0, 5)
                         : 0;
  sim_plan(world_of(socket), after_us, fire_readable, socket, 0);
}

static size_t room_in(const rmq_socket *socket) {
  size_t used = rmq_buf_len(&socket->up);
  return used < socket->host->path.window ? socket->host->path.window - used : 0;
}

static void fire_writable(void *arg, uint64_t data) {
  rmq_socket *socket = arg;
  if (sim_is_frozen(world_of(socket), fire_writable, socket, data)) return;
  socket->writable_planned = false;
  if (socket->state != SIM_OPEN || !socket->want_write) return;
  if (room_in(socket) == 0 && !socket->end) return;
  sim_note(world_of(socket), "writable", socket->id, (int64_t)room_in(socket));
  socket->events->writable(socket->owner);
  sim_socket_writable(socket);
}

void sim_socket_writable(rmq_socket *socket) {
  if (socket->writable_planned || socket->state != SIM_OPEN || !socket->want_write) return;
  if (room_in(socket) == 0 && !socket->end) return;
  socket->writable_planned = true;
  sim_plan(world_of(socket), sim_random_between(&world_of(socket)->random, 0, 5), fire_writable,
           socket, 0);
}

void sim_socket_broken(rmq_socket *socket, int code) {
  if (socket->end != 0 && socket->end != RMQ_ECLOSED) return;
  socket->end = code;
  /* A kernel gives what had come before the reset, or throws it away. */
  if (sim_random_chance(&world_of(socket)->random, 500000)) rmq_buf_clear(&socket->in);
  sim_socket_readable(socket);
  sim_socket_writable(socket);
}

/* ---- rmq_io ---- */

void sim_forbid_storms(sim_network *network) { network->no_storms = true; }

/* After some connections in a row that brought nothing the next one to this address waits a while. (One
 * that a broker has left counts by itself: who asked about a half message there is told there.) */
static void check_pause(sim_network *network, sim_host *host, uint16_t port) {
  enum { FAILURES = 6, PAUSE_US = 500000 };
  if (port != host->address.port) return;
  int64_t since_us = network->world->now_us - host->opened_us;
  host->opened_us = network->world->now_us;
  host->fruitless++;
  if (network->no_storms && host->fruitless >= FAILURES && since_us < PAUSE_US) {
    sim_break(network->world,
              "after %d connections that brought nothing the core connects again after %lld us",
              host->fruitless, (long long)since_us);
  }
}

/* One connection for an address at a time. A second one stands beside it for a while when a route
 * names the same host by another address: the first one waits for its last answers. (Those to other
 * ports are left of a broker that has moved, and wait for theirs.) */
static void check_alone(const sim_network *network, const sim_host *host, uint16_t port) {
  int left = 0;
  for (size_t i = 0; i < network->n_sockets; i++) {
    const rmq_socket *other = network->sockets[i];
    if (other->host != host || other->port != port) continue;
    if (other->state == SIM_CLOSING || other->state == SIM_GONE) continue;
    if (other->sent_away || left++ == 0) continue;
    sim_break(network->world, "a third connection to a host is opened, beside socket %u",
              other->id);
  }
}

static void keep_socket(sim_network *network, rmq_socket *socket) {
  if (network->n_sockets == network->sockets_cap) {
    network->sockets_cap = network->sockets_cap ? 2 * network->sockets_cap : 16;
    network->sockets =
        rmq_realloc(network->sockets, network->sockets_cap * sizeof *network->sockets);
  }
  network->sockets[network->n_sockets++] = socket;
  socket->id = (uint32_t)network->n_sockets;
}

int sim_open(rmq_io *io, const rmq_address *address, const rmq_io_events *events, void *owner,
             rmq_socket **out) {
  sim_world *world = (sim_world *)(void *)io;
  if (world->sealed) sim_break(world, "a connection is opened after the shutdown was complete");
  if (sim_random_chance(&world->random, world->open_fail_ppm)) {
    sim_note(world, "open fails", SIM_ENOFILE, 0);
    return SIM_ENOFILE;
  }
  rmq_socket *socket = rmq_alloc_zero(1, sizeof *socket);
  socket->network = world->network;
  socket->host = sim_host_find(world->network, address);
  socket->refused = !socket->host && sim_machine_is_up(world->network, address);
  socket->port = address->port;
  socket->events = events;
  socket->owner = owner;
  rmq_link_init(&socket->link);
  if (socket->host) {
    check_alone(world->network, socket->host, address->port);
    check_pause(world->network, socket->host, address->port);
  }
  keep_socket(world->network, socket);
  sim_note(world, "open", socket->id, sim_host_number(address));
  int64_t after_us = 1000;
  if (socket->host) {
    after_us = sim_way_us(world->network, socket->host) + sim_way_us(world->network, socket->host);
  }
  sim_plan(world, after_us, fire_answer, socket, 0);
  *out = socket;
  return 0;
}

/* The core may use a socket between `connected` and its own close only. */
static bool is_misused(const rmq_socket *socket, const char *call) {
  if (socket->state == SIM_OPEN) return false;
  sim_break(world_of(socket), "%s on socket %u, which is %s", call, socket->id,
            socket->state == SIM_CONNECTING ? "not connected" : "closed already");
  return true;
}

long sim_read(rmq_socket *socket, void *into, size_t size) {
  sim_world *world = world_of(socket);
  if (is_misused(socket, "read")) return SIM_EPIPE;
  socket->idle_readables = 0;
  size_t len = rmq_buf_len(&socket->in);
  if (len > 0) socket->host->fruitless = 0;
  if (len == 0) return socket->end;
  if (size == 0) {
    sim_break(world, "read of no bytes on socket %u", socket->id);
    return 0;
  }
  if (len > size) len = size;
  if (!world->exact && len > 1 && sim_random_chance(&world->random, 250000)) {
    len = (size_t)sim_random_spread(&world->random, 1, (int64_t)len);
  }
  memcpy(into, rmq_buf_head(&socket->in), len);
  rmq_buf_consume(&socket->in, len);
  sim_note(world, "read", socket->id, (int64_t)len);
  return (long)len;
}

/* How much of `total` bytes the socket takes now. */
static size_t bytes_taken(rmq_socket *socket, size_t total) {
  sim_world *world = world_of(socket);
  size_t room = room_in(socket);
  if (total > room) return room;
  if (world->exact || total == 0) return total;
  if (sim_random_chance(&world->random, 20000)) return 0;
  if (!sim_random_chance(&world->random, 100000)) return total;
  return (size_t)sim_random_spread(&world->random, 1, (int64_t)total);
}

static void append_parts(rmq_buf *up, const rmq_slice *parts, size_t n, size_t take) {
  for (size_t i = 0; i < n && take > 0; i++) {
    size_t len = parts[i].len < take ? parts[i].len : take;
    if (len > 0) rmq_buf_bytes(up, parts[i].ptr, len);
    take -= len;
  }
}

long sim_write(rmq_socket *socket, const rmq_slice *parts, size_t n) {
  sim_world *world = world_of(socket);
  if (world->sealed) sim_break(world, "bytes are written after the shutdown was complete");
  if (is_misused(socket, "write")) return SIM_EPIPE;
  if (socket->end != 0 && socket->end != RMQ_ECLOSED) return socket->end;
  size_t total = 0;
  for (size_t i = 0; i < n; i++) total += parts[i].len;
  size_t take = bytes_taken(socket, total);
  append_parts(&socket->up, parts, n, take);
  sim_note(world, "write", socket->id, (int64_t)take);
  sim_way_up(socket, take);
  return (long)take;
}

void sim_want_write(rmq_socket *socket, bool on) {
  if (is_misused(socket, "want_write")) return;
  socket->want_write = on;
  sim_socket_writable(socket);
}

void sim_close(rmq_socket *socket) {
  sim_world *world = world_of(socket);
  if (socket->state == SIM_CLOSING || socket->state == SIM_GONE) {
    sim_break(world, "close on socket %u, which is closed already", socket->id);
    return;
  }
  sim_note(world, "close", socket->id, 0);
  socket->state = SIM_CLOSING;
  rmq_buf_clear(&socket->in);
  sim_way_fin_up(socket);
  sim_plan(world, sim_random_between(&world->random, 0, 50), fire_closed, socket, 0);
}

const char *sim_text(rmq_io *io, int code) {
  (void)io;
  switch (code) {
    case SIM_EREFUSED:
      return "connection refused";
    case SIM_ERESET:
      return "connection reset by peer";
    case SIM_EPIPE:
      return "broken pipe";
    case SIM_ENOFILE:
      return "too many open files";
    case SIM_ENONAME:
      return "name not known";
    case SIM_EUNREACHABLE:
      return "connection timed out";
    default:
      return rmq_error_text(code);
  }
}

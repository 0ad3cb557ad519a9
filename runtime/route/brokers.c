#include "route/brokers.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/codes.h"

void rmq_brokers_init(rmq_brokers *brokers, rmq_transport *transport) {
  rmq_io *io = rmq_transport_io(transport);
  brokers->transport = transport;
  brokers->by_name = rmq_map_new(io->calls->random(io));
  brokers->by_master = rmq_map_new(io->calls->random(io));
}

static void quiet(rmq_broker *broker) {
  if (broker->busy) rmq_transport_cancel(broker->brokers->transport, &broker->request);
  broker->busy = false;
}

void rmq_brokers_quiet(rmq_brokers *brokers) {
  rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(brokers->by_name, &at, NULL)) != NULL;) quiet(broker);
}

static void free_broker(rmq_broker *broker) {
  free(broker->name);
  free(broker->master);
  free(broker->advertised);
  free(broker);
}

void rmq_brokers_close(rmq_brokers *brokers) {
  rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(brokers->by_name, &at, NULL)) != NULL;) {
    free_broker(broker);
  }
  rmq_map_free(brokers->by_name);
  rmq_map_free(brokers->by_master);
  brokers->by_name = brokers->by_master = NULL;
}

rmq_broker *rmq_brokers_find(const rmq_brokers *brokers, rmq_slice name) {
  return rmq_map_get(brokers->by_name, name);
}

const char *rmq_brokers_master(const rmq_brokers *brokers, rmq_slice name) {
  const rmq_broker *broker = rmq_map_get(brokers->by_name, name);
  return broker ? broker->master : NULL;
}

const char *rmq_brokers_advertised(const rmq_brokers *brokers, rmq_slice name) {
  const rmq_broker *broker = rmq_map_get(brokers->by_name, name);
  return broker ? broker->advertised : NULL;
}

/* Counts one more broker, or one less, at an address. Returns how many there are then. */
static uintptr_t count_at(rmq_brokers *brokers, const char *addr, int change) {
  rmq_slice key = rmq_slice_text(addr);
  uintptr_t n = (uintptr_t)rmq_map_get(brokers->by_master, key) + (uintptr_t)change;
  if (n == 0) {
    rmq_map_remove(brokers->by_master, key);
  } else {
    rmq_map_set(brokers->by_master, key, (void *)n);
  }
  return n;
}

static void set_master(rmq_broker *broker, rmq_slice master) {
  broker->master = rmq_copy_text(master.ptr, master.len);
  count_at(broker->brokers, broker->master, 1);
}

static void set_advertised(rmq_broker *broker, rmq_slice advertised) {
  free(broker->advertised);
  broker->advertised = advertised.len ? rmq_copy_text(advertised.ptr, advertised.len) : NULL;
}

/* A connection that no broker needs any more closes when nothing is pending on it. What it has not
 * sent fails, and is tried elsewhere. */
static void leave_address(rmq_brokers *brokers, char *addr) {
  if (count_at(brokers, addr, -1) == 0) rmq_transport_retire(brokers->transport, addr);
  free(addr);
}

static rmq_broker *make_broker(rmq_brokers *brokers, rmq_slice name, rmq_slice master) {
  rmq_broker *broker = rmq_alloc_zero(1, sizeof *broker);
  broker->brokers = brokers;
  broker->name = rmq_copy_text(name.ptr, name.len);
  set_master(broker, master);
  rmq_map_set(brokers->by_name, name, broker);
  return broker;
}

bool rmq_brokers_add(rmq_brokers *brokers, const rmq_route_data *route) {
  bool moved = false;
  for (size_t i = 0; i < route->n_brokers; i++) {
    rmq_slice name = route->brokers[i].broker_name;
    rmq_slice master = rmq_broker_data_addr(&route->brokers[i], RMQ_MASTER_ID);
    if (master.len == 0) continue;
    rmq_broker *broker = rmq_map_get(brokers->by_name, name);
    if (!broker) {
      broker = make_broker(brokers, name, master);
    } else if (!rmq_slice_is(master, broker->master)) {
      char *old = broker->master;
      set_master(broker, master);
      leave_address(brokers, old);
      moved = true;
    }
    set_advertised(broker, rmq_broker_data_advertised(&route->brokers[i], RMQ_MASTER_ID));
    broker->routes++;
  }
  return moved;
}

void rmq_brokers_remove(rmq_brokers *brokers, const rmq_route_data *route) {
  for (size_t i = 0; i < route->n_brokers; i++) {
    if (rmq_broker_data_addr(&route->brokers[i], RMQ_MASTER_ID).len == 0) continue;
    rmq_broker *broker = rmq_map_get(brokers->by_name, route->brokers[i].broker_name);
    if (!broker || --broker->routes > 0) continue;
    rmq_map_remove(brokers->by_name, route->brokers[i].broker_name);
    char *addr = rmq_copy_text(broker->master, strlen(broker->master));
    quiet(broker);
    free_broker(broker);
    leave_address(brokers, addr);
  }
}

/* Host names: the lookup functions of rmq_io. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/network_private.h"

struct rmq_lookup {
  sim_network *network;
  char name[64];
  void (*done)(void *arg, int status, const rmq_address *found, size_t n);
  void *arg;
  bool over; /* done has been called, or must not be any more */
};

void sim_host_name(sim_network *network, const sim_host *host, bool stale) {
  sim_name *entry = NULL;
  for (size_t i = 0; i < network->n_names && !entry; i++) {
    if (strcmp(network->names[i].name, host->name) == 0) entry = &network->names[i];
  }
  if (!entry) entry = &network->names[network->n_names++];
  entry->name = host->name;
  entry->n = 0;
  if (stale) entry->found[entry->n++] = (rmq_address){.ip = {10, 0, 0, 250}, .ip_len = 4};
  entry->found[entry->n] = host->address;
  entry->found[entry->n++].port = 0;
}

void sim_names_mode(sim_network *network, sim_name_mode mode, int64_t latency_us) {
  network->name_mode = mode;
  network->name_latency_us = latency_us;
}

static void fire_found(void *arg, uint64_t data) {
  rmq_lookup *lookup = arg;
  sim_network *network = lookup->network;
  if (lookup->over || sim_is_frozen(network->world, fire_found, lookup, data)) return;
  if (network->name_mode == SIM_NAME_HANGS) {
    sim_plan(network->world, 1000000, fire_found, lookup, 0);
    return;
  }
  lookup->over = true;
  const sim_name *entry = NULL;
  for (size_t i = 0; i < network->n_names && network->name_mode == SIM_NAME_WORKS; i++) {
    if (strcmp(network->names[i].name, lookup->name) == 0) entry = &network->names[i];
  }
  sim_note(network->world, "looked up", entry ? (int64_t)entry->n : 0, 0);
  if (entry && entry->n > 0) {
    lookup->done(lookup->arg, 0, entry->found, entry->n);
  } else {
    lookup->done(lookup->arg, SIM_ENONAME, NULL, 0);
  }
}

rmq_lookup *sim_lookup(rmq_io *io, const char *host,
                       void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                       void *arg) {
  sim_world *world = (sim_world *)(void *)io;
  sim_network *network = world->network;
  if (world->sealed) sim_break(world, "a name is looked up after the shutdown was complete");
  rmq_lookup *lookup = rmq_alloc_zero(1, sizeof *lookup);
  lookup->network = network;
  snprintf(lookup->name, sizeof lookup->name, "%s", host);
  lookup->done = done;
  lookup->arg = arg;
  if (network->n_lookups == network->lookups_cap) {
    network->lookups_cap = network->lookups_cap ? 2 * network->lookups_cap : 16;
    network->lookups =
        rmq_realloc(network->lookups, network->lookups_cap * sizeof *network->lookups);
  }
  network->lookups[network->n_lookups++] = lookup;
  sim_note(world, "lookup", (int64_t)network->n_lookups, 0);
  sim_plan(world, sim_random_between(&world->random, 1, network->name_latency_us), fire_found,
           lookup, 0);
  return lookup;
}

void sim_lookup_cancel(rmq_io *io, rmq_lookup *lookup) {
  sim_world *world = (sim_world *)(void *)io;
  if (lookup->over) sim_break(world, "a lookup is cancelled that is over");
  lookup->over = true;
  sim_note(world, "lookup cancelled", 0, 0);
}

size_t sim_lookups_alive(const sim_network *network) {
  size_t n = 0;
  for (size_t i = 0; i < network->n_lookups; i++) n += !network->lookups[i]->over;
  return n;
}

#include "route/routes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "route/routes_private.h"

enum {
  /* A topic that was not used for so many refreshes is forgotten. */
  IDLE_ROUNDS = 10,
  /* So many refreshes of a round are under way at a time: a million topics must not be asked for at
   * once. */
  REFRESHES_AT_A_TIME = 32,
  /* Rounds are at least this far apart: name servers that say something else each time would make
   * the topics ask for each other without end. */
  ROUND_GAP_MS = 1000
};

static rmq_routes *routes_of_poll(rmq_timer *timer) {
  return rmq_link_owner(timer, rmq_routes, poll);
}

static void set_poll(rmq_routes *routes) {
  rmq_transport *transport = routes->config.transport;
  rmq_transport_timer(
      transport, &routes->poll,
      rmq_mono_add_ms(rmq_transport_now(transport), routes->config.poll_interval_ms));
}

static bool is_forgotten(const rmq_topic *topic, rmq_mono now) {
  if (topic->users > 0 || topic->inquiry.running) return false;
  return rmq_mono_diff_ms(now, topic->used_at) >=
         topic->routes->config.poll_interval_ms * IDLE_ROUNDS;
}

static void poll_due(rmq_timer *timer) {
  rmq_routes *routes = routes_of_poll(timer);
  rmq_mono now = rmq_transport_now(routes->config.transport);
  rmq_topic *topic;
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    if (is_forgotten(topic, now)) rmq_topic_drop(topic);
  }
  set_poll(routes);
  rmq_routes_refresh_all(routes, NULL);
}

void rmq_routes_refresh_all(rmq_routes *routes, const rmq_topic *except) {
  rmq_topic *topic;
  routes->round_at = rmq_transport_now(routes->config.transport);
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    bool wanted = topic->publish && topic != except;
    if (wanted && rmq_link_alone(&topic->due)) rmq_link_append(&routes->due, &topic->due);
  }
  rmq_routes_pump(routes);
}

void rmq_routes_moved(rmq_routes *routes, const rmq_topic *topic) {
  rmq_transport *transport = routes->config.transport;
  rmq_mono soonest = rmq_mono_add_ms(routes->round_at, ROUND_GAP_MS);
  if (routes->round_at.us == 0 || !rmq_mono_before(rmq_transport_now(transport), soonest)) {
    rmq_routes_refresh_all(routes, topic);
  } else if (!routes->stopped && rmq_mono_before(soonest, routes->poll.at)) {
    rmq_transport_timer(transport, &routes->poll, soonest);
  }
}

void rmq_routes_pump(rmq_routes *routes) {
  if (routes->stopped) return;
  while (routes->refreshing < REFRESHES_AT_A_TIME && !rmq_link_alone(&routes->due)) {
    rmq_topic *topic = rmq_link_owner(routes->due.next, rmq_topic, due);
    rmq_link_remove(&topic->due);
    if (topic->inquiry.running) continue;
    topic->in_round = true;
    routes->refreshing++;
    rmq_topic_ask_again(topic);
  }
}

static void init_heartbeat(rmq_routes *routes) {
  const rmq_routes_config *config = &routes->config;
  routes->heartbeat = (rmq_heartbeat){.brokers = &routes->brokers,
                                      .log = config->log,
                                      .serialize = config->serialize,
                                      .client_id = rmq_slice_text(config->client_id),
                                      .group = rmq_slice_text(config->group),
                                      .interval_ms = config->heartbeat_interval_ms,
                                      .api_timeout_ms = config->api_timeout_ms};
  rmq_heartbeat_start(&routes->heartbeat);
}

rmq_routes *rmq_routes_new(const rmq_routes_config *config) {
  rmq_routes *routes = rmq_alloc_zero(1, sizeof *routes);
  rmq_io *io = rmq_transport_io(config->transport);
  routes->config = *config;
  rmq_namesrv_init(&routes->servers, config->transport, config->serialize, config->api_timeout_ms,
                   config->namesrv);
  routes->servers.address_map = rmq_slice_text(config->address_map);
  rmq_brokers_init(&routes->brokers, config->transport);
  routes->topics = rmq_map_new(io->calls->random(io));
  rmq_link_init(&routes->due);
  rmq_timer_init(&routes->poll, poll_due);
  set_poll(routes);
  init_heartbeat(routes);
  return routes;
}

static void release(rmq_routes *routes) {
  rmq_topic *topic;
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    rmq_topic_drop(topic);
  }
  rmq_map_free(routes->topics);
  rmq_brokers_close(&routes->brokers);
  rmq_namesrv_close(&routes->servers);
  free(routes);
}

/* Ends all that the transport does for us: it may be gone when the memory is released. */
static void detach(rmq_routes *routes) {
  rmq_transport_timer_stop(routes->config.transport, &routes->poll);
  rmq_heartbeat_stop(&routes->heartbeat);
  rmq_brokers_quiet(&routes->brokers);
  rmq_topic *topic;
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    rmq_inquiry_cancel(&topic->inquiry);
  }
}

void rmq_routes_free(rmq_routes *routes) {
  detach(routes);
  routes->dead = routes->stopped = true;
  if (routes->busy == 0) release(routes);
}

void rmq_routes_enter(rmq_routes *routes) { routes->busy++; }

void rmq_routes_leave(rmq_routes *routes) {
  routes->busy--;
  if (routes->dead && routes->busy == 0) release(routes);
}

rmq_topic *rmq_routes_find(rmq_routes *routes, rmq_slice name) {
  rmq_topic *last = routes->last;
  if (last && rmq_slice_equal(rmq_topic_name(last), name)) return last;
  rmq_topic *topic = rmq_map_get(routes->topics, name);
  if (topic) routes->last = topic;
  return topic;
}

const rmq_topic *rmq_routes_any_topic(const rmq_routes *routes) {
  const rmq_topic *topic = routes->last;
  if (topic && topic->publish) return topic;
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    if (topic->publish) break;
  }
  return topic;
}

bool rmq_routes_set_namesrv(rmq_routes *routes, const char *list) {
  if (!rmq_namesrv_set(&routes->servers, list)) return false;
  routes->config.namesrv = list;
  return true;
}

const char *rmq_routes_master(const rmq_routes *routes, rmq_slice broker_name) {
  return rmq_brokers_master(&routes->brokers, broker_name);
}

const char *rmq_routes_advertised(const rmq_routes *routes, rmq_slice broker_name) {
  return rmq_brokers_advertised(&routes->brokers, broker_name);
}

const char *rmq_routes_broker_at(const rmq_routes *routes, rmq_slice addr) {
  const rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(routes->brokers.by_name, &at, NULL)) != NULL;) {
    if (rmq_slice_is(addr, broker->master)) return broker->name;
  }
  return NULL;
}

uint64_t rmq_routes_failures(const rmq_routes *routes, rmq_slice broker_name) {
  const rmq_broker *broker = rmq_brokers_find(&routes->brokers, broker_name);
  return broker ? broker->failures : 0;
}

void rmq_routes_count_failure(rmq_routes *routes, rmq_slice broker_name) {
  rmq_broker *broker = rmq_brokers_find(&routes->brokers, broker_name);
  if (broker) broker->failures++;
}

void rmq_routes_connected(rmq_routes *routes, const char *addr) {
  if (!routes->stopped) rmq_heartbeat_connected(&routes->heartbeat, addr);
}

void rmq_routes_farewell(rmq_routes *routes, int64_t timeout_ms, void (*gone)(void *arg),
                         void *arg) {
  routes->stopped = true;
  rmq_transport_timer_stop(routes->config.transport, &routes->poll);
  rmq_topic *topic;
  for (size_t at = 0; (topic = rmq_map_next(routes->topics, &at, NULL)) != NULL;) {
    rmq_inquiry_cancel(&topic->inquiry);
    rmq_link_remove(&topic->due);
  }
  rmq_heartbeat_farewell(&routes->heartbeat, timeout_ms, gone, arg);
}

bool rmq_routes_greet(rmq_routes *routes, rmq_greeter *greeter, int64_t limit_ms) {
  return !routes->stopped && rmq_heartbeat_greet(&routes->heartbeat, greeter, limit_ms);
}

static bool is_first_of_cluster(const rmq_route_data *route, size_t index) {
  for (size_t i = 0; i < index; i++) {
    if (rmq_slice_equal(route->brokers[i].cluster, route->brokers[index].cluster)) return false;
  }
  return true;
}

rmq_slice rmq_topic_next_cluster(const rmq_topic *topic, size_t *at) {
  /* A hostile route may name very many; nobody has this many clusters. */
  enum { MOST = 64 };
  const rmq_route_data *route = &topic->route;
  for (size_t i = *at; i < route->n_brokers && i < MOST; i++) {
    if (route->brokers[i].cluster.len == 0 || !is_first_of_cluster(route, i)) continue;
    *at = i + 1;
    return route->brokers[i].cluster;
  }
  return rmq_slice_make(NULL, 0);
}

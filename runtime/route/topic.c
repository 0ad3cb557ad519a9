#include <stdlib.h>

#include "base/memory.h"
#include "route/routes_private.h"

/* Demanded refreshes of one topic are at least this far apart: while a broker is down, every send
 * to it demands one. */
enum { DEMAND_GAP_MS = 100 };

static void lookup_done(rmq_inquiry *inquiry, rmq_inquiry_status status, rmq_route_data *route);

static rmq_topic *topic_of(rmq_inquiry *inquiry) {
  return rmq_link_owner(inquiry, rmq_topic, inquiry);
}

rmq_topic *rmq_routes_topic(rmq_routes *routes, rmq_slice name) {
  rmq_topic *topic = rmq_routes_find(routes, name);
  if (topic) return topic;
  topic = rmq_alloc_zero(1, sizeof *topic);
  topic->routes = routes;
  topic->name = rmq_copy_text(name.ptr, name.len);
  topic->name_len = name.len;
  rmq_link_init(&topic->waiters);
  rmq_link_init(&topic->due);
  rmq_map_set(routes->topics, name, topic);
  routes->last = topic;
  return topic;
}

void rmq_topic_drop(rmq_topic *topic) {
  rmq_routes *routes = topic->routes;
  rmq_map_remove(routes->topics, rmq_topic_name(topic));
  if (routes->last == topic) routes->last = NULL;
  rmq_link_remove(&topic->due);
  if (topic->in_round) routes->refreshing--;
  rmq_inquiry_close(&topic->inquiry);
  if (topic->publish) {
    rmq_publish_unref(topic->publish);
    /* When all goes, the brokers go by themselves. */
    if (!routes->dead) rmq_brokers_remove(&routes->brokers, &topic->route);
    rmq_route_data_free(&topic->route);
  }
  if (topic->kept) routes->config.drop_kept(topic->kept);
  free(topic->name);
  free(topic);
}

void rmq_topic_release(rmq_topic *topic) {
  topic->users--;
  if (topic->users > 0 || topic->publish || topic->inquiry.running || topic->routes->dead) return;
  rmq_topic_drop(topic);
}

/* ---- Asking ---- */

/* The time up to which somebody wants the answer. */
static rmq_mono wanted_until(rmq_inquiry *inquiry) {
  rmq_topic *topic = topic_of(inquiry);
  const rmq_routes_config *config = &topic->routes->config;
  rmq_mono now = rmq_transport_now(config->transport);
  rmq_mono until = topic->keep_asking ? rmq_mono_add_ms(now, config->api_timeout_ms) : now;
  for (rmq_link *link = topic->waiters.next; link != &topic->waiters; link = link->next) {
    rmq_mono deadline = rmq_link_owner(link, rmq_route_waiter, link)->deadline;
    if (rmq_mono_before(until, deadline)) until = deadline;
  }
  return until;
}

static void start_lookup(rmq_topic *topic) {
  topic->ask_default = false;
  topic->default_unknown = false;
  rmq_inquiry_forget(&topic->inquiry);
  rmq_inquiry_start(&topic->inquiry, &topic->routes->servers, rmq_topic_name(topic), wanted_until,
                    lookup_done);
}

void rmq_topic_ask_again(rmq_topic *topic) {
  topic->keep_asking = true;
  if (!topic->inquiry.running) start_lookup(topic);
}

void rmq_topic_refresh(rmq_topic *topic) {
  rmq_routes *routes = topic->routes;
  if (routes->stopped || topic->inquiry.running || !topic->publish) return;
  rmq_mono now = rmq_transport_now(routes->config.transport);
  if (topic->refreshed_at.us != 0 && rmq_mono_diff_ms(now, topic->refreshed_at) < DEMAND_GAP_MS) {
    return;
  }
  topic->refreshed_at = now;
  rmq_link_remove(&topic->due);
  rmq_topic_ask_again(topic);
}

/* ---- Waiting ---- */

static void leave_quietly(rmq_route_waiter *waiter) {
  rmq_link_remove(&waiter->link);
  rmq_transport_timer_stop(waiter->topic->routes->config.transport, &waiter->timer);
}

/* Gives a lookup up that nobody waits for, unless it is a refresh. */
static void abandon_if_alone(rmq_topic *topic) {
  if (rmq_link_alone(&topic->waiters) && !topic->keep_asking) rmq_inquiry_cancel(&topic->inquiry);
}

void rmq_topic_leave(rmq_route_waiter *waiter) {
  if (!waiter->topic || rmq_link_alone(&waiter->link)) return;
  leave_quietly(waiter);
  abandon_if_alone(waiter->topic);
}

static void waiter_late(rmq_timer *timer) {
  rmq_route_waiter *waiter = rmq_link_owner(timer, rmq_route_waiter, timer);
  rmq_topic *topic = waiter->topic;
  rmq_buf explanation = {0};
  rmq_topic_explain(topic, RMQ_ROUTE_TIMEOUT, &explanation);
  rmq_link_remove(&waiter->link);
  abandon_if_alone(topic);
  rmq_routes *routes = topic->routes;
  rmq_routes_enter(routes);
  waiter->done(waiter, RMQ_ROUTE_TIMEOUT, rmq_buf_slice(&explanation));
  rmq_routes_leave(routes);
  rmq_buf_free(&explanation);
}

void rmq_topic_wait(rmq_topic *topic, rmq_route_waiter *waiter, rmq_mono deadline) {
  rmq_routes *routes = topic->routes;
  waiter->topic = topic;
  waiter->deadline = deadline;
  rmq_link_init(&waiter->link);
  rmq_link_append(&topic->waiters, &waiter->link);
  rmq_timer_init(&waiter->timer, waiter_late);
  rmq_transport_timer(routes->config.transport, &waiter->timer, deadline);
  if (!topic->inquiry.running && !routes->stopped) start_lookup(topic);
}

/* Tells all who wait. New ones that come meanwhile wait for the next answer. */
static void tell_waiters(rmq_topic *topic, rmq_route_result result) {
  rmq_routes *routes = topic->routes;
  rmq_buf explanation = {0};
  if (result != RMQ_ROUTE_READY) rmq_topic_explain(topic, result, &explanation);
  rmq_link told;
  rmq_link_init(&told);
  rmq_link_splice(&told, &topic->waiters);
  rmq_routes_enter(routes);
  rmq_topic_hold(topic, topic->used_at);
  while (!rmq_link_alone(&told)) {
    rmq_route_waiter *waiter = rmq_link_owner(told.next, rmq_route_waiter, link);
    leave_quietly(waiter);
    waiter->done(waiter, result, rmq_buf_slice(&explanation));
  }
  rmq_topic_release(topic);
  rmq_buf_free(&explanation);
  rmq_routes_leave(routes);
}

/* ---- Answers ---- */

/* Once for each topic: the default topic is asked only as long as nothing is known. */
static void warn_of_default(const rmq_topic *topic) {
  if (topic->publish->n_brokers < 2) return;
  const rmq_routes_config *config = &topic->routes->config;
  rmq_log_line(config->log, RMQ_LOG_WARN,
               "topic \"%s\" does not exist yet; the first send creates it, perhaps on one of the "
               "%zu brokers only. To have it on all, create it: mqadmin updateTopic -n \"%s\" -t "
               "%s -c CLUSTER",
               topic->name, topic->publish->n_brokers, config->namesrv, topic->name);
}

/* Takes a route over. What is the same as before leaves everything as it is. True when a broker has
 * moved, so that other topics' routes are out of date. */
static bool adopt(rmq_topic *topic, rmq_route_data *route) {
  rmq_routes *routes = topic->routes;
  bool from_default = topic->ask_default;
  rmq_publish *old = topic->publish;
  rmq_route_data old_route = topic->route;
  if (old && old->from_default_topic == from_default && rmq_route_data_equal(&old_route, route)) {
    rmq_route_data_free(route);
    return false;
  }
  topic->route = *route;
  topic->publish = rmq_publish_new(&topic->route, ++routes->versions,
                                   from_default ? routes->config.default_topic_queue_nums : 0);
  rmq_log_line(routes->config.log, RMQ_LOG_INFO,
               "route of topic \"%s\": %zu queues on %zu brokers%s", topic->name,
               topic->publish->n_queues, topic->publish->n_brokers,
               from_default ? ", from the default topic" : "");
  if (from_default) warn_of_default(topic);
  bool moved = rmq_brokers_add(&routes->brokers, &topic->route);
  if (old) {
    rmq_publish_unref(old);
    rmq_brokers_remove(&routes->brokers, &old_route);
    rmq_route_data_free(&old_route);
  }
  return moved;
}

static bool somebody_wants_default(const rmq_topic *topic) {
  for (rmq_link *link = topic->waiters.next; link != &topic->waiters; link = link->next) {
    if (!rmq_link_owner(link, rmq_route_waiter, link)->own_only) return true;
  }
  return false;
}

/* Asks for the default topic when the topic itself has no route. */
static bool try_default(rmq_topic *topic) {
  const rmq_routes_config *config = &topic->routes->config;
  if (topic->ask_default || topic->publish || !config->auto_create_topic) return false;
  if (!somebody_wants_default(topic)) return false;
  topic->ask_default = true;
  rmq_inquiry_start(&topic->inquiry, &topic->routes->servers,
                    rmq_slice_text(config->create_topic_key), wanted_until, lookup_done);
  return true;
}

static rmq_route_result result_of(const rmq_topic *topic, rmq_inquiry_status status) {
  /* A refresh that brought nothing leaves what we had. */
  if (rmq_topic_is_ready(topic)) return RMQ_ROUTE_READY;
  if (status == RMQ_INQUIRY_FAILED) return RMQ_ROUTE_UNREACHED;
  return topic->publish ? RMQ_ROUTE_UNUSABLE : RMQ_ROUTE_UNKNOWN;
}

static void note_failed_refresh(const rmq_topic *topic, rmq_inquiry_status status) {
  if (!topic->publish || status == RMQ_INQUIRY_FOUND) return;
  bool not_created_yet = status == RMQ_INQUIRY_UNKNOWN && topic->publish->from_default_topic;
  if (not_created_yet) return;
  rmq_slice said = rmq_buf_slice(&topic->inquiry.said);
  rmq_log_line(topic->routes->config.log, RMQ_LOG_WARN,
               "the route of topic \"%s\" could not be refreshed, the old one stays: %.*s",
               topic->name, (int)said.len, said.len ? said.ptr : "");
}

static void lookup_done(rmq_inquiry *inquiry, rmq_inquiry_status status, rmq_route_data *route) {
  rmq_topic *topic = topic_of(inquiry);
  rmq_routes *routes = topic->routes;
  if (status == RMQ_INQUIRY_UNKNOWN && try_default(topic)) return;
  topic->default_unknown = topic->ask_default && status == RMQ_INQUIRY_UNKNOWN;
  note_failed_refresh(topic, status);
  rmq_routes_enter(routes);
  bool moved = route && adopt(topic, route);
  topic->keep_asking = false;
  if (topic->in_round) {
    topic->in_round = false;
    routes->refreshing--;
  }
  tell_waiters(topic, result_of(topic, status)); /* the topic may be gone now */
  if (moved) rmq_routes_moved(routes, topic);
  rmq_routes_pump(routes);
  rmq_routes_leave(routes);
}

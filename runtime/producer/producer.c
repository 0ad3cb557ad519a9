#include "producer/producer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/core.h"
#include "producer/faults.h"
#include "producer/request.h"

const char *rmq_send_status_name(rmq_send_status status) {
  switch (status) {
    case RMQ_SEND_OK:
      return "SEND_OK";
    case RMQ_SEND_FLUSH_DISK_TIMEOUT:
      return "FLUSH_DISK_TIMEOUT";
    case RMQ_SEND_FLUSH_SLAVE_TIMEOUT:
      return "FLUSH_SLAVE_TIMEOUT";
    case RMQ_SEND_SLAVE_NOT_AVAILABLE:
      break;
  }
  return "SLAVE_NOT_AVAILABLE";
}

/* ---- Life ---- */

static void on_connected(void *owner, const char *addr) {
  rmq_producer *producer = owner;
  if (producer->routes) rmq_routes_connected(producer->routes, addr);
}

static void on_turn_end(void *owner) { rmq_gather_turn(owner); }

static void start_transport(rmq_producer *producer) {
  const rmq_settings *settings = &producer->settings;
  producer->transport =
      rmq_transport_new(&(rmq_transport_config){.io = producer->io,
                                                .log = &producer->log,
                                                .serialize = producer->serialize,
                                                .connect_timeout_ms = settings->connect_timeout,
                                                .idle_timeout_ms = settings->channel_max_idle_time,
                                                .connected = on_connected,
                                                .received = rmq_producer_received,
                                                .turn_ends = on_turn_end,
                                                .owner = producer});
}

static void start_routes(rmq_producer *producer) {
  const rmq_settings *settings = &producer->settings;
  producer->routes = rmq_routes_new(
      &(rmq_routes_config){.transport = producer->transport,
                           .log = &producer->log,
                           .serialize = producer->serialize,
                           .namesrv = settings->namesrv,
                           .create_topic_key = settings->create_topic_key,
                           .client_id = producer->client_id,
                           .group = settings->group,
                           .address_map = settings->address_map,
                           .default_topic_queue_nums = settings->default_topic_queue_nums,
                           .auto_create_topic = settings->auto_create_topic,
                           .api_timeout_ms = settings->mq_client_api_timeout,
                           .poll_interval_ms = settings->poll_name_server_interval,
                           .heartbeat_interval_ms = settings->heartbeat_broker_interval,
                           .drop_kept = rmq_send_drop_kept});
}

static void start_faults(rmq_producer *producer) {
  rmq_io *io = producer->io;
  rmq_fault_rules rules;
  char why[256]; /* stays empty: the settings have been checked */
  rmq_fault_rules_read(&producer->settings, &rules, why, sizeof why);
  producer->faults = rmq_faults_new(&rules, io->calls->random(io));
}

/* Java's ip@instance. Java makes pid#nanoTime of the default instance name, so that each producer
 * is a client of its own; chance does the same here. */
static char *make_client_id(const rmq_settings *settings, rmq_io *io,
                            const rmq_identity *identity) {
  rmq_buf id = {0};
  if (settings->client_ip && settings->client_ip[0]) {
    rmq_buf_text(&id, settings->client_ip);
  } else {
    rmq_address address = {.ip_len = identity->ip_len};
    char text[RMQ_ADDRESS_TEXT];
    memcpy(address.ip, identity->ip, sizeof address.ip);
    rmq_address_format(&address, text);
    char *colon = strrchr(text, ':');
    rmq_buf_bytes(&id, text, colon ? (size_t)(colon - text) : strlen(text));
  }
  rmq_buf_u8(&id, '@');
  if (settings->instance_name && settings->instance_name[0]) {
    rmq_buf_text(&id, settings->instance_name);
  } else {
    rmq_buf_printf(&id, "%u#%llu", identity->pid, (unsigned long long)(io->calls->random(io) >> 1));
  }
  rmq_slice made = rmq_buf_slice(&id);
  char *copy = rmq_copy_text(made.ptr, made.len);
  rmq_buf_free(&id);
  return copy;
}

static void init_lists(rmq_producer *producer) {
  rmq_link_init(&producer->active);
  rmq_link_init(&producer->waiting);
  rmq_link_init(&producer->own);
  rmq_link_init(&producer->pool);
  rmq_link_init(&producer->flushes);
  rmq_link_init(&producer->queries);
  rmq_link_init(&producer->calls);
  rmq_link_init(&producer->admins);
  rmq_link_init(&producer->drafts);
  rmq_link_init(&producer->transactions);
  rmq_link_init(&producer->questions);
  rmq_link_init(&producer->enders);
}

rmq_producer *rmq_producer_new(const rmq_settings *settings, rmq_io *io, const rmq_log *log) {
  rmq_producer *producer = rmq_alloc_zero(1, sizeof *producer);
  const rmq_identity *identity = io->calls->identity(io);
  rmq_settings_copy(&producer->settings, settings);
  producer->io = io;
  if (log) producer->log = *log;
  bool json = strcmp(settings->serialize, "json") == 0;
  producer->serialize = json ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ;
  producer->group = rmq_slice_text(producer->settings.group);
  producer->create_topic_key = rmq_slice_text(producer->settings.create_topic_key);
  rmq_policy_codes_read(rmq_slice_text(settings->retry_response_codes), &producer->retry_codes);
  producer->client_id = make_client_id(settings, io, identity);
  rmq_id_init(&producer->ids, identity);
  rmq_packer_init(&producer->packer, settings);
  rmq_failure_init(&producer->refusal);
  init_lists(producer);
  rmq_producer_init_end(producer);
  rmq_producer_init_checks(producer);
  rmq_gather_init(producer);
  start_faults(producer);
  start_transport(producer);
  start_routes(producer);
  rmq_producer_start_detector(producer);
  if (settings->enable_trace) producer->trace = rmq_trace_new(producer);
  return producer;
}

static void give_up(rmq_link *sends) {
  while (!rmq_link_alone(sends)) {
    rmq_send *send = rmq_link_owner(sends->next, rmq_send, link);
    rmq_send_withdraw(send);
    rmq_link_remove(&send->link);
    rmq_send_give_back(send);
  }
}

/* Lets go of everything that could bring an event. Nothing completes. */
static void tear_down(rmq_producer *producer) {
  if (!producer->transport) return;
  give_up(&producer->active);
  give_up(&producer->own);
  producer->stats.inflight = producer->stats.waiting = producer->stats.inflight_bytes = 0;
  producer->stats.trace_pending = 0;
  rmq_trace_free(producer->trace);
  producer->trace = NULL;
  rmq_gather_free(producer);
  rmq_producer_drop_queries(producer);
  rmq_producer_drop_calls(producer);
  rmq_producer_drop_admins(producer);
  rmq_producer_drop_drafts(producer);
  rmq_producer_drop_transactions(producer);
  rmq_producer_drop_requests(producer);
  rmq_producer_drop_checks(producer);
  rmq_producer_drop_flushes(producer);
  rmq_producer_drop_enders(producer);
  rmq_producer_stop_detector(producer);
  rmq_routes_free(producer->routes);
  rmq_transport_free(producer->transport);
  producer->routes = NULL;
  producer->transport = NULL;
}

static void release(rmq_producer *producer) {
  rmq_producer_drop_drafts(producer);
  while (!rmq_link_alone(&producer->pool)) {
    rmq_send_free(rmq_link_owner(producer->pool.next, rmq_send, link));
  }
  rmq_faults_unref(producer->faults);
  rmq_packer_free(&producer->packer);
  rmq_failure_clear(&producer->refusal);
  rmq_settings_free(&producer->settings);
  free(producer->client_id);
  free(producer);
}

void rmq_producer_free(rmq_producer *producer) {
  if (!producer) return;
  tear_down(producer);
  producer->dead = true;
  if (producer->depth == 0) release(producer);
}

void rmq_producer_enter(rmq_producer *producer) { producer->depth++; }

void rmq_producer_leave(rmq_producer *producer) {
  producer->depth--;
  if (producer->dead && producer->depth == 0) release(producer);
}

void rmq_producer_forked(rmq_producer *producer) {
  tear_down(producer);
  producer->state = RMQ_STATE_FORKED;
}

/* ---- What may change ---- */

int rmq_producer_set_namesrv(rmq_producer *producer, rmq_slice list, char *why, size_t why_size) {
  int status = rmq_producer_check_state(producer);
  if (status < 0) return status;
  rmq_settings changed;
  rmq_settings_copy(&changed, &producer->settings);
  const rmq_setting *row = rmq_setting_find(rmq_slice_text("namesrv"));
  status = rmq_settings_set_text(&changed, row, list, why, why_size);
  if (status == 0) status = rmq_settings_check(&changed, why, why_size);
  if (status == 0 && rmq_routes_set_namesrv(producer->routes, changed.namesrv)) {
    char *old = producer->settings.namesrv;
    producer->settings.namesrv = changed.namesrv;
    changed.namesrv = old;
  }
  rmq_settings_free(&changed);
  return status;
}

/* ---- What one can ask ---- */

const rmq_settings *rmq_producer_settings(const rmq_producer *producer) {
  return &producer->settings;
}

const char *rmq_producer_client_id(const rmq_producer *producer) { return producer->client_id; }

const rmq_failure *rmq_producer_failure(const rmq_producer *producer) { return &producer->refusal; }

rmq_producer_stats rmq_producer_stats_of(const rmq_producer *producer) {
  rmq_producer_stats stats = producer->stats;
  stats.transactions = rmq_transactions_unfinished(producer, UINT64_MAX);
  stats.gathered = producer->gathers.n;
  stats.requests = producer->asked ? rmq_map_count(producer->asked) : 0;
  return stats;
}

int rmq_producer_check_state(rmq_producer *producer) {
  const char *what = NULL;
  switch (producer->state) {
    case RMQ_STATE_RUNNING:
      return 0;
    case RMQ_STATE_DRAINING:
    case RMQ_STATE_PARTING:
      what = "is shutting down";
      break;
    case RMQ_STATE_SHUT:
      what = "is shut down";
      break;
    case RMQ_STATE_FORKED:
      what = "belongs to the parent process";
      break;
  }
  rmq_failure_set(&producer->refusal, RMQ_KIND_STATE, 0, "producer \"%s\" %s; make a new one",
                  producer->settings.group, what);
  return RMQ_ESTATE;
}

#include "route/heartbeat.h"

#include "base/error.h"
#include "wire/client.h"
#include "wire/codes.h"

static rmq_broker *broker_of(rmq_request *request) {
  return rmq_link_owner(request, rmq_broker, request);
}

static rmq_heartbeat *heartbeat_of(rmq_timer *timer) {
  return rmq_link_owner(timer, rmq_heartbeat, timer);
}

/* Sends a request to a broker, instead of the one that may be under way. */
static void talk(rmq_heartbeat *heartbeat, rmq_broker *broker, int64_t timeout_ms,
                 void (*encode)(rmq_request *request, rmq_buf *out, int32_t opaque),
                 void (*done)(rmq_request *request, const rmq_outcome *outcome)) {
  rmq_transport *transport = heartbeat->brokers->transport;
  if (broker->busy) rmq_transport_cancel(transport, &broker->request);
  broker->busy = true;
  broker->talker = heartbeat;
  broker->request.encode = encode;
  broker->request.done = done;
  broker->request.oneway = false;
  broker->request.deadline = rmq_mono_add_ms(rmq_transport_now(transport), timeout_ms);
  rmq_transport_invoke(transport, broker->master, &broker->request);
}

/* ---- Heartbeats ---- */

/* Only the producer's own group: Java adds CLIENT_INNER_PRODUCER, a producer that consumers use to
 * send messages back, and there are no consumers here. */
static void encode_heartbeat(rmq_request *request, rmq_buf *out, int32_t opaque) {
  const rmq_heartbeat *heartbeat = broker_of(request)->talker;
  rmq_heartbeat_encode(out, heartbeat->serialize, opaque, heartbeat->client_id, &heartbeat->group,
                       1);
}

/* True while a broker that does not know us has yet to answer. */
static bool is_greeting(const rmq_heartbeat *heartbeat) {
  const rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(heartbeat->brokers->by_name, &at, NULL)) != NULL;) {
    if (broker->busy && !broker->known) return true;
  }
  return false;
}

/* Those who wait may do anything, so nothing of the heartbeat is used once they are told: who goes
 * meanwhile takes itself off the list. */
static void tell_greeters(rmq_heartbeat *heartbeat) {
  if (rmq_link_alone(&heartbeat->greeters) || is_greeting(heartbeat)) return;
  rmq_link told;
  rmq_link_init(&told);
  rmq_link_splice(&told, &heartbeat->greeters);
  while (!rmq_link_alone(&told)) {
    rmq_greeter *greeter = rmq_link_owner(told.next, rmq_greeter, link);
    rmq_greeter_leave(greeter);
    greeter->done(greeter);
  }
}

static void note_failure(rmq_heartbeat *heartbeat, const rmq_broker *broker,
                         const rmq_outcome *outcome) {
  heartbeat->failures++;
  if (outcome->status == RMQ_OK) {
    rmq_log_line(heartbeat->log, RMQ_LOG_WARN, "heartbeat to %s (%s) refused: code %d %.*s",
                 broker->name, broker->master, outcome->header->code,
                 (int)(outcome->header->remark.len < 200 ? outcome->header->remark.len : 200),
                 outcome->header->remark.len ? outcome->header->remark.ptr : "");
  } else {
    rmq_log_line(heartbeat->log, RMQ_LOG_INFO, "heartbeat to %s (%s) failed: %s", broker->name,
                 broker->master, rmq_error_text(outcome->status));
  }
}

/* A heartbeat that fails is told of and counted, no more: sends find out by themselves what is
 * wrong. */
static void heartbeat_done(rmq_request *request, const rmq_outcome *outcome) {
  rmq_broker *broker = broker_of(request);
  rmq_heartbeat *heartbeat = broker->talker;
  broker->busy = false;
  broker->known = outcome->status == RMQ_OK && outcome->header->code == RMQ_SUCCESS;
  if (!broker->known) note_failure(heartbeat, broker, outcome);
  tell_greeters(heartbeat);
}

static void send_heartbeat(rmq_heartbeat *heartbeat, rmq_broker *broker) {
  broker->asked = true;
  broker->asked_at = rmq_transport_now(heartbeat->brokers->transport);
  talk(heartbeat, broker, heartbeat->api_timeout_ms, encode_heartbeat, heartbeat_done);
}

static void beat(rmq_heartbeat *heartbeat, rmq_broker *broker) {
  if (!broker->busy) send_heartbeat(heartbeat, broker);
}

static void set_round(rmq_heartbeat *heartbeat) {
  rmq_transport *transport = heartbeat->brokers->transport;
  rmq_transport_timer(transport, &heartbeat->timer,
                      rmq_mono_add_ms(rmq_transport_now(transport), heartbeat->interval_ms));
}

static void round_due(rmq_timer *timer) {
  rmq_heartbeat *heartbeat = heartbeat_of(timer);
  rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(heartbeat->brokers->by_name, &at, NULL)) != NULL;) {
    beat(heartbeat, broker);
  }
  set_round(heartbeat);
}

void rmq_heartbeat_start(rmq_heartbeat *heartbeat) {
  heartbeat->failures = 0;
  heartbeat->farewells = 0;
  heartbeat->gone = NULL;
  rmq_link_init(&heartbeat->greeters);
  rmq_timer_init(&heartbeat->timer, round_due);
  set_round(heartbeat);
}

void rmq_heartbeat_connected(rmq_heartbeat *heartbeat, const char *addr) {
  if (!rmq_map_get(heartbeat->brokers->by_master, rmq_slice_text(addr))) return;
  rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(heartbeat->brokers->by_name, &at, NULL)) != NULL;) {
    if (strcmp(broker->master, addr) != 0) continue;
    /* One that waits for this connection already gives way, so that the new one goes first of
     * all. */
    broker->known = false;
    send_heartbeat(heartbeat, broker);
  }
}

/* ---- Greetings ---- */

/* A broker that could not be reached is tried for a greeting again only after so long: each of them
 * has its caller wait. */
enum { GREET_AGAIN_MS = 5000 };

static void greeting_over(rmq_timer *timer) {
  rmq_greeter *greeter = rmq_link_owner(timer, rmq_greeter, timer);
  rmq_greeter_leave(greeter);
  greeter->done(greeter);
}

/* True when a heartbeat to the broker is under way that is worth waiting for. */
static bool greet(rmq_heartbeat *heartbeat, rmq_broker *broker, rmq_mono now, int64_t limit_ms) {
  if (broker->known && rmq_transport_is_connected(heartbeat->brokers->transport, broker->master)) {
    return false;
  }
  int64_t since_ms = broker->asked ? rmq_mono_diff_ms(now, broker->asked_at) : GREET_AGAIN_MS;
  if (broker->busy) return since_ms < limit_ms;
  if (since_ms < GREET_AGAIN_MS && !broker->known) return false;
  broker->known = false;
  send_heartbeat(heartbeat, broker);
  return true;
}

bool rmq_heartbeat_greet(rmq_heartbeat *heartbeat, rmq_greeter *greeter, int64_t limit_ms) {
  rmq_transport *transport = heartbeat->brokers->transport;
  rmq_mono now = rmq_transport_now(transport);
  rmq_broker *broker;
  bool waits = false;
  for (size_t at = 0; (broker = rmq_map_next(heartbeat->brokers->by_name, &at, NULL)) != NULL;) {
    if (greet(heartbeat, broker, now, limit_ms)) waits = true;
  }
  greeter->heartbeat = heartbeat;
  rmq_link_init(&greeter->link);
  rmq_timer_init(&greeter->timer, greeting_over);
  if (!waits) return false;
  rmq_link_append(&heartbeat->greeters, &greeter->link);
  rmq_transport_timer(transport, &greeter->timer, rmq_mono_add_ms(now, limit_ms));
  return true;
}

void rmq_greeter_leave(rmq_greeter *greeter) {
  if (!greeter->heartbeat || rmq_link_alone(&greeter->link)) return;
  rmq_link_remove(&greeter->link);
  rmq_transport_timer_stop(greeter->heartbeat->brokers->transport, &greeter->timer);
}

void rmq_heartbeat_stop(rmq_heartbeat *heartbeat) {
  rmq_transport_timer_stop(heartbeat->brokers->transport, &heartbeat->timer);
}

/* ---- The farewell ---- */

static void encode_farewell(rmq_request *request, rmq_buf *out, int32_t opaque) {
  const rmq_heartbeat *heartbeat = broker_of(request)->talker;
  rmq_unregister_encode(out, heartbeat->serialize, opaque, heartbeat->client_id, heartbeat->group);
}

/* The end always comes from the timer, so never from inside rmq_heartbeat_farewell. */
static void end_farewell(rmq_timer *timer) {
  rmq_heartbeat *heartbeat = heartbeat_of(timer);
  void (*gone)(void *arg) = heartbeat->gone;
  heartbeat->gone = NULL; /* answers that come later end nothing */
  gone(heartbeat->gone_arg);
}

static void end_now(rmq_heartbeat *heartbeat) {
  rmq_transport *transport = heartbeat->brokers->transport;
  rmq_transport_timer(transport, &heartbeat->timer, rmq_transport_now(transport));
}

static void farewell_done(rmq_request *request, const rmq_outcome *outcome) {
  rmq_broker *broker = broker_of(request);
  rmq_heartbeat *heartbeat = broker->talker;
  broker->busy = false;
  if (outcome->status != RMQ_OK) {
    rmq_log_line(heartbeat->log, RMQ_LOG_INFO, "unregistering from %s (%s) failed: %s",
                 broker->name, broker->master, rmq_error_text(outcome->status));
  }
  if (--heartbeat->farewells == 0 && heartbeat->gone) end_now(heartbeat);
}

/* A heartbeat that waits for a connection would still go out when that stands, and nothing after it. */
static void keep_quiet(const rmq_heartbeat *heartbeat, rmq_broker *broker) {
  if (broker->busy) rmq_transport_cancel(heartbeat->brokers->transport, &broker->request);
  broker->busy = false;
}

void rmq_heartbeat_farewell(rmq_heartbeat *heartbeat, int64_t timeout_ms, void (*gone)(void *arg),
                            void *arg) {
  rmq_transport *transport = heartbeat->brokers->transport;
  rmq_heartbeat_stop(heartbeat);
  rmq_timer_init(&heartbeat->timer, end_farewell);
  heartbeat->gone = gone;
  heartbeat->gone_arg = arg;
  rmq_broker *broker;
  for (size_t at = 0; (broker = rmq_map_next(heartbeat->brokers->by_name, &at, NULL)) != NULL;) {
    if (rmq_transport_is_connected(transport, broker->master)) {
      heartbeat->farewells++;
      talk(heartbeat, broker, timeout_ms, encode_farewell, farewell_done);
    } else {
      keep_quiet(heartbeat, broker);
    }
  }
  if (heartbeat->farewells == 0) {
    end_now(heartbeat);
  } else {
    rmq_transport_timer(transport, &heartbeat->timer,
                        rmq_mono_add_ms(rmq_transport_now(transport), timeout_ms));
  }
}

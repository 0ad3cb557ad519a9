#include <stdlib.h>

#include "base/memory.h"
#include "producer/core.h"
#include "wire/client.h"
#include "wire/codes.h"

/* The detector of latency_fault "5.x": asks brokers that could not be reached whether they are there
 * again, with a question that any broker answers at once. Without it such a broker counts as
 * reachable, and the next send finds out. */

enum { ROUND_MS = 3000 };

/* One question under way. */
typedef struct probe {
  rmq_link link; /* in the producer's `probes` */
  rmq_request request;
  rmq_producer *producer;
  rmq_fault *fault; /* held */
  char *topic;
} probe;

static probe *probe_of(rmq_request *request) { return rmq_link_owner(request, probe, request); }

static void end_probe(probe *p) {
  rmq_link_remove(&p->link);
  rmq_fault_release(p->fault);
  free(p->topic);
  free(p);
}

static void encode(rmq_request *request, rmq_buf *out, int32_t opaque) {
  const probe *p = probe_of(request);
  rmq_max_offset_request_encode(out, p->producer->serialize, opaque, rmq_slice_text(p->topic), 0);
}

static void answered(rmq_request *request, const rmq_outcome *outcome) {
  probe *p = probe_of(request);
  bool well = outcome->status == RMQ_OK && outcome->header->code == RMQ_SUCCESS;
  if (well) rmq_fault_note_probe(p->fault);
  rmq_log_line(&p->producer->log, RMQ_LOG_DEBUG, "broker %s %s", p->fault->name,
               well ? "can be reached again" : "still cannot be reached");
  end_probe(p);
}

static void ask(rmq_producer *producer, rmq_fault *fault, const char *master) {
  const rmq_topic *topic = rmq_routes_any_topic(producer->routes);
  if (!topic) return;
  probe *p = rmq_alloc_zero(1, sizeof *p);
  rmq_mono now = rmq_transport_now(producer->transport);
  p->producer = producer;
  p->fault = rmq_fault_hold(fault);
  p->topic = rmq_copy_text(topic->name, topic->name_len);
  p->request.encode = encode;
  p->request.done = answered;
  p->request.deadline = rmq_mono_add_ms(now, producer->settings.detect_timeout);
  rmq_link_init(&p->link);
  rmq_link_append(&producer->probes, &p->link);
  rmq_transport_invoke(producer->transport, master, &p->request);
}

static void set_round(rmq_producer *producer) {
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_transport_timer(producer->transport, &producer->detector, rmq_mono_add_ms(now, ROUND_MS));
}

/* Java asks all brokers of which something is noted. The answer of one that can be reached would
 * change nothing, so it is not asked. */
static void round_due(rmq_timer *timer) {
  rmq_producer *producer = rmq_link_owner(timer, rmq_producer, detector);
  rmq_mono now = rmq_transport_now(producer->transport);
  rmq_fault *fault;
  for (size_t at = 0; (fault = rmq_faults_next_due(producer->faults, now, &at)) != NULL;) {
    const char *master = rmq_routes_master(producer->routes, rmq_slice_text(fault->name));
    if (!master) {
      rmq_fault_forget(fault);
    } else if (!fault->reachable) {
      ask(producer, fault, master);
    }
  }
  set_round(producer);
}

bool rmq_producer_detects(const rmq_producer *producer) {
  return producer->settings.start_detector_enable &&
         producer->faults->rules.strategy == RMQ_STRATEGY_5X;
}

void rmq_producer_start_detector(rmq_producer *producer) {
  rmq_link_init(&producer->probes);
  rmq_timer_init(&producer->detector, round_due);
  if (rmq_producer_detects(producer)) set_round(producer);
}

void rmq_producer_stop_detector(rmq_producer *producer) {
  rmq_transport_timer_stop(producer->transport, &producer->detector);
  while (!rmq_link_alone(&producer->probes)) {
    probe *p = rmq_link_owner(producer->probes.next, probe, link);
    rmq_transport_cancel(producer->transport, &p->request);
    end_probe(p);
  }
}

#include "producer/faults.h"

#include <stdlib.h>

#include "base/memory.h"
#include "producer/core.h"
#include "wire/codes.h"

/* How brokers have done: the rules out of the settings, what an attempt adds, and what is shown. */

/* The numbers of a setting as the rules read them, with commas between. NULL stays. */
static char *with_commas(const char *numbers) {
  if (!numbers) return NULL;
  char *text = rmq_copy_text(numbers, strlen(numbers));
  for (char *at = text; *at; at++) {
    if (*at == ' ') *at = ',';
  }
  return text;
}

int rmq_fault_rules_read(const rmq_settings *settings, rmq_fault_rules *rules, char *why,
                         size_t why_size) {
  rmq_strategy strategy;
  int status = rmq_strategy_find(rmq_slice_text(settings->latency_fault), &strategy);
  if (status < 0) return status; /* never: the table of settings lists what can be set */
  rmq_fault_rules_init(rules, strategy);
  rules->detect_interval_ms = settings->detect_interval;
  char *latency_max = with_commas(settings->latency_max);
  char *not_available = with_commas(settings->not_available_duration);
  status = rmq_fault_rules_set(rules, rmq_slice_text(latency_max), rmq_slice_text(not_available),
                               why, why_size);
  free(latency_max);
  free(not_available);
  return status;
}

/* ---- What an attempt adds ---- */

bool rmq_producer_avoids(const rmq_producer *producer) {
  return producer->faults->rules.strategy != RMQ_STRATEGY_OFF;
}

void rmq_send_hold_fault(rmq_send *send, rmq_fault *fault) {
  rmq_fault *old = send->fault;
  send->fault = fault ? rmq_fault_hold(fault) : NULL;
  rmq_fault_release(old);
}

/* An answer that says no. Java's client avoids the broker after every one; here one illegal message
 * does not speak against its broker, only an answer after which another broker may do better. A
 * broker that wants a new connection has not failed, unless it wants one again. */
static void note_refusal(rmq_send *send, rmq_mono now, int64_t latency_us, int32_t code) {
  bool speaks_against = rmq_policy_retries_code(&send->producer->retry_codes, code);
  if (code == RMQ_GO_AWAY && !send->came_back) speaks_against = false;
  if (speaks_against) rmq_fault_note(send->fault, now, latency_us, true, false);
}

void rmq_send_note_fault(rmq_send *send, const rmq_outcome *outcome) {
  rmq_producer *producer = send->producer;
  rmq_mono now = rmq_transport_now(producer->transport);
  int64_t latency_us = rmq_mono_diff_us(now, send->attempt_started);
  if (outcome->status != RMQ_OK) {
    /* Without the detector nothing but another attempt could tell that it can be reached again. */
    rmq_fault_note(send->fault, now, latency_us, true, !rmq_producer_detects(producer));
    return;
  }
  if (send->oneway) return; /* that its bytes are gone says nothing of the broker */
  switch (outcome->header->code) {
    case RMQ_SUCCESS:
    case RMQ_FLUSH_DISK_TIMEOUT:
    case RMQ_FLUSH_SLAVE_TIMEOUT:
    case RMQ_SLAVE_NOT_AVAILABLE:
      rmq_fault_note(send->fault, now, latency_us, false, true);
      break;
    default:
      note_refusal(send, now, latency_us, outcome->header->code);
      break;
  }
}

/* ---- What is shown ---- */

bool rmq_producer_available(const rmq_producer *producer, rmq_slice broker) {
  if (!producer->routes || !rmq_routes_master(producer->routes, broker)) return false;
  return rmq_faults_available(producer->faults, broker, rmq_transport_now(producer->transport));
}

uint64_t rmq_producer_failures(const rmq_producer *producer, rmq_slice broker) {
  return producer->routes ? rmq_routes_failures(producer->routes, broker) : 0;
}

bool rmq_producer_next_fault(const rmq_producer *producer, size_t *at, rmq_fault_view *view) {
  if (!producer->transport) return false;
  const rmq_fault *fault = rmq_faults_next(producer->faults, at);
  if (!fault) return false;
  rmq_mono now = rmq_transport_now(producer->transport);
  *view = (rmq_fault_view){.broker = rmq_slice_text(fault->name),
                           .latency_us = fault->latency_us,
                           .avoided_us = rmq_fault_avoided_us(fault, now),
                           .reachable = fault->reachable};
  return true;
}

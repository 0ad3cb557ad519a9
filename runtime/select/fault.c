#include "select/fault.h"

#include <stdlib.h>

#include "base/memory.h"

enum { FIRST_SWEEP = 64 };

/* Before any time there is. */
static const rmq_mono always = {INT64_MIN};

rmq_faults *rmq_faults_new(const rmq_fault_rules *rules, uint64_t random) {
  rmq_faults *faults = rmq_alloc_zero(1, sizeof *faults);
  faults->refs = 1;
  faults->rules = *rules;
  faults->by_name = rmq_map_new(random);
  faults->sweep_at = FIRST_SWEEP;
  return faults;
}

rmq_faults *rmq_faults_ref(rmq_faults *faults) {
  faults->refs++;
  return faults;
}

static void free_fault(rmq_fault *fault) {
  free(fault->name);
  free(fault);
}

void rmq_faults_unref(rmq_faults *faults) {
  if (!faults || --faults->refs > 0) return;
  rmq_fault *fault;
  for (size_t at = 0; (fault = rmq_map_next(faults->by_name, &at, NULL)) != NULL;) {
    free_fault(fault);
  }
  rmq_map_free(faults->by_name);
  free(faults);
}

/* ---- Entries ---- */

static void drop_if_idle(rmq_fault *fault) {
  if (fault->noted || fault->holds > 0) return;
  rmq_map_remove(fault->faults->by_name, rmq_slice_text(fault->name));
  free_fault(fault);
}

void rmq_fault_release(rmq_fault *fault) {
  if (!fault) return;
  fault->holds--;
  drop_if_idle(fault);
}

/* Makes the table forget brokers that nobody holds and that are not avoided any more: routes come
 * and go, and without this their brokers would pile up. */
static void sweep(rmq_faults *faults, rmq_mono now) {
  rmq_fault *fault;
  for (size_t at = 0; (fault = rmq_faults_next(faults, &at)) != NULL;) {
    if (fault->holds == 0 && rmq_fault_available(fault, now)) rmq_fault_forget(fault);
  }
  faults->sweep_at = 2 * rmq_map_count(faults->by_name);
  if (faults->sweep_at < FIRST_SWEEP) faults->sweep_at = FIRST_SWEEP;
}

static rmq_fault *make_fault(rmq_faults *faults, rmq_slice name, rmq_mono now) {
  if (rmq_map_count(faults->by_name) >= faults->sweep_at) sweep(faults, now);
  rmq_fault *fault = rmq_alloc_zero(1, sizeof *fault);
  fault->faults = faults;
  fault->name = rmq_copy_text(name.ptr, name.len);
  fault->available_from = always;
  fault->reachable = true;
  rmq_map_set(faults->by_name, name, fault);
  return fault;
}

rmq_fault *rmq_faults_hold(rmq_faults *faults, rmq_slice name, rmq_mono now) {
  rmq_fault *fault = rmq_map_get(faults->by_name, name);
  return rmq_fault_hold(fault ? fault : make_fault(faults, name, now));
}

/* ---- What is noted ---- */

/* Sets the end of the avoidance, and counts it as a change where a list of the available brokers,
 * made before, would be wrong now or stay in use for too long. A later end of an avoidance is no
 * change: such a list is looked through again at the earlier end and found right. */
static void avoid_until(rmq_fault *fault, rmq_mono now, rmq_mono until) {
  bool was_available = rmq_fault_available(fault, now);
  bool sooner = rmq_mono_before(until, fault->available_from);
  fault->available_from = until;
  bool is_available = rmq_fault_available(fault, now);
  if (was_available != is_available || (sooner && !is_available)) fault->faults->changes++;
}

void rmq_fault_note(rmq_fault *fault, rmq_mono now, int64_t latency_us, bool isolate,
                    bool reachable) {
  const rmq_fault_rules *rules = &fault->faults->rules;
  if (rules->strategy == RMQ_STRATEGY_OFF) return;
  if (!fault->noted) fault->check_at = now;
  fault->noted = true;
  fault->latency_us = latency_us;
  fault->counted_us = isolate ? rules->isolation_ms * 1000 : latency_us;
  fault->reachable = reachable;
  int64_t ms = rmq_fault_rules_duration(rules, fault->counted_us);
  rmq_mono until = rmq_mono_add_ms(now, ms);
  bool later = ms > 0 && rmq_mono_before(fault->available_from, until);
  if (later || !rules->only_forward) avoid_until(fault, now, until);
}

void rmq_fault_note_probe(rmq_fault *fault) { fault->reachable = true; }

void rmq_fault_forget(rmq_fault *fault) {
  fault->noted = false;
  fault->latency_us = fault->counted_us = 0;
  fault->available_from = always;
  fault->reachable = true;
  fault->faults->changes++;
  drop_if_idle(fault);
}

void rmq_faults_forget_unused(rmq_faults *faults) {
  rmq_fault *fault;
  for (size_t at = 0; (fault = rmq_faults_next(faults, &at)) != NULL;) {
    if (fault->choosers == 0) rmq_fault_forget(fault);
  }
}

/* ---- Questions ---- */

int64_t rmq_fault_avoided_us(const rmq_fault *fault, rmq_mono now) {
  if (rmq_fault_available(fault, now)) return 0;
  return rmq_mono_diff_us(fault->available_from, now);
}

bool rmq_faults_available(const rmq_faults *faults, rmq_slice name, rmq_mono now) {
  const rmq_fault *fault = rmq_map_get(faults->by_name, name);
  return !fault || rmq_fault_available(fault, now);
}

rmq_fault *rmq_faults_next(const rmq_faults *faults, size_t *at) {
  rmq_fault *fault;
  while ((fault = rmq_map_next(faults->by_name, at, NULL)) != NULL) {
    if (fault->noted) return fault;
  }
  return NULL;
}

rmq_fault *rmq_faults_next_due(rmq_faults *faults, rmq_mono now, size_t *at) {
  rmq_fault *fault;
  while ((fault = rmq_faults_next(faults, at)) != NULL) {
    if (rmq_mono_before(now, fault->check_at)) continue;
    fault->check_at = rmq_mono_add_ms(now, faults->rules.detect_interval_ms);
    return fault;
  }
  return NULL;
}

#include "select/rules.h"

#include <stdio.h>

#include "base/error.h"

int rmq_strategy_find(rmq_slice name, rmq_strategy *strategy) {
  if (rmq_slice_is(name, "false")) {
    *strategy = RMQ_STRATEGY_OFF;
  } else if (rmq_slice_is(name, "true")) {
    *strategy = RMQ_STRATEGY_4X;
  } else if (rmq_slice_is(name, "5.x")) {
    *strategy = RMQ_STRATEGY_5X;
  } else {
    return RMQ_EINVAL;
  }
  return 0;
}

void rmq_fault_rules_init(rmq_fault_rules *rules, rmq_strategy strategy) {
  if (strategy == RMQ_STRATEGY_5X) {
    *rules = (rmq_fault_rules){
        .n = 7,
        .latency_max_ms = {50, 100, 550, 1800, 3000, 5000, 15000},
        .not_available_ms = {0, 0, 2000, 5000, 6000, 10000, 30000},
        .isolation_ms = 10000,
        .only_forward = true,
    };
  } else {
    *rules = (rmq_fault_rules){
        .n = 7,
        .latency_max_ms = {50, 100, 550, 1000, 2000, 3000, 15000},
        .not_available_ms = {0, 0, 30000, 60000, 120000, 180000, 600000},
        .isolation_ms = 30000,
    };
  }
  rules->strategy = strategy;
  rules->detect_interval_ms = 2000;
}

/* ---- Tables of the user's ---- */

/* One table as it is being read. */
typedef struct steps {
  const char *name; /* the setting's */
  bool ascending;   /* each step must be above the one before; else only not below it */
  size_t n;
  int64_t ms[RMQ_FAULT_STEPS_MAX];
} steps;

/* Where a sentence on what is wrong goes. */
typedef struct complaint {
  char *why;
  size_t size;
} complaint;

static rmq_slice trim(rmq_slice text) {
  while (text.len > 0 && text.ptr[0] == ' ') text = rmq_slice_make(text.ptr + 1, text.len - 1);
  while (text.len > 0 && text.ptr[text.len - 1] == ' ') text.len--;
  return text;
}

/* The digits of `text` as a number up to RMQ_FAULT_MS_MAX, or -1. */
static int64_t parse_ms(rmq_slice text) {
  if (text.len == 0) return -1;
  int64_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] < '0' || text.ptr[i] > '9') return -1;
    value = value * 10 + (text.ptr[i] - '0');
    if (value > RMQ_FAULT_MS_MAX) return -1;
  }
  return value;
}

/* Adds one step, whose place among its neighbours must be right. */
static int add_step(steps *out, rmq_slice text, const complaint *to) {
  int64_t ms = parse_ms(text);
  if (ms < 0) {
    snprintf(to->why, to->size,
             "%s: \"%.*s\" is no whole number of milliseconds from 0 to %d; write for example "
             "50,100,550",
             out->name, (int)(text.len < 40 ? text.len : 40), text.len ? text.ptr : "",
             RMQ_FAULT_MS_MAX);
    return RMQ_EINVAL;
  }
  if (out->n == RMQ_FAULT_STEPS_MAX) {
    snprintf(to->why, to->size, "%s has more than %d steps", out->name, RMQ_FAULT_STEPS_MAX);
    return RMQ_EINVAL;
  }
  int64_t before = out->n ? out->ms[out->n - 1] : -1;
  if (ms < before || (out->ascending && ms == before)) {
    snprintf(to->why, to->size, "%s must %s: step %zu is %lld ms after %lld ms", out->name,
             out->ascending ? "ascend" : "not descend", out->n + 1, (long long)ms,
             (long long)before);
    return RMQ_EINVAL;
  }
  out->ms[out->n++] = ms;
  return 0;
}

static int read_steps(steps *out, rmq_slice text, const complaint *to) {
  for (rmq_slice rest = text;;) {
    const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
    size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
    int status = add_step(out, trim(rmq_slice_make(rest.ptr, len)), to);
    if (status < 0 || !comma) return status;
    rest = rmq_slice_make(comma + 1, rest.len - len - 1);
  }
}

static void keep_steps(steps *out, const int64_t *ms, size_t n) {
  memcpy(out->ms, ms, n * sizeof *ms);
  out->n = n;
}

int rmq_fault_rules_set(rmq_fault_rules *rules, rmq_slice latency_max, rmq_slice not_available,
                        char *why, size_t why_size) {
  steps latency = {.name = "latency_max", .ascending = true};
  steps duration = {.name = "not_available_duration"};
  complaint to = {why, why_size};
  keep_steps(&latency, rules->latency_max_ms, rules->n);
  keep_steps(&duration, rules->not_available_ms, rules->n);
  if (latency_max.len > 0) {
    latency.n = 0;
    if (read_steps(&latency, latency_max, &to) < 0) return RMQ_EINVAL;
  }
  if (not_available.len > 0) {
    duration.n = 0;
    if (read_steps(&duration, not_available, &to) < 0) return RMQ_EINVAL;
  }
  if (latency.n != duration.n) {
    snprintf(
        why, why_size,
        "latency_max has %zu steps%s and not_available_duration %zu%s: give both, equally long",
        latency.n, latency_max.len ? "" : " (the default)", duration.n,
        not_available.len ? "" : " (the default)");
    return RMQ_EINVAL;
  }
  rules->n = latency.n;
  memcpy(rules->latency_max_ms, latency.ms, sizeof latency.ms);
  memcpy(rules->not_available_ms, duration.ms, sizeof duration.ms);
  return 0;
}

/* ---- Looking up ---- */

int64_t rmq_fault_rules_duration(const rmq_fault_rules *rules, int64_t latency_us) {
  for (size_t i = rules->n; i-- > 0;) {
    if (latency_us >= rules->latency_max_ms[i] * 1000) return rules->not_available_ms[i];
  }
  return 0;
}

int64_t rmq_fault_rules_isolation(const rmq_fault_rules *rules) {
  return rmq_fault_rules_duration(rules, rules->isolation_ms * 1000);
}

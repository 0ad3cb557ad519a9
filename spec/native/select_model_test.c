/* Random attempts, choices, routes and times against a model that knows nothing but the rules: it
 * looks at every queue each time and keeps no list. */
#include "check.h"
#include "select_world.h"

enum { BROKERS = 7, TOPICS = 3, STEPS = 4000, SEEDS = 25 };

typedef struct model_broker {
  bool noted, reachable;
  int64_t counted_us, from_us;
} model_broker;

typedef struct model_topic {
  rmq_publish *publish; /* that it was chosen from last */
  size_t next;
  size_t turn;
} model_topic;

typedef struct model {
  const rmq_fault_rules *rules;
  model_broker brokers[BROKERS]; /* "a" and so on */
  model_topic topics[TOPICS];
} model;

static uint64_t chance_state;

static size_t chance(size_t n) {
  chance_state += 0x9e3779b97f4a7c15u;
  uint64_t x = chance_state;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (size_t)((x ^ x >> 31) % n);
}

/* ---- The model ---- */

static const model_broker unknown = {.reachable = true, .from_us = INT64_MIN};

static int64_t model_duration(const rmq_fault_rules *rules, int64_t latency_us) {
  int64_t found = 0;
  for (size_t i = 0; i < rules->n; i++) {
    if (rules->latency_max_ms[i] * 1000 <= latency_us) found = rules->not_available_ms[i];
  }
  return found;
}

static void model_note(model *m, size_t broker, int64_t now, int64_t latency_us, bool isolate,
                       bool reachable) {
  model_broker *b = &m->brokers[broker];
  if (m->rules->strategy == RMQ_STRATEGY_OFF) return;
  b->noted = true;
  b->counted_us = isolate ? m->rules->isolation_ms * 1000 : latency_us;
  b->reachable = reachable;
  int64_t ms = model_duration(m->rules, b->counted_us);
  int64_t from = now + ms * 1000;
  bool forward = ms > 0 && from > b->from_us;
  if (m->rules->strategy == RMQ_STRATEGY_4X || forward) b->from_us = from;
}

static size_t letter_of(const rmq_publish *publish, size_t queue) {
  return (size_t)(publish->brokers[publish->queues[queue].broker].name[0] - 'a');
}

/* What a queue's broker must be. */
typedef struct wish {
  bool available, reachable, untried, not_last;
} wish;

static bool fulfils(const model *m, size_t letter, wish want, int64_t now, const size_t *tried,
                    size_t n_tried) {
  const model_broker *b = &m->brokers[letter];
  if (want.available && now < b->from_us) return false;
  if (want.reachable && !b->reachable) return false;
  for (size_t i = 0; want.untried && i < n_tried; i++) {
    if (tried[i] == letter) return false;
  }
  return !(want.not_last && n_tried && tried[n_tried - 1] == letter);
}

static int model_walk(model *m, model_topic *topic, wish want, int64_t now, const size_t *tried,
                      size_t n_tried) {
  size_t n = topic->publish->n_queues;
  for (size_t i = 0; i < n; i++) {
    size_t queue = (topic->next + i) % n;
    if (!fulfils(m, letter_of(topic->publish, queue), want, now, tried, n_tried)) continue;
    topic->next = (queue + 1) % n;
    return (int)queue;
  }
  return -1;
}

static bool has_queues(const rmq_publish *publish, size_t letter) {
  for (size_t i = 0; publish && i < publish->n_queues; i++) {
    if (letter_of(publish, i) == letter) return true;
  }
  return false;
}

static void model_forget_unused(model *m) {
  for (size_t letter = 0; letter < BROKERS; letter++) {
    bool used = false;
    for (size_t i = 0; i < TOPICS; i++) used |= has_queues(m->topics[i].publish, letter);
    if (!used) m->brokers[letter] = unknown;
  }
}

/* How many of the candidates are better than broker `a`. */
static size_t place_of(const model *m, const bool *candidate, size_t a) {
  const model_broker *x = &m->brokers[a];
  size_t place = 0;
  for (size_t b = 0; b < BROKERS; b++) {
    const model_broker *y = &m->brokers[b];
    bool better = y->counted_us < x->counted_us;
    if (y->counted_us == x->counted_us) {
      better = y->from_us < x->from_us || (y->from_us == x->from_us && b < a);
    }
    place += candidate[b] && better;
  }
  return place;
}

static int model_least_bad(model *m, model_topic *topic, const size_t *tried, size_t n_tried) {
  static const wish wishes[] = {{.untried = true}, {.not_last = true}, {false}};
  model_forget_unused(m);
  bool candidate[BROKERS];
  size_t n = 0;
  for (size_t w = 0; n == 0; w++) {
    for (size_t b = 0; b < BROKERS; b++) {
      candidate[b] = has_queues(topic->publish, b) && fulfils(m, b, wishes[w], 0, tried, n_tried);
      n += candidate[b];
    }
  }
  size_t half = n < 2 ? 1 : n / 2, chosen = 0;
  while (!candidate[chosen] || place_of(m, candidate, chosen) != topic->turn % half) chosen++;
  int queues[64];
  size_t count = 0;
  for (size_t i = 0; i < topic->publish->n_queues; i++) {
    if (letter_of(topic->publish, i) == chosen) queues[count++] = (int)i;
  }
  int queue = queues[topic->turn / half % count];
  topic->turn++;
  return queue;
}

static int model_pick(model *m, model_topic *topic, rmq_publish *publish, int64_t now,
                      const size_t *tried, size_t n_tried) {
  static const wish wishes[][8] = {
      [RMQ_STRATEGY_OFF] = {{.untried = true}, {.not_last = true}, {false}},
      [RMQ_STRATEGY_4X] = {{.available = true, .untried = true},
                           {.available = true, .not_last = true},
                           {.available = true}},
      [RMQ_STRATEGY_5X] = {{.available = true, .untried = true},
                           {.available = true, .not_last = true},
                           {.reachable = true, .untried = true},
                           {.reachable = true, .not_last = true},
                           {.untried = true},
                           {.not_last = true},
                           {false}},
  };
  static const size_t counts[] = {3, 3, 7};
  topic->publish = publish;
  if (publish->n_queues == 0) return -1;
  topic->next %= publish->n_queues;
  for (size_t i = 0; i < counts[m->rules->strategy]; i++) {
    int queue = model_walk(m, topic, wishes[m->rules->strategy][i], now, tried, n_tried);
    if (queue >= 0) return queue;
  }
  return model_least_bad(m, topic, tried, n_tried);
}

/* ---- The comparison ---- */

typedef struct run {
  model m;
  rmq_faults *faults;
  rmq_chooser *choosers[TOPICS];
  rmq_publish *publishes[TOPICS];
  int64_t now;
} run;

static rmq_publish *random_publish(void) {
  char text[128] = "", order[128] = "";
  size_t len = 0, order_len = 0;
  for (int b = 0; b < BROKERS; b++) {
    if (chance(3) == 0) continue;
    int write = (int)chance(4), part = (int)chance(3);
    len += (size_t)snprintf(text + len, sizeof text - len, "%c%d%s ", 'a' + b, write,
                            chance(8) == 0 ? "-" : "");
    for (int i = 0; i < 2; i++) {
      order_len += (size_t)snprintf(order + order_len, sizeof order - order_len, "%c:%d;",
                                    'a' + (b + 3 * i) % BROKERS, part);
    }
  }
  return world_publish(text, chance(5) == 0 && order_len ? order : NULL);
}

static void try_pick(run *r) {
  size_t t = chance(TOPICS);
  size_t tried[3], n_tried = chance(2) ? 0 : chance(4);
  int32_t indexes[3];
  for (size_t i = 0; i < n_tried; i++) {
    tried[i] = chance(BROKERS);
    char name = (char)('a' + tried[i]);
    indexes[i] = rmq_publish_broker_find(r->publishes[t], rmq_slice_make(&name, 1));
  }
  rmq_circumstances choice = {{r->now}, indexes, n_tried};
  int expected = model_pick(&r->m, &r->m.topics[t], r->publishes[t], r->now, tried, n_tried);
  CHECK_INT(rmq_chooser_pick(r->choosers[t], r->publishes[t], &choice), expected);
}

static void try_note(run *r) {
  static const int64_t around[] = {0, 49, 50, 100, 549, 550, 1000, 1800, 2000, 3000, 5000, 15000};
  size_t b = chance(BROKERS);
  char name = (char)('a' + b);
  int64_t latency = around[chance(12)] * 1000 + (int64_t)chance(3);
  bool isolate = chance(3) == 0, reachable = chance(3) > 0;
  rmq_fault *fault = rmq_faults_hold(r->faults, rmq_slice_make(&name, 1), (rmq_mono){r->now});
  rmq_fault_note(fault, (rmq_mono){r->now}, latency, isolate, reachable);
  model_note(&r->m, b, r->now, latency, isolate, reachable);
  if (chance(10) == 0) {
    rmq_fault_forget(fault);
    r->m.brokers[b] = unknown;
  }
  rmq_fault_release(fault);
}

/* Often to the very end of an avoidance, or just before. */
static void go_on_in_time(run *r) {
  int64_t end = r->m.brokers[chance(BROKERS)].from_us;
  if (chance(2) && end > r->now + 1) {
    r->now = end - (int64_t)chance(2);
  } else {
    r->now += (int64_t)chance(3) * (int64_t)chance(4000000);
  }
}

static void check_table(const run *r) {
  for (size_t b = 0; b < BROKERS; b++) {
    char name = (char)('a' + b);
    bool available = rmq_faults_available(r->faults, rmq_slice_make(&name, 1), (rmq_mono){r->now});
    CHECK_INT(available, r->now >= r->m.brokers[b].from_us);
  }
  int noted = 0, expected = 0;
  for (size_t at = 0; rmq_faults_next(r->faults, &at);) noted++;
  for (size_t b = 0; b < BROKERS; b++) expected += r->m.brokers[b].noted;
  CHECK_INT(noted, expected);
}

static void one_step(run *r) {
  size_t what = chance(100);
  if (what < 60) {
    try_pick(r);
  } else if (what < 85) {
    try_note(r);
  } else if (what < 98) {
    go_on_in_time(r);
  } else {
    size_t t = chance(TOPICS);
    rmq_publish_unref(r->publishes[t]);
    r->publishes[t] = random_publish();
  }
}

static void one_run(rmq_strategy strategy, uint64_t seed) {
  chance_state = seed;
  run r = {.faults = world_faults(strategy), .now = 1000000};
  r.m.rules = &r.faults->rules;
  for (size_t b = 0; b < BROKERS; b++) r.m.brokers[b] = unknown;
  for (size_t t = 0; t < TOPICS; t++) {
    r.choosers[t] = rmq_chooser_new(r.faults, 0);
    r.publishes[t] = random_publish();
  }
  for (int i = 0; i < STEPS && check_failures == 0; i++) {
    one_step(&r);
    check_table(&r);
    if (check_failures)
      printf("strategy %d, seed %llu, step %d\n", strategy, (unsigned long long)seed, i);
  }
  for (size_t t = 0; t < TOPICS; t++) {
    rmq_chooser_free(r.choosers[t]);
    rmq_publish_unref(r.publishes[t]);
  }
  size_t noted = 0;
  for (size_t at = 0; rmq_faults_next(r.faults, &at);) noted++;
  CHECK_INT(rmq_map_count(r.faults->by_name), noted); /* nobody holds any more */
  rmq_faults_unref(r.faults);
}

static void off(void) {
  for (uint64_t seed = 1; seed <= SEEDS; seed++) one_run(RMQ_STRATEGY_OFF, seed);
}

static void rules_4x(void) {
  for (uint64_t seed = 1; seed <= SEEDS; seed++) one_run(RMQ_STRATEGY_4X, seed);
}

static void rules_5x(void) {
  for (uint64_t seed = 1; seed <= SEEDS; seed++) one_run(RMQ_STRATEGY_5X, seed);
}

int main(void) {
  check_run("off", off);
  check_run("4.x", rules_4x);
  check_run("5.x", rules_5x);
  return check_end();
}

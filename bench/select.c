/* What choosing a queue costs: among 2 brokers that are well, and among 1000 of which 990 are
 * avoided. Run it alone; it takes some seconds and no network. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "select/chooser.h"
#include "wire/codes.h"

enum { QUEUES = 4, CHOICES = 4000000, CHANGES = 20000, ROUNDS = 9 };

typedef struct topic {
  rmq_faults *faults;
  rmq_publish *publish;
  rmq_chooser *chooser;
  rmq_mono now;
} topic;

/* ---- Topics ---- */

static rmq_publish *make_publish(size_t brokers) {
  rmq_queue_data *queues = rmq_alloc_zero(brokers, sizeof *queues);
  rmq_broker_data *datas = rmq_alloc_zero(brokers, sizeof *datas);
  char(*names)[32] = rmq_alloc_zero(brokers, sizeof *names);
  rmq_broker_addr master = {.id = RMQ_MASTER_ID, .addr = rmq_slice_text("127.0.0.1:10911")};
  for (size_t i = 0; i < brokers; i++) {
    snprintf(names[i], sizeof names[i], "broker-%05u", (unsigned)i);
    rmq_slice name = rmq_slice_text(names[i]);
    queues[i] = (rmq_queue_data){name, QUEUES, QUEUES, RMQ_PERM_READ | RMQ_PERM_WRITE, 0};
    datas[i] = (rmq_broker_data){{0}, name, &master, 1};
  }
  rmq_route_data route = {
      .queues = queues, .n_queues = brokers, .brokers = datas, .n_brokers = brokers};
  rmq_publish *publish = rmq_publish_new(&route, 1, 0);
  free(queues);
  free(datas);
  free(names);
  return publish;
}

static int32_t pick(topic *t) {
  rmq_circumstances choice = {.now = t->now};
  return rmq_chooser_pick(t->chooser, t->publish, &choice);
}

/* Of every hundred brokers all but the first are avoided when `avoided`. */
static void make_topic(topic *t, rmq_strategy strategy, size_t brokers, bool avoided) {
  rmq_fault_rules rules;
  rmq_fault_rules_init(&rules, strategy);
  t->faults = rmq_faults_new(&rules, 1);
  t->publish = make_publish(brokers);
  t->chooser = rmq_chooser_new(t->faults, 0);
  t->now = (rmq_mono){1};
  pick(t);
  for (size_t i = 0; i < brokers; i++) {
    bool isolate = avoided && i % 100 != 0;
    rmq_fault_note(rmq_chooser_fault(t->chooser, (int32_t)i), t->now, 1000, isolate, true);
  }
}

static void free_topic(topic *t) {
  rmq_chooser_free(t->chooser);
  rmq_publish_unref(t->publish);
  rmq_faults_unref(t->faults);
}

/* ---- Measuring ---- */

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A choice, and with `note` also the note of its success. */
static double choices_ns(topic *t, bool note) {
  double start = nanoseconds();
  for (int i = 0; i < CHOICES; i++) {
    int32_t queue = pick(t);
    if (!note) continue;
    t->now.us++;
    int32_t broker = t->publish->queues[queue].broker;
    rmq_fault_note(rmq_chooser_fault(t->chooser, broker), t->now, 1000, false, true);
  }
  return (nanoseconds() - start) / CHOICES;
}

/* A choice just after a broker became available, or ceased to be (4.x). */
static double changes_ns(topic *t) {
  double start = nanoseconds();
  for (int i = 0; i < CHANGES; i++) {
    rmq_fault_note(rmq_chooser_fault(t->chooser, 1), t->now, 1000, i % 2 == 0, true);
    pick(t);
  }
  return (nanoseconds() - start) / CHANGES;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, compare);
  return values[ROUNDS / 2];
}

/* Both in turn, so that a machine that slows down slows both. */
static void compare_topics(const char *what, rmq_strategy strategy, bool note) {
  topic few, many;
  make_topic(&few, strategy, 2, false);
  make_topic(&many, strategy, 1000, true);
  double few_ns[ROUNDS], many_ns[ROUNDS], ratio[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    few_ns[i] = choices_ns(&few, note);
    many_ns[i] = choices_ns(&many, note);
    ratio[i] = many_ns[i] / few_ns[i];
  }
  double middle = median(ratio);
  printf("%-26s %8.2f %8.2f %8.2f  [%.2f, %.2f]\n", what, median(few_ns), median(many_ns), middle,
         ratio[0], ratio[ROUNDS - 1]);
  free_topic(&few);
  free_topic(&many);
}

static void show_changes(void) {
  topic few, many;
  make_topic(&few, RMQ_STRATEGY_4X, 2, false);
  make_topic(&many, RMQ_STRATEGY_4X, 1000, true);
  double few_ns = changes_ns(&few);
  printf("%-26s %8.2f %8.2f\n", "4.x, choice after a change", few_ns, changes_ns(&many));
  free_topic(&few);
  free_topic(&many);
}

int main(void) {
  printf("%-26s %8s %8s %8s\n", "ns of processor time", "2", "1000/990", "ratio");
  compare_topics("4.x, choice", RMQ_STRATEGY_4X, false);
  compare_topics("5.x, choice", RMQ_STRATEGY_5X, false);
  compare_topics("4.x, choice and note", RMQ_STRATEGY_4X, true);
  compare_topics("5.x, choice and note", RMQ_STRATEGY_5X, true);
  show_changes();
  return 0;
}

#include "select/chooser.h"

#include <stdlib.h>

#include "base/memory.h"

/* Neighbouring queues of one broker. Brokers are avoided as a whole, so a walk goes from run to
 * run: as a rule there is one for each broker. */
typedef struct run {
  int32_t first;
  int32_t end; /* behind the last queue */
  int32_t broker;
} run;

typedef struct run_list {
  run *runs; /* in the order of the queues */
  size_t n;
  size_t at; /* where the last walk ended; a guess, for the list may have been made anew */
} run_list;

struct rmq_chooser {
  rmq_faults *faults; /* referenced */
  int32_t next;       /* the queue with which the next walk begins */
  uint32_t turn;      /* counts the choices among avoided brokers (4.x) */
  run_list all;
  run_list available; /* those of `all` whose brokers were available when it was made */
  uint64_t seen;      /* faults->changes when it was made */
  rmq_mono until;     /* it is right until then, unless there are changes */
  /* Of the publish that was chosen from last; NULL before the first choice. */
  rmq_publish *publish; /* referenced */
  rmq_fault **entries;  /* one for each broker, held */
  int32_t *ranked;      /* all brokers, the best last time first (4.x) */
};

rmq_chooser *rmq_chooser_new(rmq_faults *faults, uint64_t random) {
  rmq_chooser *chooser = rmq_alloc_zero(1, sizeof *chooser);
  chooser->faults = rmq_faults_ref(faults);
  chooser->next = (int32_t)(random >> 33);
  chooser->turn = (uint32_t)random;
  return chooser;
}

/* ---- The queues chosen from ---- */

static void drop_publish(rmq_publish *publish, rmq_fault **entries) {
  if (!publish) return;
  for (size_t i = 0; i < publish->n_brokers; i++) {
    entries[i]->choosers--;
    rmq_fault_release(entries[i]);
  }
  free(entries);
  rmq_publish_unref(publish);
}

void rmq_chooser_free(rmq_chooser *chooser) {
  if (!chooser) return;
  drop_publish(chooser->publish, chooser->entries);
  free(chooser->all.runs);
  free(chooser->available.runs);
  free(chooser->ranked);
  rmq_faults_unref(chooser->faults);
  free(chooser);
}

static bool same_broker(const rmq_publish *publish, size_t a, size_t b) {
  return publish->queues[a].broker == publish->queues[b].broker;
}

static void find_runs(rmq_chooser *chooser, const rmq_publish *publish) {
  size_t n = 0;
  for (size_t i = 0; i < publish->n_queues; i++) n += i == 0 || !same_broker(publish, i - 1, i);
  run_list *all = &chooser->all, *available = &chooser->available;
  all->runs = rmq_realloc(all->runs, (n + 1) * sizeof *all->runs);
  available->runs = rmq_realloc(available->runs, (n + 1) * sizeof *available->runs);
  all->n = available->n = 0;
  for (size_t i = 0; i < publish->n_queues; i++) {
    if (i == 0 || !same_broker(publish, i - 1, i)) {
      all->runs[all->n++] = (run){.first = (int32_t)i, .broker = publish->queues[i].broker};
    }
    all->runs[all->n - 1].end = (int32_t)i + 1;
  }
}

/* The new entries are held before the old ones are let go, so that a broker of both stays. */
static void adopt(rmq_chooser *chooser, rmq_publish *publish, rmq_mono now) {
  rmq_publish *old_publish = chooser->publish;
  rmq_fault **old_entries = chooser->entries;
  size_t n = publish->n_brokers;
  chooser->publish = rmq_publish_ref(publish);
  chooser->entries = rmq_alloc_zero(n + 1, sizeof(rmq_fault *));
  chooser->ranked = rmq_realloc(chooser->ranked, (n + 1) * sizeof *chooser->ranked);
  for (size_t i = 0; i < n; i++) {
    rmq_slice name = rmq_slice_text(publish->brokers[i].name);
    chooser->entries[i] = rmq_faults_hold(chooser->faults, name, now);
    chooser->entries[i]->choosers++;
    chooser->ranked[i] = (int32_t)i;
  }
  drop_publish(old_publish, old_entries);
  find_runs(chooser, publish);
  if (publish->n_queues > 0) chooser->next %= (int32_t)publish->n_queues;
  chooser->until = (rmq_mono){INT64_MIN};
}

/* Makes the list of what is available, unless the one that is there is right. */
static void freshen(rmq_chooser *chooser, rmq_mono now) {
  if (chooser->seen == chooser->faults->changes && rmq_mono_before(now, chooser->until)) return;
  run_list *available = &chooser->available;
  available->n = 0;
  chooser->until = RMQ_NEVER;
  for (size_t i = 0; i < chooser->all.n; i++) {
    const run *r = &chooser->all.runs[i];
    const rmq_fault *fault = chooser->entries[r->broker];
    if (rmq_fault_available(fault, now)) {
      available->runs[available->n++] = *r;
    } else {
      chooser->until = rmq_mono_min(chooser->until, fault->available_from);
    }
  }
  chooser->seen = chooser->faults->changes;
}

/* ---- Whom a retry spares ---- */

typedef enum spare { SPARE_NONE, SPARE_LAST, SPARE_TRIED } spare;

static bool is_spared(const rmq_circumstances *choice, spare whom, int32_t broker) {
  size_t from = 0;
  if (whom == SPARE_NONE || choice->n_tried == 0) return false;
  if (whom == SPARE_LAST) from = choice->n_tried - 1;
  for (size_t i = from; i < choice->n_tried; i++) {
    if (choice->tried[i] == broker) return true;
  }
  return false;
}

/* The first step of those that a choice tries one after the other, down to `least`. */
static spare most_spared(const rmq_circumstances *choice, spare least) {
  return choice->n_tried > 0 ? SPARE_TRIED : least;
}

/* ---- Walking ---- */

/* True when a walk that begins with queue `next` begins in run `at`. */
static bool begins_in(const run_list *list, size_t at, int32_t next) {
  return next < list->runs[at].end && (at == 0 || next >= list->runs[at - 1].end);
}

/* The run in which the queue `next` is, or the next one in the list. `list` is not empty. */
static size_t run_from(const run_list *list, int32_t next) {
  size_t at = list->at;
  if (at < list->n && begins_in(list, at, next)) return at;
  if (at + 1 < list->n && begins_in(list, at + 1, next)) return at + 1;
  size_t low = 0, high = list->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->runs[middle].end <= next) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < list->n ? low : 0;
}

typedef struct filter {
  const rmq_circumstances *choice;
  spare whom;
  bool reachable; /* only reachable brokers */
} filter;

static bool passes(const rmq_chooser *chooser, const filter *f, int32_t broker) {
  if (is_spared(f->choice, f->whom, broker)) return false;
  return !f->reachable || chooser->entries[broker]->reachable;
}

/* The next queue of a list whose broker passes, or -1. */
static int32_t walk(rmq_chooser *chooser, run_list *list, const filter *f) {
  if (list->n == 0) return -1;
  int32_t next = chooser->next;
  size_t at = run_from(list, next);
  for (size_t i = 0; i < list->n; i++) {
    const run *r = &list->runs[at];
    if (passes(chooser, f, r->broker)) {
      int32_t queue = next >= r->first && next < r->end ? next : r->first;
      chooser->next = (size_t)queue + 1 < chooser->publish->n_queues ? queue + 1 : 0;
      list->at = at;
      return queue;
    }
    at = at + 1 < list->n ? at + 1 : 0;
  }
  return -1;
}

/* The same, sparing as many of the brokers that were tried as can be. */
static int32_t walk_sparing(rmq_chooser *chooser, run_list *list, filter f, spare least) {
  int32_t queue = -1;
  for (f.whom = most_spared(f.choice, least); queue < 0; f.whom--) {
    queue = walk(chooser, list, &f);
    if (f.whom == least) break;
  }
  return queue;
}

/* ---- When no broker is available, before 5.1.4 ---- */

/* True when broker `a` is to be ranked before `b`. */
static bool is_better(const rmq_chooser *chooser, int32_t a, int32_t b) {
  const rmq_fault *x = chooser->entries[a], *y = chooser->entries[b];
  if (x->counted_us != y->counted_us) return x->counted_us < y->counted_us;
  if (x->available_from.us != y->available_from.us) {
    return rmq_mono_before(x->available_from, y->available_from);
  }
  return a < b;
}

/* Puts the ranking in order: by insertion, because it is nearly in order since the last time. */
static void rank(rmq_chooser *chooser) {
  int32_t *ranked = chooser->ranked;
  for (size_t i = 1; i < chooser->publish->n_brokers; i++) {
    int32_t broker = ranked[i];
    size_t at = i;
    for (; at > 0 && is_better(chooser, broker, ranked[at - 1]); at--) ranked[at] = ranked[at - 1];
    ranked[at] = broker;
  }
}

/* The broker at place `place` among those in the ranking that are not spared. */
static int32_t ranked_at(const rmq_chooser *chooser, const rmq_circumstances *choice, spare whom,
                         size_t place) {
  size_t i = 0;
  for (;; i++) {
    if (is_spared(choice, whom, chooser->ranked[i])) continue;
    if (place-- == 0) return chooser->ranked[i];
  }
}

/* A broker's queue number `number`, counted round; -1 if it had none, which no publish says. */
static int32_t queue_of(const rmq_chooser *chooser, int32_t broker, size_t number) {
  const run_list *all = &chooser->all;
  size_t count = 0;
  for (size_t i = 0; i < all->n; i++) {
    if (all->runs[i].broker == broker) count += (size_t)(all->runs[i].end - all->runs[i].first);
  }
  if (count == 0) return -1;
  number %= count;
  size_t i = 0;
  for (;; i++) {
    if (all->runs[i].broker != broker) continue;
    size_t here = (size_t)(all->runs[i].end - all->runs[i].first);
    if (number < here) return all->runs[i].first + (int32_t)number;
    number -= here;
  }
}

static int32_t pick_least_bad(rmq_chooser *chooser, const rmq_circumstances *choice) {
  rmq_faults_forget_unused(chooser->faults);
  rank(chooser);
  size_t n = chooser->publish->n_brokers, left = 0;
  spare whom = most_spared(choice, SPARE_NONE);
  for (;; whom--) {
    left = 0;
    for (size_t i = 0; i < n; i++) left += !is_spared(choice, whom, (int32_t)i);
    if (left > 0) break; /* at the latest when nobody is spared */
  }
  size_t half = left < 2 ? 1 : left / 2;
  size_t turn = chooser->turn++;
  return queue_of(chooser, ranked_at(chooser, choice, whom, turn % half), turn / half);
}

/* ---- The choice ---- */

static int32_t pick_any(rmq_chooser *chooser, const rmq_circumstances *choice) {
  return walk_sparing(chooser, &chooser->all, (filter){.choice = choice}, SPARE_NONE);
}

static int32_t pick_4x(rmq_chooser *chooser, const rmq_circumstances *choice) {
  freshen(chooser, choice->now);
  filter any = {.choice = choice};
  int32_t queue = walk_sparing(chooser, &chooser->available, any, SPARE_NONE);
  return queue >= 0 ? queue : pick_least_bad(chooser, choice);
}

static int32_t pick_5x(rmq_chooser *chooser, const rmq_circumstances *choice) {
  freshen(chooser, choice->now);
  filter any = {.choice = choice}, reachable = {.choice = choice, .reachable = true};
  int32_t queue = walk_sparing(chooser, &chooser->available, any, SPARE_LAST);
  if (queue < 0) queue = walk_sparing(chooser, &chooser->all, reachable, SPARE_LAST);
  return queue >= 0 ? queue : pick_any(chooser, choice);
}

int32_t rmq_chooser_pick(rmq_chooser *chooser, rmq_publish *publish,
                         const rmq_circumstances *choice) {
  if (chooser->publish != publish) adopt(chooser, publish, choice->now);
  if (publish->n_queues == 0) return -1;
  switch (chooser->faults->rules.strategy) {
    case RMQ_STRATEGY_4X:
      return pick_4x(chooser, choice);
    case RMQ_STRATEGY_5X:
      return pick_5x(chooser, choice);
    case RMQ_STRATEGY_OFF:
      break;
  }
  return pick_any(chooser, choice);
}

rmq_fault *rmq_chooser_fault(const rmq_chooser *chooser, int32_t broker) {
  return chooser->entries[broker];
}

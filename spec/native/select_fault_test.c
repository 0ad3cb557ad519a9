/* Which brokers are avoided, and which queue is chosen then. */
#include "check.h"
#include "select_world.h"

/* One topic with its chooser, and the table. */
typedef struct world {
  rmq_faults *faults;
  rmq_publish *publish;
  rmq_chooser *chooser;
} world;

static world make(rmq_strategy strategy, const char *brokers) {
  world w = {world_faults(strategy), world_publish(brokers, NULL), NULL};
  w.chooser = rmq_chooser_new(w.faults, 0);
  return w;
}

static void end(world *w) {
  rmq_publish_unref(w->publish);
  rmq_faults_unref(w->faults);
  rmq_chooser_free(w->chooser); /* last: it has references of its own */
}

/* "a0": what is chosen at a time, after failures of the brokers in `tried`. */
static const char *pick(world *w, rmq_mono now, const char *tried) {
  static char text[16];
  int32_t indexes[8];
  rmq_circumstances choice = {.now = now, .tried = indexes, .n_tried = strlen(tried)};
  for (size_t i = 0; i < choice.n_tried; i++) {
    indexes[i] = rmq_publish_broker_find(w->publish, rmq_slice_make(tried + i, 1));
  }
  int32_t at = rmq_chooser_pick(w->chooser, w->publish, &choice);
  if (at < 0) return "none";
  const rmq_publish_queue *queue = &w->publish->queues[at];
  snprintf(text, sizeof text, "%s%d", w->publish->brokers[queue->broker].name, queue->id);
  return text;
}

/* The next choices at one time, as "a0 a1 b0". */
static void check_picks(world *w, rmq_mono now, const char *tried, const char *expected) {
  char text[256] = "";
  size_t n = 1, len = 0;
  for (const char *at = expected; *at; at++) n += *at == ' ';
  for (size_t i = 0; i < n; i++) {
    len +=
        (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "", pick(w, now, tried));
  }
  if (strcmp(text, expected) != 0) printf("chosen are \"%s\", not \"%s\"\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
}

/* An attempt that ends at `now`. */
static void note(world *w, const char *broker, rmq_mono now, int64_t ms, bool isolate,
                 bool reachable) {
  rmq_fault *fault = rmq_faults_hold(w->faults, rmq_slice_text(broker), now);
  rmq_fault_note(fault, now, ms * 1000, isolate, reachable);
  rmq_fault_release(fault);
}

static bool is_available(const world *w, const char *broker, rmq_mono now) {
  return rmq_faults_available(w->faults, rmq_slice_text(broker), now);
}

/* ---- The table ---- */

static void ends_exactly_at_the_table_value(void) {
  for (rmq_strategy strategy = RMQ_STRATEGY_4X; strategy <= RMQ_STRATEGY_5X; strategy++) {
    world w = make(strategy, "a1 b1");
    const rmq_fault_rules *rules = &w.faults->rules;
    for (size_t i = 0; i < rules->n; i++) {
      int64_t start = (int64_t)i * 1000000, avoided = rules->not_available_ms[i];
      note(&w, "a", world_at(start, 0), rules->latency_max_ms[i], false, true);
      if (avoided == 0) {
        CHECK(is_available(&w, "a", world_at(start, 0)));
        continue;
      }
      CHECK(!is_available(&w, "a", world_at(start, 0)));
      check_picks(&w, world_at(start, 0), "", "b0 b0");
      check_picks(&w, world_at(start + avoided, -1), "", "b0 b0");
      CHECK(!is_available(&w, "a", world_at(start + avoided, -1)));
      check_picks(&w, world_at(start + avoided, 0), "", "a0 b0");
      CHECK(is_available(&w, "a", world_at(start + avoided, 0)));
    }
    end(&w);
  }
}

static void last_attempt_decides_4x(void) {
  world w = make(RMQ_STRATEGY_4X, "a1 b1");
  note(&w, "a", world_at(0, 0), 10, true, true);
  check_picks(&w, world_at(599999, 999), "", "b0 b0");
  note(&w, "a", world_at(1, 0), 550, false, true); /* a shorter avoidance takes its place */
  check_picks(&w, world_at(30000, 999), "", "b0");
  check_picks(&w, world_at(30001, 0), "", "a0 b0");
  note(&w, "a", world_at(40000, 0), 10, true, true);
  check_picks(&w, world_at(40000, 0), "", "b0 b0");
  note(&w, "a", world_at(40001, 0), 10, false, true); /* a fast success ends it at once */
  check_picks(&w, world_at(40001, 0), "", "a0 b0");
  end(&w);
}

static void only_forward_5x(void) {
  world w = make(RMQ_STRATEGY_5X, "a1 b1");
  note(&w, "a", world_at(0, 0), 10, true, true);
  note(&w, "a", world_at(1, 0), 10, false, true);  /* a fast success does not end it */
  note(&w, "a", world_at(2, 0), 550, false, true); /* nor does a shorter avoidance */
  check_picks(&w, world_at(9999, 999), "", "b0 b0");
  check_picks(&w, world_at(10000, 0), "", "a0 b0");
  note(&w, "a", world_at(10000, 0), 10, true, true);
  note(&w, "a", world_at(15000, 0), 10, true, true); /* a longer one does */
  check_picks(&w, world_at(24999, 999), "", "b0 b0");
  check_picks(&w, world_at(25000, 0), "", "a0 b0");
  end(&w);
}

static void notes_what_is_shown(void) {
  world w = make(RMQ_STRATEGY_5X, "a1 b1 c1");
  size_t at = 0;
  CHECK(!rmq_faults_next(w.faults, &at));
  pick(&w, world_at(0, 0), ""); /* held, but nothing noted */
  at = 0;
  CHECK(!rmq_faults_next(w.faults, &at));
  note(&w, "b", world_at(0, 0), 600, false, true);
  note(&w, "a", world_at(0, 0), 7, true, false);
  at = 0;
  const rmq_fault *fault = rmq_faults_next(w.faults, &at);
  CHECK(strcmp(fault->name, "a") == 0);
  CHECK_INT(fault->latency_us, 7000);
  CHECK(!fault->reachable);
  CHECK_INT(rmq_fault_avoided_us(fault, world_at(9000, 1)), 999999);
  CHECK_INT(rmq_fault_avoided_us(fault, world_at(10000, 1)), 0);
  fault = rmq_faults_next(w.faults, &at);
  CHECK(strcmp(fault->name, "b") == 0);
  CHECK_INT(fault->latency_us, 600000);
  CHECK(fault->reachable);
  CHECK(!rmq_faults_next(w.faults, &at));
  end(&w);
}

static void unknown_and_forgotten_ones_are_available(void) {
  world w = make(RMQ_STRATEGY_4X, "a1 b1");
  note(&w, "a", world_at(0, 0), 10, true, false);
  CHECK(!is_available(&w, "a", world_at(1, 0)));
  CHECK(is_available(&w, "b", world_at(1, 0)));
  check_picks(&w, world_at(1, 0), "", "b0 b0");
  rmq_fault_forget(rmq_chooser_fault(w.chooser, 0));
  CHECK(rmq_chooser_fault(w.chooser, 0)->reachable);
  CHECK(is_available(&w, "a", world_at(1, 0)));
  check_picks(&w, world_at(1, 0), "", "a0 b0");
  size_t at = 0;
  CHECK(!rmq_faults_next(w.faults, &at));
  end(&w);
}

static void off_notes_nothing(void) {
  world w = make(RMQ_STRATEGY_OFF, "a1 b1");
  note(&w, "a", world_at(0, 0), 99999, true, false);
  size_t at = 0;
  CHECK(!rmq_faults_next(w.faults, &at));
  check_picks(&w, world_at(0, 0), "", "a0 b0 a0");
  CHECK_INT(rmq_map_count(w.faults->by_name), 2); /* the two that the chooser holds */
  end(&w);
}

/* Brokers come and go with the routes; what is noted of them does not pile up. */
static void does_not_pile_up(void) {
  world w = make(RMQ_STRATEGY_4X, "a1 b1");
  check_picks(&w, world_at(0, 0), "", "a0");
  note(&w, "a", world_at(0, 0), 10, false, true);
  note(&w, "stays", world_at(0, 0), 10, true, true);
  for (int i = 0; i < 5000; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    note(&w, name, world_at(i, 0), 10, false, true);
  }
  CHECK(rmq_map_count(w.faults->by_name) < 200);
  CHECK(!is_available(&w, "stays", world_at(5000, 0))); /* an avoidance is kept to its end */
  CHECK(rmq_chooser_fault(w.chooser, 0)->noted);        /* and so is who is in use */
  end(&w);
}

/* ---- The choice ---- */

static void goes_round_among_the_available(void) {
  for (rmq_strategy strategy = RMQ_STRATEGY_4X; strategy <= RMQ_STRATEGY_5X; strategy++) {
    world w = make(strategy, "a2 b2 c1 d2");
    check_picks(&w, world_at(0, 0), "", "a0 a1 b0 b1 c0 d0 d1 a0");
    note(&w, "b", world_at(0, 0), 1, true, true);
    note(&w, "c", world_at(0, 0), 1, true, true);
    /* Nobody gets the share of those left out: d0 follows them and comes as often as the others. */
    check_picks(&w, world_at(0, 0), "", "a1 d0 d1 a0 a1 d0 d1 a0");
    end(&w);
  }
}

static void starts_by_chance(void) {
  rmq_faults *faults = world_faults(RMQ_STRATEGY_4X);
  rmq_publish *publish = world_publish("a3 b2", NULL);
  int seen[5] = {0};
  for (uint64_t i = 0; i < 64; i++) {
    rmq_chooser *chooser = rmq_chooser_new(faults, i * 0x9e3779b97f4a7c15u);
    seen[rmq_chooser_pick(chooser, publish, &(rmq_circumstances){.now = world_at(0, 0)})]++;
    rmq_chooser_free(chooser);
  }
  for (int i = 0; i < 5; i++) CHECK(seen[i] > 0);
  rmq_publish_unref(publish);
  rmq_faults_unref(faults);
}

static void nothing_to_choose(void) {
  for (rmq_strategy strategy = RMQ_STRATEGY_OFF; strategy <= RMQ_STRATEGY_5X; strategy++) {
    world w = make(strategy, "a4-");
    CHECK_INT(w.publish->n_queues, 0);
    check_picks(&w, world_at(0, 0), "", "none");
    check_picks(&w, world_at(0, 0), "a", "none");
    end(&w);
  }
}

/* Three choices, each sparing the one before, reach three brokers, twice. */
static void retries_reach_every_broker(void) {
  for (rmq_strategy strategy = RMQ_STRATEGY_OFF; strategy <= RMQ_STRATEGY_5X; strategy++) {
    world w = make(strategy, "a1 b1 c1");
    check_picks(&w, world_at(0, 0), "", "a0");
    check_picks(&w, world_at(0, 0), "a", "b0");
    check_picks(&w, world_at(0, 0), "ab", "c0");
    check_picks(&w, world_at(0, 0), "", "a0");
    check_picks(&w, world_at(0, 0), "cb", "a0");        /* tried ones are spared though available */
    check_picks(&w, world_at(0, 0), "abc", "b0 a0 b0"); /* then all but the last */
    check_picks(&w, world_at(0, 0), "x", "c0");         /* who has left the route spares nobody */
    end(&w);
  }
}

static void retries_on_one_broker(void) {
  world w = make(RMQ_STRATEGY_4X, "a2 b2");
  note(&w, "b", world_at(0, 0), 1, true, true);
  check_picks(&w, world_at(0, 0), "a", "a0 a1"); /* the same one, for it is available */
  end(&w);
  for (rmq_strategy strategy = RMQ_STRATEGY_OFF; strategy <= RMQ_STRATEGY_5X; strategy++) {
    w = make(strategy, "a2");
    note(&w, "a", world_at(0, 0), 1, true, false);
    check_picks(&w, world_at(0, 0), "a", "a0 a1 a0");
    end(&w);
  }
}

/* A sample of 550 ms (2 s in the 5.x table), a read-only broker, the last broker. */
static void a_slow_and_a_read_only_broker(void) {
  world w = make(RMQ_STRATEGY_5X, "a2 b2 c4-");
  note(&w, "a", world_at(0, 0), 550, false, true);
  check_picks(&w, world_at(0, 0), "", "b0 b1 b0");
  check_picks(&w, world_at(1999, 999), "", "b1 b0");
  check_picks(&w, world_at(2000, 0), "", "b1 a0 a1 b0");
  /* Never the one that failed last as long as another is available. */
  check_picks(&w, world_at(2000, 0), "a", "b1 b0 b1");
  check_picks(&w, world_at(2000, 0), "b", "a0 a1 a0");
  /* All avoided: the reachable ones; c, which cannot be written to, never comes. */
  note(&w, "c", world_at(3000, 0), 1, false, true);
  note(&w, "a", world_at(3000, 0), 1, true, false);
  note(&w, "b", world_at(3000, 0), 1, true, true);
  check_picks(&w, world_at(3000, 0), "", "b0 b1 b0");
  /* None reachable: plain round robin. */
  note(&w, "b", world_at(3001, 0), 1, true, false);
  check_picks(&w, world_at(3001, 0), "", "b1 a0 a1 b0 b1");
  /* To the microsecond at which the first is available again. */
  check_picks(&w, world_at(12999, 999), "", "a0 a1 b0");
  check_picks(&w, world_at(13000, 0), "", "a0 a1 a0");
  check_picks(&w, world_at(13001, 0), "", "a1 b0 b1 a0");
  end(&w);
}

static void reachable_5x(void) {
  world w = make(RMQ_STRATEGY_5X, "a1 b1 c1");
  note(&w, "a", world_at(0, 0), 1, true, false);
  note(&w, "b", world_at(0, 0), 1, true, true);
  note(&w, "c", world_at(0, 0), 1, true, true);
  check_picks(&w, world_at(0, 0), "", "b0 c0 b0");
  check_picks(&w, world_at(0, 0), "b", "c0 c0");
  check_picks(&w, world_at(0, 0), "bc", "b0 b0"); /* reachable and not the last, though tried */
  note(&w, "b", world_at(0, 0), 1, true, false);
  check_picks(&w, world_at(0, 0), "c", "a0 b0 a0"); /* nobody reachable but the last: any other */
  rmq_fault_note_probe(rmq_chooser_fault(w.chooser, 1));
  check_picks(&w, world_at(0, 0), "c", "b0 b0"); /* a probe has found it */
  /* Available again, reachable or not. */
  check_picks(&w, world_at(10000, 0), "", "c0 a0 b0 c0");
  end(&w);
}

/* With 4.x and nobody available: the better half by latency, then by the end of the avoidance. */
static void least_bad_4x(void) {
  world w = make(RMQ_STRATEGY_4X, "a2 b2 c2 d2");
  note(&w, "a", world_at(0, 0), 2, true, true); /* a failure counts as 30000 ms */
  note(&w, "b", world_at(1, 0), 900, false, true);
  note(&w, "c", world_at(2, 0), 3000, false, true);
  note(&w, "d", world_at(3, 0), 900, false, true);
  check_picks(&w, world_at(3, 0), "", "b0 d0 b1 d1 b0");
  note(&w, "b", world_at(4, 0), 950, false, true);
  note(&w, "d", world_at(5, 0), 990, false, true);
  note(&w, "c", world_at(6, 0), 600, false, true);
  check_picks(&w, world_at(6, 0), "", "b0 c1 b1 c0"); /* the turn goes on; c is better than b */
  /* A retry: of the untried a, b, d the better half is b. */
  check_picks(&w, world_at(6, 0), "c", "b1 b0");
  check_picks(&w, world_at(6, 0), "cb", "d1 d0");
  check_picks(&w, world_at(6, 0), "abdc", "b1 b0"); /* all tried: all but the last */
  /* The first one that is available again gets all. */
  check_picks(&w, world_at(30004, -1), "", "b1");
  check_picks(&w, world_at(30004, 0), "", "b0 b1 b0");
  end(&w);
}

static void forgets_who_has_no_queues_4x(void) {
  world w = make(RMQ_STRATEGY_4X, "a2 b2 c4-");
  note(&w, "c", world_at(0, 0), 1, true, true);
  note(&w, "a", world_at(0, 0), 1, true, true);
  check_picks(&w, world_at(0, 0), "", "b0");
  CHECK(!is_available(&w, "c", world_at(0, 0))); /* not needed so far */
  note(&w, "b", world_at(0, 0), 1, true, true);
  pick(&w, world_at(0, 0), "");
  CHECK(is_available(&w, "c", world_at(0, 0)));
  CHECK(!is_available(&w, "a", world_at(0, 0)));
  CHECK_INT(rmq_map_count(w.faults->by_name), 2);
  end(&w);
}

static void another_topics_brokers_are_not_forgotten(void) {
  world w = make(RMQ_STRATEGY_4X, "a2");
  rmq_publish *other = world_publish("b2 d2", NULL);
  rmq_chooser *chooser = rmq_chooser_new(w.faults, 0);
  rmq_circumstances choice = {.now = world_at(0, 0)};
  note(&w, "b", world_at(0, 0), 1, true, true);
  CHECK_INT(rmq_chooser_pick(chooser, other, &choice), 2);
  note(&w, "a", world_at(0, 0), 1, true, true);
  check_picks(&w, world_at(0, 0), "", "a0 a1 a0");
  CHECK(!is_available(&w, "b", world_at(0, 0)));
  CHECK_INT(rmq_chooser_pick(chooser, other, &choice), 3);
  CHECK_INT(rmq_chooser_pick(chooser, other, &choice), 2);
  rmq_chooser_free(chooser);
  rmq_publish_unref(other);
  end(&w);
}

/* A new route keeps what is known of its brokers. */
static void a_new_route(void) {
  world w = make(RMQ_STRATEGY_4X, "a2 b2");
  note(&w, "b", world_at(0, 0), 1, true, true);
  check_picks(&w, world_at(0, 0), "", "a0 a1");
  rmq_publish_unref(w.publish);
  w.publish = world_publish("b2 c1", NULL);
  check_picks(&w, world_at(1, 0), "", "c0 c0");
  CHECK_INT(rmq_map_count(w.faults->by_name), 2); /* nothing was noted of a */
  rmq_publish_unref(w.publish);
  w.publish = world_publish("a1 c1", NULL);
  check_picks(&w, world_at(1, 0), "", "a0 c0");
  CHECK(!is_available(&w, "b", world_at(1, 0))); /* it may come back */
  rmq_publish_unref(w.publish);
  w.publish = world_publish("b1", NULL);
  CHECK(strcmp(pick(&w, world_at(600000, 0), ""), "b0") == 0);
  end(&w);
}

static void an_ordered_topic(void) {
  rmq_faults *faults = world_faults(RMQ_STRATEGY_4X);
  world w = {faults, world_publish("a1 b1", "b:2;a:1;b:1"), rmq_chooser_new(faults, 0)};
  check_picks(&w, world_at(0, 0), "", "b0 b1 a0 b0 b0");
  check_picks(&w, world_at(0, 0), "b", "a0");
  check_picks(&w, world_at(0, 0), "a", "b0 b0 b1");
  note(&w, "a", world_at(0, 0), 1, true, true);
  note(&w, "b", world_at(0, 0), 900, false, true);
  int seen[4] = {0};
  for (int i = 0; i < 6; i++) {
    seen[rmq_chooser_pick(w.chooser, w.publish, &(rmq_circumstances){.now = world_at(0, 0)})]++;
  }
  CHECK(seen[0] == 2 && seen[1] == 2 && seen[2] == 0 && seen[3] == 2);
  end(&w);
}

/* ---- Who is to be probed ---- */

static int count_due(const world *w, rmq_mono now) {
  int n = 0;
  for (size_t at = 0; rmq_faults_next_due(w->faults, now, &at);) n++;
  return n;
}

static void probes(void) {
  world w = make(RMQ_STRATEGY_5X, "a1 b1");
  check_picks(&w, world_at(0, 0), "", "a0");
  CHECK_INT(count_due(&w, world_at(0, 0)), 0);
  note(&w, "a", world_at(0, 0), 1, true, false);
  note(&w, "b", world_at(1000, 0), 1, false, true);
  CHECK_INT(count_due(&w, world_at(999, 999)), 1); /* a; b was met later */
  CHECK_INT(count_due(&w, world_at(1000, 0)), 1);
  CHECK_INT(count_due(&w, world_at(2999, 998)), 0); /* a at 2999.999, b at 3000 */
  CHECK_INT(count_due(&w, world_at(2999, 999)), 1);
  CHECK_INT(count_due(&w, world_at(3000, 0)), 1);
  note(&w, "a", world_at(3000, 0), 1, true, false); /* another failure does not hasten a probe */
  CHECK_INT(count_due(&w, world_at(4999, 998)), 0);
  CHECK_INT(count_due(&w, world_at(6000, 0)), 2);
  /* Those that have no address any more are forgotten during the walk. */
  rmq_fault *fault;
  int n = 0;
  for (size_t at = 0; (fault = rmq_faults_next_due(w.faults, world_at(9000, 0), &at)); n++) {
    rmq_fault_forget(fault);
  }
  CHECK_INT(n, 2);
  CHECK(is_available(&w, "a", world_at(9000, 0)));
  CHECK_INT(count_due(&w, world_at(20000, 0)), 0);
  end(&w);
}

int main(void) {
  check_run("an avoidance ends exactly at the table's value", ends_exactly_at_the_table_value);
  check_run("4.x: the last attempt decides", last_attempt_decides_4x);
  check_run("5.x: only forward", only_forward_5x);
  check_run("what is shown", notes_what_is_shown);
  check_run("unknown and forgotten ones are available", unknown_and_forgotten_ones_are_available);
  check_run("off: nothing is noted", off_notes_nothing);
  check_run("nothing piles up", does_not_pile_up);
  check_run("goes round among the available", goes_round_among_the_available);
  check_run("starts by chance", starts_by_chance);
  check_run("nothing to choose", nothing_to_choose);
  check_run("retries reach every broker", retries_reach_every_broker);
  check_run("retries on one broker", retries_on_one_broker);
  check_run("a slow and a read-only broker", a_slow_and_a_read_only_broker);
  check_run("5.x: reachable ones", reachable_5x);
  check_run("4.x: the least bad", least_bad_4x);
  check_run("4.x: forgets who has no queues", forgets_who_has_no_queues_4x);
  check_run("another topic's brokers are not forgotten", another_topics_brokers_are_not_forgotten);
  check_run("a new route", a_new_route);
  check_run("an ordered topic", an_ordered_topic);
  check_run("probes", probes);
  return check_end();
}

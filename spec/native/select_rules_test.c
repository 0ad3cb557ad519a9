/* The tables that say for how long a broker is avoided. */
#include "base/error.h"
#include "check.h"
#include "select/rules.h"

static rmq_fault_rules rules_of(rmq_strategy strategy) {
  rmq_fault_rules rules;
  rmq_fault_rules_init(&rules, strategy);
  return rules;
}

/* Milliseconds of latency, and for how many the broker is avoided. */
typedef struct row {
  int64_t latency, avoided;
} row;

static void check_rows(const rmq_fault_rules *rules, const row *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    CHECK_INT(rmq_fault_rules_duration(rules, rows[i].latency * 1000), rows[i].avoided);
  }
}

static void table_4x(void) {
  static const row rows[] = {
      {0, 0},          {49, 0},         {50, 0},          {99, 0},           {100, 0},
      {549, 0},        {550, 30000},    {999, 30000},     {1000, 60000},     {1999, 60000},
      {2000, 120000},  {2999, 120000},  {3000, 180000},   {14999, 180000},   {15000, 600000},
      {15001, 600000}, {86400, 600000}, {864000, 600000}, {8640000, 600000},
  };
  rmq_fault_rules rules = rules_of(RMQ_STRATEGY_4X);
  check_rows(&rules, rows, sizeof rows / sizeof *rows);
  CHECK_INT(rmq_fault_rules_isolation(&rules), 600000);
}

static void table_5x(void) {
  static const row rows[] = {
      {0, 0},        {49, 0},       {50, 0},        {99, 0},        {100, 0},       {549, 0},
      {550, 2000},   {1799, 2000},  {1800, 5000},   {2999, 5000},   {3000, 6000},   {4999, 6000},
      {5000, 10000}, {9999, 10000}, {14999, 10000}, {15000, 30000}, {86400, 30000},
  };
  rmq_fault_rules rules = rules_of(RMQ_STRATEGY_5X);
  check_rows(&rules, rows, sizeof rows / sizeof *rows);
  CHECK_INT(rmq_fault_rules_isolation(&rules), 10000);
}

/* A step begins at its very microsecond. */
static void boundaries(void) {
  for (rmq_strategy strategy = RMQ_STRATEGY_4X; strategy <= RMQ_STRATEGY_5X; strategy++) {
    rmq_fault_rules rules = rules_of(strategy);
    CHECK_INT(rules.n, 7);
    for (size_t i = 0; i < rules.n; i++) {
      int64_t step_us = rules.latency_max_ms[i] * 1000;
      int64_t below = i ? rules.not_available_ms[i - 1] : 0;
      CHECK_INT(rmq_fault_rules_duration(&rules, step_us - 1), below);
      CHECK_INT(rmq_fault_rules_duration(&rules, step_us), rules.not_available_ms[i]);
      CHECK_INT(rmq_fault_rules_duration(&rules, step_us + 1), rules.not_available_ms[i]);
    }
  }
}

static int set(rmq_fault_rules *rules, const char *latency, const char *duration, char why[200]) {
  why[0] = '\0';
  return rmq_fault_rules_set(rules, rmq_slice_text(latency), rmq_slice_text(duration), why, 200);
}

static void tables_of_the_users(void) {
  char why[200];
  rmq_fault_rules rules = rules_of(RMQ_STRATEGY_4X);
  CHECK_INT(set(&rules, " 10, 20 ,86400000", "0,5,5", why), 0);
  static const row rows[] = {{9, 0}, {10, 0}, {19, 0}, {20, 5}, {86399999, 5}, {86400000, 5}};
  check_rows(&rules, rows, sizeof rows / sizeof *rows);
  CHECK_INT(rmq_fault_rules_isolation(&rules), 5);
  CHECK_INT(set(&rules, "7", "9", why), 0); /* one step is enough */
  CHECK_INT(rmq_fault_rules_duration(&rules, 6999), 0);
  CHECK_INT(rmq_fault_rules_duration(&rules, 7000), 9);
  rules = rules_of(RMQ_STRATEGY_5X);
  CHECK_INT(set(&rules, "", "1,2,3,4,5,6,7", why), 0); /* the other one stays */
  CHECK_INT(rmq_fault_rules_duration(&rules, 550000), 3);
  CHECK_INT(set(&rules, "", "", why), 0);
  CHECK_INT(rmq_fault_rules_duration(&rules, 1800000), 4);
  char longest[200] = "0";
  for (int i = 1; i < RMQ_FAULT_STEPS_MAX; i++) {
    size_t len = strlen(longest);
    snprintf(longest + len, sizeof longest - len, ",%d", i);
  }
  CHECK_INT(set(&rules, longest, longest, why), 0);
  CHECK_INT(rules.n, RMQ_FAULT_STEPS_MAX);
  CHECK_INT(rmq_fault_rules_duration(&rules, 31000), 31);
}

static void check_refused(const char *latency, const char *duration, const char *expected) {
  char why[200];
  rmq_fault_rules rules = rules_of(RMQ_STRATEGY_4X), before = rules;
  CHECK_INT(set(&rules, latency, duration, why), RMQ_EINVAL);
  if (strcmp(why, expected) != 0) printf("it says \"%s\"\n  not \"%s\"\n", why, expected);
  CHECK(strcmp(why, expected) == 0);
  CHECK_INT(rules.n, before.n);
  CHECK(memcmp(rules.latency_max_ms, before.latency_max_ms, sizeof rules.latency_max_ms) == 0);
  CHECK(memcmp(rules.not_available_ms, before.not_available_ms, sizeof rules.not_available_ms) ==
        0);
}

static void tables_that_are_wrong(void) {
  check_refused(
      "50,x,550", "0,0,0",
      "latency_max: \"x\" is no whole number of milliseconds from 0 to 86400000; write for "
      "example 50,100,550");
  check_refused("1,2", "0,-1",
                "not_available_duration: \"-1\" is no whole number of milliseconds from 0 to "
                "86400000; write for example 50,100,550");
  check_refused(
      "1,", "0,1",
      "latency_max: \"\" is no whole number of milliseconds from 0 to 86400000; write for "
      "example 50,100,550");
  check_refused("1,86400001", "0,1",
                "latency_max: \"86400001\" is no whole number of milliseconds from 0 to 86400000; "
                "write for example 50,100,550");
  check_refused(
      "1,99999999999999999999999999", "0,1",
      "latency_max: \"99999999999999999999999999\" is no whole number of milliseconds from "
      "0 to 86400000; write for example 50,100,550");
  check_refused("50,100,100", "0,0,0", "latency_max must ascend: step 3 is 100 ms after 100 ms");
  check_refused("50,40", "0,0", "latency_max must ascend: step 2 is 40 ms after 50 ms");
  check_refused("50,60,70", "0,9,8",
                "not_available_duration must not descend: step 3 is 8 ms after 9 ms");
  check_refused("50,60,70", "0,9",
                "latency_max has 3 steps and not_available_duration 2: give both, equally long");
  check_refused("50,60,70", "",
                "latency_max has 3 steps and not_available_duration 7 (the default): give both, "
                "equally long");
  check_refused("", "50,60",
                "latency_max has 7 steps (the default) and not_available_duration 2: give both, "
                "equally long");
  check_refused(
      "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,"
      "31,32",
      "", "latency_max has more than 32 steps");
}

static void names_of_strategies(void) {
  rmq_strategy strategy = RMQ_STRATEGY_OFF;
  CHECK_INT(rmq_strategy_find(rmq_slice_text("true"), &strategy), 0);
  CHECK_INT(strategy, RMQ_STRATEGY_4X);
  CHECK_INT(rmq_strategy_find(rmq_slice_text("5.x"), &strategy), 0);
  CHECK_INT(strategy, RMQ_STRATEGY_5X);
  CHECK_INT(rmq_strategy_find(rmq_slice_text("false"), &strategy), 0);
  CHECK_INT(strategy, RMQ_STRATEGY_OFF);
  CHECK_INT(rmq_strategy_find(rmq_slice_text("5"), &strategy), RMQ_EINVAL);
}

int main(void) {
  check_run("the table of 4.x", table_4x);
  check_run("the table of 5.x", table_5x);
  check_run("boundaries", boundaries);
  check_run("tables of the user's", tables_of_the_users);
  check_run("tables that are wrong", tables_that_are_wrong);
  check_run("names of strategies", names_of_strategies);
  return check_end();
}

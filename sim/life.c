#include "sim/life.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/faults.h"
#include "sim/hooks.h"
#include "sim/invariants.h"
#include "sim/memory.h"
#include "sim/questions.h"
#include "sim/requests.h"
#include "sim/transactions.h"
#include "sim/workload.h"

enum {
  EVENTS_MAX = 20000000, /* more than this is no life, but a loop */
  DEADLINE_LOOK_US = 20000,
  RECOVERY_US =
      40000000, /* longer than any pause, poll or idle time that the core may need to find back */
  PROBES = 10
};

typedef enum ending { END_IN_PEACE, END_IN_TROUBLE, END_FORKED } ending;

typedef struct life {
  sim_world world;
  sim_ledger *ledger;
  sim_cluster *cluster;
  sim_workload workload;
  sim_faults faults;
  rmq_settings settings;
  ending how;
  int64_t looked_us; /* when deadlines were looked at last */
} life;

/* ---- Settings and plans ---- */

/* Of a hundred lives 14 are without trouble, 10 know only freezes, 18 a sick broker, 8 a sick name
 * server; as far as there is more than one. */
static sim_trouble choose_trouble(life *of) {
  sim_random *random = &of->world.random;
  sim_cluster *cluster = of->cluster;
  int64_t die = sim_random_between(random, 0, 99);
  sim_trouble trouble = die < 14   ? SIM_NO_TROUBLE
                        : die < 24 ? SIM_FREEZES
                        : die < 42 ? SIM_SICK_BROKER
                        : die < 50 ? SIM_SICK_NAMESRV
                                   : SIM_ANY_TROUBLE;
  int n = trouble == SIM_SICK_BROKER ? cluster->n_brokers : cluster->n_namesrvs;
  if (n < 2 && trouble > SIM_FREEZES) trouble = SIM_ANY_TROUBLE;
  cluster->sick = (int)sim_random_between(random, 0, n - 1);
  cluster->trouble = trouble;
  return trouble;
}

static ending choose_ending(life *of) {
  sim_random *random = &of->world.random;
  if (of->cluster->trouble == SIM_NO_TROUBLE) return END_IN_PEACE;
  if (sim_random_chance(random, 600000)) return END_IN_PEACE;
  return sim_random_chance(random, 800000) ? END_IN_TROUBLE : END_FORKED;
}

/* Nothing is wrong but, perhaps, the process itself: times are long enough for everything. */
static bool is_easy(const life *of) { return of->cluster->trouble <= SIM_FREEZES; }

static bool is_sick(const life *of) {
  return of->cluster->trouble == SIM_SICK_BROKER || of->cluster->trouble == SIM_SICK_NAMESRV;
}

/* Generous enough for every send to succeed that has a broker to go to. */
static void be_generous(rmq_settings *settings, sim_random *random) {
  settings->send_msg_timeout = sim_random_spread(random, 2000, 8000);
  settings->attempt_floor = sim_random_spread(random, 10, 500);
  settings->retry_times_when_send_failed = sim_random_between(random, 1, 4);
  settings->retry_times_when_send_async_failed = sim_random_between(random, 1, 4);
  settings->max_inflight = 16384;
  settings->max_inflight_bytes = 1 << 30;
}

static void choose_limits(rmq_settings *settings, sim_random *random, bool easy) {
  settings->send_msg_timeout = sim_random_spread(random, easy ? 1000 : 20, 8000);
  settings->attempt_floor = sim_random_spread(random, easy ? 500 : 10, 1000);
  settings->retry_times_when_send_failed = sim_random_between(random, 0, 4);
  settings->retry_times_when_send_async_failed = sim_random_between(random, 0, 4);
  settings->retry_another_broker_when_not_store_ok = sim_random_chance(random, 500000);
  settings->max_inflight = sim_random_spread(random, easy ? 64 : 1, 16384);
  settings->max_inflight_bytes = sim_random_spread(random, easy ? 4194304 : 65536, 67108864);
  settings->connect_timeout = sim_random_spread(random, easy ? 1000 : 50, 3000);
  settings->poll_name_server_interval = sim_random_spread(random, 100, 30000);
  settings->heartbeat_broker_interval = sim_random_spread(random, 100, 30000);
  settings->mq_client_api_timeout = sim_random_spread(random, easy ? 1000 : 50, 3000);
  settings->channel_max_idle_time =
      sim_random_chance(random, 300000) ? 0 : sim_random_spread(random, 100, 120000);
  settings->auto_create_topic = sim_random_chance(random, 800000);
  settings->unit_mode = sim_random_chance(random, 200000);
}

/* Tables with short times, so that many avoidances begin and end in one life. A failure begins one
 * of `longest` at least. */
static void choose_tables(rmq_settings *settings, sim_random *random) {
  int64_t least = SIM_LEAST_AVOIDANCE_MS;
  int64_t longest = sim_random_spread(random, 2 * least, 20000);
  free(settings->latency_max);
  free(settings->not_available_duration);
  rmq_buf latency = {0}, duration = {0};
  rmq_buf_printf(&latency, "%d %d", (int)sim_random_spread(random, 1, 500),
                 (int)sim_random_between(random, 600, 9999));
  rmq_buf_printf(&duration, "%d %d", (int)least, (int)longest);
  rmq_slice text = rmq_buf_slice(&latency);
  settings->latency_max = rmq_copy_text(text.ptr, text.len);
  text = rmq_buf_slice(&duration);
  settings->not_available_duration = rmq_copy_text(text.ptr, text.len);
  rmq_buf_free(&latency);
  rmq_buf_free(&duration);
}

/* Half of the lives avoid brokers, by either strategy. With a chance of its own, so that the others
 * are what they would be without it. */
static void choose_strategy(life *of, uint64_t seed) {
  rmq_settings *settings = &of->settings;
  sim_random random = {seed ^ UINT64_C(0x6C6174656E637921)};
  int64_t die = sim_random_between(&random, 0, 3);
  if (die < 2) return;
  const char *strategy = die == 2 ? "true" : "5.x";
  free(settings->latency_fault);
  settings->latency_fault = rmq_copy_text(strategy, strlen(strategy));
  if (sim_random_chance(&random, 500000)) choose_tables(settings, &random);
  settings->start_detector_enable = sim_random_chance(&random, 500000);
  settings->detect_interval = sim_random_spread(&random, 1, 10000);
  settings->detect_timeout = sim_random_spread(&random, 1, 1000);
  of->cluster->detects = die == 3 && settings->start_detector_enable;
}

/* A quarter of the lives, with a chance of its own, too. */
static void choose_trace(life *of, uint64_t seed) {
  sim_random random = {seed ^ UINT64_C(0x7472616365732121)};
  if (!sim_random_chance(&random, 250000)) return;
  of->settings.enable_trace = of->cluster->traces = true;
  of->settings.trace_msg_batch_num = sim_random_between(&random, 1, 20);
  of->settings.trace_flush_interval = sim_random_spread(&random, 1, 5000);
}

/* Half of the lives gather their sends, in larger and smaller batches. With a chance of its own, too. */
static void choose_batching(life *of, uint64_t seed) {
  rmq_settings *settings = &of->settings;
  sim_random random = {seed ^ UINT64_C(0x6261746368696E67)};
  of->workload.plan.batch_ppm = sim_random_chance(&random, 500000) ? 50000 : 0;
  settings->auto_batch = sim_random_chance(&random, 500000);
  settings->batch_max_delay = sim_random_spread(&random, 1, 200);
  settings->batch_max_bytes = sim_random_spread(&random, 100, 65536);
  settings->batch_total_bytes = sim_random_spread(&random, 1000, 33554432);
  if (sim_random_chance(&random, 200000)) {
    settings->max_message_size = sim_random_spread(&random, 70000, 4194304);
  }
}

static void choose_settings(life *of) {
  rmq_settings *settings = &of->settings;
  rmq_settings_init(settings);
  char list[256];
  sim_cluster_namesrv_list(of->cluster, list, sizeof list);
  settings->group = rmq_copy_text("sim_group", strlen("sim_group"));
  settings->namesrv = rmq_copy_text(list, strlen(list));
  if (sim_random_chance(&of->world.random, 300000)) {
    free(settings->serialize);
    settings->serialize = rmq_copy_text("json", strlen("json"));
  }
  if (sim_random_chance(&of->world.random, 200000)) {
    settings->client_ip = rmq_copy_text("10.9.8.7", strlen("10.9.8.7"));
    settings->instance_name = rmq_copy_text("sim", strlen("sim"));
  }
  choose_limits(settings, &of->world.random, is_easy(of));
  if (is_sick(of)) be_generous(settings, &of->world.random);
}

static void check_settings(life *of) {
  char why[256] = "";
  if (rmq_settings_check(&of->settings, why, sizeof why) != 0) {
    sim_break(&of->world, "the settings are refused: %s", why);
  }
}

static void choose_plan(life *of) {
  sim_random *random = &of->world.random;
  sim_workload_plan *plan = &of->workload.plan;
  plan->sends = (int)sim_random_spread(random, 20, 3000);
  plan->tasks = (int)sim_random_spread(random, 1, 300);
  plan->think_us = sim_random_chance(random, 300000) ? 0 : sim_random_spread(random, 100, 2000000);
  plan->burst_us = sim_random_chance(random, 200000) ? 0 : sim_random_spread(random, 1000, 3000000);
  plan->burst = (int)sim_random_spread(random, 1, 500);
  plan->body_max = (size_t)sim_random_spread(random, 1, 65536);
  plan->least_timeout_ms = is_sick(of) ? 2000 : is_easy(of) ? 1000 : 1;
  /* Who waits for a route together with somebody who has more time waits as long as that one. */
  plan->own_timeout_ppm = of->cluster->trouble == SIM_SICK_NAMESRV ? 0 : 500000;
  plan->plain_only = sim_random_chance(random, is_easy(of) ? 500000 : 200000);
  plan->odd_ppm = 20000;
}

static void say(void *arg, rmq_log_level level, const char *line) {
  (void)arg;
  printf("%36s %s: %s\n", "", rmq_log_level_name(level), line);
}

static void begin(life *of, uint64_t seed, bool verbose) {
  sim_world_init(&of->world, seed, verbose);
  sim_random *random = &of->world.random;
  of->world.exact = sim_random_chance(random, 300000);
  of->ledger = sim_ledger_new(&of->world);
  of->cluster = sim_cluster_new(&of->world, of->ledger);
  sim_trouble trouble = choose_trouble(of);
  of->workload = (sim_workload){.world = &of->world, .cluster = of->cluster, .ledger = of->ledger};
  of->how = choose_ending(of);
  choose_settings(of);
  choose_strategy(of, seed);
  choose_trace(of, seed);
  /* With a short idle time a connection's failures are forgotten with it. */
  if (of->settings.channel_max_idle_time == 0) sim_forbid_storms(of->world.network);
  choose_plan(of);
  choose_batching(of, seed);
  check_settings(of);
  if (of->how != END_IN_PEACE && sim_random_chance(random, 400000)) {
    of->workload.end_at = (uint64_t)sim_random_spread(random, 1, of->workload.plan.sends);
    of->workload.end_by_fork = of->how == END_FORKED;
  }
  rmq_log log = {.level = verbose ? RMQ_LOG_DEBUG : RMQ_LOG_ERROR, .write = verbose ? say : NULL};
  sim_workload_start(&of->workload, rmq_producer_new(&of->settings, &of->world.io, &log));
  sim_hooks_start(&of->workload, seed);
  sim_transactions_start(&of->workload, seed);
  sim_requests_start(&of->workload, seed);
  sim_questions_start(&of->workload, seed);
  if (trouble == SIM_NO_TROUBLE) return;
  sim_faults_start(&of->faults, &of->world, of->cluster, sim_random_spread(random, 10000, 3000000));
}

/* ---- Going on ---- */

static bool go_on(life *of) {
  if (!sim_world_step(&of->world)) return false;
  sim_check_counters(&of->workload);
  if (of->world.now_us - of->looked_us > DEADLINE_LOOK_US) {
    of->looked_us = of->world.now_us;
    sim_check_deadlines(&of->workload);
  }
  if (of->world.events > EVENTS_MAX) sim_break(&of->world, "the life does not come to an end");
  return !sim_is_broken(&of->world);
}

static void mark(void *arg, uint64_t data) {
  (void)data;
  *(bool *)arg = true;
}

static void live_for(life *of, int64_t us) {
  bool over = false;
  sim_plan(&of->world, us, mark, &over, 0);
  while (!over && !sim_is_broken(&of->world)) {
    if (!go_on(of)) break;
  }
}

/* What the life does with the producer itself, it does as a part of the process. */
static void live_until_awake(life *of) {
  int64_t frozen_us = of->world.frozen_until_us - of->world.now_us;
  if (frozen_us > 0) live_for(of, frozen_us);
}

static void recover(life *of) {
  if (of->cluster->trouble != SIM_NO_TROUBLE) {
    sim_faults_heal(&of->faults);
    live_for(of, RECOVERY_US);
  }
  for (int i = 0; i < PROBES && !sim_is_broken(&of->world); i++) {
    sim_workload_probe(&of->workload);
    live_for(of, sim_random_between(&of->world.random, 0, 3000000));
  }
}

static void finish(life *of) {
  sim_random *random = &of->world.random;
  live_until_awake(of);
  if (of->how == END_FORKED) {
    sim_workload_fork(&of->workload);
  } else {
    sim_workload_stop(&of->workload,
                      sim_random_chance(random, 100000) ? 0 : sim_random_spread(random, 1, 10000));
  }
  /* What the producer needs to come to its end, then the world: every event that is planned still
   * happens. */
  live_for(of, 30000000);
  if (of->cluster->trouble != SIM_NO_TROUBLE && !of->faults.over) sim_faults_heal(&of->faults);
  while (go_on(of)) {
  }
  if (!sim_is_broken(&of->world)) sim_check_end(&of->workload);
}

static sim_result result_of(const life *of) {
  sim_result result = {.hash = of->world.hash, .events = of->world.events};
  result.sends = of->workload.accepted;
  result.acknowledged = of->workload.acknowledged;
  result.failed = of->workload.failed;
  result.refused = of->workload.refused;
  result.faults = of->faults.count;
  return result;
}

static void release(life *of) {
  sim_workload_forget_calls(&of->workload);
  sim_workload_forget_batches(&of->workload);
  rmq_settings_free(&of->settings);
  sim_cluster_free(of->cluster);
  sim_ledger_free(of->ledger);
  sim_world_free(&of->world);
  free(of);
}

sim_result sim_live(uint64_t seed, bool verbose) {
  size_t blocks_before = sim_memory_blocks();
  life *of = rmq_alloc_zero(1, sizeof *of);
  begin(of, seed, verbose);
  int64_t born_us = of->world.now_us;
  live_for(of, sim_random_spread(&of->world.random, 1000, 20000000));
  if (of->how == END_IN_PEACE) recover(of);
  if (!sim_is_broken(&of->world)) finish(of);
  sim_result result = result_of(of);
  result.virtual_ms = (uint64_t)(of->world.now_us - born_us) / 1000;
  memcpy(result.broken, of->world.broken, sizeof result.broken);
  if (result.broken[0]) {
    /* What the core holds now cannot be let go of in order: it stays. */
    if (!verbose) sim_trace_print(&of->world);
    return result;
  }
  release(of);
  if (sim_memory_blocks() != blocks_before) {
    snprintf(result.broken, sizeof result.broken, "%zd blocks of memory are left over",
             (ssize_t)(sim_memory_blocks() - blocks_before));
  }
  return result;
}

#include "sim/faults.h"

#include "wire/codes.h"

static sim_random *chance_of(sim_faults *faults) { return &faults->world->random; }

/* How long a fault lasts: 1 ms to 20 s. */
static int64_t some_us(sim_faults *faults) {
  return sim_random_spread(chance_of(faults), 1000, 20000000);
}

static int some_index(sim_faults *faults, int n, sim_trouble only_sick) {
  const sim_cluster *cluster = faults->cluster;
  if (cluster->trouble == only_sick) return cluster->sick;
  return (int)sim_random_between(chance_of(faults), 0, n - 1);
}

static sim_broker *some_broker(sim_faults *faults) {
  sim_cluster *cluster = faults->cluster;
  return &cluster->brokers[some_index(faults, cluster->n_brokers, SIM_SICK_BROKER)];
}

static sim_namesrv *some_namesrv(sim_faults *faults) {
  sim_cluster *cluster = faults->cluster;
  return &cluster->namesrvs[some_index(faults, cluster->n_namesrvs, SIM_SICK_NAMESRV)];
}

/* Brokers have more of the bad luck than name servers. */
static bool is_about_brokers(sim_faults *faults) {
  switch (faults->cluster->trouble) {
    case SIM_SICK_BROKER:
      return true;
    case SIM_SICK_NAMESRV:
      return false;
    default:
      return sim_random_chance(chance_of(faults), 700000);
  }
}

static sim_host *some_host(sim_faults *faults) {
  return is_about_brokers(faults) ? &some_broker(faults)->host : &some_namesrv(faults)->host;
}

/* ---- Hosts ---- */

static void come_back(void *arg, uint64_t data) {
  (void)data;
  sim_host *host = arg;
  host->door = SIM_DOOR_OPEN;
}

/* A process dies, or a whole machine: then nothing answers, not even with a reset. */
static void crash(sim_faults *faults) {
  sim_host *host = some_host(faults);
  bool silently = sim_random_chance(chance_of(faults), 400000);
  sim_note(faults->world, silently ? "machine dies" : "process dies",
           sim_host_number(&host->address), 0);
  host->door = silently ? SIM_DOOR_SILENT : SIM_DOOR_REFUSES;
  sim_host_drop_all(host, silently);
  sim_plan(faults->world, some_us(faults), come_back, host, 0);
}

/* A broker is started anew on another port; whoever comes to the old one is refused. */
static void move(sim_faults *faults) {
  sim_broker *broker = some_broker(faults);
  sim_note(faults->world, "broker moves", broker->index, broker->host.address.port + 1);
  broker->host.address.port++;
  broker->host.fruitless = 0;
  broker->moved = true;
  sim_host_drop_all(&broker->host, false);
  sim_cluster_place_master(faults->cluster, broker->index);
  sim_cluster_changed(faults->cluster);
}

static void drop_connections(sim_faults *faults) {
  sim_host *host = some_host(faults);
  sim_note(faults->world, "connections dropped", sim_host_number(&host->address), 0);
  sim_host_drop_all(host, false);
}

static void read_again(void *arg, uint64_t data) {
  (void)data;
  sim_host_read(arg, true);
}

static void read_no_more(sim_faults *faults) {
  sim_host *host = some_host(faults);
  sim_note(faults->world, "reads no more", sim_host_number(&host->address), 0);
  host->path.window = (size_t)sim_random_spread(chance_of(faults), 1, 65536);
  sim_host_read(host, false);
  sim_plan(faults->world, some_us(faults), read_again, host, 0);
}

static void wake_broker(void *arg, uint64_t data) {
  (void)data;
  ((sim_broker *)arg)->hangs = false;
}

static void wake_namesrv(void *arg, uint64_t data) {
  (void)data;
  ((sim_namesrv *)arg)->hangs = false;
}

static void hang(sim_faults *faults) {
  if (is_about_brokers(faults)) {
    sim_broker *broker = some_broker(faults);
    sim_note(faults->world, "broker hangs", broker->index, 0);
    broker->hangs = true;
    sim_plan(faults->world, some_us(faults), wake_broker, broker, 0);
  } else {
    sim_namesrv *namesrv = some_namesrv(faults);
    sim_note(faults->world, "namesrv hangs", namesrv->index, 0);
    namesrv->hangs = true;
    sim_plan(faults->world, some_us(faults), wake_namesrv, namesrv, 0);
  }
}

/* ---- The way ---- */

static void mend_path(void *arg, uint64_t data) {
  (void)data;
  sim_host *host = arg;
  int64_t cut_until_us = host->path.cut_until_us;
  host->path = (sim_path){.latency_us = 50, .jitter_us = 200, .window = 256 * 1024};
  host->path.cut_until_us = cut_until_us;
}

static void worsen_path(sim_faults *faults) {
  sim_random *random = chance_of(faults);
  sim_host *host = some_host(faults);
  sim_note(faults->world, "path worsens", sim_host_number(&host->address), 0);
  host->path.latency_us = sim_random_spread(random, 10, 300000);
  host->path.jitter_us = sim_random_spread(random, 10, 300000);
  host->path.slow_ppm = (uint32_t)sim_random_spread(random, 1, 100000);
  host->path.loss_ppm = (uint32_t)sim_random_spread(random, 1, 200000);
  host->path.reset_ppm = (uint32_t)sim_random_spread(random, 1, 50000);
  host->path.window = (size_t)sim_random_spread(random, 1, 256 * 1024);
  sim_plan(faults->world, some_us(faults), mend_path, host, 0);
}

static void cut(sim_faults *faults) {
  int64_t until_us = faults->world->now_us + some_us(faults);
  sim_note(faults->world, "partition", until_us, 0);
  do {
    some_host(faults)->path.cut_until_us = until_us;
  } while (sim_random_chance(chance_of(faults), 400000));
}

/* ---- Brokers' moods ---- */

static void cheer_up(void *arg, uint64_t data) {
  (void)data;
  sim_broker *broker = arg;
  broker->moods = (sim_broker_moods){0};
  broker->service_us = 500;
}

/* Each mood is there one time in three, and then more or less of it. */
static uint32_t some_ppm(sim_faults *faults) {
  if (!sim_random_chance(chance_of(faults), 333333)) return 0;
  return (uint32_t)sim_random_spread(chance_of(faults), 1000, 500000);
}

static void upset(sim_faults *faults) {
  sim_broker *broker = some_broker(faults);
  sim_note(faults->world, "broker upset", broker->index, 0);
  broker->moods.refuses_retry = some_ppm(faults);
  broker->moods.refuses_final =
      faults->cluster->trouble != SIM_SICK_BROKER ? some_ppm(faults) / 8 : 0;
  broker->moods.goes_away = some_ppm(faults);
  broker->moods.not_flushed = some_ppm(faults);
  broker->moods.silent = some_ppm(faults) / 4;
  broker->moods.closes = some_ppm(faults) / 4;
  broker->moods.answers_twice = some_ppm(faults);
  broker->moods.wrong_opaque = some_ppm(faults);
  broker->moods.garbage = some_ppm(faults) / 16;
  broker->moods.asks = some_ppm(faults);
  broker->moods.mutilates = some_ppm(faults) / 8;
  broker->service_us = sim_random_spread(chance_of(faults), 1, 3000000);
  sim_plan(faults->world, some_us(faults), cheer_up, broker, 0);
}

/* ---- Name servers, routes, names ---- */

static void calm_namesrv(void *arg, uint64_t data) {
  (void)data;
  sim_namesrv *namesrv = arg;
  namesrv->refuses_ppm = namesrv->garbage_ppm = 0;
  namesrv->service_us = 500;
}

static void upset_namesrv(sim_faults *faults) {
  sim_namesrv *namesrv = some_namesrv(faults);
  sim_note(faults->world, "namesrv upset", namesrv->index, 0);
  namesrv->refuses_ppm = some_ppm(faults);
  namesrv->garbage_ppm = some_ppm(faults);
  namesrv->service_us = sim_random_spread(chance_of(faults), 1, 3000000);
  sim_plan(faults->world, some_us(faults), calm_namesrv, namesrv, 0);
}

/* What a route change changed, for its end. */
enum { CHANGE_BACK_PERM = 1 << 16, CHANGE_BACK_MASTER = 1 << 17 };

static void change_back(void *arg, uint64_t what) {
  sim_faults *faults = arg;
  sim_cluster *cluster = faults->cluster;
  int broker = (int)(what & 0xFF), topic = (int)(what >> 8 & 0xFF);
  if (what & CHANGE_BACK_PERM) {
    cluster->truth.topics[topic].parts[broker].perm = RMQ_PERM_READ | RMQ_PERM_WRITE;
  }
  if (what & CHANGE_BACK_MASTER) sim_cluster_place_master(cluster, broker);
  sim_cluster_changed(cluster);
}

/* Topics 0 and 4 are writable everywhere when nothing is wrong; only they change their permission.
 */
static void change_route(sim_faults *faults) {
  sim_random *random = chance_of(faults);
  sim_cluster *cluster = faults->cluster;
  int broker = (int)sim_random_between(random, 0, cluster->n_brokers - 1);
  int topic = sim_random_chance(random, 500000) ? 0 : 4;
  uint64_t what = (uint64_t)broker | (uint64_t)topic << 8;
  sim_part *part = &cluster->truth.topics[topic].parts[broker];
  sim_note(faults->world, "route changes", broker, topic);
  cluster->lag_us = sim_random_spread(random, 1, 10000000);
  switch (sim_random_between(random, 0, 2)) {
    case 0:
      part->perm = RMQ_PERM_READ;
      what |= CHANGE_BACK_PERM;
      break;
    case 1:
      cluster->truth.masters[broker][0] = '\0';
      cluster->brokers[broker].moved = true;
      what |= CHANGE_BACK_MASTER;
      break;
    default:
      part->queues = (int32_t)sim_random_between(random, 1, 12);
      break;
  }
  sim_cluster_changed(cluster);
  sim_plan(faults->world, some_us(faults), change_back, faults, what);
}

static void name_all(sim_cluster *cluster, bool stale) {
  if (cluster->addressing != SIM_BY_NAME) return;
  sim_network *network = cluster->world->network;
  for (int i = 0; i < cluster->n_brokers; i++)
    sim_host_name(network, &cluster->brokers[i].host, stale);
  for (int i = 0; i < cluster->n_namesrvs; i++)
    sim_host_name(network, &cluster->namesrvs[i].host, stale);
}

static void mend_names(void *arg, uint64_t data) {
  (void)data;
  sim_cluster *cluster = arg;
  sim_names_mode(cluster->world->network, SIM_NAME_WORKS, 1000);
  name_all(cluster, false);
}

static void break_names(sim_faults *faults) {
  sim_name_mode mode = (sim_name_mode)sim_random_between(chance_of(faults), 0, 2);
  sim_note(faults->world, "names break", (int64_t)mode, 0);
  sim_names_mode(faults->world->network, mode, sim_random_spread(chance_of(faults), 1, 3000000));
  name_all(faults->cluster, sim_random_chance(chance_of(faults), 500000));
  sim_plan(faults->world, some_us(faults), mend_names, faults->cluster, 0);
}

/* ---- The producer's own machine ---- */

static void step_clock(sim_faults *faults) {
  int64_t ms = sim_random_spread(chance_of(faults), 1, 86400000);
  if (sim_random_chance(chance_of(faults), 500000)) ms = -ms;
  sim_note(faults->world, "clock steps", ms, 0);
  faults->world->wall_step_ms += ms;
}

static void freeze(sim_faults *faults) {
  sim_world_freeze(faults->world, sim_random_spread(chance_of(faults), 100, 5000000));
}

static void free_files(void *arg, uint64_t data) {
  (void)data;
  ((sim_world *)arg)->open_fail_ppm = 0;
}

static void take_files(sim_faults *faults) {
  sim_note(faults->world, "files run out", 0, 0);
  faults->world->open_fail_ppm = (uint32_t)sim_random_spread(chance_of(faults), 1000, 1000000);
  sim_plan(faults->world, some_us(faults), free_files, faults->world, 0);
}

/* ---- All of them ---- */

/* In an order in which those that one broker, or one name server, can have alone are neighbours. */
static void (*const kinds[])(sim_faults *) = {
    move,        upset,       upset,      crash, drop_connections, read_no_more,
    hang,        worsen_path, cut,        crash, upset_namesrv,    change_route,
    break_names, step_clock,  take_files, freeze};
enum {
  FIRST_OF_NAMESRV = 3,
  LAST_OF_BROKER = 9,
  LAST_OF_NAMESRV = 10,
  FREEZE = 15,
  N_KINDS = sizeof kinds / sizeof *kinds
};

static void next_fault(void *arg, uint64_t data) {
  (void)data;
  sim_faults *faults = arg;
  if (faults->over) return;
  faults->count++;
  int64_t first = 0, last = N_KINDS - 1;
  if (faults->cluster->trouble == SIM_SICK_BROKER) last = LAST_OF_BROKER;
  if (faults->cluster->trouble == SIM_SICK_NAMESRV) {
    first = FIRST_OF_NAMESRV;
    last = LAST_OF_NAMESRV;
  }
  if (faults->cluster->trouble == SIM_FREEZES) first = last = FREEZE;
  kinds[sim_random_between(chance_of(faults), first, last)](faults);
  sim_plan(faults->world, sim_random_between(chance_of(faults), 0, faults->between_us), next_fault,
           faults, 0);
}

void sim_faults_start(sim_faults *faults, sim_world *world, sim_cluster *cluster,
                      int64_t between_us) {
  *faults = (sim_faults){.world = world, .cluster = cluster, .between_us = between_us};
  /* Some days are bad from the start. */
  int64_t first_us = sim_random_chance(&world->random, 300000)
                         ? 0
                         : sim_random_spread(&world->random, 1, between_us);
  sim_plan(world, first_us, next_fault, faults, 0);
}

static void heal_host(sim_host *host) {
  host->door = SIM_DOOR_OPEN;
  host->path.cut_until_us = 0;
  mend_path(host, 0);
  sim_host_read(host, true);
}

void sim_faults_heal(sim_faults *faults) {
  sim_cluster *cluster = faults->cluster;
  faults->over = true;
  sim_note(faults->world, "all is well", 0, 0);
  for (int i = 0; i < cluster->n_brokers; i++) {
    sim_broker *broker = &cluster->brokers[i];
    broker->hangs = false;
    cheer_up(broker, 0);
    heal_host(&broker->host);
    sim_cluster_place_master(cluster, i);
    cluster->truth.topics[0].parts[i].perm = RMQ_PERM_READ | RMQ_PERM_WRITE;
    cluster->truth.topics[4].parts[i].perm = RMQ_PERM_READ | RMQ_PERM_WRITE;
  }
  for (int i = 0; i < cluster->n_namesrvs; i++) {
    sim_namesrv *namesrv = &cluster->namesrvs[i];
    namesrv->hangs = false;
    calm_namesrv(namesrv, 0);
    heal_host(&namesrv->host);
  }
  mend_names(cluster, 0);
  faults->world->open_fail_ppm = 0;
  cluster->lag_us = 1000;
  sim_cluster_changed(cluster);
}

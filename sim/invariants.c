/* memmem */
#define _GNU_SOURCE

#include "sim/invariants.h"

#include "producer/core.h"
#include "sim/hooks.h"

#include <inttypes.h>

#include "base/error.h"
#include "sim/network.h"
#include "sim/requests.h"
#include "sim/transactions.h"
#include "wire/codes.h"

enum { TICK_US = 1000 };

int64_t sim_tick_us(const sim_world *world, int64_t frozen_us) {
  return TICK_US + world->wake_late_us + world->frozen_us - frozen_us;
}

static int broker_index(const sim_cluster *cluster, rmq_slice name) {
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (rmq_slice_is(name, cluster->brokers[i].name)) return i;
  }
  return -1;
}

/* ---- Completions ---- */

void sim_check_time(sim_workload *workload, const sim_send *send) {
  int64_t took_us = workload->world->now_us - send->started_us;
  if (took_us > send->budget_us + sim_tick_us(workload->world, send->frozen_us)) {
    sim_break(workload->world, "send %" PRIu32 " completes after %" PRId64 " us of %" PRId64,
              send->number, took_us, send->budget_us);
  }
}

/* What a result says about itself. */
static void check_words(sim_workload *workload, const sim_send *send,
                        const rmq_completion *completion) {
  const char *topic = workload->cluster->truth.topics[send->topic].name;
  const rmq_failure *failure = completion->failure;
  bool right = completion->elapsed_us == workload->world->now_us - send->started_us &&
               rmq_slice_is(completion->topic, topic);
  if (failure) {
    rmq_slice text = rmq_buf_slice(&failure->message);
    bool named = text.ptr && memmem(text.ptr, text.len, topic, strlen(topic));
    right = right && named && failure->n_tries <= completion->attempts &&
            failure->elapsed_us == completion->elapsed_us;
  }
  if (!right) {
    sim_break(workload->world, "the result of send %" PRIu32 " says wrong things about it: %.*s",
              send->number, failure ? (int)rmq_buf_len(&failure->message) : 0,
              failure ? (const char *)rmq_buf_head(&failure->message) : "");
  }
}

/* True when, at every time and in the eyes of every name server, another broker could have taken
 * the message. */
static bool had_another_broker(const sim_workload *workload, const sim_send *send) {
  return send->given_broker < 0 && !send->batch_chose &&
         workload->cluster->least_brokers[send->topic] >= 2;
}

static bool has_strategy(const sim_workload *workload, const char *name) {
  return strcmp(rmq_producer_settings(workload->producer)->latency_fault, name) == 0;
}

static void check_tries(sim_workload *workload, const sim_send *send, const rmq_failure *failure) {
  for (int i = 1; i < failure->n_tries; i++) {
    const char *last = failure->tries[i - 1].broker, *now = failure->tries[i].broker;
    bool sent_away = failure->tries[i - 1].code == RMQ_GO_AWAY;
    if (last && now && strcmp(last, now) == 0 && !sent_away) {
      sim_break(workload->world,
                "send %" PRIu32 " tried %s twice in a row, though there is another broker",
                send->number, now);
      return;
    }
  }
}

/* "Stored, but", after which another broker may be asked to do better. A hook that fails at the end
 * makes a failure of it that has such tries. */
static bool wants_better(const sim_workload *workload, int32_t code) {
  return rmq_producer_settings(workload->producer)->retry_another_broker_when_not_store_ok &&
         (code == RMQ_FLUSH_DISK_TIMEOUT || code == RMQ_FLUSH_SLAVE_TIMEOUT ||
          code == RMQ_SLAVE_NOT_AVAILABLE);
}

/* A refusal that every broker would repeat ends a send. */
static void check_refused_tries(sim_workload *workload, const sim_send *send,
                                const rmq_failure *failure) {
  for (int i = 0; i < failure->n_tries - 1; i++) {
    const rmq_try *attempt = &failure->tries[i];
    if (attempt->kind != RMQ_KIND_BROKER || sim_is_retry_code(attempt->code)) continue;
    if (wants_better(workload, attempt->code)) continue;
    sim_break(workload->world, "send %" PRIu32 " was tried again after code %d", send->number,
              (int)attempt->code);
  }
}

static void check_attempts(sim_workload *workload, const sim_send *send, int attempts) {
  int64_t retries = send->options.retries;
  const rmq_settings *settings = rmq_producer_settings(workload->producer);
  if (retries < 0) {
    retries = send->options.mode == RMQ_MODE_ASYNC ? settings->retry_times_when_send_async_failed
                                                   : settings->retry_times_when_send_failed;
  }
  /* Who is sent away was not looked at, and may come back once. */
  if (attempts > 1 + retries + (send->go_aways > 0)) {
    sim_break(workload->world, "send %" PRIu32 " made %d attempts with %" PRId64 " retries",
              send->number, attempts, retries);
  }
}

static void check_other_broker(sim_workload *workload, const sim_send *send,
                               const rmq_completion *completion) {
  if (!had_another_broker(workload, send)) return;
  /* By the rules before 5.1.4 the last broker is asked again when it alone is available: another
   * send's good answer may have made it so during the pause. */
  if (has_strategy(workload, "true")) return;
  bool all_seen =
      send->go_aways == 0 && completion->attempts >= 2 && completion->attempts == send->arrivals;
  if (all_seen && send->same_broker) {
    sim_break(workload->world, "send %" PRIu32 " made %d attempts, all at one of several brokers",
              send->number, completion->attempts);
  }
}

void sim_note_avoided(const sim_workload *workload, int64_t *avoided_us) {
  memset(avoided_us, 0, SIM_AVOIDED_MAX * sizeof *avoided_us);
  if (!workload->producer) return;
  rmq_fault_view view;
  for (size_t at = 0; rmq_producer_next_fault(workload->producer, &at, &view);) {
    int broker = broker_index(workload->cluster, view.broker);
    if (broker >= 0) avoided_us[broker] = view.avoided_us;
  }
}

/* What is noted of a broker stays for as long as the broker is avoided, but that the detector, like
 * Java's, forgets one that no route names. A route that names it again finds it as good as new. */
static void watch_avoidances(sim_workload *workload) {
  if (!has_strategy(workload, "5.x")) return;
  const sim_cluster *cluster = workload->cluster;
  int64_t now_us = workload->world->now_us, avoided_us[SIM_AVOIDED_MAX];
  sim_note_avoided(workload, avoided_us);
  for (int i = 0; i < cluster->n_brokers; i++) {
    bool shorter = now_us + avoided_us[i] < workload->avoided_until_us[i];
    rmq_slice name = rmq_slice_text(cluster->brokers[i].name);
    if (shorter) {
      workload->forgotten_us[i] = now_us;
      if (avoided_us[i] > 0 || !cluster->detects ||
          rmq_producer_available(workload->producer, name)) {
        sim_break(workload->world, "%s is avoided no more before the time for it is over",
                  cluster->brokers[i].name);
      }
    }
    workload->avoided_until_us[i] = avoided_us[i] > 0 ? now_us + avoided_us[i] : 0;
  }
}

/* A broker that is avoided gets nothing while another one is available. From outside this can be
 * said of a send to all brokers that took one attempt, to a broker that was avoided all the time,
 * while another one was available at the start and at the end, with less time between than an
 * avoidance takes. Before 5.1.4 an avoidance may have ended in between. */
static void check_avoidance(const sim_workload *workload, const sim_send *send,
                            const rmq_completion *completion) {
  const sim_cluster *cluster = workload->cluster;
  bool clear = !completion->failure && completion->attempts == 1 && send->given_broker < 0 &&
               !send->batch_chose && completion->elapsed_us < SIM_LEAST_AVOIDANCE_MS * 1000 &&
               cluster->least_brokers[send->topic] == cluster->n_brokers;
  if (!clear || !has_strategy(workload, "5.x")) return;
  int chosen = broker_index(cluster, completion->broker);
  if (send->avoided_us[chosen] <= completion->elapsed_us) return;
  if (workload->forgotten_us[chosen] >= send->started_us) return;
  int64_t now_us[SIM_AVOIDED_MAX];
  sim_note_avoided(workload, now_us);
  for (int i = 0; i < cluster->n_brokers; i++) {
    if (send->avoided_us[i] > 0 || now_us[i] > 0) continue;
    sim_break(workload->world, "send %" PRIu32 " went to %s, which was avoided, and not to %s",
              send->number, cluster->brokers[chosen].name, cluster->brokers[i].name);
    return;
  }
}

/* When nothing is wrong, or with one broker only, a message to the plain topic is stored. */
static bool must_succeed(const sim_workload *workload, const sim_send *send) {
  if (send->topic != 0 || workload->stopping || send->no_choice) return false;
  if (send->refused_by_hook) return false;
  if (send->probes) return true;
  const rmq_send_options *options = &send->options;
  switch (workload->cluster->trouble) {
    case SIM_NO_TROUBLE:
    case SIM_SICK_NAMESRV:
      return true;
    case SIM_SICK_BROKER:
      return send->given_broker < 0 && !send->batch_chose && options->retries != 0 &&
             options->attempt_timeout_ms == 0;
    default:
      return false;
  }
}

/* By the rules before 5.1.4 a retry goes to the broker that just failed when that alone is available. */
static bool was_led_back(const sim_workload *workload, const rmq_failure *failure) {
  if (!has_strategy(workload, "true") || failure->n_tries < 2) return false;
  const char *last = failure->tries[failure->n_tries - 1].broker;
  const char *before = failure->tries[failure->n_tries - 2].broker;
  return last && before && strcmp(last, before) == 0;
}

/* With room for one message at a time, one that is tried at a broker which is gone for good keeps all
 * others out for as long as its budget lasts. */
static bool was_kept_out(const sim_workload *workload, const rmq_failure *failure, int attempts) {
  return attempts == 0 && rmq_producer_settings(workload->producer)->max_inflight == 1 &&
         failure->kind == RMQ_KIND_TIMEOUT;
}

/* It failed: must it have succeeded? */
static void check_must(sim_workload *workload, const sim_send *send, const rmq_failure *failure,
                       int attempts) {
  if (!must_succeed(workload, send)) return;
  bool sick = workload->cluster->trouble == SIM_SICK_BROKER && !send->probes;
  if (sick && was_led_back(workload, failure)) return;
  if (was_kept_out(workload, failure, attempts)) return;
  /* Its hooks have made the messages of a full batch longer than max_message_size. */
  if (failure->kind == RMQ_KIND_HOOK && failure->code != 0) return;
  rmq_slice why = rmq_buf_slice(&failure->message);
  sim_break(workload->world, "send %" PRIu32 " fails though %s: %.*s", send->number,
            send->probes ? "all is well again" : "nothing is wrong, or others are well",
            (int)why.len, why.ptr);
}

void sim_check_failure(sim_workload *workload, const sim_send *send, const rmq_failure *failure,
                       int attempts) {
  bool others = had_another_broker(workload, send) && !has_strategy(workload, "true");
  if (others) check_tries(workload, send, failure);
  check_refused_tries(workload, send, failure);
  check_must(workload, send, failure, attempts);
}

static void check_success(sim_workload *workload, const sim_send *send,
                          const rmq_completion *completion) {
  if (!must_succeed(workload, send)) return;
  if (workload->cluster->trouble == SIM_NO_TROUBLE && completion->attempts != 1) {
    sim_break(workload->world, "send %" PRIu32 " takes %d attempts though nothing is wrong",
              send->number, completion->attempts);
  }
}

/* A process that stood still finds the answers that came meanwhile before it finds that they are
 * late. The first attempt has at least half of the budget, and half a second (see sim_life); an
 * answer takes a few milliseconds at most. */
static void check_late_reader(sim_workload *workload, const sim_send *send,
                              const rmq_completion *completion) {
  enum { ANSWER_US = 5000, ATTEMPT_US = 500000 };
  if (workload->cluster->trouble != SIM_FREEZES || workload->stopping || send->n_copies == 0)
    return;
  if (send->refused_by_hook) return;
  if (send->stored_us + ANSWER_US > send->started_us + ATTEMPT_US) return;
  if (!completion->failure && send->n_copies == 1) return;
  sim_break(workload->world,
            "send %" PRIu32 " was answered while the process stood still, and is %s", send->number,
            completion->failure ? "failed as late" : "tried again");
}

void sim_check_completion(sim_workload *workload, sim_send *send,
                          const rmq_completion *completion) {
  sim_ledger_completed(workload->ledger, send, completion,
                       broker_index(workload->cluster, completion->broker));
  if (sim_is_broken(workload->world)) return;
  if (workload->stopped || workload->forked) {
    sim_break(workload->world, "send %" PRIu32 " completes after the end of its producer",
              send->number);
  }
  bool oneway = send->options.mode == RMQ_MODE_ONEWAY;
  if (completion->failure || !oneway) workload->traceable++;
  sim_check_time(workload, send);
  check_words(workload, send, completion);
  check_attempts(workload, send, completion->attempts);
  check_other_broker(workload, send, completion);
  if (completion->failure) {
    sim_check_failure(workload, send, completion->failure, completion->attempts);
  } else {
    check_success(workload, send, completion);
  }
  check_late_reader(workload, send, completion);
  check_avoidance(workload, send, completion);
  sim_check_hooks(workload, send, completion);
}

/* ---- Refusals ---- */

static bool was_full(const sim_workload *workload, size_t n, size_t bytes,
                     const rmq_producer_stats *before) {
  const rmq_settings *settings = rmq_producer_settings(workload->producer);
  return before->waiting > 0 || before->inflight + n > (size_t)settings->max_inflight ||
         before->inflight_bytes + bytes > (size_t)settings->max_inflight_bytes;
}

void sim_check_refusal(sim_workload *workload, const sim_send *send, int status, bool spoiled,
                       size_t n, size_t bytes, const rmq_producer_stats *before) {
  bool right = false;
  switch (status) {
    case RMQ_EINVAL:
      right = spoiled;
      break;
    case RMQ_ESTATE:
      right = workload->stopping || workload->forked;
      break;
    case RMQ_EOVERLOAD:
      right = !send->options.may_wait && was_full(workload, n, bytes, before);
      break;
    case RMQ_ELIMIT:
      right = send->generation > RMQ_HOOK_DEPTH;
      break;
    default:
      break;
  }
  const rmq_failure *failure = rmq_producer_failure(workload->producer);
  if (!right || !failure || rmq_buf_len(&failure->message) == 0) {
    sim_break(workload->world, "send %" PRIu32 " was refused with %s", send->number,
              rmq_error_name(status));
  }
}

/* ---- Counters ---- */

/* Each completion has its record, which is stored, lost or still to be either; what is said to be stored
 * is. */
static void check_traces(sim_workload *workload) {
  rmq_producer_stats stats = rmq_producer_stats_of(workload->producer);
  uint64_t records = stats.trace_sent + stats.trace_dropped + stats.trace_pending;
  uint64_t expected = workload->cluster->traces ? workload->traceable : 0;
  bool lossless = workload->cluster->trouble == SIM_NO_TROUBLE && !workload->stopping;
  if (records != expected || (lossless && stats.trace_dropped > 0)) {
    sim_break(workload->world,
              "of %" PRIu64 " trace records %" PRIu64 " are stored, %" PRIu64 " lost, %zu pending",
              expected, stats.trace_sent, stats.trace_dropped, stats.trace_pending);
  }
}

/* A connection to a broker that no route names any more is closed, whatever has come of it, and that is no
 * failure: the next one need not wait. Topics that are not used are forgotten, with their routes. Whether one
 * names a broker that is avoided, too, only the core's own table tells. */
static void watch_routes(sim_workload *workload) {
  sim_cluster *cluster = workload->cluster;
  for (int i = 0; i < cluster->n_brokers; i++) {
    sim_broker *broker = &cluster->brokers[i];
    if (broker->host.fruitless == 0) continue;
    const rmq_routes *routes = workload->producer->routes;
    bool named = routes && rmq_routes_master(routes, rmq_slice_text(broker->name));
    if (workload->named[i] && !named) broker->host.fruitless = 0;
    workload->named[i] = named;
  }
}

static uint64_t count_traced(const sim_ledger *ledger) {
  uint64_t n = 0;
  for (size_t i = 0; i < ledger->n_sends; i++) n += ledger->sends[i]->traced > 0;
  return n;
}

void sim_check_counters(sim_workload *workload) {
  if (!workload->producer || workload->forked) return;
  check_traces(workload);
  watch_avoidances(workload);
  watch_routes(workload);
  rmq_producer_stats stats = rmq_producer_stats_of(workload->producer);
  sim_check_transactions(workload, &stats);
  sim_check_requests(workload, &stats);
  const rmq_settings *settings = rmq_producer_settings(workload->producer);
  /* A body that a hook has made counts besides the caller's. */
  size_t most_bytes = (size_t)settings->max_inflight_bytes * (workload->hooked ? 2 : 1);
  size_t least = workload->ledger->under_way, most = least + workload->sending;
  if (stats.inflight + stats.waiting < least || stats.inflight + stats.waiting > most) {
    sim_break(workload->world, "%zu sends under way and %zu waiting, but %zu have not completed",
              stats.inflight, stats.waiting, workload->ledger->under_way);
  } else if (stats.inflight > (size_t)settings->max_inflight) {
    sim_break(workload->world, "%zu sends under way, more than max_inflight", stats.inflight);
  } else if (stats.inflight_bytes > most_bytes && stats.inflight > 1) {
    sim_break(workload->world, "%zu bytes under way, more than max_inflight_bytes",
              stats.inflight_bytes);
  } else if (stats.gathered > stats.inflight) {
    sim_break(workload->world, "%zu sends are gathered, of %zu under way", stats.gathered,
              stats.inflight);
  }
}

void sim_check_deadlines(sim_workload *workload) {
  if (workload->forked) return;
  const sim_ledger *ledger = workload->ledger;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    if (ledger->sends[i]->state == SIM_SEND_UNDER_WAY) sim_check_time(workload, ledger->sends[i]);
  }
}

/* Who was greeted with a heartbeat on a connection hears of the end there. The connections that
 * were just closed still stand at the brokers' ends. */
static void check_farewells(sim_workload *workload) {
  for (int i = 0; i < workload->cluster->n_brokers; i++) {
    sim_host *host = &workload->cluster->brokers[i].host;
    for (rmq_link *at = host->connections.next; at != &host->connections; at = at->next) {
      const sim_connection *connection = rmq_link_owner(at, sim_connection, link);
      if (connection->registered) {
        sim_break(workload->world, "the shutdown did not unregister on socket %u", connection->id);
      }
    }
  }
}

void sim_check_counters_zero(sim_workload *workload) {
  if (!workload->producer) return;
  rmq_producer_stats stats = rmq_producer_stats_of(workload->producer);
  if (stats.inflight || stats.waiting || stats.inflight_bytes || stats.gathered ||
      workload->ledger->under_way || stats.trace_pending || stats.transactions || stats.requests) {
    sim_break(workload->world,
              "after the shutdown %zu sends are under way, %zu wait, %zu are gathered, %zu bytes, "
              "%zu trace records, %zu transactions, %zu requests",
              stats.inflight, stats.waiting, stats.gathered, stats.inflight_bytes,
              stats.trace_pending, stats.transactions, stats.requests);
  }
  if (stats.trace_sent > count_traced(workload->ledger)) {
    sim_break(workload->world, "%" PRIu64 " trace records are acknowledged, %" PRIu64 " stored",
              stats.trace_sent, count_traced(workload->ledger));
  }
  if (workload->cluster->trouble == SIM_NO_TROUBLE) check_farewells(workload);
}

/* Round robin: without trouble no queue of the plain topic is more than one ahead of another. */
static void check_balance(sim_workload *workload) {
  enum { KEYS = SIM_BROKERS_MAX * SIM_QUEUES_MAX };
  uint32_t count[KEYS] = {0}, least = UINT32_MAX, most = 0;
  const sim_ledger *ledger = workload->ledger;
  for (size_t i = 0; i < ledger->n_sends; i++) {
    const sim_send *send = ledger->sends[i];
    if (send->topic != 0 || send->given_broker >= 0 || send->n_copies == 0) continue;
    count[send->copies[0].broker * SIM_QUEUES_MAX + send->copies[0].queue]++;
  }
  for (int i = 0; i < workload->cluster->n_brokers; i++) {
    for (int32_t q = 0; q < workload->cluster->truth.topics[0].parts[i].queues; q++) {
      uint32_t n = count[i * SIM_QUEUES_MAX + q];
      if (n < least) least = n;
      if (n > most) most = n;
    }
  }
  if (most > least + 1 + workload->failed_by_stop + workload->refused_by_hooks) {
    sim_break(workload->world, "one queue got %u messages, another %u", most, least);
  }
}

void sim_check_end(sim_workload *workload) {
  sim_world *world = workload->world;
  size_t sockets = sim_sockets_alive(world->network), lookups = sim_lookups_alive(world->network);
  if (sockets || lookups) {
    sim_break(world, "%zu sockets and %zu lookups are left over", sockets, lookups);
  } else if (workload->producer) {
    sim_break(world, "the shutdown never completed");
  } else if (!workload->forked &&
             (!rmq_link_alone(&workload->calls) || workload->ledger->under_way)) {
    sim_break(world, "%zu sends, or a flush, a question or a shutdown, never completed",
              workload->ledger->under_way);
  }
  if (workload->cluster->trouble == SIM_NO_TROUBLE && workload->topics_kept && workload->even)
    check_balance(workload);
  sim_check_transactions_end(workload);
  sim_check_requests_end(workload);
}

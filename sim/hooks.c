#include "sim/hooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/hook.h"
#include "sim/invariants.h"
#include "wire/properties.h"

sim_change sim_change_of(uint32_t number, int attempt) {
  sim_random random = {((uint64_t)number << 8) + (uint64_t)attempt};
  sim_change change = {.mark = sim_random_chance(&random, 500000)};
  if (change.mark && sim_random_chance(&random, 500000)) change.flip = (uint8_t)(1 + attempt % 255);
  return change;
}

/* ---- What is seen ---- */

static sim_send *send_of(sim_workload *workload, const rmq_hook_attempt *attempt) {
  sim_send *send = sim_ledger_find(workload->ledger, attempt->properties);
  if (!send) sim_break(workload->world, "a hook sees a message without its number");
  return send;
}

static bool is_body(const sim_send *send, rmq_slice body, uint8_t flip) {
  if (body.len != send->body_len) return false;
  for (size_t i = 0; i < body.len; i++) {
    if (((uint8_t)body.ptr[i] ^ flip) != (uint8_t)send->body[i]) return false;
  }
  return true;
}

/* The send that a call is about, when all is as it must be at any call; else NULL. */
static sim_send *enter(sim_workload *workload, const rmq_hook_attempt *attempt, const char *what) {
  sim_send *send = send_of(workload, attempt);
  if (!send) return NULL;
  sim_note(workload->world, what, send->number, attempt->attempt);
  workload->hook_calls++;
  bool wrong = send->finals > 0 || workload->stopped || workload->forked ||
               (send->state != SIM_SEND_UNDER_WAY && !send->asks) ||
               attempt->mode != send->options.mode || attempt->flag != send->flag;
  if (wrong) {
    sim_break(workload->world, "%s of send %" PRIu32 " comes when nothing of it may come", what,
              send->number);
  }
  return wrong ? NULL : send;
}

/* ---- What hooks do besides ---- */

static int refuse(sim_workload *workload, sim_send *send, rmq_failure *why) {
  send->refused_by_hook = true;
  workload->refused_by_hooks++;
  const char *topic = workload->cluster->truth.topics[send->topic].name;
  rmq_failure_set(why, RMQ_KIND_HOOK, 0, "a hook is against send %" PRIu32 " to %s", send->number,
                  topic);
  return RMQ_EINVAL;
}

static bool is_against(sim_workload *workload) {
  return sim_random_chance(&workload->hook_random, 10000);
}

static void act(sim_workload *workload, const sim_send *send) {
  sim_random *random = &workload->hook_random;
  if (workload->hook_calls == workload->hook_end_at) {
    if (sim_random_chance(random, 500000)) {
      sim_workload_fork(workload);
    } else {
      sim_workload_stop(workload, sim_random_between(random, 0, 1000));
    }
  }
  if (sim_random_chance(random, 2000)) sim_workload_flush(workload);
  if (sim_random_chance(random, 20000)) sim_workload_send_from_hook(workload, send);
}

/* ---- The calls ---- */

static int check_forbidden(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  sim_workload *workload = arg;
  sim_send *send = enter(workload, attempt, "check hook");
  if (!send) return 0;
  if (attempt->attempt != send->befores + 1 || !attempt->broker ||
      !is_body(send, attempt->body, 0)) {
    sim_break(workload->world, "check_forbidden of send %" PRIu32 " sees the wrong attempt %d",
              send->number, attempt->attempt);
  }
  act(workload, send);
  return is_against(workload) ? refuse(workload, send, why) : 0;
}

static void change(rmq_hook_attempt *attempt, const sim_send *send, rmq_failure *why) {
  sim_change what = sim_change_of(send->number, attempt->attempt);
  if (!what.mark) return;
  char number[SIM_TEXT], mark[SIM_TEXT], value[SIM_TEXT];
  snprintf(number, sizeof number, "%" PRIu32, send->number);
  snprintf(mark, sizeof mark, "%d", attempt->attempt);
  sim_value_text(send->number, value);
  rmq_field properties[] = {{rmq_slice_text("h"), rmq_slice_text(mark)},
                            {rmq_slice_text("n"), rmq_slice_text(number)},
                            {rmq_slice_text("p"), rmq_slice_text(value)}};
  rmq_slice keys = rmq_properties_find(attempt->properties, "KEYS");
  rmq_message users = {.tags = rmq_properties_find(attempt->properties, "TAGS"),
                       .keys = &keys,
                       .n_keys = keys.len > 0,
                       .properties = properties,
                       .n_properties = 3};
  rmq_hook_set_properties(attempt, &users, why);
  if (what.flip == 0) return;
  char *body = rmq_alloc(attempt->body.len);
  for (size_t i = 0; i < attempt->body.len; i++) {
    body[i] = (char)((uint8_t)attempt->body.ptr[i] ^ what.flip);
  }
  rmq_hook_set_body(attempt, rmq_slice_make(body, attempt->body.len), why);
  free(body);
}

static int before(void *arg, rmq_hook_attempt *attempt, rmq_failure *why) {
  sim_workload *workload = arg;
  sim_send *send = enter(workload, attempt, "before hook");
  if (!send) return 0;
  send->befores++;
  if (attempt->attempt != send->befores || send->afters != send->befores - 1 ||
      *attempt->state != NULL || attempt->completion || !is_body(send, attempt->body, 0)) {
    sim_break(workload->world, "before of send %" PRIu32 " comes wrongly in attempt %d",
              send->number, attempt->attempt);
  }
  *attempt->state = send;
  change(attempt, send, why);
  act(workload, send);
  return is_against(workload) ? refuse(workload, send, why) : 0;
}

/* An attempt that a hook's failure after the one before has ended had no `before`. */
static bool is_after_right(const sim_send *send, const rmq_hook_attempt *attempt) {
  const rmq_completion *completion = attempt->completion;
  int expected = send->afters + 1;
  bool without = attempt->attempt == send->befores + 1 || attempt->attempt == 0;
  if (attempt->attempt == 0) expected = 0;
  if (without && attempt->will_retry) return false;
  if (attempt->attempt != expected || (attempt->attempt != send->befores && !without)) return false;
  if (*attempt->state != (without ? NULL : (const void *)send)) return false;
  if (!completion || (completion->failure == NULL) != (send->options.mode == RMQ_MODE_ONEWAY
                                                           ? completion->failure == NULL
                                                           : completion->reply != NULL)) {
    return false;
  }
  sim_change what = {.mark = false};
  if (!without) what = sim_change_of(send->number, attempt->attempt);
  return without || is_body(send, attempt->body, what.flip);
}

static int after(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  sim_workload *workload = arg;
  sim_send *send = enter(workload, attempt, "after hook");
  if (!send) return 0;
  if (!is_after_right(send, attempt)) {
    sim_break(workload->world, "after of send %" PRIu32 " comes wrongly in attempt %d",
              send->number, attempt->attempt);
  }
  send->afters++;
  send->finals += !attempt->will_retry;
  *attempt->state = NULL;
  act(workload, send);
  return is_against(workload) ? refuse(workload, send, why) : 0;
}

static const rmq_hooks hooks = {
    .check_forbidden = check_forbidden, .before = before, .after = after};

void sim_hooks_start(sim_workload *workload, uint64_t seed) {
  workload->hook_random = (sim_random){seed ^ UINT64_C(0x686F6F6B73686F6F)};
  if (!sim_random_chance(&workload->hook_random, 333333)) return;
  workload->hooked = true;
  workload->ledger->hooked = true;
  if (workload->end_at > 0 && sim_random_chance(&workload->hook_random, 500000)) {
    workload->hook_end_at = workload->end_at;
  }
  rmq_producer_set_hooks(workload->producer, &hooks, workload);
}

void sim_check_hooks(sim_workload *workload, const sim_send *send,
                     const rmq_completion *completion) {
  if (!workload->hooked) return;
  int expected = completion->attempts > 0 ? completion->attempts : 1;
  if (send->finals == 1 && send->afters == expected && send->befores <= completion->attempts)
    return;
  sim_break(workload->world,
            "send %" PRIu32
            " made %d attempts, and its hooks were called %d times before and %d "
            "after, %d times for the last",
            send->number, completion->attempts, send->befores, send->afters, send->finals);
}

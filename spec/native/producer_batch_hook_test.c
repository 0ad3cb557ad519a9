/* Hooks around the attempts of batches: each message has its own calls, in virtual time. */
#include "base/error.h"
#include "producer/hook.h"
#include "producer_world.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

enum { MEMBERS = 3 };
static world_end ends[MEMBERS];
static char told[8192]; /* one line a call */

/* What the hooks of a test do. */
static struct {
  const char *forbid, *strict, *fork; /* the bodies of messages that this happens to */
  int forbid_attempt;                 /* 0: in each */
  const char *change, *to;            /* the body of one, and what before makes of it */
} plan;

static bool is(const rmq_hook_attempt *attempt, const char *body) {
  return body && rmq_slice_is(attempt->body, body);
}

static void note(const char *what, const rmq_hook_attempt *attempt, const char *more) {
  size_t len = strlen(told);
  snprintf(told + len, sizeof told - len, "%s %d %s %.*s%s\n", what, attempt->attempt,
           attempt->broker ? attempt->broker : "", (int)attempt->body.len, attempt->body.ptr, more);
}

static int refuse(const char *text, rmq_failure *why) {
  rmq_failure_set(why, RMQ_KIND_HOOK, 0, "%s", text);
  return RMQ_EINVAL;
}

static int check_forbidden(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  (void)arg;
  note("check", attempt, "");
  if (plan.forbid_attempt && plan.forbid_attempt != attempt->attempt) return 0;
  return is(attempt, plan.forbid) ? refuse("forbidden", why) : 0;
}

static int before(void *arg, rmq_hook_attempt *attempt, rmq_failure *why) {
  (void)arg;
  note("before", attempt, "");
  CHECK(attempt->addr && attempt->queue_id == 0);
  if (is(attempt, plan.fork)) rmq_producer_forked(producer);
  if (is(attempt, plan.change)) return rmq_hook_set_body(attempt, rmq_slice_text(plan.to), why);
  return is(attempt, plan.strict) ? refuse("strict before", why) : 0;
}

static int after(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  (void)arg;
  (void)why;
  char more[64];
  const rmq_completion *completion = attempt->completion;
  snprintf(more, sizeof more, " %s%s",
           completion->failure ? rmq_kind_name(completion->failure->kind)
                               : rmq_send_status_name(completion->status),
           attempt->will_retry ? " again" : "");
  note("after", attempt, more);
  return 0;
}

static const rmq_hooks hooks = {
    .check_forbidden = check_forbidden, .before = before, .after = after};

static void note_done(void *arg, const rmq_completion *completion) {
  (void)arg;
  world_done(&ends[completion->index], completion);
}

static void begin(const char *brokers) {
  world_begin();
  memset(ends, 0, sizeof ends);
  memset(&plan, 0, sizeof plan);
  told[0] = '\0';
  world_topic_set("T", brokers, 1, 6);
}

/* Sends the messages "x", "y" and "z" as one batch. */
static void send_three(const char *broker) {
  static const char *const bodies[MEMBERS] = {"x", "y", "z"};
  rmq_draft *draft = rmq_draft_new(producer);
  for (int i = 0; i < MEMBERS; i++) {
    rmq_message message = {
        .topic = rmq_slice_text("T"), .body = rmq_slice_text(bodies[i]), .wait = true};
    CHECK_INT(rmq_draft_add(draft, &message), 0);
  }
  rmq_draft_options options = {.send = world_options, .split = true};
  options.send.broker = rmq_slice_text(broker);
  CHECK_INT(rmq_draft_send(draft, &options, note_done, NULL), 0);
}

static void start(void) {
  world_start();
  rmq_producer_set_hooks(producer, &hooks, NULL);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  world_end_all();
}

static void was_told(const char *expected) {
  if (strcmp(told, expected) != 0) printf("told:\n%sexpected:\n%s", told, expected);
  CHECK(strcmp(told, expected) == 0);
}

static void once_for_each(void) {
  begin("a");
  start();
  send_three("a");
  world_settle();
  was_told(
      "check 1 a x\nbefore 1 a x\ncheck 1 a y\nbefore 1 a y\ncheck 1 a z\nbefore 1 a z\n"
      "after 1 a x SEND_OK\nafter 1 a y SEND_OK\nafter 1 a z SEND_OK\n");
  CHECK_INT(world_at(A)->batches, 1);
  finish();
}

static void who_is_forbidden_leaves_the_others(void) {
  begin("a");
  plan.forbid = "y";
  start();
  send_three(NULL);
  world_settle();
  CHECK_INT(world_n_log, 2);
  CHECK(!ends[0].failed && !ends[2].failed);
  CHECK_INT(ends[2].queue_offset, 2);
  CHECK_INT(ends[1].kind, RMQ_KIND_HOOK);
  CHECK_INT(ends[1].attempts, 0);
  CHECK(strstr(told, "after 0  y hook\n") != NULL);
  CHECK(strstr(told, "after 1 a z SEND_OK\n") != NULL);
  finish();
}

static void all_forbidden_nothing_is_sent(void) {
  begin("a");
  plan.strict = "x";
  plan.forbid = "z";
  start();
  send_three(NULL);
  plan.strict = "y";
  world_settle();
  CHECK_INT(world_n_log, 1); /* x: it was asked about when plan said y */
  plan.forbid = "x";
  plan.strict = "y";
  world_settle();
  rmq_draft *draft = rmq_draft_new(producer);
  rmq_message message = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("x"), .wait = true};
  CHECK_INT(rmq_draft_add(draft, &message), 0);
  rmq_draft_options options = {.send = world_options, .split = true};
  CHECK_INT(rmq_draft_send(draft, &options, note_done, NULL), 0);
  world_settle();
  CHECK_INT(world_n_log, 1);
  CHECK_INT(ends[0].dones, 2);
  CHECK_INT(ends[0].kind, RMQ_KIND_HOOK);
  finish();
}

static void what_before_changes_is_sent(void) {
  begin("a");
  plan.change = "y";
  plan.to = "something else";
  start();
  send_three(NULL);
  world_settle();
  CHECK(strcmp(world_log[0].body, "x") == 0);
  CHECK(strcmp(world_log[1].body, "something else") == 0);
  CHECK(strcmp(world_log[2].body, "z") == 0);
  CHECK(!ends[1].failed);
  finish();
}

static void what_becomes_too_long_leaves(void) {
  char why[64];
  begin("a");
  CHECK_INT(rmq_settings_set_integer(&world_settings,
                                     rmq_setting_find(rmq_slice_text("max_message_size")), 1500,
                                     why, sizeof why),
            0);
  static char longer[1001];
  memset(longer, 'l', 1000);
  plan.change = "y";
  plan.to = longer;
  start();
  send_three(NULL);
  world_settle();
  CHECK_INT(world_n_log, 2);
  CHECK_INT(ends[1].kind, RMQ_KIND_HOOK);
  CHECK_INT(ends[1].code, 13);
  CHECK(strstr(ends[1].message, "hooks have made the messages of its batch longer") != NULL);
  CHECK(!ends[0].failed && !ends[2].failed);
  finish();
}

static void around_each_attempt_of_each(void) {
  begin("a");
  world_script(A, (world_act){WORLD_CODE, 2});
  start();
  send_three(NULL);
  world_run(50);
  was_told(
      "check 1 a x\nbefore 1 a x\ncheck 1 a y\nbefore 1 a y\ncheck 1 a z\nbefore 1 a z\n"
      "check 2 a x\nafter 1 a x broker again\nbefore 2 a x\n"
      "check 2 a y\nafter 1 a y broker again\nbefore 2 a y\n"
      "check 2 a z\nafter 1 a z broker again\nbefore 2 a z\n"
      "after 2 a x SEND_OK\nafter 2 a y SEND_OK\nafter 2 a z SEND_OK\n");
  finish();
}

static void forbidden_before_another_attempt(void) {
  begin("a");
  world_script(A, (world_act){WORLD_CODE, 2});
  plan.forbid = "y";
  plan.forbid_attempt = 2;
  start();
  send_three(NULL);
  world_run(50);
  CHECK_INT(ends[1].dones, 1);
  CHECK_INT(ends[1].kind, RMQ_KIND_HOOK);
  CHECK_INT(ends[1].n_tries, 1);
  CHECK_INT(ends[1].attempts, 1);
  CHECK(!strstr(told, "before 2 a y"));
  CHECK(strstr(told, "after 1 a y hook\n") != NULL);
  CHECK(strstr(told, "after 2 a z SEND_OK\n") != NULL);
  CHECK_INT(world_n_log, 5);
  CHECK(!ends[0].failed && !ends[2].failed);
  finish();
}

static void a_kept_result_is_told_to_each(void) {
  char why[64];
  begin("ab");
  world_at(A)->always = (world_act){WORLD_CODE, 10};
  world_at(B)->always = (world_act){WORLD_CODE, 10};
  rmq_settings_set_boolean(
      &world_settings, rmq_setting_find(rmq_slice_text("retry_another_broker_when_not_store_ok")),
      true, why, sizeof why);
  start();
  send_three(NULL);
  world_run(100);
  for (int i = 0; i < MEMBERS; i++) {
    CHECK_INT(ends[i].dones, 1);
    CHECK(!ends[i].failed);
    CHECK_INT(ends[i].status, RMQ_SEND_FLUSH_DISK_TIMEOUT);
  }
  CHECK(strstr(told, "y FLUSH_DISK_TIMEOUT again\n") != NULL);
  finish();
}

static void a_hook_that_forks(void) {
  begin("a");
  plan.fork = "y";
  start();
  send_three(NULL);
  world_settle();
  for (int i = 0; i < MEMBERS; i++) CHECK_INT(ends[i].dones, 0);
  CHECK_INT(world_n_log, 0);
  world_end_all();
}

/* ---- What auto_batch lets leave ---- */

static world_end gathered_ends[8];
static world_count flushed;
static int acts; /* what `act` has done */

/* Called by before, for a message whose body is "act". */
static void (*act)(void);

static int before_acts(void *arg, rmq_hook_attempt *attempt, rmq_failure *why) {
  (void)arg;
  (void)why;
  if (is(attempt, "act") && acts++ == 0) act();
  return 0;
}

static const rmq_hooks acting = {.before = before_acts};

static void send_to_queue(int i, const char *body, const char *tags) {
  rmq_message message = {.topic = rmq_slice_text("T"),
                         .body = rmq_slice_text(body),
                         .tags = rmq_slice_text(tags),
                         .wait = true};
  rmq_send_options options = world_options;
  options.broker = rmq_slice_text("a");
  CHECK_INT(rmq_producer_send(producer, &message, &options, world_done, &gathered_ends[i]), 0);
}

static void begin_gathering(void (*what)(void)) {
  char why[64];
  begin("a");
  memset(gathered_ends, 0, sizeof gathered_ends);
  memset(&flushed, 0, sizeof flushed);
  acts = 0;
  act = what;
  CHECK_INT(
      rmq_settings_set_boolean(&world_settings, rmq_setting_find(rmq_slice_text("auto_batch")),
                               true, why, sizeof why),
      0);
  world_start();
  rmq_producer_set_hooks(producer, &acting, NULL);
  send_to_queue(0, "the route is known", NULL);
  world_settle();
}

static void fork_it(void) { rmq_producer_forked(producer); }

/* "act" leaves because a message with other tags comes, from inside its send. */
static void a_fork_while_another_one_is_gathered(void) {
  begin_gathering(fork_it);
  send_to_queue(1, "act", "x");
  send_to_queue(2, "later", "y");
  CHECK_INT(acts, 1);
  world_settle();
  CHECK_INT(gathered_ends[1].dones + gathered_ends[2].dones, 0);
  world_end_all();
}

/* The same by one that is not gathered. */
static void a_fork_while_another_one_passes(void) {
  begin_gathering(fork_it);
  send_to_queue(1, "act", "x");
  rmq_message delayed = {.topic = rmq_slice_text("T"),
                         .body = rmq_slice_text("delayed"),
                         .delay_kind = RMQ_DELAY_LEVEL,
                         .delay = 1,
                         .wait = true};
  rmq_send_options options = world_options;
  options.broker = rmq_slice_text("a");
  CHECK_INT(rmq_producer_send(producer, &delayed, &options, world_done, &gathered_ends[2]), 0);
  CHECK_INT(acts, 1);
  world_settle();
  CHECK_INT(gathered_ends[1].dones + gathered_ends[2].dones, 0);
  world_end_all();
}

static void a_fork_from_inside_a_flush(void) {
  begin_gathering(fork_it);
  send_to_queue(1, "act", "x");
  rmq_producer_flush(producer, 1000, world_count_done, &flushed);
  world_settle();
  CHECK_INT(flushed.dones, 0);
  world_end_all();
}

static void a_fork_from_inside_a_shutdown(void) {
  begin_gathering(fork_it);
  send_to_queue(1, "act", "x");
  rmq_producer_shutdown(producer, 1000, world_count_done, &flushed);
  world_settle();
  CHECK_INT(flushed.dones, 0);
  world_end_all();
}

static void send_more(void) { send_to_queue(3, "more", "z"); }

/* The simulator's seed 640: a flush answers for what was sent before it, not for what hooks send
 * because of it. */
static void a_flush_does_not_answer_for_what_it_sets_off(void) {
  begin_gathering(send_more);
  world_at(A)->always.mood = WORLD_MUTE;
  send_to_queue(1, "act", "x");
  rmq_producer_flush(producer, 100, world_count_done, &flushed);
  world_run(102);
  CHECK_INT(acts, 1);
  CHECK_INT(flushed.dones, 1);
  CHECK_INT(flushed.left, 1);
  world_run(8000);
  finish();
}

/* What a hook sends may go into the very group that is being let go. */
static void a_hook_fills_the_group_again(void) {
  begin_gathering(send_more);
  send_to_queue(1, "act", "x");
  send_to_queue(2, "later", "y");
  world_settle();
  for (int i = 1; i <= 3; i++) {
    CHECK_INT(gathered_ends[i].dones, 1);
    CHECK(!gathered_ends[i].failed);
  }
  finish();
}

/* The simulator's seed 305890: the budget of the carrier is that of its last member, which a
 * hook stops. */
static void who_is_left_has_its_own_budget(void) {
  begin_gathering(send_more);
  world_at(A)->always.mood = WORLD_MUTE;
  rmq_producer_set_hooks(producer, &hooks, NULL);
  plan.forbid = "z";
  rmq_send_options options = world_options;
  options.broker = rmq_slice_text("a");
  options.timeout_ms = 100;
  rmq_message message = {.topic = rmq_slice_text("T"), .wait = true};
  static const char *const bodies[] = {"under way", "y", "z"};
  int64_t began = 0;
  for (int i = 1; i <= 3; i++) {
    message.body = rmq_slice_text(bodies[i - 1]);
    if (i == 2) began = world_now_us();
    CHECK_INT(rmq_producer_send(producer, &message, &options, world_done, &gathered_ends[i]), 0);
    world_run(4);
  }
  world_run(300);
  CHECK_INT(gathered_ends[3].kind, RMQ_KIND_HOOK);
  CHECK_INT(gathered_ends[2].dones, 1);
  CHECK_INT(gathered_ends[2].kind, RMQ_KIND_TIMEOUT);
  CHECK(gathered_ends[2].at_us - began >= 100000 && gathered_ends[2].at_us - began <= 101000);
  finish();
}

int main(void) {
  check_run("once for each", once_for_each);
  check_run("who is forbidden leaves the others", who_is_forbidden_leaves_the_others);
  check_run("all forbidden, nothing is sent", all_forbidden_nothing_is_sent);
  check_run("what before changes is sent", what_before_changes_is_sent);
  check_run("what becomes too long leaves", what_becomes_too_long_leaves);
  check_run("around each attempt of each", around_each_attempt_of_each);
  check_run("forbidden before another attempt", forbidden_before_another_attempt);
  check_run("a kept result is told to each", a_kept_result_is_told_to_each);
  check_run("a hook that forks", a_hook_that_forks);
  check_run("a fork while another one is gathered", a_fork_while_another_one_is_gathered);
  check_run("a fork while another one passes", a_fork_while_another_one_passes);
  check_run("a fork from inside a flush", a_fork_from_inside_a_flush);
  check_run("a fork from inside a shutdown", a_fork_from_inside_a_shutdown);
  check_run("a flush does not answer for what it sets off",
            a_flush_does_not_answer_for_what_it_sets_off);
  check_run("a hook fills the group again", a_hook_fills_the_group_again);
  check_run("who is left has its own budget", who_is_left_has_its_own_budget);
  return check_end();
}

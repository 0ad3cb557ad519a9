/* When hooks are called, and what becomes of what they say, in virtual time. */
#include "base/error.h"
#include "producer/hook.h"
#include "producer_world.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

static world_end end;
static char told[8192]; /* one line a call */

/* What the hooks of a test do. */
static struct {
  int forbid_attempt, strict_before, strict_after; /* refuse this attempt; 0: none */
  const char *body, *tags;                         /* what before sets */
  int only_attempt;                                /* before sets it in this attempt; 0: in all */
  void (*in_before)(void);
  void (*in_after)(void);
  bool sends_too; /* after sends another message */
  int refused;    /* what it sent and was refused */
} plan;

static const char *outcome_of(const rmq_hook_attempt *attempt) {
  const rmq_completion *completion = attempt->completion;
  if (!completion->failure) return rmq_send_status_name(completion->status);
  return rmq_kind_name(completion->failure->kind);
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
  CHECK(arg == &plan && attempt->completion == NULL);
  note("check", attempt, "");
  return plan.forbid_attempt == attempt->attempt ? refuse("forbidden", why) : 0;
}

static int before(void *arg, rmq_hook_attempt *attempt, rmq_failure *why) {
  CHECK(arg == &plan && attempt->completion == NULL && *attempt->state == NULL);
  note("before", attempt, "");
  *attempt->state = &plan;
  if (plan.in_before) plan.in_before();
  if (plan.only_attempt && plan.only_attempt != attempt->attempt) return 0;
  if (plan.body && rmq_hook_set_body(attempt, rmq_slice_text(plan.body), why) < 0)
    return RMQ_EINVAL;
  if (plan.tags) {
    rmq_message users = {.tags = rmq_slice_text(plan.tags)};
    if (rmq_hook_set_properties(attempt, &users, why) < 0) return RMQ_EINVAL;
  }
  return plan.strict_before == attempt->attempt ? refuse("strict before", why) : 0;
}

static int after(void *arg, const rmq_hook_attempt *attempt, rmq_failure *why) {
  char more[64];
  CHECK(arg == &plan && attempt->completion != NULL);
  snprintf(more, sizeof more, " %s%s", outcome_of(attempt), attempt->will_retry ? " again" : "");
  note("after", attempt, more);
  *attempt->state = NULL;
  if (plan.in_after) plan.in_after();
  if (plan.sends_too) {
    static world_end ignored;
    int status = world_send("T", &ignored);
    if (status < 0) plan.refused = status;
  }
  return plan.strict_after == attempt->attempt ? refuse("strict after", why) : 0;
}

static const rmq_hooks hooks = {
    .check_forbidden = check_forbidden, .before = before, .after = after};

static void begin(const char *brokers) {
  world_begin();
  memset(&end, 0, sizeof end);
  memset(&plan, 0, sizeof plan);
  told[0] = '\0';
  world_topic_set("T", brokers, 1, 6);
  world_start();
  rmq_producer_set_hooks(producer, &hooks, &plan);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  world_end_all();
}

static void was_told(const char *expected) {
  CHECK(strcmp(told, expected) == 0);
  if (strcmp(told, expected) != 0) printf("told:\n%sexpected:\n%s", told, expected);
}

static void send_and_run(void) {
  CHECK_INT(world_send("T", &end), 0);
  world_run(10000);
  CHECK_INT(end.dones, 1);
}

/* ---- Pairs ---- */

static void once_around_an_attempt(void) {
  begin("a");
  send_and_run();
  CHECK(!end.failed);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body SEND_OK\n");
  finish();
}

/* The after of the first attempt names its broker and comes when the second one is certain. */
static void around_each_attempt(void) {
  begin("ab");
  world_script(A, (world_act){.mood = WORLD_CLOSES});
  world_script(B, (world_act){.mood = WORLD_CLOSES});
  send_and_run();
  CHECK(!end.failed && end.attempts == 3);
  char first = world_log[0].broker_name[0], second = world_log[1].broker_name[0];
  char third = world_log[2].broker_name[0];
  char expected[512];
  snprintf(expected, sizeof expected,
           "check 1 %c body\nbefore 1 %c body\n"
           "check 2 %c body\nafter 1 %c body closed again\nbefore 2 %c body\n"
           "check 3 %c body\nafter 2 %c body closed again\nbefore 3 %c body\n"
           "after 3 %c body SEND_OK\n",
           first, first, second, first, second, third, second, third, third);
  was_told(expected);
  finish();
}

static void the_last_one_has_what_the_caller_gets(void) {
  begin("a");
  world_at(A)->always = (world_act){.mood = WORLD_CODE, .code = 1};
  rmq_send_options options = world_options;
  options.retries = 0;
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(10000);
  CHECK(end.failed && end.kind == RMQ_KIND_BROKER);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body broker\n");
  finish();
}

/* The broker that never answers: the budget ends in the middle of an attempt, or of a pause. */
static void no_attempt_is_told_that_did_not_come(void) {
  for (int timeout = 5; timeout < 60; timeout += 3) {
    begin("a");
    world_at(A)->always.mood = WORLD_CLOSES;
    rmq_send_options options = world_options;
    options.timeout_ms = timeout;
    options.retries = 10;
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(1000);
    CHECK(end.dones == 1 && end.failed);
    int begun = 0, over = 0, last = 0;
    for (const char *line = told; *line; line = strchr(line, '\n') + 1) {
      const char *stop = strchr(line, '\n');
      if (strncmp(line, "before", 6) == 0) begun++;
      if (strncmp(line, "after", 5) != 0) continue;
      over++;
      if (strncmp(stop - 5, "again", 5) != 0) last++;
      CHECK_INT(over, begun); /* one is over before the next begins */
    }
    CHECK_INT(over, begun);
    CHECK_INT(begun, end.attempts);
    CHECK_INT(last, 1);
    finish();
  }
}

static void stored_but_is_told_as_a_result(void) {
  world_begin();
  char why[128];
  const rmq_setting *row =
      rmq_setting_find(rmq_slice_text("retry_another_broker_when_not_store_ok"));
  CHECK_INT(rmq_settings_set_boolean(&world_settings, row, true, why, sizeof why), 0);
  memset(&end, 0, sizeof end);
  memset(&plan, 0, sizeof plan);
  told[0] = '\0';
  world_topic_set("T", "ab", 1, 6);
  world_at(A)->always = world_at(B)->always = (world_act){.mood = WORLD_CODE, .code = 10};
  world_start();
  rmq_producer_set_hooks(producer, &hooks, &plan);
  send_and_run();
  CHECK(!end.failed && end.status == RMQ_SEND_FLUSH_DISK_TIMEOUT);
  CHECK(strstr(told, "body FLUSH_DISK_TIMEOUT again\n") != NULL);
  CHECK(strstr(told, "body FLUSH_DISK_TIMEOUT\n") != NULL);
  finish();
}

static void go_away_is_an_attempt(void) {
  begin("a");
  world_script(A, (world_act){.mood = WORLD_CODE, .code = 1500});
  rmq_send_options options = world_options;
  options.retries = 0;
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(10000);
  CHECK(!end.failed && end.dones == 1);
  was_told(
      "check 1 a body\nbefore 1 a body\ncheck 2 a body\nafter 1 a body broker again\n"
      "before 2 a body\nafter 2 a body SEND_OK\n");
  finish();
}

/* ---- No attempt ---- */

static int refuse_choice(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                         rmq_failure *why) {
  (void)arg, (void)choice, (void)queue;
  rmq_failure_set(why, RMQ_KIND_SELECTOR, 0, "no queue is good enough");
  return RMQ_EINVAL;
}

static void without_an_attempt_there_is_one_after(void) {
  begin("a");
  rmq_send_options options = world_options;
  options.choose = refuse_choice;
  CHECK_INT(world_send("Unknown", &end), 0);
  world_run(10000);
  CHECK(end.failed);
  was_told("after 0  body route\n");
  finish();

  begin("a");
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(10);
  CHECK_INT(end.kind, RMQ_KIND_SELECTOR);
  was_told("after 0  body selector\n");
  finish();

  begin("a");
  world_at("10.0.0.1:9876")->always.mood = WORLD_MUTE;
  CHECK_INT(world_send("T", &end), 0);
  world_count count = {0};
  rmq_producer_shutdown(producer, 100, world_count_done, &count);
  world_run(5000);
  CHECK(end.kind == RMQ_KIND_STATE && count.dones == 1);
  was_told("after 0  body state\n");
  finish();
}

static void who_is_refused_at_once_is_not_told_of(void) {
  begin("a");
  CHECK(world_send("no such topic", &end) < 0);
  world_run(10);
  was_told("");
  finish();
}

static void a_forbidden_send_makes_no_attempt(void) {
  begin("a");
  plan.forbid_attempt = 1;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_HOOK && end.attempts == 0 && !end.maybe_stored);
  CHECK(strcmp(end.message, "forbidden") == 0);
  CHECK_INT(world_n_log, 0);
  was_told("check 1 a body\nafter 0  body hook\n");
  finish();
}

/* The attempt before it has the last word then: there is no other one. */
static void forbidden_after_an_attempt(void) {
  begin("a");
  world_script(A, (world_act){.mood = WORLD_CLOSES});
  plan.forbid_attempt = 2;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_HOOK && end.attempts == 1 && end.maybe_stored);
  CHECK_INT(end.n_tries, 1);
  was_told("check 1 a body\nbefore 1 a body\ncheck 2 a body\nafter 1 a body hook\n");
  finish();
}

/* ---- Changes ---- */

static void what_before_leaves_is_sent(void) {
  begin("a");
  plan.body = "another body";
  plan.tags = "t";
  send_and_run();
  CHECK(strcmp(world_log[0].body, "another body") == 0);
  char properties[128];
  snprintf(properties, sizeof properties, "TAGS\001t\002WAIT\001true\002UNIQ_KEY\001%s\002",
           end.msg_id);
  CHECK(strcmp(world_log[0].properties, properties) == 0);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a another body SEND_OK\n");
  finish();
}

static void a_retry_starts_from_the_message(void) {
  begin("ab");
  world_script(A, (world_act){.mood = WORLD_CLOSES});
  world_script(B, (world_act){.mood = WORLD_CLOSES});
  plan.body = "another";
  plan.tags = "t";
  plan.only_attempt = 1;
  send_and_run();
  CHECK_INT(world_n_log, 3);
  CHECK(strcmp(world_log[0].body, "another") == 0 && strstr(world_log[0].properties, "TAGS"));
  for (int i = 1; i < 3; i++) {
    CHECK(strcmp(world_log[i].body, "body") == 0 && !strstr(world_log[i].properties, "TAGS"));
  }
  finish();
}

static size_t bytes_meanwhile;
static void note_bytes(void) { bytes_meanwhile = rmq_producer_stats_of(producer).inflight_bytes; }

static void a_changed_body_takes_room(void) {
  begin("a");
  plan.body = "0123456789";
  plan.in_after = note_bytes;
  send_and_run();
  CHECK_INT(bytes_meanwhile, 14);
  finish();
}

static void a_change_that_is_no_message(void) {
  begin("a");
  plan.body = "";
  send_and_run();
  CHECK(end.failed && world_n_log == 0);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body message\n");
  finish();
  begin("a");
  plan.tags = "a\001b";
  send_and_run();
  CHECK(end.failed && world_n_log == 0 && strstr(end.message, "byte 1"));
  finish();
}

/* ---- Strict ---- */

static void a_strict_before_ends_the_send(void) {
  begin("a");
  plan.strict_before = 1;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_HOOK && !end.maybe_stored && world_n_log == 0);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body hook\n");
  finish();
}

static void a_strict_after_turns_a_result_into_a_failure(void) {
  begin("a");
  plan.strict_after = 1;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_HOOK && end.maybe_stored && world_n_log == 1);
  CHECK(strcmp(end.message, "strict after") == 0);
  CHECK_INT(rmq_producer_stats_of(producer).failed, 1);
  CHECK_INT(rmq_producer_stats_of(producer).acknowledged, 0);
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body SEND_OK\n");
  finish();
}

/* A second attempt was announced, so there is one, which ends before it is sent. */
static void a_strict_after_between_attempts(void) {
  begin("a");
  world_script(A, (world_act){.mood = WORLD_CLOSES});
  plan.strict_after = 1;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_HOOK && end.maybe_stored && world_n_log == 1);
  was_told(
      "check 1 a body\nbefore 1 a body\ncheck 2 a body\nafter 1 a body closed again\n"
      "after 2 a body hook\n");
  finish();
}

/* The failure that the send has is worth more. */
static void a_strict_after_of_a_failure(void) {
  begin("a");
  world_at(A)->always = (world_act){.mood = WORLD_CODE, .code = 13};
  plan.strict_after = 1;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_BROKER && end.code == 13);
  finish();
}

/* ---- What hooks do besides ---- */

static void a_chain_of_sends_ends(void) {
  begin("a");
  plan.sends_too = true;
  send_and_run();
  CHECK_INT(plan.refused, RMQ_ELIMIT);
  CHECK_INT(rmq_producer_failure(producer)->kind, RMQ_KIND_HOOK);
  CHECK_INT(world_n_log, 1 + RMQ_HOOK_DEPTH);
  plan.sends_too = false;
  plan.refused = 0;
  memset(&end, 0, sizeof end);
  CHECK_INT(world_send("T", &end), 0); /* who is no hook sends as before */
  world_run(10);
  CHECK(end.dones == 1 && !end.failed);
  finish();
}

static void fork_now(void) { rmq_producer_forked(producer); }

static void a_hook_that_forks(void) {
  for (int in_after = 0; in_after < 2; in_after++) {
    begin("a");
    if (in_after) {
      plan.in_after = fork_now;
    } else {
      plan.in_before = fork_now;
    }
    CHECK_INT(world_send("T", &end), 0);
    world_run(100);
    CHECK_INT(end.dones, 0);
    finish();
  }
}

static void jump(void) { fake_jump(world_fake, 4000); }

static void a_hook_that_takes_all_the_time(void) {
  begin("a");
  plan.in_before = jump;
  send_and_run();
  CHECK(end.failed && end.kind == RMQ_KIND_TIMEOUT);
  CHECK_INT(world_n_log, 0); /* nothing is sent after the budget */
  was_told("check 1 a body\nbefore 1 a body\nafter 1 a body timeout\n");
  finish();
}

static void take_hooks_away(void) { rmq_producer_set_hooks(producer, NULL, NULL); }

static void hooks_that_go_away(void) {
  begin("a");
  plan.in_before = take_hooks_away;
  send_and_run();
  CHECK(!end.failed);
  was_told("check 1 a body\nbefore 1 a body\n");
  told[0] = '\0';
  CHECK_INT(world_send("T", &end), 0);
  world_run(10);
  was_told("");
  finish();
}

int main(void) {
  check_run("once around an attempt", once_around_an_attempt);
  check_run("around each attempt", around_each_attempt);
  check_run("the last after", the_last_one_has_what_the_caller_gets);
  check_run("no attempt is told that did not come", no_attempt_is_told_that_did_not_come);
  check_run("stored, but", stored_but_is_told_as_a_result);
  check_run("go away", go_away_is_an_attempt);
  check_run("without an attempt", without_an_attempt_there_is_one_after);
  check_run("refused at once", who_is_refused_at_once_is_not_told_of);
  check_run("forbidden", a_forbidden_send_makes_no_attempt);
  check_run("forbidden after an attempt", forbidden_after_an_attempt);
  check_run("what before leaves", what_before_leaves_is_sent);
  check_run("a retry starts from the message", a_retry_starts_from_the_message);
  check_run("a changed body takes room", a_changed_body_takes_room);
  check_run("a change that is no message", a_change_that_is_no_message);
  check_run("strict before", a_strict_before_ends_the_send);
  check_run("strict after", a_strict_after_turns_a_result_into_a_failure);
  check_run("strict after between attempts", a_strict_after_between_attempts);
  check_run("strict after a failure", a_strict_after_of_a_failure);
  check_run("a chain of sends", a_chain_of_sends_ends);
  check_run("a hook that forks", a_hook_that_forks);
  check_run("a hook that takes all the time", a_hook_that_takes_all_the_time);
  check_run("hooks that go away", hooks_that_go_away);
  return check_end();
}

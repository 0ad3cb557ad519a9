/* What the modes have in common, and who chooses a queue, in virtual time. */
#include "base/error.h"
#include "producer_world.h"
#include "wire/codes.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"
#define C "10.0.0.2:3"
#define NAMESRV "10.0.0.1:9876"

static world_end end;

static void begin(void) {
  world_begin();
  memset(&end, 0, sizeof end);
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.inflight_bytes, 0);
  CHECK_INT(stats.waiting, 0);
  world_end_all();
}

static void set_integer(const char *name, int value) {
  char why[256];
  CHECK_INT(rmq_settings_set_integer(&world_settings, rmq_setting_find(rmq_slice_text(name)), value,
                                     why, sizeof why),
            0);
}

static void set_codes(const char *codes) {
  char why[256];
  const rmq_setting *row = rmq_setting_find(rmq_slice_text("retryResponseCodes"));
  CHECK_INT(rmq_settings_set_text(&world_settings, row, rmq_slice_text(codes), why, sizeof why), 0);
}

/* ---- Time ---- */

/* What can keep a send waiting. */
typedef enum obstacle { A_MUTE_BROKER, A_MUTE_NAMESRV, NO_CONNECTION, OBSTACLES } obstacle;

static void put_in_the_way(obstacle what) {
  static const fake_rule never[] = {{.name = A, .delay_ms = -1}, {.name = NULL}};
  if (what == A_MUTE_BROKER) world_at(A)->always.mood = WORLD_MUTE;
  if (what == A_MUTE_NAMESRV) world_at(NAMESRV)->always.mood = WORLD_MUTE;
  if (what == NO_CONNECTION) fake_set_rules(world_fake, never);
}

/* A mode, an obstacle, a time: the end comes in the millisecond after the time, and never before. */
static void one_timeout(rmq_mode mode, obstacle what, int64_t timeout_ms) {
  if (mode == RMQ_MODE_ONEWAY && what == A_MUTE_BROKER) return; /* it wants no answer */
  begin();
  world_topic_set("T", "a", 1, 6);
  put_in_the_way(what);
  set_integer("connect_timeout", 10000);
  set_integer("mq_client_api_timeout", 10000);
  world_start();
  world_run(7);
  rmq_send_options options = world_options;
  options.mode = mode;
  options.timeout_ms = timeout_ms;
  int64_t started = world_now_us();
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(timeout_ms - 1);
  CHECK_INT(end.dones, 0);
  world_run(2);
  CHECK_INT(end.dones, 1);
  CHECK(end.failed);
  CHECK_INT(end.kind, what == NO_CONNECTION ? RMQ_KIND_CONNECT : RMQ_KIND_TIMEOUT);
  CHECK(end.at_us - started >= timeout_ms * 1000);
  CHECK(end.at_us - started <= timeout_ms * 1000 + 1000);
  world_run(5000);
  CHECK_INT(end.dones, 1);
  finish();
}

static void timeouts_come_in_their_millisecond(void) {
  static const int64_t times[] = {1, 2, 9, 50, 255, 256, 257, 1000, 3000, 4097};
  for (int mode = RMQ_MODE_SYNC; mode <= RMQ_MODE_ONEWAY; mode++) {
    for (int what = 0; what < OBSTACLES; what++) {
      for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        one_timeout((rmq_mode)mode, (obstacle)what, times[i]);
      }
    }
  }
}

/* An answer that comes `after_ms` after the send, whose time is 50 ms. */
static void answered_after(int64_t after_ms, bool in_time) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  memset(&end, 0, sizeof end);
  world_at(A)->delay_ms = after_ms;
  rmq_send_options options = world_options;
  options.mode = RMQ_MODE_ASYNC;
  options.timeout_ms = 50;
  options.retries = 0;
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(200);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.failed, !in_time);
  if (!in_time) CHECK(end.kind == RMQ_KIND_TIMEOUT && end.maybe_stored);
  /* A late answer is nobody else's. */
  world_at(A)->delay_ms = 0;
  world_end next = {0};
  CHECK_INT(world_send("T", &next), 0);
  world_run(100);
  CHECK(next.dones == 1 && !next.failed);
  CHECK_INT(end.dones, 1);
  finish();
}

static void answers_around_the_deadline(void) {
  answered_after(48, true);
  answered_after(49, true);
  answered_after(51, false);
  answered_after(52, false);
  answered_after(99, false);
}

static void either_way_at_the_deadline(void) {
  begin();
  world_topic_set("T", "a", 1, 6);
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  memset(&end, 0, sizeof end);
  world_at(A)->delay_ms = 50;
  rmq_send_options options = world_options;
  options.timeout_ms = 50;
  options.retries = 0;
  CHECK_INT(world_send_with("T", &options, &end), 0);
  world_run(300);
  CHECK_INT(end.dones, 1);
  finish();
}

/* ---- Modes ---- */

static void async_has_its_own_retries(void) {
  for (int mode = RMQ_MODE_SYNC; mode <= RMQ_MODE_ASYNC; mode++) {
    begin();
    world_topic_set("T", "ab", 1, 6);
    set_integer("retryTimesWhenSendAsyncFailed", 4);
    set_integer("retryTimesWhenSendFailed", 1);
    world_at(A)->always = world_at(B)->always = (world_act){.mood = WORLD_CODE, .code = 2};
    world_start();
    rmq_send_options options = world_options;
    options.mode = (rmq_mode)mode;
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(3000);
    CHECK(end.dones == 1 && end.failed && end.kind == RMQ_KIND_BROKER);
    CHECK_INT(end.attempts, mode == RMQ_MODE_ASYNC ? 5 : 2);
    finish();
  }
}

static void retry_codes_are_a_setting(void) {
  begin();
  world_topic_set("T", "ab", 1, 6);
  set_codes("29");
  world_at(A)->always = world_at(B)->always = (world_act){.mood = WORLD_CODE, .code = 2};
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(10);
  CHECK(end.dones == 1 && end.failed && end.attempts == 1); /* 2 is not among them any more */
  memset(&end, 0, sizeof end);
  world_at(A)->always.code = world_at(B)->always.code = 29;
  CHECK_INT(world_send("T", &end), 0);
  world_run(100);
  CHECK(end.dones == 1 && end.failed && end.attempts == 3);
  finish();
}

/* ---- Who chooses ---- */

typedef struct chooser {
  world_end end; /* first: `arg` is both */
  int asked;
  int attempts[8];
  char last[8][32];
  const char *says[8]; /* a broker's name for each time; NULL: refuse */
  int32_t id;
  bool sends; /* another send from inside */
} chooser;

static chooser asked;
static world_end inner;

static const rmq_publish_queue *queue_of(const rmq_choice *choice, const char *broker, int32_t id) {
  const rmq_publish *publish = choice->publish;
  int64_t place =
      rmq_publish_place(publish, rmq_publish_broker_find(publish, rmq_slice_text(broker)), id);
  CHECK(place >= 0);
  return rmq_publish_sorted(publish, (size_t)place);
}

static int choose(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                  rmq_failure *why) {
  chooser *who = arg;
  int n = who->asked++;
  who->attempts[n] = choice->attempt;
  snprintf(who->last[n], sizeof who->last[n], "%.*s", (int)choice->last_broker.len,
           choice->last_broker.len ? choice->last_broker.ptr : "");
  CHECK(choice->producer == producer && rmq_slice_is(choice->topic, "T"));
  CHECK(choice->publish->n_queues > 0);
  if (who->sends) {
    who->sends = false;
    CHECK_INT(world_send("T", &inner), 0);
  }
  if (!who->says[n]) {
    rmq_failure_set(why, RMQ_KIND_SELECTOR, 0, "no queue for this one");
    return RMQ_EINVAL;
  }
  *queue = queue_of(choice, who->says[n], who->id);
  return 0;
}

static int send_chosen(rmq_mode mode, bool may_wait) {
  rmq_send_options options = world_options;
  options.mode = mode;
  options.choose = choose;
  options.may_wait = may_wait;
  return world_send_with("T", &options, &asked.end);
}

static void begin_choosing(void) {
  begin();
  memset(&asked, 0, sizeof asked);
  memset(&inner, 0, sizeof inner);
  world_topic_set("T", "abc", 4, 6);
}

static void a_choice_is_asked_for_once(void) {
  for (int mode = RMQ_MODE_SYNC; mode <= RMQ_MODE_ONEWAY; mode++) {
    begin_choosing();
    world_start();
    asked.says[0] = "b";
    asked.id = 3;
    CHECK_INT(send_chosen((rmq_mode)mode, false), 0);
    CHECK_INT(asked.asked, 0); /* the route is not known */
    world_run(1);
    CHECK_INT(asked.asked, 1);
    CHECK_INT(asked.attempts[0], 1);
    CHECK(asked.last[0][0] == '\0');
    CHECK(asked.end.dones == 1 && !asked.end.failed);
    CHECK(world_n_log == 1 && world_log[0].broker == world_at(B) && world_log[0].queue_id == 3);
    CHECK_INT(send_chosen((rmq_mode)mode, false), 0);
    CHECK_INT(asked.asked, 2); /* from inside, now that it is known */
    world_run(1);
    CHECK_INT(asked.end.dones, 2);
    finish();
  }
}

static void a_refusing_choice_fails_later(void) {
  begin_choosing();
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  CHECK_INT(send_chosen(RMQ_MODE_ASYNC, false), 0);
  CHECK_INT(asked.asked, 1);
  CHECK_INT(asked.end.dones, 0);
  CHECK_INT(rmq_producer_stats_of(producer).inflight, 1);
  world_settle();
  CHECK(asked.end.dones == 1 && asked.end.failed && asked.end.kind == RMQ_KIND_SELECTOR);
  CHECK(strstr(asked.end.message, "no queue for this one") != NULL);
  CHECK_INT(asked.end.attempts, 0);
  CHECK_INT(world_n_log, 1);
  finish();
}

static void a_refused_send_can_be_cut_short(void) {
  world_count count = {0};
  begin_choosing();
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  CHECK_INT(send_chosen(RMQ_MODE_ASYNC, false), 0);
  rmq_producer_shutdown(producer, 0, world_count_done, &count);
  world_run(10);
  CHECK_INT(asked.end.dones, 1);
  CHECK_INT(count.dones, 1);
  finish();
}

static void it_is_asked_again_when_nothing_was_written(void) {
  static const fake_rule refuse_a[] = {{.name = A, .status = FAKE_REFUSED}, {.name = NULL}};
  begin_choosing();
  fake_set_rules(world_fake, refuse_a);
  world_start();
  asked.says[0] = "a";
  asked.says[1] = "b";
  CHECK_INT(send_chosen(RMQ_MODE_SYNC, false), 0);
  world_run(1);
  CHECK_INT(asked.asked, 2);
  CHECK_INT(asked.attempts[1], 2);
  CHECK(strcmp(asked.last[1], "a") == 0);
  CHECK(asked.end.dones == 1 && !asked.end.failed && asked.end.attempts == 2);
  CHECK(world_n_log == 1 && world_log[0].broker == world_at(B));
  finish();
}

/* The same broker again: not without a pause, and not asked for a third time by the pause. */
static void the_same_choice_again_pauses(void) {
  static const fake_rule refuse_a[] = {{.name = A, .status = FAKE_REFUSED}, {.name = NULL}};
  static const fake_rule none[] = {{.name = NULL}};
  begin_choosing();
  fake_set_rules(world_fake, refuse_a);
  world_start();
  asked.says[0] = asked.says[1] = "a";
  CHECK_INT(send_chosen(RMQ_MODE_SYNC, false), 0);
  world_run(1);
  CHECK_INT(asked.asked, 2);
  CHECK_INT(asked.end.dones, 0);
  fake_set_rules(world_fake, none);
  world_run(2000);
  CHECK_INT(asked.asked, 2);
  CHECK(asked.end.dones == 1 && !asked.end.failed && asked.end.attempts == 2);
  finish();
}

static void a_written_choice_is_not_tried_elsewhere(void) {
  begin_choosing();
  world_at(A)->always.mood = WORLD_CLOSES;
  world_start();
  asked.says[0] = "a";
  CHECK_INT(send_chosen(RMQ_MODE_ASYNC, false), 0);
  world_run(100);
  CHECK_INT(asked.asked, 1);
  CHECK(asked.end.dones == 1 && asked.end.failed && asked.end.maybe_stored);
  CHECK(asked.end.kind == RMQ_KIND_CLOSED && asked.end.attempts == 1);
  finish();
}

static void sending_while_choosing(void) {
  begin_choosing();
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  asked.says[0] = "c";
  asked.sends = true;
  CHECK_INT(send_chosen(RMQ_MODE_ASYNC, false), 0);
  world_run(1);
  CHECK(asked.end.dones == 1 && !asked.end.failed && strcmp(asked.end.broker, "c") == 0);
  CHECK(inner.dones == 1 && !inner.failed);
  finish();
}

static int choose_forked(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                         rmq_failure *why) {
  (void)arg;
  (void)why;
  rmq_producer_forked(producer);
  *queue = &choice->publish->queues[0];
  return 0;
}

static void forked_while_choosing(void) {
  begin_choosing();
  world_start();
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  rmq_send_options options = world_options;
  options.choose = choose_forked;
  CHECK_INT(world_send_with("T", &options, &asked.end), 0);
  world_run(1);
  CHECK_INT(asked.end.dones, 0);
  finish();
}

/* The choosers that are ready: the remainder keeps the key's sign, and drops it. */
static void chosen_by_key(void) {
  static const struct {
    int64_t key;
    const char *broker;
    int32_t id;
  } cases[] = {{0, "a", 0},  {3, "a", 3},         {4, "b", 0},         {23, "c", 3},
               {-5, "b", 1}, {INT32_MIN, "c", 0}, {3052481238, "b", 2}};
  begin_choosing();
  world_start();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rmq_send_options options = world_options;
    options.choose = rmq_choose_by_key;
    options.key = cases[i].key;
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(2);
    CHECK_INT(world_n_log, i + 1);
    CHECK(strcmp(world_log[i].broker_name, cases[i].broker) == 0);
    CHECK_INT(world_log[i].queue_id, cases[i].id);
  }
  finish();
}

static void chosen_by_chance(void) {
  begin_choosing();
  world_start();
  bool seen[3][4] = {{false}};
  for (int i = 0; i < 300; i++) {
    rmq_send_options options = world_options;
    options.choose = rmq_choose_random;
    CHECK_INT(world_send_with("T", &options, &end), 0);
    world_run(1);
  }
  for (int i = 0; i < world_n_log; i++) {
    seen[world_log[i].broker_name[0] - 'a'][world_log[i].queue_id] = true;
  }
  for (int i = 0; i < 12; i++) CHECK(seen[i / 4][i % 4]);
  finish();
}

/* Attempts that failed are counted for their brokers, refusals of one message are not. */
static void failures_are_counted(void) {
  begin_choosing();
  world_start();
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("a")), 0);
  asked.says[0] = asked.says[1] = asked.says[2] = "a";
  world_at(A)->always = (world_act){WORLD_CODE, RMQ_MESSAGE_ILLEGAL};
  CHECK_INT(send_chosen(RMQ_MODE_SYNC, false), 0);
  world_run(10);
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("a")), 0);
  world_at(A)->always = (world_act){WORLD_CODE, RMQ_SYSTEM_BUSY};
  CHECK_INT(send_chosen(RMQ_MODE_SYNC, false), 0);
  world_run(10);
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("a")), 1);
  world_at(A)->always = (world_act){.mood = WORLD_CLOSES};
  CHECK_INT(send_chosen(RMQ_MODE_SYNC, false), 0);
  world_run(10);
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("a")), 2);
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("b")), 0);
  CHECK_INT(rmq_producer_failures(producer, rmq_slice_text("z")), 0);
  finish();
}

static void who_is_available(void) {
  begin_choosing();
  world_start();
  CHECK(!rmq_producer_available(producer, rmq_slice_text("a"))); /* nobody has heard of it */
  CHECK_INT(world_send("T", &end), 0);
  world_run(1);
  CHECK(rmq_producer_available(producer, rmq_slice_text("a")));
  CHECK(!rmq_producer_available(producer, rmq_slice_text("z")));
  finish();
}

/* ---- Room ---- */

static int admissions;
static int dones_at_admission;

static void admitted(void *arg) {
  const world_end *whose = arg;
  admissions++;
  dones_at_admission = whose->dones;
}

static void begin_full(int timeout_ms, world_end *waiting) {
  begin();
  memset(waiting, 0, sizeof *waiting);
  admissions = 0;
  world_topic_set("T", "a", 1, 6);
  set_integer("max_inflight", 1);
  world_at(A)->always.mood = WORLD_MUTE;
  world_start();
  CHECK(rmq_producer_has_room(producer, 4));
  CHECK_INT(world_send("T", &end), 0);
  CHECK(!rmq_producer_has_room(producer, 4));
  rmq_send_options options = world_options;
  options.mode = RMQ_MODE_ASYNC;
  options.may_wait = true;
  options.timeout_ms = timeout_ms;
  options.admitted = admitted;
  CHECK_INT(world_send_with("T", &options, waiting), 0);
}

static void room_is_announced_once(void) {
  world_end waiting;
  begin_full(10000, &waiting);
  world_run(2990);
  CHECK_INT(admissions, 0);
  world_run(20);
  CHECK(end.dones == 1 && end.failed);
  CHECK_INT(admissions, 1);
  CHECK_INT(dones_at_admission, 0);
  CHECK_INT(waiting.dones, 0);
  world_run(10000);
  CHECK_INT(admissions, 1);
  CHECK(waiting.dones == 1 && waiting.failed);
  finish();
}

static void room_that_never_comes_is_not_announced(void) {
  world_end waiting;
  begin_full(100, &waiting);
  world_run(101);
  CHECK(waiting.dones == 1 && waiting.failed && waiting.kind == RMQ_KIND_TIMEOUT);
  CHECK_INT(admissions, 0);
  world_run(3000);
  CHECK_INT(admissions, 0);
  finish();
}

/* Room and the end of the budget in the same millisecond: one of them, not both. */
static void room_at_the_last_moment(void) {
  world_end waiting;
  begin_full(3000, &waiting);
  world_run(3100);
  CHECK_INT(end.dones, 1);
  CHECK_INT(waiting.dones, 1);
  CHECK(waiting.failed && admissions <= 1);
  finish();
}

static void a_full_house_that_forks(void) {
  world_end waiting;
  begin_full(3000, &waiting);
  rmq_producer_forked(producer);
  world_run(5000);
  CHECK(waiting.dones == 0 && end.dones == 0 && admissions == 0);
  finish();
}

int main(void) {
  check_run("timeouts in their millisecond", timeouts_come_in_their_millisecond);
  check_run("answers around the deadline", answers_around_the_deadline);
  check_run("an answer at the deadline", either_way_at_the_deadline);
  check_run("async has its own retries", async_has_its_own_retries);
  check_run("retry codes", retry_codes_are_a_setting);
  check_run("a choice is asked for once", a_choice_is_asked_for_once);
  check_run("a refusing choice", a_refusing_choice_fails_later);
  check_run("a refused send is cut short", a_refused_send_can_be_cut_short);
  check_run("asked again when nothing was written", it_is_asked_again_when_nothing_was_written);
  check_run("the same choice again", the_same_choice_again_pauses);
  check_run("a written choice", a_written_choice_is_not_tried_elsewhere);
  check_run("sending while choosing", sending_while_choosing);
  check_run("forked while choosing", forked_while_choosing);
  check_run("chosen by key", chosen_by_key);
  check_run("chosen by chance", chosen_by_chance);
  check_run("failures are counted", failures_are_counted);
  check_run("who is available", who_is_available);
  check_run("room is announced once", room_is_announced_once);
  check_run("room that never comes", room_that_never_comes_is_not_announced);
  check_run("room at the last moment", room_at_the_last_moment);
  check_run("a full house that forks", a_full_house_that_forks);
  return check_end();
}

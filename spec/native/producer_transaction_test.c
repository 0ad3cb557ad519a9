/* Half messages, what is decided about them, and how brokers are told, in virtual time. */
#include "producer/transaction.h"

#include <stdlib.h>

#include "base/error.h"
#include "producer_world.h"
#include "wire/codes.h"

#define A "10.0.0.2:1"

/* What END_TRANSACTION said. */
typedef struct verdict {
  const world_server *server;
  bool oneway;
  char topic[64], group[64], msg_id[64], bname[32], remark[700];
  char decided[8], checked[8], queue_offset[24], log_offset[24];
} verdict;

static verdict verdicts[64];
static int n_verdicts;
static world_mood verdict_mood; /* what a broker does with one */
static world_end half;

static void copy(char *out, size_t size, rmq_slice text) {
  snprintf(out, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

static bool look_for_verdicts(world_server *server, const rmq_header *request, rmq_slice body,
                              world_reply *reply) {
  if (request->code != RMQ_END_TRANSACTION) return false;
  verdict *v = &verdicts[n_verdicts++];
  v->server = server;
  v->oneway = request->flag & RMQ_FLAG_ONEWAY;
  CHECK_INT(body.len, 0);
  copy(v->topic, sizeof v->topic, rmq_header_field(request, "topic"));
  copy(v->group, sizeof v->group, rmq_header_field(request, "producerGroup"));
  copy(v->msg_id, sizeof v->msg_id, rmq_header_field(request, "msgId"));
  copy(v->bname, sizeof v->bname, rmq_header_field(request, "bname"));
  copy(v->decided, sizeof v->decided, rmq_header_field(request, "commitOrRollback"));
  copy(v->checked, sizeof v->checked, rmq_header_field(request, "fromTransactionCheck"));
  copy(v->queue_offset, sizeof v->queue_offset, rmq_header_field(request, "tranStateTableOffset"));
  copy(v->log_offset, sizeof v->log_offset, rmq_header_field(request, "commitLogOffset"));
  copy(v->remark, sizeof v->remark, request->remark);
  reply->mood = verdict_mood;
  return true;
}

/* How the end of a transaction was told. */
typedef struct told {
  int dones;
  bool failed;
  rmq_kind kind;
  char message[1024];
} told;

static void note_told(void *arg, const rmq_failure *failure) {
  told *t = arg;
  t->dones++;
  t->failed = failure != NULL;
  if (!failure) return;
  t->kind = failure->kind;
  copy(t->message, sizeof t->message, rmq_buf_slice(&failure->message));
}

static const fake_rule a_refuses[] = {{.name = A, .status = FAKE_REFUSED}, {.name = NULL}};

/* The connection to the broker takes nothing more, and then ends: what is written into it meanwhile
 * certainly goes nowhere. */
static void clog_up(void) { fake_last(world_fake)->write_room = 0; }
static void break_off(void) { world_break(A); }

static void begin(const char *brokers) {
  world_begin();
  memset(&half, 0, sizeof half);
  memset(verdicts, 0, sizeof verdicts);
  n_verdicts = 0;
  verdict_mood = WORLD_MUTE;
  world_other = look_for_verdicts;
  world_topic_set("T", brokers, 1, 6);
  world_start();
}

static void finish(void) {
  rmq_producer_stats stats = rmq_producer_stats_of(producer);
  CHECK_INT(stats.inflight, 0);
  CHECK_INT(stats.transactions, 0);
  world_end_all();
}

static int send_half_with(const rmq_send_options *options, world_end *end) {
  rmq_message message = {
      .topic = rmq_slice_text("T"), .body = rmq_slice_text("body"), .wait = true};
  return rmq_producer_send_half(producer, &message, options, world_done, end);
}

static void send_half(void) {
  memset(&half, 0, sizeof half);
  CHECK_INT(send_half_with(&world_options, &half), 0);
  CHECK_INT(half.dones, 0);
  world_settle();
  CHECK(half.dones == 1 && !half.failed);
}

static int decide(rmq_transaction_state state, const char *remark, told *t) {
  memset(t, 0, sizeof *t);
  int status = rmq_producer_end_transaction(producer, rmq_slice_text(half.msg_id), state,
                                            rmq_slice_text(remark), note_told, t);
  CHECK_INT(t->dones, 0); /* never from inside */
  return status;
}

static void a_half_message_says_what_it_is(void) {
  begin("a");
  send_half();
  CHECK_INT(world_n_log, 1);
  CHECK(strstr(world_log[0].properties, "TRAN_MSG\001true\002PGROUP\001orders\002") != NULL);
  CHECK_INT(world_log[0].sys_flag, RMQ_SYS_PREPARED);
  CHECK_INT(rmq_producer_stats_of(producer).transactions, 1);
  told t;
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  /* The next one of the same topic is a plain one again. */
  CHECK_INT(world_send("T", &half), 0);
  world_settle();
  CHECK_INT(world_log[1].sys_flag, 0);
  CHECK(strstr(world_log[1].properties, "TRAN_MSG") == NULL);
  finish();
}

static void the_broker_is_told(void) {
  static const struct {
    rmq_transaction_state state;
    const char *decided;
  } cases[] = {{RMQ_TRANSACTION_COMMIT, "8"},
               {RMQ_TRANSACTION_ROLLBACK, "12"},
               {RMQ_TRANSACTION_UNKNOWN, "0"}};
  begin("a");
  for (int i = 0; i < 3; i++) {
    told t;
    send_half();
    CHECK_INT(decide(cases[i].state, "", &t), 0);
    world_settle();
    CHECK(t.dones == 1 && !t.failed);
    CHECK_INT(n_verdicts, i + 1);
    const verdict *v = &verdicts[i];
    CHECK(v->oneway && strcmp(v->decided, cases[i].decided) == 0);
    CHECK(strcmp(v->topic, "T") == 0 && strcmp(v->group, "orders") == 0);
    CHECK(strcmp(v->msg_id, half.msg_id) == 0 && strcmp(v->bname, "a") == 0);
    CHECK(strcmp(v->checked, "false") == 0 && v->remark[0] == '\0');
    /* The world's ids and offsets are the numbers of the sends. */
    CHECK_INT(atoi(v->queue_offset), i + 1);
    CHECK_INT(atoi(v->log_offset), i + 1);
    CHECK(decide(RMQ_TRANSACTION_COMMIT, "", &t) == RMQ_EINVAL); /* once only */
    CHECK(t.dones == 0);
  }
  finish();
}

/* What comes from a script may be any bytes, and long. */
static int choose_second(void *arg, const rmq_choice *choice, const rmq_publish_queue **queue,
                         rmq_failure *why) {
  (void)why;
  CHECK(arg == &half);
  *queue = &choice->publish->queues[1];
  return 0;
}

static int admitted;

static void note_admitted(void *arg) {
  CHECK(arg == &half);
  admitted++;
}

/* Those who choose and those who wait for room get the argument that they gave. */
static void options_are_the_callers(void) {
  begin("a");
  world_topic_set("T", "a", 2, 6);
  world_end first = {0};
  world_at(A)->delay_ms = 10;
  rmq_settings *settings = (rmq_settings *)(uintptr_t)rmq_producer_settings(producer);
  settings->max_inflight = 1;
  CHECK_INT(world_send("T", &first), 0);
  rmq_send_options options = world_options;
  options.choose = choose_second;
  options.admitted = note_admitted;
  options.may_wait = true;
  CHECK_INT(send_half_with(&options, &half), 0);
  world_run(30);
  CHECK(admitted == 1 && half.dones == 1 && half.queue_id == 1);
  told t;
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  finish();
}

static void a_remark_is_cut_and_valid(void) {
  static char remark[2000];
  begin("a");
  told t;
  memset(remark, 'x', sizeof remark - 1);
  send_half();
  decide(RMQ_TRANSACTION_UNKNOWN, remark, &t);
  world_settle();
  CHECK_INT(strlen(verdicts[0].remark), 512);
  send_half();
  decide(RMQ_TRANSACTION_UNKNOWN, "broken: \xff\xfe", &t);
  world_settle();
  CHECK(strcmp(verdicts[1].remark, "broken: ") == 0);
  finish();
}

static void what_is_no_half_message_is_refused(void) {
  begin("a");
  rmq_send_options oneway = world_options;
  oneway.mode = RMQ_MODE_ONEWAY;
  CHECK_INT(send_half_with(&oneway, &half), RMQ_EINVAL);
  rmq_message message = {.topic = rmq_slice_text("T"),
                         .body = rmq_slice_text("body"),
                         .delay_kind = RMQ_DELAY_LEVEL,
                         .delay = 3};
  CHECK_INT(rmq_producer_send_half(producer, &message, &world_options, world_done, &half),
            RMQ_EINVAL);
  rmq_slice why = rmq_buf_slice(&rmq_producer_failure(producer)->message);
  CHECK(why.len > 0 && strstr(why.ptr, "cannot be delayed") != NULL);
  message.delay_kind = RMQ_DELAY_NONE;
  message.body.len = 0;
  CHECK_INT(rmq_producer_send_half(producer, &message, &world_options, world_done, &half),
            RMQ_EINVAL);
  world_settle();
  CHECK(half.dones == 0 && world_n_log == 0);
  finish();
}

static void a_half_message_that_fails_leaves_nothing(void) {
  begin("a");
  world_at(A)->always = (world_act){.mood = WORLD_CODE, .code = RMQ_MESSAGE_ILLEGAL};
  CHECK_INT(send_half_with(&world_options, &half), 0);
  world_settle();
  CHECK(half.dones == 1 && half.failed);
  told t;
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), RMQ_EINVAL);
  finish();
}

/* A message id that is no place: nobody could end the transaction, so it is not begun. */
static bool answer_without_place(world_server *server, const rmq_header *request, rmq_slice body,
                                 world_reply *reply) {
  (void)server;
  (void)body;
  if (request->code != RMQ_SEND_MESSAGE_V2) return false;
  reply->ext[0] = (rmq_field){rmq_slice_text("msgId"), rmq_slice_text("no\nplace")};
  reply->ext[1] = (rmq_field){rmq_slice_text("queueId"), rmq_slice_text("0")};
  reply->ext[2] = (rmq_field){rmq_slice_text("queueOffset"), rmq_slice_text("7")};
  reply->n_ext = 3;
  return true;
}

static void an_answer_without_a_place(void) {
  begin("a");
  world_other = answer_without_place;
  CHECK_INT(send_half_with(&world_options, &half), 0);
  world_settle();
  CHECK(half.dones == 1 && half.failed && half.maybe_stored && half.kind == RMQ_KIND_BROKER);
  CHECK(strstr(half.message, "(\"no place\")") != NULL);
  finish();
}

/* The connection breaks before the verdict is written: it is told on the next one. */
static void a_verdict_that_was_not_written_is_told_again(void) {
  begin("a");
  told t;
  send_half();
  rmq_producer_stats before = rmq_producer_stats_of(producer);
  CHECK_INT(before.transactions, 1);
  clog_up();
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  CHECK_INT(t.dones, 0);
  break_off();
  world_run(10);
  CHECK(t.dones == 1 && !t.failed);
  CHECK_INT(n_verdicts, 1);
  CHECK_INT(world_at(A)->connections, 2);
  finish();
}

/* A part of it may have arrived, and a second one could deliver the message twice. */
static void a_verdict_that_was_written_in_part_is_not_told_again(void) {
  begin("a");
  told t;
  send_half();
  fake_last(world_fake)->write_room = 10;
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  break_off();
  world_run(4000);
  CHECK(t.dones == 1 && t.failed && t.kind == RMQ_KIND_CLOSED);
  CHECK_INT(n_verdicts, 0);
  finish();
}

static void a_verdict_that_cannot_be_told_is_reported(void) {
  begin("a");
  told t;
  send_half();
  fake_set_rules(world_fake, a_refuses);
  break_off();
  world_settle();
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_run(2900);
  CHECK_INT(t.dones, 0);
  CHECK_INT(rmq_producer_stats_of(producer).transactions, 1);
  world_run(1200);
  CHECK(t.dones == 1 && t.failed && n_verdicts == 0);
  CHECK(strstr(t.message, "could not be told to commit") != NULL);
  CHECK(strstr(t.message, half.msg_id) != NULL && strstr(t.message, "group \"orders\"") != NULL);
  finish();
}

/* Nobody misses it: the broker asks. */
static void an_unknown_that_cannot_be_told_is_no_failure(void) {
  begin("a");
  told t;
  send_half();
  fake_set_rules(world_fake, a_refuses);
  break_off();
  world_settle();
  CHECK_INT(decide(RMQ_TRANSACTION_UNKNOWN, "", &t), 0);
  world_run(4000);
  CHECK(t.dones == 1 && !t.failed);
  finish();
}

static void flush_waits_for_transactions(void) {
  begin("a");
  told t;
  world_count early = {0}, late = {0}, hasty = {0};
  send_half();
  rmq_producer_flush(producer, 10000, world_count_done, &early);
  rmq_producer_flush(producer, 100, world_count_done, &hasty);
  world_run(100);
  CHECK(early.dones == 0 && hasty.dones == 1);
  CHECK_INT(hasty.left, 1);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  CHECK(early.dones == 1 && early.left == 0);
  /* One that began after the flush is not waited for. */
  send_half();
  rmq_producer_flush(producer, 10000, world_count_done, &late);
  world_end second = {0};
  CHECK_INT(send_half_with(&world_options, &second), 0);
  world_settle();
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_settle();
  CHECK(late.dones == 1 && late.left == 0);
  memcpy(half.msg_id, second.msg_id, sizeof half.msg_id);
  CHECK_INT(decide(RMQ_TRANSACTION_ROLLBACK, "", &t), 0);
  world_settle();
  finish();
}

static void shutdown_waits_for_transactions(void) {
  begin("a");
  told t;
  world_count ended = {0};
  send_half();
  rmq_producer_shutdown(producer, 5000, world_count_done, &ended);
  world_run(1000);
  CHECK_INT(ended.dones, 0);
  world_end refused = {0};
  CHECK_INT(send_half_with(&world_options, &refused), RMQ_ESTATE);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  world_run(10);
  CHECK(t.dones == 1 && !t.failed && n_verdicts == 1);
  CHECK(ended.dones == 1 && ended.left == 0);
  CHECK(ended.at_us < 1100000);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), RMQ_ESTATE);
  finish();
}

static void shutdown_leaves_what_is_not_decided(void) {
  begin("a");
  told t;
  world_count ended = {0};
  send_half();
  rmq_producer_shutdown(producer, 500, world_count_done, &ended);
  world_run(600);
  CHECK(ended.dones == 1);
  CHECK_INT(ended.left, 1);
  CHECK(strstr(world_lines, "1 transaction was left of producer") != NULL);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), RMQ_ESTATE);
  CHECK_INT(n_verdicts, 0);
  finish();
}

/* The end of a process: nobody will decide, so nobody is waited for. */
static void nobody_decides_any_more(void) {
  begin("a");
  told t;
  world_count ended = {0};
  world_end second = {0};
  send_half();
  world_at(A)->delay_ms = 50;
  CHECK_INT(send_half_with(&world_options, &second), 0);
  rmq_producer_stop_deciding(producer);
  rmq_producer_shutdown(producer, 5000, world_count_done, &ended);
  world_run(100);
  CHECK(second.dones == 1 && !second.failed);
  CHECK(ended.dones == 1);
  CHECK_INT(ended.left, 2);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), RMQ_ESTATE);
  finish();
}

/* The simulator's seed 711: who waits for transactions hears of it when a shutdown leaves them. */
static void a_flush_ends_with_what_a_shutdown_leaves(void) {
  begin("a");
  world_count flushed = {0}, ended = {0};
  send_half();
  rmq_producer_shutdown(producer, 500, world_count_done, &ended);
  rmq_producer_flush(producer, 10000, world_count_done, &flushed);
  world_run(499);
  CHECK(flushed.dones == 0 && ended.dones == 0);
  world_run(100);
  CHECK(ended.dones == 1 && flushed.dones == 1 && flushed.left == 0);
  CHECK_INT(ended.left, 1);
  finish();
}

/* The same when nobody decides any more: neither a flush nor a shutdown waits for its time. */
static void who_waits_hears_that_nobody_decides(void) {
  begin("a");
  world_count flushed = {0}, ended = {0};
  send_half();
  rmq_producer_flush(producer, 10000, world_count_done, &flushed);
  rmq_producer_shutdown(producer, 10000, world_count_done, &ended);
  world_run(100);
  CHECK(flushed.dones == 0 && ended.dones == 0);
  rmq_producer_stop_deciding(producer);
  world_run(100);
  CHECK(flushed.dones == 1 && ended.dones == 1);
  CHECK_INT(ended.left, 1);
  finish();
}

static void freeing_and_forking_take_transactions_along(void) {
  begin("a");
  told t;
  send_half();
  world_end under_way = {0};
  CHECK_INT(send_half_with(&world_options, &under_way), 0);
  fake_set_rules(world_fake, a_refuses);
  break_off();
  world_settle();
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), 0);
  rmq_producer_forked(producer);
  CHECK_INT(decide(RMQ_TRANSACTION_COMMIT, "", &t), RMQ_ESTATE);
  CHECK(under_way.dones == 0 && t.dones == 0);
  finish();
}

static world_count ended_inside;

static void a_completion_may_end_everything(world_end *end) {
  (void)end;
  static told t;
  CHECK_INT(rmq_producer_end_transaction(producer, rmq_slice_text(half.msg_id),
                                         RMQ_TRANSACTION_COMMIT, rmq_slice_text(""), note_told, &t),
            0);
  rmq_producer_shutdown(producer, 100, world_count_done, &ended_inside);
}

static void ending_from_inside_the_completion(void) {
  begin("a");
  half.then = a_completion_may_end_everything;
  CHECK_INT(send_half_with(&world_options, &half), 0);
  world_run(200);
  CHECK_INT(n_verdicts, 1);
  finish();
}

int main(void) {
  check_run("a half message says what it is", a_half_message_says_what_it_is);
  check_run("the broker is told", the_broker_is_told);
  check_run("options are the caller's", options_are_the_callers);
  check_run("a remark is cut and valid", a_remark_is_cut_and_valid);
  check_run("what is no half message is refused", what_is_no_half_message_is_refused);
  check_run("a half message that fails leaves nothing", a_half_message_that_fails_leaves_nothing);
  check_run("an answer without a place", an_answer_without_a_place);
  check_run("told again", a_verdict_that_was_not_written_is_told_again);
  check_run("written in part", a_verdict_that_was_written_in_part_is_not_told_again);
  check_run("cannot be told", a_verdict_that_cannot_be_told_is_reported);
  check_run("an unknown is no failure", an_unknown_that_cannot_be_told_is_no_failure);
  check_run("flush waits", flush_waits_for_transactions);
  check_run("shutdown waits", shutdown_waits_for_transactions);
  check_run("shutdown leaves the undecided", shutdown_leaves_what_is_not_decided);
  check_run("nobody decides any more", nobody_decides_any_more);
  check_run("a flush ends with what a shutdown leaves", a_flush_ends_with_what_a_shutdown_leaves);
  check_run("who waits hears that nobody decides", who_waits_hears_that_nobody_decides);
  check_run("freeing and forking", freeing_and_forking_take_transactions_along);
  check_run("ending from inside the completion", ending_from_inside_the_completion);
  return check_end();
}

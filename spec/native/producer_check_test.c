/* Brokers ask what has become of transactions, in virtual time. */
#include "producer/check.h"

#include <stdlib.h>

#include "base/error.h"
#include "producer_world.h"
#include "wire/codes.h"
#include "wire/compress.h"

#define A "10.0.0.2:1"
#define B "10.0.0.2:2"

enum { DECIDERS = 4096 };

static uint64_t asked[DECIDERS]; /* ids that somebody is to decide */
static int n_asked;
static bool at_once; /* decide from inside */
static bool free_producer;
static char seen[256]; /* the body that was asked about last */

static int n_verdicts;
static char verdicts[DECIDERS][160]; /* "addr#connection decided msg_id queue_offset log_offset" */

static void decide(void *arg, uint64_t id) {
  CHECK(arg == asked);
  const rmq_checked *about = rmq_producer_checked(producer, id);
  CHECK(about != NULL);
  snprintf(seen, sizeof seen, "%.*s %.*s %.*s", (int)about->message.topic.len,
           about->message.topic.ptr, (int)about->msg_id.len, about->msg_id.ptr,
           (int)about->message.body.len, about->message.body.ptr);
  asked[n_asked++ % DECIDERS] = id;
  if (free_producer) {
    rmq_producer_free(producer);
    producer = NULL;
    return;
  }
  if (at_once) rmq_producer_end_check(producer, id, RMQ_TRANSACTION_COMMIT, rmq_slice_text(""));
}

static bool answers = true; /* what brokers are told answers their questions */

static bool look_for_verdicts(world_server *server, const rmq_header *request, rmq_slice body,
                              world_reply *reply) {
  (void)body;
  if (request->code != RMQ_END_TRANSACTION) return false;
  static const char *const names[] = {"commitOrRollback",     "msgId",          "bname", "topic",
                                      "tranStateTableOffset", "commitLogOffset"};
  rmq_slice f[6];
  for (int i = 0; i < 6; i++) f[i] = rmq_header_field(request, names[i]);
  CHECK(request->flag & RMQ_FLAG_ONEWAY);
  bool checked = rmq_slice_is(rmq_header_field(request, "fromTransactionCheck"), "true");
  CHECK(checked == answers);
  CHECK(rmq_slice_is(rmq_header_field(request, "producerGroup"), "orders"));
  snprintf(verdicts[n_verdicts++ % DECIDERS], sizeof verdicts[0],
           "%c %.*s %.*s %.*s %.*s %.*s %.*s", (char)(server->addr[9] - '1' + 'a'), (int)f[0].len,
           f[0].ptr, (int)f[1].len, f[1].ptr, (int)f[2].len, f[2].len ? f[2].ptr : "",
           (int)f[3].len, f[3].ptr, (int)f[4].len, f[4].ptr, (int)f[5].len, f[5].ptr);
  reply->mood = WORLD_MUTE;
  return true;
}

static void check_verdict(int i, const char *expected) {
  if (strcmp(verdicts[i], expected) != 0) printf("told %s, not %s\n", verdicts[i], expected);
  CHECK(strcmp(verdicts[i], expected) == 0);
}

static bool forgetful; /* topics that are not used are forgotten after a second */

static void begin_with(int64_t concurrency, int64_t hold_max) {
  world_begin();
  if (forgetful) world_settings.poll_name_server_interval = 100;
  n_asked = n_verdicts = 0;
  at_once = free_producer = false;
  seen[0] = '\0';
  world_other = look_for_verdicts;
  world_settings.check_concurrency = concurrency;
  world_settings.check_request_hold_max = hold_max;
  world_topic_set("T", "ab", 1, 6);
  world_start();
  rmq_producer_set_check(producer, decide, asked);
  /* One send to each broker, so that there are connections. */
  world_end ends[2];
  memset(ends, 0, sizeof ends);
  for (int i = 0; i < 2; i++) CHECK_INT(world_send("T", &ends[i]), 0);
  world_settle();
}

static void begin(void) { begin_with(2, 3); }

static void finish(void) { world_end_all(); }

/* ---- Asking ---- */

typedef struct question {
  const char *addr, *id, *group, *body;
  int offset;
  int32_t sys_flag;
  const char *without; /* a field of the header that is left out */
  bool damaged;
} question;

static void ask(question q) {
  static const char *const names[] = {"topic", "tranStateTableOffset", "commitLogOffset",
                                      "msgId", "transactionId",        "bname"};
  char number[16], properties[128], bname[2] = {(char)(q.addr[9] - '1' + 'a'), '\0'};
  snprintf(number, sizeof number, "%d", q.offset);
  const char *values[] = {"HALF", number, number, q.id, q.id, bname};
  rmq_field ext[6];
  size_t n = 0;
  for (int i = 0; i < 6; i++) {
    if (q.without && strcmp(q.without, names[i]) == 0) continue;
    ext[n++] = (rmq_field){rmq_slice_text(names[i]), rmq_slice_text(values[i])};
  }
  snprintf(properties, sizeof properties, "UNIQ_KEY\001%s\002PGROUP\001%s\002", q.id,
           q.group ? q.group : "orders");
  rmq_buf body = {0};
  rmq_stored_message message = {.topic = rmq_slice_text("T"),
                                .body = rmq_slice_text(q.body ? q.body : "body"),
                                .sys_flag = q.sys_flag | RMQ_SYS_PREPARED,
                                .born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 4},
                                .properties = rmq_slice_text(properties)};
  rmq_stored_put(&body, &message);
  rmq_slice bytes = rmq_buf_slice(&body);
  if (q.damaged) bytes.len--;
  rmq_command command = rmq_command_request(RMQ_CHECK_TRANSACTION_STATE, 1, RMQ_FLAG_ONEWAY);
  world_ask(q.addr, &command, ext, n, bytes);
  rmq_buf_free(&body);
  world_settle();
}

static void answer(int i, rmq_transaction_state state) {
  rmq_producer_end_check(producer, asked[i], state, rmq_slice_text(""));
  world_settle();
}

static rmq_producer_stats stats(void) { return rmq_producer_stats_of(producer); }

/* ---- Tests ---- */

static void a_check_is_answered_where_it_came_from(void) {
  begin();
  ask((question){.addr = B, .id = "ID1", .offset = 7});
  CHECK_INT(n_asked, 1);
  CHECK(strcmp(seen, "T ID1 body") == 0);
  CHECK_INT(n_verdicts, 0);
  answer(0, RMQ_TRANSACTION_ROLLBACK);
  CHECK_INT(n_verdicts, 1);
  check_verdict(0, "b 12 ID1 b HALF 7 7");
  CHECK(rmq_producer_checked(producer, asked[0]) == NULL);
  answer(0, RMQ_TRANSACTION_COMMIT); /* over already */
  CHECK_INT(n_verdicts, 1);
  CHECK(stats().checks == 1 && stats().checks_answered == 1);
  CHECK_INT(world_n_answers, 0); /* a oneway request */
  finish();
}

static void its_connection_may_be_gone(void) {
  begin();
  ask((question){.addr = B, .id = "ID1", .offset = 7});
  int before = world_at(B)->connections;
  world_break(B);
  world_settle();
  ask((question){.addr = A, .id = "ID2", .offset = 8});
  answer(0, RMQ_TRANSACTION_COMMIT);
  CHECK_INT(world_at(B)->connections, before + 1); /* the same broker, anew */
  check_verdict(0, "b 8 ID1 b HALF 7 7");
  answer(1, RMQ_TRANSACTION_COMMIT);
  check_verdict(1, "a 8 ID2 a HALF 8 8");
  finish();
}

static void so_many_at_a_time_and_so_many_wait(void) {
  begin(); /* 2 and 3 */
  char id[8];
  for (int i = 0; i < 9; i++) {
    snprintf(id, sizeof id, "ID%d", i);
    ask((question){.addr = A, .id = id, .offset = i});
  }
  CHECK_INT(n_asked, 2);
  CHECK_INT(stats().checks_dropped, 4);
  CHECK(strstr(world_lines, "1 transaction check was dropped") != NULL);
  for (int i = 0; i < 5; i++) {
    answer(i, RMQ_TRANSACTION_COMMIT);
    CHECK_INT(n_asked, i < 3 ? i + 3 : 5);
  }
  CHECK_INT(n_verdicts, 5);
  world_run(1000);
  for (int i = 0; i < 6; i++) {
    snprintf(id, sizeof id, "IE%d", i);
    ask((question){.addr = A, .id = id, .offset = i});
  }
  /* What was not told then is told now. */
  CHECK(strstr(world_lines, "4 transaction checks were dropped") != NULL);
  CHECK_INT(stats().checks_dropped, 5);
  for (int i = 5; i < 10; i++) answer(i, RMQ_TRANSACTION_COMMIT);
  finish();
}

static void a_flood_decided_at_once(void) {
  begin_with(1, 0);
  char id[8];
  at_once = true;
  for (int i = 0; i < 2000; i++) {
    snprintf(id, sizeof id, "I%d", i);
    ask((question){.addr = A, .id = id, .offset = i});
  }
  CHECK(n_asked == 2000 && n_verdicts == 2000);
  CHECK(stats().checks_answered == 2000 && stats().checks_dropped == 0);
  finish();
}

/* The newest place is answered, and the function is called once. */
static void asked_again_while_it_is_decided(void) {
  begin_with(1, 3);
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  ask((question){.addr = A, .id = "ID1", .offset = 2});
  ask((question){.addr = A, .id = "ID2", .offset = 3});
  ask((question){.addr = A, .id = "ID1", .offset = 4});
  ask((question){.addr = A, .id = "ID2", .offset = 5});
  CHECK_INT(n_asked, 1);
  answer(0, RMQ_TRANSACTION_COMMIT);
  CHECK_INT(n_asked, 2);
  answer(1, RMQ_TRANSACTION_COMMIT);
  CHECK_INT(n_verdicts, 2);
  check_verdict(0, "a 8 ID1 a HALF 4 4");
  check_verdict(1, "a 8 ID2 a HALF 5 5");
  finish();
}

/* Another broker's copy is another message. */
static void asked_by_two_brokers(void) {
  begin();
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  ask((question){.addr = B, .id = "ID1", .offset = 2});
  CHECK_INT(n_asked, 2);
  answer(0, RMQ_TRANSACTION_COMMIT);
  answer(1, RMQ_TRANSACTION_ROLLBACK);
  check_verdict(0, "a 8 ID1 a HALF 1 1");
  check_verdict(1, "b 12 ID1 b HALF 2 2");
  finish();
}

static void hostile_checks(void) {
  begin();
  ask((question){.addr = A, .id = "ID1", .damaged = true});
  world_run(1000);
  ask((question){.addr = A, .id = "ID1", .without = "commitLogOffset"});
  ask((question){.addr = A, .id = "ID1", .without = "tranStateTableOffset"});
  world_run(1000);
  ask((question){.addr = A, .id = "ID1", .group = "others"});
  world_run(1000);
  ask((question){.addr = A, .id = "ID1", .sys_flag = RMQ_SYS_COMPRESSED | 0x300});
  CHECK_INT(n_asked, 0);
  CHECK_INT(stats().checks_ignored, 5);
  CHECK(strstr(world_lines, "not one stored message") != NULL);
  CHECK(strstr(world_lines, "does not say where") != NULL);
  CHECK(strstr(world_lines, "2 transaction checks were ignored, the last one from " A
                            ": the message is of another producer group") != NULL);
  CHECK(strstr(world_lines, "cannot be decompressed") != NULL);
  ask((question){.addr = A, .id = "ID1", .offset = 1}); /* the connection stands still */
  CHECK_INT(n_asked, 1);
  finish();
}

static void a_compressed_body(void) {
  begin();
  static char body[5000];
  memset(body, 'x', sizeof body - 1);
  rmq_compressor *zlib = rmq_compressor_new(RMQ_COMPRESSION_ZLIB, 5);
  rmq_buf packed = {0};
  CHECK(rmq_compress(zlib, rmq_slice_text(body), &packed));
  rmq_buf_u8(&packed, 0);
  rmq_stored_message message = {.topic = rmq_slice_text("T"),
                                .body = rmq_slice_make(packed.data, rmq_buf_len(&packed) - 1),
                                .sys_flag = rmq_compression_flags(RMQ_COMPRESSION_ZLIB),
                                .born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 4},
                                .properties = rmq_slice_text("PGROUP\001orders\002")};
  rmq_buf stored = {0};
  rmq_stored_put(&stored, &message);
  rmq_field ext[] = {{rmq_slice_text("tranStateTableOffset"), rmq_slice_text("1")},
                     {rmq_slice_text("commitLogOffset"), rmq_slice_text("2")}};
  rmq_command command = rmq_command_request(RMQ_CHECK_TRANSACTION_STATE, 1, RMQ_FLAG_ONEWAY);
  world_ask(A, &command, ext, 2, rmq_buf_slice(&stored));
  world_settle();
  CHECK_INT(n_asked, 1);
  const rmq_checked *about = rmq_producer_checked(producer, asked[0]);
  CHECK(rmq_slice_is(about->message.body, body));
  CHECK(!(about->message.sys_flag & RMQ_SYS_COMPRESSED));
  CHECK_INT(about->msg_id.len, 32); /* without a key: its place */
  rmq_buf_free(&packed);
  rmq_buf_free(&stored);
  rmq_compressor_free(zlib);
  finish();
}

static void a_producer_without_transactions(void) {
  begin();
  rmq_producer_set_check(producer, NULL, NULL);
  ask((question){.addr = A, .id = "ID1"});
  CHECK_INT(n_asked, 0);
  CHECK_INT(stats().checks_ignored, 1);
  CHECK(strstr(world_lines, "has no check function") != NULL);
  finish();
}

/* ---- Transactions that are open here ---- */

static world_end half;

static void note_nothing(void *arg, const rmq_failure *failure) {
  CHECK(failure == NULL);
  ++*(int *)arg;
}

static void send_half(int64_t answer_delay_ms) {
  memset(&half, 0, sizeof half);
  rmq_send_options options = world_options;
  options.broker = rmq_slice_text("a");
  rmq_message message = {
      .topic = rmq_slice_text("T"), .body = rmq_slice_text("body"), .wait = true};
  world_at(A)->delay_ms = answer_delay_ms;
  CHECK_INT(rmq_producer_send_half(producer, &message, &options, world_done, &half), 0);
  world_settle();
}

/* A check function would not find what is not there yet, and roll back what is being done. */
static void an_open_transaction_is_decided_by_its_end(void) {
  int told = 0;
  begin();
  send_half(0);
  ask((question){.addr = A, .id = half.msg_id, .offset = 20});
  ask((question){.addr = A, .id = half.msg_id, .offset = 30});
  ask((question){.addr = B, .id = half.msg_id, .offset = 40}); /* a copy elsewhere: later */
  CHECK_INT(n_asked, 0);
  CHECK_INT(
      rmq_producer_end_transaction(producer, rmq_slice_text(half.msg_id), RMQ_TRANSACTION_COMMIT,
                                   rmq_slice_text(""), note_nothing, &told),
      0);
  world_settle();
  CHECK(told == 1 && n_verdicts == 1);
  char expected[160];
  snprintf(expected, sizeof expected, "a 8 %s a HALF 30 30", half.msg_id);
  check_verdict(0, expected);
  ask((question){.addr = B, .id = half.msg_id, .offset = 50});
  CHECK_INT(n_asked, 1);
  finish();
}

/* The simulator's seed 800043994: the topic was not used for so long that no route names the
 * half message's broker any more. */
static void a_copy_is_not_the_half_message_whose_broker_is_forgotten(void) {
  int told = 0;
  forgetful = true;
  begin();
  forgetful = false;
  world_topic_set("Other", "b", 1, 6);
  send_half(0);
  world_end others = {0};
  for (int i = 0; i < 15; i++) {
    CHECK_INT(world_send("Other", &others), 0);
    world_run(100);
  }
  ask((question){.addr = B, .id = half.msg_id, .offset = 40, .without = "bname"});
  ask((question){.addr = B, .id = half.msg_id, .offset = 50});
  CHECK_INT(n_asked, 0);
  answers = false;
  CHECK_INT(
      rmq_producer_end_transaction(producer, rmq_slice_text(half.msg_id), RMQ_TRANSACTION_COMMIT,
                                   rmq_slice_text(""), note_nothing, &told),
      0);
  world_settle();
  CHECK(told == 1 && n_verdicts == 1);
  char expected[160];
  snprintf(expected, sizeof expected, "a 8 %s a T 2 2", half.msg_id);
  check_verdict(0, expected);
  answers = true;
  finish();
}

static void a_half_message_under_way_is_not_decided(void) {
  begin();
  send_half(50);
  CHECK_INT(half.dones, 0);
  const char *id = strstr(world_log[world_n_log - 1].properties, "UNIQ_KEY\001") + 9;
  char copy[64];
  snprintf(copy, sizeof copy, "%.32s", id);
  ask((question){.addr = A, .id = copy, .offset = 20});
  CHECK_INT(n_asked, 0);
  ask((question){.addr = A, .id = "another", .offset = 20});
  CHECK_INT(n_asked, 1);
  world_run(60);
  CHECK(half.dones == 1 && !half.failed);
  finish();
}

/* ---- The end ---- */

static void shutdown_waits_for_a_decision(void) {
  begin_with(1, 3);
  world_count ended = {0};
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  ask((question){.addr = A, .id = "ID2", .offset = 2}); /* waits, and is left to another producer */
  rmq_producer_shutdown(producer, 5000, world_count_done, &ended);
  ask((question){.addr = A, .id = "ID3", .offset = 3});
  ask((question){.addr = A, .id = "ID1", .offset = 4}); /* this one is still being decided */
  world_run(500);
  CHECK_INT(ended.dones, 0);
  answer(0, RMQ_TRANSACTION_COMMIT);
  world_run(10);
  CHECK(ended.dones == 1 && ended.left == 0);
  CHECK(n_asked == 1 && n_verdicts == 1);
  check_verdict(0, "a 8 ID1 a HALF 4 4");
  finish();
}

static void shutdown_does_not_wait_for_ever(void) {
  begin();
  world_count ended = {0};
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  rmq_producer_shutdown(producer, 300, world_count_done, &ended);
  world_run(400);
  CHECK(ended.dones == 1 && ended.left == 0);
  CHECK(rmq_producer_checked(producer, asked[0]) == NULL);
  answer(0, RMQ_TRANSACTION_COMMIT);
  CHECK_INT(n_verdicts, 0);
  finish();
}

static void freeing_while_deciding(void) {
  begin_with(1, 3);
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  ask((question){.addr = A, .id = "ID2", .offset = 2});
  finish();
  begin_with(3, 3);
  free_producer = true;
  ask((question){.addr = A, .id = "ID1", .offset = 1});
  CHECK(n_asked == 1 && producer == NULL);
  finish();
}

int main(void) {
  check_run("answered where it came from", a_check_is_answered_where_it_came_from);
  check_run("its connection may be gone", its_connection_may_be_gone);
  check_run("so many at a time", so_many_at_a_time_and_so_many_wait);
  check_run("a flood decided at once", a_flood_decided_at_once);
  check_run("asked again", asked_again_while_it_is_decided);
  check_run("asked by two brokers", asked_by_two_brokers);
  check_run("hostile checks", hostile_checks);
  check_run("a compressed body", a_compressed_body);
  check_run("a producer without transactions", a_producer_without_transactions);
  check_run("an open transaction", an_open_transaction_is_decided_by_its_end);
  check_run("a copy, when a broker is forgotten",
            a_copy_is_not_the_half_message_whose_broker_is_forgotten);
  check_run("a half message under way", a_half_message_under_way_is_not_decided);
  check_run("shutdown waits", shutdown_waits_for_a_decision);
  check_run("shutdown does not wait for ever", shutdown_does_not_wait_for_ever);
  check_run("freeing while deciding", freeing_while_deciding);
  return check_end();
}

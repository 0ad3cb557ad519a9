/* Message trace in virtual time: what is recorded, when it goes, and what becomes of it. */
#include "base/error.h"
#include "producer/trace.h"
#include "producer_world.h"
#include "wire/codes.h"
#include "wire/properties.h"
#include "wire/send.h"

#define TRACE "RMQ_SYS_TRACE_TOPIC"

/* The trace messages that came, and what is answered to them. */
static struct {
  int n;
  char bodies[64][4096], keys[64][2048];
  int64_t at_ms[64];
  char topics[64][64];
  world_mood mood;
  int32_t code;
} traces;

/* What is answered to all other sends, when it is set: ext fields of a good answer. */
static const char *region, *trace_on;

static void copy(char *to, size_t size, rmq_slice text) {
  snprintf(to, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

static void note_trace(const rmq_send_header *header, rmq_slice body) {
  int i = traces.n++ % 64;
  copy(traces.bodies[i], sizeof traces.bodies[i], body);
  copy(traces.keys[i], sizeof traces.keys[i], rmq_properties_find(header->properties, "KEYS"));
  copy(traces.topics[i], sizeof traces.topics[i], header->topic);
  traces.at_ms[i] = world_now_us() / 1000;
}

static bool serve(world_server *server, const rmq_header *request, rmq_slice body,
                  world_reply *reply) {
  rmq_send_header header;
  const char *missing;
  (void)server;
  if (request->code != RMQ_SEND_MESSAGE_V2) return false;
  CHECK_INT(rmq_send_header_decode(request, &header, &missing), 0);
  if (rmq_slice_is(header.topic, TRACE) || rmq_slice_is(header.topic, "Traces")) {
    note_trace(&header, body);
    reply->mood = traces.mood;
    reply->code = traces.code;
    return traces.mood != WORLD_ANSWERS;
  }
  if (!region) return false;
  reply->ext[0] = (rmq_field){rmq_slice_text("msgId"), rmq_slice_text("OFFSETID")};
  reply->ext[1] = (rmq_field){rmq_slice_text("queueId"), rmq_slice_text("0")};
  reply->ext[2] = (rmq_field){rmq_slice_text("queueOffset"), rmq_slice_text("0")};
  reply->ext[3] = (rmq_field){rmq_slice_text("MSG_REGION"), rmq_slice_text(region)};
  reply->ext[4] = (rmq_field){rmq_slice_text("TRACE_ON"), rmq_slice_text(trace_on)};
  reply->n_ext = 5;
  return true;
}

static world_end ends[4096];

static void begin(void) {
  world_begin();
  world_topic_set("T", "a", 1, 6);
  world_topic_set("U", "b", 1, 6);
  world_topic_set(TRACE, "c", 1, 6);
  memset(&traces, 0, sizeof traces);
  memset(ends, 0, sizeof ends);
  region = trace_on = NULL;
  world_other = serve;
  world_settings.enable_trace = true;
}

static rmq_producer_stats stats(void) { return rmq_producer_stats_of(producer); }

static int send(const char *topic, const char *keys, const char *tags, int i) {
  rmq_slice key = rmq_slice_text(keys);
  rmq_message message = {.topic = rmq_slice_text(topic),
                         .body = rmq_slice_text("body"),
                         .keys = &key,
                         .n_keys = keys ? 1 : 0,
                         .tags = rmq_slice_text(tags),
                         .wait = true};
  return rmq_producer_send(producer, &message, &world_options, world_done, &ends[i]);
}

/* True when the only record (number `n` of trace message `i`) is this one, with its time, id, cost and
 * offset id left out: "Pub . r g T . t k h 4 . 0 . true". */
static bool is_record(int i, int n, const char *expected) {
  static char text[4096], found[4096];
  snprintf(text, sizeof text, "%s", traces.bodies[i]);
  char *record = strtok(text, "\002");
  for (; record && n > 0; n--) record = strtok(NULL, "\002");
  if (!record) return false;
  found[0] = '\0';
  int field = 0;
  for (char *at = record; at; field++) {
    char *end = strchr(at, 1);
    bool left_out = field == 1 || field == 5 || field == 10 || field == 12;
    if (strncmp(record, "Pub", 3) != 0) left_out = field == 1;
    snprintf(found + strlen(found), sizeof found - strlen(found), "%s%.*s", field ? " " : "",
             left_out ? 1 : (end ? (int)(end - at) : (int)strlen(at)), left_out ? "." : at);
    at = end ? end + 1 : NULL;
  }
  if (strcmp(found, expected) == 0) return true;
  printf("record \"%s\" is not \"%s\"\n", found, expected);
  return false;
}

static void a_send(void) {
  begin();
  world_start();
  CHECK_INT(send("T", "k1", "tag", 0), 0);
  world_run(100);
  CHECK_INT(ends[0].dones, 1);
  CHECK_INT(traces.n, 0);
  CHECK_INT(stats().trace_pending, 1);
  world_run(4880);
  CHECK_INT(traces.n, 0);
  world_run(200);
  CHECK_INT(traces.n, 1);
  CHECK(strcmp(traces.topics[0], TRACE) == 0);
  CHECK(is_record(0, 0, "Pub . DefaultRegion orders T . tag k1 10.0.0.2:1 4 . 0 . true"));
  char keys[80];
  snprintf(keys, sizeof keys, "%s k1", ends[0].msg_id);
  CHECK(strcmp(traces.keys[0], keys) == 0);
  /* Its time, cost, and both ids stand in it. */
  CHECK(strstr(traces.bodies[0], ends[0].msg_id) != NULL);
  CHECK(strstr(traces.bodies[0], ends[0].offset_msg_id) != NULL);
  CHECK_INT(stats().trace_sent, 1);
  CHECK_INT(stats().trace_pending, 0);
  CHECK_INT(stats().sent, 1); /* the trace message is in no counter */
  CHECK_INT(stats().acknowledged, 1);
  world_run(20000);
  CHECK_INT(traces.n, 1); /* and is not traced itself */
  world_end_all();
}

static void records_go_together(void) {
  begin();
  world_settings.trace_msg_batch_num = 3;
  world_start();
  for (int i = 0; i < 4; i++) CHECK_INT(send("T", "same", NULL, i), 0);
  for (int i = 4; i < 6; i++) CHECK_INT(send("U", NULL, NULL, i), 0);
  world_run(100);
  /* Three about T are a message; one of T and two about U wait. */
  CHECK_INT(traces.n, 1);
  CHECK_INT(stats().trace_pending, 3);
  CHECK(is_record(0, 2, "Pub . DefaultRegion orders T . null same 10.0.0.2:1 4 . 0 . true"));
  char keys[256];
  snprintf(keys, sizeof keys, "%s same %s %s", ends[0].msg_id, ends[1].msg_id, ends[2].msg_id);
  CHECK(strcmp(traces.keys[0], keys) == 0);
  world_run(5000);
  CHECK_INT(traces.n, 3);
  CHECK(is_record(1, 0, "Pub . DefaultRegion orders T . null same 10.0.0.2:1 4 . 0 . true"));
  CHECK(is_record(2, 1, "Pub . DefaultRegion orders U . null null 10.0.0.2:2 4 . 0 . true"));
  CHECK_INT(stats().trace_sent, 6);
  world_end_all();
}

static void failures(void) {
  begin();
  world_settings.retry_times_when_send_failed = 0;
  world_settings.trace_msg_batch_num = 1;
  world_at("10.0.0.2:1")->always = (world_act){.mood = WORLD_CODE, .code = RMQ_MESSAGE_ILLEGAL};
  world_start();
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_run(50);
  CHECK(is_record(0, 0, "Pub . DefaultRegion orders T . null null 10.0.0.2:1 4 . 0 . false"));
  /* Java's offset id of a failure. */
  CHECK(strstr(traces.bodies[0], "\001null\001false\002") != NULL);
  CHECK_INT(send("Nowhere", NULL, NULL, 1), 0);
  world_run(50);
  CHECK(is_record(1, 0, "Pub . DefaultRegion orders Nowhere . null null null 4 . 0 . false"));
  /* "Stored, but" is no success for Java. */
  world_at("10.0.0.2:1")->always = (world_act){.mood = WORLD_CODE, .code = RMQ_FLUSH_DISK_TIMEOUT};
  CHECK_INT(send("T", NULL, NULL, 2), 0);
  world_run(50);
  CHECK(!ends[2].failed);
  CHECK(is_record(2, 0, "Pub . DefaultRegion orders T . null null 10.0.0.2:1 4 . 0 . false"));
  /* A message that is refused at once was never sent. */
  CHECK_INT(send("a b", NULL, NULL, 3), RMQ_EINVAL);
  world_run(50);
  CHECK_INT(traces.n, 3);
  world_end_all();
}

static void what_brokers_say(void) {
  begin();
  world_settings.trace_msg_batch_num = 1;
  world_start();
  region = "east";
  trace_on = "true";
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_run(50);
  CHECK(is_record(0, 0, "Pub . east orders T . null null 10.0.0.2:1 4 . 0 . true"));
  CHECK(strstr(traces.bodies[0], "\001OFFSETID\001true\002") != NULL);
  trace_on = "false";
  CHECK_INT(send("T", NULL, NULL, 1), 0);
  world_run(50);
  CHECK_INT(traces.n, 1);
  /* Who breaks the format is not let. */
  region = "a\001b\002c";
  trace_on = "true";
  CHECK_INT(send("T", NULL, NULL, 2), 0);
  world_run(50);
  CHECK(is_record(1, 0, "Pub . a?b?c orders T . null null 10.0.0.2:1 4 . 0 . true"));
  world_end_all();
}

static void kinds_of_messages(void) {
  begin();
  world_settings.trace_msg_batch_num = 1;
  world_start();
  const rmq_field delay = {rmq_slice_text("DELAY"), rmq_slice_text("3")};
  rmq_message message = {.topic = rmq_slice_text("T"), .body = rmq_slice_text("body")};
  message.system = &delay;
  message.n_system = 1;
  CHECK_INT(rmq_producer_send(producer, &message, &world_options, world_done, &ends[0]), 0);
  world_run(50);
  CHECK(is_record(0, 0, "Pub . DefaultRegion orders T . null null 10.0.0.2:1 4 . 3 . true"));
  message.n_system = 0;
  message.sys_flag = RMQ_SYS_PREPARED;
  CHECK_INT(rmq_producer_send(producer, &message, &world_options, world_done, &ends[1]), 0);
  world_run(50);
  CHECK(is_record(1, 0, "Pub . DefaultRegion orders T . null null 10.0.0.2:1 4 . 1 . true"));
  /* A oneway message has no result that could be told; but a failure. */
  rmq_send_options oneway = world_options;
  oneway.mode = RMQ_MODE_ONEWAY;
  CHECK_INT(world_send_with("T", &oneway, &ends[2]), 0);
  world_run(50);
  CHECK_INT(traces.n, 2);
  CHECK_INT(world_send_with("Nowhere", &oneway, &ends[3]), 0);
  world_run(50);
  CHECK_INT(traces.n, 3);
  /* What goes to the trace topic is not traced; a name that begins like its name is another one. */
  CHECK_INT(world_send(TRACE, &ends[4]), 0);
  CHECK_INT(world_send(TRACE "_2", &ends[5]), 0);
  world_run(6000);
  CHECK_INT(stats().trace_sent, 4);
  CHECK_INT(stats().trace_pending, 0);
  world_end_all();
}

static void ends_of_transactions_and_recalls(void) {
  begin();
  world_settings.trace_msg_batch_num = 1;
  world_start();
  rmq_trace_record record = {.topic = rmq_slice_text("T"),
                             .msg_id = rmq_slice_text("ID"),
                             .keys = rmq_slice_text("k1 \xff k2"), /* a broker may send that */
                             .store_host = rmq_slice_text("1.2.3.4:5"),
                             .transaction_id = rmq_slice_text("X"),
                             .state = rmq_slice_text("COMMIT_MESSAGE"),
                             .from_check = true};
  rmq_trace_end_transaction(producer, &record);
  world_run(50);
  CHECK(is_record(0, 0,
                  "EndTransaction . DefaultRegion orders T ID null k1 \xff k2 1.2.3.4:5 2 X "
                  "COMMIT_MESSAGE true"));
  CHECK(strcmp(traces.keys[0], "ID k1 k2") == 0);
  rmq_trace_recall(producer, rmq_slice_text("T"), rmq_slice_text("ID2"), true);
  world_run(50);
  CHECK(is_record(1, 0, "Recall . DefaultRegion orders T ID2 true"));
  CHECK(strcmp(traces.keys[1], "ID2") == 0);
  world_end_all();
}

static void a_topic_of_ones_own(void) {
  begin();
  char why[256];
  const rmq_setting *row = rmq_setting_find(rmq_slice_text("trace"));
  CHECK_INT(rmq_settings_set_text(&world_settings, row, rmq_slice_text("Traces"), why, sizeof why),
            0);
  world_topic_set("Traces", "b", 1, 6);
  world_settings.trace_flush_interval = 20;
  world_start();
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_run(50);
  CHECK_INT(traces.n, 1);
  CHECK(strcmp(traces.topics[0], "Traces") == 0);
  world_end_all();
}

static void many_keys(void) {
  begin();
  world_start();
  static char keys[30001];
  for (size_t i = 0; i < 30000; i += 10) snprintf(keys + i, 11, "key%06zu ", i % 1000000);
  keys[29999] = '\0';
  for (int i = 0; i < 20; i++) CHECK_INT(send("T", keys, NULL, i), 0);
  world_run(50);
  CHECK_INT(traces.n, 20); /* each so long that it goes alone */
  CHECK(strncmp(traces.keys[0], ends[0].msg_id, 32) == 0);
  CHECK_INT(stats().trace_sent, 20);
  world_end_all();
}

static void brokers_that_cannot_keep_up(void) {
  begin();
  world_settings.max_inflight = 1 << 20;
  traces.mood = WORLD_MUTE;
  world_start();
  static char keys[30001];
  memset(keys, 'k', 30000);
  for (int i = 0; i < 1000; i++) {
    CHECK_INT(send("T", keys, NULL, i), 0);
    world_run(1);
  }
  world_run(10);
  rmq_producer_stats now = stats();
  CHECK(now.trace_pending * 30000 <= RMQ_TRACE_BYTES_MAX + 60000);
  CHECK(now.trace_pending > 100);
  CHECK_INT(now.trace_pending + now.trace_dropped, 1000);
  CHECK_INT(now.inflight, 0); /* the user's messages are through all the same */
  CHECK_INT(now.acknowledged, 1000);
  world_run(8000); /* 5 s for each trace message, and its retries */
  CHECK_INT(stats().trace_pending, 0);
  CHECK_INT(stats().trace_dropped, 1000);
  CHECK_INT(stats().failed, 0);
  /* Told once, not a hundred times. */
  const char *first = strstr(world_lines, "message trace loses records");
  CHECK(first && !strstr(first + 1, "message trace loses records"));
  traces.mood = WORLD_ANSWERS;
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_run(6000);
  CHECK_INT(stats().trace_sent, 1);
  world_end_all();
}

static void no_trace_topic(void) {
  begin();
  world_topic_remove(TRACE);
  world_settings.trace_msg_batch_num = 1;
  world_start();
  for (int i = 0; i < 200; i++) {
    CHECK_INT(send("T", NULL, NULL, i), 0);
    world_run(10);
  }
  CHECK_INT(stats().trace_dropped, 200);
  CHECK_INT(stats().acknowledged, 200);
  CHECK(world_asked(TRACE) <= 3); /* not once for each */
  world_topic_set(TRACE, "c", 1, 6);
  world_run(3000);
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_run(50);
  CHECK_INT(stats().trace_sent, 1);
  world_end_all();
}

static void flushing(void) {
  begin();
  world_start();
  world_at("10.0.0.2:1")->delay_ms = 30;
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  world_count flushed = {0};
  rmq_producer_flush(producer, 1000, world_count_done, &flushed);
  world_run(25);
  CHECK_INT(flushed.dones, 0);
  world_run(25);
  CHECK_INT(flushed.dones, 1);
  CHECK_INT(flushed.left, 0);
  CHECK_INT(traces.n, 1); /* it did not wait 5 s */
  CHECK_INT(stats().trace_sent, 1);
  /* When all that is left is trace that nobody takes, the time is over without a send left. */
  traces.mood = WORLD_MUTE;
  CHECK_INT(send("T", NULL, NULL, 1), 0);
  world_run(50);
  int64_t start = world_now_us();
  rmq_producer_flush(producer, 300, world_count_done, &flushed);
  world_run(1000);
  CHECK_INT(flushed.dones, 2);
  CHECK_INT(flushed.left, 0);
  CHECK_INT((flushed.at_us - start) / 1000, 300);
  /* Records that come later are no concern of a flush. */
  traces.mood = WORLD_ANSWERS;
  world_run(6000);
  CHECK_INT(stats().trace_pending, 0);
  rmq_producer_flush(producer, 300, world_count_done, &flushed);
  CHECK_INT(send("T", NULL, NULL, 2), 0);
  world_run(5);
  CHECK_INT(flushed.dones, 3);
  world_end_all();
}

static void shutting_down(void) {
  begin();
  world_start();
  world_at("10.0.0.2:1")->delay_ms = 30;
  for (int i = 0; i < 12; i++) CHECK_INT(send("T", NULL, NULL, i), 0);
  world_run(10);
  world_count over = {0};
  rmq_producer_shutdown(producer, 1000, world_count_done, &over);
  world_run(200);
  CHECK_INT(over.dones, 1);
  CHECK_INT(over.left, 0);
  CHECK_INT(traces.n, 2);
  CHECK_INT(stats().trace_sent, 12);
  CHECK_INT(stats().trace_pending, 0);
  world_end_all();
}

static void shutting_down_where_nobody_takes_trace(void) {
  begin();
  traces.mood = WORLD_MUTE;
  world_start();
  for (int i = 0; i < 12; i++) CHECK_INT(send("T", NULL, NULL, i), 0);
  world_run(10);
  world_count over = {0};
  int64_t start = world_now_us();
  rmq_producer_shutdown(producer, 500, world_count_done, &over);
  world_run(3000);
  CHECK_INT(over.dones, 1);
  CHECK_INT(over.left, 0); /* no message of the user's was lost */
  CHECK((over.at_us - start) / 1000 < 700);
  CHECK_INT(stats().trace_pending, 0);
  CHECK_INT(stats().trace_dropped, 12);
  world_end_all();
}

static void at_any_moment(void) {
  for (int ms = 0; ms < 40; ms++) {
    begin();
    world_settings.trace_msg_batch_num = 2;
    world_settings.trace_flush_interval = 5;
    world_at("10.0.0.2:1")->delay_ms = 7;
    world_start();
    for (int i = 0; i < 5; i++) {
      CHECK_INT(send("T", "k", NULL, 2 * i), 0);
      CHECK_INT(send("U", "k", NULL, 2 * i + 1), 0);
    }
    world_run(ms);
    world_end_all(); /* freed, with whatever is under way: the sanitizers look */
  }
}

static void off(void) {
  begin();
  world_settings.enable_trace = false;
  world_start();
  CHECK_INT(send("T", NULL, NULL, 0), 0);
  rmq_trace_recall(producer, rmq_slice_text("T"), rmq_slice_text("ID2"), true);
  world_run(6000);
  CHECK_INT(traces.n, 0);
  CHECK_INT(world_asked(TRACE), 0);
  world_end_all();
}

int main(void) {
  check_run("a send", a_send);
  check_run("records go together", records_go_together);
  check_run("failures", failures);
  check_run("what brokers say", what_brokers_say);
  check_run("kinds of messages", kinds_of_messages);
  check_run("ends of transactions, and recalls", ends_of_transactions_and_recalls);
  check_run("a topic of one's own", a_topic_of_ones_own);
  check_run("many keys", many_keys);
  check_run("brokers that cannot keep up", brokers_that_cannot_keep_up);
  check_run("no trace topic", no_trace_topic);
  check_run("flushing", flushing);
  check_run("shutting down", shutting_down);
  check_run("shutting down where nobody takes trace", shutting_down_where_nobody_takes_trace);
  check_run("at any moment", at_any_moment);
  check_run("off", off);
  return check_end();
}

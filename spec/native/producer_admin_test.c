/* Administrative calls in virtual time: which requests go where, and what comes of all answers. */
#include "base/error.h"
#include "producer/admin.h"
#include "producer_world.h"
#include "wire/codes.h"
#include "wire/properties.h"

/* ---- Brokers that a test tells what to answer ---- */

/* What the brokers a, b and c do with administrative requests, in the order of their ports. */
typedef struct broker_act {
  world_mood mood;
  int32_t code;
  const char *offset; /* of the answer to a question for an offset; NULL: none */
  int close_first;    /* so many requests find the connection closed */
  rmq_buf messages;   /* the answer's body */
  int64_t appears_us; /* when a topic that was made shows in the route; -1: never */
} broker_act;

typedef struct asked {
  int32_t code;
  char broker;      /* 'a', 'b', 'c' */
  char fields[512]; /* "name=value " in the order in which they came */
} asked;

static broker_act acts[3];
static asked log_[64];
static int n_log;

static char made[4];

static int index_of(const world_server *server) {
  return server->addr[strlen(server->addr) - 1] - '1';
}

static void note(const world_server *server, const rmq_header *request) {
  asked *entry = &log_[n_log++];
  size_t used = 0;
  memset(entry, 0, sizeof *entry);
  entry->code = request->code;
  entry->broker = (char)('a' + index_of(server));
  for (size_t i = 0; i < request->n_ext; i++) {
    const rmq_field *field = &request->ext[i];
    used += (size_t)snprintf(entry->fields + used, sizeof entry->fields - used, "%.*s=%.*s ",
                             (int)field->name.len, field->name.ptr, (int)field->value.len,
                             field->value.len ? field->value.ptr : "");
  }
}

static void make_topic(const world_server *server) {
  size_t len = strlen(made);
  made[len] = (char)('a' + index_of(server));
  made[len + 1] = '\0';
  world_topic_set("New", made, 8, 6);
}

static bool serve(world_server *server, const rmq_header *request, rmq_slice body,
                  world_reply *reply) {
  (void)body;
  if (request->code == RMQ_HEART_BEAT || request->code == RMQ_UNREGISTER_CLIENT) return false;
  if (!server) { /* nobody's address, where something swallows all */
    reply->mood = WORLD_MUTE;
    return true;
  }
  broker_act *act = &acts[index_of(server)];
  note(server, request);
  reply->mood = act->mood;
  reply->code = act->code;
  reply->remark = "the remark";
  if (act->close_first > 0) {
    act->close_first--;
    reply->mood = WORLD_CLOSES;
  }
  if (reply->mood != WORLD_ANSWERS || reply->code != 0) return true;
  if (request->code == RMQ_UPDATE_AND_CREATE_TOPIC && act->appears_us >= 0) make_topic(server);
  if (act->offset) {
    reply->ext[0] = (rmq_field){rmq_slice_text("offset"), rmq_slice_text(act->offset)};
    reply->ext[1] = (rmq_field){rmq_slice_text("timestamp"), rmq_slice_text(act->offset)};
    reply->n_ext = 2;
  }
  rmq_slice messages = rmq_buf_slice(&act->messages);
  rmq_buf_bytes(&reply->body, messages.ptr, messages.len);
  return true;
}

static void begin(void) {
  world_begin();
  world_topic_set("T", "abc", 4, 6);
  memset(acts, 0, sizeof acts);
  n_log = 0;
  made[0] = '\0';
  world_other = serve;
  world_start();
}

static void finish(void) {
  world_end_all();
  for (int i = 0; i < 3; i++) rmq_buf_free(&acts[i].messages);
}

/* ---- How a call ended ---- */

typedef struct ending {
  int dones;
  bool failed;
  rmq_kind kind;
  int32_t code;
  int n_tries;
  int64_t value, at_us;
  size_t n;
  char ids[16][8];     /* the UNIQ_KEYs of what was found */
  char brokers[16][8]; /* and who had it */
  char message[2048], topic[64], broker[32];
} ending;

static ending end;

static void copy(char *to, size_t size, rmq_slice text) {
  snprintf(to, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

static void note_end(const rmq_failure *failure) {
  end.dones++;
  end.failed = failure != NULL;
  end.at_us = world_now_us();
  if (!failure) return;
  end.kind = failure->kind;
  end.code = failure->code;
  end.n_tries = failure->n_tries;
  copy(end.message, sizeof end.message, rmq_buf_slice(&failure->message));
  copy(end.topic, sizeof end.topic, rmq_slice_text(failure->topic));
  copy(end.broker, sizeof end.broker, rmq_slice_text(failure->broker));
}

static void on_offset(void *arg, const rmq_failure *failure, int64_t value) {
  CHECK(arg == &end);
  end.value = value;
  note_end(failure);
}

static void on_created(void *arg, const rmq_failure *failure) {
  CHECK(arg == &end);
  note_end(failure);
}

static void on_found(void *arg, const rmq_failure *failure, rmq_slice found, size_t n) {
  CHECK(arg == &end);
  rmq_slice broker;
  rmq_stored_message message;
  end.n = n;
  size_t i = 0;
  while (rmq_found_next(&found, &broker, &message)) {
    copy(end.ids[i], sizeof end.ids[i], rmq_properties_find(message.properties, "UNIQ_KEY"));
    copy(end.brokers[i], sizeof end.brokers[i], broker);
    i++;
  }
  CHECK_INT(i, n);
  CHECK_INT(found.len, 0);
  note_end(failure);
}

static int result(int status) {
  if (status < 0) note_end(rmq_producer_failure(producer));
  return status;
}

/* ---- Offsets ---- */

static int ask(rmq_offset_kind kind, const char *broker, int32_t id) {
  memset(&end, 0, sizeof end);
  rmq_offset_question question = {.kind = kind,
                                  .topic = rmq_slice_text("T"),
                                  .queue = {rmq_slice_text(broker), id},
                                  .time_ms = 1700000000123,
                                  .timeout_ms = 1000};
  return result(rmq_producer_ask_offset(producer, &question, on_offset, &end));
}

static void check_request(int i, int32_t code, char broker, const char *fields) {
  CHECK_INT(log_[i].code, code);
  CHECK_INT(log_[i].broker, broker);
  if (strcmp(log_[i].fields, fields) == 0) return;
  printf("\"%s\" is not \"%s\"\n", log_[i].fields, fields);
  check_that(0, "the fields of the request", __FILE__, __LINE__);
}

static void offsets(void) {
  static const struct {
    rmq_offset_kind kind;
    int32_t code;
    const char *fields;
  } rows[] = {
      {RMQ_OFFSET_MAX, 30, "topic=T queueId=3 bname=b "},
      {RMQ_OFFSET_MIN, 31, "topic=T queueId=3 bname=b "},
      {RMQ_OFFSET_AT_TIME, 29, "topic=T queueId=3 bname=b timestamp=1700000000123 "},
      {RMQ_OFFSET_EARLIEST, 32, "topic=T queueId=3 bname=b "},
  };
  begin();
  acts[1].offset = "9223372036854775807";
  for (int i = 0; i < 4; i++) {
    CHECK_INT(ask(rows[i].kind, "b", 3), 0);
    CHECK_INT(end.dones, 0);
    world_run(50);
    CHECK_INT(end.dones, 1);
    CHECK(!end.failed);
    CHECK(end.value == INT64_MAX);
    check_request(i, rows[i].code, 'b', rows[i].fields);
  }
  acts[1].offset = "-1";
  CHECK_INT(ask(RMQ_OFFSET_EARLIEST, "b", 3), 0);
  world_run(50);
  CHECK(!end.failed && end.value == -1);
  finish();
}

static void offsets_that_cannot_be_had(void) {
  begin();
  static const char *const broken[] = {NULL, "", "abc", "1.5", "9223372036854775808"};
  for (int i = 0; i < 5; i++) {
    acts[0].offset = broken[i];
    CHECK_INT(ask(RMQ_OFFSET_MAX, "a", 0), 0);
    world_run(50);
    CHECK_INT(end.dones, 1);
    CHECK_INT(end.kind, RMQ_KIND_CLOSED);
    CHECK(strstr(end.message, "10.0.0.2:1 to GET_MAX_OFFSET has no proper offset") != NULL);
  }
  acts[0].code = RMQ_SYSTEM_ERROR;
  acts[0].mood = WORLD_CODE;
  CHECK_INT(ask(RMQ_OFFSET_MIN, "a", 0), 0);
  world_run(50);
  CHECK_INT(end.kind, RMQ_KIND_BROKER);
  CHECK_INT(end.code, RMQ_SYSTEM_ERROR);
  CHECK_INT(ask(RMQ_OFFSET_MIN, "nobody", 0), 0);
  world_run(50);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  CHECK_INT(ask(RMQ_OFFSET_MIN, "a", -1), RMQ_EINVAL);
  CHECK(strstr(end.message, "queue id -1 is negative") != NULL);
  acts[0].mood = WORLD_MUTE;
  int64_t start = world_now_us();
  CHECK_INT(ask(RMQ_OFFSET_MIN, "a", 0), 0);
  world_run(2000);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  CHECK_INT((end.at_us - start) / 1000, 1000);
  finish();
}

static void a_dead_connection_costs_nothing(void) {
  begin();
  acts[0].offset = "7";
  acts[0].close_first = 1;
  CHECK_INT(ask(RMQ_OFFSET_MAX, "a", 0), 0);
  world_run(100);
  CHECK(end.dones == 1 && !end.failed && end.value == 7);
  CHECK_INT(n_log, 2);
  acts[0].close_first = 2;
  CHECK_INT(ask(RMQ_OFFSET_MAX, "a", 0), 0);
  world_run(1500);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_CLOSED);
  CHECK_INT(n_log, 4);
  finish();
}

/* ---- Making topics ---- */

static rmq_new_topic new_topic;

static int create(void) {
  memset(&end, 0, sizeof end);
  return result(rmq_producer_create_topic(producer, &new_topic, on_created, &end));
}

static void begin_creating(void) {
  begin();
  world_topic_set("TBW102", "ab", 8, 7);
  new_topic = (rmq_new_topic){.topic = rmq_slice_text("New"),
                              .read_queues = 8,
                              .write_queues = 8,
                              .perm = 6,
                              .wait = true,
                              .timeout_ms = 2000};
}

static void a_topic_on_the_brokers_of_the_default_topic(void) {
  begin_creating();
  const rmq_field attributes[] = {{rmq_slice_text("message.type"), rmq_slice_text("FIFO")},
                                  {rmq_slice_text("x"), rmq_slice_text("y")}};
  new_topic.attributes = attributes;
  new_topic.n_attributes = 2;
  new_topic.order = true;
  CHECK_INT(create(), 0);
  CHECK_INT(end.dones, 0);
  world_run(200);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed);
  CHECK_INT(n_log, 2);
  static const char fields[] =
      "topic=New defaultTopic=TBW102 readQueueNums=8 writeQueueNums=8 perm=6 "
      "topicFilterType=SINGLE_TAG topicSysFlag=0 order=true attributes=+message.type=FIFO,+x=y ";
  check_request(0, 17, log_[0].broker, fields);
  check_request(1, 17, log_[1].broker, fields);
  CHECK_INT(log_[0].broker + log_[1].broker, 'a' + 'b');
  finish();
}

static void a_topic_in_a_cluster_and_on_named_brokers(void) {
  begin_creating();
  world_topic_set("C", "abc", 1, 1); /* a cluster's own topic may be inherited from, and no more */
  new_topic.cluster = rmq_slice_text("C");
  CHECK_INT(create(), 0);
  world_run(200);
  CHECK(end.dones == 1 && !end.failed);
  CHECK_INT(n_log, 3);
  CHECK(strstr(log_[0].fields, "attributes") == NULL);

  n_log = 0;
  made[0] = '\0';
  world_topic_set("c", "bc", 1, 6); /* not only on the broker of its name */
  world_topic_set("a", "a", 1, 6);
  const rmq_slice brokers[] = {rmq_slice_text("c"), rmq_slice_text("a"), rmq_slice_text("c")};
  new_topic.cluster = rmq_slice_make(NULL, 0);
  new_topic.brokers = brokers;
  new_topic.n_brokers = 3;
  CHECK_INT(create(), 0);
  world_run(200);
  CHECK_INT(end.dones, 1);
  CHECK_INT(n_log, 2);
  CHECK_INT(log_[0].broker + log_[1].broker, 'a' + 'c');
  finish();
}

static void brokers_that_do_not_make_it(void) {
  begin_creating();
  acts[1].mood = WORLD_CODE;
  acts[1].code = RMQ_INVALID_PARAMETER;
  CHECK_INT(create(), 0);
  world_run(200);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_BROKER);
  CHECK_INT(end.code, RMQ_INVALID_PARAMETER);
  CHECK_INT(end.n_tries, 1);
  CHECK(strcmp(end.broker, "b") == 0);
  CHECK(strcmp(end.topic, "New") == 0);
  CHECK(strstr(end.message,
               "topic \"New\" was made on 1 of 2 brokers: b: "
               "UPDATE_AND_CREATE_TOPIC was refused by 10.0.0.2:2 with code 29") == end.message);
  finish();
}

static void a_topic_that_does_not_show(void) {
  begin_creating();
  acts[1].appears_us = -1;
  CHECK_INT(create(), 0);
  world_run(1000);
  CHECK_INT(end.dones, 0);
  CHECK(world_asked("New") > 3);
  CHECK(world_asked("New") < 30);
  world_run(1500);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  CHECK(strstr(end.message, "does not show it so on broker b yet") != NULL);
  /* It shows later, and who asks then is content. */
  acts[1].appears_us = 0;
  made[0] = '\0';
  CHECK_INT(create(), 0);
  world_run(300);
  CHECK(end.dones == 1 && !end.failed);
  /* Who does not want to wait is told at once. */
  world_topic_remove("New");
  acts[1].appears_us = acts[0].appears_us = -1;
  new_topic.wait = false;
  CHECK_INT(create(), 0);
  world_run(20);
  CHECK(end.dones == 1 && !end.failed);
  finish();
}

static void a_topic_nowhere(void) {
  begin_creating();
  world_topic_remove("TBW102");
  CHECK_INT(create(), 0);
  world_run(100);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  CHECK_INT(end.code, 10005);
  CHECK(strstr(end.message, "name the brokers, with cluster") != NULL);
  /* A cluster that nobody knows must not become the default topic's brokers. */
  world_topic_set("TBW102", "ab", 8, 7);
  new_topic.cluster = rmq_slice_text("Unknown");
  CHECK_INT(create(), 0);
  world_run(100);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  new_topic.cluster = rmq_slice_make(NULL, 0);
  const rmq_slice brokers[] = {rmq_slice_text("nobody")};
  new_topic.brokers = brokers;
  new_topic.n_brokers = 1;
  CHECK_INT(create(), 0);
  world_run(100);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  CHECK(strstr(end.message, "no name server knows a broker \"nobody\"") != NULL);
  CHECK_INT(n_log, 0);
  world_at("10.0.0.1:9876")->always.mood = WORLD_MUTE;
  CHECK_INT(create(), 0);
  world_run(2100);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  finish();
}

static void what_cannot_be_made(void) {
  begin_creating();
  static const struct {
    const char *topic;
    int32_t reads, writes, perm;
    const char *says;
  } rows[] = {
      {"", 1, 1, 6, "topic is empty"},
      {"a b", 1, 1, 6, "topic has a space"},
      {"TBW102", 1, 1, 6, "one of RocketMQ's own"},
      {"rmq_sys_x", 1, 1, 6, "one of RocketMQ's own"},
      {"RMQ_SYS_TRACE_TOPIC", 1, 1, 6, "one of RocketMQ's own"},
      {"New", -1, 1, 6, "read_queues is -1"},
      {"New", 1, 65537, 6, "write_queues is 65537"},
      {"New", 1, 1, 1, "perm must be"},
      {"New", 1, 1, -2, "perm must be"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    new_topic.topic = rmq_slice_text(rows[i].topic);
    new_topic.read_queues = rows[i].reads;
    new_topic.write_queues = rows[i].writes;
    new_topic.perm = rows[i].perm;
    CHECK_INT(create(), RMQ_EINVAL);
    CHECK_INT(end.kind, RMQ_KIND_MESSAGE);
    CHECK(strstr(end.message, rows[i].says) != NULL);
  }
  new_topic.topic = rmq_slice_text("New");
  new_topic.read_queues = new_topic.write_queues = 1;
  new_topic.perm = 6;
  const rmq_field attribute = {rmq_slice_text("a"), rmq_slice_text("b,+c=d")};
  new_topic.attributes = &attribute;
  new_topic.n_attributes = 1;
  CHECK_INT(create(), RMQ_EINVAL);
  CHECK(strstr(end.message, "attributes") != NULL);
  new_topic.n_attributes = 0;
  new_topic.cluster = rmq_slice_text("a b");
  CHECK_INT(create(), RMQ_EINVAL);
  CHECK(strstr(end.message, "cluster must be") != NULL);
  finish();
}

/* ---- Messages ---- */

static void put_message(char broker, const char *topic, const char *id, const char *keys,
                        int64_t stored_ms, int64_t offset) {
  char properties[128];
  snprintf(properties, sizeof properties, "UNIQ_KEY\001%s\002%s%s%s", id, keys ? "KEYS\001" : "",
           keys ? keys : "", keys ? "\002" : "");
  rmq_stored_message message = {
      .queue_id = 1,
      .queue_offset = 5,
      .log_offset = offset,
      .born_ms = stored_ms - 1,
      .born_host = {.ip = {127, 0, 0, 1}, .ip_len = 4, .port = 1},
      .stored_ms = stored_ms,
      .store_host = {.ip = {10, 0, 0, 2}, .ip_len = 4, .port = broker - 'a' + 1},
      .body = rmq_slice_text("body"),
      .topic = rmq_slice_text(topic),
      .properties = rmq_slice_text(properties)};
  CHECK_INT(rmq_stored_put(&acts[broker - 'a'].messages, &message), 0);
}

static int query(const char *key, int32_t max) {
  memset(&end, 0, sizeof end);
  rmq_query asked_for = {.topic = rmq_slice_text("T"),
                         .key = rmq_slice_text(key),
                         .begin_ms = 10,
                         .end_ms = INT64_MAX,
                         .max = max,
                         .timeout_ms = 1000};
  return result(rmq_producer_query_messages(producer, &asked_for, on_found, &end));
}

static void check_found(const char *ids) {
  char all[160] = "";
  size_t used = 0;
  for (size_t i = 0; i < end.n; i++) {
    used += (size_t)snprintf(all + used, sizeof all - used, "%s ", end.ids[i]);
  }
  if (strcmp(all, ids) == 0) return;
  printf("found \"%s\", not \"%s\"\n", all, ids);
  check_that(0, "the messages that were found", __FILE__, __LINE__);
}

static void messages_by_key(void) {
  begin();
  put_message('a', "T", "a1", "k", 100, 0);
  put_message('a', "T", "a2", "kk k2 k", 300, 1);
  put_message('a', "T", "a3", "kk", 310, 2);    /* another key with the same hash */
  put_message('a', "Other", "a4", "k", 320, 3); /* another topic with the same hash */
  put_message('a', "T", "a5", NULL, 330, 4);    /* found by its unique key */
  put_message('b', "T", "b1", "k", 200, 0);
  acts[2].mood = WORLD_CODE;
  acts[2].code = RMQ_QUERY_NOT_FOUND;
  CHECK_INT(query("k", 32), 0);
  CHECK_INT(end.dones, 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed);
  check_found("a1 b1 a2 ");
  CHECK(strcmp(end.brokers[1], "b") == 0);
  CHECK_INT(n_log, 3);
  check_request(0, 12, log_[0].broker,
                "topic=T key=k maxNum=32 beginTimestamp=10 endTimestamp=9223372036854775807 "
                "_UNIQUE_KEY_QUERY=false ");
  CHECK_INT(query("k", 2), 0);
  world_run(50);
  check_found("b1 a2 ");
  CHECK_INT(query("nothing", 2), 0);
  world_run(50);
  CHECK(end.dones == 1 && !end.failed && end.n == 0);
  finish();
}

static void brokers_that_do_not_answer_a_query(void) {
  begin();
  put_message('a', "T", "a1", "k", 100, 0);
  rmq_buf_text(&acts[1].messages, "what is this?");
  acts[2].mood = WORLD_MUTE;
  CHECK_INT(query("k", 32), 0);
  world_run(1100);
  CHECK_INT(end.dones, 1);
  CHECK(end.failed);
  check_found("a1 ");
  CHECK_INT(end.n_tries, 2);
  CHECK_INT(end.kind, RMQ_KIND_TIMEOUT);
  CHECK(strstr(end.message,
               "2 of the topic's 3 brokers did not answer as they should: b: its "
               "answer is not a list of messages; c: QUERY_MESSAGE to") != NULL);
  /* Good messages before bad bytes count. */
  put_message('a', "T", "a2", "k", 100, 0);
  rmq_buf_text(&acts[0].messages, "x");
  CHECK_INT(query("k", 32), 0);
  world_run(1100);
  check_found("a1 a2 ");
  CHECK_INT(end.n_tries, 3);
  finish();
}

static void a_slave_is_asked_where_there_is_no_master(void) {
  begin();
  world_topic_json("T",
                   "{\"queueDatas\":[{\"brokerName\":\"a\",\"readQueueNums\":1,"
                   "\"writeQueueNums\":1,\"perm\":6}],\"brokerDatas\":[{\"brokerName\":\"a\","
                   "\"brokerAddrs\":{\"1\":\"10.0.0.2:2\"}}]}");
  put_message('b', "T", "b1", "k", 100, 0);
  CHECK_INT(query("k", 32), 0);
  world_run(50);
  CHECK(!end.failed);
  check_found("b1 ");
  CHECK(strcmp(end.brokers[0], "a") == 0);
  world_topic_remove("U");
  memset(&end, 0, sizeof end);
  rmq_query unknown = {.topic = rmq_slice_text("U"), .key = rmq_slice_text("k"), .max = 1};
  CHECK_INT(rmq_producer_query_messages(producer, &unknown, on_found, &end), 0);
  world_run(50);
  CHECK_INT(end.kind, RMQ_KIND_ROUTE);
  CHECK_INT(end.code, 10005);
  finish();
}

static int view(const char *topic, const char *id) {
  memset(&end, 0, sizeof end);
  rmq_view asked_for = {
      .topic = rmq_slice_text(topic), .id = rmq_slice_text(id), .timeout_ms = 1000};
  return result(rmq_producer_view_message(producer, &asked_for, on_found, &end));
}

/* 10.0.0.2:2 at 0x1f, and 0x20. */
#define AT_31 "0A00000200000002000000000000001F"
#define AT_32 "0a000002000000020000000000000020"
#define UNIQUE "7F00000112345678AAAA000000010001"

static void a_message_by_its_place(void) {
  begin();
  put_message('b', "Other", "b1", NULL, 100, 31);
  CHECK_INT(view(NULL, AT_31), 0);
  CHECK_INT(end.dones, 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed);
  check_found("b1 ");
  CHECK(strcmp(end.brokers[0], "") == 0); /* no route has named it yet */
  check_request(0, 33, 'b', "offset=31 ");
  CHECK_INT(view("T", AT_31), 0);
  world_run(50);
  check_found("b1 ");
  CHECK(strcmp(end.brokers[0], "b") == 0);
  check_request(1, 33, 'b', "offset=31 topic=T ");
  CHECK_INT(n_log, 2);
  /* An answer that is not what was asked for. */
  CHECK_INT(view(NULL, AT_32), 0);
  world_run(50);
  CHECK_INT(end.n, 0);
  CHECK_INT(end.kind, RMQ_KIND_CLOSED);
  acts[1].mood = WORLD_CODE;
  acts[1].code = RMQ_SYSTEM_ERROR;
  CHECK_INT(view(NULL, AT_31), 0);
  world_run(50);
  CHECK_INT(end.kind, RMQ_KIND_BROKER);
  CHECK(strstr(end.message, "the message cannot be read: ") == end.message);
  CHECK(strstr(end.message, "VIEW_MESSAGE_BY_ID was refused by 10.0.0.2:2") != NULL);
  finish();
}

static void a_message_by_its_unique_key(void) {
  begin();
  put_message('c', "T", "other", NULL, 50, 1); /* another id with the same hash */
  CHECK_INT(view(NULL, UNIQUE), RMQ_EINVAL);
  CHECK(strstr(end.message, "name its topic too") != NULL);
  CHECK_INT(view("T", UNIQUE), 0);
  world_run(50);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.kind, RMQ_KIND_BROKER);
  CHECK_INT(end.code, RMQ_NO_MESSAGE);
  check_request(0, 12, log_[0].broker,
                "topic=T key=" UNIQUE
                " maxNum=32 beginTimestamp=0 "
                "endTimestamp=9223372036854775807 _UNIQUE_KEY_QUERY=true ");
  /* Stored twice, by a retry: the first one counts. Who does not answer is of no matter then. */
  put_message('c', "T", UNIQUE, NULL, 70, 2);
  put_message('c', "T", UNIQUE, NULL, 60, 3);
  acts[0].mood = WORLD_MUTE;
  CHECK_INT(view("T", UNIQUE), 0);
  world_run(1100);
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed);
  CHECK_INT(end.n, 1);
  CHECK(strcmp(end.brokers[0], "c") == 0);
  finish();
}

static void an_id_that_might_be_both(void) {
  begin();
  /* The place is nobody's: it is looked for as a key, in what time is left. */
  static const char nowhere[] = "0A00000900000002000000000000001F";
  put_message('a', "T", "x", NULL, 60, 3);
  CHECK_INT(view("T", nowhere), 0);
  world_run(1100);
  CHECK_INT(end.dones, 1);
  CHECK_INT(end.code, RMQ_NO_MESSAGE);
  CHECK(strstr(end.message, "; VIEW_MESSAGE_BY_ID to 10.0.0.9:2 failed") != NULL);
  CHECK_INT(n_log, 3);
  finish();
}

static void what_cannot_be_looked_for(void) {
  begin();
  CHECK_INT(query("", 1), RMQ_EINVAL);
  CHECK_INT(query("a b", 1), RMQ_EINVAL);
  CHECK_INT(query("k", 0), RMQ_EINVAL);
  CHECK_INT(query("k", 10001), RMQ_EINVAL);
  CHECK(strstr(end.message, "max is 10001") != NULL);
  CHECK_INT(view(NULL, ""), RMQ_EINVAL);
  CHECK_INT(view("a b", AT_31), RMQ_EINVAL);
  finish();
}

/* ---- The end of the producer ---- */

static void start_one_of_each(void) {
  acts[0].mood = WORLD_MUTE;
  memset(&end, 0, sizeof end);
  rmq_offset_question question = {.topic = rmq_slice_text("T"), .queue = {rmq_slice_text("a"), 0}};
  CHECK_INT(rmq_producer_ask_offset(producer, &question, on_offset, &end), 0);
  CHECK_INT(rmq_producer_create_topic(producer, &new_topic, on_created, &end), 0);
  rmq_query asked_for = {.topic = rmq_slice_text("T"), .key = rmq_slice_text("k"), .max = 1};
  CHECK_INT(rmq_producer_query_messages(producer, &asked_for, on_found, &end), 0);
  rmq_view viewed = {.topic = rmq_slice_text("T"),
                     .id = rmq_slice_text("0A00000200000001000000000000001F")};
  CHECK_INT(rmq_producer_view_message(producer, &viewed, on_found, &end), 0);
}

static void a_shutdown_ends_them(void) {
  /* At every moment of their life: while they wait for a route, for answers, between two looks. */
  for (int64_t ms = 0; ms < 60; ms += 3) {
    begin_creating();
    world_at("10.0.0.1:9876")->delay_ms = 0;
    acts[1].appears_us = -1;
    start_one_of_each();
    world_run(ms);
    world_count over = {0};
    rmq_producer_shutdown(producer, 200, world_count_done, &over);
    world_run(100);
    CHECK_INT(over.dones, 0);
    world_run(3000);
    CHECK_INT(end.dones, 4);
    CHECK_INT(end.kind, RMQ_KIND_STATE);
    CHECK_INT(over.dones, 1);
    CHECK_INT(over.left, 0);
    CHECK_INT(query("k", 1), RMQ_ESTATE);
    finish();
  }
}

static void freeing_forgets_them(void) {
  for (int64_t ms = 0; ms < 60; ms += 3) {
    begin_creating();
    acts[1].appears_us = -1;
    start_one_of_each();
    world_run(ms);
    finish(); /* nothing is told, and no memory is left, as the sanitizers see */
    CHECK_INT(end.dones, 0);
  }
}

int main(void) {
  check_run("offsets", offsets);
  check_run("offsets that cannot be had", offsets_that_cannot_be_had);
  check_run("a dead connection costs nothing", a_dead_connection_costs_nothing);
  check_run("a topic on the brokers of the default topic",
            a_topic_on_the_brokers_of_the_default_topic);
  check_run("a topic in a cluster, and on named brokers",
            a_topic_in_a_cluster_and_on_named_brokers);
  check_run("brokers that do not make it", brokers_that_do_not_make_it);
  check_run("a topic that does not show", a_topic_that_does_not_show);
  check_run("a topic nowhere", a_topic_nowhere);
  check_run("what cannot be made", what_cannot_be_made);
  check_run("messages by key", messages_by_key);
  check_run("brokers that do not answer a query", brokers_that_do_not_answer_a_query);
  check_run("a slave where there is no master", a_slave_is_asked_where_there_is_no_master);
  check_run("a message by its place", a_message_by_its_place);
  check_run("a message by its unique key", a_message_by_its_unique_key);
  check_run("an id that might be both", an_id_that_might_be_both);
  check_run("what cannot be looked for", what_cannot_be_looked_for);
  check_run("a shutdown ends them", a_shutdown_ends_them);
  check_run("freeing forgets them", freeing_forgets_them);
  return check_end();
}

/* Recalls on virtual time: each ends once, whatever becomes of the broker or the producer. */
#include <stdlib.h>

#include "base/error.h"
#include "producer/recall.h"
#include "producer_world.h"
#include "wire/codes.h"
#include "wire/recall.h"

typedef struct recall_end {
  int dones;
  bool failed;
  rmq_kind kind;
  char message[512], topic[64], broker[64], msg_id[64];
} recall_end;

static void done(void *arg, const rmq_failure *failure, rmq_slice msg_id) {
  recall_end *end = arg;
  end->dones++;
  snprintf(end->msg_id, sizeof end->msg_id, "%.*s", (int)msg_id.len, msg_id.len ? msg_id.ptr : "");
  end->failed = failure != NULL;
  if (!failure) return;
  end->kind = failure->kind;
  rmq_slice text = rmq_buf_slice(&failure->message);
  snprintf(end->message, sizeof end->message, "%.*s", (int)text.len, text.ptr);
  snprintf(end->topic, sizeof end->topic, "%s", failure->topic ? failure->topic : "");
  snprintf(end->broker, sizeof end->broker, "%s", failure->broker ? failure->broker : "");
}

static int recall(const char *topic, const char *broker, recall_end *end) {
  rmq_buf handle = {0};
  *end = (recall_end){0};
  rmq_recall_handle_encode(&handle, &(rmq_recall_handle){.topic = rmq_slice_text(topic),
                                                         .broker = rmq_slice_text(broker),
                                                         .deliver_at = 1,
                                                         .msg_id = rmq_slice_text("ID")});
  int status =
      rmq_producer_recall(producer, rmq_slice_text(topic), rmq_buf_slice(&handle), 0, done, end);
  rmq_buf_free(&handle);
  return status;
}

static world_mood mood;
static rmq_slice said; /* the id in the answer */
static int recalls;

static bool answer_recalls(world_server *server, const rmq_header *request, rmq_slice body,
                           world_reply *reply) {
  (void)server;
  (void)body;
  if (request->code != RMQ_RECALL_MESSAGE) return false;
  recalls++;
  reply->mood = mood;
  reply->ext[reply->n_ext++] = (rmq_field){rmq_slice_text("msgId"), said};
  return true;
}

static void begin(void) {
  mood = WORLD_ANSWERS;
  said = rmq_slice_text("ID");
  recalls = 0;
  world_begin();
  world_other = answer_recalls;
  world_topic_set("T", "ab", 4, 6);
  world_start();
}

static void asks_for_the_route_first(void) {
  begin();
  recall_end end;
  CHECK_INT(recall("T", "b", &end), 0);
  CHECK_INT(end.dones, 0); /* never from inside */
  world_settle();
  CHECK_INT(end.dones, 1);
  CHECK(!end.failed && strcmp(end.msg_id, "ID") == 0);
  CHECK_INT(world_asked("T"), 1);
  CHECK_INT(recalls, 1);
  world_end_all();
}

static void a_mute_broker_ends_it_in_time(void) {
  begin();
  mood = WORLD_MUTE;
  recall_end end;
  CHECK_INT(recall("T", "a", &end), 0);
  world_run(2900);
  CHECK_INT(end.dones, 0);
  world_run(200); /* send_msg_timeout is 3000 ms */
  CHECK_INT(end.dones, 1);
  CHECK(end.failed && end.kind == RMQ_KIND_TIMEOUT);
  CHECK(strcmp(end.topic, "T") == 0 && strcmp(end.broker, "a") == 0);
  world_end_all();
}

static void the_end_of_the_producer_ends_it(void) {
  begin();
  mood = WORLD_MUTE;
  recall_end end;
  CHECK_INT(recall("T", "a", &end), 0);
  world_settle();
  world_count count = {0};
  rmq_producer_shutdown(producer, 100, world_count_done, &count);
  world_run(1000);
  CHECK_INT(end.dones, 1);
  CHECK(end.failed && end.kind == RMQ_KIND_STATE);
  CHECK_INT(recall("T", "a", &end), RMQ_ESTATE);
  world_end_all();
}

/* Nothing comes in the child, and nothing is left behind: the sanitizer looks. */
static void a_fork_drops_it(void) {
  begin();
  mood = WORLD_MUTE;
  recall_end end;
  CHECK_INT(recall("T", "a", &end), 0);
  world_settle();
  rmq_producer_forked(producer);
  world_run(5000);
  CHECK_INT(end.dones, 0);
  world_end_all();
}

/* Asks once; the broker says this id. */
static void recall_with(recall_end *end, const char *id, size_t len) {
  said = rmq_slice_make(id, len);
  CHECK_INT(recall("T", "a", end), 0);
  world_settle();
  CHECK_INT(end->dones, 1);
}

static void an_id_is_what_can_be_one(void) {
  static const struct {
    const char *id;
    size_t len;
  } wrong[] = {{"A B", 3},      {" ", 1},        {"A\n", 2},  {"A\0B", 3},
               {"\x1b[31m", 5}, {"\xc3\xa4", 2}, {"A\x7f", 2}};
  char longest[256];
  recall_end end;
  begin();
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    recall_with(&end, wrong[i].id, wrong[i].len);
    CHECK(end.failed && end.kind == RMQ_KIND_CLOSED && end.msg_id[0] == '\0');
    CHECK(strstr(end.message, "the answer of 10.0.0.2:1 to RECALL_MESSAGE has no proper id"));
    CHECK(strcmp(end.topic, "T") == 0 && strcmp(end.broker, "a") == 0);
  }
  memset(longest, '~', sizeof longest);
  recall_with(&end, longest, 255);
  CHECK(!end.failed && strspn(end.msg_id, "~") == sizeof end.msg_id - 1);
  recall_with(&end, longest, 256);
  CHECK(end.failed);
  recall_with(&end, "!", 1);
  CHECK(!end.failed && strcmp(end.msg_id, "!") == 0);
  recall_with(&end, "", 0); /* the one of the handle */
  CHECK(!end.failed && strcmp(end.msg_id, "ID") == 0);
  world_end_all();
}

int main(void) {
  check_run("asks for the route first", asks_for_the_route_first);
  check_run("an id is what can be one", an_id_is_what_can_be_one);
  check_run("a mute broker ends it in time", a_mute_broker_ends_it_in_time);
  check_run("the end of the producer ends it", the_end_of_the_producer_ends_it);
  check_run("a fork drops it", a_fork_drops_it);
  return check_end();
}

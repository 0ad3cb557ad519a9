#include "sim/questions.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "producer/admin.h"
#include "producer/recall.h"
#include "sim/invariants.h"
#include "sim/workload_private.h"
#include "wire/codes.h"
#include "wire/properties.h"
#include "wire/recall.h"

static const char searched_key[] = "searched";

/* Every queue of every broker has an offset of its own. */
static int64_t offset_of(int broker, int32_t queue) { return broker * INT64_C(1000) + queue; }

/* ---- Answers ---- */

static void put_number(sim_answer *answer, const char *name, int64_t value) {
  answer->name = name;
  snprintf(answer->value, sizeof answer->value, "%" PRId64, value);
}

static void answer_recall(const rmq_header *request, sim_answer *answer) {
  rmq_buf scratch = {0};
  rmq_recall_handle handle;
  if (rmq_recall_handle_decode(rmq_header_field(request, "recallHandle"), &scratch, &handle) == 0) {
    answer->name = "msgId";
    snprintf(answer->value, sizeof answer->value, "%.*s", (int)handle.msg_id.len,
             handle.msg_id.ptr);
  }
  rmq_buf_free(&scratch);
}

/* Every second broker has a message with the key, and one of another key that has the same hash. */
static void answer_query(const sim_broker *broker, const rmq_header *request, sim_answer *answer) {
  if (broker->index % 2 == 1) {
    answer->code = RMQ_QUERY_NOT_FOUND;
    return;
  }
  rmq_stored_message message = {.topic = rmq_header_field(request, "topic"),
                                .body = rmq_slice_text("found"),
                                .born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 4}};
  message.properties = rmq_slice_text("KEYS\001another\002");
  rmq_stored_put(&answer->body, &message);
  message.properties = rmq_slice_text("KEYS\001one searched two\002");
  message.queue_id = broker->index;
  rmq_stored_put(&answer->body, &message);
  put_number(answer, "indexLastUpdateTimestamp", 1);
}

bool sim_question_answer(const sim_broker *broker, const rmq_header *request, sim_answer *answer) {
  int32_t queue = -1;
  *answer = (sim_answer){.code = RMQ_SUCCESS};
  rmq_header_i32(request, "queueId", &queue);
  switch (request->code) {
    case RMQ_GET_MAX_OFFSET:
    case RMQ_GET_MIN_OFFSET:
    case RMQ_SEARCH_OFFSET_BY_TIMESTAMP:
      put_number(answer, "offset", offset_of(broker->index, queue));
      return true;
    case RMQ_GET_EARLIEST_MSG_STORETIME:
      put_number(answer, "timestamp", offset_of(broker->index, queue));
      return true;
    case RMQ_RECALL_MESSAGE:
      answer_recall(request, answer);
      return true;
    case RMQ_QUERY_MESSAGE:
      answer_query(broker, request, answer);
      return true;
    case RMQ_UPDATE_AND_CREATE_TOPIC:
      return true;
    default:
      return false;
  }
}

/* ---- What comes back ---- */

/* With nothing wrong every question has its answer. */
static void look_at(sim_call *of, const rmq_failure *failure, bool right, const char *what) {
  sim_workload *workload = of->workload;
  sim_world *world = workload->world;
  sim_note(world, what, failure ? (int64_t)failure->kind : -1, of->broker);
  bool well = workload->cluster->trouble == SIM_NO_TROUBLE && !workload->stopping;
  if (workload->inside_question || workload->stopped || workload->forked) {
    sim_break(world, "%s ends when it must not", what);
  } else if (failure ? well && !of->doubtful : !right) {
    sim_break(world, "%s has %s: %.*s", what, failure ? "no answer" : "another one's answer",
              failure ? (int)rmq_buf_len(&failure->message) : 0,
              failure ? (const char *)rmq_buf_head(&failure->message) : "");
  }
  sim_call_end(of, what);
}

static void on_offset(void *arg, const rmq_failure *failure, int64_t value) {
  sim_call *of = arg;
  look_at(of, failure, value == offset_of(of->broker, of->queue), "a question for an offset");
}

static void on_recalled(void *arg, const rmq_failure *failure, rmq_slice msg_id) {
  sim_call *of = arg;
  char expected[SIM_TEXT];
  snprintf(expected, sizeof expected, "ID-%d", (int)of->queue);
  look_at(of, failure, rmq_slice_is(msg_id, expected), "a recall");
}

static void on_created(void *arg, const rmq_failure *failure) {
  look_at(arg, failure, true, "a new topic");
}

static void on_found(void *arg, const rmq_failure *failure, rmq_slice found, size_t n) {
  sim_call *of = arg;
  rmq_slice broker;
  rmq_stored_message message;
  bool right = true;
  size_t count = 0;
  while (rmq_found_next(&found, &broker, &message)) {
    int index = message.queue_id; /* see answer_query */
    right = right && index >= 0 && index < of->workload->cluster->n_brokers &&
            rmq_slice_is(broker, of->workload->cluster->brokers[index].name) &&
            rmq_slice_is(message.body, "found");
    count++;
  }
  right =
      right && count == n && (failure || n == (size_t)(of->workload->cluster->n_brokers + 1) / 2);
  look_at(of, failure, right || (failure && count == n), "a query");
}

/* ---- Asking ---- */

static int ask_offset(sim_workload *workload, sim_call *of, int64_t timeout_ms) {
  sim_cluster *cluster = workload->cluster;
  rmq_offset_question question = {
      .kind = (rmq_offset_kind)sim_random_between(&workload->question_random, 0, 3),
      .topic = rmq_slice_text(cluster->truth.topics[0].name),
      .queue = {rmq_slice_text(cluster->brokers[of->broker].name), of->queue},
      .time_ms = 1,
      .timeout_ms = timeout_ms};
  return rmq_producer_ask_offset(workload->producer, &question, on_offset, of);
}

static int recall(sim_workload *workload, sim_call *of, int64_t timeout_ms) {
  sim_cluster *cluster = workload->cluster;
  char id[SIM_TEXT];
  snprintf(id, sizeof id, "ID-%d", (int)of->queue);
  rmq_slice topic = rmq_slice_text(cluster->truth.topics[0].name);
  rmq_recall_handle handle = {.topic = topic,
                              .broker = rmq_slice_text(cluster->brokers[of->broker].name),
                              .deliver_at = 1,
                              .msg_id = rmq_slice_text(id)};
  rmq_buf text = {0};
  rmq_recall_handle_encode(&text, &handle);
  int status = rmq_producer_recall(workload->producer, topic, rmq_buf_slice(&text), timeout_ms,
                                   on_recalled, of);
  rmq_buf_free(&text);
  return status;
}

/* On all brokers of the cluster's default topic, where there is one. */
static int create(sim_workload *workload, sim_call *of, int64_t timeout_ms) {
  rmq_new_topic topic = {.topic = rmq_slice_text("New"),
                         .read_queues = 4,
                         .write_queues = 4,
                         .perm = RMQ_PERM_READ | RMQ_PERM_WRITE,
                         .timeout_ms = timeout_ms};
  int key = sim_topic_find(&workload->cluster->truth, rmq_slice_text("TBW102"));
  of->doubtful = !workload->cluster->truth.topics[key].exists;
  return rmq_producer_create_topic(workload->producer, &topic, on_created, of);
}

static int query(sim_workload *workload, sim_call *of, int64_t timeout_ms) {
  rmq_query what = {.topic = rmq_slice_text(workload->cluster->truth.topics[0].name),
                    .key = rmq_slice_text(searched_key),
                    .end_ms = INT64_MAX / 2,
                    .max = RMQ_QUERY_MAX,
                    .timeout_ms = timeout_ms};
  return rmq_producer_query_messages(workload->producer, &what, on_found, of);
}

static void ask(sim_workload *workload) {
  static int (*const kinds[])(sim_workload *, sim_call *, int64_t) = {ask_offset, create, query,
                                                                      recall};
  sim_random *random = &workload->question_random;
  sim_cluster *cluster = workload->cluster;
  int64_t least_ms = cluster->trouble <= SIM_FREEZES ? 1000 : 1;
  int64_t timeout_ms = sim_random_spread(random, least_ms, 8000);
  sim_call *of = sim_call_begin(workload, timeout_ms);
  of->timeout_us += 1000; /* what begins at the end gets one more */
  of->broker = (int)sim_random_between(random, 0, cluster->n_brokers - 1);
  of->queue = (int32_t)sim_random_between(random, 0, 7);
  int64_t last = cluster->traces ? 2 : 3; /* recalls are traced, and nobody counts those here */
  workload->inside_question = true;
  int status = kinds[sim_random_between(random, 0, last)](workload, of, timeout_ms);
  workload->inside_question = false;
  sim_note(workload->world, "question", of->broker, status);
  if (status == 0) return;
  sim_call_forget(of);
  if (status != RMQ_ESTATE || !(workload->stopping || workload->forked)) {
    sim_break(workload->world, "a question is refused with %s", rmq_error_name(status));
  }
}

static void next_question(void *arg, uint64_t left) {
  sim_workload *workload = arg;
  if (!workload->producer || sim_is_broken(workload->world)) return;
  if (sim_is_frozen(workload->world, next_question, arg, left)) return;
  ask(workload);
  if (left == 0) return;
  sim_plan(workload->world, sim_random_spread(&workload->question_random, 1, 3000000),
           next_question, arg, left - 1);
}

void sim_questions_start(sim_workload *workload, uint64_t seed) {
  sim_random *random = &workload->question_random;
  *random = (sim_random){seed ^ UINT64_C(0x7175657374696F6E)};
  if (!sim_random_chance(random, 166666)) return;
  workload->cluster->is_asked = true;
  sim_plan(workload->world, sim_random_spread(random, 1, 1000000), next_question, workload,
           (uint64_t)sim_random_spread(random, 1, 300));
}

/* A broker: stores messages, answers in its moods. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/halves.h"
#include "sim/questions.h"
#include "sim/replies.h"
#include "sim/trace.h"
#include "wire/batch.h"
#include "wire/codes.h"
#include "wire/properties.h"
#include "wire/stored.h"

static sim_random *chance_of(sim_broker *broker) { return &broker->cluster->world->random; }

sim_connection *sim_broker_producer(const sim_broker *broker) {
  const rmq_link *all = &broker->host.connections;
  for (const rmq_link *at = all->next; at != all; at = at->next) {
    sim_connection *connection = rmq_link_owner(at, sim_connection, link);
    if (connection->registered) return connection;
  }
  return NULL;
}

/* ---- Answers ---- */

static void begin_answer(const sim_broker *broker, rmq_frame_writer *writer, rmq_buf *out,
                         int32_t opaque, int32_t code, const char *remark) {
  rmq_command command = {
      .code = code, .opaque = opaque, .flag = RMQ_FLAG_RESPONSE, .version = RMQ_VERSION};
  command.remark = rmq_slice_text(remark);
  rmq_frame_begin(writer, out, broker->json ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ,
                  &command);
}

static void write_plain(const sim_broker *broker, rmq_buf *out, int32_t opaque, int32_t code,
                        const char *remark) {
  rmq_frame_writer writer;
  begin_answer(broker, &writer, out, opaque, code, remark);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
}

/* The answer to a send that was stored, or to a batch of which `copy` is the first: its ids say how
 * many. */
static void write_stored(const sim_broker *broker, rmq_buf *out, int32_t opaque, int32_t code,
                         rmq_slice key, sim_copy copy, rmq_slice ids) {
  rmq_send_reply reply = {.queue_id = copy.queue, .queue_offset = copy.offset, .trace_on = true};
  reply.msg_id = ids;
  reply.transaction_id = key;
  reply.region_id = rmq_slice_text("DefaultRegion");
  rmq_frame_writer writer;
  begin_answer(broker, &writer, out, opaque, code, code == RMQ_SUCCESS ? "" : "stored, but");
  rmq_send_reply_write(&writer, &reply);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
}

/* An answer to nobody: its opaque is far from every one that can be pending, but has the same low
 * bits. Whoever took it would think that the message is stored where nothing is. */
static void write_to_nobody(const sim_broker *broker, rmq_buf *out, int32_t opaque) {
  sim_copy nowhere = {broker->index, 0, INT64_C(1) << 50, false};
  char id[RMQ_UNIQUE_ID_MAX];
  size_t id_len = sim_offset_id(nowhere, id);
  write_stored(broker, out, opaque ^ 0x40000000, RMQ_SUCCESS,
               rmq_slice_text("00000000000000000000000000000000"), nowhere,
               rmq_slice_make(id, id_len));
}

/* What comes with a question: a half message, whole or not, and where it is; or a reply to nobody. */
static void write_content(rmq_frame_writer *writer, bool damaged) {
  static const char properties[] = "CORRELATION_ID\001nobody\002PGROUP\001sim_group\002";
  rmq_stored_message message = {.topic = rmq_slice_text("T"),
                                .body = rmq_slice_text("half"),
                                .born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 4},
                                .properties = rmq_slice_text(properties)};
  rmq_buf stored = {0};
  rmq_stored_put(&stored, &message);
  rmq_slice body = rmq_buf_slice(&stored);
  if (damaged) body.len /= 2;
  rmq_frame_text(writer, rmq_slice_text("consumerGroup"), rmq_slice_text("nobody"));
  rmq_frame_text(writer, rmq_slice_text("properties"), rmq_slice_text(properties));
  rmq_frame_int(writer, rmq_slice_text("commitLogOffset"), 1);
  rmq_frame_int(writer, rmq_slice_text("tranStateTableOffset"), 1);
  rmq_frame_end(writer, body);
  rmq_buf_free(&stored);
}

/* A request that the broker makes on its own account. */
static void write_question(sim_broker *broker, rmq_buf *out) {
  static const int32_t codes[] = {RMQ_NOTIFY_CONSUMER_IDS_CHANGED, RMQ_CHECK_TRANSACTION_STATE,
                                  RMQ_GET_CONSUMER_RUNNING_INFO, RMQ_PUSH_REPLY_MESSAGE_TO_CLIENT,
                                  9999};
  rmq_frame_writer writer;
  rmq_command command = {.version = RMQ_VERSION};
  command.code = codes[sim_random_between(chance_of(broker), 0, 4)];
  command.opaque = (int32_t)sim_random_between(chance_of(broker), 0, 100000);
  command.flag = sim_random_chance(chance_of(broker), 500000) ? RMQ_FLAG_ONEWAY : 0;
  rmq_frame_begin(&writer, out, broker->json ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ,
                  &command);
  write_content(&writer, command.opaque % 4 == 0);
}

/* No frame, or a frame whose header is none. */
static void write_garbage(sim_broker *broker, rmq_buf *out) {
  if (sim_random_chance(chance_of(broker), 500000)) {
    rmq_buf_text(out, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  } else {
    rmq_buf_u32(out, 12);
    rmq_buf_u32(out, 8);
    rmq_buf_text(out, "{\"code\":");
  }
}

/* Sends an answer, with what the moods put before, into and behind it. */
static void send_answer(sim_broker *broker, sim_connection *connection, int32_t opaque,
                        rmq_buf *answer) {
  sim_random *random = chance_of(broker);
  const sim_broker_moods *moods = &broker->moods;
  int64_t after_us = sim_random_between(random, 0, broker->service_us);
  rmq_buf out = {0};
  bool closes = sim_random_chance(random, moods->closes);
  if (sim_random_chance(random, moods->asks)) write_question(broker, &out);
  if (sim_random_chance(random, moods->wrong_opaque)) write_to_nobody(broker, &out, opaque);
  if (sim_random_chance(random, moods->garbage)) {
    write_garbage(broker, &out);
    closes = true;
  } else {
    rmq_buf_bytes(&out, rmq_buf_head(answer), rmq_buf_len(answer));
    if (sim_random_chance(random, moods->answers_twice)) {
      rmq_buf_bytes(&out, rmq_buf_head(answer), rmq_buf_len(answer));
    }
    size_t len = rmq_buf_len(&out);
    if (closes) out.end = out.start + (size_t)sim_random_between(random, 0, (int64_t)len);
  }
  rmq_buf_free(answer);
  sim_answer_later(broker->cluster->world, connection, &out, after_us, closes);
}

static void answer_plain(sim_broker *broker, sim_connection *connection, const rmq_header *header,
                         int32_t code, const char *remark) {
  if (header->flag & RMQ_FLAG_ONEWAY) return;
  rmq_buf out = {0};
  write_plain(broker, &out, header->opaque, code, remark);
  send_answer(broker, connection, header->opaque, &out);
}

/* ---- Sends ---- */

/* Makes a topic on this broker when the default topic allows it, as real brokers do. */
static bool create_topic(sim_broker *broker, int topic, const rmq_send_header *header) {
  sim_cluster *cluster = broker->cluster;
  int default_topic = sim_topic_find(&cluster->truth, header->default_topic);
  if (default_topic < 0 || !cluster->truth.topics[default_topic].exists) return false;
  cluster->truth.topics[topic].exists = true;
  cluster->truth.topics[topic].parts[broker->index].queues = header->default_topic_queue_nums;
  sim_note(cluster->world, "topic created", topic, broker->index);
  sim_cluster_changed(cluster);
  return true;
}

/* Java's retryResponseCodes. The last one has a mood of its own. */
static const int32_t retry_codes[] = {
    RMQ_SYSTEM_ERROR,    RMQ_SYSTEM_BUSY, RMQ_SERVICE_NOT_AVAILABLE, RMQ_NO_PERMISSION,
    RMQ_TOPIC_NOT_EXIST, RMQ_NO_BUYER_ID, RMQ_NOT_IN_CURRENT_UNIT,   RMQ_GO_AWAY};
enum { N_RETRY_CODES = sizeof retry_codes / sizeof *retry_codes };

bool sim_is_retry_code(int32_t code) {
  for (int i = 0; i < N_RETRY_CODES; i++) {
    if (retry_codes[i] == code) return true;
  }
  return false;
}

/* The code that says why this broker does not take the message, or RMQ_SUCCESS. */
static int32_t refusal(sim_broker *broker, int topic, const rmq_send_header *header) {
  static const int32_t final[] = {RMQ_REQUEST_CODE_NOT_SUPPORTED, RMQ_MESSAGE_ILLEGAL, 29, 215};
  sim_random *random = chance_of(broker);
  const sim_broker_moods *moods = &broker->moods;
  if (sim_random_chance(random, moods->refuses_retry))
    return retry_codes[sim_random_between(random, 0, N_RETRY_CODES - 2)];
  if (sim_random_chance(random, moods->refuses_final))
    return final[sim_random_between(random, 0, 3)];
  if (sim_random_chance(random, moods->goes_away)) return RMQ_GO_AWAY;
  if (topic < 0) return RMQ_TOPIC_NOT_EXIST;
  const sim_part *part = &broker->cluster->truth.topics[topic].parts[broker->index];
  if (part->queues == 0 && !create_topic(broker, topic, header)) return RMQ_TOPIC_NOT_EXIST;
  if (!(part->perm & RMQ_PERM_WRITE)) return RMQ_NO_PERMISSION;
  if (header->queue_id < 0 || header->queue_id >= part->queues) return 29;
  return RMQ_SUCCESS;
}

static int32_t stored_code(sim_broker *broker) {
  static const int32_t codes[] = {RMQ_FLUSH_DISK_TIMEOUT, RMQ_SLAVE_NOT_AVAILABLE,
                                  RMQ_FLUSH_SLAVE_TIMEOUT};
  if (!sim_random_chance(chance_of(broker), broker->moods.not_flushed)) return RMQ_SUCCESS;
  return codes[sim_random_between(chance_of(broker), 0, 2)];
}

/* Sends to one given queue are stored in the order in which they were made. What a hook sends goes
 * before the message that it is called for; a request waits until all brokers are greeted. */
static void check_order(sim_broker *broker, int topic, int32_t queue, const sim_send *send) {
  if (send->generation > 0 || send->asks) return;
  if (send->given_broker < 0 || broker->cluster->trouble != SIM_NO_TROUBLE) return;
  uint32_t *last = &broker->last_given[topic][queue];
  if (*last > send->number) {
    sim_break(broker->cluster->world, "send %u is stored after send %u to the same given queue",
              send->number, *last);
  }
  *last = send->number;
}

/* What came in one request: a message, or those of a batch. */
typedef struct request {
  const rmq_header *header;
  rmq_send_header fields;
  rmq_slice body;
  sim_send **sends;
  size_t n, cap;
} request;

static void add_send(request *of, sim_send *send) {
  if (of->n == of->cap) {
    of->cap = of->cap ? 2 * of->cap : 16;
    of->sends = rmq_realloc(of->sends, of->cap * sizeof *of->sends);
  }
  of->sends[of->n++] = send;
}

static bool is_batch(const request *of) { return of->header->code == RMQ_SEND_BATCH_MESSAGE; }

static void refuse(sim_broker *broker, sim_connection *connection, const request *of, int32_t code,
                   bool silent) {
  for (size_t i = 0; i < of->n; i++) {
    sim_note(broker->cluster->world, "refused", of->sends[i]->number, code);
    if (code == RMQ_GO_AWAY) of->sends[i]->go_aways++;
  }
  if (code == RMQ_GO_AWAY) connection->sent_away = true;
  if (!silent) answer_plain(broker, connection, of->header, code, "refused");
}

/* Stores all that came; returns the place of the first, and appends the ids. */
static sim_copy store(sim_broker *broker, int topic, const request *of, rmq_buf *ids) {
  sim_copy first = {broker->index, of->fields.queue_id, broker->offsets[topic], is_batch(of)};
  for (size_t i = 0; i < of->n; i++) {
    sim_copy copy = first;
    char id[RMQ_UNIQUE_ID_MAX];
    copy.offset = broker->offsets[topic]++;
    sim_ledger_stored(broker->cluster->ledger, of->sends[i], copy);
    check_order(broker, topic, copy.queue, of->sends[i]);
    if (of->sends[i]->asks) sim_request_stored(broker, of->sends[i]);
    if (of->sends[i]->half) sim_half_stored(broker, of->sends[i], &of->fields, of->body, copy);
    size_t id_len = sim_offset_id(copy, id);
    if (i > 0) rmq_buf_u8(ids, ',');
    rmq_buf_bytes(ids, id, id_len);
  }
  return first;
}

/* A yes that does not say where: without any field, or with an id too many. */
static void mutilate(sim_broker *broker, rmq_buf *out, const request *of, sim_copy first,
                     rmq_buf *ids) {
  int32_t opaque = of->header->opaque;
  if (!is_batch(of) || of->n < 2 || sim_random_chance(chance_of(broker), 500000)) {
    write_plain(broker, out, opaque, stored_code(broker), "");
    return;
  }
  rmq_buf_text(ids, ",00000000000000000000000000000000");
  write_stored(broker, out, opaque, stored_code(broker), rmq_slice_make(NULL, 0), first,
               rmq_buf_slice(ids));
}

static void take(sim_broker *broker, sim_connection *connection, const request *of) {
  int topic = sim_topic_find(&broker->cluster->truth, of->fields.topic);
  bool oneway = of->header->flag & RMQ_FLAG_ONEWAY;
  bool silent = sim_random_chance(chance_of(broker), broker->moods.silent);
  if (silent && sim_random_chance(chance_of(broker), 500000)) return;
  int32_t code = refusal(broker, topic, &of->fields);
  if (code != RMQ_SUCCESS) {
    refuse(broker, connection, of, code, silent);
    return;
  }
  rmq_buf out = {0}, ids = {0};
  sim_copy first = store(broker, topic, of, &ids);
  if (!silent && !oneway) {
    if (sim_random_chance(chance_of(broker), broker->moods.mutilates)) {
      mutilate(broker, &out, of, first, &ids);
    } else {
      rmq_slice key = is_batch(of) ? rmq_slice_make(NULL, 0) : rmq_slice_text(of->sends[0]->key);
      write_stored(broker, &out, of->header->opaque, stored_code(broker), key, first,
                   rmq_buf_slice(&ids));
    }
    send_answer(broker, connection, of->header->opaque, &out);
  }
  rmq_buf_free(&ids);
}

/* Looks at one message of a request. */
static bool look_at(sim_broker *broker, request *of, const rmq_send_header *fields,
                    rmq_slice body) {
  sim_cluster *cluster = broker->cluster;
  sim_send *send = sim_ledger_arrived(cluster->ledger, broker->index, fields, body);
  if (!send) return false;
  if (sim_topic_find(&cluster->truth, fields->topic) != send->topic ||
      !rmq_slice_is(fields->producer_group, "sim_group")) {
    sim_break(cluster->world, "send %u came with topic %.*s and group %.*s", send->number,
              (int)fields->topic.len, fields->topic.ptr, (int)fields->producer_group.len,
              fields->producer_group.ptr);
    return false;
  }
  if (!sim_half_is_right(send, fields) || !sim_request_is_right(send, fields)) {
    sim_break(cluster->world,
              "send %u does not say that it is a half message or a request, or is none",
              send->number);
  }
  bool oneway = of->header->flag & RMQ_FLAG_ONEWAY;
  if (oneway != (send->options.mode == RMQ_MODE_ONEWAY)) {
    sim_break(cluster->world, "send %u has the wrong oneway flag", send->number);
  }
  add_send(of, send);
  return true;
}

/* What a batch says of itself must be true of its messages. */
static bool look_at_batch(sim_broker *broker, request *of, rmq_slice body) {
  rmq_send_header own = of->fields;
  rmq_batch_member member;
  int more = 0;
  while ((more = rmq_batch_next(&body, &member)) == 1) {
    own.properties = member.properties;
    own.flag = member.flag;
    if (!look_at(broker, of, &own, member.body)) return false;
    rmq_slice wait = rmq_properties_find(of->fields.properties, "WAIT");
    if (!rmq_slice_is(wait, of->sends[of->n - 1]->wait ? "true" : "false")) {
      sim_break(broker->cluster->world, "a batch has WAIT %.*s, and send %u another", (int)wait.len,
                wait.ptr, of->sends[of->n - 1]->number);
    }
  }
  if (more < 0 || of->n == 0) sim_break(broker->cluster->world, "a batch cannot be read");
  return more == 0 && of->n > 0;
}

/* A message of the trace topic meets the same moods as others. */
static bool on_trace(sim_broker *broker, sim_connection *connection, const rmq_header *header,
                     const rmq_send_header *fields, rmq_slice body) {
  sim_cluster *cluster = broker->cluster;
  if (!cluster->traces || (header->flag & RMQ_FLAG_ONEWAY)) {
    sim_break(cluster->world, "a trace message came %s",
              cluster->traces ? "as a oneway one" : "though trace is off");
    return false;
  }
  bool silent = sim_random_chance(chance_of(broker), broker->moods.silent);
  int32_t code = refusal(broker, SIM_TRACE_TOPIC, fields);
  sim_note(cluster->world, "trace arrives", broker->index, code);
  if (code == RMQ_GO_AWAY) connection->sent_away = true;
  if (code != RMQ_SUCCESS) {
    if (!silent) answer_plain(broker, connection, header, code, "refused");
    return true;
  }
  if (!sim_trace_stored(cluster, fields, body)) return false;
  if (silent) return true;
  rmq_slice key = rmq_properties_find(fields->properties, "UNIQ_KEY");
  sim_copy copy = {broker->index, fields->queue_id, broker->offsets[SIM_TRACE_TOPIC]++, false};
  char id[RMQ_UNIQUE_ID_MAX];
  size_t id_len = sim_offset_id(copy, id);
  rmq_buf out = {0};
  write_stored(broker, &out, header->opaque, stored_code(broker), key, copy,
               rmq_slice_make(id, id_len));
  send_answer(broker, connection, header->opaque, &out);
  return true;
}

static bool on_send(sim_broker *broker, sim_connection *connection, const rmq_header *header,
                    rmq_slice body) {
  request of = {.header = header, .body = body};
  const char *missing = "";
  if (rmq_send_header_decode(header, &of.fields, &missing) != 0) {
    sim_break(broker->cluster->world, "a send request without a usable %s", missing);
    return false;
  }
  if (rmq_slice_is(of.fields.topic, broker->cluster->truth.topics[SIM_TRACE_TOPIC].name)) {
    return on_trace(broker, connection, header, &of.fields, body);
  }
  if (of.fields.batch != is_batch(&of)) {
    sim_break(broker->cluster->world, "request code %d, and batch %d", (int)header->code,
              of.fields.batch);
  }
  bool right =
      is_batch(&of) ? look_at_batch(broker, &of, body) : look_at(broker, &of, &of.fields, body);
  if (right) take(broker, connection, &of);
  free(of.sends);
  return right;
}

/* ---- Questions of the detector ---- */

static bool on_probe(sim_broker *broker, sim_connection *connection, const rmq_header *header) {
  sim_cluster *cluster = broker->cluster;
  rmq_slice topic = rmq_header_field(header, "topic");
  int32_t queue = -1;
  bool right = topic.len > 0 && rmq_header_i32(header, "queueId", &queue) == 1 && queue == 0;
  if (!right || !cluster->detects) {
    sim_break(cluster->world, "broker %s was asked for an offset %s", broker->name,
              right ? "without a detector" : "of no queue");
    return false;
  }
  bool refuses = sim_random_chance(chance_of(broker), broker->moods.refuses_final);
  answer_plain(broker, connection, header, refuses ? RMQ_SYSTEM_ERROR : RMQ_SUCCESS, "");
  return true;
}

/* ---- Questions of users ---- */

static bool on_question(sim_broker *broker, sim_connection *connection, const rmq_header *header,
                        const sim_answer *answer) {
  sim_random *random = chance_of(broker);
  rmq_buf out = {0};
  rmq_frame_writer writer;
  if (sim_random_chance(random, broker->moods.silent)) return true;
  if (sim_random_chance(random, broker->moods.refuses_final)) {
    answer_plain(broker, connection, header, RMQ_SYSTEM_ERROR, "refused");
    return true;
  }
  begin_answer(broker, &writer, &out, header->opaque, answer->code, "");
  if (answer->name && !sim_random_chance(random, broker->moods.mutilates)) {
    rmq_frame_text(&writer, rmq_slice_text(answer->name), rmq_slice_text(answer->value));
  }
  rmq_frame_end(&writer, rmq_buf_slice(&answer->body));
  send_answer(broker, connection, header->opaque, &out);
  return true;
}

/* ---- All requests ---- */

/* The end of a transaction is told where a question about it came from, and a question may be asked again,
 * even when no route names the broker any more: then no heartbeat goes before them. */
static bool must_follow_heartbeat(const rmq_header *header) {
  switch (header->code) {
    case RMQ_END_TRANSACTION:
    case RMQ_GET_MAX_OFFSET:
    case RMQ_GET_MIN_OFFSET:
    case RMQ_SEARCH_OFFSET_BY_TIMESTAMP:
    case RMQ_GET_EARLIEST_MSG_STORETIME:
    case RMQ_RECALL_MESSAGE:
    case RMQ_QUERY_MESSAGE:
    case RMQ_UPDATE_AND_CREATE_TOPIC:
      return false;
    default:
      return true;
  }
}

static bool on_frame(void *owner, sim_connection *connection, const rmq_header *header,
                     rmq_slice body) {
  sim_broker *broker = owner;
  if (header->flag & RMQ_FLAG_RESPONSE) return true; /* to a question of ours */
  if (connection->frames == 1 && header->code != RMQ_HEART_BEAT && !broker->moved &&
      must_follow_heartbeat(header)) {
    sim_break(broker->cluster->world, "the first request on socket %u is %d and no heartbeat",
              connection->id, (int)header->code);
    return false;
  }
  if (broker->hangs) return true;
  sim_answer answer;
  if (broker->cluster->is_asked && sim_question_answer(broker, header, &answer)) {
    bool goes_on = on_question(broker, connection, header, &answer);
    rmq_buf_free(&answer.body);
    return goes_on;
  }
  switch (header->code) {
    case RMQ_SEND_MESSAGE:
    case RMQ_SEND_MESSAGE_V2:
    case RMQ_SEND_BATCH_MESSAGE:
      return on_send(broker, connection, header, body);
    case RMQ_GET_MAX_OFFSET:
      return on_probe(broker, connection, header);
    case RMQ_HEART_BEAT:
      connection->registered = true;
      answer_plain(broker, connection, header, RMQ_SUCCESS, "");
      return true;
    case RMQ_UNREGISTER_CLIENT:
      connection->registered = false;
      answer_plain(broker, connection, header, RMQ_SUCCESS, "");
      return true;
    case RMQ_END_TRANSACTION:
      return sim_half_ends(broker, header);
    default:
      sim_break(broker->cluster->world, "a broker was sent request code %d", (int)header->code);
      return false;
  }
}

void sim_broker_received(void *owner, sim_connection *connection) {
  sim_broker *broker = owner;
  sim_take_frames(broker->cluster, connection, on_frame, broker);
}

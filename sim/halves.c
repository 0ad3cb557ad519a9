#include "sim/halves.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/codes.h"
#include "wire/properties.h"
#include "wire/stored.h"
#include "wire/transaction.h"

enum { CHECKS_MAX = 4, TRIES_MAX = 12 };

/* What brokers call the topic in which they keep half messages. */
static const char half_topic[] = "RMQ_SYS_TRANS_HALF_TOPIC";

/* One copy of a half message. With each question it moves to another place; who is told about an older
 * one understands that, too. */
typedef struct sim_half {
  struct sim_half *next; /* of the same message */
  sim_broker *broker;
  sim_send *send;
  int topic;
  int32_t queue_id, flag, sys_flag;
  rmq_buf properties, body;
  int64_t places[1 + CHECKS_MAX]; /* queue offsets */
  int n_places;
  int64_t between_us; /* questions */
  int tries;          /* to ask, whether or not somebody was there */
  int answers;        /* that came to its questions */
  int32_t verdict;    /* RMQ_END_..., the last one but UNKNOWN */
} sim_half;

/* Where the commit log has what is at this place of the queue. */
static int64_t log_offset_of(int64_t place) { return place * 256; }

/* ---- Asking ---- */

static void write_check(const sim_half *half, rmq_buf *out, bool named) {
  const sim_broker *broker = half->broker;
  int64_t place = half->places[half->n_places - 1];
  rmq_stored_message message = {.queue_id = half->queue_id,
                                .flag = half->flag,
                                .queue_offset = place,
                                .log_offset = log_offset_of(place),
                                .sys_flag = half->sys_flag,
                                .born_host = {.ip_len = 4},
                                .store_host = {.ip_len = 4},
                                .body = rmq_buf_slice(&half->body),
                                .properties = rmq_buf_slice(&half->properties)};
  message.topic = rmq_slice_text(broker->cluster->truth.topics[half->topic].name);
  rmq_buf stored = {0};
  rmq_stored_put(&stored, &message);
  rmq_command command = {.code = RMQ_CHECK_TRANSACTION_STATE,
                         .opaque = half->tries,
                         .flag = RMQ_FLAG_ONEWAY,
                         .version = RMQ_VERSION};
  rmq_slice key = rmq_slice_text(half->send->key);
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, broker->json ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ,
                  &command);
  rmq_frame_text(&writer, rmq_slice_text("topic"), rmq_slice_text(half_topic));
  rmq_frame_int(&writer, rmq_slice_text("tranStateTableOffset"), place);
  rmq_frame_int(&writer, rmq_slice_text("commitLogOffset"), log_offset_of(place));
  rmq_frame_text(&writer, rmq_slice_text("msgId"), key);
  rmq_frame_text(&writer, rmq_slice_text("transactionId"), key);
  if (named) rmq_frame_text(&writer, rmq_slice_text("bname"), rmq_slice_text(broker->name));
  rmq_frame_end(&writer, rmq_buf_slice(&stored));
  rmq_buf_free(&stored);
}

static void ask(void *arg, uint64_t data) {
  (void)data;
  sim_half *half = arg;
  sim_broker *broker = half->broker;
  sim_world *world = broker->cluster->world;
  if (half->verdict != RMQ_END_UNKNOWN || half->n_places > CHECKS_MAX) return;
  if (++half->tries > TRIES_MAX) return;
  sim_connection *connection = broker->hangs ? NULL : sim_broker_producer(broker);
  if (connection) {
    half->places[half->n_places++] = broker->offsets[half->topic]++;
    sim_note(world, "broker checks", half->send->number, broker->index);
    rmq_buf out = {0};
    write_check(half, &out, sim_random_chance(&world->random, 700000));
    sim_answer_later(world, connection, &out, 0, false);
  }
  sim_plan(world, half->between_us, ask, half, 0);
}

/* ---- Keeping ---- */

bool sim_half_is_right(const sim_send *send, const rmq_send_header *header) {
  bool prepared = header->sys_flag & RMQ_SYS_PREPARED;
  rmq_slice mark = rmq_properties_find(header->properties, "TRAN_MSG");
  if (!send->half) return !prepared && mark.ptr == NULL;
  return prepared && rmq_slice_is(mark, "true") &&
         rmq_slice_is(rmq_properties_find(header->properties, "PGROUP"), "sim_group");
}

void sim_half_stored(sim_broker *broker, sim_send *send, const rmq_send_header *header,
                     rmq_slice body, sim_copy copy) {
  sim_world *world = broker->cluster->world;
  sim_half *half = rmq_alloc_zero(1, sizeof *half);
  half->next = send->halves;
  send->halves = half;
  half->broker = broker;
  half->send = send;
  half->topic = send->topic;
  half->queue_id = copy.queue;
  half->flag = header->flag;
  half->sys_flag = header->sys_flag;
  rmq_buf_bytes(&half->properties, header->properties.ptr, header->properties.len);
  rmq_buf_bytes(&half->body, body.ptr, body.len);
  half->places[half->n_places++] = copy.offset;
  half->between_us = sim_random_spread(&world->random, 1000, 10000000);
  sim_plan(world, half->between_us, ask, half, 0);
}

void sim_halves_free(sim_send *send) {
  while (send->halves) {
    sim_half *half = send->halves;
    send->halves = half->next;
    rmq_buf_free(&half->properties);
    rmq_buf_free(&half->body);
    free(half);
  }
}

/* ---- Being told ---- */

/* What END_TRANSACTION says. */
typedef struct ending {
  int64_t place, log_offset;
  int32_t verdict;
  bool checked; /* it answers a question */
  rmq_slice topic;
  sim_send *send;
} ending;

static bool read_ending(const sim_broker *broker, const rmq_header *header, ending *out) {
  const rmq_map *by_key = broker->cluster->ledger->by_key;
  out->topic = rmq_header_field(header, "topic");
  out->checked = rmq_slice_is(rmq_header_field(header, "fromTransactionCheck"), "true");
  out->send = rmq_map_get(by_key, rmq_header_field(header, "msgId"));
  rmq_slice name = rmq_header_field(header, "bname");
  return (header->flag & RMQ_FLAG_ONEWAY) &&
         rmq_header_i64(header, "tranStateTableOffset", &out->place) == 1 &&
         rmq_header_i64(header, "commitLogOffset", &out->log_offset) == 1 &&
         rmq_header_i32(header, "commitOrRollback", &out->verdict) == 1 &&
         rmq_slice_is(rmq_header_field(header, "producerGroup"), "sim_group") &&
         (name.len == 0 || rmq_slice_is(name, broker->name));
}

static sim_half *find_half(const sim_broker *broker, const ending *what) {
  if (what->log_offset != log_offset_of(what->place) || !what->send) return NULL;
  for (sim_half *half = what->send->halves; half; half = half->next) {
    if (half->broker != broker) continue;
    for (int i = 0; i < half->n_places; i++) {
      if (half->places[i] == what->place) return half;
    }
  }
  return NULL;
}

static int32_t verdict_of(rmq_transaction_state state) {
  return state == RMQ_TRANSACTION_COMMIT     ? RMQ_END_COMMIT
         : state == RMQ_TRANSACTION_ROLLBACK ? RMQ_END_ROLLBACK
                                             : RMQ_END_UNKNOWN;
}

/* What the user says when it is asked follows from how its own part went. */
static int32_t final_verdict(const sim_send *send) {
  return send->transaction.succeeds ? RMQ_END_COMMIT : RMQ_END_ROLLBACK;
}

static void take_ending(sim_half *half, const ending *what) {
  sim_send *send = half->send;
  sim_world *world = half->broker->cluster->world;
  sim_transaction *transaction = &send->transaction;
  bool said = what->checked
                  ? what->verdict == RMQ_END_UNKNOWN || what->verdict == final_verdict(send)
                  : what->verdict == verdict_of(transaction->said);
  if (what->checked) half->answers++;
  if (!what->checked) transaction->ends++;
  if (!said || (!what->checked && transaction->phase < SIM_TRANSACTION_ENDING)) {
    sim_break(world, "%s is told %d about send %" PRIu32 ", which nobody has said",
              half->broker->name, (int)what->verdict, send->number);
  } else if (half->answers > half->n_places - 1 || transaction->ends > 1) {
    sim_break(world, "%s is told about send %" PRIu32 " more often than it must be",
              half->broker->name, send->number);
  }
  if (what->verdict != RMQ_END_UNKNOWN) half->verdict = what->verdict;
}

bool sim_half_ends(sim_broker *broker, const rmq_header *header) {
  sim_world *world = broker->cluster->world;
  ending what = {.send = NULL};
  bool right = read_ending(broker, header, &what);
  /* The answer to a question that was none: see write_question. */
  if (right && what.checked && !what.send) return true;
  sim_half *half = right ? find_half(broker, &what) : NULL;
  if (half && !rmq_slice_is(what.topic, broker->cluster->truth.topics[half->topic].name)) {
    right = what.checked && rmq_slice_is(what.topic, half_topic);
  }
  if (!right || !half) {
    sim_break(world, "%s is told about a half message at %" PRId64 " that it does not have",
              broker->name, what.place);
    return false;
  }
  sim_note(world, "told", half->send->number, what.verdict);
  take_ending(half, &what);
  return !sim_is_broken(world);
}

void sim_check_halves(const sim_cluster *cluster, const sim_send *send) {
  const sim_transaction *transaction = &send->transaction;
  bool told = transaction->phase == SIM_TRANSACTION_ENDED && transaction->told;
  int n = 0;
  for (const sim_half *half = send->halves; half; half = half->next) {
    n++;
    if (told && half->verdict == verdict_of(transaction->said)) return;
    if (told && transaction->said == RMQ_TRANSACTION_UNKNOWN) return;
  }
  if (!told || n == 0) return;
  sim_break(cluster->world, "no broker knows what became of send %" PRIu32, send->number);
}

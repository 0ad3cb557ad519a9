#include "sim/ledger.h"
#include "sim/halves.h"
#include "sim/hooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/number.h"
#include "wire/properties.h"

sim_ledger *sim_ledger_new(sim_world *world) {
  sim_ledger *ledger = rmq_alloc_zero(1, sizeof *ledger);
  ledger->world = world;
  ledger->by_key = rmq_map_new(world->seed);
  return ledger;
}

void sim_ledger_free(sim_ledger *ledger) {
  for (size_t i = 0; i < ledger->n_sends; i++) {
    sim_halves_free(ledger->sends[i]);
    free(ledger->sends[i]->body);
    free(ledger->sends[i]);
  }
  free(ledger->sends);
  rmq_map_free(ledger->by_key);
  free(ledger);
}

sim_send *sim_ledger_add(sim_ledger *ledger) {
  if (ledger->n_sends == ledger->cap) {
    ledger->cap = ledger->cap ? 2 * ledger->cap : 256;
    ledger->sends = rmq_realloc(ledger->sends, ledger->cap * sizeof(*ledger->sends));
  }
  sim_send *send = rmq_alloc_zero(1, sizeof *send);
  send->number = (uint32_t)ledger->n_sends;
  send->given_broker = -1;
  send->same_broker = true;
  ledger->sends[ledger->n_sends++] = send;
  return send;
}

/* ---- What a message carries ---- */

void sim_body_fill(uint32_t number, char *out, size_t len) {
  sim_random bytes = {UINT64_C(0x5851F42D4C957F2D) * (number + 1)};
  for (size_t at = 0; at < len; at += 8) {
    uint64_t eight = sim_random_next(&bytes);
    memcpy(out + at, &eight, len - at < 8 ? len - at : 8);
  }
}

bool sim_body_is(const sim_send *send, rmq_slice body, uint8_t flip) {
  if (body.len != send->body_len) return false;
  sim_random bytes = {UINT64_C(0x5851F42D4C957F2D) * (send->number + 1)};
  for (size_t at = 0; at < body.len; at += 8) {
    uint64_t eight = sim_random_next(&bytes) ^ flip * UINT64_C(0x0101010101010101);
    if (memcmp(body.ptr + at, &eight, body.len - at < 8 ? body.len - at : 8) != 0) return false;
  }
  return true;
}

void sim_tag_text(uint32_t number, char out[SIM_TEXT]) {
  snprintf(out, SIM_TEXT, "tag-%" PRIu32, number);
}

void sim_key_text(uint32_t number, int i, char out[SIM_TEXT]) {
  snprintf(out, SIM_TEXT, "key-%" PRIu32 "-%d", number, i);
}

void sim_value_text(uint32_t number, char out[SIM_TEXT]) {
  snprintf(out, SIM_TEXT, "value %" PRIu32, number);
}

size_t sim_offset_id(sim_copy copy, char out[RMQ_UNIQUE_ID_MAX]) {
  rmq_offset_id where = {
      .ip = {10, 0, 0, 11}, .ip_len = 4, .port = 10911 + copy.broker, .offset = copy.offset * 256};
  return (size_t)rmq_offset_id_encode(&where, out);
}

/* ---- Arrivals ---- */

sim_send *sim_ledger_find(const sim_ledger *ledger, rmq_slice properties) {
  int32_t number = -1;
  int status = rmq_number_i32(rmq_properties_find(properties, "n"), &number);
  if (status != 0 || number < 0 || (size_t)number >= ledger->n_sends) return NULL;
  return ledger->sends[number];
}

static sim_send *find_send(sim_ledger *ledger, rmq_slice properties) {
  sim_send *send = sim_ledger_find(ledger, properties);
  if (!send) sim_break(ledger->world, "a broker was sent a message without its number");
  return send;
}

static bool has(rmq_slice properties, const char *name, const char *value) {
  return rmq_slice_is(rmq_properties_find(properties, name), value);
}

static bool are_keys_right(const sim_send *send, rmq_slice properties) {
  char all[SIM_KEYS_MAX * SIM_TEXT] = "";
  for (int i = 0; i < send->n_keys; i++) {
    char one[SIM_TEXT];
    sim_key_text(send->number, i, one);
    size_t len = strlen(all);
    snprintf(all + len, sizeof all - len, "%s%s", i ? " " : "", one);
  }
  if (send->n_keys == 0) return rmq_properties_find(properties, "KEYS").ptr == NULL;
  return has(properties, "KEYS", all);
}

static bool are_properties_right(const sim_send *send, rmq_slice properties) {
  char text[SIM_TEXT];
  sim_value_text(send->number, text);
  if (!has(properties, "p", text) || !are_keys_right(send, properties)) return false;
  if (!has(properties, "WAIT", send->wait ? "true" : "false")) return false;
  sim_tag_text(send->number, text);
  if (send->tagged) return has(properties, "TAGS", text);
  return rmq_properties_find(properties, "TAGS").ptr == NULL;
}

/* What the hooks of the attempt have made of the message, which says which one it is of. False when
 * no attempt so far can have sent it. */
static bool find_change(const sim_ledger *ledger, const sim_send *send, rmq_slice properties,
                        sim_change *change) {
  rmq_slice mark = rmq_properties_find(properties, "h");
  int32_t attempt = 0;
  *change = (sim_change){.mark = false};
  if (!ledger->hooked) return mark.ptr == NULL;
  if (!mark.ptr) {
    for (int i = 1; i <= send->befores; i++) {
      if (!sim_change_of(send->number, i).mark) return true;
    }
    return false;
  }
  if (rmq_number_i32(mark, &attempt) != 0 || attempt < 1 || attempt > send->befores) return false;
  *change = sim_change_of(send->number, attempt);
  return change->mark;
}

/* Ids name one message each, and a message has one. */
static void check_key(sim_ledger *ledger, sim_send *send, rmq_slice key) {
  if (send->key[0] != '\0') {
    if (!rmq_slice_is(key, send->key)) {
      sim_break(ledger->world, "send %" PRIu32 " has two ids: %s and %.*s", send->number, send->key,
                (int)key.len, key.ptr);
    }
    return;
  }
  if (key.len != 32 && key.len != RMQ_UNIQUE_ID_MAX) {
    sim_break(ledger->world, "send %" PRIu32 " has an id of %zu characters", send->number, key.len);
    return;
  }
  memcpy(send->key, key.ptr, key.len);
  sim_send *other = rmq_map_set(ledger->by_key, key, send);
  if (other) {
    sim_break(ledger->world, "sends %" PRIu32 " and %" PRIu32 " have the same id %s", other->number,
              send->number, send->key);
  }
}

static void count_arrival(sim_send *send, int broker) {
  if (send->arrivals++ == 0) send->first_arrival = broker;
  if (broker != send->first_arrival) send->same_broker = false;
  send->last_arrival = broker;
}

sim_send *sim_ledger_arrived(sim_ledger *ledger, int broker, const rmq_send_header *header,
                             rmq_slice body) {
  sim_send *send = find_send(ledger, header->properties);
  if (!send) return NULL;
  sim_note(ledger->world, "send arrives", send->number, broker);
  sim_change change;
  if (send->state == SIM_SEND_REFUSED) {
    sim_break(ledger->world, "send %" PRIu32 " was refused at once, and sent all the same",
              send->number);
  } else if (!find_change(ledger, send, header->properties, &change)) {
    sim_break(ledger->world, "send %" PRIu32 " is what no hook has made of it", send->number);
  } else if (!sim_body_is(send, body, change.flip)) {
    sim_break(ledger->world, "the body of send %" PRIu32 " is not what was given", send->number);
  } else if (!are_properties_right(send, header->properties) || header->flag != send->flag) {
    sim_break(ledger->world, "the properties of send %" PRIu32 " are not what was given: %.*s",
              send->number, (int)header->properties.len, header->properties.ptr);
  } else if (send->given_broker >= 0 &&
             (send->given_broker != broker || header->queue_id != send->options.queue_id)) {
    sim_break(ledger->world, "send %" PRIu32 " went to another queue than the given one",
              send->number);
  } else {
    check_key(ledger, send, rmq_properties_find(header->properties, "UNIQ_KEY"));
    count_arrival(send, broker);
  }
  return sim_is_broken(ledger->world) ? NULL : send;
}

void sim_ledger_stored(sim_ledger *ledger, sim_send *send, sim_copy copy) {
  sim_note(ledger->world, "stored", send->number, copy.offset);
  if (send->state == SIM_SEND_FAILED && !send->maybe_stored) {
    sim_break(ledger->world, "send %" PRIu32 " failed as certainly not stored, and is stored now",
              send->number);
  }
  if (send->n_copies == 0) send->stored_us = ledger->world->now_us;
  if (send->given_broker >= 0 && send->n_copies > 0) {
    sim_break(ledger->world,
              "send %" PRIu32 " to a given queue was sent again though it was stored",
              send->number);
  }
  if (send->n_copies < SIM_COPIES_MAX) send->copies[send->n_copies] = copy;
  send->n_copies++;
}

/* ---- Completions ---- */

static bool is_reply_about(const sim_copy *copy, const sim_send *send, const rmq_send_reply *reply,
                           int broker) {
  char id[RMQ_UNIQUE_ID_MAX];
  size_t id_len = sim_offset_id(*copy, id);
  return copy->broker == broker && copy->queue == reply->queue_id &&
         copy->offset == reply->queue_offset &&
         rmq_slice_equal(reply->msg_id, rmq_slice_make(id, id_len)) &&
         rmq_slice_is(reply->transaction_id, copy->batch ? "" : send->key) &&
         rmq_slice_is(reply->region_id, "DefaultRegion");
}

static void check_acknowledged(sim_ledger *ledger, const sim_send *send,
                               const rmq_completion *completion, int broker) {
  const rmq_send_reply *reply = completion->reply;
  if (send->options.mode == RMQ_MODE_ONEWAY) {
    if (reply) sim_break(ledger->world, "oneway send %" PRIu32 " has a reply", send->number);
    return;
  }
  if (!reply) {
    sim_break(ledger->world, "send %" PRIu32 " is acknowledged without a reply", send->number);
    return;
  }
  int kept = send->n_copies < SIM_COPIES_MAX ? send->n_copies : SIM_COPIES_MAX;
  for (int i = 0; i < kept; i++) {
    if (is_reply_about(&send->copies[i], send, reply, broker)) return;
  }
  sim_break(ledger->world,
            "send %" PRIu32 " is acknowledged for broker %d, queue %d, offset %" PRId64
            ", id %.*s, where it is not stored (%d copies elsewhere)",
            send->number, broker, (int)reply->queue_id, reply->queue_offset, (int)reply->msg_id.len,
            reply->msg_id.ptr, send->n_copies);
}

static void check_attempts(sim_ledger *ledger, const sim_send *send,
                           const rmq_completion *completion) {
  if (completion->attempts < send->arrivals) {
    sim_break(ledger->world, "send %" PRIu32 " arrived %d times in %d attempts", send->number,
              send->arrivals, completion->attempts);
  }
}

void sim_ledger_completed(sim_ledger *ledger, sim_send *send, const rmq_completion *completion,
                          int broker) {
  const rmq_failure *failure = completion->failure;
  sim_note(ledger->world, failure ? "send fails" : "send done", send->number,
           failure ? (int64_t)failure->kind : (int64_t)completion->status);
  if (send->state != SIM_SEND_UNDER_WAY) {
    sim_break(ledger->world, "send %" PRIu32 " completes twice, or was refused", send->number);
    return;
  }
  ledger->under_way--;
  send->state = failure ? SIM_SEND_FAILED : SIM_SEND_STORED;
  send->maybe_stored = failure && failure->maybe_stored;
  check_key(ledger, send, completion->msg_id);
  check_attempts(ledger, send, completion);
  if (!failure) check_acknowledged(ledger, send, completion, broker);
  if (failure && !failure->maybe_stored && send->n_copies > 0) {
    sim_break(ledger->world,
              "send %" PRIu32 " fails as certainly not stored, and is stored %d times",
              send->number, send->n_copies);
  }
}

#include "sim/replies.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/codes.h"
#include "wire/number.h"
#include "wire/properties.h"

void sim_reply_text(uint32_t number, char out[SIM_TEXT]) {
  snprintf(out, SIM_TEXT, "reply to %" PRIu32, number);
}

bool sim_request_is_right(sim_send *send, const rmq_send_header *header) {
  enum { UUID_LEN = 36 };
  rmq_slice id = rmq_properties_find(header->properties, "CORRELATION_ID");
  rmq_slice client = rmq_properties_find(header->properties, "REPLY_TO_CLIENT");
  rmq_slice ttl = rmq_properties_find(header->properties, "TTL");
  char *known = send->request.id;
  int64_t ms = -1;
  if (!send->asks) return !id.ptr && !client.ptr && !ttl.ptr;
  if (id.len != UUID_LEN || client.len == 0 || rmq_number_i64(ttl, &ms) != 0) return false;
  if (known[0] == '\0') memcpy(known, id.ptr, id.len);
  return rmq_slice_is(id, known) && ms * 1000 == send->budget_us;
}

/* ---- Replies ---- */

static void write_reply(const sim_broker *broker, const sim_send *send, rmq_buf *out) {
  char body[SIM_TEXT], properties[128];
  sim_reply_text(send->number, body);
  snprintf(properties, sizeof properties, "CORRELATION_ID\001%s\002MSG_TYPE\001reply\002",
           send->request.id);
  rmq_command command = {.code = RMQ_PUSH_REPLY_MESSAGE_TO_CLIENT,
                         .opaque = (int32_t)send->number,
                         .version = RMQ_VERSION};
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, out, broker->json ? RMQ_SERIALIZE_JSON : RMQ_SERIALIZE_ROCKETMQ,
                  &command);
  rmq_slice topic = rmq_slice_text(broker->cluster->truth.topics[SIM_REPLY_TOPIC].name);
  rmq_frame_text(&writer, rmq_slice_text("topic"), topic);
  rmq_frame_text(&writer, rmq_slice_text("properties"), rmq_slice_text(properties));
  rmq_frame_int(&writer, rmq_slice_text("queueId"), 0);
  rmq_frame_int(&writer, rmq_slice_text("sysFlag"), 0);
  rmq_frame_int(&writer, rmq_slice_text("flag"), 0);
  rmq_frame_int(&writer, rmq_slice_text("bornTimestamp"), 1);
  rmq_frame_int(&writer, rmq_slice_text("storeTimestamp"), 2);
  rmq_frame_end(&writer, rmq_slice_text(body));
}

/* The reply goes to some broker, and that one has to know a connection of the client's. */
static void reply(void *arg, uint64_t data) {
  (void)data;
  sim_send *send = arg;
  sim_cluster *cluster = send->request.cluster;
  sim_world *world = cluster->world;
  int64_t some = sim_random_between(&world->random, 0, cluster->n_brokers - 1);
  sim_broker *broker = &cluster->brokers[some];
  sim_connection *connection = broker->hangs ? NULL : sim_broker_producer(broker);
  sim_note(world, connection ? "reply" : "reply lost", send->number, broker->index);
  if (!connection) {
    bool waits = send->state == SIM_SEND_UNDER_WAY;
    if (cluster->greets_all && waits && !world->sealed) {
      sim_break(world, "the reply to send %" PRIu32 " came to %s, which was not greeted",
                send->number, broker->name);
    }
    return;
  }
  if (send->request.pushes++ == 0) send->request.pushed_us = world->now_us;
  rmq_buf out = {0};
  write_reply(broker, send, &out);
  sim_answer_later(world, connection, &out, 0, false);
}

void sim_request_stored(sim_broker *broker, sim_send *send) {
  sim_world *world = broker->cluster->world;
  send->request.cluster = broker->cluster;
  while (sim_random_chance(&world->random, 900000)) { /* a few reply twice */
    sim_plan(world, sim_random_spread(&world->random, 10, 8000000), reply, send, 0);
    if (sim_random_chance(&world->random, 900000)) return;
  }
}

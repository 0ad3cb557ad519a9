#include "wire/client.h"

#include "wire/codes.h"
#include "wire/json.h"

/* A literal's length is known when this is compiled. */
static inline rmq_slice name(const char *text) { return rmq_slice_text(text); }

static void begin(rmq_frame_writer *writer, rmq_buf *out, rmq_serialize serialize, int32_t code,
                  int32_t opaque) {
  rmq_command command = rmq_command_request(code, opaque, 0);
  rmq_frame_begin(writer, out, serialize, &command);
}

void rmq_heartbeat_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                          rmq_slice client_id, const rmq_slice *groups, size_t n_groups) {
  rmq_frame_writer writer;
  begin(&writer, out, serialize, RMQ_HEART_BEAT, opaque);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
  rmq_buf_text(out, "{\"clientID\":");
  rmq_json_quote(out, client_id);
  rmq_buf_text(out, ",\"consumerDataSet\":[],\"heartbeatFingerprint\":0,\"producerDataSet\":[");
  for (size_t i = 0; i < n_groups; i++) {
    rmq_buf_text(out, i ? ",{\"groupName\":" : "{\"groupName\":");
    rmq_json_quote(out, groups[i]);
    rmq_buf_u8(out, '}');
  }
  rmq_buf_text(out, "],\"withoutSub\":false}");
  /* The body went in after the frame's end: it is counted now, and was never copied. */
  rmq_buf_put_u32(out, writer.start, (uint32_t)(rmq_buf_len(out) - writer.start - 4));
}

void rmq_unregister_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                           rmq_slice client_id, rmq_slice producer_group) {
  rmq_frame_writer writer;
  begin(&writer, out, serialize, RMQ_UNREGISTER_CLIENT, opaque);
  rmq_frame_text(&writer, name("clientID"), client_id);
  rmq_frame_text(&writer, name("producerGroup"), producer_group);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
}

void rmq_route_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                              rmq_slice topic) {
  rmq_frame_writer writer;
  begin(&writer, out, serialize, RMQ_GET_ROUTEINFO_BY_TOPIC, opaque);
  rmq_frame_text(&writer, name("topic"), topic);
  rmq_frame_bool(&writer, name("acceptStandardJsonOnly"), true);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
}

void rmq_max_offset_request_encode(rmq_buf *out, rmq_serialize serialize, int32_t opaque,
                                   rmq_slice topic, int32_t queue_id) {
  rmq_frame_writer writer;
  begin(&writer, out, serialize, RMQ_GET_MAX_OFFSET, opaque);
  rmq_frame_text(&writer, name("topic"), topic);
  rmq_frame_int(&writer, name("queueId"), queue_id);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
}

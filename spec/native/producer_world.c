#include "producer_world.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/batch.h"
#include "wire/codes.h"
#include "wire/header.h"
#include "wire/send.h"

/* A socket as the world sees it: the fake's, with the transport's events in between. */
typedef struct world_socket {
  rmq_socket *socket;
  const rmq_io_events *events;
  void *owner;
  world_server *server;
} world_socket;

enum { SOCKETS = 64 };

fake_io *world_fake;
rmq_producer *producer;
rmq_settings world_settings;
world_server world_servers[WORLD_SERVERS];
world_message world_log[WORLD_LOG];
int world_n_log;
const char *world_remark;
char world_lines[65536];
const rmq_send_options world_options = {.retries = -1};
bool (*world_other)(world_server *server, const rmq_header *request, rmq_slice body,
                    world_reply *reply);

int world_n_answers;
int32_t world_answer_code;

static world_topic topics[WORLD_TOPICS];
static world_socket *sockets[SOCKETS];
static rmq_io_calls calls;
static const rmq_io_calls *fake_calls;
static int64_t began_us;

/* Answers that come later. */
typedef struct late_answer {
  world_socket *socket; /* NULL: there is none, or it is closed */
  int64_t due_us;
  rmq_buf bytes;
} late_answer;
enum { LATE_ANSWERS = 64 };
static late_answer late[LATE_ANSWERS];

/* ---- Sockets ---- */

static void on_connected(void *owner) {
  world_socket *s = owner;
  if (s->server) s->server->connections++;
  s->events->connected(s->owner);
}
static void on_readable(void *owner) {
  world_socket *s = owner;
  s->events->readable(s->owner);
}
static void on_writable(void *owner) {
  world_socket *s = owner;
  s->events->writable(s->owner);
}
static void on_closed(void *owner, int reason) {
  world_socket *s = owner;
  const rmq_io_events *events = s->events;
  void *real = s->owner;
  for (int i = 0; i < SOCKETS; i++) {
    if (sockets[i] == s) sockets[i] = NULL;
  }
  for (int i = 0; i < LATE_ANSWERS; i++) {
    if (late[i].socket == s) late[i].socket = NULL;
  }
  free(s);
  events->closed(real, reason);
}
static const rmq_io_events between = {on_connected, on_readable, on_writable, on_closed};

static int open_between(rmq_io *io, const rmq_address *address, const rmq_io_events *events,
                        void *owner, rmq_socket **out) {
  world_socket *s = rmq_alloc_zero(1, sizeof *s);
  char text[RMQ_ADDRESS_TEXT];
  rmq_address_format(address, text);
  s->events = events;
  s->owner = owner;
  s->server = world_at(text);
  int status = fake_calls->open(io, address, &between, s, out);
  if (status < 0) {
    free(s);
    return status;
  }
  s->socket = *out;
  for (int i = 0; i < SOCKETS; i++) {
    if (sockets[i]) continue;
    sockets[i] = s;
    return 0;
  }
  abort();
}

/* ---- Servers ---- */

static void answer(world_socket *s, const rmq_header *request, int32_t code, const char *remark,
                   rmq_slice body) {
  rmq_buf out = {0};
  rmq_frame_writer writer;
  rmq_command command = rmq_command_request(code, request->opaque, RMQ_FLAG_RESPONSE);
  command.remark = rmq_slice_text(remark);
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
  rmq_frame_end(&writer, body);
  fake_send(s->socket, rmq_buf_head(&out), rmq_buf_len(&out));
  rmq_buf_free(&out);
}

/* Sends an answer now, or notes it for later. */
static void deliver(world_socket *s, const rmq_buf *out, int64_t delay_ms) {
  if (delay_ms == 0) {
    fake_send(s->socket, rmq_buf_head(out), rmq_buf_len(out));
    return;
  }
  late_answer *free_one = NULL;
  for (int i = 0; !free_one && i < LATE_ANSWERS; i++) {
    if (!late[i].socket) free_one = &late[i];
  }
  if (!free_one) abort();
  free_one->socket = s;
  free_one->due_us = world_now_us() + delay_ms * 1000;
  rmq_buf_clear(&free_one->bytes);
  rmq_buf_bytes(&free_one->bytes, rmq_buf_head(out), rmq_buf_len(out));
}

static void deliver_late(void) {
  for (int i = 0; i < LATE_ANSWERS; i++) {
    world_socket *s = late[i].socket;
    if (!s || late[i].due_us > world_now_us()) continue;
    late[i].socket = NULL;
    deliver(s, &late[i].bytes, 0);
  }
}

/* The ids of the last `n` messages that a server got. */
static rmq_slice write_ids(const world_server *server, int n, rmq_buf *ids) {
  for (int i = n; i > 0; i--) {
    rmq_buf_printf(ids, "%032d%s", server->sends - i + 1, i > 1 ? "," : "");
  }
  return rmq_buf_slice(ids);
}

/* Answers a send, or a batch of `n`. */
static void answer_send(world_socket *s, const rmq_header *request, int32_t code, int32_t queue_id,
                        int n) {
  rmq_buf out = {0}, ids = {0};
  rmq_frame_writer writer;
  rmq_command command = rmq_command_request(code, request->opaque, RMQ_FLAG_RESPONSE);
  int n_ids =
      request->code == RMQ_SEND_BATCH_MESSAGE && s->server->batch_ids ? s->server->batch_ids : n;
  rmq_send_reply reply = {.msg_id = write_ids(s->server, n_ids, &ids),
                          .queue_id = queue_id,
                          .queue_offset = s->server->sends - n + 1,
                          .region_id = rmq_slice_text("DefaultRegion"),
                          .trace_on = true};
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
  rmq_send_reply_write(&writer, &reply);
  rmq_frame_end(&writer, rmq_slice_make(NULL, 0));
  deliver(s, &out, s->server->delay_ms);
  rmq_buf_free(&out);
  rmq_buf_free(&ids);
}

static void copy_text(char *out, size_t size, rmq_slice text) {
  snprintf(out, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

static void note_send(world_socket *s, const rmq_header *request, const rmq_send_header *header,
                      rmq_slice body) {
  if (world_n_log == WORLD_LOG) abort();
  world_message *m = &world_log[world_n_log++];
  memset(m, 0, sizeof *m);
  m->broker = s->server;
  m->at_ms = world_now_us() / 1000;
  m->heartbeats_before = s->server->heartbeats;
  m->queue_id = header->queue_id;
  m->code = request->code;
  m->flag = header->flag;
  m->sys_flag = header->sys_flag;
  m->oneway = request->flag & RMQ_FLAG_ONEWAY;
  copy_text(m->topic, sizeof m->topic, header->topic);
  copy_text(m->body, sizeof m->body, body);
  m->body_len = body.len;
  m->batch = header->batch ? s->server->batches : 0;
  copy_text(m->broker_name, sizeof m->broker_name, header->broker_name);
  copy_text(m->group, sizeof m->group, header->producer_group);
  copy_text(m->default_topic, sizeof m->default_topic, header->default_topic);
  copy_text(m->properties, sizeof m->properties, header->properties);
}

/* Notes each message of a batch; returns how many there are. */
static int note_batch(world_socket *s, const rmq_header *request, const rmq_send_header *header,
                      rmq_slice body) {
  rmq_send_header own = *header;
  rmq_batch_member member;
  int n = 0;
  s->server->batches++;
  CHECK(rmq_slice_is(header->properties, "WAIT\001true\002"));
  for (int more; (more = rmq_batch_next(&body, &member)) != 0; n++) {
    CHECK_INT(more, 1);
    if (more < 0) break;
    own.properties = member.properties;
    own.flag = member.flag;
    note_send(s, request, &own, member.body);
  }
  return n;
}

/* Does what a mood other than WORLD_ANSWERS says. True when that was all. */
static bool act_out(world_socket *s, const rmq_header *request, world_act act) {
  switch (act.mood) {
    case WORLD_ANSWERS:
      return false;
    case WORLD_MUTE:
      return true;
    case WORLD_CLOSES:
      fake_end(s->socket, RMQ_ECLOSED);
      return true;
    case WORLD_GARBAGE:
      fake_send(s->socket, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
      return true;
    case WORLD_BROKEN:
      answer(s, request, 0, NULL, rmq_slice_text("{]"));
      return true;
    case WORLD_CODE:
      break;
  }
  answer(s, request, act.code, world_remark, rmq_slice_make(NULL, 0));
  return true;
}

static world_act next_act(world_server *server) {
  return server->done < server->scripted ? server->script[server->done++] : server->always;
}

static world_topic *topic_named(rmq_slice name) {
  for (int i = 0; i < WORLD_TOPICS; i++) {
    if (topics[i].name[0] && rmq_slice_is(name, topics[i].name)) return &topics[i];
  }
  return NULL;
}

static world_topic *topic_made(const char *name) {
  world_topic *topic = topic_named(rmq_slice_text(name));
  for (int i = 0; !topic && i < WORLD_TOPICS; i++) {
    if (!topics[i].name[0]) topic = &topics[i];
  }
  if (!topic) abort();
  snprintf(topic->name, sizeof topic->name, "%s", name);
  return topic;
}

static void serve_question(world_socket *s, const rmq_header *request) {
  rmq_slice name = rmq_header_field(request, "topic");
  char text[128];
  copy_text(text, sizeof text, name);
  world_topic *topic = topic_made(text);
  topic->asked++;
  s->server->questions++;
  if (act_out(s, request, next_act(s->server))) return;
  if (topic->json) {
    answer(s, request, RMQ_SUCCESS, NULL, rmq_slice_text(topic->json));
  } else {
    answer(s, request, RMQ_TOPIC_NOT_EXIST, "No topic route info", rmq_slice_make(NULL, 0));
  }
}

static void serve_send(world_socket *s, const rmq_header *request, rmq_slice body) {
  rmq_send_header header;
  const char *missing;
  CHECK_INT(rmq_send_header_decode(request, &header, &missing), 0);
  CHECK_INT(header.batch, request->code == RMQ_SEND_BATCH_MESSAGE);
  int n = header.batch ? note_batch(s, request, &header, body) : 1;
  if (!header.batch) note_send(s, request, &header, body);
  s->server->sends += n;
  world_act act = next_act(s->server);
  bool stored = act.mood == WORLD_CODE && act.code >= 10 && act.code <= 12;
  if (!stored && act_out(s, request, act)) return;
  if (request->flag & RMQ_FLAG_ONEWAY) return;
  answer_send(s, request, stored ? act.code : RMQ_SUCCESS, header.queue_id, n);
}

static void serve_probe(world_socket *s, const rmq_header *request) {
  int32_t queue = -1;
  CHECK_INT(rmq_header_i32(request, "queueId", &queue), 1);
  CHECK_INT(queue, 0);
  CHECK(topic_named(rmq_header_field(request, "topic")) != NULL);
  s->server->probes++;
  if (!act_out(s, request, s->server->to_probes)) {
    answer(s, request, RMQ_SUCCESS, NULL, rmq_slice_make(NULL, 0));
  }
}

/* Does with a request what the test wants. False when it leaves that to the world. */
static bool serve_other(world_socket *s, const rmq_header *request, rmq_slice body) {
  world_reply reply = {.mood = WORLD_ANSWERS};
  if (!world_other || request->code == RMQ_GET_ROUTEINFO_BY_TOPIC) return false;
  if (!world_other(s->server, request, body, &reply)) return false;
  if (reply.mood != WORLD_ANSWERS) {
    act_out(s, request, (world_act){.mood = reply.mood, .code = reply.code});
  } else {
    rmq_buf out = {0};
    rmq_frame_writer writer;
    rmq_command command = rmq_command_request(reply.code, request->opaque, RMQ_FLAG_RESPONSE);
    command.remark = rmq_slice_text(reply.remark);
    rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, &command);
    for (size_t i = 0; i < reply.n_ext; i++) {
      rmq_frame_text(&writer, reply.ext[i].name, reply.ext[i].value);
    }
    rmq_frame_end(&writer, rmq_buf_slice(&reply.body));
    fake_send(s->socket, rmq_buf_head(&out), rmq_buf_len(&out));
    rmq_buf_free(&out);
  }
  rmq_buf_free(&reply.body);
  return true;
}

void world_ask(const char *addr, const rmq_command *command, const rmq_field *ext, size_t n_ext,
               rmq_slice body) {
  world_socket *newest = NULL;
  for (int i = 0; i < SOCKETS; i++) {
    if (sockets[i] && sockets[i]->server == world_at(addr)) newest = sockets[i];
  }
  CHECK(newest != NULL);
  if (!newest) return;
  rmq_buf out = {0};
  rmq_frame_writer writer;
  rmq_frame_begin(&writer, &out, RMQ_SERIALIZE_JSON, command);
  for (size_t i = 0; i < n_ext; i++) rmq_frame_text(&writer, ext[i].name, ext[i].value);
  rmq_frame_end(&writer, body);
  fake_send(newest->socket, rmq_buf_head(&out), rmq_buf_len(&out));
  rmq_buf_free(&out);
}

void world_break(const char *addr) {
  for (int i = 0; i < SOCKETS; i++) {
    if (sockets[i] && sockets[i]->server == world_at(addr)) {
      fake_end(sockets[i]->socket, RMQ_ECLOSED);
    }
  }
}

static void serve(world_socket *s, const rmq_header *request, rmq_slice body) {
  if (request->flag & RMQ_FLAG_RESPONSE) {
    world_n_answers++;
    world_answer_code = request->code;
    return;
  }
  if (serve_other(s, request, body)) return;
  switch (request->code) {
    case RMQ_GET_ROUTEINFO_BY_TOPIC:
      serve_question(s, request);
      break;
    case RMQ_SEND_MESSAGE_V2:
    case RMQ_SEND_REPLY_MESSAGE_V2:
    case RMQ_SEND_BATCH_MESSAGE:
      serve_send(s, request, body);
      break;
    case RMQ_GET_MAX_OFFSET:
      serve_probe(s, request);
      break;
    case RMQ_HEART_BEAT:
      s->server->heartbeats++;
      if (!s->server->heartbeat_mute)
        answer(s, request, RMQ_SUCCESS, NULL, rmq_slice_make(NULL, 0));
      break;
    case RMQ_UNREGISTER_CLIENT:
      s->server->unregisters++;
      if (!s->server->heartbeat_mute)
        answer(s, request, RMQ_SUCCESS, NULL, rmq_slice_make(NULL, 0));
      break;
    default:
      CHECK_INT(request->code, 0);
  }
}

/* Serves the first whole request of a socket. */
static bool serve_one(world_socket *s) {
  static rmq_header header;
  rmq_buf scratch = {0};
  rmq_frame frame;
  if (rmq_frame_split(rmq_buf_slice(&s->socket->sent), &frame, NULL) != 1) return false;
  CHECK_INT(rmq_header_decode(frame.serialize, frame.header, &scratch, &header), 0);
  serve(s, &header, frame.body);
  rmq_buf_consume(&s->socket->sent, frame.size);
  rmq_buf_free(&scratch);
  return true;
}

static bool serve_all(void) {
  bool any = false;
  for (int i = 0; i < SOCKETS; i++) {
    while (sockets[i] && serve_one(sockets[i])) any = true;
  }
  return any;
}

void world_settle(void) {
  do fake_settle(world_fake);
  while (serve_all());
}

void world_run(int64_t ms) {
  world_settle();
  for (int64_t i = 0; i < ms; i++) {
    fake_advance(world_fake, 1);
    deliver_late();
    world_settle();
  }
}

int64_t world_now_us(void) { return fake_calls->now(fake_io_of(world_fake)).us - began_us; }

/* ---- Topics ---- */

world_server *world_at(const char *addr) {
  for (int i = 0; i < WORLD_SERVERS; i++) {
    if (world_servers[i].addr && strcmp(world_servers[i].addr, addr) == 0) return &world_servers[i];
  }
  return NULL;
}

void world_topic_json(const char *name, const char *json) {
  world_topic *topic = topic_made(name);
  free(topic->json);
  topic->json = json ? rmq_copy_text(json, strlen(json)) : NULL;
}

void world_topic_remove(const char *name) { world_topic_json(name, NULL); }

void world_topic_set(const char *name, const char *brokers, int queues, int perm) {
  rmq_buf json = {0};
  rmq_buf_text(&json, "{\"queueDatas\":[");
  for (const char *b = brokers; *b; b++) {
    rmq_buf_printf(
        &json, "%s{\"brokerName\":\"%c\",\"readQueueNums\":%d,\"writeQueueNums\":%d,\"perm\":%d}",
        b == brokers ? "" : ",", *b, queues, queues, perm);
  }
  rmq_buf_text(&json, "],\"brokerDatas\":[");
  for (const char *b = brokers; *b; b++) {
    rmq_buf_printf(&json, "%s{\"brokerName\":\"%c\",\"brokerAddrs\":{\"0\":\"10.0.0.2:%d\"}}",
                   b == brokers ? "" : ",", *b, *b - 'a' + 1);
  }
  rmq_buf_text(&json, "]}");
  rmq_buf_u8(&json, 0);
  world_topic_json(name, (const char *)rmq_buf_head(&json));
  rmq_buf_free(&json);
}

int world_asked(const char *name) {
  const world_topic *topic = topic_named(rmq_slice_text(name));
  return topic ? topic->asked : 0;
}

void world_script(const char *addr, world_act act) {
  world_server *server = world_at(addr);
  server->script[server->scripted++] = act;
}

/* ---- The producer ---- */

static void note_line(void *arg, rmq_log_level level, const char *line) {
  (void)arg;
  size_t len = strlen(world_lines);
  snprintf(world_lines + len, sizeof world_lines - len, "%s: %s\n", rmq_log_level_name(level),
           line);
}

static void set_text(const char *name, const char *value) {
  char why[256];
  CHECK_INT(rmq_settings_set_text(&world_settings, rmq_setting_find(rmq_slice_text(name)),
                                  rmq_slice_text(value), why, sizeof why),
            0);
}

void world_begin(void) {
  static const char *const addrs[] = {"10.0.0.1:9876", "10.0.0.1:9877", "10.0.0.2:1", "10.0.0.2:2",
                                      "10.0.0.2:3"};
  world_fake = fake_new();
  rmq_io *io = fake_io_of(world_fake);
  fake_calls = io->calls;
  calls = *fake_calls;
  calls.open = open_between;
  io->calls = &calls;
  memset(world_servers, 0, sizeof world_servers);
  for (int i = 0; i < 5; i++) world_servers[i].addr = addrs[i];
  world_n_log = 0;
  world_other = NULL;
  world_n_answers = 0;
  world_lines[0] = '\0';
  world_remark = "the remark";
  began_us = fake_calls->now(io).us;
  rmq_settings_init(&world_settings);
  set_text("group", "orders");
  set_text("namesrv", addrs[0]);
}

void world_start(void) {
  static const rmq_log log = {RMQ_LOG_DEBUG, note_line, NULL};
  char why[256];
  CHECK_INT(rmq_settings_check(&world_settings, why, sizeof why), 0);
  producer = rmq_producer_new(&world_settings, fake_io_of(world_fake), &log);
}

void world_end_all(void) {
  rmq_producer_free(producer);
  producer = NULL;
  fake_settle(world_fake);
  fake_free(world_fake);
  rmq_settings_free(&world_settings);
  for (int i = 0; i < WORLD_TOPICS; i++) free(topics[i].json);
  memset(topics, 0, sizeof topics);
  for (int i = 0; i < LATE_ANSWERS; i++) {
    late[i].socket = NULL;
    rmq_buf_free(&late[i].bytes);
  }
}

static void note_failure(world_end *end, const rmq_failure *failure) {
  end->kind = failure->kind;
  end->code = failure->code;
  end->maybe_stored = failure->maybe_stored;
  end->n_tries = failure->n_tries;
  copy_text(end->message, sizeof end->message, rmq_buf_slice(&failure->message));
}

void world_done(void *arg, const rmq_completion *completion) {
  world_end *end = arg;
  end->dones++;
  end->failed = completion->failure != NULL;
  end->attempts = completion->attempts;
  end->elapsed_us = completion->elapsed_us;
  end->index = completion->index;
  end->at_us = world_now_us();
  end->status = completion->status;
  end->has_reply = completion->reply != NULL;
  copy_text(end->broker, sizeof end->broker, completion->broker);
  copy_text(end->msg_id, sizeof end->msg_id, completion->msg_id);
  if (completion->failure) note_failure(end, completion->failure);
  if (completion->reply) {
    end->queue_id = completion->reply->queue_id;
    end->queue_offset = completion->reply->queue_offset;
    copy_text(end->offset_msg_id, sizeof end->offset_msg_id, completion->reply->msg_id);
  }
  if (end->then) end->then(end);
}

int world_send_with(const char *topic, const rmq_send_options *options, world_end *end) {
  rmq_message message = {
      .topic = rmq_slice_text(topic), .body = rmq_slice_text("body"), .wait = true};
  int before = end->dones;
  int status = rmq_producer_send(producer, &message, options, world_done, end);
  CHECK_INT(end->dones, before); /* never from inside */
  if (status < 0) note_failure(end, rmq_producer_failure(producer));
  return status;
}

int world_send(const char *topic, world_end *end) {
  return world_send_with(topic, &world_options, end);
}

void world_count_done(void *arg, size_t left) {
  world_count *count = arg;
  count->dones++;
  count->left = left;
  count->at_us = world_now_us();
}

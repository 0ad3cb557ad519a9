#ifndef SPEC_NATIVE_PRODUCER_WORLD_H
#define SPEC_NATIVE_PRODUCER_WORLD_H

#include "check.h"
#include "fake_io.h"
#include "producer/producer.h"
#include "wire/frame.h"

/* A small RocketMQ in virtual time around one producer: name servers and brokers that do what a
 * test tells them, and remember what they were sent. Time moves a millisecond at a time, answers
 * come within the millisecond of the request. */

enum { WORLD_SERVERS = 8, WORLD_TOPICS = 64, WORLD_SCRIPT = 16, WORLD_LOG = 65536 };

typedef enum world_mood {
  WORLD_ANSWERS,
  WORLD_MUTE,    /* takes requests and says nothing */
  WORLD_CLOSES,  /* ends the connection when a request comes */
  WORLD_GARBAGE, /* answers with bytes that are no frame */
  WORLD_BROKEN,  /* answers success without what belongs to it */
  WORLD_CODE     /* answers with `code` */
} world_mood;

/* What a server does with one request. */
typedef struct world_act {
  world_mood mood;
  int32_t code;
} world_act;

typedef struct world_server {
  const char *addr;
  world_act always; /* for what the script does not say; of zeros: answers well */
  world_act
      script[WORLD_SCRIPT]; /* for sends (brokers) or route questions (name servers), in turn */
  int scripted, done;       /* acts in the script, acts used */
  int questions, sends, heartbeats, unregisters, connections;
  int probes;          /* questions for the greatest offset */
  world_act to_probes; /* of zeros: answers well */
  bool heartbeat_mute;
  int64_t delay_ms; /* before the answer to a send, when it is a good one */
  int batches;      /* sends that were batches */
  int batch_ids;    /* offset ids in the answer to a batch; 0: one for each message */
} world_server;

/* A send that a broker got. */
typedef struct world_message {
  world_server *broker;
  int64_t at_ms; /* since the world began */
  int32_t queue_id, code, flag, sys_flag;
  bool oneway;
  int heartbeats_before; /* that the broker had by then */
  int batch;             /* the broker's how manieth batch it came in, from 1; 0: it came alone */
  size_t body_len;
  char topic[128], body[64], broker_name[32], group[32], default_topic[32];
  char properties[256];
} world_message;

typedef struct world_topic {
  char name[128];
  char *json;
  int asked;
} world_topic;

/* How a send ended. */
typedef struct world_end {
  void (*then)(struct world_end *end); /* called by done */
  int64_t at_us;                       /* since the world began */
  int64_t elapsed_us;
  int64_t queue_offset;
  int dones;
  rmq_kind kind;
  int32_t code;
  int n_tries, attempts;
  rmq_send_status status;
  int32_t queue_id;
  bool failed, maybe_stored, has_reply;
  size_t index; /* in its batch */
  char broker[32], msg_id[64], message[2048], offset_msg_id[64];
} world_end;

extern fake_io *world_fake;
extern rmq_producer *producer;
extern rmq_settings world_settings; /* changed before world_start */
extern world_server world_servers[WORLD_SERVERS];
extern world_message world_log[WORLD_LOG];
extern int world_n_log;
extern const char *world_remark; /* of refusals */
extern char world_lines[65536];  /* what was logged, one line each */

/* An answer that a test makes itself. */
typedef struct world_reply {
  world_mood mood; /* WORLD_ANSWERS (or WORLD_CODE): with what stands here */
  int32_t code;
  const char *remark;
  rmq_field ext[8];
  size_t n_ext;
  rmq_buf body; /* freed when it has been sent */
} world_reply;

/* Looks at every request to a broker first, when it is not NULL. True: `reply` says what comes of it. */
extern bool (*world_other)(world_server *server, const rmq_header *request, rmq_slice body,
                           world_reply *reply);

/* Two name servers (10.0.0.1:9876 and :9877; only the first in the settings) and three brokers a,
 * b, c at 10.0.0.2:1, :2, :3. */
void world_begin(void);
void world_start(void); /* makes the producer */
void world_end_all(void);

world_server *world_at(const char *addr);
/* A topic on brokers ("ab", "a", "bc"), each with `queues` queues and this perm. Replaces an
 * earlier one. */
void world_topic_set(const char *name, const char *brokers, int queues, int perm);
void world_topic_json(const char *name, const char *json);
void world_topic_remove(const char *name);
int world_asked(const char *name); /* how often the topic's route was asked for */
void world_script(const char *addr, world_act act);

/* Lets everything happen that can happen now; lets time pass. */
void world_settle(void);
void world_run(int64_t ms);
int64_t world_now_us(void);

/* Sends "body" to a topic; returns what rmq_producer_send did. */
int world_send(const char *topic, world_end *end);
int world_send_with(const char *topic, const rmq_send_options *options, world_end *end);
void world_done(void *arg, const rmq_completion *completion); /* arg is a world_end */
extern const rmq_send_options world_options;                  /* the defaults, may not wait */

/* Sends a request to whoever is connected to a broker, on the newest connection. */
void world_ask(const char *addr, const rmq_command *command, const rmq_field *ext, size_t n_ext,
               rmq_slice body);
/* Ends all connections to a broker. */
void world_break(const char *addr);
/* The answers that came to such requests, and the last one's code. */
extern int world_n_answers;
extern int32_t world_answer_code;

void world_count_done(void *arg, size_t left); /* for flush and shutdown; arg is a world_count */
typedef struct world_count {
  int dones;
  size_t left;
  int64_t at_us;
} world_count;

#endif

#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "sim/ledger.h"
#include "sim/network.h"

/* A RocketMQ cluster: brokers, name servers, topics, and what each name server knows of them at the
 * moment. */

enum {
  SIM_BROKERS_MAX = 5,
  SIM_NAMESRVS_MAX = 3,
  SIM_TOPICS_MAX = 9,
  SIM_TRACE_TOPIC = 7, /* the index of the topic for message trace, which no user sends to */
  SIM_REPLY_TOPIC = 8, /* and of the one that the cluster's replies go through */
  SIM_QUEUES_MAX = 16,
  SIM_ADDR_TEXT = 48,
  SIM_LEAST_AVOIDANCE_MS = 200 /* the shortest time but 0 in the tables of latency_fault */
};

/* A topic's queues on one broker. No queues: the broker does not have it. */
typedef struct sim_part {
  int32_t queues;
  int32_t perm; /* RMQ_PERM_* */
} sim_part;

typedef struct sim_topic {
  char name[32];
  bool exists;
  bool ordered; /* its route comes with orderTopicConf */
  sim_part parts[SIM_BROKERS_MAX];
} sim_topic;

/* Everything that a route is made from. The truth is one, each name server's knowledge another. */
typedef struct sim_view {
  sim_topic topics[SIM_TOPICS_MAX];
  size_t n_topics;                              /* that users send to: the first ones */
  char masters[SIM_BROKERS_MAX][SIM_ADDR_TEXT]; /* "": the broker has no master */
} sim_view;

/* What a broker does to a request, each so many times in a million. The fields above `stored` are
 * for sends that are stored, or answered with a code; the others for all requests. */
typedef struct sim_broker_moods {
  uint32_t refuses_retry; /* nothing stored; a code that asks for another try */
  uint32_t refuses_final; /* nothing stored; a code that does not */
  uint32_t goes_away;     /* nothing stored; code 1500 */
  uint32_t not_flushed; /* stored; FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE */
  uint32_t silent;      /* stored, or not, and never answered */
  uint32_t closes;      /* stored, or not, and the connection closed in the middle of the answer */
  uint32_t answers_twice;
  uint32_t wrong_opaque; /* an answer to nobody comes before the right one */
  uint32_t
      garbage; /* bytes that are no frame come instead of the answer, or a header that is none */
  uint32_t mutilates; /* stored; the answer says yes and not where */
  uint32_t asks;      /* a request of the broker's own comes before the answer */
} sim_broker_moods;

typedef struct sim_cluster sim_cluster;

typedef struct sim_broker {
  sim_host host; /* first */
  sim_cluster *cluster;
  int index;
  char name[16];
  bool json;  /* answers in JSON, as real ones do; otherwise as ROCKETMQ */
  bool moved; /* name servers may disagree about where it is, or whether it is there at all */
  bool hangs; /* takes requests, stores nothing, answers nothing */
  int64_t service_us; /* the longest that an answer takes; evenly spread from 0 */
  sim_broker_moods moods;
  uint32_t last_given[SIM_TOPICS_MAX]
                     [SIM_QUEUES_MAX]; /* the last send to this queue as a given one, 0: none */
  int64_t offsets[SIM_TOPICS_MAX];     /* the next queue offset, one for all queues of a topic */
} sim_broker;

typedef struct sim_namesrv {
  sim_host host; /* first */
  sim_cluster *cluster;
  int index;
  sim_view view;
  bool bare_keys; /* old name servers write {0:"addr"} */
  bool hangs;
  uint32_t refuses_ppm; /* answers SYSTEM_ERROR */
  uint32_t garbage_ppm; /* answers a body that is no route */
  int64_t service_us;
} sim_namesrv;

/* How routes and the name server list name their hosts. */
typedef enum sim_addressing { SIM_BY_IPV4, SIM_BY_IPV6, SIM_BY_NAME } sim_addressing;

/* What goes wrong in a life. The less it is, the more a producer must achieve. */
typedef enum sim_trouble {
  SIM_NO_TROUBLE,  /* nothing: each send succeeds at once, and in order */
  SIM_FREEZES,     /* the process stands still now and then: an answer that came meanwhile counts */
  SIM_SICK_BROKER, /* one broker has all the faults: the others make up for it */
  SIM_SICK_NAMESRV, /* one name server has all the faults: the others know as much */
  SIM_ANY_TROUBLE
} sim_trouble;

struct sim_cluster {
  sim_world *world;
  sim_ledger *ledger;
  rmq_buf scratch;
  sim_broker brokers[SIM_BROKERS_MAX];
  int n_brokers;
  sim_namesrv namesrvs[SIM_NAMESRVS_MAX];
  int n_namesrvs;
  sim_addressing addressing;
  sim_view truth;
  int64_t lag_us;                    /* how long name servers take to learn of a change */
  int least_brokers[SIM_TOPICS_MAX]; /* that took messages of a topic, in any view at any time */
  sim_trouble trouble;
  bool detects;    /* the producer's detector is on */
  bool traces;     /* its message trace is on */
  bool is_asked;   /* users ask brokers other things, too: see questions.h */
  bool greets_all; /* every broker knows the producer while a request waits */
  int sick;        /* the index of the sick one, with SIM_SICK_BROKER or SIM_SICK_NAMESRV */
};

/* Makes the cluster with its topics; nothing is wrong with it yet. It must outlive the network. */
sim_cluster *sim_cluster_new(sim_world *world, sim_ledger *ledger);
void sim_cluster_free(sim_cluster *cluster);

/* Adds the topic for replies, which is on every broker. */
void sim_cluster_add_reply_topic(sim_cluster *cluster);

/* The list for the producer's setting. */
void sim_cluster_namesrv_list(const sim_cluster *cluster, char *out, size_t size);

/* Writes a broker's present address into the truth. */
void sim_cluster_place_master(sim_cluster *cluster, int broker);

/* The index of a topic, or -1. */
int sim_topic_find(const sim_view *view, rmq_slice name);

/* How many brokers take messages of a topic as a view has it. */
int sim_view_brokers(const sim_view *view, int n_brokers, int topic);

/* The truth has changed: each name server learns of it after its lag. */
void sim_cluster_changed(sim_cluster *cluster);

/* Calls `handle` for each whole frame that has come on a connection, and takes it away. Bytes that
 * are no frame, or a header that cannot be read, break the run: the core never sends such. `handle`
 * returns false to leave. */
typedef bool sim_frame_handler(void *owner, sim_connection *connection, const rmq_header *header,
                               rmq_slice body);
void sim_take_frames(sim_cluster *cluster, sim_connection *connection, sim_frame_handler *handle,
                     void *owner);

/* Sends bytes `after_us` from now, when the connection still stands then. The buffer's content is
 * taken over; the buffer is empty afterwards. `then_close` ends the connection after them. */
void sim_answer_later(sim_world *world, sim_connection *connection, rmq_buf *bytes,
                      int64_t after_us, bool then_close);

/* A connection of a producer that the broker knows by its heartbeat, or NULL. */
sim_connection *sim_broker_producer(const sim_broker *broker);

/* True for a code that asks for another try. */
bool sim_is_retry_code(int32_t code);

/* Their `received`. */
void sim_broker_received(void *owner, sim_connection *connection);
void sim_namesrv_received(void *owner, sim_connection *connection);

#endif

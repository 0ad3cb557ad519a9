#ifndef RMQ_PRODUCER_CORE_H
#define RMQ_PRODUCER_CORE_H

#include "net/transport.h"
#include "producer/check.h"
#include "producer/gather.h"
#include "producer/hook.h"
#include "producer/pack.h"
#include "producer/policy.h"
#include "producer/producer.h"
#include "producer/trace.h"
#include "route/routes.h"
#include "select/fault.h"
#include "wire/ids.h"

/* What the files of this room share: the producer and one send. */

typedef enum rmq_phase {
  RMQ_PHASE_ROOM,     /* waits until fewer sends are under way; `timer` ends it */
  RMQ_PHASE_ROUTE,    /* waits for the topic's route */
  RMQ_PHASE_HOLD,     /* `hold` has begun */
  RMQ_PHASE_ATTEMPT,  /* `request` is with the transport */
  RMQ_PHASE_PAUSE,    /* `timer` starts the next attempt */
  RMQ_PHASE_GATHERED, /* waits in a group for others that go the same way */
  RMQ_PHASE_CARRIED,  /* its carrier makes the attempts */
  RMQ_PHASE_DOOMED,   /* `timer` ends it with its failure: it failed where it must not end */
  RMQ_PHASE_ENDED     /* completed, or in the pool */
} rmq_phase;

struct rmq_send;

/* Something that has to be done when the route of a send's topic is known, before its first attempt;
 * the caller's struct. */
typedef struct rmq_hold {
  /* True: it takes a while, and rmq_send_go_on(send, false) goes on then, from an event. */
  bool (*begin)(struct rmq_hold *hold, struct rmq_send *send);
  void (*cancel)(struct rmq_hold *hold); /* the send ends meanwhile */
} rmq_hold;

/* One send from its start to its completion. Taken from the producer's pool and given back, with
 * the memory of its buffers. What every send uses stands in front: it is the memory that hundreds
 * of sends under way go through, again and again. */
typedef struct rmq_send {
  rmq_request request; /* the attempt under way */
  rmq_link link; /* in the producer's `active`, in the order of their starts; or in its `pool` */
  rmq_producer *producer;
  uint64_t number; /* counts the sends of this producer */

  /* What is sent. */
  rmq_topic *topic; /* held */
  rmq_slice body;   /* the caller's */
  int32_t flag;
  int32_t sys_flag;
  int32_t reconsume_times;     /* 0 unless the topic is a %RETRY% one */
  int32_t max_reconsume_times; /* -1: not said */

  /* How. */
  rmq_send_done *done;
  void *arg;
  rmq_mono started;
  rmq_mono deadline; /* the end of the budget */
  int64_t attempt_timeout_ms;
  rmq_choose *choose;     /* NULL: the producer chooses, or the queue is given from the start */
  int64_t key;            /* for `choose` */
  rmq_admitted *admitted; /* to be told when the send has got room; NULL afterwards */
  rmq_hold *hold;         /* NULL: nothing to be done first */
  int retries;
  bool oneway;
  bool reply; /* it goes to the broker's reply service */
  bool own;   /* the producer's own: no hook, counter, limit or flush knows of it */
  bool wait;
  bool gathers;       /* it may be gathered, and has not been yet */
  bool carries;       /* it makes the attempts for `members`, and has no message of its own */
  bool timer_message; /* it is to wait, in a way that brokers know since 5.0 */
  uint8_t mode;       /* an rmq_mode */
  uint8_t generation; /* how many hooks stand between this send and the script */

  /* The attempt. */
  bool chosen;     /* `broker` and `queue_id` are what `choose` said */
  bool came_back;  /* it was sent to the same broker once more after "go away" */
  bool asked_anew; /* the route was asked for because the given broker was not known */
  bool encoded;    /* the transport has this attempt's bytes */
  bool has_kept;   /* a result with another status than SEND_OK, in case nothing better comes */
  uint8_t msg_id_len;
  rmq_phase phase;
  int attempts; /* begun so far */
  int pauses;   /* made so far */
  int32_t queue_id;
  rmq_publish
      *publish; /* what `broker` and `addr` point into (unless the queue is given), referenced */
  const char *broker;
  const char *addr;
  rmq_mono attempt_started;
  rmq_fault *fault;         /* the broker's, held; NULL when nothing is noted of attempts */
  rmq_group *group;         /* that it is gathered in, or under way for; NULL: none */
  void *hook_state;         /* the hooks' own */
  size_t index;             /* its position among the messages of one call, from 0 */
  struct rmq_send *carrier; /* of a member, while it is with one */

  int64_t born_ms; /* wall clock, when the send was made */
  char msg_id[RMQ_UNIQUE_ID_MAX];
  rmq_buf properties;
  rmq_buf given; /* the given queue's broker, NUL terminated; empty: the producer chooses */
  rmq_hook_change change; /* what this attempt sends instead of the message's own */
  rmq_pack pack;          /* the body's compressed bytes; a batch has none */
  rmq_failure failure;    /* earlier attempts are its tries; concluded when the send fails */

  /* What only some need. */
  rmq_timer timer;         /* of the phase */
  rmq_link room;           /* in the producer's `waiting` */
  rmq_route_waiter waiter; /* for the route */
  rmq_send_status kept_status;
  int kept_attempt; /* the number of the attempt that brought it */
  rmq_send_reply kept;
  rmq_buf kept_texts; /* what `kept` points into, and the broker's name at its start */
  size_t kept_broker_len;

  /* Batches, see carrier.h. */
  rmq_link member;  /* in its carrier's `members` */
  size_t place;     /* its position in the batch of the last attempt */
  rmq_link members; /* of a carrier, in the order in which they are sent */
  size_t n_members;
  size_t member_bytes;    /* the lengths of their bodies */
  size_t n_encoded;       /* how many there were in the last attempt */
  rmq_timer expiry;       /* the first one's time is over before the carrier's */
  int32_t tried_queue_id; /* of the attempt that failed last */
} rmq_send;

typedef enum rmq_state {
  RMQ_STATE_RUNNING,
  RMQ_STATE_DRAINING, /* shutdown: what is under way may still complete */
  RMQ_STATE_PARTING,  /* shutdown: unregistering */
  RMQ_STATE_SHUT,
  RMQ_STATE_FORKED
} rmq_state;

struct rmq_producer {
  rmq_settings settings;
  rmq_io *io;
  rmq_log log;
  rmq_transport *transport; /* NULL once freed or forked */
  rmq_routes *routes;       /* likewise */
  rmq_serialize serialize;
  rmq_policy_codes retry_codes;
  rmq_faults *faults;
  char *client_id;
  rmq_slice group; /* this and create_topic_key point into settings */
  rmq_slice create_topic_key;
  rmq_id_maker ids;
  rmq_packer packer;
  rmq_failure refusal; /* why the last rmq_producer_send failed at once */

  rmq_state state;
  unsigned depth; /* events being handled; the memory stays until there are none */
  bool dead;      /* rmq_producer_free was called meanwhile */

  rmq_link active;  /* all sends that have not completed, oldest first */
  rmq_link waiting; /* those of them that wait for room, oldest first */
  rmq_link own;     /* those that are the producer's own */
  rmq_link pool;
  size_t pooled;
  uint64_t numbers;
  const rmq_hooks *hooks; /* NULL: nobody is called */
  void *hooks_arg;
  unsigned generation;   /* of the sends that are started now: 0, or that of the hook that runs */
  bool warned_of_timers; /* that a broker is too old for them */
  bool admitting;        /* rmq_producer_admit is on the stack */
  rmq_send *entering;    /* the send that rmq_producer_admit lets begin, while it has not ended */

  rmq_trace *trace; /* NULL: off */
  rmq_gathers gathers;

  rmq_timer detector; /* its next round */
  rmq_link probes;    /* its questions under way */

  rmq_link flushes;      /* who waits for a flush */
  rmq_link queries;      /* who waits for the queues of a topic */
  rmq_link drafts;       /* batches that are being put together */
  rmq_link calls;        /* requests under way that are no sends */
  rmq_link admins;       /* administrative calls under way */
  rmq_link transactions; /* that have not ended, by the numbers of their half messages */
  rmq_map *open;      /* those of them that wait for their caller, by message id; NULL: none yet */
  bool undecided;     /* nobody decides about transactions any more */
  rmq_link questions; /* requests that wait for their reply, or whose send is under way */
  rmq_map *asked;     /* those that wait, by correlation id; NULL: none yet */
  rmq_complaint late, unreadable; /* replies */
  rmq_checks checks;              /* questions about half messages */
  rmq_link enders;                /* who waits for the shutdown */
  rmq_timer end_timer;            /* the next step of the shutdown */
  size_t undelivered;             /* sends that failed because of it */

  rmq_producer_stats stats;
};

/* Between enter and leave the producer's memory stays, whatever a completion does. */
void rmq_producer_enter(rmq_producer *producer);
void rmq_producer_leave(rmq_producer *producer);

/* Sets why something is refused when the producer is not running, and returns RMQ_ESTATE; else
 * 0. */
int rmq_producer_check_state(rmq_producer *producer);

/* send.c: the parts of rmq_producer_send. All that return a status set `refusal`. */
int rmq_send_check_topic(rmq_producer *producer, rmq_slice name);
int rmq_send_check_queue(rmq_producer *producer, const rmq_send_options *options);
/* Gives it an id, and all properties. */
int rmq_send_write_properties(rmq_send *send, const rmq_message *message);
void rmq_send_set_up(rmq_send *send, const rmq_message *message, const rmq_send_options *options,
                     rmq_send_done *done, void *arg);
void rmq_send_reset_attempts(rmq_send *send);
void rmq_send_enlist(rmq_send *send); /* it is under way from now on */
/* Starts a send of the producer's own, also while it is shutting down. It takes no room, and has no
 * part in counters and flushes. Otherwise like rmq_producer_send. */
int rmq_producer_send_own(rmq_producer *producer, const rmq_message *message,
                          const rmq_send_options *options, rmq_send_done *done, void *arg);
/* Gives a send up where it stands, without completing it. */
void rmq_send_withdraw(rmq_send *send);
/* Takes one out of the pool, gives one back, and releases one for good. */
rmq_send *rmq_send_take(rmq_producer *producer);
void rmq_send_give_back(rmq_send *send);
void rmq_send_free(rmq_send *send);

static inline rmq_mono rmq_send_now(const rmq_send *send) {
  return rmq_transport_now(send->producer->transport);
}

/* Who makes the attempts of a send: its carrier, or itself. */
static inline rmq_send *rmq_send_maker(rmq_send *send) {
  return send->carrier ? send->carrier : send;
}

/* True when the message may go to one queue only: given with the call, or chosen by its selector. */
static inline bool rmq_send_has_given_queue(const rmq_send *send) {
  return send->chosen || rmq_buf_len(&send->given) > 0;
}

/* What the attempt sends: the message's own, or what a hook has made of it. */
static inline rmq_slice rmq_send_properties(const rmq_send *send) {
  const rmq_hook_change *change = &send->change;
  return rmq_buf_slice(change->properties ? &change->new_properties : &send->properties);
}

static inline rmq_slice rmq_send_body(const rmq_send *send) {
  return send->change.body ? rmq_buf_slice(&send->change.new_body) : send->body;
}

/* The name of that queue's broker. */
static inline const char *rmq_send_given_broker(const rmq_send *send) {
  return send->chosen ? send->broker : (const char *)rmq_buf_head(&send->given);
}

/* hook.c: what hooks have to say about the attempt to the broker and queue that are chosen; to be
 * called only when the producer has some. Counts the attempt. 0: it is to be made. RMQ_ESTATE: the
 * process has forked and the send is gone. Another: the send is to end with its failure. */
int rmq_hooks_attempt(rmq_send *send);
/* Tells them what the caller is about to get. False when a hook turns it into a failure: the send's
 * own. */
bool rmq_hooks_completed(rmq_send *send, const rmq_completion *completion);
/* Tells them that the end of a transaction is about to be sent. */
void rmq_hooks_end_transaction(rmq_producer *producer, const rmq_hook_transaction *transaction);
void rmq_send_forget_change(rmq_send *send);
/* Refuses what is sent because of a message that a hook has sent because of one, and so on. */
int rmq_hooks_check_generation(rmq_producer *producer, rmq_slice topic);

/* attempt.c: makes the next attempt, or the pause before it, or ends the send. `rested`: the pause
 * has been made. */
void rmq_send_go_on(rmq_send *send, bool rested);
/* Ends the send because its time is over; lets it end so in a later event. */
void rmq_send_end_late(rmq_send *send);
void rmq_send_doom_late(rmq_send *send);
/* Starts an attempt at the broker and queue that are chosen. `another_broker`: there is one that could take
 * the next attempt, so this one does not get all of the time that is left. */
void rmq_send_attempt(rmq_send *send, rmq_mono now, bool another_broker);
void rmq_send_drop_kept(void *kept);        /* releases what the sends to one topic share */
void rmq_send_init_attempt(rmq_send *send); /* once in the life of the struct */
/* True when an attempt to this broker has failed this send. */
bool rmq_send_has_tried(const rmq_send *send, const char *broker);

/* The queue that the producer itself chooses next for this send: an index into publish->queues. */
int32_t rmq_send_pick(rmq_send *send, rmq_publish *publish, rmq_mono now);

/* Makes a queue of a publish the one of the attempts that follow. */
void rmq_send_take_queue(rmq_send *send, rmq_publish *publish, const rmq_publish_queue *queue);

/* outcome.c: what the transport calls at the end of each attempt. */
void rmq_send_attempt_done(rmq_request *request, const rmq_outcome *outcome);
/* Puts a result aside whose texts are in the transport's buffers. */
void rmq_send_keep(rmq_send *send, rmq_slice broker, rmq_send_status status,
                   const rmq_send_reply *reply);
/* True when an attempt may have reached a broker. While none has, another queue may be chosen. */
bool rmq_send_was_written(const rmq_send *send);
void rmq_send_forget_chosen(rmq_send *send);

/* choose.c: lets a send fail, with its failure, in a later event: a send never ends from inside the
 * call that starts it. */
void rmq_send_doom(rmq_send *send);
/* Asks the caller for the queue, out of the topic's known ones. False when there is none:
 * the send fails later, never from inside. */
bool rmq_send_choose(rmq_send *send);

/* faults.c: whether brokers that do badly are avoided, so that attempts are to be noted. */
bool rmq_producer_avoids(const rmq_producer *producer);
/* Lets go of the entry of the broker before, and holds this one (or NULL). */
void rmq_send_hold_fault(rmq_send *send, rmq_fault *fault);
/* Notes in the entry that is held how the attempt ended; before the next one is chosen. */
void rmq_send_note_fault(rmq_send *send, const rmq_outcome *outcome);

/* detector.c: runs when the settings want it. Stopping ends its questions; doing it again does
 * nothing. */
bool rmq_producer_detects(const rmq_producer *producer);
void rmq_producer_start_detector(rmq_producer *producer);
void rmq_producer_stop_detector(rmq_producer *producer);

/* complete.c: ends a send; its memory goes back to the pool. */
void rmq_send_complete(rmq_send *send, const rmq_completion *completion);
/* How a send has ended, or would end now. Sets how long it took in its failure. */
rmq_completion rmq_send_failed_completion(rmq_send *send);
rmq_completion rmq_send_kept_completion(const rmq_send *send);
int64_t rmq_send_elapsed_us(const rmq_send *send);
/* With its failure, concluded already; because the producer shuts down. */
void rmq_send_fail(rmq_send *send);
void rmq_send_fail_shutdown(rmq_send *send);
/* With a result; with the result that was put aside, which is better than any failure; after
 * attempts of which none brought anything better. */
void rmq_send_end_with_success(rmq_send *send, rmq_send_status status, const rmq_send_reply *reply);
void rmq_send_end_with_kept(rmq_send *send);
void rmq_send_end_failed(rmq_send *send);

/* room.c: lets a send go on, or wait for room. */
void rmq_send_begin(rmq_send *send, bool room);
void rmq_send_enter_room(rmq_send *send);
void rmq_send_stop_waiting(rmq_send *send);
void rmq_send_end_without_room(rmq_send *send);
bool rmq_producer_has_room_for(const rmq_producer *producer, size_t n, size_t bytes);
int rmq_producer_refuse_overload(rmq_producer *producer);
/* Starts what waits for room, as far as there is some. */
void rmq_producer_admit(rmq_producer *producer);

/* received.c: answers a request of a broker, for the transport; `owner` is the producer. */
bool rmq_producer_received(void *owner, const char *addr, const rmq_header *header, rmq_slice body);

/* flush.c: looks whether somebody has waited for the send that just completed. */
void rmq_producer_check_flushes(rmq_producer *producer);
void rmq_producer_drop_flushes(rmq_producer *producer);

/* trace.c, only while it is on. Notes how a send ended. */
void rmq_trace_send(const rmq_send *send, const rmq_completion *completion);
/* Sends what is gathered; returns the number of the last trace message. True when all up to this number
 * are acknowledged or lost; when there is nothing to send. */
uint64_t rmq_trace_flush(rmq_trace *trace);
bool rmq_trace_is_through(const rmq_trace *trace, uint64_t number);
bool rmq_trace_is_idle(const rmq_trace *trace);
/* Gives up what is gathered. */
void rmq_trace_drop_gathered(rmq_trace *trace);

/* batch.c */
void rmq_producer_drop_drafts(rmq_producer *producer);

/* queues.c */
void rmq_producer_fail_queries(rmq_producer *producer);
void rmq_producer_drop_queries(rmq_producer *producer);

/* call.c */
void rmq_producer_fail_calls(rmq_producer *producer);
void rmq_producer_drop_calls(rmq_producer *producer);

/* admin.c */
void rmq_producer_fail_admins(rmq_producer *producer);
void rmq_producer_drop_admins(rmq_producer *producer);
/* transaction.c */
struct rmq_half;
/* True when the question is about a transaction that is not over here, so that nobody else may decide:
 * its end answers, for the place that the question names. */
bool rmq_transaction_takes_check(rmq_producer *producer, const struct rmq_half *asked);
/* Whether no transaction is left whose half message was one of the sends up to a number; how many. */
bool rmq_transactions_finished(const rmq_producer *producer, uint64_t up_to);
size_t rmq_transactions_unfinished(const rmq_producer *producer, uint64_t up_to);
/* Gives up those that are open, as undelivered. */
void rmq_producer_leave_transactions(rmq_producer *producer);
void rmq_producer_drop_transactions(rmq_producer *producer);

/* outcome.c: how a request that got no answer is told to users, and Java's number for it, or 0. */
rmq_kind rmq_kind_of_status(int status);
int32_t rmq_java_code_of(rmq_kind kind);

/* shutdown.c */
void rmq_producer_init_end(rmq_producer *producer);
void rmq_producer_check_end(rmq_producer *producer);
void rmq_producer_drop_enders(rmq_producer *producer);

#endif

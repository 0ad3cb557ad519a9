#ifndef RMQ_PRODUCER_CHECK_H
#define RMQ_PRODUCER_CHECK_H

#include "base/clock.h"
#include "base/list.h"
#include "base/wheel.h"
#include "producer/transaction.h"
#include "wire/header.h"
#include "wire/stored.h"

/* Checks: a broker asks what is to become of a half message. It asks any producer of the group that
 * it knows, so the one who asked to store the message may be gone. It asks again, a limited number of
 * times, until it is told; each time its half message has moved to another place.
 *
 * What is asked for twice while the first answer is awaited is answered once, for the newest place:
 * a broker that is told about an older one delivers the message and asks about the newer one all the
 * same. What is asked about a transaction that is still open here waits for its end. */

/* What a broker asks about. */
typedef struct rmq_checked {
  rmq_stored_message message;
  rmq_slice msg_id; /* UNIQ_KEY */
  rmq_slice transaction_id;
  rmq_slice broker; /* its name; empty when the broker does not say it */
} rmq_checked;

/* Somebody is to decide: rmq_producer_checked tells about what, and rmq_producer_end_check must follow,
 * at once or later. Never comes from inside another function of the producer. */
typedef void rmq_check(void *arg, uint64_t id);

/* Something that is logged once a second at most, whoever sends what how often. */
typedef struct rmq_complaint {
  bool made;      /* once at least */
  rmq_mono again; /* when it may be made again */
  size_t silent;  /* how many were not logged since */
} rmq_complaint;

/* The checks of one producer. */
typedef struct rmq_checks {
  rmq_check *decide; /* NULL: nobody answers checks */
  void *arg;
  rmq_link waiting;   /* until fewer are being decided */
  rmq_link deciding;  /* `decide` was called */
  rmq_link answering; /* the broker is being told */
  size_t n_waiting, n_deciding;
  uint64_t ids;
  rmq_timer next;                 /* starts those that found no room before */
  rmq_complaint dropped, ignored; /* checks */
} rmq_checks;

/* From now on checks are decided by `decide`, at most check_concurrency at a time. */
void rmq_producer_set_check(rmq_producer *producer, rmq_check *decide, void *arg);

/* What the check is about, or NULL when it is over (the producer has shut down). Valid until it is
 * ended, or the caller gives control back. */
const rmq_checked *rmq_producer_checked(const rmq_producer *producer, uint64_t id);

/* Answers a check. One that is over is let alone. `remark` is for the broker's log. */
void rmq_producer_end_check(rmq_producer *producer, uint64_t id, rmq_transaction_state state,
                            rmq_slice remark);

/* ---- For the files of this room ---- */

/* True when a complaint may be logged now, about `*n` cases. */
bool rmq_may_complain(rmq_producer *producer, rmq_complaint *complaint, size_t *n);

void rmq_producer_init_checks(rmq_producer *producer);
/* A CHECK_TRANSACTION_STATE has come; inside of the transport's `received`. */
void rmq_producer_check(rmq_producer *producer, const char *from, const rmq_header *header,
                        rmq_slice body);
/* Lets go of those that wait; of those too that are being decided. */
void rmq_producer_drop_waiting_checks(rmq_producer *producer);
void rmq_producer_leave_checks(rmq_producer *producer);
bool rmq_producer_has_checks(const rmq_producer *producer);
void rmq_producer_drop_checks(rmq_producer *producer);

#endif

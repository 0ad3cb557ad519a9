#ifndef SPEC_NATIVE_FAKE_IO_H
#define SPEC_NATIVE_FAKE_IO_H

#include "base/buf.h"
#include "net/io.h"

/* An rmq_io in virtual time, for tests that play the other side byte by byte. Nothing happens
 * but from inside fake_settle and fake_advance, in a fixed order: the timer, the end of the
 * turn, sockets in the order of their opening, lookups. */
typedef struct fake_io fake_io;

enum { FAKE_REFUSED = -111, FAKE_RESET = -104, FAKE_NO_NAME = -3008 };

/* What happens to those who connect to an address, or look up a name. */
typedef struct fake_rule {
  const char *name;  /* "10.0.0.1:9876" or a host name; the first rule with the name counts */
  int status;        /* 0 or a negative code */
  int at_once;       /* `open` itself gives the code */
  int64_t delay_ms;  /* until it happens; -1: never */
  const char *found; /* of a host name: numeric addresses with a space between */
} fake_rule;

/* Both ends of a connection. Tests may set what the first block holds. */
struct rmq_socket {
  size_t read_most;  /* a read gives no more than this */
  size_t write_room; /* bytes that writes may still take */
  rmq_buf sent;      /* what the core has written and the test has not consumed */

  fake_io *fake;
  rmq_buf coming; /* what the core can read */
  int end;        /* after `coming`: a code for read, 0: nothing */
  bool connected, closing, wants_write;
  int64_t decided_at; /* when connecting succeeds or fails, us; INT64_MAX: never */
  int status;
  char address[RMQ_ADDRESS_TEXT];
  const rmq_io_events *events;
  void *owner;
};

fake_io *fake_new(void);
/* All sockets must have been closed. */
void fake_free(fake_io *fake);
rmq_io *fake_io_of(fake_io *fake);

/* Rules are looked at when something is opened; without one a connection stands at once. The array
 * ends with a rule without a name and is not copied. */
void fake_set_rules(fake_io *fake, const fake_rule *rules);

/* Delivers all events until nothing more happens at the present time. */
void fake_settle(fake_io *fake);
/* Lets time pass, and everything happen at its time. */
void fake_advance(fake_io *fake, int64_t ms);
/* Time passes and nothing happens, as when a process was stopped. */
void fake_jump(fake_io *fake, int64_t ms);

size_t fake_opened(const fake_io *fake); /* sockets ever opened */
size_t fake_alive(const fake_io *fake);  /* those whose `closed` has not come */
size_t fake_lookups(const fake_io *fake);
int64_t fake_wakes(const fake_io *fake);
/* The socket opened last; NULL when it is gone. */
rmq_socket *fake_last(fake_io *fake);

/* The other side sends bytes, or ends the connection (RMQ_ECLOSED: in order). */
void fake_send(rmq_socket *socket, const void *bytes, size_t len);
void fake_end(rmq_socket *socket, int code);

#endif

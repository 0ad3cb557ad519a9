#ifndef RMQ_NET_IO_H
#define RMQ_NET_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"
#include "wire/ids.h"

/* How the core meets the world. Everything from base/ to producer/ gets time, chance, names and
 * bytes through this table and from nowhere else, so that a simulated world can stand in for the
 * real one.
 *
 * Rules that every implementation keeps:
 * - No event (rmq_io_events, rmq_io_host, lookup result) is delivered from inside one of these
 *   calls.
 * - `now` moves only between events.
 * - write may take fewer bytes than it is given, read may give one byte at a time.
 * - After close only `closed` comes, exactly once, and last.
 * - Nothing here is called from another thread. */

typedef struct rmq_io rmq_io;
typedef struct rmq_socket rmq_socket; /* the implementation's */
typedef struct rmq_lookup rmq_lookup; /* the implementation's: a name resolution under way */

/* A network address in numbers. */
typedef struct rmq_address {
  uint8_t ip[16];
  int ip_len;     /* 4 or 16 */
  uint32_t scope; /* IPv6 scope id, else 0 */
  uint16_t port;  /* host order */
} rmq_address;

/* What happens to a socket. `owner` is what open was given. */
typedef struct rmq_io_events {
  void (*connected)(void *owner);
  /* Level: comes again as long as there is something to read, the end of the stream included. */
  void (*readable)(void *owner);
  /* While want_write is on and the socket takes bytes. */
  void (*writable)(void *owner);
  /* Last and exactly once: after close (reason 0), or because connecting failed (then without
   * close having been called). `reason` is 0 or the implementation's negative code, for text().
   * The socket is gone after it. */
  void (*closed)(void *owner, int reason);
} rmq_io_events;

/* What happens to the core as a whole. */
typedef struct rmq_io_host {
  void (*wake)(void *owner);  /* the time of wake_at has come */
  void (*flush)(void *owner); /* the turn ends (asked for by end_of_turn) */
} rmq_io_host;

typedef struct rmq_io_calls {
  rmq_mono (*now)(rmq_io *io);
  rmq_wall (*wall)(rmq_io *io);
  uint64_t (*random)(rmq_io *io);
  /* Who we are. Changes in a forked child. */
  const rmq_identity *(*identity)(rmq_io *io);

  /* One timer: wake comes once at or soon after this time. A new time replaces the old one;
   * RMQ_NEVER clears it. */
  void (*wake_at)(rmq_io *io, rmq_mono at);
  /* flush comes once before the loop waits again. */
  void (*end_of_turn)(rmq_io *io);

  /* Resolves a host name (never a numeric address; rmq_address_parse does those). `done` comes
   * once with `n` addresses whose port is 0 (n > 0), or with a negative code for text(); not
   * after lookup_cancel. */
  rmq_lookup *(*lookup)(rmq_io *io, const char *host,
                        void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                        void *arg);
  void (*lookup_cancel)(rmq_io *io, rmq_lookup *lookup);

  /* Starts connecting. Returns 0 and the socket, or a negative code when not even a socket could
   * be made. */
  int (*open)(rmq_io *io, const rmq_address *address, const rmq_io_events *events, void *owner,
              rmq_socket **out);
  /* Bytes read (> 0); 0 when there is nothing now; RMQ_ECLOSED at the end of the stream; another
   * negative code when the connection broke. */
  long (*read)(rmq_socket *socket, void *into, size_t size);
  /* Bytes taken (>= 0), 0 when the socket takes none now, or a negative code when the connection
   * broke. */
  long (*write)(rmq_socket *socket, const rmq_slice *parts, size_t n);
  void (*want_write)(rmq_socket *socket, bool on);
  void (*close)(rmq_socket *socket);

  /* Text for a negative code of this implementation ("connection refused"). Never NULL. */
  const char *(*text)(rmq_io *io, int code);
} rmq_io_calls;

/* An implementation has this at its start. The core sets `host` and `owner` before anything
 * else. */
struct rmq_io {
  const rmq_io_calls *calls;
  const rmq_io_host *host;
  void *owner;
};

/* Parses a numeric IPv4 or IPv6 host (no brackets; "fe80::1%2" with a numeric scope). False when
 * it is a name. */
bool rmq_address_parse(rmq_slice host, uint16_t port, rmq_address *out);

/* Writes "1.2.3.4:9876" or "[::1]:9876", NUL terminated; RMQ_ADDRESS_TEXT bytes are always
 * enough. */
#define RMQ_ADDRESS_TEXT 72
void rmq_address_format(const rmq_address *address, char out[RMQ_ADDRESS_TEXT]);

#endif

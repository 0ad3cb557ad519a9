#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/uv/uv_state.h"

typedef enum socket_state { SOCKET_CONNECTING, SOCKET_OPEN, SOCKET_CLOSING } socket_state;

struct rmq_socket {
  uv_poll_t poll;
  rmq_uv_io *uv;
  int fd;
  socket_state state;
  bool wants_write;
  int reason; /* for `closed` */
  const rmq_io_events *events;
  void *owner;
};

enum { PARTS = 16 };

static void on_closed(uv_handle_t *handle) {
  rmq_socket *s = handle->data;
  rmq_uv_io *uv = s->uv;
  rmq_uv_event_begin(uv);
  s->events->closed(s->owner, s->reason);
  rmq_uv_event_end(uv);
  free(s);
  rmq_uv_release(uv);
}

static void close_with(rmq_socket *s, int reason) {
  if (s->state == SOCKET_CLOSING) return;
  s->state = SOCKET_CLOSING;
  s->reason = reason;
  uv_poll_stop(&s->poll);
  uv_close((uv_handle_t *)&s->poll, on_closed);
  close(s->fd); /* at once, so that the peer learns of it now; libuv has let go of it */
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(rmq_socket *s) {
  int events = s->state == SOCKET_CONNECTING ? UV_WRITABLE
               : s->wants_write              ? UV_READABLE | UV_WRITABLE
                                             : UV_READABLE;
  uv_poll_start(&s->poll, events, on_poll);
}

/* A socket that connects to a free port of its own machine may be given that very port, and then
 * talks to itself. */
static bool talks_to_itself(int fd) {
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t here_len = sizeof here, there_len = sizeof there;
  if (getsockname(fd, (struct sockaddr *)&here, &here_len) != 0) return false;
  if (getpeername(fd, (struct sockaddr *)&there, &there_len) != 0) return false;
  return here_len == there_len && memcmp(&here, &there, here_len) == 0;
}

static void finish_connect(rmq_socket *s, int status) {
  int error = 0;
  socklen_t len = sizeof error;
  if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
  if (error == 0 && status < 0) error = -status;
  if (error == 0 && talks_to_itself(s->fd)) error = ECONNREFUSED;
  if (error != 0) {
    close_with(s, -error);
    return;
  }
  s->state = SOCKET_OPEN;
  watch(s);
  s->events->connected(s->owner);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  rmq_socket *s = poll->data;
  rmq_uv_event_begin(s->uv);
  if (s->state == SOCKET_CONNECTING) {
    finish_connect(s, status);
  } else if (s->state == SOCKET_OPEN) {
    /* On an error libuv stops watching. The owner learns what it is from reading. */
    if (status < 0) {
      watch(s);
      events = UV_READABLE;
    }
    if (events & UV_READABLE) s->events->readable(s->owner);
    if (s->state == SOCKET_OPEN && s->wants_write && (events & UV_WRITABLE)) {
      s->events->writable(s->owner);
    }
  }
  rmq_uv_event_end(s->uv);
}

static socklen_t native_address(const rmq_address *address, struct sockaddr_storage *out) {
  memset(out, 0, sizeof *out);
  if (address->ip_len == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address->port);
    memcpy(&v4->sin_addr, address->ip, 4);
    return sizeof *v4;
  }
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(address->port);
  v6->sin6_scope_id = address->scope;
  memcpy(&v6->sin6_addr, address->ip, 16);
  return sizeof *v6;
}

/* A connecting socket, or a negative code. */
static int start_connect(const rmq_address *address) {
  struct sockaddr_storage to;
  socklen_t len = native_address(address, &to);
  int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, (const struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS) {
    int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

int rmq_uv_open(rmq_io *io, const rmq_address *address, const rmq_io_events *events, void *owner,
                rmq_socket **out) {
  rmq_uv_io *uv = rmq_uv_of(io);
  int fd = start_connect(address);
  if (fd < 0) return fd;
  rmq_socket *s = rmq_alloc_zero(1, sizeof *s);
  int status = uv_poll_init(uv->loop, &s->poll, fd);
  if (status != 0) {
    close(fd);
    free(s);
    return status;
  }
  s->poll.data = s;
  s->uv = uv;
  s->fd = fd;
  s->events = events;
  s->owner = owner;
  uv->users++;
  uv_unref((uv_handle_t *)&s->poll);
  watch(s);
  *out = s;
  return 0;
}

long rmq_uv_read(rmq_socket *s, void *into, size_t size) {
  ssize_t got;
  do {
    got = recv(s->fd, into, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return (long)got;
  if (got == 0) return RMQ_ECLOSED;
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

long rmq_uv_write(rmq_socket *s, const rmq_slice *parts, size_t n) {
  struct iovec vec[PARTS];
  if (n > PARTS) n = PARTS; /* a short write */
  for (size_t i = 0; i < n; i++) {
    vec[i] = (struct iovec){.iov_base = (void *)(uintptr_t)parts[i].ptr, .iov_len = parts[i].len};
  }
  struct msghdr message = {.msg_iov = vec, .msg_iovlen = n};
  ssize_t taken;
  do {
    taken = sendmsg(s->fd, &message, MSG_NOSIGNAL);
  } while (taken < 0 && errno == EINTR);
  if (taken >= 0) return (long)taken;
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

void rmq_uv_want_write(rmq_socket *s, bool on) {
  if (s->wants_write == on) return;
  s->wants_write = on;
  if (s->state == SOCKET_OPEN) watch(s);
}

void rmq_uv_close(rmq_socket *s) { close_with(s, 0); }

/* A name server and a broker that do nothing but answer.
 *
 *   bench_null_server [--queues N]
 *
 * Prints one line, "namesrv 127.0.0.1:PORT broker 127.0.0.1:PORT", then answers until its standard
 * input ends, and prints "sends N": how many messages it was given. A program that is measured
 * against it spends its time on itself and the kernel, since one read of many requests is answered
 * by one write, and nothing is allocated or stored.
 *
 * A client that sends faster than it reads is not read from until it has taken what was answered,
 * so a connection never holds more than its two buffers. A client that sends anything but
 * RocketMQ's frames is closed, with a line on standard error. Linux only (epoll). */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "null_protocol.h"

enum {
  BUFFER_SIZE = 256 * 1024, /* of requests, and of answers; the former grows for a longer frame */
  MAX_EVENTS = 64,
  DEFAULT_QUEUES = 8,
  MAX_QUEUES = 65536
};

/* One accepted connection. */
struct connection {
  struct connection *next;
  struct connection *previous;
  int fd;
  bool blocked;             /* waiting until the client takes answers; nothing is read meanwhile */
  uint8_t *in;              /* bytes read, owned */
  size_t in_capacity;       /* size of in */
  size_t in_start;          /* first byte of in that is not answered yet */
  size_t in_end;            /* end of what was read */
  size_t out_start;         /* first byte of out that the socket has not taken */
  size_t out_end;           /* end of what was answered */
  uint8_t out[BUFFER_SIZE]; /* answers */
};

struct server {
  int epoll;
  int namesrv;                    /* listening socket */
  int broker;                     /* listening socket */
  int input;                      /* standard input */
  bool over;                      /* standard input has ended */
  struct connection *connections; /* all of them, in no order */
  struct rmq_null_replies replies;
};

static _Noreturn void die(const char *what) {
  fprintf(stderr, "bench_null_server: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Epoll gives `source` back with each event: a connection, or the address of one of the server's
 * own descriptors. */
static void watch(struct server *server, int operation, int fd, uint32_t events, void *source) {
  struct epoll_event event = {.events = events, .data = {.ptr = source}};
  if (epoll_ctl(server->epoll, operation, fd, &event) != 0) die("epoll_ctl");
}

static void connection_free(struct connection *connection) {
  close(connection->fd); /* which also takes it out of the epoll set */
  free(connection->in);
  free(connection);
}

static void connection_close(struct server *server, struct connection *connection) {
  if (connection->next != NULL) connection->next->previous = connection->previous;
  if (connection->previous != NULL) {
    connection->previous->next = connection->next;
  } else {
    server->connections = connection->next;
  }
  connection_free(connection);
}

static void connection_open(struct server *server, int fd) {
  struct connection *connection = calloc(1, sizeof *connection);
  if (connection == NULL) die("memory for a connection");
  connection->fd = fd;
  connection->in = malloc(BUFFER_SIZE);
  if (connection->in == NULL) die("memory for a connection");
  connection->in_capacity = BUFFER_SIZE;
  connection->next = server->connections;
  if (connection->next != NULL) connection->next->previous = connection;
  server->connections = connection;
  watch(server, EPOLL_CTL_ADD, fd, EPOLLIN, connection);
}

static void accept_one(struct server *server, int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    die("accept");
  }
  int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) die("TCP_NODELAY");
  connection_open(server, fd);
}

/* Answers complete requests while there is room for answers. False when the client speaks
 * something else. */
static bool answer_all(struct server *server, struct connection *connection) {
  size_t answer_max = rmq_null_answer_max();
  while (BUFFER_SIZE - connection->out_end >= answer_max) {
    struct rmq_null_request request;
    int64_t size = rmq_null_parse(connection->in + connection->in_start,
                                  connection->in_end - connection->in_start, &request);
    if (size < 0) {
      fputs("bench_null_server: a connection is closed: what it sent is no frame of RocketMQ\n",
            stderr);
      return false;
    }
    if (size == 0) return true;
    connection->in_start += (size_t)size;
    connection->out_end +=
        rmq_null_answer(&server->replies, &request, connection->out + connection->out_end);
  }
  return true;
}

/* Writes what is answered, as far as the socket takes it. False when the connection is gone. */
static bool flush(struct connection *connection) {
  while (connection->out_start < connection->out_end) {
    ssize_t sent = send(connection->fd, connection->out + connection->out_start,
                        connection->out_end - connection->out_start, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    connection->out_start += (size_t)sent;
  }
  connection->out_start = connection->out_end = 0;
  return true;
}

/* Makes room behind in_end: moves an incomplete frame to the front, and doubles the buffer for one
 * that fills it. */
static void make_room(struct connection *connection) {
  size_t size = connection->in_end - connection->in_start;
  if (connection->in_start > 0)
    memmove(connection->in, connection->in + connection->in_start, size);
  connection->in_start = 0;
  connection->in_end = size;
  if (size < connection->in_capacity) return;
  uint8_t *larger =
      realloc(connection->in, connection->in_capacity * 2); /* at most one largest frame */
  if (larger == NULL) die("memory for a large frame");
  connection->in = larger;
  connection->in_capacity *= 2;
}

/* One read. False when the connection is gone. */
static bool read_some(struct connection *connection) {
  make_room(connection);
  ssize_t got = read(connection->fd, connection->in + connection->in_end,
                     connection->in_capacity - connection->in_end);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  connection->in_end += (size_t)got;
  return got > 0;
}

/* Waits for room to write while answers are left, and for requests otherwise. */
static void set_blocked(struct server *server, struct connection *connection, bool blocked) {
  if (connection->blocked == blocked) return;
  connection->blocked = blocked;
  watch(server, EPOLL_CTL_MOD, connection->fd, blocked ? EPOLLOUT : EPOLLIN, connection);
}

/* Answers and writes in turn until the requests or the socket's room are used up. */
static bool serve(struct server *server, struct connection *connection) {
  do {
    if (!answer_all(server, connection)) return false;
    if (connection->out_end == 0) break;
    if (!flush(connection)) return false;
  } while (connection->out_end == 0);
  set_blocked(server, connection, connection->out_end > 0);
  return true;
}

static void connection_ready(struct server *server, struct connection *connection) {
  bool alive = connection->blocked ? flush(connection) : read_some(connection);
  if (!alive || !serve(server, connection)) connection_close(server, connection);
}

/* Input is thrown away; only its end counts. */
static void input_ready(struct server *server) {
  char ignored[256];
  ssize_t got = read(server->input, ignored, sizeof ignored);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) server->over = true;
}

static void run(struct server *server) {
  struct epoll_event events[MAX_EVENTS];
  while (!server->over) {
    int count = epoll_wait(server->epoll, events, MAX_EVENTS, -1);
    if (count < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < count; i++) {
      void *source = events[i].data.ptr;
      if (source == &server->input) {
        input_ready(server);
      } else if (source == &server->namesrv || source == &server->broker) {
        accept_one(server, *(int *)source);
      } else {
        connection_ready(server, source);
      }
    }
  }
}

/* Listens on a free port of the loopback address, and writes "ip:port" to `address`. */
static int listen_somewhere(char *address, size_t size) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t name_size = sizeof name;
  if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) != 0 ||
      listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&name, &name_size) != 0) {
    die("listening on 127.0.0.1");
  }
  snprintf(address, size, "127.0.0.1:%u", (unsigned)ntohs(name.sin_port));
  return fd;
}

/* Epoll refuses files and /dev/null, whose end cannot be waited for. */
static void watch_input(struct server *server) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &server->input}};
  if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->input, &event) == 0) return;
  fputs("bench_null_server: standard input must be a pipe or a terminal: it ends the server\n",
        stderr);
  exit(2);
}

static void start(struct server *server, unsigned queues) {
  char namesrv[32];
  char broker[32];
  server->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (server->epoll < 0) die("epoll_create1");
  server->input = STDIN_FILENO;
  watch_input(server);
  server->namesrv = listen_somewhere(namesrv, sizeof namesrv);
  server->broker = listen_somewhere(broker, sizeof broker);
  watch(server, EPOLL_CTL_ADD, server->namesrv, EPOLLIN, &server->namesrv);
  watch(server, EPOLL_CTL_ADD, server->broker, EPOLLIN, &server->broker);
  rmq_null_replies_init(&server->replies, broker, queues);
  printf("namesrv %s broker %s\n", namesrv, broker);
  fflush(stdout);
}

static void stop(struct server *server) {
  struct connection *next;
  for (struct connection *at = server->connections; at != NULL; at = next) {
    next = at->next;
    connection_free(at);
  }
  close(server->namesrv);
  close(server->broker);
  close(server->epoll);
  printf("sends %llu\n", (unsigned long long)server->replies.sends);
}

static unsigned queues_argument(int argc, char **argv) {
  if (argc == 1) return DEFAULT_QUEUES;
  char *end = NULL;
  long queues = argc == 3 && strcmp(argv[1], "--queues") == 0 ? strtol(argv[2], &end, 10) : 0;
  if (queues < 1 || queues > MAX_QUEUES || *end != '\0') {
    fprintf(stderr, "usage: bench_null_server [--queues N]   (N from 1 to %d, default %d)\n",
            MAX_QUEUES, DEFAULT_QUEUES);
    exit(2);
  }
  return (unsigned)queues;
}

int main(int argc, char **argv) {
  unsigned queues = queues_argument(argc, argv);
  struct server server = {0};
  start(&server, queues);
  run(&server);
  stop(&server);
  return 0;
}

/* The transport's limit: what a message costs when nothing is done for it but the transport.
 *
 *   bench_limit ADDRESS WINDOW COUNT         for example: bench_limit 127.0.0.1:10911 256 1000000
 *
 * Sends COUNT messages of 128 bytes to a broker with at most WINDOW of them unanswered. The frames
 * were encoded before the clock starts, one write carries as many as the window allows, and
 * replies are split and counted, not read. So no producer can be cheaper on the same socket, and
 * the number to look at is how many times this one needs.
 *
 * Prints one line, "cpu_us A per_second B": processor time (user and system) per acknowledged
 * message in microseconds, and acknowledged messages a second. With WINDOW 1, 1000000 / B is the
 * round trip in microseconds. Exits 1, saying why, when the broker does not answer (10 seconds) or
 * refuses the message. */
#define _GNU_SOURCE /* memmem */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"

enum {
  BODY_SIZE = 128,
  FRAME_MAX = 512,       /* one encoded frame; 364 are used */
  WINDOW_MAX = 65536,    /* also bounds the memory for encoded frames */
  IN_SIZE = 256 * 1024,  /* bytes of replies taken by one read */
  REPLY_MAX = 64 * 1024, /* a send's reply is far smaller; more means that the peer is no broker */
  SILENCE_MS = 10000,
  CODE_SEND_MESSAGE_V2 = 310,
  CLIENT_VERSION = 479
};

struct limit {
  int fd;
  uint8_t *frames;     /* `window` frames of one size, and the same again behind them, owned */
  size_t frame_size;   /* bytes of one frame */
  size_t window;       /* most messages unanswered */
  size_t write_at;     /* next byte of `frames` to write, always in their first half */
  uint64_t bytes_left; /* bytes of frames that the run has still to write */
  uint64_t written;    /* messages written whole */
  uint64_t answered;   /* replies */
  uint8_t *in;         /* IN_SIZE bytes, owned */
  size_t in_size;      /* bytes of an incomplete reply at the start of `in` */
};

static _Noreturn void die(const char *what) {
  fprintf(stderr, "bench_limit: %s\n", what);
  exit(1);
}

static _Noreturn void die_errno(const char *what) {
  fprintf(stderr, "bench_limit: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* --- one frame, as a producer would write it --- */

static uint8_t *put_field(uint8_t *at, char key, const char *value) {
  at = rmq_bench_put16(at, 1);
  *at++ = (uint8_t)key;
  uint8_t *start = at + 4;
  uint8_t *end = start;
  while (*value != '\0') *end++ = (uint8_t)*value++;
  rmq_bench_put32(at, (uint32_t)(end - start));
  return end;
}

/* The fields of the V2 send header. The one that is missing, l, is only written for a consumer's
 * retries. */
static uint8_t *put_fields(uint8_t *at) {
  static const struct {
    char key;
    const char *value;
  } fields[] = {
      {'a', "bench-producer"}, /* group */
      {'b', "Bench"},          /* topic */
      {'c', "TBW102"},         /* default topic */
      {'d', "4"},              /* its queues */
      {'e', "0"},              /* queue */
      {'f', "0"},              /* system flag */
      {'g', "1700000000000"},  /* born timestamp */
      {'h', "0"},              /* flag */
      {'i',
       "UNIQ_KEY\1"
       "7F00000104D218B4AAC20B51C6F00000\2"
       "WAIT\1"
       "true\2"},
      {'j', "0"},           /* times consumed again */
      {'k', "false"},       /* unit mode */
      {'m', "false"},       /* batch */
      {'n', "null-broker"}, /* broker */
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    at = put_field(at, fields[i].key, fields[i].value);
  return at;
}

/* Writes one frame with a ROCKETMQ header to `frame` and gives its size. */
static size_t put_frame(uint8_t *frame, uint32_t opaque) {
  uint8_t *at = rmq_bench_put16(frame + 8, CODE_SEND_MESSAGE_V2);
  *at++ = 0; /* language: JAVA */
  at = rmq_bench_put16(at, CLIENT_VERSION);
  at = rmq_bench_put32(at, opaque);
  at = rmq_bench_put32(at, 0); /* flag: a request that wants an answer */
  at = rmq_bench_put32(at, 0); /* no remark */
  uint8_t *fields_end = put_fields(at + 4);
  rmq_bench_put32(at, (uint32_t)(fields_end - at) - 4);
  memset(fields_end, 'x', BODY_SIZE);
  size_t size = (size_t)(fields_end - frame) + BODY_SIZE;
  rmq_bench_put32(frame, (uint32_t)size - 4);
  rmq_bench_put32(frame + 4, (uint32_t)(size - BODY_SIZE - 8) | 1U << 24); /* 1: ROCKETMQ */
  return size;
}

/* The frames stand twice behind each other so that a whole window can be written by one call from
 * wherever the last one ended. */
static void encode_frames(struct limit *limit) {
  limit->frames = malloc(2 * limit->window * FRAME_MAX);
  if (limit->frames == NULL) die("no memory for the frames");
  for (size_t i = 0; i < 2 * limit->window; i++) {
    uint32_t opaque = (uint32_t)(i % limit->window);
    limit->frame_size = put_frame(limit->frames + i * limit->frame_size, opaque);
  }
}

/* --- the run --- */

/* Writes as many frames as the window allows. False when the socket takes no more for now. */
static bool write_window(struct limit *limit) {
  size_t round = limit->window * limit->frame_size;
  for (;;) {
    /* Bytes that the window allows, counted from the frame that is written in part, if one is. */
    uint64_t part = limit->write_at % limit->frame_size;
    uint64_t size = (limit->window - (limit->written - limit->answered)) * limit->frame_size - part;
    if (size > limit->bytes_left) size = limit->bytes_left;
    if (size == 0) return true;
    ssize_t sent =
        send(limit->fd, limit->frames + limit->write_at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) die_errno("writing");
    limit->written += ((uint64_t)sent + part) / limit->frame_size;
    limit->bytes_left -= (uint64_t)sent;
    limit->write_at = (limit->write_at + (size_t)sent) % round;
  }
}

/* Counts the complete replies in `in` and moves the incomplete one to the front. */
static void count_replies(struct limit *limit) {
  size_t at = 0;
  while (limit->in_size - at >= 4) {
    uint64_t size = 4 + (uint64_t)rmq_bench_get32(limit->in + at);
    if (size > REPLY_MAX) die("the peer sent something that is no reply of a broker");
    if (limit->in_size - at < size) break;
    at += (size_t)size;
    limit->answered++;
  }
  if (limit->answered > limit->written) die("the peer sent more replies than there were messages");
  limit->in_size -= at;
  if (at > 0) memmove(limit->in, limit->in + at, limit->in_size);
}

/* One read. It waits for a reply unless `flags` has MSG_DONTWAIT. */
static void read_replies(struct limit *limit, int flags) {
  ssize_t got = recv(limit->fd, limit->in + limit->in_size, IN_SIZE - limit->in_size, flags);
  if (got == 0) die("the broker closed the connection");
  if (got < 0 && errno == EINTR) return;
  if (got < 0 && errno == EAGAIN) {
    if (flags & MSG_DONTWAIT) return;
    die("no reply for 10 seconds");
  }
  if (got < 0) die_errno("reading");
  limit->in_size += (size_t)got;
  count_replies(limit);
}

/* Waits until the socket takes more bytes or has some, which needs one more call than waiting in
 * the read. */
static void wait_either(struct limit *limit) {
  struct pollfd socket = {.fd = limit->fd, .events = POLLIN | POLLOUT};
  if (poll(&socket, 1, SILENCE_MS) == 0) die("the broker took nothing for 10 seconds");
}

static void send_all(struct limit *limit, uint64_t count) {
  limit->bytes_left = count * limit->frame_size;
  uint64_t goal = limit->answered + count;
  while (limit->answered < goal) {
    if (write_window(limit)) {
      read_replies(limit, 0);
    } else {
      wait_either(limit);
      read_replies(limit, MSG_DONTWAIT);
    }
  }
}

/* Sends one message and looks at its reply, so that refusals are not measured. Its bytes stay
 * behind in `in`. */
static void check_first_reply(struct limit *limit) {
  send_all(limit, 1);
  static const char stored[] = "\"code\":0,";
  if (memmem(limit->in, REPLY_MAX, stored, sizeof stored - 1) == NULL)
    die("the broker refused the first message");
}

/* --- the frame around it --- */

static uint64_t cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
         (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void measure(struct limit *limit, uint64_t count) {
  uint64_t cpu = cpu_us();
  uint64_t started = now_ns();
  send_all(limit, count);
  double seconds = (double)(now_ns() - started) / 1e9;
  printf("cpu_us %.4f per_second %.0f\n", (double)(cpu_us() - cpu) / (double)count,
         (double)count / seconds);
}

static void connect_to(struct limit *limit, const char *address) {
  char host[INET_ADDRSTRLEN];
  unsigned port = 0;
  struct sockaddr_in name = {.sin_family = AF_INET};
  if (sscanf(address, "%15[0-9.]:%5u", host, &port) != 2 || port > 65535 ||
      inet_pton(AF_INET, host, &name.sin_addr) != 1) {
    die("the address is not written as 127.0.0.1:10911");
  }
  name.sin_port = htons((uint16_t)port);
  limit->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (limit->fd < 0 || connect(limit->fd, (struct sockaddr *)&name, sizeof name) != 0)
    die_errno(address);
  int on = 1;
  struct timeval silence = {.tv_sec = SILENCE_MS / 1000};
  if (setsockopt(limit->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
      setsockopt(limit->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence) != 0) {
    die_errno("setting up the socket");
  }
}

/* Reads a whole number from 1 to `max`, or ends the program. */
static uint64_t number_argument(const char *text, uint64_t max, const char *name) {
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && value >= 1 && value <= max)
    return value;
  fprintf(stderr, "bench_limit: %s must be from 1 to %llu, not \"%s\"\n", name,
          (unsigned long long)max, text);
  exit(2);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fputs("usage: bench_limit ADDRESS WINDOW COUNT\n", stderr);
    return 2;
  }
  struct limit limit = {.window = (size_t)number_argument(argv[2], WINDOW_MAX, "WINDOW")};
  uint64_t count = number_argument(argv[3], 1000000000, "COUNT");
  limit.in = calloc(1, IN_SIZE);
  if (limit.in == NULL) die("no memory for the replies");
  encode_frames(&limit);
  connect_to(&limit, argv[1]);
  check_first_reply(&limit);
  measure(&limit, count);
  close(limit.fd);
  free(limit.frames);
  free(limit.in);
  return 0;
}

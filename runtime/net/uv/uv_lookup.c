#include <stdlib.h>

#include "base/memory.h"
#include "net/uv/uv_state.h"

/* A lookup runs on libuv's threads and cannot always be stopped, so one that was given up lives on
 * until its thread comes back; it touches neither io nor owner then. */
struct rmq_lookup {
  uv_getaddrinfo_t request;
  uv_timer_t late; /* reports a lookup that could not even be started */
  int status;      /* of that */
  rmq_uv_io *uv;   /* NULL: given up */
  void (*done)(void *arg, int status, const rmq_address *found, size_t n);
  void *arg;
};

static bool convert(const struct sockaddr *from, rmq_address *to) {
  *to = (rmq_address){0};
  if (from->sa_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
    memcpy(to->ip, &v4->sin_addr, 4);
    to->ip_len = 4;
    return true;
  }
  if (from->sa_family != AF_INET6) return false;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
  memcpy(to->ip, &v6->sin6_addr, 16);
  to->ip_len = 16;
  to->scope = v6->sin6_scope_id;
  return true;
}

static void report(rmq_lookup *lookup, int status, const struct addrinfo *list) {
  rmq_uv_io *uv = lookup->uv;
  size_t n = 0, room = 0;
  for (const struct addrinfo *at = list; at; at = at->ai_next) room++;
  rmq_address *found = rmq_alloc(room * sizeof *found);
  for (const struct addrinfo *at = list; at; at = at->ai_next) {
    if (convert(at->ai_addr, &found[n])) n++;
  }
  if (status == 0 && n == 0) status = UV_EAI_NODATA;
  rmq_uv_event_begin(uv);
  lookup->done(lookup->arg, status, found, n);
  rmq_uv_event_end(uv);
  free(found);
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *list) {
  rmq_lookup *lookup = request->data;
  if (lookup->uv) report(lookup, status, list);
  uv_freeaddrinfo(list);
  free(lookup);
}

static void free_late(uv_handle_t *handle) { free(handle->data); }

static void on_late(uv_timer_t *timer) {
  rmq_lookup *lookup = timer->data;
  if (lookup->uv) report(lookup, lookup->status, NULL);
  uv_close((uv_handle_t *)timer, free_late);
}

rmq_lookup *rmq_uv_lookup(rmq_io *io, const char *host,
                          void (*done)(void *arg, int status, const rmq_address *found, size_t n),
                          void *arg) {
  rmq_lookup *lookup = rmq_alloc_zero(1, sizeof *lookup);
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  lookup->uv = rmq_uv_of(io);
  lookup->done = done;
  lookup->arg = arg;
  lookup->request.data = lookup;
  lookup->status = uv_getaddrinfo(lookup->uv->loop, &lookup->request, on_found, host, NULL, &hints);
  if (lookup->status != 0) {
    /* For example a name that is too long. No event may come from in here. */
    uv_timer_init(lookup->uv->loop, &lookup->late);
    lookup->late.data = lookup;
    uv_timer_start(&lookup->late, on_late, 0, 0);
    uv_unref((uv_handle_t *)&lookup->late);
  }
  return lookup;
}

void rmq_uv_lookup_cancel(rmq_io *io, rmq_lookup *lookup) {
  (void)io;
  lookup->uv = NULL;
  if (lookup->status == 0) uv_cancel((uv_req_t *)&lookup->request);
}

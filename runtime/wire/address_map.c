#include "wire/address_map.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/namesrv.h"

typedef struct entry {
  rmq_slice whole;
  rmq_slice advertised;
  rmq_slice reachable;
} entry;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static rmq_slice trimmed(rmq_slice text) {
  while (text.len > 0 && is_blank(text.ptr[0])) text = rmq_slice_make(text.ptr + 1, text.len - 1);
  while (text.len > 0 && is_blank(text.ptr[text.len - 1])) text.len--;
  return text;
}

/* Splits at the first `mark`; false when there is none. */
static bool split(rmq_slice text, char mark, rmq_slice *left, rmq_slice *right) {
  const char *at = text.len ? memchr(text.ptr, mark, text.len) : NULL;
  if (!at) return false;
  *left = rmq_slice_make(text.ptr, (size_t)(at - text.ptr));
  *right = rmq_slice_make(at + 1, text.len - left->len - 1);
  return true;
}

/* Takes the next entry off the front of `rest`. 1; 0 at the end; -1 when it has no '='. */
static int next_entry(rmq_slice *rest, entry *out) {
  while (rest->len > 0) {
    rmq_slice part;
    if (!split(*rest, ';', &part, rest)) {
      part = *rest;
      rest->len = 0;
    }
    out->whole = trimmed(part);
    if (out->whole.len == 0) continue;
    if (!split(out->whole, '=', &out->advertised, &out->reachable)) return -1;
    out->advertised = trimmed(out->advertised);
    out->reachable = trimmed(out->reachable);
    return 1;
  }
  return 0;
}

/* Where the ':' before the port is; the length when there is none. Not one inside of an IPv6
 * address. */
static size_t port_colon(rmq_slice addr) {
  for (size_t i = addr.len; i > 0 && addr.ptr[i - 1] != ']'; i--) {
    if (addr.ptr[i - 1] == ':') return i - 1;
  }
  return addr.len;
}

/* A host without port is judged as if it had one. */
static int check_reachable(rmq_slice text, const char **why) {
  rmq_host_port parts;
  if (port_colon(text) < text.len) return rmq_host_port_parse(text, &parts, why);
  rmq_buf whole = {0};
  rmq_buf_bytes(&whole, text.ptr, text.len);
  rmq_buf_text(&whole, ":1");
  int status = rmq_host_port_parse(rmq_buf_slice(&whole), &parts, why);
  rmq_buf_free(&whole);
  return status;
}

int rmq_address_map_check(rmq_slice map, char *why, size_t why_size) {
  entry found;
  const char *reason = NULL;
  int status;
  while ((status = next_entry(&map, &found)) > 0) {
    int shown = (int)(found.whole.len > 100 ? 100 : found.whole.len);
    if (found.advertised.len == 0) {
      snprintf(why, why_size, "nothing stands before the '=' of '%.*s'", shown, found.whole.ptr);
      return RMQ_EINVAL;
    }
    if (check_reachable(found.reachable, &reason) != 0) {
      shown = (int)(found.reachable.len > 100 ? 100 : found.reachable.len);
      snprintf(why, why_size, "'%.*s' is no address (%s)", shown, found.reachable.ptr, reason);
      return RMQ_EINVAL;
    }
  }
  if (status == 0) return 0;
  int shown = (int)(found.whole.len > 100 ? 100 : found.whole.len);
  snprintf(why, why_size, "'%.*s' has no '='; write advertised=reachable", shown, found.whole.ptr);
  return RMQ_EINVAL;
}

static bool find(rmq_slice map, rmq_slice advertised, rmq_slice *out) {
  entry found;
  while (next_entry(&map, &found) > 0) {
    if (rmq_slice_equal(found.advertised, advertised)) {
      *out = found.reachable;
      return true;
    }
  }
  return false;
}

rmq_slice rmq_address_map_find(rmq_slice map, rmq_slice advertised, rmq_buf *room) {
  rmq_slice to;
  size_t colon = port_colon(advertised);
  bool known =
      find(map, advertised, &to) || find(map, trimmed(rmq_slice_make(advertised.ptr, colon)), &to);
  if (!known) return advertised;
  if (port_colon(to) < to.len) return to;
  rmq_buf_clear(room);
  rmq_buf_bytes(room, to.ptr, to.len);
  rmq_buf_bytes(room, advertised.ptr + colon, advertised.len - colon);
  return rmq_buf_slice(room);
}

static void replace(rmq_broker_addr *at, rmq_slice map, rmq_buf *room, rmq_buf *texts) {
  rmq_slice to = rmq_address_map_find(map, at->addr, room);
  if (to.ptr == at->addr.ptr) return;
  at->advertised = at->addr;
  /* Where it is in `texts`, which may still move. */
  at->addr = rmq_slice_make(NULL, to.len);
  rmq_buf_bytes(texts, to.ptr, to.len);
}

void rmq_address_map_apply(rmq_slice map, rmq_route_data *route) {
  if (map.len == 0) return;
  rmq_buf room = {0}, texts = {0};
  for (size_t i = 0; i < route->n_brokers; i++) {
    for (size_t j = 0; j < route->brokers[i].n_addrs; j++) {
      replace(&route->brokers[i].addrs[j], map, &room, &texts);
    }
  }
  rmq_slice all = rmq_buf_slice(&texts);
  route->mapped = all.len ? rmq_copy_text(all.ptr, all.len) : NULL;
  const char *next = route->mapped;
  for (size_t i = 0; i < route->n_brokers; i++) {
    for (size_t j = 0; j < route->brokers[i].n_addrs; j++) {
      rmq_broker_addr *at = &route->brokers[i].addrs[j];
      if (at->addr.ptr || at->addr.len == 0) continue;
      at->addr.ptr = next;
      next += at->addr.len;
    }
  }
  rmq_buf_free(&room);
  rmq_buf_free(&texts);
}

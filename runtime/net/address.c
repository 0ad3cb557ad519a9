#include <arpa/inet.h>
#include <stdio.h>

#include "net/io.h"

/* The decimal number that all of `text` is, or -1. */
static int64_t number_of(const char *text) {
  int64_t value = 0;
  if (!*text) return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > UINT32_MAX) return -1;
  }
  return value;
}

bool rmq_address_parse(rmq_slice host, uint16_t port, rmq_address *out) {
  char text[INET6_ADDRSTRLEN + 12]; /* and a scope */
  if (host.len == 0 || host.len >= sizeof text || memchr(host.ptr, '\0', host.len)) return false;
  memcpy(text, host.ptr, host.len);
  text[host.len] = '\0';
  *out = (rmq_address){.port = port};
  if (inet_pton(AF_INET, text, out->ip) == 1) {
    out->ip_len = 4;
    return true;
  }
  char *percent = strchr(text, '%');
  if (percent) {
    int64_t scope = number_of(percent + 1);
    if (scope < 0) return false;
    out->scope = (uint32_t)scope;
    *percent = '\0';
  }
  if (inet_pton(AF_INET6, text, out->ip) != 1) return false;
  out->ip_len = 16;
  return true;
}

void rmq_address_format(const rmq_address *address, char out[RMQ_ADDRESS_TEXT]) {
  char ip[INET6_ADDRSTRLEN];
  if (!inet_ntop(address->ip_len == 4 ? AF_INET : AF_INET6, address->ip, ip, sizeof ip)) ip[0] = 0;
  if (address->ip_len == 4) {
    snprintf(out, RMQ_ADDRESS_TEXT, "%s:%u", ip, (unsigned)address->port);
  } else if (address->scope) {
    snprintf(out, RMQ_ADDRESS_TEXT, "[%s%%%u]:%u", ip, (unsigned)address->scope,
             (unsigned)address->port);
  } else {
    snprintf(out, RMQ_ADDRESS_TEXT, "[%s]:%u", ip, (unsigned)address->port);
  }
}

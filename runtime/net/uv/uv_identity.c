#include <arpa/inet.h>

#include "net/uv/uv_io.h"

/* How well an address names this machine to others; 0: not at all. */
static int rank_v4(const uint8_t ip[4]) {
  bool is_private =
      ip[0] == 10 || (ip[0] == 172 && ip[1] >= 16 && ip[1] <= 31) || (ip[0] == 192 && ip[1] == 168);
  if (ip[0] == 127 || ip[0] == 0 || (ip[0] == 169 && ip[1] == 254)) return 0;
  return is_private ? 2 : 3;
}

/* Global unicast is 2000::/3. */
static int rank_v6(const uint8_t ip[16]) { return ip[0] >> 5 == 1 ? 1 : 0; }

void rmq_uv_local_ip(rmq_identity *identity) {
  static const uint8_t loopback[4] = {127, 0, 0, 1};
  int best = 0;
  memset(identity->ip, 0, sizeof identity->ip);
  memcpy(identity->ip, loopback, sizeof loopback);
  identity->ip_len = 4;
  uv_interface_address_t *found;
  int count;
  if (uv_interface_addresses(&found, &count) != 0) return;
  for (int i = 0; i < count; i++) {
    if (found[i].is_internal) continue;
    bool v4 = found[i].address.address4.sin_family == AF_INET;
    const void *ip = v4 ? (const void *)&found[i].address.address4.sin_addr
                        : (const void *)&found[i].address.address6.sin6_addr;
    int rank = v4 ? rank_v4(ip) : rank_v6(ip);
    if (rank <= best) continue;
    best = rank;
    identity->ip_len = v4 ? 4 : 16;
    memcpy(identity->ip, ip, (size_t)identity->ip_len);
  }
  uv_free_interface_addresses(found, count);
}

#include <stdlib.h>

#include "check.h"
#include "net/io.h"
#include "net/pending.h"

static void check_round_trip(const char *host, uint16_t port, const char *expected) {
  rmq_address address;
  char text[RMQ_ADDRESS_TEXT];
  CHECK(rmq_address_parse(rmq_slice_text(host), port, &address));
  rmq_address_format(&address, text);
  if (strcmp(text, expected) != 0) printf("%s gives %s\n", host, text);
  CHECK(strcmp(text, expected) == 0);
}

static void numeric_addresses_are_parsed(void) {
  check_round_trip("10.0.0.1", 9876, "10.0.0.1:9876");
  check_round_trip("255.255.255.255", 65535, "255.255.255.255:65535");
  check_round_trip("::1", 1, "[::1]:1");
  check_round_trip("fe80::1%2", 9876, "[fe80::1%2]:9876");
  check_round_trip("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295", 65535,
                   "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
}

static void names_are_no_addresses(void) {
  const char *const names[] = {"",        "broker-a", "10.0.0",    "10.0.0.256",     "[::1]",
                               "::1%",    "::1%eth0", "1.2.3.4%1", "::1%4294967296", " 1.2.3.4",
                               "1.2.3.4 "};
  rmq_address address;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (rmq_address_parse(rmq_slice_text(names[i]), 1, &address)) printf("%s\n", names[i]);
    CHECK(!rmq_address_parse(rmq_slice_text(names[i]), 1, &address));
  }
  CHECK(!rmq_address_parse(rmq_slice_make("1.2.3.4\0x", 9), 1, &address));
  char longer[200];
  memset(longer, '1', sizeof longer);
  CHECK(!rmq_address_parse(rmq_slice_make(longer, sizeof longer), 1, &address));
}

enum { REQUESTS = 5000 };
static rmq_request requests[REQUESTS];

static void pending_finds_by_the_whole_number(void) {
  rmq_pending p = {0};
  CHECK(rmq_pending_get(&p, 0) == NULL);
  for (int i = 0; i < 3; i++) {
    rmq_pending_add(&p, &requests[i]);
    CHECK_INT(requests[i].opaque, i);
  }
  CHECK(rmq_pending_get(&p, 1) == &requests[1]);
  CHECK(rmq_pending_get(&p, 1 + (int32_t)p.cap) == NULL);
  CHECK(rmq_pending_get(&p, -1) == NULL);
  CHECK(rmq_pending_get(&p, INT32_MIN + 1) == NULL);
  rmq_pending_remove(&p, 1);
  CHECK(rmq_pending_get(&p, 1) == NULL);
  CHECK_INT(p.count, 2);
  rmq_pending_clear(&p);
  CHECK_INT(p.next, 3);
}

static void pending_wraps_after_31_bits(void) {
  rmq_pending p = {.next = INT32_MAX};
  rmq_pending_add(&p, &requests[0]);
  rmq_pending_add(&p, &requests[1]);
  CHECK_INT(requests[0].opaque, INT32_MAX);
  CHECK_INT(requests[1].opaque, 0);
  CHECK(rmq_pending_get(&p, INT32_MAX) == &requests[0]);
  rmq_pending_clear(&p);
}

static void pending_skips_cells_that_are_taken(void) {
  rmq_pending p = {0};
  rmq_pending_add(&p, &requests[0]); /* number 0 stays for ever */
  int32_t cap = (int32_t)p.cap;
  for (int32_t i = 1; i < 3 * cap; i++) {
    rmq_pending_add(&p, &requests[1]);
    CHECK(requests[1].opaque % cap != 0);
    CHECK(rmq_pending_get(&p, 0) == &requests[0]);
    rmq_pending_remove(&p, requests[1].opaque);
  }
  CHECK_INT(p.cap, cap);
  rmq_pending_clear(&p);
}

static void pending_grows_with_old_ones_inside(void) {
  rmq_pending p = {.next = INT32_MAX - 700};
  for (int i = 0; i < REQUESTS; i++) {
    rmq_pending_add(&p, &requests[i]);
    if (i % 3 == 0) rmq_pending_remove(&p, requests[i].opaque);
  }
  CHECK_INT(p.count, REQUESTS - (REQUESTS + 2) / 3);
  CHECK(p.cap >= 2 * p.count);
  for (int i = 0; i < REQUESTS; i++) {
    rmq_request *found = rmq_pending_get(&p, requests[i].opaque);
    if (found != (i % 3 == 0 ? NULL : &requests[i])) CHECK_INT(i, -1);
  }
  rmq_pending_clear(&p);
}

int main(void) {
  check_run("numeric addresses are parsed", numeric_addresses_are_parsed);
  check_run("names are no addresses", names_are_no_addresses);
  check_run("pending finds by the whole number", pending_finds_by_the_whole_number);
  check_run("pending wraps after 31 bits", pending_wraps_after_31_bits);
  check_run("pending skips cells that are taken", pending_skips_cells_that_are_taken);
  check_run("pending grows with old ones inside", pending_grows_with_old_ones_inside);
  return check_end();
}

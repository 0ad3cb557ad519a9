/* The map from advertised to reachable addresses. */
#include "base/error.h"
#include "check.h"
#include "wire/address_map.h"

static rmq_buf room;

static bool leads(const char *map, const char *advertised, const char *reachable) {
  rmq_slice found = rmq_address_map_find(rmq_slice_text(map), rmq_slice_text(advertised), &room);
  if (rmq_slice_is(found, reachable)) return true;
  printf("\"%s\" leads to \"%.*s\"\n", advertised, (int)found.len, found.ptr);
  return false;
}

static void addresses_lead_where_the_map_says(void) {
  const char *map = " a:1 = b:2 ;a=c;; d = [::1] ; x y #z=h:9;a:1=never:1;[fe80::1]=v6:7";
  CHECK(leads(map, "a:1", "b:2"));
  CHECK(leads(map, "a:3", "c:3"));
  CHECK(leads(map, "a", "c"));
  CHECK(leads(map, "d:10911", "[::1]:10911"));
  CHECK(leads(map, "x y #z:5", "h:9"));
  CHECK(leads(map, "[fe80::1]:5", "v6:7"));
  CHECK(leads(map, "b:2", "b:2"));
  CHECK(leads(map, "", ""));
  CHECK(leads("", "a:1", "a:1"));
  CHECK(leads("a=b", ":1", ":1"));
  rmq_buf_free(&room);
}

static bool refused(const char *map, const char *reason) {
  char why[256] = "";
  if (rmq_address_map_check(rmq_slice_text(map), why, sizeof why) == RMQ_EINVAL &&
      strstr(why, reason)) {
    return true;
  }
  printf("\"%s\": \"%s\"\n", map, why);
  return false;
}

static void what_makes_no_sense_is_refused(void) {
  char why[256];
  CHECK_INT(rmq_address_map_check(rmq_slice_text(""), why, sizeof why), 0);
  CHECK_INT(rmq_address_map_check(rmq_slice_text(" ; a=b:1;c = d;e=[::1]:5 ;"), why, sizeof why),
            0);
  CHECK(refused("a=b:1;c", "'c' has no '='"));
  CHECK(refused("=b", "nothing stands before the '=' of '=b'"));
  CHECK(refused("a=", "'' is no address"));
  CHECK(refused("a=b:0", "'b:0' is no address"));
  CHECK(refused("a=b:99999", "is no address"));
  CHECK(refused("a=b=c", "'b=c' is no address"));
  CHECK(refused("a=[::1", "is no address"));
  CHECK(refused("a=b:c:1", "is no address"));
}

int main(void) {
  check_run("addresses lead where the map says", addresses_lead_where_the_map_says);
  check_run("what makes no sense is refused", what_makes_no_sense_is_refused);
  return check_end();
}

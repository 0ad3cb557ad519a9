#include <stdlib.h>

#include "base/map.h"
#include "check.h"

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

static void finds_what_was_set(void) {
  rmq_map *map = rmq_map_new(1);
  int one, two;
  CHECK(rmq_map_get(map, rmq_slice_text("a")) == NULL);
  CHECK(rmq_map_remove(map, rmq_slice_text("a")) == NULL);
  CHECK(rmq_map_set(map, rmq_slice_text("a"), &one) == NULL);
  CHECK(rmq_map_set(map, rmq_slice_text(""), &two) == NULL);
  CHECK(rmq_map_set(map, rmq_slice_make("a\0b", 3), &two) == NULL);
  CHECK(rmq_map_get(map, rmq_slice_text("a")) == &one);
  CHECK(rmq_map_set(map, rmq_slice_text("a"), &two) == &one);
  CHECK(rmq_map_get(map, rmq_slice_make(NULL, 0)) == &two);
  CHECK_INT(rmq_map_count(map), 3);
  CHECK(rmq_map_remove(map, rmq_slice_text("a")) == &two);
  CHECK(rmq_map_get(map, rmq_slice_text("a")) == NULL);
  CHECK(rmq_map_get(map, rmq_slice_make("a\0b", 3)) == &two);
  rmq_map_free(map);
  rmq_map_free(NULL);
}

static void copies_its_keys(void) {
  rmq_map *map = rmq_map_new(2);
  char key[] = "key";
  rmq_map_set(map, rmq_slice_text(key), map);
  key[0] = 'x';
  CHECK(rmq_map_get(map, rmq_slice_text("key")) == map);
  rmq_map_free(map);
}

/* The model: keys and their values in the order of insertion. */
enum { KEYS = 300 };
typedef struct model {
  int order[KEYS];
  size_t count;
  void *value[KEYS];
} model;

static rmq_slice key_of(int number, char text[16]) {
  int len = snprintf(text, 16, "broker-%d", number);
  return rmq_slice_make(text, (size_t)len);
}

static void model_remove(model *m, int number) {
  size_t at = 0;
  while (m->order[at] != number) at++;
  memmove(&m->order[at], &m->order[at + 1], (m->count - at - 1) * sizeof m->order[0]);
  m->count--;
  m->value[number] = NULL;
}

static bool same(const rmq_map *map, const model *m) {
  size_t at = 0, seen = 0;
  rmq_slice key;
  for (void *value; (value = rmq_map_next(map, &at, &key)); seen++) {
    char text[16];
    if (seen >= m->count || value != m->value[m->order[seen]]) return false;
    if (!rmq_slice_equal(key, key_of(m->order[seen], text))) return false;
  }
  return seen == m->count && rmq_map_count(map) == m->count;
}

static void does_what_a_list_does(void) {
  for (uint64_t seed = 0; seed < 5; seed++) {
    rmq_map *map = rmq_map_new(seed);
    static model m;
    memset(&m, 0, sizeof m);
    uint32_t random = (uint32_t)seed + 99;
    for (int step = 0; step < 20000; step++) {
      int number = (int)(next_random(&random) % (step % 4000 < 2000 ? KEYS : 12));
      char text[16];
      rmq_slice key = key_of(number, text);
      void *value = (char *)&m + next_random(&random) % 100;
      if (rmq_map_get(map, key) != m.value[number]) CHECK_INT(step, -1);
      if (next_random(&random) % 2) {
        if (rmq_map_set(map, key, value) != m.value[number]) CHECK_INT(step, -2);
        if (!m.value[number]) m.order[m.count++] = number;
        m.value[number] = value;
      } else {
        if (rmq_map_remove(map, key) != m.value[number]) CHECK_INT(step, -3);
        if (m.value[number]) model_remove(&m, number);
      }
      if (step % 97 == 0 && !same(map, &m)) CHECK_INT(step, -4);
    }
    CHECK(same(map, &m));
    rmq_map_free(map);
  }
}

static void what_was_returned_may_be_removed_in_a_walk(void) {
  rmq_map *map = rmq_map_new(3);
  static int values[100];
  char text[16];
  for (int i = 0; i < 100; i++) rmq_map_set(map, key_of(i, text), &values[i]);
  size_t at = 0;
  rmq_slice key;
  int seen = 0;
  for (int *value; (value = rmq_map_next(map, &at, &key)); seen++) {
    CHECK_INT(value - values, seen);
    if (seen % 3) CHECK(rmq_map_remove(map, key) == value);
  }
  CHECK_INT(seen, 100);
  CHECK_INT(rmq_map_count(map), 34);
  rmq_map_free(map);
}

static void the_seed_does_not_show(void) {
  char text[16];
  static int values[50];
  rmq_map *maps[2] = {rmq_map_new(7), rmq_map_new(UINT64_MAX)};
  for (int i = 0; i < 50; i++) {
    for (int m = 0; m < 2; m++) rmq_map_set(maps[m], key_of(i * 37 % 50, text), &values[i]);
  }
  size_t at[2] = {0, 0};
  for (int i = 0; i < 50; i++) {
    CHECK(rmq_map_next(maps[0], &at[0], NULL) == rmq_map_next(maps[1], &at[1], NULL));
  }
  rmq_map_free(maps[0]);
  rmq_map_free(maps[1]);
}

int main(void) {
  check_run("finds what was set", finds_what_was_set);
  check_run("copies its keys", copies_its_keys);
  check_run("does what a list does", does_what_a_list_does);
  check_run("what was returned may be removed in a walk",
            what_was_returned_may_be_removed_in_a_walk);
  check_run("the seed does not show", the_seed_does_not_show);
  return check_end();
}

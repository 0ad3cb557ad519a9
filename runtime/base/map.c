#include "base/map.h"

#include <stdlib.h>

#include "base/memory.h"

/* Entries stand in one array in the order of their insertion; a table of twice as many cells as
 * there is room for entries, probed one after the other, says where in the array a key is. A
 * removed entry stays in the array with its value NULL, and its cell stays occupied, until the
 * array is full and both are swept. */
typedef struct entry {
  char *key;
  size_t len;
  uint64_t hash;
  void *value;
} entry;

struct rmq_map {
  uint64_t key[2]; /* of the hash */
  entry *entries;
  size_t used;     /* entries, removed ones included */
  size_t room;     /* entries that fit */
  size_t count;    /* entries that are alive */
  uint32_t *cells; /* 1 + index of an entry, 0 when free; 2 * room of them, a power of two */
};

enum { FIRST_ROOM = 8 };

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[0] = rotate(v[0], 32);
  v[2] += v[3];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[2] = rotate(v[2], 32);
}

static uint64_t tail_of(const char *at, size_t len) {
  uint64_t word = 0;
  for (size_t i = 0; i < len; i++) word |= (uint64_t)(unsigned char)at[i] << (8 * i);
  return word;
}

/* SipHash-1-3: names that collide cannot be found without the key. */
static uint64_t hash_of(const uint64_t key[2], rmq_slice text) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                   key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
  size_t left = text.len;
  for (const char *at = text.ptr; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    memcpy(&word, at, 8); /* in the machine's order, which is as good: nobody else sees the hash */
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)text.len << 56;
  if (left) last |= tail_of(text.ptr + (text.len - left), left);
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* One step of splitmix64: makes the two halves of the hash's key out of one seed. */
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

rmq_map *rmq_map_new(uint64_t seed) {
  rmq_map *map = rmq_alloc_zero(1, sizeof *map);
  map->key[0] = mix(seed);
  map->key[1] = mix(map->key[0] ^ seed);
  return map;
}

void rmq_map_free(rmq_map *map) {
  if (!map) return;
  for (size_t i = 0; i < map->used; i++) free(map->entries[i].key);
  free(map->entries);
  free(map->cells);
  free(map);
}

size_t rmq_map_count(const rmq_map *map) { return map->count; }

static entry *find(const rmq_map *map, rmq_slice key, uint64_t hash) {
  if (map->count == 0) return NULL;
  size_t mask = 2 * map->room - 1;
  for (size_t at = (size_t)hash & mask; map->cells[at]; at = (at + 1) & mask) {
    entry *e = &map->entries[map->cells[at] - 1];
    if (e->value && e->hash == hash && rmq_slice_equal(rmq_slice_make(e->key, e->len), key)) {
      return e;
    }
  }
  return NULL;
}

void *rmq_map_get(const rmq_map *map, rmq_slice key) {
  entry *e = find(map, key, hash_of(map->key, key));
  return e ? e->value : NULL;
}

static void index_entry(rmq_map *map, size_t which) {
  size_t mask = 2 * map->room - 1;
  size_t at = (size_t)map->entries[which].hash & mask;
  while (map->cells[at]) at = (at + 1) & mask;
  map->cells[at] = (uint32_t)which + 1;
}

/* Makes room for one more entry. Sweeping alone is enough when half of the entries are dead. */
static void make_room(rmq_map *map) {
  size_t alive = 0;
  for (size_t i = 0; i < map->used; i++) {
    if (map->entries[i].value) map->entries[alive++] = map->entries[i];
  }
  map->used = alive;
  if (map->room == 0) {
    map->room = FIRST_ROOM;
  } else if (alive > map->room / 2) {
    map->room *= 2;
  }
  map->entries = rmq_realloc(map->entries, map->room * sizeof *map->entries);
  free(map->cells);
  map->cells = rmq_alloc_zero(2 * map->room, sizeof *map->cells);
  for (size_t i = 0; i < map->used; i++) index_entry(map, i);
}

void *rmq_map_set(rmq_map *map, rmq_slice key, void *value) {
  uint64_t hash = hash_of(map->key, key);
  entry *e = find(map, key, hash);
  if (e) {
    void *old = e->value;
    e->value = value;
    return old;
  }
  if (map->used == map->room) make_room(map);
  map->entries[map->used] = (entry){rmq_copy_text(key.ptr, key.len), key.len, hash, value};
  index_entry(map, map->used);
  map->used++;
  map->count++;
  return NULL;
}

void *rmq_map_remove(rmq_map *map, rmq_slice key) {
  entry *e = find(map, key, hash_of(map->key, key));
  if (!e) return NULL;
  void *value = e->value;
  free(e->key);
  *e = (entry){0};
  map->count--;
  return value;
}

void *rmq_map_next(const rmq_map *map, size_t *at, rmq_slice *key) {
  while (*at < map->used) {
    entry *e = &map->entries[(*at)++];
    if (!e->value) continue;
    if (key) *key = rmq_slice_make(e->key, e->len);
    return e->value;
  }
  return NULL;
}

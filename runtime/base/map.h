#ifndef RMQ_BASE_MAP_H
#define RMQ_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* A hash map from byte strings to pointers. Keys are copied. The hash is seeded, so a peer
 * cannot choose names that collide; iteration follows the order of insertion (removals keep it),
 * so nothing depends on the seed or on addresses. */
typedef struct rmq_map rmq_map;

rmq_map *rmq_map_new(uint64_t seed);
void rmq_map_free(rmq_map *map); /* the values are the caller's */
size_t rmq_map_count(const rmq_map *map);
void *rmq_map_get(const rmq_map *map, rmq_slice key);
/* Sets a value (not NULL) and returns the one that was there, or NULL. */
void *rmq_map_set(rmq_map *map, rmq_slice key, void *value);
/* Removes a key and returns its value, or NULL. */
void *rmq_map_remove(rmq_map *map, rmq_slice key);

/* Walks the map: start with `*at` = 0, stop when it returns NULL. The value just returned may be
 * removed during the walk; nothing may be added. `key` may be NULL. */
void *rmq_map_next(const rmq_map *map, size_t *at, rmq_slice *key);

#endif

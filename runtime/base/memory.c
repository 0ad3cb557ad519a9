#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t size) {
  if (size > 0) {
    fprintf(stderr, "rmqlua: out of memory (%zu bytes more were needed)\n", size);
  } else {
    fputs("rmqlua: out of memory\n", stderr);
  }
  abort();
}

/* malloc(0) may give NULL, which would look like a failure, so the smallest block is one byte. */
void *rmq_alloc(size_t size) {
  void *ptr = malloc(size ? size : 1);
  if (!ptr) out_of_memory(size);
  return ptr;
}

void *rmq_alloc_zero(size_t count, size_t size) {
  if (count == 0 || size == 0) count = size = 1;
  void *ptr = calloc(count, size);
  if (!ptr) out_of_memory(count > SIZE_MAX / size ? SIZE_MAX : count * size);
  return ptr;
}

void *rmq_realloc(void *ptr, size_t size) {
  void *moved = realloc(ptr, size ? size : 1);
  if (!moved) out_of_memory(size);
  return moved;
}

void *rmq_list_room(void *list, size_t *cap, size_t count, size_t size) {
  enum { KEPT = 1024 };
  if (count == 0 && *cap > KEPT) {
    free(list);
    list = NULL;
    *cap = 0;
  }
  if (count < *cap) return list;
  *cap = *cap ? *cap * 2 : 16;
  return rmq_realloc(list, *cap * size);
}

void *rmq_must(void *ptr) {
  if (!ptr) out_of_memory(0);
  return ptr;
}

char *rmq_copy_text(const char *ptr, size_t len) {
  if (len == SIZE_MAX) out_of_memory(len);
  char *copy = rmq_alloc(len + 1);
  if (len) memcpy(copy, ptr, len);
  copy[len] = '\0';
  return copy;
}

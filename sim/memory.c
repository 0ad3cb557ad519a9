#include "sim/memory.h"

/* The linker's names for the functions behind the wrappers, and for the wrappers. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);

/* The one number that belongs to the process and not to a life: malloc has no other place for it.
 */
static size_t blocks;

size_t sim_memory_blocks(void) { return blocks; }

void *__wrap_malloc(size_t size) {
  void *ptr = __real_malloc(size);
  blocks += ptr != NULL;
  return ptr;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *ptr = __real_calloc(count, size);
  blocks += ptr != NULL;
  return ptr;
}

void *__wrap_realloc(void *ptr, size_t size) {
  void *moved = __real_realloc(ptr, size);
  blocks += ptr == NULL && moved != NULL;
  return moved;
}

void __wrap_free(void *ptr) {
  blocks -= ptr != NULL;
  __real_free(ptr);
}

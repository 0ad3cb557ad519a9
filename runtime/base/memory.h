#ifndef RMQ_BASE_MEMORY_H
#define RMQ_BASE_MEMORY_H

#include <stddef.h>

/* Memory is bounded by settings (what may be in flight, how long a frame may be), so running out
 * of it means that the machine is lost: these end the process with a line on stderr and never
 * give NULL. All but rmq_must's are released with free(). */
void *rmq_alloc(size_t size);
void *rmq_alloc_zero(size_t count, size_t size);
void *rmq_realloc(void *ptr, size_t size);
void *rmq_must(void *ptr);                        /* what another library has allocated */
char *rmq_copy_text(const char *ptr, size_t len); /* NUL terminated copy of `len` bytes */

#endif

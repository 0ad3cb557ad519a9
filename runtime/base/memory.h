#ifndef RMQ_BASE_MEMORY_H
#define RMQ_BASE_MEMORY_H

#include <stddef.h>

/* Memory is bounded by settings (what may be in flight, how long a frame may be), so running out
 * of it means that the machine is lost: these end the process with a line on stderr and never
 * give NULL. All but rmq_must's are released with free(). */
void *rmq_alloc(size_t size);
void *rmq_alloc_zero(size_t count, size_t size);
void *rmq_realloc(void *ptr, size_t size);
void *rmq_must(void *ptr); /* what another library has allocated */
/* Room for one more of `size` bytes in a list that has `count` of them and room for `*cap`: the list,
 * which may have moved. It begins as NULL with a `*cap` of 0, grows by doubling, and begins anew when it is
 * empty and has room for more than 1024: what one huge message needed is not kept. */
void *rmq_list_room(void *list, size_t *cap, size_t count, size_t size);
char *rmq_copy_text(const char *ptr, size_t len); /* NUL terminated copy of `len` bytes */

#endif

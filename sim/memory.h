#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stddef.h>

/* How many blocks of memory the core and the simulator hold. The linker leads their malloc, calloc,
 * realloc and free through here (--wrap), so a life that ends with another number than it began
 * with has lost some. */
size_t sim_memory_blocks(void);

#endif

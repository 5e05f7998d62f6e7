/* A bound on what this process may still take of the machine's memory. */
#ifndef MERIDIAN_BASE_MEMORY_LIMIT_H
#define MERIDIAN_BASE_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* What the system can give now, in bytes: memory that is available and free swap space, or what is left of the control
 * group's limit when that is less. 0: it does not say. */
uint64_t memory_free_bytes(void);

/* From now on at most so many bytes more: allocations beyond fail, as they do when memory is exhausted, and the system
 * has no reason to kill this process or another. Mapped files do not count. False: it cannot be done here. */
bool memory_limit_growth(uint64_t bytes);

#endif

/* What memory this process may have, and a bound on what it takes. */
#ifndef MERIDIAN_BASE_MEMORY_LIMIT_H
#define MERIDIAN_BASE_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* What the process may have at all, in bytes: the least of the machine's memory, the limits of its control groups and
 * that of its data (RLIMIT_DATA). */
uint64_t memory_of_machine(void);

/* What the system can give now, in bytes: memory that is available and free swap space, or what is left of a control
 * group's limit when that is less. 0: it does not say. */
uint64_t memory_free_bytes(void);

/* From now on at most so many bytes of data in all: allocations beyond fail, as they do when memory is exhausted, and
 * the system has no reason to kill this process or another. Mapped files do not count. False: it cannot be done here
 * (under sanitizers, that is). */
bool memory_limit(uint64_t bytes);

/* … at most so many bytes more than it has. */
bool memory_limit_growth(uint64_t bytes);

#endif

/* What SQLite may hold in memory. */
#ifndef MERIDIAN_SQL_ENGINE_HEAP_H
#define MERIDIAN_SQL_ENGINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Makes SQLite allocate through us, with a limit of half of this machine's memory. Before SQLite starts; later, or a
 * second time, it does nothing. */
void sql_heap_install(void);

/* Another limit, of all engines of the process together. */
void sql_heap_limit(int64_t bytes);

/* For tests: what SQLite wants goes through the gate of base/alloc.h, like our own. */
void sql_heap_set_gated(bool gated);

/* Bytes that SQLite holds now. */
int64_t sql_heap_held(void);

#endif

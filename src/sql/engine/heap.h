/* What SQLite may hold in memory. */
#ifndef MERIDIAN_SQL_ENGINE_HEAP_H
#define MERIDIAN_SQL_ENGINE_HEAP_H

#include "base/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes SQLite allocate through us, with a limit of half of what the process may have. Before SQLite starts; later, or
 * a second time, it does nothing. */
void sql_heap_install(void);

/* Another limit, of all engines of the process together. */
void sql_heap_limit(int64_t bytes);

/* What a statement may take while it is compiled. SQLite writes a view or a part of WITH out for each use, so that 40
 * of them, each made of the one before twice, become 2^40; and it asks nobody meanwhile but for memory. So that is
 * where a stop is heeded, too. Statements over the standard library take less than 32 MiB each (measured). */
enum { COMPILE_MAX_BYTES = 256 << 20 };
struct compile_heap {
    struct compile_heap *outer; /* statements are compiled while others are */
    stop_flag *stop;
    int64_t held;
    bool stopped, full; /* why memory was refused */
    bool failed;        /* it was, for whatever reason */
};

/* From here to the end, on this thread. */
void compile_heap_begin(struct compile_heap *c, stop_flag *stop);
void compile_heap_end(struct compile_heap *c);

/* For tests: what SQLite wants goes through the gate of base/alloc.h, like our own. */
void sql_heap_set_gated(bool gated);

/* The same for memory of SQLite's that others allocate for it: false when it is not to be had. */
bool sql_heap_take(int64_t bytes);
void sql_heap_give(int64_t bytes);

/* Takes them while SQLite holds no more than half of what it may: what could be on a disk leaves the rest to what
 * cannot. */
bool sql_heap_take_half(int64_t bytes);

/* Bytes that SQLite holds now. */
int64_t sql_heap_held(void);

#endif

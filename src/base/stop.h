/* Work that may be told to end: long loops look at a flag that a signal handler or another thread sets. */
#ifndef MERIDIAN_BASE_STOP_H
#define MERIDIAN_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef atomic_bool stop_flag;

/* As cheap as reading a variable. `f` NULL: never. */
static inline bool stop_asked(stop_flag *f)
{
    return f && atomic_load_explicit(f, memory_order_relaxed);
}

/* qsort() that looks at the flag every few milliseconds: false when it was set (the elements are in any order then) or
 * when there is no memory. Equal elements stay in no order. */
bool stop_sort(void *p, size_t n, size_t size, int (*compare)(const void *, const void *), stop_flag *f);
/* The same as qsort_r(). */
bool stop_sort_r(void *p, size_t n, size_t size, int (*compare)(const void *, const void *, void *), void *ctx,
                 stop_flag *f);

#endif

/* Orders for qsort() and bsearch(). */
#ifndef MERIDIAN_BASE_COMPARE_H
#define MERIDIAN_BASE_COMPARE_H

#include <stdint.h>

static inline int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

#endif

/* Sums and differences of times that anybody may have written: what does not fit becomes the nearest that does. */
#ifndef MERIDIAN_BASE_SATURATE_H
#define MERIDIAN_BASE_SATURATE_H

#include <stdint.h>

static inline int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t saturating_sub(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}

#endif

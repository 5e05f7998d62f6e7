/* Random gaps between samples, without a library: the mathematics of the C library would be one more that is loaded
 * into every program. */
#ifndef MERIDIAN_CAPTURE_HEAP_CLIENT_HEAP_RANDOM_H
#define MERIDIAN_CAPTURE_HEAP_CLIENT_HEAP_RANDOM_H

#include <stdint.h>

static inline uint64_t heap_random_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint64_t heap_random_next(uint64_t *state)
{
    return heap_random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* ln(x) for x in (0, 1], to 1e-9 of itself or so: ln(m 2^e) with m in [1, 2), by the series of the inverse of tanh. */
static inline double heap_random_ln(double x)
{
    union {
        double d;
        uint64_t u;
    } v = {.d = x};
    int e = (int)(v.u >> 52 & 0x7ff) - 1023;
    v.u = (v.u & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    double s = (v.d - 1) / (v.d + 1), s2 = s * s, term = s, sum = 0;
    for (int k = 1; k < 22; k += 2) {
        sum += term / k;
        term *= s2;
    }
    return 2 * sum + e * 0.69314718055994530942;
}

/* ln(1 - 1/interval): of the probability that a byte is no sample. 0: every byte is one. */
static inline double heap_random_log_keep(uint64_t interval)
{
    double x, term, sum = 0;
    if (interval <= 1)
        return 0;
    x = term = 1.0 / (double)interval;
    for (int k = 1; k < 64; k++) {
        sum += term / k;
        term *= x;
    }
    return -sum;
}

/* How many bytes on the next sample is, at least 1: geometrically distributed. `random`: any 64 bits. */
static inline int64_t heap_random_gap(uint64_t random, double log_keep)
{
    double u = ((double)(random >> 11) + 1) * 0x1p-53; /* (0, 1] */
    double gap = log_keep < 0 ? heap_random_ln(u) / log_keep : 0;
    return gap < 9e18 ? (int64_t)gap + 1 : INT64_MAX / 2;
}

#endif

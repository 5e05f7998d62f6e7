/* Reads a clock of this machine as one number. */
#ifndef MERIDIAN_BASE_CLOCK_H
#define MERIDIAN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000ll

static inline int64_t timespec_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

/* Nanoseconds on the clock; 0 when this machine has no such clock. */
static inline int64_t clock_now_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return timespec_ns(&t);
}

#endif

/* Owns the reading of all clocks. */
#include "capture/host/clock_reading.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static const struct {
    uint32_t id;
    clockid_t clock;
} clocks[] = {
    {6, CLOCK_BOOTTIME}, {2, CLOCK_REALTIME_COARSE}, {4, CLOCK_MONOTONIC_COARSE},
    {1, CLOCK_REALTIME}, {3, CLOCK_MONOTONIC},       {5, CLOCK_MONOTONIC_RAW},
};

void clock_readings_take(struct clock_readings *r)
{
    struct timespec ts[sizeof clocks / sizeof *clocks];
    int rc[sizeof clocks / sizeof *clocks];
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        rc[i] = clock_gettime(clocks[i].clock, &ts[i]);
#if defined(__x86_64__)
    uint64_t tsc = __rdtsc();
#endif
    r->n = 0;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        if (rc[i] != 0)
            continue;
        r->clock[r->n].id = clocks[i].id;
        r->clock[r->n++].value = (uint64_t)ts[i].tv_sec * 1000000000u + (uint64_t)ts[i].tv_nsec;
    }
#if defined(__x86_64__)
    r->clock[r->n].id = 9;
    r->clock[r->n++].value = tsc;
#endif
}

uint64_t clock_readings_get(const struct clock_readings *r, uint32_t id)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->clock[i].id == id)
            return r->clock[i].value;
    return 0;
}

void clock_readings_put(const struct clock_readings *r, struct pb_writer *w, uint32_t field)
{
    for (uint32_t i = 0; i < r->n; i++) {
        size_t mark = pb_begin(w, field);
        pb_put_varint(w, 1, r->clock[i].id);
        pb_put_varint(w, 2, r->clock[i].value);
        pb_end(w, mark);
    }
}

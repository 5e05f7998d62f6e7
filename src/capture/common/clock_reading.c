/* Reads all clocks. */
#include "capture/common/clock_reading.h"

#include "base/clock.h"
#include "wire/fields.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static const struct {
    uint32_t id;
    clockid_t clock;
} clocks[] = {
    {BUILTIN_CLOCK_BOOTTIME, CLOCK_BOOTTIME},
    {BUILTIN_CLOCK_REALTIME_COARSE, CLOCK_REALTIME_COARSE},
    {BUILTIN_CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_COARSE},
    {BUILTIN_CLOCK_REALTIME, CLOCK_REALTIME},
    {BUILTIN_CLOCK_MONOTONIC, CLOCK_MONOTONIC},
    {BUILTIN_CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW},
};

enum { N_CLOCKS = sizeof clocks / sizeof *clocks };
enum { TOGETHER_NS = 20000, ATTEMPTS = 3 }; /* reading them takes a microsecond where nothing comes in between */

/* All clocks; again when something came in between: what a comparison says of two clocks of a machine must be so. */
static void read_together(int64_t now[N_CLOCKS], uint64_t *tsc)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        for (size_t i = 0; i < N_CLOCKS; i++)
            now[i] = clock_now_ns(clocks[i].clock);
#if defined(__x86_64__)
        *tsc = __rdtsc();
#endif
        if (clock_now_ns(clocks[0].clock) - now[0] <= TOGETHER_NS)
            return;
    }
}

void clock_readings_take(struct clock_readings *r)
{
    int64_t now[N_CLOCKS];
    uint64_t tsc = 0;
    read_together(now, &tsc);
    r->n = 0;
    for (size_t i = 0; i < N_CLOCKS; i++) {
        if (!now[i])
            continue; /* not on this machine */
        r->clock[r->n].id = clocks[i].id;
        r->clock[r->n++].value = (uint64_t)now[i];
    }
#if defined(__x86_64__)
    r->clock[r->n].id = CLOCK_TSC_ID;
    r->clock[r->n++].value = tsc;
#endif
}

/* All clocks that count ns. */
static void shift(struct clock_readings *r, int64_t ns)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->clock[i].id != CLOCK_TSC_ID)
            r->clock[i].value += (uint64_t)ns;
}

static void set_tsc(struct clock_readings *r, uint64_t tsc)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->clock[i].id == CLOCK_TSC_ID)
            r->clock[i].value = tsc;
}

void clock_readings_take_last(struct clock_readings *r)
{
    clock_readings_take(r);
    int64_t now = clock_now_ns(CLOCK_BOOTTIME);
#if defined(__x86_64__)
    set_tsc(r, __rdtsc());
#endif
    shift(r, now - (int64_t)clock_readings_get(r, CLOCK_BOOTTIME_ID));
}

/* By the pace of the cycle counter between two readings. */
static uint64_t cycles(const struct clock_readings *from, const struct clock_readings *to, uint64_t ns)
{
    uint64_t elapsed = clock_readings_get(to, CLOCK_BOOTTIME_ID) - clock_readings_get(from, CLOCK_BOOTTIME_ID);
    uint64_t ticks = clock_readings_get(to, CLOCK_TSC_ID) - clock_readings_get(from, CLOCK_TSC_ID);
    return elapsed ? (uint64_t)((unsigned __int128)ticks * ns / elapsed) : 0;
}

void clock_readings_back_date(struct clock_readings *r, uint64_t age_ns, const struct clock_readings *before)
{
    set_tsc(r, clock_readings_get(r, CLOCK_TSC_ID) - cycles(before, r, age_ns));
    shift(r, -(int64_t)age_ns);
}

void clock_readings_forward_date(struct clock_readings *r, uint64_t late_ns, const struct clock_readings *next)
{
    uint64_t room = clock_readings_get(next, CLOCK_BOOTTIME_ID) - clock_readings_get(r, CLOCK_BOOTTIME_ID);
    if (late_ns > room)
        return; /* nonsense */
    set_tsc(r, clock_readings_get(r, CLOCK_TSC_ID) + cycles(r, next, late_ns));
    shift(r, (int64_t)late_ns);
}

void clock_readings_drop_coarse(struct clock_readings *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->clock[i].id != CLOCK_REALTIME_COARSE_ID && r->clock[i].id != CLOCK_MONOTONIC_COARSE_ID)
            r->clock[kept++] = r->clock[i];
    r->n = kept;
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
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_CLOCK_ID, r->clock[i].id);
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_TIMESTAMP, r->clock[i].value);
        pb_end(w, mark);
    }
}

/* Reads the clocks. */
#include "capture/clocks.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}
uint64_t clock_real_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

void clock_snapshot_take(struct clock_snapshot *s)
{
    static const struct {
        uint32_t id;
        clockid_t clock;
    } order[] = {
        {CLOCK_ID_BOOTTIME, CLOCK_BOOTTIME},
        {CLOCK_ID_REALTIME_COARSE, CLOCK_REALTIME_COARSE},
        {CLOCK_ID_MONOTONIC_COARSE, CLOCK_MONOTONIC_COARSE},
        {CLOCK_ID_REALTIME, CLOCK_REALTIME},
        {CLOCK_ID_MONOTONIC, CLOCK_MONOTONIC},
        {CLOCK_ID_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW},
    };
    struct timespec ts[6];
    for (unsigned i = 0; i < 6; i++) /* nothing but the readings between the readings */
        clock_gettime(order[i].clock, &ts[i]);
#if defined(__x86_64__)
    uint64_t tsc = __builtin_ia32_rdtsc();
#endif
    for (s->n = 0; s->n < 6; s->n++) {
        s->clocks[s->n].id = order[s->n].id;
        s->clocks[s->n].ts = (uint64_t)ts[s->n].tv_sec * 1000000000u + (uint64_t)ts[s->n].tv_nsec;
    }
#if defined(__x86_64__)
    s->clocks[s->n].id = CLOCK_ID_TSC;
    s->clocks[s->n++].ts = tsc;
#endif
}

bool clock_snapshot_drifted(const struct clock_snapshot *before, const struct clock_snapshot *now)
{
    if (before->n != now->n || !now->n)
        return true;
    int64_t boot = (int64_t)(now->clocks[0].ts - before->clocks[0].ts);
    for (unsigned i = 1; i < now->n; i++) {
        int64_t drift = (int64_t)(now->clocks[i].ts - before->clocks[i].ts) - boot;
        if (drift >= 10000000 || drift <= -10000000)
            return true;
    }
    return false;
}

void clock_snapshot_put(struct pb_writer *w, const struct clock_snapshot *s, uint32_t primary)
{
    if (primary)
        pb_put_varint(w, 2, primary);
    for (unsigned i = 0; i < s->n; i++) {
        uint8_t b[24];
        size_t n = 0;
        b[n++] = 1 << 3;
        n += pb_encode_varint(b + n, s->clocks[i].id);
        b[n++] = 2 << 3;
        n += pb_encode_varint(b + n, s->clocks[i].ts);
        pb_put_bytes(w, 1, b, n);
    }
}

/* Compares and writes clock snapshots. */
#include "capture/service/clock_snapshot.h"

#include "base/clock.h"
#include "wire/fields.h"

#include <time.h>

#define DRIFT_NS 10000000

static uint64_t read_ns(clockid_t id)
{
    return (uint64_t)clock_now_ns(id);
}

uint64_t clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}
uint64_t clock_real_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

bool clock_snapshot_drifted(const struct clock_readings *before, const struct clock_readings *now)
{
    if (before->n != now->n || !now->n)
        return true;
    int64_t boot = (int64_t)(now->clock[0].value - before->clock[0].value);
    for (unsigned i = 1; i < now->n; i++) {
        int64_t drift = (int64_t)(now->clock[i].value - before->clock[i].value) - boot;
        if (drift >= DRIFT_NS || drift <= -DRIFT_NS)
            return true;
    }
    return false;
}

void clock_snapshot_put(struct pb_writer *w, const struct clock_readings *r, uint32_t primary)
{
    pb_put_varint(w, CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK, primary);
    clock_readings_put(r, w, CLOCK_SNAPSHOT_CLOCKS);
}

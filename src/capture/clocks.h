/* Readings of all clocks that a trace speaks of, taken as close together as possible. */
#ifndef MERIDIAN_CAPTURE_CLOCKS_H
#define MERIDIAN_CAPTURE_CLOCKS_H

#include "proto/pb_writer.h"

#include <stdbool.h>
#include <stdint.h>

/* BuiltinClock numbers */
enum {
    CLOCK_ID_REALTIME = 1,
    CLOCK_ID_REALTIME_COARSE = 2,
    CLOCK_ID_MONOTONIC = 3,
    CLOCK_ID_MONOTONIC_COARSE = 4,
    CLOCK_ID_MONOTONIC_RAW = 5,
    CLOCK_ID_BOOTTIME = 6,
    CLOCK_ID_TSC = 9,
};

#define CLOCKS_MAX 7

struct clock_snapshot {
    unsigned n;
    struct {
        uint32_t id;
        uint64_t ts; /* ns; TSC: ticks */
    } clocks[CLOCKS_MAX];
};

/* BOOTTIME, REALTIME_COARSE, MONOTONIC_COARSE, REALTIME, MONOTONIC, MONOTONIC_RAW, on x86-64 TSC: in this order
 * (spec ipc 8). */
void clock_snapshot_take(struct clock_snapshot *s);

/* CLOCK_BOOTTIME in ns. */
uint64_t clock_boot_ns(void);
uint64_t clock_real_ns(void);

/* True when some clock has moved at least 10 ms more or less than BOOTTIME since `before`. */
bool clock_snapshot_drifted(const struct clock_snapshot *before, const struct clock_snapshot *now);

/* Appends the fields of a ClockSnapshot message; `primary` 0: none. */
void clock_snapshot_put(struct pb_writer *w, const struct clock_snapshot *s, uint32_t primary);

#endif

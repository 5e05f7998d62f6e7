/* All clocks of this machine read together, as the service and the relay put them into packets. */
#ifndef MERIDIAN_CAPTURE_HOST_CLOCK_READING_H
#define MERIDIAN_CAPTURE_HOST_CLOCK_READING_H

#include "proto/pb_writer.h"

enum { CLOCK_READINGS_MAX = 7 };

struct clock_readings {
    struct {
        uint32_t id;    /* builtin clock: 6 BOOTTIME, 2 REALTIME_COARSE, 4, 1 REALTIME, 3 MONOTONIC, 5, 9 TSC */
        uint64_t value; /* ns; TSC in cycles */
    } clock[CLOCK_READINGS_MAX];
    uint32_t n;
};

/* Reads them one right after the other, in the order of the protocol (spec ipc 8), TSC last where there is one. */
void clock_readings_take(struct clock_readings *r);

/* The value of a clock, 0 when it was not read. */
uint64_t clock_readings_get(const struct clock_readings *r, uint32_t id);

/* Appends one message field `field` {1 clock_id, 2 timestamp} a clock: ClockSnapshot.clocks (1),
 * SyncClockRequest.clocks (2). */
void clock_readings_put(const struct clock_readings *r, struct pb_writer *w, uint32_t field);

#endif

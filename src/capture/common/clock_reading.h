/* All clocks of this machine read together, as the service and the relay put them into packets. */
#ifndef MERIDIAN_CAPTURE_COMMON_CLOCK_READING_H
#define MERIDIAN_CAPTURE_COMMON_CLOCK_READING_H

#include "wire/pb_writer.h"

enum { CLOCK_READINGS_MAX = 7 };
enum {
    CLOCK_REALTIME_ID = 1,
    CLOCK_REALTIME_COARSE_ID,
    CLOCK_MONOTONIC_COARSE_ID = 4,
    CLOCK_BOOTTIME_ID = 6,
    CLOCK_TSC_ID = 9
};

struct clock_readings {
    struct {
        uint32_t id;    /* builtin clock: 6 BOOTTIME, 2 REALTIME_COARSE, 4, 1 REALTIME, 3 MONOTONIC, 5, 9 TSC */
        uint64_t value; /* ns; TSC in cycles */
    } clock[CLOCK_READINGS_MAX];
    uint32_t n;
};

/* Reads them one right after the other, in the order of the protocol, TSC last where there is one. */
void clock_readings_take(struct clock_readings *r);

/* The same, as of the end: reading them all takes a while where the clock is a device (guests, some boards), and a
 * message that is about to leave should say when it left. */
void clock_readings_take_last(struct clock_readings *r);

/* Makes it a reading of `age_ns` ago; `before` is an earlier one, for the pace of clocks that do not count ns. */
void clock_readings_back_date(struct clock_readings *r, uint64_t age_ns, const struct clock_readings *before);

/* The other way: a reading of `late_ns` later, not after `next`. */
void clock_readings_forward_date(struct clock_readings *r, uint64_t late_ns, const struct clock_readings *next);

/* Without the coarse clocks: they jump by milliseconds, and say nothing about when a message came. */
void clock_readings_drop_coarse(struct clock_readings *r);

/* The value of a clock, 0 when it was not read. */
uint64_t clock_readings_get(const struct clock_readings *r, uint32_t id);

/* Appends one message field `field` {1 clock_id, 2 timestamp} a clock: ClockSnapshot.clocks (1),
 * SyncClockRequest.clocks (2). */
void clock_readings_put(const struct clock_readings *r, struct pb_writer *w, uint32_t field);

#endif

/* The order of comparisons in a trace, for readers that average over them.
 *
 * Perfetto makes of each packet one pair of moments, host and machine, for every clock (importer: the compatible
 * model), and gives up a clock of which one runs backwards. Two rounds a fraction of a millisecond apart, of which one
 * was held up on its way, may do that although no clock did. */
#ifndef MERIDIAN_CAPTURE_SERVICE_CLOCK_ORDER_H
#define MERIDIAN_CAPTURE_SERVICE_CLOCK_ORDER_H

#include "capture/common/clock_reading.h"

#include <stdbool.h>

/* One comparison of clocks with another machine: a PING and the UPDATE that followed its reply. Three
 * messages between the two clocks: client -> host, back, and client -> host again. */
struct clock_round {
    struct clock_readings client[2]; /* of PING and UPDATE */
    struct clock_readings host[2];
    uint64_t at_ns;         /* the host's BOOTTIME at the UPDATE */
    uint32_t source_period; /* counts the changes of the two kernels' clock sources from 1 on; 0: unknown */
};

/* What a trace holds of a machine's clocks so far: the latest moments. Zeroed at first. */
struct clock_order {
    struct clock_moment {
        uint32_t id;
        uint64_t host, client;
    } clock[CLOCK_READINGS_MAX];
    uint32_t n;
    uint64_t at_ns;
};

/* Whether the round may follow what is there; then it is the latest. A round that makes time run backwards is refused
 * when others are close by: a clock that truly was put back is told once that time is over, and to every reader. */
bool clock_order_add(struct clock_order *o, const struct clock_round *r);

#endif

/* Relates the clocks of a remote machine to the host's by the rounds of RemoteClockSync (facts: importer section 2,
 * "Remote machines"). */
#ifndef MERIDIAN_IMPORTER_CLOCK_REMOTE_SYNC_H
#define MERIDIAN_IMPORTER_CLOCK_REMOTE_SYNC_H

#include "importer/clock/clock_graph.h"
#include "importer/context.h"

enum { CLOCK_ROUND_MAX = 16 /* clocks in one reading; the services send seven */ };

/* One exchange: the client's clocks as it sent, the host's as it received. */
struct clock_round {
    struct clock_reading client[CLOCK_ROUND_MAX];
    struct clock_reading host[CLOCK_ROUND_MAX];
    size_t n_client;
    size_t n_host;
};

struct clock_rounds {
    struct clock_round *p;
    size_t n;
    size_t cap;
};

/* Compatible mode: one constant offset a clock, the average over consecutive rounds, bit for bit. */
void remote_sync_compatible(struct importer *im, uint32_t machine, const struct clock_rounds *rounds);

#endif

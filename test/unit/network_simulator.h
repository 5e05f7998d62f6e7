/* Machines with clocks of their own that send each other packets: what relating recordings is tested and measured by.
 */
#ifndef MERIDIAN_TEST_NETWORK_SIMULATOR_H
#define MERIDIAN_TEST_NETWORK_SIMULATOR_H

#include "importer/sync/sync_session.h"

enum { SIMULATED_HOSTS_MAX = 64 };

struct simulated_network {
    uint32_t hosts;
    uint64_t packets;
    uint32_t lost_percent; /* packets that only their sender has recorded */
    int64_t span_ns;
    int64_t delay_ns, jitter_ns;
    uint64_t seed; /* not 0 */
    /* filled in: a host's clock reads offset + t + t * ppb / 1e9 at the true time t */
    int64_t offset[SIMULATED_HOSTS_MAX];
    int64_t ppb[SIMULATED_HOSTS_MAX];
};

/* Makes the clocks, and records every packet with the session, host by host. False when out of memory. */
bool simulate_network(struct simulated_network *n, struct sync_session *s);

/* What a host's clock shows at a true time. */
int64_t simulated_clock(const struct simulated_network *n, uint32_t host, int64_t t);

/* Looks at `samples` random times: how many lie further from the truth than the bound says (or have none), and the
 * largest error and bound. */
uint64_t simulated_outside(struct simulated_network *n, const struct sync_network *found, int samples,
                           int64_t *worst_error, int64_t *worst_bound);

#endif

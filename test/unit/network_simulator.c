/* Simulated machines that send each other packets. */
#include "network_simulator.h"

static uint64_t next(struct simulated_network *n, uint64_t below)
{
    n->seed ^= n->seed << 13;
    n->seed ^= n->seed >> 7;
    n->seed ^= n->seed << 17;
    return n->seed % below;
}

int64_t simulated_clock(const struct simulated_network *n, uint32_t host, int64_t t)
{
    return n->offset[host] + t + (int64_t)((__int128)t * n->ppb[host] / 1000000000);
}

bool simulate_network(struct simulated_network *n, struct sync_session *s)
{
    for (uint32_t i = 0; i < n->hosts; i++) {
        n->offset[i] = (int64_t)next(n, 2000000000000000) - 1000000000000000;
        n->ppb[i] = (int64_t)next(n, 100000) - 50000;
    }
    for (uint64_t i = 0; i < n->packets; i++) {
        int64_t t = (int64_t)((__int128)n->span_ns * i / n->packets);
        uint32_t from = (uint32_t)next(n, n->hosts), to = (from + 1 + (uint32_t)next(n, n->hosts - 1)) % n->hosts;
        int64_t delay = n->delay_ns + (int64_t)next(n, (uint64_t)n->jitter_ns + 1);
        struct packet_key key = {.flow = (uint64_t)from << 32 | to | 1ull << 40,
                                 .seq = (uint32_t)i,
                                 .ack = (uint32_t)(i >> 32),
                                 .flags = 16,
                                 .family = PACKET_TCP};
        if (sync_session_packet(s, from, PACKET_SENT, simulated_clock(n, from, t), key))
            return false;
        if (next(n, 100) >= n->lost_percent &&
            sync_session_packet(s, to, PACKET_RECEIVED, simulated_clock(n, to, t + delay), key))
            return false;
    }
    return true;
}

uint64_t simulated_outside(struct simulated_network *n, const struct sync_network *found, int samples,
                           int64_t *worst_error, int64_t *worst_bound)
{
    uint64_t outside = 0;
    *worst_error = *worst_bound = 0;
    for (int i = 0; i < samples; i++) {
        int64_t t = (int64_t)next(n, (uint64_t)n->span_ns), bound;
        uint32_t host = (uint32_t)next(n, n->hosts);
        int64_t got = sync_network_to_reference(found, host, simulated_clock(n, host, t), &bound);
        int64_t truth = simulated_clock(n, found->reference, t), error = got > truth ? got - truth : truth - got;
        outside += error > bound || bound == INT64_MAX;
        *worst_error = error > *worst_error ? error : *worst_error;
        *worst_bound = bound > *worst_bound ? bound : *worst_bound;
    }
    return outside;
}

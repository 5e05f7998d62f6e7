/* Fuzzes the matching of packets and what is made of them: eight bytes an event (host and direction, key, a step of the
 * host's clock that may be a jump back or years). Whatever the clocks do, counts add up and maps never decrease. */
#include "importer/sync/sync_session.h"

#include "fuzz.h"

#include <string.h>

enum { HOSTS = 5, EVENT_BYTES = 8, MAX_EVENTS = 3000, ROUNDING_NS = 4 };

static void check_counts(const struct matcher *m)
{
    struct match_counts all = matcher_counts(m, UINT32_MAX);
    if (all.matched > all.sent || all.matched > all.received ||
        all.matched + all.unmatched_sent > all.sent + all.received)
        __builtin_trap();
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct match_counts c = matcher_counts(m, host);
        if (c.unmatched_sent > c.sent || c.unmatched_received > c.received)
            __builtin_trap();
    }
}

/* A message that arrives before it leaves, by more than what rounding does. */
static bool turns_one_round(const struct sync_network *n, const struct sync_pair *p)
{
    for (size_t k = 0; k < p->windows.messages.n; k++) {
        const struct sync_message *m = &p->windows.messages.p[k];
        __int128 ref = sync_network_to_reference(n, p->ref, m->x, NULL);
        __int128 other = sync_network_to_reference(n, p->other, m->y, NULL);
        if ((m->kind == SYNC_ABOVE ? ref - other : other - ref) > ROUNDING_NS)
            return true;
    }
    return false;
}

static void check_maps(const struct sync_network *n)
{
    static const int64_t times[] = {INT64_MIN, -1000000000000, -1, 0, 1, 1000, 1000000, 1000000000000, INT64_MAX};
    for (uint32_t host = 0; host < n->n_hosts; host++) {
        int64_t before = INT64_MIN;
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            int64_t error = 0, ts = sync_network_to_reference(n, host, times[i], &error);
            if (ts < before || error < 0)
                __builtin_trap();
            before = ts;
            (void)sync_network_from_reference(n, host, times[i], &error);
        }
    }
    for (size_t i = 0; i < n->pairs.n; i++)
        if (n->pairs.p[i].quality == SYNC_ACCURATE && n->pairs.p[i].windows.windows.n == 1 && n->pairs.p[i].in_tree &&
            n->method == SYNC_METHOD_EXACT && turns_one_round(n, &n->pairs.p[i]))
            __builtin_trap();
}

static void run(const uint8_t *data, size_t n, enum sync_method method)
{
    struct sync_session s = {0};
    int64_t clocks[HOSTS] = {0};
    bool failed = false;
    for (size_t i = 0; i < n && !failed; i++, data += EVENT_BYTES) {
        uint32_t host = (data[0] & 0x7f) % HOSTS;
        int32_t step;
        memcpy(&step, data + 4, sizeof step);
        /* the low bits say how large the step is, so that few bytes make microseconds and years */
        clocks[host] = sync_saturate((__int128)clocks[host] + (__int128)(step / 16) * (1 << (step & 15) * 2));
        struct packet_key key = {.flow = data[1] & 3, .seq = data[2], .ack = data[3], .family = PACKET_TCP};
        failed = sync_session_packet(&s, host, data[0] >> 7 ? PACKET_RECEIVED : PACKET_SENT, clocks[host], key) != 0;
    }
    struct sync_limits limits = {.slope_ppb = method == SYNC_METHOD_EXACT ? 1000000 : 0};
    if (!failed && sync_session_solve(&s, HOSTS, method, limits, SYNC_NO_HOST) == 0) {
        check_counts(s.matcher);
        check_maps(&s.network);
    }
    sync_session_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = size / EVENT_BYTES;
    n = n > MAX_EVENTS ? MAX_EVENTS : n;
    run(data, n, SYNC_METHOD_EXACT);
    run(data, n, SYNC_METHOD_TRACE_COMPASS);
    return 0;
}

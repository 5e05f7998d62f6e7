/* The order of comparisons in a trace, for readers that average over them. */
#include "capture/service/clock_order.h"

/* A clock that truly was put back is not hidden for longer than this. */
#define CLOSE_NS 1000000000u

/* Perfetto's average of a round, in its integers: the differences to the middle of the machine's two readings and to
 * that of the host's. */
static struct clock_moment moment_of(const struct clock_round *r, uint32_t id)
{
    int64_t client[2], host[2];
    for (int k = 0; k < 2; k++) {
        client[k] = (int64_t)clock_readings_get(&r->client[k], id);
        host[k] = (int64_t)clock_readings_get(&r->host[k], id);
        if (!client[k] || !host[k])
            return (struct clock_moment){0};
    }
    __int128 there = ((__int128)client[0] + client[1]) / 2 - host[0];
    __int128 back = client[1] - ((__int128)host[0] + host[1]) / 2;
    return (struct clock_moment){id, (uint64_t)host[1], (uint64_t)(host[1] + (int64_t)((there + back) / 2))};
}

static const struct clock_moment *last_of(const struct clock_order *o, uint32_t id)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->clock[i].id == id)
            return &o->clock[i];
    return NULL;
}

bool clock_order_add(struct clock_order *o, const struct clock_round *r)
{
    struct clock_order next = {.at_ns = r->at_ns};
    bool close = o->n && r->at_ns - o->at_ns < CLOSE_NS;
    for (uint32_t i = 0; i < r->client[1].n; i++) {
        struct clock_moment now = moment_of(r, r->client[1].clock[i].id);
        const struct clock_moment *last = last_of(o, now.id);
        if (!now.id)
            continue;
        if (close && last && (now.host < last->host || now.client < last->client))
            return false;
        next.clock[next.n++] = now;
    }
    *o = next;
    return true;
}

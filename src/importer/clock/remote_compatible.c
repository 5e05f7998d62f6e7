/* Computes the constant offset between a remote machine's clocks and the host's. */
#include "importer/clock/remote_private.h"

static const int64_t longest_round_ns = 30 * INT64_C(1000000000); /* pairs further apart are not used */

const int64_t *round_value(const struct clock_reading *r, size_t n, uint32_t clock)
{
    for (size_t i = n; i-- > 0;)
        if (r[i].clock.id == clock)
            return &r[i].value;
    return NULL;
}

/* What has been summed up for one clock. */
struct offset_sum {
    uint32_t clock;
    __int128 sum;
    int64_t count;
    int64_t anchor; /* the host's reading in the last round that has the clock */
};

static struct offset_sum *sum_of(struct offset_sum *sums, size_t *n, uint32_t clock)
{
    for (size_t i = 0; i < *n; i++)
        if (sums[i].clock == clock)
            return &sums[i];
    if (*n == CLOCK_ROUND_MAX)
        return NULL;
    sums[*n] = (struct offset_sum){.clock = clock};
    return &sums[(*n)++];
}

/* The order in which the reference emits the edges of the usual clocks (it decides snapshot ids); others follow. */
static unsigned emission_rank(uint32_t clock)
{
    static const uint8_t order[] = {5, 1, 9, 3, 2, 4, 6};
    for (unsigned i = 0; i < sizeof order; i++)
        if (order[i] == clock)
            return i;
    return sizeof order + (clock < UINT32_MAX - 64 ? clock : UINT32_MAX - 64);
}

static void add_pair(struct offset_sum *s, int64_t t1c, int64_t t1h, int64_t t2c, int64_t t2h)
{
    if (!t1c || !t1h || !t2c || !t2h)
        return;
    s->sum += ((__int128)t1c + t2c) / 2 - t1h;
    s->sum += t2c - ((__int128)t1h + t2h) / 2;
    s->count += 2;
}

/* Sums up the offsets of each clock over the rounds of a packet; returns how many clocks there are, in the order of
 * their emission. */
static size_t sum_up(const struct clock_rounds *rounds, struct offset_sum sums[CLOCK_ROUND_MAX])
{
    size_t n = 0;
    for (size_t i = 1; i < rounds->n; i++) {
        const struct clock_round *a = &rounds->p[i - 1], *b = &rounds->p[i];
        const int64_t *ta = round_value(a->client, a->n_client, CLOCK_ID_BOOTTIME);
        const int64_t *tb = round_value(b->client, b->n_client, CLOCK_ID_BOOTTIME);
        __int128 apart = (__int128)(tb ? *tb : 0) - (ta ? *ta : 0);
        if (!ta || !tb || apart >= longest_round_ns)
            continue;
        for (size_t k = 0; k < b->n_client; k++) {
            uint32_t clock = b->client[k].clock.id;
            const int64_t *t1c = round_value(a->client, a->n_client, clock),
                          *t1h = round_value(a->host, a->n_host, clock);
            const int64_t *t2h = round_value(b->host, b->n_host, clock);
            struct offset_sum *s = t1c && t1h && t2h ? sum_of(sums, &n, clock) : NULL;
            if (s)
                add_pair(s, *t1c, *t1h, b->client[k].value, *t2h);
        }
    }
    for (size_t i = 0; i < rounds->n; i++)
        for (size_t k = 0; k < n; k++) {
            const int64_t *reading = round_value(rounds->p[i].host, rounds->p[i].n_host, sums[k].clock);
            if (reading)
                sums[k].anchor = *reading;
        }
    for (size_t done = 0; done < n; done++) { /* a few clocks: selection in order of rank */
        size_t next = done;
        for (size_t k = done + 1; k < n; k++)
            if (emission_rank(sums[k].clock) < emission_rank(sums[next].clock))
                next = k;
        struct offset_sum s = sums[next];
        sums[next] = sums[done];
        sums[done] = s;
    }
    return n;
}

/* Both clocks at one moment. False when there is none that numbers hold. */
static bool pair_of(struct importer *im, const struct offset_sum *s, struct clock_id remote, struct clock_id host,
                    struct clock_reading pair[2])
{
    if (!s->count)
        return false;
    __int128 client = s->anchor + s->sum / s->count;
    if (client > INT64_MAX || client < INT64_MIN) {
        stats_add(&im->st->stats, 0, STAT_invalid_clock_snapshots, 1);
        return false;
    }
    host.id = remote.id = s->clock;
    pair[0] = (struct clock_reading){.clock = host, .value = s->anchor};
    pair[1] = (struct clock_reading){.clock = remote, .value = (int64_t)client};
    return true;
}

void remote_sync_compatible(struct importer *im, struct clock_id remote, struct clock_id host,
                            const struct clock_rounds *rounds)
{
    struct offset_sum sums[CLOCK_ROUND_MAX];
    struct clock_reading pair[2];
    for (size_t i = 0; i < rounds->n; i++)
        clock_graph_add_snapshot(im->clocks, rounds->p[i].client, rounds->p[i].n_client);
    size_t n = sum_up(rounds, sums);
    for (size_t i = 0; i < n; i++)
        if (pair_of(im, &sums[i], remote, host, pair))
            clock_graph_write_rows(im->clocks, pair, 2, clock_graph_add_snapshot(im->clocks, pair, 2));
}

void remote_sync_rows(struct importer *im, struct clock_id remote, struct clock_id host,
                      const struct clock_rounds *rounds)
{
    struct offset_sum sums[CLOCK_ROUND_MAX];
    struct clock_reading pair[2];
    size_t n = sum_up(rounds, sums);
    for (size_t i = 0; i < n; i++)
        if (pair_of(im, &sums[i], remote, host, pair))
            clock_graph_write_rows(im->clocks, pair, 2, clock_graph_new_snapshot(im->clocks));
    const struct clock_round *last = rounds->n ? &rounds->p[rounds->n - 1] : NULL;
    if (last)
        clock_graph_write_rows(im->clocks, last->client, last->n_client, clock_graph_new_snapshot(im->clocks));
}

/* Makes blocks of events. */
#include "importer/sort/event_block.h"

#include "base/vectorised.h"

VECTORISED static bool times_rise(const struct sort_event *e, uint32_t n)
{
    uint64_t falls = 0;
    for (uint32_t i = 1; i < n; i++)
        falls += e[i].ts < e[i - 1].ts;
    return !falls;
}

static void find_times(const struct sort_event *e, uint32_t n, int64_t *min, int64_t *max)
{
    for (uint32_t i = 1; i < n; i++) {
        *min = e[i].ts < *min ? e[i].ts : *min;
        *max = e[i].ts > *max ? e[i].ts : *max;
    }
}

struct sort_block sort_block_describe(const struct sort_event *e, uint32_t n, bool tied)
{
    struct sort_block b = {
        .min_ts = e[0].ts, .max_ts = e[n - 1].ts, .first_ts = e[0].ts, .last_ts = e[n - 1].ts, .ties_sorted = true};
    b.sorted = times_rise(e, n);
    if (!b.sorted) {
        b.max_ts = e[0].ts;
        find_times(e, n, &b.min_ts, &b.max_ts);
    }
    for (uint32_t i = 1; tied && i < n; i++)
        b.ties_sorted &= e[i].ts != e[i - 1].ts || e[i].b >= e[i - 1].b;
    return b;
}

bool sort_block_make(struct sort_block *b, const struct sort_event *e, uint32_t n)
{
    *b = sort_block_describe(e, n, false);
    b->events = packed_events_make(e, n);
    return b->events;
}

void sort_block_add(struct sort_block *b, uint64_t a, uint32_t low_b)
{
    b->events->base[PACKED_A] += a;
    b->events->base[PACKED_LOW_B] += low_b;
}

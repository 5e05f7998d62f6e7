/* The clocks of CTF traces on the timeline. */
#include "importer/ctf/ctf_internal.h"

#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"

/* Do the clocks count from the epoch, as far as they say? */
static bool has_epoch(const struct ctf_metadata *meta)
{
    bool any = meta->clocks.n == 0;
    for (size_t i = 0; i < meta->clocks.n; i++)
        any |= !meta->clocks.p[i].no_epoch;
    return any;
}

/* LTTng's own clock, whose offset is that of the wall clock; NULL: there is none. */
static const struct ctf_clock *monotonic_of(const struct ctf_metadata *meta)
{
    for (size_t i = 0; i < meta->clocks.n; i++)
        if (strcmp(meta->clocks.p[i].name, "monotonic") == 0 && !meta->clocks.p[i].no_epoch)
            return &meta->clocks.p[i];
    return NULL;
}

/* Streams whose clock nothing relates to that of the others: their times stand as they are. */
static void count_unrelated(struct importer *im, uint32_t machine, const struct ctf_metadata *meta)
{
    for (size_t i = 0; i < meta->clocks.n; i++) {
        bool used = false;
        for (size_t k = 0; k < meta->streams.n; k++)
            used |= meta->streams.p[k]->clock == (int)i;
        if (used && meta->clocks.p[i].no_epoch)
            stats_add(&im->st->stats, machine, STAT_clock_sync_unrelatable_clock_domains, 1);
    }
}

/* What the traces show counts as REALTIME; LTTng's own clock is MONOTONIC with an offset. A clock with an origin of its
 * own is MONOTONIC, and nothing is known of the wall clock. Several clocks that count from the epoch are the same. */
struct clock_id ctf_add_clocks(struct importer *im, uint32_t machine, const struct ctf_trace *trace, bool is_trace_time)
{
    const struct ctf_metadata *meta = &trace->metadata;
    struct clock_id real = {.id = CLOCK_ID_REALTIME, .machine = machine},
                    mono = {.id = CLOCK_ID_MONOTONIC, .machine = machine};
    struct clock_id shown = has_epoch(meta) ? real : mono;
    if (is_trace_time) {
        clock_graph_set_trace_clock(im->clocks, shown);
        metadata_int(im, NULL, METADATA_trace_time_clock_id, shown.id);
    }
    clock_graph_own_domain(im->clocks, shown);
    if (!has_epoch(meta))
        return shown;
    const struct ctf_clock *monotonic = monotonic_of(meta);
    const struct ctf_clock *clock = monotonic ? monotonic : ctf_trace_clock(trace);
    struct clock_reading pair[] = {{.clock = real, .value = clock ? ctf_clock_ns(clock, 0) : 0}, {.clock = mono}};
    uint32_t n = monotonic ? 2 : 1;
    clock_graph_write_rows(im->clocks, pair, n, clock_graph_add_snapshot(im->clocks, pair, n));
    count_unrelated(im, machine, meta);
    return shown;
}

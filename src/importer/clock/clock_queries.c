/* Owns the questions about clocks that SQL functions put. */
#include "importer/clock/clock_queries.h"

#include "importer/clock/remote_sync.h"

#include <strings.h>

uint32_t clock_by_name(const char *name)
{
    static const struct {
        const char *name;
        uint32_t id;
    } clocks[] = {
        {"REALTIME", CLOCK_ID_REALTIME},
        {"REALTIME_COARSE", CLOCK_ID_REALTIME_COARSE},
        {"MONOTONIC", CLOCK_ID_MONOTONIC},
        {"MONOTONIC_COARSE", CLOCK_ID_MONOTONIC_COARSE},
        {"MONOTONIC_RAW", CLOCK_ID_MONOTONIC_RAW},
        {"BOOTTIME", CLOCK_ID_BOOTTIME},
        {"TSC", CLOCK_ID_TSC},
        {"PERF", CLOCK_ID_PERF},
    };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        if (strcasecmp(clocks[i].name, name) == 0)
            return clocks[i].id;
    return 0;
}

bool clock_query_error(struct importer *im, uint32_t machine, int64_t trace_ns, int64_t *error_ns)
{
    return machine < im->machines.n && remote_sync_error(im->remote, machine, trace_ns, error_ns);
}

bool clock_query_to_machine(struct importer *im, int64_t trace_ns, uint32_t machine, uint32_t clock, int64_t *value)
{
    struct clock_id to = {.id = clock, .machine = machine};
    return machine < im->machines.n && clock_graph_from_trace_time(im->clocks, trace_ns, to, value) == 0;
}

bool clock_query_from_machine(struct importer *im, int64_t value, uint32_t machine, uint32_t clock, int64_t *trace_ns)
{
    struct clock_id from = {.id = clock, .machine = machine};
    return machine < im->machines.n &&
           clock_graph_convert(im->clocks, from, value, clock_graph_trace_clock(im->clocks), trace_ns) == 0;
}

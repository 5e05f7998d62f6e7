/* Answers the questions about clocks that SQL functions ask. */
#include "importer/clock/clock_queries.h"

#include "importer/clock/recordings.h"
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

/* A snapshot brings clocks, and no contexts of machines. */
static size_t machine_count(const struct importer *im)
{
    return im->clocks_restored ? im->clock_files.n : im->machines.n;
}

/* The error of the host that a machine was compared with comes on top of its own. */
bool clock_query_error(struct importer *im, uint32_t machine, int64_t trace_ns, int64_t *error_ns)
{
    int64_t host_error = 0;
    if (machine >= machine_count(im))
        return false;
    int rc = recordings_error(im, machine, trace_ns, error_ns);
    if (rc != -MRD_ENOTFOUND)
        return rc == 0;
    if (!remote_sync_error(im->remote, machine, trace_ns, error_ns))
        return false;
    uint32_t host = remote_sync_host(im->remote, machine);
    rc = host == machine ? 0 : recordings_error(im, host, trace_ns, &host_error);
    return (rc == 0 || rc == -MRD_ENOTFOUND) && !__builtin_add_overflow(*error_ns, host_error, error_ns);
}

static struct clock_id clock_of(const struct importer *im, uint32_t machine, uint32_t clock)
{
    return (struct clock_id){.id = clock,
                             .machine = machine,
                             .file = im->clocks_restored ? im->clock_files.p[machine]
                                                         : im->machines.p[machine]->clock_file};
}

bool clock_query_to_machine(struct importer *im, int64_t trace_ns, uint32_t machine, uint32_t clock, int64_t *value)
{
    return machine < machine_count(im) &&
           clock_graph_from_trace_time(im->clocks, trace_ns, clock_of(im, machine, clock), value) == 0;
}

bool clock_query_from_machine(struct importer *im, int64_t value, uint32_t machine, uint32_t clock, int64_t *trace_ns)
{
    return machine < machine_count(im) && clock_graph_convert(im->clocks, clock_of(im, machine, clock), value,
                                                              clock_graph_trace_clock(im->clocks), trace_ns) == 0;
}

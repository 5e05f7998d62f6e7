/* Heap profiles of a command, or of processes that have loaded the library. */
#include "capture/record/profile_heap.h"

#include "capture/record/profile_heap_top.h"
#include "wire/pb_writer.h"

#include <stdlib.h>

enum { DEFAULT_INTERVAL = 4096, MAX_INTERVAL = 1 << 30 };

/* A number of bytes, kb or mb; 0: it is none. */
static uint64_t parse_interval(const char *text)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"", 0}, {"k", 10}, {"kb", 10}, {"m", 20}, {"mb", 20}};
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    for (size_t i = 0; *text >= '0' && *text <= '9' && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0 && n <= (unsigned long long)MAX_INTERVAL >> units[i].shift)
            return n << units[i].shift;
    return 0;
}

const char *profile_heap_check(const struct profile_flags *f, bool command)
{
    if (!f->heap)
        return f->interval ? "--interval is for --heap" : NULL;
    if (f->frequency.given || f->off_cpu || f->dwarf || f->cgroups.n)
        return "--heap samples allocations: --frequency, --off-cpu, --dwarf and --cgroup are for processor time";
    if (f->machines.n || f->no_host)
        return "--heap is for this machine alone";
    if (command == (f->pids.n > 0))
        return "--heap needs a COMMAND, or --pid for programs that were started with the library";
    if (f->interval && !parse_interval(f->interval))
        return "--interval: use a number of bytes, such as 4096 or 64kb, up to 1024mb";
    return NULL;
}

int profile_heap_choose(struct record *r, const void *flag_values, struct error *err)
{
    const struct profile_flags *f = flag_values;
    struct pb_writer w = {0};
    char text[200];
    if (!r->command && !r->shared)
        return error_set(
            err, -MRD_ENOTFOUND,
            "no tracing service here has a heapprofd: run tracebox traced and tracebox heapprofd, for programs "
            "that have loaded the library; or give the command to profile");
    int n = snprintf(text, sizeof text,
                     "data_sources { config { name: \"android.heapprofd\" heapprofd_config { "
                     "sampling_interval_bytes: %llu block_client: true all: %s",
                     (unsigned long long)(f->interval ? parse_interval(f->interval) : DEFAULT_INTERVAL),
                     r->command ? "true" : "false");
    pb_put_raw(&w, text, (size_t)n);
    for (size_t i = 0; i < f->pids.n; i++) {
        n = snprintf(text, sizeof text, " pid: %d", atoi(f->pids.p[i]));
        pb_put_raw(&w, text, (size_t)n);
    }
    pb_put_raw(&w, " } } }\n", sizeof " } } }\n");
    return record_own_sources(r, &w, err);
}

bool profile_heap_show(const struct record *r, const struct profile_flags *f)
{
    struct profile_heap_counts n = {0};
    struct error err = {0};
    char kept[16], allocated[16];
    if (profile_heap_top(r->perfetto.out, (unsigned)f->rows.value, f->callers, stdout, &n, &err)) {
        fprintf(stderr, "profile: %s\n", err.text);
        return false;
    }
    fflush(stdout);
    profile_print_bytes(kept, sizeof kept, n.kept);
    profile_print_bytes(allocated, sizeof allocated, n.allocated);
    fprintf(
        stderr,
        "profile: %s of %s were not freed; %llu samples of %u process%s, one each %llu bytes in the mean; %llu lost\n",
        kept, allocated, (unsigned long long)n.samples, n.processes, n.processes == 1 ? "" : "es",
        (unsigned long long)n.interval, (unsigned long long)n.lost);
    if (n.left_out)
        fprintf(stderr, "profile: %u process%s left out: heapprofd has memory for so many at once\n", n.left_out,
                n.left_out == 1 ? " was" : "es were");
    else if (!n.processes)
        fprintf(stderr, "profile: no process has loaded the library: programs that are linked statically or run with "
                        "other rights (sudo) do not, nor do those that have an allocator of their own\n");
    fprintf(stderr, "profile: the trace is in %s: tp_shell --symbols auto %s\n", r->perfetto.out, r->perfetto.out);
    return true;
}

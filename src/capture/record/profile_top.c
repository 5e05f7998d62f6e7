/* Counts functions over the samples of a trace, without importing it: only what linux.perf writes is looked at. */
#include "capture/record/profile_top.h"

#include "capture/record/profile_stacks.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>

struct top {
    struct profile_stacks stacks;
    struct u64map of_events; /* sequences whose samples are hits of a tracepoint, not time */
    struct profile_counts counts;
};

/* ---- samples ---- */

static void read_sample(struct top *t, struct slice m)
{
    struct pb_field f;
    uint64_t at;
    if (pb_find(m, PERF_SAMPLE_KERNEL_RECORDS_LOST, &f)) {
        t->counts.lost += pb_u64(&f);
        return;
    }
    if (pb_find(m, PERF_SAMPLE_SAMPLE_SKIPPED_REASON, &f)) {
        t->counts.skipped += pb_u64(&f) != PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_NOT_IN_SCOPE;
        return;
    }
    if (!pb_find(m, PERF_SAMPLE_CALLSTACK_IID, &f) || !profile_stacks_find(&t->stacks, pb_u64(&f), &at))
        return;
    if (pb_find(m, PERF_SAMPLE_TID, &f) && pb_u64(&f) == 0) {
        t->counts.idle++;
        return;
    }
    t->counts.samples++;
    profile_stacks_count(&t->stacks, at, 0, (const uint64_t[PROFILE_WEIGHTS]){1}, 1);
}

/* The packet begins a sequence of hits of a tracepoint. */
static bool is_of_events(struct slice m)
{
    static const uint32_t path[] = {TRACE_PACKET_TRACE_PACKET_DEFAULTS, TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS,
                                    PERF_SAMPLE_DEFAULTS_TIMEBASE, PERF_EVENTS_TIMEBASE_TRACEPOINT};
    struct pb_field f;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        if (!pb_find(m, path[i], &f))
            return false;
        m = pb_bytes(&f);
    }
    return true;
}

static int read_packet(void *ctx, struct slice field)
{
    struct top *t = ctx;
    struct slice m;
    struct pb_field f;
    if (!profile_stacks_packet(&t->stacks, field, &m))
        return t->stacks.failed ? -MRD_ENOMEM : 0;
    uint64_t sequence = profile_number(m, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID);
    if (is_of_events(m))
        t->stacks.failed |= !u64map_set(&t->of_events, sequence, 1);
    if (u64map_get(&t->of_events, sequence))
        return t->stacks.failed ? -MRD_ENOMEM : 0;
    if (profile_stacks_take_interned(&t->stacks, m) && pb_find(m, TRACE_PACKET_PERF_SAMPLE, &f))
        read_sample(t, pb_bytes(&f));
    return t->stacks.failed || t->stacks.strings.failed ? -MRD_ENOMEM : 0;
}

/* ---- the table ---- */

static int by_self(const void *a, const void *b)
{
    const struct profile_function *x = a, *y = b;
    return x->self[0] != y->self[0]     ? (x->self[0] > y->self[0] ? -1 : 1)
           : x->total[0] != y->total[0] ? (x->total[0] > y->total[0] ? -1 : 1)
                                        : (x->text > y->text) - (x->text < y->text);
}

static void print(struct top *t, unsigned rows, bool callers, FILE *to)
{
    double all = t->counts.samples ? (double)t->counts.samples : 1;
    size_t n = t->stacks.functions.n;
    struct profile_function *list = t->stacks.functions.p;
    if (n)
        qsort(list, n, sizeof *list, by_self);
    if (n)
        fprintf(to, callers ? "   self   total  function\n" : "   self  function\n");
    for (size_t i = 0; i < n && i < rows && (callers || list[i].self[0]); i++) {
        fprintf(to, " %5.1f%%", 100 * (double)list[i].self[0] / all);
        if (callers)
            fprintf(to, "  %5.1f%%", 100 * (double)list[i].total[0] / all);
        fputs("  ", to);
        profile_print_function(&t->stacks, &list[i], to);
    }
}

int profile_top(const char *path, unsigned rows, bool callers, FILE *to, struct profile_counts *counts,
                struct error *err)
{
    struct top t = {0};
    int rc = profile_stacks_read(path, read_packet, &t, err);
    if (!rc) {
        print(&t, rows, callers, to);
        *counts = t.counts;
        counts->events = t.of_events.n;
    }
    u64map_free(&t.of_events);
    profile_stacks_free(&t.stacks);
    return rc;
}

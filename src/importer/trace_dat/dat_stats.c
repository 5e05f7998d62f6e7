/* Reads `per_cpu/cpuN/stats`. */
#include "importer/trace_dat/dat_stats.h"

#include <stdlib.h>

enum { NOTHING = -1 };

/* `end`: the value of the top buffer; `loss`: what all buffers lost. */
static const struct {
    const char *name;
    int end, loss;
} lines[] = {
    {"entries: ", STAT_ftrace_cpu_entries_end, NOTHING},
    {"overrun: ", STAT_ftrace_cpu_overrun_end, STAT_ftrace_cpu_overrun_delta},
    {"commit overrun: ", STAT_ftrace_cpu_commit_overrun_end, STAT_ftrace_cpu_commit_overrun_delta},
    {"bytes: ", STAT_ftrace_cpu_bytes_end, NOTHING},
    {"oldest event ts: ", STAT_ftrace_cpu_oldest_event_ts_end, NOTHING},
    {"now ts: ", STAT_ftrace_cpu_now_ts_end, NOTHING},
    {"dropped events: ", STAT_ftrace_cpu_dropped_events_end, STAT_ftrace_cpu_dropped_events_delta},
    {"read events: ", STAT_ftrace_cpu_read_events_end, NOTHING},
};

static int64_t value_of(struct slice line, size_t name_len)
{
    char text[32] = "";
    size_t n = line.len - name_len < sizeof text - 1 ? line.len - name_len : sizeof text - 1;
    memcpy(text, line.p + name_len, n);
    return strtoll(text, NULL, 10); /* times: whole seconds, as the stats of ftrace have them */
}

static void import_line(struct machine_ctx *m, struct slice line, bool top, int32_t *cpu)
{
    struct stats *stats = &m->st->stats;
    if (slice_starts(line, "CPU: ")) {
        int64_t n = value_of(line, 5);
        *cpu = n >= 0 && n < DAT_MAX_CPUS ? (int32_t)n : NOTHING;
        return;
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines && *cpu != NOTHING; i++) {
        if (!slice_starts(line, lines[i].name))
            continue;
        int64_t value = value_of(line, strlen(lines[i].name));
        if (top)
            stats_set_idx(stats, m->id, (enum stat_key)lines[i].end, *cpu, value);
        if (lines[i].loss != NOTHING)
            stats_add_idx(stats, m->id, (enum stat_key)lines[i].loss, *cpu, value);
        return;
    }
}

void dat_stats_import(struct machine_ctx *m, const struct dat_file *f)
{
    for (size_t i = 0; i < f->cpustats.n; i++) {
        struct slice rest = f->cpustats.p[i].text;
        int32_t cpu = NOTHING;
        while (rest.len) {
            const uint8_t *nl = memchr(rest.p, '\n', rest.len);
            size_t n = nl ? (size_t)(nl - rest.p) : rest.len;
            import_line(m, slice_of(rest.p, n), !f->cpustats.p[i].buffer.len, &cpu);
            rest = slice_of(rest.p + n + (nl != NULL), rest.len - n - (nl != NULL));
        }
    }
}

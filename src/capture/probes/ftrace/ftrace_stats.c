/* Imports the FtraceStats packet. */
#include "capture/probes/ftrace/ftrace_stats.h"

#include "wire/fields.h"

#include <stdio.h>

static void put_cpu(struct pb_writer *w, uint32_t cpu, const struct tracefs_cpu_stats *s)
{
    size_t message = pb_begin(w, FTRACE_STATS_CPU_STATS);
    pb_put_varint(w, FTRACE_CPU_STATS_CPU, cpu);
    pb_put_varint(w, FTRACE_CPU_STATS_ENTRIES, s->entries);
    pb_put_varint(w, FTRACE_CPU_STATS_OVERRUN, s->overrun);
    pb_put_varint(w, FTRACE_CPU_STATS_COMMIT_OVERRUN, s->commit_overrun);
    pb_put_varint(w, FTRACE_CPU_STATS_BYTES_READ, s->bytes_read);
    pb_put_double(w, FTRACE_CPU_STATS_OLDEST_EVENT_TS, s->oldest_event_ts);
    pb_put_double(w, FTRACE_CPU_STATS_NOW_TS, s->now_ts);
    pb_put_varint(w, FTRACE_CPU_STATS_DROPPED_EVENTS, s->dropped_events);
    pb_put_varint(w, FTRACE_CPU_STATS_READ_EVENTS, s->read_events);
    pb_end(w, message);
}

/* Hits and misses of our probes: lines of `kprobe_profile` are "NAME HITS MISSES". */
static void put_kprobes(struct pb_writer *w, const struct ftrace_stats_input *in)
{
    struct tracefs top = tracefs_top(&in->instance->fs);
    char *text, *save = NULL;
    size_t len;
    long long hits = 0, misses = 0;
    if (!in->config->kprobes.n || tracefs_read(&top, "kprobe_profile", &text, &len, NULL))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[256];
        long long h, m;
        if (sscanf(line, " %255s %lld %lld", name, &h, &m) != 3)
            continue;
        for (size_t i = 0; i < in->selection->events.n; i++) {
            const struct kernel_event *e = in->selection->events.p[i];
            if (e->program.proto_id == FTRACE_EVENT_KPROBE_EVENT && strcmp(e->name, name) == 0) {
                hits += h;
                misses += m;
                break;
            }
        }
    }
    mem_free(text);
    size_t message = pb_begin(w, FTRACE_STATS_KPROBE_STATS);
    pb_put_i64(w, FTRACE_KPROBE_STATS_HITS, hits);
    pb_put_i64(w, FTRACE_KPROBE_STATS_MISSES, misses);
    pb_end(w, message);
}

void ftrace_stats_put(struct pb_writer *w, enum ftrace_stats_phase phase, const struct ftrace_stats_input *in)
{
    size_t message = pb_begin(w, TRACE_PACKET_FTRACE_STATS);
    pb_put_varint(w, FTRACE_STATS_PHASE, phase);
    for (uint32_t cpu = 0; cpu < in->instance->n_cpus; cpu++) {
        struct tracefs_cpu_stats s;
        if (tracefs_cpu_stats(&in->instance->fs, cpu, &s, NULL) == 0)
            put_cpu(w, cpu, &s);
    }
    pb_put_varint(w, FTRACE_STATS_KERNEL_SYMBOLS_PARSED, in->symbols);
    pb_put_varint(w, FTRACE_STATS_KERNEL_SYMBOLS_MEM_KB, in->symbols_kb);
    if (phase == FTRACE_STATS_PHASE_START_OF_TRACE) {
        if (in->selection->atrace_errors)
            pb_put_str(w, FTRACE_STATS_ATRACE_ERRORS, in->selection->atrace_errors);
        for (size_t i = 0; i < in->selection->unknown.n; i++)
            pb_put_str(w, FTRACE_STATS_UNKNOWN_FTRACE_EVENTS, in->selection->unknown.p[i]);
        for (size_t i = 0; i < in->selection->failed.n; i++)
            pb_put_str(w, FTRACE_STATS_FAILED_FTRACE_EVENTS, in->selection->failed.p[i]);
    } else {
        for (uint32_t i = 0; i < FTRACE_STATUS_COUNT; i++)
            if (in->counts->errors[i])
                pb_put_varint(w, FTRACE_STATS_FTRACE_PARSE_ERRORS, i);
    }
    if (in->config->preserve_ftrace_buffer)
        pb_put_varint(w, FTRACE_STATS_PRESERVE_FTRACE_BUFFER, 1);
    put_kprobes(w, in);
    pb_put_varint(w, FTRACE_STATS_CPU_BUFFER_SIZE_PAGES, in->instance->buffer_pages);
    pb_put_varint(w, FTRACE_STATS_CACHED_CPU_BUFFER_SIZE_PAGES, in->instance->request_pages);
    pb_end(w, message);
}

void ftrace_stats_put_refusal(struct pb_writer *w, const char *source, const char *why, bool exclusive)
{
    size_t message = pb_begin(w, TRACE_PACKET_FTRACE_STATS);
    pb_put_varint(w, FTRACE_STATS_PHASE, FTRACE_STATS_PHASE_START_OF_TRACE);
    if (exclusive) {
        pb_put_str(w, FTRACE_STATS_EXCLUSIVE_FEATURE_ERROR, why);
    } else {
        char text[400];
        snprintf(text, sizeof text, "%s: %s", source, why);
        pb_put_str(w, FTRACE_STATS_FAILED_FTRACE_EVENTS, text);
    }
    pb_end(w, message);
}

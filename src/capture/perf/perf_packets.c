/* Writes the packets of samples, field by field as the data source linux.perf is known for. */
#include "capture/perf/perf_packets.h"

#include "capture/probes/common/data_source.h"
#include "capture/probes/proc_status.h"
#include "wire/fields.h"
#include "wire/perf_event_fields.h"

_Static_assert(PERF_MODE_GUEST_USER == (int)PROFILING_CPU_MODE_GUEST_USER, "the numbers of Profiling.CpuMode");

enum { STATE_CLEARED = 1, STATE_NEEDED = 2 }; /* TracePacket.sequence_flags */

static uint32_t builtin_clock(const struct perf_config *c)
{
    if (c->poll_ms || c->clock == CLOCK_BOOTTIME)
        return BUILTIN_CLOCK_BOOTTIME;
    return c->clock == CLOCK_REALTIME    ? BUILTIN_CLOCK_REALTIME
           : c->clock == CLOCK_MONOTONIC ? BUILTIN_CLOCK_MONOTONIC
                                         : BUILTIN_CLOCK_MONOTONIC_RAW;
}

static void send_packet(struct perf_packets *p)
{
    if (!p->w.failed)
        packet_sink_write(&p->sink, pb_written(&p->w));
    p->gap |= p->w.failed;
    p->w.failed = false;
}

static void put_event(struct pb_writer *w, const struct perf_event_spec *e, const struct perf_event_fields *fields)
{
    if (e->kind == PERF_EVENT_COUNTER) {
        pb_put_varint(w, fields->counter, e->counter);
    } else if (e->kind == PERF_EVENT_TRACEPOINT) {
        size_t m = pb_begin(w, fields->tracepoint);
        pb_put_text(w, PERF_EVENTS_TRACEPOINT_NAME, e->tracepoint);
        pb_put_text(w, PERF_EVENTS_TRACEPOINT_FILTER, e->filter);
        pb_end(w, m);
    } else {
        size_t m = pb_begin(w, fields->raw);
        pb_put_varint(w, PERF_EVENTS_RAW_EVENT_TYPE, e->type);
        pb_put_varint(w, PERF_EVENTS_RAW_EVENT_CONFIG, e->config);
        pb_put_varint(w, PERF_EVENTS_RAW_EVENT_CONFIG1, e->config1);
        pb_put_varint(w, PERF_EVENTS_RAW_EVENT_CONFIG2, e->config2);
        pb_end(w, m);
    }
    if (e->name.len)
        pb_put_text(w, fields->name, e->name);
    for (uint32_t m = 1; m < 32 && e->modifiers && e->modifiers != PERF_COUNTS_ALL; m++)
        if (e->modifiers >> m & 1)
            pb_put_varint(w, fields->modifiers, m);
}

static void put_defaults(struct pb_writer *w, const struct perf_packets *p)
{
    const struct perf_config *c = p->config;
    size_t defaults = pb_begin(w, TRACE_PACKET_TRACE_PACKET_DEFAULTS);
    pb_put_varint(w, TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID, builtin_clock(c));
    size_t perf = pb_begin(w, TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS);
    size_t timebase = pb_begin(w, PERF_SAMPLE_DEFAULTS_TIMEBASE);
    if (c->poll_ms)
        pb_put_varint(w, PERF_EVENTS_TIMEBASE_POLL_PERIOD_MS, c->poll_ms);
    else if (c->period)
        pb_put_varint(w, PERF_EVENTS_TIMEBASE_PERIOD, c->period);
    else
        pb_put_varint(w, PERF_EVENTS_TIMEBASE_FREQUENCY, c->frequency);
    put_event(w, &c->timebase, &perf_timebase_fields);
    pb_end(w, timebase);
    for (uint32_t i = 0; i < c->n_followers; i++) {
        size_t follower = pb_begin(w, PERF_SAMPLE_DEFAULTS_FOLLOWERS);
        put_event(w, &c->followers[i], &perf_follower_fields);
        pb_end(w, follower);
    }
    if (p->shard_count) {
        pb_put_varint(w, PERF_SAMPLE_DEFAULTS_PROCESS_SHARD_COUNT, p->shard_count);
        pb_put_varint(w, PERF_SAMPLE_DEFAULTS_CHOSEN_PROCESS_SHARD, p->shard);
    }
    pb_end(w, perf);
    pb_end(w, defaults);
}

/* A packet at a time of BOOTTIME. */
static struct pb_writer *open_boot(struct perf_packets *p, uint64_t now, uint32_t flags)
{
    pb_writer_clear(&p->w);
    pb_put_varint(&p->w, TRACE_PACKET_TIMESTAMP, now);
    pb_put_varint(&p->w, TRACE_PACKET_TIMESTAMP_CLOCK_ID, BUILTIN_CLOCK_BOOTTIME);
    pb_put_varint(&p->w, TRACE_PACKET_SEQUENCE_FLAGS, flags);
    return &p->w;
}

void perf_packets_put_no_texts(struct pb_writer *w)
{
    static const uint32_t lists[] = {INTERNED_DATA_BUILD_IDS, INTERNED_DATA_MAPPING_PATHS,
                                     INTERNED_DATA_FUNCTION_NAMES};
    size_t interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t m = pb_begin(w, lists[i]);
        pb_put_varint(w, INTERNED_STRING_IID, 0);
        pb_put_bytes(w, INTERNED_STRING_STR, "", 0);
        pb_end(w, m);
    }
    pb_end(w, interned);
}

void perf_packets_begin(struct perf_packets *p)
{
    p->gap = false;
    p->lost = p->sink.lost ? p->sink.lost(p->sink.ctx) : 0;
    put_defaults(open_boot(p, probes_boot_ns(), STATE_CLEARED), p);
    send_packet(p);
    if (p->config->poll_ms)
        return;
    perf_packets_put_no_texts(open_boot(p, probes_boot_ns(), STATE_NEEDED));
    send_packet(p);
}

void perf_packets_forget(struct perf_packets *p)
{
    perf_intern_clear(&p->in);
}

void perf_packets_free(struct perf_packets *p)
{
    perf_intern_clear(&p->in);
    pb_writer_free(&p->w);
}

bool perf_packets_have_gap(const struct perf_packets *p)
{
    return p->gap || perf_intern_failed(&p->in) || (p->sink.lost && p->sink.lost(p->sink.ctx) != p->lost);
}

struct pb_writer *perf_packets_open(struct perf_packets *p, const struct perf_record *r)
{
    pb_writer_clear(&p->w);
    pb_put_varint(&p->w, TRACE_PACKET_TIMESTAMP, r->time);
    pb_put_varint(&p->w, TRACE_PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
    p->before = p->w.n;
    p->interned = pb_begin(&p->w, TRACE_PACKET_INTERNED_DATA);
    return &p->w;
}

static void put_sample(struct pb_writer *w, uint32_t cpu, const struct perf_record *r)
{
    pb_put_varint(w, PERF_SAMPLE_CPU, cpu);
    pb_put_varint(w, PERF_SAMPLE_PID, (uint32_t)r->pid);
    pb_put_varint(w, PERF_SAMPLE_TID, (uint32_t)r->tid);
    pb_put_varint(w, PERF_SAMPLE_CPU_MODE, r->mode);
    for (uint32_t i = 0; i < r->n_counts; i++)
        pb_put_varint(w, i ? PERF_SAMPLE_FOLLOWER_COUNTS : PERF_SAMPLE_TIMEBASE_COUNT, perf_record_count(r, i));
}

void perf_packets_stack(struct perf_packets *p, uint32_t cpu, const struct perf_record *r, const uint32_t *frames,
                        size_t n, uint32_t error)
{
    struct pb_writer *w = &p->w;
    uint64_t iid = perf_intern_callstack(&p->in, frames, n);
    perf_intern_tell(&p->in, w, iid);
    if (w->n == p->interned)
        w->n = p->before; /* nothing new */
    else
        pb_end(w, p->interned);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    put_sample(w, cpu, r);
    pb_put_varint(w, PERF_SAMPLE_CALLSTACK_IID, iid);
    if (error)
        pb_put_varint(w, PERF_SAMPLE_UNWIND_ERROR, error);
    pb_end(w, sample);
    send_packet(p);
}

void perf_packets_counts(struct perf_packets *p, uint32_t cpu, const struct perf_record *r, uint32_t reason)
{
    struct pb_writer *w = &p->w;
    pb_writer_clear(w);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, r->time);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    put_sample(w, cpu, r);
    if (reason)
        pb_put_varint(w, PERF_SAMPLE_SAMPLE_SKIPPED_REASON, reason);
    pb_end(w, sample);
    send_packet(p);
}

void perf_packets_polled(struct perf_packets *p, uint32_t cpu, uint64_t now, const uint64_t *counts, unsigned n)
{
    struct pb_writer *w = &p->w;
    pb_writer_clear(w);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, now);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    pb_put_varint(w, PERF_SAMPLE_CPU, cpu);
    for (unsigned i = 0; i < n; i++)
        pb_put_varint(w, i ? PERF_SAMPLE_FOLLOWER_COUNTS : PERF_SAMPLE_TIMEBASE_COUNT, counts[i]);
    pb_end(w, sample);
    send_packet(p);
}

/* The process, unless /proc says nothing of its command line, as it has ended. */
static void put_process(struct pb_writer *w, int32_t pid)
{
    size_t before = w->n, process = pb_begin(w, PROCESS_TREE_PROCESSES);
    pb_put_i64(w, PROCESS_TREE_PROCESS_PID, pid);
    if (proc_put_cmdline(w, pid))
        pb_end(w, process);
    else
        w->n = before;
}

void perf_packets_name(struct perf_packets *p, const struct perf_record *r, const char *name)
{
    struct pb_writer *w = &p->w;
    pb_writer_clear(w);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, r->time);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
    size_t tree = pb_begin(w, TRACE_PACKET_PROCESS_TREE);
    put_process(w, r->pid);
    size_t thread = pb_begin(w, PROCESS_TREE_THREADS);
    pb_put_i64(w, PROCESS_TREE_THREAD_TID, r->tid);
    pb_put_str(w, PROCESS_TREE_THREAD_NAME, name);
    pb_put_i64(w, PROCESS_TREE_THREAD_TGID, r->pid);
    pb_end(w, thread);
    pb_end(w, tree);
    send_packet(p);
}

void perf_packets_lost(struct perf_packets *p, uint32_t cpu, uint64_t now, uint64_t n)
{
    struct pb_writer *w = open_boot(p, now, STATE_NEEDED);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    pb_put_varint(w, PERF_SAMPLE_CPU, cpu);
    pb_put_varint(w, PERF_SAMPLE_KERNEL_RECORDS_LOST, n);
    pb_end(w, sample);
    send_packet(p);
}

void perf_packets_progress(struct perf_packets *p, uint64_t whole_until, bool ended)
{
    struct pb_writer *w = open_boot(p, whole_until, STATE_NEEDED);
    size_t m = pb_begin(w, TRACE_PACKET_PERF_PROGRESS);
    if (ended)
        pb_put_varint(w, PERF_PROGRESS_ENDED, 1);
    pb_end(w, m);
    send_packet(p);
}

void perf_packets_guardrail(struct perf_packets *p, uint64_t now)
{
    struct pb_writer *w = open_boot(p, now, STATE_NEEDED);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE), event = pb_begin(w, PERF_SAMPLE_PRODUCER_EVENT);
    pb_put_varint(w, PERF_SAMPLE_PRODUCER_EVENT_SOURCE_STOP_REASON,
                  PERF_SAMPLE_PRODUCER_EVENT_DATA_SOURCE_STOP_REASON_PROFILER_STOP_GUARDRAIL);
    pb_end(w, event);
    pb_end(w, sample);
    send_packet(p);
}

/* Imports PerfSample: what a cpu was doing when a perf event overflowed, with its call stack and counters. */
#include "importer/profiling/profiling_internal.h"

#include "importer/track/track_tracker.h"
#include "wire/fields.h"
#include "wire/perf_event_fields.h"

enum { MAX_FOLLOWERS = 32 };

static const char source[] = "linux.perf";

/* PerfEvents.Counter: how perf calls it, and the unit of its counts. */
static const struct {
    const char *name, *unit;
} counters[] = {
    {"unknown", "count"},
    {"cpu-clock", "ns"},
    {"page-faults", "count"},
    {"task-clock", "ns"},
    {"context-switches", "count"},
    {"cpu-migrations", "count"},
    {"minor-faults", "count"},
    {"major-faults", "count"},
    {"alignment-faults", "count"},
    {"emulation-faults", "count"},
    {"cpu-cycles", "cycles"},
    {"instructions", "instructions"},
    {"cache-references", "count"},
    {"cache-misses", "count"},
    {"branch-instructions", "count"},
    {"branch-misses", "count"},
    {"bus-cycles", "cycles"},
    {"stalled-cycles-frontend", "count"},
    {"stalled-cycles-backend", "count"},
    {"ref-cycles", "cycles"},
    {"dummy", "count"},
};
enum { N_COUNTERS = sizeof counters / sizeof *counters, CPU_CLOCK = 1 };

/* Profiling.CpuMode and Profiling.StackUnwindError. */
static const char *const modes[] = {NULL, "kernel", "user", "hypervisor", "guest_kernel", "guest_user"};
static const char *const unwind_errors[] = {
    "unknown",     "none",        "memory_invalid",      "unwind_info",
    "unsupported", "invalid_map", "max_frames_exceeded", "repeated_frame",
    "invalid_elf", "system_call", "thread_timeout",      "thread_does_not_exist",
    "bad_arch",    "maps_parse",  "invalid_parameter",   "ptrace_call",
};

/* What an event counts: the last field told of the three, or the clock of the cpu where none is. */
struct event_kind {
    uint8_t field; /* of perf_event_fields; 0: none */
    uint64_t counter;
    struct slice message; /* of a tracepoint or raw event */
};

static struct event_kind event_kind(struct slice bytes, const struct perf_event_fields *fields)
{
    struct event_kind k = {.counter = CPU_CLOCK};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != fields->counter && f.id != fields->tracepoint && f.id != fields->raw)
            continue;
        k = (struct event_kind){.field = (uint8_t)f.id};
        if (f.id != fields->counter)
            k.message = pb_bytes(&f);
        else
            k.counter = pb_u64(&f) < N_COUNTERS ? pb_u64(&f) : 0;
    }
    return k;
}

static uint64_t number_of(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_u64(&f) : 0;
}

/* The name of a timebase or follower as perf would give it: of its counter, its tracepoint, or the numbers of a raw
 * event; behind it what it counts in, where only some modes count. */
static strid made_name(struct machine_ctx *m, struct slice bytes, const struct perf_event_fields *fields)
{
    struct strpool *strings = &m->st->strings;
    struct event_kind k = event_kind(bytes, fields);
    struct pb_field f;
    strid name = import_str(m->im, counters[k.counter].name);
    if (k.field && k.field == fields->tracepoint)
        name = import_slice(m->im, pb_find(k.message, PERF_EVENTS_TRACEPOINT_NAME, &f) ? pb_bytes(&f) : slice_str(""));
    else if (k.field && k.field == fields->raw)
        name = strpool_printf(strings, "raw.0x%llx.0x%llx.0x%llx.0x%llx",
                              (unsigned long long)(uint32_t)number_of(k.message, PERF_EVENTS_RAW_EVENT_TYPE),
                              (unsigned long long)number_of(k.message, PERF_EVENTS_RAW_EVENT_CONFIG),
                              (unsigned long long)number_of(k.message, PERF_EVENTS_RAW_EVENT_CONFIG1),
                              (unsigned long long)number_of(k.message, PERF_EVENTS_RAW_EVENT_CONFIG2));
    static const char letters[] = {[PERF_EVENTS_EVENT_MODIFIER_COUNT_USERSPACE] = 'u',
                                   [PERF_EVENTS_EVENT_MODIFIER_COUNT_KERNEL] = 'k',
                                   [PERF_EVENTS_EVENT_MODIFIER_COUNT_HYPERVISOR] = 'h'};
    char text[sizeof letters + 1] = "";
    size_t n = 0;
    struct pb_numbers numbers = pb_numbers(bytes, fields->modifiers);
    for (uint64_t v; n + 1 < sizeof text && pb_next_number(&numbers, &v);)
        if (v < sizeof letters && letters[v])
            text[n++] = letters[v];
    return n ? strpool_printf(strings, "%s:%s", strpool_cstr(strings, name), text) : name;
}

static strid event_name(struct machine_ctx *m, struct slice bytes, const struct perf_event_fields *fields)
{
    struct pb_field f;
    if (pb_find(bytes, fields->name, &f) && pb_bytes(&f).len)
        return import_slice(m->im, pb_bytes(&f));
    return made_name(m, bytes, fields);
}

/* The unit of what samples are taken by; 0 for raw events, whose meaning is not known. */
static strid event_unit(struct machine_ctx *m, struct slice timebase)
{
    struct event_kind k = event_kind(timebase, &perf_timebase_fields);
    if (k.field == perf_timebase_fields.raw)
        return 0;
    return import_str(m->im, k.field == perf_timebase_fields.tracepoint ? "count" : counters[k.counter].unit);
}

/* What the sequence's defaults say about its samples. */
struct sampling {
    strid timebase, unit;        /* its name; what it counts, 0: not known */
    uint32_t shard_count, shard; /* of all processes; 0: all of them */
    uint32_t n_followers;
    strid followers[]; /* their names */
};

static const struct sampling *read_sampling(struct machine_ctx *m, const struct seq_generation *g)
{
    struct slice timebase = slice_of(NULL, 0), followers[MAX_FOLLOWERS];
    struct sampling head = {0};
    struct pb_field f;
    /* TracePacketDefaults.perf_sample_defaults */
    struct pb_cursor c = pb_find(g->defaults, TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS, &f)
                             ? pb_sub(&f)
                             : pb_cursor(slice_of(NULL, 0));
    while (pb_next(&c, &f)) {
        if (f.id == PERF_SAMPLE_DEFAULTS_TIMEBASE)
            timebase = pb_bytes(&f);
        else if (f.id == PERF_SAMPLE_DEFAULTS_PROCESS_SHARD_COUNT)
            head.shard_count = pb_u32(&f);
        else if (f.id == PERF_SAMPLE_DEFAULTS_CHOSEN_PROCESS_SHARD)
            head.shard = pb_u32(&f);
        else if (f.id == PERF_SAMPLE_DEFAULTS_FOLLOWERS && head.n_followers < MAX_FOLLOWERS)
            followers[head.n_followers++] = pb_bytes(&f);
    }
    head.timebase = event_name(m, timebase, &perf_timebase_fields);
    head.unit = event_unit(m, timebase);
    struct sampling *s = arena_zalloc(&m->profiling->arena, sizeof *s + head.n_followers * sizeof *s->followers);
    if (!s)
        return NULL;
    *s = head;
    for (uint32_t i = 0; i < s->n_followers; i++)
        s->followers[i] = event_name(m, followers[i], &perf_follower_fields);
    return s;
}

/* Read once for each generation, however many samples it has. NULL when out of memory. */
static const struct sampling *sampling_of(const struct packet *p)
{
    struct u64map *known = &p->m->profiling->sampling;
    uint64_t *slot = u64map_put(known, p->gen->index, NULL);
    if (slot && !*slot)
        *slot = (uint64_t)(uintptr_t)read_sampling(p->m, p->gen);
    if (slot && *slot)
        return (const struct sampling *)(uintptr_t)*slot;
    p->m->im->failed = true;
    return NULL;
}

static uint32_t session_of(struct packet *p, const struct sampling *s)
{
    return sample_session(p->m->profiling, p->gen->seq, import_str(p->m->im, source), s->unit);
}

int64_t perf_sample_session(struct packet *p)
{
    const struct sampling *s = sampling_of(p);
    return s ? (int64_t)session_of(p, s) : -1;
}

static uint32_t counter_track(struct machine_ctx *m, uint32_t session, uint32_t cpu, strid name, bool is_timebase)
{
    struct track_dim dims[] = {{"cpu", DIM_INT, cpu}, {"perf_session_id", DIM_INT, session}, {"name", DIM_STR, name}};
    struct arg_list args = {0};
    arg_list_bool(&m->st->args, &args, "is_timebase", is_timebase);
    struct track_spec spec = {.type = "perf_cpu_counter",
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = 3};
    arg_list_free(&args);
    return track_intern(m->im->tracks, m->id, &spec);
}

/* Where the counts of a cpu go. */
struct cpu_tracks {
    uint32_t timebase, n_followers, followers[];
};

static struct cpu_tracks *add_cpu_tracks(struct machine_ctx *m, uint32_t session, uint32_t cpu,
                                         const struct sampling *s)
{
    struct cpu_tracks *t = arena_zalloc(&m->profiling->arena, sizeof *t + s->n_followers * sizeof *t->followers);
    if (!t)
        return NULL;
    t->timebase = counter_track(m, session, cpu, s->timebase, true);
    for (; t->n_followers < s->n_followers; t->n_followers++)
        t->followers[t->n_followers] = counter_track(m, session, cpu, s->followers[t->n_followers], false);
    if (s->shard_count) {
        stats_set_idx(&m->st->stats, m->id, STAT_perf_process_shard_count, (int32_t)session, s->shard_count);
        stats_set_idx(&m->st->stats, m->id, STAT_perf_chosen_process_shard, (int32_t)session, s->shard);
    }
    return t;
}

/* A sequence's first packet of a cpu makes its tracks; later defaults change nothing for that cpu. */
static const struct cpu_tracks *tracks_of_cpu(struct machine_ctx *m, uint32_t session, uint32_t cpu,
                                              const struct sampling *s)
{
    uint64_t *slot = u64map_put(&m->profiling->cpu_tracks, (uint64_t)session << 32 | cpu, NULL);
    if (slot && !*slot)
        *slot = (uint64_t)(uintptr_t)add_cpu_tracks(m, session, cpu, s);
    if (slot && *slot)
        return (const struct cpu_tracks *)(uintptr_t)*slot;
    m->im->failed = true;
    return NULL;
}

/* The fields of a PerfSample. */
struct perf_sample {
    uint32_t cpu;
    int32_t pid, tid;
    uint64_t callstack, mode, unwind_error, timebase_count, lost, skipped, stopped, counts[MAX_FOLLOWERS];
    uint32_t n_counts;
    bool has_cpu, has_callstack, has_unwind_error, has_timebase, has_event;
};

static void read_sample(struct slice bytes, struct perf_sample *x)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case PERF_SAMPLE_CPU:
            x->cpu = pb_u32(&f);
            x->has_cpu = true;
            break;
        case PERF_SAMPLE_PID:
            x->pid = pb_i32(&f);
            break;
        case PERF_SAMPLE_TID:
            x->tid = pb_i32(&f);
            break;
        case PERF_SAMPLE_CALLSTACK_IID:
            x->callstack = pb_u64(&f);
            x->has_callstack = true;
            break;
        case PERF_SAMPLE_CPU_MODE:
            x->mode = pb_u64(&f);
            break;
        case PERF_SAMPLE_TIMEBASE_COUNT:
            x->timebase_count = pb_u64(&f);
            x->has_timebase = true;
            break;
        case PERF_SAMPLE_UNWIND_ERROR:
            x->unwind_error = pb_u64(&f);
            x->has_unwind_error = true;
            break;
        case PERF_SAMPLE_KERNEL_RECORDS_LOST:
            x->lost = pb_u64(&f);
            break;
        case PERF_SAMPLE_SAMPLE_SKIPPED_REASON:
            x->skipped = pb_u64(&f);
            break;
        case PERF_SAMPLE_PRODUCER_EVENT:
            x->has_event = true;
            x->stopped = number_of(pb_bytes(&f), PERF_SAMPLE_PRODUCER_EVENT_SOURCE_STOP_REASON);
            break;
        }
    }
    struct pb_numbers counts = pb_numbers(bytes, PERF_SAMPLE_FOLLOWER_COUNTS);
    while (x->n_counts < MAX_FOLLOWERS && pb_next_number(&counts, &x->counts[x->n_counts]))
        x->n_counts++;
}

strid sample_unwind_error(struct importer *im, uint64_t code)
{
    return import_str(im, unwind_errors[code < sizeof unwind_errors / sizeof *unwind_errors ? code : 0]);
}

/* Samples without their stack keep their row and their counts; not in scope means that nothing else is wanted. */
static void count_skipped(struct machine_ctx *m, uint64_t reason)
{
    if (reason == PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_READ_STAGE ||
        reason == PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_STAGE)
        stats_add(&m->st->stats, m->id, STAT_perf_samples_skipped, 1);
    else if (reason == PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_ENQUEUE)
        stats_add(&m->st->stats, m->id, STAT_perf_samples_skipped_dataloss, 1);
}

void perf_sample_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct stats *stats = &m->st->stats;
    struct perf_sample x = {0};
    read_sample(p->field, &x);
    if (!machine_has_cpu(m, x.cpu))
        return;
    const struct sampling *s = sampling_of(p);
    if (!s)
        return;
    uint32_t session = session_of(p, s);
    const struct cpu_tracks *tracks = tracks_of_cpu(m, session, x.cpu, s);
    if (!tracks)
        return;
    if (x.lost) {
        stats_add_idx(stats, m->id, STAT_perf_cpu_lost_records, (int32_t)x.cpu, (int64_t)x.lost);
        return;
    }
    if (x.has_event) {
        if (x.stopped == PERF_SAMPLE_PRODUCER_EVENT_DATA_SOURCE_STOP_REASON_PROFILER_STOP_GUARDRAIL)
            stats_set_idx(stats, m->id, STAT_perf_guardrail_stop_ts, (int32_t)session, p->ts);
        return;
    }
    count_skipped(m, x.skipped);
    int64_t set = COL_NULL;
    if (x.has_timebase)
        sample_counter(m->profiling, &set, p->ts, tracks->timebase, (double)x.timebase_count);
    for (uint32_t i = 0; i < x.n_counts && i < tracks->n_followers; i++)
        sample_counter(m->profiling, &set, p->ts, tracks->followers[i], (double)x.counts[i]);
    uint32_t utid = process_tracker_update_thread_and_main(m->processes, x.tid, x.pid);
    uint32_t upid = process_tracker_process(m->processes, x.pid);
    struct sample sample = {
        .ts = p->ts,
        .source = import_str(m->im, source),
        .upid = upid,
        .utid = utid,
        .async_context = COL_NULL,
        .cpu = x.has_cpu ? (int64_t)x.cpu : COL_NULL,
        .mode = x.mode < sizeof modes / sizeof *modes && modes[x.mode] ? import_str(m->im, modes[x.mode]) : 0,
        .callsite = x.has_callstack ? stack_profile_interned(m, p->gen, upid, x.callstack) : CALLSITE_NONE,
        .unwind_error = x.has_unwind_error ? sample_unwind_error(m->im, x.unwind_error) : 0,
        .session = session,
        .counter_set = set,
    };
    sample_insert(m->profiling, &sample);
}

/* Owns PerfSample: samples of cpus by perf events, and the counters that come along. Call stacks are not read. */
#include "importer/system/system_internal.h"

enum { MAX_FOLLOWERS = 32, MODES = 6 };

/* PerfSample.SampleSkipReason: those up to here lost the sample; not in scope means that only its counts are wanted. */
enum { SKIP_NONE = 0, LAST_LOSS = 3 };

/* The name of a timebase or follower: given, of its tracepoint, or of its counter (field numbers differ). */
static strid event_name(struct machine_ctx *m, struct slice bytes, uint32_t counter_field, uint32_t tracepoint_field,
                        uint32_t name_field)
{
    static const char *const counters[] = {
        "unknown-counter",
        "cpu-clock",
        "page-faults",
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "cpu-cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branch-instructions",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
        "dummy",
    };
    struct pb_field f, t;
    if (pb_find(bytes, name_field, &f) && pb_bytes(&f).len)
        return import_slice(m->im, pb_bytes(&f));
    if (pb_find(bytes, tracepoint_field, &f) && pb_find(pb_bytes(&f), 1, &t))
        return import_slice(m->im, pb_bytes(&t));
    if (pb_find(bytes, counter_field, &f) && pb_u64(&f) < sizeof counters / sizeof *counters)
        return import_str(m->im, counters[pb_u64(&f)]);
    return import_str(m->im, "cpu-clock");
}

/* What the sequence's defaults say about its samples. */
struct sampling {
    struct slice timebase;
    struct slice followers[MAX_FOLLOWERS];
    uint32_t n_followers;
    int64_t shard_count, shard; /* -1: not told */
};

static struct sampling read_sampling(const struct seq_generation *g)
{
    struct sampling s = {.shard_count = -1, .shard = -1};
    struct pb_field f;
    if (!pb_find(g->defaults, 12, &f)) /* TracePacketDefaults.perf_sample_defaults */
        return s;
    struct pb_cursor c = pb_sub(&f);
    while (pb_next(&c, &f)) {
        if (f.id == 1)
            s.timebase = pb_bytes(&f);
        else if (f.id == 2)
            s.shard_count = pb_u32(&f);
        else if (f.id == 3)
            s.shard = pb_u32(&f);
        else if (f.id == 4 && s.n_followers < MAX_FOLLOWERS)
            s.followers[s.n_followers++] = pb_bytes(&f);
    }
    return s;
}

static uint32_t session_of(struct packet *p, const struct sampling *s)
{
    struct machine_ctx *m = p->m;
    bool added;
    uint64_t *row = u64map_put(&m->system->perf_sessions, p->gen->seq->id, &added);
    if (!row) {
        m->im->failed = true;
        return 0;
    }
    if (added) {
        *row =
            profiler_session_insert(m->st, &(struct profiler_session_row){.source = import_str(m->im, "linux.perf")});
        if (s->shard_count >= 0)
            stats_set_idx(&m->st->stats, m->id, STAT_perf_process_shard_count, (int32_t)*row, s->shard_count);
        if (s->shard >= 0)
            stats_set_idx(&m->st->stats, m->id, STAT_perf_chosen_process_shard, (int32_t)*row, s->shard);
    }
    return (uint32_t)*row;
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
                              .source_arg_set_id = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = 3};
    arg_list_free(&args);
    return track_intern(m->im->tracks, m->id, &spec);
}

/* The row of a context table for a key, made by the caller when *added. */
static uint64_t *context_slot(struct machine_ctx *m, struct u64map *map, uint64_t key, bool *added)
{
    uint64_t *slot = u64map_put(map, key, added);
    if (!slot)
        m->im->failed = true;
    return slot;
}

static void add_sample(struct packet *p, uint32_t session, uint32_t utid, uint32_t cpu, uint64_t mode, int64_t counters)
{
    static const char *const modes[MODES] = {NULL, "kernel", "user", "hypervisor", "guest_kernel", "guest_user"};
    struct machine_ctx *m = p->m;
    bool added;
    uint64_t *task = context_slot(m, &m->system->perf_tasks, utid, &added);
    if (!task)
        return;
    if (added) {
        uint32_t upid = process_tracker_thread_process(m->processes, utid);
        *task = profiler_task_context_insert(
            m->st, &(struct profiler_task_context_row){.upid = upid == UPID_NONE ? COL_NULL : (int64_t)upid,
                                                       .utid = utid,
                                                       .async_context_id = COL_NULL});
    }
    uint64_t *execution = context_slot(m, &m->system->perf_executions, (uint64_t)cpu << 8 | mode, &added);
    if (!execution)
        return;
    if (added)
        *execution = profiler_execution_context_insert(
            m->st, &(struct profiler_execution_context_row){
                       .ucpu = machine_ucpu(m, cpu),
                       .cpu_mode = mode < MODES && modes[mode] ? import_str(m->im, modes[mode]) : 0});
    profiler_sample_insert(m->st, &(struct profiler_sample_row){.ts = p->ts,
                                                                .source = import_str(m->im, "linux.perf"),
                                                                .task_context_id = (int64_t)*task,
                                                                .execution_context_id = (int64_t)*execution,
                                                                .callsite_id = COL_NULL,
                                                                .session_id = session,
                                                                .counter_set_id = counters});
}

void perf_sample_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct stats *stats = &m->st->stats;
    uint32_t cpu = 0, n_counts = 0;
    int32_t pid = 0, tid = 0;
    uint64_t mode = 0, timebase_count = 0, lost = 0, skipped = SKIP_NONE, counts[MAX_FOLLOWERS];
    bool has_timebase = false, has_event = false;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case 1:
            cpu = pb_u32(&f);
            break;
        case 2:
            pid = pb_i32(&f);
            break;
        case 3:
            tid = pb_i32(&f);
            break;
        case 5:
            mode = pb_u64(&f) < MODES ? pb_u64(&f) : 0;
            break;
        case 6:
            timebase_count = pb_u64(&f);
            has_timebase = true;
            break;
        case 7: {
            struct pb_cursor packed = pb_sub(&f);
            uint64_t v = f.u;
            while (f.wire != PB_BYTES || pb_next_packed(&packed, &v)) {
                if (n_counts < MAX_FOLLOWERS)
                    counts[n_counts++] = v;
                if (f.wire != PB_BYTES)
                    break;
            }
            break;
        }
        case 17:
            lost = pb_u64(&f);
            break;
        case 18:
            skipped = pb_u64(&f);
            break;
        case 19:
            has_event = true;
            break;
        }
    }
    if (cpu >= 4096)
        return;
    if (lost)
        stats_add_idx(stats, m->id, STAT_perf_cpu_lost_records, (int32_t)cpu, (int64_t)lost);
    struct sampling s = read_sampling(p->gen);
    uint32_t session = session_of(p, &s);
    if (has_event) { /* the recorder stopped to protect the system */
        stats_set_idx(stats, m->id, STAT_perf_guardrail_stop_ts, (int32_t)session, p->ts);
        return;
    }
    if (skipped != SKIP_NONE && skipped <= LAST_LOSS) {
        stats_add(stats, m->id, STAT_perf_samples_skipped_dataloss, 1);
        stats_add(stats, m->id, STAT_perf_samples_skipped, 1);
        return;
    }
    process_tracker_process(m->processes, pid);
    uint32_t utid = process_tracker_update_thread(m->processes, tid, pid);
    int64_t set = COL_NULL;
    uint32_t track = counter_track(m, session, cpu, event_name(m, s.timebase, 4, 3, 10), true);
    if (has_timebase) {
        set = m->st->t[T_profiler_counter_set].n_rows;
        profiler_counter_set_insert(
            m->st, &(struct profiler_counter_set_row){.counter_set_id = set, .counter_id = m->st->t[T_counter].n_rows});
        counter_push(m->im, p->ts, track, (double)timebase_count);
    }
    for (uint32_t i = 0; i < n_counts && i < s.n_followers; i++) {
        if (set == COL_NULL)
            set = m->st->t[T_profiler_counter_set].n_rows;
        profiler_counter_set_insert(
            m->st, &(struct profiler_counter_set_row){.counter_set_id = set, .counter_id = m->st->t[T_counter].n_rows});
        counter_push(m->im, p->ts, counter_track(m, session, cpu, event_name(m, s.followers[i], 1, 2, 4), false),
                     (double)counts[i]);
    }
    add_sample(p, session, utid, cpu, mode, set);
}

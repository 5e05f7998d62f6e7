/* Events of GPUs: frequency, memory, power states, work. */
#include "importer/ftrace/ftrace_internal.h"
#include "importer/system/system.h"
#include "wire/fields.h"

struct gpu {
    struct u64map queued_by; /* adreno context -> tid that queued work */
};

static void release(void *state)
{
    u64map_free(&((struct gpu *)state)->queued_by);
}

static struct gpu *gpu_state(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_GPU, sizeof(struct gpu), release);
}

/* A counter track of a gpu, and of a process when upid is not UPID_NONE. */
static uint32_t gpu_counter_track(const struct ftrace_event *e, const char *type, const char *name, const char *unit,
                                  uint32_t gpu, uint32_t upid)
{
    struct track_dim dims[] = {DIM_I("ugpu", system_gpu(e->m, gpu)), DIM_I("gpu", gpu), DIM_I("upid", upid)};
    return track_intern(e->m->im->tracks, e->m->id,
                        &(struct track_spec){.type = type,
                                             .event_type = TRACK_COUNTER,
                                             .name = ftrace_text(e, name),
                                             .unit = ftrace_text(e, unit),
                                             .parent = UINT32_MAX,
                                             .dims = dims,
                                             .n_dims = upid == UPID_NONE ? 2 : 3});
}

static void frequency(const struct ftrace_event *e, uint32_t gpu, double value)
{
    ftrace_counter(e, gpu_counter_track(e, "gpu_frequency", "gpufreq", "kHz", gpu, UPID_NONE), value);
}

static void gpu_frequency(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    frequency(e, field_u32(&f, FTRACE_GPU_FREQUENCY_GPU_ID), field_u32(&f, FTRACE_GPU_FREQUENCY_STATE));
}

/* This driver tells a thousandth of what others do. */
static void kgsl_gpu_frequency(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    frequency(e, field_u32(&f, FTRACE_KGSL_GPU_FREQUENCY_GPU_ID),
              (double)field_u32(&f, FTRACE_KGSL_GPU_FREQUENCY_GPU_FREQ) * 1000.0);
}

/* Of pid 0: the total. Kernel threads may tell of processes that are gone; those are left alone. */
static void gpu_mem_total(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct process_tracker *p = e->m->processes;
    uint32_t gpu = field_u32(&f, FTRACE_GPU_MEM_TOTAL_GPU_ID), upid = UPID_NONE;
    int32_t pid = field_i32(&f, FTRACE_GPU_MEM_TOTAL_PID);
    if (pid != 0) {
        if (process_tracker_find_thread(p, pid) == UTID_NONE)
            return;
        upid = process_tracker_thread_process(p, process_tracker_update_thread(p, pid, pid));
        if (upid == UPID_NONE)
            return;
    }
    const char *type = pid ? "process_gpu_memory" : "gpu_memory";
    ftrace_counter(e, gpu_counter_track(e, type, "GPU Memory", "bytes", gpu, upid),
                   (double)field_u64(&f, FTRACE_GPU_MEM_TOTAL_SIZE));
}

/* A period that ends before it begins. */
static void log_work_period(const struct ftrace_event *e, const struct fields *f)
{
    struct args *a = &e->m->st->args;
    struct arg_list list = {0};
    if (import_log_has_room(e->m, STAT_gpu_work_period_negative_duration)) {
        arg_list_int(a, &list, "start_time_ns", field_i64(f, FTRACE_GPU_WORK_PERIOD_START_TIME_NS));
        arg_list_int(a, &list, "end_time_ns", field_i64(f, FTRACE_GPU_WORK_PERIOD_END_TIME_NS));
        arg_list_int(a, &list, "gpu_id", field_u32(f, FTRACE_GPU_WORK_PERIOD_GPU_ID));
    }
    import_log(e->m, STAT_gpu_work_period_negative_duration, e->ts, -1, args_intern(a, list.p, list.n));
    arg_list_free(&list);
}

static void gpu_work_period(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    int64_t dur = (int64_t)(field_u64(&f, FTRACE_GPU_WORK_PERIOD_END_TIME_NS) -
                            field_u64(&f, FTRACE_GPU_WORK_PERIOD_START_TIME_NS)),
            active = field_i64(&f, FTRACE_GPU_WORK_PERIOD_TOTAL_ACTIVE_DURATION_NS);
    uint32_t gpu = field_u32(&f, FTRACE_GPU_WORK_PERIOD_GPU_ID);
    uint32_t track = FTRACE_TRACK(e, TRACK_SLICE, "android_gpu_work_period", 0, DIM_I("ugpu", system_gpu(e->m, gpu)),
                                  DIM_I("gpu", gpu), DIM_I("uid", field_i32(&f, FTRACE_GPU_WORK_PERIOD_UID)));
    if (dur < 0) {
        log_work_period(e, &f);
        return;
    }
    struct slice_row row = {.ts = e->ts,
                            .dur = dur,
                            .track_id = track,
                            .name = ftrace_name(e, "%%%.2f", 100.0 * ((double)active / (double)dur)),
                            .thread_ts = e->ts,
                            .thread_dur = active,
                            .thread_instruction_count = COL_NULL,
                            .thread_instruction_delta = COL_NULL};
    slice_push(e->m->im->slices, e->m->id, &row);
}

static void mali_gpu_power_state(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t track =
        ftrace_track(e, TRACK_COUNTER, "mali_gpu_power_state", ftrace_text(e, "mali_gpu_power_state"), NULL, 0);
    ftrace_counter(e, track, field_i32(&f, FTRACE_MALI_GPU_POWER_STATE_TO_STATE));
}

static void gpu_power_state(const struct ftrace_event *e)
{
    static const char *const names[] = {"OFF", "PG", "ON"};
    struct fields f;
    fields_read(e->payload, &f);
    int32_t state = field_i32(&f, FTRACE_GPU_POWER_STATE_NEW_STATE);
    uint32_t track =
        ftrace_track(e, TRACK_SLICE, "powervr_gpu_power_state", ftrace_text(e, "powervr_gpu_power_state"), NULL, 0);
    ftrace_end(e, track, 0, 0, NULL);
    ftrace_begin(e, track, 0, ftrace_text(e, state >= 0 && state < 3 ? names[state] : "Unknown"), ARGSET_NONE);
}

/* --- adreno ------------------------------------------------------------------------------------------------------ */

static void adreno_queued(const struct ftrace_event *e)
{
    struct gpu *g = gpu_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    if (g && !u64map_get(&g->queued_by, field_u32(&f, FTRACE_KGSL_ADRENO_CMDBATCH_QUEUED_ID)) &&
        !u64map_set(&g->queued_by, field_u32(&f, FTRACE_KGSL_ADRENO_CMDBATCH_QUEUED_ID), e->pid))
        e->m->im->failed = true;
}

/* The name of the process that queued work of a context; 0 when unknown. */
static strid context_process(const struct ftrace_event *e, uint32_t context)
{
    struct gpu *g = gpu_state(e);
    const uint64_t *tid = g ? u64map_get(&g->queued_by, context) : NULL;
    if (!tid)
        return 0;
    uint32_t utid = process_tracker_thread(e->m->processes, (int32_t)*tid);
    uint32_t upid = process_tracker_thread_process(e->m->processes, utid);
    return upid == UPID_NONE ? 0 : (strid)ROW_GET(e->m->st, process, name, upid);
}

/* At the time its work began on the GPU (retime.c). */
static void adreno_retired(const struct ftrace_event *e)
{
    enum { TICKS_HZ = 19200000, NS = 1000000000 };
    struct fields f;
    fields_read(e->payload, &f);
    uint64_t start = field_u64(&f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_START),
             retire = field_u64(&f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_RETIRE);
    uint32_t context = field_u32(&f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_ID),
             prio = field_u32(&f, FTRACE_KGSL_ADRENO_CMDBATCH_RETIRED_PRIO);
    if (retire < start)
        return;
    __int128 dur = (__int128)(retire - start) * NS / TICKS_HZ;
    if (dur > INT64_MAX)
        return;
    strid process = context_process(e, context);
    strid name =
        process ? ftrace_name(e, "GPU %s (Ctx=%u, Prio=%u)", strpool_cstr(&e->m->st->strings, process), context, prio)
                : ftrace_name(e, "GPU (Ctx=%u, Prio=%u)", context, prio);
    struct track_dim dims[] = {DIM_I("context_id", context), DIM_I("prio", prio)};
    uint32_t set = ftrace_track_set(e, "adreno_gpu_cmdbatch", name, dims, 2);
    uint32_t track = track_set_scoped(e->m->im->tracks, set, e->ts, (int64_t)dur);
    if (track == UINT32_MAX)
        return;
    if (process) /* the track may be older than what we know of the process */
        ROW_SET(e->m->st, track, name, track, (int64_t)name);
    slice_scoped(e->m->im->slices, e->m->id, e->ts, track, 0, ftrace_text(e, "GPU"), (int64_t)dur, ARGSET_NONE);
}

const struct ftrace_handler ftrace_handlers_gpu[] = {
    {FTRACE_EVENT_GPU_FREQUENCY, "gpu_frequency", gpu_frequency},
    {FTRACE_EVENT_GPU_MEM_TOTAL, "gpu_mem_total", gpu_mem_total},
    {FTRACE_EVENT_GPU_WORK_PERIOD, "gpu_work_period", gpu_work_period},
    {FTRACE_EVENT_KGSL_GPU_FREQUENCY, "kgsl_gpu_frequency", kgsl_gpu_frequency},
    {FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_QUEUED, "kgsl_adreno_cmdbatch_queued", adreno_queued},
    {FTRACE_EVENT_KGSL_ADRENO_CMDBATCH_RETIRED, "kgsl_adreno_cmdbatch_retired", adreno_retired},
    {FTRACE_EVENT_MALI_GPU_POWER_STATE, "mali_gpu_power_state", mali_gpu_power_state},
    {FTRACE_EVENT_GPU_POWER_STATE, "gpu_power_state", gpu_power_state},
    {0, NULL, NULL},
};

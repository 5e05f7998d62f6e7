/* Events of graphics scheduling: vblank, DRM scheduler rings, fences. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

struct job {
    uint64_t id; /* its number, or the seqno of its fence */
    uint64_t fence_context;
    bool has_fence;
};

/* Jobs (or fences) that wait in order; the first has the open slice. */
struct line {
    VEC(struct job)
    waiting;
    size_t head; /* waiting[0 .. head) are done */
    uint32_t track;
    bool emits; /* fences: dma_fence_emit was seen, which is better than init */
};

struct drm {
    VEC(struct line)
    lines;
    struct u64map rings;     /* ring name (strid) -> line */
    struct u64map timelines; /* fence context -> line */
    struct u64map running;   /* fence of a job -> line */
    struct u64map schedules; /* hash of (line, job) -> slice that scheduled it */
};

static void release(void *state)
{
    struct drm *d = state;
    for (size_t i = 0; i < d->lines.n; i++)
        vec_free(&d->lines.p[i].waiting);
    vec_free(&d->lines);
    u64map_free(&d->rings);
    u64map_free(&d->timelines);
    u64map_free(&d->running);
    u64map_free(&d->schedules);
}

static struct drm *drm_state(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_DRM, sizeof(struct drm), release);
}

static uint64_t first_waiting(const struct line *l)
{
    return l->waiting.p[l->head].id;
}

/* One number for a job, among those of its ring. */
static uint64_t job_key(const struct ftrace_event *e, const struct job *job)
{
    return job->has_fence ? hash_keyed(e->m->im->secret, job->fence_context, job->id) : job->id;
}

static bool is_empty(const struct line *l)
{
    return l->head == l->waiting.n;
}

static void take_first(struct line *l)
{
    if (++l->head == l->waiting.n)
        l->head = l->waiting.n = 0;
}

static uint64_t schedule_key(const struct ftrace_event *e, const struct line *l, uint64_t job)
{
    return hash_keyed(e->m->im->secret, (uint64_t)(l - drm_state(e)->lines.p), job);
}

/* The line of a key, made with its track when new; NULL when out of memory. */
static struct line *line_of(const struct ftrace_event *e, struct u64map *map, uint64_t key, const char *type,
                            const struct track_dim *dims, size_t n_dims, strid name)
{
    struct drm *d = drm_state(e);
    bool added;
    uint64_t *at = u64map_put(map, key, &added);
    if (!at || (added && !vec_add(&d->lines))) {
        e->m->im->failed = true;
        return NULL;
    }
    if (added) {
        *at = d->lines.n - 1;
        d->lines.p[*at].track = ftrace_track(e, TRACK_SLICE, type, name, dims, n_dims);
    }
    return &d->lines.p[*at];
}

static void vblank(const struct ftrace_event *e, const char *slice, int32_t crtc, uint32_t seq)
{
    struct small_args args = {0};
    uint32_t track = FTRACE_TRACK(e, TRACK_SLICE, "drm_vblank", ftrace_name(e, "vblank-%u", (uint32_t)crtc),
                                  DIM_I("drm_crtc", (uint32_t)crtc));
    small_args_add(e, &args, "vblank seqno", ARG_UINT, seq);
    ftrace_instant(e, track, 0, ftrace_text(e, slice), small_args_set(e, &args));
}

static void drm_vblank_event(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    vblank(e, "signal", field_i32(&f, FTRACE_DRM_VBLANK_EVENT_CRTC), field_u32(&f, FTRACE_DRM_VBLANK_EVENT_SEQ));
}

static void drm_vblank_event_delivered(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    vblank(e, "deliver", field_i32(&f, FTRACE_DRM_VBLANK_EVENT_DELIVERED_CRTC),
           field_u32(&f, FTRACE_DRM_VBLANK_EVENT_DELIVERED_SEQ));
}

/* --- scheduler rings --------------------------------------------------------------------------------------------- */

static struct line *ring_of(const struct ftrace_event *e, struct slice ring)
{
    struct drm *d = drm_state(e);
    strid key = import_slice(e->m->im, ring);
    struct track_dim dim = DIM_S("name", key);
    return d ? line_of(e, &d->rings, key, "drm_sched_ring", &dim, 1,
                       ftrace_name(e, "sched-%.*s", (int)ring.len, (const char *)ring.p))
             : NULL;
}

/* What tells a job from others: its number, or since 6.16 its fence. */
static void add_job_args(const struct ftrace_event *e, struct small_args *args, const struct job *job)
{
    if (!job->has_fence) {
        small_args_add(e, args, "gpu sched job", ARG_UINT, (int64_t)job->id);
        return;
    }
    small_args_add(e, args, "fence context", ARG_UINT, (int64_t)job->fence_context);
    small_args_add(e, args, "fence seqno", ARG_UINT, (int64_t)job->id);
}

static void begin_job(const struct ftrace_event *e, struct line *l)
{
    struct drm *d = drm_state(e);
    struct small_args args = {0};
    struct job told = l->waiting.p[l->head];
    uint64_t job = job_key(e, &told);
    add_job_args(e, &args, &told);
    uint32_t slice = ftrace_begin(e, l->track, 0, ftrace_text(e, "job"), small_args_set(e, &args));
    const uint64_t *from = slice == SLICE_NONE ? NULL : u64map_get(&d->schedules, schedule_key(e, l, job));
    if (!from)
        return;
    flow_insert(e->m->st, &(struct flow_row){.slice_out = *from, .slice_in = slice, .trace_id = COL_NULL});
    u64map_del(&d->schedules, schedule_key(e, l, job));
}

static void schedule_job(const struct ftrace_event *e, struct slice ring, struct job job)
{
    struct drm *d = drm_state(e);
    struct small_args args = {0};
    small_args_add(e, &args, "gpu sched ring", ARG_STRING, import_slice(e->m->im, ring));
    add_job_args(e, &args, &job);
    uint32_t slice = ftrace_instant(e, ftrace_thread_track(e, event_utid(e)), 0, ftrace_text(e, "drm_sched_job_queue"),
                                    small_args_set(e, &args));
    struct line *l = ring_of(e, ring);
    if (l && slice != SLICE_NONE && !u64map_set(&d->schedules, schedule_key(e, l, job_key(e, &job)), slice))
        e->m->im->failed = true;
}

static void run_job(const struct ftrace_event *e, struct slice ring, struct job job, uint64_t fence)
{
    struct drm *d = drm_state(e);
    struct line *l = ring_of(e, ring);
    if (!l || !vec_push(&l->waiting, job) || !u64map_set(&d->running, fence, (uint64_t)(l - d->lines.p))) {
        e->m->im->failed = true;
        return;
    }
    if (l->waiting.n - l->head == 1)
        begin_job(e, l);
}

static void job_done(const struct ftrace_event *e, uint64_t fence)
{
    struct drm *d = drm_state(e);
    const uint64_t *at = d ? u64map_get(&d->running, fence) : NULL;
    if (!at)
        return;
    struct line *l = &d->lines.p[*at];
    u64map_del(&d->running, fence);
    if (is_empty(l))
        return;
    take_first(l);
    ftrace_end(e, l->track, 0, 0, NULL);
    if (!is_empty(l))
        begin_job(e, l);
}

static void drm_sched_job(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    schedule_job(e, field_bytes(&f, FTRACE_DRM_SCHED_JOB_NAME),
                 (struct job){.id = field_u64(&f, FTRACE_DRM_SCHED_JOB_ID)});
}

static void drm_run_job(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    run_job(e, field_bytes(&f, FTRACE_DRM_RUN_JOB_NAME), (struct job){.id = field_u64(&f, FTRACE_DRM_RUN_JOB_ID)},
            field_u64(&f, FTRACE_DRM_RUN_JOB_FENCE));
}

static void drm_sched_process_job(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    job_done(e, field_u64(&f, FTRACE_DRM_SCHED_PROCESS_JOB_FENCE));
}

/* Kernels since 6.16 name jobs by their fence. */
static struct job fenced_job(const struct fields *f, unsigned context, unsigned seqno)
{
    return (struct job){.id = field_u64(f, seqno), .fence_context = field_u64(f, context), .has_fence = true};
}

static void drm_sched_job_queue(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    schedule_job(e, field_bytes(&f, FTRACE_DRM_SCHED_JOB_QUEUE_NAME),
                 fenced_job(&f, FTRACE_DRM_SCHED_JOB_QUEUE_FENCE_CONTEXT, FTRACE_DRM_SCHED_JOB_QUEUE_FENCE_SEQNO));
}

static void drm_sched_job_run(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct job job = fenced_job(&f, FTRACE_DRM_SCHED_JOB_RUN_FENCE_CONTEXT, FTRACE_DRM_SCHED_JOB_RUN_FENCE_SEQNO);
    run_job(e, field_bytes(&f, FTRACE_DRM_SCHED_JOB_RUN_NAME), job, job_key(e, &job));
}

static void drm_sched_job_done(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct job job = fenced_job(&f, FTRACE_DRM_SCHED_JOB_DONE_FENCE_CONTEXT, FTRACE_DRM_SCHED_JOB_DONE_FENCE_SEQNO);
    job_done(e, job_key(e, &job));
}

/* --- fences ------------------------------------------------------------------------------------------------------ */

/* NULL for timelines of fences made of other fences: they come and go too fast to have tracks. */
static struct line *timeline_of(const struct ftrace_event *e, const struct fields *f)
{
    struct drm *d = drm_state(e);
    struct slice name = field_bytes(f, FTRACE_DMA_FENCE_INIT_TIMELINE);
    uint32_t context = field_u32(f, FTRACE_DMA_FENCE_INIT_CONTEXT);
    if (!d || slice_eq_str(name, "unbound"))
        return NULL;
    struct track_dim dims[] = {DIM_S("name", import_slice(e->m->im, name)), DIM_I("context", context)};
    return line_of(e, &d->timelines, context, "drm_fence", dims, 2,
                   ftrace_name(e, "fence-%.*s-%u", (int)name.len, (const char *)name.p, context));
}

static void begin_fence(const struct ftrace_event *e, struct line *l)
{
    struct small_args args = {0};
    small_args_add(e, &args, "fence seqno", ARG_UINT, (int64_t)first_waiting(l));
    ftrace_begin(e, l->track, 0, ftrace_text(e, "fence"), small_args_set(e, &args));
}

static void add_fence(const struct ftrace_event *e, struct line *l, uint32_t seqno)
{
    if (!vec_push(&l->waiting, (struct job){.id = seqno}))
        e->m->im->failed = true;
    else if (l->waiting.n - l->head == 1)
        begin_fence(e, l);
}

static void dma_fence_init(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct line *l = timeline_of(e, &f);
    if (l && !l->emits)
        add_fence(e, l, field_u32(&f, FTRACE_DMA_FENCE_INIT_SEQNO));
}

static void dma_fence_emit(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct line *l = timeline_of(e, &f);
    if (!l)
        return;
    if (!l->emits && !is_empty(l)) { /* what init made is replaced */
        ftrace_end(e, l->track, 0, 0, NULL);
        l->head = l->waiting.n = 0;
    }
    l->emits = true;
    add_fence(e, l, field_u32(&f, FTRACE_DMA_FENCE_EMIT_SEQNO));
}

static void dma_fence_signaled(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct line *l = timeline_of(e, &f);
    if (!l || is_empty(l) || field_u32(&f, FTRACE_DMA_FENCE_SIGNALED_SEQNO) < first_waiting(l))
        return;
    take_first(l);
    ftrace_end(e, l->track, 0, 0, NULL);
    if (!is_empty(l))
        begin_fence(e, l);
}

static void dma_fence_wait_start(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "fence context", ARG_UINT, field_u32(&f, FTRACE_DMA_FENCE_WAIT_START_CONTEXT));
    small_args_add(e, &args, "fence seqno", ARG_UINT, field_u32(&f, FTRACE_DMA_FENCE_WAIT_START_SEQNO));
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), 0, ftrace_text(e, "dma_fence_wait"),
                 small_args_set(e, &args));
}

static void dma_fence_wait_end(const struct ftrace_event *e)
{
    ftrace_end(e, ftrace_thread_track(e, event_utid(e)), 0, 0, NULL);
}

const struct ftrace_handler ftrace_handlers_drm[] = {
    {FTRACE_EVENT_DRM_VBLANK_EVENT, "drm_vblank_event", drm_vblank_event},
    {FTRACE_EVENT_DRM_VBLANK_EVENT_DELIVERED, "drm_vblank_event_delivered", drm_vblank_event_delivered},
    {FTRACE_EVENT_DRM_SCHED_JOB, "drm_sched_job", drm_sched_job},
    {FTRACE_EVENT_DRM_RUN_JOB, "drm_run_job", drm_run_job},
    {FTRACE_EVENT_DRM_SCHED_PROCESS_JOB, "drm_sched_process_job", drm_sched_process_job},
    {FTRACE_EVENT_DMA_FENCE_INIT, "dma_fence_init", dma_fence_init},
    {FTRACE_EVENT_DMA_FENCE_EMIT, "dma_fence_emit", dma_fence_emit},
    {FTRACE_EVENT_DMA_FENCE_SIGNALED, "dma_fence_signaled", dma_fence_signaled},
    {FTRACE_EVENT_DMA_FENCE_WAIT_START, "dma_fence_wait_start", dma_fence_wait_start},
    {FTRACE_EVENT_DMA_FENCE_WAIT_END, "dma_fence_wait_end", dma_fence_wait_end},
    {FTRACE_EVENT_DRM_SCHED_JOB_DONE, "drm_sched_job_done", drm_sched_job_done},
    {FTRACE_EVENT_DRM_SCHED_JOB_QUEUE, "drm_sched_job_queue", drm_sched_job_queue},
    {FTRACE_EVENT_DRM_SCHED_JOB_RUN, "drm_sched_job_run", drm_sched_job_run},
    {0, NULL, NULL},
};

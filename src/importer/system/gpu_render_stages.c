/* Imports what GPUs do: render stages, which are slices on the queue that ran them, copies and compute kernels among
 * them. Queues and stages are described by interned entries (iid), or by lists that belong to the trace (id). */
#include "importer/system/gpu_stage.h"

#include "importer/track/gpu_flows.h"
#include "importer/track/track_compressor.h"
#include "wire/fields.h"

#include <inttypes.h>

enum { MAX_DESCRIBED = 1 << 16 /* queues or stages of one trace */ };

struct gpu_work *gpu_work_of(struct machine_ctx *m)
{
    struct gpu_work *w = m->system->gpu_work;
    if (!w && (w = m->system->gpu_work = mem_zalloc(sizeof *w)))
        w->memory_queue = UINT32_MAX;
    m->im->failed |= !w;
    return w;
}

void gpu_work_close(struct gpu_work *w)
{
    if (!w)
        return;
    vec_free(&w->queues);
    vec_free(&w->stages);
    gpu_interned_free(&w->interned);
    u64map_free(&w->contexts);
    u64map_free(&w->unnamed);
    u64map_free(&w->objects);
    u64map_free(&w->allocated);
    vec_free(&w->memory_events);
    mem_free(w);
}

static struct stage_event read_stage_event(struct slice bytes)
{
    struct stage_event e = {.bytes = bytes};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id > FIELD(LAUNCH))
            continue;
        e.has |= 1u << f.id;
        if (f.id == FIELD(NAME))
            e.name = pb_bytes(&f);
        else if (f.id == FIELD(LAUNCH))
            e.launch = pb_bytes(&f);
        else if (f.id == FIELD(SPECIFICATIONS))
            e.specifications = pb_bytes(&f);
        else
            e.value[f.id] = pb_u64(&f);
    }
    return e;
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

/* A queue that had no name gets it, if it has a track already. */
static void name_queue(struct machine_ctx *m, struct gpu_work *w, uint32_t gpu, uint32_t queue)
{
    const struct gpu_described *d = &w->queues.p[queue];
    const uint64_t *set = u64map_get(&w->unnamed, (uint64_t)gpu << 32 | queue);
    if (!set)
        return;
    uint32_t track = track_set_first(m->im->tracks, (uint32_t)*set);
    if (track == UINT32_MAX)
        return;
    struct arg_list list = {0};
    arg_list_str(&m->st->args, &list, "description", d->description);
    ROW_SET(m->st, track, name, track, d->name);
    ROW_SET_ARGS(m->st, track, source_arg_set_id, track, args_intern(&m->st->args, list.p, list.n));
    arg_list_free(&list);
    u64map_del(&w->unnamed, (uint64_t)gpu << 32 | queue);
}

static void read_specifications(struct machine_ctx *m, struct gpu_work *w, uint32_t gpu, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t queue = 0;
    while (pb_next(&c, &f)) {
        struct gpu_described d = {
            .name = gpu_text_field(m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_DESCRIPTION_NAME),
            .description =
                gpu_text_field(m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_DESCRIPTION_DESCRIPTION),
            .known = true};
        if (f.id == GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_STAGE && d.name) {
            if (w->stages.n < MAX_DESCRIBED && !vec_push(&w->stages, d))
                m->im->failed = true;
        } else if (f.id == GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_HW_QUEUE) {
            uint32_t own = queue++;
            while (own < MAX_DESCRIBED && w->queues.n <= own)
                if (!vec_push(&w->queues, (struct gpu_described){.known = false})) {
                    m->im->failed = true;
                    return;
                }
            if (!d.name || own >= MAX_DESCRIBED)
                continue; /* an entry without a name keeps what was told of its place */
            w->queues.p[own] = d;
            name_queue(m, w, gpu, own);
        }
    }
}

/* The context of an event; its row is made when it is new. Returns the process that owns it. */
static uint32_t context_owner(struct packet *p, struct gpu_work *w, const struct stage_event *e)
{
    static const char *const apis[] = {"UNDEFINED", "OPEN_GL", "VULKAN", "OPEN_CL", "CUDA", "HIP"};
    uint64_t context = e->value[FIELD(CONTEXT)], pid = 0;
    const struct gpu_context *known = HAS(e, FIELD(CONTEXT)) ? gpu_context(p, context) : NULL;
    if (known) {
        bool added = false;
        p->m->im->failed |= !u64map_put(&w->contexts, context, &added);
        pid = known->pid;
        if (added)
            gpu_context_insert(
                p->m->st,
                &(struct gpu_context_row){
                    .context_id = (uint32_t)context,
                    .pid = (uint32_t)pid,
                    .api = import_str(p->m->im, apis[known->api < sizeof apis / sizeof *apis ? known->api : 0])});
    } else {
        struct pb_field spec;
        if (pb_find(e->specifications, GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_CONTEXT_SPEC, &spec))
            pid = gpu_number_field(pb_bytes(&spec), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_CONTEXT_SPEC_PID);
    }
    return process_tracker_process(p->m->processes, (int32_t)pid);
}

/* --- the track ---------------------------------------------------------------------------------------------------- */

/* The set of tracks of an event's queue; TRACK_SET_NONE when nothing describes a queue that is named by iid. */
static uint32_t queue_tracks(struct packet *p, struct gpu_work *w, const struct stage_event *e)
{
    struct machine_ctx *m = p->m;
    uint32_t gpu = (uint32_t)e->value[FIELD(GPU_ID)];
    bool by_iid = HAS(e, FIELD(HW_QUEUE_IID));
    uint64_t queue = by_iid ? e->value[FIELD(HW_QUEUE_IID)] : (uint32_t)e->value[FIELD(HW_QUEUE_ID)];
    struct gpu_described d = {0};
    if (by_iid) {
        const struct gpu_specification *spec = gpu_specification(p, queue);
        if (!spec)
            return TRACK_SET_NONE;
        d = (struct gpu_described){spec->name, spec->description, true};
    } else if (queue < w->queues.n) {
        d = w->queues.p[queue];
    }
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(m, gpu)},
                               {"gpu", DIM_INT, gpu},
                               {"render_stage_source", DIM_STR, import_str(m->im, by_iid ? "iid" : "id")},
                               {"hwqueue_id", DIM_INT, (int64_t)queue},
                               {"hwqueue_name", DIM_STR, d.name}};
    struct arg_list list = {0};
    arg_list_str(&m->st->args, &list, "description", d.description);
    struct track_spec spec = {.type = "gpu_render_stage",
                              .event_type = TRACK_SLICE,
                              .name = d.known ? d.name
                                              : strpool_printf(&m->st->strings, "Unknown GPU Queue %" PRIu64, queue),
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, list.p, list.n),
                              .dims = dims,
                              .n_dims = sizeof dims / sizeof *dims};
    arg_list_free(&list);
    uint32_t set = track_set_intern(m->im->tracks, m->id, &spec);
    if (set == TRACK_SET_NONE || (!d.known && !u64map_set(&w->unnamed, (uint64_t)gpu << 32 | (uint32_t)queue, set)))
        m->im->failed = true;
    return set;
}

static strid stage_name(struct packet *p, const struct gpu_work *w, const struct stage_event *e)
{
    struct machine_ctx *m = p->m;
    if (HAS(e, FIELD(NAME_IID)))
        return interned_string(p->gen, INTERNED_DATA_EVENT_NAMES, e->value[FIELD(NAME_IID)], EVENT_NAME_NAME);
    if (HAS(e, FIELD(NAME)))
        return import_slice(m->im, e->name);
    if (HAS(e, FIELD(STAGE_IID)))
        return interned_string(p->gen, INTERNED_DATA_GPU_SPECIFICATIONS, e->value[FIELD(STAGE_IID)],
                               INTERNED_GPU_RENDER_STAGE_SPECIFICATION_NAME);
    /* stage_id is an int32, widened by its sign: −1 is the largest number of 64 bits. */
    uint64_t stage = (uint64_t)(int32_t)e->value[FIELD(STAGE_ID)];
    return stage < w->stages.n ? w->stages.p[stage].name
                               : strpool_printf(&m->st->strings, "render stage(%" PRIu64 ")", stage);
}

void gpu_render_stage_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct gpu_work *w = gpu_work_of(m);
    if (!w)
        return;
    struct stage_event e = read_stage_event(p->field);
    if (e.specifications.len)
        read_specifications(m, w, (uint32_t)e.value[FIELD(GPU_ID)], e.specifications);
    uint32_t upid = context_owner(p, w, &e);
    if (!HAS(&e, FIELD(EVENT_ID)))
        return;
    uint32_t set = queue_tracks(p, w, &e);
    if (set == TRACK_SET_NONE)
        return;
    uint64_t longest = (uint64_t)(INT64_MAX - (p->ts > 0 ? p->ts : 0)), duration = e.value[FIELD(DURATION)];
    int64_t dur = (int64_t)(duration < longest ? duration : longest);
    uint32_t track = track_set_scoped(m->im->tracks, set, p->ts, dur);
    if (track == UINT32_MAX)
        return;
    strid name = stage_name(p, w, &e);
    uint32_t slice = slice_scoped(m->im->slices, m->id, p->ts, track, 0, name, dur, gpu_stage_args(p, &e, upid));
    if (slice == SLICE_NONE)
        return;
    gpu_flows_stage(m->im, e.value[FIELD(EVENT_ID)], slice);
    uint64_t waited;
    for (struct pb_numbers n = pb_numbers(e.bytes, FIELD(EVENT_WAIT_IDS)); pb_next_number(&n, &waited);)
        gpu_flows_connect(m->im, waited, slice, GPU_FLOW_FROM_STAGE);
}

/* Imports what GPUs do: render stages, which are slices on the queue that ran them, copies and compute kernels among
 * them. Queues and stages are described by interned entries (iid), or by lists that belong to the trace (id). */
#include "importer/system/gpu_work.h"

#include "importer/track/gpu_flows.h"
#include "importer/track/track_compressor.h"
#include "wire/fields.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_DESCRIBED = 1 << 16 /* queues or stages of one trace */, BITS = 64 /* of a mask of subpasses */ };

#define FIELD(name)    GPU_RENDER_STAGE_EVENT_##name
#define HAS(event, id) ((event)->has >> (id)&1)

struct stage_event {
    uint32_t has;                      /* bits: fields that are there */
    uint64_t value[FIELD(LAUNCH) + 1]; /* numbers, by field */
    struct slice bytes, name, launch, specifications;
};

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

static strid text_field(struct machine_ctx *m, struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
}

static uint64_t number_field(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_u64(&f) : 0;
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
            .name = text_field(m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_DESCRIPTION_NAME),
            .description = text_field(m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_DESCRIPTION_DESCRIPTION),
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
    uint64_t context = e->value[FIELD(CONTEXT)];
    struct slice entry = interned_find(p->gen, INTERNED_DATA_GRAPHICS_CONTEXTS, context);
    uint64_t pid = number_field(entry, INTERNED_GRAPHICS_CONTEXT_PID);
    if (HAS(e, FIELD(CONTEXT)) && entry.len) {
        bool added = false;
        p->m->im->failed |= !u64map_put(&w->contexts, context, &added);
        uint64_t api = number_field(entry, INTERNED_GRAPHICS_CONTEXT_API);
        if (added)
            gpu_context_insert(p->m->st,
                               &(struct gpu_context_row){
                                   .context_id = (uint32_t)context,
                                   .pid = (uint32_t)pid,
                                   .api = import_str(p->m->im, apis[api < sizeof apis / sizeof *apis ? api : 0])});
    } else {
        struct pb_field spec;
        if (pb_find(e->specifications, GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_CONTEXT_SPEC, &spec))
            pid = number_field(pb_bytes(&spec), GPU_RENDER_STAGE_EVENT_SPECIFICATIONS_CONTEXT_SPEC_PID);
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
        struct slice entry = interned_find(p->gen, INTERNED_DATA_GPU_SPECIFICATIONS, queue);
        if (!entry.len)
            return TRACK_SET_NONE;
        d = (struct gpu_described){text_field(m, entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_NAME),
                                   text_field(m, entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_DESCRIPTION), true};
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

/* --- args --------------------------------------------------------------------------------------------------------- */

struct writer {
    struct packet *p;
    struct args *args;
    struct arg_list list;
};

static void put_text(struct writer *w, const char *key, strid text)
{
    arg_list_str(w->args, &w->list, key, text);
}

static void put_int(struct writer *w, const char *key, uint64_t value)
{
    arg_list_int(w->args, &w->list, key, (int64_t)value);
}

/* A value under a key of the producer's; a later one of that key overwrites. */
static void put_named(struct writer *w, strid key, enum arg_type type, int64_t word)
{
    for (size_t i = 0; i < w->list.n; i++)
        if (w->list.p[i].key == key) {
            w->list.p[i].type = (uint8_t)type;
            w->list.p[i].word = word;
            return;
        }
    arg_list_add(w->args, &w->list, key, key, type, word);
}

/* ExtraComputeArg. */
static void put_compute_arg(struct writer *w, struct slice bytes)
{
    struct machine_ctx *m = w->p->m;
    struct seq_generation *g = w->p->gen;
    strid iid_name = 0, name = 0, text;
    enum arg_type type = ARG_NULL;
    int64_t word = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_NAME_IID:
            iid_name = interned_string(g, INTERNED_DATA_COMPUTE_ARG_NAMES, pb_u64(&f), INTERNED_COMPUTE_ARG_NAME_NAME);
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_NAME:
            name = import_slice(m->im, pb_bytes(&f));
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_INT_VALUE:
            type = ARG_INT;
            word = pb_i64(&f);
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_UINT_VALUE:
            type = ARG_UINT;
            word = pb_i64(&f);
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_DOUBLE_VALUE:
            type = ARG_REAL;
            word = column_f64_word(pb_double(&f));
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_STRING_VALUE:
            type = ARG_STRING;
            word = import_slice(m->im, pb_bytes(&f));
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_STRING_VALUE_IID:
            text = interned_string(g, INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, pb_u64(&f), INTERNED_STRING_STR);
            if (text) {
                type = ARG_STRING;
                word = text;
            }
            break;
        }
    }
    strid key = iid_name ? iid_name : name;
    if (key && type != ARG_NULL)
        put_named(w, key, type, word);
}

static void put_compute_args(struct writer *w, struct slice message, uint32_t field)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == field)
            put_compute_arg(w, pb_bytes(&f));
}

static void put_size(struct writer *w, struct slice launch, uint32_t field, const char *const keys[3])
{
    static const uint32_t axes[3] = {GPU_RENDER_STAGE_EVENT_DIM3_X, GPU_RENDER_STAGE_EVENT_DIM3_Y,
                                     GPU_RENDER_STAGE_EVENT_DIM3_Z};
    struct pb_field size, f;
    if (!pb_find(launch, field, &size))
        return;
    for (int i = 0; i < 3; i++)
        if (pb_find(pb_bytes(&size), axes[i], &f))
            arg_list_uint(w->args, &w->list, keys[i], pb_u32(&f));
}

static void put_kernel(struct writer *w, const struct stage_event *e)
{
    static const char *const grid[] = {"launch.grid_size.x", "launch.grid_size.y", "launch.grid_size.z"},
                             *const group[] = {"launch.workgroup_size.x", "launch.workgroup_size.y",
                                               "launch.workgroup_size.z"};
    static const struct {
        uint32_t field;
        const char *key;
    } texts[] = {{INTERNED_COMPUTE_KERNEL_NAME, "kernel_name"},
                 {INTERNED_COMPUTE_KERNEL_DEMANGLED_NAME, "kernel_demangled_name"},
                 {INTERNED_COMPUTE_KERNEL_ARCH, "arch"}};
    struct slice kernel = HAS(e, FIELD(KERNEL_IID))
                              ? interned_find(w->p->gen, INTERNED_DATA_COMPUTE_KERNELS, e->value[FIELD(KERNEL_IID)])
                              : (struct slice){0};
    struct pb_field f;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (pb_find(kernel, texts[i].field, &f))
            put_text(w, texts[i].key, import_slice(w->p->m->im, pb_bytes(&f)));
    put_compute_args(w, kernel, INTERNED_COMPUTE_KERNEL_ARGS);
    put_size(w, e->launch, GPU_RENDER_STAGE_EVENT_COMPUTE_KERNEL_LAUNCH_GRID_SIZE, grid);
    put_size(w, e->launch, GPU_RENDER_STAGE_EVENT_COMPUTE_KERNEL_LAUNCH_WORKGROUP_SIZE, group);
    put_compute_args(w, e->launch, GPU_RENDER_STAGE_EVENT_COMPUTE_KERNEL_LAUNCH_ARGS);
}

/* The subpasses of a list of masks: "0,2,64"; 0 when there is no mask. */
static strid subpasses(struct machine_ctx *m, struct slice bytes)
{
    char text[2048];
    size_t n = 0;
    uint64_t mask;
    bool any = false;
    struct pb_numbers masks = pb_numbers(bytes, FIELD(RENDER_SUBPASS_INDEX_MASK));
    for (unsigned base = 0; pb_next_number(&masks, &mask); base += BITS, any = true)
        for (unsigned bit = 0; bit < BITS && n + 16 < sizeof text; bit++)
            if (mask >> bit & 1)
                n += (size_t)snprintf(text + n, sizeof text - n, "%s%u", n ? "," : "", base + bit);
    return any ? import_slice(m->im, slice_of(text, n)) : 0;
}

static void put_handle(struct writer *w, const char *key, const char *name_key, enum gpu_object type, uint64_t handle)
{
    put_int(w, key, handle);
    put_text(w, name_key, gpu_object_name(w->p->m->system->gpu_work, type, handle));
}

static argset stage_args(struct packet *p, const struct gpu_work *work, const struct stage_event *e, uint32_t upid)
{
    struct writer w = {.p = p, .args = &p->m->st->args};
    struct pb_cursor c = pb_cursor(e->bytes);
    struct pb_field f;
    uint64_t stage = (uint64_t)(int32_t)e->value[FIELD(STAGE_ID)];
    strid description = 0;
    if (HAS(e, FIELD(STAGE_IID))) {
        struct slice entry = interned_find(p->gen, INTERNED_DATA_GPU_SPECIFICATIONS, e->value[FIELD(STAGE_IID)]);
        if (entry.len)
            put_int(&w, "render_stage_category", number_field(entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_CATEGORY));
        description = text_field(p->m, entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_DESCRIPTION);
    } else if (HAS(e, FIELD(STAGE_ID)) && stage < work->stages.n) {
        description = work->stages.p[stage].description;
    }
    if (description)
        put_text(&w, "description", description);
    put_kernel(&w, e);
    if (e->value[FIELD(RENDER_PASS_INSTANCE_ID)])
        put_text(&w, "correlation_id",
                 strpool_printf(&p->m->st->strings, "rp:#%" PRIu64, e->value[FIELD(RENDER_PASS_INSTANCE_ID)]));
    while (pb_next(&c, &f)) {
        if (f.id != FIELD(EXTRA_DATA))
            continue;
        strid key = text_field(p->m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_EXTRA_DATA_NAME);
        if (key)
            put_named(&w, key, ARG_STRING, text_field(p->m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_EXTRA_DATA_VALUE));
    }
    put_int(&w, "context_id", e->value[FIELD(CONTEXT)]);
    put_handle(&w, "render_target", "render_target_name", GPU_OBJECT_FRAMEBUFFER,
               e->value[FIELD(RENDER_TARGET_HANDLE)]);
    put_handle(&w, "render_pass", "render_pass_name", GPU_OBJECT_RENDER_PASS, e->value[FIELD(RENDER_PASS_HANDLE)]);
    put_text(&w, "render_subpasses", subpasses(p->m, e->bytes));
    put_handle(&w, "command_buffer", "command_buffer_name", GPU_OBJECT_COMMAND_BUFFER,
               e->value[FIELD(COMMAND_BUFFER_HANDLE)]);
    put_int(&w, "submission_id", (uint32_t)e->value[FIELD(SUBMISSION_ID)]);
    put_int(&w, "hw_queue_id",
            HAS(e, FIELD(HW_QUEUE_IID)) ? e->value[FIELD(HW_QUEUE_IID)] : (uint32_t)e->value[FIELD(HW_QUEUE_ID)]);
    put_int(&w, "upid", upid);
    argset set = args_intern(w.args, w.list.p, w.list.n);
    arg_list_free(&w.list);
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
    uint32_t slice = slice_scoped(m->im->slices, m->id, p->ts, track, 0, name, dur, stage_args(p, w, &e, upid));
    if (slice == SLICE_NONE)
        return;
    gpu_flows_stage(m->im, e.value[FIELD(EVENT_ID)], slice);
    uint64_t waited;
    for (struct pb_numbers n = pb_numbers(e.bytes, FIELD(EVENT_WAIT_IDS)); pb_next_number(&n, &waited);)
        gpu_flows_connect(m->im, waited, slice, GPU_FLOW_FROM_STAGE);
}

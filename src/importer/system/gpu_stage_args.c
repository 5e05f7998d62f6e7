/* The args of render stages: what the event says, and the kernel and the objects that it refers to. */
#include "importer/system/gpu_stage.h"

#include <inttypes.h>
#include <stdio.h>

enum { BITS = 64 /* of a mask of subpasses */ };

struct writer {
    struct packet *p;
    struct args *args;
    struct arg_list list;
    struct u64map places; /* key -> where in the list, once it is long */
    size_t n_placed;
};

static void put_text(struct writer *w, const char *key, strid text)
{
    arg_list_str(w->args, &w->list, key, text);
}

static void put_int(struct writer *w, const char *key, uint64_t value)
{
    arg_list_int(w->args, &w->list, key, (int64_t)value);
}

/* The arg with a key, NULL: none. A long list has an index. */
static struct arg *find_key(struct writer *w, strid key)
{
    enum { SCANNED = 16 };
    if (w->list.n < SCANNED) {
        for (size_t i = 0; i < w->list.n; i++)
            if (w->list.p[i].key == key)
                return &w->list.p[i];
        return NULL;
    }
    for (; w->n_placed < w->list.n; w->n_placed++) {
        bool added;
        uint64_t *place = u64map_put(&w->places, w->list.p[w->n_placed].key, &added);
        if (!place) {
            w->args->failed = true;
            return NULL;
        }
        if (added)
            *place = w->n_placed;
    }
    const uint64_t *place = u64map_get(&w->places, key);
    return place ? &w->list.p[*place] : NULL;
}

/* A value under a key of the producer's; a later one of that key overwrites. */
static void put_named(struct writer *w, strid key, enum arg_type type, int64_t word)
{
    struct arg *known = find_key(w, key);
    if (!known) {
        arg_list_add(w->args, &w->list, key, key, type, word);
        return;
    }
    known->type = (uint8_t)type;
    known->word = word;
}

/* ExtraComputeArg. */
static void put_compute_arg(struct writer *w, const struct gpu_arg *a)
{
    struct seq_generation *g = w->p->gen;
    strid iid_name = a->has_name_iid ? interned_string(g, INTERNED_DATA_COMPUTE_ARG_NAMES, a->name_iid,
                                                       INTERNED_COMPUTE_ARG_NAME_NAME)
                                     : 0;
    strid text = a->has_text_iid ? interned_string(g, INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, a->text_iid,
                                                   INTERNED_STRING_STR)
                                 : 0;
    strid key = iid_name ? iid_name : a->name;
    if (key && text)
        put_named(w, key, ARG_STRING, text);
    else if (key && a->type != ARG_NULL)
        put_named(w, key, (enum arg_type)a->type, a->word);
}

static void put_compute_args(struct writer *w, struct slice message, uint32_t field)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != field)
            continue;
        struct gpu_arg a = gpu_arg_read(w->p->m, pb_bytes(&f));
        put_compute_arg(w, &a);
    }
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
    const struct gpu_kernel *k = HAS(e, FIELD(KERNEL_IID)) ? gpu_kernel(w->p, e->value[FIELD(KERNEL_IID)]) : NULL;
    if (k && k->has_name)
        put_text(w, "kernel_name", k->name);
    if (k && k->has_demangled)
        put_text(w, "kernel_demangled_name", k->demangled);
    if (k && k->has_arch)
        put_text(w, "arch", k->arch);
    for (uint32_t i = 0; k && i < k->n_args; i++)
        put_compute_arg(w, &k->args[i]);
    if (k && k->left_out)
        stats_add_idx(&w->p->m->st->stats, w->p->m->id, STAT_gpu_kernel_args_left_out, (int32_t)e->value[FIELD(GPU_ID)],
                      k->left_out);
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
    put_text(w, name_key, gpu_object_name(w->p->m, type, handle));
}

argset gpu_stage_args(struct packet *p, const struct stage_event *e, uint32_t upid)
{
    struct writer w = {.p = p, .args = &p->m->st->args};
    struct pb_cursor c = pb_cursor(e->bytes);
    struct pb_field f;
    uint64_t stage = (uint64_t)(int32_t)e->value[FIELD(STAGE_ID)];
    const struct gpu_work *work = p->m->system->gpu_work;
    strid description = 0;
    if (HAS(e, FIELD(STAGE_IID))) {
        const struct gpu_specification *spec = gpu_specification(p, e->value[FIELD(STAGE_IID)]);
        if (spec)
            put_int(&w, "render_stage_category", spec->category);
        description = spec ? spec->description : 0;
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
        strid key = gpu_text_field(p->m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_EXTRA_DATA_NAME);
        if (key)
            put_named(&w, key, ARG_STRING, gpu_text_field(p->m, pb_bytes(&f), GPU_RENDER_STAGE_EVENT_EXTRA_DATA_VALUE));
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
    u64map_free(&w.places);
    return set;
}

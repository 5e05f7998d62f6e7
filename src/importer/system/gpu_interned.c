/* Reads what render stages refer to by number: descriptions of queues and stages, contexts, kernels. Each is read once.
 */
#include "importer/system/gpu_stage.h"

void gpu_interned_free(struct gpu_interned *g)
{
    u64map_free(&g->read);
    arena_free(&g->arena);
}

strid gpu_text_field(struct machine_ctx *m, struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
}

uint64_t gpu_number_field(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_u64(&f) : 0;
}

typedef void *read_entry(struct packet *p, struct arena *arena, struct slice entry);

/* What `read` makes of an entry, kept by where the entry lies: there it stays, and it is of one kind. */
static const void *read_once(struct packet *p, uint32_t field, uint64_t iid, read_entry *read)
{
    struct gpu_work *w = gpu_work_of(p->m);
    struct slice entry = interned_find(p->gen, field, iid);
    uint64_t *slot = w && entry.len ? u64map_put(&w->interned.read, (uint64_t)(uintptr_t)entry.p, NULL) : NULL;
    if (!w || !entry.len)
        return NULL;
    if (slot && !*slot)
        *slot = (uint64_t)(uintptr_t)read(p, &w->interned.arena, entry);
    p->m->im->failed |= !slot || !*slot;
    return slot ? (const void *)(uintptr_t)*slot : NULL; // NOLINT(performance-no-int-to-ptr)
}

static void *read_specification(struct packet *p, struct arena *arena, struct slice entry)
{
    struct gpu_specification *s = arena_zalloc(arena, sizeof *s);
    if (s)
        *s =
            (struct gpu_specification){gpu_text_field(p->m, entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_NAME),
                                       gpu_text_field(p->m, entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_DESCRIPTION),
                                       gpu_number_field(entry, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_CATEGORY)};
    return s;
}

const struct gpu_specification *gpu_specification(struct packet *p, uint64_t iid)
{
    return read_once(p, INTERNED_DATA_GPU_SPECIFICATIONS, iid, read_specification);
}

static void *read_context(struct packet *p, struct arena *arena, struct slice entry)
{
    struct gpu_context *c = arena_zalloc(arena, sizeof *c);
    (void)p;
    if (c)
        *c = (struct gpu_context){gpu_number_field(entry, INTERNED_GRAPHICS_CONTEXT_PID),
                                  gpu_number_field(entry, INTERNED_GRAPHICS_CONTEXT_API)};
    return c;
}

const struct gpu_context *gpu_context(struct packet *p, uint64_t iid)
{
    return read_once(p, INTERNED_DATA_GRAPHICS_CONTEXTS, iid, read_context);
}

struct gpu_arg gpu_arg_read(struct machine_ctx *m, struct slice bytes)
{
    struct gpu_arg a = {.type = ARG_NULL};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_NAME_IID:
            a.name_iid = pb_u64(&f);
            a.has_name_iid = true;
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_NAME:
            a.name = import_slice(m->im, pb_bytes(&f));
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_INT_VALUE:
            a.type = ARG_INT;
            a.word = pb_i64(&f);
            a.has_text_iid = false;
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_UINT_VALUE:
            a.type = ARG_UINT;
            a.word = pb_i64(&f);
            a.has_text_iid = false;
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_DOUBLE_VALUE:
            a.type = ARG_REAL;
            a.word = column_f64_word(pb_double(&f));
            a.has_text_iid = false;
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_STRING_VALUE:
            a.type = ARG_STRING;
            a.word = import_slice(m->im, pb_bytes(&f));
            a.has_text_iid = false;
            break;
        case GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_STRING_VALUE_IID:
            a.text_iid = pb_u64(&f);
            a.has_text_iid = true;
            break;
        }
    }
    return a;
}

static void *read_kernel(struct packet *p, struct arena *arena, struct slice entry)
{
    struct importer *im = p->m->im;
    struct pb_cursor c = pb_cursor(entry);
    struct pb_field f;
    uint32_t n = 0;
    while (n < GPU_MAX_KERNEL_ARGS && pb_next(&c, &f))
        n += f.id == INTERNED_COMPUTE_KERNEL_ARGS;
    struct gpu_kernel *k = arena_zalloc(arena, sizeof *k + n * sizeof *k->args);
    if (!k)
        return NULL;
    k->has_name = pb_find(entry, INTERNED_COMPUTE_KERNEL_NAME, &f);
    k->name = k->has_name ? import_slice(im, pb_bytes(&f)) : 0;
    k->has_demangled = pb_find(entry, INTERNED_COMPUTE_KERNEL_DEMANGLED_NAME, &f);
    k->demangled = k->has_demangled ? import_slice(im, pb_bytes(&f)) : 0;
    k->has_arch = pb_find(entry, INTERNED_COMPUTE_KERNEL_ARCH, &f);
    k->arch = k->has_arch ? import_slice(im, pb_bytes(&f)) : 0;
    for (c = pb_cursor(entry); pb_next(&c, &f);) {
        if (f.id != INTERNED_COMPUTE_KERNEL_ARGS)
            continue;
        if (k->n_args < n)
            k->args[k->n_args++] = gpu_arg_read(p->m, pb_bytes(&f));
        else
            k->left_out++;
    }
    return k;
}

const struct gpu_kernel *gpu_kernel(struct packet *p, uint64_t iid)
{
    return read_once(p, INTERNED_DATA_COMPUTE_KERNELS, iid, read_kernel);
}

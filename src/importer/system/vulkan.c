/* Imports what Vulkan's driver tells: names of objects, submissions, memory; and the lines of a GPU's log. */
#include "importer/system/gpu_work.h"

#include "base/hash.h"
#include "wire/fields.h"

#include <stdio.h>

static uint64_t object_key(const struct machine_ctx *m, uint64_t type, uint64_t handle)
{
    return hash_keyed(m->im->secret, type, handle);
}

strid gpu_object_name(const struct machine_ctx *m, enum gpu_object type, uint64_t handle)
{
    const uint64_t *name = u64map_get(&m->system->gpu_work->objects, object_key(m, (uint64_t)type, handle));
    return name ? (strid)*name : 0;
}

static void name_object(struct machine_ctx *m, struct slice bytes)
{
    struct gpu_work *w = gpu_work_of(m);
    uint64_t type = 0, object = 0;
    strid name = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT_TYPE)
            type = (uint64_t)pb_i32(&f);
        else if (f.id == VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT)
            object = pb_u64(&f);
        else if (f.id == VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT_NAME)
            name = import_slice(m->im, pb_bytes(&f));
    }
    if (w && !u64map_set(&w->objects, object_key(m, type, object), name))
        m->im->failed = true;
}

static void queue_submit(struct packet *p, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    struct args *args = &m->st->args;
    struct arg_list list = {0};
    uint64_t dur = 0, value;
    uint32_t pid = 0, tid = 0, submission = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == VULKAN_API_EVENT_VK_QUEUE_SUBMIT_DURATION_NS)
            dur = pb_u64(&f);
        else if (f.id == VULKAN_API_EVENT_VK_QUEUE_SUBMIT_PID)
            pid = pb_u32(&f);
        else if (f.id == VULKAN_API_EVENT_VK_QUEUE_SUBMIT_TID)
            tid = pb_u32(&f);
        else if (f.id == VULKAN_API_EVENT_VK_QUEUE_SUBMIT_SUBMISSION_ID)
            submission = pb_u32(&f);
    }
    arg_list_int(args, &list, "pid", pid);
    arg_list_int(args, &list, "tid", tid);
    struct pb_numbers buffers = pb_numbers(bytes, VULKAN_API_EVENT_VK_QUEUE_SUBMIT_VK_COMMAND_BUFFERS);
    strid flat = import_str(m->im, "command_buffers");
    for (unsigned i = 0; pb_next_number(&buffers, &value); i++) {
        if (i == 0)
            arg_list_uint(args, &list, "command_buffer", value);
        arg_list_add(args, &list, flat, strpool_printf(&m->st->strings, "command_buffers[%u]", i), ARG_UINT,
                     (int64_t)value);
    }
    arg_list_int(args, &list, "submission_id", submission);
    struct track_spec spec = {.type = "vulkan_events",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, "Vulkan Events"),
                              .parent = UINT32_MAX};
    slice_scoped(m->im->slices, m->id, p->ts, track_intern(m->im->tracks, m->id, &spec), 0,
                 import_str(m->im, "vkQueueSubmit"), (int64_t)(dur < INT64_MAX / 2 ? dur : INT64_MAX / 2),
                 args_intern(args, list.p, list.n));
    arg_list_free(&list);
}

void vulkan_api_event_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME)
            name_object(p->m, pb_bytes(&f));
        else if (f.id == VULKAN_API_EVENT_VK_QUEUE_SUBMIT)
            queue_submit(p, pb_bytes(&f));
    }
}

void gpu_log_parse(struct packet *p)
{
    static const char *const severities[] = {"UNSPECIFIED", "VERBOSE", "DEBUG", "INFO", "WARNING", "ERROR"};
    struct machine_ctx *m = p->m;
    struct arg_list list = {0};
    uint64_t severity = 0;
    struct pb_field f;
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == GPU_LOG_SEVERITY)
            severity = pb_u64(&f);
    if (pb_find(p->field, GPU_LOG_TAG, &f))
        arg_list_str(&m->st->args, &list, "tag", import_slice(m->im, pb_bytes(&f)));
    if (pb_find(p->field, GPU_LOG_LOG_MESSAGE, &f))
        arg_list_str(&m->st->args, &list, "message", import_slice(m->im, pb_bytes(&f)));
    struct track_spec spec = {
        .type = "gpu_log", .event_type = TRACK_SLICE, .name = import_str(m->im, "GPU Log"), .parent = UINT32_MAX};
    const char *name = severity < sizeof severities / sizeof *severities ? severities[severity] : "UNKNOWN_SEVERITY";
    slice_scoped(m->im->slices, m->id, p->ts, track_intern(m->im->tracks, m->id, &spec), 0, import_str(m->im, name), 0,
                 args_intern(&m->st->args, list.p, list.n));
    arg_list_free(&list);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static const char *const sources[] = {"UNSPECIFIED",       "DRIVER",     "DEVICE",
                                      "GPU_DEVICE_MEMORY", "GPU_BUFFER", "GPU_IMAGE"},
                         *const operations[] = {"UNSPECIFIED", "CREATE",        "DESTROY",
                                                "BIND",        "DESTROY_BOUND", "ANNOTATIONS"},
                         *const scopes[] = {"UNSPECIFIED", "COMMAND", "OBJECT", "CACHE", "DEVICE", "INSTANCE"};
#define TEXT_OF(texts, i) ((texts)[(i) < sizeof(texts) / sizeof *(texts) ? (i) : 0])

/* The bytes in use of a scope or a type of memory. The sums go over all processes, as those of other importers do. */
static void count_memory(struct machine_ctx *m, int64_t ts, const struct gpu_memory_event *e)
{
    bool create = e->operation == VULKAN_MEMORY_EVENT_OPERATION_OP_CREATE,
         destroy = e->operation == VULKAN_MEMORY_EVENT_OPERATION_OP_DESTROY,
         bind = e->operation == VULKAN_MEMORY_EVENT_OPERATION_OP_BIND,
         unbind = e->operation == VULKAN_MEMORY_EVENT_OPERATION_OP_DESTROY_BOUND;
    const char *type, *dim = "vulkan_memory_type";
    strid name, dim_value = 0;
    struct strpool *strings = &m->st->strings;
    uint64_t key = e->type;
    if (e->source == VULKAN_MEMORY_EVENT_SOURCE_DRIVER && (create || destroy) && e->scope) {
        type = "vulkan_driver_mem";
        dim = "vulkan_allocation_scope";
        dim_value = import_str(m->im, TEXT_OF(scopes, e->scope));
        name = strpool_printf(strings, "vulkan.mem.driver.scope.%s", TEXT_OF(scopes, e->scope));
        key = e->scope;
    } else if (e->source == VULKAN_MEMORY_EVENT_SOURCE_DEVICE_MEMORY && (create || destroy)) {
        type = "vulkan_device_mem_allocation";
        name = strpool_printf(strings, "vulkan.mem.device.memory.type.%u.allocation", e->type);
    } else if ((e->source == VULKAN_MEMORY_EVENT_SOURCE_BUFFER || e->source == VULKAN_MEMORY_EVENT_SOURCE_IMAGE) &&
               (bind || unbind)) {
        type = "vulkan_device_mem_bind";
        name = strpool_printf(strings, "vulkan.mem.device.memory.type.%u.bind", e->type);
    } else {
        return;
    }
    struct gpu_work *w = gpu_work_of(m);
    uint64_t *sum =
        w ? u64map_put(&w->allocated, hash_keyed(m->im->secret, (uint64_t)(uintptr_t)type, key), NULL) : NULL;
    if (!sum) {
        m->im->failed = true;
        return;
    }
    *sum += create || bind ? e->size : 0 - e->size;
    struct track_dim dims[] = {{"upid", DIM_INT, process_tracker_process(m->processes, e->pid)},
                               {dim, DIM_INT, e->type}};
    if (dim_value)
        dims[1] = (struct track_dim){dim, DIM_STR, dim_value};
    counter_push(m->im, ts, system_counter_track(m, type, name, NULL, dims, 2), (double)(int64_t)*sum);
}

static strid interned_text(struct packet *p, uint32_t field, uint64_t iid)
{
    strid text = interned_string(p->gen, field, iid, INTERNED_STRING_STR);
    if (!text)
        stats_add(&p->m->st->stats, p->m->id, STAT_vulkan_allocations_invalid_string_id, 1);
    return text;
}

/* VulkanMemoryEventAnnotation; the last one of a key holds. */
static void add_annotation(struct packet *p, struct arg_list *list, struct slice bytes)
{
    strid key = 0;
    enum arg_type type = ARG_NULL;
    int64_t word = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case VULKAN_MEMORY_EVENT_ANNOTATION_KEY_IID:
            key = interned_text(p, INTERNED_DATA_VULKAN_MEMORY_KEYS, pb_u64(&f));
            break;
        case VULKAN_MEMORY_EVENT_ANNOTATION_INT_VALUE:
            type = ARG_INT;
            word = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_ANNOTATION_DOUBLE_VALUE:
            type = ARG_REAL;
            word = column_f64_word(pb_double(&f));
            break;
        case VULKAN_MEMORY_EVENT_ANNOTATION_STRING_IID:
            type = ARG_STRING;
            word = interned_text(p, INTERNED_DATA_VULKAN_MEMORY_KEYS, pb_u64(&f));
            break;
        }
    }
    if (!key || type == ARG_NULL)
        return;
    for (size_t i = 0; i < list->n; i++)
        if (list->p[i].key == key) {
            list->p[i].type = (uint8_t)type;
            list->p[i].word = word;
            return;
        }
    arg_list_add(&p->m->st->args, list, key, key, type, word);
}

static void parse_memory_events(void *owner, const struct sort_event *events, size_t n)
{
    struct machine_ctx *m = owner;
    for (size_t i = 0; i < n; i++)
        count_memory(m, events[i].ts, &m->system->gpu_work->memory_events.p[events[i].a]);
}

/* The events have times of their own, in whose order they are summed up, so they are pushed before anything is
 * parsed. */
enum tokenize_result vulkan_memory_event_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct gpu_work *w = gpu_work_of(m);
    struct gpu_memory_event e = {0};
    int64_t ts = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == VULKAN_MEMORY_EVENT_SOURCE)
            e.source = pb_u32(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_OPERATION)
            e.operation = pb_u32(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_TIMESTAMP)
            ts = pb_i64(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_PID)
            e.pid = pb_u32(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_MEMORY_SIZE)
            e.size = pb_u64(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_ALLOCATION_SCOPE)
            e.scope = pb_u32(&f);
        else if (f.id == VULKAN_MEMORY_EVENT_MEMORY_TYPE)
            e.type = pb_u32(&f);
    }
    if (w && w->memory_queue == UINT32_MAX)
        w->memory_queue = sorter_add_queue(m->im->sorter, parse_memory_events, m);
    if (!w || w->memory_queue == UINT32_MAX || !vec_push(&w->memory_events, e))
        m->im->failed = true;
    else
        sorter_push(m->im->sorter, w->memory_queue, (struct sort_event){ts, w->memory_events.n - 1, 0});
    return TOKENIZE_PUSH;
}

/* Long: one case a field. */
void vulkan_memory_event_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    uint32_t source = 0, operation = 0;
    struct arg_list list = {0};
    struct vulkan_memory_allocations_row row = {.upid = COL_NULL,
                                                .device = COL_NULL,
                                                .device_memory = COL_NULL,
                                                .memory_type = COL_NULL,
                                                .heap = COL_NULL,
                                                .object_handle = COL_NULL,
                                                .memory_address = COL_NULL,
                                                .memory_size = COL_NULL};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case VULKAN_MEMORY_EVENT_SOURCE:
            source = pb_u32(&f);
            break;
        case VULKAN_MEMORY_EVENT_OPERATION:
            operation = pb_u32(&f);
            break;
        case VULKAN_MEMORY_EVENT_TIMESTAMP:
            row.timestamp = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_PID:
            row.upid = process_tracker_process(m->processes, pb_u32(&f));
            break;
        case VULKAN_MEMORY_EVENT_MEMORY_ADDRESS:
            row.memory_address = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_MEMORY_SIZE:
            row.memory_size = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_CALLER_IID:
            row.function_name = interned_text(p, INTERNED_DATA_FUNCTION_NAMES, pb_u64(&f));
            break;
        case VULKAN_MEMORY_EVENT_ALLOCATION_SCOPE:
            row.scope = import_str(m->im, TEXT_OF(scopes, pb_u32(&f)));
            break;
        case VULKAN_MEMORY_EVENT_ANNOTATIONS:
            add_annotation(p, &list, pb_bytes(&f));
            break;
        case VULKAN_MEMORY_EVENT_DEVICE:
            row.device = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_DEVICE_MEMORY:
            row.device_memory = pb_i64(&f);
            break;
        case VULKAN_MEMORY_EVENT_MEMORY_TYPE:
            row.memory_type = pb_u32(&f);
            break;
        case VULKAN_MEMORY_EVENT_HEAP:
            row.heap = pb_u32(&f);
            break;
        case VULKAN_MEMORY_EVENT_OBJECT_HANDLE:
            row.object_handle = pb_i64(&f);
            break;
        }
    }
    row.source = import_str(m->im, TEXT_OF(sources, source));
    row.operation = import_str(m->im, TEXT_OF(operations, operation));
    row.arg_set_id = args_intern(&m->st->args, list.p, list.n);
    arg_list_free(&list);
    vulkan_memory_allocations_insert(m->st, &row);
}

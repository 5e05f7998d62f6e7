/* Imports ArtProcessMetadata: which process a managed heap was dumped of, and how it ran out of memory. */
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

struct metadata {
    int32_t pid;
    int64_t uid; /* -1: not told */
    strid process_name, package, error;
    int64_t allocation_size, bytes_free, until_oom;
    struct slice stack;
    bool ran_out;
};

static struct metadata read_metadata(struct packet *p)
{
    struct metadata d = {.uid = -1};
    struct importer *im = p->m->im;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case ART_PROCESS_METADATA_PID:
            d.pid = pb_i32(&f);
            break;
        case ART_PROCESS_METADATA_UID:
            d.uid = pb_u32(&f);
            break;
        case ART_PROCESS_METADATA_PROCESS_NAME:
            d.process_name = import_slice(im, pb_bytes(&f));
            break;
        case ART_PROCESS_METADATA_PACKAGE_NAME:
            d.package = import_slice(im, pb_bytes(&f));
            break;
        case ART_PROCESS_METADATA_OOM_ALLOCATION_SIZE:
            d.allocation_size = pb_i64(&f);
            d.ran_out = true;
            break;
        case ART_PROCESS_METADATA_OOM_TOTAL_BYTES_FREE:
            d.bytes_free = pb_i64(&f);
            break;
        case ART_PROCESS_METADATA_OOM_FREE_BYTES_UNTIL_OOM:
            d.until_oom = pb_i64(&f);
            break;
        case ART_PROCESS_METADATA_OOM_THREAD_JAVA_STACK:
            d.stack = pb_bytes(&f);
            break;
        case ART_PROCESS_METADATA_OOM_ERROR_MSG:
            d.error = import_slice(im, pb_bytes(&f));
            break;
        }
    }
    return d;
}

/* Adds a stack as Java prints it, its innermost frame first. */
static uint32_t java_callsite(struct machine_ctx *m, struct slice stack)
{
    VEC(uint32_t)
    frames = {0};
    uint32_t mapping = stack_profile_no_mapping(m, "art_process_metadata"), callsite = CALLSITE_NONE;
    struct pb_cursor c = pb_cursor(stack);
    struct pb_field f;
    while (mapping != UINT32_MAX && pb_next(&c, &f)) {
        if (f.id != JAVA_STACK_FRAMES)
            continue;
        struct source_line source = source_line_read(m, pb_bytes(&f));
        source.function = import_slice(m->im, java_method_name(strpool_view(&m->st->strings, source.function)));
        uint32_t row = stack_profile_frame(
            m, &(struct stack_profile_frame_row){.name = source.function, .mapping = mapping}, &source);
        if (row == UINT32_MAX || !vec_push(&frames, row))
            m->im->failed = true;
    }
    for (size_t i = frames.n; i-- > 0 && !m->im->failed;)
        callsite = stack_profile_callsite(m, callsite, frames.p[i]);
    vec_free(&frames);
    return callsite;
}

void art_process_metadata_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct metadata d = read_metadata(p);
    uint32_t upid = process_tracker_process(m->processes, d.pid);
    if (d.process_name)
        process_tracker_process_name(m->processes, upid, d.process_name, PROCESS_NAME_SYSTEM);
    if (d.uid >= 0)
        process_tracker_set_uid(m->processes, upid, (uint32_t)d.uid);
    if (d.package && d.uid >= 0)
        package_add(m->profiling, d.package, d.uid, false, false, 0);
    uint32_t graph = heap_graph_row(m->profiling, p->ts, upid);
    if (!d.ran_out || graph == UINT32_MAX)
        return;
    ROW_SET(m->st, heap_graph, dump_reason, graph, import_str(m->im, "OOME"));
    heap_graph_java_oome_details_insert(
        m->st, &(struct heap_graph_java_oome_details_row){.heap_graph_id = graph,
                                                          .allocation_size_bytes = d.allocation_size,
                                                          .total_bytes_free = d.bytes_free,
                                                          .free_bytes_until_oom = d.until_oom,
                                                          .error_msg = d.error});
    if (!d.stack.p)
        return;
    uint32_t callsite = java_callsite(m, d.stack);
    heap_graph_thread_callsite_insert(m->st,
                                      &(struct heap_graph_thread_callsite_row){
                                          .heap_graph_id = graph,
                                          .utid = process_tracker_update_thread(m->processes, d.pid, d.pid),
                                          .callsite_id = callsite == CALLSITE_NONE ? COL_NULL : (int64_t)callsite});
}

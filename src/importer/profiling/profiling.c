/* The table of packets that tell of stacks and heaps, and the state of a machine. */
#include "importer/profiling/jit.h"
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "wire/fields.h"

const struct packet_handler profiling_packet_handlers[] = {
    {TRACE_PACKET_PROFILE_PACKET, "profile_packet", NULL, heap_profile_parse},
    {TRACE_PACKET_PACKAGES_LIST, "packages_list", NULL, packages_list_parse},
    {TRACE_PACKET_HEAP_GRAPH, "heap_graph", NULL, heap_graph_parse},
    {TRACE_PACKET_MODULE_SYMBOLS, "module_symbols", NULL, module_symbols_parse},
    {TRACE_PACKET_DEOBFUSCATION_MAPPING, "deobfuscation_mapping", deobfuscation_tokenize, NULL},
    {TRACE_PACKET_PERF_SAMPLE, "perf_sample", NULL, perf_sample_parse},
    {TRACE_PACKET_PERF_PROGRESS, "perf_progress", NULL, perf_progress_parse}, /* ours */
    {TRACE_PACKET_SMAPS_PACKET, "smaps_packet", NULL, smaps_parse},
    {TRACE_PACKET_ART_PROCESS_METADATA, "art_process_metadata", NULL, art_process_metadata_parse},
    {TRACE_PACKET_STACK_SAMPLE, "stack_sample", NULL, stack_sample_parse},
    {TRACE_PACKET_MEMORY_TRACKER_SNAPSHOT, "memory_tracker_snapshot", NULL, memory_snapshot_parse},
    {TRACE_PACKET_V8_JS_CODE, "v8_js_code", NULL, v8_js_code_parse},
    {TRACE_PACKET_V8_INTERNAL_CODE, "v8_internal_code", NULL, v8_internal_code_parse},
    {TRACE_PACKET_V8_WASM_CODE, "v8_wasm_code", NULL, v8_wasm_code_parse},
    {TRACE_PACKET_V8_REG_EXP_CODE, "v8_reg_exp_code", NULL, v8_reg_exp_code_parse},
    {TRACE_PACKET_V8_CODE_MOVE, "v8_code_move", NULL, v8_code_move_parse},
    {0, NULL, NULL, NULL},
};

struct profiling_machine *profiling_machine_open(struct machine_ctx *m)
{
    struct profiling_machine *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->m = m;
    s->secret = hash_secret();
    s->sample_queue = UINT32_MAX;
    return s;
}

/* Programs that developers push to a phone lie in one folder; without a build id nothing finds their symbols. Mappings
 * are those of all machines: counted with the host. */
static void count_unnamed_programs(struct profiling_machine *s)
{
    const struct storage *st = s->m->st;
    int64_t n = 0;
    for (uint32_t i = 0; s->m->id == 0 && i < st->t[T_stack_profile_mapping].n_rows; i++) {
        const char *path = strpool_cstr(&st->strings, (strid)ROW_GET(st, stack_profile_mapping, name, i));
        const char *build_id = strpool_cstr(&st->strings, (strid)ROW_GET(st, stack_profile_mapping, build_id, i));
        n += strncmp(path, "/data/local/tmp/", strlen("/data/local/tmp/")) == 0 && !build_id[0];
    }
    if (n)
        stats_add(&s->m->st->stats, s->m->id, STAT_symbolization_tmp_build_id_not_found, n);
}

void profiling_machine_finish(struct profiling_machine *s)
{
    count_unnamed_programs(s);
    perf_progress_finish(s);
    heap_profile_finish(s);
    heap_graph_finish(s);
    memory_snapshots_finish(s);
    deobfuscation_finish(s); /* names what all others have left */
}

void profiling_machine_close(struct profiling_machine *s)
{
    if (!s)
        return;
    u64map_free(&s->mappings);
    u64map_free(&s->frames);
    u64map_free(&s->callsites);
    by_id_free(&s->callsite_links);
    u64map_free(&s->at_address.heads);
    vec_free(&s->at_address.links);
    vec_free(&s->frame_rows);
    u64map_free(&s->interned);
    u64map_free(&s->sessions);
    u64map_free(&s->tasks);
    u64map_free(&s->executions);
    u64map_free(&s->async);
    u64map_free(&s->sampling);
    u64map_free(&s->cpu_tracks);
    u64map_free(&s->stack_defaults);
    u64map_free(&s->tasks_read);
    u64map_free(&s->executions_read);
    u64map_free(&s->counters_read);
    u64map_free(&s->packages);
    u64map_free(&s->uid_package);
    vec_free(&s->obfuscation_maps);
    vec_free(&s->perf_runs);
    u64map_free(&s->perf_run_of);
    heap_profile_close(s->dumps);
    heap_graph_close(s->graphs);
    memory_snapshots_close(s->memory);
    jit_close(s->jit);
    v8_close(s->v8);
    arena_free(&s->arena);
    mem_free(s);
}

struct slice profiling_keep(struct profiling_machine *s, struct slice bytes)
{
    if (!bytes.len || importer_bytes_stable(s->m->im, bytes.p))
        return bytes;
    void *copy = arena_alloc_bytes(&s->arena, bytes.len);
    if (!copy) {
        s->m->im->failed = true;
        return slice_of(NULL, 0);
    }
    memcpy(copy, bytes.p, bytes.len);
    return slice_of(copy, bytes.len);
}

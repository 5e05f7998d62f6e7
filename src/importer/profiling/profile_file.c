/* Adds the frames and samples of profiles that come in files of their own. */
#include "importer/profiling/profile_file.h"

#include "importer/profiling/profiling_internal.h"

static struct stack_profile_mapping_row mapping_row(struct machine_ctx *m, strid name)
{
    return (struct stack_profile_mapping_row){
        .build_id = import_str(m->im, ""), .end = -1, .name = name ? name : import_str(m->im, "")};
}

uint32_t profile_file_mapping(struct machine_ctx *m, strid name)
{
    struct stack_profile_mapping_row row = mapping_row(m, name);
    return stack_profile_mapping(m, &row);
}

uint32_t profile_file_own_mapping(struct machine_ctx *m, strid name)
{
    struct stack_profile_mapping_row row = mapping_row(m, name);
    return stack_profile_mapping_insert(m->st, &row);
}

uint32_t profile_file_frame(struct machine_ctx *m, uint32_t mapping, strid name, strid file)
{
    struct stack_profile_frame_row row = {.name = name, .mapping = mapping, .rel_pc = 0};
    struct source_line source = {.function = name, .file = file, .line = COL_NULL};
    uint32_t frame = stack_profile_frame(m, &row, &source);
    if (frame == UINT32_MAX)
        return frame;
    int64_t set = ROW_GET(m->st, stack_profile_frame, symbol_set_id, frame);
    if (set != COL_NULL) /* whether it was inlined is not known */
        ROW_SET(m->st, stack_profile_symbol, inlined, (uint32_t)set, COL_NULL);
    return frame;
}

uint32_t profile_file_sample(struct machine_ctx *m, int64_t ts, const char *source, uint32_t utid, uint32_t upid,
                             int64_t cpu, uint32_t callsite)
{
    return sample_insert(m->profiling, &(struct sample){.ts = ts,
                                                        .source = import_str(m->im, source),
                                                        .upid = upid,
                                                        .utid = utid,
                                                        .async_context = COL_NULL,
                                                        .cpu = cpu,
                                                        .callsite = callsite,
                                                        .session = COL_NULL,
                                                        .counter_set = COL_NULL});
}

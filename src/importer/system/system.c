/* The table of packets that tell about the machine, and the state that their handlers keep. */
#include "importer/system/system_internal.h"

#include "base/strpool.h"
#include "wire/fields.h"

const struct packet_handler system_packet_handlers[] = {
    {TRACE_PACKET_PROCESS_TREE, "process_tree", NULL, process_tree_parse},
    {TRACE_PACKET_INODE_FILE_MAP, "inode_file_map", NULL, inode_file_map_parse},
    {TRACE_PACKET_SYS_STATS, "sys_stats", NULL, sys_stats_parse},
    {TRACE_PACKET_PROCESS_STATS, "process_stats", NULL, process_stats_parse},
    {TRACE_PACKET_BATTERY, "battery", NULL, battery_parse},
    {TRACE_PACKET_POWER_RAILS, "power_rails", power_rails_tokenize, NULL},
    {TRACE_PACKET_SYSTEM_INFO, "system_info", system_info_tokenize, NULL},
    {TRACE_PACKET_PERFETTO_METATRACE, "perfetto_metatrace", NULL, metatrace_parse},
    {TRACE_PACKET_CHROME_EVENTS, "chrome_events", NULL, chrome_events_parse},
    {TRACE_PACKET_CHROME_BENCHMARK_METADATA, "chrome_benchmark_metadata", chrome_benchmark_tokenize, NULL},
    {TRACE_PACKET_CHROME_METADATA, "chrome_metadata", chrome_metadata_tokenize, NULL},
    {TRACE_PACKET_GPU_COUNTER_EVENT, "gpu_counter_event", gpu_counter_event_tokenize, gpu_counter_event_parse},
    {TRACE_PACKET_GPU_RENDER_STAGE_EVENT, "gpu_render_stage_event", NULL, gpu_render_stage_parse},
    {TRACE_PACKET_CONCURRENT_SESSION_EVENT, "concurrent_session_event", NULL, concurrent_session_parse},
    {TRACE_PACKET_GPU_LOG, "gpu_log", NULL, gpu_log_parse},
    {TRACE_PACKET_VULKAN_API_EVENT, "vulkan_api_event", NULL, vulkan_api_event_parse},
    {TRACE_PACKET_VULKAN_MEMORY_EVENT, "vulkan_memory_event", vulkan_memory_event_tokenize, vulkan_memory_event_parse},
    {TRACE_PACKET_CPU_INFO, "cpu_info", NULL, cpu_info_parse},
    {TRACE_PACKET_INITIAL_DISPLAY_STATE, "initial_display_state", NULL, display_state_parse},
    {TRACE_PACKET_GPU_MEM_TOTAL_EVENT, "gpu_mem_total_event", NULL, gpu_mem_total_parse},
    {TRACE_PACKET_ANDROID_ENERGY_ESTIMATION_BREAKDOWN, "android_energy_estimation_breakdown", energy_breakdown_tokenize,
     energy_breakdown_parse},
    {TRACE_PACKET_ENTITY_STATE_RESIDENCY, "entity_state_residency", NULL, entity_state_residency_parse},
    {TRACE_PACKET_GENERIC_KERNEL_TASK_STATE_EVENT, "generic_kernel_task_state_event", NULL, generic_task_state_parse},
    {TRACE_PACKET_GENERIC_KERNEL_CPU_FREQ_EVENT, "generic_kernel_cpu_freq_event", NULL, generic_cpu_freq_parse},
    {TRACE_PACKET_GENERIC_KERNEL_TASK_RENAME_EVENT, "generic_kernel_task_rename_event", NULL,
     generic_task_rename_parse},
    {TRACE_PACKET_GENERIC_KERNEL_PROCESS_TREE, "generic_kernel_process_tree", NULL, generic_process_tree_parse},
    {TRACE_PACKET_GPU_INFO, "gpu_info", NULL, gpu_info_parse},
    {TRACE_PACKET_GENERIC_GPU_FREQUENCY_EVENT, "generic_gpu_frequency_event", NULL, gpu_frequency_parse},
    {TRACE_PACKET_INTERRUPT_INFO, "interrupt_info", NULL, interrupt_info_parse},
    {TRACE_PACKET_ANDROID_LOG, "android_log", android_log_tokenize, NULL},
    {TRACE_PACKET_FRAME_TIMELINE_EVENT, "frame_timeline_event", NULL, frame_timeline_parse},
    {TRACE_PACKET_JOURNALD_EVENT, "journald_event", NULL, journald_parse},
    {TRACE_PACKET_ETW_EVENTS, "etw_events", etw_tokenize, NULL},
    {0, NULL, NULL, NULL},
};

struct system_machine *system_machine_open(struct machine_ctx *m)
{
    struct system_machine *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->m = m;
    s->page_size = 4096;
    s->counter_queue = UINT32_MAX;
    return s;
}

void system_machine_finish(struct system_machine *s)
{
    etw_finish(s->etw); /* nothing else waits for the end here */
}

void system_machine_close(struct system_machine *s)
{
    if (!s)
        return;
    disk_stats_close(s);
    u64map_free(&s->rails);
    u64map_free(&s->energy_consumers);
    vec_free(&s->energy);
    u64map_free(&s->entity_states);
    u64map_free(&s->gpus);
    u64map_free(&s->gpu_counters);
    u64map_free(&s->gpu_descriptors);
    u64map_free(&s->session_states);
    u64map_free(&s->metatrace_strings);
    generic_kernel_close(s->generic);
    frames_close(s->frames);
    android_log_close(s->android_log);
    gpu_work_close(s->gpu_work);
    etw_close(s->etw);
    mem_free(s);
}

uint32_t system_counter_track(struct machine_ctx *m, const char *type, strid name, const char *unit,
                              const struct track_dim *dims, uint32_t n_dims)
{
    struct track_spec spec = {.type = type,
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .unit = unit ? import_str(m->im, unit) : 0,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = n_dims};
    return track_intern(m->im->tracks, m->id, &spec);
}

uint32_t system_keyed_track(struct machine_ctx *m, const char *type, const char *name, const char *unit,
                            const char *dim_key, const char *key)
{
    struct track_dim dim = {dim_key, DIM_STR, import_str(m->im, key)};
    return system_counter_track(m, type, import_str(m->im, name), unit, &dim, 1);
}

static void parse_samples(void *owner, const struct sort_event *events, size_t n)
{
    struct system_machine *s = owner;
    for (size_t i = 0; i < n; i++)
        counter_insert(s->m->st, &(struct counter_row){.ts = events[i].ts,
                                                       .track_id = (uint32_t)events[i].a,
                                                       .value = column_f64((int64_t)events[i].b),
                                                       .arg_set_id = {(uint32_t)(events[i].a >> 32)}});
}

void system_counter_later(struct system_machine *s, int64_t ts, uint32_t track, double value, argset args)
{
    struct sorter *sorter = s->m->im->sorter;
    if (s->counter_queue == UINT32_MAX)
        s->counter_queue = sorter_add_queue(sorter, parse_samples, s);
    if (s->counter_queue != UINT32_MAX)
        sorter_push(sorter, s->counter_queue,
                    (struct sort_event){ts, (uint64_t)args.plus_one << 32 | track, (uint64_t)column_f64_word(value)});
}

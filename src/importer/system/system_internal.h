/* What the files of this folder share: the state of a machine, and the handlers named in the table of system.c. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_SYSTEM_INTERNAL_H
#define MERIDIAN_IMPORTER_SYSTEM_SYSTEM_INTERNAL_H

#include "importer/core/metadata.h"
#include "importer/core/packet.h"
#include "importer/sort/sorter.h"
#include "importer/system/system.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include "base/u64map.h"

struct energy_consumer {
    strid name;
    argset args; /* of its tracks */
};

struct system_machine {
    struct machine_ctx *m;
    uint32_t page_size; /* 4096 until system_info says otherwise */

    uint32_t counter_queue; /* in the sorter: counter samples with timestamps of their own; UINT32_MAX until needed */
    struct u64map disks;    /* strid of the name -> struct disk (disk_stats.c) */
    struct u64map rails;    /* hash of (session, index) -> track */
    struct u64map energy_consumers; /* id -> index of energy */
    VEC(struct energy_consumer)
    energy;
    struct u64map entity_states;     /* entity << 32 | state -> entity name << 32 | state name */
    struct u64map gpus;              /* gpu number -> row of `gpu` */
    struct u64map gpu_counters;      /* key of a counter's id -> track << 32 | its last row (gpu_counters.c) */
    struct u64map session_states;    /* concurrent session -> row of its open state + 1, 0: none */
    struct u64map gpu_descriptors;   /* interned descriptions of counters that were read */
    uint32_t chrome_bundles;         /* chrome_metadata packets so far */
    uint32_t metadata_bundles;       /* chrome_events packets with metadata so far */
    struct u64map metatrace_strings; /* sequence << 32 ^ iid -> strid */
    struct generic_kernel *generic;  /* generic_kernel.c; NULL until needed */
    struct frames *frames;           /* frame_timeline.c; likewise */
    struct android_log *android_log; /* android_log.c; likewise */
    struct gpu_work *gpu_work;       /* gpu_render_stages.c; likewise */
    struct etw *etw;                 /* etw.c; likewise */
};

/* disk_stats.c: a SysStats.DiskStat. */
void disk_stats_parse(struct packet *p, struct slice bytes);
void disk_stats_close(struct system_machine *s);

/* process_tree.c: adds args to those of a process; of equal keys the new value holds. */
void process_merge_args(struct machine_ctx *m, uint32_t upid, const struct arg_list *add);

/* A counter track of a machine with up to two dimensions more than its name: a shorthand. */
uint32_t system_counter_track(struct machine_ctx *m, const char *type, strid name, const char *unit,
                              const struct track_dim *dims, uint32_t n_dims);
/* As above with one string dimension whose value is `key`. */
uint32_t system_keyed_track(struct machine_ctx *m, const char *type, const char *name, const char *unit,
                            const char *dim_key, const char *key);
/* Brings a sample with a timestamp of its own into time order. */
void system_counter_later(struct system_machine *s, int64_t ts, uint32_t track, double value, argset args);

void process_tree_parse(struct packet *p);
void process_stats_parse(struct packet *p);
void sys_stats_parse(struct packet *p);
enum tokenize_result system_info_tokenize(struct packet *p);
void cpu_info_parse(struct packet *p);
void gpu_info_parse(struct packet *p);
void inode_file_map_parse(struct packet *p);
void interrupt_info_parse(struct packet *p);
void battery_parse(struct packet *p);
enum tokenize_result power_rails_tokenize(struct packet *p);
enum tokenize_result energy_breakdown_tokenize(struct packet *p);
void energy_breakdown_parse(struct packet *p);
void entity_state_residency_parse(struct packet *p);
enum tokenize_result gpu_counter_event_tokenize(struct packet *p);
void gpu_counter_event_parse(struct packet *p);
void gpu_render_stage_parse(struct packet *p);
void gpu_work_close(struct gpu_work *w);
void concurrent_session_parse(struct packet *p);
void gpu_log_parse(struct packet *p);
void vulkan_api_event_parse(struct packet *p);
enum tokenize_result vulkan_memory_event_tokenize(struct packet *p);
void vulkan_memory_event_parse(struct packet *p);
void gpu_mem_total_parse(struct packet *p);
void gpu_frequency_parse(struct packet *p);
void generic_task_state_parse(struct packet *p);
void generic_cpu_freq_parse(struct packet *p);
void generic_task_rename_parse(struct packet *p);
void generic_process_tree_parse(struct packet *p);
void generic_kernel_close(struct generic_kernel *g);
void metatrace_parse(struct packet *p);
void journald_parse(struct packet *p);
enum tokenize_result android_log_tokenize(struct packet *p);
void android_log_close(struct android_log *l);
void frame_timeline_parse(struct packet *p);
void frames_close(struct frames *s);
void display_state_parse(struct packet *p);
enum tokenize_result chrome_metadata_tokenize(struct packet *p);
void chrome_events_parse(struct packet *p);
enum tokenize_result etw_tokenize(struct packet *p);
void etw_finish(struct etw *e);
void etw_close(struct etw *e);
enum tokenize_result chrome_benchmark_tokenize(struct packet *p);

#endif

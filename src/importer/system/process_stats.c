/* Imports ProcessStats packets: memory, oom score, run time and open files of processes. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

enum value_kind { KIB, PLAIN };

struct counter_def { /* by field number of ProcessStats.Process */
    const char *type;
    const char *name;
    const char *dim_key; /* second dimension; NULL: upid alone */
    const char *key;
    enum value_kind kind;
    const char *description; /* or NULL */
};

static const struct counter_def counters[] = {
    [PROCESS_STATS_PROCESS_OOM_SCORE_ADJ] = {"oom_score_adj", "oom_score_adj", NULL, NULL, PLAIN},
    [PROCESS_STATS_PROCESS_CHROME_PRIVATE_FOOTPRINT_KB] = {"chrome_process_stats", "chrome.private_footprint_kb",
                                                           "chrome_process_stats_key", "private_footprint_kb", KIB},
    [PROCESS_STATS_PROCESS_CHROME_PEAK_RESIDENT_SET_KB] = {"chrome_process_stats", "chrome.peak_resident_set_kb",
                                                           "chrome_process_stats_key", "peak_resident_set_kb", KIB},
    [PROCESS_STATS_PROCESS_RUNTIME_USER_MODE] = {"proc_stat_runtime", "runtime.user_ns", "proc_stat_runtime_key",
                                                 "user_ns", PLAIN},
    [PROCESS_STATS_PROCESS_RUNTIME_KERNEL_MODE] = {"proc_stat_runtime", "runtime.kernel_ns", "proc_stat_runtime_key",
                                                   "kernel_ns", PLAIN},
#define MEMORY(field, key, description)                                                                                \
    [field] = {"process_memory", "mem." key, "process_memory_key", key, KIB, description},
#define SMAPS(field, key, description) [field] = {"smaps", "mem.smaps." key, "smaps_key", key, KIB, description},
#include "importer/track/process_memory.def"
#undef MEMORY
#undef SMAPS
};

enum { N_COUNTERS = sizeof counters / sizeof *counters };

static uint32_t counter_track(struct machine_ctx *m, const struct counter_def *d, uint32_t upid)
{
    if (!d->dim_key)
        return track_intern_int(m->im->tracks, m->id, d->type, TRACK_COUNTER, "upid", upid, import_str(m->im, d->name));
    struct track_dim dims[] = {{"upid", DIM_INT, upid}, {d->dim_key, DIM_STR, import_str(m->im, d->key)}};
    struct track_spec spec = {.type = d->type,
                              .event_type = TRACK_COUNTER,
                              .name = import_str(m->im, d->name),
                              .parent = UINT32_MAX,
                              .description = d->description,
                              .dims = dims,
                              .n_dims = 2};
    return track_intern(m->im->tracks, m->id, &spec);
}

static void add_fd(struct packet *p, int32_t pid, struct slice bytes)
{
    uint64_t fd = 0;
    struct slice path = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == PROCESS_STATS_FD_INFO_FD)
            fd = pb_u64(&f);
        else if (f.id == PROCESS_STATS_FD_INFO_PATH)
            path = pb_bytes(&f);
    }
    filedescriptor_insert(p->m->st, &(struct filedescriptor_row){.fd = (int64_t)fd,
                                                                 .ts = p->ts,
                                                                 .upid = process_tracker_process(p->m->processes, pid),
                                                                 .path = import_slice(p->m->im, path)});
}

static bool is_of_chrome(uint32_t field)
{
    return field == PROCESS_STATS_PROCESS_IS_PEAK_RSS_RESETTABLE ||
           field == PROCESS_STATS_PROCESS_CHROME_PRIVATE_FOOTPRINT_KB ||
           field == PROCESS_STATS_PROCESS_CHROME_PEAK_RESIDENT_SET_KB;
}

static void add_counter(struct packet *p, int32_t pid, const struct pb_field *f)
{
    const struct counter_def *d = &counters[f->id];
    int64_t v = pb_i64(f);
    uint32_t upid = process_tracker_process(p->m->processes, pid);
    counter_push(p->m->im, p->ts, counter_track(p->m, d, upid),
                 (double)(d->kind == KIB ? (int64_t)((uint64_t)v * 1024) : v));
}

static void set_resettable(struct packet *p, int32_t pid, bool resettable)
{
    struct arg_list add = {0};
    arg_list_bool(&p->m->st->args, &add, "is_peak_rss_resettable", resettable);
    process_merge_args(p->m, process_tracker_process(p->m->processes, pid), &add);
    arg_list_free(&add);
}

/* What is told of a process becomes rows in the order of the message: tracks get their ids in that order. */
static void add_process(struct packet *p, struct slice bytes, bool of_chrome)
{
    struct machine_ctx *m = p->m;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    int32_t pid = pb_find(bytes, PROCESS_STATS_PROCESS_PID, &f) ? pb_i32(&f) : 0;
    while (pb_next(&c, &f)) {
        struct pb_field tid;
        if (f.id == PROCESS_STATS_PROCESS_PID || is_of_chrome(f.id) != of_chrome)
            continue;
        if (f.id == PROCESS_STATS_PROCESS_IS_PEAK_RSS_RESETTABLE)
            set_resettable(p, pid, pb_bool(&f));
        else if (f.id == PROCESS_STATS_PROCESS_THREADS && pb_find(pb_bytes(&f), PROCESS_STATS_THREAD_TID, &tid))
            process_tracker_update_thread(m->processes, pb_i32(&tid), pid);
        else if (f.id == PROCESS_STATS_PROCESS_FDS)
            add_fd(p, pid, pb_bytes(&f));
        else if (f.id < N_COUNTERS && counters[f.id].type)
            add_counter(p, pid, &f);
        else if (f.id != PROCESS_STATS_PROCESS_THREADS)
            stats_add(&m->st->stats, m->id, STAT_proc_stat_unknown_counters, 1);
    }
}

/* What Chrome tells comes first, of all processes. */
void process_stats_parse(struct packet *p)
{
    struct pb_field f;
    for (int of_chrome = 1; of_chrome >= 0; of_chrome--) {
        struct pb_cursor c = pb_cursor(p->field);
        while (pb_next(&c, &f))
            if (f.id == PROCESS_STATS_PROCESSES)
                add_process(p, pb_bytes(&f), of_chrome);
    }
}

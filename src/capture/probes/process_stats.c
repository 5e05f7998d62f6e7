/* The data source linux.process_stats: who runs on this machine, and how much memory each takes.
 *
 * A scan of /proc at the start, threads that ftrace meets as they come, and memory counters by a timer. A tree packet
 * carries processes and threads that the session has not been told of yet; counters are written when they change. */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_status.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PACKET_SOFT_MAX = 64 << 10, /* a tree goes on in another packet beyond this */
    POLL_MIN_MS = 100,
    QUIRK_NO_INITIAL_DUMP = 1,
    QUIRK_NO_ON_DEMAND = 2,
};

/* What was last written for a process. */
struct counters {
    uint64_t memory_kb[PROC_MEMORY_COUNT];
    uint32_t memory_present;
    int64_t oom_score_adj;
    bool has_oom;
    uint64_t user_ns, kernel_ns;
};

struct process_stats {
    const struct probes_host *host;
    struct packet_sink sink;
    bool scan_all, thread_names, fds, smaps, age, runtime, skip_main_thread, no_initial, no_on_demand;
    uint32_t poll_ms, ttl_ms;
    uint64_t ticks;
    uv_timer_t *timer;       /* NULL when there is nothing to poll */
    struct u64map seen;      /* thread ids in tree packets since the last clear */
    struct u64map no_memory; /* kernel threads: never polled again */
    struct u64map cache;     /* pid → index into counters + 1 */
    struct u64map seen_fds;  /* hash of (pid, fd, path) */
    VEC(struct counters)
    counters;
    struct pb_writer w;
    size_t tree; /* mark of the open tree message, when in_tree */
    bool in_tree, cleared;
};

/* ---- packets ---- */

static void begin_packet(struct process_stats *s, uint64_t timestamp)
{
    pb_writer_clear(&s->w);
    s->w.failed = false;
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, timestamp);
    if (s->cleared)
        pb_put_varint(&s->w, TRACE_PACKET_INCREMENTAL_STATE_CLEARED, 1);
}

static void emit(struct process_stats *s)
{
    if (s->w.failed) /* out of memory: what was in it is told again after the next clear */
        return;
    packet_sink_write(&s->sink, pb_written(&s->w));
    s->cleared = false;
}

static void tree_begin(struct process_stats *s)
{
    if (s->in_tree)
        return;
    begin_packet(s, probes_boot_ns());
    s->tree = pb_begin(&s->w, TRACE_PACKET_PROCESS_TREE);
    s->in_tree = true;
}

static void tree_end(struct process_stats *s)
{
    if (!s->in_tree)
        return;
    pb_put_varint(&s->w, PROCESS_TREE_COLLECTION_END_TIMESTAMP, probes_boot_ns());
    pb_end(&s->w, s->tree);
    emit(s);
    s->in_tree = false;
}

static bool mark_seen(struct process_stats *s, int32_t tid)
{
    bool added = false;
    return u64map_put(&s->seen, (uint64_t)tid, &added) && added;
}

/* ---- the tree ---- */

static void put_cmdline(struct process_stats *s, const struct proc_status *p)
{
    if (proc_put_cmdline(&s->w, p->pid))
        return;
    pb_put_str(&s->w, PROCESS_TREE_PROCESS_CMDLINE, p->name);
    pb_put_varint(&s->w, PROCESS_TREE_PROCESS_CMDLINE_IS_COMM, 1);
}

static void put_cgroup(struct process_stats *s, int32_t pid)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return;
    const char *cgroup = proc_cgroup_parse(text);
    if (*cgroup)
        pb_put_str(&s->w, PROCESS_TREE_PROCESS_CGROUP, cgroup);
}

static void put_process(struct process_stats *s, const struct proc_status *p)
{
    struct proc_times times;
    tree_begin(s);
    size_t message = pb_begin(&s->w, PROCESS_TREE_PROCESSES);
    pb_put_i64(&s->w, PROCESS_TREE_PROCESS_PID, p->tgid);
    pb_put_i64(&s->w, PROCESS_TREE_PROCESS_PPID, p->ppid);
    put_cmdline(s, p);
    pb_put_i64(&s->w, PROCESS_TREE_PROCESS_UID, (int32_t)p->uid);
    for (uint32_t i = 1; i < p->n_ns; i++)
        pb_put_i64(&s->w, PROCESS_TREE_PROCESS_NSPID, p->ns_pid[i]);
    if (s->age && proc_times_read(p->tgid, &times))
        pb_put_varint(&s->w, PROCESS_TREE_PROCESS_PROCESS_START_FROM_BOOT, times.start_from_boot_ns);
    if (p->kthread >= 0)
        pb_put_varint(&s->w, PROCESS_TREE_PROCESS_IS_KTHREAD, (uint64_t)p->kthread);
    if (p->kthread != 1)
        put_cgroup(s, p->tgid);
    pb_end(&s->w, message);
}

static void put_thread(struct process_stats *s, const struct proc_status *p)
{
    tree_begin(s);
    size_t message = pb_begin(&s->w, PROCESS_TREE_THREADS);
    pb_put_i64(&s->w, PROCESS_TREE_THREAD_TID, p->pid);
    if (s->thread_names)
        pb_put_str(&s->w, PROCESS_TREE_THREAD_NAME, p->name);
    pb_put_i64(&s->w, PROCESS_TREE_THREAD_TGID, p->tgid);
    for (uint32_t i = 1; i < p->n_ns; i++)
        pb_put_i64(&s->w, PROCESS_TREE_THREAD_NSTID, p->ns_pid[i]);
    pb_end(&s->w, message);
}

/* Writes the process of a thread, if it is news, and the thread. */
static void put_tid(struct process_stats *s, int32_t tid)
{
    struct proc_status thread, process;
    if (!mark_seen(s, tid) || !proc_status_read(tid, &thread))
        return;
    bool is_main = thread.tgid == thread.pid;
    if (is_main || mark_seen(s, thread.tgid)) {
        if (is_main)
            process = thread;
        if (is_main || proc_status_read(thread.tgid, &process)) {
            put_process(s, &process);
            if (!s->skip_main_thread)
                put_thread(s, &process);
        }
    }
    if (!is_main)
        put_thread(s, &thread);
    if (s->w.n > PACKET_SOFT_MAX)
        tree_end(s);
}

static void each_number(const char *path, void (*fn)(struct process_stats *s, int32_t number), struct process_stats *s)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));) {
        char *end;
        long v = strtol(d->d_name, &end, 10);
        if (end != d->d_name && !*end && v > 0)
            fn(s, (int32_t)v);
    }
    closedir(dir);
}

static void put_all_threads(struct process_stats *s, int32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    put_tid(s, pid);
    each_number(path, put_tid, s);
}

static void scan_all(struct process_stats *s)
{
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    each_number("/proc", put_all_threads, s);
    tree_end(s);
    metatrace_end(s->host->metatrace, span, "process_scan");
}

static void on_new_tids(void *state, const int32_t *tids, size_t n)
{
    struct process_stats *s = state;
    if (s->no_on_demand)
        return;
    for (size_t i = 0; i < n; i++)
        put_tid(s, tids[i]);
    tree_end(s);
}

static void on_stale_tids(void *state, const int32_t *tids, size_t n)
{
    struct process_stats *s = state;
    for (size_t i = 0; i < n; i++)
        u64map_del(&s->seen, (uint64_t)tids[i]);
}

/* ---- counters ---- */

static struct counters *cached(struct process_stats *s, int32_t pid)
{
    bool added;
    uint64_t *slot = u64map_put(&s->cache, (uint64_t)pid, &added);
    if (!slot)
        return NULL;
    if (added) {
        if (!vec_add(&s->counters)) {
            u64map_del(&s->cache, (uint64_t)pid);
            return NULL;
        }
        *slot = s->counters.n;
    }
    return &s->counters.p[*slot - 1];
}

static void put_fd(struct process_stats *s, int32_t pid, const char *directory, const char *name)
{
    char path[400], target[512];
    bool added;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    ssize_t len = readlink(path, target, sizeof target);
    if (len <= 0)
        return;
    uint64_t key = hash_combine(hash_bytes(target, (size_t)len), (uint64_t)pid << 32 | (uint64_t)atol(name));
    if (!u64map_put(&s->seen_fds, key, &added) || !added)
        return;
    size_t message = pb_begin(&s->w, PROCESS_STATS_PROCESS_FDS);
    pb_put_varint(&s->w, PROCESS_STATS_FD_INFO_FD, (uint64_t)atol(name));
    pb_put_bytes(&s->w, PROCESS_STATS_FD_INFO_PATH, target, (size_t)len);
    pb_end(&s->w, message);
}

static void put_fds(struct process_stats *s, int32_t pid)
{
    char directory[64];
    snprintf(directory, sizeof directory, "/proc/%d/fd", pid);
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.')
            put_fd(s, pid, directory, d->d_name);
    closedir(dir);
}

static void put_counters(struct process_stats *s, int32_t pid)
{
    struct proc_status p;
    struct proc_times times;
    int64_t oom;
    if (u64map_get(&s->no_memory, (uint64_t)pid) || !proc_status_read(pid, &p))
        return;
    if (!(p.memory_present & 1u << PROC_VM_SIZE)) { /* a kernel thread, now and for ever */
        u64map_set(&s->no_memory, (uint64_t)pid, 1);
        return;
    }
    if (s->smaps)
        proc_status_add_smaps(pid, &p);
    struct counters *c = cached(s, pid);
    if (!c)
        return;
    size_t start = s->w.n;
    size_t message = pb_begin(&s->w, PROCESS_STATS_PROCESSES);
    pb_put_i64(&s->w, PROCESS_STATS_PROCESS_PID, pid);
    size_t empty = s->w.n;
    for (unsigned i = 0; i < PROC_MEMORY_COUNT; i++) {
        bool known = c->memory_present >> i & 1;
        if (!(p.memory_present >> i & 1) || (known && c->memory_kb[i] == p.memory_kb[i]))
            continue;
        pb_put_varint(&s->w, proc_memory_fields[i].proto_field, p.memory_kb[i]);
        c->memory_kb[i] = p.memory_kb[i];
        c->memory_present |= 1u << i;
    }
    if (proc_oom_score_adj(pid, &oom) && (!c->has_oom || c->oom_score_adj != oom)) {
        pb_put_i64(&s->w, PROCESS_STATS_PROCESS_OOM_SCORE_ADJ, oom);
        c->oom_score_adj = oom;
        c->has_oom = true;
    }
    if (s->runtime && proc_times_read(pid, &times)) {
        if (times.user_ns != c->user_ns)
            pb_put_varint(&s->w, PROCESS_STATS_PROCESS_RUNTIME_USER_MODE, times.user_ns);
        if (times.kernel_ns != c->kernel_ns)
            pb_put_varint(&s->w, PROCESS_STATS_PROCESS_RUNTIME_KERNEL_MODE, times.kernel_ns);
        c->user_ns = times.user_ns;
        c->kernel_ns = times.kernel_ns;
    }
    if (s->fds)
        put_fds(s, pid);
    if (s->w.n == empty)
        s->w.n = start; /* nothing has changed */
    else
        pb_end(&s->w, message);
}

static void clear_cache(struct process_stats *s)
{
    u64map_clear(&s->cache);
    u64map_clear(&s->seen_fds);
    vec_clear(&s->counters);
}

static void poll_counters(struct process_stats *s)
{
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    if (s->ttl_ms && s->ticks % (s->ttl_ms / s->poll_ms ? s->ttl_ms / s->poll_ms : 1) == 0)
        clear_cache(s);
    s->ticks++;
    begin_packet(s, probes_boot_ns());
    size_t message = pb_begin(&s->w, TRACE_PACKET_PROCESS_STATS);
    size_t empty = s->w.n;
    each_number("/proc", put_counters, s);
    if (s->w.n > empty) {
        pb_put_varint(&s->w, PROCESS_STATS_COLLECTION_END_TIMESTAMP, probes_boot_ns());
        pb_end(&s->w, message);
        emit(s);
    }
    metatrace_end(s->host->metatrace, span, "process_counters");
}

static void on_tick(uv_timer_t *timer)
{
    struct process_stats *s = timer->data;
    poll_counters(s);
    probes_arm_tick(timer, on_tick, s->poll_ms);
}

/* ---- life ---- */

static void read_config(struct process_stats *s, struct slice bytes)
{
    enum { QUIRKS = 1, POLL_MS = 4, TTL_MS = 6, DMABUF_RSS = 13 };
    static const struct {
        uint32_t field;
        size_t at; /* of a bool */
    } flags[] = {
        {PROCESS_STATS_CONFIG_SCAN_ALL_PROCESSES_ON_START, offsetof(struct process_stats, scan_all)},
        {PROCESS_STATS_CONFIG_RECORD_THREAD_NAMES, offsetof(struct process_stats, thread_names)},
        {PROCESS_STATS_CONFIG_RESOLVE_PROCESS_FDS, offsetof(struct process_stats, fds)},
        {PROCESS_STATS_CONFIG_SCAN_SMAPS_ROLLUP, offsetof(struct process_stats, smaps)},
        {PROCESS_STATS_CONFIG_RECORD_PROCESS_AGE, offsetof(struct process_stats, age)},
        {PROCESS_STATS_CONFIG_RECORD_PROCESS_RUNTIME, offsetof(struct process_stats, runtime)},
        {PROCESS_STATS_CONFIG_SKIP_MAIN_THREAD_MESSAGE, offsetof(struct process_stats, skip_main_thread)},
    };
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
            if (flags[i].field == f.id)
                *(bool *)((char *)s + flags[i].at) = pb_bool(&f);
        if (f.id == QUIRKS) {
            s->no_initial |= pb_u32(&f) == QUIRK_NO_INITIAL_DUMP;
            s->no_on_demand |= pb_u32(&f) == QUIRK_NO_ON_DEMAND;
        } else if (f.id == POLL_MS) {
            s->poll_ms = pb_u32(&f);
        } else if (f.id == TTL_MS) {
            s->ttl_ms = pb_u32(&f);
        } else if (f.id == DMABUF_RSS && pb_bool(&f)) {
            s->host->log(s->host->ctx,
                         "linux.process_stats: record_process_dmabuf_rss needs an Android kernel: left out");
        }
    }
    if (s->poll_ms && s->poll_ms < POLL_MIN_MS)
        s->poll_ms = POLL_MIN_MS;
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct process_stats *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for process_stats");
    s->host = host;
    s->sink = *sink;
    read_config(s, config->specific);
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct process_stats *s = state;
    if (s->scan_all && !s->no_initial)
        scan_all(s);
    if (!s->poll_ms)
        return 0;
    s->timer = probes_timer_new(s->host->loop, s);
    if (!s->timer)
        return error_set(err, -MRD_ENOMEM, "out of memory for process_stats");
    on_tick(s->timer);
    return 0;
}

static void clear_incremental(void *state)
{
    struct process_stats *s = state;
    u64map_clear(&s->seen);
    u64map_clear(&s->no_memory);
    clear_cache(s);
    s->cleared = true;
    if (s->scan_all && !s->no_initial) /* what comes after must stand alone */
        scan_all(s);
}

static void stop(void *state)
{
    struct process_stats *s = state;
    if (s->timer)
        uv_timer_stop(s->timer);
}

static void free_state(void *state)
{
    struct process_stats *s = state;
    probes_timer_free(s->timer);
    u64map_free(&s->seen);
    u64map_free(&s->no_memory);
    u64map_free(&s->cache);
    u64map_free(&s->seen_fds);
    vec_free(&s->counters);
    pb_writer_free(&s->w);
    mem_free(s);
}

const struct data_source_type process_stats_data_source = {
    .name = "linux.process_stats",
    .config_field = 103,
    .handles_incremental_clear = true,
    .setup = setup,
    .start = start,
    .clear_incremental = clear_incremental,
    .stop = stop,
    .free = free_state,
    .new_tids = on_new_tids,
    .stale_tids = on_stale_tids,
};

/* The records about threads, processes, mapped files, switches and losses. What they hold at least is there when they
 * are parsed: perf_parse_record() sees to that. */
#include "importer/perf/perf_unwind.h"

#include "importer/profiling/stack_profile.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"

enum {
    MODE_MASK = 7,
    MODE_KERNEL = 1,
    MODE_GUEST_KERNEL = 4,
    MISC_COMM_EXEC = 1 << 13,
    MISC_SWITCH_OUT = 1 << 13,
    MISC_PREEMPTED = 1 << 14,
    MISC_HAS_BUILD_ID = 1 << 14,
    MISC_LOST_BY_FILTER = 1 << 15,
    BUILD_ID_BYTES = 20,
};

static struct slice rest_text(struct dat_cursor *c)
{
    return slice_of(c->p, strnlen((const char *)c->p, (size_t)(c->end - c->p)));
}

static void comm(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    int64_t pid = dat_u32(&c), tid = dat_u32(&c);
    struct process_tracker *t = p->m->processes;
    struct perf_where w;
    (void)ts;
    perf_trailer_read(&p->file, a, r, &w);
    uint32_t utid = process_tracker_update_thread(t, tid, pid);
    strid name = import_slice(p->im, rest_text(&c));
    /* A rename while recording is as good as the names in switches; one without a time is how it was called before. */
    process_tracker_thread_name(t, utid, name, w.time ? THREAD_NAME_FTRACE : THREAD_NAME_OTHER);
    process_tracker_main_thread_name(t, utid, name);
    if (p->unwinder && r->misc & MISC_COMM_EXEC)
        perf_space_clear(&p->spaces, (uint32_t)pid);
}

static void fork_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    int64_t pid = dat_u32(&c), ppid = dat_u32(&c), tid = dat_u32(&c), ptid = dat_u32(&c);
    struct process_tracker *t = p->m->processes;
    struct perf_where w;
    perf_trailer_read(&p->file, a, r, &w);
    if (!w.time || (tid == pid && pid == ppid)) /* what was there when recording began, and a mark of perf's own */
        (void)process_tracker_update_thread(t, tid, pid);
    else if (pid == ppid)
        process_tracker_associate_threads(t, process_tracker_start_thread(t, ts, tid), process_tracker_thread(t, ptid));
    else
        (void)process_tracker_start_process(t, ts, ptid, pid, 0, THREAD_NAME_OTHER);
    if (p->unwinder && w.time && pid != ppid && !perf_space_inherit(&p->spaces, (uint32_t)pid, (uint32_t)ppid))
        p->im->failed = true;
}

static void exit_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    (void)a;
    (void)dat_u64(&c); /* pid, ppid */
    process_tracker_exit_thread(p->m->processes, ts, dat_u32(&c));
}

/* The build id of a mapped file: its own, or of feature BUILD_ID. */
static strid build_id(struct perf_import *p, uint32_t pid, struct slice name, struct slice own)
{
    struct slice id = own.len ? own : perf_find_build_id(&p->file, pid, name);
    return id.len ? build_id_text(p->m, id) : 0;
}

/* Which file a MMAP2 maps: its build id, or device and inode. */
static void read_identity(struct perf_import *p, struct dat_cursor *c, const struct perf_record *r,
                          struct slice *build_id, struct perf_inode *inode)
{
    enum { BYTES = 24 };
    struct slice bytes = dat_bytes(c, BYTES);
    struct dat_cursor in = perf_cursor(&p->file, bytes);
    if (r->misc & MISC_HAS_BUILD_ID) {
        uint32_t size = *bytes.p < BUILD_ID_BYTES ? *bytes.p : BUILD_ID_BYTES;
        (void)dat_u32(&in);
        *build_id = dat_bytes(&in, size);
        return;
    }
    inode->major = dat_u32(&in);
    inode->minor = dat_u32(&in);
    inode->number = dat_u64(&in);
}

static void mmap_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    uint32_t pid = dat_u32(&c);
    (void)a;
    (void)dat_u32(&c);
    uint64_t start = dat_u64(&c), len = dat_u64(&c), offset = dat_u64(&c);
    struct slice own = {0};
    struct perf_inode file = {0};
    if (r->type == PERF_RECORD_MMAP2) {
        read_identity(p, &c, r, &own, &file);
        (void)dat_u64(&c); /* protection, flags */
    }
    struct slice name = rest_text(&c);
    unsigned mode = r->misc & MODE_MASK;
    bool kernel = mode == MODE_KERNEL || mode == MODE_GUEST_KERNEL, image = slice_starts(name, "[kernel.kallsyms]");
    if (kernel && slice_eq_str(name, "[bpf]") && len >= INT64_MAX)
        return; /* all addresses there are: it says nothing */
    if (image && p->has_kernel_map)
        return;
    p->has_kernel_map |= image;
    offset = image ? 0 : offset;
    struct stack_profile_mapping_row row = {.build_id = build_id(p, pid, name, own),
                                            .exact_offset = (int64_t)offset,
                                            .start = (int64_t)start,
                                            .end = (int64_t)(start + len),
                                            .name = import_slice(p->im, name)};
    row.build_id = row.build_id ? row.build_id : import_str(p->im, "");
    uint32_t mapping = stack_profile_mapping_insert(p->im->st, &row);
    uint32_t upid = kernel ? UPID_NONE : process_tracker_process(p->m->processes, pid);
    struct mmap_record_row m = {
        .ts = ts, .upid = kernel ? COL_NULL : (int64_t)upid, .mapping_id = mapping, .file_id = COL_NULL};
    struct perf_space *space = kernel ? &p->spaces.kernel : perf_space_of(&p->spaces, pid);
    struct perf_map map = {start, start + len < start ? UINT64_MAX : start + len, (int64_t)(offset - start), mapping,
                           0};
    if (mapping == UINT32_MAX || mmap_record_insert(p->im->st, &m) == UINT32_MAX || !space ||
        !perf_space_map(space, map))
        p->im->failed = true;
    perf_unwind_map(p, mapping, file);
}

/* Code that the kernel has made. That it is gone needs no word: what comes next to its place takes it. */
static void ksymbol(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    enum { UNREGISTER = 1 };
    struct dat_cursor c = perf_body(&p->file, r);
    uint64_t start = dat_u64(&c);
    uint32_t len = dat_u32(&c);
    (void)a;
    (void)ts;
    (void)dat_u16(&c); /* its type */
    if (dat_u16(&c) & UNREGISTER)
        return;
    struct perf_symbol s = {import_slice(p->im, rest_text(&c)), start, start + len, UINT32_MAX};
    struct perf_map map = {
        .start = start, .end = s.end < start ? UINT64_MAX : s.end, .pc_offset = (int64_t)(0 - start)};
    map.symbol = (uint32_t)p->symbols.n + 1;
    if (!vec_push(&p->symbols, s) || !perf_space_map(&p->spaces.kernel, map))
        p->im->failed = true;
}

static void cgroup(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    uint64_t id = dat_u64(&c);
    (void)a;
    (void)ts;
    if (!u64map_set(&p->cgroups, id, import_slice(p->im, rest_text(&c))))
        p->im->failed = true;
}

static void lost(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    struct perf_where w;
    (void)ts;
    if (r->type == PERF_RECORD_LOST)
        (void)dat_u64(&c);
    else if (r->misc & MISC_LOST_BY_FILTER)
        return;
    uint64_t n = dat_u64(&c);
    perf_trailer_read(&p->file, a, r, &w);
    int32_t cpu = w.has_cpu && w.cpu < CPUS_PER_MACHINE ? (int32_t)w.cpu : 0;
    if (n)
        stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_cpu_lost_records, cpu,
                      n < INT64_MAX ? (int64_t)n : INT64_MAX);
}

static void throttle(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct perf_where w;
    (void)ts;
    perf_trailer_read(&p->file, a, r, &w);
    if (r->type == PERF_RECORD_THROTTLE)
        stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_throttled,
                      w.has_cpu && w.cpu < CPUS_PER_MACHINE ? (int32_t)w.cpu : 0, 1);
}

/* A context switch: in the wide form a record of the one who goes names the one who comes. */
static void switch_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    struct process_tracker *t = p->m->processes;
    struct sched_tracker *sched = p->m->sched;
    struct perf_where w;
    perf_trailer_read(&p->file, a, r, &w);
    bool out = r->misc & MISC_SWITCH_OUT, has_cpu = w.has_cpu && w.cpu < CPUS_PER_MACHINE;
    if (p->has_switches || !w.has_tid)
        return;
    strid state = r->misc & MISC_PREEMPTED ? import_str(p->im, "R+") : 0;
    uint32_t utid = process_tracker_update_thread(t, w.tid, w.pid);
    if (!has_cpu) { /* of single threads, wherever they run */
        sched_tracker_set_state(sched, ts, utid, out ? state : import_str(p->im, "Running"), COL_NULL);
    } else if (!out) { /* else its switch out told it already */
        if (sched_tracker_running(sched, w.cpu) != utid)
            sched_tracker_run(sched, w.cpu, ts, utid);
    } else if (r->type == PERF_RECORD_SWITCH_CPU_WIDE) {
        int64_t pid = dat_u32(&c), tid = dat_u32(&c);
        uint32_t next = process_tracker_update_thread(t, tid, pid);
        if (sched_tracker_running(sched, w.cpu) != next) /* else a kernel event of another file told it */
            sched_tracker_switch_threads(sched, w.cpu, ts, utid, state, next, 0);
    } else {
        sched_tracker_leave(sched, w.cpu, ts, utid, state);
    }
}

static void thread_known(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    int64_t pid = dat_u32(&c), tid = dat_u32(&c);
    (void)a;
    (void)ts;
    (void)process_tracker_update_thread(p->m->processes, tid, pid);
}

bool perf_parse_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    enum { HEADER = 8 };
    static const struct {
        uint8_t type, least; /* bytes of the body without what varies; a shorter one is damaged */
        void (*parse)(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts);
    } types[] = {
        {PERF_RECORD_MMAP, 32, mmap_record},
        {PERF_RECORD_LOST, 16, lost},
        {PERF_RECORD_COMM, 8, comm},
        {PERF_RECORD_EXIT, 24, exit_record},
        {PERF_RECORD_THROTTLE, 24, throttle},
        {PERF_RECORD_UNTHROTTLE, 24, throttle},
        {PERF_RECORD_FORK, 24, fork_record},
        {PERF_RECORD_MMAP2, 64, mmap_record},
        {PERF_RECORD_ITRACE_START, 8, thread_known},
        {PERF_RECORD_LOST_SAMPLES, 8, lost},
        {PERF_RECORD_SWITCH, 0, switch_record},
        {PERF_RECORD_SWITCH_CPU_WIDE, 8, switch_record},
        {PERF_RECORD_KSYMBOL, 16, ksymbol},
        {PERF_RECORD_CGROUP, 8, cgroup},
        {PERF_RECORD_CALLCHAIN_DEFERRED, 16, perf_deferred_chain},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].type != r->type)
            continue;
        if (p && r->bytes.len - HEADER < types[i].least) /* p NULL: only whether there is one */
            stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_record_skipped, (int32_t)r->type, 1);
        else if (p)
            types[i].parse(p, a, r, ts);
        return true;
    }
    return false;
}

/* Imports ProcessTree packets: which processes and threads there are, as procfs told. */
#include "importer/system/system_internal.h"

#include "base/u64map.h"
#include "importer/clock/clock_graph.h"
#include "importer/system/container.h"
#include "wire/fields.h"

enum { KTHREADD = 2 /* the process that the kernel's threads are children of */ };

static size_t find_byte(struct slice s, char c)
{
    const uint8_t *p = s.len ? memchr(s.p, c, s.len) : NULL;
    return p ? (size_t)(p - s.p) : s.len;
}

struct process_message {
    int32_t pid, ppid, uid, inner_pid;
    uint32_t ns_level, n_cmdline;
    bool has_cmdline, has_uid, has_start, is_kthread, has_kthread, has_ns;
    bool is_comm;      /* there was no command line: the name is the main thread's */
    uint64_t start_ns; /* BOOTTIME */
    struct slice argv0, cgroup;
    strid cmdline;
};

static strid join_cmdline(struct machine_ctx *m, struct slice process)
{
    char text[4096];
    size_t n = 0;
    bool first = true;
    struct pb_cursor c = pb_cursor(process);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != PROCESS_TREE_PROCESS_CMDLINE)
            continue;
        struct slice arg = pb_bytes(&f);
        if (!first && n < sizeof text)
            text[n++] = ' ';
        first = false;
        size_t take = arg.len < sizeof text - n ? arg.len : sizeof text - n;
        if (take)
            memcpy(text + n, arg.p, take);
        n += take;
    }
    return strpool_intern(&m->st->strings, text, n);
}

static void read_process(struct machine_ctx *m, struct slice bytes, struct process_message *p)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    memset(p, 0, sizeof *p);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case PROCESS_TREE_PROCESS_PID:
            p->pid = pb_i32(&f);
            break;
        case PROCESS_TREE_PROCESS_PPID:
            p->ppid = pb_i32(&f);
            break;
        case PROCESS_TREE_PROCESS_CMDLINE:
            if (!p->n_cmdline++)
                p->argv0 = pb_bytes(&f);
            p->has_cmdline = true;
            break;
        case PROCESS_TREE_PROCESS_UID:
            p->uid = pb_i32(&f);
            p->has_uid = true;
            break;
        case PROCESS_TREE_PROCESS_NSPID:
            p->inner_pid = pb_i32(&f);
            p->ns_level = p->has_ns ? p->ns_level + 1 : 0;
            p->has_ns = true;
            break;
        case PROCESS_TREE_PROCESS_PROCESS_START_FROM_BOOT:
            p->start_ns = pb_u64(&f);
            p->has_start = true;
            break;
        case PROCESS_TREE_PROCESS_IS_KTHREAD:
            p->is_kthread = pb_bool(&f);
            p->has_kthread = true;
            break;
        case PROCESS_TREE_PROCESS_CMDLINE_IS_COMM:
            p->is_comm = pb_bool(&f);
            break;
        case PROCESS_TREE_PROCESS_CGROUP:
            p->cgroup = pb_bytes(&f);
            break;
        }
    }
    if (p->has_cmdline)
        p->cmdline = join_cmdline(m, bytes);
}

static void add_text(struct machine_ctx *m, struct arg_list *args, const char *key, struct slice text)
{
    if (text.len)
        arg_list_str(&m->st->args, args, key, import_slice(m->im, text));
}

/* What only our recorder tells, as args: names are those of OpenTelemetry where it has one. */
static void add_cgroup(struct machine_ctx *m, struct slice path, struct arg_list *args)
{
    struct container c;
    container_of_cgroup(path, &c);
    add_text(m, args, "process.cgroup", path);
    add_text(m, args, "container.id", c.id);
    add_text(m, args, "container.runtime", c.runtime);
    add_text(m, args, "k8s.pod.uid", c.pod);
    add_text(m, args, "systemd.unit", c.unit);
}

/* A process is told anew when its incremental state begins again: what is told last holds. */
void process_merge_args(struct machine_ctx *m, uint32_t upid, const struct arg_list *add)
{
    struct args *args = &m->st->args;
    struct arg_list all = {0};
    if (!add->n)
        return;
    args_values(args, ROW_ARGS(m->st, process, arg_set_id, upid), &all);
    arg_list_merge(&all, add);
    argset set = args_intern(args, all.p, all.n);
    if (!argset_is_none(set))
        ROW_SET_ARGS(m->st, process, arg_set_id, upid, set);
    arg_list_free(&all);
}

static void set_args(struct machine_ctx *m, const struct process_message *p, uint32_t upid)
{
    struct args *args = &m->st->args;
    struct arg_list add = {0};
    if (p->has_kthread)
        arg_list_bool(args, &add, "is_kthread", p->is_kthread);
    if (p->cgroup.len)
        add_cgroup(m, p->cgroup, &add);
    if (p->cgroup.len && p->has_ns)
        arg_list_int(args, &add, "process.vpid", p->inner_pid);
    process_merge_args(m, upid, &add);
    arg_list_free(&add);
}

void process_set_cgroup(struct machine_ctx *m, uint32_t upid, struct slice path)
{
    struct arg_list add = {0};
    add_cgroup(m, path, &add);
    process_merge_args(m, upid, &add);
    arg_list_free(&add);
}

/* A worker's name ends in the work queue that it last served, which says nothing about the thread. */
static struct slice worker_name(struct slice name)
{
    struct slice tail = slice_of(name.p + 8, name.len - 8);
    size_t plus = find_byte(tail, '+'), minus = find_byte(tail, '-');
    return slice_of(name.p, 8 + (plus < minus ? plus : minus));
}

/* of_kernel: pids of the kernel's threads, for their entries as threads. */
static void add_process(struct machine_ctx *m, struct slice bytes, struct u64map *of_kernel)
{
    struct process_message p;
    read_process(m, bytes, &p);
    if (!p.has_cmdline)
        return;
    if (p.has_ns)
        process_tracker_set_namespaced_process(m->processes, p.pid, p.inner_pid, p.ns_level);
    struct slice name = p.argv0;
    if (p.ppid == KTHREADD)
        m->im->failed |= !u64map_set(of_kernel, (uint64_t)p.pid, 1);
    if (p.ppid == KTHREADD && slice_starts(name, "kworker/")) {
        struct slice cut = worker_name(name);
        if (cut.len < name.len)
            p.cmdline = import_slice(m->im, cut);
        name = cut;
    }
    if (p.n_cmdline == 1) /* some programs write their whole command line over argv[0] */
        name.len = find_byte(name, ' ');
    uint32_t upid = process_tracker_set_metadata(m->processes, p.pid, p.ppid, import_slice(m->im, name), p.cmdline);
    if (p.is_comm)
        process_tracker_thread_name(m->processes, process_tracker_update_thread(m->processes, p.pid, p.pid), p.cmdline,
                                    THREAD_NAME_PROCESS_TREE);
    if (p.has_uid)
        process_tracker_set_uid(m->processes, upid, (uint32_t)p.uid);
    int64_t start;
    if (p.has_start &&
        clock_graph_to_trace_time(m->im->clocks, (struct clock_id){.id = CLOCK_ID_BOOTTIME, .machine = m->id},
                                  (int64_t)p.start_ns, &start) == 0)
        process_tracker_set_start_ts(m->processes, upid, start);
    set_args(m, &p, upid);
}

static void add_thread(struct packet *packet, struct slice bytes, const struct u64map *of_kernel)
{
    struct machine_ctx *m = packet->m;
    int32_t tid = 0, tgid = 0, inner = 0;
    uint32_t level = 0;
    bool has_name = false, has_ns = false;
    struct slice name = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case PROCESS_TREE_THREAD_TID:
            tid = pb_i32(&f);
            break;
        case PROCESS_TREE_THREAD_NAME:
            name = pb_bytes(&f);
            has_name = true;
            break;
        case PROCESS_TREE_THREAD_TGID:
            tgid = pb_i32(&f);
            break;
        case PROCESS_TREE_THREAD_NSTID:
            inner = pb_i32(&f);
            level = has_ns ? level + 1 : 0;
            has_ns = true;
            break;
        }
    }
    uint32_t utid = process_tracker_update_thread(m->processes, tid, tgid);
    if (tid == tgid && slice_starts(name, "kworker/") && u64map_get(of_kernel, (uint64_t)tid))
        name = worker_name(name);
    if (has_name)
        process_tracker_thread_name(m->processes, utid, import_slice(m->im, name), THREAD_NAME_PROCESS_TREE);
    if (has_ns && !process_tracker_set_namespaced_thread(m->processes, tgid, tid, inner, level))
        import_log(m, STAT_namespaced_thread_missing_process, packet->ts, -1, ARGSET_NONE);
}

void process_tree_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    struct u64map of_kernel = {0};
    while (pb_next(&c, &f))
        if (f.id == PROCESS_TREE_PROCESSES)
            add_process(p->m, pb_bytes(&f), &of_kernel);
    c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == PROCESS_TREE_THREADS)
            add_thread(p, pb_bytes(&f), &of_kernel);
    u64map_free(&of_kernel);
}

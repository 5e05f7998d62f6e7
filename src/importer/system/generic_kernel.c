/* The packets of kernels that are not Linux: task states, renames, the process tree, cpu frequencies. */
#include "importer/system/system_internal.h"

#include "base/by_id.h"
#include "base/saturate.h"

#include "wire/fields.h"

enum task_state {
    TASK_UNKNOWN,
    TASK_CREATED,
    TASK_RUNNABLE,
    TASK_RUNNING,
    TASK_INTERRUPTIBLE,
    TASK_UNINTERRUPTIBLE,
    TASK_STOPPED,
    TASK_DEAD,
    TASK_DESTROYED,
    TASK_STATES,
};

static const char *const state_names[TASK_STATES] = {NULL, "Created", "R", "Running", "S", "D", "T", "Z", "X"};

struct running { /* on one cpu; rows are + 1, 0: none */
    uint32_t utid;
    uint32_t slice;
};

struct task {           /* by utid */
    int64_t ts;         /* of the last state */
    uint32_t state_row; /* + 1 */
    uint32_t slice_row; /* + 1: the slice that ended at `ts` without a known state */
    uint32_t cpu;       /* where it runs, + 1 */
    uint8_t state;      /* the last one; TASK_UNKNOWN: none */
    bool preempted;     /* its last state came from another task taking its cpu: still to be told */
};

struct generic_kernel {
    BY_ID(struct running) cpus;
    BY_ID(struct task) tasks; /* by utid */
};

void generic_kernel_close(struct generic_kernel *g)
{
    if (!g)
        return;
    by_id_free(&g->cpus);
    by_id_free(&g->tasks);
    mem_free(g);
}

static struct generic_kernel *state_of(struct machine_ctx *m)
{
    if (!m->system->generic)
        m->system->generic = mem_zalloc(sizeof *m->system->generic);
    if (!m->system->generic)
        m->im->failed = true;
    return m->system->generic;
}

static void open_state(struct machine_ctx *m, struct task *t, int64_t ts, uint32_t utid, strid state, int64_t ucpu)
{
    if (t->state_row)
        ROW_SET(m->st, thread_state, dur, t->state_row - 1,
                saturating_sub(ts, ROW_GET(m->st, thread_state, ts, t->state_row - 1)));
    uint32_t row = thread_state_insert(m->st, &(struct thread_state_row){.ts = ts,
                                                                         .dur = -1,
                                                                         .utid = utid,
                                                                         .state = state,
                                                                         .io_wait = COL_NULL,
                                                                         .waker_utid = COL_NULL,
                                                                         .waker_id = COL_NULL,
                                                                         .irq_context = COL_NULL,
                                                                         .ucpu = ucpu});
    t->state_row = row + 1;
    t->ts = ts;
}

/* Ends what runs on a cpu. `state` 0: another task took it; the state may still be told at the same time. */
static void stop(struct machine_ctx *m, struct generic_kernel *g, struct running *r, int64_t ts, strid state)
{
    uint32_t row = r->slice - 1, utid = r->utid;
    r->slice = 0;
    ROW_SET(m->st, sched_slice, dur, row, saturating_sub(ts, ROW_GET(m->st, sched_slice, ts, row)));
    ROW_SET(m->st, sched_slice, end_state, row, state);
    struct task *t = by_id_make(&g->tasks, utid);
    open_state(m, t, ts, utid, state, COL_NULL);
    t->slice_row = row + 1;
    t->preempted = !state;
    t->state = TASK_UNKNOWN; /* until it is told */
    t->cpu = 0;
}

static void run(struct machine_ctx *m, struct generic_kernel *g, int64_t ts, uint32_t utid, uint32_t cpu, int32_t prio)
{
    struct running *r = by_id_make(&g->cpus, cpu);
    struct task *t = by_id_make(&g->tasks, utid);
    if (!r || !t) {
        m->im->failed = true;
        return;
    }
    if (r->slice)
        stop(m, g, r, ts, 0);
    uint32_t ucpu = machine_ucpu(m, cpu);
    uint32_t row = sched_slice_insert(
        m->st, &(struct sched_slice_row){.ts = ts, .dur = -1, .utid = utid, .priority = prio, .ucpu = ucpu});
    r->slice = row + 1;
    r->utid = utid;
    open_state(m, t, ts, utid, import_str(m->im, state_names[TASK_RUNNING]), ucpu);
    t->preempted = false;
    t->state = TASK_RUNNING;
    t->cpu = cpu + 1;
}

/* What an event says. */
struct task_event {
    uint32_t cpu;
    int64_t tid;
    uint64_t state;
    int32_t prio;
    strid comm;
};

static struct task_event read_task_event(const struct packet *p)
{
    struct task_event e = {.cpu = UINT32_MAX};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GENERIC_KERNEL_TASK_STATE_EVENT_CPU:
            e.cpu = pb_u32(&f);
            break;
        case GENERIC_KERNEL_TASK_STATE_EVENT_COMM:
            e.comm = import_slice(p->m->im, pb_bytes(&f));
            break;
        case GENERIC_KERNEL_TASK_STATE_EVENT_TID:
            e.tid = pb_i64(&f);
            break;
        case GENERIC_KERNEL_TASK_STATE_EVENT_STATE:
            e.state = pb_u64(&f);
            break;
        case GENERIC_KERNEL_TASK_STATE_EVENT_PRIO:
            e.prio = pb_i32(&f);
            break;
        }
    }
    return e;
}

/* Can this state not follow what is known of the thread? */
static bool out_of_order(struct machine_ctx *m, struct generic_kernel *g, const struct task_event *e)
{
    uint32_t utid = process_tracker_find_thread(m->processes, e->tid);
    if (utid == UTID_NONE)
        return false;
    if (e->state == TASK_CREATED)
        return ROW_GET(m->st, thread, end_ts, utid) == COL_NULL;
    const struct task *t = by_id_find(&g->tasks, utid);
    uint8_t last = t ? t->state : TASK_UNKNOWN;
    return (last == TASK_DEAD && e->state != TASK_DESTROYED) || (last == TASK_RUNNING && e->state == TASK_RUNNING);
}

void generic_task_state_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct generic_kernel *g = state_of(m);
    struct task_event e = read_task_event(p);
    if (!g || e.state == TASK_UNKNOWN || e.state >= TASK_STATES) {
        stats_add(&m->st->stats, m->id, STAT_task_state_invalid, 1);
        return;
    }
    if (out_of_order(m, g, &e)) {
        stats_add(&m->st->stats, m->id, STAT_generic_task_state_invalid_order, 1);
        return;
    }
    uint32_t utid = e.state == TASK_CREATED ? process_tracker_start_thread(m->processes, p->ts, e.tid)
                                            : process_tracker_thread(m->processes, e.tid);
    process_tracker_thread_name(m->processes, utid, e.comm, THREAD_NAME_FTRACE);
    if (e.state == TASK_DESTROYED)
        process_tracker_end_thread(m->processes, p->ts, e.tid);
    if (e.state == TASK_RUNNING) {
        if (e.cpu < CPUS_PER_MACHINE)
            run(m, g, p->ts, utid, e.cpu, e.prio);
        else
            stats_add(&m->st->stats, m->id, STAT_task_state_invalid, 1);
        return;
    }
    struct task *t = by_id_make(&g->tasks, utid);
    if (!t) {
        m->im->failed = true;
        return;
    }
    strid name = import_str(m->im, state_names[e.state]);
    if (t->cpu) { /* it ran until now */
        stop(m, g, by_id_make(&g->cpus, t->cpu - 1), p->ts, name);
    } else if (t->preempted && t->ts == p->ts) { /* why it lost its cpu comes after who took it */
        ROW_SET(m->st, thread_state, state, t->state_row - 1, name);
        ROW_SET(m->st, sched_slice, end_state, t->slice_row - 1, name);
        t->preempted = false;
    } else {
        if (t->state_row && t->ts == p->ts)
            stats_add(&m->st->stats, m->id, STAT_generic_task_state_invalid_order, 1);
        open_state(m, t, p->ts, utid, name, COL_NULL);
        t->preempted = false;
    }
    t->state = (uint8_t)e.state;
}

void generic_cpu_freq_parse(struct packet *p)
{
    uint32_t cpu = 0;
    int64_t hz = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_KERNEL_CPU_FREQUENCY_EVENT_CPU)
            cpu = pb_u32(&f);
        else if (f.id == GENERIC_KERNEL_CPU_FREQUENCY_EVENT_FREQ_HZ)
            hz = pb_i64(&f);
    }
    if (!machine_has_cpu(p->m, cpu))
        return;
    machine_ucpu(p->m, cpu);
    uint32_t track = track_intern_int(p->m->im->tracks, p->m->id, "cpu_frequency", TRACK_COUNTER, "cpu", cpu,
                                      import_str(p->m->im, "cpufreq"));
    counter_push(p->m->im, p->ts, track, (double)hz / 1000.0);
}

void generic_task_rename_parse(struct packet *p)
{
    int64_t tid = 0;
    strid comm = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_KERNEL_TASK_RENAME_EVENT_TID)
            tid = pb_i64(&f);
        else if (f.id == GENERIC_KERNEL_TASK_RENAME_EVENT_COMM)
            comm = import_slice(p->m->im, pb_bytes(&f));
    }
    uint32_t utid = process_tracker_thread(p->m->processes, tid);
    process_tracker_thread_name(p->m->processes, utid, comm, THREAD_NAME_FTRACE);
}

static void add_process(struct machine_ctx *m, struct slice bytes)
{
    int64_t pid = 0, ppid = 0;
    struct slice cmdline = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_KERNEL_PROCESS_TREE_PROCESS_PID)
            pid = pb_i64(&f);
        else if (f.id == GENERIC_KERNEL_PROCESS_TREE_PROCESS_PPID)
            ppid = pb_i64(&f);
        else if (f.id == GENERIC_KERNEL_PROCESS_TREE_PROCESS_CMDLINE)
            cmdline = pb_bytes(&f);
    }
    const uint8_t *space = cmdline.len ? memchr(cmdline.p, ' ', cmdline.len) : NULL;
    struct slice name = space ? slice_of(cmdline.p, (size_t)(space - cmdline.p)) : cmdline;
    process_tracker_set_metadata_alone(m->processes, pid, ppid, import_slice(m->im, name),
                                       import_slice(m->im, cmdline));
}

static void add_thread(struct machine_ctx *m, struct slice bytes)
{
    int64_t tid = 0, pid = 0;
    strid comm = 0;
    bool is_main = false, is_idle = false;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GENERIC_KERNEL_PROCESS_TREE_THREAD_TID:
            tid = pb_i64(&f);
            break;
        case GENERIC_KERNEL_PROCESS_TREE_THREAD_PID:
            pid = pb_i64(&f);
            break;
        case GENERIC_KERNEL_PROCESS_TREE_THREAD_COMM:
            comm = import_slice(m->im, pb_bytes(&f));
            break;
        case GENERIC_KERNEL_PROCESS_TREE_THREAD_IS_MAIN_THREAD:
            is_main = pb_bool(&f);
            break;
        case GENERIC_KERNEL_PROCESS_TREE_THREAD_IS_IDLE:
            is_idle = pb_bool(&f);
            break;
        }
    }
    uint32_t utid = process_tracker_update_thread(m->processes, tid, pid);
    process_tracker_thread_name(m->processes, utid, comm, THREAD_NAME_PROCESS_TREE);
    ROW_SET(m->st, thread, is_main_thread, utid, is_main);
    ROW_SET(m->st, thread, is_idle, utid, is_idle);
}

void generic_process_tree_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_KERNEL_PROCESS_TREE_PROCESSES)
            add_process(p->m, pb_bytes(&f));
        else if (f.id == GENERIC_KERNEL_PROCESS_TREE_THREADS)
            add_thread(p->m, pb_bytes(&f));
    }
}

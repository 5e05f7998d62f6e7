/* Events of tasks: switching, waking, birth, renaming, death, signals, probes. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

enum { CLONE_THREAD = 0x00010000 /* linux/sched.h */ };

/* Switches and wakings name the same few threads again and again. */
static inline strid comm_of(const struct ftrace_event *e, struct slice comm)
{
    uint64_t first, last;
    if (!comm.len || comm.len > FTRACE_COMM_BYTES)
        return import_slice(e->m->im, comm);
    bytes_ends(comm.p, comm.len, &first, &last);
    struct ftrace_comm *c =
        &e->f->recent_comms[hash_fold(first ^ comm.len, last * 2 + 1) >> 7 & ((1 << FTRACE_COMM_BITS) - 1)];
    if (c->first != first || c->last != last || c->len != comm.len)
        *c = (struct ftrace_comm){first, last, (uint32_t)comm.len, import_slice(e->m->im, comm)};
    return c->id;
}

struct switch_fields {
    struct slice prev_comm, next_comm;
    uint64_t prev_pid, prev_prio, prev_state, next_pid, next_prio;
};

/* As recorders write a switch: every field, in the order of the numbers. */
static inline bool switch_in_order(struct slice payload, struct switch_fields *s)
{
    struct pb_cursor c = pb_cursor(payload);
    return pb_take_bytes(&c, FTRACE_SCHED_SWITCH_PREV_COMM, &s->prev_comm) &&
           pb_take_varint(&c, FTRACE_SCHED_SWITCH_PREV_PID, &s->prev_pid) &&
           pb_take_varint(&c, FTRACE_SCHED_SWITCH_PREV_PRIO, &s->prev_prio) &&
           pb_take_varint(&c, FTRACE_SCHED_SWITCH_PREV_STATE, &s->prev_state) &&
           pb_take_bytes(&c, FTRACE_SCHED_SWITCH_NEXT_COMM, &s->next_comm) &&
           pb_take_varint(&c, FTRACE_SCHED_SWITCH_NEXT_PID, &s->next_pid) &&
           pb_take_varint(&c, FTRACE_SCHED_SWITCH_NEXT_PRIO, &s->next_prio) && c.p == c.end;
}

static __attribute__((noinline)) void switch_in_disorder(struct slice payload, struct switch_fields *s)
{
    struct pb_cursor cursor = pb_cursor(payload);
    struct pb_field f;
    *s = (struct switch_fields){.prev_comm = slice_of("", 0), .next_comm = slice_of("", 0)};
    while (pb_next(&cursor, &f)) {
        switch (f.id) {
        case FTRACE_SCHED_SWITCH_PREV_COMM:
            s->prev_comm = pb_bytes(&f);
            break;
        case FTRACE_SCHED_SWITCH_PREV_PID:
            s->prev_pid = pb_u64(&f);
            break;
        case FTRACE_SCHED_SWITCH_PREV_STATE:
            s->prev_state = pb_u64(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_COMM:
            s->next_comm = pb_bytes(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_PID:
            s->next_pid = pb_u64(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_PRIO:
            s->next_prio = pb_u64(&f);
            break;
        }
    }
}

void ftrace_sched_switch(const struct ftrace_event *e, struct ftrace_cpu *c)
{
    struct switch_fields s;
    if (!switch_in_order(e->payload, &s))
        switch_in_disorder(e->payload, &s);
    uint32_t prev =
        sched_tracker_switch(e->m->sched, e->cpu, e->ts, (int32_t)s.prev_pid, comm_of(e, s.prev_comm),
                             (int64_t)s.prev_state, (int32_t)s.next_pid, comm_of(e, s.next_comm), (int32_t)s.next_prio);
    if (!e->m->im->opt.no_ftrace_raw)
        ftrace_add_row(e, c, prev, 0);
}

/* The same for a waking; younger kernels have no field "success". */
static inline bool waking_in_order(struct slice payload, struct slice *comm, uint64_t *pid)
{
    struct pb_cursor c = pb_cursor(payload);
    uint64_t other;
    if (!pb_take_bytes(&c, FTRACE_SCHED_WAKING_COMM, comm) || !pb_take_varint(&c, FTRACE_SCHED_WAKING_PID, pid) ||
        !pb_take_varint(&c, FTRACE_SCHED_WAKING_PRIO, &other))
        return false;
    pb_take_varint(&c, FTRACE_SCHED_WAKING_SUCCESS, &other);
    return pb_take_varint(&c, FTRACE_SCHED_WAKING_TARGET_CPU, &other) && c.p == c.end;
}

static __attribute__((noinline)) void waking_in_disorder(struct slice payload, struct slice *comm, uint64_t *pid)
{
    struct pb_cursor cursor = pb_cursor(payload);
    struct pb_field f;
    *comm = slice_of("", 0);
    *pid = 0;
    while (pb_next(&cursor, &f)) {
        if (f.id == FTRACE_SCHED_WAKING_COMM)
            *comm = pb_bytes(&f);
        else if (f.id == FTRACE_SCHED_WAKING_PID)
            *pid = pb_u64(&f);
    }
}

static void sched_waking(const struct ftrace_event *e)
{
    struct slice comm;
    uint64_t pid;
    if (!waking_in_order(e->payload, &comm, &pid))
        waking_in_disorder(e->payload, &comm, &pid);
    uint32_t wakee = process_tracker_named_thread(e->m->processes, (int32_t)pid, comm_of(e, comm));
    sched_tracker_waking(e->m->sched, e->ts, wakee, event_utid(e), SCHED_FLAGS_UNKNOWN);
}

static void sched_process_free(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    process_tracker_free_thread(e->m->processes, e->ts, field_i32(&f, FTRACE_SCHED_PROCESS_FREE_PID));
}

static void sched_process_exit(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    process_tracker_exit_thread(e->m->processes, e->ts, field_i32(&f, FTRACE_SCHED_PROCESS_EXIT_PID));
}

static void sched_blocked_reason(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t utid = process_tracker_thread(e->m->processes, field_i32(&f, FTRACE_SCHED_BLOCKED_REASON_PID));
    sched_tracker_blocked_reason(e->m->sched, utid, field_u32(&f, FTRACE_SCHED_BLOCKED_REASON_IO_WAIT) != 0,
                                 ftrace_symbol_of(e->m->im, e->gen, field_u32(&f, FTRACE_SCHED_BLOCKED_REASON_CALLER)));
}

static void task_newtask(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct process_tracker *p = e->m->processes;
    int32_t tid = field_i32(&f, FTRACE_TASK_NEWTASK_PID);
    strid comm = field_str(e, &f, FTRACE_TASK_NEWTASK_COMM);
    if (tid == 0) /* init makes the idle tasks of other cpus while the kernel boots */
        return;
    uint32_t utid, parent;
    if (field_u64(&f, FTRACE_TASK_NEWTASK_CLONE_FLAGS) & CLONE_THREAD) {
        parent = event_utid(e);
        utid = process_tracker_start_thread(p, e->ts, tid);
        process_tracker_thread_name(p, utid, comm, THREAD_NAME_FTRACE);
        process_tracker_associate_threads(p, parent, utid);
    } else {
        utid = process_tracker_start_process(p, e->ts, (int32_t)e->pid, tid, comm, THREAD_NAME_FTRACE);
        parent = event_utid(e);
    }
    sched_tracker_new_task(e->m->sched, e->ts, utid, parent);
}

static void task_rename(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct process_tracker *p = e->m->processes;
    strid comm = field_str(e, &f, FTRACE_TASK_RENAME_NEWCOMM);
    uint32_t utid = process_tracker_named_thread(p, field_i32(&f, FTRACE_TASK_RENAME_PID), comm);
    process_tracker_main_thread_name(p, utid, comm);
}

static void signal_slice(const struct ftrace_event *e, uint32_t utid, const char *name, int32_t sig)
{
    struct small_args args = {0};
    small_args_add(e, &args, "signal.sig", ARG_INT, sig);
    ftrace_instant(e, ftrace_thread_track(e, utid), 0, ftrace_text(e, name), small_args_set(e, &args));
}

/* On the track of the thread that gets the signal. */
static void signal_generate(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    signal_slice(e, process_tracker_thread(e->m->processes, field_i32(&f, FTRACE_SIGNAL_GENERATE_PID)),
                 "signal_generate", field_i32(&f, FTRACE_SIGNAL_GENERATE_SIG));
}

static void signal_deliver(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    signal_slice(e, event_utid(e), "signal_deliver", field_i32(&f, FTRACE_SIGNAL_DELIVER_SIG));
}

static void mark_victim(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t utid = process_tracker_thread(e->m->processes, field_i32(&f, FTRACE_MARK_VICTIM_PID));
    ftrace_instant(e, ftrace_thread_track(e, utid), 0, ftrace_text(e, "mem.oom_kill"), ARGSET_NONE);
}

static void kprobe_event(const struct ftrace_event *e)
{
    enum { PROBE_BEGIN = 1, PROBE_END = 2, PROBE_INSTANT = 3 };
    struct fields f;
    fields_read(e->payload, &f);
    strid name = field_str(e, &f, FTRACE_KPROBE_EVENT_NAME);
    uint32_t track = ftrace_thread_track(e, event_utid(e));
    switch (field_u32(&f, FTRACE_KPROBE_EVENT_TYPE)) {
    case PROBE_BEGIN:
        ftrace_begin(e, track, 0, name, ARGSET_NONE);
        break;
    case PROBE_END:
        ftrace_end(e, track, 0, name, NULL);
        break;
    case PROBE_INSTANT:
        ftrace_instant(e, track, 0, name, ARGSET_NONE);
        break;
    }
}

/* The idle threads of all cpus share tid 0, so that their calls need tracks by cpu. */
static uint32_t funcgraph_track(const struct ftrace_event *e)
{
    if (e->pid != 0)
        return track_intern_int(e->m->im->tracks, e->m->id, "thread_funcgraph", TRACK_SLICE, "utid", event_utid(e),
                                ftrace_text(e, "Funcgraph"));
    return track_intern_int(e->m->im->tracks, e->m->id, "cpu_funcgraph", TRACK_SLICE, "cpu", e->cpu,
                            ftrace_name(e, "swapper%u -funcgraph", e->cpu));
}

static void funcgraph_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    strid name = ftrace_kernel_symbol(e, field_u64(&f, FTRACE_FUNCGRAPH_ENTRY_FUNC));
    ftrace_begin(e, funcgraph_track(e), 0, name, ARGSET_NONE);
}

static void funcgraph_exit(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    strid name = ftrace_kernel_symbol(e, field_u64(&f, FTRACE_FUNCGRAPH_EXIT_FUNC));
    ftrace_end(e, funcgraph_track(e), 0, name, NULL);
}

const struct ftrace_handler ftrace_handlers_task[] = {
    {FTRACE_EVENT_SCHED_BLOCKED_REASON, "sched_blocked_reason", sched_blocked_reason},
    {FTRACE_EVENT_SCHED_WAKING, "sched_waking", sched_waking},
    {FTRACE_EVENT_TASK_NEWTASK, "task_newtask", task_newtask},
    {FTRACE_EVENT_TASK_RENAME, "task_rename", task_rename},
    {FTRACE_EVENT_SCHED_PROCESS_EXIT, "sched_process_exit", sched_process_exit},
    {FTRACE_EVENT_SCHED_PROCESS_FREE, "sched_process_free", sched_process_free},
    {FTRACE_EVENT_SIGNAL_DELIVER, "signal_deliver", signal_deliver},
    {FTRACE_EVENT_SIGNAL_GENERATE, "signal_generate", signal_generate},
    {FTRACE_EVENT_SYS_ENTER, "sys_enter", syscalls_enter},
    {FTRACE_EVENT_SYS_EXIT, "sys_exit", syscalls_exit},
    {FTRACE_EVENT_MARK_VICTIM, "mark_victim", mark_victim},
    {FTRACE_EVENT_FUNCGRAPH_ENTRY, "funcgraph_entry", funcgraph_entry},
    {FTRACE_EVENT_FUNCGRAPH_EXIT, "funcgraph_exit", funcgraph_exit},
    {FTRACE_EVENT_KPROBE_EVENT, "kprobe_event", kprobe_event},
    {0, NULL, NULL},
};

/* Events of tasks: birth, renaming, death, signals, probes. Switching and waking are in handlers_sched.c. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

enum { CLONE_THREAD = 0x00010000 /* linux/sched.h */ };

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
    {FTRACE_EVENT_SCHED_WAKING, "sched_waking", ftrace_sched_waking},
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

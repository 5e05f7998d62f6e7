/* What LTTng events mean beyond a row of ftrace_event: scheduling, processes, interrupts, syscalls, frequencies and
 * idle states of cpus, block io; of user space what ust_programs.c and ust_logs.c make of it. */
#include "importer/ctf/ctf_internal.h"

#include "importer/track/irq_tracks.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <string.h>

static int64_t integer(const struct ctf_row *e, unsigned field)
{
    int64_t v = 0;
    ctf_row_int(e, field, &v);
    return v;
}

enum { PREV_COMM, PREV_TID, PREV_STATE, NEXT_COMM, NEXT_TID, NEXT_PRIO };
#define SWITCH_FIELDS                                                                                                  \
    {                                                                                                                  \
        "prev_comm", "prev_tid", "prev_state", "next_comm", "next_tid", "next_prio"                                    \
    }

static void sched_switch(const struct ctf_row *e)
{
    sched_tracker_switch(e->m->sched, e->cpu, e->ts, (int32_t)integer(e, PREV_TID), ctf_row_text(e, PREV_COMM),
                         integer(e, PREV_STATE), (int32_t)integer(e, NEXT_TID), ctf_row_text(e, NEXT_COMM),
                         (int32_t)integer(e, NEXT_PRIO));
}

enum { COMM, TID, PID, PPID };
#define TASK_FIELDS                                                                                                    \
    {                                                                                                                  \
        "comm", "tid"                                                                                                  \
    }

static void sched_waking(const struct ctf_row *e)
{
    uint32_t wakee = process_tracker_named_thread(e->m->processes, integer(e, TID), ctf_row_text(e, COMM));
    sched_tracker_waking(e->m->sched, e->ts, wakee, e->utid, SCHED_FLAGS_UNKNOWN);
}

enum { CHILD_COMM, CHILD_TID, CHILD_PID, PARENT_TID };
#define FORK_FIELDS                                                                                                    \
    {                                                                                                                  \
        "child_comm", "child_tid", "child_pid", "parent_tid"                                                           \
    }

static void sched_process_fork(const struct ctf_row *e)
{
    struct process_tracker *t = e->m->processes;
    int64_t tid = integer(e, CHILD_TID), tgid = integer(e, CHILD_PID), parent = integer(e, PARENT_TID);
    uint32_t parent_utid = process_tracker_thread(t, parent), utid;
    if (tid == tgid) {
        utid = process_tracker_start_process(t, e->ts, parent, tid, ctf_row_text(e, CHILD_COMM), THREAD_NAME_FTRACE);
    } else {
        utid = process_tracker_start_thread(t, e->ts, tid);
        process_tracker_thread_name(t, utid, ctf_row_text(e, CHILD_COMM), THREAD_NAME_FTRACE);
        process_tracker_associate_threads(t, utid, parent_utid);
    }
    sched_tracker_new_task(e->m->sched, e->ts, utid, parent_utid);
}

static void sched_process_free(const struct ctf_row *e)
{
    process_tracker_free_thread(e->m->processes, e->ts, integer(e, TID));
}

static void sched_process_exit(const struct ctf_row *e)
{
    process_tracker_exit_thread(e->m->processes, e->ts, integer(e, TID));
}

#define STATEDUMP_FIELDS                                                                                               \
    {                                                                                                                  \
        "name", "tid", "pid", "ppid"                                                                                   \
    }

/* The state dump at the start: one event a thread. */
static void statedump_process(const struct ctf_row *e)
{
    struct process_tracker *t = e->m->processes;
    int64_t tid = integer(e, TID), pid = integer(e, PID);
    strid name = ctf_row_text(e, COMM);
    if (tid == pid)
        process_tracker_set_metadata(t, pid, integer(e, PPID), name, 0);
    uint32_t utid = process_tracker_update_thread(t, tid, pid);
    process_tracker_thread_name(t, utid, name, THREAD_NAME_PROCESS_TREE);
}

enum { FILENAME, EXEC_TID };

/* The kernel names a task by the last part of what it executes, up to 15 bytes. */
static void sched_process_exec(const struct ctf_row *e)
{
    enum { COMM_MAX = 15 };
    struct slice path = strpool_view(&e->m->st->strings, ctf_row_text(e, FILENAME));
    const uint8_t *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
    struct slice name = slash ? slice_of(slash + 1, (size_t)(path.p + path.len - slash - 1)) : path;
    name.len = name.len < COMM_MAX ? name.len : COMM_MAX;
    if (name.len)
        process_tracker_named_thread(e->m->processes, integer(e, EXEC_TID), import_slice(e->m->im, name));
}

enum { IRQ, ACTION };

/* What the handlers of an interrupt are called, as /proc/interrupts has it. */
static void statedump_interrupt(const struct ctf_row *e)
{
    linux_interrupt_mapping_insert(e->m->st, &(struct linux_interrupt_mapping_row){.irq_id = (uint32_t)integer(e, IRQ),
                                                                                   .name = ctf_row_text(e, ACTION),
                                                                                   .machine_id = e->m->id});
}

enum { TOPOLOGY_CPU, MODEL_NAME };

static void statedump_cpu(const struct ctf_row *e)
{
    int64_t cpu = integer(e, TOPOLOGY_CPU);
    strid model = ctf_row_text(e, MODEL_NAME);
    if (model && cpu >= 0 && machine_has_cpu(e->m, (uint64_t)cpu))
        ROW_SET(e->m->st, cpu, processor, machine_ucpu(e->m, (uint32_t)cpu), model);
}

static void irq_begin(const struct ctf_row *e, enum irq_track_kind kind, strid name)
{
    slice_begin(e->m->im->slices, e->m->id, e->ts, irq_track(e->m, kind, e->cpu), import_str(e->m->im, "irq"), name,
                ARGSET_NONE);
}

static void irq_end(const struct ctf_row *e, enum irq_track_kind kind, const struct arg_list *args)
{
    slice_end(e->m->im->slices, e->m->id, e->ts, irq_track(e->m, kind, e->cpu), import_str(e->m->im, "irq"), 0, args);
}

static void irq_entry(const struct ctf_row *e)
{
    const struct ctf_item *name = ctf_item_find(e->fields, "name");
    irq_begin(e, IRQ_TRACK, irq_slice_name(e->m, name && name->kind == CTF_ITEM_TEXT ? name->text : slice_of("", 0)));
}

enum { FIRST }; /* of handlers with one field */

static void irq_exit(const struct ctf_row *e)
{
    struct args *a = &e->m->st->args;
    struct arg_list args = {0};
    strid key = strpool_intern_str(a->strings, "ret");
    arg_list_add(a, &args, key, key, ARG_STRING,
                 strpool_intern_str(a->strings, integer(e, FIRST) == 1 ? "handled" : "unhandled"));
    irq_end(e, IRQ_TRACK, &args);
    arg_list_free(&args);
}

static void softirq_entry(const struct ctf_row *e)
{
    const char *name = softirq_name((uint64_t)integer(e, FIRST));
    if (name)
        irq_begin(e, SOFTIRQ_TRACK, import_str(e->m->im, name));
}

static void softirq_exit(const struct ctf_row *e)
{
    struct arg_list args = {0};
    arg_list_int(&e->m->st->args, &args, "vec", integer(e, FIRST));
    irq_end(e, SOFTIRQ_TRACK, &args);
    arg_list_free(&args);
}

enum { STATE, CPU_ID };
#define CPU_FIELDS                                                                                                     \
    {                                                                                                                  \
        "state", "cpu_id"                                                                                              \
    }

static void cpu_counter(const struct ctf_row *e, const char *type, const char *name)
{
    int64_t cpu, state;
    if (!ctf_row_int(e, CPU_ID, &cpu) || !ctf_row_int(e, STATE, &state) || cpu < 0 ||
        !machine_has_cpu(e->m, (uint64_t)cpu))
        return;
    machine_ucpu(e->m, (uint32_t)cpu);
    uint32_t track =
        track_intern_int(e->m->im->tracks, e->m->id, type, TRACK_COUNTER, "cpu", cpu, import_str(e->m->im, name));
    counter_push(e->m->im, e->ts, track, (double)(uint32_t)state);
}

static void power_cpu_frequency(const struct ctf_row *e)
{
    cpu_counter(e, "cpu_frequency", "cpufreq");
}

/* The state 4294967295 says that the cpu has left its idle state. */
static void power_cpu_idle(const struct ctf_row *e)
{
    cpu_counter(e, "cpu_idle", "cpuidle");
}

enum { DEV, SECTOR };
#define BLOCK_FIELDS                                                                                                   \
    {                                                                                                                  \
        "dev", "sector"                                                                                                \
    }

/* The slices of ftrace's block_io_start and block_io_done, on the same track. False when the event has no device. */
static bool block_io(const struct ctf_row *e, uint32_t *track, struct arg_list *args)
{
    int64_t dev, sector;
    if (!ctf_row_int(e, DEV, &dev))
        return false;
    *track = track_intern_int(e->m->im->tracks, e->m->id, "block_io", TRACK_COUNTER, "block_device", dev, 0);
    if (ctf_row_int(e, SECTOR, &sector))
        arg_list_int(&e->m->st->args, args, "sector", sector);
    return true;
}

static void block_io_start(const struct ctf_row *e)
{
    struct arg_list args = {0};
    uint32_t track;
    if (block_io(e, &track, &args))
        slice_begin(e->m->im->slices, e->m->id, e->ts, track, 0, import_str(e->m->im, "block_io"),
                    args_intern(&e->m->st->args, args.p, args.n));
    arg_list_free(&args);
}

static void block_io_done(const struct ctf_row *e)
{
    struct arg_list args = {0};
    uint32_t track;
    if (block_io(e, &track, &args))
        slice_end(e->m->im->slices, e->m->id, e->ts, track, 0, import_str(e->m->im, "block_io"), &args);
    arg_list_free(&args);
}

/* In order: the first row that fits. LTTng 2.1 called system calls sys_* and exit_syscall, later ones syscall_entry_*.
 * A wakeup follows its waking; that of a new task follows its fork, and has no waking. */
static const struct lttng_handler handlers[] = {
    {.event = "sched_switch", .handle = sched_switch, .fields = SWITCH_FIELDS},
    {.event = "sched_waking", .handle = sched_waking, .fields = TASK_FIELDS},
    {.event = "sched_wakeup", .handle = sched_waking, .fields = TASK_FIELDS, .unless = "sched_waking"},
    {.event = "sched_wakeup_new", .handle = sched_waking, .fields = TASK_FIELDS, .unless = "sched_process_fork"},
    {.event = "sched_process_fork", .handle = sched_process_fork, .fields = FORK_FIELDS},
    {.event = "sched_process_exit", .handle = sched_process_exit, .fields = TASK_FIELDS},
    {.event = "sched_process_free", .handle = sched_process_free, .fields = TASK_FIELDS},
    {.event = "sched_process_exec", .handle = sched_process_exec, .fields = {"filename", "tid"}},
    {.event = "lttng_statedump_interrupt", .handle = statedump_interrupt, .fields = {"irq", "action"}},
    {.event = "lttng_statedump_cpu_topology", .handle = statedump_cpu, .fields = {"cpu_id", "model_name"}},
    {.event = "lttng_statedump_process_state", .handle = statedump_process, .fields = STATEDUMP_FIELDS},
    {.event = "irq_handler_entry", .handle = irq_entry, .items = true},
    {.event = "irq_handler_exit", .handle = irq_exit, .fields = {"ret"}},
    {.event = "irq_softirq_entry", .handle = softirq_entry, .fields = {"vec"}},
    {.event = "irq_softirq_exit", .handle = softirq_exit, .fields = {"vec"}},
    {.event = "softirq_entry", .handle = softirq_entry, .fields = {"vec"}},
    {.event = "softirq_exit", .handle = softirq_exit, .fields = {"vec"}},
    {.event = "power_cpu_frequency", .handle = power_cpu_frequency, .fields = CPU_FIELDS},
    {.event = "power_cpu_idle", .handle = power_cpu_idle, .fields = CPU_FIELDS},
    {.event = "block_io_start", .handle = block_io_start, .fields = BLOCK_FIELDS},
    {.event = "block_io_done", .handle = block_io_done, .fields = BLOCK_FIELDS},
    {.event = "lttng_ust_statedump:bin_info", .handle = ust_program, .items = true},
    {.event = "lttng_ust_statedump:build_id", .handle = ust_build_id, .items = true},
    {.event = "lttng_ust_statedump:procname", .handle = ust_process_name, .items = true},
    {.event = "lttng_ust_lib:load", .handle = ust_program, .items = true},
    {.event = "lttng_ust_lib:build_id", .handle = ust_build_id, .items = true},
    {.event = "lttng_ust_tracef:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "lttng_ust_tracelog:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "lttng_jul:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "lttng_log4j:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "lttng_log4j2:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "lttng_python:", .handle = ust_log, .prefix = true, .items = true},
    {.event = "exit_syscall", .handle = lttng_call_end, .fields = {"ret"}, .of_thread = true},
    {.event = "syscall_entry_", .handle = lttng_call_begin, .prefix = true, .of_thread = true},
    {.event = "syscall_exit_", .handle = lttng_call_end, .fields = {"ret"}, .prefix = true, .of_thread = true},
    {.event = "compat_syscall_entry_", .handle = lttng_call_begin, .prefix = true, .of_thread = true},
    {.event = "compat_syscall_exit_", .handle = lttng_call_end, .fields = {"ret"}, .prefix = true, .of_thread = true},
    {.event = "sys_", .handle = lttng_call_begin, .prefix = true, .of_thread = true},
};

const struct lttng_handler *lttng_handler_of(const char *event_name)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        const struct lttng_handler *h = &handlers[i];
        if (h->prefix ? strncmp(event_name, h->event, strlen(h->event)) == 0 : strcmp(event_name, h->event) == 0)
            return h;
    }
    return NULL;
}

strid lttng_slice_name(struct importer *im, const struct lttng_handler *h, const char *event_name)
{
    const char *rest = h->prefix ? event_name + strlen(h->event) : "";
    return *rest ? strpool_printf(&im->st->strings, "sys_%s", rest) : 0;
}

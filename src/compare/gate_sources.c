/* What the functions of rules are of. Each has the columns process, pid, cgroup, container, unit, thread, tid, machine,
 * name, ts, dur, value. */
#include "compare/gate_rules.h"

#define GROUPS(args)                                                                                                   \
    ", extract_arg(" args ", 'process.cgroup') as cgroup, extract_arg(" args ", 'container.id') as container, "        \
    "extract_arg(" args ", 'systemd.unit') as unit"
#define WHO                                                                                                            \
    "p.name as process, p.pid as pid, t.name as thread, t.tid as tid, coalesce(m.name, 'host') as machine" GROUPS(     \
        "p.arg_set_id")
#define EITHER GROUPS("coalesce(p.arg_set_id, q.arg_set_id)")
#define OF_THREAD                                                                                                      \
    " join thread t on t.id = x.utid left join process p on p.id = t.upid left join machine m on m.id = t.machine_id "
#define STATES(condition)                                                                                              \
    "select x.dur as value, x.ts as ts, x.dur as dur, x.state as name, " WHO " from thread_state x" OF_THREAD          \
    "where x.dur >= 0 and " condition
#define SLICES(condition)                                                                                              \
    "select x.dur as value, x.ts as ts, x.dur as dur, x.name as name, x.category as category, "                        \
    "coalesce(p.name, q.name) as process, coalesce(p.pid, q.pid) as pid, t.name as thread, t.tid as tid, "             \
    "coalesce(m.name, 'host') as machine" EITHER                                                                       \
    " from slice x join track k on k.id = x.track_id left join thread_track tt on "                                    \
    "tt.id = k.id left join thread t on t.id = tt.utid left join process p on p.id = t.upid left join process_track "  \
    "pt on pt.id = k.id left join process q on q.id = pt.upid left join machine m on m.id = k.machine_id where "       \
    "x.dur >= 0 and " condition

const struct gate_source gate_sources[] = {
    {"sched_latency", STATES("x.state = 'R'")},
    {"runnable", STATES("x.state in ('R', 'R+')")},
    {"uninterruptible", STATES("x.state glob 'D*'")},
    {"sleep", STATES("x.state = 'S'")},
    {"cpu_time", "select x.dur as value, x.ts as ts, x.dur as dur, t.name as name, " WHO " from sched x" OF_THREAD
                 "where x.dur >= 0 and not t.is_idle"},
    {"slice", SLICES("x.name not glob 'sys_*'")},
    {"syscall", SLICES("x.name glob 'sys_*'")},
    {"irq", SLICES("k.type in ('cpu_irq', 'cpu_softirq', 'cpu_ipi')")},
    {"counter",
     "select c.value as value, c.ts as ts, 0 as dur, k.name as name, coalesce(p.name, q.name) as process, "
     "coalesce(p.pid, q.pid) as pid, t.name as thread, t.tid as tid, coalesce(m.name, 'host') as machine" EITHER
     " from counter "
     "c join track k on k.id = c.track_id left join thread_counter_track tt on tt.id = k.id left join thread t on t.id "
     "= tt.utid left join process p on p.id = t.upid left join process_counter_track pt on pt.id = k.id left join "
     "process q on q.id = pt.upid left join machine m on m.id = k.machine_id where true"},
};
const size_t n_gate_sources = sizeof gate_sources / sizeof *gate_sources;

/* The measures: which rows count, and what a change of them says.
 *
 * A cause stands before what follows from it: a lowered frequency before the processor time that everything needs then,
 * more processor time of one process before the waiting of others, a system call that takes longer before the sleep in
 * which its thread spends the time. System calls that wait for work by nature come last, as sleep does. */
#include "compare/measures.h"

/* Calls in which a thread waits until there is something to do. */
#define IDLE_CALLS                                                                                                     \
    "('sys_epoll_wait', 'sys_epoll_pwait', 'sys_epoll_pwait2', 'sys_poll', 'sys_ppoll', 'sys_select', "                \
    "'sys_pselect6', 'sys_nanosleep', 'sys_clock_nanosleep', 'sys_pause', 'sys_wait4', 'sys_waitid', "                 \
    "'sys_rt_sigtimedwait', 'sys_rt_sigsuspend', 'sys_io_getevents', 'sys_io_pgetevents', 'sys_accept', "              \
    "'sys_accept4', 'sys_restart_syscall')"

#define STATES(condition, name) "select ts, dur, null, utid, null, null, " name " from thread_state where " condition

#define SLICES(condition)                                                                                              \
    "select s.ts, s.dur, null, k.utid, p.upid, t.machine_id, s.name from slice s join track t on t.id = s.track_id "   \
    "left join thread_track k on k.id = s.track_id left join process_track p on p.id = s.track_id where s.dur >= 0 "   \
    "and " condition

#define IRQS "t.type in ('cpu_irq', 'cpu_softirq', 'cpu_ipi')"

/* Counters that the kernel only adds to. */
#define GROWING                                                                                                        \
    "(t.type in ('cpustat', 'num_forks', 'num_irq', 'num_softirq', 'num_irq_total', 'num_softirq_total', 'psi', "      \
    "'diskstat', 'net_receive', 'net_transmit', 'network_packets') or (t.type = 'vmstat' and t.name not glob 'nr_*' "  \
    "and t.name not glob '*.nr_*'))"

#define COUNTERS(condition)                                                                                            \
    "select c.ts, null, c.value, k.utid, p.upid, t.machine_id, t.name, c.track_id from counter c join track t on "     \
    "t.id = c.track_id left join thread_counter_track k on k.id = t.id left join process_counter_track p on p.id = "   \
    "t.id where " condition " order by c.track_id, c.ts"

#define ANY_SLICE   "select 1 from slice limit 1"
#define ANY_COUNTER "select 1 from counter limit 1"
#define ANY_STATE   "select 1 from thread_state limit 1"

const struct measure_source measure_sources[] = {
    {"cpufreq",
     ANY_COUNTER,
     COUNTERS("t.type = 'cpu_frequency'"),
     false,
     {{"CPU frequency", "kHz", MEASURE_LEVEL, true, false, 0.5, 8}}},
    {"cpu",
     ANY_STATE,
     "select ts, dur, null, utid, null, null, null from sched",
     true,
     {{"CPU time", "ms/s", MEASURE_SHARE, false, false, 4, 0.2}}},
    {"runnable",
     ANY_STATE,
     STATES("state in ('R', 'R+')", "null"),
     true,
     {{"runnable, not running", "ms/s", MEASURE_SHARE, false, false, 0.4, 0.1}}},
    {"latency",
     ANY_STATE,
     STATES("state = 'R'", "null"),
     true,
     {{"wakeup latency", "us", MEASURE_DURATION, false, false, 0.35, 0.1}}},
    {"uninterruptible",
     ANY_STATE,
     STATES("state glob 'D*'", "null"),
     true,
     {{"uninterruptible sleep", "ms/s", MEASURE_SHARE, false, false, 1, 0.2}}},
    {"sleep",
     ANY_STATE,
     STATES("state = 'S'", "null"),
     true,
     {{"sleep", "ms/s", MEASURE_SHARE, false, true, 0.25, 0.05}}},
    {"syscall",
     ANY_SLICE,
     SLICES("s.name glob 'sys_*' and s.name not in " IDLE_CALLS),
     true,
     {{"time in system call", "ms/s", MEASURE_SHARE, false, false, 2, 0.2},
      {"system calls", "1/s", MEASURE_RATE, false, false, 0.05, 0.02},
      {"system call takes", "us", MEASURE_DURATION, false, false, 1.2, 0.1}}},
    {"idle syscall",
     ANY_SLICE,
     SLICES("s.name in " IDLE_CALLS),
     true,
     {{"waiting in system call", "ms/s", MEASURE_SHARE, false, false, 0.1, 0.05},
      {"system calls", "1/s", MEASURE_RATE, false, false, 0.02, 0.02}}},
    {"irq",
     ANY_SLICE,
     SLICES(IRQS),
     false,
     {{"interrupt time", "ms/s", MEASURE_SHARE, false, false, 4, 0.2},
      {"interrupts", "1/s", MEASURE_RATE, false, false, 0.05, 0.02},
      {"interrupt takes", "us", MEASURE_DURATION, false, false, 2, 0.1}}},
    {"slice",
     ANY_SLICE,
     SLICES("s.name not glob 'sys_*' and not " IRQS),
     false,
     {{"time in slice", "ms/s", MEASURE_SHARE, false, false, 0.7, 0.1},
      {"slices", "1/s", MEASURE_RATE, false, false, 0.05, 0.02},
      {"slice takes", "us", MEASURE_DURATION, false, false, 0.6, 0.1}}},
    {"counter",
     ANY_COUNTER,
     COUNTERS("t.type != 'cpu_frequency' and not " GROWING),
     false,
     {{"counter", "", MEASURE_LEVEL, false, false, 1, 1}}},
    {"growth", ANY_COUNTER, COUNTERS(GROWING), false, {{"counter grows", "1/s", MEASURE_GROWTH, false, false, 1, 1}}},
};
_Static_assert(sizeof measure_sources / sizeof *measure_sources <= 32, "struct run has a bit for each");
const size_t n_measure_sources = sizeof measure_sources / sizeof *measure_sources;

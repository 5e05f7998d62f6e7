/* The parts of a report. Sums are made per thread or name first: those run over columns. */
#include "shell/compare/report_sections.h"

#define STEPS     "100"
#define WHO       "coalesce(p.name, t.name) as process, t.name as thread"
#define OF_THREAD "join thread t using (utid) left join process p using (upid)"
/* What the durations of a group of rows are like, in microseconds and milliseconds. */
#define DURATIONS                                                                                                      \
    "count(*) as count, sum(s.dur) / 1e6 as \"total ms\", percentile(s.dur, 50) / 1e3 as \"median us\", "              \
    "percentile(s.dur, 99) / 1e3 as \"p99 us\", max(s.dur) / 1e3 as \"longest us\" "

const struct report_section report_sections[] = {
    {"Machines", "What was recorded, and how well the clocks are known.", "No machine is known.",
     "select coalesce(m.name, iif(m.id = 0, 'host', 'machine ' || m.id)) as machine, coalesce(m.sysname || ' ' || "
     "m.release, '') as system, m.arch, m.num_cpus as CPUs, (select count(*) from thread t where t.machine_id = m.id "
     "and not t.is_idle) as threads, (select count(*) from stats where machine_id = m.id and value > 0 and "
#include "shell/compare/lost.def"
     ") as losses, (select (end_ts - start_ts) / 1e9 from trace_bounds) as seconds, "
     "iif(m.id = 0, 0, max(clock_error_ns((select start_ts from trace_bounds), m.id), clock_error_ns((select end_ts "
     "from trace_bounds), m.id)) / 1e3) as \"clock error us\" from machine m order by m.id",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"Lost data and errors", "What is missing in the recording; tp_shell check says how to avoid it.",
     "Nothing was lost, and no errors were met.",
     "select iif("
#include "shell/compare/lost.def"
     ", 'data_loss', severity) as severity, name, idx as \"index\", machine_id as machine, value, description from "
     "stats where ("
#include "shell/compare/lost.def"
     " or severity = 'error') and value > 0 order by 1, name, machine_id, idx limit 50",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"CPU use over time", "How many CPUs each process used. A stretch of running counts where it begins.",
     "The scheduler was not recorded (ftrace event sched/sched_switch).",
     "select step, coalesce(p.name, t.name) as process, sum(d) * 1.0 / (select max(1, (end_ts - start_ts) / " STEPS
     " + 1) from trace_bounds) as CPUs from (select (ts - (select start_ts from trace_bounds)) / (select max(1, "
     "(end_ts - start_ts) / " STEPS " + 1) from trace_bounds) as step, utid, sum(max(dur, 0)) as d from sched group by "
     "1, 2) " OF_THREAD " where not t.is_idle group by 1, 2 order by 1",
     PICTURE_AREAS, 2, "CPUs", NULL, 0},
    {"CPU time by process", "Percent are of one CPU.", "The scheduler was not recorded.",
     "select coalesce(p.name, t.name) as process, sum(d) / 1e6 as \"CPU ms\", sum(d) * 100.0 / (select max(1, end_ts - "
     "start_ts) from trace_bounds) as \"%\", sum(n) as runs, count(*) as threads from (select utid, sum(max(dur, 0)) "
     "as "
     "d, count(*) as n from sched group by 1) " OF_THREAD " where not t.is_idle group by 1 order by 2 desc limit 25",
     PICTURE_BARS, 1, "ms", NULL, 0},
    {"CPU time by control group",
     "Containers and units of systemd: how long their processes ran, and waited for a CPU. Percent are of one CPU.",
     "The control groups of processes were not recorded (Meridian's linux.process_stats).",
     "include perfetto module linux.containers; select coalesce(m.name, iif(c.machine_id > 0, 'machine ' || "
     "c.machine_id, 'host')) as machine, c.group_name as \"group\", c.cgroup as path, c.cpu_dur / 1e6 as \"CPU ms\", "
     "c.cpu_dur * 100.0 / (select max(1, end_ts - start_ts) from trace_bounds) as \"%\", c.runnable_dur / 1e6 as "
     "\"waited ms\", c.process_count as processes from linux_cgroup_cpu c left join machine m on m.id = c.machine_id "
     "order by 4 desc, 3 limit 25",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"How long threads wait for a CPU", "From the wakeup until the thread runs.", "No wakeup was recorded.",
     "select printf('%d to %d us', iif(step = 0, 0, 1 << (step - 1)), 1 << step) as latency, n as wakeups from (select "
     "iif(dur < 1000, 0, cast(log2(dur / 1000) as int) + 1) as step, count(*) as n from thread_state where state = 'R' "
     "and dur >= 0 group by 1) order by step",
     PICTURE_BARS, 1, "wakeups", NULL, 0},
    {"Run queue latency by thread", "The threads that wait longest for a CPU.", "No wakeup was recorded.",
     "select " WHO ", n as wakeups, p50 / 1e3 as \"median us\", p99 / 1e3 as \"p99 us\", longest / 1e3 as \"longest "
     "us\" from (select utid, count(*) as n, percentile(dur, 50) as p50, percentile(dur, 99) as p99, max(dur) as "
     "longest from thread_state where state = 'R' and dur >= 0 group by utid) " OF_THREAD " order by p99 desc limit 25",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"Waits, and who ended them",
     "Uninterruptible sleep (D) first, then sleep (S). The waker is the thread that woke it most often.",
     "No wait was recorded.",
     "with wakes as (select utid, waker_utid, count(*) as n from thread_state where state = 'R' and waker_utid is not "
     "null group by 1, 2), most as (select utid, waker_utid, max(n) as n from wakes group by utid) select " WHO
     ", x.state, x.n as waits, x.total / 1e6 as \"total ms\", x.longest / 1e6 as \"longest ms\", coalesce(wp.name, "
     "wt.name) as \"waker's process\", wt.name as waker, most.n as \"of its wakeups\" from (select utid, state, "
     "count(*) as n, sum(dur) as total, max(dur) as longest from thread_state where state in ('S', 'D', 'DK') and dur "
     ">= 0 group by 1, 2) x " OF_THREAD " left join most using (utid) left join thread wt on wt.utid = most.waker_utid "
     "left join process wp on wp.upid = wt.upid order by x.state = 'S', x.total desc limit 25",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"System calls", "By name, over all threads.", "System calls were not recorded (probe syscalls).",
     "select s.name, " DURATIONS
     "from slice s where s.name glob 'sys_*' and s.dur >= 0 group by s.name order by 3 desc "
     "limit 25",
     PICTURE_BARS, 2, "ms", NULL, 0},
    {"Interrupts", "Handlers of hardware interrupts and of soft ones.",
     "Interrupts were not recorded (ftrace group irq).",
     "select s.name, " DURATIONS "from slice s join track t on t.id = s.track_id where t.type in ('cpu_irq', "
     "'cpu_softirq') and s.dur >= 0 group by s.name order by 3 desc limit 25",
     PICTURE_BARS, 2, "ms", NULL, 0},
    {"Memory by process", "The largest values that were read.", "The memory of processes was not recorded.",
     "select p.name as process, max(iif(t.name = 'mem.rss', c.value, null)) / 1048576 as \"RSS MiB\", max(iif(t.name = "
     "'mem.rss.anon', c.value, null)) / 1048576 as \"anonymous MiB\", max(iif(t.name = 'mem.swap', c.value, null)) / "
     "1048576 as \"swap MiB\" from counter c join process_counter_track t on t.id = c.track_id join process p using "
     "(upid) where t.name in ('mem.rss', 'mem.rss.anon', 'mem.swap') group by 1 order by 2 desc limit 25",
     PICTURE_BARS, 1, "MiB", NULL, 0},
    {"Disk and network", "What counters gained, and requests to block devices.",
     "Neither disks nor the network were recorded.",
     "select t.name, count(*) as readings, max(c.value) - min(c.value) as gained, (max(c.value) - min(c.value)) * 1e9 "
     "/ "
     "(select max(1, end_ts - start_ts) from trace_bounds) as \"a second\" from counter c join track t on t.id = "
     "c.track_id where t.type in ('diskstat', 'net_receive', 'net_transmit') group by t.id union all select 'requests: "
     "' || s.name, count(*), sum(s.dur) / 1e6, avg(s.dur) / 1e6 from slice s join track t on t.id = s.track_id where "
     "t.type = 'block_io' and s.dur >= 0 group by s.name order by 3 desc limit 25",
     PICTURE_NONE, 0, NULL, NULL, 0},
    {"Slices", "What programs and the kernel marked, by name.", "No slices were recorded.",
     "select s.name, " DURATIONS "from slice s join track t on t.id = s.track_id where t.type not in ('cpu_irq', "
     "'cpu_softirq') and s.name not glob 'sys_*' and s.dur >= 0 group by s.name order by 3 desc limit 25",
     PICTURE_BARS, 2, "ms", NULL, 0},
    {"Critical path of the longest slices",
     "What the three longest slices of threads waited for, over the machines: the threads on the path, and for how "
     "long.",
     "There is no slice of a thread, or nothing of the scheduler.",
     "include perfetto module machines.critical_path; with longest as (select s.id, s.name, s.ts, s.dur, k.utid from "
     "slice s join thread_track k on k.id = s.track_id where s.dur > 0 order by s.dur desc limit 3) select l.name as "
     "slice, l.dur / 1e3 as \"slice us\", coalesce(m.name, iif(c.machine_id > 0, 'machine ' || c.machine_id, "
     "iif(c.utid is null, '', 'host'))) as machine, coalesce(c.process_name, c.thread_name, 'packets on their way') as "
     "process, c.thread_name as thread, sum(c.dur) / 1e3 as "
     "\"on the path us\", count(*) as stretches from longest l join machine_critical_path(l.utid, l.ts, l.dur) c left "
     "join machine m on m.id = c.machine_id group by l.id, c.machine_id, c.utid order by l.dur desc, l.id, 6 desc "
     "limit "
     "30",
     PICTURE_NONE, 0, NULL, "select count(*) from sched", 200000},
};
const size_t n_report_sections = sizeof report_sections / sizeof *report_sections;

"""linux.off_cpu on a recording without samples: kinds of waits by the wait channel, and locks by the calls of futex()."""
import csv
import io
import xml.etree.ElementTree

import harness

MS = 1000000
APP, HOLDER, READER = 101, 102, 103
LOCK, OTHER = 0x7f0000001000, 0x7f0000002000
KERNEL_LOCK = 0xffff888012345678
CHANNELS = {1: "futex_wait_queue", 2: "rwsem_down_read_slowpath", 3: "pipe_read"}


class Events:
    def __init__(self):
        self.out = []

    def add(self, at, pid, text):
        self.out.append(f"event {{ timestamp: {at * MS} pid: {pid} {text} }}")

    def switch(self, at, prev, state, then):
        self.add(at, prev, f'sched_switch {{ prev_comm: "p{prev}" prev_pid: {prev} prev_prio: 120 prev_state: {state} next_comm: "p{then}" '
                           f"next_pid: {then} next_prio: 120 }}")

    def wait(self, at, dur, pid, channel, waker, enter=""):
        """One that takes `dur` ms, of a thread that ran before and runs after."""
        if enter:
            self.add(at, pid, enter)
        self.switch(at, pid, 1, waker)
        self.add(at + dur, waker, f'sched_waking {{ comm: "p{pid}" pid: {pid} prio: 120 success: 1 target_cpu: 0 }}')
        self.add(at + dur, waker, f"sched_blocked_reason {{ pid: {pid} caller: {channel} io_wait: 0 }}")
        self.switch(at + dur, waker, 0, pid)


def generic(address):
    return ('generic { event_name: "sys_enter_futex" field { name: "op" int_value: 128 } '
            f'field {{ name: "uaddr" uint_value: {address} }} }}')


def raw(address):
    return f"sys_enter {{ id: 202 args: {address} args: 128 args: 2 }}"


def contention(address, flags):
    return (f'generic {{ event_name: "contention_begin" field {{ name: "lock_addr" uint_value: {address} }} '
            f'field {{ name: "flags" uint_value: {flags} }} }}')


def samples(sequence, point, stacks, taken):
    """Packets of a data source that samples a tracepoint: {number: functions, the outermost first}, [(ms, tid, stack)]."""
    functions = sorted({f for s in stacks.values() for f in s})
    interned = 'mappings { iid: 1 start: 4096 end: 1048576 } '
    for i, name in enumerate(functions, 1):
        interned += (f'function_names {{ iid: {i} str: "{name}" }} frames {{ iid: {i} function_name_id: {i} mapping_id: 1 rel_pc: {i * 256} }} ')
    for iid, names in stacks.items():
        interned += f"callstacks {{ iid: {iid} {' '.join(f'frame_ids: {functions.index(n) + 1}' for n in names)} }} "
    out = (f"packet {{ timestamp: 1 trusted_packet_sequence_id: {sequence} sequence_flags: 1 trace_packet_defaults {{ perf_sample_defaults {{ "
           f'timebase {{ period: 1 tracepoint {{ name: "{point}" }} }} }} }} interned_data {{ {interned} }} }}\n')
    for at, tid, stack in taken:
        out += (f"packet {{ timestamp: {at * MS} trusted_packet_sequence_id: {sequence} sequence_flags: 2 perf_sample {{ cpu: 0 pid: {APP} "
                f"tid: {tid} timebase_count: 1 callstack_iid: {stack} }} }}\n")
    return out


class OffCpu(harness.Case):
    def rows(self, sql, enter, contentions=(), more=""):
        e = Events()
        e.switch(1, 0, 0, APP)
        e.wait(10, 5, APP, 1, HOLDER, enter(LOCK))
        e.wait(20, 7, APP, 1, HOLDER, enter(LOCK))
        e.wait(30, 2, APP, 3, HOLDER)
        e.wait(40, 1, APP, 1, READER, enter(LOCK))
        e.wait(50, 4, APP, 1, READER, enter(OTHER))
        for at, pid, address, flags in contentions:
            e.add(at, pid, contention(address, flags))
        e.wait(60, 3, APP, 2, READER)
        e.switch(70, APP, 0, READER)
        e.wait(80, 20, READER, 1, HOLDER)  # its call was not recorded
        symbols = " ".join(f'kernel_symbols {{ iid: {i} str: "{name}" }}' for i, name in CHANNELS.items())
        threads = " ".join(f"threads {{ tid: {t} tgid: {APP} }}" for t in (HOLDER, READER))
        text = (f'packet {{ timestamp: 1 trusted_packet_sequence_id: 1 system_info {{ utsname {{ sysname: "Linux" machine: "x86_64" }} }} }}\n'
                f'packet {{ timestamp: 2 trusted_packet_sequence_id: 1 process_tree {{ processes {{ pid: {APP} ppid: 1 cmdline: "app" }} '
                f"{threads} }} }}\n"
                f"packet {{ trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data {{ {symbols} }} }}\n"
                f"packet {{ trusted_packet_sequence_id: 2 sequence_flags: 2 ftrace_events {{ cpu: 0 {' '.join(e.out)} }} }}\n" + more)
        (self.dir / "t.txt").write_text(text)
        trace = self.dir / "t.pftrace"
        self.run_shell("util", "text_to_binary", self.dir / "t.txt", trace, code=0)
        out = self.query("include perfetto module linux.off_cpu; " + sql, "--format", "csv", trace=trace)
        return [list(r.values()) for r in csv.DictReader(io.StringIO(out))]

    def test_call_trees_and_flame_graphs(self):
        """Each wait of 5 and 7 ms is of lock_it(), ended by lets_go(); that of 2 ms is of read_it()."""
        waits = samples(3, "sched/sched_switch", {1: ("main", "lock_it"), 2: ("main", "read_it")},
                        [(10, APP, 1), (20, APP, 1), (30, APP, 2)])
        wakers = samples(4, "sched/sched_waking", {1: ("start", "lets_go")}, [(15, HOLDER, 1), (27, HOLDER, 1)])
        for tree, want in (("linux_off_cpu_tree", [["main", 0, 14], ["lock_it", 12, 12], ["read_it", 2, 2]]),
                           ("linux_off_cpu_waker_tree", [["start", 0, 12], ["lets_go", 12, 12]])):
            rows = self.rows(f"select name, self_dur / {MS}, cumulative_dur / {MS} from {tree} order by 3 desc, 1", raw, more=waits + wakers)
            self.assertEqual(sorted([r[0], int(r[1]), int(r[2])] for r in rows if r[0] in sum(want, [])), sorted(want))
        trace = self.dir / "t.pftrace"
        for form, functions in (("flamegraph-off-cpu", {"main", "lock_it", "read_it"}), ("flamegraph-wakers", {"start", "lets_go"})):
            self.run_shell("convert", form, trace, self.dir / "x.svg", code=0)
            svg = (self.dir / "x.svg").read_text()
            xml.etree.ElementTree.fromstring(svg)
            named = {f for f in ("main", "lock_it", "read_it", "start", "lets_go") if f in svg}
            self.assertEqual(named, functions)
        self.run_shell("convert", "collapsed-off-cpu", trace, self.dir / "x.txt", code=0)
        lines = dict(line.rsplit(" ", 1) for line in (self.dir / "x.txt").read_text().splitlines())
        self.assertEqual(lines, {"main;lock_it": str(12 * MS), "main;read_it": str(2 * MS)})

    def test_locks(self):
        for enter in (generic, raw):
            rows = self.rows("select wait_kind, lock_address, wait_function, wait_count, thread_count, l.dur / 1000000 as ms, max_dur / "
                             "1000000 as longest, w.tid from linux_off_cpu_by_lock l left join thread w on w.utid = waker_utid", enter)
            self.assertEqual(rows, [
                ["futex", "", CHANNELS[1], "1", "1", "20", "20", str(HOLDER)],
                ["futex", str(LOCK), "", "3", "1", "13", "7", str(HOLDER)],  # the other one ended 1 ms of it
                ["futex", str(OTHER), "", "1", "1", "4", "4", str(READER)],
                ["kernel lock", "", CHANNELS[2], "1", "1", "3", "3", str(READER)],
            ], enter)

    def test_locks_of_the_kernel(self):
        """They have the address of the thread's last contention_begin that did not spin; another thread's is none of theirs."""
        calls = ((57, APP, KERNEL_LOCK, 2), (58, APP, 0xffff888000000001, 1), (59, HOLDER, 0xffff888000000002, 2))
        rows = self.rows("select wait_kind, printf('%x', lock_address), wait_function, dur / 1000000 from linux_off_cpu_by_lock where "
                         "wait_kind = 'kernel lock'", generic, calls)
        self.assertEqual(rows, [["kernel lock", f"{KERNEL_LOCK:x}", "", "3"]])

    def test_kinds_by_the_wait_channel(self):
        rows = self.rows("select tid, wait_kind, sum(wait_count), sum(w.dur) / 1000000 from linux_off_cpu_by_wait w join thread using (utid) "
                         "where w.dur > 0 group by 1, 2 order by 1, 2", generic)
        self.assertEqual(rows, [[str(APP), "futex", "4", "17"], [str(APP), "kernel lock", "1", "3"], [str(APP), "pipe", "1", "2"],
                                [str(READER), "futex", "1", "20"]])


if __name__ == "__main__":
    harness.main()

"""tracebox traced_perf samples a program whose profile is known: its functions, their shares and callers are found."""
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

from harness import TP_SHELL, TRACEBOX, first, has_open, main, packets, put_varint, sequence_of, wait_for
from sampling import CONFIG, PerfCase, can_sample

BUSY = os.environ.get("BUSY", "build/dev/busy")
WAITS = os.environ.get("WAITS", "build/dev/waits")
PERF_PROGRESS = 992  # in TracePacket, ours

def has_tracepoint(name):
    return any(os.path.exists(f"{root}/events/{name}/id") for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))


TRACEPOINTS = has_tracepoint("sched/sched_switch")
FUTEX_CALLS = has_tracepoint("syscalls/sys_enter_futex")
FAULTS = has_tracepoint("exceptions/page_fault_user")

# Without stacks: to take one may be a page fault, too, and has no sample. The software counter is no exact number on every kernel:
# that of some virtual machines adds 1 to 3 in 75,000 for which there is no sample and no hit of the tracepoints of page faults either,
# and of which PERF_FORMAT_LOST says nothing. The tracepoint's own count is the number of its hits.
FAULT = 'tracepoint { name: "exceptions/page_fault_user" }' if FAULTS else "counter: SW_PAGE_FAULTS"
NUMBERED = """
buffers { size_kb: 262144 }
duration_ms: %d
data_sources { config { name: "linux.perf" perf_event_config { timebase { FAULT period: 1 } %s } } }
""".replace("FAULT", FAULT)


def elf_build_id(path):
    """The bytes behind the note's name, in hex."""
    data = pathlib.Path(path).read_bytes()
    at = data.find(b"\x14\0\0\0\x03\0\0\0GNU\0")
    return data[at + 12:at + 32].hex()


def try_mkdir(path):
    try:
        path.mkdir()
    except OSError:
        return False
    return (path / "cgroup.procs").exists() or path.rmdir()


class Perf(PerfCase):
    def check_skipped(self, trace):
        """How many samples have no stack, as the stats count them: those of processes that began before the recording and ended before
        anybody could look, and on a machine that has too much to do those that came while too many waited. What this test started is
        none of the first."""
        skipped, lost = (int(self.query(trace, f"select value from stats where name = '{name}'")[0][0])
                         for name in ("perf_samples_skipped", "perf_samples_skipped_dataloss"))
        if not lost:
            self.assertEqual(self.query(trace, "select distinct process.name from perf_sample join thread using (utid) join "
                                               "process using (upid) where callsite_id is null and process.pid in "
                                               f"({','.join(str(p.pid) for p in self.procs)})"), [])
        return skipped + lost

    def test_the_functions_of_a_program_have_their_shares(self):
        busy = self.spawn(BUSY, "4")  # of which it gets a part, on a machine that has more to do
        trace = self.record(CONFIG % (4000, "frequency: 999 counter: SW_CPU_CLOCK", "", ""))
        out, _ = self.finish(busy)
        truth = {w[0]: (int(w[1]), float(w[2])) for w in map(str.split, out.splitlines())}
        stacks = self.frames(trace, busy.pid)
        self.assertGreater(len(stacks), 100)
        path = str(pathlib.Path(BUSY).resolve())

        def function(frame):
            inside = [(start, name) for name, (start, _) in truth.items() if start <= frame[2] < start + 4096]
            return max(inside)[1] if frame[0] == path and inside else frame[3]

        counts, called = {}, 0
        for stack in stacks:
            user = [f for f in stack if f[0] == path]
            if not user or function(user[0]) not in ("hot", "warm", "cold"):
                continue
            self.assertEqual(user[0][1], elf_build_id(path))
            counts[function(user[0])] = counts.get(function(user[0]), 0) + 1
            # the first instructions of a function are before its frame: such samples miss the caller
            called += len(user) > 1 and function(user[1]) == "take_turns"
        all_of_them = sum(counts.values())
        self.assertGreater(all_of_them, 0.8 * len(stacks))
        self.assertGreater(called, 0.95 * all_of_them)
        for name in ("hot", "warm", "cold"):  # some hundred samples: two points each way, three times
            self.assertAlmostEqual(100 * counts.get(name, 0) / all_of_them, truth[name][1], delta=7, msg=str(counts))
        self.assertEqual(self.query(trace, "select name from stats where value > 0 and (name glob 'stackprofile_*' or "
                                           "name = 'interned_data_tokenizer_errors')"), [])
        self.check_skipped(trace)
        # kernel frames have names, and threads that are no process of ours were sampled as well
        self.assertGreater(int(self.query(trace, "select count(*) from stack_profile_frame f join stack_profile_mapping "
                                                 "m on m.id = f.mapping where m.name = '/kernel' and f.name != ''")[0][0]), 5)

    def test_other_processes_are_out_of_scope(self):
        pid = self.spawn(BUSY, "60").pid
        trace = self.record(CONFIG % (1500, "frequency: 499", 'scope { exclude_cmdline: "busy" }', ""))
        self.assertEqual(self.frames(trace, pid), [])
        rows = self.query(trace, "select count(*) from perf_sample join thread using (utid) join process using (upid) "
                                 f"where process.pid = {pid}")
        self.assertGreater(int(rows[0][0]), 5)

    def test_one_cgroup_is_in_scope(self):
        """A process and its children are, in a cgroup of this test; the same program outside of it is not."""
        group = next((p for p in (pathlib.Path("/sys/fs/cgroup", d, f"meridian-test-{os.getpid()}") for d in ("pids", "freezer", ""))
                      if try_mkdir(p)), None)
        if not group:
            self.skipTest("cannot make a cgroup")
        try:
            outside = self.spawn(BUSY, "60").pid
            inside = self.spawn("sh", "-c", f'echo $$ > {group}/cgroup.procs; "{BUSY}" 60 & wait')
            wait_for(lambda: len((group / "cgroup.procs").read_text().split()) == 2, what="the program in its cgroup")
            pids = set(map(int, (group / "cgroup.procs").read_text().split())) - {inside.pid}
            trace = self.record(CONFIG % (1500, "frequency: 499", f'scope {{ target_cgroup: "{group.name}" }}', ""))
            pid = pids.pop()
            self.assertGreater(len(self.frames(trace, pid)), 20)
            self.assertEqual(self.frames(trace, outside), [])
            # profile has a flag for it, in which no character of a name means anything to the config
            self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}
            self.run_profile("--cgroup", f"/{group.name}", "--cgroup", 'no\\x2d"such', "-F", 199, "-t", "1s", "-o", trace)
            sampled = self.query(trace, "select distinct process.pid from perf_sample join thread using (utid) join process using "
                                        "(upid) where callsite_id is not null")
            self.assertEqual({int(r[0]) for r in sampled} - {inside.pid}, {pid})
        finally:
            for pid in (group / "cgroup.procs").read_text().split():
                os.kill(int(pid), 9)
            wait_for(lambda: not (group / "cgroup.procs").read_text(), what="an empty cgroup")
            group.rmdir()

    def test_many_short_processes_lose_no_samples(self):
        """Their maps are records as well, of which a tick takes as many as there are: 10 samples are its limit here."""
        busy = self.spawn("sh", "-c", "while :; do /bin/true; done")
        trace = self.record(CONFIG % (1200, "frequency: 49", "", "ring_buffer_pages: 32 ring_buffer_read_period_ms: 50"))
        busy.kill()
        self.assertEqual(self.query(trace, "select * from stats where name = 'perf_cpu_lost_records' and value > 0"), [])
        self.assertGreater(int(self.query(trace, "select count(*) from perf_sample")[0][0]), 20)

    @unittest.skipUnless(TRACEPOINTS, "needs a mounted tracefs")
    def test_switches_have_stacks(self):
        """A tracepoint as timebase, with a filter and a follower."""
        trace = self.record(CONFIG % (
            600, 'period: 1 tracepoint { name: "sched/sched_switch" filter: "prev_pid != 0" } '
            'timestamp_clock: PERF_CLOCK_MONOTONIC', "", "followers { counter: SW_PAGE_FAULTS }"))
        rows = self.query(trace, "select count(*), count(callsite_id), sum(tid = 0) from perf_sample join thread using (utid)")
        n, stacks, idle = map(int, rows[0])
        self.assertGreater(stacks, 10)
        self.assertEqual(stacks + self.check_skipped(trace), n, self.query(trace, "select name, idx, value from stats where value > 0"))
        self.assertEqual(idle, 0)
        names = {r[0] for r in self.query(trace, "select distinct name from perf_counter_track")}
        self.assertEqual(names, {"sched/sched_switch", "page-faults"})

    @unittest.skipUnless(TRACEPOINTS, "needs a mounted tracefs")
    def test_what_an_overload_loses_is_counted(self):
        """Each switch is a sample of 64 KiB, into rings of 128: the counts in those that are left say how many there were."""
        load = [self.spawn("sh", "-c", "while :; do /bin/true; done") for _ in range(2)]
        trace = self.record((CONFIG % (1500, 'period: 1 tracepoint { name: "sched/sched_switch" }', "",
                                       "ring_buffer_pages: 32 ring_buffer_read_period_ms: 200")).replace(
                                           "UNWIND_KERNEL_FRAME_POINTER", "UNWIND_DWARF"))
        for p in load:
            p.kill()
        lost = dict(self.query(trace, "select idx, value from stats where name = 'perf_cpu_lost_records'"))
        rows = self.query(trace, "select t.cpu, count(*), max(value) - min(value) + 1 from counter c join perf_counter_track t on "
                                 "t.id = c.track_id group by 1")
        self.assertGreater(sum(map(int, lost.values())), 0)
        for cpu, samples, hits in rows:
            self.assertLessEqual(float(hits) - int(samples), int(lost.get(cpu, 0)), f"cpu {cpu}: {rows} {lost}")

    def test_the_daemon_goes_before_what_it_samples(self):
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, self.perf.pid), -10)

    def test_counters_are_polled(self):
        trace = self.record("buffers { size_kb: 1024 } duration_ms: 600 data_sources { config { name: \"linux.perf\" "
                                  "perf_event_config { timebase { poll_period_ms: 50 counter: SW_CONTEXT_SWITCHES } } } }")
        rows = self.query(trace, "select count(*), min(d) from (select value - lag(value) over (partition by track_id "
                                 "order by ts) d from counter join perf_counter_track t on t.id = track_id)")
        self.assertGreater(int(rows[0][0]), 5)
        self.assertGreaterEqual(float(rows[0][1]), 0)

    def test_what_cannot_start_says_why(self):
        for event, why in (('tracepoint { name: "sched/nothing" }',
                            "no tracepoint sched/nothing" if TRACEPOINTS else "tracefs is not mounted"),
                           ("counter: 77", "counter 77")):
            self.record(CONFIG % (100, event, "", ""), code=3)
            self.assertIn(why, self.err)

    def begin_counting(self, name, millis, more=""):
        """Each page fault is a sample that has its number on its cpu."""
        self.spawn("sh", "-c", "while :; do /bin/true; done")
        text = NUMBERED % (millis, "")
        return self.perfetto("--txt", "-c", self.config(more + text), "-o", self.dir / name)

    def progress(self, trace):
        """(when, the last one) of each packet that says how far traced_perf is, by sequence."""
        found = {}
        for p in packets(trace):
            if first(p, PERF_PROGRESS) is not None:
                found.setdefault(sequence_of(p), []).append((first(p, 8), first(first(p, PERF_PROGRESS), 1, 0)))
        return list(found.values())

    def check_numbers(self, trace, until):
        """No number is missing among the samples of a cpu up to that time, unless it is counted. (Where there is only the software
        counter: but for a few; one chunk of samples that got lost would be a hundred.)"""
        lost = dict(self.query(trace, "select idx, value from stats where name = 'perf_cpu_lost_records'"))
        rows = self.query(trace, "select t.cpu, count(*), max(value) - min(value) + 1 from counter c join perf_counter_track t on "
                                 f"t.id = c.track_id where c.ts <= {until} group by 1")
        self.assertGreater(sum(int(r[1]) for r in rows), 1000)
        for cpu, samples, faults in rows:
            left_out = 0 if FAULTS else 8 + int(samples) // 2000
            self.assertLessEqual(float(faults) - int(samples), int(lost.get(cpu, 0)) + left_out, f"cpu {cpu}: {rows} {lost}")

    @unittest.skipUnless(FAULTS, "needs a mounted tracefs with exceptions/page_fault_user")
    def test_what_is_lost_last_is_counted(self):
        """A ring that was full when the last hit came: no record follows that could tell of the loss."""
        pages = 20000
        load = subprocess.Popen([sys.executable, "-c", f"import mmap\nm = mmap.mmap(-1, {pages} * 4096)\nm.madvise(15)\ninput()\n"
                                 f"for i in range(0, {pages} * 4096, 4096): m[i] = 1\nprint(flush=True)\ninput()"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.procs.append(load)
        trace = self.dir / "lost.pftrace"
        text = (NUMBERED % (3000, "ring_buffer_pages: 1 ring_buffer_read_period_ms: 60000")).replace(
            'page_fault_user"', f'page_fault_user" filter: "common_pid == {load.pid}"')
        p = self.perfetto("--txt", "-c", self.config(text), "-o", trace)
        wait_for(lambda: "session 1" in self.log(), what="the session")
        time.sleep(1)
        load.stdin.write("\n")
        load.stdin.flush()
        load.stdout.readline()
        self.finish(p)
        load.kill()
        load.communicate()
        lost = sum(int(v) for _, v in self.query(trace, "select idx, value from stats where name = 'perf_cpu_lost_records'"))
        samples = int(self.query(trace, "select count(*) from perf_sample")[0][0])
        self.assertGreater(samples, 10)
        self.assertGreaterEqual(samples + lost, pages)
        self.assertLess(samples + lost, pages + 1000)  # what the interpreter needs

    def cut(self, trace):
        """What the trace says of its sessions that did not end: [(whole until, ns missing or None)] on BOOTTIME."""
        rows = self.query(trace, "select w.value, c.value from stats w left join stats c on c.name = 'perf_cut_ns' and c.idx = w.idx "
                                 "where w.name = 'perf_whole_until_ts' and w.idx is not null order by 1")
        return [(int(w), int(c) if c.isdigit() else None) for w, c in rows]

    def check_says(self, trace, code):
        out = subprocess.run([TP_SHELL, "check", trace], capture_output=True, text=True)
        self.assertEqual(out.returncode, code, out.stdout + out.stderr)
        return out.stdout

    def kill_and_tell(self, p):
        """When, on the clock of traces."""
        p.kill()
        at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        p.wait()
        return at

    def wait_for_samples(self):
        """Until it samples, and has told some times how far it is: on a machine with other work it takes a second to begin."""
        wait_for(lambda: has_open(self.perf.pid, "anon_inode:[perf_event]"), what="events")
        time.sleep(1.5)

    def test_who_ends_says_so(self):
        trace = self.dir / "whole.pftrace"
        self.finish(self.begin_counting(trace.name, 1000))
        (progress,) = self.progress(trace.read_bytes())
        self.assertGreater(len(progress), 2)
        self.assertEqual([last for _, last in progress], [0] * (len(progress) - 1) + [1])
        self.assertEqual(sorted(progress), progress)
        self.assertEqual(self.cut(trace), [])
        self.check_numbers(trace, 1 << 62)

    def test_a_killed_recorder_is_told(self):
        """kill -9: all samples are there up to a time that the trace gives, and it says how long they are missing from then on."""
        trace = self.dir / "k.pftrace"
        p = self.begin_counting(trace.name, 6000)
        self.wait_for_samples()
        killed = self.kill_and_tell(self.perf)
        self.finish(p)
        self.assertEqual(self.query(trace, "select sum(value) from stats where name = 'machine_producers_cut'"), [["1"]])
        ((until, missing),) = self.cut(trace)
        self.assertEqual(until, max(self.progress(trace.read_bytes())[0])[0])
        self.assertLessEqual(until, killed)
        ended = int(self.query(trace, "select int_value from metadata where name = 'tracing_disabled_ns'")[0][0])
        self.assertEqual(until + missing, ended)
        self.check_numbers(trace, until)
        self.assertRegex(self.check_says(trace, 1), rf"perf_cut_ns.*\b{missing}\b")

    def test_a_killed_recorder_comes_back(self):
        """What is missing ends where it begins again."""
        trace = self.dir / "k.pftrace"
        p = self.begin_counting(trace.name, 6000)
        self.wait_for_samples()
        killed = self.kill_and_tell(self.perf)
        self.perf = self.start_perf()
        self.finish(p)
        ((until, missing),) = self.cut(trace)
        self.assertLessEqual(until, killed)
        first_again = min(t for run in self.progress(trace.read_bytes()) for t, _ in run if t > killed)
        self.assertEqual(until + missing, first_again)
        self.assertGreater(first_again, killed)
        self.assertEqual(sum(run[-1][1] for run in self.progress(trace.read_bytes())), 1)

    def test_a_killed_service_is_told(self):
        """The file lacks its end, and says up to when the samples in it are whole."""
        trace = self.dir / "k.pftrace"
        p = self.begin_counting(trace.name, 20000, "write_into_file: true file_write_period_ms: 200 flush_period_ms: 400 ")
        wait_for(lambda: trace.exists() and trace.read_bytes().count(put_varint(PERF_PROGRESS << 3 | 2)) > 5, what="some ticks in the file")
        self.traced.kill()
        p.wait(30)
        ((until, missing),) = self.cut(trace)
        self.assertIsNone(missing)  # nobody knows when the recording was to end
        self.check_numbers(trace, until)
        self.assertRegex(self.check_says(trace, 1), "trace_end_missing|trace_cut_bytes")

    def run_profile(self, *args, code=0):
        p = subprocess.run([TRACEBOX, "profile", *map(str, args)], env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stdout, p.stderr

    def test_profile_shows_the_top(self):
        """The service of this test is used, as it offers linux.perf."""
        trace = self.dir / "profile.pftrace"
        out, err = self.run_profile("-F", 499, "-g", "-t", "2s", "-o", trace, "--rows", 100000, "--", BUSY, 1)
        self.assertIn("using the tracing service", err)
        self.assertRegex(err, r"\d+ samples of running threads")
        rows = {m[3]: (float(m[1]), float(m[2])) for m in
                re.finditer(r"^ *([0-9.]+)% *([0-9.]+)%  (\w+)  \[busy\]$", out, re.M)}
        truth = {w[0]: float(w[2]) for w in map(str.split, out.splitlines()) if len(w) == 3 and w[1].isdigit()}
        self.assertEqual(set(truth), {"hot", "warm", "cold", "take_turns"})
        busy = sum(rows[f][0] for f in ("hot", "warm", "cold"))
        for f in ("hot", "warm", "cold"):
            self.assertAlmostEqual(100 * rows[f][0] / busy, truth[f], delta=10, msg=out)
        self.assertGreater(rows["main"][1], 0.9 * busy)  # with what it calls

    def test_profile_says_what_is_wrong(self):
        for args, why in ((["-p", "x"], "--pid"), (["-p", 2 ** 30], "no such process"), (["-F", "0"], "--frequency"),
                          (["--rows", "0"], "--rows"), (["x"], "unexpected")):
            self.assertIn(why, self.run_profile(*args, code=1)[1])
        sleeper = self.spawn("sleep", 60)
        time.sleep(0.2)
        out, err = self.run_profile("-p", sleeper.pid, "-t", "1s", "-o", self.dir / "profile.pftrace")
        self.assertEqual(out, "")
        self.assertIn("nothing of what was to be sampled ran on a processor; --off-cpu", err)

    @unittest.skipIf(TRACEPOINTS, "tracefs is mounted")
    def test_waits_that_cannot_be_recorded_are_no_success(self):
        """The processor time is there all the same. With a command that fails, too."""
        self.traced.terminate()
        self.traced.wait()
        for command in ("true", "false"):
            trace = self.dir / "waits.pftrace"
            _, err = self.run_profile("--off-cpu", "-F", 99, "-o", trace, "--", "sh", "-c", f"sleep 0.3; {command}", code=1)
            self.assertIn("tracefs is not mounted", err)
            self.assertIn("why threads wait was not recorded: see above", err)
            self.assertGreater(int(self.query(trace, "select count(*) from perf_sample")[0][0]), 0)
        self.run_profile("-F", 99, "-o", trace, "--", "sleep", 0.3)

    @unittest.skipUnless(TRACEPOINTS, "needs a mounted tracefs")
    def test_profile_without_daemons(self):
        """It starts its own; off-cpu samples are no time, and not in the table."""
        self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}
        trace = self.dir / "profile.pftrace"
        out, err = self.run_profile("--off-cpu", "-F", 199, "-o", trace, "--", BUSY, 1)
        self.assertRegex(err, r"overhead: traced_perf used \d+ ms")
        self.assertNotIn("__traceiter_sched_switch", out)
        self.assertEqual({r[0] for r in self.query(trace, "select distinct name from perf_counter_track")},
                         {"cpu-clock", "sched/sched_switch", "sched/sched_waking"})

    def matched_waits(self, trace, out):
        """By kind, for each wait that the program tells of: how long it took, and for how long the trace has the thread off
        the processor for that reason, both in ns.

        Kernels of virtual machines leave out switches at times (see test_probes.py). Then one stretch of the trace holds
        several waits, and those say nothing about our reasons: they are left out here, as long as enough others are there."""
        truth = [(w[1], int(w[2]), int(w[3])) for w in map(str.split, out.splitlines()) if len(w) == 4 and w[0] == "wait"]
        self.assertGreater(len(truth), 20, out)
        # the program's clock goes on while it is ready to run
        rows = self.query(trace, "include perfetto module linux.off_cpu; select coalesce(wait_kind, ''), w.ts, w.ts + w.dur + "
                          "coalesce(runnable_dur, 0) from linux_off_cpu w join thread t using (utid) where process_name glob "
                          "'*waits*' and t.is_main_thread and w.dur > 0")
        stretches = [(kind, int(begin), int(end)) for kind, begin, end in rows]
        slack = 500000  # ns, for the program's own steps between its clock and the kernel
        matched = {"sleep": [], "pipe": [], "futex": []}
        for kind, begin, end in truth:
            during = [s for s in stretches if s[1] < end - slack and s[2] > begin + slack]
            if during and all(s[1] >= begin - slack and s[2] <= end + slack for s in during):
                matched[kind].append((end - begin, sum(s[2] - s[1] for s in during if s[0] == kind)))
        print({k: f"{len(w)} of {sum(t[0] == k for t in truth)}" for k, w in matched.items()})
        for kind, waits in matched.items():
            self.assertGreater(5 * len(waits), sum(t[0] == kind for t in truth), f"{kind}: {rows} {truth}")
        return matched

    @unittest.skipUnless(TRACEPOINTS, "needs a mounted tracefs")
    def test_waits_have_their_reasons(self):
        """How long a thread is blocked, by what it waits for, is what the program measures; its waker is known."""
        self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}
        trace = self.dir / "waits.pftrace"
        out, _ = self.run_profile("--off-cpu", "-F", 49, "-o", trace, "--", WAITS, 1)
        for kind, waits in self.matched_waits(trace, out).items():
            true_ms, found_ms = (sum(w) / len(waits) / 1e6 for w in zip(*waits))
            self.assertAlmostEqual(found_ms, true_ms, delta=0.2 * true_ms + 1, msg=f"{kind}: {waits}")
        module = "include perfetto module linux.off_cpu; "
        # whoever ends waits for the pipe and the lock is the partner, and was seen to do so
        rows = self.query(trace, module + "select w.wait_kind, count(*), sum(k.upid = w.upid), sum(waker_callsite_id is not null) "
                          "from linux_off_cpu w join thread t using (utid) left join thread k on k.utid = waker_utid where "
                          "process_name glob '*waits*' and t.is_main_thread and wait_kind in ('pipe', 'futex') and w.dur > 2000000 "
                          "group by 1 order by 1")
        self.assertEqual([r[0] for r in rows], ["futex", "pipe"])
        for _, n, partner, stacks in rows:
            self.assertGreaterEqual(int(n), 1)
            self.assertGreaterEqual(int(partner), 0.5 * int(n))
            self.assertGreaterEqual(int(stacks), 0.5 * int(n))
        # the trees hold the time once
        rows = self.query(trace, module + "select (select sum(self_dur) from linux_off_cpu_tree), (select sum(cumulative_dur) from "
                          "linux_off_cpu_tree where parent_id is null), (select sum(dur) from linux_off_cpu where dur > 0 "
                          "and callsite_id is not null), (select count(*) from linux_off_cpu_waker_tree)")
        own, all_of_it, dur, wakers = map(int, rows[0])
        self.assertEqual((own, all_of_it), (dur, dur))
        self.assertGreater(wakers, 5)

    @unittest.skipUnless(TRACEPOINTS, "needs a mounted tracefs")
    def test_waits_have_their_shares(self):
        """Of the time that a thread was off the processor, by what it waited for; and as flame graphs."""
        self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}
        trace = self.dir / "waits.pftrace"
        out, _ = self.run_profile("--off-cpu", "-F", 99, "-o", trace, "--", WAITS, 10 if os.environ.get("MERIDIAN_LONG") else 3)
        waits = self.matched_waits(trace, out)
        true_all, found_all = (sum(w[i] for ws in waits.values() for w in ws) for i in (0, 1))
        shares = {k: (100 * sum(w[1] for w in ws) / found_all, 100 * sum(w[0] for w in ws) / true_all) for k, ws in waits.items()}
        print({k: (round(a, 1), round(b, 1)) for k, (a, b) in shares.items()})
        module = "include perfetto module linux.off_cpu; "
        for kind, (share, true_share) in shares.items():
            self.assertAlmostEqual(share, true_share, delta=3, msg=f"{kind}: {shares}")

        def total(form):
            text = subprocess.run([TP_SHELL, "convert", form, trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            return sum(int(line.rsplit(b" ", 1)[1]) for line in text.stdout.splitlines())
        blocked, on_cpu = self.query(trace, module + "select (select sum(dur) from linux_off_cpu where dur > 0 and callsite_id is not "
                                     "null), (select count(*) from perf_sample where callsite_id is not null and perf_session_id in "
                                     "(select perf_session_id from perf_counter_track where is_timebase and name = 'cpu-clock'))")[0]
        self.assertEqual(total("collapsed-off-cpu"), int(blocked))
        self.assertEqual(total("collapsed"), int(on_cpu))
        woken = int(self.query(trace, module + "select sum(dur) from linux_off_cpu where dur > 0 and waker_callsite_id is not "
                                               "null")[0][0])
        self.assertEqual(total("collapsed-wakers"), woken)
        for form in ("flamegraph", "flamegraph-off-cpu", "flamegraph-wakers"):
            xml.etree.ElementTree.fromstring(subprocess.run([TP_SHELL, "convert", form, trace], stdout=subprocess.PIPE,
                                                            stderr=subprocess.DEVNULL, check=True).stdout)

    @unittest.skipUnless(FUTEX_CALLS, "needs a mounted tracefs, and a kernel with events of system calls")
    def test_locks_have_their_shares(self):
        """The time blocked by lock is what the program measures; who ended the waits is the thread that held the locks."""
        self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}
        trace = self.dir / "locks.pftrace"
        out, _ = self.run_profile("--off-cpu", "-F", 49, "-o", trace, "--", WAITS, 3)
        truth = {int(w[1], 16): int(w[2]) for w in map(str.split, out.splitlines()) if len(w) == 3 and w[0] == "lock"}
        self.assertEqual(len(truth), 2, out)
        rows = self.query(trace, "include perfetto module linux.off_cpu; select lock_address, l.dur, wait_count, thread_count, "
                          "l.callsite_id is not null, w.upid = l.upid and not w.is_main_thread from linux_off_cpu_by_lock l left join "
                          "thread w on w.utid = waker_utid where process_name glob '*waits*' and wait_kind = 'futex'")
        self.assertFalse([r for r in rows if "[NULL]" in r[:2]], rows)
        found = {int(r[0]): int(r[1]) for r in rows if int(r[0]) in truth}
        print({f"{a:#x}": (round(truth[a] / 1e6, 1), round(found.get(a, 0) / 1e6, 1)) for a in truth}, rows)
        self.assertEqual(set(found), set(truth), rows)
        # what the kernel leaves out is of both alike; a stretch that holds the wait after it as well is longer
        shares = [sorted(100 * t[a] / sum(t.values()) for a in truth) for t in (found, truth)]
        self.assertAlmostEqual(shares[0][0], shares[1][0], delta=10)
        for row in rows:
            if int(row[0]) in truth:
                self.assertGreater(int(row[2]), 5)
                self.assertEqual(row[3:], ["1", "1", "1"])

    def test_memory_is_guarded(self):
        trace = self.record(CONFIG % (4000, "frequency: 99", "", "max_daemon_memory_kb: 1"))
        self.assertNotEqual(self.query(trace, "select value from stats where name = 'perf_guardrail_stop_ts'"), [])
        self.assertEqual(self.cut(trace), [])  # it was not killed


if __name__ == "__main__":
    if os.geteuid() != 0 or not can_sample():
        print("skipped: needs root and a kernel that lets it sample (perf_event_open)")
        sys.exit(77)
    main()

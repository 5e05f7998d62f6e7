"""tp_shell convert: what other tools read back from what it writes."""
import collections
import csv
import io
import json
import os
import re
import signal
import subprocess
import time
import zlib

import harness

SCHED = harness.DATA / "linux-sched.pftrace"
SYSCALLS = harness.DATA / "linux-syscalls.pftrace.gz"
MACHINES = harness.DATA / "mm-two-machines.pftrace.gz"
EVENTS = harness.DATA / "track-events.pftrace"
SDK = harness.DATA / "sdk.pftrace"
LINE = re.compile(r"^ *(.*)-(\d+) +\( *([\d-]+)\) \[(\d{3})\] ([d.][N.][hHs.]\.) (\d+)\.(\d{6}): (\w+):(?: (.*))?$")


class Case(harness.Case):
    def rows(self, sql, trace):
        return [tuple(r) for r in csv.reader(io.StringIO(self.query(sql, trace=trace)))][1:]

    def convert(self, *args, **kw):
        return self.run_shell("convert", *args, **kw).stdout


class Json(Case):
    def events(self, trace):
        doc = json.loads(self.convert("json", trace))
        self.lines = doc.get("systemTraceEvents", "").splitlines()
        by_phase = collections.defaultdict(list)
        for e in doc["traceEvents"]:
            by_phase[e["ph"]].append(e)
        return by_phase

    def ns(self, us):
        return round(us * 1000)

    def test_slices_of_threads(self):
        for trace in (EVENTS, SDK):
            got = self.events(trace)
            want = self.rows("select s.ts, s.dur, coalesce(s.name, ''), coalesce(pid, 0), tid from slice s join thread_track k "
                             "on k.id = track_id join thread using (utid) left join process using (upid)", trace)
            self.assertGreater(len(want), 50)
            self.assertEqual(sorted(want), sorted(
                (str(self.ns(e["ts"])), str(self.ns(e["dur"]) if "dur" in e else 0 if e["ph"] == "i" else -1), e["name"],
                 str(e["pid"]), str(e["tid"])) for e in got["X"] + got["i"] + got["B"]))

    def test_slices_without_thread_come_in_pairs(self):
        got = self.events(SCHED)
        want = self.rows("select count(*), sum(dur) from slice where dur > 0 and track_id not in (select id from thread_track)",
                         SCHED)[0]
        ends = collections.defaultdict(list)
        for e in got["e"]:
            ends[e["id"], e["name"]].append(self.ns(e["ts"]))
        total = sum(sum(v) for v in ends.values()) - sum(self.ns(e["ts"]) for e in got["b"])
        self.assertEqual((str(len(got["b"])), str(total)), want)

    def test_counters(self):
        got = self.events(SCHED)
        want = self.rows("select count(*), count(distinct track_id) from counter", SCHED)[0]
        self.assertEqual((str(len(got["C"])), str(len({(e["pid"], e["name"]) for e in got["C"]}))), want)

    def test_the_scheduling_is_there(self):
        self.events(SCHED)
        switches = [m for m in map(LINE.match, self.lines) if m and m[8] == "sched_switch"]
        want = self.rows("select count(*) from ftrace_event where name = 'sched_switch'", SCHED)
        self.assertEqual(len(switches), int(want[0][0]))
        self.assertEqual(self.lines[0], "# tracer: nop")
        self.assertIn("trace_event_clock_sync: parent_ts=0", self.lines[-1])

    def test_machines_are_kept_apart(self):
        got = self.events(MACHINES)
        names = {e["pid"]: e["args"]["name"] for e in got["M"] if e["name"] == "process_name"}
        host = {p for p in names if p < 10000000}
        self.assertEqual({p for p in names if p >= 20000000}, set())
        for pid in set(names) - host:
            self.assertRegex(names[pid], r"machine 1")
        ran = [e for e in got["X"] if e["pid"] == 19999999]
        want = self.rows("select count(*), sum(s.dur) from sched s join thread t using (utid) where t.machine_id = 1 and tid > 0 "
                         "and s.dur >= 0", MACHINES)[0]
        self.assertEqual((str(len(ran)), str(sum(self.ns(e["dur"]) for e in ran))), want)
        tids = {e["tid"] for e in got["M"] if e["name"] == "thread_name" and e["pid"] < 10000000}
        self.assertTrue(all(t < 10000000 for t in tids))

    def test_whole_numbers_args(self):
        """Numbers as large as a pointer are args, too: they were taken for texts."""
        got = self.events(SYSCALLS)
        self.assertGreater(len(got["X"]), 1000)

    def test_the_function_writes_the_same(self):
        path = self.dir / "by-sql.json"
        self.query(f"select export_json('{path}')", "--allow-sql-file-access", trace=EVENTS)
        self.assertEqual(path.read_bytes(), self.convert("json", EVENTS))


class Systrace(Case):
    def parse(self, text):
        head = [l for l in text.splitlines() if l.startswith("#")]
        body = [LINE.match(l) for l in text.splitlines() if not l.startswith("#")]
        self.assertNotIn(None, body)
        return head, body

    def test_lines(self):
        for trace in (SCHED, SYSCALLS):
            head, body = self.parse(self.convert("systrace", trace).decode())
            want = self.rows("select tid, cpu.cpu, ts / 1000, iif(f.name = 'print', 'tracing_mark_write', f.name) from ftrace_event f "
                             "join thread using (utid) join cpu using (ucpu) order by f.ts, f.id", trace)
            self.assertEqual([(m[2], str(int(m[4])), str(int(m[6]) * 1000000 + int(m[7])), m[8]) for m in body], want)
            self.assertEqual(head[0], "# tracer: nop")
            self.assertEqual(head[2], f"# entries-in-buffer/entries-written: {len(want)}/{len(want)}   #P:"
                             f"{len({m[4] for m in body})}")
            self.assertIn("TASK-PID    TGID   CPU#  ||||    TIMESTAMP  FUNCTION", head[-2])

    def test_events_as_the_kernel_prints_them(self):
        """The texts were compared with /sys/kernel/tracing/trace of the same events."""
        _, body = self.parse(self.convert("systrace", SCHED).decode())
        texts = {m[8]: m[9] for m in body}
        for event, shape in (
                ("sched_switch", r"prev_comm=.* prev_pid=\d+ prev_prio=\d+ prev_state=[RSDTtXZPI|+]+ ==> next_comm=.* next_pid=\d+ next_prio=\d+$"),
                ("sched_waking", r"comm=.* pid=\d+ prio=\d+ target_cpu=\d{3}$"),
                ("task_newtask", r"pid=\d+ comm=.* clone_flags=[0-9a-f]+ oom_score_adj=-?\d+$"),
                ("task_rename", r"pid=\d+ oldcomm=.* newcomm=.* oom_score_adj=-?\d+$"),
                ("irq_handler_exit", r"irq=\d+ ret=(un)?handled$"),
                ("softirq_raise", r"vec=\d+ \[action=[A-Z_]+\]$")):
            self.assertRegex(texts[event], shape)
        _, body = self.parse(self.convert("systrace", SYSCALLS).decode())
        texts = {m[8]: m[9] for m in body}
        self.assertRegex(texts["sys_enter"], r"^NR \d+ \([0-9a-f, ]+\)$")
        self.assertRegex(texts["sys_exit"], r"^NR \d+ = -?\d+$")

    def test_packed(self):
        packed = self.convert("ctrace", SCHED)
        self.assertEqual(packed[:7], b"TRACE:\n")
        self.assertEqual(zlib.decompress(packed[7:]), self.convert("systrace", SCHED))

    def test_one_machine_at_a_time(self):
        per = dict(self.rows("select machine_id, count(*) from ftrace_event join cpu using (ucpu) group by 1", MACHINES))
        p = self.run_shell("convert", "systrace", MACHINES)
        self.assertIn(f"note: {per['1']} events of other machines are left out", p.stderr.decode())
        self.assertEqual(len(self.parse(p.stdout.decode())[1]), int(per["0"]))
        body = self.parse(self.convert("systrace", MACHINES, "--machine", "1").decode())[1]
        self.assertEqual(len(body), int(per["1"]))
        self.fails("convert", "systrace", MACHINES, self.dir / "x", "--machine", "nobody", text="'nobody' is no machine")

    def test_nothing_to_tell(self):
        head, body = self.parse(self.convert("systrace", self.empty).decode())
        self.assertEqual((len(head), body), (11, []))
        self.fails("convert", "systrace", SCHED, self.dir / "x", "-t", "middle", text="neither start nor end")
        self.assertEqual(self.convert("systrace", SCHED, "-t", "end"), self.convert("systrace", SCHED))


class Files(Case):
    def test_pipes_and_files(self):
        want = self.convert("json", EVENTS)
        out = self.dir / "out.json"
        self.assertEqual(self.convert("json", EVENTS, "-"), want)
        self.assertEqual(self.convert("json", stdin=EVENTS.read_bytes()), want)
        self.assertEqual(self.convert("json", EVENTS, out), b"")
        self.assertEqual(out.read_bytes(), want)
        self.assertEqual(list(self.dir.glob("*.part*")), [])

    def test_a_full_disk(self):
        self.fails("convert", "json", SCHED, "/dev/full", text="/dev/full: write: No space left on device")

    def test_what_was_there_stays(self):
        out = self.dir / "kept.txt"
        out.write_text("before")
        self.fails("convert", "systrace", SCHED, out, "--machine", "nobody", text="is no machine")
        self.fails("convert", "json", "/nonexistent", out, text="/nonexistent")
        self.assertEqual(out.read_text(), "before")
        self.fails("convert", "json", SCHED, self.dir / "no" / "x", text="No such file or directory")
        self.fails("convert", "json", SCHED, self.dir, text="Is a directory")

    def test_interrupted(self):
        out, parts = self.dir / "cut.json", lambda: list(self.dir.glob("cut.json.part*"))
        for _ in range(20):
            p = subprocess.Popen([harness.SHELL, "convert", "json", MACHINES, out], stderr=subprocess.PIPE)
            while p.poll() is None and not parts():
                time.sleep(0.001)
            if p.poll() is None:
                p.send_signal(signal.SIGINT)
            err = p.communicate(timeout=60)[1]
            self.assertEqual(parts(), [])
            if p.returncode:
                self.assertEqual(p.returncode, 1)
                self.assertIn(b"interrupted", err)
                self.assertFalse(out.exists())
                return
            os.unlink(out)
        self.fail("never caught it at work")

    def test_called_traceconv(self):
        name = self.dir / "traceconv"
        name.symlink_to(os.path.abspath(harness.SHELL))
        run = lambda *a: subprocess.run([name, *map(str, a)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(run("json", EVENTS).stdout, self.convert("json", EVENTS))
        self.assertEqual(run("--truncate", "end", "systrace", SCHED).stdout, self.convert("systrace", SCHED))
        self.assertIn(b"Usage: tp_shell convert", run().stdout)
        p = run("gif", EVENTS)
        self.assertEqual((p.returncode, p.stderr), (1, b"no format was given\n"))

    def test_mistakes(self):
        self.fails("convert", text="a format is needed")
        self.fails("convert", "gif", SCHED, text="unknown format 'gif'")
        self.fails("convert", "json", SCHED, "a", "b", text="one trace and one file")
        self.assertIn("convert systrace", self.run_shell("help", "convert").stdout.decode())


if __name__ == "__main__":
    harness.main()

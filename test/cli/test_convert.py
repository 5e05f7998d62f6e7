"""tp_shell convert: what other tools read back from what it writes."""
import collections
import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree
import zlib

import harness
from pb import field

SCHED = harness.DATA / "linux-sched.pftrace"
SYSCALLS = harness.DATA / "linux-syscalls.pftrace.gz"
MACHINES = harness.DATA / "mm-two-machines.pftrace.gz"
EVENTS = harness.DATA / "track-events.pftrace"
SDK = harness.DATA / "sdk.pftrace"
LINE = re.compile(r"^ *(.*)-(\d+) +\( *([\d-]+)\) \[(\d{3})\] ([d.][N.][hHs.]\.) (\d+)\.(\d{6}): (\w+):(?: (.*))?$")


def pb(*fields):
    """A message of (number, value) pairs."""
    return b"".join(field(number, v) for number, v in fields)


def fields(message):
    """The (number, value) pairs of a message."""
    at = 0

    def number():
        nonlocal at
        v = shift = 0
        while True:
            b = message[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    while at < len(message):
        tag = number()
        if tag & 7 == 2:
            n = number()
            yield tag >> 3, message[at:at + n]
            at += n
        else:
            yield tag >> 3, number()


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

    def test_many_args(self):
        """An event of 100,000 args takes no time that grows with their square."""
        names = [f"key{i}" for i in range(100000)]
        head = ((10, 1), (13, 2))
        trace = self.dir / "args.pftrace"
        trace.write_bytes(pb((1, pb((8, 5), (10, 1), (13, 1), (60, pb((1, 7), (2, "track"))))),
                             (1, pb((8, 9), *head, (11, pb((9, 3), (11, 7), (23, "event")) + b"".join(
                                 pb((4, pb((10, n), (4, i)))) for i, n in enumerate(names)))))))
        before = os.times()
        (event,) = self.events(trace)["n"]
        after = os.times()
        self.assertLess(after.children_user - before.children_user, 5)
        self.assertTrue(list(event["args"]["debug"].items()) == [(n, i) for i, n in enumerate(names)])

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

    def test_texts_with_lines_of_their_own(self):
        forged = b"x\n  evil-9 ( 9) [000] .... 1.000000: sched_wakeup: comm=a pid=1 prio=1 target_cpu=000\n"
        path = self.dir / "lines.pftrace"  # an event: its time, its process, a text for the kernel's trace_marker
        path.write_bytes(pb((1, pb((1, pb((1, 0), *[(2, pb((1, ts), (2, 5), (3, pb((1, 0), (2, forged))))) for ts in (1000, 2000)]))))))
        body = [l for l in self.convert("systrace", path).decode().splitlines() if not l.startswith("#")]
        self.assertEqual(len(body), 2)
        for line in body:
            self.assertIn("tracing_mark_write: x   evil-9 ( 9)", line)

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
        self.fails("convert", "systrace", MACHINES, self.dir / "x", "--machine", "nobody", text="no machine 'nobody'")

    def test_nothing_to_tell(self):
        head, body = self.parse(self.convert("systrace", self.empty).decode())
        self.assertEqual((len(head), body), (11, []))
        self.fails("convert", "systrace", SCHED, self.dir / "x", "-t", "middle", text="neither start nor end")
        self.assertEqual(self.convert("systrace", SCHED, "-t", "end"), self.convert("systrace", SCHED))


class Text(Case):
    def binary(self, text, *flags):
        return self.run_shell("util", "text_to_binary", *flags, stdin=text).stdout

    def test_there_and_back(self):
        for trace in (SCHED, EVENTS, SDK, SYSCALLS, harness.DATA / "linux-zstd.pftrace", harness.DATA / "linux-deflate.pftrace"):
            text = self.convert("text", trace)
            back = self.dir / "back.pftrace"
            back.write_bytes(self.binary(text))
            self.assertEqual(self.convert("text", back), text)
            sql = "select count(*), sum(ts), sum(length(name)), count(distinct name) from (select ts, name from slice union all select ts, name from ftrace_event)"
            self.assertEqual(self.rows(sql, back), self.rows(sql, trace))

    def test_names(self):
        text = self.convert("text", SCHED).decode()
        for line in ("packet {", "  trusted_packet_sequence_id: 1", "    primary_trace_clock: BUILTIN_CLOCK_BOOTTIME",
                     "      intern_table: \"pinger\""):
            self.assertIn(line + "\n", text)

    def test_written_by_hand(self):
        trace = self.dir / "hand.pftrace"
        trace.write_bytes(self.binary(b"""packet { timestamp: 100 process_tree { processes { pid: 5 cmdline: "five" } } }
            packet { timestamp: 200 trigger { trigger_name: 'pulled' } }  # a comment"""))
        self.assertEqual(self.rows("select ts, name from slice", trace), [("200", "pulled")])
        self.assertIn(("five",), self.rows("select name from process", trace))

    def test_decompress_packets(self):
        for name in ("linux-zstd", "linux-deflate"):
            trace, plain = harness.DATA / f"{name}.pftrace", self.dir / "plain.pftrace"
            self.run_shell("util", "decompress_packets", trace, plain)
            numbers = {n for _, packet in fields(plain.read_bytes()) for n, _ in self.heads(packet)}
            self.assertFalse(numbers & {50, 133})
            self.assertGreater(plain.stat().st_size, trace.stat().st_size)
            self.assertEqual(self.convert("text", plain), self.convert("text", trace))
        self.run_shell("util", "decompress_packets", EVENTS, plain)
        self.assertEqual(plain.read_bytes(), EVENTS.read_bytes())

    @staticmethod
    def heads(packet):
        try:
            yield from fields(packet)
        except IndexError: # numbers of four and eight bytes, which the reader above does not know
            pass

    def test_damage(self):
        cut = self.dir / "cut"
        cut.write_bytes(pb((1, pb((8, 5)))) + pb((1, pb((50, b"no zlib")))) + b"\x0a\x7f")
        p = self.run_shell("convert", "text", cut)
        self.assertIn("timestamp: 5", p.stdout.decode())
        self.assertIn('compressed_packets: "no zlib"', p.stdout.decode())
        self.assertIn("1 compressed packets cannot be read", p.stderr.decode())
        self.assertIn("2 bytes at the end are not a whole packet", p.stderr.decode())
        out = self.run_shell("util", "decompress_packets", cut).stdout
        self.assertEqual(out, cut.read_bytes())

    def test_damage_in_packed_packets(self):
        """What cannot be read to its end stays packed: the bytes behind are of no use without those before."""
        trace, out = self.dir / "damaged-inside", self.dir / "opened"
        for inside in (pb((1, pb((8, 5)))) + b"\x0a\x7fxx", b"\xff" * (8 << 20)):
            packets = pb((1, pb((50, zlib.compress(inside))))) + pb((1, pb((8, 7))))
            trace.write_bytes(packets + b"\x0a")
            p = self.run_shell("util", "decompress_packets", trace, out)
            self.assertEqual(out.read_bytes(), packets + b"\x0a")
            self.assertIn("1 compressed packets cannot be read", p.stderr.decode())
            self.assertIn("1 bytes at the end are not a whole packet", p.stderr.decode())
            text = self.convert("text", trace)
            out.write_bytes(self.binary(text))
            self.assertEqual(self.convert("text", out), text)

    def test_mistakes(self):
        bad = self.dir / "bad.txt"
        bad.write_text("packet {\n  when: 5 }")
        out = self.dir / "made"
        self.fails("util", "text_to_binary", bad, out, text='bad.txt: 2:3: TracePacket has no field "when"')
        self.assertFalse(out.exists())
        self.assertEqual(self.run_shell("util", "text_to_binary", bad, "--skip-unknown").stdout[:1], b"\x0a")
        self.fails("convert", "text", bad, text="not a Perfetto trace")
        self.fails("util", "decompress_packets", "/nonexistent", text="/nonexistent")
        bomb = self.dir / "bomb"
        bomb.write_bytes(gzip.compress(bytes(100 << 20)))
        self.fails("convert", "text", bomb, text="unpacks to more than 200 times its size")


class Pprof:
    """A profile as pprof reads it (profile.proto): samples are {stack of names, the outermost first: values}."""

    def __init__(self, path):
        message = gzip.decompress(path.read_bytes())
        by = collections.defaultdict(list)
        for n, v in fields(message):
            by[n].append(v)
        self.strings = [s.decode() for s in by[6]]
        self.types = [tuple(self.strings[dict(fields(t))[k]] for k in (1, 2)) for t in by[1]]
        functions = {dict(fields(f))[1]: self.strings[dict(fields(f))[2]] for f in by[5]}
        self.files = [self.strings[dict(fields(m))[5]] for m in by[3]]
        locations = {}
        for location in by[4]:
            parts = list(fields(location))
            locations[dict(parts)[1]] = [functions[dict(fields(line))[1]] for n, line in parts if n == 4]
        self.samples = {}
        for sample in by[2]:
            ids, values = [], []
            for n, v in fields(sample):
                (ids if n == 1 else values).extend(self.numbers(v))
            stack = tuple(name for i in reversed(ids) for name in reversed(locations[i]))
            self.samples[stack] = [v - (1 << 64) if v >> 63 else v for v in values]

    @staticmethod
    def numbers(v):
        return [v] if isinstance(v, int) else [n for _, n in fields(b"".join(b"\0" + v[a:b] for a, b in Pprof.cuts(v)))]

    @staticmethod
    def cuts(v):
        start = 0
        for i, b in enumerate(v):
            if b < 128:
                yield start, i + 1
                start = i + 1


def names(field, *texts):
    return [(field, pb((1, i + 1), (2, t))) for i, t in enumerate(texts)]


class Profile(Case):
    """Process 7 has two threads that were sampled five times, process 9 two dumps of a heap."""

    def setUp(self):
        functions = ("main", "work", "idle")
        frames = [(1, i + 1) for i in range(3)]
        inside = names(5, *functions) + [(17, pb((1, 1), (2, "app"))), (19, pb((1, 1), (4, 4096), (5, 8192), (7, 1)))]
        inside += [(6, pb((1, i), (2, i), (3, 1), (4, 16 * i))) for _, i in frames]
        inside += [(7, pb((1, 1), (2, 1), (2, 2))), (7, pb((1, 2), (2, 1), (2, 3)))]
        head = ((10, 1), (13, 2))
        packets = [pb((6, pb(*((1, pb((1, clock), (2, 40))) for clock in (1, 3, 4, 6))))), pb((8, 50), (2, pb((1, pb((1, 7), (2, 1), (3, "seven"))), (1, pb((1, 9), (2, 1), (3, "nine"))),
                                      (2, pb((1, 7), (2, "seven"), (3, 7))), (2, pb((1, 8), (2, "helper"), (3, 7)))))),
                   pb((8, 100), (10, 1), (13, 1), (12, pb(*inside)))]
        for i, (tid, stack) in enumerate(((7, 1), (7, 1), (7, 2), (8, 2), (8, 2))):
            packets.append(pb((8, 200 + i), *head, (66, pb((1, 0), (2, 7), (3, tid), (4, stack)))))
        for i, dump in enumerate((((1, 100, 0, 2, 0),), ((1, 100, 40, 2, 1), (2, 8, 0, 1, 0)))):
            ts = 1000 * (i + 1)
            samples = [(2, pb((1, c), (2, a), (3, f), (4, ts), (5, n), (6, g))) for c, a, f, n, g in dump]
            packets.append(pb((8, ts), *head, (37, pb((7, i), (5, pb((1, 9), (9, ts), (11, "my heap/"), *samples))))))
        self.trace = self.dir / "profiled.pftrace"
        self.trace.write_bytes(pb(*((1, p) for p in packets)))
        self.out = self.dir / self.id().rsplit(".", 1)[1]

    def profiles(self, *flags):
        printed = self.convert("profile", self.trace, "--output-dir", self.out, *flags).decode().split("\n")[:-1]
        self.assertEqual(sorted(printed), sorted(str(p) for p in self.out.iterdir()))
        return [(os.path.basename(p), Pprof(self.out / os.path.basename(p))) for p in printed]

    def test_samples(self):
        ((name, p),) = self.profiles("--perf")
        self.assertEqual(name, "perf.1.pid.7.pb.gz")
        self.assertEqual(p.types, [("samples", "count")])
        self.assertEqual(p.samples, {("seven", "main", "work"): [2], ("seven", "main", "idle"): [1],
                                     ("helper", "main", "idle"): [2]})
        self.assertEqual(p.files, ["/app"])

    def test_heaps(self):
        got = self.profiles("--alloc")
        self.assertEqual([n for n, _ in got], ["heap.1.pid.9.my_heap_.pb.gz", "heap.2.pid.9.my_heap_.pb.gz"])
        self.assertEqual(got[0][1].types, [("Total malloc count", "count"), ("Total malloc size", "bytes"),
                                           ("Unreleased malloc count", "count"), ("Unreleased malloc size", "bytes")])
        self.assertEqual(got[0][1].samples, {("main", "work"): [2, 100, 2, 100]})
        self.assertEqual(got[1][1].samples, {("main", "work"): [2, 100, 1, 60], ("main", "idle"): [1, 8, 1, 8]})

    def test_choices(self):
        self.assertEqual([n for n, _ in self.profiles()][0], "perf.1.pid.7.pb.gz")
        only = self.run_shell("convert", "profile", self.trace, "--timestamps", "5,2000", "--alloc", "--pid", "9",
                              env={"TMPDIR": str(self.dir)}).stdout.decode()
        self.assertRegex(only, rf"^{self.dir}/profile-\w+/heap\.1\.pid\.9\.my_heap_\.pb\.gz\n$")
        for flags in (["--pid", "8"], ["--alloc", "--timestamps", "200"], ["--java-heap"]):
            self.fails("convert", "profile", self.trace, *flags, text="no call stacks or heaps of what was asked for")
        self.fails("convert", "profile", self.empty, text="no call stacks or heaps")
        self.fails("convert", "profile", self.trace, "out", text="use --output-dir out")
        self.fails("convert", "profile", self.trace, "--output-dir", self.trace, text="Not a directory")

    def test_firefox(self):
        doc = json.loads(self.convert("firefox", self.trace))
        threads = {t["name"]: t for t in doc["threads"]}
        self.assertEqual(sorted(threads), ["helper", "seven"])
        t = threads["seven"]
        stacks = collections.Counter()
        for stack in t["samples"]["stack"]:
            path = []
            while stack is not None:
                func = t["frameTable"]["func"][t["stackTable"]["frame"][stack]]
                path.insert(0, t["stringArray"][t["funcTable"]["name"][func]])
                stack = t["stackTable"]["prefix"][stack]
            stacks[" ".join(path)] += 1
        self.assertEqual({" ".join(re.findall(r"main|work|idle", k)): v for k, v in stacks.items()},
                         {"main work": 2, "main idle": 1})


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
        self.fails("convert", "systrace", SCHED, out, "--machine", "nobody", text="has no machine")
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

    def test_terminated(self):
        """SIGTERM leaves no part of a file either."""
        out, parts = self.dir / "ended.json", lambda: list(self.dir.glob("ended.json.part*"))
        for _ in range(20):
            p = subprocess.Popen([harness.SHELL, "convert", "json", MACHINES, out], stderr=subprocess.DEVNULL)
            while p.poll() is None and not parts():
                time.sleep(0.001)
            p.send_signal(signal.SIGTERM)
            p.wait(timeout=60)
            self.assertEqual(parts(), [])
            if p.returncode:
                return
        self.fail("never caught it at work")

    def test_standard_output_by_name(self):
        """Others write to the same file before and after."""
        out = self.dir / "shared"
        want = self.convert("systrace", SCHED)
        with open(out, "wb") as f:
            for _ in range(2):
                f.write(b"other\n")
                f.flush()
                subprocess.run([harness.SHELL, "convert", "systrace", SCHED, "/dev/stdout"], stdout=f,
                               stderr=subprocess.DEVNULL, check=True, timeout=60)
        self.assertEqual(out.read_bytes(), (b"other\n" + want) * 2)

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


class Stacks(Case):
    """Call stacks as lines and as a picture, from formats of other tools."""
    LINES = {"main;a;b <c> & d": 7, "main;a": 2, "main;é": 5, "other": 1}

    def setUp(self):
        self.folded = self.dir / "in.folded"
        self.folded.write_bytes("".join(f"{k} {v}\n" for k, v in self.LINES.items()).encode() + b"main;x\xff\x01y 3\n")

    def collapsed(self, trace):
        out = self.run_shell("convert", "collapsed", trace).stdout.decode()
        return {k: int(v) for k, v in (line.rsplit(" ", 1) for line in out.splitlines())}

    def test_there_and_back(self):
        self.assertEqual(self.collapsed(self.folded), {**self.LINES, "main;x? y": 3})

    def test_profile_of_node(self):
        """Self values of a .cpuprofile, counted from its own nodes."""
        trace = harness.DATA / "json" / "node.cpuprofile"
        profile = json.loads(trace.read_text())
        nodes = {n["id"]: n for n in profile["nodes"]}
        parent = {c: n["id"] for n in profile["nodes"] for c in n.get("children", [])}
        want = collections.Counter()
        for sample in profile["samples"]:
            path, at = [], sample
            while at:
                path.append(nodes[at]["callFrame"]["functionName"] or "[unknown]")
                at = parent.get(at)
            want[";".join(reversed(path))] += 1
        self.assertEqual(self.collapsed(trace), dict(want))

    def test_slices(self):
        """Without call stacks: time in slices themselves."""
        trace = self.dir / "s.json"
        trace.write_text('[{"ph":"X","ts":0,"dur":10,"pid":1,"tid":2,"name":"a;b"},'
                         '{"ph":"X","ts":2,"dur":3,"pid":1,"tid":2,"name":"c"},'
                         '{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"T"}}]')
        self.assertEqual(self.collapsed(trace), {"T;a:b": 7000, "T;a:b;c": 3000})

    def test_flame_graph(self):
        svg = xml.etree.ElementTree.fromstring(self.run_shell("convert", "flamegraph", self.folded).stdout)
        boxes = {g.find("{*}title").text: (float(g.find("{*}rect").get("x")), float(g.find("{*}rect").get("width")),
                                           float(g.find("{*}rect").get("y"))) for g in svg.findall(".//{*}g")}
        widths = {title.split(" (")[0]: round(w * 18 / 1180, 1) for title, (_, w, _) in boxes.items()}
        self.assertEqual(widths, {"all": 18, "main": 17, "a": 9, "b <c> & d": 7, "é": 5, "x? y": 3, "other": 1})
        title = {t.split(" (")[0]: t for t in boxes}
        inner, outer = boxes[title["b <c> & d"]], boxes[title["a"]]
        self.assertGreaterEqual(inner[0] + 0.01, outer[0])
        self.assertLessEqual(inner[0] + inner[1], outer[0] + outer[1] + 0.01)
        self.assertGreater(inner[2], outer[2])

    def test_nothing(self):
        self.fails("convert", "flamegraph", self.empty, text="neither call stacks nor slices")
        for form in ("flamegraph-off-cpu", "collapsed-off-cpu", "flamegraph-wakers", "collapsed-wakers"):
            self.fails("convert", form, self.folded, text="no stacks of blocked threads")


if __name__ == "__main__":
    harness.main()

"""perf.data beside what Perfetto makes of it (NAME.reference.gz, where it reads the file) and what `perf script` says
(NAME.script.gz): samples, call stacks, mappings, counters; the fields of tracepoints; files cut anywhere."""
import csv
import glob
import gzip
import io
import os
import re
import struct
import subprocess
import tempfile
import unittest

from perf_writer import (CALLCHAIN, CGROUP, CPU, DEFERRED_MARK, IP, KERNEL, KERNEL_MARK, PERIOD, REGS_USER, STACK_USER, TID, TIME, USER, USER_MARK,
                         padded, record, sample, text_feature, trailer, u64, write_perf)

SHELL = os.environ["TP_SHELL"]
HERE = os.path.join(os.environ["MERIDIAN_DATA"], "perf")
SHARED = os.path.join(os.environ["MERIDIAN_DATA"], "..", "..", "..", "shared", "data", "perf")
SAMPLE = re.compile(r"^ *(?P<comm>\S.*?) +(?P<pid>-?\d+)/(?P<tid>-?\d+) +(?:\[(?P<cpu>\d+)\] +)?(?P<s>\d+)\.(?P<ns>\d{9}): +(?P<period>\d+) +(?P<event>[\w:-]+): ?(?P<text>.*)$")
SWITCH = re.compile(r"prev_comm=(?P<prev_comm>.*) prev_pid=(?P<prev_pid>\d+) prev_prio=(?P<prev_prio>\d+) prev_state=\S+ ==> next_comm=(?P<next_comm>.*) next_pid=(?P<next_pid>\d+) next_prio=(?P<next_prio>\d+)(?: |$)")
# Perfetto loses side-band records that come last; ours keep them.
ITS_OWN = {"overwrite"}
ENOUGH = 500  # samples compared with perf script
TEXT = re.compile(r"(?<![\w.])((?:\w+_)?comm)=(.*?)(?= \w+=| \[|$)")
PRINTED_AS = {("sched:sched_process_fork", "pid"): "parent_pid", ("sched:sched_process_fork", "comm"): "parent_comm"}


def query(sql, path):
    done = subprocess.run([SHELL, "query", path, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True)
    if done.returncode:
        raise AssertionError(f"{path}: {sql}: {done.stderr}")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def samples():
    return {os.path.basename(p)[:-5]: p for folder in (SHARED, HERE) for p in glob.glob(os.path.join(folder, "*.data")) if os.path.isfile(p)}


def reference(path):
    """{part: rows}, empty where Perfetto does not read the file."""
    parts, name = {}, None
    with gzip.open(path[:-5] + ".reference.gz", "rt") as f:
        for line in f:
            if line.startswith("## "):
                parts[name := line[3:].strip()] = []
            elif name:
                parts[name].append(line)
    return {k: list(csv.DictReader(v)) for k, v in parts.items()}


def script(path):
    with gzip.open(path[:-5] + ".script.gz", "rt", errors="replace") as f:
        return [m for m in map(SAMPLE.match, f.read().splitlines()) if m and "PERF_RECORD" not in m.string]


def blocks(path):
    """(ts, tid, period, [addresses, the leaf's first]) of each sample that perf script prints."""
    out, address = [], re.compile(r"\s+([0-9a-f]{1,16}) \S.* \(\S.*\)$")
    with gzip.open(path[:-5] + ".script.gz", "rt", errors="replace") as f:
        for line in f.read().splitlines():
            m, frame = SAMPLE.match(line), address.match(line)
            if m and "PERF_RECORD" not in line:
                own = re.search(r"(?:^|\s)([0-9a-f]{4,16}) \S+ \(\S+\)$", m["text"])
                out.append((int(m["s"]) * 10**9 + int(m["ns"]), int(m["tid"]) % 2**32, int(m["period"]), [int(own[1], 16)] if own else []))
            elif frame and out:
                out[-1][3].append(int(frame[1], 16))
    return out


def stacks(mappings, frames, sites):
    """{callsite: [(mapping, rel_pc), ...] from the root}"""
    names = {m["id"]: (m["name"], m["start"]) for m in mappings}
    frame = {f["id"]: (names[f["mapping"]], f["rel_pc"]) for f in frames}
    out = {}
    for s in sites:
        out[s["id"]] = out.get(s["parent_id"], []) + [frame[s["frame_id"]]]
    return out


PARTS = {
    "perf_sample": "SELECT s.id, s.ts, t.tid, p.pid, s.cpu, s.cpu_mode, s.callsite_id, s.perf_session_id FROM perf_sample s JOIN thread t USING (utid) LEFT JOIN process p USING (upid) ORDER BY s.id",
    "mapping": "SELECT id, build_id, exact_offset, start_offset, start, end, load_bias, name FROM stack_profile_mapping",
    "frame": "SELECT id, name, mapping, rel_pc FROM stack_profile_frame",
    "callsite": "SELECT id, depth, parent_id, frame_id FROM stack_profile_callsite",
    "counter": "SELECT c.ts, c.value, k.name FROM counter c JOIN track k ON c.track_id = k.id",
    "perf_session": "SELECT id, cmdline FROM perf_session",
}


class Perf(unittest.TestCase):
    def test_as_perfetto_reads_them(self):
        checked = 0
        for name, path in sorted(samples().items()):
            want = reference(path)
            if name in ITS_OWN or len(want.get("perf_sample", [])) == 0:
                continue
            with self.subTest(name):
                got = {part: query(sql, path) for part, sql in PARTS.items()}
                for part in ("mapping", "frame", "callsite", "perf_session", "counter"):
                    self.assertEqual(len(got[part]), len(want[part]), part)
                self.assertEqual([r["cmdline"] for r in got["perf_session"]], [r["cmdline"] for r in want["perf_session"]])
                columns = [c for c in got["mapping"][0] if c != "id"]
                self.assertEqual(sorted([r[c] for c in columns] for r in got["mapping"]), sorted([r[c] for c in columns] for r in want["mapping"]))
                ours, theirs = (stacks(x["mapping"], x["frame"], x["callsite"]) for x in (got, want))
                rows = [[[r[c] for c in ("ts", "tid", "pid", "cpu", "cpu_mode", "perf_session_id")] + [s.get(r["callsite_id"])] for r in x["perf_sample"]]
                        for x, s in ((got, ours), (want, theirs))]
                self.assertEqual(rows[0], rows[1])
                self.assertEqual(sorted((r["ts"], float(r["value"])) for r in got["counter"]), sorted((r["ts"], float(r["value"])) for r in want["counter"]))
                checked += len(rows[0])
        self.assertGreater(checked, 300)

    def test_every_sample_of_perf_script(self):
        checked = 0
        for name, path in sorted(samples().items()):
            if name == "callgraph-dwarf":
                continue  # perf script ended early there; the test above has all its samples
            want = script(path)
            with self.subTest(name):
                got = query("SELECT s.ts, t.tid, p.pid, s.cpu FROM perf_sample s JOIN thread t USING (utid) LEFT JOIN process p USING (upid)", path)
                times = sorted(int(m["s"]) * 10**9 + int(m["ns"]) for m in want)
                if name.startswith("group"):  # perf script shows each value of a group as a line of its own
                    self.assertEqual(sorted({int(r["ts"]) for r in got}), sorted(set(times)))
                else:
                    self.assertEqual(sorted((int(r["ts"]), int(r["tid"]), int(r["pid"])) for r in got),
                                     sorted((int(m["s"]) * 10**9 + int(m["ns"]), int(m["tid"]) % 2**32, int(m["pid"]) % 2**32) for m in want))
                checked += len(got)
        self.assertGreater(checked, ENOUGH)

    def test_as_many_of_each_event(self):
        """Counts per event, first and last times, as perf script has them."""
        checked = 0
        for name, path in sorted(samples().items()):
            if name == "callgraph-dwarf" or name.startswith("group"):
                continue  # see above
            want = {}
            for m in script(path):
                ts = int(m["s"]) * 10**9 + int(m["ns"])
                n, first, last = want.get(m["event"], (0, ts, ts))
                want[m["event"]] = (n + 1, min(first, ts), max(last, ts))
            with self.subTest(name):
                got = {}
                for r in query("SELECT k.name, count(*) AS n, min(s.ts) AS first, max(s.ts) AS last FROM perf_sample s JOIN (SELECT DISTINCT name, "
                               "extract_arg(dimension_arg_set_id, 'perf_session_id') AS id FROM track WHERE type GLOB 'perf_*_counter') k "
                               "ON k.id = s.perf_session_id GROUP BY k.name", path):
                    got[re.sub(r":[a-zA-Z]+$", "", r["name"]) if r["name"] not in want else r["name"]] = (int(r["n"]), int(r["first"]), int(r["last"]))
                self.assertEqual(got, {re.sub(r":$", "", k): v for k, v in want.items()})
                checked += len(got)
        self.assertGreaterEqual(checked, 15)

    def chain(self, site, at):
        """[(rel_pc, where the mapping would begin if it had the whole file; None: nothing is known there)], the leaf first."""
        out = []
        while at in site:
            at, place = site[at]
            out.append(place)
        return out

    def same_chain(self, addresses, ours):
        """Addresses of callers lie behind their call; in what a process has inherited perf knows the file, which Perfetto's rule does not."""
        caller = 0
        for address, (rel_pc, start) in zip(addresses, ours):
            at = rel_pc + (caller if address else 0)
            if not (address in (at, at + start, (at + start) % 2**64) if start is not None else (address - at) % 4096 == 0):
                return False
            caller = 1
        return len(addresses) == len(ours)

    def test_periods_and_addresses(self):
        """What each sample counts, and each address of its stack, as perf script has them."""
        counts = ("SELECT p.ts, t.tid, x.period, s.callsite_id FROM __intrinsic_profiler_sample p JOIN perf_sample s ON s.id = p.id JOIN thread t USING (utid) "
                  "JOIN __intrinsic_profiler_counter_set USING (counter_set_id) JOIN (SELECT id AS counter_id, value - lag(value, 1, 0) OVER "
                  "(PARTITION BY track_id ORDER BY id) AS period FROM counter) x USING (counter_id)")
        periods, addresses = 0, 0
        for name, path in sorted(samples().items()):
            if name.startswith("group"):
                continue  # READ has values in place of periods
            with self.subTest(name):
                got = {}
                for r in query(counts, path):
                    got.setdefault((int(r["ts"]), int(r["tid"]), float(r["period"])), []).append(r["callsite_id"])
                start = {m["id"]: int(m["start"]) - int(m["exact_offset"]) if m["name"] else None for m in query(PARTS["mapping"], path)}
                frame = {f["id"]: (int(f["rel_pc"]), start[f["mapping"]]) for f in query(PARTS["frame"], path)}
                site = {c["id"]: (c["parent_id"], frame[c["frame_id"]]) for c in query(PARTS["callsite"], path)}
                for ts, tid, period, chain in blocks(path):
                    self.assertIn((ts, tid, float(period)), got)
                    periods += 1
                    if chain and name not in ("callgraph-dwarf", "uprobe"):  # perf unwinds those of the first; the other's are places of probes
                        ours = [self.chain(site, at) for at in got[(ts, tid, float(period))]]
                        self.assertTrue(any(self.same_chain(chain, x) for x in ours), f"{name} at {ts}: {chain} is none of {ours}")
                        addresses += len(chain)
        self.assertGreater(periods, 300)
        self.assertGreater(addresses, ENOUGH)

    def test_tracepoints_are_kernel_events(self):
        checked = 0
        for name, path in sorted(samples().items()):
            want = [m for m in script(path) if m["event"] == "sched:sched_switch"]
            if not want:
                continue
            with self.subTest(name):
                fields = ["prev_comm", "prev_pid", "prev_prio", "next_comm", "next_pid", "next_prio"]
                columns = ", ".join(f"extract_arg(e.arg_set_id, '{f}') AS {f}" for f in fields)
                got = query(f"SELECT e.ts, c.cpu, {columns} FROM ftrace_event e JOIN cpu c USING (ucpu) WHERE e.name = 'sched_switch'", path)
                ours = sorted([int(r["ts"])] + [r[f] for f in fields] for r in got)
                theirs = sorted([int(m["s"]) * 10**9 + int(m["ns"])] + [s[f] for f in fields] for m in want for s in [SWITCH.search(m["text"])])
                self.assertEqual(ours, theirs)
                slices = query("SELECT count(*) AS n FROM sched_slice", path)
                self.assertGreater(int(slices[0]["n"]), len(want) / 2)
                checked += len(want)
        self.assertGreater(checked, 100)

    def test_fields_of_tracepoints(self):
        """Every name=number in what perf script prints of a tracepoint is an arg of the event, and so are the names of threads."""
        checked, unknown = 0, set()
        for name, path in sorted(samples().items()):
            want = [m for m in script(path) if ":" in m["event"] and m["cpu"] and "sched_switch" not in m["event"]]
            if not want:
                continue
            with self.subTest(name):
                ours = {}
                for r in query("SELECT e.ts, c.cpu, e.name, a.key, a.display_value AS v FROM ftrace_event e JOIN cpu c USING (ucpu) "
                               "LEFT JOIN args a USING (arg_set_id)", path):
                    ours.setdefault((int(r["ts"]), int(r["cpu"]), r["name"]), {}).setdefault(r["key"], set()).add(r["v"])
                for m in want:
                    args = ours[(int(m["s"]) * 10**9 + int(m["ns"]), int(m["cpu"]), m["event"].split(":")[1])]
                    for key, value in re.findall(r"(?<![\w.])([a-z_]\w*)=(-?\d+)(?=[ ,\]]|$)", m["text"]):
                        key = PRINTED_AS.get((m["event"], key), key)
                        if key in args:
                            self.assertIn(str(int(value)), args[key], f"{key} in {m.string}")
                            checked += 1
                        else:
                            unknown.add((m["event"], key))
                    for key, value in TEXT.findall(m["text"]):
                        self.assertIn(value, args[PRINTED_AS.get((m["event"], key), key)], f"{key} in {m.string}")
        self.assertEqual(unknown, set())
        self.assertGreater(checked, 20)

    def test_comms(self):
        """The last name that the recording gives a thread, by a record or a sample, is its name."""
        comm = re.compile(r" PERF_RECORD_COMM(?: exec)?: (.*):-?\d+/(\d+)$")
        checked = 0
        for name, path in sorted(samples().items()):
            if name in ITS_OWN or not os.path.exists(path[:-5] + ".script.gz"):
                continue
            want = {}
            with gzip.open(path[:-5] + ".script.gz", "rt", errors="replace") as f:
                for line in f.read().splitlines():
                    if (m := comm.search(line)) and not m[1].startswith("kworker/"):  # /proc adds what one works at
                        want[m[2]] = m[1]
            with self.subTest(name):
                got = {}
                for r in query("SELECT tid, name FROM thread", path):
                    got.setdefault(r["tid"], set()).add(r["name"])
                self.assertEqual({tid: c for tid, c in want.items() if c not in got.get(tid, ())}, {})
            checked += len(want)
        self.assertGreater(checked, 20)

    def test_folder_of_recording_threads(self):
        """perf record --threads: records in a file a thread. A folder that is cut says so."""
        path = os.path.join(SHARED, "threads.data")
        if not os.path.isdir(path):
            self.skipTest("the sample is not here")
        samples = "SELECT s.ts, t.tid, p.pid, s.cpu FROM perf_sample s JOIN thread t USING (utid) LEFT JOIN process p USING (upid)"
        want = sorted((int(m["s"]) * 10**9 + int(m["ns"]), int(m["tid"]) % 2**32) for m in script(path))
        self.assertGreater(len(want), 10)
        self.assertEqual(sorted((int(r["ts"]), int(r["tid"])) for r in query(samples, path)), want)
        with tempfile.TemporaryDirectory() as d:
            for name in ("data", "data.0", "data.1"):
                with open(os.path.join(path, name), "rb") as f, open(os.path.join(d, name), "wb") as out:
                    out.write(f.read())
            told = "SELECT value FROM stats WHERE name = 'perf_data_truncated'"
            os.mkfifo(os.path.join(d, "data.7"))  # nobody writes into it
            self.assertEqual(query(told, d), [])
            os.truncate(os.path.join(d, "data.0"), os.path.getsize(os.path.join(d, "data.0")) - 3)
            self.assertEqual(query(told, d), [{"value": "1"}])
            fewer = sorted((int(r["ts"]), int(r["tid"])) for r in query(samples, d))
            self.assertLess(set(fewer), set(want))
            os.unlink(os.path.join(d, "data.1"))
            self.assertLess(len(query(samples, d)), len(fewer))

    def test_wall_clock(self):
        path = samples()["clockid"]  # recorded with -k CLOCK_MONOTONIC: the file relates it to the wall clock
        with open(path, "rb") as f:
            data = f.read()
        data_at, data_size = struct.unpack_from("<QQ", data, 40)
        bits = [b for b in range(256) if data[72 + b // 8] >> b % 8 & 1]
        at, _ = struct.unpack_from("<QQ", data, data_at + data_size + 16 * bits.index(29))
        _, clock, wall, own = struct.unpack_from("<IIQQ", data, at)
        self.assertEqual(clock, 1)
        rows = query(f"SELECT to_realtime({own}) AS r, to_monotonic({own}) AS m", path)
        self.assertEqual(rows[0], {"r": str(wall), "m": str(own)})
        self.assertEqual(query("SELECT name FROM stats WHERE name = 'clock_sync_unrelatable_clock_domains' AND value > 0", path), [])

    def test_machine(self):
        rows = query("SELECT m.name, m.release, m.arch, m.num_cpus, m.system_ram_bytes FROM machine m", samples()["cpu-clock-g"])
        self.assertEqual(len(rows), 1)
        self.assertRegex(rows[0]["release"], r"^6\.1\.")
        self.assertEqual((rows[0]["arch"], rows[0]["num_cpus"]), ("x86_64", "2"))
        self.assertEqual(int(rows[0]["system_ram_bytes"]) % 1024, 0)

    def test_both_byte_orders(self):
        """One recording, written in both orders: the same rows."""
        def written(order):
            def p(fmt, *values):
                return struct.pack(order + fmt, *values)

            def record(kind, misc, body):
                return p("IHH", kind, misc, len(body) + 8) + body
            sample_type = 1 | 2 | 4 | 32 | 128 | 256  # IP, TID, TIME, CALLCHAIN, CPU, PERIOD
            flags = 1 << 18  # sample_id_all; bit fields begin at the other end of a big-endian word
            if order == ">":
                flags = int(f"{flags:064b}"[::-1], 2)
            attr = p("IIQQQQQ", 1, 64, 0, 1000, sample_type, 0, flags) + bytes(16)
            trailer = p("IIQII", 7, 8, 1000, 1, 0)
            records = record(3, 0, p("II", 7, 8) + b"worker\0\0" + trailer)
            records += record(1, 2, p("IIQQQ", 7, 8, 0x400000, 0x10000, 0x1000) + b"/bin/x\0\0" + trailer)
            for i in range(3):
                chain = [2**64 - 512, 0x400100 + i, 0x400204]
                records += record(9, 2, p("QIIQIIQQ", chain[1], 7, 8, 2000 + i, 1, 0, 500, len(chain)) + p(f"{len(chain)}Q", *chain))
            head = 104 + len(attr) + 16
            magic = b"PERFILE2" if order == "<" else b"2ELIFREP"
            return (magic + p("QQ", 104, len(attr) + 16) + p("QQQQQQ", 104, len(attr) + 16, head, len(records), 0, 0) + bytes(32) +
                    attr + p("QQ", 0, 0) + records)
        answers = []
        with tempfile.TemporaryDirectory() as d:
            for order in "<>":
                path = os.path.join(d, "x")
                with open(path, "wb") as f:
                    f.write(written(order))
                answers.append([query(sql, path) for sql in PARTS.values()])
        self.assertEqual(answers[0], answers[1])
        self.assertEqual([(r["ts"], r["tid"], r["cpu"], r["cpu_mode"]) for r in answers[0][0]], [(str(2000 + i), "8", "1", "user") for i in range(3)])
        self.assertEqual([r["rel_pc"] for r in answers[0][2]], [str(0x1203), str(0x1100), str(0x1101), str(0x1102)])

    def made(self, *args, **kw):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        path = os.path.join(d.name, "made.data")
        write_perf(path, *args, **kw)
        return path

    def test_rounds(self):
        """What each CPU's buffer held, one after the other: the order is that of time, of equal times that of the file. A record that
        comes later than perf's rounds allow is put into its place as well."""
        rounds = [[(2000, 1), (2010, 1), (2020, 1)], [(2005, 2), (2010, 2), (2030, 2)], None, [(2030, 1), (2040, 1)], [(2030, 3), (2035, 2)], None,
                  [(2100, 1)], [(2050, 2), (2200, 2)], None, [(2001, 9)], None, None, [(2060, 9)]]
        records = [r for part in rounds for r in ([record(68, 0, b"")] if part is None else [sample(ts, 0x40, [], tid=tid) for ts, tid in part])]
        want = sorted((t for part in rounds if part for t in part), key=lambda t: t[0])
        got = query("SELECT ts, tid FROM perf_sample JOIN thread USING (utid) ORDER BY perf_sample.id",
                    self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN, records))
        self.assertEqual([(int(r["ts"]), int(r["tid"])) for r in got], want)

    def test_switches(self):
        """--switch-events. Of a whole CPU: who goes names who comes, and who came first is known by its switch in. Of single threads:
        with the CPU slices of those, without it only their states."""
        OUT, PREEMPTED = 1 << 13, 1 << 14
        wide = lambda ts, tid, other, misc: record(15, misc, struct.pack("<II", 7, other) + trailer(ts, tid=tid))
        single = lambda ts, tid, misc: record(14, misc, trailer(ts, tid=tid))
        kind = IP | TID | TIME | CPU | PERIOD | CALLCHAIN
        slices = ("SELECT ts, dur, tid, end_state FROM sched_slice JOIN thread USING (utid) ORDER BY ts",
                  "SELECT ts, dur, tid, state FROM thread_state JOIN thread USING (utid) ORDER BY ts, tid")
        rows = lambda path: [[tuple(r.values()) for r in query(sql, path)] for sql in slices]
        told = "SELECT name FROM stats WHERE name GLOB '*sched*' AND value > 0"
        path = self.made(kind, [wide(1000, 8, 0, 0), wide(1010, 8, 9, OUT | PREEMPTED), wide(1010, 9, 8, 0), wide(1050, 9, 8, OUT), wide(1050, 8, 9, 0)])
        got, states = rows(path)
        self.assertEqual(got, [("1000", "10", "8", "R+"), ("1010", "40", "9", "[NULL]"), ("1050", "-1", "8", "[NULL]")])
        self.assertEqual(states[:3], [("1000", "10", "8", "Running"), ("1010", "40", "8", "R+"), ("1010", "40", "9", "Running")])
        self.assertEqual(query(told, path), [])
        path = self.made(kind, [single(1000, 8, 0), single(1010, 8, OUT | PREEMPTED), single(1020, 9, 0), single(1025, 9, OUT), single(1030, 8, 0)])
        got, states = rows(path)
        self.assertEqual(got, [("1000", "10", "8", "R+"), ("1020", "5", "9", "[NULL]"), ("1030", "-1", "8", "[NULL]")])
        self.assertEqual([s for s in states if s[2] == "8"], [("1000", "10", "8", "Running"), ("1010", "20", "8", "R+"), ("1030", "-1", "8", "Running")])
        self.assertEqual(query(told, path), [])
        without = lambda ts, tid, misc: record(14, misc, struct.pack("<IIQ", 7, tid, ts))
        path = self.made(IP | TID | TIME | PERIOD, [without(1000, 8, 0), without(1010, 8, OUT), without(1030, 8, 0)])
        got, states = rows(path)
        self.assertEqual(got, [])
        self.assertEqual(states, [("1000", "10", "8", "Running"), ("1010", "20", "8", "[NULL]"), ("1030", "-1", "8", "Running")])

    def test_model_of_the_cpus(self):
        """The features of the machine, also where neither release nor architecture is there."""
        path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN, [sample(2000, 0x40, [])],
                         features={7: struct.pack("<II", 4, 3), 8: text_feature("A fast one"), 10: u64(1000)})
        self.assertEqual([list(r.values()) for r in query("SELECT cpu, processor FROM cpu", path)], [["1", "A fast one"]])
        self.assertEqual([list(r.values()) for r in query("SELECT num_cpus, system_ram_bytes FROM machine", path)], [["4", "1024000"]])
        self.assertEqual(query("SELECT name FROM stats WHERE name = 'perf_features_skipped' AND value > 0", path), [])

    def test_simpleperf_addresses(self):
        """Android's recorder has return addresses point into the calls already."""
        frames = "SELECT rel_pc FROM stack_profile_frame ORDER BY 1"
        records = [sample(2000, 0x400100, [USER_MARK, 0x400100, 0x400204])]
        for features, want in (({}, 0x400203), ({129: b"\0"}, 0x400204)):
            path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN, records, features=features)
            self.assertEqual([int(r["rel_pc"]) for r in query(frames, path)], [0x400100, want])

    def test_the_old_format_is_told(self):
        path = self.made(IP, [])
        with open(path, "r+b") as f:
            f.write(b"PERFFILE")
        done = subprocess.run([SHELL, "query", path, "SELECT 1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("version 1", done.stderr)

    def test_control_groups(self):
        """The group of a sample is that of its process; it lies behind registers and stack."""
        container = "0123456789abcdef" * 4
        group = lambda number, path: record(19, 0, u64(number) + padded(path.encode()) + trailer(0))
        rest = lambda number: u64(2, 11, 22) + u64(16) + bytes(16) + u64(8) + u64(number)  # abi, two registers; size, stack, what is filled
        path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN | REGS_USER | STACK_USER | CGROUP,
                         [group(1, "/"), group(23, f"/system.slice/docker-{container}.scope"), sample(2000, 0x40, [], rest(23)),
                          sample(2001, 0x41, [], rest(99)), sample(2002, 0x42, [], b"", tid=9)], regs=0b101)
        args = {r["key"]: r["v"] for r in query("SELECT key, string_value AS v FROM args JOIN process USING (arg_set_id) WHERE pid = 7", path)}
        self.assertEqual(args["process.cgroup"], f"/system.slice/docker-{container}.scope")
        self.assertEqual((args["container.id"], args["container.runtime"]), (container, "docker"))
        stats = {(r["name"], r["idx"]): r["value"] for r in query("SELECT name, idx, value FROM stats WHERE name GLOB 'perf_*' AND value > 0", path)}
        self.assertEqual(stats[("perf_aux_ignored", "[NULL]")], "2")
        self.assertEqual(stats[("perf_record_skipped", "9")], "1")  # the last one is not all there

    def test_code_that_the_kernel_made(self):
        """Programs of BPF are frames with a name; those that nobody ran make no mapping."""
        made = lambda at, name, flags=0: record(17, 0, struct.pack("<QIHH", at, 0x100, 1, flags) + padded(name) + trailer(1000))
        path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN,
                         [made(0xffffffffc0001000, b"bpf_prog_a"), made(0xffffffffc0002000, b"bpf_prog_b"), record(18, 0, bytes(16) + trailer(1000)),
                          sample(2000, 0xffffffffc0001010, [KERNEL_MARK, 0xffffffffc0001010], misc=KERNEL),
                          made(0xffffffffc0001000, b"bpf_prog_a", 1), made(0xffffffffc0001000, b"bpf_prog_c"),
                          sample(2001, 0xffffffffc0001020, [KERNEL_MARK, 0xffffffffc0001020], misc=KERNEL)])
        rows = query("SELECT f.name, f.rel_pc, m.name AS mapping, m.end - m.start AS size FROM perf_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id "
                     "JOIN stack_profile_frame f ON f.id = c.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping ORDER BY s.ts", path)
        self.assertEqual([list(r.values()) for r in rows], [["bpf_prog_c", "16", "[bpf]", "256"], ["bpf_prog_c", "32", "[bpf]", "256"]])
        self.assertEqual(query("SELECT count(*) AS n FROM stack_profile_mapping", path)[0]["n"], "1")
        self.assertEqual(query("SELECT name FROM stats WHERE name GLOB 'perf_*' AND value > 0", path), [])

    def test_stacks_that_are_told_later(self):
        """The part in user space comes with a record of its own, for all samples of the thread with its cookie."""
        deferred = lambda time, cookie, ips, tid: record(22, USER, u64(cookie, len(ips)) + u64(*ips) + trailer(time, tid=tid))
        chain = lambda cookie: [KERNEL_MARK, 0xffffffff81000010, DEFERRED_MARK, cookie]
        path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN,
                         [record(10, USER, struct.pack("<IIQQQ", 7, 8, 0x400000, 0x10000, 0) + bytes(32) + padded(b"/bin/x") + trailer(0)),
                          sample(2000, 0xffffffff81000010, chain(5), misc=KERNEL), sample(2001, 0xffffffff81000010, chain(5), misc=KERNEL),
                          sample(2002, 0xffffffff81000010, chain(5), misc=KERNEL, tid=9), sample(2003, 0xffffffff81000010, chain(6), misc=KERNEL),
                          deferred(2010, 5, [0x400100, 0x400200], 8)])
        rows = query("SELECT s.ts, c.depth, p.depth AS up FROM perf_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id LEFT JOIN stack_profile_callsite p "
                     "ON p.id = c.parent_id ORDER BY s.ts", path)
        self.assertEqual([r["depth"] for r in rows], ["2", "2", "0", "0"])
        rows = query("SELECT DISTINCT f.rel_pc, m.name FROM stack_profile_frame f JOIN stack_profile_mapping m ON m.id = f.mapping WHERE m.name = '/bin/x' ORDER BY 1", path)
        self.assertEqual([list(r.values()) for r in rows], [[str(0xff), "/bin/x"], [str(0x1ff), "/bin/x"]])

    def test_areas_that_are_not_read(self):
        """Intel PT and its like: passed over and told, with what the kernel lost of it."""
        aux = lambda flags: record(11, 0, u64(0, 64, flags) + trailer(1000))
        path = self.made(IP | TID | TIME | CPU | PERIOD | CALLCHAIN,
                         [record(70, 0, struct.pack("<II", 1, 0) + u64(1)), aux(0), aux(1), aux(5), aux(8), record(71, 0, u64(64, 0, 0) + bytes(16)), b"\xff" * 64,
                          sample(2000, 0x40, [])])
        got = {r["name"]: r["value"] for r in query("SELECT name, value FROM stats WHERE name GLOB 'perf_*' AND value > 0", path)}
        self.assertEqual(got, {"perf_aux_ignored": "1", "perf_aux_truncated": "2", "perf_aux_partial": "1", "perf_aux_collision": "1",
                               "perf_dummy_mapping_used": "1"})
        self.assertEqual(query("SELECT count(*) AS n FROM perf_sample", path)[0]["n"], "1")

    def test_cut_anywhere(self):
        for name in ("cpu-clock-g", "zstd", "pipe"):
            with open(samples()[name], "rb") as f:
                whole = f.read()
            n_all = int(query("SELECT count(*) AS n FROM perf_sample", samples()[name])[0]["n"])
            with tempfile.TemporaryDirectory() as d:
                path = os.path.join(d, "cut.data")
                for at in list(range(8, 300, 61)) + list(range(300, len(whole), len(whole) // 12)):
                    with open(path, "wb") as f:
                        f.write(whole[:at])
                    done = subprocess.run([SHELL, "query", path, "SELECT (SELECT count(*) FROM perf_sample) AS n, (SELECT count(*) FROM stats WHERE "
                                           "name = 'perf_data_truncated') AS told"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True)
                    self.assertIn(done.returncode, (0, 1), f"{name} cut at {at}: {done.stderr}")
                    if done.returncode == 0:
                        n, told = map(int, done.stdout.splitlines()[1].split(","))
                        whole_record = name == "pipe"  # the end of a stream is the end: between records nothing is missing
                        self.assertTrue(n == n_all or told or whole_record, f"{name} cut at {at}: {n} samples and no word")
                    else:
                        self.assertRegex(done.stderr, r"perf\.data|format that is known")


if __name__ == "__main__":
    unittest.main()

"""What perf.data may hold, rule by rule, on made files of a few records."""
import csv
import io
import random
import resource
import shutil

import harness
import perf_writer
from perf_writer import (ADDR, AUX, BRANCH_STACK, CALLCHAIN, CGROUP, CODE_PAGE_SIZE, CPU, DATA_PAGE_SIZE, DATA_SRC, DEFERRED_MARK, FREQ, ID, IDENTIFIER, IP, KERNEL,
                         KERNEL_MARK, PERIOD, PHYS_ADDR, RAW, READ, REGS_INTR, REGS_USER, SAMPLE_ID_ALL, STACK_USER, STREAM_ID, TID, TIME, TRANSACTION,
                         USE_CLOCKID, USER, USER_MARK, WEIGHT_STRUCT, attr, magic, pack, padded, record, sample, text_feature, trailer, u64, write_events)
from trace_dat_writer import MAGIC, Event, Kernel, TraceDat

USUAL = IP | TID | TIME | CPU | PERIOD
DUMMIES = ("perf_dummy_mapping_used", "[NULL]")  # frames of samples in no mapping
TIMES = "SELECT ts FROM perf_sample ORDER BY ts"


def take(ts, ip=0x40, cpu=1, period=500, misc=USER):
    return record(9, misc, u64(ip) + pack("<IIQIIQ", 7, 8, ts, cpu, 0, period))


def mapped(ts, start, size, offset, name, pid=7, misc=USER):
    return record(1, misc, pack("<IIQQQ", pid, 8, start, size, offset) + padded(name) + trailer(ts))


def task(kind, ts, pid, ppid, tid, ptid):
    return record(kind, 0, pack("<IIIIQ", pid, ppid, tid, ptid, ts) + trailer(ts, pid=ppid, tid=ptid))


def named(ts, pid, tid, name):
    return record(3, 0, pack("<II", pid, tid) + padded(name) + trailer(ts, pid=pid, tid=tid))


class PerfRules(harness.Case):
    def setUp(self):
        super().setUp()
        self.event = [(attr(USUAL), [])]

    def made(self, *args, **kw):
        path = self.dir / "made.data"
        write_events(path, *args, **kw)
        return path

    def rows(self, path, sql):
        return [list(r.values()) for r in csv.DictReader(io.StringIO(self.run_shell("query", path, sql).stdout.decode()))]

    def told(self, path):
        return {(name, idx): int(n) for name, idx, n in self.rows(path, "SELECT name, idx, value FROM stats WHERE name GLOB 'perf_*' AND value > 0")}

    def test_attrs_of_any_age(self):
        for size in (64, 72, 80, 96, 104, 112, 120, 128, 136, 144):
            with self.subTest(size):
                path = self.made([(attr(USUAL, size=size), [])], [take(2000), take(2001)])
                self.assertEqual(self.rows(path, TIMES), [["2000"], ["2001"]])

    def test_several_events(self):
        """The id says of which event a record is, and so what it holds; that of an unknown one says nothing, 0 is the first."""
        short, long = USUAL | IDENTIFIER, USUAL | IDENTIFIER | ADDR | CALLCHAIN
        of_short = lambda ts, number: record(9, USER, u64(number, 0x40) + pack("<IIQIIQ", 7, 8, ts, 1, 0, 10))
        of_long = lambda ts, number: record(9, USER, u64(number, 0x50) + pack("<IIQQIIQQ", 7, 8, ts, 0xadd, 1, 0, 20, 0))
        comm = lambda ts, number, name: record(3, 0, pack("<II", 7, 8) + padded(name) + trailer(ts) + u64(number))
        words = pack("<I", 2) + b"".join(pack("<I", 8) + w.ljust(8, b"\0") for w in (b"perf", b"record"))
        path = self.made([(attr(short), [11, 12]), (attr(long, kind=0), [21, 22]), (attr(short, kind=0, config=1), [31]), (attr(short, kind=2, config=5), [41]),
                          (attr(short, kind=9, config=5), [51])],
                         [comm(0, 0, b"early"), of_short(2000, 11), of_long(2001, 22), of_short(2002, 99), comm(2003, 21, b"late"), of_short(2004, 12),
                          of_short(2005, 31)], features={11: words})
        self.assertEqual(self.rows(path, "SELECT ts, perf_session_id FROM perf_sample ORDER BY ts"), [["2000", "0"], ["2001", "1"], ["2004", "0"], ["2005", "2"]])
        self.assertEqual(self.told(path), {("perf_record_skipped", "9"): 1, DUMMIES: 4})
        self.assertEqual(self.rows(path, "SELECT timebase_unit, cmdline FROM __intrinsic_profiler_session"),
                         [[unit, "perf record"] for unit in ("ns", "cycles", "instructions", "count", "[NULL]")])
        self.assertEqual(self.rows(path, "SELECT name FROM thread WHERE tid = 8"), [["late"]])

    def test_ids_of_all_events_in_one_place(self):
        """Each event may have as many ids as there is room for in the file, but not all of them: it would take the square of the time."""
        path = self.made([(attr(USUAL), [])] * 300, [take(2000)])
        whole = bytearray(path.read_bytes())
        for i in range(300):
            at = 104 + 128 * (i + 1) - 16
            whole[at:at + 16] = u64(0, len(whole))
        path.write_bytes(whole)
        self.assertEqual(self.told(path).get(("perf_data_truncated", "0")), 1)
        self.assertEqual(self.rows(path, "SELECT count(*) FROM __intrinsic_profiler_session"), [["300"]])

    def test_ends_that_are_missing(self):
        path = self.made(self.event, [take(2000), take(2001), take(2002)[:-5]], died=True)
        self.assertEqual(self.rows(path, TIMES), [["2000"], ["2001"]])
        self.assertEqual([name for name, _ in self.told(path) if "truncated" in name], ["perf_data_truncated"])
        path = self.made(self.event, [take(2000), pack("<IHH", 9, 0, 4), take(2001)])  # a record without room for its header
        self.assertEqual(self.rows(path, TIMES), [["2000"]])
        self.assertEqual([name for name, _ in self.told(path) if "truncated" in name], ["perf_data_truncated"])

    def test_nothing_was_recorded(self):
        """A size of 0 is that of a recorder that died, where records follow; where the features do, there is nothing."""
        path = self.made(self.event, [], features={3: text_feature("host-a"), 4: text_feature("6.1.0")})
        self.assertEqual(self.rows(path, TIMES), [])
        self.assertEqual(self.told(path), {})
        self.assertEqual(self.rows(path, "SELECT name, release FROM machine"), [["host-a", "6.1.0"]])
        path = self.made(self.event, [take(2000)], features={3: text_feature("host-a")}, died=True)
        self.assertEqual(self.rows(path, TIMES), [["2000"]])

    def test_samples_that_are_alike(self):
        """They differ in their times; what is known of one holds for the next until a thread or a mapping changes."""
        path = self.made(self.event, [mapped(1000, 0, 0x1000, 0, b"/old"), take(2000), take(2001), take(2002, cpu=2), take(2003, ip=0x50), take(2004, misc=KERNEL),
                                      mapped(2005, 0, 0x1000, 0, b"/new"), take(2006), take(2007), task(4, 2008, 7, 7, 8, 8), task(7, 2009, 7, 1, 8, 1), take(2010), take(2011)])
        sql = "SELECT s.ts, s.cpu, s.cpu_mode, m.name, f.rel_pc, s.utid = (SELECT utid FROM perf_sample WHERE ts = 2000) FROM perf_sample s " \
              "JOIN stack_profile_callsite c ON c.id = s.callsite_id JOIN stack_profile_frame f ON f.id = c.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping ORDER BY 1"
        self.assertEqual(self.rows(path, sql), [
            ["2000", "1", "user", "/old", "64", "1"], ["2001", "1", "user", "/old", "64", "1"], ["2002", "2", "user", "/old", "64", "1"],
            ["2003", "1", "user", "/old", "80", "1"], ["2004", "1", "kernel", "", "64", "1"], ["2006", "1", "user", "/new", "64", "1"],
            ["2007", "1", "user", "/new", "64", "1"], ["2010", "1", "user", "/new", "64", "0"], ["2011", "1", "user", "/new", "64", "0"]])
        self.assertEqual(self.rows(path, "SELECT max(value) FROM counter GROUP BY track_id ORDER BY 1"), [["500.000000"], ["4000.000000"]])

    def test_recorded_by_the_time_of_day(self):
        """No snapshot ties it to another clock: trace time is the time of day."""
        path = self.made([(attr(USUAL, flags=SAMPLE_ID_ALL | USE_CLOCKID), [])], [take(1795354942067160110)])
        self.assertEqual(self.rows(path, "SELECT ts, to_realtime(ts), abs_time_str(ts), to_monotonic(ts) FROM perf_sample"),
                         [["1795354942067160110", "1795354942067160110", "2026-11-22T13:42:22.067160110", "[NULL]"]])

    def test_records_that_are_passed_over(self):
        """Those that nobody knows are counted; what follows need not be aligned."""
        path = self.made(self.event, [record(200, 0, b"abc"), take(2000), record(68, 0, b""), record(73, 0, u64(0)), take(2001)])
        self.assertEqual(self.rows(path, TIMES), [["2000"], ["2001"]])
        self.assertEqual(self.told(path), {("perf_unknown_record_type", "200"): 1, DUMMIES: 2})

    def test_records_that_are_too_short(self):
        for kind, size in ((1, 24), (2, 8), (3, 4), (4, 8), (5, 16), (7, 8), (10, 40), (12, 4), (13, 4), (15, 4), (17, 8), (19, 4), (22, 8)):
            with self.subTest(kind):
                path = self.made([(attr(USUAL, flags=0), [])], [record(kind, USER, bytes(size)), take(2000)])
                self.assertEqual(self.told(path), {("perf_record_skipped", str(kind)): 1, DUMMIES: 1})

    def stack(self, path, ts):
        return self.rows(path, f"WITH RECURSIVE up(id, n) AS (SELECT callsite_id, 0 FROM perf_sample WHERE ts = {ts} UNION ALL SELECT parent_id, n + 1 FROM "
                         "stack_profile_callsite JOIN up USING (id) WHERE parent_id IS NOT NULL) SELECT m.name, f.rel_pc FROM up JOIN stack_profile_callsite s "
                         "ON s.id = up.id JOIN stack_profile_frame f ON f.id = s.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping ORDER BY n")

    def test_mappings(self):
        """A later mapping cuts those before it. A build id is the record's own, that of the process, or that of all. The kernel is
        mapped once, by what it is called; callers are where they go on, less one."""
        build = lambda pid, number, name: record(67, USER, pack("<i", pid) + number.ljust(24, b"\0") + padded(name))
        with_id = record(10, USER | 1 << 14, pack("<IIQQQ", 7, 8, 0x9000, 0x1000, 0) + b"\x03\0\0\0\x11\x22\x33".ljust(24, b"\0") +
                         pack("<II", 5, 2) + padded(b"/c") + trailer(1002))
        kernel, everyone = 0xffffffff81000000, 0xffffffff
        chain = lambda ts, *ips: record(9, USER, u64(ips[0]) + pack("<IIQIIQQ", 7, 8, ts, 1, 0, 5, len(ips)) + u64(*ips))
        path = self.made([(attr(USUAL | CALLCHAIN), [])],
                         [mapped(1000, 0x1000, 0x3000, 0, b"/a"), mapped(1001, 0x2000, 0x1000, 0x500, b"/b"), with_id,
                          mapped(1003, kernel, 0x1000000, kernel, b"[kernel.kallsyms]_text", everyone, KERNEL),
                          mapped(1003, kernel + 2**28, 0x1000, 0, b"[kernel.kallsyms]_text", everyone, KERNEL),
                          mapped(1004, 0, 2**63, 0, b"[bpf]", everyone, KERNEL), mapped(1005, 0xa000, 0x1000, 0, b"/d", 9),
                          mapped(1005, 0xffffffffc0000000, 0x1000, 0, b"[mod]", everyone, KERNEL),
                          chain(2000, 0x1100, 0x2101, 0x3101, 1), chain(2001, KERNEL_MARK, kernel + 16, 0xffffffffc0000011, USER_MARK, 0x9010, 0)],
                         features={2: build(-1, b"\xaa" * 20, b"/a") + build(7, b"\xbb" * 20, b"/a") + build(-1, b"\xcc" * 20, b"/b") +
                                   build(9, b"\xdd" * 20, b"/b")})
        self.assertEqual(self.rows(path, "SELECT name, build_id, exact_offset, start FROM stack_profile_mapping WHERE name <> ''"),
                         [["/a", "bb" * 20, "0", str(0x1000)], ["/b", "cc" * 20, str(0x500), str(0x2000)], ["/c", "112233", "0", str(0x9000)],
                          ["[kernel.kallsyms]_text", "", "0", str(kernel - 2**64)], ["/d", "", "0", str(0xa000)], ["[mod]", "", "0", str(0xffffffffc0000000 - 2**64)]])
        self.assertEqual(self.stack(path, 2000), [["/a", str(0x100)], ["/b", str(0x600)], ["/a", str(0x2100)], ["", "0"]])
        self.assertEqual(self.stack(path, 2001), [["[kernel.kallsyms]_text", "16"], ["[mod]", "16"], ["/c", "15"], ["", "0"]])
        self.assertEqual(self.told(path), {DUMMIES: 2})

    def test_mappings_in_time(self):
        """Records without a time say what was there at the start, wherever they stand; of equal times the order is the file's."""
        for records, dummies in (([take(2000, 0x1100), mapped(0, 0x1000, 0x1000, 0, b"/a")], {}), ([mapped(2000, 0x1000, 0x1000, 0, b"/a"), take(2000, 0x1100)], {}),
                                 ([take(2000, 0x1100), mapped(2000, 0x1000, 0x1000, 0, b"/a")], {DUMMIES: 1})):
            self.assertEqual(self.told(self.made(self.event, records)), dummies)

    def test_losses(self):
        """By the CPU of the trailer; what a filter has dropped is none."""
        at = lambda cpu: trailer(1000, cpu=cpu)
        path = self.made(self.event, [record(2, 0, u64(0, 5) + at(1)), record(13, 0, u64(3) + at(1)), record(13, 1 << 15, u64(100) + at(1)),
                                 record(2, 0, u64(0, 7) + at(0)), record(5, 0, u64(1, 2, 3) + at(1)), record(6, 0, u64(1, 2, 3) + at(1)), take(2000)])
        self.assertEqual(self.told(path), {("perf_cpu_lost_records", "1"): 8, ("perf_cpu_lost_records", "0"): 7, ("perf_throttled", "1"): 1, DUMMIES: 1})

    def test_threads_and_processes(self):
        path = self.made(self.event, [named(0, 7, 7, b"old"), task(7, 0, 7, 7, 8, 7), task(7, 1000, 7, 7, 9, 7), task(7, 1010, 20, 7, 20, 7),
                                 named(1011, 20, 20, b"kid"), named(1012, 7, 9, b"helper"), task(4, 1020, 20, 20, 20, 20), task(4, 1030, 7, 7, 9, 9),
                                 record(12, 0, pack("<II", 7, 30) + trailer(1040)), take(2000)])
        none = "[NULL]"
        self.assertEqual(self.rows(path, "SELECT tid, pid, thread.name, thread.start_ts, thread.end_ts FROM thread JOIN process USING (upid) WHERE tid > 0 ORDER BY tid"),
                         [["7", "7", "old", none, none], ["8", "7", none, none, none], ["9", "7", "helper", "1000", "1030"], ["20", "20", "kid", "1010", "1020"],
                          ["30", "7", none, none, none]])
        self.assertEqual(self.rows(path, "SELECT p.pid, q.pid AS parent, p.start_ts, p.end_ts FROM process p JOIN process q ON p.parent_upid = q.upid"),
                         [["20", "7", "1010", "1020"]])

    def test_records_without_trailers(self):
        """Forks and exits have their time in themselves, too."""
        own = lambda kind, ts: record(kind, 0, pack("<IIIIQ", 7, 7, 9, 7, ts))
        path = self.made([(attr(USUAL, flags=0), [])], [take(900), own(7, 1000), take(1500), own(4, 1600), take(2000)])
        self.assertEqual(self.rows(path, "SELECT start_ts, end_ts FROM thread WHERE tid = 9"), [["1000", "1600"]])

    def test_events_that_a_file_tells_twice(self):
        """Records of events belong to streams: a file has them in its header."""
        path = self.made(self.event, [take(2000), record(64, 0, attr(USUAL) + u64(5)), take(2001)])
        self.assertEqual(self.rows(path, "SELECT ts, perf_session_id FROM perf_sample ORDER BY ts"), [["2000", "0"], ["2001", "0"]])
        self.assertEqual(self.rows(path, "SELECT count(*) FROM perf_session"), [["1"]])

    def test_deep_stacks(self):
        """As many frames as a record holds: the kernel can be told to take more than its usual 127."""
        deep = range(0x1000, 0x1000 + 8000)
        path = self.made([(attr(USUAL | CALLCHAIN), [])], [record(9, USER, u64(deep[0]) + pack("<IIQIIQQ", 7, 8, 2000, 1, 0, 5, len(deep)) + u64(*deep))])
        self.assertEqual(self.rows(path, "SELECT count(*) AS n, max(depth) AS d FROM stack_profile_callsite"), [["8000", "7999"]])

    def test_many_samples_that_wait_for_one_stack(self):
        """Its frames are looked for once, and not for each: 16,000 samples took 4 s, and take 0.02 s. Alone, its first address is no caller's."""
        n, deep = 16000, [0x5000 + 2 * i for i in range(8000)]
        of = lambda tid, cookie, frames, ts: sample(ts, 0x40, frames + [DEFERRED_MARK, cookie], tid=tid, misc=KERNEL)
        told = lambda tid, cookie, ips, ts: record(22, USER, u64(cookie, len(ips), *ips) + trailer(ts, tid=tid))
        path = self.made([(attr(USUAL | CALLCHAIN), [])], [of(8, 5, [], 2000 + i) for i in range(n)] + [told(8, 5, deep, 2000 + n)] +
                         [of(9, 6, [], 10**6), of(9, 6, [KERNEL_MARK, 0x90], 10**6 + 1), told(9, 6, [0x100, 0x200], 10**6 + 2)])
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.assertEqual(self.rows(path, "SELECT depth, count(*) AS n FROM perf_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id GROUP BY 1"),
                         [["1", "1"], ["2", "1"], ["7999", str(n)]])
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 1)
        self.assertEqual(self.rows(path, "SELECT rel_pc FROM stack_profile_frame WHERE rel_pc < 0x250 ORDER BY 1"),
                         [[str(pc)] for pc in (0x90, 0xff, 0x100, 0x1ff)])

    def test_many_build_ids_and_files(self):
        """Build ids are found, not searched for: 40,000 mappings beside as many ids took 4 s, and take 0.02 s."""
        n = 40000
        ids = b"".join(record(67, USER, pack("<i", -1) + pack("<I", i).ljust(24, b"\0") + padded(b"/a%06d" % i)) for i in range(n))
        path = self.made(self.event, [mapped(1000 + i, 0x1000 * i, 0x1000, 0, b"/a%06d" % (n - 1 - 2 * i)) for i in range(n // 2)] +
                         [mapped(n + i, 0x1000 * i, 0x1000, 0, b"/b%06d" % i) for i in range(n)] + [take(10**6)], features={2: ids})
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.assertEqual(self.rows(path, "SELECT count(*) AS n, min(build_id) AS least FROM stack_profile_mapping WHERE name GLOB '/a*'"),
                         [[str(n // 2), pack("<I", 1).ljust(20, b"\0").hex()]])
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 2)

    def test_all_parts_of_a_sample(self):
        """In their order: the control group, which stands behind most of them, is the right one."""
        kinds = (IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | READ | CALLCHAIN | RAW | BRANCH_STACK | REGS_USER | STACK_USER | WEIGHT_STRUCT | DATA_SRC |
                 TRANSACTION | REGS_INTR | PHYS_ADDR | CGROUP | DATA_PAGE_SIZE | CODE_PAGE_SIZE | AUX | IDENTIFIER)
        index, counters = 1 << 17, 1 << 19
        body = (u64(11, 0x40) + pack("<IIQ", 7, 8, 2000) + u64(0xadd, 11, 77) + pack("<II", 1, 0) + u64(500) + u64(42, 1, 2, 11, 0) + u64(1, 0x40) +
                pack("<I", 4) + b"data" + u64(2, 0, 1, 2, 3, 4, 5, 6, 8, 9) + u64(2, 1, 2) + u64(16) + bytes(16) + u64(8) + u64(1, 2, 3) + u64(2, 5) +
                u64(0x99, 23, 4096, 4096, 8) + b"moredata")
        path = self.made([(attr(kinds, read_format=1 | 2 | 4 | 16, branch_type=index | counters, regs=0b11, regs_intr=0b1, size=136), [11])],
                         [record(19, 0, u64(23) + padded(b"/group") + trailer(0)), record(9, USER, body)])
        self.assertEqual(self.rows(path, TIMES), [["2000"]])
        self.assertEqual(self.rows(path, "SELECT string_value FROM args JOIN process USING (arg_set_id) WHERE key = 'process.cgroup'"), [["/group"]])
        self.assertEqual(self.rows(path, "SELECT CAST(value AS INT) AS v FROM counter"), [["42"]])

    def test_what_a_sample_must_have(self):
        for kinds, body in ((IP | TIME | CPU | PERIOD, u64(0x40, 2000) + pack("<II", 1, 0) + u64(5)),
                            (IP | TID | CPU | PERIOD, u64(0x40) + pack("<IIII", 7, 8, 1, 0) + u64(5))):
            self.assertEqual(self.told(self.made([(attr(kinds), [])], [record(9, USER, body)])), {("perf_record_skipped", "9"): 1})

    def test_counters(self):
        """What a sample stands for is its period, else that of the event, unless that is a frequency."""
        bare = lambda ts: record(9, USER, u64(0x40) + pack("<IIQII", 7, 8, ts, 1, 0))
        values = "SELECT CAST(value AS INT) AS v FROM counter"
        path = self.made([(attr(IP | TID | TIME | CPU, period=250), [])], [bare(2000), bare(2001)])
        self.assertEqual(self.rows(path, values), [["250"], ["500"]])
        path = self.made([(attr(IP | TID | TIME | CPU, period=250, flags=SAMPLE_ID_ALL | FREQ), [])], [bare(2000), bare(2001)])
        self.assertEqual(self.rows(path, values), [])
        self.assertEqual(self.told(path), {("perf_record_skipped", "9"): 2})
        path = self.made(self.event, [take(2000), take(2001, period=7), take(2002, cpu=0, period=9)])
        self.assertEqual(self.rows(path, "SELECT CAST(value AS INT) AS v, t.type, extract_arg(dimension_arg_set_id, 'cpu') AS cpu FROM counter c JOIN track t ON "
                                   "t.id = c.track_id ORDER BY c.ts"), [[v, "perf_cpu_counter", cpu] for v, cpu in (("500", "1"), ("507", "1"), ("9", "0"))])
        path = self.made([(attr(IP | TID | TIME | PERIOD), [])], [record(9, USER, u64(0x40) + pack("<IIQQ", 7, 8, 2000, 5))])
        self.assertEqual(self.rows(path, "SELECT s.cpu, t.type FROM perf_sample s, counter c JOIN track t ON t.id = c.track_id"), [["[NULL]", "perf_global_counter"]])

    def test_events_told_apart_by_id_alone(self):
        """ID stands behind what all events have; what follows it may differ."""
        kinds = IP | TID | TIME | ID | CPU | PERIOD
        one = lambda ts, number, rest=b"": record(9, USER, u64(0x40) + pack("<IIQQIIQ", 7, 8, ts, number, 1, 0, 5) + rest)
        comm = record(3, 0, pack("<II", 7, 8) + padded(b"me") + pack("<IIQQII", 7, 8, 1002, 2, 1, 0))
        path = self.made([(attr(kinds), [1]), (attr(kinds | CALLCHAIN), [2])], [one(1000, 1), one(1001, 2, u64(2, USER_MARK, 0x99)), comm])
        self.assertEqual(self.rows(path, "SELECT ts, perf_session_id, thread.name FROM perf_sample JOIN thread USING (utid)"), [["1000", "0", "me"], ["1001", "1", "me"]])
        self.assertEqual(self.stack(path, 1001), [["", str(0x99)]])

    def test_values_that_are_read(self):
        """Of the event with their id; of the sample's, where nobody has it. Times and losses stand between them."""
        kinds, rest = IP | TID | TIME | CPU | READ | IDENTIFIER, 1 | 2 | 4 | 16
        values = "SELECT CAST(value AS INT) AS v, extract_arg(dimension_arg_set_id, 'perf_session_id') AS s FROM counter c JOIN track t ON t.id = c.track_id ORDER BY c.id"
        for form, read, want in ((rest | 8, (2, 100, 90, 11, 1, 5, 22, 2, 6), [["11", "0"], ["22", "1"]]), (rest | 8, (0, 100, 90), []),
                                 (rest, (33, 100, 90, 2, 5), [["33", "1"]]), (rest, (44, 100, 90, 77, 5), [["44", "0"]]), (0, (55,), [["55", "0"]])):
            path = self.made([(attr(kinds, read_format=form), [1]), (attr(kinds, read_format=form, config=1), [2])],
                             [record(9, USER, u64(1, 0x40) + pack("<IIQII", 7, 8, 1000, 1, 0) + u64(*read))])
            self.assertEqual(self.rows(path, values), want, (form, read))
            self.assertEqual(self.told(path), {DUMMIES: 1})

    def test_counters_of_many_samples(self):
        """Rows are written many at once: each sample still has its counter, in the order of time, whatever comes between them."""
        plain, reading = USUAL | IDENTIFIER, USUAL | IDENTIFIER | READ
        of_plain = lambda ts: record(9, USER, u64(1, 0x40) + pack("<IIQIIQ", 7, 8, ts, 1, 0, ts % 5 + 1))
        of_reading = lambda ts: record(9, USER, u64(2, 0x40) + pack("<IIQIIQQ", 7, 8, ts, 1, 0, 3, ts))
        comm = lambda ts: record(3, 0, pack("<II", 7, 8) + padded(b"me") + trailer(ts) + u64(1))
        kinds = [comm if i % 101 == 50 else of_reading if i % 37 == 0 else of_plain for i in range(1000)]
        path = self.made([(attr(plain), [1]), (attr(reading), [2])], [kind(2000 + i) for i, kind in enumerate(kinds)])
        expected, total = [], 0
        for ts, kind in enumerate(kinds, 2000):
            total += ts % 5 + 1 if kind is of_plain else 0
            if kind is not comm:
                expected.append([str(ts), str(total if kind is of_plain else ts), "0" if kind is of_plain else "1"])
        self.assertEqual(self.rows(path, "SELECT s.ts, CAST(c.value AS INT) AS v, s.perf_session_id FROM perf_sample s JOIN __intrinsic_profiler_sample p ON p.id = s.id "
                                   "JOIN __intrinsic_profiler_counter_set t USING (counter_set_id) JOIN counter c ON c.id = t.counter_id AND c.ts = s.ts ORDER BY s.id"),
                         expected)
        self.assertEqual(self.rows(path, "SELECT count(*) FROM counter JOIN counter n ON n.id = counter.id + 1 WHERE n.ts < counter.ts"), [["0"]])

    def test_counters_of_tracepoints(self):
        """What a kernel event counts stands behind what its sample counts, and before the next sample's: all are in the order of time."""
        k = Kernel(big=perf_writer.order == ">")
        frequency = Event(11, "cpu_frequency", ("u32 state", 4, 0), ("u32 cpu_id", 4, 0))
        waking = Event(12, "sched_waking", ("char comm[16]", 16, 0), ("pid_t pid", 4, 1), ("int prio", 4, 1), ("int target_cpu", 4, 1))
        described = TraceDat(k, events={"power": [frequency], "sched": [waking]})
        data = MAGIC + b"0.6\0" + described.head().split(b"\0", 1)[1] + b"".join(body for _, body in described.parts())
        kinds = USUAL | RAW | IDENTIFIER

        def one(ts, i):
            raw = frequency.pack(k, 8, 1000 + i, 1) if i % 3 == 1 else waking.pack(k, 8, b"other", 9, 120, 0)
            raw += bytes(-(len(raw) + 4) % 8)
            return record(9, KERNEL, u64(1 if i % 3 == 1 else 2, 0x40) + pack("<IIQIIQ", 7, 8, ts, 1, 0, 1) + pack("<I", len(raw)) + raw)
        path = self.made([(attr(kinds, kind=2, config=11), [1]), (attr(kinds, kind=2, config=12), [2])], [one(2000 + i, i) for i in range(200)], features={1: data})
        self.assertEqual(self.rows(path, "SELECT c.ts, t.type, CAST(value AS INT) AS v FROM counter c JOIN track t ON t.id = c.track_id ORDER BY c.id"),
                         [row for i in range(200) for row in ([[str(2000 + i), "perf_cpu_counter", str(i // 3 + 1 if i % 3 == 1 else i - (i + 1) // 3 + 1)]] +
                                                              [[str(2000 + i), "cpu_frequency", str(1000 + i)]] * (i % 3 == 1))])
        self.assertEqual(self.rows(path, "SELECT name, count(*) AS n FROM ftrace_event GROUP BY 1"), [["cpu_frequency", "67"], ["sched_waking", "133"]])

    def test_kernel_events_that_come_again(self):
        """What was made of an event serves the next one that is equal to it: not one that differs in a single byte, wherever, nor one of another kind."""
        k = Kernel(big=perf_writer.order == ">")
        words = lambda n: [(f"u64 w{i}", 8, 0) for i in range(n)]
        pair = (("u32 state", 4, 0), ("u32 cpu_id", 4, 0))
        kinds = {"cpu_idle": ("power", 2, Event(11, "cpu_idle", *pair)), "cpu_frequency": ("power", 2, Event(12, "cpu_frequency", *pair)),
                 "sched_waking": ("sched", 4, Event(13, "sched_waking", ("char comm[16]", 16, 0), ("pid_t pid", 4, 1), ("int prio", 4, 1), ("int target_cpu", 4, 1))),
                 "eight": ("mine", 8, Event(14, "eight", *words(8))), "nine": ("mine", 9, Event(15, "nine", *words(9))),
                 "short": ("mine", 1, Event(16, "short", ("u16 w0", 2, 0))), "odd": ("mine", 3, Event(17, "odd", ("u64 w0", 8, 0), ("u8 w1", 1, 0), ("u8 w2", 1, 0))),
                 "loc": ("mine", 2, Event(18, "loc", ("__data_loc char[] name", 4, 0), ("u32 w1", 4, 0)))}
        groups = {g: [e for of, _, e in kinds.values() if of == g] for g in ("power", "sched", "mine")}
        described = TraceDat(k, events=groups)
        data = MAGIC + b"0.6\0" + described.head().split(b"\0", 1)[1] + b"".join(body for _, body in described.parts())
        records, expected = [], []

        def add(name, *values):
            _, n, event = kinds[name]
            raw = event.pack(k, 8, *values)
            raw += bytes([len(records) % 251 for _ in range(-(len(raw) + 4) % 8)])  # what lies behind its fields is no part of it
            records.append(record(9, KERNEL, u64(event.number, 0x40) + pack("<IIQIIQ", 7, 8, 2000 + len(records), 1, 0, 1) + pack("<I", len(raw)) + raw))
            names = [f[0].split("[")[0].split()[-1] for f in event.fields]
            if name == "loc":
                names, values = ["name", "w1"], [values[2].rstrip(b"\0"), values[1]]
            expected.append([str(1999 + len(records)), name, sorted(f"{key}={v.decode() if isinstance(v, bytes) else v}" for key, v in zip(names, values))])

        def others(values, sizes):
            """The same, each with one byte that differs."""
            for i, (value, size) in enumerate(zip(values, sizes)):
                for at in range(size):
                    changed = value[:at] + b"z" + value[at + 1:] if isinstance(value, bytes) else value ^ 1 << 8 * at
                    yield [*values[:i], changed, *values[i + 1:]]
        usual = [("cpu_idle", [5, 1], [1, 1]), ("cpu_frequency", [5, 1], [1, 1]), ("sched_waking", [b"sleeper", 300, 120, 1], [7, 2, 1, 1]), ("eight", list(range(1, 9)), [7] * 8),
                 ("nine", list(range(1, 10)), [7] * 9), ("short", [5], [2]), ("odd", [5, 6, 7], [7, 1, 1])]
        for name, values, sizes in usual:
            for changed in others(values, sizes):
                for each in (values, values, values, changed, changed, changed, values):
                    add(name, *each)
        chance = random.Random(1)
        for _ in range(2500):  # so many that they come to each other's places
            name, values, sizes = chance.choice(usual)
            at = chance.choice([i for i, v in enumerate(values) if not isinstance(v, bytes)])
            changed = [*values[:at], chance.randrange(1 << 8 * sizes[at]), *values[at + 1:]]
            for each in (changed, changed, changed, values):
                add(name, *each)
        for _ in range(3):  # equal in their fields but for a text behind them; of two kinds in turns
            for text in (b"this\0", b"that\0"):
                add("loc", 5 << 16 | 16, 7, text)
            for name, values, _ in usual:
                add(name, *values)
        path = self.made([(attr(USUAL | RAW | IDENTIFIER, kind=2, config=e.number), [e.number]) for _, _, e in kinds.values()], records, features={1: data})
        found = {}
        for ts, name, key, value in self.rows(path, "SELECT e.ts, e.name, a.key, coalesce(a.string_value, a.int_value) AS v FROM ftrace_event e LEFT JOIN args a USING (arg_set_id) "
                                              "ORDER BY e.id, a.id"):
            found.setdefault((ts, name), []).append(f"{key}={value}")
        self.assertEqual([[ts, name, sorted(args)] for (ts, name), args in found.items()], expected)
        self.assertEqual(self.told(path), {DUMMIES: len(records)})

    def calls(self, kept):
        """System calls that return at once: (thread, an arg); the slices' sets of args."""
        k = Kernel(big=perf_writer.order == ">")
        enter, leave = Event(11, "sys_enter", ("long id", 8, 1), ("unsigned long args[6]", 48, 0)), Event(12, "sys_exit", ("long id", 8, 1), ("long ret", 8, 1))
        described = TraceDat(k, events={"raw_syscalls": [enter, leave]})
        data = MAGIC + b"0.6\0" + described.head().split(b"\0", 1)[1] + b"".join(body for _, body in described.parts())
        padded_raw = lambda raw: raw + bytes(-(len(raw) + 4) % 8)
        raws = {tid: (padded_raw(enter.pack(k, tid, 3, b"".join(map(k.u64, range(1, 7))))), padded_raw(leave.pack(k, tid, 3, 0))) for tid, _ in kept}
        records = []
        for tid, value in kept:  # many: little is done for each
            entry, back = raws[tid]
            for number, raw in ((enter.number, entry[:16] + k.u64(value) + entry[24:]), (leave.number, back)):
                head = pack("<IHHQQIIQIIQI", 9, KERNEL, 60 + len(raw), number, 0x40, tid, tid, 2000 + len(records), 1, 0, 1, len(raw))
                records.append(head + raw)
        return self.made([(attr(USUAL | RAW | IDENTIFIER, kind=2, config=e.number), [e.number]) for e in (enter, leave)], records, features={1: data})

    def test_args_of_calls(self):
        """Equal args are one set, where equal ones come often: one thread whose calls are all different is no word about the others, and has equal ones later."""
        sets = lambda path, where: self.rows(path, f"SELECT count(*) AS n, count(DISTINCT slice.arg_set_id) AS sets FROM slice JOIN thread_track t ON t.id = slice.track_id "
                                             f"JOIN thread USING (utid) WHERE {where}")
        path = self.calls([(8 if i % 16 else 9, 1 << 40 | i if i % 16 else i % 64) for i in range(12000)])
        self.assertEqual(sets(path, "tid = 8"), [["11250", "11250"]])
        self.assertEqual(sets(path, "tid = 9"), [["750", "4"]])
        self.assertEqual(self.rows(path, "SELECT min(n) AS a, max(n) AS z FROM (SELECT count(*) AS n FROM slice JOIN args USING (arg_set_id) GROUP BY slice.id)"), [["7", "7"]])
        if perf_writer.order == ">":  # that is as long, and the same
            return
        window, rest = 4096, 15 * 4096
        path = self.calls([(8, 1 << 40 | i if i < window + rest else 5) for i in range(window + rest + 1000)])
        self.assertEqual(sets(path, f"slice.ts < 2000 + 2 * {window + rest}"), [[str(window + rest)] * 2])
        self.assertEqual(sets(path, f"slice.ts >= 2000 + 2 * {window + rest}"), [["1000", "1"]])

    def switches(self):
        """What describes sched_switch, and how one is written: of `tid`, which goes to sleep, to another thread."""
        k = Kernel(big=perf_writer.order == ">")
        switch = Event(13, "sched_switch", ("char prev_comm[16]", 16, 0), ("pid_t prev_pid", 4, 1), ("int prev_prio", 4, 1), ("long prev_state", 8, 1),
                       ("char next_comm[16]", 16, 0), ("pid_t next_pid", 4, 1), ("int next_prio", 4, 1))
        described = TraceDat(k, events={"sched": [switch]})
        data = MAGIC + b"0.6\0" + described.head().split(b"\0", 1)[1] + b"".join(body for _, body in described.parts())

        def switch_record(ts, tid, to):
            raw = switch.pack(k, tid, b"mine", tid, 120, 1, b"other", to, 120)
            raw += bytes(-(len(raw) + 4) % 8)
            return record(9, KERNEL, u64(0x40) + pack("<IIQIIQ", 7, tid, ts, 1, 0, 1) + pack("<I", len(raw)) + raw)
        return data, switch_record

    def test_switches_of_some_threads(self):
        """Only switches away from them are there: that somebody else ran in between is no error, unless all threads were recorded."""
        data, switch = self.switches()
        threads = lambda pid: record(73, 0, u64(1, pid) + b"".ljust(16, b"\0"))
        wrong = "SELECT value FROM stats WHERE name = 'mismatched_sched_switch_tids' AND value > 0"
        for pid, errors in ((8, []), (2**64 - 1, [["2"]])):
            path = self.made([(attr(USUAL | RAW, kind=2, config=13), [])], [threads(pid), switch(2000, 8, 9), switch(2010, 8, 10), switch(2020, 8, 9)], features={1: data})
            self.assertEqual(self.rows(path, wrong), errors)
            self.assertEqual(self.rows(path, "SELECT ts, tid FROM sched_slice JOIN thread USING (utid) ORDER BY ts"), [["2000", "9"], ["2010", "10"], ["2020", "9"]])

    def test_switches_that_two_files_tell(self):
        """A tracepoint and, a moment later, the record of the same switch: there is one, and its state is what the tracepoint says."""
        data, switch = self.switches()

        def seen(ts, tid, to):
            return record(15, 1 << 13, pack("<II", 7, to) + trailer(ts, tid=tid)) + record(15, 0, pack("<II", 7, tid) + trailer(ts + 1, tid=to))
        turns = [(2000, 8, 9), (2100, 9, 8), (2200, 8, 10)]
        folder = self.dir / "both"
        folder.mkdir()
        for name, kind, config, records in (("a", 2, 13, [switch(*t) for t in turns]), ("b", 1, 9, [seen(t + 3, *pair) for t, *pair in turns + [(2300, 10, 8)]])):
            path = self.made([(attr(USUAL | (RAW if kind == 2 else 0), kind=kind, config=config), [])], records, **({"features": {1: data}} if kind == 2 else {}))
            shutil.copy(path, folder / f"{name}.data")
        both = shutil.make_archive(str(folder), "tar", folder)
        self.assertEqual(self.rows(both, "SELECT ts, dur, tid, end_state FROM sched_slice JOIN thread USING (utid) ORDER BY ts"),
                         [["2000", "100", "9", "S"], ["2100", "100", "8", "S"], ["2200", "103", "10", "[NULL]"], ["2303", "-1", "8", "[NULL]"]])
        self.assertEqual(self.rows(both, "SELECT name FROM stats WHERE name GLOB '*sched*' AND value > 0"), [])

    def test_modes(self):
        path = self.made(self.event, [take(2000 + i, misc=i) for i in range(8)])
        self.assertEqual([r[0] for r in self.rows(path, "SELECT cpu_mode FROM perf_sample ORDER BY ts")],
                         ["unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user", "unknown", "unknown"])
        self.assertEqual(self.told(path), {("perf_samples_cpu_mode_unknown", "[NULL]"): 3, DUMMIES: 8})

    def test_streams(self):
        """Events, their names and features are records; what follows a record and is not in its size is passed over."""
        event = lambda number: record(64, 0, attr(USUAL | IDENTIFIER) + u64(number))
        one = lambda ts, number: record(9, USER, u64(number, 0x40) + pack("<IIQIIQ", 7, 8, ts, 1, 0, 10))
        path = self.dir / "stream.data"
        path.write_bytes(magic() + u64(16) + event(5) + record(78, 0, u64(2, 5) + padded(b"mine")) + record(80, 0, u64(3) + text_feature("host")) +
                         record(80, 0, u64(4) + text_feature("6.1.0")) + record(66, 0, pack("<II", 13, 0)) + bytes(16) +
                         record(71, 0, u64(16, 0, 0) + bytes(16)) + b"\xff" * 16 + one(2000, 5) + event(6) + one(2001, 6))
        self.assertEqual(self.rows(path, "SELECT ts, perf_session_id FROM perf_sample ORDER BY ts"), [["2000", "0"], ["2001", "1"]])
        self.assertEqual(self.rows(path, "SELECT name, release FROM machine"), [["host", "6.1.0"]])
        self.assertEqual(self.rows(path, "SELECT name FROM track WHERE name = 'mine'"), [["mine"]])


class PerfRulesOfTheOtherOrder(PerfRules):
    """All of them again, as a machine of the other byte order writes."""

    def setUp(self):
        perf_writer.order = ">"
        super().setUp()

    def tearDown(self):
        perf_writer.order = "<"
        super().tearDown()


if __name__ == "__main__":
    harness.main()

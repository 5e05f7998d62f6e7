"""tp_shell cut: random windows of recordings answer the same before and after; sizes; what it refuses."""
import os
import random
import unittest

import harness
from pb import field

IN = "ts >= {a} and ts < {b}"
OVER = "ts < {b} and (dur < 0 or ts + dur > {a})"
WITHIN = "ts >= {a} and ts < {b} and dur >= 0 and ts + dur <= {b}"

# Rows name what they are about by name: ids are given anew by each import. What has not ended has its length from the
# recording's end, which is another: dur is -1 or such then, and asked for where rows end.
QUERIES = [
    f"select ts, dur, cpu, end_state, priority, tid, t.name from sched join thread t using (utid) where {OVER} "
    "and ts + dur < {e} and dur >= 0 order by 1, 3, 6",
    f"select cpu, count(*), sum(dur) from sched where {WITHIN} group by 1 order by 1",
    f"select t.name, count(*), sum(dur), max(dur) from sched join thread t using (utid) where {WITHIN} group by 1 order by 1",
    f"select priority, end_state, count(*) from sched where {WITHIN} group by 1, 2 order by 1, 2",
    f"select ts, dur, state, io_wait, blocked_function, cpu, tid, t.name from thread_state s join thread t using (utid) where {OVER} "
    "and dur >= 0 and ts + dur < {e} order by 1, 7, 3",
    f"select state, count(*), sum(dur), max(dur) from thread_state where {WITHIN} group by 1 order by 1",
    f"select s.ts, s.state, t.tid, w.tid, w.name, irq_context from thread_state s join thread t using (utid) join thread w on w.utid "
    "= waker_utid where s.ts >= {a} and s.ts < {b} order by 1, 3, 2",
    f"select t.name, s.state, count(*), sum(s.dur) from thread_state s join thread t using (utid) where {WITHIN} group by 1, 2 "
    "order by 1, 2",
    f"select ts, dur, s.name, category, depth, t.name, t.type from slice s join track t on t.id = s.track_id where {OVER} order by "
    "1, 2, 3, 5, 6, 7",
    f"select name, count(*), sum(dur), max(depth) from slice where {WITHIN} group by 1 order by 1",
    f"select s.ts, s.name, p.name, p.ts from slice s join slice p on p.id = s.parent_id where s.ts >= {{a}} and s.ts < {{b}} "
    "order by 1, 2, 3, 4",
    f"select s.ts, s.name, a.flat_key, a.string_value, a.int_value from slice s join args a using (arg_set_id) where s.ts >= {{a}} "
    "and s.ts < {b} and a.flat_key not glob '*utid*' order by 1, 2, 3, 4, 5",
    f"select ts, name, tid, pid from _ts where {IN} order by 1, 2, 3",
    f"select c.ts, t.name, t.type, value from counter c join track t on t.id = c.track_id where {IN} order by 1, 2, 3, 4",
    f"select t.name, count(*), min(value), max(value), sum(value) from counter c join track t on t.id = c.track_id where {IN} "
    "group by 1 order by 1",
    "select t.name, t.type, (select value from counter c where c.track_id = t.id and c.ts < {a} order by ts desc limit 1) v from "
    "track t where v is not null order by 1, 2, 3",
    f"select ts, name, cpu from ftrace_event where {IN} order by 1, 2, 3",
    f"select name, cpu, count(*) from ftrace_event where {IN} group by 1, 2 order by 1, 2",
    f"select e.ts, e.name, t.tid, t.name from ftrace_event e join thread t using (utid) where {IN} order by 1, 2, 3",
    f"select e.ts, e.name, a.flat_key, a.string_value, a.int_value from ftrace_event e join args a using (arg_set_id) where {IN} "
    "order by 1, 2, 3, 4, 5",
    f"select e.name, count(*), count(distinct a.flat_key) from ftrace_event e join args a using (arg_set_id) where {IN} group by 1 "
    "order by 1",
    f"select o.ts, o.name, i.ts, i.name from flow f join slice o on o.id = slice_out join slice i on i.id = slice_in where o.ts >= "
    "{a} and o.ts < {b} or i.ts >= {a} and i.ts < {b} order by 1, 2, 3, 4",
    f"select ts, callsite_id is null, t.tid from perf_sample join thread t using (utid) where {IN} order by 1, 3",
    "select distinct t.tid, t.name, p.pid, p.name, t.is_main_thread from sched s join thread t using (utid) left join process p "
    "using (upid) where s.ts >= {a} and s.ts < {b} order by 1, 2, 3",
    "select distinct p.pid, p.name, p.cmdline, p.uid, p.start_ts from slice s join thread_track k on k.id = s.track_id join thread "
    "using (utid) join process p using (upid) where s.ts >= {a} and s.ts < {b} order by 1, 2",
    "select distinct t.tid, t.start_ts, t.end_ts from sched s join thread t using (utid) where s.ts >= {a} and s.ts < {b} order by 1, 2",
    "select m.name, m.raw_id, count(*) from machine m join cpu c on c.machine_id = m.id join sched s on s.ucpu = c.ucpu where s.ts "
    ">= {a} and s.ts < {b} group by 1, 2 order by 1, 2",
    "select clock_name, clock_value, ts from clock_snapshot where ts >= {a} and ts < {b} order by 1, 2, 3",
    f"select ts, msg, prio, tag from android_logs where {IN} order by 1, 2",
    "select name, str_value, int_value from metadata where name not in ('trace_size_bytes', 'trace_uuid', 'all_data_source_started_ns') and name "
    "not glob 'tracing_*' order by 1, 2, 3",
]
# Nothing but markers outside of the window tell which process a thread belongs to.
TOLD_BY_MARKERS = {"synth-parser-atrace-instant_atrace_instant_with_thread.pftrace"}
SETUP = ("create view _ts as select s.ts, s.name, t.tid, p.pid from slice s join thread_track k on k.id = s.track_id join thread t "
         "using (utid) left join process p using (upid);")


def fields(data):
    """Fields of a message: (number, value); raises where the bytes are no message. Each packet must be whole."""
    at, out = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            out.append((tag >> 3, varint()))
        elif tag & 7 == 1:
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            assert tag & 7 == 2, f"wire type {tag & 7} at {at}"
            n = varint()
            assert at + n <= len(data), "a field is longer than its message"
            out.append((tag >> 3, data[at:at + n]))
            at += n
    assert at == len(data)
    return out


class Cut(harness.Case):
    def bounds(self, trace):
        out = self.query("select start_ts, end_ts from trace_bounds", "--format", "csv", trace=trace).splitlines()
        return [int(x) for x in out[-1].split(",")]

    def answers(self, trace, sql):
        """The rows of each query: {query: [rows]}."""
        path = self.dir / "queries.sql"
        path.write_text(SETUP + "".join(f"select '---{i}' q;\n{q};\n" for i, q in enumerate(sql)))
        text = self.run_shell("query", "--format", "csv", "-f", path, trace).stdout.decode(errors="replace")
        return [part.split("\n", 1)[1] for part in text.split("---")[1:]]

    def same(self, trace, a, b, *more):
        out = self.dir / "cut.pftrace"
        self.run_shell("cut", "--from", a, "--to", b, *more, "-o", out, trace)
        end = self.bounds(trace)[1]
        sql = [q.format(a=a, b=b, e=end) for q in QUERIES]
        for query, before, after in zip(sql, self.answers(trace, sql), self.answers(out, sql)):
            self.assertEqual(before, after, f"{trace.name} [{a}, {b}): {query}")
        for number, packet in fields(out.read_bytes()):
            self.assertEqual(number, 1)
            fields(packet)
        return out

    def windows(self, traces, n):
        rng = random.Random(25)
        for i in range(n):
            trace = traces[i % len(traces)]
            start, end = self.bounds(trace)
            if end <= start:
                continue
            length = max(1, int((end - start) * rng.choice((0.003, 0.03, 0.2, 0.7))))
            a = rng.randrange(start, end)
            self.same(trace, a, min(a + length, end + 1))

    def test_random_windows(self):
        self.windows(sorted(harness.DATA.glob("*.pftrace*")), 8)

    @unittest.skipUnless(os.environ.get("MERIDIAN_LONG"), "MERIDIAN_LONG=1 runs 200 windows over all recordings")
    def test_many_windows(self):
        elsewhere = harness.DATA.parents[2] / "shared" / "conformance" / "traces"
        traces = sorted(harness.DATA.glob("*.pftrace*")) + sorted(elsewhere.glob("*.pftrace*"))
        self.windows([t for t in traces if t.name not in TOLD_BY_MARKERS], 200)

    def test_sizes_are_in_proportion(self):
        trace = harness.DATA / "linux-sched.pftrace"
        start, end = self.bounds(trace)
        middle, sizes = (start + end) // 2, []
        for part in (100, 10, 2):
            out = self.same(trace, middle, middle + (end - start) // part)
            sizes.append(out.stat().st_size)
        self.assertLess(sizes[0], trace.stat().st_size / 10)
        self.assertEqual(sizes, sorted(sizes))

    def test_names_that_nothing_uses_are_gone(self):
        """Interned in one packet, used by later events: those outside of the window take their names with them."""
        names = {"event_categories": "cat", "event_names": "event", "debug_annotation_names": "key", "debug_annotation_string_values": "value",
                 "log_message_body": "body"}
        interned = " ".join(f'{field} {{ iid: {i} {"str" if field[-6:] == "values" else "body" if field[-4:] == "body" else "name"}: "{word}-{stretch}-{i}" }}'
                            for field, word in names.items() for i in (1, 2, 3) for stretch in ("STRETCH",))

        def event(ts, i, more=""):
            return (f"packet {{ trusted_packet_sequence_id: 1 timestamp: {ts} {more} track_event {{ type: TYPE_INSTANT track_uuid: 9 category_iids: {i} name_iid: {i} "
                    f"log_message {{ body_iid: {i} }} debug_annotations {{ name_iid: {i} dict_entries {{ name_iid: {i} string_value_iid: {i} }} }} }} }}\n")

        def state(stretch):
            return f"sequence_flags: 1 interned_data {{ {interned.replace('STRETCH', stretch)} }}"
        text = ("packet { trusted_packet_sequence_id: 1 timestamp: 1000 track_descriptor { uuid: 9 name: \"t\" } }\n"
                + event(1000, 1, state("first")) + event(5000, 2) + event(6000, 3)
                + event(10000, 3, state("second")) + event(15000, 1) + event(20000, 2))
        source, trace, piece = (self.dir / n for n in ("names.txt", "names.pftrace", "piece.pftrace"))
        source.write_text(text)
        self.run_shell("util", "text_to_binary", source, trace, code=0)
        self.run_shell("cut", trace, "-o", piece, "--from", "4000", "--to", "11000", code=0)
        whole, rest = trace.read_bytes(), piece.read_bytes()
        for word in names.values():
            for stretch, used in (("first", (2, 3)), ("second", (3,))):
                for i in (1, 2, 3):
                    name = f"{word}-{stretch}-{i}".encode()
                    self.assertIn(name, whole)
                    self.assertEqual(name in rest, i in used, name)
        sql = "select ts, name, category, flat_key, a.string_value from slice join args a using (arg_set_id) where ts between 4000 and 10999 order by 1, 4"
        self.assertEqual(self.query(sql, "--format", "csv", trace=piece), self.query(sql, "--format", "csv", trace=trace))
        self.assertGreater(self.query(sql, "--format", "csv", trace=piece).count("value-"), 2)

    def test_around_is_the_time_of_the_rows(self):
        trace = harness.DATA / "track-events.pftrace"
        out = self.dir / "around.pftrace"
        sql = "select ts, dur from slice where dur > 0 order by ts limit 1 offset 50"
        self.run_shell("cut", "--around", sql, "-o", out, trace)
        again = "select ts, dur, name from slice where dur > 0 and ts >= {0} and ts + dur <= {1} order by 1, 2, 3"
        ts, dur = (int(x) for x in self.query(sql, "--format", "csv", trace=trace).splitlines()[-1].split(","))
        again = again.format(ts, ts + dur)
        self.assertEqual(self.query(again, "--format", "csv", trace=trace), self.query(again, "--format", "csv", trace=out))
        self.assertLess(out.stat().st_size, trace.stat().st_size)

    def test_one_machine(self):
        trace, out = harness.DATA / "mm-calls.pftrace.gz", self.dir / "machine.pftrace"
        count = "select c.machine_id, count(*) from ftrace_event f join cpu c using (ucpu) group by 1 order by 1"
        before = self.query(count, "--format", "csv", trace=trace).splitlines()[1:]
        self.assertEqual(len(before), 2)
        self.run_shell("cut", "--machine", before[1].split(",")[0], "-o", out, trace)
        self.assertEqual(self.query(count, "--format", "csv", trace=out).splitlines()[1:], before[1:])

    def test_one_process(self):
        mine = "p.name glob '*{name}*'"
        asked = (
            "select s.ts, s.dur, s.cpu, s.end_state, tid from sched s join thread t using (utid) join process p using (upid) where {mine} and "
            "s.ts >= {a} and s.ts + s.dur < {b} and s.dur >= 0 order by 1, 3, 5",
            "select s.ts, s.dur, s.state, tid from thread_state s join thread t using (utid) join process p using (upid) where {mine} and "
            "s.ts >= {a} and s.ts + s.dur < {b} and s.dur >= 0 order by 1, 3, 4",
            "select s.ts, s.dur, s.name from slice s join thread_track k on k.id = s.track_id join thread t using (utid) join process p using "
            "(upid) where {mine} and s.ts >= {a} and s.ts < {b} and s.dur >= 0 and s.ts + s.dur < {b} order by 1, 2, 3",
            "select s.ts, s.dur, s.name from slice s join process_track k on k.id = s.track_id join process p using (upid) where {mine} and "
            "s.ts >= {a} and s.ts < {b} and s.dur >= 0 and s.ts + s.dur < {b} order by 1, 2, 3",
            "select c.ts, k.name, c.value from counter c join process_counter_track k on k.id = c.track_id join process p using (upid) where "
            "{mine} and c.ts >= {a} and c.ts < {b} order by 1, 2, 3",
            "select e.ts, e.name, e.cpu from ftrace_event e join thread t using (utid) join process p using (upid) where {mine} and "
            "e.ts >= {a} and e.ts < {b} and e.name not in ('sched_waking', 'sched_switch') order by 1, 2, 3",
        )
        others = "select count(*) from sched s join thread t using (utid) left join process p using (upid) where not ifnull({mine}, 0) and tid != 0"
        for trace, name in (("linux-sched.pftrace", "busybox"), ("linux-sched-nocompact.pftrace.gz", "tracebox"), ("mm-calls.pftrace.gz", "calls"),
                            ("sdk.pftrace", "application")):
            trace, out = harness.DATA / trace, self.dir / "process.pftrace"
            start, end = self.bounds(trace)
            rows = 0
            for a, b in ((start, end + 1), (start + (end - start) // 3, end - (end - start) // 3)):
                self.run_shell("cut", "--process", f"*{name}*", "--from", a, "--to", b, "-o", out, trace)
                sql = [q.format(a=a, b=b, mine=mine.format(name=name)) for q in (*asked, others)]
                answers = list(zip(sql, self.answers(trace, sql), self.answers(out, sql)))
                for query, before, after in answers[:-1]:
                    self.assertEqual(before, after, f"{trace.name} {name}: {query}")
                    rows += sum(line[:1].isdigit() for line in before.splitlines())
                for _, packet in fields(out.read_bytes()):
                    fields(packet)
                before, after = (int(n.split()[-1]) for n in answers[-1][1:])
                self.assertLessEqual(after, before / 2, f"{trace.name} {name}: others")
            self.assertGreater(rows, 20, trace.name)

    def test_track_events_of_one_process(self):
        """Two processes: tracks below each, one that is the default of its sequence, an old sequence of one thread, none at all."""
        def packet(sequence, *parts):
            return field(1, field(10, sequence) + b"".join(parts))

        def instant(sequence, ts, name, track=None):
            event = field(9, 3) + field(23, name) + (field(11, track) if track is not None else b"")
            return packet(sequence, field(8, ts), field(11, event))

        data = b""
        for n, pid in ((1, 100), (2, 200)):
            process = field(60, field(1, n) + field(3, field(1, pid) + field(6, f"process{n}")))
            thread = field(60, field(1, 10 + n) + field(5, n) + field(4, field(1, pid) + field(2, pid + 1)))
            child = field(60, field(1, 20 + n) + field(5, 10 + n) + field(2, "child"))
            defaults = field(59, field(11, field(11, 20 + n)))
            data += packet(n, field(41, 1), process) + packet(n, thread) + packet(n, child)
            data += instant(n, 1000 + n, f"on process {n}", n) + instant(n, 2000 + n, f"on thread {n}", 10 + n)
            data += instant(n, 3000 + n, f"on child {n}", 20 + n)
            data += packet(n + 4, field(41, 1), defaults) + instant(n + 4, 4000 + n, f"by default {n}")
            data += packet(n + 8, field(41, 1), field(44, field(1, pid) + field(2, pid + 1))) + instant(n + 8, 5000 + n, f"of old {n}")
        data += packet(20, field(60, field(1, 99) + field(2, "of nobody"))) + instant(20, 6000, "of nobody", 99)
        trace, out = self.dir / "two.pftrace", self.dir / "two-cut.pftrace"
        trace.write_bytes(data)
        names = "select name from slice order by ts"
        self.assertEqual(len(self.query(names, "--format", "csv", trace=trace).splitlines()), 12)
        for n in (1, 2):
            self.run_shell("cut", "--process", f"process{n}", "-o", out, trace)
            self.assertEqual(self.query(names, "--format", "csv", trace=out).replace('"', "").splitlines()[1:],
                             [f"{what} {n}" for what in ("on process", "on thread", "on child", "by default", "of old")] + ["of nobody"])
        self.run_shell("cut", "--process", "100", "--process", "process2", "-o", out, trace)
        self.assertEqual(self.query(names, trace=trace), self.query(names, trace=out))

    def redacted(self, trace, rules):
        path, out = self.dir / "rules.txt", self.dir / "redacted.pftrace"
        path.write_text(rules)
        p = self.run_shell("cut", "--redact", path, "-o", out, trace)
        return out, p.stderr.decode()

    def test_redacted_names_are_nowhere_in_the_bytes(self):
        numbers = ("select ts, dur, cpu, priority from sched order by 1, 3", "select ts, dur, depth from slice order by 1, 2, 3",
                   "select ts, value from counter order by 1, 2", "select count(distinct name), count(*) from thread",
                   "select count(*), count(distinct name) from slice", "select cpu, count(*) from ftrace_event group by 1 order by 1")
        for name in ("linux-sched.pftrace", "linux-sched-nocompact.pftrace.gz", "mm-calls.pftrace.gz", "track-events.pftrace",
                     "linux-zstd.pftrace"):
            trace = harness.DATA / name
            names = self.query("select distinct name from thread where length(name) > 4 and name not glob '*kworker*' union select distinct "
                               "name from slice where length(name) > 5", "--format", "csv", trace=trace)
            secrets = [s.strip('"') for s in names.splitlines()[1:]]
            secrets = [s for s in secrets if "*" not in s and "?" not in s and s != "[NULL]"][::3]
            self.assertGreater(len(secrets), 1)
            out, told = self.redacted(trace, "key 25\n" + "".join(f"name {s}\n" for s in secrets))
            data = out.read_bytes()
            for s in secrets:
                self.assertNotIn(s.encode(), data, name)
            for number, packet in fields(data):
                fields(packet)
            self.assertIn("strings replaced in", told)
            for sql, before, after in zip(numbers, self.answers(trace, numbers), self.answers(out, numbers)):
                self.assertEqual(before, after, f"{name}: {sql}")

    @unittest.skipUnless(os.environ.get("MERIDIAN_LONG"), "MERIDIAN_LONG=1 redacts all recordings")
    def test_all_names_of_all_recordings(self):
        """Every name of 5 bytes or more that a thread, process or slice has; a name with wildcards or line ends needs rules of its own."""
        elsewhere = harness.DATA.parents[2] / "shared" / "conformance" / "traces"
        for trace in sorted(harness.DATA.glob("*.pftrace*")) + sorted(elsewhere.glob("*.pftrace*")):
            names = self.query("select group_concat(hex(name)) from (select name from thread union select name from process union select name from "
                               "slice) where length(name) > 4", "--format", "csv", trace=trace)
            secrets = [bytes.fromhex(s) for s in names.split("\n")[1].strip('"').split(",") if s != "[NULL]"]
            secrets = [s for s in secrets if not set(b"*?\n\0") & set(s) and not s.isdigit() and s == s.strip()]
            if not secrets:
                continue
            path, out = self.dir / "rules.txt", self.dir / "redacted.pftrace"
            path.write_bytes(b"".join(b"text " + s + b"\n" for s in secrets[:5000]))
            self.run_shell("cut", "--redact", path, "-o", out, trace)
            data = out.read_bytes()
            self.assertEqual([s for s in secrets[:5000] if s in data], [], trace.name)

    def test_pseudonyms_are_the_same_with_the_same_key(self):
        trace = harness.DATA / "linux-sched.pftrace"
        names = "select distinct name from thread where tid in (select tid from thread order by tid limit 12) order by tid"
        rules = "key some key\nname *\n"
        one = self.query(names, trace=self.redacted(trace, rules)[0])
        self.assertEqual(one, self.query(names, trace=self.redacted(trace, rules)[0]))
        self.assertNotEqual(one, self.query(names, trace=self.redacted(trace, "name *")[0]))
        self.assertNotIn("kthreadd", one)

    def test_rules_that_match_nothing(self):
        told = self.redacted(harness.DATA / "linux-sched.pftrace", "name busybox\n\nname nobody-has-it")[1]
        self.assertIn("1 rules of", told)
        self.assertIn("the first is line 3", told)
        rules = self.dir / "bad.txt"
        rules.write_text("names *\n")
        self.fails("cut", "--redact", rules, "-o", self.dir / "none2.pftrace", harness.DATA / "linux-sched.pftrace",
                   text="line 1: unknown kind 'names'")
        rules.write_bytes(b"name a\0b")
        self.fails("cut", "--redact", rules, "-o", self.dir / "none2.pftrace", harness.DATA / "linux-sched.pftrace", text="byte 6 is 0")
        self.assertFalse((self.dir / "none2.pftrace").exists())

    def test_what_is_refused(self):
        trace, out = harness.DATA / "linux-sched.pftrace", self.dir / "none.pftrace"
        for args, text in (
                ((), "say what to keep"),
                (("--from", "soon"), "invalid time 'soon'"),
                (("--from", "1s", "--to", "500ms"), "the window is empty"),
                (("--from", "900s"), "lies outside of the recording"),
                (("--around", "select 1"), "no column ts"),
                (("--around", "select ts from slice where 0"), "has no rows"),
                (("--machine", "nobody", "--from", "1s"), "no machine 'nobody'"),
                (("--process", "nobody-*"), "no process 'nobody-*'"),
                (("--redact", self.dir / "no-rules.txt"), "no-rules.txt"),
                (("--around", "select ts from slice", "--to", "1s"), "leave out")):
            self.fails("cut", *args, "-o", out, trace, text=text)
            self.assertFalse(out.exists())
        self.fails("cut", "--from", "1s", trace, text="-o FILE is needed")
        self.fails("cut", "--from", "0s", "-o", out, harness.DATA / "json" / "clang-time-trace.json", text="not a Perfetto trace")
        self.assertFalse(out.exists())

    def test_damage_is_told(self):
        trace, out = self.dir / "damaged.pftrace", self.dir / "out.pftrace"
        whole = (harness.DATA / "linux-sched.pftrace").read_bytes()
        trace.write_bytes(whole + b"\x0a\x7f\x01")
        p = self.run_shell("cut", "--from", "10ms", "-o", out, trace)
        self.assertIn("3 bytes at the end", p.stderr.decode())
        fields(out.read_bytes())
        trace.write_bytes(whole + b"\x0a\x03\x0a\x7f\x01")
        out.unlink()
        self.fails("cut", "--from", "10ms", "-o", out, trace, text="malformed")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    harness.main()

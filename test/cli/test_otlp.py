"""Traces of OpenTelemetry: the samples beside what is said of them, spans beside a recording of their machine, and the way out
and back."""
import csv
import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

import harness

ROOT = pathlib.Path(__file__).parent.parent.parent
SAMPLES = pathlib.Path(os.environ.get("MERIDIAN_SHARED") or ROOT.parent / "shared") / "data" / "otlp"
BASKET = harness.DATA / "otlp" / "basket.jsonl"
SCHED = harness.DATA / "linux-sched.pftrace"
FORMS = ("spans.jsonl", "spans-pretty.json", "spans.pb", "spans-prefixed-be32.pb", "spans-prefixed-varint.pb")

SLICES = """select s.ts, s.dur, s.name, s.category, s.depth, t.type, t.name as track, m.name as machine, key, value_type, display_value
from slice s join track t on t.id = s.track_id join machine m on m.id = t.machine_id left join args using (arg_set_id)
order by s.ts, s.name, s.dur, args.id"""
REST = """select o.span_id, kind, status, service, scope, pid, tid, thread.name as thread, parent_id is null as root, parent_span_id
from otel_span o left join process using (upid) left join thread using (utid) order by o.span_id;
select l.linked_trace_id, l.linked_span_id, s.name, key, display_value from otel_link l join otel_span s on s.id = l.span_id
left join args using (arg_set_id) order by 1, 2;
select a.name, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in order by 1, 2;
select s.name, e.name from otel_event v join otel_span s on s.id = v.span_id join slice e on e.id = v.slice_id order by e.ts;
select distinct p.pid, key, display_value from process p join args using (arg_set_id) order by 1, 2;
select name, value from stats where name glob 'otlp_*' and value > 0 order by name"""


def read_text_form(text):
    """Protobuf's text as (name, value) pairs; messages are lists."""
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            inner = []
            stack[-1].append((line[:-1].strip(), inner))
            stack.append(inner)
        elif line == "}":
            stack.pop()
        elif line:
            name, value = line.split(": ", 1)
            stack[-1].append((name, value))
    return stack[0]


def first(message, name, default=None):
    return next((value for key, value in message if key == name), default)


def every(message, name):
    return [value for key, value in message if key == name]


def unquoted(text):
    return text[1:-1].encode().decode("unicode_escape").encode("latin-1")


def flat(key, value):
    """The args that an AnyValue becomes."""
    (kind, what), = value or [("null", None)]
    if kind == "array_value":
        return [a for i, v in enumerate(every(what, "values")) for a in flat(f"{key}[{i}]", v)]
    if kind == "kvlist_value":
        return [a for kv in every(what, "values") for a in flat(f"{key}.{unquoted(first(kv, 'key')).decode()}", first(kv, "value"))]
    text = unquoted(what).decode() if kind == "string_value" else what
    return [(key, text)]


def attributes(message):
    return [a for kv in every(message, "attributes") for a in flat(unquoted(first(kv, "key")).decode(), first(kv, "value"))]


class Otlp(harness.Case):
    def rows(self, trace, sql, *flags):
        return list(csv.DictReader(io.StringIO(self.query(sql, *flags, trace=trace))))

    def everything(self, trace):
        return self.query(SLICES, trace=trace) + self.query(REST, trace=trace)

    @unittest.skipUnless(SAMPLES.is_dir(), "the samples are not there")
    def test_samples_are_what_is_said_of_them(self):
        """Each form of the samples: every span as spans.tsv has it, every attribute as the protobuf compiler prints it."""
        said = list(csv.DictReader(io.StringIO((SAMPLES / "spans.tsv").read_text()), delimiter="\t"))
        kinds = ("internal", "internal", "server", "client", "producer", "consumer")
        decoded = {}
        for resource in every(read_text_form(gzip.open(SAMPLES / "spans.decoded.gz", "rt").read()), "resource_spans"):
            for scope in every(resource, "scope_spans"):
                for span in every(scope, "spans"):
                    decoded[unquoted(first(span, "span_id")).hex()] = (span, attributes(first(resource, "resource")))
        self.assertEqual({s["span"] for s in said}, set(decoded))
        answers = {self.everything(SAMPLES / form) for form in FORMS}
        self.assertEqual(len(answers), 1)
        for form in FORMS:
            spans = {r["span_id"]: r for r in self.rows(
                SAMPLES / form, "select o.*, m.name as machine, pid, tid, slice_id, (select count(*) from otel_event e where e.span_id = o.id) as events,"
                " (select count(*) from otel_link l where l.span_id = o.id) as links from otel_span o join machine m on m.id = o.machine_id"
                " left join process using (upid) left join thread using (utid)")}
            self.assertEqual(len(spans), len(said))
            args = {}
            for r in self.rows(SAMPLES / form, "select slice.id as slice, key, display_value from slice join args using (arg_set_id) order by args.id"):
                args.setdefault(r["slice"], []).append((r["key"], r["display_value"]))
            for want in said:
                got = spans[want["span"]]
                dur = int(want["dur"])
                self.assertEqual((int(got["ts"]), int(got["dur"])), (int(want["ts"]), -1 if want["dur"] == "-1" else max(dur, 0)))
                self.assertEqual((got["name"], got["service"], got["kind"]), (want["name"], want["service"], kinds[int(want["kind"])]))
                self.assertEqual(got["machine"], want["host"] or "otel")
                self.assertEqual((got["pid"], got["tid"]), (want["pid"] or "[NULL]", want["thread"] or "[NULL]"))
                self.assertEqual(got["status"], ("unset", "ok", "error")[int(want["status"] or 0)])
                self.assertEqual((got["events"], got["links"]), (want["events"], want["links"]))
                mine = [a for a in args[got["slice_id"]] if not a[0].startswith("otel.")]
                self.assertEqual(mine, attributes(decoded[want["span"]][0]))
        self.assertEqual(self.query("select (select count(*) from slice), (select count(*) from flow)", trace=SAMPLES / FORMS[0]).splitlines()[1], "13,5")

    def test_out_and_back(self):
        """What is written again reads as before, as lines and as one document."""
        for source in [BASKET] + ([SAMPLES / "spans.pb"] if SAMPLES.is_dir() else []):
            before = self.everything(source)
            for name in ("out.jsonl", "out.json"):
                out = self.dir / name
                self.run_shell("convert", "otlp", source, out)
                if name == "out.json":
                    self.assertEqual(list(json.loads(out.read_text())), ["resourceSpans"])
                for line in out.read_text().splitlines() if name == "out.jsonl" else ():
                    self.assertEqual(list(json.loads(line)), ["resourceSpans"])
                expected = before.replace("otlp_negative_duration,1\n", "").replace('"otlp_negative_duration",1\n', "")
                self.assertEqual(self.everything(out), expected)

    def test_slices_of_other_traces(self):
        """Slices of a kernel's and an SDK's trace: the same number, at the wall clock's times, with parents and args."""
        for trace in (harness.DATA / "linux-syscalls.pftrace.gz", harness.DATA / "track-events.pftrace", harness.DATA / "mm-calls.pftrace.gz"):
            out = self.dir / "slices.jsonl"
            self.run_shell("convert", "otlp", trace, out)
            spans = [s for line in out.read_text().splitlines() for r in json.loads(line)["resourceSpans"]
                     for scope in r["scopeSpans"] for s in scope["spans"]]
            ids = [(s["traceId"], s["spanId"]) for s in spans]
            self.assertEqual(len(set(ids)), len(ids))
            self.assertEqual({(s["traceId"], s["parentSpanId"]) for s in spans if "parentSpanId" in s} - set(ids), set())
            sql = "select count(*) as n, min(coalesce(to_realtime(ts), ts)) as ts, sum(max(dur, 0)) as dur from slice where dur >= 0"
            was, = self.rows(trace, sql)
            events = sum(len(s.get("events", ())) for s in spans)
            unfinished, = self.rows(trace, "select count(*) as n from slice where dur < 0")
            self.assertEqual(len(spans) + events, int(was["n"]) + int(unfinished["n"]))
            self.assertEqual(sum("meridian.unfinished" in str(s["attributes"]) for s in spans), int(unfinished["n"]))
            self.assertEqual(min(int(s["startTimeUnixNano"]) for s in spans), int(was["ts"]))
            self.assertEqual(int(self.rows(out, "select count(*) as n from slice")[0]["n"]), len(spans) + events)

    def spans_of(self, thread, host="node-a.example.org"):
        """A span over a stretch of a thread of a kernel's recording, by the wall clock, with a child in its middle."""
        start = int(self.rows(SCHED, f"select to_realtime({thread['ts']}) as t")[0]["t"])
        text = lambda key, value: {"key": key, "value": {"stringValue": value}}
        number = lambda key, value: {"key": key, "value": {"intValue": str(value)}}
        span = lambda sid, parent, a, b: {
            "traceId": "ab" * 16, "spanId": f"{sid:016x}", "parentSpanId": f"{parent:016x}" if parent else "", "name": f"work {sid}",
            "startTimeUnixNano": str(start + a), "endTimeUnixNano": str(start + b), "attributes": [number("thread.id", thread["tid"])]}
        dur = int(thread["dur"])
        return json.dumps({"resourceSpans": [{"resource": {"attributes": [
            text("service.name", "worker"), text("host.name", host), number("process.pid", thread["pid"]), text("telemetry.sdk.language", "cpp")]},
            "scopeSpans": [{"spans": [span(1, 0, 0, dur), span(2, 1, dur // 4, dur // 2)]}]}]}) + "\n"

    def test_beside_a_recording_of_the_machine(self):
        """Spans lie where the kernel's events lie, on the thread that it knows, and are split by its states."""
        thread, = self.rows(SCHED, "select min(s.ts) + 100000000 as ts, 200000000 as dur, tid, pid from thread_state s join thread t using (utid)"
                            " join process using (upid) where t.name = 'pinger'")
        spans = self.dir / "worker.jsonl"
        spans.write_text(self.spans_of(thread))
        archive = self.dir / "both.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(SCHED, "kernel.pftrace")
            tar.add(spans, "worker.jsonl")
        for traces in ((SCHED, spans), (spans, SCHED), (archive,)):
            sql = ("include perfetto module otel.span_states; include perfetto module otel.critical_path;"
                   "select o.ts, o.dur, t.name as thread, p.name as process, m.name as machine, (select sum(dur) from otel_span_states s where s.span_id = o.id)"
                   " as states, (select count(distinct state) from otel_span_states s where s.span_id = o.id) as n, (select sum(dur) from"
                   " otel_critical_path_states(o.id)) as path, (select sum(dur) from otel_critical_path_threads(o.id)) as threads,"
                   " (select count(distinct utid) from otel_critical_path_threads(o.id)) as waited, (select count(*) from process where pid = p.pid) as one"
                   " from otel_span o join thread t using (utid) join process p on p.upid = o.upid join machine m on m.id = o.machine_id order by o.ts")
            with self.subTest(traces=[str(t) for t in traces]):
                done = self.run_shell("query", *traces, sql)
                outer, inner = csv.DictReader(io.StringIO(done.stdout.decode()))
                self.assertEqual((int(outer["ts"]), int(outer["dur"])), (int(thread["ts"]), int(thread["dur"])))
                self.assertEqual((outer["thread"], outer["machine"], outer["one"]), ("pinger", "node-a.example.org", "1"))
                self.assertNotEqual(outer["process"], "worker")  # the kernel's name wins
                for row in (outer, inner):
                    self.assertEqual((row["states"], row["path"], row["threads"]), (row["dur"],) * 3)
                    self.assertGreater(int(row["n"]), 1)
                self.assertGreater(int(outer["waited"]), 1)  # through the kernel: ponger woke it
        counted = self.rows(SCHED, f"select sum(min(ts + dur, {thread['ts']} + {thread['dur']}) - max(ts, {thread['ts']})) as running from thread_state"
                            f" join thread using (utid) where name = 'pinger' and state = 'Running' and ts < {thread['ts']} + {thread['dur']} and ts + dur > {thread['ts']}")
        mine = self.run_shell("query", SCHED, spans, "include perfetto module otel.span_states; select sum(dur) as running from otel_span_states"
                              " where state = 'Running' and name = 'work 1'").stdout.decode()
        self.assertEqual(list(csv.DictReader(io.StringIO(mine))), counted)

    def test_several_hosts_beside_a_machine_without_a_name(self):
        """None of them can be the one that was recorded: they keep machines of their own, at the same wall clock."""
        thread, = self.rows(SCHED, "select min(s.ts) + 100000000 as ts, 200000000 as dur, tid, pid from thread_state s join thread t using (utid)"
                            " join process using (upid) where t.name = 'pinger'")
        spans = self.dir / "two.jsonl"
        spans.write_text(self.spans_of(thread, "a") + self.spans_of(thread, "b").replace("ab" * 16, "cd" * 16))
        rows = list(csv.DictReader(io.StringIO(self.run_shell(
            "query", SCHED, spans, "select m.name, min(o.ts) as ts from otel_span o join machine m on m.id = machine_id group by 1 order by 1").stdout.decode())))
        self.assertEqual([(r["name"], r["ts"]) for r in rows], [("a", thread["ts"]), ("b", thread["ts"])])

    def test_the_critical_path_of_a_request(self):
        """It covers the request without gaps, and stands on what ended last."""
        sql = ("include perfetto module otel.critical_path; select path.ts, path.dur, path.name, path.service from"
               " otel_critical_path((select id from otel_span where parent_id is null and service = 'web' order by ts limit 1)) path order by path.ts")
        rows = self.rows(BASKET, sql)
        self.assertEqual([(r["service"], r["name"], int(r["dur"]) // 1_000_000) for r in rows], [
            ("web", "GET /basket", 2), ("web", "GET api", 2), ("api", "basket", 1), ("api", "prices", 1), ("api", "stock", 2), ("db", "SELECT stock", 8),
            ("api", "stock", 2), ("api", "basket", 2), ("api", "notify", 1), ("api", "basket", 6), ("web", "GET api", 2), ("web", "GET /basket", 1)])
        for a, b in zip(rows, rows[1:]):
            self.assertEqual(int(a["ts"]) + int(a["dur"]), int(b["ts"]))

    def test_json_in_frames_of_zstd(self):
        """As the collector writes with `compression: zstd`: a length and a frame for each message, of JSON, too."""
        if not shutil.which("zstd"):
            self.skipTest("zstd is not here")
        framed = self.dir / "framed.jsonl"
        frames = [subprocess.run(["zstd", "-c"], input=line, stdout=subprocess.PIPE, check=True).stdout for line in BASKET.read_bytes().splitlines()]
        framed.write_bytes(b"".join(len(f).to_bytes(4, "big") + f for f in frames))
        self.assertEqual(self.everything(framed).replace("otlp_proto", "otlp_json"), self.everything(BASKET))

    def test_archives_and_compression(self):
        packed = self.dir / "basket.jsonl.gz"
        packed.write_bytes(gzip.compress(BASKET.read_bytes()))
        self.assertEqual(self.everything(packed).replace("gzip", ""), self.everything(BASKET))


if __name__ == "__main__":
    harness.main()

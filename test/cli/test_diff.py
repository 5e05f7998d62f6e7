"""tp_shell diff: formats, exit status, what it refuses."""
import csv
import io
import json
import re
import xml.etree.ElementTree

import harness

SCHED = harness.DATA / "linux-sched.pftrace"
ZSTD = harness.DATA / "linux-zstd.pftrace"
OVERRUN = harness.DATA / "linux-kernel-overrun.pftrace"


class Diff(harness.Case):
    def diff(self, *args, code):
        return self.run_shell("diff", *args, code=code).stdout.decode()

    def number(self, sql):
        return int(self.query(sql, "--format", "csv", trace=SCHED).split("\n")[-2])

    def refuses(self, *args, text):
        p = self.run_shell("diff", *args, code=2)
        self.assertIn(text, p.stderr.decode())
        self.assertEqual(p.stdout, b"")

    def test_a_recording_is_like_itself(self):
        out = self.diff(SCHED, SCHED, code=0)
        self.assertIn("0 findings among", out)
        self.assertIn("nothing lost", out)
        self.assertNotIn("verdict", out)
        lines = json.loads(self.diff("--all", "--format", "json", SCHED, SCHED, code=0))["lines"]
        self.assertGreater(len(lines), 50)
        for line in lines:
            self.assertEqual(line["a_mean"], line["b_mean"])
            self.assertIn(line["verdict"], ("noise", "too few"))

    def test_values_are_those_of_the_tables(self):
        lines = json.loads(self.diff("--all", "--format", "json", SCHED, SCHED, code=0))["lines"]
        for measure, sql in (
                ("CPU time", "select sum(iif(dur < 0, (select end_ts from trace_bounds) - ts, dur)) from sched join thread "
                             "using (utid) where not is_idle"),
                ("uninterruptible sleep", "select coalesce(sum(dur), 0) from thread_state where state glob 'D*'")):
            truth = self.number(sql) / 1e6
            seconds = self.number("select end_ts - start_ts from trace_bounds") / 1e9
            got = sum(x["a_mean"] for x in lines if x["measure"] == measure and not x["thread"]) * seconds
            self.assertAlmostEqual(got, truth, delta=truth * 0.05 + 1)  # the last block is left out
        count = self.number("select count(*) from thread_state where state = 'R'")
        self.assertEqual(sum(x["a_count"] for x in lines if x["measure"] == "wakeup latency" and not x["thread"]), count)

    def test_what_one_side_did_not_record_is_no_finding(self):
        lines = json.loads(self.diff("--all", "--format", "json", SCHED, ZSTD, code=0))["lines"]
        interrupts = [x for x in lines if x["measure"] == "interrupt time"]
        self.assertTrue(interrupts)
        self.assertEqual({x["verdict"] for x in interrupts}, {"not recorded"})

    def test_formats_agree(self):
        doc = json.loads(self.diff("--all", "--format", "json", SCHED, ZSTD, code=0))
        rows = list(csv.DictReader(io.StringIO(self.diff("--all", "--format", "csv", SCHED, ZSTD, code=0))))
        table = self.diff("--all", SCHED, ZSTD, code=0).splitlines()
        page = self.diff("--all", "--format", "html", SCHED, ZSTD, code=0)
        self.assertEqual(len(rows), len(doc["lines"]))
        for row, line in zip(rows, doc["lines"]):
            self.assertEqual(row["process"], line["process"])
            self.assertEqual(float(row["b_mean"]), line["b_mean"])
        at = next(i for i, line in enumerate(table) if line.startswith("what "))
        self.assertEqual(len(table) - at - 1, len(rows))
        self.assertEqual(page.count("<tr>") - 3, len(rows))
        self.assertFalse("://" in page)

    def test_a_loss_is_told_and_forbids_claims(self):
        out = self.diff(SCHED, OVERRUN, code=0)
        self.assertIn("Data was lost", out)
        self.assertIn("ftrace_cpu_overrun_delta", out)
        self.assertIn("0 findings", out)

    def test_different_clocks_are_told(self):
        perf = harness.DATA / "perf"
        said = self.diff(perf / "clockid.data", perf / "clockid-realtime.data", code=0)
        self.assertIn("The recordings are on different clocks", said)
        self.assertIn("MONOTONIC", said)
        self.assertIn("REALTIME", said)  # that recording knows one clock only

    def test_sets_and_files(self):
        out = self.dir / "out.csv"
        self.diff("--format", "csv", "-o", out, SCHED, SCHED, "--", SCHED, SCHED, code=0)
        self.assertTrue(out.read_text().startswith("measure,unit,"))

    def boxes(self, a, b):
        """{name: (share in A, share in B, width, hue)} of a differential flame graph, boxes of one name added up."""
        out = self.dir / "flame.svg"
        self.run_shell("diff", a, b, "--flamegraph", out, code=None)
        boxes = {}
        for g in xml.etree.ElementTree.parse(out).iter("{http://www.w3.org/2000/svg}g"):
            m = re.match(r"(.*) \(A ([\d.]+)%, B ([\d.]+)%, ", g[1].text)
            name, before, after = m[1], float(m[2]), float(m[3])
            old = boxes.get(name, (0, 0, 0, 0))
            boxes[name] = (old[0] + before, old[1] + after, old[2] + float(g[0].get("width")), int(re.match(r"hsl\((\d+)", g[0].get("fill"))[1]))
        return boxes

    def trace(self, name, slices):
        path = self.dir / name
        at, events = 0, []
        for slice_name, dur in slices:
            events.append({"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": dur, "name": slice_name})
            at += dur
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    def test_differential_flame_graph(self):
        a = self.trace("a.json", [("same", 50), ("less", 40), ("gone", 10)])
        b = self.trace("b.json", [("same", 100), ("less", 40), ("new<1>", 60)])  # twice as long
        boxes = self.boxes(a, b)
        self.assertEqual(boxes["all"][:3], (100, 100, 1180))
        self.assertEqual({k: v[:3] for k, v in boxes.items() if k in ("same", "less", "gone", "new<1>")},
                         {"same": (50, 50, 590), "less": (40, 20, 354), "gone": (10, 0, 59), "new<1>": (0, 30, 177)})
        self.assertEqual((boxes["less"][3], boxes["gone"][3], boxes["new<1>"][3]), (214, 214, 6))
        same = self.boxes(SCHED, SCHED)
        self.assertTrue(all(before == after for before, after, _, _ in same.values()))
        self.refuses(SCHED, ZSTD, "--flamegraph", self.dir / "x.svg", text="neither call stacks nor slices")

    def test_rows_of_a_query_by_key(self):
        a = self.trace("a.json", [("x", 10), ("y", 20), ("z", 0)])
        b = self.trace("b.json", [("x", 15), ("y", 20), ("w", 1)])
        sql = "select name, count(*) as n, sum(dur) as dur from slice group by name"
        rows = json.loads(self.diff("--sql", sql, "--format", "json", a, b, code=1))
        self.assertEqual({(r["key"], r["column"]): (r["a"], r["b"], r["change"]) for r in rows},
                         {("x", "dur"): (10000, 15000, "+50.0%"), ("w", "n"): (None, 1, "only in B"), ("w", "dur"): (None, 1000, "only in B"),
                          ("z", "n"): (1, None, "only in A"), ("z", "dur"): (0, None, "only in A")})
        self.assertEqual(rows[-1]["key"], "x")  # the smallest change
        self.assertIn("0 of the values differ (3 rows in A, 3 in B)", self.diff("--sql", sql, a, a, code=0))
        self.assertEqual(len(json.loads(self.diff("--all", "--sql", sql, "--format", "json", a, a, code=0))), 6)
        self.assertIn("x,dur,10000,15000,+50.0%", self.diff("--sql", sql, "--format", "csv", a, b, code=1))
        self.assertIn('<td>x</td>', self.diff("--sql", sql, "--format", "html", a, b, code=1))
        by_two = json.loads(self.diff("--sql", "select ts, name, dur from slice", "--key", "name,ts", "--format", "json", a, b, code=1))
        self.assertIn("x / 0", [r["key"] for r in by_two])
        every = self.dir / "every"
        self.diff("--sql", "select 1 as one, 'a' as t", "-o", every, a, b, code=0)
        self.assertIn("0 of the values", every.read_text())
        for args, text in ((("--sql", "select dur % 10, name from slice"), "several rows of the key '0'"), (("--sql", "selec"), "--sql on"),
                           (("--sql", sql, "--key", "nam"), "no column 'nam'"), (("--sql", sql, "--key", ""), "name a column"),
                           (("--key", "a"), "--key belongs to --sql"), (("--sql", sql, "--format", "xml"), "--format"),
                           (("--sql", "create table q as select 1"), "no rows to compare")):
            self.refuses(*args, a, b, text=text)
        self.refuses("--sql", sql, a, a, "--", b, b, text="two traces, not sets")

    def test_refusals(self):
        usage = "give two traces, or two sets"
        for args in ((), (SCHED,), (SCHED, SCHED, SCHED), ("--", SCHED, SCHED), (SCHED, SCHED, "--")):
            self.refuses(*args, text=usage)
        self.refuses(SCHED, self.empty, text="empty.pftrace: the file is empty")
        self.refuses(SCHED, self.dir / "none", text="none")
        self.refuses("--format", "jsn", SCHED, SCHED, text="did you mean 'json'")
        self.refuses("--alpha", "2", SCHED, SCHED, text="--alpha: '2' is not a number from 0 to 0.5")
        self.refuses("--min-change", "a", SCHED, SCHED, text="--min-change")
        self.refuses("--nonsense", SCHED, SCHED, text="nonsense")
        self.refuses("-o", self.dir / "no" / "file", SCHED, SCHED, text="no/file")


if __name__ == "__main__":
    harness.main()

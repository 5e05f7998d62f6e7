"""tp_shell diff: formats, exit status, what it refuses."""
import csv
import io
import json

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

    def test_sets_and_files(self):
        out = self.dir / "out.csv"
        self.diff("--format", "csv", "-o", out, SCHED, SCHED, "--", SCHED, SCHED, code=0)
        self.assertTrue(out.read_text().startswith("measure,unit,"))

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

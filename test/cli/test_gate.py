"""tp_shell gate: rules, baselines, formats, exit status."""
import json
import xml.etree.ElementTree

import harness

SCHED = harness.DATA / "linux-sched.pftrace"
OVERRUN = harness.DATA / "linux-kernel-overrun.pftrace"


class Gate(harness.Case):
    def rules(self, text):
        path = self.dir / "ci.rules"
        path.write_text(text)
        return path

    def gate(self, text, *args, code, trace=SCHED):
        return self.run_shell("gate", "--rules", self.rules(text), *args, trace, code=code).stdout.decode()

    def lefts(self, rules):
        """The left sides of rules."""
        doc = json.loads(self.gate("".join(f"{rule} != 0.125\n" for rule in rules), "--format", "json", code=0))
        return [result["left"] for result in doc]

    def number(self, sql):
        return float(self.query(sql, "--format", "csv", trace=SCHED).split("\n")[-2])

    def test_values_are_those_of_the_tables(self):
        latency = "from thread_state join thread using (utid) join process p using (upid) where state = 'R' and dur >= 0 and p.name = 'load'"
        rules = (("count(sched_latency where process = 'load')", f"select count(*) {latency}"),
                          ("sum(sched_latency where process = 'load')", f"select sum(dur) {latency}"),
                          ("max(sched_latency where process = 'load')", f"select max(dur) {latency}"),
                          ("min(sched_latency where process = 'load')", f"select min(dur) {latency}"),
                          ("mean(sched_latency where process = 'load')", f"select avg(dur) {latency}"),
                          ("median(sched_latency where process = 'load')", f"select percentile(dur, 50) {latency}"),
                          ("p99(sched_latency where process = 'load')", f"select percentile(dur, 99) {latency}"),
                          ("sum(cpu_time)", "select sum(dur) from sched join thread using (utid) where not is_idle and dur >= 0"),
                          ("count(uninterruptible)", "select count(*) from thread_state where state glob 'D*' and dur >= 0"),
                          ("count(irq where name = 'RCU')", "select count(*) from slice where name = 'RCU'"),
                          ("max(counter where name = 'mem.rss' and process = 'load')",
                           "select max(c.value) from counter c join process_counter_track t on t.id = c.track_id join process p using (upid) "
                           "where t.name = 'mem.rss' and p.name = 'load'"),
                          ("count(slice)", "select count(*) from slice where dur >= 0 and name not glob 'sys_*'"))
        self.assertEqual(len(rules), 12)
        for (rule, sql), left in zip(rules, self.lefts([rule for rule, _ in rules])):
            with self.subTest(rule=rule):
                want = self.number(sql)
                self.assertAlmostEqual(left, want, delta=abs(want) * 1e-9)

    def test_arithmetic(self):
        rules = (("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("10 - 4 - 3", 3), ("8 / 4 / 2", 1), ("-2 * -3", 6), ("5%", 0.05),
                            ("1us + 1ns", 1001), ("2ms / 1s", 0.002), ("loss", 0), ("clock_error", 0), ("- (1 +\n 1)", -2))
        for (rule, value), left in zip(rules, self.lefts([rule for rule, _ in rules])):
            with self.subTest(rule=rule):
                self.assertAlmostEqual(left, value)

    def test_verdicts(self):
        self.assertIn("ok", self.gate("loss = 0", code=0))
        self.assertIn("FAILED      loss = 0: is ", self.gate("loss = 0", code=1, trace=OVERRUN))
        compares = (("<=", True), ("<", False), (">=", True), (">", False), ("=", True), ("!=", False), ("==", True))
        doc = json.loads(self.gate("".join(f"1 {c} 1\n" for c, _ in compares), "--format", "json", code=1))
        self.assertEqual([r["status"] for r in doc], ["passed" if holds else "failed" for _, holds in compares])
        out = self.gate("1 < 2 # so it is\n\n# nothing\n3 < 2\n", code=1)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:]], ["ok", "FAILED"])

    def test_what_is_not_there(self):
        for rule, text in (("p99(sched_latency where process = 'nobody') < 1ms", "no row matches process = 'nobody'"),
                           ("max(slice where colour = 1) < 1", "no such column: colour"),
                           ("max(slice where name = = 1) < 1", "syntax error"), ("1 / 0 < 1", "division by zero")):
            out = self.gate(rule, code=2)
            self.assertIn("NOT CHECKED", out)
            self.assertIn(text, out)
            self.assertNotIn("select", out)
        self.assertIn("ok", self.gate("count(slice where name = 'nothing') = 0", code=0))
        out = self.gate("loss = 0", code=2, trace=self.dir / "none.pftrace")
        self.assertIn("No such file", out)
        self.assertIn("empty", self.gate("loss = 0", code=2, trace=self.empty))

    def test_baseline(self):
        text = "p99(sched_latency where process = 'load') <= baseline * 1.1\nloss = 0\nsum(cpu_time) >= baseline - 1ms"
        base = self.dir / "perf"
        self.gate(text, "--baseline", base, "--record", code=0)
        kept = json.loads((base / "ci.rules.json").read_text())
        self.assertEqual(list(kept), ["p99(sched_latency where process = 'load')", "sum(cpu_time)"])
        self.gate(text, "--baseline", base, code=0)
        p99 = kept["p99(sched_latency where process = 'load')"]
        for factor, code in ((0.5, 1), (0.95, 0), (2, 0)):
            kept["p99(sched_latency where process = 'load')"] = [x * factor for x in p99]
            (base / "ci.rules.json").write_text(json.dumps(kept))
            self.gate(text, "--baseline", base, code=code)
        # blanks do not matter, another rule does
        self.gate("p99( sched_latency  where process = 'load' )<=baseline*99", "--baseline", base, code=2)
        self.gate("p99(sched_latency  where process = 'load')<=baseline*99", "--baseline", base, code=0)
        self.assertIn("there is no baseline of 'max(slice)'", self.gate("max(slice) <= baseline", "--baseline", base, code=2))
        (base / "ci.rules.json").write_text("{\"a\": [x]}")
        self.refuses(text, "--baseline", base, text="this is not a baseline")
        self.refuses(text, "--baseline", self.dir / "nowhere", text="--record makes it")
        self.refuses(text, text="--baseline DIR is needed")
        self.refuses("loss = 0", "--record", text="--baseline DIR is needed")
        self.refuses("loss = 0", "--record", "--baseline", base, text="nothing to record")
        self.refuses("max(slice where name = 'no') < baseline", "--record", "--baseline", base, text="no row matches")

    def refuses(self, rules, *args, text):
        p = self.run_shell("gate", "--rules", self.rules(rules), *args, SCHED, code=2)
        self.assertIn(text, p.stderr.decode())
        self.assertEqual(p.stdout, b"")

    def test_rules_that_are_none(self):
        for rules, text in (("", "there is no rule"), ("loss", "line 1: a comparison is missing"), ("loss = 0\nloss =", "line 2: a number"),
                            ("p99(slices) < 1", "did you mean 'slice'"), ("p99.x(slice) < 1", "not known"), ("p101(slice) < 1", "not known"),
                            ("max(slice where ) < 1", "a condition is missing"), ("max(slice where name = 'x) < 1", "a quote is not closed"),
                            ("max(slice where (a) < 1", "')' is missing"), ("max slice < 1", "'(' and a source"), ("1 < 2 3", "goes on"),
                            ("1 < 2 < 3", "goes on"), ("1parsec < 2", "units are"), ("1.2.3 < 2", "not a number"), ("baseline < 1", "right side"),
                            ("(" * 100 + "1", "nested"), ("1" + "+1" * 1000 + " < 1", "too long"), ("max(slice) # < 1", "comparison is missing"),
                            ("1 < 2\n" * 1001, "too many rules"), ("max(slice and 1) < 1", "'where' or ')'")):
            with self.subTest(rules=rules[:40]):
                self.refuses(rules, text=text)
        p = self.run_shell("gate", SCHED, code=2)
        self.assertIn("--rules FILE is needed", p.stderr.decode())
        self.assertIn("--format", self.run_shell("gate", "--format", "tap", SCHED, code=2).stderr.decode())
        self.assertIn("a trace file", self.run_shell("gate", "--rules", "x", code=2).stderr.decode())

    def test_formats(self):
        text = "loss = 0\ncount(slice where name = '<&>\"') > 0\nmax(slice where x = 1) < 1"
        doc = json.loads(self.gate(text, "--format", "json", code=2))
        self.assertEqual([(r["status"], r["line"]) for r in doc], [("passed", 1), ("failed", 2), ("unchecked", 3)])
        suite = xml.etree.ElementTree.fromstring(self.gate(text, "--format", "junit", code=2))
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("3", "1", "1"))
        self.assertIn("'<&>\"'", suite[1].get("name"))
        self.assertEqual([[c.tag for c in case] for case in suite], [[], ["failure"], ["error"]])
        lines = self.gate(text, "--format", "github", code=2).splitlines()
        self.assertEqual([line.split(" ")[0] for line in lines], ["::notice", "::error", "::error"])
        self.assertIn("ci.rules,line=2,title=", lines[1])
        out = self.dir / "gate.xml"
        self.assertEqual(self.gate(text, "--format", "junit", "-o", out, code=2), "")
        self.assertIn("<testsuite", out.read_text())


if __name__ == "__main__":
    harness.main()

"""tp_shell check: what fails, rules, formats, hints."""
import json
import xml.etree.ElementTree

import harness

OVERRUN = harness.DATA / "linux-kernel-overrun.pftrace"
GOOD = harness.DATA / "linux-sched.pftrace"


class Check(harness.Case):
    def check(self, *args, code):
        return self.run_shell("check", *args, code=code).stdout.decode()

    def test_good_traces(self):
        for name in ("linux-sched", "linux-deflate", "linux-zstd", "mm-guest-only", "mm-host-only"):
            self.assertIn("ok", self.check(harness.DATA / f"{name}.pftrace", code=0))

    def test_losses(self):
        for name, stat, cure in (("linux-kernel-overrun", "ftrace_cpu_has_data_loss", "buffer_size_kb"),
                                 ("linux-ring-overwritten", "traced_buf_chunks_overwritten", "size_kb"),
                                 ("linux-discarded", "traced_buf_chunks_discarded", "size_kb"),
                                 ("linux-discarded", "traced_buf_patches_failed", "size_kb")):
            out = self.check(harness.DATA / f"{name}.pftrace", code=1)
            self.assertIn(stat, out)
            self.assertIn(cure, out.split(f"{stat}:")[1])

    def test_where_and_how_many(self):
        out = self.check(OVERRUN, code=1)
        self.assertRegex(out, r"data_loss +ftrace_cpu_overrun_delta +host, cpu 0 +104827\b")
        self.assertRegex(out, r"data_loss +ftrace_cpu_overrun_delta +host, cpu 1 +53672\b")

    def test_fail_on(self):
        self.check("--fail-on", "error", OVERRUN, code=0)
        self.check("--fail-on", "none", OVERRUN, code=0)
        self.check("--fail-on", "data_loss", OVERRUN, code=1)
        self.check("--fail-on=error,data_loss", OVERRUN, code=1)
        self.fails("check", "--fail-on", "all", OVERRUN, text="--fail-on")

    def test_allow(self):
        self.check("--allow", "ftrace_cpu_*", OVERRUN, code=0)
        self.check("--allow", "ftrace_cpu_has_data_loss", OVERRUN, code=1)
        self.check("--allow", "ftrace_cpu_has_data_loss", "--allow", "ftrace_cpu_overrun_delta=104827", OVERRUN, code=0)
        out = self.check("--allow", "ftrace_cpu_has_data_loss", "--allow", "ftrace_cpu_overrun_delta=104826", OVERRUN, code=1)
        self.assertIn("1 problem, 3 allowed", out)
        self.assertIn("(allowed)", out)
        self.fails("check", "--allow", "a=b", OVERRUN, text="NAME=N")

    def test_several_traces(self):
        out = self.check(GOOD, OVERRUN, code=1)
        self.assertIn(f"{GOOD}: ok", out)
        self.assertIn(f"{OVERRUN}: FAILED", out)

    def test_trace_that_cannot_be_loaded(self):
        junk = self.dir / "junk"
        junk.write_bytes(b"\xfe\xed\xfa\xce" * 64)
        self.assertIn("cannot be loaded", self.check(junk, code=1))
        self.assertIn("cannot be loaded", self.check("/nonexistent", code=1))

    def test_a_trace_without_a_byte_is_not_healthy(self):
        self.assertIn("empty", self.check(self.empty, code=1))
        self.run_shell("check", "-", stdin=b"", code=1)
        piped = self.run_shell("check", "-", stdin=GOOD.read_bytes())
        self.assertRegex(piped.stderr, rb"Trace loaded: 0\.35 MB")

    def test_json(self):
        doc = json.loads(self.check("--format", "json", GOOD, OVERRUN, "/nonexistent", code=1))
        self.assertEqual([d["ok"] for d in doc], [True, False, False])
        self.assertEqual(doc[0]["problems"], [])
        self.assertIn("/nonexistent", doc[2]["error"])
        loss = [p for p in doc[1]["problems"] if p["name"] == "ftrace_cpu_overrun_delta"]
        self.assertEqual([(p["cpu"], p["value"], p["machine"], p["severity"]) for p in loss],
                         [(0, 104827, 0, "data_loss"), (1, 53672, 0, "data_loss")])
        self.assertIn("buffer_size_kb", loss[0]["hint"])

    def test_junit(self):
        root = xml.etree.ElementTree.fromstring(self.check("--format", "junit", GOOD, OVERRUN, "/non<exist>", code=1))
        self.assertEqual((root.get("tests"), root.get("failures"), root.get("errors")), ("6", "4", "1"))
        self.assertEqual(len(root.findall("testcase/failure")), 4)
        self.assertIn("/non<exist>", root.find("testcase/error").get("message"))

    def test_github(self):
        lines = self.check("--format", "github", GOOD, OVERRUN, code=1).splitlines()
        self.assertEqual(len(lines), 4)
        for line in lines:
            self.assertRegex(line, r"^::error file=.*linux-kernel-overrun\.pftrace,title=data_loss::ftrace_cpu_\w+ \(host")

    def test_report_into_a_file(self):
        self.assertEqual(self.check("-o", self.dir / "r.json", "--format", "json", OVERRUN, code=1), "")
        self.assertFalse(json.loads((self.dir / "r.json").read_text())[0]["ok"])
        self.fails("check", "-o", "/nonexistent/x", OVERRUN, text="/nonexistent/x")

    def test_format_error(self):
        self.fails("check", "--format", "csv", OVERRUN, text="text, json, junit, github")


if __name__ == "__main__":
    harness.main()

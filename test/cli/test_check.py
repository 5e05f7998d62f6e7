"""tp_shell check: what fails, rules, formats, hints."""
import gzip
import json
import os
import random
import shutil
import subprocess
import time
import xml.etree.ElementTree

import harness
from pb import field

OVERRUN = harness.DATA / "linux-kernel-overrun.pftrace"
GOOD = harness.DATA / "linux-sched.pftrace"


def boundaries(trace):
    """Where packets begin, and the end of the file."""
    at, out = 0, [0]
    while at < len(trace):
        at += 1  # the tag of Trace.packet
        shift = length = 0
        while True:
            byte = trace[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        at += length
        out.append(at)
    return out


class Check(harness.Case):
    def ask(self, trace, sql):
        out = self.run_shell("query", trace, sql).stdout.decode()
        return [[cell.strip('"') for cell in line.split(",")] for line in out.splitlines()[1:]]

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

    def check_cuts(self, trace, cuts):
        """Each beginning of the trace fails the check, and says what is wrong with the file."""
        paths = []
        for n in cuts:
            paths.append(self.dir / f"{n}.cut")
            paths[-1].write_bytes(trace[:n])
        doc = json.loads(self.check("--format", "json", *paths, code=1))
        self.assertEqual(len(doc), len(paths))
        for report, n in zip(doc, cuts):
            self.assertFalse(report["ok"], f"{n} bytes of {len(trace)}")
            names = [p["name"] for p in report["problems"]]
            self.assertTrue({"trace_cut_bytes", "trace_end_missing"} & set(names), f"{n} bytes: {names}")
        for path in paths:
            path.unlink()

    def test_a_trace_that_was_cut_off_is_not_ok_wherever_that_was(self):
        trace = GOOD.read_bytes()
        draw = random.Random(15)
        cuts = [50, 100_000, 200_000, len(trace) - 1, 1, 2] + boundaries(trace)[1:-1]
        self.check_cuts(trace, cuts + [draw.randrange(1, len(trace)) for _ in range(60)])

    def test_a_compressed_trace_that_was_cut_off_is_not_ok(self):
        for name in ("linux-deflate", "linux-zstd"):
            trace = (harness.DATA / f"{name}.pftrace").read_bytes()
            self.check_cuts(trace, boundaries(trace)[1:-1] + [len(trace) - 1, len(trace) // 2])
        packed = self.dir / "cut.pftrace.gz"
        packed.write_bytes(gzip.compress(GOOD.read_bytes())[:-100])
        self.assertIn("cannot be loaded", self.check(packed, code=1))
        packed.write_bytes(gzip.compress(GOOD.read_bytes()[:200_000]))
        self.assertIn("trace_cut_bytes", self.check(packed, code=1))

    def test_a_cut_trace_from_a_pipe_is_not_ok(self):
        out = self.run_shell("check", "-", stdin=GOOD.read_bytes()[:-1], code=1).stdout
        self.assertIn(b"trace_cut_bytes", out)

    def test_a_stream_between_two_of_its_writes_is_not_ok(self):
        """Statistics come with every tick of a session that writes into its file: the last ones say that it was disabled."""
        service = field(3, 0) + field(10, 1)
        config = field(1, field(33, field(8, 1)) + service)
        life = field(1, field(69, field(2, 1)) + field(8, 5) + service)
        stats = field(1, field(35, b"") + service)
        ended = field(1, field(69, field(5, 1)) + field(8, 9) + service)
        trace = self.dir / "stream.pftrace"
        trace.write_bytes(config + life + stats)
        self.assertIn("trace_end_missing", self.check(trace, code=1))
        trace.write_bytes(config + life + stats + ended + stats)
        out = self.check(trace, code=0)
        self.assertIn("ok", out)
        self.assertIn("config_write_into_file_no_flush", out, "what a config may lose is said, and is no loss")
        self.check("--fail-on", "notice", trace, code=1)

    def test_a_file_that_is_still_written_says_so(self):
        trace = self.dir / "running.pftrace"
        trace.write_bytes(GOOD.read_bytes()[:200_000])
        with trace.open("ab"):
            out = self.check(trace, code=1)
        self.assertIn("trace_still_written", out)
        self.assertIn("Wait until its recorder has ended", out)
        self.assertNotIn("trace_still_written", self.check(trace, code=1))

    def test_machines_are_called_by_their_names(self):
        two = gzip.decompress((harness.DATA / "mm-two-machines.pftrace.gz").read_bytes())
        guest = 3967572054
        lost = field(1, field(1, field(1, 0) + field(3, 1)) + field(98, guest) + field(10, 77))
        last = boundaries(two)[-3]
        for name, shown in ((b"web1", "web1, cpu 0"), (b"we\nb1\x1b", "we?b1?, cpu 0"), (None, "machine 1, cpu 0")):
            named = field(1, field(45, field(17, name)) + field(98, guest)) if name else b""
            trace = self.dir / "named.pftrace"
            trace.write_bytes(two[:last] + named + lost + two[last:])
            self.assertIn(f" {shown} ", self.check(trace, code=1))
        report = json.loads(self.check("--format", "json", trace, code=1))
        self.assertIsNone(report[0]["problems"][0]["machine_name"])

    def test_absences_of_machines_are_rows_and_have_names_in_text(self):
        two = gzip.decompress((harness.DATA / "mm-two-machines.pftrace.gz").read_bytes())
        last = boundaries(two)[-3]
        (start,), (end,) = self.ask(harness.DATA / "mm-two-machines.pftrace.gz", "select start_ts from trace_bounds union all select end_ts from trace_bounds")
        start, end = int(start), int(end)

        def losses(until):  # a service repeats what it said, and the last word counts
            first = field(1, b"traced_probes") + field(2, start + 5) + (field(3, until) if until else b"")
            sequences = field(4, field(1, 7) + field(2, start + 4)) + field(4, field(1, 9))
            wrong = field(9, field(1, b"wrong") + field(2, end) + field(3, start)) + field(9, field(2, 2 ** 63 + 1))
            body = field(1, 1) + field(9, first + sequences) + field(9, field(2, end)) + wrong
            return field(1, field(990, body) + field(98, 3967572054) + field(3, 0))

        trace = self.dir / "away.pftrace"
        trace.write_bytes(two[:last] + losses(0) + losses(start + 1005) + two[last:])
        self.assertEqual(self.ask(trace, f"select machine_id, ifnull(producer, '-'), ts - {start}, ifnull(dur, '-') from machine_absence order by ts"),
                         [["1", "traced_probes", "5", "1000"], ["1", "-", str(end - start), "-"]])
        self.assertEqual(self.ask(trace, f"select a.producer, s.sequence, ifnull(s.last_ts - {start}, '-') from machine_absence_sequence s "
                                         "join machine_absence a on a.id = s.absence_id order by 2"),
                         [["traced_probes", "7", "4"], ["traced_probes", "9", "-"]])
        self.assertIn("machine_absences_dropped", self.check(trace, code=1))
        text = self.run_shell("convert", "text", trace, "-").stdout.decode()
        self.assertRegex(text, r"machine_losses \{\s+producers_lost: 1\s+absences \{\s+producer: \"traced_probes\"\s+since_ns: \d+\s+"
                               r"sequences \{\s+id: 7\s+last_ns: \d+\s+\}")

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

    def test_every_form_tells_what_the_recorder_said(self):
        reasons = [b"no <event> is \"sched/x\": 50 % & more", b"not\nmounted\x01"]
        trace = self.dir / "said.pftrace"
        problems = b"".join(field(1, field(991, field(1, 3) + field(2, i) + field(3, b"linux.ftrace") + field(4, b"probes") + field(7, r)))
                            for i, r in enumerate(reasons))
        trace.write_bytes(problems + GOOD.read_bytes())
        said = ['could not start: no <event> is "sched/x": 50 % & more; correct what the reason says',
                "could not start: not?mounted?; correct what the reason says"]
        forms = {form: self.check("--format", form, trace, code=1) for form in ("text", "json", "junit", "github")}
        (report,) = json.loads(forms["json"])
        (case,) = xml.etree.ElementTree.fromstring(forms["junit"]).findall("testcase/system-out")
        github = [line for line in forms["github"].splitlines() if "the recorder said" in line]
        for lines in (forms["text"].partition("The recorder said:\n")[2].splitlines(), report["recorder"],
                      case.text.splitlines()[1:]):
            self.assertEqual(len(lines), 2)
            for line, want in zip(lines, said):
                self.assertIn(want, line)
        for line, want in zip(github, said):
            self.assertRegex(line, r"^::error file=.*said\.pftrace,title=the recorder said::data source ")
            self.assertIn(want.replace("%", "%25"), line)
        self.assertEqual(len(github), 2)
        allowed = ("--allow", "recording_*", "--format")
        self.assertIn("::notice ", self.check(*allowed, "github", trace, code=0))
        self.assertEqual(len(json.loads(self.check(*allowed, "json", trace, code=0))[0]["recorder"]), 2)
        self.assertEqual(json.loads(self.check("--format", "json", GOOD, code=0))[0]["recorder"], [])
        self.assertIn("not?mounted?", self.check(*allowed, "junit", trace, code=0))

    def test_report_into_a_file(self):
        self.assertEqual(self.check("-o", self.dir / "r.json", "--format", "json", OVERRUN, code=1), "")
        self.assertFalse(json.loads((self.dir / "r.json").read_text())[0]["ok"])
        self.fails("check", "-o", "/nonexistent/x", OVERRUN, text="/nonexistent/x")

    def test_format_error(self):
        self.fails("check", "--format", "csv", OVERRUN, text="text, json, junit, github")


class Shrinking(harness.Case):
    def load(self, left):
        """Loads a trace and a pipe. The trace is mapped when the pipe is opened; it is cut to `left` bytes before that one
        ends."""
        trace, pipe = self.dir / f"shrinks{left}.pftrace", self.dir / f"pipe{left}"
        os.mkfifo(pipe)
        shutil.copy(GOOD, trace)
        sql = "select value from stats where name = 'file_shrank'"
        p = subprocess.Popen([harness.SHELL, "query", str(trace), str(pipe), sql], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while p.poll() is None and time.monotonic() < end:  # it opens the pipe twice: to look at it, and to read
            try:
                fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads it now
                time.sleep(0.01)
                continue
            os.truncate(trace, left)
            os.close(fd)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err

    def test_shrinking(self):
        for left in (0, 50_000, 200_000):
            with self.subTest(left):
                code, out, err = self.load(left)
                self.assertEqual((code, out), (1, ""), err)
                self.assertIn("became shorter while it was read", err)


if __name__ == "__main__":
    harness.main()

"""What a terminal shows while a trace loads: the steps, how far they are, nothing left behind; Ctrl-C in the midst of it."""
import pathlib
import re
import signal
import tempfile

import harness

TRACE = harness.DATA / "linux-sched.pftrace"


class Progress(harness.Case):
    def test_each_step_is_shown(self):
        code, got = self.on_terminal("query", "--dev", "--dev-flag", "all-progress=true", TRACE, "select 1")
        self.assertEqual(code, 0, got)
        lines = [line.strip() for line in got.split("\r") if "Loading trace:" in line]
        size = f"{TRACE.stat().st_size / 1e6:.2f}"
        reading = [line for line in lines if "reading" in line]
        self.assertTrue(any(f"of {size} MB" in line for line in reading), lines)
        sorting = [re.search(r"sorting ([\d.]+) of ([\d.]+) million events(, [\d.]+ million/s, \d+ s left)?$", line)
                   for line in lines if "sorting" in line]
        self.assertTrue(sorting and all(sorting), lines)
        self.assertTrue(all(m[3] for m in sorting[1:]), lines)  # at its beginning the speed of a step is not known
        done = [float(m[1]) for m in sorting]
        self.assertEqual(done, sorted(done))
        self.assertEqual(sorting[-1][1], sorting[-1][2])  # all of them in the end
        order = [step for step in ("reading", "sorting", "indexing") if any(step in line for line in lines)]
        self.assertEqual(order, ["reading", "sorting", "indexing"])
        self.assertLess(max(map(len, lines)), 80)
        # The last thing on that line is blanks; what follows stands on a clean one.
        self.assertRegex(got, r"\r {78}\rTrace loaded:")

    def test_a_short_load_shows_nothing(self):
        code, got = self.on_terminal("query", self.empty, "select 1")
        self.assertEqual(code, 0, got)
        self.assertNotIn("Loading", got)

    def test_only_terminals_get_it(self):
        p = self.run_shell("query", "--dev", "--dev-flag", "all-progress=true", TRACE, "select 1")
        self.assertNotIn(b"Loading", p.stderr)

    def test_ctrl_c_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            for step in (b"reading", b"sorting"):
                code, got = self.on_terminal("query", "--threads", 4, "--dev", "--dev-flag", "all-progress=true",
                                             *[TRACE] * 20, "select 1", interrupt_at=step, cwd=folder)
                self.assertIn(code, (-signal.SIGINT, 130), got[-300:])
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
                self.assertNotIn("Trace loaded", got)


if __name__ == "__main__":
    harness.main()

"""What trace-cmd and perf of this machine record now, beside what they say of it themselves: the checks of test_trace_dat and
test_perf over new recordings.

    test_recorded_anew.py TraceCmd|Perf

Skipped (77) where they cannot record. Some kernels have no function tracer, without which trace-cmd gives up: empty files of
a mount namespace take the place of what it would write to."""
import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import test_perf
import test_trace_dat
from trace_cmd import INSTANCE, WITHOUT_FUNCTIONS

LOAD = ["sh", "-c", "for i in $(seq 60); do true | cat; sleep 0.001; done"]
FIELDS = "comm,pid,tid,cpu,time,period,event,trace"


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


class Anew(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def need(self, program, package):
        if not shutil.which(program):
            self.skipTest(f"no {program} (apt install {package})")

    def recorded(self, p, path):
        if p.returncode or not path.exists():
            self.skipTest("cannot record here: " + p.stderr.decode()[-300:])

    def beside_trace_cmd(self, name):
        """Compares NAME.dat with trace-cmd's report; returns how many values are the same."""
        with gzip.open(self.dir / f"{name}.report.gz", "wb") as f:
            f.write(run("trace-cmd", "report", "-t", self.dir / f"{name}.dat").stdout)
        test_trace_dat.HERE = test_trace_dat.SHARED = str(self.dir)
        return test_trace_dat.TraceDat("test_samples").check(name)

    def beside_perf(self, name, *tests):
        """Runs tests of test_perf over the folder, and fails as they fail."""
        with gzip.open(self.dir / f"{name}.script.gz", "wb") as f:
            f.write(run("perf", "script", "--ns", "-F", FIELDS, "-i", self.dir / f"{name}.data").stdout)
        test_perf.HERE = test_perf.SHARED = str(self.dir)
        for test in tests:
            result = unittest.TestResult()
            test_perf.Perf(test).run(result)
            for _, text in result.failures + result.errors:
                self.fail(text)
            self.assertEqual(result.testsRun, 1)


class TraceCmd(Anew):
    def check(self, name, *flags):
        self.need("trace-cmd", "trace-cmd")
        path = self.dir / f"{name}.dat"
        p = run("unshare", "-m", "sh", "-c", WITHOUT_FUNCTIONS, "sh", "record", "-B", INSTANCE, "-e", "sched:sched_switch", "-e",
                "sched:sched_wak*", "-e", "sched:sched_process*", "-e", "irq", "-b", "8192", *flags, "-o", path, *LOAD)
        run("rmdir", f"/sys/kernel/tracing/instances/{INSTANCE}")
        self.recorded(p, path)
        self.assertGreater(self.beside_trace_cmd(name), 1000)

    def test_compressed(self):
        self.check("compressed", "--compression", "any")

    def test_version_6_and_of_another_clock(self):
        self.check("old", "--file-version", "6", "-C", "mono")


class Perf(Anew):
    def check(self, name, tests, *flags):
        self.need("perf", "linux-perf")
        path = self.dir / f"{name}.data"
        p = run("perf", "record", "-a", "-k", "CLOCK_MONOTONIC", *flags, "-o", path, "--", *LOAD)
        self.recorded(p, path)
        self.beside_perf(name, *tests)

    def test_tracepoints(self):
        self.check("tracepoints", ("test_tracepoints_are_kernel_events", "test_every_sample_of_perf_script"),
                   "-m", "1024", "-e", "sched:sched_switch,sched:sched_waking", "-c", "1")

    def test_samples(self):
        self.check("samples", ("test_every_sample_of_perf_script",), "-g", "-F", "2500", "-e", "cpu-clock")


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    if program.result.wasSuccessful() and len(program.result.skipped) == program.result.testsRun:
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())

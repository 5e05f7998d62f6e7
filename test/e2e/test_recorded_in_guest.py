"""trace-cmd and perf of the distribution record another kernel, in a guest; what they say of their files is beside what ours says.

Skipped (77) where no guest can be booted, or the recorders are not installed."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import guests

sys.path.insert(0, str(guests.HERE.parent / "cli"))
import test_perf  # noqa: E402
import test_recorded_anew  # noqa: E402

CACHE = os.environ["GUEST_CACHE"]
PROGRAMS = {"trace-cmd": "trace-cmd", "perf": "linux-perf"}
LOAD = "for i in $(seq 12); do true | cat; done; echo B\\|1\\|round > /sys/kernel/tracing/trace_marker; sleep 0.05"
# The top buffer of a guest is nobody else's. Kernels of the distribution have all tracers.
JOB = f"""set -e
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
cat > /load <<'E2'
{LOAD}
E2
record() {{ out=$1; shift; trace-cmd record -o /out/$out.dat "$@" sh /load >/out/$out.log 2>&1; }}
record sched -b 4096 -e sched -e irq -e raw_syscalls
record old-date -b 4096 --file-version 6 -C mono --date -e sched:sched_switch -e sched:sched_waking -e signal -B second -e irq
record graph -b 4096 -p function_graph -l vfs_read -l vfs_write
trace-cmd start -b 8 -e sched -e raw_syscalls -e irq >/out/lossy.log 2>&1
sh /load; sh /load
trace-cmd stop; trace-cmd extract -o /out/lossy.dat >>/out/lossy.log 2>&1; trace-cmd reset
perf record -a -g -F 500 -e cpu-clock -o /out/samples.data -- sh /load >/out/samples.log 2>&1
perf record -a -z -c 1 -m 1024 -k CLOCK_MONOTONIC -e sched:sched_switch,sched:sched_waking,irq:irq_handler_entry -o /out/tracepoints.data -- sh /load >/out/tracepoints.log 2>&1
perf record -a --switch-events -F 200 -e cpu-clock -o - -- sh /load >/out/stream.data 2>/out/stream.log
rm -rf /out/*.cpu*
"""


class InGuest(test_recorded_anew.Anew):
    @classmethod
    def setUpClass(cls):
        cls.there = pathlib.Path(tempfile.mkdtemp(dir=CACHE))
        cls.addClassCleanup(shutil.rmtree, cls.there)
        (cls.there / "job").write_text(JOB)
        p = guests.shell('''guest_start "$1" recorders "$2/job" "$3" "$4" && guest_wait "$1" recorders 240 && tar xf "$1/recorders.disk" -C "$2"''',
                         CACHE, cls.there, *map(shutil.which, PROGRAMS), capture_output=True, text=True)
        if p.returncode:
            logs = "".join(f.read_text(errors="replace")[-500:] for f in cls.there.glob("*.log"))
            raise AssertionError(f"the guest did not record: {p.stdout[-2000:]}{p.stderr[-500:]}{logs}")

    def take(self, name):
        shutil.copy(self.there / name, self.dir)

    def trace_cmd(self, name, least):
        self.take(f"{name}.dat")
        self.assertGreater(self.beside_trace_cmd(name), least)

    def perf(self, name, *more):
        self.take(f"{name}.data")
        test_perf.ENOUGH = 30
        self.beside_perf(name, *more)

    def test_events(self):
        self.trace_cmd("sched", 2000)

    def test_version_6_another_clock_wall_clock_and_an_instance(self):
        self.trace_cmd("old-date", 300)

    def test_calls(self):
        self.trace_cmd("graph", 10)

    def test_losses(self):
        self.trace_cmd("lossy", 100)

    def test_samples(self):
        self.perf("samples", "test_every_sample_of_perf_script")

    def test_tracepoints_compressed(self):
        self.perf("tracepoints", "test_tracepoints_are_kernel_events", "test_every_sample_of_perf_script")

    def test_stream(self):
        self.perf("stream", "test_every_sample_of_perf_script")


if __name__ == "__main__":
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            print(f"skipped: no {program} (apt install {package})")
            sys.exit(77)
    guests.need(CACHE)
    unittest.main(verbosity=1)

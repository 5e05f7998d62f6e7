#!/usr/bin/env python3
"""What recording costs: CPU of traced_probes and of traced per million events, bytes per event.

    bench_probes.py BUILD_DIR [COMMAND ...]

Records scheduler and system-call events while the command runs (default: perf bench sched pipe, or processes that hand a
byte to and fro where there is no perf), in a tracefs instance of its own: compact and typed through the daemons, then eight
idle seconds that are read once a second, then the probes alone, reading pages with read() and from the mapped buffer.
Only events of the command are recorded: what else the machine does would change the mix. Beside the figures stand those of Perfetto v58.2 for the same load; the exit code is 1 when ours are worse. Needs root."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ["TRACEBOX"], os.environ["TP_SHELL"] = str(BUILD / "tracebox"), str(BUILD / "tp_shell")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import recorder  # noqa: E402

PIPE = """
import os
r, w = os.pipe(); a, b = os.pipe()
if os.fork() == 0:
    for _ in range(100000): os.read(r, 1); os.write(b, b"x")
    os._exit(0)
for _ in range(100000): os.write(w, b"x"); os.read(a, 1)
os.wait()
"""
COMMAND = sys.argv[2:] or (["perf", "bench", "sched", "pipe", "-l", "100000"] if shutil.which("perf")
                           else [sys.executable, "-c", PIPE])
EVENTS = ["sched/sched_switch", "sched/sched_waking", "task/*", "irq/*", "raw_syscalls/*"]
CONFIG = """
buffers { size_kb: 524288 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  %s buffer_size_kb: 16384 %%s
  tids_to_trace: %d tracefs_options { name: "event-fork" state: STATE_ENABLED } } } }
duration_ms: %%d
""" % (" ".join(f'ftrace_events: "{e}"' for e in EVENTS), os.getpid())
# Perfetto's probes and service under this load: seconds of CPU per million events, bytes per event (24; how many of the
# events are system calls varies from run to run, and moves the figure by one).
BARS = {"probes": 0.16, "service": 0.11, "bytes": 25}
missed = []


def cpu(process):
    """Seconds of CPU so far. All work of both daemons is done by one thread."""
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9


def check(name, what, value):
    if value > BARS[what]:
        missed.append(f"{name}: {what} {value:.3f}, Perfetto {BARS[what]}")


def run(r, command):
    """Runs the command once the kernel follows our children."""
    r.wait_for("the recording", r.instances)
    time.sleep(0.5)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def daemons(name, extra, bars):
    with recorder.Recorder() as r:
        before = cpu(r.probes), cpu(r.traced)
        begin = time.monotonic()
        trace = r.record(CONFIG % (extra, 6000), lambda: run(r, COMMAND))
        wall = time.monotonic() - begin
        probes, service = cpu(r.probes) - before[0], cpu(r.traced) - before[1]
        sums = {row["name"]: int(row["total"]) for row in r.query(trace, """
            select name, sum(value) as total from stats
            where name in ('ftrace_cpu_read_events_delta', 'ftrace_cpu_overrun_delta') group by name""")}
        size = trace.stat().st_size
    events, lost = sums["ftrace_cpu_read_events_delta"], sums["ftrace_cpu_overrun_delta"]
    million = max(events, 1) / 1e6
    got = {"probes": probes / million, "service": service / million, "bytes": size / max(events, 1)}
    print(f"{name}: {events} events, {lost} lost, {got['bytes']:.1f} bytes each; CPU per million events: probes "
          f"{got['probes']:.3f} s, service {got['service']:.3f} s; probes {probes / wall * 100:.2f} % of a cpu, "
          f"service {service / wall * 100:.2f} %")
    for what in bars:
        check(name, what, got[what])
    if lost:
        missed.append(f"{name}: {lost} events lost")


def idle():
    """Between set-up and tear-down, with nothing to record."""
    with recorder.Recorder() as r:
        used = []

        def during():
            run(r, ["sleep", "1"])
            begin = time.monotonic(), cpu(r.probes), cpu(r.traced)
            time.sleep(8)
            wall = time.monotonic() - begin[0]
            used.extend(100 * (cpu(p) - b) / wall for p, b in zip((r.probes, r.traced), begin[1:]))

        r.record(CONFIG % ("drain_period_ms: 1000", 11000), during)
    print("idle, read once a second: probes %.3f %% of a cpu, service %.3f %%" % tuple(used))


def alone(mode):
    out = subprocess.run([BUILD / "bench_ftrace", "-b", "16384", "-m", mode, *EVENTS, "--", *COMMAND],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    records, pages = map(int, re.search(r"(\d+) records on (\d+) pages", out).groups())
    used = float(re.search(r"cpu ([\d.]+) s", out).group(1))
    print(f"probes alone, {mode}: {records} events on {pages} pages; {used / records * 1e6:.3f} s per million events, "
          f"{used / pages * 1e6:.2f} us a page")


recorder.need_tracefs()
print(f"Perfetto v58.2: probes {BARS['probes']} s, service {BARS['service']} s, 24 bytes")
daemons("compact", "", ("probes", "service", "bytes"))
daemons("typed", "compact_sched { enabled: false }", ("probes", "service"))
idle()
for mode in ("read", "map"):
    alone(mode)
for line in missed:
    print("missed:", line)
sys.exit(1 if missed else 0)

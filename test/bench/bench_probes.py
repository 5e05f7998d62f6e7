#!/usr/bin/env python3
"""What recording costs end to end: CPU of traced_probes and of traced per million events, bytes per event.

    bench_probes.py PATH/tracebox PATH/tp_shell [COMMAND ...]

Records scheduler and system-call events while the command runs (default: perf bench sched pipe), in a tracefs instance of
its own, compact and typed; then ten idle seconds that are read once a second. Needs root."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
os.environ["TRACEBOX"], os.environ["TP_SHELL"] = sys.argv[1:3]
import recorder  # noqa: E402

COMMAND = sys.argv[3:] or ["perf", "bench", "sched", "pipe", "-l", "100000"]
CONFIG = """
buffers { size_kb: 524288 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch" ftrace_events: "sched/sched_waking" ftrace_events: "task/*"
  ftrace_events: "irq/*" ftrace_events: "raw_syscalls/*" buffer_size_kb: 16384 %s } } }
duration_ms: %d
"""


def cpu(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name, extra, ms, command):
    with recorder.Recorder() as r:
        before = cpu(r.probes), cpu(r.traced)
        begin = time.monotonic()
        trace = r.record(CONFIG % (extra, ms),
                         lambda: command and subprocess.run(command, stdout=subprocess.DEVNULL, check=True))
        wall = time.monotonic() - begin
        probes, service = cpu(r.probes) - before[0], cpu(r.traced) - before[1]
        sums = {row["name"]: int(row["total"]) for row in r.query(trace, """
            select name, sum(value) as total from stats
            where name in ('ftrace_cpu_read_events_delta', 'ftrace_cpu_overrun_delta') group by name""")}
        events, lost = sums["ftrace_cpu_read_events_delta"], sums["ftrace_cpu_overrun_delta"]
        size = trace.stat().st_size
    million = max(events, 1) / 1e6
    print(f"{name}: {events} events, {lost} lost, {size / max(events, 1):.1f} bytes each; per million events "
          f"probes {probes / million:.3f} s, service {service / million:.3f} s; probes {probes / wall * 100:.2f} % of a cpu")


recorder.need_tracefs()
measure("compact", "", 6000, COMMAND)
measure("typed", "compact_sched { enabled: false }", 6000, COMMAND)
measure("idle, read once a second", "drain_period_ms: 1000", 10000, None)

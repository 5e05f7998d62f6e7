#!/usr/bin/env python3
"""What sampling costs: processor time of traced_perf, how much slower `perf bench sched pipe` gets, and what perf record
takes for the same. It also compares the shares of a known program with what it measured itself.

Usage: bench_perf.py BUILD [SECONDS]      (as root; `perf` is optional; target busy must be built)
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

TRACEBOX, BUSY = sys.argv[1] + "/tracebox", sys.argv[1] + "/busy"
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
PIPE = ["perf", "bench", "sched", "pipe", "-l", "200000"]


def run(*args):
    p = subprocess.run(list(map(str, args)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.stdout


def number(pattern, text):
    m = re.search(pattern, text)
    return float(m[1]) if m else float("nan")


def cpu_ms():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (r.ru_utime + r.ru_stime)


def ours(folder, hz, dwarf):
    """Samples, and processor time of traced_perf; both CPUs are busy meanwhile."""
    out = run(TRACEBOX, "profile", "-F", hz, *dwarf, "-t", f"{SECONDS}s", "-o", f"{folder}/t")
    samples = number(r"(\d+) samples of running", out) + number(r"(\d+) of idle", out)
    return samples, number(r"used (\d+) ms", out), number(r"(\d+) lost", out), os.path.getsize(f"{folder}/t")


def perf_record(folder, hz, graph):
    """The same of perf record: what it writes is not unwound yet."""
    before = cpu_ms()
    run("perf", "record", "-q", "-a", "--call-graph", graph, "-F", hz, "-e", "cpu-clock", "-o", f"{folder}/p", "--", "sleep", SECONDS)
    ms = cpu_ms() - before
    out = run("perf", "report", "-i", f"{folder}/p", "--stats")
    return number(r"SAMPLE events: +(\d+)", out), ms, number(r"LOST events: +(\d+)", out), os.path.getsize(f"{folder}/p")


def show(name, hz, figures):
    samples, ms, lost, size = figures
    print(f"{name}, {hz} Hz: {samples:.0f} samples, {ms:.0f} ms, {1000 * ms / samples:.1f} ms for 1,000; lost {lost:.0f}; "
          f"{size / 1e6:.1f} MB", flush=True)


def main():
    perf = shutil.which("perf")
    with tempfile.TemporaryDirectory() as folder:
        load = [subprocess.Popen([BUSY, "3600"], stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())]
        for hz in (99, 999):
            show("traced_perf, frame pointers", hz, ours(folder, hz, []))
            show("traced_perf, unwind tables", hz, ours(folder, hz, ["--dwarf"]))
            if perf:
                show("perf record -g", hz, perf_record(folder, hz, "fp"))
                show("perf record --call-graph dwarf (not unwound)", hz, perf_record(folder, hz, "dwarf"))
        for p in load:
            p.kill()
            p.wait()
        if perf:
            for hz in (99, 999):
                times = [("alone", []), ("profile", [TRACEBOX, "profile", "-F", hz, "-o", f"{folder}/t", "--"]),
                         ("profile --dwarf", [TRACEBOX, "profile", "-F", hz, "--dwarf", "-o", f"{folder}/t", "--"])]
                for graph in ("fp", "dwarf"):
                    times.append((f"perf record --call-graph {graph}", ["perf", "record", "-q", "-a", "--call-graph", graph, "-F", hz, "-e",
                                                                      "cpu-clock", "-o", f"{folder}/p", "--"]))
                best = {name: float("inf") for name, _ in times}
                for _ in range(3):  # in turns
                    for name, around in times:
                        best[name] = min(best[name], number(r"([0-9.]+) usecs/op", run(*around, *PIPE)))
                print(f"sched pipe, {hz} Hz: " + ", ".join(f"{us:.2f} us {name}" for name, us in best.items()), flush=True)
        out = run(TRACEBOX, "profile", "-F", 999, "-o", f"{folder}/t", "--rows", 500, "--", BUSY, SECONDS - 1)
        truth = dict(re.findall(r"^(hot|warm|cold) \d+ ([0-9.]+)$", out, re.M))
        found = dict((name, float(share)) for share, name in re.findall(r"^ *([0-9.]+)%  (hot|warm|cold)  \[", out, re.M))
        whole = sum(found.values()) or 1
        for name, share in truth.items():
            print(f"{name}: {100 * found.get(name, 0) / whole:.1f} % of the samples, {float(share):.1f} % of the time")


main()

#!/usr/bin/env python3
"""What sampling costs: processor time of traced_perf, how much slower `perf bench sched pipe` gets, and what perf record
takes for the same. It also compares the shares of a known program with what it measured itself.

Usage: bench_perf.py BUILD [SECONDS|pipe]      (pipe: the slowdown alone; as root; `perf` is optional; target busy must be built)
"""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

TRACEBOX, BUSY = sys.argv[1] + "/tracebox", sys.argv[1] + "/busy"
ONLY_PIPE = sys.argv[2:] == ["pipe"]
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 and not ONLY_PIPE else 10
PIPE = ["sh", "-c", "perf bench sched pipe -l 200000; times"]
ROUNDS = 9


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


def pipe_ms(around):
    """User and system time of the two processes that pass messages, without those around them."""
    out = run(*around, *PIPE)
    m = re.search(r"\n\d+m[\d.]+s \d+m[\d.]+s\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n", out)
    return 1000 * (60 * (int(m[1]) + int(m[3])) + float(m[2]) + float(m[4]))


def slowdown(folder, hz):
    """How much longer the processors work, beside a run alone just before: medians of the rounds, and the middle half."""
    profile, record = [TRACEBOX, "profile", "-F", hz, "-o", f"{folder}/t"], ["perf", "record", "-q", "-a", "-F", hz, "-e", "cpu-clock"]
    ways = {"alone again": [], "profile": profile + ["--"], "profile --dwarf": profile + ["--dwarf", "--"]}
    for graph in ("fp", "dwarf"):
        ways[f"perf record --call-graph {graph}"] = record + ["--call-graph", graph, "-o", f"{folder}/p", "--"]
    ratios, alone = {name: [] for name in ways}, []
    for _ in range(ROUNDS):
        for name, around in ways.items():
            alone.append(pipe_ms([]))
            ratios[name].append(pipe_ms(around) / alone[-1])
    print(f"sched pipe, {hz} Hz: {statistics.median(alone) / 200:.2f} us of processor time a message alone", flush=True)
    for name, r in ratios.items():
        low, middle, high = statistics.quantiles(r, n=4)
        print(f"  {name}: {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)


def main():
    perf = shutil.which("perf")
    with tempfile.TemporaryDirectory() as folder:
        load = [subprocess.Popen([BUSY, "3600"], stdout=subprocess.DEVNULL) for _ in range(0 if ONLY_PIPE else os.cpu_count())]
        for hz in () if ONLY_PIPE else (99, 999):
            show("traced_perf, frame pointers", hz, ours(folder, hz, []))
            show("traced_perf, unwind tables", hz, ours(folder, hz, ["--dwarf"]))
            if perf:
                show("perf record -g", hz, perf_record(folder, hz, "fp"))
                show("perf record --call-graph dwarf (not unwound)", hz, perf_record(folder, hz, "dwarf"))
        for p in load:
            p.kill()
            p.wait()
        if perf:
            slowdown(folder, 99)
            slowdown(folder, 999)
        if ONLY_PIPE:
            return
        out = run(TRACEBOX, "profile", "-F", 999, "-o", f"{folder}/t", "--rows", 500, "--", BUSY, SECONDS - 1)
        truth = dict(re.findall(r"^(hot|warm|cold) \d+ ([0-9.]+)$", out, re.M))
        found = dict((name, float(share)) for share, name in re.findall(r"^ *([0-9.]+)%  (hot|warm|cold)  \[", out, re.M))
        whole = sum(found.values()) or 1
        for name, share in truth.items():
            print(f"{name}: {100 * found.get(name, 0) / whole:.1f} % of the samples, {float(share):.1f} % of the time")


main()

#!/usr/bin/env python3
"""What sampling costs: processor time of traced_perf, how much slower `perf bench sched pipe` gets, and what perf record
takes for the same. It also compares the shares of a known program with what it measured itself.

Usage: bench_perf.py BUILD [SECONDS]      (as root; `perf` is optional; target busy must be built)
"""
import re
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


def pipe_us(*around):
    """The best of three."""
    return min(number(r"([0-9.]+) usecs/op", run(*around, *PIPE)) for _ in range(3))


def main():
    perf = shutil.which("perf")
    with tempfile.TemporaryDirectory() as folder:
        for hz in (99, 999):
            out = run(TRACEBOX, "profile", "-F", hz, "-t", f"{SECONDS}s", "-o", f"{folder}/t")
            samples = number(r"(\d+) samples of running", out) + number(r"(\d+) of idle", out)
            ms = number(r"used (\d+) ms", out)
            lost = number(r"(\d+) lost", out)
            print(f"{hz} Hz: {samples:.0f} samples, traced_perf {ms:.0f} ms, {1000 * ms / samples:.1f} ms for 1,000; "
                  f"lost {lost:.0f}")
        if perf:
            print(f"sched pipe: {pipe_us():.2f} us alone")
            for hz in (99, 999):
                ours = pipe_us(TRACEBOX, "profile", "-F", hz, "-o", f"{folder}/t", "--")
                theirs = pipe_us("perf", "record", "-q", "-a", "-g", "-F", hz, "-e", "cpu-clock", "-o", f"{folder}/p", "--")
                print(f"sched pipe: {ours:.2f} us under profile, {theirs:.2f} us under perf record ({hz} Hz)")
        out = run(TRACEBOX, "profile", "-F", 999, "-o", f"{folder}/t", "--rows", 500, "--", BUSY, SECONDS - 1)
        truth = dict(re.findall(r"^(hot|warm|cold) \d+ ([0-9.]+)$", out, re.M))
        found = dict((name, float(share)) for share, name in re.findall(r"^ *([0-9.]+)%  (hot|warm|cold)  \[", out, re.M))
        whole = sum(found.values()) or 1
        for name, share in truth.items():
            print(f"{name}: {100 * found.get(name, 0) / whole:.1f} % of the samples, {float(share):.1f} % of the time")


main()

#!/usr/bin/env python3
"""Measures tp_shell on amplified recordings, beside sha256sum of the same files and Perfetto's figures.

    make bench                                  everything (a few minutes)
    python3 test/bench/bench.py --build DIR [--only sched] [--runs N] [--no-queries] [--no-linearity] [--no-sorting]
                                [--json FILE]

The traces are made deterministically from test/data by the program `amplify`. Each import takes turns with sha256sum of
the same file (start-up with that of amp-sched), and the median of the ratios is what is judged: it makes figures of different machines
comparable, and those of one whose speed changes from second to second. Other times are the best of several runs; where
a process had to wait for a busy machine that share is taken out. Exit 1
when a bar is missed: import at most a sixth of Perfetto's ratio of wall time and CPU / 4.5, memory at most a quarter,
start-up at most an eighth, 5 million track events a second at the pace of Perfetto's machine, no query slower, cost at
most 2.3 times per doubling, the sorter's memory that of a window however long the trace, an event in 1,000 times as
many queues at most 20 times the cost."""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"

# name: recording, copies; Perfetto v58.2: import time / sha256sum time, peak MiB
TRACES = {
    "sched": ("linux-sched.pftrace", 280, 15.7, 1030),
    "nocompact": ("linux-sched-nocompact.pftrace.gz", 263, 4.8, 456),
    "syscalls": ("linux-syscalls.pftrace.gz", 84, 7.5, 714),
}
REFERENCE_STARTUP = (0.11, 42)  # seconds, MiB, on linux-sched.pftrace
REFERENCE_SHA_MS = 320          # sha256sum of amp-sched when the query figures were taken
REFERENCE_QUERY_MS = {          # amp-sched, amp-nocompact; 0.99 stands for "below 1"
    "01-count": (87, 26), "02-sum-filter": (47, 21), "03-group-cpu": (289, 135), "04-group-thread": (252, 125),
    "05-join-process": (728, 324), "06-range-by-time": (0.99, 0.99), "07-point-lookups": (572, 293),
    "08-event-names": (1108, 227), "09-window": (2423, 1041), "10-states": (787, 350), "11-extract-arg": (2231, 969),
    "12-args-scan": (0.99, 0.99), "13-wakeup-latency": (476, 213), "14-materialise": (591, 250),
    "15-span-join": (853, 330),
}
WALL_BAR, CPU_BAR, MEMORY_BAR, STARTUP_BAR = 6, 4.5, 4, 8  # times better than Perfetto
LINEAR_BAR = 2.3
WINDOW_COPIES = (20, 80, 280)  # of a recording that is flushed and read after each
WINDOW_BAR = 1.1               # peak of the sorter, longest to shortest
QUEUES_BAR = 20                # cost of an event in 64,000 queues to that in 64
SDK_EVENTS = 10_000_000  # track events, as an application's SDK writes them
SDK_BAR = 5              # M events/s of wall time where sha256sum reads REFERENCE_SHA_MB_S
REFERENCE_SHA_MB_S = 100.3e3 / REFERENCE_SHA_MS

missed = []


def bar(ok, what):
    if not ok:
        missed.append(what)
    return "" if ok else "  << bar missed"


class Failed(Exception):
    pass


def run(args, capture=False):
    """(wall seconds, cpu seconds, peak MiB, standard output) of one process."""
    start = time.monotonic()
    p = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         stdout=subprocess.PIPE if capture else subprocess.DEVNULL)
    out = p.stdout.read() if capture else b""
    err = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.monotonic() - start
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise Failed(f"{' '.join(map(str, args))} failed:\n{err.decode(errors='replace')[-2000:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.decode(errors="replace")


def best(args, runs):
    """The smallest wall, cpu and peak of several runs."""
    got = [run(args) for _ in range(runs)]
    return tuple(min(g[i] for g in got) for i in range(3))


class Turns:
    """`runs` processes in turns with sha256sum of a file: medians of seconds and of ratios, the largest peak."""

    def __init__(self, args, path, runs):
        turns = [(run(args), run(["sha256sum", path])) for _ in range(runs)]
        middle = statistics.median
        self.wall, self.cpu = (middle(t[0][i] for t in turns) for i in (0, 1))
        self.sha, self.sha_cpu = (middle(t[1][i] for t in turns) for i in (0, 1))
        self.ratio, self.cpu_ratio = (middle(t[0][i] / t[1][i] for t in turns) for i in (0, 1))
        self.worst = max(t[0][0] / t[1][0] for t in turns)
        self.peak = max(t[0][2] for t in turns)


class Bench:
    def __init__(self, build, runs):
        self.shell = build / "tp_shell"
        self.amplify = build / "amplify"
        self.sdk_trace = build / "sdk_trace"
        self.sorter = build / "bench_sorter"
        self.dir = build / "bench"
        self.runs = runs
        self.turns = 2 * runs + 1
        self.dir.mkdir(exist_ok=True)
        self.report = {}

    def recording(self, name):
        """The path of a recording of test/data, unpacked."""
        if not name.endswith(".gz"):
            return DATA / name
        plain = self.dir / name[:-3]
        if not plain.exists():
            plain.write_bytes(gzip.decompress((DATA / name).read_bytes()))
        return plain

    def amplified(self, name, copies, *how):
        path = self.dir / ("-".join(["amp", name, str(copies), *how]) + ".pftrace")
        if not path.exists():
            part = path.with_suffix(".part")
            run([self.amplify, self.recording(TRACES[name][0]), copies, part, *how])
            part.rename(path)
        return path

    def ask(self, trace, sql):
        return run([self.shell, "query", trace, sql], capture=True)[3].split()[-1]

    def imports(self, name):
        _, copies, ref_ratio, ref_peak = TRACES[name]
        trace = self.amplified(name, copies)
        mb = trace.stat().st_size / 1e6
        t = Turns([self.shell, "query", trace, "select 1"], trace, self.turns)
        events = int(self.ask(trace, "select count(*) from ftrace_event"))
        slices = int(self.ask(trace, "select count(*) from sched"))
        print(f"\namp-{name}: {mb:.1f} MB, {events / 1e6:.2f} M ftrace events, {slices / 1e6:.2f} M sched slices")
        print(f"  import       {t.wall:8.3f} s   {mb / t.wall:8.1f} MB/s   {events / t.wall / 1e6:6.2f} M events/s   "
              f"(cpu {t.cpu:.3f} s)")
        print(f"  sha256sum    {t.sha:8.3f} s")
        print(f"  ratio        {t.ratio:8.2f}     Perfetto {ref_ratio:.1f}: {ref_ratio / t.ratio:.1f} times faster"
              f" ({ref_ratio / t.worst:.1f} in the worst turn)   (by cpu time {ref_ratio / t.cpu_ratio:.1f})"
              + bar(t.ratio <= ref_ratio / WALL_BAR, f"{name}: wall time")
              + bar(t.cpu_ratio <= ref_ratio / CPU_BAR, f"{name}: CPU time"))
        print(f"  peak memory  {t.peak:8.0f} MiB Perfetto {ref_peak}: {ref_peak / t.peak:.1f} times less"
              + bar(t.peak <= ref_peak / MEMORY_BAR, f"{name}: memory"))
        self.report[name] = {"mb": mb, "events": events, "slices": slices, "import_s": t.wall, "cpu_s": t.cpu,
                             "sha256sum_s": t.sha, "ratio": t.ratio, "cpu_ratio": t.cpu_ratio, "peak_mib": t.peak}
        return t.sha_cpu

    def startup(self):
        trace = self.recording("linux-sched.pftrace")
        t = Turns([self.shell, "query", trace, "select 1"], self.amplified("sched", TRACES["sched"][1]), max(self.turns, 9))
        times = REFERENCE_STARTUP[0] * 1e3 / REFERENCE_SHA_MS / t.ratio
        print(f"\nstart-up to first answer, linux-sched.pftrace: {t.wall * 1e3:.1f} ms, {t.peak:.1f} MiB   "
              f"Perfetto {REFERENCE_STARTUP[0] * 1e3:.0f} ms, {REFERENCE_STARTUP[1]} MiB: {times:.1f} times faster"
              f" (both by sha256sum of amp-sched)" + bar(times >= STARTUP_BAR, "start-up"))
        self.report["startup"] = {"s": t.wall, "peak_mib": t.peak}

    def queries(self, name, column, scale):
        """Each query in a process of its own, after the load; Perfetto's figures scaled to this machine."""
        trace = self.amplified(name, TRACES[name][1])
        print(f"\nqueries on amp-{name}, ms (Perfetto's figures scaled by sha256sum: x {scale:.2f})")
        product, known, report = 1.0, 0, {}
        for path in sorted((HERE / "queries").glob("*.sql")):
            try:
                got = min(self.query_ms(path, trace) for _ in range(self.runs))
                reference = REFERENCE_QUERY_MS.get(path.stem)
                # without a figure of Perfetto's: what SQLite alone takes over the same tables
                want = reference[column] * scale if reference else self.query_ms(path, trace, "native-plan=off")
            except Failed as e:
                print(f"  {path.stem:20} failed: {str(e).strip().splitlines()[-1]}" + bar(False, f"{name}: {path.stem}"))
                continue
            if reference:
                product *= want / got
                known += 1
            report[path.stem] = got
            # below a millisecond nobody waits: such figures are noise on both sides
            print(f"  {path.stem:20} {got:9.2f}   {'Perfetto' if reference else '  SQLite'} {want:9.2f}   {want / got:8.2f} x"
                  + bar(got <= max(want, 1), f"{name}: query {path.stem}"), flush=True)
        mean = product ** (1 / known)
        print(f"  geometric mean {mean:.2f} times faster than Perfetto")
        self.report.setdefault(name, {})["queries_ms"] = report

    def query_ms(self, path, trace, *flags):
        perf = self.dir / "perf"
        flags = [word for flag in flags for word in ("--dev-flag", flag)]
        wall, cpu, _, _ = run([self.shell, "query", *flags, "--perf-file", perf, "-f", path, trace])
        # on a busy machine a process waits for its turn: that share is not the query's
        return int(perf.read_text().split(",")[1]) / 1e6 * min(1, cpu / wall)

    def linearity(self, name):
        copies = TRACES[name][1]
        print(f"\ncost of amp-{name} by size")
        before = None
        for n in (copies // 4, copies // 2, copies):
            wall, cpu, peak = best([self.shell, "query", self.amplified(name, n), "select 1"], self.runs)
            if before:
                note = f"   x {cpu / before[0]:.2f} cpu, x {peak / before[1]:.2f} memory" + bar(
                    cpu <= LINEAR_BAR * before[0] and peak <= LINEAR_BAR * before[1], f"{name}: linearity at {n}")
            else:
                note = ""
            print(f"  {n:5} copies  {wall:8.3f} s  cpu {cpu:8.3f} s  {peak:8.0f} MiB{note}")
            before = (cpu, peak)

    def sorting(self):
        """Memory of the sorter by windows and in full; the cost of an event by the number of queues."""
        traces = [self.amplified("sched", n, "flush") for n in WINDOW_COPIES]
        lines = [line.split() for line in run([self.sorter, *traces], capture=True)[3].splitlines()]
        windows = [(int(a), int(b)) for what, a, b in lines if what == "window"]
        merges = [(int(a), int(b)) for what, a, b in lines if what == "merge"]
        print("\npeak memory of the sorter, amp-sched flushed and read after each copy")
        for n, (window, full) in zip(WINDOW_COPIES, windows):
            print(f"  {n:5} copies  by windows {window / 1e6:8.2f} MB   --full-sort {full / 1e6:8.2f} MB"
                  + bar(window <= WINDOW_BAR * windows[0][0], f"sorter: window at {n}"))
        print("\nmerging events of queues at random, CPU time an event (1,000 machines of 64 cpus are 64,000 queues)")
        for queues, ns in merges:
            print(f"  {queues:6} queues  {ns:5} ns" + bar(ns <= QUEUES_BAR * merges[0][1], f"sorter: {queues} queues"))
        self.report["sorter"] = {"windows": windows, "merge_ns": merges}

    def sdk(self):
        """Track events with interned names and nested annotations: n/4, n/2 and n of them."""
        print("\ntrack events of an SDK, 8 threads")
        before, report = None, []
        for n in (SDK_EVENTS // 4, SDK_EVENTS // 2, SDK_EVENTS):
            trace = self.dir / f"sdk-{n}.pftrace"
            if not trace.exists():
                part = trace.with_suffix(".part")
                run([self.sdk_trace, n, part])
                part.rename(trace)
            size = trace.stat().st_size
            t = Turns([self.shell, "query", trace, "select 1"], trace, self.turns)
            there = n / 1e6 / (t.ratio * size / 1e6 / REFERENCE_SHA_MB_S)
            # The file is mapped: its pages count as memory of the process, but can be dropped at any time.
            own = t.peak * 2**20 - size
            print(f"  {n / 1e6:5.2f} M  {size / 1e6:6.1f} MB  {t.wall:8.3f} s  {n / t.wall / 1e6:6.2f} M events/s  cpu {t.cpu:7.3f} s"
                  f"  sha256sum x {t.ratio:.2f} ({there:.1f} M events/s where that reads {REFERENCE_SHA_MB_S:.0f} MB/s)"
                  f"  {t.peak:6.0f} MiB, {own / n:5.1f} bytes an event beside the file", end="")
            if before:
                # the file is twice the size: what a byte costs beside sha256sum says more than seconds of two moments
                times = 2 * t.cpu_ratio / before
                print(f"   x {times:.2f} cpu" + bar(times <= LINEAR_BAR, f"sdk: linearity at {n}"), end="")
            if n == SDK_EVENTS:
                print(bar(there >= SDK_BAR, "sdk: events a second"), end="")
            print(flush=True)
            before = t.cpu_ratio
            report.append({"events": n, "s": t.wall, "cpu_s": t.cpu, "ratio": t.ratio, "peak_mib": t.peak,
                           "own_bytes_per_event": own / n})
        self.report["sdk"] = report


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", type=pathlib.Path, required=True)
    ap.add_argument("--only", help="traces, of " + ",".join(TRACES) + ",sdk")
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--no-queries", action="store_true")
    ap.add_argument("--no-linearity", action="store_true")
    ap.add_argument("--no-sorting", action="store_true")
    ap.add_argument("--no-sdk", action="store_true")
    ap.add_argument("--json", type=pathlib.Path)
    a = ap.parse_args()
    if not (a.build / "tp_shell").exists():
        sys.exit(f"bench: build {a.build}/tp_shell first")
    names = [n for n in a.only.split(",") if n != "sdk"] if a.only else list(TRACES)
    b = Bench(a.build.resolve(), a.runs)
    sha = {name: b.imports(name) for name in names}
    if not a.no_sdk and (not a.only or "sdk" in a.only.split(",")):
        b.sdk()
    b.startup()
    for column, name in enumerate(("sched", "nocompact")):
        if name in names and not a.no_queries:
            # both files are of one size: one sha256sum figure serves both
            b.queries(name, column, sha[name] * 1e3 / REFERENCE_SHA_MS)
    if "sched" in names and not a.no_linearity:
        b.linearity("sched")
    if "sched" in names and not a.no_sorting:
        b.sorting()
    if a.json:
        a.json.write_text(json.dumps(b.report, indent=1))
    print("\nall bars held" if not missed else "\nbars missed: " + "; ".join(missed))
    sys.exit(1 if missed else 0)


try:
    main()
except Failed as e:
    sys.exit(f"bench: {e}")

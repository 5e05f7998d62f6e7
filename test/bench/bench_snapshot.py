"""Snapshots beside the traces they were made of: size, time to the first answer, private memory, ten questions by ten processes.

    bench_snapshot.py BUILD_DIR [--work DIR] [--only NAME]

Times are wall times of whole processes, the best of several; ratios are to sha256sum of the trace in the same run. The exit code is 1
when a bar is missed; Perfetto's figures are those of test/bench/bench.py (import, in units of sha256sum)."""
import argparse
import gzip
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
TRACES = [("amp-sched", "linux-sched.pftrace", 280, 15.7), ("amp-nocompact", "linux-sched-nocompact.pftrace.gz", 263, 4.8),
          ("amp-syscalls", "linux-syscalls.pftrace.gz", 84, 7.5)]
QUESTIONS = ["select count(*) from sched", "select sum(dur) from sched", "select count(*) from thread_state",
             "select cpu, sum(dur) from sched group by cpu", "select count(*) from thread", "select max(ts) from ftrace_event",
             "select name, count(*) from ftrace_event group by name", "select state, sum(dur) from thread_state group by state",
             "select count(*) from slice", "select utid, sum(dur) from sched group by utid order by 2 desc limit 10"]
OPEN_MS, PRIVATE_MB, SIZE, TEN = 15, 10, 2.0, 50


def best(n, run):
    times = []
    for _ in range(n):
        start = time.monotonic()
        run()
        times.append(time.monotonic() - start)
    return min(times)


def quiet(*args):
    subprocess.run([str(a) for a in args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def private_mb(shell, snapshot):
    """Private memory of a process that has answered count(*) and waits at its prompt."""
    p = subprocess.Popen([shell, "interactive", snapshot], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdin.write(b"select count(*) from sched;\n")
    p.stdin.flush()
    time.sleep(1.5)
    text = pathlib.Path(f"/proc/{p.pid}/smaps_rollup").read_text()
    p.send_signal(signal.SIGKILL)
    p.wait()
    return sum(int(v) for v in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M)) / 1024


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build")
    ap.add_argument("--work", default="/tmp/meridian-bench")
    ap.add_argument("--only", default="")
    a = ap.parse_args()
    build, work = pathlib.Path(a.build), pathlib.Path(a.work)
    shell = str(build / "tp_shell")
    amplify = next(build.rglob("amplify"), None)
    if amplify is None:
        sys.exit("bench_snapshot: build the target amplify first")
    work.mkdir(parents=True, exist_ok=True)
    missed = []
    print(f"{'trace':14} {'MB':>6} {'snapshot':>9} {'x trace':>8} {'import s':>9} {'open ms':>8} {'user+sys':>9} {'private MB':>11} {'10 asks s':>10} {'x sha256':>9} {'Perfetto':>9}")
    for name, recording, copies, perfetto in TRACES:
        if a.only and a.only not in name:
            continue
        trace, snap, source = work / f"{name}.pftrace", work / f"{name}.mrdsnap", DATA / recording
        if not trace.exists():
            if source.suffix == ".gz":
                plain = work / source.stem
                plain.write_bytes(gzip.decompress(source.read_bytes()))
                source = plain
            quiet(amplify, source, copies, trace)
        quiet(shell, "snapshot", trace, "-o", snap)
        sha = best(3, lambda: quiet("sha256sum", trace))
        load = best(2, lambda: quiet(shell, "query", trace, QUESTIONS[0]))
        opened = best(15, lambda: quiet(shell, "query", snap, QUESTIONS[0])) * 1000
        before = os.times()
        for _ in range(10):
            quiet(shell, "query", snap, QUESTIONS[0])
        after = os.times()
        cpu = (after.children_user + after.children_system - before.children_user - before.children_system) * 100
        ten = best(3, lambda: [quiet(shell, "query", snap, q) for q in QUESTIONS])
        private = private_mb(shell, snap)
        size, whole = snap.stat().st_size, trace.stat().st_size
        print(f"{name:14} {whole / 1e6:6.0f} {size / 1e6:9.1f} {size / whole:8.2f} {load:9.2f} {opened:8.1f} {cpu:7.1f}ms {private:11.1f} {ten:10.2f} "
              f"{ten / sha:9.2f} {10 * perfetto:9.0f}")
        for what, value, bar in ((f"{name}: open ms", min(opened, cpu), OPEN_MS), (f"{name}: private MB", private, PRIVATE_MB),
                                 (f"{name}: size", size / whole, SIZE),
                                 (f"{name}: ten questions, part of Perfetto's", ten / sha / (10 * perfetto), 1 / TEN)):
            if value > bar:
                missed.append(f"{what}: {value:.3g}, the bar is {bar:.3g}")
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

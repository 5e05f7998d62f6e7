#!/usr/bin/env python3
"""Runs the fuzz targets, and adds up in docs/security.md what came of it.

    scripts/fuzz_all.py BUILD [--minutes 10] [--jobs 1] [TARGET…]     each target (or those) for so many minutes of CPU
    scripts/fuzz_all.py BUILD --aim [--for 60] [--jobs 2]             for an hour, those first that are farthest from the aim
    scripts/fuzz_all.py BUILD --table                                 the runs of BUILD/campaign.tsv into the page's table

Targets run in slices, in the scheduler's idle class, so that other work on the machine goes first; with --nice they take
their share of a machine that is never idle. Corpora grow in BUILD/corpus, seeded from test/fuzz/corpus. Findings are in
BUILD/findings; the exit status is 1 when there are any. BUILD/campaign.tsv gets a line for each slice: the target, its
executions, CPU seconds, findings, the date. --table moves these lines into the page.
"""
import argparse
import datetime
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "security.md")
SLICE_S = 120
ROW = re.compile(r"^\| ([a-z_0-9]+) \| ([\d,]+) \| (< )?([\d.]+) \| (.*?) \| (\d{4}-\d{2}-\d{2}) \|$")

# What reads the bytes of strangers before anything else does: 30 minutes of CPU each, the others 10. `text` takes every format of
# text as it comes; the targets text_* beside it start from one format each.
EXPOSED = {"trace", "ftrace", "track_event", "profiling", "ctf", "archive", "sql", "functions", "rpc", "http", "websocket", "ipc_frame",
           "service", "trace_buffer", "json", "text"}
# It makes its calls up itself, from a seed, and has no corpus.
OWN_INPUTS = {"functions": "fnfuzz"}
CALLS = 40000


def aim_minutes(target):
    return 30 if target in EXPOSED else 10


def targets_of(build):
    """The programs that the build has, by name."""
    found = {}
    for folder in (build, os.path.join(build, "test", "fuzz")):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            if name.startswith("fuzz_") and os.path.isfile(path) and os.access(path, os.X_OK):
                found[name[len("fuzz_"):]] = path
        for target, name in OWN_INPUTS.items():
            if os.path.isfile(os.path.join(folder, name)):
                found[target] = os.path.join(folder, name)
    return found


def write_dictionary(path):
    """Names of tables, columns, functions, stats and keywords."""
    words = set()
    patterns = [("src/storage", ".def", r'^ *[A-Z_]*\("?([a-z_][a-z_0-9]*)"?[,)]'),
                ("src/sql/frontend", ".def", r"^WORD\(([A-Z_]*),"),
                ("src/sql/functions", ".c", r'\.name = "([a-z_0-9]*)"'),
                ("src/sql/operators", ".c", r'\.name = "([a-z_0-9]*)"')]
    for folder, ending, pattern in patterns:
        for name in os.listdir(os.path.join(ROOT, folder)):
            if name.endswith(ending):
                with open(os.path.join(ROOT, folder, name)) as f:
                    words.update(w for w in re.findall(pattern, f.read(), re.M) if w)
    with open(path, "w") as f:
        f.writelines(f'"{w}"\n' for w in sorted(words))


def page_rows():
    """Lines of the page, and what its table says: {target: (line number, executions, minutes)}."""
    with open(PAGE) as f:
        lines = f.read().split("\n")
    rows = {}
    for i, line in enumerate(lines):
        m = ROW.match(line)
        if m:
            rows[m[1]] = (i, int(m[2].replace(",", "")), 0.0 if m[3] else float(m[4]), m[5], m[6])
    return lines, rows


def read_campaign(build):
    """[(target, executions, CPU seconds, findings, date)] of the slices since the last --table."""
    path = os.path.join(build, "campaign.tsv")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        cells = [line.rstrip("\n").split("\t") for line in f]
    return [(c[0], int(c[1]), float(c[2]), int(c[3]), c[4]) for c in cells]


def add_to_page(build):
    lines, rows = page_rows()
    sums = {}
    for target, runs, cpu, found, date in read_campaign(build):
        old = sums.get(target, (0, 0.0, 0, date))
        sums[target] = (old[0] + runs, old[1] + cpu, old[2] + found, max(old[3], date))
    new = []
    for target, (runs, cpu, found, date) in sorted(sums.items()):
        i, runs_before, minutes_before, found_before, _ = rows.get(target, (None, 0, 0.0, "0", ""))
        what = f"{found}, open" if found else found_before
        text = f"| {target} | {runs_before + runs:,} | {minutes_before + cpu / 60:.1f} | {what} | {date} |"
        if i is None:
            new.append(text)
        else:
            lines[i] = text
    if new:
        at = max(i for i, *_ in rows.values()) + 1
        lines[at:at] = new
    first, last = (f(i for i, line in enumerate(lines) if ROW.match(line)) for f in (min, max))
    lines[first:last + 1] = sorted(lines[first:last + 1], key=lambda line: re.sub(r"[^a-z_]", "", line.split("|")[1]))
    with open(PAGE, "w") as f:
        f.write("\n".join(lines))
    path = os.path.join(build, "campaign.tsv")
    if os.path.exists(path):
        os.rename(path, path + ".in-page")


class Campaign:
    """What workers share: which target is next, and what has been run."""

    def __init__(self, build, programs, aim, minutes, end, nice):
        self.scheduler = ["nice", "-n", str(nice)] if nice is not None else ["chrt", "--idle", "0"]
        self.build, self.programs, self.aim, self.minutes, self.end = build, programs, aim, minutes, end
        self.lock = threading.Lock()
        self.busy, self.failed = set(), False
        _, rows = page_rows()
        self.cpu = {t: rows[t][2] * 60 if aim and t in rows else 0.0 for t in programs}
        if aim:
            for target, _, cpu, _, _ in read_campaign(build):
                self.cpu[target] = self.cpu.get(target, 0.0) + cpu
        self.total = {t: [0, 0.0, 0] for t in programs}

    def wanted(self, target):
        return (aim_minutes(target) if self.aim else self.minutes) * 60

    def next(self):
        with self.lock:
            left = [t for t in self.programs if t not in self.busy and self.cpu[t] < self.wanted(t)]
            if not left or (self.end and time.monotonic() >= self.end):
                return None
            target = min(left, key=lambda t: self.cpu[t] / self.wanted(t))
            self.busy.add(target)
            return target

    def minimise(self, target, corpus, seeds):
        """Keeps the inputs of earlier campaigns that reach what no other does."""
        smaller = corpus + ".next"
        os.makedirs(smaller, exist_ok=True)
        subprocess.run(self.scheduler + [self.programs[target], "-merge=1", "-timeout=20",
                        "-artifact_prefix=" + os.path.join(self.build, "slow-"), smaller, corpus, seeds],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
        shutil.rmtree(corpus)
        os.rename(smaller, corpus)

    def command(self, target, findings):
        """What runs one slice of the target."""
        if target in OWN_INPUTS:
            return [self.programs[target], str(CALLS), str(random.randrange(1 << 32))]
        corpus = os.path.join(self.build, "corpus", target)
        seeds = os.path.join(ROOT, "test", "fuzz", "corpus", target)
        os.makedirs(corpus, exist_ok=True)
        if not self.total[target][1]:
            self.minimise(target, corpus, seeds)
        seconds = int(min(SLICE_S, max(1, self.wanted(target) - self.cpu[target])))
        return [self.programs[target], f"-max_total_time={seconds}", "-max_len=4096", "-timeout=60", "-rss_limit_mb=3000",
                "-close_fd_mask=3", "-print_final_stats=1", f"-dict={self.build}/words.dict", f"-artifact_prefix={findings}/{target}-",
                corpus, seeds]

    def run(self, target):
        findings = os.path.join(self.build, "findings")
        log = os.path.join(findings, target + ".log")
        os.makedirs(findings, exist_ok=True)
        command = self.command(target, findings)
        with open(log, "ab") as out:
            at = out.tell()
            process = subprocess.Popen(self.scheduler + command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
        with open(log, errors="replace") as f:
            f.seek(at)
            units = re.findall(r"number_of_executed_units: (\d+)|, (\d+) calls:", f.read())
        cpu = used.ru_utime + used.ru_stime
        runs, found = int("".join(units[-1])) if units else 0, int(status != 0)
        with self.lock:
            self.busy.discard(target)
            self.cpu[target] += max(cpu, 1.0)
            self.failed |= found > 0
            for i, value in enumerate((runs, cpu, found)):
                self.total[target][i] += value
            with open(os.path.join(self.build, "campaign.tsv"), "a") as f:
                f.write(f"{target}\t{runs}\t{cpu:.0f}\t{found}\t{datetime.date.today()}\n")
            if found:
                print(f"{target}: a finding, see {log}", flush=True)

    def work(self):
        while (target := self.next()) is not None:
            self.run(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=10, help="of CPU for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--aim", action="store_true", help="those first that are farthest from what docs/security.md aims at")
    parser.add_argument("--for", dest="time", type=float, metavar="MINUTES", help="end after so long")
    parser.add_argument("--nice", type=int, metavar="N", help="run at this niceness, not in the idle class")
    parser.add_argument("--table", action="store_true", help="bring the table of docs/security.md up to date")
    args = parser.parse_intermixed_args()
    if args.table:
        add_to_page(args.build)
        return 0
    programs = targets_of(args.build)
    unknown = [t for t in args.targets if t not in programs]
    if unknown or not programs:
        print("fuzz_all: not built: " + (" ".join(unknown) or args.build) + "; run `make fuzz` first", file=sys.stderr)
        return 1
    if args.targets:
        programs = {t: programs[t] for t in args.targets}
    write_dictionary(os.path.join(args.build, "words.dict"))
    campaign = Campaign(args.build, programs, args.aim, args.minutes, args.time and time.monotonic() + args.time * 60, args.nice)
    workers = [threading.Thread(target=campaign.work, daemon=True) for _ in range(args.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("| target | executions | CPU minutes | findings |\n|---|---|---|---|")
    for target, (runs, cpu, found) in sorted(campaign.total.items()):
        if cpu:
            print(f"| {target} | {runs:,} | {cpu / 60:.1f} | {found} |")
    return int(campaign.failed)


if __name__ == "__main__":
    sys.exit(main())

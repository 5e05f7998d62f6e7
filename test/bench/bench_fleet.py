#!/usr/bin/env python3
"""What `tp_shell fleet` costs on one ClickHouse server of this machine: CPU of add beside the import alone, for recordings of 20 MB,
0.35 MB and 60 KB, bytes a row beside `export sqlite`, seconds of what analysts ask over 1,000 recordings.

Usage: bench_fleet.py BUILD [--traces N] [--medium N] [--large N] [--rounds N]
"""
import argparse
import concurrent.futures
import gzip
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "cli"))
import clickhouse  # noqa: E402

SOURCES = ["linux-sched.pftrace", "linux-mono.pftrace", "linux-deflate.pftrace", "linux-zstd.pftrace", "linux-syscalls.pftrace.gz",
           "mm-two-machines.pftrace.gz", "linux-sched-nocompact.pftrace.gz"]
QUERIES = [
    ("latency by machine and release", "SELECT machine, release, p50_ns, p99_ns FROM fleet_sched_latency"),
    ("slowest system calls", "SELECT name, sum(calls), sum(total_ns) AS ns, max(max_ns) FROM fleet_trace_syscalls GROUP BY name ORDER BY ns DESC LIMIT 20"),
    ("threads that ran most", "SELECT thread_name, sum(dur) AS ns, uniqExact(trace) FROM sched_slice WHERE utid != 0 GROUP BY thread_name ORDER BY ns DESC LIMIT 10"),
    ("traces with a slow read", "SELECT count() FROM fleet_traces WHERE trace IN (SELECT trace FROM slice WHERE name = 'sys_read' AND dur > 50000000)"),
    ("losses by machine", "SELECT * FROM fleet_losses"),
    ("regressions between builds", "SELECT * FROM fleet_regressions WHERE n_a > 5 AND n_b > 5 ORDER BY p LIMIT 20"),
    ("outliers", "SELECT measure, path, score FROM fleet_outliers ANY INNER JOIN fleet_traces USING trace ORDER BY abs(score) DESC LIMIT 20"),
]


def cpu_of(run):
    """(what it gives, seconds of CPU of the children that it waits for, seconds)"""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    out = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start


def cpu_of_process(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, build, folder):
        self.shell, self.dir = build / "tp_shell", folder
        self.server = clickhouse.Server(folder / "server")
        self.server.configure({})
        self.server.start()
        self.env = {**os.environ, "MERIDIAN_FLEET": self.server.url}

    def run(self, *args):
        return subprocess.run([self.shell, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
                              check=True)

    def cut(self, name, n, variants):
        """`n` recordings: pieces of those at hand, each `variants` times, the same events behind a padding of their own. The fewer pieces,
        the longer they are."""
        folder = self.dir / name
        folder.mkdir()
        pieces = -(-n // variants)

        def one(i):
            name = SOURCES[i % len(SOURCES)]
            path = self.dir / name
            begin, end = self.bounds[name]
            step = (end - begin) // (2 + pieces // len(SOURCES))
            at = begin + step * (i // len(SOURCES))
            self.run("cut", "--from", at, "--to", at + 2 * step, "-o", folder / f"{i:04}-0.pftrace", path)
            data = (folder / f"{i:04}-0.pftrace").read_bytes()
            for k in range(1, variants):
                padding = bytes([0x82, 0x7d, 8]) + f"{k:08}".encode()  # TracePacket.for_testing is 900; 2000 is nobody's
                (folder / f"{i:04}-{k}.pftrace").write_bytes(data + bytes([0x0a, len(padding)]) + padding)
        self.bounds = {}
        for name in SOURCES:
            data = (ROOT / "test/data" / name).read_bytes()
            (self.dir / name).write_bytes(gzip.decompress(data) if name.endswith(".gz") else data)
            text = self.run("query", self.dir / name, "select start_ts, end_ts from trace_bounds").stdout.decode()
            self.bounds[name] = tuple(map(int, text.splitlines()[1].split(",")))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(one, range(pieces)))
        return sorted(folder.iterdir())[:n]

    def large(self, n):
        folder = self.dir / "large"
        folder.mkdir()
        data = (ROOT / "test/data/linux-sched.pftrace").read_bytes()
        for i in range(n):
            (folder / f"{i}.pftrace").write_bytes(data * (57 + i))
        return sorted(folder.iterdir())

    def settle(self):
        """Waits until the server merges nothing."""
        for _ in range(600):
            if self.server.ask("SELECT count() FROM system.merges").strip() == "0":
                return
            time.sleep(0.1)

    def imports(self, paths):
        """Seconds of CPU of `tp_shell query` of each: without what a start of tp_shell takes, and with it."""
        empty = self.dir / "empty.pftrace"
        empty.write_bytes(b"")
        sample = paths if len(paths) <= 100 else paths[:: len(paths) // 100]
        cpu = start = 0
        for p in sample: # in turns: what else the machine does falls on both
            cpu += cpu_of(lambda: self.run("query", "--threads", "1", p, "select 1"))[1]
            start += cpu_of(lambda: self.run("query", "--threads", "1", empty, "select 1"))[1]
        size = sum(p.stat().st_size for p in paths) / sum(p.stat().st_size for p in sample)
        return (cpu - start) * size, cpu * size

    def add(self, name, paths, rounds):
        """Import alone and add in turns, the latter into fleets of their own; the last is NAME."""
        size = sum(p.stat().st_size for p in paths) / 1e6
        taken = []
        for i in range(rounds):
            database = name if i == rounds - 1 else f"{name}{i}"
            self.run("fleet", "init", "--database", database)
            alone, whole = self.imports(paths)
            before = cpu_of_process(self.server.process.pid)
            _, cpu, seconds = cpu_of(lambda: self.run("fleet", "add", "--database", database, "--jobs", "2", *{p.parent for p in paths}))
            self.settle()
            taken.append({"alone": alone, "whole": whole, "cpu": cpu, "seconds": seconds, "ratio": cpu / alone, "to_whole": cpu / whole,
                          "server": cpu_of_process(self.server.process.pid) - before})
        m = {k: statistics.median(t[k] for t in taken) for k in taken[0]}
        there = f"FROM system.parts WHERE active AND database = '{name}_local'"
        rows, disk = (int(self.server.ask(f"SELECT sum({what}) {there}")) for what in ("if(table LIKE '%_rows', rows, 0)", "bytes_on_disk"))
        n = len(paths)
        print(f"{name}: {n} recordings, {size:.1f} MB, {rows} rows; medians of {rounds}")
        print(f"  add: {m['seconds']:.1f} s, {n / m['seconds']:.1f} recordings/s, {size / m['seconds']:.2f} MB/s, {rows / m['seconds']:.0f} rows/s")
        print(f"  CPU: add {m['cpu']:.2f} s ({1000 * m['cpu'] / n:.1f} ms a recording), {m['ratio']:.2f} times the import alone ({m['alone']:.2f} s), "
              f"{m['to_whole']:.2f} times `tp_shell query` of each ({m['whole']:.2f} s); the server {m['server']:.2f} s with its merges")
        print(f"  {rows / (m['cpu'] + m['server']):.0f} rows a second of CPU, add and server")
        print(f"  disk: {disk / 1e6:.1f} MB, {disk / rows:.2f} bytes a row, {disk / size / 1e6:.2f} times the recordings", flush=True)

    def sqlite(self, paths, rows_of):
        """Bytes a row of `export sqlite`."""
        size = rows = 0
        for path in paths:
            self.run("export", "sqlite", path, "-o", self.dir / "t.db")
            size += (self.dir / "t.db").stat().st_size
            rows += rows_of(path)
        print(f"  export sqlite: {size / rows:.1f} bytes a row of the same tables")

    def queries(self, name):
        for what, sql in QUERIES:
            took = []
            for _ in range(3):
                start = time.monotonic()
                self.run("fleet", "query", "--database", name, sql)
                took.append(time.monotonic() - start)
            print(f"  {what}: {min(took):.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--medium", type=int, default=200)
    parser.add_argument("--large", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    clickhouse.need()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-fleet-"))
    b = Bench(a.build.resolve(), folder)
    try:
        large = b.large(a.large)
        b.add("large", large, a.rounds)

        def rows_of(path):
            return int(b.server.ask(f"SELECT sum(n) FROM large.fleet_traces ARRAY JOIN rows AS n WHERE path = '{path}'"))
        b.sqlite(large[:1], rows_of)
        b.add("medium", b.cut("medium", a.medium, 8), a.rounds)
        b.add("small", b.cut("small", a.traces, 4), 1)
        b.queries("small")
    finally:
        b.server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What `tp_shell fleet` costs on one ClickHouse server of this machine: CPU of add beside the import alone, bytes a row beside
`export sqlite`, seconds of five queries over 1,000 recordings.

Usage: bench_fleet.py BUILD [--traces N] [--large N]
"""
import argparse
import concurrent.futures
import gzip
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "cli"))
import clickhouse  # noqa: E402

SOURCES = ["linux-sched.pftrace", "linux-mono.pftrace", "linux-deflate.pftrace", "linux-zstd.pftrace", "linux-syscalls.pftrace.gz",
           "mm-two-machines.pftrace.gz", "linux-sched-nocompact.pftrace.gz"]
VARIANTS = 4  # of each piece: the same events behind a padding of their own
QUERIES = [
    ("latency by machine and release", "SELECT machine, release, p50_ns, p99_ns FROM fleet_sched_latency"),
    ("slowest system calls", "SELECT name, sum(calls), sum(total_ns) AS ns, max(max_ns) FROM fleet_trace_syscalls GROUP BY name ORDER BY ns DESC LIMIT 20"),
    ("threads that ran most", "SELECT thread_name, sum(dur) AS ns, uniqExact(trace) FROM sched_slice WHERE utid != 0 GROUP BY thread_name ORDER BY ns DESC LIMIT 10"),
    ("traces with a slow read", "SELECT count() FROM fleet_traces WHERE trace IN (SELECT trace FROM slice WHERE name = 'sys_read' AND dur > 50000000)"),
    ("losses by machine", "SELECT * FROM fleet_losses"),
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

    def cut(self, n):
        """`n` recordings: pieces of those at hand, each several times over with other bytes."""
        folder = self.dir / "small"
        folder.mkdir()
        pieces = -(-n // VARIANTS)

        def one(i):
            name = SOURCES[i % len(SOURCES)]
            path = self.dir / name
            begin, end = self.bounds[name]
            step = (end - begin) // (2 + pieces // len(SOURCES))
            at = begin + step * (i // len(SOURCES))
            self.run("cut", "--from", at, "--to", at + 2 * step, "-o", folder / f"{i:04}-0.pftrace", path)
            data = (folder / f"{i:04}-0.pftrace").read_bytes()
            for k in range(1, VARIANTS):
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
        """Seconds of CPU of importing all, without what a start of tp_shell takes."""
        empty = self.dir / "empty.pftrace"
        empty.write_bytes(b"")
        sample = paths if len(paths) <= 100 else paths[:: len(paths) // 100]
        _, start, _ = cpu_of(lambda: [self.run("query", "--threads", "1", empty, "select 1") for _ in range(20)])
        _, cpu, _ = cpu_of(lambda: [self.run("query", "--threads", "1", p, "select 1") for p in sample])
        size = sum(p.stat().st_size for p in paths) / sum(p.stat().st_size for p in sample)
        return (cpu - len(sample) * start / 20) * size

    def add(self, name, paths):
        self.run("fleet", "init", "--database", name)
        alone = self.imports(paths)
        before = cpu_of_process(self.server.process.pid)
        out, cpu, seconds = cpu_of(lambda: self.run("fleet", "add", "--database", name, "--jobs", "2", *{p.parent for p in paths}))
        at_end = cpu_of_process(self.server.process.pid) - before
        self.settle()
        merged = cpu_of_process(self.server.process.pid) - before
        size = sum(p.stat().st_size for p in paths) / 1e6
        rows = int(self.server.ask(f"SELECT sum(rows) FROM system.parts WHERE active AND database = '{name}_local' AND table LIKE '%_rows'"))
        disk = int(self.server.ask(f"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '{name}_local'"))
        print(f"{name}: {len(paths)} recordings, {size:.1f} MB, {rows} rows")
        print(f"  add: {seconds:.1f} s, {len(paths) / seconds:.1f} recordings/s, {size / seconds:.2f} MB/s, {rows / seconds:.0f} rows/s")
        print(f"  CPU: import alone {alone:.2f} s, add {cpu:.2f} s ({cpu / alone:.2f} times), the server {at_end:.2f} s, with its merges {merged:.2f} s "
              f"(add and server: {(cpu + merged) / alone:.2f} times)")
        print(f"  disk: {disk / 1e6:.1f} MB, {disk / rows:.2f} bytes a row, {disk / size / 1e6:.2f} times the recordings")
        return rows

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
    parser.add_argument("--large", type=int, default=6)
    a = parser.parse_args()
    clickhouse.need()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-fleet-"))
    b = Bench(a.build.resolve(), folder)
    try:
        large = b.large(a.large)
        b.add("large", large)

        def rows_of(path):
            return int(b.server.ask(f"SELECT sum(n) FROM large.fleet_traces ARRAY JOIN rows AS n WHERE path = '{path}'"))
        b.sqlite(large[:1], rows_of)
        small = b.cut(a.traces)
        b.add("small", small)
        b.queries("small")
    finally:
        b.server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

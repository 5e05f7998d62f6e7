#!/usr/bin/env python3
"""What the tracing service costs: its buffer alone, commits of up to 500 producers through the whole of it, and idling.

    bench_service.py BUILD_DIR

`make bench-service`. CPU is the service's own (its one thread), so that producers and whatever else the machine does are
left out. The exit code is 1 when the idle service used any CPU, or a commit of one of 500 producers costs more than three times
that of a single one."""
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else sys.exit(__doc__)
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402

harness.TRACEBOX = str(BUILD / "tracebox")
CONFIG = 'buffers { size_kb: 65536 } data_sources { config { name: "load" } }\n'
# producers, commits, bytes a commit, KiB of a page of shared memory
LOADS = [(1, 100000, 200, 4), (10, 100000, 200, 4), (100, 100000, 200, 4), (500, 100000, 200, 4),
         (1, 50000, 4000, 4), (1, 20000, 32000, 32), (500, 20000, 32000, 32)]
IDLE_SECONDS = 5
missed = []


class Bench(harness.Case):
    def runTest(self):
        pass

    def cpu(self):
        """Nanoseconds of CPU, and how often it was scheduled."""
        ns, _, times = map(int, pathlib.Path(f"/proc/{self.traced.pid}/schedstat").read_text().split())
        return ns, times

    def idle(self, what):
        time.sleep(0.5)
        before = self.cpu()
        time.sleep(IDLE_SECONDS)
        ns, times = (b - a for a, b in zip(before, self.cpu()))
        print(f"idle, {what}: {ns / 1e6:.3f} ms of CPU in {IDLE_SECONDS} s, woken {times} times")
        if times:
            missed.append(f"idle, {what}: woken {times} times")

    def load(self, producers, commits, size, page_kb):
        perf = self.perfetto("--txt", "-c", self.config(CONFIG), "-o", self.dir / "trace")
        p = self.spawn(BUILD / "service_load", producers, commits, size, page_kb, stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"ready\n")
        before = self.cpu()[0]
        p.stdin.write(b"go\n")
        p.stdin.flush()
        words = p.stdout.readline().split()
        cpu = (self.cpu()[0] - before) / 1e9
        n, total, seconds = int(words[1]), int(words[3]), float(words[5])
        print(f"{producers:3d} producers, {size:5d} bytes a commit: {n / cpu:8.0f} commits and {total / cpu / 1e6:6.0f} MB "
              f"a second of CPU, {cpu / n * 1e6:5.1f} µs a commit; {n / seconds:8.0f} commits a second of time")
        if producers == 500 and page_kb == 4:
            self.idle("500 producers in a session")
        perf.kill()
        perf.communicate()
        p.communicate(b"leave\n")
        return cpu / n

    def run_all(self):
        print("the buffer alone (bench_buffer):", flush=True)
        subprocess.run([BUILD / "bench_buffer", "1000"], check=True)
        print("\nthrough the service:")
        self.start_traced()
        self.idle("nobody connected")
        costs = {load: self.load(*load) for load in LOADS}
        alone, crowd = costs[LOADS[0]], costs[LOADS[3]]
        if crowd > 3 * alone:
            missed.append(f"a commit of one of 500 producers costs {crowd / alone:.1f} times that of a single one")


bench = Bench()
bench.setUp()
try:
    bench.run_all()
finally:
    bench.tearDown()
for m in missed:
    print("MISSED", m)
sys.exit(bool(missed))

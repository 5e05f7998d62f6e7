#!/usr/bin/env python3
"""What the library of heap profiles costs a program that does nothing but allocate, beside runs without it, in turns.

Usage: bench_heap.py BUILD [ROUNDS]
"""
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

PAIRS = 4000000
CONFIG = ('buffers { size_kb: 32768 } duration_ms: 600000 data_sources { config { name: "android.heapprofd" heapprofd_config { '
          "sampling_interval_bytes: %d all: true block_client: true } } }")


def start(command, env, notify):
    r, w = os.pipe()
    p = subprocess.Popen(command + (["--notify-fd", str(w)] if notify is None else []),
                         env={**env, **({notify: str(w)} if notify else {})}, pass_fds=[w], stderr=subprocess.DEVNULL)
    os.close(w)
    os.read(r, 1)
    os.close(r)
    return p


def cpu_ms(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def main():
    build, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tracebox, library = str(build / "tracebox"), str((build / "libmeridian_heap.so").resolve())
    truth = str(next(p for p in build.rglob("heap_truth") if p.is_file()))
    folder = tempfile.TemporaryDirectory()
    env = {**os.environ, "PERFETTO_PRODUCER_SOCK_NAME": folder.name + "/p", "PERFETTO_CONSUMER_SOCK_NAME": folder.name + "/c",
           "MERIDIAN_HEAP_SOCK_NAME": folder.name + "/h"}

    def loop(**more):
        return float(subprocess.run([truth, "loop", str(PAIRS)], env={**env, **more}, stdout=subprocess.PIPE, check=True).stdout)

    traced = start([tracebox, "traced"], env, "TRACED_NOTIFY_FD")
    daemon = start([tracebox, "heapprofd"], env, "HEAPPROFD_NOTIFY_FD")
    ratios, daemon_ms = {}, {}
    for _ in range(rounds):
        alone = loop()
        ratios.setdefault("nobody listens", []).append(loop(LD_PRELOAD=library, MERIDIAN_HEAP_SOCK_NAME="/nonexistent") / alone)
        alone = loop()
        ratios.setdefault("connected", []).append(loop(LD_PRELOAD=library) / alone)
        for interval in (1 << 19, 1 << 16, 1 << 12):
            alone = loop()
            config = pathlib.Path(folder.name) / "config"
            config.write_text(CONFIG % interval)
            p = start([tracebox, "perfetto", "--txt", "-c", str(config), "-o", folder.name + "/t"], env, None)
            before = cpu_ms(daemon.pid)
            ratios.setdefault(f"interval {interval}", []).append(loop(LD_PRELOAD=library) / alone)
            daemon_ms.setdefault(f"interval {interval}", []).append(cpu_ms(daemon.pid) - before)
            p.send_signal(signal.SIGINT)
            p.wait()
    daemon.terminate()
    traced.terminate()
    print(f"alone: {alone * 1e6 / PAIRS:.1f} ns a pair of malloc(1000) and free")
    for name, values in ratios.items():
        more = f", heapprofd {statistics.median(daemon_ms[name]):.0f} ms" if name in daemon_ms else ""
        print(f"{name}: {statistics.median(values):.2f} times ({min(values):.2f} to {max(values):.2f}){more}")


if __name__ == "__main__":
    main()

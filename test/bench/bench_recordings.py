#!/usr/bin/env python3
"""Imports recordings of trace-cmd, perf and LTTng beside the programs that print them, and beside a recording of our own.

    test/bench/bench_recordings.py BUILD [SECONDS]

A load (pairs of processes that pass bytes through pipes) is recorded for SECONDS (5) by trace-cmd, perf and tracebox at once,
the same events by each; then the same by perf into a pipe, and compressed, and call stacks, for three times as long. Where a recorder is
missing, or the kernel does not let it, its lines are left out. LTTng's trace is written by this script: the same events, a million of
them. Processor seconds of all threads and wall seconds, best of three, all in turns; wall times need a quiet machine. Exit code 1 when a bar is missed: BAR_OTHER times faster than the program beside it, BAR_OWN times the
cost of an event in a recording of our own.
"""
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from ctf_writer import Int, Letters, Struct, Trace  # noqa: E402
from trace_cmd import INSTANCE, WITHOUT_FUNCTIONS  # noqa: E402

BAR_OTHER, BAR_OWN, ROUNDS, PAIRS = 10, 1.5, 3, 4
STACKS_LONGER = 3  # samples are fewer than events: the start of the programs would be most of their time
EVENTS = ["sched/sched_switch", "sched/sched_waking", "raw_syscalls/sys_enter", "raw_syscalls/sys_exit"]
PACKETS, SWITCHES, CONTEXT_AT = 200, 208, 24  # of the CTF trace; its packet context begins there


def ping_pong():
    """A process and its child, which wake each other."""
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        read, write = there[0], back[1]
    else:
        read, write = back[0], there[1]
        os.write(write, b"x")
    while True:
        os.write(write, os.read(read, 1))


class Load:
    def __enter__(self):
        self.pids = []
        for _ in range(PAIRS):
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                ping_pong()
            self.pids.append(pid)
        time.sleep(0.1)

    def __exit__(self, *_):
        for pid in self.pids:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def record(build, there, seconds):
    """{kind: path} of what could be recorded."""
    def colons(kinds):
        return [e.replace("/", ":") for e in kinds]
    commands = {
        "trace.dat": ["unshare", "-m", "sh", "-c", WITHOUT_FUNCTIONS, "sh", "record", "-B", INSTANCE, "-b", "65536", "--compression", "none",
                      *[x for e in colons(EVENTS) for x in ("-e", e)], "-o", there / "trace.dat", "sleep", str(seconds)],
        "perf.data": ["perf", "record", "-a", "-m", "512", "-k", "CLOCK_MONOTONIC", "-c", "1", "-e", ",".join(colons(EVENTS)),
                      "-o", there / "perf.data", "--", "sleep", str(seconds)],
        "own.pftrace": [os.path.join(build, "tracebox"), "record", "-t", f"{seconds}s", "-b", "512mb", "-o", there / "own.pftrace", *EVENTS],
    }
    with Load():
        running = {k: subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for k, c in commands.items() if shutil.which({"trace.dat": "trace-cmd"}.get(k, c[0]))}
        said = {k: p.communicate()[0] for k, p in running.items()}
    subprocess.run(["rmdir", f"/sys/kernel/tracing/instances/{INSTANCE}"], stderr=subprocess.DEVNULL)
    for kind, text in said.items():
        if not (there / kind).exists():
            print(f"{kind}: cannot be recorded here: {text.strip().splitlines()[-1:]}")
    if "perf.data" in running:
        tracepoints = ["perf", "record", "-a", "-m", "512", "-k", "CLOCK_MONOTONIC", "-c", "1", "-e", ",".join(colons(EVENTS))]
        for name, more in (("zstd.data", ["-z", "-o", there / "zstd.data"]), ("pipe.data", ["-o", "-"])):
            with Load(), open(there / "piped", "wb") as out:
                subprocess.run([*tracepoints, *more, "--", "sleep", str(seconds)], stdout=out, stderr=subprocess.DEVNULL)
            if name == "pipe.data":
                (there / "piped").rename(there / name)
        with Load():
            subprocess.run(["perf", "record", "-a", "-g", "-F", "10000", "-e", "cpu-clock", "-o", there / "stacks.data", "--",
                            "sleep", str(STACKS_LONGER * seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {k: there / k for k in ("own.pftrace", "trace.dat", "perf.data", "zstd.data", "pipe.data", "stacks.data") if (there / k).exists()}


def make_ctf(path):
    """As LTTng's kernel tracer writes: two threads that wake each other, by four system calls a switch. A packet ends as it
    begins, and serves again with its times moved by a multiple of 2^27."""
    trace = Trace(str(path), 1)
    tid = Int(32, signed=True)
    comm, names = Letters(n=16), [list(n.ljust(16, b"\0")) for n in (b"ping", b"pong")]
    trace.stream(0)
    trace.event(0, 0, "sched_switch", [("prev_comm", comm), ("prev_tid", tid), ("prev_prio", tid), ("prev_state", Int(64, signed=True)),
                                       ("next_comm", comm), ("next_tid", tid), ("next_prio", tid)])
    trace.event(0, 1, "sched_waking", [("comm", comm), ("tid", tid), ("prio", tid), ("target_cpu", tid)])
    for at, name in enumerate(("write", "read")):
        trace.event(0, 2 + 2 * at, f"syscall_entry_{name}", [("fd", Int(32)), ("buf", Int(64, base=16)), ("count", Int(64))])
        trace.event(0, 3 + 2 * at, f"syscall_exit_{name}", [("ret", Int(64, signed=True))])
    now, events = 1000, []
    for i in range(2 * SWITCHES):
        me, other = i % 2, 1 - i % 2
        for event, values in ((5, {"ret": 1}), (2, {"fd": 4, "buf": 0x7ffd1000 + i % 64, "count": 1}),
                              (1, {"comm": names[other], "tid": 100 + other, "prio": 20, "target_cpu": 0}), (3, {"ret": 1}),
                              (4, {"fd": 3, "buf": 0x7ffd1000 + i % 64, "count": 1}),
                              (0, {"prev_comm": names[me], "prev_tid": 100 + me, "prev_prio": 20, "prev_state": 1,
                                   "next_comm": names[other], "next_tid": 100 + other, "next_prio": 20})):
            now += 700 + i % 97
            events.append((now, event, values))
    trace.write_events("chan_0", 0, events)
    packet = bytes(trace.files["chan_0"])
    stride = (now >> 27 << 27) + (1 << 27)
    out = bytearray()
    for k in range(PACKETS * 2):
        copy = bytearray(packet)
        struct.pack_into("<QQ", copy, CONTEXT_AT, events[0][0] + k * stride, now + k * stride)
        struct.pack_into("<Q", copy, CONTEXT_AT + 32, k)
        out += copy
    trace.files["chan_0"] = out
    trace.close()
    return path


def seconds(command):
    """(processor time of all threads, wall time)"""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def events_of(shell, path):
    table = "perf_sample" if path.name == "stacks.data" else "ftrace_event"
    p = subprocess.run([shell, "query", path, f"SELECT count(*) FROM {table}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(p.stdout.split()[1])


OTHERS = {"trace.dat": ["trace-cmd", "report"], "ctf": ["babeltrace2"]}  # all others: perf


def least(shell, files):
    """{(kind, who): (least processor time, least wall time)}; all take turns."""
    best = {}
    for _ in range(ROUNDS):
        for kind, path in files.items():
            beside = OTHERS.get(kind, ["perf", "script", "-i"]) if kind != "own.pftrace" else None
            for who, command in (("us", [shell, "query", path, "SELECT 1"]), ("other", [*beside, path] if beside and shutil.which(beside[0]) else None)):
                if command:
                    best[kind, who] = tuple(map(min, seconds(command), best.get((kind, who), (float("inf"),) * 2)))
    return best


def measure(shell, files):
    """The lines of the table, and what misses a bar."""
    missed, best = [], least(shell, files)
    n = {kind: events_of(shell, path) for kind, path in files.items()}
    for kind in files:
        us, other = best[kind, "us"], best.get((kind, "other"))
        line = f"{kind:12} {n[kind] / 1e6:5.2f} M events"
        for i, what in enumerate(("CPU", "wall")):
            line += f"; {what} {us[i]:.2f} s = {us[i] / n[kind] * 1e9:4.0f} ns an event"
            if "own.pftrace" in n and kind not in ("own.pftrace", "stacks.data"):
                ratio = us[i] / n[kind] / (best["own.pftrace", "us"][i] / n["own.pftrace"])
                line += f", {ratio:.2f} times our own"
                if ratio > BAR_OWN:
                    missed.append(f"{kind}, {what}: {ratio:.2f} times the cost of an event of our own, {BAR_OWN} is the most")
            if other:
                line += f", {other[i] / us[i]:.1f} times faster than the other"
                if other[i] < BAR_OTHER * us[i]:
                    missed.append(f"{kind}, {what}: {other[i] / us[i]:.1f} times faster than the program beside it, {BAR_OTHER} is wanted")
        print(line, flush=True)
    return missed


def main():
    build, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    shell = os.path.join(build, "tp_shell")
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder)
        files = record(build, there, seconds)
        files["ctf"] = make_ctf(there / "ctf")
        missed = measure(shell, files)
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Reads one CTF trace with our reader, babeltrace and babeltrace2, in turns, and prints the ratios of the CPU times.

    test/bench/bench_ctf.py BUILD [TRACE]

Without a trace it makes one: a million events of four classes with contexts, in packets of 5,000. Exit code 1 when our reader
is not the fastest.
"""
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from ctf_writer import Enum, Int, Letters, List, Struct, Text, Trace  # noqa: E402

PACKETS, EVENTS, ROUNDS = 200, 5000, 5
CONTEXT_AT = 24  # bytes of packet header before timestamp_begin


def make(path):
    """Compact stamps hold 27 bits: the same packet serves again when its begin moves by a multiple of 2^27."""
    trace = Trace(path, 1)
    trace.stream(0, Struct([("tid", Int(32, signed=True)), ("procname", Letters(n=16))]))
    trace.event(0, 0, "sched_switch", [("prev_comm", Letters(n=16)), ("prev_tid", Int(32, signed=True)), ("prev_state", Int(64)),
                                       ("next_comm", Letters(n=16)), ("next_tid", Int(32, signed=True)), ("next_prio", Int(32))])
    trace.event(0, 1, "irq_handler_entry", [("irq", Int(32)), ("name", Text())])
    trace.event(0, 2, "syscall_entry_write", [("fd", Int(32)), ("buf", Int(64, base=16)), ("count", Int(64))])
    trace.event(0, 3, "made_list", [("kind", Enum(Int(8), [("a", 0, 100), ("b", 101, 255)])), ("x", List(Int(32), n=4))])
    end = trace.packet("chan_0", 0, 0, 0, 0, 0, EVENTS, 20_000)
    packet = bytes(trace.files["chan_0"])
    stride = (end >> 27 << 27) + (1 << 27)
    out = bytearray()
    for k in range(PACKETS):
        copy = bytearray(packet)
        struct.pack_into("<QQ", copy, CONTEXT_AT, k * stride, k * stride + end)
        struct.pack_into("<Q", copy, CONTEXT_AT + 32, k)
        out += copy
    trace.files["chan_0"] = out
    trace.close()


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(title, ours, others):
    """Best of ROUNDS, taken in turns."""
    commands = [("ours", ours)] + others
    best = {}
    for _ in range(ROUNDS):
        for name, command in commands:
            seconds = cpu_seconds(command)
            if seconds is not None:
                best[name] = min(best.get(name, seconds), seconds)
    print(f"{title:8} ours {best['ours']:.3f} s", end="")
    slower = True
    for name, _ in others:
        if name not in best:
            print(f"; {name} gives up", end="")
            continue
        ratio = best[name] / best["ours"]
        slower &= ratio > 1
        print(f"; {name} {best[name]:.3f} s = {ratio:.1f} times", end="")
    print()
    return slower


def main():
    build = sys.argv[1]
    dump = os.path.join(build, "ctf_dump")
    folder = tempfile.mkdtemp()
    try:
        trace = sys.argv[2] if len(sys.argv) > 2 else os.path.join(folder, "trace")
        if len(sys.argv) <= 2:
            make(trace)
        count = subprocess.run([dump, "count", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
        size = sum(os.path.getsize(os.path.join(b, f)) for b, _, fs in os.walk(trace) for f in fs)
        print(f"{count} events, {size / 1e6:.1f} MB")
        others = [p for p in ("babeltrace", "babeltrace2") if shutil.which(p)]
        dummy = {"babeltrace": ["babeltrace", "-o", "dummy", trace], "babeltrace2": ["babeltrace2", "-o", "dummy", trace]}
        text = {p: [p, "--clock-seconds", "--no-delta", trace] for p in others}
        good = compare("read", [dump, "count", trace], [(p, dummy[p]) for p in others])
        good &= compare("as text", [dump, "1", trace], [(p, text[p]) for p in others])
        return 0 if good else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

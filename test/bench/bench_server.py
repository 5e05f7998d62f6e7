#!/usr/bin/env python3
"""How fast the server answers: bench_server.py [--build build/release] [--rows N] [--shared ../shared]

Prints the rate of a long answer over WebSocket and the server's peak memory meanwhile, and the time of the Perfetto UI's
recorded load (when it is at hand), which Perfetto itself answers in 0.18 s."""
import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "server"))
os.environ.setdefault("MERIDIAN_DATA", str(ROOT / "test" / "data"))

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build/release")
parser.add_argument("--rows", type=int, default=10_000_000)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--shared", default=os.environ.get("MERIDIAN_SHARED", str(ROOT.parent / "shared")))
args = parser.parse_args()
os.environ["TP_SHELL"] = f"{args.build}/tp_shell"

from rpc import *  # noqa: E402 (the environment comes first)


def peak_kb(server):
    with open(f"/proc/{server.process.pid}/status") as f:
        return int(next(l for l in f if l.startswith("VmHWM")).split()[1])


def long_answer():
    server = Server()
    server.rpc(message(FINALIZE))
    server.ask("create perfetto table big as with recursive n(i) as (select 1 union all select i + 1 from n where i < "
               f"{args.rows}) select i as id, i * 1000 as ts, i * 0.5 as value, 'name ' || (i % 100) as name from n", timeout=600)
    before = server.memory_kb()
    pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak from here on
    ws = WebSocket(server, timeout=120)
    ws.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    cpu, start = server.cpu_seconds(), time.perf_counter()
    ws.send(query("select id, ts, value, name from big"))
    size = cells = 0
    done = False
    while not done:
        _, payload = ws.recv()
        size += len(payload)
        for n, batch in fields(results(payload)[0][203]):
            if n == 3:
                kinds = get(batch, 1)
                cells += len(kinds) if kinds else 0
                done = bool(get(batch, 6))
    seconds, cpu = time.perf_counter() - start, server.cpu_seconds() - cpu
    rows = cells // 4
    assert rows == args.rows, rows
    print(f"answer: {rows} rows, {size / 1e6:.0f} MB in {seconds:.2f} s: {rows / seconds / 1e6:.2f} M rows/s, "
          f"{size / seconds / 1e6:.0f} MB/s; CPU of the server {cpu:.2f} s; memory +{(peak_kb(server) - before) / 1024:.1f} MB")
    server.stop()


def ui_load():
    ui = pathlib.Path(args.shared) / "ui"
    if not ui.exists():
        print(f"UI load: skipped, no recording in {ui}")
        return
    body = gzip.open(ui / "load.request.bin.gz").read()
    times, cpus = [], []
    for _ in range(args.rounds):
        server = Server(pathlib.Path(args.shared) / "conformance/traces/linux-sched.pftrace")
        cpu, start = server.cpu_seconds(), time.perf_counter()
        got = server.request("POST", "/rpc", body, timeout=120)[2]
        times.append(time.perf_counter() - start)
        cpus.append(server.cpu_seconds() - cpu)
        assert len(answers(results(got))) == 200
        server.stop()
    print(f"UI load: 201 answers in {sorted(times)[len(times) // 2]:.3f} s (median of {args.rounds}; "
          f"{min(times):.3f} to {max(times):.3f}), CPU of the server {sorted(cpus)[len(cpus) // 2]:.2f} s; Perfetto: 0.18 s")


long_answer()
ui_load()

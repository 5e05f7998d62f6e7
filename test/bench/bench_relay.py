#!/usr/bin/env python3
"""What the relay costs: MB a second of processor time beside socat and nc-like copying, added latency, many producers.

    bench_relay.py [--build build/release] [--mb 1000]

The limit of a relay that looks at nothing is a byte copier: socat between the same two sockets, in the same run."""
import argparse
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

CHUNK = 1 << 20


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(path, seconds=5):
    end = time.monotonic() + seconds
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(str(path))
            return s
        except OSError:
            s.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


class Sink:
    """A host that takes every byte of every connection, in a process of its own; echoes when asked to."""

    def __init__(self, echo):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            while True:
                c, _ = self.listener.accept()
                c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if os.fork() == 0:
                    self.listener.close()
                    buf = bytearray(CHUNK)
                    while n := c.recv_into(buf):
                        if echo:
                            c.sendall(buf[:n])
                    os._exit(0)
                c.close()
        self.listener.close()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def copiers(tracebox, path, port):
    """(name, command, environment) of what is compared."""
    out = [("traced_relay", [tracebox, "traced_relay"],
            {"PERFETTO_PRODUCER_SOCK_NAME": str(path), "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{port}"})]
    if shutil.which("socat"):
        out.append(("socat", ["socat", f"UNIX-LISTEN:{path}", f"TCP:127.0.0.1:{port},nodelay"], {}))
        out.append(("socat -b 131072", ["socat", "-b", "131072", f"UNIX-LISTEN:{path}", f"TCP:127.0.0.1:{port},nodelay"], {}))
    else:
        print("no socat here: nothing to compare with")
    return out


def throughput(tracebox, directory, mb):
    print(f"{'through':18} {'MB/s':>8} {'CPU s':>7} {'MB/s per core':>14}")
    sink = Sink(echo=False)
    path = directory / "socket"
    for name, command, env in copiers(tracebox, path, sink.port):
        p = subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.DEVNULL)
        s = connect(path)
        data = bytes(CHUNK)
        before, began = cpu_seconds(p.pid), time.monotonic()
        for _ in range(mb):
            s.sendall(data)
        seconds, cpu = time.monotonic() - began, cpu_seconds(p.pid) - before
        print(f"{name:18} {mb / seconds:8.0f} {cpu:7.2f} {mb / max(cpu, 0.01):14.0f}")
        s.close()
        p.kill()
        p.wait()
        path.unlink(missing_ok=True)
    sink.close()


def round_trips(s, n):
    times = []
    for _ in range(n):
        t = time.perf_counter()
        s.sendall(b"x" * 64)
        got = 0
        while got < 64:
            got += len(s.recv(4096))
        times.append((time.perf_counter() - t) * 1e6)
    return statistics.median(times)


def latency(tracebox, directory, n=3000):
    sink = Sink(echo=True)
    with socket.create_connection(("127.0.0.1", sink.port)) as direct:
        direct.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        base = round_trips(direct, n)
    print(f"\nround trip of 64 bytes, median of {n}: straight over TCP {base:.1f} us")
    path = directory / "socket"
    for name, command, env in copiers(tracebox, path, sink.port):
        p = subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.DEVNULL)
        s = connect(path)
        time.sleep(0.2)
        s.settimeout(0.3)
        try:
            while s.recv(1 << 16):  # the echo of the relay's first frame
                pass
        except TimeoutError:
            s.settimeout(10)
        through = round_trips(s, n)
        print(f"  {name:18} {through:6.1f} us, {through - base:5.1f} us more (both ways)")
        s.close()
        p.kill()
        p.wait()
        path.unlink(missing_ok=True)
    sink.close()


def many(build, directory, machines=20, producers=5, packets=4000):
    """100 producers on 20 machines into one recording; what is lost is counted."""
    from harness import first, packets as packets_of
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    env = {**os.environ, "PERFETTO_CONSUMER_SOCK_NAME": str(directory / "consumer")}
    config = directory / "config"
    config.write_text('buffers { size_kb: 524288 } trace_all_machines: true\ndata_sources { config { name: "e2e.source" } }\n')
    traced = subprocess.Popen([build / "tracebox", "traced", "--enable-relay-endpoint"], stderr=subprocess.DEVNULL,
                              env={**env, "PERFETTO_PRODUCER_SOCK_NAME": f"127.0.0.1:{port}"})
    time.sleep(0.3)
    perfetto = subprocess.Popen([build / "tracebox", "perfetto", "--txt", "-c", config, "-o", directory / "trace"], env=env,
                                stderr=subprocess.DEVNULL)
    relays = [subprocess.Popen([build / "tracebox", "traced_relay"], stderr=subprocess.DEVNULL, env={
        **env, "PERFETTO_PRODUCER_SOCK_NAME": str(directory / f"p{i}"), "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{port}"})
        for i in range(machines)]
    time.sleep(0.5)
    before, began = sum(cpu_seconds(p.pid) for p in relays), time.monotonic()
    traced_before = cpu_seconds(traced.pid)
    load = [subprocess.Popen([build / "bench_producer", "--packets", str(packets), "--max-size", "1000", "--policy", "stall",
                              "--seed", str(i)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env={**env, "PERFETTO_PRODUCER_SOCK_NAME": str(directory / f"p{i % machines}")})
            for i in range(machines * producers)]
    written = dropped = 0
    for p in load:
        words = p.communicate()[0].split()
        written += int(words[3])
        dropped += int(words[5])
    seconds = time.monotonic() - began
    relay_cpu, traced_cpu = sum(cpu_seconds(p.pid) for p in relays) - before, cpu_seconds(traced.pid) - traced_before
    perfetto.send_signal(signal.SIGINT)
    perfetto.wait()
    for p in [*relays, traced]:
        p.terminate()
        p.wait()
    trace = (directory / "trace").read_bytes()
    arrived = sum(first(p, 900) is not None for p in packets_of(trace))
    mb = len(trace) / 1e6
    print(f"\n{machines * producers} producers on {machines} machines: {written} packets, {mb:.0f} MB in {seconds:.1f} s "
          f"({mb / seconds:.0f} MB/s); {arrived} in the trace, {dropped} dropped by producers that waited too long; "
          f"CPU of the relays {relay_cpu:.2f} s, of traced {traced_cpu:.2f} s ({mb / max(traced_cpu, 0.01):.0f} MB/s per core)")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    a.add_argument("--mb", type=int, default=1000)
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as d:
        throughput(o.build / "tracebox", pathlib.Path(d), o.mb)
        latency(o.build / "tracebox", pathlib.Path(d))
        many(o.build, pathlib.Path(d))


if __name__ == "__main__":
    main()

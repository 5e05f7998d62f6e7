"""The ledger: seeded runs in which anything may die. What the producers finished is in the trace, or the trace says that something
is missing; and it says nothing where nothing is.

    test_ledger.py                runs of fixed seeds, a few at a time
    test_ledger.py FIRST COUNT    so many others, with a line each
"""
import concurrent.futures
import mmap
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

from harness import PRODUCER, TP_SHELL, TRACEBOX, fields, first, free_port, packets

AT_ONCE = 4
# What a trace may say although every finished packet is in it, by what was done to the run: a bound, not a count.
BOUNDS = {
    "producer": {"machine_packets_unfinished", "machine_packets_unknown", "machine_away_ns", "machine_bytes_cut",
                 "machine_producers_cut", "traced_buf_sequence_packet_loss", "traced_buf_data_loss_*"},
    "relay": {"machine_*", "traced_buf_*"},
    "service": {"trace_end_missing", "trace_cut_bytes"},
    "consumer": {"trace_end_missing", "trace_cut_bytes"},
    "disk": {"trace_end_missing"},
}
ALWAYS = {"config_*"}  # of the config, not of losses


def all_packets(trace):
    for p in packets(trace):
        z = first(p, 50)
        yield from all_packets(zlib.decompress(z)) if z is not None else [p]


def written_by(log):
    """{(writer, number)}; a line that was cut is none."""
    lines = log.read_bytes().split(b"\n")[:-1]
    return {tuple(map(int, line.split()[1:3])) for line in lines if line.startswith(b"wrote ")}


class Run:
    """One run: what is there, what happens to it, and what came of it."""

    def __init__(self, seed, directory):
        self.r = r = random.Random(seed)
        self.seed = seed
        self.dir = pathlib.Path(directory)
        self.relay = r.random() < 0.4
        kinds = ["producer", "producer", "service", "consumer", "clone", "stop", "none"] + (["relay", "relay"] if self.relay else [])
        self.target = r.choice(kinds)
        self.size_kb = r.choice([16, 64, 256, 4096, 32768])
        self.policy = r.choice(["RING_BUFFER", "RING_BUFFER", "DISCARD"])
        self.file = r.random() < 0.5
        self.disk = self.file and os.getuid() == 0 and r.random() < 0.1
        self.duration_ms = r.choice([300, 500, 800])
        self.flush_ms = r.choice([0, 50, 200])
        self.producer_args = ["--writers", r.choice([1, 3]), "--max-size", r.choice([20, 100, 1000, 9000, 200000]), "--pause-us",
                              r.choice([20, 50, 500]), "--policy", r.choice(["drop", "stall"]), "--shm", r.choice([64, 256, 1024])]
        self.deflate = r.random() < 0.3
        self.procs = []

    def __str__(self):
        return (f"{self.seed} {self.target}{' disk' if self.disk else ''} relay={int(self.relay)} {self.size_kb} KB {self.policy} "
                f"file={int(self.file)} deflate={int(self.deflate)} flush={self.flush_ms} "
                f"{' '.join(map(str, self.producer_args))}")

    def spawn(self, *args, env, out=None):
        with open(self.dir / "log", "ab") as log:
            p = subprocess.Popen(list(map(str, args)), env=env, stdout=out or log, stderr=log)
        self.procs.append(p)
        return p

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)
        return condition()

    def start(self):
        port = free_port() if self.relay else 0
        base = {**os.environ, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "c")}
        self.env = {**base, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "p")}
        service = {**self.env}
        args = []
        if self.relay:
            service["PERFETTO_PRODUCER_SOCK_NAME"] += f",127.0.0.1:{port}"
            args = ["--enable-relay-endpoint-on", f"127.0.0.1:{port}"]
        self.service = self.spawn(TRACEBOX, "traced", *args, env=service)
        self.wait((self.dir / "c").exists)
        self.producer_env = self.env
        if self.relay:
            self.relay_env = {**base, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "r"),
                              "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{port}", "PERFETTO_MACHINE_NAME": "guest"}
            self.relay_process = self.spawn(TRACEBOX, "traced_relay", env=self.relay_env)
            self.wait((self.dir / "r").exists)
            self.producer_env = {**base, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "r")}
        self.out = self.dir / "out"
        if self.disk:
            small = self.dir / "small"
            small.mkdir()
            self.disk = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small],
                                       stderr=subprocess.DEVNULL).returncode == 0
            self.out = small / "out" if self.disk else self.out
        text = (f"buffers {{ size_kb: {self.size_kb} fill_policy: {self.policy} }} trace_all_machines: true "
                f"flush_timeout_ms: 2000 data_source_stop_timeout_ms: 2000 "
                f"duration_ms: {self.duration_ms if self.target != 'stop' else 60000} "
                f"data_sources {{ config {{ name: 'a0' }} }} data_sources {{ config {{ name: 'a1' }} }} ")
        if self.file:
            text += "write_into_file: true file_write_period_ms: 100 "
        if self.flush_ms:
            text += f"flush_period_ms: {self.flush_ms} "
        if self.deflate:
            text += "compression_type: COMPRESSION_TYPE_DEFLATE "
        (self.dir / "config").write_text(text)
        self.producers = []
        for i in range(2):
            with open(self.dir / f"ledger{i}", "wb") as ledger:
                self.producers.append(self.spawn(PRODUCER, "--packets", 100000000, "--ledger", "--source", f"a{i}", "--seed",
                                                 self.seed * 2 + i, *self.producer_args, env=self.producer_env, out=ledger))
        self.consumer = self.spawn(TRACEBOX, "perfetto", "-c", self.dir / "config", "--txt", "-o", self.out, env=self.env)
        self.wait(lambda: all((self.dir / f"ledger{i}").stat().st_size > 100 for i in range(2)) or self.consumer.poll() is not None)

    def disturb(self):
        time.sleep(self.r.random() * self.duration_ms / 1000 * 0.8)
        if self.target == "producer":
            self.producers[0].kill()
        elif self.target == "service":
            self.service.kill()
        elif self.target == "consumer":
            self.consumer.kill()
        elif self.target == "stop":
            self.consumer.send_signal(signal.SIGINT)
        elif self.target == "clone":
            self.spawn(TRACEBOX, "perfetto", "--clone", "1", "-o", self.dir / "clone", env=self.env).wait(60)
        elif self.target == "relay":
            self.relay_process.kill()
            if self.r.random() < 0.7:
                time.sleep(0.1)
                self.spawn(TRACEBOX, "traced_relay", env=self.relay_env)

    def end(self):
        self.consumer.wait(60)
        if self.target == "consumer":  # the service writes its file to the end
            self.wait(lambda: b" freed" in (self.dir / "log").read_bytes())
        if self.target != "service":  # else they wait for the next one
            for p in self.producers:
                p.wait(30)
        for p in self.producers:
            p.kill()
        for p in reversed(self.procs):
            if p.poll() is None:
                p.terminate()
        for p in self.procs:
            try:
                p.wait(30)
            except subprocess.TimeoutExpired:
                p.kill()
                raise

    def judge(self):
        """What is wrong with it, or None."""
        log = (self.dir / "log").read_text(errors="replace")
        if re.search("Sanitizer|runtime error:", log):
            return log
        if not self.out.exists() or not self.out.stat().st_size:
            # nothing that could be taken for a whole trace
            return None if self.consumer.returncode else "no file, and exit status 0"
        got, order = {}, {}
        for p in all_packets(self.out.read_bytes()):
            test = first(p, 900)
            if test is None:
                continue
            writer, number = map(int, first(test, 1).split(b" ")[:2])
            key = (first(p, 79), writer)
            if number <= order.get(key, -1):
                return f"packet {number} of {key} behind {order[key]}"
            if number > order.get(key, number - 1) + 1 and not first(p, 42, 0):  # previous_packet_dropped
                return f"SILENT: a gap in {key} between {order[key]} and {number} without a flag"
            order[key] = number
            got.setdefault(first(p, 79), set()).add((writer, number))
        missing = made = 0
        for i, p in enumerate(self.producers):
            written, here = written_by(self.dir / f"ledger{i}"), got.get(p.pid, set())
            lost = written - here
            made += len(written)
            missing += len(lost)
        check = subprocess.run([TP_SHELL, "check", "--format", "json", self.out], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, timeout=120)
        said = set(re.findall(r'"(?:name|stat|what)": ?"([a-z_0-9]+)"', check.stdout.decode()))
        self.summary = f"made {made} missing {missing} check {check.returncode} {sorted(said)}"
        if missing and check.returncode == 0:
            return f"SILENT: {missing} of {made} are missing"
        allowed = ALWAYS | BOUNDS.get(self.target, set()) | (BOUNDS["disk"] if self.disk else set())
        alarms = {s for s in said if not any(re.fullmatch(a.replace("*", ".*"), s) for a in allowed)}
        if not missing and check.returncode and alarms - self.expected_losses():
            return f"FALSE ALARM: {sorted(alarms)}"
        return None

    def expected_losses(self):
        """Losses that may be of packets behind the last one that came: the ledger does not know of those."""
        out = set()
        if self.size_kb < 4096 or self.policy == "DISCARD" or "--policy" in self.producer_args:
            out |= {"traced_buf_chunks_overwritten", "traced_buf_chunks_discarded", "traced_buf_trace_writer_packet_loss",
                    "traced_buf_sequence_packet_loss", "traced_buf_data_loss_overwrite", "traced_buf_data_loss_read_gap",
                    "traced_buf_data_loss_orphan_continuation", "traced_buf_data_loss_smb_full", "traced_buf_patches_failed",
                    "traced_buf_data_loss_writer_abort", "traced_buf_data_loss_reassembly_gap", "traced_buf_readaheads_failed",
                    "traced_buf_data_loss_reassembly_broken_chain", "long_trace_mode_bytes_overwritten"}
        return out

    def go(self):
        self.summary = ""
        try:
            self.start()
            self.disturb()
            self.end()
            return self.judge()
        except Exception as e:  # a test that hangs or breaks is a finding, too
            return f"{type(e).__name__}: {e}"
        finally:
            for p in self.procs:
                if p.poll() is None:
                    p.kill()
                    p.wait()
            if self.disk is True:
                subprocess.run(["umount", "-l", self.dir / "small"], stderr=subprocess.DEVNULL)


def one(seed):
    with tempfile.TemporaryDirectory(prefix="meridian-ledger-") as d:
        run = Run(seed, d)
        return run, run.go()


def is_sanitized():
    with open(TRACEBOX, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        return m.find(b"__asan_init") >= 0


class Ledger(unittest.TestCase):
    def test_runs(self):
        seeds = range(1, 13 if is_sanitized() else 51)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = [f"{run}: {why} ({run.summary})" for run, why in pool.map(one, seeds) if why]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        begin, count = map(int, sys.argv[1:])
        bad = 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for run, why in pool.map(one, range(begin, begin + count)):
                print(run, "|", run.summary, "|", why or "ok", flush=True)
                bad += why is not None
        print("RUNS", count, "wrong", bad)
        sys.exit(bad > 0)
    unittest.main()

"""What the tests of recording share: daemons on sockets of their own, a tracefs instance of their own, queries."""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

TRACEBOX = os.environ.get("TRACEBOX", "build/dev/tracebox")
SHELL = os.environ.get("TP_SHELL", "build/dev/tp_shell")
TRACEFS = next((p for p in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing") if os.access(p + "/instances", os.W_OK)),
               None)


def need_tracefs():
    """Ends the program as skipped when this machine cannot record."""
    if os.geteuid() != 0 or not TRACEFS:
        print("skipped: needs root and a mounted tracefs with instances")
        sys.exit(77)


class Recorder:
    """traced and traced_probes in a directory of their own."""

    def __init__(self, env=None, producer=None, probes=(), start=True):
        """`producer`: where the service listens for producers instead of a socket file ("127.0.0.1:4711"); `probes`:
        arguments of traced_probes; `start`: whether entering starts the daemons."""
        self.probes_args, self.start = probes, start
        self._dir = tempfile.TemporaryDirectory(prefix="mrd-e2e-")
        self.dir = pathlib.Path(self._dir.name)
        self.instance = f"mrd-e2e-{os.getpid()}"
        self.env = {**os.environ, **(env or {}), "MERIDIAN_RUN_DIR": str(self.dir / "run"),
                    "PERFETTO_PRODUCER_SOCK_NAME": producer or str(self.dir / "p.sock"),
                    "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "c.sock")}
        self.traced = self.probes = self.other = None

    def __enter__(self):
        if self.start:
            self.start_traced()
            self.start_probes()
        return self

    def __exit__(self, *_):
        for p in (self.other, self.probes, self.traced):
            if p and p.poll() is None:
                p.terminate()
                p.wait(20)
        self._dir.cleanup()

    def spawn(self, *args, log):
        with open(self.dir / log, "ab") as err:
            return subprocess.Popen([TRACEBOX, *args], env=self.env, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=err)

    def log(self, name):
        return (self.dir / name).read_text(errors="replace") if (self.dir / name).exists() else ""

    def wait_for(self, what, condition, seconds=60):
        """By facts. How long: the kernel of a busy machine may take ten seconds to switch events on, and as long to switch them off."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not happen within {seconds} s\n{self.log('traced.log')}\n{self.log('probes.log')}")
            time.sleep(0.02)

    def start_traced(self):
        self.traced = self.spawn("traced", log="traced.log")
        self.wait_for("traced listening", lambda: (self.dir / "c.sock").exists())

    def start_probes(self):
        before = self.log("traced.log").count('"perfetto.traced_probes" connected')
        self.probes = self.spawn("traced_probes", *self.probes_args, log="probes.log")
        self.wait_for("traced_probes connecting",
                      lambda: self.log("traced.log").count('"perfetto.traced_probes" connected') > before)
        time.sleep(0.1)

    def start_other(self, daemon):
        """A daemon beside traced_probes, until the end."""
        self.other = self.spawn(daemon, log=f"{daemon}.log")
        self.wait_for(f"{daemon} connecting", lambda: f'"perfetto.{daemon}" connected' in self.log("traced.log"))

    def text(self, config):
        """A config whose ftrace parts use our own instance."""
        return re.sub(r"\bftrace_config\s*\{", f'ftrace_config {{ instance_name: "{self.instance}" ', config)

    def record_begin(self, config, out="trace.pftrace"):
        path = self.dir / "config.txt"
        path.write_text(self.text(config))
        (self.dir / out).unlink(missing_ok=True)
        return self.spawn("perfetto", "--txt", "-c", path, "-o", self.dir / out, log="perfetto.log")

    def record(self, config, during=None, out="trace.pftrace", code=0):
        """Records; `during` runs meanwhile. Returns the trace's path. `code`: 3 where nothing can start."""
        p = self.record_begin(config, out)
        try:
            if during:
                during()
            if p.wait(60) != code:
                raise AssertionError(self.log("perfetto.log"))
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
        return self.dir / out

    def query(self, trace, sql):
        """Rows as dicts of text."""
        p = subprocess.run([SHELL, "query", trace, sql], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=120)
        if p.returncode != 0:
            raise AssertionError(f"{sql}: {p.stderr.decode(errors='replace')}")
        return list(csv.DictReader(io.StringIO(p.stdout.decode())))

    def one(self, trace, sql):
        return next(iter(self.query(trace, sql)[0].values()))

    def instances(self):
        return [d for d in os.listdir(TRACEFS + "/instances") if d.startswith(self.instance)]


def main():
    need_tracefs()
    unittest.main(verbosity=1)

"""What the end-to-end tests share: real daemons on sockets of their own, raw IPC frames, packets of a trace."""
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from pb import field, varint as put_varint  # noqa: E402

TRACEBOX = os.environ.get("TRACEBOX", "build/dev/tracebox")
TP_SHELL = os.environ.get("TP_SHELL", "build/dev/tp_shell")
PRODUCER = os.environ.get("E2E_PRODUCER", "build/dev/e2e_producer")
TRACK_EVENTS = os.environ.get("TRACK_EVENTS", "build/dev/track_events")
SHARED = pathlib.Path(os.environ.get("MERIDIAN_SHARED",
                                     pathlib.Path(__file__).resolve().parent.parent.parent.parent / "shared"))


# ---- protobuf, as far as tests need it ----

def varint(b, i):
    shift = value = 0
    while True:
        c = b[i]
        i += 1
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            return value, i


def fields(b):
    """[(number, value)]: integers, or bytes for length-delimited and fixed fields."""
    out, i = [], 0
    while i < len(b):
        tag, i = varint(b, i)
        wire = tag & 7
        if wire == 0:
            v, i = varint(b, i)
        else:
            n = 8 if wire == 1 else 4
            if wire == 2:
                n, i = varint(b, i)
            assert wire in (1, 2, 5) and i + n <= len(b), "damaged message"
            v = b[i:i + n]
            i += n
        out.append((tag >> 3, v))
    return out


def first(b, number, default=None):
    return next((v for n, v in fields(b) if n == number), default)


def canonical(b):
    """A message with the fields of every level in order of their numbers: writers differ in nothing else."""
    try:
        return tuple(sorted(((n, v if isinstance(v, int) else canonical(v)) for n, v in fields(b)), key=lambda f: f[0]))
    except (AssertionError, IndexError):
        return b


def packets(trace):
    return [v for n, v in fields(trace) if n == 1]


def sequence_of(packet):
    return first(packet, 10, 0)


# ---- IPC ----

def frame(body):
    return struct.pack("<I", len(body)) + body


def bind(service, request=1):
    return frame(field(2, request) + field(3, field(1, service)))


def invoke(request, method, args, drop=False, service=1):
    return frame(field(2, request) + field(5, field(1, service) + field(2, method) + field(3, args) + field(4, int(drop))))


class Peer:
    """A raw connection: sends bytes as they are, reads frames."""

    def __init__(self, sock):
        self.sock = sock
        self.buf = b""
        self.fds = []
        sock.settimeout(20)

    def send(self, data, fds=()):
        if fds:
            socket.send_fds(self.sock, [data], list(fds))
        else:
            self.sock.sendall(data)

    def recv(self):
        """The next frame's body; None at the end."""
        while len(self.buf) < 4 or len(self.buf) < 4 + struct.unpack("<I", self.buf[:4])[0]:
            data, fds, _, _ = socket.recv_fds(self.sock, 1 << 17, 4)
            self.fds += fds
            if not data:
                return None
            self.buf += data
        n = struct.unpack("<I", self.buf[:4])[0]
        body, self.buf = self.buf[4:4 + n], self.buf[4 + n:]
        return body

    def reply(self, request):
        """(success, has_more, payload) of the next reply to `request`; others are passed over."""
        while True:
            body = self.recv()
            assert body is not None, "connection closed"
            if first(body, 2) == request and first(body, 6) is not None:
                r = first(body, 6)
                return bool(first(r, 1, 0)), bool(first(r, 2, 0)), first(r, 3, b"")

    def read_trace(self, request):
        """Sends a consumer's ReadBuffers; the packets that come."""
        self.send(invoke(request, 3, b""))
        return self.packets_of(request)

    def packets_of(self, request):
        """The packets of the replies to ReadBuffers, put together from their slices."""
        out, part, more = [], b"", True
        while more:
            ok, more, payload = self.reply(request)
            assert ok, "the service refused to hand over the trace"
            for _, s in fields(payload):
                part += first(s, 1, b"")
                if first(s, 2, 0):
                    out.append(part)
                    part = b""
        return out

    def closed(self):
        """True when the other side hangs up (within the timeout)."""
        try:
            while self.recv() is not None:
                pass
            return True
        except (ConnectionError, BrokenPipeError):
            return True
        except TimeoutError:
            return False

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.sock.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds=20, what="it"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        v = condition()
        if v:
            return v
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {seconds} s")


def has_open(pid, name):
    """Has the process an open file whose link contains the name? One may be closed while we look."""
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if name in os.readlink(fd):
                return True
        except FileNotFoundError:
            pass
    return False


class Case(unittest.TestCase):
    """Every test has a directory and, when it asks, a service of its own."""

    def setUp(self):
        self._dir = tempfile.TemporaryDirectory(prefix="meridian-e2e-")
        self.dir = pathlib.Path(self._dir.name)
        self.procs = []
        self.peers = []
        self.env = {**os.environ, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "producer"),
                    "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "consumer")}

    def tearDown(self):
        for p in self.peers:
            p.close()
        for p in reversed(self.procs):
            if p.poll() is None:
                p.terminate()
        for p in self.procs:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        for log in self.dir.rglob("*.log"):
            if re.search("Sanitizer|runtime error:", log.read_text(errors="replace")):
                raise AssertionError(log.read_text(errors="replace"))
        self._dir.cleanup()

    def start_traced(self, *args, producers=None):
        if producers:
            self.env["PERFETTO_PRODUCER_SOCK_NAME"] = producers
        r, w = os.pipe()
        with open(self.dir / "traced.log", "ab") as log:
            p = subprocess.Popen([TRACEBOX, "traced", *args], env={**self.env, "TRACED_NOTIFY_FD": str(w)},
                                 stderr=log, pass_fds=[w])
        os.close(w)
        self.procs.append(p)
        ok = os.read(r, 1)
        os.close(r)
        self.assertEqual(ok, b"1", self.log())
        self.traced = p
        return p

    def log(self):
        log = self.dir / "traced.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def spawn(self, *args, **kw):
        p = subprocess.Popen(list(map(str, args)), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
        self.procs.append(p)
        return p

    def perfetto(self, *args, **kw):
        return self.spawn(TRACEBOX, "perfetto", *args, **kw)

    def finish(self, p, code=0, seconds=60):
        out, err = p.communicate(timeout=seconds)
        self.assertEqual(p.returncode, code, err.decode(errors="replace") + self.log())
        return out.decode(errors="replace"), err.decode(errors="replace")

    def config(self, text, name="config.txt"):
        path = self.dir / name
        path.write_text(text)
        return path

    def connect(self, address=None):
        address = address or self.env["PERFETTO_PRODUCER_SOCK_NAME"]
        if isinstance(address, int):
            sock = socket.create_connection(("127.0.0.1", address))
        else:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(address)
        p = Peer(sock)
        self.peers.append(p)
        return p

    def consumer(self):
        c = self.connect(self.env["PERFETTO_CONSUMER_SOCK_NAME"])
        c.send(bind("ConsumerPort"))
        c.recv()
        return c

    def query(self, trace, sql, *flags):
        """Rows of a query in tp_shell, as lists of strings."""
        p = subprocess.run([TP_SHELL, "query", *flags, str(trace), sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr.decode(errors="replace"))
        lines = p.stdout.decode().splitlines()
        return [[c.strip('"') for c in line.split(",")] for line in lines[1:]]


def main():
    unittest.main(verbosity=1)

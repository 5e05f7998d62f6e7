"""TraceProcessorRpc by hand: protobuf, the stream of messages, WebSocket, and tp_shell server to talk to."""
import base64
import http.client
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from pb import field, varint  # noqa: E402

SHELL = os.environ.get("TP_SHELL", "build/release/tp_shell")
DATA = pathlib.Path(os.environ.get("MERIDIAN_DATA", pathlib.Path(__file__).parent.parent / "data")).resolve()
UI = "https://ui.perfetto.dev"
# A sanitizer that keeps freed memory would make a test of memory meaningless.
SANITIZER = {"ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1"]))}

APPEND, FINALIZE, QUERY, METRIC, RESTORE = 1, 2, 3, 5, 7
METATRACE_ON, METATRACE_OFF, STATUS, RESET, PACKAGE, STATEMENT, EXPORT = 8, 9, 10, 11, 13, 20, 21


# ---- protobuf ----

def read_varint(b, p):
    n = shift = 0
    while True:
        x = b[p]
        p += 1
        n |= (x & 127) << shift
        if x < 128:
            return n, p
        shift += 7


def fields(b):
    p = 0
    while p < len(b):
        tag, p = read_varint(b, p)
        if tag & 7 == 0:
            v, p = read_varint(b, p)
        elif tag & 7 == 1:
            v, p = b[p:p + 8], p + 8
        elif tag & 7 == 2:
            n, p = read_varint(b, p)
            v, p = b[p:p + n], p + n
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, v


def get(b, number, default=None):
    return next((v for n, v in fields(b) if n == number), default)


def message(method, args=b"", seq=0):
    """A request as it stands in the stream; `args` are its argument fields."""
    return field(1, (field(1, seq) if seq else b"") + field(2, method) + args)


def query(sql, seq=0):
    return message(QUERY, field(103, field(1, sql)), seq)


def statement(sql, offset, seq=0):
    return message(STATEMENT, field(115, field(1, sql) + field(2, offset)), seq)


class Result:
    """A query's answer put together from its messages (each a QueryResult)."""

    def __init__(self):
        self.columns, self.cells, self.error, self.done, self.batches = [], [], "", False, 0
        self.statements = self.last_sql = None

    def add(self, result):
        for n, v in fields(result):
            if n == 1:
                self.columns.append(v.decode())
            elif n == 2:
                self.error = v.decode()
            elif n == 3:
                self.batches += 1
                self.add_batch(v)
            elif n == 4:
                self.statements = v
            elif n == 6:
                self.last_sql = v.decode()
        return self.done

    def add_batch(self, batch):
        kinds, ints, doubles, blobs, strings = b"", [], [], [], b""
        for n, v in fields(batch):
            if n == 1:
                kinds = v
            elif n == 2:
                p = 0
                while p < len(v):
                    x, p = read_varint(v, p)
                    ints.append(x - (1 << 64) if x >> 63 else x)
            elif n == 3:
                doubles = [d for d, in struct.iter_unpack("<d", v)]
            elif n == 4:
                blobs.append(v)
            elif n == 5:
                strings = v
            elif n == 6:
                self.done = bool(v)
        pools = [None, iter(()), iter(ints), iter(doubles), iter(strings.decode(errors="replace").split("\0")), iter(blobs)]
        self.cells += [None if k == 1 else next(pools[k]) for k in kinds]

    @property
    def rows(self):
        n = len(self.columns)
        return [tuple(self.cells[i:i + n]) for i in range(0, len(self.cells), n)]


def results(stream):
    """The messages of a stream as dicts of their fields."""
    return [dict(fields(m)) for n, m in fields(stream)]


def answers(messages):
    """Query answers of messages, in order."""
    out, cur = [], None
    for m in messages:
        if 203 in m:
            cur = cur or Result()
            if cur.add(m[203]):
                out.append(cur)
                cur = None
    return out


# ---- the server ----

class Server:
    """tp_shell server http on a port of its own."""

    def __init__(self, *args, mode="http", env=None):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        where = ["--port", str(self.port)] if mode == "http" else []
        self.process = subprocess.Popen([SHELL, "server", mode, *map(str, args), *where], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **SANITIZER, **(env or {})})
        self.log = b""
        if mode == "http":
            line = b""
            while b"Serving at" not in line:
                line = self.process.stderr.readline()
                self.log += line
                if not line:
                    raise RuntimeError(f"no server: {self.log.decode()}")

    def stop(self, sig=signal.SIGINT):
        """Ends it; the exit code and what it has said."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            _, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        self.log += err
        return self.process.returncode

    def memory_kb(self, what="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(l for l in f if l.startswith(what)).split()[1])

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def connect(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body) of one HTTP request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            r = c.getresponse()
            return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
        finally:
            c.close()

    def rpc(self, *messages, timeout=60):
        """Messages of the answer to a POST /rpc."""
        status, _, body = self.request("POST", "/rpc", b"".join(messages), timeout=timeout)
        assert status == 200, status
        return results(body)

    def ask(self, sql, timeout=60):
        got = answers(self.rpc(query(sql), timeout=timeout))
        assert len(got) == 1
        return got[0]


class WebSocket:
    """The client's side of one WebSocket."""

    def __init__(self, server, origin=UI, timeout=60):
        self.s = server.connect(timeout)
        self.buf = bytearray()
        self.s.sendall(f"GET /websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: {origin}\r\n"
                       f"Sec-WebSocket-Key: {base64.b64encode(b'sixteen bytes ok').decode()}\r\n"
                       "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buf:
            piece = self.s.recv(4096)
            if not piece:
                raise ConnectionError(self.buf.decode(errors="replace"))
            self.buf += piece
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(head.decode())

    @staticmethod
    def frame(payload, opcode=2, fin=True, mask=b"\1\2\3\4"):
        n = len(payload)
        head = bytes([opcode | (128 if fin else 0)])
        bit = 128 if mask else 0
        head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else \
            bytes([bit | 127]) + struct.pack(">Q", n)
        if not mask:
            return head + payload
        pad = (mask * (n // 4 + 1))[:n]
        return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(n, "big")

    def send(self, payload, **kw):
        self.s.sendall(self.frame(payload, **kw))

    def need(self, n):
        while len(self.buf) < n:
            piece = self.s.recv(1 << 18)
            if not piece:
                raise ConnectionError("closed")
            self.buf += piece

    def recv(self):
        """(opcode, payload) of the next frame, which must be whole and unmasked."""
        self.need(2)
        n, at = self.buf[1], 2
        assert self.buf[0] & 0x80 and n < 128
        if n == 126:
            self.need(4)
            n, at = struct.unpack(">H", self.buf[2:4])[0], 4
            assert n > 125
        elif n == 127:
            self.need(10)
            n, at = struct.unpack(">Q", self.buf[2:10])[0], 10
            assert n > 65535  # a length is written as short as it can be (RFC 6455, 5.2)
        self.need(at + n)
        opcode, payload = self.buf[0] & 15, bytes(self.buf[at:at + n])
        del self.buf[:at + n]
        return opcode, payload

    def next(self):
        """The next message as a dict of its fields."""
        opcode, payload = self.recv()
        if opcode == 8:
            raise ConnectionError(f"closed: {payload!r}")
        assert opcode == 2
        return results(payload)[0]

    def ask(self, sql, seq=0):
        self.send(query(sql, seq))
        r = Result()
        while not r.add(self.next()[203]):
            pass
        return r

    def close(self):
        self.s.close()


def wait_for(condition, timeout=60):
    end = time.time() + timeout
    while not condition():
        if time.time() > end:
            raise AssertionError(f"it did not happen within {timeout} s")
        time.sleep(0.02)

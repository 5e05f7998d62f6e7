"""Replays what Perfetto's own binaries said to each other: each side against ours."""
import fcntl
import gzip
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
import unittest

from harness import (PRODUCER, TRACEBOX, Case, SHARED, canonical, field, fields, first, frame, free_port, main, packets,
                     sequence_of, varint, wait_for)

TRANSCRIPTS = SHARED / "transcripts"
INITIALIZE, REGISTER, COMMIT_DATA, GET_ASYNC_COMMAND, REGISTER_WRITER, UNREGISTER_WRITER = 1, 2, 4, 5, 6, 7
NOTIFY_STARTED, NOTIFY_STOPPED = 8, 9


def load(name):
    """{(connection, direction): [frame bodies]}"""
    path = TRANSCRIPTS / name
    streams = {}
    with (gzip.open if name.endswith(".gz") else open)(path, "rt") as f:
        for line in f:
            r = json.loads(line)
            if "hex" in r:
                key = r["conn"], r["dir"]
                streams[key] = streams.get(key, b"") + bytes.fromhex(r["hex"])
    out = {}
    for key, data in streams.items():
        bodies, i = [], 0
        while i < len(data):
            n = struct.unpack("<I", data[i:i + 4])[0]
            bodies.append(data[i + 4:i + 4 + n])
            i += 4 + n
        out[key] = bodies
    return out


def method(body):
    m = first(body, 5)
    return first(m, 2) if m is not None else None


def args(body):
    return first(first(body, 5), 3, b"")


def command(body):
    """(number, message) of an async command in a reply, or None."""
    r = first(body, 6)
    payload = first(r, 3, b"") if r is not None else b""
    return fields(payload)[0] if payload and first(body, 2) == 3 else None


class Chunks:
    """What the commits of a producer carry, put together again: packets by writer."""

    def __init__(self, commits, memory=None, page_size=0):
        self.chunks = {}  # (writer, chunk): [count and flags, payload]
        for commit in commits:
            for n, v in fields(commit):
                if n == 1:
                    self.add(first(v, 4) or self.page(memory, first(v, 1, 0), page_size))
                elif n == 2:
                    payload = self.chunks[first(v, 2), first(v, 3, 0)][1]
                    for k, patch in fields(v):
                        if k == 4:
                            at = first(patch, 1, 0)
                            payload[at:at + 4] = first(patch, 2)

    @staticmethod
    def page(memory, page, size):
        bitmap = struct.unpack_from("<I", memory, page * size)[0]
        assert bitmap >> 28 == 1 and bitmap & 3 == 3, "not one complete chunk"
        return memory[page * size + 8:(page + 1) * size]

    def add(self, data):
        chunk, writer, packed = struct.unpack_from("<IHH", data)
        self.chunks[writer, chunk] = [packed, bytearray(data[8:])]

    def packets(self, writer):
        out, part = [], b""
        for _, (packed, payload) in sorted((k, v) for k, v in self.chunks.items() if k[0] == writer):
            at, count, flags = 0, packed & 0x3ff, packed >> 10
            for i in range(count):
                n, at = varint(payload, at)
                part += payload[at:at + n]
                at += n
                if i + 1 < count or not flags & 2:
                    out.append(bytes(part))
                    part = b""
        return [p for p in out if p]


class RecordedService:
    """Listens where a service would and gives the recorded answers; its commands go out when the test says so."""

    def __init__(self, address, recorded):
        self.commands = [b for b in recorded if command(b)]
        self.answers = {first(b, 2, 0): b for b in recorded if not command(b)}
        self.said = []
        self.server = socket.socket(socket.AF_INET if isinstance(address, int) else socket.AF_UNIX)
        self.server.bind(("127.0.0.1", address) if isinstance(address, int) else address)
        self.server.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        self.sock, _ = self.server.accept()
        buf = b""
        while data := self.sock.recv(1 << 17):
            buf += data
            while len(buf) >= 4 and len(buf) >= 4 + struct.unpack("<I", buf[:4])[0]:
                n = struct.unpack("<I", buf[:4])[0]
                body, buf = buf[4:4 + n], buf[4 + n:]
                self.answer(body)
                self.said.append(body)

    def answer(self, body):
        request, invoked = first(body, 2, 0), first(body, 5)
        if request in self.answers:
            self.sock.sendall(frame(self.answers[request]))
        elif invoked and method(body) != GET_ASYNC_COMMAND and not first(invoked, 4, 0):
            self.sock.sendall(frame(field(2, request) + field(6, field(1, 1) + field(3, b""))))

    def command(self, *kinds, fd=None):
        """Sends the recorded commands of these kinds (GetAsyncCommandResponse's fields) that come next."""
        while self.commands and command(self.commands[0])[0] in kinds:
            data = frame(self.commands.pop(0))
            if fd is None:
                self.sock.sendall(data)
            else:
                socket.send_fds(self.sock, [data], [fd])
                fd = None

    def invoked(self, number):
        """The arguments of all calls of a method so far."""
        return [args(b) for b in list(self.said) if method(b) == number]

    def wait_for(self, number, condition=lambda calls: calls):
        return wait_for(lambda: condition(self.invoked(number)) and self.invoked(number), what=f"method {number}")

    def close(self):
        self.sock.close()
        self.server.close()


@unittest.skipUnless(TRANSCRIPTS.exists(), "the transcripts are not here")
def sealed_memory(size):
    """What a service sends: memory that nobody can make larger or smaller any more."""
    memory = os.memfd_create("smb", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return memory


class Transcripts(Case):
    def enable(self, consumer_frames):
        """A consumer that says what the recorded one said, up to EnableTracing."""
        c = self.connect(self.env["PERFETTO_CONSUMER_SOCK_NAME"])
        c.send(frame(consumer_frames[0]))
        self.assertEqual(c.recv(), self.consumer_replies[0])
        c.send(frame(consumer_frames[1]))
        return c

    def test_remote_producer(self):
        """A relayed producer's side: the same answers, the same commands, and the same packets byte for byte."""
        relay = load("relay-and-remote-producer.jsonl.gz")
        consumer = load("consumer.jsonl.gz")
        self.consumer_replies = consumer[1, "s>c"]
        port = free_port()
        self.start_traced("--enable-relay-endpoint", producers=f"127.0.0.1:{port}")
        r = self.connect(port)
        for body in relay[1, "c>s"]:
            r.send(frame(body))
        for want in relay[1, "s>c"]:
            self.assertEqual(r.recv(), want)
        said, answers = relay[2, "c>s"], relay[2, "s>c"]
        p = self.connect(port)
        setup = next(i for i, b in enumerate(said) if method(b) == 8)  # NotifyDataSourceStarted
        for body in said[:setup]:
            p.send(frame(body))
        registered = next(i for i, b in enumerate(answers) if command(b))
        for want in answers[:registered]:
            self.assertEqual(p.recv(), want)
        c = self.enable(consumer[1, "c>s"])
        for want in answers[registered:registered + 5]:  # SetupTracing, two SetupDataSource, two StartDataSource
            self.assertEqual(canonical(p.recv()), canonical(want))
        # data at once; the rest when the service asks for it
        stops = [b for b in said if method(b) in (NOTIFY_STOPPED, UNREGISTER_WRITER)]
        acks = [b for b in said if method(b) == COMMIT_DATA and first(args(b), 3)]
        for body in said[setup:]:
            if body not in stops and body not in acks:
                p.send(frame(body))
        stopped = set()
        while len(stopped) < 2:
            got = command(p.recv())
            if got and got[0] == 5 and first(got[1], 3) == 0x12:  # the flush before the stop
                self.assertEqual([v for n, v in fields(got[1]) if n == 1], [1, 2])
                p.send(frame(acks[-1]))
            elif got and got[0] == 2:
                stopped.add(first(got[1], 1))
        for body in stops:
            p.send(frame(body))
        self.assertEqual(c.recv(), self.consumer_replies[1])  # EnableTracing: disabled
        c.send(frame(consumer[1, "c>s"][2]))
        got = c.packets_of(3)
        want = packets((TRANSCRIPTS / "relay-session.pftrace").read_bytes())
        self.assertEqual([x for x in got if sequence_of(x) > 1], [x for x in want if sequence_of(x) > 1])
        # what the service says of itself: the same packets in the same order, clocks apart
        kinds = lambda t: [tuple(n for n, _ in fields(x)) for x in t if sequence_of(x) <= 1]
        mine, theirs = kinds(got), kinds(want)
        self.assertEqual([k for k in mine if 69 not in k and 6 not in k], [k for k in theirs if 69 not in k and 6 not in k])
        config = lambda t: next(first(x, 33) for x in t if first(x, 33))
        self.assertEqual(canonical(config(got)), canonical(config(want)))
        sync = next(first(x, 107) for x in got if first(x, 107))
        self.assertEqual([first(first(v, 2), 1) for _, v in fields(sync)],
                         [first(first(v, 2), 1) for _, v in fields(next(first(x, 107) for x in want if first(x, 107)))])
        stats = lambda t: [v for n, v in fields(next(first(x, 35) for x in t if first(x, 35))) if n == 1]
        sizes = (1, 14)  # bytes_written, bytes_read: ours stores chunks at the size that they fill
        counts = lambda t: [[f for f in fields(v) if f[0] not in sizes] for v in stats(t)]
        self.assertEqual(counts(got), counts(want))
        for mine, theirs in zip(stats(got), stats(want)):
            self.assertLess(first(mine, 1), first(theirs, 1))

    def test_local_producer(self):
        """A producer over a unix socket: the same answers and commands; its memory comes with SetupTracing."""
        local, consumer = load("local-producer.jsonl"), load("consumer-file.jsonl")
        self.consumer_replies = consumer[1, "s>c"]
        self.start_traced()
        said, answers = local[1, "c>s"], local[1, "s>c"]
        p = self.connect()
        registrations = next(i for i, b in enumerate(said) if method(b) == COMMIT_DATA)
        for body in said[:registrations]:
            p.send(frame(body))
        first_command = next(i for i, b in enumerate(answers) if command(b))
        for want in answers[:first_command]:
            self.assertEqual(p.recv(), want)
        c = self.connect(self.env["PERFETTO_CONSUMER_SOCK_NAME"])
        c.send(frame(consumer[1, "c>s"][0]))
        c.recv()
        out = self.dir / "out.pftrace"
        fd = os.open(out, os.O_RDWR | os.O_CREAT)
        c.send(frame(consumer[1, "c>s"][1]), [fd])
        os.close(fd)
        for want in answers[first_command:first_command + 5]:
            self.assertEqual(canonical(p.recv()), canonical(want))
        self.assertEqual(len(p.fds), 1)
        self.assertEqual(os.fstat(p.fds[0]).st_size, 2 << 20)  # what the producer hinted
        for body in said[registrations:]:
            p.send(frame(body))
        c.close()
        self.peers.remove(c)
        wait_for(lambda: "session 1 freed" in self.log(), what="the end of the session")
        self.assertIsNone(self.traced.poll())

    def recorded_service(self, name, connection, address):
        s = RecordedService(address, load(name)[connection, "s>c"])
        self.addCleanup(s.close)
        return s

    def expect_ledger(self, out, got):
        """The packets that the producer says it wrote, each once and in order."""
        written = int(out.split("packets ")[1].split()[0])
        self.assertEqual([int(first(first(p, 900), 1).split(b" ")[1]) for p in got], list(range(written)))

    def test_service_and_our_producer(self):
        """The service's side against our producer library: its packets are in the memory that the service sent."""
        service = self.recorded_service("local-producer.jsonl", 1, self.env["PERFETTO_PRODUCER_SOCK_NAME"])
        memory = sealed_memory(2 << 20)
        producer = self.spawn(PRODUCER, "--source", "linux.sys_stats", "--packets", 400, "--max-size", 3000, "--hold")
        service.wait_for(REGISTER)
        service.command(3, 6, 1, fd=memory)  # SetupTracing with the memory, SetupDataSource, StartDataSource
        self.assertEqual([(first(a, 1), first(a, 2)) for a in service.wait_for(REGISTER_WRITER)], [(1, 1)])
        out = producer.stdout.readline().decode()
        service.command(5)
        service.wait_for(COMMIT_DATA, lambda calls: any(first(a, 3) == 1 for a in calls))  # the flush is acknowledged
        service.command(2)
        self.finish(producer)
        commits = service.invoked(COMMIT_DATA)
        self.assertEqual({first(v, 3) for a in commits for n, v in fields(a) if n == 1}, {1})  # target_buffer
        with mmap.mmap(memory, 0) as m:
            self.expect_ledger(out, Chunks(commits, m, 32768).packets(1))
        os.close(memory)

    def test_service_and_our_remote_producer(self):
        """Over TCP the same without memory: the chunks are in the commits."""
        port = free_port()
        service = self.recorded_service("relay-and-remote-producer.jsonl.gz", 2, port)
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"127.0.0.1:{port}"
        producer = self.spawn(PRODUCER, "--source", "linux.process_stats", "--packets", 2000, "--max-size", 3000, "--hold")
        service.wait_for(REGISTER)
        service.command(3, 6, 1)
        out = producer.stdout.readline().decode()
        flushes = sum(command(c)[0] == 5 for c in service.commands)
        service.command(5)
        acknowledged = lambda calls: any(first(a, 3) == flushes for a in calls)
        commits = service.wait_for(COMMIT_DATA, acknowledged)
        self.expect_ledger(out, Chunks(commits).packets(1))
        self.assertEqual({first(v, 3) for a in commits for n, v in fields(a) if n == 1}, {2})
        service.command(2)
        self.finish(producer)

    def test_service_and_our_probes(self):
        """… against our traced_probes: it says what Perfetto's said, and writes the same kinds of packets."""
        theirs = load("local-producer.jsonl")[1, "c>s"]
        service = self.recorded_service("local-producer.jsonl", 1, self.env["PERFETTO_PRODUCER_SOCK_NAME"])
        self.env["MERIDIAN_RUN_DIR"] = str(self.dir / "run")
        memory = sealed_memory(2 << 20)
        probes = self.spawn(TRACEBOX, "traced_probes")
        said = lambda number: [args(b) for b in theirs if method(b) == number]
        sources = lambda calls: {first(d, 1): [(n, v) for n, v in fields(d) if n <= 4] for d in (first(a, 1) for a in calls)}
        linux = {name: d for name, d in sources(said(REGISTER)).items() if not name.startswith(b"android.")}
        ours = lambda calls: {name: d for name, d in sources(calls).items() if name in linux}
        calls = service.wait_for(REGISTER, lambda calls: b"linux.sys_stats" in sources(calls) and len(ours(calls)) >= 7)
        for name, descriptor in ours(calls).items():
            self.assertEqual(sorted(descriptor), sorted(linux[name]))
        initialize = lambda calls: [(n, v) for n, v in fields(calls[0]) if n != 8 and n < 900]  # but sdk_version and ours
        self.assertEqual(initialize(service.invoked(INITIALIZE)), initialize(said(INITIALIZE)))
        service.command(3, 6, 1, fd=memory)
        self.assertEqual(service.wait_for(NOTIFY_STARTED, lambda calls: len(calls) == 2), said(NOTIFY_STARTED))
        self.assertEqual(service.wait_for(REGISTER_WRITER, lambda calls: len(calls) == 2), said(REGISTER_WRITER))
        time.sleep(0.45)  # two periods of the config
        service.command(5)
        service.wait_for(COMMIT_DATA, lambda calls: any(first(a, 3) == 1 for a in calls))
        service.command(2)
        self.assertEqual(service.wait_for(NOTIFY_STOPPED, lambda calls: len(calls) == 2), said(NOTIFY_STOPPED))
        service.wait_for(UNREGISTER_WRITER, lambda calls: sorted(calls) == sorted(said(UNREGISTER_WRITER)))
        with mmap.mmap(memory, 0) as m:
            chunks = Chunks(service.invoked(COMMIT_DATA), m, 32768)
        kinds = lambda got: {(k, frozenset(n for n, _ in fields(first(p, k)))) for p in got for k in (7, 67) if first(p, k)}
        original = packets((TRANSCRIPTS / "local-session.pftrace").read_bytes())
        self.assertEqual(kinds(chunks.packets(1) + chunks.packets(2)), kinds(original))
        self.assertEqual({k for k, _ in kinds(original)}, {7, 67})
        probes.send_signal(signal.SIGTERM)
        self.finish(probes)
        os.close(memory)

    def test_service_and_our_relay(self):
        """The host's side against our traced_relay: who it is, and clocks after the first answer."""
        theirs = load("relay-and-remote-producer.jsonl.gz")[1, "c>s"]
        port = free_port()
        service = self.recorded_service("relay-and-remote-producer.jsonl.gz", 1, port)
        self.env["PERFETTO_RELAY_SOCK_NAME"] = f"127.0.0.1:{port}"
        relay = self.spawn(TRACEBOX, "traced_relay")
        wait_for(lambda: len(service.said) >= len(theirs), what="SyncClock UPDATE")
        shape = lambda b: [n for n, _ in fields(b)]
        identity = lambda b: shape(first(b, 8))
        self.assertEqual(identity(service.said[0]), identity(theirs[0]))
        self.assertEqual(service.said[1], theirs[1])
        clocks = lambda b: (first(args(b), 1), [first(v, 1) for n, v in fields(args(b)) if n == 2])
        for mine, other in zip(service.said[3:5], theirs[3:5]):
            self.assertEqual((method(mine), clocks(mine)), (method(other), clocks(other)))
        self.assertEqual(method(service.said[2]), method(theirs[2]))
        relay.send_signal(signal.SIGTERM)
        self.finish(relay)

    @staticmethod
    def method(body):
        return first(first(body, 5), 2) if first(body, 5) is not None else None

    @staticmethod
    def renumbered(body, request):
        """The frame with another request id."""
        return body if first(body, 2) == request else b"".join(field(n, request if n == 2 else v) for n, v in fields(body))

    def fake_service(self, name, frames, recorded=None):
        """Listens where the service would and answers as recorded; collects what the client says. `recorded`: what the
        client said then: methods that it did not call are refused, and left out of what is collected."""
        known = {self.method(body) for body in recorded} if recorded else None
        path = self.env[name]
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        said, fds = [], []

        def serve():
            for connection in frames:
                sock, _ = server.accept()
                buf = b""
                replies = list(connection)
                extra = 0  # requests that were refused: ids are ahead of the recorded ones by so many
                while True:
                    data, got, _, _ = socket.recv_fds(sock, 1 << 17, 4)
                    fds.extend(got)
                    if not data:
                        break
                    buf += data
                    while len(buf) >= 4 and len(buf) >= 4 + struct.unpack("<I", buf[:4])[0]:
                        n = struct.unpack("<I", buf[:4])[0]
                        body, buf = buf[4:4 + n], buf[4 + n:]
                        request = first(body, 2)
                        if known and self.method(body) not in known:
                            extra += 1
                            sock.sendall(frame(field(2, request) + field(6, field(1, 0))))
                            continue
                        said.append(self.renumbered(body, request - extra))
                        while replies and first(replies[0], 2) == request - extra:
                            sock.sendall(frame(self.renumbered(replies.pop(0), request)))
                sock.close()
            server.close()

        t = threading.Thread(target=serve, daemon=True)
        t.start()
        return said, fds, t

    def without_uuid(self, body):
        """EnableTracing without the random trace_uuid."""
        config = first(args(body), 1)
        return [(n, v) for n, v in canonical(config) if n not in (27, 28)]

    def test_consumer(self):
        """The service's side against our perfetto: it says what Perfetto's says, and writes the same file."""
        rec = load("consumer.jsonl.gz")
        said, _, t = self.fake_service("PERFETTO_CONSUMER_SOCK_NAME", [rec[1, "s>c"]], rec[1, "c>s"])
        out = self.dir / "out.pftrace"
        self.finish(self.perfetto("--txt", "-c", TRANSCRIPTS / "relay-session.pbtx", "-o", out))
        t.join(10)
        want = rec[1, "c>s"]
        self.assertEqual(said[0], want[0])
        self.assertEqual(self.without_uuid(said[1]), self.without_uuid(want[1]))
        self.assertEqual(said[2], want[2])
        self.assertEqual(out.read_bytes(), (TRANSCRIPTS / "relay-session.pftrace").read_bytes())

    def test_consumer_file(self):
        """write_into_file: our perfetto passes the file's descriptor with EnableTracing."""
        rec = load("consumer-file.jsonl")
        said, fds, t = self.fake_service("PERFETTO_CONSUMER_SOCK_NAME", [rec[1, "s>c"]], rec[1, "c>s"])
        out = self.dir / "out.pftrace"
        p = self.perfetto("--txt", "-c", TRANSCRIPTS / "local-session.pbtx", "-o", out)
        self.finish(p)
        t.join(10)
        self.assertEqual(self.without_uuid(said[1]), self.without_uuid(rec[1, "c>s"][1]))
        self.assertEqual(len(fds), 1)
        for fd in fds:
            os.close(fd)

    def test_query(self):
        """perfetto --query of a service with a relayed producer shows its machine."""
        rec = load("consumer.jsonl.gz")
        said, _, t = self.fake_service("PERFETTO_CONSUMER_SOCK_NAME", [rec[2, "s>c"]])
        out, _ = self.finish(self.perfetto("--query"))
        t.join(10)
        self.assertEqual(said, rec[2, "c>s"])
        self.assertRegex(out, r"1 +101 +0 +guest +perfetto.traced_probes +Perfetto v58.2")
        self.assertRegex(out, r"linux.ftrace +perfetto.traced_probes \(1\) +guest")


if __name__ == "__main__":
    if not TRANSCRIPTS.exists():
        print("skipped: the transcripts are not at", TRANSCRIPTS)
        sys.exit(77)
    main()

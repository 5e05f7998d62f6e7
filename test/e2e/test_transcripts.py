"""Replays what Perfetto's own binaries said to each other: each side against ours."""
import gzip
import json
import os
import socket
import struct
import sys
import threading
import unittest

from harness import Case, SHARED, canonical, fields, first, frame, free_port, main, packets, sequence_of, wait_for

TRANSCRIPTS = SHARED / "transcripts"
COMMIT_DATA, GET_ASYNC_COMMAND, NOTIFY_STOPPED, UNREGISTER_WRITER = 4, 5, 9, 7


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


@unittest.skipUnless(TRANSCRIPTS.exists(), "the transcripts are not here")
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
        trace, more = b"", True
        while more:
            ok, more, payload = c.reply(3)
            self.assertTrue(ok)
            trace += payload
        got, part = [], b""
        for _, s in fields(trace):
            part += first(s, 1, b"")
            if first(s, 2, 0):
                got.append(part)
                part = b""
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
        self.assertEqual(stats(got), stats(want))

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

    def fake_service(self, name, frames, on_frame=None):
        """Listens where the service would and answers as recorded; collects what the client says."""
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
                while True:
                    data, got, _, _ = socket.recv_fds(sock, 1 << 17, 4)
                    fds.extend(got)
                    if not data:
                        break
                    buf += data
                    while len(buf) >= 4 and len(buf) >= 4 + struct.unpack("<I", buf[:4])[0]:
                        n = struct.unpack("<I", buf[:4])[0]
                        body, buf = buf[4:4 + n], buf[4 + n:]
                        said.append(body)
                        request = first(body, 2)
                        while replies and first(replies[0], 2) == request:
                            sock.sendall(frame(replies.pop(0)))
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
        said, _, t = self.fake_service("PERFETTO_CONSUMER_SOCK_NAME", [rec[1, "s>c"]])
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
        said, fds, t = self.fake_service("PERFETTO_CONSUMER_SOCK_NAME", [rec[1, "s>c"]])
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

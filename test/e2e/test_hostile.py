"""Producers and consumers that lie, flood, hang and die: the service stays up, the others lose nothing, all is counted."""
import os
import resource
import signal
import struct
import time
import unittest

from harness import (Case, PRODUCER, bind, field, fields, first, frame, invoke, main, packets, put_varint, sequence_of,
                     wait_for)
from test_record import config, ledger, stats_of

INITIALIZE, REGISTER, COMMIT, COMMANDS, REGISTER_WRITER, STARTED, STOPPED = 1, 2, 4, 5, 6, 8, 9
ENABLE, DISABLE, READ, FREE, FLUSH, QUERY = 1, 2, 3, 4, 5, 12


def chunk(writer, chunk_id, fragments, flags=0, count=None):
    """A chunk as it travels in a commit."""
    body = b"".join(put_varint(len(f)) + f for f in fragments)
    n = len(fragments) if count is None else count
    return struct.pack("<IHH", chunk_id, writer, n | flags << 10) + body


def move(buffer, data):
    return field(1, field(1, 0) + field(2, 0) + field(3, buffer) + field(4, data))


class Producer:
    """A raw producer that follows the protocol as far as a test wants."""

    def __init__(self, case, name, source=None, address=None):
        self.case = case
        self.p = case.connect(address)
        self.request = 2
        self.p.send(bind("ProducerPort"))
        self.p.recv()
        self.p.send(invoke(2, INITIALIZE, field(3, name)))
        self.p.reply(2)
        self.p.send(invoke(3, COMMANDS, b""))
        self.request = 3
        if source:
            self.call(REGISTER, field(1, field(1, source)))

    def call(self, method, args, drop=False):
        self.request += 1
        self.p.send(invoke(self.request, method, args, drop))
        return None if drop else self.p.reply(self.request)

    def commit(self, args):
        return self.call(COMMIT, args)

    def wait_start(self):
        """(instance, target buffer) of the next StartDataSource."""
        while True:
            body = self.p.recv()
            assert body is not None
            r = first(body, 6)
            for n, v in fields(first(r, 3, b"")) if first(body, 2) == 3 else []:
                if n == 1:
                    return first(v, 1), first(first(v, 2), 2)


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.start_traced()

    def healthy(self):
        """An honest producer and an honest session work as ever."""
        trace = self.dir / "healthy.pftrace"
        perf = self.perfetto("-c", self.config(config(1024), "healthy.txt"), "--txt", "-o", trace)
        self.finish(self.spawn(PRODUCER, "--packets", 200))
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertEqual([n for n, _ in ledger(trace.read_bytes())[0]], list(range(200)))
        self.assertIsNone(self.traced.poll())

    def session(self, text):
        """A raw consumer with a running session."""
        c = self.consumer()
        c.send(invoke(2, ENABLE, field(1, text)))
        wait_for(lambda: "configured by" in self.log())
        return c

    def read(self, c, request=50):
        """Stops the session of a raw consumer and reads its packets."""
        c.send(invoke(request, DISABLE, b""))
        c.reply(request)
        c.send(invoke(request + 1, READ, b""))
        out, part, more = [], b"", True
        while more:
            ok, more, payload = c.reply(request + 1)
            self.assertTrue(ok)
            for _, s in fields(payload):
                part += first(s, 1, b"")
                if first(s, 2, 0):
                    out.append(part)
                    part = b""
        return out

    # ---- frames ----

    def test_huge_frame(self):
        p = self.connect()
        p.send(struct.pack("<I", 0x7fffffff) + b"x" * 100)
        self.assertTrue(p.closed())
        wait_for(lambda: "frame too large" in self.log())
        self.healthy()

    def test_half_frames_and_rubbish(self):
        half = self.connect()
        half.send(struct.pack("<I", 1000) + b"\x10\x01")  # never finished
        for rubbish in (b"", b"\xff" * 50, b"\x1a\xff\xff\xff\xff\x0f", os.urandom(2000)):
            p = self.connect()
            p.send(frame(rubbish))
            p.send(bind("ProducerPort"))
            self.assertIsNotNone(p.recv())  # still spoken to
        self.healthy()

    def test_unknown_services_and_methods(self):
        p = self.connect()
        p.send(bind("NoSuchPort"))
        self.assertFalse(first(first(p.recv(), 4), 1, 0))
        p.send(invoke(2, 1, b""))
        self.assertFalse(p.reply(2)[0])
        p.send(bind("ProducerPort", 3))
        p.recv()
        p.send(invoke(4, 99, b""))
        self.assertFalse(p.reply(4)[0])
        p.send(invoke(5, REGISTER, b""))  # before InitializeConnection
        self.assertFalse(p.reply(5)[0])
        p.send(invoke(6, INITIALIZE, b"\xff\xff"))
        self.assertFalse(p.reply(6)[0])
        p.send(invoke(7, INITIALIZE, field(3, "x")))
        self.assertTrue(p.reply(7)[0])
        p.send(invoke(8, INITIALIZE, field(3, "x")))  # twice
        self.assertFalse(p.reply(8)[0])
        p.send(frame(field(2, 9)))  # none of the known kinds
        self.assertIsNotNone(first(p.recv(), 7))
        c = self.connect()
        c.send(bind("ConsumerPort"))  # not on the producers' socket
        self.assertFalse(first(first(c.recv(), 4), 1, 0))
        self.healthy()

    def test_flood(self):
        """A producer that asks without end and never reads: it is dropped, the others are served."""
        p = Producer(self, "flooder").p
        p.sock.settimeout(0.5)
        data = b"".join(invoke(i, 11, b"") for i in range(100, 3000))
        try:
            for _ in range(400):
                p.send(data)
        except (TimeoutError, ConnectionError, BrokenPipeError):
            pass
        self.healthy()
        wait_for(lambda: "queue of unsent bytes too long" in self.log() or "does not read" in self.log(), 30)

    def test_consumer_that_does_not_read(self):
        buffers = field(1, field(1, 8192))
        c = self.session(buffers + field(2, field(1, field(1, "e2e.source"))))
        self.finish(self.spawn(PRODUCER, "--packets", 20000, "--max-size", 300))
        c.send(invoke(3, DISABLE, b"") + invoke(4, READ, b""))
        time.sleep(0.5)
        self.healthy()  # while the other does not read
        rss = int(open(f"/proc/{self.traced.pid}/statm").read().split()[1]) * 4096
        self.assertLess(rss, 200 << 20)

    def test_descriptor_exhaustion(self):
        _, hard = resource.prlimit(self.traced.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.traced.pid, resource.RLIMIT_NOFILE, (40, hard))
        peers = []
        for _ in range(80):
            try:
                peers.append(self.connect())
            except OSError:
                break
        wait_for(lambda: "out of file descriptors" in self.log())
        for p in peers:
            p.close()
            self.peers.remove(p)
        resource.prlimit(self.traced.pid, resource.RLIMIT_NOFILE, (hard, hard))
        self.healthy()

    # ---- chunks ----

    def test_another_producers_buffer(self):
        """Neither an own session's writer nor a stranger's may write where the session did not send it."""
        c = self.session(field(1, field(1, 1024)) + field(1, field(1, 1024)) + field(2, field(1, field(1, "victim"))))
        victim = Producer(self, "victim", "victim")
        _, buffer = victim.wait_start()
        thief = Producer(self, "thief", "other")
        for target in range(0, 8):
            thief.commit(move(target, chunk(1, 0, [field(900, b"stolen")])))
        thief.commit(move(buffer + 70000, chunk(1, 0, [field(900, b"stolen")])))
        victim.commit(move(buffer + 1, chunk(1, 0, [field(900, b"elsewhere")])))  # the session's other buffer
        victim.call(REGISTER_WRITER, field(1, 5) + field(2, 777))
        victim.commit(move(buffer, chunk(5, 0, [field(900, b"registered elsewhere")])))
        victim.commit(move(buffer, chunk(1, 0, [field(900, b"mine")])))
        got = self.read(c)
        self.assertEqual([first(p, 900) for p in got if first(p, 900)], [b"mine"])
        trace_stats = dict((n, v) for p in got if first(p, 35) for n, v in fields(first(p, 35)) if isinstance(v, int))
        self.assertEqual(trace_stats[8], 11)  # chunks_discarded
        self.healthy()

    def test_forged_fields(self):
        c = self.session(field(1, field(1, 1024)) + field(2, field(1, field(1, "liar"))))
        liar = Producer(self, "liar", "liar")
        _, buffer = liar.wait_start()
        forged = [field(3, 0), field(10, 1), field(33, b""), field(35, b""), field(36, b"x" * 16), field(50, b""),
                  field(69, b""), field(79, 1), field(98, 7), field(124, b""), field(125, b""), field(133, b"")]
        fragments = [field(8, 1) + f for f in forged] + [b"\xff\xff", b"\x0b\x0c", field(900, b"true")]
        liar.commit(move(buffer, chunk(1, 0, fragments)))
        # forged in the second half of a packet that is in two chunks
        liar.commit(move(buffer, chunk(1, 1, [field(900, b"half")[:3]], 2)))
        liar.commit(move(buffer, chunk(1, 2, [field(900, b"half")[3:] + field(3, 0)], 1)))
        got = self.read(c)
        mine = [p for p in got if sequence_of(p) > 1]
        self.assertEqual([first(p, 900) for p in mine], [b"true"])
        self.assertEqual([first(p, 3) for p in mine], [os.getuid()])
        self.assertEqual([first(p, 79) for p in mine], [os.getpid()])
        trace_stats = dict((n, v) for p in got if first(p, 35) for n, v in fields(first(p, 35)) if isinstance(v, int))
        self.assertEqual(trace_stats[10], len(forged) + 3)  # invalid_packets
        self.healthy()

    def test_lying_chunks(self):
        """Sizes, counts, pages and patches that cannot be."""
        c = self.session(field(1, field(1, 1024)) + field(2, field(1, field(1, "liar"))))
        liar = Producer(self, "liar", "liar")
        _, buffer = liar.wait_start()
        packet = field(900, b"x")
        rubbish = [
            move(buffer, b""), move(buffer, b"1234567"), move(buffer, b"\0" * 65537),
            move(buffer, chunk(1, 0, [packet], count=1000)),  # more packets than there are
            move(buffer, struct.pack("<IHH", 1, 1, 1) + b"\xff\xff\xff\xff\xff\xff\xff"),  # a length without an end
            move(buffer, chunk(40000, 0, [packet])), move(buffer, chunk(0, 0, [packet])),
            move(buffer, chunk(1, 0, [packet, packet])),  # again, of another size
            field(1, field(1, 1 << 40) + field(2, 0) + field(3, buffer)),  # a page far outside
            field(1, field(1, 0) + field(2, 13) + field(3, buffer)), field(1, field(1, 0) + field(2, 99) + field(3, buffer)),
            field(1, b"\xff"), b"\xff\xff\xff",
            field(2, field(1, buffer) + field(2, 1) + field(3, 0) + field(4, field(1, 1 << 31) + field(2, b"1234"))),
            field(2, field(1, buffer) + field(2, 1) + field(3, 0) + field(4, field(1, 0) + field(2, b"12345"))),
            field(2, field(1, buffer) + field(2, 1) + field(3, 77) + field(4, field(1, 0) + field(2, b"1234"))),
            field(2, field(1, buffer) + field(2, 1) + field(3, 0) + field(4, field(1, 0) + field(2, b"1234")) * 2000),
            field(3, 1 << 60),
        ]
        for r in rubbish:
            liar.commit(r)
        liar.commit(move(buffer, chunk(2, 0, [packet])))
        got = self.read(c)
        trace_stats = dict((n, v) for p in got if first(p, 35) for n, v in fields(first(p, 35)) if isinstance(v, int))
        self.assertGreaterEqual(trace_stats[8], 6)
        self.assertGreaterEqual(trace_stats[9], 2001)
        b = next(dict(fields(v)) for p in got if first(p, 35) for n, v in fields(first(p, 35)) if n == 1)
        self.assertGreaterEqual(b[9], 2)  # abi_violations
        self.assertGreaterEqual(b[6], 2)  # patches_failed
        self.assertEqual(len([p for p in got if sequence_of(p) == 3]), 1)
        self.healthy()

    def test_shared_memory_that_changes(self):
        """A producer that rewrites its memory all the time: numbers from it are used once, and inside the page."""
        import mmap
        import random
        c = self.session(field(1, field(1, 256)) + field(2, field(1, field(1, "liar"))))
        liar = Producer(self, "liar", "liar")
        _, buffer = liar.wait_start()
        mem = mmap.mmap(liar.p.fds[0], 0)
        with self.assertRaises(OSError):
            os.ftruncate(liar.p.fds[0], 4096)  # sealed: cannot shrink under the service
        r = random.Random(5)
        for i in range(3000):
            page = r.randrange(len(mem) // 4096)
            mem[page * 4096:page * 4096 + 64] = r.randbytes(64)
            mem[page * 4096:page * 4096 + 4] = struct.pack("<I", r.getrandbits(32))
            liar.call(COMMIT, field(1, field(1, page) + field(2, r.randrange(16)) + field(3, buffer)), drop=True)
        self.assertTrue(liar.commit(b"")[0])
        self.read(c)
        mem.close()
        self.healthy()

    def test_bad_shared_memory_from_the_producer(self):
        """Memory that a producer brings must be sealed."""
        fd = os.memfd_create("x")
        os.ftruncate(fd, 65536)
        p = self.connect()
        p.send(bind("ProducerPort"))
        p.recv()
        p.send(invoke(2, INITIALIZE, field(3, "bringer") + field(6, 1)), [fd])
        os.close(fd)
        ok, _, reply = p.reply(2)
        self.assertTrue(ok)
        self.assertFalse(first(reply, 1, 0))
        self.assertIn("not sealed", self.log())
        self.healthy()

    # ---- those who do not answer ----

    def test_never_acknowledges_a_flush(self):
        """The flush times out for the silent one; what others flushed is in the trace, and the trace names the silent one."""
        trace = self.dir / "out.pftrace"
        text = ('buffers { size_kb: 1024 } data_sources { config { name: "silent" } }\n'
                'data_sources { config { name: "e2e.source" } } flush_timeout_ms: 300\n')
        silent = Producer(self, "silent", "silent")
        perf = self.perfetto("-c", self.config(text), "--txt", "-o", trace)
        silent.wait_start()
        self.finish(self.spawn(PRODUCER, "--packets", 300))
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        data = trace.read_bytes()
        self.assertEqual(len(ledger(data)[0]), 300)
        stats, _ = stats_of(data)
        self.assertEqual(stats[14], 1)  # flushes_failed
        slow = [first(first(p, 69), 8) for p in packets(data) if first(p, 69) and first(first(p, 69), 8)]
        self.assertIn(b"silent", slow[0])

    def test_never_stops(self):
        silent = Producer(self, "silent")
        silent.call(REGISTER, field(1, field(1, "silent") + field(2, 1)))  # will_notify_on_stop
        text = ('buffers { size_kb: 64 } data_sources { config { name: "silent" } }\n'
                'duration_ms: 200 flush_timeout_ms: 200 data_source_stop_timeout_ms: 300\n')
        start = time.monotonic()
        perf = self.perfetto("-c", self.config(text), "--txt", "-o", self.dir / "out")
        self.finish(perf)
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn("has not stopped in time", self.log())

    def test_speaks_for_others(self):
        """Only the owner of an instance may say that it has started or stopped."""
        c = self.session(field(1, field(1, 64)) + field(2, field(1, field(1, "victim"))))
        victim = Producer(self, "victim")
        victim.call(REGISTER, field(1, field(1, "victim") + field(2, 1)))
        instance, _ = victim.wait_start()
        thief = Producer(self, "thief")
        c.send(invoke(10, DISABLE, b""))
        c.reply(10)
        thief.call(STOPPED, field(1, instance))
        time.sleep(0.2)
        self.assertNotIn("session 1 disabled", self.log())
        victim.call(STOPPED, field(1, instance))
        wait_for(lambda: "session 1 disabled" in self.log())

    # ---- sudden deaths ----

    def test_killed_producers(self):
        """kill -9 in the middle of writing: what was handed over is in the trace, the session and the others go on."""
        trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(16384)), "--txt", "-o", trace)
        victims = [self.spawn(PRODUCER, "--packets", 10000000, "--max-size", 200, "--pause-us", 10) for _ in range(3)]
        wait_for(lambda: "producer 3" in self.log())
        time.sleep(0.5)
        for v in victims:
            v.kill()
        wait_for(lambda: self.log().count("goes on without") >= 3)
        self.finish(self.spawn(PRODUCER, "--packets", 500, "--seed", 9))
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        by_sequence = {}
        for p in packets(trace.read_bytes()):
            if first(p, 900):
                by_sequence.setdefault(sequence_of(p), []).append(int(first(first(p, 900), 1).split(b" ")[1]))
        self.assertEqual(len(by_sequence), 4)
        self.assertIn(list(range(500)), by_sequence.values())
        for numbers in by_sequence.values():
            self.assertEqual(numbers, list(range(len(numbers))))
        self.healthy()

    def test_killed_consumers(self):
        for _ in range(6):  # more than one uid may have sessions: they must really end
            perf = self.perfetto("-c", self.config(config()), "--txt", "-o", self.dir / "out")
            n = self.log().count("configured by")
            wait_for(lambda: self.log().count("configured by") > n or perf.poll() is not None)
            perf.kill()
            perf.wait()
            wait_for(lambda: self.log().count("freed") == self.log().count("configured by"))
        self.healthy()

    def test_five_hundred_producers(self):
        """Each with shared memory of its own, all in one session; then all gone at once."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 2000:
            self.skipTest("too few file descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
        c = self.session(field(1, field(1, 4096)) + field(2, field(1, field(1, "crowd"))))
        crowd = [Producer(self, f"crowd {i}", "crowd") for i in range(500)]
        for i, p in enumerate(crowd):
            _, buffer = p.wait_start()
            p.commit(move(buffer, chunk(1, 0, [field(900, str(i))])))
        got = self.read(c)
        self.assertEqual(sorted(int(first(p, 900)) for p in got if first(p, 900)), list(range(500)))
        for p in crowd:
            p.p.close()
            self.peers.remove(p.p)
        wait_for(lambda: self.log().count("disconnected") == 500)
        self.healthy()

    def test_too_many_sessions(self):
        consumers = [self.consumer() for _ in range(6)]
        for i, c in enumerate(consumers):
            c.send(invoke(2, ENABLE, field(1, field(1, field(1, 64)))))
            wait_for(lambda: self.log().count("configured by") == i + 1 or i == 5)
        ok, more, reply = consumers[5].reply(2)
        self.assertIn(b"too many sessions", first(reply, 3, b""))

    def test_lockdown(self):
        """With lockdown_mode SET producers of other users stay outside."""
        if os.getuid() != 0:
            self.skipTest("needs root to be somebody else")
        self.session(field(1, field(1, 64)) + field(5, 2))
        os.chmod(self.dir, 0o755)
        os.chmod(self.env["PERFETTO_PRODUCER_SOCK_NAME"], 0o777)
        pid = os.fork()
        if pid == 0:
            os.setuid(65534)
            p = self.connect()
            p.send(bind("ProducerPort"))
            p.recv()
            p.send(invoke(2, INITIALIZE, field(3, "stranger")))
            os._exit(0 if not p.reply(2)[0] else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIn("locked down", self.log())


if __name__ == "__main__":
    unittest.main()

"""Producers and consumers that lie, flood, hang and die: the service stays up, the others lose nothing, all is counted."""
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import time
import unittest

from harness import (Case, PRODUCER, bind, field, fields, first, frame, invoke, main, packets, put_varint, sequence_of,
                     wait_for)
from test_record import config, ledger, stats_of

INITIALIZE, REGISTER, COMMIT, COMMANDS, REGISTER_WRITER, STARTED, STOPPED = 1, 2, 4, 5, 6, 8, 9
ENABLE, DISABLE, READ, FREE, FLUSH, DETACH, ATTACH, QUERY, CLONE = 1, 2, 3, 4, 5, 8, 9, 12, 15


def chunk(writer, chunk_id, fragments, flags=0, count=None):
    """A chunk as it travels in a commit."""
    body = b"".join(put_varint(len(f)) + f for f in fragments)
    n = len(fragments) if count is None else count
    return struct.pack("<IHH", chunk_id, writer, n | flags << 10) + body


def move(buffer, data):
    return field(1, field(1, 0) + field(2, 0) + field(3, buffer) + field(4, data))


def start_scribbler(memory, seed):
    """The pid of a process that writes into a producer's memory as fast as it can, until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    r = random.Random(seed)
    with mmap.mmap(memory, 0) as m:
        while True:
            page = r.randrange(len(m) // 4096) * 4096
            layout, chunks = r.choice([(1, 1), (2, 2), (3, 4), (4, 7), (5, 14), (r.randrange(8), 1)])
            for i in range(chunks):
                at = page + 8 + i * ((4096 - 8) // chunks & ~3)
                m[at:at + 24] = struct.pack("<IHH", r.randrange(8), r.randrange(4), r.getrandbits(16)) + r.randbytes(16)
            m[page:page + 4] = struct.pack("<I", layout << 28 | (0x0fffffff if r.randrange(4) else r.getrandbits(28)))


class Producer:
    """A raw producer that follows the protocol as far as a test wants."""

    def __init__(self, case, name, source=None, address=None):
        self.case, self.name = case, name
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
        return c.read_trace(request + 1)

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
        wait_for(lambda: "too many unsent bytes" in self.log() or "does not read" in self.log(), 30)

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
        self.assertEqual(trace_stats[8], 4)  # chunks_discarded: those that named a buffer of this session
        self.healthy()

    def test_late_chunks_are_of_the_session_that_is_over(self):
        """What comes for a session that has been read and freed is no loss of the one that runs then."""
        source = field(2, field(1, field(1, "late")))
        c = self.session(field(1, field(1, 1024)) + source)
        late = Producer(self, "late", "late")
        _, buffer = late.wait_start()
        late.commit(move(buffer, chunk(1, 0, [field(900, b"in time")])))
        self.assertIn(b"in time", [first(p, 900) for p in self.read(c)])
        c.close()
        self.peers.remove(c)
        wait_for(lambda: "freed" in self.log())
        c = self.consumer()
        c.send(invoke(2, ENABLE, field(1, field(1, field(1, 1024)) + source)))
        _, second = late.wait_start()
        self.assertNotEqual(second, buffer)
        for i in range(1, 4):
            late.commit(move(buffer, chunk(1, i, [field(900, b"late")])))
        late.commit(field(2, field(1, buffer) + field(2, 1) + field(3, 0) + field(4, field(1, 0) + field(2, b"abcd"))))
        late.commit(move(second, b"short"))  # this one is its own
        got = self.read(c)
        stats = dict((n, v) for p in got if first(p, 35) for n, v in fields(first(p, 35)) if isinstance(v, int))
        self.assertEqual((stats[8], stats[9]), (1, 0))  # chunks_discarded, patches_discarded
        self.assertIn("no session uses this buffer", self.log())

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
        """A producer that rewrites its memory while the service reads it: numbers from it are used once, and inside the
        page; the other producer of the session loses nothing."""
        c = self.session(field(1, field(1, 256)) + field(1, field(1, 1024)) + field(2, field(1, field(1, "liar"))) +
                         field(2, field(1, field(1, "honest") + field(2, 1))))
        liar, honest = Producer(self, "liar", "liar"), Producer(self, "honest", "honest")
        _, buffer = liar.wait_start()
        _, honest_buffer = honest.wait_start()
        memory = liar.p.fds[0]
        with self.assertRaises(OSError):
            os.ftruncate(memory, 4096)  # sealed: cannot shrink under the service
        scribblers = [start_scribbler(memory, seed) for seed in (1, 2)]
        r = random.Random(5)
        try:
            end, n = time.monotonic() + 1.5, 0
            while time.monotonic() < end:
                for _ in range(50):
                    liar.call(COMMIT, b"".join(field(1, field(1, r.randrange(64)) + field(2, r.randrange(14)) + field(3, buffer))
                                               for _ in range(4)), drop=True)
                honest.commit(move(honest_buffer, chunk(1, n, [field(900, str(n))])))
                n += 1
                self.assertTrue(liar.commit(b"")[0])
        finally:
            for pid in scribblers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        got = self.read(c)
        lies, truth = [dict(fields(v)) for p in got if first(p, 35) for k, v in fields(first(p, 35)) if k == 1]
        self.assertGreater(lies[2], 10)  # chunks of the liar got in …
        self.assertGreater(lies[9], 10)  # … and were found out
        self.assertEqual((truth[2], truth.get(9, 0)), (n, 0))
        self.assertLess({str(i).encode() for i in range(n)}, {first(p, 900) for p in got})
        self.healthy()

    def test_reading_what_is_not_ones_own(self):
        """What a producer or another user could try to get at another's data."""
        c = self.session(field(1, field(1, 1024)) + field(2, field(1, field(1, "victim"))) +
                         field(2, field(1, field(1, "thief"))))
        victim, thief = Producer(self, "victim", "victim"), Producer(self, "thief", "thief")
        _, buffer = victim.wait_start()
        thief.wait_start()
        secret = b"the secret of the victim"
        # its memory: each connection has its own, and gets it empty
        self.assertNotEqual(os.fstat(victim.p.fds[0]).st_ino, os.fstat(thief.p.fds[0]).st_ino)
        self.assertEqual(os.pread(thief.p.fds[0], 1 << 20, 0).strip(b"\0"), b"")
        # its bytes in the central buffer, before and behind the thief's own
        victim.commit(move(buffer, chunk(1, 0, [field(900, secret)])))
        for i, length in enumerate((40, 100, 5000, 0x0ffffffe)):
            thief.commit(move(buffer, struct.pack("<IHH", i, 1, 1) + put_varint(length) + b"x"))
            victim.commit(move(buffer, chunk(1, i + 1, [field(900, secret)])))
        thief.commit(move(buffer, struct.pack("<IHH", 9, 1, 1 | 2 << 10) + b"\2\x08\1"))  # goes on in the next chunk: whose?
        # and patches: outside of the own chunk, and with the victim's name on them
        for offset in (3, 30, 60, 1 << 31, (1 << 32) - 4):
            thief.commit(field(2, field(1, buffer) + field(2, 1) + field(3, 9) + field(4, field(1, offset) + field(2, b"evil"))))
        # the session itself: not on the producers' socket, and only its own consumer reads it
        p = self.connect()
        p.send(bind("ConsumerPort"))
        self.assertFalse(first(first(p.recv(), 4), 1, 0))
        other = self.consumer()
        other.send(invoke(2, READ, b""))
        self.assertFalse(other.reply(2)[0])
        if os.getuid() == 0:
            self.as_somebody_else(lambda: self.clones_and_attaches())
        got = self.read(c)
        of = lambda name: [p for p in got if first(p, 10) == name]
        self.assertEqual([first(p, 900) for p in of(2)], [secret] * 5)
        self.assertFalse([p for p in got if secret in p and sequence_of(p) != 2])
        self.assertFalse([p for p in got if b"evil" in p])
        self.healthy()

    def as_somebody_else(self, do):
        """Runs `do` in a process of another user; it fails by an exception."""
        os.chmod(self.dir, 0o755)
        for name in ("PRODUCER", "CONSUMER"):
            os.chmod(self.env[f"PERFETTO_{name}_SOCK_NAME"], 0o777)
        pid = os.fork()
        if pid == 0:
            try:
                os.setuid(65534)
                do()
                os._exit(0)
            except BaseException as e:
                print(e, flush=True)
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def clones_and_attaches(self):
        stranger = self.consumer()
        stranger.send(invoke(2, CLONE, field(1, 1)))
        assert b"belongs to another user" in first(stranger.reply(2)[2], 2), "cloned"
        stranger.send(invoke(3, ATTACH, field(1, "key")))
        assert not stranger.reply(3)[0], "attached"

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
            missing = set(range(numbers[-1] + 1)) - set(numbers)
            self.assertEqual(missing, set())
            self.assertEqual(numbers, sorted(set(numbers)))
        self.healthy()

    def killed_with_long_packets(self, seed):
        """The packets that a producer finished before its kill -9, and those in the trace."""
        trace, sessions = self.dir / "out.pftrace", seed + 1
        perf = self.perfetto("-c", self.config(config(262144)), "--txt", "-o", trace)
        wait_for(lambda: f"session {sessions}" in self.log())
        with open(self.dir / "ledger", "wb+") as ledger:
            victim = subprocess.Popen([PRODUCER, "--packets", "1000", "--max-size", "200000", "--policy", "stall", "--shm", "256",
                                       "--writers", "2", "--seed", str(seed), "--ledger"], env=self.env, stdout=ledger)
            try:
                wait_for(lambda: os.fstat(ledger.fileno()).st_size > 100)
                time.sleep(0.003 * seed)
            finally:
                victim.kill()
                victim.wait()
            ledger.seek(0)
            finished = {tuple(map(int, line.split()[1:3])) for line in ledger.read().split(b"\n")[:-1]}
        wait_for(lambda: self.log().count("goes on without") >= sessions or victim.returncode == 0)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        recorded = [p for p in packets(trace.read_bytes()) if first(p, 900)]
        trace.unlink()
        return finished, {tuple(map(int, first(first(p, 900), 1).split(b" ")[:2])) for p in recorded}

    def test_killed_with_long_packets(self):
        """kill -9 of producers whose packets go out in parts: each one that was finished is whole in the trace. All that
        a producer may write fits the buffer."""
        n_finished = 0
        for seed in range(12):
            finished, there = self.killed_with_long_packets(seed)
            n_finished += len(finished)
            self.assertEqual(finished - there, set(), f"seed {seed}")
        self.assertGreater(n_finished, 100)
        self.healthy()

    def test_killed_at_any_moment(self):
        """kill -9 of producers and consumers from their first instruction on: a session beside them loses nothing."""
        r = random.Random(7)
        trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(32768)), "--txt", "-o", trace)
        wait_for(lambda: "session 1" in self.log())
        honest = self.spawn(PRODUCER, "--packets", 15000, "--pause-us", 100, "--writers", 3)
        theirs = self.config(config(64, source="victim.source", extra="flush_period_ms: 20\n"), "victim.txt")
        while honest.poll() is None:
            victims = [self.spawn(PRODUCER, "--source", "victim.source", "--packets", 1000000, "--max-size", 500),
                       self.perfetto("-c", theirs, "--txt", "-o", self.dir / "victim")]
            for v in r.sample(victims, 2):
                time.sleep(r.random() * 0.1)
                v.kill()
                v.communicate()
            del self.procs[-2:]
        self.finish(honest)
        wait_for(lambda: self.log().count("freed") == self.log().count("configured by") - 1)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertGreater(self.log().count("configured by"), 5)
        got = ledger(trace.read_bytes())
        for writer in got:
            self.assertEqual([n for n, _ in got[writer]], list(range(len(got[writer]))))
        self.assertEqual(sum(map(len, got.values())), 15000)
        self.healthy()

    def test_service_killed_at_any_moment(self):
        """kill -9 of the service: its client says so and ends, its producer finds the next service."""
        r = random.Random(11)
        producer = self.spawn(PRODUCER, "--packets", 100000000, "--pause-us", 50, "--follow", "--policy", "drop")
        self.traced.kill()
        self.traced.wait()
        for _ in range(6):
            self.start_traced()
            perf = self.perfetto("-c", self.config(config(256)), "--txt", "-o", self.dir / "lost")
            wait_for(lambda: perf.poll() is not None or "consumer" in self.log())
            time.sleep(r.random() * 0.4)
            self.traced.kill()
            _, err = self.finish(perf, code=1)
            self.assertRegex(err, "went away|cannot connect")
            self.assertIsNone(producer.poll())
        self.start_traced()
        trace = self.dir / "last"
        connected = self.log().count("connected:")
        wait_for(lambda: self.log().count("connected:") > connected)
        perf = self.perfetto("-c", self.config(config(4096)), "--txt", "-o", trace)
        time.sleep(0.5)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertGreater(len(ledger(trace.read_bytes())[0]), 100)
        producer.kill()
        producer.communicate()

    def test_killed_consumers(self):
        for _ in range(6):  # more than one uid may have sessions: they must really end
            n = self.log().count("configured by")
            perf = self.perfetto("-c", self.config(config()), "--txt", "-o", self.dir / "out")
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
        self.as_somebody_else(self.stays_outside)
        self.assertIn("locked down", self.log())

    def stays_outside(self):
        p = self.connect()
        p.send(bind("ProducerPort"))
        p.recv()
        p.send(invoke(2, INITIALIZE, field(3, "stranger")))
        assert not p.reply(2)[0], "let in"


if __name__ == "__main__":
    unittest.main()

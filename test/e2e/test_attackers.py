"""Who may reach the daemons and wants harm: another user of the machine, a producer, a relay, a service that is none. One class
each; its comment lists what is tried."""
import ctypes
import fcntl
import mmap
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from harness import (Case, PRODUCER, TP_SHELL, TRACEBOX, Peer, bind, field, fields, first, frame, free_port, invoke, main,
                     packets, put_varint, wait_for)
from test_hostile import CLONE, DISABLE, ENABLE, QUERY, Producer, chunk, move
from test_record import config, ledger

GET_STATS = 10
NOBODY = 65534
STREAM = "write_into_file: true file_write_period_ms: 100 flush_period_ms: 10000\n"


class Attack(Case):
    def served(self, seconds=5):
        """The service answers a new consumer at once."""
        begin = time.monotonic()
        c = self.consumer()
        c.send(invoke(2, 13, b""))
        self.assertTrue(c.reply(2)[0])
        c.close()
        self.peers.remove(c)
        self.assertLess(time.monotonic() - begin, seconds)

    def memory_mb(self):
        with open(f"/proc/{self.traced.pid}/statm") as f:
            return int(f.read().split()[1]) * 4096 >> 20

    def raise_descriptors(self, n):
        """As many for this program and for those that it starts."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < n:
            self.skipTest(f"needs {n} descriptors")
        if soft != resource.RLIM_INFINITY and soft < n:
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def full_session(self, extra=b"", fds=()):
        """A raw consumer with a session of 2 MB of packets in an 8 MB buffer."""
        c = self.consumer()
        c.send(invoke(2, ENABLE, field(1, field(1, field(1, 8192)) + field(2, field(1, field(1, "fill"))) + extra)), fds=fds)
        p = Producer(self, "filler", "fill")
        _, buffer = p.wait_start()
        for i in range(64):
            p.commit(move(buffer, chunk(1, i, [field(900, b"x" * 30000)])))
        return c, p


class HostileUser(Attack):
    """Another user of the machine, and whoever may record with the consumers' socket.

    - a journal of changes to tracefs that was put where the recorder looks: directory of another user, file of another user,
      hard link, pipe, symbolic link (unit.tracefs has those), paths outside of tracefs
    - a clone, and a session's file, into a pipe that nobody reads, that is read a little at a time, and whose reader goes;
      the flags of the pipe changed back behind the service's back
    - a file that the service should make with its own rights (output_path)
    - a disk that is full in the middle of a packet; a consumer that is killed while its file is written
    """

    def as_user(self, uid, *args):
        return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                              user=uid, group=uid, extra_groups=[], timeout=60)

    @unittest.skipIf(os.getuid() != 0, "needs root to be two other users")
    def test_a_journal_of_somebody_else(self):
        victim, attacker = 64242, NOBODY
        run_dir = pathlib.Path(f"/tmp/meridian-{victim}")
        shutil.rmtree(run_dir, ignore_errors=True)
        self.addCleanup(shutil.rmtree, run_dir, True)
        os.chmod(self.dir, 0o755)
        tracebox = self.dir / "tracebox"
        shutil.copy(TRACEBOX, tracebox)
        tracebox.chmod(0o755)
        home = self.dir / "home"
        home.mkdir()
        profile = home / "profile"
        for owner in (attacker, victim):  # also one that is in the right place by the victim's own mistake
            profile.write_text("mine\n")
            for path in (home, profile):
                os.chown(path, victim, victim)
            run_dir.mkdir(mode=0o755)
            journal = run_dir / "ftrace-x.undo"
            journal.write_text(f"T\t{profile}\techo owned\nW\t{profile}\towned\nR\t{home}\t\n")
            for path in (run_dir, journal):
                os.chown(path, owner, owner)
            p = self.as_user(victim, tracebox, "traced_probes", "--cleanup-after-crash")
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr.decode(), "remove it, or set MERIDIAN_RUN_DIR|not in a tracefs")
            self.assertEqual(profile.read_text(), "mine\n")
            self.assertTrue(run_dir.exists())
            shutil.rmtree(run_dir)

    def test_a_clone_into_a_pipe_that_nobody_reads(self):
        self.start_traced()
        self.full_session()
        cloner = self.consumer()
        r, w = os.pipe()
        cloner.send(invoke(2, CLONE, field(1, 1)), fds=[w])
        wait_for(lambda: "is a clone of" in self.log())
        fcntl.fcntl(w, fcntl.F_SETFL, fcntl.fcntl(w, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        for _ in range(3):
            self.served()
        cloner.close()
        self.peers.remove(cloner)
        self.served()
        os.close(w)
        os.close(r)
        wait_for(lambda: "session 2 freed" in self.log())
        self.served()

    def test_a_clone_into_a_pipe_whose_reader_goes(self):
        self.start_traced()
        self.full_session()
        cloner = self.consumer()
        r, w = os.pipe()
        cloner.send(invoke(2, CLONE, field(1, 1)), fds=[w])
        os.close(w)
        self.served()
        os.close(r)
        ok, _, reply = cloner.reply(2)
        self.assertTrue(ok)
        self.assertFalse(first(reply, 1, 0))
        self.assertIn(b"cannot write the trace file", first(reply, 2))

    def test_a_file_that_is_a_slow_pipe(self):
        self.start_traced()
        r, w = os.pipe()
        got = []

        def drain():
            while True:
                data = os.read(r, 4096)
                if not data:
                    return
                got.append(data)
                time.sleep(0.005)
        reader = threading.Thread(target=drain)
        reader.start()
        c, p = self.full_session(field(8, 1) + field(9, 100), fds=[w])  # write_into_file, every 100 ms
        os.close(w)
        fast = self.perfetto("-c", self.config(config(4096)), "--txt", "-o", self.dir / "fast")
        self.finish(self.spawn(PRODUCER, "--packets", 2000))
        fast.send_signal(signal.SIGINT)
        self.finish(fast)
        self.assertEqual(len(ledger((self.dir / "fast").read_bytes())[0]), 2000)
        for _ in range(3):
            self.served()
        c.send(invoke(3, DISABLE, b""))
        ok, _, reply = c.reply(2)  # when all is in the pipe
        self.assertTrue(ok)
        self.assertIsNone(first(reply, 3), reply)
        reader.join(30)
        os.close(r)
        self.assertEqual(sum(first(q, 900) is not None for q in packets(b"".join(got))), 64)

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_a_file_made_by_the_service(self):
        self.start_traced()
        os.chmod(self.dir, 0o777)
        os.chmod(self.dir / "consumer", 0o777)
        target = self.dir / "made-by-root"
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                c = self.consumer()
                c.send(invoke(2, ENABLE, field(1, field(1, field(1, 64)) + field(8, 1) + field(29, str(target)))))
                os._exit(0 if b"output_path" in first(c.reply(2)[2], 3, b"") else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertFalse(target.exists())

    @unittest.skipIf(os.getuid() != 0, "needs root to mount a small disk")
    def test_a_full_disk(self):
        """The file ends with a whole packet; the command, its exit status and check say that it is not the whole trace."""
        small = pathlib.Path(tempfile.mkdtemp(prefix="meridian-small-"))
        self.addCleanup(small.rmdir)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("cannot mount")
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        self.start_traced()
        perf = self.perfetto("-c", self.config(config(4096, extra=STREAM)),
                             "--txt", "-o", small / "out")
        wait_for(lambda: "session 1" in self.log())
        self.spawn(PRODUCER, "--packets", 1000000, "--max-size", 3000, "--pause-us", 10)
        _, err = self.finish(perf, code=1)
        self.assertIn("cannot write the trace file: No space left", err)
        self.assertTrue(packets((small / "out").read_bytes()))  # none is cut
        check = subprocess.run([TP_SHELL, "check", small / "out"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(check.returncode, 1)
        self.assertIn(b"trace_end_missing", check.stdout)

    def test_a_consumer_killed_while_its_file_is_written(self):
        """What was recorded until then is in the file, and so is its end: nothing is lost, and check says so."""
        self.start_traced()
        trace = self.dir / "out"
        perf = self.perfetto("-c", self.config(config(4096, extra=STREAM)), "--txt", "-o", trace)
        wait_for(lambda: "session 1" in self.log())
        self.finish(self.spawn(PRODUCER, "--packets", 3000))
        perf.kill()
        perf.communicate()
        wait_for(lambda: "session 1 freed" in self.log())
        self.assertEqual([n for n, _ in ledger(trace.read_bytes())[0]], list(range(3000)))
        check = subprocess.run([TP_SHELL, "check", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(check.returncode, 0, check.stdout)


class HostileProducer(Attack):
    """Whoever reaches the producers' socket; test_hostile.py has the lies about chunks, patches, buffers and memory.

    - so many writers that TraceStats does not fit a message: the consumer's status line must not cost its recording
    - messages that begin and never end, on many connections: memory that they hold, now and afterwards; more of them than
      may be held
    - writers without end, by reconnecting (unit.trace_buffer has the bound)
    """

    def test_more_writers_than_fit_an_answer(self):
        self.start_traced()
        c = self.consumer()
        c.send(invoke(2, ENABLE, field(1, field(1, field(1, 8192)) + field(2, field(1, field(1, "many"))))))
        for k in range(3):
            p = Producer(self, f"program {k}", "many")
            _, buffer = p.wait_start()
            for at in range(1, 3000, 1000):
                p.commit(b"".join(move(buffer, chunk(w, 0, [field(8, 1)])) for w in range(at, at + 1000)))
        c.send(invoke(3, GET_STATS, b""))
        ok, _, reply = c.reply(3)
        self.assertTrue(ok)
        buffers = [v for n, v in fields(first(reply, 1)) if n == 1]
        self.assertEqual(first(buffers[0], 2), 9000)  # chunks_written
        c.send(invoke(4, DISABLE, b""))
        c.reply(4)
        trace = c.read_trace(5)
        self.assertEqual(sum(first(q, 8) == 1 for q in trace), 9000)
        stats = [first(q, 35) for q in trace if first(q, 35) is not None][-1]
        self.assertEqual(sum(n == 18 for n, _ in fields(stats)), 9000)  # in the trace, where there is room, all of them

    def test_half_messages(self):
        self.start_traced("--dev-flag", "half-message-ms=300")
        before = self.memory_mb()
        body = struct.pack("<I", 130000) + b"\x10\x01" + b"x" * 120000
        peers = [self.connect() for _ in range(300)]
        for p in peers:
            p.send(body)
        whole = self.connect()  # one that only pauses between messages
        whole.send(bind("ProducerPort"))
        whole.recv()
        for p in peers:
            self.assertTrue(p.closed())
        wait_for(lambda: self.memory_mb() < before + 20, what="memory given back")
        self.assertIn("timed out in the middle of a message", self.log())
        whole.send(bind("ProducerPort", 2))
        self.assertIsNotNone(whole.recv())
        self.served()


    def test_a_crowd_of_half_messages(self):
        """Together they hold no more than 64 MiB: the oldest go. What large messages left is given back. Others are served."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 2500:
            self.skipTest("too few file descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
        self.start_traced()
        before = self.memory_mb()
        half = struct.pack("<I", 130000) + b"\x10\x01" + b"x" * 126000
        peers = []
        for i in range(1200):  # 151 MB
            p = self.connect()
            p.sock.settimeout(20)
            try:
                p.send(half)
            except OSError:
                pass
            peers.append(p)
            if i % 300 == 299:
                self.served()
        wait_for(lambda: "too many messages have begun" in self.log(), what=self.log())
        self.assertTrue(peers[0].closed())
        for p in peers[-50:]:  # the last ones are still there, and finish what they began
            p.send(b"x" * (130000 - 126002))
            p.send(bind("ProducerPort", 2))
            self.assertIsNotNone(p.recv())
        self.assertLess(self.memory_mb(), before + 64 + 25)
        for p in peers:
            p.close()
            self.peers.remove(p)
        wait_for(lambda: self.memory_mb() < before + 20, what="memory given back")
        large = [self.connect() for _ in range(600)]  # 75 MB that are whole
        for p in large:
            p.send(frame(field(900, b"x" * 126000)) + bind("ProducerPort"))
        for p in large:
            self.assertIn(b"unknown request", p.recv())
            self.assertIsNotNone(first(p.recv(), 4))
        self.assertLess(self.memory_mb(), before + 40)
        self.served()


class RelayPeer(Peer):
    def recv(self):  # TLS passes no descriptors
        while len(self.buf) < 4 or len(self.buf) < 4 + struct.unpack("<I", self.buf[:4])[0]:
            data = self.sock.recv(1 << 17)
            if not data:
                return None
            self.buf += data
        n = struct.unpack("<I", self.buf[:4])[0]
        body, self.buf = self.buf[4:4 + n], self.buf[4 + n:]
        return body

    def __init__(self, sock, hint, name, service="RelayPort"):
        super().__init__(sock)
        self.send(frame(field(2, 0) + field(8, field(1, 1) + field(2, 0) + field(3, hint) + field(4, name))))
        self.send(bind(service))
        reply = self.recv()
        self.service = first(first(reply, 4), 2) if reply else None

    def init(self, system_info):
        self.send(invoke(2, 1, field(1, system_info), service=self.service))
        return self.reply(2)[0]


class HostileRelay(Attack):
    """Whoever reaches the port for relays, without TLS, with it, and with a certificate; test_tls.py has wrong authorities,
    names, keys and protocols.

    - ids of machines made up without end, each with as much to keep as it may have
    - the id of another machine, before and after that one came; many ids with one certificate
    - connections that never shake hands, more than there is room for
    - a certificate of the right authority that is for something else
    """

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)

    def service(self, *args):
        self.start_traced("--enable-relay-endpoint-on", f"127.0.0.1:{self.port}", *args,
                          producers=f"{self.dir}/producer,127.0.0.1:{self.port}")
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"{self.dir}/producer"

    def certified(self, cert, key, *identity):
        """A connection with that certificate; None when it is refused."""
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ctx.check_hostname = False
        ctx.verify_mode = ssl.CERT_NONE
        ctx.load_cert_chain(cert, key)
        try:
            p = RelayPeer(ctx.wrap_socket(socket.create_connection(self.address, 20)), *identity)
        except (OSError, ssl.SSLError):
            return None
        self.peers.append(p)
        return p if p.service else None

    def test_machines_without_end(self):
        self.service()
        before = self.memory_mb()
        known = RelayPeer(socket.create_connection(self.address), "known", "known")
        self.peers.append(known)
        self.assertTrue(known.init(field(4, "v1")))
        for i in range(4200):
            with socket.create_connection(self.address) as sock:
                self.assertTrue(RelayPeer(sock, f"m{i}", f"m{i}").init(field(4, b"x" * (15000 if i % 2 else 125000))))
        self.assertLess(self.memory_mb(), before + 60)
        late = RelayPeer(socket.create_connection(self.address), "late", "late")
        self.peers.append(late)
        self.assertTrue(late.init(field(4, "v2")))
        trace = self.dir / "trace"
        p = self.perfetto("-c", self.config("duration_ms: 300 trace_all_machines: true buffers { size_kb: 64 }"), "--txt",
                          "-o", trace)
        self.finish(p)
        names = [n for n, in self.query(trace, "SELECT name FROM machine WHERE raw_id != 0 ORDER BY name")]
        self.assertEqual(names, ["known", "late"])

    def processor_seconds(self):
        with open(f"/proc/{self.traced.pid}/stat") as f:
            times = f.read().rsplit(")", 1)[1].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def seconds_for_relays(self, name):
        """What 200 relays of new machines cost the service, whether they are let in or not."""
        begin = self.processor_seconds()
        for i in range(200):
            with socket.create_connection(self.address) as sock:
                RelayPeer(sock, f"{name}{i}", name).init(field(4, b"x"))
        return self.processor_seconds() - begin

    def test_no_room_for_machines(self):
        self.raise_descriptors(4096 + 300)
        self.service()
        before = self.seconds_for_relays("before")
        for i in range(4096):  # all places are of machines that have nothing but a producer
            with socket.create_connection(self.address) as sock:
                RelayPeer(sock, f"m{i}", "m").init(field(4, b"x"))
                p = RelayPeer(socket.create_connection(self.address), f"m{i}", "m", "ProducerPort")
                self.peers.append(p)
                p.send(invoke(2, 1, field(3, "p"), service=p.service))
                self.assertTrue(p.reply(2)[0])
        late = self.seconds_for_relays("late")
        self.assertLess(late, 5 * before + 0.3)  # 3 s, where all producers were looked through for each machine

    def test_ids_and_certificates(self):
        keys = self.dir / "keys"
        subprocess.run([TRACEBOX, "relay-keys", keys, "--machine", "web1", "--machine", "web2"], stdout=subprocess.DEVNULL,
                       check=True)
        self.service("--relay-tls", str(keys / "host"))
        web1, web2 = [(keys / n / "cert.pem", keys / n / "key.pem") for n in ("web1", "web2")]
        links = [self.certified(*web1, hint, "web1") for hint in ("h1", "h2", "h3")]  # h2 is web2's, which is not here yet
        links += [self.certified(*web2, hint, "web2") for hint in ("h2", "h1")]
        self.assertNotIn(None, links)
        for p in links:
            p.init(field(4, "v"))
        ids = {}
        for line in self.log().splitlines():
            if "relay of machine" in line:
                number, name = line.split("relay of machine ")[1].split()[:2]
                ids.setdefault(name, set()).add(number)
        self.assertEqual({k: len(v) for k, v in ids.items()}, {'"web1"': 1, '"web2"': 1})
        self.assertNotEqual(ids['"web1"'], ids['"web2"'])

        if shutil.which("openssl"):
            self.certificate_for_something_else(keys)
        idle = [socket.create_connection(self.address) for _ in range(300)]
        self.assertIsNotNone(self.certified(*web1, "h1", "web1"))
        for sock in idle:
            sock.close()

    def certificate_for_something_else(self, keys):
        (self.dir / "ext").write_text("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n")
        key, request, cert = (self.dir / n for n in ("k.pem", "r.csr", "c.pem"))
        for args in (["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
                     ["req", "-new", "-key", key, "-subj", "/CN=web1", "-out", request],
                     ["x509", "-req", "-in", request, "-CA", keys / "ca.crt", "-CAkey", keys / "ca.key", "-CAcreateserial",
                      "-days", "1", "-extfile", self.dir / "ext", "-out", cert]):
            subprocess.run(["openssl", *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertIsNone(self.certified(cert, key, "h1", "web1"))
        wait_for(lambda: "extendedKeyUsage clientAuth" in self.log(), what=self.log())


class RelaysLog(Case):
    """A program that connects to a relay without end, while the relay's host is away: each connection fails, and the log of
    the relay still grows by a few lines a second."""

    CONNECTIONS = 400

    def connect_and_fail(self, path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(str(path))
            self.assertEqual(s.recv(1), b"")  # closed, not left to wait

    def test_the_host_is_away(self):
        path, log = self.dir / "relay-producer", self.dir / "relay.log"
        env = {**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(path), "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{free_port()}"}
        with open(log, "w") as err:
            self.procs.append(subprocess.Popen([TRACEBOX, "traced_relay"], stderr=err, env=env))
        # a socket that is bound is there before it listens
        wait_for(lambda: any(line.split()[3] == "00010000" and line.rstrip().endswith(f" {path}")
                             for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]))
        began = time.monotonic()
        for _ in range(self.CONNECTIONS):
            self.connect_and_fail(path)
        seconds = time.monotonic() - began
        time.sleep(1.1)
        self.connect_and_fail(path)  # the next line that may be written tells how many were not
        wait_for(lambda: "suppressed" in log.read_text())
        lines = log.read_text().splitlines()
        said = sum("cannot reach the host" in line for line in lines)
        kept_back = sum(int(line.split()[1]) for line in lines if "suppressed" in line)
        self.assertEqual(said + kept_back, self.CONNECTIONS + 1)
        self.assertLessEqual(said, 5 * (seconds + 3))


class FakeService:
    """Speaks the producers' protocol as a service would, and keeps what is asked of it."""

    METHODS = ["InitializeConnection", "RegisterDataSource", "UnregisterDataSource", "CommitData", "GetAsyncCommand",
               "RegisterTraceWriter", "UnregisterTraceWriter", "NotifyDataSourceStarted", "NotifyDataSourceStopped",
               "ActivateTriggers", "Sync", "UpdateDataSource"]

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(4)
        self.seen = []

    def serve(self, on_registered, seconds=5):
        """Answers one producer until it goes, or for so long. `on_registered(send_command)` once it offers process_stats."""
        self.listener.settimeout(seconds)
        sock, _ = self.listener.accept()
        peer = Peer(sock)
        sock.settimeout(seconds)
        commands = None
        try:
            while True:
                body = peer.recv()
                if body is None:
                    return
                request, bind_to, call = first(body, 2, 0), first(body, 3), first(body, 5)
                if bind_to is not None:
                    methods = b"".join(field(3, field(1, i + 1) + field(2, n)) for i, n in enumerate(self.METHODS))
                    peer.send(frame(field(2, request) + field(4, field(1, 1) + field(2, 1) + methods)))
                if call is None:
                    continue
                name, args = self.METHODS[first(call, 2) - 1], first(call, 3, b"")
                self.seen.append(name)
                if name == "GetAsyncCommand":
                    commands = request
                elif not first(call, 4, 0):
                    peer.send(frame(field(2, request) + field(6, field(1, 1) + field(3, b""))))
                if name == "RegisterDataSource" and b"linux.process_stats" in args and commands:
                    on_registered(lambda c, fds=(): peer.send(
                        frame(field(2, commands) + field(6, field(1, 1) + field(2, 1) + field(3, c))), fds))
        except (OSError, TimeoutError):
            pass
        finally:
            peer.close()


class HostileService(Attack):
    """A process that made the producers' socket first, and poses as the service.

    - of another user: the probes of root ask it for nothing and give it nothing, until it is named by --service-user
    - shared memory that can still shrink, that shrinks, that is no memory
    - commands with sizes, ids and configs that make no sense
    """

    START = field(6, field(1, 1) + field(2, field(1, "linux.process_stats") + field(2, 1) + field(103, field(2, 1)))) \
        , field(1, field(1, 1) + field(2, field(1, "linux.process_stats") + field(2, 1) + field(103, field(2, 1))))

    def probes(self, *args):
        with open(self.dir / "probes.log", "wb") as log:
            p = subprocess.Popen([TRACEBOX, "traced_probes", "--socket", str(self.dir / "producer"), *args], env={
                **self.env, "MERIDIAN_RUN_DIR": str(self.dir)}, stderr=log)
        self.procs.append(p)
        return p

    def said(self):
        return (self.dir / "probes.log").read_text(errors="replace")

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_of_another_user(self):
        os.chmod(self.dir, 0o777)
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                fake = FakeService(str(self.dir / "producer"))
                os.write(w, b"1")
                fake.serve(lambda send: None, 3)
                os._exit(1 if fake.seen else 0)
            finally:
                os._exit(2)
        os.read(r, 1)
        os.close(r)
        os.close(w)
        os.chmod(self.dir, 0o755)
        probes = self.probes()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        wait_for(lambda: "runs as another user" in self.said(), what=self.said())
        self.assertIsNone(probes.poll())

    def test_memory_and_commands_that_make_no_sense(self):
        open_memory = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        os.ftruncate(open_memory, 1 << 18)
        null = os.open("/dev/null", os.O_RDWR)
        self.addCleanup(os.close, open_memory)
        self.addCleanup(os.close, null)

        def attack(send):
            for fd in (open_memory, null):
                send(field(3, field(1, 4)), [fd])
            wait_for(lambda: self.said().count("shared memory") == 2, what=self.said())
            os.ftruncate(open_memory, 0)
            for c in (field(3, field(1, 0)), field(3, field(1, 3)), field(3, field(1, 1 << 31)), field(6, field(1, 1)),
                      field(1, field(1, 5)), field(2, field(1, 999)), field(5, field(2, (1 << 64) - 1)), field(7, field(1, 1)),
                      field(6, b"\xff" * 10), field(6, field(1, 1) + field(2, field(1, "no.such"))), *self.START,
                      field(5, field(1, 1) + field(2, 1))):
                send(c)
        fake = FakeService(str(self.dir / "producer"))
        probes = self.probes()
        fake.serve(attack, 2)
        fake.listener.close()
        self.assertIn("RegisterDataSource", fake.seen)
        self.assertIsNone(probes.poll(), self.said())
        self.assertIn("not sealed", self.said())
        probes.terminate()
        self.assertEqual(probes.wait(20), 0, self.said())


if __name__ == "__main__":
    unittest.main()

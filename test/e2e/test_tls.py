"""Links between machines with TLS: who gets in, who does not and why, and how much each machine may take."""
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import time

from harness import PRODUCER, TRACEBOX, Case, bind, field, frame, free_port, main, wait_for

CONFIG = """
buffers { size_kb: 65536 }
trace_all_machines: true
flush_timeout_ms: 1000
data_source_stop_timeout_ms: 1000
data_sources { config { name: "e2e.source" } }
"""


class Tls(Case):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def keys(self, *machines, where="keys"):
        args = [a for m in machines for a in ("--machine", m)]
        out = subprocess.run([TRACEBOX, "relay-keys", self.dir / where, *args], stdout=subprocess.PIPE, check=True).stdout
        return out.decode().split()

    def service(self, *args, tls=True):
        self.keys("web1", "web2")
        self.start_traced("--enable-relay-endpoint", *(["--relay-tls", str(self.dir / "keys/host")] if tls else []), *args,
                          producers=f"{self.dir}/producer,127.0.0.1:{self.port}")

    def relay(self, name, keys=None, **env):
        """A relay as machine `name`; its log is returned by self.said(name)."""
        socket_path = self.dir / f"{name}.sock"
        with open(self.dir / f"{name}.log", "ab") as err:
            p = subprocess.Popen([TRACEBOX, "traced_relay", *(["--tls", keys] if keys else [])], stderr=err, env={
                **self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(socket_path),
                "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{self.port}", **env})
        self.procs.append(p)
        wait_for(lambda: socket_path.exists() or p.poll() is not None, what="the relay")
        return p

    def said(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")

    def producer(self, name, *args):
        p = subprocess.Popen([PRODUCER, "--packets", "100000", *map(str, args)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             env={**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / f"{name}.sock")})
        self.procs.append(p)
        return p

    def joined(self, name, what="relay of machine"):
        wait_for(lambda: re.search(rf'{what} .*"{name}" connected|producer .* connected: .*machine {name}', self.log()),
                 what=f"{what} {name}: {self.log()}{self.said(name)}")

    def logged(self, pattern):
        wait_for(lambda: re.search(pattern, self.log()), what=f"in the log: {pattern}: {self.log()}")

    def record(self, seconds):
        trace = self.dir / "trace"
        p = self.perfetto("--txt", "-c", self.config(CONFIG), "-o", trace)
        time.sleep(seconds)
        p.send_signal(signal.SIGINT)
        self.finish(p)
        return trace

    def test_records_through_tls(self):
        self.service("--relay-allow", "web1,web2")
        self.relay("web1", self.dir / "keys/web1")
        self.joined("web1")
        self.producer("web1", "--pause-us", 1000)
        self.joined("web1", "producer")
        trace = self.record(1)
        self.assertGreater(trace.stat().st_size, 10000)
        self.assertTrue(self.query(trace, "SELECT * FROM clock_sync WHERE model = 'linear'"), "the clocks were compared")
        self.assertEqual(self.query(trace, "SELECT name FROM machine WHERE raw_id != 0"), [["web1"]])
        # The same kernel, and so the same id as its relay says it, under another name: the certificate says who it is.
        self.relay("web2", self.dir / "keys/web2")
        self.joined("web2")
        ids = re.findall(r'relay of machine (\d+) "(web[12])" connected', self.log())
        self.assertEqual(len({i for i, _ in ids}), 2, ids)

    def test_wrong_authority(self):
        self.service()
        self.keys("web1", where="others")
        self.relay("web1", self.dir / "others/web1")
        self.logged("refused 127.0.0.1:.*: TLS: ")
        wait_for(lambda: "its certificate was rejected" in self.said("web1"), what="the relay's reason")

    def test_wrong_authority_of_the_machine(self):
        """A relay that trusts this host, with a certificate that the host cannot trust."""
        self.service()
        self.keys("web1", where="others")
        (self.dir / "others/web1/ca.crt").write_bytes((self.dir / "keys/ca.crt").read_bytes())
        self.relay("web1", self.dir / "others/web1")
        self.logged("TLS: its certificate was rejected: ")
        wait_for(lambda: re.search("TLS with the host: .*(unknown ca|alert|decrypt)", self.said("web1")), what="the relay's reason")

    def test_a_machine_cannot_pose_as_the_host(self):
        self.keys("web1", "web2")
        self.start_traced("--enable-relay-endpoint", "--relay-tls", str(self.dir / "keys/web2"),
                          producers=f"{self.dir}/producer,127.0.0.1:{self.port}")
        self.relay("web1", self.dir / "keys/web1")
        wait_for(lambda: re.search("its certificate was rejected: .*purpose", self.said("web1")), what="the relay's reason")

    def test_no_certificate(self):
        self.service()
        context = ssl.create_default_context(cafile=str(self.dir / "keys/ca.crt"))
        context.check_hostname = False
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            try:
                with context.wrap_socket(s) as t:
                    t.recv(1)
            except (ssl.SSLError, ConnectionError):
                pass
        self.logged("TLS: peer did not return a certificate")

    def test_plain_relay(self):
        self.service()
        self.relay("web1", PERFETTO_MACHINE_NAME="web1")
        self.logged("TLS: the peer does not use TLS")
        wait_for(lambda: "no connection to the host" in self.said("web1"), what="the relay's reason")

    def test_plain_host(self):
        self.service(tls=False)
        self.relay("web1", self.dir / "keys/web1")
        wait_for(lambda: "TLS with the host: the TLS handshake timed out" in self.said("web1"), what="the reason")

    def test_names(self):
        self.service("--relay-allow", "web1")
        self.relay("web2", self.dir / "keys/web2")
        self.logged('refused .*, machine "web2": its name is not in --relay-allow')
        self.relay("web1", self.dir / "keys/web2", PERFETTO_MACHINE_NAME="web1")
        self.logged('refused .*, machine "web1": its certificate is for another name')

    def test_names_without_tls(self):
        self.service("--relay-allow", "web1", tls=False)
        self.relay("web2", PERFETTO_MACHINE_NAME="web2")
        self.logged('machine "web2": its name is not in --relay-allow')
        self.relay("web1", PERFETTO_MACHINE_NAME="web1")
        self.joined("web1")
        p = self.connect(self.port)  # says no name at all
        p.send(bytes.fromhex("12000000 1001 1a0e 0a0c") + b"ProducerPort")
        self.assertTrue(p.closed())

    def test_key_that_others_can_read(self):
        self.keys("web1")
        os.chmod(self.dir / "keys/web1/key.pem", 0o644)
        p = self.relay("web1", self.dir / "keys/web1")
        self.assertEqual(p.wait(10), 1)
        self.assertIn("chmod 600", self.said("web1"))

    def test_half_handshakes_block_nobody(self):
        self.service()
        half = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(50)]
        for s in half:
            s.send(b"\x16\x03\x01\x02\x00\x01")
        began = time.monotonic()
        self.relay("web1", self.dir / "keys/web1")
        self.joined("web1")
        self.assertLess(time.monotonic() - began, 3)
        for s in half:
            s.close()

    def test_limit_of_connections(self):
        self.service("--relay-max-connections", "2")
        self.relay("web1", self.dir / "keys/web1")
        self.joined("web1")
        self.producer("web1")
        self.joined("web1", "producer")
        self.producer("web1")
        self.logged('machine "web1": it has reached the limit of --relay-max-connections')

    @staticmethod
    def identity(hint, name):
        return frame(field(2, 0) + field(8, field(1, 1) + field(2, 0) + field(3, hint) + field(4, name)))

    def test_a_machine_is_its_certificate(self):
        """Other ids are no way round its limits."""
        self.service("--relay-max-connections", "2")
        context = ssl.create_default_context(cafile=str(self.dir / "keys/ca.crt"))
        context.check_hostname = False
        context.load_cert_chain(self.dir / "keys/web1/cert.pem", self.dir / "keys/web1/key.pem")
        peers = []
        for hint in ("one", "two", "three"):
            s = context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)))
            s.sendall(self.identity(hint, "web1"))
            peers.append(s)
        self.logged('machine "web1": it has reached the limit of --relay-max-connections')
        for s in peers:
            s.close()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.traced.pid}/fd"))

    def test_a_machine_that_sips(self):
        """Who is shown out and takes its last answers in sips keeps its descriptors for seconds, not for hours: they do
        not count for --relay-max-connections any more."""
        self.service()
        before = self.descriptors()
        context = ssl.create_default_context(cafile=str(self.dir / "keys/ca.crt"))
        context.check_hostname = False
        context.load_cert_chain(self.dir / "keys/web1/cert.pem", self.dir / "keys/web1/key.pem")
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        raw.connect(("127.0.0.1", self.port))
        s = context.wrap_socket(raw)
        s.settimeout(2)
        s.sendall(self.identity("one", "web1"))
        self.assertGreater(self.descriptors(), before)
        try:
            while "dropped" not in self.log():  # its queue is full: nobody reads the answers
                s.sendall(bind("ProducerPort", 1) * 1000)
        except OSError:
            self.logged("dropped")
        left = time.monotonic() + 20
        with socket.socket(fileno=os.dup(s.fileno())) as sips:
            sips.setblocking(False)
            while self.descriptors() > before and time.monotonic() < left:
                try:
                    sips.recv(4096)
                except OSError:
                    pass
                time.sleep(0.2)
        self.assertLessEqual(self.descriptors(), before)
        s.close()

    def test_hanging_up_above_the_limit(self):
        """A machine that owes bytes for long and is gone costs no time."""
        self.service("--relay-max-bytes", "1000", tls=False)
        p = self.connect(self.port)
        p.send(self.identity("one", "web1") + frame(b"\0" * 100000))
        self.logged("exceeds --relay-max-bytes")
        p.close()
        began = self.cpu_ticks()
        time.sleep(1)
        self.assertLess(self.cpu_ticks() - began, 30)

    def cpu_ticks(self):
        stat = (pathlib.Path("/proc") / str(self.traced.pid) / "stat").read_text().rsplit(")", 1)[1].split()
        return int(stat[11]) + int(stat[12])

    def test_limits_that_are_none(self):
        for args in (["--relay-max-connections", "many"], ["--relay-max-connections", "-1"], ["--relay-max-bytes", "0"],
                     ["--relay-max-bytes", "99999999999g"]):
            p = subprocess.run([TRACEBOX, "traced", *args], stderr=subprocess.PIPE, timeout=10)
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"expected a number", p.stderr)

    def test_limit_of_bytes(self):
        limit = 500_000
        self.service("--relay-max-bytes", str(limit))
        self.relay("web1", self.dir / "keys/web1")
        self.joined("web1")
        self.producer("web1", "--max-size", 4000, "--pause-us", 50, "--policy", "drop")
        self.joined("web1", "producer")
        began = time.monotonic()
        trace = self.record(2)
        seconds = time.monotonic() - began  # with the end, which waits for what is under way
        self.assertIn("exceeds --relay-max-bytes", self.log())
        self.assertLess(trace.stat().st_size, limit * (seconds + 1))
        self.assertGreater(trace.stat().st_size, limit)

    def test_warning(self):
        self.keys()
        self.start_traced("--enable-relay-endpoint", producers=f"{self.dir}/producer,0.0.0.0:{self.port}")
        self.assertIn(f"warning: anyone who can connect to 0.0.0.0:{self.port} can send events", self.log())

    def test_keys_of_another_machine_later(self):
        self.assertEqual(len(self.keys("web1")), 2)
        self.assertEqual(len(self.keys("web2")), 1)
        again = subprocess.run([TRACEBOX, "relay-keys", self.dir / "keys", "--machine", "web2"], stderr=subprocess.PIPE)
        self.assertEqual(again.returncode, 1)
        self.assertIn(b"exists", again.stderr)


if __name__ == "__main__":
    main()

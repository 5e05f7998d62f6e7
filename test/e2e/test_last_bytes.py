"""What a producer says last reaches the host, also when it ends with answers unread: nothing on the way is reset."""
import hashlib
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

from harness import TRACEBOX, Case, free_port, main, wait_for


def read_exactly(s, n):
    got = b""
    while len(got) < n:
        piece = s.recv(n - len(got))
        assert piece, "the connection ended"
        got += piece
    return got


def read_frame(s):
    return read_exactly(s, struct.unpack("<I", read_exactly(s, 4))[0])


class LastBytes:
    """The test is the host, behind a real relay on loopback."""

    encrypted = False

    def setUp(self):
        super().setUp()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.tls = None

    def tearDown(self):
        self.listener.close()
        super().tearDown()

    def start(self):
        args = []
        if self.encrypted:
            keys = self.dir / "keys"
            subprocess.run([TRACEBOX, "relay-keys", keys, "--machine", "m1"], stdout=subprocess.DEVNULL, check=True)
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(keys / "host/cert.pem", keys / "host/key.pem")
            self.tls.load_verify_locations(keys / "host/ca.crt")
            self.tls.verify_mode = ssl.CERT_REQUIRED
            args = ["--tls", keys / "m1"]
        path = self.dir / "producer"
        with open(self.dir / "relay.log", "ab") as log:
            self.relay = subprocess.Popen([TRACEBOX, "traced_relay", *map(str, args)], stderr=log, env={
                **self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(path),
                "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{self.listener.getsockname()[1]}"})
        self.procs.append(self.relay)
        self.control = self.accept()
        read_frame(self.control)  # its identity; what it asks stays unanswered
        wait_for(path.exists, what="the relay's socket")
        self.producer = socket.socket(socket.AF_UNIX)
        self.producer.connect(str(path))
        self.host = self.accept()
        read_frame(self.host)  # the producer's identity

    def accept(self):
        s, _ = self.listener.accept()
        s.settimeout(20)
        if self.tls:
            s = self.tls.wrap_socket(s, server_side=True)
        self.addCleanup(s.close)
        return s

    def stuff(self, s):
        """Writes until nothing more is taken."""
        s.settimeout(0.5)
        sent = 0
        try:
            while True:
                sent += s.send(b"an answer that nobody reads " * 2000)
        except (TimeoutError, ssl.SSLWantWriteError):
            pass
        s.settimeout(20)
        return sent

    def read_to_end(self, s):
        """Everything until the end, which must be one and no reset."""
        got = bytearray()
        while piece := s.recv(1 << 16):
            got += piece
        return bytes(got)

    def check(self, got, sent):
        self.assertEqual(len(got), len(sent))
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(sent).digest())

    def cpu_seconds(self):
        with open(f"/proc/{self.relay.pid}/stat") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def say_last(self, answers):
        """As much as all the queues between take while the host does not read; then the producer ends."""
        if answers:
            self.assertGreater(self.stuff(self.host), 100000)
        said = bytearray()
        self.producer.settimeout(0.5)
        try:
            while len(said) < 64 << 20:
                piece = os.urandom(1 << 16)
                n = self.producer.send(piece)
                said += piece[:n]
        except TimeoutError:
            pass
        self.producer.close()
        before = self.cpu_seconds()
        time.sleep(1)
        self.assertLess(self.cpu_seconds() - before, 0.3, "waiting for the host costs nothing")
        self.assertGreater(len(said), 300000)
        return bytes(said)

    def test_answers_unread(self):
        self.start()
        said = self.say_last(answers=True)
        self.check(self.read_to_end(self.host), said)

    def test_answers_that_still_come(self):
        """The host answers while the last bytes are on their way."""
        self.start()
        said, got = self.say_last(answers=False), bytearray()
        while len(got) < len(said):
            try:
                self.host.send(b"yes" * 1000)
            except (ssl.SSLWantWriteError, BlockingIOError):
                pass
            piece = self.host.recv(1 << 16)
            self.assertTrue(piece, "the end came too early")
            got += piece
        self.check(bytes(got), said)
        self.assertEqual(self.read_to_end(self.host), b"")

    def test_the_relay_is_told_to_end(self):
        self.start()
        self.stuff(self.host)
        said = os.urandom(200000)  # no more than the network and the relay take at once
        self.producer.settimeout(20)
        self.producer.sendall(said)
        time.sleep(0.5)
        start = time.monotonic()
        self.relay.send_signal(signal.SIGTERM)
        self.check(self.read_to_end(self.host), said)
        self.host.close()
        self.control.close()
        self.assertEqual(self.relay.wait(10), 0)
        self.assertLess(time.monotonic() - start, 5)
        self.producer.close()

    def test_a_host_that_never_ends(self):
        """Waiting for the other side's end has an end itself; the producer's socket and the relay's memory are free."""
        self.start()
        fds = lambda: len(os.listdir(f"/proc/{self.relay.pid}/fd"))
        before = fds()
        self.producer.close()
        self.assertEqual(self.read_to_end(self.host), b"")
        wait_for(lambda: fds() < before, 15, "the end of the link")
        self.relay.send_signal(signal.SIGTERM)
        self.assertEqual(self.relay.wait(10), 0)


class PlainLink(LastBytes, Case):
    pass


class TlsLink(LastBytes, Case):
    encrypted = True


if __name__ == "__main__":
    main()

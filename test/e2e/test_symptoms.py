"""docs/multi-machine.md, "When it does not work": every symptom of the table comes about as the table says."""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import PRODUCER, TRACEBOX, TP_SHELL, Case, field, free_port, main, wait_for
from links import Forwarder, Link

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/multi-machine.md").read_text()
PEER_IDENTITY = 8  # of IPCFrame
CONFIG = "buffers { size_kb: 4096 }\ntrace_all_machines: true\ndata_sources { config { name: \"e2e.source\" } }\n"


class Symptoms(Case):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def named(self, *symptoms):
        """The words are in the page."""
        for s in symptoms:
            self.assertIn(s, PAGE)

    def service(self, *args):
        self.start_traced(*args, producers=f"{self.dir}/host,127.0.0.1:{self.port}")

    def relay(self, port=None, **env):
        with open(self.dir / "relay.log", "ab") as err:
            p = subprocess.Popen([TRACEBOX, "traced_relay"], stderr=err, env={
                **self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "relay"),
                "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{port or self.port}", **env})
        self.procs.append(p)
        return p

    def relay_says(self, text):
        wait_for(lambda: text in (self.dir / "relay.log").read_text(), what=f"{text}: {(self.dir / 'relay.log').read_text()}")

    def record(self, seconds=1, config=CONFIG, producer="relay", code=0):
        if producer:
            self.procs.append(subprocess.Popen(
                [PRODUCER, "--packets", "100000", "--pause-us", "500", "--follow"], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env={**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / producer)}))
            wait_for(lambda: "e2e.producer\" connected" in self.log(), what="the producer")
        p = self.perfetto("--txt", "-c", self.config(config), "-o", self.dir / "trace")
        time.sleep(seconds)
        p.send_signal(signal.SIGINT)
        return self.finish(p, code)[1]

    def check(self):
        return subprocess.run([TP_SHELL, "check", self.dir / "trace"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.decode()

    def test_no_address(self):
        self.named("`PERFETTO_RELAY_SOCK_NAME is not set`")
        env = {k: v for k, v in os.environ.items() if k != "PERFETTO_RELAY_SOCK_NAME"}
        p = subprocess.run([TRACEBOX, "traced_relay"], env=env, stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"PERFETTO_RELAY_SOCK_NAME is not set", p.stderr)

    def test_nobody_listens(self):
        self.named("`Connection refused; nothing listens there`")
        self.relay()
        self.relay_says("Connection refused; nothing listens there")
        self.service("--enable-relay-endpoint")  # and the cure
        self.record(0.5)
        self.assertEqual(len(self.query(self.dir / "trace", "SELECT id FROM machine")), 2)

    def test_no_endpoint(self):
        self.named("`the host has no relay endpoint`")
        self.service()
        self.relay()
        self.relay_says("the host has no relay endpoint: start it with traced --enable-relay-endpoint")

    def test_taken(self):
        self.named("is in use; run traced or traced_relay, not both")
        self.service("--enable-relay-endpoint")
        p = self.relay(PERFETTO_PRODUCER_SOCK_NAME=str(self.dir / "host"))
        self.assertEqual(p.wait(10), 1)
        self.relay_says("is in use; run traced or traced_relay, not both")

    def test_wrong_socket_of_the_probes(self):
        """A producer that looks elsewhere: its machine has a row, and no data."""
        self.named("has a `machine` row, and nothing else")
        self.service("--enable-relay-endpoint")
        self.relay()
        wait_for(lambda: "relay of machine" in self.log(), what="the relay")
        p = subprocess.Popen([PRODUCER, "--packets", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "elsewhere")})
        self.procs.append(p)
        self.record(0.5, producer=None, code=3)
        self.assertEqual(len(self.query(self.dir / "trace", "SELECT id FROM machine")), 2)
        self.assertIn("machine_not_recorded", self.check())
        p.kill()

    def test_host_only(self):
        self.named("other machine is connected but not recorded", "`machine_not_recorded`")
        self.service("--enable-relay-endpoint")
        self.relay()
        err = self.record(0.5, CONFIG.replace("trace_all_machines: true", ""), code=3)
        self.assertIn("1 other machine is connected but not recorded: add \"trace_all_machines: true\"", err)
        self.assertIn("machine_not_recorded", self.check())

    def test_no_comparison(self):
        """Producers that reach the host without a control connection of their relay."""
        self.named("`clock_sync_missing`")
        self.service("--enable-relay-endpoint")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.dir / "relay"))
        listener.listen()

        def pump(a, b):
            try:
                while data := a.recv(1 << 16):
                    b.sendall(data)
            except OSError:
                pass

        def serve():
            local, _ = listener.accept()
            host = socket.create_connection(("127.0.0.1", self.port))
            body = field(2, 0) + field(PEER_IDENTITY, field(1, 1) + field(2, 0) + field(3, "another-boot-id"))
            host.sendall(struct.pack("<I", len(body)) + body)
            threading.Thread(target=pump, args=(host, local), daemon=True).start()
            pump(local, host)

        threading.Thread(target=serve, daemon=True).start()
        self.record(0.5)
        self.assertIn("clock_sync_missing", self.check())
        listener.close()

    def test_slow_link(self):
        self.named("large `max_error_ns`")
        self.service("--enable-relay-endpoint")
        forwarder, link, port = Forwarder(), Link(delay_s=0.05), free_port()
        forwarder.listen(link, "127.0.0.1", port, ("127.0.0.1", self.port))
        self.relay(port)
        self.record(1.5)
        (bound, rtt), = self.query(self.dir / "trace", "SELECT max(max_error_ns), min(min_rtt_ns) FROM clock_sync")
        self.assertGreater(int(rtt), 90_000_000)
        self.assertTrue(0.3 < int(bound) / int(rtt) < 1.5, f"{bound} {rtt}")  # about half of the round trip
        for p in self.procs:
            p.terminate()
        forwarder.cut(link)
        forwarder.close()


if __name__ == "__main__":
    main()

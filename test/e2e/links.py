"""Machines without kernels of their own: each a network namespace with a boot id of its own, behind a link that the test
delays, stalls and cuts. (The kernel here has no netem: a forwarding thread does it.)"""
import asyncio
import collections
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

from harness import PRODUCER, TRACEBOX, Case, fields, first, packets, wait_for

PORT = 20001  # of the service, in the namespace of the test
LINK_PORT = 20002  # of the forwarder, at each machine's end of its link
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def enter_namespace():
    """Runs this program again in network and mount namespaces of its own; exits with 77 where that cannot be done."""
    if os.environ.get("IN_NAMESPACE"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    for argv, why in ((["ip", "-V"], "no iproute2"),
                      (["unshare", "-n", "-m", "sh", "-c", "ip link add t0 type veth peer name t1"],
                       "no network namespaces with veth here (needs root)")):
        try:
            ok = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        except FileNotFoundError:
            ok = False
        if not ok:
            print(f"skipped: {why}")
            sys.exit(77)
    os.execvpe("unshare", ["unshare", "-n", "-m", sys.executable, *sys.argv], {**os.environ, "IN_NAMESPACE": "1"})


class Link:
    """What the forwarder does to one machine's connections; changed by the test at any time."""

    def __init__(self, delay_s=0.0, jitter_s=0.0, loss=0.0):
        self.delay_s, self.jitter_s, self.loss = delay_s, jitter_s, loss
        self.open = asyncio.Event()  # not set: partitioned
        self.open.set()
        self.transports = set()
        self.accepted = 0
        self.bytes_up = 0

    def lateness(self):
        """A lost segment costs TCP its retransmission time, never the bytes."""
        return self.delay_s + random.uniform(0, self.jitter_s) + (0.2 if random.random() < self.loss else 0)


class Forwarder:
    """Forwards TCP from addresses of links to the service, on a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.servers = []
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def listen(self, link, address, port=LINK_PORT, to=("127.0.0.1", PORT)):
        async def serve():
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # a network holds little of what is under way
            sock.bind((address, port))
            self.servers.append(await asyncio.start_server(lambda r, w: self._connection(link, r, w, to), sock=sock))
        self.call(serve())

    async def _connection(self, link, reader, writer, to):
        link.accepted += 1
        link.transports.add(writer.transport)
        await link.open.wait()
        try:
            up_reader, up_writer = await asyncio.open_connection(*to)
        except OSError:
            writer.transport.abort()
            return
        link.transports.add(up_writer.transport)
        try:
            await asyncio.gather(self._pump(link, reader, up_writer, True), self._pump(link, up_reader, writer, False))
        except asyncio.CancelledError:
            return  # the end of the test
        link.transports -= {writer.transport, up_writer.transport}

    async def _pump(self, link, reader, writer, up):
        """One direction: in order, late by the link's delay, not at all while it is partitioned. A window of 4 reads."""
        queue = asyncio.Queue(maxsize=4)

        async def receive():
            try:
                while data := await reader.read(1 << 16):
                    await queue.put((self.loop.time() + link.lateness(), data))
            except OSError:
                pass
            await queue.put((0, b""))

        task = self.loop.create_task(receive())
        try:
            while True:
                due, data = await queue.get()
                await link.open.wait()
                await asyncio.sleep(max(0, due - self.loop.time()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
                link.bytes_up += len(data) * up
        except OSError:
            pass
        task.cancel()
        writer.close()

    def partition(self, link):
        self.loop.call_soon_threadsafe(link.open.clear)

    def heal(self, link):
        self.loop.call_soon_threadsafe(link.open.set)

    def cut(self, link):
        """Every connection of the link is reset, with all that it carries."""
        async def abort():
            for t in list(link.transports):
                t.abort()
            link.transports.clear()
        self.call(abort())

    def close(self):
        async def finish():
            for s in self.servers:
                s.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for t in tasks:
                t.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.call(finish())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


def machine_id(boot_id):
    """TracePacket.machine_id of a hint: FNV-1a, the low 32 bits."""
    h = 0xcbf29ce484222325
    for c in boot_id.encode():
        h = (h ^ c) * 0x100000001b3 & (1 << 64) - 1
    return h & 0xffffffff or 1


class Machine:
    """A namespace with a boot id of its own, joined to the test's by a veth pair."""

    networks = 0  # one each, also after the end of a test: its namespaces take a moment to go

    def __init__(self, case, forwarder, number, **link):
        self.case, self.number = case, number
        self.dir = pathlib.Path(case.dir) / f"m{number}"
        self.dir.mkdir()
        self.name = f"machine{number}"
        boot_id = str(uuid.uuid4())
        self.id = machine_id(boot_id)
        (self.dir / "boot_id").write_text(boot_id + "\n")
        self.holder = subprocess.Popen(
            ["unshare", "-n", "-m", "sh", "-c", f"mount --bind {self.dir}/boot_id {BOOT_ID} && echo up && exec sleep 1000"],
            stdout=subprocess.PIPE)
        case.procs.append(self.holder)
        with self.holder.stdout as out:
            assert out.readline() == b"up\n", "no namespace"
        Machine.networks += 1
        n = Machine.networks
        host, guest = f"10.77.{n}.1", f"10.77.{n}.2"
        batch = (f"link add v{n} type veth peer name eth0 netns {self.holder.pid}\n"
                 f"addr add {host}/24 dev v{n}\nlink set v{n} up\n")
        subprocess.run(["ip", "-batch", "-"], input=batch.encode(), check=True)
        subprocess.run([*self.enter(), "ip", "-batch", "-"], check=True,
                       input=f"link set lo up\naddr add {guest}/24 dev eth0\nlink set eth0 up\n".encode())
        self.link = Link(**link)
        forwarder.listen(self.link, host)
        self.host = f"{host}:{LINK_PORT}"
        self.relay = self.producer = None

    def enter(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m"]

    def spawn(self, *args, log="log", stdout=None, **env):
        with open(self.dir / log, "ab") as err:
            p = subprocess.Popen([*self.enter(), *map(str, args)], stderr=err, stdout=stdout or err, env={
                **os.environ, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "producer"),
                "PERFETTO_MACHINE_NAME": self.name, "PERFETTO_RELAY_SOCK_NAME": self.host, **env})
        self.case.procs.append(p)
        return p

    def start_relay(self, *args, **env):
        self.relay = self.spawn(TRACEBOX, "traced_relay", *args, log="relay.log", **env)
        return self.relay

    def relay_log(self):
        path = self.dir / "relay.log"
        return path.read_text(errors="replace") if path.exists() else ""


CONFIG = """
buffers { size_kb: 65536 }
data_sources { config { name: "e2e.source" } }
"""


class LinkCase(Case):
    """A service and machines that reach it over links."""

    def setUp(self):
        super().setUp()
        self.forwarder = Forwarder()
        self.machines = []

    def tearDown(self):
        for m in self.machines:
            self.forwarder.heal(m.link)
            self.forwarder.cut(m.link)
        super().tearDown()
        self.forwarder.close()

    def service(self):
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"0.0.0.0:{PORT}"
        self.start_traced("--enable-relay-endpoint")

    def join(self, n, **link):
        first_number = len(self.machines) + 1
        self.machines += [Machine(self, self.forwarder, first_number + i, **link) for i in range(n)]
        for m in self.machines[first_number - 1:]:
            m.start_relay()
        return self.machines[first_number - 1:]

    def produce(self, machines, packets=20000, pause_us=2000, max_size=100):
        for m in machines:
            wait_for(lambda m=m: (m.dir / "producer").exists(), what="a relay's socket")
            m.producer = m.spawn(PRODUCER, "--follow", "--packets", packets, "--pause-us", pause_us, "--max-size", max_size, "--seed", m.number,
                                 log="producer.log")

    def present(self):
        """Ids of the machines that have a producer."""
        out = subprocess.run([TRACEBOX, "perfetto", "--query-raw"], env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=20).stdout
        return {first(v, 7) for n, v in fields(out) if n == 1 and first(v, 7)}

    def wait_present(self, machines, seconds=20):
        ids = {m.id for m in machines}
        wait_for(lambda: ids <= self.present(), seconds, "every machine's producer")

    def record(self, config=CONFIG, name="trace"):
        trace = self.dir / name
        p = self.perfetto("--txt", "-c", self.config(config, name + ".txt"), "-o", trace)
        wait_for(lambda: "STARTED" in self.sessions().split("TRACING SESSIONS")[-1].replace("STARTED  NAME", ""),
                 what="the recording")
        return p, trace

    def sessions(self):
        return subprocess.run([TRACEBOX, "perfetto", "--query"], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=20).stdout.decode()

    def stop(self, p, seconds=30, code=0):
        began = time.monotonic()
        p.send_signal(signal.SIGINT)
        _, err = self.finish(p, code, seconds=seconds)
        return time.monotonic() - began, err

    def numbers(self, trace):
        """{machine id: the numbers of its packets}"""
        out = collections.defaultdict(list)
        for p in packets(trace.read_bytes()):
            test = first(p, 900)
            if test is not None:
                out[first(p, 98, 0)].append(int(first(test, 1).split()[1]))
        return out

    def stats(self, trace):
        """{machine id: {stat: value}} of what the links of other machines lost."""
        out = collections.defaultdict(dict)
        for raw, name, value in self.query(trace, "SELECT m.raw_id, s.name, s.value FROM stats s JOIN machine m "
                                                  "ON s.machine_id = m.id WHERE s.name GLOB 'machine_*' AND s.value > 0"):
            out[int(raw)][name] = int(value)
        return out

    def swallow(self, m, action):
        """What the machine says to the host goes nowhere, and nobody tells."""
        subprocess.run([*m.enter(), "ip", "route", action, "blackhole", m.host.split(":")[0]], check=True)

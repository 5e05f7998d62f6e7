"""The server's limits of time and memory, made short and small: who exceeds them goes, the others are served."""
import http.client
import os
import socket
import struct
import threading
import time
import unittest

from rpc import *

TRACE = DATA / "linux-sched.pftrace"
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'some text to fill it' from n"
TABLE = ("create perfetto table big as with recursive n(i) as (select 1 union all select i + 1 from n limit %d) "
         "select i, i * 7 as j from n")
FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"


def seconds_until_closed(s, limit=20):
    """How long until the other side closes or resets."""
    start = time.time()
    s.settimeout(limit)
    try:
        while s.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return time.time() - start


def answer_head(s):
    """The first line of the next answer, all of which is taken: it may come in pieces."""
    f = s.makefile("rb")
    line, length = f.readline().rstrip(), 0
    while (header := f.readline().strip()):
        name, _, value = header.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    f.read(length)
    return line


class Limits(unittest.TestCase):
    def serve(self, **settings):
        flags = [f"--dev-flag={key.replace('_', '-')}={value}" for key, value in settings.items()]
        self.server = Server(TRACE, *flags)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0, self.server.log[-3000:]))
        return self.server

    def check_served(self, seconds=10):
        start = time.time()
        self.assertEqual(self.server.ask("select 1").cells, [1])
        self.assertEqual(self.server.request("GET", "/status")[0], 200)
        self.assertLess(time.time() - start, seconds)

    # ---- half a request ----

    def test_half_a_request_is_dropped(self):
        server = self.serve(request_timeout_ms=600)
        body = b"\r\nContent-Length: 100\r\n\r\n\x0a"
        halves = {
            "nothing": b"", "half a head": b"GET /status HTTP/1.1\r\n", "half a body": b"POST /query HTTP/1.1" + body,
            "half a message": b"POST /rpc HTTP/1.1" + body,
            "a chunk": b"POST /rpc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\x0a",
            "half a head behind a request": b"GET /status HTTP/1.1\r\n\r\nGET /st"}
        begun = {}
        for name, half in halves.items():
            begun[name] = server.connect()
            begun[name].sendall(half)
        web = WebSocket(server)
        web.send(query("select 1")[:5])
        begun["half a message by WebSocket"] = web.s
        for name, s in begun.items():
            self.assertLess(seconds_until_closed(s), 5, name)
            s.close()
        self.check_served()

    def test_half_a_request_that_goes_on_is_served(self):
        """Slow is not late: every byte buys time. An idle client between two requests is not late either."""
        server = self.serve(request_timeout_ms=2000)
        idle, quiet = WebSocket(server), server.connect()
        quiet.sendall(b"GET /status HTTP/1.1\r\n\r\n")
        self.assertEqual(answer_head(quiet), b"HTTP/1.1 200 OK")
        request = b"POST /query HTTP/1.1\r\nContent-Length: 10\r\n\r\n" + field(1, "select 1")
        with server.connect() as s:
            for i in range(0, len(request), 12):
                s.sendall(request[i:i + 12])
                time.sleep(0.5)
            self.assertEqual(s.recv(15), b"HTTP/1.1 200 OK")
        time.sleep(2.5)
        self.assertEqual(idle.ask("select 2").cells, [2])
        quiet.sendall(b"GET /status HTTP/1.1\r\n\r\n")
        self.assertEqual(answer_head(quiet), b"HTTP/1.1 200 OK")
        idle.close()
        quiet.close()

    def test_a_query_that_takes_long_is_not_late(self):
        server = self.serve(request_timeout_ms=300, stalled_write_ms=300)
        slow = WebSocket(server)
        start = time.time()
        n = 200000
        while time.time() - start < 1.2:  # a statement without a row for longer than both limits
            n *= 2
            start = time.time()
            self.assertEqual(slow.ask(f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {n}) "
                                      "select count(*) from n").cells, [n])
        slow.close()

    # ---- a client that does not read ----

    def test_a_client_that_does_not_read_is_cut_off(self):
        server = self.serve(stalled_write_ms=800)
        reader = WebSocket(server)
        stalled = {"WebSocket": WebSocket(server).s, "HTTP": server.connect()}
        stalled["WebSocket"].sendall(WebSocket.frame(query(ENDLESS)))
        body = field(1, ENDLESS)
        stalled["HTTP"].sendall(b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.3)
        self.check_served()
        wait_for(lambda: connections(server) == 1)
        for name, s in stalled.items():
            self.assertLess(seconds_until_closed(s), 5, name)  # what the kernel still has, then the end
            s.close()
        wait_for(lambda: cpu_rests(server))  # their queries have ended
        self.assertEqual(reader.ask("select 3").cells, [3])
        reader.close()
        self.check_served()

    def test_a_client_that_reads_slowly_is_not(self):
        server = self.serve(stalled_write_ms=2500)  # so long a busy machine leaves no test without a turn
        slow = WebSocket(server)
        slow.send(query(ENDLESS))
        end = time.time() + 6
        while time.time() < end:
            slow.recv()  # some 128 KiB
            time.sleep(0.1)
        slow.close()
        self.check_served()

    # ---- a client that is gone without a word ----

    def test_an_idle_client_is_probed(self):
        """The kernel asks from time to time whether it is still there: else a page would keep its tables for ever."""
        server = self.serve()
        idle = WebSocket(server)
        self.assertEqual(idle.ask("select 1").cells, [1])
        wait_for(lambda: [t[:2] for t in timers(server, idle.s)] == ["02"])  # keepalive
        self.assertLessEqual(int(timers(server, idle.s)[0][3:], 16), 60 * 100)
        idle.close()

    # ---- what requests may hold ----

    def test_requests_of_all_clients_are_bounded(self):
        server = self.serve(max_request_bytes=4 << 20)
        busy = WebSocket(server)
        busy.send(query(FOREVER))
        time.sleep(0.2)
        before = server.memory_kb()
        body = b"x" * 600000
        head = b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1)
        held, refused = [], 0
        for _ in range(40):  # bodies without their last byte, 24 MB
            s = server.connect()
            try:
                s.sendall(head + body)
            except ConnectionError:
                pass
            held.append(s)
        for s in held:
            s.settimeout(0.2)
            try:
                got = s.recv(100)
                self.assertIn(b"HTTP/1.1 503 ", got)
                refused += 1
            except TimeoutError:
                pass
        self.assertGreaterEqual(refused, 34)  # 600,000 bytes may take 1 MiB
        self.assertLess(refused, 40)
        self.assertLess(server.memory_kb() - before, 20000)
        self.assertEqual(server.request("GET", "/status")[0], 200)  # needs no room
        web = WebSocket(server)
        web.send(query("select '" + "x" * 3900000 + "'"))
        self.assertEqual(web.recv(), (8, struct.pack(">H", 1013)))
        self.assertEqual(server.request("POST", "/rpc", query("select '" + "x" * 3900000 + "'"))[0], 503)
        for s in held + [web, busy]:
            s.close()
        self.check_served()  # what they held is free again
        self.assertEqual(server.ask("select length('" + "x" * 2000000 + "')").cells, [2000000])

    def test_a_trickle_does_not_keep_the_room_of_all(self):
        """A byte now and then is never late; the half request that came first goes when others need its room."""
        server = self.serve(max_request_bytes=4 << 20, request_timeout_ms=3000)
        body = b"x" * 900000
        crowd = [server.connect() for _ in range(4)]
        for s in crowd:
            s.sendall(b"POST /query HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n" + body)
        for _ in range(4):
            time.sleep(0.4)
            for s in crowd:
                s.sendall(b"x")
        self.assertEqual(server.ask("select length('" + "x" * 1000000 + "')").cells, [1000000])
        self.assertEqual(server.ask("select length('" + "x" * 2500000 + "')").cells, [2500000])
        for s in crowd:
            s.close()

    # ---- what answers may hold ----

    @unittest.skipIf("asan" in SHELL or "tsan" in SHELL, "a sanitizer ends the program when it finds no memory")
    def test_tables_take_no_more_than_there_is(self):
        server = self.serve(max_memory_bytes=64 << 20)
        texts = "with recursive n(i) as (select 1 union all select i + 1 from n limit %d) select hex(randomblob(100000)) as t from n"
        self.assertIn("memory", server.ask("create perfetto table many as " + texts % 1000).error)
        self.assertLess(server.memory_kb("VmHWM"), 200 << 10)
        self.check_served()

    def test_exports_at_once_are_bounded(self):
        server = self.serve()
        self.assertFalse(server.ask(TABLE % 300000).error)
        slow = []
        for _ in range(8):
            s = server.connect()
            s.sendall(b"POST /export HTTP/1.1\r\nContent-Length: 2\r\n\r\n" + field(1, 3))
            s.recv(10, socket.MSG_WAITALL)
            slow.append(s)
        wait_for(lambda: exports(server) == 8, 60)
        again = server.rpc(message(EXPORT, field(116, field(1, 3))), timeout=30)
        self.assertIn(b"clients are reading exports", get(again[0][220], 2))
        for s in slow:
            s.close()
        wait_for(lambda: exports(server) == 0)
        self.assertEqual(server.request("POST", "/export", field(1, 3))[0], 200)

    def test_an_export_does_not_block_others(self):
        server = self.serve(blocked_ms=100)
        a, answer = WebSocket(server), []
        rows = 1000000 if "asan" in SHELL or "tsan" in SHELL else 6000000  # more than others wait for
        self.assertFalse(a.ask(TABLE % rows).error)

        def export():
            a.send(message(EXPORT, field(116, field(1, 3))))
            while not answer or get(answer[-1], 3) == 1:
                answer.append(a.next()[220])

        exporting = threading.Thread(target=export)
        exporting.start()
        time.sleep(0.1)
        while exporting.is_alive() and not answer:
            self.check_served()
        exporting.join(20)
        self.assertIn(b"other clients were waiting", get(answer[-1], 2, b""))
        self.assertEqual(a.ask("select 1").cells, [1])
        a.close()

    def test_bytes_behind_a_request_count(self):
        """Clients that send on while their request waits: their bytes are requests, too."""
        server = self.serve(max_request_bytes=2 << 20)
        busy = WebSocket(server)
        busy.send(query(FOREVER))
        time.sleep(0.2)
        body = field(1, "select 1")
        request = b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        clients = [server.connect() for _ in range(60)]
        for s in clients:
            try:
                s.sendall(request * 1500)  # some 90 KB
            except ConnectionError:
                pass
        wait_for(lambda: connections(server) < 45)  # 61 would hold 60 * 64 KiB at least
        self.assertGreater(connections(server), 5)
        for s in clients + [busy]:
            s.close()
        wait_for(lambda: connections(server) == 0)
        self.check_served()

    def test_a_waiting_client_is_told_when_there_are_too_many(self):
        server = self.serve(max_connections=3)
        held = [WebSocket(server) for _ in range(3)]
        with server.connect() as s:
            s.sendall(b"GET /status HTTP/1.1\r\n\r\n")
            self.assertLess(seconds_until_closed(s), 5)
        self.assertEqual(held[0].ask("select 1").cells, [1])
        for ws in held:
            ws.close()
        wait_for(lambda: connections(server) == 0)
        self.check_served()

    def test_half_requests_make_room(self):
        server = self.serve(max_connections=20)
        page = WebSocket(server)
        crowd = []
        for i in range(60):
            s = server.connect()
            s.sendall(b"POST /query HTTP/1.1\r\nContent-Le" if i % 2 else b"POST /query HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
            crowd.append(s)
        deadline = time.time() + 20
        while True:  # a new client is let in as soon as the crowd is older than a moment
            try:
                self.assertEqual(server.request("GET", "/status")[0], 200)
                break
            except (OSError, http.client.HTTPException):
                self.assertLess(time.time(), deadline)
        self.assertEqual(page.ask("select 1").cells, [1])
        for s in crowd + [page]:
            s.close()

    def test_a_statement_that_never_ends_does_not_block_others(self):
        server = self.serve(blocked_ms=500)
        a, b = WebSocket(server), WebSocket(server)
        answer = []
        runaway = threading.Thread(target=lambda: answer.append(a.ask(FOREVER)))
        runaway.start()
        time.sleep(0.2)  # most likely it runs by now; if not, the others are served at once
        self.assertEqual(server.ask("select 5").cells, [5])
        if runaway.is_alive():
            self.assertEqual(b.ask("select 5").cells, [5])
        runaway.join(20)
        self.assertIn("other clients were waiting", answer[0].error)
        self.assertEqual(b.ask("select 6").cells, [6])
        self.assertEqual(a.ask("select 7").cells, [7])
        a.close()
        b.close()

    def test_settings_are_checked(self):
        for flag in "request-timeout-ms", "request-timeout-ms=x", "max-request-bytes=-1", "stalled-write-ms=1s", "=1":
            p = subprocess.run([SHELL, "server", "http", "--dev-flag", flag], capture_output=True, timeout=20)
            self.assertEqual(p.returncode, 1, flag)
            self.assertIn(b"--dev-flag", p.stderr)


def connections(server):
    """Of clients, as the kernel counts them: sockets that the server still has open."""
    port, n = f":{server.port:04X}", 0
    for name in "/proc/net/tcp", "/proc/net/tcp6":
        try:
            with open(name) as f:
                n += sum(line.split()[1].endswith(port) and line.split()[9] != "0" and line.split()[3] in ("01", "08")
                         for line in list(f)[1:])
        except FileNotFoundError:
            pass
    return n


def exports(server):
    """Files of exports that the server has open."""
    folder, n = f"/proc/{server.process.pid}/fd", 0
    for name in os.listdir(folder):
        try:
            n += "meridian-export" in os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            pass
    return n


def timers(server, client):
    """What the kernel waits for on the server's side of the connection: kind and time in 10 ms."""
    ends = [f":{port:04X}" for port in (server.port, client.getsockname()[1])]
    with open("/proc/net/tcp") as f:
        lines = [line.split() for line in list(f)[1:]]
    return [line[5] for line in lines if line[1].endswith(ends[0]) and line[2].endswith(ends[1])]


def cpu_rests(server):
    before = server.cpu_seconds()
    time.sleep(0.5)
    return server.cpu_seconds() - before < 0.2


if __name__ == "__main__":
    unittest.main()

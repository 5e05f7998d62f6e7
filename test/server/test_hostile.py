"""Clients that break the rules, stop half-way, do not read, or come in crowds: memory stays bounded, others are served."""
import pathlib
import random
import resource
import socket
import struct
import time
import unittest

from rpc import *

TRACE = DATA / "linux-sched.pftrace"
MANY_ROWS = "with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'some text to fill it' from n"


def raise_limit(n):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
    return max(soft, min(n, hard)) >= n


def read_all(s, limit=1 << 20):
    """What comes until the other side closes."""
    got = b""
    try:
        while len(got) < limit and (piece := s.recv(65536)):
            got += piece
    except ConnectionResetError:
        pass
    return got


class Hostile(unittest.TestCase):
    def setUp(self):
        self.server = Server(TRACE)

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0, self.server.log[-3000:])

    def check_served(self, seconds=10):
        start = time.time()
        self.assertEqual(self.server.ask("select 1").cells, [1])
        self.assertLess(time.time() - start, seconds)

    def test_bad_requests(self):
        cases = [
            (b"\0\1\2\3\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET / SPDY/1\r\n\r\n", 400), (b"GET / HTTP/2.0\r\n\r\n", 505),
            (b"GET nowhere HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n Folded: x\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nA : x\r\n\r\n", 400),
            (b"POST /rpc HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /rpc HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            (b"POST /rpc HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            (b"POST /rpc HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            (b"POST /rpc HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n", 413),
            (b"POST /rpc HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n", 413),
            (b"POST /rpc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"POST /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 400),
            (b"POST /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy", 400),
            (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n", 413), (b"G" * 100000, 413),
            (b"GET / HTTP/1.1\r\nOrigin: https://ui.perfetto.dev\r\nOrigin: https://evil\r\n\r\n", 400),
        ]
        for request, want in cases:
            with self.server.connect() as s:
                s.sendall(request)
                head = read_all(s)[:12]
                self.assertEqual(head, b"HTTP/1.1 %d" % want, request[:100])
        self.check_served()

    def test_bad_frames(self):
        cases = [
            WebSocket.frame(b"not masked", mask=b""), b"\xf2\x80\1\2\3\4", b"\x83\x80\1\2\3\4", b"\x09\x80\1\2\3\4",
            WebSocket.frame(b"x" * 126, opcode=9), b"\x82\xff" + struct.pack(">Q", 1 << 63) + b"\1\2\3\4" + b"x" * 100,
            b"\x82\xff" + struct.pack(">Q", 64 << 20) + b"\1\2\3\4" + b"x" * 100,
            b"\x82\xfe\0\1\1\2\3\4x", b"\x82\xff" + struct.pack(">Q", 5) + b"\1\2\3\4xxxxx",
        ]
        for frame in cases:
            ws = WebSocket(self.server)
            ws.s.sendall(frame)
            opcode, payload = ws.recv()
            self.assertEqual(opcode, 8, frame[:20])
            self.assertIn(struct.unpack(">H", payload[:2])[0], (1002, 1009))
            self.assertEqual(read_all(ws.s), b"")
            ws.close()
        ws = WebSocket(self.server)  # frames are good, the stream in them is not
        ws.send(query("select 1") + b"\x0a\xff\xff\xff\xff\x7f")
        self.assertIn(203, ws.next())
        self.assertEqual(ws.next()[5], b"RPC framing error")
        self.assertEqual(ws.recv()[0], 8)
        ws.close()
        self.check_served()

    def test_noise(self):
        rng = random.Random(4711)
        for i in range(60):
            noise = rng.randbytes(rng.randrange(1, 3000))
            with self.server.connect() as s:
                s.sendall(noise if i % 3 else b"POST /rpc HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(noise) + noise)
                s.shutdown(socket.SHUT_WR)
                read_all(s)
            ws = WebSocket(self.server)
            ws.s.sendall(noise if i % 2 else WebSocket.frame(b"\x0a" + varint(len(noise)) + noise))
            ws.close()
        self.check_served()

    def test_huge_lengths_cost_nothing(self):
        before = self.server.memory_kb()
        held = []
        for i in range(100):
            ws = WebSocket(self.server)  # a message of 256 MB is announced, and a frame of 60 MB
            ws.s.sendall(b"\x82\xff" + struct.pack(">Q", 60 << 20) + b"\0\0\0\0" + b"\x0a" + varint((1 << 28) - 1) + b"x" * 10)
            s = self.server.connect()
            s.sendall(b"POST /parse HTTP/1.1\r\nContent-Length: 67108864\r\n\r\nxx")
            held += [ws, s]
        self.check_served()
        self.assertLess(self.server.memory_kb() - before, 40000)
        for h in held:
            h.close()

    def test_slow_readers(self):
        """Fifty clients that ask for endless answers and do not read them."""
        before = self.server.memory_kb()
        slow = [WebSocket(self.server) for _ in range(50)]
        for ws in slow:
            ws.send(query(MANY_ROWS))
        for _ in range(5):
            self.check_served()
            time.sleep(0.2)
        grown = self.server.memory_kb() - before
        self.assertLess(grown, 120000)
        for ws in slow:
            ws.close()
        self.check_served()

    def test_a_thousand_connections(self):
        if not raise_limit(1200):
            self.skipTest("no more than a thousand descriptors are allowed")
        held = []
        for i in range(1000):
            s = self.server.connect()
            if i % 4 == 0:
                s.sendall(b"GET /status HTTP/1.1\r\n")  # half a request
            elif i % 4 == 1:
                s.sendall(b"POST /query HTTP/1.1\r\nContent-Length: 100\r\n\r\n\x0a")
            elif i % 4 == 2:
                body = field(1, "select 1")
                s.sendall(b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            held.append(s)
        self.check_served()
        self.assertEqual(self.server.request("GET", "/status")[0], 200)
        ws = WebSocket(self.server)
        self.assertEqual(ws.ask("select 2").cells, [2])
        ws.close()
        self.assertLess(self.server.memory_kb(), 400000)
        for i, s in enumerate(held):
            if i % 4 == 2:
                self.assertTrue(s.recv(15).startswith(b"HTTP/1.1 200 OK"))
            s.close()
        self.check_served()

    def test_deep_and_large_sql(self):
        for sql in "select " + "(" * 100000 + "1" + ")" * 100000, "select 1 " + "union all select 1 " * 20000, "\0", "'" * 100001, \
                "select zeroblob(300000000)", "select zeroblob(30000000)":
            r = self.server.ask(sql, timeout=60)
            self.assertTrue(r.done)
        self.check_served()

    def test_requests_beyond_what_may_be_held(self):
        """Clients that send without end to a worker that is busy: the kernel holds their bytes, not the server."""
        busy = WebSocket(self.server)
        busy.send(query("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"))
        before = self.server.memory_kb()
        floods = [WebSocket(self.server) for _ in range(8)]
        sent = 0
        for ws in floods:
            ws.s.settimeout(0.2)
            try:
                for _ in range(40):
                    ws.send(query("select '" + "x" * 500000 + "'"))
                    sent += 500000
            except TimeoutError:
                pass
        self.assertLess(self.server.memory_kb() - before, 100000)
        self.assertGreater(sent, 8 * 1000000)
        busy.close()
        for ws in floods:
            ws.close()
        self.check_served()

    def test_asking_on_without_reading(self):
        """Small requests in crowds: neither those that wait nor their unread answers fill the memory."""
        endless = query("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0")
        floods = {
            "empty messages": WebSocket.frame(b"\x0a\0" * 30000), "pings": WebSocket.frame(b"x" * 125, opcode=9) * 500,
            "questions": WebSocket.frame(message(STATUS) * 5000), "pages": b"GET / HTTP/1.1\r\n\r\n" * 3000}
        for name, flood in floods.items():
            busy = WebSocket(self.server)
            if name == "empty messages":
                busy.send(endless)
            before = self.server.memory_kb()
            s = self.server.connect() if name == "pages" else WebSocket(self.server).s
            s.settimeout(0.3)
            sent, end = 0, time.time() + 3
            try:
                while sent < 30000000 and time.time() < end:
                    sent += s.send(flood)
            except TimeoutError:
                pass
            self.assertLess(self.server.memory_kb() - before, 40000, (name, sent))
            busy.close()
            s.close()
        self.check_served()

    def test_leaving_with_requests_waiting(self):
        """A client that is not read from, because enough of it waits, ends its query by leaving too."""
        ws = WebSocket(self.server)
        ws.send(query("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"))
        for _ in range(4):
            ws.send(query("select '" + "x" * 300000 + "'"))
        time.sleep(0.3)
        ws.close()
        self.check_served()

    def test_frames_around_the_steps_of_the_length(self):
        ws = WebSocket(self.server)

        def frame(letters):
            ws.send(query("select printf('%%.*c', %05d, 'x')" % letters))
            return len(ws.recv()[1])
        beside = frame(60000) - 60000
        for size in 65534, 65535, 65536:
            self.assertEqual(frame(size - beside), size)
        ws.close()

    def test_pages_asked_in_one_go(self):
        """Every one is answered, in order, also when their answers wait for the client."""
        with self.server.connect() as s:
            s.sendall(b"".join(b"GET /%s HTTP/1.1\r\n\r\n" % (b"status" if i % 7 else b"") for i in range(2000)) +
                      b"GET /nowhere HTTP/1.1\r\n\r\n")
            got = read_all(s, 1 << 28)
        self.assertEqual((got.count(b"HTTP/1.1 200 OK"), got.count(b"HTTP/1.1 404")), (2000, 1))
        self.assertEqual(got.count(b"serves a trace here"), 2000 // 7 + 1)


UNLIMITED = "with recursive n(v) as (select 1 union all select v + 0 from n where v < 300) "
CALLS = [  # each once took the program down, or took what is not a page's to take
    "select hex(fts3_tokenizer('simple'))", "select fts3_tokenizer('x', x'4141414141414141')", "create virtual table f using fts3(a)",
    "create perfetto table t as select 9223372036854775807 as a union all select -9223372036854775807; "
    "select c0, c1 from __intrinsic_aggregate('t g:0 *:-1')",
    "select __intrinsic_ordered_agg('group_concat', n, 'a', 'b', 'c', 'd', 1, 0) from (select 4 as n union all select 2)",
    "select __intrinsic_row_dataframe_agg(null, null)", "select __intrinsic_tree_from_table(null, null)",
    "select * from __intrinsic_table_ptr((select __intrinsic_row_dataframe_agg('id', 1))) where __intrinsic_table_ptr_bind(c31, 'id')",
    "select regexp(printf('%.*c', 900000, '('), 'a')", "select regexp(printf('%.*c', 900000, 'a'), 'a')",
    "create view sv as select ts, dur from slice; create virtual table sj using span_join(sv, sched); drop view sv; "
    "create view sv as select ts, dur from sj; select count(*) from sj",
    "select create_function('foo(x INT)', 'INT', 'select nosuchcolumn')", "select foo(1)",
    "select internal_layout(ts, dur) over (order by ts rows between unbounded preceding and current row) from "
    "(select 9223372036854775807 as ts, 9223372036854775807 as dur union all select -9223372036854775808, 9223372036854775807)",
    "select * from __intrinsic_window(9223372036854775807, 9223372036854775807, 1) limit 3",
    "select * from __intrinsic_window(-9223372036854775808, 9223372036854775807, 9223372036854775807) limit 3",
    "include perfetto module counters.intervals; select * from counter_leading_intervals!((select 1 as id, "
    "-9223372036854775808 as ts, 1 as track_id, 1.0 as value union all select 2, 9223372036854775807, 1, 2.0))",
    "attach '/tmp/x' as x", "pragma writable_schema = on", "pragma writable_schema = reset", "pragma data_store_directory = '/tmp'",
    "vacuum into '/tmp/meridian-page'", "select load_extension('libc.so.6')", "delete from sqlite_master",
    "select __intrinsic_file_write('/tmp/meridian-page', x'00')", "select readfile('/etc/passwd')",
    "select zeroblob(2000000000)", "select printf('%.*c', 20000000, 'x')", "select " + "(" * 5000 + "1" + ")" * 5000,
]


class HostilePage(unittest.TestCase):
    """A web page that somebody opens while the server runs.

    - requests with its own origin, a null one, an empty one, one that looks like an allowed one: POST, GET, preflight, WebSocket
    - requests that browsers send without an origin: links, images, forms; of another site, the same site, typed in
    - under a name that was made to point here (DNS rebinding), with two names, with an address in a name
    - from a page that may ask: all SQL that ever took the program down, over /query and a WebSocket; files; tables of others
    - requests that acted on GET
    """

    def setUp(self):
        self.server = Server(TRACE, "--dev-flag=blocked-ms=2000")
        self.victim = WebSocket(self.server)
        self.assertFalse(self.victim.ask("create perfetto table kept as select 7 as a").error)

    def tearDown(self):
        self.assertEqual(self.victim.ask("select a from kept").cells, [7])
        self.victim.close()
        self.assertEqual(self.server.stop(), 0, self.server.log[-3000:])

    def ask_raw(self, head, body=b""):
        with self.server.connect() as s:
            s.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
            return s.recv(12)

    def test_other_origins(self):
        body = field(1, "drop table kept")
        origins = ["https://evil.example", "null", "", "https://ui.perfetto.dev.evil.example", "https://evil.example/https://ui.perfetto.dev",
                   "http://ui.perfetto.dev", "https://ui.perfetto.dev:444", "https://UI.perfetto.dev.", "https://xui.perfetto.dev",
                   "http://localhost", "http://localhost:10001", "http://127.0.0.1:9001", "file://", "https://ui.perfetto.dev https://evil"]
        for origin in origins:
            for path in "/query", "/rpc", "/restore_initial_tables", "/status", "/trace_summary":
                for method in "POST", "GET", "OPTIONS":
                    status, headers, _ = self.server.request(method, path, body if method == "POST" else None, {"Origin": origin})
                    self.assertEqual(status, 403, (origin, method, path))
                    self.assertNotIn("access-control-allow-origin", headers)
            got = self.ask_raw(f"GET /websocket HTTP/1.1\nHost: localhost\nOrigin: {origin}\nUpgrade: websocket\nConnection: Upgrade\n"
                               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n")
            self.assertEqual(got, b"HTTP/1.1 403", origin)

    def test_without_an_origin(self):
        browsers = [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "nonsense")] + \
                   [{"Referer": "https://evil.example/"}, {"Sec-Fetch-Site": "none"}, {"User-Agent": "Mozilla/5.0"}]
        for headers in browsers:
            for path in "/restore_initial_tables", "/notify_eof", "/enable_metatrace", "/disable_and_read_metatrace", "/query", "/export":
                self.assertIn(self.server.request("GET", path, headers=headers)[0], (403, 405), (headers, path))
        for site in "cross-site", "same-site":  # a form
            status = self.server.request("POST", "/query", field(1, "drop table kept"),
                                         {"Sec-Fetch-Site": site, "Content-Type": "text/plain"})[0]
            self.assertEqual(status, 403)

    def test_names_that_point_here(self):
        for host in "evil.example", "evil.example:9001", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example#localhost":
            for head in f"POST /query HTTP/1.1\nHost: {host}\n", f"GET /status HTTP/1.1\nHost: {host}\nOrigin: https://ui.perfetto.dev\n":
                self.assertIn(self.ask_raw(head), (b"HTTP/1.1 403", b"HTTP/1.1 400"), head)
        self.assertEqual(self.ask_raw("GET /status HTTP/1.1\nHost: localhost\nHost: evil.example\n"), b"HTTP/1.1 400")

    def test_sql_of_a_page_that_may_ask(self):
        page = WebSocket(self.server)
        for sql in CALLS:
            got = page.ask(sql)
            self.assertTrue(got.done, sql[:100])
            status, _, body = self.server.request("POST", "/query", field(1, sql), {"Origin": UI}, timeout=60)
            self.assertEqual(status, 200, sql[:100])
            self.assertEqual(self.victim.ask("select 5").cells, [5])
        page.send(query(UNLIMITED + "select v, lead(v) over (order by v) from n"))  # without end, in time and memory
        self.assertEqual(self.victim.ask("select 6").cells, [6])
        page.close()
        self.assertFalse(pathlib.Path("/tmp/meridian-page").exists())


if __name__ == "__main__":
    unittest.main()

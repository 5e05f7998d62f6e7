"""The server as its clients see it: routes, the stream of messages, WebSocket, Unix sockets, standard streams."""
import contextlib
import http.client
import pathlib
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

from rpc import *

TRACE = DATA / "linux-sched.pftrace"
COUNT = "select count(*) from sched"
# Counts for a long time without a row.
FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"


class Loaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(TRACE)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log


class Routes(Loaded):
    def test_status(self):
        for method in "GET", "POST":
            status, headers, body = self.server.request(method, "/status", headers={"Origin": UI})
            self.assertEqual(status, 200)
            self.assertEqual(headers["content-type"], "application/x-protobuf")
            self.assertEqual(headers["cache-control"], "no-cache")
            self.assertEqual(headers["access-control-allow-origin"], UI)
            self.assertEqual(headers["vary"], "Origin")
            self.assertEqual(headers["connection"], "keep-alive")
            self.assertTrue(get(body, 1).startswith(b"linux-sched.pftrace ("))
            self.assertEqual(get(body, 3), 14)

    def test_help_lists_the_routes(self):
        status, headers, body = self.server.request("GET", "/")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain"))
        self.assertIn(b"/websocket", body)

    def test_preflight(self):
        status, headers, body = self.server.request("OPTIONS", "/rpc", headers={"Origin": "http://localhost:10000"})
        self.assertEqual((status, body), (204, b""))
        self.assertEqual(headers["access-control-allow-methods"], "POST, GET, OPTIONS")
        self.assertEqual(headers["access-control-allow-headers"], "*")
        self.assertEqual(headers["access-control-max-age"], "86400")
        self.assertEqual(headers["access-control-allow-private-network"], "true")

    def test_origins(self):
        for origin, want in [(UI, 200), ("http://127.0.0.1:10000", 200), ("https://evil.example", 403), ("null", 403),
                             ("https://ui.perfetto.dev.evil.example", 403), ("", 403), ("x" * 3000, 403)]:
            status, headers, _ = self.server.request("POST", "/status", headers={"Origin": origin})
            self.assertEqual(status, want, origin)
            self.assertEqual("access-control-allow-origin" in headers, want == 200)

    def test_unknown(self):
        self.assertEqual(self.server.request("GET", "/nothing")[0], 404)
        self.assertEqual(self.server.request("DELETE", "/rpc")[0], 405)
        self.assertEqual(self.server.request("POST", "/export", b"")[0], 400)

    def test_query_in_batches(self):
        sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000) " \
              "select i, i * 0.5 as half, 'row ' || i as name, null as nought, x'0102' as bytes from n"
        status, headers, body = self.server.request("POST", "/query", field(1, sql))
        self.assertEqual(status, 200)
        self.assertEqual(headers["transfer-encoding"], "chunked")
        r = Result()
        r.add(body)
        self.assertEqual((r.error, r.columns), ("", ["i", "half", "name", "nought", "bytes"]))
        self.assertEqual(r.rows, [(i, i * 0.5, f"row {i}", None, b"\1\2") for i in range(1, 120001)])
        self.assertGreater(r.batches, 10)
        self.assertTrue(r.done)

    def test_batches_keep_their_limits(self):
        sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) select 1 a, 2 b, 3 c from n"
        _, _, body = self.server.request("POST", "/query", field(1, sql))
        for n, batch in fields(body):
            if n == 3:
                cells = get(batch, 1)
                self.assertLessEqual(len(cells), 50000)
                self.assertEqual(len(cells) % 3, 0)
                self.assertEqual(next(fields(batch))[0], 5)  # strings come first

    def test_doubles_are_aligned(self):
        for pad in range(9):
            m = field(1, b"")[:0] + query(f"select 1.5 as '{'x' * (pad + 1)}', 2.5")
            _, _, body = self.server.request("POST", "/rpc", m)
            at = body.index(struct.pack("<d", 1.5))
            self.assertEqual(at % 8, 0)

    def test_export(self):
        status, _, body = self.server.request("POST", "/export", field(1, 3))
        self.assertEqual(status, 200)
        with tempfile.NamedTemporaryFile() as f:
            f.write(body)
            f.flush()
            self.assertEqual(sqlite3.connect(f.name).execute(COUNT).fetchone()[0], self.server.ask(COUNT).cells[0])
        with self.assertRaises(http.client.IncompleteRead):
            self.server.request("POST", "/export", field(1, 2))

    def test_expect_and_chunked_request(self):
        with self.server.connect() as s:
            s.sendall(b"POST /rpc HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.assertEqual(s.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            m = query("select 7 as seven")
            for byte in m:
                s.sendall(b"1;x=y\r\n" + bytes([byte]) + b"\r\n")
            s.sendall(b"0\r\nTrailer: t\r\n\r\n")
            r = http.client.HTTPResponse(s)
            r.begin()
            self.assertEqual(answers(results(r.read()))[0].cells, [7])
            s.sendall(b"GET /status HTTP/1.1\r\nConnection: close\r\n\r\n")
            r = http.client.HTTPResponse(s)
            r.begin()
            self.assertEqual((r.status, r.getheader("connection")), (200, "close"))

    def test_pipelined_requests_are_answered_in_order(self):
        with self.server.connect() as s:
            one = b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
            bodies = [field(1, f"select {i}") for i in range(50)]
            s.sendall(b"".join(one % len(b) + b for b in bodies))
            f = s.makefile("rb")
            for i in range(50):
                self.assertEqual(f.readline(), b"HTTP/1.1 200 OK\r\n")
                while f.readline() != b"\r\n":
                    pass
                body = b""
                while (n := int(f.readline(), 16)):
                    body += f.read(n)
                    f.readline()
                f.readline()
                r = Result()
                r.add(body)
                self.assertEqual(r.cells, [i])

    def test_http_1_0_gets_no_chunks(self):
        with self.server.connect() as s:
            body = field(1, "select 1")
            s.sendall(b"POST /query HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            got = b""
            while (piece := s.recv(4096)):
                got += piece
        head, body = got.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        r = Result()
        r.add(body)
        self.assertEqual(r.cells, [1])


class Messages(Loaded):
    def test_sequence_of_requests_and_replies(self):
        got = self.server.rpc(message(STATUS, seq=5), query("select 1", 6), query("select 2", 7), message(STATUS, seq=0))
        self.assertEqual([m[1] for m in got], [0, 1, 2, 3])
        self.assertEqual([m[3] for m in got], [STATUS, QUERY, QUERY, STATUS])
        got = self.server.rpc(query("select 1", 5), query("select 2", 7), query("select 3", 8))
        self.assertEqual(got[-1][5], b"RPC request out of order. Expected 6, got 7 (ERR:rpc_seq)")
        self.assertEqual(len(got), 2)

    def test_framing_error(self):
        got = self.server.rpc(query("select 1"), b"\x12\x00")
        self.assertEqual(got[-1][5], b"RPC framing error")

    def test_unknown_method(self):
        got = self.server.rpc(message(4711))
        self.assertEqual((got[0][3], got[0][4]), (4711, 4711))

    def test_query_results(self):
        r = self.server.ask("create table tee(x); insert into tee values (1), (2.5), ('three'), (null); select * from tee; ")
        self.assertEqual((r.columns, r.cells, r.error, r.statements, r.last_sql), (["x"], [1, 2.5, "three", None], "", 3,
                                                                                   "select * from tee"))
        r = self.server.ask("drop table tee")
        self.assertEqual((r.columns, r.cells, r.error), ([], [], ""))
        r = self.server.ask("select * from no_such_table")
        self.assertIn("no such table", r.error)
        self.assertTrue(r.done)
        self.assertEqual(self.server.ask("").error, "No valid SQL to run")

    def test_error_behind_rows(self):
        sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000) " \
              "select case when i < 150000 then i else abs(-9223372036854775808) end from n"
        r = self.server.ask(sql)
        self.assertIn("overflow", r.error)
        self.assertGreater(len(r.cells), 100000)

    def test_statement_by_statement(self):
        sql, at, seen = "select 1 as a; select 2 as b\n; -- end", 0, []
        while True:
            m = self.server.rpc(statement(sql, at))[0][219]
            r = Result()
            r.add(get(m, 1))
            if not get(m, 3):
                break
            seen.append((r.columns, r.cells))
            at = get(m, 2)
        self.assertEqual(seen, [(["a"], [1]), (["b"], [2])])
        m = self.server.rpc(statement("select 1", 100))[0][219]
        self.assertEqual(get(get(m, 1), 2), b"StatementArgs.start_offset out of range")

    def test_packages(self):
        module = field(1, "mine.answer") + field(2, "create perfetto table mine_answer as select 42 as x")
        args = field(1, "mine") + field(2, module)
        self.assertNotIn(1, dict(fields(self.server.rpc(message(PACKAGE, field(108, args)))[0][211])))
        self.assertEqual(self.server.ask("include perfetto module mine.answer; select x from mine_answer").cells, [42])
        self.assertIn(1, dict(fields(self.server.rpc(message(PACKAGE, field(108, args)))[0][211])))
        self.server.rpc(message(PACKAGE, field(108, args + field(3, 1))))

    def test_metatrace(self):
        got = self.server.rpc(message(METATRACE_ON), query("select 1 as traced"), message(METATRACE_OFF))
        self.assertIn(b"traced", get(got[-1][209], 1))

    def test_export(self):
        got = self.server.rpc(message(EXPORT, field(116, field(1, 3))))
        self.assertTrue(get(got[0][220], 1).startswith(b"SQLite format 3"))
        self.assertEqual([get(m[220], 3) for m in got], [1] * (len(got) - 1) + [0])
        self.assertIn(2, dict(fields(self.server.rpc(message(EXPORT, field(116, field(1, 1))))[0][220])))

    def test_export_beside_a_result_that_is_open(self):
        def export():
            return [dict(fields(m[220])) for m in self.server.rpc(message(EXPORT, field(116, field(1, 3))))]

        def tables(parts):
            with tempfile.NamedTemporaryFile() as f:
                f.write(b"".join(p.get(1, b"") for p in parts))
                f.flush()
                with contextlib.closing(sqlite3.connect(f.name)) as db:
                    return db.execute("pragma integrity_check").fetchall(), db.execute("select count(*) from sched").fetchall()
        alone = tables(export())
        ws = WebSocket(self.server)  # does not read on
        ws.send(query("select a.*, b.* from sched a, sched b"))
        ws.next()
        self.assertEqual(tables(export()), alone)
        self.assertIn(b"close it and export again", export()[0][2])
        ws.close()
        wait_for(lambda: 2 not in export()[0])


class Pieces(unittest.TestCase):
    """A client that brings the trace, as the Python library and the UI do."""

    def test_append_finalize_query_reset(self):
        server = Server()
        try:
            self.assertEqual(get(server.request("GET", "/status")[2], 1), None)
            self.assertIn("no trace", server.ask("select 1").error)
            data = TRACE.read_bytes()
            pieces = [data[i:i + 100000] for i in range(0, len(data), 100000)]
            c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            seq = 0
            for p in pieces:  # one POST a piece, over one connection
                seq += 1
                c.request("POST", "/rpc", body=iter([message(APPEND, field(101, p), seq)]),
                          headers={"Transfer-Encoding": "chunked"}, encode_chunked=True)
                m = results(c.getresponse().read())[0]
                self.assertEqual((m[3], get(m[201], 2)), (APPEND, None))
            self.assertEqual(get(m[201], 1), len(data))
            c.request("POST", "/rpc", body=message(FINALIZE, seq=seq + 1) + query(COUNT, seq + 2))
            got = results(c.getresponse().read())
            self.assertNotIn(1, dict(fields(got[0][212])))
            n = answers(got)[0].cells[0]
            self.assertGreater(n, 1000)
            self.assertTrue(get(server.request("GET", "/status")[2], 1).startswith(b"Unnamed trace ("))
            # Tables of queries stay until they are reset; then the trace is still there.
            self.assertEqual(server.ask("create perfetto table t as select 1 as x; select x from t").cells, [1])
            self.assertEqual(server.ask("select x from t").cells, [1])
            server.rpc(message(RESTORE))
            self.assertIn("no such table", server.ask("select x from t").error)
            self.assertEqual(server.ask(COUNT).cells, [n])
            server.rpc(message(RESET))
            self.assertIn("no trace", server.ask(COUNT).error)
            # The old routes.
            for p in pieces:
                self.assertEqual(server.request("POST", "/parse", p)[0], 200)
            self.assertEqual(server.request("POST", "/notify_eof")[2], b"")
            self.assertEqual(server.ask(COUNT).cells, [n])
            self.assertEqual(server.request("GET", "/restore_initial_tables")[0], 200)
            # More data behind the end of a trace is another trace.
            server.rpc(message(APPEND, field(101, data)), message(FINALIZE))
            self.assertEqual(server.ask(COUNT).cells, [n])
        finally:
            self.assertEqual(server.stop(), 0)


class Clients(Loaded):
    def test_websocket(self):
        ws = WebSocket(self.server)
        self.assertEqual(ws.ask(COUNT, 1).cells, self.server.ask(COUNT).cells)
        ws.send(b"are you there", opcode=9)
        self.assertEqual(ws.recv(), (10, b"are you there"))
        # A message in three frames, of text and continuations, with a ping between.
        m = query("select 'pieces' as p", 2)
        ws.send(m[:3], opcode=1, fin=False)
        ws.send(b"", opcode=9)
        ws.send(m[3:5], opcode=0, fin=False)
        ws.send(m[5:], opcode=0)
        self.assertEqual(ws.recv()[0], 10)
        r = Result()
        r.add(ws.next()[203])
        self.assertEqual(r.cells, ["pieces"])
        ws.send(struct.pack(">H", 1000), opcode=8)
        self.assertEqual(ws.recv(), (8, struct.pack(">H", 1000)))
        self.assertEqual(ws.s.recv(1), b"")

    def test_long_frames_are_whole(self):
        ws = WebSocket(self.server)
        for n in 100, 125, 126, 0xfffe, 0xffff, 0x10000, 3 << 20:
            r = ws.ask(f"select printf('%.{n}c', 'x') as x")
            self.assertEqual(r.cells, ["x" * n])
        ws.close()

    def test_websocket_handshake_is_checked(self):
        good = {"Host": "x", "Upgrade": "websocket", "Connection": "Upgrade", "Origin": UI,
                "Sec-WebSocket-Key": "c2l4dGVlbiBieXRlcyBvaw==", "Sec-WebSocket-Version": "13"}
        for change, want in [({}, 101), ({"Origin": None}, 403), ({"Origin": "http://evil"}, 403),
                             ({"Sec-WebSocket-Version": "12"}, 505), ({"Sec-WebSocket-Version": None}, 505),
                             ({"Sec-WebSocket-Key": "short"}, 400), ({"Upgrade": None}, 400)]:
            headers = {k: v for k, v in {**good, **change}.items() if v is not None}
            with self.server.connect() as s:
                s.sendall(("GET /websocket HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode())
                head = s.recv(4096).decode()
                self.assertTrue(head.startswith(f"HTTP/1.1 {want} "), (change, head))
                if want == 101:  # RFC 6455's own example has another key; this one is computed by hand
                    self.assertIn("Sec-WebSocket-Accept: ", head)

    def test_handshake_of_the_rfc(self):
        with self.server.connect() as s:
            s.sendall(f"GET /websocket HTTP/1.1\r\nOrigin: {UI}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
            self.assertIn(b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", s.recv(4096))

    def test_long_query_blocks_neither_status_nor_others_cancel(self):
        stuck, waiting = WebSocket(self.server), WebSocket(self.server)
        stuck.send(query(FOREVER))
        time.sleep(0.2)
        waiting.send(query(FOREVER))
        start = time.time()
        self.assertEqual(self.server.request("GET", "/status")[0], 200)
        self.assertLess(time.time() - start, 2)
        waiting.close()  # a query that has not begun is dropped
        stuck.close()    # one that runs is interrupted
        start = time.time()
        self.assertEqual(self.server.ask("select 1").cells, [1])
        self.assertLess(time.time() - start, 5)

    def test_cancel_over_http(self):
        with self.server.connect() as s:
            body = field(1, FOREVER)
            s.sendall(b"POST /query HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(0.2)
        self.assertEqual(self.server.ask("select 1", timeout=10).cells, [1])

    def test_cancel_leaves_the_answers_of_others_whole(self):
        """A slow reader's rows are on their way while another's query is interrupted."""
        slow, other = WebSocket(self.server), WebSocket(self.server)
        slow.send(query("with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000) select i from n"))
        wait_for(lambda: len(slow.s.recv(1, socket.MSG_PEEK)) == 1)
        other.send(query(FOREVER))
        time.sleep(0.3)
        other.close()
        r = Result()
        while not r.add(slow.next()[203]):
            pass
        self.assertEqual((r.error, len(r.cells), r.cells[-1]), ("", 2000000, 2000000))
        slow.close()

    def test_two_clients_take_turns(self):
        """A long answer does not keep a short one waiting until its end."""
        long, short = WebSocket(self.server), WebSocket(self.server)
        long.send(query("with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000) select i from n"))
        long.recv()
        before = self.server.cpu_seconds()
        for i in range(20):
            self.assertEqual(short.ask(f"select {i}").cells, [i])
        self.assertLess(self.server.cpu_seconds() - before, 5)  # not by the clock: the machine may be busy
        long.close()
        short.close()

    def test_reset_ends_answers_on_their_way(self):
        slow, other = WebSocket(self.server), WebSocket(self.server)
        slow.send(query("with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'some text to fill it' from n"))
        slow.recv()
        time.sleep(0.3)
        self.server.rpc(message(RESTORE))  # a script's: a page would get tables of its own
        r = Result()
        while not r.add(slow.next()[203]):
            pass
        self.assertIn("reset", r.error)
        self.assertIn("reset", slow.ask("select 1").error)  # its tables are gone, and it is told until it begins anew
        self.assertEqual(other.ask("select 1").cells, [1])
        slow.send(message(RESTORE))
        self.assertEqual(slow.next()[3], RESTORE)
        self.assertEqual(slow.ask("select 1").cells, [1])
        slow.close()
        other.close()


class Pages(unittest.TestCase):
    """Tabs of the UI: each begins by resetting the tables."""

    def setUp(self):
        self.server = Server(TRACE, "--dev-flag=max-views=3")

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0, self.server.log[-3000:])

    def tab(self):
        ws = WebSocket(self.server)
        ws.send(message(RESTORE))
        self.assertEqual(ws.next()[3], RESTORE)
        return ws

    def make(self, ws, value):
        r = ws.ask(f"create perfetto table mine as select {value} as x")
        self.assertEqual(r.error, "")

    def test_each_has_its_own_tables(self):
        tabs = []
        for i in range(4):
            tabs.append(self.tab())
            self.make(tabs[i], i)
            for j in range(i + 1):
                self.assertEqual(tabs[j].ask("select x from mine").cells, [j])
        # Answers on their way in all of them, side by side.
        for t in tabs:
            t.send(query("select mine.x, n.* from mine, (with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) "
                         "select i from n) n"))
        for i, t in enumerate(tabs):
            r = Result()
            while not r.add(t.next()[203]):
                pass
            self.assertEqual((r.error, len(r.rows), r.rows[-1]), ("", 300000, (i, 300000)))
        # Errors are told to the one who made them.
        self.assertIn("nowhere", tabs[2].ask("select * from nowhere").error)
        self.assertEqual(tabs[0].ask("select x from mine").cells, [0])
        tabs[1].send(message(RESTORE))  # again, in its own
        self.assertEqual(tabs[1].next()[3], RESTORE)
        self.assertIn("no such table", tabs[1].ask("select x from mine").error)
        self.assertEqual([tabs[i].ask("select x from mine").cells for i in (0, 2, 3)], [[0], [2], [3]])
        # Scripts share the first one's, as with a single tab.
        self.assertEqual(self.server.ask("select x from mine").cells, [0])
        for t in tabs:
            t.close()

    def test_there_is_a_limit_of_them(self):
        tabs = [self.tab() for _ in range(1)]
        self.make(tabs[0], 7)
        for i in range(3):
            tabs.append(self.tab())
        late = WebSocket(self.server)
        late.send(message(RESTORE))
        self.assertIn(b"3 pages have tables of their own", late.next()[5])
        self.assertEqual(late.recv()[0], 8)
        late.close()
        self.assertEqual(tabs[0].ask("select x from mine").cells, [7])
        tabs.pop().close()  # makes room
        deadline = time.time() + 10
        while True:
            late = WebSocket(self.server)
            late.send(message(RESTORE))
            if late.next().get(3) == RESTORE:
                break
            late.close()
            self.assertLess(time.time(), deadline)
        self.make(late, 8)
        for t in tabs + [late]:
            t.close()

    def test_modules_that_each_tab_brings(self):
        """Of one name, as tabs with the same plugin have them: the next tab gets them once."""
        tabs = [self.tab() for _ in range(2)]
        for i, t in enumerate(tabs):
            module = field(2, field(1, "ours.m") + field(2, f"create perfetto table ours_t as select {i} as x;"))
            t.send(message(PACKAGE, field(108, field(1, "ours") + module)))
            self.assertNotIn(1, dict(fields(t.next()[211])))
        tabs.append(self.tab())
        for t, x in zip(tabs, (0, 1, 1)):
            self.assertEqual(t.ask("include perfetto module ours.m; select x from ours_t").cells, [x])
        tabs[0].send(message(RESTORE))
        self.assertEqual(tabs[0].next()[3], RESTORE)
        for t in tabs:
            t.close()

    def test_tables_that_are_taken_away(self):
        """By a script, which shares the first tab's: an error that says so, never another's table of that name."""
        first, second = self.tab(), None
        self.make(first, 1)
        second = self.tab()
        self.make(second, 2)
        self.assertEqual(self.server.request("GET", "/restore_initial_tables")[0], 200)
        self.assertEqual(self.server.ask("create perfetto table mine as select 3 as x; select x from mine").cells, [3])
        for sql in "select x from mine", "select 1":
            self.assertIn("another client has reset the tables", first.ask(sql).error)
        first.send(statement("select x from mine", 0))
        r = Result()
        r.add(get(first.next()[219], 1))
        self.assertIn("another client has reset the tables", r.error)
        self.assertEqual(second.ask("select x from mine").cells, [2])
        first.close()
        second.close()

    def test_another_trace(self):
        """A script loads another trace while tabs are open and one of them is reading an answer."""
        tabs = [self.tab() for _ in range(2)]
        for i, t in enumerate(tabs):
            self.make(t, i)
        fresh = WebSocket(self.server)
        tabs[1].send(query("with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'some text to fill it' from n"))
        tabs[1].recv()
        time.sleep(0.3)
        self.server.rpc(message(APPEND, field(101, TRACE.read_bytes())), message(FINALIZE))
        r = Result()
        while not r.add(tabs[1].next()[203]):
            pass
        self.assertIn("another trace", r.error)
        for t in tabs:
            self.assertIn("another client has loaded another trace", t.ask(COUNT).error)
        self.assertGreater(fresh.ask(COUNT).cells[0], 1000)
        tabs[0].send(message(RESTORE))  # begins anew, with the new trace
        self.assertEqual(tabs[0].next()[3], RESTORE)
        self.assertGreater(tabs[0].ask(COUNT).cells[0], 1000)
        self.assertIn("no such table", tabs[0].ask("select x from mine").error)
        for t in tabs + [fresh]:
            t.close()

    def test_cost_of_a_tab(self):
        first = self.tab()
        first.ask(COUNT)
        before = self.server.memory_kb()
        tabs = [self.tab() for _ in range(3)]
        for t in tabs:
            t.ask(COUNT)
        self.assertLess(self.server.memory_kb() - before, 3 * (20000 if "asan" in SHELL else 6000))
        for t in tabs + [first]:
            t.close()


class Life(unittest.TestCase):
    def test_signals_end_it_whatever_runs(self):
        for sig in signal.SIGINT, signal.SIGTERM:
            server = Server(TRACE)
            ws = WebSocket(server)
            ws.send(query(FOREVER))
            time.sleep(0.2)
            start = time.time()
            self.assertEqual(server.stop(sig), 0, server.log)
            self.assertLess(time.time() - start, 5)

    def test_port_in_use(self):
        server = Server(TRACE)
        p = subprocess.run([SHELL, "server", "http", "--port", str(server.port)], capture_output=True, timeout=20)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"in use", p.stderr)
        self.assertEqual(server.stop(), 0)

    def test_only_this_machine_unless_told(self):
        server = Server(TRACE)
        self.assertNotIn(b"warning", server.log)
        self.assertEqual(server.stop(), 0)
        server = Server(TRACE, "--ip-address", "0.0.0.0")
        self.assertIn(b"warning: 0.0.0.0 accepts connections from other machines", server.log)
        self.assertEqual(server.stop(), 0)

    def test_both_families_of_addresses(self):
        server = Server(TRACE)
        try:
            for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
                try:
                    with socket.socket(family) as probe:
                        probe.bind((host, 0))
                except OSError:
                    continue  # this machine does not have it
                with socket.create_connection((host, server.port), 20) as s:
                    s.sendall(b"GET /status HTTP/1.1\r\n\r\n")
                    self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 200 OK"))
        finally:
            self.assertEqual(server.stop(), 0)

    def test_bad_flags(self):
        for flags in (["--port", "x"], ["--port", "65536"], ["--idle-timeout", "3 weeks"], ["--idle-start", "never"]):
            p = subprocess.run([SHELL, "server", "http", *flags], capture_output=True, timeout=20)
            self.assertEqual((p.returncode, p.stderr.decode().count(flags[0])), (1, 1), p.stderr)
        for args in (["server"], ["server", "ftp"], ["server", "stdio", "--daemonize"], ["server", "unix", "--name", "a/b"],
                     ["server", "unix", "--path", "/tmp/" + "x" * 100], ["server", "http", "/nonexistent.pftrace"]):
            self.assertEqual(subprocess.run([SHELL, *args], capture_output=True, timeout=20).returncode, 1, args)

    def test_help_has_examples(self):
        out = subprocess.run([SHELL, "help", "server"], capture_output=True, timeout=20).stdout
        self.assertIn(b"tp_shell server http trace.pftrace", out)

    def test_a_page_without_an_origin_changes_nothing(self):
        server = Server(TRACE)
        for path, want in ("/restore_initial_tables", 403), ("/notify_eof", 403), ("/status", 200), ("/", 200):
            self.assertEqual(server.request("GET", path, headers={"Sec-Fetch-Site": "cross-site"})[0], want, path)
        self.assertEqual(server.request("GET", "/restore_initial_tables", headers={"Sec-Fetch-Site": "cross-site", "Origin": UI})[0], 200)
        self.assertEqual(server.request("GET", "/restore_initial_tables")[0], 200)
        self.assertEqual(server.stop(), 0)

    def test_a_page_by_a_name_that_points_here_is_refused(self):
        """DNS rebinding: to the browser the page is of the server's own origin, and only the Host tells."""
        server = Server(TRACE, "--additional-cors-origins", "http://traces.example:9001")
        cases = [("evil.example:9001", 403), ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403),
                 ("1.2.3.evil", 403), ("", 200), ("localhost", 200), ("LOCALHOST:9001", 200), ("127.0.0.1:9001", 200),
                 ("[::1]:9001", 200), ("192.168.0.7:9001", 200), ("a.localhost:9001", 200), ("mybox:9001", 200),
                 ("traces.example:9001", 200), ("traces.example", 403), (socket.gethostname() + ":9001", 200)]
        for host, want in cases:
            for path in "/status", "/", "/restore_initial_tables":
                with server.connect() as s:
                    s.sendall(f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                    self.assertEqual(s.recv(12), b"HTTP/1.1 %d" % want, (host, path))
        with server.connect() as s:
            s.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
            self.assertEqual(s.recv(12), b"HTTP/1.1 400")
        with server.connect() as s:
            s.sendall(b"GET /websocket HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://ui.perfetto.dev\r\nUpgrade: websocket\r\n"
                      b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
            self.assertEqual(s.recv(12), b"HTTP/1.1 403")
        self.assertEqual(server.stop(), 0)

    def test_links_of_pages_do_not_act(self):
        server = Server(TRACE)
        acting = "/restore_initial_tables", "/notify_eof", "/enable_metatrace", "/disable_and_read_metatrace", "/query", "/export"
        browsers = [({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "nonsense"}, 403), ({"Sec-Fetch-Site": "none"}, 405),
                    ({"Sec-Fetch-Site": "same-origin"}, 405), ({"Referer": "http://a/"}, 405), ({"User-Agent": "Mozilla/5.0 (X)"}, 405)]
        server.ask("create perfetto table kept as select 7 as a")
        for headers, want in browsers:
            for path in acting:
                self.assertEqual(server.request("GET", path, headers=headers)[0], want, (path, headers))
            self.assertEqual(server.request("GET", "/status", headers=headers)[0], 200)
        self.assertEqual(server.ask("select a from kept").cells, [7])
        self.assertEqual(server.request("POST", "/restore_initial_tables", headers={"Sec-Fetch-Site": "same-origin"})[0], 200)
        self.assertEqual(server.stop(), 0)

    def test_additional_origins(self):
        server = Server(TRACE, "--additional-cors-origins", "http://a.example,http://b.example:1")
        for origin, want in ("http://b.example:1", 200), ("http://a.example", 200), ("http://c.example", 403):
            self.assertEqual(server.request("GET", "/status", headers={"Origin": origin})[0], want)
        self.assertEqual(server.stop(), 0)

    def test_classic_flags(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        p = subprocess.Popen([SHELL, "-D", "--http-port", str(port), str(TRACE)], stderr=subprocess.PIPE)
        try:
            while b"Serving" not in p.stderr.readline():
                self.assertIsNone(p.poll())
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            c.request("GET", "/status")
            self.assertEqual(c.getresponse().status, 200)
        finally:
            p.terminate()
            p.communicate(timeout=20)
        got = subprocess.run([SHELL, "--stdiod", str(TRACE)], input=query("select 1"), capture_output=True, timeout=60)
        self.assertEqual(answers(results(got.stdout))[0].cells, [1])

    def test_stdio(self):
        data = TRACE.read_bytes()
        stream = message(APPEND, field(101, data), 1) + message(FINALIZE, seq=2) + query(COUNT, 3)
        with tempfile.TemporaryFile() as f:  # a file, not a pipe
            f.write(stream)
            f.seek(0)
            got = subprocess.run([SHELL, "server", "stdio"], stdin=f, capture_output=True, timeout=60)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual([m[3] for m in results(got.stdout)], [APPEND, FINALIZE, QUERY])
        self.assertGreater(answers(results(got.stdout))[0].cells[0], 1000)

    def test_stdio_answers_outlive_the_requests(self):
        """The input ends long before a reader in no hurry has taken the answer."""
        with tempfile.TemporaryFile() as f:
            f.write(query("with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select i, 'some text to fill it' from n"))
            f.seek(0)
            p = subprocess.Popen([SHELL, "server", "stdio", TRACE], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        r, = answers(results(p.communicate(timeout=60)[0]))
        self.assertEqual((p.returncode, len(r.rows), r.rows[-1][0]), (0, 100000, 100000))

    def test_unix(self):
        with tempfile.TemporaryDirectory() as d:
            env = {"XDG_RUNTIME_DIR": d}
            server = Server("--name", "mine", TRACE, mode="unix", env=env)
            line = server.process.stdout.readline().decode()
            path = f"{d}/perfetto/mine.sock"
            self.assertEqual(line, f"perfetto-session pid={server.process.pid} session=mine socket-path={path} idle-timeout=1800s\n")
            self.assertEqual(pathlib.Path(d, "perfetto").stat().st_mode & 0o777, 0o700)
            self.assertEqual(int(pathlib.Path(path + ".pid").read_text()), server.process.pid)
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(20)
                s.connect(path)
                s.sendall(query(COUNT, 1))
                got = b""
                while not answers(results(got)) if got else True:
                    got += s.recv(4096)
                self.assertGreater(answers(results(got))[0].cells[0], 1000)
            again = subprocess.run([SHELL, "server", "unix", "--name", "mine"], env={**os.environ, **env}, capture_output=True, timeout=20)
            self.assertEqual(again.returncode, 1)
            kill = subprocess.run([SHELL, "server", "kill", "mine"], env={**os.environ, **env}, capture_output=True, timeout=20)
            self.assertEqual(kill.returncode, 0, kill.stderr)
            self.assertEqual(server.process.wait(timeout=20), 0)
            self.assertEqual(list(pathlib.Path(d, "perfetto").iterdir()), [])
            server.stop()

    def test_unix_spares_what_is_not_its_own(self):
        with tempfile.TemporaryDirectory() as d:
            file, path = pathlib.Path(d, "notes"), pathlib.Path(d, "s")
            file.write_text("kept")
            p = subprocess.run([SHELL, "server", "unix", "--path", str(file), TRACE], capture_output=True, timeout=20)
            self.assertEqual((p.returncode, file.read_text()), (1, "kept"), p.stderr)
            self.assertIn(b"not a socket", p.stderr)
            with subprocess.Popen(["sleep", "60"]) as bystander:  # has got the number that a pid file still names
                pathlib.Path(f"{path}.pid").write_text(f"{bystander.pid}\n")
                with socket.socket(socket.AF_UNIX) as stale:
                    stale.bind(str(path))
                p = subprocess.run([SHELL, "server", "kill", "--path", str(path)], capture_output=True, timeout=20)
                self.assertEqual((p.returncode, bystander.poll()), (1, None), p.stderr)
                bystander.kill()
            server = Server("--path", path, TRACE, mode="unix")  # takes the stale one's place
            self.assertIn(str(server.process.pid).encode(), server.process.stdout.readline())
            self.assertEqual(server.stop(), 0)

    def test_idle_and_background(self):
        with tempfile.TemporaryDirectory() as d:
            p = subprocess.run([SHELL, "server", "unix", "--daemonize", "--path", f"{d}/s", "--idle-timeout", "600ms", str(TRACE)],
                               capture_output=True, timeout=60)
            self.assertEqual(p.returncode, 0, p.stderr)
            pid = int(p.stdout.split(b"pid=")[1].split()[0])
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(f"{d}/s")
                time.sleep(1.2)  # a client keeps it
                self.assertTrue(pathlib.Path(f"/proc/{pid}").exists())
            wait_for(lambda: not pathlib.Path(f"{d}/s").exists())


if __name__ == "__main__":
    unittest.main()

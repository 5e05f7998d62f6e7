"""Summaries and summarizers by the server: routes, messages, who owns what, limits, hostile arguments."""
import random
import time
import unittest

from rpc import *

TRACE = DATA / "linux-sched.pftrace"
SUMMARIZE, CREATE, UPDATE, ASK, DESTROY = 15, 16, 17, 18, 19
OURS = "select count(*) from sqlite_master where name glob '_meridian_summary_*' or name glob '_exp_mat_*'"
FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as v from n where i < 0"


def sql_query(query_id, sql):
    """A PerfettoSqlStructuredQuery of SQL."""
    return field(1, query_id) + field(3, field(1, sql))


def filtered(query_id, of, least):
    """... of another one: its rows with v > least."""
    return field(1, query_id) + field(6, of) + field(8, field(1, "v") + field(2, 5) + field(5, least))


def spec_of(*queries):
    return b"".join(field(2, q) for q in queries)


def metric(metric_id, sql):
    return field(1, field(1, metric_id) + field(3, "v") + field(4, field(3, field(1, sql))))


def summarize(*args, seq=0):
    return message(SUMMARIZE, field(110, b"".join(args)), seq)


class Client:
    """Summarizers by one way of asking: `rpc` takes a request and gives the answer's fields."""

    def __init__(self, rpc):
        self.rpc = rpc

    def create(self, name=""):
        r = self.rpc(message(CREATE, field(111, field(1, name) if name else b"")))[215]
        return get(r, 1, b"").decode() or get(r, 2).decode()

    def update(self, name, *queries):
        """{id: "updated" | "dropped" | ""}, or the error."""
        r = self.rpc(message(UPDATE, field(112, field(1, name) + field(2, spec_of(*queries)))))[216]
        if get(r, 2):
            return get(r, 2).decode(errors="replace")
        return {get(q, 1).decode(): "updated" if get(q, 3) else "dropped" if get(q, 4) else "" for n, q in fields(r)}

    def ask(self, name, query_id):
        """The fields of the result: {number: [values]}."""
        out = {}
        for n, v in fields(self.rpc(message(ASK, field(113, field(1, name) + field(2, query_id))))[217]):
            out.setdefault(n, []).append(v.decode(errors="replace") if n in (2, 4, 6, 7, 8, 9) else v)
        return out

    def table(self, name, query_id):
        r = self.ask(name, query_id)
        assert 6 not in r, r
        return r[2][0]

    def destroy(self, name):
        return get(self.rpc(message(DESTROY, field(114, field(1, name))))[218], 1, b"").decode()


class Stream(Client):
    """By a WebSocket."""

    def __init__(self, server):
        self.ws = WebSocket(server)
        super().__init__(self.exchange)

    def exchange(self, request):
        self.ws.send(request)
        return self.ws.next()


class Loaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(TRACE)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log

    def posting(self):
        return Client(lambda request: self.server.rpc(request)[0])

    def count(self, sql):
        r = self.server.ask(sql)
        self.assertEqual(r.error, "")
        return r.rows[0][0]


class Summaries(Loaded):
    TEXT = """metric_spec { id: "m" value: "n" query { sql { sql: "select count(*) as n from sched" } } }
              query { id: "meta" sql { sql: "select 'a' as key, 'b' as value" } }"""

    def post(self, *args):
        status, headers, body = self.server.request("POST", "/trace_summary", b"".join(args))
        self.assertEqual((status, headers["content-type"]), (200, "application/x-protobuf"))
        return body

    def test_text_and_binary(self):
        n = float(self.count("select count(*) from sched"))
        asked = field(3, field(3, 1) + field(2, "meta"))
        text = get(self.post(field(2, self.TEXT), asked, field(4, 1)), 2).decode()
        self.assertIn(f"double_value: {n:.0f}\n", text)
        self.assertTrue(text.endswith('metadata {\n  key: "a"\n  value: "b"\n}\n'))
        binary = get(self.post(field(2, self.TEXT), asked), 1)
        bundle, metadata = get(binary, 3), get(binary, 2)
        self.assertEqual((get(bundle, 1), get(metadata, 1), get(metadata, 2)), (b"m", b"a", b"b"))
        self.assertEqual(struct.unpack("<d", get(get(get(bundle, 2), 1), 2))[0], n)
        by_rpc = self.server.rpc(summarize(field(2, self.TEXT), asked))[0]
        self.assertEqual(get(by_rpc[214], 1), binary)
        ws = WebSocket(self.server)
        ws.send(summarize(field(2, self.TEXT), asked))
        self.assertEqual(get(ws.next()[214], 1), binary)
        ws.close()

    def test_binary_specs_and_chosen_metrics(self):
        specs = field(1, metric("a", "select 1 as v")) + field(1, metric("b", "select 2 as v"))
        ids = lambda *names: field(3, b"".join(field(1, n) for n in names))
        bundles = lambda body: [get(b, 1).decode() for n, b in fields(get(body, 1)) if n == 3]
        self.assertEqual(bundles(self.post(specs, ids("b", "a"))), ["b", "a"])
        self.assertEqual(bundles(self.post(specs, ids("a"))), ["a"])
        self.assertEqual(bundles(self.post(specs, field(3, field(3, 1)))), ["a", "b"])
        self.assertEqual(bundles(self.post(specs)), [])

    def test_errors(self):
        for args, want in [((field(2, "metric_spec {"), field(3, field(3, 1))), "spec 1: 1:"),
                           ((field(2, "metric_spec { id: 'm' }"), field(3, field(3, 1))), "metric 'm': value: missing"),
                           ((field(1, b"\xff\xff"), field(3, field(3, 1))), "spec 1"),
                           ((field(3, field(1, "m")),), "metric 'm': no spec has it"),
                           ((field(1, metric("m", "select nope as v")), field(3, field(3, 1))), "no such column: nope")]:
            body = self.post(*args)
            self.assertIn(want, get(body, 3).decode())
            self.assertEqual((get(body, 1), get(body, 2)), (None, None))
        self.assertEqual(self.count("select 5"), 5)

    def test_no_trace(self):
        server = Server()
        try:
            self.assertEqual(get(server.request("POST", "/trace_summary", b"")[2], 3), b"no trace is loaded")
            self.assertEqual(get(server.rpc(message(CREATE))[0][215], 2), b"no trace is loaded")
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    def test_metrics_of_the_first_generation(self):
        result = self.server.rpc(message(METRIC, field(105, field(1, "android_cpu"))))[0][205]
        self.assertIn(b"Unknown metric 'android_cpu'", get(result, 2))
        self.assertIn(b"trace summary", get(result, 2))
        for form, number, empty in [(0, 1, b""), (1, 3, b""), (2, 4, b"{}")]:
            self.assertEqual(get(self.server.rpc(message(METRIC, field(105, field(2, form))))[0][205], number), empty)
        self.assertEqual(self.server.rpc(message(6))[0][206], b"")

    def test_who_leaves_ends_it_and_status_answers_meanwhile(self):
        c = self.server.connect()
        body = field(1, metric("m", FOREVER)) + field(3, field(3, 1))
        c.sendall(b"POST /trace_summary HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.5)
        before = time.time()
        self.assertEqual(self.server.request("GET", "/status")[0], 200)
        self.assertLess(time.time() - before, 2)
        c.close()
        self.assertEqual(self.server.ask("select 7").rows, [(7,)])


class Summarizers(Loaded):
    def check_life(self, client):
        self.assertEqual(client.create("life"), "life")
        self.assertIn("with this id exists", client.create("life"))
        q = sql_query("q", "select 42 as v, 'x' as w")
        self.assertEqual(client.update("life", q, filtered("f", "q", 41)), {"q": "updated", "f": "updated"})
        self.assertEqual(self.count(OURS), 0)
        r = client.ask("life", "f")
        self.assertEqual((r[1], r[3], r[4]), ([1], [1], ["v", "w"]))
        self.assertGreater(struct.unpack("<d", r[5][0])[0], 0)
        self.assertIn(client.table("life", "q"), r[7][0])
        self.assertIn("inner_query_id: \"q\"", r[8][0])
        self.assertNotIn("_meridian_summary", r[9][0])
        self.assertEqual(self.server.ask(f"select * from {r[2][0]}").rows, [(42, "x")])
        self.assertEqual(self.server.ask(r[9][0]).rows, [(42, "x")])
        self.assertEqual(client.ask("life", "nobody"), {1: [0]})
        self.assertEqual(client.update("life", q, filtered("f", "q", 42)), {"q": "", "f": "updated"})
        self.assertEqual(client.ask("life", "f")[3], [0])
        self.assertEqual(client.update("life", q), {"q": "", "f": "dropped"})
        self.assertEqual(self.count(OURS), 1)
        self.assertIn("query[0]", client.update("life", sql_query("", "select 1")))
        client.update("life", sql_query("bad", "select nope"))
        self.assertIn("no such column: nope", client.ask("life", "bad")[6][0])
        self.assertEqual(client.destroy("life"), "")
        self.assertEqual(self.count(OURS), 0)
        for answer in (client.destroy("life"), client.update("life", q), client.ask("life", "q")[6][0]):
            self.assertIn("there is no summarizer 'life'", answer)

    def test_by_a_websocket(self):
        client = Stream(self.server)
        self.check_life(client)
        client.ws.close()

    def test_by_posts(self):
        self.check_life(self.posting())

    def test_ids_are_chosen_when_none_is_given(self):
        client = Stream(self.server)
        a, b = client.create(), client.create()
        self.assertNotEqual(a, b)
        client.update(b, sql_query("q", "select 1 as v"))
        self.assertEqual(client.ask(a, "q"), {1: [0]})
        self.assertEqual(client.ask(b, "q")[3], [1])
        self.assertIn("too long", client.create("x" * 300))
        self.assertIn("NUL", client.create("a\0b"))
        client.ws.close()

    def test_tables_have_the_names_that_recorded_sessions_ask_for(self):
        server = Server(TRACE)
        try:
            ws = [Stream(server), Stream(server)]
            names = [c.create() for c in ws]
            for c, name in zip(ws, names):
                c.update(name, sql_query("a", "select 1 as v"), sql_query("b", "select 2 as v"))
            self.assertEqual(ws[0].table(names[0], "b"), "_exp_mat_0_0")
            self.assertEqual(ws[1].table(names[1], "a"), "_exp_mat_1_0")
            self.assertEqual(ws[0].table(names[0], "a"), "_exp_mat_0_1")
            self.assertEqual(ws[0].table(names[0], "b"), "_exp_mat_0_0")
            ws[0].update(names[0], sql_query("a", "select 1 as v"), sql_query("b", "select 3 as v"))
            self.assertEqual(ws[0].table(names[0], "b"), "_exp_mat_0_2")
            self.assertEqual(server.ask("select v from _exp_mat_0_2 union all select v from _exp_mat_1_0").cells, [3, 1])
            for c in ws:
                c.ws.close()
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    def test_clients_do_not_meet_and_leave_nothing(self):
        a, b, post = Stream(self.server), Stream(self.server), self.posting()
        for client, n in ((a, 1), (b, 2), (post, 3)):
            self.assertEqual(client.create("mine"), "mine")
            client.update("mine", sql_query("q", f"select {n} as v"))
        tables = [c.table("mine", "q") for c in (a, b, post)]
        self.assertEqual([self.count(f"select v from {t}") for t in tables], [1, 2, 3])
        a.ws.close()
        wait_for(lambda: self.count(OURS) == 2)
        self.assertEqual(self.count(f"select v from {tables[1]}"), 2)
        b.ws.close()
        wait_for(lambda: self.count(OURS) == 1)
        self.assertEqual(post.table("mine", "q"), tables[2])
        self.assertEqual(post.destroy("mine"), "")

    def test_a_table_being_read_goes_when_that_is_over(self):
        client = Stream(self.server)
        client.create("big")
        client.update("big", sql_query("q", "with recursive n(v) as (select 1 union all select v + 1 from n "
                                            "where v < 300000) select v, 'some text of a row' as t from n"))
        table = client.table("big", "q")
        reader = WebSocket(self.server)
        reader.send(query(f"select a.* from {table} a"))  # and does not read on
        first = Result()
        first.add(reader.next()[203])
        client.ws.close()
        time.sleep(0.3)
        while not first.add(reader.next()[203]):
            pass
        self.assertEqual((first.error, len(first.rows)), ("", 300000))
        reader.close()
        other = Stream(self.server)
        other.create("o")
        other.update("o", sql_query("q", "select 1 as v"))
        other.table("o", "q")
        other.destroy("o")
        self.assertEqual(self.count(OURS), 0)
        other.ws.close()

    def test_places_are_limited(self):
        post, ws = self.posting(), Stream(self.server)
        for i in range(70):  # those of posts give way, the oldest first
            self.assertEqual(post.create(f"p{i}"), f"p{i}")
        self.assertIn("no summarizer", post.destroy("p0"))
        names = [f"w{i}" for i in range(64)]
        for name in names:
            self.assertEqual(ws.create(name), name)
        self.assertIn("too many", ws.create("w64"))
        self.assertIn("too many", post.create("p70"))
        ws.destroy("w0")
        self.assertEqual(ws.create("w64"), "w64")
        ws.ws.close()
        wait_for(lambda: "too many" not in post.create("again"))
        self.assertEqual(post.destroy("again"), "")

    def test_reset_of_the_tables(self):
        post, page = self.posting(), Stream(self.server)
        tables = {}
        for client in (post, page):
            client.create("s")
            client.update("s", sql_query("q", "select 1 as v"))
            tables[client] = client.table("s", "q")
        self.assertEqual(self.server.request("POST", "/restore_initial_tables", b"")[0], 200)
        self.assertIn("no such table", self.server.ask(f"select * from {tables[post]}").error)
        after = post.table("s", "q")
        self.assertNotIn(after, tables.values())
        self.assertEqual(self.count(f"select v from {after}"), 1)
        self.assertIn("another client has reset", page.ask("s", "q")[6][0])  # a page is told, and begins anew
        self.assertIn("another client has reset", get(page.exchange(summarize())[214], 3).decode())
        page.exchange(message(RESTORE))
        again = page.table("s", "q")
        self.assertEqual(page.ws.ask(f"select v from {again}").rows, [(1,)])
        page.ws.close()
        post.destroy("s")
        wait_for(lambda: self.count(OURS) == 0)

    def test_pages_with_tables_of_their_own(self):
        first, second = Stream(self.server), Stream(self.server)
        for n, page in enumerate((first, second)):
            page.exchange(message(RESTORE))
            page.create("s")
            page.update("s", sql_query("q", f"select {n} as v"))
        tables = [page.table("s", "q") for page in (first, second)]
        self.assertEqual(first.ws.ask(f"select v from {tables[0]}").rows, [(0,)])
        self.assertEqual(second.ws.ask(f"select v from {tables[1]}").rows, [(1,)])
        self.assertEqual(second.ws.ask(OURS).rows, [(1,)])
        self.assertEqual(get(second.exchange(summarize(field(1, metric("m", f"select v from {tables[1]}")),
                                                       field(3, field(3, 1)), field(4, 1)))[214], 3), None)
        second.ws.close()
        self.assertEqual(first.table("s", "q"), tables[0])
        first.ws.close()
        wait_for(lambda: self.count(OURS) == 0)

    def test_who_leaves_ends_it(self):
        client = Stream(self.server)
        client.create("s")
        client.update("s", sql_query("q", FOREVER))
        client.ws.send(message(ASK, field(113, field(1, "s") + field(2, "q"))))
        time.sleep(0.5)
        self.assertEqual(self.server.request("GET", "/status")[0], 200)
        client.ws.close()
        self.assertEqual(self.count("select 8"), 8)
        self.assertEqual(self.count(OURS), 0)

    def test_another_trace(self):
        server = Server(TRACE)
        try:
            ws = WebSocket(server)
            def exchange(request):
                ws.send(request)
                return ws.next()
            client = Client(exchange)
            client.create("s")
            client.update("s", sql_query("q", "select count(*) as v from sched"))
            client.table("s", "q")
            server.rpc(message(APPEND, field(101, b"")), message(FINALIZE))
            self.assertIn("another client has loaded another trace", client.ask("s", "q")[6][0])
            exchange(message(RESTORE))
            self.assertIn("no summarizer", client.ask("s", "q")[6][0])
            self.assertEqual(client.create("s"), "s")
            client.update("s", sql_query("q", "select count(*) as v from sched"))
            self.assertEqual(server.ask(f"select v from {client.table('s', 'q')}").rows, [(0,)])
            exchange(message(RESET))
            self.assertEqual(client.create("t"), "no trace is loaded")
            ws.close()
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    def test_the_server_ends_while_they_are_there(self):
        server = Server(TRACE)
        client = Stream(server)
        client.create("s")
        client.update("s", sql_query("q", "select 1 as v"))
        client.table("s", "q")
        Client(lambda request: server.rpc(request)[0]).create("p")
        self.assertEqual(server.stop(), 0, server.log)


class Hostile(Loaded):
    def test_arguments_of_any_bytes(self):
        random.seed(7)
        ws = Stream(self.server)
        ws.create("s")
        spec = spec_of(sql_query("q", "select 1 as v"), filtered("f", "q", 0)) + metric("m", "select 1 as v")
        for i in range(300):
            bad = bytearray(spec)
            for _ in range(random.randrange(1, 8)):
                bad[random.randrange(len(bad))] = random.randrange(256)
            bad = bytes(bad[:random.randrange(len(bad) + 1)])
            ws.exchange(message(UPDATE, field(112, field(1, "s") + field(2, bad))))
            ws.ask("s", "f")
            ws.exchange(summarize(field(1, bad), field(3, field(3, 1) + field(2, "q"))))
            ws.exchange(message(SUMMARIZE, field(110, bad)))
            ws.exchange(message(random.choice([CREATE, UPDATE, ASK, DESTROY]), field(random.randrange(110, 115), bad)))
        ws.ws.close()
        self.assertEqual(self.count("select 9"), 9)

    def test_errors_are_text(self):
        """Whatever bytes a request has, and wherever a message is cut, strict readers can read the answer."""
        bad, long = b"caf\xe9 \xff", ("x" + "\u20ac" * 400).encode()
        ws = Stream(self.server)
        for name in (bad, long):
            for method, args, result in [(CREATE, 111, 215), (UPDATE, 112, 216), (ASK, 113, 217), (DESTROY, 114, 218)]:
                r = ws.rpc(message(method, field(args, field(1, name))))[result]
                self.assertTrue([v for n, v in fields(r) if isinstance(v, bytes) and v.decode()], (method, name))
            self.assertIn("Unknown metric", get(ws.rpc(message(METRIC, field(105, field(1, name))))[205], 2).decode())
            for spec in (metric(name, "select nope"), metric("m", name), metric(name, "select 1 as v")):
                r = ws.rpc(summarize(field(1, spec), field(3, field(1, name))))[214]
                self.assertTrue(get(r, 3, b"").decode() or get(r, 1, None), (name, spec))
            self.assertIn("no spec has it", get(ws.rpc(summarize(field(3, field(1, name))))[214], 3).decode())
        ws.create("s")
        self.assertIn("not UTF-8", ws.update("s", sql_query("q", bad)))
        ws.ws.close()

    def test_deep_and_wide_specs(self):
        deep = sql_query("x", "select 1 as v")
        for _ in range(20000):
            deep = field(5, deep)
        wide = field(3, field(1, "p" * 1000) + b"".join(field(3, f"v{i}") for i in range(20000)) +
                     field(4, field(3, field(1, "select 1 as v0"))))
        many = b"".join(metric(f"m{i}", "select 1 as v") for i in range(300))
        for spec in (field(2, deep), wide, many):
            before = time.time()
            self.server.rpc(summarize(field(1, spec), field(3, field(3, 1))))
            self.assertLess(time.time() - before, 60)
        self.assertLess(self.server.memory_kb(), 1 << 20)

    def test_many_small_arguments(self):
        """Two bytes of a request must not take a hundred times as much memory."""
        server = Server(TRACE)
        try:
            before = server.memory_kb()
            spec = field(1, field(2, b"") * 900000)
            for args, want in [(field(3, b"\x0a\x00" * (16 << 20)), b"more than 100000 metrics"),
                               (b"\x0a\x00" * (16 << 20), b"more than 1000 specs"),
                               (field(1, spec) * 30, b"more than 16777216 bytes of specs")]:
                result = server.rpc(summarize(args), timeout=120)[0][214]
                self.assertIn(want, get(result, 3))
            self.assertLess(server.memory_kb("VmHWM") - before, 600 << 10)
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    def test_a_summary_too_large(self):
        sql = "with recursive n(v) as (select 1 union all select v + 1 from n) select v, printf('%.10000c', 'x') as d from n"
        spec = field(1, field(1, "m") + field(2, "d") + field(3, "v") + field(4, field(3, field(1, sql))))
        result = self.server.rpc(summarize(field(1, spec), field(3, field(3, 1))), timeout=120)[0][214]
        self.assertIn(b"larger than 200 MiB", get(result, 3))
        self.assertEqual(self.count("select 9"), 9)


if __name__ == "__main__":
    unittest.main(verbosity=1)

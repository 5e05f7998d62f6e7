"""Servers that are no ClickHouse, or a damaged one: each answer in turn has too few cells, NULLs, no rows, garbage. That is told."""
import http.server
import itertools
import re
import threading
import time
import urllib.parse

import harness

MANGLED = {
    "too few columns": b"key\nString\nschema\n",
    "NULLs": b"a\tb\tc\td\nString\tString\tString\tString\n\\N\t\\N\t\\N\t\\N\n",
    "types without names": b"\n\n\n",
    "cells without a row's end": b"a\tb\nString\tString\nx\ty",
    "garbage": bytes(range(256)) * 16,
    "long cells": b"a\tb\tc\td\nString\tString\tString\tString\n" + b"\t".join([b"x" * 70000] * 4) + b"\n",
}


class Server:
    """Answers as a fleet of one server would, but for `where`: the first statement with this text gets `mangled`."""

    def __init__(self, version):
        self.version, self.where, self.mangled, self.met, self.sql = version, None, None, False, []
        self.says = {}  # more of them: what a statement with this text gets, or a function of it that says so
        self.nodes = lambda: [self]
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                sql = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("latin1") + urllib.parse.unquote(self.path)
                body = outer.answer(sql)
                self.send_response(200)
                if isinstance(body, bytes):
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                pieces = body()  # until they end or nobody listens any more
                first = next(pieces)  # ClickHouse says nothing before it has an answer
                try:
                    self.end_headers()
                    for piece in itertools.chain([first], pieces):
                        self.wfile.write(piece)
                except OSError:
                    outer.left = True

            def log_message(self, *args):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def answer(self, sql):
        self.sql.append(sql)
        if self.where and self.where in sql:
            self.met = True
            return self.mangled
        for text, says in self.says.items():
            if text in sql:
                return says(sql) if callable(says) else says
        if "EXISTS TABLE" in sql:
            return b"result\nUInt8\n1\n"
        if "'schema', 'columns'" in sql:
            return b"key\tvalue\nString\tString\nschema\t%s\ncolumns\t%s\n" % self.version
        if "LIKE 'node" in sql:
            return b"key\tvalue\nString\tString\ncluster\tdefault\n" + b"".join(
                b"node 0 %d\t%s\n" % (i, s.url.encode()) for i, s in enumerate(self.nodes()))
        if "FROM fleet_traces" in sql:
            return b"trace\thost\tpath\tsize\nString\tString\tString\tUInt64\n" + b"ab'c\there\t/a.pftrace\t7\n"
        if "hostName()" in sql:
            return b"name\nString\nhere\n"
        return b"n\nUInt64\n0\n" if "SELECT count" in sql else b""


class FalseServer(harness.Case):
    def fleet(self, server, *args):
        return self.run_shell("fleet", args[0], "--server", server.url, *args[1:], code=None)

    def setUp(self):
        server = Server((b"1", b"0"))
        self.addCleanup(server.stop)
        text = self.fleet(server, "query", "select 1").stderr.decode()
        self.server = server
        server.version = tuple(x.encode() for x in re.search(r"this tp_shell writes (\d+)\.([0-9a-f]{16})", text).groups())

    def test_answers(self):
        statements = {  # what is asked, and by which command
            "EXISTS TABLE": ("query", "select 1"),
            "'schema', 'columns'": ("query", "select 1"),
            "LIKE 'node": ("status",),
            "fleet_local.commits": ("add", "--wait", "1s", self.empty),
            "FROM fleet_traces": ("query", "--perfetto", "select 1 as x"),
            "hostName()": ("query", "--perfetto", "select 1 as x"),
            "isNotNull(ended)": ("query", "--perfetto", "select 1 as x"),
            "fleet_local.loads": ("repair",),
        }
        for where, command in statements.items():
            for what, mangled in MANGLED.items():
                with self.subTest(where=where, what=what):
                    self.server.where, self.server.mangled, self.server.met = where, mangled, False
                    self.fleet(self.server, *command)
                    self.assertTrue(self.server.met)

    def test_cells_that_are_missing_are_told(self):
        for where, what in (("'schema', 'columns'", "NULLs"), ("LIKE 'node", "too few columns")):
            self.server.where, self.server.mangled = where, MANGLED[what]
            p = self.fleet(self.server, "query", "select 1")
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr.decode(), "an answer lacks its cell [12]; is this a ClickHouse server")

    def test_answers_without_end(self):
        """More bytes, more rows, more cells than anything of ours has, and a byte now and then: the server is given up."""
        def drip():
            while True:
                yield b"x"
                time.sleep(0.02)

        head = b"key\tvalue\nString\tString\n"
        kinds = {
            "bytes": (lambda: itertools.chain([head], itertools.repeat(b"x" * 65536)), "fleet-answer-bytes=3000000", "longer than"),
            "rows": (lambda: itertools.chain([head], itertools.repeat(b"node 0 7\tx\n" * 1000)), "fleet-answer-rows=20000", "more than"),
            "cells": (lambda: itertools.chain([head], itertools.repeat(b"\t" * 65536)), "fleet-answer-bytes=100000000", "cells"),
            "drip": (drip, "fleet-answer-ms=700", "in time"),
        }
        for where, command in {"LIKE 'node": ("status",), "'schema', 'columns'": ("query", "select 1"), "fleet_local.loads": ("repair",)}.items():
            for what, (mangled, flag, told) in kinds.items():
                with self.subTest(where=where, what=what):
                    self.server.where, self.server.mangled, self.server.met = where, mangled, False
                    begin = time.monotonic()
                    p = self.fleet(self.server, *command, "--dev", "--dev-flag", flag)
                    self.assertTrue(self.server.met)
                    self.assertEqual(p.returncode, 1, p.stderr)
                    if where == "LIKE 'node":
                        self.assertRegex(p.stderr.decode(), told + "|more than 1000 servers")
                    self.assertLess(time.monotonic() - begin, 60)

    def test_results_name_their_server(self):
        """What goes wrong behind the first rows of a user's result is told with the server's address."""
        def rows_and_silence():
            yield b"x\nUInt8\n1\n2\n"
            time.sleep(3)
        for mangled, told in ((rows_and_silence, "the server has not"), (b"x\nUInt8\n1\n2\t3\n", "a row has more than 1 cells|a row has 2 cells, not 1")):
            self.server.where, self.server.mangled = "select 7", mangled
            p = self.fleet(self.server, "query", "--dev", "--dev-flag", "fleet-answer-ms=700", "select 7")
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr.decode(), f"{self.server.url}: ({told})")

    def test_users_sql_may_take_its_time(self):
        """Until its answer begins: --timeout ends it. What fleet asks for itself has its own limits."""
        def late(pause, rows=1):
            def pieces():
                time.sleep(pause)
                yield b"x\nUInt8\n"
                for _ in range(rows):
                    yield b"7\n"
                    time.sleep(0.1)
            return pieces

        def run(mangled, *args):
            self.server.where, self.server.mangled = "select 7", mangled
            begin = time.monotonic()
            p = self.fleet(self.server, "query", "--dev", "--dev-flag", "fleet-answer-ms=700", "select 7", *args)
            return p.returncode, p.stdout + p.stderr, time.monotonic() - begin
        code, text, _ = run(late(2))
        self.assertEqual(code, 0, text)
        self.assertFalse(any("max_execution_time" in s for s in self.server.sql))
        for mangled in (late(20), late(0, 200)):
            code, text, took = run(mangled, "--timeout", "1s")
            self.assertEqual(code, 1)
            self.assertIn(b"not come to an end in time", text)
            self.assertLess(took, 5)
        self.assertTrue(any("select 7" in s and "&max_execution_time=1" in s for s in self.server.sql))
        code, text, _ = run(late(0, 20), "--timeout", "1h")
        self.assertEqual(code, 0, text)
        for wrong in ("0s", "x", "4000d"):
            self.fails("fleet", "query", "--server", self.server.url, "--timeout", wrong, "select 7", text="--timeout: invalid value")
        self.server.where, self.server.mangled = "fleet_local.loads", late(2)
        self.assertIn("has not", self.fails("fleet", "repair", "--server", self.server.url, "--dev", "--dev-flag", "fleet-answer-ms=700"))

    def replica(self):
        """Another server, which is a replica of self.server: it has no loads, and self.server has load 5, of table slice."""
        other = Server(self.server.version)
        self.addCleanup(other.stop)
        none = b"load\nInt64\n"
        for server, loads in ((self.server, none + b"5\n"), (other, none)):
            server.where, server.nodes = None, lambda: [self.server, other]
            server.says = {"SELECT load FROM fleet_local.commits": loads, "SELECT load FROM": none}
        self.server.says |= {"SELECT t, n FROM": b"t\tn\nString\tUInt64\nslice\t70000\n", "FORMAT Native": b"rows"}
        return other

    def repair(self, *flags):
        begin = time.monotonic()
        err = self.fails("fleet", "repair", "--server", self.server.url, "--dev", *flags)
        self.assertLess(time.monotonic() - begin, 30)
        return err

    def test_repair_takes_no_names(self):
        """What a server calls its tables is no SQL, for itself and for its replicas."""
        evil = "begun` WHERE 0 UNION ALL SELECT 1 FROM fleet_local.`slice"
        for name in (evil, "begun", "slice_rows", ""):
            with self.subTest(name=name):
                other = self.replica()
                self.server.says["SELECT t, n FROM"] = f"t\tn\nString\tUInt64\n{name}\t7\n".encode()
                self.assertIn(f"the commit of load 5: {self.server.url}: names a table '{name[:60]}', which no fleet has", self.repair())
                self.assertFalse([s for s in other.sql if "WHERE load = 5" in s])
        other = self.replica()
        other.says["SELECT DISTINCT table"] = b"table\nString\nbegun` WHERE 0 UNION ALL SELECT 1 FROM fleet_local.`slice_rows\n"
        self.assertIn(f"{other.url}: names a table 'begun` WHERE 0", self.repair())
        self.assertFalse([s for s in other.sql if "UNION ALL" in s])
        self.replica()
        self.server.says["LIKE 'node"] = b"key\tvalue\nString\tString\ncluster\tx') UNION ALL SELECT (1\nnode 0 0\t%s\n" % self.server.url.encode()
        self.assertIn("unknown line 'cluster' 'x') UNION", self.repair())
        url = self.server.url
        for nodes in ([5], [0, 2], [0, 1, 0]):  # shards without a server, or not in their order
            self.server.says["LIKE 'node"] = ("key\tvalue\nString\tString\n" + "".join(f"node {n} 0\t{url}\n" for n in nodes)).encode()
            self.assertIn(f"unknown line 'node {nodes[-1]} 0'", self.repair())
        self.server.says["LIKE 'node"] = b"key\tvalue\nString\tString\nnode 0 0\thttp://a'b\n"
        self.assertIn("invalid server 'http://a'b'", self.repair())

    def test_repair_counts_what_arrives(self):
        """A commit cannot ask for rounds without end, and a round counts when the receiver has got its rows."""
        for n, told in ((2**32 + 1, "says 4294967297 rows of slice, and a load has 4294967296 at most"), (2**64 - 1, "rows of slice")):
            other = self.replica()
            self.server.says["SELECT t, n FROM"] = b"t\tn\nString\tUInt64\nslice\t%d\n" % n
            self.assertIn(told, self.repair())
            self.assertFalse([s for s in other.sql if "INSERT INTO" in s])
        self.server.says["SELECT t, n FROM"] = b"t\tn\nString\tUInt64\nslice\t7\nslice\t7\n"
        self.assertIn("names slice twice", self.repair())
        for there in (0, 65535, 65537):
            other = self.replica()
            self.server.says["SELECT t, n FROM"] = b"t\tn\nString\tUInt64\nslice\t4294967296\n"
            other.says["SELECT count() FROM fleet_local.`slice_rows`"] = b"n\nUInt64\n%d\n" % there
            self.assertIn(f"{other.url}: has {there} rows of load 5 of slice after {self.server.url} gave it 65536", self.repair())
            self.assertEqual(len([s for s in other.sql if "INSERT INTO fleet_local.`slice_rows`" in s]), 1)

    def test_repair_goes_on_by_ids(self):
        """A page begins behind the ids of the one before: what does not go on is given up."""
        for ids, asked in (([65535, 65535], ["> 65535"]), ([65535, 7], ["> 65535"]), ([-1], ["> -1"]), (["x"], ["> -1"])):
            other, says = self.replica(), iter(ids)
            self.server.says["SELECT t, n FROM"] = b"t\tn\nString\tUInt64\nslice\t4294967296\n"
            self.server.says["SELECT max(id) FROM"] = lambda sql: f"n\nInt64\n{next(says)}\n".encode()
            other.says["SELECT count() FROM fleet_local.`slice_rows`"] = b"n\nUInt64\n65536\n"
            self.assertIn(f"{self.server.url}: load 5 of slice has fewer rows than its commit says", self.repair())
            self.assertIn(asked[-1], [s for s in self.server.sql if "SELECT max(id)" in s][-1])

    def test_repair_comes_to_an_end(self):
        """However long a server says that there is more; on a terminal it is told how far it is."""
        def slow(pause):
            other = self.replica()
            there = [0]

            def insert(sql):
                there[0] += 65536
                time.sleep(pause)
                return b""
            self.server.says["SELECT t, n FROM"] = b"t\tn\nString\tUInt64\nslice\t4294967296\n"
            self.server.says["SELECT max(id) FROM"] = lambda sql: b"n\nInt64\n%d\n" % (there[0] + 65535)
            other.says["INSERT INTO"] = insert
            other.says["SELECT count() FROM fleet_local.`slice_rows`"] = lambda sql: b"n\nUInt64\n%d\n" % there[0]
            return other
        slow(0.05)
        err = self.repair("--dev-flag", "fleet-repair-s=1")
        self.assertIn("not at an end in the time that repair has (copying 0 of 1 loads): run it again", err)
        slow(0.05)
        code, got = self.on_terminal("fleet", "repair", "--server", self.server.url, "--dev", "--dev-flag", "fleet-repair-s=3")
        self.assertEqual(code, 1)
        self.assertRegex(got, r"Repairing: [12] s, shard 1 replica 2, copying 0 of 1, [1-9]\.\dM rows \(Ctrl-C ends it\)")
        self.assertNotIn("Repairing", got.split("\r")[-1])

    def test_names_of_traces_are_no_sql(self):
        """Whoever may add recordings chooses what stands in fleet_traces; another's statements must not be made of it."""
        self.fleet(self.server, "query", "--perfetto", "select 1 as x")
        asked = [s for s in self.server.sql if "INSERT INTO perfetto_arrived" in s]
        self.assertEqual(len(asked), 1)
        self.assertIn("&trace=ab%27c&path=", asked[0])


if __name__ == "__main__":
    harness.main()

"""Servers that are no ClickHouse, or a damaged one: each answer in turn has too few cells, NULLs, no rows, garbage. That is told."""
import http.server
import itertools
import re
import threading
import time

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
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                sql = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("latin1") + self.path
                body = outer.answer(sql)
                self.send_response(200)
                if isinstance(body, bytes):
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.end_headers()  # pieces, until they end or nobody listens any more
                try:
                    for piece in body():
                        self.wfile.write(piece)
                except OSError:
                    outer.left = True

            def log_message(self, *args):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, sql):
        self.sql.append(sql)
        if self.where and self.where in sql:
            self.met = True
            return self.mangled
        if "EXISTS TABLE" in sql:
            return b"result\nUInt8\n1\n"
        if "'schema', 'columns'" in sql:
            return b"key\tvalue\nString\tString\nschema\t%s\ncolumns\t%s\n" % self.version
        if "LIKE 'node" in sql:
            return b"key\tvalue\nString\tString\ncluster\tdefault\nnode 0 0\t%s\n" % self.url.encode()
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
        self.addCleanup(server.http.shutdown)
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
            "rows": (lambda: itertools.chain([head], itertools.repeat(b"node 7 7\tx\n" * 1000)), "fleet-answer-rows=20000", "more than"),
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

    def test_names_of_traces_are_no_sql(self):
        """Whoever may add recordings chooses what stands in fleet_traces; another's statements must not be made of it."""
        self.fleet(self.server, "query", "--perfetto", "select 1 as x")
        asked = [s for s in self.server.sql if "INSERT INTO perfetto_arrived" in s]
        self.assertEqual(len(asked), 1)
        self.assertIn("&trace=ab%27c&path=", asked[0])


if __name__ == "__main__":
    harness.main()

"""/recordings: SQL over files below the directories that the server was given, and over no others."""
import hashlib
import os
import shutil
import socket
import tempfile
import threading
import time
import unittest
import urllib.parse

from rpc import *


def name_of(path):
    """A recording's name by its bytes: a UUID of version 8."""
    d = list(hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:32])
    d[12], d[16] = "8", "89ab"[int(d[16], 16) % 4]
    d = "".join(d)
    return "-".join((d[:8], d[8:12], d[12:16], d[16:20], d[20:]))


class Recordings(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name).resolve()
        self.inside, self.outside = self.dir / "inside", self.dir / "outside"
        for d in (self.inside, self.outside):
            (d / "deep").mkdir(parents=True)
            shutil.copy(DATA / "linux-sched.pftrace", d)
            shutil.copy(DATA / "apart-a.pftrace", d / "deep")
        self.a, self.b = self.inside / "linux-sched.pftrace", self.inside / "deep" / "apart-a.pftrace"

    def serve(self, *flags):
        self.server = Server("--traces", self.inside, *flags)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0, self.server.log[-3000:]))

    def get(self, sql, *paths, method="GET", headers={}):
        """Status and body."""
        args = urllib.parse.urlencode([("sql", sql), *(p if isinstance(p, tuple) else ("path", p) for p in paths)]).encode()
        where = "/recordings" + ("?" + args.decode() if method == "GET" else "")
        status, _, body = self.server.request(method, where, args if method == "POST" else b"", headers=headers)
        return status, body

    def lines(self, *args, **kw):
        status, body = self.get(*args, **kw)
        self.assertEqual(status, 200, body)
        self.assertTrue(body.endswith(b"\n"))
        return [line.split("\t") for line in body.decode().split("\n")[:-1]]

    def refused(self, path):
        """What the last line says of a path."""
        (line,) = self.lines("select 1", path)
        self.assertEqual(line[1], "0")
        return line[2]

    def test_rows(self):
        self.serve()
        for method in ("GET", "POST"):
            found = self.lines("select count(*) as n, 'a' || char(9, 10, 39, 92) as t, 1.5 as d, null as z from sched", self.a, self.b, method=method)
            self.assertEqual([f[:4] for f in found], [[name_of(self.a), "0", "\\N", ""], [name_of(self.a), "1", "", "isd-"],
                                                       [name_of(self.b), "0", "\\N", ""], [name_of(self.b), "1", "", "isd-"]])
            self.assertRegex(found[0][4], r"^\['\d+','a\\t\\n\\'\\\\','1.5',NULL\]$")
            self.assertEqual(found[1][4], "['n','t','d','z']")
        self.assertEqual(self.lines("select 1 where 0", ("trace", name_of(self.b)), ("path", self.b)), [[name_of(self.b), "0", "", "-", "['1']"]])
        self.assertIn("syntax error", self.refused_by_sql("selec 1"))
        self.assertEqual(self.lines("create perfetto table t as select 1 as x; select x from t", self.a)[0][4], "['1']")

    def refused_by_sql(self, sql):
        (line,) = self.lines(sql, self.a)
        return line[2]

    def test_only_what_is_below(self):
        self.serve()
        none = "no file of that name is below the directories of --traces"
        (self.inside / "out").symlink_to(self.outside)
        (self.inside / "link").symlink_to(self.outside / "linux-sched.pftrace")
        (self.inside / "ring").symlink_to(self.inside / "ring")
        (self.inside / "good").symlink_to(self.b)
        (self.dir / "inside-too").mkdir()
        shutil.copy(self.a, self.dir / "inside-too")
        os.mkfifo(self.inside / "pipe")
        for path in ("/etc/passwd", "", "linux-sched.pftrace", f"{self.inside}/../outside/linux-sched.pftrace", f"{self.inside}/out/linux-sched.pftrace",
                     f"{self.inside}/link", f"{self.inside}/ring", f"{self.inside}/nothing", f"{self.dir}/inside-too/linux-sched.pftrace",
                     "/proc/self/fd/0", "/proc/self/root" + str(self.outside / "linux-sched.pftrace"), "/" * 5000, "/dev/zero", str(self.inside)):
            self.assertEqual(self.refused(path), none, path)
        for path in (self.inside / "pipe", self.inside / "deep"):
            self.assertEqual(self.refused(path), "not a file: directories are not asked", path)
        self.assertEqual(self.lines("select 1", self.inside / "good")[-1][:3], [name_of(self.b), "1", ""])
        self.assertIn("other bytes", self.lines("select 1", ("trace", name_of(self.b)), ("path", self.a))[0][2])
        self.assertIn("not authorized", self.refused_by_sql(f"attach '{self.dir}/x' as x"))
        self.assertFalse((self.dir / "x").exists())

    def test_who_may_ask(self):
        self.serve()
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example.com"}):
            for method in ("GET", "POST"):
                self.assertEqual(self.get("select 1", self.a, method=method, headers=headers)[0], 403, headers)
        for headers in ({"User-Agent": "Mozilla/5.0"}, {"Referer": "http://localhost/"}, {"Sec-Fetch-Site": "none"}):
            self.assertEqual(self.get("select 1", self.a, headers=headers)[0], 405, headers)

    def test_mistakes(self):
        self.serve()
        for query in ("", "sql=select+1", f"path={self.a}", "sql=%", "sql=%zz", "sql=%00", "sql=a%0", "what=1&sql=select+1&path=x", "&&&"):
            status, _, body = self.server.request("GET", "/recordings?" + query)
            self.assertEqual(status, 400, query)
            self.assertIn(b"argument" if b"argument" in body else b"needed", body)
        (self.inside / "empty").write_bytes(b"")
        self.assertEqual(self.refused(self.inside / "empty"), "the file is empty")
        self.assertEqual(self.get("select '" + "x" * 20000 + "'", self.a)[0], 413)
        self.assertEqual(len(self.lines("select '" + "x" * 20000 + "'", self.a, method="POST")), 2)
        garbage = self.inside / "garbage"
        garbage.write_bytes(os.urandom(5000))
        told = self.refused(garbage)
        self.assertIn("Unknown trace type", told)
        self.assertNotIn("/proc/", told)

    def test_without_directories(self):
        self.server = Server(DATA / "linux-sched.pftrace")
        self.addCleanup(self.server.stop)
        self.assertEqual(self.get("select 1", DATA / "linux-sched.pftrace"), (403, b"this server was started without --traces DIR\n"))

    def test_large_answers(self):
        """More than is held of one recording is an error of that recording; a client that does not read stops nobody."""
        self.serve()
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'some text to fill it' from n"
        found = self.lines(endless, self.a, self.b)
        self.assertEqual([line[1:3] for line in found], [["0", "more than 64 MiB of rows: ask for less"]] * 2)
        rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) select i from n"
        with self.server.connect() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            args = urllib.parse.urlencode([("sql", rows), ("path", self.a), ("path", self.b)])
            slow.sendall(f"GET /recordings?{args} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(0.5)
            found = self.lines(rows, self.b)
            self.assertEqual((len(found), found[-1][1]), (300001, "300000"))
        self.assertEqual(len(self.lines("select 1", self.a)), 2)

    def test_without_memory(self):
        """A statement that memory does not suffice for is an error of the recording, not an answer without rows."""
        self.serve("--memory", "256M")
        (line,) = self.lines("select hex(zeroblob(400000000)) as x", self.a)
        self.assertEqual(line[1:3], ["0", "out of memory"])

    def test_written_meanwhile(self):
        """The rows of a file that is written while it is read are those of no name."""
        self.serve()
        over = threading.Event()

        def touch():
            while not over.wait(0.002):
                os.utime(self.a)
        toucher = threading.Thread(target=touch)
        toucher.start()
        try:
            told = self.refused_by_sql("with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) select count(*) from n")
        finally:
            over.set()
            toucher.join()
        self.assertEqual(told, "the file was written while it was read")
        self.assertEqual(self.refused_by_sql("select 1 where 0"), "")

    def test_strange_names(self):
        self.serve()
        for name in ("a b&c=d%41+e", "tab\there", "new\nline", "quo'te\\", "ü☃", "x" * 250, "-"):
            path = self.inside / name
            shutil.copy(self.b, path)
            self.assertEqual(self.lines("select 1", path)[-1][:3], [name_of(self.b), "1", ""], name)

    def test_a_client_that_leaves(self):
        """Its statement is ended, and those behind it are served."""
        self.serve()
        forever = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"
        for _ in range(3):
            with self.server.connect() as s:
                args = urllib.parse.urlencode([("sql", forever), *[("path", self.a)] * 20])
                s.sendall(f"GET /recordings?{args} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                time.sleep(0.4)
        begin = time.monotonic()
        self.assertEqual(len(self.lines("select 1", self.a)), 2)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_statement_that_blocks_others(self):
        self.serve("--dev-flag=blocked-ms=300")
        forever = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0"
        with self.server.connect() as s:
            args = urllib.parse.urlencode([("sql", forever), ("path", self.a)])
            s.sendall(f"GET /recordings?{args} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(0.3)
            self.assertEqual(len(self.lines("select 1", self.a)), 2)
            got = b""
            while b"0\r\n\r\n" not in got:
                got += s.recv(65536)
            self.assertIn(b"other clients were waiting", got)


if __name__ == "__main__":
    unittest.main()

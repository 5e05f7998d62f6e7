"""tp_shell --remote: the same answers from a server as from the trace itself."""
import signal
import subprocess
import tempfile
import time
import unittest

from rpc import *

TRACE = DATA / "linux-sched.pftrace"
QUERIES = [
    "select * from sched order by id limit 500", "select name, tid, null as none, 1.5 * utid as d, x'00ff' as b from thread",
    "select 1 where 0", "select count(*) from slice; select 'a;b' as x; create perfetto table mine as select 1 as y; select y from mine",
    "drop table mine", "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000) select i, 'row ' || i as t from n",
]


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(TRACE)
        cls.dir = tempfile.TemporaryDirectory()
        cls.env = {**os.environ, "XDG_RUNTIME_DIR": cls.dir.name, "HOME": cls.dir.name}
        cls.unix = Server("--name", "box", TRACE, mode="unix", env=cls.env)
        cls.unix.process.stdout.readline()
        cls.addresses = [f"localhost:{cls.server.port}", f"http://127.0.0.1:{cls.server.port}/", "box",
                         f"{cls.dir.name}/perfetto/box.sock"]

    @classmethod
    def tearDownClass(cls):
        for s in cls.server, cls.unix:
            assert s.stop() == 0, s.log
        cls.dir.cleanup()

    def shell(self, *args, stdin=None, code=0):
        p = subprocess.run([SHELL, *map(str, args)], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                           capture_output=True, env=self.env, timeout=60)
        self.assertEqual(p.returncode, code, p.stderr.decode())
        return p

    def test_same_answers(self):
        for sql in QUERIES:
            if sql.startswith("drop"):
                local = b""
            else:
                local = self.shell("query", TRACE, sql).stdout
            for address in self.addresses[:1] if "mine" in sql else self.addresses:
                self.assertEqual(self.shell("query", "--remote", address, sql).stdout, local)

    def test_sources_and_formats(self):
        a = self.addresses[0]
        want = self.shell("query", TRACE, "--format", "json", "select 1 as a, 'b' as c").stdout
        self.assertEqual(self.shell("query", "--remote", a, "--format", "json", stdin=b"select 1 as a, 'b' as c").stdout, want)
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"select 1 as a, 'b' as c")
            f.flush()
            self.assertEqual(self.shell("query", "--remote", a, "-f", f.name, "--format", "json").stdout, want)

    def test_errors(self):
        local = self.shell("query", TRACE, "select * from nowhere", code=1).stderr.decode()
        for a in self.addresses:
            got = self.shell("query", "--remote", a, "select * from nowhere", code=1).stderr.decode()
            self.assertEqual(got[got.index("Traceback"):], local[local.index("Traceback"):])
        self.assertIn(b"--remote", self.shell("query", "--remote", "localhost:1", "select 1", code=1).stderr)
        self.assertIn(b"the trace is on", self.shell("sync", "--remote", a, TRACE, code=1).stderr)
        self.assertIn(b"No valid SQL", self.shell("query", "--remote", a, "/* nothing */", code=1).stderr)

    def test_interactive(self):
        script = b".width 12\nselect 1 as a;\nselect * from nowhere;\ncreate perfetto table kept as select 7 as x;\nselect x from kept;\n" \
                 b".tables kept*\n.reset\nselect x from kept;\n.dump /tmp/never\n.quit\n"
        for a in self.addresses[1:3]:
            p = self.shell("interactive", "--remote", a, stdin=script, code=1)
            self.assertIn(b"kept", p.stdout)
            self.assertRegex(p.stdout, rb"\s7\s")
            self.assertEqual(p.stderr.count(b"no such table"), 2, p.stderr)
            self.assertIn(b"export it there", p.stderr)

    def test_ctrl_c_stops_the_query_not_the_shell(self):
        for a in self.addresses[0], self.addresses[2]:
            p = subprocess.Popen([SHELL, "interactive", "--remote", a], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=self.env)
            p.stdin.write(b"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where i < 0;\n")
            p.stdin.flush()
            time.sleep(0.5)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(b"select 4711 as x;\n", timeout=20)
            self.assertEqual((p.returncode, err), (1, b"Interrupted\nsome of what standard input asked failed\n"))
            self.assertIn(b"4711", out)

    def ask_impostor(self, *answers):
        """What the shell says of a server that gives each request these bytes, whatever is asked."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            p = subprocess.Popen([SHELL, "query", "--remote", f"127.0.0.1:{s.getsockname()[1]}", "select 1"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
            c, _ = s.accept()
            with c:
                for answer in answers:
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += c.recv(4096)
                    head, body = request.split(b"\r\n\r\n", 1)
                    while len(body) < int(head.split(b"Content-Length: ")[1]):
                        body += c.recv(4096)
                    c.sendall(answer)
            err = p.communicate(timeout=20)[1]
            self.assertEqual(p.returncode, 1, err)
            return err

    def test_a_server_that_is_none(self):
        err = self.ask_impostor(b"220 mail.example ESMTP\r\n\r\n" + b"x" * 100)
        self.assertIn(b"the server replied 220", err)

    def test_a_server_that_finds_more_columns_amid_the_rows(self):
        def http(body):
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

        def part(*result):
            return field(1, field(3, STATEMENT) + field(219, field(1, b"".join(result)) + field(3, 1)))

        batch = field(3, field(1, b"\1" * 1000))
        rows = part(field(1, "one"), batch) + part(field(1, "more") * 1000, batch, batch)
        err = self.ask_impostor(http(field(1, field(3, STATUS) + field(210, b""))), http(rows))
        self.assertIn(b"column names between rows", err)


if __name__ == "__main__":
    unittest.main()

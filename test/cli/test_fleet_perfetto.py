"""PerfettoSQL over single recordings of a fleet: each row is what the recording asked alone answers, whoever has its file; what does not
answer is told and left out. Skipped (77) where there is no ClickHouse."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import clickhouse
import harness

SQL = ("INCLUDE PERFETTO MODULE slices.with_context; select name, count(*) as n, sum(dur) as total, avg(dur) / 3 as part, max(process_name) as "
       "process from thread_or_process_slice group by 1 order by 2 desc, 1 limit 7")
PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "fleet.md"
FILES = ["linux-sched.pftrace", "apart-a.pftrace", "apart-b.pftrace", "linux-mono.pftrace", "linux-deflate.pftrace", "mm-guest-only.pftrace",
         "linux-zstd.pftrace", "linux-syscalls.pftrace.gz"]
HOST = socket.gethostname()
OTHER = "shard-two"


class Files:
    """tp_shell server with the recordings of a directory."""

    def __init__(self, *directories, port=0):
        flags = [f for d in directories for f in ("--traces", d)]
        self.process = subprocess.Popen([harness.SHELL, "server", "http", "--port", str(port), *map(str, flags)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        line = self.process.stdout.readline().decode()
        self.url = line.split("Serving at ")[1].split(": ")[0]
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.reader.join()
        self.process.stdout.close()
        return code


def inside(name):
    """A command that runs another one on a machine of this name, as far as it can tell; None: only root can."""
    command = ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]
    return command if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0 else None


class Perfetto(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shards = [[clickhouse.Server(cls.dir / f"s{i}")] for i in range(2)]
        cls.other = inside(OTHER)
        cls.shards[1][0].inside = cls.other or []
        cls.servers = [shard[0] for shard in cls.shards]
        for server in cls.servers:
            cls.addClassCleanup(server.stop)
            server.configure({"fleet": cls.shards})
            server.start()
        self = cls()
        self.fleet("init", "--cluster", "fleet", *[s.url for s in cls.servers])
        cls.folder = cls.dir / "recordings"
        cls.folder.mkdir()
        for name in FILES:
            shutil.copy(harness.DATA / name, cls.folder)
        self.fleet("add", "--build", "2026.11", "--label", "set=first", "recordings", cwd=cls.dir)
        cls.files = Files(cls.folder)

    @classmethod
    def tearDownClass(cls):
        code = cls.files.stop()
        super().tearDownClass()
        assert code == 0, cls.files.log

    def fleet(self, action, *args, code=0, cwd=None):
        return self.run_shell("fleet", action, *args, code=code, env={"MERIDIAN_FLEET": ",".join(s.url for s in self.servers)}, cwd=cwd)

    def lines(self, text):
        return [json.loads(line) for line in text.decode().splitlines()]

    def ask(self, *args, files=None, code=0):
        """Rows, and what was said beside them."""
        files = [self.files.url] if files is None else files
        p = self.fleet("query", "--format", "jsonl", *[f for url in files for f in ("--files", f"{HOST}={url}")], *args, code=code)
        return self.lines(p.stdout), p.stderr.decode()

    def traces(self):
        return {pathlib.Path(r["path"]).name: r["trace"] for r in self.ask("select path, trace from fleet_traces", files=[])[0]}

    def alone(self, sql, name):
        return self.lines(self.query(sql, "--format", "jsonl", trace=self.folder / name).encode())

    def check(self, found, sql, names):
        traces = self.traces()
        wanted = [{"trace": traces[n], "row": i, **r} for n in sorted(names, key=traces.get) for i, r in enumerate(self.alone(sql, n))]
        self.assertEqual(found, wanted)
        self.assertGreater(len(found), 0)

    def test_rows(self):
        found, _ = self.ask("--perfetto", SQL)
        self.check(found, SQL, FILES)
        self.assertTrue(any(isinstance(r["part"], float) for r in found))
        more = Files("/", self.folder)  # two servers share the work
        self.addCleanup(more.stop)
        self.check(self.ask("--perfetto", SQL, files=[self.files.url, more.url])[0], SQL, FILES)

    def test_kinds(self):
        """A column is of the kind that holds all its values; strange texts and bytes come through."""
        sql = ("select 1 as one, null as none, case when (select count(*) from slice) % 2 then 1 else 1.5 end as mixed, 9007199254740993 as big, "
               "-0.1 as tenth, char(9, 10, 13, 39, 92, 8, 12, 96, 228) || 'x' as text, case when (select count(*) from slice) % 2 then 'a' else 2 end "
               "as either, 'it''s' as \"q`\\\"")
        self.assertEqual(len({self.alone(sql, n)[0]["mixed"] for n in FILES}), 2)
        found, _ = self.ask("--perfetto", sql)
        for row, name in zip(found, sorted(FILES, key=self.traces().get), strict=True):
            wanted = self.alone(sql, name)[0]
            wanted["either"] = str(wanted["either"])
            del row["trace"], row["row"]
            self.assertEqual(row, wanted)
            self.assertIsInstance(row["big"], int)

    def test_statement_and_condition(self):
        names = [n for n in FILES if n.startswith("apart")]
        found, _ = self.ask("--perfetto", "select count(*) as n from slice", "--where", "path like '%apart%'",
                            "select path, n, label_values[1] as label from perfetto any left join fleet_traces using trace order by path")
        self.assertEqual([(pathlib.Path(r["path"]).name, r["n"], r["label"]) for r in found],
                         [(n, self.alone("select count(*) as n from slice", n)[0]["n"], "first") for n in sorted(names)])
        found, _ = self.ask("--perfetto", "select ts from slice where dur = (select max(dur) from slice) limit 1",
                            "select count() as n from slice where (trace, ts) global in (select trace, ts from perfetto)")
        self.assertGreater(found[0]["n"], 0)

    def page_block(self, beginning):
        (block,) = re.findall(rf"^```sh\n({beginning}.*?)^```", PAGE.read_text(), re.M | re.S)
        return block

    def test_the_page(self):
        text = self.page_block("tp_shell fleet query --where").replace(" --where", f" --format jsonl --files {HOST}={self.files.url} --where", 1)
        p = subprocess.run(["sh", "-e"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "MERIDIAN_FLEET": self.servers[0].url,
                                "PATH": f"{pathlib.Path(harness.SHELL).resolve().parent}:{os.environ['PATH']}"})
        self.assertEqual(p.returncode, 0, p.stderr)
        found = self.lines(p.stdout)
        wanted = []
        for name in FILES:
            if int(self.query("select ifnull(sum(value), 0) as n from stats where severity = 'data_loss'", trace=self.folder / name).split()[1]) == 0:
                wanted += self.alone("INCLUDE PERFETTO MODULE slices.with_context; SELECT sum(dur) AS ns FROM thread_slice GROUP BY process_name", name)
        self.assertEqual([r["ns"] for r in found], sorted((r["ns"] for r in wanted), reverse=True)[:20])
        self.assertGreater(len(found), 0)

    def test_what_does_not_answer(self):
        sql = "select count(*) as n from slice"
        changed, gone, elsewhere = FILES[:3]
        outside = self.dir / "outside"
        outside.mkdir()
        try:
            with open(self.folder / changed, "ab") as f:
                f.write(b"more")
            os.rename(self.folder / gone, outside / gone)
            os.rename(self.folder / elsewhere, outside / elsewhere)
            (self.folder / elsewhere).symlink_to(outside / elsewhere)
            found, err = self.ask("--perfetto", sql, code=1)
            self.check(found, sql, FILES[3:])
            self.assertRegex(err, rf"{changed}: the file has other bytes than the recording")
            for name in (gone, elsewhere):
                self.assertRegex(err, rf"{name}: no file of that name is below the directories of --traces")
            self.assertIn("3 recordings did not answer", err)
        finally:
            shutil.copy(harness.DATA / changed, self.folder)
            (self.folder / elsewhere).unlink()
            for name in (gone, elsewhere):
                os.rename(outside / name, self.folder / name)
            outside.rmdir()
        self.check(self.ask("--perfetto", sql)[0], sql, FILES)

    def test_columns_that_make_no_table(self):
        _, err = self.ask("--perfetto", "select nonsense from slice", code=1)
        self.assertIn("no such column", err)
        self.assertIn(f"none of the {len(FILES)} recordings has answered", err)
        for sql, text in (("select 1 as trace", "a column 'trace' too many"), ("select 1 as a, 2 as a", "a column 'a' too many"),
                          ("create perfetto table t as select 1 as x", "no rows to give")):
            self.assertIn(text, self.ask("--perfetto", sql, code=1)[1])

    def test_mistakes(self):
        self.assertIn("no recording of the fleet is meant", self.ask("--perfetto", "select 1", "--where", "0", code=1)[1])
        self.assertIn("nonsense", self.ask("--perfetto", "select 1", "--where", "nonsense", code=1)[1])
        self.assertIn("belongs to --perfetto", self.ask("--where", "1", "select 1", code=1, files=[])[1])
        self.assertIn("--files: invalid value 'x'", self.fleet("query", "--perfetto", "select 1", "--files", "x", code=1).stderr.decode())
        self.assertIn("too long", self.ask("--perfetto", "select '" + "x" * 13000 + "'", code=1)[1])
        err = self.ask("--perfetto", "select 1 as x", files=["http://127.0.0.1:1"], code=1)[1]
        self.assertRegex(err, r"asking tp_shell server \(http --traces DIR\) where the files are: .*refused")

    def fake(self, body, end=b"0\r\n\r\n"):
        """A server that gives this answer, once."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            s, _ = listener.accept()
            with s:
                while b"\r\n\r\n" not in s.recv(65536):
                    pass
                s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body) + end)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(listener.close)
        self.addCleanup(thread.join)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def test_half_an_answer(self):
        """ClickHouse takes half an answer for a whole one: we do not."""
        line = b"%s\t0\t\\N\t\t['1']\n" % self.traces()[FILES[0]].encode()
        found, err = self.ask("--perfetto", "select 1 as x", "--where", f"path like '%{FILES[0]}'", files=[self.fake(line, b"")], code=1)
        self.assertEqual(found, [])
        self.assertIn("the answer ended before all rows were there", err)

    def test_other_columns_here_and_there(self):
        """What only SQL that makes its own tables could bring about: the columns of the first that answers count."""
        a, b, c = sorted(self.traces().values())[:3]
        where = f"trace in ('{a}', '{b}', '{c}')"

        def lines(names):
            return "".join(f"{t}\t0\t\\N\t\t['5']\n{t}\t1\t\ti\t['{n}']\n" for t, n in names).encode()
        found, err = self.ask("--perfetto", "select 5 as x", "--where", where, files=[self.fake(lines([(b, "y"), (a, "x"), (c, "x")]))], code=1)
        self.assertEqual(found, [{"trace": t, "row": 0, "x": 5} for t in (a, c)])
        self.assertIn("gives other columns here", err)
        for names in ([(a, "x"), (b, "x"), (c, "x"), (a, "x")], [(a, "x"), ("0" * 8, "x")]):
            _, err = self.ask("--perfetto", "select 5 as x", "--where", where, files=[self.fake(lines(names))], code=1)
            self.assertIn("has answered about a recording that it was not asked for", err)

    def test_through_the_shard_of_the_host(self):
        """Files on a shard's own machine: its ClickHouse asks the server on its loopback. Nothing need be said."""
        with socket.socket() as s:
            if not self.other or s.connect_ex(("127.0.0.1", 9001)) == 0:
                self.skipTest("needs root (another host name) and the port 9001")
        extra = self.dir / "extra"
        extra.mkdir()
        shutil.copy(harness.DATA / "linux-kernel-overrun.pftrace", extra)
        p = subprocess.run([*self.other, harness.SHELL, "fleet", "add", "--server", self.servers[0].url, extra], stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 0, p.stderr)
        beside = Files(extra, port=9001)
        try:
            sql = "select count(*) as n from sched"
            before = self.servers[1].ask("SELECT value FROM system.events WHERE event = 'Query'")
            found, _ = self.ask("--perfetto", sql, "--where", f"host = '{OTHER}'", files=[])
            self.assertEqual([r["n"] for r in found], [int(self.query(sql, trace=extra / "linux-kernel-overrun.pftrace").split()[1])])
            self.assertNotEqual(before, self.servers[1].ask("SELECT value FROM system.events WHERE event = 'Query'"))
        finally:
            self.assertEqual(beside.stop(), 0, beside.log)
            for s in self.servers:
                s.ask(f"ALTER TABLE fleet_local.commits DELETE WHERE host = '{OTHER}'")
        self.assertIn("the recordings' files are on", self.no_such_host())

    def no_such_host(self):
        command = inside("lab-nine")
        extra = self.dir / "nine"
        extra.mkdir()
        shutil.copy(harness.DATA / "mm-small-ring.pftrace", extra)
        subprocess.run([*command, harness.SHELL, "fleet", "add", "--server", self.servers[0].url, extra], check=True, stderr=subprocess.DEVNULL)
        try:
            return self.ask("--perfetto", "select 1", "--where", "host = 'lab-nine'", files=[], code=1)[1]
        finally:
            for s in self.servers:
                s.ask("ALTER TABLE fleet_local.commits DELETE WHERE host = 'lab-nine'")


if __name__ == "__main__":
    clickhouse.need()
    harness.main()

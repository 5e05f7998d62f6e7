"""tp_shell fleet on one server: what is added, asked, refused and told. Skipped (77) where there is no ClickHouse."""
import json
import pathlib
import shutil
import time
import unittest

import clickhouse
import fleet_oracle
import harness
import test_export

TRACES = test_export.TRACES


class Fleet(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = clickhouse.Server(cls.dir / "server")
        cls.server.configure({})
        cls.server.start()
        cls.database = "fleet"
        cls().fleet("init")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        super().tearDownClass()

    def setUp(self):
        """The fleet is empty: making one anew takes seconds."""
        for (table,) in self.server.rows("SELECT DISTINCT table FROM system.parts WHERE active AND database = 'fleet_local' AND table != 'meta'"):
            self.server.ask(f"TRUNCATE TABLE fleet_local.`{table}`")

    def fleet(self, action, *args, code=0, env=None, database=None):
        return self.run_shell("fleet", action, "--database", database or self.database, *args, code=code,
                              env={"MERIDIAN_FLEET": self.server.url, **(env or {})})

    def add(self, *args, code=0, **kw):
        """What `fleet add` says."""
        return self.fleet("add", *args, code=code, **kw).stderr.decode()

    def rows(self, sql):
        return [list(json.loads(line).values())
                for line in self.fleet("query", "--format", "jsonl", sql).stdout.decode().splitlines()]

    def one(self, sql):
        return self.rows(sql)[0][0]

    def oracle(self):
        return fleet_oracle.Oracle(fleet_oracle.columns_of(self.server, self.database + "_local"))

    def test_cells(self):
        """Every cell of every table of five traces is what a query of the trace answers."""
        base = test_export.Export()
        base.dir, base.empty = self.dir, self.empty
        self.add(*[harness.DATA / t for t in TRACES])
        traces = {pathlib.Path(path).name: trace for path, trace in self.rows("SELECT path, trace FROM fleet_traces")}
        for name in TRACES:
            for table, (names, rows) in base.expected(harness.DATA / name).items():
                columns = ", ".join(f"`{n}`" for n in names)
                found = self.rows(f"SELECT {columns} FROM `{table}` WHERE trace = '{traces[name]}' ORDER BY id")
                kept = {"cpu": ("cpu", None), "stats": ("value", 0)}.get(table)  # rows with this are not worth keeping
                wanted = [r for r in rows if not kept or r[names.index(kept[0])] != kept[1]]
                self.assertEqual(len(found), len(wanted), (name, table))
                for got, row in zip(found, sorted(wanted, key=lambda r: r[names.index("id")])):
                    row = base.steady(names, row)
                    got = base.steady(names, got)
                    row = ["" if n == "machine" and v is None else v for n, v in zip(names, row)]
                    self.assertEqual(got, row, (name, table))

    def test_sums(self):
        """All recordings at hand: sums of each are those of the trace asked alone."""
        paths = sorted([*harness.DATA.glob("*.pftrace"), *harness.DATA.glob("*.pftrace.gz")])
        text = self.add(*paths)
        self.assertIn(f"{len(paths)} recordings: {len(paths)} added", text)
        oracle = self.oracle()
        found = oracle.of_fleet(self.server, self.database)
        traces = {path: trace for path, trace in self.rows("SELECT path, trace FROM fleet_traces")}
        self.assertEqual(len(found), len(paths))
        for path in paths:
            self.assertEqual(fleet_oracle.differences(found[traces[str(path)]], oracle.of_trace(path)), [], path)

    def test_slow_query(self):
        """A query that answers late is waited for; --timeout ends it, at the server, too."""
        slow = "SELECT sleepEachRow(0.5) AS slept FROM numbers(%d) SETTINGS max_block_size = 1"
        out = self.fleet("query", "--format", "csv", "--dev", "--dev-flag", "fleet-answer-ms=700", slow % 5).stdout.decode()
        self.assertEqual(out.split(), ['slept'] + ["0"] * 5)
        begin = time.monotonic()
        err = self.fleet("query", "--timeout", "1s", slow % 100, code=1).stderr.decode()
        self.assertRegex(err, "in time|Timeout exceeded")
        self.assertLess(time.monotonic() - begin, 10)
        running = "SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow%' AND query NOT LIKE '%processes%'"
        for _ in range(100):
            if self.server.ask(running).strip() == "0":
                break
            time.sleep(0.1)
        self.assertEqual(self.server.ask(running).strip(), "0")

    def test_again(self):
        """A second run adds nothing; copies of a file, under any name, are one recording."""
        copy = self.dir / "copy"
        copy.mkdir()
        for name in TRACES[:3]:
            shutil.copy(harness.DATA / name, copy / name)
        shutil.copy(harness.DATA / TRACES[0], copy / "other-name")
        text = self.add(copy, "--jobs", "1")
        self.assertIn("4 recordings: 3 added", text)
        self.assertIn("1 copies of others", text)
        rows = self.one("SELECT count() FROM thread")
        text = self.add(copy, str(copy / "*.pftrace"))
        self.assertIn("0 added", text)
        self.assertIn("7 were there", text)
        self.assertEqual(self.one("SELECT count() FROM fleet_traces"), 3)
        self.assertEqual(self.one("SELECT count() FROM thread"), rows)

    def test_garbage(self):
        """What cannot be imported is a row of fleet_errors, and no stop; the exit status says so."""
        folder = self.dir / "mixed"
        (folder / "deep").mkdir(parents=True)
        (folder / "a-garbage").write_bytes(bytes(range(256)) * 40)
        (folder / "b-empty").write_bytes(b"")
        shutil.copy(harness.DATA / TRACES[0], folder / "deep" / "good.pftrace")
        (folder / "deep" / ".hidden").write_bytes(b"not looked at")
        (folder / "deep" / "unreadable").symlink_to("/nowhere")
        text = self.add(folder, code=1)
        self.assertIn("a-garbage: cannot be imported:", text)
        self.assertIn("1 added", text)
        self.assertIn("2 cannot be imported (fleet_errors)", text)
        errors = dict(self.rows("SELECT path, error FROM fleet_errors"))
        self.assertEqual({pathlib.Path(p).name for p in errors}, {"a-garbage", "b-empty"})
        self.assertIn("Unknown trace type", errors[str(folder / "a-garbage")])
        self.add(folder, code=1)
        self.assertEqual(self.one("SELECT count() FROM fleet_errors"), 2, "told twice is one error")
        self.assertEqual(self.one("SELECT count() FROM fleet_traces"), 1)

    def test_one_uuid(self):
        """Two recordings with one UUID and other bytes: both are there, each whole, and it is told."""
        first, second = self.dir / "first.pftrace", self.dir / "second.pftrace"
        data = (harness.DATA / "linux-sched.pftrace").read_bytes()
        first.write_bytes(data)
        self.run_shell("cut", "--from", "0.1s", "-o", second, first)
        uuids = [self.query("select str_value from metadata where name = 'trace_uuid'", trace=p).splitlines()[1] for p in (first, second)]
        self.assertEqual(uuids[0], uuids[1])
        text = self.add(first)
        self.assertNotIn("says the UUID", text)
        text = self.add(second)
        self.assertIn(f"second.pftrace: says the UUID {uuids[0].strip(chr(34))} as ", text)
        self.assertEqual(self.one("SELECT count() FROM fleet_traces"), 2)
        counts = dict(self.rows("SELECT path, n FROM fleet_traces ANY INNER JOIN (SELECT trace, count() AS n FROM sched_slice GROUP BY trace) USING trace"))
        for path in (first, second):
            self.assertEqual(counts[str(path)], int(self.query("select count(*) from sched", trace=path).splitlines()[1]))
        self.assertEqual(self.rows("SELECT uuid, traces FROM fleet_same_uuid"), [[uuids[0].strip('"'), 2]])

    def test_formats(self):
        """Rows print as those of tp_shell query."""
        self.add(harness.DATA / TRACES[0])
        sql = "select 1 as a, 'x\ty\\'z\n' as b, NULL as c, 0.5 as d, toUInt64(18446744073709551615) as e, -7 as f, '' as g"
        ours = "select 1 as a, 'x\ty''z\n' as b, NULL as c, 0.5 as d, '18446744073709551615' as e, -7 as f, '' as g"
        for form in ("classic", "csv", "table", "box", "markdown", "line", "json", "jsonl"):
            self.assertEqual(self.fleet("query", "--format", form, sql).stdout.decode(), self.query(ours, "--format", form), form)
        self.assertEqual(self.rows("select name from thread where 0"), [])
        err = self.fleet("query", "select nothing from nowhere", code=1).stderr.decode()
        self.assertIn("nowhere", err)
        self.assertIn(self.server.url, err)
        err = self.fleet("query", f"drop table {self.database}.thread", code=1).stderr.decode()
        self.assertIn("readonly", err)

    def test_status(self):
        self.add(harness.DATA / "linux-sched.pftrace", "--build", "b7", "--label", "lab=3", "--label", "who=me=you")
        text = self.fleet("status").stdout.decode()
        self.assertIn(f"shard 1 replica 1  {self.server.url}  1 traces, ", text)
        self.assertRegex(text, r"(?m)^sched_slice +1 +\d+ ")
        row = self.rows("SELECT build, label_names, label_values, machines, lost, toString(day), size FROM fleet_traces")[0]
        self.assertEqual(row[:4], ["b7", "['lab','who']", "['3','me=you']", 1])
        self.assertEqual(row[6], (harness.DATA / "linux-sched.pftrace").stat().st_size)
        realtime = int(self.query("select clock_value from clock_snapshot where clock_name = 'REALTIME' limit 1",
                                  trace=harness.DATA / "linux-sched.pftrace").splitlines()[1])
        self.assertEqual(row[5], time.strftime("%Y-%m-%d", time.gmtime(realtime // 10**9)))

    def test_another_version(self):
        """A schema of another version is refused, with what to do, and nothing is changed."""
        self.add(harness.DATA / TRACES[0])
        meta = f"{self.database}_local.meta"
        for key, value in (("columns", "abc"), ("schema", "7")):
            before = self.server.ask(f"SELECT value FROM {meta} WHERE key = '{key}'").strip()
            self.server.ask(f"ALTER TABLE {meta} DELETE WHERE key = '{key}'")
            while self.server.ask("SELECT count() FROM system.mutations WHERE is_done = 0").strip() != "0":
                time.sleep(0.02)
            self.server.ask(f"INSERT INTO {meta} VALUES ('{key}', '{value}')")
            for action in (["add", harness.DATA / TRACES[1]], ["query", "select 1"], ["status"], ["drop", "--older-than", "0s"], ["init"]):
                err = self.fleet(*action, code=1).stderr.decode()
                self.assertIn("has the schema", err)
                self.assertIn("tp_shell fleet init --database NAME", err)
            self.server.ask(f"ALTER TABLE {meta} DELETE WHERE key = '{key}'")
            while self.server.ask("SELECT count() FROM system.mutations WHERE is_done = 0").strip() != "0":
                time.sleep(0.02)
            self.server.ask(f"INSERT INTO {meta} VALUES ('{key}', '{before}')")
        self.assertEqual(self.one("SELECT count() FROM fleet_traces"), 1)

    def test_no_server(self):
        port = clickhouse.free_ports(1)[0]
        gone = {"MERIDIAN_FLEET": f"http://127.0.0.1:{port}"}
        for action in (["init"], ["status"], ["query", "select 1"], ["add", harness.DATA / TRACES[0]]):
            err = self.fleet(*action, code=1, env=gone).stderr.decode()
            self.assertIn(f"http://127.0.0.1:{port}", err)
            self.assertIn("refused", err)
        err = self.fleet("status", code=1, database="never_made").stderr.decode()
        self.assertIn("there is no fleet 'never_made'; make one with tp_shell fleet init", err)
        both = {"MERIDIAN_FLEET": f"http://127.0.0.1:{port},{self.server.url}"}
        self.assertEqual(self.fleet("query", "--format", "csv", "select 5 as x", env=both).stdout, b"x\n5\n")

    def test_strange_names(self):
        """Paths, builds and labels with every character that TabSeparated and SQL know."""
        folder = self.dir / "st'ran\\ge\ttab\nline"
        folder.mkdir()
        shutil.copy(harness.DATA / TRACES[0], folder / "x'y")
        self.add(folder, "--build", "b'\\\t\n1", "--label", "k'\\=v'\\\t\n")
        path, build, names, values = self.rows("SELECT path, build, label_names[1], label_values[1] FROM fleet_traces")[0]
        self.assertEqual([path, build, names, values], [str(folder / "x'y"), "b'\\\t\n1", "k'\\", "v'\\\t\n"])

    @unittest.skipIf("asan" in harness.SHELL, "sanitizers need more memory than any limit")
    def test_memory(self):
        """A recording that needs more than the budget is an error of its own; the others are added."""
        big = self.dir / "big.pftrace"
        big.write_bytes((harness.DATA / "linux-sched.pftrace").read_bytes() * 150)
        text = self.add(big, harness.DATA / TRACES[0], harness.DATA / TRACES[1], "--memory", "64M", "--jobs", "2", code=1)
        self.assertIn("2 added", text)
        self.assertIn("big.pftrace: cannot be imported: ", text)
        self.assertIn("memory", self.one("SELECT error FROM fleet_errors").lower())
        self.assertIn("1 added", self.add(big, "--memory", "4G"))
        self.assertEqual(self.rows("SELECT * FROM fleet_errors"), [], "it is there now")

    def test_command_line(self):
        for args, text in ((["add"], "give files"), (["drop"], "--older-than TIME is needed"), (["nothing"], "nothing"), (["quer", "x"], "query"),
                           (["drop", "--older-than", "5x"], "use a number with s, m, h, d or w"), (["add", "--memory", "1K", "x"], "64M is the least"),
                           (["add", "/nowhere"], "/nowhere"), (["add", "/nowhere*.x"], "no file is called like that"),
                           (["init", "http://a", "http://b"], "--cluster"), (["init", "https://a"], "https is not supported"),
                           (["add", "--label", "x", harness.DATA / TRACES[0]], "use NAME=VALUE"), (["status", "x"], "one argument too many")):
            err = self.fleet(*args, code=1).stderr.decode()
            self.assertIn(text, err)
        err = self.fleet("init", database="a-b", code=1).stderr.decode()
        self.assertIn("invalid name 'a-b'", err)


if __name__ == "__main__":
    clickhouse.need()
    harness.main()

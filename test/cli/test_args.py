"""The command line: commands, flags of every kind, the older form, help, errors and exit codes."""
import os
import resource
import signal
import sqlite3
import subprocess
import time

import harness


class Help(harness.Case):
    def test_no_arguments_is_help(self):
        out = self.run_shell().stdout.decode()
        for word in ("query", "interactive", "check", "export", "convert", "summarize", "bundle", "util", "server",
                     "metrics", "--full-sort"):
            self.assertIn(word, out)

    def test_help_of_each_command(self):
        for cmd in ("query", "interactive", "check", "export"):
            by_word = self.run_shell("help", cmd).stdout
            by_flag = self.run_shell(cmd, "--help").stdout
            self.assertEqual(by_word, by_flag)
            self.assertIn(f"Usage: tp_shell {cmd}", by_word.decode())
            self.assertEqual(by_flag, self.run_shell(cmd, "-h").stdout)

    def test_help_of_unknown_command(self):
        self.fails("help", "x", text="Unknown command 'x'.")

    def test_help_flags(self):
        self.assertIn("Usage: tp_shell", self.run_shell("-h").stdout.decode())
        self.assertIn("--run-metrics", self.run_shell("--help-classic").stdout.decode())

    def test_version(self):
        for args in (("-v",), ("--version",), ("query", "--version")):
            lines = self.run_shell(*args).stdout.decode().splitlines()
            self.assertEqual(len(lines), 2)
            self.assertRegex(lines[0], r"v\d+\.\d+")
            self.assertEqual(lines[1], "Trace Processor RPC API version: 14")


class Flags(harness.Case):
    SQL = "select 1 as a"
    ANSWER = b'"a"\n1\n'

    def ask(self, *flags, **kw):
        self.assertEqual(self.run_shell("query", *flags, self.empty, self.SQL, **kw).stdout, self.ANSWER, flags)

    def test_flags_that_work(self):
        for flags in (["--full-sort"], ["--no-ftrace-raw"], ["--crop-track-events"], ["--allow-sql-file-access"],
                      ["--dev"], ["--dev-flag", "ignore-ftrace-parse-errors=true"], ["--extra-checks"],
                      ["--dev-flag=a=b", "--dev-flag", "c=d"], ["-W"], ["--wide"], ["--threads", "1"],
                      ["--clock-model", "compatible"], ["--clock-model=linear"], ["--clock-model", "auto"]):
            self.ask(*flags)

    def test_flags_may_stand_anywhere(self):
        for args in (["--full-sort", "query", self.empty, self.SQL], ["query", self.empty, self.SQL, "--full-sort"],
                     ["query", self.empty, "--full-sort", self.SQL], ["query", "--full", self.empty, self.SQL],
                     ["query", "--", self.empty, self.SQL], ["--dev-flag", "query=1", "query", self.empty, self.SQL]):
            self.assertEqual(self.run_shell(*args).stdout, self.ANSWER, args)

    def test_flags_whose_feature_comes_later_say_so(self):
        for flags in (["--metric-extension", "a@b"], ["--register-files-dir", "."]):
            self.fails("query", *flags, self.empty, self.SQL, text="not")

    def test_bad_flags(self):
        self.fails("query", "--nonsense", self.empty, self.SQL, text="unknown flag '--nonsense'")
        self.fails("query", "-Z", self.empty, self.SQL, text="unknown flag '-Z'")
        self.fails("query", self.empty, self.SQL, "--threads", text="--threads needs a value")
        self.fails("query", "--threads", "x", self.empty, self.SQL, text="not a count")
        self.fails("query", "--full-sort=1", self.empty, self.SQL, text="takes no value")
        self.fails("query", "--dev-flag", "x", self.empty, self.SQL, text="KEY=VALUE")
        self.fails("query", "--clock-model", "x", self.empty, self.SQL, text="auto, compatible, linear")
        self.fails("query", "--format", "x", self.empty, self.SQL, text="none of classic, csv, table, box, markdown, line, json, jsonl")
        self.fails("query", "--override-stdlib", ".", self.empty, self.SQL, text="--dev")
        self.fails("-d", self.empty, text="unknown flag '-d'")

    def test_misspelt(self):
        trace = harness.DATA / "linux-deflate.pftrace"
        for args, text in (
                (["qury", trace], "'qury' is neither a command nor a file (did you mean 'query'?)"),
                (["qeury", trace, "select 1"], "did you mean 'query'?"),
                (["chek", trace], "did you mean 'check'?"),
                (["chekc", "--format", "junit", trace], "did you mean 'check'?"),
                (["help", "exprot"], "did you mean 'export'?"),
                (["query", "--fromat", "json", trace, "select 1"], "unknown flag '--fromat' (did you mean '--format'?)"),
                (["query", "--querry-file", "x", trace], "did you mean '--query-file'?"),
                (["query", "--me", trace, "select 1"], "'--me' may be --metric-extension"),
                (["query", "--port", "1", trace, "select 1"], "--port is a flag of other commands"),
                (["query", "--format", "tabel", trace, "select 1"], "did you mean 'table'?"),
                (["check", "--format", "jnuit", trace], "did you mean 'junit'?"),
                (["query", "--clock-model", "liner", trace, "select 1"], "did you mean 'linear'?"),
                (["query", "--method", "exakt", trace, "select 1"], "did you mean 'exact'?"),
                (["export", "sqllite", trace, "-o", "x"], "did you mean 'sqlite'?"),
                (["util", "merg", "x"], "did you mean 'merge'?"),
                (["server", "htpp"], "did you mean 'http'?"),
        ):
            self.fails(*args, text=text)
        for args in (["nothing-like-it"], ["./qury"], ["query", "--zzzz", trace, "select 1"],
                     ["x", trace], ["quantization", trace]):
            self.assertNotIn("did you mean", self.fails(*args))
        (self.dir / "chec").write_bytes(b"")  # a file of the name is a trace
        self.run_shell("-Q", "select 1", self.dir / "chec")
        p = self.run_shell("chec", cwd=self.dir, stdin=b".tabels\n.mode jsno\n.nonsense\n", code=1)
        self.assertIn(b"unknown command .tabels (did you mean '.tables'?)", p.stderr)
        self.assertIn(b"(did you mean 'json'?)", p.stderr)
        self.assertIn(b"unknown command .nonsense\n", p.stderr)

    def test_commands_to_come(self):
        self.fails("metrics", self.empty, text="not available yet")
        for args in (["metrics", self.empty], ["--run-metrics", "a", self.empty],
                     ["--metric-extension", "a@b", "-Q", "select 1", self.empty]):
            self.fails(*args, text="tp_shell summarize")

    def test_missing_arguments(self):
        self.fails("query", text="trace file is needed")
        self.fails("interactive", text="trace file is needed")
        self.fails("check", text="trace file is needed")
        self.fails("export", "sqlite", text="needed")
        self.fails("--full-sort", text="trace file is needed")

    def test_file_with_the_name_of_a_command(self):
        (self.dir / "query").write_bytes(b"")
        p = self.run_shell("query", "./query", self.SQL, cwd=self.dir)
        self.assertEqual(p.stdout, self.ANSWER)
        self.assertIn(b"note: 'query'", p.stderr)

    def test_no_mmap(self):
        self.ask(env={"TRACE_PROCESSOR_NO_MMAP": "1"})
        count = "select count(*) as n from ftrace_event"
        mapped = self.query(count, trace=harness.DATA / "linux-sched.pftrace")
        self.assertEqual(mapped, self.query(count, trace=harness.DATA / "linux-sched.pftrace",
                                            env={"TRACE_PROCESSOR_NO_MMAP": "1"}))

    def test_no_ftrace_raw(self):
        trace = harness.DATA / "linux-deflate.pftrace"
        sql = "select (select count(*) from ftrace_event) = 0 as none, (select count(*) from sched) > 0 as some"
        self.assertEqual(self.query(sql, trace=trace), '"none","some"\n0,1\n')
        self.assertEqual(self.query(sql, "--no-ftrace-raw", trace=trace), '"none","some"\n1,1\n')

    def test_sql_opens_files_only_when_allowed(self):
        sql = f"attach '{self.dir}/x.db' as x; create table x.t as select 1; select 2 as b"
        self.fails("query", self.empty, sql, text="not authorized")
        self.assertFalse((self.dir / "x.db").exists())
        self.assertEqual(self.query(sql, "--allow-sql-file-access"), '"b"\n2\n')

    def test_remote_traces(self):
        self.fails("query", "https://example.org/trace", self.SQL, text="not fetched over the network")


class Metatrace(harness.Case):
    def test_written_and_read_back(self):
        out = self.dir / "meta.pftrace"
        for flags in (["-m", out], ["--metatrace", out, "--metatrace-categories", "query_toplevel,api,db",
                                    "--metatrace-buffer-capacity", "100"]):
            self.query("select 'needle'; select 2", *flags)
            self.assertIn(b"needle", out.read_bytes())
            self.query("select 1", trace=out)

    def test_capacity(self):
        out = self.dir / "small.pftrace"
        self.query("select 'first'; select 'second'; select 'third'", "-m", out, "--metatrace-buffer-capacity=2")
        self.assertNotIn(b"first", out.read_bytes())
        self.assertIn(b"third", out.read_bytes())

    def test_classic(self):
        out = self.dir / "classic.pftrace"
        self.run_shell("-m", out, "--metatrace-categories", "*", "-Q", "select 'needle'", self.empty)
        self.assertIn(b"needle", out.read_bytes())

    def test_errors(self):
        self.fails("query", "-m", "x", "--metatrace-categories", "nope", self.empty, "select 1", text="'nope'")
        p = self.run_shell("query", "-m", "/nonexistent/x", self.empty, "select 1", code=1)
        self.assertIn(b"/nonexistent/x", p.stderr)


class Packages(harness.Case):
    def setUp(self):
        (self.dir / "mine" / "sub").mkdir(parents=True, exist_ok=True)
        (self.dir / "mine" / "a.sql").write_text("create perfetto table mine_a as select 1 as x;")
        (self.dir / "mine" / "sub" / "b.sql").write_text("create perfetto table mine_b as select 2 as x;")

    def test_add(self):
        for flags, module, table in ((["--add-sql-package", self.dir / "mine"], "mine.a", "mine_a"),
                                     (["--add-sql-package", self.dir / "mine"], "mine.sub.b", "mine_b"),
                                     ([f"--add-sql-package={self.dir}/mine@your.own"], "your.own.a", "mine_a")):
            self.assertEqual(self.query(f"include perfetto module {module}; select x from {table}", *flags).split()[0],
                             '"x"')

    def test_clash(self):
        twice = ["--add-sql-package", self.dir / "mine", "--add-sql-package", self.dir / "mine"]
        self.fails("query", *twice, self.empty, "select 1", text="mine")
        self.query("include perfetto module mine.a", "--add-sql-package", self.dir / "mine", "--override-sql-package",
                   self.dir / "mine")

    def test_missing(self):
        self.fails("query", "--add-sql-package", "/nonexistent", self.empty, "select 1", text="/nonexistent")

    def test_survives_reset(self):
        p = self.run_shell("--add-sql-package", self.dir / "mine", self.empty, stdin=b"""include perfetto module mine.a;
.reset
include perfetto module mine.a;
.mode csv
select x from mine_a;
""")
        self.assertIn(b'\nx\n1\n', p.stdout)

    def test_override_stdlib(self):
        sql = "include perfetto module mine.a; select x from mine_a"
        self.assertEqual(self.query(sql, "--dev", "--override-stdlib", self.dir), '"x"\n1\n')


class Classic(harness.Case):
    def setUp(self):
        self.sql = self.dir / "q.sql"
        self.sql.write_text("select 7 as seven;\n")

    def test_query_file(self):
        for flags in (["-q", self.sql], [f"-q{self.sql}"], ["--query-file", self.sql], [f"--query-file={self.sql}"]):
            self.assertEqual(self.run_shell(*flags, self.empty).stdout, b'"seven"\n7\n', flags)
            self.assertEqual(self.run_shell(self.empty, *flags).stdout, b'"seven"\n7\n', flags)

    def test_query_string(self):
        for flags in (["-Q", "select 8 as e"], ["--query-string", "select 8 as e"]):
            self.assertEqual(self.run_shell(*flags, self.empty).stdout, b'"e"\n8\n')

    def test_the_string_wins(self):
        self.assertEqual(self.run_shell("-q", self.sql, "-Q", "select 9 as n", self.empty).stdout, b'"n"\n9\n')

    def test_global_flags(self):
        out = self.run_shell("--full-sort", "--no-ftrace-raw", "--crop-track-events", "--dev", "--dev-flag", "a=b",
                             "--extra-checks", "-W", "-q", self.sql, self.empty).stdout
        self.assertEqual(out, b'"seven"\n7\n')

    def test_perf_file(self):
        for flags in (["-p", self.dir / "perf", "-q", self.sql], ["--perf-file", self.dir / "perf", "-Q", "select 1"]):
            self.run_shell(*flags, self.empty)
            self.assertRegex((self.dir / "perf").read_text(), r"^\d+,\d+$")

    def test_perf_file_needs_a_query(self):
        self.fails("-p", self.dir / "p", self.empty, text="-p")
        self.fails("-p", self.dir / "p", "-i", "-Q", "select 1", self.empty, text="-p")

    def test_export(self):
        for flags in (["-e", self.dir / "a.db"], ["--export", self.dir / "a.db"]):
            self.run_shell(*flags, self.empty)
            with sqlite3.connect(self.dir / "a.db") as db:
                self.assertGreater(db.execute("select count(*) from sqlite_master").fetchone()[0], 50)
            db.close()
        self.fails("-e", self.dir / "a.db", "-q", self.sql, self.empty, text="-e")

    def test_excluding_flags(self):
        self.fails("--summary", "--run-metrics", "a", self.empty, text="exclude each other")

    def test_what_comes_later(self):
        self.fails("--run-metrics", "a", "--metrics-output", "text", "--pre-metrics", "b", self.empty,
                   text="not available yet")

    def test_interactive_from_a_pipe(self):
        p = self.run_shell(self.empty, stdin=b"select 5 as five;\n")
        self.assertIn(b"five", p.stdout)
        self.assertIn(b" 5 \n", p.stdout)
        p = self.run_shell("-i", "-q", self.sql, self.empty, stdin=b"select 6 as six;\n")
        self.assertIn(b'"seven"\n7\n', p.stdout)
        self.assertIn(b"six", p.stdout)


class Export(harness.Case):
    def test_export_sqlite(self):
        db_file = self.dir / "out.db"
        db_file.write_text("what was there before")
        self.run_shell("export", "sqlite", harness.DATA / "linux-deflate.pftrace", "-o", db_file)
        trace = harness.DATA / "linux-deflate.pftrace"
        with sqlite3.connect(db_file) as db:
            for table in ("sched", "thread", "process", "thread_state", "stats"):
                ours = self.query(f"select count(*) as n from {table}", trace=trace).split()[1]
                self.assertEqual(str(db.execute(f"select count(*) from {table}").fetchone()[0]), ours, table)
            for (view,) in db.execute("select name from sqlite_master where type = 'view'").fetchall():
                db.execute(f'select * from "{view}" limit 1')
        db.close()

    def test_errors(self):
        self.fails("export", "sqlite", self.empty, text="-o FILE")
        self.fails("export", "xyz", self.empty, "-o", "x", text="unknown format 'xyz'")
        self.fails("export", "arrow_tar", self.empty, "-o", "x", text="not available yet")
        self.fails("export", "sqlite", self.empty, "-o", "/nonexistent/x.db", text="/nonexistent/x.db")

    def test_a_full_disk_leaves_what_was_there(self):
        where = self.dir / "full"
        where.mkdir()
        trace = harness.DATA / "linux-deflate.pftrace"

        def limit():  # writes past it fail, as on a full disk
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

        (where / "out").write_text("before")
        names = [f"select '{i}' as \"{'x' * 90}{i}\"" for i in range(3)]
        for args in (["export", "sqlite", trace, "-o", where / "out"],
                     ["query", "--allow-sql-file-access", trace, f"select export_json('{where / 'out'}')"],
                     ["check", "--format", "junit", "-o", where / "out", *[trace] * 40],
                     ["util", "merge", "-o", where / "out", trace, trace],
                     ["query", "-m", where / "out", trace, ";".join(names * 40)]):
            p = subprocess.run([harness.SHELL, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                               preexec_fn=limit, timeout=120)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertEqual([(f.name, f.read_text()) for f in where.iterdir()], [("out", "before")], args)

    def test_a_signal_leaves_no_half(self):
        where = self.dir / "signal"
        where.mkdir()
        sql = f"""create or replace perfetto view process as with recursive r(i) as (select 1 union all select i + 1
                  from r) select i as upid, i as pid, 'name' as name, 0 as machine_id from r;
                  select export_json('{where / "out"}')"""
        for number in (signal.SIGINT, signal.SIGTERM):
            p = subprocess.Popen([harness.SHELL, "query", "--allow-sql-file-access", str(self.empty), sql],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            end = time.time() + 60
            while not list(where.iterdir()) and time.time() < end:
                time.sleep(0.01)
            self.assertEqual([f.name.startswith("out.part-") for f in where.iterdir()], [True])
            p.send_signal(number)
            p.communicate(timeout=60)
            self.assertEqual(p.returncode, -number)
            self.assertEqual(list(where.iterdir()), [])


if __name__ == "__main__":
    harness.main()

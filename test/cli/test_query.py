"""tp_shell query: where the SQL comes from, the output formats to the byte, errors."""
import csv
import io
import json
import os
import pathlib
import subprocess

import harness


class Sources(harness.Case):
    def test_argument(self):
        self.assertEqual(self.query("select 1 as a"), '"a"\n1\n')

    def test_standard_input(self):
        for flags in ([], ["-f", "-"], ["--query-file=-"]):
            p = self.run_shell("query", *flags, self.empty, stdin=b"select 2 as b")
            self.assertEqual(p.stdout, b'"b"\n2\n')

    def test_file(self):
        (self.dir / "f.sql").write_text("-- a comment\nselect 3 as c\n;\n")
        for flags in (["-f", self.dir / "f.sql"], ["--query-file", self.dir / "f.sql"]):
            self.assertEqual(self.run_shell("query", *flags, self.empty).stdout, b'"c"\n3\n')
            self.assertEqual(self.run_shell("query", self.empty, *flags).stdout, b'"c"\n3\n')

    def test_the_argument_wins(self):
        (self.dir / "f.sql").write_text("select 3 as c")
        self.assertEqual(self.query("select 4 as d", "-f", self.dir / "f.sql"), '"d"\n4\n')

    def test_trace_from_a_pipe(self):
        trace = (harness.DATA / "linux-deflate.pftrace").read_bytes()
        sql = "select count(*) as n from sched"
        self.assertEqual(self.run_shell("query", "-", sql, stdin=trace).stdout.decode(),
                         self.query(sql, trace=harness.DATA / "linux-deflate.pftrace"))

    def test_files_that_tell_no_size(self):
        """As /sys/kernel/tracing/trace: here the arguments of a process, which are a trace."""
        event = json.dumps([{"name": "slept", "ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 2}])
        with subprocess.Popen([event], executable="/bin/cat", stdin=subprocess.PIPE) as p:
            trace = f"/proc/{p.pid}/cmdline"
            while "slept" not in open(trace).read():  # not before it is another program
                pass
            self.assertEqual(self.query("select name, dur from slice", trace=trace), '"name","dur"\n"slept",2000\n')
            p.stdin.close()
        self.fails("query", "/proc/self/maps", "select 1", text="/proc/self/maps")

    def test_trace_and_sql_from_the_same_pipe(self):
        self.fails("query", "-", stdin=b"select 1", text="cannot both come from standard input")

    def test_nothing_to_run(self):
        for text in ("", " \n", "-- comment only", ";"):
            self.fails("query", self.empty, stdin=text.encode(), text="No valid SQL to run")

    def test_missing_files(self):
        self.fails("query", "/nonexistent.pftrace", "select 1", text="/nonexistent.pftrace")
        self.fails("query", "-f", "/nonexistent.sql", self.empty, text="/nonexistent.sql")

    def test_a_missing_trace_is_no_sql(self):
        trace = harness.DATA / "linux-deflate.pftrace"
        self.fails("query", trace, "missing.pftrace", stdin=b"select 1", text="missing.pftrace' is neither a file nor SQL")

    def test_unknown_format(self):
        junk = self.dir / "junk"
        junk.write_bytes(b"\xfe\xed\xfa\xce" * 64)
        self.fails("query", junk, "select 1", text="junk")


class ForOthers(harness.Case):
    """Formats that other programs read: every value comes back as it was."""
    SQL = "select 1 as a, 'x,\"q\"' || char(10) || '|' as \"t,x\", null as n, 0.1 as d, '' as e, '[NULL]' as s, x'01ff' as b, " \
          "1e300 * 1e300 as inf"

    def test_csv(self):
        out = self.query(self.SQL, "--format", "csv")
        self.assertEqual(out, 'a,"t,x",n,d,e,s,b,inf\n1,"x,""q""\n|",,0.1,"",[NULL],01ff,Inf\n')
        rows = list(csv.reader(io.StringIO(out)))
        self.assertEqual(rows[1][:2], ["1", 'x,"q"\n|'])

    def test_floats_come_back(self):
        rows = self.query("select 1 / 3.0 as x union all select 123456789.123456789 union all select 5e-324 union all select 0.1 + 0.2",
                          "--format", "csv").split()[1:]
        self.assertEqual([float(r) for r in rows], [1 / 3, 123456789.123456789, 5e-324, 0.1 + 0.2])

    def test_several_answers(self):
        self.assertEqual(self.query("select 1 as a; select 2 as b", "--format", "csv"), "a\n1\n\nb\n2\n")

    def test_markdown(self):
        self.assertEqual(self.query("select 'a|b' as x, 12345 as y", "--format", "markdown"),
                         "| x    | y     |\n| ---- | ----- |\n| a\\|b | 12345 |\n")

    def test_line(self):
        self.assertEqual(self.query("select 1 as a, 'x' as bcd union all select 2, null", "--format", "line"),
                         "  a = 1\nbcd = x\n\n  a = 2\nbcd = [NULL]\n")

    def test_box(self):
        self.assertEqual(self.query("select 'é日' as x", "--format", "box"), "┌──────┐\n│ x    │\n├──────┤\n│ é日  │\n└──────┘\n")

    def test_the_form_without_a_name_is_classic(self):
        self.assertEqual(self.query("select null as n"), self.query("select null as n", "--format", "classic"))


class StructuredQuery(harness.Case):
    SPEC = """
        query { id: "spans" sql { sql: "INCLUDE PERFETTO MODULE slices.with_context; SELECT 1 AS id, 'a' AS name" } }
        query { id: "names" inner_query_id: "%s" select_columns { column_name: "name" alias: "n" } }
    """

    def spec(self, name, text):
        (self.dir / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return ["--summary-spec", self.dir / name]

    def ask(self, id, *flags, **kw):
        return self.run_shell("query", "--structured-query-id", id, *flags, self.empty, **kw).stdout.decode()

    def test_rows(self):
        for name in ("a.textproto", "a.txt", "a"):
            spec = self.spec(name, self.SPEC % "spans")
            self.assertEqual(self.ask("names", *spec), '"n"\n"a"\n')
            self.assertEqual(self.ask("spans", *spec, "--format", "jsonl"), '{"id": 1, "name": "a"}\n')
        self.assertEqual(self.ask("names", *spec, stdin=b"select 'not this'"), '"n"\n"a"\n')

    def test_binary(self):
        table = b"\x12\x07\x0a\x05slice"  # table { table_name: "slice" }
        query = b"\x0a\x01b" + table + b"\x60\x01"  # id, source, limit
        for name in ("b.pb", "b"):
            out = self.ask("b", *self.spec(name, b"\x12" + bytes([len(query)]) + query))
            self.assertTrue(out.startswith('"id","ts","dur"'), out)

    def test_queries_of_several_specs(self):
        specs = self.spec("1.txt", self.SPEC % "elsewhere") + self.spec(
            "2.txt", 'query { id: "elsewhere" sql { sql: "SELECT \'far\' AS name" } }')
        self.assertEqual(self.ask("names", *specs), '"n"\n"far"\n')

    def test_errors(self):
        good = self.spec("good.txt", self.SPEC % "spans")
        ask = lambda *flags, text: self.fails("query", *flags, self.empty, text=text)
        ask("--structured-query-id", "names", text="--structured-query-id needs a --summary-spec")
        ask(*good, text="--summary-spec needs a --structured-query-id")
        ask("--structured-query-id", "x", *good, text="no spec has a query 'x'")
        ask("--structured-query-id", "names", *good, *self.spec("again.txt", self.SPEC % "spans"),
            text="again.txt: query 'spans': two queries have this id")
        ask("--structured-query-id", "names", *self.spec("c.txt", self.SPEC % "names"), text="a cycle: 'names' depends on itself")
        ask("--structured-query-id", "names", *self.spec("e.txt", "query { id: 5 }"), text="e.txt: 1:13: expected a string")
        ask("--structured-query-id", "names", *self.spec("e.pb", "\x12\x09"), text="e.pb: TraceSummarySpec is damaged")
        ask("--structured-query-id", "names", "--summary-spec", "/nonexistent", text="/nonexistent")
        ask("--structured-query-id", "q", *self.spec("s.txt", 'query { id: "q" table { table_name: "not_there" } }'),
            text="no such table: not_there")


class Functions(harness.Case):
    def test_every_function_of_the_facts(self):
        root = pathlib.Path(os.environ.get("MERIDIAN_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared"))
        facts = root / "spec" / "sql_functions.tsv"
        if not facts.exists():
            self.skipTest(f"{facts} is not there")
        have = {}
        rows = json.loads(self.query("select distinct name, narg, type from pragma_function_list", "--format", "json"))
        for row in rows:
            have.setdefault(row["name"].lower(), []).append((row["narg"], row["type"]))
        wrong = set()
        for name, kind, n in (line.split("\t")[:3] for line in facts.read_text().splitlines()[1:]):
            found = have.get(name.lower(), [])
            arity = [f for f in found if int(n) < 0 or f[0] == int(n) or f[0] < 0]
            if not [f for f in arity if (f[1] == "s") == (kind == "scalar")]:
                wrong.add(name)
        self.assertEqual(wrong, set())

    def test_struct(self):
        self.assertEqual(self.query("select typeof(__intrinsic_struct('a', 'b', 1, 'x')) as t"), '"t"\n"null"\n')
        for args, text in (("", "expected the names"), ("'a'", "expected the names"), ("'a', 'a', 1, 2", "two fields"),
                           ("1, 2", "must be a string")):
            self.fails("query", self.empty, f"select __intrinsic_struct({args})", text=text)


class Table(harness.Case):
    def table(self, sql):
        return self.run_shell("query", "--format", "table", self.empty, sql).stdout

    def test_terminals_get_plain_text(self):
        out = self.table("select char(27) || '[31m' || char(155) || 'x' as \"a\x1b[1m\", cast(x'c328ff41' as text) as b")
        self.assertNotIn(b"\x1b", out)
        self.assertNotIn(b"\xc2\x9b", out)
        self.assertIn(b" [31m x", out)
        self.assertIn(b"?(?A", out)
        out.decode()
        self.table("select replace(hex(zeroblob(600)), '0', char(8364)) as euros").decode()  # cut between characters

    def test_later_pages_are_not_cut(self):
        out = self.table("with recursive s(i) as (select 1 union all select i + 1 from s where i < 40) "
                         "select iif(i < 40, 'a', 'a long text at the end') as t from s")
        self.assertIn(b"a long text at the end", out)


class Csv(harness.Case):
    def test_cells(self):
        out = self.query("""select null as n, 1 as i, -9223372036854775808 as low, 1.5 as f, 1e300 * 1e10 as inf,
                            'a "quoted", text' as s, x'00ff' as b, '' as empty, 'zwei' as "Ä ""x" """)
        self.assertEqual(out.splitlines()[0], '"n","i","low","f","inf","s","b","empty","Ä "x"')
        self.assertEqual(out.splitlines()[1],
                         '"[NULL]",1,-9223372036854775808,1.500000,inf,"a "quoted", text","<raw bytes>","","zwei"')

    def test_line_ends_stay(self):
        self.assertEqual(self.query("select 'a\nb' as t"), '"t"\n"a\nb"\n')

    def test_no_rows(self):
        self.assertEqual(self.query("select 1 as a, 2 as b where 0"), '"a","b"\n')

    def test_several_results(self):
        out = self.query("select 1 as a; select 2 as b where 0; create table t(x); select 3 as c")
        self.assertEqual(out, '"a"\n1\n\n"b"\n\n"c"\n3\n')

    def test_what_is_not_printed(self):
        self.assertEqual(self.query("create table t(x); insert into t values (1)"), "")
        self.assertEqual(self.query("select 1 as suppress_query_output"), "")
        self.assertEqual(self.query("select 1 as suppress_query_output; select 2 as a"), '"a"\n2\n')

    def test_only_results_on_standard_output(self):
        p = self.run_shell("query", harness.DATA / "linux-kernel-overrun.pftrace", "select 1 as a")
        self.assertEqual(p.stdout, b'"a"\n1\n')
        err = p.stderr.decode()
        self.assertRegex(err, r"Trace loaded: [\d.]+ MB in [\d.]+s \([\d.]+ MB/s\)")
        self.assertRegex(err, r"Query execution time: \d+ ms")
        self.assertIn("Trace health issues:", err)
        self.assertIn("  Data losses:\n    ftrace_cpu_has_data_loss[0]: 1", err)

    def test_healthy_trace_has_no_report(self):
        p = self.run_shell("query", harness.DATA / "linux-sched.pftrace", "select 1 as a")
        self.assertNotIn("health", p.stderr.decode())


class Json(harness.Case):
    SQL = """select null as n, 9223372036854775807 as i, 0.1 as f, 1e300 * 1e10 as inf, 'a"\\' || char(10, 9, 1, 127) as s,
             x'00ff' as b, cast(x'61ff62c080' as text) as bad, 'Ä€😀' as u, 1 as n"""
    WANT = {"n": None, "i": 9223372036854775807, "f": 0.1, "inf": None, "s": 'a"\\\n\t\x01\x7f', "b": "00ff",
            "bad": "a\ufffdb\ufffd\ufffd", "u": "Ä€😀", "n_2": 1}

    def test_json(self):
        self.assertEqual(json.loads(self.query(self.SQL, "--format", "json")), [self.WANT])

    def test_json_rows(self):
        self.assertEqual(json.loads(self.query("values (1), (2)", "--format", "json")), [{"column1": 1}, {"column1": 2}])
        self.assertEqual(json.loads(self.query("select 1 where 0", "--format", "json")), [])

    def test_json_of_several_results_is_a_document_each(self):
        decoder, text, docs = json.JSONDecoder(), self.query("select 1 as a; select 2 as b", "--format", "json"), []
        while text.strip():
            doc, end = decoder.raw_decode(text.lstrip())
            docs.append(doc)
            text = text.lstrip()[end:]
        self.assertEqual(docs, [[{"a": 1}], [{"b": 2}]])

    def test_jsonl(self):
        lines = self.query(f"{self.SQL}; values (5), (6)", "--format=jsonl").splitlines()
        self.assertEqual([json.loads(line) for line in lines], [self.WANT, {"column1": 5}, {"column1": 6}])


class Table(harness.Case):
    def test_table(self):
        out = self.query("select 1 as number, 'text' as t union all select 12345678, null", "--format", "table")
        self.assertEqual(out.splitlines(), ["number   t      ", "-------- ------ ", "       1 text   ", "12345678 [NULL] "])

    def test_many_rows_have_one_header(self):
        out = self.query("with recursive n(v) as (select 1 union all select v + 1 from n where v < 100) select v from n",
                         "--format", "table")
        self.assertEqual(len(out.splitlines()), 102)

    def test_control_characters_do_not_break_lines(self):
        self.assertIn("a b c", self.query("select 'a' || char(10) || 'b' || char(27) || 'c' as t", "--format", "table"))


class Errors(harness.Case):
    def test_syntax_error_says_where(self):
        err = self.fails("query", self.empty, "create table t(x);\nselect from nowhere", text="syntax error")
        self.assertIn("line 2", err)

    def test_no_such_table(self):
        for sql, text in (("select * from thread_slice", "it is in a module: INCLUDE PERFETTO MODULE slices.with_context;"),
                          ("select * from Thread_Slice", "INCLUDE PERFETTO MODULE slices.with_context;"),
                          ("select android_standardize_slice_name('x')", "INCLUDE PERFETTO MODULE android.slices;"),
                          ("include perfetto module slice.with_context", "did you mean 'slices'?")):
            self.fails("query", self.empty, sql, text=text)
        self.fails("query", self.empty, "select * from nothing_like_it", text="no such table: nothing_like_it")

    def test_results_before_the_error_are_there(self):
        p = self.run_shell("query", self.empty, "select 1 as a; select * from nope", code=1)
        self.assertEqual(p.stdout, b'"a"\n1\n')

    def test_error_while_rows_come(self):
        self.run_shell("query", self.empty, "select abs(-9223372036854775808)", code=1)

    def test_perf_file_that_cannot_be_written(self):
        p = self.run_shell("query", "--perf-file", "/nonexistent/x", self.empty, "select 1", code=1)
        self.assertIn(b"/nonexistent/x", p.stderr)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            import subprocess
            p = subprocess.run([harness.SHELL, "query", self.empty, "select 1"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"cannot write", p.stderr)

    def test_help_on_a_full_disk(self):
        import subprocess
        for args in (["help"], ["--version"], ["help", "query"]):
            with open("/dev/full", "wb") as full:
                p = subprocess.run([harness.SHELL, *args], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((p.returncode, p.stderr), (1, b"the output cannot be written: No space left on device\n"), args)


class ForScripts(harness.Case):
    """The exit status, and every byte of standard output. What goes wrong is on standard error."""

    def test_exit_status(self):
        sched = harness.DATA / "linux-sched.pftrace"
        cut, lossy = self.dir / "cut.pftrace", harness.DATA / "linux-kernel-overrun.pftrace"
        cut.write_bytes(sched.read_bytes()[:300000])
        for trace, sql, code, out, says in (
                (self.empty, "select 1 as a", 0, '"a"\n1\n', ""),
                (self.empty, "select * from nope", 1, "", "no such table: nope"),
                (sched, "select nope from sched", 1, "", "no such column: nope"),
                (sched, "selec 1", 1, "", "syntax error"),
                (sched, "", 1, "", "No valid SQL to run"),
                (sched, "-- a comment only", 1, "", "No valid SQL to run"),
                (sched, "create table t(x)", 0, "", ""),
                (sched, "select ts from sched where 0", 0, '"ts"\n', ""),
                (sched, "select 1 as a; select nope", 1, '"a"\n1\n', "no such column: nope"),
                (sched, "select abs(-9223372036854775807 - 1) as a", 1, "", "overflow"),
                (cut, "select 1 as a", 0, '"a"\n1\n', "trace_cut_bytes"),
                (lossy, "select 1 as a", 0, '"a"\n1\n', "Trace health issues"),
                (self.dir / "missing", "select 1", 1, "", "No such file or directory"),
                (self.dir, "select 1", 1, "", "is a directory")):
            with self.subTest(trace=trace, sql=sql):
                p = self.run_shell("query", trace, "-f", "-", stdin=sql.encode(), code=code)
                self.assertEqual(p.stdout.decode(), out)
                self.assertIn(says, p.stderr.decode())

    def test_readers_that_leave(self):
        """The signal ends it, as it ends cat; where it is ignored (as Python and some services do), the exit status is 1."""
        command = f"'{harness.SHELL}' query '{harness.DATA / 'linux-sched.pftrace'}' 'select * from sched' | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        for before, status, says in (("", "141", b""), ("trap '' PIPE; ", "1", b"cannot write the answer: write: Broken pipe")):
            p = subprocess.run(["bash", "-c", before + command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
            self.assertEqual(p.stdout.decode().strip(), status)
            self.assertIn(says, p.stderr)
        forever = "with recursive n(v) as (select 1 union all select v + 1 from n) select v from n"
        for name in ("classic", "csv", "table", "box", "markdown", "line", "json", "jsonl"):  # nor does one wait for the last row
            with open("/dev/full", "wb") as full:
                p = subprocess.run([harness.SHELL, "query", "--format", name, self.empty, forever], stdout=full, stderr=subprocess.PIPE, timeout=100)
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"cannot write the answer: write: No space left on device", p.stderr)
        p = subprocess.run(["bash", "-c", f"'{harness.SHELL}' query '{self.empty}' 'select 1' >&-"], stderr=subprocess.PIPE, timeout=100)
        self.assertEqual((p.returncode, b"cannot write the answer" in p.stderr), (1, True))


if __name__ == "__main__":
    harness.main()

"""tp_shell summarize: the page about it, flags, the form without a command, errors."""
import pathlib
import re
import subprocess
import tempfile
import time

import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRACE = harness.DATA / "linux-sched.pftrace"
SPEC = """
metric_spec { id: "one" value: "v" query { sql { sql: "select 1 as v" } } }
metric_spec { id: "two" value: "v" dimensions: "d" query { sql {
  preamble: "create perfetto table left_behind as select 2 as v;" sql: "select v, 'x' as d from left_behind" } } }
query { id: "meta" sql { sql: "select 'a' as key, 'b' as value" } }
"""


def without_specs(text):
    return re.sub(r"^  specs \{\n.*?^  \}\n", "", text, flags=re.M | re.S)


class Summarize(harness.Case):
    def setUp(self):
        self.spec = self.dir / "spec.textproto"
        self.spec.write_text(SPEC)

    def summarize(self, *args, **kw):
        return self.run_shell("summarize", *args, **kw).stdout.decode()

    def test_the_page(self):
        page = (ROOT / "docs" / "summaries.md").read_text()
        spec, want = re.findall(r"```textproto\n(.*?)```", page, flags=re.S)
        command, = re.findall(r"```sh\ntp_shell (summarize test/data.*)\n```", page)
        with tempfile.TemporaryDirectory() as d:
            (pathlib.Path(d) / "cpu.textproto").write_text(spec)
            args = [str(ROOT / a) if a.startswith("test/data") else a for a in command.split()]
            self.assertEqual(without_specs(self.run_shell(*args, cwd=d).stdout.decode()), want)
        flags = set(re.findall(r"^\| `(?:TRACE )?(--?[a-z0-9-]+)", page, flags=re.M))
        help_text = self.run_shell("help", "summarize").stdout.decode()
        for flag in flags:
            self.assertIn(flag, help_text)
        self.assertEqual(flags, {"--metrics-v2", "--metadata-query", "--format", "--post-query", "--perf-file", "-i", "--remote"})

    def test_choosing(self):
        one = 'metric_bundles {\n  bundle_id: "one"\n  row {\n    values {\n      double_value: 1\n    }\n  }\n}\n'
        two = ('metric_bundles {\n  bundle_id: "two"\n  row {\n    dimension {\n      string_value: "x"\n    }\n'
               '    values {\n      double_value: 2\n    }\n  }\n}\n')
        meta = 'metadata {\n  key: "a"\n  value: "b"\n}\n'
        for flags, want in [(["--metrics-v2", "all"], one + two), (["--metrics-v2", "ALL"], one + two),
                            (["--metrics-v2", "one"], one), (["--metrics-v2", "two,one"], two + one),
                            (["--metrics-v2", "two,,two,"], two), (["--metadata-query", "meta"], meta),
                            (["--metrics-v2", "one", "--metadata-query", "meta", "--format", "text"], one + meta)]:
            self.assertEqual(without_specs(self.summarize(self.empty, self.spec, *flags)), want, flags)

    def test_nothing_asked_for(self):
        p = self.run_shell("summarize", self.empty, self.spec)
        self.assertEqual(p.stdout, b"")
        self.assertIn(b"nothing is selected", p.stderr)
        self.assertEqual(self.summarize(self.empty, "--metrics-v2", "all"), "")

    def test_binary(self):
        got = self.run_shell("summarize", self.empty, self.spec, "--metadata-query", "meta", "--format", "binary").stdout
        self.assertEqual(got, b"\x12\x86\x80\x80\x00\x0a\x01a\x12\x01b")
        binary = self.dir / "spec.pb"  # TraceSummarySpec{query{id: "m", sql{sql: ...}}}
        sql = b"select 'a' as key, 'b' as value"
        query = b"\x0a\x01m\x1a" + bytes([len(sql) + 2]) + b"\x0a" + bytes([len(sql)]) + sql
        binary.write_bytes(b"\x12" + bytes([len(query)]) + query)
        for name in ("spec.pb", "spec"):
            binary = binary.rename(self.dir / name)
            self.assertEqual(self.run_shell("summarize", self.empty, binary, "--metadata-query", "m", "--format",
                                            "binary").stdout, got)

    def test_several_specs(self):
        other = self.dir / "other"
        other.write_text('metric_spec { id: "three" value: "value" dimensions: "key" query { inner_query_id: "meta" } }')
        self.fails("summarize", self.empty, self.spec, other, "--metrics-v2", "three", text="metric 'three': value 'value'")
        other.write_text('metric_spec { id: "three" value: "n" query { inner_query_id: "meta" group_by { '
                         'aggregates { op: COUNT result_column_name: "n" } } } }')
        self.assertIn("double_value: 1", self.summarize(self.empty, other, self.spec, "--metrics-v2", "three"))

    def test_post_query_and_perf_file(self):
        sql, perf = self.dir / "post.sql", self.dir / "perf"
        sql.write_text("select v + 40 as answer from left_behind;")
        got = self.summarize(self.empty, self.spec, "--metrics-v2", "all", "--post-query", sql, "--perf-file", perf)
        self.assertEqual(got, '"answer"\n42\n')
        self.assertRegex(perf.read_text(), r"^\d+,\d+$")
        p = self.run_shell("summarize", "-i", self.empty, self.spec, "--metrics-v2", "one",
                           stdin=b"select 6 as six;\n")
        self.assertIn(b"double_value: 1", p.stdout)
        self.assertIn(b"six", p.stdout)

    def test_without_a_command(self):
        want = self.summarize(self.empty, self.spec, "--metrics-v2", "two", "--metadata-query", "meta")
        for flags in (["--summary-format", "text"], ["--summary-format=text"], []):
            got = self.run_shell("--summary", "--summary-spec", self.spec, "--summary-metrics-v2", "two",
                                 "--summary-metadata-query", "meta", *flags, self.empty).stdout.decode()
            self.assertEqual(got, want)
        self.fails("--summary", self.empty, self.spec, text="--summary takes one trace file")
        self.fails("--summary", text="a trace file is needed")
        self.fails("--summary", "--summary-format", "json", self.empty, text="use text or binary")

    def test_errors(self):
        self.fails("summarize", text="a trace file is needed")
        self.fails("summarize", self.empty, self.dir / "nothing", "--metrics-v2", "all", text="nothing")
        self.fails("summarize", self.empty, self.spec, "--format", "json", text="use text or binary")
        self.fails("summarize", self.empty, self.spec, "--metrics-v2", "one,nobody", text="metric 'nobody': no spec has it")
        self.fails("summarize", self.empty, self.spec, "--metrics-v2", "one,all", text="'all' selects all metrics")
        self.fails("summarize", self.empty, self.spec, "--metadata-query", "nobody", text="no spec has it")
        self.fails("summarize", self.dir / "nothing", self.spec, text="nothing")
        bad = self.dir / "bad.textproto"
        bad.write_text("metric_spec {\n  id: 'm'\n  colour: 1\n}\n")
        self.fails("summarize", self.empty, bad, "--metrics-v2", "all", text="bad.textproto: 3:3")
        bad.write_text("metric_spec { id: 'm' value: 'v' query { sql { sql: 'select nope as v' } } }")
        err = self.fails("summarize", self.empty, bad, "--metrics-v2", "all", text="no such column: nope")
        self.assertIn("metric 'm'", err)
        self.fails("summarize", self.empty, self.spec, "--metrics-v2", "one", "--post-query", self.dir / "nothing",
                   text="nothing")

    def test_own_modules(self):
        package = self.dir / "mine"
        package.mkdir(exist_ok=True)
        (package / "things.sql").write_text("create perfetto table my_things as select 5 as v;")
        spec = self.dir / "mine.textproto"
        spec.write_text('metric_spec { id: "m" value: "v" query { table { table_name: "my_things" } '
                        'referenced_modules: "mine.things" } }')
        self.assertIn("double_value: 5", self.summarize(self.empty, spec, "--metrics-v2", "m", "--add-sql-package", package))

    def test_by_a_server(self):
        with tempfile.TemporaryDirectory() as d:
            path = pathlib.Path(d) / "s.sock"
            server = subprocess.Popen([harness.SHELL, "server", "unix", "--path", str(path), str(TRACE)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                server.stdout.readline()
                flags = ["--metrics-v2", "all", "--metadata-query", "meta"]
                for form in ("text", "binary"):
                    here = self.run_shell("summarize", TRACE, self.spec, *flags, "--format", form).stdout
                    there = self.run_shell("summarize", "--remote", path, self.spec, *flags, "--format", form).stdout
                    self.assertEqual(here, there)
                    self.assertGreater(len(here), 100)
                self.fails("summarize", "--remote", path, self.spec, "--metrics-v2", "nobody",
                           text="metric 'nobody': no spec has it")
            finally:
                server.terminate()
                server.communicate()


if __name__ == "__main__":
    harness.main()

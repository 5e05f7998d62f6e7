"""The Python package: rows, columns, errors, several traces, a server, and the interface of Perfetto's."""
import csv
import ctypes
import io
import os
import pathlib
import re
import subprocess
import sys

import harness

LIBRARY = os.environ.get("MERIDIAN_LIBRARY", "")
SCHED = harness.DATA / "linux-sched.pftrace"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))

if not os.path.exists(LIBRARY):
    print("skipped: this build has no shared library")
    sys.exit(77)

from meridian import SqlError, Trace, TraceError, _library as library  # noqa: E402
from meridian.batch_trace_processor import BatchTraceProcessor  # noqa: E402
from meridian.summary import REPEATED  # noqa: E402
from meridian.trace_processor import SqlPackage, TraceProcessor, TraceProcessorConfig  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = re.search(r"^```textproto\n(.*?)^```", (ROOT / "docs" / "summaries.md").read_text(), re.M | re.S).group(1)


HEADER = (pathlib.Path(__file__).resolve().parents[2] / "include" / "meridian" / "tp.h").read_text()
SIZES = {"bool": 1, "unsigned": 4, "enum": 4, "uint32_t": 4, "size_t": 8, "int64_t": 8, "uint64_t": 8}


def members(name):
    """The members of a struct of the header, in order: (name, bytes)."""
    body = re.sub(r"/\*.*?\*/", "", re.search(r"struct %s \{(.*?)\n\};" % name, HEADER, re.S).group(1), flags=re.S)
    for declaration in filter(None, map(str.strip, body.split(";"))):
        function = re.match(r"\w+ \(\*(\w+)\)", declaration)
        for n in [function.group(1)] if function else re.findall(r"(\w+)(?=,|$)", declaration):
            yield n, 8 if "*" in declaration else SIZES[declaration.split()[0]]


class Python(harness.Case):
    def test_structs_are_those_of_the_header(self):
        """A member that is missing here moves all that follow: the library would read what was never given."""
        for name, struct in (("tp_config", library.Config), ("tp_cells", library.Cells), ("tp_stat", library.Stat), ("tp_spec", library.Spec),
                             ("tp_summary", library.Summary)):
            self.assertEqual([(n, ctypes.sizeof(t)) for n, t in struct._fields_], list(members(name)), name)

    def test_rows(self):
        with Trace(SCHED) as t:
            rows = list(t.query("select name, count(*) as n from thread where name is not null group by name order by n desc, name"))
            self.assertGreater(len(rows), 10)
            self.assertEqual((rows[0].name, rows[0].n), (rows[0][0], rows[0]["n"]))
            self.assertEqual(rows[0].as_dict(), {"name": rows[0].name, "n": rows[0].n})
            with self.assertRaisesRegex(AttributeError, "no column 'nope', but name, n"):
                rows[0].nope

    def test_values(self):
        with Trace() as t:
            row = next(t.query("select 9223372036854775807 as i, -0.5 as d, 'é\u65e5' as s, '' as e, null as n, x'00ff' as b"))
            self.assertEqual(row, (9223372036854775807, -0.5, "é日", "", None, b"\0\xff"))

    def test_a_table_cell_by_cell(self):
        """As tp_shell prints it, over more than one batch."""
        sql = "select * from sched order by id"
        with Trace(SCHED) as t:
            columns = t.query(sql).columns()
        want = list(csv.DictReader(io.StringIO(self.query(sql, "--format", "csv", trace=SCHED))))
        self.assertGreater(len(want), 5000)
        for name, values in columns.items():
            self.assertEqual(["" if v is None else str(v) for v in values], [w[name] for w in want], name)

    def test_len_then_rows(self):
        with Trace(SCHED) as t:
            result = t.query("select ts from sched")
            first = next(result)
            n = len(result)
            self.assertEqual(n, len(list(result)))
            self.assertGreater(first.ts, 0)

    def test_errors(self):
        with self.assertRaisesRegex(TraceError, "/nonexistent.pftrace"):
            Trace("/nonexistent.pftrace")
        with self.assertRaisesRegex(TypeError, "no option 'ful_sort'"):
            Trace(ful_sort=True)
        with Trace() as t:
            with self.assertRaisesRegex(SqlError, "no such table: nope"):
                t.query("select * from nope")
            self.assertEqual(next(t.query("select 1 as a")).a, 1)
            with self.assertRaises(SqlError):
                list(t.query("select abs(column1) from (values (1), (-9223372036854775807 - 1))"))
        with self.assertRaisesRegex(TraceError, "closed"):
            t.query("select 1")

    def test_bytes_files_and_generators(self):
        data = SCHED.read_bytes()
        want = next(Trace(SCHED).query("select count(*) as n from sched")).n
        for source in (data, io.BytesIO(data), (data[i:i + 10000] for i in range(0, len(data), 10000))):
            with Trace(source) as t:
                self.assertEqual(next(t.query("select count(*) as n from sched")).n, want)

    def test_stats(self):
        with Trace(SCHED) as t:
            names = {s.name for s in t.stats()}
        self.assertTrue(names)

    def test_results_outlive_the_trace_harmlessly(self):
        t = Trace(SCHED)
        result = t.query("select ts from sched")
        next(result)
        t.close()
        self.assertEqual(len(result.columns()["ts"]) + 1, 4096)  # the batch that was read; the rest is gone
        del result, t

    def test_own_tables_and_modules(self):
        (self.dir / "mine").mkdir()
        (self.dir / "mine" / "one.sql").write_text("CREATE PERFETTO TABLE one AS SELECT 1 AS x;")
        with Trace() as t:
            t.add_sql_package(self.dir / "mine")
            self.assertEqual(next(t.query("INCLUDE PERFETTO MODULE mine.one; SELECT x FROM one")).x, 1)
            t.restore_initial_tables()
            with self.assertRaises(SqlError):
                t.query("SELECT x FROM one")

    def test_as_perfettos(self):
        with TraceProcessor(trace=str(SCHED), config=TraceProcessorConfig(verbose=True)) as tp:
            it = tp.query("select ts, dur, cpu from sched order by ts limit 3")
            self.assertEqual(it.column_names, ["ts", "dur", "cpu"])
            self.assertEqual(len([r.ts + r.dur for r in it]), 3)
            with self.assertRaises(TraceError):
                tp.metric(["android_cpu"])

    def test_summaries_as_perfettos(self):
        with TraceProcessor(trace=SCHED) as tp:
            summary = tp.trace_summary([SPEC], metadata_query_id="machine")
            self.assertEqual([b.bundle_id for b in summary.metric_bundles], ["cpu"])
            cpus = {r.dimension[0].int64_value: [v.double_value for v in r.values] for r in summary.metric_bundles[0].row}
            for row in tp.query("select cpu, sum(dur) as ns, count(*) as n from sched where utid > 0 and dur >= 0 group by cpu"):
                self.assertEqual(cpus[row.cpu], [row.ns, row.n])
            self.assertEqual(summary.metadata[0].key, "kernel")
            self.assertFalse(summary.metric_bundles[0].HasField("nothing"))
            self.assertTrue(summary.metric_bundles[0].specs[0].query.group_by.column_names == ["cpu"])
            self.assertIn('bundle_id: "cpu"', str(summary))
            self.assertEqual(summary.SerializeToString(), Trace(SCHED).summarize([SPEC], metadata_query="machine"))
            self.assertEqual(tp.trace_summary([SPEC], metric_ids=["cpu_switches"]).metric_bundles[0].specs[0].id, "cpu_switches")
            self.assertEqual(tp.trace_summary([], metric_ids=[]).metric_bundles, [])
            with self.assertRaisesRegex(TraceError, "nonsense"):
                tp.trace_summary(["nonsense"])
            quoted = 'query { id: "q" sql { sql: "select \'k\' as key, \'a\\"\\\\\\n\u65e5\' as value" column_names: "key" column_names: "value" } }'
            self.assertEqual(tp.trace_summary([quoted], metadata_query_id="q").metadata[0].value, 'a"\\\n\u65e5')

    def test_repeated_fields_are_those_of_the_messages(self):
        proto = "".join((ROOT / "proto" / f"{n}.proto").read_text() for n in ("summary", "structured_query"))
        of_specs_alone = {"metric_spec", "metric_template_spec", "query", "value_column_specs", "value_columns"}
        names = set(re.findall(r"repeated \S+ (\w+) =", proto)) - of_specs_alone
        self.assertEqual(names - {"interval_intersect"}, set(REPEATED))

    def test_metatrace_is_a_trace(self):
        with TraceProcessor(trace=SCHED) as tp:
            tp.enable_metatrace()
            list(tp.query("select 1 as needle"))
            data = tp.disable_and_read_metatrace()
        with Trace(data) as t:
            self.assertGreater(next(t.query("select count(*) as n from slice")).n, 0)

    def test_config_and_flags(self):
        (self.dir / "own").mkdir()
        (self.dir / "own" / "two.sql").write_text("CREATE PERFETTO TABLE two AS SELECT 2 AS x;")
        config = TraceProcessorConfig(bin_path="/nonexistent", extra_flags=["--full-sort"], add_sql_packages=[SqlPackage(str(self.dir / "own"), "p")])
        with open(SCHED, "rb") as f, TraceProcessor(trace=f, config=config) as tp:
            row = next(tp.query("INCLUDE PERFETTO MODULE p.two; SELECT x FROM two"))
            self.assertEqual((vars(row), row.__dict__, isinstance(row, type(tp.query("select 1")).Row)), ({"x": 2}, {"x": 2}, True))
            self.assertEqual(tp.query_dict("select 1 as a"), [{"a": 1}])
        with self.assertRaises(TraceError):
            tp.query("select 1")
        tp.close()
        with self.assertWarnsRegex(UserWarning, "--unheard-of"):
            TraceProcessor(config=TraceProcessorConfig(extra_flags=["--unheard-of"])).close()

    def test_many_traces(self):
        paths = [str(SCHED), str(harness.DATA / "linux-deflate.pftrace"), str(SCHED)]
        want = [next(Trace(p).query("select count(*) as n from sched")).n for p in paths]
        with BatchTraceProcessor(paths) as b:
            self.assertEqual(b.query_single_result("select count(*) as n from sched"), want)
            self.assertEqual([r[0]["n"] for r in b.query_dict("select count(*) as n from sched")], want)
            with self.assertRaisesRegex(ValueError, "one row of one column"):
                b.query_single_result("select 1, 2")
        with self.assertRaisesRegex(TraceError, "/nonexistent"):
            BatchTraceProcessor(paths + ["/nonexistent"])

    def test_a_program_for_perfettos_package_runs_unchanged(self):
        """With data frames: of pandas where it is installed, else of a stand-in that takes what pandas takes."""
        program = self.dir / "notebook.py"
        program.write_text("import sys\nfrom perfetto.trace_processor import TraceProcessor, TraceProcessorConfig\n"
                           "from perfetto.batch_trace_processor.api import BatchTraceProcessor\n"
                           "with TraceProcessor(trace=sys.argv[1], config=TraceProcessorConfig(verbose=True)) as tp:\n"
                           "    frame = tp.query('select ts, dur, null as empty from sched order by ts limit 3').as_pandas_dataframe()\n"
                           "    print(list(frame.columns), len(frame))\n")
        (self.dir / "stub").mkdir()
        (self.dir / "stub" / "pandas.py").write_text("class DataFrame:\n    def __init__(self, data):\n        self.columns = data\n"
                                                     "    def __len__(self):\n        return len(next(iter(self.columns.values())))\n")
        p = subprocess.run([sys.executable, "-m", "meridian.as_perfetto", program, SCHED], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{self.dir / 'stub'}"})
        self.assertEqual((p.returncode, p.stdout), (0, "['ts', 'dur', 'empty'] 3\n"), p.stdout)

    def serve(self):
        """host:port of a server that has the trace."""
        server = subprocess.Popen([harness.SHELL, "server", "http", "--port", "0", str(SCHED)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        said = ""
        while not (m := re.search(r"http://(127\.0\.0\.1:\d+)", said)):
            line = server.stderr.readline()
            self.assertTrue(line, "the server has ended: " + said)
            said += line
        return m.group(1)

    def test_a_server(self):
        port = self.serve()
        for addr in (port, f"http://{port}"):
            with TraceProcessor(addr=addr) as tp:
                self.assertGreater(next(tp.query("select count(*) as n from sched")).n, 1000)
                self.assertEqual(tp.trace_summary([SPEC]).metric_bundles[0].bundle_id, "cpu")
        (self.dir / "cpu.textproto").write_text(SPEC)
        (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "summaries.md").read_text(), re.S)
        p = subprocess.run([sys.executable, "-"], input="import meridian.as_perfetto\n" + block.replace("localhost:9001", port), cwd=self.dir,
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual((p.returncode, "metric_bundles" in p.stdout), (0, True), p.stdout)
        with Trace.connect(port) as t:
            self.assertEqual(next(t.query("select count(*) as n from sched")).n,
                             next(Trace(SCHED).query("select count(*) as n from sched")).n)
        with self.assertRaises(TraceError):
            Trace.connect("localhost:1")

    def test_the_page(self):
        """Every block of docs/python.md runs as it stands."""
        root = pathlib.Path(__file__).resolve().parent.parent.parent
        blocks = re.findall(r"```python\n(.*?)```", (root / "docs" / "python.md").read_text(), re.S)
        self.assertGreater(len(blocks), 1)
        p = subprocess.run([sys.executable, "-"], input="\n".join(blocks), cwd=root, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(root / "python")})
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertEqual(len(p.stdout.splitlines()), 3, p.stdout)

    def test_data_frames(self):
        with Trace(SCHED) as t:
            try:
                import pandas
            except ImportError:
                with self.assertRaisesRegex(ImportError, "python3-pandas"):
                    t.query("select 1 as a").as_pandas_dataframe()
                return
            frame = t.query("select ts, dur from sched").as_pandas_dataframe()
            self.assertIsInstance(frame, pandas.DataFrame)
            self.assertEqual(list(frame.columns), ["ts", "dur"])


if __name__ == "__main__":
    harness.main()

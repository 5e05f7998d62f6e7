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
from meridian.trace_processor import TraceProcessor, TraceProcessorConfig  # noqa: E402


HEADER = (pathlib.Path(__file__).resolve().parents[2] / "include" / "meridian" / "tp.h").read_text()
SIZES = {"bool": 1, "unsigned": 4, "enum": 4, "uint32_t": 4, "size_t": 8, "int64_t": 8}


def members(name):
    """The members of a struct of the header, in order: (name, bytes)."""
    body = re.sub(r"/\*.*?\*/", "", re.search(r"struct %s \{(.*?)\n\};" % name, HEADER, re.S).group(1), flags=re.S)
    for declaration in filter(None, map(str.strip, body.split(";"))):
        function = re.match(r"void \(\*(\w+)\)", declaration)
        for n in [function.group(1)] if function else re.findall(r"(\w+)(?=,|$)", declaration):
            yield n, 8 if "*" in declaration else SIZES[declaration.split()[0]]


class Python(harness.Case):
    def test_structs_are_those_of_the_header(self):
        """A member that is missing here moves all that follow: the library would read what was never given."""
        for name, struct in (("tp_config", library.Config), ("tp_cells", library.Cells), ("tp_stat", library.Stat)):
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

    def test_a_server(self):
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
        port = m.group(1)
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

"""tp_shell export native, rowbinary, csv, jsonl: every cell of every table is what a query answers."""
import json
import pathlib
import re
import uuid

import export_readers
import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FORMATS = ("native", "rowbinary", "csv", "jsonl")
TRACES = ("track-events.pftrace", "sdk.pftrace", "mm-guest-only.pftrace", "apart-relay.pftrace", "mm-small-ring.pftrace")
# SQL's own names of the tables; args are in the rows that have them.
TABLES = [name for name in re.findall(r'^    X\(\w+, "(\w+)", TABLE_', (ROOT / "src/storage/tables.def").read_text(), re.M)
          if name != "__intrinsic_args"]


def readable(own, machines):
    """{column: SQL} of the columns that an export adds to those of a table `r`."""
    def of(table, column, key):
        return f"(SELECT {column} FROM __intrinsic_{table} x WHERE x.id = {key})"

    def first(*values):
        return None if not values else values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

    track = "r.track_id" if "track_id" in own else None
    utid = first(*["r.utid"] * ("utid" in own), *[of("track", "utid", track)] * bool(track))
    upid = first(*["r.upid"] * ("upid" in own), *[of("thread", "upid", utid)] * bool(utid),
                 *[of("track", "upid", track)] * bool(track))
    machine = first(*["r.machine_id"] * ("machine_id" in own), *["r.ucpu / 4096"] * ("ucpu" in own),
                    *[of("thread", "machine_id", utid)] * bool(utid), *[of("process", "machine_id", upid)] * bool(upid),
                    *[of("track", "machine_id", track)] * bool(track), *["0"] * (machines == 1))
    made = {}
    if machine:
        made["machine"] = of("machine", "coalesce(name, 'machine ' || id)", machine)
    if "ucpu" in own:
        made["cpu"] = "r.ucpu % 4096"
    if utid:
        made |= {"thread_name": of("thread", "name", utid), "tid": of("thread", "tid", utid)}
    if upid:
        made |= {"process_name": of("process", "name", upid), "pid": of("process", "pid", upid)}
    if track:
        made["track_name"] = of("track", "name", track)
    for column in own:
        if column == "arg_set_id" or column.endswith("_arg_set_id"):
            made[column.replace("arg_set_id", "args")] = f"__intrinsic_arg_set_to_json(r.{column})"
    return {name: sql for name, sql in made.items() if name not in own}


class Base(harness.Case):
    def lines(self, trace, sql):
        return [json.loads(line) for line in self.query(sql, "--format", "jsonl", trace=trace).splitlines() if line]

    def expected(self, trace):
        """{table: (names, rows)}, without the column trace."""
        machines = self.lines(trace, "SELECT count(*) n FROM __intrinsic_machine")[0]["n"]
        columns = {}
        probe = ";".join(f"SELECT '{t}' AS _t, * FROM {t} LIMIT 1" for t in TABLES)
        for row in self.lines(trace, probe):
            columns[row.pop("_t")] = list(row)
        sql, out = [], {}
        for table, own in columns.items():
            more = "".join(f', {e} AS "{name}"' for name, e in readable(own, machines).items())
            sql.append(f"SELECT '{table}' AS _t, r.*{more} FROM {table} r")
        for row in self.lines(trace, ";".join(sql)):
            name = row.pop("_t").removeprefix("__intrinsic_").lstrip("_")
            names, rows = out.setdefault(name, (list(row), []))
            rows.append(list(row.values()))
        return out

    def export(self, form, trace, *flags, **kw):
        directory = self.dir / f"{form}-{uuid.uuid4().hex}"
        self.run_shell("export", form, trace, "-o", directory, *flags, **kw)
        return directory

    def read(self, form, directory):
        """{table: (names, rows)}; texts of CSV stay texts."""
        schema = {}
        if (directory / "schema.sql").exists():
            schema = export_readers.schemas((directory / "schema.sql").read_text())
        return {p.stem: getattr(export_readers, form)(p.read_bytes(), schema.get(p.stem))
                for p in directory.iterdir() if p.suffix == "." + form}

    @staticmethod
    def steady(names, row):
        """Without what another import measures anew."""
        if "name" in names and str(row[names.index("name")]).endswith("_duration_ns"):
            row = [*row]
            row[names.index("value")] = None
        return row

    def same(self, form, got, wanted):
        """CSV has texts for numbers: they must be those of the same number."""
        if form == "csv" and got is not None and isinstance(wanted, (int, float)):
            got = int(got) if re.fullmatch(r"-?[0-9]+", got) else float(got)
        return got == wanted and (got is None) == (wanted is None)

    def compare(self, form, found, wanted, of):
        """Every cell of every table."""
        self.assertEqual(set(found), set(wanted), (of, form))
        for table, (names, rows) in wanted.items():
            got_names, got_rows = found[table]
            at = (of, form, table)
            self.assertEqual(got_names, ["trace"] + names, at)
            self.assertEqual(len(got_rows), len(rows), at)
            self.assertEqual(len({r[0] for r in got_rows}), 1, at)
            for got, row in zip(got_rows, rows):
                got, row = self.steady(got_names, got), self.steady(names, row)
                if not all(self.same(form, g, w) for g, w in zip(got[1:], row)):
                    self.assertEqual(got[1:], row, at)


class Export(Base):
    def test_cells(self):
        for trace in TRACES:
            wanted = self.expected(harness.DATA / trace)
            self.assertGreater(len(wanted), 5)
            for form in FORMATS:
                self.compare(form, self.read(form, self.export(form, harness.DATA / trace)), wanted, trace)

    def test_query(self):
        """Types, names that occur twice, NULL beside the empty text, what must be quoted, numbers at the ends."""
        sql = ("SELECT 1 AS a, 2 AS a, NULL AS none, '' AS empty, 'x\"y, \nz ' AS text, 1e300 AS big, 0.1 AS tenth, -0.5 AS half, "
               "9223372036854775807 AS most, -9223372036854775807 AS least UNION ALL "
               "SELECT 3, 4, NULL, NULL, 'ä😀', 2.0, 1e-300, NULL, NULL, 0")
        names = ["trace", "a", "a_2", "none", "empty", "text", "big", "tenth", "half", "most", "least"]
        for form in FORMATS:
            trace = harness.DATA / "track-events.pftrace"
            got_names, rows = self.read(form, self.export(form, trace, "--query", "q=" + sql))["q"]
            wanted = [[1, 2, None, "", 'x"y, \nz ', 1e300, 0.1, -0.5, 2**63 - 1, 1 - 2**63],
                      [3, 4, None, None, "ä😀", 2.0, 1e-300, None, None, 0]]
            self.assertEqual([n for n in got_names if n not in ("machine",)], names)
            for got, row in zip(rows, wanted):
                for g, w in zip(got[1:], row):
                    self.assertTrue(self.same(form, g, w), (form, g, w))

    def test_modules_and_ids(self):
        """A query may include modules, and its ids become readable, too."""
        sql = "INCLUDE PERFETTO MODULE slices.with_context; SELECT ts, utid FROM thread_slice WHERE utid IS NOT NULL LIMIT 5"
        names, rows = self.read("jsonl", self.export("jsonl", harness.DATA / "mm-calls.pftrace.gz", "--query", "q=" + sql))["q"]
        self.assertEqual(names, ["trace", "ts", "utid", "machine", "thread_name", "tid", "process_name", "pid"])
        self.assertEqual(len(rows), 5)
        wanted = self.lines(harness.DATA / "mm-calls.pftrace.gz", "SELECT id, name, tid FROM thread")
        threads = {t["id"]: (t["name"], t["tid"]) for t in wanted}
        for row in rows:
            self.assertEqual((row[4], row[5]), threads[row[2]])

    def test_many_blocks(self):
        """More rows than a block holds, and more texts than two bytes count."""
        sql = ("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 139999) "
               "SELECT i, 'text ' || i AS t, iif(i % 3, 'few', NULL) AS f FROM n")
        names, rows = self.read("native", self.export("native", self.empty, "--query", "q=" + sql))["q"]
        at = [names.index(n) for n in ("i", "t", "f")]
        self.assertEqual([[r[k] for k in at] for r in rows],
                         [[i, f"text {i}", "few" if i % 3 else None] for i in range(140000)])

    def test_chosen(self):
        trace = harness.DATA / "track-events.pftrace"
        found = self.read("csv", self.export("csv", trace, "--tables", "slice,sched,args", "--query", "n=SELECT count(*) AS n FROM slice"))
        self.assertEqual(set(found), {"slice", "sched", "args", "n"})
        self.assertEqual(found["n"][1][0][1], str(len(found["slice"][1])))
        wanted = self.lines(trace, "SELECT * FROM args")
        self.assertEqual([[r[i] for i, n in enumerate(found["args"][0]) if n == "key"][0] for r in found["args"][1]],
                         [r["key"] for r in wanted])

    def test_trace_name(self):
        """The UUID of the metadata; without one a hash that follows the bytes, not the name of the file."""
        trace = harness.DATA / "track-events.pftrace"

        def name(*paths):
            return self.read("jsonl", self.export("jsonl", paths[0], *paths[1:], "--tables", "trace_file"))["trace_file"][1][0][0]

        has = self.lines(harness.DATA / "linux-sched.pftrace", "SELECT str_value v FROM metadata WHERE name = 'trace_uuid'")
        self.assertEqual(name(harness.DATA / "linux-sched.pftrace"), has[0]["v"])
        line = b'[{"ph":"X","ts":1,"dur":2,"name":"a","pid":1,"tid":1}]'
        for file, data in (("a.json", line), ("b.json", line), ("c.json", line.replace(b'"a"', b'"b"'))):
            (self.dir / file).write_bytes(data)
        a, b, c = (name(self.dir / f) for f in ("a.json", "b.json", "c.json"))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        self.assertNotEqual(name(trace), a)
    def test_strange_text(self):
        """Bytes that are no UTF-8 become U+FFFD, each; all formats tell the same."""
        (self.dir / "bad.json").write_bytes(b'[{"ph":"X","ts":1,"dur":2,"name":"a\xff\xc3(b","pid":1,"tid":1}]')
        texts = set()
        for form in FORMATS:
            names, rows = self.read(form, self.export(form, self.dir / "bad.json", "--tables", "slice"))["slice"]
            texts.add(rows[0][names.index("name")])
        self.assertEqual(len(texts), 1)
        self.assertIn("\ufffd", texts.pop())

    def test_mistakes(self):
        trace = harness.DATA / "track-events.pftrace"
        out = self.dir / "mistakes"
        for flags, text in ((["--tables", "slic"], "slic"),
                            (["--tables", "../x"], "invalid name '../x'"),
                            (["--tables", "slice,slice"], "asked for twice"),
                            (["--query", "SELECT 1"], "invalid query"),
                            (["--query", "a-b=SELECT 1"], "invalid name 'a-b'"),
                            (["--query", "q="], "use name=SQL"),
                            (["--query", "q=SELEC 1"], "SELEC"),
                            (["--query", "q=CREATE PERFETTO TABLE x AS SELECT 1 AS a"], "no columns"),
                            (["--query", "q=SELECT x'00' AS b"], "column b holds blobs"),
                            (["--query", "q=SELECT 1 AS b UNION ALL SELECT 'x'"], "column b holds texts and numbers"),
                            (["--query", "q=SELECT 1 AS trace"], "give this one another name")):
            self.fails("export", "csv", trace, "-o", out, *flags, text=text)
        self.fails("export", "csv", trace, text="-o DIR is needed")
        self.fails("export", "cvs", trace, "-o", out, text="did you mean 'csv'?")
        self.fails("export", "sqlite", trace, "-o", out, "--tables", "slice", text="--tables is for the other formats")
        self.fails("export", "csv", trace, "-o", "/nonexistent/dir", text="cannot make the directory")
        (self.dir / "file").write_text("")
        self.fails("export", "csv", trace, "-o", self.dir / "file", text="file")
        self.assertEqual([p.name for p in out.iterdir()] if out.exists() else [], [])

    def test_whole_or_not_there(self):
        """What was there stays when the new file cannot be finished."""
        trace = harness.DATA / "track-events.pftrace"
        out = self.export("csv", trace, "--tables", "slice")
        before = (out / "slice.csv").read_bytes()
        self.fails("export", "csv", trace, "-o", out, "--query", "slice=SELECT 1 AS a UNION ALL SELECT 'x'", text="CAST")
        self.assertEqual((out / "slice.csv").read_bytes(), before)
        self.assertEqual([p.name for p in out.iterdir()], ["slice.csv"])


if __name__ == "__main__":
    harness.main()

"""What `tp_shell export` writes, read by engines of others, from npm: every cell is what a query answers.

apache-arrow is installed always; chDB and DuckDB, which are large, when MERIDIAN_LONG is set. MERIDIAN_NPM names a folder that
has them already. Skipped (77) without node or where npm cannot be reached."""
import json
import os
import pathlib
import subprocess

import harness
import npm
import test_export

LONG = bool(os.environ.get("MERIDIAN_LONG"))
PACKAGES = ["apache-arrow@21"] + [npm.CHDB, "@duckdb/node-api@1.5.6-r.1"] * LONG
READERS = {"apache-arrow@21": [("arrow", "arrow"), ("arrow", "arrow_stream")],
           npm.CHDB: [("chdb", f) for f in ("native", "rowbinary", "arrow", "arrow_stream", "parquet")],
           "@duckdb/node-api@1.5.6-r.1": [("duckdb", "parquet")]}


class Engines(test_export.Base):
    def each(self, *args):
        """(engine, format, {table: (names, rows)}) for all that are installed, of an export with these arguments."""
        script = pathlib.Path(__file__).parent / "export_read.mjs"
        for engine, form in [reader for package in PACKAGES for reader in READERS[package]]:
            directory = self.export(form, *args)
            p = subprocess.run(["node", script, FOLDER, engine, directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
            self.assertEqual(p.returncode, 0, (engine, form, p.stderr.decode(errors="replace")[-2000:]))
            yield engine, form, {t["table"]: (t["names"], t["rows"]) for t in map(json.loads, p.stdout.decode().splitlines())}

    def test_cells(self):
        for trace in test_export.TRACES:
            wanted = self.expected(harness.DATA / trace)
            for engine, form, found in self.each(harness.DATA / trace):
                self.compare(form, found, wanted, (trace, engine))

    def test_many_blocks(self):
        """Dictionaries that grow from block to block, runs, differences of all widths, columns that are all NULL."""
        def row(i):
            return [i, f"text {i // 2}", "few" if i % 3 else None, i // 1000 % 7, (i * 2654435761) % 2**32 - 2**31,
                    2**63 - 1 if i % 2 else 1 - 2**63, None, i / 7, "" if i % 5 else "e"]
        sql = ("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 139999) SELECT i, 'text ' || (i / 2) AS t, "
               "iif(i % 3, 'few', NULL) AS f, i / 1000 % 7 AS runs, (i * 2654435761) % 4294967296 - 2147483648 AS wild, "
               "iif(i % 2, 9223372036854775807, -9223372036854775807) AS ends, NULL AS none, i / 7.0 AS d, iif(i % 5, '', 'e') AS e FROM n")
        names = ["i", "t", "f", "runs", "wild", "ends", "none", "d", "e"]
        for engine, form, found in self.each(self.empty, "--query", "q=" + sql):
            got_names, rows = found["q"]
            at = [got_names.index(n) for n in names]
            self.assertEqual(len(rows), 140000)
            wrong = [(i, r) for i, r in enumerate(rows) if [r[k] for k in at] != row(i)][:3]
            self.assertEqual(wrong, [], (engine, form))


if __name__ == "__main__":
    FOLDER = npm.install(PACKAGES)
    harness.main()

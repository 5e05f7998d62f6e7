"""Every query in the documentation is run, and its answer makes sense. A new one needs a row below: it fails without.
The other blocks of the pages: test_doc_blocks.py."""
import csv
import html
import io
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import harness

ROOT = pathlib.Path(__file__).parent.parent.parent
SCHED = harness.DATA / "linux-sched.pftrace"
SYSCALLS = harness.DATA / "linux-syscalls.pftrace.gz"
SDK = harness.DATA / "sdk.pftrace"
TWO = harness.DATA / "mm-two-machines.pftrace.gz"
CALLS = harness.DATA / "mm-calls.pftrace.gz"
RING = harness.DATA / "linux-ring-overwritten.pftrace"


def blocks():
    """{(page, first line): SQL} of all blocks of SQL and of the queries that shell blocks hand to tp_shell."""
    out = {}
    for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        if path.name in ("sql-tables.md", "stdlib.md"):  # made from the sources
            continue
        for kind, body in re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.M | re.S):
            sql = [body] if kind == "sql" else []
            if kind == "sh":
                sql = [q for _, q in re.findall(r"""tp_shell query .*?(['"])(select .*?)\1""", body)]
            for q in sql:
                out[(path.name, q.strip().split("\n")[0])] = q
    return out


def number(row, name):
    return float(row[name])


# Answers of several statements come one after the other; `rows` are those of the last one.
CASES = {
    ("README.md", "select name, count(*) from slice group by name"):
        (SCHED, lambda rows: sum(number(r, "count(*)") for r in rows) > 1000),
    ("README.md", "select * from machine"): (SCHED, lambda rows: len(rows) == 1 and rows[0]["sysname"] == "Linux"),
    ("README.md", "select name, count(*) from slice group by name order by 2 desc limit 5"): (SYSCALLS, lambda rows: len(rows) == 5),
    ("producing.md", "select name, count(*) from slice group by name"):
        (SDK, lambda rows: sum(number(r, "count(*)") for r in rows) == 103 and all(r["name"] for r in rows)),
    ("recording.md", "select key, title, remediation from __intrinsic_trace_diagnostics"): (SCHED, lambda rows: rows == []),
    ("tutorials.md", "select thread.name, state, count(*) as times, round(sum(dur) / 1e6, 1) as ms, round(max(dur) / 1e6, 1) as longest_ms"):
        (SYSCALLS, lambda rows: {"S", "R", "Running"} <= {r["state"] for r in rows}),
    ("tutorials.md", "select slice.name, count(*) as calls, round(sum(slice.dur) / 1e6, 1) as ms, round(max(slice.dur) / 1e6, 1) as longest_ms"):
        (SYSCALLS, lambda rows: rows[0]["name"] == "sys_read" and number(rows[0], "calls") > 100),
    ("tutorials.md", "select thread.name, round(sum(dur) / 1e6, 1) as ms"):
        (SYSCALLS, lambda rows: len(rows) == 5 and number(rows[0], "ms") > 100),
    ("tutorials.md", "include perfetto module sched.latency;"):
        (SYSCALLS, lambda rows: len(rows) == 5 and number(rows[0], "worst_us") >= number(rows[0], "average_us") > 0),
    ("tutorials.md", "select waker.name as waker, thread_state.irq_context, count(*) as times,"):
        (SCHED, lambda rows: rows[0]["waker"] == "ponger" and rows[0]["irq_context"] == "0"),
    ("tutorials.md", "create perfetto table call_steps as"):
        (CALLS, lambda rows: len(rows) == 5 and all(number(r, "there_ms") > 0 < number(r, "back_ms") for r in rows)),
    ("tutorials.md", "select machine.name, round(max(clock_error_ns(sched.ts, machine.id)) / 1e3, 1) as off_by_us_at_most"):
        (CALLS, lambda rows: len(rows) == 2 and all(0 < number(r, "off_by_us_at_most") < 1000 for r in rows)),
    ("tutorials.md", "with slowest as (select asked, answered from call_steps order by answered - asked desc limit 1)"):
        (CALLS, lambda rows: {r["machine"] for r in rows} == {"guest-client", "guest-server"}),
    ("tutorials.md", "select machine.name as machine, thread.name, round(sum(sched.dur) / 1e6, 1) as ms"):
        (CALLS, lambda rows: {r["machine"] for r in rows} == {"guest-client", "guest-server"}),
    ("tutorials.md", "select name, dur from slice where dur > 3e9"):
        (SCHED, lambda rows: rows == []),
    ("ctf.md", "select name, count(*) from ftrace_event group by name"):
        (harness.DATA / "ctf2" / "lttng-kernel", lambda rows: {r["name"]: r["count(*)"] for r in rows}["sched_switch"] > "1"),
    ("recording.md", "select * from sched limit 10"): (SCHED, lambda rows: len(rows) == 10 and all(r["utid"] for r in rows)),
    ("server.md", "select count(*) from sched"): (SCHED, lambda rows: number(rows[0], "count(*)") > 10000),
    ("snapshots.md", "select count(*) from sched"): (SCHED, lambda rows: number(rows[0], "count(*)") > 10000),
    ("snapshots.md", "select sum(dur) from sched"): (SCHED, lambda rows: number(rows[0], "sum(dur)") > 0),
    ("buffers.md", "select name, idx, value, severity from stats where name glob 'traced_*' and value != 0"):
        (RING, lambda rows: any(r["name"] == "traced_buf_chunks_overwritten" and number(r, "value") > 0 for r in rows)),
    ("multi-machine.md", "SELECT id, raw_id, sysname, release, arch, num_cpus FROM machine;   -- two rows; id 0 is the host"):
        (TWO, lambda rows: len(rows) == 2 and all(number(r, "num_events") > 1000 for r in rows)),
    ("multi-machine.md", "INCLUDE PERFETTO MODULE machines.network;"): (TWO, lambda rows: rows == []),  # no headers: e2e.cross_calls has them
    ("trace-cmd.md", "SELECT s.ts, s.dur, s.state   -- the guest's CPU had to wait for one of the host"):  # without the guests' files: cli.trace_dat has them
        (harness.DATA / "trace-cmd" / "guests-host.dat", lambda rows: rows == []),
    ("profiles.md", "SELECT f.name, sum(a.size) AS bytes"): (SCHED, lambda rows: rows == []),
    ("profiles.md", "SELECT c.name, count() AS objects, sum(o.self_size + o.native_size) AS bytes"): (SCHED, lambda rows: rows == []),
    ("profiles.md", "SELECT __intrinsic_file_write('cpu.pprof', experimental_profile("): (SCHED, lambda rows: len(rows) == 1),
    ("recording.md", "select extract_arg(arg_set_id, 'message') from _trace_import_logs where name = 'ftrace_setup_errors'"):
        (SCHED, lambda rows: rows == []),
    ("sql-syntax.md", "CREATE PERFETTO TABLE busy AS SELECT utid, sum(dur) AS dur FROM sched WHERE dur > 0 GROUP BY utid;"):
        (SCHED, lambda rows: rows == [{"ok": "1"}]),
    ("sql-syntax.md", "CREATE VIRTUAL TABLE both USING span_join(a PARTITIONED cpu, b PARTITIONED cpu);"):
        (SCHED, lambda rows: rows == [{"ok": "1"}]),
}
# What a block builds on, and what is asked of it afterwards.
BEFORE = {"CREATE VIRTUAL TABLE both": "create perfetto view a as select ts, dur, cpu, utid from sched where dur > 0;"
                                       "create perfetto view b as select ts, dur, cpu, priority from sched where dur > 0;"}
AFTER = {"CREATE PERFETTO TABLE busy": "select busy_of(utid) = dur and rows_of!(slices_of(utid)) > 0 and (select count(*) from typed) ="
                                       " (select count(*) from named) as ok from busy order by dur limit 1",
         "CREATE VIRTUAL TABLE both": "select count(*) > 1000 and sum(dur) = (select sum(dur) from a) as ok from both"}
FLAGS = {"SELECT __intrinsic_file_write": ["--allow-sql-file-access"]}


def extra(table, sql, default):
    return next((v for k, v in table.items() if sql.startswith(k)), default)


class Docs(harness.Case):
    def test_every_query_has_a_test(self):
        recorded = {q.strip() for part in (ROOT / "docs" / "recording.md").read_text().split("\n## ")[1:]
                    if "```config" in part for q in re.findall(r"```sql\n(.*?)```", part, re.S)}  # test_recording_doc.py runs these
        found = {key for key, sql in blocks().items() if sql.strip() not in recorded}
        self.assertGreater(len(recorded), 9)
        self.assertEqual(found, set(CASES))

    def test_answers(self):
        every = blocks()
        before = {**BEFORE, "with slowest as": every[("tutorials.md", "create perfetto table call_steps as")]}
        for key, (trace, sense) in CASES.items():
            with self.subTest(key):
                sql = every[key]
                text = extra(before, sql, "") + sql.rstrip().rstrip(";") + ";\n" + extra(AFTER, sql, "")
                out = self.query(text, *extra(FLAGS, sql, []), trace=trace, cwd=self.dir)
                last = re.split(r"\n\s*\n", out.strip())[-1]
                self.assertTrue(sense(list(csv.DictReader(io.StringIO(last)))), out)

    def test_every_module_of_the_library_has_an_example_that_runs(self):
        sections = re.split(r"^## ", (ROOT / "docs" / "stdlib.md").read_text(), flags=re.M)[1:]
        modules = [(text.split("\n")[0], "".join(re.findall(r"^```sql\n(.*?)^```", text, re.M | re.S))) for text in sections]
        self.assertEqual([m for m, sql in modules if not sql.startswith(f"INCLUDE PERFETTO MODULE {m};")], [])
        self.assertGreater(len(modules), 100)
        trace_of = dict(re.findall(r"^-- @ (\S+) (\S+)$", (ROOT / "docs" / "stdlib_examples.sql").read_text(), re.M))
        self.assertEqual(set(trace_of) - {m for m, _ in modules}, set())
        for trace in set(trace_of.values()):  # one process for all of a trace
            mine = [(m, sql) for m, sql in modules if trace_of.get(m, "linux-sched.pftrace") == trace]
            text = "".join(f"{sql}\nselect '== {m}' as mark;\n" for m, sql in mine)
            path = self.dir / "examples.sql"
            path.write_text(text)
            out = self.run_shell("query", "-f", path, harness.DATA / trace).stdout.decode()
            answers = re.split(r'^"== (\S+)"\n', out, flags=re.M)
            for answer, module in zip(answers[::2], answers[1::2]):
                rows = [line for line in answer.splitlines() if line and line != '"mark"'][1:]
                self.assertTrue(rows or module not in trace_of, f"{module}: no rows on {trace}")

    def test_links_and_pictures(self):
        wrong, shown = [], set()
        for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
            text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
            for picture, link in re.findall(r"(!?)\[[^]]*\]\(([^)\s]+)\)", text):
                path, _, anchor = link.partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                target = (page.parent / path).resolve() if path else page
                if not target.exists():
                    wrong.append((page.name, link))
                elif anchor and target.suffix == ".md":
                    heads = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
                    names = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
                    wrong += [(page.name, link)] * (anchor not in names)
                if picture:
                    shown.add(target)
        self.assertEqual(wrong, [])
        self.assertEqual(shown, set((ROOT / "docs" / "images").iterdir()))
        self.assertTrue(all(p.stat().st_size < 100_000 for p in shown))

    def test_the_site_can_be_made(self):
        """Each page is there, and each link of the site leads to a file and a heading of it."""
        python = next((p for p in (sys.executable, "/usr/bin/python3")
                       if subprocess.run([p, "-c", "import markdown"], stderr=subprocess.DEVNULL, check=False).returncode == 0), None)
        if not python:
            self.skipTest("no python3-markdown")
        site = self.dir / "site"
        subprocess.run([python, "-B", ROOT / "scripts" / "make-site.py", site], check=True, stdout=subprocess.DEVNULL, timeout=100)
        pages = {p: p.read_text() for p in site.rglob("*.html")}
        self.assertLessEqual({site / "index.html"} | {site / "docs" / f"{p.stem}.html" for p in (ROOT / "docs").glob("*.md")}, set(pages))
        ids = {p: set(re.findall(r' id="([^"]+)"', text)) for p, text in pages.items()}
        wrong, checked = [], 0
        for page, text in pages.items():
            for link in re.findall(r' (?:href|src)="([^"]*)"', text):
                path, _, anchor = html.unescape(link).partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                target = (page.parent / path).resolve() if path else page
                checked += 1
                if not target.is_file() or (anchor and anchor not in ids.get(target, ())):
                    wrong.append((page.name, link))
            self.assertRegex(text, r"<h1[ >](.|\n)*<(p|table|li)>", page)
            self.assertIsNone(re.search(r"<p>[^<]*```|<p>\||\n- ", re.sub(r"<pre>(.|\n)*?</pre>", "", text)), page)  # a block or table that was not taken for one
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 200)

    def test_the_pictures_can_be_made(self):
        if not shutil.which("chromium"):
            self.skipTest("no chromium")
        subprocess.run([ROOT / "scripts" / "make-images.sh", harness.SHELL, self.dir / "images"], check=True, timeout=100)
        for picture in (ROOT / "docs" / "images").iterdir():
            made = self.dir / "images" / picture.name
            self.assertEqual(made.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(made.stat().st_size, picture.stat().st_size // 3)  # not a blank page

    def test_the_demo_says_what_the_readme_shows(self):
        p = subprocess.run(["sh", ROOT / "scripts" / "demo.sh", harness.SHELL, harness.DATA / "mm-calls.pftrace.gz"], capture_output=True, text=True,
                           timeout=60)
        said = [line.rstrip() for line in p.stdout.splitlines()]
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        shown = re.search(r"^```text\n(== .*?)^```", (ROOT / "README.md").read_text(), re.M | re.S).group(1).splitlines()
        self.assertGreater(len(shown), 8)
        self.assertEqual([line for line in shown if line not in said], [])
        self.assertIn("ok: nothing was lost", p.stdout)


if __name__ == "__main__":
    unittest.main()

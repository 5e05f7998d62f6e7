"""The queries of docs/fleet.md, run over a fleet, and the same questions asked of its traces one by one; drop.
Skipped (77) where there is no ClickHouse."""
import collections
import gzip
import json
import math
import pathlib
import re
import statistics
import time

import clickhouse
import harness

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "fleet.md"
BLOCKS = {b.split("\n")[0]: b for b in re.findall(r"^```clickhouse\n(.*?)^```", PAGE.read_text(), re.M | re.S)}
SOURCES = ["linux-sched.pftrace", "linux-syscalls.pftrace.gz", "mm-two-machines.pftrace.gz"]
PIECES = 8  # of each source: the first half of them is one build, the rest the other
WHOLE = ["linux-kernel-overrun.pftrace", "linux-discarded.pftrace", "mm-small-ring.pftrace", "linux-ring-overwritten.pftrace"]


def rank_of(value, sorted_values):
    """How much of the values lie below it, as a range: of several equal ones any place is right."""
    n = len(sorted_values)
    return (sum(v < value for v in sorted_values) / n, sum(v <= value for v in sorted_values) / n)


class Views(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.start_server()
        self = cls()
        self.fleet("init")
        cls.builds, cls.paths = {}, {}
        for name in SOURCES:
            path = harness.DATA / name
            if path.suffix == ".gz":
                whole = cls.dir / path.stem
                whole.write_bytes(gzip.decompress(path.read_bytes()))
                path = whole
            begin, end = map(int, self.query("select start_ts, end_ts from trace_bounds", trace=path).splitlines()[1].split(","))
            for i in range(PIECES):
                build = "2026.10" if i < PIECES // 2 else "2026.11"
                folder = cls.dir / build
                folder.mkdir(exist_ok=True)
                piece, step = folder / f"{path.stem}-{i}.pftrace", (end - begin) // (PIECES + 1)
                self.run_shell("cut", "--from", begin + i * step, "--to", begin + (i + 2) * step, "-o", piece, path)
                cls.builds[str(piece)] = build
        for build in ("2026.10", "2026.11"):
            self.fleet("add", "--build", build, cls.dir / build)
        self.fleet("add", "--build", "whole", *[harness.DATA / name for name in WHOLE])
        cls.builds |= {str(harness.DATA / name): "whole" for name in WHOLE}
        cls.facts = {path: self.ask_trace(path) for path in cls.builds}
        cls.trace_of = {path: trace for path, trace in self.rows("SELECT path, trace FROM fleet_traces")}

    @classmethod
    def start_server(cls):
        server = clickhouse.Server(cls.dir / "server")
        server.configure({})
        return server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        super().tearDownClass()

    def fleet(self, action, *args, code=0):
        return self.run_shell("fleet", action, *args, code=code, env={"MERIDIAN_FLEET": self.server.url})

    def dicts(self, sql):
        return [json.loads(line) for line in self.fleet("query", "--format", "jsonl", sql).stdout.decode().splitlines()]

    def rows(self, sql):
        return [list(r.values()) for r in self.dicts(sql)]

    def ask_trace(self, path):
        """What one trace answers by its own SQL."""
        def lines(sql):
            return [json.loads(line) for line in self.query(sql, "--format", "jsonl", trace=path).splitlines()]
        machine = "(select coalesce(m.name, 'machine ' || m.id) from machine m where m.id = t.machine_id)"
        return {
            "waits": lines(f"select {machine} as machine, (select release from machine m where m.id = t.machine_id) as release, s.dur from "
                           "thread_state s join thread t using (utid) where state in ('R', 'R+') and s.dur >= 0"),
            "calls": lines(f"select s.name, s.dur, {machine} as machine from slice s join thread_track k on s.track_id = k.id join thread t "
                           "using (utid) where s.name glob 'sys_*' and s.dur >= 0"),
            "lost": lines("select coalesce((select name from machine m where m.id = s.machine_id), 'machine ' || s.machine_id) as machine, name, "
                          "severity, value from stats s where severity in ('data_loss', 'error') and value > 0"),
            "ran": lines("select process.name as process, thread.name as thread, sum(dur) as dur from sched join thread using (utid) left join "
                         "process using (upid) where utid != 0 and dur > 0 group by 1, 2"),
        }

    def block(self, first):
        matching = [b for f, b in BLOCKS.items() if f.startswith(first)]
        self.assertEqual(len(matching), 1, first)
        return matching[0]

    def near(self, value, values, quantile, within):
        below, upto = rank_of(value, sorted(values))
        self.assertTrue(below - within <= quantile <= upto + within, (value, quantile, below, upto))

    def test_every_block_is_here(self):
        text = pathlib.Path(__file__).read_text()
        for first in BLOCKS:
            self.assertTrue(any(first.startswith(m) for m in re.findall(r'self\.block\("(.*?)"\)', text)), first)
        for block in BLOCKS.values():
            self.fleet("query", block)

    def test_condition(self):
        found = {r["path"] for r in self.dicts(self.block("SELECT path, recorded"))}
        wanted = {p for p, f in self.facts.items() if any(c["name"] == "sys_read" and c["dur"] > 50000000 for c in f["calls"])}
        self.assertEqual(found, wanted)
        self.assertGreater(len(wanted), 0)

    def test_threads(self):
        wanted = collections.Counter()
        for f in self.facts.values():
            for r in f["ran"]:
                wanted[r["process"], r["thread"]] += r["dur"]
        found = self.dicts(self.block("SELECT process_name"))
        self.assertEqual(len(found), 10)
        for row, (_, dur) in zip(found, wanted.most_common(10)):
            self.assertAlmostEqual(row["seconds"], dur / 1e9, places=6)
            self.assertEqual(wanted[row["process_name"], row["thread_name"]], round(row["seconds"] * 1e9))

    def test_latency(self):
        waits, traces = collections.defaultdict(list), collections.defaultdict(set)
        for path, f in self.facts.items():
            for r in f["waits"]:
                waits[r["machine"], r["release"] or ""].append(r["dur"])
                traces[r["machine"], r["release"] or ""].add(path)
        found = self.dicts(self.block("SELECT machine, release"))
        self.assertEqual({(r["machine"], r["release"]) for r in found}, set(waits))
        for r in found:
            values = waits[r["machine"], r["release"]]
            self.assertEqual((r["traces"], r["all_waits"], r["worst_ns"]),
                             (len(traces[r["machine"], r["release"]]), len(values), max(values)))
            self.assertAlmostEqual(r["mean_ns"] / (sum(values) / len(values)), 1, places=9)
            self.near(r["p50_ns"], values, 0.5, 0.01)
            self.near(r["p99_ns"], values, 0.99, 0.01)
        found = self.dicts(self.block("SELECT release, sum(waits)"))
        values = [r["dur"] for p, f in self.facts.items() if self.builds[p] == "2026.11" for r in f["waits"]]
        self.assertEqual(sum(r["all_waits"] for r in found), len(values))
        self.assertEqual(max(r["worst_ns"] for r in found), max(values))

    def test_syscalls(self):
        calls, traces = collections.defaultdict(list), collections.defaultdict(set)
        for path, f in self.facts.items():
            for c in f["calls"]:
                calls[c["name"]].append(c["dur"])
                traces[c["name"]].add(path)
        # The recordings are older than a week: the view's own text with another beginning of the week.
        text = self.server.ask("SHOW CREATE TABLE fleet.fleet_syscalls_week").replace("\\n", " ")
        self.assertEqual(text.count("today() - 7"), 1, text)
        since = "SELECT" + text.split(" AS SELECT", 1)[1].replace("\\'", "'").replace("today() - 7", "toDate('2000-01-01')")
        found = {r["name"]: r for r in self.dicts(f"SELECT * FROM ({since})")}
        self.assertEqual(set(found), set(calls))
        for name, values in calls.items():
            r = found[name]
            self.assertEqual((r["all_calls"], r["all_ns"], r["worst_ns"], r["traces"]), (len(values), sum(values), max(values), len(traces[name])))
            self.near(r["p99_ns"], values, 0.99, max(0.01, 1 / len(values)))
        self.assertGreater(len(calls), 10)
        self.assertLessEqual(len(self.dicts(self.block("SELECT name, traces"))), 20)

    def measures(self):
        """{measure: {build: [value of a trace and machine]}}, but for the estimated percentile."""
        out = collections.defaultdict(lambda: collections.defaultdict(list))
        for path, f in self.facts.items():
            values = collections.defaultdict(list)
            for r in f["waits"]:
                values["sched latency, mean ns", r["machine"]].append(r["dur"])
            for c in f["calls"]:
                values[c["name"] + ", mean ns", c["machine"]].append(c["dur"])
            for (measure, _), v in values.items():
                out[measure][self.builds[path]].append(sum(v) / len(v))
        return out

    def test_regressions(self):
        found = {r["measure"]: r for r in self.dicts("SELECT * FROM fleet_regressions WHERE build_a = '2026.10' AND build_b = '2026.11'")}
        compared = 0
        for measure, builds in self.measures().items():
            a, b = builds["2026.10"], builds["2026.11"]
            if len(a) < 2 or len(b) < 2:
                self.assertNotIn(measure, found)
                continue
            r = found[measure]
            error = math.sqrt(statistics.variance(a) / len(a) + statistics.variance(b) / len(b))
            self.assertEqual((r["n_a"], r["n_b"]), (len(a), len(b)))
            self.assertAlmostEqual(r["change"], statistics.mean(b) / statistics.mean(a) - 1, places=6)
            if error:
                self.assertAlmostEqual(r["p"], math.erfc(abs(statistics.mean(b) - statistics.mean(a)) / error / math.sqrt(2)), places=6)
            compared += 1
        self.assertGreater(compared, 5)
        shown = self.dicts(self.block("SELECT measure, n_a"))
        self.assertEqual({r["measure"] for r in shown}, {m for m, r in found.items() if r["p"] is not None and r["p"] < 0.05 and r["change"] > 0.05})

    def test_outliers(self):
        found = collections.Counter(r["measure"] for r in self.dicts("SELECT * FROM fleet_outliers WHERE measure NOT LIKE '%p99%'"))
        wanted = collections.Counter()
        for measure, builds in self.measures().items():
            values = sorted(v for b in builds.values() for v in b)
            middle = (len(values) + 1) // 2 - 1
            median = values[middle]
            mad = sorted(abs(v - median) for v in values)[middle]
            if len(values) >= 5 and mad > 0:
                wanted += collections.Counter({measure: sum(abs(v - median) / (1.4826 * mad) > 5 for v in values)})
        self.assertEqual(found, wanted)
        self.assertGreater(sum(wanted.values()), 0)
        for r in self.dicts(self.block("SELECT measure, path")):
            self.assertIn(r["path"], self.builds)

    def test_losses(self):
        wanted = collections.Counter()
        for f in self.facts.values():
            for r in f["lost"]:
                if r["severity"] == "data_loss":
                    wanted[r["machine"] or "", r["name"]] += r["value"]
        found = {(r["machine"], r["stat"]): r["events"] for r in self.dicts(self.block("SELECT machine, stat"))}
        self.assertEqual(found, dict(wanted))
        self.assertGreater(len(wanted), 1)

    def test_zz_drop(self):
        """What is dropped counts no more and its rows are gone; the rest stays as it was; it can be added again."""
        before = self.rows("SELECT trace, count() FROM sched_slice WHERE trace IN (SELECT trace FROM fleet_traces WHERE build = '2026.11') GROUP BY trace ORDER BY trace")
        self.assertIn("0 traces dropped", self.fleet("drop", "--older-than", "5000w").stderr.decode())
        n = len([b for b in self.builds.values() if b != "2026.11"])
        self.assertIn(f"{n} traces dropped", self.fleet("drop", "--older-than", "0s", "--where", "build != '2026.11'").stderr.decode())
        self.assertEqual(self.rows("SELECT DISTINCT build FROM fleet_traces"), [["2026.11"]])
        self.assertEqual(self.rows("SELECT trace, count() FROM sched_slice GROUP BY trace ORDER BY trace"), before)
        for (table,) in self.server.rows("SELECT name FROM system.tables WHERE database = 'fleet_local' AND name LIKE '%_rows'"):
            self.assertEqual(self.server.ask(f"SELECT count() FROM fleet_local.`{table}` WHERE load NOT IN (SELECT load FROM fleet_local.loads)").strip(), "0")
        for table in ("drops", "begun"):
            self.assertEqual(self.server.ask(f"SELECT count() FROM fleet_local.{table} WHERE load NOT IN (SELECT load FROM fleet_local.commits)").strip(), "0")
        err = self.fleet("drop", "--older-than", "0s", "--where", "nothing = 1", code=1).stderr.decode()
        self.assertIn("nothing", err)
        self.assertIn(f"{len(WHOLE)} added", self.fleet("add", *[harness.DATA / name for name in WHOLE]).stderr.decode())


if __name__ == "__main__":
    clickhouse.need()
    harness.main()

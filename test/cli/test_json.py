"""JSON traces of other programs beside what Python's json module reads in them: every complete event with its time, thread
and args, counts of the other phases, samples of a CPU profile; and what `convert` makes of them."""
import collections
import csv
import glob
import gzip
import io
import json
import os
import subprocess
import tempfile
import unittest
from decimal import ROUND_HALF_UP, Decimal

SHELL = os.environ["TP_SHELL"]
HERE = os.path.join(os.environ["MERIDIAN_DATA"], "json")


def run(*args, **kwargs):
    done = subprocess.run([SHELL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **kwargs)
    if done.returncode:
        raise AssertionError(f"{args}: {done.stderr.decode()}")
    return done.stdout


def query(sql, path):
    text = run("query", path, sql).decode().split("\nQuery execution")[0]
    return list(csv.DictReader(io.StringIO(text)))


def events(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        document = json.loads(f.read(), parse_float=Decimal)
    return document if isinstance(document, list) else document["traceEvents"]


def ns(value):
    return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_UP))


def leaves(value, key="args"):
    """{key: value as text} of args."""
    if isinstance(value, dict):
        out = {}
        for k, v in value.items():
            out.update(leaves(v, f"{key}.{k}"))
        return out
    if isinstance(value, list):
        out = {}
        for i, v in enumerate(value):
            out.update(leaves(v, f"{key}[{i}]"))
        return out
    if value is None:
        return {}
    if isinstance(value, bool):
        return {key: str(value).lower()}
    if isinstance(value, Decimal):
        return {key: float(value)}
    return {key: str(value)}


class Traces(unittest.TestCase):
    maxDiff = 2000

    def test_files(self):
        paths = sorted(glob.glob(os.path.join(HERE, "*.json*")))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                all_events = events(path)
                self.complete(path, all_events)
                self.args(path, all_events)
                self.names(path, all_events)
                self.losses(path)

    def complete(self, path, all_events):
        want = collections.Counter((ns(e["ts"]), ns(e["dur"]), e["name"], str(e.get("pid", 0)), str(e.get("tid", 0) or e.get("pid", 0)))
                                   for e in all_events if e["ph"] == "X")
        rows = query("select s.ts, s.dur, s.name, p.pid, t.tid from slice s join track k on k.id = s.track_id join thread t on "
                     "t.utid = extract_arg(k.dimension_arg_set_id, 'utid') join process p using (upid) where s.dur >= 0", path)
        got = collections.Counter((int(r["ts"]), int(r["dur"]), r["name"], r["pid"], r["tid"]) for r in rows)
        self.assertEqual(want - got, collections.Counter(), "complete events that are no slices")
        self.assertGreater(sum(want.values()), 10)

    def args(self, path, all_events):
        want = collections.Counter()
        for e in all_events:
            if e["ph"] == "X" and leaves(e.get("args", {})):
                want.update((e["name"], k) for k in leaves(e["args"]))
        rows = query("select s.name, a.key, count(*) as n from slice s join args a using (arg_set_id) where a.key glob 'args.*' "
                     "group by 1, 2", path)
        got = collections.Counter({(r["name"], r["key"]): int(r["n"]) for r in rows})
        self.assertEqual(want - got, collections.Counter(), "args that are not there")
        texts = {}
        for e in all_events:
            if e["ph"] == "X":
                for k, v in leaves(e.get("args", {})).items():
                    if isinstance(v, str) and "\n" not in v:
                        texts.setdefault((e["name"], k), set()).add(v)
        rows = query("select distinct s.name, a.key, a.display_value as v from slice s join args a using (arg_set_id) where "
                     "a.value_type != 'real' and a.key glob 'args.*'", path)
        found = {}
        for r in rows:
            found.setdefault((r["name"], r["key"]), set()).add(r["v"])
        for key, values in texts.items():
            self.assertLessEqual(values, found.get(key, set()), key)

    def names(self, path, all_events):
        want = {}
        for e in all_events:
            if e["ph"] == "M" and e["name"] == "thread_name" and e["args"].get("name"):
                want[(str(e.get("pid", 0)), str(e.get("tid", 0) or e.get("pid", 0)))] = e["args"]["name"]
        rows = query("select p.pid, t.tid, t.name from thread t join process p using (upid) where not t.is_idle", path)
        got = {(r["pid"], r["tid"]): r["name"] for r in rows}
        self.assertEqual({k: got.get(k) for k in want}, want)

    def losses(self, path):
        rows = query("select name, value from stats where name glob 'json_*failure' and value > 0", path)
        self.assertEqual(rows, [])

    def test_profile(self):
        path = os.path.join(HERE, "node.cpuprofile")
        with open(path) as f:
            profile = json.load(f)
        rows = query("select s.ts, f.name from cpu_profile_stack_sample s join stack_profile_callsite c on c.id = s.callsite_id "
                     "join stack_profile_frame f on f.id = c.frame_id order by s.ts, s.id", path)
        names = {n["id"]: n["callFrame"]["functionName"] for n in profile["nodes"]}
        at, want = profile["startTime"], []
        for node, delta in zip(profile["samples"], profile["timeDeltas"]):
            at += delta
            want.append((at * 1000, names[node]))
        self.assertEqual([(int(r["ts"]), r["name"]) for r in rows], sorted(want, key=lambda s: s[0]))
        depth = query("select max(depth) as d from stack_profile_callsite", path)[0]["d"]
        parents = {c: n["id"] for n in profile["nodes"] for c in n.get("children", [])}

        def level(n):
            return level(parents[n]) + 1 if n in parents else 0
        self.assertEqual(int(depth), max(level(n) for n in names))

    def test_pipe(self):
        path = os.path.join(HERE, "clang-time-trace.json")
        with open(path, "rb") as f:
            piped = run("query", "-", "select count(*), sum(dur), count(arg_set_id) from slice", stdin=f)
        whole = run("query", path, "select count(*), sum(dur), count(arg_set_id) from slice")
        self.assertEqual(piped, whole)

    def test_convert(self):
        for path in sorted(glob.glob(os.path.join(HERE, "*.json*"))):
            with self.subTest(os.path.basename(path)), tempfile.TemporaryDirectory() as there:
                again = os.path.join(there, "again.json")
                run("convert", "json", path, again)
                sql = ("select s.ts, s.dur, s.name, t.tid from slice s join thread_track k on k.id = s.track_id join thread t "
                       "using (utid) where s.dur > 0 order by s.ts, s.dur, s.name, t.tid")
                self.assertEqual(query(sql, again), query(sql, path))
                json.loads(run("convert", "firefox", path, "-"))


if __name__ == "__main__":
    unittest.main()

"""The CTF reader beside babeltrace and babeltrace2: same events, times and fields. Traces are made here (their text is
known, so that much is checked without either program) and taken from those at hand."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from ctf_writer import Count, Enum, Float, Int, Letters, List, Struct, Text, Trace, Variant

DUMP, SHELL = os.environ["CTF_DUMP"], os.environ["TP_SHELL"]
SHARED = os.environ.get("MERIDIAN_SHARED") or os.path.join(os.environ["MERIDIAN_SOURCE"], "..", "shared")

ORACLES = (("1", "babeltrace"), ("2", "babeltrace2"))


def lines(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    text = done.stdout.decode("utf-8", "replace").replace('( "_', '( "')
    return sorted(text.splitlines()), done


def every_field():
    """Fields of all types, at odd places, in every nesting."""
    u5, s13, u64 = Int(5), Int(13, signed=True), Int(64)
    colour = Enum(Int(8), [("red", 0, 0), ("green", 1, 9), ("blue", 200, 255)])
    sign = Enum(Int(16, signed=True), [("below", -30000, -1), ("zero", 0, 0), ("above", 1, 30000)])
    pair = Struct([("a", u5), ("b", s13)])
    return [
        ("one", Int(1)), ("u5", u5), ("s13", s13), ("u33", Int(33)), ("s64", Int(64, signed=True)),
        ("hex", Int(32, base=16)), ("octal", Int(16, base=8)), ("wide", Int(32, align=64)), ("tail", Int(3)),
        ("le", Int(32, order="le")), ("be", Int(32, order="be")), ("be16", Int(16, signed=True, order="be")),
        ("colour", colour), ("sign", sign), ("f32", Float(32)), ("f64", Float(64, align=64)),
        ("f64be", Float(64, order="be")), ("text", Text()), ("letters", Letters(n=9)), ("n", Count(8, 0, 7)),
        ("list", List(u64, length="n")), ("m", Count(4, 2, 15)), ("word", Letters(length="m")), ("grid", List(List(Int(7), n=3), n=2)),
        ("texts", List(Text(), n=2)), ("pairs", List(pair, length="n")), ("aligned", Struct([("x", Int(8))], align=32)),
        ("choice", Variant("colour", [("red", Int(12)), ("green", Text()), ("blue", Struct([("deep", Float(32)), ("m", Int(2)), ("inner", List(Int(4), length="m"))]))])),
        ("again", Variant("sign", [("below", Int(64, signed=True)), ("zero", Struct([])), ("above", List(Int(9), n=3))])),
    ]


def describe(trace):
    context = Struct([("tid", Int(32, signed=True)), ("comm", Letters(n=16))])
    trace.stream(0, context)
    trace.stream(7)
    trace.event(0, 0, "all:fields", every_field())
    trace.event(0, 3, "empty", [])
    trace.event(0, 30, "with_context", [("x", Int(8))], context=Struct([("kind", Enum(Int(4), [("A", 0, 7), ("B", 8, 15)]))]))
    trace.event(0, 31, "first_extended", [("x", Int(64))])
    trace.event(0, 70000, "far", [("n", Int(4)), ("bytes", List(Int(8), length="n"))])
    trace.event(7, 0, "other_stream", [("name", Text()), ("x", Int(16))])
    return trace


class Made(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.dir)

    def check(self, trace, oracles=ORACLES):
        trace.close()
        want = sorted(trace.lines)
        got, done = lines([DUMP, "1", trace.path])
        self.assertEqual(done.returncode, 0, done.stderr)
        for a, b in zip(got, want):
            self.assertEqual(a, b)
        self.assertEqual(len(got), len(want))
        self.assertGreater(len(want), 50)
        compare_with_oracles(self, trace.path, oracles)
        return done.stderr.decode()

    def fill(self, trace, step=5_000_000):
        describe(trace)
        now = trace.packet("a_0", 0, 0, 0, 0, 10**9, 40, step)
        now = trace.packet("a_0", 0, 0, 1, 0, now, 0, step, padding=100)
        trace.packet("a_0", 0, 0, 2, 0, now + 7, 40, step, padding=4096)
        trace.packet("a_1", 0, 1, 0, 0, 10**9, 40, step)
        trace.packet("b_0", 7, 0, 0, 0, 10**9 + 5, 20, step)
        return trace

    def test_layouts(self):
        """Both headers, both byte orders, plain and packetized metadata, several seeds."""
        for seed in range(4):
            for header in ("compact", "large"):
                for big in (False, True):
                    with self.subTest(seed=seed, header=header, big=big):
                        path = os.path.join(self.dir, f"{seed}{header}{big}")
                        self.check(self.fill(Trace(path, seed, header, big, packet_metadata=seed % 2 == 1)))

    def test_clock_wraps(self):
        """27 bits of a nanosecond clock wrap every 134 ms; an event after a longer pause carries the whole time."""
        self.check(self.fill(Trace(os.path.join(self.dir, "w"), 1), step=120_000_000))
        self.check(self.fill(Trace(os.path.join(self.dir, "l"), 2), step=400_000_000))

    def test_clock_frequency(self):
        """Times are exact; the babeltraces round offset and cycles apart (1 ns) where an offset is no whole ns."""
        for k, (freq, offset, oracles) in enumerate([(1_000_000, 0, ORACLES), (24_000_000, 12345, ORACLES),
                                                     (2_893_437_001, 0, ORACLES), (2_893_437_001, 999_999_999, ())]):
            trace = Trace(os.path.join(self.dir, str(k)), k, freq=freq, offset=offset)
            self.check(self.fill(trace, step=50_000), oracles)

    def test_losses(self):
        """Gaps in packet numbers and discarded events reach the table of losses, as babeltrace2 counts them."""
        trace = describe(Trace(os.path.join(self.dir, "t"), 5))
        now = trace.packet("a_0", 0, 0, 0, 2, 10**9, 60, 1000)
        now = trace.packet("a_0", 0, 0, 1, 9, now, 5, 1000)
        now = trace.packet("a_0", 0, 0, 5, 9, now, 5, 1000)
        trace.packet("a_0", 0, 0, 6, 30, now, 5, 1000)
        self.assertIn("30 discarded, 3 packets lost, 0 damaged", self.check(trace))
        done = subprocess.run([SHELL, "query", trace.path, "select name, idx, value from stats where name glob 'ctf_*' and value"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertRegex(done.stdout, r'"ctf_events_discarded",0,30')
        self.assertRegex(done.stdout, r'"ctf_packets_lost",0,3')
        if shutil.which("babeltrace2"):
            said = subprocess.run(["babeltrace2", trace.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
            lost = sum(map(int, re.findall(r"Tracer (?:may have )?discarded (\d+) packets", said)))
            self.assertEqual(lost, 3, said)

    def test_truncated(self):
        """What is there of a file that was cut is read; the rest is counted."""
        trace = self.fill(Trace(os.path.join(self.dir, "t"), 9))
        trace.close()
        whole, _ = lines([DUMP, "1", trace.path])
        file = os.path.join(trace.path, "a_0")
        size = os.path.getsize(file)
        for cut in sorted((size - 1, size - 5000, size // 2, 100, 30, 5), reverse=True):
            os.truncate(file, cut)
            got, done = lines([DUMP, "1", trace.path])
            self.assertEqual(done.returncode, 0)
            self.assertEqual(set(got) - set(whole), set(), cut)
        self.assertLess(len(got), len(whole))

    def test_rows(self):
        """The same events reach the tables, with their args."""
        trace = self.fill(Trace(os.path.join(self.dir, "t"), 11))
        trace.close()
        done = subprocess.run([SHELL, "query", trace.path,
                               "select ts, name, extract_arg(arg_set_id, 's64') as s64, extract_arg(arg_set_id, 'text') as t, "
                               "extract_arg(arg_set_id, 'grid[1][2]') as g from ftrace_event"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        rows = done.stdout.splitlines()[1:]
        self.assertEqual(len(rows), len(trace.lines))
        want = []
        for line in trace.lines:
            m = re.match(r"\[(\d+)\.(\d+)\] made ([^ ]+): ", line)
            ts = int(m[1]) * 10**9 + int(m[2])
            if m[3] == "all:fields":
                s64, text = re.search(r" s64 = (-?\d+),", line)[1], re.search(r' text = "([^"]*)"', line)[1]
                grid = re.search(r"grid = \[ .*?\[1\] = \[ \[0\] = \d+, \[1\] = \d+, \[2\] = (\d+)", line)[1]
                want.append(f'{ts},"{m[3]}",{s64},"{text}",{grid}')
            else:
                want.append(f'{ts},"{m[3]}","[NULL]","[NULL]","[NULL]"')
        self.assertEqual(sorted(rows), sorted(want))


class Archives(unittest.TestCase):
    """A trace in an archive is the same trace."""

    def test_archives(self):
        sql = "select ts, name, utid, extract_arg(arg_set_id, 'u33') from ftrace_event"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "host")
            trace = describe(Trace(path, 3, packet_metadata=True))
            trace.packet("a_0", 0, 0, 0, 0, 10**9, 60, 1000)
            trace.packet("b_0", 7, 0, 0, 0, 10**9, 20, 1000)
            trace.close()
            os.makedirs(os.path.join(path, "index"))
            with open(os.path.join(path, "index", "a_0.idx"), "wb") as f:
                f.write(b"\xc1\xf1\xdc\xc1 not a stream")
            want = subprocess.run([SHELL, "query", path, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(len(want.stdout.splitlines()), 81)
            for form in ("tar", "zip"):
                archive = shutil.make_archive(os.path.join(folder, "x"), form, folder, "host")
                got = subprocess.run([SHELL, "query", archive, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(got.stdout.encode(), want.stdout)
                self.assertNotIn("damaged", got.stderr)


def compare_with_oracles(test, path, oracles=ORACLES):
    for version, program in oracles:
        if not shutil.which(program):
            continue
        got, _ = lines([DUMP, version, path])
        want, done = lines([program, "--clock-seconds", "--no-delta", path])
        if done.returncode == 0:
            for a, b in zip(got, want):
                test.assertEqual(a, b, program)
            test.assertEqual(len(got), len(want), program)
        else:  # it gives up on a packet that begins before the last event; what it printed until then is compared
            test.assertGreater(len(want), 0, done.stderr)
            test.assertEqual(set(want) - set(got), set(), program)


class Recorded(unittest.TestCase):
    """Traces kept outside the repository."""

    def test_traces_at_hand(self):
        found = []
        for folder in ("data/synctraces", "data/lttng-two-hosts"):
            for base, _, files in os.walk(os.path.join(SHARED, folder)):
                if "metadata" in files:
                    found.append(base)
        if not found or not (shutil.which("babeltrace") or shutil.which("babeltrace2")):
            self.skipTest("no recordings in ../shared/data, or neither babeltrace nor babeltrace2")
        for path in sorted(found):
            with self.subTest(path=path):
                compare_with_oracles(self, path)


if __name__ == "__main__":
    for program in ("babeltrace", "babeltrace2"):
        if not shutil.which(program):
            print(f"no {program}: traces are compared with their known text only (scripts/install-deps.sh --tests)", file=sys.stderr)
    unittest.main()

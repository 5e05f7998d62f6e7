"""tp_shell snapshot: every table of every recording is the same again; what is cut, changed or of another version is refused."""
import gzip
import os
import random
import shutil
import struct
import subprocess
import tarfile
import unittest
import zipfile

import harness
from harness import DATA

TRACES = ["linux-sched.pftrace", "linux-zstd.pftrace", "linux-generic-events.pftrace.gz", "linux-mono.pftrace", "sdk.pftrace",
          "track-events.pftrace", "linux-syscalls.pftrace.gz", "mm-calls.pftrace.gz", "apart-relay.pftrace", "mm-host-only.pftrace",
          "linux-kernel-overrun.pftrace"]


class Snapshot(harness.Case):
    def snapshot(self, *traces, name="x.mrdsnap", flags=()):
        out = self.dir / name
        self.run_shell("snapshot", *flags, *traces, "-o", out)
        return out

    def tables(self):
        names = self.query("select name from sqlite_master where type = 'view' order by 1", trace=self.empty).split("\n")[1:]
        return [n.strip('"') for n in names if n]

    def dump(self, trace, tables, *flags):
        """The rows of all tables, and their args, as one text."""
        sql = ";\n".join([f"select '{t}' as tab; select * from {t}" for t in tables])
        return self.query(sql, "--format", "csv", *flags, trace=trace)

    def test_every_table_is_the_same(self):
        """All tables of the engine, and the args of everything, by way of a snapshot and without."""
        tables = [t for t in self.tables() if t not in ("sqlstats", "stats", "perfetto_tables")]
        self.assertGreater(len(tables), 60)
        for trace in TRACES:
            with self.subTest(trace=trace):
                snap = self.snapshot(DATA / trace, name=trace + ".mrdsnap")
                self.assertEqual(self.dump(DATA / trace, tables), self.dump(snap, tables))
                stats = ("select name, idx, machine_id, severity, source, value from stats where name not like '%duration_ns' "
                         "order by 1, 2, 3")
                self.assertEqual(self.query(stats, trace=DATA / trace), self.query(stats, trace=snap))
                again = self.snapshot(snap, name="again.mrdsnap")
                self.assertEqual(again.read_bytes(), snap.read_bytes(), "a snapshot of a snapshot is the same file")

    def test_clocks(self):
        sql = ("select m.id, clock_error_ns(start_ts + 1000000, m.id), to_machine_time(start_ts + 5000000, m.id, c), "
               "from_machine_time(to_machine_time(start_ts + 5000000, m.id, c), m.id, c), to_machine_time(end_ts, m.id, c) "
               "from machine m, trace_bounds, (select 'BOOTTIME' as c union all select 'REALTIME' union all select "
               "'MONOTONIC' union all select 'MONOTONIC_RAW') order by 1, c")
        for trace in ("mm-two-machines.pftrace.gz", "linux-sched.pftrace", "mm-small-ring.pftrace", "apart-relay.pftrace"):
            with self.subTest(trace=trace):
                want = self.query(sql, trace=DATA / trace)
                self.assertEqual(want, self.query(sql, trace=self.snapshot(DATA / trace)))

    def test_options(self):
        snap = self.snapshot(DATA / "linux-sched.pftrace", flags=["--no-ftrace-raw"])
        count = "select count(*) from ftrace_event"
        self.assertEqual(self.query(count, trace=snap).split()[-1], "0")
        self.assertEqual(self.query(count, "--no-ftrace-raw", trace=snap).split()[-1], "0")
        self.fails("query", "--full-sort", snap, count, text="other options of loading")

    def test_pipes_and_archives(self):
        snap, count = self.snapshot(DATA / "linux-sched.pftrace"), "select count(*), sum(dur) from sched"
        want = self.query(count, trace=snap)
        self.assertEqual(want, self.query(count, trace="-", stdin=snap.read_bytes()))
        packed = self.dir / "s.gz"
        packed.write_bytes(gzip.compress(snap.read_bytes(), 1))
        self.assertEqual(want, self.query(count, trace=packed))
        with zipfile.ZipFile(self.dir / "s.zip", "w", zipfile.ZIP_DEFLATED) as z:
            z.write(snap, "inside.mrdsnap")
        self.assertEqual(want, self.query(count, trace=self.dir / "s.zip"))
        with tarfile.open(self.dir / "s.tar", "w") as t:
            t.add(snap, "inside.mrdsnap")
        self.assertEqual(want, self.query(count, trace=self.dir / "s.tar"))
        self.assertEqual(want, self.query(count, trace=snap, env={"TRACE_PROCESSOR_NO_MMAP": "1"}))

    def test_what_needs_packets(self):
        snap = self.snapshot(DATA / "linux-sched.pftrace")
        self.fails("cut", "--from", "1ms", "-o", self.dir / "c.pftrace", snap, text="a snapshot has no packets")
        self.fails("query", snap, DATA / "linux-mono.pftrace", "-f", "/dev/null", text="together with other traces")
        self.fails("query", DATA / "linux-mono.pftrace", snap, "-f", "/dev/null", text="together with other traces")
        self.fails("snapshot", DATA / "apart-a.pftrace", DATA / "apart-b.pftrace", "-o", self.dir / "two.mrdsnap",
                   text="packets relate")
        self.assertFalse((self.dir / "two.mrdsnap").exists())

    def test_the_name_without_o(self):
        trace = self.dir / "here.pftrace"
        shutil.copy(DATA / "linux-mono.pftrace", trace)
        self.run_shell("snapshot", trace)
        self.assertTrue((self.dir / "here.pftrace.mrdsnap").exists())
        trace.unlink()  # a snapshot stands by itself
        self.assertEqual(self.query("select count(*) > 0 as yes from args", trace=self.dir / "here.pftrace.mrdsnap").split(), ['"yes"', "1"])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        p = self.run_shell("snapshot", DATA / "linux-sched.pftrace", "-o", "/dev/full", code=1)
        self.assertIn(b"No space left", p.stderr)


class Memory(harness.Case):
    def test_spilled_columns_answer_the_same(self):
        """All columns in a file, after the first few kB."""
        trace = DATA / "linux-sched.pftrace"
        for sql in ("select * from sched", "select * from thread_state", "select * from ftrace_event", "select * from args"):
            self.assertEqual(self.query(sql, trace=trace), self.query(sql, "--memory", "40k", trace=trace))
        self.assertEqual(self.query("select 1", "--memory", "1G", trace=trace).split(), ['"1"', "1"])

    def test_sizes(self):
        for text in ("", "x", "-1", "0", "1X", "99999999999T", "1.5G"):
            self.fails("query", f"--memory={text}", self.empty, "select 1", text="--memory: invalid size")


class Damage(harness.Case):
    ASK = ("select count(*), sum(ts), sum(dur), max(utid) from sched; select count(*), max(name), sum(length(name)) from thread; "
           "select sum(length(key) + length(flat_key) + ifnull(length(display_value), 0)) from args; "
           "select sum(length(name) + ts + utid) from ftrace_event; select sum(ts), max(state), sum(waker_utid) from thread_state")

    def setUp(self):
        self.snap = self.dir / "good.mrdsnap"
        if not self.snap.exists():
            self.run_shell("snapshot", DATA / "linux-sched.pftrace", "-o", self.snap)
        self.bytes = self.snap.read_bytes()
        self.want = self.query(self.ASK, trace=self.snap)

    def ask(self, content):
        """The answer, or None where it is refused with a word about the snapshot; nothing else may happen."""
        path = self.dir / "bad.mrdsnap"
        path.write_bytes(content)
        p = subprocess.run([harness.SHELL, "query", path, self.ASK], capture_output=True, timeout=120,
                           env={**os.environ, "HOME": str(self.dir)})
        if p.returncode == 0:
            return p.stdout.decode()
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr.decode(errors="replace"), "snapshot|not a trace|Unknown trace type")
        return None

    def sections(self):
        at, n = len(self.bytes) - 16 - 18 * 24, 18
        return [struct.unpack_from("<QQ", self.bytes, at + 24 * i) for i in range(n)]

    def test_cut_at_every_section(self):
        ends = sorted({p for o, n in self.sections() for p in (o, o + n)} | {16, 64, len(self.bytes) - 1, len(self.bytes) - 8})
        for end in ends:
            if end < len(self.bytes):
                self.assertIsNone(self.ask(self.bytes[:end]), f"cut at {end}")

    def test_flipped_bytes(self):
        """A flipped byte is noticed, or it is where nothing asked looks (padding, tables that are not asked): never another answer."""
        rng = random.Random(23)
        refused = 0
        places = [rng.randrange(len(self.bytes)) for _ in range(60)]
        places += [o + rng.randrange(n) for o, n in self.sections() if n for _ in range(3)]
        for at in places:
            bad = bytearray(self.bytes)
            bad[at] ^= 1 << rng.randrange(8)
            got = self.ask(bytes(bad))
            refused += got is None
            if got is not None:
                self.assertEqual(got, self.want, f"byte {at}")
        self.assertGreater(refused, 40)

    def test_versions(self):
        self.assertIn("format version 99", self.fails("query", self.write(8, struct.pack("<I", 99)), "select 1"))
        self.assertIn("byte order", self.fails("query", self.write(12, struct.pack(">I", 0x01020304)), "select 1"))

    def write(self, at, what):
        path = self.dir / "other.mrdsnap"
        path.write_bytes(self.bytes[:at] + what + self.bytes[at + len(what):])
        return path


if __name__ == "__main__":
    harness.main()

"""The cache of snapshots: it answers the same, never for another trace; kills, races, damage, full caches, directories of others."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import DATA, SHELL

COUNT = "select count(*), sum(dur), (select count(*) from args), (select count(*) from ftrace_event) from sched"


def varint(n, size):
    return bytes([n >> 7 * i & 0x7F | (0x80 if i + 1 < size else 0) for i in range(size)])


def without_last_packets(trace):
    """The trace of the same length whose last half are packets that hold nothing known."""
    at, starts = 0, []
    while at < len(trace):
        starts.append(at)
        n = shift = 0
        at += 1
        while True:
            byte = trace[at]
            n |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                break
        at += n
    cut = starts[len(starts) // 2]
    rest = len(trace) - cut - 5  # a tag, and a length of 4 bytes
    return trace[:cut] + b"\x0a" + varint(rest, 4) + b"\xfa\x7f" + varint(rest - 6, 4) + bytes(rest - 6)


class Cache(harness.Case):
    def setUp(self):
        self.cache = self.dir / f"cache-{self._testMethodName}"
        self.trace = self.dir / f"{self._testMethodName}.pftrace"
        self.use("linux-sched.pftrace")

    def use(self, name, age=100):
        """The trace is this recording now; its times are `age` seconds old, so that its sum may be remembered."""
        shutil.copyfile(DATA / name, self.trace)
        if age:
            then = time.time() - age
            os.utime(self.trace, (then, then))

    def ask(self, *flags, sql=COUNT, **kw):
        return self.query(sql, f"--cache={self.cache}", *flags, trace=self.trace, **kw)

    def entries(self):
        return sorted(p.name for p in self.cache.glob("*.mrdsnap"))

    def test_hit_and_miss(self):
        plain = self.query(COUNT, trace=self.trace)
        self.assertEqual(plain, self.ask())
        self.assertEqual(len(self.entries()), 1)
        entry = self.cache / self.entries()[0]
        os.utime(entry, (1, 1))
        self.assertEqual(plain, self.ask())
        self.assertGreater(entry.stat().st_mtime, 1000, "a use is noted")
        self.assertEqual(plain, self.query(COUNT, trace=self.trace, env={"MERIDIAN_CACHE": str(self.cache)}))
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(oct(self.cache.stat().st_mode & 0o777), "0o700")
        # Other options are another entry; so is another name.
        none = self.ask("--no-ftrace-raw")
        self.assertNotEqual(none, plain)
        self.assertEqual(none, self.ask("--no-ftrace-raw"))
        self.assertEqual(plain, self.ask())
        self.assertEqual(len(self.entries()), 2)

    def test_changed_source(self):
        """The same name and length, and times set back: the old answer never comes again."""
        old = self.ask()
        content, stat = self.trace.read_bytes(), self.trace.stat()
        self.trace.write_bytes(without_last_packets(content))
        os.utime(self.trace, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.assertEqual(self.trace.stat().st_size, stat.st_size)
        new = self.ask()
        self.assertNotEqual(new, old)
        self.assertEqual(new, self.query(COUNT, trace=self.trace))
        self.use("linux-sched.pftrace")
        self.assertEqual(old, self.ask())

    def test_being_written(self):
        with open(self.trace, "ab"):
            self.ask()
            self.assertEqual(self.entries(), [])
        self.ask()
        self.assertEqual(len(self.entries()), 1)

    def test_damaged_entry(self):
        want = self.ask()
        entry = self.cache / self.entries()[0]
        good = entry.read_bytes()
        rng = random.Random(7)
        for kind in ["cut", "empty", "headers"] + ["flip"] * 12:
            bad = bytearray(good)
            if kind == "cut":
                bad = bad[:len(bad) // 2]
            elif kind == "empty":
                bad = bytearray()
            elif kind == "headers":
                bad[-200] ^= 1
            else:
                bad[rng.randrange(len(bad))] ^= 64
            entry.chmod(0o600)
            entry.write_bytes(bad)
            p = subprocess.run([SHELL, "query", f"--cache={self.cache}", self.trace, COUNT], capture_output=True, timeout=120)
            if p.returncode != 0:  # found while it was read: then the entry is gone
                self.assertIn(b"snapshot is damaged", p.stderr)
            else:
                self.assertEqual(p.stdout.decode(), want, kind)
            self.assertEqual(self.ask(), want)

    def test_packets_are_needed(self):
        self.ask()
        self.run_shell("cut", f"--cache={self.cache}", "--from", "1ms", "-o", self.dir / "cut.pftrace", self.trace)

    def test_pipes_and_directories(self):
        want = self.query(COUNT, trace=self.trace)
        self.assertEqual(want, self.query(COUNT, f"--cache={self.cache}", trace="-", stdin=self.trace.read_bytes()))
        self.assertEqual(self.entries(), [])

    def test_unknown_format(self):
        bad = self.dir / "noise.bin"
        bad.write_bytes(bytes(range(256)) * 20)
        self.fails("query", f"--cache={self.cache}", bad, "select 1", text="not a trace in a format that is known")
        self.assertEqual(self.entries(), [])

    def test_two_traces(self):
        sql = "select name, (select count(*) from sched) from machine order by 1"
        pair = [DATA / "mm-host-only.pftrace", DATA / "mm-guest-only.pftrace"]
        want = self.run_shell("query", *pair, "-f", "-", stdin=sql.encode()).stdout
        for _ in range(2):
            self.assertEqual(want, self.run_shell("query", f"--cache={self.cache}", *pair, "-f", "-", stdin=sql.encode()).stdout)

    def test_size(self):
        """What was used longest ago goes first, and what is larger than all of the cache never comes."""
        self.ask()
        size = (self.cache / self.entries()[0]).stat().st_size
        env = {"MERIDIAN_CACHE_SIZE": str(size * 2 + size // 2)}
        first = self.entries()[0]
        os.utime(self.cache / first, (1, 1))
        for flag in ("--full-sort", "--crop-track-events"):
            self.ask(flag, env=env)
            time.sleep(0.02)
        self.assertEqual(len(self.entries()), 2)
        self.assertNotIn(first, self.entries())
        shutil.rmtree(self.cache)
        self.ask(env={"MERIDIAN_CACHE_SIZE": str(size // 2)})
        self.assertEqual(self.entries(), [])
        self.fails("query", f"--cache={self.cache}", self.trace, "select 1", env={"MERIDIAN_CACHE_SIZE": "much"}, text="invalid size 'much'")

    def test_pipes_in_it(self):
        """They hold nobody up: what is no plain file is not the cache's, and goes."""
        answer = self.ask()
        entry, = self.entries()
        for name in entry, "key":
            (self.cache / name).unlink()
            os.mkfifo(self.cache / name)
            self.assertEqual(self.ask(), answer)
            self.assertFalse((self.cache / name).is_fifo(), name)

    def test_whose_directory(self):
        self.cache.mkdir(0o755)
        self.cache.chmod(0o755)
        self.fails("query", f"--cache={self.cache}", self.trace, "select 1", text="others can reach the cache")
        self.cache.chmod(0o700)
        self.ask()
        link = self.dir / "link"
        link.symlink_to(self.cache)
        self.fails("query", f"--cache={link}", self.trace, "select 1", text="the cache")
        if os.geteuid() == 0:
            other = self.dir / "other"
            other.mkdir(0o700)
            os.chown(other, 12345, 12345)
            self.fails("query", f"--cache={other}", self.trace, "select 1", text="belongs to another user")

    def test_full_disk(self):
        """No room for the entry: the answer comes all the same, and nothing is left."""
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        self.cache.mkdir(0o700)
        script = (f"mount -t tmpfs -o size=64k,mode=700 none {self.cache} && {SHELL} query --cache={self.cache} {self.trace} "
                  f"'{COUNT}' && ls {self.cache}")
        p = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
        if "mount" in p.stderr or "unshare" in p.stderr:
            self.skipTest("file systems cannot be mounted here")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn("mrdsnap", p.stdout)
        self.assertNotIn(".part", p.stdout)
        self.assertIn(self.query(COUNT, trace=self.trace).split("\n")[1], p.stdout)

    def test_races(self):
        """Several processes load the same trace into an empty cache at once."""
        want = self.query(COUNT, trace=self.trace)
        for _ in range(3):
            shutil.rmtree(self.cache, ignore_errors=True)
            running = [subprocess.Popen([SHELL, "query", f"--cache={self.cache}", self.trace, COUNT], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE) for _ in range(6)]
            for p in running:
                out, err = p.communicate(timeout=120)
                self.assertEqual((p.returncode, out.decode()), (0, want), err)
            self.assertEqual(len(self.entries()), 1)

    def test_kill(self):
        """kill -9 of two processes side by side, at 50 random moments of import and writing: what is in the cache afterwards is
        whole, or nothing."""
        want = self.query(COUNT, trace=self.trace)
        start = time.monotonic()
        self.ask()
        whole = time.monotonic() - start
        rng = random.Random(50)
        entries = 0
        for i in range(50):
            if i % 5 == 0:
                shutil.rmtree(self.cache, ignore_errors=True)
            pair = [subprocess.Popen([SHELL, "query", f"--cache={self.cache}", self.trace, COUNT], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL) for _ in range(2)]
            moments = sorted(rng.random() * whole for _ in pair)
            time.sleep(moments[0])
            pair[0].send_signal(signal.SIGKILL)
            time.sleep(moments[1] - moments[0])
            pair[1].send_signal(signal.SIGKILL)
            for p in pair:
                answer = p.communicate()[0].decode()
                self.assertIn(answer, ("", want)) # it answered whole before it was killed, or not at all
            entries += len(self.entries())
            self.assertEqual([f for f in os.listdir(self.cache) if f.endswith(".part")] if self.cache.exists() else [], [])
            self.assertEqual(self.ask(), want)
            self.assertEqual(self.ask(), want)
            if i % 5 < 4:
                for name in self.entries():
                    (self.cache / name).unlink()


if __name__ == "__main__":
    harness.main()

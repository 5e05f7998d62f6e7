"""tp_shell util merge: what is written, how it is checked, every mistake."""
import csv
import io
import json
import tarfile

import harness
from pb import field


def trace(name, ts, boot=None, machine=0):
    """A trigger at ts; with a snapshot of BOOTTIME, if it has clocks."""
    out = b""
    if boot is not None:
        out = field(1, field(6, field(1, field(1, 6) + field(2, boot)) + field(2, 6)))
    return out + field(1, field(8, ts) + (field(98, machine) if machine else b"") + field(46, field(1, name)))


class Merge(harness.Case):
    def setUp(self):
        self.a = self.file("a", trace("one", 1000, boot=900))
        self.b = self.file("b", trace("two", 2000, boot=1900))
        self.c = self.file("c", trace("three", 50))
        self.out = self.dir / "merged.tar"
        self.out.unlink(missing_ok=True)

    def file(self, name, content):
        path = self.dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def merge(self, *args, **kw):
        return self.run_shell("util", "merge", "-o", self.out, *args, **kw).stdout.decode()

    def mistake(self, text, *args):
        self.fails("util", "merge", "-o", self.out, self.a, self.b, *args, text=text)
        self.assertEqual([p for p in self.dir.iterdir() if "merged" in p.name], [])

    def events(self):
        rows = self.query("select s.name, s.ts, m.name from slice s join track t on t.id = s.track_id "
                          "join machine m on m.id = t.machine_id order by s.name", trace=self.out)
        return [tuple(r) for r in csv.reader(io.StringIO(rows))][1:]

    def manifest(self):
        with tarfile.open(self.out) as t:
            self.assertEqual(t.getnames()[0], "perfetto_manifest.json")
            return json.load(t.extractfile("perfetto_manifest.json"))["perfetto_manifest"]

    def test_three_machines_one_without_clocks(self):
        text = self.merge(self.a, self.b, self.c, "--machine", "a=server", "--machine", "b=left", "--machine", f"{self.c}=right",
                          "--offset", "b=-1.5us", "--offset", f"c=3ms@{self.b}", "--attribute", "run=7", "--attribute", "who=me")
        # b's clock is 1,500 ns ahead of a's; c's own times are 3 ms behind b's clock.
        self.assertEqual(self.events(), [("one", "1000", "server"), ("three", str(50 + 3000000 - 1500), "right"),
                                         ("two", "500", "left")])
        self.assertEqual(self.manifest()["attributes"], {"run": 7, "who": "me"})
        for line in (r"merged\.tar: 3 traces", r"c +\d+ +1\b", r"server +1 +0\.000000", "all events are there"):
            self.assertRegex(text, line)
        rows = self.query("select name, trace_type, is_container from __intrinsic_trace_file order by id", trace=self.out)
        self.assertEqual(rows.count('"proto"'), 3)

    def test_names_that_clash(self):
        files = [self.file(n, trace(f"t{i}", 1000 + i, boot=900)) for i, n in
                 enumerate(["3-x", "p/x", "q/x", "perfetto_manifest.json"])]
        self.merge(*files)
        with tarfile.open(self.out) as t:
            self.assertEqual(t.getnames(), ["perfetto_manifest.json", "3-x", "x", "4-x", "4-perfetto_manifest.json"])
        self.assertEqual([(e[0], e[1]) for e in self.events()], [(f"t{i}", str(1000 + i)) for i in range(4)])

    def test_the_same_without_an_archive(self):
        rows = self.run_shell("query", self.a, self.b, "select name, ts from slice order by ts").stdout.decode()
        self.assertEqual(rows.split(), ['"name","ts"', '"one",1000', '"two",2000'])

    def test_check_tells_of_a_damaged_member(self):
        with tarfile.open(self.out, "w") as t:
            for path in (self.a, self.file("junk", b"\xfe\xed\xfa\xce" * 64), self.b):
                t.add(path, arcname=path.name)
        out = self.run_shell("check", self.out, code=1).stdout.decode()
        self.assertRegex(out, r"data_loss +archive_member_damaged +file 3 +1\n")
        self.assertIn("fetch the archive again", out)
        self.assertEqual([e[0] for e in self.events()], ["one", "two"])

    def test_timeline(self):
        self.merge(self.a, self.b, "--offset", "b=100", "--timeline", "b=BOOTTIME")
        self.assertEqual([e[1] for e in self.events()], ["900", "2000"])
        self.assertEqual(self.manifest()["trace_time"], {"clock": "BOOTTIME", "file": "b"})

    def test_a_recording_of_another_machine(self):
        remote = self.file("remote", trace("far", 3000, boot=10, machine=7))
        self.merge(self.a, remote, "--machine", "remote=guest", "--machine", "a=host", "--offset", "remote=5")
        self.assertEqual(self.events(), [("far", "3005", "guest"), ("one", "1000", "host")])

    def test_several_machines_in_a_file_are_named_by_number(self):
        both = self.file("both", trace("near", 10, boot=1) + trace("far", 20, machine=7))
        self.fails("util", "merge", "-o", self.out, self.a, both, "--machine", "both=x",
                   text="holds events of several machines; name each: --machine both:0=NAME --machine both:7=NAME")
        self.merge(self.a, both, "--machine", "both:0=near", "--machine", "both:7=far")
        self.assertEqual([(e[0], e[2]) for e in self.events()], [("far", "far"), ("near", "near"), ("one", "[NULL]")])

    def test_recordings(self):
        self.merge(harness.DATA / "mm-host-only.pftrace", harness.DATA / "mm-guest-only.pftrace",
                   "--machine", "mm-host-only.pftrace=host", "--machine", "mm-guest-only.pftrace=guest",
                   "--offset", "mm-guest-only.pftrace=10s")
        alone = self.query("select count(*) from ftrace_event", trace=harness.DATA / "mm-guest-only.pftrace")
        merged = self.query("select count(*) from ftrace_event join cpu using (ucpu) join machine m on m.id = machine_id "
                            "where m.name = 'guest'", trace=self.out)
        self.assertEqual(alone, merged)

    def test_equal_names(self):
        other = self.file("other/a", trace("again", 5000, boot=4900))
        self.merge(self.a, other, "--machine", f"{other}=second")
        with tarfile.open(self.out) as t:
            self.assertEqual(t.getnames()[1:], ["a", "2-a"])
        self.assertIn(("again", "5000", "second"), self.events())
        self.out.unlink()
        self.mistake("matches several traces", other, "--machine", "a=x")

    def test_mistakes(self):
        for text, *args in (("is not one of the given traces", "--machine", "z=x"),
                            ("is not FILE=NAME", "--machine", "a"),
                            ("write it like", "--offset", "a=soon"),
                            ("invalid duration", "--offset", "a=10h@b"),
                            ("cannot be relative to itself", "--offset", "a=10"),
                            ("is not one of the given traces", "--offset", "b=10@z"),
                            ("is not a clock; use one of REALTIME", "--clock", "a=TAI"),
                            ("is not a clock", "--timeline", "a=TAI"),
                            ("is not one of the given traces", "--timeline", "z"),
                            ("is not KEY=VALUE", "--attribute", "x"),
                            ("is given twice", self.a)):
            self.mistake(text, *args)
        self.fails("util", "merge", self.a, self.b, text="-o FILE is needed")
        self.fails("util", "merge", "-o", self.out, self.a, text="at least two traces")
        self.fails("util", text="a mode is needed")
        self.fails("util", "frobnicate", text="unknown mode 'frobnicate'")
        self.assertIn("util merge -o both.tar", self.run_shell("help", "util").stdout.decode())

    def test_nothing_is_written_when_the_result_is_not_whole(self):
        self.out.write_bytes(b"what was there")
        junk = self.file("junk", b"\xfe\xed\xfa\xce" * 64)
        self.fails("util", "merge", "-o", self.out, self.a, junk, text="junk")
        self.fails("util", "merge", "-o", self.out, self.a, self.dir, text="only files can be merged")
        self.fails("util", "merge", "-o", self.out, self.a, "/nonexistent", text="/nonexistent")
        self.assertEqual(self.out.read_bytes(), b"what was there")
        # A clock of the kind that the trace does not have cannot be related to anything.
        real = self.file("real", field(1, field(6, field(1, field(1, 3) + field(2, 5)) + field(2, 3))) + trace("late", 77))
        p = self.run_shell("util", "merge", "-o", self.out, self.a, real, "--clock", "real=MONOTONIC_RAW",
                           "--offset", "real=5", code=1)
        self.assertIn("events are not on the timeline", p.stderr.decode())
        self.assertEqual(self.out.read_bytes(), b"what was there")
        self.fails("util", "merge", "-o", "/nonexistent/x.tar", self.a, self.b, text="/nonexistent/x.tar")

    def test_library_for_archives(self):
        """It is loaded by who meets an archive; a machine without it is told so, and reads everything else."""
        loaded = self.run_shell("--version", env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout.decode()
        self.assertIn("libc.so", loaded)
        for name in ("libarchive", "libxml2", "libicu"):
            self.assertNotIn(name, loaded)
        self.run_shell("util", "merge", self.a, self.b, "-o", self.out)
        self.assertEqual(self.query("select 1", trace=self.out), '"1"\n1\n')
        none = self.dir / "none"
        none.mkdir()
        (none / "libarchive.so.13").write_bytes(b"not a library")
        env = {"LD_LIBRARY_PATH": str(none)}
        told = "archives need libarchive.so.13"
        self.fails("query", self.out, "select 1", text=told, env=env)
        self.fails("util", "merge", self.a, self.b, "-o", self.dir / "other.tar", text=told, env=env)
        self.fails("bundle", self.a, self.dir / "other.tar", text=told, env=env)
        self.assertFalse((self.dir / "other.tar").exists())
        self.assertEqual(self.query("select 1", trace=self.a, env=env), '"1"\n1\n')

if __name__ == "__main__":
    harness.main()

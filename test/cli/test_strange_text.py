"""Text of other tools that is strange, damaged or cut; and every format of it written as every other one."""
import json
import random
import re
import unittest
import xml.etree.ElementTree

from harness import DATA, Case

CORPUS = DATA.parent / "fuzz" / "corpus"
EVENT = '{"ph":"X","ts":%s,"dur":1,"pid":1,"tid":1,"name":"%s"}'

# What a small file of each kind of lines holds: the file, and the rows of each of its lines.
LINES = {
    "strace": ("10 1.000001 open(1) = 2\n11 1.000002 read(2) = 3\n10 1.000003 close(1) = 0\n", "slice"),
    "systrace": ("# tracer: nop\n" + "".join(f"  a-1 [000] d..2. {i}.500000: tracing_mark_write: I|1|x\n" for i in range(1, 4)),
                 "slice"),
    "ninja": ("# ninja log v5\n1\t4\t0\tone\t1a\n2\t5\t0\ttwo\t1b\n3\t6\t0\tthree\t1c\n", "slice"),
    "logcat": ("".join(f"2022-06-24 18:24:3{i}.123  1000   100   101 I Tag: line\n" for i in range(3)), "android_logs"),
}


class Strange(Case):
    def rows(self, sql, trace):
        return self.query(sql, trace=trace).splitlines()[1:]

    def file(self, name, content):
        path = self.dir / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def json(self, middle, front="[", end="]", feed="\n"):
        """A file with an event before and behind `middle`."""
        parts = [p if isinstance(p, bytes) else p.encode() for p in (EVENT % (1, "first"), middle, EVENT % (9, "last"))]
        return self.file("s.json", front.encode() + f",{feed}".encode().join(parts) + end.encode())

    def test_workers_of_ninja(self):
        """A job goes to the worker that became free last, of several to the first; also where many end, or take no time, at once."""
        chance = random.Random(3)
        jobs = [(start, start + chance.choice((0, 0, 1, 2, 5, 20))) for start in (chance.randrange(60) for _ in range(400))]
        lines = "".join(f"{start}\t{end}\t0\tj{i}\t{i:x}\n" for i, (start, end) in enumerate(jobs))
        free, expected = [], set()
        for i in sorted(range(len(jobs)), key=lambda i: jobs[i][0]):
            start, end = jobs[i]
            idle = [w for w in range(len(free)) if free[w] <= start]
            worker = max(idle, key=lambda w: (free[w], -w)) if idle else len(free)
            free[worker:worker + 1] = [end]
            expected.add(f'"j{i}",{worker + 1}')
        rows = self.rows("select s.name, tid from slice s join thread_track k on k.id = s.track_id join thread using (utid)",
                         self.file("log", "# ninja log v5\n" + lines))
        self.assertEqual(set(rows), expected)

    def test_names_do_not_command_terminals(self):
        """Titles, cursors, the screen: what is written into a file is as it was recorded, what a terminal gets is not."""
        name = "\x1b]0;title\x07\x1b[2J\r\x7f\u009b31m\u0085\ttab\nline \u00e4\u00a0"
        trace = self.json(EVENT % (5, json.dumps(name)[1:-1]))
        sql = "select name from slice where ts = 5000"
        for style in ("classic", "csv", "table", "box", "markdown", "line", "json", "jsonl"):
            code, got = self.on_terminal("query", "--format", style, trace, sql, both=True)
            self.assertEqual(code, 0)
            got = re.sub("\r(Loading trace: [^\r]*| *)\r", "", got)  # where the machine is so slow that loading is shown
            self.assertIn("title", got)
            self.assertEqual(re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", got), [], style)
            self.assertEqual(got.replace("\r\n", "\n").count("\r"), 0, style)
            if style in ("classic", "csv"):
                self.assertIn("\u00e4\u00a0", got)
                self.assertIn(name, self.query(sql, "--format", style, trace=trace))
        # the halves of a control at the border of what is written at once
        for fill in range(65500, 65540):
            _, got = self.on_terminal("query", trace, f"select printf('%.*c', {fill}, 'x') || char(155) || '31m' as a", both=True)
            self.assertEqual(re.findall("[\x1b\x80-\x9f]", got), [], fill)

    def test_json_that_is_odd(self):
        """Nothing of it is lost."""
        for name, sees in ((b"\xff\xc3(", "length(cast(name as blob)) = 3"), (rb"\ud800x\udc00", "unicode(name) = 65533"),
                           (rb"\ud83d\ude00", "unicode(name) = 128512"), ("\U0001f600".encode(), "unicode(name) = 128512"),
                           (b"x" * 100_000_000, "length(name) = 100000000")):
            trace = self.json((EVENT % (5, "?")).encode().replace(b"?", name))
            self.assertEqual(self.rows(f"select ts, {sees} from slice order by ts", trace)[1], "5000,1", name[:20])
            self.assertEqual(len(self.rows("select 1 from slice", trace)), 3)
        trace = self.json('{"ph":"X","ts":5,"ts":6,"dur":1,"pid":1,"tid":1,"name":"n","name":"m"}')
        self.assertEqual(self.rows("select ts, name from slice", trace)[1], '6000,"m"')
        deep = self.json((EVENT % (5, "deep"))[:-1] + ',"args":{"a":' + "[" * 200_000 + "]" * 200_000 + "}}")
        self.assertEqual(self.rows("select name from slice order by ts", deep), ['"first"', '"deep"', '"last"'])
        windows = self.json(EVENT % (5, "middle"), front="\ufeff[\r\n", end="\r\n]\r\n", feed="\r\n")
        self.assertEqual(len(self.rows("select 1 from slice", windows)), 3)

    def test_json_that_is_wrong(self):
        """What is before and behind is there, and it is told where the rest is: line, column, byte."""
        place = "select group_concat(key || '=' || display_value, ' ') from __intrinsic_trace_import_logs join args using " \
                "(arg_set_id) group by arg_set_id"
        for wrong in EVENT % ("NaN", "x"), EVENT % ('"soon"', "x"), "nonsense":
            trace = self.json(wrong)
            self.assertEqual(self.rows("select name from slice", trace), ['"first"', '"last"'], wrong)
            self.assertEqual(self.rows("select count(*) > 0 from stats where name glob 'json_*' and value > 0", trace), ["1"], wrong)
        with self.subTest("object"):
            text = '{"traceEvents":[\n' + EVENT % (1, "first") + ",\n" + (EVENT % (9, "last"))[:20]
            self.assertEqual(self.rows("select name from slice", self.file("o.json", text)), ['"first"'])
            self.assertIn("json_tokenizer_failure: 1", self.run_shell("query", self.dir / "o.json", "select 1").stderr.decode())

    def test_json_of_noise(self):
        """Each mistake is counted; the first 10,000 are noted in rows."""
        trace = self.json(",".join("1" * 30_000))
        self.assertEqual(self.rows("select (select sum(value) from stats where name = 'json_tokenizer_failure'), "
                                   "(select count(*) from _trace_import_logs), (select count(*) from slice)", trace),
                         ["30000,10000,2"])

    def test_json_cut(self):
        """Events that are whole are there wherever the file ends."""
        text = "[\n" + ",\n".join(EVENT % (i, f"e{i}") for i in range(3)) + "\n]\n"
        for end in range(30, len(text), 23):
            whole = len(re.findall(r"\}", text[:end]))
            self.assertEqual(len(self.rows("select 1 from slice", self.file("c.json", text[:end]))), whole, end)

        cut = self.file("c.json", text[:text.rindex("{") + 9])
        self.assertIn("json_tokenizer_failure: 1", self.run_shell("query", cut, "select 1").stderr.decode())
        self.assertNotIn("json", self.run_shell("query", self.file("c.json", text[:-3] + ",\n"), "select 1").stderr.decode())

    def test_lines_cut(self):
        """Whole lines are read wherever the file ends, with line feeds of both kinds."""
        for name, (text, table) in LINES.items():
            first = text.index("\n", text.index("#") + 1 if "#" in text else 0) + 1
            for end in [*range(first, len(text), 29), len(text)]:
                whole = text[:end].count("\n") - text.count("#")
                got = len(self.rows(f"select 1 from {table}", self.file("l.txt", text[:end])))
                self.assertIn(got, (whole, whole + 1) if name == "logcat" else (whole,), (name, end))
            self.assertEqual(len(self.rows(f"select 1 from {table}", self.file("l.txt", text.replace("\n", "\r\n")))), 3, name)

    def test_the_end_of_time(self):
        """A slice that ends behind the last time there is: neither the trace nor its pieces reach beyond it."""
        last = (2**63 - 1) // 1000
        trace = self.file("e.json", "[" + EVENT % (1, "first") + "," + EVENT % (last, "last") + "]")
        self.assertEqual(self.rows("select trace_start(), trace_end()", trace), ["1000,2000"])
        self.assertEqual(self.rows("include perfetto module slices.flat_slices; select ts, dur, name from _slice_flattened", trace),
                         ['1000,1000,"first"', f'{last * 1000},{2**63 - 1 - last * 1000},"last"'])
        self.assertEqual(self.rows("include perfetto module linux.cpu.utilization.system; "
                                   "select count(*) from cpu_utilization_per_second", trace), ["0"])


# What is on tracks without a thread comes as pairs of asynchronous events. A sample of each format in the corpora of the fuzz targets (behind their first byte), and which kinds of rows it has.
SAMPLES = {
    "text_art/basic-trace": "slices", "text_collapsed/basic-folded": "", "text_dumpstate/battery-txt": "tracks",
    "text_instruments/basic-xml": "stacks", "text_logcat/with-year-txt": "", "text_ninja/basic-ninja_log": "slices",
    "text_perf/basic-txt": "stacks", "text_pprof/basic-pb": "", "text_primes/basic-primes": "tracks",
    "text_simpleperf/basic-simpleperf": "stacks", "text_strace/basic-txt": "slices", "text_systrace/atrace-txt": "slices",
    "text_gecko/processed": "stacks",
}


class Converted(Case):
    def test_names_that_are_no_utf8(self):
        """What is JSON can be read by readers of JSON: bytes that are no UTF-8 are replaced."""
        trace = self.dir / "in"
        trace.write_bytes(b"[" + EVENT.encode().replace(b"%s", b"1", 1).replace(b"%s", b"a\xff\xc3\xed\xa0\xbdz") + b"]")
        for form in "json", "firefox", "otlp":
            text = self.run_shell("convert", form, trace).stdout.decode("utf-8")
            for line in text.splitlines() if form == "otlp" else [text]:
                json.loads(line)
            self.assertIn("a\ufffd", text.replace(r"\ufffd", "\ufffd"), form)

    def test_every_format(self):
        """Stacks become profiles and pictures, slices become JSON; the formats answer for what they have."""
        for sample, has in SAMPLES.items():
            with self.subTest(sample):
                trace = self.dir / "in"
                trace.write_bytes((CORPUS / sample).read_bytes()[1:])
                out = self.dir / "out.json"
                self.run_shell("convert", "json", trace, out)
                events = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] in "XBibn"]
                n = int(self.query("select count(*) from slice", trace=trace).splitlines()[1])
                self.assertEqual(n > 0, has in ("slices", "tracks"))
                self.assertGreaterEqual(len(events), n)
                if has != "stacks":
                    continue
                lines = self.run_shell("convert", "collapsed", trace).stdout.decode().splitlines()
                samples = int(self.query("select count(*) from __intrinsic_profiler_sample", trace=trace).splitlines()[1])
                self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), samples)
                firefox = json.loads(self.run_shell("convert", "firefox", trace).stdout)
                self.assertEqual(sum(len(t["samples"]["stack"]) for t in firefox["threads"]), samples)
                svg = xml.etree.ElementTree.fromstring(self.run_shell("convert", "flamegraph", trace).stdout)
                self.assertTrue(svg.tag.endswith("svg"))
                out = self.dir / ("p" + sample.replace("/", "-"))
                self.run_shell("convert", "profile", trace, "--output-dir", out)
                self.assertTrue(list(out.iterdir()))


if __name__ == "__main__":
    unittest.main()

"""Files of other tools, beside counts that this test makes with expressions of its own; damaged ones; several at once."""
import collections
import csv
import gzip
import io
import re
import unittest
import zipfile
import zlib

from harness import DATA, Case

TEXT = DATA / "text"
SWITCH = ("{comm:>16}-{pid:<6} [00{cpu}] d..2. {at:.6f}: sched_switch: prev_comm={comm} prev_pid={pid} prev_prio=120 "
          "prev_state=S ==> next_comm={next} next_pid={npid} next_prio=120\n")


class Formats(Case):
    def rows(self, sql, trace, *flags):
        return list(csv.reader(io.StringIO(self.query(sql, *flags, trace=trace))))[1:]

    def number(self, sql, trace, *flags):
        return int(self.rows(sql, trace, *flags)[0][0])

    def file(self, name, content):
        path = self.dir / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_strace(self):
        """Every call is a slice of its thread; those that were interrupted by another thread have their duration."""
        calls, threads = collections.Counter(), set()
        for line in (TEXT / "strace.txt").read_text(errors="replace").splitlines():
            pid, rest = line.split(" ", 1)
            m = re.match(r"[\d.]+ (\w+)\(", rest)
            if m and (" = " in rest or "<unfinished" in rest):
                calls[m[1]] += 1
                threads.add(pid)
        got = {name: int(n) for name, n in self.rows("select name, count(*) from slice group by 1", TEXT / "strace.txt")}
        self.assertEqual(got, dict(calls))
        self.assertGreater(sum(calls.values()), 100)
        self.assertEqual({r[0] for r in self.rows("select tid from thread where utid in (select utid from thread_track)",
                                                  TEXT / "strace.txt")}, threads)

    def test_strace_durations(self):
        """strace -T says how long calls took: with --all-text-events they are so long."""
        text = (TEXT / "strace.txt").read_text(errors="replace")
        want = collections.Counter(round(float(m[1]) * 1e9) for m in
                                   re.finditer(r"^\d+ [\d.]+ \w+\((?!.*unfinished).*<([\d.]+)>$", text, re.M))
        got = collections.Counter(int(r[0]) for r in self.rows("select dur from slice", TEXT / "strace.txt",
                                                               "--all-text-events"))
        self.assertGreater(len(want), 20)
        self.assertEqual(want - got, collections.Counter())

    def test_perf_script(self):
        samples, frames = 0, 0
        for block in (TEXT / "perf-script.txt").read_text().split("\n\n"):
            lines = block.strip("\n").splitlines()
            if len(lines) > 1:
                samples += 1
                frames += len(lines) - 1
        self.assertGreater(samples, 20)
        trace = TEXT / "perf-script.txt"
        self.assertEqual(self.number("select count(*) from __intrinsic_profiler_sample", trace), samples)
        self.assertEqual(self.number("select sum(depth) from __intrinsic_profiler_sample s join stack_profile_callsite c "
                                     "on c.id = s.callsite_id", trace), frames)
        self.assertEqual(self.number("select count(*) from stats where name = 'perf_text_parse_failure'", trace), 0)

    def test_ninja(self):
        jobs = {}
        for line in (TEXT / "ninja_log").read_text().splitlines()[1:]:
            start, end, _, name, key = line.split("\t")
            jobs.setdefault((key, start, end), []).append(name)
        got = self.rows("select name, ts / 1000000, dur / 1000000 from slice", TEXT / "ninja_log")
        self.assertEqual(sum(len(r[0].split()) for r in got), sum(map(len, jobs.values())))
        self.assertEqual(sorted((r[1], str(int(r[1]) + int(r[2]))) for r in got if " " not in r[0])[:1],
                         sorted((k[1], k[2]) for k in jobs)[:1])
        newer = self.file("n7", (TEXT / "ninja_log").read_text().replace("v5", "v7"))
        self.assertEqual(self.rows("select name, ts, dur from slice order by 1, 2", newer),
                         self.rows("select name, ts, dur from slice order by 1, 2", TEXT / "ninja_log"))

    def instruments(self, samples):
        """An export with `samples` of (time, tid, core, addresses): what was told before is repeated by its number."""
        ids, out = {}, []

        def element(name, key, text, attributes=""):
            if (name, key) in ids:
                return f'<{name} ref="{ids[name, key]}"/>'
            ids[name, key] = len(ids) + 1
            return f'<{name} id="{ids[name, key]}"{attributes}>{text()}</{name}>'

        for t, tid, core, stack in samples:
            out.append("<row>" + element("sample-time", t, lambda: t) + element(
                "thread", tid, lambda: element("tid", tid, lambda: tid) + element(
                    "process", 7, lambda: element("pid", 7, lambda: 7), ' fmt="P &amp; Q"'), f' fmt="T{tid}"') +
                element("core", core, lambda: core) + element(
                    "tagged-backtrace", stack, lambda: element("backtrace", stack, lambda: "".join(element(
                        "frame", a, lambda: element("binary", "b", lambda: "", ' UUID="0A-0B" load-addr="0x1000" path="/b"'),
                        f' name="f{a:x}" addr="{a:#x}"') for a in stack))) + "</row>\n")
        return '<?xml version="1.0"?>\n<trace-query-result>\n<node>' + "".join(out) + "</node></trace-query-result>\n"

    def test_instruments(self):
        samples = [(1000 * (i + 1), 20 + i % 3, i % 2, (0x1010 + i % 4, 0x1020, 0x1030)) for i in range(40)]
        text = self.instruments(samples)
        trace = self.file("i.xml", text)
        sql = "select s.ts, t.tid, s.cpu, f.name, f.rel_pc from instruments_sample s join thread t using (utid) join " \
              "stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id order by 1"
        want = [[str(t), str(tid), str(core), f"f{s[0]:x}", str(s[0] - 0x1000)] for t, tid, core, s in samples]
        self.assertEqual(self.rows(sql, trace), want)
        self.assertEqual(self.rows("select name, build_id, start, end from stack_profile_mapping", trace),
                         [["/b", "0a0b", str(0x1000), str(0x1030)]])
        self.assertEqual(self.rows("select name from process where pid = 7", trace), [["P & Q"]])
        self.fails("query", self.file("cut.xml", text[:len(text) // 2]), sql, text="what came before is there")
        self.fails("query", self.file("bomb.xml", text.replace(
            "?>\n<trace", '?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<trace', 1)), sql, text="document type")

    BATTERY = ("9,0,i,vers,36,1,a,b\n9,hsp,1,1000,\"a \\\"b\\\", c\"\n9,h,5,+S\n9,h,0:RESET:TIME:1656000000000\n"
               "9,h,100,Bl=50,+S,Pcn=lte,Bs=c,+w=1,+w,+Etp=1,+Pcn=lte,Xy=3\n9,h,200,-w=1,-S,Bs=q,Etp=9\n9,h,x\n")

    def dumpstate(self, log):
        rule = "=" * 56
        return (f"{rule}\n== dumpstate: 2022-06-24 18:24:37\n{rule}\n------ SYSTEM LOG (logcat -d) ------\n"
                f"--------- beginning of main\n{log}------ CHECKIN BATTERYSTATS (dumpsys) ------\n{self.BATTERY}"
                f"------ DUMPSYS (x) ------\n{'-' * 79}\nDUMP OF SERVICE alarm:\n"
                "  nowRTC=1656080677123=2022-06-24 18:24:37.123 nowELAPSED=1\n")

    def test_dumpstate(self):
        line = "06-24 18:24:{}  1000   100   101 I Tag: {} of the log\n".format
        log = line("37.123", "first") + line("37.123", "first") + line("38.000", "second")
        report = self.dumpstate(log)
        plain, bare = self.file("d.txt", report), self.file("checkin.txt", self.BATTERY)
        logs = "select ts, msg from android_logs order by 1, 2"
        at = 1656080677123000000  # two hours before the local time
        want = [[str(at), "first of the log"]] * 2 + [[str(at + 877000000), "second of the log"]]
        self.assertEqual(self.rows(logs, plain), want)
        counters = "select c.ts / 1000000 - 1656000000000, t.name, cast(value as int) from counter c join counter_track t " \
                   "on t.id = c.track_id order by 1, 2"
        for trace in plain, bare:
            self.assertEqual(self.rows(counters, trace), [
                ["100", "BatteryStatus", "2"], ["100", "ScreenState", "2"], ["100", "batt.capacity_pct", "50"],
                ["100", "battery_stats.data_conn", "13"], ["100", "battery_stats.screen", "1"],
                ["300", "BatteryStatus", "0"], ["300", "ScreenState", "1"], ["300", "battery_stats.screen", "0"]])
            self.assertEqual(self.rows("select replace(replace(s.name, char(34), char(39)), ',', ';'), s.dur, t.name from slice s "
                                       "join track t on t.id = s.track_id "
                                       "order by 2", trace),
                             [["+top=1000:'a \\'b\\'; c'", "0", "battery_stats.top"],
                              ["a \\'b\\'; c", "200000000", "WakeLocks"]])
            # before the first date (its screen counts twice); Etp=9; h,x
            self.assertEqual(self.rows("select value from stats where name = 'battery_history_errors'", trace), [["4"]])
        bad = "no entry of a log, but as long as one\n"
        odd = self.file("odd.txt", self.dumpstate(bad + line("37.123", "first").replace("I Tag", "I  Tag") + bad + bad))
        self.assertEqual(self.rows("select name, value from stats where name glob 'android_log_*' and value", odd),
                         [["android_log_num_failed", "2"], ["android_log_format_invalid", "1"]])
        self.assertEqual(self.rows("select tag from android_logs", odd), [[" Tag"]])
        self.assertEqual(self.rows("select section, service, count(*) from android_dumpstate group by 1, 2", plain)[-1],
                         ["SYSTEM LOG (logcat -d)", "[NULL]", "4"])
        path = self.dir / "bugreport.zip"
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("bugreport-a-b-2022-06-24-18-24-37.txt", report)
            z.writestr("FS/data/misc/logd/logcat.1", log + line("39.000", "third"))
            z.writestr("version.txt", "2.0")
        self.assertEqual(self.rows(logs, path), want + [[str(at + 1877000000), "third of the log"]])
        self.assertEqual(self.rows("select value from stats where name = 'archive_member_damaged'", path), [])

    def ftrace(self, n=200):
        names = ["a", "my prog", "c"]
        return "# tracer: nop\n" + "".join(
            SWITCH.format(comm=names[i % 3], pid=10 + i % 3, cpu=i % 2, at=1 + i / 1000, next=names[(i + 1) % 3],
                          npid=10 + (i + 1) % 3) for i in range(n))

    def test_ftrace(self):
        text = self.ftrace()
        plain = self.file("t.txt", text)
        self.assertEqual(self.number("select count(*) from sched", plain), 200)
        self.assertEqual(self.number("select count(*) from ftrace_event", plain), 0)
        self.assertEqual(self.number("select count(*) from ftrace_event", plain, "--all-text-events"), 200)
        self.assertEqual([r[0] for r in self.rows("select name from thread where tid = 11", plain, "--all-text-events")],
                         ["my prog"])
        same = "select ts, dur, utid, cpu, end_state from sched order by ts"
        want = self.rows(same, plain)
        for name, content in (("t.gz", gzip.compress(text.encode())),
                              ("t.ctrace", b"TRACE:\n" + zlib.compress(text.encode())),
                              ("t.crlf", text.replace("\n", "\r\n")), ("t.bom", "\ufeff" + text),
                              ("t.adb", "capturing trace... done\nTRACE:\n" + text)):
            self.assertEqual(self.rows(same, self.file(name, content)), want, name)

    def test_functions_without_packets(self):
        """A timer's function is told by its address: a text has no packets that its name could be in."""
        path = self.dir / "timers.txt"
        path.write_text("# tracer: nop\n#\n" + "".join(f" swapper-0 [000] d..1 1.00000{i}: hrtimer_expire_{what}: hrtimer=0x12 function=0xabc now=5\n"
                                                      for i, what in enumerate(("entry", "exit"))))
        self.assertEqual(self.rows("select name from slice where dur > 0", path, "--all-text-events"), [["0xabc"]])

    def test_times_close_to_flags(self):
        """Flags of four characters may touch the time; one of five takes its first digit, as in Perfetto."""
        path = self.dir / "close.txt"
        path.write_text("cpus=2\n"
                        "a b:1-77 (   77) [001] ....316.196720: tracing_mark_write: B|77|dots\n"
                        "a-78     (   78) [001] d..2.17.500000: tracing_mark_write: I|78|point\n"
                        "a-79     (   79) [001] d..2x18.500000: tracing_mark_write: I|79|letter\n")
        self.assertEqual(self.rows("select ts, name from slice order by ts", path), [["16196720000", "dots"], ["17500000000", "point"]])
        self.assertEqual(self.number("select value from stats where name = 'systrace_parse_failure'", path), 1)

    def test_damaged(self):
        """What comes before the damage is there, and the loss is counted."""
        text = self.ftrace()
        bad = self.file("bad.txt", text + "x" * 100_000_000 + "\n" + "no line\0of a trace\n" + text.split("\n", 1)[1])
        self.assertEqual(self.number("select count(*) from sched", bad), 400)
        self.assertEqual(self.number("select value from stats where name = 'systrace_parse_failure'", bad), 2)

    def test_cut_at_every_byte(self):
        """Whole lines are read wherever the file ends."""
        text = self.ftrace(3)
        for end in range(len("# tracer: nop\n"), len(text) + 1, 7):
            cut = self.file("cut.txt", text[:end])
            self.assertEqual(self.number("select count(*) from sched", cut), text[:end].count("\n") - 1)

    def test_cut_within_a_line(self):
        """Whatever the format, a last line without its end is told, and check fails."""
        whole = {"perf.txt": (TEXT / "perf-script.txt").read_bytes()[:2000], "strace.txt": (TEXT / "strace.txt").read_bytes()[:2000],
                 "ftrace.txt": self.ftrace(3).encode(), "collapsed.txt": b"main;a 10\nmain;b 12\n",
                 "ninja.txt": b"# ninja log v5\n1\t2\t0\ta.o\tff\n1\t3\t0\tb.o\tfe\n"}
        sql = "select value from stats where name = 'text_last_line_cut' and value"
        for name, text in whole.items():
            text = text[:text.rindex(b"\n") + 1]
            self.assertEqual(self.rows(sql, self.file(name, text)), [], name)
            cut = self.file(name, text[:-2])
            self.assertEqual(self.rows(sql, cut), [["1"]], name)
            self.assertIn(b"text_last_line_cut", self.run_shell("check", cut, code=1).stdout, name)

    def test_what_editors_put_in_front(self):
        """A mark of byte order, lines that are empty: JSON of Chrome and of Firefox is read behind them."""
        gecko = '{"meta": {"categories": []}, "libs": [], "threads": [{"name": "T", "tid": 1, "pid": 2, "stringArray": ["f"], ' \
                '"frameTable": {"func": [0]}, "funcTable": {"name": [0]}, "stackTable": {"prefix": [null], "frame": [0]}, ' \
                '"samples": {"stack": [0], "time": [1]}}]}'
        for front in "", "\ufeff", "\r\n ", "\ufeff\n":
            self.assertEqual(self.number("select count(*) from __intrinsic_profiler_sample",
                                         self.file("g.json", front + gecko)), 1)
            self.assertEqual(self.number("select count(*) from slice", self.file(
                "c.json", front + '[{"ph":"X","ts":1,"dur":1,"tid":1,"name":"a"}]')), 1)

    def test_clock(self):
        """--clock puts JSON onto the timeline of a recording: PyTorch's with the time that its own count from."""
        recording = DATA / "linux-sched.pftrace"
        start, real, mono = map(int, self.rows("select trace_start(), to_realtime(trace_start()), "
                                               "to_monotonic(trace_start())", recording)[0])
        event = '{"ph":"X","ts":%s,"dur":2,"pid":1,"tid":1,"name":"here"}'
        kineto = self.file("k.json", '{"schemaVersion":1,"traceEvents":[' + event % "5.5" +
                           f'],"displayTimeUnit":"ms","baseTimeNanoseconds":{real}}}')
        at = f"select name, ts - {start} from slice where name = 'here'"
        self.assertEqual(self.rows(at, kineto), [["here", str(5500 - start)]])
        self.assertEqual(self.rows(at, kineto, "--clock", "json=REALTIME", recording), [["here", "5500"]])
        self.assertEqual(self.rows("select ts from slice", kineto, "--clock", "json=REALTIME"), [[str(real + 5500)]])
        plain = self.file("m.json", "[" + event % f"{mono // 1000 + 7}.{mono % 1000:03d}" + "]")
        self.assertEqual(self.rows(at, plain, "--clock", "json=MONOTONIC", recording), [["here", "7000"]])
        self.assertEqual(self.rows(at, plain, recording), [["here", str(mono + 7000 - start)]])
        late = self.file("k.json.gz", gzip.compress(kineto.read_bytes()))
        self.assertEqual(self.rows("select value from stats where name = 'json_base_time_late'", late,
                                   "--clock", "json=REALTIME"), [["1"]])
        for wrong, text in (("json=NOON", "use FORMAT=CLOCK"), ("json", "use FORMAT=CLOCK"),
                            ("pprof=REALTIME", "no format of that name"), ("x=REALTIME", "no format of that name")):
            self.fails("query", "--clock", wrong, plain, "select 1", text=text)

    def test_trace_cmd_report(self):
        """Every line is an event of its thread, with the threads of scheduling in the form that trace-cmd gives them."""
        report = TEXT / "trace-cmd-report.txt"
        names, switches = collections.Counter(), []
        for line in report.read_text().splitlines():
            m = re.match(r" *(.+)-(\d+) +\[(\d+)\] +([\d.]+): (\w+): +(.*)", line)
            if not m:
                continue
            names[m[5]] += 1
            if m[5] == "sched_switch":
                pair = re.match(r"(.+):(\d+) \[(\d+)\] (\S+) ==> (.+):(\d+) \[(\d+)\]", m[6])
                switches.append([str(round(float(m[4]) * 1e9)), str(int(m[3])), pair[6], pair[7]])
        got = self.rows("select name, count(*) from ftrace_event group by 1", report, "--all-text-events")
        self.assertEqual({k: int(n) for k, n in got}, dict(names))
        self.assertGreater(names["sched_switch"], 40)
        begun = self.rows("select ts, cpu, tid, priority from sched join thread using (utid) order by ts", report)
        self.assertEqual([r for r in begun if r in switches], switches)

    def test_cprofile(self):
        """Pairs of Python functions with the time of the inner one, as a script made them of cProfile's statistics."""
        text = TEXT / "cprofile-collapsed.txt"
        want = sorted(line.rsplit(" ", 1)[::-1] for line in text.read_text().splitlines())
        got = self.rows("select cast(s.value as int), p.name || ';' || f.name from __intrinsic_aggregate_sample s join "
                        "stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id join "
                        "stack_profile_callsite u on u.id = c.parent_id join stack_profile_frame p on p.id = u.frame_id", text)
        self.assertEqual(sorted(got), want)
        self.assertGreater(len(got), 200)

    def test_anchors(self):
        """A kernel's text that says what time of day it was: files with times of day beside it are on its timeline."""
        mark = "    atrace-10    [000] ...1  100.250000: tracing_mark_write: trace_event_clock_sync: %s\n"
        kernel = self.file("k.txt", "# tracer: nop\n#\n" + mark % "parent_ts=100.25" + mark % "realtime_ts=1700000000000" +
                           SWITCH.format(comm="a", pid=1, cpu=0, at=101, next="b", npid=2))
        calls = self.file("s.txt", "7 1700000002.000001 write(1) = 1\n")
        apart = "select s.ts - c.ts from slice s, sched c where s.name = 'write'"
        for files in (kernel, calls), (calls, kernel), (kernel, calls, "--clock", "systrace=BOOTTIME"):
            self.assertEqual(self.rows(apart, *files), [["1250001000"]], files)
        silent = self.file("k2.txt", kernel.read_text().replace("realtime_ts=1700000000000", "realtime_ts=x"))
        self.assertEqual(self.rows(apart, silent, calls), [])

    def test_archive(self):
        """Text beside a recording: one timeline, each with its own row of trace_file."""
        path = self.dir / "all.zip"
        with zipfile.ZipFile(path, "w") as z:
            z.write(DATA / "linux-sched.pftrace", "a.pftrace")
            z.writestr("b.txt", self.ftrace())
            z.write(TEXT / "ninja_log", "c")
        alone = self.number("select count(*) from sched", DATA / "linux-sched.pftrace")
        both = self.number("select count(*) from sched", path)
        self.assertIn(both - alone, (200, 201, 202))  # what runs at the end of the text goes on until the recording begins
        self.assertEqual(sorted(r[0] for r in self.rows("select trace_type from __intrinsic_trace_file", path)),
                         ["ninja_log", "proto", "systrace", "zip"])


if __name__ == "__main__":
    unittest.main()

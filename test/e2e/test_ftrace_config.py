"""What an ftrace config asks for, on this machine's kernel: each setting has the effect that it names, or is refused in
words that say what to do."""
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest

import recorder


def config(ftrace, ms, more=""):
    return "buffers { size_kb: 16384 } data_sources { config { name: \"linux.ftrace\" ftrace_config { %s } } } " \
           "%s duration_ms: %d" % (ftrace, more, ms)


class FtraceConfig(unittest.TestCase):
    def test_options_of_ftrace(self):
        """Another clock, names of functions, the old encoding of generic events, and reading by the kernel's mark."""
        events = 'ftrace_events: "sched/sched_switch" ftrace_events: "workqueue/*" ftrace_events: "rcu/rcu_utilization" '

        def work():
            for _ in range(10):
                subprocess.run(["sync", "-f", "/tmp"], check=True)

        with recorder.Recorder() as r:
            for option in ("use_monotonic_raw_clock: true", "symbolize_ksyms: true",
                           "denser_generic_event_encoding: false", "drain_buffer_percent: 10 buffer_size_kb: 1024"):
                trace = r.record(config(events + option, 1200), work)
                now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                ages = r.query(trace, "select min(ts) as first, max(ts) as last from ftrace_event")[0]
                self.assertLess(now - int(ages["first"]), 20_000_000_000, option)
                self.assertLess(int(ages["last"]), now, option)
                names = [row["s"] for row in r.query(trace, "select distinct extract_arg(arg_set_id, 's') as s from "
                                                            "ftrace_event where name = 'rcu_utilization' order by 1")]
                self.assertIn("Start context switch", names, option)
                work_items = {row["f"] for row in r.query(
                    trace, "select distinct extract_arg(arg_set_id, 'function') as f from ftrace_event "
                           "where name = 'workqueue_execute_start'")}
                self.assertTrue(work_items, option)
                for f in work_items:  # a name, or a number in its place; never an address
                    self.assertTrue(len(f) < 7 if f.isdigit() else "symbolize" in option, (option, f))
                self.assertEqual(r.query(trace, "select name from stats where severity = 'error' and value != 0"), [])

    def setup_errors(self, r, trace):
        return [row["m"] for row in r.query(trace, "select extract_arg(arg_set_id, 'message') as m from "
                                            "_trace_import_logs where name = 'ftrace_setup_errors' order by 1")]

    def call_ids(self, r, trace):
        return {int(row["id"]) for row in r.query(trace, "select distinct extract_arg(arg_set_id, 'id') as id from "
                                                         "ftrace_event where name in ('sys_enter', 'sys_exit')")}

    def test_chosen_system_calls(self):
        """Sessions of one instance get their own calls each; the kernel writes no others."""
        names = {"getpid": os.getpid, "getppid": os.getppid}
        numbers = {n: self.syscall_number(n) for n in names}

        def work():
            for _ in range(50):
                for call in names.values():
                    call()
                os.stat("/")

        with recorder.Recorder() as r:
            first = r.record_begin(config('syscall_events: "sys_getpid"', 2000), "first.pftrace")
            r.wait_for("the recording", r.instances)
            time.sleep(0.3)

            def during():
                time.sleep(0.3)
                work()
                filters.append(self.instance_file(r, "events/raw_syscalls/sys_enter/filter"))

            filters = []
            second = r.record(config('syscall_events: "getppid" syscall_events: "no_such_call"', 800), during)
            self.assertEqual(first.wait(30), 0)
            first = r.dir / "first.pftrace"
            self.assertEqual(self.call_ids(r, first), {numbers["getpid"]})
            self.assertEqual(self.call_ids(r, second), {numbers["getppid"]})
            self.assertIn("(id == %d || id == %d)" % tuple(sorted(numbers.values())), filters[0])
            self.assertEqual(self.setup_errors(r, first), [])
            self.assertEqual(self.setup_errors(r, second), ["Ftrace event failed: syscall_events/no_such_call: not a "
                                                            "system call of this machine"])

    def syscall_number(self, name):
        """From what the kernel's headers say on this machine."""
        text = subprocess.run(["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-xc", "/dev/null"],
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        return int(re.search(r"#define __NR_%s (\d+)" % name, text).group(1))

    def instance_file(self, r, name):
        return pathlib.Path(recorder.TRACEFS, "instances", r.instance, name).read_text()

    def test_printed_texts_are_filtered(self):
        rules = """ftrace_events: "ftrace/print" print_filter {
    rules { prefix: "keep" allow: true }
    rules { atrace_msg { type: "B" prefix: "draw" } allow: true }
    rules { prefix: "" allow: false }
  }"""
        with recorder.Recorder() as r:
            def during():
                r.wait_for("the recording", r.instances)
                time.sleep(0.4)
                for text in ("keep this", "lose this", "B|12|draw", "B|12|other", "E|12|draw", "not keep"):
                    pathlib.Path(recorder.TRACEFS, "instances", r.instance, "trace_marker").write_text(text)
            trace = r.record(config(rules, 900), during)
            self.assertEqual([row["t"].strip() for row in r.query(
                trace, "select extract_arg(arg_set_id, 'buf') as t from ftrace_event where name = 'print' order by ts")],
                ["keep this", "B|12|draw"])

    def test_settings_for_one_session_alone(self):
        """Whoever comes second is refused and finds the reason in the trace; the first goes on undisturbed."""
        plain = 'ftrace_events: "sched/sched_switch" '
        alone = 'tracing_cpumask: "1"'
        with recorder.Recorder() as r:
            for first, second in (("", alone), (alone, "")):
                p = r.record_begin(config(plain + first, 1500), "first.pftrace")
                r.wait_for("the recording", r.instances)
                time.sleep(0.3)
                trace = r.record(config(plain + second, 500), code=3)
                self.assertEqual(p.wait(30), 0)
                errors = self.setup_errors(r, trace)
                self.assertEqual(len(errors), 1)
                self.assertRegex(errors[0], "Ftrace exclusive feature error: .*tracing_cpumask.*instance_name")
                self.assertEqual(r.one(trace, "select count(*) from sched"), "0")
                self.assertEqual(self.setup_errors(r, r.dir / "first.pftrace"), [])
                self.assertNotEqual(r.one(r.dir / "first.pftrace", "select count(*) from sched"), "0")
                if first:
                    self.assertEqual(r.one(r.dir / "first.pftrace", "select max(c.cpu) from sched join cpu as c using (ucpu)"),
                                     "0")

    def test_settings_of_the_buffer(self):
        """What a config says about the kernel's buffer is what the kernel has during the recording."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        usual = 2048 if memory < 7 << 30 else 8192
        with recorder.Recorder() as r:
            for option, name, expected in (
                    ("", "buffer_size_kb", usual), ("buffer_size_kb: 100", "buffer_size_kb", 100),
                    ("buffer_size_kb: 100 buffer_size_lower_bound: true", "buffer_size_kb", usual),
                    ("buffer_size_kb: 20000 buffer_size_lower_bound: true", "buffer_size_kb", 20000),
                    ("drain_buffer_percent: 20", "buffer_percent", "20"),
                    ("use_monotonic_raw_clock: true", "trace_clock", "[mono_raw]"),
                    ('tracefs_options { name: "overwrite" state: STATE_DISABLED }', "options/overwrite", "0"),
                    ("tids_to_trace: 1 tids_to_trace: %d" % os.getpid(), "set_event_pid", f"1\n{os.getpid()}")):
                seen = []

                def during(name=name, seen=seen):
                    r.wait_for("the recording", r.instances)
                    time.sleep(0.2)
                    seen.append(self.instance_file(r, name))
                r.record(config('ftrace_events: "sched/sched_switch" ' + option, 400), during)
                if isinstance(expected, int):  # the kernel rounds up to its pages
                    self.assertLess(int(seen[0]) - expected, 0.01 * expected + 8, option)
                    self.assertGreaterEqual(int(seen[0]), expected, option)
                else:
                    self.assertIn(expected, seen[0].strip(), option)

    def test_what_was_recorded_before(self):
        """preserve_ftrace_buffer: an instance that somebody else has been recording to."""
        with recorder.Recorder() as r:
            instance = pathlib.Path(recorder.TRACEFS, "instances", r.instance)
            instance.mkdir()
            try:
                (instance / "trace_clock").write_text("boot")
                (instance / "events/ftrace/print/format").read_text()
                (instance / "trace_marker").write_text("long before")
                begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                trace = r.record(config('ftrace_events: "ftrace/print" preserve_ftrace_buffer: true', 500), lambda: (time.sleep(0.3), (instance / "trace_marker").write_text("now")))
                rows = r.query(trace, "select ts, extract_arg(arg_set_id, 'buf') as t from ftrace_event order by ts")
                self.assertEqual([row["t"].strip() for row in rows], ["long before", "now"])
                self.assertLess(int(rows[0]["ts"]), begin)
                self.assertEqual((instance / "trace_clock").read_text().split("[")[1].split("]")[0], "boot")
            finally:
                instance.rmdir()

    def test_a_frozen_buffer(self):
        """linux.frozen_ftrace reads what somebody has left in an instance, and touches nothing else there."""
        frozen = 'buffers { size_kb: 16384 } data_sources { config { name: "linux.frozen_ftrace" ' \
                 'frozen_ftrace_config { %s } } } duration_ms: 500'
        with recorder.Recorder() as r:
            instance = pathlib.Path(recorder.TRACEFS, "instances", r.instance)
            instance.mkdir()
            watched = ("tracing_on", "set_event", "trace_clock", "buffer_size_kb", "current_tracer", "buffer_percent")
            try:
                (instance / "trace_clock").write_text("boot")
                (instance / "set_event").write_text("sched:sched_switch")
                (instance / "trace_marker").write_text("the last words")
                for _ in range(20):
                    subprocess.run(["true"], check=True)
                (instance / "tracing_on").write_text("0")
                before = [(instance / f).read_text() for f in watched]
                written = sum(int(line.split(":")[1]) for p in instance.glob("per_cpu/cpu*/stats")
                              for line in p.read_text().splitlines() if line.startswith("entries:"))
                trace = r.record(frozen % f'instance_name: "{r.instance}"')
                self.assertEqual([(instance / f).read_text() for f in watched], before)
                names = {row["name"]: int(row["n"]) for row in r.query(
                    trace, "select name, count(*) as n from ftrace_event group by 1")}
                self.assertEqual(names["print"], 1)
                skipped = int(r.one(trace, "select sum(value) from stats where name = 'compact_sched_switch_skipped'") or 0)
                self.assertEqual(sum(names.values()) + skipped, written)
                self.assertGreater(int(r.one(trace, "select count(*) from sched where dur > 0")), 20)
                self.assertEqual(self.setup_errors(r, trace), [])
                # refused: no name, no such instance
                for config_text, reason in (("", "instance_name is missing"),
                                            (f'instance_name: "{r.instance}x"', "there is no tracefs instance")):
                    trace = r.record(frozen % config_text, code=3)
                    self.assertIn(reason, r.log("probes.log"))
                    self.assertIn(reason, self.setup_errors(r, trace)[0])
            finally:
                instance.rmdir()

    def test_categories_of_atrace(self):
        with recorder.Recorder() as r:
            trace = r.record(config('atrace_categories: "sched" atrace_categories: "gfx" atrace_apps: "com.example"', 500),
                             lambda: subprocess.run(["true"], check=True))
            self.assertNotEqual(r.one(trace, "select count(*) from sched"), "0")
            self.assertEqual(self.setup_errors(r, trace),
                             ["Atrace failures: gfx: not a category of kernel events; atrace_apps: apps are traced on "
                              "Android only; use track_event here"])

    def test_what_tells_why_threads_wait(self):
        """Kernels lack one or the other of these events, which is no error."""
        def wait():
            lock = threading.Lock()
            with lock:
                thread = threading.Thread(target=lock.acquire)
                thread.start()
                time.sleep(0.05)
            thread.join()

        with recorder.Recorder() as r:
            trace = r.record(config('atrace_categories: "waits"', 500), wait)
            self.assertEqual(self.setup_errors(r, trace), [])
            calls = any(os.path.exists(f"{root}/events/syscalls/sys_enter_futex") for root in
                        ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))
            self.assertEqual(r.one(trace, "select count(*) > 0 from ftrace_event where name = 'sys_enter_futex'"), str(int(calls)))

    def test_no_tracefs_is_told_in_the_trace(self):
        with recorder.Recorder(probes=["--tracefs", "/nowhere"]) as r:
            trace = r.record(config('ftrace_events: "sched/sched_switch"', 300, 'data_sources { config { name: '
                                    '"linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }'))
            errors = self.setup_errors(r, trace)
            self.assertEqual(len(errors), 1)
            self.assertIn("/nowhere is not a tracefs", errors[0])
            self.assertIn("/nowhere is not a tracefs", r.log("probes.log"))
            self.assertNotEqual(r.one(trace, "select count(*) from process"), "0")  # the other sources go on

    def test_an_unknown_event_is_told(self):
        with recorder.Recorder() as r:
            trace = r.record(config('ftrace_events: "no/such" ftrace_events: "sched/sched_switch"', 500))
            self.assertNotEqual(r.one(trace, "select value from stats where name = 'ftrace_setup_errors'"), "0")
            self.assertNotEqual(r.one(trace, "select count(*) from sched"), "0")


if __name__ == "__main__":
    recorder.main()

"""linux.ftrace that cannot record, in whole or in part, and several recorders on one kernel: what the terminal says, the
exit status, and what `tp_shell check` says of the trace."""
import contextlib
import os
import pathlib
import subprocess
import time
import unittest

import recorder

TOP = pathlib.Path(recorder.TRACEFS or "/")
OK, NOTHING = 0, 3


def config(ftrace, ms=700):
    return 'buffers { size_kb: 16384 } data_sources { config { name: "linux.ftrace" ftrace_config { %s } } } ' \
           "duration_ms: %d" % (ftrace, ms)


SWITCHES = 'ftrace_events: "sched/sched_switch"'


class Recorders(unittest.TestCase):
    def begin(self, r, text, out="trace.pftrace"):
        """As Recorder.record_begin(), in the instance that the config says."""
        path = r.dir / (out + ".txt")
        path.write_text(text)
        p = r.spawn("perfetto", "--txt", "-c", path, "-o", r.dir / out, log=out + ".log")
        self.addCleanup(p.kill)
        return p

    def end(self, r, p, code, *says, out="trace.pftrace", check=()):
        self.assertEqual(p.wait(60), code, r.log(out + ".log"))
        for s in says:
            self.assertIn(s, r.log(out + ".log"))
        c = subprocess.run([recorder.SHELL, "check", r.dir / out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(c.returncode, 1 if check else 0, c.stdout.decode())
        for s in check:
            self.assertIn(s, c.stdout.decode())

    def record(self, r, text, code, *says, check=()):
        self.end(r, self.begin(r, r.text(text)), code, *says, check=check)

    def test_no_event_is_known(self):
        says = 'data source "linux.ftrace" of perfetto.traced_probes could not start: the kernel has none of these ' \
               "events: no/such, sched/sched_swich"
        with recorder.Recorder() as r:
            self.record(r, config('ftrace_events: "no/such" ftrace_events: "sched/sched_swich"'), NOTHING, says,
                        check=("recording_source_not_started", says))
            self.assertNotEqual(r.one(r.dir / "trace.pftrace",
                                      "select value from stats where name = 'ftrace_setup_errors'"), "0")

    def test_an_event_is_unknown(self):
        says = "records only a part of what the config asks for: the kernel has no event no/such"
        with recorder.Recorder() as r:
            self.record(r, config('ftrace_events: "no/such" ' + SWITCHES), OK, says,
                        check=("recording_source_incomplete", says))

    def test_unknown_in_the_short_form(self):
        """linux.process_stats comes along, and is not what was asked for."""
        with recorder.Recorder() as r:
            p = r.spawn("perfetto", "-t", "500ms", "-o", r.dir / "trace.pftrace", "no/such", log="trace.pftrace.log")
            self.end(r, p, NOTHING, "the kernel has none of these events: no/such", check=("recording_source_not_started",))

    def test_no_tracefs(self):
        says = "could not start: /nowhere is not a tracefs that can be written to"
        with recorder.Recorder(probes=["--tracefs", "/nowhere"]) as r:
            self.record(r, config(SWITCHES), NOTHING, says, check=("recording_source_not_started", says))

    def switches(self, r, out="trace.pftrace"):
        return int(r.one(r.dir / out, "select count(*) from sched"))

    def own_instances(self):
        return [d for d in os.listdir(TOP / "instances") if d.startswith("meridian-")]

    def test_two_of_ours(self):
        """The second takes an instance of its own; asked for what only the top one has, it says who is in the way. With
        one run directory the first is known by its lock, with two by what it does to the kernel."""
        for shared in True, False:
            with recorder.Recorder() as a, recorder.Recorder(start=False) as b, self.subTest(shared=shared):
                if shared:
                    b.env["MERIDIAN_RUN_DIR"] = a.env["MERIDIAN_RUN_DIR"]
                b.start_traced()
                b.start_probes()
                first = self.begin(a, config(SWITCHES, 6000))
                a.wait_for("the first", lambda: "sched_switch" in (TOP / "set_event").read_text())
                self.end(b, self.begin(b, config(SWITCHES)), OK)
                self.assertGreater(self.switches(b), 10)
                self.assertIn("recording in instances/meridian-", b.log("probes.log"))
                self.assertEqual(self.own_instances(), [])
                says = "another recorder uses this tracefs instance" if shared else \
                       "another program records in the top tracefs instance (tracing is on, with sched:sched_switch"
                self.end(b, self.begin(b, config(SWITCHES + ' ftrace_events: "ftrace/print"')), NOTHING, says, check=(says,))
                self.assertEqual(b.probes.poll(), None)
                begin = time.monotonic()
                self.end(a, first, OK)
                self.assertGreater(self.switches(a), 10)
                self.assertLess(time.monotonic() - begin, 30)
                # undisturbed: the first has switches of its whole time
                span = int(a.one(a.dir / "trace.pftrace", "select max(ts) - min(ts) from sched"))
                self.assertGreater(span, 5_000_000_000)

    def test_another_program(self):
        """Perfetto's probes, trace-cmd or a script: tracing is on and events are enabled in the top instance."""
        with recorder.Recorder() as r, contextlib.ExitStack() as undo:
            undo.callback((TOP / "set_event").write_text, "\n")
            (TOP / "set_event").write_text("sched:sched_wakeup\n")
            (TOP / "tracing_on").write_text("1")
            self.end(r, self.begin(r, config(SWITCHES)), OK)
            self.assertGreater(self.switches(r), 10)
            self.assertEqual((TOP / "set_event").read_text(), "sched:sched_wakeup\n")
            says = "another program records in the top tracefs instance (tracing is on, with sched:sched_wakeup"
            self.end(r, self.begin(r, config('ftrace_events: "ftrace/print"')), NOTHING, says, check=(says,))
            self.assertEqual((TOP / "set_event").read_text(), "sched:sched_wakeup\n")
        self.assertEqual(self.own_instances(), [])


if __name__ == "__main__":
    recorder.main()

"""`tracebox record` on this machine alone: one command that starts what is needed, runs a program, and leaves nothing."""
import contextlib
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
import recorder

TRACEBOX = os.path.abspath(recorder.TRACEBOX)
NOWHERE = {"PERFETTO_CONSUMER_SOCK_NAME": "/nonexistent/consumer"}  # whatever runs on the machine of the test


class OneCommand(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mrd-one-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.dir.chmod(0o777)
        self.out = self.dir / "t.pftrace"
        self.before = self.leavings()

    def tearDown(self):
        """Recordings of other tests may run meanwhile: theirs go away when they end."""
        new, end = self.leavings() - self.before, time.monotonic() + 120
        while new & self.leavings() and time.monotonic() < end:
            time.sleep(0.1)
        self.assertFalse(new & self.leavings(), "something was left behind")

    def leavings(self):
        return set(glob.glob("/tmp/tracebox-record.*"))

    def record(self, *args, code=0, env=NOWHERE, **how):
        """Runs it; what it says."""
        p = subprocess.run([TRACEBOX, *map(str, args)], env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **how)
        self.assertEqual(p.returncode, code, p.stdout)
        return p.stdout

    def ask(self, sql):
        return [list(row.values()) for row in recorder.Recorder.query(None, self.out, sql)]

    def one(self, sql):
        return self.ask(sql)[0][0]

    def check(self, code=0):
        p = subprocess.run([recorder.SHELL, "check", self.out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(p.returncode, code, p.stdout)

    def test_for_a_while(self):
        says = self.record("record", "-o", self.out, "-t", "1s")
        for s in ("Wrote ", f"tp_shell check {self.out}", f"tp_shell server http {self.out}"):
            self.assertIn(s, says)
        self.check()
        self.assertGreater(int(self.one("select count(*) from sched")), 20)
        self.assertGreater(int(self.one("select count(*) from thread where name is not null")), 5)

    def test_flags_without_an_applet(self):
        self.record("-t", "500ms", "-o", self.out, "sched/sched_switch")
        self.assertEqual(self.ask("select distinct name from ftrace_event"), [["sched_switch"]])

    def test_a_command(self):
        """From its first system call to its end; its exit status is ours."""
        begin = time.monotonic()
        says = self.record("record", "-o", self.out, "-p", "sched", "-p", "syscalls", "--", "sh", "-c",
                           "mkdir %s/made-by-the-command; sleep 0.3; exit 7" % self.dir, code=7)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("sh ended with status 7", says)
        self.check()
        self.assertGreater(int(self.one("select count(*) from slice where name = 'sys_execve'")), 1)
        self.assertGreater(int(self.one("select count(*) from slice join thread_track tt on slice.track_id = tt.id join thread "
                                        "using (utid) where slice.name like 'sys_mkdir%' and thread.name = 'mkdir'")), 0)

    def test_who_only_connects_is_not_waited_for(self):
        """The command runs when the probes offer what is to be recorded: on a busy machine they connect long before."""
        found = []
        p = subprocess.Popen([TRACEBOX, "record", "-o", self.out, "-p", "sched", "--", "sh", "-c", "sleep 0.1"], stdin=subprocess.DEVNULL,
                             env={**os.environ, **NOWHERE}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.kill)

        def probes():
            """(number, address of their service)."""
            for pid in sorted(int(d) for d in os.listdir("/proc") if d.isdigit() and int(d) > p.pid):
                with contextlib.suppress(OSError):
                    folder = pathlib.Path("/proc", str(pid))
                    if (folder / "cmdline").read_bytes().endswith(b"\0traced_probes\0") and f"\nPPid:\t{p.pid}\n" in (folder / "status").read_text():
                        return pid, re.search(rb"PERFETTO_PRODUCER_SOCK_NAME=([^\0]+)", (folder / "environ").read_bytes())[1].decode()

        until = time.monotonic() + 20
        while not found and p.poll() is None and time.monotonic() < until:
            if what := probes():  # they are held up for a second; another program connects meanwhile and offers nothing
                os.kill(what[0], signal.SIGSTOP)
                found.append(harness.Peer(socket.socket(socket.AF_UNIX)))
                found[0].sock.connect(what[1])
                found[0].send(harness.bind("ProducerPort"))
                found[0].recv()
                found[0].send(harness.invoke(2, 1, harness.field(3, "idler")))
                found[0].reply(2)
                time.sleep(1)
                os.kill(what[0], signal.SIGCONT)
            time.sleep(0.0005)
        says = p.communicate(timeout=60)[0]
        self.assertEqual(p.returncode, 0, says)
        self.assertTrue(found)
        found[0].close()
        self.check()

    def test_a_command_that_does_not_exist(self):
        self.assertIn("/nonexistent/program: No such file", self.record("record", "-o", self.out, "--",
                                                                        "/nonexistent/program", code=127))

    def test_a_command_that_a_signal_ends(self):
        self.assertIn("ended with status 137", self.record("record", "-o", self.out, "--", "sh", "-c", "kill -9 $$", code=137))

    def test_interrupted(self):
        """Ctrl-C reaches the command and the recorder; what there is is saved, and both end."""
        p = subprocess.Popen([TRACEBOX, "record", "-o", self.out, "--", "sh", "-c", f"echo on > {self.dir}/on; exec sleep 1000"],
                             env={**os.environ, **NOWHERE}, start_new_session=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.kill)
        until = time.monotonic() + 60
        while not (self.dir / "on").exists() and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(p.pid, signal.SIGINT)
        says = p.communicate(timeout=60)[0]
        self.assertEqual(p.returncode, 130, says)  # as a shell says of the command
        self.assertIn("saving the trace", says)
        self.check()

    def test_interrupted_when_the_command_has_ended(self):
        """The recorder hears of the command's end before it hears of Ctrl-C, which is the first all the same."""
        p = subprocess.Popen([TRACEBOX, "record", "-o", self.out, "--", "sh", "-c", f"echo $$ > {self.dir}/on; exec sleep 1000"],
                             env={**os.environ, **NOWHERE}, start_new_session=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.kill)
        on, until = self.dir / "on", time.monotonic() + 60
        while not (on.exists() and on.read_text().strip()) and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(p.pid, signal.SIGSTOP)
        os.kill(int(on.read_text()), signal.SIGINT)
        time.sleep(0.5)
        os.kill(p.pid, signal.SIGINT)
        os.kill(p.pid, signal.SIGCONT)
        says = p.communicate(timeout=60)[0]
        self.assertEqual(p.returncode, 130, says)
        self.check()

    def test_terminated(self):
        """Only the recorder is told: it ends the command."""
        p = subprocess.Popen([TRACEBOX, "record", "-o", self.out, "--", "sh", "-c", f"echo $$ > {self.dir}/on; exec sleep 1000"],
                             env={**os.environ, **NOWHERE}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.kill)
        until = time.monotonic() + 60
        while not ((self.dir / "on").exists() and (self.dir / "on").read_text().endswith("\n")) and time.monotonic() < until:
            time.sleep(0.02)
        p.terminate()
        says = p.communicate(timeout=60)[0]
        self.assertEqual(p.returncode, 143, says)
        self.assertFalse(os.path.exists("/proc/" + (self.dir / "on").read_text().strip()), "the command lives on")
        self.check()

    def test_a_service_that_runs_does_it(self):
        with recorder.Recorder() as r:
            says = self.record("record", "-o", self.out, "-t", "500ms", env=r.env)
            self.assertIn("using the tracing service that runs on this machine", says)
        self.check()
        self.assertGreater(int(self.one("select count(*) from sched")), 5)

    def test_presets(self):
        for args, says in ((["-p", "shced"], "did you mean 'sched'?"), (["--no-host"], "--no-host needs --machine"),
                           (["-p", "io", "-c", "x"], "--config and --preset exclude each other"),
                           (["-t", "fast"], "--time fast: expected a number with ms, s, m or h")):
            self.assertIn(says, self.record("record", "-o", self.out, *args, code=1))
        self.assertIn("--out is needed", self.record("record", "-t", "1s", code=1))
        self.record("record", "-o", self.out, "-p", "all", "-t", "500ms")
        self.check()
        names = {n for n, in self.ask("select distinct name from ftrace_event")}
        self.assertLess({"sched_switch", "sys_enter", "softirq_entry"}, names)
        self.assertGreater(int(self.one("select count(*) from counter join track t on t.id = track_id where t.name = 'MemTotal'")), 0)

    def test_a_config(self):
        config = self.dir / "config"
        config.write_text('buffers { size_kb: 4096 } duration_ms: 400 data_sources { config { name: "linux.ftrace" '
                          'ftrace_config { ftrace_events: "sched/sched_switch" } } }')
        self.record("record", "-o", self.out, "--txt", "-c", config)
        self.assertEqual(self.ask("select distinct name from ftrace_event"), [["sched_switch"]])

    def test_without_root(self):
        """It records what it may, and says how to get more; what it may not is refused."""
        nobody = pwd.getpwnam("nobody")
        program = shutil.copy(TRACEBOX, self.dir / "tracebox")  # the build's folder may be closed to others
        def run(*args, code):
            p = subprocess.run([program, "record", "-o", self.out, *args], user=nobody.pw_uid, group=nobody.pw_gid,
                               extra_groups=[], env={**os.environ, **NOWHERE}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=120)
            self.assertEqual(p.returncode, code, p.stdout)
            return p.stdout
        self.assertIn("kernel events need root: run it with sudo", run("-t", "1s", "sched/sched_switch", code=1))
        self.assertFalse(self.out.exists())
        self.assertIn("not root: recording processes", run("-t", "1s", code=0))
        self.check()
        self.assertGreater(int(self.one("select count(*) from process where name is not null")), 5)
        self.assertGreater(int(self.one("select count(*) from counter join track t on t.id = track_id where t.name = 'mem.rss'")), 5)


if __name__ == "__main__":
    recorder.need_tracefs()
    unittest.main()

"""tracebox record: machines over ssh, with a real sshd in a namespace of its own for each; nothing is left behind."""
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from harness import TRACEBOX, Case, first, main, packets, wait_for
from links import Forwarder, Machine, enter_namespace
from sampling import can_sample

STATIC = pathlib.Path(TRACEBOX).parent / "tracebox-static"
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
NOBODY = "10.77.250.9"  # no machine is there
EVENT = pathlib.Path("/sys/kernel/tracing/events/sched/sched_switch/enable")


class Ssh(Case):
    def setUp(self):
        super().setUp()
        self.forwarder = Forwarder()
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.dir / key], check=True)
        shutil.copy(self.dir / "user_key.pub", self.dir / "authorized_keys")
        (self.dir / "ssh_config").write_text(
            f"Host {NOBODY}\n ConnectTimeout 5\n"  # a busy machine may take longer to greet
            f"Host *\n IdentityFile {self.dir}/user_key\n IdentitiesOnly yes\n StrictHostKeyChecking no\n"
            " UserKnownHostsFile /dev/null\n LogLevel ERROR\n ConnectTimeout 60\n")

    def tearDown(self):
        super().tearDown()
        self.forwarder.close()

    def machine(self, number, has_tracebox):
        """One with an sshd; its shell finds our tracebox, or none."""
        m = Machine(self, self.forwarder, number)
        path = f"{m.dir}:/usr/bin:/bin" if has_tracebox else "/usr/bin:/bin"
        (m.dir / "tracebox").symlink_to(pathlib.Path(TRACEBOX).resolve())
        (m.dir / "sshd_config").write_text(
            f"HostKey {self.dir}/host_key\nAuthorizedKeysFile {self.dir}/authorized_keys\nPidFile none\nUsePAM no\n"
            f"StrictModes no\nPermitRootLogin yes\nSetEnv PATH={path}\n")
        m.spawn(SSHD, "-D", "-e", "-f", m.dir / "sshd_config", log="sshd.log")
        wait_for(lambda: "Server listening" in (m.dir / "sshd.log").read_text(), what="sshd")
        return m

    def start(self, *args):
        return self.spawn(TRACEBOX, "record", "--ssh", f"ssh -F {self.dir}/ssh_config", "-o", self.dir / "trace", *args)

    def record(self, *args, seconds=1):
        """Records for a second; for ten, then for a minute, where it says that a source had not begun by then: the kernel of a busy
        machine may need seconds to switch its events on."""
        p = self.start(*args, "-t", f"{seconds}s", "sched/sched_switch")
        _, err = p.communicate(timeout=120 + seconds)
        if p.returncode == 3 and b"has not said that it started" in err and seconds < 60:
            return self.record(*args, seconds=min(10 * seconds, 60))
        self.assertEqual(p.returncode, 0, err.decode(errors="replace"))

    def recording(self):
        wait_for(lambda: EVENT.read_text().strip() == "1", 40, "the recording")

    def clean(self, machines, ours="", seconds=60):
        """No process of the recording is left on the machines, no file (nor here), and tracefs is as it was."""
        def left():
            out = [f"{m.name}: {line}" for m in machines for line in subprocess.run(
                ["ps", "-ww", "-eo", "pid,args"], stdout=subprocess.PIPE).stdout.decode().splitlines()
                if any(d in line for d in ("traced_probes", "traced_perf", "traced_relay")) and "tracebox" in line and self.is_ours(line)]
            return out + [f for f in glob.glob("/tmp/tracebox-record[-.]*") if not ours or ours not in f] + ([] if EVENT.read_text().strip() == "0" else ["ftrace"])
        try:
            wait_for(lambda: not left(), seconds, "cleaning up")
        except AssertionError:
            raise AssertionError(f"left behind: {left()}") from None

    @staticmethod
    def is_ours(line):
        """Other tests may run daemons of their own: those of the recorder are in network namespaces made here, or ours."""
        try:
            environ = pathlib.Path(f"/proc/{line.split()[0]}/environ").read_text()
        except OSError:
            return False
        return "tracebox-record" in environ

    def machines_of(self, trace):
        return {int(r[0]): int(r[1]) for r in self.query(
            trace, "SELECT m.raw_id, count(f.id) FROM machine m LEFT JOIN (SELECT f.id, cpu.machine_id AS machine "
                   "FROM ftrace_event f JOIN cpu USING (ucpu)) f ON f.machine = m.id GROUP BY m.raw_id")}

    def test_machine_without_tracebox(self):
        """It gets a copy: the static binary beside ours, or the one that is named. (A sanitized build has no static one.)"""
        m = self.machine(1, has_tracebox=False)
        named = [] if STATIC.exists() else ["--binary", TRACEBOX]
        self.record(*named, "--machine", self.address(m), "--no-host")
        self.assertGreater(self.machines_of(self.dir / "trace")[m.id], 10)
        self.clean([m])

    def address(self, m):
        return f"root@{m.host.split(':')[0][:-1]}2"

    def test_three_machines(self):
        """Two by ssh and this one: all are in the trace, by name. (They share a kernel: one of them has its events.)"""
        a, b = self.machine(1, True), self.machine(2, True)
        self.record("--machine", self.address(a), "--machine", self.address(b))
        trace = self.dir / "trace"
        self.assertLessEqual({a.id, b.id, 0}, set(self.machines_of(trace)))
        names = {int(i): n for i, n in self.query(trace, "SELECT raw_id, name FROM machine")}
        self.assertEqual([names[m.id] for m in (a, b)], [self.address(m).split("@")[1] for m in (a, b)])
        config = next(first(p, 33) for p in packets(trace.read_bytes()) if first(p, 33))
        self.assertEqual(first(first(config, 1), 1000), first(first(config, 1), 1), "a ring of its own for each machine")
        self.clean([a, b])

    @unittest.skipUnless(can_sample(), "needs a kernel that lets it sample (perf_event_open)")
    def test_profile_of_another_machine(self):
        m, trace = self.machine(1, True), self.dir / "trace"
        p = self.spawn(TRACEBOX, "profile", "--ssh", f"ssh -F {self.dir}/ssh_config", "-o", trace, "--machine", self.address(m),
                       "--no-host", "-F", "199", "--dwarf", "-g", "-t", "2s")
        out, err = self.finish(p, seconds=60)
        self.assertIn("self   total  function", out)
        self.assertRegex(err, r"\d+ samples of running threads")
        rows = {int(r[0]): (int(r[1]), int(r[2])) for r in self.query(
            trace, "select m.raw_id, count(*), count(s.callsite_id) from perf_sample s join thread using (utid) join machine m on "
                   "m.id = thread.machine_id group by 1")}
        self.assertEqual(set(rows), {m.id})
        self.assertGreater(rows[m.id][0], 20)
        self.assertGreater(rows[m.id][1], 10)
        self.clean([m])

    def test_direct(self):
        m = self.machine(1, True)
        self.record("--direct", "--machine", self.address(m), "--no-host")
        self.assertGreater(self.machines_of(self.dir / "trace")[m.id], 10)
        self.clean([m])

    def test_direct_by_ipv6(self):
        """By a global address, and by one that holds on its link only."""
        m = self.machine(1, True)
        n = m.host.split(".")[2]
        for enter, address, link in ([], f"fd77:{n}::1", f"v{n}"), (m.enter(), f"fd77:{n}::2", "eth0"):
            if subprocess.run([*enter, "ip", "addr", "add", f"{address}/64", "dev", link, "nodad"]).returncode:
                self.skipTest("no IPv6 here")
        linked = subprocess.run([*m.enter(), "ip", "-6", "-o", "addr", "show", "dev", "eth0", "scope", "link"],
                                stdout=subprocess.PIPE, check=True).stdout.decode().split()[3].split("/")[0]
        for address in f"fd77:{n}::2", f"{linked}%v{n}":
            trace = self.dir / "trace"
            trace.unlink(missing_ok=True)
            self.record("--direct", "--machine", f"root@{address}", "--no-host")
            self.assertGreater(self.machines_of(trace)[m.id], 10, address)
            self.clean([m])

    def test_ctrl_c_saves(self):
        self.ends_by(signal.SIGINT)

    def test_a_closed_terminal_saves(self):
        self.ends_by(signal.SIGHUP)

    def ends_by(self, signum):
        m = self.machine(1, True)
        p = self.start("--machine", self.address(m), "--no-host", "-t", "60s", "sched/sched_switch")
        self.recording()
        time.sleep(0.5)
        p.send_signal(signum)
        self.finish(p, seconds=30)
        self.assertGreater(self.machines_of(self.dir / "trace")[m.id], 10)
        self.clean([m])

    def test_recorder_killed(self):
        m = self.machine(1, True)
        p = self.start("--machine", self.address(m), "--no-host", "-t", "60s", "sched/sched_switch")
        self.recording()
        p.kill()
        p.communicate()
        wait_for(lambda: not glob.glob("/tmp/tracebox-record-*"), 60, "cleaning up on the machine")
        for scratch in glob.glob("/tmp/tracebox-record.*"):  # our own logs: nobody is left to remove them
            shutil.rmtree(scratch)
        self.clean([m])

    def test_connection_cut(self):
        """The machine is on its own: it cleans up; the recording goes on without it, and says so."""
        m = self.machine(1, True)
        p = self.start("--machine", self.address(m), "--no-host", "-t", "60s", "sched/sched_switch")
        self.recording()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            time.sleep(0.0002)  # events, more than the chunks hold that are lost with the link
        for line in subprocess.run(["ps", "-eo", "pid,args"], stdout=subprocess.PIPE).stdout.decode().splitlines():
            if "ssh -F" in line and str(self.dir) in line and "tracebox record" not in line:
                os.kill(int(line.split()[0]), signal.SIGKILL)
        self.clean([m], ours="tracebox-record.")  # the recorder goes on
        p.send_signal(signal.SIGINT)
        _, err = self.finish(p, seconds=30)
        self.assertIn("the ssh connection broke", err)
        self.assertGreater(self.machines_of(self.dir / "trace")[m.id], 10)
        self.clean([m])

    def test_refusals(self):
        m = self.machine(1, has_tracebox=False)
        for args, reason in ((["--machine", f"root@{NOBODY}"], "the ssh connection failed"),
                             (["--machine", self.address(m), "--binary", "/nonexistent"], "/nonexistent"),
                             (["--machine", self.address(m), "--binary", "/etc/hostname"], "the copy of tracebox does not run"),
                             (["--machine", "-oProxyCommand=id"], "the name of a machine is empty or begins with")):
            out, err = self.finish(self.start(*args, "sched/sched_switch"), code=1, seconds=60)
            self.assertIn(reason, err)
        self.assertFalse((self.dir / "trace").exists())
        self.clean([m])


if __name__ == "__main__":
    if not SSHD:
        print("skipped: no sshd (scripts/install-deps.sh --tests installs it)")
        sys.exit(77)
    enter_namespace()
    if not EVENT.exists():
        subprocess.run(["mount", "-t", "tracefs", "none", "/sys/kernel/tracing"])
    main()

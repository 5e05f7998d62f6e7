"""Running the daemons: addresses of every kind, permissions, stale sockets, the background, systemd."""
import grp
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

from harness import PRODUCER, TRACEBOX, Case, free_port, main, wait_for
from test_record import config, ledger

SYSTEMD = pathlib.Path(__file__).resolve().parent.parent.parent / "systemd"
VSOCK_LOOPBACK = 1  # VMADDR_CID_LOCAL


def has_vsock_loopback():
    try:
        with socket.socket(socket.AF_VSOCK) as s:
            s.bind((VSOCK_LOOPBACK, 0xffffffff))
        return True
    except OSError:
        return False


class Operations(Case):
    def record(self):
        """100 packets through whatever addresses the environment says."""
        trace = self.dir / "trace"
        perf = self.perfetto("--txt", "-c", self.config(config()), "-o", trace)
        self.finish(self.spawn(PRODUCER, "--packets", 100))
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertEqual(len(ledger(trace.read_bytes())[0]), 100)

    def over(self, producer, consumer):
        self.env["PERFETTO_CONSUMER_SOCK_NAME"] = consumer
        self.start_traced(producers=producer)
        self.record()

    def test_a_recorder_that_was_stopped(self):
        """Longer than the watchdog lets it stand still: it goes on, for it was not stuck."""
        self.start_traced()
        p = self.spawn(TRACEBOX, "traced_probes", "--dev-flag", "stuck-ms=1600")
        wait_for(lambda: '"perfetto.traced_probes" connected' in self.log(), what="the recorder")
        p.send_signal(signal.SIGSTOP)
        time.sleep(3)
        p.send_signal(signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(p.poll())
        p.terminate()
        self.finish(p)

    def test_abstract_sockets(self):
        self.over(f"@meridian-{os.getpid()}-p", f"@meridian-{os.getpid()}-c")
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["config.txt", "trace", "traced.log"])

    def test_tcp(self):
        self.over(f"127.0.0.1:{free_port()}", f"localhost:{free_port()}")

    def test_tcp_v6(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 loopback")
        self.over(f"[::1]:{free_port()}", f"[::1]:{free_port()}")

    def test_vsock(self):
        if not has_vsock_loopback():
            self.skipTest("this kernel has no vsock loopback (module vsock_loopback)")
        self.over(f"vsock://{VSOCK_LOOPBACK}:{20000 + os.getpid() % 10000}", f"vsock://{VSOCK_LOOPBACK}:{30000 + os.getpid() % 10000}")

    def test_several_producer_sockets(self):
        port = free_port()
        sockets = [str(self.dir / "one"), f"127.0.0.1:{port}", str(self.dir / "two")]
        self.start_traced(producers=",".join(sockets))
        for s in sockets:
            self.env["PERFETTO_PRODUCER_SOCK_NAME"] = s
            self.record()

    def test_bad_addresses(self):
        taken = self.dir / "a-file"
        taken.write_text("not a socket")
        for address, why in ((str(taken), "exists and is not a socket"), ("/no/such/folder/sock", "cannot listen"),
                             ("x" * 200, "longer than"), ("vsock://1", "vsock://CID:PORT"), ("no-such-host.invalid:1", "resolve")):
            with self.subTest(address=address):
                p = self.spawn(TRACEBOX, "traced", env_changes={"PERFETTO_PRODUCER_SOCK_NAME": address})
                _, err = self.finish(p, code=1)
                self.assertIn(why, err)
        self.assertEqual(taken.read_text(), "not a socket")

    def spawn(self, *args, env_changes=None):
        if not env_changes:
            return super().spawn(*args)
        env, self.env = self.env, {**self.env, **env_changes}
        try:
            return super().spawn(*args)
        finally:
            self.env = env

    def test_permissions(self):
        if os.getuid() != 0:
            self.skipTest("needs root to give sockets to groups")
        self.start_traced("--set-socket-permissions", "daemon:0660:root:0600")
        p, c = (os.stat(self.env[f"PERFETTO_{n}_SOCK_NAME"]) for n in ("PRODUCER", "CONSUMER"))
        self.assertEqual((stat.S_IMODE(p.st_mode), p.st_gid), (0o660, grp.getgrnam("daemon").gr_gid))
        self.assertEqual((stat.S_IMODE(c.st_mode), c.st_gid), (0o600, 0))
        for bad, why in (("daemon:0660", "group:mode:group:mode"), ("no-such-group:0660:root:0600", "no group"),
                         ("daemon:99:root:0600", "octal")):
            with self.subTest(bad=bad):
                other = {f"PERFETTO_{n}_SOCK_NAME": str(self.dir / n) for n in ("PRODUCER", "CONSUMER")}
                p = self.spawn(TRACEBOX, "traced", "--set-socket-permissions", bad, env_changes=other)
                self.assertIn(why, self.finish(p, code=1)[1])

    def test_flags(self):
        out, _ = self.finish(self.spawn(TRACEBOX, "traced", "--version"))
        self.assertRegex(out, r"^Meridian v\d")
        for args, why in ((["--nonsense"], "Usage"), (["--enable-relay-endpoint-on", "/elsewhere"], "not a producer socket")):
            self.assertIn(why, self.finish(self.spawn(TRACEBOX, "traced", *args), code=1)[1])
        link = self.dir / "traced"  # by the name it is called with
        link.symlink_to(pathlib.Path(TRACEBOX).resolve())
        self.assertRegex(self.finish(self.spawn(link, "--version"))[0], r"^Meridian v\d")

    def test_background_and_stale_sockets(self):
        """Killed, its sockets stay behind; the next one takes their place."""
        for _ in range(2):
            p = self.spawn(TRACEBOX, "traced", "--background")
            pid = int(p.stdout.readline())
            self.assertEqual(p.wait(20), 0)
            try:
                wait_for(lambda: self.connects("PRODUCER") and self.connects("CONSUMER"))
                self.record()
            finally:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not self.connects("CONSUMER"))
            p.communicate()
        self.assertTrue(stat.S_ISSOCK(os.stat(self.env["PERFETTO_PRODUCER_SOCK_NAME"]).st_mode))

    def connects(self, name):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.env[f"PERFETTO_{name}_SOCK_NAME"]) == 0

    def test_systemd_units(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        for unit in [*SYSTEMD.glob("*.service"), *SYSTEMD.glob("*.socket")]:  # with our program where /usr/bin/tracebox will be
            text = unit.read_text().replace("/usr/bin/tracebox", str(pathlib.Path(TRACEBOX).resolve()))
            (self.dir / unit.name).write_text(text)
        units = sorted(self.dir.glob("meridian-*"))
        self.assertEqual(len(units), 5)
        p = subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, units)], capture_output=True, text=True, timeout=60)
        ours = [line for line in p.stderr.splitlines() if "meridian" in line]
        self.assertEqual((ours, p.returncode), ([], 0), p.stderr)

    def test_units_keep_what_their_programs_keep(self):
        """The bound of each unit is the row of docs/security.md, which is the program's own; the service starts with one more, to give
        its sockets to a group."""
        table = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", (SYSTEMD.parent / "docs" / "security.md").read_text(), re.M))
        for unit in SYSTEMD.glob("*.service"):
            text = unit.read_text()
            bound = set(re.search(r"^CapabilityBoundingSet=(.*)$", text, re.M).group(1).split())
            program = re.search(r"^ExecStart=\S+ (\w+)", text, re.M).group(1)
            self.assertEqual(bound - ({"CAP_CHOWN"} if program == "traced" else set()), set(re.findall(r"CAP_\w+", table[program])), unit.name)

    def test_sockets_of_systemd(self):
        """Those of the unit, handed over as systemd does: the service takes them, unlinks nothing, and leaves them usable."""
        paths = [self.env[f"PERFETTO_{name}_SOCK_NAME"] for name in ("CONSUMER", "PRODUCER")]  # not in the order of the service
        listeners = [socket.socket(socket.AF_UNIX) for _ in paths]
        for listener, path in zip(listeners, paths):
            listener.bind(path)
            listener.listen(16)
        inodes = [os.stat(path).st_ino for path in paths]

        def hand_over():
            fds = [os.dup(listener.fileno()) for listener in listeners]  # out of the way of 3 and 4
            for i, fd in enumerate(fds):
                os.dup2(fd, 3 + i, inheritable=True)

        for _ in range(2):  # started again, it finds the same sockets
            p = subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" traced', TRACEBOX], env=self.env, close_fds=False,
                                 preexec_fn=hand_over, stderr=subprocess.DEVNULL)
            self.procs.append(p)
            self.record()  # waits in the queue of the socket until the service is there
            self.assertEqual([os.stat(path).st_ino for path in paths], inodes)
            p.terminate()
            p.wait(20)
        for listener in listeners:
            listener.close()
        p = subprocess.Popen([TRACEBOX, "traced"], env={**self.env, "LISTEN_PID": "1", "LISTEN_FDS": "2"}, stderr=subprocess.DEVNULL)
        self.procs.append(p)  # what was handed over to another process is not for this one: it makes sockets of its own
        wait_for(lambda: self.connects("PRODUCER") and self.connects("CONSUMER"), what="the service on sockets of its own")

    def test_the_capabilities_of_the_unit_are_enough(self):
        """The service as the unit starts it: a socket for a group, a recording; and it keeps no more than the unit says."""
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        unit = (SYSTEMD / "meridian-traced.service").read_text()
        named = next(line.split("=")[1].split() for line in unit.splitlines() if line.startswith("CapabilityBoundingSet="))
        bound = ",".join(["-all"] + ["+" + c.removeprefix("CAP_").lower() for c in named])
        p = self.spawn("setpriv", "--bounding-set", bound, "--inh-caps", "-all", "--no-new-privs", TRACEBOX, "traced",
                       "--set-socket-permissions", "daemon:0660:root:0600")
        wait_for(lambda: self.connects("PRODUCER") and self.connects("CONSUMER"), what="the service")
        self.assertEqual(os.stat(self.env["PERFETTO_PRODUCER_SOCK_NAME"]).st_gid, grp.getgrnam("daemon").gr_gid)
        self.record()
        kept = next(line.split()[1] for line in pathlib.Path(f"/proc/{p.pid}/status").read_text().splitlines() if line.startswith("CapEff"))
        self.assertEqual(int(kept, 16), 1 << 23)  # CAP_SYS_NICE


if __name__ == "__main__":
    main()

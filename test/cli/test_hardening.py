"""The programs are built against attacks on their memory, and what listens gives up what it does not need."""
import os
import re
import subprocess
import tempfile
import time
import unittest

TP_SHELL, TRACEBOX = os.environ["TP_SHELL"], os.environ["TRACEBOX"]
DATA = os.environ["MERIDIAN_DATA"]


def readelf(program, *options):
    return subprocess.run(["readelf", "-W", *options, program], check=True, capture_output=True, text=True).stdout


def is_sanitized(program):
    return re.search("__[at]san_init", readelf(program, "--dyn-syms"))


class Hardening(unittest.TestCase):
    def test_programs(self):
        for program in (TP_SHELL, TRACEBOX):
            with self.subTest(program=program):
                self.assertRegex(readelf(program, "-h"), r"Type:\s+" + ("EXEC" if is_sanitized(program) else "DYN"))
                segments = readelf(program, "-l")
                self.assertRegex(segments, r"GNU_STACK.* RW +0x")
                self.assertNotRegex(segments, r"GNU_STACK.* RWE")
                self.assertIn("GNU_RELRO", segments)
                self.assertNotRegex(segments, r"LOAD.* RWE ")
                self.assertRegex(readelf(program, "-d"), r"BIND_NOW|Flags:.*NOW")

    def test_checks_at_run_time(self):
        """Of the stack, and of copies whose size is known: sanitizers have checks of their own."""
        for program in (TP_SHELL, TRACEBOX):
            if is_sanitized(program):
                self.skipTest("built with sanitizers")
            names = readelf(program, "--dyn-syms")
            with self.subTest(program=program):
                self.assertIn("__stack_chk_fail", names)
                self.assertRegex(names, r"__\w+_chk\b")

    def confined(self, command, env=None):
        """Starts it, and waits until it has given up its rights: it may get no new ones, and calls are filtered."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **(env or {})})
        try:
            end = time.monotonic() + 20
            status = {}
            while time.monotonic() < end and status.get("Seccomp") != "2" and process.poll() is None:
                time.sleep(0.02)
                with open(f"/proc/{process.pid}/status") as f:
                    status = dict(re.findall(r"^(\w+):\t(.*)$", f.read(), re.M))
            self.assertEqual((status.get("Seccomp"), status.get("NoNewPrivs")), ("2", "1"), command)
            return int(status["CapEff"], 16)
        finally:
            process.kill()
            process.wait()

    def test_what_listens(self):
        with tempfile.TemporaryDirectory() as d:
            sockets = {"PERFETTO_PRODUCER_SOCK_NAME": f"{d}/producer", "PERFETTO_CONSUMER_SOCK_NAME": f"{d}/consumer",
                       "PERFETTO_RELAY_SOCK_NAME": f"{d}/relay"}
            root = 1 << 1 | 1 << 12 | 1 << 21  # CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_SYS_ADMIN
            for command in ([TP_SHELL, "server", "unix", "--path", f"{d}/server", f"{DATA}/linux-sched.pftrace"],
                            [TRACEBOX, "traced"], [TRACEBOX, "traced_relay"]):
                with self.subTest(command=command):
                    self.assertEqual(self.confined(command, sockets) & root, 0)


if __name__ == "__main__":
    unittest.main()

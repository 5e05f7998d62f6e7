"""The table of misuses (misuses.txt): what each says, and its exit status. Nothing takes long, nothing is a crash."""
import os
import pathlib
import re
import shutil
import subprocess

import harness

TABLE = pathlib.Path(__file__).with_name("misuses.txt")
ROOT = os.geteuid() == 0
TRACEFS = any(os.access(p + "/instances", os.W_OK) for p in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))


class Misuses(harness.Case):
    def prepare(self):
        self.dir.chmod(0o777)
        (self.dir / "png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        (self.dir / "garbage").write_bytes(b"\xfe\xed\xfa\xce" * 64)
        (self.dir / "empty").touch()
        (self.dir / "closed").touch()
        (self.dir / "dir").mkdir()
        self.programs = {"%S": shutil.copy(harness.SHELL, self.dir / "tp_shell"),  # where anybody may run them
                         "%T": shutil.copy(os.environ["TRACEBOX"], self.dir / "tracebox")}

    def run_line(self, command):
        nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups " if ROOT else ""
        for key, value in {**self.programs, "%D": harness.DATA / "linux-sched.pftrace", "%N ": nobody, "%R ": ""}.items():
            command = command.replace(key, str(value))
        env = {**os.environ, "PERFETTO_CONSUMER_SOCK_NAME": "/nonexistent/c", "TERM": "dumb"}
        p = subprocess.run(["bash", "-o", "pipefail", "-c", f"{{ {command}\n}} 2>&1"], cwd=self.dir, env=env, timeout=60,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        return p.returncode, p.stdout

    def test_each(self):
        self.prepare()
        ran = 0
        for line in TABLE.read_text().splitlines():
            if line.startswith("#") or not line.strip():
                continue
            code, says, command = line.split(" | ", 2)
            if "%R" in command and not (ROOT and TRACEFS) or "%N" in command and not ROOT:
                continue
            with self.subTest(command):
                got, text = self.run_line(command)
                self.assertRegex(text, re.compile(says, re.M | re.S))
                self.assertIn(got, (int(code), 141) if "| head" in command else (int(code),), text)
                ran += 1
        self.assertGreater(ran, 25)

    def test_outputs_that_are_the_trace(self):
        """What is written would have taken the place of the only copy of a recording."""
        whole = (harness.DATA / "linux-sched.pftrace").read_bytes()
        trace, link = self.dir / "only.pftrace", self.dir / "link.pftrace"
        link.symlink_to(trace)
        for args in (("convert", "json", trace, trace), ("convert", "text", trace, link), ("snapshot", trace, "-o", link),
                     ("export", "sqlite", trace, "-o", trace), ("report", trace, "-o", trace),
                     ("cut", trace, "--from", "1s", "-o", trace), ("query", "-m", trace, trace, "select 1"),
                     ("query", "--perf-file", trace, trace, "select 1")):
            trace.write_bytes(whole)
            self.fails(*args, text="what is written would replace the trace; give another name")
            self.assertEqual(trace.read_bytes(), whole, args)
        self.run_shell("convert", "json", trace, self.dir / "other.json")


if __name__ == "__main__":
    harness.main()

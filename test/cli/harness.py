"""What the tests of the command line share: running tp_shell, recordings, temporary files."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

SHELL = os.environ.get("TP_SHELL", "build/release/tp_shell")
DATA = pathlib.Path(os.environ.get("MERIDIAN_DATA", pathlib.Path(__file__).parent.parent / "data")).resolve()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._dir = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls._dir.name)
        cls.empty = cls.dir / "empty.pftrace"
        cls.empty.write_bytes(b"")

    @classmethod
    def tearDownClass(cls):
        cls._dir.cleanup()

    def run_shell(self, *args, stdin=None, env=None, code=0, cwd=None):
        """Runs tp_shell and checks the exit code (None: any of a verdict, 0 or 1); stdin None is /dev/null."""
        p = subprocess.run([SHELL, *map(str, args)], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                           env={**os.environ, "HOME": str(self.dir), "XDG_CONFIG_HOME": "", **(env or {})}, timeout=120)
        self.assertIn(p.returncode, (0, 1) if code is None else (code,), f"{args}: {p.stderr.decode(errors='replace')}")
        return p

    def on_terminal(self, *args, interrupt_at=None, both=False, **kw):
        """(exit code, what the terminal got): standard error is a pseudo-terminal, with `both` standard output, too."""
        main, side = pty.openpty()
        p = subprocess.Popen([SHELL, *map(str, args)], stdin=subprocess.DEVNULL, stdout=side if both else subprocess.DEVNULL,
                             stderr=side, env={**os.environ, "HOME": str(self.dir)}, **kw)
        os.close(side)
        got = b""
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            if not select.select([main], [], [], 1)[0]:
                continue
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            got += piece
            if interrupt_at and interrupt_at in got:
                p.send_signal(signal.SIGINT)
                interrupt_at = None
        code = p.wait(timeout=100)
        os.close(main)
        return code, got.decode(errors="replace")

    def query(self, sql, *flags, trace=None, **kw):
        """The standard output of a query over a trace (an empty one by default)."""
        return self.run_shell("query", *flags, trace or self.empty, sql, **kw).stdout.decode()

    def fails(self, *args, text="", **kw):
        """Runs what must fail with exit code 1 and nothing on standard output; the last line of the error holds `text`."""
        p = self.run_shell(*args, code=1, **kw)
        err = p.stderr.decode(errors="replace").strip()
        self.assertIn(text, err)
        self.assertEqual(p.stdout, b"")
        return err


def main():
    unittest.main(verbosity=1)

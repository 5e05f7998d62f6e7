"""The perfetto command: every flag does what it says, and leaves with the exit code that scripts rely on."""
import os
import pty
import re
import signal
import stat
import subprocess
import time

from harness import PRODUCER, TRACEBOX, Case, field, fields, first, main, packets, wait_for
from test_record import config, ledger

CONFIG = 'buffers { size_kb: 64 }\nduration_ms: 100\n'
BINARY = field(1, field(1, 64)) + field(3, 100)


class Command(Case):
    def run_it(self, *args, stdin=b"", pass_fds=()):
        """(exit code, standard output, standard error)"""
        p = subprocess.run([TRACEBOX, "perfetto", *map(str, args)], env=self.env, input=stdin, capture_output=True,
                           timeout=60, pass_fds=pass_fds)
        return p.returncode, p.stdout, p.stderr.decode(errors="replace")

    def expect(self, code, *args, says="", **kw):
        got, out, err = self.run_it(*args, **kw)
        self.assertEqual(got, code, f"{args}: {err}")
        self.assertIn(says, err)
        return out, err

    def config_in(self, path):
        return next(first(p, 33) for p in packets(path.read_bytes()) if first(p, 33))

    # ---- without a service ----

    def test_what_needs_no_service(self):
        text, binary = self.config(CONFIG), self.dir / "binary"
        binary.write_bytes(BINARY)
        there = self.dir / "there"
        there.write_text("keep me")
        to_there = self.config(CONFIG + f'write_into_file: true output_path: "{there}"\n', "to-there")
        delay = self.config(CONFIG + "cmd_trace_start_delay { min_delay_ms: 9 max_delay_ms: 3 }\n", "delay")
        x = self.dir / "x"
        usage = "Usage: perfetto"
        for code, args, says in (
                (1, [], usage), (1, ["--nonsense"], usage),
                (0, ["--version"], ""), (0, ["--reset-guardrails"], ""),
                (1, ["--upload"], "Android"), (1, ["--dropbox", "x"], "Android"),
                (1, ["-o", x], "a config is needed"), (1, ["--txt", "-c", text], "--out"),
                (1, ["-c", text, "-o", x], "add --txt"), (1, ["-c", self.dir / "none", "-o", x], "none"),
                (1, ["-c", "/dev/null", "-o", x], "empty"),
                (1, ["--txt", "-c", text, "-t", "1s", "-o", x], "exclude each other"),
                (1, ["--txt", "-c", text, "--no-clobber", "-o", there], "there"),
                (1, ["--txt", "-c", to_there, "-o", x], "exclude each other"),
                (1, ["--txt", "-c", to_there], "exists already"), (1, ["--txt", "-c", delay, "-o", x], "min_delay_ms"),
                (1, ["--txt", "-c", text, "-o", self.dir / "no" / "folder"], "cannot open"),
                (1, ["-t", "10x", "-o", x], "--time 10x"), (1, ["-b", "1tb", "-o", x], "--buffer 1tb"),
                (1, ["-s", "-3mb", "-o", x], "--size -3mb"), (1, ["--stop"], "--stop needs --attach"),
                (1, ["--attach", "a", "--detach", "b"], "exclude each other"), (1, ["--clone", "1"], "--out is needed"),
                (1, ["--clone", "1", "-t", "1s", "-o", x], "leave the config out"),
                # and what needs one
                (1, ["--txt", "-c", text, "-o", x], "cannot connect"), (1, ["--query"], "cannot"),
                (1, ["--attach", "k", "-o", x], "cannot connect"), (1, ["--trigger", "t"], "cannot reach")):
            with self.subTest(args=args):
                self.expect(code, *args, says=says)
                self.assertFalse(x.exists())
        self.assertEqual(there.read_text(), "keep me")
        for flag in ("-h", "--help"):
            self.assertIn(b"Usage: perfetto", self.expect(0, flag)[0])
        self.assertRegex(self.expect(0, "--version")[0], rb"^Meridian v\d")

    # ---- configs ----

    def test_where_a_config_comes_from(self):
        self.start_traced()
        text, binary, x = self.config(CONFIG + "nope: 1\n"), self.dir / "binary", self.dir / "x"
        binary.write_bytes(BINARY)
        for args, stdin in ((["-c", binary], b""), (["-c", "-"], BINARY), (["--txt", "-c", "-"], CONFIG.encode()),
                            (["--txt-lossy", "-c", text], b"")):
            with self.subTest(args=args):
                _, err = self.expect(0, *args, "-o", x, stdin=stdin)
                self.assertIn(f"Wrote {x.stat().st_size} bytes into {x}", err)
                self.assertEqual(first(self.config_in(x), 3), 100)
                self.assertEqual(stat.S_IMODE(x.stat().st_mode), 0o600)
        self.expect(1, "--txt", "-c", text, "-o", self.dir / "y", says="3:1: TraceConfig has no field \"nope\"")
        out, _ = self.expect(0, "-c", binary, "-o", "-")
        self.assertTrue(any(first(p, 33) for p in packets(out)))
        p = self.perfetto("-c", ":test", "-o", x)
        wait_for(lambda: self.log().count("configured by") == 6 or p.poll() is not None)
        p.send_signal(signal.SIGTERM)
        self.finish(p, 3)  # no probes: nothing of :test starts
        self.assertEqual(len([1 for n, _ in fields(self.config_in(x)) if n == 2]), 2)

    def test_short_form(self):
        self.start_traced()
        x = self.dir / "x"
        self.expect(3, "-t", "200ms", "-b", "1mb", "-s", "2mb", "-a", "app.one", "sched/sched_switch", "power", "disk", "gfx",
                    "hyp", "-o", x)
        c = self.config_in(x)
        self.assertEqual({n: first(c, n) for n in (3, 13, 8, 10)}, {3: 200, 13: 30000, 8: 1, 10: 2 << 20})
        self.assertEqual([first(b, 1) for n, b in fields(c) if n == 1], [1024])
        sources = [first(d, 1) for n, d in fields(c) if n == 2]
        self.assertEqual([first(s, 1).decode() for s in sources],
                         ["linux.ftrace", "linux.ftrace", "linux.process_stats", "linux.system_info", "linux.sys_stats",
                          "android.surfaceflinger.frametimeline"])
        ftrace = [(n, v) for n, v in fields(first(sources[0], 100))]
        self.assertEqual(ftrace, [(1, b"sched/sched_switch"), (2, b"power"), (2, b"disk"), (2, b"gfx"), (3, b"app.one"), (13, 1)])
        self.assertEqual(first(first(sources[1], 100), 25), b"hyp")
        p = self.perfetto("-t", "0", "-o", x)  # until somebody stops it
        wait_for(lambda: "session 2" in self.log())
        p.send_signal(signal.SIGINT)
        self.finish(p)
        self.assertEqual(first(self.config_in(x), 3, 0), 0)

    def test_what_flags_add_to_the_config(self):
        self.start_traced()
        x = self.dir / "x"
        text = self.config(CONFIG + "enable_extra_guardrails: true\n")
        self.expect(0, "--txt", "-c", text, "-o", x, "--alert-id", "1", "--config-id", "2", "--config-uid", "3",
                    "--subscription-id", "4", "--no-guardrails", "--add-attribute", "k=v=w", "--add-attribute", "flag")
        c = self.config_in(x)
        self.assertEqual(dict(fields(first(c, 7))), {1: 1, 2: 3, 3: 2, 4: 4})
        self.assertEqual(first(c, 4), 0)
        self.assertEqual([fields(a) for _, a in fields(first(c, 48))], [[(1, b"k"), (3, b"v=w")], [(1, b"flag")]])
        self.assertTrue(first(c, 27) and first(c, 28))  # a uuid

    def test_output_path(self):
        """The service makes the file, and everybody may read it."""
        self.start_traced()
        there = self.dir / "there"
        self.expect(0, "--txt", "-c", self.config(CONFIG + f'write_into_file: true output_path: "{there}"\n'))
        self.assertEqual(stat.S_IMODE(there.stat().st_mode), 0o644)
        self.assertEqual(first(self.config_in(there), 3), 100)

    def test_start_delay(self):
        self.start_traced()
        begin = time.monotonic()
        self.expect(0, "--txt", "-o", self.dir / "x", "-c",
                    self.config(CONFIG + "cmd_trace_start_delay { min_delay_ms: 500 max_delay_ms: 600 }\n"))
        self.assertGreater(time.monotonic() - begin, 0.6)

    def test_refused_sessions(self):
        """No success, other than with Perfetto; no empty file is left, and nothing but a file is removed."""
        self.start_traced()
        text, x, fifo = self.config("buffers { }\n"), self.dir / "x", self.dir / "fifo"
        os.mkfifo(fifo)
        for out in (x, fifo):
            self.expect(1, "--txt", "-c", text, "-o", out, says="size_kb 0 is out of range")
        self.assertFalse(x.exists())
        self.assertTrue(fifo.exists())

    # ---- sessions of others ----

    def test_detach_attach_clone(self):
        self.start_traced()
        text, x = self.config(config(extra='unique_session_name: "me"\nbugreport_score: 5\n')), self.dir / "x"
        self.expect(2, "--is_detached", "k")
        self.expect(2, "--attach", "k", "-o", x, says="no detached session")
        self.assertFalse(x.exists())
        self.expect(0, "--txt", "-c", text, "--detach", "k")
        self.expect(0, "--is_detached", "k")
        self.expect(0, "--is_detached", "k")  # asking changes nothing
        other = self.config(config(), "other.txt")
        self.expect(1, "--txt", "-c", other, "--detach", "k", says="refused to detach")
        self.expect(1, "--attach", "k", says="give --out")
        self.finish(self.spawn(PRODUCER, "--packets", 50))
        for args in (["--clone", "1"], ["--clone-by-name", "me"], ["--clone-for-bugreport"], ["--save-for-bugreport"],
                     ["--save-all-for-bugreport"]):
            with self.subTest(args=args):
                self.expect(0, *args, "-o", x)
                self.assertEqual(len(ledger(x.read_bytes())[0]), 50)
                x.unlink()
        self.expect(1, "--clone", "77", "-o", x, says="no such session")
        self.assertFalse(x.exists())
        p = self.perfetto("--attach", "k", "-o", x)
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        self.finish(p)
        self.assertEqual(len(ledger(x.read_bytes())[0]), 50)
        self.expect(2, "--is_detached", "k")

    def test_query(self):
        self.start_traced()
        self.finish(self.perfetto("--txt", "-c", self.config(config(extra='unique_session_name: "me"\n')), "--detach", "k"))
        self.spawn(PRODUCER, "--packets", 1, "--hold")
        wait_for(lambda: "producer 1" in self.log())
        for args in (["--query"], ["--query", "--long"]):
            out = self.expect(0, *args)[0].decode()
            self.assertRegex(out, rf"1 +\d+ +{os.getuid()} +e2e.producer +Meridian v")
            self.assertRegex(out, r"e2e.source +e2e.producer \(1\)")
            self.assertRegex(out, r"1 +\d+ +STARTED +\(1\) 4096 +0 +1 .* me")
        raw = self.expect(0, "--query-raw")[0]
        self.assertEqual(first(first(raw, 1), 2), b"e2e.producer")

    def test_triggers_from_a_config(self):
        self.start_traced()
        trace = self.dir / "x"
        waits = ('trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 30000 triggers { name: "enough" } }\n')
        p = self.perfetto("--txt", "-c", self.config(config(extra=waits)), "-o", trace)
        wait_for(lambda: "session 1" in self.log())
        self.expect(0, "--txt", "-c", self.config('activate_triggers: "enough"\n', "fire.txt"))
        self.finish(p, 3)  # nobody offers e2e.source
        self.assertTrue(any(first(q, 46) for q in packets(trace.read_bytes())))

    # ---- in the background, with signals, on a terminal ----

    def test_background(self):
        self.start_traced()
        text, x = self.config(CONFIG), self.dir / "x"
        with open(self.dir / "err", "wb") as err:
            pid = int(subprocess.run([TRACEBOX, "perfetto", "--txt", "-c", text, "-o", x, "--background"], env=self.env,
                                     stdout=subprocess.PIPE, stderr=err, timeout=20, check=True).stdout)
        wait_for(lambda: x.exists() and x.stat().st_size and not os.path.exists(f"/proc/{pid}"))
        for duration, code in ((4000000000, 1), (100, 0)):
            text = self.config(f"buffers {{ size_kb: 64 }} duration_ms: {duration}\n")
            with open(self.dir / "err", "wb") as err:
                p = subprocess.run([TRACEBOX, "perfetto", "--txt", "-c", text, "-o", x, "--background-wait"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=err, timeout=20)
            self.assertEqual(p.returncode, code)

    def test_notify_fd(self):
        self.start_traced()
        r, w = os.pipe()
        self.expect(0, "--txt", "-c", self.config(CONFIG), "-o", self.dir / "x", "--notify-fd", w, pass_fds=[w])
        os.close(w)
        self.assertEqual(os.read(r, 9), b"\0")
        os.close(r)

    def test_signals_save(self):
        self.start_traced()
        for sig in (signal.SIGINT, signal.SIGTERM):
            x = self.dir / sig.name
            n = self.log().count("configured by")
            p = self.perfetto("--txt", "-c", self.config(config()), "-o", x)
            wait_for(lambda: self.log().count("configured by") > n or p.poll() is not None)
            p.send_signal(sig)
            _, err = self.finish(p, 3)  # nobody offers e2e.source
            self.assertIn(f"{sig.name} received", err)
            self.assertTrue(any(first(q, 35) for q in packets(x.read_bytes())))

    def test_time_and_size_on_a_terminal(self):
        self.start_traced()
        x = self.dir / "x"
        ours, theirs = pty.openpty()
        p = subprocess.Popen([TRACEBOX, "perfetto", "--txt", "-c", self.config(config()), "-o", x], env=self.env, stderr=theirs)
        self.procs.append(p)
        os.close(theirs)
        self.finish(self.spawn(PRODUCER, "--packets", 2000, "--max-size", 900))
        seen = b""
        late = rb"\r\x1b\[K00:00:0[2-9]  [1-9]\.\d MB"  # a busy machine may skip a second
        while not re.search(late, seen):
            seen += os.read(ours, 4096)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(20), 0)
        self.assertRegex(seen, rb"\r\x1b\[K00:00:0[01]  \d+\.\d MB")
        os.close(ours)


if __name__ == "__main__":
    main()

"""A recording of nothing is no success: what the terminal says, the exit status, and what `tp_shell check` says of the trace."""
import contextlib
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import PRODUCER, TP_SHELL, TRACEBOX, Case, Peer, bind, field, first, frame, free_port, invoke, main, wait_for
from test_record import config

OK, FAILED, NOTHING = 0, 1, 3


class Failure(Case):
    """Every message of src/wire/recording_problem.def and src/capture/client/losses.def, and the refusals."""

    def record(self, text, code, *says, during=None, check=(), check_code=1, out="trace", **kw):
        """Records by `text`; what standard error and then check must hold. Returns standard error."""
        trace = self.dir / out
        p = self.perfetto("--txt", "-c", self.config(text), "-o", trace, **kw)
        if during:
            during(p)
        _, err = self.finish(p, code)
        for s in says:
            self.assertIn(s, err)
        if check is not None:
            self.check(trace, check_code, *check)
        return err

    def check(self, trace, code, *says):
        p = subprocess.run([TP_SHELL, "check", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        out = p.stdout.decode(errors="replace")
        self.assertEqual(p.returncode, code, out)
        for s in says:
            self.assertIn(s, out)
        return out

    def producer(self, *args):
        p = self.spawn(PRODUCER, *args)
        wait_for(lambda: '"e2e.producer" connected' in self.log(), what="the producer")
        return p

    # ---- data sources ----

    def test_misspelt_data_source(self):
        self.start_traced()
        says = 'data source "linux.ftrase" did not start: no connected producer offers it; check its name'
        err = self.record(config(duration=700, source="linux.ftrase"), NOTHING, says,
                          check=("FAILED", "recording_source_not_started", says))
        self.assertEqual(err.count("linux.ftrase"), 1, err)  # at the beginning, and not again

    def test_it_is_said_at_the_beginning(self):
        self.start_traced()
        with open(self.dir / "err", "wb") as log:
            p = subprocess.Popen([TRACEBOX, "perfetto", "--txt", "-c", self.config(config(source="nobodys")), "-o",
                                  self.dir / "trace"], env=self.env, stderr=log)
            self.procs.append(p)
            wait_for(lambda: b'"nobodys" did not start' in (self.dir / "err").read_bytes(), 5)
            self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(20), NOTHING)

    def test_one_of_two_starts(self):
        """The trace is there, with something in it: exit status 0; check fails."""
        self.start_traced()
        self.producer("--packets", 50, "--hold")
        text = config(duration=500) + 'data_sources { config { name: "nobodys" } }\n'
        self.record(text, OK, 'data source "nobodys" did not start', check=("recording_source_not_started",))

    def test_a_late_producer_is_no_problem(self):
        self.start_traced()
        err = self.record(config(duration=2500), OK, check_code=0, during=lambda _: self.finish(
            self.spawn(PRODUCER, "--packets", 50)))
        self.assertNotIn("did not start", err)

    def test_filter_that_matches_no_machine(self):
        self.start_traced()
        self.producer("--packets", 50, "--hold")
        text = config(duration=300).replace('data_sources {', 'data_sources { machine_name_filter: "web9"')
        says = 'the config\'s filters (web9) select none of those that offer it (e2e.producer on this machine)'
        self.record(text, NOTHING, says, check=("recording_source_not_started", says))

    def test_filter_that_matches_no_producer(self):
        self.start_traced()
        self.producer("--packets", 50, "--hold")
        text = config(duration=300).replace('data_sources {', 'data_sources { producer_name_filter: "nobody"')
        self.record(text, NOTHING, "the config's filters (nobody) select none", check=("recording_source_not_started",))

    def test_nothing_delivered(self):
        """A producer that starts and has nothing to say."""
        self.start_traced()
        self.producer("--packets", 0, "--hold")
        says = "nothing was recorded: no data source delivered a packet"
        self.record(config(duration=300), OK, says, check=("recording_is_empty", says))

    def raw_producer(self, *notifications):
        """One that registers e2e.source with will_notify_on_start, and says when told to start what it is given here."""
        p = self.connect()
        p.send(bind("ProducerPort"))
        p.recv()
        p.send(invoke(2, 1, field(3, "raw.producer")))
        p.reply(2)
        p.send(invoke(3, 5, b""))  # GetAsyncCommand
        p.send(invoke(4, 2, field(1, field(1, "e2e.source") + field(3, 1))))
        p.reply(4)

        def serve():
            with contextlib.suppress(OSError):  # the test is over
                while (body := p.recv()) is not None:
                    reply = first(body, 6)
                    start = first(first(reply, 3, b""), 1) if reply is not None and first(body, 2) == 3 else None
                    for n in notifications if start is not None else ():
                        p.send(invoke(9, 8, field(1, first(start, 1)) + n, drop=True))
        threading.Thread(target=serve, daemon=True).start()

    def test_producer_that_never_starts(self):
        self.start_traced()
        self.raw_producer()
        says = 'data source "e2e.source" of raw.producer has not said that it started'
        self.record(config(duration=600), NOTHING, says, check=("recording_source_not_started", says))

    def test_producer_that_fails(self):
        """Fields 990 and 991 of NotifyDataSourceStarted, as traced_probes uses them; control characters do no harm."""
        self.start_traced()
        self.raw_producer(field(990, "no \x1b[31mluck") + field(991, "not this"))
        says = 'data source "e2e.source" of raw.producer could not start: no ?[31mluck'
        err = self.record(config(duration=600), NOTHING, says, check=("recording_source_not_started", says))
        self.assertNotIn("\x1b[31m", err)

    def test_producer_with_a_thousand_reasons(self):
        """What a producer says is kept within bounds."""
        self.start_traced()
        self.raw_producer(b"".join(field(991, f"reason {i} " + 280 * "x") for i in range(300)))
        err = self.record(config(duration=600), OK, "records only a part of what the config asks for: reason 0 x",
                          check=("recording_source_incomplete",))
        self.assertTrue(100 < err.count("reason ") < 256, err.count("reason "))

    def test_producer_that_leaves_before_it_starts(self):
        self.start_traced()
        self.raw_producer(b"\x00" * 200000)  # a frame that is too large: the service hangs up
        says = "could not start: its producer disconnected before it had started"
        self.record(config(duration=600), NOTHING, says, check=("recording_source_not_started", says))

    def test_machine_that_delivers_nothing(self):
        port = free_port()
        self.start_traced("--enable-relay-endpoint", producers=f"{self.dir}/host,127.0.0.1:{port}")
        env = {**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "relay"),
               "PERFETTO_RELAY_SOCK_NAME": f"127.0.0.1:{port}", "PERFETTO_MACHINE_NAME": "web1"}
        with open(self.dir / "relay.log", "ab") as err:
            self.procs.append(subprocess.Popen([TRACEBOX, "traced_relay"], stderr=err, env=env))
        wait_for(lambda: "relay of machine" in self.log(), what="the relay")
        for folder, packets in (("host", "50"), ("relay", "0")):
            n = self.log().count('"e2e.producer" connected')
            self.procs.append(subprocess.Popen([PRODUCER, "--packets", packets, "--hold"], stdout=subprocess.DEVNULL,
                                               env={**env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / folder)}))
            wait_for(lambda: self.log().count('"e2e.producer" connected') > n)
        says = "machine web1 delivered nothing; check that traced_probes runs there"
        self.record("trace_all_machines: true\n" + config(duration=700), OK, says, check=("recording_machine_silent", says))

    def test_nothing_asked_for(self):
        self.start_traced()
        err = self.record("buffers { size_kb: 64 }\nduration_ms: 100\n", OK, check_code=0)
        self.assertNotIn("nothing was recorded", err)

    def test_a_clone_tells_it_too(self):
        self.start_traced()
        self.finish(self.perfetto("--txt", "-c", self.config(config(source="nobodys")), "--detach", "k"))
        self.finish(self.perfetto("--clone", "1", "-o", self.dir / "clone"))
        self.check(self.dir / "clone", 1, 'data source "nobodys" did not start')
        p = self.perfetto("--attach", "k", "--stop", "-o", self.dir / "trace")
        _, err = self.finish(p, NOTHING)
        self.assertIn('data source "nobodys" did not start', err)

    def test_background_wait(self):
        self.start_traced()
        text = self.config(config(duration=200, source="nobodys"))
        with open(self.dir / "err", "wb") as err:
            p = subprocess.run([TRACEBOX, "perfetto", "--txt", "-c", text, "-o", self.dir / "trace", "-D"], env=self.env,
                               stdout=subprocess.PIPE, stderr=err, timeout=20)
        self.assertEqual(p.returncode, FAILED)
        wait_for(lambda: (self.dir / "err").read_bytes().count(b"Wrote"))

    # ---- sessions and files ----

    def test_refused_session(self):
        self.start_traced()
        self.record("buffers { }\n", FAILED, "the service refused the session", "size_kb 0 is out of range", check=None)
        self.assertFalse((self.dir / "trace").exists())

    def small_disk(self):
        """A file system of 200 KB; its folder."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="meridian-e2e-disk-"))
        self.addCleanup(folder.rmdir)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", folder], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("cannot mount a tmpfs here (needs root)")
        self.addCleanup(subprocess.run, ["umount", "-l", folder])
        return folder

    def test_disk_full_for_the_service(self):
        folder = self.small_disk()
        self.start_traced()
        self.producer("--packets", 20000, "--max-size", 900, "--hold")
        text = config(duration=20000, size_kb=8192, extra="write_into_file: true\nfile_write_period_ms: 100\n")
        p = self.perfetto("--txt", "-c", self.config(text), "-o", folder / "trace")
        _, err = self.finish(p, FAILED, seconds=15)  # at once, not at the end of the 20 s
        self.assertIn("the service cannot write the trace file: No space left on device", err)
        self.assertRegex(err, r"Wrote \d+ bytes into .*; the trace is incomplete")

    def test_disk_full_for_the_command(self):
        folder = self.small_disk()
        self.start_traced()
        self.producer("--packets", 5000, "--max-size", 900, "--hold")
        p = self.perfetto("--txt", "-c", self.config(config(duration=500, size_kb=8192)), "-o", folder / "trace")
        _, err = self.finish(p, FAILED)
        self.assertIn("No space left on device", err)
        self.assertIn("; the trace is incomplete", err)

    def test_a_service_that_talks_nonsense(self):
        """An old service without GetTraceStats and ObserveEvents, whose error is a number instead of a text."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.env["PERFETTO_CONSUMER_SOCK_NAME"])
        server.listen()
        self.addCleanup(server.close)

        def serve():
            peer = Peer(server.accept()[0])
            self.peers.append(peer)
            with contextlib.suppress(OSError):
                while (body := peer.recv()) is not None:
                    request = field(2, first(body, 2))
                    method = first(first(body, 5, b""), 2)
                    methods = b"".join(field(3, field(1, i) + field(2, n)) for i, n in ((1, "EnableTracing"), (3, "ReadBuffers")))
                    trace = field(2, field(1, field(900, 1)) + field(2, 1))
                    peer.send(frame(request + (field(4, field(1, 1) + field(2, 1) + methods) if method is None else
                                               field(6, field(1, 1) + field(3, field(1, 1) + field(3, 1 << 60))) if method == 1 else
                                               field(6, field(1, 1) + field(3, trace)))))
        threading.Thread(target=serve, daemon=True).start()
        self.finish(self.perfetto("--txt", "-c", self.config(config(duration=100)), "-o", self.dir / "trace"), OK)
        self.assertEqual((self.dir / "trace").read_bytes(), field(1, field(900, 1)))

    # ---- losses, at the end ----

    def lost(self, err, pattern):
        m = re.search(pattern, err)
        self.assertTrue(m, err)
        return m

    def test_ring_too_small(self):
        self.start_traced()
        self.producer("--packets", 6000, "--max-size", 900, "--hold")
        err = self.record(config(duration=1500, size_kb=256), OK, check=("traced_buf_chunks_overwritten",))
        m = self.lost(err, r"buffer 0: (\d+) chunks overwritten: the ring was too small by (\d+\.\d) ([KM])B; "
                           r"raise its size_kb \(or --buffer\) to (\d+) KB or more")
        self.assertGreater(int(m[1]), 10)

    def test_full_buffer(self):
        self.start_traced()
        self.producer("--packets", 6000, "--max-size", 900, "--hold")
        err = self.record(config(duration=1500, size_kb=256, policy="DISCARD"), OK, check=("traced_buf_chunks_discarded",))
        self.lost(err, r"buffer 0: \d+ chunks discarded: it was full; raise its size_kb, or use fill_policy: RING_BUFFER")

    # ---- sockets ----

    def test_sockets_in_use(self):
        """A second service, or a relay, leaves the first one's sockets alone and says what to do."""
        self.start_traced()
        for args, says in ((["traced"], f"in use by process {self.traced.pid}"),
                           (["traced"], "PERFETTO_PRODUCER_SOCK_NAME"),
                           (["traced_relay"], "run traced or traced_relay, not both")):
            p = subprocess.run([TRACEBOX, *args], env={**self.env, "PERFETTO_RELAY_SOCK_NAME": "127.0.0.1:9"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
            self.assertEqual(p.returncode, 1)
            self.assertIn(says, p.stderr.decode())
        self.producer("--packets", 50, "--hold")
        self.record(config(duration=300), OK, check_code=0)
        # one socket of its own is not enough
        env = {**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "other")}
        p = subprocess.run([TRACEBOX, "traced"], env=env, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(p.returncode, 1)
        self.assertIn("consumer is in use", p.stderr.decode())

    def test_stale_sockets_are_replaced(self):
        self.start_traced()
        self.traced.kill()
        self.traced.wait()
        self.assertTrue((self.dir / "consumer").exists())
        self.start_traced()

    def test_two_services_at_once(self):
        """Of ten that start together over stale sockets one gets them."""
        self.start_traced()
        self.traced.kill()
        self.traced.wait()
        ps = [self.spawn(TRACEBOX, "traced") for _ in range(10)]
        wait_for(lambda: sum(p.poll() is not None for p in ps) == 9, what="nine refusals")
        time.sleep(0.2)
        self.assertEqual(sum(p.poll() is None for p in ps), 1)

    def test_tcp_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            env = {**self.env, "PERFETTO_PRODUCER_SOCK_NAME": f"127.0.0.1:{s.getsockname()[1]}",
                   "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "c2")}
            p = subprocess.run([TRACEBOX, "traced"], env=env, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(p.returncode, 1)
        self.assertIn("is in use by another process", p.stderr.decode())

    def test_probes_wait_for_a_service(self):
        with open(self.dir / "probes.log", "wb") as log:
            p = subprocess.Popen([TRACEBOX, "traced_probes"], env={**self.env, "MERIDIAN_RUN_DIR": str(self.dir / "run")},
                                 stderr=log)
        self.procs.append(p)
        said = lambda: (self.dir / "probes.log").read_text()
        wait_for(lambda: "waiting. Start one with: tracebox traced" in said())
        time.sleep(1.5)
        self.assertEqual(said().count("no tracing service at"), 1)
        self.start_traced()
        wait_for(lambda: "connected to the tracing service" in said())
        self.traced.terminate()
        self.traced.wait()
        wait_for(lambda: said().count("no tracing service at") == 2)


if __name__ == "__main__":
    main()

"""Records with real daemons and a producer that knows what it wrote: everything is in the trace, or counted as lost."""
import os
import pathlib
import random
import signal
import socket
import time

from harness import Case, PRODUCER, TRACK_EVENTS, fields, first, main, packets, wait_for

SEEDS = int(os.environ.get("MERIDIAN_LEDGER_RUNS", "200"))
SQL_EVERY = 20  # of these runs: asked in SQL, too


def config(size_kb=4096, policy="RING_BUFFER", duration=0, extra="", source="e2e.source", ds_extra=""):
    d = f"duration_ms: {duration}\n" if duration else ""
    return (f"buffers {{ size_kb: {size_kb} fill_policy: {policy} }}\n"
            f'data_sources {{ config {{ name: "{source}" {ds_extra} }} }}\n{d}{extra}')


def ledger(trace):
    """{writer: [(number, loss mask)]} of the test packets, in the order of the trace."""
    out = {}
    for p in packets(trace):
        body = first(p, 900)
        if body is None:
            continue
        writer, number = first(body, 1).split(b" ")[:2]
        masks = [v for n, v in fields(p) if n == 42]  # the writer's, and behind it the service's, which counts
        out.setdefault(int(writer), []).append((int(number), masks[-1] if masks else 0))
    return out


def stats_of(trace):
    """(TraceStats, [BufferStats]) as {field: value}, of the last stats packet."""
    last = [first(p, 35) for p in packets(trace) if first(p, 35) is not None][-1]
    return dict((n, v) for n, v in fields(last) if isinstance(v, int)), [dict(fields(v)) for n, v in fields(last) if n == 1]


REASONS = {2: "read_gap", 4: "chunk_corrupted", 8: "orphan_continuation", 16: "reassembly_gap",
           32: "reassembly_broken_chain", 64: "overwrite", 128: "writer_abort", 256: "smb_full"}


class Said:
    """What the producer says of its writers, and with --where of each packet."""

    def __init__(self, out):
        rows = [line.split() for line in out.splitlines()]
        self.writers = {int(r[1]): {r[i]: int(r[i + 1]) for i in range(2, len(r), 2)} for r in rows if r[0] == "writer"}
        self.where = {(int(r[1]), int(r[2])): (int(r[3]), int(r[4])) for r in rows if r[0] == "packet"}

    def sum(self, what):
        return sum(w[what] for w in self.writers.values())


class Record(Case):
    def record(self, text, *producer_args, producer_first=False):
        """(trace, what the producer said) of one session that ends when the producer is done."""
        self.trace = self.dir / "out.pftrace"
        if producer_first:
            prod = self.spawn(PRODUCER, *producer_args)
        perf = self.perfetto("-c", self.config(text), "--txt", "-o", self.trace)
        if not producer_first:
            prod = self.spawn(PRODUCER, *producer_args)
        out, _ = self.finish(prod)
        if perf.poll() is None and "duration_ms" not in text:
            perf.send_signal(signal.SIGINT)
        self.finish(perf)
        return self.trace.read_bytes(), Said(out)

    def in_sql(self, name):
        return int(self.query(self.trace, f"select ifnull(sum(value), 0) from stats where name = '{name}'")[0][0])

    def losses_in_sql(self):
        """{name: value} of the losses that SQL tells of, as docs/buffers.md asks."""
        rows = self.query(self.trace, "select name, sum(value) from stats where value != 0 and (severity = 'data_loss' or "
                          "name in ('traced_buf_chunks_overwritten', 'traced_buf_chunks_discarded')) group by 1")
        return {name: int(value) for name, value in rows}

    def check_ledger(self, trace, said, lossless=False):
        """Every packet is there once and in order, or the one behind the gap says that something was lost, and the
        counters say what. Gives the losses that SQL must tell of."""
        got, (_, buffers) = ledger(trace), stats_of(trace)
        missing = 0
        for writer, of in said.writers.items():
            expected = 0
            for number, loss in got.get(writer, []):
                self.assertGreaterEqual(number, expected, f"writer {writer}: out of order")
                if number != expected:
                    missing += number - expected
                    self.assertTrue(loss, f"writer {writer}: {expected}..{number - 1} are missing without a mark")
                expected = number + 1
            missing += of["packets"] - expected
        dropped, b = said.sum("dropped"), buffers[0]
        overwritten, discarded, marks = b.get(3, 0), b.get(18, 0), b.get(19, 0)
        self.assertEqual(b.get(2, 0) + discarded, said.sum("chunks"), "chunks that came are not those handed over")
        self.assertGreaterEqual(missing, dropped)
        if lossless:
            self.assertEqual((missing, overwritten, discarded), (0, 0, 0))
        if overwritten + discarded == 0:
            self.assertEqual(missing, dropped, "packets are gone and no counter says so")
            self.assertEqual(marks, said.sum("marks"))
            self.assertEqual(dropped > 0, marks > 0)
        self.missing, self.dropped = missing, dropped
        masks = [loss for of in got.values() for _, loss in of[1:] if loss]  # a sequence's first packet always has one
        losses = {"chunks_overwritten": overwritten, "chunks_discarded": discarded, "trace_writer_packet_loss": marks,
                  "patches_failed": b.get(6, 0), "sequence_packet_loss": len(masks)}
        for bit, cause in REASONS.items():
            losses["data_loss_" + cause] = sum(bool(m & bit) for m in masks)
        return {"traced_buf_" + name: v for name, v in losses.items() if v}

    def test_complete_and_in_order(self):
        self.start_traced()
        trace, said = self.record(config(16384), "--packets", 20000, "--writers", 5, "--max-size", 200)
        self.check_ledger(trace, said, lossless=True)
        self.assertEqual(self.losses_in_sql(), {})

    def test_example_programs(self):
        """Three of examples/track_events at once: every slice of every process, in order."""
        self.start_traced()
        self.trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(source="example.track_events")), "--txt", "-o", self.trace)
        programs = [self.spawn(TRACK_EVENTS, 400, 50) for _ in range(3)]
        for p in programs:
            self.assertEqual(self.finish(p)[0], "801 packets, 0 dropped\n")
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        rows = self.query(self.trace, """
            select pid, count(*), min(dur) > 0, sum(name = 'work ' || n) from (
                select pid, slice.name, dur, row_number() over (partition by pid order by ts) - 1 as n
                from slice join process_track on track_id = process_track.id join process using (upid))
            group by pid order by pid""")
        self.assertEqual(rows, [[str(pid), "400", "1", "400"] for pid in sorted(p.pid for p in programs)])
        self.assertEqual(self.losses_in_sql(), {})

    def test_ring_buffer_overwrites(self):
        """The chunks before the first packet that is left are those that SQL counts as overwritten."""
        self.start_traced()
        trace, said = self.record(config(64), "--packets", 5000, "--writers", 3, "--max-size", 100, "--where")
        losses = self.check_ledger(trace, said)
        self.assertEqual(self.dropped, 0)
        lost = 0
        for writer, packets_left in ledger(trace).items():
            lost += said.where[writer, packets_left[0][0]][0]
        self.assertGreater(lost, 0)
        self.assertEqual(self.in_sql("traced_buf_chunks_overwritten"), lost)
        self.assertEqual(self.losses_in_sql(), losses)

    def test_discard_keeps_the_beginning(self):
        """The chunks behind the last packet that got in are those that SQL counts as discarded."""
        self.start_traced()
        trace, said = self.record(config(64, "DISCARD"), "--packets", 5000, "--writers", 3, "--max-size", 100, "--where")
        losses = self.check_ledger(trace, said)
        self.assertEqual(self.dropped, 0)
        lost = said.sum("chunks")
        for writer, kept in ledger(trace).items():
            numbers = [n for n, _ in kept]
            self.assertEqual(numbers, list(range(len(numbers))))  # all there is comes before all there is not
            lost -= said.where[writer, numbers[-1]][1] + 1
        self.assertGreater(lost, 0)
        self.assertEqual(self.in_sql("traced_buf_chunks_discarded"), lost)
        self.assertEqual(self.losses_in_sql(), losses)

    def test_full_shared_memory(self):
        """A service that does not get to run: packets are dropped, counted, and the next one says so."""
        self.start_traced()
        self.trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(16384)), "--txt", "-o", self.trace)
        prod = self.spawn(PRODUCER, "--packets", 30000, "--policy", "drop", "--shm", 64, "--pause-us", 20, "--max-size", 400,
                          "--flush-every", 20)
        wait_for(lambda: "producer 1" in self.log())
        time.sleep(0.3)
        for _ in range(3):
            self.traced.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            self.traced.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        out, _ = self.finish(prod)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        said = Said(out)
        losses = self.check_ledger(self.trace.read_bytes(), said)
        self.assertGreater(self.dropped, 0)
        self.assertEqual(self.missing, self.dropped)
        self.assertEqual(self.in_sql("traced_buf_trace_writer_packet_loss"), said.sum("marks"))
        self.assertEqual(self.losses_in_sql(), losses)

    def test_ledger(self):
        """Random sizes, policies, buffers, flushes, stalls: nothing is lost in silence."""
        self.start_traced()
        for seed in range(1, SEEDS + 1):
            r = random.Random(seed)
            text = config(r.choice([64, 256, 1024, 16384]), r.choice(["RING_BUFFER", "DISCARD"]),
                          extra=f"flush_period_ms: {r.choice([0, 50, 200])}\n")
            args = ["--packets", r.randint(100, 8000), "--writers", r.randint(1, 8), "--max-size", r.choice([20, 200, 3000]),
                    "--policy", r.choice(["drop", "stall"]), "--shm", r.choice([64, 256]), "--page", r.choice([4, 8, 16, 32]),
                    "--seed", seed, "--flush-every", r.choice([0, 10, 300]), "--stall-ms", r.choice([0, 1, 20])]
            with self.subTest(seed=seed):
                try:
                    trace, said = self.record(text, *args)
                    losses = self.check_ledger(trace, said)
                    if seed % SQL_EVERY == 0:
                        self.assertEqual(self.losses_in_sql(), losses)
                finally:
                    for p in self.procs[1:]:  # of a run that failed nothing must write into the next one
                        p.kill()
                        p.communicate()
                    del self.procs[1:]

    def test_over_tcp(self):
        """Without shared memory chunks travel in the commits."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.start_traced(producers=f"127.0.0.1:{port}")
        trace, said = self.record(config(16384), "--packets", 20000, "--writers", 3, "--max-size", 200)
        self.check_ledger(trace, said, lossless=True)

    def test_large_packets(self):
        """Packets larger than a chunk, and than the shared memory."""
        self.start_traced()
        trace, said = self.record(config(65536), "--packets", 40, "--max-size", 40000, "--shm", 64, "--page", 4)
        self.check_ledger(trace, said, lossless=True)
        _, (b,) = stats_of(trace)
        self.assertGreater(b[7], 0)  # readaheads_succeeded
        self.assertGreater(b[5], 0)  # patches_succeeded

    def test_a_producer_that_is_killed(self):
        """What it wrote is in the shared memory, which outlives it: every packet that was finished is in the trace."""
        self.start_traced()
        trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(1024)), "--txt", "-o", trace)
        p = self.spawn(PRODUCER, "--packets", 1000000, "--pause-us", 5000, "--writers", 3, "--times")
        lines = [p.stdout.readline() for _ in range(100)]
        p.kill()
        lines += p.stdout.read().split(b"\n")
        written = [tuple(map(int, line.split()[1:3])) for line in lines if line.startswith(b"wrote ") and len(line.split()) == 4]
        p.stdout.close()
        p.stderr.close()
        wait_for(lambda: "disconnected" in self.log())
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        found = {w: [n for n, _ in packets_of] for w, packets_of in ledger(trace.read_bytes()).items()}
        for writer in range(3):
            numbers = [n for w, n in written if w == writer]
            missing = set(range(found[writer][-1] + 1)) - set(found[writer])
            self.assertEqual(missing, set())
            self.assertEqual(set(numbers) - set(found[writer]), set())

    def test_a_streamed_recording_that_flushes(self):
        """Flushes are counted as they happened, whoever asked for them: flush_period_ms is one way of several."""
        self.start_traced()
        for mode, fails in ("ENABLED", False), ("DISABLED", True):
            with self.subTest(mode=mode):
                extra = f"write_into_file: true file_write_period_ms: 200 write_flush_mode: WRITE_FLUSH_{mode}\n"
                self.record(config(1024, extra=extra), "--packets", 200, "--pause-us", 8000)
                self.assertEqual(self.in_sql("traced_flushes_succeeded") > 1, not fails)
                self.assertEqual(self.in_sql("config_write_into_file_no_flush"), int(fails))

    def test_write_into_file(self):
        self.start_traced()
        extra = "write_into_file: true\nfile_write_period_ms: 100\n"
        trace, said = self.record(config(256, extra=extra), "--packets", 20000, "--pause-us", 20, "--max-size", 200)
        self.check_ledger(trace, said)
        markers = [p for p in packets(trace) if first(p, 36) is not None]
        self.assertGreaterEqual(len(markers), 1)

    def test_max_file_size(self):
        self.start_traced()
        extra = "write_into_file: true\nfile_write_period_ms: 100\nmax_file_size_bytes: 200000\n"
        trace, _ = self.record(config(4096, extra=extra), "--packets", 20000, "--pause-us", 20, "--max-size", 200)
        self.assertLessEqual(len(trace), 200000)
        self.assertGreater(len(trace), 150000)
        packets(trace)  # ends at a packet

    def test_compression(self):
        self.start_traced()
        for how in ("compression { zstd { } }", "compression { deflate { } }", "compression_type: COMPRESSION_TYPE_DEFLATE"):
            with self.subTest(how=how):
                trace, said = self.record(config(16384, extra=how + "\n"), "--packets", 5000, "--max-size", 200)
                self.assertTrue(all(n in (50, 133) for p in packets(trace) for n, _ in fields(p)))
                rows = self.query(self.trace, "select count(*) from stats where severity = 'data_loss' and value != 0")
                self.assertEqual(rows, [["0"]])
                self.assertLess(len(trace), 5000 * 60)

    def test_start_trigger(self):
        self.start_traced()
        extra = ('trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 20000 '
                 'triggers { name: "go" stop_delay_ms: 500 } }\n')
        trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(extra=extra)), "--txt", "-o", trace)
        wait_for(lambda: "session 1" in self.log())
        prod = self.spawn(PRODUCER, "--packets", 100)
        time.sleep(0.3)
        self.assertIsNone(prod.poll())
        self.finish(self.perfetto("--trigger", "go"))
        self.finish(prod)
        self.finish(perf)
        data = trace.read_bytes()
        self.assertEqual(len(ledger(data)[0]), 100)
        hit = next(first(p, 46) for p in packets(data) if first(p, 46))
        self.assertEqual(first(hit, 1), b"go")

    def test_stop_trigger_without_trigger_gives_nothing(self):
        self.start_traced()
        extra = ('trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 500 '
                 'triggers { name: "stop" stop_delay_ms: 100 } }\n')
        trace = self.dir / "out.pftrace"
        self.finish(self.perfetto("-c", self.config(config(extra=extra)), "--txt", "-o", trace), 3)
        self.assertFalse(trace.exists() and trace.stat().st_size)

    def test_clone(self):
        self.start_traced()
        trace, copy = self.dir / "out.pftrace", self.dir / "clone.pftrace"
        perf = self.perfetto("-c", self.config(config(extra='unique_session_name: "one"\n')), "--txt", "-o", trace)
        prod = self.spawn(PRODUCER, "--packets", 500, "--hold")
        wait_for(lambda: "producer 1" in self.log())
        time.sleep(0.3)
        self.finish(self.perfetto("--clone-by-name", "one", "-o", copy))
        self.assertEqual(len(ledger(copy.read_bytes())[0]), 500)  # the clone flushes first
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.finish(prod)
        self.assertEqual(len(ledger(trace.read_bytes())[0]), 500)

    def test_clone_snapshot_trigger(self):
        self.start_traced()
        extra = ('trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 30000 '
                 'triggers { name: "snap" stop_delay_ms: 100 } }\n')
        trace = self.dir / "out.pftrace"
        perf = self.perfetto("-c", self.config(config(extra=extra)), "--txt", "-o", trace)
        prod = self.spawn(PRODUCER, "--packets", 300, "--hold")
        wait_for(lambda: "producer 1" in self.log())
        time.sleep(0.3)
        self.finish(self.perfetto("--trigger", "snap"))
        copy = self.dir / "out.pftrace.0"
        wait_for(lambda: copy.exists() and copy.stat().st_size)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.finish(prod)
        data = copy.read_bytes()
        self.assertEqual(len(ledger(data)[0]), 300)
        self.assertEqual(first(next(first(p, 113) for p in packets(data) if first(p, 113)), 1), b"snap")

    def test_detach_and_attach(self):
        self.start_traced()
        trace = self.dir / "out.pftrace"
        self.finish(self.perfetto("-c", self.config(config()), "--txt", "--detach", "k1"))
        self.finish(self.perfetto("--is_detached", "k1"))
        self.finish(self.perfetto("--is_detached", "nope"), code=2)
        self.finish(self.spawn(PRODUCER, "--packets", 200))
        self.finish(self.perfetto("--attach", "k1", "--stop", "-o", trace))
        self.assertEqual(len(ledger(trace.read_bytes())[0]), 200)
        self.finish(self.perfetto("--attach", "k1", "-o", trace), code=2)

    def test_producer_filter_and_two_buffers(self):
        self.start_traced()
        text = ('buffers { size_kb: 1024 name: "a" } buffers { size_kb: 1024 name: "b" }\n'
                'data_sources { config { name: "e2e.source" target_buffer_name: "b" } producer_name_filter: "nobody" }\n'
                'data_sources { config { name: "e2e.source" target_buffer: 1 } producer_name_regex_filter: "e2e\\\\..*" }\n')
        trace, said = self.record(text, "--packets", 100)
        self.assertEqual(len(ledger(trace)[0]), 100)
        _, (a, b) = stats_of(trace)
        self.assertEqual(a.get(1, 0), 0)
        self.assertGreater(b[1], 0)

    def test_background_wait(self):
        self.start_traced()
        prod = self.spawn(PRODUCER, "--packets", 10)
        wait_for(lambda: "producer 1" in self.log())
        trace = self.dir / "out.pftrace"
        p = self.perfetto("-c", self.config(config(duration=300)), "--txt", "-o", trace, "--background-wait")
        out = p.stdout.readline()  # the child keeps standard error open
        self.assertRegex(out, rb"^\d+\n$")
        self.assertEqual(p.wait(20), 0)
        wait_for(lambda: trace.exists() and trace.stat().st_size)
        self.finish(prod)

    def test_refusals(self):
        self.start_traced()
        for text, why in (("duration_ms: 4000000000", "too long"), ("buffers { }", "out of range"),
                          (config(ds_extra="target_buffer: 7"), "target buffer 7"),
                          (config(extra='trigger_config { trigger_mode: STOP_TRACING }'), "trigger_timeout_ms")):
            with self.subTest(why=why):
                trace = self.dir / "refused"
                _, err = self.finish(self.perfetto("-c", self.config(text), "--txt", "-o", trace), 1)
                self.assertIn(why, err)
                self.assertFalse(trace.exists())

    def test_config_errors_have_a_place(self):
        for text, where in (("buffers { size_kb: 1\n  nope: 2 }", "2:3: BufferConfig has no field \"nope\""),
                            ("duration_ms: x", "1:14: expected an integer"), ("duration_ms: 1 duration_ms: 2", "given twice"),
                            ("buffers {", "expected '}'")):
            with self.subTest(text=text):
                _, err = self.finish(self.perfetto("-c", self.config(text), "--txt", "-o", self.dir / "x"), code=1)
                self.assertIn(where, err)

    def test_kill_the_service(self):
        """kill -9 of the service: the client says so, the producer finds the next service by itself."""
        self.start_traced()
        perf = self.perfetto("-c", self.config(config()), "--txt", "-o", self.dir / "lost")
        prod = self.spawn(PRODUCER, "--packets", 100, "--source", "late.source")
        wait_for(lambda: "producer 1" in self.log())
        wait_for(lambda: "session 1" in self.log())
        self.traced.kill()
        _, err = self.finish(perf, code=1)
        self.assertIn("went away", err)
        self.start_traced()  # over the stale sockets
        trace = self.dir / "second"
        perf = self.perfetto("-c", self.config(config(source="late.source")), "--txt", "-o", trace)
        self.finish(prod)
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertEqual(len(ledger(trace.read_bytes())[0]), 100)

    def test_idle_costs_nothing(self):
        self.start_traced()
        time.sleep(0.3)
        proc = pathlib.Path(f"/proc/{self.traced.pid}")
        cpu = lambda: sum(map(int, (proc / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        switches = lambda: sum(int(l.split()[1]) for l in (proc / "status").read_text().splitlines() if "ctxt" in l)
        before, woken = cpu(), switches()
        time.sleep(3)
        self.assertEqual((cpu(), switches()), (before, woken))


if __name__ == "__main__":
    main()

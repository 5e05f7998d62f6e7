"""Late and lossy links: twenty machines behind links that delay, stall and break. Nothing hangs, every loss is counted."""
import collections
import os
import re
import signal
import subprocess
import time

from harness import PRODUCER, TP_SHELL, bind, field, first, frame, invoke, main, packets, wait_for
from links import CONFIG, PORT, LinkCase, Machine, enter_namespace


class Links(LinkCase):
    def test_join_leave_rejoin(self):
        """Twenty machines: some links are reset, some stall and heal, some relays are killed; each machine keeps its id."""
        self.service()
        machines = self.join(20, delay_s=0.005, jitter_s=0.02, loss=0.01)
        # Recording begins before the last five machines have come.
        self.produce(machines[:5], pause_us=300, max_size=2000)
        self.produce(machines[5:15])
        self.wait_present(machines[:15])
        p, trace = self.record("trace_all_machines: true" + CONFIG)
        self.produce(machines[15:])
        self.wait_present(machines)
        time.sleep(0.5)
        reset, stalled, killed = machines[:5], machines[5:10], machines[10:13]
        for m in stalled + reset:
            self.forwarder.partition(m.link)
        time.sleep(0.5)
        for m in reset:
            self.forwarder.cut(m.link)
            self.forwarder.heal(m.link)
        for m in killed:
            m.relay.kill()
            m.relay.wait()
        wait_for(lambda: not {m.id for m in reset + killed} <= self.present(), what="the loss of a machine")
        time.sleep(0.5)
        for m in killed:
            m.start_relay()
        time.sleep(1)
        for m in stalled:
            self.forwarder.heal(m.link)
        self.wait_present(machines)
        time.sleep(1)
        seconds, _ = self.stop(p)
        self.assertLess(seconds, 15)

        numbers, stats = self.numbers(trace), self.stats(trace)
        self.assertEqual(set(numbers), {m.id for m in machines}, "machines in the trace")
        rows = self.query(trace, "SELECT raw_id FROM machine WHERE raw_id != 0")
        self.assertEqual({int(r[0]) for r in rows}, {m.id for m in machines}, "one row a machine: it keeps its id")
        missing = {}
        for m in machines:
            seen = numbers[m.id]
            self.assertEqual(len(seen), len(set(seen)), "no packet twice")
            missing[m.number] = max(seen) + 1 - len(seen)
            broke = m in reset or m in killed
            self.assertEqual(stats[m.id].get("machine_relay_lost", 0), int(broke), f"{m.name} {stats[m.id]}")
            self.assertEqual(stats[m.id].get("machine_producers_lost", 0), int(broke))
            self.assertEqual(stats[m.id].get("machine_producers_back", 0), int(broke))
            self.assertEqual(stats[m.id].get("machine_away_ns", 0) > 0, broke)
            if not broke:  # late, out of touch for seconds: but nothing is lost
                self.assertEqual(sorted(seen), list(range(max(seen) + 1)), f"{m.name}")
                self.assertFalse(stats[m.id])
        for m in reset:
            self.assertGreater(missing[m.number], 0, "the link was busy: something was lost")
            self.assertGreater(stats[m.id].get("machine_relay_bytes_lost", 0), 0, "the relay told what it lost")
        print("\npackets missing:", {n: k for n, k in missing.items() if k},
              "\ncounted:", {m.number: stats[m.id] for m in reset + killed})
        # The host starts again: its machines come back under their ids.
        self.traced.kill()
        self.traced.wait()
        self.start_traced("--enable-relay-endpoint")
        self.wait_present(machines, 30)
        q, again = self.record("trace_all_machines: true" + CONFIG, "again")
        time.sleep(0.5)
        self.stop(q)
        self.assertEqual(set(self.numbers(again)), {m.id for m in machines})

    def test_host_restart(self):
        """A host that dies ends the recording with a message, not with silence."""
        self.service()
        machines = self.join(1)
        self.produce(machines)
        self.wait_present(machines)
        p, _ = self.record("trace_all_machines: true" + CONFIG)
        self.traced.kill()
        _, err = self.finish(p, code=1, seconds=10)
        self.assertIn("the service went away", err)
        wait_for(lambda: "no connection to the host" in machines[0].relay_log(), what="the relay's message")

    def test_stop_while_partitioned(self):
        """A machine that does not answer delays the end of the recording by the flush timeout, and is counted."""
        self.service()
        here, gone = self.join(2)
        self.produce([here, gone], pause_us=500)
        self.wait_present([here, gone])
        p, trace = self.record("trace_all_machines: true flush_timeout_ms: 1000 data_source_stop_timeout_ms: 1000" + CONFIG)
        time.sleep(0.5)
        self.forwarder.partition(gone.link)
        time.sleep(0.5)
        seconds, _ = self.stop(p)
        self.assertLess(seconds, 5)
        numbers = self.numbers(trace)[here.id]
        self.assertEqual(sorted(numbers), list(range(max(numbers) + 1)))
        self.assertGreaterEqual(int(self.query(trace, "SELECT value FROM stats WHERE name = 'traced_flushes_failed'")[0][0]), 1)

    def silence(self, act, undo, recorded=None):
        """Two machines are recorded, `act` silences the first: (its stats, those of the other)."""
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"0.0.0.0:{PORT}"
        self.start_traced("--enable-relay-endpoint", "--dev-flag", "silent-machine-ms=3000")
        self.machines = [Machine(self, self.forwarder, 1 + i) for i in range(2)]
        for m in self.machines:  # without the forwarder: it would answer for a machine that is cut off
            m.start_relay(PERFETTO_RELAY_SOCK_NAME=f"{m.host.split(':')[0]}:{PORT}")
        gone, here = self.machines
        self.produce([gone, here])
        self.wait_present([gone, here])
        p, trace = self.record("trace_all_machines: true flush_timeout_ms: 1000 data_source_stop_timeout_ms: 1000" + CONFIG)
        time.sleep(0.5)
        act(gone)
        began = time.monotonic()
        if recorded:
            recorded()
        else:
            # Of both connections: either is noticed by itself, and the other would go on when `undo` comes between.
            wait_for(lambda: gone.id not in self.present() and re.search(f"relay of machine {gone.id} .*disconnected", self.log()),
                     20, "the loss of a silent machine")
        seconds = time.monotonic() - began
        self.assertIn(here.id, self.present())
        undo(gone)
        self.wait_present([gone, here], 40)
        time.sleep(0.5)
        self.stop(p)
        stats, numbers = self.stats(trace), self.numbers(trace)
        self.assertEqual(sorted(numbers[here.id]), list(range(max(numbers[here.id]) + 1)))
        self.assertTrue(numbers[gone.id])
        return seconds, stats[gone.id], stats[here.id]

    def check_lost(self, seconds, gone, here):
        self.assertGreater(seconds, 1.5)
        self.assertEqual((gone.get("machine_relay_lost"), gone.get("machine_producers_lost"), gone.get("machine_producers_back")), (1, 1, 1), gone)
        self.assertGreater(gone["machine_away_ns"], 0)
        self.assertFalse(here)

    def test_a_relay_that_hangs(self):
        """Its kernel acknowledges every byte, but the relay says nothing any more."""
        self.check_lost(*self.silence(lambda m: m.relay.send_signal(signal.SIGSTOP), lambda m: m.relay.send_signal(signal.SIGCONT)))
        self.assertIn("sent nothing for", self.log())

    def test_a_machine_that_is_cut_off(self):
        """Nothing comes back from it, not even that it is away."""
        self.check_lost(*self.silence(lambda m: self.swallow(m, "add"), lambda m: self.swallow(m, "del")))

    def test_a_host_that_was_stopped(self):
        """It was the host that heard nothing: no machine is lost."""
        def stop(_):
            self.traced.send_signal(signal.SIGSTOP)
            time.sleep(8)  # a machine is given 6: twice the period that its relay tells
            self.traced.send_signal(signal.SIGCONT)
        _, first, second = self.silence(stop, lambda m: None, recorded=lambda: time.sleep(3))
        self.assertFalse(first)
        self.assertFalse(second)

    def test_a_producer_that_is_cut_off(self):
        """Without a relay, which would speak: the kernel here asks the one there."""
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"0.0.0.0:{PORT}"
        self.start_traced("--enable-relay-endpoint", "--dev-flag", "silent-machine-ms=3000")
        self.machines = [Machine(self, self.forwarder, 1)]
        m = self.machines[0]
        m.spawn(PRODUCER, "--follow", PERFETTO_PRODUCER_SOCK_NAME=f"{m.host.split(':')[0]}:{PORT}")
        wait_for(lambda: re.search("producer .* connected", self.log()), what="the producer")
        time.sleep(4)
        self.assertNotIn("disconnected", self.log())
        self.swallow(m, "add")
        wait_for(lambda: "disconnected" in self.log(), 20, "its loss")

    def test_a_relay_that_promises_nothing(self):
        """Perfetto's speaks every 30 seconds: silence means nothing."""
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"0.0.0.0:{PORT}"
        self.start_traced("--enable-relay-endpoint", "--dev-flag", "silent-machine-ms=1000")
        peer = self.connect(PORT)
        peer.send(frame(field(2, 1) + field(8, field(1, 4711) + field(2, 0) + field(3, "somebody"))) + bind("RelayPort", 2))
        self.assertIsNotNone(peer.recv())
        for request, wait in (3, 0), (4, 4):
            time.sleep(wait)
            peer.send(invoke(request, 1, b"", service=2))
            self.assertTrue(peer.reply(request)[0])

    def machine_packets(self, trace):
        """{machine id: (SystemInfo packets, comparisons of clocks)}"""
        out = collections.defaultdict(lambda: [0, 0])
        for p in packets(trace.read_bytes()):
            out[first(p, 98, 0)][0] += first(p, 45) is not None
            out[first(p, 98, 0)][1] += first(p, 107) is not None
        return out

    def test_only_machines_that_were_connected(self):
        """A machine that left before the recording is not in it; one that leaves or comes during it is."""
        self.service()
        before, during, late = [Machine(self, self.forwarder, i) for i in (1, 2, 3)]
        self.machines = [before, during, late]
        for m in before, during:
            m.start_relay()
            wait_for(lambda m=m: f"relay of machine {m.id} " in self.log(), what="a relay")
        time.sleep(0.5)  # for comparisons of clocks
        before.relay.terminate()
        wait_for(lambda: re.search(f"relay of machine {before.id} .*disconnected", self.log()), what="its end")
        p, trace = self.record("trace_all_machines: true" + CONFIG)
        time.sleep(0.5)
        during.relay.terminate()
        wait_for(lambda: re.search(f"relay of machine {during.id} .*disconnected", self.log()), what="its end")
        late.start_relay()
        wait_for(lambda: f"relay of machine {late.id} " in self.log(), what="a relay")
        time.sleep(1)
        self.stop(p, code=3)  # no producer is there: the machines are
        found = self.machine_packets(trace)
        self.assertEqual(set(found) - {0}, {during.id, late.id})
        for m in during, late:
            self.assertEqual(found[m.id][0], 1)
            self.assertGreater(found[m.id][1], 0, "comparisons")
        again, trace = self.record("trace_all_machines: true" + CONFIG, "again")
        self.stop(again, code=3)
        self.assertEqual(set(self.machine_packets(trace)) - {0}, {late.id})

    def test_names(self):
        """The trace names every machine: as it was told, else by the name of its host."""
        self.service()
        told, untold = self.machines = [Machine(self, self.forwarder, i) for i in (1, 2)]
        told.start_relay(PERFETTO_MACHINE_NAME="web1")
        untold.start_relay(PERFETTO_MACHINE_NAME="")
        self.produce([told, untold])
        self.wait_present([told, untold])
        p, trace = self.record("trace_all_machines: true" + CONFIG)
        time.sleep(0.5)
        self.stop(p)
        names = {int(i): n for i, n in self.query(trace, "SELECT raw_id, name FROM machine")}
        self.assertEqual((names.get(told.id), names.get(untold.id)), ("web1", os.uname().nodename))
        self.assertEqual(names[0], os.environ.get("PERFETTO_MACHINE_NAME") or os.uname().nodename)

    def times(self, trace):
        """{machine id: the times of its packets, in seconds of its clock}"""
        out = collections.defaultdict(list)
        for p in packets(trace.read_bytes()):
            if first(p, 900) is not None:
                out[first(p, 98, 0)].append(first(p, 8) / 1e9)
        return out

    def test_a_chatty_machine_beside_a_quiet_one(self):
        """In one ring the chatty one displaces the quiet one; with machine_size_kb each has a ring of its own."""
        self.service()
        quiet, chatty = self.join(2)
        self.produce([quiet], pause_us=20000)
        self.produce([chatty], packets=1000000, pause_us=100, max_size=1000)
        self.wait_present([quiet, chatty])
        for extra, keeps in ("machine_size_kb: 256", True), ("", False):
            with self.subTest(extra=extra):
                p, trace = self.record("trace_all_machines: true buffers { size_kb: 256 %s } "
                                       'data_sources { config { name: "e2e.source" } }' % extra, "keeps" if keeps else "loses")
                time.sleep(4)
                self.stop(p)
                seconds = {m: max(t) - min(t) for m, t in self.times(trace).items()}
                self.assertLess(seconds[chatty.id], 2.5, "it displaces itself")
                if keeps:
                    self.assertGreater(seconds[quiet.id], 3)
                    numbers = self.numbers(trace)[quiet.id]
                    self.assertEqual(sorted(numbers), list(range(len(numbers))), "from its first packet on")
                else:
                    self.assertLess(seconds[quiet.id], 2.5)
                size = self.query(trace, "SELECT value FROM stats WHERE name = 'traced_buf_buffer_size'")
                self.assertEqual([int(v) for v, in size], [256 * 1024 * (3 if keeps else 1)])
                # the ledger of the ring: what is not here was overwritten, and counted
                overwritten = self.query(trace, "SELECT value FROM stats WHERE name = 'traced_buf_chunks_overwritten'")
                self.assertGreater(int(overwritten[0][0]), 0)

    def test_a_quiet_machine_that_is_flushed(self):
        """A flush of a few bytes takes their room in the ring, not that of a chunk."""
        self.service()
        m, = self.join(1)
        self.produce([m], pause_us=20000, max_size=10)
        self.wait_present([m])
        p, trace = self.record("trace_all_machines: true flush_period_ms: 100 buffers { size_kb: 16 } "
                               'data_sources { config { name: "e2e.source" } }')
        time.sleep(4)
        self.stop(p)
        numbers = self.numbers(trace)[m.id]
        self.assertEqual(sorted(numbers), list(range(len(numbers))))
        self.assertGreater(len(numbers), 50)
        written = self.query(trace, "SELECT value FROM stats WHERE name = 'traced_buf_bytes_written'")
        self.assertLess(int(written[0][0]), 16384)

    def test_host_only(self):
        """Without trace_all_machines the trace names the machines that it leaves out, and so do the tools."""
        self.service()
        machines = self.join(2)
        self.produce(machines)
        self.wait_present(machines)
        p, trace = self.record()
        time.sleep(0.5)
        _, err = self.stop(p, code=3)  # nothing that was asked for could start
        self.assertRegex(err, "2 other machines .*trace_all_machines: true")
        self.assertEqual({int(r[0]) for r in self.query(trace, "SELECT raw_id FROM machine WHERE raw_id != 0")},
                         {m.id for m in machines})
        self.assertFalse(self.numbers(trace))
        self.assertEqual({i: s for i, s in self.stats(trace).items()}, {m.id: {"machine_not_recorded": 1} for m in machines})
        check = subprocess.run([TP_SHELL, "check", trace], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        self.assertEqual(check.returncode, 1, check.stdout)  # what was asked for did not start
        self.assertIn(b"recording_source_not_started", check.stdout)
        self.assertIn(b"machine_not_recorded", check.stdout)
        self.assertIn(b"trace_all_machines", check.stdout)


if __name__ == "__main__":
    enter_namespace()
    main()

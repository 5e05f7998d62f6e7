"""Machines that die while they are recorded: what they wrote before is in the trace, and the trace says from when to when
something may be missing. The truth is the ledger that each producer writes beside the recording."""
import subprocess
import time

from harness import PRODUCER, TP_SHELL, first, fields, main, packets, wait_for
from links import CONFIG, PORT, LinkCase, Machine, enter_namespace

ALL = "trace_all_machines: true " + CONFIG
HAND_OVER_NS = 100_000_000
SLOW_NS = 900_000_000  # what a sanitized build on a busy machine may take beyond that
LOSSES, ABSENCE = 990, 9


class Crashes(LinkCase):
    """No flush is asked for in any of these: the ring alone holds what came."""

    def machine(self, number=1, direct=False):
        m = Machine(self, self.forwarder, number)
        self.machines.append(m)
        if direct:  # without the forwarder, which would answer for a machine that is cut off
            m.start_relay(PERFETTO_RELAY_SOCK_NAME=f"{m.host.split(':')[0]}:{PORT}")
        else:
            m.start_relay()
        return m

    def write(self, m, *args, pause_us=40000):
        """A producer of which every packet is in a ledger, also when it is killed. A chunk lasts it for almost two seconds."""
        wait_for(lambda: (m.dir / "producer").exists(), what="a relay's socket")
        with open(m.dir / "ledger", "ab") as out:
            m.producer = m.spawn(PRODUCER, "--follow", "--packets", 1000000, "--pause-us", pause_us, "--times", *args,
                                 log="producer.log", stdout=out)

    def kill_producer(self, m):
        m.producer.kill()
        m.producer.wait()

    def written(self, m):
        """[(timestamp, writer, number)] in the order of writing; a line that was cut is none."""
        lines = (m.dir / "ledger").read_bytes().split(b"\n")[:-1]
        rows = [tuple(map(int, line.split()[1:])) for line in lines if line.startswith(b"wrote ")]
        return [(ts, w, n) for w, n, ts in rows]

    def recorded(self, trace, m):
        """{(timestamp, writer, number)} of the machine's packets."""
        out = set()
        for p in packets(trace.read_bytes()):
            test = first(p, 900)
            if test is not None and first(p, 98, 0) == m.id:
                writer, number, _ = first(test, 1).split(maxsplit=2)
                out.add((first(p, 8), int(writer), int(number)))
        return out

    def absences(self, trace, m):
        """[(since, until)] as the trace tells last, until None: to the end; checked against machine_away_ns."""
        last = b""
        for p in packets(trace.read_bytes()):
            if first(p, LOSSES) is not None and first(p, 98, 0) == m.id:
                last = first(p, LOSSES)
        out = [(first(v, 2), first(v, 3)) for n, v in fields(last) if n == ABSENCE]
        away = first(last, 3, 0)
        self.assertEqual(self.stats(trace)[m.id].get("machine_away_ns", 0), away)
        if len(out) == 1 and out[0][1]:
            self.assertEqual(away, out[0][1] - out[0][0])
        return out

    def check_ledger(self, trace, m, began_ns, ended_ns):
        """What was written and is missing was written within the absences that the trace states."""
        here, absences = self.recorded(trace, m), self.absences(trace, m)
        written = [p for p in self.written(m) if began_ns <= p[0] < ended_ns]
        self.assertTrue(here)
        missing = [p for p in written if p not in here]
        unstated = [p for p in missing if not any(since <= p[0] < (until or ended_ns) for since, until in absences)]
        self.assertEqual(unstated, [], f"{len(missing)} missing of {len(written)}, absences {absences}")
        self.assertEqual({p for p in here if p[0] >= began_ns} - set(self.written(m)), set(), "nothing that was not written")
        return missing, absences

    def check_bound(self, absences, died_ns):
        """check_ledger() has seen that the bound holds; it is also no wider than it must be."""
        self.assertGreater(absences[0][0], died_ns - HAND_OVER_NS - SLOW_NS)

    def check_says(self, trace, *stats):
        """check fails for these; without any it ends well."""
        p = subprocess.run([TP_SHELL, "check", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        text = p.stdout.decode()
        self.assertEqual(p.returncode, 1 if stats else 0, text)
        for s in stats:
            self.assertIn(s, text)

    def recording(self, m, config=ALL):
        self.wait_present([m])
        p, trace = self.record(config)
        wait_for(lambda: self.written(m), what="a packet")
        return p, trace, self.written(m)[0][0]

    def now(self):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def test_a_producer_is_killed(self):
        """It costs one hand-over, whatever it has in its chunks; a quiet writer is handed over like a busy one."""
        self.service()
        m = self.machine()
        self.write(m, "--writers", 3)
        p, trace, began = self.recording(m)
        time.sleep(2)
        killed = self.now()
        self.kill_producer(m)
        wait_for(lambda: m.id not in self.present(), what="its loss")
        time.sleep(0.3)
        self.stop(p)
        missing, absences = self.check_ledger(trace, m, began, killed + 10**9)
        self.assertEqual(len(absences), 1)
        self.check_bound(absences, killed)
        self.assertIsNone(absences[0][1])
        self.check_says(trace, "machine_producers_cut")

    def test_a_producer_ends(self):
        """It has handed over everything, and says so: nothing is lost. Its packets are larger than one message of its link."""
        self.service()
        m = self.machine()
        self.write(m, "--writers", 3, "--packets", 40, "--max-size", 20000, pause_us=10000)
        p, trace, began = self.recording(m)
        wait_for(lambda: m.producer.poll() is not None, what="its end")
        self.assertEqual(m.producer.returncode, 0)
        wait_for(lambda: m.id not in self.present(), what="its end for the service")
        self.stop(p)
        self.assertEqual(len(self.recorded(trace, m)), 40)
        self.assertEqual(self.stats(trace)[m.id].get("machine_producers_lost"), 1)
        self.check_says(trace)

    def test_a_relay_is_killed(self):
        self.service()
        m = self.machine()
        self.write(m)
        p, trace, began = self.recording(m)
        time.sleep(2)
        killed = self.now()
        m.relay.kill()
        m.relay.wait()
        wait_for(lambda: m.id not in self.present(), what="its loss")
        time.sleep(0.5)
        m.start_relay()
        self.wait_present([m])
        time.sleep(1)
        ended = self.now()
        self.stop(p)
        _, absences = self.check_ledger(trace, m, began, ended)  # it may have handed over everything just before
        self.assertEqual(len(absences), 1)
        self.check_bound(absences, killed)
        self.assertTrue(absences[0][1])
        self.assertTrue([1 for ts, _, _ in self.recorded(trace, m) if ts > absences[0][1]], "and goes on behind it")

    def test_a_machine_is_killed(self):
        """All of it at once, without a word: as when its power fails. The recording ends before anybody notices."""
        self.service()
        m = self.machine(direct=True)
        self.write(m)
        p, trace, began = self.recording(m, "flush_timeout_ms: 1000 data_source_stop_timeout_ms: 1000 " + ALL)
        time.sleep(2)
        self.swallow(m, "add")
        killed = self.now()
        m.relay.kill()
        self.kill_producer(m)
        time.sleep(1)
        self.assertIn(m.id, self.present(), "not noticed")
        self.stop(p)
        missing, absences = self.check_ledger(trace, m, began, killed + 10**9)
        self.assertEqual(len(absences), 1)
        self.check_bound(absences, killed)
        self.assertIsNone(absences[0][1])
        self.check_says(trace, "machine_producers_cut")

    def test_a_link_is_cut(self):
        """Noticed late, and counted from the last data that came; what the producer drops meanwhile is in the time."""
        self.env["PERFETTO_PRODUCER_SOCK_NAME"] = f"0.0.0.0:{PORT}"
        self.start_traced("--enable-relay-endpoint", "--dev-flag", "silent-machine-ms=6000")
        m = self.machine(direct=True)
        self.write(m)
        p, trace, began = self.recording(m)
        time.sleep(2)
        cut = self.now()
        self.swallow(m, "add")
        wait_for(lambda: m.id not in self.present(), 30, "its loss")
        noticed = self.now()
        self.swallow(m, "del")
        self.wait_present([m], 60)
        time.sleep(1.5)
        ended = self.now()
        self.stop(p)
        missing, absences = self.check_ledger(trace, m, began, ended)
        self.assertGreater(noticed - cut, 2 * 10**9)
        self.assertEqual(len(absences), 1)
        self.check_bound(absences, cut)
        self.assertGreater(self.stats(trace)[m.id]["machine_away_ns"], missing[-1][0] - missing[0][0])
        self.check_says(trace, "machine_producers_cut")

    def test_the_service_is_killed(self):
        """What was written into the file can be read, and check says that its end is missing."""
        self.service()
        m = self.machine()
        self.write(m)
        p, trace, began = self.recording(m, "write_into_file: true file_write_period_ms: 200 " + ALL)
        time.sleep(2)
        killed = self.now()
        self.traced.kill()
        self.traced.wait()
        self.finish(p, code=1)
        here = self.recorded(trace, m)
        for packet in self.written(m):
            if began <= packet[0] < killed - HAND_OVER_NS - 200_000_000 - SLOW_NS:
                self.assertIn(packet, here)
        self.query(trace, "SELECT 1")
        self.check_says(trace, "trace_end_missing")


if __name__ == "__main__":
    enter_namespace()
    main()

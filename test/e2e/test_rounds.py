"""What relays write of clocks can be read by Perfetto: it makes of each packet one pair of moments, the average over the
packet's rounds, and gives up a trace in which such a moment is earlier than the one before. Twenty recordings of relays
on a busy machine; read with Perfetto's model, every event keeps its time."""
import pathlib
import subprocess
import time

from harness import TP_SHELL, first, fields, main, packets, wait_for
from links import CONFIG, PORT, LinkCase, Machine, enter_namespace

RECORDINGS = 20
MACHINES = 3
MACHINE_ID, REMOTE_CLOCK_SYNC, SYNCED_CLOCKS, CLIENT_CLOCKS, HOST_CLOCKS, CLOCKS, CLOCK_ID, CLOCK_TIME = 98, 107, 1, 2, 3, 1, 1, 2
BOOTTIME = 6
SOURCE_PERIOD = 990  # of ours, in each round: how many clock sources the two kernels have had
FAR_NS = 30_000_000_000  # rounds further apart are not compared with each other


def rounds_of(packet):
    """[({clock: the machine's reading}, {clock: the host's})]"""
    def readings(snapshot):
        return {first(c, CLOCK_ID): first(c, CLOCK_TIME, 0) for n, c in fields(snapshot) if n == CLOCKS}
    return [(readings(first(r, CLIENT_CLOCKS)), readings(first(r, HOST_CLOCKS)))
            for n, r in fields(packet) if n == SYNCED_CLOCKS]


def average(values):
    """Integers, rounded towards zero."""
    total = sum(values)
    return abs(total) // len(values) * (1 if total >= 0 else -1)


def pairs_of(rounds):
    """{clock: (host's moment, machine's moment)}: what Perfetto makes of a packet, in its integers."""
    offsets, anchors = {}, {}
    for (c1, h1), (c2, h2) in zip(rounds, rounds[1:]):
        if c2[BOOTTIME] - c1[BOOTTIME] >= FAR_NS:
            continue
        for clock in c1:
            times = c1[clock], c2.get(clock, 0), h1.get(clock, 0), h2.get(clock, 0)
            if all(times):
                t1c, t2c, t1h, t2h = times
                offsets.setdefault(clock, []).extend([(t1c + t2c) // 2 - t1h, t2c - (t1h + t2h) // 2])
    for _, host in rounds:
        anchors.update(host)
    return {clock: (anchors[clock], anchors[clock] + average(o)) for clock, o in offsets.items()}


CLOCK_SOURCE = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


class Rounds(LinkCase):
    def join(self, n):
        """Straight to the service: a round takes a tenth of a millisecond, and what disturbs it is many times that."""
        self.machines = [Machine(self, self.forwarder, 1 + i) for i in range(n)]
        for m in self.machines:
            m.start_relay(PERFETTO_RELAY_SOCK_NAME=f"{m.host.split(':')[0]}:{PORT}")
        return self.machines

    def record_briefly(self, number):
        trace = self.dir / f"trace{number}"
        p = self.perfetto("--txt", "-c", self.config(f"trace_all_machines: true duration_ms: 1100 {CONFIG}", f"c{number}"), "-o", trace)
        self.finish(p)
        return trace

    def check_order(self, trace):
        """How many packets there were, and what is earlier in one than in the one before: (packet, clock, what, by)."""
        before, readings, count, wrong = {}, {}, 0, []
        for p in packets(trace.read_bytes()):
            sync = first(p, REMOTE_CLOCK_SYNC)
            if sync is None:
                continue
            count += 1
            machine, rounds = first(p, MACHINE_ID), rounds_of(sync)
            self.assertEqual({first(r, SOURCE_PERIOD) for n, r in fields(sync) if n == SYNCED_CLOCKS}, {1 if CLOCK_SOURCE.exists() else None})
            for clock, (host, client) in pairs_of(rounds).items():
                last = before.get((machine, clock), (0, 0))
                wrong += [(count, clock, what, then - now) for what, now, then in
                          (("the host's moment", host, last[0]), ("the machine's moment", client, last[1])) if now < then]
                before[machine, clock] = host, client
            for client, _ in rounds:
                for clock, value in client.items():
                    if value < readings.get((machine, clock), 0):
                        wrong.append((count, clock, "the machine's reading", readings[machine, clock] - value))
                    readings[machine, clock] = value
        return count, wrong

    def events(self, trace, model):
        out = subprocess.run([TP_SHELL, "query", "--clock-model", model, str(trace),
                              "SELECT name, value FROM stats WHERE value > 0 AND name GLOB '*clock*' AND severity IN ('error', 'data_loss')"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        return out.stdout.decode().splitlines()[1:]

    def test_moments_are_in_order(self):
        self.service()
        machines = self.join(MACHINES)
        self.produce(machines, packets=1000000, pause_us=5000)
        self.wait_present(machines)
        time.sleep(1)
        counts = []
        for i in range(RECORDINGS):
            trace = self.record_briefly(i)
            count, wrong = self.check_order(trace)
            self.assertEqual(wrong, [], trace.name)
            counts.append(count)
            self.assertEqual(self.events(trace, "compatible"), [], trace.name)
        print(f"{RECORDINGS} recordings of {MACHINES} machines: {sum(counts)} packets of comparisons")
        self.assertGreaterEqual(min(counts), MACHINES)


if __name__ == "__main__":
    enter_namespace()
    main()

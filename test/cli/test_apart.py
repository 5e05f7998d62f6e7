"""Separate recordings: two ftrace recordings of two kernels that exchanged packets, and what a relay between them measured
in the meantime (test/data/apart-*)."""
import os
import shutil
import subprocess
import tempfile
import unittest
from xml.etree import ElementTree

from ctf_writer import Int, List, Struct, Trace, Variant, Enum

SHELL, DATA = os.environ["TP_SHELL"], os.environ["MERIDIAN_DATA"]
A, B, RELAY = (os.path.join(DATA, f"apart-{x}.pftrace") for x in ("a", "b", "relay"))
OFFSET = "to_machine_time({at}, {m}, 'BOOTTIME') - {at} as offset, clock_error_ns({at}, {m}) as bound"


def run(*args):
    return subprocess.run([SHELL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def ask(files, sql, *flags):
    done = run("query", *flags, *files, sql)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [[cell.strip('"') for cell in line.split(",")] for line in done.stdout.splitlines()[1:]]


class Apart(unittest.TestCase):
    def offset(self, files, machine, at, *flags):
        return [int(v) for v in ask(files, "select " + OFFSET.format(at=at, m=machine), *flags)[0]]

    def setUp(self):
        self.at = int(ask([RELAY], "select (min(start_ts) + max(end_ts)) / 2 from clock_sync")[0][0])

    def test_two_machines(self):
        self.assertEqual(ask([A, B], "select id, name from machine"), [["0", "apart-a"], ["1", "apart-b"]])
        self.assertEqual(ask([A, B], "select quality, inverted_after, in_tree from clock_sync_pair"), [["accurate", "0", "1"]])
        alone = [int(ask([f], "select count(*) from sched")[0][0]) for f in (A, B)]
        both = ask([A, B], "select count(*) from sched join cpu using (ucpu) group by machine_id order by machine_id")
        self.assertEqual([int(r[0]) for r in both], alone)
        self.assertEqual(ask([A, B], "select name from stats where severity != 'info' and value != 0"), [])

    def test_agrees_with_the_relay(self):
        packets, bound = self.offset([A, B], 1, self.at)
        relay, relay_bound = self.offset([RELAY], 1, self.at)
        self.assertLessEqual(abs(packets - relay), bound + relay_bound)
        self.assertLess(bound, 1_000_000)

    def test_the_map_has_an_inverse(self):
        rows = ask([A, B], "select max(abs(from_machine_time(to_machine_time(ts, 1, 'BOOTTIME'), 1, 'BOOTTIME') - ts)), "
                           "min(clock_error_ns(ts, 1)) > 0, max(clock_error_ns(ts, 0)) from sched")
        self.assertLessEqual(int(rows[0][0]), 1)
        self.assertEqual(rows[0][1:], ["1", "0"])

    def test_reference(self):
        """On B's clock the relation is the other way round, and every machine keeps its events."""
        a, bound = self.offset([A, B], 1, self.at)
        there = self.at + a
        files = [A, B], "--reference", "apart-b"
        rows = ask(files[0], "select " + OFFSET.format(at=there, m=0), *files[1:])
        self.assertLessEqual(abs(int(rows[0][0]) + a), 2)
        self.assertLess(abs(int(rows[0][1]) - bound), bound // 10 + 10)

    def test_reference_that_is_not_there(self):
        done = run("sync", "--reference", "apart-c", A, B)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the hosts are 'apart-a', 'apart-b'", done.stderr)

    def test_order_does_not_matter(self):
        """The middle of the region is not quite the same place seen from the other clock."""
        a, bound = self.offset([A, B], 1, self.at)
        b, _ = self.offset([B, A], 1, self.at + a)
        self.assertLess(abs(a + b), bound / 1000)

    def test_merged_file(self):
        with tempfile.TemporaryDirectory() as folder:
            merged = os.path.join(folder, "merged.pftrace")
            done = run("sync", A, B, "-o", merged)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("accurate (exact)", done.stdout)
            packets, bound = self.offset([A, B], 1, self.at)
            exact, merged_bound = self.offset([merged], 1, self.at)
            self.assertLessEqual(abs(packets - exact), 10)
            self.assertLess(merged_bound, 3 * bound)  # comparisons say less than the packets they were made of
            constant = ask([merged], f"select to_machine_time({self.at}, 1, 'BOOTTIME') - {self.at}", "--clock-model", "compatible")
            self.assertLess(abs(int(constant[0][0]) - packets), 50_000)  # it leaves out a drift of 2 ppm over 9 s
            for sql in ("select count(*) from sched", "select count(*) from ftrace_event", "select count(*) from thread",
                        "select name, count(*) from ftrace_event group by name", "select count(*) from machine"):
                self.assertEqual(ask([A, B], sql), ask([merged], sql), sql)

    def test_merged_file_keeps_names_and_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            merged = os.path.join(folder, "merged.pftrace")
            self.assertEqual(run("sync", A, B, "-o", merged).returncode, 0)
            names = "select id, name from machine order by id"
            self.assertEqual(ask([merged], names), ask([A, B], names))
            self.assertEqual(ask([merged], names), [["0", "apart-a"], ["1", "apart-b"]])
            done = run("check", merged)
            self.assertEqual(done.returncode, 0, done.stdout)
            cut = os.path.join(folder, "apart-b.pftrace")
            with open(B, "rb") as whole, open(cut, "wb") as part:
                part.write(whole.read()[:60_000])
            self.assertEqual(run("sync", A, cut, "-o", merged).returncode, 0)
            done = run("check", merged)
            self.assertEqual(done.returncode, 1)
            self.assertIn("trace_end_missing", done.stdout)

    def test_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            svg = os.path.join(folder, "sync.svg")
            self.assertEqual(run("sync", A, B, "--plot", svg).returncode, 0)
            root = ElementTree.parse(svg).getroot()
            ns = "{http://www.w3.org/2000/svg}"
            above, below, matched = (int(v) for v in ask([A, B], "select in_hull_above, in_hull_below, matched from clock_sync_pair")[0])
            self.assertEqual(len(root.findall(f"{ns}circle")), matched)
            edges = [line.get("class") for line in root.findall(f"{ns}line")]
            self.assertEqual([edges.count(c) for c in ("m", "eu", "ed")], [1, above - 1, below - 1])

    def test_what_cannot_be_merged(self):
        with tempfile.TemporaryDirectory() as folder:
            merged = os.path.join(folder, "merged.pftrace")
            done = run("sync", A, RELAY, "-o", merged)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no pair of hosts exchanged packets", done.stderr)
            done = run("sync", A, B, RELAY, "-o", merged)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no packets relate it to the others", done.stderr)
            self.assertFalse(os.path.exists(merged))
            done = run("sync", A, B, "-o", os.path.join(folder, "no", "such", "folder"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("No such file", done.stderr)


class Mixed(unittest.TestCase):
    """An LTTng recording beside an ftrace one: C is B seen by LTTng, its packets copied from B's recording with a clock that
    stands a known distance away."""
    AHEAD = 1_700_000_000 * 10**9

    ADDONS = ("inet_sock_local_out", "inet_sock_local_in")
    NET = ("net_dev_queue", "net_if_receive_skb")

    def lttng(self, path, layout="2.9"):
        """C as LTTng writes it: since 2.9 with all headers, the layout before with the TCP header alone ("experimental"), and
        the addons' events, whose word of flags stands upside down (as in the recordings of Trace Compass) or not."""
        trace = Trace(path, 1, header="large", offset_s=self.AHEAD // 10**9)
        kind, ip = Enum(Int(8), [("unknown", 0, 0), ("ipv4", 1, 1)]), Enum(Int(8), [("unknown", 0, 0), ("tcp", 1, 1)])
        number = Int(32, order="be")
        tcp = Struct([("source_port", Int(16, order="be")), ("dest_port", Int(16, order="be")), ("seq", number),
                      ("ack_seq", number), ("flags", Int(16))])
        ipv4 = Struct([("id", Int(16, order="be")), ("saddr", List(Int(8), n=4)), ("daddr", List(Int(8), n=4)),
                       ("transport_header_type", ip), ("transport_header", Variant("transport_header_type", [("unknown", Struct([])), ("tcp", tcp)]))])
        fields = [("network_header_type", kind), ("network_header", Variant("network_header_type", [("unknown", Struct([])), ("ipv4", ipv4)]))]
        bare = [("seq", number), ("ack_seq", number), ("flags", Int(16, order="be"))]
        if layout == "experimental":
            fields = [("transport_fields_type", ip), ("transport_fields", Variant("transport_fields_type", [
                ("unknown", Struct([])), ("tcp", Struct([("thtype_tcp", Struct(bare))]))]))]
        elif layout.startswith("addons"):
            fields = bare
        trace.stream(0)
        for event, name in enumerate(self.ADDONS if layout.startswith("addons") else self.NET):
            trace.event(0, event, name, fields)
        events = []
        words = ", ".join(f"extract_arg(arg_set_id, 'b{i}')" for i in range(10))
        rows = ask([B], "select ts, name, extract_arg(arg_set_id, 'head') + extract_arg(arg_set_id, 'network_header') - "
                        f"extract_arg(arg_set_id, 'data'), {words} from ftrace_event where name in ('packet_sent', 'packet_received')")
        for ts, name, at, *b in rows:
            h = b"".join((int(w) % 2**64).to_bytes(8, "little") for w in b)[int(at) % 65536:]
            if h[0] != 0x45 or h[9] != 6:
                continue
            t = h[20:]
            be = lambda s: int.from_bytes(s, "big")  # noqa: E731
            values = {"network_header_type": 1, "network_header": ("ipv4", {
                "id": be(h[4:6]), "saddr": list(h[12:16]), "daddr": list(h[16:20]), "transport_header_type": 1,
                "transport_header": ("tcp", {"source_port": be(t[0:2]), "dest_port": be(t[2:4]), "seq": be(t[4:8]),
                                             "ack_seq": be(t[8:12]), "flags": be(t[12:14]) & 0x1ff})})}
            if layout != "2.9":
                word = be(t[12:14])
                if layout == "addons":
                    word = word >> 12 | int(f"{word & 0xff:08b}"[::-1], 2) << 8
                values = {"seq": be(t[4:8]), "ack_seq": be(t[8:12]), "flags": word}
            if layout == "experimental":
                values = {"transport_fields_type": 1, "transport_fields": ("tcp", {"thtype_tcp": values})}
            events.append((int(ts), 0 if name == "packet_sent" else 1, values))
        trace.write_events("chan_0", 0, events)
        trace.close()

    def test_merged_in_place_of_an_input(self):
        with tempfile.TemporaryDirectory() as folder:
            a = os.path.join(folder, "a")
            shutil.copy(A, a)
            self.assertEqual(run("sync", a, B, "-o", a).returncode, 0)
            self.assertEqual(os.listdir(folder), ["a"])
            self.assertEqual(ask([a], "select count(*) from ftrace_event"), ask([A, B], "select count(*) from ftrace_event"))

    def test_ftrace_and_lttng(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hostC")
            self.lttng(path)
            b = [int(v) for v in ask([A, B], "select max_error_ns, offset_ns from clock_sync")[0]]
            c = [int(v) for v in ask([A, path], "select max_error_ns, offset_ns from clock_sync")[0]]
            self.assertLessEqual(abs(b[0] - c[0]), 2)
            self.assertLessEqual(abs(c[1] - b[1] - self.AHEAD), 2)
            rows = ask([A, path], "select machine.name, count(*) from ftrace_event join cpu using (ucpu) join machine on "
                                  "machine.id = machine_id where ftrace_event.name glob '*net*' or ftrace_event.name glob 'packet*' group by 1")
            self.assertEqual([r[0] for r in rows], ["apart-a", "made"])

    def test_layouts_that_tell_less(self):
        """What every layout tells of a packet is enough to match it: the same bound, but for packets that were sent twice."""
        b = [int(v) for v in ask([A, B], "select max_error_ns, offset_ns from clock_sync")[0]]
        matched = int(ask([A, B], "select matched from clock_sync_pair")[0][0])
        with tempfile.TemporaryDirectory() as folder:
            for layout in ("experimental", "addons", "addons-wire"):
                with self.subTest(layout):
                    path = os.path.join(folder, layout)
                    self.lttng(path, layout)
                    c = [int(v) for v in ask([A, path], "select max_error_ns, offset_ns from clock_sync")[0]]
                    self.assertLessEqual(abs(c[1] - b[1] - self.AHEAD), 2)
                    self.assertLessEqual(abs(b[0] - c[0]), 2)
                    self.assertGreaterEqual(int(ask([A, path], "select matched from clock_sync_pair")[0][0]), matched * 99 // 100)
            with_each_other = [os.path.join(folder, layout) for layout in ("experimental", "addons")]
            self.assertEqual(ask(with_each_other, "select matched from clock_sync_pair"), [])  # one host, seen twice


if __name__ == "__main__":
    unittest.main()

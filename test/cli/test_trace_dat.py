"""Recordings of trace-cmd beside what `trace-cmd report -t` says of them: every event with its CPU, time and thread, the
fields of all those whose text tells them, the losses, and the times of guests. NAME.report.gz holds the report."""
import csv
import glob
import gzip
import io
import os
import re
import struct
import subprocess
import tempfile
import unittest
import zlib

SHELL = os.environ["TP_SHELL"]
HERE = os.path.join(os.environ["MERIDIAN_DATA"], "trace-cmd")
SHARED = os.path.join(os.environ["MERIDIAN_DATA"], "..", "..", "..", "shared", "data", "trace-cmd")

LINE = re.compile(r"^ *(?:(?P<where>\S+): +)?(?P<comm>\S.*?)-(?P<tid>\d+) +\[(?P<cpu>\d+)\](?: \S*)? +(?:(?P<s>\d+)\.)?(?P<ns>\d+): (?P<name>\w+): *(?P<text>.*)$")
SWITCH = re.compile(r"^(?P<prev_comm>.*):(?P<prev_pid>\d+) \[(?P<prev_prio>\d+)\] \S+ ==> (?P<next_comm>.*):(?P<next_pid>\d+) \[(?P<next_prio>\d+)\]$")
PAIR = re.compile(r"\b(\w+)=(-?(?:0x[0-9a-f]+|\d+))(?=[ ,\]]|$)")
TEXT = re.compile(r"\b((?:\w+_)?comm)=(.*?)(?= \w+=| \[|$)")
PRINTED_AS = {("sched_process_fork", "pid"): "parent_pid", ("sched_process_fork", "comm"): "parent_comm", ("signal_generate", "res"): "result",
              ("signal_generate", "grp"): "group"}
WITHOUT_A_FIELD = {("signal_generate", "errno"), ("signal_deliver", "errno"), ("signal_deliver", "sa_handler")}  # in Perfetto's messages


def query(sql, *files):
    done = subprocess.run([SHELL, "query", *files, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True)
    if done.returncode:
        raise AssertionError(f"{sql}: {done.stderr}")
    rows = list(csv.DictReader(io.StringIO(done.stdout.replace('Query execution time', '\nQuery execution time').split("\nQuery execution")[0])))
    return rows


class Event:
    def __init__(self, m):
        self.where, self.comm, self.cpu, self.tid, self.name, self.text = m["where"], m["comm"], int(m["cpu"]), int(m["tid"]), m["name"], m["text"]
        self.ts = int(m["s"] or 0) * 10**9 + int(m["ns"])

    def key(self):
        return (self.ts, self.cpu, self.tid, self.name)


def report(path):
    """(events, [counts of losses], other lines)"""
    events, losses, strange = [], [], []
    with gzip.open(path, "rt", errors="replace") as f:
        for line in f.read().splitlines():
            m = LINE.match(line)
            if m:
                events.append(Event(m))
            elif "EVENTS DROPPED" in line:
                n = re.search(r"\[(\d+) EVENTS", line)
                losses.append(int(n.group(1)) if n else 0)
            elif line and not line.startswith("cpus=") and not re.match(r"^\S+: *cpus=", line.strip()):
                strange.append(line)
    return events, losses, strange


def samples():
    found = {}
    for folder in (SHARED, HERE):
        for path in glob.glob(os.path.join(folder, "*.report.gz")):
            found[os.path.basename(path)[:-len(".report.gz")]] = folder
    return found


def data(name):
    return os.path.join(samples()[name], name + ".dat")


def with_options(whole, options):
    """A file of version 7, little-endian, with options behind those that it has: [(id, data)]."""
    out = bytearray(whole)
    head = out.index(0, out.index(0, 18) + 1) + 1  # behind the texts of the compression
    at = struct.unpack_from("<Q", out, head)[0]
    while True:
        section, end = at + 16, at + 16 + struct.unpack_from("<Q", out, at + 8)[0]
        if struct.unpack_from("<H", out, at + 2)[0]:  # compressed: made plain, at the end
            text = zlib.decompress(bytes(out[section + 8:end]))
            struct.pack_into("<Q", out, head, len(out))
            at = len(out)
            section, end = at + 16, at + 16 + len(text)
            out += struct.pack("<HHIQ", 0, 0, 0, len(text)) + text
        head = end - 8  # of option DONE: where the next ones are
        at = struct.unpack_from("<Q", out, head)[0]
        if not at:
            break
    struct.pack_into("<Q", out, head, len(out))
    body = b"".join(struct.pack("<HI", i, len(d)) + d for i, d in [*options, (0, bytes(8))])
    return bytes(out + struct.pack("<HHIQ", 0, 0, 0, len(body)) + body)


class TraceDat(unittest.TestCase):
    unknown = set()  # what reports print that is no arg

    def check(self, name, comms=False):
        """One sample: every event, its fields where the report's text tells them, the losses. Returns the values checked.
        Comms: trace-cmd has one a thread, asked for at the end; those of a thread that was renamed may differ."""
        events, losses, _ = report(os.path.join(samples()[name], name + ".report.gz"))
        time = "to_realtime(e.ts)" if "date" in name else "e.ts"
        rows = query("SELECT NULL AS id, sum(value) AS ts, count(DISTINCT name) AS cpu, 0 AS tid, 'losses' AS name, NULL AS key, NULL AS v FROM stats "
                     "WHERE value > 0 AND name IN ('trace_dat_lost_events') UNION ALL "
                     "SELECT NULL, sum(value), 0, 0, 'lossy', NULL, NULL FROM stats WHERE name = 'ftrace_cpu_has_data_loss' UNION ALL "
                     f"SELECT e.id, {time}, c.cpu, t.tid, e.name, a.key, a.display_value FROM ftrace_event e JOIN cpu c USING (ucpu) "
                     "JOIN thread t USING (utid) LEFT JOIN args a USING (arg_set_id)", data(name))
        self.assertEqual(int(rows[0]["ts"].replace("[NULL]", "0") or 0), sum(losses))
        self.assertEqual(int(rows[1]["ts"].replace("[NULL]", "0") or 0) > 0, bool(losses))
        ours, got = {}, {}
        for r in rows[2:]:
            key = (int(r["ts"]), int(r["cpu"]), int(r["tid"]), r["name"])
            got[r["id"]] = key
            ours.setdefault(key, {}).setdefault(r["key"], []).append(r["v"])
        names = {int(r["tid"]): r["name"] for r in query("SELECT tid, name FROM thread", data(name))}
        for e in events:
            if comms and e.tid and e.comm != "<...>":
                self.assertEqual(names[e.tid], e.comm)
        got, want = sorted(got.values()), sorted(e.key() for e in events)
        if "graph" in name:  # the report makes a call that calls nothing, and its return, one line
            self.assertLessEqual({w for w in want if w[3] == "funcgraph_exit"}, set(got))
            want, got = ([w for w in side if w[3] != "funcgraph_exit"] for side in (want, got))
        self.assertEqual(got, want)
        return len(got) + sum(self.check_fields(e, ours[e.key()]) for e in events if e.key() in ours)

    def check_fields(self, e, args):
        """name=number in the report's text is an arg of that name; switches, system calls and interrupts have a form of their own."""
        switch = SWITCH.match(e.text) if e.name == "sched_switch" else None
        call = re.match(r"NR (\d+) \((.*)\)$", e.text) if e.name == "sys_enter" else None
        ret = re.match(r"NR (\d+) = (-?\d+)$", e.text) if e.name == "sys_exit" else None
        want = dict(switch.groupdict()) if switch else {}
        if call:  # Perfetto's rule: of a repeated field the last value is the arg
            want = {"id": call.group(1), "args": str(int(call.group(2).split(", ")[-1], 16))}
        elif ret:
            want = {"id": ret.group(1), "ret": ret.group(2)}
        elif not switch:
            for key, value in PAIR.findall(e.text):  # addresses have numbers of their own, clone_flags are hex without a word
                key = PRINTED_AS.get((e.name, key), key)
                if key not in args:
                    self.unknown.add((e.name, key))
                if key in args and key not in ("clone_flags", "sa_flags") and not re.match("0x[f]{4}|0x[0-9a-f]{16}", value):
                    want[key] = str(int(value, 16 if value.startswith("0x") else 10))
            for key, value in TEXT.findall(e.text):
                self.assertIn(value, args[PRINTED_AS.get((e.name, key), key)], f"{key} of {e.name} at {e.ts}")
        for key, value in want.items():
            self.assertIn(value, [str(int(v) & (1 << 64) - 1) if re.match(r"-\d+$", v) and not value.startswith("-") else v for v in args[key]],
                          f"{key} of {e.name} at {e.ts}")
        return len(want)

    def test_samples(self):
        checked = 0
        for name in sorted(samples()):
            if name != "guests-all" and "latency" not in name:
                with self.subTest(name):
                    checked += self.check(name, comms=True)
        self.assertGreater(checked, 5000)
        self.assertLessEqual(self.unknown, WITHOUT_A_FIELD)

    def test_host_and_guests_are_one_timeline(self):
        names = ["guests-host", "guests-guest1", "guests-guest2"]
        events, _, _ = report(os.path.join(samples()["guests-all"], "guests-all.report.gz"))
        sql = ("SELECT e.id, e.ts AS ts, c.cpu AS cpu, t.tid AS tid, e.name AS name, c.machine_id AS m, t.name AS comm, a.key, a.display_value AS v "
               "FROM ftrace_event e JOIN cpu c USING (ucpu) JOIN thread t USING (utid) LEFT JOIN args a USING (arg_set_id)")
        for order in ((0, 1, 2), (2, 0, 1)):
            with self.subTest(order):
                rows = query(sql, *[data(names[i]) for i in order])
                for machine, i in enumerate(order):
                    want = [e for e in events if e.where == names[i] + ".dat"]
                    got, args, comms = {}, {}, {}
                    for r in rows:
                        if int(r["m"]) == machine:
                            key = got[r["id"]] = (int(r["ts"]), int(r["cpu"]), int(r["tid"]), r["name"])
                            args.setdefault(key, {}).setdefault(r["key"], []).append(r["v"])
                            comms[key] = r["comm"]
                    self.assertEqual(sorted(got.values()), sorted(e.key() for e in want))
                    self.assertGreater(sum(self.check_fields(e, args[e.key()]) for e in want), 10)
                    self.assertEqual([comms[e.key()] for e in want if e.comm != "<...>" and e.tid], [e.comm for e in want if e.comm != "<...>" and e.tid])
                vcpus = query("SELECT v.machine_id AS guest, c.cpu AS cpu, t.tid AS tid, t.machine_id AS host FROM guest_vcpu v "
                              "JOIN cpu c USING (ucpu) JOIN thread t ON t.utid = v.host_utid", *[data(names[i]) for i in order])
                self.assertEqual(len(vcpus), 4)
                self.assertEqual({int(r["host"]) for r in vcpus}, {order.index(0)})

    def test_no_wakeup_of_a_guest_is_inverted(self):
        """On the host's time, too, a thread of a guest runs after it was woken, and each CPU's events keep their order."""
        names = ["guests-host", "guests-guest1", "guests-guest2"]
        sql = ("SELECT e.id AS id, e.ts AS ts, c.cpu AS cpu, c.machine_id AS m, e.name AS name, coalesce(extract_arg(e.arg_set_id, 'pid'), extract_arg(e.arg_set_id, 'next_pid')) "
               "AS tid FROM ftrace_event e JOIN cpu c USING (ucpu) ORDER BY e.ts, e.id")
        together, woken, checked = query(sql, *[data(n) for n in names]), {}, 0
        for machine, name in enumerate(names):
            alone = [r for r in query(sql, data(name))]
            of_machine = [r for r in together if int(r["m"]) == machine]
            for cpu in {r["cpu"] for r in alone}:
                self.assertEqual([r["name"] for r in of_machine if r["cpu"] == cpu], [r["name"] for r in alone if r["cpu"] == cpu])
            for r in of_machine:
                if r["name"] in ("sched_waking", "sched_wakeup"):
                    woken[machine, r["tid"]] = int(r["ts"])
                elif r["name"] == "sched_switch" and (machine, r["tid"]) in woken:
                    self.assertLessEqual(woken.pop((machine, r["tid"])), int(r["ts"]))
                    checked += 1
        rows = query("SELECT count(*) AS n FROM thread_state WHERE dur < -1 OR (state = 'R' AND waker_id IS NOT NULL AND ts < (SELECT ts FROM thread_state w "
                     "WHERE w.id = thread_state.waker_id))", *[data(n) for n in names])
        self.assertEqual(rows[0]["n"], "0")
        self.assertGreater(checked + len(together), 30)

    def test_compressed_and_in_archives(self):
        import tarfile
        with tempfile.TemporaryDirectory() as d:
            packed, tar = os.path.join(d, "x.gz"), os.path.join(d, "x.tar")
            path = data("synthetic-be32-v6")
            with gzip.open(packed, "wb") as out, open(path, "rb") as f:
                out.write(f.read())
            with tarfile.open(tar, "w") as t:
                t.add(data("guests-host"), "a.dat")
                t.add(data("guests-guest1"), "b.dat")
            n = "SELECT count(*) AS n FROM ftrace_event"
            self.assertEqual(query(n, packed), query(n, path))
            both = sum(int(query(n, data(x))[0]["n"]) for x in ("guests-host", "guests-guest1"))
            self.assertEqual(int(query(n, tar)[0]["n"]), both)

    def test_cut_anywhere(self):
        """A file that breaks off keeps what came before, and the loss is told; it never crashes."""
        with open(data("synthetic-le32-v7-zlib"), "rb") as f:
            whole = f.read()
        all_events = int(query("SELECT count(*) AS n FROM ftrace_event", data("synthetic-le32-v7-zlib"))[0]["n"])
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "cut.dat")
            for at in list(range(10, 400, 37)) + list(range(400, len(whole), 797)):  # at every byte: unit.cuts
                with open(path, "wb") as f:
                    f.write(whole[:at])
                done = subprocess.run([SHELL, "query", path, "SELECT (SELECT count(*) FROM ftrace_event) AS n, (SELECT count(*) FROM stats WHERE name "
                                       "GLOB 'trace_dat_*' AND value > 0 AND severity IN ('data_loss', 'error')) AS told"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True)
                self.assertIn(done.returncode, (0, 1), f"cut at {at}: {done.stderr}")
                if done.returncode == 0:
                    n, told = map(int, done.stdout.splitlines()[1].split(","))
                    self.assertTrue(n == all_events or told > 0, f"cut at {at}: {n} events and no word")
                else:
                    self.assertRegex(done.stderr, r"trace\.dat|format that is known")

    def test_memory_maps(self):
        """--proc-map: what processes had mapped, as the file's text has it."""
        with open(data("date"), "rb") as f:
            texts = re.findall(rb"([0-9a-f]+) ([0-9a-f]+) /[^\n]*\n((?:[0-9a-f]+ [0-9a-f]+ [^\n\0]+\n)+)", f.read())
        want = sorted((str(int(pid, 16)), str(int(line.split()[0], 16)), str(int(line.split()[1], 16)), line.split(b" ", 2)[2].decode())
                      for pid, n, lines in texts for line in lines.splitlines() if not line.startswith(b"ffffffff"))
        self.assertGreater(len(want), 10)
        rows = query("SELECT p.pid, m.start, m.end, m.name FROM stack_profile_mapping m JOIN __intrinsic_mmap_record r ON r.mapping_id = m.id "
                     "JOIN process p USING (upid) WHERE m.start > 0", data("date"))
        self.assertEqual(sorted((r["pid"], r["start"], r["end"], r["name"]) for r in rows), want)

    def test_large_pages(self):
        """Sub-buffers of 256 KiB; an event of 100,000 bytes in one of them is counted, those around it are there."""
        path = os.path.join(HERE, "large-pages.dat.gz")
        self.assertEqual(query("SELECT name, count(*) AS n FROM ftrace_event GROUP BY name", path), [{"name": "sched_switch", "n": "8"}])
        self.assertEqual(query("SELECT name, value FROM stats WHERE name GLOB 'trace_dat_*' AND value > 0", path),
                         [{"name": "trace_dat_unknown_event", "value": "1"}])

    def test_hooks_are_metadata(self):
        if "k612-hook" not in samples():
            self.skipTest("the sample is not here")
        self.assertEqual(query("SELECT str_value AS v FROM metadata WHERE name = 'trace_dat_hook'", data("k612-hook"))[0]["v"],
                         "sched_waking,pid/sched_switch,next_pid")

    def changed(self, contents, name="changed.dat"):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        path = os.path.join(d.name, name)
        with open(path, "wb") as f:
            f.write(contents)
        return path

    def stats(self, path):
        return {r["name"]: int(r["value"]) for r in query("SELECT name, sum(value) AS value FROM stats WHERE name GLOB 'trace_dat_*' AND value > 0 GROUP BY name", path)}

    def test_clocks_that_are_no_time(self):
        """The kernel's clocks of nanoseconds are known by name; all others count something else."""
        with open(data("synthetic-offset-v7"), "rb") as f:
            whole = f.read()
        for clock, told in (("local", 0), ("uptime", 0), ("tai", 0), ("counter", 1), ("x86-tsc", 1), ("hyp-clock", 1), ("s390-tod", 1)):
            path = self.changed(with_options(whole, [(4, b"[%s]\0" % clock.encode())]))
            self.assertEqual(self.stats(path).get("trace_dat_clock_without_time", 0), told, clock)
            path = self.changed(with_options(whole, [(4, b"[%s]\0" % clock.encode()), (14, struct.pack("<IIQ", 1 << 20, 20, 0))]))
            self.assertEqual(self.stats(path).get("trace_dat_clock_without_time", 0), clock == "counter", clock)

    def test_pages_of_old_kernels_are_refused(self):
        with open(data("synthetic-be32-v6"), "rb") as f:
            path = self.changed(f.read().replace(b"type_len    :    5 bits", b"type        :    2 bits", 1).replace(b"type_len", b"type    "))
        done = subprocess.run([SHELL, "query", path, "SELECT 1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("events begin without type_len", done.stderr)

    def test_recorder_that_died(self):
        """Version 6: the table of the CPUs is written last."""
        with open(data("synthetic-be32-v6"), "rb") as f:
            whole = bytearray(f.read())
        table = whole.index(b"flyrecord\0") + 10
        whole[table:table + 32] = bytes(32)
        path = self.changed(whole)
        self.assertEqual(query("SELECT count(*) AS n FROM ftrace_event", path)[0]["n"], "0")
        self.assertEqual(self.stats(path).get("trace_dat_truncated"), 1)

    def test_time_shift_that_breaks_off(self):
        with open(data("guests-guest2"), "rb") as f:
            whole = f.read()
        option = struct.pack("<QIIIQqqQ", 1, 0, 1, 1, 0, 0, 3, 1)
        self.assertNotIn("trace_dat_bad_section", self.stats(self.changed(with_options(whole, [(12, option)]))))
        for cut in (4, 12, 30):
            self.assertIn("trace_dat_bad_section", self.stats(self.changed(with_options(whole, [(12, option[:-cut])]))), cut)

    def test_the_same_bytes_again_and_again(self):
        """Many options that lead to one section, many CPUs that have the same data: a file holds no more than a thousand times its size."""
        with open(data("synthetic-le32-v7-zlib"), "rb") as f:
            whole = f.read()
        n = query("SELECT count(*) AS n FROM ftrace_event", data("synthetic-le32-v7-zlib"))[0]["n"]
        plain = struct.pack("<I", 4 << 20) + b"\n" * (4 << 20)
        packed = zlib.compress(plain, 9)
        section = struct.pack("<HHIQ", 19, 1, 0, len(packed) + 8) + struct.pack("<II", len(packed), len(plain)) + packed
        path = self.changed(with_options(whole + section, [(19, struct.pack("<Q", len(whole)))] * 4000))
        self.assertEqual(query("SELECT count(*) AS n FROM ftrace_event", path)[0]["n"], n)
        self.assertGreater(self.stats(path).get("trace_dat_bad_section"), 3900)
        packed = zlib.compress(bytes(16 << 20), 9)
        chunk = struct.pack("<III", 1, len(packed), 16 << 20) + packed
        rows = b"".join(struct.pack("<IQQ", cpu % 1000, len(whole) + 16, len(chunk)) for cpu in range(4000))
        buffer = struct.pack("<Q", len(whole)) + b"again\0mono\0" + struct.pack("<II", 4096, 4000) + rows
        path = self.changed(with_options(whole + struct.pack("<HHIQ", 3, 1, 0, len(chunk)) + chunk, [(3, buffer)]))
        self.assertEqual(query("SELECT count(*) AS n FROM ftrace_event", path)[0]["n"], n)
        told = self.stats(path)  # of 1,024 CPUs at most, each of which has its data in one place
        self.assertGreater(told.get("trace_dat_truncated"), 1000)
        self.assertEqual(told.get("trace_dat_bad_section"), 1)

    def test_latency_text_is_told(self):
        got = query("SELECT value FROM stats WHERE name = 'trace_dat_latency_text'", data("synthetic-latency-v6"))
        self.assertEqual(got[0]["value"], "1")


if __name__ == "__main__":
    unittest.main()

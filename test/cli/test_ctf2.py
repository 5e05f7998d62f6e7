"""CTF 2 beside another reader (actf): the same events, times and fields; LTTng's events in our tables; damage."""
import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import harness

HERE = pathlib.Path(os.environ["MERIDIAN_DATA"]) / "ctf2"
SHARED = pathlib.Path(os.environ.get("MERIDIAN_SHARED") or HERE.parent.parent.parent.parent / "shared") / "data" / "ctf2"


class Reading:
    """actf's text of one event: a value is a number, text, list, struct, or nil; labels follow numbers."""
    TOKEN = re.compile(r'\s*(?:(?P<float>-?\d+\.\d+)|(?P<hex>0x[0-9a-f]+)|(?P<int>-?\d+)(?![0-9a-z])|(?P<nil>nil)|"(?P<text>(?:[^"\\]|\\.)*)"'
                       r'|(?P<sign>[{}\[\],:])|(?P<word>[^\s:,{}\[\]]+))')

    def __init__(self, line):
        self.tokens, at = [], 0
        while m := self.TOKEN.match(line, at):
            self.tokens.append((m.lastgroup, m.group(m.lastgroup)))
            at = m.end()
        self.i = 0

    def peek(self, k=0):
        return self.tokens[self.i + k] if self.i + k < len(self.tokens) else (None, None)

    def take(self):
        self.i += 1
        return self.tokens[self.i - 1]

    def struct(self):
        """[(key, value)]; "{" has been taken."""
        out = []
        while self.peek() != ("sign", "}"):
            key = self.take()[1]
            assert self.take() == ("sign", ":")
            out.append((key, self.value()))
            if self.peek() == ("sign", ","):
                self.take()
        self.take()
        return out

    def value(self):
        kind, text = self.peek()
        if (kind, text) in (("sign", ","), ("sign", "}")):
            return ("blob", "")
        self.take()
        if (kind, text) == ("sign", "{") and self.peek() == ("sign", "{"):  # a variant's choice, in babeltrace's text
            chosen = self.value()
            self.take()
            return chosen
        if (kind, text) == ("sign", "{"):
            return ("struct", self.struct())
        if (kind, text) == ("sign", "["):
            items = []
            while self.peek() != ("sign", "]"):
                items.append(self.value())
                if self.peek() == ("sign", ","):
                    self.take()
            self.take()
            return ("list", items)
        if kind in ("int", "hex"):
            if kind == "int" and text.startswith("0") and len(text) > 1:
                return ("octal or blob", text)
            labels = None
            if self.peek() == ("sign", ":"):
                self.take()
                labels = []
                while True:
                    label_kind, label = self.take()
                    if label_kind != "nil":
                        labels.append(label)
                    if self.peek() != ("sign", ",") or self.peek(1)[0] != "text":
                        break
                    self.take()
            return ("number", int(text, 0) if kind == "hex" else int(text), labels)
        return (kind, text)


def as_other_reader(line):
    """A line of babeltrace's text, which it writes of traces of version 1.8, as the other reader has it."""
    m = re.match(r"timestamp = (\d+\.\d{9}), .*?, name = (\S+), stream\..*? event\.fields = (\{.*\})$", line)
    if not m:
        return line

    def turned(part):
        if part["number"]:
            label = part["label"].replace('"_', '"')  # LTTng's escape
            return f"{part['number']}: {'nil' if label == '<unknown>' else label}"
        return {"[": "", " ": ": ", "0": part[0].lower()}.get(part[0][0], part[0])
    fields = re.sub(r'\( (?P<label>"(?:[^"\\]|\\.)*"|<unknown>) : container = (?P<number>-?\w+) \)|"(?:[^"\\]|\\.)*"|\[\d+\] = | = |0x[0-9A-F]+', turned, m[3])
    return f"[{m[1]}] {m[2]}: {{ event-payload: {fields} }}"


def args_of(value, key, out):
    """What the args of a value are: {key: what the reading says}."""
    if value[0] == "struct":
        for k, v in value[1]:
            args_of(v, f"{key}.{k}" if key else k, out)
    elif value[0] == "list":
        for i, v in enumerate(value[1]):
            args_of(v, f"{key}[{i}]", out)
    elif value[0] != "nil":
        out[key] = value
    return out


class Ctf2(harness.Case):
    def folder(self, name):
        for base in (HERE, SHARED):
            if (base / name).exists():
                return base / name
        self.skipTest(f"{name} is not here")

    def rows(self, trace, sql):
        out = self.run_shell("query", "--format", "csv", str(trace), sql).stdout.decode()
        return list(csv.DictReader(io.StringIO(out)))

    def same(self, want, got, key, have):
        kind = want[0]
        if kind == "number" and (got["string_value"] or got["real_value"]) and f"{key}.flags" not in have:  # an enum of version 1.8 is its label; babeltrace writes whole reals as integers
            self.assertEqual([got["string_value"]] if want[2] else float(got["real_value"]), want[2] or want[1], key)
        elif kind == "number":
            if want[2] is not None and have.get(f"{key}.flags") is not None:
                self.assertEqual(int(got["string_value"], 16), want[1])
                self.assertEqual(set(have.pop(f"{key}.flags")["string_value"].split(",")), set(want[2]))
                return
            if want[1] % 2**64 != 2**63:  # the one number that args cannot hold
                self.assertEqual(int(got["int_value"]) % 2**64, want[1] % 2**64, key)
            labels = have.pop(f"{key}.name", None)
            self.assertEqual(set(labels["string_value"].split(",")) if labels else set(), set(want[2] or []), key)
        elif kind == "octal or blob":
            self.assertIn(want[1], (got["string_value"], "0%o" % int(got["int_value"] or 0)), key)
        elif kind == "float":
            self.assertEqual("%.6f" % float(got["real_value"]), "%.6f" % float(want[1]), key)
        else:  # babeltrace repeats a text that came before in place of an empty one
            stale = self.babeltrace and (key, want[1]) in self.texts and not got["string_value"]
            self.assertTrue(got["string_value"] == want[1] or stale, f"{key}: {got['string_value']}, not {want[1]}")
            self.texts.add((key, want[1]))

    def same_fields(self, where, payload, have):
        for key, value in payload.items():
            got = have.pop(key, None)
            self.assertIsNotNone(got, f"{where} has no {key}: {sorted(have)}")
            self.same(value, got, key, have)
        self.assertEqual(set(have) - {"log_level", "emf_uri"}, set(), where)  # they are the event class's
        return len(payload)

    def check(self, name):
        trace, self.texts, self.babeltrace = self.folder(name), set(), name.endswith("1.8")
        lines = [as_other_reader(line) for line in gzip.open(trace.parent / f"{name}.txt.gz", "rt").read().splitlines()]
        events = self.rows(trace, "select id, ts, name, arg_set_id, ucpu from ftrace_event order by ts, id")
        args = {}
        for row in self.rows(trace, "select arg_set_id, key, int_value, string_value, real_value from args"):
            args.setdefault(row["arg_set_id"], {})[row["key"]] = row
        self.assertEqual(len(events), len(lines))
        timed = [re.match(r"\[(\d+)\.(\d{9})\]", line) for line in lines]
        first = min(int(m[1]) * 10**9 + int(m[2]) for m in timed if m)
        wanted = []
        for line in lines:
            m = re.match(r"(?:\[(\d+)\.(\d{9})\] )?(.*?): \{ (.*)$", line)
            parts = dict(Reading(m[4]).struct())
            ts = int(m[1]) * 10**9 + int(m[2]) if m[1] else first  # without a clock: where the timeline begins
            payload = args_of(parts.get("event-payload", ("struct", [])), "", {})
            wanted.append((ts, m[3], payload))
        left = {}
        for e in events:
            left.setdefault((int(e["ts"]), e["name"]), []).append(e)
        checked = 0
        for ts, event, payload in wanted:
            self.assertIn((ts, event), left, f"{name}: {event} at {ts}")
            candidates = left[ts, event]
            for at in range(len(candidates)):  # of equal times and names the order is the file's, or that of another CPU
                try:
                    checked += self.same_fields(f"{name}: {event} at {ts}", payload, dict(args.get(candidates[at]["arg_set_id"], {})))
                    break
                except AssertionError:
                    if at == len(candidates) - 1:
                        raise
            del candidates[at]
            if not candidates:
                del left[ts, event]
        self.assertEqual(left, {})
        return checked

    def test_every_field_class(self):
        self.assertGreater(self.check("fields"), 90)
        told = self.rows(self.folder("fields"), "select sum(value) as n from stats where name = 'ctf_no_clock_records'")
        self.assertEqual(told, [{"n": "1"}])

    def test_metadata_in_packets(self):
        self.assertGreater(self.check("kernel-packetized"), 1000)

    def test_lttng_kernel(self):
        self.assertGreater(self.check("lttng-kernel"), 6000)

    def test_lttng_user_space(self):
        self.assertGreater(self.check("lttng-ust"), 300)

    def test_more_samples(self):
        for name in ("kernel", "ust", "lttng-kernel-1.8", "lttng-ust-1.8"):
            with self.subTest(name):
                self.check(name)

    def test_losses(self):
        rows = self.rows(self.folder("kernel-packetized"), "select name, value from stats where name glob 'ctf_*' and value")
        self.assertEqual([(r["name"], r["value"]) for r in rows], [("ctf_events_discarded", "7"), ("ctf_packets_lost", "1")])

    def test_kernel_tables(self):
        trace = self.folder("lttng-kernel")
        n = {r["name"]: int(r["n"]) for r in self.rows(trace, "select name, count(*) as n from ftrace_event group by name")}
        one = lambda sql: int(self.rows(trace, sql)[0]["n"])
        self.assertGreater(n["sched_switch"], 50)
        self.assertAlmostEqual(one("select count(*) as n from sched"), n["sched_switch"], delta=4)
        self.assertGreater(one("select count(*) as n from thread_state where state = 'S'"), 10)
        self.assertGreater(one("select count(*) as n from slice where name glob 'sys_*' and dur > 0"), 50)
        self.assertGreater(one("select count(*) as n from thread where name = 'ping'"), 0)
        self.assertEqual(self.rows(trace, "select sysname, release from machine")[0]["sysname"], "Linux")

    def test_user_space_slices(self):
        trace = self.folder("lttng-ust")
        rows = self.rows(trace, "select s.name, s.dur, t.name as thread, t.tid, p.pid from slice s join thread_track tt on s.track_id = tt.id "
                                "join thread t using (utid) join process p using (upid)")
        self.assertGreater(len(rows), 30)
        self.assertEqual({r["pid"] for r in rows}, {"168"})
        self.assertLess({"sample:request", "sample:reply"}, {r["name"] for r in rows})
        self.assertFalse([r for r in rows if r["name"].startswith("lttng_ust_statedump")])

    # ---- traces made here ----

    def make(self, name, events, stream, domain="ust", said=None):
        """A trace of one stream whose records have a u8 id and a u64 time. said: {number of an event: more of its class}."""
        u = lambda bits, **more: {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian",
                                  "alignment": 8, **more}
        member = lambda n, c: {"name": n, "field-class": c}
        text = {"type": "null-terminated-string"}
        fragments = [
            {"type": "preamble", "version": 2},
            {"type": "trace-class", "environment": {"domain": domain, "hostname": "made", "sysname": "Linux"}},
            {"type": "clock-class", "id": "c", "name": "monotonic", "frequency": 10**9, "origin": "unix-epoch"},
            {"type": "data-stream-class", "default-clock-class-id": "c",
             "event-record-header-field-class": {"type": "structure", "member-classes": [
                 member("id", u(8, roles=["event-record-class-id"])), member("t", u(64, roles=["default-clock-timestamp"]))]},
             "event-record-common-context-field-class": {"type": "structure", "member-classes": [
                 member("vpid", u(32)), member("vtid", u(32)), member("procname", text)]}},
        ] + [{"type": "event-record-class", "id": i, "name": n, **(said or {}).get(i, {}), **({"payload-field-class": {"type": "structure", "member-classes": [
            member(k, u(64) if c is int else text) for k, c in fields]}} if fields else {})} for i, (n, fields) in enumerate(events)]
        d = self.dir / name
        d.mkdir()
        (d / "metadata").write_text("".join("\x1e" + json.dumps(f) + "\n" for f in fragments))
        (d / "stream").write_bytes(b"".join(bytes([i]) + t.to_bytes(8, "little") + (7).to_bytes(4, "little") +
                                            (tid).to_bytes(4, "little") + b"prog\0" + payload for i, t, tid, payload in stream))
        return d

    def piece(self, path, packets, uid="u", instance=1, space="made.here", clocks=None, streams=("c",), name="made", files=None):
        """A directory with a stream of packets (time, sequence number, discarded so far), each with one event. A stream class for each of
        `streams`, the ids of their clocks; events of class k are the files of `files`[k]."""
        u = lambda bits, role: {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", "alignment": 8, "roles": [role]}
        struct_of = lambda **members: {"type": "structure", "member-classes": [{"name": n, "field-class": c} for n, c in members.items()]}
        fragments = [{"type": "preamble", "version": 2},
                     {"type": "trace-class", "namespace": space, "name": "t", **({"uid": uid} if uid else {}),
                      "environment": {"hostname": name, "domain": "kernel"} if name else {},
                      "packet-header-field-class": struct_of(c=u(8, "data-stream-class-id"), i=u(16, "data-stream-id"))}]
        fragments += clocks or [{"type": "clock-class", "id": "c", "frequency": 10**9, "origin": "unix-epoch"}]
        for k, clock in enumerate(streams):
            fragments += [{"type": "data-stream-class", "id": k, "default-clock-class-id": clock,
                           "packet-context-field-class": struct_of(n=u(16, "packet-total-length"), s=u(16, "packet-sequence-number"),
                                                                   d=u(16, "discarded-event-record-counter-snapshot")),
                           "event-record-header-field-class": struct_of(t=u(64, "default-clock-timestamp"))},
                          {"type": "event-record-class", "data-stream-class-id": k, "name": f"e{k}"}]
        path.mkdir(parents=True)
        (path / "metadata").write_text("".join("\x1e" + json.dumps(f) for f in fragments))
        for k, some in enumerate(files or [packets]):
            (path / f"stream{k}").write_bytes(b"".join(struct.pack("<BHHHHQ", k, instance, 17 * 8, seq, lost, t) for t, seq, lost in some))
        return path

    def losses(self, where):
        rows = self.rows(where, "select name, sum(value) as v from stats where name in ('ctf_events_discarded', 'ctf_packets_lost') group by 1 union all "
                         "select name, str_value from metadata where name = 'ctf_trace_uid'")
        return {r["name"][4:]: r["v"] for r in rows if r["v"] != "0"}

    def test_pieces_of_a_trace(self):
        """A rotated session: the numbers of packets and what was discarded go on from one directory to the next."""
        first, second = [(100, 0, 4), (110, 1, 5)], [(200, 3, 7), (210, 5, 7)]
        one = self.dir / "one"
        self.piece(one / "z", first)
        self.piece(one / "a", second)
        self.assertEqual(self.losses(one), {"events_discarded": "7", "packets_lost": "2", "trace_uid": "u"})
        files = self.piece(self.dir / "files", None, files=[first], streams=("c",))  # one directory, two files
        (files / "more").write_bytes(b"".join(struct.pack("<BHHHHQ", 0, 1, 17 * 8, seq, lost, t) for t, seq, lost in second))
        self.assertEqual(self.losses(files), {"events_discarded": "7", "packets_lost": "2", "trace_uid": "u"})
        for k, (more, uids) in enumerate([({"uid": "v"}, "v,u"), ({"space": "there"}, "u"), ({"instance": 2}, "u"), ({"uid": None}, "u")]):
            two = self.dir / f"two{k}"  # pieces of other traces, or other streams
            self.piece(two / "z", first)
            self.piece(two / "a", second, **more)
            self.assertEqual(self.losses(two), {"events_discarded": "12", "packets_lost": "1", "trace_uid": uids})

    def test_hosts_of_one_number(self):
        """A machine's number is 32 bits of the hash of its host, but for the first: the other two have the same, and are two machines."""
        names = ["first", "host112779", "host24653"]
        for name in names:
            self.piece(self.dir / "three" / name, [(100, 0, 0)], uid=name, name=name)
        self.assertEqual([r["name"] for r in self.rows(self.dir / "three", "select name from machine where name is not null order by name")], names)

    def test_several_clocks(self):
        """Clocks that count from the epoch show the same, each with its offset; LTTng's own among them is MONOTONIC. One with an origin of
        its own is told: nothing relates it."""
        clock = lambda name, seconds, **more: {"type": "clock-class", "id": name, "name": name, "frequency": 10**9,
                                               "offset-from-origin": {"seconds": seconds}, **more}
        clocks = [clock("wall", 3000, origin="unix-epoch"), clock("monotonic", 2000, origin="unix-epoch"), clock("own", 0, origin={"name": "x", "uid": "1"})]
        d = self.piece(self.dir / "clocks", None, clocks=clocks[:2], streams=("wall", "monotonic"), files=[[(5, 0, 0)], [(7, 0, 0)]])
        self.assertEqual(self.rows(d, "select name, ts, to_monotonic(ts) as m from ftrace_event order by ts"),
                         [{"name": "e1", "ts": str(2000 * 10**9 + 7), "m": "7"}, {"name": "e0", "ts": str(3000 * 10**9 + 5), "m": str(1000 * 10**9 + 5)}])
        told = "select sum(value) as n from stats where name = 'clock_sync_unrelatable_clock_domains'"
        self.assertEqual(self.rows(d, told)[0]["n"], "0")
        d = self.piece(self.dir / "apart", None, clocks=clocks, streams=("wall", "own"), files=[[(5, 0, 0)], [(7, 0, 0)]])
        self.assertEqual(self.rows(d, told)[0]["n"], "1")
        self.assertEqual(len(self.rows(d, "select 1 from ftrace_event")), 2)

    def test_equal_origins(self):
        """Clocks of two hosts with the same origin are the same."""
        for name, origins, want in (("same", ("1", "1"), ([["100", "e0"], ["150", "e0"]], "0")), ("other", ("1", "2"), ([["100", "e0"]], "1"))):
            for host, (t, uid) in enumerate(zip((100, 150), origins)):
                clocks = [{"type": "clock-class", "id": "c", "name": "c", "uid": f"{name}{host}", "frequency": 10**9,
                           "origin": {"namespace": "n", "name": "boot", "uid": uid}}]
                self.piece(self.dir / name / str(host), [(t, 0, 0)], uid=f"t{host}", clocks=clocks, name=f"host{host}")
            rows = [list(r.values()) for r in self.rows(self.dir / name, "select ts, name from ftrace_event order by ts")]
            told = int(self.rows(self.dir / name, "select sum(value) as n from stats where name = 'clock_sync_unrelatable_clock_domains'")[0]["n"])
            lost = self.rows(self.dir / name, "select sum(value) as n from stats where name = 'clock_sync_failure_unknown_source_clock'")[0]["n"]
            self.assertEqual((rows, told, lost), (want[0], 0, want[1]))

    def test_a_packet_larger_than_512_mib(self):
        u = lambda bits, **more: {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", "alignment": 8, **more}
        members = lambda *m: {"type": "structure", "member-classes": [{"name": n, "field-class": c} for n, c in m]}
        fragments = [{"type": "preamble", "version": 2}, {"type": "trace-class"},
                     {"type": "clock-class", "id": "c", "frequency": 10**9, "origin": "unix-epoch"},
                     {"type": "data-stream-class", "default-clock-class-id": "c",
                      "event-record-header-field-class": members(("t", u(64, roles=["default-clock-timestamp"])))},
                     {"type": "event-record-class", "name": "large", "payload-field-class": members(
                         ("n", u(32)), ("data", {"type": "dynamic-length-blob", "length-field-location": {"path": ["n"]}}),
                         ("pages", {"type": "structure", "minimum-alignment": 4096, "member-classes": [{"name": "end", "field-class": u(8)}]}))}]
        d = self.dir / "large"
        d.mkdir()
        (d / "metadata").write_text("".join("\x1e" + json.dumps(f) for f in fragments))
        with open(d / "stream", "wb") as f:
            for k, size in enumerate((5, 600 << 20, 7)):
                f.write(struct.pack("<Q", 100 + k))
                f.seek(-(-f.tell() // 512) * 512)
                f.write(struct.pack("<I", size))
                f.seek(-(-(f.tell() + size) // 512) * 512)
                f.write(bytes([77 + k]))
        self.assertEqual([list(r.values()) for r in self.rows(d, "select ts, (select int_value from args a where a.arg_set_id = e.arg_set_id and key = 'n') as n, "
                          "(select int_value from args a where a.arg_set_id = e.arg_set_id and key = 'pages.end') as last from ftrace_event e order by ts")],
                         [["100", "5", "77"], ["101", str(600 << 20), "78"], ["102", "7", "79"]])

    def test_pairs_are_slices(self):
        events = [("app:work_entry", [("n", int)]), ("app:work_exit", [("ret", int)]), ("app:io_begin", []), ("app:io_end", []),
                  ("app:lonely_begin", []), ("lttng_ust_cyg_profile:func_entry", [("addr", int)]),
                  ("lttng_ust_cyg_profile:func_exit", [("addr", int)])]
        n = lambda v: v.to_bytes(8, "little")
        d = self.make("pairs", events, [(0, 100, 8, n(5)), (2, 110, 8, b""), (5, 120, 9, n(0x1234)), (3, 150, 8, b""), (1, 200, 8, n(1)),
                                        (4, 210, 8, b""), (6, 300, 9, n(0x1234))])
        got = [(r["name"], r["ts"], r["dur"], r["depth"], r["tid"]) for r in self.rows(
            d, "select s.*, t.tid from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) order by s.ts")]
        self.assertEqual(got, [("app:work", "100", "100", "0", "8"), ("app:io", "110", "40", "1", "8"),
                               ("0x1234", "120", "180", "0", "9"), ("app:lonely_begin", "210", "0", "0", "8")])
        args = {r["key"]: r["int_value"] for r in self.rows(d, "select key, int_value from args join slice using (arg_set_id) where name = 'app:work'")}
        self.assertEqual(args, {"n": "5", "ret": "1"})

    def test_calls_that_end_without_an_address(self):
        """lttng_ust_cyg_profile_fast says which function begins, and only that one ends."""
        n = lambda v: v.to_bytes(8, "little")
        d = self.make("fast", [("lttng_ust_cyg_profile_fast:func_entry", [("addr", int)]), ("lttng_ust_cyg_profile_fast:func_exit", [])],
                      [(0, 100, 8, n(0xa)), (0, 110, 8, n(0xb)), (1, 120, 8, b""), (0, 130, 8, n(0xc)), (1, 140, 8, b""), (1, 150, 8, b"")])
        got = [(r["name"], r["ts"], r["dur"], r["depth"]) for r in self.rows(d, "select name, ts, dur, depth from slice order by ts")]
        self.assertEqual(got, [("0xa", "100", "50", "0"), ("0xb", "110", "10", "1"), ("0xc", "130", "10", "1")])

    def test_lines_of_logs(self):
        """Each logger has priorities of its own; the class says that of tracelog."""
        n = lambda v: v.to_bytes(8, "little", signed=True)
        logger = [("msg", str), ("logger_name", str)]
        events = [("lttng_jul:event", logger + [("log_level", int)]), ("lttng_log4j:event", logger + [("log_level", int)]),
                  ("lttng_log4j2:event", logger + [("log_level", int)]), ("lttng_python:event", logger + [("int_loglevel", int)]),
                  ("lttng_ust_tracelog:TRACE_WARNING", [("line", int), ("file", str), ("func", str), ("msg", str)]),
                  ("lttng_ust_tracef:event", [("msg", str)]), ("lttng_julia:event", [("msg", str)])]
        levels = {0: [(1000, 6), (900, 5), (899, 4), (800, 4), (700, 3), (500, 3), (400, 2), (-2**31, 2)],
                  1: [(50000, 7), (40000, 6), (30000, 5), (20000, 4), (10000, 3), (5000, 2)], 2: [(40000, 6)],
                  3: [(50, 7), (40, 6), (30, 5), (20, 4), (10, 3), (0, 2)]}
        stream, want = [], []
        for event, tried in levels.items():
            for level, prio in tried:
                stream.append((event, len(stream), 8, f"m{level}\0".encode() + b"a.b\0" + n(level)))
                want.append([events[event][0].split(":")[0], "a.b", f"m{level}", str(prio), "8"])
        stream += [(4, 100, 9, n(12) + b"f.c\0main\0late\0"), (5, 101, 9, "é\0".encode()), (6, 102, 9, b"no log\0")]
        want += [["lttng_ust_tracelog", "f.c:12", "late", "5", "9"], ["lttng_ust_tracef", "", "é", "3", "9"]]
        said = {4: {"attributes": {"lttng.org,2009": {"log-level": "warning"}}}}
        d = self.make("logs", events, stream, said=said)
        rows = self.rows(d, "select log_source, tag, msg, prio, tid from logs left join thread using (utid) order by ts")
        self.assertEqual([list(r.values()) for r in rows], want)
        line = self.rows(d, "select int_value as v from args join logs using (arg_set_id) where key = 'line'")
        self.assertEqual(line, [{"v": "12"}])
        self.assertEqual(self.rows(d, "select count(*) as n from slice")[0]["n"], str(len(stream)))  # they stay instants

    def test_programs_of_a_process(self):
        """Where files are mapped is told again whenever tracing starts, by each process of its own."""
        n = lambda v: v.to_bytes(8, "little")
        load = [("baddr", int), ("memsz", int), ("path", str)]
        events = [("lttng_ust_statedump:bin_info", load + [("is_pic", int), ("has_build_id", int)]), ("lttng_ust_lib:load", load),
                  ("lttng_ust_statedump:procname", [("procname", str)])]
        fixed = (0, 1, 7, n(0x400000) + n(0x1000) + b"/bin/a\0" + n(0) + n(0))
        stream = [fixed, (1, 2, 8, n(0x7f0000000000) + n(0x2000) + b"/lib/b.so\0"), (0, 3) + fixed[2:], (1, 4, 8, n(0x7f0000000000) + n(0x3000) + b"/lib/c.so\0"),
                  (0, 5, 8, n(2**64 - 1) + n(2**64 - 1) + b"\0" + n(1) + n(0)), (2, 6, 8, b"named\0")]
        d = self.make("programs", events, stream)
        rows = self.rows(d, 'select name, printf("%x", start) as s, printf("%x", "end") as e, printf("%x", load_bias) as b from stack_profile_mapping')
        self.assertEqual([list(r.values()) for r in rows], [["/bin/a", "400000", "401000", "400000"], ["/lib/b.so", "7f0000000000", "7f0000002000", "0"],
                                                            ["/lib/c.so", "7f0000000000", "7f0000003000", "0"],
                                                            ["", "ffffffffffffffff", "fffffffffffffffe", "0"]])
        self.assertEqual(self.rows(d, "select name from process where pid = 7"), [{"name": "prog"}])
        for sample, ids in (("lttng-ust", 7), ("lttng-ust-1.8", 7)):  # recorded; the kernel's part has no file
            rows = self.rows(self.folder(sample), "select count(*) as n, sum(length(build_id) = 40) as ids, sum(name = '/bin/ustapp') as own from stack_profile_mapping")
            self.assertEqual(list(rows[0].values()), ["8", str(ids), "1"])
            rows = self.rows(self.folder(sample), "select distinct string_value as v from args join ftrace_event using (arg_set_id) "
                                                  "where name = 'sample:request' and key = 'log_level'")
            self.assertEqual(rows, [{"v": "info"}])

    def test_woken_once(self):
        """A wakeup follows its waking: the thread is runnable from the first on. Where only wakeups were recorded, from those."""
        n = lambda v: v.to_bytes(8, "little")
        woken = lambda tid: b"w\0" + n(tid) + n(20) + n(0)
        switch = lambda prev, state, to: b"a\0" + n(prev) + n(20) + n(state) + b"b\0" + n(to) + n(20)
        wake = [("comm", str), ("tid", int), ("prio", int), ("target_cpu", int)]
        kinds = [("sched_switch", [("prev_comm", str), ("prev_tid", int), ("prev_prio", int), ("prev_state", int), ("next_comm", str),
                                   ("next_tid", int), ("next_prio", int)]), ("sched_wakeup", wake), ("sched_wakeup_new", wake)]
        events = [(0, 100, 8, switch(8, 1, 9)), (1, 160, 9, woken(8)), (0, 200, 9, switch(9, 1, 8)), (2, 210, 8, woken(20)),
                  (0, 220, 8, switch(8, 0, 20))]
        states = ("select s.ts, s.state from thread_state s join thread using (utid) where tid = {} order by s.ts").format
        fork = [("parent_comm", str), ("parent_tid", int), ("parent_pid", int), ("child_comm", str), ("child_tid", int), ("child_pid", int)]
        forked = b"a\0" + n(8) + n(8) + b"w\0" + n(20) + n(20)
        for name, more, at, since, new in (("wakeups", [], [], "160", "210"), ("both", [("sched_waking", wake)], [(3, 150, 9, woken(8))], "150", "210"),
                                           ("forks", [("sched_process_fork", fork)], [(3, 205, 8, forked)], "160", "205")):
            with self.subTest(name):
                d = self.make(name, kinds + more, sorted(events + at, key=lambda e: e[1]), domain="kernel")
                self.assertEqual([(r["ts"], r["state"]) for r in self.rows(d, states(8))],
                                 [("100", "S"), (since, "R"), ("200", "Running"), ("220", "R")])
                self.assertEqual([(r["ts"], r["state"]) for r in self.rows(d, states(20))], [(new, "R"), ("220", "Running")])
                self.assertEqual(self.rows(d, "select count(*) as n from spurious_sched_wakeup")[0]["n"], "0")
                self.assertEqual(self.rows(d, "select count(*) as n from ftrace_event")[0]["n"], str(len(events) + len(at)))

    def test_kernel_cpus_and_block_io(self):
        """Frequencies, idle states and block io are where those of ftrace are."""
        events = [("power_cpu_frequency", [("state", int), ("cpu_id", int)]), ("power_cpu_idle", [("state", int), ("cpu_id", int)]),
                  ("block_io_start", [("dev", int), ("sector", int)]), ("block_io_done", [("dev", int), ("sector", int)])]
        n = lambda *v: b"".join(x.to_bytes(8, "little") for x in v)
        d = self.make("power", events, [(0, 100, 8, n(1800000, 3)), (2, 110, 8, n(0x800010, 64)), (1, 120, 8, n(2, 1)),
                                        (2, 125, 8, n(0x800011, 72)), (3, 130, 8, n(0x800010, 64)), (1, 140, 8, n(2**32 - 1, 1)),
                                        (0, 150, 8, n(1, 2**63))], domain="kernel")
        got = [(r["name"], r["cpu"], r["ts"], r["value"]) for r in self.rows(
            d, "select t.name, t.cpu, c.ts, cast(c.value as int) as value from counter c join cpu_counter_track t on c.track_id = t.id order by c.ts")]
        self.assertEqual(got, [("cpufreq", "3", "100", "1800000"), ("cpuidle", "1", "120", "2"), ("cpuidle", "1", "140", "4294967295")])
        got = [(r["name"], r["ts"], r["dur"], r["sector"]) for r in self.rows(
            d, "select name, ts, dur, extract_arg(arg_set_id, 'sector') as sector from slice order by ts")]
        self.assertEqual(got, [("block_io", "110", "20", "64"), ("block_io", "125", "-1", "72")])

    def test_events_that_ftrace_has_by_other_names(self):
        """Timers, interrupts of the local timer, work, packets and signals make what ftrace's make."""
        n = lambda *v: b"".join(x.to_bytes(8, "little") for x in v)
        timer, work = [("hrtimer", int), ("now", int), ("function", int)], [("work", int), ("function", int)]
        signal = [("sig", int), ("errno", int), ("code", int), ("comm", str), ("tid", int), ("group", int), ("result", int)]
        events = [("timer_hrtimer_expire_entry", timer), ("timer_hrtimer_expire_exit", [("hrtimer", int)]), ("x86_irq_vectors_local_timer_entry", [("vector", int)]),
                  ("x86_irq_vectors_local_timer_exit", [("vector", int)]), ("workqueue_execute_start", work), ("workqueue_execute_end", [("work", int)]),
                  ("net_if_receive_skb", [("skbaddr", int), ("len", int), ("name", str)]), ("signal_generate", signal),
                  ("sched_process_exec", [("filename", str), ("tid", int), ("old_tid", int)]),
                  ("lttng_statedump_interrupt", [("irq", int), ("name", str), ("action", str)]),
                  ("lttng_statedump_cpu_topology", [("architecture", str), ("cpu_id", int), ("model_name", str)])]
        d = self.make("others", events, [(9, 90, 8, n(24) + b"IO-APIC\0eth0\0"), (10, 91, 8, b"x86\0" + n(0) + b"A processor\0"),
                                         (0, 100, 8, n(1, 2, 0xabc)), (1, 130, 8, n(1)), (2, 200, 8, n(236)), (3, 210, 8, n(236)),
                                         (4, 300, 8, n(5, 0xdef)), (5, 340, 8, n(5)), (6, 400, 8, n(1, 1500) + b"eth0\0"),
                                         (7, 500, 8, n(9, 0, 0) + b"victim\0" + n(77, 1, 0)), (8, 600, 8, b"/usr/bin/a-program-of-a-long-name\0" + n(8, 8))],
                      domain="kernel")
        got = {(r["type"], r["name"], r["ts"], r["dur"]) for r in self.rows(d, "select t.type, s.name, s.ts, s.dur from slice s join track t on s.track_id = t.id")}
        of = {(ts, dur): (kind, name) for kind, name, ts, dur in got}
        self.assertEqual(sorted(k for k in of if k[1] != "0"), [("100", "30"), ("200", "10"), ("300", "40")])
        self.assertIn("0xabc", of["100", "30"][1])
        self.assertIn("0xdef", of["300", "40"][1])
        counters = self.rows(d, "select t.name, cast(c.value as int) as v from counter c join counter_track t on c.track_id = t.id")
        self.assertEqual([(r["name"], r["v"]) for r in counters], [("eth0 Received KB", "1")])
        self.assertEqual(self.rows(d, "select name from thread where tid = 8")[0]["name"], "a-program-of-a-")
        self.assertEqual([list(r.values()) for r in self.rows(d, "select irq_id, name from _linux_interrupt_mapping")], [["24", "eth0"]])
        self.assertEqual(self.rows(d, "select processor from cpu where cpu = 0")[0]["processor"], "A processor")
        self.assertEqual(self.rows(d, "select count(*) as n from ftrace_event")[0]["n"], "11")

    def test_calls_have_the_args_of_entry_and_return(self):
        """A call around another one that was never seen to end, one that returns nothing, and one whose entry was lost."""
        n = lambda *v: b"".join(x.to_bytes(8, "little") for x in v)
        events = [("syscall_entry_read", [("fd", int), ("path", str)]), ("syscall_exit_read", [("ret", int)]), ("syscall_entry_exit", []), ("syscall_exit_exit", [])]
        d = self.make("calls", events, [(1, 90, 8, n(1)), (0, 100, 8, n(3) + b"a\0"), (1, 110, 8, n(5)), (0, 120, 8, n(4) + b"b\0"), (0, 130, 8, n(5) + b"c\0"),
                                        (1, 140, 8, n(6)), (2, 150, 8, b""), (3, 160, 8, b"")], domain="kernel")
        rows = self.rows(d, "select name, ts, dur, extract_arg(arg_set_id, 'fd') as fd, extract_arg(arg_set_id, 'path') as path, extract_arg(arg_set_id, 'ret') as ret "
                            "from slice order by ts")
        self.assertEqual([list(r.values()) for r in rows], [["sys_read", "100", "10", "3", "a", "5"], ["sys_read", "120", "-1", "4", "b", ""],
                                                            ["sys_read", "130", "10", "5", "c", "6"], ["sys_exit", "150", "10", "", "", ""]])

    def test_cut_everywhere(self):
        """Cut at any byte: what came before is there, and the loss is told."""
        d = self.make("whole", [("app:a", [("s", str)])], [(0, 100 + i, 8, b"t\0") for i in range(2)])
        whole = (d / "stream").read_bytes()
        size = len(whole) // 2
        for cut in range(len(whole) + 1):
            (d / "stream").write_bytes(whole[:cut])
            rows = self.rows(d, "select (select count(*) from ftrace_event) as n, (select sum(value) from stats where name = 'ctf_packets_damaged') as bad")
            self.assertEqual(int(rows[0]["n"]), cut // size)
            self.assertEqual(int(rows[0]["bad"] or 0), int(cut % size != 0))

    def test_metadata_cut_everywhere(self):
        source = self.folder("lttng-ust")
        d = self.dir / "cut"
        shutil.copytree(source, d)
        os.chmod(d / "metadata", 0o644)
        whole = (d / "metadata").read_bytes()
        for cut in range(0, len(whole), len(whole) // 12):
            (d / "metadata").write_bytes(whole[:cut])
            p = subprocess.run([harness.SHELL, "query", d, "select count(*) from ftrace_event"], capture_output=True, timeout=60)
            self.assertIn(p.returncode, (0, 1), p.stderr)
            self.assertNotIn(b"Sanitizer", p.stderr)

    def test_what_is_refused(self):
        d = self.make("bad", [("app:a", [])], [(0, 1, 8, b"")])
        good = (d / "metadata").read_text()
        for old, new, says in (('"version": 2', '"version": 3', "version 3 of CTF is not known"),
                               ('"version": 2}', '"version": 2, "extensions": {"some.org": {"x": {}}}}', "the extension 'x' of 'some.org' is not known"),
                               ('"default-clock-class-id": "c"', '"default-clock-class-id": "d"', "no clock class has the id 'd'"),
                               ('"length": 8,', '"length": 65,', "integer of 65 bits"),
                               ('"structure"', '"strukture"', "unknown field class type 'strukture'"),
                               ('"frequency": 1000000000', '"frequency": 0', "has frequency 0"),
                               ('"alignment": 8', '"alignment": 7', "alignment 7 is not a power of two"),
                               ('"byte-order": "little-endian"', '"byte-order": "middle"', "byte-order 'middle'"),
                               ("\x1e", "", "")):
            with self.subTest(new):
                (d / "metadata").write_text(good.replace(old, new, 1))
                self.fails("query", d, "select 1", text=says)


if __name__ == "__main__":
    harness.main()

"""What CTF 2 may hold, rule by rule, on made traces of one event."""
import csv
import io
import json
import resource
import struct

import harness

SECOND = 10**9
COUNT = "SELECT count(*) AS n FROM ftrace_event"
TIMES = "SELECT ts FROM ftrace_event ORDER BY ts"


def number(bits, order="little-endian", signed=False, **more):
    return {"type": f"fixed-length-{'' if signed else 'un'}signed-integer", "length": bits, "byte-order": order, **more}


def role(bits, name):
    return number(bits, roles=[name])


def real(bits, order="little-endian"):
    return {"type": "fixed-length-floating-point-number", "length": bits, "byte-order": order}


def struct_of(*members):
    return {"type": "structure", "member-classes": [{"name": n, "field-class": c} for n, c in members]}


def at(*path, **more):
    return {"path": list(path), **more}


def list_of(element, location):
    return {"type": "dynamic-length-array", "length-field-location": location, "element-field-class": element}


def optional(location, **more):
    return {"type": "optional", "field-class": BYTE, "selector-field-location": location, **more}


BYTE = number(8)
BOOLEAN = {"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"}
PAYLOAD = struct_of(("a", BYTE))
ID, STAMP = role(8, "event-record-class-id"), role(64, "default-clock-timestamp")
CLOCK = {"type": "clock-class", "id": "c", "name": "clk", "frequency": SECOND, "origin": "unix-epoch", "offset-from-origin": {"seconds": 1000, "cycles": 0}}


def metadata(payload=PAYLOAD, preamble={}, before=[], trace=None, clock=CLOCK, header=struct_of(("id", ID), ("ts", STAMP)), context=None, event={}):
    fragments = [{"type": "preamble", "version": 2, **preamble}, *before]
    fragments += [{"type": "trace-class", **trace}] if trace else []
    fragments += [clock] if clock else []
    stream = {"type": "data-stream-class", "event-record-header-field-class": header}
    if clock:
        stream["default-clock-class-id"] = "c"
    if context:
        stream["packet-context-field-class"] = context
    fragments += [stream, {"type": "event-record-class", "id": 1, "name": "ev", "payload-field-class": payload, **event}]
    return b"".join(b"\x1e" + json.dumps(f).encode() + b"\n" for f in fragments)


def event(ts, payload=b"\1"):
    return struct.pack("<BQ", 1, ts) + payload


class Ctf2Rules(harness.Case):
    def made(self, text, stream):
        folder = self.dir / "trace"
        folder.mkdir(exist_ok=True)
        (folder / "metadata").write_bytes(text)
        (folder / "stream").write_bytes(stream)
        return folder

    def rows(self, text, stream, sql):
        out = self.run_shell("query", self.made(text, stream), sql).stdout.decode()
        return [list(r.values()) for r in csv.DictReader(io.StringIO(out))]

    def args(self, payload, data, **kw):
        return dict(self.rows(metadata(payload, **kw), event(5, data), "SELECT key, display_value FROM args JOIN ftrace_event USING (arg_set_id)"))

    def told(self, text, stream):
        return {name: int(n) for name, n in self.rows(text, stream, "SELECT name, sum(value) AS n FROM stats WHERE name GLOB 'ctf_*' AND value > 0 GROUP BY 1")}

    def test_orders_of_bits_and_bytes(self):
        payload = struct_of(("a", number(8, **{"bit-order": "last-to-first"})), ("b", BYTE), ("c", number(16, "big-endian", **{"bit-order": "first-to-last"})),
                            ("d", number(12)), ("e", number(4)), ("f", number(16, "big-endian")))
        turned = lambda v, n: int(format(v, f"0{n}b")[::-1], 2)
        self.assertEqual(self.args(payload, b"\x12\x12\x12\x34\x34\x52\x01\x02"), {k: str(v) for k, v in (
            ("a", turned(0x12, 8)), ("b", 0x12), ("c", turned(0x1234, 16)), ("d", 0x234), ("e", 5), ("f", 0x102))})

    def test_reals(self):
        got = self.args(struct_of(("a", real(16)), ("b", real(16, "big-endian")), ("least", real(16)), ("f", real(32)), ("d", real(64, "big-endian"))),
                        struct.pack("<e", -1.5) + struct.pack(">e", 65504) + b"\1\0" + struct.pack("<f", 0.25) + struct.pack(">d", 2.0**1000))
        self.assertEqual([float(got[k]) for k in ("a", "b", "f")], [-1.5, 65504, 0.25])
        self.assertAlmostEqual(float(got["least"]) * 2**24, 1)
        self.assertAlmostEqual(float(got["d"]) / 2.0**1000, 1)

    def test_numbers_of_variable_length(self):
        variable = lambda sign: {"type": f"variable-length-{sign}signed-integer"}
        self.assertEqual(self.args(struct_of(("u", variable("un")), ("s", variable("")), ("m", variable("")), ("z", variable("un"))),
                                   b"\xe5\x8e\x26\x7f\xc0\xbb\x78\0"), {"u": "624485", "s": "-1", "m": "-123456", "z": "0"})

    def test_names_of_numbers(self):
        some = number(8, mappings={"low": [[0, 9]], "five": [[5, 5]]})
        self.assertEqual(self.args(struct_of(("x", some)), b"\5"), {"x": "5", "x.name": "low,five"})
        self.assertEqual(self.args(struct_of(("x", some)), b"\x64"), {"x": "100"})
        self.assertEqual(self.args(struct_of(("x", number(64, mappings={"top": [[2**64 - 1, 2**64 - 1]]}))), b"\xff" * 8)["x.name"], "top")
        signed = number(64, signed=True, mappings={"least": [[-2**63, -2**63]], "minus": [[-1, -1]]})
        self.assertEqual(self.args(struct_of(("x", signed)), b"\xff" * 8), {"x": "-1", "x.name": "minus"})
        bits = {"type": "fixed-length-bit-map", "length": 8, "byte-order": "little-endian", "flags": {"a": [[0, 0]], "b": [[1, 2]], "c": [[7, 7]]}}
        self.assertEqual(self.args(struct_of(("x", bits), ("y", BOOLEAN)), b"\5\x40"), {"x": "0x5", "x.flags": "a,b", "y": "1"})

    def test_many_names_of_numbers(self):
        """They are found, not looked through: 60,000 events beside 20,000 names took 3 s. Of those that overlap, the ones that begin last."""
        for signed in (False, True):
            names = {f"m{i}": [[4 * i - 8 * signed, 4 * i + 2 - 8 * signed]] for i in range(20000, -1, -1)}
            names.update({"again": [[8, 8]], "far": [[-(2**31) if signed else 2**31, -(2**31) + 5 if signed else 2**32 - 1]]})
            text = metadata(struct_of(("a", number(32, signed=signed, mappings=names))))
            values = [0, 3, 8, 9, 4 * 20000, 4 * 20000 + 3, -8, -(2**31) + 5, 2**31 + 7]
            shift = 8 * signed
            name = lambda v: [n for n, ok in ((f"m{(v + shift) // 4}", 0 <= v + shift <= 80002 and (v + shift) % 4 < 3), ("again", v == 8),
                                              ("far", v >= 2**31 or v < -(2**30))) if ok]
            values = [v for v in values if (-(2**31) <= v < 2**31 if signed else v >= 0)]
            stream = b"".join(event(i, struct.pack("<i" if signed else "<I", v)) for i, v in enumerate(values))
            got = self.rows(text, stream, "SELECT ts % 1000000000, group_concat(display_value, '|') FROM ftrace_event LEFT JOIN args USING (arg_set_id) GROUP BY 1")
            self.assertEqual(got, [[str(i), "|".join([str(v)] + ([",".join(name(v))] if name(v) else []))] for i, v in enumerate(values)])
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.assertEqual(self.rows(text, b"".join(event(i, struct.pack("<i", 10**6 + i)) for i in range(60000)), COUNT), [["60000"]])
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 2)

    def test_texts_and_blobs(self):
        text = lambda encoding: {"type": "null-terminated-string", "encoding": encoding}
        payload = struct_of(("a", {"type": "null-terminated-string"}), ("b", text("utf-16le")), ("c", text("utf-32be")), ("s", {"type": "static-length-string", "length": 6}),
                            ("n", BYTE), ("d", {"type": "dynamic-length-string", "length-field-location": at("n"), "encoding": "utf-16be"}),
                            ("e", {"type": "static-length-blob", "length": 3}), ("f", {"type": "static-length-blob", "length": 65, "media-type": "image/x"}))
        data = "é\0".encode() + "ä€\0".encode("utf-16le") + "🙂\0".encode("utf-32be") + b"ab\0zzz\4" + "xy".encode("utf-16be") + b"\1\2\3" + bytes(65)
        self.assertEqual(self.args(payload, data), {"a": "é", "b": "ä€", "c": "🙂", "s": "ab", "n": "4", "d": "xy", "e": "010203", "f": "65 bytes of image/x"})

    def test_choices(self):
        """By ranges of a number, or by a boolean; a number that no option has is damage."""
        ranges = lambda *r: {"selector-field-ranges": list(r)}
        variant = {"type": "variant", "selector-field-location": at("i"), "options": [
            {"name": "x", "field-class": BYTE, **ranges([0, 2])}, {"name": "y", "field-class": struct_of(("q", number(16))), **ranges([3, 9])}]}
        payload = struct_of(("t", BOOLEAN), ("o", optional(at("t"))), ("i", BYTE), ("p", optional(at("i"), **ranges([3, 4]))), ("v", variant))
        self.assertEqual(self.args(payload, b"\1\7\3\x09\x34\x12"), {"t": "1", "o": "7", "i": "3", "p": "9", "v.q": str(0x1234)})
        self.assertEqual(self.args(payload, b"\0\2\x55"), {"t": "0", "i": "2", "v": "85"})
        self.assertEqual(self.told(metadata(payload), event(5, b"\0\x20\x55")), {"ctf_packets_damaged": 1})

    def test_places_of_lengths_and_selectors(self):
        """In the element that is being read, by the whole path, or up from where the field is."""
        element = struct_of(("k", BYTE), ("m", optional(at("k"), **{"selector-field-ranges": [[1, 1]]})))
        whole = struct_of(("n", BYTE), ("a", list_of(element, at("n"))), ("in", struct_of(("b", list_of(BYTE, at("n", origin="event-record-payload"))))))
        self.assertEqual(self.args(whole, b"\2\1\x44\0\x08\x09"), {"n": "2", "a[0].k": "1", "a[0].m": "68", "a[1].k": "0", "in.b[0]": "8", "in.b[1]": "9"})
        self.assertEqual(self.args(struct_of(("n", BYTE), ("in", struct_of(("a", list_of(BYTE, at(None, "n")))))), b"\1\5"), {"n": "1", "in.a[0]": "5"})

    def test_bits_that_are_no_bytes(self):
        flags = {"type": "fixed-length-bit-map", "length": 12, "byte-order": "big-endian", "flags": {"a": [[0, 0]], "b": [[4, 11]], "none": [[63, 70]]}}
        self.assertEqual(self.args(struct_of(("x", flags), ("y", number(4, "big-endian"))), bytes([0x80, 0x17])), {"x": "0x801", "x.flags": "a,b", "y": "7"})
        three = {"type": "static-length-array", "length": 3, "element-field-class": number(3)}
        self.assertEqual(self.args(struct_of(("a", three), ("z", number(7))), bytes([0b10001001, 0b11])), {"a[0]": "1", "a[1]": "1", "a[2]": "6", "z": "1"})
        bit = {"type": "fixed-length-boolean", "length": 1, "byte-order": "little-endian"}
        self.assertEqual(self.args(struct_of(("x", bit), ("y", {**bit, "length": 7})), b"\1"), {"x": "1", "y": "0"})

    def test_scopes_of_lengths_and_options(self):
        """Of the contexts, of what an option holds; options are chosen by numbers below zero, too."""
        list_at = lambda *path, **more: struct_of(("l", list_of(BYTE, at(*path, **more))))
        context = {"specific-context-field-class": struct_of(("n", BYTE))}
        self.assertEqual(self.args(list_at("n", origin="event-record-specific-context"), b"\2\7\x08", event=context), {"l[0]": "7", "l[1]": "8"})
        common = b'"event-record-common-context-field-class": ' + json.dumps(struct_of(("n", BYTE))).encode() + b', "event-record-header-field-class"'
        text = metadata(list_at("n", origin="event-record-common-context")).replace(b'"event-record-header-field-class"', common)
        self.assertEqual(self.rows(text, event(5, b"\1\x09"), "SELECT key, display_value FROM args JOIN ftrace_event USING (arg_set_id)"), [["l[0]", "9"]])
        for origin, text in (("packet-context", metadata(list_at("n", origin="packet-context"), context=struct_of(("n", BYTE)))),
                             ("event-record-header", metadata(list_at("id", origin="event-record-header")))):
            self.assertEqual(self.told(text, (b"\1" if origin == "packet-context" else b"") + event(5, b"\x2a")), {"ctf_events_without_args": 1}, origin)
        choose = lambda *options: {"type": "variant", "selector-field-location": at("i"), "options": [
            {"name": n, "field-class": c, "selector-field-ranges": [r]} for n, c, r in options]}
        minus = struct_of(("i", number(8, signed=True)), ("v", choose(("m", BYTE, [-5, -1]), ("p", number(16), [0, 9]))))
        self.assertEqual(self.args(minus, b"\xfe\x07"), {"i": "-2", "v": "7"})
        inside = struct_of(("i", BYTE), ("v", choose(("m", struct_of(("n", BYTE)), [1, 1]), ("q", BYTE, [2, 2]))), ("l", list_of(BYTE, at("v", "n"))))
        self.assertEqual(self.args(inside, b"\1\2\7\x08"), {"i": "1", "v.n": "2", "l[0]": "7", "l[1]": "8"})
        blob = struct_of(("n", BYTE), ("d", {"type": "dynamic-length-blob", "length-field-location": at("n")}), ("z", BYTE))
        self.assertEqual(self.args(blob, b"\2\xaa\xbb\5"), {"n": "2", "d": "aabb", "z": "5"})

    def test_alignment_in_structures(self):
        """From the begin of the packet: the event's header has 9 bytes. What is optional aligns itself alone, when it is there."""
        aligned = {**struct_of(("b", BYTE)), "minimum-alignment": 32}
        self.assertEqual(self.args(struct_of(("a", BYTE), ("s", aligned), ("c", BYTE)), b"...\1...\2\3"), {"a": "1", "s.b": "2", "c": "3"})
        wide = number(32, alignment=32)
        maybe = {"type": "optional", "field-class": wide, "selector-field-location": at("a"), "selector-field-ranges": [[2, 2]]}
        self.assertEqual(self.args(struct_of(("a", BYTE), ("o", maybe), ("c", BYTE)), b"\1\3"), {"a": "1", "c": "3"})
        self.assertEqual(self.args(struct_of(("a", BYTE), ("o", maybe), ("c", BYTE)), b"\2..\5\0\0\0\3"), {"a": "2", "o": "5", "c": "3"})
        choice = {"type": "variant", "selector-field-location": at("a"), "options": [{"name": "w", "field-class": wide, "selector-field-ranges": [[1, 1]]},
                                                                                     {"name": "n", "field-class": BYTE, "selector-field-ranges": [[2, 2]]}]}
        self.assertEqual(self.args(struct_of(("a", BYTE), ("v", choice)), b"\1..\5\0\0\0"), {"a": "1", "v": "5"})
        self.assertEqual(self.args(struct_of(("a", BYTE), ("v", choice)), b"\2\6"), {"a": "2", "v": "6"})

    def test_headers_that_say_little_or_twice(self):
        """Of several ids and times the last ones count; without any the numbers are 0, and the time is the packet's."""
        twice = metadata(header=struct_of(("id", ID), ("again", ID), ("short", role(16, "default-clock-timestamp")), ("ts", STAMP)))
        self.assertEqual(self.rows(twice, struct.pack("<BBHQ", 9, 1, 500, 700) + b"\1", TIMES), [[str(1000 * SECOND + 700)]])
        fragments = [{"type": "preamble", "version": 2}, CLOCK, {"type": "data-stream-class", "default-clock-class-id": "c", "packet-context-field-class": struct_of(("b", STAMP))},
                     {"type": "event-record-class", "name": "only", "payload-field-class": PAYLOAD}]
        text = b"".join(b"\x1e" + json.dumps(f).encode() for f in fragments)
        self.assertEqual(self.rows(text, struct.pack("<Q", 77) + b"\1\2", "SELECT ts, name FROM ftrace_event"), [[str(1000 * SECOND + 77), "only"]] * 2)
        for offset, want in (({"seconds": -5, "cycles": 3}, -5000 + 3), ({"seconds": 1}, 1000), ({}, 0)):
            clock = {**CLOCK, "frequency": 1000, "offset-from-origin": offset, "precision": 7, "accuracy": 9}
            self.assertEqual(self.rows(metadata(clock=clock), event(9000), TIMES), [[str((9000 + want) * 10**6)]])

    def test_alignment_of_what_is_empty(self):
        nothing = {"type": "static-length-array", "length": 0, "element-field-class": BYTE, "minimum-alignment": 64}
        self.assertEqual(self.args(struct_of(("a", BYTE), ("e", nothing), ("b", BYTE)), bytes(7) + b"\1" + bytes(7) + b"\2"), {"a": "1", "b": "2"})

    def test_lists_of_lists_of_nothing(self):
        """A value may be of many parts that take no space, but not of millions: two bytes took 1.3 GB."""
        where = {"origin": "event-record-payload", "path": ["n"]}
        lists = struct_of(("n", number(16)), ("l", list_of(list_of(struct_of(), where), where)))
        for n, taken in ((30, True), (700, False), (4000, False)):
            text, stream = metadata(lists), event(5, struct.pack("<H", n))
            self.assertEqual(self.rows(text, stream, COUNT), [[str(int(taken))]])
            self.assertEqual(self.told(text, stream), {} if taken else {"ctf_packets_damaged": 1})
        many = struct_of(("a", BYTE), *((f"o{i}", optional(at("a"), **{"selector-field-ranges": [[2, 2]]})) for i in range(900)), ("b", BYTE))
        self.assertEqual(self.args(many, b"\1\7"), {"a": "1", "b": "7"})
        wide = struct_of(*((f"e{i}", struct_of()) for i in range(300)), ("a", BYTE))  # of which there are many
        text = metadata(struct_of(("n", number(16)), ("l", list_of(wide, where))))
        self.assertEqual(self.rows(text, event(5, struct.pack("<H", 4000) + bytes(4000)), COUNT), [["0"]])

    def test_aliases_and_what_is_passed_over(self):
        alias = {"type": "field-class-alias", "name": "byte", "field-class": BYTE}
        self.assertEqual(self.args(struct_of(("a", "byte")), b"\x09", before=[alias], preamble={"attributes": {"x": [1, {}]}, "unknown": 5, "extensions": {"x": {}}}), {"a": "9"})
        self.fails("query", self.made(metadata(struct_of(("a", "none"))), event(5)), "SELECT 1", text="no field class alias is called 'none'")
        twice = metadata().replace(b'"name": "ev"', b'"name": "no", "name": "ev"')  # of equal keys the last one counts
        self.assertEqual(self.rows(twice, event(5), "SELECT name FROM ftrace_event"), [["ev"]])

    def test_headers_of_packets(self):
        """Magic, uuid and stream say whether a packet is one of this trace."""
        header = struct_of(("m", role(32, "packet-magic-number")), ("u", {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}),
                           ("s", role(8, "data-stream-class-id")))
        text = metadata(preamble={"uuid": list(range(16))}, trace={"packet-header-field-class": header})
        packet = lambda magic=0xC1FC1FC1, uuid=bytes(range(16)), stream=0: struct.pack("<I", magic) + uuid + bytes([stream]) + event(5)
        for stream, n in ((packet(), 1), (packet(magic=1), 0), (packet(uuid=bytes(16)), 0), (packet(stream=7), 0)):
            self.assertEqual(self.rows(text, stream, COUNT), [[str(n)]])
            self.assertEqual("ctf_bytes_damaged" in self.told(text, stream), n == 0)

    def test_contexts_of_packets(self):
        """Padding, gaps in the numbers of packets, which wrap, and what was discarded, which does so at its own length."""
        context = struct_of(("t", role(32, "packet-total-length")), ("c", role(32, "packet-content-length")), ("b", STAMP), ("s", role(16, "packet-sequence-number")),
                            ("d", role(8, "discarded-event-record-counter-snapshot")), ("e", role(64, "packet-end-default-clock-timestamp")))
        text = metadata(context=context)

        def packet(sequence, discarded, *times):
            events = b"".join(map(event, times))
            n = 27 + len(events)
            return struct.pack("<IIQHBQ", (n + 4) * 8, n * 8, 0, sequence, discarded, SECOND) + events + b"\xff" * 4
        self.assertEqual(self.rows(text, packet(0, 0, 1, 2) + packet(1, 0, 3), TIMES), [[str(1000 * SECOND + i)] for i in (1, 2, 3)])
        self.assertEqual(self.told(text, packet(0, 0, 1) + packet(3, 250, 2) + packet(4, 4, 3)), {"ctf_packets_lost": 2, "ctf_events_discarded": 260})
        self.assertEqual(self.told(text, packet(0xffff, 0, 1) + packet(0, 0, 2) + packet(2, 0, 3)), {"ctf_packets_lost": 1})

    def test_clocks(self):
        """Short times wrap at their length, those of variable length at seven bits a byte; offsets are of seconds and cycles."""
        milliseconds = {**CLOCK, "frequency": 1000, "offset-from-origin": {"seconds": 7, "cycles": 500}}
        times = lambda *after: [[str(7500 * 10**6 + ms * 10**6)] for ms in after]
        text = metadata(clock=milliseconds, header=struct_of(("id", ID), ("ts", role(8, "default-clock-timestamp"))))
        self.assertEqual(self.rows(text, b"".join(bytes([1, t, 9]) for t in (250, 10, 9, 200)), TIMES), times(250, 266, 521, 712))
        variable = {"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]}
        text = metadata(clock=milliseconds, header=struct_of(("id", ID), ("ts", variable)))
        self.assertEqual(self.rows(text, bytes([1, 0x81, 1, 9, 1, 5, 9, 1, 4, 9]), TIMES), times(129, 133, 260))
        text = metadata(clock=None, header=struct_of(("id", ID)))
        self.assertEqual(self.told(text, b"\1\5\1\6"), {"ctf_no_clock_records": 2})

    def test_clocks_of_drafts(self):
        draft = metadata().replace(b'"id": "c", ', b"").replace(b'"default-clock-class-id": "c"', b'"default-clock-class-name": "clk"')
        self.assertEqual(self.rows(draft, event(5), TIMES), [[str(1000 * SECOND + 5)]])

    def test_what_is_said_of_trace_and_event(self):
        said = {"attributes": {"lttng.org,2009": {"log-level": "warning", "emf-uri": "http://x"}}}
        self.assertEqual(self.args(PAYLOAD, b"\1", event=said), {"a": "1", "log_level": "warning", "emf_uri": "http://x"})
        text = metadata(trace={"namespace": "n", "name": "t", "uid": "u1", "environment": {"hostname": "here", "kernel_release": "6.1.0", "number": 5}})
        self.assertEqual(self.rows(text, event(5), "SELECT name, release FROM machine"), [["here", "6.1.0"]])
        self.assertEqual(self.rows(text, event(5), "SELECT str_value FROM metadata WHERE name = 'ctf_trace_uid'"), [["u1"]])

    def test_packets_of_metadata(self):
        """With the header of CTF 2, and with that of 1.8, which lttng-modules writes; fragments go on in the next packet."""
        text = metadata()

        def packet(part, header_bits):
            header = 44 if header_bits else 37
            content = (header + len(part)) * 8
            head = struct.pack("<I16sIII5B", 0x75D11D57, bytes(16), 0, content, content + 56, 0, 0, 0, 2, 0)
            return head + (bytes(3) + struct.pack("<I", header_bits) if header_bits else b"") + part + bytes(7)
        for header_bits, size in ((352, 50), (352, 1000), (0, 1000)):
            packets = b"".join(packet(text[i:i + size], header_bits) for i in range(0, len(text), size))
            self.assertEqual(self.rows(packets, event(5), COUNT), [["1"]])


if __name__ == "__main__":
    harness.main()

"""What traces of OpenTelemetry may hold, rule by rule, on made files of a few spans in each of their forms."""
import csv
import io
import json
import unittest

import harness
from otlp_writer import Span, big_endian, forms, json_message, proto_attributes, proto_message, proto_span
from pb import field, fixed, varint

A, B, C, D = (bytes([n] * 8) for n in (0xa1, 0xb2, 0xc3, 0xd4))
OTHER = b"\x22" * 16
RESOURCE = {"service.name": "shop", "host.name": "one.example.org", "process.pid": 4000, "telemetry.sdk.language": "go"}


class OtlpRules(harness.Case):
    files = 0

    def written(self, data):
        OtlpRules.files += 1
        path = self.dir / f"{self.files}.otlp"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def rows(self, data, sql):
        paths = [self.written(d) for d in (data if isinstance(data, list) else [data])]
        return list(csv.reader(io.StringIO(self.run_shell("query", *paths, sql).stdout.decode())))[1:]

    def told(self, data):
        return {name: int(n) for name, n in self.rows(data, "SELECT name, sum(value) FROM stats WHERE name GLOB 'otlp_*' AND value > 0 GROUP BY 1")}

    def each(self, messages, sql, want, only=None):
        for form, data in forms(messages).items():
            if not only or form in only:
                with self.subTest(form):
                    self.assertEqual(self.rows(data, sql), want)

    def both(self, *args):
        self.each(*args, only=("lines", "prefixed"))

    def one(self, span, sql, want, resource=RESOURCE):
        self.both([(resource, [span])], sql, want)

    def test_times_at_the_end_of_what_a_number_holds(self):
        """Where trace time runs far ahead of the day, a long span ends with the last time there is: one that still runs has no end."""
        late = 92 * 10**17
        reading = lambda clock, value: field(1, field(1, clock) + field(2, value))
        native = field(1, field(6, reading(6, late) + reading(1, 1000))) + field(1, field(8, late) + field(10, 1) + field(11, field(9, 3) + field(23, b"x")))
        spans = json.dumps(json_message(RESOURCE, [Span(A, 1000, 9 * 10**18), Span(B, 1500, 1600)]))
        self.assertEqual(self.rows([native, spans], "SELECT ts, dur FROM otel_span"), [[str(late), str(2**63 - 2 - late)], [str(late + 500), "100"]])

    # 1: files

    def test_forms(self):
        """The same spans in each; messages come in any order, and spans in them; times are sorted."""
        messages = [(RESOURCE, [Span(B, 1500, 1600, parent=A), Span(A)]), ({"service.name": "db", "host.name": "two"}, [Span(C, 1100, 1200, parent=A, kind=3)])]
        self.each(messages, "SELECT ts, dur, service, span_id, parent_id FROM otel_span",
                  [["1000", "1000", "shop", A.hex(), "[NULL]"], ["1100", "100", "db", C.hex(), "0"], ["1500", "100", "shop", B.hex(), "0"]])

    def test_json_that_is_told_apart(self):
        """Behind spaces, a byte order mark, other keys."""
        text = json.dumps(json_message(RESOURCE, [Span(A)]))
        for whole in ("\ufeff" + text, " \r\n\t" + text, '{"comment": {"resourceSpans": 1}, "list": [{"a": "}"}], ' + text[1:], text[:-1] + ', "more": 1}'):
            self.assertEqual(self.rows(whole, "SELECT count(*) FROM otel_span"), [["1"]], whole[:30])

    def test_protobuf_that_is_told_apart(self):
        """By its first span, where what comes before says little: empty messages, a resource whose attributes were dropped."""
        spans = field(2, field(1, field(1, b"library")) + field(2, proto_span(Span(A))))
        named = field(1, field(1, field(1, b"service.name") + field(2, field(1, b"shop"))))
        dropped = bytes([2 << 3, 3])
        for whole, service in ((field(1, b"") * 2 + field(1, named + spans), "shop"), (field(1, field(1, dropped) + spans), "[NULL]"),
                               (field(1, field(1, dropped + named[2:]) + spans), "shop"), (field(1, field(1, b"") + spans), "[NULL]"), (field(1, spans + named), "shop")):
            for data in (whole, big_endian(whole), varint(len(whole)) + whole):
                self.assertEqual(self.rows(data, "SELECT span_id, service FROM otel_span"), [[A.hex(), service]], data[:20])

    def test_fields_that_come_in_another_order_or_twice(self):
        """Protobuf promises no order. A message that is in a field twice is the union of both."""
        spans, url, key = field(2, proto_span(Span(A))), field(3, b"https://opentelemetry.io/schemas/1.24.0"), lambda k, v: field(1, proto_attributes(1, {k: v}))
        name, host, old = key("service.name", "shop"), key("host.name", "one"), field(1, field(1, b"old") + field(2, b"1.0"))
        inner = field(2, field(3, b"url") + old + spans + field(1, field(1, b"new")))
        sql = "SELECT span_id, service, machine.name, category FROM otel_span o JOIN slice ON slice.id = o.slice_id JOIN machine ON machine.id = o.machine_id"
        for whole in (url + name + host + inner, name + inner + host + url, url + inner + name + host, name + url + inner + host, name + host + url + url + inner):
            for data in (field(1, whole), big_endian(field(1, whole)), varint(len(field(1, whole))) + field(1, whole)):
                self.assertEqual(self.rows(data, sql), [[A.hex(), "shop", "one", "new"]], data[:20])

    def test_other_signals(self):
        """They are passed over, and counted."""
        text = json.dumps(json_message(RESOURCE, [Span(A)])) + "\n"
        logs = '{"resourceLogs": []}\n{"resourceMetrics": [{"resource": {}}]}\n{"resourceProfiles": []}\n'
        for whole in (text + logs, text + logs.replace("[]", '[{"a": [1, {"b": "c"}]}]') + text.replace("a1", "a2")):
            self.assertEqual(self.told(whole), {"otlp_unknown_signal": 3})

    def test_cut_anywhere(self):
        """What came before is there; one loss is told."""
        messages = [(RESOURCE, [Span(A, events=[(1001, "e", {"k": "v"})])]), (RESOURCE, [Span(B, 3000, 4000, attributes={"text": "long " * 20})])]
        for n, (form, data) in enumerate(forms(messages).items()):
            if form == "document":
                continue
            first = len(forms(messages[:1])[form])
            for at in range(first + n % 3, len(data), 23):
                got = self.rows(data[:at], "SELECT span_id, (SELECT sum(value) FROM stats WHERE name IN ('otlp_truncated', 'otlp_bad_message')) FROM otel_span ORDER BY ts")
                self.assertEqual(got[0][0], A.hex(), (form, at))
                if len(got) == 1 and at > first and not (form == "lines" and data[first:at].strip() == b""):
                    self.assertEqual(got[0][1], "1", (form, at))

    def test_spans_that_are_cut(self):
        """None is half there, also where it is cut between two of its fields."""
        data = forms([(RESOURCE, [Span(A), Span(B, 3000, 4000)])])["bare"]
        for at in range(data.rindex(B) - 1, len(data)):
            self.assertEqual(self.rows(data[:at], "SELECT span_id, dur FROM otel_span"), [[A.hex(), "1000"]], at)

    def test_messages_that_are_damaged(self):
        """Those before and behind are there."""
        lines = [json.dumps(json_message(RESOURCE, [Span(i)])) for i in (A, B, C)]
        for bad in (lines[1][:100], lines[1].replace('"kind": 2', '"kind": oops'), lines[1].replace("{", "[", 1), "{}x"):
            data = "\n".join((lines[0], bad, lines[2])) + "\n"
            self.assertEqual(self.rows(data, "SELECT span_id FROM otel_span WHERE span_id <> '%s'" % B.hex()), [[A.hex()], [C.hex()]], bad[:60])
            self.assertEqual(self.told(data).get("otlp_bad_message"), 1, bad[:60])
        good = [big_endian(proto_message(RESOURCE, [Span(i)])) for i in (A, C)]
        self.assertEqual(self.rows(good[0] + big_endian(b"\x0a\xff\xff\xff\xff\x7f") + good[1], "SELECT span_id FROM otel_span"), [[A.hex()], [C.hex()]])

    # 2: messages

    def test_kinds(self):
        """0, what is absent and what nobody knows is internal."""
        sql = "SELECT kind, extract_arg(arg_set_id, 'otel.kind') FROM otel_span o JOIN slice ON slice.id = o.slice_id"
        for kind, name in enumerate(("internal", "internal", "server", "client", "producer", "consumer", "internal")):
            self.one(Span(A, kind=kind), sql, [[name, name]])
        text = json.dumps(json_message(RESOURCE, [Span(A)]))
        for kind, name in (('"SPAN_KIND_CLIENT"', "client"), ('"SPAN_KIND_UNSPECIFIED"', "internal"), ('"PRODUCER"', "internal"), ("null", "internal")):
            self.assertEqual(self.rows(text.replace('"kind": 2', f'"kind": {kind}'), sql), [[name, name]], kind)
        self.assertEqual(self.rows(text.replace('"kind": 2, ', ""), sql), [["internal", "internal"]])

    def test_status(self):
        sql = "SELECT status, extract_arg(arg_set_id, 'otel.status'), extract_arg(arg_set_id, 'otel.status_message') FROM otel_span o JOIN slice ON slice.id = o.slice_id"
        for code, name in enumerate(("unset", "ok", "error")):
            self.one(Span(A, status=(code, "why")), sql, [[name, name, "why"]])
        text = json.dumps(json_message(RESOURCE, [Span(A, status=(2, "x"))]))
        self.assertEqual(self.rows(text.replace('"code": 2', '"code": "STATUS_CODE_ERROR"'), "SELECT status FROM otel_span"), [["error"]])
        self.assertEqual(self.rows(text.replace('{"code": 2, "message": "x"}', "{}"), "SELECT status FROM otel_span"), [["unset"]])

    def test_ids(self):
        """Those that are not an id make no slice; parents that are none make a root."""
        good = Span(D, 5000, 6000)
        for trace, ident in ((bytes(16), A), (b"\1" * 15, A), (b"\1" * 17, A), (b"", A), (b"\1" * 16, bytes(8)), (b"\1" * 16, b"\1" * 7), (b"\1" * 16, b"\1" * 9), (b"\1" * 16, b"")):
            self.both([(RESOURCE, [Span(ident, trace=trace), good])], "SELECT span_id, (SELECT value FROM stats WHERE name = 'otlp_spans_skipped') FROM otel_span", [[D.hex(), "1"]])
        for parent in (b"", bytes(8)):
            self.one(Span(A, parent=parent), "SELECT parent_span_id, (SELECT count(*) FROM stats WHERE name = 'otlp_missing_parent' AND value > 0) FROM otel_span", [["[NULL]", "0"]])
        upper = json.dumps(json_message(RESOURCE, [Span(A)])).replace(A.hex(), A.hex().upper())
        self.assertEqual(self.rows(upper, "SELECT span_id FROM otel_span"), [[A.hex()]])

    def test_one_span_id_in_two_traces(self):
        """The key is both ids."""
        spans = [Span(A), Span(A, 3000, 4000, trace=OTHER), Span(B, 3100, 3200, trace=OTHER, parent=A)]
        self.both([(RESOURCE, spans)], "SELECT o.ts, p.ts FROM otel_span o LEFT JOIN otel_span p ON p.id = o.parent_id", [["1000", "[NULL]"], ["3000", "[NULL]"], ["3100", "3000"]])

    def test_spans_that_come_twice(self):
        span = lambda **more: Span(A, attributes={"k": "v"}, **more)
        self.both([(RESOURCE, [span()]), (RESOURCE, [span()])], "SELECT count(*), (SELECT value FROM stats WHERE name = 'otlp_duplicate_span') FROM otel_span", [["1", "1"]])
        self.both([(RESOURCE, [span()]), (RESOURCE, [span(name="other"), Span(B, 1100, 1200, parent=A)])],
                  "SELECT o.name, p.name, (SELECT value FROM stats WHERE name = 'otlp_reused_span_id') FROM otel_span o LEFT JOIN otel_span p ON p.id = o.parent_id ORDER BY o.id",
                  [["work", "[NULL]", "1"], ["other", "[NULL]", "1"], ["work", "work", "1"]])
        both = forms([(RESOURCE, [span()])])
        self.assertEqual(self.rows([both["lines"], both["bare"]], "SELECT count(*) FROM otel_span"), [["1"]])

    def test_fields_of_a_later_version(self):
        """Unknown ones are passed over; entries of any wire type."""
        strange = field(99, 5) + field(98, b"\xff\xff") + fixed(97, 3) + varint(96 << 3 | 5) + b"1234"
        inner = field(2, field(2, proto_span(Span(A)) + strange) + strange)
        self.assertEqual(self.rows(big_endian(field(1, field(1, proto_attributes(1, RESOURCE) + strange) + field(1000, b"old") + inner + strange)), "SELECT span_id FROM otel_span"), [[A.hex()]])
        message = json_message(RESOURCE, [Span(A)])
        message["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= {"later": {"a": [1, {"b": None}]}, "start_time_unix_nano": "7"}
        message["resourceSpans"][0] |= {"schemaUrl": "x", "later": []}
        self.assertEqual(self.rows(json.dumps(message), "SELECT span_id, ts FROM otel_span"), [[A.hex(), "1000"]])

    # 3: JSON

    def test_numbers_of_json(self):
        text = json.dumps(json_message(RESOURCE, [Span(A, attributes={"n": 7})]))
        plain = text.replace('"1000"', "1000").replace('"2000"', "2000").replace('"7"', "7").replace('"4000"', "4000")
        sql = "SELECT slice.ts, slice.dur, pid, extract_arg(slice.arg_set_id, 'n') FROM slice JOIN otel_span o ON o.slice_id = slice.id JOIN process USING (upid)"
        for whole in (text, plain):
            self.assertEqual(self.rows(whole, sql), [["1000", "1000", "4000", "7"]])

    def test_older_json(self):
        text = json.dumps(json_message(RESOURCE, [Span(A)])).replace("scopeSpans", "instrumentationLibrarySpans").replace('"scope"', '"instrumentationLibrary"')
        self.assertEqual(self.rows(text, "SELECT span_id, scope FROM otel_span"), [[A.hex(), "library"]])

    def test_defaults_that_are_left_out(self):
        text = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": OTHER.hex(), "spanId": A.hex(), "startTimeUnixNano": "5"}]}]}]})
        self.assertEqual(self.rows(text, "SELECT ts, dur, kind, status FROM otel_span"), [["5", "-1", "internal", "unset"]])
        self.assertEqual(self.told(text), {"otlp_resource_without_host": 1, "otlp_unfinished_span": 1})

    # 4: times

    def test_times(self):
        for start, end, dur, stat in ((1000, 1000, "0", None), (1000, 999, "0", "otlp_negative_duration"), (1000, 0, "-1", "otlp_unfinished_span"),
                                      (1_790_000_000_123_456_789, 1_790_000_000_123_456_790, "1", None)):
            for data in (forms([(RESOURCE, [Span(A, start, end)])])[form] for form in ("lines", "bare")):
                self.assertEqual(self.rows(data, "SELECT ts, dur FROM slice"), [[str(start), dur]])
                self.assertEqual(self.told(data), {stat: 1} if stat else {})
        self.both([(RESOURCE, [Span(A, 0, 100), Span(B)])], "SELECT span_id, (SELECT value FROM stats WHERE name = 'otlp_spans_skipped') FROM otel_span", [[B.hex(), "1"]])

    # 5 and 8: what spans say

    def args(self, data):
        return [tuple(r) for r in self.rows(data, "SELECT key, display_value FROM slice JOIN args USING (arg_set_id) WHERE category <> 'otel.event' AND key NOT GLOB 'otel.*'")]

    def test_attributes(self):
        """Of all types, nested, with any key."""
        attributes = {"text": "v", "yes": True, "no": False, "n": -5, "most": 2**63 - 1, "real": 2.5, "list": [1, "two", [True, {"x": 3}]], "map": {"a": "b", "c": {"d": 1.5}}, "bytes": b"\0\xfe",
                      "with.dots": "w", "": "no key", "unicode ü": "ß"}
        want = [("text", "v"), ("yes", "true"), ("no", "false"), ("n", "-5"), ("most", str(2**63 - 1)), ("real", "2.5"), ("list[0]", "1"), ("list[1]", "two"), ("list[2][0]", "true"),
                ("list[2][1].x", "3"), ("map.a", "b"), ("map.c.d", "1.5"), ("bytes", "00fe"), ("with.dots", "w"), ("", "no key"), ("unicode ü", "ß")]
        for form, data in forms([(RESOURCE, [Span(A, attributes=attributes)])]).items():
            self.assertEqual(self.args(data), want, form)
        for value in (float("nan"), float("inf"), float("-inf")):
            got = {tuple(self.args(data)) for data in forms([(RESOURCE, [Span(A, attributes={"x": value})])]).values()}
            self.assertEqual(len(got), 1, value)

    def test_what_else_a_span_says(self):
        want = [["otel.%s" % k, v] for k, v in (("dropped_attributes", "1"), ("dropped_events", "2"), ("dropped_links", "3"), ("parent_span_id", B.hex()), ("scope.name", "library"),
                                               ("scope.version", "1.0"), ("span_id", A.hex()), ("trace_id", "11" * 16), ("trace_state", "k=v"))]
        span = Span(A, parent=B, state="k=v", dropped=(1, 2, 3))
        self.one(span, "SELECT key, display_value FROM slice JOIN args USING (arg_set_id) WHERE key NOT IN ('otel.kind', 'otel.status', 'otel.flags') ORDER BY key", want)
        for data in forms([(RESOURCE, [span])]).values():
            self.assertEqual(self.told(data), {"otlp_dropped_items": 6, "otlp_missing_parent": 1})

    def test_events(self):
        events = [(1500, "second", {}), (1200, "first", {"k": "v", "exception.type": "E"}), (2500, "late", {}), (0, "never", {})]
        self.one(Span(A, events=events), "SELECT s.ts, s.dur, s.name, s.category, extract_arg(arg_set_id, 'k'), o.span_id, s.track_id = (SELECT track_id FROM slice WHERE name = 'work') "
                 "FROM slice s JOIN otel_event e ON e.slice_id = s.id JOIN otel_span o ON o.id = e.span_id ORDER BY s.ts",
                 [["1200", "0", "first", "otel.event", "v", A.hex(), "1"], ["1500", "0", "second", "otel.event", "[NULL]", A.hex(), "1"], ["2500", "0", "late", "otel.event", "[NULL]", A.hex(), "1"]])
        self.assertEqual(self.told(forms([(RESOURCE, [Span(A, events=events)])])["bare"]), {"otlp_unplaced_events": 1})

    def test_links_and_parents(self):
        """Flows where they lead to another track; from what is linked to what links; nothing from what is not there."""
        far = {"service.name": "far", "host.name": "two"}
        spans = [Span(A), Span(B, 1100, 1200, name="inside", parent=A)]
        others = [Span(C, 1300, 1400, name="called", parent=A), Span(D, 3000, 3100, name="later", trace=OTHER, links=[(b"\x11" * 16, B, {"why": "x"}), (OTHER, A, {})])]
        messages = [(far, others), (RESOURCE, spans)]
        self.each(messages, "SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in ORDER BY 1, 2", [["inside", "later"], ["work", "called"]])
        self.both(messages, "SELECT linked_trace_id, linked_span_id, s.name, extract_arg(l.arg_set_id, 'why'), (SELECT value FROM stats WHERE name = 'otlp_missing_link' AND value > 0) "
                  "FROM otel_link l LEFT JOIN otel_span s ON s.id = linked_id", [["11" * 16, B.hex(), "inside", "x", "1"], ["22" * 16, A.hex(), "[NULL]", "[NULL]", "1"]])
        self.one(Span(A, parent=A), "SELECT parent_id FROM otel_span", [["[NULL]"]])

    # 6 to 8: whose they are

    def machines(self, *resources):
        messages = [(r, [Span(bytes([i + 1] * 8), 1000 * i + 1000, 1000 * i + 1500)]) for i, r in enumerate(resources)]
        return self.rows(forms(messages)["lines"], "SELECT m.name, m.id FROM otel_span o JOIN machine m ON m.id = machine_id ORDER BY o.ts")

    def test_machines(self):
        name = lambda host, **more: {"service.name": "s", "host.name": host, **more}
        self.assertEqual(self.machines(name("Alpha.example"), name("alpha"), name("beta")), [["Alpha.example", "0"], ["Alpha.example", "0"], ["beta", "1"]])
        self.assertEqual(self.machines(name("a", **{"host.id": "1"}), name("b", **{"host.id": "1"})), [["a", "0"]] * 2)
        self.assertEqual(self.machines(name("a", **{"host.id": "1"}), name("a", **{"host.id": "2"})), [["a", "0"], ["a", "1"]])
        self.assertEqual(self.machines(name("pod-7", **{"k8s.node.name": "node"}), name("node")), [["node", "0"]] * 2)
        self.assertEqual(self.machines({"host.id": "0123456789abcdef"}), [["0123456789ab", "0"]])
        self.assertEqual(self.machines({"service.name": "s"}, name("a")), [["otel", "0"], ["a", "1"]])
        got = self.rows(forms([({**RESOURCE, "host.arch": "arm64", "os.type": "linux", "os.description": "Debian"}, [Span(A)])])["bare"], "SELECT name, arch, sysname, version FROM machine")
        self.assertEqual(got, [["one.example.org", "arm64", "linux", "Debian"]])

    def test_processes(self):
        """Called by what runs, or by the service; those without a pid are one an instance."""
        sql = "SELECT pid, p.name, p.cmdline FROM otel_span JOIN process p USING (upid)"
        for more, name, line in (({"process.executable.name": "exe", "process.command": "cmd"}, "exe", "[NULL]"), ({"process.command": "cmd", "process.command_line": "cmd -x"}, "cmd", "cmd -x"),
                                 ({"process.command_args": ["a", "b c"]}, "shop", "a b c")):
            self.one(Span(A), sql, [["4000", name, line]], {**RESOURCE, **more})
        without = lambda i: {"service.name": "s", "host.name": "h", "service.instance.id": i}
        messages = [(without("1"), [Span(A)]), (without("2"), [Span(B, 3000, 4000)]), (without("1"), [Span(C, 5000, 6000)])]
        self.both(messages, "SELECT pid, p.name, upid = (SELECT upid FROM otel_span WHERE ts = 1000) FROM otel_span o JOIN process p USING (upid) ORDER BY o.ts",
                  [["[NULL]", "s", "1"], ["[NULL]", "s", "0"], ["[NULL]", "s", "1"]])

    def test_numbers_of_a_container(self):
        """Beside a recording of the machine a small pid in a container is not that of the system."""
        kernel = (harness.DATA / "linux-sched.pftrace").read_bytes()
        start = int(self.rows(kernel, "SELECT to_realtime(max(ts)) FROM sched_slice")[0][0])
        for pid, container, joined, told in ((7, "f" * 64, "[NULL]", 1), (7, None, "7", 0), (4000, "f" * 64, "4000", 0)):
            resource = {**RESOURCE, "process.pid": pid, **({"container.id": container} if container else {})}
            files = [kernel, forms([(resource, [Span(A, start, start + 1000)])])["bare"]]
            self.assertEqual(self.rows(files, "SELECT pid, (SELECT coalesce(sum(value), 0) FROM stats WHERE name = 'otlp_namespaced_pid') FROM otel_span JOIN process USING (upid)"), [[joined, str(told)]])

    def test_absurd_sizes(self):
        """Lengths beyond the file, values in values without end: what is whole is there."""
        good = proto_message(RESOURCE, [Span(B)])
        for bad in (varint(11) + varint(2**64 - 1), field(99, b"")[:1] + b"\xff" * 10, field(9, field(1, "k") + varint(2 << 3 | 2) + varint(2**63))):
            span = field(1, b"\x11" * 16) + field(2, A) + fixed(7, 5) + fixed(8, 6) + bad
            data = big_endian(good) + big_endian(field(1, field(1, proto_attributes(1, RESOURCE)) + field(2, field(2, span)))) + big_endian(proto_message(RESOURCE, [Span(C)]))
            self.assertLessEqual({B.hex(), C.hex()}, {r[0] for r in self.rows(data, "SELECT span_id FROM otel_span")})
        for form, wrap in (("lines", "[" * 3000), ("bare", None)):
            data = forms([(RESOURCE, [Span(A, attributes={"n": 1})])])[form]
            if wrap:
                deep = '{"arrayValue": {"values": [' * 3000 + '{"intValue": "1"}' + "]}}" * 3000
                data = data.replace(b'{"intValue": "1"}', deep.encode())
            else:
                inner = field(3, 1)
                for _ in range(3000):
                    inner = field(5, field(1, inner))
                span = proto_span(Span(A)) + field(9, field(1, "deep") + field(2, inner))
                data = field(1, field(1, proto_attributes(1, RESOURCE)) + field(2, field(2, span)))
            self.run_shell("query", self.written(data), "SELECT display_value FROM slice JOIN args USING (arg_set_id)", code=None)

    def test_threads(self):
        """Those of the system for languages that have no others."""
        for language, tid in (("cpp", "77"), ("rust", "77"), ("go", "77"), ("python", "77"), ("swift", "77"), ("java", "[NULL]"), ("nodejs", "[NULL]"), ("dotnet", "[NULL]"), ("webjs", "[NULL]")):
            self.one(Span(A, attributes={"thread.id": 77, "thread.name": "worker"}), "SELECT tid, t.name, track.name FROM otel_span o LEFT JOIN thread t USING (utid) JOIN slice ON slice.id = o.slice_id "
                     "JOIN track ON track.id = track_id", [[tid, "worker" if tid == "77" else "[NULL]", "shop" if tid == "77" else "worker"]], {**RESOURCE, "telemetry.sdk.language": language})

    def test_threads_whose_names_are_numbers_too(self):
        """A text has a number inside, which may be that of the thread: each of the two names meets its own."""
        threads = [(name, tid) for name in ("alpha", "beta") for tid in range(1, 1500)]
        spans = [Span(i.to_bytes(8, "big"), attributes={"thread.id": tid, "thread.name": name}) for i, (name, tid) in enumerate(threads, 1)]
        self.each([({"service.name": "shop"}, spans)], "SELECT count(DISTINCT track_id) FROM slice", [[str(len(threads))]], ("lines",))

    def test_tracks(self):
        """A child lies on its parent's while it overlaps no sibling there; what nests on a thread lies on that."""
        spans = [Span(A, 1000, 2000, name="a"), Span(B, 1100, 1500, name="b", parent=A), Span(C, 1400, 1600, name="c", parent=A), Span(D, 1700, 2500, name="d", parent=A)]
        self.each([(RESOURCE, spans)], "SELECT s.name, s.depth, s.track_id = (SELECT track_id FROM slice WHERE name = 'a'), p.name FROM slice s LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts",
                  [["a", "0", "1", "[NULL]"], ["b", "1", "1", "a"], ["c", "0", "0", "[NULL]"], ["d", "0", "0", "[NULL]"]])
        on = lambda ident, start, end, name, tid: Span(ident, start, end, name, attributes={"thread.id": tid})
        spans = [on(A, 1000, 2000, "a", 5), on(B, 1100, 1900, "b", 5), on(C, 1200, 1300, "c", 6), on(D, 1850, 2100, "d", 5)]
        self.both([(RESOURCE, spans)], "SELECT s.name, depth, t.type FROM slice s JOIN track t ON t.id = track_id ORDER BY s.ts",
                  [["a", "0", "otlp_thread"], ["b", "1", "otlp_thread"], ["c", "0", "otlp_thread"], ["d", "0", "otlp_spans"]])

    def test_calls_the_wrong_way_round(self):
        far = {"service.name": "far", "host.name": "two"}
        for kinds, start, end, wrong in (((3, 2), 1100, 1900, 0), ((3, 2), 900, 1900, 1), ((3, 2), 1100, 2100, 1), ((4, 5), 1100, 2100, 0), ((4, 5), 900, 1000, 1), ((1, 2), 900, 2100, 0)):
            data = forms([(RESOURCE, [Span(A, kind=kinds[0])]), (far, [Span(B, start, end, parent=A, kind=kinds[1])])])["delimited"]
            self.assertEqual(self.told(data).get("otlp_causality_violations", 0), wrong, (kinds, start, end))

    def test_resources(self):
        """Their attributes are args of the process and of the service's track, not of each slice."""
        self.one(Span(A), "SELECT extract_arg(p.arg_set_id, 'otel.resource.k[1]'), extract_arg(t.source_arg_set_id, 'otel.resource.service.name'), "
                 "(SELECT count(*) FROM slice JOIN args USING (arg_set_id) WHERE key GLOB 'otel.resource*') FROM process p JOIN track t ON t.type = 'otlp_service' WHERE pid = 4000",
                 [["y", "shop", "0"]], {**RESOURCE, "k": ["x", "y"]})


if __name__ == "__main__":
    unittest.main()

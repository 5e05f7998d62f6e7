"""Fuchsia traces and dumps of Java heaps, made here byte by byte; whole, cut at every byte, and with what cannot be."""
import csv
import io
import struct
import unittest

from harness import Case

WORD = 8


def words(*values):
    return b"".join(struct.pack("<Q", v & (1 << 64) - 1) for v in values)


def padded(text):
    data = text.encode()
    return data + bytes(-len(data) % WORD)


def record(kind, head, body=b""):
    return words(kind | (len(body) // WORD + 1) << 4 | head) + body


class Fxt:
    """A trace of one provider: strings and threads get numbers when they are first named."""

    def __init__(self, ticks=1_000_000_000):
        self.out = bytearray(b"\x10\x00\x04\x46\x78\x54\x16\x00")
        self.strings, self.threads = {}, {}
        self.out += record(0, 1 << 16 | 7 << 20 | 4 << 52, padded("unit"))
        self.out += record(1, 0, words(ticks))

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.out += record(2, self.strings[text] << 16 | len(text.encode()) << 32, padded(text))
        return self.strings[text]

    def thread(self, pid, tid):
        if (pid, tid) not in self.threads:
            self.threads[pid, tid] = len(self.threads) + 1
            self.out += record(3, self.threads[pid, tid] << 16, words(pid, tid))
        return self.threads[pid, tid]

    def arg(self, name, value):
        head = self.string(name) << 16
        if value is None:
            return record(0, head)
        if isinstance(value, bool):
            return record(9, head | value << 32)
        if isinstance(value, float):
            return record(5, head, struct.pack("<d", value))
        if isinstance(value, str):
            return record(6, head | self.string(value) << 32)
        if isinstance(value, tuple):  # ("koid", 7), ("pointer", 8)
            return record({"pointer": 7, "koid": 8, "unknown": 14}[value[0]], head, words(value[1]))
        return record(3, head, words(value)) if value < 0 else record(4, head, words(value))

    def event(self, kind, ts, thread, category, name, args=(), last=None):
        ref = self.thread(*thread)
        body = b"".join(self.arg(k, v) for k, v in args)
        names = self.string(category) << 32 | self.string(name) << 48
        self.out += record(4, kind << 16 | len(args) << 20 | ref << 24 | names,
                           words(ts) + body + (words(last) if last is not None else b""))

    def named(self, kind, koid, name, args=()):
        body = b"".join(self.arg(k, v) for k, v in args)
        self.out += record(7, kind << 16 | self.string(name) << 24 | len(args) << 40, words(koid) + body)


def fuchsia():
    t = Fxt()
    a, b = (100, 101), (200, 201)
    t.named(1, 100, "server")
    t.named(2, 101, "worker", [("process", ("koid", 100))])
    t.event(2, 1000, a, "cat", "outer", [("n", -5), ("s", "text"), ("ok", True)])
    t.event(2, 1100, a, "cat", "inner")
    t.event(3, 1200, a, "cat", "other", [("late", 1.5)])  # the name of an end means nothing
    t.event(8, 1300, a, "cat", "msg", last=77)
    t.event(3, 2000, a, "cat", "outer")
    t.event(4, 1500, b, "cat", "whole", [("p", ("pointer", 4096)), ("none", None)], last=1900)
    t.event(10, 1600, b, "cat", "msg", last=77)
    t.event(0, 1700, b, "cat", "now")
    t.event(1, 1800, b, "cat", "load", [("cpu", 3), ("text", "no")], last=0)
    t.event(1, 1850, b, "cat", "load", [("cpu", 4.5)], last=9)
    t.event(5, 1000, a, "net", "request", [("size", 10)], last=5)
    t.event(6, 1500, a, "net", "request", last=5)
    t.event(7, 2500, a, "net", "request", [("status", 200)], last=5)
    t.out += record(8, 2 << 60 | 0 << 16 | 1 << 20, words(900, 101))                                   # wakeup
    t.out += record(8, 1 << 60 | 1 << 20 | 1 << 36, words(1000, 201, 101))                              # 201 -> 101
    t.out += record(8, 0 << 60 | 1 << 16 | 3 << 24 | t.thread(*a) << 28 | t.thread(*b) << 36 | 16 << 44 | 17 << 52,
                    words(2000))                                                                       # 101 -> 201
    t.out += record(9, 5 << 16 | t.thread(*a) << 32, words(2100) + padded("hello"))
    return bytes(t.out)


class Dump:
    """A heap dump: numbers of 4 bytes."""

    def __init__(self, id_size=4):
        self.n, self.heap, self.ids = id_size, bytearray(), {}
        self.out = bytearray(b"JAVA PROFILE 1.0.3\0" + struct.pack(">IQ", id_size, 1234567))

    def number(self, v):
        return v.to_bytes(self.n, "big")

    def record(self, tag, body):
        self.out += struct.pack(">BII", tag, 0, len(body)) + body

    def string(self, text):
        if text not in self.ids:
            self.ids[text] = 0x1000 + len(self.ids)
            self.record(1, self.number(self.ids[text]) + text.encode())
        return self.number(self.ids[text])

    def klass(self, at, name, parent=0, size=16, fields=(), statics=(), loader=0):
        self.record(2, struct.pack(">I", at) + self.number(at) + bytes(4) + self.string(name))
        body = b"\x20" + self.number(at) + bytes(4) + self.number(parent) + self.number(loader) + bytes(4 * self.n)
        body += struct.pack(">IHH", size, 0, len(statics))
        for field, kind, value in statics:
            body += self.string(field) + bytes([kind]) + value
        body += struct.pack(">H", len(fields))
        for field, kind in fields:
            body += self.string(field) + bytes([kind])
        self.heap += body

    def instance(self, at, klass, data):
        self.heap += b"\x21" + self.number(at) + bytes(4) + self.number(klass) + struct.pack(">I", len(data)) + data

    def array(self, at, klass, elements):
        self.heap += (b"\x22" + self.number(at) + bytes(4) + struct.pack(">I", len(elements)) + self.number(klass) +
                      b"".join(map(self.number, elements)))

    def plain(self, at, kind, n, data):
        self.heap += b"\x23" + self.number(at) + bytes(4) + struct.pack(">IB", n, kind) + data

    def info(self, heap):
        self.heap += b"\xfe" + struct.pack(">I", 1) + self.string(heap)

    def done(self):
        self.record(0x1c, bytes(self.heap))
        self.record(0x2c, b"")
        return bytes(self.out)


def heap(id_size=4):
    d = Dump(id_size)
    num = d.number
    d.info("app")
    d.klass(1, "java.lang.Object", size=8)
    d.klass(2, "java.lang.Class", 1)
    d.klass(3, "java.lang.String", 1, 16, [("value", 2), ("coder", 8)])
    d.klass(4, "java/util/Node", 1, 24, [("next", 2), ("weight", 10), ("ratio", 7), ("flag", 4)],
            [("HEAD", 2, num(0x20)), ("LIMIT", 10, struct.pack(">i", -3))])
    d.klass(5, "[Ljava/util/Node;", 1)
    d.klass(6, "java.lang.ref.Reference", 1, 16, [("referent", 2)])
    d.klass(7, "java.lang.ref.WeakReference", 6, 16)
    d.klass(8, "java.util.Leaf", 4, 28, [("label", 2)])
    node = num(0x21) + struct.pack(">id?", 7, 0.5, True)
    d.instance(0x20, 4, node)
    d.instance(0x21, 8, num(0x30) + num(0) + struct.pack(">id?", -9, 2.25, False))  # own fields, then its superclass's
    d.instance(0x22, 7, num(0x23))
    d.instance(0x23, 4, num(0) + bytes(13))
    d.array(0x24, 5, [0x20, 0, 0x21])
    d.instance(0x30, 3, num(0x31) + b"\0")
    d.plain(0x31, 5, 3, "a\u00e9\u4e2d".encode("utf-16-be"))
    d.plain(0x32, 10, 4, struct.pack(">4i", 3, 1, 2, 0))
    d.info("zygote")
    d.plain(0x33, 11, 1, struct.pack(">q", -5))
    d.plain(0x34, 4, 2, b"\1\0")
    d.plain(0x35, 6, 2, struct.pack(">ff", 0.5, float("inf")))
    d.plain(0x36, 9, 0, b"")
    d.heap += b"\x01" + num(0x24) + num(0)          # JNI global
    d.heap += b"\x05" + num(4)                      # class
    d.heap += b"\x08" + num(0x22) + bytes(8)        # thread object
    return d.done()


class BinaryFormats(Case):
    def rows(self, sql, trace, *flags):
        return [tuple(r) for r in csv.reader(io.StringIO(self.query(sql, *flags, trace=trace)))][1:]

    def file(self, name, content):
        path = self.dir / name
        path.write_bytes(content)
        return path

    def stats(self, trace, pattern):
        return dict(self.rows(f"select name, value from stats where name glob '{pattern}' and value != 0", trace))

    def test_fuchsia(self):
        f = self.file("a.fxt", fuchsia())
        self.assertEqual(self.rows("select trace_type from __intrinsic_trace_file", f)[0][0], "fuchsia")
        self.assertEqual(
            self.rows("select s.ts, s.dur, s.name, s.category, t.tid, t.name, p.pid, p.name from slice s join thread_track k "
                      "on s.track_id = k.id join thread t using (utid) join process p using (upid) order by s.ts, s.id", f),
            [("1000", "1000", "outer", "cat", "101", "worker", "100", "server"),
             ("1100", "100", "inner", "cat", "101", "worker", "100", "server"),
             ("1500", "400", "whole", "cat", "201", "[NULL]", "200", "[NULL]"),
             ("1700", "0", "now", "cat", "201", "[NULL]", "200", "[NULL]")])
        self.assertEqual(self.rows("select s.name, a.key, a.value_type, a.display_value from slice s join args a using "
                                   "(arg_set_id) where s.category = 'cat' order by s.ts, s.id, a.key", f),
                         [("outer", "n", "int", "-5"), ("outer", "ok", "bool", "true"), ("outer", "s", "string", "text"),
                          ("inner", "late", "real", "1.5"), ("whole", "none", "string", "null"),
                          ("whole", "p", "pointer", "0x1000")])
        self.assertEqual(self.rows("select a.name, b.name from flow f join slice a on a.id = f.slice_out join slice b on "
                                   "b.id = f.slice_in", f), [("outer", "whole")])
        self.assertEqual(self.rows("select t.name, c.ts, c.value from counter c join process_counter_track t on t.id = "
                                   "c.track_id order by 1", f), [("load:cpu:0", "1800", "3.000000"), ("load:cpu:9", "1850", "4.500000")])
        self.assertEqual(self.rows("select s.ts, s.dur, s.name from slice s join track t on t.id = s.track_id where "
                                   "t.type = 'legacy_async_global_slice' order by s.ts, s.id", f),
                         [("1000", "1500", "request"), ("1500", "0", "request")])
        self.assertEqual(self.rows("select a.key, a.value_type, a.display_value from track t join args a on a.arg_set_id in "
                                   "(t.source_arg_set_id, t.dimension_arg_set_id) where t.name = 'request' order by 1", f),
                         [("name", "string", "request"), ("scope", "string", "[NULL]"), ("source", "string", "chrome"),
                          ("source_scope", "string", "[NULL]"), ("trace_id_is_process_scoped", "bool", "false"),
                          ("track_compressor_idx", "int", "0"), ("upid", "int", "1")])
        self.assertEqual(self.rows("select value_type from args where key = 'size'", f), [("int",)])
        self.assertEqual(self.rows("select ts, dur, cpu, tid, end_state from sched join thread using (utid)", f),
                         [("1000", "1000", "1", "101", "S"), ("2000", "-1", "1", "201", "[NULL]")])
        self.assertEqual(self.rows("select tid, ts, dur, state, cpu from thread_state join thread using (utid) order by "
                                   "ts, tid", f),
                         [("101", "900", "100", "W", "1"), ("101", "1000", "1000", "Running", "1"),
                          ("201", "1000", "1000", "R", "1"), ("101", "2000", "-1", "S", "1"), ("201", "2000", "-1", "Running", "1")])
        self.assertEqual(self.rows("select ts, msg from android_logs", f), [("2100", "hello")])
        self.assertEqual(self.stats(f, "fuchsia_*"), {"fuchsia_non_numeric_counters": "1"})

    def test_fuchsia_ticks(self):
        """Times are ticks: of another length each provider."""
        t = Fxt(24_000_000)
        t.event(4, 24, (1, 2), "c", "us", last=48)
        t.event(4, 2 ** 63, (1, 2), "c", "never", last=2 ** 63)
        f = self.file("ticks.fxt", bytes(t.out))
        self.assertEqual(self.rows("select ts, dur, name from slice", f), [("1000", "1000", "us")])
        self.assertEqual(self.stats(f, "fuchsia_*"), {"fuchsia_timestamp_overflow": "1"})

    def test_fuchsia_strange(self):
        """What cannot be is counted; what stands behind it is read."""
        t = Fxt()
        t.out += record(4, 1 << 24 | 999 << 48, words(5))                    # thread and string that nobody told
        t.out += record(4, 13 << 16 | t.thread(1, 2) << 24, words(5))        # no such type
        t.event(0, 6, (1, 2), "c", "odd", [("x", ("unknown", 1)), ("", 5)])
        t.out += record(4, 2 << 16 | 3 << 20 | t.thread(1, 2) << 24, words(7))  # its arguments are missing
        t.out += record(5, 0, words(1, 2, 3))                                # a blob
        t.out += record(0, 3 << 16 | 7 << 20)                                # the provider's buffer was full
        t.event(0, 9, (1, 2), "c", "good")
        f = self.file("strange.fxt", bytes(t.out))
        self.assertEqual(self.rows("select name from slice order by ts", f), [("odd",), ("good",)])
        stats = self.stats(f, "fuchsia_*")
        self.assertEqual({k for k in stats}, {"fuchsia_invalid_string_ref", "fuchsia_invalid_event",
                                              "fuchsia_unknown_event_arg", "fuchsia_invalid_event_arg_name",
                                              "fuchsia_record_read_error", "fuchsia_provider_buffer_full"})
        self.assertIn("fuchsia_provider_buffer_full", self.run_shell("check", f, code=1).stdout.decode())

    def test_heap(self):
        for id_size in (4, 8):
            f = self.file(f"a{id_size}.hprof", heap(id_size))
            self.assertEqual(self.rows("select ts, pid from heap_graph join process using (upid)", f), [("1234567", "0")])
            self.assertEqual(self.rows("select upid, pid, utid, tid, is_main_thread from process join thread using (upid) join "
                                       "heap_graph using (upid)", f), [("1", "0", "1", "0", "1")])
            self.assertEqual(
                self.rows("select c.name, s.name from heap_graph_class c left join heap_graph_class s on s.id = "
                          "c.superclass_id where c.name like 'java.util%' order by 1", f),
                [("java.util.Leaf", "java.util.Node"), ("java.util.Node", "java.lang.Object"),
                 ("java.util.Node[]", "java.lang.Object")])
            got = self.rows("select c.name, o.root_type, o.reachable, o.root_distance from __intrinsic_heap_graph_object o "
                            "join heap_graph_class c on c.id = o.type_id where c.name not like 'java.lang.Class%' or o.root_type "
                            "is not null order by 1, 2, 3", f)
            self.assertEqual(sorted(got), [
                ("boolean[]", "[NULL]", "0", "-1"), ("char[]", "[NULL]", "1", "3"), ("float[]", "[NULL]", "0", "-1"),
                ("int[]", "[NULL]", "0", "-1"),
                ("java.lang.Class<java.util.Node>", "STICKY_CLASS", "1", "0"), ("java.lang.String", "[NULL]", "1", "2"),
                ("java.lang.ref.WeakReference", "THREAD_OBJECT", "1", "0"), ("java.util.Leaf", "[NULL]", "1", "1"),
                ("java.util.Node", "[NULL]", "0", "-1"), ("java.util.Node", "[NULL]", "1", "1"),
                ("java.util.Node[]", "JNI_GLOBAL", "1", "0"), ("long[]", "[NULL]", "0", "-1"), ("short[]", "[NULL]", "0", "-1")])
            self.assertEqual(
                self.rows("select a.name, r.field_name, r.field_type_name, b.name from heap_graph_reference r join heap_graph_object x on x.id = "
                          "r.owner_id join heap_graph_class a on a.id = x.type_id join heap_graph_object y on y.id = r.owned_id "
                          "join heap_graph_class b on b.id = y.type_id where a.name like 'java.util%' order by 1, 2", f),
                [("java.util.Leaf", "java.util.Leaf.label", "java.lang.String", "java.lang.String"),
                 ("java.util.Node", "java.util.Node.next", "java.util.Leaf", "java.util.Leaf"),
                 ("java.util.Node[]", "[0]", "java.util.Node", "java.util.Node"),
                 ("java.util.Node[]", "[2]", "java.util.Leaf", "java.util.Leaf")])
            self.assertEqual(self.rows("select c.name, r.field_name, p.field_name, o.self_size from heap_graph_object o join "
                                       "heap_graph_class c on c.id = o.type_id join heap_graph_reference r on r.owner_id = o.id "
                                       "join heap_graph_object_data d on d.id = o.object_data_id join heap_graph_primitive p "
                                       "using (field_set_id) where c.name glob 'java.lang.Class<*'", f),
                             [("java.lang.Class<java.util.Node>", "java.util.Node.HEAD", "LIMIT", str(16 + 4 + id_size))])
            self.assertEqual(self.rows("select name, kind from heap_graph_class where kind not glob '*unknown*'", f),
                             [("java.lang.ref.WeakReference", "KIND_WEAK_REFERENCE")])
            self.assertEqual(self.rows("select c.name, heap_type from heap_graph_object o join heap_graph_class c on c.id = "
                                       "o.type_id where heap_type != 'app' order by 1", f),
                             [(f"{t}[]", "zygote") for t in ("boolean", "float", "long", "short")])
            self.assertEqual(
                self.rows("select p.field_name, p.field_type, coalesce(p.int_value, p.double_value, p.bool_value) from "
                          "heap_graph_object o join heap_graph_class c on c.id = o.type_id join "
                          "__intrinsic_heap_graph_object_data d on d.id = o.object_data_id join "
                          "__intrinsic_heap_graph_primitive p using (field_set_id) where c.name = 'java.util.Leaf'", f),
                [("java.util.Node.weight", "int", "-9"), ("java.util.Node.ratio", "double", "2.250000"),
                 ("java.util.Node.flag", "boolean", "0")])
            self.assertEqual(self.rows("select value_string from __intrinsic_heap_graph_object_data where value_string is not "
                                       "null", f), [("a\u00e9\u4e2d",)])
            self.assertEqual(self.rows("select array_element_type, array_element_count from __intrinsic_heap_graph_object_data "
                                       "where array_element_type is not null order by 1", f), [("boolean", "2"), ("char", "3"), ("float", "2"), ("int", "4"), ("long", "1")])
            self.assertEqual(
                self.rows("select array_element_type, replace(__intrinsic_heap_graph_array_json(array_data_id), char(34), char(39)), array_data_hash, "
                          "hex(__intrinsic_heap_graph_array(array_data_id)) from heap_graph_object_data where "
                          "array_data_id is not null and array_element_type != 'char' order by 1", f),
                [("boolean", "[true,false]", "7206506495038481450", "0100"),
                 ("float", "[0.5,null]", "5484061120779427626", "0000003F0000807F"),
                 ("int", "[3,1,2,0]", "-3333146854241245275", "03000000010000000200000000000000"),
                 ("long", "['-5']", "-1395621375270161629", "FBFFFFFFFFFFFFFF")])
            stats = self.stats(f, "hprof_*")
            self.assertEqual((stats["hprof_instance_counter"], stats["hprof_root_counter"], stats["hprof_class_counter"]),
                             ("5", "3", "8"))
            self.assertFalse([k for k in stats if "error" in k])

    def test_cuts(self):
        """Cut anywhere: what came before is there, the loss is told, and nothing crashes."""
        for name, whole, count in (("f", fuchsia(), "slice"), ("h", heap(), "heap_graph_object")):
            last = 0
            for at in range(40, len(whole), 97):
                f = self.file(f"{name}.cut", whole[:at])
                p = self.run_shell("query", f, f"select count(*) from {count}", code=None)
                if p.returncode == 0:
                    n = int(p.stdout.split()[1])
                    self.assertGreaterEqual(n, last, at)
                    last = n
            self.assertGreater(last, 3)
        f = self.file("cut.fxt", fuchsia()[:-20])
        self.assertEqual(self.stats(f, "fuchsia_record*"), {"fuchsia_record_read_error": "1"})


if __name__ == "__main__":
    unittest.main(verbosity=1)

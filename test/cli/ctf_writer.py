"""Writes CTF 1.8 traces from a description, with random values, and the text that a right reader prints for them."""
import os
import random
import struct


class Bits:
    """A packet's bits. Little-endian fields fill bytes from the lowest bit, big-endian ones from the highest."""

    def __init__(self):
        self.bytes = bytearray()
        self.pos = 0

    def align(self, bits):
        self.pos = (self.pos + bits - 1) // bits * bits
        self._room()

    def _room(self):
        missing = (self.pos + 7) // 8 - len(self.bytes)
        if missing > 0:
            self.bytes += bytes(missing)

    def put(self, value, size, big):
        start, self.pos = self.pos, self.pos + size
        self._room()
        value &= (1 << size) - 1
        for i in range(size):
            at = start + i
            if big:
                self.bytes[at // 8] |= (value >> (size - 1 - i) & 1) << (7 - at % 8)
            else:
                self.bytes[at // 8] |= (value >> i & 1) << (at % 8)


class Int:
    def __init__(self, size, signed=False, align=None, order="native", base=10, extra=""):
        self.size, self.signed, self.order, self.base, self.extra = size, signed, order, base, extra
        self.alignment = align or (8 if size % 8 == 0 else 1)

    def tsdl(self):
        order = "" if self.order == "native" else f" byte_order = {self.order};"
        return (f"integer {{ size = {self.size}; align = {self.alignment}; signed = {str(self.signed).lower()};"
                f"{order} base = {self.base};{self.extra} }}")

    def random(self, rng, scope):
        bits = rng.choice([self.size, rng.randint(1, self.size)])
        v = rng.getrandbits(bits)
        return v - (1 << self.size) if self.signed and v >> (self.size - 1) else v

    def write(self, w, v, big):
        w.align(self.alignment)
        w.put(v, self.size, big if self.order == "native" else self.order == "be")

    def text(self, v):
        return {10: str(v), 16: f"0x{v & (1 << self.size) - 1:X}", 8: f"0{v & (1 << self.size) - 1:o}"}[self.base]


class Count(Int):
    """A small number, for lengths. babeltrace2 2.0 prints the previous text in place of an empty one, and babeltrace 1
    does not align an empty sequence: lengths of texts are two or more, and those that may be 0 end at a byte."""

    def __init__(self, size, least, most):
        super().__init__(size)
        self.range = least, most

    def random(self, rng, scope):
        return rng.randint(*self.range)


class Float:
    def __init__(self, bits, align=8, order="native"):
        self.bits, self.alignment, self.order = bits, align, order

    def tsdl(self):
        digits = "exp_dig = 8; mant_dig = 24;" if self.bits == 32 else "exp_dig = 11; mant_dig = 53;"
        order = "" if self.order == "native" else f" byte_order = {self.order};"
        return f"floating_point {{ {digits} align = {self.alignment};{order} }}"

    def random(self, rng, scope):
        v = rng.choice([0.0, -1.5, rng.uniform(-1e6, 1e6), rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30)])
        return struct.unpack("<f", struct.pack("<f", v))[0] if self.bits == 32 else v

    def write(self, w, v, big):
        w.align(self.alignment)
        raw = struct.pack("<f" if self.bits == 32 else "<d", v)
        w.put(int.from_bytes(raw, "little"), self.bits, big if self.order == "native" else self.order == "be")

    def text(self, v):
        return "%g" % v


class Enum:
    def __init__(self, container, ranges):
        self.container, self.ranges, self.alignment = container, ranges, container.alignment

    def tsdl(self):
        rows = ", ".join(f'"{n}" = {lo}' if lo == hi else f'"{n}" = {lo} ... {hi}' for n, lo, hi in self.ranges)
        return f"enum : {self.container.tsdl()} {{ {rows} }}"

    def label(self, v):
        return next((n for n, lo, hi in self.ranges if lo <= v <= hi), None)

    def random(self, rng, scope):
        _, lo, hi = rng.choice(self.ranges)
        return rng.randint(lo, hi)

    def write(self, w, v, big):
        self.container.write(w, v, big)

    def text(self, v):
        return f'( "{self.label(v)}" : container = {self.container.text(v)} )'


class Text:
    alignment = 8

    def tsdl(self):
        return "string { encoding = UTF8; }"

    def random(self, rng, scope):
        return "".join(rng.choice("abc xyz_%ä0") for _ in range(rng.randint(1, 20)))

    def write(self, w, v, big):
        w.align(8)
        for b in v.encode() + b"\0":
            w.put(b, 8, big)

    def text(self, v):
        return f'"{v}"'


class List:
    """An array of a fixed length, or with `length` naming an earlier field a sequence."""

    def __init__(self, element, n=None, length=None):
        self.element, self.n, self.length, self.alignment = element, n, length, element.alignment

    def suffix(self):
        return f"[{self.length or self.n}]"

    def random(self, rng, scope):
        n = self.n if self.length is None else scope[self.length]
        return [self.element.random(rng, scope) for _ in range(n)]

    def write(self, w, v, big):
        w.align(self.alignment)
        for x in v:
            self.element.write(w, x, big)

    def text(self, v):
        return "[ " + "".join(f"[{i}] = {self.element.text(x)}, " for i, x in enumerate(v))[:-2] + (" ]" if v else "]")


class Letters(List):
    """A list of 8-bit characters: text."""

    def __init__(self, n=None, length=None):
        super().__init__(Int(8, extra=" encoding = UTF8;"), n, length)

    def random(self, rng, scope):
        n = self.n if self.length is None else scope[self.length]
        return [ord(rng.choice("abcdefgh")) if i < n - 1 else 0 for i in range(n)]

    def text(self, v):
        return '"' + bytes(v).split(b"\0")[0].decode() + '"'


class Struct:
    def __init__(self, fields, align=1):
        self.fields = fields
        self.alignment = max([align] + [t.alignment for _, t in fields])
        self.explicit = align

    def tsdl(self):
        body = " ".join(declare(n, t) for n, t in self.fields)
        return f"struct {{ {body} }}" + (f" align({self.explicit})" if self.explicit > 1 else "")

    def random(self, rng, scope):
        values = {}
        inner = dict(scope)
        for name, t in self.fields:
            values[name] = inner[name] = t.random(rng, inner)
            inner[name + ".type"] = t
        return values

    def write(self, w, v, big):
        w.align(self.alignment)
        for name, t in self.fields:
            t.write(w, v[name], big)

    def text(self, v):
        return "{ " + "".join(f"{n} = {t.text(v[n])}, " for n, t in self.fields)[:-2] + (" }" if self.fields else "}")


class Variant:
    alignment = 1

    def __init__(self, tag, options):
        self.tag, self.options = tag, dict(options)

    def tsdl(self):
        body = " ".join(declare(n, t) for n, t in self.options.items())
        return f"variant <{self.tag}> {{ {body} }}"

    def random(self, rng, scope):
        label = scope[self.tag + ".type"].label(scope[self.tag])
        return label, self.options[label].random(rng, scope)

    def write(self, w, v, big):
        self.options[v[0]].write(w, v[1], big)

    def text(self, v):
        return f"{{ {v[0]} = {self.options[v[0]].text(v[1])} }}"


def declare(name, t):
    brackets = ""
    while isinstance(t, List):
        brackets += t.suffix()
        t = t.element
    return f"{t.tsdl()} {name}{brackets};"


class Trace:
    """One trace: stream files of packets of events. `header` is "compact" or "large"."""

    def __init__(self, path, seed, header="compact", big=False, freq=1000000000, offset_s=1000000, offset=0,
                 packet_metadata=False, explicit_align=False):
        self.path, self.rng, self.header, self.big = path, random.Random(seed), header, big
        self.freq, self.offset_s, self.offset = freq, offset_s, offset
        self.packet_metadata = packet_metadata
        self.streams, self.events, self.lines, self.files = {}, {}, [], {}
        self.uuid = bytes(self.rng.getrandbits(8) for _ in range(16))
        os.makedirs(path)

    def stream(self, stream_id, event_context=None):
        self.streams[stream_id] = event_context

    def event(self, stream_id, event_id, name, fields, context=None):
        self.events[stream_id, event_id] = (name, Struct(fields), context)

    def _uuid_text(self):
        h = self.uuid.hex()
        return "-".join([h[:8], h[8:12], h[12:16], h[16:20], h[20:]])

    def _header_tsdl(self):
        stamp = "map = clock.clk.value;"
        small, tag = (27, 5) if self.header == "compact" else (32, 16)
        last = (1 << tag) - 1
        word = 1 if self.header == "compact" else 8
        return f"""struct {{
        enum : integer {{ size = {tag}; align = {word}; }} {{ compact = 0 ... {last - 1}, extended = {last} }} id;
        variant <id> {{
            struct {{ integer {{ size = {small}; align = {word}; {stamp} }} timestamp; }} compact;
            struct {{ integer {{ size = 32; align = 8; }} id;
                     integer {{ size = 64; align = 8; {stamp} }} timestamp; }} extended;
        }} v;
    }} align(8)"""

    def metadata(self):
        out = ["/* CTF 1.8 */", "// made by a test", "typealias integer { size = 32; align = 8; signed = false; } := u32;",
               "typealias integer { size = 64; align = 8; signed = false; } := unsigned long;",
               "typealias integer { size = 8; align = 8; signed = false; } := u8;",
               f"""trace {{ major = 1; minor = 8; uuid = "{self._uuid_text()}"; byte_order = {'be' if self.big else 'le'};
    packet.header := struct {{ u32 magic; u8 uuid[16]; u32 stream_id; }}; }};""",
               'env { hostname = "made"; domain = "kernel"; tracer_major = 2; };',
               f"""clock {{ name = "clk"; uuid = "{self._uuid_text()}"; description = "made \\"here\\""; freq = {self.freq};
    offset_s = {self.offset_s}; offset = {self.offset}; absolute = FALSE; }};"""]
        for stream_id, context in self.streams.items():
            out.append(f"""stream {{ id = {stream_id}; event.header := {self._header_tsdl()};
    packet.context := struct {{
        integer {{ size = 64; align = 8; map = clock.clk.value; }} timestamp_begin;
        integer {{ size = 64; align = 8; map = clock.clk.value; }} timestamp_end;
        unsigned long content_size; unsigned long packet_size; unsigned long packet_seq_num;
        unsigned long events_discarded; u32 cpu_id; }};""")
            if context:
                out.append(f"    event.context := {context.tsdl()};")
            out.append("};")
        for (stream_id, event_id), (name, fields, context) in self.events.items():
            out.append(f'event {{ name = "{name}"; id = {event_id}; stream_id = {stream_id};')
            if context:
                out.append(f"    context := {context.tsdl()};")
            out.append(f"    fields := {fields.tsdl()};\n}};")
        text = "\n".join(out).encode() + b"\n"
        if not self.packet_metadata:
            return text
        order, packets = ">" if self.big else "<", b""
        for at in range(0, len(text), 1000):
            part = text[at:at + 1000]
            size = 37 + len(part) + 11
            packets += struct.pack(order + "I16sIIIBBBBB", 0x75D11D57, self.uuid, 0, (37 + len(part)) * 8, size * 8,
                                   0, 0, 0, 1, 8) + part + bytes(11)
        return packets

    def _write_header(self, w, event_id, cycles, last):
        small, tag = (27, 5) if self.header == "compact" else (32, 16)
        extended = (1 << tag) - 1
        w.align(8)
        if event_id < extended and cycles - last < 1 << small:
            w.put(event_id, tag, self.big)
            w.put(cycles, small, self.big)
        else:
            w.put(extended, tag, self.big)
            w.align(8)
            w.put(event_id, 32, self.big)
            w.put(cycles, 64, self.big)

    def _ns(self, cycles):
        return self.offset_s * 10**9 + (self.offset + cycles) * 10**9 // self.freq

    def packet(self, file, stream_id, cpu, seq, discarded, begin, n_events, step, padding=0):
        """Appends a packet of random events to a stream file; returns the time of its last event."""
        rng, now, events = self.rng, begin, []
        ids = [e for s, e in self.events if s == stream_id]
        for _ in range(n_events):
            now += rng.randint(1, step)
            events.append((now, rng.choice(ids), None))
        return self._packet(file, stream_id, cpu, seq, discarded, begin, events, padding)

    def write_events(self, file, stream_id, events):
        """One packet of given events: (cycles, event id, {field: value}), in order of time."""
        self._packet(file, stream_id, 0, 0, 0, events[0][0], events, 0)

    def _packet(self, file, stream_id, cpu, seq, discarded, begin, events, padding):
        w, big, rng = Bits(), self.big, self.rng
        w.put(0xC1FC1FC1, 32, big)
        for b in self.uuid:
            w.put(b, 8, big)
        w.put(stream_id, 32, big)
        context_at = w.pos
        for _ in range(6):
            w.put(0, 64, big)
        w.put(cpu, 32, big)
        now = begin
        for cycles, event_id, given in events:
            last, now = now, cycles
            name, fields, context = self.events[stream_id, event_id]
            self._write_header(w, event_id, now, last)
            scope, parts = {}, []
            for part in (self.streams[stream_id], context, fields):
                if part:
                    values = given if given and part is fields else part.random(rng, scope)
                    part.write(w, values, big)
                    scope.update(values)
                    scope.update({n + ".type": t for n, t in part.fields})
                    parts.append(", " + part.text(values))
            ns = self._ns(now)
            self.lines.append(f"[{ns // 10**9}.{ns % 10**9:09}] made {name}: {{ cpu_id = {cpu} }}{''.join(parts)}")
        content = w.pos
        w.align(8)
        size = w.pos + padding * 8
        w.pos = size
        w._room()
        head = Bits()
        for v in (begin, now, content, size, seq, discarded):
            head.put(v, 64, big)
        w.bytes[context_at // 8:context_at // 8 + 48] = head.bytes
        self.files.setdefault(file, bytearray()).extend(w.bytes)
        return now

    def close(self):
        with open(os.path.join(self.path, "metadata"), "wb") as f:
            f.write(self.metadata())
        for name, data in self.files.items():
            with open(os.path.join(self.path, name), "wb") as f:
                f.write(data)

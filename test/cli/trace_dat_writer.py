"""Makes trace.dat: files of versions 6 and 7 whose events, pages and options the caller writes."""
import struct
import zlib

DONE, DATE, CPUSTAT, BUFFER, TRACECLOCK, UNAME, HOOK, OFFSET, CPUCOUNT, VERSION, PROCMAPS, TRACEID, TIME_SHIFT, GUEST, TSC2NSEC = range(15)
HEADER_INFO, FTRACE_FORMATS, EVENT_FORMATS, KALLSYMS, PRINTK, CMDLINES, BUFFER_TEXT, BTF, LAST_BOOT_INFO, MODULES = range(16, 26)
STRINGS = 15
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
LOST, STORED = 1 << 31, 1 << 30
MAGIC = b"\x17\x08\x44tracing"
HEADER_EVENT = b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n"


def stored_zstd(data):
    """A frame of blocks that are not compressed."""
    pieces = [data[i:i + 65536] for i in range(0, len(data), 65536)] or [b""]
    blocks = b"".join(struct.pack("<I", len(p) << 3 | (i == len(pieces) - 1))[:3] + p for i, p in enumerate(pieces))
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + blocks


COMPRESS = {"none": bytes, "zlib": zlib.compress, "zstd": stored_zstd}


class Kernel:
    """Whose bytes they are: their order, the size of a long, that of a sub-buffer."""
    def __init__(self, big=False, long=8, page=256):
        self.big, self.long, self.page = big, long, page

    def number(self, size, value):
        return (value & (1 << 8 * size) - 1).to_bytes(size, "big" if self.big else "little")

    def u16(self, *values):
        return b"".join(self.number(2, v) for v in values)

    def u32(self, *values):
        return b"".join(self.number(4, v) for v in values)

    def u64(self, *values):
        return b"".join(self.number(8, v) for v in values)

    def header_page(self):
        fields = (("u64 timestamp", 0, 8, 0), ("local_t commit", 8, self.long, 1), ("int overwrite", 8, 1, 1), ("char data", 8 + self.long, self.page - 8 - self.long, 1))
        return b"".join(b"\tfield: %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % (name.encode(), *rest) for name, *rest in fields)

    def word(self, kind, delta):
        return self.u32(kind << 27 | delta if self.big else delta << 5 | kind)

    def entry(self, delta, payload, counted=False):
        """counted: with a word of its own for the length."""
        padded = payload + bytes(-len(payload) % 4)
        if counted or len(padded) > 112:
            return self.word(0, delta) + self.u32(len(payload) + 4) + padded
        return self.word(len(padded) // 4, delta) + padded

    def extend(self, delta):
        return self.word(TIME_EXTEND, delta & (1 << 27) - 1) + self.u32(delta >> 27)

    def stamp(self, time):
        return self.word(TIME_STAMP, time & (1 << 27) - 1) + self.u32(time >> 27 & 0xffffffff)

    def sub_buffer(self, time, entries, lost=None, commit=None, size=0, long=0):
        """lost: how many events before it, 0: nobody knows. A count needs room behind the entries."""
        body, long = b"".join(entries), long or self.long
        commit = len(body) if commit is None else commit
        if lost is not None:
            commit |= LOST | (STORED if lost else 0)
            commit -= 1 << 32  # the word is signed
        return (self.u64(time) + self.number(long, commit) + body + (self.number(long, lost) if lost else b"")).ljust(size or self.page, b"\0")


class Event:
    """fields: (declaration, size or "long", signed)."""
    def __init__(self, number, name, *fields):
        self.number, self.name, self.fields = number, name, fields

    def layout(self, k):
        at = 8
        for declaration, size, signed in self.fields:
            size = k.long if size == "long" else size
            align = size if size in (2, 4, 8) and "[" not in declaration.split("__")[0] else 1
            at += -at % align
            yield declaration, at, size, signed
            at += size

    def text(self, k):
        common = (("unsigned short common_type", 0, 2, 0), ("unsigned char common_flags", 2, 1, 0), ("unsigned char common_preempt_count", 3, 1, 0), ("int common_pid", 4, 4, 1))
        line = lambda f: "\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % f
        return (f"name: {self.name}\nID: {self.number}\nformat:\n" + "".join(map(line, common)) + "\n" + "".join(map(line, self.layout(k))) + '\nprint fmt: ""\n').encode()

    def pack(self, k, pid, *values):
        """values: numbers, or bytes for fields of characters; what is left over stands behind the fields."""
        out = k.u16(self.number) + b"\0\0" + k.u32(pid)
        for (_, at, size, _), value in zip(self.layout(k), values):
            out = out.ljust(at, b"\0") + (value.ljust(size, b"\0") if isinstance(value, bytes) else k.number(size, value))
        return out + b"".join(values[len(self.fields):])


class TraceDat:
    """Parts stand in its members, to be changed; buffers: [(name, {cpu: [sub-buffers]}, more)], with `more` page size and clock."""
    def __init__(self, kernel, version=7, compression="none", events={}, options=(), **parts):
        self.k, self.version, self.compression, self.events, self.options = kernel, version, compression, events, list(options)
        self.buffers, self.n_cpus, self.clock_text, self.more = [], 2, b"", []
        self.header_page, self.header_event = kernel.header_page(), HEADER_EVENT
        self.kallsyms = self.printk = self.cmdlines = b""
        self.latency = None
        self.squeeze_options = self.count_in_size = False
        self.chunk_pages = 2
        self.__dict__.update(parts)

    def buffer(self, name, cpus, page=0, clock=b"local"):
        self.buffers.append((name, cpus, page or self.k.page, clock))
        return self

    def bytes(self):
        return self.version6() if self.version == 6 else self.version7()

    def head(self):
        return MAGIC + b"%d\0" % self.version + bytes([self.k.big, self.k.long]) + self.k.u32(self.k.page)

    def parts(self):
        k, sized = self.k, lambda text: self.k.u64(len(text)) + text
        header = b"header_page\0" + sized(self.header_page) + b"header_event\0" + sized(self.header_event)
        own = [e.text(k) for e in self.events.get("ftrace", ())]
        groups = {g: [e.text(k) for e in es] for g, es in self.events.items() if g != "ftrace"}
        formats = k.u32(len(groups)) + b"".join(g.encode() + b"\0" + k.u32(len(t)) + b"".join(map(sized, t)) for g, t in groups.items())
        short = lambda text: k.u32(len(text)) + text
        return [(HEADER_INFO, header), (FTRACE_FORMATS, k.u32(len(own)) + b"".join(map(sized, own))), (EVENT_FORMATS, formats), (KALLSYMS, short(self.kallsyms)),
                (PRINTK, short(self.printk)), (CMDLINES, sized(self.cmdlines))]

    def option(self, number, data):
        return self.k.u16(number) + self.k.u32(len(data)) + data

    def version6(self):
        k = self.k
        n = max([self.n_cpus] + [int.from_bytes(d, "big" if k.big else "little") for i, d in self.options if i == CPUCOUNT])
        out = self.head() + b"".join(body for _, body in self.parts()) + k.u32(self.n_cpus)
        named = [b for b in self.buffers if b[0]]
        options = b"".join(self.option(i, d) for i, d in self.options)
        if self.latency is not None:
            return out + b"options  \0" + options + k.u16(DONE) + b"latency  \0" + self.latency
        places, tables = {}, {}  # of instances: where their tags stand

        def build():
            body = out
            if self.options or named:
                body += b"options  \0" + options + b"".join(self.option(BUFFER, k.u64(places.get(b[0], 0)) + b[0] + b"\0") for b in named) + k.u16(DONE)
            for b in [b for b in self.buffers if not b[0]] + named:
                places[b[0]] = len(body)
                body += b"flyrecord\0" + b"".join(k.u64(*tables.get((b[0], cpu), (0, 0))) for cpu in range(n))
                body += self.clock_text if not b[0] else b""
                for cpu, pages in sorted(b[1].items()):
                    body += bytes(-len(body) % k.page)
                    tables[b[0], cpu] = (len(body), len(b"".join(pages)))
                    body += b"".join(pages)
            return body
        build()  # learns the places
        return build()

    def section(self, number, body, compress=True):
        k, flag = self.k, 0
        if compress and self.compression != "none":
            packed = COMPRESS[self.compression](body)
            body, flag = k.u32(len(packed), len(body)) + packed, 1
        return k.u16(number, flag) + k.u32(0) + k.u64(len(body)) + body

    def cpu_data(self, pages, page):
        data = b"".join(pages)
        if self.compression == "none" or not data:
            return data
        step = self.chunk_pages * page
        chunks = [data[i:i + step] for i in range(0, len(data), step)]
        packed = [COMPRESS[self.compression](c) for c in chunks]
        return self.k.u32(len(chunks)) + b"".join(self.k.u32(len(p), len(c)) + p for p, c in zip(packed, chunks))

    def buffer_section(self, at, name, cpus, page, clock):
        k, body, rows = self.k, b"", b""
        for cpu, pages in cpus.items():
            data = self.cpu_data(pages, page)
            body += bytes(-(at + 16 + len(body)) % k.page)
            size = len(data) - (4 if data and self.compression != "none" and not self.count_in_size else 0)
            rows += k.u32(cpu) + k.u64(at + 16 + len(body), size)
            body += data
        flag = self.compression != "none"
        option = k.u64(at) + name + b"\0" + clock + b"\0" + k.u32(page, len(cpus)) + rows
        return k.u16(BUFFER, flag) + k.u32(0) + k.u64(len(body)) + body, option

    def version7(self):
        """The sections, the data, the options: in the second of two lists what `more` holds."""
        k = self.k
        out = self.head() + self.compression.encode() + b"\0" + b"1.0\0"
        first, out = len(out), out + k.u64(0)
        options = list(self.options)
        for number, body in self.parts():
            options.append((number, k.u64(len(out))))
            out += self.section(number, body)
        for b in self.buffers:
            section, option = self.buffer_section(len(out), *b)
            options.append((BUFFER, option))
            out += section
        if self.latency is not None:
            options.append((BUFFER_TEXT, k.u64(len(out)) + b"\0local\0"))
            out += self.section(BUFFER_TEXT, self.latency, False)
        out += self.section(STRINGS, b"what is in it\0", False)
        last = len(out)
        out += self.options_section(self.more, 0)
        return out[:first] + k.u64(len(out)) + out[first + 8:] + self.options_section(options, last)

    def options_section(self, options, then):
        body = b"".join(self.option(i, d) for i, d in options) + self.option(DONE, self.k.u64(then))
        return self.section(DONE, body, self.squeeze_options)

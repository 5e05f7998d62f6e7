"""Writes traces of call stacks whose frames have files, build ids and addresses, as linux.perf records them."""
import pathlib
import struct

from pb import field


def fields(message):
    """Pairs (number, value) of a message: numbers, or bytes."""
    def number(at):
        v = shift = 0
        while True:
            b = message[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v, at
    at = 0
    while at < len(message):
        tag, at = number(at)
        v, at = number(at)
        if tag & 7 == 2:
            v, at = message[at:at + v], at + v
        yield tag >> 3, v


PACKET, INTERNED, PERF_SAMPLE, SEQUENCE, FLAGS, TIMESTAMP = 1, 12, 66, 10, 13, 8


class Module:
    """A mapped file: `stacks` are lists of addresses in it (rel_pc), the caller first."""

    def __init__(self, path, build_id, stacks, load_bias=0, offset=0, pid=100):
        self.path, self.build_id, self.stacks, self.load_bias, self.offset, self.pid = path, build_id, stacks, load_bias, offset, pid


def trace(modules):
    """The bytes of a trace with one sample for each stack."""
    out = bytearray()

    def packet(*parts):
        body = b"".join(parts) + field(SEQUENCE, 7)
        out.extend(field(PACKET, body))

    packet(field(TIMESTAMP, 1000), field(FLAGS, 1),
           field(INTERNED, field(16, field(1, 0) + field(2, b"")) + field(17, field(1, 0) + field(2, b"")) +
                 field(5, field(1, 0) + field(2, b""))))
    string = mapping = frame = stack = 1
    ts = 2000
    for m in modules:
        interned = [field(16, field(1, string) + field(2, m.build_id))]
        parts = [p for p in m.path.split("/") if p]
        ids = []
        for p in parts:
            string += 1
            ids.append(string)
            interned.append(field(17, field(1, string) + field(2, p)))
        interned.append(field(19, field(1, mapping) + field(2, string - len(parts)) + field(4, 0x10000000 * mapping) +
                              field(5, 0x10000000 * mapping + 0xfffffff) + field(6, m.load_bias) +
                              b"".join(field(7, i) for i in ids) + field(8, m.offset)))
        known, samples = {}, []
        for addresses in m.stacks:
            frames = []
            for a in addresses:
                if a not in known:
                    known[a] = frame
                    interned.append(field(6, field(1, frame) + field(2, 0) + field(3, mapping) + field(4, a)))
                    frame += 1
                frames.append(known[a])
            interned.append(field(7, field(1, stack) + b"".join(field(2, f) for f in frames)))
            samples.append(stack)
            stack += 1
        string += 1
        mapping += 1
        packet(field(FLAGS, 2), field(INTERNED, b"".join(interned)))
        for s in samples:
            ts += 1000
            packet(field(TIMESTAMP, ts), field(FLAGS, 2),
                   field(PERF_SAMPLE, field(1, 0) + field(2, m.pid) + field(3, m.pid) + field(4, s) + field(5, 2)))
    return bytes(out)


def module_symbols(packets):
    """{(path, build id): {address: [(function, file, line), …]}} of what util symbolize writes."""
    out = {}
    for number, packet in fields(packets):
        assert number == PACKET, number
        for n, module in fields(packet):
            assert n == 61, n
            parts = list(fields(module))
            key = (next(v for k, v in parts if k == 1).decode(), next(v for k, v in parts if k == 2))
            for k, address in parts:
                if k != 3:
                    continue
                a = list(fields(address))
                lines = []
                for kk, line in a:
                    if kk == 2:
                        d = dict(fields(line))
                        lines.append((d.get(1, b"").decode(), d.get(2, b"").decode(), d.get(3, 0)))
                out.setdefault(key, {})[dict(x for x in a if x[0] == 1)[1]] = lines
    return out


class Elf:
    """What a recorder says of an ELF file of 64 bits: its build id, and how its code lies."""

    def __init__(self, path):
        self.path, self.build_id, self.load_bias, self.offset = str(path), b"", 0, 0
        data = pathlib.Path(path).read_bytes()
        table = struct.unpack_from("<Q", data, 32)[0]
        size, n = struct.unpack_from("<HH", data, 54)
        loads = False
        for i in range(n):
            kind, flags, start, address, _, length, _, align = struct.unpack_from("<IIQQQQQQ", data, table + i * size)
            if kind == 1 and flags & 1 and not loads:
                loads, self.load_bias, self.offset = True, address - start, start & ~0xfff
            if kind == 4 and not self.build_id:
                self.build_id = self.find(data[start:start + length])

    @staticmethod
    def find(notes):
        at = notes.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
        return notes[at + 16:at + 36] if at >= 0 else b""

    def module(self, stacks, path=None, build_id=None, pid=100):
        return Module(path or self.path, self.build_id if build_id is None else build_id, stacks, self.load_bias, self.offset, pid)

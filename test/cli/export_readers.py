"""Reads what `tp_shell export` writes, by the descriptions of the formats alone. A table is (names, rows)."""
import json
import re
import struct


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        piece = self.data[self.at:self.at + n]
        assert len(piece) == n, "the file ends inside of a value"
        self.at += n
        return piece

    def varint(self):
        value = shift = 0
        while True:
            b = self.take(1)[0]
            value |= (b & 127) << shift
            shift += 7
            if b < 128:
                return value

    def text(self):
        return self.take(self.varint()).decode()

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def array(self, code, n):
        return list(struct.unpack(f"<{n}{code}", self.take(n * struct.calcsize(code))))

    def left(self):
        return self.at < len(self.data)


FIXED = {"Int64": "q", "Float64": "d"}


def native_column(b, kind, rows):
    if kind.startswith("LowCardinality("):
        inner = kind[15:-1]
        assert b.u64() == 1
        flags = b.u64()
        assert flags & ~0xff == 0x200, hex(flags)
        keys = [b.text() for _ in range(b.u64())]
        if inner.startswith("Nullable("):
            keys[0] = None
        assert b.u64() == rows
        return [keys[i] for i in b.array("BHIQ"[flags & 0xff], rows)]
    nulls = [0] * rows
    if kind.startswith("Nullable("):
        kind = kind[9:-1]
        nulls = list(b.take(rows))
    values = b.array(FIXED[kind], rows) if kind in FIXED else [b.text() for _ in range(rows)]
    return [None if null else value for null, value in zip(nulls, values)]


def native(data, _schema=None):
    b, names, out = Bytes(data), None, []
    while b.left():
        n, rows = b.varint(), b.varint()
        columns, here = [], []
        for _ in range(n):
            here.append(b.text())
            columns.append(native_column(b, b.text(), rows))
        assert names in (None, here)
        names = here
        out += zip(*columns)
    return names, [list(row) for row in out]


def schemas(text):
    """{table: [(column, type)]} of schema.sql."""
    found = {}
    for line in text.splitlines():
        table, columns = re.fullmatch(r"CREATE TABLE `(\w+)` \((.*)\) ENGINE = MergeTree ORDER BY tuple\(\);", line).groups()
        found[table] = re.findall(r"`([^`]*)` (\S+?)(?:, |$)", columns)
    return found


def rowbinary(data, schema):
    b, out = Bytes(data), []
    while b.left():
        row = []
        for _, kind in schema:
            if kind.startswith("Nullable("):
                kind = kind[9:-1]
                if b.take(1)[0]:
                    row.append(None)
                    continue
            row.append(b.array(FIXED[kind], 1)[0] if kind in FIXED else b.text())
        out.append(row)
    return [name for name, _ in schema], out


def csv_records(text):
    """Cells as they stand: None for nothing at all."""
    row, at = [], 0
    while at < len(text):
        if text[at] == '"':
            cell, at = "", at + 1
            while True:
                end = text.index('"', at)
                cell += text[at:end]
                at = end + 1
                if text[at] != '"':
                    break
                cell += '"'
                at += 1
        else:
            end = min(i for i in (text.find(",", at), text.find("\n", at)) if i >= 0)
            cell = text[at:end] if end > at else None
            at = end
        row.append(cell)
        if text[at] == "\n":
            yield row
            row = []
        else:
            assert text[at] == ","
            if text[at + 1] == "\n":
                yield row + [None]
                row, at = [], at + 1
        at += 1


def csv(data, _schema=None):
    records = list(csv_records(data.decode()))
    return records[0], records[1:]


def jsonl(data, _schema=None):
    rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    return list(rows[0]) if rows else None, [list(r.values()) for r in rows]

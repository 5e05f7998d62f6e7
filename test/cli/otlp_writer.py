"""Makes traces of OpenTelemetry in all their forms: JSON and protobuf of the same spans."""
import base64
import json
import struct

from pb import field, fixed, varint
from trace_dat_writer import stored_zstd


class Span:
    """ids are bytes; attributes: {key: value}; events: [(time, name, attributes)]; links: [(trace, span, attributes)]."""
    def __init__(self, ident, start=1000, end=2000, name="work", trace=b"\x11" * 16, parent=b"", kind=2, attributes={}, events=(), links=(), status=None, flags=0, state="",
                 dropped=(0, 0, 0)):
        self.ident, self.start, self.end, self.name, self.trace, self.parent, self.kind = ident, start, end, name, trace, parent, kind
        self.attributes, self.events, self.links, self.status, self.flags, self.state, self.dropped = attributes, events, links, status, flags, state, dropped


def json_value(v):
    if v is None:
        return {}
    if isinstance(v, bool):
        return {"boolValue": v}
    if isinstance(v, int):
        return {"intValue": str(v)}
    if isinstance(v, float):
        return {"doubleValue": v if v == v and abs(v) != float("inf") else "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"}
    if isinstance(v, str):
        return {"stringValue": v}
    if isinstance(v, bytes):
        return {"bytesValue": base64.b64encode(v).decode()}
    return {"arrayValue": {"values": [json_value(x) for x in v]}} if isinstance(v, list) else {"kvlistValue": {"values": json_attributes(v)}}


def json_attributes(attributes):
    return [{"key": k, "value": json_value(v)} for k, v in attributes.items()]


def json_span(s):
    out = {"traceId": s.trace.hex(), "spanId": s.ident.hex(), "name": s.name, "kind": s.kind, "startTimeUnixNano": str(s.start), "endTimeUnixNano": str(s.end)}
    if s.parent:
        out["parentSpanId"] = s.parent.hex()
    if s.state:
        out["traceState"] = s.state
    if s.flags:
        out["flags"] = s.flags
    if s.status:
        out["status"] = {"code": s.status[0], "message": s.status[1]}
    out["attributes"] = json_attributes(s.attributes)
    out["events"] = [{"timeUnixNano": str(t), "name": n, "attributes": json_attributes(a)} for t, n, a in s.events]
    out["links"] = [{"traceId": t.hex(), "spanId": i.hex(), "attributes": json_attributes(a)} for t, i, a in s.links]
    for key, n in zip(("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"), s.dropped):
        if n:
            out[key] = n
    return out


def json_message(resource, spans, scope=("library", "1.0")):
    return {"resourceSpans": [{"resource": {"attributes": json_attributes(resource)},
                               "scopeSpans": [{"scope": {"name": scope[0], "version": scope[1]}, "spans": [json_span(s) for s in spans]}]}]}


def proto_value(v):
    if v is None:
        return b""
    if isinstance(v, bool):
        return field(2, v)
    if isinstance(v, int):
        return field(3, v)
    if isinstance(v, float):
        return varint(4 << 3 | 1) + struct.pack("<d", v)
    if isinstance(v, str):
        return field(1, v)
    if isinstance(v, bytes):
        return field(7, v)
    return field(5, b"".join(field(1, proto_value(x)) for x in v)) if isinstance(v, list) else field(6, proto_attributes(1, v))


def proto_attributes(number, attributes):
    return b"".join(field(number, field(1, k) + field(2, proto_value(v))) for k, v in attributes.items())


def proto_span(s):
    out = field(1, s.trace) + field(2, s.ident) + (field(3, s.state) if s.state else b"") + (field(4, s.parent) if s.parent else b"") + field(5, s.name)
    out += field(6, s.kind) + fixed(7, s.start) + fixed(8, s.end) + proto_attributes(9, s.attributes)
    out += b"".join(field(11, fixed(1, t) + field(2, n) + proto_attributes(3, a)) for t, n, a in s.events)
    out += b"".join(field(13, field(1, t) + field(2, i) + proto_attributes(4, a)) for t, i, a in s.links)
    out += b"".join(field(number, n) for number, n in zip((10, 12, 14), s.dropped) if n)
    if s.status:
        out += field(15, field(2, s.status[1]) + field(3, s.status[0]))
    return out + (varint(16 << 3 | 5) + struct.pack("<I", s.flags) if s.flags else b"")


def proto_message(resource, spans, scope=("library", "1.0")):
    return field(1, field(1, proto_attributes(1, resource)) + field(2, field(1, field(1, scope[0]) + field(2, scope[1])) + b"".join(field(2, proto_span(s)) for s in spans)))


def big_endian(message):
    return struct.pack(">I", len(message)) + message


def forms(messages):
    """{form: bytes} of [(resource, spans)]."""
    texts, binary = [json_message(*m) for m in messages], [proto_message(*m) for m in messages]
    lines = "".join(json.dumps(t) + "\n" for t in texts).encode()
    whole = {"resourceSpans": [r for t in texts for r in t["resourceSpans"]]}
    return {"lines": lines, "document": json.dumps(whole, indent=2).encode(), "bare": b"".join(binary), "prefixed": b"".join(map(big_endian, binary)),
            "delimited": b"".join(varint(len(b)) + b for b in binary), "frames": b"".join(big_endian(stored_zstd(b)) for b in binary),
            "frames of lines": b"".join(big_endian(stored_zstd(json.dumps(t).encode())) for t in texts)}

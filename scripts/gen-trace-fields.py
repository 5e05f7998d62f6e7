#!/usr/bin/env python3
"""Writes src/wire/trace_fields.def: the messages, fields and enums that a trace is made of.

Usage: gen-trace-fields.py FIELDS.tsv[,MORE.tsv...] ENUMS.tsv[,MORE.tsv...] > src/wire/trace_fields.def

FIELDS has the columns file, message, number, label, type, name, oneof, packed, default; ENUMS has file, enum, value, name;
both with a head line that names them (further files need none). What cannot be reached from Trace is left out, and so
are the payloads of kernel events, which are in ftrace_events.def. A message of which no field is listed stays, without
fields. The result is committed; a build never runs this script.
"""
import sys

SCALARS = ("double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes"
           .split())
FROM_FTRACE = "FtraceEvent"  # its events and their payloads are rows of ftrace_events.def


def rows(paths, columns):
    for path in paths.split(","):
        for line in open(path, encoding="utf-8"):
            cells = line.rstrip("\n").split("\t")
            if cells[0] != "file":
                yield dict(zip(columns, cells))


def token(name):
    return name.replace(".", "_")


def main():
    messages, enums = {}, {}
    for r in rows(sys.argv[1], "file message number label type name oneof packed default".split()):
        messages.setdefault(r["message"], {})[int(r["number"])] = r
    for r in rows(sys.argv[2], "file enum value name".split()):
        enums.setdefault(r["enum"], []).append((int(r["value"]), r["name"]))

    used, used_enums, todo = set(), set(), ["Trace"]
    while todo:
        name = todo.pop()
        if name in used:
            continue
        used.add(name)
        for f in messages.get(name, {}).values():
            if name == FROM_FTRACE and f["type"] not in SCALARS:
                continue
            if f["type"] in enums:
                used_enums.add(f["type"])
            elif f["type"] not in SCALARS:
                todo.append(f["type"])
    used |= {"GenericFtraceEvent.Field"}
    used_enums |= {"KprobeEvent.KprobeType"}

    print("""/* The messages that a trace is made of, sorted by name: MESSAGE(token, "name", fields), and ENUM(token, "name", values).
 * Fields, sorted by number: F(number, "name", TYPE) is a scalar, M(number, "name", message) a message, E(number, "name",
 * enum) one of the ENUMs; R, RM and RE are repeated ones, P and PE repeated ones that are written packed. The payloads of
 * kernel events are in ftrace_events.def. Made by scripts/gen-trace-fields.py; read through wire/trace_fields.h. */
// clang-format off""")
    print("#ifdef MESSAGE")
    for name in sorted(used):
        fields = []
        for number, f in sorted(messages.get(name, {}).items()):
            t = f["type"]
            prefix = "" if f["label"] != "repeated" else "P" if f.get("packed") else "R"
            if name == FROM_FTRACE and t not in SCALARS:
                continue
            if t in SCALARS:
                fields.append(f'{prefix or "F"}({number}, "{f["name"]}", {t.upper()})')
            elif t in enums:
                fields.append(f'{prefix}E({number}, "{f["name"]}", {token(t)})')
            else:
                fields.append(f'{prefix}M({number}, "{f["name"]}", {token(t)})')
        print(f'MESSAGE({token(name)}, "{name}", {" ".join(fields) or "NONE"})')
    print("#endif\n#ifdef ENUM")
    for name in sorted(used_enums):
        values = " ".join(f'V({value}, "{text}")' for value, text in sorted(enums[name], key=lambda v: v[0]))
        print(f'ENUM({token(name)}, "{name}", {values})')
    print("#endif")


main()

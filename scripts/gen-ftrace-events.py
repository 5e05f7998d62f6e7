#!/usr/bin/env python3
"""Writes src/wire/ftrace_events.def from a list of FtraceEvent messages.

Usage: gen-ftrace-events.py LIST > src/wire/ftrace_events.def

LIST has one line an event, as in the project's notes on the format:

    - 4 **sched_switch** [sched/sched_switch]: 1 prev_comm:string, 2 prev_pid:int32, ...

that is: field number in FtraceEvent, name, tracefs group/name ("-" when the kernel has no event of that kind), and the
fields of the payload. Lines of any other shape are ignored. The result is committed; a build never runs this script.
"""
import re
import sys

TYPES = {
    "int32": "INT32", "int64": "INT64", "uint32": "UINT32", "uint64": "UINT64", "string": "STRING", "bytes": "BYTES",
}
EVENT = re.compile(r"^- (\d+) \*\*(\w+)\*\* \[([^\]]+)\](?:: (.*))?$")
FIELD = re.compile(r"^(\d+) (\w+):(rep )?([\w.]+)$")


def field(text):
    number, name, repeated, kind = FIELD.match(text).groups()
    if kind in TYPES:
        kind = TYPES[kind]
    else:
        kind = "MESSAGE" if repeated else "ENUM"
    macro = "R" if repeated else "F"
    return f'{macro}({number}, "{name}", {kind})'


def main():
    rows = []
    for line in open(sys.argv[1], encoding="utf-8"):
        match = EVENT.match(line.rstrip("\n"))
        if not match:
            continue
        number, name, tracefs, fields = match.groups()
        group, event = tracefs.split("/") if tracefs != "-" else ("", "")
        quoted = (f'"{group}"', f'"{event}"') if group else ("NULL", "NULL")
        fields = [field(f) for f in fields.split(", ")] if fields else []
        row = f'EVENT({number}, {quoted[0]}, {quoted[1]}, "{name}", {" ".join(fields) or "NONE"})'
        rows.append(((group, event, int(number)), row))
    print("/* Every typed ftrace event, one row each, sorted by (tracefs group, tracefs name): EVENT(field number in FtraceEvent,")
    print(" * group, tracefs name, name in traces, fields). F() is a field of the payload, R() a repeated one. Made by")
    print(" * scripts/gen-ftrace-events.py; read through wire/ftrace_events.h. */")
    print("// clang-format off")
    for _, row in sorted(rows):
        print(row)


main()

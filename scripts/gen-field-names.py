#!/usr/bin/env python3
"""Writes wire/fields.h: a named constant for every field and enum value of the messages that the code reads and writes.

Usage: gen-field-names.py OUTPUT TRACE_FIELDS.def FTRACE_EVENTS.def FILE.proto...

The build runs this. Field `timestamp` of TracePacket becomes TRACE_PACKET_TIMESTAMP; field `bytes_read` of
TraceStats.BufferStats becomes TRACE_STATS_BUFFER_STATS_BYTES_READ; value TYPE_INSTANT of enum TrackEvent.Type becomes
TRACK_EVENT_TYPE_INSTANT (words that end the enum's name and start the value's are written once). Event sched_switch
becomes FTRACE_EVENT_SCHED_SWITCH and its field prev_pid FTRACE_SCHED_SWITCH_PREV_PID. Enum TrackEvent.Type is an
enum track_event_type.

Where the fields of two messages want one name (LogMessage.body_iid and LogMessageBody.iid), the longer message's has two
underscores: LOG_MESSAGE_BODY__IID. A message may be in several files; when they disagree about a number, the build fails.
"""
import re
import sys

HEAD = """/* The numbers of fields and enum values, by name. Made by scripts/gen-field-names.py from wire/trace_fields.def,
 * wire/ftrace_events.def and the .proto files; do not edit. */
#ifndef MERIDIAN_WIRE_FIELDS_H
#define MERIDIAN_WIRE_FIELDS_H
"""


def words(name):
    """TraceStats.BufferStats -> TRACE_STATS_BUFFER_STATS"""
    name = name.replace(".", "_")
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name).upper()


def value_name(enum, value):
    """TrackEvent.Type, TYPE_INSTANT -> TRACK_EVENT_TYPE_INSTANT"""
    left, right = words(enum).split("_"), value.upper().split("_")
    for shared in range(min(len(left), len(right) - 1), 0, -1):
        if left[-shared:] == right[:shared]:
            return "_".join(left + right[shared:])
    return "_".join(left + right)


class Names:
    def __init__(self):
        self.groups = {}  # ("message", "TracePacket", "TRACE_PACKET_") -> {"TIMESTAMP": 8}

    def add(self, kind, name, prefix, rest, number):
        group = self.groups.setdefault((kind, name, prefix), {})
        if group.setdefault(rest, number) != number:
            sys.exit(f"{kind} {name}: {rest} is {group[rest]} in one file and {number} in another")

    def message(self, name, fields):
        for number, field in fields:
            self.add("message", name, words(name) + "_", field.upper(), int(number))

    def enum(self, name, values):
        for number, value in values:
            self.add("enum", name, "", value_name(name, value), int(number))

    def constants(self):
        """{group: {constant: number}}; of two fields that want one constant, the outer message's gets it."""
        owners, result = {}, {}
        for group, rows in sorted(self.groups.items(), key=lambda g: len(g[0][2])):
            for rest, number in rows.items():
                constant = group[2] + rest
                if owners.get(constant, number) != number:
                    constant = group[2] + "_" + rest
                if owners.get(constant, number) != number:
                    sys.exit(f"{constant} is {number} in {group[0]} {group[1]} and {owners[constant]} elsewhere")
                if constant not in owners:
                    result.setdefault(group, {})[constant] = number
                owners[constant] = number
        return {group: result[group] for group in self.groups if group in result}


def read_trace_fields(path, names):
    for line in open(path, encoding="utf-8"):
        m = re.match(r'(MESSAGE|ENUM)\(\w+, "([\w.]+)", (.*)\)$', line)
        if m and m[1] == "MESSAGE":
            names.message(m[2], re.findall(r'\b[A-Z]+\((\d+), "(\w+)"', m[3]))
        elif m:
            names.enum(m[2], re.findall(r'\bV\((-?\d+), "(\w+)"', m[3]))
        m = re.match(r'EXTEND\("([\w.]+)", (.*)\)$', line)
        if m:
            names.message(m[1], re.findall(r'\b[A-Z]+\((\d+), "(\w+)"', m[2]))


def read_events(path, names):
    for line in open(path, encoding="utf-8"):
        m = re.match(r'EVENT\((\d+), [^,]+, [^,]+, "(\w+)", (.*)\)$', line)
        if m:
            names.message("FtraceEvent", [(m[1], m[2])])
            for number, field in re.findall(r'\b[A-Z]+\((\d+), "(\w+)"', m[3]):
                names.add("event", m[2], f"FTRACE_{m[2].upper()}_", field.upper(), int(number))


def read_proto(path, names):
    """The .proto files of this repository: messages and enums in braces, fields and values each on one line."""
    scope = []  # (kind, full name); oneofs have kind "oneof" and no name of their own
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    for statement in re.findall(r"[^;{}]*[;{}]", text):
        body, end = statement[:-1].split(), statement[-1]
        owner = next((name for kind, name in reversed(scope) if name), "")
        if end == "{":
            named = body[0] in ("message", "enum")
            scope.append((body[0], (owner + "." if owner else "") + body[1] if named else ""))
        elif end == "}":
            scope.pop()
        elif scope:
            number = re.search(r"(\w+) = (-?(?:0x)?[0-9a-fA-F]+)\b", " ".join(body))
            if number and body[0] not in ("option", "reserved", "extensions"):
                add = names.enum if scope[-1][0] == "enum" else names.message
                add(owner, [(int(number[2], 0), number[1])])


def main():
    names = Names()
    read_trace_fields(sys.argv[2], names)
    read_events(sys.argv[3], names)
    for path in sys.argv[4:]:
        read_proto(path, names)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(HEAD)
        for (kind, name, _), constants in names.constants().items():
            rows = "".join(f"    {c} = {n},\n" for c, n in constants.items())
            tag = words(name).lower() + " " if kind == "enum" else ""
            out.write(f"\nenum {tag}{{ /* {kind} {name} */\n{rows}}};\n")
        out.write("\n#endif\n")


main()

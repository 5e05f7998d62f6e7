#!/usr/bin/env python3
"""Writes descriptors of messages whose fields become args by their names, as rows of a .def file.

Usage: gen-messages.py WHAT FIELDS.tsv[,MORE.tsv...] ENUMS.tsv[,MORE.tsv...] > FILE.def

WHAT is `track-event` (src/importer/track_event/builtin_messages.def) or `winscope` (winscope_messages.def, beside it).
The tables are those of gen-trace-fields.py. The result is committed; a build never runs this script.
"""
import re
import sys

SCALARS = ("double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes"
           .split())
HEADS = {
    "track-event": "The messages inside TrackEvent whose fields become args by their names, for traces that carry no "
                   "descriptors.",
    "winscope": "The messages that tell of Android's windows, layers, input and views: all fields become args.",
}
# Fields of TrackEvent that become args; extensions all do.
REFLECTED = {24, 25, 26, 27, 28, 29, 32, 35, 38, 39, 40, 41, 43, 49, 50}
WINSCOPE_ROOTS = """LayersSnapshotProto TransactionTraceEntry ShellTransition ShellHandlerMappings ViewCapture
InputMethodClientsTraceProto InputMethodServiceTraceProto InputMethodManagerServiceTraceProto AndroidInputEvent
WindowManagerTraceEntry""".split()
# What GPU drivers and libraries add to TrackEvent; not in the tables.
GPU = [("message", "TrackEvent"),
       ("field", 3000, "MESSAGE", False, "gpu_correlation", "GpuCorrelation"),
       ("field", 3001, "ENUM", False, "gpu_api", "GpuApi"),
       ("message", "GpuCorrelation"),
       ("field", 1, "UINT64", True, "render_stage_submission_event_ids", ""),
       ("field", 2, "UINT64", True, "render_stage_wait_event_ids", ""),
       ("enum", "GpuApi")] + [("value", i, "GPU_API_" + n) for i, n in enumerate(
           "UNDEFINED OPEN_GL VULKAN OPEN_CL CUDA HIP".split())]


def rows(paths, columns):
    for path in paths.split(","):
        for line in open(path, encoding="utf-8"):
            cells = line.rstrip("\n").split("\t")
            if cells[0] != "file":
                yield dict(zip(columns, cells))


def last_part(name, known):
    """Names of other packages lose them: android.net.X is X."""
    return name if name in known or name in SCALARS else re.sub(r"^([a-z]\w*\.)+", "", name)


def show(row):
    if row[0] == "message":
        return f'M("{row[1]}")'
    if row[0] == "enum":
        return f'E("{row[1]}")'
    if row[0] == "value":
        return f'V({row[1]}, "{row[2]}")'
    return f'F({row[1]}, {row[2]}, {"true" if row[3] else "false"}, "{row[4]}", "{row[5]}")'


def main():
    what = sys.argv[1]
    messages, enums = {}, {}
    for r in rows(sys.argv[2], "file message number label type name oneof packed default".split()):
        name = r["message"].replace("extend ", "")
        if "/primes/" in r["file"] or "/pprof/" in r["file"] or "/simpleperf/" in r["file"] or "ftrace/" in r["file"]:
            continue
        messages.setdefault(name, {}).setdefault(int(r["number"]), r)
    for r in rows(sys.argv[3], "file enum value name".split()):
        enums.setdefault(r["enum"], []).append((int(r["value"]), r["name"]))
    known = set(messages) | set(enums)

    out, seen, used_enums = [], set(), []
    todo = ["TrackEvent"] if what == "track-event" else list(WINSCOPE_ROOTS)
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        out.append(("message", name))
        for number, f in sorted(messages.get(name, {}).items()):
            if name == "TrackEvent" and number < 1000 and number not in REFLECTED:
                continue
            t = last_part(f["type"], known)
            if t in SCALARS:
                kind, t = t.upper(), ""
            elif t in enums:
                kind = "ENUM"
                if t not in used_enums:
                    used_enums.append(t)
            else:
                kind = "MESSAGE"
                todo.append(t)
            out.append(("field", number, kind, f["label"] == "repeated", f["name"], t))
    for name in used_enums:
        out.append(("enum", name))
        out += [("value", value, text) for value, text in enums[name]]
    if what == "track-event":
        out += GPU

    print(f"""/* {HEADS[what]}
 *   M(message) then its fields: F(number, type, repeated, name, type name)
 *   E(enum) then its values: V(number, name)
 * Made by scripts/gen-messages.py. */
// clang-format off""")
    for row in out:
        print(show(row))


main()

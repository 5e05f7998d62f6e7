#!/usr/bin/env python3
"""Includes between the folders of src/ go one way: no circle, and none from a folder to one above it. The names of
headers are unique, so that a name alone says which file is meant.

Usage: folders.py REPOSITORY
"""
import os
import re
import sys

# From the bottom to the top; folders in one row do not include each other. A folder that stands in no row may include
# what it wants as long as that makes no circle.
LAYERS = [
    "base",
    "wire storage demangle",
    "kernel rpc symbols unwind",
    # capture
    "capture/common capture/probes/common",
    "capture/ipc",
    "capture/shm",
    "capture/probes/ftrace capture/service capture/relay capture/client",
    "capture/probes",
    "capture/perf",
    "capture/heap",
    "capture/record",
    "capture/heap/client",
    "capture",
    # file to storage
    "importer/core importer/lines importer/sort importer/sync",
    "importer/clock importer/track",
    "importer/network",
    "importer/protovm",
    "importer/proto importer/profiling importer/system",
    "importer/ftrace importer/track_event",
    "importer/android importer/ctf",
    "importer/input",
    "importer/merge importer/text importer/trace_dat importer/winscope",
    "importer/fuchsia importer/hprof importer/json importer/otlp importer/perf",
    "importer",
    # SQL to rows
    "sql sql/frontend",
    "sql/vtab",
    "sql/planner",
    "sql/plan",
    "sql/dialect",
    "sql/functions sql/tables",
    "sql/operators",
    "sql/engine",
    "summary/query",
    "summary/run",
    "cut export",
    "api",
    "server compare fleet",
    # the program
    "shell",
    "shell/repl shell/convert shell/compare",
    "shell/commands",
]

# What the core of the importer may include: nothing beside it.
CORE = {"importer/core": {"base", "wire", "storage"}}


def includes(root):
    """{folder: {folder it includes: "file:line"}} of all sources below root."""
    graph = {}
    for folder, _, files in os.walk(root):
        here = os.path.relpath(folder, root)
        for name in sorted(files):
            if not name.endswith((".c", ".h", ".def")):
                continue
            with open(os.path.join(folder, name), errors="replace") as f:
                for number, line in enumerate(f, 1):
                    m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                    if not m or not os.path.exists(os.path.join(root, m.group(1))):
                        continue
                    there = os.path.dirname(m.group(1))
                    if there and there != here:
                        graph.setdefault(here, {}).setdefault(there, f"{here}/{name}:{number}")
    return graph


def circles(graph):
    """Groups of folders that include each other (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(group) > 1:
                found.append(sorted(group))

    for v in sorted(graph):
        if v not in index:
            visit(v)
    return found


def problems(graph):
    level = {folder: i for i, row in enumerate(LAYERS) for folder in row.split()}
    out = []
    for group in circles(graph):
        places = [f"{s} -> {t} ({graph[s][t]})" for s in group for t in sorted(graph.get(s, ())) if t in group]
        out.append("these folders include each other: " + "; ".join(places))
    for s in sorted(graph):
        for t in sorted(graph[s]):
            if s in level and t in level and level[t] >= level[s]:
                out.append(f"{graph[s][t]}: {s} includes {t}, which stands above or beside it")
            if s in CORE and t not in CORE[s]:
                out.append(f"{graph[s][t]}: {s} includes {t}; it may include {', '.join(sorted(CORE[s]))} only")
    return out


def headers(repository):
    """Paths of all headers of the product."""
    return [os.path.relpath(os.path.join(folder, name), repository)
            for top in ("src", "include")
            for folder, _, files in os.walk(os.path.join(repository, top))
            for name in files if name.endswith(".h")]


def same_names(paths):
    """Complaints about headers in different folders that have one name."""
    by_name = {}
    for path in sorted(paths):
        by_name.setdefault(os.path.basename(path), []).append(path)
    return [f"{' and '.join(p)} have the same name; rename one of them" for p in by_name.values() if len(p) > 1]


def check_the_check():
    """What is wrong must be found."""
    assert not problems({"wire": {"base": "a.c:1"}, "new": {"wire": "b.c:1"}})
    assert any("each other" in p for p in problems({"x": {"y": "a.c:1"}, "y": {"z": "b.c:1"}, "z": {"x": "c.c:1"}}))
    assert any("above or beside" in p for p in problems({"base": {"wire": "a.c:1"}}))
    assert any("above or beside" in p for p in problems({"storage": {"wire": "a.c:1"}}))
    assert not same_names(["src/a/x.h", "src/b/y.h"])
    assert same_names(["src/a/x.h", "src/b/x.h"])[0].startswith("src/a/x.h and src/b/x.h")
    assert any("only" in p for p in problems({"importer/core": {"new": "a.c:1"}}))


def main():
    check_the_check()
    root = os.path.join(sys.argv[1], "src")
    graph = includes(root)
    level = [folder for row in LAYERS for folder in row.split()]
    out = [f"test/folders.py names src/{f}, which is not there" for f in level if not os.path.isdir(os.path.join(root, f))]
    out += problems(graph) + same_names(headers(sys.argv[1]))
    for p in out:
        print(p)
    print(f"{len(graph)} folders, {sum(len(t) for t in graph.values())} arrows, {len(out)} wrong")
    return 1 if out else 0


sys.exit(main())

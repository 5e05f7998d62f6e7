#!/usr/bin/env python3
"""Numbers of protobuf fields have names (wire/fields.h): finds the places in src that say a number.

Usage: field_names.py ROOT

A number is looked for where fields are told apart (case, f.id == N), written (pb_put_*, pb_begin), found (pb_find,
pb_numbers, field_*), and in rows that name a packet or an event. ALLOWED lists the files in which such a line means
something else; an entry that matches nothing any more is an error, too.
"""
import pathlib
import re
import sys

PATTERNS = [
    r"\bcase [0-9]+ ?:",
    r"\bid [=!]= [1-9]",  # 0 is no field number
    r"\b[0-9]+ << 3\b",  # a tag
    r"\bpb_(?:put_\w+|begin|find|numbers)\((?:[^,()]|\([^()]*\))+, [0-9]",
    r"\bfield_(?:has|u64|i64|u32|i32|bytes)\([^,()]+, [0-9]",
    r"\bfield_str\([^,()]+, [^,()]+, [0-9]",
    r'\{[1-9][0-9]*, "[a-z_0-9]+", (?:NULL|[a-z_]+)(?:, (?:NULL|[a-z_]+))?\}',
]
ALLOWED = {  # file: (what its lines look like, what the numbers are)
    "src/kernel/event_compile.c": (r"case [1248]:", "sizes of a kernel's field"),
    "src/capture/probes/ftrace/ftrace_instance.c": (r'" && \(id == 0', "a filter of the kernel, in a comment"),
    "src/importer/sort/packed.c": (r"case [0-48]:", "widths of packed words"),
    "src/storage/column.c": (r"case [12]:", "bytes of a value"),
}


def main():
    root = pathlib.Path(sys.argv[1])
    pattern = re.compile("|".join(PATTERNS))
    errors, used, files = [], set(), 0
    for path in sorted((root / "src").rglob("*.[ch]")):
        name = path.relative_to(root).as_posix()
        files += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if not pattern.search(line):
                continue
            if name in ALLOWED and re.search(ALLOWED[name][0], line):
                used.add(name)
            else:
                errors.append(f"{name}:{number}: a field number without a name: {line.strip()}")
    errors += [f"{name}: nothing is allowed here any more; drop the entry" for name in ALLOWED if name not in used]
    if files < 100:
        errors.append(f"{root}: only {files} source files; is this the root of the sources?")
    print("\n".join(errors) or f"{files} files: every field has its name")
    return bool(errors)


sys.exit(main())

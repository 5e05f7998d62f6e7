#!/usr/bin/env python3
"""Functions of src are at most 60 lines long, braces included, unless the comment above says why: "Long: …".

Usage: function_length.py ROOT

A reason that nothing needs any more is an error, too.
"""
import pathlib
import re
import sys

LONGEST = 60


def functions(lines):
    """(name line, length, whether a reason stands above) of each function; braces of functions stand alone in column 0."""
    begin = None
    for i, line in enumerate(lines):
        if line == "{":
            begin = i
        elif line == "}" and begin is not None:
            head = begin - 1
            while head > 0 and not re.match(r"[a-zA-Z_]", lines[head]):
                head -= 1
            above = head - 1
            while above >= 0 and re.match(r"/\*| \*", lines[above]):
                above -= 1
            yield head, i - begin + 1, "Long: " in "\n".join(lines[above + 1:head])
            begin = None


def main():
    root = pathlib.Path(sys.argv[1])
    files = sorted((root / "src").rglob("*.c"))
    wrong = seen = 0
    for path in files:
        lines = path.read_text().split("\n")
        for head, length, reason in functions(lines):
            seen += 1
            if (length > LONGEST) != reason:
                what = "needs no reason" if reason else f"has {length} lines and no reason"
                print(f"{path.relative_to(root)}:{head + 1}: {what}: {lines[head]}")
                wrong += 1
    print(f"{seen} functions in {len(files)} files, {wrong} wrong")
    return 1 if wrong or seen < 1000 else 0


sys.exit(main())

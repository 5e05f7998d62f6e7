#!/usr/bin/env python3
"""Nothing in src is declared and never used: functions of headers, and comments that say nothing.

Usage: unused.py ROOT

A function counts as used when src names it anywhere but in its declaration and its definition. The public headers of
include/ are for other programs; functions below are for tests, which must name them.
"""
import pathlib
import re
import sys

FOR_TESTS = set("""
    alloc_set_gate argset_eq embedded_sql_find engine_interrupt file_set_read_hook file_set_write_hook
    metatrace_counter sorter_peak_bytes sql_heap_set_gated sql_word_text
    sync_hull_admits sync_line_drift trace_message_at trace_writer_commit trace_writer_reserve
    column_memory
""".split())

# Comments go, the text of strings goes: a name in them is no use.
NOISE = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
DECLARED = re.compile(r"^(?!#|static|typedef|enum)[A-Za-z_][\w \*]*?[ \*](\w+)\([^;{}]*\)[^;{}]*;", re.M)
INLINE = re.compile(r"^static inline [\w \*]*?[ \*](\w+)\(", re.M)
PASTED = re.compile(r"##\s*(_\w+)\(")  # X(name) int name##_attach(…): all that end so are used
WORD = re.compile(r"[A-Za-z_]\w*")


def words_of(files):
    return set(WORD.findall(" ".join(f.read_text(errors="replace") for f in files)))


def main():
    root = pathlib.Path(sys.argv[1])
    texts, wrong = {}, []
    for path in sorted([*root.glob("src/**/*.[ch]"), *root.glob("src/**/*.def"), *root.glob("docs/*.c")]):
        raw = path.read_text(errors="replace")
        for i, line in enumerate(raw.split("\n")):
            if re.search(r"/\*\s*\*/", line):
                wrong.append(f"{path.relative_to(root)}:{i + 1}: the comment is empty")
        texts[path] = NOISE.sub(lambda m: " " if m[0][0] == "/" else '""', raw)
    count, suffixes = {}, set()
    for text in texts.values():
        suffixes.update(PASTED.findall(text))
        for word in WORD.findall(text):
            count[word] = count.get(word, 0) + 1
    public = words_of(root.glob("include/**/*.h"))
    tests = words_of([*root.glob("test/**/*.[ch]"), *root.glob("examples/**/*.c")])
    seen = 0
    for path, text in texts.items():
        if path.suffix != ".h":
            continue
        names = [(n, 2) for n in DECLARED.findall(text)] + [(n, 1) for n in INLINE.findall(text)]
        for name, own in names:
            seen += 1
            if name in public or any(name.endswith(s) for s in suffixes):
                continue
            where = f"{path.relative_to(root)}: {name}()"
            if count[name] > own:
                if name in FOR_TESTS:
                    wrong.append(f"{where} is used by src: take it out of FOR_TESTS")
            elif name not in FOR_TESTS:
                wrong.append(f"{where} is never used: delete it")
            elif name not in tests:
                wrong.append(f"{where} is for tests, and none names it: delete it")
    for text in wrong:
        print(text)
    if seen < 500:
        sys.exit("no functions found: is this the root of the tree?")
    sys.exit(1 if wrong else 0)


main()

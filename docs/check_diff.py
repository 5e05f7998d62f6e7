"""Compares the diff of docs/contributing.md with the files it is about: check_diff.py SOURCE_DIR"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = (root / "docs/contributing.md").read_text()
[diff] = re.findall(r"```diff\n(.*?)```", page, re.S)
wrong = []
for new, before, name, body in re.findall(r"--- (/dev/null)?(a/\S+)?\n\+\+\+ b/(\S+)\n((?:(?!--- ).*\n)*)", diff):
    lines = [line[1:] for line in body.splitlines() if line.startswith("+")]
    have = (root / name).read_text().splitlines()
    if new and lines != have:
        wrong.append(f"{name}: the page has another text")
    wrong += [f"{name}: no line {line!r}" for line in lines if not new and line not in have]
    print(f"{name}: {len(lines)} lines")
sys.exit("\n".join(wrong) or 0)

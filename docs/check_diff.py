"""Compares docs/contributing.md with the files it is about: its diff, what new parts cost, the files on the data's way.

Usage: check_diff.py SOURCE_DIR"""
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

# The table of costs: exactly these files name the example.
sources = {p.relative_to(root).as_posix(): p.read_text(errors="replace")
           for p in sorted((root / "src").rglob("*")) if p.suffix in (".c", ".h", ".def")}
costs = re.findall(r"^\| [\w ]+ \| `(\w+)` \| (.+) \|$", page, re.M)
for name, cell in costs:
    want = set() if cell.startswith("none") else set(re.findall(r"`(src/\S+)`", cell))
    have = {path for path, text in sources.items() if re.search(rf"\b{name}\b", text)}
    if have != want:
        wrong.append(f"{name}: the page says {sorted(want)}, the sources say {sorted(have)}")
if len(costs) < 5:
    wrong.append("the table of costs is gone")

# The data's way: what its steps name is there.
way = page[page.index("## The data's way"):page.index("Bytes are read in place")]
steps = re.findall(r"^\| [\w ]+ \| (.*?) \| .* \|$", way, re.M)
for step in steps:
    folder = ""  # of the name before: a file without a folder stands beside it
    for name in re.findall(r"`([\w/.]+)`", step):
        full = name if "/" in name else f"{folder}/{name}"
        if not (root / "src" / full).exists() and not (root / name).exists():
            wrong.append(f"src/{full}: named on the data's way, and not there")
        folder = full.rsplit("/", 1)[0]
if len(steps) < 20:
    wrong.append("the data's way is gone")
print(f"{len(costs)} costs, {len(steps)} steps")
sys.exit("\n".join(wrong) or 0)

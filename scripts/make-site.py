#!/usr/bin/python3
"""The pages as a site of static files: make-site.py [DIR] (build/site). Needs python3-markdown.

Pages that the README or each other name become HTML; other files of the tree that they name are copied beside them."""
import html
import os
import pathlib
import re
import shutil
import sys

try:
    import markdown
except ImportError:
    sys.exit("make-site: the pages need python3-markdown: apt install python3-markdown")

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; color: #222 }}
nav {{ border-bottom: 1px solid #ccc; padding-bottom: .5rem }} nav a {{ margin-right: .8rem; white-space: nowrap }}
pre, code {{ font: 14px/1.4 monospace; background: #f4f4f4 }} pre {{ padding: .7rem; overflow-x: auto }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }} th, td {{ border: 1px solid #ddd; padding: .25rem .6rem; text-align: left; vertical-align: top }}
img {{ max-width: 100% }}
</style></head><body><nav>{nav}</nav>
{body}</body></html>
"""


def anchor(text, _separator):
    """As the pages' links name headings."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def target_of(path):
    """Where a file of the tree is in the site."""
    return path.parent / "index.html" if path == pathlib.Path("README.md") else path.with_suffix(".html") if path.suffix == ".md" else path


def with_lists(text):
    """A list that follows a paragraph at once is one where the pages are read; python-markdown wants an empty line between."""
    out, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and line.startswith("- ") and out and out[-1] and out[-1][0] not in "- ":
            out.append("")
        out.append(line)
    return "\n".join(out)


class Site:
    def __init__(self, to):
        self.to, self.done, self.waiting = to, set(), [pathlib.Path("README.md")] + sorted(p.relative_to(ROOT) for p in (ROOT / "docs").glob("*.md"))

    def link(self, page, match):
        """A link of a page, to where its target is in the site; what is no file loses it."""
        attribute, there = match.groups()
        there = html.unescape(there)
        path, _, part = there.partition("#")
        if re.match(r"[a-z]+:", there) or not path:
            return match.group(0)
        target = pathlib.Path(os.path.relpath((ROOT / page.parent / path).resolve(), ROOT))
        if not (ROOT / target).is_file() or target.parts[0] == "..":
            return ""
        self.waiting.append(target)
        to = os.path.relpath(target_of(target), target_of(page).parent)
        return f'{attribute}="{html.escape(to + ("#" + part if part else ""))}"'

    def write(self, path):
        out = self.to / target_of(path)
        out.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(ROOT / path, out)
            return
        # a list or table needs an empty line in front of it here, not where the pages are read
        text = (ROOT / path).read_text()
        body = markdown.markdown(with_lists(text), tab_length=2, extensions=["tables", "fenced_code", "toc", "sane_lists"], extension_configs={"toc": {"slugify": anchor}})
        title = re.search(r"^# (.*)$", text, re.M)
        links = (("README.md", "Meridian"), ("docs/README.md", "All pages"), ("docs/tutorials.md", "Tutorials"), ("docs/tp_shell.md", "tp_shell"),
                 ("docs/recording.md", "Recording"), ("docs/stdlib.md", "Library"), ("docs/sql-tables.md", "Tables"))
        nav = "".join(f'<a href="{os.path.relpath(ROOT / p, (ROOT / path).parent)}">{name}</a>' for p, name in links)
        page = PAGE.format(title=html.escape(title.group(1) if title else path.name), nav=nav, body=body)
        out.write_text(re.sub(r'\b(href|src)="([^"]*)"', lambda m: self.link(path, m), page))

    def make(self):
        while self.waiting:
            path = self.waiting.pop()
            if path not in self.done:
                self.done.add(path)
                self.write(path)
        print(f"{self.to / 'index.html'}: {sum(p.suffix == '.md' for p in self.done)} pages")


Site(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")).make()

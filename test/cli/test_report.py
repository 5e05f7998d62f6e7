"""tp_shell report: the page shows what its queries say, opens in a browser without errors, and needs no network."""
import csv
import html
import html.parser
import io
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

SCHED = harness.DATA / "linux-sched.pftrace"
TWO = harness.DATA / "mm-two-machines.pftrace.gz"
OVERRUN = harness.DATA / "linux-kernel-overrun.pftrace"
SDK = harness.DATA / "sdk.pftrace"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Put into a copy of the page: what a person would look at and click on, told in the document's root.
BEFORE = "<script>window.problems=[];addEventListener('error',function(e){problems.push(String(e.message))},true);" \
         "addEventListener('securitypolicyviolation',function(e){problems.push('blocked '+e.blockedURI)})</script>"
AFTER = """<script>
var all = [].slice.call(document.querySelectorAll('svg')), drawn = 0, sorted = 0, unfolded = 0;
all.forEach(function (s) {
  var b = s.getBBox();
  if (b.width > 100 && b.height > 10 && s.querySelector('rect,path')) drawn++;
  [].forEach.call(s.querySelectorAll('*'), function (e) {
    [].forEach.call(e.attributes, function (a) { if (/NaN|inf/i.test(a.value)) problems.push(e.tagName + ' ' + a.name + '=' + a.value) });
  });
});
function values(t, i) {
  return [].map.call(t.tBodies[0].rows, function (r) { var n = r.cells[i].getAttribute('data-n'); return n === null ? r.cells[i].textContent : +n });
}
function ordered(v, d) { return v.every(function (x, i) { return !i || (d < 0 ? v[i - 1] >= x : v[i - 1] <= x) }) }
[].forEach.call(document.querySelectorAll('table'), function (t) {
  [].forEach.call(t.tHead ? t.tHead.rows[0].cells : [], function (h, i) {
    var types = {};
    values(t, i).forEach(function (x) { types[typeof x] = 1 });
    if (Object.keys(types).length > 1) return;  // a column with gaps has no order of its own
    h.click(); var down = ordered(values(t, i), -1);
    h.click(); var up = ordered(values(t, i), 1);
    if (down && up) sorted++; else problems.push('not sorted: ' + h.textContent);
  });
});
[].forEach.call(document.querySelectorAll('details'), function (d) {
  d.querySelector('summary').click();
  if (d.open && d.querySelector('pre').getBoundingClientRect().height > 10) unfolded++; else problems.push('not unfolded');
});
if (performance.getEntriesByType('resource').length) problems.push('something was fetched');
document.documentElement.setAttribute('data-seen', JSON.stringify([all.length, drawn, sorted, unfolded, problems]));
</script>"""


class Page(html.parser.HTMLParser):
    """The sections: {title: {"sql", "rows", "svgs", "text"}}."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.here, self.inside, self.open = {}, None, None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "section":
            self.here = {"sql": "", "rows": [], "svgs": 0, "text": ""}
        elif self.here is not None and tag == "tr":
            self.here["rows"].append([])
        elif self.here is not None and tag in ("td", "th"):
            self.here["rows"][-1].append("")
        elif self.here is not None and tag == "svg":
            self.here["svgs"] += 1
        self.inside = tag

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
        self.inside = None

    def handle_data(self, data):
        if self.here is None:
            return
        if self.inside == "h2":
            self.sections[data] = self.here
        elif self.inside == "pre":
            self.here["sql"] += data
        elif self.inside in ("td", "th"):
            self.here["rows"][-1][-1] += data
        elif self.inside == "p":
            self.here["text"] += data


class Report(harness.Case):
    def page(self, trace):
        out = self.dir / "report.html"
        self.run_shell("report", trace, "-o", out)
        text = out.read_text()
        self.assertLess(len(text), 2_000_000)
        self.assertFalse(re.search(r"<\w+ [^>]*(src|href)=|url\(|@import", text))
        return text, Page(text)

    def same(self, shown, value):
        if shown == value:
            return True
        try:
            return abs(float(shown) - float(value)) <= max(5e-4, abs(float(value)) * 5e-3)
        except ValueError:
            return False

    def test_tables_are_what_their_queries_say(self):
        _, page = self.page(SCHED)
        tables = 0
        for title, section in page.sections.items():
            if not section["sql"]:
                self.assertEqual(title, "Flame graph")
                continue
            with self.subTest(title=title):
                rows = list(csv.reader(io.StringIO(self.query(section["sql"], "--format", "csv", trace=SCHED))))
                if title == "CPU use over time":
                    self.assertEqual((section["svgs"], section["rows"]), (1, []))
                    self.assertGreater(len(rows), 50)
                    continue
                if len(rows) == 1:
                    self.assertEqual(section["rows"], [])
                    self.assertTrue(section["text"])
                    continue
                tables += 1
                self.assertEqual(section["rows"][0], rows[0])
                self.assertEqual(len(section["rows"]), len(rows))
                for shown, row in zip(section["rows"][1:], rows[1:]):
                    for a, b in zip(shown, row):
                        self.assertTrue(self.same(a, b), (shown, row))
        self.assertGreaterEqual(tables, 8)
        self.assertGreaterEqual(sum(s["svgs"] for s in page.sections.values()), 6)
        self.assertEqual(page.sections["Flame graph"]["svgs"], 1)

    def test_losses_and_what_was_not_recorded_are_told(self):
        _, page = self.page(OVERRUN)
        self.assertIn("ftrace_cpu_overrun_delta", [row[1] for row in page.sections["Lost data and errors"]["rows"]])
        # what counts as lost is what check says, whatever the severity of the stat is
        hints = (pathlib.Path(__file__).parent.parent.parent / "src/shell/hints.def").read_text()
        for name in re.findall(r'HINT\("(\w+)", LOSS,', hints):
            self.assertIn(f"'{name}'", page.sections["Lost data and errors"]["sql"])
            self.assertIn(f"'{name}'", page.sections["Machines"]["sql"])
        _, page = self.page(SDK)
        self.assertIn("not recorded", page.sections["CPU use over time"]["text"])
        self.assertGreater(len(page.sections["Slices"]["rows"]), 1)

    def test_the_critical_path_goes_over_machines(self):
        _, page = self.page(TWO)
        rows = page.sections["Critical path of the longest slices"]["rows"]
        self.assertEqual({row[2] for row in rows[1:]}, {"host", "machine 1", ""})
        self.assertEqual({row[3] for row in rows[1:] if not row[2]}, {"packets on their way"})

    def test_names_are_text(self):
        """A slice's name that is HTML and JavaScript: shown as it is, in the page and in Markdown."""
        name = "</script><img src=x onerror=alert(1)>|`"
        trace = self.dir / "names.json"
        trace.write_text('{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "name": "%s"}]}' % name)
        text, page = self.page(trace)
        self.assertFalse("<img" in text)
        self.assertEqual(page.sections["Slices"]["rows"][1][0], name)
        out = self.run_shell("report", "--markdown", trace).stdout.decode()
        self.assertIn("\\</script\\>\\<img src=x onerror=alert(1)\\>\\|\\`", out)

    def test_markdown(self):
        out = self.run_shell("report", "--markdown", SCHED).stdout.decode()
        self.assertTrue(out.startswith("# "))
        tables = re.findall(r"((?:^\|.*\|\n)+)", out, re.M)
        self.assertGreaterEqual(len(tables), 8)
        for table in tables:
            self.assertEqual(len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}), 1, table)

    def test_refusals(self):
        self.fails("report", SCHED, text="-o FILE is needed")
        self.fails("report", "-o", "x", text="one trace is needed")
        self.fails("report", "-o", "x", SCHED, SCHED, text="one trace is needed")
        self.fails("report", "-o", self.dir / "x", self.empty, text="the file is empty")
        self.fails("report", "-o", self.dir / "no" / "x", SCHED, text="no/x")
        self.fails("report", "-o", self.dir / "y", SCHED, env={"TMPDIR": str(self.dir / "none")}, text="set TMPDIR")
        self.assertFalse((self.dir / "y").exists())

    @unittest.skipUnless(CHROMIUM, "no chromium here (scripts/install-deps.sh --tests installs it)")
    def test_in_a_browser(self):
        text, page = self.page(TWO)
        copy = self.dir / "seen.html"
        copy.write_text(text.replace("</head>", BEFORE + "</head>", 1).replace("</body>", AFTER + "</body>", 1))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            p = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                                "--disable-background-networking", f"--user-data-dir={home}", "--dump-dom", copy.resolve().as_uri()],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, env={**os.environ, "HOME": home})
        seen = re.search(r'data-seen="([^"]*)"', p.stdout.decode())
        self.assertTrue(seen, "the page's end was not reached")
        pictures, drawn, sorted_columns, unfolded, problems = eval(html.unescape(seen[1]))
        self.assertEqual(problems, [])
        self.assertEqual(drawn, pictures)
        self.assertEqual(pictures, sum(s["svgs"] for s in page.sections.values()))
        self.assertGreaterEqual(pictures, 6)
        self.assertGreater(sorted_columns, 30)
        self.assertEqual(unfolded, len(page.sections) - 1)


if __name__ == "__main__":
    harness.main()

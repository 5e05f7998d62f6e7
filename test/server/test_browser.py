"""The server with a real browser: a page of ours loads a trace, asks, cancels, comes back; two tabs at once. Two tabs play
recorded clicks of the UI as well: MERIDIAN_LONG=1 in the environment plays all of them, of all sessions."""
import gzip
import http.server
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

from rpc import *

PAGES = pathlib.Path(__file__).parent / "browser"
TRACE = DATA / "linux-sched.pftrace"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0",
         # Tabs in the background are to work as fast as the one in front.
         "--disable-background-timer-throttling", "--disable-renderer-backgrounding"]
LONG = bool(os.environ.get("MERIDIAN_LONG"))
SECONDS = 600 if LONG else 60
SHARED = pathlib.Path(os.environ.get("MERIDIAN_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared"))
FLOWS = SHARED / "conformance/traces/synth-parser-track_event-flow_events_proto_v2.pftrace"
HEAPS = SHARED / "conformance/traces/synth-parser-profiling-heap_profile_intervals_legacy.pftrace"


class Session:
    """What the UI sent while somebody clicked, and which of it Perfetto's server has refused."""

    def __init__(self, name):
        ui = SHARED / "ui"
        self.requests = [m for _, m in fields(gzip.decompress((ui / f"{name}.request.bin.gz").read_bytes()))]
        self.sql = [get(get(m, 103, b""), 1, b"").decode() for m in self.requests]
        self.refused = self.refusals(results(gzip.decompress((ui / f"{name}.response.bin.gz").read_bytes())))

    @staticmethod
    def refusals(messages):
        out, n = set(), 0
        for m in messages:
            error = get(m.get(203, b""), 2)
            last = 203 not in m or error is not None or any(get(b, 6) for i, b in fields(m[203]) if i == 3)
            out |= {n} if error is not None else set()
            n += last
        return out

    def clicks(self, of):
        """The numbers of statements that need nothing that others have made, in groups of five; first, what they include."""
        sqls = [sql.lower() for sql in self.sql]
        create = r"\bcreate(?:\s+(?:\w+\s+)*?(?:table|view|function|macro|index)\s+|_function\s*\(\s*')(\w+)"
        made = set(re.findall(create, " ".join(sqls)))
        alone = [i for i, sql in enumerate(sqls) if sql and i not in self.refused and not made & set(re.findall(r"\w+", sql))
                 and not re.search(r"\b(create|drop|_exp_mat\w+)\b", sql)]
        return [alone[at:at + 5] for at in of.choices(range(len(alone) - 5), k=200 if LONG else 40)]

    def includes(self):
        modules = sorted(set(re.findall(r"(?i)include perfetto module [\w.]+", " ".join(self.sql))))
        return query("; ".join(modules + ["select 1"]))


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the page and the trace; takes the results."""

    def __init__(self, *args, **kw):
        super().__init__(*args, directory=str(PAGES), **kw)

    def do_GET(self):
        if self.path.startswith("/plan/"):
            _, _, tab, *part = self.path.split("/")
            parts = self.server.plans[tab]
            data = b"".join(request for _, request in parts[int(part[0])]) if part else str(len(parts)).encode()
        elif self.path == "/trace":
            data = TRACE.read_bytes()
        else:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.results[self.path.rsplit("/", 1)[1]] = body
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


class Browser(unittest.TestCase):
    def setUp(self):
        self.pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.pages.results = {}
        threading.Thread(target=self.pages.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.pages.server_address[1]}"
        self.dir = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.chromium = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={self.dir.name}", "about:blank"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env={**os.environ, "HOME": self.dir.name})
        port = pathlib.Path(self.dir.name, "DevToolsActivePort")
        wait_for(lambda: port.exists() and port.read_text().count("\n"), SECONDS)
        self.devtools = f"http://127.0.0.1:{port.read_text().split()[0]}"

    def tearDown(self):
        self.chromium.terminate()
        try:
            self.chromium.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.chromium.kill()
            self.chromium.wait()
        self.pages.shutdown()
        self.pages.server_close()
        self.dir.cleanup()

    def tab(self, scenario, server):
        page = f"{self.origin}/page.html#" + urllib.parse.quote(f"{scenario}|ws://127.0.0.1:{server.port}/websocket")
        request = urllib.request.Request(f"{self.devtools}/json/new?{urllib.parse.quote(page, safe='')}", method="PUT")
        urllib.request.urlopen(request, timeout=SECONDS).read()

    def result(self, scenario):
        wait_for(lambda: scenario in self.pages.results, SECONDS)
        return self.pages.results[scenario]

    def test_load_query_cancel_reconnect_two_tabs(self):
        server = Server("--additional-cors-origins", self.origin)
        try:
            self.tab("load", server)
            want = f"sched {self.count()}"
            self.assertEqual(self.result("load"), want)
            self.tab("cancel", server)
            self.assertEqual(self.result("cancel"), "cancelled")
            self.tab("read-1", server)
            self.tab("read-2", server)
            self.assertEqual((self.result("read-1"), self.result("read-2")), ("read", "read"))
            self.assertEqual(server.ask("select count(*) from sched").cells, [int(want.split()[1])])
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    def plan(self, session, seed):
        """A list of parts; a part is a list of (number of the request or None, request)."""
        s, of = Session(session), random.Random(seed)
        # A message in a stream of messages, as it is there and as the page reads it.
        request = lambda i: (i, field(1, s.requests[i]))
        load = range(len(s.requests) if LONG else min(201, len(s.requests)))
        clicks = [request(i) for group in s.clicks(of) for i in group]
        return s, [list(map(request, load)), [request(0), (None, s.includes()), *clicks]]

    def test_recorded_clicks(self):
        """Two tabs click; both are loaded anew in the middle of it. No error but those that Perfetto's server gives."""
        if not (SHARED / "ui").exists():
            self.skipTest(f"no recorded sessions in {SHARED} (MERIDIAN_SHARED names another place)")
        for trace, names in (TRACE, ("sched", "load")), (FLOWS, ("flows", "flows")), (HEAPS, ("heapprof", "heapprof")):
            if not LONG and trace != TRACE:
                break
            server = Server(trace, "--additional-cors-origins", self.origin)
            try:
                tabs = {f"session-{trace.stem}-{i}": self.plan(name, i) for i, name in enumerate(names)}
                self.pages.plans = {tab: parts for tab, (_, parts) in tabs.items()}
                for tab in tabs:
                    self.tab(tab, server)
                for tab, (session, parts) in tabs.items():
                    result = self.result(tab)
                    self.assertTrue(result.startswith("["), result)
                    # Numbers of what has failed, with what the server said.
                    failed = [(parts[part][place][0], text) for part, place, text in json.loads(result)]
                    self.assertEqual([f for f in failed if f[0] not in session.refused], [], tab)
                    played = {i for part in parts for i, _ in part}
                    self.assertEqual({i for i, _ in failed}, session.refused & played, tab)
            finally:
                self.assertEqual(server.stop(), 0, server.log)

    def test_foreign_page_is_refused(self):
        server = Server(TRACE)
        try:
            self.tab("load", server)
            self.assertIn("no connection", self.result("load"))
        finally:
            self.assertEqual(server.stop(), 0, server.log)

    @staticmethod
    def count():
        out = subprocess.run([SHELL, "query", str(TRACE), "select count(*) as n from sched"], capture_output=True, timeout=60)
        return int(out.stdout.split()[1])


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: no chromium here (scripts/install-deps.sh --tests installs it)")
        sys.exit(77)
    unittest.main()

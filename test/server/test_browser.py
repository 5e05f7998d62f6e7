"""The server with a real browser: a page of ours loads a trace, asks, cancels, comes back; two tabs at once."""
import http.server
import pathlib
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
SECONDS = 60


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the page and the trace; takes the results."""

    def __init__(self, *args, **kw):
        super().__init__(*args, directory=str(PAGES), **kw)

    def do_GET(self):
        if self.path != "/trace":
            return super().do_GET()
        data = TRACE.read_bytes()
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

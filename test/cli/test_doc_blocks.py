"""Every block of code of every page is run by a test: the commands here, as they stand, in a folder with what they name; the rest
by the tests that a table names. A block of a new kind fails until somebody says who runs it."""
import os
import pathlib
import re
import shutil
import subprocess

import harness

ROOT = pathlib.Path(__file__).parent.parent.parent
DATA = harness.DATA
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]

# Blocks of these languages: the test that takes them from the pages. `text` is what programs print, and drawings.
BY_LANGUAGE = {"sql": "test/cli/test_docs.py", "c": "test/cli/embedding.sh", "diff": "docs/check_diff.py", "clickhouse": "test/cli/test_fleet_views.py", "text": None,
               "python": "test/cli/test_python.py"}
# Commands that start services, record, or need another machine, by their first line: the test that does it, and words of it.
BY_OTHERS = {
    ("README.md", "scripts/install-deps.sh && make demo"): (".ci/run", "scripts/install-deps.sh --tests"),
    ("README.md", 'export PATH="$PWD/build/release:$PATH"'): ("test/cli/chroot.sh", "^## A first look"),
    ("README.md", "tracebox record --machine root@web1 --machine root@web2"): ("test/e2e/test_ssh.py", "--machine"),
    ("embedding.md", "cc ran.c $(pkg-config"): ("test/cli/embedding.sh", "docs/embedding.md"),
    ("producing.md", "cc ticks.c $(pkg-config"): ("test/cli/embedding.sh", "docs/producing.md"),
    ("producing.md", "tracebox perfetto --txt -c - -o ticks.pftrace"): ("test/cli/embedding.sh", "^tracebox perfetto"),
    ("multi-machine.md", "# host: the service, listening on TCP"): ("test/e2e/two_kernels.sh", "--enable-relay-endpoint"),
    ("multi-machine.md", "tracebox record --machine root@guest"): ("test/e2e/test_ssh.py", "--machine"),
    ("multi-machine.md", "tracebox relay-keys keys --machine web1"): ("test/e2e/test_tls.py", "--relay-tls"),
    ("recording.md", "tracebox record -o trace.pftrace -t 5s"): ("test/e2e/test_one_command.py", '"-p", "sched", "-p", "syscalls", "--"'),
    ("recording.md", "tracebox traced &"): ("test/e2e/recorder.py", "--txt"),
    ("profiling.md", "sudo tracebox profile -F 99 -g -t 10s"): ("test/e2e/test_perf.py", '"profile", *map'),
    ("profiling.md", "sudo tracebox traced &"): ("test/e2e/sampling.py", '"traced_perf"'),
    ("heaps.md", "tracebox profile --heap -- make -j4"): ("test/e2e/test_heap.py", '"profile", "--heap", *map'),
    ("fleet.md", "sudo apt-get install -y clickhouse-server"): ("test/cli/test_fleet.py", 'cls().fleet("init")'),
    ("fleet.md", "tp_shell fleet add recordings/"): ("test/cli/test_fleet.py", 'str(copy / "*.pftrace")'),
    ("fleet.md", "tp_shell server http --daemonize --traces"): ("test/cli/test_fleet_perfetto.py", '"server", "http", "--port"'),
    ("fleet.md", 'tp_shell fleet query --where "lost = 0'): ("test/cli/test_fleet_perfetto.py", 'self.page_block('),
    ("fleet.md", "tp_shell fleet status"): ("test/cli/test_fleet_views.py", '"--older-than", "0s", "--where"'),
    ("fleet.md", "tp_shell fleet init --cluster prod"): ("test/cli/test_fleet_killed.py", '"init", "--cluster", "fleet"'),
    ("tutorials.md", "tracebox record -o slow.pftrace"): ("test/e2e/test_one_command.py", '"-p", "sched", "-p", "syscalls", "--"'),
    ("tutorials.md", "tracebox record -m root@server"): ("test/e2e/test_ssh.py", "--machine"),
}
# What the commands name, and what stands for it.
FILES = {
    "trace.pftrace": DATA / "linux-sched.pftrace", "run.pftrace": DATA / "linux-sched.pftrace", "hostA.pftrace": DATA / "apart-a.pftrace",
    "hostB.pftrace": DATA / "apart-b.pftrace", "hostC.pftrace": DATA / "linux-sched.pftrace", "ticks.pftrace": DATA / "sdk.pftrace",
    "a.pftrace": DATA / "mm-host-only.pftrace", "b.pftrace": DATA / "mm-guest-only.pftrace", "hostA": DATA / "ctf2" / "lttng-kernel",
    "hostB": DATA / "ctf2" / "lttng-ust", "lttng-traces/session-20260101": DATA / "ctf2" / "lttng-kernel",
    "big.json": DATA / "json" / "clang-time-trace.json", "profile.pt.trace.json.gz": DATA / "json" / "chromium-startup.json.gz",
    "node.cpuprofile": DATA / "json" / "node.cpuprofile", "perf.data": DATA / "perf" / "cpu-clock-g.data",
    "trace.dat": DATA / "trace-cmd" / "sched-v7-zstd.dat", "host.dat": DATA / "trace-cmd" / "guests-host.dat",
    "guest1.dat": DATA / "trace-cmd" / "guests-guest1.dat", "guest2.dat": DATA / "trace-cmd" / "guests-guest2.dat",
    "good.pftrace": DATA / "linux-sched.pftrace", "new.pftrace": DATA / "linux-sched.pftrace",
    "before.pftrace": DATA / "linux-sched.pftrace", "after.pftrace": DATA / "linux-sched.pftrace",
    "base/1.pftrace": DATA / "linux-zstd.pftrace", "base/2.pftrace": DATA / "linux-zstd.pftrace",
    "new/1.pftrace": DATA / "linux-zstd.pftrace", "new/2.pftrace": DATA / "linux-zstd.pftrace",
    "mapping.txt": ROOT / "test" / "fuzz" / "corpus" / "proguard" / "map",
    "spans.jsonl": DATA / "otlp" / "basket.jsonl",
    "bin/tp_shell": pathlib.Path(harness.SHELL).resolve(), "test": ROOT / "test",
    "bin/clang": pathlib.Path("/bin/true"), "bin/perf": pathlib.Path("/bin/true"),  # programs of others: their output is there
}


def blocks():
    """[(page's name, language, text)] of all pages but those that are made from the sources, which have tests of their own."""
    return [(page.name, *block) for page in PAGES if page.name not in ("sql-tables.md", "stdlib.md")
            for block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", page.read_text(), re.M | re.S)]


def by_others(page, text):
    return next((v for (p, first), v in BY_OTHERS.items() if p == page and text.startswith(first)), None)


class Blocks(harness.Case):
    def work(self):
        """A folder with what the commands name, and the environment to run them in."""
        work = pathlib.Path(self.dir / self.id())
        for name, to in FILES.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            if to.is_file() and not name.startswith("bin/"):
                shutil.copy(to, work / name)  # what a command writes to is not ours
            else:
                (work / name).symlink_to(to)
        self.assertEqual([name for name in FILES if not (work / name).exists()], [])
        env = {**os.environ, "PATH": f"{work / 'bin'}:{os.environ['PATH']}", "HOME": str(self.dir), "XDG_CONFIG_HOME": "",
               "XDG_RUNTIME_DIR": str(self.dir)}
        texts = {page: [text for p, kind, text in blocks() if (p, kind) == (page, "textproto")] for page in ("summaries.md", "structured-queries.md")}
        (work / "metrics").mkdir()
        rules = next(text for page, kind, text in blocks() if page == "compare.md" and text.startswith("# ci.rules"))
        secrets = next(text for page, kind, text in blocks() if page == "cutting.md" and text.startswith("# rules.txt"))
        for name, text in (("ci.rules", rules), ("rules.txt", secrets), ("cpu.textproto", texts["summaries.md"][0]), ("metrics/cpu.textproto", texts["summaries.md"][0]),
                           ("draws.textproto", texts["structured-queries.md"][0])):
            (work / name).write_text(text)
        out = self.run_shell("summarize", work / "run.pftrace", work / "metrics/cpu.textproto", "--metrics-v2", "all").stdout
        (work / "baseline.textproto").write_bytes(out)
        return work, env

    def run_block(self, page, text, work, env):
        with self.subTest(page=page, text=text):
            if "/sys/kernel/tracing/" in text and not os.path.exists("/sys/kernel/tracing/trace_marker"):
                self.skipTest("needs a mounted tracefs")
            p = subprocess.run(["sh", "-e"], input=text.encode(), cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
            self.assertEqual(p.returncode, 0, p.stdout.decode(errors="replace")[-500:] + p.stderr.decode(errors="replace")[-1500:])
            return p.stdout

    def test_each_block_says_who_runs_it(self):
        used = set()
        for page, kind, text in blocks():
            with self.subTest(page=page, text=text):
                first = text.lstrip().split("\n")[0]
                if kind == "sh" and by_others(page, text):
                    used.add(by_others(page, text))
                elif kind not in ("sh", "config", "textproto", "json"):
                    self.assertIn(kind, BY_LANGUAGE, f"{first}: who runs it?")
        for where, words in [*((w, "") for w in BY_LANGUAGE.values() if w), *BY_OTHERS.values()]:
            self.assertIn(words, (ROOT / where).read_text(), where)
        self.assertEqual(used, set(BY_OTHERS.values()))
        for (page, first) in BY_OTHERS:
            self.assertTrue(any(p == page and text.startswith(first) for p, _, text in blocks()), (page, first))

    def test_commands(self):
        work, env = self.work()
        ran = 0
        for page, kind, text in blocks():
            if kind == "sh" and not by_others(page, text) and page != "server.md":
                self.run_block(page, text, work, env)
                ran += 1
        self.assertGreaterEqual(ran, 12)

    def test_the_server_page(self):
        """The first block serves, and those that ask it are run with its port, and the name of another."""
        commands = [text for page, kind, text in blocks() if (page, kind) == ("server.md", "sh")]
        served = [c for c in commands if c.startswith("tp_shell server http")]
        self.assertEqual((len(served), len(commands)), (1, 2))
        work, env = self.work()
        server = subprocess.Popen(["sh", "-c", f"exec {served[0].strip()} --port 0"], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        said = ""
        while not (m := re.search(r"http://127\.0\.0\.1:(\d+)", said)):
            line = server.stderr.readline()
            self.assertTrue(line, "the server has ended: " + said)
            said += line
        named = subprocess.Popen(["tp_shell", "server", "unix", "--name", "NAME", "trace.pftrace"], cwd=work, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(named.stdout.close)
        self.addCleanup(named.wait)
        self.addCleanup(named.kill)
        self.assertIn("socket-path=", named.stdout.readline())
        for text in commands:
            if text not in served:
                self.run_block("server.md", text.replace("localhost:9001", f"localhost:{m.group(1)}"), work, env)

    def test_configs_are_understood(self):
        """Those of docs/recording.md are recorded with (test_recording_doc.py); the others are read at least: only the service
        is missing then."""
        n = 0
        for page, kind, text in blocks():
            if kind == "config":
                with self.subTest(page=page, text=text):
                    p = subprocess.run([os.environ["TRACEBOX"], "perfetto", "--txt", "-c", "-", "-o", "x"], input=text, cwd=self.dir, text=True,
                                       env={**os.environ, "PERFETTO_CONSUMER_SOCK_NAME": "/nonexistent"}, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, timeout=60)
                    self.assertIn("cannot connect to /nonexistent", p.stdout)
                    n += 1
        self.assertGreater(n, 8)

    def test_the_manifest_is_understood(self):
        """An archive with it and the traces that it names: the machines have its names."""
        (manifest,) = [text for page, kind, text in blocks() if (page, kind) == ("merging.md", "json")]
        folder = self.dir / "archive"
        folder.mkdir()
        (folder / "manifest.json").write_text(manifest)
        for name, to in (("server", "linux-sched"), ("client", "apart-a")):
            shutil.copy(DATA / f"{to}.pftrace", folder / f"{name}.pftrace")
        text = self.run_shell("convert", "text", DATA / "mm-two-machines.pftrace.gz").stdout.decode()
        (ids,) = [set(re.findall(r"^  machine_id: ([1-9]\d*)$", text, re.M))]
        self.assertEqual(len(ids), 1)  # the guest's number in the recording; in the manifest it is 7
        (self.dir / "both.txt").write_text(text.replace(f"machine_id: {ids.pop()}\n", "machine_id: 7\n"))
        self.run_shell("util", "text_to_binary", self.dir / "both.txt", folder / "both.pftrace")
        subprocess.run(["tar", "-cf", self.dir / "all.tar", "-C", folder, "manifest.json", "server.pftrace", "client.pftrace", "both.pftrace"], check=True)
        names = self.query("select name from machine where name is not null", trace=self.dir / "all.tar").split()
        self.assertEqual(set(names) - {'"name"'}, {'"client"', '"guest"', '"host"', '"server"'})


if __name__ == "__main__":
    harness.main()

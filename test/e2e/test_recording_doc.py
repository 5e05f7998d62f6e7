"""Every config and query of docs/recording.md, run as they stand (in a tracefs instance of our own)."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import recorder
import test_perf

DOC = pathlib.Path(os.environ.get("MERIDIAN_SOURCE", ".")) / "docs" / "recording.md"


def sections():
    """{data source: (config, [queries])}"""
    out = {}
    for part in DOC.read_text().split("\n## ")[1:]:
        name = part.split("\n", 1)[0].strip()
        configs = re.findall(r"```config\n(.*?)```", part, re.S)
        queries = re.findall(r"```sql\n(.*?)```", part, re.S)
        if configs:
            out[name] = (configs[0], queries)
    return out


def work():
    """Something for every data source to see."""
    end = time.monotonic() + 1.2
    path = pathlib.Path("/var/tmp") / f"mrd-doc-{os.getpid()}"
    try:
        while time.monotonic() < end:
            path.write_bytes(os.urandom(200000))
            subprocess.run(["sync", "-f", path], check=False)
            subprocess.run(["true"], check=True)
    finally:
        path.unlink(missing_ok=True)


class Journal:
    """A journal of our own, as this machine may not run systemd: systemd-journald in a namespace."""

    DAEMON = "/lib/systemd/systemd-journald"

    def __init__(self):
        self.name = f"mrddoc{os.getpid()}"
        self.daemon = None
        self.directory = None

    def start(self):
        if not os.access(self.DAEMON, os.X_OK) or not shutil.which("logger"):
            return False
        os.makedirs(f"/run/systemd/journal.{self.name}", exist_ok=True)
        self.daemon = subprocess.Popen([self.DAEMON, self.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        for _ in range(100):
            self.directory = next((str(p) for root in ("/run/log/journal", "/var/log/journal")
                                   for p in pathlib.Path(root).glob(f"*.{self.name}")), None)
            if self.directory and os.path.exists(self.socket()):
                self.write("the first entry")
                return True
            time.sleep(0.05)
        return False

    def socket(self):
        return f"/run/systemd/journal.{self.name}/dev-log"

    def write(self, text):
        subprocess.run(["logger", "-u", self.socket(), "-t", "mrd-doc", "-p", "user.notice", text], check=False)

    def stop(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait(10)
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(f"/run/systemd/journal.{self.name}", ignore_errors=True)


class Doc(unittest.TestCase):
    def run_section(self, name, during=work, env=None, probes=(), replace=None, daemon=None, but=""):
        config, queries = sections()[name]
        self.assertIn(f'"{name}"', config)
        self.assertTrue(queries)
        with recorder.Recorder(env, probes=probes) as r:
            if daemon:
                r.start_other(daemon)
            trace = r.record(config.replace(*replace) if replace else config, during)
            answers = [r.query(trace, q) for q in queries]
            bad = r.query(trace, "select name, value from stats where severity = 'error' and value != 0 "
                                 f"and name != '{but}'")
            self.assertEqual(r.instances(), [])
        for q, rows in zip(queries, answers):
            self.assertTrue(rows, f"no rows from {q}")
        self.assertEqual(bad, [])
        return answers

    def test_every_data_source_has_a_section(self):
        with recorder.Recorder() as r:
            r.start_other("traced_perf")
            p = subprocess.run([recorder.TRACEBOX, "perfetto", "--query"], env=r.env, stdout=subprocess.PIPE, check=True)
        names = set(re.findall(r"\b(?:linux\.[a-z_]+|perfetto\.metatrace)\b", p.stdout.decode()))
        self.assertEqual(names, set(sections()))

    def test_perf(self):
        if not test_perf.can_sample():
            self.skipTest("the kernel does not let us sample")
        rows = self.run_section("linux.perf", daemon="traced_perf", but="perf_samples_skipped")[0]  # of processes that have ended
        self.assertGreater(sum(int(row["samples"]) for row in rows), 10)

    def test_every_setting_is_described(self):
        """The tables at the end have all fields that the schema has, and no others."""
        schema = (DOC.parent.parent / "proto" / "config.proto").read_text()
        tables = DOC.read_text().split("\n## Every setting")[1]
        for message in ("FtraceConfig", "FrozenFtraceConfig", "ProcessStatsConfig", "SysStatsConfig", "SystemInfoConfig",
                        "AndroidPowerConfig", "InodeFileConfig", "SystemdJournaldConfig"):
            body = re.search(r"^message %s \{\n(.*?)^\}" % message, schema, re.M | re.S).group(1)
            fields = set(re.findall(r"^  (?:optional|repeated) \S+ (\w+) = ", body, re.M))
            member = re.search(r"optional %s (\w+) = " % message, schema).group(1)
            table = re.search(r"^\| \S+: `%s` \| \|\n(.*?)(?:\n\n|\Z)" % member, tables, re.M | re.S).group(1)
            described = set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines())))
            self.assertEqual(described, fields, message)

    def test_frozen_ftrace(self):
        instance = pathlib.Path(recorder.TRACEFS, "instances", f"mrd-frozen-{os.getpid()}")
        instance.mkdir()
        try:
            (instance / "set_event").write_text("sched:sched_switch")
            work()
            (instance / "tracing_on").write_text("0")
            rows = self.run_section("linux.frozen_ftrace", replace=("boot_map", instance.name))[0]
            self.assertEqual({row["name"] for row in rows}, {"sched_switch"})
        finally:
            instance.rmdir()

    def test_sysfs_power(self):
        with tempfile.TemporaryDirectory() as root:
            battery = pathlib.Path(root, "sys/class/power_supply/BAT0")
            battery.mkdir(parents=True)
            for name, text in (("type", "Battery"), ("capacity", "71"), ("voltage_now", "11900000")):
                (battery / name).write_text(text + "\n")
            rows = self.run_section("linux.sysfs_power", probes=["--sysroot", root])[0]
        self.assertEqual({(row["name"], float(row["value"])) for row in rows},
                         {("batt.capacity_pct", 71), ("batt.voltage_uv", 11900000)})
        self.assertGreaterEqual(len(rows), 6)

    def test_ftrace(self):
        threads, cpus = self.run_section("linux.ftrace")
        self.assertTrue(all(row["name"] for row in threads))
        self.assertTrue(any(int(row["read"]) > 0 for row in cpus))

    def test_process_stats(self):
        rows = self.run_section("linux.process_stats")[0]
        self.assertGreater(float(rows[0]["rss_mb"]), 1)

    def test_sys_stats(self):
        rows = self.run_section("linux.sys_stats")[0]
        names = {row["name"] for row in rows}
        self.assertTrue({"num_forks", "pgfault"} & names, names)
        times = [row for row in rows if row["name"].startswith("cpu.times")]
        self.assertTrue(times)
        for row in times:  # in 1.5 s, and what starting takes, a cpu cannot have worked longer
            self.assertGreaterEqual(int(row["cpu"]), 0)
            self.assertLess(float(row["change"]), 6e9, row)

    def test_system_info(self):
        rows = self.run_section("linux.system_info")[0]
        self.assertTrue(rows[0]["processor"])

    def test_inode_file_map(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            def during():
                work()
                for n in range(20):  # pages of files that are new: others may be in memory already
                    pathlib.Path(folder, f"file{n}").write_bytes(b"x" * 65536)
                    time.sleep(0.02)

            mount = folder  # only there is walked: a whole disk takes longer than the test
            while not os.path.ismount(mount):
                mount = os.path.dirname(mount)
            here = f'scan_delay_ms: 200 mount_point_mapping {{ mountpoint: "{mount}" scan_roots: "{folder}" }}'
            rows = self.run_section("linux.inode_file_map", during, replace=("scan_delay_ms: 200", here))[0]
        self.assertTrue(all(row["path"].startswith("/") and int(row["pages"]) > 0 for row in rows), rows)

    def test_metatrace(self):
        rows = self.run_section("perfetto.metatrace")[0]
        self.assertGreater(int(rows[0]["times"]), 3)

    def test_journald(self):
        journal = Journal()
        try:
            if not journal.start():
                self.skipTest("no systemd-journald on this machine")

            def during():
                time.sleep(0.8)
                journal.write("hello from the test")

            rows = self.run_section("linux.systemd_journald", during,
                                    {"MERIDIAN_JOURNAL_DIRECTORY": journal.directory})[0]
            self.assertEqual([row["msg"] for row in rows], ["hello from the test"])
            self.assertEqual(rows[0]["tag"], "mrd-doc")
        finally:
            journal.stop()


if __name__ == "__main__":
    recorder.main()

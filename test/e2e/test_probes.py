"""traced, traced_probes and perfetto on this machine's kernel: nothing lost unseen, and nothing left behind."""
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time
import unittest

import recorder

SCHED = """
buffers { size_kb: 262144 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch" ftrace_events: "sched/sched_waking" ftrace_events: "task/*"
  ftrace_events: "irq/*" ftrace_events: "raw_syscalls/*" %s } } }
data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }
duration_ms: %d
"""

# Per cpu, what the kernel says that it wrote (per_cpu/cpuN/stats at the end: read, overwritten, left unread, refused)
# against what the trace has. `skipped`, of all cpus: first compact events, whose other half lies before the trace. All in
# one query, as each loads the trace again.
WRITTEN = """
select c.idx as cpu, (select count(*) from ftrace_event join cpu using (ucpu) where cpu.cpu = c.idx) as seen,
       sum(iif(c.name = 'ftrace_cpu_read_events_delta', c.value, 0)) as read_events,
       sum(iif(c.name = 'ftrace_cpu_entries_end', c.value, 0)) as unread,
       sum(iif(c.name in ('ftrace_cpu_overrun_delta', 'ftrace_cpu_commit_overrun_delta',
                          'ftrace_cpu_dropped_events_delta'), c.value, 0)) as lost,
       sum(iif(c.name = 'ftrace_cpu_has_data_loss', c.value, 0)) as told,
       (select ifnull(sum(value), 0) from stats
        where name in ('compact_sched_switch_skipped', 'compact_sched_waking_skipped',
                       'ftrace_packet_before_tracing_start')) as skipped
from stats as c where c.name glob 'ftrace_cpu_*' group by c.idx order by c.idx
"""
# Slices of a cpu that overlap or leave a hole. Threads that ran without a name or, but for the idle one, a process; one
# that ended before /proc was first looked at cannot have one.
SCHED_FAULTS = """
select 'ends at ' || end || ', the next begins at ' || next as fault
from (select ts + dur as end, lead(ts) over (partition by ucpu order by ts) as next from sched)
where next is not null and end %s next
union all
select 'thread ' || tid || ' ' || ifnull(thread.name, 'without a name')
from thread join (select utid, max(ts) as last from sched group by utid) using (utid) left join process using (upid)
where tid != 0 and (thread.name is null or process.pid is null) and last > (select min(ts) + 300000000 from sched)
"""


def stress(seconds=2):
    """Processes that switch, fork and call the kernel all the time."""
    script = "import os,time\nend=time.monotonic()+%f\n" % seconds
    script += "r,w=os.pipe()\na,b=os.pipe()\nif os.fork()==0:\n  os.close(w); os.close(a)\n" \
              "  while os.read(r,1): os.write(b,b'x')\n  os._exit(0)\n" \
              "os.close(r); os.close(b)\nn=0\nwhile time.monotonic()<end:\n  os.write(w,b'x'); os.read(a,1); n+=1\n" \
              "  if n%2000==0:\n    p=os.fork()\n    if p==0: os._exit(0)\n    os.waitpid(p,0)\nos.close(w); os.wait()\n"
    subprocess.run(["python3", "-c", script], check=True)


STREAM = "write_into_file: true file_write_period_ms: 100 "


class Busy:
    """Something to record, all the time."""

    def __enter__(self):
        self.p = subprocess.Popen(["sh", "-c", "while :; do cat /dev/null; done"])

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


class Probes(unittest.TestCase):
    def check_counts(self, r, trace, must_lose=False):
        """Seen + lost = written, cpu by cpu; losses are told for the cpu that had them. (Whether there are any depends on
        what else the machine does; make bench-probes fails when there are.)"""
        rows = [{k: int(v) for k, v in row.items()} for row in r.query(trace, WRITTEN)]
        self.assertGreaterEqual(len(rows), 1)
        skipped = rows[0]["skipped"]
        for row in rows:
            self.assertEqual(row["unread"], 0)
            missing = row["read_events"] - row["seen"]
            self.assertTrue(0 <= missing <= skipped, f"cpu {row['cpu']}: {row}, {skipped} skipped")
            self.assertEqual(row["told"] > 0, row["lost"] > 0, row)
        self.assertEqual(sum(row["seen"] for row in rows) + skipped, sum(row["read_events"] for row in rows))
        if must_lose:
            self.assertTrue(any(row["lost"] for row in rows))
        self.assertEqual(r.instances(), [])
        return rows

    def check_sched(self, r, trace, rows, holes=False):
        holes |= any(row["lost"] for row in rows)
        self.assertEqual(r.query(trace, SCHED_FAULTS % (">" if holes else "!=")), [])

    def test_five_seconds_under_stress(self):
        with recorder.Recorder() as r:
            trace = r.record(SCHED % ("buffer_size_kb: 65536", 5000), lambda: stress(4))
            rows = self.check_counts(r, trace)
            self.assertGreater(sum(int(row["seen"]) for row in rows), 100000)
            self.check_sched(r, trace, rows)

    def test_a_small_buffer_tells_what_it_lost(self):
        with recorder.Recorder() as r:
            trace = r.record(SCHED % ("buffer_size_kb: 16 drain_period_ms: 1000", 3000), stress)
            self.check_counts(r, trace, must_lose=True)

    def test_typed_and_compact_sched_tell_the_same(self):
        with recorder.Recorder() as r:
            trace = r.record(SCHED % ("buffer_size_kb: 65536 compact_sched { enabled: false }", 2000), stress)
            rows = self.check_counts(r, trace)
            # typed switches also say who ran before: where the kernel has left one out (seen for threads of a virtual
            # machine's agent), there is a hole, counted as mismatched_sched_switch_tids
            self.check_sched(r, trace, rows, holes=True)

    def test_two_sessions_at_once(self):
        with recorder.Recorder() as r:
            long = r.record_begin(SCHED % ("buffer_size_kb: 32768", 3000), "long.pftrace")
            time.sleep(0.5)
            size = pathlib.Path(recorder.TRACEFS, "instances", r.instance, "buffer_size_kb")
            sizes = []
            short = r.record("""
buffers { size_kb: 32768 }
data_sources { config { name: "linux.ftrace" ftrace_config { ftrace_events: "sched/sched_waking" buffer_size_kb: 64 } } }
duration_ms: 1000 """, lambda: (stress(0.5), sizes.append(int(size.read_text()))), "short.pftrace")
            self.assertGreaterEqual(sizes[0], 32768)  # whoever came first has decided
            self.assertEqual(long.wait(30), 0, r.log("perfetto.log"))
            names = [row["name"] for row in r.query(short, "select distinct name from ftrace_event")]
            self.assertEqual(names, ["sched_waking"])
            names = {row["name"] for row in r.query(r.dir / "long.pftrace", "select distinct name from ftrace_event")}
            self.assertTrue({"sched_switch", "sys_enter"} <= names)
            end = r.one(r.dir / "long.pftrace", "select (max(ts) - min(ts)) / 1e9 from ftrace_event")
            self.assertGreater(float(end), 2.3)  # it went on when the other had ended
            self.assertEqual(r.instances(), [])

    def test_a_service_that_comes_late(self):
        """The probes look for it again and again, at growing distances, and do nothing else meanwhile."""
        with recorder.Recorder(start=False) as r:
            r.probes = r.spawn("traced_probes", log="probes.log")
            time.sleep(2.5)
            used = int(pathlib.Path(f"/proc/{r.probes.pid}/schedstat").read_text().split()[0])
            status = pathlib.Path(f"/proc/{r.probes.pid}/status").read_text()
            waits = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
            self.assertIsNone(r.probes.poll())
            self.assertEqual(r.instances(), [])
            r.start_traced()
            r.wait_for("traced_probes connecting", lambda: '"perfetto.traced_probes" connected' in r.log("traced.log"), 5)
            trace = r.record(SCHED % ("", 500))
            self.assertNotEqual(r.one(trace, "select count(*) from sched"), "0")
            self.assertLess(used, 200_000_000)  # loading the program, under ASan
            self.assertLess(waits, 200)

    def test_too_much_memory_ends_the_recorder(self):
        """In good order: tracefs is put back, and what was recorded is there."""
        with recorder.Recorder(probes=["--max-memory", "2"]) as r:
            p = r.record_begin(SCHED % ("symbolize_ksyms: true", 60000))
            self.assertEqual(r.probes.wait(30), 1)
            self.assertIn("more than the 2 allowed", r.log("probes.log"))
            self.assertEqual(r.instances(), [])
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(30), 0)
            self.assertNotEqual(r.one(r.dir / "trace.pftrace", "select count(*) from sched"), "0")

    def test_cleanup_after_crash(self):
        with recorder.Recorder() as r:
            p = r.record_begin(SCHED % ("", 60000))
            r.wait_for("the recording", r.instances)
            r.probes.kill()
            r.probes.wait()
            self.assertTrue(r.instances())
            done = r.spawn("traced_probes", "--cleanup-after-crash", log="cleanup.log")
            self.assertEqual(done.wait(20), 0)
            self.assertEqual(r.instances(), [])
            self.assertIn("restored the tracefs settings", r.log("cleanup.log"))
            p.send_signal(signal.SIGINT)
            p.wait(30)

    def test_over_tcp(self):
        with socket.socket() as s:  # a port that is free now
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with recorder.Recorder(producer=f"127.0.0.1:{port}") as r:
            trace = r.record(SCHED % ("buffer_size_kb: 65536", 2000), lambda: stress(1))
            self.check_counts(r, trace)
            self.assertEqual(r.one(trace, "select count(*) from stats where name = 'traced_buf_trace_writer_packet_loss' "
                                          "and value > 0"), "0")

    def kill(self, r, what):
        """Kills, all at once, and starts again. The new probes say so when they found something to take back."""
        for name in what:
            getattr(r, name).send_signal(signal.SIGKILL)
        for name in what:
            getattr(r, name).wait()
        left = r.instances() if "probes" in what else []
        if "traced" in what:
            for s in ("p.sock", "c.sock"):
                (r.dir / s).unlink(missing_ok=True)
            r.start_traced()
        if "probes" in what:
            (r.dir / "probes.log").unlink()
            r.start_probes()
            if left:  # else there may be a note of something that had not been done yet, or had been undone
                self.assertIn("restored the tracefs settings", r.log("probes.log"))
        if "traced" in what:  # the session has ended with its service; else it goes on with the new probes
            r.wait_for("a clean tracefs", lambda: not r.instances())
        return left

    def end_of_killing(self, r, p, least):
        """The client ends, tracefs is clean, the trace opens, and the next recording works."""
        p.send_signal(signal.SIGINT)
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        r.wait_for("a clean tracefs", lambda: not r.instances())
        trace = r.dir / "trace.pftrace"
        if least or (trace.exists() and trace.stat().st_size):
            self.assertGreaterEqual(int(r.one(trace, "select count(*) from ftrace_event")), least)
        trace = r.record(SCHED % ("buffer_size_kb: 4096", 700), out="again.pftrace")
        self.assertGreater(int(r.one(trace, "select count(*) from ftrace_event")), 100)

    def kill_while_recording(self, what, seed, stuck=False):
        rng = random.Random(seed)
        with recorder.Recorder() as r, Busy():
            p = r.record_begin(SCHED % ("buffer_size_kb: 4096", 20000) + STREAM)
            r.wait_for("the recording", lambda: r.instances() and (r.dir / "trace.pftrace").exists()
                       and (r.dir / "trace.pftrace").stat().st_size > 100000)
            time.sleep(rng.random() * 0.5)
            if stuck:  # the probes wait for room in the shared memory when the service goes
                r.traced.send_signal(signal.SIGSTOP)
                stress(1.5)
            left = self.kill(r, what)
            if what == ["probes"]:
                self.assertTrue(left)  # nobody could take it back
            self.end_of_killing(r, p, least=100)
            if what == ["traced"]:  # the same probes serve the new service
                self.assertGreaterEqual(r.log("traced.log").count('"perfetto.traced_probes" connected'), 2)

    def test_kill_at_any_moment(self):
        """Also while tracefs is being set up or put back, or before anything has been written."""
        rng = random.Random(os.environ.get("SEED", "7"))
        with recorder.Recorder() as r, Busy():
            for what in (["probes"], ["traced"], ["traced", "probes"]) * 2:
                p = r.record_begin(SCHED % ("buffer_size_kb: 4096", 600) + STREAM)
                time.sleep(rng.random())
                self.kill(r, what)
                self.end_of_killing(r, p, least=0)

    def test_kill_probes(self):
        for seed in range(2):
            self.kill_while_recording(["probes"], seed)

    def test_kill_service(self):
        for seed in range(2):
            self.kill_while_recording(["traced"], 10 + seed)

    def test_kill_a_service_that_does_not_read(self):
        self.kill_while_recording(["traced"], 30, stuck=True)

    def test_kill_both(self):
        for seed in range(2):
            self.kill_while_recording(["traced", "probes"], 20 + seed)


if __name__ == "__main__":
    recorder.main()

"""tracebox heapprofd and the library of heap profiles: a program whose allocations are known, and what goes wrong."""
import math
import mmap
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

from harness import TRACEBOX, Case, has_open, main, wait_for

TRUTH = os.environ.get("HEAP_TRUTH", "build/dev/heap_truth")
LIBRARY = os.environ.get("HEAP_LIBRARY", "build/dev/libmeridian_heap.so")
NOBODY = 65534
HEADER = 1 << 16  # HEAP_HEADER_BYTES

CONFIG = """
buffers { size_kb: %d }
duration_ms: %d
data_sources { config { name: "android.heapprofd" heapprofd_config { sampling_interval_bytes: %d %s } } }
"""

# By function and process: what it allocated, what of that is kept, and how many samples stand for it.
SUMS = """select coalesce(s.name, ''), pid, sum(max(size, 0)), sum(size), sum(max(count, 0)) from heap_profile_allocation h
  join stack_profile_callsite c on c.id = callsite_id join stack_profile_frame f on f.id = frame_id
  left join stack_profile_symbol s using (symbol_set_id) join process using (upid) group by 1, 2"""


# Allocates for two seconds behind a filter that ends it for one system call.
SHUT_IN = """
import ctypes, struct, time
KILL, ALLOW, LOAD_NUMBER, SKIP_UNLESS, RETURN, NUMBER = 0x80000000, 0x7fff0000, 0x20, 0x15, 0x06, %d
program = b"".join(struct.pack("HBBI", *step) for step in [
    (LOAD_NUMBER, 0, 0, 0), (SKIP_UNLESS, 0, 1, NUMBER), (RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)])
kept = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(kept)))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filter) == 0
end = time.monotonic() + 2
while time.monotonic() < end:
    bytes(100000)
print("still here")
"""


def truth_of(text):
    return {w[0]: (int(w[1]), int(w[2])) for w in map(str.split, text.splitlines()) if len(w) == 3 and w[1].isdigit()}


class Heap(Case):
    def setUp(self):
        super().setUp()
        self.env["MERIDIAN_HEAP_SOCK_NAME"] = str(self.dir / "heap")
        self.library = {**self.env, "LD_PRELOAD": LIBRARY}

    def start_truth(self, mode):
        """A program that goes on by itself, once it has said its first line."""
        p = subprocess.Popen([TRUTH, mode], env=self.library, stdout=subprocess.PIPE)
        self.procs.append(p)
        self.addCleanup(p.stdout.close)
        self.assertIn(b"keeps_all", p.stdout.readline())
        return p

    def start_heapprofd(self, before=(), **kw):
        r, w = os.pipe()
        with open(self.dir / "heapprofd.log", "ab") as log:
            p = subprocess.Popen([*before, TRACEBOX, "heapprofd"], env={**self.env, "HEAPPROFD_NOTIFY_FD": str(w)}, stderr=log,
                                 pass_fds=[w], **kw)
        os.close(w)
        self.procs.append(p)
        self.assertEqual(os.read(r, 1), b"1", (self.dir / "heapprofd.log").read_text())
        os.close(r)
        return p

    def start_recording(self, interval=4096, more="all: true block_client: true", duration_ms=60000, name="trace", around="",
                        size_kb=65536):
        """Returns once the data source has started."""
        trace = self.dir / f"{name}.pftrace"
        r, w = os.pipe()
        p = self.spawn(TRACEBOX, "perfetto", "--txt", "-c", self.config(CONFIG % (size_kb, duration_ms, interval, more) + around, name),
                       "-o", trace, "--notify-fd", w, pass_fds=[w])
        os.close(w)
        os.read(r, 1)
        os.close(r)
        return p, trace

    def stop_recording(self, p):
        p.send_signal(signal.SIGINT)
        return self.finish(p)[1]

    def truth(self, *args, code=0, **kw):
        p = subprocess.run([TRUTH, *map(str, args)], env=self.library, capture_output=True, text=True, timeout=60, **kw)
        self.assertEqual(p.returncode, code, p.stderr)
        return truth_of(p.stdout)

    def sums(self, trace):
        out = {}
        for name, _, allocated, kept, n in self.query(trace, SUMS, "--symbols", "auto"):
            a, k, c = out.get(name, (0, 0, 0))
            out[name] = (a + int(allocated), k + int(kept), c + int(n))
        return out

    def stats(self, trace):
        """{name: sum of all processes}"""
        return {n: int(v) for n, v in self.query(trace, "select name, sum(value) from stats where name glob 'heapprofd*' group by 1")}

    def check_sums(self, truth, sums, interval):
        """Each byte is a sample with probability 1/interval, which stands for interval bytes: the variance of a sum of N bytes is
        N * interval * (1 - 1/interval), whatever the sizes of the blocks. Five deviations: 1 of 2 million checks fails by chance."""
        self.assertTrue(truth)
        for name, want in truth.items():
            self.assertIn(name, sums)
            for what, a, b in zip(("allocated", "kept"), want, sums[name]):
                self.assertLessEqual(abs(a - b), 5 * math.sqrt(a * interval), f"{name} {what}: {b}, truth {a}")

    def run_profile(self, *args, code=0, env=None, **kw):
        """Once more where it says that the machine was too busy for it to begin."""
        for _ in range(3):
            p = subprocess.run([TRACEBOX, "profile", "--heap", *map(str, args)], env=env or self.env, capture_output=True, text=True,
                               timeout=120, cwd=self.dir, **kw)
            if p.returncode == code or "has not said that it started" not in p.stderr:
                break
            print(p.stderr)
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stdout, p.stderr

    # ---- what is right ----

    def test_profile_finds_what_is_known(self):
        """Each way to allocate, in threads, in children, on stacks of other kinds; without frame pointers."""
        trace = self.dir / "t.pftrace"
        for mode, interval in (("shares", 4096), ("shares", 512), ("functions", 512), ("threads", 1024), ("forks", 1024),
                               ("stacks", 1024)):
            with self.subTest(mode=mode, interval=interval):
                out, err = self.run_profile("-i", interval, "-o", trace, "--", TRUTH, mode)
                self.check_sums(truth_of(out), self.sums(trace), interval)
                self.assertIn("; 0 lost", err)
                self.assertNotIn("heapprofd_samples_lost", self.stats(trace))
        depth = self.query(trace, "select max(depth) from heap_profile_allocation join stack_profile_callsite c on c.id = callsite_id")
        self.assertGreaterEqual(int(depth[0][0]), 200)

    def test_profile_shows_a_table(self):
        out, err = self.run_profile("-g", "-i", 1024, "-o", self.dir / "t.pftrace", "--", TRUTH, "shares")
        truth, mega = truth_of(out), 1e6
        rows = {m[4]: (float(m[1]), float(m[2]), float(m[3])) for m in
                re.finditer(r"^ *([0-9.]+) MB +([0-9.]+) MB +([0-9.]+) MB +\d+  (\w+)  \[heap_truth\]$", out, re.M)}
        for name in ("keeps_all", "keeps_half", "keeps_large"):
            for want, got in ((truth[name][1], rows[name][0]), (truth[name][1], rows[name][1]), (truth[name][0], rows[name][2])):
                self.assertLess(abs(want / mega - got), 0.1 + 5 * math.sqrt(want * 1024) / mega)
        self.assertRegex(out, r"(?m)^ +0 B +0 B +1[56]\.\d MB +\d+  keeps_none")
        self.assertRegex(out, r"(?m)^ +0 B +\d+\.\d MB +0 B +0  main  \[heap_truth\]")
        self.assertRegex(err, r"profile: 2\d\.\d MB of 4\d\.\d MB were not freed; \d+ samples of 1 process")

    def test_profile_says_what_is_wrong(self):
        for args, why in (([], "needs a COMMAND"), (["-p", os.getpid(), "--", "true"], "needs a COMMAND"),
                          (["-i", "0", "--", "true"], "--interval"), (["-i", "x", "--", "true"], "--interval"),
                          (["-i", "-5", "--", "true"], "--interval"), (["--off-cpu", "--", "true"], "--off-cpu"),
                          (["-m", "host", "--", "true"], "this machine alone"),
                          (["-p", os.getpid()], "no tracing service here has a heapprofd")):
            self.assertIn(why, self.run_profile(*args, code=1)[1])
        p = subprocess.run([TRACEBOX, "profile", "-i", "4096"], capture_output=True, text=True)
        self.assertEqual((p.returncode, "--interval is for --heap" in p.stderr), (1, True))

    def test_the_status_is_the_commands(self):
        self.assertIn("ended with status 3", self.run_profile("--", "sh", "-c", "exit 3", code=3)[1])

    def test_programs_run_as_without_it(self):
        """Every byte is a sample: shells, pipes, an interpreter with threads and children."""
        script = ("import threading, subprocess, re\n"
                  "t = [threading.Thread(target=lambda: [bytearray(n) for n in range(2000)]) for _ in range(4)]\n"
                  "[x.start() for x in t]; [x.join() for x in t]\n"
                  "print(subprocess.run(['sh', '-c', 'seq 1000 | sort -r | tail -1'], capture_output=True, text=True).stdout)\n"
                  "print(len(re.findall('a+', 'ab' * 10000)))\n")
        for command in (["sh", "-c", "for i in 1 2 3; do echo $i; (echo sub; seq 5) | wc -l; done"], ["python3", "-c", script]):
            alone = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
            out, _ = self.run_profile("-i", 64, "--rows", 1, "--", *command, env={**self.env, "PYTHONMALLOC": "malloc"})
            self.assertEqual(out[:len(alone.stdout)], alone.stdout)

    def test_without_a_daemon_nothing_is_different(self):
        self.assertIn("keeps_all", self.truth("shares"))
        socket.socket(socket.AF_UNIX).close()
        silent = socket.socket(socket.AF_UNIX)  # one that listens, and never answers
        silent.bind(self.env["MERIDIAN_HEAP_SOCK_NAME"])
        silent.listen(1)
        begin = time.monotonic()
        self.assertIn("keeps_all", self.truth("shares"))
        self.assertLess(time.monotonic() - begin, 15)
        silent.close()

    def test_a_daemon_that_comes_late(self):
        """Programs that run already find it with their allocations, children of theirs at once; they did not begin during the recording."""
        early = subprocess.Popen([TRUTH, "paths"], env=self.library, stdout=subprocess.DEVNULL)
        shell = subprocess.Popen(["sh", "-c", f"read x; {TRUTH} shares"], env=self.library, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.procs += [early, shell]
        time.sleep(1.2)
        self.start_traced()
        daemon = self.start_heapprofd()
        p, trace = self.start_recording(1024, "all: true block_client: true no_startup: true")
        wait_for(lambda: has_open(daemon.pid, "memfd:meridian-heap") or
                 "memfd:meridian-heap" in pathlib.Path(f"/proc/{early.pid}/maps").read_text(), what="the program")
        time.sleep(0.5)
        out = shell.communicate(b"\n", timeout=60)[0].decode()
        self.stop_recording(p)
        self.assertIn("keeps_all", truth_of(out))
        self.assertEqual({int(r[0]) for r in self.query(trace, "select distinct pid from heap_profile_allocation join process using (upid)")},
                         {early.pid})
        self.assertGreater(self.sums(trace)["left"][0], 100000)

    def test_a_program_that_shuts_itself_in(self):
        """It is not ended by a look for the daemon, where its filter has death upon socket()."""
        program = self.dir / "shut_in.py"
        program.write_text(SHUT_IN % {"x86_64": 41, "aarch64": 198}[platform.machine()])
        p = subprocess.run(["/usr/bin/python3", program], env=self.library, stdout=subprocess.PIPE, timeout=60)
        self.assertEqual((p.returncode, p.stdout), (0, b"still here\n"))

    def test_a_program_that_becomes_another(self):
        """What it had is gone with its memory; what it allocates from then on is under its number as well."""
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(1024)
        self.truth("becomes")
        self.stop_recording(p)
        sums = self.sums(trace)
        self.check_sums({"keeps_half": (16000000, 4000000), "keeps_all": (12000000, 12000000)}, sums, 1024)

    def test_processes_by_name_and_number(self):
        """A process that runs already, and one that is none of those that are named."""
        self.start_traced()
        self.start_heapprofd()
        other = self.dir / "other_program"
        shutil.copy(TRUTH, other)
        running = self.start_truth("stays")
        p, trace = self.start_recording(4096, f'process_cmdline: "other_*" pid: {running.pid} block_client: true')
        mine = subprocess.Popen([other, "shares"], env=self.library, stdout=subprocess.PIPE)
        mine.communicate()
        self.truth("shares")
        self.stop_recording(p)
        pids = {int(r[0]) for r in self.query(trace, "select pid from heap_profile join process using (upid)")}
        self.assertEqual(pids, {running.pid, mine.pid})
        self.assertEqual({int(r[0]) for r in self.query(trace, "select distinct pid from heap_profile_allocation join process "
                                                               "using (upid)")}, {mine.pid})
        self.assertEqual(self.query(trace, f"select name from process where pid = {mine.pid}"), [[str(other)]])

    def test_dumps_go_on(self):
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(4096, "all: true block_client: true continuous_dump_config { dump_interval_ms: 100 }")
        self.start_truth("stays")
        time.sleep(0.5)
        self.stop_recording(p)
        self.assertGreaterEqual(int(self.query(trace, "select count(*) from heap_profile")[0][0]), 4)
        self.check_sums({"keeps_all": (12000000, 12000000)}, self.sums(trace), 4096)
        self.assertEqual(self.stats(trace).get("heapprofd_missing_packet", 0), 0)

    def test_the_moment_of_most(self):
        """keeps_none() has freed all of it at the end, and so has keeps_half() its half: at the time of most nothing else was there."""
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(512, "all: true block_client: true dump_at_max: true")
        self.truth("shares")
        self.stop_recording(p)
        sums = self.sums(trace)
        self.check_sums({"keeps_all": (12000000,), "keeps_half": (4000000,), "keeps_large": (10000000,)},
                        {k: v[:1] for k, v in sums.items()}, 512)
        self.assertLess(sums.get("keeps_none", (0,))[0], 10000)

    def test_processes_that_are_too_many_are_told(self):
        """Rings of all take 2 GiB at most, of which these want 512 MiB each."""
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(4096, "all: true block_client: true shmem_size_bytes: 536870912")
        running = [self.start_truth("stays") for _ in range(5)]
        self.stop_recording(p)
        self.assertEqual(self.query(trace, "select idx, value from stats where name = 'heapprofd_hit_guardrail' and value > 0"),
                         [[str(running[-1].pid), "1"]])
        self.assertEqual({int(r[0]) for r in self.query(trace, "select distinct pid from heap_profile_allocation join process using (upid)")},
                         {r.pid for r in running[:-1]})

    # ---- buffers that begin anew ----

    def test_rings_that_wrap_have_what_their_last_dumps_refer_to(self):
        """A buffer that dumps fill several times: the stacks and names of its last dumps are there, as the service says now and then
        that all is to be told again; sums are those of the whole time, also of a process that has long done nothing."""
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(1024, "all: true block_client: true continuous_dump_config { dump_interval_ms: 100 }",
                                        around="incremental_state_config { clear_period_ms: 300 }", size_kb=256)
        idle = self.start_truth("stays")
        fills = subprocess.Popen([TRUTH, "paths"], env=self.library, stdout=subprocess.DEVNULL)
        self.procs.append(fills)
        time.sleep(5)
        self.stop_recording(p)
        stats = {n: int(v) for n, v in self.query(trace, "select name, sum(value) from stats where name glob 'traced_buf_*' or "
                                                         "name glob '*stackprofile*' or name glob 'heapprofd*' group by 1")}
        self.assertGreater(stats["traced_buf_bytes_overwritten"], 1 << 17)
        self.assertEqual({n: v for n, v in stats.items() if "stackprofile" in n and v}, {})
        sums = self.sums(trace)
        self.check_sums({"keeps_all": (12000000, 12000000)}, sums, 1024)
        self.assertGreater(sums["left"][0], 5000000)
        self.assertEqual({name for name in sums if not name}, set())
        self.assertEqual(self.query(trace, f"select name from process where pid = {idle.pid}"), [[TRUTH]])

    def test_a_trace_that_is_gone_is_no_success(self):
        """Nor is one that cannot be read again, which is said before the command runs."""
        _, err = self.run_profile("-o", "t.pftrace", "--", "rm", "t.pftrace", code=1)
        self.assertIn("profile: t.pftrace: No such file or directory", err)
        os.mkfifo(self.dir / "pipe")
        for out in ("-", "/dev/null", "pipe"):
            said, err = self.run_profile("-o", out, "--", "echo", "it ran", code=1)
            self.assertEqual((said, "--out: use a file" in err), ("", True))

    # ---- what is lost ----

    def test_what_has_no_room_is_counted(self):
        """Allocations of `size` bytes are samples with probability 1 - (1 - 1/interval)^size. What is there and what is counted as lost
        are all of them."""
        interval = 256
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(interval, "all: true shmem_size_bytes: 131072")
        self.truth("shares")
        self.stop_recording(p)
        want = variance = 0
        for n, size in ((20000, 600), (20000, 400), (20000, 800)):
            q = 1 - (1 - 1 / interval) ** min(size, 10 ** 6) if size < interval else 1
            want, variance = want + n * q, variance + n * q * (1 - q)
        sums, stats = self.sums(trace), self.stats(trace)
        there = sum(v[2] for k, v in sums.items() if k.startswith("keeps_"))
        lost = stats.get("heapprofd_samples_lost", 0)
        self.assertGreater(lost, 0)
        self.assertEqual(stats["heapprofd_buffer_overran"], 1)
        others = sum(v[2] for k, v in sums.items() if not k.startswith("keeps_"))
        self.assertLessEqual(abs(there + lost - want - 1), 5 * math.sqrt(variance) + others + 20, (there, lost, want))

    def test_a_killed_program_is_told_to_its_end(self):
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(1024)
        running = self.start_truth("stays")
        running.kill()
        running.wait()
        self.stop_recording(p)
        self.check_sums({"keeps_all": (12000000, 12000000)}, self.sums(trace), 1024)
        self.assertEqual(self.stats(trace)["heapprofd_client_disconnected"], 1)

    def test_a_killed_daemon_ends_no_program(self):
        self.start_traced()
        daemon = self.start_heapprofd()
        p, trace = self.start_recording(64)
        running = subprocess.Popen([TRUTH, "loop", "3000000"], env=self.library, stdout=subprocess.PIPE)
        self.procs.append(running)
        time.sleep(0.3)
        daemon.kill()
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        self.assertEqual(self.query(trace, "select count(*) from heap_profile"), [["0"]])

    def test_profile_says_that_its_daemon_was_killed(self):
        p = subprocess.Popen([TRACEBOX, "profile", "--heap", "-o", self.dir / "t.pftrace", "--", TRUTH, "stays"], env=self.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.procs.append(p)
        p.stdout.readline()
        children = {int(d.name): (d / "cmdline").read_bytes().split(b"\0") for d in pathlib.Path("/proc").iterdir()
                    if d.name.isdigit() and (d / "stat").exists() and
                    int((d / "stat").read_text().rsplit(")", 1)[1].split()[1]) == p.pid}
        os.kill(next(pid for pid, line in children.items() if b"heapprofd" in line), signal.SIGKILL)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"heapprofd ended early", err)

    def test_a_daemon_that_stands_still_blocks_for_so_long(self):
        self.start_traced()
        daemon = self.start_heapprofd()
        p, trace = self.start_recording(64, "all: true shmem_size_bytes: 131072 block_client: true block_client_timeout_us: 300000")
        self.start_truth("stays")
        daemon.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        daemon.send_signal(signal.SIGCONT)
        self.assertEqual(self.stats_after(p, trace).get("heapprofd_client_error", 0), 0)
        p, trace = self.start_recording(64, "all: true shmem_size_bytes: 131072 block_client: true block_client_timeout_us: 300000",
                                        name="again")
        starts = subprocess.Popen([TRUTH, "loop", "1000000"], env=self.library, stdout=subprocess.PIPE)
        self.procs.append(starts)
        time.sleep(0.2)
        daemon.send_signal(signal.SIGSTOP)
        try:
            starts.communicate(timeout=60)
        finally:
            daemon.send_signal(signal.SIGCONT)
        self.assertEqual(starts.returncode, 0)
        stats = self.stats_after(p, trace)
        self.assertEqual(stats.get("heapprofd_client_error"), 1)
        self.assertGreater(stats["heapprofd_samples_lost"], 0)
        self.assertGreater(stats["heapprofd_client_spinlock_blocked"], 200000)

    def stats_after(self, p, trace):
        self.stop_recording(p)
        return self.stats(trace)

    def test_one_session_for_a_process(self):
        self.start_traced()
        self.start_heapprofd()
        self.start_truth("stays")
        first, _ = self.start_recording(name="first")
        second, trace = self.start_recording(name="second")
        self.stop_recording(second)
        self.stop_recording(first)
        self.assertEqual(self.stats(trace)["heapprofd_rejected_concurrent"], 1)

    def test_a_guard_ends_it(self):
        self.start_traced()
        self.start_heapprofd()
        p, trace = self.start_recording(4096, "all: true max_heapprofd_memory_kb: 1")
        self.start_truth("stays")
        wait_for(lambda: "max_heapprofd_memory_kb" in (self.dir / "heapprofd.log").read_text())
        self.stop_recording(p)
        self.assertEqual(self.stats(trace)["heapprofd_hit_guardrail"], 1)

    def test_what_cannot_start_says_why(self):
        self.start_traced()
        self.start_heapprofd()
        for interval, more, why in ((1, "", "no process is named"), (0, "all: true", "sampling_interval_bytes"),
                                    (1, 'all: true heaps: "com.android.art"', "heaps"),
                                    (1, "all: true no_startup: true no_running: true", "leave no"),
                                    (1, "all: true shmem_size_bytes: 99999999999", "shmem_size_bytes")):
            p = self.perfetto("--txt", "-c", self.config(CONFIG % (65536, 200, interval, more)), "-o", self.dir / "no.pftrace")
            self.assertIn(why, self.finish(p, 3)[1])

    # ---- who may ----

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to be somebody else")
    def test_others(self):
        """Nobody needs root for his own programs; root's programs talk to no daemon of nobody's."""
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        os.chmod(self.dir, 0o755)
        theirs, copies = self.dir / "theirs", {}
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
        trace = theirs / "t.pftrace"
        self.env["MERIDIAN_HEAP_SOCK_NAME"] = self.library["MERIDIAN_HEAP_SOCK_NAME"] = str(theirs / "heap")
        for path in (TRACEBOX, LIBRARY, TRUTH):  # where nobody may read them
            copies[path] = self.dir / pathlib.Path(path).name
            shutil.copy(path, copies[path])
        p = subprocess.run([*as_nobody, copies[TRACEBOX], "profile", "--heap", "-i", "1024", "-o", trace, "--", copies[TRUTH], "shares"],
                           env=self.env, capture_output=True, text=True, timeout=60, cwd=theirs)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.check_sums(truth_of(p.stdout), self.sums(trace), 1024)
        self.start_traced()
        with open(self.dir / "heapprofd.log", "ab") as log:
            self.procs.append(subprocess.Popen([*as_nobody, copies[TRACEBOX], "heapprofd"], env=self.env, stderr=log))
        wait_for((theirs / "heap").exists)
        fds = subprocess.run(["sh", "-c", "ls -l /proc/self/fd; cat /proc/$$/maps"], env=self.library, capture_output=True, text=True)
        self.assertNotIn("memfd:meridian-heap", fds.stdout)
        maps = subprocess.run([*as_nobody, "sh", "-c", "cat /proc/$$/maps"], env={**self.library, "LD_PRELOAD": str(copies[LIBRARY])},
                                capture_output=True, text=True)
        self.assertIn("memfd:meridian-heap", maps.stdout)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to be somebody else")
    def test_the_capabilities_of_the_unit_are_enough(self):
        """As the unit starts it, it profiles a program of another user whose files that user alone may read; and keeps no more."""
        unit = (pathlib.Path(__file__).resolve().parent.parent.parent / "systemd" / "meridian-heapprofd.service").read_text()
        named = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).split()
        bound = ",".join(["-all"] + ["+" + c.removeprefix("CAP_").lower() for c in named])
        theirs = self.dir / "theirs"
        theirs.mkdir()
        for path in (LIBRARY, TRUTH):
            shutil.copy(path, theirs)
        for path in (theirs, *theirs.iterdir()):
            os.chown(path, NOBODY, NOBODY)
            os.chmod(path, 0o700)
        os.chmod(self.dir, 0o711)
        self.start_traced()
        daemon = self.start_heapprofd(before=["setpriv", "--bounding-set", bound, "--inh-caps", "-all", "--no-new-privs"])
        p, trace = self.start_recording(1024)
        env = {**self.library, "LD_PRELOAD": str(theirs / pathlib.Path(LIBRARY).name)}
        out = subprocess.run([theirs / pathlib.Path(TRUTH).name, "shares"], env=env, capture_output=True, text=True, timeout=60,
                             user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(out.returncode, 0, out.stderr)
        kept = re.search(r"^CapEff:\s+(\w+)$", pathlib.Path(f"/proc/{daemon.pid}/status").read_text(), re.M).group(1)
        self.stop_recording(p)
        kinds = self.query(trace, "select length(build_id) > 0, max(depth) >= 3, sum(max(size, 0)) from heap_profile_allocation join "
                                  "stack_profile_callsite c on c.id = callsite_id join stack_profile_frame f on f.id = frame_id join "
                                  f"stack_profile_mapping m on m.id = f.mapping where m.name = '{theirs / pathlib.Path(TRUTH).name}' group by 1")
        self.assertEqual([r[:2] for r in kinds], [["1", "1"]])  # its file was read, and its unwind tables
        self.check_sums({"all": (sum(a for a, _ in truth_of(out.stdout).values()),)}, {"all": (int(kinds[0][2]),)}, 1024)
        self.assertEqual(int(kept, 16), 1 << 2 | 1 << 19 | 1 << 40)  # CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE

    # ---- who lies ----

    def hostile(self, write):
        """A process that connects as the library does, and calls `write` with the ring's memory, in a process of its own."""
        pid = os.fork()
        if pid:
            return pid
        try:
            s = self.connect()
            data, fds, _, _ = socket.recv_fds(s, 64, 4)
            write(s, mmap.mmap(fds[1], os.fstat(fds[1]).st_size), struct.unpack("<IIQ", data)[2], fds)
            s.recv(1)  # until the test ends
        finally:
            os._exit(0)

    def test_liars_harm_nobody(self):
        def head(ring, v):
            ring[:8] = struct.pack("<Q", v)

        def record(size, flags, kind, address=1, more=b""):
            return (struct.pack("<QIIQ", size | flags, kind, 1, address) + more).ljust(size, b"\xaa")

        def put(ring, at, data):
            ring[HEADER + at:HEADER + at + len(data)] = data

        def beyond(s, ring, size, fds):
            head(ring, 1 << 63)

        def endless(s, ring, size, fds):
            put(ring, 0, struct.pack("<QIIQ", 1 << 30 | 1, 1, 1, 1))
            head(ring, size)

        def tiny(s, ring, size, fds):
            put(ring, 0, record(8, 1, 1))
            head(ring, 64)

        def no_kind(s, ring, size, fds):
            put(ring, 0, record(64, 1, 77))
            head(ring, 64)

        def stack_too_long(s, ring, size, fds):
            put(ring, 0, record(4096, 1, 1, more=struct.pack("<QQ", 1 << 60, 1 << 40)))
            head(ring, 4096)

        def unfinished(s, ring, size, fds):
            put(ring, 0, record(64, 0, 1))
            head(ring, 4096)

        def noise(s, ring, size, fds):
            ring[HEADER:] = os.urandom(len(ring) - HEADER)
            head(ring, size // 2)

        def many(s, ring, size, fds):
            """Well-formed: 5,000 allocations of a terabyte, at registers of nonsense."""
            at = 0
            for i in range(5000):
                r = record(216, 1, 1, i, struct.pack("<QQ", (1 << 40) - 1, 16) + os.urandom(160) + os.urandom(16))
                put(ring, at, r)
                at += 216
            head(ring, at)

        def talks(s, ring, size, fds):
            s.setblocking(False)
            try:
                while True:
                    s.send(os.urandom(4096))
            except BlockingIOError:
                s.setblocking(True)

        def cuts(s, ring, size, fds):
            for fd in fds:
                try:
                    os.ftruncate(fd, 0)
                    os.write(2, b"a shared memory was cut\n")
                except OSError:
                    pass

        def races(s, ring, size, fds):
            """What it has written changes while it is read."""
            end = time.monotonic() + 1
            while time.monotonic() < end:
                put(ring, 0, record(4096, 1, 1, more=struct.pack("<QQ", 64, 4096 - 24 - 16 - 160)))
                head(ring, 4096)
                put(ring, 40, struct.pack("<Q", 1 << 50))

        self.start_traced()
        daemon = self.start_heapprofd()
        p, trace = self.start_recording(1024)
        liars = [beyond, endless, tiny, no_kind, stack_too_long, unfinished, noise, many, talks, cuts, races]
        pids = {self.hostile(x): x.__name__ for x in liars}
        self.truth("shares")
        time.sleep(1.5)
        self.assertIsNone(daemon.poll())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.truth("stacks")
        time.sleep(0.3)
        self.stop_recording(p)
        self.assertIsNone(daemon.poll(), (self.dir / "heapprofd.log").read_text())
        broken = {pids[int(r[0])] for r in self.query(trace, "select idx from stats where name = 'heapprofd_buffer_corrupted' and value > 0")}
        self.assertLessEqual({"beyond", "endless", "tiny", "no_kind", "stack_too_long", "noise"}, broken)
        self.assertEqual(broken & {"many", "talks", "cuts", "unfinished"}, set())
        self.check_sums({"keeps_all": (12000000, 12000000), "deep": (5000000, 5000000)}, self.sums(trace), 1024)

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.env["MERIDIAN_HEAP_SOCK_NAME"])
        return s

    def hang_up(self):
        while True:
            self.connect().close()

    def hold(self):
        """As many connections as it may have, held until the last one is answered."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500))
        while True:
            held = [self.connect() for _ in range(450)]
            held[-1].recv(1)
            for s in held:
                s.close()

    def test_who_connects_again_and_again_holds_nobody_up(self):
        """A program waits for two seconds at most, and goes on without; who did not wait is told, once."""
        self.start_traced()
        daemon = self.start_heapprofd()
        for flood in (self.hang_up, self.hold):
            p, trace = self.start_recording(1024, name=flood.__name__)
            pids = []
            for _ in range(4):
                pids.append(os.fork())
                if not pids[-1]:
                    try:
                        flood()
                    finally:
                        os._exit(1)
            time.sleep(0.5)
            truth = self.truth("shares")
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            self.stop_recording(p)
            self.check_sums(truth, self.sums(trace), 1024)
            missed = {int(r[0]) for r in self.query(trace, "select idx from stats where name = 'heapprofd_client_error' and value > 0")}
            self.assertLessEqual(missed, set(pids))
            self.assertLess(os.stat(trace).st_size, 1 << 20)
        self.assertIsNone(daemon.poll())

    def test_one_user_does_not_take_all(self):
        """Connections of one process take each other's place."""
        self.start_traced()
        daemon = self.start_heapprofd()
        p, trace = self.start_recording(1024)
        held = []
        for _ in range(300):
            held.append(self.connect())
        held[-1].recv(16)  # the daemon has looked at all of them: programs wait two seconds for it
        self.assertEqual(self.truth("shares")["keeps_all"][0], 12000000)
        fds = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        self.assertLess(fds, 60)
        self.stop_recording(p)
        self.check_sums({"keeps_all": (12000000, 12000000)}, self.sums(trace), 1024)
        for s in held:
            s.close()


if __name__ == "__main__":
    main()
